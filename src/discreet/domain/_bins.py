"""Cells of the line between any increasing edges, equally wide or not: how a curator counts the samples of a continuous family."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._showing import short_repr
from discreet.domain._interval import cell_middles, cell_names, flat_points, numbers_or_nan
from discreet.domain._labels import LARGEST_VALUE
from discreet.domain._numbers import Numbers
from discreet.domain._role import Domain
from discreet.errors import DiscreetError


class Bins(Domain[float]):
    """Cells between increasing edges; each holds its lower edge, and the last one both.

    Samples of a continuous family are counted with them. They stand in no agreement: there it is the equal cells of an `Interval`.

    Args:
        edges: public numbers, one more than there are cells.

    Raises:
        DiscreetError: for edges that do not increase, or are past 1e100.
    """

    def __init__(self, edges: Any) -> None:
        ends = flat_points(edges, "edges")
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

    @property
    def labels(self) -> None:
        """None: cells are known by the values in them."""
        return

    @cached_property
    def names(self) -> list[str]:
        """The ends of every cell."""
        return cell_names(self.edges)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The middles of the cells."""
        return cell_middles(self.edges)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The cell of every value; one in no cell is an error."""
        found = flat_points(records)
        inside = (found >= self.edges[0]) & (found <= self.edges[-1])
        if not inside.all():
            raise DiscreetError(
                f"records hold {found[~inside][0]:g}, which lies in no cell: they reach from {self.edges[0]:g} to {self.edges[-1]:g}"
            )
        return self.cells_of(found)

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The cell of every number, -1 for what lies in no cell or is no number."""
        values = numbers_or_nan(records)
        inside = (values >= self.edges[0]) & (values <= self.edges[-1])
        return np.where(inside, self.cells_of(values), -1)

    def cells_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value, which lies between the ends."""
        return np.asarray(np.searchsorted(self.edges[1:-1], values, side="right"))  # NaN: past them all

    def within(self, numbers: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points of the cells: `place` in [0, 1) says where in each, 0 being its lower end."""
        low, high = self.edges[numbers], self.edges[numbers + 1]
        return np.asarray(np.minimum(low + (high - low) * place, high))

    def to_samples(self, numbers: NDArray[np.int64]) -> float | NDArray[np.float64]:
        """The middles of the cells; a float for a 0-d array."""
        return self.values[numbers] if numbers.ndim else float(self.values[int(numbers)])

    def places(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        """The numbers of cells: a dict calls a cell by its number, since two values may lie in one."""
        return Numbers(self.size).numbers(labels)

    @property
    def terms(self) -> NoReturn:
        """An error: bins stand in no agreement."""
        raise DiscreetError("bins stand in no agreement; agree on equal cells: Interval(low, high, cells=...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((Bins, self.edges.tobytes()))
