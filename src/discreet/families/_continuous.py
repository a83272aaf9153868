"""Continuous families {P : c1 h <= p <= c2 h} on R^dim, with h a probability density, and which clients are outside.

See [paper, eq. (possibleDensityAssumption)]. The reference has no atoms, so it is alpha-decomposable for every alpha and the risk formula is
exact for the band [paper, Thm 3.3]. If the class contains infinitely many mutually singular distributions, every epsilon-LDP sampler has the
largest possible risk [paper, Prop. 3.2], and the constructor raises an error.

A family provides its reference as a density, as public quadrature nodes (up to `LARGEST_CHARTED` dimensions), as a partition into cells of
known mass, and as a distribution to draw from. None of these depend on any client.

**Outsiders.** Continuous clients are one density or a list of them. Nodes give p/h of each client, whether it leaves the band, and how much
of the mass that it reports was missed. They find outsiders but cannot establish membership, since a function is known only where it was
evaluated. No guarantee depends on it.
"""

from __future__ import annotations

import abc
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base import OldName
from discreet._base.quadrature import ORDER, Panels, refine_and_integrate_by_panel
from discreet._base.showing import html_table_for_notebook, short_repr
from discreet.errors import LENGTH, DiscreetError, ImpossibleError, UnresolvedWarning, check_count, warn_caller
from discreet.families._bands_and_laws import (
    BandFamily,
    Bounds,
    Outsiders,
    bounds_heading_and_rows,
    client_numbers_in_words,
)
from discreet.families._densities import (
    FunctionDensity,
    LogDensity,
    as_density,
    as_points,
    format_point,
    shape_of_point_values,
)
from discreet.families._fits import Fit, HistogramFit, KernelFit, MixtureFit, mixture_family_or_none
from discreet.families._integration import (
    CellPartition,
    Chart,
    Nodes,
    narrow_features_of_clients,
    split_panels_with_parents_near_features,
    sum_by_cell,
)
from discreet.families._kernel_mixtures import (
    Mixture,
    interval_mass_rows_of_mixtures,
    mixture_log_densities,
    mixture_masses_in_box,
)

