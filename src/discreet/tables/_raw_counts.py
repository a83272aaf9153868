"""Tables read without a release: outcome counts of public examples, their laws, and a dry run that lists values outside the domain.

NOTHING HERE IS PRIVATE. `outcome_counts_by_client`, `average_law_of_clients` and `client_laws` are for clients who are not protected: reading
the clients who are then served breaks their guarantee. `dry_run` draws, charges and writes nothing. It shows clients' own values to somebody
who may read the table anyway, to correct the records or the spelling of the domain. A domain made from them is inferred from the data and
reveals what clients hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
    text_without_invisible_differences,
)
from discreet.errors import DiscreetError
from discreet.tables._columns import Columns, NamesInSeveralForms
from discreet.tables._reading import Reading, number_of_null_and_invalid_amounts, refuse_null_or_invalid_amounts
from discreet.tables._request import Request, RequestTerms
from discreet.tables._sources import Source, source_of_table

_EVERYBODY = "\0everybody"  # a column of ours: no header can hold it
_LARGEST_TABLE = 10**8  # clients times outcomes
_VALUES_TO_MERGE = 1 << 20


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
    total = pl.col("count").cast(pl.Float64).sum() if counting else pl.len().cast(pl.Float64)
    nulls, invalid = number_of_null_and_invalid_amounts(pl.col("count")) if counting else (pl.lit(0), pl.lit(0))

    everybody = reading.columns.client == _EVERYBODY
    client = None if everybody else reading.columns.client

    def count_outcomes_of_frame(frame: Any) -> Any:
        if everybody:
            frame = frame.with_columns(pl.lit(0).alias(_EVERYBODY))
        parts = (
            total.alias("much"),
            pl.len().alias("rows"),
            nulls.alias("null amounts"),
            invalid.alias("invalid amounts"),
        )
        return reading.prepare_rows(frame).group_by("client", "outcome").agg(*parts)

    column_names = [name for name in reading.columns.all_column_names if name != _EVERYBODY]
    parts = list(
        source.read_prepared_frames(
            count_outcomes_of_frame,
            column_names,
            client=client,
            numbers=reading.columns_that_may_mix_integers_and_floats,
        )
    )
    sums = pl.concat(parts) if parts else pl.DataFrame()
    if not sums.height:
        raise DiscreetError(f"{source.name} holds no records; a client has one at least")
    row_count = int(sums["rows"].sum())
    if sums["client"].null_count():
        nameless = int(sums.filter(pl.col("client").is_null())["rows"].sum())
        raise DiscreetError(reading.rows_without_client_message(nameless, row_count, of=source.name))
    null_amounts, invalid_amounts = (int(sums[name].sum()) for name in ("null amounts", "invalid amounts"))
    refuse_null_or_invalid_amounts(reading.columns, null_amounts, invalid_amounts, row_count, of=source.name)
    marks = sums["outcome"].to_numpy()
    misfits = _count_values_without_outcome_by_reason(marks, sums["rows"].to_numpy())
    examples = reading.example_values_outside([misfits], source.example_values)
    reading.refuse_missing_or_outside_values([misfits], row_count, examples)
    coding = reading.values[0].coding
    outcomes, _ = resolve_and_count_misfit_marks(coding, marks)
    amounts = sums["much"].to_numpy()
    if not np.isfinite(amounts).all():
        raise DiscreetError(
            f"column {reading.columns.count_or_weight_column!r} of {source.name} adds up to more than a float holds; scale it"
        )
    mask = (outcomes < FIRST_MARK) & (amounts > 0.0)
    if not mask.any():
        raise DiscreetError(f"{source.name} holds no records in the domain; a client has one at least")
    rows = sums["client"].filter(pl.Series(mask)).rank("dense").to_numpy().astype(np.int64) - 1
    entries = (amounts[mask], (rows, outcomes[mask].astype(np.int64)))
    return sparse.csr_array(entries, shape=(int(rows.max()) + 1, coding.size))


def _count_values_without_outcome_by_reason(marks: Any, rows: Any) -> MisfitCounts:
    """The number of rows without an outcome of their own, by reason."""

    def number_of_rows_marked(*kinds: np.uint32) -> int:
        return int(rows[np.isin(marks, kinds)].sum())

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
            each of them a sample. Of more than about 16 million names those of a part are counted.
        labels_in_other_forms: rows whose value differs from a label only in case, width, spaces or invisible characters. It is among those
            outside all the same.
    """

    rows: int
    nameless: int
    nulls: int
    not_numbers: int
    outside: dict[Any, int]
    names_in_several_forms: int = 0
    labels_in_other_forms: int = 0


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
    rows = nameless = 0
    misfits, names = [_ColumnMisfits(index) for index in range(len(reading.values))], NamesInSeveralForms()
    for frame in source.read_prepared_frames(
        reading.mark_missing_and_outside_values,
        reading.columns.all_column_names,
        client=reading.columns.client,
        numbers=reading.columns_that_may_mix_integers_and_floats,
    ):
        rows += frame.height
        nameless += int(frame["nameless"].sum())
        if reading.are_clients_texts_of_one_column:
            names.add(frame.filter(~pl.col("nameless")))
        for column_misfits in misfits:
            column_misfits.count_misfits_of_frame(frame)
    return DryRun(
        rows=rows,
        nameless=nameless,
        nulls=sum(column_misfits.nulls for column_misfits in misfits),
        not_numbers=sum(column_misfits.not_numbers for column_misfits in misfits),
        outside={
            f"{value.name}: {content}" if value.of_survey else content: number
            for value, column_misfits in zip(reading.values, misfits, strict=True)
            for content, number in column_misfits.iterate_values_outside()
        },
        names_in_several_forms=names.count(),
        labels_in_other_forms=sum(
            _rows_with_labels_in_other_forms(value.coding.domain.labels, column_misfits)
            for value, column_misfits in zip(reading.values, misfits, strict=True)
        ),
    )


