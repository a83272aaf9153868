"""project(P) = clip(P/r, b mu, B mu) with r normalising: the f-divergence projection for every f [paper, Prop. C.9].

Every output lies in one box of ratio B/b, hence any map into the box is log(B/b)-LDP, whatever the input and however
inaccurately it was computed.

Written with the slope a = 1/r, the mass G(a) = sum_x clip(a p_x, lower_x, upper_x) is continuous, non-decreasing and
linear between the breakpoints lower_x/p_x and upper_x/p_x. On the segment where M is the unclipped set,

    a = (1 - clipped mass) / P(M)

so r is found exactly by finitely many Newton steps (in sorted order if those should not settle), without a tolerance.
If G(infinity) < 1, P sits on a set S too small for any r: then the projection is `upper` on S and a multiple `lift` of
`lower` off it. [P(x) > 0 holds for every reader of these modules to mean x in S.] The same pair (slope, lift) also
describes the linear mechanism lambda P + (1 - lambda) mu, so one affine form serves every mechanism:

    q_x = clip(slope p_x + lift lower_x, lower_x, upper_x)          with inf * 0 = 0

Two interchangeable implementations: `compiled` (numba, used when installed) and `vectorised` (numpy).
"""

import importlib
import importlib.util
import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.families.laws import as_floats, refuse_bad_law
from discreet.tradeoff import Constants

Bound = float | NDArray[np.float64]
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


def compiled_kernels() -> bool:
    """Whether numba is installed. If so it is always used, never a mixture, so that a law is drawn as it is inspected."""
    return importlib.util.find_spec("numba") is not None


def implementation() -> ModuleType:
    """The module that projects: `compiled` or `vectorised`."""
    return importlib.import_module("discreet.projection." + ("compiled" if compiled_kernels() else "vectorised"))


@dataclass(frozen=True)
class Box:
    """{Q : lower_x <= Q(x) <= upper_x}. A bound is one number when the reference is uniform, else one for each outcome."""

    size: int
    lower: Bound
    upper: Bound

    @classmethod
    def around(cls, reference: Bound, size: int, constants: Constants, epsilon: float) -> "Box":
        """The box b mu <= Q <= B mu, rounded so that upper <= e^epsilon lower holds between the floats themselves."""
        lower = np.maximum(constants.b * np.asarray(reference), _SMALLEST_NORMAL)
        grown = np.nextafter(lower * _exp_below(epsilon), 0.0) if epsilon < 709.0 else math.inf
        upper = np.minimum(np.minimum(constants.B * np.asarray(reference), grown), 1.0)
        upper = np.maximum(upper, lower)
        if upper.ndim == 0:
            return cls(size, float(lower), float(upper))
        return cls(size, np.ascontiguousarray(lower), np.ascontiguousarray(upper))

    def project(self, p: ArrayLike) -> NDArray[np.float64]:
        """The projection of each law (..., k) onto the box."""
        rows, shape = self._rows(p)
        law = np.empty_like(rows)
        self._refuse(rows, implementation().project(rows, self.lower, self.upper, law))
        return law.reshape(shape)

    def mix(self, p: ArrayLike, slope: float, lift: float) -> NDArray[np.float64]:
        """clip(slope p + lift lower): the linear mechanism, kept in the box."""
        rows, shape = self._rows(p)
        law = np.empty_like(rows)
        self._refuse(rows, implementation().mix(rows, self.lower, self.upper, slope, lift, law))
        return law.reshape(shape)

    def scale(self, p: ArrayLike) -> NDArray[np.float64]:
        """r_P for each law (...,): the largest where several serve, 0 where P sits on too small a set and none does."""
        rows, shape = self._rows(p)
        slope = np.empty(len(rows))
        self._refuse(rows, implementation().slopes(rows, self.lower, self.upper, slope))
        return (1.0 / slope).reshape(shape[:-1])

    def slope_and_lift(self, p: NDArray[np.float64]) -> tuple[float, float]:
        """(slope, lift) of the projection of one law (k,), known to be one: q = clip(slope p + lift lower, lower, upper)."""
        slope, lift = implementation().solve(p, self.lower, self.upper)
        return float(slope), float(lift)

    def _rows(self, p: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        laws = as_floats(p, "p", self.size)
        return laws.reshape(-1, self.size), laws.shape

    @staticmethod
    def _refuse(rows: NDArray[np.float64], bad_row: int) -> None:
        if bad_row >= 0:
            refuse_bad_law(rows, bad_row)


def _exp_below(epsilon: float) -> float:
    """A float at most e^epsilon: `math.exp` is within one unit in the last place."""
    return math.nextafter(math.exp(epsilon), 0.0)
