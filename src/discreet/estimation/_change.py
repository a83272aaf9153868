"""Two or more estimates put together: how shares changed, and the average client of several stages.

`change` is the difference of two estimates: two files, two rounds, or two groups. `survey_change` is that of the answers to a survey.
`pooled_population` is the average client of stages that released under different agreements.

**Change.** Counts X of n clients and Y of m clients are sums of independent coins with mean chances q and r; the clients may be the same,
since each draw has its own randomness. Write U_x(q) for the upper tail of the binomial distribution and N for the normal one, and let

    z(x; q) = N^-1(1 - U_x(q)) where that is positive and x >= n q + 1, else 0     (n q in place of U_1(q))

measure how far x lies above its mean. For t > 0, {z >= t} is an upper tail of X that starts at least one above the mean, so its probability
is at most 1 - N(t) [Hoeffding 1956, Thm 5], and for x = 1 by Markov's inequality. Hence z is stochastically smaller than the positive part
of a standard normal variable, whoever the clients are. Let z' be the same for the lower tail, u^2 + w^2 = 1 fixed weights, m a cap, and Z, Z'
independent and normal. Growing functions keep the order, so

    P[u z(Y; r) + w z'(X; q) >= c or z >= m or z' >= m]  <=  P[u Z+ + w Z'+ >= c or Z >= m or Z' >= m]

Choose c such that the right side is half of the error. The (q, r) without this event contain the truth, and the smallest difference among
them is the lower end: the minimum over 0 <= s <= m of the least share after with z <= s, less the largest share before with
z' <= min(m, (c - u s)/w). QED. The minimum is taken over steps of s with the worse end of each on either side, which makes it smaller. The
weights are public: those of equal shares before and after. For many clients the interval is then 1.03 to 1.08 times as long as the normal
one. The cap takes an eighth of the error; it keeps intervals short where a share is near 0, or where the two are far apart. (Two intervals
that share the error, subtracted from each other, are 1.6 times as long as the normal one.)

**What a change is about**: the average client of each file. It holds the chance of the draws. Who took part is not part of it: if other
clients answered, their difference is part of the change. For the same clients it says how they changed; it says so of the population
that they were drawn from too, unless clients tend to swap their outcomes.

**Changes of answers.** Both answers have intervals that miss with half the probability each. Where both hold, the difference lies between the
differences of opposite ends. That needs no assumption on whether the clients are the same, overlapping or others.

**Stages.** Stage i has n_i clients, other ones than the other stages, and an average client with the shares theta_i. The average client of
all has the shares sum_i w_i theta_i with w_i = n_i/sum_j n_j, which are public. Stages of one sampler are one stage: their counts add up.

**Two samplers.** The theorem on a change holds for any growing function of the two shares, so for their sum too: let z and z' measure how
far each count lies above its mean. The pairs of chances that u z + w z' < c and the cap leave contain the truth with probability 1 - error,
and the least sum among them is the lower end. The upper end is the same for the lower tails.

**More samplers.** Each of m stages has intervals that miss with an m-th of the error. Where all hold, the sum lies between the sums of their
ends.

Where the average client of a stage is not identifiable, its ends hold every share that could have led to the samples, and so do those here.
The estimate is then that among the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base.quadrature import gauss_rule
from discreet.audit import least_probability
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._from_releases import reported_statistic
from discreet.estimation._intervals import Ends
from discreet.estimation._inversion import lower_ends_together
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation, Shares, merge_counts
from discreet.estimation._statistics import Estimate
from discreet.estimation._surveys import SurveyAnswer, SurveyAnswers, answer_survey
from discreet.survey import SurveySampler

Floats = NDArray[np.float64]
_SPLITS = 64  # steps of the split of a change between its two counts
_STATISTIC_SPLITS = 12
_CAPPED = 0.125  # of the error that one end may miss with, for the cap
_LEAST_SCORE = 0.01
_NODES = 64
_TOGETHER = 1 << 15  # outcomes whose changes are computed in one go


@dataclass(frozen=True, eq=False)
class Change:
    """The difference between two estimates, the later less the earlier. Made by `change`.

    Attributes:
        before: the estimate that is compared with.
        after: the other.
        confidence: of every interval.
    """

    before: AnyPopulation
    after: AnyPopulation
    confidence: float

    def __repr__(self) -> str:
        return f"<Change from {self.before.clients:,} to {self.after.clients:,} clients>"

    @property
    def exact(self) -> bool:
        """Whether both average clients are identifiable; otherwise the estimate is the change among the samples."""
        return self.before.exact and self.after.exact

    @cached_property
    def law(self) -> Shares:
        """The change of every share, between -1 and 1: an estimate, its interval, and intervals that hold all at once."""
        estimate = self.after.law.estimate - self.before.law.estimate
        return Shares(estimate, *self._ends(1), *self._ends(len(estimate)))

    def statistic(
        self, wanted: str | Callable[[Any], float], *, reports: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Estimate:
        """The change of an average: "mean", "at-most:X", or a function of an outcome.

        Args:
            wanted: the statistic.
            reports: behind reports, those before and those after.

        Returns:
            The difference of the two estimates, and its interval.

        Raises:
            DiscreetError: for a statistic that is no average.
        """
        if isinstance(wanted, str) and wanted.partition(":")[0] not in ("mean", "at-most"):
            raise DiscreetError(f"statistic = {wanted!r} has no interval of its change; ask for mean or at-most:X")

        def bounds(found: AnyPopulation, score: float, place: int) -> Estimate:
            miss = float(scipy.special.ndtr(-max(score, _LEAST_SCORE)))
            if isinstance(found, Population):
                ends = (
                    2.0 if wanted == "mean" and found.domain.size > 2 else 1.0
                )  # of two values, one end may use all of the error
                return replace(found, confidence=1.0 - ends * miss).statistic(wanted)
            wide = replace(found, confidence=1.0 - 2.0 * miss)
            if reports is None:
                raise DiscreetError("statistics of reports need the reports themselves; pass reports=(before, after)")
            return reported_statistic(wide, str(wanted), reports[place])

        scores = self._split_scores(1, _STATISTIC_SPLITS)
        before = [bounds(self.before, float(score), 0) for score in scores.before]
        after = [bounds(self.after, float(score), 1) for score in scores.after]
        ends = list(zip(before[:-1], after[1:], strict=True))  # of each step, where both are widest
        low = min(later.low - earlier.high for earlier, later in ends)
        high = max(later.high - earlier.low for earlier, later in ends)
        first, last = before[0], after[0]
        estimate = None if first.estimate is None or last.estimate is None else last.estimate - first.estimate
        name = getattr(wanted, "__name__", "statistic") if callable(wanted) else wanted
        return Estimate(name, estimate, low, high, last.released - first.released, first.blur + last.blur)

    def _split_scores(self, among: int, steps: int) -> _SplitScores:
        noise = _usual_noise(self.before), _usual_noise(self.after)
        return _SplitScores.of(noise, 0.5 * (1.0 - self.confidence) / among, steps)

    def _ends(self, among: int) -> Ends:
        scores = self._split_scores(among, _SPLITS)
        before, after = (
            _ShareBounds.of(found, steps) for found, steps in ((self.before, scores.before), (self.after, scores.after))
        )
        return _share_changes(before, after)


@dataclass(frozen=True, eq=False)
class _SplitScores:
    """How the evidence against a change may be split: on each step, so many standard deviations before, and so many after.

    `before[j]` and `after[j + 1]` are the larger ends of step j: the first falls while the second grows.
    """

    before: Floats
    after: Floats

    @classmethod
    def of(cls, noise: tuple[float, float], error: float, steps: int) -> _SplitScores:
        """`noise`: of what is told before and after. `error`: of one end."""
        u, w = noise[1] / math.hypot(*noise), noise[0] / math.hypot(*noise)
        cap = -float(scipy.special.ndtri(_CAPPED * error))
        c = critical_score(error, (u, w), cap)
        after = np.linspace(0.0, min(cap, c / u), steps + 1)
        return cls(np.clip((c - u * after) / w, 0.0, cap), after)


def critical_score(error: float, weights: tuple[float, float], cap: float) -> float:
    """The c with P[u Z+ + w Z'+ >= c or Z >= cap or Z' >= cap] = error, for independent standard normal Z and Z'."""
    u, w = weights
    nodes, masses = gauss_rule(_NODES)

    def exceeding_density(z: Floats, c: float) -> Floats:
        """The density of Z = z >= 0, times the probability that Z' then exceeds."""
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return np.asarray(density * scipy.special.ndtr(-np.minimum(cap, (c - u * z) / w)))

    def excess(c: float) -> float:
        first, second = min(cap, c / u), min(cap, c / w)
        kink = min(max((c - w * cap) / u, 0.0), first)  # up to there the cap comes first
        inside = kink * float(masses @ exceeding_density(kink * nodes, c))
        inside += (first - kink) * float(masses @ exceeding_density(kink + (first - kink) * nodes, c))
        alone = float(scipy.special.ndtr(-first) + 0.5 * scipy.special.ndtr(-second))
        return (alone + inside) / error - 1.0

    return float(scipy.optimize.brentq(excess, 0.0, 4.0 * cap, xtol=1e-12))


