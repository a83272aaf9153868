"""What leaves a collection: estimates from its counts; `export`, its samples as a table; `close_collection` and `publish`, its end.

Each is what a command prints from a file of the same samples: `discreet estimate --json`, with `--by` or with `--compare`. Estimates of
fewer samples than the store says (`discreet collect --least`) are hidden: from the service, from `export` and from `publish`.

**Groups.** The agreements of one collection may differ in their purpose alone. Then each is the agreement of a public group: a client sends
one sample in each round of the collection, under the agreement of its group. Which group that is, the client states by its choice of the
agreement, and everybody may know it. Private groups are a column of a survey.

**Export.** `discreet estimate` computes from the table what the service shows. A store keeps how often each outcome was said, and who has
spoken, but not who said what. So the rows are made of the counts: as many of each outcome as were counted, in random order, and numbered in
that order. The numbers say nothing of any client; they are there because each stands for another one. Parquet and Arrow files say so in their
metadata, so that two exports are not taken for files of the same clients. A cell is written as a point in it that is read back into that
cell, which is tried before anything is written.

Of reports a store keeps the table that they add up to, from which single ones cannot be told. That table is exported, place by place, and
`discreet estimate` reads it. Reports on a survey are kept one by one, and exported so. Fewer samples than the store estimates from
(`discreet collect --least`) are not exported.

**Publishing.** A closed collection counts nothing more, so its counts, and all that is computed from them, stay as they are. `publish` writes
the estimate as the service shows it (`estimate.json`), as a table (`estimate.csv`), as a picture (`picture.svg`) and as a page (`index.html`)
without scripts, beside the agreement. Each holds every number to its last digit, the one that `discreet estimate` prints. Publishing twice
gives the same bytes.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.files import atomic_folder, check_output_path, refuse_same_file
from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.collect._counting import reports_from_signed_integers
from discreet.collect._published_page import (
    share_page_html,
    share_picture_svg,
    shares_as_csv,
    survey_as_csv,
    survey_page_html,
    survey_picture_svg,
)
from discreet.collect._store import Store, StoredAgreement, find_agreement_by_prefix, require_store_object, today_in_utc
from discreet.domain import Coding, outcome_codes_expression
from discreet.errors import OPEN_UNIT, DiscreetError, check_path
from discreet.estimation import (
    COUNTED,
    PLACE,
    Estimate,
    Population,
    ReportedPopulation,
    answer_groups,
    answer_survey,
    change,
    coding_and_sampler,
    estimate_groups,
    inverted_population,
    json_record_of_change,
    json_record_of_estimate,
    json_record_of_group_estimates,
    json_record_of_inverted_estimate,
    json_record_of_pooled_estimate,
    json_record_of_shares_within_groups,
    json_record_of_survey_answers,
    json_record_of_survey_change,
    json_record_of_survey_groups,
    json_record_of_unanswered_survey,
    notes_on_estimate,
    notes_on_survey_answers,
    pooled_population,
    population,
    reported_population,
    survey_change,
)
from discreet.mechanisms import AnyFamily, OwnSampler, ReportCounts, ReportSampler, Sampler
from discreet.survey import SurveySampler
from discreet.tables import (
    METADATA,
    NUMBERED,
    REPLACE_HINT,
    STANDARD,
    choose_output_format,
    open_table_writer,
    outcomes_as_samples,
)

AnySampler = Sampler[AnyFamily] | ReportSampler | SurveySampler
Counts = NDArray[np.int64]
OWN_ALONE = "samples of a mechanism of one's own are estimated one round at a time, without groups and changes"
BY_AGREEMENT = "agreement"
CHANGE_NOTE = (
    "the later round less the earlier one; intervals hold whether the clients are the same, overlapping or others. If not everybody took "
    "part in both, a change may be one of who took part"
)


def sampler_of_agreement(agreed: Agreement) -> AnySampler:
    """What released the samples or reports of an agreement."""
    if agreed.survey is not None:
        return agreed.survey_sampler()
    return agreed.report_sampler() if agreed.blocks is not None else coding_and_sampler(agreed)[1]


def total_sample_count(sampler: AnySampler, counts: Counts) -> int:
    """How many samples, or reports, were counted."""
    if isinstance(sampler, SurveySampler):
        return len(counts)
    if isinstance(sampler, ReportSampler):
        return ReportCounts.from_table(sampler, counts).reports if counts.any() else 0
    return int(counts.sum())


def refuse_too_few_samples(kept: StoredAgreement, round: int, samples: int) -> None:
    """Raise an error for a round without samples, or with fewer than are estimated from."""
    what = kept.agreement.release_kind
    of = f"agreement {kept.agreement.id} has"
    if not samples:
        raise DiscreetError(f"{of} no {what}s in round {round}; there is nothing to export")
    if samples < kept.least:
        raise DiscreetError(
            f"{of} {pluralise(samples, what)} in round {round}, and estimates of fewer than {kept.least:,} are hidden; "
            "wait for more, or choose another number: discreet collect --least N"
        )


def json_document_of_hidden_estimate(
    kept: StoredAgreement, sampler: AnySampler, days: list[tuple[str, int]], round: int
) -> dict[str, Any]:
    """What is said of a round whose estimates are not shown: how many samples came."""
    empty = json_document_of_estimate(kept, sampler, np.zeros(0, dtype=np.int64), 0.95)
    what = "clients" if isinstance(sampler, SurveySampler) else f"{kept.agreement.release_kind}s"
    said = {"hidden": kept.shown, "notes": [], "round": round, "days": days}
    return {
        **empty,
        what: sum(number for _, number in days),
        **said,
        **({"closed": kept.closed} if kept.closed else {}),
    }


def json_document_of_estimate(
    kept: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float
) -> dict[str, Any]:
    """The estimate as `discreet estimate --json` prints it; without estimates where samples are missing, or too few to be shown."""
    agreed = kept.agreement
    samples = total_sample_count(sampler, counts)
    hidden = {"least": kept.least} if kept.least > 1 else {}
    what = f"{agreed.release_kind}s"
    said = f"estimates are shown from {kept.least:,} {what} on" if hidden else f"there are no {what} yet"
    if isinstance(sampler, SurveySampler):
        if kept.has_enough_samples_to_show(samples):
            answers = answer_survey(sampler, reports_from_signed_integers(counts), confidence=confidence)
            return json_record_of_survey_answers(answers, agreed, notes_on_survey_answers(answers))
        return {**json_record_of_unanswered_survey(agreed, samples, confidence), "notes": [said], **hidden}
    if kept.has_enough_samples_to_show(samples):
        if not isinstance(sampler, OwnSampler):
            found = _estimate_population(sampler, counts, confidence)
            return json_record_of_estimate(
                found, agreed, notes_on_estimate(found, agreed), statistics=_estimate_mean_and_median(found)
            )
        try:
            inverted = inverted_population(sampler, counts=counts, confidence=confidence)
            return json_record_of_inverted_estimate(inverted, agreed, [])
        except DiscreetError as error:  # the same for all samples: the law is not linear, or its matrix has no inverse
            said = str(error)
    return {
        what: samples,
        "agreement": agreed.id,
        "mechanism": agreed.mechanism,
        "epsilon": agreed.epsilon,
        "confidence": confidence,
        "shares": [],
        "statistics": [],
        "notes": [said],
        **hidden,
    }


def _estimate_mean_and_median(found: Population | ReportedPopulation) -> list[Estimate]:
    """Mean and median, where outcomes are numbers and the average client is identifiable."""
    if found.domain.values is None or not found.exact:
        return []
    return [found.statistic(name) for name in ("mean", "median")]


def _estimate_population(
    sampler: Sampler[AnyFamily] | ReportSampler, counts: Counts, confidence: float
) -> Population | ReportedPopulation:
    if isinstance(sampler, ReportSampler):
        return reported_population(sampler, counts=ReportCounts.from_table(sampler, counts), confidence=confidence)
    return population(sampler, counts=counts, confidence=confidence)


def group_names(agreements: Sequence[Agreement]) -> list[str]:
    """What the group of each agreement is called: its purpose, with digits of its id where that is missing or not its own."""
    purposes = [each.purpose for each in agreements]
    return [
        each.purpose if each.purpose and purposes.count(each.purpose) == 1 else f"{each.purpose} {each.id[:12]}".strip()
        for each in agreements
    ]


def json_document_of_group_estimates(
    groups: Sequence[StoredAgreement], sampler: AnySampler, counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The estimates of groups as `discreet estimate --by --json` prints them; groups with too few samples are left out, and counted."""
    agreed, what = groups[0].agreement, f"{groups[0].agreement.release_kind}s"
    if isinstance(sampler, OwnSampler):
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": [OWN_ALONE]}
    names = group_names([each.agreement for each in groups])
    many = [total_sample_count(sampler, each) for each in counts]
    shown = [place for place, samples in enumerate(many) if groups[place].has_enough_samples_to_show(samples)]
    said = []
    if len(shown) < len(groups):
        fewest = max(1, groups[0].least)
        hidden = pluralise(len(groups) - len(shown), "group")
        said.append(
            f"{hidden} of {len(groups)} with fewer than {fewest:,} {what if fewest > 1 else what[:-1]} not shown"
        )
    ids = {names[place]: groups[place].agreement.id for place in range(len(groups))}
    about = {"agreements": ids, "samples_of_groups": dict(zip(names, many, strict=True))}
    if isinstance(sampler, SurveySampler):
        reports = {names[place]: reports_from_signed_integers(counts[place]) for place in shown}
        answers = answer_groups(sampler, reports, confidence=confidence) if reports else {}
        return {
            **json_record_of_survey_groups(answers, agreed, said, by=BY_AGREEMENT),
            "confidence": confidence,
            **about,
        }
    if not shown:
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": said, **about}
    counted: Mapping[str, Any] = {
        names[place]: ReportCounts.from_table(sampler, counts[place])
        if isinstance(sampler, ReportSampler)
        else counts[place]
        for place in shown
    }
    found = estimate_groups(sampler, counts=counted, confidence=confidence)
    return {**json_record_of_group_estimates(found, agreed, said, by=BY_AGREEMENT, statistics={}), **about}


