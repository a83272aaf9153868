"""`Mixture`: sum_i w_i K((x - c_i)/s_i)/s_i^dim of one kernel K, the distribution of a client of a mixture family.

Gaussian: K(u) = (2 pi)^(-dim/2) exp(-|u|^2/2). Laplace: K(u) = 2^(-dim) exp(-|u|_1), independent along each axis.

Gaussian components may have covariances of their own: N(c_i, C_i) = s_i^(-dim) K(L_i^-1 (x - c_i)/s_i) with C_i = s_i^2 L_i L_i', det L_i =
1. So a mixture of them is one of the kernel K along axes L_i. Its heights are those of the scale s_i = det(C_i)^(1/(2 dim)), and only
distances and draws depend on the axes.

**Masses between the edges of a line**, enclosed. With T(t) the mass of a kernel beyond t >= 0, the mass between two edges is a difference of
two values of T, or 1 less both if the centre lies between them. A rounded argument t (1 + d) changes T by at most a factor 1 + |d| (t^2 + 2),
and T itself is computed by an exponential of an argument that errs by a few units in the last place of t^2. So each value of T errs by at
most (16 + 8 t^2) 2^-53 of itself, and the difference by the sum of both.

**The least mass of a Gaussian in a box**, with its centre c in the ball |c| <= rho, bounded from below (lengths in scales). Its logarithm is
f(c) = sum_i g_i(c_i), with g_i(t) = log of the mass of N(t, 1) between a_i and b_i. Two facts hold on each axis:

* g_i is concave, and symmetric about the middle of the interval. So f is least on the sphere, where each c_i has the sign opposite to the
  middle's, and on this orthant f falls outwards.
* g_i(t) + t^2/2 is the logarithm of a Laplace transform, hence convex. Its slope is the mean of the truncated kernel, in [a_i, b_i].

*Branch and bound.* A cell is the cone of n unit vectors A_j; w solves w.A_j = 1. A point of it on the sphere is rho times a sum of l_j A_j
with 1 <= sum l_j <= |w|, by the triangle inequality and by Cauchy and Schwarz. So f >= min_j f(rho |w| A_j), since f is concave and falls
outwards. On the sphere f = sum_i (g_i(c_i) + c_i^2/2) - rho^2/2 also lies above its tangent at a point of the cell, which is least at one of
rho A_j and rho |w| A_j. Both bounds are off by the square of the cell's size. Cells whose bound is near the least value found are done; the
others are halved.

*Axes whose interval is symmetric about 0.* There the slope of g_i(t) + t^2/2 is concave for t >= 0 (the inequality of Griffiths, Hurst and
Sherman, for even laws exp(-V) with V' convex [Ellis, Monroe, Newman, Commun. Math. Phys. 46, 1976]), so g_i is concave in t^2. Hence at most
one of these axes has c_i != 0 where f is least, and on a box that is symmetric in all axes the worst centre lies on an axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from discreet.errors import LENGTH, DiscreetError
from discreet.families._bands_and_laws import as_floats, refuse_bad_entries
from discreet.families._densities import as_points, shape_of_point_values
from discreet.families._integration import TINY, Features, IntervalMasses

Floats = NDArray[np.float64]
_CORRELATED = (
    "the axes of a correlated component are not independent: none of them has a distribution function of its own"
)
_ROUNDING = 1e-9  # relative difference of entries that count as equal
_REACH = 4.0  # in standard deviations: a component has nearly all of its mass within this distance
_PLACES = {2: 65, 3: 13}  # along each axis of a component; not used in more dimensions
_UNIT = 2.0**-53
_FAINT = -600.0  # log of a density, far below which floats lose it
_BLOCK = 1 << 18  # components times points or edges that are held at a time, so that they stay in cache
_MASS_TOLERANCE, _MASS_ROUNDING = 1e-8, 1e-14  # of the logarithm of a least mass; the second is relative
_NEARLY_EVEN = 1e-9  # the relative difference of the two ends of such a box, at most
_MOST_CELLS, _MOST_HALVINGS = 1 << 13, 60  # of its branch and bound; where they are too few, the bound is less tight


class MixtureKernel(Protocol):
    """A distribution around the origin, of unit scale."""

    @property
    def name(self) -> str: ...
    def log_kernel_at_centre(self, dim: int) -> float:
        """log K(0)."""

    def log_kernel_relative_to_centre(self, x: Floats, centres: Floats, scales: Floats) -> Floats:
        """log K((x - c)/s) - log K(0) for every point (n, dim) and centre (k, dim): (k, n)."""

    @property
    def has_independent_axes(self) -> bool:
        """Whether the axes are independent, so that masses of boxes are products."""

    def draw_component_points(self, components: NDArray[np.int64], dim: int, rng: np.random.Generator) -> Floats:
        """One point (n, dim) for each of the components drawn."""

    def log_mass_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """log of the mass of one axis of K between low and high."""

    def cdf(self, x: Floats) -> Floats:
        """The distribution function of one axis of K."""

    def tail_mass_and_error(self, distance: Floats) -> tuple[Floats, Floats]:
        """The mass of one axis of K beyond a distance of at least 0, and a bound of its error."""

    def norm_of_points(self, x: Floats) -> Floats:
        """The norm that bounds a mixture family's centres: (n,) of (n, dim)."""


