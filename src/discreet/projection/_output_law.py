"""`OutputLaw`, the output distribution on a continuous space, and `OutputProblem`, the finite problem that determines it.

The output density is q = clip(slope p + lift b h, b h, B h). On nodes with reference masses mu_i and client masses p_i, the scale r = 1/slope
is the finite weighted problem of `discreet.projection`, solved exactly. Only the nodes are approximate: they see a bare function only at
their own places. `OneClientSolver`, `ManyClientsSolver` and `PublicPointsSolver` choose them (`discreet.projection._output_solver`).

An `OutputLaw` is for inspection. Releases are drawn from integer weights (`discreet.mechanisms._atoms`), whose guarantee does not
depend on this module.

**Quadrature nodes end where the output density has a kink.** q = clip(slope p/h + lift b, b, B) h is as smooth as p and h except where p/h
passes a level. Panels that a kink crosses are cut into lines, and every line is cut at its roots. Along one axis of a panel the roots are
those of a polynomial through known values; between them Gauss-Legendre nodes converge as fast as p and h allow. The integrand over the other
axes is then smooth except at the ends of the kink, and its own Legendre coefficients show how well it is resolved. The roots need not be
exact: a cut that misses a kink by d costs O(d^2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import divergences
from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet._base.quadrature import Panels, gauss_rule, integral_errors_on_unit_cube, tensor_rule
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, NotPrivateWarning, check_count, check_kind, warn_caller
from discreet.families import (
    BAND_SLACK,
    ContinuousFamily,
    Features,
    LogDensity,
    NodeSummary,
    as_points,
    find_continuous_outsiders,
    largest_log_ratios,
    narrow_features_of_clients,
    shape_of_point_values,
    update_mass_errors_and_warn,
    warn_of_or_refuse_outsiders,
)
from discreet.privacy.tradeoff import Constants
from discreet.projection._box import NEGLIGIBLE, Affine, Box, row_slices_within_memory

Floats = NDArray[np.float64]

Evaluate = Callable[[Floats, Floats], Floats]
_SMALLEST = 1e-300
_FAINT = 1e-250  # p/h that counts as 0 beside an infinite slope, at nodes of any mass and at every other point alike
_STEPS = 5  # of regula falsi, each on all roots at once


@dataclass(frozen=True, eq=False)
class OutputLaw:
    """The output distribution of a client, or of many clients; then every result has a leading client axis.

    Made by `sampler.output(p)`. Use `.pdf(x)`, `.scale`, `.divergence(name)` and `.mass_error`.

    Attributes:
        family: the family of client distributions.
        constants: those of the sampler.
        mixing: None for samplers that project.
        clients: the densities it was made from.
        many: whether they came as a list.
        node_masses: reference masses of the nodes.
        client_masses: the mass of each client at each node.
        log_mass: logarithm of each client's mass before normalisation.
        slope: 1/r_P of each client, or gamma.
        lift: the added term, in multiples of the floor.
        errors: estimated errors of the masses.
        mass_known: which clients know their own mass.
    """

    family: ContinuousFamily
    constants: Constants
    mixing: Affine | None
    clients: tuple[LogDensity, ...]
    many: bool
    node_masses: Floats  # (m,) of the reference, or (n, m) where every client has nodes of its own
    client_masses: Floats  # (n, m)
    log_mass: Floats  # (n,)
    slope: Floats
    lift: Floats
    errors: Floats  # (n,)
    mass_known: NDArray[np.bool_] | None = (
        None  # (n,); the error of such a client includes the mass that the nodes missed
    )

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.family.dim

    @property
    def scale(self) -> float | Floats:
        """The paper's r_P: q = clip(p/r_P, b h, B h). It is 0 if p sits on too small a set for any scale."""
        if self.mixing is not None:
            raise DiscreetError("the linear mechanism has no scale: its law is gamma p + (1 - gamma) h")
        with np.errstate(divide="ignore"):  # inf where the reference has none of p's mass that a float can hold
            return self._float_if_single(1.0 / self.slope)

    @property
    def mass(self) -> float | Floats:
        """The integral of the density before normalisation, as the nodes see it; the output is that of p divided by it."""
        with np.errstate(over="ignore"):  # inf where it is more than a float can hold; the law does not depend on it
            return self._float_if_single(np.exp(self.log_mass))

    @property
    def mass_error(self) -> float | Floats:
        """An ESTIMATE of the error of the masses of p and q over the space (one standard error above three dimensions).

        A `Mixture`, a `Tabulated`, a fit and a scipy distribution know their mass (see `mass_checked`); the estimate is then at least the
        mass that the nodes missed. Of a bare function only the values at the nodes are known. A feature between them escapes the estimate,
        and affects `scale` and `divergence` too. Privacy does not depend on it.
        """
        return self._float_if_single(self.errors)

    @property
    def mass_checked(self) -> bool:
        """Whether `mass` was compared with the mass that the clients know; if not, a spike between the nodes may be missed."""
        return self.mass_known is not None and bool(self.mass_known.all())

    def pdf(self, x: ArrayLike) -> Floats:
        """The density q at points (n,) in one dimension or (n, dim)."""
        points = as_points(x, self.dim)
        log_reference = self.family.log_reference(points)
        values = np.stack(
            [self._output_density_over_reference(i, points, log_reference) for i in range(len(self.clients))]
        )
        values *= np.exp(log_reference)
        shape = shape_of_point_values(x, self.dim)
        return values.reshape((len(self.clients), *shape)) if self.many else values.reshape(shape)

    def log_density(self, x: Floats) -> Floats:
        """log q of a single client's output, so that the output can be a client in its turn."""
        self._refuse_several_clients()
        points = as_points(x, self.dim)
        log_reference = self.family.log_reference(points)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._output_density_over_reference(0, points, log_reference)) + log_reference)

    def divergence(self, name: str | FDivergence) -> float | Floats:
        """D_f(P||Q) on the same nodes.

        They lie on both sides of p = q, where f may have a kink. Near other kinks, such as that of the hockey-stick divergence with threshold
        1.5, the result can be .2 % off, and `mass_error` does not tell.
        """
        f = divergences.divergence(name)
        values = np.empty(len(self.client_masses))
        for rows in row_slices_within_memory(*self.client_masses.shape):
            values[rows] = f(self.client_masses[rows], self.output_masses_of_clients(rows))
        return self._float_if_single(values)

    def sample(self, count: int, *, rng: np.random.Generator | None = None) -> Floats:
        """Points drawn from q by rejection from h: (count,) in one dimension, else (count, dim).

        It is for experiments, and warns so. A draw by rejection follows q divided by its true mass, and the box alone guarantees only 2
        epsilon for that. `release` is the private draw.
        """
        count = check_count("count", count)
        self._refuse_several_clients()
        rng = np.random.default_rng() if rng is None else rng
        check_kind("rng", rng, np.random.Generator, "pass numpy.random.default_rng(seed), or leave it out")
        warn_caller("output(p).sample(n) is for experiments and NOT private; release(p) is", NotPrivateWarning)
        batches: list[Floats] = []
        missing = count
        while missing:
            x = self.family.draw(max(64, math.ceil(1.2 * missing * self.constants.B)), rng)
            is_accepted = rng.random(len(x)) * self.constants.B < self._output_density_over_reference(
                0, x, self.family.log_reference(x)
            )
            batches.append(x[is_accepted][:missing])
            missing -= len(batches[-1])
        points = np.concatenate(batches)
        return points[:, 0] if self.dim == 1 else points

    def relative(self, x: Floats) -> Floats:
        """q/h at points (m, dim) for a single client: in [b, B]."""
        self._refuse_several_clients()
        points = as_points(x, self.dim)
        return self._output_density_over_reference(0, points, self.family.log_reference(points))

    def _output_density_over_reference(self, client: int, x: Floats, log_reference: Floats) -> Floats:
        ratio = density_ratio(self.clients[client].log_density(x), log_reference + self.log_mass[client])
        return affine_clip(ratio, float(self.slope[client]), float(self.lift[client]), self.constants)

    def output_masses_of_clients(self, rows: slice) -> Floats:
        """Masses of q on the nodes for some of the clients."""
        masses = self.node_masses if self.node_masses.ndim == 1 else self.node_masses[rows]
        lower, upper = self.constants.b * masses, self.constants.B * masses
        p, slope = self.client_masses[rows], self.slope[rows, None]
        with np.errstate(invalid="ignore", over="ignore"):
            value = (
                np.where(p > np.where(np.isinf(slope), NEGLIGIBLE, 0.0), p * slope, 0.0) + self.lift[rows, None] * lower
            )
        return np.clip(value, lower, upper)

    @property
    def output_masses(self) -> Floats:
        """(n, m) masses of q on the nodes, or (m,) for a single client."""
        masses = self.output_masses_of_clients(slice(None))
        return masses if self.many else masses[0]

    def is_certainly_in(self, family: ContinuousFamily) -> bool:
        """Whether its box lies in that family's band, so that the output is a member for every client."""
        if self.family != family:
            return False
        return family.bounds.lower <= self.constants.b and family.bounds.upper >= self.constants.B

    def narrow_places(self) -> Features:
        """The narrow places of the clients."""
        return narrow_features_of_clients(self.clients, self.dim)

    def __repr__(self) -> str:
        who = f"{len(self.clients)} clients" if self.many else "1 client"
        accuracy_text = (
            "checked against the mass that p knows" if self.mass_checked else "estimated: nodes can miss a spike"
        )
        return f"OutputLaw(<{who} of {self.family!r}>, mass_error={float(np.max(self.errors)):.1g} ({accuracy_text}))"

    def _refuse_several_clients(self) -> None:
        if self.many:
            raise DiscreetError(f"these are the output laws of {len(self.clients)} clients; ask for the output of one")

    def _float_if_single(self, values: Floats) -> float | Floats:
        return values if self.many else float(values[0])


