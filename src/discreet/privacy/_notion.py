"""Notions of privacy as trade-off functions f, the best box of each for a band, and warnings of weak ones.

A test that distinguishes two clients' outputs Q, Q' by a sample has error probabilities x and y; T(Q, Q')(x) is the least y at a given x. A
sampler is f-LDP if T(Q, Q') >= f for any two clients, where f is convex, non-increasing and at most 1 - x. In terms of the hockey-stick
divergence E_z(Q || Q') = sup over events of Q(A) - z Q'(A) that is

    E_{e^beta}(Q || Q') <= delta(beta) = 1 - min over x of (f(x) + e^beta x)          for every beta

(Dong, Roth and Su 2022, Prop. 2.12). Pure, approximate and Gaussian privacy are three families of such functions.

Theorem. Let b mu <= Q <= B mu for every output Q, alpha = (1 - b)/(B - b), m = min(alpha, 1 - alpha). Every map into this box is f-LDP as
soon as, with l = m b and u = m B,

    f(l) <= 1 - u     and     f(1 - u) <= l.

Proof. sup E_{e^beta} over all pairs of the box is m (B - e^beta b)_+ for beta >= 0 (`discreet.accounting._profile`). The pair of
distributions (u, l, 1 - u - l) and (l, u, 1 - u - l) on three points attains it. Profiles at beta >= 0 of a set that is closed under
exchanging the two distributions determine all of them. So T >= T0 with T0 of that pair: the broken line through (0, 1), (l, 1 - u), (1 - u,
l) and (1, 0). f is at most 1 at 0 and at most 0 at 1; being convex, it lies below a broken line as soon as it does at the corners.   QED

So no infimum over beta is needed, and only two comparisons have to be certain; they are made in rationals. For the band c1 <= dP/dmu <= c2
and a weight lambda the box is b = 1 - lambda (1 - c1), B = 1 + lambda (c2 - 1), which has the band's own alpha. Both corners move away from
the diagonal as lambda grows, so the largest allowed lambda is found by bisection. It is

    lambda = min(1, inf over beta >= 0 of (e^beta - 1 + delta(beta)/m)/((1 - c1) e^beta + c2 - 1))

(Ghoukasian, Lee and Asoodeh, NeurIPS 2025, Theorem 3.4, who print 1/alpha for 1/m).

The projection onto this box is at least as good as their linear mechanism, for every client of the band and every f-divergence: lambda P + (1
- lambda) mu lies in the box, and the projection is the nearest distribution there (`discreet.projection`).

Theorem. No f-LDP sampler has a smaller worst case if mu has no atoms, or is uniform on k outcomes with alpha k whole. Proof. Apply a sampler
after a public random permutation of the outcomes, undo it on the sample, and average over all permutations. The worst case does not grow (D_f
is jointly convex), and the sampler stays f-LDP (E_z is jointly convex too). The client that is c2 on a set A of alpha k outcomes and c1 off
it is then sent to a distribution of two values, q on A and q' off it. For two such sets with as few outcomes in common as possible, which
leaves m k outcomes to each alone, T(Q, Q') is the broken line of l = m q', u = m q. It is at least f only if l, u are as above. So q is at
most the B and q' at least the b of lambda (or q <= 1, which is worse), and the divergence of that client at least that of our box. Without
atoms, cut the space into cells of equal mass on which alpha k is whole, or nearly so.   QED
(Atoms that can be divided into groups of equal mass are seen through the groups: `discreet.privacy.tradeoff.risk_formula_is_minimax`.)

The two notions by epsilon, `Pure` and `Approximate`:

**Pure.** No sample is more than e^epsilon times as likely from one client as from another.

    f(x) = max(0, 1 - e^eps x, e^(-eps) (1 - x)),        delta(beta) = (e^eps - e^beta)_+/(e^eps + 1)

A box keeps it if and only if B <= e^eps b. For a band lambda = (e^eps - 1)/((e^eps - 1)(1 - c1) + c2 - c1) [paper, Thm C.4]. n releases at
epsilon are n epsilon together, and no less at delta = 0.

**Approximate.** Q(A) <= e^epsilon Q'(A) + delta for every event A and any two clients.

    f(x) = max(0, 1 - delta - e^eps x, e^(-eps) (1 - delta - x))
    delta(beta) = delta for beta >= eps,    1 - (1 - delta)(1 + e^beta)/(1 + e^eps) below it

A box keeps it if and only if m (B - e^eps b) <= delta: the definition itself, at the one beta that it names. For a band

    lambda = min(1, (e^eps - 1 + delta/m)/((1 - c1) e^eps + c2 - 1))

A box has b > 0 as long as lambda < 1. So delta here is not the probability of total disclosure: the sampler is purely log(B/b)-LDP as well. A
delta so large that it would allow the raw draw itself is an error (`refuse_useless_or_raw_privacy`).

**The constants of a box.** For the band c1 <= dP/dmu <= c2 with alpha = (1 - c1)/(c2 - c1), the optimal box is

    b = 1/(alpha e^eps + 1 - alpha),   B = b e^eps                                            [paper, Thms 3.1, 3.3, C.4]

A box (b, B) contains lambda P + (1 - lambda) mu for every client as soon as lambda <= min((1-b)/(1-c1), (B-1)/(c2-1)). This bounds dP/dQ by
r1 = c1/(1 - lambda (1-c1)) and r2 = c2/(1 + lambda (c2-1)). If c2 <= c1 e^eps the identity is eps-LDP and lambda = 1. The differences 1 - r1
and r2 - 1 are far smaller than the rounding of r1 and r2 for a large epsilon. They are computed by themselves, without a difference of nearly
equal numbers where lower = 0: with q = e^(-eps) and d = c2 q - c1,

    1 - r1 = alpha d/q,    r2 - 1 = (1 - alpha) d                                                        (optimal box)
    1 - r1 = (1 - lambda) (1 - c1)/(1 - lambda (1-c1)),    r2 - 1 = (1 - lambda) (c2 - 1)/(1 + lambda (c2-1))       (any box)

so that the digits hold until e^(-eps) itself underflows, above epsilon = 708.
"""

