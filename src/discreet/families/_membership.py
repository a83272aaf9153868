"""Detection of continuous clients outside their family: their densities, and their values at nodes.

Continuous clients are one density or a list of them. Nodes give p/h of each client, whether it leaves the band, and how much of the mass that
it reports was missed. They find outsiders but cannot establish membership, since a function is known only where it was evaluated. No
guarantee depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import ORDER, Panels, integrate_parts
from discreet._base.showing import with_short_repr
from discreet.errors import DiscreetError, UnresolvedWarning, warn_caller
from discreet.families._bands_and_laws import Bounds, Outsiders, name_clients
from discreet.families._densities import LogDensity, as_density
from discreet.families._integration import Chart, features_of, split_panels_at, sum_by_cell
from discreet.families._kernel_mixtures import Mixture, kernel_rows, log_densities, masses_between

if TYPE_CHECKING:
    from discreet.families._continuous import ContinuousFamily

Floats = NDArray[np.float64]

LEAST_MASS = 1e-290
BAND_SLACK = 1e-6
_FAINT = 1e-4  # differences of a distribution function give such a mass to 12 digits
_LEAST_SLACK = 1e-6  # of a mass that is known: rounding
_MISSED = {1: 1e-7, 2: 1e-5, 3: 1e-3}  # share of a known mass that nodes may miss without a warning
_MISSED_BY_POINTS = 0.05
_MISSED_AT_MOST = 1e-2  # for every estimated error
_MOST_PLACES = 4096
_MOST_NODES = 1 << 18
_POINTS = 1 << 16
_RESOLVED = {1: 1e-9, 2: 1e-5, 3: 1e-3}  # target relative error of a client's total mass on the cells
_COARSE = 1e-2  # the relative error that causes a warning


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

    def __getitem__(self, which: NDArray[np.bool_]) -> Nodes:
        return Nodes(
            self.panels[which], self.x[which], self.log_reference[which], self.weights[which], self.element[which]
        )

    def concat(self, other: Nodes) -> Nodes:
        """These nodes and then the others."""
        return Nodes(
            self.panels.concat(other.panels),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.log_reference, other.log_reference]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.element, other.element]),
        )


def is_list_of_clients(p: Any) -> bool:
    """Whether p is a list of clients."""
    return isinstance(p, (list, tuple))


def as_clients(p: Any, family: ContinuousFamily) -> tuple[LogDensity, ...]:
    """One density or a list of them, behind the common interface."""
    if not is_list_of_clients(p):
        return (as_density(p, family.dim),)
    if not p:
        raise DiscreetError("p is an empty list of clients")
    return tuple(as_density(one, family.dim, f"p[{i}]") for i, one in enumerate(p))


def log_ratios(clients: Sequence[LogDensity], nodes: Nodes) -> Floats:
    """log p/h of every client at every node: (n, panels, nodes); minus infinity where p or h is zero."""
    x = nodes.x.reshape(-1, nodes.x.shape[-1])
    mixtures = mixtures_of_one_kernel(clients) if len(clients) > 1 else None
    found = log_densities(mixtures, x) if mixtures else np.stack([p.log_density(x) for p in clients])
    with np.errstate(invalid="ignore"):
        found -= nodes.log_reference.ravel()
    found[:, nodes.element.ravel() <= 0.0] = -np.inf
    return found.reshape(len(clients), *nodes.weights.shape)


def known_interval_masses(clients: Sequence[LogDensity], edges: Floats) -> list[Floats | None]:
    """The masses of each client between consecutive edges of a line; None if they are unknown or nearly zero."""
    mixtures = mixtures_of_one_kernel(clients)
    if mixtures is not None:
        rows: list[Floats | None] = list(kernel_rows(mixtures, edges))
    else:
        rows = [p.plain_masses(edges) if hasattr(p, "plain_masses") else None for p in clients]
    for place, (p, row) in enumerate(zip(clients, rows, strict=True)):
        if (row is None or row.sum() < _FAINT) and hasattr(p, "interval_masses"):  # tails need differences of tails
            known = p.interval_masses(edges)
            rows[place] = known.mass if known is not None and known.has_enough_mass else None
    return rows


def largest_log_ratios(log_ratio: Floats) -> Floats:
    """(n,) the largest log p/h of each client (n, ...), subtracted before exponentials so that normalisation cannot overflow."""
    largest = log_ratio.reshape(len(log_ratio), -1).max(axis=1)
    zero = np.isneginf(largest)
    if zero.any():
        raise unseen_error("p" if len(largest) == 1 else f"p[{int(np.argmax(zero))}]")
    return np.asarray(largest)


def unseen_error(who: str) -> DiscreetError:
    """The error for a client that is zero at every evaluated point."""
    return DiscreetError(
        f"{who} has zero mass in the family's space: it is 0 at every node; check its support against the family's box"
    )


def check_masses(masses: Floats | float) -> None:
    """Reject clients whose mass, relative to their largest p/h, is lost in rounding."""
    smallest = np.atleast_1d(masses)
    if not (smallest > LEAST_MASS).all():
        which = "p" if len(smallest) == 1 else f"p[{int(np.argmin(smallest > LEAST_MASS))}]"
        raise DiscreetError(
            f"{which} has nearly all of its mass where the reference has almost none (less than {LEAST_MASS:g} of it), which "
            "cannot be resolved; take a smaller box, or a reference with heavier tails"
        )


def mixtures_of_one_kernel(clients: Sequence[LogDensity]) -> list[Mixture] | None:
    """The clients if all of them are mixtures of the same kernel, else None."""
    mixtures = [p for p in clients if isinstance(p, Mixture) and p.kernel.separable]
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


def reported_masses(family: ContinuousFamily, clients: Sequence[LogDensity]) -> Floats:
    """(n,) the mass that each client reports in the family's space; NaN if it does not know."""
    mixtures = mixtures_of_one_kernel(clients)
    if mixtures is not None:
        found = masses_between(mixtures, *family.space)
    else:
        said = (p.mass_between(*family.space) if hasattr(p, "mass_between") else None for p in clients)
        found = np.array([np.nan if mass is None else mass for mass in said], dtype=np.float64)
    return np.where(found > LEAST_MASS, found, np.nan)


