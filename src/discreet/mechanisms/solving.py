"""From clients' densities to their output laws: nodes where p and h are evaluated once, and the exact finite problem on them.

One client in up to three dimensions gets panels of its own: the family's public ones, split until p is resolved, and cut where
q or min(p, q) has a kink (`discreet.mechanisms.kinks`). Many clients share one finer set of nodes. Above three dimensions the
nodes are points drawn from h by a public generator, each of mass 1/N.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, OutsideFamilyError, OutsideFamilyWarning, warn_caller
from discreet.families.charts import Cartesian
from discreet.families.continuous import LARGEST_CHARTED, ORDER, ContinuousFamily, Nodes, worst
from discreet.families.densities import LogDensity, Tabulated, as_density
from discreet.families.fits import HistogramLaw
from discreet.families.kernels import LAPLACE, Mixture, log_densities
from discreet.mechanisms.batches import cut_clients
from discreet.mechanisms.kinks import at_ends, cut_lines
from discreet.mechanisms.outputs import OutputLaw, affine_clip, blocks, ratio_of
from discreet.projection import Affine, Box
from discreet.projection.vectorised import improved
from discreet.quadrature import Panels, rule
from discreet.tradeoff import Constants

Floats = NDArray[np.float64]

TOLERANCE = {
    1: 1e-10,
    2: 2e-7,
    3: 1e-5,
}  # estimated error of the output's mass at which one client's panels are fine enough
MOST_NODES = {1: 1 << 14, 2: 1 << 18, 3: 1 << 19}
SHARED_SPLIT = {1: 1, 2: 2, 3: 1}  # how much finer the nodes are that many clients share, where they are not cut
SHARED_TOLERANCE = {1: 1e-8, 2: 1e-6, 3: 1e-4}
_MOST_SHARED = {1: 1 << 12, 2: 1 << 16, 3: 1 << 18}
_SHARED_ROUNDS = 12
MONTE_CARLO_NODES = 1 << 16
_SPLIT = {1: 4, 2: 2, 3: 2}
_BEYOND_NODES = 0.2  # share of its range on the nodes by which a function may pass it on the rest of a panel
_BAND_SLACK = 1e-6
_MOVED = 1e-6  # relative change of the slope past which kinks are no longer where they were cut
_ROUNDS = 60
_MOST_BREAKS = {1: 256, 2: 24, 3: 6}
_SMALLEST = 1e-300
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Solution:
    """The output on some nodes (m,): their reference masses, p/h normalised, the mass that p had, slope and lift."""

    masses: Floats
    ratio: Floats
    mass: float
    slope: float
    lift: float


@dataclass(frozen=True, eq=False)
class Pieces:
    """Nodes (m,) of some panels, uncut or cut, with p/h not normalised; the panel each belongs to; every panel's error."""

    panels: Panels
    masses: Floats
    ratio: Floats
    owner: NDArray[np.intp]
    errors: Floats

    def without(self, gone: NDArray[np.bool_]) -> "Pieces":
        """The panels that are not gone, with their nodes."""
        kept = ~gone[self.owner]
        renumbered = np.cumsum(~gone) - 1
        return Pieces(
            self.panels[~gone], self.masses[kept], self.ratio[kept], renumbered[self.owner[kept]], self.errors[~gone]
        )

    def joined(self, other: "Pieces") -> "Pieces":
        """These and then the others."""
        return Pieces(
            self.panels.joined(other.panels),
            np.concatenate([self.masses, other.masses]),
            np.concatenate([self.ratio, other.ratio]),
            np.concatenate([self.owner, other.owner + len(self.panels)]),
            np.concatenate([self.errors, other.errors]),
        )


