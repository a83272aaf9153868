"""The exact privacy-utility trade-off in closed form, and its inverse.

For the constants r1 and r2 of a box around a band's reference (`discreet.privacy._notion`), every f-divergence of the projection is at most
the chord of f between r1 and r2, read at 1 [paper, Lemma C.7 (Rukhin)]:

    risk = (1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1)

For the optimal box lambda = gamma, r1 = c1/b, r2 = c2/B, and the value is the minimax risk if mu is alpha-decomposable and the family
contains the whole band. For Husain's mollifier b = e^(-eps/2), B = e^(eps/2) it is then that mechanism's exact worst case [paper, App. F.1].
Boxes for other notions of privacy have the same formula. If c2 <= c1 e^eps the identity is eps-LDP and the risk is 0. For any other family or
reference the formula is an upper bound, and `discreet.projection._worst_case` computes the sampler's actual worst case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet import divergences
from discreet._base import placeholders_until_used
from discreet._base.numerics import exp_nearest, expm1_nearest, float_rounded_up, log_bracket
from discreet.errors import DiscreetError
from discreet.families import LARGEST_ENUMERATED, Band, Bounds, Simplex, can_split_into_equal_groups
from discreet.privacy._notion import (
    LARGE_EPSILON as LARGE_EPSILON,
    Constants,
    Privacy,
    Pure,
    check_epsilon,
    constants_of_box_for_privacy as constants_of_box_for_privacy,
    constants_of_optimal_box as constants_of_optimal_box,
    large_epsilon_warning_text as large_epsilon_warning_text,
    raw_draw_is_private as raw_draw_is_private,
    warn_of_large_epsilon as warn_of_large_epsilon,
    warn_of_weak_privacy as warn_of_weak_privacy,
    weak_composition_warning_text as weak_composition_warning_text,
    weak_total_of_rounds_warning_text as weak_total_of_rounds_warning_text,
)

with placeholders_until_used(globals()):
    from discreet.divergences import FDivergence

__all__ = ["Constants", "Risk"]


class Family(Protocol):
    """The interface of the closed forms: the band's bounds, and whether they determine the family."""

    @property
    def bounds(self) -> Bounds: ...
    @property
    def decomposable(self) -> bool:
        """Whether the reference is known to be alpha-decomposable: sets of mass alpha cover the space evenly."""

    @property
    def contains_whole_band(self) -> bool:
        """Whether the family contains every distribution within its bounds."""


@dataclass(frozen=True)
class Risk:
    """A worst-case divergence; `float(risk)` works.

    `tight`: no epsilon-LDP sampler has a smaller worst case over the family (for a baseline: the value is exactly its own). Otherwise the
    value is an upper bound. `attained`: some client of the sampler has this divergence. `bracket`: bounds of the smallest worst case of any
    epsilon-LDP sampler (for a baseline that is tight: its own).

    Attributes:
        value: the divergence.
        tight: whether no epsilon-LDP sampler has a smaller worst case; for a baseline, whether the value is its own worst case.
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


def epsilon_of_box(constants: Constants) -> float:
    """The pure budget of another notion's box: log(B/b), rounded up; the same float on every machine, as in agreements."""
    _, most = log_bracket(Fraction(constants.B) / Fraction(constants.b))
    # above the rounding of the box's bounds
    return float_rounded_up(most * (1 + Fraction(1, 10**15)) + Fraction(1, 10**15))


def refuse_useless_or_raw_privacy(privacy: Privacy, bounds: Bounds) -> None:
    """Reject a notion that allows no information, and a delta (or an f(0) < 1) so large that it alone allows raw draws."""
    weight = privacy.mixing(bounds)
    if weight == 0:
        raise DiscreetError(f"{privacy} allows only draws of the reference; take a larger budget")
    epsilon = getattr(privacy, "epsilon", None)
    is_pure = epsilon is not None and raw_draw_is_private(bounds, epsilon)  # a raw draw is private without any delta
    if weight == 1 and privacy.may_reveal_client_by_chance and not is_pure:
        raise DiscreetError(
            f"{privacy} allows raw draws of a client's own data, since they differ with probability at most delta; take a "
            "smaller delta"
        )


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
    rest_weight = max(0.0, (b - bounds.lower) / (1.0 - bounds.lower), from_above)
    r1 = bounds.lower / (rest_weight + gamma * bounds.lower) if bounds.lower else 0.0
    r2 = bounds.upper / (1.0 + gamma * (bounds.upper - 1.0))
    below = rest_weight * (1.0 - bounds.lower) / (rest_weight + gamma * bounds.lower) if rest_weight else 0.0
    above = rest_weight * (bounds.upper - 1.0) / (1.0 + gamma * (bounds.upper - 1.0))
    return Constants(bounds.alpha, b, B, r1, r2, gamma, below, above)


def risk_by_formula(constants: Constants, divergence: str | FDivergence) -> float:
    """(1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1): an upper bound for every band and reference."""
    return divergences.divergence(divergence).chord_at_one(constants.below, constants.above, low=constants.r1)


def risk_formula_is_exact(family: Family) -> bool:
    """Whether the formula is the worst case of the box over the family [paper, Thm C.4], and not only an upper bound."""
    return family.contains_whole_band and family.decomposable


def risk_formula_is_minimax(family: Family, privacy: Privacy) -> bool:
    """Whether the formula for the best box is also the smallest worst case of any sampler that keeps the notion.

    For a pure notion this holds wherever the formula is exact [paper, Thm C.4]. For others it also needs that mu has no atoms or equal ones,
    or can be divided into n groups of equal mass with alpha n whole. Proof of the last. The group of a sample is a function of it, so a
    sampler gives one on n equal atoms that keeps the notion. Clients that are c2 on alpha n groups and c1 on the others are members. Seen
    through the groups they are those of the theorem of `discreet.privacy._notion`, and by the data-processing inequality no further from
    their samples there.   QED
    (Sets of mass alpha that all overlap would let a larger box pass; where neither is known, False.)
    """
    reference = getattr(family, "reference", None)
    if not risk_formula_is_exact(family) or isinstance(privacy, Pure) or not isinstance(reference, np.ndarray):
        return risk_formula_is_exact(family)
    return reference.size <= LARGEST_ENUMERATED and can_split_into_equal_groups(reference, family.bounds.alpha)


def family_or_simplex_if_any_client(family: Family) -> Family:
    """The family that clients may be from: the given one, or the simplex for a band that serves any client."""
    return Simplex(family.size) if isinstance(family, Band) and family.any_client else family