def _usual_noise(found: AnyPopulation) -> float:
    """The standard error of a share of one k-th, from public numbers alone."""
    if isinstance(found, ReportedPopulation):
        share, slope = found.sampler.chances.outside, 1.0 / found.sampler.chances.gap
    else:
        share, slope = 1.0 / len(found.counts), max(found.inversion.low.released, found.inversion.high.released)
    return slope * math.sqrt(max(share * (1.0 - share), 1e-6) / found.clients)


@dataclass(frozen=True, eq=False)
class _ShareBounds:
    """The least and the largest share at each score, for each distinct (count, reference mass); `places`: which one an outcome has."""

    low: Floats
    high: Floats
    places: NDArray[np.int64]

    @classmethod
    def of(cls, found: AnyPopulation, scores: Floats) -> _ShareBounds:
        masses = np.zeros(len(found.counts)) if isinstance(found, ReportedPopulation) else found.reference
        pairs, places = np.unique(
            np.stack([found.counts.astype(np.float64), masses], axis=1), axis=0, return_inverse=True
        )
        tails = scipy.special.ndtr(-scores)
        low = _least_released(pairs[:, :1], found.clients, tails)
        high = 1.0 - _least_released(found.clients - pairs[:, :1], found.clients, tails)
        mu = np.broadcast_to(pairs[:, 1:], low.shape)
        return cls(*found.share_intervals((low, high), mu), places.ravel())


