"""One client on panels of its own: the family's public ones, split until p is resolved, cut where q or min(p, q) has a kink.

p and h are evaluated once at every node. The scale is then the finite weighted problem of `discreet.projection`, solved exactly; as
panels change it is solved again, and what it says decides where the kinks are. An error is estimated for the masses of p and q, for
their overlap, and for p log(p/q), so that the divergences are as good as the scale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet._quadrature import ORDER, Panels, gauss_rule, worst_panels
from discreet.families._charts import Cartesian
from discreet.families._clients import check_masses, largest_log_ratios, log_ratios
from discreet.families._continuous import ContinuousFamily, Nodes
from discreet.families._densities import LogDensity, Tabulated
from discreet.families._fits import HistogramLaw
from discreet.families._kernels import LAPLACE, Mixture
from discreet.families._seen import BAND_SLACK, NodeSummary
from discreet.mechanisms._continuous._kinks import CutLines, at_ends, cut_lines, kink_levels
from discreet.mechanisms._continuous._output_law import OutputLaw, affine_clip, ratio_of
from discreet.mechanisms._continuous._problem import OutputProblem

Floats = NDArray[np.float64]
RatioAt = Callable[[Floats, Floats], Floats]

TOLERANCE = {1: 1e-10, 2: 5e-7, 3: 2e-4}  # sum of the estimated errors at which the panels are fine enough
MOST_NODES = {1: 1 << 14, 2: 1 << 18, 3: 1 << 19}
_SPLIT = {1: 4, 2: 2, 3: 2}
_LARGEST_RATIO = 1e300
_ROUNDS = 60
_MOVED = 1e-6  # relative change of the slope past which kinks are no longer where they were cut
_BEYOND_NODES = 0.2  # share of its range on the nodes by which a function may pass it on the rest of a panel
_ROUNDING = 1e-11
_MOST_BREAKS = {1: 2048, 2: 24, 3: 6}


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

    def concat(self, other: "Pieces") -> "Pieces":
        """These and then the others."""
        return Pieces(
            self.panels.concat(other.panels),
            np.concatenate([self.masses, other.masses]),
            np.concatenate([self.ratio, other.ratio]),
            np.concatenate([self.owner, other.owner + len(self.panels)]),
            np.concatenate([self.errors, other.errors]),
        )


@dataclass(frozen=True, eq=False)
class RefinedSolution:
    """A solution on nodes that are fine enough (or as many as there may be), and the sum of its estimated errors.

    The client's density is exp(log_scale) times `solution.mass` times as large as the normalised one.
    """

    solution: Solution
    log_scale: float
    error: float


@dataclass(frozen=True, eq=False)
class OneClient:
    """The output law of one client in up to three dimensions."""

    problem: OutputProblem

    def law(self, p: LogDensity) -> OutputLaw:
        """The output law of p."""
        refined = self.refine(p)
        found = refined.solution
        log_mass = np.array([refined.log_scale + math.log(found.mass)])
        with np.errstate(divide="ignore"):
            inside = np.log(found.ratio[found.masses > 0.0])
        seen = NodeSummary(log_mass, log_mass + inside.min(), log_mass + inside.max(), BAND_SLACK + refined.error)
        self.problem.tell_outside([p], seen)
        client = (found.masses * found.ratio)[None, :]
        law = OutputLaw(
            self.problem.family, self.problem.constants, self.problem.mixing, (p,), False, found.masses, client, log_mass,
            np.array([found.slope]), np.array([found.lift]), np.array([refined.error]),
        )  # fmt: skip
        return self.problem.with_known_masses(law)

    def refine(self, p: LogDensity) -> RefinedSolution:
        """The solution on nodes that resolve p and the kinks of q."""
        dim, tolerance = self.problem.family.dim, TOLERANCE[self.problem.family.dim]
        nodes = nodes_for(self.problem.family, p)
        log_ratio = log_ratios([p], nodes)[0]
        shift = float(largest_log_ratios(log_ratio[None])[0])
        ratio = np.exp(log_ratio - shift)

        def ratio_at(x: Floats, log_reference: Floats) -> Floats:
            return ratio_of(p.log_density(x), log_reference + shift)

        def pieces_of(some: Nodes, ratio: Floats | None = None) -> Pieces:
            if ratio is None:
                ratio = ratio_at(some.x.reshape(-1, dim), some.log_reference.ravel()).reshape(some.weights.shape)
            return self._pieces(some, ratio, found, ratio_at)

        found = self._solution(nodes.masses.ravel(), ratio.ravel())
        kinked, lines = self._cut(nodes, ratio, found, ratio_at)
        found = self._solution(*_uncut_and_cut(nodes, ratio, kinked, lines))
        cut_at, pieces = found.slope, pieces_of(nodes, ratio)  # now the cuts are where the kinks are
        found = self._solution(pieces.masses, pieces.ratio)
        for _ in range(_ROUNDS):
            bad = worst_panels(pieces.errors, 0.5 * tolerance) & pieces.panels.divisible
            if pieces.errors.sum() > tolerance and pieces.masses.size < MOST_NODES[dim] and bad.any():
                fresh = self.problem.family.nodes_of(pieces.panels[bad].split(_SPLIT[dim]), ORDER[dim])
                pieces = pieces.without(bad).concat(pieces_of(fresh))
            elif abs(found.slope - cut_at) > _MOVED * cut_at and math.isfinite(found.slope):
                cut_at = found.slope
                pieces = pieces_of(self.problem.family.nodes_of(pieces.panels, ORDER[dim]))
            else:
                break
            found = self._solution(pieces.masses, pieces.ratio)
        return RefinedSolution(found, shift, float(pieces.errors.sum()))

    def _pieces(self, nodes: Nodes, ratio: Floats, at: Solution, ratio_at: RatioAt) -> Pieces:
        """The nodes of some panels, those that a kink of the solution crosses cut along it, with every panel's error."""
        order = ORDER[self.problem.family.dim]
        kinked, lines = self._cut(nodes, ratio, at, ratio_at)
        p, q = self._both(ratio, at)
        errors = nodes.panels.errors(p * nodes.element, order)
        if self.problem.family.dim == 1:
            errors += self._errors_at_ends(nodes, ratio, ratio_at) / at.mass
        errors[~kinked] += nodes.panels[~kinked].errors((_entropy(p, q) * nodes.element)[~kinked], order)
        owner = np.repeat(np.flatnonzero(~kinked), ratio.shape[1])
        if lines is not None:
            p, q = self._both(lines.ratio, at)
            errors[kinked] += lines.errors(q) + lines.errors(np.minimum(p, q)) + lines.errors(_entropy(p, q))
            owner = np.concatenate([owner, np.repeat(np.flatnonzero(kinked)[lines.panel], order)])
        return Pieces(nodes.panels, *_uncut_and_cut(nodes, ratio, kinked, lines), owner, errors)

    def _cut(
        self, nodes: Nodes, ratio: Floats, at: Solution, ratio_at: RatioAt
    ) -> tuple[NDArray[np.bool_], CutLines | None]:
        """Which panels a kink of the solution crosses, and the lines they are cut into."""
        places = self._levels(at)
        kinked = _crossed_panels(ratio, places)
        if not kinked.any():
            return kinked, None
        return kinked, cut_lines(self.problem.family, nodes.panels[kinked], ratio[kinked], places, ratio_at)

    def _errors_at_ends(self, nodes: Nodes, ratio: Floats, ratio_at: RatioAt) -> Floats:
        """What a jump of p between the outermost nodes of an interval and its ends would cost: the nodes cannot see it."""
        order = ratio.shape[1]
        width = nodes.panels.upper - nodes.panels.lower
        t = np.concatenate([nodes.panels.lower + 1e-9 * width, nodes.panels.upper - 1e-9 * width], axis=1)[..., None]
        x = self.problem.family.chart.points(t).reshape(-1, 1)
        found = ratio_at(x, self.problem.family.log_reference(x)).reshape(-1, 2)
        missed = np.abs(found - ratio @ at_ends(order)) * nodes.element[:, [0, -1]]
        return np.asarray(missed.sum(axis=1) * width[:, 0] * gauss_rule(order)[0][0])

    def _both(self, ratio: Floats, at: Solution) -> tuple[Floats, Floats]:
        """p/h normalised and q/h, from p/h as it is on the nodes."""
        p = _normalised_ratio(ratio, at.mass)
        return p, affine_clip(p, at.slope, at.lift, self.problem.constants)

    def _solution(self, masses: Floats, ratio: Floats) -> Solution:
        client = masses * ratio
        mass = float(client.sum())
        check_masses(mass)
        client /= mass
        if self.problem.mixing is not None:
            return Solution(
                masses, _normalised_ratio(ratio, mass), mass, self.problem.mixing.slope, self.problem.mixing.lift
            )
        box = self.problem.box(masses)
        return Solution(masses, _normalised_ratio(ratio, mass), mass, *box.slope_and_lift(client))

    def _levels(self, at: Solution) -> list[float]:
        """Where p/h (not normalised) meets a bound of the clip, and where p meets q."""
        found = kink_levels(self.problem.constants, np.array([at.slope]), np.array([at.lift]))[:, 0]
        return [level * at.mass for level in found if 0.0 < level < math.inf]


