"""What the kernels of `discreet.torch` do with a tile: a few rows, some of their columns (Triton; float32 unless it says otherwise).

With masses e_p, e_m of client and reference, known up to a factor each, and Z = sum e_m, the projection is

    q_x = clip(t e_p, b e_m, B e_m) / Z        where    F(t) = sum_x clip(t e_p, b e_m, B e_m) - e_m = 0

so neither has to be normalised before F is looked at. Over a uniform reference e_m = 1. F is non-decreasing and piecewise linear, with
slope G(t) = the sum of e_p over what is not clipped. What a slope that is not quite right costs is utility: the integers below lie in
the lattice for every t, NaN included.
"""

import triton
import triton.language as tl

_TOTAL = tl.constexpr(float(1 << 62))
_SURELY_PAST = tl.constexpr(
    1.5 * (1 << 62)
)  # a sum that float32 puts here is past 2^62; one that it does not fits 63 bits
LARGEST = tl.constexpr(1e20)  # a slope: as good as infinite, and times a mass still a number
UNKNOWN = tl.constexpr(1e30)  # F at an end of the bracket that was not looked at yet
_NEAR = tl.constexpr(1e-6)  # what is wrong with the sum of a law when its slope is taken for right


@triton.jit
def loaded(pointer, starts, columns, inside, LOGITS: tl.constexpr):
    """The numbers of a tile in float32; outside it what has no mass."""
    places = pointer + starts[:, None] + columns[None, :]
    if LOGITS:
        found = tl.load(places, mask=inside, other=float("-inf")).to(tl.float32)
    else:
        found = tl.load(places, mask=inside, other=0.0).to(tl.float32)
    return found


@triton.jit
def mass(numbers, shift, scale, LOGITS: tl.constexpr):
    """The mass of each number, up to a factor that its row shares. A difference times a factor: nothing that could be fused."""
    if LOGITS:
        found = tl.exp2((numbers - shift[:, None]) * scale)
    else:
        found = numbers
    return found