def _rows_with_labels_in_other_forms(labels: tuple[Any, ...] | None, column_misfits: "_ColumnMisfits") -> int:
    """The number of rows whose value outside is a label as people read it."""
    forms = {text_without_invisible_differences(label) for label in labels or () if isinstance(label, str)}
    return sum(
        rows
        for value, rows in column_misfits.iterate_values_outside()
        if isinstance(value, str) and text_without_invisible_differences(value) in forms
    )


class _ColumnMisfits:
    """What the rows of one column of values hold that has no outcome of its own: nulls, NaN, and values outside the domain."""

    def __init__(self, index: int) -> None:
        self._mark, self._value = pl.col(f"mark {index}"), pl.col(f"value {index}").alias("value")
        # values and their numbers of rows; the first of those before, the others new
        self._outside: list[pl.DataFrame] = []
        self._new_count = 0
        self.nulls = self.not_numbers = 0

    def count_misfits_of_frame(self, frame: pl.DataFrame) -> None:
        """Count the rows of a frame of `Reading.mark_missing_and_outside_values`."""
        misfits = frame.select(self._mark.alias("mark"), self._value).drop_nulls("mark")
        if not misfits.height:
            return
        is_null, is_nan = pl.col("mark") == int(MARK_MISSING), pl.col("mark") == int(MARK_NAN)
        self.nulls += misfits.select(is_null.sum()).item()
        self.not_numbers += misfits.select(is_nan.sum()).item()
        outside = misfits.filter(~is_null & ~is_nan).group_by("value").agg(pl.len().cast(pl.Int64).alias("rows"))
        self._outside.append(outside)
        self._new_count += outside.height
        if self._new_count > max(_VALUES_TO_MERGE, self._outside[0].height):
            self._merge_counts_of_values_outside()

    def _merge_counts_of_values_outside(self) -> None:
        self._outside = [pl.concat(self._outside).group_by("value").agg(pl.col("rows").sum())]
        self._new_count = 0

    def iterate_values_outside(self) -> Iterator[tuple[Any, int]]:
        """Values outside the domain with their numbers of rows, most frequent first."""
        if self._outside:
            self._merge_counts_of_values_outside()
            yield from self._outside[0].sort(["rows", "value"], descending=[True, False]).iter_rows()
