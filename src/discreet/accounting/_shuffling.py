"""Privacy amplification by shuffling: n clients send one sample each, and only the unordered collection is seen.

Theorem. Let every client's output distribution lie in one box of ratio e^eps, a = m b (`BoxProfile.lower_mass`) and c = min(a, e^(-eps)/2).
To an observer who knows all clients but one, the collection reveals at most as much about that one as the numbers (X, Y, Z) of three kinds
of samples: M ~ Binomial(n - 1, e^(-eps)) of them, each of the first kind with probability c e^eps, of the second likewise, else of the
third; and one more, which is

    of the first kind with probability a e^eps,   of the second with a,   of the third with the rest, |R| = 1 - a (1 + e^eps)

or, for the client's alternative data, the same with first and second exchanged.

Proof. Let Q0, Q1 be the one client's two output distributions, T their total variation, U0 and U1 the normalised positive and negative
parts of Q0 - Q1 (on disjoint sets), a' = T/(e^eps - 1). As neither exceeds e^eps times the other, Q0 = a' e^eps U0 + a' U1 + R and Q1 = a'
U0 + a' e^eps U1 + R with the same R >= 0. Every other client has Q_i >= e^(-eps) max(Q0, Q1) >= a' U0 + a' U1 + e^(-eps) R. So it is of the
kinds U0, U1, R with these probabilities, or smaller ones, and otherwise independent of the one client. Tell the observer the numbers of
each kind: the number of clients of none is then known too, and the collection is a random function of the numbers. The profile says T <= m
(B - b), so a' = t a for some t <= 1. In the theorem's numbers turn each sample of the first two kinds into the third with probability 1 -
t. The one client then has probabilities a' e^eps, a', and the rest; each other one t c <= a' twice, and e^(-eps) - 2 t c <= e^(-eps) - t a
(1 + e^(-eps)) = e^(-eps) |R|, as 2c >= a (1 + e^(-eps)) in either case.   QED

Counting clones is the idea of Feldman, McMillan and Talwar (FOCS 2021, SODA 2023); with the largest possible a, which is
1/(1 + e^eps), this is a bound like theirs for every eps-LDP mechanism. A box with small m is much better.

Given M the likelihood ratio grows with X on X + Y = s, so delta is a sum over s of differences of two binomial tails. It falls as M grows
(an observer can add a further sample), so M may be rounded down.
"""

import math

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.accounting._profile import BoxProfile, check_profile
from discreet.errors import NON_NEGATIVE, OPEN_UNIT, check_count

_TAIL = 1e-30  # probability omitted from a sum, and added to delta
_ROUNDING = 1e-11
MOST_CLIENTS = 10**7  # further clients are not counted, which only enlarges the bound
_ACCURACY = 1e-6  # of an epsilon, relative; rounded up
_DEVIATIONS = (
    -8.0,
    -6.0,
    -4.5,
    -3.5,
    -2.5,
    -1.75,
    -1.0,
    -0.25,
    0.5,
    1.5,
)  # M is rounded down to these, in standard deviations
_FEW = 100
_NOTHING_TO_HIDE = 1e-9
_NO_CLONES = 60.0  # an epsilon at which a clone is less likely than 1e-26


def shuffled_delta(profile: BoxProfile, *, clients: int, epsilon: float) -> float:
    """A delta with which the shuffled samples of that many clients are (epsilon, delta)-DP for each of them, rounded up.

    Args:
        profile: of each client's release.
        clients: how many there are.
        epsilon: of the shuffled samples.

    Returns:
        The delta, at most the local one.

    Raises:
        DiscreetError: for arguments out of range.
    """
    check_profile(profile)
    others = min(check_count("clients", clients), MOST_CLIENTS) - 1
    beta = NON_NEGATIVE.check("epsilon", epsilon)
    local = profile.delta(beta)
    if local == 0.0 or profile.lower_mass == 0.0 or not _NOTHING_TO_HIDE < profile.epsilon < _NO_CLONES:
        return local
    clones = scipy.stats.binom(others, math.exp(-profile.epsilon))
    low, high = _likely_range(others, clones.mean(), clones.var())
    starts = np.arange(low, high + 1)
    if len(starts) > _FEW:
        rounded = np.clip(clones.mean() + clones.std() * np.array(_DEVIATIONS), low, high).astype(np.int64)
        starts = np.unique(np.append(low, rounded))
    below = clones.cdf(np.append(starts[1:] - 1, others))
    chances = np.diff(below, prepend=clones.cdf(low - 1))
    found = math.fsum(
        chance * _delta_given_clones(profile, int(number), beta) for number, chance in zip(starts, chances, strict=True)
    )
    return min(local, found * (1.0 + _ROUNDING) + 2.0 * _TAIL)


