"""Atoms: how clients are put on finitely many atoms, and how a drawn atom becomes a sample.

This module holds the base classes and the atoms of finite families. A carrier puts clients on finitely many atoms with public reference
masses, and turns a drawn atom into a sample:

    p --read--> clients --put--> laws on the atoms (n, size) --integers--> numbers --samples, as_released--> release

The middle step is the same for every release, and privacy rests on it alone. The atoms are fixed before a client is read, and the weights are
integers within one box. A release is therefore epsilon-LDP even if the laws on the atoms are inaccurate. Outcomes, cells and points differ in
the two ends only.

On a finite family the atoms are the outcomes, a client is a row of probabilities, and a sample is an outcome or its label. On a continuous
family a client is a density or a list of them, `output` is a distribution on the whole space, and a sample is a point.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families import (
    ContinuousFamily,
    FiniteFamily,
    HistogramLaw,
    LogDensity,
    Outsiders,
    as_clients,
    as_laws,
    is_many,
    outsiders_on_outcomes,
    report_outsiders,
)
from discreet.mechanisms._output_law import OutputLaw, OutputProblem
from discreet.mechanisms._output_solver import OutputSolver
from discreet.privacy.tradeoff import Constants
from discreet.projection import Affine, Box

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clients = TypeVar("Clients", bound=Sized)
"""Some clients as a carrier reads them: rows of probabilities, or densities."""


class BoxMechanism(Protocol):
    """The facts about a sampler that a carrier needs: its box, and whether it projects or mixes."""

    @property
    def constants(self) -> Constants: ...
    @property
    def mixing(self) -> Affine | None: ...
    @property
    def calibrated_epsilon(self) -> float: ...
    @property
    def box(self) -> Box: ...


@dataclass(frozen=True, eq=False)
class ClientBatch(Generic[Clients]):
    """The clients that a caller passed, and the shape of their axes: () for a single one."""

    clients: Clients
    shape: tuple[int, ...]


class LawsOnAtoms(Protocol):
    """The distributions of some clients on atoms."""

    @property
    def rows(self) -> Floats:
        """(n, size), each summing to one."""

    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """The sample of each drawn atom: (n,) to (n, ...)."""


class Outputs(Protocol[Clients]):
    """The output distributions of one mechanism, for inspection."""

    def law(self, given: ClientBatch[Clients]) -> Floats | OutputLaw:
        """The output distribution Q(.|P) of each client."""

    def scale(self, given: ClientBatch[Clients]) -> float | Floats:
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
    def read(self, p: Any) -> ClientBatch[Clients]:
        """One client or many, checked."""

    @abc.abstractmethod
    def blocks(self, clients: Clients) -> Iterator[Clients]:
        """The clients in blocks that fit in memory on the atoms."""

    @property
    @abc.abstractmethod
    def members(self) -> FiniteFamily | ContinuousFamily:
        """The family of client distributions."""

    @abc.abstractmethod
    def put(self, clients: Clients) -> tuple[LawsOnAtoms, Outsiders | None]:
        """The clients on the atoms, and those that are seen to be outside the family."""

    def laws_on_atoms(self, clients: Clients, *, refuse: bool) -> LawsOnAtoms:
        """The clients on the atoms. `refuse`: raise for a client outside the family instead of warning."""
        found, outsiders = self.put(clients)
        if outsiders is not None:
            report_outsiders(self.members, self.members.bounds, outsiders, refuse=refuse)
        return found

    def laws_in_blocks(self, clients: Clients, *, refuse: bool) -> Iterator[LawsOnAtoms]:
        """The same in blocks; one warning at the end covers the outsiders of all blocks."""
        seen: Outsiders | None = None
        first = 0
        for block in self.blocks(clients):
            found, outsiders = self.put(block)
            if outsiders is not None:
                these = outsiders.among(len(clients), first)
                if refuse:
                    report_outsiders(self.members, self.members.bounds, these, refuse=True)
                seen = these if seen is None else seen.concat(these)
            first += len(block)
            yield found
        if seen is not None:
            report_outsiders(self.members, self.members.bounds, seen, refuse=False)

    @abc.abstractmethod
    def rows(self, laws: Any) -> Floats:
        """Check distributions (..., size) given on the atoms themselves."""

    @abc.abstractmethod
    def outputs(self, mechanism: BoxMechanism) -> Outputs[Clients]:
        """The output distributions of a mechanism on these atoms."""

    @abc.abstractmethod
    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """The samples (n, ...) of atoms (n,), for anybody who knows the atoms."""

    @abc.abstractmethod
    def as_released(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        """Samples in the form users get, for clients of this shape."""

    @abc.abstractmethod
    def single_law(self, p: Any) -> Floats:
        """One client on the atoms, by the same instructions for every client; an error where that is impossible."""

    @abc.abstractmethod
    def bins(self, p: Any) -> int:
        """The number of bins of the empirical distribution p."""

    def calibrated_epsilon(self, epsilon: float) -> float:
        """The part of epsilon that is left for the box."""
        return epsilon

    def check_shared(self, method: str) -> None:
        """Reject a method that needs atoms known to both client and curator."""


Densities = tuple[LogDensity, ...]

_BLOCK = 1 << 22  # clients times atoms held at a time


@dataclass(frozen=True, eq=False)
class OutputDensities:
    """Output laws as densities."""

    solver: OutputSolver

    def law(self, given: ClientBatch[Densities]) -> OutputLaw:
        return self.solver.law(given.clients, many=bool(given.shape))

    def scale(self, given: ClientBatch[Densities]) -> float | Floats:
        return self.law(given).scale


@dataclass(frozen=True, eq=False)
class DensityAtoms(Atoms[Densities]):
    """Atoms of the reference of one family.

    `whose` is the clients' family, if the reference is that of another family.
    """

    family: ContinuousFamily
    whose: ContinuousFamily | None = field(default=None, kw_only=True)

    @property
    def members(self) -> ContinuousFamily:
        return self.family if self.whose is None else self.whose

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """The digest of the atoms in single precision, so that it does not depend on the last bits."""

    def read(self, p: Any) -> ClientBatch[Densities]:
        clients = as_clients(p, self.family)
        return ClientBatch(clients, (len(clients),) if is_many(p) else ())

    def blocks(self, clients: Densities) -> Iterator[Densities]:
        step = max(1, _BLOCK // self.size)
        return (clients[start : start + step] for start in range(0, len(clients), step))

    def rows(self, laws: Any) -> Floats:
        return as_laws(laws, "laws", self.size)

    def outputs(self, mechanism: BoxMechanism) -> OutputDensities:
        problem = OutputProblem(
            self.family, mechanism.constants, mechanism.calibrated_epsilon, mechanism.mixing, self.whose
        )
        return OutputDensities(OutputSolver(problem))

    def as_released(self, samples: Floats, shape: tuple[int, ...]) -> float | Floats:
        if self.family.dim > 1:
            return samples.reshape(*shape, self.family.dim)
        return samples.reshape(shape) if shape else float(samples[0, 0])

    def single_law(self, p: Any) -> Floats:
        raise DiscreetError(
            f"constant_time is for finite families: the time to evaluate a density depends on the client; {self.family!r} is "
            "continuous: bin its clients, and release on a Simplex"
        )

    def bins(self, p: Any) -> int:
        if not isinstance(p, HistogramLaw):
            raise DiscreetError("estimation_cost needs a histogram: p = family.law(records=..., fit=HistogramFit())")
        return p.bins


@dataclass(frozen=True, eq=False)
class LawsOnOutcomes:
    """Clients as rows of probabilities."""

    rows: Floats

    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        return numbers


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Output laws as rows of probabilities."""

    carrier: OutcomeAtoms
    box: Box
    mixing: Affine | None

    def law(self, given: ClientBatch[Floats]) -> Floats:
        rows = self.carrier.laws_on_atoms(given.clients, refuse=self.mixing is not None).rows
        found = self.box.project(rows) if self.mixing is None else self.box.mix(rows, self.mixing)
        return found.reshape(*given.shape, self.box.size)

    def scale(self, given: ClientBatch[Floats]) -> float | Floats:
        found = self.box.scale(self.carrier.laws_on_atoms(given.clients, refuse=False).rows)
        return found.reshape(given.shape) if given.shape else float(found[0])


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

    def read(self, p: Any) -> ClientBatch[Floats]:
        laws = self.family.as_rows(p)
        return ClientBatch(laws.reshape(-1, self.size), laws.shape[:-1])

    def blocks(self, clients: Floats) -> Iterator[Floats]:
        yield clients  # the draw works in blocks itself

    @property
    def members(self) -> FiniteFamily:
        return self.family

    def put(self, clients: Floats) -> tuple[LawsOnOutcomes, Outsiders | None]:
        return LawsOnOutcomes(clients), outsiders_on_outcomes(self.family, clients)

    def rows(self, laws: Any) -> Floats:
        return self.family.as_rows(laws, "laws")

    def outputs(self, mechanism: BoxMechanism) -> OutputRows:
        return OutputRows(self, mechanism.box, mechanism.mixing)

    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        return numbers

    def as_released(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        return self.family.to_samples(samples.reshape(shape))

    def single_law(self, p: Any) -> Floats:
        law = self.family.as_rows(p)
        if law.ndim != 1:
            raise DiscreetError(f"p has shape {law.shape}; constant_time is for one client: release one law at a time")
        return law

    def bins(self, p: Any) -> int:
        return self.size
