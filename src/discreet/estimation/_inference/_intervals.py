"""Confidence intervals for shares and averages, with their coverage for any number of samples.

X of n samples fell on an outcome. Samples of different clients are independent but not identically distributed: X is a sum of independent
indicators with mean n q, where q is the average share. If clients are themselves drawn from a population, X is binomial given that
population's q. Write U_x(q) = P[Bin(n, q) >= x] and L_y(q) = P[Bin(n, q) <= y].

* `clopper_pearson_interval_ends`: the q under which both tails of the count are at least (1 - confidence)/2. It covers q with at least the
  stated confidence, for every n and q. (Score and normal intervals do so only on average: for an outcome with expected count 0.17, a nominal
  95 % score interval covers 84 %, since a single sample already excludes the truth.) Plans before the samples and bounds on liars use it.
* `average_upper_bound`: the same for the average of any values. Sort the observed values, add one sample of the largest possible value, give
  all of them random weights from a flat Dirichlet distribution, and take the quantile of the weighted average [Gaffke 2005, Three test
  statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable; Learned-Miller and Thomas 2019]. For two values
  it is Clopper and Pearson's bound. That it always has its stated coverage is a conjecture without a known exception; for many samples it
  is the normal interval.
* `exact_interval_ends`, identifiable shares. q is rejected if the smaller tail of x, together with the largest opposite tail that is no
  larger, has probability at most a = 1 - confidence [Blaker 2000]. The interval is the hull of the other q. It lies inside Clopper
  and Pearson's, who double the smaller tail. With more than `LARGEST_STEPPED` samples of an outcome and of its complement, Blaker's
  interval is shorter by one or two hundredths, and Clopper and Pearson's is given.
* `released_interval_ends_for_inversion`, shares between two lines. A share P is compatible with every released share q from q_H(P) to q_L(P)
  (`discreet.estimation._inference`), so a test of P is one of q_H <= q <= q_L. Reject in {U_x(q_L) <= t} and {L_y(q_H) <= t}, with t as
  large as the level allows. The probability of the two under q is U_x(q) + L_y(q), which falls and then grows with q (its derivative is n
  times the difference of two binomial probabilities, whose ratio grows with q), so its largest value over [q_H, q_L] is at an end. If
  the lines are far apart, one of the two tails is almost 0 at either end, and the other may use all of a instead of half of it.

**They hold for the given clients**, whose samples are independent coins with unequal probabilities of mean q. For Clopper and Pearson's: a
count is less spread than a binomial one (Hoeffding 1956: in every tail that starts at least one away from the mean), so the intervals are
conservative, the more so the more the clients differ. (The one tail that starts nearer, one sample or more of an outcome with n q < 0.026,
has probability at most n q, which exceeds 0.025 by 0.0004 at most.) For the two tests, *proof*: both accept whole numbers from lo to hi. If
lo <= n q <= hi, a sum of such coins is accepted at least as often as a binomial one [Hoeffding 1956, Thm 5]. For a < 1/4 and 1 <= n q <= n
- 1 that is so: P[Bin >= n q] and P[Bin <= n q] are more than 1/4 [Greenberg and Mohri 2014], so the numbers next to n q are accepted. If n
q < 1, one sample is accepted unless n q <= a, since U_1 is taken as n q, which is at least the probability of any sample at all (Markov);
and likewise if n (1 - q) < 1, with the complement.   QED

For a confidence of 3/4 or less Clopper and Pearson's intervals are given.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base.showing import with_short_repr
from discreet.audit import binomial_probability_lower_bound, binomial_probability_upper_bound
from discreet.estimation._inference._inversion import Inversion

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
_NEAREST, _FARTHEST = math.log(1e-250), math.log(1e20)  # search range of the saddlepoint, beyond the largest value
AT_LIMIT = 1e-9  # relative distance within which a share is at its limit
_NO_DEVIATION = 1e-3  # in standard ones: below it the two terms of the approximation cancel


@with_short_repr
@dataclass(frozen=True)
class Shares:
    """For every outcome: an estimate, its own interval, and intervals that hold all at once.

    Attributes:
        estimate: of each share.
        low: the lower end of each interval.
        high: the upper end of each interval.
        all_low: the lower ends of intervals that hold all at once; for a distribution they add up to at most 1.
        all_high: the upper ends of intervals that hold all at once.
    """

    estimate: Floats
    low: Floats
    high: Floats
    all_low: Floats
    all_high: Floats


def one_sided_miss_probability(confidence: float, among: int = 1) -> float:
    """The probability that one end of an interval misses; `among`: the number of intervals that share it (Bonferroni)."""
    return 0.5 * (1.0 - confidence) / among


def clopper_pearson_ends_for_miss(counts: ArrayLike, samples: float, miss: float) -> Ends:
    """Clopper and Pearson's ends, each of which misses with probability at most `miss`; counts need not be whole."""
    float_counts = np.asarray(counts, dtype=np.float64)
    share = float_counts / samples
    low = np.minimum(binomial_probability_lower_bound(float_counts, samples, miss), share)  # guards against rounding
    return low, np.maximum(binomial_probability_upper_bound(float_counts, samples, miss), share)


