"""The Triton kernels that `discreet.torch._gpu` launches: `check`, `solve` and `pick` for long rows, `draw` for short rows.

Long rows: a row whose integer falls on the part that all clients share is only checked. Otherwise `solve` finds the slope, first on a
sample of the row in registers, then from four slopes around it on the whole row, usually in one or two passes over memory. `pick` sums
integers up to the row's own integer. Short rows: `draw` holds whole rows in registers and reads them once. Distribution, integers and their
order are the same.

The 2^62 integers are assigned in this order: L of every outcome first, then the excess, then the remaining room. Over a uniform reference,
where sum L is known in advance, the excess begins there, as in `discreet.release._lattice`. Over any other reference it is counted from the
upper end, so that sum L need not be known.
"""

import triton
import triton.language as tl

from discreet.torch._tiles import (
    BASE,
    COLUMNS,
    COUNTERS,
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
    """(the outcome on which `rest` falls or -1, the remainder beyond the end) in the sums of L (PART 0), of the excess E (1), or of the
    room above it (2), over the columns from `first` on.
    """
    found = tl.full((1,), -1, tl.int64)
    first = first + size * 0  # a variable, not a constant
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
    """As `find_outcome`, by SPLIT programs: each sums its span, and the one in whose span `rest` falls stores the outcome. Returns the
    remainder beyond the end, or -1 if it was found.
    """
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
    mine = tl.where(found < 0, most - left, most)  # capped at the largest integer
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
    """Find the outcome of each row given to `solve`, by its integer. Over a uniform reference that is counted from sum L on."""
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
    """Write L, U and E of one row and one block of columns, by the function that picks outcomes."""
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


_FAR = tl.constexpr(60.0)  # powers of two by which a mass may exceed the assumed largest
_NEARBY = tl.constexpr(1.08)  # factors around the slope of a sample
_AROUND = tl.constexpr(1.5)
SAMPLED = tl.constexpr(8)  # blocks of a row's sample


@triton.jit
def check(p, uniform, out, bad, whole, size, stride, tolerance, LOGITS: tl.constexpr, BLOCK: tl.constexpr):
    """Set `bad` if a row is not a distribution; store the outcome if its integer is shared (over a uniform reference)."""
    row = tl.program_id(0).to(tl.int64)
    start = p + row * stride
    drawn = tl.load(uniform + row)
    if drawn < tl.load(whole + 1):
        tl.store(out + row, drawn // tl.load(whole + 0))
    seen = float("-inf") if LOGITS else 0.0
    for first in range(0, size, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        numbers = load_numbers(start + columns, columns < size, LOGITS)
        if LOGITS:
            seen = tl.maximum(seen, tl.max(numbers, 0))
        else:
            seen += tl.sum(numbers, 0)
    if acceptable(seen, tolerance, LOGITS) == 0:
        tl.store(bad, 1)


@triton.jit
def _scan_row(
    p, m, start, size, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One pass over a row from `start` on: F and G at four slopes, Z, and the inputs of `acceptable` for both tensors."""
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
    m_seen = tl.full((BLOCK,), float("-inf"), tl.float32)
    for first in range(start, size, DEPTH * BLOCK):
        columns = first + tl.arange(0, DEPTH)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = columns < size
        p_numbers = load_numbers(p + columns, inside, LOGITS)
        if REFERENCE:
            m_numbers = load_numbers(m + columns, inside, LOGITS)
            m_mass = mass(m_numbers, m_shift, m_scale, LOGITS)
            m_seen = tl.maximum(m_seen, tl.max(m_numbers, 0))
        else:
            m_mass = tl.where(inside, 1.0, 0.0)
        if LOGITS:
            p_seen = tl.maximum(p_seen, tl.max(p_numbers, 0))
        else:
            p_seen += tl.sum(p_numbers, 0)
        p_mass = mass(p_numbers, p_shift, p_scale, LOGITS)
        low = m_mass * b
        high = m_mass * B
        z += tl.sum(m_mass, 0)
        kept, open_mass = clip_masses(p_mass, low, high, one)
        f_one += tl.sum(kept, 0)
        g_one += tl.sum(open_mass, 0)
        kept, open_mass = clip_masses(p_mass, low, high, two)
        f_two += tl.sum(kept, 0)
        g_two += tl.sum(open_mass, 0)
        kept, open_mass = clip_masses(p_mass, low, high, three)
        f_three += tl.sum(kept, 0)
        g_three += tl.sum(open_mass, 0)
        kept, open_mass = clip_masses(p_mass, low, high, four)
        f_four += tl.sum(kept, 0)
        g_four += tl.sum(open_mass, 0)
    total = tl.sum(z, 0)
    p_whole = tl.max(p_seen, 0) if LOGITS else tl.sum(p_seen, 0)
    m_whole = tl.max(m_seen, 0) if LOGITS else total
    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four = reduce_sums(
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, 0
    )
    return (
        f_one - total, g_one, f_two - total, g_two, f_three - total, g_three, f_four - total, g_four, total, p_whole, m_whole,
    )  # fmt: skip


@triton.jit
def _clipped_sums(p_mass, low, high, slope):
    """F (up to Z) and G of a sample, summed over the blocks of a thread."""
    kept, open_mass = clip_masses(p_mass, low, high, slope)
    return tl.sum(kept, 0), tl.sum(open_mass, 0)


@triton.jit
def _guess_slope(p_mass, m_mass, b, B):
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
        one, two, three, four, best, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn)
        going = (right == 0) & (low < LARGEST)
        turn += 1
    return best


@triton.jit(do_not_specialize=["m_step"])
def solve(
    p, m, listed, uniform, solved, out, bad, reals, whole, sums, spans, counters, size, stride, m_step, p_scale, m_scale,
    p_tolerance, m_tolerance, sample_step,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, SAMPLE: tl.constexpr,
    SPLIT: tl.constexpr,
):  # fmt: skip
    """Find slope, lift and scales of each row. Over a reference every row is checked, and surely shared ones are not solved.

    SPLIT programs share a row if few are solved: each sums its span, and all add up all spans alike. They also find the outcome, which
    `pick` does otherwise, and leave their counters at 0.
    """
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    share = tl.load(reals + 3).to(tl.float32)  # 2^62 b
    index = tl.program_id(0) // SPLIT
    part = tl.program_id(0) % SPLIT
    if REFERENCE:
        row = tl.program_id(0).to(tl.int64)
        solving = tl.load(uniform + row) >= tl.load(whole + 2)
    else:
        row = tl.load(listed + index)
        solving = row >= 0
    first_column, last_column = span(part, size, DEPTH * BLOCK, SPLIT)
    p_row = p + row * stride
    m_row = m + row * m_step * stride
    columns = tl.arange(0, SAMPLED)[:, None] * sample_step + tl.arange(0, SAMPLE)[None, :]
    inside = columns < size
    numbers = load_numbers(p_row + columns, inside, LOGITS)
    zero = b * 0.0
    p_shift = finite(tl.max(tl.max(numbers, 1), 0)) if LOGITS else zero
    m_shift = zero
    guess = zero + 1.0
    if REFERENCE:
        others = load_numbers(m_row + columns, inside, LOGITS)
        m_shift = finite(tl.max(tl.max(others, 1), 0)) if LOGITS else zero
        others = mass(others, m_shift, m_scale, LOGITS)
    else:
        others = tl.where(inside, 1.0, 0.0)
    if solving:
        guess = _guess_slope(mass(numbers, p_shift, p_scale, LOGITS), others, b, B)

    one, two, three, four = guess / _AROUND, guess / _NEARBY, guess * _NEARBY, guess * _AROUND
    low, f_low, g_low = zero, zero - UNKNOWN, zero
    high, f_high, g_high = zero + LARGEST, zero + UNKNOWN, zero
    slope, z = guess, zero + 1.0
    good = row >= 0
    going = row >= 0
    again = row >= 0  # whether the shifts, and so F, may still change
    turn = 0
    while (turn < TURNS) & going:
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z_now, p_seen, m_seen = _scan_row(
            p_row, m_row, first_column, last_column, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four,
            REFERENCE, LOGITS, DEPTH, BLOCK,
        )  # fmt: skip
        if SPLIT > 1:
            mine = sums + ((index * TURNS + turn) * SPLIT + part) * 16
            tl.store(mine + 0, f_one)
            tl.store(mine + 1, g_one)
            tl.store(mine + 2, f_two)
            tl.store(mine + 3, g_two)
            tl.store(mine + 4, f_three)
            tl.store(mine + 5, g_three)
            tl.store(mine + 6, f_four)
            tl.store(mine + 7, g_four)
            tl.store(mine + 8, z_now)
            tl.store(mine + 9, p_seen)
            wait_for_all(counters + index * COUNTERS + turn, SPLIT)
            every = sums + ((index * TURNS + turn) * SPLIT + tl.arange(0, SPLIT)) * 16
            f_one = tl.sum(tl.load(every + 0, cache_modifier=".cg"), 0)
            g_one = tl.sum(tl.load(every + 1, cache_modifier=".cg"), 0)
            f_two = tl.sum(tl.load(every + 2, cache_modifier=".cg"), 0)
            g_two = tl.sum(tl.load(every + 3, cache_modifier=".cg"), 0)
            f_three = tl.sum(tl.load(every + 4, cache_modifier=".cg"), 0)
            g_three = tl.sum(tl.load(every + 5, cache_modifier=".cg"), 0)
            f_four = tl.sum(tl.load(every + 6, cache_modifier=".cg"), 0)
            g_four = tl.sum(tl.load(every + 7, cache_modifier=".cg"), 0)
            z_now = tl.sum(tl.load(every + 8, cache_modifier=".cg"), 0)
            seen = tl.load(every + 9, cache_modifier=".cg")
            p_seen = tl.max(seen, 0) if LOGITS else tl.sum(seen, 0)
        z = tl.where(again, z_now, z)  # from the first pass with these shifts: independent of the client
        good = acceptable(p_seen, p_tolerance, LOGITS)
        if REFERENCE:
            good = good & acceptable(m_seen, m_tolerance, LOGITS)
        p_far = again & good & (turn == 0)
        m_far = p_far
        if LOGITS:
            p_far = p_far & ((p_seen - p_shift) * p_scale > _FAR)
            m_far = m_far & ((m_seen - m_shift) * m_scale > _FAR)
        else:
            p_far = p_far & (turn > 0)
            m_far = m_far & (turn > 0)
        again = p_far | m_far
        usable = again == 0
        low, f_low, g_low, high, f_high, g_high = narrow_bracket(
            low, f_low, g_low, high, f_high, g_high, one, f_one, g_one, two, f_two, g_two, three, f_three, g_three, four, f_four, g_four,
            usable,
        )  # fmt: skip
        one, two, three, four, slope, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn)
        if again:  # a number is far larger than the sample: start anew from there
            p_shift = tl.where(p_far, p_seen, p_shift)
            m_shift = tl.where(m_far, m_seen, m_shift)
            one, two, three, four = zero + 0.1, zero + 1.0, zero + 10.0, zero + 100.0
        going = good & (again | (solving & (right == 0) & (low < LARGEST)))
        turn += 1
    if good == 0:
        tl.store(bad, 1)
    slope, lift = settle_slope(solving, slope, low, f_low, z, b, B)  # SPLIT programs store the same
    tl.store(solved + row * COLUMNS + SLOPE, scale_to_total(slope, z, REFERENCE).to(tl.float64))
    tl.store(solved + row * COLUMNS + LIFT, lift.to(tl.float64))
    tl.store(solved + row * COLUMNS + BASE, (share / z).to(tl.float64))
    tl.store(solved + row * COLUMNS + P_SHIFT, (p_shift * 1.0).to(tl.float64))
    tl.store(solved + row * COLUMNS + M_SHIFT, (m_shift * 1.0).to(tl.float64))
    if SPLIT > 1:
        rest = tl.load(uniform + index + tl.arange(0, 1))
        steep = scale_to_total(slope, z, REFERENCE)
        left = find_outcome_together(
            1, p_row, m_row, row, index, part, size, rest, out, spans, counters, p_shift, p_scale, steep, lift.to(tl.float64),
            tl.load(reals + 4), tl.load(reals + 5), LOGITS, DEPTH * BLOCK, SPLIT,
        )  # fmt: skip
        if tl.max(left, 0) >= 0:
            find_outcome_together(
                2, p_row, m_row, row, index, part, size, left, out, spans, counters, p_shift, p_scale, steep, lift.to(tl.float64),
                tl.load(reals + 4), tl.load(reals + 5), LOGITS, DEPTH * BLOCK, SPLIT,
            )  # fmt: skip
        tl.debug_barrier()
        if tl.atomic_add(counters + index * COUNTERS + COUNTERS - 1, 1) == SPLIT - 1:
            tl.store(counters + index * COUNTERS + tl.arange(0, COUNTERS), tl.zeros((COUNTERS,), tl.int32))


@triton.jit(do_not_specialize=["rows", "m_step"])
def draw(
    p, m, uniform, solved, out, bad, reals, whole, rows, size, stride, m_step, p_scale, m_scale, p_tolerance, m_tolerance,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Check, solve and draw rows, ROWS at a time, in turns with the other programs; set `bad` if one is not a distribution."""
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
