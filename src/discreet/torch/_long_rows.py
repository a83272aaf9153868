"""The Triton kernels for long rows that `discreet.torch._gpu` launches: to check and to solve them, and to write the integers for `weights`.

Over a uniform reference `check_long_rows_and_draw_shared` reads every row once. A row whose integer falls on the part that all clients share
has its outcome then, and the others are listed for `solve_long_rows_and_draw_outcomes`. Over any other reference that kernel takes all rows.
It finds the slope, first on a sample of the row in registers, then from four slopes around it on the whole row, usually in one or two passes
over memory. It finds the outcome without another pass, because a row is drawn in two steps: first one of its portions, then an outcome of
that portion (`_portions`).

Listed rows, and few rows over a reference, are solved by groups of programs. Each program of a group sums some of the portions of a row,
and all add up the sums of all portions in the same order. The sum of the reference is added up in integers, so it has no order. So the number
of programs that share a row, and with it the batch, has no influence on any integer.
"""

import triton
import triton.language as tl

from discreet.torch._portions import (
    MORE_ROUNDINGS,
    SURELY_PAST,
    SURELY_WHOLE,
    TOTAL,
    add_bounds,
    bound_portion_totals,
    find_outcome_in_lane,
    find_outcome_in_row,
    find_outcome_in_weight_part,
    find_portion,
    interpolate_portion_totals,
    select_value_at_evaluated_slope,
)
from discreet.torch._tiles import (
    BASE,
    COLUMNS,
    LARGEST,
    LIFT,
    M_SHIFT,
    NEARLY,
    P_SHIFT,
    SLOPE,
    TURNS,
    UNKNOWN,
    WHOLE,
    factor_to_total,
    finite_largest_logit,
    floor_divide,
    guess_slope,
    integer_bounds_and_excess,
    is_distribution,
    largest_logit_or_sum_of_lanes,
    load_numbers,
    masses_of_numbers,
    narrow_bracket,
    order_independent_sum,
    propose_slopes,
    reduce_sums_at_four_slopes,
    scan_row_at_four_slopes,
    scan_row_for_reference_mass,
    slope_and_lift_of_solution,
    wait_for_group,
    word_to_integer,
)

UNIT = tl.constexpr(8192)  # columns: a whole number of what a program reads at a time
MOST_PARTS = tl.constexpr(16)  # programs that check one row together
SUMS = tl.constexpr(16)  # places for the sums of a portion: F and G at four slopes, what `is_distribution` takes, and Z
_STEADY = tl.constexpr(1e-3)  # change of G over four slopes that have few corners between them
_FAR = tl.constexpr(60.0)  # powers of two by which a mass may exceed the assumed largest
_NEARBY = tl.constexpr(1.05)  # factors around the slope of a sample
_AROUND = tl.constexpr(1.25)


