"""The exact draw for clients with few distinct values, on any number of outcomes, over a uniform reference.

`discreet.release._referenced` draws over other references. The distribution, and the outcome of a given integer, are those of
`discreet.release._compiled` on the client's k numbers count/total. All outcomes outside the support are alike, so the walk over outcomes
takes the gap between two held ones in a single step. The cost grows with the number of distinct values and is independent of the domain.

A client without records draws from the reference itself: W_x = floor(2^62/k), and the remainder goes to the first outcomes with room. (It
lies in the box, because L <= 2^62/k <= U.)

**Keyed words.** BLAKE2b [RFC 7693] in numba, for messages of whole 64-bit words under one key.

The key fills the first block of every message, so the state after it is computed once for a run (`keyed_state`). A client of up to fourteen
distinct values then costs a single compression.
"""

import struct
from typing import Any

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from discreet._base.kernels import kernel
from discreet.projection import solve_uniform_compiled
from discreet.release._canonical import bit_scratch, read_law, write_counts, write_records, write_weights
from discreet.release._clients import LONGEST, REFUSED_OVERFLOW, ClientColumns, ReferencePlan, UniformPlan, plan_of
from discreet.release._compiled import _excess
from discreet.release._keyed import (
    DIGEST_WORDS,
    DRAW_PERSON,
    INTEGER_CLIENT,
    NARROW_FORM,
    TEXT_CLIENT,
    WIDE_FORM,
    WORDS,
    RunKey,
)
from discreet.release._lattice import TOTAL
from discreet.release._randomness import BITS
from discreet.release._referenced import (
    IN_EDGES,
    locate_outcome,
    outcome_over_reference,
    places_of_kind,
    prefetch_held,
    search_batch,
)

__all__ = ["ClientColumns", "ReferencePlan", "UniformPlan", "draw", "outcome", "plan_of", "state_of"]

BLOCK = 16  # words

_INITIAL = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_SCHEDULE = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.uintp,  # unsigned, so that no index is tested for being negative
)


@numba.njit(inline="always")
def _rotate_right(x: Any, right: int) -> Any:
    return (x >> np.uint64(right)) | (x << np.uint64(64 - right))


@numba.njit(inline="always")
def _mix_words(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    a = a + b + x
    d = _rotate_right(d ^ a, 32)
    c = c + d
    b = _rotate_right(b ^ c, 24)
    a = a + b + y
    d = _rotate_right(d ^ a, 16)
    c = c + d
    b = _rotate_right(b ^ c, 63)
    return a, b, c, d


@kernel()
def compress(state: Any, words: Any, first: Any, so_far: Any, last: bool) -> None:
    """The function F of the RFC: absorb the block from words[first] on into the state. `so_far` counts bytes, this block's included."""
    v0, v1, v2, v3, v4, v5, v6, v7 = (
        state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7],
    )  # fmt: skip
    v8, v9, v10, v11 = _INITIAL[0], _INITIAL[1], _INITIAL[2], _INITIAL[3]
    v12, v13, v15 = _INITIAL[4] ^ so_far, _INITIAL[5], _INITIAL[7]
    v14 = ~_INITIAL[6] if last else _INITIAL[6]
    for turn in range(12):
        s = _SCHEDULE[turn]
        v0, v4, v8, v12 = _mix_words(v0, v4, v8, v12, words[first + s[0]], words[first + s[1]])
        v1, v5, v9, v13 = _mix_words(v1, v5, v9, v13, words[first + s[2]], words[first + s[3]])
        v2, v6, v10, v14 = _mix_words(v2, v6, v10, v14, words[first + s[4]], words[first + s[5]])
        v3, v7, v11, v15 = _mix_words(v3, v7, v11, v15, words[first + s[6]], words[first + s[7]])
        v0, v5, v10, v15 = _mix_words(v0, v5, v10, v15, words[first + s[8]], words[first + s[9]])
        v1, v6, v11, v12 = _mix_words(v1, v6, v11, v12, words[first + s[10]], words[first + s[11]])
        v2, v7, v8, v13 = _mix_words(v2, v7, v8, v13, words[first + s[12]], words[first + s[13]])
        v3, v4, v9, v14 = _mix_words(v3, v4, v9, v14, words[first + s[14]], words[first + s[15]])
    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15