@dataclass(frozen=True, eq=False)
class OutputSolver:
    """Finds the output laws of one sampler: a family, the constants of its box, and whether it projects or mixes."""

    family: ContinuousFamily
    constants: Constants
    epsilon: float
    mixing: Affine | None

    def law(self, p: Any) -> OutputLaw:
        """The output law of a density, or of a list of them on shared nodes."""
        many = is_many(p)
        clients = as_clients(p, self.family)
        if self.family.dim > LARGEST_CHARTED:
            return self._on_points(clients, many)
        return self._on_shared_nodes(clients) if many else self._refined(clients[0])

    # one client, panels of its own

    def _refined(self, p: LogDensity) -> OutputLaw:
        dim, tolerance = self.family.dim, TOLERANCE[self.family.dim]
        nodes = nodes_for(self.family, p)
        log_ratio = log_ratios([p], nodes)[0]
        shift = _shift(log_ratio)
        ratio = np.exp(log_ratio - shift)

        def ratio_at(x: Floats, log_reference: Floats) -> Floats:
            return ratio_of(p.log_density(x), log_reference + shift)

        def pieces_of(some: Nodes, ratio: Floats | None = None) -> Pieces:
            if ratio is None:
                ratio = ratio_at(some.x.reshape(-1, dim), some.log_reference.ravel()).reshape(some.weights.shape)
            return self._pieces(some, ratio, found, ratio_at)

        found = self._solution(nodes.masses.ravel(), ratio.ravel())
        for _ in range(2):  # the second time the cuts are where the kinks are
            cut_at = found.slope
            pieces = pieces_of(nodes, ratio)
            found = self._solution(pieces.masses, pieces.ratio)
        for _ in range(_ROUNDS):
            bad = worst(pieces.errors, 0.5 * tolerance) & pieces.panels.divisible
            if pieces.errors.sum() > tolerance and pieces.masses.size < MOST_NODES[dim] and bad.any():
                fresh = self.family.nodes_of(pieces.panels[bad].split(_SPLIT[dim]), ORDER[dim])
                pieces = pieces.without(bad).joined(pieces_of(fresh))
            elif abs(found.slope - cut_at) > _MOVED * cut_at and math.isfinite(found.slope):
                cut_at = found.slope
                pieces = pieces_of(self.family.nodes_of(pieces.panels, ORDER[dim]))
            else:
                break
            found = self._solution(pieces.masses, pieces.ratio)
        inside = found.ratio[None, found.masses > 0.0]
        tell_outside(self.family, [p], inside, _BAND_SLACK + float(pieces.errors.sum()), self.mixing is not None)
        return OutputLaw(
            self.family, self.constants, self.mixing, (p,), False, found.masses, (found.masses * found.ratio)[None, :],
            np.array([shift + math.log(found.mass)]), np.array([found.slope]), np.array([found.lift]),
            np.array([pieces.errors.sum()]),
        )  # fmt: skip

    def _pieces(
        self, nodes: Nodes, ratio: Floats, at: Solution, ratio_at: Callable[[Floats, Floats], Floats]
    ) -> Pieces:
        """The nodes of some panels, those that a kink of the solution crosses cut along it, with every panel's error."""
        order = ORDER[self.family.dim]
        levels = self._levels(at)
        kinked = _crossed(ratio, levels)
        p, q = self._both(ratio, at)
        errors = nodes.panels.errors(p * nodes.element, order)
        if self.family.dim == 1:
            errors += self._errors_at_ends(nodes, ratio, ratio_at) / at.mass
        errors[~kinked] += nodes.panels[~kinked].errors((_entropy(p, q) * nodes.element)[~kinked], order)
        owner = np.repeat(np.flatnonzero(~kinked), ratio.shape[1])
        masses, ratios = nodes.masses[~kinked].ravel(), ratio[~kinked].ravel()
        if kinked.any():
            lines = cut_lines(self.family, nodes.panels[kinked], ratio[kinked], levels, ratio_at)
            p, q = self._both(lines.ratio, at)
            errors[kinked] += lines.errors(q) + lines.errors(np.minimum(p, q)) + lines.errors(_entropy(p, q))
            owner = np.concatenate([owner, np.repeat(np.flatnonzero(kinked)[lines.panel], order)])
            masses = np.concatenate([masses, lines.masses.ravel()])
            ratios = np.concatenate([ratios, lines.ratio.ravel()])
        return Pieces(nodes.panels, masses, ratios, owner, errors)

    def _errors_at_ends(self, nodes: Nodes, ratio: Floats, ratio_at: Callable[[Floats, Floats], Floats]) -> Floats:
        """What a jump of p between the outermost nodes of an interval and its ends would cost: the nodes cannot see it."""
        order = ratio.shape[1]
        width = nodes.panels.upper - nodes.panels.lower
        t = np.concatenate([nodes.panels.lower + 1e-9 * width, nodes.panels.upper - 1e-9 * width], axis=1)[..., None]
        x = self.family.chart.points(t).reshape(-1, 1)
        found = ratio_at(x, self.family.log_reference(x)).reshape(-1, 2)
        missed = np.abs(found - ratio @ at_ends(order)) * nodes.element[:, [0, -1]]
        return np.asarray(missed.sum(axis=1) * width[:, 0] * rule(order)[0][0])

    def _both(self, ratio: Floats, at: Solution) -> tuple[Floats, Floats]:
        """p/h normalised and q/h, from p/h as it is on the nodes."""
        p = ratio / at.mass
        return p, affine_clip(p, at.slope, at.lift, self.constants)

    def _solution(self, masses: Floats, ratio: Floats) -> Solution:
        client = masses * ratio
        mass = float(client.sum())
        client /= mass
        if self.mixing is not None:
            return Solution(masses, ratio / mass, mass, self.mixing.slope, self.mixing.lift)
        box = Box.around(masses, masses.size, self.constants, self.epsilon)
        return Solution(masses, ratio / mass, mass, *box.slope_and_lift(client))

    def _levels(self, at: Solution) -> list[float]:
        """Where p/h (not normalised) meets a bound of the clip, and where p meets q."""
        found = _levels(self.constants, np.array([at.slope]), np.array([at.lift]))[:, 0]
        return [level * at.mass for level in found if 0.0 < level < math.inf]

    # many clients, shared nodes

    def _on_shared_nodes(self, clients: Sequence[LogDensity]) -> OutputLaw:
        nodes, log_ratio, errors = self._shared(clients)
        law = self._solved(clients, True, nodes.masses.ravel(), log_ratio.reshape(len(clients), -1))
        if self.family.dim == 1:
            return self._cut_along_line(law, nodes, errors)
        for rows in blocks(*law.client_masses.shape):
            density = law.output_masses_of(rows).reshape(-1, *nodes.weights.shape) / nodes.weights
            errors[rows] += nodes.panels.errors(density, ORDER[self.family.dim]).sum(axis=1)
        return replace(law, errors=errors)

    def _shared(self, clients: Sequence[LogDensity]) -> tuple[Nodes, Floats, Floats]:
        """Nodes on which every client is resolved, their log p/h there (n, panels, nodes), and what is left of errors (n,)."""
        dim, order = self.family.dim, ORDER[self.family.dim]
        nodes = self._shared_nodes
        log_ratio = log_ratios(clients, nodes)
        for _ in range(_SHARED_ROUNDS):
            errors = self._client_errors(nodes, log_ratio)
            bad = errors.max(axis=0) > SHARED_TOLERANCE[dim] / len(nodes.panels)
            if not bad.any() or nodes.weights.size > _MOST_SHARED[dim]:
                break
            fresh = self.family.nodes_of(nodes.panels[bad].split(2), order)
            nodes = nodes[~bad].joined(fresh)
            log_ratio = np.concatenate([log_ratio[:, ~bad], log_ratios(clients, fresh)], axis=1)
        return nodes, log_ratio, np.asarray(errors.sum(axis=1))

    def _client_errors(self, nodes: Nodes, log_ratio: Floats) -> Floats:
        """(n, panels) estimated errors of the clients' masses, each client's mass being one."""
        errors = np.empty(log_ratio.shape[:2])
        for rows in blocks(len(log_ratio), nodes.weights.size):
            shift = log_ratio[rows].max(axis=(1, 2), keepdims=True)
            density = np.exp(log_ratio[rows] - np.where(np.isfinite(shift), shift, 0.0)) * nodes.element
            mass = np.maximum(np.sum(density * nodes.weights, axis=(1, 2)), _SMALLEST)
            errors[rows] = nodes.panels.errors(density, ORDER[self.family.dim]) / mass[:, None]
        return errors

    def _cut_along_line(self, law: OutputLaw, nodes: Nodes, errors: Floats) -> OutputLaw:
        """Clients on an interval, once more on nodes of their own that end at their kinks."""
        constants = self.constants
        ratio = (law.client_masses / law.node_masses).reshape(-1, *nodes.weights.shape)
        slope, cut_mass = law.slope, np.ones(len(ratio))
        for _ in range(2):  # the second time the cuts are where the kinks are
            found = cut_clients(self.family, nodes, ratio, _levels(constants, slope, law.lift) * cut_mass)
            client = found.masses * found.ratio
            cut_mass = client.sum(axis=1)
            client /= cut_mass[:, None]
            if self.mixing is None:
                lower, upper = constants.b * found.masses, constants.B * found.masses
                better = improved(client, np.where(np.isfinite(slope), slope, 1.0), lower, upper)
                slope = np.where(np.isfinite(slope), better, slope)
        law = replace(law, node_masses=found.masses, client_masses=client, slope=slope)
        output = np.divide(law.output_masses, found.masses, out=np.zeros_like(client), where=found.masses > 0.0)
        return replace(law, errors=errors + found.errors(output), log_mass=law.log_mass + np.log(cut_mass))

    @cached_property
    def _shared_nodes(self) -> Nodes:
        dim = self.family.dim
        return self.family.nodes_of(self.family.panels.split(SHARED_SPLIT[dim]), ORDER[dim])

    # many dimensions, public points

    def _on_points(self, clients: Sequence[LogDensity], many: bool) -> OutputLaw:
        x, log_reference = self._public_points
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        law = self._solved(clients, many, np.full(len(x), 1.0 / len(x)), log_ratio)
        relative = law.output_masses_of(slice(None)) * len(x)
        return replace(law, errors=relative.std(axis=1) / math.sqrt(len(x)))

    @cached_property
    def _public_points(self) -> tuple[Floats, Floats]:
        x = self.family.draw(MONTE_CARLO_NODES, np.random.default_rng(0))
        return x, self.family.log_reference(x)

    def _solved(self, clients: Sequence[LogDensity], many: bool, masses: Floats, log_ratio: Floats) -> OutputLaw:
        """Every client on the same nodes (m,), from its log p/h there (n, m)."""
        shift = np.array([_shift(row) for row in log_ratio])
        client = np.exp(log_ratio - shift[:, None])
        extremes = np.stack([client.min(axis=1, where=masses > 0, initial=np.inf), client.max(axis=1)], axis=1)
        client *= masses
        mass = client.sum(axis=1)
        client /= mass[:, None]
        tell_outside(self.family, clients, extremes / mass[:, None], _BAND_SLACK, self.mixing is not None)
        if self.mixing is not None:
            slope, lift = np.full(len(clients), self.mixing.slope), np.full(len(clients), self.mixing.lift)
        else:
            box = Box.around(masses, masses.size, self.constants, self.epsilon)
            with np.errstate(divide="ignore"):
                slope, lift = np.asarray(1.0 / box.scale(client)), np.zeros(len(clients))
            for row in np.flatnonzero(np.isinf(slope)):
                slope[row], lift[row] = box.slope_and_lift(client[row])
        return OutputLaw(
            self.family, self.constants, self.mixing, tuple(clients), many, masses, client, shift + np.log(mass),
            slope, lift, np.zeros(len(clients)),
        )  # fmt: skip


