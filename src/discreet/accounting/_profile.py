"""`BoxProfile`: the privacy of one release from a box, as (epsilon, delta) for every epsilon; alone, or shuffled with those of other clients.

Over all pairs of distributions in the box b mu <= Q <= B mu with B = e^eps b, and for every beta >= 0,

    sup E_{e^beta}(Q || Q')  =  m (B - e^beta b)_+,      m = min(alpha, 1 - alpha),   alpha = (1 - b)/(B - b)

Proof. On a set of mass a, Q is at most min(B a, 1 - b (1 - a)) and Q' at least max(b a, 1 - B (1 - a)). The difference "largest Q less
e^beta times least Q'" is concave and piecewise linear in a: it grows with slope B - e^beta b up to a = m and never grows after that,
because the next slope is b - e^beta b or B - e^beta B. If mu has a set of mass exactly m inside the extreme sets, the value is attained; if
atoms prevent it (`attained` false), it is an upper bound.

That is the profile of one pair of distributions on three points, the *dominating pair*: the privacy loss is

    +eps with probability m B,    -eps with probability m b,    0 otherwise,

and a pair that dominates at every beta dominates adaptive compositions too (Zhu, Dong and Wang, AISTATS 2022, Theorem 10).

The integers really drawn with obey the same bound: with s = sum L / 2^62 and U <= e^eps L, the argument above with a = L(A)/sum L
is that of the box b = s, so `profile_of` reads alpha off the lattice and holds for what is drawn, not for a formula beside it.
A report is a uniform block with probability N/2^62, so its laws lie in a box with s = N/2^62 and the same argument holds. Two clients never
reach that bound, since some blocks hold the outcomes of both: it is not claimed to be attained.
Every number here is an upper bound: masses and deltas are rounded up.

**Shuffling.** n clients send one sample each, and only the unordered collection is seen (`shuffled_delta`, `shuffled_epsilon`).

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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base.numerics import LARGEST_EXPONENT
from discreet.errors import NON_NEGATIVE, OPEN_UNIT, DiscreetError, Range, check_count, check_kind
from discreet.families import ContinuousFamily, Simplex
from discreet.privacy.tradeoff import raw_draw_is_private
from discreet.projection import Box
from discreet.release import TOTAL, Lattice

_ALPHA = Range(1e-300, 1.0)
_EPSILON = Range(0.0, 1e6, low_open=True)
_ROUNDING = 1e-9
_ULPS = 2.0**-49  # more than the error of the five operations of alpha
ROUNDED_UP = 1.0 + 1e-14  # more than the error of a dozen operations


@dataclass(frozen=True, kw_only=True)
class BoxProfile:
    """The privacy of one release from a box of ratio e^epsilon whose extreme distributions sit on mu-mass alpha.

    Args:
        epsilon: the logarithm of the box's ratio.
        alpha: 1/k for a simplex on k outcomes; for a family, `family.bounds.alpha`.
        attained: whether two clients reach the bound.

    Raises:
        DiscreetError: for arguments out of range.
    """

    epsilon: float
    alpha: float
    attained: bool = False

    def __post_init__(self) -> None:
        epsilon = _EPSILON.check("epsilon", self.epsilon, "it is the privacy budget; 0.5 to 4 is usual")
        alpha = _ALPHA.check("alpha", self.alpha, "it is the mass of the reference on which an extreme client sits")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "alpha", alpha)

    @property
    def upper_mass(self) -> float:
        """m B: the probability of a privacy loss of +epsilon, rounded up."""
        return min(
            1.0, self._smaller_extreme_mass / (self.alpha + (1.0 - self.alpha) * math.exp(-self.epsilon)) * ROUNDED_UP
        )

    @property
    def lower_mass(self) -> float:
        """m b: the probability of a privacy loss of -epsilon, rounded up."""
        return self.upper_mass * math.exp(-self.epsilon) * ROUNDED_UP

    @property
    def middle_mass(self) -> float:
        """1 - m (B + b): the probability of no privacy loss, rounded up. It is |1 - 2 alpha| b or |1 - 2 alpha| B, which cancels nothing."""
        shrink = math.exp(-self.epsilon)
        nearer = shrink if self.alpha < 0.5 else 1.0
        return min(1.0, abs(1.0 - 2.0 * self.alpha) * nearer / (self.alpha + (1.0 - self.alpha) * shrink) * ROUNDED_UP)

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which one release is (epsilon, delta)-LDP: m (B - e^epsilon b)_+, rounded up."""
        beta = NON_NEGATIVE.check("epsilon", epsilon)
        if beta >= self.epsilon:
            return 0.0
        return min(1.0, math.nextafter(self.upper_mass * -math.expm1(beta - self.epsilon) * ROUNDED_UP, math.inf))

    @property
    def _smaller_extreme_mass(self) -> float:
        return min(self.alpha, 1.0 - self.alpha)