@triton.jit(do_not_specialize=["parts", "drawing", "listing"])
def check_long_rows_and_draw_shared(
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
    columns_per_part = tl.cdiv(tl.cdiv(size, parts), BLOCK) * BLOCK
    for first in range(part * columns_per_part, tl.minimum(size, part * columns_per_part + columns_per_part), BLOCK):
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
        if is_distribution(seen, tolerance, LOGITS) == 0:
            tl.store(bad, 1)
        if drawing != 0:
            uniform = word_to_integer(tl.load(words + row))
            if uniform < tl.load(whole + 1):
                tl.store(out + row, floor_divide(uniform, tl.load(whole + 0), tl.load(whole + 3)))
            elif listing != 0:
                tl.store(listed + tl.atomic_add(counts, 1), row)


@triton.jit(do_not_specialize=["rows"])
def store_shared_outcomes(words, out, whole, rows, BLOCK: tl.constexpr):
    """Store the outcomes of rows whose integers are shared, over a uniform reference."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    uniform = word_to_integer(tl.load(words + row, mask=row < rows, other=0))
    is_shared = (row < rows) & (uniform < tl.load(whole + 1))
    tl.store(out + row, floor_divide(uniform, tl.load(whole + 0), tl.load(whole + 3)), mask=is_shared)


@triton.jit(do_not_specialize=["m_step", "rows", "most", "keep"])
def solve_long_rows_and_draw_outcomes(
    p, m, listed, counts, words, solved, portions, out, bad, reals, whole, sums, counters, size, stride, m_step, p_scale, m_scale,
    p_tolerance, m_tolerance, sample_step, rows, most, keep,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, SAMPLED: tl.constexpr, WIDTH: tl.constexpr,
    UNITS: tl.constexpr, EACH: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Find slope, lift and outcome of each row over a reference, which is checked too, or of each listed row.

    There are `rows` of them; a negative number stands for the one in `counts`. Over a reference SPLIT programs solve a row. Otherwise the
    programs form groups of a power of two up to `most`, as large as the number of rows allows. Programs of a group run at once. If `keep` is
    not 0, bounds and totals of the portions are stored.
    """
    b = tl.load(reals + 0).to(tl.float32)
    B = tl.load(reals + 1).to(tl.float32)
    ratio = tl.load(reals + 2).to(tl.float32)
    share = tl.load(reals + 3).to(tl.float32)  # 2^62 b
    lower = tl.load(reals + 4)
    upper = tl.load(reals + 5)
    units = tl.cdiv(size, UNIT)
    PORTIONS: tl.constexpr = BLOCK if REFERENCE else UNITS
    OWN: tl.constexpr = BLOCK // SPLIT  # lanes of this program
    numbers_of_portions = tl.arange(0, PORTIONS)
    tasks = rows
    if rows < 0:
        tasks = tl.load(counts).to(tl.int32)
    split = most
    if REFERENCE:
        split = SPLIT
    else:
        while (split > 1) & (split * tasks > tl.num_programs(0)):
            split = split // 2
    groups = tl.num_programs(0) // split
    group = tl.program_id(0) // split
    part = tl.program_id(0) % split
    counter = counters + group * 2
    sums += group.to(tl.int64) * (2 * PORTIONS * SUMS)
    phase = group * 0
    zero = b * 0.0
    for task in range(tl.where(group < groups, group, tasks), tasks, groups):
        row = tl.load(listed + task)
        uniform = word_to_integer(tl.load(words + row))
        solving = uniform >= tl.load(whole + 2)
        p_row = p + row * stride
        m_row = m + row * m_step * stride
        columns = tl.arange(0, SAMPLED)[:, None] * sample_step + tl.arange(0, WIDTH)[None, :]
        inside = columns < size
        numbers = load_numbers(p_row + columns, inside, LOGITS)
        p_shift = finite_largest_logit(tl.max(tl.max(numbers, 1), 0)) if LOGITS else zero
        m_shift = zero
        guess = zero + 1.0
        if REFERENCE:
            others = load_numbers(m_row + columns, inside, LOGITS)
            m_shift = finite_largest_logit(tl.max(tl.max(others, 1), 0)) if LOGITS else zero
            others = masses_of_numbers(others, m_shift, m_scale, LOGITS)
        else:
            others = tl.where(inside, 1.0, 0.0)
        if solving:
            guess = guess_slope(masses_of_numbers(numbers, p_shift, p_scale, LOGITS), others, b, B)

        one, two, three, four = guess / _AROUND, guess / _NEARBY, guess * _NEARBY, guess * _AROUND
        low, f_low, g_low = zero, zero - UNKNOWN, zero
        high, f_high, g_high = zero + LARGEST, zero + UNKNOWN, zero
        slope, z = guess, zero + size
        good = row >= 0
        going = row >= 0
        again = row >= 0  # whether the shifts, and so F, may still change
        f_below = tl.zeros((PORTIONS,), tl.float32)  # F/b up to Z/b, and G, of every portion at the ends of the bracket
        g_below = f_below
        f_above = f_below
        g_above = f_below
        if REFERENCE:
            z_portions = tl.zeros((PORTIONS,), tl.float32)
        else:
            z_portions = tl.minimum(tl.maximum(size - numbers_of_portions * UNIT, 0), UNIT).to(tl.float32)
        turn = 0
        while (turn < TURNS) & going:
            every = sums + (phase % 2) * (PORTIONS * SUMS)
            if REFERENCE:
                if solving:
                    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z_now, p_seen, m_seen = scan_row_at_four_slopes(
                        p_row, m_row, part * OWN, size, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four,
                        REFERENCE, LOGITS, DEPTH, OWN, BLOCK,
                    )  # fmt: skip
                else:
                    z_now, p_seen, m_seen = scan_row_for_reference_mass(
                        p_row, m_row, part * OWN, size, m_shift, m_scale, LOGITS, DEPTH, OWN, BLOCK
                    )
                    f_one = tl.zeros((OWN,), tl.float32)
                    g_one, f_two, g_two, f_three, g_three, f_four, g_four = (
                        f_one,
                        f_one,
                        f_one,
                        f_one,
                        f_one,
                        f_one,
                        f_one,
                    )
                p_all = largest_logit_or_sum_of_lanes(p_seen, LOGITS)
                m_all = largest_logit_or_sum_of_lanes(m_seen, LOGITS)
                if SPLIT > 1:
                    mine = every + part * OWN + tl.arange(0, OWN)
                    tl.store(mine + 0 * BLOCK, f_one)
                    tl.store(mine + 1 * BLOCK, g_one)
                    tl.store(mine + 2 * BLOCK, f_two)
                    tl.store(mine + 3 * BLOCK, g_two)
                    tl.store(mine + 4 * BLOCK, f_three)
                    tl.store(mine + 5 * BLOCK, g_three)
                    tl.store(mine + 6 * BLOCK, f_four)
                    tl.store(mine + 7 * BLOCK, g_four)
                    tl.store(mine + 8 * BLOCK, z_now)
                    tl.store(every + 9 * BLOCK + part, p_all)
                    tl.store(every + 10 * BLOCK + part, m_all)
                    wait_for_group(counter, phase, split)
                    phase += 1
                    theirs = every + numbers_of_portions
                    f_one = tl.load(theirs + 0 * BLOCK, cache_modifier=".cg")
                    g_one = tl.load(theirs + 1 * BLOCK, cache_modifier=".cg")
                    f_two = tl.load(theirs + 2 * BLOCK, cache_modifier=".cg")
                    g_two = tl.load(theirs + 3 * BLOCK, cache_modifier=".cg")
                    f_three = tl.load(theirs + 4 * BLOCK, cache_modifier=".cg")
                    g_three = tl.load(theirs + 5 * BLOCK, cache_modifier=".cg")
                    f_four = tl.load(theirs + 6 * BLOCK, cache_modifier=".cg")
                    g_four = tl.load(theirs + 7 * BLOCK, cache_modifier=".cg")
                    z_now = tl.load(theirs + 8 * BLOCK, cache_modifier=".cg")
                    parts = every + tl.arange(0, SPLIT)
                    p_all = largest_logit_or_sum_of_lanes(tl.load(parts + 9 * BLOCK, cache_modifier=".cg"), LOGITS)
                    m_all = largest_logit_or_sum_of_lanes(tl.load(parts + 10 * BLOCK, cache_modifier=".cg"), LOGITS)
                if again:  # the sum of the first pass with these shifts
                    z_portions = z_now
                    z = order_independent_sum(z_now)
            else:
                for unit in range(part, units, split):
                    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z_now, p_seen, m_seen = scan_row_at_four_slopes(
                        p_row, m_row, unit * UNIT, tl.minimum(size, unit * UNIT + UNIT), p_shift, m_shift, p_scale, m_scale, b, B,
                        one, two, three, four, REFERENCE, LOGITS, DEPTH, BLOCK, BLOCK,
                    )  # fmt: skip
                    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four = reduce_sums_at_four_slopes(
                        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, 0
                    )
                    mine = every + unit * SUMS
                    tl.store(mine + 0, f_one)
                    tl.store(mine + 1, g_one)
                    tl.store(mine + 2, f_two)
                    tl.store(mine + 3, g_two)
                    tl.store(mine + 4, f_three)
                    tl.store(mine + 5, g_three)
                    tl.store(mine + 6, f_four)
                    tl.store(mine + 7, g_four)
                    tl.store(mine + 8, largest_logit_or_sum_of_lanes(p_seen, LOGITS))
                wait_for_group(counter, phase, split)
                phase += 1
                is_known = numbers_of_portions < units
                every += numbers_of_portions * SUMS
                f_one = tl.load(every + 0, mask=is_known, other=0.0, cache_modifier=".cg")
                g_one = tl.load(every + 1, mask=is_known, other=0.0, cache_modifier=".cg")
                f_two = tl.load(every + 2, mask=is_known, other=0.0, cache_modifier=".cg")
                g_two = tl.load(every + 3, mask=is_known, other=0.0, cache_modifier=".cg")
                f_three = tl.load(every + 4, mask=is_known, other=0.0, cache_modifier=".cg")
                g_three = tl.load(every + 5, mask=is_known, other=0.0, cache_modifier=".cg")
                f_four = tl.load(every + 6, mask=is_known, other=0.0, cache_modifier=".cg")
                g_four = tl.load(every + 7, mask=is_known, other=0.0, cache_modifier=".cg")
                nothing = float("-inf") if LOGITS else 0.0
                p_all = largest_logit_or_sum_of_lanes(
                    tl.load(every + 8, mask=is_known, other=nothing, cache_modifier=".cg"), LOGITS
                )
                m_all = p_all
            f_one_all, g_one_all, f_two_all, g_two_all, f_three_all, g_three_all, f_four_all, g_four_all = (
                reduce_sums_at_four_slopes(f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, 0)
            )
            good = is_distribution(p_all, p_tolerance, LOGITS)
            if REFERENCE:
                good = good & is_distribution(m_all, m_tolerance, LOGITS)
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
                low, f_low, g_low, high, f_high, g_high, one, f_one_all * b - z, g_one_all, two, f_two_all * b - z, g_two_all,
                three, f_three_all * b - z, g_three_all, four, f_four_all * b - z, g_four_all, usable,
            )  # fmt: skip
            f_below = select_value_at_evaluated_slope(
                low, f_below, one, f_one, two, f_two, three, f_three, four, f_four
            )
            g_below = select_value_at_evaluated_slope(
                low, g_below, one, g_one, two, g_two, three, g_three, four, g_four
            )
            f_above = select_value_at_evaluated_slope(
                high, f_above, one, f_one, two, f_two, three, f_three, four, f_four
            )
            g_above = select_value_at_evaluated_slope(
                high, g_above, one, g_one, two, g_two, three, g_three, four, g_four
            )
            most_open = tl.maximum(tl.maximum(g_one_all, g_two_all), tl.maximum(g_three_all, g_four_all))
            least_open = tl.minimum(tl.minimum(g_one_all, g_two_all), tl.minimum(g_three_all, g_four_all))
            wide = tl.where(most_open - least_open <= _STEADY * most_open, NEARLY, 0.0)  # else corners may cancel out
            one, two, three, four, slope, right = propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn, wide)
            if again:  # a number is far larger than the sample: start anew from there
                p_shift = tl.where(p_far, p_all, p_shift)
                m_shift = tl.where(m_far, m_all, m_shift)
                one, two, three, four = zero + 0.1, zero + 1.0, zero + 10.0, zero + 100.0
            going = good & (again | (solving & (right == 0) & (low < LARGEST)))
            turn += 1
        if good == 0:
            tl.store(bad, 1)
        # all programs of a group find the same
        slope, lift = slope_and_lift_of_solution(solving, slope, low, f_low, z, b, B)
        steep = factor_to_total(slope, z if REFERENCE else tl.load(reals + 6), REFERENCE)
        base = share / z
        tl.store(solved + row * COLUMNS + SLOPE, steep.to(tl.float64))
        tl.store(solved + row * COLUMNS + LIFT, lift.to(tl.float64))
        tl.store(solved + row * COLUMNS + BASE, base.to(tl.float64))
        tl.store(solved + row * COLUMNS + P_SHIFT, (p_shift * 1.0).to(tl.float64))
        tl.store(solved + row * COLUMNS + M_SHIFT, (m_shift * 1.0).to(tl.float64))
        totals = interpolate_portion_totals(
            slope, low, f_low > -UNKNOWN, f_below * b, g_below, high, f_high < UNKNOWN, f_above * b, g_above
        )
        at_ceiling = (totals - b * z_portions) / (B - b)
        totals = tl.where(lift > 0.0, B * at_ceiling + (b * lift) * (z_portions - at_ceiling), totals)
        wanted_totals = (totals.to(tl.float64) * (TOTAL / z.to(tl.float64))).to(tl.int64)
        if REFERENCE:
            columns_per_lane = tl.cdiv(size, BLOCK)
            surely, least, fullest = bound_portion_totals(
                z_portions, base, ratio, columns_per_lane, columns_per_lane + MORE_ROUNDINGS
            )
        else:
            columns_of_portions = tl.minimum(tl.maximum(size - numbers_of_portions * UNIT, 0), UNIT)
            least = columns_of_portions * lower.to(tl.int64)
            fullest = tl.where(
                z_portions * upper < SURELY_WHOLE, tl.minimum(columns_of_portions * upper.to(tl.int64), WHOLE), WHOLE
            )
            surely = least
        wanted_totals = tl.minimum(tl.maximum(wanted_totals, least), fullest)
        marked_least = least
        if REFERENCE:
            surely_sum, least_sum, wanted_sum, wanted_roughly, fullest_roughly, crossed_portions = tl.reduce(
                (
                    surely, least, wanted_totals, wanted_totals.to(tl.float64), fullest.to(tl.float64),
                    (fullest < least).to(tl.int32),
                ),
                0, add_bounds,
            )  # fmt: skip
            wanted_sum = tl.where(wanted_roughly > SURELY_PAST, WHOLE, wanted_sum)
            whole_row = (
                (crossed_portions > 0)
                | (surely_sum < tl.load(whole + 2))
                | (least_sum > WHOLE)
                | (fullest_roughly < SURELY_WHOLE)
            )
            marked_least = tl.where(whole_row, -1, least)
        if keep != 0:
            portions_out = portions + row * 4 * PORTIONS + numbers_of_portions
            tl.store(portions_out, surely)
            tl.store(portions_out + PORTIONS, marked_least)
            tl.store(portions_out + 2 * PORTIONS, wanted_totals)
            tl.store(portions_out + 3 * PORTIONS, fullest)
        if REFERENCE:
            if part == 0:
                if whole_row:
                    outcome = find_outcome_in_row(
                        p_row, m_row, size, uniform, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, LOGITS,
                    )  # fmt: skip
                else:
                    start = tl.where(
                        uniform < surely_sum,
                        0,
                        tl.where(uniform < least_sum, surely, tl.where(uniform < wanted_sum, least, wanted_totals)),
                    )
                    end = tl.where(
                        uniform < surely_sum,
                        surely,
                        tl.where(uniform < least_sum, least, tl.where(uniform < wanted_sum, wanted_totals, fullest)),
                    )
                    before = tl.where(
                        uniform < least_sum, surely_sum, tl.where(uniform < wanted_sum, least_sum, wanted_sum)
                    )
                    portion, at = find_portion(
                        start, end, uniform - tl.where(uniform < surely_sum, 0, before), PORTIONS
                    )
                    outcome = find_outcome_in_lane(
                        p_row, m_row, portion, size, at, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, LOGITS, BLOCK, EACH,
                    )  # fmt: skip
                tl.store(out + row, outcome)
        else:
            portion, at = find_portion(least * 0, wanted_totals - least, uniform - tl.load(whole + 1), PORTIONS)
            if portion == PORTIONS:
                portion, at = find_portion(wanted_totals - least, fullest - least, at, PORTIONS)
            if portion % split == part:
                first = portion * UNIT
                end = tl.minimum(size, first + UNIT)
                rest = at + tl.zeros((1,), tl.int64)
                outcome, rest = find_outcome_in_weight_part(
                    1, p_row, p_row, first, end, rest, p_shift, zero, p_scale, p_scale, steep, lift, zero, zero, lower, upper,
                    False, LOGITS, DEPTH * BLOCK,
                )  # fmt: skip
                if tl.max(outcome, 0) < 0:
                    outcome, rest = find_outcome_in_weight_part(
                        2, p_row, p_row, first, end, rest, p_shift, zero, p_scale, p_scale, steep, lift, zero, zero, lower, upper,
                        False, LOGITS, DEPTH * BLOCK,
                    )  # fmt: skip
                tl.store(out + row + tl.arange(0, 1), outcome)
    if (not REFERENCE) | (SPLIT > 1):
        tl.debug_barrier()
        if group < groups:
            if tl.atomic_add(counter + 1, 1) == split - 1:  # the last one of a group leaves its counters at 0
                tl.store(counter, 0)
                tl.store(counter + 1, 0)
        if rows < 0:
            if tl.atomic_add(counts + 1, 1) == tl.num_programs(0) - 1:
                tl.store(counts, 0)
                tl.store(counts + 1, 0)


@triton.jit(do_not_specialize=["m_step"])
def write_integer_bounds_and_excess(
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
    p_mass = masses_of_numbers(load_numbers(p + row * stride + columns, inside, LOGITS), p_shift, p_scale, LOGITS)
    if REFERENCE:
        m_mass = masses_of_numbers(
            load_numbers(m + row * m_step * stride + columns, inside, LOGITS), m_shift, m_scale, LOGITS
        )
    else:
        m_mass = p_mass
    low, high, excess = integer_bounds_and_excess(
        p_mass, m_mass, inside, steep, lift, base, tl.load(reals + 2).to(tl.float32), tl.load(reals + 4), tl.load(reals + 5),
        REFERENCE,
    )  # fmt: skip
    offsets = row * size + columns
    tl.store(lower_out + offsets, low, mask=inside)
    tl.store(upper_out + offsets, high, mask=inside)
    tl.store(excess_out + offsets, excess, mask=inside)
