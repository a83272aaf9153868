"""`close_collection` and `publish`: the end of a collection, and its result as a folder that does not change any more.

A closed collection counts nothing more, so its counts, and all that is computed from them, stay as they are. `publish` writes the estimate
as the service shows it (`estimate.json`), as a table (`estimate.csv`), as a picture (`picture.svg`) and as a page (`index.html`) without
scripts, beside the agreement. Each holds every number to its last digit, the one that `discreet estimate` prints. Publishing twice gives the
same bytes.

`estimate_counts` hides the estimates of fewer samples than the store says: from the service, from `export` and from here.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import check_apart, error_reason
from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.collect._published_page import has_order, page, picture, survey_page, survey_picture, survey_table, table
from discreet.collect._store import Store, StoredAgreement, check_store, choose_agreement, sent_reports, today
from discreet.errors import DiscreetError, Range, check_path
from discreet.estimation import (
    Estimate,
    Population,
    ReportedPopulation,
    answer_survey,
    coding_and_sampler,
    empty_survey_record,
    notes,
    population,
    record,
    reported_population,
    survey_notes,
    survey_record,
)
from discreet.mechanisms import AnyFamily, ReportCounts, ReportSampler, Sampler
from discreet.survey import SurveySampler

AnySampler = Sampler[AnyFamily] | ReportSampler | SurveySampler
_CONFIDENCE = Range(0.0, 1.0, low_open=True, high_open=True)


@dataclass(frozen=True)
class PublishedResult:
    """What was published: how many samples, or reports, of a round under an agreement, and where."""

    agreement: Agreement
    round: int
    samples: int
    closed: str
    folder: Path
    what: str = "sample"


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
    check_store(store)
    kept = store.agreements()
    found = choose_agreement(kept, agreement)
    several = {each.collection for each in kept}
    if agreement is None and len(several) > 1:
        raise DiscreetError(
            f"the store keeps {len(several)} collections, and closing is for good; name an agreement of one: --agreement ID"
        )
    return found, store.close_collection(found.agreement.id, today())


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
    check_store(store)
    check_path("folder", folder)
    _CONFIDENCE.check("confidence", confidence)
    kept = choose_agreement(store.agreements(), agreement)
    agreed = kept.agreement
    number = agreed.check_round(round)
    if kept.closed is None:
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is still collected, and a result that is published must not change; close it first: discreet close"
        )
    where = getattr(store, "path", None)
    check_apart(folder, {"store": where})
    if os.path.lexists(folder):
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    sampler = agreed_sampler(agreed)
    counts = store.counts(agreed.id, number)
    samples = count_samples(sampler, counts)
    check_enough(kept, number, samples)
    found = {
        **estimate_counts(kept, sampler, counts, confidence),
        "round": number,
        "days": store.by_day(agreed.id, number),
        "closed": kept.closed,
    }
    if agreed.survey is not None:
        files = {
            "index.html": survey_page(agreed, found),
            "estimate.csv": survey_table(found),
            "picture.svg": survey_picture(agreed, found),
        }
    else:
        ordered = has_order(agreed)
        files = {
            "index.html": page(agreed, found, ordered=ordered),
            "estimate.csv": table(found),
            "picture.svg": picture(agreed, found, ordered=ordered),
        }
    files["estimate.json"] = json.dumps(found, allow_nan=False, indent=1) + "\n"
    _write_folder(Path(folder), files, agreed)
    return PublishedResult(agreed, number, samples, kept.closed, Path(folder), release_word(agreed))


def agreed_sampler(agreed: Agreement) -> AnySampler:
    """What released the samples or reports of an agreement."""
    if agreed.survey is not None:
        return agreed.survey_sampler()
    return agreed.report_sampler() if agreed.blocks is not None else coding_and_sampler(agreed)[1]


def release_word(agreed: Agreement) -> str:
    """What one client sends."""
    return "sample" if agreed.blocks is None and agreed.survey is None else "report"


def count_samples(sampler: AnySampler, counts: NDArray[np.int64]) -> int:
    """How many samples, or reports, were counted."""
    if isinstance(sampler, SurveySampler):
        return len(counts)
    if isinstance(sampler, ReportSampler):
        return ReportCounts.from_table(sampler, counts).reports if counts.any() else 0
    return int(counts.sum())


def check_enough(kept: StoredAgreement, round: int, samples: int) -> None:
    """Raise an error for a round without samples, or with fewer than are estimated from."""
    what = release_word(kept.agreement)
    of = f"agreement {kept.agreement.id} has"
    if not samples:
        raise DiscreetError(f"{of} no {what}s in round {round}; there is nothing to export")
    if samples < kept.least:
        raise DiscreetError(
            f"{of} {pluralise(samples, what)} in round {round}, and estimates of fewer than {kept.least:,} are hidden; "
            "wait for more, or choose another number: discreet collect --least N"
        )


def estimate_counts(
    kept: StoredAgreement, sampler: AnySampler, counts: NDArray[np.int64], confidence: float
) -> dict[str, Any]:
    """The estimate as `discreet estimate --json` prints it; without estimates where samples are missing, or too few to be shown."""
    agreed = kept.agreement
    samples = count_samples(sampler, counts)
    hidden = {"least": kept.least} if kept.least > 1 else {}
    what = f"{release_word(agreed)}s"
    said = f"estimates are shown from {kept.least:,} {what} on" if hidden else f"there are no {what} yet"
    if isinstance(sampler, SurveySampler):
        if samples and samples >= kept.least:
            answers = answer_survey(sampler, sent_reports(counts), confidence=confidence)
            return survey_record(answers, agreed, survey_notes(answers))
        return {**empty_survey_record(agreed, samples, confidence), "notes": [said], **hidden}
    if samples and samples >= kept.least:
        found: Population | ReportedPopulation
        if isinstance(sampler, ReportSampler):
            counted = ReportCounts.from_table(sampler, counts)
            found = reported_population(sampler, counts=counted, confidence=confidence)
        else:
            found = population(sampler, counts=counts, confidence=confidence)
        return record(found, agreed, notes(found, agreed), statistics=_statistics(found))
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


def _statistics(found: Population | ReportedPopulation) -> list[Estimate]:
    """Mean and median, where outcomes are numbers and the average client is identifiable."""
    if found.domain.values is None or not found.exact:
        return []
    return [found.statistic(name) for name in ("mean", "median")]


def _write_folder(folder: Path, files: Mapping[str, str], agreed: Agreement) -> None:
    """The files in a new folder, all of them or none."""
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise DiscreetError(f"folder {str(folder)!r} cannot be made: {error_reason(error)}") from None
    try:
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        agreed.write(partial / "agreement.json")
        partial.chmod(0o755)
        partial.rename(folder)
    except OSError as error:
        raise DiscreetError(f"folder {str(folder)!r} cannot be written: {error_reason(error)}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
