"""Directed rounding: rationals that are certainly at most e^epsilon, and integer products that are certainly at most exact.

Privacy is `weight <= e^epsilon * weight'` between integers, so the only real number it needs is a lower bound of e^epsilon. `exp_lower` gives
one as a `Fraction`; `product_rounded_down_and_capped` multiplies a whole array of 63-bit integers by it. Rounding down can cost utility
(by about 2^-62), never privacy.

A box itself consists of floats, and its integers depend on their last bits. `exp_nearest` and `expm1_nearest` are the floats nearest to the
true values, which a machine's own library need not return. So every machine, and a browser, has the same box.

Spent budgets are rounded up: `product_rounded_up` and `sum_rounded_up` are the least floats that are not below the exact product or sum. A
hundred times 0.1 is more than 10, because the float 0.1 is more than a tenth.
"""

import decimal
import math
import numbers
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base import getattr_for_old_names
from discreet.errors import DiscreetError, check_rational

__all__ = [
    "LARGEST_EXPONENT",
    "exp_lower",
    "exp_nearest",
    "exp_upper",
    "expm1_nearest",
    "float_rounded_up",
    "log_bracket",
    "product_rounded_down_and_capped",
    "product_rounded_up",
    "stated_decimal",
    "sum_rounded_up",
]

# Independent of the caller's decimal context, without traps.
_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_LINEAR = 1e-18  # for smaller |x| the nearest float to e^x - 1 is x; for larger, 60 digits of e^x leave 42 of e^x - 1
_LARGEST_EXACT = 1 << 53  # whole numbers up to which all are floats
_LARGEST_WRITTEN = 10**5  # exponents up to which e^x is written out as a rational
LARGEST_FLOAT_EXPONENT = 700.0  # of e: e^700 is a float, with room for products
LARGEST_EXPONENT = 64.0  # e^64 > 2^92 exceeds the ratio of any two positive 62-bit integers


