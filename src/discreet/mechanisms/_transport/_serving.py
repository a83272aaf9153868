"""The law nearest to a client's in Wasserstein-1 distance among those between a floor and a ceiling, on a line.

W1(p, q) = sum_j h_j |P_j - Q_j| with running sums P and Q, h_j the gap to the next point. Q grows by between low_j and high_j from
point to point, from 0 to 1, so that with f_0 = 0 at 0 only,

    f_j(Q) = h_j |Q - P_j| + min over Q - high_j <= R <= Q - low_j of f_(j-1)(R)

is convex and piecewise linear: the minimum moves the kinks left of the bottom by low_j and those right of it by high_j, and |Q - P_j| adds
two kinks. Two heaps hold them; going back from Q_k = 1, each R is the bottom of f_(j-1) moved into the interval that is allowed.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nearest_on_line(law: Floats, gaps: Floats, low: Floats, high: Floats) -> Floats:
    """The nearest law to one client's on points in increasing order."""
    below, above = _Kinks(-1.0), _Kinks(1.0)  # left and right of the bottom; f_0 is infinite on both sides of 0
    below.push(0.0, math.inf)
    above.push(0.0, math.inf)
    bottoms = []
    for aim, gap, least, most in zip(
        np.cumsum(law)[:-1].tolist(), gaps.tolist(), low.tolist(), high.tolist(), strict=False
    ):
        below.moved += least
        above.moved += most
        below.push(aim, gap)
        for place, change in below.pop(gap):
            above.push(place, change)
        above.push(aim, gap)
        for place, change in above.pop(gap):
            below.push(place, change)
        bottoms.append(below.first)
    found, end = np.empty(len(law)), 1.0
    for j in range(len(law) - 1, 0, -1):
        start = min(max(bottoms[j - 1], end - high[j]), end - low[j])
        found[j], end = end - start, start
    found[0] = end
    return np.clip(found, low, high)


class _Kinks:
    """Places where the slope changes, and by how much, on one side of the bottom; the nearest to it first. All can be moved at once."""

    def __init__(self, sign: float) -> None:
        self._sign, self.moved = sign, 0.0
        self._heap: list[tuple[float, float]] = []

    def push(self, place: float, change: float) -> None:
        heapq.heappush(self._heap, (self._sign * (place - self.moved), change))

    @property
    def first(self) -> float:
        return self._sign * self._heap[0][0] + self.moved

    def pop(self, change: float) -> list[tuple[float, float]]:
        """Take away so much change of slope, from the nearest kinks on."""
        taken = []
        while change > 0.0:
            place, much = self._heap[0]
            part = min(much, change)
            taken.append((self._sign * place + self.moved, part))
            if much > part:
                heapq.heapreplace(self._heap, (place, much - part))
            else:
                heapq.heappop(self._heap)
            change -= part
        return taken
