"""The Triton kernel for short rows: `draw_short_rows` checks, solves and draws whole rows in registers, and reads each once.

A tile has ROWS x CHUNKS x WIDTH numbers. Each row belongs to a few neighbouring threads, and each thread holds the same place
of every chunk. So a sum over a row is a sum within a thread and a few exchanges, for several rows at once. Distribution, integers and their
order are those of `discreet.torch._long_rows`.

The slope is found by Newton's method within a bracket. F is piecewise linear, so a step from the last piece is the solution. Before integers
are searched, their sum is bounded in float32: a row whose slope is wrong, for any reason, gets L and the fill alone. So no sum overflows.
"""

import triton
import triton.language as tl

from discreet.torch._tiles import (
    BASE,
    COLUMNS,
    LARGEST,
    LIFT,
    M_SHIFT,
    P_SHIFT,
    SLOPE,
    WHOLE,
    factor_to_total,
    finite_largest_logit,
    first_column_where_sum_exceeds,
    floor_divide,
    integer_bounds_and_excess,
    is_distribution,
    load_numbers,
    masses_of_numbers,
    row_sums_and_whether_rest_is_inside,
    slope_and_lift_of_solution,
    word_to_integer,
)

_NEAR = tl.constexpr(1e-6)  # accepted error of the sum at a slope
_SMALL_STEP = tl.constexpr(1e-3)  # the last step is taken if it changes the slope by at most this much
_PINNED = tl.constexpr(3e-7)  # width of a bracket between neighbouring numbers
_PATIENCE = tl.constexpr(8)  # turns after which every second one halves the bracket
_MOST_TURNS = tl.constexpr(60)
_TOO_MUCH = tl.constexpr(1.25 * (1 << 62))  # a sum of weights that no good slope has


@triton.jit
def _add_two_sums(a, b, a_more, b_more):
    return a + a_more, b + b_more


@triton.jit
def _sum_rows(tile):
    """The sum of each row of a tile."""
    return tl.sum(tl.sum(tile, 1), 1)


@triton.jit
def _find_slopes_without_ceilings(p_mass, start, z, b, going):
    """(slope, whether F is near 0 there) of each row `going`, where masses have floors alone: F is convex and at least 0 at the start.

    So each of Newton's steps ends above the solution, and after finitely many on it.
    """
    slope = start
    near = start < 0.0
    turn = 0
    while (turn < _MOST_TURNS) & (tl.max(going.to(tl.int32), 0) > 0):
        value = p_mass * slope[:, None, None]
        open_mass = tl.where(value > b, p_mass, 0.0)
        f, g = tl.reduce((tl.sum(tl.maximum(value, b), 1), tl.sum(open_mass, 1)), 1, _add_two_sums)
        f -= z
        change = f / tl.where(g > 0.0, g, LARGEST)
        near = tl.where(going, (tl.abs(f) <= _NEAR * z) & (tl.abs(change) <= _SMALL_STEP * slope), near)
        slope = tl.where(going, slope - change, slope)
        going = going & (near == 0)
        turn += 1
    return slope, near


@triton.jit
def _find_slopes(p_mass, m_mass, start, z, b, B, going, REFERENCE: tl.constexpr):
    """(slope, whether F is near 0 there, the largest slope below the solution, F there) of each row `going`."""
    slope = start
    near = start < 0.0
    low = start * 0.0
    high = low + LARGEST
    f_low = low
    turn = 0
    while (turn < _MOST_TURNS) & (tl.max(going.to(tl.int32), 0) > 0):
        value = p_mass * slope[:, None, None]
        if REFERENCE:
            clipped_mass = tl.minimum(tl.maximum(value, m_mass * b), m_mass * B)
        else:
            clipped_mass = tl.minimum(tl.maximum(value, b), B)
        open_mass = tl.where(clipped_mass == value, p_mass, 0.0)
        f, g = tl.reduce((tl.sum(clipped_mass, 1), tl.sum(open_mass, 1)), 1, _add_two_sums)
        f -= z
        below = f < 0.0
        f_low = tl.where(going & below, f, f_low)
        low = tl.where(going & below, slope, low)
        high = tl.where(going & (f >= 0.0), slope, high)
        change = f / tl.where(g > 0.0, g, 1.0)
        step = slope - change
        serves = (g > 0.0) & (step > low) & (step < high) & ((turn < _PATIENCE) | (turn % 2 == 0))
        middle = tl.where(low > 0.0, tl.sqrt(low) * tl.sqrt(high), high * 0.015625)
        # nothing above was tried: look as far as possible
        middle = tl.where(below & (high >= LARGEST), LARGEST, middle)
        small = (g > 0.0) & (tl.abs(change) <= _SMALL_STEP * slope)
        near = tl.where(going, tl.abs(f) <= _NEAR * z, near)
        is_ended = near | (high - low <= _PINNED * high) | (low >= LARGEST)
        following = tl.where(is_ended, tl.where(small, step, slope), tl.where(serves, step, middle))
        slope = tl.where(going, following, slope)
        going = going & (is_ended == 0)
        turn += 1
    return slope, near, low, f_low


