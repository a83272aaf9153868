"""The law nearest to a vector in Euclidean distance: clip(v - t, lower, upper) with t such that it sums to one.

An unbiased estimate of a law may have negative entries. The law nearest to it is nearer to the truth, whatever the truth is
(projection onto a convex set that contains it), but no longer unbiased.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError, Range
from discreet.families._laws import SUM_TOLERANCE, as_floats

Floats = NDArray[np.float64]
_ROUNDS = 3
_ENTRIES = Range(-1e300, 1e300)


def nearest_law(vector: ArrayLike, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0) -> Floats:
    """The law between `lower` and `upper` that is nearest to the vector. Exact: t lies on a segment between breakpoints."""
    v = as_floats(vector, "vector")
    if v.ndim != 1 or not v.size:
        raise DiscreetError(f"vector has shape {v.shape}; it has one number for each outcome")
    for end in (v.min(), v.max()):
        _ENTRIES.check("vector", float(end), "every entry has to be")
    low, high = _bound(lower, "lower", v.size), np.minimum(_bound(upper, "upper", v.size), 1.0)
    if not ((low >= 0.0) & (low <= high)).all():
        raise DiscreetError("lower and upper are not bounds of probabilities: 0 <= lower <= upper, lower <= 1")
    if not (low.sum() <= 1.0 + SUM_TOLERANCE and high.sum() >= 1.0 - SUM_TOLERANCE):
        raise DiscreetError(f"no law lies between bounds that sum to {low.sum():g} and {high.sum():g}")
    for _ in range(_ROUNDS):
        shift, law = _shift_and_clip(v, low, high)
        if abs(law.sum() - 1.0) <= SUM_TOLERANCE:
            break
        v = v - shift  # entries were too large to tell t from its neighbours: those that matter are now near 0
    return law


def _bound(end: ArrayLike, name: str, size: int) -> Floats:
    given = as_floats(end, name)
    if given.shape not in ((), (size,)):
        raise DiscreetError(f"{name} has shape {given.shape}; it is one number, or one for each of the {size} outcomes")
    return np.broadcast_to(given, size)


def _shift_and_clip(v: Floats, low: Floats, high: Floats) -> tuple[float, Floats]:
    """t and the law clip(v - t, low, high), up to the rounding of v."""
    breaks = np.sort(np.concatenate([v - low, v - high]))
    first, last = 0, len(breaks) - 1  # the mass falls from sum(high) at the first break to sum(low) at the last
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if np.clip(v - breaks[middle], low, high).sum() >= 1.0 else (first, middle)
    middle_of_segment = v - 0.5 * (breaks[first] + breaks[last])
    free = (middle_of_segment > low) & (middle_of_segment < high)
    clipped = np.clip(middle_of_segment, low, high)[~free].sum()
    ends = breaks[first], breaks[last]
    shift = float((v[free].sum() + clipped - 1.0) / free.sum() if free.any() else ends[int(clipped > 1.0)])
    return shift, np.asarray(np.clip(v - shift, low, high))
