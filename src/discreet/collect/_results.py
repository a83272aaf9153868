"""What leaves a collection: `export`, its samples as a table; `close_collection` and `publish`, its end and its result as a folder.

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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.files import atomic_folder, check_apart, check_output_path
from discreet.agreement import Agreement
from discreet.collect._counting import sent_reports
from discreet.collect._estimates import agreed_sampler, check_enough, count_samples, estimate_counts
from discreet.collect._published_page import has_order, page, picture, survey_page, survey_picture, survey_table, table
from discreet.collect._store import Store, StoredAgreement, check_store, choose_agreement, today
from discreet.domain import Coding, outcome_codes
from discreet.errors import OPEN_UNIT, DiscreetError, check_path
from discreet.estimation import COUNTED, PLACE, coding_and_sampler, inverted_population
from discreet.mechanisms import OwnSampler
from discreet.tables import (
    METADATA,
    NUMBERED,
    REPLACE_HINT,
    STANDARD,
    format_of,
    published_batch,
    samples_of,
    writer_to,
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
    check_store(store)
    kept = choose_agreement(store.agreements(), agreement)
    agreed = kept.agreement
    number = agreed.check_round(round)
    kind = format_of(str(output))
    if str(output) == STANDARD:
        raise DiscreetError("an export appears whole or not at all; name a file")
    where = getattr(store, "path", None)
    beside = {} if where is None else {"store's log": f"{where}-wal", "store's index": f"{where}-shm"}
    check_apart(output, {"store": where, **beside})
    check_output_path(output, replace=replace, fix=REPLACE_HINT)
    counts = store.counts(agreed.id, number)
    if agreed.survey is not None:
        check_enough(kept, number, len(counts))
        _write_survey_reports(str(output), agreed, counts, replace=replace)
        return ExportSummary(agreed, number, len(counts), "report")
    if agreed.blocks is not None:
        reports = count_samples(agreed.report_sampler(), counts)
        check_enough(kept, number, reports)
        _write_table(str(output), agreed, counts, replace=replace)
        return ExportSummary(agreed, number, reports, "report")
    check_enough(kept, number, int(counts.sum()))
    coding, _ = coding_and_sampler(agreed)
    total = int(counts.sum())
    if total > MOST_ROWS:
        raise DiscreetError(
            f"agreement {agreed.id} has {total:,} samples, more than {MOST_ROWS:,}; estimate from the service"
        )
    place = _places_inside_cells(coding, counts)
    types = (pa.int64(), coding.sample_type, pa.dictionary(pa.int8(), pa.string()))
    schema = pa.schema(
        list(zip(("client", "sample", "agreement"), types, strict=True)),
        {METADATA: agreed.text.encode(), NUMBERED: b"rows"},
    )
    rng = np.random.default_rng()
    with writer_to(str(output), schema, kind, replace=replace) as writer:
        for start in range(0, total, _ROWS):
            taken = rng.multivariate_hypergeometric(counts, min(_ROWS, total - start), method="marginals")
            counts = counts - taken
            outcomes = rng.permutation(np.repeat(np.arange(len(taken)), taken))
            clients = pl.Series(np.arange(start, start + len(outcomes))).to_arrow()
            batch = published_batch(clients, coding, outcomes, place[outcomes], agreed.id)
            writer.write(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    return ExportSummary(agreed, number, total)


def _write_survey_reports(output: str, agreed: Agreement, stored: NDArray[np.int64], *, replace: bool) -> None:
    """The reports of a survey in random order, numbered in that order, as `discreet sample` writes them."""
    schema = pa.schema(
        [("client", pa.int64()), ("report", pa.uint64()), ("agreement", pa.dictionary(pa.int8(), pa.string()))],
        {METADATA: agreed.text.encode(), NUMBERED: b"rows"},
    )
    reports = sent_reports(np.random.default_rng().permutation(stored))
    with writer_to(output, schema, format_of(output), replace=replace) as writer:
        for start in range(0, len(reports), _ROWS):
            part = reports[start : start + _ROWS]
            name = pa.DictionaryArray.from_arrays(np.zeros(len(part), dtype=np.int8), pa.array([agreed.id]))
            columns = [pa.array(np.arange(start, start + len(part))), pa.array(part), name]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))


def _write_table(output: str, agreed: Agreement, counts: NDArray[np.int64], *, replace: bool) -> None:
    """The table of reports: a row for each place, which `tally_reports` reads."""
    schema = pa.schema(
        [(PLACE, pa.int64()), (COUNTED, pa.int64()), ("agreement", pa.dictionary(pa.int8(), pa.string()))],
        {METADATA: agreed.text.encode()},
    )
    name = pa.DictionaryArray.from_arrays(np.zeros(len(counts), dtype=np.int8), pa.array([agreed.id]))
    with writer_to(output, schema, format_of(output), replace=replace) as writer:
        columns = [pa.array(np.arange(len(counts))), pa.array(counts), name]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))


def _places_inside_cells(coding: Coding, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """For every outcome a place in its cell that is read back into it."""
    place = np.full(len(counts), _PLACES[0])
    if not coding.has_cells:
        return place
    left = np.flatnonzero(counts)
    for tried in _PLACES:
        place[left] = tried
        points = pl.DataFrame({"sample": pl.from_arrow(samples_of(coding, left, place[left]))})
        left = left[points.select(outcome_codes(coding, "sample")).to_series().to_numpy() != left]
    if len(left):
        raise DiscreetError(
            f"{len(left):,} of the agreement's cells are so narrow that no point is read back into them; estimate from the service"
        )
    return place


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
    OPEN_UNIT.check("confidence", confidence)
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
    with atomic_folder(folder) as partial:
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        agreed.write(partial / "agreement.json")
        partial.chmod(0o755)
