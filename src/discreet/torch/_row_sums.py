"""Sums of a long row at several slopes: on a sample of it, and in one pass over all of it (Triton).

Every lane of a program sums the numbers that it reads, one after the other. The order is the same in every pass, and it does not depend on
the client. Numbers are read ahead through shared memory.
"""

import triton
import triton.language as tl

from discreet.torch._tiles import (
    LARGEST,
    UNKNOWN,
    clip_masses,
    load_numbers,
    mass,
    narrow_bracket,
    propose_slopes,
    reduce_sums,
)

NEARLY = tl.constexpr(
    5e-6
)  # distance of Newton's steps from both ends of a bracket at which the curve through both may be accepted
_STAGES = tl.constexpr(3)  # of reading ahead
_WIDEST = tl.constexpr(1e30)  # B/b at most: effectively infinite, but finite times a mass
_ENOUGH_OF_A_SAMPLE = tl.constexpr(0.01)  # a bracket of its slope, which is farther from that of the row


@triton.jit
def _load_unchecked(places, inside, LOGITS: tl.constexpr):
    """As `load_numbers`, but NaN stays among logits: `_seen_by_both` finds it."""
    if LOGITS:
        found = tl.load(places, mask=inside, other=float("-inf")).to(tl.float32)
    else:
        found = load_numbers(places, inside, LOGITS)
    return found


@triton.jit
def _seen_by_both(one, other, LOGITS: tl.constexpr):
    """What `acceptable` takes of two sets of numbers: the larger logit, or NaN if there is any; or the sum of probabilities."""
    return _larger(one, other) if LOGITS else one + other


