"""Which box: everything that epsilon, `upper` and the number of outcomes decide, before a tensor is looked at.

Around the uniform reference it is the lattice of `OptimalSampler(Simplex(k))`, or of the band 0 <= dP/dmu <= upper. Around a reference
that differs from row to row the lattice is made on the device, row by row, from masses e_x and their sum Z, all in float32:

    L_x = max(1, floor(e_x (2^62 b/Z))),    U_x = min(2^62, floor(rho L_x))      rho <= e^epsilon (1 - 2^-22), itself a float32

A product in float32 is off by a factor of at most 1 + 2^-24, so U_x <= e^epsilon L_x holds between the integers; float32 holds both
exactly. Z is off by a factor of at most 1 +- 2^-14 (at most 2^10 terms are added one after the other), so over k outcomes

    sum L <= (1 + 2^-13) b 2^62 + k  <=  2^62  <=  (1 - 2^-23) rho ((1 - 2^-13) b 2^62 - k) - k  <=  sum U

if b keeps that distance from both ends, which is asked for here in rational numbers (`DeviceBox.around`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import DiscreetError, Range
from discreet.families.band import Bounds
from discreet.numerics import exp_lower, stated
from discreet.privacy.pure import check_epsilon
from discreet.release import TOTAL
from discreet.tradeoff import optimal_constants

LARGEST_SIZE = 1 << 19  # outcomes on a GPU: so many terms are added up as the bound on Z allows
_MARGIN = Fraction(1, 1 << 13)
_UPPER = Range(1.0, math.inf, low_open=True, high_open=True)


@dataclass(frozen=True)
class Terms:
    """Epsilon and `upper` as they were asked for, checked.

    Attributes:
        epsilon: the privacy budget of one release.
        upper: the largest dP/dmu that the box is made for; None: that of the simplex, or the mollifier's if there is a reference.
    """

    epsilon: float
    upper: float | None

    @property
    def upper_of_reference(self) -> float:
        """`upper`, or what makes the box Husain's mollifier: e^(epsilon/2) + 1, so that b = e^(-epsilon/2)."""
        return math.exp(min(self.epsilon, 1000.0) / 2.0) + 1.0 if self.upper is None else self.upper


def terms_of(epsilon: float, upper: float | None) -> Terms:
    """The terms, or the error that says what is wrong with them."""
    if upper is not None:
        _UPPER.check(
            "upper", upper, "it bounds how many times likelier than in the reference an outcome may be for a client"
        )
    return Terms(check_epsilon(epsilon), None if upper is None else float(upper))


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
        """The box around references over so many outcomes; too small an epsilon, or too many outcomes, is an error."""
        constants = optimal_constants(Bounds(0.0, terms.upper_of_reference), terms.epsilon)
        exact = min(exp_lower(terms.epsilon), exp_lower(stated(terms.epsilon))) * (1 - Fraction(1, 1 << 22))
        nearest = np.float32(float(exact))
        ratio = float(nearest if Fraction(float(nearest)) <= exact else np.nextafter(nearest, np.float32(0.0)))
        b = Fraction(constants.b)
        most = (1 + _MARGIN) * b * TOTAL + size
        shared = (1 - _MARGIN) * b * TOTAL - size
        least = (1 - Fraction(1, 1 << 23)) * Fraction(ratio) * shared - size
        if size > LARGEST_SIZE or most > TOTAL or least < TOTAL:
            raise DiscreetError(
                f"epsilon = {terms.epsilon:g} with upper = {terms.upper_of_reference:g} over {size:,} outcomes leaves no room "
                "for rounding in float32; pass float64 tensors, which are drawn in the arithmetic of OptimalSampler"
            )
        return cls(constants.b, constants.B, ratio, math.ceil(most), math.floor(shared))
