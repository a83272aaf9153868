"""The exact draw in numba: validate, solve and draw each row while it is in cache, rows in parallel.

The arithmetic on integers, and the one multiplication and addition that feed it, are compiled without any licence to
re-associate or contract, so that the law drawn is bit for bit the one that `Lattice.weights` shows.
"""

from typing import Any

import numba
import numpy as np

from discreet.projection.breakpoints import NEGLIGIBLE
from discreet.projection.compiled import at, is_law, solve
from discreet.release.randomness import BITS

_TOTAL = float(1 << BITS)


@numba.njit(cache=True)
def _wanted(mass: float, slope: float, lift: float, floor: float, lower: Any, upper: Any) -> Any:
    """E_x before it is cut off: the affine law in units of 2^-62, rounded down, clipped to [L, U], less L."""
    value = (mass * slope if mass > NEGLIGIBLE else 0.0) + lift * floor * _TOTAL
    whole: Any = np.int64(value if value < _TOTAL else _TOTAL)
    whole = whole if whole > lower else lower
    return (whole if whole < upper else upper) - lower


@numba.njit(cache=True)
def _above_shared(p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, rest: int) -> int:
    """The outcome on which the integer `rest` falls, once the shared part has been taken off."""
    slope = slope * _TOTAL
    seen = 0
    for place in range(p.size):
        seen += _wanted(p[place], slope, lift, at(floors, place), at(lower, place), at(upper, place))
        if seen > rest:
            return place
    rest -= seen
    seen = 0
    for place in range(p.size):
        low, high = at(lower, place), at(upper, place)
        seen += high - low - _wanted(p[place], slope, lift, at(floors, place), low, high)
        if seen > rest:
            return place
    return -1  # unreachable: the lattice was built with sum U >= 2^62


@numba.njit(parallel=True, cache=True)
def draw(
    laws: Any,
    floors: Any,
    ceilings: Any,
    lower: Any,
    upper: Any,
    shared: int,
    edges: Any,
    projecting: bool,
    slope: Any,
    lift: Any,
    uniform: Any,
    out: Any,
) -> int:
    """Fill `out` with one outcome for each row, and `slope`, `lift` of those rows that had to be solved.

    `projecting`: solve for slope and lift; otherwise use those given. A row that Newton does not settle is left with slope
    NaN and undrawn. Returns the first row that is not a law, or -1.
    """
    bad = len(laws)
    for row in numba.prange(len(laws)):
        p = laws[row]
        if not is_law(p):
            bad = min(bad, row)
        elif uniform[row] >= shared:
            if projecting:
                slope[row], lift[row] = solve(p, floors, ceilings)
            if not np.isnan(slope[row]):
                out[row] = _above_shared(p, slope[row], lift[row], floors, lower, upper, uniform[row] - shared)
        elif edges.size:
            out[row] = np.searchsorted(edges, uniform[row], side="right")
        else:
            out[row] = uniform[row] // at(lower, 0)
    return bad if bad < len(laws) else -1
