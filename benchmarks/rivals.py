"""What a reader of the paper would write first: the rivals that our figures are ratios to."""

import math

import numpy as np
from numpy.typing import NDArray


def bisection_projection(p: NDArray[np.float64], epsilon: float, tolerance: float) -> NDArray[np.float64]:
    """max(p/r, 1/(e^eps + k - 1)) with r by bisection between the paper's end points, until the sum is within a tolerance."""
    k = p.size
    floor = 1.0 / (math.exp(epsilon) + k - 1)
    low, high = 1.0, (math.exp(epsilon) + k - 1) / math.exp(epsilon)
    while True:
        r = (low + high) / 2
        q = np.maximum(p / r, floor)
        total = q.sum()
        if abs(total - 1.0) <= tolerance:
            return q
        low, high = (r, high) if total > 1.0 else (low, r)
