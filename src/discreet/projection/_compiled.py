"""The projection in numba: one pass over memory, branch-free inner loops, rows shared out among threads.

The same functions as `vectorised`, with the same meaning and the same results, bit for bit: the order of every sum that
a result depends on is fixed (`breakpoints`, `lanes`).
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from discreet._kernels import kernel
from discreet.families._laws import SUM_TOLERANCE
from discreet.projection._breakpoints import (
    BEYOND,
    BLOCK,
    FARTHEST,
    NARROW,
    NEGLIGIBLE,
    NEWTON_STEPS,
    PAST,
    PATIENT,
    ROUNDING,
    SETTLED,
)
from discreet.projection._lanes import clipped_and_middle, law_sums, mass_above
from discreet.projection._threads import first_bad_row

Floats = NDArray[np.float64]
Bound = float | Floats


def bound_at(bound: Any, place: Any) -> Any:
    """bound[place], or the bound itself when it is one number (a uniform reference)."""
    return bound[place] if np.ndim(bound) else bound


@overload(bound_at, inline="always")
def _bound_at(bound: Any, place: Any) -> Any:
    def entry(bound: Any, place: Any) -> Any:
        return bound[place]

    def constant(bound: Any, place: Any) -> Any:
        return bound

    return entry if isinstance(bound, types.Array) else constant


def _one_bound(bound: Any) -> Any:
    """The bound where it is one number; infinity where there is one for each outcome."""
    raise TypeError("_one_bound is called from compiled code")


@overload(_one_bound, inline="always")
def _one_bound_of(bound: Any) -> Any:
    def none(bound: Any) -> Any:
        return np.inf

    def constant(bound: Any) -> Any:
        return bound

    return none if isinstance(bound, types.Array) else constant


@kernel(error_model="numpy")
def inspect_law(p: Any, lower: Any) -> tuple[int, float, float]:
    """(how many outcomes a law gives mass to, 0 if it is no law; how many exceed a uniform bound, and their mass: where `solve` begins).

    A law has no negative entry and sums to one: NaN does not."""
    least = _one_bound(lower)
    total, negative, held, above, number = law_sums(p, 0, min(p.size, BLOCK), NEGLIGIBLE, least)
    for start in range(BLOCK, p.size, BLOCK):
        more = law_sums(p, start, min(start + BLOCK, p.size), NEGLIGIBLE, least)
        total += more[0]
        negative += more[1]
        held += more[2]
        above += more[3]
        number += more[4]
    good = negative == 0.0 and abs(total - 1.0) <= SUM_TOLERANCE
    return (int(held) if good else 0), number, above


@kernel(error_model="numpy")
def _clipped_and_middle(mass: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    """The bounds of the clipped outcomes, summed, and the mass of the others: by blocks, so that long sums stay accurate."""
    clipped, middle = clipped_and_middle(mass, 0, min(mass.size, BLOCK), slope, lower, upper)
    for start in range(BLOCK, mass.size, BLOCK):
        more = clipped_and_middle(mass, start, min(start + BLOCK, mass.size), slope, lower, upper)
        clipped += more[0]
        middle += more[1]
    return clipped, middle


@kernel(error_model="numpy")
def _neighbours(mass: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    """The nearest breakpoints on either side of a slope: 0 or infinity where there is none."""
    below, above = 0.0, np.inf
    for place in range(mass.size):
        if mass[place] > NEGLIGIBLE:
            if slope * mass[place] < bound_at(lower, place):
                above = min(above, bound_at(lower, place) / mass[place])
            elif slope * mass[place] > bound_at(upper, place):
                below = max(below, bound_at(upper, place) / mass[place])
    return below, above


@kernel(error_model="numpy")
def _lift_off_support(mass: Any, unheld: float, lower: Any, upper: Any) -> float:
    """The multiple of `lower` that outcomes without mass get when those with mass are all clipped from above."""
    held = 0.0
    for place in range(mass.size):
        if mass[place] > NEGLIGIBLE:
            held += bound_at(upper, place)
        else:
            unheld += bound_at(lower, place)
    return (1.0 - held) / unheld if unheld > 0.0 else 0.0


@kernel(error_model="numpy")
def solve_held(mass: Any, unheld: float, lower: Any, upper: Any) -> tuple[float, float]:
    """(slope, lift) of one law, from the outcomes listed and the sum `unheld` of the lower bounds of those that are not.

    Newton, kept between the largest slope known to be too small and the smallest known to be too large: where it would
    leave them, or meets a flat piece, it halves the distance instead, so that it cannot go round in circles.
    """
    slope, too_small, too_large, stretch = 1.0, 0.0, np.inf, 1.0 + PAST
    for turn in range(NEWTON_STEPS):
        clipped, middle = _clipped_and_middle(mass, slope, lower, upper)
        clipped += unheld
        step = (1.0 - clipped) / middle if middle > NEGLIGIBLE else np.inf
        excess = clipped + slope * middle - 1.0
        if middle > NEGLIGIBLE and (abs(step - slope) <= SETTLED * slope or abs(excess) <= ROUNDING):
            return (step if abs(step - slope) <= SUM_TOLERANCE * slope else slope), 0.0
        if excess > 0.0:
            too_large = slope
        else:
            too_small = slope
        bracketed = too_small > 0.0 and too_large < np.inf
        if middle <= NEGLIGIBLE:
            below, above = _neighbours(mass, slope, lower, upper)
            if abs(excess) <= ROUNDING:  # a flat piece at height one: its near end
                return (below if below > 0.0 else slope), 0.0
            if excess < 0.0 and above == np.inf:
                return np.inf, _lift_off_support(mass, unheld, lower, upper)
            step = below / stretch if excess > 0.0 else min(above * stretch, BEYOND)
            stretch = min(max(2.0, stretch * stretch), FARTHEST)  # past the next breakpoint, and much further each time
        elif step <= 0.0:
            step = 0.5 * slope
        halving = turn >= PATIENT and turn % 2 == 1
        if bracketed and (halving or middle <= NEGLIGIBLE or not too_small < step < too_large):
            step = np.sqrt(too_small) * np.sqrt(too_large)
        slope = step
    return slope, 0.0


@kernel(error_model="numpy")
def _number_and_mass_above(mass: Any, slope: float, lower: float) -> tuple[float, float]:
    """How many masses are not clipped from below, and their sum: by blocks, so that long sums stay accurate."""
    total, number = mass_above(mass, 0, min(mass.size, BLOCK), slope, lower)
    for start in range(BLOCK, mass.size, BLOCK):
        more = mass_above(mass, start, min(start + BLOCK, mass.size), slope, lower)
        total += more[0]
        number += more[1]  # a whole number: in whatever order
    return number, total


@kernel(error_model="numpy")
def _unclipped_masses(mass: Any, slope: float, lower: float, at_most: float) -> Any:
    """The masses that are not clipped from below; a larger slope left `at_most` so many."""
    last = int(at_most)
    kept = np.empty(last + 1)
    number = 0
    for place in range(mass.size):  # write always, advance only past what stays: no branch
        kept[min(number, last)] = mass[place]  # more than at_most would mean that the caller's array changed meanwhile
        number += slope * mass[place] > lower
    return kept[: min(number, last)]


@kernel(error_model="numpy")
def _solve_convex(mass: Any, unheld: int, lower: float, above: float, total: float) -> float:
    """The slope where nothing can be clipped from above, from how many masses exceed `lower` and their sum. Newton then only ever
    goes down, so that what is once clipped from below stays so and need not be looked at again: the whole costs little more than two
    passes, however many the steps."""
    slope = 1.0
    for turn in range(NEWTON_STEPS):
        if turn:
            above, total = _number_and_mass_above(mass, slope, lower)
        if not total > NEGLIGIBLE:
            break
        step = (1.0 - (unheld + mass.size - above) * lower) / total
        if not 0.0 < step < slope * (1.0 - SETTLED):
            return step if abs(step - slope) <= SUM_TOLERANCE * slope else slope
        slope = step
        if mass.size > NARROW:
            kept = _unclipped_masses(mass, slope, lower, above)
            unheld += mass.size - kept.size
            mass = kept
    return slope


@kernel(error_model="numpy")
def solve_uniform_compiled(mass: Any, unheld: int, lower: float, upper: float) -> tuple[float, float]:
    """(slope, lift) over a uniform reference, from the held masses in order and how many outcomes are not held.

    So a client given as k numbers and as its few distinct values has one slope, bit for bit.
    """
    if upper == np.inf:
        above, total = _number_and_mass_above(mass, 1.0, lower)
        return _solve_convex(mass, unheld, lower, above, total), 0.0
    return solve_held(mass, unheld * lower, lower, upper)


def solve(p: Any, seen: tuple[int, float, float], lower: Any, upper: Any) -> Any:
    """(slope, lift) of one row at which `inspect_law` has looked: one of the two functions below, by the kind of bounds."""
    raise TypeError("solve is called from compiled code; from Python use Box.project or Box.scale")


@overload(solve)
def _solve(p: Any, seen: tuple[int, float, float], lower: Any, upper: Any) -> Any:
    def uniform(p: Any, seen: tuple[int, float, float], lower: Any, upper: Any) -> tuple[float, float]:
        held, above, total = seen
        if held == p.size and upper == np.inf:
            return _solve_convex(p, 0, lower, above, total), 0.0
        if held == p.size:
            return solve_uniform_compiled(p, 0, lower, upper)
        mass = np.empty(held)
        filled = 0
        for place in range(p.size):
            if p[place] > NEGLIGIBLE and filled < held:
                mass[filled] = p[place]
                filled += 1
        return solve_uniform_compiled(mass, p.size - held, lower, upper)

    def general(p: Any, seen: tuple[int, float, float], lower: Any, upper: Any) -> tuple[float, float]:
        return solve_held(p, 0.0, lower, upper)

    return general if isinstance(lower, types.Array) else uniform


@kernel(error_model="numpy")
def _fill(p: Any, slope: float, lift: float, lower: Any, upper: Any, out: Any) -> None:
    if slope < np.inf:
        for place in range(p.size):
            low = bound_at(lower, place)
            out[place] = min(max(slope * p[place] + lift * low, low), bound_at(upper, place))
    else:
        for place in range(p.size):
            low = bound_at(lower, place)
            off_support = min(max(lift * low, low), bound_at(upper, place))
            out[place] = bound_at(upper, place) if p[place] > NEGLIGIBLE else off_support


@kernel(error_model="numpy", nogil=True)
def _affine(laws: Any, lower: Any, upper: Any, ceiling: Any, projecting: bool, slope: Any, lift: Any, out: Any) -> int:
    for row in range(len(laws)):
        seen = inspect_law(laws[row], lower)
        if seen[0] == 0:
            return row
        if projecting:
            slope[row], lift[row] = solve(laws[row], seen, lower, ceiling)
        if row < len(out):
            _fill(laws[row], slope[row], lift[row], lower, upper, out[row])
    return -1


def affine(
    laws: Floats, lower: Bound, upper: Bound, ceiling: Bound, projecting: bool, slope: Floats, lift: Floats, out: Floats
) -> int:
    """As `vectorised.affine`."""

    def work(rows: slice) -> int:
        return int(_affine(laws[rows], lower, upper, ceiling, projecting, slope[rows], lift[rows], out[rows]))

    return first_bad_row(work, len(laws), laws.size)