from __future__ import annotations

import abc
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet._base.numerics import exp_lower, exp_nearest, expm1_nearest, stated_decimal
from discreet.errors import (
    POSITIVE,
    DiscreetError,
    LargeEpsilonWarning,
    Range,
    check_rational,
    is_called_by_user,
    warn_caller,
)
from discreet.families import Bounds

EXPONENT = Range(0.0, 1e6)
ERROR = Range(0.0, 1.0)
DELTA = Range(0.0, 1.0, high_open=True)
DELTA_FIX = "by how much an event may be likelier still; 1e-6 is usual"
LARGE_EPSILON = 10.0  # odds shift by a factor of 22,000
ROUNDED_UP = 1.0 + 1e-14  # above the rounding of a dozen operations
_LARGE_DELTA = 1e-3
_HALF = 0.5
_ROUNDED = Fraction(1, 1 << 52)  # by which two floats that are meant to sum to 1 may exceed it
_MAKERS = "privacy", "mechanisms", "agreement", "design", "torch"  # the rooms through which samplers are made


def read_budget_in_range(limits: Range, name: str, budget: float, fix: str) -> float:
    """A budget as a float in its range; an exact number between floats is rounded down."""
    number = limits.check(name, budget, fix)
    return math.nextafter(number, 0.0) if number > budget else number