@dataclass(frozen=True)
class _GaussianKernel:
    name: str = "gaussian"
    has_independent_axes: bool = True

    def log_kernel_at_centre(self, dim: int) -> float:
        return -0.5 * dim * math.log(2.0 * math.pi)

    def log_kernel_relative_to_centre(self, x: Floats, centres: Floats, scales: Floats) -> Floats:
        if x.shape[1] <= 3:  # differences avoid cancellation
            exponents = np.zeros((len(centres), len(x)))
            for axis in range(x.shape[1]):
                difference = x[:, axis] - centres[:, axis, None]
                exponents += np.square(difference, out=difference)
        else:
            exponents = np.asarray(np.square(centres).sum(1)[:, None] - 2.0 * (centres @ x.T) + np.square(x).sum(1))
        exponents *= (-0.5 / np.square(scales))[:, None]
        return exponents

    def draw_component_points(self, components: NDArray[np.int64], dim: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((len(components), dim))

    def log_mass_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        left, right = _mirror_interval_left(low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = scipy.special.log_ndtr(right), scipy.special.log_ndtr(left)
            return np.asarray(above + np.log1p(-np.exp(below - above)))

    def cdf(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr(x))

    def tail_mass_and_error(self, distance: Floats) -> tuple[Floats, Floats]:
        mass = np.asarray(scipy.special.ndtr(-distance))
        with np.errstate(invalid="ignore"):  # at infinity mass and error are 0
            error = np.where(mass > 0.0, mass * (16.0 + 8.0 * np.square(distance)) * _UNIT, 0.0)
        return mass, error

    def norm_of_points(self, x: Floats) -> Floats:
        return np.asarray(np.sqrt(np.square(x).sum(axis=-1)))


@dataclass(frozen=True)
class _LaplaceKernel:
    name: str = "laplace"
    has_independent_axes: bool = True

    def log_kernel_at_centre(self, dim: int) -> float:
        return -dim * math.log(2.0)

    def log_kernel_relative_to_centre(self, x: Floats, centres: Floats, scales: Floats) -> Floats:
        distance = np.empty((len(centres), len(x)))
        for row, centre in enumerate(centres):
            np.sum(np.abs(x - centre), axis=1, out=distance[row])
        distance *= (-1.0 / scales)[:, None]
        return distance

    def draw_component_points(self, components: NDArray[np.int64], dim: int, rng: np.random.Generator) -> Floats:
        return rng.laplace(size=(len(components), dim))

    def log_mass_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        left, right = _mirror_interval_left(low, high)
        with np.errstate(divide="ignore"):
            end = np.minimum(right, 0.0)
            one_sided = end + np.log(-np.expm1(left - end)) - math.log(2.0)
            return np.where(right <= 0.0, one_sided, np.log(laplace_cdf(right) - laplace_cdf(left)))

    def cdf(self, x: Floats) -> Floats:
        return laplace_cdf(x)

    def tail_mass_and_error(self, distance: Floats) -> tuple[Floats, Floats]:
        mass = 0.5 * np.exp(-distance)
        with np.errstate(invalid="ignore"):
            error = np.where(mass > 0.0, mass * (16.0 + 8.0 * distance) * _UNIT, 0.0)
        return mass, error

    def norm_of_points(self, x: Floats) -> Floats:
        return np.asarray(np.abs(x).sum(axis=-1))


def laplace_cdf(x: Floats) -> Floats:
    """The distribution function of the unit Laplace distribution."""
    with np.errstate(over="ignore"):
        return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0.0)))


