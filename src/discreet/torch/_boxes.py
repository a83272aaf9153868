"""Which box: everything that the notion of privacy, `upper` and the number of outcomes decide, before a tensor is looked at.

Around the uniform reference it is the lattice of `OptimalSampler(Simplex(k))`, or of the band 0 <= dP/dmu <= upper. Around a reference
that differs from row to row the lattice is made on the device, row by row, from masses e_x and their sum Z, all in float32:

    L_x = max(1, floor(e_x (2^62 b/Z))),    U_x = min(2^62, floor(rho L_x))      rho <= (B/b)(1 - 2^-22), itself a float32

A product in float32 is off by a factor of at most 1 + 2^-24, so U_x <= e^epsilon L_x holds between the integers (B/b is e^epsilon for
pure privacy); float32 holds both exactly. Z is off by a factor of at most 1 +- 2^-14 (at most 2^10 terms are added one after the
other), so over k outcomes

    sum L <= (1 + 2^-13) b 2^62 + k  <=  2^62  <=  (1 - 2^-23) rho ((1 - 2^-13) b 2^62 - k) - k  <=  sum U

if b keeps that distance from both ends, which is asked for here in rational numbers (`DeviceBox.around`).

Another notion than pure epsilon depends on sum L too. All laws lie between L and rho' L, rho' = (1 + 2^-24) rho, so with s = sum L/2^62 the
two points (`discreet.privacy._notion`) are l = min(1 - s, rho' s - 1)/(rho' - 1) and rho' l. On the line of the points (l, 1 - rho' l)
those that lie above a convex trade-off function are an interval that begins at l = 0: what is allowed at the largest l that s leaves open
is allowed at every s. rho is lowered until that one is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import DiscreetError, Range
from discreet.families._band import Bounds
from discreet.privacy import Privacy, Pure, chosen_privacy
from discreet.privacy._pure import at_most_exp
from discreet.release import TOTAL
from discreet.tradeoff import constants_for_privacy, refuse_raw

LARGEST_SIZE = 1 << 19  # outcomes on a GPU: so many terms are added up as the bound on Z allows
_MARGIN = Fraction(1, 1 << 13)
_INWARDS = range(22, 3, -1)  # powers of two by which rho is lowered until a notion is kept
_UPPER = Range(1.0, math.inf, low_open=True, high_open=True)


@dataclass(frozen=True)
class Terms:
    """The notion of privacy and `upper` as they were asked for, checked.

    Attributes:
        privacy: what one release promises.
        upper: the largest dP/dmu that the box is made for; None: that of the simplex, or the mollifier's if there is a reference.
    """

    privacy: Privacy
    upper: float | None

    @property
    def bounds(self) -> Bounds:
        """The band around a reference that the box is made for: up to `upper`, or what makes the box Husain's mollifier for a pure
        epsilon, e^(epsilon/2) + 1, so that b = e^(-epsilon/2)."""
        if self.upper is not None:
            return Bounds(0.0, self.upper)
        if not isinstance(self.privacy, Pure):
            raise DiscreetError(
                f"upper = None is for a pure epsilon; with a reference and privacy = {self.privacy!r} say upper=, how many times likelier "
                "than in the reference an outcome may be for a client"
            )
        return Bounds(0.0, math.exp(min(self.privacy.epsilon, 1000.0) / 2.0) + 1.0)


def terms_of(*, epsilon: float | None = None, privacy: Privacy | None = None, upper: float | None = None) -> Terms:
    """The terms, or the error that says what is wrong with them."""
    if upper is not None:
        _UPPER.check(
            "upper", upper, "it bounds how many times likelier than in the reference an outcome may be for a client"
        )
    return Terms(chosen_privacy(epsilon, privacy), None if upper is None else float(upper))


@dataclass(frozen=True)
class DeviceBox:
    """b mu <= q <= B mu as a kernel needs it: rho, from which integer on none is shared, and up to which all are."""

    b: float
    B: float
    ratio: float
    unshared: int
    surely_shared: int

    @classmethod
    def around(cls, size: int, terms: Terms) -> DeviceBox:
        """The box around references over so many outcomes; too small a budget, or too many outcomes, is an error."""
        bounds = terms.bounds
        if not isinstance(terms.privacy, Pure):
            refuse_raw(terms.privacy, bounds)
        constants = constants_for_privacy(terms.privacy, bounds)
        refused = DiscreetError(
            f"{terms.privacy} with upper = {bounds.upper:g} over {size:,} outcomes leaves no room "
            "for rounding in float32; pass float64 tensors, which are drawn in the arithmetic of OptimalSampler"
        )
        if constants.b == 0.0 or math.isinf(constants.B):
            raise refused
        b = Fraction(constants.b)
        most = (1 + _MARGIN) * b * TOTAL + size
        shared = (1 - _MARGIN) * b * TOTAL - size
        ratio = _ratio(terms.privacy, Fraction(constants.B) / b, shared / TOTAL, most / TOTAL)
        least = (1 - Fraction(1, 1 << 23)) * Fraction(ratio) * shared - size
        if size > LARGEST_SIZE or most > TOTAL or least < TOTAL:
            raise refused
        return cls(constants.b, constants.B, ratio, math.ceil(most), math.floor(shared))


def _ratio(privacy: Privacy, widest: Fraction, least: Fraction, most: Fraction) -> float:
    """rho: the largest we know to keep the notion whatever part of the whole, between these two, all clients share; 1 if none does."""
    if isinstance(privacy, Pure):
        return _float32_below(at_most_exp(privacy.epsilon) * (1 - Fraction(1, 1 << 22)))
    for shift in _INWARDS:
        ratio = _float32_below(1 + (widest - 1) * (1 - Fraction(1, 1 << shift)))
        real = Fraction(ratio) * (1 + Fraction(1, 1 << 24))
        shared = min(max(2 / (1 + real), least), most)  # where the two points are the farthest out
        lower = min(1 - shared, real * shared - 1) / (real - 1) if real > 1 else Fraction(0)
        if privacy.allows(max(lower, Fraction(0)), max(real * lower, Fraction(0))):
            return ratio
    return 1.0


def _float32_below(value: Fraction) -> float:
    """The largest float32 at most this, or the one below that; from 2^62 on all serve alike."""
    nearest = np.float32(float(min(value, Fraction(TOTAL))))
    return float(nearest if Fraction(float(nearest)) <= value else np.nextafter(nearest, np.float32(0.0)))
