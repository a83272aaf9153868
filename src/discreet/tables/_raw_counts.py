"""Tables read without a release: outcome counts of public examples, their laws, and a dry run that lists values outside the domain.

NOTHING HERE IS PRIVATE. `outcome_counts_by_client`, `average_law_of_clients` and `client_laws` are for clients who are not protected: reading
the clients who are then served breaks their guarantee. `dry_run` draws, charges and writes nothing. It shows clients' own values to somebody
who may read the table anyway, to correct the records or the spelling of the domain. A domain made from them is inferred from the data and
reveals what clients hold.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from discreet.domain import (
    FIRST_MARK,
    MARK_ABOVE,
    MARK_BELOW,
    MARK_MISSING,
    MARK_NAN,
    MARK_OUTSIDE,
    MARK_UNREADABLE,
    Coding,
    MisfitCounts,
    resolve_and_count_misfit_marks,
)
from discreet.errors import DiscreetError
from discreet.tables._columns import Columns, ValueColumn, count_names_in_several_forms
from discreet.tables._reading import Reading
from discreet.tables._request import Request, RequestTerms
from discreet.tables._sources import Source, source_of_table

_EVERYBODY = "\0everybody"  # a column of ours: no header can hold it
_LARGEST_TABLE = 10**8  # clients times outcomes


def average_law_of_clients(
    source: Source, coding: Coding, *, value: str, client: str | None = None
) -> NDArray[np.float64]:
    """The true average client of a table of raw records, to compare an estimate with; without `client`, of all records."""
    counts = outcome_counts_by_client(source, _make_reading_of_raw_records(source, coding, value, client))
    return np.asarray((1.0 / counts.sum(axis=1)) @ counts / counts.shape[0])


def client_laws(source: Source, coding: Coding, *, value: str, client: str) -> NDArray[np.float64]:
    """The law of every client of a table of raw records, one in each row: for examples that fit into memory."""
    counts = outcome_counts_by_client(source, _make_reading_of_raw_records(source, coding, value, client))
    clients, size = counts.shape
    if clients * size > _LARGEST_TABLE:
        raise DiscreetError(f"{clients:,} clients on {size:,} outcomes are too many for an example; give fewer")
    return np.asarray(counts.toarray() / counts.sum(axis=1)[:, None])


def _make_reading_of_raw_records(source: Source, coding: Coding, value: str, client: str | None) -> Reading:
    """How raw records are read; without a client all rows are one's."""
    columns = Columns(client=_EVERYBODY if client is None else client, value=value)
    schema = pl.Schema({**source.schema, **({_EVERYBODY: pl.Int64()} if client is None else {})})
    return Reading.for_table_columns(
        columns, coding, schema, untyped=source.untyped_columns, where=source.name, agreed=True
    )


def outcome_counts_by_client(source: Source, reading: Reading) -> Any:
    """The count or weight of each outcome for each client: a sparse matrix (clients, outcomes)."""
    from scipy import sparse

    counting = reading.columns.count_or_weight_column is not None
    much = pl.col("count").cast(pl.Float64).sum() if counting else pl.len().cast(pl.Float64)
    bad = (~(pl.col("count") >= 0)).fill_null(True).any() if counting else pl.lit(False)

    everybody = reading.columns.client == _EVERYBODY
    client = None if everybody else reading.columns.client

    def count_outcomes_of_frame(frame: Any) -> Any:
        if everybody:
            frame = frame.with_columns(pl.lit(0).alias(_EVERYBODY))
        parts = (much.alias("much"), pl.len().alias("rows"), bad.alias("bad"))
        return reading.prepare_rows(frame).group_by("client", "outcome").agg(*parts)

    needed = [name for name in reading.columns.all_column_names if name != _EVERYBODY]
    parts = list(
        source.read_prepared_frames(
            count_outcomes_of_frame, needed, client=client, numbers=reading.columns_that_may_mix_integers_and_floats
        )
    )
    held = pl.concat(parts) if parts else pl.DataFrame()
    if not held.height:
        raise DiscreetError(f"{source.name} holds no records; a client has one at least")
    if held["client"].null_count():
        unnamed = int(held.filter(pl.col("client").is_null())["rows"].sum())
        raise DiscreetError(reading.rows_without_client_message(unnamed, int(held["rows"].sum()), of=source.name))
    if held["bad"].any():
        raise DiscreetError(
            f"column {reading.columns.count_or_weight_column!r} of {source.name} holds numbers that are not at least 0; correct them"
        )
    marks = held["outcome"].to_numpy()
    misfits = _count_values_without_outcome_by_reason(marks, held["rows"].to_numpy())
    shown = reading.example_values_outside([misfits], source.example_values)
    reading.refuse_missing_or_outside_values([misfits], int(held["rows"].sum()), shown)
    coding = reading.values[0].coding
    outcomes, _ = resolve_and_count_misfit_marks(coding, marks)
    amounts = held["much"].to_numpy()
    if not np.isfinite(amounts).all():
        raise DiscreetError(
            f"column {reading.columns.count_or_weight_column!r} of {source.name} adds up to more than a float holds; scale it"
        )
    kept = (outcomes < FIRST_MARK) & (amounts > 0.0)
    if not kept.any():
        raise DiscreetError(f"{source.name} holds no records in the domain; a client has one at least")
    rows = held["client"].filter(pl.Series(kept)).rank("dense").to_numpy().astype(np.int64) - 1
    entries = (amounts[kept], (rows, outcomes[kept].astype(np.int64)))
    return sparse.csr_array(entries, shape=(int(rows.max()) + 1, coding.size))