def _mirror_interval_left(low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    """The interval or its mirror image, whichever lies further left, where masses are small and do not cancel."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # the whole line is its own mirror image
        flip = low + high > 0
    return np.where(flip, -high, low), np.where(flip, -low, high)


GAUSSIAN: MixtureKernel = _GaussianKernel()
LAPLACE: MixtureKernel = _LaplaceKernel()
_KERNELS = {kernel.name: kernel for kernel in (GAUSSIAN, LAPLACE)}


def kernel_by_name(name: str | MixtureKernel) -> MixtureKernel:
    """The kernel called "gaussian" or "laplace"; a kernel is returned unchanged."""
    if not isinstance(name, str):
        return name
    if name not in _KERNELS:
        raise DiscreetError(f"kernel = {name!r} is not one of {', '.join(_KERNELS)}")
    return _KERNELS[name]


@dataclass(frozen=True, eq=False)
class CorrelatedGaussian:
    """The standard Gaussian along axes (k, dim, dim) of determinant one, lower triangular, one for each component."""

    axes: Floats
    name: str = "gaussian"
    has_independent_axes: bool = False

    def log_kernel_at_centre(self, dim: int) -> float:
        return -0.5 * dim * math.log(2.0 * math.pi)

    def log_kernel_relative_to_centre(self, x: Floats, centres: Floats, scales: Floats) -> Floats:
        out = np.empty((len(centres), len(x)))
        for row, (centre, axes) in enumerate(zip(centres, self.axes, strict=True)):
            offsets = scipy.linalg.solve_triangular(axes, (x - centre).T, lower=True, check_finite=False)
            np.sum(np.square(offsets), axis=0, out=out[row])
        out *= (-0.5 / np.square(scales))[:, None]
        return out

    def draw_component_points(self, components: NDArray[np.int64], dim: int, rng: np.random.Generator) -> Floats:
        standard = rng.standard_normal((len(components), dim))
        return np.asarray(np.einsum("nij,nj->ni", self.axes[components], standard))

    def log_mass_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        raise DiscreetError("the mass that a correlated component has in a box is not known in closed form")

    def cdf(self, x: Floats) -> Floats:
        raise DiscreetError(_CORRELATED)

    def tail_mass_and_error(self, distance: Floats) -> tuple[Floats, Floats]:
        raise DiscreetError(_CORRELATED)

    def norm_of_points(self, x: Floats) -> Floats:
        return np.asarray(np.sqrt(np.square(x).sum(axis=-1)))

    def narrow_places(self, means: Floats, scales: Floats) -> Features:
        """Points along the longer axes of each component, spaced by its narrowest width."""
        dim = means.shape[1]
        places, widths = [], []
        for mean, scale, axes in zip(means, scales, self.axes, strict=True):
            lengths, directions = np.linalg.eigh(scale**2 * axes @ axes.T)
            sides = np.sqrt(np.maximum(lengths, 0.0))
            steps = [_evenly_spaced_places_on_axis(side, sides[0], _PLACES.get(dim, 1)) for side in sides]
            grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, dim) if dim in _PLACES else None
            places.append(mean[None, :] if grid is None else mean + grid @ directions.T)
            widths.append(np.full(len(places[-1]), sides[0]))
        return Features(np.concatenate(places), np.concatenate(widths))


def _evenly_spaced_places_on_axis(side: float, narrowest: float, most: int) -> Floats:
    """Places within reach along one axis; the narrowest axis needs one."""
    count = min(most, 1 + 2 * math.ceil(side / narrowest - 1.0))
    return np.linspace(-_REACH * side, _REACH * side, count) if count > 1 else np.zeros(1)


def scales_and_factors_of_covariances(covariances: ArrayLike, count: int, dim: int) -> tuple[Floats, Floats | None]:
    """Scales (k,) and axes (k, dim, dim) of covariances (dim, dim) or (k, dim, dim); axes are None if all are multiples of the identity."""
    array = as_floats(covariances, "covariances")
    if array.shape not in ((dim, dim), (count, dim, dim)):
        raise DiscreetError(
            f"covariances has shape {array.shape}; give one matrix ({dim}, {dim}) for all components, or ({count}, {dim}, {dim})"
        )
    matrices = np.broadcast_to(array, (count, dim, dim))
    scales, axes = np.empty(count), np.empty((count, dim, dim))
    for number, matrix in enumerate(matrices):
        where = "covariances" if array.ndim == 2 else f"covariances[{number}]"
        scales[number], axes[number] = _scale_and_factor_of_covariance(matrix, where)
    are_round = np.allclose(axes, np.eye(dim), rtol=0.0, atol=1e-14)
    return scales, None if are_round else axes


def _scale_and_factor_of_covariance(matrix: Floats, where: str) -> tuple[float, Floats]:
    """s and L with s^2 L L' = matrix and det L = 1."""
    largest = float(np.abs(matrix).max())
    if not (np.isfinite(largest) and np.abs(matrix - matrix.T).max() <= _ROUNDING * largest):
        raise DiscreetError(f"{where} is not a symmetric matrix of finite numbers")
    deviations = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if not all(deviation in LENGTH for deviation in deviations.tolist()):
        raise DiscreetError(f"{where} has standard deviations that are not in {LENGTH}; measure in other units")
    correlation = 0.5 * (matrix + matrix.T) / np.outer(deviations, deviations)
    try:
        factor = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise DiscreetError(f"{where} is not positive definite; no component may be flat in any direction") from None
    factor = deviations[:, None] * factor
    log_scale = float(np.log(np.diag(factor)).mean())
    return math.exp(log_scale), factor / math.exp(log_scale)


class Mixture:
    """sum_i weights_i K((x - means_i)/scales_i)/scales_i^dim on all of R^dim.

    `means` is (k,) in one dimension or (k, dim); `weights` (k,) are normalised; `scales` is one number or (k,) (a standard deviation for
    "gaussian", the mean distance along an axis for "laplace"). With `covariances`, (dim, dim) for all components or (k, dim, dim), the
    components are N(means_i, covariances_i); leave out `scales`.

    Args:
        weights: (k,) at least 0, not all zero; they are normalised.
        means: the centres, (k,) or (k, dim).
        scales: widths, one number or (k,).
        kernel: "gaussian" or "laplace".
        covariances: symmetric positive definite matrices, for "gaussian".

    Raises:
        DiscreetError: for shapes that do not fit, widths that are not positive, matrices that are not covariances.
    """

    def __init__(
        self,
        weights: ArrayLike,
        means: ArrayLike,
        scales: ArrayLike | None = None,
        *,
        kernel: str | MixtureKernel = "gaussian",
        covariances: ArrayLike | None = None,
    ) -> None:
        raw_weights = as_floats(weights, "weights")
        if raw_weights.ndim != 1 or not raw_weights.size:
            raise DiscreetError(f"weights has shape {raw_weights.shape}; give one for each component")
        refuse_bad_entries(raw_weights, "weights")
        if not raw_weights.max() > 0.0:
            raise DiscreetError("weights are all zero; give at least one component a positive weight")
        scaled_weights = raw_weights / raw_weights.max()  # so that the sum cannot overflow
        self.weights = scaled_weights / scaled_weights.sum()
        means = as_floats(means, "means")
        self.means = means.reshape(-1, 1) if means.ndim <= 1 else means
        if self.means.ndim != 2 or len(self.means) != len(self.weights):
            raise DiscreetError(f"means has shape {means.shape} for {len(self.weights)} weights; give one row for each")
        if not (np.abs(self.means) <= LENGTH.high).all():
            raise DiscreetError(f"means holds an entry that is not in [{-LENGTH.high:g}, {LENGTH.high:g}]")
        self.kernel = kernel_by_name(kernel)
        if covariances is not None:
            if scales is not None or self.kernel != GAUSSIAN:
                raise DiscreetError('covariances take the place of scales, for kernel="gaussian"; leave the other out')
            self.scales, axes = scales_and_factors_of_covariances(covariances, *self.means.shape)
            if axes is not None:
                self.kernel = CorrelatedGaussian(axes)
            return
        scales = as_floats(1.0 if scales is None else scales, "scales")
        if scales.shape not in ((), (len(self.weights),)):
            raise DiscreetError(f"scales has shape {scales.shape}; give one number, or one for each component")
        if not (scales > 0).all() or not np.isfinite(scales).all():
            raise DiscreetError(f"scales = {scales} is not in (0, inf)")
        if not ((scales >= LENGTH.low) & (scales <= LENGTH.high)).all():
            raise DiscreetError(f"scales = {scales} is not in {LENGTH}; measure in other units")
        self.scales = np.broadcast_to(scales, self.weights.shape)

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return int(self.means.shape[1])

    def pdf(self, x: ArrayLike) -> Floats:
        """The density at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_density(as_points(x, self.dim))).reshape(shape_of_point_values(x, self.dim))

    def log_density(self, x: Floats) -> Floats:
        out = np.empty(len(x))
        step = max(1, _BLOCK // max(len(self.weights), self.dim))
        with np.errstate(divide="ignore"):
            heights = np.log(self.weights) + self.kernel.log_kernel_at_centre(self.dim) - self.dim * np.log(self.scales)
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            terms = self.kernel.log_kernel_relative_to_centre(x[rows], self.means, self.scales)
            terms += heights[:, None]
            out[rows] = log_sum_of_exponentials(terms)
        return out

    def mass_between(self, low: Floats, high: Floats) -> float:
        """Its mass in the box from low to high (dim,), whose ends may be infinite; NaN if it is not known."""
        if not self.kernel.has_independent_axes:
            return 1.0 if np.isneginf(low).all() and np.isposinf(high).all() else math.nan
        return float(mixture_masses_in_box([self], low, high)[0])

    def interval_masses(self, edges: Floats) -> IntervalMasses:
        """Its masses between consecutive edges of a line, enclosed."""
        return interval_masses_of_mixture(self.kernel, self.weights, self.means[:, 0], self.scales, edges)

    def narrow_places(self) -> Features:
        """Its components, as features."""
        if isinstance(self.kernel, CorrelatedGaussian):
            return self.kernel.narrow_places(self.means, self.scales)
        positive = self.weights > 0.0
        return Features(self.means[positive], self.scales[positive])

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent points (count, dim) of the mixture."""
        components = rng.choice(len(self.weights), size=count, p=self.weights)
        return np.asarray(
            self.means[components]
            + self.scales[components, None] * self.kernel.draw_component_points(components, self.dim, rng),
            dtype=np.float64,
        )

    def __repr__(self) -> str:
        return f"Mixture(<{len(self.weights)} {self.kernel.name} components in dimension {self.dim}>)"


def log_sum_of_exponentials(terms: Floats) -> Floats:
    """log sum exp over the first axis; minus infinity if every term is."""
    largest = terms.max(axis=0)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.exp(terms - shift).sum(axis=0)))


