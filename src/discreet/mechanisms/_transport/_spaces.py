"""Finite metric spaces: points on a line, points in a space under a norm, or a matrix of distances that obeys the axioms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError
from discreet.families._laws import as_floats
from discreet.mechanisms._transport._symmetry import orbits_of

Floats = NDArray[np.float64]
MOST_ON_A_LINE = 2_000
MOST = 1_024  # elsewhere, such as 32 by 32
_NORMS: dict[float, Callable[[Floats], Floats]] = {
    1: lambda apart: np.asarray(apart.sum(axis=2)),
    2: lambda apart: np.sqrt(np.square(apart).sum(axis=2)),
    math.inf: lambda apart: np.asarray(apart.max(axis=2)),
}
_METRIC_ROUNDING = 1e-9  # of a distance relative to the largest


@dataclass(frozen=True, eq=False)
class MetricSpace:
    """Distances between all points, in an order in which neighbours on a line are neighbours; `order` leads back.

    `gaps` between neighbours where it is a line; `orbits`: the number of each point's orbit under isometries that are known.
    """

    distances: Floats
    order: NDArray[np.intp]
    gaps: Floats | None
    orbits: NDArray[np.intp]

    @property
    def size(self) -> int:
        return len(self.distances)


def line_space(points: Floats) -> MetricSpace:
    """Points on a line, in any order, all different."""
    _check_size(len(points), MOST_ON_A_LINE)
    order = np.argsort(points, kind="stable")
    gaps = np.diff(points[order])
    if not (gaps > 0.0).all():
        twice = points[order][int(np.argmin(gaps))]
        raise DiscreetError(f"points holds {twice:g} twice; give every place once")
    ordered = points[order]
    return MetricSpace(np.abs(ordered[:, None] - ordered), order, gaps, np.arange(len(points)))


def space_of(points: ArrayLike | None, metric: ArrayLike | None, norm: float | None) -> MetricSpace:
    """The space of points (n,) or (n, dim) under a norm, Euclid's if None; or of a matrix of distances (n, n)."""
    if (points is None) == (metric is None):
        raise DiscreetError(
            "pass either points (numbers, or rows of coordinates) or metric= (a matrix of distances), one of the two"
        )
    if metric is not None:
        if norm is not None:
            raise DiscreetError(
                f"norm = {norm!r} is for points; metric= has all distances already: leave one of them out"
            )
        distances = _finite_array(metric, "metric")
        _check_metric(distances)
        return MetricSpace(distances, np.arange(len(distances)), None, np.arange(len(distances)))
    length = _NORMS.get(2 if norm is None else norm) if norm is None or isinstance(norm, (int, float)) else None
    if length is None:
        raise DiscreetError(
            f"norm = {norm!r} is not one of 1 (along the axes), 2 (as the crow flies), inf (the longest axis)"
        )
    given: Any = points
    places = _finite_array(given, "points")
    if places.ndim == 2 and places.shape[1] == 1:
        places = places[:, 0]
    if places.ndim == 1:
        return line_space(places)
    if places.ndim != 2:
        raise DiscreetError(f"points has shape {places.shape}; give numbers (n,) or rows of coordinates (n, dim)")
    _check_size(len(places), MOST)
    distances = length(np.abs(places[:, None, :] - places))
    _check_apart(distances, "points", "twice in the same place; give every place once")
    return MetricSpace(distances, np.arange(len(places)), None, orbits_of(places))


def _finite_array(values: ArrayLike, name: str) -> Floats:
    found = as_floats(values, name)
    if not np.isfinite(found).all():
        raise DiscreetError(
            f"{name} holds {found[~np.isfinite(found)][0]:g}; distances between such points are no numbers"
        )
    if found.size and np.abs(found).max() > 1e100:
        raise DiscreetError(f"{name} holds {np.abs(found).max():g}; measure in other units")
    return found


def _check_size(size: int, most: int) -> None:
    if not 2 <= size <= most:
        raise DiscreetError(f"{size} points; it takes 2 to {most:,} of them (2 to {MOST_ON_A_LINE:,} on a line)")


def _check_metric(distances: Floats) -> None:
    """Refuse what is no metric, and say which of its axioms fails where."""
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise DiscreetError(
            f"metric has shape {distances.shape}; it is a square matrix of distances between all points"
        )
    _check_size(len(distances), MOST)
    tolerance = _METRIC_ROUNDING * float(np.abs(distances).max())
    if (distances < 0.0).any():
        x, y = np.argwhere(distances < 0.0)[0]
        raise DiscreetError(f"metric[{x}][{y}] = {distances[x, y]:g} is negative; distances are not")
    if np.diagonal(distances).any():
        x = int(np.flatnonzero(np.diagonal(distances))[0])
        raise DiscreetError(f"metric[{x}][{x}] = {distances[x, x]:g}; the distance of a point from itself is 0")
    if (np.abs(distances - distances.T) > tolerance).any():
        x, y = np.argwhere(np.abs(distances - distances.T) > tolerance)[0]
        raise DiscreetError(
            f"metric[{x}][{y}] = {distances[x, y]:g} and metric[{y}][{x}] = {distances[y, x]:g}; distances are the same both ways"
        )
    _check_apart(distances, "metric", "at distance 0 from each other; give every place once")
    for through in range(len(distances)):
        longer = distances > distances[:, [through]] + distances[through] + tolerance
        if longer.any():
            x, y = np.argwhere(longer)[0]
            raise DiscreetError(
                f"metric[{x}][{y}] = {distances[x, y]:g} is more than the way by {through}, "
                f"{distances[x, through]:g} + {distances[through, y]:g}: the triangle inequality fails; take lengths of shortest ways"
            )


def _check_apart(distances: Floats, name: str, what: str) -> None:
    same = np.argwhere(np.triu(distances <= 0.0, k=1))
    if len(same):
        raise DiscreetError(f"{name} has {same[0][0]} and {same[0][1]} {what}")
