"""Densities from users behind one interface: a function, a scipy distribution of either style, a table, a mixture.

Inside the library a density is `log_density(x)` at points (n, dim), so that a thousand dimensions do not underflow. Users may give a
logarithm too: `family.law(log_density=...)`, or an object with a method `logpdf` (or `log_density`) that takes points (n, dim), in one
dimension (n,), and returns (n,) numbers. Every value of a user's density is checked: a NaN, a negative value or a wrong shape is an error
that names the point. A density need not integrate to one; its users divide by its mass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from discreet._base.showing import short_repr
from discreet.domain import sha256_digest
from discreet.errors import LENGTH, NON_NEGATIVE, DiscreetError, Range
from discreet.families._bands_and_laws import as_floats
from discreet.families._integration import (
    TINY,
    Features,
    IntervalMasses,
    interval_masses_from_cdf_bounds,
    interval_masses_of_lipschitz_density,
    interval_masses_of_tabulated_density,
    narrow_features_of_clients,
)

Floats = NDArray[np.float64]

_LEVELS = np.concatenate([[1e-3, 0.01], np.linspace(0.05, 0.95, 19), [0.99, 0.999]])  # levels of quantiles
_DRAWS = 64
_PIECES = 1 << 16  # short pieces of a line, for a density with a Lipschitz constant
# relative error of both tails of scipy's distributions: above the errors found against 40 digits
_CDF_ERRORS = {
    **dict.fromkeys(("norm", "StandardNormal", "Normal", "uniform", "Uniform", "expon", "laplace", "logistic"), 1e-11),
    **dict.fromkeys(("cauchy", "lognorm", "beta", "gamma", "chi2", "t", "weibull_min"), 1e-9),
}
_CHECKED_SHAPES = Range(1e-3, 1e3)  # shape parameters for which this was tested
_LARGEST_DISTANCE = {"t": 1e150}  # from the location, in scales: scipy squares it, to infinity beyond
_CHECKED_DISTANCES = 1e-300, 1e300  # beyond these, floats round it to 0 or to infinity
_OURS = __name__.partition(".")[0] + "."


class LogDensity(Protocol):
    """The logarithm of a density on R^dim, up to a constant."""

    @property
    def dim(self) -> int: ...
    def log_density(self, x: Floats) -> Floats:
        """(n,) values at points (n, dim); minus infinity where the density is zero."""


class HasLogPdf(Protocol):
    """A user's own distribution, by the logarithm of its density."""

    def logpdf(self, x: Any) -> Any:
        """(n,) values at points (n, dim), in one dimension (n,), up to a constant."""


