"""The law nearest to a vector in Euclidean distance: clip(v - t, lower, upper) with t such that it sums to one.

An unbiased estimate of a law may have negative entries. The law nearest to it is nearer to the truth, whatever the truth is
(projection onto a convex set that contains it), but no longer unbiased.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError

Floats = NDArray[np.float64]


def nearest_law(vector: ArrayLike, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0) -> Floats:
    """The law between `lower` and `upper` that is nearest to the vector. Exact: t lies on a segment between breakpoints."""
    v = np.asarray(vector, dtype=np.float64)
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), v.shape) for end in (lower, upper))
    if v.ndim != 1 or not np.isfinite(v).all():
        raise DiscreetError("vector is not a list of finite numbers, one for each outcome")
    if not (low.sum() <= 1.0 + 1e-9 and high.sum() >= 1.0 - 1e-9):
        raise DiscreetError(f"no law lies between bounds that sum to {low.sum():g} and {high.sum():g}")
    breaks = np.sort(np.concatenate([v - low, v - high]))
    first, last = 0, len(breaks) - 1  # the mass falls from sum(high) at the first break to sum(low) at the last
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if np.clip(v - breaks[middle], low, high).sum() >= 1.0 else (first, middle)
    middle_of_segment = v - 0.5 * (breaks[first] + breaks[last])
    free = (middle_of_segment > low) & (middle_of_segment < high)
    clipped = np.clip(middle_of_segment, low, high)[~free].sum()
    shift = (v[free].sum() + clipped - 1.0) / free.sum() if free.any() else breaks[first]
    return np.asarray(np.clip(v - shift, low, high))
