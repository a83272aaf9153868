"""The rows of a table as records: who, which outcome of the public domain, and how often or how much.

A `Reading` says how the columns of one table are read; a `Reader` reads them, checks every row on the way, counts what has no outcome
of its own and refuses what may not be. Messages count rows; they show values, which are a client's own, only if that was asked for.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.tables.coding import Coding
from discreet.tables.marks import FIRST_MARK, OUTSIDE, UNREADABLE, Tally
from discreet.tables.sources import FEW, Source, few

_UNREAD, _AS_IT_STANDS = "\0unread", "\0as it stands"  # columns of ours: no header can hold them
_TEXT = 1 << 26  # bytes of clients' names to write out at a time

Examples = Callable[[Callable[[Any], Any], str, int], list[Any]]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table: who, what, and optionally how often (`count`) or how much (`weight`)."""

    client: str
    value: str
    count: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.weight is not None:
            raise DiscreetError("give a count column (whole numbers) or a weight column (any numbers), not both")
        names = self.names
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            raise DiscreetError(f"columns {', '.join(names)} are not all different")

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [self.client, self.value, *([] if self.counts is None else [self.counts])]

    @property
    def counts(self) -> str | None:
        """The column that says how often or how much, if there is one."""
        return self.count if self.weight is None else self.weight

    @property
    def amounts(self) -> Any:
        """The numpy type of the numbers in that column: whole numbers if they count, floats if they weigh, whatever they came as."""
        return np.int64 if self.weight is None else np.float64


