"""How far an estimate can have moved: the change between two collections (`change`, `survey_change`), and the effect of `liars`.

`change` is the difference of two estimates: two files, two rounds, or two groups. `survey_change` is that of the answers to a survey.

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

**Liars.** m of n samples are arbitrary: sent in place of honest ones, or added to them. Let c be the count of an outcome (or an event)
among all n samples, c' among the n' >= n - m honest ones. In place of an honest sample a lie changes c by one at most; added to them it
raises n by one, and c by 0 or 1. Of a lies added and m - a sent in place of others therefore n' = n - a and c - m <= c' <= c + m - a, and

* a share moves by at most m/n: c'/n' <= (c + m - a)/(n - a) <= (c + m)/n as long as c + m <= n, and c'/n' <= 1 otherwise; from below the
  same holds for the complement. So an estimate a mu + s Q moves by at most s m/n: with the linear mechanism by
  m/(gamma n), where without privacy it would be m/n. So do both ends of the band that a projection leaves between two lines, with the
  larger of their slopes: `least` and `most` of an `Inversion` are a maximum and a minimum of lines with these slopes.
* the ends of Clopper and Pearson's intervals grow with the count; and P[Bin(n, q) <= c + a] >= P[Bin(n - a, q) <= c], since the a further
  trials add at most a: hence the upper end of c' among n' is at most that of c + m among n, and the lower one at least that of c - m among
  n. The interval between the two contains the interval of the honest samples alone. It therefore covers the honest clients' average as
  often, however the lies were chosen, even by an attacker who has seen all samples. (Ends move by more than m/n if there are few samples:
  from none of n to one, the upper end of a 95 % interval moves by 1.9/n.) The intervals of an estimate are sharper
  (`discreet.estimation._inference._intervals`) and lie inside these.

If each client released several samples, a liar is a client with all its samples, and n is the number of clients. Their intervals are
Gaffke's, whose bound grows with every client's share and with every client that is added at the top.

**False reports.** A lie changes by at most one how many reports hold x, for every outcome x. So the above holds of these numbers: a share
moves by at most m/((p_in - p_out) n). A report holds many outcomes at once, so the same lie moves all of a block: the estimated share of a
set A moves by at most m (max |A and B| - min |A and B|)/((p_in - p_out) n), over blocks B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base.quadrature import gauss_rule
from discreet.audit import binomial_probability_lower_bound
from discreet.errors import OPEN_UNIT, DiscreetError, check_count, check_kind, check_list
from discreet.estimation._from_releases import reported_statistic
from discreet.estimation._inference import (
    Ends,
    Estimate,
    Shares,
    clopper_pearson_interval_ends,
    one_sided_miss_probability,
)
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation
from discreet.estimation._surveys import SurveyAnswer, SurveyAnswers, answer_survey
from discreet.mechanisms import AffineBlocks, BlockFamily
from discreet.survey import SurveySampler

Floats = NDArray[np.float64]
SPLITS = 64  # steps of the split of a change between its two counts
_STATISTIC_SPLITS = 12
_CAPPED = 0.125  # of the error that one end may miss with, for the cap
_LEAST_SCORE = 0.01
_NODES = 64
_TOGETHER = 1 << 15  # outcomes whose changes are computed in one go
_MOST_CHECKED = 10**7  # pairs of a block and an outcome that are looked at one by one
_REPORTS_TOGETHER = 1 << 16  # whose blocks are looked at in one go


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
        return Shares(estimate, *self._change_interval_ends(1), *self._change_interval_ends(len(estimate)))

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
            DiscreetError: for a statistic that is no average, and reports that are not a pair.
        """
        if not callable(wanted) and str(wanted).partition(":")[0] not in ("mean", "at-most"):
            raise DiscreetError(f"statistic = {wanted!r} has no interval of its change; ask for mean or at-most:X")
        pair = None if reports is None else check_list("reports", reports, "pass (before, after)")
        if pair is not None and len(pair) != 2:
            raise DiscreetError(f"reports holds {len(pair):,} lists; pass two, those before and those after")

        def statistic_with_interval_at_score(population: AnyPopulation, score: float, side: int) -> Estimate:
            miss = float(scipy.special.ndtr(-max(score, _LEAST_SCORE)))
            if isinstance(population, Population):
                # of two values, one end may use all of the error
                ends = 2.0 if wanted == "mean" and population.domain.size > 2 else 1.0
                return replace(population, confidence=1.0 - ends * miss).statistic(wanted)
            wide_population = replace(population, confidence=1.0 - 2.0 * miss)
            if pair is None:
                raise DiscreetError(
                    "the change of a statistic behind reports needs the reports themselves; pass reports=(before, after)"
                )
            return reported_statistic(wide_population, str(wanted), pair[side])

        scores = self._scores_before_and_after(1, _STATISTIC_SPLITS)
        before = [statistic_with_interval_at_score(self.before, float(score), 0) for score in scores.before]
        after = [statistic_with_interval_at_score(self.after, float(score), 1) for score in scores.after]
        ends = list(zip(before[:-1], after[1:], strict=True))  # of each step, where both are widest
        low = min(later.low - earlier.high for earlier, later in ends)
        high = max(later.high - earlier.low for earlier, later in ends)
        first, last = before[0], after[0]
        estimate = None if first.estimate is None or last.estimate is None else last.estimate - first.estimate
        name = getattr(wanted, "__name__", "statistic") if callable(wanted) else wanted
        return Estimate(name, estimate, low, high, last.released - first.released, first.blur + last.blur)

    def _scores_before_and_after(self, among: int, steps: int) -> SplitScores:
        noise = standard_error_of_uniform_share(self.before), standard_error_of_uniform_share(self.after)
        return SplitScores.from_standard_errors(noise, one_sided_miss_probability(self.confidence, among), steps)

    def _change_interval_ends(self, among: int) -> Ends:
        scores = self._scores_before_and_after(among, SPLITS)
        before, after = (
            ShareBounds.from_estimate_and_scores(population, steps)
            for population, steps in ((self.before, scores.before), (self.after, scores.after))
        )
        return _share_change_interval_ends(before, after)