@runtime_checkable
class Drawable(Protocol):
    """A distribution that can draw from itself."""

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent points (count, dim)."""


def as_density(p: Any, dim: int, name: str = "p") -> LogDensity:
    """A description of a density on R^dim behind the common interface."""
    if callable(getattr(p, "log_density", None)):  # a LogDensity; isinstance would be slow for many clients
        _refuse_other_dimension(getattr(p, "dim", dim), dim, name)
        is_ours = type(p).__module__.startswith(_OURS)
        return cast(LogDensity, p) if is_ours else FunctionDensity(p.log_density, dim, f"{name}.log_density", True)
    if _is_kernel_estimate(p):
        return KernelEstimate(p, dim, name)
    if callable(getattr(p, "logpdf", None)):
        # scipy's distributions on the line do not state their dimension; users' own are tested in use
        p_dim = getattr(p, "dim", 1 if _is_scipy_distribution(p) else dim)
        if isinstance(p_dim, int):
            _refuse_other_dimension(p_dim, dim, name)
        return (
            ScipyDensity(p, dim, name)
            if _has_scipy_draw_method(p)
            else FunctionDensity(p.logpdf, dim, f"{name}.logpdf", True)
        )
    if callable(getattr(p, "pdf", None)):
        return FunctionDensity(p.pdf, dim, f"{name}.pdf")
    owner = getattr(p, "__self__", None)
    if callable(p) and getattr(p, "__name__", "") == "pdf" and callable(getattr(owner, "pdf", None)):
        return as_density(owner, dim, name)  # the method's owner knows more than the method
    if callable(p):
        return FunctionDensity(p, dim, name)
    raise DiscreetError(
        f"{name} = {type(p).__name__} is not a density: pass a function of points, a scipy distribution or a Mixture; "
        "turn records into one with family.law(records=...), a logarithm with family.law(log_density=...)"
    )


class _WrongShapeError(DiscreetError):
    """A function did not return one number for each point."""


class FunctionDensity:
    """A density given as a function of points: rows (n, dim); in one dimension numbers (n,), or rows if it needs them."""

    def __init__(self, function: Callable[[Any], Any], dim: int, name: str, logarithmic: bool = False) -> None:
        self.dim = dim
        self._function = function
        self._name = name
        self._logarithmic = logarithmic

    def log_density(self, x: Floats) -> Floats:
        if self.dim > 1:
            return self._checked_log_densities(self._evaluate_function(x), x)
        try:
            return self._checked_log_densities(self._evaluate_function(x[:, 0]), x)
        except _WrongShapeError:
            try:
                values = self._evaluate_function(x)
            except _WrongShapeError:
                values = None
            if values is None:
                raise
            return self._checked_log_densities(values, x)

    def _evaluate_function(self, points: Floats) -> Floats:
        """One value for each point; otherwise an error that describes what was returned."""
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self._function(points.copy()))  # it may change them in place
                if np.iscomplexobj(values):
                    raise TypeError("its values are complex")
                values = values.astype(np.float64)
        except (TypeError, ValueError, IndexError, OverflowError) as cause:
            raise _WrongShapeError(
                f"{self._name} cannot be evaluated at {len(points)} points of shape {points.shape} ({cause}); "
                "write it with numpy, or wrap it in numpy.vectorize"
            ) from cause
        if values.size == len(points) == 1:
            return values.reshape(1)
        if values.shape != (len(points),):
            raise _WrongShapeError(
                f"{self._name} maps points of shape {points.shape} to {values.shape}; it must give one number for each point"
            )
        return values

    def _checked_log_densities(self, values: Floats, x: Floats) -> Floats:
        self._refuse_bad_function_values(np.isnan(values), values, x, "is not a number")
        if not self._logarithmic:
            self._refuse_bad_function_values(values < 0.0, values, x, "is negative; a density is at least 0")
        self._refuse_bad_function_values(np.isposinf(values), values, x, "is infinite; a density is finite")
        if self._logarithmic:
            return values
        with np.errstate(divide="ignore"):
            return np.log(values)

    def _refuse_bad_function_values(self, bad: NDArray[np.bool_], values: Floats, x: Floats, problem: str) -> None:
        if bad.any():
            first = int(np.argmax(bad))
            raise DiscreetError(f"{self._name}({format_point(x[first])}) = {values[first]:g} {problem}")


class ScipyDensity(FunctionDensity):
    """A frozen scipy.stats distribution, old style (`rvs`) or new (`sample`), in one dimension or more."""

    def __init__(self, distribution: Any, dim: int, name: str = "p") -> None:
        super().__init__(distribution.logpdf, dim, f"{name}.logpdf", logarithmic=True)
        self.distribution = distribution

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        if hasattr(self.distribution, "rvs"):
            points = self.distribution.rvs(size=count, random_state=rng)
        else:
            points = self.distribution.sample(count, rng=rng)
        return np.asarray(points, dtype=np.float64).reshape(count, self.dim)

    def narrow_places(self) -> Features:
        """Its quantiles, with the gaps between them; in more dimensions some draws."""
        return Features.concat(
            (
                _scipy_narrow_places(component, self.dim)
                for component in getattr(self.distribution, "components", [self.distribution])
            ),
            self.dim,
        )

    def mass_between(self, low: Floats, high: Floats) -> float | None:
        """Its mass in the box from low to high, if scipy has a distribution function."""
        if not _is_scipy_distribution(self.distribution):
            return None
        if np.isneginf(low).all() and np.isposinf(high).all():
            return 1.0
        if self.dim > 1:
            return None
        below, above = self.distribution.cdf(low[0]), self.distribution.cdf(high[0])
        if below > 0.5:  # in the upper tail, differences of 1 - cdf keep their digits
            upper_tail = getattr(self.distribution, "sf", None) or self.distribution.ccdf
            return float(upper_tail(low[0]) - upper_tail(high[0]))
        return float(above - below)

    def approximate_interval_masses(self, edges: Floats) -> Floats | None:
        """Differences of its distribution function; None if it has none of its own."""
        if self.dim > 1 or not _has_own_distribution_function(self.distribution):
            return None
        return np.maximum(np.diff(np.asarray(self.distribution.cdf(edges), dtype=np.float64)), 0.0)

    def interval_masses(self, edges: Floats) -> IntervalMasses | None:
        """Its masses between consecutive edges of a line, by its distribution function; None if it has none of its own."""
        return _scipy_interval_masses(self.distribution, edges) if self.dim == 1 else None


class KernelEstimate(FunctionDensity):
    """scipy.stats.gaussian_kde, which takes its points as columns."""

    def __init__(self, estimate: Any, dim: int, name: str) -> None:
        _refuse_other_dimension(estimate.d, dim, name)
        super().__init__(lambda x: estimate.logpdf(x.T), dim, f"{name}.logpdf", logarithmic=True)
        self.estimate = estimate

    def narrow_places(self) -> Features:
        """Its data, with the narrowest width of a kernel."""
        width = np.sqrt(np.linalg.eigvalsh(np.atleast_2d(self.estimate.covariance)).min())
        return Features(np.asarray(self.estimate.dataset.T, dtype=np.float64), np.full(self.estimate.n, width))

    def mass_between(self, low: Floats, high: Floats) -> float | None:
        """Its mass in the box from low to high, if known."""
        if np.isneginf(low).all() and np.isposinf(high).all():
            return 1.0
        return float(self.estimate.integrate_box_1d(low[0], high[0])) if self.dim == 1 else None

    def interval_masses(self, edges: Floats) -> IntervalMasses | None:
        """Its masses between consecutive edges of a line: those of a mixture of Gaussians at its data."""
        from discreet.families._kernel_mixtures import GAUSSIAN, interval_masses_of_mixture  # a circular import

        if self.dim > 1:
            return None
        width = np.full(self.estimate.n, np.sqrt(self.estimate.covariance[0, 0]))
        return interval_masses_of_mixture(GAUSSIAN, self.estimate.weights, self.estimate.dataset[0], width, edges)


class BoundedDensity:
    """A density on a line with a known distribution function or Lipschitz constant.

    A bare function is unknown between the points of evaluation, so the `bound` of a design for it is an estimate. With this class the masses
    of cells are enclosed, and the bound is proved. The proof relies on your statement that the distribution function is right up to `error`,
    or that the density changes by at most `lipschitz` times a distance.

    Args:
        density: a description of the density, for instance a function of points (n,).
        cdf: its distribution function, of points (n,); or any function that differs from it by a constant, or by a factor.
        error: the largest error of a value of `cdf`.
        lipschitz: instead: a Lipschitz constant of the density as given.

    Raises:
        DiscreetError: for neither or both of cdf and lipschitz, or numbers out of range.
    """

    dim = 1

    def __init__(
        self,
        density: Any,
        *,
        cdf: Callable[[Any], Any] | None = None,
        error: float | None = None,
        lipschitz: float | None = None,
    ) -> None:
        if (cdf is None) == (lipschitz is None) or (cdf is None) != (error is None):
            raise DiscreetError("pass either cdf= with error= (how far a value may be off), or lipschitz=")
        if cdf is not None and not callable(cdf):
            raise DiscreetError(f"cdf = {cdf!r} is not a function of points")
        self.density = as_density(density, 1, "density")
        self._cdf = cdf
        self._error = NON_NEGATIVE.check("error", 0.0 if error is None else error)
        self._lipschitz = NON_NEGATIVE.check("lipschitz", 0.0 if lipschitz is None else lipschitz)

    def __repr__(self) -> str:
        argument = f"lipschitz={self._lipschitz:g}" if self._cdf is None else f"cdf=..., error={self._error:g}"
        return f"BoundedDensity(<density>, {argument})"

    def log_density(self, x: Floats) -> Floats:
        return self.density.log_density(x)

    def narrow_places(self) -> Features:
        """The narrow places of the density, if it reports them."""
        return narrow_features_of_clients([self.density], 1)

    def interval_masses(self, edges: Floats) -> IntervalMasses | None:
        """Its masses between consecutive edges of a line, enclosed; None between infinite edges if only a Lipschitz constant is known."""
        if self._cdf is not None:
            values = np.asarray(self._cdf(edges.copy()), dtype=np.float64)
            if values.shape != edges.shape or not np.isfinite(values).all():
                raise DiscreetError(
                    f"cdf maps {edges.size} points to {values.shape}; it must give one finite number for each"
                )
            rise = np.diff(values)
            if (rise < -2.0 * self._error).any():
                index = int(np.argmin(rise))
                raise DiscreetError(
                    f"cdf falls from {edges[index]:g} to {edges[index + 1]:g} by more than error = {self._error:g}; a distribution "
                    "function is non-decreasing"
                )
            return IntervalMasses.from_mass_and_error_bound(
                np.maximum(rise, 0.0), 2.0 * self._error + 2.0**-52 * np.abs(values).max()
            )
        if not np.isfinite(edges).all():
            return None
        parts = np.ceil(_PIECES * np.diff(edges) / (edges[-1] - edges[0])).astype(np.int64)
        owner = np.repeat(np.arange(parts.size), parts)
        first_pieces = np.cumsum(parts) - parts
        width = (np.diff(edges) / parts)[owner]
        middles = edges[owner] + (np.arange(owner.size) - first_pieces[owner] + 0.5) * width
        heights = np.exp(self.density.log_density(middles[:, None]))
        return interval_masses_of_lipschitz_density(heights, width, owner, parts.size, self._lipschitz)


class Tabulated:
    """A density given as a table on a grid, zero outside it.

    `axes` has one increasing array for each axis. If it has one entry more than the table, the entries are edges and the density is constant
    on each cell. If it has as many, they are points and the density is interpolated linearly.

    Args:
        axes: one increasing list for each axis; in one dimension the list itself suffices.
        values: the table, with one axis for each list.

    Raises:
        DiscreetError: for axes that do not increase or do not fit the table, or values that are negative or not finite.
    """

    def __init__(self, axes: Sequence[Any] | NDArray[Any], values: ArrayLike) -> None:
        self.values = as_floats(values, "values")
        try:
            axes = list(axes)
        except TypeError:
            raise DiscreetError(f"axes = {axes!r} is not a list of grid positions for each axis") from None
        grids: list[Any] = [axes] if self.values.ndim == 1 and not any(np.ndim(axis) for axis in axes) else axes
        self.axes = tuple(as_floats(axis, f"axes[{i}]") for i, axis in enumerate(grids))
        self.dim = len(self.axes)
        if self.values.ndim != self.dim:
            raise DiscreetError(f"values has {self.values.ndim} axes for {self.dim} lists of grid positions")
        extra = set()
        for i, axis in enumerate(self.axes):
            if (
                axis.ndim != 1
                or axis.size < 2
                or not (np.abs(axis) <= LENGTH.high).all()
                or not (np.diff(axis) > LENGTH.low).all()
            ):
                raise DiscreetError(
                    f"axes[{i}] is not an increasing list of at least two numbers up to {LENGTH.high:g}"
                )
            extra.add(axis.size - self.values.shape[i])
        if extra not in ({0}, {1}):
            raise DiscreetError(
                f"values has shape {self.values.shape} for axes of lengths {tuple(axis.size for axis in self.axes)}; "
                "give one value for each point, or edges with one entry more than the table has values"
            )
        valid = (self.values >= 0) & (self.values <= LENGTH.high)
        if not valid.all():
            bad = np.unravel_index(int(np.argmin(valid)), self.values.shape)
            raise DiscreetError(f"values{[int(i) for i in bad]} = {self.values[bad]:g} is not in [0, {LENGTH.high:g}]")
        self._constant = extra == {1}

    def __repr__(self) -> str:
        return f"Tabulated(<{' x '.join(map(str, self.values.shape))} values> on {short_repr(self.box)})"

    @property
    def digest(self) -> str:
        """The digest of the axes' lengths, the positions and the values, as 64-bit floats in little-endian order."""
        sizes = f"{[axis.size for axis in self.axes]} {list(self.values.shape)}".encode()
        return sha256_digest(sizes + b"".join(array.astype("<f8").tobytes() for array in (*self.axes, self.values)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tabulated) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def box(self) -> list[tuple[float, float]]:
        """The grid's extent."""
        return [(float(axis[0]), float(axis[-1])) for axis in self.axes]

    def narrow_places(self) -> Features:
        """The middles of its cells, with their shortest sides."""
        middles = np.stack(np.meshgrid(*(0.5 * (a[1:] + a[:-1]) for a in self.axes), indexing="ij"), axis=-1)
        sides = np.stack(np.meshgrid(*(np.diff(a) for a in self.axes), indexing="ij"), axis=-1)
        return Features(middles.reshape(-1, self.dim), 0.5 * sides.reshape(-1, self.dim).min(axis=1))

    def mass_between(self, low: Floats, high: Floats) -> float:
        """Its mass in the box from low to high (dim,), whose ends may be infinite."""
        mass = self.values
        for axis, start, stop in zip(self.axes, low, high, strict=True):
            mass = np.tensordot(
                _table_basis_integrals_along_axis(axis, float(start), float(stop), self._constant), mass, axes=(0, 0)
            )
        return float(mass)

    def interval_masses(self, edges: Floats) -> IntervalMasses | None:
        """Its masses between consecutive edges of a line, enclosed."""
        return (
            interval_masses_of_tabulated_density(self.axes[0], self.values, edges, constant=self._constant)
            if self.dim == 1
            else None
        )

    def pdf(self, x: ArrayLike) -> Floats:
        """The density at points (n,) or (n, dim)."""
        return np.exp(self.log_density(as_points(x, self.dim))).reshape(shape_of_point_values(x, self.dim))

    def log_density(self, x: Floats) -> Floats:
        inside = np.ones(len(x), dtype=bool)
        corners, shares = [], []
        for i, axis in enumerate(self.axes):
            inside &= (x[:, i] >= axis[0]) & (x[:, i] <= axis[-1])
            cell = np.clip(np.searchsorted(axis, x[:, i], side="right") - 1, 0, axis.size - 2)
            corners.append(cell)
            shares.append(np.clip((x[:, i] - axis[cell]) / (axis[cell + 1] - axis[cell]), 0.0, 1.0))
        if self._constant:
            values = self.values[tuple(corners)]
        else:
            values = np.zeros(len(x))
            for corner in np.ndindex(*(2,) * self.dim):
                share = np.prod([s if up else 1.0 - s for up, s in zip(corner, shares, strict=True)], axis=0)
                values = values + share * self.values[tuple(c + up for c, up in zip(corners, corner, strict=True))]
        with np.errstate(divide="ignore"):
            return np.log(np.where(inside, values, 0.0))


def as_points(x: ArrayLike, dim: int, name: str = "x", *, finite: bool = True) -> Floats:
    """Points as (n, dim): from (n, dim), or (n,) numbers in one dimension; a single point is one row."""
    array = as_floats(x, name)
    if finite and not (np.abs(array) <= LENGTH.high).all():
        bad = array.ravel()[int(np.argmin(np.abs(array) <= LENGTH.high))]
        raise DiscreetError(f"{name} holds {bad:g}, which is not in [{-LENGTH.high:g}, {LENGTH.high:g}]; leave it out")
    if dim == 1 and (array.ndim == 0 or array.shape[-1] != 1 or array.ndim == 1):
        return array.reshape(-1, 1)
    if array.ndim == 0 or array.shape[-1] != dim:
        raise DiscreetError(f"{name} has shape {array.shape}; points in dimension {dim} have it as their last axis")
    return array.reshape(-1, dim)


def shape_of_point_values(x: ArrayLike, dim: int) -> tuple[int, ...]:
    """The shape of one value for each point: that of x in one dimension, all but the last axis in more."""
    shape = np.shape(x)
    return shape if dim == 1 and (len(shape) < 2 or shape[-1] != 1) else shape[:-1]


def format_point(point: Floats) -> str:
    """A point as text: 0.5, or [0.5, 1]; long ones cut short."""
    entries = [f"{entry:g}" for entry in point[:4]] + (["..."] if len(point) > 4 else [])
    return entries[0] if len(point) == 1 else f"[{', '.join(entries)}]"


def _table_basis_integrals_along_axis(axis: Floats, start: float, stop: float, constant: bool) -> Floats:
    """The integrals from start to stop along one axis of a table: of the cells' indicators, or of the points' hat functions."""
    low, high = np.clip(start, axis[:-1], axis[1:]), np.clip(stop, axis[:-1], axis[1:])
    lengths = np.maximum(high - low, 0.0)
    if constant:
        return np.asarray(lengths)
    towards_end = lengths * (0.5 * (low + high) - axis[:-1]) / np.diff(axis)
    return np.asarray(np.append(lengths - towards_end, 0.0) + np.insert(towards_end, 0, 0.0))


def _scipy_narrow_places(distribution: Any, dim: int) -> Features:
    """The places of a scipy distribution's mass: between its quantiles, or around draws if it has no quantiles."""
    if not _is_scipy_distribution(distribution):
        return Features(np.empty((0, dim)), np.empty(0))
    quantile = getattr(distribution, "ppf", None) or getattr(distribution, "icdf", None)
    if dim == 1 and quantile is not None:
        points = np.asarray(quantile(_LEVELS), dtype=np.float64)
        gaps = np.diff(points)
        scales = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    else:
        points = ScipyDensity(distribution, dim).draw(_DRAWS, np.random.default_rng(0))
        low, high = np.quantile(points, [0.25, 0.75], axis=0)
        scales = np.full(_DRAWS, 0.5 * float((high - low).min()))
    return Features(points.reshape(-1, dim), scales)


def _has_own_distribution_function(distribution: Any) -> bool:
    """Whether a scipy distribution, or every component of a mixture, has a distribution function that is not an integral of its density."""
    if not _is_scipy_distribution(distribution):
        return False
    if hasattr(distribution, "components"):
        return all(_has_own_distribution_function(component) for component in distribution.components)
    base = getattr(distribution, "dist", distribution)
    return not hasattr(base, "_cdf") or type(base)._cdf is not scipy.stats.rv_continuous._cdf


def _has_tested_parameters(distribution: Any, base: Any, name: str, edges: Floats) -> bool:
    """Whether a frozen distribution's shapes, and the distances of the edges from its location, are in the tested ranges.

    Distances are those in scales. Distributions without shapes, location and scale of their own are tested at all edges.
    """
    shape_count, names = getattr(base, "numargs", 0), (getattr(base, "shapes", None) or "").split(", ")
    arguments, keywords = getattr(distribution, "args", ()), getattr(distribution, "kwds", {})
    shapes = (*arguments[:shape_count], *(keywords[name] for name in names if name in keywords))
    location, scale = (
        float(keywords.get(name, arguments[shape_count + index] if len(arguments) > shape_count + index else default))
        for index, (name, default) in enumerate([("loc", 0.0), ("scale", 1.0)])
    )
    with np.errstate(over="ignore", under="ignore"):
        distances = np.abs(edges[np.isfinite(edges) & (edges != location)] - location) / scale
    least, most = _CHECKED_DISTANCES[0], _LARGEST_DISTANCE.get(name, _CHECKED_DISTANCES[1])
    return all(float(shape) in _CHECKED_SHAPES for shape in shapes) and bool(
        ((distances >= least) & (distances <= most)).all()
    )


def _scipy_interval_masses(distribution: Any, edges: Floats) -> IntervalMasses | None:
    """The masses of a scipy distribution between edges, by its distribution function; None if it has none of its own."""
    if not _has_own_distribution_function(distribution):
        return None
    if hasattr(distribution, "components"):
        parts = [_scipy_interval_masses(component, edges) for component in distribution.components]
        known_parts = [part for part in parts if part is not None]
        weights = np.asarray(distribution.weights, dtype=np.float64)
        mass, low, high = (
            weights @ np.stack([getattr(part, side) for part in known_parts]) for side in ("mass", "low", "high")
        )
        rounding = 2.0**-50 * (len(parts) + 4)
        is_proved = all(part.is_proved for part in known_parts)
        return IntervalMasses(mass, low * (1.0 - rounding), high * (1.0 + rounding), is_proved)
    base = getattr(distribution, "dist", distribution)
    name = str(getattr(base, "name", type(base).__name__))
    ends = np.array([*distribution.support(), distribution.median()], dtype=np.float64)
    margin = 16.0 * 2.0**-53 * (np.abs(edges) + np.abs(ends[np.isfinite(ends)]).sum())
    before, after = edges - margin, edges + margin
    error = (
        _CDF_ERRORS.get(name)
        if _is_scipy_distribution(base)
        and _has_tested_parameters(distribution, base, name, np.concatenate([before, after]))
        else None
    )
    upper_tail = getattr(distribution, "sf", None) or distribution.ccdf
    with np.errstate(all="ignore"):  # scipy's own overflows
        below = np.asarray(distribution.cdf(before)), np.asarray(distribution.cdf(after))
        above = np.asarray(upper_tail(after)), np.asarray(upper_tail(before))
        at_edges = np.asarray(distribution.cdf(edges)), np.asarray(upper_tail(edges))
    masses = interval_masses_from_cdf_bounds(below, above, error or 0.0, is_proved=error is not None)
    best = np.where(at_edges[0][:-1] > 0.5, at_edges[1][:-1] - at_edges[1][1:], np.diff(at_edges[0]))
    overlaps = (after[1:] >= ends[0]) & (before[:-1] <= ends[1])
    return replace(masses, mass=np.clip(best, masses.low, masses.high), high=masses.high + TINY * overlaps)


def _is_scipy_distribution(p: Any) -> bool:
    """Whether the distribution's methods are scipy's own."""
    return type(p).__module__.startswith("scipy.stats")


def _refuse_other_dimension(p_dim: int, dim: int, name: str) -> None:
    """Reject a distribution of another dimension than the family's."""
    if p_dim != dim:
        raise DiscreetError(f"{name} is a law in dimension {p_dim}, the family lives in dimension {dim}")


def _has_scipy_draw_method(p: Any) -> bool:
    """Whether it has one of scipy's two methods for drawing."""
    return callable(getattr(p, "rvs", None)) or callable(getattr(p, "sample", None))


def _is_kernel_estimate(p: Any) -> bool:
    """scipy.stats.gaussian_kde, which takes its points as columns."""
    return hasattr(p, "dataset") and hasattr(p, "covariance_factor")
