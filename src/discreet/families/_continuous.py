"""Continuous families {P : c1 h <= p <= c2 h} on R^dim, with h a probability density: the base class, `DensityBand` and `Near`.

See [paper, eq. (possibleDensityAssumption)]. The reference has no atoms, so it is alpha-decomposable for every alpha and the risk formula is
exact for the band [paper, Thm 3.3]. If the class contains infinitely many mutually singular distributions, every epsilon-LDP sampler has the
largest possible risk [paper, Prop. 3.2], and the constructor raises an error.

A family provides its reference as a density, as public quadrature nodes (up to `LARGEST_CHARTED` dimensions), as a partition into cells of
known mass, and as a distribution to draw from. None of these depend on any client.

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

import abc
import inspect
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.doors import OldName, old_keywords
from discreet._base.labelled import labelled_values
from discreet._base.quadrature import ORDER, Panels, integrate_reference, subdivide_breaks
from discreet._base.showing import notebook_table, short_repr
from discreet.errors import LENGTH, DiscreetError, ImpossibleError, Range, check_count
from discreet.families._bands_and_laws import BandFamily, Bounds, check_any_client, describe_bounds, normalised_bounds
from discreet.families._densities import (
    Drawable,
    FunctionDensity,
    LogDensity,
    Tabulated,
    as_density,
    as_points,
    format_point,
    shape_of_points,
)
from discreet.families._finite import Band
from discreet.families._fits import Fit, HistogramFit, KernelFit, MixtureFit, as_mixture_family
from discreet.families._integration import (
    AxisMap,
    Cartesian,
    CellPartition,
    Chart,
    HalfLine,
    Identity,
    WholeLine,
    features_of,
    split_panels_at,
)
from discreet.families._membership import Nodes, as_clients, outsiders_at_nodes, summarise_clients

Floats = NDArray[np.float64]
ANY = 2.0**900  # an upper bound on p/h that is no constraint; a power of two, so that products are exact
MOST_CELLS = 1 << 20
LARGEST_CHARTED = 3
_LEAST_MASS = 1e-250  # smaller numbers lose their digits
_PANELS = {1: 32, 2: 12, 3: 6}  # along each axis to start with
_MOST_NODES = 1 << 17  # for the narrow places that the density reports
_MISSED = 1e-4  # share of a known mass that the integral may miss
_INTEGRABLE = 1e-2  # relative error of the integral above which h counts as not integrable
_CELLS_TO_DRAW_FROM = {1: 4096, 2: 4096, 3: 8192}
_FACTOR = Range(1.0, math.inf, low_open=True, high_open=True)
_DENSITY = ("log_density", "logpdf", "pdf")


class ContinuousFamily(BandFamily, abc.ABC):
    """A band around an atomless reference density h on R^dim. Subclasses define h.

    Attributes:
        dim: the dimension of the space.
        bounds: the smallest and the largest p/h.
        box: the space, a (low, high) for each axis; None for all of R^dim.
        any_client: whether the bounds only choose the box and make no claim about clients.
    """

    dim: int
    box: list[tuple[float, float]] | None

    @property
    def space(self) -> tuple[Floats, Floats]:
        """The lowest and the highest corner (dim,) of the members' space; infinite without a box."""
        low, high = np.array(self.whole_box).T
        return low, high

    @property
    def whole_box(self) -> list[tuple[float, float]]:
        """The space, with infinite ends where there is no box."""
        return [(-math.inf, math.inf)] * self.dim if self.box is None else self.box

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of p/h for the clients that risks hold for: the members, or all densities."""
        return Bounds(0.0, ANY) if self.any_client else self.bounds

    @property
    def decomposable(self) -> bool:
        """True: a reference without atoms can be cut into sets of any mass [paper, App. C.4.2]."""
        return True

    @property
    @abc.abstractmethod
    def chart(self) -> Chart:
        """Coordinates that suit the reference (dimension at most `LARGEST_CHARTED`)."""

    @abc.abstractmethod
    def log_reference(self, x: Floats) -> Floats:
        """log h at points (n, dim), h normalised; minus infinity outside the family's box."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent points (count, dim) of the reference."""

    @property
    def given_densities(self) -> tuple[Any, ...]:
        """The density from which the reference was made; empty if it follows from parameters and is smooth."""
        return ()

    def certainly_contains(self, p: Any) -> bool:
        """Whether p is in the band by its parameters alone, without evaluations."""
        return False

    def contains(self, p: Any) -> bool:
        """Whether p obeys the band: by its parameters, or else as far as values at the public nodes tell.

        Nodes are finer where p reports narrow features. A bare function is known only where it was evaluated, so True proves nothing about
        it, and no guarantee rests on it. For a family of mixtures the test is about the band, which is larger.

        Args:
            p: a density, or a list of them.

        Returns:
            Whether none of them is outside.

        Raises:
            DiscreetError: for an argument that is not a density, or a density without mass in the family's space.
        """
        clients = as_clients(p, self)
        return outsiders_at_nodes(self, clients, summarise_clients(self, clients)) is None

    def law(
        self,
        *,
        records: ArrayLike | None = None,
        fit: Fit | None = None,
        log_density: Callable[[Any], Any] | None = None,
    ) -> LogDensity:
        """A client's distribution: a member of the family fitted to records, or the distribution whose density has this logarithm.

        In hundreds of dimensions a density underflows to 0 everywhere, but its logarithm does not.

        Args:
            records: the client's data, (n,) in one dimension or (n, dim).
            fit: how records become a density; `discreet.families._fits` compares the fits.
            log_density: a function from points, (n,) or (n, dim), to (n,) numbers, up to a constant; minus infinity where the density is 0.

        Returns:
            A density for `output`, `weights` and `release`.

        Raises:
            DiscreetError: for no records, records outside the family's space, or both arguments at once.
        """
        if (records is None) == (log_density is None):
            raise DiscreetError(
                "pass either records= (what the client saw) or log_density= (a function), not both and not neither"
            )
        if log_density is not None:
            if fit is not None or not callable(log_density):
                raise DiscreetError("log_density is a function from points (n, dim) to (n,) numbers, and takes no fit=")
            return FunctionDensity(log_density, self.dim, "log_density", logarithmic=True)
        assert records is not None
        points = as_points(records, self.dim, "records", finite=False)
        if not len(points):
            raise DiscreetError(
                "records is empty: a client without records has no law; leave it out, or let it release from the reference"
            )
        outside = np.asarray(~(np.abs(points) <= LENGTH.high).all(axis=1))
        outside[~outside] = ~np.isfinite(self.log_reference(points[~outside]))
        if outside.any():
            first = int(np.argmax(outside))
            raise DiscreetError(f"records[{first}] = {format_point(points[first])} is outside the space of {self!r}")
        if fit is None:
            few = self.dim <= LARGEST_CHARTED
            fit = MixtureFit() if as_mixture_family(self) else HistogramFit() if few else KernelFit()
        if not _is_fit(fit):
            raise DiscreetError(f"fit = {fit!r} is not a fit; use HistogramFit(), KernelFit() or MixtureFit()")
        return fit.law(self, points)

    def _repr_html_(self) -> str:
        where = f"all of R^{self.dim}" if self.box is None else short_repr(self.box)
        said, rows = describe_bounds(self.bounds, "p/h", any_client=self.any_client)
        return notebook_table(f"{self!r}: {said}", [("space", where), *rows])

    def pdf(self, x: ArrayLike) -> Floats:
        """The reference density h at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_reference(as_points(x, self.dim))).reshape(shape_of_points(x, self.dim))

    @cached_property
    def panels(self) -> Panels:
        """Public panels on which the reference is resolved."""
        return Panels.from_edges(self.chart.edges)

    @cached_property
    def nodes(self) -> Nodes:
        """The public nodes at which every client is evaluated first."""
        return self.nodes_of(self.panels, ORDER[self.dim])

    def nodes_of(self, panels: Panels, order: int) -> Nodes:
        """Nodes of given panels."""
        t, weights = panels.nodes(order)
        x = self.chart.points(t)
        log_reference = self.log_reference(x.reshape(-1, self.dim)).reshape(weights.shape)
        with np.errstate(invalid="ignore"):  # a rational map has infinite slope at infinity
            element = np.exp(log_reference) * self.chart.jacobian(t)
        return Nodes(panels, x, log_reference, weights, np.nan_to_num(element, nan=0.0))

    def refine_panels(self, panels: Panels, clients: Sequence[Any], most: int) -> tuple[Panels, NDArray[np.intp]]:
        """Panels refined near the narrow places that clients report, so that nodes cannot miss them, and the parent of each panel.

        There are at most `most` nodes; with more features than that, some may be missed.
        """
        order = ORDER[self.dim]
        features = features_of(clients, self.dim)
        return split_panels_at(features, panels, self.chart, widest=0.5 * order, most=most // order**self.dim)

    def cells(self, count: int) -> CellPartition:
        """A partition into at least `count` cells of about equal reference mass; the same for all clients."""
        count = check_count("cells", count, most=MOST_CELLS)
        if count not in self._known_partitions:
            self._known_partitions[count] = CellPartition.of(self, count)
        return self._known_partitions[count]

    @cached_property
    def _known_partitions(self) -> dict[int, CellPartition]:
        return {}

    given = OldName("given_densities")


def _is_fit(fit: Any) -> bool:
    """Whether it has a method `law(family, records)`; families and samplers have other methods of that name."""
    method = getattr(fit, "law", None)
    return callable(method) and list(inspect.signature(method).parameters) == ["family", "records"]


def check_charted(dim: int) -> None:
    """Reject a dimension for which there are no coordinates."""
    if dim > LARGEST_CHARTED:
        raise DiscreetError(f"coordinates are for dimension at most {LARGEST_CHARTED}; use Points in dimension {dim}")


def singular_error(what: str, fix: str) -> ImpossibleError:
    """The error for a class on which every sampler has the largest risk."""
    return ImpossibleError(
        f"{what}: the class then holds infinitely many laws that are (or come arbitrarily close to being) mutually singular; "
        "for such a class every epsilon-LDP sampler has the largest possible worst-case divergence, M_f = f(0) + f*(0), at every "
        f"epsilon [paper, Prop. 3.2]; {fix}"
    )


def as_box(box: Any, dim: int) -> list[tuple[float, float]]:
    """One (low, high) for each axis, from such a list or from one pair for all axes; infinite ends are allowed."""
    try:
        pairs = np.asarray(box, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"box = {box!r} is not a list of (low, high) pairs") from None
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (dim, 1))
    if pairs.shape != (dim, 2):
        raise DiscreetError(f"box has shape {pairs.shape}; give one (low, high) for each of the {dim} axes")
    if not (pairs[:, 0] < pairs[:, 1]).all():
        raise DiscreetError(f"box = {pairs.tolist()}: every low must be less than its high")
    ends = pairs[np.isfinite(pairs)]
    with np.errstate(over="ignore"):
        if (np.abs(ends) > LENGTH.high).any() or (pairs[:, 1] - pairs[:, 0] < LENGTH.low).any():
            raise DiscreetError(f"box = {pairs.tolist()}: ends and sides are not in {LENGTH}; measure in other units")
    return [(float(low), float(high)) for low, high in pairs]


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

    @old_keywords(everybody="any_client")
    def __init__(self, density: Any, box: Any = None, *, lower: float, upper: float, any_client: bool = False) -> None:
        self.any_client = check_any_client(any_client, lower)
        if isinstance(upper, (int, float)) and upper == math.inf:
            raise singular_error("upper = inf", "take a finite upper bound on p/h")
        self.box: list[tuple[float, float]] = _box_of_density(density, box)
        self.dim = len(self.box)
        self.density: LogDensity = as_density(density, self.dim, "density")
        self._given = (density, lower, upper)
        self._log_mass = 0.0
        if self.dim <= LARGEST_CHARTED:
            self.panels, mass = self._integrate_density()
            self._log_mass = math.log(mass)
            self.bounds = normalised_bounds(lower, upper, mass)
        elif not isinstance(self.density, Drawable) or np.isfinite(self.box).any():
            raise DiscreetError(
                f"in dimension {self.dim} the density must be able to draw from itself on all of R^{self.dim}: pass a frozen "
                "scipy.stats distribution or a Mixture, without a box"
            )
        else:
            self.bounds = normalised_bounds(lower, upper)

    @classmethod
    def around(cls, density: Any, box: Any = None, *, factor: float) -> DensityBand:
        """The band 1/factor <= p/h <= factor for h normalised; `lower` and `upper` are relative to h as given."""
        whole = cls(density, box, lower=0.0, upper=ANY)
        mass = whole.bounds.upper / ANY
        return cls(density, box, lower=1.0 / (factor * mass), upper=factor / mass)

    @property
    def constrains_clients(self) -> bool:
        """Whether `upper` constrains clients at all."""
        return not self.any_client and self._given[2] < ANY

    @property
    def given_densities(self) -> tuple[Any, ...]:
        return (self.density,)

    @property
    def given_as(self) -> tuple[Any, float, float]:
        """The density, lower and upper as given."""
        return self._given

    def log_reference(self, x: Floats) -> Floats:
        low, high = np.array(self.box).T
        inside = np.all((x >= low) & (x <= high), axis=1)
        if inside.all():
            return np.asarray(self.density.log_density(x) - self._log_mass)
        found = np.full(len(x), -np.inf)
        if inside.any():
            found[inside] = self.density.log_density(x[inside]) - self._log_mass
        return found

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        if isinstance(self.density, Drawable):
            return self._draw_inside(self.density, count, rng)
        numbers = rng.choice(len(self._cells_to_draw_from), size=count, p=self._cells_to_draw_from.masses)
        return self._cells_to_draw_from.points(numbers, rng)

    def _draw_inside(self, density: Drawable, count: int, rng: np.random.Generator) -> Floats:
        low, high = np.array(self.box).T
        kept: list[Floats] = []
        missing = count
        for _ in range(10_000):
            x = density.draw(max(missing, 64), rng)
            kept.append(x[np.all((x >= low) & (x <= high), axis=1)][:missing])
            missing -= len(kept[-1])
            if missing == 0:
                return np.concatenate(kept)
        raise DiscreetError(f"box = {self.box} holds almost nothing of the density; widen it")

    @cached_property
    def _cells_to_draw_from(self) -> CellPartition:
        return self.cells(_CELLS_TO_DRAW_FROM[self.dim])

    @cached_property
    def chart(self) -> Chart:
        check_charted(self.dim)
        maps: list[AxisMap] = []
        breaks: list[Floats] = []
        edges: list[Floats] = []
        for axis, (low, high) in enumerate(self.box):
            axis_map, start, stop = self._axis_map(axis, low, high)
            maps.append(axis_map)
            inner = np.empty(0)
            if isinstance(self.density, Tabulated):
                inner = axis_map.backward(self.density.axes[axis])
            elif isinstance(axis_map, WholeLine):
                inner = np.array([0.5])
            inner = inner[(inner > start) & (inner < stop)]
            breaks.append(np.concatenate([[start], inner, [stop]]))
            edges.append(subdivide_breaks(breaks[-1], (stop - start) / _PANELS[self.dim]))
        return Cartesian(tuple(maps), tuple(breaks), tuple(edges))

    def _axis_map(self, axis: int, low: float, high: float) -> tuple[AxisMap, float, float]:
        """The map of one axis and the range of its coordinate."""
        if math.isfinite(low) and math.isfinite(high):
            return Identity(), low, high
        centre, scale = self._bulk_of_axis(axis)
        if math.isfinite(low):
            return HalfLine(low, max(scale, abs(centre - low))), 0.0, 1.0
        if math.isfinite(high):
            return HalfLine(high, -max(scale, abs(high - centre))), 0.0, 1.0
        return WholeLine(centre, scale), 0.0, 1.0

    def _bulk_of_axis(self, axis: int) -> tuple[float, float]:
        """The bulk of an infinite axis: the quartiles of draws if the density can draw, else the unit interval."""
        if not isinstance(self.density, Drawable):
            return 0.0, 1.0
        x = self.density.draw(4096, np.random.default_rng(0))[:, axis]
        low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
        return float(middle), float(high - low) or 1.0

    def _integrate_density(self) -> tuple[Panels, float]:
        """Panels that resolve h, and its integral."""

        def mass_element(t: Floats) -> Floats:
            x = self.chart.points(t).reshape(-1, self.dim)
            values = np.exp(self.density.log_density(x)).reshape(t.shape[:-1])
            return np.where(values > 0.0, values * self.chart.jacobian(t), 0.0)

        start, _ = self.refine_panels(Panels.from_edges(self.chart.edges), self.given_densities, _MOST_NODES)
        panels, mass, error = integrate_reference(start, mass_element)
        if mass < _LEAST_MASS:
            raise DiscreetError(
                f"density has zero mass in box = {self.box}; check the box, or give the density's own support"
            )
        if not math.isfinite(mass) or error > _INTEGRABLE * mass:
            raise DiscreetError(
                f"density does not seem to be integrable on box = {self.box}: its integral is {mass:g} with an error of "
                f"{error:g} on {len(panels)} panels; take a smaller box or a density with lighter tails"
            )
        known = self.density.mass_between(*self.space) if hasattr(self.density, "mass_between") else None
        if known is not None and abs(mass - known) > _MISSED * known + 10.0 * error:
            raise DiscreetError(
                f"density has a mass of {known:.6g} in box = {self.box}, of which its integral sees {mass:.6g}: it is too narrow in "
                "places, or its tails are too heavy; take a smoother density or a smaller box"
            )
        return panels, mass

    def __repr__(self) -> str:
        _, lower, upper = self._given
        served = ", any_client=True" if self.any_client else ""
        return f"DensityBand(<density>, box={short_repr(self.box)}, lower={lower:g}, upper={upper:g}{served})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DensityBand) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def _comparison_key(self) -> tuple[Any, ...]:
        density, lower, upper = self._given
        same = density if isinstance(density, Tabulated) else id(density)  # functions are compared by identity
        return (same, tuple(self.box), lower, upper, self.any_client)


def _box_of_density(density: Any, box: Any) -> list[tuple[float, float]]:
    """The given box, or the one that the density knows."""
    if box is not None:
        dim = getattr(density, "dim", None)
        if not isinstance(dim, int):
            pairs = isinstance(box, (list, tuple)) or (isinstance(box, np.ndarray) and box.ndim > 0)
            pairs = pairs and len(box) > 0 and np.ndim(box[0]) > 0
            dim = len(box) if pairs else 1
        return as_box(box, dim)
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
    most = _FACTOR.check("factor", factor, "give how many times as likely an outcome may be for a client as under P0")
    if labelled_values(P0, "P0") is not None or not _is_density(P0):
        if box is not None:
            raise DiscreetError(f"box = {box!r} is for densities; P0 has finitely many outcomes")
        return Band(P0, lower=1.0 / most, upper=most, labels=labels)
    if labels is not None:
        raise DiscreetError("labels are for finitely many outcomes; P0 is a density")
    return DensityBand.around(P0, box, factor=most)


def _is_density(P0: Any) -> bool:
    return callable(P0) or any(callable(getattr(P0, name, None)) for name in _DENSITY)
