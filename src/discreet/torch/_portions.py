"""Portions of a long row: bounds of their totals, the totals themselves, and the outcome of an integer (Triton).

The columns of a row are cut into portions: units of consecutive columns over a uniform reference, and over any other the columns that one
lane of a program reads. Every portion has a total V, and all totals sum to 2^62. V is the sum of the portion at the slope of its row, as
far as the passes over the row tell it, clipped to what the portion can hold: sum L <= V <= sum U. Within a portion the V integers are
assigned in this order: L of every outcome, then the excess, then the remaining room. So every outcome has between L and U integers, and
errors of V can cost utility only.

Over a uniform reference sum L and sum U are known. Over any other `bound_portion_totals` bounds them by the sum of the portion's masses. A
reference of which a portion is too small for these bounds is drawn as a single portion. All of this depends on the reference alone.
"""

import triton
import triton.language as tl

from discreet.torch._tiles import (
    WHOLE,
    first_column_where_sum_exceeds,
    integer_bounds_and_excess,
    load_numbers,
    masses_of_numbers,
    row_sums_and_whether_rest_is_inside,
)

TOTAL = tl.constexpr(float(1 << 62))
SURELY_WHOLE = tl.constexpr(float(1 << 62) * (1.0 + 2.0**-30))  # also after a sum in float64
SURELY_PAST = tl.constexpr(1.5 * (1 << 62))  # a rough sum above this is beyond 2^62; one below fits 63 bits
MORE_ROUNDINGS = tl.constexpr(16)  # of products, beyond those of sums
_ROUNDING = tl.constexpr(2.0**-24)  # of an operation in float32, at most
_MUCH = tl.constexpr(16.0)
_SEARCHED = tl.constexpr(4096)  # outcomes of a row that a program searches at a time


