"""The exact privacy-utility trade-off in closed form, and its inverse.

For the band c1 <= dP/dmu <= c2 with alpha = (1 - c1)/(c2 - c1), the optimal box is

    b = 1/(alpha e^eps + 1 - alpha),   B = b e^eps                                            [paper, Thms 3.1, 3.3, C.4]

A box (b, B) contains lambda P + (1 - lambda) mu for every client as soon as lambda <= min((1-b)/(1-c1), (B-1)/(c2-1)),
which bounds dP/dQ by r1 = c1/(1 - lambda (1-c1)) and r2 = c2/(1 + lambda (c2-1)), hence every f-divergence of the
projection by the chord of f between r1 and r2, read at 1 [paper, Lemma C.7 (Rukhin)]:

    risk = (1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1)

For the optimal box lambda = gamma, r1 = c1/b, r2 = c2/B, and the value is the minimax risk when mu is alpha-decomposable;
for Husain's mollifier b = e^(-eps/2), B = e^(eps/2) it is that mechanism's exact worst case [paper, App. F.1]. If
c2 <= c1 e^eps the identity is eps-LDP, lambda = 1 and the risk is 0. Everything is written with e^(-eps), so that
epsilon = 1000 neither overflows nor loses digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from discreet import divergences
from discreet.divergences import FDivergence
from discreet.errors import NON_NEGATIVE, POSITIVE, ImpossibleError
from discreet.families.band import Bounds


class Family(Protocol):
    """What the closed forms need: the band's bounds, and whether its reference is alpha-decomposable."""

    @property
    def bounds(self) -> Bounds: ...
    @property
    def decomposable(self) -> bool: ...


@dataclass(frozen=True)
class Constants:
    """The paper's constants of a band and a box around its reference [paper, Def. C.1].

    `gamma` is the largest weight lambda with lambda P + (1 - lambda) mu in the box for every client: 1 for the identity.
    """

    alpha: float
    b: float
    B: float
    r1: float
    r2: float
    gamma: float


@dataclass(frozen=True)
class Risk:
    """A worst-case divergence. `tight`: the value is exact; otherwise it is an upper bound. `float(risk)` works."""

    value: float
    tight: bool

    def __float__(self) -> float:
        return self.value


def check_epsilon(epsilon: float) -> float:
    """epsilon as a float in (0, inf); an exact number that no float equals is rounded down."""
    number = POSITIVE.check("epsilon", epsilon, "it is the privacy budget; 0.5 to 4 is usual")
    return math.nextafter(number, 0.0) if number > epsilon else number


def is_identity(bounds: Bounds, epsilon: float) -> bool:
    """Whether publishing a raw draw is already eps-LDP: c2 <= c1 e^eps [paper, Section 3.2]."""
    return bounds.upper * math.exp(-epsilon) <= bounds.lower


def optimal_constants(bounds: Bounds, epsilon: float) -> Constants:
    """b, B, r1, r2, gamma of the optimal box. For an identity class, the box from c1 that contains the whole band."""
    epsilon = check_epsilon(epsilon)
    alpha, shrink = bounds.alpha, math.exp(-epsilon)
    if is_identity(bounds, epsilon):
        return Constants(alpha, bounds.lower, bounds.lower / shrink if shrink else math.inf, 1.0, 1.0, 1.0)
    upper = 1.0 / (alpha + (1.0 - alpha) * shrink)
    gamma = -math.expm1(-epsilon) / (
        -math.expm1(-epsilon) * (1.0 - bounds.lower) + (bounds.upper - bounds.lower) * shrink
    )
    r1 = bounds.lower / (upper * shrink) if bounds.lower else 0.0
    return Constants(alpha, upper * shrink, upper, r1, bounds.upper / upper, gamma)


def mollifier_constants(bounds: Bounds, epsilon: float) -> Constants:
    """The constants of Husain's ball around the reference: b = e^(-eps/2), B = e^(eps/2)."""
    half = check_epsilon(epsilon) / 2.0
    from_below = -math.expm1(-half) / (1.0 - bounds.lower)
    # (B - 1)/(c2 - 1), written so that a large epsilon cannot overflow; a single outcome (c2 = 1) leaves no constraint
    room = (bounds.upper - 1.0) * math.exp(-half)
    from_above = -math.expm1(-half) / room if room > 0 else math.inf
    gamma = min(1.0, from_below, from_above)
    r1 = bounds.lower / ((1.0 - gamma) + gamma * bounds.lower) if bounds.lower else 0.0
    r2 = bounds.upper / (1.0 + gamma * (bounds.upper - 1.0))
    return Constants(bounds.alpha, math.exp(-half), math.exp(half) if half < 700.0 else math.inf, r1, r2, gamma)


