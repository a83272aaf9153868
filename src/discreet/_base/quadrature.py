"""Adaptive Gauss-Legendre panels: boxes of coordinates, their nodes, and estimates of how well they resolve a function.

On a panel of width w, q nodes integrate polynomials of degree 2q - 1 exactly along each axis. The distance of a function from such
polynomials is read off its Legendre coefficients on the nodes themselves, with no further evaluation. They fall like a geometric sequence
where the function is smooth, and like a power of the degree where a derivative jumps. The error of the integral is near the coefficient of
degree 2q. It is extrapolated from c_top, the largest of the last k coefficients (k = q/3, at least two), and c_middle, of the k before:
geometrically where they fall fast, as a power law where they do not.

    error = |c_top| rho^s,   rho = min(1, |c_top| / |c_middle|),   s = (q+1)/k or log 2 / log((q - 1/2)/(q - 1/2 - k))

The estimate decides where panels are split, and is the reported error. No privacy guarantee depends on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet._base.showing import with_short_repr

Floats = NDArray[np.float64]

Element = Callable[[Floats], Floats]  # a density in coordinates (..., dim)

ORDER = {1: 10, 2: 6, 3: 5}  # Gauss-Legendre nodes along each axis of a panel, by dimension
_CLIENTS = {1: 1e-12, 2: 2e-8, 3: 1e-5}  # relative error of the reference's mass on the nodes for clients
_INTEGRAL = {1: 1e-11, 2: 1e-8, 3: 1e-5}  # and of the normalising constant
_NARROWEST = 1e-14
_INSIDE = 1e-9  # share of a panel, away from its ends, where a density may be infinite
_SQUARES = 1e150
_MOST_AT_A_FACE = 10.0  # times the largest value at the nodes, beyond which a function rises to infinity at a face
_FAST = 0.1  # above this rho they fall like a power of the degree


@with_short_repr
@dataclass(frozen=True)
class Panels:
    """Boxes in coordinate space: lower and upper corners, (n, dim) each."""

    lower: Floats
    upper: Floats

    @classmethod
    def from_edges(cls, edges: Sequence[Floats]) -> "Panels":
        """The product of consecutive intervals, one list of increasing edges for each axis."""
        lower = np.meshgrid(*(axis[:-1] for axis in edges), indexing="ij")
        upper = np.meshgrid(*(axis[1:] for axis in edges), indexing="ij")
        return cls(np.stack([x.ravel() for x in lower], axis=1), np.stack([x.ravel() for x in upper], axis=1))

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def dim(self) -> int:
        """Number of axes."""
        return int(self.lower.shape[1])

    @property
    def volume(self) -> Floats:
        """(n,) volumes in coordinate space."""
        return np.asarray(np.prod(self.upper - self.lower, axis=1))

    def __getitem__(self, key: NDArray[np.bool_] | NDArray[np.intp]) -> "Panels":
        return Panels(self.lower[key], self.upper[key])

    def nodes_and_weights(self, order: int) -> tuple[Floats, Floats]:
        """Gauss-Legendre nodes (n, order^dim, dim) and weights (n, order^dim) of every panel."""
        unit_nodes, weights = tensor_rule(order, self.dim)
        width = self.upper - self.lower
        return self.lower[:, None, :] + width[:, None, :] * unit_nodes, np.prod(width, axis=1)[:, None] * weights

    def split_every_panel(self, ways: int) -> "Panels":
        """Every panel cut into `ways` equal parts along each axis: ways^dim panels for each, in consecutive rows."""
        steps = np.stack(np.meshgrid(*[np.arange(ways)] * self.dim, indexing="ij"), axis=-1).reshape(-1, self.dim)
        width = (self.upper - self.lower) / ways
        lower = self.lower[:, None, :] + width[:, None, :] * steps
        upper = np.where(steps == ways - 1, self.upper[:, None, :], lower + width[:, None, :])
        return Panels(lower.reshape(-1, self.dim), upper.reshape(-1, self.dim))

    def halve_each_panel_along_its_axis(self, axis: NDArray[np.intp]) -> "Panels":
        """Every panel cut in two along its own axis: 2n panels, the lower halves first."""
        rows = np.arange(len(self))
        middle = 0.5 * (self.lower[rows, axis] + self.upper[rows, axis])
        low_upper, high_lower = self.upper.copy(), self.lower.copy()
        low_upper[rows, axis], high_lower[rows, axis] = middle, middle
        return Panels(np.vstack([self.lower, high_lower]), np.vstack([low_upper, self.upper]))

    def cut_at_points(self, axis: int, points: Floats) -> "Panels":
        """Panels cut in two wherever one of the places lies inside them along the axis."""
        panels = self
        for point in points:
            across = (panels.lower[:, axis] < point) & (point < panels.upper[:, axis])
            below, above = panels[across], panels[across]
            below.upper[:, axis], above.lower[:, axis] = point, point
            panels = panels[~across].concat(below).concat(above)
        return panels

    @property
    def wide_enough_to_split(self) -> NDArray[np.bool_]:
        """(n,) whether a panel is wide enough to be split: well above rounding, relative to the extent of all panels."""
        return np.asarray(np.all(self.upper - self.lower > self.least_divisible_sides, axis=1))

    @property
    def least_divisible_sides(self) -> Floats:
        """(dim,) the side lengths below which a panel is within rounding, relative to the extent of all panels."""
        return np.asarray(_NARROWEST * (self.upper.max(axis=0) - self.lower.min(axis=0)))

    def concat(self, other: "Panels") -> "Panels":
        """These panels and then the others."""
        return Panels(np.vstack([self.lower, other.lower]), np.vstack([self.upper, other.upper]))

    @property
    def coordinates_near_faces(self) -> Floats:
        """(n, 2 dim, dim) places near the middles of the faces of every panel: the lower and the upper face of each axis."""
        steps = np.repeat(np.eye(self.dim), 2, axis=0) * np.tile([_INSIDE - 0.5, 0.5 - _INSIDE], self.dim)[:, None]
        low, high = self.lower[:, None, :], self.upper[:, None, :]
        t = low + (high - low) * (0.5 + steps)
        return np.where((t > low) & (t < high), t, 0.5 * (low + high))  # rounding may reach a face

    def errors_from_jumps_at_faces(self, values: Floats, at_faces: Floats) -> Floats:
        """(..., n) the errors that jumps between the outermost nodes and the faces would cause: no node sees them.

        `values` are those at the nodes (..., n, order^dim), `at_faces` near the middles of faces (..., n, 2 dim).
        """
        order = ORDER[self.dim]
        finite = np.minimum(at_faces, _MOST_AT_A_FACE * values.max(axis=-1, keepdims=True))
        jumps = np.abs(finite - values @ _face_values_matrix(order, self.dim))
        rounding = np.spacing(np.abs(np.stack([self.lower, self.upper], axis=-1)))
        is_resolved = rounding <= _INSIDE * (self.upper - self.lower)[..., None]  # in narrower panels, x is too inexact
        jumps = np.where(is_resolved.reshape(-1, 2 * self.dim), jumps, 0.0)
        return np.asarray(jumps.sum(axis=-1) * self.volume * gauss_rule(order)[0][0])

    def integral_errors(self, values: Floats, order: int, fast: float = _FAST) -> Floats:
        """(..., n) estimated errors of the integrals of functions with values (..., n, order^dim) at `nodes_and_weights(order)`."""
        flat = integral_errors_on_unit_cube(values.reshape(-1, values.shape[-1]), order, self.dim, fast)
        return np.asarray(self.volume * flat.reshape(values.shape[:-1]))


def integral_errors_on_unit_cube(values: Floats, order: int, dim: int, fast: float = _FAST) -> Floats:
    """(n,) estimated errors of the integrals over the unit cube of functions with values (n, order^dim) on `tensor_rule`.

    Coefficients that fall by less than a factor `fast` from c_middle to c_top are assumed to follow a power law; with 0, all are.
    """
    total = np.zeros(len(values))
    if not len(values):
        return total
    peak = float(np.abs(values).max())
    if not peak < _SQUARES:  # so large that squares overflow
        return (
            integral_errors_on_unit_cube(values / peak, order, dim, fast) * peak
            if peak < np.inf
            else np.full(len(values), np.inf)
        )
    cube = values.reshape((len(values),) + (order,) * dim)
    count = max(2, order // 3)
    power_exponent = np.log(2.0) / np.log((order - 0.5) / (order - 0.5 - count))
    for axis in range(1, dim + 1):
        squares = np.square(np.tensordot(cube, _last_legendre_coefficients_matrix(order, 2 * count), axes=(axis, 0)))
        rms = np.sqrt(squares.reshape(len(values), -1, 2 * count).mean(axis=1))  # over the lines along this axis
        top, middle = rms[:, :count].max(axis=1), rms[:, count:].max(axis=1)
        decay = np.divide(top, middle, out=np.ones_like(top), where=middle > top)
        total += top * decay ** np.where(decay > fast, power_exponent, (order + 1) / count)
    return total


@cache
def gauss_rule(order: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return 0.5 * (nodes + 1.0), 0.5 * weights


@cache
def tensor_rule(order: int, dim: int) -> tuple[Floats, Floats]:
    """Nodes (order^dim, dim) and weights (order^dim,) on the unit cube."""
    nodes, weights = gauss_rule(order)
    points = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    masses = np.stack(np.meshgrid(*[weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim).prod(axis=1)
    return points, masses


@cache
def _last_legendre_coefficients_matrix(order: int, count: int) -> Floats:
    """The map (order, count) from values on a line to its Legendre coefficients of the last degrees, the highest first."""
    nodes, weights = gauss_rule(order)
    degrees = np.arange(order - 1, order - 1 - count, -1)
    basis = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, order - 1)[:, degrees]
    return np.ascontiguousarray(weights[:, None] * basis * (2 * degrees + 1))


@cache
def _end_values_matrix(order: int) -> Floats:
    """The map (order, 2) from values on a line to the values of their polynomial near its two ends."""
    nodes, _ = gauss_rule(order)
    basis = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * nodes - 1.0, order - 1))
    ends = np.polynomial.legendre.legvander(2.0 * np.array([_INSIDE, 1.0 - _INSIDE]) - 1.0, order - 1)
    return np.ascontiguousarray((ends @ basis).T)


@cache
def _face_values_matrix(order: int, dim: int) -> Floats:
    """(order^dim, 2 dim): the map from values at a panel's nodes to their polynomial's values near the middles of its faces."""
    nodes, _ = gauss_rule(order)
    basis = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * nodes - 1.0, order - 1))
    at_middle = np.polynomial.legendre.legvander(np.zeros(1), order - 1)[0] @ basis
    columns = []
    for axis in range(dim):
        for at_end in _end_values_matrix(order).T:
            column = np.ones(1)
            for other in range(dim):
                column = np.kron(column, at_end if other == axis else at_middle)
            columns.append(column)
    return np.stack(columns, axis=1)


def subdivide_breaks(breaks: Floats, width: float, most: int = 4096) -> Floats:
    """Increasing breaks with points inserted so that no gap exceeds `width` (or there are `most` gaps in all)."""
    gaps = np.diff(breaks)
    width = max(width, float(gaps.sum()) / most)
    counts = np.maximum(1, np.ceil(gaps / width - 1e-9)).astype(int)
    pieces = [
        np.linspace(low, high, n, endpoint=False) for low, high, n in zip(breaks[:-1], breaks[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, breaks[-1:]])


def refine_panels_and_integrate_reference(
    panels: Panels, element: Element, *, faces: bool = False
) -> tuple[Panels, float, float]:
    """Panels fine enough to evaluate every client on; and the integral of `element(t)`, more accurate than that, with its error.

    `faces`: evaluate near the faces of panels too, for a function that may jump.
    """
    dim = panels.dim
    coarse, *_ = refine_and_integrate_to_tolerance(panels, element, _CLIENTS[dim], 0.1, faces=faces)
    return (coarse, *refine_and_integrate_to_tolerance(coarse, element, _INTEGRAL[dim], 0.0, faces=faces)[1:])


def refine_and_integrate_to_tolerance(
    panels: Panels, element: Element, tolerance: float, fast: float, *, faces: bool = False
) -> tuple[Panels, float, float]:
    """Panels split until the integral of `element(t)` has a relative tolerance, with the integral and its error.

    `fast` as in `integral_errors_on_unit_cube`: 0 for an error estimate that also detects a jump in some derivative.
    """
    fine, _, integrals, errors = refine_and_integrate_by_panel(panels, element, tolerance, fast, faces=faces)
    with np.errstate(over="ignore", invalid="ignore"):
        return fine, float(integrals.sum()), float(errors.sum())


def refine_and_integrate_by_panel(
    panels: Panels, element: Element, tolerance: float, fast: float, *, ends: bool = False, faces: bool = False
) -> tuple[Panels, NDArray[np.intp], Floats, Floats]:
    """The same part by part: the panels, the given panel that each is a part of, their integrals and the errors of these.

    `ends`: on a line, evaluate at the ends of panels too, since a jump between the outermost node and an end shows nowhere else. Masses of
    cells in agreements rely on it. `faces` does the same in every dimension, but not where the function is infinite at the space's end.
    """
    order, most = ORDER[panels.dim], max(2 * len(panels), 1 << 12)
    lowest, highest = panels.lower.min(axis=0), panels.upper.max(axis=0)

    def integrals_and_errors_of_panels(subset: Panels) -> tuple[Floats, Floats]:
        t, weights = subset.nodes_and_weights(order)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # then the integral is infinite or NaN
            values = element(t)
            errors = subset.integral_errors(values, order, fast)
            if ends:
                width = subset.upper - subset.lower
                ends_inside = np.stack([subset.lower + _INSIDE * width, subset.upper - _INSIDE * width], axis=1)
                ends_inside = np.where(
                    (ends_inside > subset.lower[:, None]) & (ends_inside < subset.upper[:, None]),
                    ends_inside,
                    t[:, [0, -1]],
                )
                jumps = np.abs(element(ends_inside) - values @ _end_values_matrix(order)).sum(axis=1)
                errors = errors + gauss_rule(order)[0][0] * width[:, 0] * np.where(np.isfinite(jumps), jumps, 0.0)
            if faces:
                at_faces = element(subset.coordinates_near_faces)
                outer = np.stack([subset.lower <= lowest, subset.upper >= highest], axis=-1).reshape(at_faces.shape)
                at_faces[outer & (at_faces > _MOST_AT_A_FACE * values.max(axis=1)[:, None])] = np.nan  # infinite there
                jumps = subset.errors_from_jumps_at_faces(values, at_faces)
                errors = errors + np.where(np.isfinite(jumps), jumps, 0.0)
            return np.sum(values * weights, axis=1), errors

    integrals, errors = integrals_and_errors_of_panels(panels)
    owner = np.arange(len(panels))
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            total, error = float(integrals.sum()), float(errors.sum())
        if error <= tolerance * total or len(panels) > most or not np.isfinite(total):
            return panels, owner, integrals, errors
        to_split = fewest_panels_to_refine(errors, 0.5 * tolerance * total) & panels.wide_enough_to_split
        if not to_split.any():
            return panels, owner, integrals, errors
        pieces = panels[to_split].split_every_panel(2)
        new_integrals, new_errors = integrals_and_errors_of_panels(pieces)
        owner = np.concatenate([owner[~to_split], np.repeat(owner[to_split], len(pieces) // int(to_split.sum()))])
        panels = panels[~to_split].concat(pieces)
        integrals = np.concatenate([integrals[~to_split], new_integrals])
        errors = np.concatenate([errors[~to_split], new_errors])


def fewest_panels_to_refine(errors: Floats, budget: float) -> NDArray[np.bool_]:
    """The fewest panels to refine so that the errors of the rest add up to at most `budget`."""
    order = np.argsort(errors)
    mask = np.zeros(len(errors), dtype=bool)
    mask[order[np.searchsorted(np.cumsum(errors[order]), budget, side="right") :]] = True
    return mask
