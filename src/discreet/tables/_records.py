"""The rows of a table as records: client, outcome of the public domain, and count or weight.

A `Reading` states how the columns of one table are read, in polars expressions. A `RecordReader` reads them, checks every row, counts
values without an outcome and raises errors. Messages count rows; they show values, which are private, only on request. The cell of a number
is computed exactly as in `discreet.domain.Interval`, operation for operation, so that both find the same one.
"""

import difflib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import CellDomain, Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError
from discreet.mechanisms import LineCells
from discreet.tables._clients import (
    check_client_kind,
    check_part_kind,
    client_names,
    composite_names,
    is_integer_name,
    is_missing_name,
    nameless_rows_message,
    warn_of_floats,
    warn_of_names,
)
from discreet.tables._coding import (
    FIRST_MARK,
    MARK_ABOVE,
    MARK_BELOW,
    MARK_LISTED,
    MARK_MISSING,
    MARK_NAN,
    MARK_OUTSIDE,
    MARK_UNREADABLE,
    NEAREST,
    Coding,
    Columns,
    MisfitCounts,
    is_whole,
    mark_among,
)
from discreet.tables._sources import FEW, Source, first_few

if TYPE_CHECKING:
    from discreet.tables._row_reading import RowReading

_UNREAD, _AS_IT_STANDS = "\0unread ", "\0as it stands"  # columns of ours: no header has these names
_MOST_COUNTED, _MOST_WEIGHT, _MOST_RECORDS = 2.0**62, 1e300, 1 << 31  # of one client: beyond them sums overflow
_EPOCH = date(1970, 1, 1).toordinal()
_TEXT = 1 << 26  # bytes of clients' names to write out at a time

Examples = Callable[[Callable[[Any], Any], str, int], list[Any]]


