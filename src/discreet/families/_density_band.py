"""Bands around a public density of your own: `DensityBand`, and `Near`, the local class around a public distribution.

`DensityBand`: c1 h <= p <= c2 h for an h given as a function, a distribution or a table. h need not integrate to one. The class is the same
for (c1, c2, h) and (c1/t, c2/t, t h), so `lower` and `upper` are relative to h as given, and are rescaled by its integral [paper, eq.
(normalizationCond)].

`Near`: every outcome is at least 1/factor and at most factor times as likely as under P0.

    Near(P0, factor)  =  { P : 1/factor <= dP/dP0 <= factor }

This is the band mu = P0, c1 = 1/factor, c2 = factor (Ghoukasian, Lee and Asoodeh, NeurIPS 2025, Theorem 5.1), on finitely many outcomes or on
a continuous space; alpha = 1/(factor + 1). If factor^2 <= e^epsilon a raw draw is private already, and nothing is lost. On outcomes the
smallest P0 may make a bound unattainable: then the band is that of the attained ones (`discreet.families._bands_and_laws`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet._base import accept_renamed_keywords
from discreet._base.labelled import split_labels_from_numbers
from discreet._base.quadrature import Panels, refine_panels_and_integrate_reference, subdivide_breaks
from discreet._base.showing import short_repr
from discreet.errors import DiscreetError, Range, UnresolvedWarning, warn_caller
from discreet.families._bands_and_laws import bounds_for_normalised_reference, read_any_client_flag
from discreet.families._continuous import (
    ANY,
    LARGEST_CHARTED,
    ContinuousFamily,
    box_as_axis_intervals,
    error_for_class_of_singular_laws,
    refuse_dimension_without_chart,
)
from discreet.families._densities import Drawable, LogDensity, Tabulated, as_density
from discreet.families._finite import Band
from discreet.families._integration import AxisMap, Cartesian, CellPartition, Chart, HalfLine, Identity, WholeLine

Floats = NDArray[np.float64]
_LEAST_MASS = 1e-250  # smaller numbers lose their digits
_PANELS = {1: 32, 2: 12, 3: 6}  # along each axis to start with
_MOST_NODES = 1 << 17  # for the narrow places that the density reports
_MISSED = 1e-4  # share of a known mass that the integral may miss; with its own error, it may miss more under a warning
_INTEGRABLE = 1e-2  # relative error of the integral above which h counts as not integrable
_CELLS_TO_DRAW_FROM = {1: 4096, 2: 4096, 3: 8192}
_FACTOR = Range(1.0, math.inf, low_open=True, high_open=True)
_DENSITY = ("log_density", "logpdf", "pdf")


@final
class DensityBand(ContinuousFamily):
    """The densities with lower h <= p <= upper h on a box.

    `density` is a function of points ((n,) in one dimension, (n, dim) in more), a scipy.stats distribution, a `Mixture` or a `Tabulated`
    grid. `box` has a (low, high) for each axis, where an end may be infinite. Leave it out if the density knows its own support. A function
    on an infinite axis should have its bulk within a few units of the origin. Above three dimensions h must be normalised and able to draw
    from itself (a scipy distribution or a `Mixture`).

    With `any_client=True` the bounds only choose the box and make no claim about clients. Every density is served without a warning, and
    risks hold for all of them, so they are the largest possible (`discreet.projection._worst_case`). Designs are such bands.

    Args:
        density: h, up to a factor: a function, a scipy.stats distribution, an object with `logpdf`, a `Mixture` or a `Tabulated` grid.
        box: the space, a (low, high) for each axis.
        lower: the smallest p/h, relative to h as given.
        upper: the largest p/h.
        any_client: whether risks hold for all densities; needs lower = 0.

    Raises:
        DiscreetError: for an argument that is not a density, a missing box, an h that cannot be integrated, or a lower > 0 for everybody.
        ImpossibleError: for upper = inf.
    """

    @accept_renamed_keywords(everybody="any_client")
    def __init__(self, density: Any, box: Any = None, *, lower: float, upper: float, any_client: bool = False) -> None:
        self.any_client = read_any_client_flag(any_client, lower)
        if isinstance(upper, (int, float)) and upper == math.inf:
            raise error_for_class_of_singular_laws("upper = inf", "take a finite upper bound on p/h")
        self.box: list[tuple[float, float]] = _given_box_or_that_of_density(density, box)
        self.dim = len(self.box)
        self.density: LogDensity = as_density(density, self.dim, "density")
        self._given = (density, lower, upper)
        self._log_mass = 0.0
        if self.dim <= LARGEST_CHARTED:
            self.panels, mass = self._panels_and_integral_of_density()
            self._log_mass = math.log(mass)
            self.bounds = bounds_for_normalised_reference(lower, upper, mass)
        elif not isinstance(self.density, Drawable) or np.isfinite(self.box).any():
            raise DiscreetError(
                f"in dimension {self.dim} the density must be able to draw from itself on all of R^{self.dim}: pass a frozen "
                "scipy.stats distribution or a Mixture, without a box"
            )
        else:
            self.bounds = bounds_for_normalised_reference(lower, upper)

    @classmethod
    def around(cls, density: Any, box: Any = None, *, factor: float) -> DensityBand:
        """The band 1/factor <= p/h <= factor for h normalised; `lower` and `upper` are relative to h as given."""
        band = cls(density, box, lower=0.0, upper=ANY)
        mass = band.bounds.upper / ANY
        return cls(density, box, lower=1.0 / (factor * mass), upper=factor / mass)

    @property
    def constrains_clients(self) -> bool:
        """Whether `upper` constrains clients at all."""
        return not self.any_client and self._given[2] < ANY

    @property
    def given_densities(self) -> tuple[Any, ...]:
        return (self.density,)

    @property
    def density_and_bounds_as_given(self) -> tuple[Any, float, float]:
        """The density, lower and upper as given."""
        return self._given

    def log_reference(self, x: Floats) -> Floats:
        low, high = np.array(self.box).T
        inside = np.all((x >= low) & (x <= high), axis=1)
        if inside.all():
            return np.asarray(self.density.log_density(x) - self._log_mass)
        log_values = np.full(len(x), -np.inf)
        if inside.any():
            log_values[inside] = self.density.log_density(x[inside]) - self._log_mass
        return log_values

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        if isinstance(self.density, Drawable):
            return self._draw_points_inside_box(self.density, count, rng)
        numbers = rng.choice(len(self._cells_to_draw_from), size=count, p=self._cells_to_draw_from.masses)
        return self._cells_to_draw_from.draw_points_in_cells(numbers, rng)

    def _draw_points_inside_box(self, density: Drawable, count: int, rng: np.random.Generator) -> Floats:
        low, high = np.array(self.box).T
        blocks: list[Floats] = []
        missing = count
        for _ in range(10_000):
            x = density.draw(max(missing, 64), rng)
            blocks.append(x[np.all((x >= low) & (x <= high), axis=1)][:missing])
            missing -= len(blocks[-1])
            if missing == 0:
                return np.concatenate(blocks)
        raise DiscreetError(f"box = {self.box} holds almost nothing of the density; widen it")

    @cached_property
    def _cells_to_draw_from(self) -> CellPartition:
        return self.cells(_CELLS_TO_DRAW_FROM[self.dim])

    @cached_property
    def chart(self) -> Chart:
        refuse_dimension_without_chart(self.dim)
        maps: list[AxisMap] = []
        breaks: list[Floats] = []
        edges: list[Floats] = []
        for axis, (low, high) in enumerate(self.box):
            axis_map, start, stop = self._map_and_range_of_axis(axis, low, high)
            maps.append(axis_map)
            inner = np.empty(0)
            if isinstance(self.density, Tabulated):
                inner = axis_map.point_to_chart_coordinate(self.density.axes[axis])
            elif isinstance(axis_map, WholeLine):
                inner = np.array([0.5])
            inner = inner[(inner > start) & (inner < stop)]
            breaks.append(np.concatenate([[start], inner, [stop]]))
            edges.append(subdivide_breaks(breaks[-1], (stop - start) / _PANELS[self.dim]))
        return Cartesian(tuple(maps), tuple(breaks), tuple(edges))

    def _map_and_range_of_axis(self, axis: int, low: float, high: float) -> tuple[AxisMap, float, float]:
        """The map of one axis and the range of its coordinate."""
        if math.isfinite(low) and math.isfinite(high):
            return Identity(), low, high
        centre, scale = self._centre_and_scale_of_axis(axis)
        if math.isfinite(low):
            return HalfLine(low, max(scale, abs(centre - low))), 0.0, 1.0
        if math.isfinite(high):
            return HalfLine(high, -max(scale, abs(high - centre))), 0.0, 1.0
        return WholeLine(centre, scale), 0.0, 1.0

    def _centre_and_scale_of_axis(self, axis: int) -> tuple[float, float]:
        """The bulk of an infinite axis: the quartiles of draws if the density can draw, else the unit interval."""
        if not isinstance(self.density, Drawable):
            return 0.0, 1.0
        x = self.density.draw(4096, np.random.default_rng(0))[:, axis]
        low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
        return float(middle), float(high - low) or 1.0

    def _panels_and_integral_of_density(self) -> tuple[Panels, float]:
        """Panels that resolve h, and its integral."""

        def density_in_coordinates(t: Floats) -> Floats:
            x = self.chart.points_at_coordinates(t).reshape(-1, self.dim)
            values = np.exp(self.density.log_density(x)).reshape(t.shape[:-1])
            return np.where(values > 0.0, values * self.chart.jacobian(t), 0.0)

        start, _ = self.refine_panels(
            Panels.from_edges(self.chart.first_panel_edges), self.given_densities, _MOST_NODES
        )
        may_jump = not isinstance(self.density, Tabulated)  # a table jumps at the edges of panels alone
        panels, mass, error = refine_panels_and_integrate_reference(start, density_in_coordinates, faces=may_jump)
        if mass < _LEAST_MASS:
            raise DiscreetError(
                f"density has zero mass in box = {self.box}; check the box, or give the density's own support"
            )
        if not math.isfinite(mass) or error > _INTEGRABLE * mass:
            raise DiscreetError(
                f"density does not seem to be integrable on box = {self.box}: its integral is {mass:g} with an error of "
                f"{error:g} on {len(panels)} panels; take a smaller box or a density with lighter tails"
            )
        stated_mass = self.density.mass_between(*self.space) if hasattr(self.density, "mass_between") else None
        if stated_mass is not None and abs(mass - stated_mass) > _MISSED * stated_mass + 10.0 * error:
            raise DiscreetError(
                f"density has a mass of {stated_mass:.6g} in box = {self.box}, of which its integral sees {mass:.6g}: it is too narrow in "
                "places, or its tails are too heavy; take a smoother density or a smaller box"
            )
        if stated_mass is not None and abs(mass - stated_mass) > _MISSED * stated_mass:
            warn_caller(
                f"density has a mass of {stated_mass:.6g} in box = {self.box}, of which its integral sees {mass:.6g}: bounds, risks and "
                "outputs are off by as much; take a smoother density or a smaller box",
                UnresolvedWarning,
            )
        return panels, mass

    def __repr__(self) -> str:
        _, lower, upper = self._given
        flag = ", any_client=True" if self.any_client else ""
        return f"DensityBand(<density>, box={short_repr(self.box)}, lower={lower:g}, upper={upper:g}{flag})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DensityBand) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def _comparison_key(self) -> tuple[Any, ...]:
        density, lower, upper = self._given
        identity = density if isinstance(density, Tabulated) else id(density)  # functions are compared by identity
        return (identity, tuple(self.box), lower, upper, self.any_client)


def _given_box_or_that_of_density(density: Any, box: Any) -> list[tuple[float, float]]:
    """The given box, or the one that the density knows."""
    if box is not None:
        dim = getattr(density, "dim", None)
        if not isinstance(dim, int):
            pairs = isinstance(box, (list, tuple)) or (isinstance(box, np.ndarray) and box.ndim > 0)
            pairs = pairs and len(box) > 0 and (isinstance(box[0], (list, tuple)) or getattr(box[0], "ndim", 0) > 0)
            dim = len(box) if pairs else 1
        return box_as_axis_intervals(box, dim)
    if isinstance(density, Tabulated):
        return density.box
    support = getattr(density, "support", None)
    if callable(support):
        low, high = support()
        return [(float(low), float(high))]
    dim = getattr(density, "dim", None)
    if isinstance(dim, int):
        return [(-math.inf, math.inf)] * dim
    raise DiscreetError("box is missing: a density given as a function needs a (low, high) for each axis")


def Near(P0: Any, *, factor: float, box: Any = None, labels: Sequence[Any] | None = None) -> Band | DensityBand:
    """The clients within a factor of a public distribution: a `Band` on outcomes, a `DensityBand` on a continuous space.

    A client farther away keeps its privacy; only the bound on utility is for members.

    Args:
        P0: the public distribution. On outcomes: positive numbers in proportion to it, or a dict or Series by label. On a continuous space: a
            function, a scipy.stats distribution, a `Mixture` or a `Tabulated` grid, normalised or not.
        factor: how many times as likely, or as unlikely, an outcome may be for a client as under P0; more than 1.
        box: the space of a density, a (low, high) for each axis; leave it out if the density knows its own.
        labels: names of the outcomes.

    Returns:
        The family.

    Raises:
        DiscreetError: for a factor of 1 or less, an outcome of probability 0 under P0, or an argument that is not a distribution.

    Example:
        >>> family = Near({"north": 0.4, "south": 0.3, "east": 0.2, "west": 0.1}, factor=2.0)
    """
    if callable(getattr(P0, "pmf", None)) and not _is_density(P0):
        raise DiscreetError(
            f"P0 = {P0!r} is a distribution on whole numbers, which may be unbounded; give the probabilities of finitely many outcomes, "
            "such as P0.pmf(range(20))"
        )
    ratio = _FACTOR.check("factor", factor, "give how many times as likely an outcome may be for a client as under P0")
    if split_labels_from_numbers(P0, "P0") is not None or not _is_density(P0):
        if box is not None:
            raise DiscreetError(f"box = {box!r} is for densities; P0 has finitely many outcomes")
        return Band(P0, lower=1.0 / ratio, upper=ratio, labels=labels)
    if labels is not None:
        raise DiscreetError("labels are for finitely many outcomes; P0 is a density")
    return DensityBand.around(P0, box, factor=ratio)


def _is_density(P0: Any) -> bool:
    return callable(P0) or any(callable(getattr(P0, name, None)) for name in _DENSITY)