@triton.jit
def _larger(one, other):
    return tl.maximum(one, other, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def seen_by_all(seen, LOGITS: tl.constexpr):
    """What `acceptable` takes of all lanes."""
    return tl.reduce(seen, 0, _larger) if LOGITS else tl.sum(seen, 0)


@triton.jit
def _add_clipped(f, g, p_mass, low, high, slope):
    """F up to Z and G at a slope, with one more outcome in each lane."""
    value = p_mass * slope
    clipped = tl.minimum(tl.maximum(value, low), high)
    return f + clipped, tl.where(clipped == value, g + p_mass, g)


@triton.jit
def scan_row(
    p, m, start, size, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One pass over a row from `start` on, for each lane: F up to Z and G at four slopes, Z, and what `acceptable` takes.

    F is summed up divided by b, since that saves a product for each number.
    """
    one, two, three, four, widest = one / b, two / b, three / b, four / b, tl.minimum(B / b, _WIDEST)
    f_one = tl.zeros((BLOCK,), tl.float32)
    g_one = tl.zeros((BLOCK,), tl.float32)
    f_two = tl.zeros((BLOCK,), tl.float32)
    g_two = tl.zeros((BLOCK,), tl.float32)
    f_three = tl.zeros((BLOCK,), tl.float32)
    g_three = tl.zeros((BLOCK,), tl.float32)
    f_four = tl.zeros((BLOCK,), tl.float32)
    g_four = tl.zeros((BLOCK,), tl.float32)
    z = tl.zeros((BLOCK,), tl.float32)
    p_seen = tl.full((BLOCK,), float("-inf") if LOGITS else 0.0, tl.float32)
    m_seen = p_seen
    whole = start + (size - start) // (DEPTH * BLOCK) * (DEPTH * BLOCK)
    for first in tl.range(start, whole, DEPTH * BLOCK, num_stages=_STAGES):
        for depth in tl.static_range(DEPTH):
            columns = first + depth * BLOCK + tl.arange(0, BLOCK)
            p_numbers = _load_unchecked(p + columns, True, LOGITS)
            m_numbers = _load_unchecked(m + columns, True, LOGITS) if REFERENCE else tl.full((BLOCK,), 1.0, tl.float32)
            f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen = _scan_numbers(
                p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
                f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE, LOGITS,
            )  # fmt: skip
    for first in range(whole, size, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        inside = columns < size
        p_numbers = _load_unchecked(p + columns, inside, LOGITS)
        m_numbers = _load_unchecked(m + columns, inside, LOGITS) if REFERENCE else tl.where(inside, 1.0, 0.0)
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen = _scan_numbers(
            p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
            f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE, LOGITS,
        )  # fmt: skip
    return f_one * b, g_one, f_two * b, g_two, f_three * b, g_three, f_four * b, g_four, z, p_seen, m_seen


@triton.jit
def _scan_numbers(
    p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE: tl.constexpr, LOGITS: tl.constexpr,
):  # fmt: skip
    """The sums of `scan_row` with one more number in each lane."""
    p_seen = _seen_by_both(p_seen, p_numbers, LOGITS)
    p_mass = mass(p_numbers, p_shift, p_scale, LOGITS)
    if REFERENCE:
        m_seen = _seen_by_both(m_seen, m_numbers, LOGITS)
        m_mass = mass(m_numbers, m_shift, m_scale, LOGITS)
    else:
        m_mass = m_numbers
    z += m_mass
    high = m_mass * widest
    f_one, g_one = _add_clipped(f_one, g_one, p_mass, m_mass, high, one)
    f_two, g_two = _add_clipped(f_two, g_two, p_mass, m_mass, high, two)
    f_three, g_three = _add_clipped(f_three, g_three, p_mass, m_mass, high, three)
    f_four, g_four = _add_clipped(f_four, g_four, p_mass, m_mass, high, four)
    return f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen


@triton.jit
def check_row(p, m, size, m_shift, m_scale, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """As `scan_row` over a reference, without slopes; z is added up in the same order."""
    z = tl.zeros((BLOCK,), tl.float32)
    p_seen = tl.full((BLOCK,), float("-inf") if LOGITS else 0.0, tl.float32)
    m_seen = p_seen
    whole = size // (DEPTH * BLOCK) * (DEPTH * BLOCK)
    for first in tl.range(0, whole, DEPTH * BLOCK, num_stages=_STAGES):
        for depth in tl.static_range(DEPTH):
            columns = first + depth * BLOCK + tl.arange(0, BLOCK)
            p_seen = _seen_by_both(p_seen, _load_unchecked(p + columns, True, LOGITS), LOGITS)
            m_numbers = _load_unchecked(m + columns, True, LOGITS)
            m_seen = _seen_by_both(m_seen, m_numbers, LOGITS)
            z += mass(m_numbers, m_shift, m_scale, LOGITS)
    for first in range(whole, size, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        p_seen = _seen_by_both(p_seen, _load_unchecked(p + columns, columns < size, LOGITS), LOGITS)
        m_numbers = _load_unchecked(m + columns, columns < size, LOGITS)
        m_seen = _seen_by_both(m_seen, m_numbers, LOGITS)
        z += mass(m_numbers, m_shift, m_scale, LOGITS)
    return z, p_seen, m_seen


@triton.jit
def _clipped_sums(p_mass, low, high, slope):
    """F (up to Z) and G of a sample, summed over the blocks of a thread."""
    kept, open_mass = clip_masses(p_mass, low, high, slope)
    return tl.sum(kept, 0), tl.sum(open_mass, 0)


@triton.jit
def guess_slope(p_mass, m_mass, b, B):
    """The slope of a sample in registers."""
    z = tl.sum(tl.sum(m_mass, 0), 0)
    p_sum = tl.sum(tl.sum(p_mass, 0), 0)
    start = tl.where((p_sum > 0.0) & (z > 0.0), z / tl.where(p_sum > 0.0, p_sum, 1.0), 1.0)
    start = tl.minimum(tl.maximum(start, 1e-18), 1e18)
    low, f_low, g_low = start * 0.0, start * 0.0 - UNKNOWN, start * 0.0
    high, f_high, g_high = start * 0.0 + LARGEST, start * 0.0 + UNKNOWN, start * 0.0
    one, two, three, four, best = start * 0.25, start * 0.7, start * 1.4, start * 4.0, start
    going = z > 0.0
    turn = 0
    while (turn < 8) & going:
        f_one, g_one = _clipped_sums(p_mass, m_mass * b, m_mass * B, one)
        f_two, g_two = _clipped_sums(p_mass, m_mass * b, m_mass * B, two)
        f_three, g_three = _clipped_sums(p_mass, m_mass * b, m_mass * B, three)
        f_four, g_four = _clipped_sums(p_mass, m_mass * b, m_mass * B, four)
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four = reduce_sums(
            f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, 0
        )
        low, f_low, g_low, high, f_high, g_high = narrow_bracket(
            low, f_low, g_low, high, f_high, g_high, one, f_one - z, g_one, two, f_two - z, g_two, three, f_three - z, g_three,
            four, f_four - z, g_four, going,
        )  # fmt: skip
        one, two, three, four, best, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn, NEARLY)
        going = (right == 0) & (low < LARGEST) & (high - low > _ENOUGH_OF_A_SAMPLE * high)
        turn += 1
    return best
