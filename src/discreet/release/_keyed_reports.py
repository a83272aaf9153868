"""Keyed words and reports in numba: BLAKE2b, the report of a client from its law and its key, and counts of reports.

BLAKE2b [RFC 7693] is for messages of whole 64-bit words under one key. The key fills the first block of every message, so the state after it
is computed once for a run (`keyed_hash_state`). A client of up to fourteen distinct values then costs a single compression.

The families of blocks, and what a report says of its block, are those of `discreet.mechanisms._reports._blocks`, number for number. All
families share one type of plan, so that one compiled function draws from each.

Sums cannot overflow: ranks and binomial coefficients are below 2^62. For t digits in base q with q^(t + 1) <= 2^62, the inner product of two
vectors is at most t (q - 1)^2 before it is reduced. That is below 2^62 for t = 1, and below t 2^(124/(t + 1)) < 2^44 for t >= 2.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import kernel
from discreet.release._client_draws import AFFINE_BLOCKS, MASKED_BLOCKS, RANKED_BLOCKS
from discreet.release._lattice import TOTAL
from discreet.release._randomness import BITS, WIDE_FORM, WORDS

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


@kernel(inline="always")
def _rotate_right(x: Any, right: int) -> Any:
    return (x >> np.uint64(right)) | (x << np.uint64(64 - right))


@kernel(inline="always")
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
def compress_block(state: Any, words: Any, first: Any, so_far: Any, last: bool) -> None:
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
def absorb_message(state: Any, words: Any, number: int) -> None:
    """Absorb the first `number` >= 1 words into a keyed state. `words` has room up to the end of the last block."""
    blocks = (number + BLOCK - 1) // BLOCK
    for position in range(number, BLOCK * blocks):
        words[position] = 0
    for block in range(blocks - 1):
        compress_block(state, words, np.uintp(BLOCK * block), np.uint64(8 * BLOCK * (block + 2)), False)
    compress_block(state, words, np.uintp(BLOCK * (blocks - 1)), np.uint64(8 * (BLOCK + number)), True)


def keyed_hash_state(key: bytes, person: bytes, digest_size: int) -> NDArray[np.uint64]:
    """The state after the key's block, ready for a non-empty message."""
    parameters = struct.pack("<BBBB28x16s16s", digest_size, len(key), 1, 1, b"", person)
    state: NDArray[np.uint64] = _INITIAL ^ np.frombuffer(parameters, dtype="<u8")
    block = np.frombuffer(key.ljust(8 * BLOCK, b"\0"), dtype="<u8").copy()
    compress_block(state, block, np.uintp(0), np.uint64(8 * BLOCK), False)
    return state


_SPARE_BITS = np.uint64(64 - BITS)
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_ONE, _NONE = np.uint64(1), np.uint64(0)
_ADDED = np.uint16(1)


@kernel()
def draw_report_of_law(
    plan: Any, keyed: Any, words: Any, offset: int, number: int, form: int, message: Any, state: Any
) -> Any:
    """(whether the client has at most 2^62 records, its report): as `ReportSampler.release_keyed`, word for word.

    `words` are those of its canonical input, and `message` the same memory with room for one more in front.
    """
    length, step = offset + number * (2 if form == WIDE_FORM else 1), 2 if form == WIDE_FORM else 1
    total = np.uint64(0)
    for position in range(offset, length, step):
        total += words[position + 1] if form == WIDE_FORM else words[position] & _LOWER_HALF
    if total > np.uint64(TOTAL):
        return False, np.uint64(0)
    hash_message_to_report_words(keyed, message, length + 1, 0, state)
    next_word, turn = 1, 0
    if np.int64(state[0] >> _SPARE_BITS) < plan.uniform_weight or not total:
        rank, next_word, turn = _next_integer_below(
            np.uint64(plan.blocks), keyed, message, length + 1, state, next_word, turn
        )
        return True, report_of_rank(plan, rank)
    target, next_word, turn = _next_integer_below(total, keyed, message, length + 1, state, next_word, turn)
    outcome, position = np.uint64(0), offset
    while True:
        outcome = words[position] if form == WIDE_FORM else words[position] >> _HALF
        amount = words[position + 1] if form == WIDE_FORM else words[position] & _LOWER_HALF
        if target < amount:
            break
        target -= amount
        position += step
    rank, next_word, turn = _next_integer_below(
        np.uint64(plan.holding), keyed, message, length + 1, state, next_word, turn
    )
    return True, report_holding_outcome(plan, outcome, rank)


