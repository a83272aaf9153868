"""The atoms of a finite family are its outcomes: a client is a row of probabilities, a sample an outcome or its label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families import FiniteFamily
from discreet.families._outsiders import Outsiders, outsiders_on_outcomes
from discreet.mechanisms._carriers._carrier import Atoms, BoxMechanism, ClientBatch, Floats, Integers
from discreet.projection import Affine, Box


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


@final
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
        yield clients  # which the draw itself takes in blocks

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
