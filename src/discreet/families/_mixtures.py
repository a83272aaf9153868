"""`GaussianMixtures` and `LaplaceMixtures`: mixtures of one kernel with bounded centres [paper, Section 3.2, Apps F.2 and F.3].

Gaussian, |centre| <= rho, covariance s^2 I: the largest density of any member at x is

    h~(x) = (2 pi s^2)^(-n/2) exp(-max(0, |x| - rho)^2 / (2 s^2)) / Z,     so 0 <= p <= h~ and c2 = integral of h~

with Z = 1 on R^n, and on a box the smallest mass that any admissible centre leaves inside. In two and three dimensions a search over centres
looks for it, and a bound proves it (`discreet.families._kernel_mixtures`); where the search missed it, Z is the bound. On R^n, in polar
coordinates,

    c2 = (2 pi s^2)^(-n/2) 2 pi^(n/2)/Gamma(n/2) [ rho^n/n + sum_{j<n} C(n-1,j) rho^(n-1-j) 2^((j-1)/2) s^(j+1) Gamma((j+1)/2) ]

and its terms also give a way to draw from h: a radius in the ball, or rho + s sqrt(chi2_{j+1}), in a uniform direction.

Laplace, |centre|_1 <= rho, scale s along each axis: |x - c|_1 and |x|_1 differ by at most rho. So around the public distribution h =
Laplace(0, s) the band is e^(-rho/s) <= p/h <= e^(rho/s) in every dimension alike.

Mixtures are only a part of that band. The paper's formula is an upper bound for them, and no closed form of their minimax risk is known
[paper, Section 5]. `worst_members` is the kernel that the optimal sampler serves worst, where that is proved.

**Worst members.** The worst member is a single kernel, and more spread of R = dP/dmu is worse (`discreet.families._bands_and_laws`). So it
remains to show where G(t) = integral of (p - t h)_+ is largest, for every t at once.

*Gaussian kernels N(c, s^2 I) on R^n, or on an interval symmetric about 0 in one dimension*: h is symmetric and non-increasing in |x|. Move c
outwards along e = c/|c|. By the envelope theorem dG/dc is the integral of the score (x - c) e/s^2 times p over A = {p > t h}. Reflect each
line along e at c: p is the same at c + w e and c - w e while h is no larger at the first. So if c - w e is in A then so is c + w e, and the
integral is not negative. On an interval [-a, a] the score is x - m with m the mean of the truncated kernel, m <= c for c >= 0. A is an
interval [l, u], and either u = a, or u - c >= c - l; in both cases the mean of P over A is at least m. Hence G grows with |c|: **the worst
member is one kernel at distance `radius`.**

*Laplace kernels with |c|_1 <= radius on R^n*: along one axis the same reflection shows that G grows with |c_i|, so |c|_1 = radius. Shift mass
from c_2 to c_1 >= c_2. With y = x - c, dG is proportional to P(A, y_1 > 0 > y_2) - P(A, y_2 > 0 > y_1). On the first event A says that -2 y_2
<= c_1 + c_2 - t' or t' <= c_1 - c_2, on the second the same of y_1 with t' <= c_2 - c_1, which is rarer. So G grows: **the worst member is
one kernel at a corner of the ball**, and R depends on one coordinate alone, in every dimension.

In other cases (boxes in several dimensions, intervals off centre, Laplace kernels on a box) nothing is proved, and the family names no worst
member.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from discreet._base.quadrature import Panels, refine_panels_and_integrate_reference, subdivide_breaks
from discreet._base.showing import short_repr
from discreet.errors import LENGTH, POSITIVE, DiscreetError, ImpossibleError, check_choice, check_count
from discreet.families._bands_and_laws import (
    MembersOnAtoms,
    WorstMembers,
    bounds_for_normalised_reference,
    members_proportional_to_ratios,
)
from discreet.families._continuous import (
    LARGEST_CHARTED,
    ContinuousFamily,
    box_as_axis_intervals,
    error_for_class_of_singular_laws,
    refuse_dimension_without_chart,
)
from discreet.families._integration import Chart, Polar, Spherical, cartesian_chart
from discreet.families._kernel_mixtures import (
    GAUSSIAN,
    LAPLACE,
    Mixture,
    MixtureKernel,
    laplace_cdf,
    lower_bound_of_log_least_mass,
)

Floats = NDArray[np.float64]
_TAIL = np.array([0.0, 1.0, 2.0, 3.0, 4.5, 6.5, 9.5])  # in standard deviations; the rest has mass 1e-21
# a mass near 1 of the Laplace distribution function in which there are fewer than 64 floats: beyond 32 scales
_FEW_DRAWS = 64 * 2.0**-53
_EXPONENTIAL_TAIL = np.array([0.0, 1.0, 2.0, 4.0, 7.0, 11.0, 16.0, 22.0, 30.0, 40.0])  # in scales; mass 1e-18 is left
_ROUNDING = 1e-12
PROVED, SEARCHED = "proved", "searched"  # normalisers of Gaussian mixtures on a box
_AGREEING = 1e-6  # of the logarithms of two least masses that count as one
# in scales, from where kernels vary
_NEAR = np.concatenate([np.arange(0.0, 10.0, 0.5), [10.0, 12.0, 16.0, 24.0, 40.0]])
_FARTHEST = 10.0  # in scales; the rest has mass 1e-23
_TINY = 1e-300
_ACROSS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.5, 12.0])  # in widths of an angle's distribution
_LINE_NODES, _RADIAL_NODES, _ANGLE_NODES = 16, 8, 8


class _Mixtures(ContinuousFamily):
    """The common parts of both kernels: a radius, a scale, an optional box; and members recognised by their parameters."""

    kernel: MixtureKernel
    normaliser: str | None = None
    _tail: float

    def __init__(self, dim: int, radius: float, scale: float, box: Any) -> None:
        self.dim = check_count("dim", dim)
        for name, value, singular in (("radius", radius, math.inf), ("scale", scale, 0.0)):
            if isinstance(value, (int, float)) and value == singular:
                raise error_for_class_of_singular_laws(f"{name} = {value:g}", f"take {name} in {POSITIVE}")
        self.radius = POSITIVE.check("radius", radius, "give the largest distance of a centre from the origin")
        self.scale = POSITIVE.check("scale", scale, "give the width of one component")
        for name, length in (("radius", self.radius), ("scale", self.scale)):
            LENGTH.check(name, length, "measure in other units")
        self.box = None if box is None else box_as_axis_intervals(box, self.dim)
        reach = self.radius + self.scale * self._tail
        if self.box is not None and any(low >= reach or high <= -reach for low, high in self.box):
            raise DiscreetError(
                f"box = {self.box} holds almost nothing of the reference, which lies within {reach:g} of the origin"
            )

    @property
    def contains_whole_band(self) -> bool:
        """False: mixtures are only a part of the band, so the formula for the band is an upper bound for them."""
        return False

    def mixture(self, weights: ArrayLike, means: ArrayLike) -> Mixture:
        """The member with these weights and centres, restricted to the family's box if it has one."""
        member = Mixture(weights, means, self.scale, kernel=self.kernel)
        if not self.certainly_contains(member):
            largest = float(self.kernel.norm_of_points(member.means).max())
            raise DiscreetError(
                f"means reach a distance of {largest:g} from the origin in dimension {member.dim}; "
                f"{self!r} allows {self.radius:g} in dimension {self.dim}"
            )
        return member

    def certainly_contains(self, p: Any) -> bool:
        return (
            isinstance(p, Mixture)
            and p.dim == self.dim
            and p.kernel == self.kernel
            and bool((np.abs(p.scales / self.scale - 1.0) <= _ROUNDING).all())
            and bool((self.kernel.norm_of_points(p.means) <= self.radius * (1.0 + _ROUNDING)).all())
        )

    def _points_are_inside_box(self, x: Floats) -> NDArray[np.bool_]:
        assert self.box is not None
        low, high = np.array(self.box).T
        return np.asarray(np.all((x >= low) & (x <= high), axis=1))

    def __repr__(self) -> str:
        box = "" if self.box is None else f", box={short_repr(self.box)}"
        normaliser = f", normaliser={SEARCHED!r}" if self.normaliser == SEARCHED else ""
        return f"{type(self).__name__}(dim={self.dim}, radius={self.radius:g}, scale={self.scale:g}{box}{normaliser})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Mixtures) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def _comparison_key(self) -> tuple[Any, ...]:
        box = None if self.box is None else tuple(self.box)
        return (type(self), self.dim, self.radius, self.scale, box, self.normaliser)


