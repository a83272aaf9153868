"""The discretisations of a continuous family: `Cells`, `Points` and `Density` (which only describes), their atoms, and the default choice.

The atoms are the cells of a public partition, of reference mass mu_i, with p_i = P(cell_i); a sample is a point of the cell drawn.

The finite mechanism draws a cell, then a point is drawn from h inside it, which does not depend on the client any more. What is estimated
from samples is what P(cell_i) was taken to be, so on a line it comes from a distribution function wherever a client has one.

The atoms are points X_1, ..., X_N drawn from h independently of the client, of reference mass 1/N, with p_i proportional to
p(X_i)/h(X_i).

Any dimension, no normalisation. With fresh points for every release the law of the released point is within O(1/N) of Q*. With a public
seed all clients share the same points, whose luck does not average out: shares of regions then depart from those of Q* by O(1/sqrt N).

The paper's own way, without atoms [paper, Section 4.1]: it describes a law and releases nothing.

Drawing from a density by rejection is epsilon-LDP only if the density has the mass it is said to have, and no finite number of looks at
a client's function can vouch for its integral: a spike between the nodes is missed by all of them.

Which carrier a family's clients are put on: outcomes where there are finitely many, else cells or points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, final

import numpy as np

from discreet._base.moved import OldName
from discreet.domain import digest
from discreet.errors import NON_NEGATIVE, DiscreetError, OutsideFamilyWarning, Range, check_count, warn_caller
from discreet.families import (
    LARGEST_CHARTED,
    CellPartition,
    ContinuousFamily,
    FiniteFamily,
    LogDensity,
    Nodes,
    NodeSummary,
    Outsiders,
    is_member,
    known_interval_masses,
    log_ratios,
    missed_clients,
    outsiders_of,
    panel_masses,
    sampling_deviation,
    unseen_error,
    warn_of_coarse_masses,
)
from discreet.mechanisms._discretisation import Atoms, Densities, DensityAtoms, Floats, Integers, OutcomeAtoms

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


DEFAULT_POINTS = 1 << 16
_POINTS_IN_A_BLOCK = 4096


@dataclass(frozen=True)
class Points:
    """Release by points, in any dimension. `count`: how many. `seed`: a public seed that everybody shares.

    Without a seed every release draws fresh points. With one, client and curator know the same points (on the same numpy version) and the
    client needs to send only a number. The law of a sample then departs from Q* by O(1/sqrt(count)), without a seed by O(1/count). A seed
    must be chosen before the data are looked at, and is no secret.

    Args:
        count: how many points.
        seed: a public seed, at least 0.

    Raises:
        DiscreetError: for numbers out of range.
    """

    count: int = DEFAULT_POINTS
    seed: int | None = None

    def __post_init__(self) -> None:
        check_count("count", self.count, 2)
        if self.seed is not None:
            check_count("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class LawsOnPoints:
    """Clients on points that can be drawn again from their seed."""

    rows: Floats
    carrier: PointAtoms
    seed: int

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.carrier.at(numbers, self.seed)


@final
@dataclass(frozen=True, eq=False)
class PointAtoms(DensityAtoms):
    """Points drawn from the reference of one family, in blocks that can be drawn again."""

    how: Points

    @property
    def size(self) -> int:
        """Number of points."""
        return self.how.count

    @property
    def reference(self) -> float:
        """1/N each."""
        return 1.0 / self.how.count

    @cached_property
    def digest(self) -> str:
        """Of the points of the public seed."""
        assert self.how.seed is not None
        blocks = (self.block(number, self.how.seed) for number in range(math.ceil(self.size / _POINTS_IN_A_BLOCK)))
        return digest(b"".join(block.astype("<f4").tobytes() for block in blocks))

    def block(self, number: int, seed: int) -> Floats:
        """The points from number * 4096 on."""
        count = min(_POINTS_IN_A_BLOCK, self.how.count - number * _POINTS_IN_A_BLOCK)
        return self.family.draw(count, np.random.default_rng([seed, number]))

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
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

    def put(self, clients: Densities) -> tuple[LawsOnPoints, Outsiders | None]:
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
        of_points = NodeSummary(
            (shift + np.log(total / self.size))[seen],
            smallest[seen],
            shift[seen],
            sampling_deviation(self.family.bounds, self.size),
        )
        visible = [p for p, held in zip(clients, seen, strict=True) if held]
        outsiders = outsiders_of(self.family, visible, of_points, self.whose)
        if outsiders is not None:
            numbers = np.flatnonzero(seen)[list(outsiders.numbers)]
            outsiders = replace(outsiders, numbers=numbers.tolist(), clients=len(clients))
        return LawsOnPoints(rows / total[:, None], self, seed), outsiders

    def check_shared(self, method: str) -> None:
        if self.how.seed is None:
            raise DiscreetError("fresh points are known to the client alone; give everybody Points(seed=...)")


_FRACTION = Range(0.0, 1.0, high_open=True)


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

    def calibrated_epsilon(self, epsilon: float) -> float:
        """epsilon', what is left of epsilon for the box."""
        left = epsilon - math.log1p(self.delta2) + math.log1p(-self.delta1)
        if not left > 0.0:
            raise DiscreetError(
                f"epsilon = {epsilon:g} leaves nothing for the box: the tolerances cost {epsilon - left:g}; take smaller ones"
            )
        return left

    calibrated = OldName("calibrated_epsilon")