@triton.jit
def find_outcome_in_weight_part(
    PART: tl.constexpr,
    p, m, first, size, rest, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, lower, upper,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(the outcome on which `rest` falls or -1, the remainder beyond the end) in the sums of L (PART 0), of the excess E (1), or of the
    room above it (2), over the columns from `first` on.
    """
    outcome = tl.full((1,), -1, tl.int64)
    first = first + size * 0  # a variable, not a constant
    searching = first < size
    while searching:
        columns = first + tl.arange(0, BLOCK)
        inside = (columns < size)[None, :]
        if PART == 0:
            p_mass = tl.zeros((1, BLOCK), tl.float32)
        else:
            p_mass = masses_of_numbers(load_numbers(p + columns[None, :], inside, LOGITS), p_shift, p_scale, LOGITS)
        if REFERENCE:
            m_mass = masses_of_numbers(load_numbers(m + columns[None, :], inside, LOGITS), m_shift, m_scale, LOGITS)
        else:
            m_mass = p_mass
        low, high, excess = integer_bounds_and_excess(
            p_mass, m_mass, inside, steep, lift, base, ratio, lower, upper, REFERENCE
        )
        if PART == 0:
            part = low
        elif PART == 1:
            part = excess
        else:
            part = high - low - excess
        sums, here = row_sums_and_whether_rest_is_inside(part, rest)
        if tl.max(here.to(tl.int32), 0) > 0:
            outcome = first_column_where_sum_exceeds(part, rest, columns, size)
        else:
            rest = rest - sums
        first += BLOCK
        searching = (first < size) & (tl.max(outcome, 0) < 0)
    return outcome, rest


@triton.jit
def _add_up_to_limit(one, other):
    """The sum of two integers, or 2^62 - 1 if it is larger."""
    return tl.minimum(one + other, WHOLE - 1)


@triton.jit
def find_portion(start, end, rest, PORTIONS: tl.constexpr):
    """(the portion on which `rest` falls in the sums of end - start, or their number; the integer within that portion, or the remainder)."""
    ends = tl.associative_scan(tl.minimum(end - start, WHOLE - 1), 0, _add_up_to_limit)
    is_passed = ends <= rest
    portion = tl.sum(is_passed.to(tl.int32), 0)
    rest -= tl.max(tl.where(is_passed, ends, 0), 0)
    return portion, rest + tl.sum(tl.where(tl.arange(0, PORTIONS) == portion, start, 0), 0)


@triton.jit
def select_value_at_evaluated_slope(slope, before, one, of_one, two, of_two, three, of_three, four, of_four):
    """What is known of every portion at a slope: if it is one of the four, what belongs to that; else what was known before."""
    return tl.where(
        slope == one,
        of_one,
        tl.where(slope == two, of_two, tl.where(slope == three, of_three, tl.where(slope == four, of_four, before))),
    )


@triton.jit
def interpolate_portion_totals(slope, low, known_low, f_low, g_low, high, known_high, f_high, g_high):
    """F up to Z of every portion at a slope, by Newton's steps from the ends of a bracket, of which at least one is known.

    The step from an end that is much nearer is taken. Otherwise F of a portion with one corner between the ends is the smaller or the
    larger of the two steps, by the kind of corner.
    """
    up = f_low + g_low * (slope - low)
    down = f_high - g_high * (high - slope)
    between = tl.where(g_low > g_high, tl.minimum(up, down), tl.maximum(up, down))
    only_up = (known_high == 0) | (_MUCH * (slope - low) < high - slope)
    only_down = (known_low == 0) | (_MUCH * (high - slope) < slope - low)
    return tl.where(only_up, up, tl.where(only_down, down, between))


@triton.jit
def bound_portion_totals(z, base, ratio, each, additions):
    """Of portions of at most `each` outcomes: (at most sum L, at least sum L, at most sum U), as integers, from their sums z of masses.

    z was rounded `additions` times, L and U are rounded down, and every product is rounded. Without mass all three are 0.
    """
    ideal = z.to(tl.float64) * base.to(tl.float64)
    slack = ideal * (additions.to(tl.float64) * _ROUNDING) + (each + 1)
    under = tl.maximum(ideal - slack, 0.0)
    most = tl.maximum(under * (ratio.to(tl.float64) * (1.0 - 2.0 * _ROUNDING)) - (each + 1), 0.0)
    some = z > 0.0
    return (
        tl.where(some, tl.floor(under), 0.0).to(tl.int64), tl.where(some, tl.ceil(ideal + slack), 0.0).to(tl.int64),
        tl.where(some, tl.minimum(tl.floor(most), TOTAL), 0.0).to(tl.int64),
    )  # fmt: skip


@triton.jit
def add_bounds(
    surely, least, wanted, wanted_roughly, fullest_roughly, crossed,
    surely_more, least_more, wanted_more, wanted_more_roughly, fullest_more_roughly, crossed_more,
):  # fmt: skip
    return (
        surely + surely_more, least + least_more, wanted + wanted_more, wanted_roughly + wanted_more_roughly,
        fullest_roughly + fullest_more_roughly, crossed + crossed_more,
    )  # fmt: skip


@triton.jit
def find_outcome_in_lane(
    p, m, lane, size, at, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio,
    LOGITS: tl.constexpr, LANES: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    """The outcome of an integer below the total of a lane, which has at most EACH columns."""
    columns = lane + tl.arange(0, EACH) * LANES
    inside = columns < size
    p_mass = masses_of_numbers(load_numbers(p + columns, inside, LOGITS), p_shift, p_scale, LOGITS)
    m_mass = masses_of_numbers(load_numbers(m + columns, inside, LOGITS), m_shift, m_scale, LOGITS)
    low, high, excess = integer_bounds_and_excess(p_mass, m_mass, inside, steep, lift, base, ratio, ratio, ratio, True)
    low_sum, excess_sum, excess_roughly = tl.reduce((low, excess, excess.to(tl.float32)), 0, _add_three_sums)
    excess_sum = tl.where(excess_roughly > SURELY_PAST, WHOLE, excess_sum)
    rest = at - low_sum
    part = tl.where(rest < 0, low, tl.where(rest < excess_sum, excess, high - low - excess))
    rest = tl.where(rest < 0, at, tl.where(rest < excess_sum, rest, rest - excess_sum))
    ends = tl.cumsum(part, 0)  # overflows occur only behind the outcome
    return tl.min(tl.where(ends > rest, columns, size), 0).to(tl.int64)


@triton.jit
def _add_three_sums(a, b, c, a_more, b_more, c_more):
    return a + a_more, b + b_more, c + c_more


@triton.jit
def find_outcome_in_row(
    p, m, size, uniform, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, LOGITS: tl.constexpr
):
    """The outcome of an integer in a row over a reference that is drawn as a single portion."""
    outcome = tl.full((1,), -1, tl.int64)
    rest = uniform + tl.zeros((1,), tl.int64)
    for part in tl.static_range(3):
        if tl.max(outcome, 0) < 0:
            outcome, rest = find_outcome_in_weight_part(
                part, p, m, 0, size, rest, p_shift, m_shift, p_scale, m_scale, steep, lift, base, ratio, ratio, ratio,
                True, LOGITS, _SEARCHED,
            )  # fmt: skip
    return tl.max(outcome, 0)
