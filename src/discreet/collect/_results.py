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


def sampler_of_agreement(agreement: Agreement) -> AnySampler:
    """What released the samples or reports of an agreement."""
    if agreement.survey is not None:
        return agreement.survey_sampler()
    return agreement.report_sampler() if agreement.blocks is not None else coding_and_sampler(agreement)[1]


def total_sample_count(sampler: AnySampler, counts: Counts) -> int:
    """How many samples, or reports, were counted."""
    if isinstance(sampler, SurveySampler):
        return len(counts)
    if isinstance(sampler, ReportSampler):
        return ReportCounts.from_table(sampler, counts).reports if counts.any() else 0
    return int(counts.sum())


def refuse_too_few_samples(stored_agreement: StoredAgreement, round: int, samples: int, *, action: str) -> None:
    """Raise an error for a round without samples, or with fewer than are estimated from. `action`: the verb of what was asked for."""
    noun = stored_agreement.agreement.release_kind
    subject = f"agreement {stored_agreement.agreement.id} has"
    if not samples:
        raise DiscreetError(f"{subject} no {noun}s in round {round}; there is nothing to {action}")
    if samples < stored_agreement.least:
        raise DiscreetError(
            f"{subject} {pluralise(samples, noun)} in round {round}, and estimates of fewer than {stored_agreement.least:,} are hidden; "
            "wait for more, or choose another number: discreet collect --least N"
        )


def json_document_of_hidden_estimate(
    stored_agreement: StoredAgreement, sampler: AnySampler, days: list[tuple[str, int]], round: int
) -> dict[str, Any]:
    """What is said of a round whose estimates are not shown: how many samples came."""
    empty = json_document_of_estimate(stored_agreement, sampler, np.zeros(0, dtype=np.int64), 0.95)
    noun = "clients" if isinstance(sampler, SurveySampler) else f"{stored_agreement.agreement.release_kind}s"
    fields = {"hidden": stored_agreement.shown, "notes": [], "round": round, "days": days}
    return {
        **empty,
        noun: sum(number for _, number in days),
        **fields,
        **({"closed": stored_agreement.closed} if stored_agreement.closed else {}),
    }


def json_document_of_estimate(
    stored_agreement: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float
) -> dict[str, Any]:
    """The estimate as `discreet estimate --json` prints it; without estimates where samples are missing, or too few to be shown."""
    agreement = stored_agreement.agreement
    samples = total_sample_count(sampler, counts)
    least_field = {"least": stored_agreement.least} if stored_agreement.least > 1 else {}
    noun = f"{agreement.release_kind}s"
    note = (
        f"estimates are shown from {stored_agreement.least:,} {noun} on" if least_field else f"there are no {noun} yet"
    )
    if isinstance(sampler, SurveySampler):
        if stored_agreement.has_enough_samples_to_show(samples):
            answers = answer_survey(sampler, reports_from_signed_integers(counts), confidence=confidence)
            return json_record_of_survey_answers(answers, agreement, notes_on_survey_answers(answers))
        return {**json_record_of_unanswered_survey(agreement, samples, confidence), "notes": [note], **least_field}
    if stored_agreement.has_enough_samples_to_show(samples):
        if not isinstance(sampler, OwnSampler):
            estimate = _estimate_population(sampler, counts, confidence)
            return json_record_of_estimate(
                estimate,
                agreement,
                notes_on_estimate(estimate, agreement),
                statistics=_estimate_mean_and_median(estimate),
            )
        try:
            inverted_estimate = inverted_population(sampler, counts=counts, confidence=confidence)
            return json_record_of_inverted_estimate(inverted_estimate, agreement, [])
        except DiscreetError as error:  # the same for all samples: the law is not linear, or its matrix has no inverse
            note = str(error)
    return {
        noun: samples,
        "agreement": agreement.id,
        "mechanism": agreement.mechanism,
        "epsilon": agreement.epsilon,
        "confidence": confidence,
        "shares": [],
        "statistics": [],
        "notes": [note],
        **least_field,
    }


def _estimate_mean_and_median(estimate: Population | ReportedPopulation) -> list[Estimate]:
    """Mean and median, where outcomes are numbers and the average client is identifiable."""
    if estimate.domain.values is None or not estimate.exact:
        return []
    return [estimate.statistic(name) for name in ("mean", "median")]


def _estimate_population(
    sampler: Sampler[AnyFamily] | ReportSampler, counts: Counts, confidence: float
) -> Population | ReportedPopulation:
    if isinstance(sampler, ReportSampler):
        return reported_population(sampler, counts=ReportCounts.from_table(sampler, counts), confidence=confidence)
    return population(sampler, counts=counts, confidence=confidence)


