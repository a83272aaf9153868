"""The atoms are the cells of a public partition, of reference mass mu_i, with p_i = P(cell_i); a sample is a point of the cell drawn.

The finite mechanism draws a cell, then a point is drawn from h inside it, which does not depend on the client any more. What is estimated
from samples is what P(cell_i) was taken to be, so on a line it comes from a distribution function wherever a client has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from discreet.domain._canonical import digest
from discreet.errors import DiscreetError, check_count
from discreet.families._clients import known_interval_masses, log_ratios, unseen_error
from discreet.families._continuous import LARGEST_CHARTED, CellPartition, Nodes
from discreet.families._densities import LogDensity
from discreet.families._outsiders import Outsiders
from discreet.families._seen import (
    NodeSummary,
    is_member,
    missed_clients,
    outsiders_of,
    panel_masses,
    warn_of_coarse_masses,
)
from discreet.mechanisms._carriers._carrier import Floats, Integers
from discreet.mechanisms._carriers._densities import Densities, DensityAtoms

DEFAULT_CELLS = {1: 1024, 2: 8192, 3: 16384}
_NODES_IN_A_CELL = {1: 1, 2: 2, 3: 2}  # along each axis
_CELL_SLACK = 1e-3
_MUCH = 4.0  # by which p/h changes inside a cell before more nodes are needed there


@dataclass(frozen=True)
class Cells:
    """Release by cells, in up to three dimensions. `count`: at least so many cells of about equal reference mass.

    Args:
        count: how many cells at least.

    Raises:
        DiscreetError: for a number that is not at least 2.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            check_count("count", self.count, 2)


@dataclass(frozen=True, eq=False)
class LawsOnCells:
    """Clients on the cells of a partition."""

    rows: Floats
    partition: CellPartition

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.partition.points(numbers, rng)