@dataclass(frozen=True, eq=False)
class SplitScores:
    """How the evidence against a change may be split: on each step, so many standard deviations before, and so many after.

    `before[j]` and `after[j + 1]` are the larger ends of step j: the first falls while the second grows.
    """

    before: Floats
    after: Floats

    @classmethod
    def from_standard_errors(cls, noise: tuple[float, float], error: float, steps: int) -> SplitScores:
        """The scores for two estimates with these standard errors; `error`: the probability that one end misses."""
        u, w = noise[1] / math.hypot(*noise), noise[0] / math.hypot(*noise)
        cap = -float(scipy.special.ndtri(_CAPPED * error))
        c = critical_score_of_weighted_sum(error, (u, w), cap)
        after = np.linspace(0.0, min(cap, c / u), steps + 1)
        return cls(np.clip((c - u * after) / w, 0.0, cap), after)


def critical_score_of_weighted_sum(error: float, weights: tuple[float, float], cap: float) -> float:
    """The c with P[u Z+ + w Z'+ >= c or Z >= cap or Z' >= cap] = error, for independent standard normal Z and Z'."""
    u, w = weights
    nodes, masses = gauss_rule(_NODES)

    def density_times_exceedance_probability(z: Floats, c: float) -> Floats:
        """The density of Z = z >= 0, times the probability that Z' then exceeds."""
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return np.asarray(density * scipy.special.ndtr(-np.minimum(cap, (c - u * z) / w)))

    def relative_excess_probability(c: float) -> float:
        first, second = min(cap, c / u), min(cap, c / w)
        kink = min(max((c - w * cap) / u, 0.0), first)  # up to there the cap comes first
        inside = kink * float(masses @ density_times_exceedance_probability(kink * nodes, c))
        inside += (first - kink) * float(
            masses @ density_times_exceedance_probability(kink + (first - kink) * nodes, c)
        )
        alone = float(scipy.special.ndtr(-first) + 0.5 * scipy.special.ndtr(-second))
        return (alone + inside) / error - 1.0

    return float(scipy.optimize.brentq(relative_excess_probability, 0.0, 4.0 * cap, xtol=1e-12))


