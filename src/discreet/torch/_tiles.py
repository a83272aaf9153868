"""Operations of the kernels of `discreet.torch` on a tile of numbers (Triton; float32 unless stated otherwise).

With masses e_p, e_m of client and reference, known up to a factor each, and Z = sum e_m, the projection is

    q_x = clip(t e_p, b e_m, B e_m) / Z        where    F(t) = sum_x clip(t e_p, b e_m, B e_m) - Z = 0

so neither has to be normalised before F is evaluated. Over a uniform reference e_m = 1. F is non-decreasing and piecewise linear, with
slope G(t) = the sum of e_p over what is not clipped. An inexact slope t costs utility only: the integers below lie in the lattice for every
t, including NaN.

`scan_row_at_four_slopes` sums a long row in one pass. Every lane of a program sums the numbers that it reads, one after the other. The order
is the same in every pass, and it does not depend on the client. Numbers are read ahead through shared memory.
"""

import triton
import triton.language as tl

LARGEST = tl.constexpr(1e20)  # a slope: effectively infinite, but finite times a mass
UNKNOWN = tl.constexpr(1e30)  # F at an end of the bracket that was not evaluated yet
TURNS = tl.constexpr(20)
# columns of the state of solved rows
SLOPE, LIFT, BASE, P_SHIFT, M_SHIFT = (tl.constexpr(column) for column in range(5))
COLUMNS = tl.constexpr(5)
_NEAR = tl.constexpr(1e-6)  # accepted error of the sum at a slope
# distance of the steps from both ends of a narrow bracket at which the curve through both is accepted
_AGREEING = tl.constexpr(3e-5)
_NARROW = tl.constexpr(0.005)  # distance of these ends
# distance of Newton's steps from both ends of a bracket at which the curve through both may be accepted
NEARLY = tl.constexpr(5e-6)
_STAGES = tl.constexpr(3)  # of reading ahead
_WIDEST = tl.constexpr(1e30)  # B/b at most: effectively infinite, but finite times a mass
_ENOUGH_OF_A_SAMPLE = tl.constexpr(0.01)  # a bracket of its slope, which is farther from that of the row
WHOLE = tl.constexpr(1 << 62)
_TOTAL = tl.constexpr(float(1 << 62))
_SURELY_PAST = tl.constexpr(1.5 * (1 << 62))  # a float32 sum above this is beyond 2^62; one below fits 63 bits


@triton.jit
def word_to_integer(word):
    """The uniform integer in [0, 2^62) of a 64-bit word: its upper 62 bits."""
    return (word.to(tl.uint64, bitcast=True) >> 2).to(tl.int64)


@triton.jit
def load_numbers(places, inside, LOGITS: tl.constexpr):
    """Numbers in float32; outside the row, numbers without mass. NaN and negative probabilities become infinity: see `is_distribution`."""
    if LOGITS:
        numbers = tl.load(places, mask=inside, other=float("-inf")).to(tl.float32)
        numbers = tl.where(numbers != numbers, float("inf"), numbers)
    else:
        numbers = tl.load(places, mask=inside, other=0.0).to(tl.float32)
        numbers = tl.where(numbers >= 0.0, numbers, float("inf"))
    return numbers


@triton.jit
def is_distribution(seen, tolerance, LOGITS: tl.constexpr):
    """Whether a row is a distribution, by its largest logit or the sum of its probabilities."""
    if LOGITS:
        good = (seen > float("-inf")) & (seen < float("inf"))
    else:
        good = tl.abs(seen - 1.0) <= tolerance
    return good


@triton.jit
def masses_of_numbers(numbers, shift, scale, LOGITS: tl.constexpr):
    """The mass of each number, up to a factor of its row. A difference times a factor: nothing that could be fused."""
    if LOGITS:
        masses = tl.exp2((numbers - shift) * scale)
    else:
        masses = numbers
    return masses


@triton.jit
def finite_largest_logit(top):
    """The largest logit as a finite number to subtract."""
    return tl.where((top > float("-inf")) & (top < float("inf")), top, 0.0)


@triton.jit
def clip_masses(p_mass, low, high, slope):
    """(clip(t e_p, b e_m, B e_m), e_p where that did not clip)."""
    value = p_mass * slope
    clipped_mass = tl.minimum(tl.maximum(value, low), high)
    return clipped_mass, tl.where(clipped_mass == value, p_mass, 0.0)


