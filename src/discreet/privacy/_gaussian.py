"""nu-Gaussian LDP: two clients are as hard to tell apart as N(0, 1) and N(nu, 1) are from one sample.

    f(x) = Phi(Phi^-1(1 - x) - nu),      delta(beta) = Phi(nu/2 - beta/nu) - e^beta Phi(-nu/2 - beta/nu)

A box keeps it if and only if Phi^-1(m B) - Phi^-1(m b) <= nu: one comparison where the published calibration takes an infimum over
beta. It is decided between rationals: Phi(x) <= m b for an x that is found first, and m B <= Phi(x + nu) (`discreet.privacy._normal`).
Releases at nu_1, ..., nu_n are sqrt(nu_1^2 + ... + nu_n^2) together (Dong, Roth and Su 2022, Cor. 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import Range
from discreet.numerics import exp_lower, float_up, stated_decimal
from discreet.privacy._normal import normal_cdf, normal_quantile_below
from discreet.privacy._notion import ERROR, EXPONENT, Privacy, check_budget

_NU = Range(0.0, math.inf, low_open=True, high_open=True)
_ROOT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class Gaussian(Privacy):
    """nu-Gaussian LDP, the notion whose many releases add up exactly.

    Args:
        nu: how many standard deviations two clients may be apart, in (0, inf); 0.5 to 2 is usual.

    Raises:
        DiscreetError: for a nu that is none.
    """

    nu: float

    def __post_init__(self) -> None:
        nu = check_budget(
            _NU, "nu", self.nu, "it is how far apart two clients may be, in standard deviations; 0.5 to 2 is usual"
        )
        object.__setattr__(self, "nu", nu)

    def tradeoff(self, x: float) -> float:
        error = ERROR.check("x", x)
        if error in (0.0, 1.0):
            return 1.0 - error
        from statistics import NormalDist

        return 0.5 * math.erfc((NormalDist().inv_cdf(error) + self.nu) * _ROOT_HALF)

    def profile(self, beta: float) -> float:
        exponent, nu = Fraction(EXPONENT.check("beta", beta)), Fraction(self.nu)
        if beta > 100.0 * max(self.nu, self.nu * self.nu):  # positive, and far below every other float
            return math.ulp(0.0)
        high = normal_cdf(nu / 2 - exponent / nu)[1]
        return float_up(max(Fraction(0), high - exp_lower(float(beta)) * normal_cdf(-nu / 2 - exponent / nu)[0]))

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        if lower == upper:
            return True
        place = normal_quantile_below(lower)
        return place is not None and upper <= normal_cdf(place + self.exact_nu)[0]

    @property
    def exact_nu(self) -> Fraction:
        """nu as a rational: the float or the decimal that was written, whichever is less."""
        return min(Fraction(self.nu), Fraction(stated_decimal(self.nu)))

    @property
    def allows_raw_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.nu:g}-Gaussian LDP"
