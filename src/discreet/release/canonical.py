"""A client's records in canonical form: distinct outcomes in increasing order with their counts, whatever the order they came in.

The sum of floating-point counts depends on their order, so the counts of one outcome are added from the smallest to the
largest: records that arrive in another order, from another engine or another shuffle, have the same form bit for bit, and
with it the same randomness. The form is the list of words that `discreet.release.keyed` hashes, and is read back from there
for the few clients whose draw depends on it.
"""

from typing import Any

import numba
import numpy as np

from discreet.projection.breakpoints import NEGLIGIBLE
from discreet.release.keyed import NARROW, WIDE

OUTSIDE, NOT_A_NUMBER, NEGATIVE, INFINITE, OVERFLOWING = 1, 2, 3, 4, 5  # what can be wrong with a client

_TINY = 16  # longer lists may be counted
_SHORT = 64  # lists up to here are sorted by insertion, longer ones digit by digit
_DIGIT = 8
_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_TOO_WIDE = float(1 << 32)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of six bits are all different
_PLACES = np.zeros(64, dtype=np.uint64)
for _place in range(64):
    _PLACES[((int(_DE_BRUIJN) << _place) & 0xFFFFFFFFFFFFFFFF) >> 58] = _place


@numba.njit(cache=True)
def write_records(
    records: Any,
    start: int,
    stop: int,
    size: int,
    words: Any,
    used: int,
    keys: Any,
    spare: Any,
    seen: Any,
    tallies: Any,
    problem: Any,
) -> int:
    """Write the pairs of records that count once each to words[used:]; how many, or -1 with the place of a bad record.

    `keys` and `spare` are scratch of the list's length, `seen` and `tallies` scratch of zeros from `bit_scratch`.
    """
    number = stop - start
    ordered = True
    last = np.uint32(0)
    largest = np.uint32(0)
    for place in range(number):
        key = records[start + place]
        ordered = ordered and key >= last
        largest = max(largest, key)
        keys[place] = key
        last = key
    if number and np.int64(largest) >= size:
        problem[0], problem[1] = np.argmax(keys[:number] >= size), OUTSIDE
        return -1
    if not ordered:
        if number > _TINY and number >= size >> 6:
            return _count_in_bits(keys, number, size, words, used, seen, tallies)
        if number <= _SHORT:
            _sort_without_branches(keys, number)
        else:
            nothing = np.empty(0)
            _sort(keys, spare, number, size, nothing, nothing)
    distinct = 0
    place = 0
    while place < number:
        first = place
        place += 1
        while place < number and keys[place] == keys[first]:
            place += 1
        words[used + distinct] = (np.uint64(keys[first]) << _HALF) | np.uint64(place - first)
        distinct += 1
    return distinct


@numba.njit(cache=True)
def bit_scratch(size: int, longest: int) -> Any:
    """Room for `_count_in_bits`: one bit and one count for each outcome, if any list is long enough to be worth it."""
    room = size if longest > _TINY and longest >= size >> 6 else 0
    return np.zeros((room >> 6) + 1, dtype=np.uint64), np.zeros(room + 1, dtype=np.uint32)


