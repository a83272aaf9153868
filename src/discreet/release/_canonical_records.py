"""A client's records in canonical form, in numba: distinct outcomes in increasing order with whole numbers.

The form does not depend on the order of the records. The numbers are those of `discreet.release._randomness` (the law in whole numbers),
computed for millions of clients at a time: counts divided by their greatest common divisor; weights summed without rounding and put on the
grid. The form is the list of words that is hashed there. It is read back from the words for the few clients whose draw depends on it.

Floating-point sums of n weights of at least 0 are right up to a factor 1 +- n 2^-53, so a share is known up to 1 +- (2 n + 8) 2^-52 (twice
the needed width). Usually that decides on which side of a grid line a share lies. The rest, one client in many millions, is decided by sums
without rounding.

An exact sum is a whole number of 2^-1074, in limbs of 32 bits that are kept in 64. A float of at least 0 is a number of 53 bits times a power
of two. It falls on three limbs at most, each of which grows by less than 2^33; so 2^31 floats can be added before a carry. Only comparisons
are needed, and only where floating-point arithmetic leaves them open, so speed does not matter there.
"""

from typing import Any

import numpy as np

from discreet._base.kernels import kernel
from discreet.projection import NEGLIGIBLE
from discreet.release._client_draws import (
    REFUSED_INFINITE,
    REFUSED_NAN,
    REFUSED_NEGATIVE,
    REFUSED_OUTSIDE,
    REFUSED_OVERFLOW,
)
from discreet.release._randomness import NARROW_FORM, NOTHING_BITS, SHARE_BITS, WIDE_FORM

LIMBS = 72  # of the largest float times 2^31 rows times 2^54, with room to spare

_LIMB = np.uint64(0xFFFFFFFF)
_LIMB_BITS = np.uint64(32)
_IN_LIMB = np.uint64(31)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_EXPONENT = np.uint64(0x7FF)


@kernel()
def sum_floats_exactly(bits: Any, first: Any, last: Any, limbs: Any) -> None:
    """Sum the floats with these bits (as 64-bit integers) in rows first <= row < last into `limbs`."""
    limbs[:] = 0
    for row in range(first, last):
        pattern = np.uint64(bits[row])
        exponent = (pattern >> np.uint64(52)) & _EXPONENT
        number = pattern & _FRACTION
        offset = np.uint64(0)
        if exponent:  # else subnormal
            number |= _HIDDEN
            offset = exponent - np.uint64(1)
        shift = offset & _IN_LIMB
        low, high = (number & _LIMB) << shift, (number >> _LIMB_BITS) << shift
        limb = np.int64(offset >> np.uint64(5))
        limbs[limb] += low & _LIMB
        limbs[limb + 1] += (low >> _LIMB_BITS) + (high & _LIMB)
        limbs[limb + 2] += high >> _LIMB_BITS
    _carry_limbs(limbs)


@kernel()
def is_exact_share_at_least(part: Any, shift: Any, total: Any, factor: Any, left: Any, right: Any) -> bool:
    """Whether 2^shift part >= factor total, with shift and the bits of the factor at most 54. (`left`, `right`: scratch.)"""
    left[:] = 0
    right[:] = 0
    limb_shift, bit_shift = shift >> 5, np.uint64(shift & 31)
    low, high = np.uint64(factor) & _LIMB, np.uint64(factor) >> _LIMB_BITS
    for limb in range(LIMBS - 3):
        left[limb + limb_shift] += (part[limb] << bit_shift) & _LIMB
        left[limb + limb_shift + 1] += (part[limb] << bit_shift) >> _LIMB_BITS
        by_low, by_high = total[limb] * low, total[limb] * high
        right[limb] += by_low & _LIMB
        right[limb + 1] += (by_low >> _LIMB_BITS) + (by_high & _LIMB)
        right[limb + 2] += by_high >> _LIMB_BITS
    _carry_limbs(left)
    _carry_limbs(right)
    for limb in range(LIMBS - 1, -1, -1):
        if left[limb] != right[limb]:
            return bool(left[limb] > right[limb])
    return True


@kernel()
def _carry_limbs(limbs: Any) -> None:
    carry = np.uint64(0)
    for limb in range(LIMBS):
        carry += limbs[limb]
        limbs[limb] = carry & _LIMB
        carry >>= _LIMB_BITS


