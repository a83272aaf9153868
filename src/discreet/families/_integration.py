"""Tools to integrate a density: coordinates that suit it, the places where it is narrow, and its masses between the edges of a line.

**Charts.** x = x(t) with volume element J(t) dt. Every integral of a continuous family is over panels of coordinates t, so a chart decides
what is smooth and what is finite. `Cartesian` keeps finite intervals and maps infinite ones to (0, 1) by rational maps, under which every
density with tails no heavier than Cauchy's stays bounded. `Polar` and `Spherical` suit radial references, whose kinks then lie on coordinate
lines. `breaks` are the coordinates where the reference is not smooth or has a mode. Between them it is smooth and, for the built-in families,
monotone along each axis, so its largest value on a box of coordinates is at a corner. `edges` are the breaks with further points between, as
fine as the family's own scale.

**Features.** Nodes see a function at finitely many places, and miss a spike between them. Many clients know more: a mixture has centres and
scales, a distribution quantiles, a table cells. Panels are split there until nodes cannot miss the feature, and the mass that the client
reports is compared with the mass that the nodes saw. For a bare function the results from nodes may be wrong, and say so. No privacy
guarantee depends on this.

**Masses between consecutive edges of a line**, as enclosing intervals. A lower bound proved for clients on cells holds for the clients
themselves only if their masses on the cells are right. So a density with a distribution function in closed form gives two numbers for each
cell, low <= mass <= high, which include the errors of floating point:

* Kernels (Gaussian, Laplace): with T(t) the mass beyond t >= 0, the mass between two edges is a difference of two values of T, or 1 less both
if the centre lies between them. A rounded argument t (1 + d) changes T by at most a factor 1 + |d| (t^2 + 2), and T itself is computed by an
exponential of an argument that errs by a few units in the last place of t^2. So each value of T errs by at most (16 + 8 t^2) 2^-53 of itself,
and the difference by the sum of both.
* Tables: integrals of constant or linear pieces are sums of products of non-negative numbers, each right up to a few units in its last place.
* Other distribution functions: they are non-decreasing, so their values a little to both sides of an edge enclose the value at the edge, for
any rounding of the edge. Each value is assumed right up to the relative error stated for it.

`proved` says whether low and high are such bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import Panels, subdivide_breaks

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        with np.errstate(divide="ignore"):  # a place outside the half-line
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


def cartesian_chart(box: list[tuple[float, float]], edges: Floats, breaks: Floats, width: float) -> Cartesian:
    """Straight axes within a box, cut at the breaks and at the edges, with at most `width` between the two edges next to the origin."""
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


_REACH = 4.0  # in scales: a feature has nearly all of its mass within this distance
_LARGEST_BLOCK = 1 << 20  # panels times features held at a time


@dataclass(frozen=True, eq=False)
class Features:
    """Places (k, dim) around which a density changes over lengths `scales` (k,)."""

    places: Floats
    scales: Floats

    @classmethod
    def concat(cls, several: Iterable[Features], dim: int) -> Features:
        """All of them, without those that have no finite place or width."""
        found = list(several)
        places = np.concatenate([np.empty((0, dim)), *(one.places for one in found)])
        scales = np.concatenate([np.empty(0), *(one.scales for one in found)])
        good = np.isfinite(places).all(axis=1) & np.isfinite(scales) & (scales > 0.0)
        return cls(places[good], scales[good])


def features_of(clients: Iterable[Any], dim: int) -> Features:
    """The features of all clients that have a method `narrow_places()`."""
    return Features.concat((p.narrow_places() for p in clients if hasattr(p, "narrow_places")), dim)


def split_at(
    features: Features, panels: Panels, chart: Chart, *, widest: float, most: int
) -> tuple[Panels, NDArray[np.intp]]:
    """Panels halved until none near a feature is wider than `widest` of its scales, with the parent of each.

    It stops at `most` panels: then features may be missed.
    """
    middles = chart.coordinates(features.places)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        widths = features.scales[:, None] / chart.stretches(middles)
    good = np.isfinite(middles).all(axis=1) & (widths > 0.0).all(axis=1)
    middles, widths = middles[good], widths[good]
    if chart.turn:  # the last coordinate is periodic
        middles = np.concatenate([middles + shift * np.eye(panels.dim)[-1] for shift in (-chart.turn, 0.0, chart.turn)])
        widths = np.tile(widths, (3, 1))
    done, owners = panels[np.zeros(len(panels), dtype=bool)], np.empty(0, dtype=np.intp)
    active, owner = panels, np.arange(len(panels))
    smallest = np.broadcast_to(panels.narrowest, (panels.dim,))
    while len(active) and len(middles):
        excess = _sides_in_feature_widths(active, middles, widths) / widest
        excess[active.upper - active.lower <= 2.0 * smallest] = 0.0
        wide = excess.max(axis=1) > 1.0
        if not wide.any() or len(done) + len(active) + int(wide.sum()) > most:
            break
        done, owners = done.concat(active[~wide]), np.concatenate([owners, owner[~wide]])
        active, owner = active[wide].halve(np.argmax(excess[wide], axis=1)), np.tile(owner[wide], 2)
    return done.concat(active), np.concatenate([owners, owner])


def _sides_in_feature_widths(panels: Panels, middles: Floats, widths: Floats) -> Floats:
    """(n, dim) the length of each panel's sides in scales of the narrowest nearby feature; 0 without a feature nearby."""
    found = np.zeros((len(panels), panels.dim))
    step = max(1, _LARGEST_BLOCK // max(1, len(panels)))
    for start in range(0, len(middles), step):
        middle, width = middles[start : start + step], widths[start : start + step]
        reach = _REACH * width
        near = np.all((panels.lower[:, None, :] < middle + reach) & (panels.upper[:, None, :] > middle - reach), axis=2)
        for axis in range(panels.dim):
            narrowest = np.where(near, width[:, axis], np.inf).min(axis=1)
            found[:, axis] = np.maximum(found[:, axis], (panels.upper - panels.lower)[:, axis] / narrowest)
    return found


_UNIT = 2.0**-53
TINY = 1e-300  # below it floats lose digits
_BLOCK = 1 << 18  # components times edges held at a time
LEAST_KNOWN = 1e-200  # total mass of the cells below which shares of it are inaccurate


@dataclass(frozen=True, eq=False)
class IntervalMasses:
    """The mass between consecutive edges, as accurate as possible; and low <= true mass <= high, if `proved`."""

    mass: Floats
    low: Floats
    high: Floats
    proved: bool = True

    @classmethod
    def around(cls, mass: Floats, error: Floats | float) -> IntervalMasses:
        """Masses with a known error bound."""
        return cls(mass, np.maximum(mass - error, 0.0), mass + error)

    @classmethod
    def from_estimate(cls, mass: Floats) -> IntervalMasses:
        """Masses without a proved error bound."""
        return cls(mass, mass, mass, proved=False)

    @property
    def enough(self) -> bool:
        """Whether the total mass of the intervals is large enough for shares of it."""
        return bool(self.mass.sum() > LEAST_KNOWN)

    def as_shares(self) -> IntervalMasses:
        """Each mass as a share of their sum: m/(m + others) grows with m and falls with the others."""
        rounding = (self.low.size + 16) * _UNIT
        low_others = np.maximum(self.low.sum() * (1.0 - rounding) - self.low, 0.0)
        high_others = self.high.sum() * (1.0 + rounding) - self.high
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.where(self.low > 0.0, self.low / (self.low + high_others), 0.0) * (1.0 - rounding)
            high = np.where(self.high > 0.0, self.high / (self.high + low_others), 0.0) * (1.0 + rounding)
        return IntervalMasses(self.mass / self.mass.sum(), low, np.minimum(high, 1.0), self.proved)


def kernel_masses(kernel: Any, weights: Floats, centres: Floats, scales: Floats, edges: Floats) -> IntervalMasses:
    """The masses of a mixture of kernels on a line: weights, centres and scales (k,)."""
    mass, off = _component_masses(kernel, centres, scales, edges)
    whole = weights @ mass
    rounding = 2.0 * (len(weights) + 8) * _UNIT
    return IntervalMasses.around(whole, (weights @ off) * (1.0 + rounding) + rounding * whole + TINY)


def kernel_rows(mixtures: Sequence[Any], edges: Floats) -> Floats:
    """(n, cells) masses of n mixtures of one kernel, to within rounding of each one's total, in blocks."""
    rows = np.empty((len(mixtures), edges.size - 1))
    step = max(1, _BLOCK // (edges.size * max(len(p.weights) for p in mixtures)))
    for first in range(0, len(mixtures), step):
        some = mixtures[first : first + step]
        weights, scales = (np.concatenate([getattr(p, name) for p in some]) for name in ("weights", "scales"))
        centres = np.concatenate([p.means[:, 0] for p in some])
        below = some[0].kernel.cdf((edges - centres[:, None]) / scales[:, None])
        below *= weights[:, None]
        starts = np.cumsum([0, *(len(p.weights) for p in some[:-1])])
        rows[first : first + step] = np.diff(np.add.reduceat(below, starts, axis=0), axis=1)
    return np.maximum(rows, 0.0, out=rows)


def _component_masses(kernel: Any, centres: Floats, scales: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """(k, cells) masses of kernels, and bounds of their errors."""
    t = (edges - centres[:, None]) / scales[:, None]
    tail, error = kernel.tail(np.abs(t))
    rising = t[:, 1:] <= 0.0
    across = (t[:, :-1] < 0.0) & ~rising
    change = tail[:, 1:] - tail[:, :-1]
    mass = np.where(across, (1.0 - tail[:, :-1]) - tail[:, 1:], np.where(rising, change, -change))
    return np.maximum(mass, 0.0), error[:, 1:] + error[:, :-1] + 4.0 * _UNIT * (np.abs(mass) + across)


def table_masses(axis: Floats, values: Floats, edges: Floats, *, constant: bool) -> IntervalMasses:
    """The masses of a table that is constant between the positions of its axis, or linear; zero outside."""
    inside = edges[(edges > axis[0]) & (edges < axis[-1])]
    grid = np.unique(np.concatenate([axis, inside]))
    start, stop = grid[:-1], grid[1:]
    piece = np.clip(np.searchsorted(axis, start, side="right") - 1, 0, axis.size - 2)
    if constant:
        height = values[piece]
    else:
        left, right = axis[piece], axis[piece + 1]
        ends = (values[piece] * (right - x) + values[piece + 1] * (x - left) for x in (start, stop))
        height = 0.5 * sum(ends) / (right - left)
    pieces = height * (stop - start)
    owner = np.searchsorted(edges, start, side="right") - 1  # before the first edge: -1
    held = (owner >= 0) & (owner < edges.size - 1)
    mass = sum_by_cell(pieces[held], owner[held], edges.size - 1)
    return IntervalMasses.around(mass, mass * (2.0 * (grid.size + 16) * _UNIT))


def distribution_masses(
    below: tuple[Floats, Floats], above: tuple[Floats, Floats], relative: float, *, proved: bool
) -> IntervalMasses:
    """Masses from bounds (low, high) of the masses below and above every edge, each up to a relative error, without cancellation."""
    upper = below[0][:-1] > 0.5  # there differences of the upper masses keep their digits
    least, most = 1.0 - relative, 1.0 + relative
    low = np.where(upper, above[0][:-1] * least - above[1][1:] * most, below[0][1:] * least - below[1][:-1] * most)
    high = np.where(upper, above[1][:-1] * most - above[0][1:] * least, below[1][1:] * most - below[0][:-1] * least)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return IntervalMasses(0.5 * (low + high), low, high, proved)


def sum_by_cell(values: Floats, owner: NDArray[np.intp], cells: int) -> Floats:
    """Sums of values over the cells that own them."""
    return np.asarray(np.bincount(owner, values, minlength=cells), dtype=np.float64)


def lipschitz_masses(
    heights: Floats, widths: Floats, owner: NDArray[np.intp], cells: int, constant: float
) -> IntervalMasses:
    """Masses from the heights in the middle of short pieces of cells, for a density that changes by at most `constant` times a distance."""
    reach = 0.25 * constant * np.square(widths) * (1.0 + 16.0 * _UNIT)
    rounding = 2.0 * (heights.size + 16) * _UNIT
    low = sum_by_cell(np.maximum(heights * widths - reach, 0.0), owner, cells)
    high = sum_by_cell(heights * widths + reach, owner, cells)
    mass = sum_by_cell(heights * widths, owner, cells)
    return IntervalMasses(mass, low * (1.0 - rounding), high * (1.0 + rounding))