@final
@dataclass(frozen=True, eq=False)
class CellAtoms(DensityAtoms):
    """The cells of one family."""

    how: Cells

    @cached_property
    def partition(self) -> CellPartition:
        """The public partition."""
        if self.family.dim > LARGEST_CHARTED:
            raise DiscreetError(
                f"cells are for dimension at most {LARGEST_CHARTED}, not {self.family.dim}: their number would grow "
                "exponentially; use Points"
            )
        assert self.how.count is not None
        return self.family.cells(self.how.count)

    @cached_property
    def digest(self) -> str:
        """Of the cells' edges in the family's coordinates."""
        panels = self.partition.panels
        return digest(np.stack([panels.lower, panels.upper]).astype("<f4").tobytes())

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.partition)

    @property
    def reference(self) -> Floats:
        """Their reference masses."""
        return self.partition.masses

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """A point of h in each of the numbered cells."""
        return self.partition.points(numbers, rng)

    @cached_property
    def _nodes(self) -> Nodes:
        return self.partition.nodes(_NODES_IN_A_CELL[self.family.dim])

    def put(self, clients: Densities) -> tuple[LawsOnCells, Outsiders | None]:
        """P(cell_i) of every client, as right as it can be had.

        On a line by its distribution function, or by an integral over each cell that is resolved as far as its values show. In more
        dimensions by nodes, with more of them for a client that says they missed it or changes much inside cells.
        """
        rows, seen = self._on_line(clients) if self.family.dim == 1 else self._at_nodes(clients)
        held = LawsOnCells(rows / rows.sum(axis=1, keepdims=True), self.partition)
        return held, outsiders_of(self.family, clients, seen, self.whose)

    @cached_property
    def _ends(self) -> tuple[Floats, Integers]:
        """The ends of the cells of a line, going up, and which of the intervals between them each cell is."""
        panels = self.partition.panels
        with np.errstate(divide="ignore"):  # an end at infinity
            ends = self.family.chart.points(np.stack([panels.lower, panels.upper]))[..., 0]
        edges = np.unique(ends)
        return edges, np.searchsorted(edges, ends.min(axis=0))

    def _on_line(self, clients: Densities) -> tuple[Floats, NodeSummary]:
        """Masses on the cells of a line up to a factor, and what was seen of p/h."""
        edges, cells = self._ends
        rows = np.empty((len(clients), self.size))
        log_mass, smallest, largest = np.zeros((3, len(clients)))
        asked = []
        for i, known in enumerate(known_interval_masses(clients, edges)):
            if known is None:
                rows[i], log_mass[i], smallest[i], largest[i] = self._masses_by_fine_nodes(
                    clients[i], client_name(i, clients)
                )
                continue
            rows[i] = known[cells]
            smallest[i] = largest[i] = log_mass[i] = math.log(rows[i].sum())
            if not (self.members.everybody or is_member(self.members, clients[i])):
                asked.append(i)
        seen = NodeSummary(log_mass, smallest, largest, _CELL_SLACK)
        if asked:
            some = tuple(clients[i] for i in asked)
            looked = self._at_nodes(some, resolve=False)[1]
            for i, mass, low, high in zip(asked, looked.log_mass, looked.log_smallest, looked.log_largest, strict=True):
                log_mass[i], smallest[i], largest[i] = mass, low, high
        return rows, seen

    def _at_nodes(self, clients: Densities, *, resolve: bool = True) -> tuple[Floats, NodeSummary]:
        """mu_i times the average of p/h over the nodes of the cell; `resolve`: whether masses matter, not the extreme p/h alone."""
        log_ratio = log_ratios(clients, self._nodes)
        largest = log_ratio.max(axis=(1, 2))
        shift = np.where(np.isneginf(largest), 0.0, largest)
        ratio = np.exp(log_ratio - shift[:, None, None])
        within = self._nodes.masses
        total = within.sum(axis=1)
        share = np.divide(
            within, total[:, None], out=np.full(within.shape, 1.0 / within.shape[1]), where=total[:, None] > 0
        )
        rows = np.einsum("nij,ij->ni", ratio, share) * self.reference
        smallest = log_ratio.min(axis=(1, 2), where=within > 0.0, initial=np.inf)
        with np.errstate(divide="ignore"):
            seen = NodeSummary(shift + np.log(rows.sum(axis=1)), smallest, largest, _CELL_SLACK)
        for i in sorted(
            {*missed_clients(self.family, clients, seen), *(_unresolved_clients(ratio, rows) if resolve else ())}
        ):
            found = self._masses_by_fine_nodes(clients[i], client_name(i, clients), needed=resolve)
            rows[i], seen.log_mass[i], smallest[i], largest[i] = found
        return rows, seen

    def _masses_by_fine_nodes(
        self, p: LogDensity, who: str, *, needed: bool = True
    ) -> tuple[Floats | float, float, float, float]:
        """p on the cells, with nodes where it is narrow or not resolved: its row, log of its mass and of its extreme p/h."""
        found = panel_masses(p, self.partition.panels, self.family.chart, self.family.log_reference)
        if found is None:
            if needed:
                raise unseen_error(who)
            return math.nan, 0.0, 0.0, math.inf  # all of it is where no node is: larger than any bound there
        if needed and self.family.dim == 1:
            warn_of_coarse_masses(who, found.error)
        return found.masses, found.log_mass, found.log_smallest, found.log_largest


def _unresolved_clients(ratio: Floats, rows: Floats) -> list[int]:
    """The clients that have more than a little of their mass in cells inside which p/h (clients, cells, nodes) changes much."""
    changes = ratio.max(axis=2) > _MUCH * ratio.min(axis=2)
    return [int(i) for i in np.flatnonzero((rows * changes).sum(axis=1) > _CELL_SLACK * rows.sum(axis=1))]


def client_name(i: int, clients: Densities) -> str:
    """What a client is called in messages."""
    return "p" if len(clients) == 1 else f"p[{i}]"
