"""The exact privacy-utility trade-off in closed form, and its inverse.

For the band c1 <= dP/dmu <= c2 with alpha = (1 - c1)/(c2 - c1), the optimal box is

    b = 1/(alpha e^eps + 1 - alpha),   B = b e^eps                                            [paper, Thms 3.1, 3.3, C.4]

A box (b, B) contains lambda P + (1 - lambda) mu for every client as soon as lambda <= min((1-b)/(1-c1), (B-1)/(c2-1)). This bounds dP/dQ by
r1 = c1/(1 - lambda (1-c1)) and r2 = c2/(1 + lambda (c2-1)). Hence every f-divergence of the projection is at most the chord of f between r1
and r2, read at 1 [paper, Lemma C.7 (Rukhin)]:

    risk = (1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1)

For the optimal box lambda = gamma, r1 = c1/b, r2 = c2/B, and the value is the minimax risk if mu is alpha-decomposable and the family
contains the whole band. For Husain's mollifier b = e^(-eps/2), B = e^(eps/2) it is then that mechanism's exact worst case [paper, App. F.1].
Boxes for other notions of privacy are those of `discreet.privacy`, with the same formula. If c2 <= c1 e^eps the identity is eps-LDP, lambda =
1 and the risk is 0. For any other family or reference the formula is an upper bound, and `discreet.mechanisms._worst_case` computes the
sampler's actual worst case.

The risk depends on 1 - r1 and r2 - 1, which for a large epsilon are far smaller than the rounding of r1 and r2. They are computed by
themselves, without a difference of nearly equal numbers where lower = 0: with q = e^(-eps) and d = c2 q - c1,

    1 - r1 = alpha d/q,    r2 - 1 = (1 - alpha) d                                                        (optimal box)
    1 - r1 = (1 - lambda) (1 - c1)/(1 - lambda (1-c1)),    r2 - 1 = (1 - lambda) (c2 - 1)/(1 + lambda (c2-1))       (any box)

so that the digits hold until e^(-eps) itself underflows, above epsilon = 708.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet import divergences
from discreet._base.numerics import exp_nearest, expm1_nearest, float_up, log_bracket
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, LargeEpsilonWarning, is_called_by_user, warn_caller
from discreet.families import LARGEST_ENUMERATED, Band, Bounds, Simplex, splits_evenly
from discreet.privacy import Privacy, Pure
from discreet.privacy._notion import check_epsilon

__all__ = ["Constants", "Risk"]


class Family(Protocol):
    """The interface of the closed forms: the band's bounds, and whether they determine the family."""

    @property
    def bounds(self) -> Bounds: ...
    @property
    def decomposable(self) -> bool:
        """Whether the reference is known to be alpha-decomposable: sets of mass alpha cover the space evenly."""

    @property
    def fills_band(self) -> bool:
        """Whether the family contains every distribution within its bounds."""


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


@dataclass(frozen=True)
class Risk:
    """A worst-case divergence; `float(risk)` works.

    `tight`: no epsilon-LDP sampler has a smaller worst case over the family (for a baseline: the value is exactly its own). Otherwise the
    value is an upper bound. `attained`: some client of the sampler has this divergence. `bracket`: bounds of the smallest worst case of any
    epsilon-LDP sampler (for a baseline that is tight: its own).

    Attributes:
        value: the divergence.
        tight: whether no epsilon-LDP sampler has a smaller worst case.
        attained: whether some client has it.
        least: a certified lower bound on the smallest worst case, if requested.
    """

    value: float
    tight: bool
    attained: bool = True
    least: float = 0.0

    @property
    def bracket(self) -> tuple[float, float]:
        """(lower, upper): both are the value if it is tight; lower is 0 if no lower bound was requested."""
        return (self.value if self.tight else self.least, self.value)

    def __float__(self) -> float:
        return self.value


LARGE_EPSILON = 10.0  # odds shift by a factor of 22,000
_LARGE_DELTA = 1e-3


def large_epsilon_warning(epsilon: float) -> str | None:
    """The warning for a release at that epsilon; None if it is not too large."""
    if not LARGE_EPSILON < epsilon < math.inf:  # an invalid epsilon has an error of its own
        return None
    return (
        f"epsilon = {epsilon:g} hides next to nothing: already at {LARGE_EPSILON:g} a sample may shift the odds between two versions of a "
        "client's data by a factor of 22,000; 0.5 to 4 is usual, and epsilon is not a percentage"
    )