def json_document_of_stages_estimate(
    stages: Sequence[StoredAgreement], samplers: Sequence[AnySampler], counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The stages of a collection together as `discreet estimate IN IN --json` prints them; empty while too few have come.

    A stage whose own estimate is hidden is left out: together with the estimates of the others it could be computed.
    """
    used = [
        (kept.agreement, _estimate_population(sampler, each, confidence))
        for kept, sampler, each in zip(stages, samplers, counts, strict=True)
        if not isinstance(sampler, SurveySampler) and kept.has_enough_samples_to_show(total_sample_count(sampler, each))
    ]
    hidden = len(stages) - len(used)
    said = [f"{pluralise(hidden, 'stage')} of {len(stages)} with too few samples left out"] if hidden else []
    if not used:
        return {"clients": 0, "confidence": confidence, "stages": [], "shares": [], "notes": said}
    found = pooled_population([each for _, each in used])
    return json_record_of_pooled_estimate(found, {number: agreed for number, (agreed, _) in enumerate(used, start=1)}, [*said, *found.doubts])


def json_document_of_estimated_change(
    kept: StoredAgreement, sampler: AnySampler, rounds: tuple[int, int], counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The change from one round to another as `discreet estimate --compare --json` prints it; empty where one has too few samples."""
    agreed, told = kept.agreement, {"rounds": list(rounds)}
    if isinstance(sampler, OwnSampler):
        return {"confidence": confidence, "changes": [], "notes": [OWN_ALONE], **told}
    for number, each in zip(rounds, counts, strict=True):
        if not kept.has_enough_samples_to_show(total_sample_count(sampler, each)):
            said = f"round {number} has too few {agreed.release_kind}s, so no change is shown"
            return {"confidence": confidence, "changes": [], "notes": [said], **told}
    if isinstance(sampler, SurveySampler):
        earlier, later = map(reports_from_signed_integers, counts)
        moved = survey_change(sampler, earlier, sampler, later, confidence=confidence)
        return {**json_record_of_survey_change(moved, (agreed, agreed), [CHANGE_NOTE]), **told}
    before, after = (_estimate_population(sampler, each, confidence) for each in counts)
    return {**json_record_of_change(change(before, after), (agreed, agreed), [CHANGE_NOTE]), **told}


def json_document_of_shares_within_groups(
    kept: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float, by: str
) -> dict[str, Any]:
    """Shares within the private groups of a survey's column as `discreet estimate --by --json` prints them."""
    samples = total_sample_count(sampler, counts)
    if not isinstance(sampler, SurveySampler) or not kept.has_enough_samples_to_show(samples):
        return {"by": by, "clients": samples, "confidence": confidence, "questions": [], "notes": []}
    return json_record_of_shares_within_groups(
        answer_survey(sampler, reports_from_signed_integers(counts), confidence=confidence), [], by=by
    )


MOST_ROWS = 10**9 - 1
_ROWS = 1 << 20  # at a time
_PLACES = (0.5, 0.25, 0.75, 0.0)  # of a point in its cell: the middle, unless floats are too coarse


@dataclass(frozen=True)
class ExportSummary:
    """The number of samples written, or of reports whose table was, of a round under an agreement."""

    agreement: Agreement
    round: int
    samples: int
    what: str = "sample"


def export(
    store: Store, output: str | Path, *, agreement: str | None = None, round: int = 1, replace: bool = False
) -> ExportSummary:
    """Write the samples of an agreement of a store to a file, with the agreement in it; of reports, the table that they add up to.

    Args:
        store: from `open_store`.
        output: ends in .parquet, .csv or .arrow; it appears whole or not at all.
        agreement: its id, or 12 or more of its first digits; by default the newest.
        round: the round to export.
        replace: whether a plain file of that name may be replaced.

    Returns:
        What was written.

    Raises:
        DiscreetError: for an agreement that is not there, one with no samples or too few to be shown, and an output that may not be written.
    """
    require_store_object(store)
    kept = find_agreement_by_prefix(store.agreements(), agreement)
    agreed = kept.agreement
    number = agreed.check_round(round)
    choose_output_format(str(output))  # or an error for a name that ends otherwise
    if str(output) == STANDARD:
        raise DiscreetError("an export appears whole or not at all; name a file")
    where = getattr(store, "path", None)
    beside = {} if where is None else {"store's log": f"{where}-wal", "store's index": f"{where}-shm"}
    refuse_same_file(output, {"store": where, **beside})
    check_output_path(output, replace=replace, fix=REPLACE_HINT)
    counts = store.outcome_counts(agreed.id, number)
    samples = total_sample_count(sampler_of_agreement(agreed), counts)
    refuse_too_few_samples(kept, number, samples)
    parts: Iterable[list[pa.Array]]
    if agreed.survey is not None:
        columns, parts = {"client": pa.int64(), "report": pa.uint64()}, _iterate_shuffled_reports(counts)
    elif agreed.blocks is not None:  # the table of reports: a row for each place, which `tally_reports` reads
        columns = {PLACE: pa.int64(), COUNTED: pa.int64()}
        parts = [[_as_arrow_column(np.arange(len(counts))), _as_arrow_column(counts)]]
    else:
        if samples > MOST_ROWS:
            raise DiscreetError(
                f"agreement {agreed.id} has {samples:,} samples, more than {MOST_ROWS:,}; estimate from the service"
            )
        coding, _ = coding_and_sampler(agreed)
        columns = {"client": pa.int64(), "sample": coding.arrow_type_of_samples}
        parts = _iterate_shuffled_samples(coding, counts, _find_cell_places_that_read_back(coding, counts))
    numbered = {} if PLACE in columns else {NUMBERED: b"rows"}
    schema = pa.schema(
        [*columns.items(), ("agreement", pa.dictionary(pa.int8(), pa.string()))],
        {METADATA: agreed.text.encode(), **numbered},
    )
    with open_table_writer(str(output), schema, choose_output_format(str(output)), replace=replace) as writer:
        for part in parts:
            same = _as_arrow_column(np.zeros(len(part[0]), dtype=np.int8))
            name = pa.DictionaryArray.from_arrays(same, _as_arrow_column([agreed.id]).cast(pa.string()))
            writer.write(pa.RecordBatch.from_arrays([*part, name], schema=schema))
            del part, same, name  # before the next part is made
    return ExportSummary(agreed, number, samples, agreed.release_kind)


def _iterate_shuffled_samples(
    coding: Coding, counts: NDArray[np.int64], place: NDArray[np.float64]
) -> Iterator[list[pa.Array]]:
    """Rows (client, sample) in random order, numbered in that order. `place`: of the point in its cell, for every outcome."""
    rng, total = np.random.default_rng(), int(counts.sum())

    def make_shuffled_rows_from_counts(taken: NDArray[np.int64], start: int) -> list[pa.Array]:
        outcomes = rng.permutation(np.repeat(np.arange(len(taken)), taken))
        clients = _as_arrow_column(np.arange(start, start + len(outcomes)))
        return [clients, outcomes_as_samples(coding, outcomes, place[outcomes])]

    for start in range(0, total, _ROWS):
        taken = rng.multivariate_hypergeometric(counts, min(_ROWS, total - start), method="marginals")
        counts = counts - taken
        yield make_shuffled_rows_from_counts(taken, start)


def _iterate_shuffled_reports(stored: NDArray[np.int64]) -> Iterator[list[pa.Array]]:
    """Rows (client, report) in random order, numbered in that order, as `discreet sample` writes them."""
    reports = reports_from_signed_integers(np.random.default_rng().permutation(stored))
    for start in range(0, len(reports), _ROWS):
        part = reports[start : start + _ROWS]
        yield [_as_arrow_column(np.arange(start, start + len(part))), _as_arrow_column(part)]


def _as_arrow_column(values: Any) -> pa.Array:
    """Values as an Arrow column; by polars, since pyarrow would load pandas."""
    return pl.Series(values).to_arrow()


def _find_cell_places_that_read_back(coding: Coding, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """For every outcome a place in its cell that is read back into it."""
    place = np.full(len(counts), _PLACES[0])
    if not coding.has_cells:
        return place
    left = np.flatnonzero(counts)
    for tried in _PLACES:
        place[left] = tried
        points = pl.DataFrame({"sample": pl.from_arrow(outcomes_as_samples(coding, left, place[left]))})
        left = left[points.select(outcome_codes_expression(coding, "sample")).to_series().to_numpy() != left]
    if len(left):
        raise DiscreetError(
            f"{len(left):,} of the agreement's cells are so narrow that no point is read back into them; estimate from the service"
        )
    return place


def close_collection(store: Store, *, agreement: str | None = None) -> tuple[StoredAgreement, str]:
    """Close a collection for good: nothing is counted in it any more.

    Args:
        store: from `open_store`.
        agreement: the id of any agreement of the collection, or 12 or more of its first digits; by default the only collection of the store.

    Returns:
        The agreement, and the day (UTC) on which its collection was closed: today, or the earlier day on which it was.

    Raises:
        DiscreetError: for an agreement that is not there, and a store of several collections of which none is named.
    """
    require_store_object(store)
    kept = store.agreements()
    found = find_agreement_by_prefix(kept, agreement)
    several = {each.collection for each in kept}
    if agreement is None and len(several) > 1:
        raise DiscreetError(
            f"the store keeps {len(several)} collections, and closing is for good; name an agreement of one: --agreement ID"
        )
    day = store.close_collection(found.agreement.id, today_in_utc())
    return replace(found, closed=day), day


@dataclass(frozen=True)
class PublishedResult:
    """What was published: how many samples, or reports, of a round under an agreement, and where."""

    agreement: Agreement
    round: int
    samples: int
    closed: str
    folder: Path
    what: str = "sample"


def publish(
    store: Store,
    folder: str | Path,
    *,
    agreement: str | None = None,
    round: int = 1,
    confidence: float = 0.95,
) -> PublishedResult:
    """Write the result of a closed collection to a new folder: page, table, picture, estimate and agreement.

    Args:
        store: from `open_store`.
        folder: a new folder; it appears whole or not at all.
        agreement: its id, or 12 or more of its first digits; by default the newest.
        round: the round to publish.
        confidence: of the intervals.

    Returns:
        What was published.

    Raises:
        DiscreetError: for a collection that is open or has too few samples, and a folder that exists or cannot be written.
    """
    require_store_object(store)
    check_path("folder", folder)
    OPEN_UNIT.check("confidence", confidence)
    kept = find_agreement_by_prefix(store.agreements(), agreement)
    agreed = kept.agreement
    number = agreed.check_round(round)
    if kept.closed is None:
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is still collected, and a result that is published must not change; close it first: discreet close"
        )
    where = getattr(store, "path", None)
    refuse_same_file(folder, {"store": where})
    if os.path.lexists(folder):
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    sampler = sampler_of_agreement(agreed)
    counts = store.outcome_counts(agreed.id, number)
    samples = total_sample_count(sampler, counts)
    refuse_too_few_samples(kept, number, samples)
    if isinstance(sampler, OwnSampler):
        inverted_population(sampler, counts=counts)  # or what `discreet estimate` says of a law that is not linear
    found = {
        **json_document_of_estimate(kept, sampler, counts, confidence),
        "round": number,
        "days": store.sample_counts_by_day(agreed.id, number),
        "closed": kept.closed,
    }
    shares, answers = (
        (share_page_html, shares_as_csv, share_picture_svg),
        (survey_page_html, survey_as_csv, survey_picture_svg),
    )
    write_page, write_table, write_picture = shares if agreed.survey is None else answers
    files = {
        "index.html": write_page(agreed, found, kept.questions),
        "estimate.csv": write_table(found),
        "picture.svg": write_picture(agreed, found),
        "estimate.json": json.dumps(found, allow_nan=False, indent=1) + "\n",
        **({} if kept.questions is None else {"questions.json": kept.questions}),
    }
    with atomic_folder(Path(folder)) as partial:
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        agreed.write(partial / "agreement.json")
        partial.chmod(0o755)
    return PublishedResult(agreed, number, samples, kept.closed, Path(folder), agreed.release_kind)
