"""floor(a b / c) of 64-bit numbers in compiled code: the product has 128 bits, so it is taken and divided by halves (Knuth's D)."""

from typing import Any

import numpy as np

from discreet._kernels import kernel
from discreet.release._randomness import BITS

_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_BASE = np.uint64(1 << 32)
_ONE, _TOP = np.uint64(1), np.uint64(1 << 63)


@kernel()
def _digit(high: Any, low: Any, upper: Any, lower: Any) -> Any:
    """One digit (32 bits) of (high, low) divided by (upper, lower), a number whose first bit is set: a guess, put right."""
    guess = high // upper
    left = high - guess * upper
    while guess >= _BASE or guess * lower > (left << _HALF) + low:
        guess -= _ONE
        left += upper
        if left >= _BASE:
            break
    return guess


@kernel()
def _product(one: Any, other: Any) -> Any:
    """The upper and lower 64 bits of a product."""
    bottom = (one & _MASK) * (other & _MASK)
    cross = (one >> _HALF) * (other & _MASK) + (bottom >> _HALF)
    middle = (one & _MASK) * (other >> _HALF) + (cross & _MASK)
    high = (one >> _HALF) * (other >> _HALF) + (cross >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (bottom & _MASK)


@kernel()
def share_of_total(a: Any, b: Any) -> Any:
    """floor(a b / 2^62) for 0 <= a, b <= 2^62."""
    high, low = _product(np.uint64(a), np.uint64(b))
    return np.int64((high << np.uint64(64 - BITS)) | (low >> np.uint64(BITS)))


@kernel()
def quotient(a: Any, b: Any, c: Any) -> Any:
    """floor(a b / c) for 0 <= a, b, c < 2^63, where it is below 2^63; 0 where c is."""
    if c <= 0:
        return np.int64(0)
    divisor = np.uint64(c)
    high, low = _product(np.uint64(a), np.uint64(b))
    if high == np.uint64(0):
        return np.int64(low // divisor)
    shift = np.uint64(0)
    while divisor < _TOP:
        divisor <<= _ONE
        shift += _ONE
    if shift > np.uint64(0):
        high = (high << shift) | (low >> (np.uint64(64) - shift))
        low <<= shift
    upper, lower = divisor >> _HALF, divisor & _MASK
    first = _digit(high, low >> _HALF, upper, lower)
    left = (high << _HALF) + (low >> _HALF) - first * divisor
    return np.int64((first << _HALF) + _digit(left, low & _MASK, upper, lower))
