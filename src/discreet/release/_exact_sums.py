"""Sums of floats without rounding, in numba: a whole number of 2^-1074, in limbs of 32 bits that are kept in 64.

A float of at least 0 is a number of 53 bits times a power of two, and falls on three limbs at most, each of which grows by
less than 2^33; so 2^31 floats can be added before anything has to be carried. Only comparisons are needed, and only where
floating-point arithmetic leaves them open (`discreet.release._canonical`): time does not matter here.
"""

from typing import Any

import numpy as np

from discreet._kernels import kernel

LIMBS = 72  # of the largest float times 2^31 rows times 2^54, with room to spare

_LIMB = np.uint64(0xFFFFFFFF)
_LIMB_BITS = np.uint64(32)
_IN_LIMB = np.uint64(31)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_EXPONENT = np.uint64(0x7FF)


@kernel()
def add_up(bits: Any, first: Any, last: Any, limbs: Any) -> None:
    """The sum of the floats with these bits (as 64-bit integers) in rows first <= row < last, into `limbs`."""
    limbs[:] = 0
    for row in range(first, last):
        pattern = np.uint64(bits[row])
        exponent = (pattern >> np.uint64(52)) & _EXPONENT
        number = pattern & _FRACTION
        place = np.uint64(0)
        if exponent:  # else below all powers of two that have bits of their own
            number |= _HIDDEN
            place = exponent - np.uint64(1)
        within = place & _IN_LIMB
        low, high = (number & _LIMB) << within, (number >> _LIMB_BITS) << within
        limb = np.int64(place >> np.uint64(5))
        limbs[limb] += low & _LIMB
        limbs[limb + 1] += (low >> _LIMB_BITS) + (high & _LIMB)
        limbs[limb + 2] += high >> _LIMB_BITS
    _carry(limbs)


@kernel()
def at_least(some: Any, shift: Any, total: Any, factor: Any, left: Any, right: Any) -> bool:
    """Whether 2^shift some >= factor total, with shift and the bits of the factor at most 54. (`left`, `right`: scratch.)"""
    left[:] = 0
    right[:] = 0
    whole, within = shift >> 5, np.uint64(shift & 31)
    low, high = np.uint64(factor) & _LIMB, np.uint64(factor) >> _LIMB_BITS
    for limb in range(LIMBS - 3):
        left[limb + whole] += (some[limb] << within) & _LIMB
        left[limb + whole + 1] += (some[limb] << within) >> _LIMB_BITS
        by_low, by_high = total[limb] * low, total[limb] * high
        right[limb] += by_low & _LIMB
        right[limb + 1] += (by_low >> _LIMB_BITS) + (by_high & _LIMB)
        right[limb + 2] += by_high >> _LIMB_BITS
    _carry(left)
    _carry(right)
    for limb in range(LIMBS - 1, -1, -1):
        if left[limb] != right[limb]:
            return bool(left[limb] > right[limb])
    return True


@kernel()
def _carry(limbs: Any) -> None:
    carried = np.uint64(0)
    for limb in range(LIMBS):
        carried += limbs[limb]
        limbs[limb] = carried & _LIMB
        carried >>= _LIMB_BITS