def clopper_pearson_interval_ends(
    counts: NDArray[np.int64], samples: int, confidence: float, *, among: int = 1
) -> Ends:
    """The shares under which both tails of the count are at least (1 - confidence)/2.

    `among`: the number of intervals that share the error (Bonferroni), so that the confidence holds for all of them together.
    """
    distinct, inverse = np.unique(counts, return_inverse=True)  # far fewer than outcomes
    low, high = clopper_pearson_ends_for_miss(distinct, samples, one_sided_miss_probability(confidence, among))
    return low[inverse].reshape(counts.shape), high[inverse].reshape(counts.shape)


def first_outcome_with_share_beyond_limit(
    counts: NDArray[np.int64], samples: int, limits: Floats, miss: float, *, above: bool
) -> int | None:
    """The first outcome whose interval, with ends that miss with probability `miss`, lies beyond its limit; None if there is none.

    Such a count is less likely than `miss` under the limit itself, so few intervals have to be computed.
    """
    side, slack = (1.0, 1.0 + AT_LIMIT) if above else (-1.0, 1.0 - AT_LIMIT)
    candidates = np.flatnonzero(side * (counts / samples - limits * slack) > 0.0)
    totals, limit = counts[candidates].astype(np.float64), np.minimum(limits[candidates], 1.0)
    tails = (
        scipy.special.betainc(totals, samples - totals + 1.0, limit)
        if above
        else scipy.special.betaincc(totals + 1.0, samples - totals, limit)
    )
    for outcome in candidates[tails < 2.0 * miss]:
        low, high = clopper_pearson_ends_for_miss(counts[outcome], samples, miss)
        if side * ((low if above else high) - limits[outcome] * slack) > 0.0:
            return int(outcome)
    return None


def average_upper_bound(values: Floats, counts: NDArray[np.int64], confidence: float, *, among: int = 1) -> float:
    """The largest average of values with these counts under the sampled distribution, by Gaffke's bound.

    Unseen values may exist: the bound allows for the largest value even if all samples are equal.
    """
    most = float(values.max())
    width = most - float(values.min())
    if width == 0.0:
        return most
    occurs = counts > 0
    gaps, inverse = np.unique(np.append((most - values[occurs]) / width, 0.0), return_inverse=True)
    weights = np.zeros(len(gaps))
    np.add.at(weights, inverse, np.append(counts[occurs], 1))
    return most - width * _one_minus_gaffke_bound(gaps, weights, one_sided_miss_probability(confidence, among))


def _one_minus_gaffke_bound(gaps: Floats, weights: Floats, miss: float) -> float:
    """The D with P[sum of weights G (D - gap) > 0] = miss, for G ~ Gamma(weight, 1) independent: 1 less Gaffke's bound.

    By Lugannani and Rice's formula at the saddlepoint. It overstates the probability by a few percent for a handful of samples (so D is
    conservative) and by less for more. In terms of g, the distance of the saddlepoint's pole beyond the largest value, D is a weighted
    average of the gaps, and one equation in g has to be solved.
    """
    if len(gaps) == 1:
        return 0.0
    if len(gaps) == 2:  # exactly Clopper and Pearson's
        samples = float(weights.sum()) - 1.0
        return float(gaps[1] * (1.0 - binomial_probability_upper_bound(weights[0] - 1.0, samples, miss)))

    def tail_minus_miss(log_g: float) -> float:
        return _saddlepoint_bound_and_tail(math.exp(log_g), gaps, weights)[1] - miss

    mean = float(weights @ gaps / weights.sum())
    spread = math.sqrt(max(float(weights @ np.square(gaps - mean)), 1e-300))
    log_guess = math.log(spread / max(-float(scipy.special.ndtri(miss)), 1e-9))
    low, high, step = log_guess, log_guess, 1.0  # the normal approximation, which suffices for many samples
    while high < _FARTHEST and tail_minus_miss(high) <= 0.0:
        low, high, step = high, min(high + step, _FARTHEST), 4.0 * step
    while low > _NEAREST and tail_minus_miss(low) > 0.0:
        low, high, step = max(low - step, _NEAREST), low, 4.0 * step
    if tail_minus_miss(high) <= 0.0:  # the mean itself, at very low confidence
        return mean
    if tail_minus_miss(low) > 0.0:
        return 0.0
    log_root = float(scipy.optimize.brentq(tail_minus_miss, low, high, xtol=1e-12))
    return _saddlepoint_bound_and_tail(math.exp(log_root), gaps, weights)[0]


