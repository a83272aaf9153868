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
    parts = (
        part_of_each_text_client(text_ends, text, bits, seed)
        if text_ends.size
        else part_of_each_integer_client(integers, bits, seed)
    )
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
    ends, client_outcomes = values_by_client(numbers, clients.size, outcomes, lengths)
    if counts.size:
        _, counts = values_by_client(numbers, clients.size, counts, lengths)
    return clients, ends, client_outcomes, counts


@kernel()
def hash_number(value: Any, seed: Any) -> Any:
    """A 64-bit hash of a 64-bit number."""
    state = (value ^ seed) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return state ^ (state >> np.uint64(31))


@kernel()
def hash_text(text: Any, start: int, stop: int, seed: Any) -> Any:
    """A 64-bit hash of text[start:stop]."""
    state = hash_number(np.uint64(stop - start), seed)
    for first in range(start, stop, 8):
        word = np.uint64(0)
        for index in range(first, min(first + 8, stop)):
            word = (word << np.uint64(8)) | np.uint64(text[index])
        state = hash_number(word, state)
    return state


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
    for index in range(1, numbers.size):
        numbers[index] += numbers[index - 1]


@kernel(nogil=True)
def part_of_each_integer_client(clients: Any, bits: int, seed: Any) -> Any:
    """The part of each client, one of 2^bits."""
    parts = np.empty(clients.size, dtype=np.uint16)
    for row in range(clients.size):
        parts[row] = hash_number(np.uint64(clients[row]), seed) >> np.uint64(64 - bits)
    return parts


@kernel(nogil=True)
def part_of_each_text_client(ends: Any, text: Any, bits: int, seed: Any) -> Any:
    """As `part_of_each_integer_client`, for texts."""
    parts = np.empty(ends.size - 1, dtype=np.uint16)
    for row in range(ends.size - 1):
        parts[row] = hash_text(text, ends[row], ends[row + 1], seed) >> np.uint64(64 - bits)
    return parts


@kernel(nogil=True)
def arrange_values_by_part(parts: Any, starts: Any, values: Any) -> Any:
    """The values in order of part, without those to leave out."""
    cursors = starts.copy()
    by_part = np.empty(starts[-2], dtype=values.dtype)
    for row in range(parts.size):
        position = cursors[parts[row]]
        if position < by_part.size:
            by_part[position] = values[row]
            cursors[parts[row]] = position + 1
    return by_part


@kernel(nogil=True)
def arrange_texts_by_part(parts: Any, starts: Any, ends: Any, text: Any) -> Any:
    """As `arrange_values_by_part`, for texts: their ends and their bytes."""
    lengths = arrange_values_by_part(parts, starts, ends[1:] - ends[:-1])
    new_ends = np.zeros(lengths.size + 1, dtype=np.int64)
    for position in range(lengths.size):  # a slice could raise, and then machine code would need Python
        new_ends[position + 1] = lengths[position]
    _replace_by_running_sums(new_ends)
    by_part = np.empty(new_ends[-1], dtype=np.uint8)
    cursors = starts.copy()
    for row in range(parts.size):
        position = cursors[parts[row]]
        if position < lengths.size:
            cursors[parts[row]] = position + 1
            start, begin = ends[row], new_ends[position]
            for offset in range(ends[row + 1] - start):
                by_part[begin + offset] = text[start + offset]
    return new_ends, by_part


@kernel()
def _double_hash_table(slots: Any, keys_are_hashes: bool, seed: Any) -> Any:
    """The table `slots` of pairs (key, 1 + number) at twice its size."""
    new_slots = np.zeros(2 * slots.size, dtype=np.int64)
    mask = np.uint64(slots.size - 1)
    for pair in range(0, slots.size, 2):
        if slots[pair + 1]:
            key = np.uint64(slots[pair])
            slot = (key if keys_are_hashes else hash_number(key, seed)) & mask
            while new_slots[np.uint64(2) * slot + _ONE]:
                slot = (slot + _ONE) & mask
            new_slots[np.uint64(2) * slot] = slots[pair]
            new_slots[np.uint64(2) * slot + _ONE] = slots[pair + 1]
    return new_slots