@final
class GaussianMixtures(_Mixtures):
    """Mixtures of N(centre, scale^2 I) with |centre| <= radius on R^dim, or restricted to a box (up to dimension 3).

    Args:
        dim: the dimension of the space.
        radius: the largest Euclidean distance of a centre from the origin.
        scale: the standard deviation of one component along each axis.
        box: None for all of R^dim, one (low, high) for every axis, or a list with one for each.
        normaliser: leave it out. "searched" is the normaliser of samplers and agreements that were made before least masses in a box
            were proved: on some boxes in 2 or 3 dimensions it is too large, and members may exceed the upper bound. "proved" takes the
            proved one also where the search found it; agreements say so where it differs.

    Raises:
        DiscreetError: for lengths out of range, or a box that contains almost nothing of some member.
        ImpossibleError: for a class so wide that no private sampler is of use.
    """

    kernel = GAUSSIAN
    _tail = float(_TAIL[-1])

    def __init__(
        self,
        dim: int = 1,
        *,
        radius: float = 1.0,
        scale: float = 1.0,
        box: Any = None,
        normaliser: str | None = None,
    ) -> None:
        super().__init__(dim, radius, scale, box)
        if self.box is not None and self.dim > LARGEST_CHARTED:
            raise DiscreetError(
                f"box is supported up to dimension {LARGEST_CHARTED}, not {self.dim}; leave it out, or use LaplaceMixtures"
            )
        if normaliser is not None:
            check_choice("normaliser", normaliser, (PROVED, SEARCHED))
        self.normaliser, self._log_least_mass_in_box = self._choose_normaliser_and_least_mass(normaliser)
        self._log_upper = self._log_mass_of_envelope()
        if self._log_upper > 700.0:
            raise ImpossibleError(
                f"in dimension {self.dim} the class is too wide to be useful: with c2 = e^{self._log_upper:.0f}, every "
                "epsilon-LDP sampler has nearly the largest possible worst-case divergence. Use LaplaceMixtures or a "
                "DensityBand around a public law. Their bounds need not grow with the dimension"
            )
        self.bounds = bounds_for_normalised_reference(0.0, 1.0, math.exp(self._log_upper))

    @property
    def worst_members(self) -> WorstMembers | None:
        """One kernel at distance `radius`, on all of R^dim or on an interval about 0; None where nothing is proved."""
        radius = self.radius / self.scale
        if self.box is None:
            if self.dim == 1:
                return discretiser_of_worst_gaussian_on_line(radius, self._log_upper, None)
            return discretiser_of_worst_gaussian_in_space(self.dim, radius, self._log_upper)
        low, high = self.box[0]
        if self.dim > 1 or low != -high or high < self.radius:
            return None
        return discretiser_of_worst_gaussian_on_line(radius, self._log_upper, (low / self.scale, high / self.scale))

    def log_reference(self, x: Floats) -> Floats:
        log_h = self._log_envelope(x) - self._log_upper
        return log_h if self.box is None else np.where(self._points_are_inside_box(x), log_h, -np.inf)

    def _log_envelope(self, x: Floats) -> Floats:
        """log h~, not cut off at the box."""
        excess = np.maximum(0.0, GAUSSIAN.norm_of_points(x) - self.radius) / self.scale
        return np.asarray(self._log_envelope_height - 0.5 * np.square(excess))

    @property
    def _log_envelope_height(self) -> float:
        """log of the largest value of h~, its value within the radius."""
        return GAUSSIAN.log_kernel_at_centre(self.dim) - self.dim * math.log(self.scale) - self._log_least_mass_in_box

    def _choose_normaliser_and_least_mass(self, normaliser: str | None) -> tuple[str | None, float]:
        """The normaliser, None where there is but one; and log of the smallest mass that an admissible centre leaves in the box."""
        if self.box is None:
            return None, 0.0
        low, high = np.array(self.box).T / self.scale
        radius = self.radius / self.scale
        log_searched = _search_log_least_mass(low, high, radius)
        if self.dim == 1:
            return None, log_searched
        log_proved = lower_bound_of_log_least_mass(low, high, radius)
        is_too_large = log_searched > log_proved + _AGREEING + _rounding_of_log_masses(low, high, radius)
        if normaliser == PROVED or (is_too_large and normaliser is None):
            return PROVED, log_proved
        return SEARCHED if is_too_large else None, log_searched

    def _log_mass_of_envelope(self) -> float:
        if self.box is None:
            return self._log_envelope_height + float(scipy.special.logsumexp(self._log_terms_of_radial_integral))
        if self.dim == 1:
            return self._log_envelope_height + math.log(self._envelope_integrals_of_pieces.sum())
        start = Panels.from_edges(self.chart.first_panel_edges)

        def density_in_coordinates(t: Floats) -> Floats:  # relative to its largest value, so that it cannot overflow
            return np.exp(self._log_envelope(t.reshape(-1, self.dim)) - self._log_envelope_height).reshape(t.shape[:-1])

        self.panels, total, _ = refine_panels_and_integrate_reference(start, density_in_coordinates)
        return self._log_envelope_height + math.log(total)

    @cached_property
    def _log_terms_of_radial_integral(self) -> Floats:
        """Logarithms of the terms that add up to the integral of exp(-max(0, |x| - rho)^2 / (2 s^2)) over R^n; the ball's is first."""
        n, j = self.dim, np.arange(self.dim)
        sphere = math.log(2.0) + 0.5 * n * math.log(math.pi) - float(scipy.special.gammaln(n / 2))
        log_rho, log_scale = math.log(self.radius), math.log(self.scale)
        choose = scipy.special.gammaln(n) - scipy.special.gammaln(j + 1) - scipy.special.gammaln(n - j)
        shells = (
            choose
            + (n - 1 - j) * log_rho
            + (j - 1) / 2 * math.log(2.0)
            + (j + 1) * log_scale
            + scipy.special.gammaln((j + 1) / 2)
        )
        return np.asarray(sphere + np.concatenate([[n * log_rho - math.log(n)], shells]))

    @cached_property
    def _envelope_integrals_of_pieces(self) -> Floats:
        """In one dimension with a box: the integrals of the unnormalised envelope left of, inside and right of the radius."""
        assert self.box is not None
        (low, high), rho, s = self.box[0], self.radius, self.scale
        middle = max(0.0, min(high, rho) - max(low, -rho))
        left = math.exp(GAUSSIAN.log_mass_between((low + rho) / s, min(0.0, (high + rho) / s))) if low < -rho else 0.0
        right = math.exp(GAUSSIAN.log_mass_between(max(0.0, (low - rho) / s), (high - rho) / s)) if high > rho else 0.0
        return np.array([left * s * math.sqrt(2 * math.pi), middle, right * s * math.sqrt(2 * math.pi)])

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        if self.box is None:
            return self._draw_on_whole_space(count, rng)
        if self.dim == 1:
            return self._draw_on_interval(count, rng)
        blocks: list[Floats] = []
        missing, try_count = count, 0
        while missing > 0:
            x = self._draw_accepted_points(max(2 * missing, 1024), rng)
            try_count += len(x)
            blocks.append(x[:missing])
            missing -= len(blocks[-1])
            if try_count > 10**7 and try_count > 10**5 * (count - missing):
                raise DiscreetError(f"box = {self.box} holds almost nothing of {self!r}; move it nearer to the origin")
        return np.concatenate(blocks)

    def _draw_accepted_points(self, tries: int, rng: np.random.Generator) -> Floats:
        """The accepted points of that many tries: drawn on R^dim, or on the box if that is smaller."""
        assert self.box is not None
        low, high = np.array(self.box).T
        if np.log(high - low).sum() >= scipy.special.logsumexp(self._log_terms_of_radial_integral):
            x = self._draw_on_whole_space(tries, rng)
            return x[self._points_are_inside_box(x)]
        x = low + (high - low) * rng.random((tries, self.dim))
        return np.asarray(x[np.log(rng.random(tries)) < self._log_envelope(x) - self._log_envelope_height])

    def _draw_on_whole_space(self, count: int, rng: np.random.Generator) -> Floats:
        """The radius by its terms, the direction uniform."""
        shares = np.exp(
            self._log_terms_of_radial_integral - scipy.special.logsumexp(self._log_terms_of_radial_integral)
        )
        term = rng.choice(self.dim + 1, size=count, p=shares / shares.sum())
        inside = self.radius * rng.random(count) ** (1.0 / self.dim)
        outside = self.radius + self.scale * np.sqrt(rng.chisquare(np.maximum(term, 1)))
        direction = rng.standard_normal((count, self.dim))
        direction *= (np.where(term == 0, inside, outside) / GAUSSIAN.norm_of_points(direction))[:, None]
        return direction

    def _draw_on_interval(self, count: int, rng: np.random.Generator) -> Floats:
        """One dimension with a box: a piece by its length, then by inversion."""
        assert self.box is not None
        (low, high), rho, s = self.box[0], self.radius, self.scale
        piece = rng.choice(
            3, size=count, p=self._envelope_integrals_of_pieces / self._envelope_integrals_of_pieces.sum()
        )
        uniform = rng.random(count)
        middle = max(low, -rho) + uniform * max(0.0, min(high, rho) - max(low, -rho))
        left = -rho + s * _draw_truncated_normal((low + rho) / s, min(0.0, (high + rho) / s), uniform)
        right = rho - s * _draw_truncated_normal((rho - high) / s, min(0.0, (rho - low) / s), uniform)
        return np.asarray(np.clip(np.choose(piece, [left, middle, right]), low, high)[:, None])

    @cached_property
    def chart(self) -> Chart:
        rho, s = self.radius, self.scale
        if self.box is not None or self.dim == 1:
            outermost = rho + s * _TAIL[-1]
            default_box = [(-outermost, outermost)] * self.dim
            edges = np.concatenate([-rho - s * _TAIL[::-1], [0.0], rho + s * _TAIL])
            return cartesian_chart(self.box or default_box, edges, np.array([-rho, 0.0, rho]), s)
        refuse_dimension_without_chart(self.dim)
        outer = rho + s * _TAIL
        # r^(n-1) exp(-(r - rho)^2/(2 s^2)) has its mode where r (r - rho) = (n - 1) s^2
        mode = 0.5 * (rho + math.sqrt(rho * rho + 4.0 * (self.dim - 1) * s * s))
        radii = np.array([0.0, rho, mode, outer[-1]])
        radius_edges = subdivide_breaks(np.concatenate([[0.0], outer]), s if self.dim == 2 else 1.5 * s, 64)
        angles = np.linspace(0.0, 2.0 * math.pi, 1 + 2 * math.ceil(min(32.0, math.pi * (rho + s) / (1.5 * s))))
        angle_breaks = np.array([0.0, math.pi, 2.0 * math.pi])
        if self.dim == 2:
            return Polar((radii, angle_breaks), (radius_edges, angles))
        pole_breaks = np.array([0.0, 0.5 * math.pi, math.pi])
        return Spherical(
            (radii, pole_breaks, angle_breaks), (radius_edges, subdivide_breaks(pole_breaks, float(angles[1])), angles)
        )


