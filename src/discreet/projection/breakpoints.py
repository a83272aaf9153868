"""The exact slope in sorted order: G is linear between the breakpoints lower_x/p_x and upper_x/p_x.

This is the solver of last resort, always right in O(k log k), for the rare row on which Newton steps do not settle.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

NEWTON_STEPS = 200
SETTLED = 1e-15  # relative change of the slope below which the same set is being solved again

NEGLIGIBLE = 1e-280  # a smaller mass counts as none: a bound divided by it, in units of 2^-62, would overflow
ROUNDING = 1e-14  # what summation may add to a mass


def slope_and_lift(
    p: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float]:
    """(slope, lift) of the projection of one law. On a flat piece its near end; infinite where no slope serves."""
    held = p > NEGLIGIBLE
    mass, low, high = p[held], lower[held], upper[held]
    unheld = lower[~held].sum()
    if high.sum() + unheld <= 1.0 + ROUNDING:  # P is clipped from above wherever it is positive
        lift = (1.0 - high.sum()) / unheld if unheld > 0.0 else 0.0
        if high.sum() + unheld < 1.0 - ROUNDING:
            return np.inf, lift
        return (high / mass).max(), lift
    places = np.sort(np.concatenate((low / mass, high / mass)))

    def total(slope: float) -> float:  # summed afresh: running sums would lose the small masses
        return float(np.clip(slope * mass, low, high).sum() + unheld)

    right = bisect_left(places, True, key=lambda slope: total(slope) >= 1.0 - ROUNDING)
    there, after = places[right], places[min(right + 1, places.size - 1)]
    if right == 0 or (total(there) <= 1.0 + ROUNDING and total(after) - total(there) <= ROUNDING):
        return float(there), 0.0  # a flat piece at height one, up to rounding: its near end
    inside = 0.5 * places[right - 1] + 0.5 * there  # identifies the segment; the formula below does the rest
    below, above = inside * mass < low, inside * mass > high
    middle = mass[~(below | above)].sum()
    slope = (1.0 - unheld - low[below].sum() - high[above].sum()) / middle if middle > NEGLIGIBLE else there
    return float(min(max(slope, places[right - 1]), after)), 0.0