_MAKERS = "privacy", "mechanisms", "agreement", "design", "torch"  # the rooms through which samplers are made


def warn_of_large_epsilon(epsilon: float) -> None:
    """Warn a user who makes a sampler with too large an epsilon. Samplers that the library makes for computations release nothing."""
    doubt = large_epsilon_warning(epsilon)
    if doubt is not None and is_called_by_user(*_MAKERS):
        warn_caller(doubt, LargeEpsilonWarning)


def weak_privacy_warning(privacy: Privacy) -> str | None:
    """The warning for a notion with a weak guarantee, by its own numbers; None if the guarantee is strong enough.

    Weak are an epsilon above 10, a delta above 0.001; for other notions their values at epsilon = 10. With a delta the guarantee bounds no
    odds, for any epsilon: an event that is impossible from one client may have probability delta from another. The sampler's box bounds them,
    but is not considered here.
    """
    stated = getattr(privacy, "epsilon", None)
    if stated is not None and not stated <= LARGE_EPSILON:
        return large_epsilon_warning(stated)
    if isinstance(privacy, Pure):
        return None
    exponent = LARGE_EPSILON if stated is None else stated
    delta = privacy.profile(exponent)
    if delta <= _LARGE_DELTA:
        return None
    return (
        f"{privacy} is a weak guarantee: an event may be likelier from one client than from another by a factor of e^{exponent:g}, plus "
        f"{delta:.2g}, so that no bound on the odds follows from the guarantee alone; take a smaller budget (a delta of 1e-6 is "
        "usual). The sampler's own .epsilon bounds them"
    )


def weak_rounds_warning(each: Privacy, together: Privacy, rounds: int) -> str | None:
    """The warning for rounds with strong guarantees each and a weak one together; None otherwise."""
    if rounds == 1 or weak_privacy_warning(each) is not None:
        return None
    doubt = weak_privacy_warning(together)
    return None if doubt is None else f"{rounds:,} rounds at {each} each are {together} together: {doubt}"


def weak_pure_rounds_warning(epsilon: float, rounds: Any) -> str | None:
    """The same for rounds of a pure epsilon, before the two are checked."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds <= 1 or not 0.0 < epsilon < math.inf:
        return None
    total = epsilon * rounds
    return weak_rounds_warning(Pure(epsilon), Pure(total), rounds) if total < math.inf else None


def warn_of_weak_privacy(privacy: Privacy) -> None:
    """Warn a user who makes a sampler with a weak guarantee."""
    doubt = weak_privacy_warning(privacy)
    if doubt is not None and is_called_by_user(*_MAKERS):
        warn_caller(doubt, LargeEpsilonWarning)


def is_identity(bounds: Bounds, epsilon: float) -> bool:
    """Whether publishing a raw draw is already eps-LDP: c2 <= c1 e^eps [paper, Section 3.2]."""
    return bounds.upper * exp_nearest(-epsilon) <= bounds.lower


def optimal_constants(bounds: Bounds, epsilon: float) -> Constants:
    """b, B, r1, r2, gamma of the optimal box. For an identity class, the box from c1 that contains the whole band."""
    epsilon = check_epsilon(epsilon)
    alpha, shrink = bounds.alpha, exp_nearest(-epsilon)
    if is_identity(bounds, epsilon):
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


def constants_for_privacy(privacy: Privacy, bounds: Bounds) -> Constants:
    """b, B, r1, r2, gamma of the best box that keeps a notion: gamma is its lambda (`discreet.privacy._notion`); 1 - lambda is not rounded.

    If the notion allows a raw draw of every member, the box is the band itself, or that of `optimal_constants` for a pure one.
    """
    if isinstance(privacy, Pure):
        return optimal_constants(bounds, privacy.epsilon)
    weight, c1, c2 = privacy.mixing(bounds), Fraction(bounds.lower), Fraction(bounds.upper)
    b, B, left = 1 - weight * (1 - c1), 1 + weight * (c2 - 1), 1 - weight
    if left == 0:
        return Constants(bounds.alpha, bounds.lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    found = (b, B, c1 / b, c2 / B, weight, left * (1 - c1) / b, left * (c2 - 1) / B)
    return Constants(bounds.alpha, *map(float, found))


def box_epsilon(constants: Constants) -> float:
    """The pure budget of another notion's box: log(B/b), rounded up; the same float on every machine, as in agreements."""
    _, most = log_bracket(Fraction(constants.B) / Fraction(constants.b))
    return float_up(most * (1 + Fraction(1, 10**15)) + Fraction(1, 10**15))  # above the rounding of the box's bounds


