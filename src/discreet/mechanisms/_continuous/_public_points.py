"""Clients in many dimensions, one or many: the nodes are points drawn from h by a public generator, each of mass 1/N."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.families._densities import LogDensity
from discreet.families._seen import sampling_deviation
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.mechanisms._continuous._problem import OutputProblem

Floats = NDArray[np.float64]

MONTE_CARLO_NODES = 1 << 16


@dataclass(frozen=True, eq=False)
class PublicPoints:
    """Output laws in any dimension, on points of the reference."""

    problem: OutputProblem

    def law(self, clients: Sequence[LogDensity], many: bool) -> OutputLaw:
        """The output law of a single client, or those of many."""
        x, log_reference = self._public_points
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        law = self.problem.solve(
            clients,
            many,
            np.full(len(x), 1.0 / len(x)),
            log_ratio,
            sampling_deviation(self.problem.family.bounds, len(x)),
        )
        relative = law.output_masses_of(slice(None)) * len(x)
        return self.problem.with_known_masses(replace(law, errors=relative.std(axis=1) / math.sqrt(len(x))))

    @cached_property
    def _public_points(self) -> tuple[Floats, Floats]:
        x = self.problem.family.draw(MONTE_CARLO_NODES, np.random.default_rng(0))
        return x, self.problem.family.log_reference(x)
