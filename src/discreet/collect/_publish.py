"""`close_collection` and `publish`: the end of a collection, and its result as a folder that does not change any more.

A closed collection counts nothing more, so its counts, and all that is computed from them, stay as they are. `publish` writes the estimate
as the service shows it (`estimate.json`), as a table (`estimate.csv`), as a picture (`picture.svg`) and as a page (`index.html`) without
scripts, beside the agreement. Each holds every number to its last digit, the one that `discreet estimate` prints. Publishing twice gives the
same bytes.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from discreet._base.files import check_apart, error_reason
from discreet.agreement import Agreement
from discreet.collect._estimates import agreed_sampler, check_enough, count_samples, estimate_counts
from discreet.collect._published_page import has_order, page, picture, survey_page, survey_picture, survey_table, table
from discreet.collect._store import Store, StoredAgreement, check_store, choose_agreement, today
from discreet.errors import DiscreetError, Range, check_path
from discreet.estimation import inverted_population
from discreet.mechanisms import OwnSampler

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
    if isinstance(sampler, OwnSampler):
        inverted_population(sampler, counts=counts)  # or what `discreet estimate` says of a law that is not linear
    found = {
        **estimate_counts(kept, sampler, counts, confidence),
        "round": number,
        "days": store.by_day(agreed.id, number),
        "closed": kept.closed,
    }
    if agreed.survey is not None:
        files = {
            "index.html": survey_page(agreed, found, kept.questions),
            "estimate.csv": survey_table(found),
            "picture.svg": survey_picture(agreed, found),
        }
    else:
        ordered = has_order(agreed)
        files = {
            "index.html": page(agreed, found, kept.questions, ordered=ordered),
            "estimate.csv": table(found),
            "picture.svg": picture(agreed, found, ordered=ordered),
        }
    files["estimate.json"] = json.dumps(found, allow_nan=False, indent=1) + "\n"
    if kept.questions is not None:
        files["questions.json"] = kept.questions
    _write_folder(Path(folder), files, agreed)
    return PublishedResult(agreed, number, samples, kept.closed, Path(folder), agreed.release_kind)


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