def nodes_for(family: ContinuousFamily, p: LogDensity) -> Nodes:
    """The family's nodes, on panels cut along the lines where p is known not to be smooth."""
    breaks = _breaks(family, p)
    if breaks is None:
        return family.nodes
    panels = family.panels
    for axis, places in enumerate(breaks):
        panels = panels.cut(axis, np.unique(places))
    return family.nodes_of(panels, ORDER[family.dim])


def _breaks(family: ContinuousFamily, p: LogDensity) -> list[Floats] | None:
    """For each of the chart's axes, the coordinates at which p has a cusp or a jump, if they are known and few."""
    chart = family.chart
    found: list[Floats] | None = None
    match p, chart:
        case Mixture(kernel=kernel), Cartesian() if kernel == LAPLACE:
            found = [axis.backward(p.means[:, i]) for i, axis in enumerate(chart.maps)]
        case Tabulated(), Cartesian():
            found = [axis.backward(p.axes[i]) for i, axis in enumerate(chart.maps)]
        case HistogramLaw(), _ if p.partition.family == family:
            found = list(np.unique(np.vstack([p.partition.panels.lower, p.partition.panels.upper]), axis=0).T)
        case OutputLaw(), _:
            return _breaks(family, p.clients[0])
        case _:
            return None
    return found if all(len(np.unique(places)) <= _MOST_BREAKS[family.dim] for places in found) else None


