"""Discretisations of a continuous family: `Cells`, `Points` and `Density`, their atoms, and the default choice.

`Cells`. The atoms are the cells of a public partition, of reference mass mu_i, with p_i = P(cell_i). The finite mechanism draws a cell; a
point of the cell is then drawn from h, independently of the client. Estimates from samples are estimates of the p_i that were used. On a line
p_i therefore comes from the client's distribution function if it has one.

`Points`. The atoms are points X_1, ..., X_N drawn from h independently of the client, of reference mass 1/N, with p_i proportional to
p(X_i)/h(X_i). Points work in any dimension and need no normalisation. With fresh points for every release, the distribution of the released
point is within O(1/N) of Q*. With a public seed all clients share the points, so their error does not average out: shares of regions depart
from those of Q* by O(1/sqrt N).

`Density`. The paper's own calibration, without atoms [paper, Section 4.1]. It describes the output distribution and releases nothing. A draw
from a density by rejection is epsilon-LDP only if the density has the stated mass. No finite number of evaluations can certify the integral
of a client's function: a spike between the nodes is missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, final

import numpy as np

from discreet._base.doors import OldName
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
    """Release by cells of about equal reference mass, in up to three dimensions.

    Args:
        count: how many cells at least; 1,024, 8,192 or 16,384 by default in one, two or three dimensions.

    Raises:
        DiscreetError: for a count below 2.
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

    discretisation: Cells

    @cached_property
    def partition(self) -> CellPartition:
        """The public partition."""
        if self.family.dim > LARGEST_CHARTED:
            raise DiscreetError(
                f"cells are for dimension at most {LARGEST_CHARTED}, not {self.family.dim}: their number would grow "
                "exponentially; use Points"
            )
        assert self.discretisation.count is not None
        return self.family.cells(self.discretisation.count)

    @cached_property
    def digest(self) -> str:
        """The digest of the cells' edges in the family's coordinates."""
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
        """P(cell_i) of every client, as accurately as it can be found.

        On a line it comes from the client's distribution function, or from an integral over each cell, refined as far as the values show. In
        more dimensions it comes from nodes. A client gets more nodes if it reports that they missed it, or if p/h changes much inside cells.
        """
        rows, seen = self._masses_on_line(clients) if self.family.dim == 1 else self._masses_at_nodes(clients)
        held = LawsOnCells(rows / rows.sum(axis=1, keepdims=True), self.partition)
        return held, outsiders_of(self.family, clients, seen, self.whose)

    @cached_property
    def _ends(self) -> tuple[Floats, Integers]:
        """The increasing ends of the cells on a line, and for each cell the number of its interval between them."""
        panels = self.partition.panels
        with np.errstate(divide="ignore"):  # an end at infinity
            ends = self.family.chart.points(np.stack([panels.lower, panels.upper]))[..., 0]
        edges = np.unique(ends)
        return edges, np.searchsorted(edges, ends.min(axis=0))

    def _masses_on_line(self, clients: Densities) -> tuple[Floats, NodeSummary]:
        """Masses on the cells of a line up to a factor, and a summary of p/h."""
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
            if not (self.members.any_client or is_member(self.members, clients[i])):
                asked.append(i)
        seen = NodeSummary(log_mass, smallest, largest, _CELL_SLACK)
        if asked:
            some = tuple(clients[i] for i in asked)
            looked = self._masses_at_nodes(some, resolve=False)[1]
            for i, mass, low, high in zip(asked, looked.log_mass, looked.log_smallest, looked.log_largest, strict=True):
                log_mass[i], smallest[i], largest[i] = mass, low, high
        return rows, seen

    def _masses_at_nodes(self, clients: Densities, *, resolve: bool = True) -> tuple[Floats, NodeSummary]:
        """mu_i times the average of p/h over the cell's nodes. `resolve`: whether the masses have to be accurate, or only the extreme p/h."""
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
        """p on the cells, with extra nodes where it is narrow or unresolved: row, log mass, extreme log p/h."""
        found = panel_masses(p, self.partition.panels, self.family.chart, self.family.log_reference)
        if found is None:
            if needed:
                raise unseen_error(who)
            return math.nan, 0.0, 0.0, math.inf  # all its mass lies between the nodes, so p/h exceeds any bound there
        if needed and self.family.dim == 1:
            warn_of_coarse_masses(who, found.error)
        return found.masses, found.log_mass, found.log_smallest, found.log_largest


def _unresolved_clients(ratio: Floats, rows: Floats) -> list[int]:
    """The clients with more than a small share of their mass in cells inside which p/h (clients, cells, nodes) changes much."""
    changes = ratio.max(axis=2) > _MUCH * ratio.min(axis=2)
    return [int(i) for i in np.flatnonzero((rows * changes).sum(axis=1) > _CELL_SLACK * rows.sum(axis=1))]


def client_name(i: int, clients: Densities) -> str:
    """The name of a client in messages."""
    return "p" if len(clients) == 1 else f"p[{i}]"


DEFAULT_POINTS = 1 << 16
_POINTS_IN_A_BLOCK = 4096


