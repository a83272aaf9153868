"""The minimax risk of Gaussian and Laplace mixtures with bounded centres on a line, as a certified bracket (T7).

**T7 (mixtures are not their band).** The extreme members of the class are its single kernels. So by T6 (`discreet.design._solving`) its
minimax value is min_m sup_c F(P_c; m) over centres |c| <= radius, and the formula for the enclosing band is only an upper bound. No closed
form is known in general.

*From below.* A sampler on the line is one on the cells of a partition, where total variation can only be smaller (data processing), and a
class is no easier than some of its members. So the certified minimax over a few kernels on cells is a lower bound. For two kernels at -radius
and radius it is explicit. E_e^eps(Q||Q') = 0 for the outputs, and the hockey-stick divergence obeys E_E(P||P') <= TV(P, Q) + E TV(P', Q'). So
some client has at least E_E(P||P')/(1 + E); the floor (P + P')/(1 + E) attains it for these two.

*From above, total variation.* Any measure m on the line with 1/E <= |m| <= 1 is the floor of a sampler, and F(P; m) = max(|(P - E m)_+|, |(m
- P)_+|). Here m is a mixture of kernels, by a linear programme, with log m made linear between many nodes. So log p_c - log m is concave on
each piece: the kernel exceeds m on one interval of it, with ends in closed form. The integrals are differences of the kernel's distribution
function and of exponentials. F changes by at most TV(P_c, P_c') <= (largest density) |c - c'| between centres, which bounds it over all
centres by branch and bound. Sums of this many terms are within 1e-9 of exact, which is added.

*From above, smooth f.* A floor on cells i, with a public density g_i inside each, is a sampler on the line: draw a cell from the projection Q
of the client's masses P_i, then a point from g_i. Shift f so that f'(1) = 0, and let lo_i <= p_c/(Q_i g_i) <= hi_i on the cell. The cell's
part of D_f is then at most Q_i times the chord of f between lo_i and hi_i, at P_i/Q_i, because f is convex. With bounds that hold for all
centres of a short interval this bounds D_f for all of them, and branch and bound completes the argument. Here log g_i is linear on each cell
and log p_c concave, so that both bounds follow from the ends of the cell.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.design._floors import as_example_clients, band_of_floor
from discreet.design._linear_programmes import minimax_tv_floor_and_weights
from discreet.design._solving import best_floor_for_mean
from discreet.divergences import FDivergence, curve_of_divergence, hockey_stick_gamma_or_none, tv
from discreet.errors import DiscreetError, check_count
from discreet.families import GaussianMixtures, LaplaceMixtures, Simplex
from discreet.mechanisms import OptimalSampler
from discreet.privacy import check_epsilon

__all__ = ["Bracket", "minimax_bracket"]

Floats = NDArray[np.float64]

BRACKET_CELLS = 360
WIDTH = 1e-3  # relative
_ROUNDING = 1e-9
_NOTHING = 1e-6  # a width of this size counts as zero for every value
_STEEPEST = 1.0 - 2.0**-20  # log m changes less than the logarithm of a Laplace kernel
_NARROW = 1.5  # radius in scales up to which few kernels represent all
_FEW, _MANY = (9, 13), (17, 33)  # kernels that are served, and that a floor is mixed from
_NODES_IN_A_CELL = 4
_TINY = 1e-290
_MOST_CENTRES = 1 << 11
_CENTRAL = 0.9  # of the cells lie where kernels vary
_PARTS = 16  # finer cells in each, for smooth f
_BLOCKS, _MOST_BLOCKS = 64, 1 << 11  # intervals of centres to begin with, and at most
_SHARP = 1e-3  # relative, of the largest divergence over all centres
_REACH, _TAIL = 3.5, {"gaussian": 6.0, "laplace": 18.0}  # in scales beyond the outermost centre


@dataclass(frozen=True)
class Bracket:
    """lower <= minimax total variation <= upper.

    Attributes:
        lower: a lower bound, proved.
        upper: what the floor attains.
        floor: a floor whose logarithm is linear between nodes.
    """

    lower: float
    upper: float
    floor: "LogLinearDensity"

    def __repr__(self) -> str:
        return f"Bracket({self.lower:.6g}, {self.upper:.6g})"


def minimax_bracket(
    family: GaussianMixtures | LaplaceMixtures, *, epsilon: float, cells: int = BRACKET_CELLS
) -> Bracket:
    """The minimax total variation of mixtures on a line, from both sides, at most 1e-3 apart relative to the value.

    Args:
        family: `GaussianMixtures` or `LaplaceMixtures` of one dimension, on all of R or on an interval.
        epsilon: the budget of one release.
        cells: how many cells the line is cut into.

    Returns:
        Both sides, and the floor that attains the upper one.

    Raises:
        DiscreetError: for another family, or if more cells are needed.
    """
    epsilon = check_epsilon(epsilon)
    if epsilon > LARGEST_FLOAT_EXPONENT:
        raise DiscreetError(
            f"epsilon = {epsilon:g} is more than {LARGEST_FLOAT_EXPONENT:g}, past which e^epsilon may exceed every float; take a smaller one"
        )
    cells = check_count("cells", cells, least=20, most=4096)
    if not isinstance(family, (GaussianMixtures, LaplaceMixtures)) or family.dim != 1:
        raise DiscreetError(f"family = {family!r}; a bracket is for GaussianMixtures or LaplaceMixtures with dim=1")
    lower, upper, floor = minimax_bounds_and_floor(family, epsilon, cells)
    if not upper - lower <= max(WIDTH * min(upper, 1.0), _NOTHING):
        raise DiscreetError(
            f"the bracket is {lower:.6g} to {upper:.6g}, wider than {WIDTH:g} of it; take more cells than {cells}"
        )
    return Bracket(lower, upper, floor)


def minimax_bounds_and_floor(
    family: GaussianMixtures | LaplaceMixtures, epsilon: float, cells: int
) -> tuple[float, float, "LogLinearDensity"]:
    """Certified lower and upper bounds of the minimax total variation, at any distance, and the floor that attains the upper one."""
    line, ratio = KernelsOnCells(family, cells), math.exp(epsilon)
    served_count, mixed_count = _FEW if family.radius <= _NARROW * family.scale else _MANY
    clients = line.kernel_laws_on_cells(np.linspace(-family.radius, family.radius, served_count))
    _, weights = minimax_tv_floor_and_weights(clients, epsilon)
    is_counted = weights > 1e-6 * weights.max()
    mean = best_floor_for_mean(
        as_example_clients(clients[is_counted], weights[is_counted], clients.shape[1]), tv, epsilon, 0.0
    )
    grid = np.linspace(-family.radius, family.radius, mixed_count)
    basis = np.vstack([line.kernel_laws_on_cells(grid, scale) for scale in line.scales_of_floor_kernels])
    shares, _ = minimax_tv_floor_and_weights(clients, epsilon, basis)
    floor = line.mix_kernels(shares, grid)
    upper = (
        line.worst_kernel_cost_upper_bound(floor, ratio, WIDTH / 5.0) + _ROUNDING
        if 1.0 / ratio <= floor.total_mass <= 1.0
        else math.inf
    )
    return max(0.0, mean.bound - _ROUNDING), upper, floor


def worst_kernel_divergence_upper_bound(
    line: "KernelsOnCells", floor: Floats, epsilon: float, f: FDivergence, *, rival_bound: float = math.inf
) -> float:
    """An upper bound on D_f over all kernels, of a sampler whose floor has these masses on the cells of the line.

    `rival_bound`: that of another sampler; the result is inf as soon as this sampler is seen to be no better.
    """
    if not math.isfinite(f.at_zero) or hockey_stick_gamma_or_none(f) is not None:
        return math.inf
    fine = FineCells.from_floor(line, floor)
    sampler = OptimalSampler(band_of_floor(fine.masses, epsilon, Simplex(fine.masses.size)), epsilon=epsilon)
    shape, radius = ShiftedDivergence(f, curve_of_divergence(f).slope_at_one), line.family.radius
    half = radius / _BLOCKS
    centres = np.linspace(-radius + half, radius - half, _BLOCKS)
    attained_divergence, settled_bound = 0.0, 0.0
    while True:
        q = np.asarray(sampler.output(fine.kernel_laws(centres)))
        attained_divergence = max(
            attained_divergence, float(fine.divergence_upper_bounds(centres, 0.0, q, shape).max())
        )
        if attained_divergence > rival_bound:
            return math.inf
        bounds = fine.divergence_upper_bounds(centres, half, q, shape)
        is_open = bounds > attained_divergence * (1.0 + _SHARP) + _NOTHING * _SHARP
        settled_bound = max(settled_bound, float(bounds[~is_open].max(initial=0.0)))
        if not is_open.any():
            return settled_bound + _ROUNDING
        if 2 * np.count_nonzero(is_open) > _MOST_BLOCKS:
            return max(settled_bound, float(bounds.max())) + _ROUNDING
        half /= 2.0
        centres = np.concatenate([centres[is_open] - half, centres[is_open] + half])


@dataclass(frozen=True)
class ShiftedDivergence:
    """f(t) - f'(1) (t - 1): the same divergence between distributions, with value and slope 0 at 1."""

    f: FDivergence
    slope: float

    def __call__(self, t: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.where(t > 0.0, self.f.f(np.maximum(t, _TINY)), self.f.at_zero)
            return np.asarray(np.maximum(values - self.slope * (t - 1.0), 0.0))


@dataclass(frozen=True, eq=False)
class FineCells:
    """Cells of the whole line, or of the interval: the masses of a floor, and its log density inside each, at both ends."""

    line: "KernelsOnCells"
    edges: Floats  # the outermost may be infinite
    masses: Floats
    left: Floats  # log of the density given the cell, at its lower end; in a tail at the finite end
    right: Floats

    @classmethod
    def from_floor(cls, line: "KernelsOnCells", floor: Floats) -> "FineCells":
        """Masses on the cells of a line, spread over finer cells along a density whose logarithm is linear between the middles."""
        coarse, widths = line.edges, np.diff(line.edges)
        inner = np.concatenate([np.linspace(a, b, _PARTS, endpoint=False) for a, b in pairwise(coarse)])
        edges = np.append(inner, coarse[-1])
        middles = 0.5 * (coarse[1:] + coarse[:-1])
        height = np.log(np.maximum(floor, _TINY) / widths)
        slopes = np.diff(height) / np.diff(middles)
        piece = np.clip(np.searchsorted(middles, edges) - 1, 0, slopes.size - 1)
        log_density = height[piece] + slopes[piece] * (edges - middles[piece])
        density = LogLinearDensity(edges, log_density[:-1], np.diff(log_density) / np.diff(edges))
        parts = density.masses_between(edges[:-1], edges[1:])
        left, right = log_density[:-1] - np.log(parts), log_density[1:] - np.log(parts)
        cell_totals = np.repeat(parts.reshape(-1, _PARTS).sum(axis=1), _PARTS)
        masses = np.repeat(floor, _PARTS) * parts / cell_totals
        # a tail of the outermost kernel beyond each end, which takes a little of the last cell
        if line.family.box is None:
            ends = np.array([coarse[0], coarse[-1]])
            tail_mass = line.kernel_mass_below(np.array([-abs(ends[1])]), np.array([-line.family.radius]))[0]
            share = tail_mass / (
                tail_mass + np.diff(line.kernel_mass_below(edges[:2], np.array([-line.family.radius])))[0]
            )
            log_tail = line.log_density(ends[1:], np.array([line.family.radius])) - math.log(tail_mass)
            outer = share * masses[[0, -1]]
            masses = np.concatenate([[outer[0]], masses, [outer[1]]])
            masses[[1, -2]] *= 1.0 - share
            edges = np.concatenate([[-math.inf], edges, [math.inf]])
            left, right = (np.concatenate([log_tail, side, log_tail]) for side in (left, right))
        return cls(line, edges, masses, left, right)

    def kernel_laws(self, centres: Floats) -> Floats:
        """The kernels on the cells (n, cells)."""
        laws = self.line.kernel_mass_between(self.edges[:-1], self.edges[1:], centres[:, None])
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))

    def divergence_upper_bounds(self, centres: Floats, half: float, q: Floats, shape: ShiftedDivergence) -> Floats:
        """(n,) upper bounds on D_f over all kernels with a centre within `half` of these, for samplers with masses q (n, cells)."""
        line, scale = self.line, self.line.scale
        ends = self.edges.copy()
        ends[0], ends[-1] = (
            (ends[1] if math.isinf(ends[0]) else ends[0]),
            (ends[-2] if math.isinf(ends[-1]) else ends[-1]),
        )
        at_left = line.log_density(ends[:-1], centres[:, None]) - self.left
        at_right = line.log_density(ends[1:], centres[:, None]) - self.right
        width = np.diff(ends)
        if line.name == "gaussian":
            bend = np.square(width / scale) / 8.0
            reach = (
                half
                / scale
                * (np.maximum(np.abs(ends[:-1] - centres[:, None]), np.abs(ends[1:] - centres[:, None])) + half)
                / scale
            )
        else:
            is_inside = (ends[:-1] < centres[:, None]) & (centres[:, None] < ends[1:])
            bend, reach = is_inside * width / scale, np.full(q.shape, half / scale)
        reach = reach + half * line.log_mass_slope_bound
        low = np.exp(np.minimum(at_left, at_right) - reach)
        with np.errstate(over="ignore"):
            high = np.exp(np.maximum(at_left, at_right) + bend + reach)
        is_unbounded = np.isinf(high).any(axis=1)  # kernels change too much inside a cell
        high[np.isinf(high)] = 1.0
        tails = np.isinf(self.edges[:-1]) | np.isinf(self.edges[1:])
        low[:, tails] = 0.0
        laws = self.kernel_laws(centres)
        if tails.any():  # there p_c/g falls outwards for every c
            reach[:, tails] = math.inf
        most = np.clip(laws * np.exp(np.minimum(reach, LARGEST_FLOAT_EXPONENT)), low, high)
        least = np.clip(laws * np.exp(-reach), low, high)
        first, second = shape(low / q), shape(high / q)
        with np.errstate(invalid="ignore", divide="ignore"):
            rise = np.where(high > low, (second - first) / (high - low), 0.0)
        chord = np.maximum(first + rise * (most - low), first + rise * (least - low))
        return np.where(is_unbounded, math.inf, (q * chord).sum(axis=1))


