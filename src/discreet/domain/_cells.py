"""Domains of cells on a line: `Interval`, [low, high] in equal cells, and `Bins`, cells between any increasing edges.

`CellDomain` is what they share with the cells of a continuous family (`discreet.mechanisms.LineCells`): `find_cells` gives the cell of a
number, for records in Python, for JSON and for columns of Arrow alike.

In an `Interval` a value x is in cell floor((x - low) * (1/(high - low)) * cells), and `high` is in the last one. The formula is in
floating point, in this order of operations. It decides where a value on an edge belongs, here as in a table's column; the printed edges
do not. (polars divides a column by a number in the same way: it multiplies by the reciprocal.) Cells that floats near the bounds cannot
tell apart are refused, so that the middle of every cell lies in it.

A curator counts the samples of a continuous family with `Bins`.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.labelled import refuse_masked_array
from discreet._base.showing import short_repr
from discreet.domain._domain import LARGEST_VALUE, Domain, Numbers, first_few_as_text, records_as_list
from discreet.errors import DiscreetError, Range, check_count

MOST_CELLS = 2**40
_APART = 4.0  # least width of a cell, in spacings of floats
_LARGEST = float(np.finfo(np.float64).max)
_ORDINARY = 1e-200  # least length of an interval without subnormal cells
FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)
_PUBLIC = "bounds are public: take them from what the quantity can be, not from the data"


class CellDomain(Domain[float]):
    """Outcomes that are cells between the ends of `edges`. A value has the number of its cell, and a number the middle of it as sample."""

    @property
    @abstractmethod
    def edges(self) -> NDArray[np.float64]:
        """The size + 1 ends of the cells, in order."""

    @property
    def labels(self) -> None:
        """None: cells have names for people, but are known by the values in them."""
        return

    @cached_property
    def names(self) -> list[str]:
        """The ends of every cell, with as many digits as tell them apart."""
        return cell_names(self.edges)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The middles of the cells."""
        return _as_read_only(cell_middles(self.edges))

    @property
    def first_and_last_cell(self) -> tuple[int, int]:
        """The numbers of the first cell and of the last one along the line."""
        return 0, self.size - 1

    @abstractmethod
    def cell_numbers_of_values(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value that lies between the first end and the last; some cell for any other."""

    @abstractmethod
    def points_at_positions_in_cells(
        self, numbers: NDArray[np.int64], place: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Points of the cells: `place` in [0, 1) says where in each, 0 being its lower end."""

    points_within_cells = OldName("points_at_positions_in_cells")

    def find_cells(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value, -1 for NaN and for a value in no cell."""
        inside = (values >= self.edges[0]) & (values <= self.edges[-1])
        return np.where(inside, self.cell_numbers_of_values(values), -1)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The cell of every value; one in no cell is an error that names the first few."""
        values = as_flat_points(records)
        cells = self.find_cells(values)
        if (cells < 0).any():
            raise DiscreetError(self._values_outside_message(values[cells < 0]))
        return cells

    def _values_outside_message(self, values: NDArray[np.float64]) -> str:
        return f"records hold {values[0]:g}, which lies in no cell: they reach from {self.edges[0]:g} to {self.edges[-1]:g}"

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The cell of every number, -1 for what lies in no cell or is no number."""
        return self.find_cells(records_as_floats_or_nan(records))

    def _samples_of_outcomes(self, numbers: NDArray[np.int64]) -> float | NDArray[np.float64]:
        """The middles of the cells; a float for a 0-d array."""
        middles = self.values[numbers]
        return middles if middles.ndim else float(middles)

    def outcome_numbers_of_labels(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        """The numbers of cells: a dict calls a cell by its number, since two values may lie in one."""
        return Numbers(self.size).numbers(labels)


@dataclass(frozen=True)
class Interval(CellDomain):
    """The numbers of [low, high], whose outcomes are equal cells: cell i reaches from low + i (high - low)/cells to the next.

    Args:
        low: the smallest possible value.
        high: the largest; it belongs to the last cell.
        cells: the number of cells.

    Raises:
        DiscreetError: for bounds that enclose no interval, or cells too narrow for floats.

    Example:
        >>> minutes = Interval(0, 60, cells=4)
        >>> minutes.numbers([0, 14.9, 15, 60]).tolist()
        [0, 0, 1, 3]
    """

    low: float
    high: float
    cells: int = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", FINITE.check("low", self.low, _PUBLIC))
        object.__setattr__(self, "high", FINITE.check("high", self.high, _PUBLIC))
        object.__setattr__(self, "cells", check_count("cells", self.cells, most=MOST_CELLS))
        bounds = f"bounds {self.low:g} and {self.high:g}"
        if not self.low < self.high:
            raise DiscreetError(f"{bounds} do not enclose an interval; give the lower one first")
        if not (self._length < math.inf and self._length > 1.0 / _LARGEST):
            raise DiscreetError(
                f"{bounds} do not enclose an interval whose length and its reciprocal a float can hold; scale the values"
            )
        if self._length / self.cells < _APART * math.ulp(max(abs(self.low), abs(self.high))):
            raise DiscreetError(
                f"{bounds} in {self.cells:,} cells: floats cannot tell so many apart there; take fewer, or subtract an offset"
            )

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.cells

    @property
    def _length(self) -> float:
        return self.high - self.low

    @property
    def inverse_length(self) -> float:
        """1/(high - low), which turns a distance from `low` into a share of the interval."""
        return 1.0 / self._length

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The cells + 1 ends of the cells, in order."""
        if _ORDINARY < self._length < 1.0 / _ORDINARY:
            return _as_read_only(np.linspace(self.low, self.high, self.cells + 1))
        # computed without overflow or loss of digits
        starts = self.points_at_positions_in_cells(np.arange(self.cells), 0.0)
        return _as_read_only(np.append(starts, self.high))

    def find_cells(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value, -1 for NaN and for a value outside [low, high]."""
        inside = (values >= self.low) & (values <= self.high)  # the edges may be too many to list
        return np.where(inside, self.cell_numbers_of_values(np.where(inside, values, self.low)), -1)

    def _values_outside_message(self, values: NDArray[np.float64]) -> str:
        return (
            f"values outside [{self.low:g}, {self.high:g}]: {first_few_as_text(values.tolist())}; the bounds are public and fixed, "
            "correct the values or decide what becomes of them first"
        )

    def cell_numbers_of_values(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value, which lies in [low, high]."""
        cells = np.floor((values - self.low) * self.inverse_length * self.cells)
        return np.clip(cells, 0, self.cells - 1).astype(np.int64)

    def _samples_of_outcomes(self, numbers: NDArray[np.int64]) -> float | NDArray[np.float64]:
        """The middles of the cells; a float for a 0-d array."""
        middles = self.points_at_positions_in_cells(numbers, 0.5)
        return middles if middles.ndim else float(middles)

    def points_at_positions_in_cells(
        self, numbers: NDArray[np.int64], place: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Points of the cells; `place` in [0, 1) is the position in each, 0 being its lower end."""
        return np.clip(self.low + (numbers + place) / self.cells * self._length, self.low, self.high)

    @property
    def terms(self) -> dict[str, Any]:
        """The number of cells, and the bounds."""
        return {"size": self.cells, "interval": [self.low, self.high]}


def as_flat_points(records: Any, name: str = "records") -> NDArray[np.float64]:
    """Numbers as a new flat array; NaN and other values are errors."""
    refuse_masked_array(records, name)
    entries = records if isinstance(records, np.ndarray) else records_as_list(records)
    try:
        array = np.asarray(entries)
        if not isinstance(records, np.ndarray) and _holds_truth_values(entries, array.ndim):
            raise TypeError
        array = array.ravel()
        if array.dtype.kind == "O":  # may contain whole numbers of more than 64 bits
            if not all(number is None or _is_number(number) for number in array):
                raise TypeError
            array = np.array([math.nan if number is None else float(number) for number in array])
        if array.dtype.kind not in "fiu":
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"{name} is not a list of numbers; pass one value for each") from None
    values = array.astype(np.float64)
    if np.isnan(values).any():
        raise DiscreetError(f"{name} holds NaN; drop what has no value first")
    return values


def records_as_floats_or_nan(records: Any) -> NDArray[np.float64]:
    """Every record as a float; NaN for a record that is not a number."""
    return np.array([_record_as_float_or_nan(record) for record in records_as_list(records)], dtype=np.float64)


def whole_floats_as_integers(records: Iterable[Any]) -> list[Any]:
    """The records; floats that are whole numbers as integers, which JSON and tables with gaps do not tell apart."""
    return [
        int(record)
        if isinstance(record, (float, np.floating)) and math.isfinite(record) and record == int(record)
        else record
        for record in records_as_list(records)
    ]


def _is_number(record: Any) -> bool:
    """Whether a record is a number. A truth value is none, on a device and in a table alike."""
    return isinstance(record, (Real, Decimal, np.floating)) and not isinstance(record, (bool, np.bool_))


def _holds_truth_values(entries: Any, depth: int) -> bool:
    """Whether a list, or lists of that depth, hold truth values, which numpy takes for 0 and 1 beside numbers."""
    flat = entries if depth == 1 else np.asarray(entries, dtype=object).ravel()
    return not {bool, np.bool_}.isdisjoint(map(type, flat))


def _record_as_float_or_nan(record: Any) -> float:
    if not _is_number(record):
        return math.nan
    number: Any = record
    try:
        return float(number)
    except OverflowError:  # beyond every float: outside on its side
        return math.inf if number > 0 else -math.inf
    except (ValueError, ArithmeticError):  # a signalling NaN
        return math.nan


def cell_names(edges: NDArray[np.float64]) -> list[str]:
    """ "low to high" of every cell between increasing edges."""
    digits = max(0, 2 - math.floor(math.log10(float(np.diff(edges).min()))))
    texts = [f"{end:.{digits}f}" if digits < 12 and abs(end) < 1e12 else f"{end:.6g}" for end in edges.tolist()]
    return [f"{low} to {high}" for low, high in itertools.pairwise(texts)]


def cell_middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of every cell."""
    low, high = edges[:-1], edges[1:]
    return np.asarray(0.5 * (low + high) if max(-edges[0], edges[-1]) < _LARGEST / 2 else 0.5 * low + 0.5 * high)


def _as_read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


class Bins(CellDomain):
    """Cells between increasing edges; each holds its lower edge, and the last one both.

    They count the samples of a continuous family. They cannot stand in an agreement: agree on the equal cells of an `Interval`.

    Args:
        edges: public numbers, one more than there are cells.

    Raises:
        DiscreetError: for edges that do not increase, or exceed 1e100.
    """

    def __init__(self, edges: Any) -> None:
        ends = as_flat_points(edges, "edges")
        if len(ends) < 2 or not (np.abs(ends) <= LARGEST_VALUE).all() or not (ends[1:] > ends[:-1]).all():
            raise DiscreetError(
                f"edges are not increasing numbers up to {LARGEST_VALUE:g} in size, one more than there are cells"
            )
        ends.setflags(write=False)
        self._edges = ends

    @property
    def edges(self) -> NDArray[np.float64]:
        """The size + 1 ends of the cells, in order."""
        return self._edges

    def __repr__(self) -> str:
        return f"Bins({short_repr(self.edges)})"

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1

    def cell_numbers_of_values(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value; values lie between the ends."""
        return np.asarray(np.searchsorted(self.edges[1:-1], values, side="right"))  # NaN: past them all

    def points_at_positions_in_cells(
        self, numbers: NDArray[np.int64], place: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Points of the cells; `place` in [0, 1) is the position in each, 0 being its lower end."""
        low, high = self.edges[numbers], self.edges[numbers + 1]
        return np.asarray(np.minimum(low + (high - low) * place, high))

    @property
    def terms(self) -> NoReturn:
        """Raises an error: bins cannot stand in an agreement."""
        raise DiscreetError("bins cannot stand in an agreement; agree on equal cells: Interval(low, high, cells=...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((Bins, self.edges.tobytes()))
