"""Grouping of records by client, in numba: first into parts by a hash of the client, then exactly within a part.

A part is small enough for the processor's cache. Parts are independent (one thread each), and a part is also the unit that goes to disk
when memory runs short. Two clients are the same if and only if their identifiers are equal, byte for byte: the hash decides where to look,
never whether they match. It is seeded anew for each run, so nobody can choose identifiers that collide.
"""

from typing import Any

import numpy as np

from discreet._base.kernels import kernel
from discreet.domain import MARK_LISTED, MARK_OUTSIDE, WIDE_MARKS

_ONE = np.uint64(1)


def records_by_part(integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, bits: int, seed: Any) -> Any:
    """(start of each of 2^bits parts, and the same five arrays in order of part); rows marked MISSING or OUTSIDE are left out."""
    parts = parts_of_texts(text_ends, text, bits, seed) if text_ends.size else parts_of_integers(integers, bits, seed)
    starts = start_row_of_each_part(parts, 1 << bits, outcomes)
    if text_ends.size:
        text_ends, text = arrange_texts_by_part(parts, starts, text_ends, text)
    else:
        integers = arrange_values_by_part(parts, starts, integers)
    if counts.size:
        counts = arrange_values_by_part(parts, starts, counts)
    return starts, integers, text_ends, text, arrange_values_by_part(parts, starts, outcomes), counts


def records_by_client(
    integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, lengths: Any, seed: Any, hint: int
) -> Any:
    """(clients: the integers, or the first row of each text; ends, outcomes and counts of each client's list).

    Clients are in order of first appearance. `lengths`, unless empty: the number of outcomes of each row. `hint`: the approximate number of
    clients.
    """
    if text_ends.size:
        clients, numbers = assign_numbers_to_text_clients(text_ends, text, seed, hint)
    else:
        clients, numbers = assign_numbers_to_integer_clients(integers, seed, hint)
    ends, gathered = values_by_client(numbers, clients.size, outcomes, lengths)
    if counts.size:
        _, counts = values_by_client(numbers, clients.size, counts, lengths)
    return clients, ends, gathered, counts


@kernel()
def hash_number(value: Any, seed: Any) -> Any:
    """A 64-bit hash of a 64-bit number."""
    mixed = (value ^ seed) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(31))


@kernel()
def hash_text(text: Any, start: int, stop: int, seed: Any) -> Any:
    """A 64-bit hash of text[start:stop]."""
    mixed = hash_number(np.uint64(stop - start), seed)
    for first in range(start, stop, 8):
        word = np.uint64(0)
        for place in range(first, min(first + 8, stop)):
            word = (word << np.uint64(8)) | np.uint64(text[place])
        mixed = hash_number(word, mixed)
    return mixed


@kernel(nogil=True)
def start_row_of_each_part(parts: Any, number: int, outcomes: Any) -> Any:
    """The start of each of `number` parts once rows are in order of part; rows to leave out have part `number`."""
    starts = np.zeros(number + 2, dtype=np.int64)
    first_mark = np.uint64(MARK_OUTSIDE) | (WIDE_MARKS if outcomes.itemsize == 8 else np.uint64(0))
    for row in range(parts.size):
        if np.uint64(outcomes[row]) >= first_mark:
            parts[row] = number
        starts[np.int64(parts[row]) + 1] += 1
    _replace_by_running_sums(starts)
    return starts


@kernel()
def _replace_by_running_sums(numbers: Any) -> None:
    """The cumulative sums. (numba's own `cumsum` would import scipy's linear algebra.)"""
    for place in range(1, numbers.size):
        numbers[place] += numbers[place - 1]


@kernel(nogil=True)
def parts_of_integers(clients: Any, bits: int, seed: Any) -> Any:
    """The part of each client, one of 2^bits."""
    parts = np.empty(clients.size, dtype=np.uint16)
    for row in range(clients.size):
        parts[row] = hash_number(np.uint64(clients[row]), seed) >> np.uint64(64 - bits)
    return parts


@kernel(nogil=True)
def parts_of_texts(ends: Any, text: Any, bits: int, seed: Any) -> Any:
    """As `parts_of_integers`, for texts."""
    parts = np.empty(ends.size - 1, dtype=np.uint16)
    for row in range(ends.size - 1):
        parts[row] = hash_text(text, ends[row], ends[row + 1], seed) >> np.uint64(64 - bits)
    return parts


