"""Reports in numba: the report of a client from its law and its key, the blocks that it names, and counts of reports.

The families of blocks, and what a report says of its block, are those of `discreet.mechanisms._report_blocks`, number for number. All
families share one type of plan, so that one compiled function draws from each.

Sums cannot overflow: ranks and binomial coefficients are below 2^62. For t digits in base q with q^(t + 1) <= 2^62, the inner product of two
vectors is at most t (q - 1)^2 before it is reduced. That is below 2^62 for t = 1, and below t 2^(124/(t + 1)) < 2^44 for t >= 2.
"""

from typing import Any

import numpy as np

from discreet._base.kernels import kernel
from discreet.release._blake2b import absorb_message
from discreet.release._clients import AFFINE_BLOCKS, MASKED_BLOCKS, RANKED_BLOCKS
from discreet.release._keyed import WIDE_FORM, WORDS
from discreet.release._lattice import TOTAL
from discreet.release._randomness import BITS

_TOTAL = TOTAL
_SPARE_BITS = np.uint64(64 - BITS)
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_ONE, _NONE = np.uint64(1), np.uint64(0)
_ADDED = np.uint16(1)


@kernel()
def report_of_law(
    plan: Any, keyed: Any, words: Any, used: int, number: int, form: int, message: Any, state: Any
) -> Any:
    """(whether the client has at most 2^62 records, its report): as `ReportSampler.release_keyed`, word for word.

    `words` are those of its canonical input, and `message` the same memory with room for one more in front.
    """
    length, step = used + number * (2 if form == WIDE_FORM else 1), 2 if form == WIDE_FORM else 1
    total = np.uint64(0)
    for place in range(used, length, step):
        total += words[place + 1] if form == WIDE_FORM else words[place] & _LOWER_HALF
    if total > np.uint64(_TOTAL):
        return False, np.uint64(0)
    write_block_words(keyed, message, length + 1, 0, state)
    taken, turn = 1, 0
    if np.int64(state[0] >> _SPARE_BITS) < plan.uniform_weight or not total:
        rank, taken, turn = _next_below(np.uint64(plan.blocks), keyed, message, length + 1, state, taken, turn)
        return True, uniform_block(plan, rank)
    wanted, taken, turn = _next_below(total, keyed, message, length + 1, state, taken, turn)
    outcome, place = np.uint64(0), used
    while True:
        outcome = words[place] if form == WIDE_FORM else words[place] >> _HALF
        amount = words[place + 1] if form == WIDE_FORM else words[place] & _LOWER_HALF
        if wanted < amount:
            break
        wanted -= amount
        place += step
    rank, taken, turn = _next_below(np.uint64(plan.holding), keyed, message, length + 1, state, taken, turn)
    return True, block_holding(plan, outcome, rank)


@kernel()
def _next_below(bound: Any, keyed: Any, message: Any, length: int, state: Any, taken: int, turn: int) -> Any:
    """(the next integer of a client's words that is uniform below a bound, the words taken of this hash, its number)."""
    while True:
        if taken == WORDS:
            taken, turn = 0, turn + 1
            write_block_words(keyed, message, length, turn, state)
        word = state[taken] >> _SPARE_BITS
        taken += 1
        rest = word % bound
        if word - rest <= np.uint64(_TOTAL) - bound:
            return rest, taken, turn


@kernel()
def write_block_words(keyed: Any, message: Any, length: int, turn: int, state: Any) -> None:
    """Eight words of a client to `state`, from its message with room for their number in front."""
    message[0] = np.uint64(turn)
    for place in range(8):
        state[place] = keyed[8 + place]
    absorb_message(state, message, length)


@kernel()
def uniform_block(plan: Any, rank: Any) -> Any:
    """The report of a rank below `plan.blocks`."""
    if plan.kind == MASKED_BLOCKS:
        return _mask_of_rank(plan.binomials, rank, plan.width, plan.size)
    return rank


@kernel()
def block_holding(plan: Any, outcome: Any, rank: Any) -> Any:
    """The report of a rank below `plan.holding`, of a block that holds an outcome. All numbers are uint64."""
    if plan.kind == MASKED_BLOCKS:
        others = _mask_of_rank(plan.binomials, rank, plan.width - 1, plan.size - 1)
        bit = _ONE << outcome
        below = bit - _ONE
        return (others & below) | ((others & ~below) << _ONE) | bit
    if plan.kind == RANKED_BLOCKS:
        return _rank_with(plan.binomials, outcome, rank, plan.width)
    if plan.kind == AFFINE_BLOCKS:
        prime, window = np.uint64(plan.prime), np.uint64(plan.window)
        vector = rank // window
        inner = _inner_product(vector + _ONE, outcome, prime, plan.digits)
        shift = rank - vector * window + prime - inner
        if shift >= prime:
            shift -= prime
        return vector * prime + shift
    return outcome


@kernel()
def _mask_of_rank(binomials: Any, rank: Any, members: int, size: int) -> Any:
    """The subset of a rank: from the largest outcome down, x belongs to it if the rank is at least C(x, members that are left)."""
    mask, rest, left = _NONE, rank, np.uintp(members)
    x = np.uintp(size)
    while left and x:
        x -= np.uintp(1)
        least = binomials[x, left]
        belongs = rest >= least
        rest -= least if belongs else _NONE
        left -= np.uintp(belongs)
        mask |= np.uint64(belongs) << np.uint64(x)
    return mask


@kernel()
def _rank_with(binomials: Any, outcome: Any, rank: Any, members: int) -> Any:
    """The rank of the subset of an outcome and the `members` - 1 others that a rank among those names."""
    total, order = (
        _NONE,
        np.uintp(members),
    )  # the place of the outcome among the members that are not found yet, from the smallest
    high = np.uintp(binomials.shape[1])
    for place in range(members - 1, 0, -1):
        row, low = binomials[place], np.uintp(place - 1)
        while high - low > np.uintp(1):  # the last whose coefficient is at most the rank
            middle = (low + high) >> np.uintp(1)
            if row[middle] <= rank:
                low = middle
            else:
                high = middle
        rank -= row[low]
        if np.uint64(low) >= outcome:
            total += binomials[place + 1, low + np.uintp(1)]
            order -= np.uintp(1)
        else:
            total += row[low]
        high = low
    return total + binomials[order, np.uintp(outcome)]


@kernel()
def _inner_product(vector: Any, outcome: Any, prime: Any, digits: int) -> Any:
    """<a, x> mod q."""
    total = _NONE
    for _ in range(digits - 1):
        next_vector, next_outcome = vector // prime, outcome // prime
        total += (vector - next_vector * prime) * (outcome - next_outcome * prime)
        vector, outcome = next_vector, next_outcome
    total += vector * outcome
    return total - (total // prime) * prime


@kernel(nogil=True)
def add_progressions(rows: Any, firsts: Any, strides: Any, prime: int, window: int, counts: Any) -> None:
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