@triton.jit
def _add_eight_sums(a, b, c, d, e, f, g, h, a_more, b_more, c_more, d_more, e_more, f_more, g_more, h_more):
    return a + a_more, b + b_more, c + c_more, d + d_more, e + e_more, f + f_more, g + g_more, h + h_more


@triton.jit
def reduce_sums_at_four_slopes(f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, AXIS: tl.constexpr):
    """Sums of F and G at four slopes in one reduction, so that threads synchronise once.

    None of them may be a product: fused with a sum, it would be rounded in one thread and not in another, and threads would disagree.
    """
    return tl.reduce((f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four), AXIS, _add_eight_sums)


@triton.jit
def narrow_bracket(
    low, f_low, g_low, high, f_high, g_high, one, f_one, g_one, two, f_two, g_two, three, f_three, g_three, four, f_four, g_four, which,
):  # fmt: skip
    """The bracket after evaluating F and G at four more slopes, for the rows `which`."""
    low, f_low, g_low, high, f_high, g_high = narrow_bracket_by_one_slope(
        low, f_low, g_low, high, f_high, g_high, one, f_one, g_one, which
    )
    low, f_low, g_low, high, f_high, g_high = narrow_bracket_by_one_slope(
        low, f_low, g_low, high, f_high, g_high, two, f_two, g_two, which
    )
    low, f_low, g_low, high, f_high, g_high = narrow_bracket_by_one_slope(
        low, f_low, g_low, high, f_high, g_high, three, f_three, g_three, which
    )
    return narrow_bracket_by_one_slope(low, f_low, g_low, high, f_high, g_high, four, f_four, g_four, which)


@triton.jit
def narrow_bracket_by_one_slope(low, f_low, g_low, high, f_high, g_high, slope, f, g, which):
    """The bracket after evaluating F and G at one more slope, for the rows `which`."""
    below = which & (f < 0.0) & (slope >= low)
    above = which & (f >= 0.0) & (slope <= high)
    return (
        tl.where(below, slope, low), tl.where(below, f, f_low), tl.where(below, g, g_low),
        tl.where(above, slope, high), tl.where(above, f, f_high), tl.where(above, g, g_high),
    )  # fmt: skip


@triton.jit
def propose_slopes(low, f_low, g_low, high, f_high, g_high, z, turn, wide):
    """(four slopes to evaluate next, the best one so far, whether it is accepted).

    Newton's steps from both ends are right if there is one corner between them. Slopes on either side of the cubic through both ends are
    nearly right if there are many. Every fourth turn the bracket is halved, on a logarithmic scale. Where both steps agree, the cubic is
    accepted: up to a distance of 3e-5 if the ends are close together, and else up to `wide`.
    """
    is_known = f_low > -UNKNOWN
    is_bounded = f_high < UNKNOWN
    both = is_known & is_bounded
    middle = tl.where(low > 0.0, tl.sqrt(low) * tl.sqrt(high), high * 0.015625)
    up = low - f_low / tl.where(g_low > 0.0, g_low, 1.0)
    up_serves = is_known & (g_low > 0.0) & (up > low) & (up < high)
    down = high - f_high / tl.where(g_high > 0.0, g_high, 1.0)
    down_serves = is_bounded & (g_high > 0.0) & (down > low) & (down <= high)
    rise = tl.where(both, f_high - f_low, 1.0)
    part = tl.where(both, -f_low / rise, 0.5)
    rest = 1.0 - part
    curve = (
        (1.0 + 2.0 * part) * rest * rest * low + part * rest * rest * rise / tl.where(g_low > 0.0, g_low, 1.0)
        + part * part * (3.0 - 2.0 * part) * high - part * part * rest * rise / tl.where(g_high > 0.0, g_high, 1.0)
    )  # fmt: skip
    is_curved = both & (g_low > 0.0) & (g_high > 0.0) & (curve > low) & (curve < high)
    centre = tl.where(is_curved, curve, tl.where(both, low + (high - low) * part, middle))
    near_low = is_known & (-f_low <= _NEAR * z)
    near_high = is_bounded & (f_high <= _NEAR * z)
    close = tl.where(high - low <= _NARROW * high, _AGREEING, wide)
    agreeing = up_serves & down_serves & (tl.abs(up - down) <= close * down)
    is_pinned = both & (high - low <= _NEAR * high)
    meeting = up_serves & down_serves & (tl.abs(up - down) <= _NEAR * down)  # perhaps at a corner
    best = tl.where(both & (meeting == 0), centre, tl.where(down_serves, down, high))
    best = tl.where(near_high, tl.where(down_serves, down, high), best)
    best = tl.where(near_low & ((-f_low <= f_high) | (near_high == 0)), tl.where(up_serves, up, low), best)
    apart = tl.where(up_serves & down_serves, 0.1 * tl.abs(up - down), 0.05 * (high - low))
    apart = tl.maximum(apart, 1e-6 * centre)
    ahead = tl.where(up_serves, up, low * 2.0)
    back = tl.where(down_serves, down, high * 0.5)
    one = tl.where(both, tl.where(up_serves, up, middle), tl.where(is_bounded, back, ahead))
    two = tl.where(both, tl.where(down_serves, down, middle), tl.where(is_bounded, back * 0.5, ahead * 2.0))
    three = tl.where(turn % 4 == 3, middle, tl.maximum(centre - apart, 0.5 * (low + centre)))
    three = tl.where(both, three, tl.where(is_bounded, high * 0.125, ahead * 16.0))
    four = tl.minimum(centre + apart, 0.5 * (high + centre))
    four = tl.where(both, four, tl.where(is_bounded, high * 0.015625, LARGEST))
    return (
        tl.minimum(one, LARGEST), tl.minimum(two, LARGEST), tl.minimum(three, LARGEST), tl.minimum(four, LARGEST),
        tl.minimum(best, LARGEST), near_low | near_high | agreeing | is_pinned,
    )  # fmt: skip