def mixture_masses_in_box(mixtures: Sequence[Mixture], low: Floats, high: Floats) -> Floats:
    """(n,) masses of n mixtures of one kernel in the box from low to high (dim,), all components at once."""
    weights = np.concatenate([p.weights for p in mixtures])
    means = np.concatenate([p.means for p in mixtures])
    scales = np.concatenate([p.scales for p in mixtures])[:, None]
    log_masses = mixtures[0].kernel.log_mass_between((low - means) / scales, (high - means) / scales).sum(axis=1)
    return np.asarray(np.add.reduceat(weights * np.exp(log_masses), _component_starts_and_end(mixtures)[:-1]))


def _component_starts_and_end(mixtures: Sequence[Mixture]) -> NDArray[np.intp]:
    """The start of each mixture's components in the concatenated list, and its end."""
    return np.cumsum([0, *(len(p.weights) for p in mixtures)])


def mixture_log_densities(mixtures: Sequence[Mixture], x: Floats) -> Floats:
    """(n, m) log densities of n mixtures of one kernel at m shared points, all components at once."""
    kernel, dim = mixtures[0].kernel, mixtures[0].dim
    starts = _component_starts_and_end(mixtures)
    weights = np.concatenate([p.weights for p in mixtures])
    means = np.concatenate([p.means for p in mixtures])
    scales = np.concatenate([p.scales for p in mixtures])
    heights = weights * np.exp(kernel.log_kernel_at_centre(dim) - dim * np.log(scales))
    out = np.empty((len(mixtures), len(x)))
    clients = max(1, _BLOCK * len(mixtures) // (len(weights) * len(x)))
    for first in range(0, len(mixtures), clients):
        last = min(first + clients, len(mixtures))
        rows = slice(starts[first], starts[last])
        terms = kernel.log_kernel_relative_to_centre(x, means[rows], scales[rows])
        np.exp(terms, out=terms)
        terms *= heights[rows, None]
        np.add.reduceat(terms, starts[first:last] - starts[first], axis=0, out=out[first:last])
    with np.errstate(divide="ignore"):
        np.log(out, out=out)
    for row in map(int, np.flatnonzero(out.max(axis=1, initial=-np.inf) < _FAINT)):
        out[row] = mixtures[row].log_density(x)
    return out


def lower_bound_of_log_least_mass(low: Floats, high: Floats, radius: float) -> float:
    """A lower bound of the log mass between low and high (dim,) of a unit Gaussian with |centre| <= radius, close to the least.

    A box that rounding alone keeps from being even (0.1 + 0.2 is not 0.3) is bounded by the even box inside it too, which settles sooner.
    """
    bound, inner = _bound_log_least_mass_in_box(low, high, radius), np.minimum(-low, high)
    nearly_even = (low != -high) & np.isclose(-low, high, rtol=_NEARLY_EVEN, atol=0.0)
    if nearly_even.any():
        within = np.where(nearly_even, -inner, low), np.where(nearly_even, inner, high)
        bound = max(bound, _bound_log_least_mass_in_box(*within, radius))
    return bound - _MASS_ROUNDING * abs(bound)


def _bound_log_least_mass_in_box(low: Floats, high: Floats, radius: float) -> float:
    """The same for the box itself, up to rounding."""
    is_symmetric = low == -high
    masses_at_zero = GAUSSIAN.log_mass_between(low, high)
    moving_axes, bounds = np.flatnonzero(~is_symmetric), []
    for axes in [np.append(moving_axes, axis) for axis in np.flatnonzero(is_symmetric)] or [moving_axes]:
        fixed_mass = np.delete(masses_at_zero, axes).sum()
        bounds.append(_bound_log_least_mass_over_orthant(low[axes], high[axes], radius) + float(fixed_mass))
    return min(bounds)


def _bound_log_least_mass_over_orthant(low: Floats, high: Floats, radius: float) -> float:
    """The same, where the centre moves along all axes, by branch and bound over the directions."""

    def log_mass(centres: Floats) -> Floats:
        log_masses = GAUSSIAN.log_mass_between(low - centres, high - centres).sum(axis=-1)
        return np.where(np.isnan(log_masses), -math.inf, log_masses)  # a mass too small for a float

    cells = np.diag(np.where(low > -high, -1.0, 1.0))[None, :, :]  # (cells, n, n): n unit vectors each
    least_found, least_of_done = math.inf, math.inf
    for _ in range(_MOST_HALVINGS):
        stretch = np.linalg.norm(np.linalg.solve(cells, np.ones((*cells.shape[:2], 1)))[:, :, 0], axis=1)
        inner = radius * cells
        outer = inner * stretch[:, None, None]
        central = cells.sum(axis=1)
        central *= radius / GAUSSIAN.norm_of_points(central)[:, None]
        at_central = log_mass(central)
        slope = _truncated_means(low, high, central)
        corner_changes = [np.einsum("kij,kj->ki", points - central[:, None, :], slope) for points in (inner, outer)]
        by_tangent = at_central + np.minimum(*corner_changes).min(axis=1)
        bounds = np.fmax(log_mass(outer).min(axis=1), by_tangent)
        least_found = min(least_found, float(at_central.min()), float(log_mass(inner).min()))
        is_open = bounds < least_found - _MASS_TOLERANCE + _MASS_ROUNDING * least_found
        least_of_done = min(least_of_done, float(bounds[~is_open].min(initial=math.inf)))
        if not is_open.any():
            return least_of_done
        least_of_open = float(bounds[is_open].min())
        if 2 * np.count_nonzero(is_open) > _MOST_CELLS:
            break
        cells = _halve_longest_edges(cells[is_open])
    return min(least_of_done, least_of_open)


def _truncated_means(low: Floats, high: Floats, centres: Floats) -> Floats:
    """Along each axis, the mean of N(c, 1) restricted to the interval: (n, dim) of centres (n, dim)."""
    log_masses = GAUSSIAN.log_mass_between(low - centres, high - centres)
    with np.errstate(invalid="ignore", over="ignore"):
        densities = [
            np.exp(-0.5 * np.square(end - centres) - 0.5 * math.log(2.0 * math.pi) - log_masses) for end in (low, high)
        ]
        return np.clip(centres + densities[0] - densities[1], low, high)


def _halve_longest_edges(cells: Floats) -> Floats:
    """Each cone (cells, n, n) in two, at the middle of the longest edge between its unit vectors."""
    first, second = np.triu_indices(cells.shape[1], 1)
    longest = np.square(cells[:, first] - cells[:, second]).sum(axis=-1).argmax(axis=1)
    first, second, rows = first[longest], second[longest], np.arange(len(cells))
    middle = cells[rows, first] + cells[rows, second]
    middle /= GAUSSIAN.norm_of_points(middle)[:, None]
    halves = np.stack([cells, cells])
    halves[0, rows, first] = middle
    halves[1, rows, second] = middle
    return halves.reshape(-1, *cells.shape[1:])


def interval_masses_of_mixture(
    kernel: MixtureKernel, weights: Floats, centres: Floats, scales: Floats, edges: Floats
) -> IntervalMasses:
    """The masses of a mixture of kernels on a line: weights, centres and scales (k,)."""
    mass, errors = _component_interval_masses_and_errors(kernel, centres, scales, edges)
    total = weights @ mass
    rounding = 2.0 * (len(weights) + 8) * _UNIT
    return IntervalMasses.from_mass_and_error_bound(
        total, (weights @ errors) * (1.0 + rounding) + rounding * total + TINY
    )


def interval_mass_rows_of_mixtures(mixtures: Sequence[Mixture], edges: Floats) -> Floats:
    """(n, cells) masses of n mixtures of one kernel, to within rounding of each one's total, in blocks."""
    rows = np.empty((len(mixtures), edges.size - 1))
    step = max(1, _BLOCK // (edges.size * max(len(p.weights) for p in mixtures)))
    for first in range(0, len(mixtures), step):
        batch = mixtures[first : first + step]
        weights, scales = (np.concatenate([getattr(p, name) for p in batch]) for name in ("weights", "scales"))
        centres = np.concatenate([p.means[:, 0] for p in batch])
        below = batch[0].kernel.cdf((edges - centres[:, None]) / scales[:, None])
        below *= weights[:, None]
        starts = _component_starts_and_end(batch)[:-1]
        rows[first : first + step] = np.diff(np.add.reduceat(below, starts, axis=0), axis=1)
    return np.maximum(rows, 0.0, out=rows)


def _component_interval_masses_and_errors(
    kernel: MixtureKernel, centres: Floats, scales: Floats, edges: Floats
) -> tuple[Floats, Floats]:
    """(k, cells) masses of kernels, and bounds of their errors."""
    t = (edges - centres[:, None]) / scales[:, None]
    tail, error = kernel.tail_mass_and_error(np.abs(t))
    rising = t[:, 1:] <= 0.0
    across = (t[:, :-1] < 0.0) & ~rising
    change = tail[:, 1:] - tail[:, :-1]
    mass = np.where(across, (1.0 - tail[:, :-1]) - tail[:, 1:], np.where(rising, change, -change))
    return np.maximum(mass, 0.0), error[:, 1:] + error[:, :-1] + 4.0 * _UNIT * (np.abs(mass) + across)
