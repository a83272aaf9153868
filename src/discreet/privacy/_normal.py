"""The normal distribution function Phi between two rationals that are certainly below and above it.

    Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + x^7/(3 5 7) + ...)

for x >= 0, all terms positive. `Decimal` rounds each operation correctly, so n terms are off by at most 4 n units in the last
place relatively, the density by x^2 + 8 (its exponent is off by x^2 units), and together by less than 10^5 of them; the terms left out sum
to less than the last one kept. With 100 digits both are below 10^-92.
"""

import decimal
import statistics
from fractions import Fraction

_CONTEXT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_ERROR = Fraction(1, 10**90)
_FARTHEST = Fraction(30)  # Phi(-30) is below 10^-197
_ROOT_OF_TWO_PI = "2.50662827463100050241576528481104525300698674060993831662992357634229365460784197494659583837805726611600997266520"
LEAST_PROBABILITY = Fraction(1, 10**60)
_NEWTON_STEPS = 3  # each doubles the digits, from 15


def normal_cdf(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= Phi(x) <= high, at most 2e-90 apart; past 30 deviations what is known of Phi(30)."""
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
    """A rational x with Phi(x) <= probability for certain, within 1e-25 of equality; None for one below 1e-60. At most 1/2.

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
        x = _round_fraction(x - ((low + high) / 2 - probability) / slope)
    step = Fraction(1, 10**60)
    while normal_cdf(x)[1] > probability:
        x, step = x - step, 4 * step
    return x


def _round_fraction(x: Fraction) -> Fraction:
    """Sixty-four digits after the point: fractions do not grow from step to step."""
    return Fraction(round(x * 10**64), 10**64)