@triton.jit
def slope_and_lift_of_solution(solving, slope, low, f_low, z, b, B):
    """(slope, lift): a client on too small a set has its outcomes at their ceilings, and a multiple of the floor for the others."""
    beyond = solving & (low >= LARGEST)
    held_mass = (f_low + (1.0 - b) * z) / (B - b)
    left = z - held_mass
    lift = tl.where(beyond & (left > 0.0), (z - B * held_mass) / (b * tl.where(left > 0.0, left, 1.0)), 0.0)
    return tl.where(beyond, LARGEST, slope), lift


@triton.jit
def integer_bounds_and_excess(
    p_mass,
    m_mass,
    inside,
    steep,
    lift,
    base,
    ratio,
    lower,
    upper,
    REFERENCE: tl.constexpr,
    CEILING: tl.constexpr = True,
):
    """(L, U, E) as int64. NaN counts as L.

    Over a reference all three come from float32, which holds L exactly. U, a truncated product, is at most e^epsilon L, because `ratio` is
    far enough below e^epsilon for a rounded product. Over a uniform reference L and U are the lattice's, and clip integers.
    """
    if REFERENCE:
        low = tl.where(m_mass > 0.0, tl.maximum(tl.floor(m_mass * base), 1.0), 0.0)
        high = tl.minimum(low * ratio, _TOTAL)  # its integer part is U
        value = tl.where(p_mass > 0.0, p_mass * steep, low * lift)
        weight = tl.minimum(tl.maximum(low, value), high).to(tl.int64)
        least = low.to(tl.int64)
        most = high.to(tl.int64)
    else:
        least = tl.where(inside, lower.to(tl.int64), 0)
        most = tl.where(inside, upper.to(tl.int64), 0)
        value = tl.where(p_mass > 0.0, p_mass.to(tl.float64) * steep, lower * lift)
        if CEILING:  # otherwise no value is larger
            value = tl.minimum(value, upper)
        weight = tl.minimum(tl.maximum(value.to(tl.int64), least), most)  # between integers, for every float
    return least, most, weight - least


@triton.jit
def factor_to_total(slope, z, REFERENCE: tl.constexpr):
    """The factor that turns a mass into its share of 2^62; over a uniform reference z is 2^62/k."""
    if REFERENCE:
        factor = slope * (_TOTAL / z)
    else:
        factor = slope.to(tl.float64) * z
    return factor


@triton.jit
def floor_divide(integer, divisor, reciprocal):
    """floor(integer/divisor) for an integer below 2^62, by min(floor(2^64/divisor), 2^64 - 1), which is one too small at most."""
    near = tl.umulhi(integer.to(tl.uint64), reciprocal.to(tl.uint64, bitcast=True)).to(tl.int64)
    return near + (integer - near * divisor >= divisor).to(tl.int64)


