"""One private outcome for each row, in one launch: every program checks, solves and draws a few rows (Triton).

A row whose integer falls on the part that all clients share is only checked; it is never solved. Otherwise the slope is first found on
every few blocks of columns, which stay in cache, then from two slopes around it on the whole row: two passes over memory in most cases.
Last, integer prefix sums up to the place where the integer falls.

The order in which the 2^62 integers are given out: L of every outcome first, then the excess and the room that is left. Over a uniform
reference, where sum L is known beforehand, the excess begins there, as in `discreet.release.lattice`; over any other it is counted from
the upper end, so that sum L need not be known to draw from it.
"""

import triton
import triton.language as tl

from discreet.torch.tiles import (
    LARGEST,
    UNKNOWN,
    acceptable,
    evaluation,
    integers,
    largest,
    loaded,
    mass,
    narrowed,
    place,
    proposed,
    validity,
)

_TOTAL = tl.constexpr(1 << 62)
_FAR = tl.constexpr(60.0)  # powers of two by which a mass may exceed the one that was taken for the largest
_TURNS = tl.constexpr(40)
_SAMPLE_TURNS = tl.constexpr(12)
SLOPE, LIFT, BASE, P_SHIFT, M_SHIFT = (tl.constexpr(place) for place in range(5))  # columns of `solved`
_SOLVED = tl.constexpr(5)


