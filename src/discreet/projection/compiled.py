"""The projection in numba: one pass over memory, rows in parallel, branch-free inner loops.

The same functions as `vectorised`, with the same meaning. Sums may be re-associated (so that they use vector
instructions); the integers that decide privacy are computed without any such licence in `discreet.release.compiled`.
A row on which Newton does not settle is left with slope NaN, for `breakpoints` to solve.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from discreet.families.laws import SUM_TOLERANCE
from discreet.projection.breakpoints import NEGLIGIBLE, NEWTON_STEPS, ROUNDING, SETTLED

Floats = NDArray[np.float64]
Bound = float | Floats

_WORTH_SHARING = 1 << 16  # entries
_SUMS = {"reassoc", "nsz", "contract"}
_PAST = 2.0**-50  # a step this far beyond a breakpoint is beyond it in floating point too


def at(bound: Any, place: Any) -> Any:
    """bound[place], or the bound itself when it is one number (a uniform reference)."""
    return bound[place] if np.ndim(bound) else bound


@overload(at, inline="always")
def _at(bound: Any, place: Any) -> Any:
    def entry(bound: Any, place: Any) -> Any:
        return bound[place]

    def constant(bound: Any, place: Any) -> Any:
        return bound

    return entry if isinstance(bound, types.Array) else constant


@numba.njit(fastmath=_SUMS, cache=True)
def is_law(p: Any) -> bool:
    """Non-negative and summing to one. NaN fails both comparisons."""
    total = 0.0
    negative = 0.0
    for place in range(p.size):
        total += p[place]
        negative += 0.0 if p[place] >= 0.0 else 1.0
    return negative == 0.0 and abs(total - 1.0) <= SUM_TOLERANCE


@numba.njit(fastmath=_SUMS, cache=True)
def _clipped_and_middle(p: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    clipped = 0.0
    middle = 0.0
    for place in range(p.size):
        value = slope * p[place]
        low, high = at(lower, place), at(upper, place)
        inside = value if value > low else low
        inside = inside if inside < high else high
        unclipped = inside == value
        clipped += 0.0 if unclipped else inside
        middle += p[place] if unclipped else 0.0
    return clipped, middle


@numba.njit(cache=True)
def _neighbours(p: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    """The nearest breakpoints on either side of a slope at which every outcome is clipped: 0 or infinity where there is none."""
    below, above = 0.0, np.inf
    for place in range(p.size):
        if p[place] > NEGLIGIBLE:
            if slope * p[place] < at(lower, place):
                above = min(above, at(lower, place) / p[place])
            elif slope * p[place] > at(upper, place):
                below = max(below, at(upper, place) / p[place])
    return below, above


@numba.njit(cache=True)
def _lift_off_support(p: Any, lower: Any, upper: Any) -> float:
    """The multiple of `lower` that outcomes without mass get when those with mass are all clipped from above."""
    held, unheld = 0.0, 0.0
    for place in range(p.size):
        if p[place] > NEGLIGIBLE:
            held += at(upper, place)
        else:
            unheld += at(lower, place)
    return (1.0 - held) / unheld


@numba.njit(cache=True)
def solve(p: Any, lower: Any, upper: Any) -> tuple[float, float]:
    """(slope, lift) of one row; slope NaN if Newton does not settle."""
    slope = 1.0
    for _ in range(NEWTON_STEPS):
        clipped, middle = _clipped_and_middle(p, slope, lower, upper)
        step = (1.0 - clipped) / middle if middle > NEGLIGIBLE else 0.0
        if 0.0 < step < np.inf:
            if abs(step - slope) <= SETTLED * slope:
                return step, 0.0
            slope = step
            continue
        below, above = _neighbours(p, slope, lower, upper)
        if middle <= NEGLIGIBLE and abs(1.0 - clipped) <= ROUNDING:  # a flat piece at height one: its near end
            return (below if below > 0.0 else slope), 0.0
        if clipped > 1.0:
            slope = below * (1.0 - _PAST)
        elif above < np.inf:
            slope = above * (1.0 + _PAST)
        else:
            return np.inf, _lift_off_support(p, lower, upper)
    return np.nan, 0.0


@numba.njit(parallel=True, cache=True)
def _affine(laws: Any, lower: Any, upper: Any, projecting: bool, slope: Any, lift: Any, out: Any) -> int:
    """Solve for slope and lift when `projecting`, then fill those rows of `out` that there are with the affine law."""
    bad = len(laws)
    for row in numba.prange(len(laws)):
        p = laws[row]
        if not is_law(p):
            bad = min(bad, row)
            continue
        if projecting:
            slope[row], lift[row] = solve(p, lower, upper)
        if row < len(out):
            steep, raised = slope[row], lift[row]
            for place in range(p.size):
                low, high = at(lower, place), at(upper, place)
                value = (steep * p[place] if p[place] > NEGLIGIBLE else 0.0) + raised * low
                value = value if value > low else low
                out[row, place] = value if value < high else high
    return bad if bad < len(laws) else -1


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """One thread for small work: waking the others would cost more than it saves, a great deal more on a busy machine."""
    before = numba.get_num_threads()
    numba.set_num_threads(before if entries >= _WORTH_SHARING else 1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def affine(laws: Floats, lower: Bound, upper: Bound, projecting: bool, slope: Floats, lift: Floats, out: Floats) -> int:
    """As `vectorised.affine`."""
    with threads_for(laws.size):
        return int(_affine(laws, lower, upper, projecting, slope, lift, out))