@triton.jit
def largest(pointer, starts, live, size, step, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The largest number of each row in every `step`-th column block; 0 where there is none above minus infinity."""
    top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    if LOGITS:
        for start in range(0, size, step):
            columns = start + tl.arange(0, BLOCK)
            inside = live[:, None] & (columns < size)[None, :]
            top = tl.maximum(top, loaded(pointer, starts, columns, inside, LOGITS))
    found = tl.max(top, 1)
    return tl.where((found > float("-inf")) & (found < float("inf")), found, 0.0)


@triton.jit
def validity(
    pointer, starts, live, size, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    """(the largest number, the sum if these are probabilities, whether something is NaN or a negative probability) of each row."""
    top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    odd = tl.zeros((ROWS, BLOCK), tl.int32)
    for start in tl.range(0, size, BLOCK, num_stages=STAGES):
        columns = start + tl.arange(0, BLOCK)
        inside = live[:, None] & (columns < size)[None, :]
        numbers = loaded(pointer, starts, columns, inside, LOGITS)
        if LOGITS:
            odd = odd | (numbers != numbers).to(tl.int32)
        else:
            odd = odd | (1 - (numbers >= 0.0).to(tl.int32))
            total += numbers
        top = tl.maximum(top, numbers)
    return tl.max(top, 1), tl.sum(total, 1), tl.max(odd, 1)


@triton.jit
def acceptable(top, total, odd, tolerance, LOGITS: tl.constexpr):
    """Whether a row is a law: logits with something finite and nothing above, probabilities that sum to one."""
    if LOGITS:
        good = (odd == 0) & (top > float("-inf")) & (top < float("inf"))
    else:
        good = (odd == 0) & (tl.abs(total - 1.0) <= tolerance)
    return good


@triton.jit
def evaluation(
    p, m, p_starts, m_starts, live, size, step, p_shift, m_shift, p_scale, m_scale, b, B, one, other,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, LOOK: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """F and G at two slopes, Z, and with LOOK also what `validity` says of both tensors, in one pass over every `step`-th block."""
    f_one = tl.zeros((ROWS, BLOCK), tl.float32)
    g_one = tl.zeros((ROWS, BLOCK), tl.float32)
    f_other = tl.zeros((ROWS, BLOCK), tl.float32)
    g_other = tl.zeros((ROWS, BLOCK), tl.float32)
    z = tl.zeros((ROWS, BLOCK), tl.float32)
    p_top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    m_top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    p_total = tl.zeros((ROWS, BLOCK), tl.float32)
    p_odd = tl.zeros((ROWS, BLOCK), tl.int32)
    m_odd = tl.zeros((ROWS, BLOCK), tl.int32)
    for start in tl.range(0, size, step, num_stages=STAGES):
        columns = start + tl.arange(0, BLOCK)
        inside = live[:, None] & (columns < size)[None, :]
        p_numbers = loaded(p, p_starts, columns, inside, LOGITS)
        p_mass = mass(p_numbers, p_shift, p_scale, LOGITS)
        if REFERENCE:
            m_numbers = loaded(m, m_starts, columns, inside, LOGITS)
            m_mass = mass(m_numbers, m_shift, m_scale, LOGITS)
        else:
            m_mass = tl.where(inside, 1.0, 0.0)
        low = m_mass * b
        high = m_mass * B
        value = p_mass * one[:, None]
        kept = tl.minimum(tl.maximum(value, low), high)
        f_one += kept - m_mass
        g_one += tl.where(kept == value, p_mass, 0.0)
        value = p_mass * other[:, None]
        kept = tl.minimum(tl.maximum(value, low), high)
        f_other += kept - m_mass
        g_other += tl.where(kept == value, p_mass, 0.0)
        z += m_mass
        if LOOK:
            if LOGITS:
                p_odd = p_odd | (p_numbers != p_numbers).to(tl.int32)
            else:
                p_odd = p_odd | (1 - (p_numbers >= 0.0).to(tl.int32))
                p_total += p_numbers
            p_top = tl.maximum(p_top, p_numbers)
            if REFERENCE:
                if LOGITS:
                    m_odd = m_odd | (m_numbers != m_numbers).to(tl.int32)
                else:
                    m_odd = m_odd | (1 - (m_numbers >= 0.0).to(tl.int32))
                m_top = tl.maximum(m_top, m_numbers)
    found = (tl.sum(f_one, 1), tl.sum(g_one, 1), tl.sum(f_other, 1), tl.sum(g_other, 1), tl.sum(z, 1))
    if LOOK:
        found = found + (tl.max(p_top, 1), tl.sum(p_total, 1), tl.max(p_odd, 1), tl.max(m_top, 1), tl.max(m_odd, 1))
    return found


@triton.jit
def narrowed(low, f_low, g_low, high, f_high, g_high, slope, f, g, which):
    """The bracket once F and G at one more slope are known, for the rows `which`."""
    below = which & (f < 0.0) & (slope >= low)
    above = which & (f >= 0.0) & (slope <= high)
    return (
        tl.where(below, slope, low), tl.where(below, f, f_low), tl.where(below, g, g_low),
        tl.where(above, slope, high), tl.where(above, f, f_high), tl.where(above, g, g_high),
    )  # fmt: skip


@triton.jit
def proposed(low, f_low, g_low, high, f_high, g_high, z, turn):
    """(two slopes to look at next, the smaller first, the better of them, whether it is right): Newton's steps from both ends.

    Where a step leaves the bracket, and every third turn, the middle of it on a logarithmic scale is taken instead."""
    bounded = f_high < UNKNOWN
    middle = tl.where(low > 0.0, tl.sqrt(low) * tl.sqrt(high), high * 0.0625)
    up = low - f_low / tl.where(g_low > 0.0, g_low, 1.0)
    up_serves = (g_low > 0.0) & (up > low) & (up < high)
    down = high - f_high / tl.where(g_high > 0.0, g_high, 1.0)
    down_serves = (g_high > 0.0) & (down > low) & (down <= high)
    near_low = up_serves & (-f_low <= _NEAR * z)
    near_high = down_serves & (f_high <= _NEAR * z)
    agreeing = up_serves & down_serves & (tl.abs(up - down) <= _NEAR * down)
    pinned = bounded & (high - low <= _NEAR * high)
    best = tl.where(near_low & ((-f_low <= f_high) | (near_high == 0)), up, tl.where(down_serves, down, high))
    ahead = tl.minimum(tl.maximum(low, 1e-20) * 64.0, LARGEST)
    first = tl.where(up_serves, up, tl.where(bounded, middle, ahead))
    second = tl.where(down_serves & ((turn % 3 != 2) | (bounded == 0)), down, tl.where(bounded, middle, LARGEST))
    return (
        tl.minimum(first, second), tl.maximum(first, second), best, near_low | near_high | agreeing | pinned,
    )  # fmt: skip


@triton.jit
def integers(p_mass, m_mass, inside, slope, lift, base, ratio, lower, upper, REFERENCE: tl.constexpr):
    """(L, U, E) of a tile as int64. U <= e^epsilon L: `ratio` is so far below e^epsilon that a rounded product still is.

    L, U and what lies between are whole numbers that float64 holds exactly. A value that is NaN counts as L."""
    if REFERENCE:
        low = tl.where(m_mass > 0.0, tl.maximum(tl.floor(m_mass.to(tl.float64) * base[:, None]), 1.0), 0.0)
        high = tl.minimum(tl.floor(low * ratio), _TOTAL)
    else:
        low = tl.where(inside, lower, 0.0)
        high = tl.where(inside, upper, 0.0)
    value = tl.where(p_mass > 0.0, p_mass.to(tl.float64) * slope[:, None], low * lift[:, None])
    wanted = tl.minimum(tl.maximum(low, value), high).to(tl.int64)
    return low.to(tl.int64), high.to(tl.int64), wanted - low.to(tl.int64)


@triton.jit
def place(
    PART: tl.constexpr,
    p, m, p_starts, m_starts, pending, rest, size, p_shift, m_shift, p_scale, m_scale, slope, lift, base, ratio, lower, upper,
    REFERENCE: tl.constexpr, LOGITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(the outcome on which `rest` falls or -1, what is left of it past the end) in the prefix sums of L (PART 0), of the excess
    E (1), or of the room that is left over it (2).

    Sums may pass 2^63 when a slope is wrong. Before the place that is looked for they do not, and the first place past it is taken."""
    found = tl.full((ROWS,), -1, tl.int64)
    for start in range(0, size, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        open_rows = pending & (found < 0)
        inside = open_rows[:, None] & (columns < size)[None, :]
        if PART == 0:
            p_mass = tl.zeros((ROWS, BLOCK), tl.float32)
        else:
            p_mass = mass(loaded(p, p_starts, columns, inside, LOGITS), p_shift, p_scale, LOGITS)
        if REFERENCE:
            m_mass = mass(loaded(m, m_starts, columns, inside, LOGITS), m_shift, m_scale, LOGITS)
        else:
            m_mass = p_mass
        low, high, excess = integers(p_mass, m_mass, inside, slope, lift, base, ratio, lower, upper, REFERENCE)
        if PART == 0:
            part = low
        elif PART == 1:
            part = excess
        else:
            part = high - low - excess
        whole = tl.sum(part, 1)
        here = open_rows & ((tl.sum(part.to(tl.float32), 1) > _SURELY_PAST) | (rest < whole))
        if tl.max(here.to(tl.int32), 0) > 0:
            ends = tl.cumsum(part, 1)
            first = tl.min(tl.where(ends > rest[:, None], columns[None, :], size), 1)
            found = tl.where(here, first.to(tl.int64), found)
        rest = tl.where(open_rows & (found < 0), rest - whole, rest)
    return found, rest