def missed_clients(family: ContinuousFamily, clients: Sequence[LogDensity], seen: NodeSummary) -> list[int]:
    """The clients for which nodes saw no mass, or too little of the mass that they report."""
    gap = np.abs(seen.log_mass - np.log(reported_masses(family, clients)))
    much = gap > np.minimum(seen.slack, _MISSED_AT_MOST)
    return [int(i) for i in np.flatnonzero(np.isneginf(seen.log_mass) | much)]


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
    features = features_of([p], dim)
    fine, owner = split_panels_at(features, panels, chart, widest=0.5 * order, most=_MOST_NODES // order**dim)
    extremes = [math.inf, -math.inf]

    def log_values(t: Floats) -> Floats:
        x = chart.points(t).reshape(-1, dim)
        found = p.log_density(x)
        if log_reference is not None:
            below = log_reference(x)
            held = np.isfinite(below)
            ratio = found[held] - below[held]
            extremes[0], extremes[1] = ratio.min(initial=extremes[0]), ratio.max(initial=extremes[1])
            found = np.where(held, found, -np.inf)
        return np.asarray(found.reshape(t.shape[:-1]))

    waiting = [log_values(fine.nodes(order)[0])]  # reused in the first evaluation below
    shift = float(waiting[0].max())
    if math.isinf(shift):
        return None

    def mass_element(t: Floats) -> Floats:
        values = np.exp((waiting.pop() if waiting else log_values(t)) - shift)
        return np.where(values > 0.0, values * chart.jacobian(t), 0.0)

    _, part, integrals, errors = integrate_parts(fine, mass_element, _RESOLVED[dim], 0.1, ends=dim == 1)
    masses = sum_by_cell(integrals, owner[part], len(panels))
    most = np.finfo(np.float64).max / (4.0 * len(masses))  # no distribution has such a mass
    finite = np.minimum(np.nan_to_num(masses, nan=most, posinf=most), most)
    if not finite.any():
        return None
    error = float(errors.sum() / finite.sum()) if np.isfinite(masses).all() else math.inf
    return PanelMasses(finite, shift, extremes[0], extremes[1], error)


def warn_of_coarse_masses(who: str, error: float) -> None:
    """Warn of a client whose masses on cells are inaccurate."""
    if error > _COARSE:
        warn_caller(
            f"{who} changes faster than nodes can follow: its masses on cells have an error of about {error:.1g} of the total. A release "
            "is equally private, but follows those masses, and so do estimates from it; give a distribution function, "
            "BoundedDensity(p, cdf=...), or a smoother density",
            UnresolvedWarning,
        )


def sampling_deviation(bounds: Bounds, count: int) -> float:
    """How far the average of p/h over that many draws of h is from 1, relatively, for all members except with probability 1e-9.

    (Bernstein's inequality, for p/h between the bounds with variance at most (upper - 1)(1 - lower).) Infinite if it gives no bound.
    """
    log_odds = math.log(2e9)
    variance, width = (bounds.upper - 1.0) * (1.0 - bounds.lower), bounds.upper - bounds.lower
    far = width * log_odds / (3.0 * count)
    off = far + math.sqrt(far * far + 2.0 * variance * log_odds / count)
    return off / (1.0 - off) if off < 1.0 else math.inf


def outsiders_at_nodes(family: ContinuousFamily, clients: Sequence[LogDensity], seen: NodeSummary) -> Outsiders | None:
    """The clients seen to be outside the band; None if there are none.

    p is divided by its own mass if it knows it, else by the mass that nodes saw.
    """
    bounds = family.bounds
    known = reported_masses(family, clients)
    unknown = np.isnan(known)
    log_mass = np.where(unknown, seen.log_mass, np.log(known))
    slack = np.where(unknown, seen.slack, np.minimum(seen.slack, _LEAST_SLACK))
    log_smallest, log_largest = seen.log_smallest.copy(), seen.log_largest.copy()
    for i in {*map(int, np.flatnonzero(unknown)), *missed_clients(family, clients, seen)}:
        found = _log_ratios_at_places(family, clients[i])
        log_smallest[i], log_largest[i] = found.min(initial=log_smallest[i]), found.max(initial=log_largest[i])
    with np.errstate(over="ignore", invalid="ignore"):
        smallest, largest = np.exp(log_smallest - log_mass), np.exp(log_largest - log_mass)
        bad = (largest > bounds.upper * (1.0 + slack)) | (smallest < bounds.lower * (1.0 - slack))
    outside = [i for i in map(int, np.flatnonzero(bad)) if not is_member(family, clients[i])]
    if not outside:
        return None
    return Outsiders(outside, len(clients), float(smallest[outside[0]]), float(largest[outside[0]]))


def find_outsiders(
    family: ContinuousFamily, clients: Sequence[LogDensity], seen: NodeSummary, members: ContinuousFamily | None
) -> Outsiders | None:
    """The clients seen to be outside the band; none for a band that serves everybody.

    `members`: the clients' family, if the nodes are those of another reference; clients are then evaluated again on its own nodes.
    """
    if (family if members is None else members).any_client:
        return None
    if members is not None and clients:
        family, seen = members, summarise_clients(members, clients)
    return outsiders_at_nodes(family, clients, seen)


def summarise_clients(family: ContinuousFamily, clients: Sequence[LogDensity]) -> NodeSummary:
    """A summary of clients on the family's public nodes, refined where a client reports narrow features."""
    if family.dim not in ORDER:
        x = family.draw(_POINTS, np.random.default_rng(0))
        log_reference = family.log_reference(x)
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        shift = largest_log_ratios(log_ratio)
        log_mass = shift + np.log(np.exp(log_ratio - shift[:, None]).mean(axis=1))
        return NodeSummary(log_mass, log_ratio.min(axis=1), shift, sampling_deviation(family.bounds, _POINTS))
    each = [_summarise_client(family, p) for p in clients]
    return NodeSummary(*(np.array(column) for column in zip(*each, strict=True)))


def _summarise_client(family: ContinuousFamily, p: LogDensity) -> tuple[float, float, float, float]:
    order = ORDER[family.dim]
    panels, _ = family.refine_panels(family.panels, [p], _MOST_NODES)
    nodes = family.nodes if len(panels) == len(family.panels) else family.nodes_of(panels, order)
    log_ratio = log_ratios([p], nodes)
    shift = float(largest_log_ratios(log_ratio)[0])
    density = np.exp(log_ratio[0] - shift) * nodes.element
    mass = float((density * nodes.weights).sum())
    check_masses(mass)
    smallest = float(log_ratio[0].min(where=nodes.masses > 0.0, initial=np.inf))
    error = float(nodes.panels.errors(density, order).sum()) / mass
    return shift + math.log(mass), smallest, shift, BAND_SLACK + error


def warn_of_unresolved_masses(
    family: ContinuousFamily, clients: Sequence[LogDensity], log_mass: Floats, errors: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Errors (n,) that include the part of the reported masses that nodes missed, and which masses are known; warns of large errors."""
    known = reported_masses(family, clients)
    gap = np.abs(np.expm1(log_mass - np.log(known)))
    if family.dim in _MISSED:
        much = np.flatnonzero(gap > np.minimum(_MISSED[family.dim] + 10.0 * errors, _MISSED_AT_MOST))
    else:
        much = np.flatnonzero(gap > _MISSED_BY_POINTS + 10.0 * errors)
    if much.size:
        first = int(much[0])
        warn_caller(
            f"{name_clients(much, len(clients))} has a mass of {known[first]:.6g} in the space of {family!r}, of which nodes saw "
            f"{math.exp(log_mass[first]):.6g}: it is too narrow in places, or lies where the reference has no mass. Divergences and scale "
            "may be off by as much; a release is equally private",
            UnresolvedWarning,
        )
    return np.fmax(errors, gap), ~np.isnan(known)


def _log_ratios_at_places(family: ContinuousFamily, p: LogDensity) -> Floats:
    """log p/h at the narrow places that p reports, which nodes may have missed; empty if it reports none."""
    places = features_of([p], family.dim).places[:_MOST_PLACES]
    if not len(places):
        return np.empty(0)
    log_reference = family.log_reference(places)
    inside = np.isfinite(log_reference)
    return np.asarray(p.log_density(places[inside]) - log_reference[inside]) if inside.any() else np.empty(0)


def is_member(family: ContinuousFamily, p: Any) -> bool:
    """Whether p is in the band by its parameters, or because it was clipped (`certainly_in`)."""
    return family.certainly_contains(p) or (hasattr(p, "certainly_in") and bool(p.certainly_in(family)))