@triton.jit
def row_sums_and_whether_rest_is_inside(part, rest):
    """(the sum of each row, whether `rest` falls within it). Sums beyond 2^63, from a wrong slope, are recognised."""
    sums = tl.sum(part, 1)
    return sums, (tl.sum(part.to(tl.float32), 1) > _SURELY_PAST) | (rest < sums)


@triton.jit
def first_column_where_sum_exceeds(part, rest, columns, size):
    """The first column whose running sum exceeds `rest`. Overflows occur only behind it."""
    ends = tl.cumsum(part, 1)
    return tl.min(tl.where(ends > rest[:, None], columns[None, :], size), 1).to(tl.int64)


@triton.jit
def wait_for_group(counter, phase, number):
    """Wait until all `number` programs of a group have arrived for the (phase + 1)-th time; they were launched to run at once."""
    tl.debug_barrier()
    if number > 1:
        tl.atomic_add(counter, 1)
        while tl.atomic_add(counter, 0) < (phase + 1) * number:
            pass
    tl.debug_barrier()


@triton.jit
def order_independent_sum(numbers):
    """The sum of at most 2^10 numbers that are not negative: in integers, so that it is the same in every order.

    The integers are multiples of 2^-51 of the largest number or less: the rest of each number is lost.
    """
    exponent = (tl.max(numbers, 0).to(tl.int32, bitcast=True) >> 23) & 255
    unit = ((1023 + 127 + 51) - exponent).to(tl.int64) << 52  # as float64: 2^51 over the power of two below the largest
    factor = unit.to(tl.float64, bitcast=True)
    return (tl.sum((numbers.to(tl.float64) * factor).to(tl.int64), 0).to(tl.float64) / factor).to(tl.float32)


@triton.jit
def _load_numbers_keeping_nan(places, inside, LOGITS: tl.constexpr):
    """As `load_numbers`, but NaN stays among logits: `_largest_logit_or_sum_of_pair` finds it."""
    if LOGITS:
        numbers = tl.load(places, mask=inside, other=float("-inf")).to(tl.float32)
    else:
        numbers = load_numbers(places, inside, LOGITS)
    return numbers


@triton.jit
def _largest_logit_or_sum_of_pair(one, other, LOGITS: tl.constexpr):
    """What `is_distribution` takes of two sets of numbers: the larger logit, or NaN if there is any; or the sum of probabilities."""
    return _larger_or_nan(one, other) if LOGITS else one + other