@final
class LaplaceMixtures(_Mixtures):
    """Mixtures of Laplace kernels (independent along each axis) with |centre|_1 <= radius on R^dim, or restricted to a box.

    The reference is the Laplace distribution at the origin; radius/scale alone decides the trade-off, in every dimension.

    Args:
        dim: the dimension of the space.
        radius: the largest sum of the absolute coordinates of a centre.
        scale: the mean distance of a component from its centre along each axis.
        box: None for all of R^dim, one (low, high) for every axis, or a list with one for each.

    Raises:
        DiscreetError: for lengths out of range, or a box that contains almost nothing of some member.
    """

    kernel = LAPLACE
    _tail = float(_EXPONENTIAL_TAIL[-1])

    def __init__(self, dim: int = 1, *, radius: float = 1.0, scale: float = 1.0, box: Any = None) -> None:
        super().__init__(dim, radius, scale, box)
        ratio = self.radius / self.scale
        if ratio > 700.0:
            raise DiscreetError(f"radius/scale = {ratio:g} is not in (0, 700]: c2 = e^(radius/scale) would overflow")
        if self.box is None:
            least, most = -ratio, ratio
        else:
            low, high = np.array(self.box).T
            at_zero = LAPLACE.log_mass_between(low / self.scale, high / self.scale)
            # log mass is concave in the centre: least at a vertex of the ball; along each axis greatest near the box's middle
            ends = np.array(
                [
                    LAPLACE.log_mass_between((low - c) / self.scale, (high - c) / self.scale)
                    for c in (-self.radius, self.radius)
                ]
            )
            middle = np.clip(np.nan_to_num(0.5 * (low + high), nan=0.0), -self.radius, self.radius)
            at_best = LAPLACE.log_mass_between((low - middle) / self.scale, (high - middle) / self.scale)
            least = -ratio - float((at_best - at_zero).sum())
            most = ratio - float((ends - at_zero).min())
        if not most <= 700.0:
            raise DiscreetError(
                f"c2 = e^{most:g} would overflow: the box holds almost nothing of some members; widen it"
            )
        self.bounds = bounds_for_normalised_reference(math.exp(least), math.exp(most))

    @property
    def worst_members(self) -> WorstMembers | None:
        """One kernel at a corner of the ball, on all of R^dim; None on a box."""
        return discretiser_of_worst_laplace(self.radius / self.scale) if self.box is None else None

    def log_reference(self, x: Floats) -> Floats:
        log_h = self._log_reference_height - LAPLACE.norm_of_points(x) / self.scale
        return log_h if self.box is None else np.where(self._points_are_inside_box(x), log_h, -np.inf)

    @cached_property
    def _log_reference_height(self) -> float:
        height = LAPLACE.log_kernel_at_centre(self.dim) - self.dim * math.log(self.scale)
        if self.box is None:
            return height
        low, high = np.array(self.box).T / self.scale
        return height - float(LAPLACE.log_mass_between(low, high).sum())

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        if self.box is None:
            return self.scale * rng.laplace(size=(count, self.dim))
        low, high = np.array(self.box).T / self.scale
        # mirrored where the distribution function has no digits left, and nowhere else: agreements rely on the same points
        is_mirrored = (low > 0.0) & (laplace_cdf(high) - laplace_cdf(low) < _FEW_DRAWS)
        low, high = np.where(is_mirrored, -high, low), np.where(is_mirrored, -low, high)
        below, above = laplace_cdf(low), laplace_cdf(high)
        uniform = below + (above - below) * rng.random((count, self.dim))
        x = np.where(uniform < 0.5, np.log(2.0 * uniform), -np.log(2.0 * (1.0 - uniform)))
        return np.clip(x, low, high) * np.where(is_mirrored, -self.scale, self.scale)

    @cached_property
    def chart(self) -> Chart:
        refuse_dimension_without_chart(self.dim)
        tail = _EXPONENTIAL_TAIL if self.dim < 3 else _EXPONENTIAL_TAIL[[0, 2, 4, 6, 9]]
        reach = self.radius + self.scale * tail
        edges = np.concatenate([-reach[::-1], [0.0], reach])
        default_box = [(-float(reach[-1]), float(reach[-1]))] * self.dim
        return cartesian_chart(self.box or default_box, edges, np.array([0.0]), self.scale)