@final
@dataclass(frozen=True, eq=False)
class NoAtoms(DensityAtoms):
    """No atoms at all: laws are described, and nothing is released."""

    how: Density

    def calibrated_epsilon(self, epsilon: float) -> float:
        return self.how.calibrated_epsilon(epsilon)

    @property
    def size(self) -> int:
        self._refuse()

    @property
    def reference(self) -> float:
        self._refuse()

    @property
    def digest(self) -> str:
        self._refuse()

    def put(self, clients: Densities) -> NoReturn:
        self._refuse()

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        self._refuse()

    def check_shared(self, method: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DiscreetError(
            f"how = {self.how!r} describes the paper's law and releases nothing: a sample drawn from the density itself would be as "
            "private as a numerical integral of the client's function is right; release with how=Cells(...) or "
            "how=Points(...), which are private for every function"
        )


Discretisation = Cells | Points | Density


def default_discretisation(family: FiniteFamily | ContinuousFamily) -> Discretisation | None:
    """Cells while there are few dimensions, points above; nothing to choose on finitely many outcomes."""
    if not isinstance(family, ContinuousFamily):
        return None
    return Cells(DEFAULT_CELLS[family.dim]) if family.dim <= LARGEST_CHARTED else Points()


def chosen_discretisation(family: FiniteFamily | ContinuousFamily, how: Discretisation | None) -> Discretisation | None:
    """How clients are released, in numbers: the default where nothing is said, or nothing of how many cells."""
    unsaid = isinstance(how, Cells) and how == Cells()
    if how is None or (unsaid and isinstance(family, ContinuousFamily) and family.dim <= LARGEST_CHARTED):
        return default_discretisation(family)
    return how


def atoms_of(
    family: FiniteFamily | ContinuousFamily, how: Discretisation | None, members: ContinuousFamily | None = None
) -> Atoms[Any]:
    """The atoms that a way of releasing uses. `members`: the family that clients are of, where the reference is that of another."""
    if not isinstance(family, ContinuousFamily):
        if how is not None:
            raise DiscreetError(f"how = {how!r} is for continuous families; {family!r} is released outcome by outcome")
        return OutcomeAtoms(family)
    match how:
        case Cells():
            return CellAtoms(family, how, whose=members)
        case Points():
            return PointAtoms(family, how, whose=members)
        case Density():
            return NoAtoms(family, how, whose=members)
    raise DiscreetError(f"how = {how!r} is not one of Cells(...), Points(...), Density(...)")
