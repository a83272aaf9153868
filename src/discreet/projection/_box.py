"""The box around a reference, and the projection onto it: clip(P/r, b mu, B mu) with r normalising, for every f [paper, Prop. C.8].

Every output lies in one box of ratio B/b. Hence any map into the box is log(B/b)-LDP, for every input and every computation error.

Written with the slope a = 1/r, the mass G(a) = sum_x clip(a p_x, lower_x, upper_x) is continuous, non-decreasing and linear between the
breakpoints lower_x/p_x and upper_x/p_x. On the segment where M is the unclipped set,

    a = (1 - clipped mass) / P(M)

so r is found exactly by finitely many Newton steps (`discreet.projection._vectorised`), without a tolerance. If G(infinity) < 1, P sits on a
set S too small for any r. Then the projection is `upper` on S and a multiple `lift` of `lower` off it. The same pair (slope, lift) also
describes the linear mechanism lambda P + (1 - lambda) mu, so one affine form covers every mechanism:

    q_x = clip(slope p_x + lift lower_x, lower_x, upper_x)          with inf * 0 = 0 (and masses below 1e-280 taken as 0)

The implementations `_compiled` (numba) and `_vectorised` (numpy) return the same result, bit for bit.
"""

import importlib
import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.kernels import compiled_for
from discreet._base.numerics import exp_nearest
from discreet._base.showing import with_short_repr
from discreet.families import as_laws, refuse_bad_law
from discreet.privacy.tradeoff import Constants
from discreet.projection._vectorised import ROUNDING

Bound = float | NDArray[np.float64]
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_LARGEST_EXPONENT = 554.0  # above it the floor stays e^-554 of the ceiling, since smaller floats would lose its shape


def projection_module(entries: int) -> ModuleType:
    """The module that projects rows of that many entries in total, `_compiled` or `_vectorised`, with the same results."""
    found = "compiled" if compiled_for(numpy_seconds(entries)) else "vectorised"
    return importlib.import_module(f"discreet.projection._{found}")


def numpy_seconds(entries: int) -> float:
    """Roughly how long `_vectorised` takes for rows of that many entries in total."""
    return 1e-3 + 1e-7 * entries


@dataclass(frozen=True)
class Affine:
    """The linear mechanism's law: slope p + lift lower, for every client alike.

    Attributes:
        slope: the factor of p.
        lift: the factor of the lower bounds.
    """

    slope: float
    lift: float


@with_short_repr
@dataclass(frozen=True)
class Box:
    """{Q : lower_x <= Q(x) <= upper_x}. A bound is one number when the reference is uniform, else one for each outcome.

    Attributes:
        size: how many outcomes there are.
        lower: the lower bounds.
        upper: the upper bounds.
    """

    size: int
    lower: Bound
    upper: Bound

    @classmethod
    def around(cls, reference: Bound, size: int, constants: Constants, epsilon: float) -> "Box":
        """The box b mu <= Q <= B mu, rounded so that upper <= e^epsilon lower holds between the floats themselves."""
        with np.errstate(invalid="ignore", over="ignore"):  # B may be infinite
            upper = np.minimum(np.where(np.asarray(reference) > 0.0, constants.B * np.asarray(reference), 0.0), 1.0)
        lower = np.maximum(constants.b * np.asarray(reference), _SMALLEST_NORMAL)
        lower = np.maximum(lower, np.nextafter(upper / _exp_rounded_down(min(epsilon, _LARGEST_EXPONENT)), 1.0))
        lower = np.minimum(lower, upper)
        if upper.ndim == 0:
            return cls(size, float(lower), float(upper))
        for bound in (lower, upper):
            bound.setflags(write=False)
        return cls(size, lower, upper)

    @property
    def ceiling(self) -> Bound:
        """The upper bound for the solver: infinite where the lower bounds of the others already imply it.

        This is so on the simplex, where Q* = max(P/r, lower) [paper, Thm 3.1]. The mass is then convex in the slope, and Newton's method goes
        straight down to the root without a flat piece.
        """
        if isinstance(self.upper, float) and self.upper + (self.size - 1) * self.lower >= 1.0 - ROUNDING:
            return math.inf
        return self.upper

    def project(self, p: ArrayLike) -> NDArray[np.float64]:
        """The projection of each distribution (..., k) onto the box."""
        rows, shape = self._rows(p)
        law = np.empty_like(rows)
        self._affine(rows, None, law)
        return law.reshape(shape)

    def mix(self, p: ArrayLike, mixing: Affine) -> NDArray[np.float64]:
        """clip(slope p + lift lower): the linear mechanism, kept in the box."""
        rows, shape = self._rows(p)
        law = np.empty_like(rows)
        self._affine(rows, mixing, law)
        return law.reshape(shape)

    def scale(self, p: ArrayLike) -> NDArray[np.float64]:
        """r_P for each distribution (...,): one of them if several exist, 0 if P sits on too small a set and none exists."""
        rows, shape = self._rows(p)
        slope, _ = self._affine(rows, None, np.empty((0, self.size)))
        return (1.0 / slope).reshape(shape[:-1])

    def slope_and_lift(self, p: NDArray[np.float64]) -> tuple[float, float]:
        """(slope, lift) of the projection of one distribution (k,): q = clip(slope p + lift lower, lower, upper)."""
        slope, lift = self._affine(p[None, :], None, np.empty((0, self.size)))
        return float(slope[0]), float(lift[0])

    def _affine(
        self, rows: NDArray[np.float64], mixing: Affine | None, law: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = np.ascontiguousarray(rows)  # as the compiled code requires
        slope = np.full(len(rows), 1.0 if mixing is None else mixing.slope)
        lift = np.full(len(rows), 0.0 if mixing is None else mixing.lift)
        bad = projection_module(rows.size).affine(
            rows, self.lower, self.upper, self.ceiling, mixing is None, slope, lift, law
        )
        if bad >= 0:
            refuse_bad_law(rows, bad)
        return slope, lift

    def _rows(self, p: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        laws = as_laws(p, "p", self.size)
        return laws.reshape(-1, self.size), laws.shape


def _exp_rounded_down(epsilon: float) -> float:
    """A float below e^epsilon, by at most one unit in the last place and a half."""
    return math.nextafter(exp_nearest(epsilon), 0.0)
