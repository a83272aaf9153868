"""`OutputSolver`: from clients' densities to their output distributions.

p and h are evaluated once at every node. The scale is then the finite weighted problem of `discreet.projection`, solved exactly.

`OneClientSolver`, for one client in up to three dimensions, has panels of its own. It splits the family's public panels until p is
resolved, and cuts them where q or min(p, q) has a kink. As panels change, the problem is solved again, and the solution tells where the
kinks are. Errors are estimated for the masses of p and q, for their overlap, and for p log(p/q), so that divergences are as accurate as the
scale.

`ManyClientsSolver` uses one set of Gauss-Legendre nodes for all clients, on which p/h is nearly a polynomial. On a line every client has
its own cuts. Values at the nodes between its kinks are interpolated, without new evaluations of its density. Clients have different numbers
of pieces; the arrays are padded with nodes of mass zero.

`PublicPointsSolver`, above three dimensions, uses nodes drawn from h by a public generator, each of mass 1/N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import ORDER, Panels, fewest_panels_to_refine, gauss_rule, integral_errors_on_unit_cube
from discreet.families import (
    BAND_SLACK,
    GAUSSIAN,
    LAPLACE,
    LARGEST_CHARTED,
    Cartesian,
    ContinuousFamily,
    HistogramLaw,
    LogDensity,
    Mixture,
    Nodes,
    NodeSummary,
    Tabulated,
    bound_on_sampled_mass_error,
    largest_log_ratios,
    log_ratios_at_nodes,
    mixtures_of_one_kernel_or_none,
    refuse_masses_lost_in_rounding,
)
from discreet.projection._box import improve_slopes_by_newton, row_slices_within_memory, solve_slopes_and_lifts
from discreet.projection._output_law import (
    CutLines,
    OutputLaw,
    OutputProblem,
    affine_clip,
    cut_panels_at_ratio_levels,
    density_ratio,
    evaluate_legendre_series,
    matrix_to_legendre_coefficients,
    ratio_counts_beside_infinite_slope,
    ratio_levels_of_kinks,
    segments_between_levels,
    without_faint_masses,
)
from discreet.projection._panel_ends import (
    errors_from_jumps_at_interval_ends,
    log_densities_at_faces,
    log_densities_towards_interval_ends,
)

Floats = NDArray[np.float64]
RatioAt = Callable[[Floats, Floats], Floats]
TowardsEnds = Callable[[Nodes, Floats], Floats]

TOLERANCE = {1: 1e-10, 2: 5e-7, 3: 2e-4}  # sum of the estimated errors at which the panels are fine enough
MOST_NODES = {1: 1 << 14, 2: 1 << 18, 3: 1 << 19}
_SPLIT = {1: 4, 2: 2, 3: 2}
_LARGEST_RATIO = 1e300
_ROUNDS = 60
_MOVED = 1e-6  # relative change of the slope past which kinks are no longer where they were cut
_BEYOND_NODES = 0.2  # share of its range on the nodes by which a function may pass it on the rest of a panel
_ROUNDING = 1e-11
_MOST_BREAKS = {1: 2048, 2: 24, 3: 6}
SHARED_SPLIT = {1: 1, 2: 2, 3: 1}  # how much finer the nodes are that many clients share, where they are not cut
SHARED_TOLERANCE = {1: 1e-8, 2: 1e-6, 3: 1e-4}
MOST_SHARED_NODES = {1: 1 << 12, 2: 1 << 16, 3: 1 << 18}
MONTE_CARLO_NODES = 1 << 16
_SHARED_ROUNDS = 12
_WEIGHT_OF_KINKS = 1e-3  # of the error at kinks, beside that of a mass
_UNSOLVED = 1e-10  # by which an output distribution may miss a mass of one
_LARGEST_LOG = 690.0
_SMALLEST = 1e-300
_MOST_ROUGH_NODES = 1 << 16  # of a list; beyond, panels that are rough at a kink stay as they are
_ROUGH_ROUNDS = 5  # of splitting panels that are rough where a kink is
_ROUGH = 0.1  # the size of a logarithm's last Legendre coefficients on a panel from which on they do not describe it


@dataclass(frozen=True, eq=False)
class Solution:
    """The output on some nodes (m,): their reference masses, normalised p/h, the mass of p, slope and lift."""

    masses: Floats
    ratio: Floats
    mass: float
    slope: float
    lift: float


@dataclass(frozen=True, eq=False)
class CutPanels:
    """Nodes (m,) of some panels, cut or uncut, with p/h before normalisation, the panel of each node, and the error of each panel."""

    panels: Panels
    masses: Floats
    ratio: Floats
    owner: NDArray[np.intp]
    errors: Floats

    def without_panels(self, panel_mask: NDArray[np.bool_]) -> CutPanels:
        """The panels outside the mask, with their nodes."""
        node_mask = ~panel_mask[self.owner]
        panel_numbers = np.cumsum(~panel_mask) - 1
        return CutPanels(
            self.panels[~panel_mask],
            self.masses[node_mask],
            self.ratio[node_mask],
            panel_numbers[self.owner[node_mask]],
            self.errors[~panel_mask],
        )

    def concat(self, other: CutPanels) -> CutPanels:
        """These and then the others."""
        return CutPanels(
            self.panels.concat(other.panels),
            np.concatenate([self.masses, other.masses]),
            np.concatenate([self.ratio, other.ratio]),
            np.concatenate([self.owner, other.owner + len(self.panels)]),
            np.concatenate([self.errors, other.errors]),
        )


@dataclass(frozen=True, eq=False)
class RefinedSolution:
    """A solution on nodes that are fine enough, or as many as allowed, and the sum of its estimated errors.

    The client's density is exp(log_scale) times `solution.mass` times the normalised one.
    """

    solution: Solution
    log_scale: float
    error: float


@dataclass(frozen=True, eq=False)
class OneClientSolver:
    """The output law of one client in up to three dimensions."""

    problem: OutputProblem

    def output_law(self, p: LogDensity) -> OutputLaw:
        """The output law of p."""
        refined_solution = self.solve_on_refined_nodes(p)
        solution = refined_solution.solution
        log_mass = np.array([refined_solution.log_scale + math.log(solution.mass)])
        with np.errstate(divide="ignore"):
            log_ratio = np.log(solution.ratio[solution.masses > 0.0])
        summary = NodeSummary(
            log_mass, log_mass + log_ratio.min(), log_mass + log_ratio.max(), BAND_SLACK + refined_solution.error
        )
        self.problem.warn_of_or_refuse_outside_clients([p], summary)
        client = (solution.masses * solution.ratio)[None, :]
        if math.isinf(solution.slope):
            client = without_faint_masses(client, solution.masses)
        error = refined_solution.error + abs(1.0 - float(client.sum()))  # ratios past the largest lose mass
        law = OutputLaw(
            self.problem.family, self.problem.constants, self.problem.mixing, (p,), False, solution.masses, client, log_mass,
            np.array([solution.slope]), np.array([solution.lift]), np.array([error]),
        )  # fmt: skip
        return self.problem.correct_errors_by_stated_masses(law)

    def solve_on_refined_nodes(self, p: LogDensity) -> RefinedSolution:
        """The solution on nodes that resolve p and the kinks of q."""
        dim, tolerance = self.problem.family.dim, TOLERANCE[self.problem.family.dim]
        nodes = nodes_for_client(self.problem.family, p)
        log_ratio = log_ratios_at_nodes([p], nodes)[0]
        shift = float(largest_log_ratios(log_ratio[None])[0])
        ratio = np.exp(log_ratio - shift)

        def density_ratio_at_points(x: Floats, log_reference: Floats) -> Floats:
            return density_ratio(p.log_density(x), log_reference + shift)

        def towards_ends(panel_nodes: Nodes, density: Floats) -> Floats:
            log_mass = shift + math.log(solution.mass)
            with np.errstate(divide="ignore"):
                log_density = np.log(density) + log_mass
            log_values = _log_densities_towards_ends(self.problem.family, p, panel_nodes, log_density)
            return np.exp(np.minimum(log_values - log_mass, _LARGEST_LOG))

        def cut_panels_at_kinks(panel_nodes: Nodes, ratio: Floats | None = None) -> CutPanels:
            if ratio is None:
                ratio = density_ratio_at_points(
                    panel_nodes.x.reshape(-1, dim), panel_nodes.log_reference.ravel()
                ).reshape(panel_nodes.weights.shape)
            return self._cut_panels_along_kinks(panel_nodes, ratio, solution, density_ratio_at_points, towards_ends)

        solution = self._solve_on_nodes(nodes.masses.ravel(), ratio.ravel())
        is_kinked, lines = self._kinked_panels_and_cut_lines(nodes, ratio, solution, density_ratio_at_points)
        solution = self._solve_on_nodes(*_node_masses_and_ratios_after_cuts(nodes, ratio, is_kinked, lines))
        cut_slope, pieces = solution.slope, cut_panels_at_kinks(nodes, ratio)  # now the cuts are where the kinks are
        solution = self._solve_on_nodes(pieces.masses, pieces.ratio)
        for _ in range(_ROUNDS):
            coarse = fewest_panels_to_refine(pieces.errors, 0.5 * tolerance) & pieces.panels.wide_enough_to_split
            if pieces.errors.sum() > tolerance and pieces.masses.size < MOST_NODES[dim] and coarse.any():
                fresh_nodes = self.problem.family.nodes_of_panels(
                    pieces.panels[coarse].split_every_panel(_SPLIT[dim]), ORDER[dim]
                )
                pieces = pieces.without_panels(coarse).concat(cut_panels_at_kinks(fresh_nodes))
            elif abs(solution.slope - cut_slope) > _MOVED * cut_slope and math.isfinite(solution.slope):
                cut_slope = solution.slope
                pieces = cut_panels_at_kinks(self.problem.family.nodes_of_panels(pieces.panels, ORDER[dim]))
            else:
                break
            solution = self._solve_on_nodes(pieces.masses, pieces.ratio)
        return RefinedSolution(solution, shift, float(pieces.errors.sum()))

    def _cut_panels_along_kinks(
        self,
        nodes: Nodes,
        ratio: Floats,
        solution: Solution,
        density_ratio_at_points: RatioAt,
        towards_ends: TowardsEnds,
    ) -> CutPanels:
        """The nodes of some panels, cut along the kinks of the solution that cross them, with every panel's error."""
        order = ORDER[self.problem.family.dim]
        is_kinked, lines = self._kinked_panels_and_cut_lines(nodes, ratio, solution, density_ratio_at_points)
        p, q = self._client_and_output_ratios(ratio, solution)
        errors = nodes.panels.integral_errors(p * nodes.element, order)
        at_ends = towards_ends(nodes, p * nodes.element)
        errors += _errors_from_jumps_at_ends(nodes, p * nodes.element, at_ends)
        if self.problem.family.dim == 1 and math.isinf(solution.slope):
            errors += self._errors_from_jumps_of_output(nodes, p, at_ends, solution)
        errors[~is_kinked] += nodes.panels[~is_kinked].integral_errors(
            (_relative_entropy_terms(p, q) * nodes.element)[~is_kinked], order
        )
        owner = np.repeat(np.flatnonzero(~is_kinked), ratio.shape[1])
        if lines is not None:
            p, q = self._client_and_output_ratios(lines.ratio, solution)
            errors[is_kinked] += (
                lines.integral_errors(q)
                + lines.integral_errors(np.minimum(p, q))
                + lines.integral_errors(_relative_entropy_terms(p, q))
            )
            owner = np.concatenate([owner, np.repeat(np.flatnonzero(is_kinked)[lines.panel_of_segment], order)])
        return CutPanels(
            nodes.panels, *_node_masses_and_ratios_after_cuts(nodes, ratio, is_kinked, lines), owner, errors
        )

    def _kinked_panels_and_cut_lines(
        self, nodes: Nodes, ratio: Floats, solution: Solution, density_ratio_at_points: RatioAt
    ) -> tuple[NDArray[np.bool_], CutLines | None]:
        """Which panels a kink of the solution crosses, and the lines they are cut into."""
        levels = self._ratio_levels_of_kinks(solution)
        is_kinked = _panels_crossing_levels(ratio, levels)
        if not is_kinked.any():
            return is_kinked, None
        return is_kinked, cut_panels_at_ratio_levels(
            self.problem.family, nodes.panels[is_kinked], ratio[is_kinked], levels, density_ratio_at_points
        )

    def _errors_from_jumps_of_output(self, nodes: Nodes, p: Floats, towards_ends: Floats, solution: Solution) -> Floats:
        """The errors (n,) on intervals inside which p/h begins to count beside an infinite slope: q jumps there."""
        end_ratios = np.divide(
            towards_ends,
            nodes.element[:, [0, -1]],
            out=np.zeros_like(towards_ends),
            where=nodes.element[:, [0, -1]] > 0.0,
        )
        counts = ratio_counts_beside_infinite_slope(np.concatenate([p, end_ratios], axis=1))
        width = (nodes.panels.upper - nodes.panels.lower)[:, 0]
        jump = self.problem.constants.B - solution.lift * self.problem.constants.b
        errors = jump * width * nodes.element.max(axis=1)
        return np.where(counts.any(axis=1) & ~counts.all(axis=1), errors, 0.0)

    def _client_and_output_ratios(self, ratio: Floats, solution: Solution) -> tuple[Floats, Floats]:
        """Normalised p/h, and q/h, from p/h on the nodes."""
        p = _finite_normalised_ratio(ratio, solution.mass)
        return p, affine_clip(p, solution.slope, solution.lift, self.problem.constants)

    def _solve_on_nodes(self, masses: Floats, ratio: Floats) -> Solution:
        client = masses * ratio
        mass = float(client.sum())
        refuse_masses_lost_in_rounding(mass)
        client /= mass
        if self.problem.mixing is not None:
            return Solution(
                masses, _finite_normalised_ratio(ratio, mass), mass, self.problem.mixing.slope, self.problem.mixing.lift
            )
        box = self.problem.box_on_nodes(masses)
        slope, lift = box.slope_and_lift(client)
        if math.isinf(slope):
            slope, lift = box.slope_and_lift(without_faint_masses(client, masses))
        return Solution(masses, _finite_normalised_ratio(ratio, mass), mass, slope, lift)

    def _ratio_levels_of_kinks(self, solution: Solution) -> list[float]:
        """The levels at which p/h, before normalisation, meets a bound of the clip, and at which p meets q."""
        levels = ratio_levels_of_kinks(self.problem.constants, np.array([solution.slope]), np.array([solution.lift]))[
            :, 0
        ]
        return [level * solution.mass for level in levels if 0.0 < level < math.inf]


