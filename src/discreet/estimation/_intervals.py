"""Confidence intervals for shares and averages, from how many of n samples fell where, that cover however few fell there.

Samples of different clients are independent but not alike: a count is a sum of independent indicators with mean n q, where q is
the average share. If clients are themselves drawn from a population, the count is binomial given that population's q, and

* `clopper_pearson`: the q under which neither so many nor so few are less likely than (1 - confidence)/2. It holds q at least as
  often as it says, whatever n and q. (Score and normal intervals do so on average: of an outcome that is expected a fifth of a
  time they hold 84 % for a nominal 95, since a single sample already rules the truth out.)
* `largest_average`: the same for the average of any values. Sort what was seen, add one sample of the largest value there could be,
  give all of them random weights from a flat Dirichlet law, and take the quantile of the weighted average [Gaffke 2005, Three test
  statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable; Learned-Miller and Thomas 2019]. Of
  two values it is Clopper and Pearson's bound. That it always holds as often as it says is a conjecture to which no exception
  is known; for many samples it is the normal interval.

`discreet.estimation._share_tests` has shorter intervals of shares that hold as well, by exact tests of both sides at once; on these here
rest promises before the samples and bounds on liars. For the average of the very clients at hand a count is less spread than a binomial
one (Hoeffding 1956: in every tail that starts at least one away from the mean), so they are then on the safe side, and the more so the
more the clients differ. (The one tail that starts nearer, one sample or more of an outcome with n q < 0.026, has probability at most n q,
which exceeds 0.025 by 0.0004 at most.)
"""

import math

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.audit._bounds import least_probability, most_probability

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
_NEAREST, _FARTHEST = math.log(1e-250), math.log(1e20)  # where the saddlepoint is looked for, past the largest value
AT_LIMIT = 1e-9  # of a limit, within which a share is at it
_NO_DEVIATION = 1e-3  # in standard ones: below it the two terms of the approximation cancel


def tail(confidence: float, among: int = 1) -> float:
    """What one end of an interval may miss; `among`: so many intervals share what the confidence leaves."""
    return 0.5 * (1.0 - confidence) / among


def binomial_ends(counts: ArrayLike, samples: float, miss: float) -> Ends:
    """Clopper and Pearson's ends, each of which misses with that probability at most; counts need not be whole."""
    few = np.asarray(counts, dtype=np.float64)
    share = few / samples
    low = np.minimum(least_probability(few, samples, miss), share)  # but for rounding it is
    return low, np.maximum(most_probability(few, samples, miss), share)


def clopper_pearson(counts: NDArray[np.int64], samples: int, confidence: float, *, among: int = 1) -> Ends:
    """The shares under which neither so many nor so few samples are less likely than (1 - confidence)/2.

    `among`: so many intervals share what the confidence leaves, so that it is that of all of them together.
    """
    distinct, places = np.unique(counts, return_inverse=True)  # far fewer than outcomes
    low, high = binomial_ends(distinct, samples, tail(confidence, among))
    return low[places].reshape(counts.shape), high[places].reshape(counts.shape)


def first_past_limit(
    counts: NDArray[np.int64], samples: int, limits: Floats, miss: float, *, above: bool
) -> int | None:
    """The first outcome whose interval, with ends that miss so rarely, lies past its limit; None where none does.

    Its share does then, and so many or so few are less likely than that under the limit itself: few intervals have to be computed.
    """
    side, ulps = (1.0, 1.0 + AT_LIMIT) if above else (-1.0, 1.0 - AT_LIMIT)
    past = np.flatnonzero(side * (counts / samples - limits * ulps) > 0.0)
    many, limit = counts[past].astype(np.float64), np.minimum(limits[past], 1.0)
    tails = (
        scipy.special.betainc(many, samples - many + 1.0, limit)
        if above
        else scipy.special.betaincc(many + 1.0, samples - many, limit)
    )
    for place in past[tails < 2.0 * miss]:
        low, high = binomial_ends(counts[place], samples, miss)
        if side * ((low if above else high) - limits[place] * ulps) > 0.0:
            return int(place)
    return None


def largest_average(values: Floats, counts: NDArray[np.int64], confidence: float, *, among: int = 1) -> float:
    """The largest average that values, each seen so often, can have under the law drawn from, by Gaffke's bound.

    A value that was not seen may be there all the same: the bound allows for the largest even where everybody sent the same.
    """
    most = float(values.max())
    width = most - float(values.min())
    if width == 0.0:
        return most
    seen = counts > 0
    gaps, places = np.unique(np.append((most - values[seen]) / width, 0.0), return_inverse=True)
    weights = np.zeros(len(gaps))
    np.add.at(weights, places, np.append(counts[seen], 1))
    return most - width * _gaffke_gap(gaps, weights, tail(confidence, among))


def _gaffke_gap(gaps: Floats, weights: Floats, miss: float) -> float:
    """The D with P[sum of weights G (D - gap) > 0] = miss, for G ~ Gamma(weight, 1) independent: 1 less Gaffke's bound.

    By Lugannani and Rice's formula at the saddlepoint, which overstates the probability by a few percent for a handful of samples (so
    D is on the safe side) and by less for more. Written in g, by which the pole of the saddlepoint lies past the largest
    value, D is a weighted average of the gaps and nothing has to be solved but one equation in g.
    """
    if len(gaps) == 1:
        return 0.0
    if len(gaps) == 2:  # exactly Clopper and Pearson's
        samples = float(weights.sum()) - 1.0
        return float(gaps[1] * (1.0 - most_probability(weights[0] - 1.0, samples, miss)))

    def excess(log_g: float) -> float:
        return _saddlepoint_tail(math.exp(log_g), gaps, weights)[1] - miss

    mean = float(weights @ gaps / weights.sum())
    spread = math.sqrt(max(float(weights @ np.square(gaps - mean)), 1e-300))
    likely = math.log(spread / max(-float(scipy.special.ndtri(miss)), 1e-9))
    low, high, step = likely, likely, 1.0  # where a normal law would have it; many samples need no other look
    while high < _FARTHEST and excess(high) <= 0.0:
        low, high, step = high, min(high + step, _FARTHEST), 4.0 * step
    while low > _NEAREST and excess(low) > 0.0:
        low, high, step = max(low - step, _NEAREST), low, 4.0 * step
    if excess(high) <= 0.0:  # the mean itself, where hardly any confidence is asked for
        return mean
    if excess(low) > 0.0:
        return 0.0
    found = float(scipy.optimize.brentq(excess, low, high, xtol=1e-12))
    return _saddlepoint_tail(math.exp(found), gaps, weights)[0]


def _saddlepoint_tail(g: float, gaps: Floats, weights: Floats) -> tuple[float, float]:
    """D, and the probability that it is exceeded, at one saddlepoint."""
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