def _least_released(counts: Floats, clients: int, tails: Floats) -> Floats:
    """The least q with z(x; q) at most the score of each tail; 0 for a count of 0."""
    exact = np.nan_to_num(least_probability(counts, clients, tails), nan=0.0)
    next_to_mean = np.maximum(counts - 1.0, 0.0) / clients  # z is 0 from there on
    one = np.broadcast_to(tails / clients, exact.shape)  # Markov's inequality in place of the tail
    return np.asarray(np.where(counts == 1.0, one, np.minimum(exact, next_to_mean)))


def _share_changes(before: _ShareBounds, after: _ShareBounds) -> Ends:
    """The least and the largest difference over all steps, for every outcome."""
    size = len(before.places)
    low, high = np.empty(size), np.empty(size)
    for start in range(0, size, _TOGETHER):
        part = slice(start, start + _TOGETHER)
        earlier, later = before.places[part], after.places[part]
        low[part] = (after.low[later, 1:] - before.high[earlier, :-1]).min(axis=1)
        high[part] = (after.high[later, 1:] - before.low[earlier, :-1]).max(axis=1)
    return low, high


def change(before: AnyPopulation, after: AnyPopulation, *, confidence: float | None = None) -> Change:
    """The difference between two estimates on the same outcomes: of two rounds, two files, or two groups.

    The two may come from the same clients, from overlapping ones or from others, and from different mechanisms and budgets.

    Args:
        before: what `population`, `reported_population` or a group of `estimate_groups` gave.
        after: the same, from other releases.
        confidence: of every interval; by default that of the estimates.

    Returns:
        The change of every share, after less before, with intervals.

    Raises:
        DiscreetError: for estimates on different outcomes, and for several samples of each client.
    """
    for name, found in (("before", before), ("after", after)):
        if not isinstance(found, ReportedPopulation):
            check_kind(name, found, Population, "pass what population(...) or reported_population(...) gave")
        if found.rows is not None:
            raise DiscreetError(f"{name} has several samples of each client; estimate one round at a time")
    if before.domain.size != after.domain.size or list(before.domain.names) != list(after.domain.names):
        raise DiscreetError(
            f"before and after are on different outcomes ({before.domain.size:,} and {after.domain.size:,}); a change needs the same"
        )
    wanted = min(before.confidence, after.confidence) if confidence is None else confidence
    return Change(before, after, float(OPEN_UNIT.check("confidence", wanted)))