def _saddlepoint_bound_and_tail(g: float, gaps: Floats, weights: Floats) -> tuple[float, float]:
    """D, and the probability of exceeding it, at one saddlepoint."""
    pulls = weights / (g + gaps)
    mean = float(pulls @ gaps / pulls.sum())
    ratio = (mean - gaps) / (g + gaps)
    logs = np.where(np.abs(ratio) < 0.5, np.log1p(np.maximum(ratio, -0.5)), np.log((g + mean) / (g + gaps)))
    deviation = math.sqrt(max(-2.0 * float(weights @ logs - weights @ ratio), 0.0))
    spread = math.sqrt(float(weights @ np.square(ratio)))
    if deviation < _NO_DEVIATION:
        skewness = 2.0 * float(weights @ (ratio / spread) ** 3) if spread else 0.0
        return mean, 0.5 - skewness / (6.0 * math.sqrt(2.0 * math.pi))
    density = math.exp(-0.5 * deviation**2) / math.sqrt(2.0 * math.pi)
    return mean, float(scipy.special.ndtr(-deviation)) + density * (1.0 / spread - 1.0 / deviation)


Integers = NDArray[np.int64]
LARGEST_STEPPED = 100  # most samples of an outcome whose tails are followed step by step
_LARGEST_LEVEL = 0.25  # level up to which intervals hold for unequal coins
_MOST_PAIRS = 1 << 13  # most (count, mass) pairs whose bands are computed one by one
_MOST_SAMPLES = 10**9  # most samples whose binomial tails are followed
_STEPS, _HALVINGS = 14, 9
_OUTWARDS = 1e-12  # relative outward shift of an end


def exact_interval_ends(counts: Integers, samples: int, confidence: float, *, among: int = 1) -> Ends:
    """The ends of intervals of released shares from counts of all samples; `among`: the number of intervals that share the error."""
    ends = clopper_pearson_interval_ends(counts, samples, confidence, among=among)
    level = (1.0 - confidence) / among
    if level >= _LARGEST_LEVEL or samples > _MOST_SAMPLES:
        return ends
    distinct, first, inverse = np.unique(counts, return_index=True, return_inverse=True)
    low, high = (end.ravel()[first] for end in ends)
    small = np.minimum(distinct, samples - distinct) <= LARGEST_STEPPED
    small_counts = distinct[small].astype(np.float64)
    low[small] = np.maximum(low[small], _cached_lower_interval_ends(small_counts, samples, level))
    high[small] = np.minimum(high[small], 1.0 - _cached_lower_interval_ends(samples - small_counts, samples, level))
    return low[inverse].reshape(counts.shape), high[inverse].reshape(counts.shape)


def released_interval_ends_for_inversion(
    counts: Integers, samples: int, confidence: float, inversion: Inversion, masses: Floats, *, among: int = 1
) -> Ends:
    """Released shares whose lines are the ends of intervals of true shares, for outcomes or events with these reference masses.

    If the two lines coincide they are the ends of intervals of released shares.
    """
    if inversion.exact:
        return exact_interval_ends(counts, samples, confidence, among=among)
    ends = clopper_pearson_interval_ends(counts, samples, confidence, among=among)
    level = (1.0 - confidence) / among
    pairs, first, inverse = np.unique(
        np.stack([counts.astype(np.float64), masses], axis=1), axis=0, return_index=True, return_inverse=True
    )
    if level >= _LARGEST_LEVEL or len(pairs) > _MOST_PAIRS or samples > _MOST_SAMPLES:
        return ends
    low, high = ends[0][first], ends[1][first]
    pair_counts, mu = pairs[:, 0], pairs[:, 1]
    low = np.maximum(low, _released_lower_ends_for_inversion(pair_counts, samples, level, inversion, mu))
    high = np.minimum(
        high, 1.0 - _released_lower_ends_for_inversion(samples - pair_counts, samples, level, inversion, 1.0 - mu)
    )
    return low[inverse.ravel()], high[inverse.ravel()]


