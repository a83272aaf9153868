"""`LineCells`: the cells of a continuous family on a line, as a domain for columns of numbers.

A value is read as the number of its cell, and a released number is a point of its cell. A client that is a list of values is its empirical
distribution on the cells. It is released like a client of a finite family, with the integers of the family's own sampler. The point of a cell
is uniform in the family's coordinate, and depends on the cell alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import ORDER, Panels
from discreet.domain import CellDomain, cell_middles, cell_names
from discreet.errors import DiscreetError
from discreet.families import CellPartition
from discreet.mechanisms._cells_and_points import CellAtoms
from discreet.mechanisms._sampler import AnyFamily, Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_END = 1e-12  # of a cell, kept clear at its ends: one of them may be at infinity


class LineCells(CellDomain):
    """The cells of a partition of a line. Numbers are those of the cells, which need not go up along the line.

    Args:
        partition: that of a continuous family in one dimension.
    """

    def __init__(self, partition: CellPartition) -> None:
        self._partition = partition
        self.order: Integers = np.argsort(partition.panels.lower[:, 0])

    @classmethod
    def of(cls, sampler: Sampler[AnyFamily]) -> LineCells:
        """The cells by which a sampler releases on a line; any other sampler is an error."""
        carrier = sampler.carrier
        if not isinstance(carrier, CellAtoms) or carrier.family.dim != 1:
            raise DiscreetError(
                f"{sampler!r} does not release by the cells of a line, as a column of numbers needs; release its clients "
                "one by one, sampler.release(family.law(records=...))"
            )
        return cls(carrier.partition)

    def __repr__(self) -> str:
        return f"LineCells(<{self.size:,} cells of {self._partition.family!r}>)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LineCells):
            return False
        return np.array_equal(self.order, other.order) and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((LineCells, self.edges.tobytes()))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self._partition)

    @property
    def end_cells(self) -> tuple[int, int]:
        """The numbers of the first cell and of the last one along the line."""
        return int(self.order[0]), int(self.order[-1])

    @cached_property
    def masses(self) -> Floats:
        """The reference masses of the cells along the line."""
        return np.asarray(self._partition.masses[self.order])

    def share_below(self, places: Integers, values: Floats) -> Floats:
        """The share of the reference in each of these cells along the line that lies below a value: 0 and 1 past its ends."""
        family, cells = self._partition.family, self._partition.panels[self.order[places]]
        inside = np.clip(values, self.edges[places], self.edges[places + 1])[:, None]
        t = np.clip(family.chart.coordinates(inside), cells.lower, cells.upper)
        below, above = (
            family.nodes_of(part, ORDER[1]).masses.sum(axis=1)
            for part in (Panels(cells.lower, t), Panels(t, cells.upper))
        )
        return np.asarray(np.divide(below, below + above, out=np.zeros_like(below), where=below + above > 0.0))

    @cached_property
    def edges(self) -> Floats:
        """The size + 1 ends of the cells along the line."""
        panels = self._partition.panels
        starts, last = panels.lower[self.order], panels.upper[self.order[-1:]]
        with np.errstate(divide="ignore"):  # an end at infinity
            return np.asarray(self._partition.family.chart.points(np.concatenate([starts, last]))[:, 0])

    @cached_property
    def names(self) -> list[str]:
        """The ends of every cell."""
        along = cell_names(self.edges)
        return [along[place] for place in np.argsort(self.order)]

    @cached_property
    def values(self) -> Floats:
        """The middles of the cells."""
        return cell_middles(self.edges)[np.argsort(self.order)]

    def cells_of(self, values: Floats) -> Integers:
        """The cell of each value; values lie between the ends."""
        place = np.searchsorted(self.edges[1:-1], values, side="right")  # NaN: past them all
        return np.asarray(self.order[place])

    @cached_property
    def _upper_ends(self) -> Floats:
        """The upper end of each cell along the line; the next cell begins later where the reference has no mass in between."""
        with np.errstate(divide="ignore"):
            return np.asarray(self._partition.family.chart.points(self._partition.panels.upper[self.order])[:, 0])

    def between_cells(self, values: Floats) -> NDArray[np.bool_]:
        """Whether each value, between the ends, is in no cell, because the reference has no mass there."""
        place = np.searchsorted(self.edges[1:-1], values, side="right")
        apart = self.edges[1:] > self._upper_ends
        return np.asarray(apart[place] & (values > self._upper_ends[place]) & (values <= self.edges[-1]))

    def find_cells(self, values: Floats) -> Integers:
        """The cell of each value, -1 for NaN and for a value past the ends or between cells."""
        return np.where(self.between_cells(values), -1, super().find_cells(values))

    def within(self, numbers: Integers, place: Floats) -> Floats:
        """Points of the cells; `place` in [0, 1) is the position in each, in the family's coordinate."""
        panels = self._partition.panels
        low, high = panels.lower[numbers, 0], panels.upper[numbers, 0]
        t = low + (high - low) * (_END + (1.0 - 2.0 * _END) * place)
        return np.asarray(self._partition.family.chart.points(t[:, None])[:, 0])

    @property
    def terms(self) -> NoReturn:
        """Raises an error: an agreement states the family and its atoms instead."""
        raise DiscreetError("cells of a family cannot stand in an agreement; agree on the family")