@kernel()
def finish(state: Any, words: Any, number: int) -> None:
    """Absorb the first `number` >= 1 words into a keyed state. `words` has room up to the end of the last block."""
    blocks = (number + BLOCK - 1) // BLOCK
    for place in range(number, BLOCK * blocks):
        words[place] = 0
    for block in range(blocks - 1):
        compress(state, words, np.uintp(BLOCK * block), np.uint64(8 * BLOCK * (block + 2)), False)
    compress(state, words, np.uintp(BLOCK * (blocks - 1)), np.uint64(8 * (BLOCK + number)), True)


def keyed_state(key: bytes, person: bytes, digest_size: int) -> NDArray[np.uint64]:
    """The state after the key's block, ready for a non-empty message."""
    parameters = struct.pack("<BBBB28x16s16s", digest_size, len(key), 1, 1, b"", person)
    state: NDArray[np.uint64] = _INITIAL ^ np.frombuffer(parameters, dtype="<u8")
    block = np.frombuffer(key.ljust(8 * BLOCK, b"\0"), dtype="<u8").copy()
    compress(state, block, np.uintp(0), np.uint64(8 * BLOCK), False)
    return state


_SPARE_BITS = np.uint64(64 - BITS)
_TOTAL = TOTAL
_MINUS, _ZERO, _NINE = np.uint8(ord("-")), np.uint8(ord("0")), np.uint8(ord("9"))
_LONGEST_INTEGER, _MOST_DIGITS = 20, 19  # characters
_BATCH = 32  # clients whose look-ups in large tables are batched
_ROOM = 1024  # for their outcomes
_LATE = -1  # in place of an outcome: the draw needs the client's law
_LEAST = np.uint64(1 << 63)  # the absolute value of the least 64-bit integer


@kernel()
def _locate_in_gaps(rest: Any, base: Any, own: Any, outcomes: Any, size: Any) -> Any:
    """The outcome of `rest` if outcomes[i] is own[i] units long and every other outcome `base` units, in order.

    Returns (outcome, 0), or (-1, the remaining part of `rest` past the end).
    """
    nxt: Any = 0
    for place in range(outcomes.size + 1):
        held: Any = np.int64(outcomes[place]) if place < outcomes.size else size
        if base > 0:
            steps = rest // base
            if steps < held - nxt:
                return nxt + steps, 0
            rest -= base * (held - nxt)
        if place < outcomes.size:
            if rest < own[place]:
                return held, 0
            rest -= own[place]
            nxt = held + 1
    return -1, rest


@kernel()
def _outcome_over_uniform(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`own` is scratch)."""
    size, floor, ceiling, lower, upper, projecting, slope, lift = plan
    shared = size * lower
    if uniform < shared:
        return uniform // lower
    if outcomes.size == 0:
        base = _TOTAL // size - lower
    else:
        if projecting:
            slope, lift = solve_uniform_compiled(masses, size - masses.size, floor, ceiling)
        steep = slope * float(_TOTAL)
        base = _excess(np.zeros(1), 0, steep, lift, floor, lower, upper)
        for place in range(masses.size):
            own[place] = _excess(masses, place, steep, lift, floor, lower, upper)
    found, rest = _locate_in_gaps(uniform - shared, base, own, outcomes, size)
    if found >= 0:
        return found
    for place in range(outcomes.size):
        own[place] = upper - lower - own[place]
    return _locate_in_gaps(rest, upper - lower - base, own, outcomes, size)[0]


def _outcome_by_plan(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The drawing function for this kind of plan."""
    raise TypeError("_of_plan is called from compiled code")