class Rows(NamedTuple):
    """Some records: clients as an Arrow column, outcome numbers (MISSING: to be left out), and counts if there are any."""

    clients: pa.Array
    outcomes: NDArray[np.uint32]
    counts: NDArray[np.int64] | NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the columns of one table are read: what they hold, and as what."""

    columns: Columns
    coding: Coding
    integer_clients: bool
    listed: bool
    read_as: pl.DataType | None = None  # what texts or truth values stand for, if it is something else
    arrays: tuple[str, ...] = ()
    show_values: bool = False

    @classmethod
    def of(
        cls,
        columns: Columns,
        coding: Coding,
        schema: pl.Schema,
        *,
        untyped: bool = False,
        where: str = "the table",
        agreed: bool = False,
        show_values: bool = False,
    ) -> "Reading":
        """The reading of a table with these columns, which messages call `where`.

        `untyped`: they are all texts (CSV) and get their types from the domain. `agreed`: it is the domain of an agreement.
        """
        for name in columns.names:
            if name not in schema:
                raise DiscreetError(f"column {name!r} is not in {where}; it has {', '.join(map(repr, schema))}")
        kinds = {
            "client": pl.String() if untyped else schema[columns.client],
            "value": pl.String() if untyped else schema[columns.value],
        }
        listed = isinstance(kinds["value"], (pl.List, pl.Array))
        value_kind: Any = kinds["value"].inner if listed else kinds["value"]  # type: ignore[attr-defined]
        truths = value_kind == pl.Boolean and not coding.has_cells
        read_as = coding.text_kind if untyped or truths else value_kind
        if columns.counts is not None and not untyped:
            _check_count_column(columns, schema[columns.counts], listed=listed)
        if not (kinds["client"].is_integer() or kinds["client"] in (pl.String, pl.Categorical, pl.Enum)):
            raise DiscreetError(
                f"column {columns.client!r} holds {kinds['client']} values; clients are texts or integers, cast it to text"
            )
        return cls(
            columns=columns,
            coding=coding.fitted(columns.value, read_as, agreed=agreed),
            integer_clients=kinds["client"].is_integer(),
            listed=listed,
            arrays=tuple(name for name in columns.names if isinstance(schema[name], pl.Array)),
            show_values=show_values,
            read_as=None if read_as == value_kind else read_as,
        )

    def prepared(self, frame: Any) -> Any:
        """A frame (lazy or not) as columns client, outcome and perhaps count: one row for each record.

        What cannot be read becomes a mark, a null client or a negative count: casts that fail would show what they failed on.
        """
        columns = self.columns
        client = pl.col(columns.client)
        prepared = [
            client.cast(pl.Int64 if self.integer_clients else pl.String, strict=False).alias("client"),
            self._outcome().alias("outcome"),
        ]
        if columns.counts is not None:
            count = pl.col(columns.counts)
            number = count.cast(pl.Int64 if columns.weight is None else pl.Float64, strict=False)
            prepared.append(pl.when(count.is_not_null() & number.is_null()).then(-1).otherwise(number).alias("count"))
        return self._with_types(self._one_value_each(frame)).select(prepared)

    def resolved(self, outcomes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Tally]:
        """Outcomes with what their marks are to become, and how many marks there were."""
        return self.coding.resolved(outcomes)

    def refuse(self, tally: Tally, rows: int, examples: Examples) -> None:
        """Raise if values among the rows so far were missing or outside (`tally`) that may not be; `examples` finds a few."""
        column = self.columns.value
        where = f"in {rows:,} rows"
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
                    f"column {column!r} holds {what} ({number:,} {where}); filter them out, or say nulls='drop' or 'other' (--nulls)"
                )
        if tally.outside and self.coding.other is None:
            shown = ""
            if self.show_values:
                found = examples(self.outside, column, FEW + 1)
                shown = f", such as {few(found)}{self._meant(found)}"
            raise DiscreetError(
                f"column {column!r} holds values outside the domain ({tally.outside:,} {where}{shown}); the domain is public and "
                "fixed: correct the records, or say other= (--other) which of its outcomes they become"
                + ("" if shown else "; show_values=True (--show-values) shows some of them")
            )

    def outside(self, frame: Any) -> Any:
        """The rows of a frame whose value is outside the domain."""
        return self._with_types(self._one_value_each(frame)).filter(
            self.coding.outcomes(self.columns.value) == int(OUTSIDE)
        )

    def misfits(self, frame: Any) -> Any:
        """How many rows of a frame have no outcome of their own, by the mark that says why and the value as it stands in the table.

        All others are counted together, under no mark and no value.
        """
        rows = self._one_value_each(frame)
        typed = self._with_types(rows.with_columns(pl.col(self.columns.value).alias(_AS_IT_STANDS)))
        outcome = self._outcome()
        marked = pl.when(outcome >= int(FIRST_MARK))
        found = (marked.then(outcome).alias("mark"), marked.then(pl.col(_AS_IT_STANDS)).alias("value"))
        return typed.select(found).group_by("mark", "value").len("rows")

    def _outcome(self) -> pl.Expr:
        outcome = self.coding.outcomes(self.columns.value)
        if self.read_as is None:
            return outcome
        return pl.when(_UNREAD).then(pl.lit(int(UNREADABLE), pl.UInt32)).otherwise(outcome)

    def _one_value_each(self, frame: Any) -> Any:
        """A frame with one row for each record."""
        for name in self.arrays:
            frame = frame.with_columns(pl.col(name).arr.to_list())
        return self._each_of_the_lists(frame) if self.listed else frame

    def _with_types(self, frame: Any) -> Any:
        """A frame with the types that the domain expects."""
        if self.read_as is None:
            return frame
        value = pl.col(self.columns.value)
        read = value.cast(self.read_as, strict=False)
        return frame.with_columns(read, (value.is_not_null() & read.is_null()).alias(_UNREAD))

    def _each_of_the_lists(self, frame: Any) -> Any:
        """One row for each value of a list; a list that is null or empty is a null, once: else its client would be gone unseen."""
        lists = [name for name in (self.columns.value, self.columns.counts) if name is not None]
        empty = pl.all_horizontal(pl.col(name).list.len().fill_null(0) == 0 for name in lists)
        stand_ins = zip(lists, (pl.Series([[None]]), pl.Series([[1]])), strict=False)
        filled = [pl.when(empty).then(pl.lit(one)).otherwise(pl.col(name)).alias(name) for name, one in stand_ins]
        return frame.with_columns(filled).explode(lists)

    def _meant(self, found: list[Any]) -> str:
        """A label that the first value outside may be a slip of."""
        labels = self.coding.domain.labels
        if labels is None or not found or not isinstance(found[0], str):
            return ""
        near = difflib.get_close_matches(found[0], [str(label) for label in labels], n=1, cutoff=0.75)
        return f" (did you mean {near[0]!r}?)" if near else ""


class Reader:
    """Reads rows once: `rows` of them so far, and in `tally` how many had no outcome of their own."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.rows = 0
        self.tally = Tally()

    def read(self, source: Source, *, room: int) -> Iterator[Rows]:
        """All rows of a source. Reading starts at once, `room` bytes at a time."""
        return self._each(
            source.frames(self._reading.prepared, self._reading.columns.names, room=room), source.examples
        )

    def records(self, frame: pl.DataFrame, examples: Examples) -> Iterator[Rows]:
        """The records of a prepared frame, checked; with missing values and those outside going where they are to go."""
        columns, clients = self._reading.columns, frame["client"]
        if clients.null_count():
            raise DiscreetError(
                f"column {columns.client!r} holds nulls, or integers past 64 bits ({clients.null_count():,} in {frame.height:,} rows): "
                "a record without a client cannot be released; filter those rows out, or cast to text"
            )
        counts = None
        if "count" in frame.columns:
            _check_counts(frame["count"], columns)
            counts = frame["count"].to_numpy()
        outcomes, tally = self._reading.resolved(frame["outcome"].to_numpy())
        self.rows += frame.height
        self.tally += tally
        self._reading.refuse(self.tally, self.rows, examples)
        for first, last in _slices(clients):
            names = clients.slice(first, last - first).to_arrow()
            yield Rows(names, outcomes[first:last], None if counts is None else counts[first:last])

    def _each(self, frames: Iterable[pl.DataFrame], examples: Examples) -> Iterator[Rows]:
        for frame in frames:
            yield from self.records(frame, examples)


def _check_count_column(columns: Columns, kind: Any, *, listed: bool) -> None:
    name = columns.counts
    if isinstance(kind, (pl.List, pl.Array)) != listed:
        raise DiscreetError(f"columns {columns.value!r} and {name!r} are not both lists or both single values")
    inner: Any = kind.inner if listed else kind
    if columns.count is not None and not inner.is_integer():
        raise DiscreetError(f"count column {name!r} holds {inner} values, not whole numbers; pass it as weight")
    if not inner.is_numeric():
        raise DiscreetError(f"weight column {name!r} holds {inner} values, not numbers")


def _check_counts(counts: pl.Series, columns: Columns) -> None:
    name, rows = columns.counts, f"in {len(counts):,} rows"
    if counts.null_count():
        raise DiscreetError(
            f"column {name!r} holds nulls ({counts.null_count():,} {rows}): fill them, or filter those rows out"
        )
    bad = ~(counts.is_finite() & (counts >= 0))
    if bad.any():
        what = "whole numbers from 0 to 2^63 - 1" if columns.weight is None else "finite numbers of at least 0"
        raise DiscreetError(f"column {name!r} holds what are no {what} ({int(bad.sum()):,} {rows}); correct them")


def _slices(clients: pl.Series) -> Iterator[tuple[int, int]]:
    """Rows first <= row < last whose names are not too much at once: a dictionary on disk may stand for far more than it is."""
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
