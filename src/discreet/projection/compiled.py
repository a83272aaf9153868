"""The projection in numba: one pass over memory, rows in parallel, branch-free inner loops.

The same functions as `vectorised`, with the same meaning. Sums may be re-associated (so that they use vector
instructions); the integers that decide privacy are computed without any such licence in `discreet.release.compiled`.
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
from discreet.projection import breakpoints
from discreet.projection.breakpoints import NEGLIGIBLE, NEWTON_STEPS, SETTLED

Floats = NDArray[np.float64]
Bound = float | Floats

_WORTH_SHARING = 1 << 16  # entries
_SUMS = {"reassoc", "nsz", "contract"}
_slope_and_lift = numba.njit(cache=True)(breakpoints.slope_and_lift)


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
def solve(p: Any, lower: Any, upper: Any) -> tuple[float, float]:
    """(slope, lift) of one row."""
    slope = 1.0
    for _ in range(NEWTON_STEPS):
        clipped, middle = _clipped_and_middle(p, slope, lower, upper)
        if not middle > 0.0:
            break
        step = (1.0 - clipped) / middle
        if not (step > 0.0 and step < np.inf):
            break
        if abs(step - slope) <= SETTLED * slope:
            return step, 0.0
        slope = step
    low, high = np.empty(p.size), np.empty(p.size)
    low[:] = lower
    high[:] = upper
    return _slope_and_lift(p, low, high)


@numba.njit(cache=True)
def _fill(p: Any, slope: float, lift: float, lower: Any, upper: Any, out: Any) -> None:
    for place in range(p.size):
        low, high = at(lower, place), at(upper, place)
        value = (slope * p[place] if p[place] > NEGLIGIBLE else 0.0) + lift * low
        value = value if value > low else low
        out[place] = value if value < high else high


@numba.njit(parallel=True, cache=True)
def _project(laws: Any, lower: Any, upper: Any, out: Any) -> int:
    bad = len(laws)
    for row in numba.prange(len(laws)):
        if is_law(laws[row]):
            slope, lift = solve(laws[row], lower, upper)
            _fill(laws[row], slope, lift, lower, upper, out[row])
        else:
            bad = min(bad, row)
    return bad if bad < len(laws) else -1


@numba.njit(parallel=True, cache=True)
def _mix(laws: Any, lower: Any, upper: Any, slope: float, lift: float, out: Any) -> int:
    bad = len(laws)
    for row in numba.prange(len(laws)):
        if is_law(laws[row]):
            _fill(laws[row], slope, lift, lower, upper, out[row])
        else:
            bad = min(bad, row)
    return bad if bad < len(laws) else -1


@numba.njit(parallel=True, cache=True)
def _slopes(laws: Any, lower: Any, upper: Any, out: Any) -> int:
    bad = len(laws)
    for row in numba.prange(len(laws)):
        if is_law(laws[row]):
            out[row] = solve(laws[row], lower, upper)[0]
        else:
            bad = min(bad, row)
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


def project(laws: Floats, lower: Bound, upper: Bound, out: Floats) -> int:
    """Fill `out` with the projections; the number of the first row that is not a law, or -1."""
    with threads_for(laws.size):
        return int(_project(laws, lower, upper, out))


def mix(laws: Floats, lower: Bound, upper: Bound, slope: float, lift: float, out: Floats) -> int:
    """Fill `out` with clip(slope p + lift lower)."""
    with threads_for(laws.size):
        return int(_mix(laws, lower, upper, slope, lift, out))


def slopes(laws: Floats, lower: Bound, upper: Bound, out: Floats) -> int:
    """Fill `out` (n,) with the slopes 1/r."""
    with threads_for(laws.size):
        return int(_slopes(laws, lower, upper, out))