@overload(_outcome_by_plan)
def _outcome_by_kind(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    def over_uniform(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
        return _outcome_over_uniform(plan, outcomes, masses, own, uniform)

    def over_reference(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
        return outcome_over_reference(plan, outcomes, masses, own, uniform)

    return over_uniform if plan.instance_class is UniformPlan else over_reference


@kernel()
def outcome(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`own` is scratch)."""
    return _outcome_by_plan(plan, outcomes, masses, own, uniform)


def _shared_outcome(plan: Any, uniform: Any) -> Any:
    """(the outcome of an integer of the shared part or the sum to be searched, the value to be found), or (_LATE, 0)."""
    raise TypeError("_common is called from compiled code")


@overload(_shared_outcome)
def _shared_outcome_by_kind(plan: Any, uniform: Any) -> Any:
    def over_uniform(plan: Any, uniform: Any) -> Any:
        return (uniform // plan.lower if uniform < plan.size * plan.lower else np.int64(_LATE)), np.int64(0)

    def over_reference(plan: Any, uniform: Any) -> Any:
        if uniform >= plan.edges[plan.size]:
            return np.int64(_LATE), np.int64(0)
        return np.int64(IN_EDGES), uniform

    return over_uniform if plan.instance_class is UniformPlan else over_reference


def _prefetch_held(plan: Any, outcomes: Any) -> Any:
    """Prefetch the table rows of held outcomes, if there is a table."""
    raise TypeError("_bring is called from compiled code")


@overload(_prefetch_held)
def _prefetch_held_by_kind(plan: Any, outcomes: Any) -> Any:
    def over_uniform(plan: Any, outcomes: Any) -> None:
        return

    def over_reference(plan: Any, outcomes: Any) -> None:
        prefetch_held(plan, outcomes)

    return over_uniform if plan.instance_class is UniformPlan else over_reference


def _outcome_above_shared(plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any) -> Any:
    """(the outcome beyond the shared part or the sum to be searched, the value to be found)."""
    raise TypeError("_above is called from compiled code")


@overload(_outcome_above_shared)
def _outcome_above_shared_by_kind(
    plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any
) -> Any:
    def over_uniform(plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any) -> Any:
        return np.int64(_outcome_over_uniform(plan, outcomes, masses, own, uniform)), np.int64(0)

    def over_reference(plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any) -> Any:
        return locate_outcome(plan, outcomes, masses, own, low, high, uniform)

    return over_uniform if plan.instance_class is UniformPlan else over_reference


def _search_batch(plan: Any, found: Any, wanted: Any, numbers: Any) -> Any:
    """Find the missing outcomes."""
    raise TypeError("_settle is called from compiled code")


@overload(_search_batch)
def _search_batch_by_kind(plan: Any, found: Any, wanted: Any, numbers: Any) -> Any:
    def over_uniform(plan: Any, found: Any, wanted: Any, numbers: Any) -> None:
        return

    def over_reference(plan: Any, found: Any, wanted: Any, numbers: Any) -> None:
        search_batch(plan, found, wanted, numbers)

    return over_uniform if plan.instance_class is UniformPlan else over_reference


@kernel()
def _as_integer(text: Any, start: int, stop: int) -> Any:
    """(whether the text is the canonical spelling of a 64-bit integer, that integer in two's complement): `keyed.as_integer`."""
    none = False, np.uint64(0)
    if stop == start or stop - start > _LONGEST_INTEGER:
        return none
    negative = text[start] == _MINUS
    first = start + 1 if negative else start
    if first == stop or stop - first > _MOST_DIGITS or (text[first] == _ZERO and (negative or stop - first > 1)):
        return none
    value = np.uint64(0)
    for place in range(first, stop):
        if text[place] < _ZERO or text[place] > _NINE:
            return none
        value = value * np.uint64(10) + np.uint64(text[place] - _ZERO)
    if value > (_LEAST if negative else _LEAST - np.uint64(1)):
        return none
    return True, (~value + np.uint64(1) if negative else value)


@kernel()
def _write_client(integers: Any, text_ends: Any, text: Any, row: int, words: Any) -> int:
    """Write header (of the narrow form) and client to `words`; returns the number of words."""
    if integers.size:
        words[0] = np.uint64(INTEGER_CLIENT + 256 * NARROW_FORM)
        words[1] = np.uint64(integers[row])
        return 2
    start, stop = text_ends[row], text_ends[row + 1]
    whole, value = _as_integer(text, start, stop)
    if whole:
        words[0] = np.uint64(INTEGER_CLIENT + 256 * NARROW_FORM)
        words[1] = value
        return 2
    words[0] = np.uint64(TEXT_CLIENT + 256 * NARROW_FORM + 65536 * (stop - start))
    number = 1
    for first in range(start, stop, 8):
        word = np.uint64(0)
        for place in range(min(8, stop - first)):
            word |= np.uint64(text[first + place]) << np.uint64(8 * place)
        words[number] = word
        number += 1
    return number


@kernel()
def _draw_batch(
    plan: Any, drawn: Any, wanted: Any, ends: Any, keys: Any, masses: Any, own: Any, low: Any, high: Any, numbers: Any
) -> None:
    """Draw for the clients of a batch whose integers lie beyond the shared part; their data were prefetched meanwhile."""
    for number in range(places_of_kind(_LATE, drawn, numbers)):
        place = numbers[number]
        start, stop = (ends[place - 1] if place else 0), ends[place]
        held = stop - start
        drawn[place], wanted[place] = _outcome_above_shared(
            plan, keys[start:stop], masses[start:stop], own[:held], low[:held], high[:held], wanted[place]
        )
    _search_batch(plan, drawn, wanted, numbers)


@kernel(nogil=True)
def draw(
    plan: Any,
    clients: Any,
    keyed: Any,
    first: int,
    last: int,
    drawn: Any,
    order: Any,
    within: Any,
    digest: Any,
    problem: Any,
) -> int:
    """Fill `drawn[first:last]`, and `order` and `within` unless they are empty; add to `digest`. Returns the first bad row, or -1.

    `problem` then has the place of the bad record of the row, and the reason. The GIL is released: give each thread its own rows.
    """
    size = plan.size
    integers, text_ends, text, ends, records, counts, weights = clients
    longest, longest_name = 0, 1
    for row in range(first, last):
        longest = max(longest, ends[row + 1] - ends[row])
        if longest > LONGEST:
            problem[0], problem[1] = 0, REFUSED_OVERFLOW
            return row
        if not integers.size:
            longest_name = max(longest_name, (text_ends[row + 1] - text_ends[row] + 7) // 8)
    keys, spare = np.empty(longest, dtype=np.uint32), np.empty(longest, dtype=np.uint32)
    own, spare_own = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    masses = np.empty(longest)
    words = np.empty(1 + longest_name + 2 * longest + BLOCK, dtype=np.uint64)
    state = np.empty(8, dtype=np.uint64)
    seen, tallies = bit_scratch(size, 0 if counts.size or weights.size else longest)
    wanted, late_ends = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH, dtype=np.int64)
    late_keys, late_masses = np.empty(longest + _ROOM, dtype=np.uint32), np.empty(longest + _ROOM)
    numbers, low, high = np.empty(_BATCH, dtype=np.int64), np.empty(longest), np.empty(longest)
    begun, filled = first, 0
    for row in range(first, last):
        if row - begun == _BATCH or filled + ends[row + 1] - ends[row] > late_keys.size:
            _draw_batch(plan, drawn[begun:row], wanted, late_ends, late_keys, late_masses, own, low, high, numbers)
            begun, filled = row, 0
        used = _write_client(integers, text_ends, text, row, words)
        form = NARROW_FORM
        if counts.size:
            number, form = write_counts(
                records, counts, ends[row], ends[row + 1], size,
                words, used, keys, spare, own, spare_own, problem,
            )  # fmt: skip
        elif weights.size:
            number, form = write_weights(
                records, weights, ends[row], ends[row + 1], size,
                words, used, keys, spare, own, spare_own, masses, problem,
            )  # fmt: skip
        else:
            number = write_records(
                records, ends[row], ends[row + 1], size, words, used, keys, spare, seen, tallies, problem
            )
        if number < 0:
            return row
        words[0] += np.uint64(256 * form)
        for place in range(8):
            state[place] = keyed[place]
        finish(state, words, used + number * (2 if form == WIDE_FORM else 1))
        uniform = np.int64(state[0] >> _SPARE_BITS)
        drawn[row], wanted[row - begun] = _shared_outcome(plan, uniform)
        if drawn[row] == _LATE:
            number = read_law(words, used, number, form, late_keys[filled:], late_masses[filled:])
            _prefetch_held(plan, late_keys[filled : filled + number])
            wanted[row - begun] = uniform
            filled += number
        late_ends[row - begun] = filled
        if order.size:
            order[row] = state[1]
        if within.size:
            within[row] = np.float64(state[2] >> np.uint64(11)) * 2.0**-53
        for place in range(DIGEST_WORDS):
            digest[place] += state[WORDS - DIGEST_WORDS + place]
    _draw_batch(plan, drawn[begun:last], wanted, late_ends, late_keys, late_masses, own, low, high, numbers)
    return -1


def state_of(key: RunKey) -> NDArray[np.uint64]:
    """The keyed state from which every client of a run starts."""
    state = keyed_state(key.value, DRAW_PERSON, 8 * WORDS)
    state.setflags(write=False)
    return state
