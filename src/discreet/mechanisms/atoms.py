"""A continuous client on finitely many atoms, so that it can be released in integers.

* `Cells`: a public partition into cells of reference mass mu_i; the atom is a cell, p_i = P(cell_i). The finite mechanism draws
  a cell, then a point is drawn from h inside it, which does not depend on the client any more.
* `Points`: X_1, ..., X_N drawn from h independently of the client; the atom is a point, of reference mass 1/N, with
  p_i proportional to p(X_i)/h(X_i). Any dimension, no normalisation. The law of the released point is within O(1/N) of Q*.

Either way the atoms are fixed before the client is looked at, and the weights are integers within one box, so the release is
epsilon-LDP whatever the errors in mu_i and p_i, whether or not the client is in the family.

`Density` is the paper's own way, without atoms [paper, Section 4.1]: it describes a law and releases nothing. Drawing from a density by
rejection is epsilon-LDP only if the density has the mass it is said to have, and no finite number of looks at a client's
function can vouch for its integral: a spike between the nodes is missed by all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NON_NEGATIVE, DiscreetError, OutsideFamilyWarning, Range, check_count, warn_caller
from discreet.families.continuous import LARGEST_CHARTED, ContinuousFamily, Nodes, Partition
from discreet.families.densities import LogDensity
from discreet.mechanisms.clients import Seen, log_ratios, luck, missed, tell_outside, unseen
from discreet.quadrature import ORDER

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CELLS = {1: 1024, 2: 8192, 3: 16384}
POINTS = 1 << 16
_NODES_IN_A_CELL = {1: 1, 2: 2, 3: 2}  # along each axis
_POINTS_IN_A_BLOCK = 4096
_MOST_NODES = 1 << 19  # for one client that has to be looked at closely
_CELL_SLACK = 1e-3
_FRACTION = Range(0.0, 1.0, high_open=True)


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


@dataclass(frozen=True)
class Points:
    """Release by points, in any dimension. `count`: how many. `seed`: a public seed that everybody shares.

    Without a seed every release draws fresh points. With one, client and curator know the same points (on the same numpy
    version) and the client needs to send only a number. A seed must be chosen before the data are looked at, and is no secret.

    Args:
        count: how many points.
        seed: a public seed, at least 0.

    Raises:
        DiscreetError: for numbers out of range.
    """

    count: int = POINTS
    seed: int | None = None

    def __post_init__(self) -> None:
        check_count("count", self.count, 2)
        if self.seed is not None:
            check_count("seed", self.seed, 0)


@dataclass(frozen=True)
class Density:
    """The paper's calibration for a density whose mass is trusted to lie in [1 - delta1, 1 + delta2]: to describe, not to release.

    The box is that of epsilon' = epsilon - log((1 + delta2)/(1 - delta1)) [paper, Section 4.1], for `output` and `risk`. Nothing is
    released this way: the guarantee would rest on an integral of whatever function a client passes.

    Args:
        delta1: how far below 1 the mass may be, in [0, 1).
        delta2: how far above 1 it may be, at least 0.

    Raises:
        DiscreetError: for tolerances out of range.
    """

    delta1: float = 1e-5
    delta2: float = 1e-5

    def __post_init__(self) -> None:
        _FRACTION.check("delta1", self.delta1)
        NON_NEGATIVE.check("delta2", self.delta2)

    def calibrated(self, epsilon: float) -> float:
        """epsilon', what is left of epsilon for the box."""
        left = epsilon - math.log1p(self.delta2) + math.log1p(-self.delta1)
        if not left > 0.0:
            raise DiscreetError(
                f"epsilon = {epsilon:g} leaves nothing for the box: the tolerances cost {epsilon - left:g}; take smaller ones"
            )
        return left


How = Cells | Points | Density


def default_how(family: ContinuousFamily) -> How:
    """Cells while there are few dimensions, points above."""
    return Cells() if family.dim <= LARGEST_CHARTED else Points()


class Held(Protocol):
    """Some clients on atoms: their laws there, and what the atoms are."""

    @property
    def rows(self) -> Floats:
        """(n, size), each summing to one."""

    def points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """A point (n, dim) for each atom drawn."""


class Atoms(Protocol):
    """Finitely many atoms with reference masses, on which clients can be put."""

    @property
    def size(self) -> int: ...
    @property
    def reference(self) -> float | Floats: ...
    def held(self, clients: Sequence[LogDensity], *, refuse: bool) -> Held:
        """The clients on the atoms. `refuse`: raise for one outside the band instead of warning."""

    def shared_points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """A point (n, dim) for each number, for anybody who knows the atoms."""


@dataclass(frozen=True, eq=False)
class HeldOnCells:
    """Clients on the cells of a partition."""

    rows: Floats
    partition: Partition

    def points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.partition.points(numbers, rng)