@runtime_checkable
class LatticeSampler(Protocol):
    """The required interface of a sampler: its integers and its family."""

    @property
    def family(self) -> Any: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def reference(self) -> Any: ...
    @property
    def box(self) -> Box: ...
    @property
    def lattice(self) -> Lattice: ...


@runtime_checkable
class ReportingSampler(Protocol):
    """The same of what releases reports: how many of 2^62 words give a report that has nothing to do with the client."""

    @property
    def epsilon(self) -> float: ...
    @property
    def uniform_weight(self) -> int: ...


def refuse_unless_box_profile(profile: Any) -> None:
    """Raise an error for anything but the profile of a box."""
    check_kind("profile", profile, BoxProfile, "pass profile_of(sampler) or BoxProfile(...)")


def profile_of(sampler: LatticeSampler | ReportingSampler) -> BoxProfile:
    """The profile of the integers that a sampler draws with, on outcomes, cells or points, or on the blocks of reports.

    Args:
        sampler: such as `OptimalSampler(...)`.

    Returns:
        The profile of one release.

    Raises:
        DiscreetError: for what is not a sampler.
    """
    if isinstance(sampler, type) or not isinstance(sampler, (LatticeSampler, ReportingSampler)):
        raise DiscreetError(
            f"sampler = {sampler!r} is not a sampler; pass OptimalSampler(...), LinearSampler(...), MollifierSampler(...), ReportSampler(...)"
        )
    lattice = sampler if isinstance(sampler, LatticeSampler) else None
    epsilon = min(sampler.epsilon, LARGEST_EXPONENT)  # the lattice never allows a larger ratio
    words = sampler.lattice.shared_total if isinstance(sampler, LatticeSampler) else sampler.uniform_weight
    shared_mass = Fraction(words, TOTAL)  # of all words, those that have nothing to do with the client
    spread = float(shared_mass) * -math.expm1(-epsilon)
    alpha = min(1.0, float(1 - shared_mass) * math.exp(-epsilon) / spread)
    # m b = alpha/(alpha e^eps + 1 - alpha) grows with alpha up to 1/2 and then falls: towards 1/2 is upwards
    nearer = alpha * (1.0 + _ULPS) if alpha < 0.5 else max(0.5, alpha - _ULPS)
    return BoxProfile(
        epsilon=epsilon,
        alpha=max(nearer, _ALPHA.low),
        attained=lattice is not None and _attains_extreme_pair(lattice, alpha),
    )


def _attains_extreme_pair(sampler: LatticeSampler, alpha: float) -> bool:
    """Whether two members of the family are projected to an extreme pair: sets of alpha k outcomes of a uniform reference."""
    family, size = sampler.family, sampler.box.size
    outcome_count = alpha * size
    is_whole = round(outcome_count) >= 1 and abs(outcome_count - round(outcome_count)) <= _ROUNDING * size
    if not is_whole or not isinstance(sampler.reference, float) or isinstance(family, ContinuousFamily):
        return False  # on cells or points this needs members on whole ones: not claimed
    if family.size != size:
        return False  # on multisets this needs members whose draws are extreme
    has_own_box = abs(alpha - family.bounds.alpha) <= _ROUNDING and not raw_draw_is_private(
        family.bounds, sampler.epsilon
    )
    return isinstance(family, Simplex) or has_own_box