def refuse_raw(privacy: Privacy, bounds: Bounds) -> None:
    """Reject a notion that allows no information, and a delta (or an f(0) < 1) so large that it alone allows raw draws."""
    weight = privacy.mixing(bounds)
    if weight == 0:
        raise DiscreetError(f"{privacy} allows only draws of the reference; take a larger budget")
    if weight == 1 and privacy.allows_raw_by_chance and not _pure_identity(privacy, bounds):
        raise DiscreetError(
            f"{privacy} allows raw draws of a client's own data, since they differ with probability at most delta; take a "
            "smaller delta"
        )


def _pure_identity(privacy: Privacy, bounds: Bounds) -> bool:
    """Whether a raw draw is private without any delta."""
    epsilon = getattr(privacy, "epsilon", None)
    return epsilon is not None and is_identity(bounds, epsilon)


def mollifier_constants(bounds: Bounds, epsilon: float) -> Constants:
    """The constants of Husain's ball around the reference: b = e^(-eps/2), B = e^(eps/2)."""
    half = check_epsilon(epsilon) / 2.0
    b, B = exp_nearest(-half), exp_nearest(half) if half < 700.0 else math.inf
    # the largest lambda that fits from below and from above, and 1 - lambda: each is small at one end of epsilon.
    # (B - 1)/(c2 - 1) is written so that a large epsilon cannot overflow; a single outcome (c2 = 1) leaves no constraint
    room = (bounds.upper - 1.0) * b
    gamma = min(
        1.0, -expm1_nearest(-half) / (1.0 - bounds.lower), -expm1_nearest(-half) / room if room > 0 else math.inf
    )
    from_above = (bounds.upper - B) / (bounds.upper - 1.0) if bounds.upper > 1.0 else 0.0
    left = max(0.0, (b - bounds.lower) / (1.0 - bounds.lower), from_above)
    r1 = bounds.lower / (left + gamma * bounds.lower) if bounds.lower else 0.0
    r2 = bounds.upper / (1.0 + gamma * (bounds.upper - 1.0))
    below = left * (1.0 - bounds.lower) / (left + gamma * bounds.lower) if left else 0.0
    above = left * (bounds.upper - 1.0) / (1.0 + gamma * (bounds.upper - 1.0))
    return Constants(bounds.alpha, b, B, r1, r2, gamma, below, above)


def formula_risk(constants: Constants, divergence: str | FDivergence) -> float:
    """(1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1): an upper bound for every band and reference."""
    return divergences.divergence(divergence).chord_at_one(constants.below, constants.above)


def formula_is_exact(family: Family) -> bool:
    """Whether the formula is the worst case of the box over the family [paper, Thm C.4], and not only an upper bound."""
    return family.fills_band and family.decomposable


def formula_is_minimax(family: Family, privacy: Privacy) -> bool:
    """Whether the formula for the best box is also the smallest worst case of any sampler that keeps the notion.

    For a pure notion this holds wherever the formula is exact [paper, Thm C.4]. For others it also needs that mu has no atoms or equal ones,
    or can be divided into n groups of equal mass with alpha n whole. Proof of the last. The group of a sample is a function of it, so a
    sampler gives one on n equal atoms that keeps the notion. Clients that are c2 on alpha n groups and c1 on the others are members. Seen
    through the groups they are those of the theorem of `discreet.privacy._notion`, and by the data-processing inequality no further from
    their samples there.   QED
    (Sets of mass alpha that all overlap would let a larger box pass; where neither is known, False.)
    """
    reference = getattr(family, "reference", None)
    if not formula_is_exact(family) or isinstance(privacy, Pure) or not isinstance(reference, np.ndarray):
        return formula_is_exact(family)
    return reference.size <= LARGEST_ENUMERATED and splits_evenly(reference, family.bounds.alpha)


def claimed_family(family: Family) -> Family:
    """The family as far as it makes a claim about clients; for a band on outcomes that serves everybody, the simplex."""
    return Simplex(family.size) if isinstance(family, Band) and family.any_client else family