def standard_error_of_uniform_share(estimate: AnyPopulation) -> float:
    """The standard error of a share of one k-th, from public numbers alone."""
    if isinstance(estimate, ReportedPopulation):
        share, slope = estimate.sampler.chances.outside, 1.0 / estimate.sampler.chances.gap
    else:
        share = 1.0 / len(estimate.counts)
        slope = max(estimate.inversion.low.released, estimate.inversion.high.released)
    return slope * math.sqrt(max(share * (1.0 - share), 1e-6) / estimate.clients)


@dataclass(frozen=True, eq=False)
class ShareBounds:
    """The least and the largest share at each score, for each distinct (count, reference mass); `pair_numbers`: which one an outcome has."""

    low: Floats
    high: Floats
    pair_numbers: NDArray[np.int64]

    @classmethod
    def from_estimate_and_scores(cls, estimate: AnyPopulation, scores: Floats) -> ShareBounds:
        """The bounds of an estimate's shares that lie so many standard deviations (scores) away."""
        masses = np.zeros(len(estimate.counts)) if isinstance(estimate, ReportedPopulation) else estimate.reference
        pairs, inverse = np.unique(
            np.stack([estimate.counts.astype(np.float64), masses], axis=1), axis=0, return_inverse=True
        )
        tails = scipy.special.ndtr(-scores)
        low = _least_released_shares_by_tail(pairs[:, :1], estimate.clients, tails)
        high = 1.0 - _least_released_shares_by_tail(estimate.clients - pairs[:, :1], estimate.clients, tails)
        mu = np.broadcast_to(pairs[:, 1:], low.shape)
        return cls(*estimate.client_intervals_from_released_intervals((low, high), mu), inverse.ravel())


def _least_released_shares_by_tail(counts: Floats, clients: int, tails: Floats) -> Floats:
    """The least q with z(x; q) at most the score of each tail; 0 for a count of 0."""
    exact = np.nan_to_num(binomial_probability_lower_bound(counts, clients, tails), nan=0.0)
    next_to_mean = np.maximum(counts - 1.0, 0.0) / clients  # z is 0 from there on
    markov_bound = np.broadcast_to(tails / clients, exact.shape)  # Markov's inequality in place of the tail
    return np.asarray(np.where(counts == 1.0, markov_bound, np.minimum(exact, next_to_mean)))


def _share_change_interval_ends(before: ShareBounds, after: ShareBounds) -> Ends:
    """The least and the largest difference over all steps, for every outcome."""
    size = len(before.pair_numbers)
    low, high = np.empty(size), np.empty(size)
    for start in range(0, size, _TOGETHER):
        batch = slice(start, start + _TOGETHER)
        earlier, later = before.pair_numbers[batch], after.pair_numbers[batch]
        low[batch] = (after.low[later, 1:] - before.high[earlier, :-1]).min(axis=1)
        high[batch] = (after.high[later, 1:] - before.low[earlier, :-1]).max(axis=1)
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
    for name, estimate in (("before", before), ("after", after)):
        if not isinstance(estimate, ReportedPopulation):
            check_kind(name, estimate, Population, "pass what population(...) or reported_population(...) gave")
        if estimate.rows is not None:
            raise DiscreetError(f"{name} has several samples of each client; estimate one round at a time")
    if before.domain.size != after.domain.size or list(before.domain.names) != list(after.domain.names):
        raise DiscreetError(
            f"before and after are on different outcomes ({before.domain.size:,} and {after.domain.size:,}); a change needs the same"
        )
    level = min(before.confidence, after.confidence) if confidence is None else confidence
    return Change(before, after, float(OPEN_UNIT.check("confidence", level)))


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
    answer_confidence = 1.0 - (1.0 - OPEN_UNIT.check("confidence", confidence)) / 2.0
    answers_before = answer_survey(before, earlier, confidence=answer_confidence)
    answers_after = answer_survey(after, later, confidence=answer_confidence)
    laws = tuple(_change_of_survey_answer(*pair) for pair in zip(answers_before, answers_after, strict=True))
    return SurveyChange(answers_before, answers_after, float(confidence), laws)


