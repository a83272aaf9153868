"""What a value may be. The domain is public and explicit: inferring labels, bounds or bins from the data would leak them.

Each domain turns a column of values into outcome numbers, and outcome numbers into the samples that are published. A value
that is not in it becomes a mark (`discreet.tables.marks`); what happens to those is the user's to say.
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

from discreet.errors import DiscreetError, Range, check_count
from discreet.families import Simplex
from discreet.labelled import unboxed
from discreet.showing import shown_shortly
from discreet.tables.buffers import as_column, column_of
from discreet.tables.formats import READ
from discreet.tables.marks import ABOVE, BELOW, FIRST_MARK, MISSING, NOT_A_NUMBER, OUTSIDE

LARGEST_DOMAIN = int(FIRST_MARK)
NEAREST = "nearest"
_TABLES = {*READ, ".tsv", ".json", ".jsonl"}
_FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)


@shown_shortly
@dataclass(frozen=True)
class Labels:
    """A list of labels, all texts or all integers; `other` is the label that every value not listed becomes."""

    labels: tuple[Any, ...]
    other: Any = None

    def __post_init__(self) -> None:
        if self.other is not None and self.other not in self.labels:
            object.__setattr__(self, "labels", (*self.labels, self.other))
        if not (_all(self.labels, str) or _all(self.labels, int)):
            raise DiscreetError("labels are neither all texts nor all integers; write them all the same way")
        Simplex(self.labels)  # refuses an empty list and duplicates by name

    def fitted(self, column: str, kind: pl.DataType, *, agreed: bool) -> "Labels":
        """These labels for a column of that type: texts that are whole numbers become integers for an integer column.

        Labels that are `agreed` stay texts, and the integers are read as texts.
        """
        if isinstance(self.labels[0], int) and kind.is_integer():
            return self
        if isinstance(self.labels[0], str):
            if kind in (pl.String, pl.Categorical, pl.Enum) or (agreed and kind.is_integer()):
                return self
            if kind.is_integer():
                other = None if self.other is None else _whole(self.other, column)
                return replace(self, labels=tuple(_whole(label, column) for label in self.labels), other=other)
        what = "texts" if isinstance(self.labels[0], str) else "integers"
        raise DiscreetError(f"column {column!r} holds {kind} values but the labels are {what}; cast the column")

    @property
    def family(self) -> Simplex:
        return Simplex(self.labels)

    @property
    def interval(self) -> None:
        return None

    @property
    def other_outcome(self) -> int | None:
        """The outcome that values outside become."""
        return None if self.other is None else self.labels.index(self.other)

    def outcomes(self, column: str) -> pl.Expr:
        """Values as outcome numbers."""
        value = pl.col(column)
        if isinstance(self.labels[0], str):
            code = value.cast(pl.String).cast(pl.Enum(list(self.labels)), strict=False).to_physical().cast(pl.UInt32)
        else:
            known = pl.Series(self.labels, dtype=pl.Int64)
            code = value.cast(pl.Int64, strict=False).replace_strict(
                known, pl.arange(len(self.labels), eager=True, dtype=pl.UInt32), default=None
            )
        return _marked(value, code)

    def samples(self, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
        """Outcome numbers as labels."""
        return column_of(self.labels, self.sample_type).take(as_column(outcomes))

    @property
    def sample_type(self) -> pa.DataType:
        return pa.string() if isinstance(self.labels[0], str) else pa.int64()


@dataclass(frozen=True)
class Numbers:
    """The whole numbers 0 to size - 1; `other` is the one that every other value becomes."""

    size: int
    other: int | None = None

    def __post_init__(self) -> None:
        check_count("domain size", self.size, fix="a law needs at least one outcome")
        if self.size > LARGEST_DOMAIN:
            raise DiscreetError(f"domain size = {self.size} is more than {LARGEST_DOMAIN}")
        if self.other is not None and not 0 <= check_count("other", self.other, least=0) < self.size:
            raise DiscreetError(
                f"other = {self.other} is not one of the outcomes 0 to {self.size - 1}; "
                f"make the domain one larger and use {self.size}"
            )

    def fitted(self, column: str, kind: pl.DataType, *, agreed: bool) -> "Numbers":
        """The same, if the column holds integers."""
        if not kind.is_integer():
            raise DiscreetError(
                f"column {column!r} holds {kind} values, but a domain size means outcomes 0 to {self.size - 1}; "
                "cast the column to integers, or give the labels"
            )
        return self

    @property
    def family(self) -> Simplex:
        return Simplex(self.size)

    @property
    def interval(self) -> None:
        return None

    @property
    def other_outcome(self) -> int | None:
        """The outcome that values outside become."""
        return self.other

    def outcomes(self, column: str) -> pl.Expr:
        """Values as outcome numbers: themselves."""
        value = pl.col(column)
        inside = value.is_between(0, self.size - 1)
        return _marked(value, pl.when(inside).then(value.cast(pl.UInt32, strict=False)))

    def samples(self, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
        """Outcome numbers as they are."""
        return as_column(outcomes)

    @property
    def sample_type(self) -> pa.DataType:
        return pa.int64()


@dataclass(frozen=True)
class Cells:
    """[low, high] in equal cells. A sample is a cell, drawn exactly, and then a uniform point of it.

    `other` = "nearest" puts a value outside into the cell at that end.
    """

    low: float
    high: float
    number: int
    other: str | None = None

    def __post_init__(self) -> None:
        fix = "bounds are public: take them from what the quantity can be, not from the data"
        object.__setattr__(self, "low", _FINITE.check("low", self.low, fix))
        object.__setattr__(self, "high", _FINITE.check("high", self.high, fix))
        check_count("cells", self.number)
        if self.number > LARGEST_DOMAIN:
            raise DiscreetError(f"cells = {self.number} is more than {LARGEST_DOMAIN}")
        if not self.low < self.high or not self.high - self.low < math.inf:
            raise DiscreetError(
                f"bounds {self.low:g} and {self.high:g} do not enclose an interval; give the lower one first"
            )
        if self.other not in (None, NEAREST):
            raise DiscreetError(
                f"other = {self.other!r} is no cell; with bounds use {NEAREST!r}: a value outside goes to the cell at that end"
            )

    def fitted(self, column: str, kind: pl.DataType, *, agreed: bool) -> "Cells":
        """The same, if the column holds numbers."""
        if not kind.is_numeric():
            raise DiscreetError(f"column {column!r} holds {kind} values, but bounds need numbers; cast the column")
        return self

    @property
    def family(self) -> Simplex:
        return Simplex(self.number)

    @property
    def interval(self) -> tuple[float, float]:
        return (self.low, self.high)

    @property
    def edges(self) -> NDArray[np.float64]:
        """The ends of the cells, in order."""
        return np.linspace(self.low, self.high, self.number + 1)

    @property
    def other_outcome(self) -> None:
        """None: with "nearest" a value goes to the cell at its own end."""
        return

    def outcomes(self, column: str) -> pl.Expr:
        """Values as cell numbers; those past an end are marked with the end they are past, if they are to go there."""
        value = pl.col(column).cast(pl.Float64)
        cell = ((value - self.low) / (self.high - self.low) * self.number).floor().clip(0, self.number - 1)
        below, above = (BELOW, ABOVE) if self.other == NEAREST else (OUTSIDE, OUTSIDE)
        past = pl.when(value.is_nan()).then(_mark(NOT_A_NUMBER)).when(value < self.low).then(_mark(below))
        inside = past.when(value > self.high).then(_mark(above)).when(value.is_not_null())
        return _marked(value, inside.then(cell.cast(pl.UInt32, strict=False)))

    def samples(self, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
        """Cell numbers as points: uniform in the cell."""
        points = self.low + (outcomes + within) / self.number * (self.high - self.low)
        return as_column(np.clip(points, self.low, self.high))

    @property
    def sample_type(self) -> pa.DataType:
        return pa.float64()


Domain = Labels | Numbers | Cells


def as_domain(domain: Any, other: Any = None) -> Domain:
    """A domain from what a user passes: a number of outcomes, a list of labels, or a domain."""
    match domain:
        case Labels() | Numbers() | Cells():
            return domain if other is None else replace(domain, other=other)
        case bool() | str() | bytes():
            raise DiscreetError(
                f"domain = {domain!r} is not a number of outcomes, a list of labels or Cells(low, high, number)"
            )
        case int() | np.integer():
            return Numbers(int(domain), other)
    try:
        labels = tuple(label.item() if isinstance(label, np.generic) else label for label in unboxed(domain))
    except TypeError:
        raise DiscreetError(
            f"domain = {domain!r} is not a number of outcomes, a list of labels or Cells(low, high, number)"
        ) from None
    return Labels(labels, other)


def is_whole(text: str) -> bool:
    """Whether a text is an integer of 64 bits, written the usual way (so that no two texts mean the same one)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63


def read_labels(path: str | Path) -> tuple[str, ...]:
    """The labels in a text file, one on each line. A table is refused: it would publish what it holds as labels."""
    if Path(path).suffix.lower() in _TABLES:
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


def _marked(value: pl.Expr, code: pl.Expr) -> pl.Expr:
    """Codes as they are; where there is none, the mark that says why."""
    return pl.coalesce(code, pl.when(value.is_null()).then(_mark(MISSING)).otherwise(_mark(OUTSIDE)))


def _mark(mark: np.uint32) -> pl.Expr:
    return pl.lit(int(mark), pl.UInt32)


def _all(labels: tuple[Any, ...], kind: type) -> bool:
    return all(isinstance(label, kind) and not isinstance(label, bool) for label in labels)


def _whole(label: str, column: str) -> int:
    if not is_whole(label):
        raise DiscreetError(f"column {column!r} holds integers but label {label!r} is none; cast the column to text")
    return int(label)