class CodedRows(NamedTuple):
    """Records: clients as an Arrow column, outcome numbers (MISSING: to be left out), and counts if any."""

    clients: pa.Array
    outcomes: NDArray[np.uint32] | NDArray[np.uint64]
    counts: NDArray[np.int64] | NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the columns of one table are read: their content, and its type."""

    columns: Columns
    coding: Coding
    name_kinds: tuple[Any, ...]  # of the columns that name clients
    listed: bool
    float_counts: bool = False  # whole floats are read as counts
    read_as: pl.DataType | None = None  # the type that texts or truth values are read as, if another
    from_floats: bool = False
    from_dates: pl.DataType | None = None  # dates, or times, are read as texts
    arrays: tuple[str, ...] = ()
    show_values: bool = False
    null_clients: str = "error"  # or "drop"
    of_survey: bool = False  # one of several columns

    @classmethod
    def of(
        cls,
        columns: Columns,
        coding: Coding,
        schema: pl.Schema,
        *,
        untyped: bool | Collection[str] = False,
        where: str = "the table",
        agreed: bool = False,
        show_values: bool = False,
        null_clients: str = "error",
    ) -> "Reading":
        """The reading of a table with these columns; messages call it `where`.

        `untyped`: all columns (CSV), or those named, are texts and get their types from the domain. `agreed`: the domain is that of an
        agreement.
        """

        value = columns.value_name

        def has_no_type(name: str) -> bool:
            return untyped if isinstance(untyped, bool) else name in untyped

        for name in columns.names:
            if name not in schema:
                raise DiscreetError(f"column {name!r} is not in {where}; it has {', '.join(map(repr, schema))}")
        kinds: dict[str, Any] = {
            name: pl.String() if has_no_type(name) else schema[name] for name in (*columns.clients, value)
        }
        listed = isinstance(kinds[value], (pl.List, pl.Array))
        value_kind: Any = _value_type(kinds[value])
        truths = value_kind == pl.Boolean and not coding.has_cells
        dates = _are_dates(value, value_kind) and isinstance(coding.text_kind, pl.String)
        read_as = coding.text_kind if has_no_type(value) or truths or dates else value_kind
        if coding.lenient and not has_no_type(value):
            read_as = _read_leniently(coding, value, value_kind)
        if columns.counts is not None and not has_no_type(columns.counts):
            _check_count_column(columns, schema[columns.counts], listed=listed)
        name_kinds = tuple(kinds[name] for name in columns.clients)
        check_name = check_client_kind if len(name_kinds) == 1 else check_part_kind
        for name, kind in zip(columns.clients, name_kinds, strict=True):
            check_name(f"column {name!r}", kind)
        return cls(
            columns=columns,
            coding=fit_coding(coding, value, read_as, agreed=agreed),
            name_kinds=name_kinds,
            listed=listed,
            float_counts=columns.count is not None
            and not has_no_type(columns.count)
            and _value_type(schema[columns.count]).is_float(),
            arrays=tuple(name for name in columns.names if isinstance(schema[name], pl.Array)),
            show_values=show_values,
            null_clients=null_clients,
            read_as=None if read_as == value_kind else read_as,
            from_floats=value_kind.is_float(),
            from_dates=value_kind if dates else None,
        )

    @property
    def client_kind(self) -> Any:
        """The kind of clients' names: that of their column, texts where several columns name them."""
        return self.name_kinds[0] if len(self.name_kinds) == 1 else pl.String()

    @property
    def integer_clients(self) -> bool:
        """Whether clients are named by integers; otherwise by texts."""
        return is_integer_name(self.client_kind)

    @property
    def mixed_numbers(self) -> tuple[str, ...]:
        """The columns in which integers and floats mean the same, so that files may differ in this."""
        columns = self.columns
        values = (self.value,) if self.coding.has_cells else ()
        return values if columns.weight is None else (*values, columns.weight)

    def without_client_message(self, number: int, rows: int, *, of: str = "") -> str:
        """The error for rows without a client, in a table with that name."""
        kind = next(
            (kind for kind in self.name_kinds if kind.is_float() or kind in (pl.UInt64, pl.Int128)), self.client_kind
        )
        return nameless_rows_message(f"{self.columns.clients_text}{of and f' of {of}'}", kind, number, rows)

    def warn_of_float_names(self) -> None:
        """Warn of columns whose floats are read as integers."""
        for name, kind in zip(self.columns.clients, self.name_kinds, strict=True):
            warn_of_floats(f"column {name!r}", kind)

    def prepare_rows(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome and perhaps count: one row for each record.

        Unreadable values become a mark, a null client or a negative count: an error of a cast would show them.
        """
        return self.with_types(self._one_value_each(frame)).select(self.prepared_columns(self.outcome_expression()))

    def prepared_columns(self, outcome: pl.Expr) -> list[pl.Expr]:
        """The columns client, outcome, perhaps nameless and count of a frame with one row for each record."""
        columns = self.columns
        prepared = [self._client().alias("client"), outcome.alias("outcome")]
        if self.null_clients == "drop":
            missing = map(is_missing_name, columns.clients, self.name_kinds)
            prepared.append(pl.any_horizontal(*missing).alias("nameless"))
        if columns.counts is not None:
            count = pl.col(columns.counts)
            if self.float_counts:
                count = count.fill_nan(None)
            number = count.cast(pl.Int64 if columns.weight is None else pl.Float64, strict=False)
            if self.float_counts:
                number = pl.when(count == count.floor()).then(number)
            prepared.append(pl.when(count.is_not_null() & number.is_null()).then(-1).otherwise(number).alias("count"))
        return prepared

    @property
    def value(self) -> str:
        """The column of values."""
        return self.columns.value_name

    def resolve(self, frame: pl.DataFrame) -> tuple[NDArray[Any], list[MisfitCounts]]:
        """The outcomes of a prepared frame with their marks resolved, and the numbers of marks of each column."""
        outcomes, found = resolve_marks(self.coding, frame["outcome"].to_numpy())
        return outcomes, [found]

    def refuse_misfits(self, tallies: Sequence[MisfitCounts], rows: int, shown_values: Sequence[Any] | None) -> None:
        """Raise the error of the columns of values, of which there is one."""
        self.refuse(tallies[0], rows, shown_values)

    def shows_examples(self, tally: MisfitCounts) -> bool:
        """Whether a message would show some values: they are outside, which is not allowed, and `show_values` asks for them."""
        return self.show_values and bool(tally.outside) and self.coding.other is None and not self.coding.lenient

    def refuse(self, tally: MisfitCounts, rows: int, shown_values: Sequence[Any] | None = None) -> None:
        """Raise an error for missing values or values outside (`tally`) that are not allowed. `shown_values`: a few of these."""
        if self.coding.lenient:
            return
        column = self.value
        where = f"in {rows:,} rows"
        ways = "nulls='drop'" if self.of_survey else "nulls='drop' or 'other'"
        if tally.unreadable:
            what = "numbers" if self.coding.has_cells else "whole numbers of 64 bits"
            raise DiscreetError(
                f"column {column!r} holds texts that are no {what} ({tally.unreadable:,} {where}); correct them"
            )
        for number, what in (
            (tally.nulls, "nulls or empty lists" if self.listed else "nulls"),
            (tally.not_numbers, "NaN"),
        ):
            if number and self.coding.nulls == "error":
                raise DiscreetError(
                    f"column {column!r} holds {what} ({number:,} {where}); filter them out, or say {ways} (--nulls)"
                )
        if tally.outside and self.coding.other is None:
            shown = ""
            if shown_values is not None:
                shown = f", such as {first_few(shown_values)}{self._spelling_hint(shown_values)}"
            raise DiscreetError(
                f"column {column!r} holds values outside the domain ({tally.outside:,} {where}{shown}); the domain is public and "
                f"fixed: correct the records, or say {self._other_advice}"
                + ("" if shown else "; show_values=True (--show-values) shows some of them")
            )

    @property
    def _other_advice(self) -> str:
        """The option that allows values outside."""
        if self.coding.has_cells:
            return f"other={NEAREST!r} (--other {NEAREST}): each goes to the cell at its own end"
        if self.of_survey:
            return "which outcomes there are in a new survey"
        return "other= (--other) which of its outcomes they become"

    def outside(self, frame: Any) -> Any:
        """The rows of a frame whose value is outside the domain."""
        found = self.with_types(self._one_value_each(frame)).filter(self.outcome_expression() == int(MARK_OUTSIDE))
        return (
            found if self._first_day is None else found.with_columns(_date_texts(pl.col(self.value), self.from_dates))
        )

    def count_misfits(self, frame: Any) -> Any:
        """The number of rows without an outcome of their own, by mark and value.

        All others are counted together, under no mark and no value. `nameless_rows_message`: how many of the rows have no client either.
        """
        rows = self._one_value_each(frame)
        value = pl.col(self.value)
        shown = value if self.from_dates is None else _date_texts(value, self.from_dates)
        typed = self.with_types(rows.with_columns(shown.alias(_AS_IT_STANDS)))
        outcome = self.outcome_expression()
        marked = pl.when(outcome >= int(FIRST_MARK))
        found = (
            marked.then(outcome).alias("mark"),
            marked.then(pl.col(_AS_IT_STANDS)).alias("value"),
            self._client().is_null().alias("nameless"),
        )
        return typed.select(found).group_by("mark", "value").agg(pl.len().alias("rows"), pl.col("nameless").sum())

    def _client(self) -> pl.Expr:
        if len(self.name_kinds) == 1:
            return client_names(self.columns.clients[0], self.client_kind)
        return composite_names(self.columns.clients, self.name_kinds)

    @cached_property
    def _first_day(self) -> date | None:
        """The first of consecutive days, where the column holds dates: their numbers are then found without texts."""
        return (
            self.coding.domain.first_day
            if self.from_dates == pl.Date and isinstance(self.coding.domain, Labels)
            else None
        )

    def outcome_expression(self) -> pl.Expr:
        """The outcome of each row, or a mark."""
        if self._first_day is not None:
            value = pl.col(self.value)
            day = value.to_physical() - (self._first_day.toordinal() - _EPOCH)
            return _codes_or_marks(
                value, pl.when(day.is_between(0, self.coding.size - 1)).then(day.cast(pl.UInt32, strict=False))
            )
        outcome = outcome_codes(self.coding, self.value)
        if self.read_as is None:
            return outcome
        return pl.when(_UNREAD + self.value).then(pl.lit(int(MARK_UNREADABLE), pl.UInt32)).otherwise(outcome)

    def _one_value_each(self, frame: Any) -> Any:
        """A frame with one row for each record."""
        for name in self.arrays:
            frame = frame.with_columns(pl.col(name).arr.to_list())
        return self._explode_lists(frame) if self.listed else frame

    def with_types(self, frame: Any) -> Any:
        """A frame with the types that the domain expects."""
        if self.read_as is None or self._first_day is not None:
            return frame
        value = pl.col(self.value)
        read = (
            _date_texts(value, self.from_dates)
            if self.from_dates is not None
            else value.cast(self.read_as, strict=False)
        )
        if self.from_floats and self.read_as.is_integer():  # a cast would truncate
            read = pl.when(value == value.floor()).then(read)
        return frame.with_columns(read, (value.is_not_null() & read.is_null()).alias(_UNREAD + self.value))

    def _explode_lists(self, frame: Any) -> Any:
        """One row for each value of a list; a null or empty list is one null, so that its client remains."""
        lists = [name for name in (self.value, self.columns.counts) if name is not None]
        empty = pl.all_horizontal(pl.col(name).list.len().fill_null(0) == 0 for name in lists)
        stand_ins = zip(lists, (pl.Series([[None]]), pl.Series([[1]])), strict=False)
        filled = [pl.when(empty).then(pl.lit(one)).otherwise(pl.col(name)).alias(name) for name, one in stand_ins]
        return frame.with_columns(filled).explode(lists)

    def _spelling_hint(self, found: Sequence[Any]) -> str:
        """A label that the first value outside may be a misspelling of."""
        labels = self.coding.domain.labels
        if labels is None or not found or not isinstance(found[0], str):
            return ""
        near = difflib.get_close_matches(found[0], [str(label) for label in labels], n=1, cutoff=0.75)
        return f" (did you mean {near[0]!r}?)" if near else ""


class RecordReader:
    """A reader of rows: `rows` so far, in `tally` the number without an outcome of their own, in `nameless` those left out without a client.

    Rows that are in error are counted to the end of the table, then `check` raises: batches come in an order and a size that vary from run
    to run, and the numbers in a message must not.
    """

    def __init__(self, reading: "Reading | RowReading") -> None:
        self._reading = reading
        self.rows = self.nameless = 0
        self.tallies = [MisfitCounts() for _ in reading.columns.values]
        self._unnamed = self._null_counts = self._bad_counts = 0
        self._shown: list[Any] | None = None
        self._failed = False

    @property
    def tally(self) -> MisfitCounts:
        """The numbers of marks of all columns of values together."""
        return sum(self.tallies, MisfitCounts())

    def records(self, frame: pl.DataFrame, examples: Examples) -> Iterator[CodedRows]:
        """The checked records of a prepared frame, with missing values and values outside treated by the rule.

        None from the first frame on that is in error; these are only counted. Call `check` after the last one.
        """
        reading, columns = self._reading, self._reading.columns
        first = not self.rows
        self.rows += frame.height
        if "nameless" in frame.columns:
            kept = frame.filter(~pl.col("nameless"))
            self.nameless += frame.height - kept.height
            frame = kept
        clients = frame["client"]
        self._unnamed += clients.null_count()
        if self._unnamed:
            pass  # an error says more than a warning
        elif isinstance(columns.client, str) and clients.dtype == pl.String:
            warn_of_names(columns.client, clients, first=first)
        elif first:
            reading.warn_of_float_names()
        counts = None
        if "count" in frame.columns:
            self._check_counts(frame["count"])
            counts = frame["count"].to_numpy()
        outcomes, tallies = reading.resolve(frame)
        if counts is not None and reading.coding.lenient:
            listed = outcomes == mark_among(MARK_LISTED, outcomes)
            counts = np.where(listed, np.ones_like(counts), counts)  # such a row keeps its client
        self.tallies = [one + more for one, more in zip(self.tallies, tallies, strict=True)]
        if self._shown is None:
            parts = (reading,) if isinstance(reading, Reading) else reading.parts
            shown = next((part for part, tally in zip(parts, tallies, strict=True) if part.shows_examples(tally)), None)
            self._shown = None if shown is None else examples(shown.outside, shown.value, FEW + 1)
        self._failed = self._failed or self._in_error()
        if self._failed:
            return
        for start, end in _bounded_row_ranges(clients):
            names = clients.slice(start, end - start).to_arrow()
            yield CodedRows(names, outcomes[start:end], None if counts is None else counts[start:end])

    def check(self) -> None:
        """Raise the error of the rows that were read, if there is one. It counts all of them."""
        reading, columns, rows = self._reading, self._reading.columns, f"in {self.rows:,} rows"
        if self._unnamed:
            raise DiscreetError(reading.without_client_message(self._unnamed, self.rows))
        if self._null_counts:
            raise DiscreetError(
                f"column {columns.counts!r} holds nulls ({self._null_counts:,} {rows}): fill them, or filter those rows out"
            )
        if self._bad_counts:
            what, fix = "finite numbers of at least 0", ""
            if columns.weight is None:
                what = "whole numbers from 0 to 2^63 - 1"
                fix = (
                    " (weight= takes any numbers, but is another question, whose samples spend an epsilon of their own)"
                )
            raise DiscreetError(
                f"column {columns.counts!r} holds what are no {what} ({self._bad_counts:,} {rows}); correct them{fix}"
            )
        reading.refuse_misfits(self.tallies, self.rows, self._shown)

    @property
    def row_counts(self) -> list[int]:
        """All that `check` counts, as numbers that add up over the parts of a table."""
        marks = [
            count
            for found in self.tallies
            for count in (found.nulls, found.not_numbers, found.unreadable, found.outside)
        ]
        return [self.rows, self.nameless, self._unnamed, self._null_counts, self._bad_counts, *marks]

    def add(self, row_counts: Sequence[int]) -> None:
        """Add what another reader has counted in another part of the table."""
        rows, nameless, unnamed, null_counts, bad_counts, *marks = row_counts
        self.rows += rows
        self.nameless += nameless
        self._unnamed += unnamed
        self._null_counts += null_counts
        self._bad_counts += bad_counts
        more = [MisfitCounts(*marks[first : first + 4]) for first in range(0, len(marks), 4)]
        self.tallies = [one + other for one, other in zip(self.tallies, more, strict=True)]

    def _check_counts(self, counts: pl.Series) -> None:
        self._null_counts += counts.null_count()
        self._bad_counts += int((~(counts.is_finite() & (counts >= 0))).sum())

    def _in_error(self) -> bool:
        try:
            self.check()
        except DiscreetError:
            return True
        return False


def _are_dates(column: str, kind: Any) -> bool:
    """Whether values are dates or times; times of a time zone are an error, since their date depends on where one is."""
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        raise DiscreetError(
            f"column {column!r} holds times of the time zone {kind.time_zone}, and their date depends on the place; cast it to dates first"
        )
    return bool(kind in (pl.Date, pl.Datetime))


def _date_texts(value: pl.Expr, kind: Any) -> pl.Expr:
    """Dates as ISO 8601 writes them, 2026-11-17; times that are not midnight with the time, 2026-11-17T08:30:00."""
    if kind == pl.Date:
        return value.cast(pl.String)
    day = value.dt.date()
    return (
        pl.when(day.cast(kind) == value).then(day.cast(pl.String)).otherwise(value.dt.strftime("%Y-%m-%dT%H:%M:%S%.f"))
    )


def _read_leniently(coding: Coding, column: str, kind: Any) -> Any:
    """The type that values of another type are read as. Unreadable values have no outcome; no column is an error for its domain."""
    if _are_dates(column, kind) and isinstance(coding.text_kind, pl.String):
        return coding.text_kind
    if not (kind.is_numeric() or kind in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)):
        raise DiscreetError(f"column {column!r} holds {kind} values; cast it to texts or numbers")
    wanted = coding.text_kind
    if isinstance(wanted, pl.Float64) and kind.is_numeric():
        return kind
    if isinstance(wanted, pl.Int64) and kind.is_integer():
        return kind
    return (
        kind
        if isinstance(wanted, pl.String) and (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum))
        else wanted
    )


def check_columns(names: Sequence[str], source: Source) -> None:
    """Raise an error for a source without one of these columns."""
    for name in names:
        if name not in source.schema:
            raise DiscreetError(
                f"column {name!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}"
            )


def check_rows(source: Source, columns: Columns, *, nulls: str = "drop") -> None:
    """Raise an error for a table that no agreement can make readable: missing columns, rows without a client, bad counts.

    `nulls`: "error" also rejects missing values.
    """
    schema = source.schema
    kind: Any = pl.String() if source.is_untyped else schema.get(columns.value_name, pl.String())
    kind = kind.inner if isinstance(kind, (pl.List, pl.Array)) else kind
    domain: Domain = Labels(("",))
    if kind.is_integer():
        domain = Numbers(1)
    elif kind.is_numeric():
        domain = Interval(0.0, 1.0, cells=1)
    coding = Coding(domain).as_agreed()
    reading = Reading.of(columns, coding, schema, untyped=source.untyped_columns, where=source.name, agreed=True)
    reader, total = RecordReader(reading), 0.0
    for frame in source.frames(reading.prepare_rows, columns.names, numbers=reading.mixed_numbers):
        for _ in reader.records(frame, source.examples):
            pass
        total += float(frame["count"].cast(pl.Float64).sum()) if "count" in frame.columns else frame.height
    reader.check()
    most = _MOST_COUNTED if columns.weight is None else _MOST_WEIGHT
    if not total < most or reader.rows >= _MOST_RECORDS:
        raise DiscreetError(
            f"the table adds up to {total:.3g} in {reader.rows:,} rows; one client may hold {most:.3g} in {_MOST_RECORDS:,} rows: divide the "
            "counts or weights by one number, or send some of the clients with a secret of their own"
        )
    missing = reader.tally.nulls + reader.tally.not_numbers
    if missing and nulls == "error":
        raise DiscreetError(
            f"column {columns.value_name!r} holds nulls or NaN ({missing:,} in {reader.rows:,} rows); filter them out, or say nulls='drop' "
            "or 'other' (--nulls)"
        )


def fit_coding(coding: Coding, column: str, kind: pl.DataType, *, agreed: bool) -> Coding:
    """The coding of a column of that type: texts that are whole numbers become integers for an integer column.

    Labels that are `agreed` stay texts, and the integers are read as texts.
    """
    match coding.domain:
        case Labels(labels):
            return _fit_labels(coding, labels, column, kind, agreed=agreed)
        case Numbers(size) if not kind.is_integer():
            raise DiscreetError(
                f"column {column!r} holds {kind} values, but a domain size means outcomes 0 to {size - 1}; "
                "cast the column to integers, or give the labels"
            )
        case CellDomain() if not kind.is_numeric():
            raise DiscreetError(f"column {column!r} holds {kind} values, but bounds need numbers; cast the column")
    return coding


def _fit_labels(coding: Coding, labels: tuple[Any, ...], column: str, kind: pl.DataType, *, agreed: bool) -> Coding:
    texts = isinstance(labels[0], str)
    if not texts and kind.is_integer():
        return coding
    if texts:
        if kind in (pl.String, pl.Categorical, pl.Enum) or (agreed and kind.is_integer()):
            return coding
        if kind.is_integer():
            other = None if coding.other is None else _integer_label(coding.other, column)
            return replace(coding, domain=Labels(tuple(_integer_label(label, column) for label in labels)), other=other)
    what = "texts" if texts else "integers"
    raise DiscreetError(
        f"column {column!r} holds {kind} values but the labels are {what}; write its values as the labels are written (1, not 1.0)"
    )


def outcome_codes(coding: Coding, column: str) -> pl.Expr:
    """The values of a column as outcome numbers; values without an outcome as marks."""
    value = pl.col(column)
    match coding.domain:
        case Labels(labels) if isinstance(labels[0], str):
            code = value.cast(pl.String).cast(pl.Enum(list(labels)), strict=False).to_physical().cast(pl.UInt32)
        case Labels(labels):
            known = pl.Series(labels, dtype=pl.Int64)
            code = value.cast(pl.Int64, strict=False).replace_strict(
                known, pl.arange(len(labels), eager=True, dtype=pl.UInt32), default=None
            )
        case Interval() as interval:  # the formula of its `cells_of`, in polars: twice as fast as by batches of numpy
            share = (value.cast(pl.Float64) - interval.low) * interval.per_length
            cell = (share * interval.cells).floor().clip(0, interval.cells - 1)
            return _cell_or_mark(coding, value.cast(pl.Float64), interval.low, interval.high, cell)
        case CellDomain() as line:
            low, high = float(line.edges[0]), float(line.edges[-1])
            return _cell_or_mark(
                coding, value.cast(pl.Float64), low, high, _cell_numbers(coding, value.cast(pl.Float64), line)
            )
        case domain:
            code = pl.when(value.is_between(0, domain.size - 1)).then(value.cast(pl.UInt32, strict=False))
    return _codes_or_marks(value, code)


def _cell_or_mark(coding: Coding, value: pl.Expr, low: float, high: float, cell: pl.Expr) -> pl.Expr:
    """The cell numbers of values; values beyond an end are marked with that end if they are to go there."""
    below, above = (MARK_BELOW, MARK_ABOVE) if coding.other == NEAREST else (MARK_OUTSIDE, MARK_OUTSIDE)
    past = pl.when(value.is_nan()).then(_mark_literal(MARK_NAN)).when(value < low).then(_mark_literal(below))
    inside = past.when(value > high).then(_mark_literal(above)).when(value.is_not_null())
    return _codes_or_marks(value, inside.then(cell.cast(pl.UInt32, strict=False)))


def _cell_numbers(coding: Coding, value: pl.Expr, line: CellDomain) -> pl.Expr:
    """The numbers of values' cells, found as the domain itself finds them; nothing for one between cells, unless it goes to the nearest."""

    def cell_numbers(values: pl.Series) -> pl.Series:
        given = values.fill_null(math.nan).to_numpy()
        cells = line.cells_of(given) if coding.other == NEAREST else line.find_cells(given)
        return pl.Series(values.name, cells, dtype=pl.Int64)

    return value.map_batches(cell_numbers, return_dtype=pl.Int64, is_elementwise=True)


def _codes_or_marks(value: pl.Expr, code: pl.Expr) -> pl.Expr:
    """The codes; for values without one, the mark of the reason."""
    return pl.coalesce(
        code, pl.when(value.is_null()).then(_mark_literal(MARK_MISSING)).otherwise(_mark_literal(MARK_OUTSIDE))
    )


def _mark_literal(mark: np.uint32) -> pl.Expr:
    return pl.lit(int(mark), pl.UInt32)


def _integer_label(label: str, column: str) -> int:
    if not is_whole(label):
        raise DiscreetError(f"column {column!r} holds integers but label {label!r} is none; cast the column to text")
    return int(label)


def resolve_marks(coding: Coding, outcomes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], MisfitCounts]:
    """Outcomes with their marks resolved (MISSING: left out; LISTED: left out, but not its client), and the number of marks."""
    if not outcomes.size or outcomes.max() < FIRST_MARK:
        return outcomes, MisfitCounts()
    left_out = int(MARK_LISTED if coding.lenient else MARK_MISSING)
    outside_to = left_out if coding.other_outcome is None else coding.other_outcome
    missing_to = outside_to if coding.nulls == "other" else left_out
    line = coding.domain if isinstance(coding.domain, LineCells) else None
    becomes = {
        MARK_MISSING: missing_to,
        MARK_NAN: missing_to,
        MARK_UNREADABLE: missing_to,
        MARK_OUTSIDE: outside_to,
        MARK_BELOW: 0 if line is None else int(line.order[0]),
        MARK_ABOVE: coding.size - 1 if line is None else int(line.order[-1]),
    }
    found, counts = outcomes.copy(), {}
    for mark, outcome in becomes.items():
        marked = outcomes == mark
        counts[mark] = int(np.count_nonzero(marked))
        found[marked] = outcome
    outside = counts[MARK_OUTSIDE] + counts[MARK_BELOW] + counts[MARK_ABOVE]
    return found, MisfitCounts(counts[MARK_MISSING], counts[MARK_NAN], counts[MARK_UNREADABLE], outside)


def _check_count_column(columns: Columns, kind: Any, *, listed: bool) -> None:
    name = columns.counts
    if isinstance(kind, (pl.List, pl.Array)) != listed:
        raise DiscreetError(f"columns {columns.value_name!r} and {name!r} are not both lists or both single values")
    inner: Any = _value_type(kind)
    if columns.count is not None and not (inner.is_integer() or inner.is_float()):
        raise DiscreetError(f"count column {name!r} holds {inner} values, not whole numbers; cast it to integers")
    if not inner.is_numeric():
        raise DiscreetError(f"weight column {name!r} holds {inner} values, not numbers")


def _value_type(kind: Any) -> Any:
    """The type of the values of a column, or of those in its lists."""
    return kind.inner if isinstance(kind, (pl.List, pl.Array)) else kind


def _bounded_row_ranges(clients: pl.Series) -> Iterator[tuple[int, int]]:
    """Ranges of rows first <= row < last with a bounded size of names: a dictionary on disk may unpack to far more."""
    if clients.dtype != pl.String or not len(clients):
        yield 0, len(clients)
        return
    ends = clients.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _TEXT, side="right")))
        yield first, last
        first = last
