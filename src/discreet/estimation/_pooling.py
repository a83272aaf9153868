"""`pooled_population`: the average client of several stages, which released under different agreements.

Stage i has n_i clients, other ones than the other stages, and an average client with the shares theta_i. The average client of all has the
shares sum_i w_i theta_i with w_i = n_i/sum_j n_j, which are public. Stages of one sampler are one stage: their counts add up.

**Two samplers.** The theorem of `discreet.estimation._groups` on a change holds for any growing function of the two shares, so for their sum
too: let z and z' measure how far each count lies above its mean. The pairs of chances that u z + w z' < c and the cap leave contain the truth
with probability 1 - error, and the least sum among them is the lower end. The upper end is the same for the lower tails.

**More samplers.** Each of m stages has intervals that miss with an m-th of the error. Where all hold, the sum lies between the sums of their
ends.

Where the average client of a stage is not identifiable, its ends hold every share that could have led to the samples, and so do those here.
The estimate is then that among the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._groups import STEPS, AnyPopulation, ShareBounds, SplitScores, usual_noise
from discreet.estimation._intervals import Ends
from discreet.estimation._inversion import lower_ends_together
from discreet.estimation._population import Population, Shares
from discreet.estimation._reports import ReportedPopulation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PooledPopulation:
    """The average client of several stages together. Made by `pooled_population`.

    Attributes:
        stages: the estimate of each stage by itself, in order.
        confidence: of every interval.
    """

    stages: tuple[AnyPopulation, ...]
    confidence: float

    def __repr__(self) -> str:
        return f"<PooledPopulation of {len(self.stages)} stages, {self.clients:,} clients>"

    @property
    def clients(self) -> int:
        """The number of clients in all stages."""
        return sum(each.clients for each in self.stages)

    @property
    def domain(self) -> Domain:
        """The outcomes."""
        return self.stages[0].domain

    @property
    def exact(self) -> bool:
        """Whether the average client of every stage is identifiable; otherwise the estimate is that among the samples."""
        return all(each.exact for each in self.stages)

    @cached_property
    def law(self) -> Shares:
        """The average client: estimates, their intervals, and intervals that hold for all outcomes at once."""
        weights = self._weights(self.stages)
        estimate = sum((w * each.law.estimate for w, each in zip(weights, self.stages, strict=True)), np.zeros(1))
        low, high = self._ends(1)
        all_low, all_high = self._ends(len(estimate))
        return Shares(estimate, low, high, lower_ends_together(all_low), all_high)

    @cached_property
    def _distinct_stages(self) -> tuple[AnyPopulation, ...]:
        """The stages, those of one sampler as one."""
        found: list[AnyPopulation] = []
        for stage in self.stages:
            place = next((i for i, each in enumerate(found) if each.sampler == stage.sampler), None)
            if place is None:
                found.append(stage)
            else:
                found[place] = _join(found[place], stage)
        return tuple(found)

    def _weights(self, stages: Sequence[AnyPopulation]) -> list[float]:
        return [each.clients / self.clients for each in stages]

    def _ends(self, among: int) -> Ends:
        stages, weights = self._distinct_stages, self._weights(self._distinct_stages)
        error = 0.5 * (1.0 - self.confidence) / among
        if len(stages) == 1:
            (law,) = (replace(stages[0], confidence=self.confidence).law,)
            return (law.low, law.high) if among == 1 else (law.all_low, law.all_high)
        if len(stages) == 2:
            scaled = weights[0] * usual_noise(stages[0]), weights[1] * usual_noise(stages[1])
            scores = SplitScores.of(scaled, error, STEPS)
            first, second = (
                ShareBounds.of(each, steps) for each, steps in zip(stages, (scores.before, scores.after), strict=True)
            )
            # of each step the ends on which both scores are larger: the first falls while the second grows
            low = weights[0] * first.low[first.places, :-1] + weights[1] * second.low[second.places, 1:]
            high = weights[0] * first.high[first.places, :-1] + weights[1] * second.high[second.places, 1:]
            return low.min(axis=1), high.max(axis=1)
        each_error = (1.0 - self.confidence) / (among * len(stages))
        laws = [replace(each, confidence=1.0 - each_error).law for each in stages]
        low = sum((w * law.low for w, law in zip(weights, laws, strict=True)), np.zeros(1))
        return low, sum((w * law.high for w, law in zip(weights, laws, strict=True)), np.zeros(1))


def _join(one: AnyPopulation, other: AnyPopulation) -> AnyPopulation:
    """Two stages of one sampler as one."""
    if isinstance(one, ReportedPopulation):
        return replace(one, counts=one.counts + other.counts, clients=one.clients + other.clients)
    return replace(one, counts=one.counts + other.counts)


def pooled_population(stages: Sequence[AnyPopulation], *, confidence: float | None = None) -> PooledPopulation:
    """The average client of several stages of a collection, each of other clients and perhaps by another mechanism.

    Args:
        stages: what `population` or `reported_population` gave for each stage.
        confidence: of every interval; by default the smallest of the stages.

    Returns:
        The shares of the average client of all stages, with intervals.

    Raises:
        DiscreetError: for no stages, stages on other outcomes, bins of a continuous family, and several samples of each client.
    """
    check_kind("stages", stages, Sequence, "pass a list of estimates, one of each stage")
    if not stages:
        raise DiscreetError("stages is empty; pass the estimate of each stage")
    for place, each in enumerate(stages):
        if not isinstance(each, (Population, ReportedPopulation)):
            raise DiscreetError(
                f"stages[{place}] = {each!r} is no estimate; pass what population(...) or reported_population(...) gave"
            )
        if each.rows is not None or each.finest is not None:
            raise DiscreetError(
                f"stages[{place}] has several samples of each client, or bins of a continuous family; stages are pooled for one sample of "
                "each client on outcomes that can be listed"
            )
        if list(each.domain.names) != list(stages[0].domain.names):
            raise DiscreetError(f"stages[{place}] is on other outcomes than stages[0]; stages are pooled on the same")
    wanted = min(each.confidence for each in stages) if confidence is None else confidence
    return PooledPopulation(tuple(stages), float(OPEN_UNIT.check("confidence", wanted)))