def _normalised_ratio(ratio: Floats, mass: float) -> Floats:
    """ratio/mass, but never infinite: where a client is that far above the reference, it is clipped whatever it is."""
    with np.errstate(over="ignore"):
        return np.minimum(ratio / mass, _LARGEST_RATIO)


def _uncut_and_cut(
    nodes: Nodes, ratio: Floats, kinked: NDArray[np.bool_], lines: CutLines | None
) -> tuple[Floats, Floats]:
    """Reference masses and p/h (m,) on the nodes of the panels that stay whole, then on the lines of the others."""
    masses, ratios = nodes.masses[~kinked].ravel(), ratio[~kinked].ravel()
    if lines is None:
        return masses, ratios
    return np.concatenate([masses, lines.masses.ravel()]), np.concatenate([ratios, lines.ratio.ravel()])


def nodes_for(family: ContinuousFamily, p: LogDensity) -> Nodes:
    """The family's nodes, on panels cut along the lines where p is known not to be smooth, and as fine as it is narrow."""
    panels = family.panels
    for axis, places in enumerate(_breaks(family, p) or ()):
        panels = panels.cut(axis, np.unique(places))
    panels, _ = family.panels_at(panels, [p], MOST_NODES[family.dim] // 2)
    unchanged = len(panels) == len(family.panels)
    return family.nodes if unchanged else family.nodes_of(panels, ORDER[family.dim])


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


def _crossed_panels(ratio: Floats, levels: list[float]) -> NDArray[np.bool_]:
    """The panels (n,) on which the ratio, known on their nodes (n, m), passes a level; nodes stop short of the edges."""
    low, high = ratio.min(axis=1), ratio.max(axis=1)
    beyond = _BEYOND_NODES * (high - low)
    low, high = low - beyond, high + beyond
    high[high - low <= _ROUNDING * high] = -np.inf  # a constant that rounding makes pass a level has no kink
    crossed = np.zeros(len(ratio), dtype=bool)
    for level in levels:
        crossed |= (low < level) & (level < high)
    return crossed
