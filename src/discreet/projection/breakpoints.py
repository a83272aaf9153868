"""The exact slope in sorted order: G is linear between the breakpoints lower_x/p_x and upper_x/p_x.

This is the solver of last resort, always right in O(k log k), for the rare row on which Newton steps do not settle.
"""

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
    places = np.concatenate((low / mass, high / mass))
    order = np.argsort(places)
    places = places[order]
    steepness = np.maximum(np.cumsum(np.concatenate((mass, -mass))[order]), 0.0)
    climbs = np.cumsum(steepness[:-1] * (places[1:] - places[:-1]))
    target = 1.0 - lower.sum()
    right = min(np.searchsorted(climbs, target), climbs.size - 1) + 1
    plateau = min(np.searchsorted(climbs, target - ROUNDING), climbs.size - 1) + 1
    last_there = np.searchsorted(places, places[plateau], side="right") - 1
    level = abs(climbs[plateau - 1] - target) <= ROUNDING
    if level and steepness[last_there] <= ROUNDING:  # a flat piece at height one, up to rounding: its near end
        return places[plateau], 0.0
    left_place, right_place = places[right - 1], places[right]
    inside = 0.5 * left_place + 0.5 * right_place  # identifies the segment; the formula below does the rest
    below, above = inside * mass < low, inside * mass > high
    middle = mass[~(below | above)].sum()
    if middle <= 0.0:
        return left_place, 0.0
    slope = (1.0 - unheld - low[below].sum() - high[above].sum()) / middle
    return min(max(slope, left_place), right_place), 0.0
