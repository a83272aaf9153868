"""The exact slope in sorted order: G is linear between the breakpoints lower_x/p_x and upper_x/p_x.

This is the solver of last resort, always right in O(k log k); the Newton steps of the other modules end in it when they
meet a flat piece or do not settle. It is plain numpy on one row, and `compiled` compiles this same text.
"""

import numpy as np
from numpy.typing import NDArray

NEWTON_STEPS = 60
SETTLED = 1e-15  # relative change of the slope below which the same set is being solved again
FLAT = 1e-12  # masses this close to one differ by rounding only
_HUGE = 1e308


def slope_and_lift(
    p: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float]:
    """(slope, lift) of the projection of one law. The smallest slope where several serve, infinite where none does."""
    held = p > 0.0
    mass, low, high = p[held], lower[held], upper[held]
    unheld = lower[~held].sum()
    if high.sum() + unheld <= 1.0 + FLAT:  # P is clipped from above wherever it is positive
        lift = (1.0 - high.sum()) / unheld if unheld > 0.0 else 0.0
        if high.sum() + unheld < 1.0 - FLAT:
            return np.inf, lift
        return min((high / mass).max(), _HUGE), lift
    places = np.minimum(np.concatenate((low / mass, high / mass)), _HUGE)
    order = np.argsort(places)
    places = places[order]
    steepness = np.maximum(np.cumsum(np.concatenate((mass, -mass))[order]), 0.0)
    climbs = np.cumsum(steepness[:-1] * (places[1:] - places[:-1]))
    right = min(np.searchsorted(climbs, 1.0 - lower.sum()), climbs.size - 1) + 1
    left_place, right_place = places[right - 1], places[right]
    inside = 0.5 * left_place + 0.5 * right_place  # identifies the segment; the formula below does the rest
    below, above = inside * mass < low, inside * mass > high
    middle = mass[~(below | above)].sum()
    if middle <= 0.0:
        return left_place, 0.0
    slope = (1.0 - unheld - low[below].sum() - high[above].sum()) / middle
    return min(max(slope, left_place), right_place), 0.0