def _search_log_least_mass(low: Floats, high: Floats, radius: float) -> float:
    """log of the least mass that a search over centres finds in a box; lengths in scales. Agreements made before it was proved rely on it."""
    dim = low.size

    def log_mass_in_box_towards(direction: Floats) -> float:
        centre = radius * direction / np.linalg.norm(direction)
        return float(GAUSSIAN.log_mass_between(low - centre, high - centre).sum())

    # log mass is concave in the centre, so its minimum over the ball lies on the sphere
    corners = np.stack(np.meshgrid(*[(-1.0, 0.0, 1.0)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    starts = corners[np.any(corners != 0.0, axis=1)]
    best = min(starts, key=log_mass_in_box_towards)
    if dim == 1:
        return log_mass_in_box_towards(best)
    optimum = scipy.optimize.minimize(
        lambda v: log_mass_in_box_towards(v) if np.any(v) else 0.0,
        best,
        method="Nelder-Mead",
        options={"xatol": 1e-10},
    )
    return min(log_mass_in_box_towards(best), float(optimum.fun))


def _rounding_of_log_masses(low: Floats, high: Floats, radius: float) -> float:
    """About how far rounding moves the log mass of a kernel in a box: much only where the box is very narrow; lengths in scales."""
    distance = 1.0 + radius + np.maximum(0.0, np.maximum(low, -high))
    return 16.0 * low.size * float(np.finfo(np.float64).eps) * float((distance / np.minimum(1.0, high - low)).max())


def _draw_truncated_normal(low: float, high: float, uniform: Floats) -> Floats:
    """Standard normal draws restricted to [low, high] with high <= 0, by inversion."""
    return np.asarray(
        scipy.special.ndtri(scipy.special.ndtr(low) + uniform * (scipy.special.ndtr(high) - scipy.special.ndtr(low)))
    )


def discretiser_of_worst_gaussian_on_line(
    radius: float, log_upper: float, box: tuple[float, float] | None
) -> WorstMembers:
    """The worst member N(radius, 1) on the line, or on an interval about 0; lengths in scales. `log_upper` is the largest log dP/dmu."""
    low, high = (-radius - _FARTHEST, radius + _FARTHEST) if box is None else box

    def log_ratio(x: Floats) -> Floats:
        excess = np.maximum(0.0, np.abs(x) - radius)
        return log_upper - 0.5 * (np.square(x - radius) - np.square(excess))

    def point_where_log_ratio_is(level: float) -> float:
        depth = 2.0 * max(0.0, log_upper - level)
        return radius - depth**0.5 if depth <= 4.0 * radius * radius else -depth / (4.0 * radius)

    def members_on_atoms_cut_at_levels(levels: Sequence[float]) -> MembersOnAtoms:
        edges = np.concatenate([radius - _NEAR, radius + _NEAR, -radius - _NEAR, -radius + _NEAR, [-radius, radius]])
        x, weights = _gauss_nodes_and_weights(
            _cut_edges_to_interval(np.append(edges, [point_where_log_ratio_is(level) for level in levels]), low, high),
            _LINE_NODES,
        )
        return members_proportional_to_ratios(
            weights * np.exp(-0.5 * np.square(np.maximum(0.0, np.abs(x) - radius))), np.exp(log_ratio(x))[None, :]
        )

    return members_on_atoms_cut_at_levels


def discretiser_of_worst_laplace(radius: float) -> WorstMembers:
    """A Laplace kernel at a corner of the ball, by the one coordinate that matters; lengths in scales."""

    def members_on_atoms_cut_at_levels(levels: Sequence[float]) -> MembersOnAtoms:
        points = [0.5 * (level + radius) for level in levels]
        x, weights = _gauss_nodes_and_weights(
            _cut_edges_to_interval(np.append(_NEAR, [*points, radius]), 0.0, radius), _LINE_NODES
        )
        reference = np.concatenate([[0.5], 0.5 * np.exp(-x) * weights, [0.5 * np.exp(-radius)]])
        return members_proportional_to_ratios(
            reference, np.exp(np.concatenate([[-radius], 2.0 * x - radius, [radius]]))[None, :]
        )

    return members_on_atoms_cut_at_levels


def discretiser_of_worst_gaussian_in_space(dim: int, radius: float, log_upper: float) -> WorstMembers:
    """The worst member N(radius e, I) on R^dim, dim >= 2, by the distance r from the origin and the angle to e; lengths in scales.

    log dP/dmu = log_upper - (|x - radius e|^2 - (r - radius)_+^2)/2 falls with the angle, so each level is one angle for each r.
    """
    mode = 0.5 * (radius + (radius * radius + 4.0 * (dim - 1)) ** 0.5)  # of r under mu
    middle = (radius * radius + dim) ** 0.5  # of r under P
    highest = max(mode, middle) + _FARTHEST

    def members_on_atoms_cut_at_levels(levels: Sequence[float]) -> MembersOnAtoms:
        depths = [2.0 * max(0.0, log_upper - level) for level in levels]
        turns = [turn for depth in depths for turn in _distances_where_level_meets_axis(depth, radius)]
        edges = np.concatenate(
            [*(centre + side * _NEAR for centre in (mode, middle) for side in (-1.0, 1.0)), [radius], turns]
        )
        r, outer = _gauss_nodes_and_weights(_cut_edges_to_interval(edges, 0.0, highest), _RADIAL_NODES)
        excess = np.square(np.maximum(0.0, r - radius))
        cosines = [(np.square(r) + radius**2 - excess - depth) / (2.0 * radius * r) for depth in depths]
        angle, inner = _angle_nodes_and_weights(
            dim, radius * r, [np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in cosines]
        )
        with np.errstate(divide="ignore"):
            log_weight = (dim - 1) * np.log(r) - 0.5 * excess + np.log(outer)
            log_sine = np.log(np.maximum(np.sin(angle), _TINY))  # an empty panel may end at 0
            log_reference = log_weight[:, None] + (dim - 2) * log_sine + np.log(inner)
        distance = np.square(r)[:, None] + radius**2 - 2.0 * radius * r[:, None] * np.cos(angle)
        log_ratio = log_upper - 0.5 * (distance - excess[:, None])
        reference = np.exp(log_reference - log_reference.max()).ravel()
        positive = reference > 0.0
        return members_proportional_to_ratios(reference[positive], np.exp(log_ratio.ravel()[positive])[None, :])

    return members_on_atoms_cut_at_levels


def _distances_where_level_meets_axis(depth: float, radius: float) -> list[float]:
    """Distances from the origin at which a level of the ratio meets the axis, at the angle 0 or pi."""
    root = depth**0.5
    return [abs(radius - root), radius + root, depth / (4.0 * radius)]


def _angle_nodes_and_weights(dim: int, pull: Floats, cuts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Angles (n, m) and their weights, for each r, dense where sin^(dim-2) and sin^(dim-2) exp(pull cos) have their bulk."""
    power = dim - 2.0
    cosine = 2.0 * pull / (power + np.hypot(power, 2.0 * pull))  # power cos = pull sin^2, where the second has its peak
    peaks = (np.full_like(pull, 0.5 * np.pi), np.arccos(np.clip(cosine, -1.0, 1.0)))
    widths = (np.full_like(pull, (power + 1.0) ** -0.5), (power + pull + 1.0) ** -0.5)
    edges = [np.zeros_like(pull), np.full_like(pull, np.pi), *peaks, *cuts]
    for peak, width in zip(peaks, widths, strict=True):
        edges += [peak + side * offset * width for side in (-1.0, 1.0) for offset in _ACROSS]
    ends = np.sort(np.clip(np.stack(edges, axis=1), 0.0, np.pi), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(_ANGLE_NODES)
    half = 0.5 * np.diff(ends, axis=1)[:, :, None]
    angle = ends[:, :-1, None] + half * (1.0 + nodes)
    return angle.reshape(len(pull), -1), (half * weights).reshape(len(pull), -1)


def _cut_edges_to_interval(edges: Floats, low: float, high: float) -> Floats:
    return np.unique(np.clip(np.append(edges, [low, high]), low, high))


def _gauss_nodes_and_weights(edges: Floats, order: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights between neighbouring edges."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()