@triton.jit
def _weight_sums_in_float32(p_mass, m_mass, inside, steep, lift, base, ratio, lower, upper, REFERENCE: tl.constexpr):
    """The sum of the weights of each row before the fill, in float32."""
    if REFERENCE:
        low = tl.where(m_mass > 0.0, tl.maximum(m_mass * base, 1.0), 0.0)
        value = tl.where(p_mass > 0.0, p_mass * steep, low * lift)
        weights = tl.minimum(tl.maximum(low, value), low * ratio)
    else:
        low = lower.to(tl.float32)
        value = tl.where(p_mass > 0.0, p_mass * steep.to(tl.float32), low * lift)
        weights = tl.minimum(tl.maximum(value, low), upper.to(tl.float32))
    return _sum_rows(tl.where(inside, weights, 0.0))


@triton.jit
def _find_chunk(sums, rest, CHUNKS: tl.constexpr):
    """(the chunk in which `rest` falls, or CHUNKS; the sum before it; the sum of all). No sum overflows here."""
    chunk = tl.arange(0, CHUNKS)
    at = rest.to(tl.int32) * 0
    before = rest * 0
    total = rest * 0
    for number in tl.static_range(CHUNKS):
        total += tl.sum(tl.where(chunk[None, :] == number, sums, 0), 1)
        is_passed = total <= rest
        at += is_passed.to(tl.int32)
        before = tl.where(is_passed, total, before)
    return at, before, total


@triton.jit
def _load_integer_bounds_and_excess(
    p, m, row, stride, m_step, places, live, size, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, CEILING: tl.constexpr,
):  # fmt: skip
    """(L, U, E) at some places of each row, read again."""
    inside = live[:, None] & (places < size)
    p_mass = masses_of_numbers(
        load_numbers(p + row[:, None] * stride + places, inside, LOGITS), p_shift[:, None], p_scale, LOGITS
    )
    m_mass = p_mass
    if REFERENCE:
        numbers = load_numbers(m + row[:, None] * m_step * stride + places, inside, LOGITS)
        m_mass = masses_of_numbers(numbers, m_shift[:, None], m_scale, LOGITS)
    return integer_bounds_and_excess(
        p_mass, m_mass, inside, steep[:, None], lift[:, None], base[:, None], ratio, lower, upper, REFERENCE, CEILING
    )