def _change_of_survey_answer(before: SurveyAnswer, after: SurveyAnswer) -> Shares:
    law_before, law_after = before.law, after.law
    return Shares(
        after.consistent - before.consistent,
        law_after.low - law_before.high,
        law_after.high - law_before.low,
        law_after.all_low - law_before.all_high,
        law_after.all_high - law_before.all_low,
    )


@dataclass(frozen=True, eq=False)
class Liars:
    """The possible effect of a number of liars among the clients. Made by `liars`.

    Attributes:
        number: how many there are.
        shift: by how much they can have moved the estimate of a share, at most.
        band_shift: by how much they can have moved each end of the range that would be left for it without any noise; the same where that
            is the estimate.
        found: the estimate itself.
    """

    number: int
    shift: float
    band_shift: float
    found: Population = field(repr=False)

    @cached_property
    def law(self) -> Shares:
        """The estimate, with intervals that hold despite the liars."""
        return _shares_with_intervals_despite_liars(self.found, self.number)


@dataclass(frozen=True, eq=False)
class ReportLiars:
    """What so many liars among the clients can have done. Made by `report_liars`.

    Attributes:
        number: how many there are.
        shift: by how much they can have moved the estimate of any single share, at most.
        found: the estimate itself.
    """

    number: int
    shift: float
    found: ReportedPopulation = field(repr=False)

    @property
    def band_shift(self) -> float:
        """By how much they can have moved each end of the range that would be left without any noise: as much as the estimate."""
        return self.shift

    def shift_of(self, outcomes: Iterable[Any]) -> float:
        """By how much they can have moved the estimated share of a set of outcomes together, at most.

        Args:
            outcomes: labels or outcome numbers.

        Returns:
            A bound; the largest shift itself for subsets, and for affine blocks where few enough can be looked at.

        Raises:
            DiscreetError: for outcomes outside the domain.
        """
        members = check_list("outcomes", outcomes, "pass labels or outcome numbers")
        numbers = np.unique(self.found.sampler.family.numbers(members))
        least, most = fewest_and_most_outcomes_in_report(self.found.sampler.blocks, numbers)
        return self.shift * (most - least)

    @cached_property
    def law(self) -> Shares:
        """The estimate, with intervals that hold despite them."""
        return _shares_with_intervals_despite_liars(self.found, self.number)


def liars(found: AnyPopulation, number: int = 1) -> Liars | ReportLiars:
    """What liars among the clients can have done to an estimate.

    Args:
        found: the estimate.
        number: the number of false samples, in place of honest ones or in addition to them; if clients released several samples, the
            number of such clients.

    Returns:
        The largest shift of a share, and intervals that hold despite the liars.

    Raises:
        DiscreetError: for an invalid number, or one larger than that of the clients.
    """
    if isinstance(found, ReportedPopulation):
        return report_liars(found, number)
    if not isinstance(found, Population):
        raise DiscreetError(f"found = {found!r} is not an estimate; pass the result of population(...)")
    number = check_count("number", number, least=0, most=found.clients, fix="it is how many of the clients may lie")
    inversion = found.inversion
    estimate_slope = inversion.low.released if found.exact else 1.0  # if not exact, the share among the samples
    slope = max(inversion.low.released, inversion.high.released)
    shift, band_shift = (number * line_slope / found.clients for line_slope in (estimate_slope, slope))
    return Liars(number, shift, band_shift if found.exact else min(band_shift, 1.0), found)