@kernel()
def _next_integer_below(
    bound: Any, keyed: Any, message: Any, length: int, state: Any, next_word: int, turn: int
) -> Any:
    """(the next integer of a client's words that is uniform below a bound, the words read of this hash, its number)."""
    while True:
        if next_word == WORDS:
            next_word, turn = 0, turn + 1
            hash_message_to_report_words(keyed, message, length, turn, state)
        word = state[next_word] >> _SPARE_BITS
        next_word += 1
        rest = word % bound
        if word - rest <= np.uint64(TOTAL) - bound:
            return rest, next_word, turn


@kernel()
def hash_message_to_report_words(keyed: Any, message: Any, length: int, turn: int, state: Any) -> None:
    """Eight words of a client to `state`, from its message with room for their number in front."""
    message[0] = np.uint64(turn)
    for index in range(8):
        state[index] = keyed[8 + index]
    absorb_message(state, message, length)


@kernel()
def report_of_rank(plan: Any, rank: Any) -> Any:
    """The report of a rank below `plan.blocks`."""
    if plan.kind == MASKED_BLOCKS:
        return _subset_mask_of_rank(plan.binomials, rank, plan.width, plan.size)
    return rank


@kernel()
def report_holding_outcome(plan: Any, outcome: Any, rank: Any) -> Any:
    """The report of a rank below `plan.holding`, of a block that holds an outcome. All numbers are uint64."""
    if plan.kind == MASKED_BLOCKS:
        others = _subset_mask_of_rank(plan.binomials, rank, plan.width - 1, plan.size - 1)
        bit = _ONE << outcome
        below = bit - _ONE
        return (others & below) | ((others & ~below) << _ONE) | bit
    if plan.kind == RANKED_BLOCKS:
        return _rank_of_subset_with_outcome(plan.binomials, outcome, rank, plan.width)
    if plan.kind == AFFINE_BLOCKS:
        prime, window = np.uint64(plan.prime), np.uint64(plan.window)
        vector = rank // window
        inner = _inner_product_mod_prime(vector + _ONE, outcome, prime, plan.digits)
        shift = rank - vector * window + prime - inner
        if shift >= prime:
            shift -= prime
        return vector * prime + shift
    return outcome


@kernel()
def _subset_mask_of_rank(binomials: Any, rank: Any, members: int, size: int) -> Any:
    """The subset of a rank: from the largest outcome down, x belongs to it if the rank is at least C(x, members that are left)."""
    mask, rest, remaining = _NONE, rank, np.uintp(members)
    x = np.uintp(size)
    while remaining and x:
        x -= np.uintp(1)
        least = binomials[x, remaining]
        belongs = rest >= least
        rest -= least if belongs else _NONE
        remaining -= np.uintp(belongs)
        mask |= np.uint64(belongs) << np.uint64(x)
    return mask


@kernel()
def _rank_of_subset_with_outcome(binomials: Any, outcome: Any, rank: Any, members: int) -> Any:
    """The rank of the subset of an outcome and the `members` - 1 others that a rank among those names."""
    # the place of the outcome among the members that are not found yet, from the smallest
    total, order = (_NONE, np.uintp(members))
    high = np.uintp(binomials.shape[1])
    for member in range(members - 1, 0, -1):
        row, low = binomials[member], np.uintp(member - 1)
        while high - low > np.uintp(1):  # the last whose coefficient is at most the rank
            middle = (low + high) >> np.uintp(1)
            if row[middle] <= rank:
                low = middle
            else:
                high = middle
        rank -= row[low]
        if np.uint64(low) >= outcome:
            total += binomials[member + 1, low + np.uintp(1)]
            order -= np.uintp(1)
        else:
            total += row[low]
        high = low
    return total + binomials[order, np.uintp(outcome)]


@kernel()
def _inner_product_mod_prime(vector: Any, outcome: Any, prime: Any, digits: int) -> Any:
    """<a, x> mod q."""
    total = _NONE
    for _ in range(digits - 1):
        next_vector, next_outcome = vector // prime, outcome // prime
        total += (vector - next_vector * prime) * (outcome - next_outcome * prime)
        vector, outcome = next_vector, next_outcome
    total += vector * outcome
    return total - (total // prime) * prime


@kernel(nogil=True)
def add_progression_counts(rows: Any, firsts: Any, strides: Any, prime: int, window: int, counts: Any) -> None:
    """counts[row + v] += 1 for v = first, first + stride, ... modulo a prime below 2^31, `window` of them for each report.

    The additions of a report lie anywhere in the table, so the time is that of the cache. Counts of 16 bits make the table small enough;
    they are added to the real table before they can overflow.
    """
    q = np.uint32(prime)
    for report in range(rows.size):
        row, value, stride = np.uintp(rows[report]), np.uint32(firsts[report]), np.uint32(strides[report])
        for _ in range(window):
            counts[row + np.uintp(value)] += _ADDED
            value = np.uint32(value + stride)
            value = np.uint32(value - q) if value >= q else value