@kernel(nogil=True)
def arrange_values_by_part(parts: Any, starts: Any, values: Any) -> Any:
    """The values in order of part, without those to leave out."""
    cursors = starts.copy()
    ordered = np.empty(starts[-2], dtype=values.dtype)
    for row in range(parts.size):
        place = cursors[parts[row]]
        if place < ordered.size:
            ordered[place] = values[row]
            cursors[parts[row]] = place + 1
    return ordered


@kernel(nogil=True)
def arrange_texts_by_part(parts: Any, starts: Any, ends: Any, text: Any) -> Any:
    """As `arrange_values_by_part`, for texts: their ends and their bytes."""
    lengths = arrange_values_by_part(parts, starts, ends[1:] - ends[:-1])
    new_ends = np.zeros(lengths.size + 1, dtype=np.int64)
    for place in range(lengths.size):  # a slice could raise, and then machine code would need Python
        new_ends[place + 1] = lengths[place]
    _replace_by_running_sums(new_ends)
    ordered = np.empty(new_ends[-1], dtype=np.uint8)
    cursors = starts.copy()
    for row in range(parts.size):
        place = cursors[parts[row]]
        if place < lengths.size:
            cursors[parts[row]] = place + 1
            start, begin = ends[row], new_ends[place]
            for offset in range(ends[row + 1] - start):
                ordered[begin + offset] = text[start + offset]
    return new_ends, ordered


@kernel()
def _double_hash_table(slots: Any, keys_are_hashes: bool, seed: Any) -> Any:
    """The table `slots` of pairs (key, 1 + number) at twice its size."""
    larger = np.zeros(2 * slots.size, dtype=np.int64)
    mask = np.uint64(slots.size - 1)
    for pair in range(0, slots.size, 2):
        if slots[pair + 1]:
            key = np.uint64(slots[pair])
            place = (key if keys_are_hashes else hash_number(key, seed)) & mask
            while larger[np.uint64(2) * place + _ONE]:
                place = (place + _ONE) & mask
            larger[np.uint64(2) * place] = slots[pair]
            larger[np.uint64(2) * place + _ONE] = slots[pair + 1]
    return larger


