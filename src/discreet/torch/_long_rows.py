"""The Triton kernels for long rows that `discreet.torch._gpu` launches: `check`, `solve` and `pick`; and `write`, for `weights`.

Over a uniform reference `check` reads every row once. A row whose integer falls on the part that all clients share has its outcome then, and
the others are listed for `solve`. Over any other reference `solve` takes all rows. It finds the slope, first on a sample of the row in
registers, then from four slopes around it on the whole row, usually in one or two passes over memory. Integers are summed up to the row's own
by `solve` too, or over a reference by `pick`.

The 2^62 integers are assigned in this order: L of every outcome first, then the excess, then the remaining room. Over a uniform reference,
where sum L is known in advance, the excess begins there, as in `discreet.release._lattice`. Over any other reference it is counted from the
upper end, so that sum L need not be known.

Listed rows are cut into units of UNIT columns. Groups of programs share a row, each program sums some of its units, and all add up the sums
of all units in the same order. So the number of programs that share a row, and with it the batch, has no influence on any integer.
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
    WHOLE,
    acceptable,
    clip_masses,
    divide,
    factor_to_total,
    falls_here,
    finite,
    first_past,
    integers,
    load_numbers,
    mass,
    narrow_bracket,
    propose_slopes,
    reduce_sums,
    settle_slope,
    wait_for_group,
    word_to_integer,
)

UNIT = tl.constexpr(8192)  # columns: a whole number of what a program reads at a time
MOST_PARTS = tl.constexpr(16)  # programs that check one row together


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
def _add_up(one, other):
    """The sum of two integers, or 2^62 - 1 if it is larger."""
    return tl.minimum(one + other, WHOLE - 1)


@triton.jit
def _unit_of(sums, rest, units, UNITS: tl.constexpr):
    """(the unit in which `rest` falls, or their number; the sum before it; the sum of all)."""
    numbers = tl.arange(0, UNITS)
    ends = tl.associative_scan(tl.load(sums + numbers, mask=numbers < units, other=0, cache_modifier=".cg"), 0, _add_up)
    passed = ends <= rest
    at = tl.sum((passed & (numbers < units)).to(tl.int32), 0)
    return at, tl.max(tl.where(passed, ends, 0), 0), tl.max(ends, 0)


@triton.jit
def _find_outcome_together(
    PART: tl.constexpr,
    p, size, units, split, part, rest, out, spans, counter, phase, p_shift, p_scale, steep, lift, lower, upper,
    LOGITS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """As `find_outcome` on a whole row, by the programs of a group: each sums its units, and the one with the unit in which `rest` falls
    stores the outcome. Returns the remainder beyond the end, or -1 if there is an outcome.
    """
    none = p_shift * 0.0
    most = tl.full((1,), WHOLE - 1, tl.int64)  # larger sums count as this
    every = spans + (phase % 2) * UNITS
    for unit in range(part, units, split):
        found, left = find_outcome(
            PART, p, p, unit * UNIT, tl.minimum(size, unit * UNIT + UNIT), most, p_shift, none, p_scale, p_scale, steep, lift, none, none,
            lower, upper, False, LOGITS, BLOCK,
        )  # fmt: skip
        tl.store(every + unit + tl.arange(0, 1), tl.where(found < 0, most - left, most))
    wait_for_group(counter, phase, split)
    at, before, total = _unit_of(every, rest, units, UNITS)
    if (at < units) & (at % split == part):
        found, left = find_outcome(
            PART, p, p, at * UNIT, tl.minimum(size, at * UNIT + UNIT), rest - before, p_shift, none, p_scale, p_scale, steep, lift,
            none, none, lower, upper, False, LOGITS, BLOCK,
        )  # fmt: skip
        tl.store(out + tl.arange(0, 1), found)
    return tl.where(at < units, -1, rest - total)


@triton.jit(do_not_specialize=["m_step"])
def pick(
    p,
    m,
    words,
    solved,
    out,
    reals,
    whole,
    size,
    stride,
    m_step,
    p_scale,
    m_scale,
    LOGITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find the outcome of each row over a reference, by its integer."""
    row = tl.program_id(0).to(tl.int64)
    drawn = word_to_integer(tl.load(words + row + tl.arange(0, 1)))
    p_row = p + row * stride
    m_row = m + row * m_step * stride
    steep = tl.load(solved + row * COLUMNS + SLOPE).to(tl.float32)
    lift = tl.load(solved + row * COLUMNS + LIFT).to(tl.float32)
    base = tl.load(solved + row * COLUMNS + BASE).to(tl.float32)
    p_shift = tl.load(solved + row * COLUMNS + P_SHIFT).to(tl.float32)
    m_shift = tl.load(solved + row * COLUMNS + M_SHIFT).to(tl.float32)
    ratio = tl.load(reals + 2).to(tl.float32)
    found = tl.full((1,), -1, tl.int64)
    if tl.max(drawn, 0) < tl.load(whole + 1):
        found, left = find_outcome(
            0, p_row, m_row, 0, size, drawn, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, ratio, ratio,
            True, LOGITS, BLOCK,
        )  # fmt: skip
    if tl.max(found, 0) < 0:
        found, left = find_outcome(
            1, p_row, m_row, 0, size, -drawn + (WHOLE - 1), p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, ratio, ratio,
            True, LOGITS, BLOCK,
        )  # fmt: skip
        if tl.max(found, 0) < 0:
            found, left = find_outcome(
                2, p_row, m_row, 0, size, left, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, ratio, ratio,
                True, LOGITS, BLOCK,
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


@triton.jit(do_not_specialize=["parts", "drawing", "listing"])
def check(
    p,
    words,
    out,
    listed,
    counts,
    seen_parts,
    bad,
    whole,
    size,
    stride,
    tolerance,
    parts,
    drawing,
    listing,
    LOGITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Set `bad` if a row is not a distribution. If `drawing` is not 0, store its outcome if its integer is shared, and else list the row if
    `listing` is not 0.

    `parts` programs read a row together, and the last one of them judges it.
    """
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    start = p + row * stride
    seen = float("-inf") if LOGITS else 0.0
    each = tl.cdiv(tl.cdiv(size, parts), BLOCK) * BLOCK
    for first in range(part * each, tl.minimum(size, part * each + each), BLOCK):
        columns = first + tl.arange(0, BLOCK)
        numbers = load_numbers(start + columns, columns < size, LOGITS)
        if LOGITS:
            seen = tl.maximum(seen, tl.max(numbers, 0))
        else:
            seen += tl.sum(numbers, 0)
    judging = parts == 1
    if parts > 1:
        tl.store(seen_parts + row * MOST_PARTS + part, seen)
        tl.debug_barrier()
        judging = tl.atomic_add(counts + 2 + row, 1) == parts - 1
        if judging:
            others = tl.arange(0, MOST_PARTS)
            none = float("-inf") if LOGITS else 0.0
            every = tl.load(
                seen_parts + row * MOST_PARTS + others, mask=others < parts, other=none, cache_modifier=".cg"
            )
            seen = tl.max(every, 0) if LOGITS else tl.sum(every, 0)
            tl.store(counts + 2 + row, 0)
    if judging:
        if acceptable(seen, tolerance, LOGITS) == 0:
            tl.store(bad, 1)
        if drawing != 0:
            drawn = word_to_integer(tl.load(words + row))
            if drawn < tl.load(whole + 1):
                tl.store(out + row, divide(drawn, tl.load(whole + 0), tl.load(whole + 3)))
            elif listing != 0:
                tl.store(listed + tl.atomic_add(counts, 1), row)


@triton.jit(do_not_specialize=["rows"])
def draw_shared(words, out, whole, rows, BLOCK: tl.constexpr):
    """Store the outcomes of rows whose integers are shared, over a uniform reference."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    drawn = word_to_integer(tl.load(words + row, mask=row < rows, other=0))
    shared = (row < rows) & (drawn < tl.load(whole + 1))
    tl.store(out + row, divide(drawn, tl.load(whole + 0), tl.load(whole + 3)), mask=shared)


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


@triton.jit(do_not_specialize=["m_step", "rows", "most"])
def solve(
    p, m, listed, counts, words, solved, out, bad, reals, whole, sums, spans, counters, size, stride, m_step, p_scale, m_scale,
    p_tolerance, m_tolerance, sample_step, rows, most,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, SAMPLED: tl.constexpr,
    UNITS: tl.constexpr,
):  # fmt: skip
    """Find slope, lift and scales of each row over a reference, which is checked too; or of each listed row, and its outcome.

    There are `rows` of them; a negative number stands for the one in `counts`. Over a reference one program solves one row. Otherwise the
    programs form groups of a power of two up to `most`, as large as the number of rows allows. All programs run at once.
    """
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    share = tl.load(reals + 3).to(tl.float32)  # 2^62 b
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    units = tl.cdiv(size, UNIT)
    tasks = rows
    if rows < 0:
        tasks = tl.load(counts).to(tl.int32)
    split = most
    while (split > 1) & (split * tasks > tl.num_programs(0)):
        split = split // 2
    groups = tl.num_programs(0) // split
    group = tl.program_id(0) // split
    part = tl.program_id(0) % split
    counter = counters + group * 2
    sums += group * 2 * UNITS * 16
    spans += group * 2 * UNITS
    phase = group * 0
    zero = b * 0.0
    for task in range(tl.where(group < groups, group, tasks), tasks, groups):
        if REFERENCE:
            row = zero.to(tl.int64) + task
        else:
            row = tl.load(listed + task)
        drawn = word_to_integer(tl.load(words + row))
        solving = drawn >= tl.load(whole + 2)
        p_row = p + row * stride
        m_row = m + row * m_step * stride
        columns = tl.arange(0, SAMPLED)[:, None] * sample_step + tl.arange(0, BLOCK)[None, :]
        inside = columns < size
        numbers = load_numbers(p_row + columns, inside, LOGITS)
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
            if REFERENCE:
                f_one_all, g_one_all, f_two_all, g_two_all, f_three_all, g_three_all, f_four_all, g_four_all, z_all, p_all, m_all = _scan_row(
                    p_row, m_row, 0, size, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four, REFERENCE, LOGITS, DEPTH, BLOCK,
                )  # fmt: skip
            else:
                every = sums + (phase % 2) * UNITS * 16
                for unit in range(part, units, split):
                    mine = every + unit * 16
                    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z_now, p_seen, m_seen = _scan_row(
                        p_row, m_row, unit * UNIT, tl.minimum(size, unit * UNIT + UNIT), p_shift, m_shift, p_scale, m_scale, b, B,
                        one, two, three, four, REFERENCE, LOGITS, DEPTH, BLOCK,
                    )  # fmt: skip
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
                    tl.store(mine + 10, m_seen)
                wait_for_group(counter, phase, split)
                phase += 1
                table = tl.arange(0, 16)[:, None] + tl.arange(0, UNITS)[None, :] * 16
                known = (tl.arange(0, 16) < 11)[:, None] & (tl.arange(0, UNITS) < units)[None, :]
                found_sums = tl.load(every + table, mask=known, other=0.0, cache_modifier=".cg")
                which = tl.arange(0, 16)
                totals = tl.sum(found_sums, 1)
                f_one_all = tl.sum(tl.where(which == 0, totals, 0.0), 0)
                g_one_all = tl.sum(tl.where(which == 1, totals, 0.0), 0)
                f_two_all = tl.sum(tl.where(which == 2, totals, 0.0), 0)
                g_two_all = tl.sum(tl.where(which == 3, totals, 0.0), 0)
                f_three_all = tl.sum(tl.where(which == 4, totals, 0.0), 0)
                g_three_all = tl.sum(tl.where(which == 5, totals, 0.0), 0)
                f_four_all = tl.sum(tl.where(which == 6, totals, 0.0), 0)
                g_four_all = tl.sum(tl.where(which == 7, totals, 0.0), 0)
                z_all = tl.sum(tl.where(which == 8, totals, 0.0), 0)
                if LOGITS:
                    largest = tl.max(tl.where(known, found_sums, float("-inf")), 1)
                    p_all = tl.max(tl.where(which == 9, largest, float("-inf")), 0)
                    m_all = tl.max(tl.where(which == 10, largest, float("-inf")), 0)
                else:
                    p_all = tl.sum(tl.where(which == 9, totals, 0.0), 0)
                    m_all = tl.sum(tl.where(which == 10, totals, 0.0), 0)
            z = tl.where(again, z_all, z)  # from the first pass with these shifts: independent of the client
            good = acceptable(p_all, p_tolerance, LOGITS)
            if REFERENCE:
                good = good & acceptable(m_all, m_tolerance, LOGITS)
            p_far = again & good & (turn == 0)
            m_far = p_far
            if LOGITS:
                p_far = p_far & ((p_all - p_shift) * p_scale > _FAR)
                m_far = m_far & ((m_all - m_shift) * m_scale > _FAR)
            else:
                p_far = p_far & (turn > 0)
                m_far = m_far & (turn > 0)
            again = p_far | m_far
            usable = again == 0
            low, f_low, g_low, high, f_high, g_high = narrow_bracket(
                low, f_low, g_low, high, f_high, g_high, one, f_one_all, g_one_all, two, f_two_all, g_two_all,
                three, f_three_all, g_three_all, four, f_four_all, g_four_all, usable,
            )  # fmt: skip
            one, two, three, four, slope, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn)
            if again:  # a number is far larger than the sample: start anew from there
                p_shift = tl.where(p_far, p_all, p_shift)
                m_shift = tl.where(m_far, m_all, m_shift)
                one, two, three, four = zero + 0.1, zero + 1.0, zero + 10.0, zero + 100.0
            going = good & (again | (solving & (right == 0) & (low < LARGEST)))
            turn += 1
        if good == 0:
            tl.store(bad, 1)
        slope, lift = settle_slope(solving, slope, low, f_low, z, b, B)  # all programs of a group store the same
        steep = factor_to_total(slope, z if REFERENCE else tl.load(reals + 6), REFERENCE)
        base = share / z
        tl.store(solved + row * COLUMNS + SLOPE, steep.to(tl.float64))
        tl.store(solved + row * COLUMNS + LIFT, lift.to(tl.float64))
        tl.store(solved + row * COLUMNS + BASE, base.to(tl.float64))
        tl.store(solved + row * COLUMNS + P_SHIFT, (p_shift * 1.0).to(tl.float64))
        tl.store(solved + row * COLUMNS + M_SHIFT, (m_shift * 1.0).to(tl.float64))
        if not REFERENCE:
            rest = drawn - tl.load(whole + 1) + tl.zeros((1,), tl.int64)
            left = _find_outcome_together(
                1, p_row, size, units, split, part, rest, out + row, spans, counter, phase, p_shift, p_scale, steep, lift, lower, upper,
                LOGITS, DEPTH * BLOCK, UNITS,
            )  # fmt: skip
            phase += 1
            if tl.max(left, 0) >= 0:
                _find_outcome_together(
                    2, p_row, size, units, split, part, left, out + row, spans, counter, phase, p_shift, p_scale, steep, lift, lower, upper,
                    LOGITS, DEPTH * BLOCK, UNITS,
                )  # fmt: skip
                phase += 1
    if not REFERENCE:
        tl.debug_barrier()
        if group < groups:
            if tl.atomic_add(counter + 1, 1) == split - 1:  # the last one of a group leaves its counters at 0
                tl.store(counter, 0)
                tl.store(counter + 1, 0)
        if rows < 0:
            if tl.atomic_add(counts + 1, 1) == tl.num_programs(0) - 1:
                tl.store(counts, 0)
                tl.store(counts + 1, 0)