@triton.jit(do_not_specialize=["rows", "m_step"])
def draw_short_rows(
    p, m, words, solved, out, bad, reals, whole, rows, steps, m_step, p_scale, m_scale, p_tolerance, m_tolerance,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, CEILING: tl.constexpr, KEEP: tl.constexpr, ALIGNED: tl.constexpr,
    CHUNKS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Check, solve and draw ROWS rows; set `bad` if one is not a distribution.

    KEEP stores the state of solved rows for `write_integer_bounds_and_excess`. A row has steps * ALIGNED outcomes: what is known to divide
    it makes loads wide.
    """
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    ratio = tl.load(reals + 2).to(tl.float32)
    share = tl.load(reals + 3).to(tl.float32)
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    size = steps * ALIGNED
    stride = size.to(tl.int64)
    chunk = tl.arange(0, CHUNKS)
    across = tl.arange(0, WIDTH)
    columns = chunk[None, :, None] * WIDTH + across[None, None, :]
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live = row < rows
    inside = live[:, None, None] & (columns < size)
    p_places = p + row[:, None, None] * stride + columns
    m_places = m + row[:, None, None] * m_step * stride + columns
    p_numbers = load_numbers(p_places, inside, LOGITS)
    uniform = word_to_integer(tl.load(words + row, mask=live, other=0))
    zero = tl.zeros((ROWS,), tl.float32)
    p_shift = zero
    m_shift = zero
    if LOGITS:
        p_seen = tl.max(tl.max(p_numbers, 1), 1)
        p_shift = finite_largest_logit(p_seen)
    else:
        p_seen = _sum_rows(p_numbers)
    good = is_distribution(p_seen, p_tolerance, LOGITS)
    if REFERENCE:
        m_numbers = load_numbers(m_places, inside, LOGITS)
        if LOGITS:
            m_seen = tl.max(tl.max(m_numbers, 1), 1)
            m_shift = finite_largest_logit(m_seen)
        else:
            m_seen = _sum_rows(m_numbers)
        good = good & is_distribution(m_seen, m_tolerance, LOGITS)
        m_mass = masses_of_numbers(m_numbers, m_shift[:, None, None], m_scale, LOGITS)
        z = _sum_rows(m_mass)
        shared_total = tl.load(whole + 2)
        outcome = tl.full((ROWS,), -1, tl.int64)
        rest = -uniform + (WHOLE - 1)
    else:
        m_mass = p_numbers
        z = zero + (size + (CHUNKS * WIDTH - size) * b)  # the places beyond the row count as floors too
        shared_total = tl.load(whole + 1)
        outcome = tl.where(uniform < shared_total, floor_divide(uniform, tl.load(whole + 0), tl.load(whole + 3)), -1)
        rest = uniform - shared_total
    if tl.max((live & (good == 0)).to(tl.int32), 0) > 0:
        tl.store(bad, 1)
    good = good & live
    solving = good & (uniform >= shared_total)
    if REFERENCE | (tl.max(solving.to(tl.int32), 0) > 0):
        p_mass = masses_of_numbers(p_numbers, p_shift[:, None, None], p_scale, LOGITS)
        p_sum = _sum_rows(p_mass)
        start = tl.where((p_sum > 0.0) & (z > 0.0), z / tl.where(p_sum > 0.0, p_sum, 1.0), 1.0)
        start = tl.minimum(tl.maximum(start, 1e-18), 1e18)
        lift = zero
        base = zero
        if REFERENCE | CEILING:
            slope, near, low, f_low = _find_slopes(p_mass, m_mass, start, z, b, B, solving, REFERENCE)
            total = z if REFERENCE else zero + size
            slope, lift = slope_and_lift_of_solution(solving, slope, low, f_low, total, b, B)
        else:
            slope, near = _find_slopes_without_ceilings(p_mass, start, z, b, solving)
        if REFERENCE:
            steep = factor_to_total(slope, z, REFERENCE)
            base = share / tl.where(z > 0.0, z, 1.0)
        else:
            steep = factor_to_total(slope, tl.load(reals + 6), REFERENCE)
        steep = tl.where(solving, steep, 0.0)
        if tl.max((solving & (near == 0)).to(tl.int32), 0) > 0:
            most = _weight_sums_in_float32(
                p_mass, m_mass, columns < size, steep[:, None, None], lift[:, None, None], base[:, None, None], ratio, lower, upper,
                REFERENCE,
            )  # fmt: skip
            sane = near | (most <= _TOO_MUCH)
            steep = tl.where(sane, steep, 0.0)
            lift = tl.where(sane, lift, 0.0)
        if KEEP:
            tl.store(solved + row * COLUMNS + SLOPE, steep.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + LIFT, lift.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + BASE, base.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + P_SHIFT, p_shift.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + M_SHIFT, m_shift.to(tl.float64), mask=solving)
        low_part, _, excess = integer_bounds_and_excess(
            p_mass, m_mass, columns < size, steep[:, None, None], lift[:, None, None], base[:, None, None], ratio, lower, upper,
            REFERENCE, CEILING,
        )  # fmt: skip
        common = outcome >= 0
        target = rest
        part = excess
        if REFERENCE:
            if tl.max((uniform < tl.load(whole + 1)).to(tl.int32), 0) > 0:
                common = uniform < _sum_rows(low_part)
                target = tl.where(common, uniform, rest)
                part = tl.where(common[:, None, None], low_part, excess)
        at, before, total_sum = _find_chunk(tl.sum(part, 2), target, CHUNKS)
        chunk_columns = at[:, None] * WIDTH + across[None, :]
        low_part, _, excess = _load_integer_bounds_and_excess(
            p, m, row, stride, m_step, chunk_columns, live, size, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio,
            lower, upper, REFERENCE, LOGITS, CEILING,
        )  # fmt: skip
        here = excess
        if REFERENCE:
            here = tl.where(common[:, None], low_part, excess)
        is_passed = tl.cumsum(here, 1) <= (target - before)[:, None]
        column = (at * WIDTH + tl.sum(is_passed.to(tl.int32), 1)).to(tl.int64)
        outcome = tl.where(good & (outcome < 0) & (at < CHUNKS), column, outcome)
        lost = good & (outcome < 0)
        if tl.max(lost.to(tl.int32), 0) > 0:
            left = rest - total_sum
            for number in range(CHUNKS):
                those = number * WIDTH + across
                low_again, high_again, excess_again = _load_integer_bounds_and_excess(
                    p, m, row, stride, m_step, those[None, :], live, size, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio,
                    lower, upper, REFERENCE, LOGITS, CEILING,
                )  # fmt: skip
                room = high_again - low_again - excess_again
                room_sum, ends_here = row_sums_and_whether_rest_is_inside(room, left)
                searching = lost & (outcome < 0)
                filled_column = first_column_where_sum_exceeds(room, left, those, size)
                outcome = tl.where(searching & ends_here, filled_column, outcome)
                left = tl.where(searching & (ends_here == 0), left - room_sum, left)
    tl.store(out + row, outcome, mask=live)
