"""Public examples: a table of (client, value) rows whose clients are not protected, as counts for each client.

Nothing here is private. Whoever reads the records of clients that are then served breaks their guarantee.
"""

from typing import Any

import numpy as np
import polars as pl

from discreet._tables._marks import (
    FIRST_MARK,
    MARK_ABOVE,
    MARK_BELOW,
    MARK_MISSING,
    MARK_NAN,
    MARK_OUTSIDE,
    MARK_UNREADABLE,
    MisfitCounts,
)
from discreet._tables._records import Reading, resolve_marks
from discreet._tables._sources import Source
from discreet.errors import DiscreetError


def example_counts(source: Source, reading: Reading) -> Any:
    """How often, or how much, each client holds each outcome: a sparse matrix (clients, outcomes)."""
    from scipy import sparse

    counting = reading.columns.counts is not None
    much = pl.col("count").cast(pl.Float64).sum() if counting else pl.len().cast(pl.Float64)
    bad = (~(pl.col("count") >= 0)).fill_null(True).any() if counting else pl.lit(False)

    def count_frame(frame: Any) -> Any:
        parts = (much.alias("much"), pl.len().alias("rows"), bad.alias("bad"))
        return reading.prepare_rows(frame).group_by("client", "outcome").agg(*parts)

    parts = list(source.frames(count_frame, reading.columns.names, client=reading.columns.client))
    held = pl.concat(parts) if parts else pl.DataFrame()
    if not held.height:
        raise DiscreetError(f"{source.name} holds no records; an example is a client with one at least")
    if held["client"].null_count():
        unnamed = int(held.filter(pl.col("client").is_null())["rows"].sum())
        raise DiscreetError(reading.without_client_message(unnamed, int(held["rows"].sum()), of=source.name))
    if held["bad"].any():
        raise DiscreetError(
            f"column {reading.columns.counts!r} of {source.name} holds numbers that are not at least 0; correct them"
        )
    marks = held["outcome"].to_numpy()
    reading.refuse(_misfit_counts(marks, held["rows"].to_numpy()), int(held["rows"].sum()), source.examples)
    size = reading.coding.size
    outcomes, _ = resolve_marks(reading.coding, marks)
    amounts = held["much"].to_numpy()
    if not np.isfinite(amounts).all():
        raise DiscreetError(
            f"column {reading.columns.counts!r} of {source.name} adds up to more than a float holds; scale it"
        )
    kept = (outcomes < FIRST_MARK) & (amounts > 0.0)
    if not kept.any():
        raise DiscreetError(f"{source.name} holds no records in the domain; an example is a client with one at least")
    rows = held["client"].filter(pl.Series(kept)).rank("dense").to_numpy().astype(np.int64) - 1
    entries = (amounts[kept], (rows, outcomes[kept].astype(np.int64)))
    return sparse.csr_array(entries, shape=(int(rows.max()) + 1, size))


def _misfit_counts(marks: Any, rows: Any) -> MisfitCounts:
    """How many rows have no outcome of their own, and why."""

    def many(*which: np.uint32) -> int:
        return int(rows[np.isin(marks, which)].sum())

    return MisfitCounts(
        many(MARK_MISSING), many(MARK_NAN), many(MARK_UNREADABLE), many(MARK_OUTSIDE, MARK_BELOW, MARK_ABOVE)
    )