Floats = NDArray[np.float64]
ANY = 2.0**900  # an upper bound on p/h that is no constraint; a power of two, so that products are exact
MOST_CELLS = 1 << 20
LARGEST_CHARTED = 3
LEAST_MASS = 1e-290
BAND_SLACK = 1e-6
_FAINT = 1e-4  # differences of a distribution function give such a mass to 12 digits
_LEAST_SLACK = 1e-6  # of a mass that is known: rounding
_MISSED = {1: 1e-7, 2: 1e-5, 3: 1e-3}  # share of a known mass that nodes may miss without a warning
_SHARE_MISSED_BY_POINTS = 0.05
_MISSED_AT_MOST = 1e-2  # for every estimated error
_MOST_PLACES = 4096
_MOST_NODES = 1 << 18
_POINTS = 1 << 16
_RESOLVED = {1: 1e-9, 2: 1e-5, 3: 1e-3}  # target relative error of a client's total mass on the cells
_COARSE = 1e-2  # the relative error that causes a warning


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
        low, high = np.array(self.box_with_infinite_ends).T
        return low, high

    @property
    def box_with_infinite_ends(self) -> list[tuple[float, float]]:
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
        clients = as_client_densities(p, self)
        return clients_seen_outside_band_or_none(self, clients, summarise_clients_at_nodes(self, clients)) is None

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
            raise DiscreetError("pass exactly one of records= (what the client saw) and log_density= (a function)")
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
            has_chart = self.dim <= LARGEST_CHARTED
            fit = MixtureFit() if mixture_family_or_none(self) else HistogramFit() if has_chart else KernelFit()
        if not _is_fit(fit):
            raise DiscreetError(f"fit = {fit!r} is not a fit; use HistogramFit(), KernelFit() or MixtureFit()")
        return fit.law(self, points)

    def _repr_html_(self) -> str:
        space = f"all of R^{self.dim}" if self.box is None else short_repr(self.box)
        heading, rows = bounds_heading_and_rows(self.bounds, "p/h", any_client=self.any_client)
        return html_table_for_notebook(f"{self!r}: {heading}", [("space", space), *rows])

    def pdf(self, x: ArrayLike) -> Floats:
        """The reference density h at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_reference(as_points(x, self.dim))).reshape(shape_of_point_values(x, self.dim))

    @cached_property
    def panels(self) -> Panels:
        """Public panels on which the reference is resolved."""
        return Panels.from_edges(self.chart.first_panel_edges)

    @cached_property
    def nodes(self) -> Nodes:
        """The public nodes at which every client is evaluated first."""
        return self.nodes_of_panels(self.panels, ORDER[self.dim])

    def points_inside_at_coordinates(self, t: Floats) -> Floats:
        """Points of the chart, strictly inside the box: a coordinate may round to an end, where the reference may be infinite."""
        low, high = self.space
        inner_low = np.where(np.isfinite(low), np.nextafter(low, np.inf), low)
        inner_high = np.where(np.isfinite(high), np.nextafter(high, -np.inf), high)
        return np.clip(self.chart.points_at_coordinates(t), inner_low, inner_high)

    @cached_property
    def nodes_without_reference(self) -> tuple[Floats, Floats]:
        """The public nodes (m, dim) at which the reference is 0, and the logarithms of their volumes (m,)."""
        t, weights = self.panels.nodes_and_weights(ORDER[self.dim])
        is_empty = np.isneginf(self.nodes.log_reference)
        with np.errstate(divide="ignore"):
            return self.nodes.x[is_empty], np.log(weights[is_empty]) + np.log(self.chart.jacobian(t[is_empty]))

    def nodes_of_panels(self, panels: Panels, order: int) -> Nodes:
        """Nodes of given panels."""
        t, weights = panels.nodes_and_weights(order)
        x = self.points_inside_at_coordinates(t)
        log_reference = self.log_reference(x.reshape(-1, self.dim)).reshape(weights.shape)
        with np.errstate(invalid="ignore"):  # a rational map has infinite slope at infinity
            element = np.exp(log_reference) * self.chart.jacobian(t)
        return Nodes(panels, x, log_reference, weights, np.nan_to_num(element, nan=0.0))

    def refine_panels(self, panels: Panels, clients: Sequence[Any], most: int) -> tuple[Panels, NDArray[np.intp]]:
        """Panels refined near the narrow places that clients report, so that nodes cannot miss them, and the parent of each panel.

        There are at most `most` nodes; with more features than that, some may be missed.
        """
        order = ORDER[self.dim]
        features = narrow_features_of_clients(clients, self.dim)
        return split_panels_with_parents_near_features(
            features, panels, self.chart, widest=0.5 * order, most=most // order**self.dim
        )

    def cells(self, count: int, refinement: str | None = None) -> CellPartition:
        """A partition into at least `count` cells of about equal reference mass; the same for all clients.

        `refinement`: as in `Cells`.
        """
        key = check_count("cells", count, most=MOST_CELLS), refinement
        if key not in self._partition_cache:
            self._partition_cache[key] = CellPartition.of_family(self, *key)
        return self._partition_cache[key]

    @cached_property
    def _partition_cache(self) -> dict[tuple[int, str | None], CellPartition]:
        return {}

    given = OldName("given_densities")


def _is_fit(fit: Any) -> bool:
    """Whether it is a `Fit`, with a method `law(family, records)`; families and samplers have other methods of that name."""
    method = getattr(fit, "law", None)
    return callable(method) and list(inspect.signature(method).parameters) == ["family", "records"]


def refuse_dimension_without_chart(dim: int) -> None:
    """Reject a dimension for which there are no coordinates."""
    if dim > LARGEST_CHARTED:
        raise DiscreetError(f"coordinates are for dimension at most {LARGEST_CHARTED}; use Points in dimension {dim}")


def error_for_class_of_singular_laws(setting: str, fix: str) -> ImpossibleError:
    """The error for a class with mutually singular laws, on which every sampler has the largest risk."""
    return ImpossibleError(
        f"{setting}: the class then holds infinitely many laws that are (or come arbitrarily close to being) mutually singular; "
        "for such a class every epsilon-LDP sampler has the largest possible worst-case divergence, M_f = f(0) + f*(0), at every "
        f"epsilon [paper, Prop. 3.2]; {fix}"
    )


def box_as_axis_intervals(box: Any, dim: int) -> list[tuple[float, float]]:
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


def is_list_of_clients(p: Any) -> bool:
    """Whether p is a list of clients."""
    return isinstance(p, (list, tuple))


def as_client_densities(p: Any, family: ContinuousFamily) -> tuple[LogDensity, ...]:
    """One density or a list of them, behind the common interface."""
    if not is_list_of_clients(p):
        return (as_density(p, family.dim),)
    if not p:
        raise DiscreetError("p is an empty list of clients")
    return tuple(as_density(client, family.dim, f"p[{i}]") for i, client in enumerate(p))


def log_ratios_at_nodes(clients: Sequence[LogDensity], nodes: Nodes) -> Floats:
    """log p/h of every client at every node: (n, panels, nodes); minus infinity where p or h is zero."""
    x = nodes.x.reshape(-1, nodes.x.shape[-1])
    mixtures = mixtures_of_one_kernel_or_none(clients) if len(clients) > 1 else None
    log_ratio = mixture_log_densities(mixtures, x) if mixtures else np.stack([p.log_density(x) for p in clients])
    with np.errstate(invalid="ignore"):
        log_ratio -= nodes.log_reference.ravel()
    log_ratio[:, nodes.element.ravel() <= 0.0] = -np.inf
    return log_ratio.reshape(len(clients), *nodes.weights.shape)


def known_interval_masses_of_clients(clients: Sequence[LogDensity], edges: Floats) -> list[Floats | None]:
    """The masses of each client between consecutive edges of a line; None if they are unknown or nearly zero."""
    mixtures = mixtures_of_one_kernel_or_none(clients)
    if mixtures is not None:
        rows: list[Floats | None] = list(interval_mass_rows_of_mixtures(mixtures, edges))
    else:
        rows = [
            p.approximate_interval_masses(edges) if hasattr(p, "approximate_interval_masses") else None for p in clients
        ]
    for index, (p, row) in enumerate(zip(clients, rows, strict=True)):
        if (row is None or row.sum() < _FAINT) and hasattr(p, "interval_masses"):  # tails need differences of tails
            interval_masses = p.interval_masses(edges)
            rows[index] = (
                interval_masses.mass if interval_masses is not None and interval_masses.has_enough_mass else None
            )
    return rows


def largest_log_ratios(log_ratio: Floats) -> Floats:
    """(n,) the largest log p/h of each client (n, ...), subtracted before exponentials so that normalisation cannot overflow."""
    largest = log_ratio.reshape(len(log_ratio), -1).max(axis=1)
    zero = np.isneginf(largest)
    if zero.any():
        raise error_for_client_zero_at_every_point("p" if len(largest) == 1 else f"p[{int(np.argmax(zero))}]")
    return np.asarray(largest)


def error_for_client_zero_at_every_point(client_name: str) -> DiscreetError:
    """The error for a client that is zero at every evaluated point."""
    return DiscreetError(
        f"{client_name} has zero mass in the family's space: it is 0 at every node; check its support against the family's box"
    )


def refuse_masses_lost_in_rounding(masses: Floats | float) -> None:
    """Reject clients whose mass, relative to their largest p/h, is lost in rounding."""
    smallest = np.atleast_1d(masses)
    if not (smallest > LEAST_MASS).all():
        subject = "p" if len(smallest) == 1 else f"p[{int(np.argmin(smallest > LEAST_MASS))}]"
        raise DiscreetError(
            f"{subject} has nearly all of its mass where the reference has almost none, or is more than 1e290 times the reference far in a "
            "tail. Its output distribution cannot be resolved (a release can); take a smaller box, or a reference with heavier tails"
        )


def mixtures_of_one_kernel_or_none(clients: Sequence[LogDensity]) -> list[Mixture] | None:
    """The clients if all of them are mixtures of the same kernel, else None."""
    mixtures = [p for p in clients if isinstance(p, Mixture) and p.kernel.has_independent_axes]
    return mixtures if len(mixtures) == len(clients) and len({p.kernel for p in mixtures}) == 1 else None


@dataclass(frozen=True, eq=False)
class NodeSummary:
    """Summary of some clients at nodes: log of their mass, of the smallest and of the largest p/h (n,).

    `slack` is the allowed relative error of a member's mass: one number, or one for each client.
    """

    log_mass: Floats
    log_smallest: Floats
    log_largest: Floats
    slack: float | Floats


def masses_stated_by_densities(family: ContinuousFamily, clients: Sequence[LogDensity]) -> Floats:
    """(n,) the mass that each client's density states for the family's space; NaN if it states none."""
    mixtures = mixtures_of_one_kernel_or_none(clients)
    if mixtures is not None:
        masses = mixture_masses_in_box(mixtures, *family.space)
    else:
        box_masses = (p.mass_between(*family.space) if hasattr(p, "mass_between") else None for p in clients)
        masses = np.array([np.nan if mass is None else mass for mass in box_masses], dtype=np.float64)
    return np.where(masses > LEAST_MASS, masses, np.nan)


def numbers_of_clients_missed_by_nodes(
    family: ContinuousFamily, clients: Sequence[LogDensity], summary: NodeSummary
) -> list[int]:
    """The numbers of the clients of whose mass the nodes saw nothing, or too little of what their densities state."""
    gap = np.abs(summary.log_mass - np.log(masses_stated_by_densities(family, clients)))
    is_missed = gap > np.minimum(summary.slack, _MISSED_AT_MOST)
    return [int(i) for i in np.flatnonzero(np.isneginf(summary.log_mass) | is_missed)]


@dataclass(frozen=True, eq=False)
class PanelMasses:
    """One client on panels, by nodes: masses (n,) up to a common factor, the log of the factor, the extreme log p/h, the relative error.

    The error is an ESTIMATE from values at nodes: a feature between the nodes escapes it.
    """

    masses: Floats
    log_factor: float
    log_smallest: float
    log_largest: float
    error: float

    @property
    def log_mass(self) -> float:
        """log of the mass on all panels together."""
        return self.log_factor + math.log(self.masses.sum())


def panel_masses(
    p: LogDensity, panels: Panels, chart: Chart, log_reference: Callable[[Floats], Floats] | None = None
) -> PanelMasses | None:
    """The masses of a density on panels of a chart's coordinates, with nodes refined where it reports narrow features or is not resolved.

    None if it is zero at all nodes.
    """
    order, dim = ORDER[panels.dim], panels.dim
    features = narrow_features_of_clients([p], dim)
    fine, owner = split_panels_with_parents_near_features(
        features, panels, chart, widest=0.5 * order, most=_MOST_NODES // order**dim
    )
    extremes = [math.inf, -math.inf]

    def log_density_noting_ratio_extremes(t: Floats) -> Floats:
        x = chart.points_at_coordinates(t).reshape(-1, dim)
        log_p = p.log_density(x)
        if log_reference is not None:
            log_h = log_reference(x)
            is_positive = np.isfinite(log_h)
            ratio = log_p[is_positive] - log_h[is_positive]
            extremes[0], extremes[1] = ratio.min(initial=extremes[0]), ratio.max(initial=extremes[1])
            log_p = np.where(is_positive, log_p, -np.inf)
        return np.asarray(log_p.reshape(t.shape[:-1]))

    # reused in the first evaluation below
    first_values = [log_density_noting_ratio_extremes(fine.nodes_and_weights(order)[0])]
    shift = float(first_values[0].max())
    if math.isinf(shift):
        return None

    def density_in_coordinates(t: Floats) -> Floats:
        values = np.exp((first_values.pop() if first_values else log_density_noting_ratio_extremes(t)) - shift)
        return np.where(values > 0.0, values * chart.jacobian(t), 0.0)

    _, part, integrals, errors = refine_and_integrate_by_panel(
        fine, density_in_coordinates, _RESOLVED[dim], 0.1, ends=dim == 1
    )
    masses = sum_by_cell(integrals, owner[part], len(panels))
    largest = np.finfo(np.float64).max / (4.0 * len(masses))  # no distribution has such a mass
    finite = np.minimum(np.nan_to_num(masses, nan=largest, posinf=largest), largest)
    if not finite.any():
        return None
    error = float(errors.sum() / finite.sum()) if np.isfinite(masses).all() else math.inf
    return PanelMasses(finite, shift, extremes[0], extremes[1], error)


def warn_of_coarse_masses(client_name: str, error: float) -> None:
    """Warn of a client whose masses on cells are inaccurate."""
    if error > _COARSE:
        warn_caller(
            f"{client_name} changes faster than nodes can follow: its masses on cells have an error of about {error:.1g} of the total. A "
            "release is equally private, but follows those masses, and so do estimates from it; give a distribution function, "
            "BoundedDensity(p, cdf=...), or a smoother density",
            UnresolvedWarning,
        )


def bound_on_sampled_mass_error(bounds: Bounds, count: int) -> float:
    """How far the average of p/h over that many draws of h is from 1, relatively, for all members except with probability 1e-9.

    (Bernstein's inequality, for p/h between the bounds with variance at most (upper - 1)(1 - lower).) Infinite if it gives no bound.
    """
    log_odds = math.log(2e9)
    variance, width = (bounds.upper - 1.0) * (1.0 - bounds.lower), bounds.upper - bounds.lower
    range_term = width * log_odds / (3.0 * count)
    deviation = range_term + math.sqrt(range_term * range_term + 2.0 * variance * log_odds / count)
    return deviation / (1.0 - deviation) if deviation < 1.0 else math.inf


def clients_seen_outside_band_or_none(
    family: ContinuousFamily, clients: Sequence[LogDensity], summary: NodeSummary
) -> Outsiders | None:
    """The clients seen to be outside the band; None if there are none.

    p is divided by its own mass if it knows it, else by the mass that nodes saw.
    """
    bounds = family.bounds
    stated_masses = masses_stated_by_densities(family, clients)
    is_unknown = np.isnan(stated_masses)
    log_mass = np.where(is_unknown, summary.log_mass, np.log(stated_masses))
    slack = np.where(is_unknown, summary.slack, np.minimum(summary.slack, _LEAST_SLACK))
    log_smallest, log_largest = summary.log_smallest.copy(), summary.log_largest.copy()
    for i in {*map(int, np.flatnonzero(is_unknown)), *numbers_of_clients_missed_by_nodes(family, clients, summary)}:
        log_ratios = _log_ratios_at_narrow_places(family, clients[i])
        log_smallest[i], log_largest[i] = (
            log_ratios.min(initial=log_smallest[i]),
            log_ratios.max(initial=log_largest[i]),
        )
    log_largest[shares_where_reference_is_zero(family, clients, log_mass) > slack] = np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        smallest, largest = np.exp(log_smallest - log_mass), np.exp(log_largest - log_mass)
        bad = (largest > bounds.upper * (1.0 + slack)) | (smallest < bounds.lower * (1.0 - slack))
    outside = [i for i in map(int, np.flatnonzero(bad)) if not is_certain_member(family, clients[i])]
    if not outside:
        return None
    return Outsiders(outside, len(clients), float(smallest[outside[0]]), float(largest[outside[0]]))


def find_continuous_outsiders(
    family: ContinuousFamily, clients: Sequence[LogDensity], summary: NodeSummary, members: ContinuousFamily | None
) -> Outsiders | None:
    """The clients seen to be outside the band; none for a band that serves everybody.

    `members`: the clients' family, if the nodes are those of another reference; clients are then evaluated again on its own nodes.
    """
    if (family if members is None else members).any_client:
        return None
    if members is not None and clients:
        family, summary = members, summarise_clients_at_nodes(members, clients)
    return clients_seen_outside_band_or_none(family, clients, summary)


def summarise_clients_at_nodes(family: ContinuousFamily, clients: Sequence[LogDensity]) -> NodeSummary:
    """A summary of clients on the family's public nodes, refined where a client reports narrow features."""
    if family.dim not in ORDER:
        x = family.draw(_POINTS, np.random.default_rng(0))
        log_reference = family.log_reference(x)
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        shift = largest_log_ratios(log_ratio)
        log_mass = shift + np.log(np.exp(log_ratio - shift[:, None]).mean(axis=1))
        return NodeSummary(log_mass, log_ratio.min(axis=1), shift, bound_on_sampled_mass_error(family.bounds, _POINTS))
    summaries = [_summarise_client_at_nodes(family, p) for p in clients]
    return NodeSummary(*(np.array(column) for column in zip(*summaries, strict=True)))


def _summarise_client_at_nodes(family: ContinuousFamily, p: LogDensity) -> tuple[float, float, float, float]:
    order = ORDER[family.dim]
    panels, _ = family.refine_panels(family.panels, [p], _MOST_NODES)
    nodes = family.nodes if len(panels) == len(family.panels) else family.nodes_of_panels(panels, order)
    log_ratio = log_ratios_at_nodes([p], nodes)
    shift = float(largest_log_ratios(log_ratio)[0])
    density = np.exp(log_ratio[0] - shift) * nodes.element
    mass = float((density * nodes.weights).sum())
    refuse_masses_lost_in_rounding(mass)
    smallest = float(log_ratio[0].min(where=nodes.masses > 0.0, initial=np.inf))
    error = float(nodes.panels.integral_errors(density, order).sum()) / mass
    return shift + math.log(mass), smallest, shift, BAND_SLACK + error


def shares_where_reference_is_zero(family: ContinuousFamily, clients: Sequence[LogDensity], log_mass: Floats) -> Floats:
    """(n,) the share of each client's mass at public nodes where the reference is 0, if its mass elsewhere is exp(log_mass)."""
    if family.dim > LARGEST_CHARTED or not len(family.nodes_without_reference[0]):
        return np.zeros(len(clients))
    x, log_volume = family.nodes_without_reference
    with np.errstate(over="ignore", invalid="ignore"):
        odds = [np.exp(p.log_density(x) + log_volume - mass).sum() for p, mass in zip(clients, log_mass, strict=True)]
        return np.nan_to_num(np.array(odds) / (1.0 + np.array(odds)), nan=1.0)


def update_mass_errors_and_warn(
    family: ContinuousFamily, clients: Sequence[LogDensity], log_mass: Floats, errors: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Errors (n,) that include the part of the stated masses that nodes missed, and which masses are stated; warns of large errors."""
    stated_masses = masses_stated_by_densities(family, clients)
    is_stated = ~np.isnan(stated_masses)
    shares = shares_where_reference_is_zero(family, clients, log_mass)
    with np.errstate(divide="ignore", over="ignore"):
        seen_masses = np.where(shares > 0.0, np.exp(log_mass) / (1.0 - shares), np.nan)  # there, and elsewhere
    stated_masses = np.where(is_stated, stated_masses, seen_masses)
    gap = np.abs(np.expm1(log_mass - np.log(stated_masses)))
    if family.dim in _MISSED:
        missed_clients = np.flatnonzero(gap > np.minimum(_MISSED[family.dim] + 10.0 * errors, _MISSED_AT_MOST))
    else:
        missed_clients = np.flatnonzero(gap > _SHARE_MISSED_BY_POINTS + 10.0 * errors)
    if missed_clients.size:
        first = int(missed_clients[0])
        warn_caller(
            f"{client_numbers_in_words(missed_clients, len(clients))} has a mass of {stated_masses[first]:.6g} in the space of "
            f"{family!r}, of which nodes saw {math.exp(log_mass[first]):.6g}: it is too narrow in places, or lies where the "
            "reference has no mass. Divergences and scale may be off, total variation by as much and others by more; a release is equally "
            "private",
            UnresolvedWarning,
        )
    return np.fmax(errors, gap), is_stated


def _log_ratios_at_narrow_places(family: ContinuousFamily, p: LogDensity) -> Floats:
    """log p/h at the narrow places that p reports, which nodes may have missed; empty if it reports none."""
    points, (low, high) = narrow_features_of_clients([p], family.dim).places[:_MOST_PLACES], family.space
    points = points[np.all((points > low) & (points < high), axis=1)]  # both may be infinite at an end
    if not len(points):
        return np.empty(0)
    log_reference = family.log_reference(points)
    inside = np.isfinite(log_reference)
    return np.asarray(p.log_density(points[inside]) - log_reference[inside]) if inside.any() else np.empty(0)


def is_certain_member(family: ContinuousFamily, p: Any) -> bool:
    """Whether p is in the band by its parameters, or because it was clipped (`is_certainly_in`)."""
    return family.certainly_contains(p) or (hasattr(p, "is_certainly_in") and bool(p.is_certainly_in(family)))