_TINY = 16  # longer lists may be counted
_SHORT = 64  # lists up to here are sorted by insertion, longer ones digit by digit
_DIGIT = 8
_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_TOO_WIDE = 1 << 32
_MOST = (1 << 63) - 1
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of six bits are all different
_PLACES = np.zeros(64, dtype=np.uint64)
for _place in range(64):
    _PLACES[((int(_DE_BRUIJN) << _place) & 0xFFFFFFFFFFFFFFFF) >> 58] = _place


@kernel()
def write_records_without_counts(
    records: Any,
    start: int,
    stop: int,
    size: int,
    words: Any,
    offset: int,
    keys: Any,
    spare: Any,
    bitmap: Any,
    tallies: Any,
    problem: Any,
) -> int:
    """Write the pairs of records that count once each to words[offset:]; returns their number, or -1 with the place of a bad record.

    `keys` and `spare` are scratch of the list's length, `bitmap` and `tallies` scratch of zeros from `make_bitmap_scratch`.
    """
    number = stop - start
    is_ordered = True
    last = np.uint32(0)
    largest = np.uint32(0)
    for index in range(number):
        key = records[start + index]
        is_ordered = is_ordered and key >= last
        largest = max(largest, key)
        keys[index] = key
        last = key
    if number and np.int64(largest) >= size:
        problem[0], problem[1] = 0, REFUSED_OUTSIDE
        while np.int64(keys[problem[0]]) < size:
            problem[0] += 1
        return -1
    if not is_ordered:
        if number > _TINY and number >= size >> 6:
            return _count_records_by_bitmap(keys, number, size, words, offset, bitmap, tallies)
        if number <= _SHORT:
            _sort_short_list(keys, number)
        else:
            no_amounts = np.empty(0, dtype=np.int64)
            _sort_outcomes(keys, spare, number, size, no_amounts, no_amounts)
    distinct = 0
    index = 0
    while index < number:
        first = index
        index += 1
        while index < number and keys[index] == keys[first]:
            index += 1
        words[offset + distinct] = (np.uint64(keys[first]) << _HALF) | np.uint64(index - first)
        distinct += 1
    _divide_by_gcd(words, offset, distinct)
    return distinct


