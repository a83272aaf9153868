"""Operations of the kernels of `discreet.torch` on a tile of numbers (Triton; float32 unless stated otherwise).

With masses e_p, e_m of client and reference, known up to a factor each, and Z = sum e_m, the projection is

    q_x = clip(t e_p, b e_m, B e_m) / Z        where    F(t) = sum_x clip(t e_p, b e_m, B e_m) - Z = 0

so neither has to be normalised before F is evaluated. Over a uniform reference e_m = 1. F is non-decreasing and piecewise linear, with
slope G(t) = the sum of e_p over what is not clipped. An inexact slope t costs utility only: the integers below lie in the lattice for every
t, including NaN.
"""

import triton
import triton.language as tl

LARGEST = tl.constexpr(1e20)  # a slope: effectively infinite, but finite times a mass
UNKNOWN = tl.constexpr(1e30)  # F at an end of the bracket that was not evaluated yet
TURNS = tl.constexpr(20)
SLOPE, LIFT, BASE, P_SHIFT, M_SHIFT = (
    tl.constexpr(column) for column in range(5)
)  # columns of the state of solved rows
COLUMNS = tl.constexpr(5)
_NEAR = tl.constexpr(1e-6)  # accepted error of the sum at a slope
_AGREEING = tl.constexpr(
    3e-5
)  # distance of the steps from both ends of a narrow bracket at which the curve through both is accepted
_NARROW = tl.constexpr(0.005)  # distance of these ends
WHOLE = tl.constexpr(1 << 62)
_TOTAL = tl.constexpr(float(1 << 62))
_SURELY_PAST = tl.constexpr(1.5 * (1 << 62))  # a float32 sum above this is beyond 2^62; one below fits 63 bits


@triton.jit
def word_to_integer(word):
    """The uniform integer in [0, 2^62) of a 64-bit word: its upper 62 bits."""
    return (word.to(tl.uint64, bitcast=True) >> 2).to(tl.int64)


@triton.jit
def load_numbers(places, inside, LOGITS: tl.constexpr):
    """Numbers in float32; outside the row, numbers without mass. NaN and negative probabilities become infinity: see `acceptable`."""
    if LOGITS:
        found = tl.load(places, mask=inside, other=float("-inf")).to(tl.float32)
        found = tl.where(found != found, float("inf"), found)
    else:
        found = tl.load(places, mask=inside, other=0.0).to(tl.float32)
        found = tl.where(found >= 0.0, found, float("inf"))
    return found


@triton.jit
def acceptable(seen, tolerance, LOGITS: tl.constexpr):
    """Whether a row is a distribution, by its largest logit or the sum of its probabilities."""
    if LOGITS:
        good = (seen > float("-inf")) & (seen < float("inf"))
    else:
        good = tl.abs(seen - 1.0) <= tolerance
    return good


@triton.jit
def mass(numbers, shift, scale, LOGITS: tl.constexpr):
    """The mass of each number, up to a factor of its row. A difference times a factor: nothing that could be fused."""
    if LOGITS:
        found = tl.exp2((numbers - shift) * scale)
    else:
        found = numbers
    return found


@triton.jit
def finite(top):
    """The largest logit as a finite number to subtract."""
    return tl.where((top > float("-inf")) & (top < float("inf")), top, 0.0)


@triton.jit
def clip_masses(p_mass, low, high, slope):
    """(clip(t e_p, b e_m, B e_m), e_p where that did not clip)."""
    value = p_mass * slope
    kept = tl.minimum(tl.maximum(value, low), high)
    return kept, tl.where(kept == value, p_mass, 0.0)


@triton.jit
def _add_sums(a, b, c, d, e, f, g, h, a_more, b_more, c_more, d_more, e_more, f_more, g_more, h_more):
    return a + a_more, b + b_more, c + c_more, d + d_more, e + e_more, f + f_more, g + g_more, h + h_more


@triton.jit
def reduce_sums(f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four, AXIS: tl.constexpr):
    """Sums of F and G at four slopes in one reduction, so that threads synchronise once."""
    return tl.reduce((f_one, g_one, f_two, g_two, f_three, g_three, f_four, g_four), AXIS, _add_sums)


@triton.jit
def narrow_bracket(
    low, f_low, g_low, high, f_high, g_high, one, f_one, g_one, two, f_two, g_two, three, f_three, g_three, four, f_four, g_four, which,
):  # fmt: skip
    """The bracket after evaluating F and G at four more slopes, for the rows `which`."""
    low, f_low, g_low, high, f_high, g_high = narrow_by_slope(
        low, f_low, g_low, high, f_high, g_high, one, f_one, g_one, which
    )
    low, f_low, g_low, high, f_high, g_high = narrow_by_slope(
        low, f_low, g_low, high, f_high, g_high, two, f_two, g_two, which
    )
    low, f_low, g_low, high, f_high, g_high = narrow_by_slope(
        low, f_low, g_low, high, f_high, g_high, three, f_three, g_three, which
    )
    return narrow_by_slope(low, f_low, g_low, high, f_high, g_high, four, f_four, g_four, which)


