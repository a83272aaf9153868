"""The outcome of each row that was solved, by its integer (Triton): integers are added up to the place where it falls.

The order in which the 2^62 integers are given out: L of every outcome first, then the excess, then the room that is left. Over a
uniform reference, where sum L is known beforehand, the excess begins there, as in `discreet.release._lattice`; over any other it is
counted from the upper end, so that sum L need not be known to draw from it.
"""

import triton
import triton.language as tl

from discreet.torch._tiles import (
    BASE,
    COLUMNS,
    COUNTERS,
    LIFT,
    M_SHIFT,
    P_SHIFT,
    SLOPE,
    TURNS,
    falls_here,
    first_past,
    integers,
    load_numbers,
    mass,
    span,
    wait_for_all,
)

_WHOLE = tl.constexpr(1 << 62)


@triton.jit
def find_outcome(
    PART: tl.constexpr,
    p, m, first, size, rest, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(the outcome on which `rest` falls or -1, what is left of it past the end) in the sums of L (PART 0), of the excess E (1), or of the
    room over it (2), over the columns from `first` on."""
    found = tl.full((1,), -1, tl.int64)
    first = first + size * 0  # a number that may change
    searching = first < size
    while searching:
        columns = first + tl.arange(0, BLOCK)
        inside = (columns < size)[None, :]
        if PART == 0:
            p_mass = tl.zeros((1, BLOCK), tl.float32)
        else:
            p_mass = mass(load_numbers(p + columns[None, :], inside, LOGITS), p_shift, p_scale, LOGITS)
        if REFERENCE:
            m_mass = mass(load_numbers(m + columns[None, :], inside, LOGITS), m_shift, m_scale, LOGITS)
        else:
            m_mass = p_mass
        low, high, excess = integers(p_mass, m_mass, inside, steep, lift, base, ratio, lower, upper, REFERENCE)
        if PART == 0:
            part = low
        elif PART == 1:
            part = excess
        else:
            part = high - low - excess
        sums, here = falls_here(part, rest)
        if tl.max(here.to(tl.int32), 0) > 0:
            found = first_past(part, rest, columns, size)
        else:
            rest = rest - sums
        first += BLOCK
        searching = (first < size) & (tl.max(found, 0) < 0)
    return found, rest


@triton.jit
def find_outcome_together(
    PART: tl.constexpr,
    p, m, row, index, part, size, rest, out, sums, counters, p_shift, p_scale, steep, lift, lower, upper,
    LOGITS: tl.constexpr, BLOCK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """As `_place`, by SPLIT programs: each adds up its span; the one in whose span `rest` falls stores the outcome. What is left past
    the end, or -1 where it was found."""
    first, last = span(part, size, BLOCK, SPLIT)
    none = tl.full((1,), 0.0, tl.float32)
    most = tl.full((1,), _WHOLE - 1, tl.int64)
    found, left = find_outcome(
        PART,
        p,
        m,
        first,
        last,
        most,
        p_shift,
        p_shift,
        p_scale,
        p_scale,
        steep,
        lift,
        none,
        none,
        lower,
        upper,
        False,
        LOGITS,
        BLOCK,
    )
    mine = tl.where(found < 0, most - left, most)  # cut off at what no integer is past
    tl.store(sums + (index * 2 + PART - 1) * SPLIT + part + tl.arange(0, 1), mine)
    wait_for_all(counters + index * COUNTERS + TURNS + PART, SPLIT)
    before = tl.full((1,), 0, tl.int64)
    total = tl.full((1,), 0, tl.int64)
    for other in tl.static_range(SPLIT):
        each = tl.load(sums + (index * 2 + PART - 1) * SPLIT + other + tl.arange(0, 1), cache_modifier=".cg")
        before = tl.where(other < part, tl.minimum(before + each, most), before)
        total = tl.minimum(total + each, most)
    if tl.max(((rest >= before) & (rest - before < mine)).to(tl.int32), 0) > 0:
        found, left = find_outcome(
            PART, p, m, first, last, rest - before, p_shift, p_shift, p_scale, p_scale, steep, lift, none, none, lower, upper,
            False, LOGITS, BLOCK,
        )  # fmt: skip
        tl.store(out + row + tl.arange(0, 1), found)
    return tl.where(rest < total, -1, rest - total)


@triton.jit(do_not_specialize=["m_step"])
def pick(
    p, m, listed, uniform, solved, out, reals, whole, size, stride, m_step, p_scale, m_scale,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The outcome of each row that `solve` was given, by its integer. Over a uniform reference that is counted from sum L on."""
    if REFERENCE:
        row = tl.program_id(0).to(tl.int64)
    else:
        row = tl.load(listed + tl.program_id(0))
    drawn = tl.load(uniform + tl.program_id(0) + tl.arange(0, 1))
    p_row = p + row * stride
    m_row = m + row * m_step * stride
    steep = tl.load(solved + row * COLUMNS + SLOPE)
    lift = tl.load(solved + row * COLUMNS + LIFT)
    base = tl.load(solved + row * COLUMNS + BASE).to(tl.float32)
    p_shift = tl.load(solved + row * COLUMNS + P_SHIFT).to(tl.float32)
    m_shift = tl.load(solved + row * COLUMNS + M_SHIFT).to(tl.float32)
    ratio = tl.load(reals + 2).to(tl.float32)
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    found = tl.full((1,), -1, tl.int64)
    rest = drawn
    if REFERENCE:
        steep = steep.to(tl.float32)
        lift = lift.to(tl.float32)
        rest = _WHOLE - 1 - drawn
        if tl.max(drawn, 0) < tl.load(whole + 1):
            found, left = find_outcome(
                0, p_row, m_row, 0, size, drawn, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
                REFERENCE, LOGITS, BLOCK,
            )  # fmt: skip
    if tl.max(found, 0) < 0:
        found, left = find_outcome(
            1, p_row, m_row, 0, size, rest, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
            REFERENCE, LOGITS, BLOCK,
        )  # fmt: skip
        if tl.max(found, 0) < 0:
            found, left = find_outcome(
                2, p_row, m_row, 0, size, left, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
                REFERENCE, LOGITS, BLOCK,
            )  # fmt: skip
    tl.store(out + row + tl.arange(0, 1), found)


@triton.jit(do_not_specialize=["m_step"])
def write(
    p, m, solved, lower_out, upper_out, excess_out, reals, size, stride, m_step, p_scale, m_scale,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """L, U and E of one row and one block of columns, by the very function that outcomes are picked with."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < size
    steep = tl.load(solved + row * COLUMNS + SLOPE)
    lift = tl.load(solved + row * COLUMNS + LIFT)
    if REFERENCE:
        steep = steep.to(tl.float32)
        lift = lift.to(tl.float32)
    base = tl.load(solved + row * COLUMNS + BASE).to(tl.float32)
    p_shift = tl.load(solved + row * COLUMNS + P_SHIFT).to(tl.float32)
    m_shift = tl.load(solved + row * COLUMNS + M_SHIFT).to(tl.float32)
    p_mass = mass(load_numbers(p + row * stride + columns, inside, LOGITS), p_shift, p_scale, LOGITS)
    if REFERENCE:
        m_mass = mass(load_numbers(m + row * m_step * stride + columns, inside, LOGITS), m_shift, m_scale, LOGITS)
    else:
        m_mass = p_mass
    low, high, excess = integers(
        p_mass, m_mass, inside, steep, lift, base, tl.load(reals + 2).to(tl.float32), tl.load(reals + 4), tl.load(reals + 5),
        REFERENCE,
    )  # fmt: skip
    places = row * size + columns
    tl.store(lower_out + places, low, mask=inside)
    tl.store(upper_out + places, high, mask=inside)
    tl.store(excess_out + places, excess, mask=inside)