@kernel()
def _divide_by_gcd(words: Any, offset: int, distinct: int) -> None:
    """Divide the counts of narrow pairs by their greatest common divisor."""
    common = np.uint64(0)
    for index in range(distinct):
        common = _gcd(common, words[offset + index] & _LOWER_HALF)
        if common == np.uint64(1):
            return
    for index in range(distinct):
        pair = words[offset + index]
        words[offset + index] = (pair ^ (pair & _LOWER_HALF)) | ((pair & _LOWER_HALF) // common)


@kernel()
def _gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor; that of 0 and a number is the number."""
    while a:
        a, b = b % a, a
    return b


@kernel()
def make_bitmap_scratch(size: int, longest: int) -> Any:
    """Scratch for `_count_records_by_bitmap`: one bit and one count for each outcome, if any list is long enough."""
    room = size if longest > _TINY and longest >= size >> 6 else 0
    return np.zeros((room >> 6) + 1, dtype=np.uint64), np.zeros(room + 1, dtype=np.uint32)


@kernel()
def _count_records_by_bitmap(
    keys: Any, number: int, size: int, words: Any, offset: int, bitmap: Any, tallies: Any
) -> int:
    """For lists at least a 64th as long as the domain: count each outcome, then read the outcomes off a row of bits."""
    for index in range(number):
        key = np.uint64(keys[index])
        bitmap[key >> np.uint64(6)] |= np.uint64(1) << (key & np.uint64(63))
        tallies[key] += np.uint32(1)
    distinct = 0
    for block in range((size + 63) >> 6):
        bits = bitmap[block]
        bitmap[block] = np.uint64(0)
        while bits:
            lowest = bits & (~bits + np.uint64(1))
            key = (np.uint64(block) << np.uint64(6)) | _PLACES[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            words[offset + distinct] = (key << _HALF) | np.uint64(tallies[key])
            tallies[key] = np.uint32(0)
            distinct += 1
            bits ^= lowest
    _divide_by_gcd(words, offset, distinct)
    return distinct


@kernel()
def _sort_short_list(keys: Any, number: int) -> None:
    """Insertion sort without branches, so that the processor cannot mispredict any."""
    for index in range(1, number):
        key = keys[index]
        for earlier in range(index):
            earlier_key = keys[earlier]
            keys[earlier] = min(earlier_key, key)
            key = max(earlier_key, key)
        keys[index] = key


@kernel()
def write_records_with_counts(
    records: Any,
    counts: Any,
    start: int,
    stop: int,
    size: int,
    words: Any,
    offset: int,
    keys: Any,
    spare: Any,
    amounts: Any,
    spare_amounts: Any,
    problem: Any,
) -> tuple[int, int]:
    """As `write_records_without_counts`, for records with whole-number counts: (how many pairs, NARROW or WIDE). Zeros are left out."""
    number = 0
    total = 0
    for index in range(start, stop):
        count = counts[index]
        if records[index] >= size or count < 0 or count > _MOST - total:
            problem[0] = index - start
            problem[1] = (
                REFUSED_OUTSIDE if records[index] >= size else REFUSED_NEGATIVE if count < 0 else REFUSED_OVERFLOW
            )
            return -1, NARROW_FORM
        if count > 0:
            keys[number], amounts[number] = records[index], count
            total += count
            number += 1
    _sort_outcomes(keys, spare, number, size, amounts, spare_amounts)
    distinct = 0
    index = 0
    while index < number:
        key, amount = keys[index], amounts[index]
        index += 1
        while index < number and keys[index] == key:
            amount += amounts[index]
            index += 1
        keys[distinct], amounts[distinct] = key, amount
        distinct += 1
    return distinct, _write_outcome_pairs(words, offset, keys, amounts, distinct)


@kernel()
def write_records_with_weights(
    records: Any,
    weights: Any,
    start: int,
    stop: int,
    size: int,
    words: Any,
    offset: int,
    keys: Any,
    spare: Any,
    amounts: Any,
    spare_amounts: Any,
    sums: Any,
    problem: Any,
) -> tuple[int, int]:
    """As `write_records_with_counts`, for records with floating-point weights."""
    number = 0
    for index in range(start, stop):
        weight = weights[index]
        if records[index] >= size or not (weight >= 0.0 and weight < np.inf):
            problem[0] = index - start
            problem[1] = (
                REFUSED_OUTSIDE if records[index] >= size else REFUSED_INFINITE if weight > 0.0 else REFUSED_NEGATIVE
            )
            if weight != weight:
                problem[1] = REFUSED_NAN
            return -1, NARROW_FORM
        if weight > 0.0:
            keys[number], amounts[number] = records[index], float_bits_as_integer(weight)
            number += 1
    _sort_outcomes(keys, spare, number, size, amounts, spare_amounts)
    sorted_weights, ends = amounts.view(np.float64), spare
    distinct = 0
    total = 0.0
    index = 0
    while index < number:
        key, weight_sum = keys[index], sorted_weights[index]
        index += 1
        while index < number and keys[index] == key:
            weight_sum += sorted_weights[index]
            index += 1
        keys[distinct], sums[distinct], ends[distinct] = key, weight_sum, index
        total += weight_sum
        distinct += 1
    if total == np.inf:
        problem[0], problem[1] = 0, REFUSED_OVERFLOW
        return -1, NARROW_FORM
    _round_shares_to_integers(amounts, number, sums, ends, total, distinct, spare_amounts)
    kept_count = 0
    for index in range(distinct):
        if spare_amounts[index]:
            keys[kept_count], spare_amounts[kept_count] = keys[index], spare_amounts[index]
            kept_count += 1
    return kept_count, _write_outcome_pairs(words, offset, keys, spare_amounts, kept_count)


@kernel()
def _round_shares_to_integers(
    bits: Any, rows: int, sums: Any, ends: Any, total: float, distinct: int, numbers: Any
) -> None:
    """numbers[i] = n_x of the i-th outcome, whose weights have the bits up to row ends[i] and sum to about sums[i]."""
    exact = np.empty((4, LIMBS), dtype=np.uint64)
    has_total = False  # the exact total
    error = (2.0 * rows + 8.0) * 2.0**-52
    present_count = 0
    for index in range(distinct):
        share = sums[index] / total * 2.0**NOTHING_BITS
        is_present = share >= 1.0
        if abs(share - 1.0) <= error:
            has_total = _sum_outcome_exactly(bits, rows, ends, index, exact, has_total)
            is_present = is_exact_share_at_least(exact[1], NOTHING_BITS, exact[0], 1, exact[2], exact[3])
        if is_present:
            present_count += 1
        else:
            sums[index] = 0.0
    scale_bits = SHARE_BITS
    while 1 << (scale_bits - SHARE_BITS) < present_count:
        scale_bits += 1
    scale = 2.0**scale_bits
    for index in range(distinct):
        scaled_share = sums[index] / total * scale
        below = np.floor(scaled_share)
        number = np.int64(below) + (1 if scaled_share - below >= 0.5 else 0)
        if abs(scaled_share - below - 0.5) <= error * scaled_share:
            has_total = _sum_outcome_exactly(bits, rows, ends, index, exact, has_total)
            while is_exact_share_at_least(exact[1], scale_bits + 1, exact[0], 2 * number + 1, exact[2], exact[3]):
                number += 1
            while number and not is_exact_share_at_least(
                exact[1], scale_bits + 1, exact[0], 2 * number - 1, exact[2], exact[3]
            ):
                number -= 1
        numbers[index] = number


@kernel()
def _sum_outcome_exactly(bits: Any, rows: int, ends: Any, index: int, exact: Any, has_total: bool) -> bool:
    """The exact sum of one outcome, and the exact total unless it is known."""
    if not has_total:
        sum_floats_exactly(bits, 0, rows, exact[0])
    sum_floats_exactly(bits, np.int64(ends[index - 1]) if index else 0, np.int64(ends[index]), exact[1])
    return True


@kernel()
def _write_outcome_pairs(words: Any, offset: int, keys: Any, amounts: Any, distinct: int) -> int:
    """Write outcomes with their amounts, divided by their greatest common divisor; returns NARROW or WIDE."""
    common = np.uint64(0)
    largest = np.uint64(0)
    for index in range(distinct):
        amount = np.uint64(amounts[index])
        largest = max(largest, amount)
        if common != np.uint64(1):
            common = _gcd(common, amount)
    if distinct and (
        largest // common >= np.uint64(_TOO_WIDE) or np.uint64(keys[distinct - 1]) >= np.uint64(_TOO_WIDE)
    ):
        for index in range(distinct):
            words[offset + 2 * index] = np.uint64(keys[index])
            words[offset + 2 * index + 1] = np.uint64(amounts[index]) // common
        return WIDE_FORM
    for index in range(distinct):
        words[offset + index] = (np.uint64(keys[index]) << _HALF) | (np.uint64(amounts[index]) // common)
    return NARROW_FORM


@kernel()
def read_law(words: Any, offset: int, distinct: int, form: int, keys: Any, masses: Any) -> int:
    """The law number/total that the words encode: outcomes to `keys`, probabilities to `masses`; returns how many are not negligible."""
    total = np.uint64(0)
    for index in range(distinct):
        if form == NARROW_FORM:
            pair = words[offset + index]
            key, number = pair >> _HALF, pair & _LOWER_HALF
        else:
            key, number = words[offset + 2 * index], words[offset + 2 * index + 1]
        keys[index], masses[index] = key, np.float64(number)
        total += number
    kept_count = 0
    for index in range(distinct):
        mass = masses[index] / np.float64(total)
        if mass > NEGLIGIBLE:
            keys[kept_count], masses[kept_count] = keys[index], mass
            kept_count += 1
    return kept_count


@kernel()
def _sort_outcomes(keys: Any, spare: Any, number: int, size: int, amounts: Any, spare_amounts: Any) -> None:
    """Sort keys, and amounts along with them if there are any."""
    if number <= _SHORT:
        for index in range(1, number):
            key = keys[index]
            amount = amounts[index] if amounts.size else 0
            hole = index
            while hole > 0 and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                if amounts.size:
                    amounts[hole] = amounts[hole - 1]
                hole -= 1
            keys[hole] = key
            if amounts.size:
                amounts[hole] = amount
        return
    starts = np.empty(1 << _DIGIT, dtype=np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    shift = 0
    while (size - 1) >> shift:  # digit by digit, from the least
        starts[:] = 0
        for index in range(number):
            starts[(np.uint64(keys[index]) >> np.uint64(shift)) & mask] += 1
        before = 0
        for digit in range(1 << _DIGIT):
            starts[digit], before = before, before + starts[digit]
        for index in range(number):
            bucket = (np.uint64(keys[index]) >> np.uint64(shift)) & mask
            spare[starts[bucket]] = keys[index]
            if amounts.size:
                spare_amounts[starts[bucket]] = amounts[index]
            starts[bucket] += 1
        for index in range(number):  # slices could raise, and then machine code would need Python
            keys[index] = spare[index]
        if amounts.size:
            for index in range(number):
                amounts[index] = spare_amounts[index]
        shift += _DIGIT


@kernel()
def float_bits_as_integer(weight: float) -> Any:
    """The bits of a float, as a 64-bit integer."""
    return np.array([weight]).view(np.int64)[0]
