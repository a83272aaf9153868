"""What carriers of densities share: a client is a density or a list of them, `output` is a law on the whole space, a sample is a point."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import DiscreetError
from discreet.families._clients import as_clients, is_many
from discreet.families._continuous import ContinuousFamily
from discreet.families._densities import LogDensity
from discreet.families._fits import HistogramLaw
from discreet.families._laws import as_laws
from discreet.mechanisms._carriers._carrier import Atoms, BoxMechanism, ClientBatch, Floats
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.mechanisms._continuous._problem import OutputProblem
from discreet.mechanisms._continuous._solver import OutputSolver

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
    """Atoms of the reference of one family. Final classes say which.

    `whose` is the family that clients are of, where the reference is another one's.
    """

    family: ContinuousFamily
    whose: ContinuousFamily | None = field(default=None, kw_only=True)

    @property
    def members(self) -> ContinuousFamily:
        return self.family if self.whose is None else self.whose

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """The digest of the atoms, in single precision: what a number means, whatever the last bits are."""

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
            f"constant_time is for finite families: what a density costs to evaluate depends on the client; {self.family!r} is "
            "continuous: bin its clients, and release on a Simplex"
        )

    def bins(self, p: Any) -> int:
        if not isinstance(p, HistogramLaw):
            raise DiscreetError("estimation_cost needs a histogram: p = family.law(records=..., fit=HistogramFit())")
        return p.bins