class KernelsOnCells:
    """The kernels of a family on the cells of a partition of the line, or of its interval."""

    def __init__(self, family: GaussianMixtures | LaplaceMixtures, cells: int) -> None:
        self.family, self.scale, self.name = family, family.scale, family.kernel.name
        reach = family.radius + _REACH * family.scale
        end = family.radius + _TAIL[self.name] * family.scale
        low, high = (-end, end) if family.box is None else family.box[0]
        self.low, self.high = (-math.inf, math.inf) if family.box is None else family.box[0]
        if not (self.low < reach and self.high > -reach):
            raise DiscreetError(
                f"box = {family.box!r} lies more than {_REACH:g} scales beyond all centres, where kernels are too steep for the cells of a "
                "bracket; take an interval nearer to the centres"
            )
        inner = np.linspace(max(low, -reach), min(high, reach), int(_CENTRAL * cells) + 1)
        outer = (cells - int(_CENTRAL * cells)) // 2
        left, right = (np.linspace(a, b, outer + 1) for a, b in ((low, inner[0]), (inner[-1], high)))
        self.edges = np.unique(np.concatenate([left, inner, right]))

    def kernel_mass_below(self, x: Floats, centres: Floats, scale: float | None = None) -> Floats:
        """P_c(-inf, x) of the kernel on all of the line, of the family's scale or another."""
        return self.family.kernel.cdf((x - centres) / (self.scale if scale is None else scale))

    def kernel_mass_between(self, low: Floats, high: Floats, centres: Floats, scale: float | None = None) -> Floats:
        """P_c(low, high) of the kernel on all of the line, from its lower tail on either side of the centre."""
        width = self.scale if scale is None else scale
        left, right = (low - centres) / width, (high - centres) / width
        flip = left > -right  # in the upper tail differences of the distribution function lose their digits
        left, right = np.where(flip, -right, left), np.where(flip, -left, right)
        return self.family.kernel.cdf(right) - self.family.kernel.cdf(left)

    def kernel_mass_inside_interval(self, centres: Floats, scale: float | None = None) -> Floats:
        """The mass of each kernel inside the interval."""
        return self.kernel_mass_between(np.array(self.low), np.array(self.high), centres, scale)

    def log_density(self, x: Floats, centres: Floats) -> Floats:
        """log p_c(x) of the kernel on all of the line, or on its interval."""
        t = np.abs(x - centres) / self.scale
        exponent = -0.5 * t * t if self.name == "gaussian" else -t
        return np.asarray(exponent + math.log(self.largest_density) - np.log(self.kernel_mass_inside_interval(centres)))

    @property
    def log_mass_slope_bound(self) -> float:
        """A bound on how fast the logarithm of the mass inside the interval changes with the centre."""
        if self.family.box is None:
            return 0.0
        radius = self.family.radius
        return 2.0 * self.largest_density / float(self.kernel_mass_inside_interval(np.array([radius, -radius])).min())

    @property
    def largest_density(self) -> float:
        """The largest density of a kernel."""
        return 1.0 / (self.scale * (math.sqrt(2.0 * math.pi) if self.name == "gaussian" else 2.0))

    def kernel_laws_on_cells(self, centres: Floats, scale: float | None = None) -> Floats:
        """The kernels on the cells (n, cells); mass beyond the outermost edges is in the outermost cells."""
        edges = self.edges.copy()
        edges[0], edges[-1] = self.low, self.high
        laws = self.kernel_mass_between(edges[:-1], edges[1:], centres[:, None], scale)
        masses = laws.sum(axis=1, keepdims=True)
        if not masses.all():
            raise DiscreetError(
                f"box = {self.family.box!r} holds no mass of a kernel of scale {self.scale if scale is None else scale:g} at "
                f"{float(centres[np.argmin(masses)]):g}, but for rounding; take a wider box, or a smaller radius"
            )
        return np.asarray(laws / masses)

    @property
    def scales_of_floor_kernels(self) -> tuple[float, ...]:
        """The scales of the kernels that a floor is mixed from. (Narrow Laplace kernels would be steeper than the members.)"""
        return (self.scale, 0.6 * self.scale) if self.name == "gaussian" else (self.scale,)

    def mix_kernels(self, shares: Floats, grid: Floats) -> "LogLinearDensity":
        """A mixture of kernels, first all of one scale, then of the next, with its logarithm made linear between many nodes."""
        fine = np.concatenate([np.linspace(a, b, _NODES_IN_A_CELL, endpoint=False) for a, b in pairwise(self.edges)])
        nodes = np.unique(
            np.concatenate([fine, self.edges[-1:], grid[(grid > self.edges[0]) & (grid < self.edges[-1])]])
        )
        density = np.zeros(nodes.size)
        for scale, part in zip(
            self.scales_of_floor_kernels, shares.reshape(len(self.scales_of_floor_kernels), -1), strict=True
        ):
            t = np.abs(nodes[:, None] - grid) / scale
            shape = np.exp(-0.5 * t * t) if self.name == "gaussian" else np.exp(-t)
            density += (
                shape * (self.largest_density * self.scale / scale) / self.kernel_mass_inside_interval(grid, scale)
            ) @ part
        logarithm = np.log(np.maximum(density, _TINY))
        slope = np.diff(logarithm) / np.diff(nodes)
        if self.name == "laplace":  # rounding aside, no mixture of kernels is steeper
            slope = np.clip(slope, -_STEEPEST / self.scale, _STEEPEST / self.scale)
        return LogLinearDensity(nodes, logarithm[:-1], slope)

    def kernel_costs_under_floor(self, floor: "LogLinearDensity", centres: Floats, ratio: float) -> Floats:
        """F(P_c; m) of each centre."""
        mass = self.kernel_mass_inside_interval(centres)
        inside = self.kernel_mass_between(self.edges[0], self.edges[-1], centres) / mass
        # nothing is released beyond the outermost edges
        over = self._excess_over_floor(floor, ratio, centres, mass) + (1.0 - inside)
        under = self._excess_over_floor(floor, 1.0, centres, mass) - inside + floor.total_mass
        return np.maximum(over, under)

    def _excess_over_floor(self, floor: "LogLinearDensity", factor: float, centres: Floats, mass: Floats) -> Floats:
        """The integral of (p_c - factor m)_+ over the pieces (n,): on each, over the interval where the difference is positive."""
        centre, tilt = centres[:, None], floor.slope * self.scale
        height = np.log(self.largest_density / mass)[:, None] - math.log(factor) - floor.log_density_at(centre)
        if self.name == "gaussian":
            half = np.sqrt(np.maximum(tilt * tilt + 2.0 * height, 0.0))
            left, right = -tilt - half, -tilt + half
        else:
            above = np.maximum(height, 0.0)
            left, right = -above / (1.0 - tilt), above / (1.0 + tilt)
        low = np.clip(centre + self.scale * left, floor.nodes[:-1], floor.nodes[1:])
        high = np.maximum(low, np.clip(centre + self.scale * right, floor.nodes[:-1], floor.nodes[1:]))
        kernel_masses = self.kernel_mass_between(low, high, centre) / mass[:, None]
        return np.asarray((kernel_masses - factor * floor.masses_between(low, high)).sum(axis=1))

    def worst_kernel_cost_upper_bound(self, floor: "LogLinearDensity", ratio: float, tolerance: float) -> float:
        """An upper bound on F(P_c; m) over all centres, at most 1 + tolerance times too large, unless too many centres are alike."""
        radius = self.family.radius
        slope_bound = self.largest_density * (
            1.0
            if self.family.box is None
            else 2.0 / float(self.kernel_mass_inside_interval(np.array([radius, -radius])).min())
        )
        half = radius / 64.0
        centres = np.linspace(-radius + half, radius - half, 64)
        best = float(self.kernel_costs_under_floor(floor, np.array([-radius, 0.0, radius]), ratio).max())
        while True:
            costs = self.kernel_costs_under_floor(floor, centres, ratio)
            best = max(best, float(costs.max()))
            enough = best + max(best * tolerance, 0.1 * _NOTHING)
            is_near = costs + slope_bound * half > enough
            if not is_near.any():
                return enough
            if np.count_nonzero(is_near) > _MOST_CENTRES:
                return float(costs.max()) + slope_bound * half
            centres = centres[is_near]
            half /= 2.0
            centres = np.concatenate([centres - half, centres + half])


@dataclass(frozen=True, eq=False)
class LogLinearDensity:
    """exp(value + slope (x - node)) on the pieces between nodes (k + 1,): values and slopes (k,) are those at each piece's left end."""

    nodes: Floats
    value: Floats
    slope: Floats

    def log_density_at(self, x: Floats) -> Floats:
        """The logarithm of each piece's formula at x (..., 1): (..., k)."""
        return self.value + self.slope * (x - self.nodes[:-1])

    def masses_between(self, low: Floats, high: Floats) -> Floats:
        """The masses of parts low..high (..., k) of the pieces."""
        from scipy.special import exprel

        width = high - low
        return np.asarray(
            np.exp(self.value + self.slope * (low - self.nodes[:-1])) * width * exprel(self.slope * width)
        )

    @property
    def total_mass(self) -> float:
        """The mass of all pieces together."""
        return float(self.masses_between(self.nodes[:-1], self.nodes[1:]).sum())