def _entropy(p: Floats, q: Floats) -> Floats:
    """p log(p/q) - p + q: the least smooth of the divergences' integrands where p comes near 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0.0, p * np.log(p / q), 0.0) - p + q


def is_many(p: Any) -> bool:
    """Whether p is a list of clients."""
    return isinstance(p, (list, tuple))


def as_clients(p: Any, family: ContinuousFamily) -> tuple[LogDensity, ...]:
    """One density or a list of them, behind the one interface."""
    if not is_many(p):
        return (as_density(p, family.dim),)
    if not p:
        raise DiscreetError("p is an empty list of clients")
    return tuple(as_density(one, family.dim, f"p[{i}]") for i, one in enumerate(p))


def log_ratios(clients: Sequence[LogDensity], nodes: Nodes) -> Floats:
    """log p/h of every client at every node: (n, panels, nodes); minus infinity where p or h is zero."""
    x = nodes.x.reshape(-1, nodes.x.shape[-1])
    mixtures = [p for p in clients if isinstance(p, Mixture)]
    if len(mixtures) == len(clients) > 1 and len({p.kernel for p in mixtures}) == 1:
        found = log_densities(mixtures, x)
    else:
        found = np.stack([p.log_density(x) for p in clients])
    with np.errstate(invalid="ignore"):
        found -= nodes.log_reference.ravel()
    found[:, nodes.element.ravel() <= 0.0] = -np.inf
    return found.reshape(len(clients), *nodes.weights.shape)


def tell_outside(
    family: ContinuousFamily, clients: Sequence[LogDensity], ratio: Floats, slack: float, refuse: bool
) -> None:
    """Warn about clients with p/h (n, m) outside the band, or refuse them where a mechanism is only for members.

    `slack` is how well the mass that p was divided by is known, relatively.
    """
    bounds = family.bounds
    smallest, largest = ratio.min(axis=1), ratio.max(axis=1)
    bad = (largest > bounds.upper * (1.0 + slack)) | (smallest < bounds.lower * (1.0 - slack))
    outside = [i for i in map(int, np.flatnonzero(bad)) if not _is_member(family, clients[i])]
    if not outside:
        return
    first = outside[0]
    who = "p" if len(clients) == 1 else f"p[{first}]" + (f" and {len(outside) - 1} more" if len(outside) > 1 else "")
    what = (
        f"{who} is outside {family!r}: p/h runs from {smallest[first]:g} to {largest[first]:g}, the band from "
        f"{bounds.lower:g} to {bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{what}; the linear mechanism would publish more of it than it may: release nearest_member(family, p), or use "
            "OptimalSampler, which is private for every law"
        )
    warn_caller(f"{what}; its release is private all the same, the bound on its utility is lost", OutsideFamilyWarning)


def _is_member(family: ContinuousFamily, p: LogDensity) -> bool:
    """Whether p is in the band by its parameters, or because it was clipped to one inside."""
    if isinstance(p, OutputLaw):
        bounds, constants = family.bounds, p.constants
        return p.family == family and bounds.lower <= constants.b and bounds.upper >= constants.B
    return family.certainly_contains(p)


def nearest_member(family: ContinuousFamily, p: Any) -> OutputLaw:
    """The law of the family closest to p for every f-divergence at once: clip(p/r, c1 h, c2 h) [paper, Prop. C.8]."""
    bounds = family.bounds
    lower = max(bounds.lower, 1e-12 * bounds.upper)
    constants = Constants(bounds.alpha, lower, bounds.upper, 1.0, 1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideFamilyWarning)
        return OutputSolver(family, constants, math.log(bounds.upper / lower) + 1e-9, None).law(p)


def _levels(constants: Constants, slope: Floats, lift: Floats) -> Floats:
    """(4, n) values of p/h where q = clip(slope p/h + lift b, b, B) meets b, meets B, and where p meets q; 0 for none."""
    b, top = constants.b, constants.B
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.isinf(slope)
        from_below = np.where(steep, 0.0, b * (1.0 - lift) / slope)
        from_above = np.where(steep, 0.0, (top - lift * b) / slope)
        inside = np.where(slope < 1.0, lift * b / (1.0 - slope), 0.0)
    return np.stack([from_below, from_above, np.where(slope < 1.0, b, top), inside])


def _crossed(ratio: Floats, levels: list[float]) -> NDArray[np.bool_]:
    """The panels (n,) on which the ratio, known on their nodes (n, m), passes a level; nodes stop short of the edges."""
    low, high = ratio.min(axis=1), ratio.max(axis=1)
    beyond = _BEYOND_NODES * (high - low)
    low, high = low - beyond, high + beyond
    high[high - low <= _ROUNDING * high] = -np.inf  # a constant that rounding makes pass a level has no kink
    crossed = np.zeros(len(ratio), dtype=bool)
    for level in levels:
        crossed |= (low < level) & (level < high)
    return crossed


def _shift(log_ratio: Floats) -> float:
    """The largest log p/h, taken off before exponentials so that no normalisation overflows."""
    largest = float(log_ratio.max())
    if largest == -math.inf:
        raise DiscreetError(
            "p has zero mass in the family's space: it is 0 at every node; check its support against the family's box"
        )
    return largest
