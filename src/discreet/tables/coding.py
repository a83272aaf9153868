"""A domain on a column: its values as outcome numbers, in expressions of polars, and outcome numbers as the samples that are published;
and the text file that a domain's labels are written in.

A value that is not in the domain becomes a mark (`discreet.tables.marks`); `other` says what happens to those. It is how a column is
read and no part of what the outcomes are: it names one of them, and never adds any. The cell of a number is computed as
`discreet.domain.Interval` does, operation for operation, so that both find the same one.
"""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError, check_count
from discreet.mechanisms.carriers.line import LineCells
from discreet.showing import shortly
from discreet.tables.arrow import as_column, column_of
from discreet.tables.formats import READ
from discreet.tables.marks import ABOVE, BELOW, FIRST_MARK, MISSING, NOT_A_NUMBER, OUTSIDE, UNREADABLE, Tally

LARGEST_DOMAIN = int(FIRST_MARK)
NEAREST = "nearest"
NULLS = ("error", "drop", "other")


@dataclass(frozen=True)
class Coding:
    """How a column is read: the public domain, and what values outside of it and nulls become.

    Args:
        domain: `Labels` (all texts or all integers), `Numbers`, or an `Interval`.
        other: one of the labels or numbers; with an interval "nearest", the cell at the end that a value is past. None: an error.
        nulls: "error", "drop" (they are left out) or "other" (they become that outcome).

    Raises:
        DiscreetError: for a domain that no column can be read with, an `other` that is not in it, or nulls that have nowhere to go.
    """

    domain: Domain
    other: Any = None
    nulls: str = "error"

    def __post_init__(self) -> None:
        if self.domain.size > LARGEST_DOMAIN:
            raise DiscreetError(f"the domain has {self.domain.size:,} outcomes, more than {LARGEST_DOMAIN:,}")
        match self.domain:
            case Labels():
                _check_labels(self.domain)
            case Numbers() | Interval() | LineCells():
                pass
            case _:
                raise DiscreetError(f"no column is read with {shortly(self.domain)}; use Labels, Numbers or Interval")
        if self.other is not None:
            object.__setattr__(self, "other", self._checked_other())
        if self.nulls not in NULLS:
            raise DiscreetError(f"nulls = {self.nulls!r} is not one of {', '.join(NULLS)}")
        if self.nulls == "other" and (self.other is None or self.has_cells):
            raise DiscreetError(
                "nulls = 'other' needs an outcome for them: "
                + ("an interval has none, use 'drop'" if self.has_cells else "give other=")
            )

    def _checked_other(self) -> Any:
        """`other` as the outcome it names. A text that is a whole number names that one."""
        other = self.other
        match self.domain:
            case Interval() | LineCells():
                if other != NEAREST:
                    raise DiscreetError(
                        f"other = {other!r} is no cell; with bounds use {NEAREST!r}: a value outside goes to the cell at that end"
                    )
            case Numbers(size):
                if isinstance(other, str):
                    other = int(other) if is_whole(other) else -1
                if not 0 <= check_count("other", other, least=-(10**18)) < size:
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the outcomes 0 to {size - 1}; "
                        f"make the domain one larger and use {size}"
                    )
            case Labels(labels):
                if isinstance(labels[0], int) and isinstance(other, str) and is_whole(other):
                    other = int(other)
                if other not in labels or isinstance(other, bool):
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the {len(labels):,} labels; it is an outcome like the others: add it to the "
                        "domain (a line of the file, an entry of the list)"
                    )
        return other

    @property
    def size(self) -> int:
        """How many outcomes there are."""
        return self.domain.size

    @property
    def other_outcome(self) -> int | None:
        """The outcome that values outside become; None with an interval, where a value goes to the cell at its own end."""
        if self.other is None or self.has_cells:
            return None
        return int(self.domain.numbers([self.other])[0])

    @property
    def has_cells(self) -> bool:
        """Whether a sample is a point of the cell that was drawn."""
        return isinstance(self.domain, (Interval, LineCells))

    @property
    def text_kind(self) -> pl.DataType:
        """What texts in a table without types stand for."""
        match self.domain:
            case Interval() | LineCells():
                return pl.Float64()
            case Labels(labels) if isinstance(labels[0], str):
                return pl.String()
            case _:
                return pl.Int64()

    @property
    def sample_type(self) -> pa.DataType:
        """Of a column of samples."""
        return {pl.Float64(): pa.float64(), pl.String(): pa.string(), pl.Int64(): pa.int64()}[self.text_kind]

    def fitted(self, column: str, kind: pl.DataType, *, agreed: bool) -> "Coding":
        """The coding of a column of that type: texts that are whole numbers become integers for an integer column.

        Labels that are `agreed` stay texts, and the integers are read as texts.
        """
        match self.domain:
            case Labels(labels):
                return self._fitted_labels(labels, column, kind, agreed=agreed)
            case Numbers(size) if not kind.is_integer():
                raise DiscreetError(
                    f"column {column!r} holds {kind} values, but a domain size means outcomes 0 to {size - 1}; "
                    "cast the column to integers, or give the labels"
                )
            case Interval() | LineCells() if not kind.is_numeric():
                raise DiscreetError(f"column {column!r} holds {kind} values, but bounds need numbers; cast the column")
        return self

    def _fitted_labels(self, labels: tuple[Any, ...], column: str, kind: pl.DataType, *, agreed: bool) -> "Coding":
        texts = isinstance(labels[0], str)
        if not texts and kind.is_integer():
            return self
        if texts:
            if kind in (pl.String, pl.Categorical, pl.Enum) or (agreed and kind.is_integer()):
                return self
            if kind.is_integer():
                other = None if self.other is None else _whole(self.other, column)
                return replace(self, domain=Labels(tuple(_whole(label, column) for label in labels)), other=other)
        what = "texts" if texts else "integers"
        raise DiscreetError(f"column {column!r} holds {kind} values but the labels are {what}; cast the column")

    def outcomes(self, column: str) -> pl.Expr:
        """Values as outcome numbers; those that have none as marks."""
        value = pl.col(column)
        match self.domain:
            case Labels(labels) if isinstance(labels[0], str):
                code = value.cast(pl.String).cast(pl.Enum(list(labels)), strict=False).to_physical().cast(pl.UInt32)
            case Labels(labels):
                known = pl.Series(labels, dtype=pl.Int64)
                code = value.cast(pl.Int64, strict=False).replace_strict(
                    known, pl.arange(len(labels), eager=True, dtype=pl.UInt32), default=None
                )
            case Interval() as interval:
                share = (value.cast(pl.Float64) - interval.low) * interval.per_length
                cell = (share * interval.cells).floor().clip(0, interval.cells - 1)
                return self._cell_of(value.cast(pl.Float64), interval.low, interval.high, cell)
            case LineCells() as line:
                low, high = float(line.edges[0]), float(line.edges[-1])
                return self._cell_of(value.cast(pl.Float64), low, high, _cells_of(value.cast(pl.Float64), line))
            case domain:
                code = pl.when(value.is_between(0, domain.size - 1)).then(value.cast(pl.UInt32, strict=False))
        return _marked(value, code)

    def _cell_of(self, value: pl.Expr, low: float, high: float, cell: pl.Expr) -> pl.Expr:
        """Values as the numbers of their cells; those past an end are marked with the end they are past, if they are to go there."""
        below, above = (BELOW, ABOVE) if self.other == NEAREST else (OUTSIDE, OUTSIDE)
        past = pl.when(value.is_nan()).then(_mark(NOT_A_NUMBER)).when(value < low).then(_mark(below))
        inside = past.when(value > high).then(_mark(above)).when(value.is_not_null())
        return _marked(value, inside.then(cell.cast(pl.UInt32, strict=False)))

    def resolved(self, outcomes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Tally]:
        """Outcomes with what their marks are to become (MISSING: left out), and how many there were."""
        if not outcomes.size or outcomes.max() < FIRST_MARK:
            return outcomes, Tally()
        left_out = int(MISSING)
        outside_to = left_out if self.other_outcome is None else self.other_outcome
        missing_to = outside_to if self.nulls == "other" else left_out
        becomes = {
            MISSING: missing_to,
            NOT_A_NUMBER: missing_to,
            UNREADABLE: left_out,
            OUTSIDE: outside_to,
            BELOW: int(self.domain.order[0]) if isinstance(self.domain, LineCells) else 0,
            ABOVE: int(self.domain.order[-1]) if isinstance(self.domain, LineCells) else self.size - 1,
        }
        found, counts = outcomes.copy(), {}
        for mark, outcome in becomes.items():
            marked = outcomes == mark
            counts[mark] = int(np.count_nonzero(marked))
            found[marked] = outcome
        outside = counts[OUTSIDE] + counts[BELOW] + counts[ABOVE]
        return found, Tally(counts[MISSING], counts[NOT_A_NUMBER], counts[UNREADABLE], outside)

    def samples(self, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
        """Outcome numbers as they are published: labels, the numbers, or the point `within` each cell."""
        match self.domain:
            case Labels(labels):
                return column_of(labels, self.sample_type).take(as_column(outcomes))
            case Interval() | LineCells() as cells:
                return as_column(cells.within(outcomes, within))
            case _:
                return as_column(outcomes)


def _check_labels(domain: Labels) -> None:
    for kind in (str, int):
        if all(isinstance(label, kind) and not isinstance(label, bool) for label in domain.labels):
            return
    if all(isinstance(label, bool) for label in domain.labels):
        raise DiscreetError(
            "labels are truth values; write 'false' and 'true', or give the number of outcomes 2: 0 and 1"
        )
    raise DiscreetError("labels are neither all texts nor all integers; write them all the same way")


def _cells_of(value: pl.Expr, line: LineCells) -> pl.Expr:
    """The numbers of values' cells, found as `LineCells` finds them."""

    def found(values: pl.Series) -> pl.Series:
        return pl.Series(values.name, line.cells_of(values.fill_null(math.nan).to_numpy()), dtype=pl.Int64)

    return value.map_batches(found, return_dtype=pl.Int64, is_elementwise=True)


def _marked(value: pl.Expr, code: pl.Expr) -> pl.Expr:
    """Codes as they are; where there is none, the mark that says why."""
    return pl.coalesce(code, pl.when(value.is_null()).then(_mark(MISSING)).otherwise(_mark(OUTSIDE)))


def _mark(mark: np.uint32) -> pl.Expr:
    return pl.lit(int(mark), pl.UInt32)


def _whole(label: str, column: str) -> int:
    if not is_whole(label):
        raise DiscreetError(f"column {column!r} holds integers but label {label!r} is none; cast the column to text")
    return int(label)


def read_labels(path: str | Path) -> tuple[str, ...]:
    """The labels in a text file, one on each line. A table is refused: it would publish what it holds as labels."""
    if Path(path).suffix.lower() in READ:
        raise DiscreetError(
            f"domain file {path} is called like a table; a domain is public, a text file with one label on each line"
        )
    return tuple(read_lines(path, "domain", each="a label"))


def read_lines(path: str | Path, what: str, *, each: str) -> list[str]:
    """The lines of a UTF-8 text file, none of them empty."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DiscreetError(f"{what} file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DiscreetError(f"{what} file {path} is not UTF-8 text") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DiscreetError(f"{path}, line {number} is empty; each line is {each}")
    return lines


def is_whole(text: str) -> bool:
    """Whether a text is an integer of 64 bits, written the usual way (so that no two texts mean the same one)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63
