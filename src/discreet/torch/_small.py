"""One private outcome for each row of few columns (Triton): a program holds whole rows in registers, and reads them once.

The law, the integers and their order are those of `discreet.torch._picking`.
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
    TURNS,
    UNKNOWN,
    acceptable,
    clip_masses,
    falls_here,
    finite,
    first_past,
    integers,
    load_numbers,
    mass,
    narrow_bracket,
    propose_slopes,
    reduce_sums,
    scale_to_total,
    settle_slope,
)

_WHOLE = tl.constexpr(1 << 62)


@triton.jit(do_not_specialize=["rows", "m_step"])
def draw(
    p, m, uniform, solved, out, bad, reals, whole, rows, size, stride, m_step, p_scale, m_scale, p_tolerance, m_tolerance,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Check, solve and draw rows, ROWS at a time, in turns with the other programs; set `bad` if one is no law."""
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    ratio = tl.load(reals + 2).to(tl.float32)
    share = tl.load(reals + 3).to(tl.float32)
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    for task in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        row = task * ROWS + tl.arange(0, ROWS).to(tl.int64)
        live = row < rows
        columns = tl.arange(0, BLOCK)
        inside = live[:, None] & (columns < size)[None, :]
        drawn = tl.load(uniform + row, mask=live, other=0)
        zero = tl.zeros((ROWS,), tl.float32)
        p_shift = zero
        m_shift = zero
        p_mass = load_numbers(p + row[:, None] * stride + columns[None, :], inside, LOGITS)
        p_seen = tl.max(p_mass, 1) if LOGITS else tl.sum(p_mass, 1)
        good = acceptable(p_seen, p_tolerance, LOGITS)
        if LOGITS:
            p_shift = finite(p_seen)
        if REFERENCE:
            m_mass = load_numbers(m + row[:, None] * m_step * stride + columns[None, :], inside, LOGITS)
            m_seen = tl.max(m_mass, 1) if LOGITS else tl.sum(m_mass, 1)
            good = good & acceptable(m_seen, m_tolerance, LOGITS)
            if LOGITS:
                m_shift = finite(m_seen)
            m_mass = mass(m_mass, m_shift[:, None], m_scale, LOGITS)
            unsolved = drawn < tl.load(whole + 2)
            found = tl.full((ROWS,), -1, tl.int64)
            rest = _WHOLE - 1 - drawn
        else:
            m_mass = tl.where(inside, 1.0, 0.0)
            shared = tl.load(whole + 1)
            unsolved = drawn < shared
            found = tl.where(unsolved, drawn // tl.load(whole + 0), -1)
            rest = drawn - shared
        if tl.max((live & (good == 0)).to(tl.int32), 0) > 0:
            tl.store(bad, 1)
        good = good & live
        solving = good & (unsolved == 0)
        if REFERENCE | (tl.max(solving.to(tl.int32), 0) > 0):
            p_mass = mass(p_mass, p_shift[:, None], p_scale, LOGITS)
            z = tl.sum(m_mass, 1)
            p_sum = tl.sum(p_mass, 1)
            start = tl.where((p_sum > 0.0) & (z > 0.0), z / tl.where(p_sum > 0.0, p_sum, 1.0), 1.0)
            start = tl.minimum(tl.maximum(start, 1e-18), 1e18)
            low, f_low, g_low = zero, zero - UNKNOWN, zero
            high, f_high, g_high = zero + LARGEST, zero + UNKNOWN, zero
            one, two, three, four, slope = start * 0.25, start * 0.7, start * 1.4, start * 4.0, start
            going = solving
            turn = 0
            while (turn < TURNS) & (tl.max(going.to(tl.int32), 0) > 0):
                low_mass = m_mass * b
                high_mass = m_mass * B
                f_one, g_one = clip_masses(p_mass, low_mass, high_mass, one[:, None])
                f_two, g_two = clip_masses(p_mass, low_mass, high_mass, two[:, None])
                f_three, g_three = clip_masses(p_mass, low_mass, high_mass, three[:, None])
                f_four, g_four = clip_masses(p_mass, low_mass, high_mass, four[:, None])
                f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four = reduce_sums(
                    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, 1
                )
                low, f_low, g_low, high, f_high, g_high = narrow_bracket(
                    low, f_low, g_low, high, f_high, g_high, one, f_one - z, g_one, two, f_two - z, g_two, three, f_three - z, g_three,
                    four, f_four - z, g_four, going,
                )  # fmt: skip
                one, two, three, four, best, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn)
                slope = tl.where(going, best, slope)
                going = going & (right == 0) & (low < LARGEST)
                turn += 1
            slope, lift = settle_slope(solving, slope, low, f_low, z, b, B)
            steep = scale_to_total(slope, z, REFERENCE)
            base = share / tl.where(z > 0.0, z, 1.0)
            tl.store(solved + row * COLUMNS + SLOPE, steep.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + LIFT, lift.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + BASE, base.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + P_SHIFT, p_shift.to(tl.float64), mask=solving)
            tl.store(solved + row * COLUMNS + M_SHIFT, m_shift.to(tl.float64), mask=solving)
            low_part, high_part, excess = integers(
                p_mass, m_mass, inside, steep[:, None], lift[:, None], base[:, None], ratio, lower, upper, REFERENCE
            )
            if REFERENCE:
                sums, here = falls_here(low_part, drawn)
                shared_place = first_past(low_part, drawn, columns, size)
                found = tl.where(good & here, shared_place, found)
            sums, here = falls_here(excess, rest)
            own = first_past(excess, rest, columns, size)
            lost = good & (found < 0) & (here == 0)
            found = tl.where(good & (found < 0) & here, own, found)
            if tl.max(lost.to(tl.int32), 0) > 0:
                filled = first_past(high_part - low_part - excess, rest - sums, columns, size)
                found = tl.where(lost, filled, found)
        tl.store(out + row, found, mask=live)
