"""Atoms: how clients are put on finitely many outcomes or cells, and how a drawn atom becomes a sample.

A carrier puts clients on finitely many atoms with public reference masses, and turns a drawn atom into a sample:

    p --read_clients--> clients --laws_on_atoms_with_outside_clients--> laws (n, size)
    laws (n, size) --integers--> numbers --samples_from_atom_numbers, samples_in_user_form--> release

The step by integers is the same for every release, and privacy rests on it alone. The atoms are fixed before a client is read, and the
weights are integers within one box. A release is therefore epsilon-LDP even if the laws on the atoms are inaccurate. Outcomes, cells and
points differ in the other steps only.

On a finite family the atoms are the outcomes, a client is a row of probabilities, and a sample is an outcome or its label. On a continuous
family a client is a density or a list of them, `output` is a distribution on the whole space, and a sample is a point.

`Cells`. The atoms are the cells of a public partition, of reference mass mu_i, with p_i = P(cell_i). The finite mechanism draws a cell; a
point of the cell is then drawn from h, independently of the client. Estimates from samples are estimates of the p_i that were used. On a line
p_i therefore comes from the client's distribution function if it has one. (`discreet.mechanisms._points` has the other discretisations.)
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from discreet._base import placeholders_until_used
from discreet.domain import sha256_digest
from discreet.errors import DiscreetError, check_choice, check_count
from discreet.families import (
    FiniteFamily,
    Outsiders,
    as_renormalised_laws,
    find_finite_outsiders,
    warn_of_or_refuse_outsiders,
)
from discreet.projection import Affine, Box

with placeholders_until_used(globals()):
    from discreet.families import (
        CellPartition,
        ContinuousFamily,
        HistogramLaw,
        LogDensity,
        Nodes,
        NodeSummary,
        as_client_densities,
        error_for_client_zero_at_every_point,
        find_continuous_outsiders,
        is_certain_member,
        is_list_of_clients,
        known_interval_masses_of_clients,
        log_ratios_at_nodes,
        numbers_of_clients_missed_by_nodes,
        panel_masses,
        warn_of_coarse_masses,
    )
    from discreet.projection import OutputLaw, OutputProblem, OutputSolver

if TYPE_CHECKING:
    from discreet.mechanisms._sampler import Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clients = TypeVar("Clients", bound=Sized)
"""Some clients as a carrier reads them: rows of probabilities, or densities."""
Densities = tuple[LogDensity, ...]
DEFAULT_CELLS = {1: 1024, 2: 8192, 3: 16384}  # by dimension; there are cells up to the last one
_BLOCK = 1 << 22  # clients times atoms held at a time
_NODES_IN_A_CELL = {1: 1, 2: 2, 3: 2}  # along each axis
_CELL_SLACK = 1e-3
_MUCH = 4.0  # by which p/h changes inside a cell before more nodes are needed there


@dataclass(frozen=True, eq=False)
class ClientBatch(Generic[Clients]):
    """The clients that a caller passed, and the shape of their axes: () for a single one."""

    clients: Clients
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LawsOnAtoms:
    """The distributions (n, size) of some clients on atoms, and the seed of the atoms where these clients have atoms of their own."""

    rows: Floats
    seed: int | None = None


class ClientOutputSolver(Protocol):
    """Computes the output distributions of one mechanism, for inspection."""

    def output_law(self, clients: Any, shape: tuple[int, ...]) -> Floats | OutputLaw:
        """The output distribution Q(.|P) of each client."""

    def clipping_scales(self, clients: Any, shape: tuple[int, ...]) -> float | Floats:
        """The paper's r_P of each client."""


