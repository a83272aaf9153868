"""Independent references in exact arithmetic: the scale r of a projection, the weights of a release, ratios of integers."""

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import exp_lower
from discreet.projection._box import NEGLIGIBLE
from discreet.release import TOTAL, Lattice


def exact_slope(p: list[Fraction], lower: list[Fraction], upper: list[Fraction]) -> Fraction | None:
    """The smallest a with sum clip(a p, lower, upper) = 1, by trying every segment; None when there is none."""
    places = sorted(
        {bound / mass for mass, low, high in zip(p, lower, upper, strict=True) if mass for bound in (low, high)}
    )

    def mass_at(a: Fraction) -> Fraction:
        return sum((min(max(a * x, low), high) for x, low, high in zip(p, lower, upper, strict=True)), Fraction(0))

    if mass_at(places[-1]) < 1:
        return None
    low, high = 0, len(places) - 1  # the first place with mass >= 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if mass_at(places[middle]) >= 1 else (middle + 1, high)
    if low == 0:
        return places[0]
    left, right = places[low - 1], places[low]
    left_mass, right_mass = mass_at(left), mass_at(right)
    return left + (1 - left_mass) * (right - left) / (right_mass - left_mass)


def largest_ratio(first: NDArray[np.int64], second: NDArray[np.int64]) -> Fraction:
    """max_x first_x / second_x in exact arithmetic. Only near-maximal candidates (by floats) are compared as rationals."""
    rough = first / second
    near = rough >= rough.max() * (1 - 1e-12)
    pairs = np.unique(np.stack([first[near], second[near]]), axis=1)
    return max(Fraction(int(a), int(b)) for a, b in pairs.T)


def assert_private(first: NDArray[np.int64], second: NDArray[np.int64], epsilon: float) -> None:
    """Both are laws in units of 2^-62, and neither exceeds e^epsilon times the other anywhere: no tolerance."""
    bound = exp_lower(epsilon)
    for weights in (first, second):
        assert int(weights.min()) >= 1
        assert sum(map(int, np.add.reduceat(weights >> 31, [0]))) * 2**31 + int((weights & (2**31 - 1)).sum()) == TOTAL
    assert largest_ratio(first, second) <= bound
    assert largest_ratio(second, first) <= bound


def spelled_out(
    lattice: Lattice, p: NDArray[np.float64], slope: float, lift: float
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The weights of one client and the intervals (start, stop, outcome) of [0, 2^62), from the definition, in Python integers."""
    k = len(p)
    lower = [int(x) for x in np.broadcast_to(lattice.lower, k)]
    upper = [int(x) for x in np.broadcast_to(lattice.upper, k)]
    floors = [float(x) for x in np.broadcast_to(lattice.box.lower, k)]
    intervals, place = [], 0
    for x in range(k):
        intervals.append((place, place + lower[x], x))
        place += lower[x]
    shared, uniform = place, isinstance(lattice.lower, int)
    portioning = not uniform and (slope * TOTAL == inf or lift == 0.0)
    lift = 0.0 if portioning else lift
    excess = []
    for x in range(k):
        counts = p[x] > NEGLIGIBLE or (uniform and slope < inf)
        value = (float(p[x]) * (slope * TOTAL) if counts else 0.0) + lift * floors[x] * TOTAL
        wanted = min(max(floor(min(value, float(TOTAL))), lower[x]), upper[x]) - lower[x]
        excess.append(min(wanted, TOTAL - place))
        intervals.append((place, place + excess[x], x))
        place += excess[x]
    portion = [0] * k
    if portioning:
        sizes = [0 if p[x] > NEGLIGIBLE else int(lattice.portions[x]) for x in range(k)]
        whole, before = sum(sizes), 0
        many = min(TOTAL - place, whole * (TOTAL - shared) // TOTAL)
        for x in range(k):
            after = before + sizes[x]
            portion[x] = ceil(Fraction(after * many, whole or 1)) - ceil(Fraction(before * many, whole or 1))
            assert portion[x] <= upper[x] - lower[x] - excess[x]
            intervals.append((place, place + portion[x], x))
            before, place = after, place + portion[x]
    fill = []
    for x in range(k):
        fill.append(min(upper[x] - lower[x] - excess[x] - portion[x], TOTAL - place))
        intervals.append((place, place + fill[x], x))
        place += fill[x]
    assert place == TOTAL
    return [sum(parts) for parts in zip(lower, excess, portion, fill, strict=True)], intervals