def _require_number(name: str, value: Any) -> float | decimal.Decimal:
    """Return a float, a decimal or a small whole number as it is, any other number as a float, or raise."""
    if type(value) is float or isinstance(value, decimal.Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DiscreetError(f"{name} = {value!r} is not a number")
    if isinstance(value, int) and abs(value) <= _LARGEST_EXACT:
        return value
    try:
        return float(value)
    except OverflowError:  # a number beyond every float
        huge: Any = value
        return math.inf if huge > 0 else -math.inf


def stated_decimal(epsilon: float) -> decimal.Decimal:
    """The epsilon that a float stands for: the shortest decimal that reads back as it, as the user wrote it.

    Whoever writes 0.1 means a tenth, but the nearest float is larger by 5.6e-18, so that ten of them are more than 1. Samplers
    draw at most at the smaller of the two, so budgets may be added up as they were written, and the sum is true of what is drawn.

    Args:
        epsilon: a float, as it was read.

    Returns:
        The decimal that was written.

    Raises:
        DiscreetError: for what is not a number.
    """
    epsilon = float(_require_number("epsilon", epsilon))
    if epsilon != epsilon:
        raise DiscreetError("epsilon = nan is not a number")
    with decimal.localcontext(_CONTEXT):
        return decimal.Decimal(repr(epsilon))


def exp_lower(epsilon: float | decimal.Decimal) -> Fraction:
    """A rational of at least 1 and at most e^epsilon, within 1e-58 of it relatively; above epsilon = 64 that of e^64.

    `Decimal.exp` is correctly rounded at the working precision, so stepping one unit down in the last place is a true lower bound.

    Args:
        epsilon: a float or a decimal of at least 0.

    Returns:
        The rational.

    Raises:
        DiscreetError: for what is not a number of at least 0.
    """
    exponent = decimal.Decimal(_require_number("epsilon", epsilon))
    if exponent.is_nan() or exponent < 0:  # a comparison with NaN would raise decimal's own error
        raise DiscreetError(f"epsilon = {epsilon} is not a number of at least 0; e^epsilon would be less than 1")
    with decimal.localcontext(_CONTEXT):
        power = min(exponent, decimal.Decimal(LARGEST_EXPONENT)).exp()
        return max(Fraction(1), Fraction(power.next_minus()))


def exp_upper(epsilon: float) -> Fraction:
    """A rational at least e^epsilon, within 1e-58 of it relatively (epsilon from -10^5 to 10^5).

    Args:
        epsilon: a float; it may be negative.

    Returns:
        The rational.

    Raises:
        DiscreetError: for what is not a number of at most 10^5.
    """
    exponent = _require_number("epsilon", epsilon)
    if not math.isfinite(exponent) or not -_LARGEST_WRITTEN <= exponent <= _LARGEST_WRITTEN:
        raise DiscreetError(f"epsilon = {exponent} is not a finite number of at most {_LARGEST_WRITTEN:,}")
    with decimal.localcontext(_CONTEXT):
        return Fraction(decimal.Decimal(exponent).exp().next_plus())


def exp_nearest(exponent: float) -> float:
    """The float nearest to e^exponent.

    Args:
        exponent: a float.

    Returns:
        That float; infinity past the largest.

    Raises:
        DiscreetError: for what is not a number.
    """
    return _cached_exp_nearest(_require_number("exponent", exponent))


@lru_cache(maxsize=4096)
def _cached_exp_nearest(exponent: float | decimal.Decimal) -> float:
    with decimal.localcontext(_CONTEXT):
        return float(decimal.Decimal(exponent).exp())


def expm1_nearest(exponent: float) -> float:
    """The float nearest to e^exponent - 1.

    Args:
        exponent: a float; of a tiny one the result keeps all digits.

    Returns:
        The float nearest to it.

    Raises:
        DiscreetError: for what is not a number.
    """
    return _cached_expm1_nearest(_require_number("exponent", exponent))


@lru_cache(maxsize=4096)
def _cached_expm1_nearest(exponent: float | decimal.Decimal) -> float:
    if abs(float(exponent)) < _LINEAR:
        return float(exponent)
    with decimal.localcontext(_CONTEXT):
        return float(decimal.Decimal(exponent).exp() - 1)


def product_rounded_down_and_capped(values: NDArray[np.int64], factor: Fraction, cap: int) -> NDArray[np.int64]:
    """min(cap, a lower bound of floor(value * factor)) for 0 <= value < 2^63 and cap < 2^63, in 64-bit integers.

    With m = floor(factor 2^(64-s)) < 2^64, value * factor >= value * m >> (64 - s): the 128-bit product is taken by halves.
    """
    shift = (factor.numerator // factor.denominator).bit_length()
    if shift >= 63:  # value * factor >= 2^62 as soon as value >= 1
        return np.where(values > 0, np.int64(cap), np.int64(0))
    mantissa = (factor.numerator << (64 - shift)) // factor.denominator
    high, low = _wide_product(values.astype(np.uint64), mantissa)
    fits = high <= np.uint64(cap >> shift)
    carry = low >> np.uint64(64 - shift) if shift else np.zeros_like(low)
    product = (np.where(fits, high, np.uint64(0)) << np.uint64(shift)) | carry
    return np.where(fits, np.minimum(product, np.uint64(cap)), np.uint64(cap)).astype(np.int64)


def _wide_product(values: NDArray[np.uint64], mantissa: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The upper and lower 64 bits of value * mantissa, by 32-bit halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    low_m, high_m = np.uint64(mantissa & 0xFFFFFFFF), np.uint64(mantissa >> 32)
    low_v, high_v = values & mask, values >> half
    bottom = low_v * low_m
    cross = high_v * low_m + (bottom >> half)
    middle = low_v * high_m + (cross & mask)
    high = high_v * high_m + (cross >> half) + (middle >> half)
    low = (middle << half) | (bottom & mask)
    return high, low


def log_bracket(ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= log(ratio) <= high, about 1e-57 apart relatively; ratio >= 1.

    `Decimal` rounds division and logarithm correctly, so one unit in the last place either way is a true bound.

    Args:
        ratio: a rational of at least 1.

    Returns:
        low and high.

    Raises:
        DiscreetError: for what is not a number of at least 1.
    """
    ratio = check_rational("ratio", ratio)
    if ratio < 1:
        raise DiscreetError(f"ratio = {ratio} is less than 1; pass its reciprocal, and change the signs")
    with decimal.localcontext(_CONTEXT):
        quotient = decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)
        low = max(quotient.next_minus(), decimal.Decimal(1)).ln()
        high = quotient.next_plus().ln()
        return Fraction(low.next_minus() if low else low), Fraction(high.next_plus())


def product_rounded_up(factor: float, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The least floats that are at least factor * count, for |count| < 2^26 and 0 < factor < 1e300.

    The factor is cut into two halves of 26 bits (Veltkamp), whose products with a count are exact. Their sum is rounded, and the rounding
    error is known exactly (Dekker).
    """
    floats = counts.astype(np.float64)
    if factor < 1e-280:  # the lower half could underflow
        return np.where(floats == 0.0, 0.0, np.nextafter(factor * floats, np.inf))
    scaled_factor = 134217729.0 * factor
    upper = scaled_factor - (scaled_factor - factor)
    return sum_rounded_up(upper * floats, (factor - upper) * floats)


def sum_rounded_up(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least floats that are at least first + second (Knuth's sum gives the exact rounding error)."""
    total = first + second
    part = total - first
    error = (first - (total - part)) + (second - part)
    return np.where(error > 0.0, np.nextafter(total, np.inf), total)


def float_rounded_up(exact: Fraction) -> float:
    """The least float that is at least this number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


__getattr__ = getattr_for_old_names(
    __name__,
    {
        "stated": "stated_decimal",
        "float_up": "float_rounded_up",
        "product_up": "product_rounded_up",
        "sum_up": "sum_rounded_up",
    },
)