@dataclass(frozen=True, eq=False)
class HeldOnPoints:
    """Clients on points that can be drawn again from their seed."""

    rows: Floats
    atoms: PointAtoms
    seed: int

    def points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.atoms.at(numbers, self.seed)


@dataclass(frozen=True, eq=False)
class CellAtoms:
    """The cells of one family."""

    family: ContinuousFamily
    how: Cells

    @cached_property
    def partition(self) -> Partition:
        """The public partition."""
        if self.family.dim > LARGEST_CHARTED:
            raise DiscreetError(
                f"cells are for dimension at most {LARGEST_CHARTED}, not {self.family.dim}: their number would grow "
                "exponentially; use Points"
            )
        return self.family.cells(self.how.count or CELLS[self.family.dim])

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.partition)

    @property
    def reference(self) -> Floats:
        """Their reference masses."""
        return self.partition.masses

    def shared_points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """A point of h in each of the numbered cells."""
        return self.partition.points(numbers, rng)

    @cached_property
    def _nodes(self) -> Nodes:
        return self.partition.nodes(_NODES_IN_A_CELL[self.family.dim])

    def held(self, clients: Sequence[LogDensity], *, refuse: bool) -> HeldOnCells:
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
        tell_outside(self.family, clients, seen, refuse)
        return HeldOnCells(rows / rows.sum(axis=1, keepdims=True), self.partition)

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


@dataclass(frozen=True, eq=False)
class PointAtoms:
    """Points drawn from the reference of one family, in blocks that can be drawn again."""

    family: ContinuousFamily
    how: Points

    @property
    def size(self) -> int:
        """Number of points."""
        return self.how.count

    @property
    def reference(self) -> float:
        """1/N each."""
        return 1.0 / self.how.count

    def block(self, number: int, seed: int) -> Floats:
        """The points from number * 4096 on."""
        count = min(_POINTS_IN_A_BLOCK, self.how.count - number * _POINTS_IN_A_BLOCK)
        return self.family.draw(count, np.random.default_rng([seed, number]))

    def shared_points(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """The points of the given numbers under the public seed."""
        assert self.how.seed is not None
        return self.at(numbers, self.how.seed)

    def at(self, numbers: Integers, seed: int) -> Floats:
        """The points of the given numbers: (n, dim)."""
        out = np.empty((len(numbers), self.family.dim))
        for number in np.unique(numbers // _POINTS_IN_A_BLOCK):
            rows = numbers // _POINTS_IN_A_BLOCK == number
            out[rows] = self.block(int(number), seed)[numbers[rows] % _POINTS_IN_A_BLOCK]
        return out

    def held(self, clients: Sequence[LogDensity], *, refuse: bool) -> HeldOnPoints:
        """p_i proportional to p(X_i)/h(X_i); uniform for a client that none of the points can see."""
        seed = (
            int.from_bytes(np.random.SeedSequence().generate_state(4).tobytes())
            if self.how.seed is None
            else self.how.seed
        )
        log_ratio = np.empty((len(clients), self.how.count))
        for number in range(math.ceil(self.how.count / _POINTS_IN_A_BLOCK)):
            x = self.block(number, seed)
            columns = slice(number * _POINTS_IN_A_BLOCK, number * _POINTS_IN_A_BLOCK + len(x))
            log_reference = self.family.log_reference(x)
            for row, p in enumerate(clients):
                log_ratio[row, columns] = p.log_density(x) - log_reference
        shift, smallest = log_ratio.max(axis=1), log_ratio.min(axis=1)
        seen = np.isfinite(shift)
        if not seen.all():
            warn_caller(
                f"{int((~seen).sum())} of {len(clients)} clients are 0 at each of the {self.how.count} points: what is released for "
                "them is a draw of the reference; take more points, a family nearer to the clients, or (where a density underflows) "
                "family.law(log_density=...)",
                OutsideFamilyWarning,
            )
        rows = np.exp(log_ratio - np.where(seen, shift, 0.0)[:, None])
        rows[~seen] = 1.0
        total = rows.sum(axis=1)
        of_points = Seen(
            (shift + np.log(total / self.size))[seen], smallest[seen], shift[seen], luck(self.family.bounds, self.size)
        )
        tell_outside(self.family, [p for p, held in zip(clients, seen, strict=True) if held], of_points, refuse)
        return HeldOnPoints(rows / total[:, None], self, seed)


def atoms_of(family: ContinuousFamily, how: How) -> Atoms:
    """The atoms that a way of releasing uses."""
    match how:
        case Cells():
            return CellAtoms(family, how)
        case Points():
            return PointAtoms(family, how)
        case _:
            raise DiscreetError(
                f"how = {how!r} describes the paper's law and releases nothing: a sample drawn from the density itself would be as "
                "private as a numerical integral of the client's function is right; release with how=Cells(...) or "
                "how=Points(...), which are private for every function"
            )
