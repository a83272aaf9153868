"""Gaussian components with covariances of their own: N(c_i, C_i) = s_i^(-dim) K(L_i^-1 (x - c_i)/s_i) with C_i = s_i^2 L_i L_i', det L_i = 1.

So a mixture of them is one of the kernel K along axes L_i: its heights are those of the scale s_i = det(C_i)^(1/(2 dim)), and only distances
and draws know the axes.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.errors import LENGTH, DiscreetError
from discreet.families._features import Features
from discreet.families._laws import as_floats

Floats = NDArray[np.float64]

_CORRELATED = (
    "the axes of a correlated component are not independent: none of them has a distribution function of its own"
)
_ROUNDING = 1e-9  # of entries that should be equal
_REACH = 4.0  # standard deviations in which a component has nearly all of its mass
_PLACES = {2: 65, 3: 13}  # along each axis of a component; where there are more dimensions nobody looks


@dataclass(frozen=True, eq=False)
class CorrelatedGaussian:
    """The standard Gaussian along axes (k, dim, dim) of determinant one, lower triangular, one for each component."""

    axes: Floats
    name: str = "gaussian"
    separable: bool = False

    def log_scale_factor(self, dim: int) -> float:
        return -0.5 * dim * math.log(2.0 * math.pi)

    def exponents(self, x: Floats, centres: Floats, scales: Floats) -> Floats:
        out = np.empty((len(centres), len(x)))
        for row, (centre, axes) in enumerate(zip(centres, self.axes, strict=True)):
            apart = scipy.linalg.solve_triangular(axes, (x - centre).T, lower=True, check_finite=False)
            np.sum(np.square(apart), axis=0, out=out[row])
        out *= (-0.5 / np.square(scales))[:, None]
        return out

    def draw(self, which: NDArray[np.int64], dim: int, rng: np.random.Generator) -> Floats:
        standard = rng.standard_normal((len(which), dim))
        return np.asarray(np.einsum("nij,nj->ni", self.axes[which], standard))

    def log_mass(self, low: ArrayLike, high: ArrayLike) -> Floats:
        raise DiscreetError("the mass that a correlated component has in a box is not known in closed form")

    def below(self, x: Floats) -> Floats:
        raise DiscreetError(_CORRELATED)

    def tail(self, distance: Floats) -> tuple[Floats, Floats]:
        raise DiscreetError(_CORRELATED)

    def size(self, x: Floats) -> Floats:
        return np.asarray(np.sqrt(np.square(x).sum(axis=-1)))

    def narrow_places(self, means: Floats, scales: Floats) -> Features:
        """Points along the longer axes of each component, as wide apart as it is narrow, with its narrowest width."""
        dim = means.shape[1]
        places, widths = [], []
        for mean, scale, axes in zip(means, scales, self.axes, strict=True):
            lengths, directions = np.linalg.eigh(scale**2 * axes @ axes.T)
            sides = np.sqrt(np.maximum(lengths, 0.0))
            steps = [_steps(side, sides[0], _PLACES.get(dim, 1)) for side in sides]
            grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, dim) if dim in _PLACES else None
            places.append(mean[None, :] if grid is None else mean + grid @ directions.T)
            widths.append(np.full(len(places[-1]), sides[0]))
        return Features(np.concatenate(places), np.concatenate(widths))


def _steps(side: float, narrowest: float, most: int) -> Floats:
    """Places within reach along one axis; the narrowest needs one."""
    count = min(most, 1 + 2 * math.ceil(_REACH * (side / narrowest - 1.0) / _REACH))
    return np.linspace(-_REACH * side, _REACH * side, count) if count > 1 else np.zeros(1)


def scales_and_axes(covariances: ArrayLike, count: int, dim: int) -> tuple[Floats, Floats | None]:
    """Scales (k,) and axes (k, dim, dim) of covariances (dim, dim) or (k, dim, dim); no axes where all are round."""
    given = as_floats(covariances, "covariances")
    if given.shape not in ((dim, dim), (count, dim, dim)):
        raise DiscreetError(
            f"covariances has shape {given.shape}; give one matrix ({dim}, {dim}) for all components, or ({count}, {dim}, {dim})"
        )
    matrices = np.broadcast_to(given, (count, dim, dim))
    scales, axes = np.empty(count), np.empty((count, dim, dim))
    for number, matrix in enumerate(matrices):
        where = "covariances" if given.ndim == 2 else f"covariances[{number}]"
        scales[number], axes[number] = _factor_covariance(matrix, where)
    round_ones = np.allclose(axes, np.eye(dim), rtol=0.0, atol=1e-14)
    return scales, None if round_ones else axes


def _factor_covariance(matrix: Floats, where: str) -> tuple[float, Floats]:
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