def count_liars_that_shift_half_interval(estimate: AnyPopulation) -> int:
    """How many liars can move a share by half the length of the longest interval."""
    return count_shifts_fitting_half_interval(estimate.law, liars(estimate, 1).shift)


def count_shifts_fitting_half_interval(law: Shares, shift: float) -> int:
    """How many times a shift fits into half the length of the longest interval, rounded up."""
    longest = float((law.high - law.low).max())
    if shift == 0.0:  # of one outcome alone, whose interval is a point
        return 0
    return math.ceil(0.5 * longest / shift - 1e-9)


def _shares_with_intervals_despite_liars(estimate: AnyPopulation, number: int) -> Shares:
    """The estimate, with intervals that hold if `number` of the clients lie."""
    if number == 0:
        return estimate.law
    ends, (all_low, all_high) = (
        _interval_ends_despite_liars(estimate, number, among) for among in (1, len(estimate.counts))
    )
    all_low = np.minimum(all_low, estimate.law.all_low)  # these may have been lowered
    return Shares(estimate.law.estimate, *ends, all_low, all_high)


def _interval_ends_despite_liars(estimate: AnyPopulation, number: int, among: int) -> Ends:
    """The ends of the hull of all intervals that honest clients can give if `number` of the clients lie."""
    if estimate.rows is not None:
        fewer, more = (
            estimate.rows.share_interval_ends(estimate.confidence, among=among, liars=added_clients)
            for added_clients in (-number, number)
        )
    else:
        shifted_counts = np.maximum(estimate.counts - number, 0), np.minimum(estimate.counts + number, estimate.clients)
        fewer, more = (
            clopper_pearson_interval_ends(counts, estimate.clients, estimate.confidence, among=among)
            for counts in shifted_counts
        )
    low, _ = estimate.client_intervals_from_released_intervals(fewer)
    _, high = estimate.client_intervals_from_released_intervals(more)
    return low, high


def report_liars(found: ReportedPopulation, number: int = 1) -> ReportLiars:
    """What liars among the clients can have done to an estimate.

    Args:
        found: the estimate.
        number: how many of its reports may be lies, in place of honest ones or in addition to them.

    Returns:
        By how much they can have shifted a share or a set of shares, and intervals that hold despite them.

    Raises:
        DiscreetError: for a number that is none, or larger than that of the clients.
    """
    check_kind("found", found, ReportedPopulation, "pass what reported_population(...) returned")
    number = check_count("number", number, least=0, most=found.clients, fix="it is how many of the clients may lie")
    return ReportLiars(number, number / (found.sampler.chances.gap * found.clients), found)


def fewest_and_most_outcomes_in_report(blocks: BlockFamily, outcomes: NDArray[np.int64]) -> tuple[int, int]:
    """The least and the most of these outcomes that a block holds; for many affine blocks, bounds of them."""
    size, others = len(outcomes), blocks.point_count - len(outcomes)
    least, most = max(0, blocks.width - others), min(size, blocks.width)
    if not isinstance(blocks, AffineBlocks) or blocks.block_count * size > _MOST_CHECKED or not size:
        return least, most
    counts = np.zeros(blocks.block_count, dtype=np.int64)
    reports = blocks.reports_of_ranks(np.arange(blocks.block_count))
    for start in range(0, blocks.block_count, _REPORTS_TOGETHER):
        batch = reports[start : start + _REPORTS_TOGETHER]
        for outcome in outcomes:
            counts[start : start + _REPORTS_TOGETHER] += blocks.holds(batch, np.array([outcome]))
    return int(counts.min()), int(counts.max())