@kernel(nogil=True)
def assign_numbers_to_integer_clients(clients: Any, seed: Any, hint: int) -> Any:
    """(the distinct clients, the number of each row's client), in order of first appearance. `hint`: their approximate number."""
    slots = np.zeros(2 * _hash_table_size(hint), dtype=np.int64)
    mask = np.uint64(slots.size // 2 - 1)
    distinct = np.empty(slots.size // 4, dtype=np.int64)
    numbers = np.empty(clients.size, dtype=np.uint32)
    number = 0
    for row in range(clients.size):
        client = clients[row]
        slot = hash_number(np.uint64(client), seed) & mask
        while True:
            entry = slots[np.uint64(2) * slot + _ONE]
            if entry == 0:
                slots[np.uint64(2) * slot] = client
                slots[np.uint64(2) * slot + _ONE] = number + 1
                distinct[number] = client
                numbers[row] = number
                number += 1
                if number == distinct.size:
                    slots = _double_hash_table(slots, False, seed)
                    mask = np.uint64(slots.size // 2 - 1)
                    distinct = np.concatenate((distinct, np.empty_like(distinct)))
                break
            if slots[np.uint64(2) * slot] == client:
                numbers[row] = entry - 1
                break
            slot = (slot + _ONE) & mask
    return distinct[:number].copy(), numbers


@kernel(nogil=True)
def assign_numbers_to_text_clients(ends: Any, text: Any, seed: Any, hint: int) -> Any:
    """(the first row of each distinct client, the number of each row's client), in order of first appearance."""
    slots = np.zeros(2 * _hash_table_size(hint), dtype=np.int64)
    mask = np.uint64(slots.size // 2 - 1)
    first_rows = np.empty(slots.size // 4, dtype=np.int64)
    numbers = np.empty(ends.size - 1, dtype=np.uint32)
    number = 0
    for row in range(ends.size - 1):
        hash_value = hash_text(text, ends[row], ends[row + 1], seed)
        slot = hash_value & mask
        while True:
            entry = slots[np.uint64(2) * slot + _ONE]
            if entry == 0:
                slots[np.uint64(2) * slot] = np.int64(hash_value)
                slots[np.uint64(2) * slot + _ONE] = number + 1
                first_rows[number] = row
                numbers[row] = number
                number += 1
                if number == first_rows.size:
                    slots = _double_hash_table(slots, True, seed)
                    mask = np.uint64(slots.size // 2 - 1)
                    first_rows = np.concatenate((first_rows, np.empty_like(first_rows)))
                break
            if np.uint64(slots[np.uint64(2) * slot]) == hash_value and _are_texts_equal(
                ends, text, row, first_rows[entry - 1]
            ):
                numbers[row] = entry - 1
                break
            slot = (slot + _ONE) & mask
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
        previous, start, stop = ends[row - 1], ends[row], ends[row + 1]
        offset = 0
        while previous + offset < start and start + offset < stop and text[previous + offset] == text[start + offset]:
            offset += 1
        if start + offset == stop or (previous + offset < start and text[previous + offset] > text[start + offset]):
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
    by_client = np.empty(values.size, dtype=values.dtype)
    position = 0
    for row in range(numbers.size):
        number = numbers[row]
        for _ in range(lengths[row] if lengths.size else 1):
            by_client[cursors[number]] = values[position]
            cursors[number] += 1
            position += 1
    return ends, by_client


@kernel(nogil=True)
def remove_marks_of_listed_clients(ends: Any, outcomes: Any, counts: Any, weights: Any) -> Any:
    """(ends, outcomes, counts, weights, whether each client is listed): the lists without the marks LISTED."""
    new_ends = np.zeros(ends.size, dtype=np.int64)
    is_listed = np.zeros(ends.size - 1, dtype=np.bool_)
    kept_outcomes, kept_counts, kept_weights = np.empty_like(outcomes), np.empty_like(counts), np.empty_like(weights)
    count, mark = 0, np.uint64(MARK_LISTED) | (WIDE_MARKS if outcomes.itemsize == 8 else np.uint64(0))
    for client in range(ends.size - 1):
        for index in range(ends[client], ends[client + 1]):
            if np.uint64(outcomes[index]) == mark:
                is_listed[client] = True
            else:
                kept_outcomes[count] = outcomes[index]
                if counts.size:
                    kept_counts[count] = counts[index]
                if weights.size:
                    kept_weights[count] = weights[index]
                count += 1
        new_ends[client + 1] = count
    return (
        new_ends,
        kept_outcomes[:count].copy(),
        kept_counts[: count if counts.size else 0].copy(),
        kept_weights[: count if weights.size else 0].copy(),
        is_listed,
    )
