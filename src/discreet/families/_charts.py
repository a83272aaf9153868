"""Coordinates in which a reference measure is easy: x = x(t) with volume element J(t) dt.

Every integral of a continuous family is taken over panels of coordinates t, so a chart chooses what is smooth and what is
finite. `Cartesian` keeps finite intervals as they are and brings infinite ones to (0, 1) by rational maps, under which every
density with tails no heavier than Cauchy's stays bounded; `Polar` and `Spherical` suit radial references, whose kinks then
lie on coordinate lines.

`breaks` are the coordinates where the reference is not smooth or has a mode: between them it is smooth and, for the shipped
families, monotone along each axis, so that its largest value on a box of coordinates sits at a corner. `edges` are the breaks
with further points between, as fine as the family's own scale.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._quadrature import subdivide_breaks

Floats = NDArray[np.float64]


class Chart(Protocol):
    """A coordinate system on the part of R^dim that carries the reference."""

    @property
    def breaks(self) -> tuple[Floats, ...]: ...
    @property
    def edges(self) -> tuple[Floats, ...]: ...
    def points(self, t: Floats) -> Floats:
        """x(t) for coordinates (..., dim)."""

    def jacobian(self, t: Floats) -> Floats:
        """|dx/dt| for coordinates (..., dim), of shape (...)."""

    def coordinates(self, x: Floats) -> Floats:
        """t(x) for points (n, dim)."""

    def stretches(self, t: Floats) -> Floats:
        """|dx/dt_i| along each axis for coordinates (n, dim): their product is the jacobian."""

    @property
    def turn(self) -> float:
        """The period of the last coordinate; 0 where it has none."""


class AxisMap(Protocol):
    """x(t) on one axis."""

    def forward(self, t: Floats) -> Floats: ...
    def slope(self, t: Floats) -> Floats: ...
    def backward(self, x: Floats) -> Floats: ...


@dataclass(frozen=True)
class Identity:
    """x = t, for a finite interval."""

    def forward(self, t: Floats) -> Floats:
        return t

    def slope(self, t: Floats) -> Floats:
        return np.ones_like(t)

    def backward(self, x: Floats) -> Floats:
        return x


@dataclass(frozen=True)
class HalfLine:
    """x = start + scale t/(1-t) on (0, 1): a half-line, towards minus infinity for a negative scale."""

    start: float
    scale: float

    def forward(self, t: Floats) -> Floats:
        return np.asarray(self.start + self.scale * t / (1.0 - t))

    def slope(self, t: Floats) -> Floats:
        return np.asarray(abs(self.scale) / np.square(1.0 - t))

    def backward(self, x: Floats) -> Floats:
        ratio = (x - self.start) / self.scale
        with np.errstate(divide="ignore"):  # a place on the other side, which is none of the half-line's
            return np.asarray(ratio / (1.0 + ratio))


@dataclass(frozen=True)
class WholeLine:
    """x = centre + scale (2t-1)/(t(1-t)) on (0, 1): the whole line."""

    centre: float
    scale: float

    def forward(self, t: Floats) -> Floats:
        return np.asarray(self.centre + self.scale * (2.0 * t - 1.0) / (t * (1.0 - t)))

    def slope(self, t: Floats) -> Floats:
        return np.asarray(self.scale * (1.0 / np.square(t) + 1.0 / np.square(1.0 - t)))

    def backward(self, x: Floats) -> Floats:
        # s = 2t - 1 solves y (1 - s^2) = 4 s; written so that neither sign of y cancels
        y = (x - self.centre) / self.scale
        return np.asarray(0.5 + 0.5 * y / (2.0 + np.sqrt(4.0 + np.square(y))))


@dataclass(frozen=True, eq=False)
class Cartesian:
    """One coordinate for each axis of R^dim."""

    maps: tuple[AxisMap, ...]
    breaks: tuple[Floats, ...]
    edges: tuple[Floats, ...]

    def points(self, t: Floats) -> Floats:
        return np.stack([axis.forward(t[..., i]) for i, axis in enumerate(self.maps)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        volume = np.ones(t.shape[:-1])
        for i, axis in enumerate(self.maps):
            if not isinstance(axis, Identity):
                volume = volume * axis.slope(t[..., i])
        return volume

    def coordinates(self, x: Floats) -> Floats:
        return np.stack([axis.backward(x[..., i]) for i, axis in enumerate(self.maps)], axis=-1)

    def stretches(self, t: Floats) -> Floats:
        return np.stack([axis.slope(t[..., i]) for i, axis in enumerate(self.maps)], axis=-1)

    @property
    def turn(self) -> float:
        return 0.0


def cartesian(box: list[tuple[float, float]], edges: Floats, breaks: Floats, width: float) -> Cartesian:
    """Straight axes cut at the breaks, and at the edges with at most `width` between the two next to the origin, within a box."""
    origin = int(np.searchsorted(edges, 0.0))
    near = subdivide_breaks(edges[origin - 1 : origin + 2], width, {1: 4096, 2: 64, 3: 8}[len(box)])
    fine = np.concatenate([edges[: origin - 1], near, edges[origin + 2 :]])
    reach = float(edges[-1])
    coarse, all_edges = [], []
    for low, high in box:
        low, high = max(low, -reach), min(high, reach)
        coarse.append(np.concatenate([[low], breaks[(breaks > low) & (breaks < high)], [high]]))
        inner = fine[(fine > low) & (fine < high)]
        all_edges.append(np.concatenate([[low], inner, [high]]))
    return Cartesian((Identity(),) * len(box), tuple(coarse), tuple(all_edges))


@dataclass(frozen=True, eq=False)
class Polar:
    """(radius, angle) in the plane."""

    breaks: tuple[Floats, ...]
    edges: tuple[Floats, ...]

    def points(self, t: Floats) -> Floats:
        radius, angle = t[..., 0], t[..., 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        return t[..., 0]

    def coordinates(self, x: Floats) -> Floats:
        angle = np.mod(np.arctan2(x[..., 1], x[..., 0]), 2.0 * math.pi)
        return np.stack([np.hypot(x[..., 0], x[..., 1]), angle], axis=-1)

    def stretches(self, t: Floats) -> Floats:
        return np.stack([np.ones_like(t[..., 0]), t[..., 0]], axis=-1)

    @property
    def turn(self) -> float:
        return 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class Spherical:
    """(radius, angle from the pole, longitude) in space."""

    breaks: tuple[Floats, ...]
    edges: tuple[Floats, ...]

    def points(self, t: Floats) -> Floats:
        radius, angle, longitude = t[..., 0], t[..., 1], t[..., 2]
        across = radius * np.sin(angle)
        return np.stack([across * np.cos(longitude), across * np.sin(longitude), radius * np.cos(angle)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        return np.asarray(np.square(t[..., 0]) * np.sin(t[..., 1]))

    def coordinates(self, x: Floats) -> Floats:
        across = np.hypot(x[..., 0], x[..., 1])
        longitude = np.mod(np.arctan2(x[..., 1], x[..., 0]), 2.0 * math.pi)
        return np.stack([np.hypot(across, x[..., 2]), np.arctan2(across, x[..., 2]), longitude], axis=-1)

    def stretches(self, t: Floats) -> Floats:
        radius = t[..., 0]
        return np.stack([np.ones_like(radius), radius, radius * np.sin(t[..., 1])], axis=-1)

    @property
    def turn(self) -> float:
        return 2.0 * math.pi