def affine_clip(ratio: Floats, slope: float, lift: float, constants: Constants) -> Floats:
    """clip(slope p/h + lift b, b, B), with inf * 0 = 0 as in the projection."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(ratio > (_FAINT if slope == math.inf else 0.0), slope * ratio, 0.0) + lift * constants.b
    return np.clip(value, constants.b, constants.B)


def ratio_counts_beside_infinite_slope(ratio: Floats) -> NDArray[np.bool_]:
    """Whether p/h counts as positive beside an infinite slope."""
    return np.asarray(ratio > _FAINT)


def without_faint_masses(client: Floats, masses: Floats) -> Floats:
    """A client's masses on nodes of these reference masses, without those where p/h counts as 0 beside an infinite slope."""
    return np.where(client > _FAINT * masses, client, 0.0)


def density_ratio(log_density: Floats, log_reference: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.exp(np.minimum(log_density - log_reference, LARGEST_FLOAT_EXPONENT))
    return np.where(np.isneginf(log_density) | np.isneginf(log_reference), 0.0, ratio)


@dataclass(frozen=True, eq=False)
class OutputProblem:
    """A family, the constants of a box around its reference, the epsilon it is calibrated to, and how it mixes (None: it projects)."""

    family: ContinuousFamily
    constants: Constants
    epsilon: float
    mixing: Affine | None
    members: ContinuousFamily | None = None  # the clients' family, if the box is around another reference

    def box_on_nodes(self, masses: Floats) -> Box:
        """The box on nodes of these reference masses (m,)."""
        return Box.around(masses, masses.size, self.constants, self.epsilon)

    def warn_of_or_refuse_outside_clients(self, clients: Sequence[LogDensity], summary: NodeSummary) -> None:
        """Warn about clients outside the band; reject them if the mechanism is linear."""
        outsiders = find_continuous_outsiders(self.family, clients, summary, self.members)
        if outsiders is not None:
            client_family = self.family if self.members is None else self.members
            warn_of_or_refuse_outsiders(client_family, outsiders, refuse=self.mixing is not None)

    def solve_output_law_on_nodes(
        self,
        clients: Sequence[LogDensity],
        many: bool,
        masses: Floats,
        log_ratio: Floats,
        slack: float | Floats | None = BAND_SLACK,
    ) -> OutputLaw:
        """Solve for every client on the same nodes (m,), from its log p/h there (n, m).

        `slack`: the uncertainty of its mass; None if those outside the family have been told of.
        """
        largest = largest_log_ratios(log_ratio)
        smallest = log_ratio.min(axis=1, where=masses > 0, initial=np.inf)
        with np.errstate(divide="ignore"):
            log_client = log_ratio + np.log(masses)
        # each relative to its own largest value: p/h may be immense far in a tail
        shift = largest_log_ratios(log_client)
        client = np.exp(log_client - shift[:, None])
        mass = client.sum(axis=1)
        client /= mass[:, None]
        if slack is not None:
            summary = NodeSummary(shift + np.log(mass), smallest, largest, slack)
            self.warn_of_or_refuse_outside_clients(clients, summary)
        if self.mixing is not None:
            slope, lift = np.full(len(clients), self.mixing.slope), np.full(len(clients), self.mixing.lift)
        else:
            box = self.box_on_nodes(masses)
            with np.errstate(divide="ignore"):
                slope, lift = np.asarray(1.0 / box.scale(client)), np.zeros(len(clients))
            for row in np.flatnonzero(np.isinf(slope)):
                client[row] = without_faint_masses(client[row], masses)
                slope[row], lift[row] = box.slope_and_lift(client[row])
        return OutputLaw(
            self.family, self.constants, self.mixing, tuple(clients), many, masses, client, shift + np.log(mass),
            slope, lift, np.zeros(len(clients)),
        )  # fmt: skip

    def correct_errors_by_stated_masses(self, law: OutputLaw) -> OutputLaw:
        """The law with errors corrected for clients that know their mass."""
        errors, mass_known = update_mass_errors_and_warn(self.family, law.clients, law.log_mass, law.errors)
        return replace(law, errors=errors, mass_known=mass_known)


@dataclass(frozen=True, eq=False)
class CutLines:
    """Nodes on the segments of the lines of kinked panels: reference masses and p/h (s, order), and each segment's line (s,)."""

    masses: Floats
    ratio: Floats
    line: NDArray[np.intp]
    lines: int
    line_weights: Floats
    order: int
    dim: int

    @property
    def panel_of_segment(self) -> NDArray[np.intp]:
        """(s,) the panel each segment belongs to."""
        return self.line // len(self.line_weights)

    def integral_errors(self, values: Floats) -> Floats:
        """(panels,) estimated errors of the integrals of values (s, order) times h: along the segments, then across the lines."""
        segment_errors = integral_errors_on_unit_cube(self.masses * values / gauss_rule(self.order)[1], self.order, 1)
        errors = np.bincount(
            self.panel_of_segment, segment_errors, minlength=self.lines // len(self.line_weights)
        ).astype(np.float64)
        if self.dim > 1:
            line_integrals = np.bincount(self.line, (self.masses * values).sum(axis=1), minlength=self.lines)
            heights = line_integrals.reshape(-1, len(self.line_weights)) / self.line_weights
            errors += integral_errors_on_unit_cube(heights, self.order, self.dim - 1, fast=0.0)
        return errors


def cut_panels_at_ratio_levels(
    family: ContinuousFamily, panels: Panels, ratio: Floats, levels: list[float], evaluate: Evaluate
) -> CutLines:
    """Panels with p/h = ratio (n, order^dim) on their nodes, cut where p/h passes a level.

    `evaluate(x, log_reference)` gives p/h, in the same units, at new points.
    """
    dim = family.dim
    order = round(ratio.shape[1] ** (1.0 / dim))
    cube = ratio.reshape((len(panels),) + (order,) * dim)
    variation = [np.abs(np.diff(cube, axis=axis + 1)).reshape(len(panels), -1).sum(axis=1) for axis in range(dim)]
    cut_axis = np.argmax(variation, axis=0)  # the axis along which p/h changes most is cut
    outer_nodes, outer_weights = tensor_rule(order, dim - 1) if dim > 1 else (np.empty((1, 0)), np.ones(1))
    gauss_nodes, gauss_weights = gauss_rule(order)
    coordinates, weights, owner = [], [], []
    for axis in range(dim):
        group = np.flatnonzero(cut_axis == axis)
        if not len(group):
            continue
        values = np.moveaxis(cube[group], axis + 1, -1).reshape(-1, order)
        line, start, stop = segments_between_levels(values, np.asarray(levels)[:, None])
        inner = start[:, None] + (stop - start)[:, None] * gauss_nodes
        outer = np.broadcast_to(outer_nodes[line % len(outer_nodes)][:, None, :], (*inner.shape, dim - 1))
        unit = np.insert(outer, axis, inner, axis=2)
        panel = group[line // len(outer_nodes)]
        low, width = panels.lower[panel], (panels.upper - panels.lower)[panel]
        coordinates.append(low[:, None, :] + width[:, None, :] * unit)
        share = outer_weights[line % len(outer_nodes)] * (stop - start) * np.prod(width, axis=1)
        weights.append(share[:, None] * gauss_weights)
        owner.append(panel * len(outer_nodes) + line % len(outer_nodes))
    t = np.concatenate(coordinates).reshape(-1, dim)
    x = family.chart.points_at_coordinates(t)
    log_reference = family.log_reference(x)
    with np.errstate(invalid="ignore"):
        element = np.nan_to_num(np.exp(log_reference) * family.chart.jacobian(t), nan=0.0).reshape(-1, order)
    masses = np.concatenate(weights) * element
    ratios = np.where(element > 0.0, evaluate(x, log_reference).reshape(-1, order), 0.0)
    lines = len(panels) * len(outer_nodes)
    return CutLines(masses, ratios, np.concatenate(owner), lines, outer_weights, order, dim)


def ratio_levels_of_kinks(constants: Constants, slope: Floats, lift: Floats) -> Floats:
    """(4, n) values of p/h where q = clip(slope p/h + lift b, b, B) meets b, meets B, and where p meets q; 0 for none.

    With an infinite slope q jumps where p/h begins to count.
    """
    b, top = constants.b, constants.B
    with np.errstate(divide="ignore", invalid="ignore"):
        is_infinite = np.isinf(slope)
        from_below = np.where(is_infinite, _FAINT, b * (1.0 - lift) / slope)
        from_above = np.where(is_infinite, 0.0, (top - lift * b) / slope)
        crossing = np.where(slope < 1.0, lift * b / (1.0 - slope), 0.0)
    return np.stack([from_below, from_above, np.where(slope < 1.0, b, top), crossing])


def segments_between_levels(values: Floats, levels: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """(line, start, stop) of the pieces of every line (l, order) of ratios between the places where it passes a level.

    Levels (n, 1) are for all lines alike, levels (n, l) each line's own.
    """
    # the logarithm of p/h is closer to a polynomial than p/h itself: a quadratic, for a Gaussian
    root_line, root = _lines_and_positions_of_level_crossings(
        np.log(np.maximum(values, _SMALLEST)), np.log(np.maximum(levels, _SMALLEST))
    )
    line = np.concatenate([np.arange(len(values)), root_line])
    start = np.concatenate([np.zeros(len(values)), root])
    order = np.lexsort((start, line))
    line, start = line[order], start[order]
    is_last = np.append(line[1:] != line[:-1], True)
    stop = np.where(is_last, 1.0, np.append(start[1:], 1.0))
    long_enough = stop - start > 1e-13
    return line[long_enough], start[long_enough], stop[long_enough]


def _lines_and_positions_of_level_crossings(values: Floats, levels: Floats) -> tuple[NDArray[np.intp], Floats]:
    """(line, root in [0, 1]) where the polynomials through values (l, order) at the Gauss-Legendre places pass levels (n, l)."""
    order = values.shape[1]
    nodes = np.concatenate([[0.0], gauss_rule(order)[0], [1.0]])
    ends = values @ matrix_to_endpoint_values(order)
    node_values = np.concatenate([ends[:, :1], values, ends[:, 1:]], axis=1)
    above = node_values > levels[:, :, None]
    level_index, line, gap = np.nonzero(above[:, :, :-1] != above[:, :, 1:])
    level = np.broadcast_to(levels, (len(levels), len(values)))[level_index, line]
    coefficients = values[line] @ matrix_to_legendre_coefficients(order)
    low, high = nodes[gap], nodes[gap + 1]
    at_low, at_high = node_values[line, gap] - level, node_values[line, gap + 1] - level
    root, moved_low, moved_high = low, np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    for _ in range(_STEPS):  # regula falsi; an end that stays twice has its value halved (the "Illinois" rule)
        root = low + (high - low) * np.clip(at_low / (at_low - at_high), 0.001, 0.999)
        value = evaluate_legendre_series(coefficients, root) - level
        moves_low = (value > 0.0) == (at_low > 0.0)
        low, high = np.where(moves_low, root, low), np.where(moves_low, high, root)
        at_low = np.where(moves_low, value, np.where(moved_high, 0.5, 1.0) * at_low)
        at_high = np.where(moves_low, np.where(moved_low, 0.5, 1.0) * at_high, value)
        moved_low, moved_high = moves_low, ~moves_low
    return line, root


def evaluate_legendre_series(coefficients: Floats, positions: Floats) -> Floats:
    """Polynomials with Legendre coefficients (n, order) on [0, 1], at places (n, ...) of their own (Clenshaw's recurrence)."""
    x = 2.0 * positions - 1.0
    terms = coefficients.T.reshape(coefficients.shape[::-1] + (1,) * (positions.ndim - 1))
    last, before = np.zeros_like(x), np.zeros_like(x)
    for degree in range(len(terms) - 1, 0, -1):
        last, before = (
            (2 * degree + 1) / (degree + 1) * x * last - (degree + 1) / (degree + 2) * before + terms[degree],
            last,
        )
    return np.asarray(x * last - 0.5 * before + terms[0])


@cache
def matrix_to_legendre_coefficients(order: int) -> Floats:
    """(order, order): values at the Gauss-Legendre places to the Legendre coefficients of the polynomial through them."""
    nodes, weights = gauss_rule(order)
    basis = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, order - 1)
    return np.ascontiguousarray(weights[:, None] * basis * (2 * np.arange(order) + 1))


@cache
def matrix_to_endpoint_values(order: int) -> Floats:
    """(order, 2): the map from values at the Gauss-Legendre places to the polynomial's values at 0 and 1."""
    signs = (-1.0) ** np.arange(order)
    return np.ascontiguousarray(matrix_to_legendre_coefficients(order) @ np.stack([signs, np.ones(order)], axis=1))