_TAIL = 1e-30  # probability omitted from a sum, and added to delta
_SHUFFLING_ERROR = 1e-11
MOST_CLIENTS = 10**7  # further clients are not counted, which only enlarges the bound
_ACCURACY = 1e-6  # of an epsilon, relative; rounded up
# standard deviations that M is rounded down to
_DEVIATIONS = (-8.0, -6.0, -4.5, -3.5, -2.5, -1.75, -1.0, -0.25, 0.5, 1.5)
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
    refuse_unless_box_profile(profile)
    other_clients = min(check_count("clients", clients), MOST_CLIENTS) - 1
    beta = NON_NEGATIVE.check("epsilon", epsilon)
    local = profile.delta(beta)
    if local == 0.0 or profile.lower_mass == 0.0 or not _NOTHING_TO_HIDE < profile.epsilon < _NO_CLONES:
        return local
    clones = scipy.stats.binom(other_clients, math.exp(-profile.epsilon))
    low, high = _likely_range_of_indicator_sum(other_clients, clones.mean(), clones.var())
    starts = np.arange(low, high + 1)
    if len(starts) > _FEW:
        grid = np.clip(clones.mean() + clones.std() * np.array(_DEVIATIONS), low, high).astype(np.int64)
        starts = np.unique(np.append(low, grid))
    below = clones.cdf(np.append(starts[1:] - 1, other_clients))
    chances = np.diff(below, prepend=clones.cdf(low - 1))
    delta = math.fsum(
        chance * _shuffled_delta_given_clone_count(profile, int(clone_count), beta)
        for clone_count, chance in zip(starts, chances, strict=True)
    )
    return min(local, delta * (1.0 + _SHUFFLING_ERROR) + 2.0 * _TAIL)


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

    def log_ratio_of_delta_to_target(epsilon: float) -> float:
        return math.log(max(shuffled_delta(profile, clients=clients, epsilon=epsilon), 1e-300) / delta)

    root = float(
        scipy.optimize.brentq(log_ratio_of_delta_to_target, 0.0, profile.epsilon, xtol=_ACCURACY * 1e-6, rtol=_ACCURACY)
    )
    while log_ratio_of_delta_to_target(root) > 0.0:
        root *= 1.0 + _ACCURACY
    return min(root, profile.epsilon)


def _shuffled_delta_given_clone_count(profile: BoxProfile, clones: int, beta: float) -> float:
    """The delta given M. At (x, s - x, N - s), N = M + 1, the probability is

        Binomial(N, 2c e^eps)(s)  Binomial(s, 1/2)(x)  (A x + B (s - x) + Z (N - s)) e^(-eps)/N

    with A = a e^eps/c, B = a/c, Z = |R|/(e^(-eps) - 2c): the likelihood of the one client's kind, given how many there are of each.
    """
    total, shrink, ratio = clones + 1, math.exp(-profile.epsilon), math.exp(beta)
    upper, lower = profile.upper_mass, profile.lower_mass
    clone_mass = min(lower, 0.5 * shrink)
    rest_mass = shrink - 2.0 * clone_mass
    first_kind, second_kind = upper / clone_mass, lower / clone_mass
    third_kind = max(0.0, 1.0 - upper - lower) / rest_mass if rest_mass > 0.0 else 0.0  # it cancels if there are none
    share = min(1.0, 2.0 * clone_mass / shrink) if rest_mass > 0.0 else 1.0
    low, high = _likely_range_of_indicator_sum(total, total * share, total * share * (1.0 - share))
    s = np.arange(low, high + 1)
    slope = (first_kind - second_kind) * (1.0 + ratio)
    room = s * (first_kind - ratio * second_kind) - (ratio - 1.0) * third_kind * (total - s)
    # the smallest x whose likelihood ratio exceeds e^beta, counted from s: it may be the e^-beta part of a unit below s
    threshold = np.asarray(s + 1.0 - np.ceil(np.maximum(room / slope, 0.0)), dtype=np.float64)
    first_term, second_term = (
        0.5 * s * _probability_of_heads_at_least(s - 1, threshold - 1.0),
        0.5 * s * _probability_of_heads_at_least(s - 1, threshold),
    )
    rest_term = third_kind * (total - s) * _probability_of_heads_at_least(s, threshold)
    likely = first_kind * first_term + second_kind * second_term + rest_term
    unlikely = second_kind * first_term + first_kind * second_term + rest_term
    weight = scipy.stats.binom.pmf(s, total, share) * shrink / total
    value = math.fsum(weight * (likely - ratio * unlikely)) + _SHUFFLING_ERROR * math.fsum(weight * likely)
    return max(0.0, value) + 2.0 * _TAIL


def _likely_range_of_indicator_sum(count: int, mean: float, variance: float) -> tuple[int, int]:
    """The range of a sum of `count` independent indicators, but for a probability _TAIL on either side (Bernstein)."""
    third = -math.log(_TAIL) / 3.0
    reach = 1.0 + third + math.sqrt(third * third + 6.0 * third * variance)
    return max(0, int(mean - reach)), min(count, int(mean + reach) + 1)


def _probability_of_heads_at_least(tosses: NDArray[np.int64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """P[Binomial(tosses, 1/2) >= least]; a negative number of tosses counts as none."""
    in_range = (least > 0) & (least <= tosses)
    tail = scipy.special.betainc(np.where(in_range, least, 1.0), np.where(in_range, tosses - least + 1.0, 1.0), 0.5)
    return np.where(in_range, tail, np.where(least <= 0, 1.0, 0.0))