def _probability_of_count_at_least(counts: Floats, samples: int, q: Floats) -> Floats:
    """U_x(q), with n q in place of U_1(q)."""
    safe_counts = np.maximum(counts, 1.0)
    tail = scipy.special.betainc(safe_counts, samples - safe_counts + 1.0, q)
    return np.where(counts == 1.0, np.minimum(samples * q, 1.0), np.where(counts == 0.0, 1.0, tail))


def _probability_of_count_at_most(counts: Floats, samples: int, q: Floats) -> Floats:
    """L_y(q), also for real y; 0 below 0."""
    safe_counts = np.clip(counts, 0.0, samples - 1.0)
    tail = scipy.special.betaincc(safe_counts + 1.0, samples - safe_counts, q)
    return np.where(counts < 0.0, 0.0, np.where(counts >= samples, 1.0, tail))


def _share_with_upper_tail(counts: Floats, samples: int, tail: float) -> Floats:
    """The q with U_x(q) = tail."""
    return np.where(counts == 1.0, tail / samples, binomial_probability_lower_bound(counts, samples, tail))


def _cached_lower_interval_ends(counts: Floats, samples: int, level: float) -> Floats:
    """inf {q : q is not rejected} of each count; computed ends are kept."""
    cache = _cache_of_lower_interval_ends(samples, level)
    new_counts = np.array([count for count in counts.tolist() if count not in cache])
    if new_counts.size:
        cache.update(
            zip(new_counts.tolist(), _compute_lower_interval_ends(new_counts, samples, level).tolist(), strict=True)
        )
    return np.array([cache[count] for count in counts.tolist()])


@functools.lru_cache(maxsize=64)
def _cache_of_lower_interval_ends(samples: int, level: float) -> dict[float, float]:
    """The computed ends by their counts: both ends, and estimates of the same size, ask for many again."""
    return {}


def _compute_lower_interval_ends(counts: Floats, samples: int, level: float) -> Floats:
    """inf {q : q is not rejected}, followed from where one tail is half of the level to where it is all of it.

    In between, the opposite tail is that of a y which grows with q. For each y the sum of the two tails falls and then grows, so it crosses
    the level at the beginning of its stretch, or once.
    """
    lower_ends = np.zeros_like(counts)
    start, stop = _share_with_upper_tail(counts, samples, 0.5 * level), _share_with_upper_tail(counts, samples, level)
    opposite = np.floor(scipy.special.bdtrik(0.5 * level, samples, np.clip(start, 1e-300, 1.0)))
    opposite = np.where(np.isfinite(opposite), opposite, -1.0) + 1.0
    for _ in range(3):  # the quantile may be off by one at a step
        opposite -= _probability_of_count_at_most(opposite, samples, start) > _probability_of_count_at_least(
            counts, samples, start
        )
    opposite = np.maximum(opposite, -1.0)
    pending = np.flatnonzero(counts > 0.0)
    for _ in range(LARGEST_STEPPED):  # far more than the steps needed; otherwise Clopper and Pearson's end
        if not pending.size:
            break
        tails = _BinomialTails(counts[pending], samples, opposite[pending])
        at_start = tails.both_tails_probability(start[pending]) > level
        lower_ends[pending[at_start]] = start[pending[at_start]]
        pending = pending[~at_start]
        tails = _BinomialTails(counts[pending], samples, opposite[pending])
        low, high = start[pending], stop[pending]
        root = _find_root(tails.tail_minus_longer_opposite_tail, low, high)
        crosses = tails.both_tails_probability(root) > level
        crossing_tails = _BinomialTails(counts[pending[crosses]], samples, opposite[pending[crosses]])
        lower_ends[pending] = high
        lower_ends[pending[crosses]] = _find_root(
            crossing_tails.both_tails_minus_level_function(level), low[crosses], root[crosses]
        )
        start[pending], opposite[pending] = root, opposite[pending] + 1.0
        pending = pending[~(crosses | (root >= high))]
    lower_ends[pending] = 0.0
    return np.asarray(lower_ends * (1.0 - _OUTWARDS))