@triton.jit
def narrow_by_slope(low, f_low, g_low, high, f_high, g_high, slope, f, g, which):
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
    known = f_low > -UNKNOWN
    bounded = f_high < UNKNOWN
    both = known & bounded
    middle = tl.where(low > 0.0, tl.sqrt(low) * tl.sqrt(high), high * 0.015625)
    up = low - f_low / tl.where(g_low > 0.0, g_low, 1.0)
    up_serves = known & (g_low > 0.0) & (up > low) & (up < high)
    down = high - f_high / tl.where(g_high > 0.0, g_high, 1.0)
    down_serves = bounded & (g_high > 0.0) & (down > low) & (down <= high)
    rise = tl.where(both, f_high - f_low, 1.0)
    part = tl.where(both, -f_low / rise, 0.5)
    rest = 1.0 - part
    curve = (
        (1.0 + 2.0 * part) * rest * rest * low + part * rest * rest * rise / tl.where(g_low > 0.0, g_low, 1.0)
        + part * part * (3.0 - 2.0 * part) * high - part * part * rest * rise / tl.where(g_high > 0.0, g_high, 1.0)
    )  # fmt: skip
    curved = both & (g_low > 0.0) & (g_high > 0.0) & (curve > low) & (curve < high)
    centre = tl.where(curved, curve, tl.where(both, low + (high - low) * part, middle))
    near_low = up_serves & (-f_low <= _NEAR * z)
    near_high = down_serves & (f_high <= _NEAR * z)
    close = tl.where(high - low <= _NARROW * high, _AGREEING, wide)
    agreeing = up_serves & down_serves & (tl.abs(up - down) <= close * down)
    pinned = both & (high - low <= _NEAR * high)
    meeting = up_serves & down_serves & (tl.abs(up - down) <= _NEAR * down)  # perhaps at a corner
    best = tl.where(both & (meeting == 0), centre, tl.where(down_serves, down, high))
    best = tl.where(near_high, down, best)
    best = tl.where(near_low & ((-f_low <= f_high) | (near_high == 0)), up, best)
    apart = tl.where(up_serves & down_serves, 0.1 * tl.abs(up - down), 0.05 * (high - low))
    apart = tl.maximum(apart, 1e-6 * centre)
    ahead = tl.where(up_serves, up, low * 2.0)
    back = tl.where(down_serves, down, high * 0.5)
    one = tl.where(both, tl.where(up_serves, up, middle), tl.where(bounded, back, ahead))
    two = tl.where(both, tl.where(down_serves, down, middle), tl.where(bounded, back * 0.5, ahead * 2.0))
    three = tl.where(turn % 4 == 3, middle, tl.maximum(centre - apart, 0.5 * (low + centre)))
    three = tl.where(both, three, tl.where(bounded, high * 0.125, ahead * 16.0))
    four = tl.minimum(centre + apart, 0.5 * (high + centre))
    four = tl.where(both, four, tl.where(bounded, high * 0.015625, LARGEST))
    return (
        tl.minimum(one, LARGEST), tl.minimum(two, LARGEST), tl.minimum(three, LARGEST), tl.minimum(four, LARGEST),
        tl.minimum(best, LARGEST), near_low | near_high | agreeing | pinned,
    )  # fmt: skip


@triton.jit
def settle_slope(solving, slope, low, f_low, z, b, B):
    """(slope, lift): a client on too small a set has its outcomes at their ceilings, and a multiple of the floor for the others."""
    beyond = solving & (low >= LARGEST)
    held = (f_low + (1.0 - b) * z) / (B - b)
    left = z - held
    lift = tl.where(beyond & (left > 0.0), (z - B * held) / (b * tl.where(left > 0.0, left, 1.0)), 0.0)
    return tl.where(beyond, LARGEST, slope), lift


@triton.jit
def integers(
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
        wanted = tl.minimum(tl.maximum(low, value), high).to(tl.int64)
        whole = low.to(tl.int64)
        most = high.to(tl.int64)
    else:
        whole = tl.where(inside, lower.to(tl.int64), 0)
        most = tl.where(inside, upper.to(tl.int64), 0)
        value = tl.where(p_mass > 0.0, p_mass.to(tl.float64) * steep, lower * lift)
        if CEILING:  # otherwise no value is larger
            value = tl.minimum(value, upper)
        wanted = tl.minimum(tl.maximum(value.to(tl.int64), whole), most)  # between integers, for every float
    return whole, most, wanted - whole


@triton.jit
def factor_to_total(slope, z, REFERENCE: tl.constexpr):
    """The factor that turns a mass into its share of 2^62; over a uniform reference z is 2^62/k."""
    if REFERENCE:
        found = slope * (_TOTAL / z)
    else:
        found = slope.to(tl.float64) * z
    return found


@triton.jit
def divide(integer, divisor, reciprocal):
    """floor(integer/divisor) for an integer below 2^62, by min(floor(2^64/divisor), 2^64 - 1), which is one too small at most."""
    near = tl.umulhi(integer.to(tl.uint64), reciprocal.to(tl.uint64, bitcast=True)).to(tl.int64)
    return near + (integer - near * divisor >= divisor).to(tl.int64)


@triton.jit
def falls_here(part, rest):
    """(the sum of each row, whether `rest` falls within it). Sums beyond 2^63, from a wrong slope, are recognised."""
    whole = tl.sum(part, 1)
    return whole, (tl.sum(part.to(tl.float32), 1) > _SURELY_PAST) | (rest < whole)


@triton.jit
def first_past(part, rest, columns, size):
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
