"""The rows of a table as records: client, outcome of the public domain, and count or weight.

A `Reading` states how the columns of one table are read. A `RecordReader` reads them, checks every row, counts values without an outcome and
raises errors. Messages count rows.

**Surveys** have several columns of values, each with a `ValueColumn` of its own. A row in which all columns have an outcome is one number of
up to 62 bits, the one that `SurveyColumns` gives it. A row without one carries a mark: its reason, and the first column that has it. So
messages name columns.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base import placeholders_until_used
from discreet.domain import (
    FIRST_MARK,
    MARK_ABOVE,
    MARK_BELOW,
    MARK_LISTED,
    MARK_MISSING,
    MARK_NAN,
    MARK_OUTSIDE,
    MARK_UNREADABLE,
    NEAREST,
    NULLS,
    CellDomain,
    Coding,
    Domain,
    Interval,
    Labels,
    MisfitCounts,
    Numbers,
    column_expression,
    resolve_and_count_misfit_marks,
    widened_mark_for_records,
)
from discreet.errors import DiscreetError, check_choice
from discreet.tables._columns import (
    Columns,
    ValueColumn,
    client_names_expression,
    composite_client_names_expression,
    is_column_of_lists,
    is_integer_client_type,
    message_for_rows_without_client,
    missing_client_name_expression,
    name_hash_expressions,
    refuse_unusable_client_type,
    refuse_unusable_composite_client_type,
    type_of_column_values,
    warn_if_client_column_holds_floats,
    warn_of_suspicious_client_names,
)
from discreet.tables._sources import FEW, Source, columns_as_text

with placeholders_until_used(globals()):
    from discreet.survey import SurveyColumns

_AS_IT_STANDS = "\0as it stands"  # columns of ours: no header has such a name
_MARKED_ROW = np.uint64(1 << 63)  # of a survey
_MOVED = "moved"  # how many columns of a survey's row had a number outside that went to the nearest end
_MOST_COUNTED, _MOST_WEIGHT, _MOST_RECORDS = 2.0**62, 1e300, 1 << 31  # of one client: beyond them sums overflow
_TEXT = 1 << 26  # bytes of clients' names to write out at a time

Examples = Callable[[Callable[[Any], Any], str, int], list[Any]]


class CodedRows(NamedTuple):
    """Records: clients as an Arrow column, outcome numbers (MISSING: to be left out), and counts if any."""

    clients: pa.Array
    outcomes: NDArray[np.uint32] | NDArray[np.uint64]
    counts: NDArray[np.int64] | NDArray[np.float64] | None


@dataclass(frozen=True)
class RowCoding:
    """The public columns of a survey, and the rule for rows with a value outside or a null.

    Args:
        columns: of the survey; a row is read as one number (`SurveyColumns`).
        other: "nearest" moves numbers outside to the nearest end. None: they are an error, as labels outside always are.
        nulls: "error", or "drop", which leaves out rows with a null in any column.
        lenient: whether rows without an outcome are never an error: they are left out, and their client stays.

    Raises:
        DiscreetError: for another rule.
    """

    columns: SurveyColumns
    other: Any = None
    nulls: str = "error"
    lenient: bool = False

    has_cells = False
    record_type = np.uint64  # of coded rows

    def __post_init__(self) -> None:
        if self.other not in (None, NEAREST):
            raise DiscreetError(
                f"other = {self.other!r} is no rule for a survey; leave it out, or use {NEAREST!r}: numbers outside go to the nearest end"
            )
        check_choice("nulls", self.nulls, NULLS)
        if self.nulls == "other":
            raise DiscreetError(
                "nulls = 'other' (--nulls) is no rule for a survey; use 'drop', which leaves out the row"
            )

    @cached_property
    def column_codings(self) -> dict[str, Coding]:
        """How each column is read."""
        return {
            name: Coding(
                domain, NEAREST if self.other and isinstance(domain, CellDomain) else None, self.nulls, self.lenient
            )
            for name, domain in self.columns.items()
        }

    def as_lenient_coding(self) -> "RowCoding":
        """The same coding without errors, for a device or gateway, whose errors would tell the collector about the data."""
        return RowCoding(self.columns, NEAREST, "drop", lenient=True)

    @property
    def size(self) -> int:
        """The number of different rows."""
        return self.columns.size


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the columns of one table are read.

    Attributes:
        columns: their names.
        coding: the outcomes of records; of a survey those of rows.
        values: how each column of values is read: one, or those of a survey.
        name_kinds: the types of the columns that name clients.
        float_counts: whether whole floats are read as counts.
        arrays: columns of arrays, which are read as lists.
        null_clients: rows without a client are an "error", or "drop" leaves them out; None: an error, and the caller has no such option.
    """

    columns: Columns
    coding: Coding | RowCoding
    values: tuple[ValueColumn, ...]
    name_kinds: tuple[Any, ...]
    float_counts: bool
    arrays: tuple[str, ...]
    null_clients: str | None

    @classmethod
    def for_table_columns(
        cls,
        columns: Columns,
        coding: Coding | RowCoding,
        schema: pl.Schema,
        *,
        untyped: bool | Collection[str] = False,
        where: str = "the table",
        agreed: bool = False,
        show_values: bool = False,
        null_clients: str | None = None,
    ) -> "Reading":
        """The reading of a table with these columns; messages call it `where`.

        `untyped`: all columns (CSV), or those named, are texts and get their types from the domain. `agreed`: the domain is that of an
        agreement.
        """
        survey = isinstance(coding, RowCoding)
        column_codings = (
            coding.column_codings if isinstance(coding, RowCoding) else {columns.value_columns_text: coding}
        )
        for name in columns.value_columns:
            if survey and is_column_of_lists(schema.get(name)):
                raise DiscreetError(f"column {name!r} holds lists; a survey reads one value of each column in a row")
        for name in columns.all_column_names:
            if name not in schema:
                hint = columns_as_text(schema, columns.all_column_names, untyped=untyped is True and not show_values)
                raise DiscreetError(f"column {name!r} is not in {where}; {hint}")
        texts = set(schema if untyped is True else untyped or ())
        kinds: dict[str, Any] = {
            name: pl.String() if name in texts else schema[name] for name in columns.all_column_names
        }
        if columns.count_or_weight_column is not None and columns.count_or_weight_column not in texts:
            _refuse_wrong_count_or_weight_type(
                columns,
                kinds[columns.count_or_weight_column],
                has_lists=is_column_of_lists(kinds[columns.value_columns[0]]),
            )
        check_name = (
            refuse_unusable_client_type if len(columns.client_columns) == 1 else refuse_unusable_composite_client_type
        )
        for name in columns.client_columns:
            check_name(f"column {name!r}", kinds[name])
        values = tuple(
            ValueColumn.for_column_type(
                name, column_coding, kinds[name],
                untyped=name in texts, agreed=agreed or survey, show_values=show_values, of_survey=survey,
            )
            for name, column_coding in column_codings.items()
        )  # fmt: skip
        return cls(
            columns=columns,
            coding=coding if survey else values[0].coding,
            values=values,
            name_kinds=tuple(kinds[name] for name in columns.client_columns),
            float_counts=columns.count is not None and type_of_column_values(kinds[columns.count]).is_float(),
            arrays=tuple(name for name in columns.all_column_names if isinstance(schema[name], pl.Array)),
            null_clients=null_clients,
        )

    @property
    def client_name_type(self) -> Any:
        """The kind of clients' names: that of their column, texts where several columns name them."""
        return self.name_kinds[0] if len(self.name_kinds) == 1 else pl.String()

    @property
    def are_clients_integers(self) -> bool:
        """Whether clients are named by integers; otherwise by texts."""
        return is_integer_client_type(self.client_name_type)

    @property
    def are_clients_texts_of_one_column(self) -> bool:
        """Whether clients are named by the texts of one column, as they stand in it."""
        return len(self.name_kinds) == 1 and not self.are_clients_integers

    @property
    def columns_that_may_mix_integers_and_floats(self) -> tuple[str, ...]:
        """The columns in which integers and floats mean the same, so that files may differ in this."""
        numbers = [value.name for value in self.values if value.coding.has_cells]
        return (*numbers, *([] if self.columns.weight is None else [self.columns.weight]))

    def rows_without_client_message(self, number: int, rows: int, *, of: str = "") -> str:
        """The error for rows without a client, in a table with that name."""
        kind = next(
            (kind for kind in self.name_kinds if kind.is_float() or kind in (pl.UInt64, pl.Int128)),
            self.client_name_type,
        )
        return message_for_rows_without_client(
            f"{self.columns.client_columns_text}{of and f' of {of}'}",
            kind,
            number,
            rows,
            droppable=self.null_clients is not None,
        )

    def warn_if_client_columns_hold_floats(self) -> None:
        """Warn of columns whose floats are read as integers."""
        for name, kind in zip(self.columns.client_columns, self.name_kinds, strict=True):
            warn_if_client_column_holds_floats(f"column {name!r}", kind)

    def prepare_rows(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome and perhaps count: one row for each record. Of a survey also `moved`.

        Unreadable values become a mark, a null client or a negative count: an error of a cast would show them.
        """
        frame = self._explode_lists_to_rows(frame)
        for value in self.values:
            frame = value.cast_frame_to_domain_type(frame)
        if isinstance(self.coding, RowCoding):
            return self._prepare_survey_rows(frame, self.coding.columns)
        return frame.select(self._prepared_column_expressions(self.values[0].outcome_expression()))

    def _prepare_survey_rows(self, frame: Any, columns: SurveyColumns) -> Any:
        """The same for several columns of values: their outcomes as one number, or the mark of the first column without one."""
        names = [f"\0code {index}" for index in range(len(self.values))]
        frame = frame.with_columns(
            value.outcome_expression().alias(name) for name, value in zip(names, self.values, strict=True)
        )
        outcome: Any = None
        row, moves = pl.lit(0, pl.UInt64), pl.lit(0, pl.UInt32)
        for index, (name, value) in enumerate(zip(names, self.values, strict=True)):
            code = pl.col(name)
            if value.coding.has_cells:
                moves = moves + code.is_in([int(MARK_BELOW), int(MARK_ABOVE)]).cast(pl.UInt32)
                last = pl.lit(value.coding.size - 1, pl.UInt32)
                nearest = pl.when(code == int(MARK_BELOW)).then(pl.lit(0, pl.UInt32))
                code = nearest.when(code == int(MARK_ABOVE)).then(last).otherwise(code)
            wide_code = code.cast(pl.UInt64)
            mark = wide_code + pl.lit(int(_MARKED_ROW) + (index << 32), pl.UInt64)
            is_mark = code >= int(FIRST_MARK)
            outcome = pl.when(is_mark).then(mark) if outcome is None else outcome.when(is_mark).then(mark)
            row = row + wide_code * pl.lit(columns.strides[value.name], pl.UInt64)
        return frame.select([*self._prepared_column_expressions(outcome.otherwise(row)), moves.alias(_MOVED)])

    def _prepared_column_expressions(self, outcome: pl.Expr) -> list[pl.Expr]:
        """The columns client, outcome, perhaps nameless and count of a frame with one row for each record."""
        columns = self.columns
        expressions = [self._client_name_expression().alias("client"), outcome.alias("outcome")]
        if self.null_clients == "drop":
            missing = map(missing_client_name_expression, columns.client_columns, self.name_kinds)
            expressions.append(pl.any_horizontal(*missing).alias("nameless"))
        if columns.count_or_weight_column is not None:
            count = column_expression(columns.count_or_weight_column)
            if self.float_counts:
                count = count.fill_nan(None)
            number = count.cast(pl.Int64 if columns.weight is None else pl.Float64, strict=False)
            if self.float_counts:
                number = pl.when(count == count.floor()).then(number)
            expressions.append(
                pl.when(count.is_not_null() & number.is_null()).then(-1).otherwise(number).alias("count")
            )
        return expressions

    def resolve_missing_and_outside_marks(self, frame: pl.DataFrame) -> tuple[NDArray[Any], list[MisfitCounts]]:
        """The outcomes of a prepared frame with their marks resolved, and the numbers of marks of each column."""
        outcomes = frame["outcome"].to_numpy()
        if isinstance(self.coding, RowCoding):
            return self._survey_rows_and_misfit_counts(outcomes, int(frame[_MOVED].sum()))
        outcomes, misfits = resolve_and_count_misfit_marks(self.coding, outcomes)
        return outcomes, [misfits]

    def _survey_rows_and_misfit_counts(self, rows: NDArray[Any], moves: int) -> tuple[NDArray[Any], list[MisfitCounts]]:
        misfits = [MisfitCounts() for _ in self.values]
        first_cells = next((index for index, value in enumerate(self.values) if value.coding.has_cells), 0)
        misfits[first_cells] += MisfitCounts(outside=moves)
        marked_rows = np.flatnonzero(rows >= _MARKED_ROW)
        if not marked_rows.size:
            return rows, misfits
        resolved_rows, marks = rows.copy(), rows[marked_rows]
        reasons, column_numbers = marks.astype(np.uint32), (marks - _MARKED_ROW) >> np.uint64(32)
        for index in range(len(self.values)):
            column_reasons = reasons[column_numbers == index]
            kinds = (MARK_MISSING, MARK_NAN, MARK_UNREADABLE, MARK_OUTSIDE)
            misfits[index] += MisfitCounts(*(int(np.count_nonzero(column_reasons == mark)) for mark in kinds))
        resolved_rows[marked_rows] = widened_mark_for_records(
            MARK_LISTED if self.coding.lenient else MARK_MISSING, rows
        )
        return resolved_rows, misfits

    def refuse_missing_or_outside_values(
        self, misfits: Sequence[MisfitCounts], rows: int, shown_values: Sequence[Any] | None
    ) -> None:
        """Raise the error of the first column with values that are not allowed. `shown_values`: a few of the first column that shows some."""
        for value, counts in zip(self.values, misfits, strict=True):
            shows = value.should_show_values_outside_domain(counts)
            value.refuse_missing_or_outside_values(counts, rows, shown_values if shows else None)
            shown_values = None if shows else shown_values

    def example_values_outside(self, misfits: Sequence[MisfitCounts], examples: Examples) -> list[Any] | None:
        """A few values outside of the first column that shows some; None if no column does."""
        for value, counts in zip(self.values, misfits, strict=True):
            if value.should_show_values_outside_domain(counts):
                return examples(partial(self._select_rows_outside_domain, value), value.name, FEW + 1)
        return None

    def _select_rows_outside_domain(self, value: ValueColumn, frame: Any) -> Any:
        """The rows of a frame with a value outside the domain."""
        return value.select_rows_outside_domain(self._explode_lists_to_rows(frame))

    def mark_missing_and_outside_values(self, frame: Any) -> Any:
        """A frame (lazy or not) of one row for each record, with the values that have no outcome of their own.

        Columns `mark 0`, `value 0`, `mark 1`... are the mark and the value of each column of values, null where it has an outcome.
        `nameless`: whether the row has no client. Clients that are texts of one column are hashed (`name_hash_expressions`).
        """
        frame = self._explode_lists_to_rows(frame).with_columns(
            value.dates_as_texts_expression().alias(f"{_AS_IT_STANDS} {index}")
            for index, value in enumerate(self.values)
        )
        name = self._client_name_expression()
        expressions = [name.is_null().alias("nameless")]
        if self.are_clients_texts_of_one_column:
            expressions += name_hash_expressions(name)
        for index, value in enumerate(self.values):
            frame = value.cast_frame_to_domain_type(frame)
            outcome = value.outcome_expression()
            when_marked = pl.when(outcome >= int(FIRST_MARK))
            expressions += [
                when_marked.then(outcome).alias(f"mark {index}"),
                when_marked.then(pl.col(f"{_AS_IT_STANDS} {index}")).alias(f"value {index}"),
            ]
        return frame.select(expressions)

    def _client_name_expression(self) -> pl.Expr:
        if len(self.name_kinds) == 1:
            return client_names_expression(self.columns.client_columns[0], self.client_name_type)
        return composite_client_names_expression(self.columns.client_columns, self.name_kinds)

    def _explode_lists_to_rows(self, frame: Any) -> Any:
        """A frame with one row for each record. A null or empty list is one null, so that its client remains."""
        for name in self.arrays:
            frame = frame.with_columns(column_expression(name).arr.to_list())
        if not self.values[0].has_lists:
            return frame
        lists = [name for name in (self.values[0].name, self.columns.count_or_weight_column) if name is not None]
        is_empty = pl.all_horizontal(column_expression(name).list.len().fill_null(0) == 0 for name in lists)
        stand_ins = zip(lists, (pl.Series([[None]]), pl.Series([[1]])), strict=False)
        expressions = [
            pl.when(is_empty).then(pl.lit(stand_in)).otherwise(column_expression(name)).alias(name)
            for name, stand_in in stand_ins
        ]
        return frame.with_columns(expressions).explode([column_expression(name) for name in lists])


class RecordReader:
    """A reader of rows: `rows` so far, those without a client that are left out (`nameless`), and values without an outcome.

    Rows that are in error are counted to the end of the table, before `refuse_bad_rows_with_counts` is called: batches come in an order and
    a size that vary from run to run, and the numbers in a message must not.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.rows = self.nameless = 0
        self.tallies = [MisfitCounts() for _ in reading.columns.value_columns]
        self._unnamed = self._null_counts = self._bad_counts = 0
        self._shown: list[Any] | None = None
        self._failed = False

    @property
    def total_missing_and_outside_counts(self) -> MisfitCounts:
        """The numbers of marks of all columns of values together."""
        return sum(self.tallies, MisfitCounts())

    def iterate_checked_records(self, frame: pl.DataFrame, examples: Examples) -> Iterator[CodedRows]:
        """The checked records of a prepared frame, with missing values and values outside treated by the rule.

        None from the first frame on that is in error; these are only counted. Call `refuse_bad_rows_with_counts` after the last one.
        """
        reading, columns = self._reading, self._reading.columns
        is_first = not self.rows
        self.rows += frame.height
        if "nameless" in frame.columns:
            named_rows = frame.filter(~pl.col("nameless"))
            self.nameless += frame.height - named_rows.height
            frame = named_rows
        clients = frame["client"]
        self._unnamed += clients.null_count()
        if self._unnamed:
            pass  # an error says more than a warning
        elif isinstance(columns.client, str) and clients.dtype == pl.String:
            warn_of_suspicious_client_names(columns.client, clients, first=is_first)
        elif is_first:
            reading.warn_if_client_columns_hold_floats()
        counts = None
        if "count" in frame.columns:
            self._add_up_null_and_invalid_amounts(frame["count"])
            counts = frame["count"].to_numpy()
        outcomes, tallies = reading.resolve_missing_and_outside_marks(frame)
        if counts is not None and reading.coding.lenient:
            is_listed = outcomes == widened_mark_for_records(MARK_LISTED, outcomes)
            counts = np.where(is_listed, np.ones_like(counts), counts)  # such a row keeps its client
        self.tallies = [total + tally for total, tally in zip(self.tallies, tallies, strict=True)]
        if self._shown is None:
            self._shown = reading.example_values_outside(tallies, examples)
        self._failed = self._failed or self._has_bad_rows()
        if self._failed:
            return
        for start, end in _iterate_row_ranges_with_bounded_names(clients):
            names = clients.slice(start, end - start).to_arrow()
            yield CodedRows(names, outcomes[start:end], None if counts is None else counts[start:end])

    def refuse_bad_rows_with_counts(self) -> None:
        """Raise the error of the rows that were read, if there is one. It counts all of them."""
        reading, columns = self._reading, self._reading.columns
        if self._unnamed:
            raise DiscreetError(reading.rows_without_client_message(self._unnamed, self.rows))
        refuse_null_or_invalid_amounts(columns, self._null_counts, self._bad_counts, self.rows)
        reading.refuse_missing_or_outside_values(self.tallies, self.rows, self._shown)

    @property
    def row_counts_by_problem(self) -> list[int]:
        """All that `refuse_bad_rows_with_counts` counts, as numbers that add up over the parts of a table."""
        marks = [
            count
            for tally in self.tallies
            for count in (tally.nulls, tally.not_numbers, tally.unreadable, tally.outside)
        ]
        return [self.rows, self.nameless, self._unnamed, self._null_counts, self._bad_counts, *marks]

    def add_row_counts_by_problem(self, row_counts_by_problem: Sequence[int]) -> None:
        """Add what another reader has counted in another part of the table."""
        rows, nameless, unnamed, null_counts, bad_counts, *marks = row_counts_by_problem
        self.rows += rows
        self.nameless += nameless
        self._unnamed += unnamed
        self._null_counts += null_counts
        self._bad_counts += bad_counts
        tallies = [MisfitCounts(*marks[first : first + 4]) for first in range(0, len(marks), 4)]
        self.tallies = [total + tally for total, tally in zip(self.tallies, tallies, strict=True)]

    def _add_up_null_and_invalid_amounts(self, counts: pl.Series) -> None:
        nulls, invalid = number_of_null_and_invalid_amounts(counts)
        self._null_counts += int(nulls)
        self._bad_counts += int(invalid)

    def _has_bad_rows(self) -> bool:
        try:
            self.refuse_bad_rows_with_counts()
        except DiscreetError:
            return True
        return False


def number_of_null_and_invalid_amounts(amounts: Any) -> tuple[Any, Any]:
    """The numbers of nulls, and of counts or weights that are negative, infinite or NaN, in a column or expression of polars."""
    return amounts.null_count(), (~(amounts.is_finite() & (amounts >= 0))).sum()  # NaN is more than 0 in polars


def refuse_null_or_invalid_amounts(columns: Columns, nulls: int, invalid: int, rows: int, *, of: str = "") -> None:
    """Raise an error for counts or weights that are null or invalid, with their number. `of`: a table of public examples."""
    column, where = f"column {columns.count_or_weight_column!r}{of and f' of {of}'}", f"in {rows:,} rows"
    if nulls:
        raise DiscreetError(f"{column} holds nulls ({nulls:,} {where}): fill them, or filter those rows out")
    if invalid:
        what, fix = "finite numbers of at least 0", ": write 1234.5, without units, spaces or commas"
        if columns.weight is None:
            what = "whole numbers from 0 to 2^63 - 1"
            if not of:  # of a release
                fix = (
                    " (weight= takes any numbers, but is another question, whose samples spend an epsilon of their own)"
                )
            else:
                fix = ", or take them as weights"
        raise DiscreetError(f"{column} holds what are no {what} ({invalid:,} {where}); correct them{fix}")


def refuse_unreadable_table(source: Source, columns: Columns, *, nulls: str = "drop") -> None:
    """Raise an error for a table that no agreement can make readable: missing columns, rows without a client, bad counts.

    `nulls`: "error" also rejects missing values.
    """
    schema = source.schema
    kind: Any = pl.String() if source.is_untyped else schema.get(columns.value_columns_text, pl.String())
    kind = type_of_column_values(kind)
    domain: Domain = Labels(("",))
    if kind.is_integer():
        domain = Numbers(1)
    elif kind.is_numeric():
        domain = Interval(0.0, 1.0, cells=1)
    coding = Coding(domain).as_lenient_coding()
    reading = Reading.for_table_columns(
        columns, coding, schema, untyped=source.untyped_columns, where=source.name, agreed=True
    )
    reader, total = RecordReader(reading), 0.0
    for frame in source.read_prepared_frames(
        reading.prepare_rows,
        columns.all_column_names,
        client=columns.client,
        numbers=reading.columns_that_may_mix_integers_and_floats,
    ):
        for _ in reader.iterate_checked_records(frame, source.example_values):
            pass
        total += float(frame["count"].cast(pl.Float64).sum()) if "count" in frame.columns else frame.height
    reader.refuse_bad_rows_with_counts()
    limit = _MOST_COUNTED if columns.weight is None else _MOST_WEIGHT
    if not total < limit or reader.rows >= _MOST_RECORDS:
        raise DiscreetError(
            f"the table adds up to {total:.3g} in {reader.rows:,} rows; one client may hold {limit:.3g} in {_MOST_RECORDS:,} rows: divide "
            "the counts or weights by one number, or send some of the clients with a secret of their own"
        )
    missing = reader.total_missing_and_outside_counts.nulls + reader.total_missing_and_outside_counts.not_numbers
    if missing and nulls == "error":
        raise DiscreetError(
            f"column {columns.value_columns_text!r} holds nulls or NaN ({missing:,} in {reader.rows:,} rows); filter them out, or say "
            "nulls='drop' or 'other' (--nulls)"
        )


def _refuse_wrong_count_or_weight_type(columns: Columns, kind: Any, *, has_lists: bool) -> None:
    name = columns.count_or_weight_column
    if is_column_of_lists(kind) != has_lists:
        raise DiscreetError(
            f"columns {columns.value_columns_text!r} and {name!r} are not both lists or both single values"
        )
    value_type: Any = type_of_column_values(kind)
    if columns.count is not None and not (value_type.is_integer() or value_type.is_float()):
        raise DiscreetError(f"count column {name!r} holds {value_type} values, not whole numbers; cast it to integers")
    if not value_type.is_numeric():
        raise DiscreetError(f"weight column {name!r} holds {value_type} values, not numbers")


def _iterate_row_ranges_with_bounded_names(clients: pl.Series) -> Iterator[tuple[int, int]]:
    """Ranges of rows first <= row < last with a bounded size of names: a dictionary on disk may unpack to far more."""
    if clients.dtype != pl.String or not len(clients):
        yield 0, len(clients)
        return
    ends = clients.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + _TEXT, side="right")))
        yield first, last
        first = last