class Atoms(abc.ABC, Generic[Clients]):
    """Finitely many atoms, on which the clients of a family are put. Subclasses define the atoms."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of atoms."""

    @property
    @abc.abstractmethod
    def reference(self) -> float | Floats:
        """mu of every atom; one number where it is uniform."""

    @abc.abstractmethod
    def read_clients(self, p: Any) -> ClientBatch[Clients]:
        """One client or many, checked."""

    @abc.abstractmethod
    def iterate_clients_in_batches(self, clients: Clients) -> Iterator[Clients]:
        """The clients in blocks that fit in memory on the atoms."""

    @property
    @abc.abstractmethod
    def family_of_clients(self) -> FiniteFamily | ContinuousFamily:
        """The family of client distributions."""

    @abc.abstractmethod
    def laws_on_atoms_with_outside_clients(self, clients: Clients) -> tuple[LawsOnAtoms, Outsiders | None]:
        """The clients on the atoms, and those that are seen to be outside the family."""

    def laws_on_atoms(self, clients: Clients, *, refuse: bool) -> LawsOnAtoms:
        """The clients on the atoms. `refuse`: raise for a client outside the family instead of warning."""
        laws, outsiders = self.laws_on_atoms_with_outside_clients(clients)
        if outsiders is not None:
            warn_of_or_refuse_outsiders(self.family_of_clients, outsiders, refuse=refuse)
        return laws

    def iterate_laws_on_atoms_in_batches(self, clients: Clients, *, refuse: bool) -> Iterator[LawsOnAtoms]:
        """The clients on the atoms, block by block; one warning at the end covers the outsiders of all blocks."""
        all_outsiders: Outsiders | None = None
        first = 0
        for block in self.iterate_clients_in_batches(clients):
            laws, outsiders = self.laws_on_atoms_with_outside_clients(block)
            if outsiders is not None:
                block_outsiders = outsiders.as_part_of_longer_list(len(clients), first)
                if refuse:
                    warn_of_or_refuse_outsiders(self.family_of_clients, block_outsiders, refuse=True)
                all_outsiders = block_outsiders if all_outsiders is None else all_outsiders.concat(block_outsiders)
            first += len(block)
            yield laws
        if all_outsiders is not None:
            warn_of_or_refuse_outsiders(self.family_of_clients, all_outsiders, refuse=False)

    @abc.abstractmethod
    def read_laws_on_atoms(self, laws: Any) -> Floats:
        """Distributions (..., size) that are given on the atoms themselves, as float64."""

    @abc.abstractmethod
    def make_output_solver(self, sampler: Sampler[Any]) -> ClientOutputSolver:
        """What computes the output distributions of a sampler on these atoms."""

    @abc.abstractmethod
    def samples_from_atom_numbers(
        self, numbers: Integers, rng: np.random.Generator, seed: int | None = None
    ) -> NDArray[Any]:
        """The samples (n, ...) of atoms (n,), for anybody who knows the atoms; `seed`: of atoms that only these clients have."""

    @abc.abstractmethod
    def samples_in_user_form(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        """Samples in the form users get, for clients of this shape."""

    @abc.abstractmethod
    def client_law_in_constant_time(self, p: Any) -> Floats:
        """One client on the atoms, by the same instructions for every client; an error where that is impossible."""

    @abc.abstractmethod
    def count_bins_in_empirical_law(self, p: Any) -> int:
        """The number of bins of the empirical distribution p."""

    def calibrated_epsilon(self, epsilon: float) -> float:
        """The part of epsilon that is left for the box."""
        return epsilon

    def has_same_masses_as(self, other: Atoms[Clients]) -> bool:
        """Whether other atoms, of an equal family and an equal discretisation, have the same masses."""
        return True

    def refuse_unshared_atoms(self) -> None:
        """Reject a method that needs atoms known to both client and curator."""


@dataclass(frozen=True, eq=False)
class OutcomeOutputSolver:
    """Computes output laws on outcomes, as rows of probabilities."""

    carrier: OutcomeAtoms
    box: Box
    mixing: Affine | None

    def output_law(self, clients: Floats, shape: tuple[int, ...]) -> Floats:
        rows = self.carrier.laws_on_atoms(clients, refuse=self.mixing is not None).rows
        laws = self.box.project(rows) if self.mixing is None else self.box.mix(rows, self.mixing)
        return laws.reshape(*shape, self.box.size)

    def clipping_scales(self, clients: Floats, shape: tuple[int, ...]) -> float | Floats:
        scales = self.box.scale(self.carrier.laws_on_atoms(clients, refuse=False).rows)
        return scales.reshape(shape) if shape else float(scales[0])


@dataclass(frozen=True, eq=False)
class OutcomeAtoms(Atoms[Floats]):
    """The outcomes of one family."""

    family: FiniteFamily

    @property
    def size(self) -> int:
        return self.family.size

    @property
    def reference(self) -> float | Floats:
        return self.family.reference

    def read_clients(self, p: Any) -> ClientBatch[Floats]:
        laws = self.family.as_rows(p)
        return ClientBatch(laws.reshape(-1, self.size), laws.shape[:-1])

    def iterate_clients_in_batches(self, clients: Floats) -> Iterator[Floats]:
        yield clients  # the draw works in blocks itself

    @property
    def family_of_clients(self) -> FiniteFamily:
        return self.family

    def laws_on_atoms_with_outside_clients(self, clients: Floats) -> tuple[LawsOnAtoms, Outsiders | None]:
        return LawsOnAtoms(clients), find_finite_outsiders(self.family, clients)

    def read_laws_on_atoms(self, laws: Any) -> Floats:
        return self.family.as_rows(laws, "laws")

    def make_output_solver(self, sampler: Sampler[Any]) -> OutcomeOutputSolver:
        return OutcomeOutputSolver(self, sampler.box, sampler.mixing)

    def samples_from_atom_numbers(
        self, numbers: Integers, rng: np.random.Generator, seed: int | None = None
    ) -> NDArray[Any]:
        return numbers

    def samples_in_user_form(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        return self.family.to_samples(samples.reshape(shape))

    def client_law_in_constant_time(self, p: Any) -> Floats:
        law = self.family.as_rows(p)
        if law.ndim != 1:
            raise DiscreetError(f"p has shape {law.shape}; constant_time is for one client: release one law at a time")
        return law

    def count_bins_in_empirical_law(self, p: Any) -> int:
        return self.size


@dataclass(frozen=True, eq=False)
class DensityAtoms(Atoms[Densities]):
    """Atoms of the reference of one family.

    `whose` is the clients' family, if the reference is that of another family.
    """

    family: ContinuousFamily
    whose: ContinuousFamily | None = field(default=None, kw_only=True)

    @property
    def family_of_clients(self) -> ContinuousFamily:
        return self.family if self.whose is None else self.whose

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """The digest of the atoms in single precision, so that it does not depend on the last bits."""

    def read_clients(self, p: Any) -> ClientBatch[Densities]:
        clients = as_client_densities(p, self.family)
        return ClientBatch(clients, (len(clients),) if is_list_of_clients(p) else ())

    def iterate_clients_in_batches(self, clients: Densities) -> Iterator[Densities]:
        step = max(1, _BLOCK // self.size)
        return (clients[start : start + step] for start in range(0, len(clients), step))

    def read_laws_on_atoms(self, laws: Any) -> Floats:
        return as_renormalised_laws(laws, "laws", self.size)

    def make_output_solver(self, sampler: Sampler[Any]) -> OutputSolver:
        return OutputSolver(
            OutputProblem(self.family, sampler.constants, sampler.calibrated_epsilon, sampler.mixing, self.whose)
        )

    def samples_in_user_form(self, samples: Floats, shape: tuple[int, ...]) -> float | Floats:
        if self.family.dim > 1:
            return samples.reshape(*shape, self.family.dim)
        return samples.reshape(shape) if shape else float(samples[0, 0])

    def client_law_in_constant_time(self, p: Any) -> Floats:
        raise DiscreetError(
            f"constant_time is for finite families: the time to evaluate a density depends on the client; {self.family!r} is "
            "continuous: bin its clients, and release on a Simplex"
        )

    def count_bins_in_empirical_law(self, p: Any) -> int:
        if not isinstance(p, HistogramLaw):
            raise DiscreetError("estimation_cost needs a histogram: p = family.law(records=..., fit=HistogramFit())")
        return p.bins


class Discretisation(abc.ABC):
    """How a continuous client is released: `Cells(...)`, `Points(...)`, or not at all (`Density(...)`)."""

    @abc.abstractmethod
    def atoms_of_family(self, family: ContinuousFamily, members: ContinuousFamily | None) -> DensityAtoms:
        """The atoms of a family. `members`: the clients' family, if the reference is that of another family."""


@final
@dataclass(frozen=True)
class Cells(Discretisation):
    """Release by cells of about equal reference mass, in up to three dimensions.

    Args:
        count: how many cells at least; 1,024, 8,192 or 16,384 by default in one, two or three dimensions.
        masses: leave it out. Then the masses of the cells are refined if one rule on each cell does not resolve the reference. "one rule" is
            for agreements that were made before they were refined, "refined" for those that were made since.

    Raises:
        DiscreetError: for a count below 2, or other masses.
    """

    count: int | None = None
    masses: str | None = field(default=None, compare=False)  # the families of equal samplers decide

    def __post_init__(self) -> None:
        if self.count is not None:
            check_count("count", self.count, 2)
        if self.masses is not None:
            check_choice("masses", self.masses, CellPartition.KINDS_OF_MASSES)

    def atoms_of_family(self, family: ContinuousFamily, members: ContinuousFamily | None) -> CellAtoms:
        return CellAtoms(family, self, whose=members)


@final
@dataclass(frozen=True, eq=False)
class CellAtoms(DensityAtoms):
    """The cells of one family."""

    discretisation: Cells

    @cached_property
    def partition(self) -> CellPartition:
        """The public partition."""
        if self.family.dim not in DEFAULT_CELLS:
            raise DiscreetError(
                f"cells are for dimension at most {max(DEFAULT_CELLS)}, not {self.family.dim}: their number would grow "
                "exponentially; use Points"
            )
        assert self.discretisation.count is not None
        return self.family.cells(self.discretisation.count, self.discretisation.masses)

    @cached_property
    def digest(self) -> str:
        """The digest of the cells' edges in the family's coordinates."""
        panels = self.partition.panels
        return sha256_digest(np.stack([panels.lower, panels.upper]).astype("<f4").tobytes())

    def has_same_masses_as(self, other: Atoms[Densities]) -> bool:
        assert isinstance(other, CellAtoms)
        is_agreed_alike = self.discretisation.masses == other.discretisation.masses
        return is_agreed_alike or self.partition.is_refined == other.partition.is_refined

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.partition)

    @property
    def reference(self) -> Floats:
        """Their reference masses."""
        return self.partition.masses

    def samples_from_atom_numbers(self, numbers: Integers, rng: np.random.Generator, seed: int | None = None) -> Floats:
        """A point of h in each of the numbered cells."""
        return self.partition.draw_points_in_cells(numbers, rng)

    @cached_property
    def _nodes_in_cells(self) -> Nodes:
        return self.partition.nodes_in_cells(_NODES_IN_A_CELL[self.family.dim])

    def laws_on_atoms_with_outside_clients(self, clients: Densities) -> tuple[LawsOnAtoms, Outsiders | None]:
        """P(cell_i) of every client, as accurately as it can be found.

        On a line it comes from the client's distribution function, or from an integral over each cell, refined as far as the values show. In
        more dimensions it comes from nodes. A client gets more nodes if it reports that they missed it, or if p/h changes much inside cells.
        """
        rows, summary = (
            self._cell_masses_and_ratio_summary_on_line(clients)
            if self.family.dim == 1
            else self._cell_masses_and_ratio_summary_at_nodes(clients)
        )
        laws = LawsOnAtoms(rows / rows.sum(axis=1, keepdims=True))
        return laws, find_continuous_outsiders(self.family, clients, summary, self.whose)

    @cached_property
    def _edges_and_interval_of_each_cell(self) -> tuple[Floats, Integers]:
        """The increasing ends of the cells on a line, and for each cell the number of its interval between them."""
        panels = self.partition.panels
        with np.errstate(divide="ignore"):  # an end at infinity
            ends = self.family.chart.points_at_coordinates(np.stack([panels.lower, panels.upper]))[..., 0]
        edges = np.unique(ends)
        return edges, np.searchsorted(edges, ends.min(axis=0))

    def _cell_masses_and_ratio_summary_on_line(self, clients: Densities) -> tuple[Floats, NodeSummary]:
        """Masses on the cells of a line up to a factor, and a summary of p/h."""
        edges, cells = self._edges_and_interval_of_each_cell
        rows = np.empty((len(clients), self.size))
        log_mass, smallest, largest = np.zeros((3, len(clients)))
        numbers = []
        for i, interval_masses in enumerate(known_interval_masses_of_clients(clients, edges)):
            if interval_masses is None:
                rows[i], log_mass[i], smallest[i], largest[i] = self._client_cell_masses_and_ratio_extremes(
                    clients[i], client_name_in_messages(i, clients)
                )
                continue
            rows[i] = interval_masses[cells]
            if not rows[i].any():
                raise DiscreetError(
                    f"{client_name_in_messages(i, clients)} has no mass where the reference of {self.family!r} has any; no output is like it"
                )
            smallest[i] = largest[i] = log_mass[i] = math.log(rows[i].sum())
            if not (self.family_of_clients.any_client or is_certain_member(self.family_of_clients, clients[i])):
                numbers.append(i)
        summary = NodeSummary(log_mass, smallest, largest, _CELL_SLACK)
        if numbers:
            uncertain_clients = tuple(clients[i] for i in numbers)
            summary_at_nodes = self._cell_masses_and_ratio_summary_at_nodes(uncertain_clients, resolve=False)[1]
            for i, mass, low, high in zip(
                numbers,
                summary_at_nodes.log_mass,
                summary_at_nodes.log_smallest,
                summary_at_nodes.log_largest,
                strict=True,
            ):
                log_mass[i], smallest[i], largest[i] = mass, low, high
        return rows, summary

    def _cell_masses_and_ratio_summary_at_nodes(
        self, clients: Densities, *, resolve: bool = True
    ) -> tuple[Floats, NodeSummary]:
        """mu_i times the average of p/h over the cell's nodes. `resolve`: whether the masses have to be accurate, or only the extreme p/h."""
        log_ratio = log_ratios_at_nodes(clients, self._nodes_in_cells)
        largest = log_ratio.max(axis=(1, 2))
        shift = np.where(np.isneginf(largest), 0.0, largest)
        ratio = np.exp(log_ratio - shift[:, None, None])
        node_masses = self._nodes_in_cells.masses
        total = node_masses.sum(axis=1)
        share = np.divide(
            node_masses,
            total[:, None],
            out=np.full(node_masses.shape, 1.0 / node_masses.shape[1]),
            where=total[:, None] > 0,
        )
        rows = np.einsum("nij,ij->ni", ratio, share) * self.reference
        smallest = log_ratio.min(axis=(1, 2), where=node_masses > 0.0, initial=np.inf)
        with np.errstate(divide="ignore"):
            summary = NodeSummary(shift + np.log(rows.sum(axis=1)), smallest, largest, _CELL_SLACK)
        for i in sorted(
            {
                *numbers_of_clients_missed_by_nodes(self.family, clients, summary),
                *(_numbers_of_clients_varying_inside_cells(ratio, rows) if resolve else ()),
            }
        ):
            row_and_extremes = self._client_cell_masses_and_ratio_extremes(
                clients[i], client_name_in_messages(i, clients), needed=resolve
            )
            rows[i], summary.log_mass[i], smallest[i], largest[i] = row_and_extremes
        return rows, summary

    def _client_cell_masses_and_ratio_extremes(
        self, p: LogDensity, client_name: str, *, needed: bool = True
    ) -> tuple[Floats | float, float, float, float]:
        """p on the cells, with extra nodes where it is narrow or unresolved: row, log mass, extreme log p/h."""
        integral = panel_masses(p, self.partition.panels, self.family.chart, self.family.log_reference)
        if integral is None:
            if needed:
                raise error_for_client_zero_at_every_point(client_name)
            return math.nan, 0.0, 0.0, math.inf  # all its mass lies between the nodes, so p/h exceeds any bound there
        if needed and self.family.dim == 1:
            warn_of_coarse_masses(client_name, integral.error)
        return integral.masses, integral.log_mass, integral.log_smallest, integral.log_largest


def _numbers_of_clients_varying_inside_cells(ratio: Floats, rows: Floats) -> list[int]:
    """The numbers of clients with more than a small share of their mass in cells inside which p/h (clients, cells, nodes) changes much."""
    changes = ratio.max(axis=2) > _MUCH * ratio.min(axis=2)
    return [int(i) for i in np.flatnonzero((rows * changes).sum(axis=1) > _CELL_SLACK * rows.sum(axis=1))]


def client_name_in_messages(i: int, clients: Densities) -> str:
    """The name of a client in messages."""
    return "p" if len(clients) == 1 else f"p[{i}]"


def default_discretisation(family: FiniteFamily | ContinuousFamily) -> Discretisation | None:
    """Cells up to three dimensions, points above; None on finitely many outcomes."""
    if not isinstance(family, ContinuousFamily):
        return None
    from discreet.mechanisms._points import Points  # a circular import

    return Cells(DEFAULT_CELLS[family.dim]) if family.dim in DEFAULT_CELLS else Points()


def discretisation_with_defaults(
    family: FiniteFamily | ContinuousFamily, discretisation: Discretisation | None
) -> Discretisation | None:
    """The discretisation with its numbers filled in: the default for None, and the default count for cells without one."""
    if discretisation is None:
        return default_discretisation(family)
    if isinstance(discretisation, Cells) and discretisation.count is None and isinstance(family, ContinuousFamily):
        return replace(discretisation, count=DEFAULT_CELLS.get(family.dim))
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
    if not isinstance(discretisation, Discretisation):
        raise DiscreetError(f"discretisation = {discretisation!r} is not one of Cells(...), Points(...), Density(...)")
    return discretisation.atoms_of_family(family, members)
