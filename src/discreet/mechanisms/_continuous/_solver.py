"""From clients' densities to their output laws: nodes where p and h are evaluated once, and the exact finite problem on them.

One client in up to three dimensions gets panels of its own (`one_client`); many share one set of nodes, and on a line each has its own
cuts in it (`many_clients`). Above three dimensions the nodes are points of h (`public_points`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from discreet.families._continuous import LARGEST_CHARTED
from discreet.families._densities import LogDensity
from discreet.mechanisms._continuous._many_clients import ManyClients
from discreet.mechanisms._continuous._one_client import OneClient
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.mechanisms._continuous._problem import OutputProblem
from discreet.mechanisms._continuous._public_points import PublicPoints


@dataclass(frozen=True, eq=False)
class OutputSolver:
    """Finds the output laws of one sampler."""

    problem: OutputProblem

    def law(self, clients: Sequence[LogDensity], *, many: bool) -> OutputLaw:
        """The output law of a single client, or those of a list (`many`, also where it has one entry)."""
        if self.problem.family.dim > LARGEST_CHARTED:
            return self._on_points.law(clients, many)
        return self._together.law(clients) if many else OneClient(self.problem).law(clients[0])

    @cached_property
    def _together(self) -> ManyClients:
        return ManyClients(self.problem)

    @cached_property
    def _on_points(self) -> PublicPoints:
        return PublicPoints(self.problem)