class Privacy(abc.ABC):
    """A notion of privacy: a bound on what one release reveals about a client. Notions are values, equal if their guarantees are."""

    @abc.abstractmethod
    def tradeoff(self, x: float) -> float:
        """The trade-off function f.

        Args:
            x: the probability of one kind of error, in [0, 1].

        Returns:
            The smallest possible probability of the other kind of error.

        Raises:
            DiscreetError: for an x that is not a probability.
        """

    @abc.abstractmethod
    def profile(self, beta: float) -> float:
        """The hockey-stick profile: the smallest delta for which this notion implies (beta, delta)-LDP, rounded up.

        Args:
            beta: an epsilon, at least 0.

        Returns:
            delta(beta), in [0, 1].

        Raises:
            DiscreetError: for a beta out of range.
        """

    @abc.abstractmethod
    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        """Whether a box with m b = lower and m B = upper certainly keeps this notion; decided in rationals.

        Args:
            lower: m b, the smallest probability that an extreme output gives to a set of mass m.
            upper: m B, the largest.

        Returns:
            True only if it is certain.

        Raises:
            DiscreetError: for numbers that are no masses of a box.
        """

    @property
    @abc.abstractmethod
    def may_reveal_client_by_chance(self) -> bool:
        """Whether the notion allows clients to be distinguished for certain with a small probability: f(0) < 1."""

    def mixing(self, bounds: Bounds) -> Fraction:
        """lambda: the largest weight of a client with which the linear mechanism on a band keeps this notion, at most 1.

        Args:
            bounds: of dP/dmu.

        Returns:
            lambda in [0, 1]; it or its complement is a float. It is 1 if a raw draw is allowed, 0 if no information may be released.
        """
        return _largest_mixing_weight(self, bounds)

    def box(self, bounds: Bounds) -> tuple[float, float]:
        """b and B of the box for a band: b mu <= Q <= B mu.

        Args:
            bounds: of dP/dmu.

        Returns:
            b and B, to all digits.
        """
        weight, lower, upper = self.mixing(bounds), Fraction(bounds.lower), Fraction(bounds.upper)
        return float(1 - weight * (1 - lower)), float(1 + weight * (upper - 1))


def require_masses_of_box(lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """m b and m B as rationals. Both are probabilities of disjoint sets, so they sum to at most 1.

    Floats such as 0.1 and 0.9 sum to a little more than 1. Then the smaller mass gives way, which only widens the ratio of the box.
    """
    lower, upper = check_rational("lower", lower), check_rational("upper", upper)
    if 0 < lower + upper - 1 <= _ROUNDED:
        lower = 1 - upper
    if not 0 <= lower <= upper <= 1 - lower:
        raise DiscreetError(
            f"lower = {lower} and upper = {upper} are no masses of a box; pass 0 <= lower <= upper with lower + upper <= 1"
        )
    return lower, upper


def extreme_masses(shared: Fraction, ratio: Fraction) -> tuple[Fraction, Fraction]:
    """l = m b and u = m B of distributions that all lie between L and ratio L, where L has mass `shared`: the box mu = L/shared, b = shared.

    With B = ratio shared, m b = min((1 - shared)/(ratio - 1), (ratio shared - 1)/(ratio - 1)).

    Args:
        shared: the mass of L, in (0, 1], with ratio shared >= 1.
        ratio: at least 1.

    Returns:
        l and u; both 0 where the box holds a single law.

    Raises:
        DiscreetError: for an argument that is not a number, and for numbers out of range.
    """
    shared, ratio = check_rational("shared", shared), check_rational("ratio", ratio)
    if ratio == 1 or shared == 1:
        return Fraction(0), Fraction(0)
    if 0 < 1 - ratio * shared <= _ROUNDED:  # a single law, but for the rounding of floats such as 1/3
        return Fraction(0), Fraction(0)
    if not 0 < shared < 1 or ratio < 1 or ratio * shared < 1:
        raise DiscreetError(
            f"shared = {shared} and ratio = {ratio} leave no distribution between L and ratio L; pass shared in (0, 1] and a ratio of at "
            "least 1/shared"
        )
    least = min(1 - shared, ratio * shared - 1) / (ratio - 1)
    return least, ratio * least


@lru_cache(maxsize=256)
def _largest_mixing_weight(privacy: Privacy, bounds: Bounds) -> Fraction:
    """The largest lambda in floats, or the smallest complement of one, so that both ends keep their digits."""
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    alpha = (1 - lower) / (upper - lower)
    mass = min(alpha, 1 - alpha)

    def is_allowed(weight: Fraction) -> bool:
        return privacy.allows(mass * (1 - weight * (1 - lower)), mass * (1 + weight * (upper - 1)))

    if mass == 0:  # one outcome reveals nothing
        return Fraction(_HALF)
    if is_allowed(Fraction(1)):
        return Fraction(1)
    if is_allowed(Fraction(_HALF)):
        return 1 - Fraction(_least_float_meeting_condition(lambda rest_weight: is_allowed(1 - Fraction(rest_weight))))
    return Fraction(
        -_least_float_meeting_condition(lambda minus_weight: is_allowed(Fraction(-minus_weight)), negative=True)
    )


def _least_float_meeting_condition(is_good: Callable[[float], bool], *, negative: bool = False) -> float:
    """The least good float of (0, 1/2], if all floats above some place are good; or of [-1/2, 0], where 0 counts as good."""
    low, high = (-_float_rank(_HALF), 0) if negative else (0, _float_rank(_HALF))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_good(_float_of_rank(middle)) else (middle, high)
    return _float_of_rank(high)


def _float_rank(value: float) -> int:
    """The rank of a positive float among all floats."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float_of_rank(ordinal: int) -> float:
    """The float of a rank, negative ones below 0."""
    number = float(struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0])
    return -number if ordinal < 0 else number


@dataclass(frozen=True)
class Pure(Privacy):
    """epsilon-LDP. `OptimalSampler(family, epsilon=1.0)` is short for `privacy=Pure(1.0)`.

    Args:
        epsilon: the budget of one release, in (0, inf); 0.5 to 4 is usual.

    Raises:
        DiscreetError: for an epsilon out of range.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def tradeoff(self, x: float) -> float:
        error = ERROR.check("x", x)
        return max(0.0, 1.0 - math.exp(min(self.epsilon, 700.0)) * error, math.exp(-self.epsilon) * (1.0 - error))

    def profile(self, beta: float) -> float:
        beta = EXPONENT.check("beta", beta)
        if beta >= self.epsilon:
            return 0.0
        return min(1.0, -math.expm1(beta - self.epsilon) / (1.0 + math.exp(-self.epsilon)) * ROUNDED_UP)

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        lower, upper = require_masses_of_box(lower, upper)
        return upper <= largest_ratio_for_epsilon(self.epsilon) * lower

    @property
    def may_reveal_client_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.epsilon:g}-LDP"


