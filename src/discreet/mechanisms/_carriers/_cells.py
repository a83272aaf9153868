"""The atoms are the cells of a public partition, of reference mass mu_i, with p_i = P(cell_i); a sample is a point of the cell drawn.

The finite mechanism draws a cell, then a point is drawn from h inside it, which does not depend on the client any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from discreet._quadrature import ORDER
from discreet.domain._canonical import digest
from discreet.errors import DiscreetError, check_count
from discreet.families._clients import log_ratios, unseen
from discreet.families._continuous import LARGEST_CHARTED, Nodes, Partition
from discreet.families._densities import LogDensity
from discreet.families._outsiders import Outsiders
from discreet.families._seen import Seen, missed, outside_of
from discreet.mechanisms._carriers._carrier import Floats, Integers
from discreet.mechanisms._carriers._densities import Densities, DensityCarrier

CELLS = {1: 1024, 2: 8192, 3: 16384}
_NODES_IN_A_CELL = {1: 1, 2: 2, 3: 2}  # along each axis
_MOST_NODES = 1 << 19  # for one client that has to be looked at closely
_CELL_SLACK = 1e-3


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
class HeldOnCells:
    """Clients on the cells of a partition."""

    rows: Floats
    partition: Partition

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.partition.points(numbers, rng)


@final
@dataclass(frozen=True, eq=False)
class CellCarrier(DensityCarrier):
    """The cells of one family."""

    how: Cells

    @cached_property
    def partition(self) -> Partition:
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

    def put(self, clients: Densities) -> tuple[HeldOnCells, Outsiders | None]:
        """P(cell_i) = mu_i times the average of p/h over the cell; a client that says the nodes missed it is looked at more closely."""
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
            seen = Seen(shift + np.log(rows.sum(axis=1)), smallest, largest, _CELL_SLACK)
        for i in missed(self.family, clients, seen):
            who = "p" if len(clients) == 1 else f"p[{i}]"
            rows[i], seen.log_mass[i], smallest[i], largest[i] = self._looked_at_closely(clients[i], who)
        held = HeldOnCells(rows / rows.sum(axis=1, keepdims=True), self.partition)
        return held, outside_of(self.family, clients, seen, self.whose)

    def _looked_at_closely(self, p: LogDensity, who: str) -> tuple[Floats, float, float, float]:
        """p on the cells, with nodes wherever it says that it is narrow: its row, log of its mass and of its extreme p/h."""
        panels, owner = self.family.panels_at(self.partition.panels, [p], _MOST_NODES)
        nodes = self.family.nodes_of(panels, ORDER[self.family.dim])
        log_ratio = log_ratios([p], nodes)[0]
        shift = float(log_ratio.max())
        if math.isinf(shift):
            raise unseen(who)
        inside = (np.exp(log_ratio - shift) * nodes.masses).sum(axis=1)
        row = np.bincount(owner, inside, minlength=self.size).astype(np.float64)
        smallest = float(log_ratio.min(where=nodes.masses > 0.0, initial=np.inf))
        return row, shift + math.log(row.sum()), smallest, shift