@kernel(nogil=True)
def assign_numbers_to_integer_clients(clients: Any, seed: Any, hint: int) -> Any:
    """(the distinct clients, the number of each row's client), in order of first appearance. `hint`: their approximate number."""
    slots = np.zeros(2 * _hash_table_size(hint), dtype=np.int64)
    mask = np.uint64(slots.size // 2 - 1)
    known = np.empty(slots.size // 4, dtype=np.int64)
    numbers = np.empty(clients.size, dtype=np.uint32)
    number = 0
    for row in range(clients.size):
        client = clients[row]
        place = hash_number(np.uint64(client), seed) & mask
        while True:
            found = slots[np.uint64(2) * place + _ONE]
            if found == 0:
                slots[np.uint64(2) * place] = client
                slots[np.uint64(2) * place + _ONE] = number + 1
                known[number] = client
                numbers[row] = number
                number += 1
                if number == known.size:
                    slots = _double_hash_table(slots, False, seed)
                    mask = np.uint64(slots.size // 2 - 1)
                    known = np.concatenate((known, np.empty_like(known)))
                break
            if slots[np.uint64(2) * place] == client:
                numbers[row] = found - 1
                break
            place = (place + _ONE) & mask
    return known[:number].copy(), numbers


@kernel(nogil=True)
def assign_numbers_to_text_clients(ends: Any, text: Any, seed: Any, hint: int) -> Any:
    """(the first row of each distinct client, the number of each row's client), in order of first appearance."""
    slots = np.zeros(2 * _hash_table_size(hint), dtype=np.int64)
    mask = np.uint64(slots.size // 2 - 1)
    first_rows = np.empty(slots.size // 4, dtype=np.int64)
    numbers = np.empty(ends.size - 1, dtype=np.uint32)
    number = 0
    for row in range(ends.size - 1):
        hashed = hash_text(text, ends[row], ends[row + 1], seed)
        place = hashed & mask
        while True:
            found = slots[np.uint64(2) * place + _ONE]
            if found == 0:
                slots[np.uint64(2) * place] = np.int64(hashed)
                slots[np.uint64(2) * place + _ONE] = number + 1
                first_rows[number] = row
                numbers[row] = number
                number += 1
                if number == first_rows.size:
                    slots = _double_hash_table(slots, True, seed)
                    mask = np.uint64(slots.size // 2 - 1)
                    first_rows = np.concatenate((first_rows, np.empty_like(first_rows)))
                break
            if np.uint64(slots[np.uint64(2) * place]) == hashed and _are_texts_equal(
                ends, text, row, first_rows[found - 1]
            ):
                numbers[row] = found - 1
                break
            place = (place + _ONE) & mask
    return first_rows[:number].copy(), numbers


@kernel()
def _hash_table_size(hint: int) -> int:
    size = 64
    while size < 4 * hint:
        size *= 2
    return size


@kernel()
def _are_texts_equal(ends: Any, text: Any, row: int, other: int) -> bool:
    start, begin = ends[row], ends[other]
    length = ends[row + 1] - start
    if ends[other + 1] - begin != length:
        return False
    offset = 0
    while offset < length and text[start + offset] == text[begin + offset]:
        offset += 1
    return bool(offset == length)


@kernel(nogil=True)
def are_integers_increasing(clients: Any) -> bool:
    """Whether the integers are strictly increasing (so that none is repeated)."""
    increasing = True
    for row in range(1, clients.size):
        increasing &= clients[row - 1] < clients[row]
    return increasing


@kernel(nogil=True)
def are_texts_increasing(ends: Any, text: Any) -> bool:
    """As `are_integers_increasing`, in order of bytes."""
    for row in range(1, ends.size - 1):
        before, start, stop = ends[row - 1], ends[row], ends[row + 1]
        offset = 0
        while before + offset < start and start + offset < stop and text[before + offset] == text[start + offset]:
            offset += 1
        if start + offset == stop or (before + offset < start and text[before + offset] > text[start + offset]):
            return False
    return True


@kernel(nogil=True)
def values_by_client(numbers: Any, clients: int, values: Any, lengths: Any) -> Any:
    """(ends, values in order of client): each client's values. `lengths`, unless empty: the number of values of each row."""
    ends = np.zeros(clients + 1, dtype=np.int64)
    for row in range(numbers.size):
        ends[np.int64(numbers[row]) + 1] += lengths[row] if lengths.size else 1
    _replace_by_running_sums(ends)
    cursors = ends[:-1].copy()
    gathered = np.empty(values.size, dtype=values.dtype)
    place = 0
    for row in range(numbers.size):
        number = numbers[row]
        for _ in range(lengths[row] if lengths.size else 1):
            gathered[cursors[number]] = values[place]
            cursors[number] += 1
            place += 1
    return ends, gathered


@kernel(nogil=True)
def remove_marks_of_listed_clients(ends: Any, outcomes: Any, counts: Any, weights: Any) -> Any:
    """(ends, outcomes, counts, weights, whether each client is listed): the lists without the marks LISTED."""
    new_ends = np.zeros(ends.size, dtype=np.int64)
    listed = np.zeros(ends.size - 1, dtype=np.bool_)
    kept_outcomes, kept_counts, kept_weights = np.empty_like(outcomes), np.empty_like(counts), np.empty_like(weights)
    kept, mark = 0, np.uint64(MARK_LISTED) | (WIDE_MARKS if outcomes.itemsize == 8 else np.uint64(0))
    for client in range(ends.size - 1):
        for place in range(ends[client], ends[client + 1]):
            if np.uint64(outcomes[place]) == mark:
                listed[client] = True
            else:
                kept_outcomes[kept] = outcomes[place]
                if counts.size:
                    kept_counts[kept] = counts[place]
                if weights.size:
                    kept_weights[kept] = weights[place]
                kept += 1
        new_ends[client + 1] = kept
    return (
        new_ends,
        kept_outcomes[:kept].copy(),
        kept_counts[: kept if counts.size else 0].copy(),
        kept_weights[: kept if weights.size else 0].copy(),
        listed,
    )