@dataclass(frozen=True)
class Points:
    """Release by points drawn from the reference, in any dimension.

    Without a seed every release draws fresh points. With a seed, client and curator know the same points (on the same numpy version), and the
    client needs to send only a number. The output distribution departs from Q* by O(1/sqrt(count)) with a seed, by O(1/count) without. Choose
    a seed before you look at the data; it need not be secret.

    Args:
        count: how many points.
        seed: a public seed that all clients share, at least 0.

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
    """Clients on points that their seed reproduces."""

    rows: Floats
    carrier: PointAtoms
    seed: int

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.carrier.at(numbers, self.seed)


@final
@dataclass(frozen=True, eq=False)
class PointAtoms(DensityAtoms):
    """Points drawn from the reference of one family, in reproducible blocks."""

    discretisation: Points

    @property
    def size(self) -> int:
        """Number of points."""
        return self.discretisation.count

    @property
    def reference(self) -> float:
        """1/N each."""
        return 1.0 / self.discretisation.count

    @cached_property
    def digest(self) -> str:
        """The digest of the points of the public seed."""
        assert self.discretisation.seed is not None
        blocks = (
            self.block(number, self.discretisation.seed) for number in range(math.ceil(self.size / _POINTS_IN_A_BLOCK))
        )
        return digest(b"".join(block.astype("<f4").tobytes() for block in blocks))

    def block(self, number: int, seed: int) -> Floats:
        """The points from number * 4096 on."""
        count = min(_POINTS_IN_A_BLOCK, self.discretisation.count - number * _POINTS_IN_A_BLOCK)
        return self.family.draw(count, np.random.default_rng([seed, number]))

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """The points of the given numbers under the public seed."""
        assert self.discretisation.seed is not None
        return self.at(numbers, self.discretisation.seed)

    def at(self, numbers: Integers, seed: int) -> Floats:
        """The points of the given numbers: (n, dim)."""
        out = np.empty((len(numbers), self.family.dim))
        for number in np.unique(numbers // _POINTS_IN_A_BLOCK):
            rows = numbers // _POINTS_IN_A_BLOCK == number
            out[rows] = self.block(int(number), seed)[numbers[rows] % _POINTS_IN_A_BLOCK]
        return out

    def put(self, clients: Densities) -> tuple[LawsOnPoints, Outsiders | None]:
        """p_i proportional to p(X_i)/h(X_i); uniform for a client whose density is 0 at every point."""
        seed = (
            int.from_bytes(np.random.SeedSequence().generate_state(4).tobytes())
            if self.discretisation.seed is None
            else self.discretisation.seed
        )
        log_ratio = np.empty((len(clients), self.discretisation.count))
        for number in range(math.ceil(self.discretisation.count / _POINTS_IN_A_BLOCK)):
            x = self.block(number, seed)
            columns = slice(number * _POINTS_IN_A_BLOCK, number * _POINTS_IN_A_BLOCK + len(x))
            log_reference = self.family.log_reference(x)
            for row, p in enumerate(clients):
                log_ratio[row, columns] = p.log_density(x) - log_reference
        shift, smallest = log_ratio.max(axis=1), log_ratio.min(axis=1)
        seen = np.isfinite(shift)
        if not seen.all():
            warn_caller(
                f"{int((~seen).sum())} of {len(clients)} clients are 0 at each of the {self.discretisation.count} points: "
                "the sample released for "
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
        if self.discretisation.seed is None:
            raise DiscreetError(
                "without a seed only the client knows its points; use Points(seed=...) with one public seed for all clients"
            )


_FRACTION = Range(0.0, 1.0, high_open=True)


@dataclass(frozen=True)
class Density:
    """The paper's calibration for densities of trusted mass in [1 - delta1, 1 + delta2]; it describes outputs and releases nothing.

    The box is that of epsilon' = epsilon - log((1 + delta2)/(1 - delta1)) [paper, Section 4.1], for `output` and `risk`. There is no release,
    because its guarantee would rest on the integral of a client's function.

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
        """epsilon', the part of epsilon that is left for the box."""
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
    """No atoms: outputs are described, and nothing is released."""

    discretisation: Density

    def calibrated_epsilon(self, epsilon: float) -> float:
        return self.discretisation.calibrated_epsilon(epsilon)

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
            f"discretisation = {self.discretisation!r} only describes the output and releases nothing: privacy of a draw "
            "from the density itself would "
            "depend on the numerical integral of the client's function; release with discretisation=Cells(...) or "
            "discretisation=Points(...), which are private for every function"
        )


Discretisation = Cells | Points | Density


def default_discretisation(family: FiniteFamily | ContinuousFamily) -> Discretisation | None:
    """Cells up to three dimensions, points above; None on finitely many outcomes."""
    if not isinstance(family, ContinuousFamily):
        return None
    return Cells(DEFAULT_CELLS[family.dim]) if family.dim <= LARGEST_CHARTED else Points()


def chosen_discretisation(
    family: FiniteFamily | ContinuousFamily, discretisation: Discretisation | None
) -> Discretisation | None:
    """The discretisation with its numbers filled in: the default for None, and the default count for cells without one."""
    unsaid = isinstance(discretisation, Cells) and discretisation == Cells()
    if discretisation is None or (unsaid and isinstance(family, ContinuousFamily) and family.dim <= LARGEST_CHARTED):
        return default_discretisation(family)
    return discretisation


def make_atoms(
    family: FiniteFamily | ContinuousFamily,
    discretisation: Discretisation | None,
    members: ContinuousFamily | None = None,
) -> Atoms[Any]:
    """The atoms of a discretisation. `members`: the clients' family, if the reference is that of another family."""
    if not isinstance(family, ContinuousFamily):
        if discretisation is not None:
            raise DiscreetError(
                f"discretisation = {discretisation!r} is for continuous families; {family!r} is released outcome by outcome"
            )
        return OutcomeAtoms(family)
    match discretisation:
        case Cells():
            return CellAtoms(family, discretisation, whose=members)
        case Points():
            return PointAtoms(family, discretisation, whose=members)
        case Density():
            return NoAtoms(family, discretisation, whose=members)
    raise DiscreetError(f"discretisation = {discretisation!r} is not one of Cells(...), Points(...), Density(...)")