def check_epsilon(epsilon: float) -> float:
    """epsilon as a float in (0, inf); an exact number between floats is rounded down."""
    return read_budget_in_range(POSITIVE, "epsilon", epsilon, "it is the privacy budget; 0.5 to 4 is usual")


def largest_ratio_for_epsilon(epsilon: float) -> Fraction:
    """A rational of at most e^epsilon, both for the float and for the decimal as written."""
    return min(exp_lower(epsilon), exp_lower(stated_decimal(epsilon)))


@dataclass(frozen=True)
class Approximate(Privacy):
    """(epsilon, delta)-LDP.

    Args:
        epsilon: the budget of one release, in (0, inf).
        delta: the additional probability of an event, in [0, 1); such as 1e-6.

    Raises:
        DiscreetError: for an epsilon or a delta out of range.
    """

    epsilon: float
    delta: float = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", read_budget_in_range(DELTA, "delta", self.delta, DELTA_FIX))

    def tradeoff(self, x: float) -> float:
        error, rest = ERROR.check("x", x), 1.0 - self.delta
        steep = rest - math.exp(min(self.epsilon, 700.0)) * error
        return max(0.0, steep, math.exp(-self.epsilon) * (rest - error))

    def profile(self, beta: float) -> float:
        beta = EXPONENT.check("beta", beta)
        if beta >= self.epsilon:
            return self.delta
        shrink = math.exp(-self.epsilon)
        bound = (-math.expm1(beta - self.epsilon) + self.delta * (shrink + math.exp(beta - self.epsilon))) / (
            1 + shrink
        )
        return min(1.0, bound * ROUNDED_UP)

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        lower, upper = require_masses_of_box(lower, upper)
        return upper - largest_ratio_for_epsilon(self.epsilon) * lower <= self.exact_delta

    @property
    def exact_delta(self) -> Fraction:
        """delta as a rational: the smaller of the float and the decimal as written."""
        return min(Fraction(self.delta), Fraction(stated_decimal(self.delta)))

    @property
    def may_reveal_client_by_chance(self) -> bool:
        return self.delta > 0.0

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-LDP"