def shuffled_epsilon(profile: BoxProfile, *, clients: int, delta: float) -> float:
    """An epsilon at that delta, rounded up, for the shuffled samples of that many clients.

    Args:
        profile: of each client's release.
        clients: how many there are.
        delta: in (0, 1).

    Returns:
        The epsilon, at most the local one.

    Raises:
        DiscreetError: for arguments out of range.
    """
    delta = OPEN_UNIT.check("delta", delta, "shuffling gives nothing at delta = 0")
    if shuffled_delta(profile, clients=clients, epsilon=0.0) <= delta:
        return 0.0
    if delta <= _TAIL:
        return profile.epsilon

    def excess(epsilon: float) -> float:
        return math.log(max(shuffled_delta(profile, clients=clients, epsilon=epsilon), 1e-300) / delta)

    found = float(scipy.optimize.brentq(excess, 0.0, profile.epsilon, xtol=_ACCURACY * 1e-6, rtol=_ACCURACY))
    while excess(found) > 0.0:
        found *= 1.0 + _ACCURACY
    return min(found, profile.epsilon)


def _delta_given_clones(profile: BoxProfile, clones: int, beta: float) -> float:
    """The delta given M. At (x, s - x, N - s), N = M + 1, the probability is

        Binomial(N, 2c e^eps)(s)  Binomial(s, 1/2)(x)  (A x + B (s - x) + Z (N - s)) e^(-eps)/N

    with A = a e^eps/c, B = a/c, Z = |R|/(e^(-eps) - 2c): the likelihood of the one client's kind, given how many there are of each.
    """
    number, shrink, ratio = clones + 1, math.exp(-profile.epsilon), math.exp(beta)
    seen, hidden = profile.upper_mass, profile.lower_mass
    cloned = min(hidden, 0.5 * shrink)
    left = shrink - 2.0 * cloned
    first_kind, second_kind = seen / cloned, hidden / cloned
    third_kind = max(0.0, 1.0 - seen - hidden) / left if left > 0.0 else 0.0  # it cancels if there are none
    share = min(1.0, 2.0 * cloned / shrink) if left > 0.0 else 1.0
    low, high = _likely_range(number, number * share, number * share * (1.0 - share))
    s = np.arange(low, high + 1)
    slope = (first_kind - second_kind) * (1.0 + ratio)
    level = s * (ratio * first_kind - second_kind) + (ratio - 1.0) * third_kind * (number - s)
    first = np.floor(np.minimum(level / slope, s)) + 1.0  # the smallest x whose likelihood ratio exceeds e^beta
    own, other = 0.5 * s * _heads_probability(s - 1, first - 1.0), 0.5 * s * _heads_probability(s - 1, first)
    unseen = third_kind * (number - s) * _heads_probability(s, first)
    likely = first_kind * own + second_kind * other + unseen
    unlikely = second_kind * own + first_kind * other + unseen
    weight = scipy.stats.binom.pmf(s, number, share) * shrink / number
    value = math.fsum(weight * (likely - ratio * unlikely)) + _ROUNDING * math.fsum(weight * likely)
    return max(0.0, value) + 2.0 * _TAIL


def _likely_range(count: int, mean: float, variance: float) -> tuple[int, int]:
    """The range of a sum of `count` independent indicators, but for a probability _TAIL on either side (Bernstein)."""
    third = -math.log(_TAIL) / 3.0
    reach = 1.0 + third + math.sqrt(third * third + 6.0 * third * variance)
    return max(0, int(mean - reach)), min(count, int(mean + reach) + 1)


def _heads_probability(tosses: NDArray[np.int64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """P[Binomial(tosses, 1/2) >= least]; a negative number of tosses counts as none."""
    inside = (least > 0) & (least <= tosses)
    tail = scipy.special.betainc(np.where(inside, least, 1.0), np.where(inside, tosses - least + 1.0, 1.0), 0.5)
    return np.where(inside, tail, np.where(least <= 0, 1.0, 0.0))