def _finite_normalised_ratio(ratio: Floats, mass: float) -> Floats:
    """ratio/mass, but finite; a ratio that large is clipped anyway."""
    with np.errstate(over="ignore"):
        return np.minimum(ratio / mass, _LARGEST_RATIO)


def _node_masses_and_ratios_after_cuts(
    nodes: Nodes, ratio: Floats, kinked: NDArray[np.bool_], lines: CutLines | None
) -> tuple[Floats, Floats]:
    """Reference masses and p/h (m,) on the nodes of the panels that stay whole, then on the lines of the others."""
    masses, ratios = nodes.masses[~kinked].ravel(), ratio[~kinked].ravel()
    if lines is None:
        return masses, ratios
    return np.concatenate([masses, lines.masses.ravel()]), np.concatenate([ratios, lines.ratio.ravel()])


def nodes_for_client(family: ContinuousFamily, p: LogDensity) -> Nodes:
    """The family's nodes, on panels cut along the lines where p is known not to be smooth, and refined where p is narrow."""
    panels = family.panels
    for axis, breaks in enumerate(_known_breaks_by_axis(family, p) or ()):
        panels = panels.cut_at_points(axis, np.unique(breaks))
    panels, _ = family.refine_panels(panels, [p], MOST_NODES[family.dim] // 2)
    is_unchanged = len(panels) == len(family.panels)
    return family.nodes if is_unchanged else family.nodes_of_panels(panels, ORDER[family.dim])


def _known_breaks_by_axis(family: ContinuousFamily, p: LogDensity) -> list[Floats] | None:
    """For each of the chart's axes, the coordinates at which p has a cusp or a jump, if they are known and few."""
    chart = family.chart
    breaks: list[Floats] | None = None
    match p, chart:
        case Mixture(kernel=kernel), Cartesian() if kernel == LAPLACE:
            breaks = [axis.point_to_chart_coordinate(p.means[:, i]) for i, axis in enumerate(chart.maps)]
        case Tabulated(), Cartesian():
            breaks = [axis.point_to_chart_coordinate(p.axes[i]) for i, axis in enumerate(chart.maps)]
        case HistogramLaw(), _ if p.partition.family == family:
            breaks = list(np.unique(np.vstack([p.partition.panels.lower, p.partition.panels.upper]), axis=0).T)
        case OutputLaw(), _:
            return _known_breaks_by_axis(family, p.clients[0])
        case _:
            return None
    return breaks if all(len(np.unique(axis_breaks)) <= _MOST_BREAKS[family.dim] for axis_breaks in breaks) else None


def _relative_entropy_terms(p: Floats, q: Floats) -> Floats:
    """p log(p/q) - p + q: the least smooth of the divergences' integrands where p comes near 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0.0, p * np.log(p / q), 0.0) - p + q


def _panels_crossing_levels(ratio: Floats, levels: list[float]) -> NDArray[np.bool_]:
    """The panels (n,) on which the ratio, known on their nodes (n, m), passes a level; nodes stop short of the edges."""
    low, high = ratio.min(axis=1), ratio.max(axis=1)
    margin = _BEYOND_NODES * (high - low)
    low, high = low - margin, high + margin
    high[high - low <= _ROUNDING * high] = -np.inf  # a constant that rounding makes pass a level has no kink
    is_crossed = np.zeros(len(ratio), dtype=bool)
    for level in levels:
        is_crossed |= (low < level) & (level < high)
    return is_crossed


@dataclass(frozen=True, eq=False)
class ManyClientsSolver:
    """Output laws of many clients in up to three dimensions, on nodes that they share."""

    problem: OutputProblem

    def output_law(self, clients: Sequence[LogDensity]) -> OutputLaw:
        """The output laws of all of them."""
        nodes, log_ratio, errors = self._resolving_nodes_log_ratios_and_errors(clients)
        slack = BAND_SLACK + errors
        law = self.problem.solve_output_law_on_nodes(
            clients, True, nodes.masses.ravel(), log_ratio.reshape(len(clients), -1), slack
        )
        if self.problem.family.dim == 1:
            for _ in range(_ROUGH_ROUNDS):
                rough = self._rough_panels_with_kinks(law, nodes) & nodes.panels.wide_enough_to_split
                if not rough.any() or nodes.weights.size > _MOST_ROUGH_NODES:
                    break
                nodes, log_ratio, *_ = self._split_panels(clients, nodes, log_ratio, rough, _SPLIT[1])
                law = self.problem.solve_output_law_on_nodes(
                    clients, True, nodes.masses.ravel(), log_ratio.reshape(len(clients), -1), slack=None
                )
            return self.problem.correct_errors_by_stated_masses(self._solve_on_nodes_cut_at_kinks(law, nodes, errors))
        for rows in row_slices_within_memory(*law.client_masses.shape):
            density = law.output_masses_of_clients(rows).reshape(-1, *nodes.weights.shape) / nodes.weights
            errors[rows] += nodes.panels.integral_errors(density, ORDER[self.problem.family.dim]).sum(axis=1)
        return self.problem.correct_errors_by_stated_masses(replace(law, errors=errors))

    def _resolving_nodes_log_ratios_and_errors(self, clients: Sequence[LogDensity]) -> tuple[Nodes, Floats, Floats]:
        """Nodes on which every client is resolved, log p/h there (n, panels, nodes), and the remaining errors (n,)."""
        dim = self.problem.family.dim
        nodes = self._nodes_refined_at_narrow_places(clients)
        log_ratio = log_ratios_at_nodes(clients, nodes)
        towards_ends = self._log_densities_towards_ends(clients, nodes, log_ratio)
        for _ in range(_SHARED_ROUNDS):
            errors, kink_errors = self._client_mass_and_kink_errors(nodes, log_ratio, towards_ends)
            resolution = errors + _WEIGHT_OF_KINKS * kink_errors
            coarse = resolution.max(axis=0) > SHARED_TOLERANCE[dim] / len(nodes.panels)
            coarse &= nodes.panels.wide_enough_to_split
            if not coarse.any() or nodes.weights.size > MOST_SHARED_NODES[dim]:
                break
            nodes, log_ratio, parts, part_ratios = self._split_panels(clients, nodes, log_ratio, coarse, 2)
            if towards_ends is not None:
                of_parts = self._log_densities_towards_ends(clients, parts, part_ratios)
                towards_ends = np.concatenate([towards_ends[:, ~coarse], of_parts], axis=1)
        return nodes, log_ratio, np.asarray(errors.sum(axis=1))

    def _log_densities_towards_ends(
        self, clients: Sequence[LogDensity], nodes: Nodes, log_ratio: Floats
    ) -> Floats | None:
        """log of each client's density towards the ends of each panel (n, panels, 2 dim); None for smooth clients."""
        mixtures = mixtures_of_one_kernel_or_none(clients)
        if mixtures is not None and mixtures[0].kernel == GAUSSIAN:
            return None
        log_density = _log_densities_in_coordinates(nodes, log_ratio)
        return np.stack(
            [
                _log_densities_towards_ends(self.problem.family, p, nodes, at_nodes)
                for p, at_nodes in zip(clients, log_density, strict=True)
            ]
        )

    def _split_panels(
        self, clients: Sequence[LogDensity], nodes: Nodes, log_ratio: Floats, panels: NDArray[np.bool_], ways: int
    ) -> tuple[Nodes, Floats, Nodes, Floats]:
        """The nodes, and log p/h there, after some panels were cut into `ways` parts along each axis; and those of the parts alone."""
        split = nodes.panels[panels].split_every_panel(ways)
        fresh_nodes = self.problem.family.nodes_of_panels(split, ORDER[self.problem.family.dim])
        fresh_ratios = log_ratios_at_nodes(clients, fresh_nodes)
        all_ratios = np.concatenate([log_ratio[:, ~panels], fresh_ratios], axis=1)
        return nodes[~panels].concat(fresh_nodes), all_ratios, fresh_nodes, fresh_ratios

    def _rough_panels_with_kinks(self, law: OutputLaw, nodes: Nodes) -> NDArray[np.bool_]:
        """The panels of an interval on which some client's log p/h is far from a polynomial and passes a level of its kinks."""
        ratio = _client_ratios_on_panels(law, nodes)
        levels = ratio_levels_of_kinks(self.problem.constants, law.slope, law.lift)
        is_rough = _roughness_of_panels(np.log(np.clip(ratio, _SMALLEST, 1.0 / _SMALLEST))) >= _ROUGH
        low, high = ratio.min(axis=2), ratio.max(axis=2)
        is_crossed = ((low < levels[:, :, None]) & (levels[:, :, None] < high)).any(axis=0)
        return np.asarray((is_rough & is_crossed).any(axis=0))

    def _client_mass_and_kink_errors(
        self, nodes: Nodes, log_ratio: Floats, towards_ends: Floats | None
    ) -> tuple[Floats, Floats]:
        """(n, panels) estimated errors of the clients' masses, each client's mass being one, and of the integrals of sqrt(p h).

        The latter has a kink where p touches 0, as the integrands of divergences have. It is 0 for clients that are smooth and positive.
        """
        errors, kink_errors = np.empty(log_ratio.shape[:2]), np.zeros(log_ratio.shape[:2])
        order = ORDER[self.problem.family.dim]
        for rows in row_slices_within_memory(len(log_ratio), nodes.weights.size):
            log_density = _log_densities_in_coordinates(nodes, log_ratio[rows])
            shift = largest_log_ratios(log_density)[:, None, None]
            density = np.exp(log_density - shift)
            mass = np.sum(density * nodes.weights, axis=(1, 2))[:, None]
            errors[rows] = nodes.panels.integral_errors(density, order) / mass
            if towards_ends is not None:
                at_ends = np.exp(np.minimum(towards_ends[rows] - shift, _LARGEST_LOG))
                errors[rows] += _errors_from_jumps_at_ends(nodes, density, at_ends) / mass
                kinks = np.sqrt(density / mass[:, :, None] * nodes.element)
                kink_errors[rows] = nodes.panels.integral_errors(kinks, order)
        return errors, kink_errors

    def _solve_on_nodes_cut_at_kinks(self, law: OutputLaw, nodes: Nodes, errors: Floats) -> OutputLaw:
        """The output laws on an interval, computed again on each client's own nodes, which end at its kinks."""
        constants, ratio = self.problem.constants, _client_ratios_on_panels(law, nodes)
        cut_mass = np.ones(len(ratio))
        for _ in range(2):  # the second time the cuts are where the kinks are
            levels = ratio_levels_of_kinks(constants, law.slope, law.lift) * cut_mass
            pieces = cut_panels_at_levels_of_each_client(
                self.problem.family, nodes, ratio, levels[levels.max(axis=1) > 0.0]
            )
            client = pieces.masses * pieces.ratio
            cut_mass = client.sum(axis=1)
            client /= cut_mass[:, None]
            is_infinite = np.isinf(law.slope)
            client[is_infinite] = without_faint_masses(client[is_infinite], pieces.masses[is_infinite])
            law = replace(law, node_masses=pieces.masses, client_masses=client)
            if self.problem.mixing is None:
                law = _solve_slopes_on_own_nodes(law)
        output = np.divide(law.output_masses, pieces.masses, out=np.zeros_like(client), where=pieces.masses > 0.0)
        return replace(law, errors=errors + pieces.integral_errors(output), log_mass=law.log_mass + np.log(cut_mass))

    def _nodes_refined_at_narrow_places(self, clients: Sequence[LogDensity]) -> Nodes:
        """Nodes as fine as the narrowest client asks for, where it asks for them."""
        dim, panels = self.problem.family.dim, self._unrefined_shared_nodes.panels
        fine_panels, _ = self.problem.family.refine_panels(panels, clients, MOST_SHARED_NODES[dim] // 2)
        return (
            self._unrefined_shared_nodes
            if len(fine_panels) == len(panels)
            else self.problem.family.nodes_of_panels(fine_panels, ORDER[dim])
        )

    @cached_property
    def _unrefined_shared_nodes(self) -> Nodes:
        dim = self.problem.family.dim
        return self.problem.family.nodes_of_panels(
            self.problem.family.panels.split_every_panel(SHARED_SPLIT[dim]), ORDER[dim]
        )


def _log_densities_towards_ends(family: ContinuousFamily, p: LogDensity, nodes: Nodes, log_density: Floats) -> Floats:
    """(panels, 2 dim) logarithms of p's density, in coordinates, between the outermost nodes of panels and their ends."""
    if family.dim > 1:
        return log_densities_at_faces(family, p, nodes.panels)
    return log_densities_towards_interval_ends(family, p, nodes, log_density)


def _errors_from_jumps_at_ends(nodes: Nodes, density: Floats, towards_ends: Floats) -> Floats:
    """(..., panels) the errors that jumps of the density between the outermost nodes of panels and their ends would cause."""
    if nodes.panels.dim > 1:
        return nodes.panels.errors_from_jumps_at_faces(density, towards_ends)
    return errors_from_jumps_at_interval_ends(nodes, density, towards_ends)


def _log_densities_in_coordinates(nodes: Nodes, log_ratio: Floats) -> Floats:
    """The logarithms of clients' densities, in coordinates, from log p/h (n, panels, nodes)."""
    with np.errstate(divide="ignore"):
        return np.asarray(log_ratio + np.log(nodes.element))


def _client_ratios_on_panels(law: OutputLaw, nodes: Nodes) -> Floats:
    """p/h of each client (n, panels, nodes); 0 where the reference has no mass."""
    shape, has_reference = law.client_masses.shape, np.broadcast_to(law.node_masses > 0.0, law.client_masses.shape)
    with np.errstate(over="ignore"):  # far in a tail
        ratio = np.divide(law.client_masses, law.node_masses, out=np.zeros(shape), where=has_reference)
    return np.minimum(ratio, _LARGEST_RATIO).reshape(-1, *nodes.weights.shape)


def _roughness_of_panels(logarithms: Floats) -> Floats:
    """The size of the last Legendre coefficients of log p/h on panels (..., order)."""
    return np.asarray(np.abs(logarithms @ matrix_to_legendre_coefficients(logarithms.shape[-1])[:, -2:]).max(axis=-1))


def _solve_slopes_on_own_nodes(law: OutputLaw) -> OutputLaw:
    """The law with slopes and lifts for each client's own nodes (n, m), from nearly right ones; all outputs then have a mass of one."""
    masses, client = law.node_masses, law.client_masses
    lower, upper = law.constants.b * masses, law.constants.B * masses
    finite = np.isfinite(law.slope)
    slope, lift = improve_slopes_by_newton(client, np.where(finite, law.slope, 1.0), lower, upper), law.lift.copy()
    slope[~finite] = np.inf
    law = replace(law, slope=slope)
    rows = np.flatnonzero(np.abs(law.output_masses.sum(axis=1) - 1.0) > _UNSOLVED)
    if rows.size:  # many kinks need a better start, and the nodes of small supports a new lift
        slope[rows], lift[rows] = solve_slopes_and_lifts(client[rows], lower[rows], upper[rows])
    return replace(law, slope=slope, lift=lift)


@dataclass(frozen=True, eq=False)
class CutClients:
    """Every client on nodes of its own (n, m), `order` to a piece: reference masses and p/h."""

    masses: Floats
    ratio: Floats
    order: int

    def integral_errors(self, values: Floats) -> Floats:
        """(n,) estimated errors of the integrals of values (n, m) times h."""
        pieces = (self.masses * values).reshape(-1, self.order)
        errors = integral_errors_on_unit_cube(pieces / gauss_rule(self.order)[1], self.order, 1)
        return np.asarray(errors.reshape(len(values), -1).sum(axis=1))


def cut_panels_at_levels_of_each_client(
    family: ContinuousFamily, nodes: Nodes, ratio: Floats, levels: Floats
) -> CutClients:
    """Clients with p/h = ratio (n, panels, order) on the nodes of an interval's panels, cut at their own levels (l, n).

    A panel on which log p/h is far from a polynomial, as where p jumps or is 0, stays whole: p is not known between its nodes.
    """
    clients, panels, order = ratio.shape
    gauss_nodes, weights = gauss_rule(order)
    lines = ratio.reshape(-1, order)
    logarithms = np.log(np.clip(lines, _SMALLEST, 1.0 / _SMALLEST))
    is_smooth = (_roughness_of_panels(logarithms) < _ROUGH)[:, None]
    line, start, stop = segments_between_levels(np.where(is_smooth, lines, 0.0), np.repeat(levels, panels, axis=1))
    owner, panel = line // panels, line % panels
    inner = start[:, None] + (stop - start)[:, None] * gauss_nodes
    values = lines[line]
    cut_rows = np.flatnonzero(stop - start < 1.0)
    values[cut_rows] = _interpolate_ratio(logarithms[line[cut_rows]], inner[cut_rows])
    low, width = nodes.panels.lower[panel, 0], (nodes.panels.upper - nodes.panels.lower)[panel, 0]
    element = nodes.element[panel]
    t = (low[cut_rows, None] + width[cut_rows, None] * inner[cut_rows])[..., None]
    log_reference = family.log_reference(family.chart.points_at_coordinates(t).reshape(-1, 1)).reshape(
        len(cut_rows), order
    )
    with np.errstate(invalid="ignore"):
        element[cut_rows] = np.nan_to_num(np.exp(log_reference) * family.chart.jacobian(t), nan=0.0)
    masses = ((stop - start) * width)[:, None] * weights * element
    slot = np.arange(len(line)) - np.searchsorted(owner, owner)  # lines are in the clients' order
    shape = (clients, int(slot.max()) + 1, order)
    all_masses, all_ratios = np.zeros(shape), np.zeros(shape)
    all_masses[owner, slot], all_ratios[owner, slot] = masses, values
    return CutClients(all_masses.reshape(clients, -1), all_ratios.reshape(clients, -1), order)


def _interpolate_ratio(logarithms: Floats, inner: Floats) -> Floats:
    """p/h at places inner (s, m) of panels, interpolated from its logarithms (s, order) on their nodes."""
    low, high = logarithms.min(axis=1), logarithms.max(axis=1)
    margin = _BEYOND_NODES * (high - low)
    log_ratio = evaluate_legendre_series(logarithms @ matrix_to_legendre_coefficients(logarithms.shape[1]), inner)
    return np.exp(np.clip(log_ratio, (low - margin)[:, None], np.minimum(high + margin, _LARGEST_LOG)[:, None]))


@dataclass(frozen=True, eq=False)
class PublicPointsSolver:
    """Output laws in any dimension, on points of the reference."""

    problem: OutputProblem

    def output_law(self, clients: Sequence[LogDensity], many: bool) -> OutputLaw:
        """The output law of a single client, or those of many."""
        x, log_reference = self._public_points_and_log_reference
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        law = self.problem.solve_output_law_on_nodes(
            clients,
            many,
            np.full(len(x), 1.0 / len(x)),
            log_ratio,
            bound_on_sampled_mass_error(self.problem.family.bounds, len(x)),
        )
        relative = law.output_masses_of_clients(slice(None)) * len(x)
        return self.problem.correct_errors_by_stated_masses(
            replace(law, errors=relative.std(axis=1) / math.sqrt(len(x)))
        )

    @cached_property
    def _public_points_and_log_reference(self) -> tuple[Floats, Floats]:
        x = self.problem.family.draw(MONTE_CARLO_NODES, np.random.default_rng(0))
        return x, self.problem.family.log_reference(x)


@dataclass(frozen=True, eq=False)
class OutputSolver:
    """Finds the output laws of one sampler."""

    problem: OutputProblem

    def output_law(self, clients: Sequence[LogDensity], shape: tuple[int, ...]) -> OutputLaw:
        """The output law of a single client, where the shape is (), or those of a list, also where it has one entry."""
        if self.problem.family.dim > LARGEST_CHARTED:
            return self._solver_on_public_points.output_law(clients, bool(shape))
        return (
            self._solver_on_shared_nodes.output_law(clients)
            if shape
            else OneClientSolver(self.problem).output_law(clients[0])
        )

    def clipping_scales(self, clients: Sequence[LogDensity], shape: tuple[int, ...]) -> float | Floats:
        """The paper's r_P of each client."""
        return self.output_law(clients, shape).scale

    @cached_property
    def _solver_on_shared_nodes(self) -> ManyClientsSolver:
        return ManyClientsSolver(self.problem)

    @cached_property
    def _solver_on_public_points(self) -> PublicPointsSolver:
        return PublicPointsSolver(self.problem)