def chosen_privacy(epsilon: float | None, privacy: Privacy | None) -> Privacy:
    """The notion given by either, of which exactly one is given; (epsilon, 0)-LDP is epsilon-LDP.

    Args:
        epsilon: a pure budget, or None.
        privacy: a notion, or None.

    Returns:
        The notion.

    Raises:
        DiscreetError: for both or neither, and for an argument that is not a notion.
    """
    if (epsilon is None) == (privacy is None):
        raise DiscreetError(
            f"epsilon = {epsilon!r} and privacy = {privacy!r}: pass one of the two, epsilon= (a number, for pure privacy) or privacy= "
            "(Pure(...), Approximate(...), Gaussian(...), Functional(...))"
        )
    if privacy is None:
        budget: Any = epsilon
        return Pure(budget)
    if not isinstance(privacy, Privacy):
        raise DiscreetError(
            f"privacy = {privacy!r} is not a notion of privacy; pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)"
        )
    return Pure(privacy.epsilon) if isinstance(privacy, Approximate) and not privacy.delta else privacy


@dataclass(frozen=True)
class Constants:
    """The paper's constants of a band and a box around its reference [paper, Def. C.1].

    `gamma` is the largest weight lambda with lambda P + (1 - lambda) mu in the box for every client: 1 for the identity. `below` is 1 - r1
    and `above` is r2 - 1, to all digits.

    Attributes:
        alpha: the reference mass of the set where an extreme client is at the upper bound.
        b: the floor of the box, relative to the reference.
        B: its ceiling, b e^epsilon.
        r1: the smallest dP/dQ.
        r2: the largest dP/dQ.
        gamma: the weight of the client in the linear mechanism.
        below: 1 - r1.
        above: r2 - 1.
    """

    alpha: float
    b: float
    B: float
    r1: float
    r2: float
    gamma: float
    below: float
    above: float


def raw_draw_is_private(bounds: Bounds, epsilon: float) -> bool:
    """Whether publishing a raw draw is already eps-LDP: c2 <= c1 e^eps [paper, Section 3.2]."""
    return bounds.upper * exp_nearest(-epsilon) <= bounds.lower


def constants_of_optimal_box(bounds: Bounds, epsilon: float) -> Constants:
    """b, B, r1, r2, gamma of the optimal box. For an identity class, the box from c1 that contains the whole band."""
    epsilon = check_epsilon(epsilon)
    alpha, shrink = bounds.alpha, exp_nearest(-epsilon)
    if raw_draw_is_private(bounds, epsilon):
        top = bounds.lower / shrink if shrink else math.inf
        return Constants(alpha, bounds.lower, top, 1.0, 1.0, 1.0, 0.0, 0.0)
    upper = 1.0 / (alpha + (1.0 - alpha) * shrink)
    gamma = -expm1_nearest(-epsilon) / (
        -expm1_nearest(-epsilon) * (1.0 - bounds.lower) + (bounds.upper - bounds.lower) * shrink
    )
    r1 = bounds.lower / (upper * shrink) if bounds.lower else 0.0
    room = bounds.upper * shrink - bounds.lower  # not an identity: positive
    below = alpha * room / shrink if bounds.lower else 1.0
    above = (bounds.upper - 1.0) / (bounds.upper - bounds.lower) * room
    return Constants(alpha, upper * shrink, upper, r1, bounds.upper / upper, gamma, below, above)