def group_names(agreements: Sequence[Agreement]) -> list[str]:
    """What the group of each agreement is called: its purpose, with digits of its id where that is missing or not its own."""
    purposes = [agreement.purpose for agreement in agreements]
    return [
        agreement.purpose
        if agreement.purpose and purposes.count(agreement.purpose) == 1
        else f"{agreement.purpose} {agreement.id[:12]}".strip()
        for agreement in agreements
    ]


def json_document_of_group_estimates(
    groups: Sequence[StoredAgreement], sampler: AnySampler, counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The estimates of groups as `discreet estimate --by --json` prints them; groups with too few samples are left out, and counted."""
    agreement, noun = groups[0].agreement, f"{groups[0].agreement.release_kind}s"
    if isinstance(sampler, OwnSampler):
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": [OWN_ALONE]}
    names = group_names([group.agreement for group in groups])
    sample_counts = [total_sample_count(sampler, group_counts) for group_counts in counts]
    shown_indices = [
        index for index, samples in enumerate(sample_counts) if groups[index].has_enough_samples_to_show(samples)
    ]
    notes = []
    if len(shown_indices) < len(groups):
        fewest = max(1, groups[0].least)
        hidden_groups_text = pluralise(len(groups) - len(shown_indices), "group")
        notes.append(
            f"{hidden_groups_text} of {len(groups)} with fewer than {fewest:,} {noun if fewest > 1 else noun[:-1]} not shown"
        )
    ids = {names[index]: groups[index].agreement.id for index in range(len(groups))}
    fields = {"agreements": ids, "samples_of_groups": dict(zip(names, sample_counts, strict=True))}
    if isinstance(sampler, SurveySampler):
        reports = {names[index]: reports_from_signed_integers(counts[index]) for index in shown_indices}
        answers = answer_groups(sampler, reports, confidence=confidence) if reports else {}
        return {
            **json_record_of_survey_groups(answers, agreement, notes, by=BY_AGREEMENT),
            "confidence": confidence,
            **fields,
        }
    if not shown_indices:
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": notes, **fields}
    shown_counts: Mapping[str, Any] = {
        names[index]: ReportCounts.from_table(sampler, counts[index])
        if isinstance(sampler, ReportSampler)
        else counts[index]
        for index in shown_indices
    }
    estimates = estimate_groups(sampler, counts=shown_counts, confidence=confidence)
    return {**json_record_of_group_estimates(estimates, agreement, notes, by=BY_AGREEMENT, statistics={}), **fields}


def json_document_of_stages_estimate(
    stages: Sequence[StoredAgreement], samplers: Sequence[AnySampler], counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The stages of a collection together as `discreet estimate IN IN --json` prints them; empty while too few have come.

    A stage whose own estimate is hidden is left out: together with the estimates of the others it could be computed. Notes number all
    stages, those left out too.
    """
    stage_estimates = {
        number: _estimate_population(sampler, stage_counts, confidence)
        for number, (stored_agreement, sampler, stage_counts) in enumerate(
            zip(stages, samplers, counts, strict=True), start=1
        )
        if not isinstance(sampler, SurveySampler)
        and stored_agreement.has_enough_samples_to_show(total_sample_count(sampler, stage_counts))
    }
    hidden_numbers = [str(number) for number in range(1, len(stages) + 1) if number not in stage_estimates]
    plural = "s" * (len(hidden_numbers) > 1)
    notes = (
        [f"stage{plural} {', '.join(hidden_numbers)} of {len(stages)} with too few samples left out"]
        if hidden_numbers
        else []
    )
    if not stage_estimates:
        return {"clients": 0, "confidence": confidence, "stages": [], "shares": [], "notes": notes}
    pooled_estimate = pooled_population(list(stage_estimates.values()))
    return json_record_of_pooled_estimate(
        pooled_estimate,
        {number: stages[number - 1].agreement for number in stage_estimates},
        [*notes, *pooled_estimate.doubts_with_stage_numbers(list(stage_estimates))],
    )


def json_document_of_estimated_change(
    stored_agreement: StoredAgreement,
    sampler: AnySampler,
    rounds: tuple[int, int],
    counts: Sequence[Counts],
    confidence: float,
) -> dict[str, Any]:
    """The change from one round to another as `discreet estimate --compare --json` prints it; empty where one has too few samples."""
    agreement, fields = stored_agreement.agreement, {"rounds": list(rounds)}
    if isinstance(sampler, OwnSampler):
        return {"confidence": confidence, "changes": [], "notes": [OWN_ALONE], **fields}
    for number, round_counts in zip(rounds, counts, strict=True):
        if not stored_agreement.has_enough_samples_to_show(total_sample_count(sampler, round_counts)):
            note = f"round {number} has too few {agreement.release_kind}s, so no change is shown"
            return {"confidence": confidence, "changes": [], "notes": [note], **fields}
    if isinstance(sampler, SurveySampler):
        earlier, later = map(reports_from_signed_integers, counts)
        differences = survey_change(sampler, earlier, sampler, later, confidence=confidence)
        return {**json_record_of_survey_change(differences, (agreement, agreement), [CHANGE_NOTE]), **fields}
    first, second = (_estimate_population(sampler, round_counts, confidence) for round_counts in counts)
    return {**json_record_of_change(change(first, second), (agreement, agreement), [CHANGE_NOTE]), **fields}


def json_document_of_shares_within_groups(
    stored_agreement: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float, by: str
) -> dict[str, Any]:
    """Shares within the private groups of a survey's column as `discreet estimate --by --json` prints them."""
    samples = total_sample_count(sampler, counts)
    if not isinstance(sampler, SurveySampler) or not stored_agreement.has_enough_samples_to_show(samples):
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
    stored_agreement = find_agreement_by_prefix(store.agreements(), agreement)
    chosen_agreement = stored_agreement.agreement
    number = chosen_agreement.check_round(round)
    choose_output_format(str(output))  # or an error for a name that ends otherwise
    if str(output) == STANDARD:
        raise DiscreetError("an export appears whole or not at all; name a file")
    store_path = getattr(store, "path", None)
    companions = (
        {} if store_path is None else {"store's log": f"{store_path}-wal", "store's index": f"{store_path}-shm"}
    )
    refuse_same_file(output, {"store": store_path, **companions})
    check_output_path(output, replace=replace, fix=REPLACE_HINT)
    counts = store.outcome_counts(chosen_agreement.id, number)
    samples = total_sample_count(sampler_of_agreement(chosen_agreement), counts)
    refuse_too_few_samples(stored_agreement, number, samples, action="export")
    parts: Iterable[list[pa.Array]]
    if chosen_agreement.survey is not None:
        columns, parts = {"client": pa.int64(), "report": pa.uint64()}, _iterate_shuffled_reports(counts)
    elif chosen_agreement.blocks is not None:  # the table of reports: a row for each place, which `tally_reports` reads
        columns = {PLACE: pa.int64(), COUNTED: pa.int64()}
        parts = [[_as_arrow_column(np.arange(len(counts))), _as_arrow_column(counts)]]
    else:
        if samples > MOST_ROWS:
            raise DiscreetError(
                f"agreement {chosen_agreement.id} has {samples:,} samples, more than {MOST_ROWS:,}; estimate from the service"
            )
        coding, _ = coding_and_sampler(chosen_agreement)
        columns = {"client": pa.int64(), "sample": coding.arrow_type_of_samples}
        parts = _iterate_shuffled_samples(coding, counts, _find_round_trip_cell_positions(coding, counts))
    row_metadata = {} if PLACE in columns else {NUMBERED: b"rows"}
    schema = pa.schema(
        [*columns.items(), ("agreement", pa.dictionary(pa.int8(), pa.string()))],
        {METADATA: chosen_agreement.text.encode(), **row_metadata},
    )
    with open_table_writer(str(output), schema, choose_output_format(str(output)), replace=replace) as writer:
        for part in parts:
            zeros = _as_arrow_column(np.zeros(len(part[0]), dtype=np.int8))
            agreement_column = pa.DictionaryArray.from_arrays(
                zeros, _as_arrow_column([chosen_agreement.id]).cast(pa.string())
            )
            writer.write(pa.RecordBatch.from_arrays([*part, agreement_column], schema=schema))
            del part, zeros, agreement_column  # before the next part is made
    return ExportSummary(chosen_agreement, number, samples, chosen_agreement.release_kind)


def _iterate_shuffled_samples(
    coding: Coding, counts: NDArray[np.int64], positions: NDArray[np.float64]
) -> Iterator[list[pa.Array]]:
    """Rows (client, sample) in random order, numbered in that order. `positions`: of the point in its cell, for every outcome."""
    rng, total = np.random.default_rng(), int(counts.sum())

    def make_shuffled_rows_from_counts(batch_counts: NDArray[np.int64], start: int) -> list[pa.Array]:
        outcomes = rng.permutation(np.repeat(np.arange(len(batch_counts)), batch_counts))
        clients = _as_arrow_column(np.arange(start, start + len(outcomes)))
        return [clients, outcomes_as_samples(coding, outcomes, positions[outcomes])]

    for start in range(0, total, _ROWS):
        batch_counts = rng.multivariate_hypergeometric(counts, min(_ROWS, total - start), method="marginals")
        counts = counts - batch_counts
        yield make_shuffled_rows_from_counts(batch_counts, start)


def _iterate_shuffled_reports(integers: NDArray[np.int64]) -> Iterator[list[pa.Array]]:
    """Rows (client, report) in random order, numbered in that order, as `discreet sample` writes them."""
    reports = reports_from_signed_integers(np.random.default_rng().permutation(integers))
    for start in range(0, len(reports), _ROWS):
        part = reports[start : start + _ROWS]
        yield [_as_arrow_column(np.arange(start, start + len(part))), _as_arrow_column(part)]


def _as_arrow_column(values: Any) -> pa.Array:
    """Values as an Arrow column; by polars, since pyarrow would load pandas."""
    return pl.Series(values).to_arrow()


def _find_round_trip_cell_positions(coding: Coding, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """For every outcome a place in its cell that is read back into it."""
    positions = np.full(len(counts), _PLACES[0])
    if not coding.has_cells:
        return positions
    unread = np.flatnonzero(counts)
    for position in _PLACES:
        positions[unread] = position
        points = pl.DataFrame({"sample": pl.from_arrow(outcomes_as_samples(coding, unread, positions[unread]))})
        unread = unread[points.select(outcome_codes_expression(coding, "sample")).to_series().to_numpy() != unread]
    if len(unread):
        raise DiscreetError(
            f"{len(unread):,} of the agreement's cells are so narrow that no point is read back into them; estimate from the service"
        )
    return positions


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
    agreements = store.agreements()
    stored_agreement = find_agreement_by_prefix(agreements, agreement)
    collections = {member.collection for member in agreements}
    if agreement is None and len(collections) > 1:
        raise DiscreetError(
            f"the store keeps {len(collections)} collections, and closing is for good; name an agreement of one: --agreement ID"
        )
    day = store.close_collection(stored_agreement.agreement.id, today_in_utc())
    return replace(stored_agreement, closed=day), day


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
    stored_agreement = find_agreement_by_prefix(store.agreements(), agreement)
    chosen_agreement = stored_agreement.agreement
    number = chosen_agreement.check_round(round)
    if stored_agreement.closed is None:
        raise DiscreetError(
            f"agreement {chosen_agreement.id[:12]} is still collected, and a result that is published must not change; close "
            "it first: discreet close"
        )
    store_path = getattr(store, "path", None)
    refuse_same_file(folder, {"store": store_path})
    if os.path.lexists(folder):
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    sampler = sampler_of_agreement(chosen_agreement)
    counts = store.outcome_counts(chosen_agreement.id, number)
    samples = total_sample_count(sampler, counts)
    refuse_too_few_samples(stored_agreement, number, samples, action="publish")
    if isinstance(sampler, OwnSampler):
        inverted_population(sampler, counts=counts)  # or what `discreet estimate` says of a law that is not linear
    estimate = {
        **json_document_of_estimate(stored_agreement, sampler, counts, confidence),
        "round": number,
        "days": store.sample_counts_by_day(chosen_agreement.id, number),
        "closed": stored_agreement.closed,
    }
    share_writers, survey_writers = (
        (share_page_html, shares_as_csv, share_picture_svg),
        (survey_page_html, survey_as_csv, survey_picture_svg),
    )
    write_page, write_table, write_picture = share_writers if chosen_agreement.survey is None else survey_writers
    files = {
        "index.html": write_page(chosen_agreement, estimate, stored_agreement.questions),
        "estimate.csv": write_table(estimate),
        "picture.svg": write_picture(chosen_agreement, estimate),
        "estimate.json": json.dumps(estimate, allow_nan=False, indent=1) + "\n",
        **({} if stored_agreement.questions is None else {"questions.json": stored_agreement.questions}),
    }
    with atomic_folder(Path(folder)) as partial:
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        chosen_agreement.write(partial / "agreement.json")
        partial.chmod(0o755)
    return PublishedResult(
        chosen_agreement, number, samples, stored_agreement.closed, Path(folder), chosen_agreement.release_kind
    )