def chord_at_one(f: FDivergence, r1: float, r2: float) -> float:
    """(1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1): the height at 1 of the chord of f from r1 to r2."""
    if r2 <= 1.0 or r1 >= 1.0:  # the ratio dP/dQ is 1 everywhere: nothing is lost
        return 0.0
    weight = (1.0 - r1) / (r2 - r1)
    return max(0.0, weight * float(f.f(r2)) + (1.0 - weight) * float(f.f(r1)))


def minimax_risk(family: Family, *, epsilon: float, divergence: str | FDivergence) -> Risk:
    """The smallest worst-case divergence that any epsilon-LDP sampler can have on the family.

    Exact when the reference is alpha-decomposable (always on the simplex and on continuous spaces). Otherwise no formula
    is known, and the value returned is the upper bound that the optimal box attains; `.tight` says which.
    """
    constants = optimal_constants(family.bounds, epsilon)
    value = chord_at_one(divergences.divergence(divergence), constants.r1, constants.r2)
    return Risk(value, family.decomposable or value == 0.0)


def epsilon_for(family: Family, *, divergence: str | FDivergence, risk: float) -> float:
    """The smallest epsilon whose minimax risk is at most `risk`; 0.0 when publishing a draw of mu is good enough."""
    bounds = family.bounds
    identity_at = math.log(bounds.upper / bounds.lower) if bounds.lower else math.inf
    return _epsilon_reaching(optimal_constants, bounds, divergence, risk, identity_at)


def mollifier_epsilon_for(family: Family, *, divergence: str | FDivergence, risk: float) -> float:
    """The smallest epsilon at which Husain's mollifier around the reference promises `risk`: what `epsilon_for` saves against.

    Its worst case falls with epsilon too, and is 0 once the whole band lies in the ball: e^(-eps/2) <= c1, c2 <= e^(eps/2).
    """
    bounds = family.bounds
    identity_at = 2.0 * max(math.log(bounds.upper), -math.log(bounds.lower)) if bounds.lower else math.inf
    return _epsilon_reaching(mollifier_constants, bounds, divergence, risk, identity_at)


def _epsilon_reaching(
    constants: Callable[[Bounds, float], Constants],
    bounds: Bounds,
    divergence: str | FDivergence,
    risk: float,
    identity_at: float,
) -> float:
    """The smallest epsilon with chord <= risk for boxes whose chord falls with epsilon, and is 0 from `identity_at` on."""
    target = NON_NEGATIVE.check("risk", risk, "a divergence is at least 0")
    f = divergences.divergence(divergence)

    def at(epsilon: float) -> float:
        found = constants(bounds, epsilon)
        return chord_at_one(f, found.r1, found.r2)

    if chord_at_one(f, bounds.lower, bounds.upper) <= target:
        return 0.0
    if bounds.lower == 0.0 and math.isinf(f.at_zero):
        raise ImpossibleError(
            f"no epsilon reaches {f.name} = {target:g}: f(0) is infinite and the family holds laws with disjoint supports, "
            "so every epsilon-LDP sampler has infinite risk; use a bounded divergence such as 'tv', or a Band with lower > 0"
        )
    if math.isfinite(identity_at):
        return _smallest(at, target, 0.0, identity_at)
    if target == 0.0:
        raise ImpossibleError(
            f"no epsilon reaches {f.name} = 0 on a family with lower = 0; ask for a positive risk, or use a Band with lower > 0"
        )
    high = 1.0
    while at(high) > target:
        high *= 2.0
    return _smallest(at, target, 0.0, high)


def _smallest(at: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The smallest float in (low, high] with at(x) <= target, for a non-increasing function with at(high) <= target."""
    from scipy.optimize import brentq  # here, because importing it costs more than most commands do

    tiny = 1e-300
    if at(high) < target:
        high = float(brentq(lambda x: at(x) - target, max(low, tiny), high, xtol=1e-300, rtol=1e-15))
    step = math.ulp(high)
    while at(high) > target:  # the root finder may stop a few units short of the side that keeps the promise
        high, step = high + step, 2.0 * step
    return high