def constants_of_box_for_privacy(privacy: Privacy, bounds: Bounds) -> Constants:
    """b, B, r1, r2, gamma of the best box that keeps a notion: gamma is its lambda (`discreet.privacy._notion`); 1 - lambda is not rounded.

    If the notion allows a raw draw of every member, the box is the band itself, or that of `constants_of_optimal_box` for a pure one.
    """
    if isinstance(privacy, Pure):
        return constants_of_optimal_box(bounds, privacy.epsilon)
    weight, c1, c2 = privacy.mixing(bounds), Fraction(bounds.lower), Fraction(bounds.upper)
    b, B, rest_weight = 1 - weight * (1 - c1), 1 + weight * (c2 - 1), 1 - weight
    if rest_weight == 0:
        return Constants(bounds.alpha, bounds.lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    constants = (b, B, c1 / b, c2 / B, weight, rest_weight * (1 - c1) / b, rest_weight * (c2 - 1) / B)
    return Constants(bounds.alpha, *map(float, constants))


def large_epsilon_warning_text(epsilon: float) -> str | None:
    """The warning for a release at that epsilon; None if it is not too large."""
    if not LARGE_EPSILON < epsilon < math.inf:  # an invalid epsilon has an error of its own
        return None
    return (
        f"epsilon = {epsilon:g} hides next to nothing: already at {LARGE_EPSILON:g} a sample may shift the odds between two versions of a "
        "client's data by a factor of 22,000; 0.5 to 4 is usual, and epsilon is not a percentage"
    )


def warn_of_large_epsilon(epsilon: float) -> None:
    """Warn a user who makes a sampler with too large an epsilon. Samplers that the library makes for computations release nothing."""
    doubt = large_epsilon_warning_text(epsilon)
    if doubt is not None and is_called_by_user(*_MAKERS):
        warn_caller(doubt, LargeEpsilonWarning)


def weak_privacy_warning_text(privacy: Privacy) -> str | None:
    """The warning for a notion with a weak guarantee, by its own numbers; None if the guarantee is strong enough.

    Weak are an epsilon above 10, a delta above 0.001; for other notions their values at epsilon = 10. With a delta the guarantee bounds no
    odds, for any epsilon: an event that is impossible from one client may have probability delta from another. The sampler's box bounds them,
    but is not considered here.
    """
    epsilon = getattr(privacy, "epsilon", None)
    if epsilon is not None and not epsilon <= LARGE_EPSILON:
        return large_epsilon_warning_text(epsilon)
    if isinstance(privacy, Pure):
        return None
    exponent = LARGE_EPSILON if epsilon is None else epsilon
    delta = privacy.profile(exponent)
    if delta <= _LARGE_DELTA:
        return None
    return (
        f"{privacy} is a weak guarantee: an event may be likelier from one client than from another by a factor of e^{exponent:g}, plus "
        f"{delta:.2g}, so that no bound on the odds follows from the guarantee alone; take a smaller budget (a delta of 1e-6 is "
        "usual). The sampler's own .epsilon bounds them"
    )


def weak_composition_warning_text(round_privacy: Privacy, total_privacy: Privacy, rounds: int) -> str | None:
    """The warning for rounds with strong guarantees each and a weak one together; None otherwise."""
    if rounds == 1 or weak_privacy_warning_text(round_privacy) is not None:
        return None
    doubt = weak_privacy_warning_text(total_privacy)
    return None if doubt is None else f"{rounds:,} rounds at {round_privacy} each are {total_privacy} together: {doubt}"


def weak_total_of_rounds_warning_text(epsilon: float, rounds: Any) -> str | None:
    """The same for rounds of a pure epsilon, before the two are checked."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds <= 1 or not 0.0 < epsilon < math.inf:
        return None
    total = epsilon * rounds
    return weak_composition_warning_text(Pure(epsilon), Pure(total), rounds) if total < math.inf else None


def warn_of_weak_privacy(privacy: Privacy) -> None:
    """Warn a user who makes a sampler with a weak guarantee."""
    doubt = weak_privacy_warning_text(privacy)
    if doubt is not None and is_called_by_user(*_MAKERS):
        warn_caller(doubt, LargeEpsilonWarning)