@dataclass(frozen=True)
class _BinomialTails:
    """The tail of each count, and its opposite tail."""

    counts: Floats
    samples: int
    opposite: Floats

    def both_tails_probability(self, q: Floats) -> Floats:
        """The probability of both tails."""
        return _probability_of_count_at_least(self.counts, self.samples, q) + _probability_of_count_at_most(
            self.opposite, self.samples, q
        )

    def both_tails_minus_level_function(self, level: float) -> Callable[[Floats], Floats]:
        """A function of q: the excess of both tails over a level."""
        return lambda q: self.both_tails_probability(q) - level

    def tail_minus_longer_opposite_tail(self, q: Floats) -> Floats:
        """At least 0 once the opposite tail becomes a longer one."""
        return _probability_of_count_at_least(self.counts, self.samples, q) - _probability_of_count_at_most(
            self.opposite + 1.0, self.samples, q
        )


def _find_root(function: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    """The zero of a function that is negative and then positive, or a place a little left of it; `right` if it stays negative.

    By regula falsi in the Illinois form: an end that stays counts half.
    """
    low, high, at_low, at_high = left, right, function(left), function(right)
    is_negative = at_high <= 0.0
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            fraction = at_low / (at_low - at_high)
        middle = low + (high - low) * np.where(np.isfinite(fraction), np.clip(fraction, 0.0, 1.0), 0.5)
        value = function(middle)
        below = value <= 0.0
        at_high = np.where(below, 0.5 * at_high, value)
        at_low = np.where(below, value, 0.5 * at_low)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(is_negative, right, low)


def _released_lower_ends_for_inversion(
    counts: Floats, samples: int, level: float, inversion: Inversion, mu: Floats
) -> Floats:
    """The least q_L whose share is not rejected: between where one tail is half of the level, and where it is all of it."""
    low, high = _share_with_upper_tail(counts, samples, 0.5 * level), _share_with_upper_tail(counts, samples, level)
    for _ in range(_HALVINGS):  # the lower end stays a rejected share
        q = 0.5 * (low + high)
        tail = _probability_of_count_at_least(counts, samples, q)
        other_q = np.clip(least_released_share_with_same_client_share(inversion, mu, q), 0.0, 1.0)
        # no count is small enough to be rejected
        is_empty = _probability_of_count_at_most(np.zeros_like(q), samples, other_q) > tail
        opposite = np.where(is_empty, -1.0, _approximate_count_with_lower_tail(samples, other_q, tail))
        is_certain = is_empty | (_probability_of_count_at_most(opposite, samples, other_q) >= tail)
        both_tails = np.maximum(
            tail + _probability_of_count_at_most(opposite, samples, q),
            tail + _probability_of_count_at_least(counts, samples, other_q),
        )
        is_rejected = np.where(is_certain, both_tails, 2.0 * tail) <= level
        low, high = np.where(is_rejected, q, low), np.where(is_rejected, high, q)
    return np.asarray(np.where(counts == 0.0, 0.0, low * (1.0 - _OUTWARDS)))


def _approximate_count_with_lower_tail(samples: int, q: Floats, tail: Floats) -> Floats:
    """A real y with L_y(q) a little above the tail, by the normal distribution and its first correction; callers check it."""
    spread = np.sqrt(samples * q * (1.0 - q))
    z = scipy.special.ndtri(np.clip(tail, 1e-300, 0.5))
    return np.asarray(np.maximum(samples * q + z * spread + (1.0 - 2.0 * q) * (z * z - 1.0) / 6.0, 0.0))


def least_released_share_with_same_client_share(inversion: Inversion, mu: Floats, q: Floats) -> Floats:
    """q_H(P) for the share P = least(mu, q): the least released share that is compatible with a true share that large."""
    share, lines = inversion.least(mu, q), (inversion.high, inversion.low)
    totals = (0.0, 1.0 - inversion.low.total)
    bounds = [
        (share - total - line.reference * mu) / line.released
        for line, total in zip(lines, totals, strict=True)
        if line.released > 0.0
    ]
    return np.asarray(np.minimum(np.max(bounds, axis=0), q))
