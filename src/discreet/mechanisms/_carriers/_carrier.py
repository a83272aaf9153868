"""A carrier puts clients on finitely many atoms with public reference masses, and says what a drawn atom stands for.

    p --read--> clients --held--> laws on the atoms (n, size) --integers--> numbers --samples, spelled--> what is released

The middle is the same for everything that is released, and is all that privacy rests on: the atoms are fixed before a client is looked
at, and the weights are integers within one box, so a release is epsilon-LDP whatever the errors in the laws on the atoms. What differs
between an outcome, a cell and a point are the two ends, and they are here.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families._outsiders import Outsiders, report_outsiders
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.projection import Affine, Box
from discreet.tradeoff import Constants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clients = TypeVar("Clients", bound=Sized)
"""Some clients as a carrier reads them: rows of probabilities, or densities."""


class BoxMechanism(Protocol):
    """What a carrier has to know of a sampler: which box, and whether it projects or mixes."""

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
    """Some clients on atoms: their laws there, and what the atoms are."""

    @property
    def rows(self) -> Floats:
        """(n, size), each summing to one."""

    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """What each atom drawn (n,) stands for, (n, ...)."""


class Outputs(Protocol[Clients]):
    """The output laws of one mechanism, for looking at."""

    def law(self, given: ClientBatch[Clients]) -> Floats | OutputLaw:
        """The law Q(.|P) of each client."""

    def scale(self, given: ClientBatch[Clients]) -> float | Floats:
        """The paper's r_P of each client."""


class Atoms(abc.ABC, Generic[Clients]):
    """Finitely many atoms, on which the clients of a family are put. Final classes say what an atom is."""

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
        """One client or many as they come, checked."""

    @abc.abstractmethod
    def blocks(self, clients: Clients) -> Iterator[Clients]:
        """The clients, as many at a time as are put on the atoms at once."""

    @property
    @abc.abstractmethod
    def members(self) -> FiniteFamily | ContinuousFamily:
        """The family that clients are of."""

    @abc.abstractmethod
    def put(self, clients: Clients) -> tuple[LawsOnAtoms, Outsiders | None]:
        """The clients on the atoms, and which of them are seen to be outside the family."""

    def laws_on_atoms(self, clients: Clients, *, refuse: bool) -> LawsOnAtoms:
        """The clients on the atoms. `refuse`: raise for one that is seen to be outside the family instead of warning."""
        found, outsiders = self.put(clients)
        if outsiders is not None:
            report_outsiders(self.members, self.members.bounds, outsiders, refuse=refuse)
        return found

    def laws_in_blocks(self, clients: Clients, *, refuse: bool) -> Iterator[LawsOnAtoms]:
        """The same, some at a time; outsiders of all blocks are warned about once, in the end."""
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
        """Laws (..., size) given on the atoms themselves."""

    @abc.abstractmethod
    def outputs(self, mechanism: BoxMechanism) -> Outputs[Clients]:
        """The output laws of a mechanism on this carrier."""

    @abc.abstractmethod
    def samples(self, numbers: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """What atoms (n,) stand for, (n, ...), for anybody who knows them."""

    @abc.abstractmethod
    def as_released(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        """Samples as a user meets them, for clients of this shape."""

    @abc.abstractmethod
    def single_law(self, p: Any) -> Floats:
        """One client on the atoms by the same instructions whatever it holds; refused where there is no such way."""

    @abc.abstractmethod
    def bins(self, p: Any) -> int:
        """On how many atoms p is an empirical law."""

    def calibrated_epsilon(self, epsilon: float) -> float:
        """What is left of epsilon for the box."""
        return epsilon

    def check_shared(self, method: str) -> None:
        """Refuse what only makes sense where client and curator know the same atoms."""