@triton.jit
def _larger_or_nan(one, other):
    return tl.maximum(one, other, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def largest_logit_or_sum_of_lanes(seen, LOGITS: tl.constexpr):
    """What `is_distribution` takes of all lanes."""
    return tl.reduce(seen, 0, _larger_or_nan) if LOGITS else tl.sum(seen, 0)


@triton.jit
def _add_clipped_masses(f, g, p_mass, low, high, slope):
    """F up to Z and G at a slope, with one more outcome in each lane."""
    value = p_mass * slope
    clipped_mass = tl.minimum(tl.maximum(value, low), high)
    return f + clipped_mass, tl.where(clipped_mass == value, g + p_mass, g)


@triton.jit
def scan_row_at_four_slopes(
    p, m, start, size, p_shift, m_shift, p_scale, m_scale, b, B, one, two, three, four,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One pass over a row, for each of BLOCK lanes: F/b up to Z/b and G at four slopes, Z, and what `is_distribution` takes.

    A lane reads every STEP-th column, and `start` is the first column of the first lane. F is divided by b, since that saves a product for
    each number.
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
    whole_steps_end = start + tl.maximum(size - start + (STEP - BLOCK), 0) // (DEPTH * STEP) * (DEPTH * STEP)
    for first in tl.range(start, whole_steps_end, DEPTH * STEP, num_stages=_STAGES):
        for depth in tl.static_range(DEPTH):
            columns = first + depth * STEP + tl.arange(0, BLOCK)
            p_numbers = _load_numbers_keeping_nan(p + columns, True, LOGITS)
            m_numbers = (
                _load_numbers_keeping_nan(m + columns, True, LOGITS)
                if REFERENCE
                else tl.full((BLOCK,), 1.0, tl.float32)
            )
            f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen = _add_numbers_to_row_sums(
                p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
                f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE, LOGITS,
            )  # fmt: skip
    for first in range(whole_steps_end, size, STEP):
        columns = first + tl.arange(0, BLOCK)
        inside = columns < size
        p_numbers = _load_numbers_keeping_nan(p + columns, inside, LOGITS)
        m_numbers = _load_numbers_keeping_nan(m + columns, inside, LOGITS) if REFERENCE else tl.where(inside, 1.0, 0.0)
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen = _add_numbers_to_row_sums(
            p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
            f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE, LOGITS,
        )  # fmt: skip
    return f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen


@triton.jit
def _add_numbers_to_row_sums(
    p_numbers, m_numbers, p_shift, m_shift, p_scale, m_scale, widest, one, two, three, four,
    f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen, REFERENCE: tl.constexpr, LOGITS: tl.constexpr,
):  # fmt: skip
    """The sums of `scan_row_at_four_slopes` with one more number in each lane."""
    p_seen = _largest_logit_or_sum_of_pair(p_seen, p_numbers, LOGITS)
    p_mass = masses_of_numbers(p_numbers, p_shift, p_scale, LOGITS)
    if REFERENCE:
        m_seen = _largest_logit_or_sum_of_pair(m_seen, m_numbers, LOGITS)
        m_mass = masses_of_numbers(m_numbers, m_shift, m_scale, LOGITS)
    else:
        m_mass = m_numbers
    z += m_mass
    high = m_mass * widest
    f_one, g_one = _add_clipped_masses(f_one, g_one, p_mass, m_mass, high, one)
    f_two, g_two = _add_clipped_masses(f_two, g_two, p_mass, m_mass, high, two)
    f_three, g_three = _add_clipped_masses(f_three, g_three, p_mass, m_mass, high, three)
    f_four, g_four = _add_clipped_masses(f_four, g_four, p_mass, m_mass, high, four)
    return f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, z, p_seen, m_seen


@triton.jit
def scan_row_for_reference_mass(
    p,
    m,
    start,
    size,
    m_shift,
    m_scale,
    LOGITS: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
):
    """As `scan_row_at_four_slopes` over a reference, without slopes; z is added up in the same order."""
    z = tl.zeros((BLOCK,), tl.float32)
    p_seen = tl.full((BLOCK,), float("-inf") if LOGITS else 0.0, tl.float32)
    m_seen = p_seen
    whole_steps_end = start + tl.maximum(size - start + (STEP - BLOCK), 0) // (DEPTH * STEP) * (DEPTH * STEP)
    for first in tl.range(start, whole_steps_end, DEPTH * STEP, num_stages=_STAGES):
        for depth in tl.static_range(DEPTH):
            columns = first + depth * STEP + tl.arange(0, BLOCK)
            p_seen = _largest_logit_or_sum_of_pair(p_seen, _load_numbers_keeping_nan(p + columns, True, LOGITS), LOGITS)
            m_numbers = _load_numbers_keeping_nan(m + columns, True, LOGITS)
            m_seen = _largest_logit_or_sum_of_pair(m_seen, m_numbers, LOGITS)
            z += masses_of_numbers(m_numbers, m_shift, m_scale, LOGITS)
    for first in range(whole_steps_end, size, STEP):
        columns = first + tl.arange(0, BLOCK)
        p_seen = _largest_logit_or_sum_of_pair(
            p_seen, _load_numbers_keeping_nan(p + columns, columns < size, LOGITS), LOGITS
        )
        m_numbers = _load_numbers_keeping_nan(m + columns, columns < size, LOGITS)
        m_seen = _largest_logit_or_sum_of_pair(m_seen, m_numbers, LOGITS)
        z += masses_of_numbers(m_numbers, m_shift, m_scale, LOGITS)
    return z, p_seen, m_seen


@triton.jit
def _clipped_mass_sums(p_mass, low, high, slope):
    """F (up to Z) and G of a sample, summed over the blocks of a thread."""
    clipped_mass, open_mass = clip_masses(p_mass, low, high, slope)
    return tl.sum(clipped_mass, 0), tl.sum(open_mass, 0)


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
        f_one, g_one = _clipped_mass_sums(p_mass, m_mass * b, m_mass * B, one)
        f_two, g_two = _clipped_mass_sums(p_mass, m_mass * b, m_mass * B, two)
        f_three, g_three = _clipped_mass_sums(p_mass, m_mass * b, m_mass * B, three)
        f_four, g_four = _clipped_mass_sums(p_mass, m_mass * b, m_mass * B, four)
        f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four = reduce_sums_at_four_slopes(
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