def _count_values_without_outcome_by_reason(marks: Any, rows: Any) -> MisfitCounts:
    """The number of rows without an outcome of their own, by reason."""

    def number_of_rows_marked(*which: np.uint32) -> int:
        return int(rows[np.isin(marks, which)].sum())

    return MisfitCounts(
        number_of_rows_marked(MARK_MISSING),
        number_of_rows_marked(MARK_NAN),
        number_of_rows_marked(MARK_UNREADABLE),
        number_of_rows_marked(MARK_OUTSIDE, MARK_BELOW, MARK_ABOVE),
    )


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The values of a table outside its domain. THIS IS PRIVATE: the values are clients' own.

    Attributes:
        rows: the number of rows.
        nameless: rows without a client (null, or an integer beyond 64 bits), an error in a release.
        nulls: rows without a value (null, or an empty list).
        not_numbers: rows whose value is NaN.
        outside: {value: number of rows} for every value outside the domain, most frequent first.
        names_in_several_forms: names of clients that differ from another only in case, in spaces, or as '1' and '1.0' do. A release gives
            each of them a sample.
    """

    rows: int
    nameless: int
    nulls: int
    not_numbers: int
    outside: dict[Any, int]
    names_in_several_forms: int = 0


def dry_run(table: Any, **terms: Unpack[RequestTerms]) -> DryRun:
    """Every value of a table outside the domain, with its number of rows. The answer is private.

    Args:
        table: as in `sample`.
        terms: the keywords of `Request`.

    Returns:
        The counts, as a `DryRun`.

    Raises:
        DiscreetError: for an unreadable table or wrong terms.
    """
    return count_values_outside_domain(source_of_table(table), Request(**terms))


def count_values_outside_domain(source: Source, request: Request) -> DryRun:
    """Every value outside the domain of a request, with its number of rows; of a survey those of any column, with the column in front."""
    reading = request.make_reading(source.schema, untyped=source.untyped_columns, where=source.name)
    rows = nameless = nulls = not_numbers = alike = 0
    outside: dict[Any, int] = {}
    for value in reading.values:
        counts = _count_missing_and_outside_values_of_source(source, reading, value)
        rows, nameless = int(counts["rows"].sum()), int(counts["nameless"].sum())
        alike = count_names_in_several_forms(counts["names"].explode().drop_nulls().unique())
        nulls += _number_of_rows_with_mark(counts, MARK_MISSING)
        not_numbers += _number_of_rows_with_mark(counts, MARK_NAN)
        absent = pl.col("mark").is_null() | pl.col("mark").is_in([int(MARK_MISSING), int(MARK_NAN)])
        others = counts.filter(~absent).group_by("value").agg(pl.col("rows").sum())
        for found, number in others.sort(["rows", "value"], descending=[True, False]).iter_rows():
            outside[f"{value.name}: {found}" if value.of_survey else found] = number
    return DryRun(
        rows=rows,
        nameless=nameless,
        nulls=nulls,
        not_numbers=not_numbers,
        outside=outside,
        names_in_several_forms=alike,
    )


def _count_missing_and_outside_values_of_source(source: Source, reading: Reading, value: ValueColumn) -> pl.DataFrame:
    """As `Reading.count_missing_and_outside_values`, of the whole source."""
    used = reading.columns
    count = partial(reading.count_missing_and_outside_values, value=value)
    parts = list(
        source.read_prepared_frames(
            count, used.all_column_names, client=used.client, numbers=reading.columns_that_may_mix_integers_and_floats
        )
    )
    if not parts:
        numbers = {"mark": pl.UInt32, "value": pl.String, "rows": pl.UInt32, "nameless": pl.UInt32}
        return pl.DataFrame(schema={**numbers, "names": pl.List(pl.String)})
    sums = pl.col("rows", "nameless").sum()
    return pl.concat(parts).group_by("mark", "value").agg(sums, pl.col("names").explode().unique())


def _number_of_rows_with_mark(counts: pl.DataFrame, mark: np.uint32) -> int:
    return int(counts.filter(pl.col("mark") == int(mark))["rows"].sum())