@numba.njit(cache=True)
def _count_in_bits(keys: Any, number: int, size: int, words: Any, used: int, seen: Any, tallies: Any) -> int:
    """For lists at least a 64th as long as the domain: count each outcome, then read those there are off a row of bits."""
    for place in range(number):
        key = np.uint64(keys[place])
        seen[key >> np.uint64(6)] |= np.uint64(1) << (key & np.uint64(63))
        tallies[key] += np.uint32(1)
    distinct = 0
    for block in range((size + 63) >> 6):
        bits = seen[block]
        seen[block] = np.uint64(0)
        while bits:
            lowest = bits & (~bits + np.uint64(1))
            key = (np.uint64(block) << np.uint64(6)) | _PLACES[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            words[used + distinct] = (key << _HALF) | np.uint64(tallies[key])
            tallies[key] = np.uint32(0)
            distinct += 1
            bits ^= lowest
    return distinct


@numba.njit(cache=True)
def _sort_without_branches(keys: Any, number: int) -> None:
    """Insertion that carries the larger of each pair on: nothing for the processor to guess wrong."""
    for place in range(1, number):
        carried = keys[place]
        for other in range(place):
            met = keys[other]
            keys[other] = min(met, carried)
            carried = max(met, carried)
        keys[place] = carried


@numba.njit(cache=True)
def write_counts(
    records: Any,
    counts: Any,
    start: int,
    stop: int,
    size: int,
    words: Any,
    used: int,
    keys: Any,
    spare: Any,
    weights: Any,
    spare_weights: Any,
    problem: Any,
) -> tuple[int, int]:
    """As `write_records`, for records with counts or weights: (how many pairs, NARROW or WIDE). Zeros are left out."""
    number = 0
    for place in range(start, stop):
        count = counts[place]
        if records[place] >= size or not (count >= 0.0 and count < np.inf):
            problem[0] = place - start
            problem[1] = OUTSIDE if records[place] >= size else INFINITE if count > 0.0 else NEGATIVE
            if count != count:
                problem[1] = NOT_A_NUMBER
            return -1, NARROW
        if count > 0.0:
            keys[number], weights[number] = records[place], count
            number += 1
    _sort(keys, spare, number, size, weights, spare_weights)
    distinct = 0
    form = NARROW
    total = 0.0
    place = 0
    while place < number:
        first = place
        place += 1
        while place < number and keys[place] == keys[first]:
            place += 1
        if place > first + 1:
            weights[first:place].sort()
        added = 0.0
        for each in range(first, place):
            added += weights[each]
        keys[distinct], spare_weights[distinct] = keys[first], added
        if added != np.floor(added) or added >= _TOO_WIDE:
            form = WIDE
        total += added
        distinct += 1
    if total == np.inf:
        problem[0], problem[1] = 0, OVERFLOWING
        return -1, NARROW
    for place in range(distinct):
        if form == NARROW:
            words[used + place] = (np.uint64(keys[place]) << _HALF) | np.uint64(spare_weights[place])
        else:
            words[used + 2 * place] = np.uint64(keys[place])
            words[used + 2 * place + 1] = _bits(spare_weights[place])
    return distinct, form


@numba.njit(cache=True)
def read_law(words: Any, used: int, distinct: int, form: int, keys: Any, masses: Any) -> int:
    """The law count/total that the words hold: outcomes to `keys`, probabilities to `masses`; how many are not negligible."""
    total = 0.0
    for place in range(distinct):
        if form == NARROW:
            pair = words[used + place]
            keys[place], masses[place] = pair >> _HALF, np.float64(pair & _LOWER_HALF)
        else:
            keys[place], masses[place] = words[used + 2 * place], _float(words[used + 2 * place + 1])
        total += masses[place]
    held = 0
    for place in range(distinct):
        mass = masses[place] / total
        if mass > NEGLIGIBLE:
            keys[held], masses[held] = keys[place], mass
            held += 1
    return held


@numba.njit(cache=True)
def _sort(keys: Any, spare: Any, number: int, size: int, weights: Any, spare_weights: Any) -> None:
    """Sort keys, and weights along with them unless there are none."""
    if number <= _SHORT:
        for place in range(1, number):
            key = keys[place]
            weight = weights[place] if weights.size else 0.0
            hole = place
            while hole > 0 and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                if weights.size:
                    weights[hole] = weights[hole - 1]
                hole -= 1
            keys[hole] = key
            if weights.size:
                weights[hole] = weight
        return
    starts = np.empty(1 << _DIGIT, dtype=np.int64)
    mask = np.uint32((1 << _DIGIT) - 1)
    shift = 0
    while (size - 1) >> shift:  # digit by digit, from the least
        starts[:] = 0
        for place in range(number):
            starts[(keys[place] >> np.uint32(shift)) & mask] += 1
        before = 0
        for digit in range(1 << _DIGIT):
            starts[digit], before = before, before + starts[digit]
        for place in range(number):
            digit = (keys[place] >> np.uint32(shift)) & mask
            spare[starts[digit]] = keys[place]
            if weights.size:
                spare_weights[starts[digit]] = weights[place]
            starts[digit] += 1
        keys[:number] = spare[:number]
        if weights.size:
            weights[:number] = spare_weights[:number]
        shift += _DIGIT


@numba.njit(cache=True)
def _bits(value: float) -> Any:
    return np.array([value]).view(np.uint64)[0]


@numba.njit(cache=True)
def _float(bits: Any) -> Any:
    return np.array([bits]).view(np.float64)[0]
