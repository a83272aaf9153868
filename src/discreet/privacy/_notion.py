"""Notions of privacy as trade-off functions f: a box keeps a notion if and only if two points lie above f.

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
(Atoms that can be divided into groups of equal mass are seen through the groups: `discreet.privacy.tradeoff.formula_is_minimax`.)

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
delta so large that it would allow the raw draw itself is an error (`refuse_raw`).
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

from discreet._base.numerics import exp_lower, stated_decimal
from discreet.errors import POSITIVE, DiscreetError, Range, check_rational
from discreet.families import Bounds

EXPONENT = Range(0.0, 1e6)
ERROR = Range(0.0, 1.0)
_HALF = 0.5


def check_budget(allowed: Range, name: str, given: float, fix: str) -> float:
    """A budget as a float in its range; an exact number between floats is rounded down."""
    number = allowed.check(name, given, fix)
    return math.nextafter(number, 0.0) if number > given else number


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
        """

    @property
    @abc.abstractmethod
    def allows_raw_by_chance(self) -> bool:
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


def extreme_masses(shared: Fraction, ratio: Fraction) -> tuple[Fraction, Fraction]:
    """l = m b and u = m B of distributions that all lie between L and ratio L, where L has mass `shared`: the box mu = L/shared, b = shared.

    With B = ratio shared, m b = min((1 - shared)/(ratio - 1), (ratio shared - 1)/(ratio - 1)).

    Args:
        shared: the mass of L, in (0, 1], with ratio shared >= 1.
        ratio: at least 1.

    Returns:
        l and u; both 0 where the box holds one law alone.

    Raises:
        DiscreetError: for what is not a number.
    """
    shared, ratio = check_rational("shared", shared), check_rational("ratio", ratio)
    if ratio == 1 or shared == 1:
        return Fraction(0), Fraction(0)
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
        return 1 - Fraction(_least_float(lambda left: is_allowed(1 - Fraction(left))))
    return Fraction(-_least_float(lambda below: is_allowed(Fraction(-below)), negative=True))


def _least_float(good: Callable[[float], bool], *, negative: bool = False) -> float:
    """The least good float of (0, 1/2], if all floats above some place are good; or of [-1/2, 0], where 0 counts as good."""
    low, high = (-_float_rank(_HALF), 0) if negative else (0, _float_rank(_HALF))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(_float_of_rank(middle)) else (middle, high)
    return _float_of_rank(high)


def _float_rank(value: float) -> int:
    """The rank of a positive float among all floats."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float_of_rank(ordinal: int) -> float:
    """The float of a rank, negative ones below 0."""
    found = float(struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0])
    return -found if ordinal < 0 else found


ROUNDED_UP = 1.0 + 1e-14  # above the rounding of a dozen operations


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
        return upper <= at_most_exp(self.epsilon) * lower

    @property
    def allows_raw_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.epsilon:g}-LDP"


def check_epsilon(epsilon: float) -> float:
    """epsilon as a float in (0, inf); an exact number between floats is rounded down."""
    return check_budget(POSITIVE, "epsilon", epsilon, "it is the privacy budget; 0.5 to 4 is usual")


def at_most_exp(epsilon: float) -> Fraction:
    """A rational of at most e^epsilon, both for the float and for the decimal as written."""
    return min(exp_lower(epsilon), exp_lower(stated_decimal(epsilon)))


DELTA = Range(0.0, 1.0, high_open=True)
DELTA_IS = "by how much an event may be likelier still; 1e-6 is usual"


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
        object.__setattr__(self, "delta", check_budget(DELTA, "delta", self.delta, DELTA_IS))

    def tradeoff(self, x: float) -> float:
        error, left = ERROR.check("x", x), 1.0 - self.delta
        steep = left - math.exp(min(self.epsilon, 700.0)) * error
        return max(0.0, steep, math.exp(-self.epsilon) * (left - error))

    def profile(self, beta: float) -> float:
        beta = EXPONENT.check("beta", beta)
        if beta >= self.epsilon:
            return self.delta
        shrink = math.exp(-self.epsilon)
        found = (-math.expm1(beta - self.epsilon) + self.delta * (shrink + math.exp(beta - self.epsilon))) / (
            1 + shrink
        )
        return min(1.0, found * ROUNDED_UP)

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        return upper - at_most_exp(self.epsilon) * lower <= self.exact_delta

    @property
    def exact_delta(self) -> Fraction:
        """delta as a rational: the smaller of the float and the decimal as written."""
        return min(Fraction(self.delta), Fraction(stated_decimal(self.delta)))

    @property
    def allows_raw_by_chance(self) -> bool:
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
        DiscreetError: for both or neither, and for what is neither.
    """
    if (epsilon is None) == (privacy is None):
        raise DiscreetError(
            f"epsilon = {epsilon!r} and privacy = {privacy!r}: pass one of the two, epsilon= (a number, for pure privacy) or privacy= "
            "(Pure(...), Approximate(...), Gaussian(...), Functional(...))"
        )
    if privacy is None:
        given: Any = epsilon
        return Pure(given)
    if not isinstance(privacy, Privacy):
        raise DiscreetError(
            f"privacy = {privacy!r} is not a notion of privacy; pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)"
        )
    return Pure(privacy.epsilon) if isinstance(privacy, Approximate) and not privacy.delta else privacy