@dataclass(frozen=True, eq=False)
class SurveyChange:
    """How the answers to a survey changed. Made by `survey_change`.

    Attributes:
        before: the earlier answers, with intervals of a higher confidence.
        after: the later ones, likewise.
        confidence: of the intervals of the change.
        laws: for each question the change of its numbers, with intervals of each and of all together.
    """

    before: SurveyAnswers
    after: SurveyAnswers
    confidence: float
    laws: tuple[Shares, ...] = field(repr=False)


def survey_change(
    before: SurveySampler,
    earlier: ArrayLike,
    after: SurveySampler,
    later: ArrayLike,
    *,
    confidence: float = 0.95,
) -> SurveyChange:
    """How the answers to a survey changed from one set of reports to another.

    Args:
        before: what released the earlier reports.
        earlier: those reports.
        after: what released the later ones; the same survey, perhaps at another epsilon.
        later: those reports, of the same clients or others.
        confidence: of every interval.

    Returns:
        The change of every number, the later less the earlier.

    Raises:
        DiscreetError: for two different surveys, and what `answer_survey` refuses.
    """
    for name, sampler in (("before", before), ("after", after)):
        check_kind(name, sampler, SurveySampler, "pass the one that released the reports")
    if before.survey != after.survey:
        raise DiscreetError("before and after are two surveys; a change is that of the same columns and questions")
    each = 1.0 - (1.0 - OPEN_UNIT.check("confidence", confidence)) / 2.0
    first, second = answer_survey(before, earlier, confidence=each), answer_survey(after, later, confidence=each)
    laws = tuple(_answer_change(one, two) for one, two in zip(first, second, strict=True))
    return SurveyChange(first, second, float(confidence), laws)


def _answer_change(before: SurveyAnswer, after: SurveyAnswer) -> Shares:
    one, two = before.law, after.law
    return Shares(
        after.consistent - before.consistent,
        two.low - one.high,
        two.high - one.low,
        two.all_low - one.all_high,
        two.all_high - one.all_low,
    )


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
                found[place] = merge_counts([found[place], stage])
        return tuple(found)

    def _weights(self, stages: Sequence[AnyPopulation]) -> list[float]:
        return [each.clients / self.clients for each in stages]

    def _ends(self, among: int) -> Ends:
        stages, weights = self._distinct_stages, self._weights(self._distinct_stages)
        error = 0.5 * (1.0 - self.confidence) / among
        if len(stages) == 1:
            law = replace(stages[0], confidence=self.confidence).law
            return (law.low, law.high) if among == 1 else (law.all_low, law.all_high)
        if len(stages) == 2:
            scaled = weights[0] * _usual_noise(stages[0]), weights[1] * _usual_noise(stages[1])
            scores = _SplitScores.of(scaled, error, _SPLITS)
            first, second = (
                _ShareBounds.of(each, steps) for each, steps in zip(stages, (scores.before, scores.after), strict=True)
            )
            # of each step the ends on which both scores are larger: the first falls while the second grows
            low = weights[0] * first.low[first.places, :-1] + weights[1] * second.low[second.places, 1:]
            high = weights[0] * first.high[first.places, :-1] + weights[1] * second.high[second.places, 1:]
            return low.min(axis=1), high.max(axis=1)
        each_error = (1.0 - self.confidence) / (among * len(stages))
        laws = [replace(each, confidence=1.0 - each_error).law for each in stages]
        low = sum((w * law.low for w, law in zip(weights, laws, strict=True)), np.zeros(1))
        return low, sum((w * law.high for w, law in zip(weights, laws, strict=True)), np.zeros(1))


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
