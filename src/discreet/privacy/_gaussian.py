"""`Gaussian`: nu-Gaussian LDP, and the normal distribution function between two rationals.

Two clients are as hard to distinguish as N(0, 1) and N(nu, 1) are from one sample.

    f(x) = Phi(Phi^-1(1 - x) - nu),      delta(beta) = Phi(nu/2 - beta/nu) - e^beta Phi(-nu/2 - beta/nu)

A box keeps it if and only if Phi^-1(m B) - Phi^-1(m b) <= nu: one comparison where the published calibration takes an infimum over beta. It
is decided between rationals: Phi(x) <= m b for an x that is found first, and m B <= Phi(x + nu). Releases at nu_1, ..., nu_n are sqrt(nu_1^2
+ ... + nu_n^2) together (Dong, Roth and Su 2022, Cor. 3.3).

**Phi between two rationals** that are certainly below and above it:

    Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + x^7/(3 5 7) + ...)

for x >= 0, all terms positive. `Decimal` rounds each operation correctly, so n terms are off by at most 4 n units in the last place
relatively, the density by x^2 + 8 (its exponent is off by x^2 units), and together by less than 10^5 of them. The omitted terms sum to less
than the last one that is added. With 100 digits both are below 10^-92.
"""

from __future__ import annotations

import decimal
import math
import statistics
from dataclasses import dataclass
from fractions import Fraction

from discreet._base.numerics import exp_lower, float_up, stated_decimal
from discreet.errors import Range
from discreet.privacy._notion import ERROR, EXPONENT, Privacy, read_budget_in_range

_CONTEXT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_ERROR = Fraction(1, 10**90)
_FARTHEST = Fraction(30)  # Phi(-30) is below 10^-197
_ROOT_OF_TWO_PI = "2.50662827463100050241576528481104525300698674060993831662992357634229365460784197494659583837805726611600997266520"
LEAST_PROBABILITY = Fraction(1, 10**60)
_NEWTON_STEPS = 3  # each doubles the digits, from 15
_NU = Range(0.0, math.inf, low_open=True, high_open=True)
_ROOT_HALF = math.sqrt(0.5)


def normal_cdf(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= Phi(x) <= high, at most 2e-90 apart; beyond 30 deviations those of Phi(30)."""
    if x < 0:
        low, high = normal_cdf(-x)
        return 1 - high, 1 - low
    if x > _FARTHEST:
        return normal_cdf(_FARTHEST)[0], Fraction(1)
    with decimal.localcontext(_CONTEXT):
        value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        square = value * value
        term, total, place = value, value, 1
        while True:
            place += 2
            term = term * square / place
            total += term
            if 2 * square < place and term < decimal.Decimal("1e-95"):
                break
        found = Fraction(total * (-square / 2).exp() / decimal.Decimal(_ROOT_OF_TWO_PI))
    return Fraction(1, 2) + found - _ERROR, min(Fraction(1), Fraction(1, 2) + found + _ERROR)


def normal_quantile_below(probability: Fraction) -> Fraction | None:
    """A rational x with Phi(x) <= probability for certain, within 1e-25 of equality; None for a probability below 1e-60. At most 1/2.

    Newton's steps only propose it; `normal_cdf` decides.
    """
    if probability < LEAST_PROBABILITY:
        return None
    x = Fraction(statistics.NormalDist().inv_cdf(float(probability)))
    for _ in range(_NEWTON_STEPS):
        with decimal.localcontext(_CONTEXT):
            value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
            slope = Fraction((-value * value / 2).exp() / decimal.Decimal(_ROOT_OF_TWO_PI))
        low, high = normal_cdf(x)
        x = x - ((low + high) / 2 - probability) / slope
        x = Fraction(round(x * 10**64), 10**64)  # so that fractions do not grow from step to step
    step = Fraction(1, 10**60)
    while normal_cdf(x)[1] > probability:
        x, step = x - step, 4 * step
    return x


@dataclass(frozen=True)
class Gaussian(Privacy):
    """nu-Gaussian LDP, the notion under which many releases add up exactly.

    Args:
        nu: how many standard deviations two clients may be apart, in (0, inf); 0.5 to 2 is usual.

    Raises:
        DiscreetError: for a nu out of range.
    """

    nu: float

    def __post_init__(self) -> None:
        nu = read_budget_in_range(
            _NU, "nu", self.nu, "it is how far apart two clients may be, in standard deviations; 0.5 to 2 is usual"
        )
        object.__setattr__(self, "nu", nu)

    def tradeoff(self, x: float) -> float:
        error = ERROR.check("x", x)
        if error in (0.0, 1.0):
            return 1.0 - error
        return 0.5 * math.erfc((statistics.NormalDist().inv_cdf(error) + self.nu) * _ROOT_HALF)

    def profile(self, beta: float) -> float:
        exponent, nu = Fraction(EXPONENT.check("beta", beta)), Fraction(self.nu)
        if beta > 100.0 * max(self.nu, self.nu * self.nu):  # positive, but below every float
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
        """nu as a rational: the smaller of the float and the decimal as written."""
        return min(Fraction(self.nu), Fraction(stated_decimal(self.nu)))

    @property
    def may_reveal_client_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.nu:g}-Gaussian LDP"