@triton.jit
def draw(
    p, m, uniform, out, solved, bad, reals, whole, rows, size, p_stride, m_stride, p_scale, m_scale, tolerance, m_tolerance, sample_step,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Fill `out` (and what `solved` says of the rows that were), or set `bad` if some row is no law."""
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    ratio = tl.load(reals + 2)
    share = tl.load(reals + 3)  # 2^62 b
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    each = tl.load(whole + 0)  # L over a uniform reference
    shared = tl.load(whole + 1)  # no integer from here on is shared; over a uniform reference all others are

    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < rows
    p_starts = row.to(tl.int64) * p_stride
    m_starts = row.to(tl.int64) * m_stride
    drawn = tl.load(uniform + row, mask=live, other=0)
    slope = tl.full((ROWS,), 0.0, tl.float32)
    none = tl.full((ROWS,), 0.0, tl.float64)

    if REFERENCE:
        solving = live & (drawn >= shared)
        good = live
        found = tl.full((ROWS,), -1, tl.int64)
        rest = _TOTAL - 1 - drawn
    else:
        p_top, p_total, p_odd = validity(p, p_starts, live, size, LOGITS, ROWS, WIDE, STAGES)
        good = acceptable(p_top, p_total, p_odd, tolerance, LOGITS)
        solving = live & good & (drawn >= shared)
        found = tl.where(drawn < shared, drawn // each, -1)
        rest = drawn - shared

    z = tl.full((ROWS,), 1.0, tl.float32) * size
    lift = tl.full((ROWS,), 0.0, tl.float32)
    p_shift = tl.full((ROWS,), 0.0, tl.float32)
    m_shift = tl.full((ROWS,), 0.0, tl.float32)
    if REFERENCE | (tl.max(solving.to(tl.int32), 0) > 0):
        # a guess, from every few blocks
        if REFERENCE:
            p_shift = largest(p, p_starts, live, size, sample_step, LOGITS, ROWS, BLOCK)
            m_shift = largest(m, m_starts, live, size, sample_step, LOGITS, ROWS, BLOCK)
        else:
            if LOGITS:
                p_shift = tl.where(good, p_top, 0.0)
        one = tl.full((ROWS,), 1.0, tl.float32)
        f_one, p_sum, f_two, g_two, m_sum = evaluation(
            p, m, p_starts, m_starts, solving, size, sample_step, p_shift, m_shift, p_scale, m_scale, 0.0, 1e30, one, one,
            REFERENCE, LOGITS, False, ROWS, BLOCK, 1,
        )  # fmt: skip
        guess = tl.where((p_sum > 0.0) & (m_sum > 0.0), m_sum / p_sum, 1.0)
        guess = tl.minimum(tl.maximum(guess, 1e-18), 1e18)
        low, f_low, g_low = one * 0.0, one * -UNKNOWN, one * 0.0
        high, f_high, g_high = one * LARGEST, one * UNKNOWN, one * 0.0
        first = guess * 0.5
        second = guess * 2.0
        turn = 0
        going = solving
        while (turn < _SAMPLE_TURNS) & (tl.max(going.to(tl.int32), 0) > 0):
            f_one, g_one, f_two, g_two, z_some = evaluation(
                p, m, p_starts, m_starts, going, size, sample_step, p_shift, m_shift, p_scale, m_scale, b, B, first, second,
                REFERENCE, LOGITS, False, ROWS, BLOCK, 1,
            )  # fmt: skip
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, first, f_one, g_one, going
            )
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, second, f_two, g_two, going
            )
            first, second, best, right = proposed(low, f_low, g_low, high, f_high, g_high, z_some, turn)
            guess = tl.where(going, best, guess)
            going = going & (right == 0) & (low < LARGEST)
            turn += 1
        # the whole row, from slopes on either side of the guess
        apart = tl.where(sample_step <= BLOCK, 1.0001, 1.1)
        first = tl.minimum(guess / apart, LARGEST)
        second = tl.minimum(guess * apart, LARGEST)
        low, f_low, g_low = one * 0.0, one * -UNKNOWN, one * 0.0
        high, f_high, g_high = one * LARGEST, one * UNKNOWN, one * 0.0
        slope = guess
        going = solving
        if REFERENCE:
            # the first pass checks both tensors too; it is done again if something is far larger than what was sampled
            looks = 0
            again = live
            f_one, g_one, f_two, g_two = one, one, one, one
            while (looks < 2) & (tl.max(again.to(tl.int32), 0) > 0):
                f_some, g_some, f_more, g_more, z_some, p_top, p_total, p_odd, m_top, m_odd = evaluation(
                    p, m, p_starts, m_starts, again, size, BLOCK, p_shift, m_shift, p_scale, m_scale, b, B, first, second,
                    REFERENCE, LOGITS, True, ROWS, BLOCK, STAGES,
                )  # fmt: skip
                f_one, g_one = tl.where(again, f_some, f_one), tl.where(again, g_some, g_one)
                f_two, g_two = tl.where(again, f_more, f_two), tl.where(again, g_more, g_two)
                z = tl.where(again, z_some, z)
                law = acceptable(p_top, p_total, p_odd, tolerance, LOGITS)
                reference = acceptable(m_top, z_some, m_odd, m_tolerance, LOGITS)
                good = good & ((again == 0) | (law & reference))
                far = again & good & (looks == 0)
                if LOGITS:
                    p_far = far & ((p_top - p_shift) * p_scale > _FAR)
                    m_far = far & ((m_top - m_shift) * m_scale > _FAR)
                    p_shift = tl.where(p_far, p_top, p_shift)
                    m_shift = tl.where(m_far, m_top, m_shift)
                    again = p_far | m_far
                    first = tl.where(again, 1.0, first)
                    second = tl.where(again, 2.0, second)
                else:
                    again = far & (looks > 0)
                looks += 1
            base = share / z.to(tl.float64)
            # what is shared does not look at the client
            maybe = good & (drawn < shared)
            if tl.max(maybe.to(tl.int32), 0) > 0:
                found, left_over = place(
                    0, p, m, p_starts, m_starts, maybe, drawn, size, p_shift, m_shift, p_scale, m_scale, none, none, base, ratio,
                    lower, upper, REFERENCE, LOGITS, ROWS, WIDE,
                )  # fmt: skip
            solving = good & (found < 0)
            going = solving
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, first, f_one, g_one, going
            )
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, second, f_two, g_two, going
            )
            first, second, slope, right = proposed(low, f_low, g_low, high, f_high, g_high, z, 0)
            going = going & (right == 0) & (low < LARGEST)
        turn = 1
        while (turn < _TURNS) & (tl.max(going.to(tl.int32), 0) > 0):
            f_one, g_one, f_two, g_two, z_some = evaluation(
                p, m, p_starts, m_starts, going, size, BLOCK, p_shift, m_shift, p_scale, m_scale, b, B, first, second,
                REFERENCE, LOGITS, False, ROWS, BLOCK, STAGES,
            )  # fmt: skip
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, first, f_one, g_one, going
            )
            low, f_low, g_low, high, f_high, g_high = narrowed(
                low, f_low, g_low, high, f_high, g_high, second, f_two, g_two, going
            )
            first, second, best, right = proposed(low, f_low, g_low, high, f_high, g_high, z, turn)
            slope = tl.where(going, best, slope)
            going = going & (right == 0) & (low < LARGEST)
            turn += 1
        # a client on too small a set: its outcomes at their ceilings, a multiple of the floor for the others
        beyond = solving & (low >= LARGEST)
        held = (f_low + (1.0 - b) * z) / (B - b)
        left = z - held
        lift = tl.where(beyond & (left > 0.0), (z - B * held) / (b * tl.where(left > 0.0, left, 1.0)), 0.0)
        slope = tl.where(beyond, LARGEST, slope)

        steep = slope.to(tl.float64) * 4611686018427387904.0 / z.to(tl.float64)
        if REFERENCE:
            base = share / z.to(tl.float64)
        else:
            base = none
        tl.store(solved + row * _SOLVED + SLOPE, steep, mask=solving)
        tl.store(solved + row * _SOLVED + LIFT, lift.to(tl.float64), mask=solving)
        tl.store(solved + row * _SOLVED + BASE, base, mask=solving)
        tl.store(solved + row * _SOLVED + P_SHIFT, p_shift.to(tl.float64), mask=solving)
        tl.store(solved + row * _SOLVED + M_SHIFT, m_shift.to(tl.float64), mask=solving)
        lifted = lift.to(tl.float64)
        own, left_over = place(
            1, p, m, p_starts, m_starts, solving, rest, size, p_shift, m_shift, p_scale, m_scale, steep, lifted, base, ratio,
            lower, upper, REFERENCE, LOGITS, ROWS, WIDE,
        )  # fmt: skip
        found = tl.where(solving, own, found)
        lost = solving & (own < 0)
        if tl.max(lost.to(tl.int32), 0) > 0:
            filled, left_over = place(
                2, p, m, p_starts, m_starts, lost, left_over, size, p_shift, m_shift, p_scale, m_scale, steep, lifted, base,
                ratio, lower, upper, REFERENCE, LOGITS, ROWS, WIDE,
            )  # fmt: skip
            found = tl.where(lost, filled, found)
    tl.store(out + row, found, mask=live)
    if tl.max((live & (good == 0)).to(tl.int32), 0) > 0:
        tl.store(bad, 1)


@triton.jit
def write(
    p, m, solved, lower_out, upper_out, excess_out, reals, size, p_stride, m_stride, p_scale, m_scale,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """L, U and E of one row and one block of columns, by the very function that `draw` adds up."""
    row = tl.program_id(0) + tl.arange(0, 1)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (columns < size)[None, :] & (row >= 0)[:, None]
    steep = tl.load(solved + row * _SOLVED + SLOPE)
    lift = tl.load(solved + row * _SOLVED + LIFT)
    base = tl.load(solved + row * _SOLVED + BASE)
    p_shift = tl.load(solved + row * _SOLVED + P_SHIFT).to(tl.float32)
    m_shift = tl.load(solved + row * _SOLVED + M_SHIFT).to(tl.float32)
    p_mass = mass(loaded(p, row.to(tl.int64) * p_stride, columns, inside, LOGITS), p_shift, p_scale, LOGITS)
    if REFERENCE:
        m_mass = mass(loaded(m, row.to(tl.int64) * m_stride, columns, inside, LOGITS), m_shift, m_scale, LOGITS)
    else:
        m_mass = p_mass
    low, high, excess = integers(
        p_mass, m_mass, inside, steep, lift, base, tl.load(reals + 2), tl.load(reals + 4), tl.load(reals + 5), REFERENCE
    )
    places = row.to(tl.int64)[:, None] * size + columns[None, :]
    tl.store(lower_out + places, low, mask=inside)
    tl.store(upper_out + places, high, mask=inside)
    tl.store(excess_out + places, excess, mask=inside)
