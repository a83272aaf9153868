"""The band {P : c1 <= dP/dmu <= c2}, normalised, and the number alpha = (1 - c1)/(c2 - c1) that decides everything.

The class is the same for (c1, c2, h) and (c1/t, c2/t, t h), so the reference is always taken as a probability measure
[paper, eq. (normalizationCond)]. With c1 >= 1 or c2 <= 1 the class is empty or holds mu alone; both are refused by name.

Where mu has atoms a bound may be one that no member attains: if all other outcomes are at c1, an outcome of mass m has density
c1 + (1 - c1)/m and no more, and at least c2 - (c2 - 1)/m. The class is the same for the attained bounds, and the answers must be.
Both are extreme at the smallest atom, and since that has mass at most 1/2, moving one bound in never makes the other one move.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError

_PAST = Fraction(2**1023)  # where floats end, nearly


@dataclass(frozen=True)
class Bounds:
    """0 <= lower < 1 < upper: bounds of dP/dmu for a probability measure mu."""

    lower: float
    upper: float

    @property
    def alpha(self) -> float:
        """The mu-mass on which an extreme client sits: alpha upper + (1 - alpha) lower = 1."""
        return (1.0 - self.lower) / (self.upper - self.lower)


def describe_bounds(bounds: Bounds, ratio: str, *, everybody: bool) -> tuple[str, list[tuple[str, str]]]:
    """What the bounds of a ratio say of clients, as a heading and rows of a table: of a band that serves everybody nothing."""
    if everybody:
        return "it serves everybody", [("box around the reference", f"that of {ratio} up to {bounds.upper:g}")]
    return "who the clients may be", [(f"least {ratio}", f"{bounds.lower:g}"), (f"most {ratio}", f"{bounds.upper:g}")]


def normalised_bounds(lower: float, upper: float, reference_mass: float = 1.0) -> Bounds:
    """The bounds with respect to mu = h / mass(h), from the bounds with respect to h; trivial classes are refused."""
    lower = NON_NEGATIVE.check("lower", lower) * reference_mass
    upper = POSITIVE.check("upper", upper, "it bounds dP/dmu from above") * reference_mass
    scaled = "" if reference_mass == 1.0 else f" (after rescaling by the reference's mass {reference_mass:g})"
    take = f"take lower < {1.0 / reference_mass:g} < upper"
    if lower > upper:
        raise DiscreetError(f"lower = {lower:g} exceeds upper = {upper:g}{scaled}: no law satisfies both; swap them")
    if lower > 1.0 or upper < 1.0:
        raise DiscreetError(f"no law satisfies {lower:g} <= dP/dmu <= {upper:g}{scaled}: dP/dmu averages to 1; {take}")
    if lower == 1.0 or upper == 1.0:
        raise DiscreetError(
            f"{lower:g} <= dP/dmu <= {upper:g}{scaled} holds for the reference alone: there is nothing to keep private; "
            f"{take}"
        )
    return Bounds(lower, upper)


def attained_bounds(bounds: Bounds, least_mass: Fraction) -> Bounds:
    """The bounds that members of the band really attain when the smallest atom of the reference has this mass."""
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    most = lower + (1 - lower) / least_mass
    least = upper - (upper - 1) / least_mass
    if (most < _PAST and float(most) == bounds.upper) or (least >= 0 and float(least) == bounds.lower):
        return bounds  # moved in already, as near as floats are: or on two equal atoms each bound would move the other for ever
    if upper > most:
        return Bounds(bounds.lower, float(most))
    return Bounds(float(least), bounds.upper) if lower < least else bounds


def claims_nothing(everybody: Any, lower: Any) -> bool:
    """Whether a band with that lower bound serves everybody, as it is asked to: then it must claim nothing from below either."""
    if not isinstance(everybody, (bool, np.bool_)):
        raise DiscreetError(f"everybody = {everybody!r} is neither True nor False")
    if everybody and NON_NEGATIVE.check("lower", lower) != 0.0:
        raise DiscreetError(f"lower = {lower!r} is a claim about clients; everybody=True needs lower=0")
    return bool(everybody)


def check_everybody(stated: Any, lower: float) -> bool | None:
    """What an agreement states of whom a band serves: true, where it claims nothing about clients from below either, or nothing."""
    if stated is None or (stated is True and lower == 0.0):  # 1 equals True, but not in a canonical form
        return stated
    raise DiscreetError(
        f"family.everybody = {stated!r} with family.lower = {lower:g}; it is true, and family.lower 0, or it is left out"
    )
