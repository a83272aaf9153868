"""Tools to integrate a density: coordinates that suit it, the places where it is narrow, cells, and its masses between the edges of a line.

**Charts.** x = x(t) with volume element J(t) dt. Every integral of a continuous family is over panels of coordinates t, so a chart decides
what is smooth and what is finite. `Cartesian` keeps finite intervals and maps infinite ones to (0, 1) by rational maps, under which every
density with tails no heavier than Cauchy's stays bounded. `Polar` and `Spherical` suit radial references, whose kinks then lie on coordinate
lines. `breaks` are the coordinates where the reference is not smooth or has a mode. Between them it is smooth and, for the built-in families,
monotone along each axis, so its largest value on a box of coordinates is at a corner. `first_panel_edges` are the breaks with further
points between, as fine as the family's own scale.

**Features.** Nodes see a function at finitely many places, and miss a spike between them. Many clients know more: a mixture has centres and
scales, a distribution quantiles, a table cells. Panels are split there until nodes cannot miss the feature, and the mass that the client
reports is compared with the mass that the nodes saw. For a bare function the results from nodes may be wrong, and say so. No privacy
guarantee depends on this.

**Cells.** A `CellPartition` cuts the space of a family into boxes of coordinates of about equal reference mass, the same for all clients. One
rule on each cell gives these masses. Where the reference varies so much within cells that the rule is off, the masses are refined: cells are
split until an estimate of the error is small. Samples under a secret depend on the masses, so agreements say which ones they use.

**Masses between consecutive edges of a line**, as enclosing intervals. A lower bound proved for clients on cells holds for the clients
themselves only if their masses on the cells are right. So a density with a distribution function in closed form gives two numbers for each
cell, low <= mass <= high, which include the errors of floating point:

* Kernels (Gaussian, Laplace): `discreet.families._kernel_mixtures`.
* Tables: integrals of constant or linear pieces are sums of products of non-negative numbers, each right up to a few units in its last place.
* Other distribution functions: they are non-decreasing, so their values a little to both sides of an edge enclose the value at the edge, for
any rounding of the edge. Each value is assumed right up to the relative error stated for it.

`is_proved` says whether low and high are such bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import ORDER, Panels, refine_and_integrate_by_panel, subdivide_breaks
from discreet._base.showing import with_short_repr
from discreet.errors import UnresolvedWarning, warn_caller

if TYPE_CHECKING:
    from discreet.families._continuous import ContinuousFamily

Floats = NDArray[np.float64]
_REACH = 4.0  # in scales: a feature has nearly all of its mass within this distance
_LARGEST_BLOCK = 1 << 20  # panels times features held at a time
_UNIT = 2.0**-53
TINY = 1e-300  # below it floats lose digits
LEAST_KNOWN = 1e-200  # total mass of the cells below which shares of it are inaccurate
_CELLS_IN_A_ROUND = 1 << 22
_MOST_NODES = 1 << 20
_CHECKED_WAYS = {1: 8, 2: 3, 3: 2}  # parts of a cell along each axis, by dimension, in which its mass is computed again
_CHECKED_PARTS = 1 << 15  # of all cells: more would take too long
_LARGEST_ONE_RULE_ERROR = 1e-3  # total variation between the two, above which masses are refined
_COARSE_CELLS = 3e-3  # and above which there is a warning
_REFINED_CELLS = 1e-6  # relative error of their sum then
REFINED, ONE_RULE = "refined", "one rule"  # masses of cells
_FAR = 1e150  # stands for infinity, in maps that square


class Chart(Protocol):
    """A coordinate system on the part of R^dim that carries the reference."""

    @property
    def breaks(self) -> tuple[Floats, ...]:
        """For each axis, the coordinates where the reference is not smooth or has a mode."""

    @property
    def first_panel_edges(self) -> tuple[Floats, ...]:
        """For each axis, the breaks with further coordinates between: the edges of the first panels."""

    def points_at_coordinates(self, t: Floats) -> Floats:
        """x(t) for coordinates (..., dim)."""

    def jacobian(self, t: Floats) -> Floats:
        """|dx/dt| for coordinates (..., dim), of shape (...)."""

    def coordinates_of_points(self, x: Floats) -> Floats:
        """t(x) for points (n, dim)."""

    def axis_stretches(self, t: Floats) -> Floats:
        """|dx/dt_i| along each axis for coordinates (n, dim): their product is the jacobian."""

    @property
    def period_of_last_coordinate(self) -> float:
        """The period of the last coordinate; 0 where it has none."""


class AxisMap(Protocol):
    """x(t) on one axis."""

    def chart_coordinate_to_point(self, t: Floats) -> Floats: ...
    def position_slope(self, t: Floats) -> Floats: ...
    def point_to_chart_coordinate(self, x: Floats) -> Floats: ...


@dataclass(frozen=True)
class Identity:
    """x = t, for a finite interval."""

    def chart_coordinate_to_point(self, t: Floats) -> Floats:
        return t

    def position_slope(self, t: Floats) -> Floats:
        return np.ones_like(t)

    def point_to_chart_coordinate(self, x: Floats) -> Floats:
        return x


@dataclass(frozen=True)
class HalfLine:
    """x = start + scale t/(1-t) on (0, 1): a half-line, towards minus infinity for a negative scale."""

    start: float
    scale: float

    def chart_coordinate_to_point(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):  # nodes of refined panels may round to 1
            return np.asarray(self.start + self.scale * t / (1.0 - t))

    def position_slope(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(abs(self.scale) / np.square(1.0 - t))

    def point_to_chart_coordinate(self, x: Floats) -> Floats:
        ratio = (x - self.start) / self.scale
        with np.errstate(divide="ignore"):  # a place outside the half-line
            return np.asarray(ratio / (1.0 + ratio))


@dataclass(frozen=True)
class WholeLine:
    """x = centre + scale (2t-1)/(t(1-t)) on (0, 1): the whole line."""

    centre: float
    scale: float

    def chart_coordinate_to_point(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):  # nodes of refined panels may round to an end
            return np.asarray(self.centre + self.scale * (2.0 * t - 1.0) / (t * (1.0 - t)))

    def position_slope(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.scale * (1.0 / np.square(t) + 1.0 / np.square(1.0 - t)))

    def point_to_chart_coordinate(self, x: Floats) -> Floats:
        # s = 2t - 1 solves y (1 - s^2) = 4 s; written so that neither sign of y cancels
        y = (x - self.centre) / self.scale
        return np.asarray(0.5 + 0.5 * y / (2.0 + np.sqrt(4.0 + np.square(y))))


@dataclass(frozen=True, eq=False)
class Cartesian:
    """One coordinate for each axis of R^dim."""

    maps: tuple[AxisMap, ...]
    breaks: tuple[Floats, ...]
    first_panel_edges: tuple[Floats, ...]
    period_of_last_coordinate: ClassVar[float] = 0.0

    def points_at_coordinates(self, t: Floats) -> Floats:
        return np.stack([axis.chart_coordinate_to_point(t[..., i]) for i, axis in enumerate(self.maps)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        volume = np.ones(t.shape[:-1])
        for i, axis in enumerate(self.maps):
            if not isinstance(axis, Identity):
                volume = volume * axis.position_slope(t[..., i])
        return volume

    def coordinates_of_points(self, x: Floats) -> Floats:
        return np.stack([axis.point_to_chart_coordinate(x[..., i]) for i, axis in enumerate(self.maps)], axis=-1)

    def axis_stretches(self, t: Floats) -> Floats:
        return np.stack([axis.position_slope(t[..., i]) for i, axis in enumerate(self.maps)], axis=-1)


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
    first_panel_edges: tuple[Floats, ...]
    period_of_last_coordinate: ClassVar[float] = 2.0 * math.pi

    def points_at_coordinates(self, t: Floats) -> Floats:
        radius, angle = t[..., 0], t[..., 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        return t[..., 0]

    def coordinates_of_points(self, x: Floats) -> Floats:
        angle = np.mod(np.arctan2(x[..., 1], x[..., 0]), 2.0 * math.pi)
        return np.stack([np.hypot(x[..., 0], x[..., 1]), angle], axis=-1)

    def axis_stretches(self, t: Floats) -> Floats:
        return np.stack([np.ones_like(t[..., 0]), t[..., 0]], axis=-1)


@dataclass(frozen=True, eq=False)
class Spherical:
    """(radius, angle from the pole, longitude) in space."""

    breaks: tuple[Floats, ...]
    first_panel_edges: tuple[Floats, ...]
    period_of_last_coordinate: ClassVar[float] = 2.0 * math.pi

    def points_at_coordinates(self, t: Floats) -> Floats:
        radius, angle, longitude = t[..., 0], t[..., 1], t[..., 2]
        across = radius * np.sin(angle)
        return np.stack([across * np.cos(longitude), across * np.sin(longitude), radius * np.cos(angle)], axis=-1)

    def jacobian(self, t: Floats) -> Floats:
        return np.asarray(np.square(t[..., 0]) * np.sin(t[..., 1]))

    def coordinates_of_points(self, x: Floats) -> Floats:
        across = np.hypot(x[..., 0], x[..., 1])
        longitude = np.mod(np.arctan2(x[..., 1], x[..., 0]), 2.0 * math.pi)
        return np.stack([np.hypot(across, x[..., 2]), np.arctan2(across, x[..., 2]), longitude], axis=-1)

    def axis_stretches(self, t: Floats) -> Floats:
        radius = t[..., 0]
        return np.stack([np.ones_like(radius), radius, radius * np.sin(t[..., 1])], axis=-1)


@dataclass(frozen=True, eq=False)
class Features:
    """Places (k, dim) around which a density changes over lengths `scales` (k,)."""

    places: Floats
    scales: Floats

    @classmethod
    def concat(cls, features: Iterable[Features], dim: int) -> Features:
        """All of them, without those that have no finite place or width."""
        feature_list = list(features)
        places = np.concatenate([np.empty((0, dim)), *(feature.places for feature in feature_list)])
        scales = np.concatenate([np.empty(0), *(feature.scales for feature in feature_list)])
        valid = np.isfinite(places).all(axis=1) & np.isfinite(scales) & (scales > 0.0)
        return cls(places[valid], scales[valid])


def narrow_features_of_clients(clients: Iterable[Any], dim: int) -> Features:
    """The features of all clients that have a method `narrow_places()`."""
    return Features.concat((p.narrow_places() for p in clients if hasattr(p, "narrow_places")), dim)


def split_panels_with_parents_near_features(
    features: Features, panels: Panels, chart: Chart, *, widest: float, most: int
) -> tuple[Panels, NDArray[np.intp]]:
    """Panels halved until none near a feature is wider than `widest` of its scales, with the parent of each.

    It stops at `most` panels: then features may be missed.
    """
    middles = chart.coordinates_of_points(features.places)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        widths = features.scales[:, None] / chart.axis_stretches(middles)
    valid = np.isfinite(middles).all(axis=1) & (widths > 0.0).all(axis=1)
    middles, widths = middles[valid], widths[valid]
    if chart.period_of_last_coordinate:  # the last coordinate is periodic
        middles = np.concatenate(
            [
                middles + shift * np.eye(panels.dim)[-1]
                for shift in (-chart.period_of_last_coordinate, 0.0, chart.period_of_last_coordinate)
            ]
        )
        widths = np.tile(widths, (3, 1))
    finished_panels, finished_owners = panels[np.zeros(len(panels), dtype=bool)], np.empty(0, dtype=np.intp)
    open_panels, open_owners = panels, np.arange(len(panels))
    smallest = np.broadcast_to(panels.least_divisible_sides, (panels.dim,))
    while len(open_panels) and len(middles):
        excess = _sides_in_feature_widths(open_panels, middles, widths) / widest
        excess[open_panels.upper - open_panels.lower <= 2.0 * smallest] = 0.0
        wide = excess.max(axis=1) > 1.0
        if not wide.any() or len(finished_panels) + len(open_panels) + int(wide.sum()) > most:
            break
        finished_panels, finished_owners = (
            finished_panels.concat(open_panels[~wide]),
            np.concatenate([finished_owners, open_owners[~wide]]),
        )
        open_panels, open_owners = (
            open_panels[wide].halve_each_panel_along_its_axis(np.argmax(excess[wide], axis=1)),
            np.tile(open_owners[wide], 2),
        )
    return finished_panels.concat(open_panels), np.concatenate([finished_owners, open_owners])


def _sides_in_feature_widths(panels: Panels, middles: Floats, widths: Floats) -> Floats:
    """(n, dim) the length of each panel's sides in scales of the narrowest nearby feature; 0 without a feature nearby."""
    sides = np.zeros((len(panels), panels.dim))
    step = max(1, _LARGEST_BLOCK // max(1, len(panels)))
    for start in range(0, len(middles), step):
        middle, width = middles[start : start + step], widths[start : start + step]
        reach = _REACH * width
        is_near = np.all(
            (panels.lower[:, None, :] < middle + reach) & (panels.upper[:, None, :] > middle - reach), axis=2
        )
        for axis in range(panels.dim):
            narrowest = np.where(is_near, width[:, axis], np.inf).min(axis=1)
            sides[:, axis] = np.maximum(sides[:, axis], (panels.upper - panels.lower)[:, axis] / narrowest)
    return sides


@with_short_repr
@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature nodes of every panel, and the reference there: x (n, m, dim), weights and element (n, m).

    `element` is h J, the reference's density in the chart's coordinates; `weights * element` are reference masses.
    """

    panels: Panels
    x: Floats
    log_reference: Floats
    weights: Floats
    element: Floats

    @property
    def masses(self) -> Floats:
        """(n, m) reference masses; they sum to one up to the error of the quadrature."""
        return self.weights * self.element

    def __getitem__(self, mask: NDArray[np.bool_]) -> Nodes:
        return Nodes(self.panels[mask], self.x[mask], self.log_reference[mask], self.weights[mask], self.element[mask])

    def concat(self, other: Nodes) -> Nodes:
        """These nodes and then the others."""
        return Nodes(
            self.panels.concat(other.panels),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.log_reference, other.log_reference]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.element, other.element]),
        )


@with_short_repr
@dataclass(frozen=True, eq=False)
class CellPartition:
    """Cells: boxes of coordinates that cover the family's space, with their reference masses (which sum to one).

    A point of a cell is drawn from h restricted to it, by rejection from uniform coordinates below `ceilings`. This is exact for the built-in
    families, where h J has its largest value at a corner. For a density given as a function the ceiling is the largest value seen. Privacy
    depends on neither: the point depends on the client through the cell alone.
    """

    KINDS_OF_MASSES: ClassVar[tuple[str, ...]] = (REFINED, ONE_RULE)

    family: ContinuousFamily
    panels: Panels
    masses: Floats
    ceilings: Floats
    is_refined: bool

    @classmethod
    def of_family(cls, family: ContinuousFamily, count: int, refinement: str | None) -> CellPartition:
        """At least `count` cells, with refined masses if so agreed, or if it is left open and one rule on each cell is not accurate."""
        unresolved_mass = 0.0
        if refinement != REFINED:
            panels, masses, _ = _cells_of_at_most_equal_mass(family, count, _reference_masses_of_panels)
            unresolved_mass = _total_variation_to_finer_masses(family, panels, masses)
        if refinement == REFINED or (refinement is None and unresolved_mass > _LARGEST_ONE_RULE_ERROR):
            panels, masses, errors = _cells_of_at_most_equal_mass(family, count, _refined_reference_masses_of_panels)
            refinement, unresolved_mass = REFINED, 0.5 * float(errors.sum() / masses.sum())
        if unresolved_mass > _COARSE_CELLS:
            warn_caller(
                f"the reference of {family!r} varies within cells: the masses of the {len(panels)} cells are off by {unresolved_mass:.1g} in "
                "total variation. So are the risks and divergences that are stated, but not the guarantee; take many more cells, or Points",
                UnresolvedWarning,
            )
        return cls(
            family, panels, masses / masses.sum(), _density_ceilings_in_cells(family, panels), refinement == REFINED
        )

    def __len__(self) -> int:
        return len(self.panels)

    def nodes_in_cells(self, order: int) -> Nodes:
        """Nodes in every cell, for a client's mass there."""
        return self.family.nodes_of_panels(self.panels, order)

    def draw_points_in_cells(self, numbers: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """One point of the reference from each of the numbered cells: (n, dim)."""
        low, width = self.panels.lower[numbers], (self.panels.upper - self.panels.lower)[numbers]
        ceilings, chart, dim = self.ceilings[numbers], self.family.chart, self.family.dim
        t = low + width * rng.random((len(numbers), dim))
        pending = np.arange(len(numbers))
        for _ in range(1000):
            with np.errstate(invalid="ignore", over="ignore"):
                density = np.exp(self.family.log_reference(self.family.points_inside_at_coordinates(t[pending])))
                element = np.nan_to_num(density * chart.jacobian(t[pending]), nan=0.0)
            pending = pending[rng.random(len(pending)) * ceilings[pending] > element]
            if not len(pending):
                break
            t[pending] = low[pending] + width[pending] * rng.random((len(pending), dim))
        return self.family.points_inside_at_coordinates(t)

    def cell_pieces_between_edges(self, edges: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """The cells of a line cut at edges: the cell of each piece, its interval between the edges, and its share of the cell."""
        key = edges.tobytes()
        if key not in self._cell_pieces_cache:
            self._cell_pieces_cache.clear()  # usually one list of edges is used many times
            self._cell_pieces_cache[key] = self._cut_cells_at_edges(edges)
        return self._cell_pieces_cache[key]

    @cached_property
    def _cell_pieces_cache(self) -> dict[bytes, tuple[NDArray[np.intp], NDArray[np.intp], Floats]]:
        return {}

    def _cut_cells_at_edges(self, edges: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        order = np.argsort(self.panels.lower[:, 0])
        start, stop = self.panels.lower[order, 0], self.panels.upper[order, 0]
        edge_coordinates = self.family.chart.coordinates_of_points(np.clip(edges, -_FAR, _FAR)[:, None])[:, 0]
        grid = np.unique(np.concatenate([start, stop, np.clip(edge_coordinates, start[0], stop[-1])]))
        middle = 0.5 * (grid[:-1] + grid[1:])
        cell = np.clip(np.searchsorted(start, middle, side="right") - 1, 0, start.size - 1)
        mass = self.family.nodes_of_panels(Panels(grid[:-1, None], grid[1:, None]), ORDER[1]).masses.sum(axis=1)
        mass[middle >= stop[cell]] = 0.0  # between cells, where the reference has no mass
        cell_masses = np.bincount(cell, mass, minlength=start.size)[cell]
        share = np.divide(mass, cell_masses, out=np.zeros_like(mass), where=cell_masses > 0.0)
        falling = edge_coordinates[-1] < edge_coordinates[0]
        owner = np.searchsorted(edge_coordinates[::-1] if falling else edge_coordinates, middle, side="right") - 1
        inside = (owner >= 0) & (owner < edges.size - 1)
        owner = edges.size - 2 - owner if falling else owner
        return order[cell[inside]], owner[inside], share[inside]

    def cell_numbers_of_points(self, x: Floats) -> NDArray[np.int64]:
        """The cell of each point (n, dim); -1 outside all cells."""
        t = self.family.chart.coordinates_of_points(x)
        cells = np.full(len(x), -1, dtype=np.int64)
        step = max(1, _CELLS_IN_A_ROUND // max(len(self.panels), 1))
        for rows in (slice(start, start + step) for start in range(0, len(x), step)):
            is_inside = np.all(
                (t[rows, None, :] >= self.panels.lower) & (t[rows, None, :] <= self.panels.upper), axis=2
            )
            cells[rows] = np.where(is_inside.any(axis=1), np.argmax(is_inside, axis=1), -1)
        return cells


def _cells_of_at_most_equal_mass(
    family: ContinuousFamily,
    count: int,
    masses_and_errors_of_panels: Callable[[ContinuousFamily, Panels], tuple[Floats, Floats]],
) -> tuple[Panels, Floats, Floats]:
    """Cells halved along their longest side until none exceeds mass 1/count, with their masses and the estimated errors of these.

    Cells of next to no mass stay only if the family serves everybody.
    """
    panels = Panels.from_edges(family.chart.breaks)
    masses, errors = masses_and_errors_of_panels(family, panels)
    while True:
        heavy = masses > masses.sum() / count * (1.0 + 1e-9)
        if not heavy.any() or len(panels) > 64 * count:
            break
        halves = panels[heavy].halve_each_panel_along_its_axis(_longest_axis_of_cells(family, panels[heavy]))
        panels = panels[~heavy].concat(halves)
        masses_of_halves, errors_of_halves = masses_and_errors_of_panels(family, halves)
        masses = np.concatenate([masses[~heavy], masses_of_halves])
        errors = np.concatenate([errors[~heavy], errors_of_halves])
    is_kept = masses > (0.0 if family.any_client else 1e-15 * masses.max())
    return panels[is_kept], masses[is_kept], errors[is_kept]


def _reference_masses_of_panels(family: ContinuousFamily, panels: Panels) -> tuple[Floats, Floats]:
    """(n,) reference masses of panels, with nodes where the reference reports narrow features; no error is estimated, which says 0."""
    fine, owner = family.refine_panels(panels, family.given_densities, _MOST_NODES)
    masses = family.nodes_of_panels(fine, ORDER[family.dim]).masses.sum(axis=1)
    return sum_by_cell(masses, owner, len(panels)), np.zeros(len(panels))


def _refined_reference_masses_of_panels(family: ContinuousFamily, panels: Panels) -> tuple[Floats, Floats]:
    """The same of panels that are split until an estimate of the error is small, and this estimate."""

    def density_in_coordinates(t: Floats) -> Floats:
        density = np.exp(family.log_reference(family.points_inside_at_coordinates(t).reshape(-1, family.dim)))
        return np.nan_to_num(density.reshape(t.shape[:-1]) * family.chart.jacobian(t), nan=0.0)

    parts, cells = _parts_of_cells(family, panels)
    _, owner, masses, errors = refine_and_integrate_by_panel(
        parts, density_in_coordinates, _REFINED_CELLS, 0.0, ends=family.dim == 1
    )
    return sum_by_cell(masses, cells[owner], len(panels)), sum_by_cell(errors, cells[owner], len(panels))


def _total_variation_to_finer_masses(family: ContinuousFamily, panels: Panels, masses: Floats) -> float:
    """How far the masses are from those of the parts of cells; 0 where there are too many parts to look at."""
    if len(panels) * _CHECKED_WAYS[family.dim] ** family.dim > _CHECKED_PARTS:
        return 0.0
    parts, cells = _parts_of_cells(family, panels)
    finer_masses = sum_by_cell(_reference_masses_of_panels(family, parts)[0], cells, len(panels))
    return 0.5 * float(np.abs(masses / masses.sum() - finer_masses / finer_masses.sum()).sum())


def _parts_of_cells(family: ContinuousFamily, panels: Panels) -> tuple[Panels, NDArray[np.intp]]:
    """Cells cut along every axis, on a line at the ends of the family's own panels too, which resolve the reference; and their cells."""
    ways = _CHECKED_WAYS[family.dim]
    parts = panels.split_every_panel(ways)
    if family.dim == 1:
        return _cut_cells_at_panels(panels, parts.concat(family.panels))
    return parts, np.repeat(np.arange(len(panels)), ways**family.dim)


def _cut_cells_at_panels(cells: Panels, panels: Panels) -> tuple[Panels, NDArray[np.intp]]:
    """The pieces of cells of a line between the ends of panels, and the cell of each piece."""
    edges = [side[:, 0] for side in (cells.lower, cells.upper, panels.lower, panels.upper)]
    pieces = Panels.from_edges([np.unique(np.concatenate(edges))])
    order, middle = np.argsort(cells.lower[:, 0]), 0.5 * (pieces.lower + pieces.upper)[:, 0]
    owner = order[np.maximum(np.searchsorted(cells.lower[order, 0], middle, side="right") - 1, 0)]
    is_inside = (cells.lower[owner, 0] <= middle) & (middle < cells.upper[owner, 0])
    return pieces[is_inside], owner[is_inside]


def _longest_axis_of_cells(family: ContinuousFamily, panels: Panels) -> NDArray[np.intp]:
    """The axis along which each cell is longest in the space itself, not in coordinates."""
    middle, half = 0.5 * (panels.lower + panels.upper), 0.45 * (panels.upper - panels.lower)
    lengths = []
    for axis in range(panels.dim):
        step = half * (np.arange(panels.dim) == axis)
        ends = family.chart.points_at_coordinates(middle + step) - family.chart.points_at_coordinates(middle - step)
        lengths.append(np.sqrt(np.square(ends).sum(axis=1)))
    return np.asarray(np.argmax(lengths, axis=0))


def _density_ceilings_in_cells(family: ContinuousFamily, panels: Panels) -> Floats:
    """The largest h J seen at the corners and nodes of each cell, a little above rounding."""
    dim = panels.dim
    corners = np.stack(np.meshgrid(*[(1e-9, 1.0 - 1e-9)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    t = panels.lower[:, None, :] + (panels.upper - panels.lower)[:, None, :] * corners
    x = family.points_inside_at_coordinates(t)
    with np.errstate(invalid="ignore", over="ignore"):  # a rational map has infinite slope at infinity
        density = np.exp(family.log_reference(x.reshape(-1, dim))).reshape(t.shape[:2])
        at_corners = np.nan_to_num(density * family.chart.jacobian(t), nan=0.0)
    at_nodes = family.nodes_of_panels(panels, 3).element
    return np.asarray(np.maximum(at_corners.max(axis=1), at_nodes.max(axis=1)) * (1.0 + 1e-6))


@dataclass(frozen=True, eq=False)
class IntervalMasses:
    """The mass between consecutive edges, as accurate as possible; and low <= true mass <= high, if `is_proved`."""

    mass: Floats
    low: Floats
    high: Floats
    is_proved: bool = True

    @classmethod
    def from_mass_and_error_bound(cls, mass: Floats, error: Floats | float) -> IntervalMasses:
        """Masses with a known error bound."""
        return cls(mass, np.maximum(mass - error, 0.0), mass + error)

    @classmethod
    def from_mass_without_error_bound(cls, mass: Floats) -> IntervalMasses:
        """Masses without a proved error bound."""
        return cls(mass, mass, mass, is_proved=False)

    @property
    def has_enough_mass(self) -> bool:
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
        return IntervalMasses(self.mass / self.mass.sum(), low, np.minimum(high, 1.0), self.is_proved)


def interval_masses_of_tabulated_density(
    axis: Floats, values: Floats, edges: Floats, *, constant: bool
) -> IntervalMasses:
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
    is_inside = (owner >= 0) & (owner < edges.size - 1)
    mass = sum_by_cell(pieces[is_inside], owner[is_inside], edges.size - 1)
    return IntervalMasses.from_mass_and_error_bound(mass, mass * (2.0 * (grid.size + 16) * _UNIT))


def interval_masses_from_cdf_bounds(
    below: tuple[Floats, Floats], above: tuple[Floats, Floats], relative: float, *, is_proved: bool
) -> IntervalMasses:
    """Masses from bounds (low, high) of the masses below and above every edge, each up to a relative error, without cancellation."""
    upper = below[0][:-1] > 0.5  # there differences of the upper masses keep their digits
    least, most = 1.0 - relative, 1.0 + relative
    low = np.where(upper, above[0][:-1] * least - above[1][1:] * most, below[0][1:] * least - below[1][:-1] * most)
    high = np.where(upper, above[1][:-1] * most - above[0][1:] * least, below[1][1:] * most - below[0][:-1] * least)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return IntervalMasses(0.5 * (low + high), low, high, is_proved)


def interval_masses_of_lipschitz_density(
    heights: Floats, widths: Floats, owner: NDArray[np.intp], cells: int, constant: float
) -> IntervalMasses:
    """Masses from the heights in the middle of short pieces of cells, for a density that changes by at most `constant` times a distance."""
    error = 0.25 * constant * np.square(widths) * (1.0 + 16.0 * _UNIT)
    rounding = 2.0 * (heights.size + 16) * _UNIT
    low = sum_by_cell(np.maximum(heights * widths - error, 0.0), owner, cells)
    high = sum_by_cell(heights * widths + error, owner, cells)
    mass = sum_by_cell(heights * widths, owner, cells)
    return IntervalMasses(mass, low * (1.0 - rounding), high * (1.0 + rounding))


def sum_by_cell(values: Floats, owner: NDArray[np.intp], cells: int) -> Floats:
    """Sums of values over the cells that own them."""
    return np.asarray(np.bincount(owner, values, minlength=cells), dtype=np.float64)
