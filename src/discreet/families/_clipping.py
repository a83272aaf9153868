"""clip(p/r, c1 h, c2 h) with r normalising: the member of a band nearest to p for every f-divergence [paper, Prop. C.8].

At every point it lies between the bounds, whatever p is and wherever it was looked at. Only r is numerical: the law's mass is one up
to the error of an integral, and it is divided by that mass wherever it is used.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._quadrature import ORDER, integrate_element
from discreet.errors import DiscreetError
from discreet.families._band import Bounds
from discreet.families._densities import LogDensity, as_points, shape_of_points
from discreet.families._features import Features, features_of
from discreet.families._kernels import Mixture

if TYPE_CHECKING:
    from discreet.families._continuous import ContinuousFamily

Floats = NDArray[np.float64]

_TOLERANCE = {1: 1e-6, 2: 1e-3, 3: 5e-3}  # relative, of the mass
_MOST_NODES = 1 << 18
_POINTS = 1 << 14  # public draws, where there are too many dimensions for nodes
_ROUNDS = 4  # of finding r, and then nodes that resolve where it clips
_HALVINGS = 80


class ClippedLaw:
    """clip(p/r, lower h, upper h) with r normalising: the member nearest to p, between its bounds at every point whatever p is."""

    def __init__(self, family: "ContinuousFamily", p: LogDensity, log_scale: float) -> None:
        self.family, self.p, self.log_scale = family, p, log_scale

    def __repr__(self) -> str:
        return f"ClippedLaw({self.p!r} within {self.family!r})"

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.family.dim

    def log_density(self, x: Floats) -> Floats:
        log_reference = self.family.log_reference(x)
        with np.errstate(invalid="ignore"):
            log_ratio = self.p.log_density(x) - self.log_scale - log_reference
        return np.asarray(
            np.where(np.isneginf(log_reference), -np.inf, self._clip_log_ratio(log_ratio) + log_reference)
        )

    def _clip_log_ratio(self, log_ratio: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.clip(log_ratio, np.log(self.family.bounds.lower), np.log(self.family.bounds.upper))

    def pdf(self, x: ArrayLike) -> Floats:
        """The density at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_density(as_points(x, self.dim))).reshape(shape_of_points(x, self.dim))

    def certainly_in(self, family: "ContinuousFamily") -> bool:
        """Whether it was clipped to that family's band."""
        return self.family == family

    def narrow_places(self) -> Features:
        """Those of the law that was clipped."""
        return features_of([self.p], self.dim)


def in_band(family: "ContinuousFamily", p: Mixture) -> LogDensity:
    """p itself where its parameters say that it is a member, or the family serves everybody; else the member nearest to it."""
    if family.everybody or family.certainly_contains(p):
        return p
    if family.dim not in ORDER:
        x = family.draw(_POINTS, np.random.default_rng(0))
        return _clip_to_band(family, p, x, np.full(len(x), 1.0 / len(x)))
    chart = family.chart
    panels, _ = family.panels_at(family.panels, [p], _MOST_NODES)
    for _ in range(_ROUNDS):
        nodes = family.nodes_of(panels, ORDER[family.dim])
        law = _clip_to_band(family, p, nodes.x[nodes.masses > 0.0], nodes.masses[nodes.masses > 0.0])

        def element(t: Floats, law: ClippedLaw = law) -> Floats:
            density = np.exp(law.log_density(chart.points(t).reshape(-1, family.dim))).reshape(t.shape[:-1])
            return np.where(density > 0.0, density * chart.jacobian(t), 0.0)

        finer, mass, _ = integrate_element(panels, element, _TOLERANCE[family.dim], 0.0)
        if len(finer) == len(panels) or abs(mass - 1.0) <= _TOLERANCE[family.dim]:
            break
        panels = finer
    return law


def _clip_to_band(family: "ContinuousFamily", p: Mixture, x: Floats, masses: Floats) -> ClippedLaw:
    """p clipped so that its mass is one on points (m, dim) that stand for these reference masses."""
    log_ratio = p.log_density(x) - family.log_reference(x)
    seen = np.isfinite(log_ratio)
    if not seen.any():
        raise DiscreetError(f"the records leave no mass in the space of {family!r}; take a larger bandwidth")
    return ClippedLaw(family, p, _log_scale(family.bounds, log_ratio[seen], masses[seen] / masses[seen].sum()))


def _log_scale(bounds: Bounds, log_ratio: Floats, masses: Floats) -> float:
    """log r with sum masses clip(p/(r h), lower, upper) = 1, by halving: the sum falls as r grows."""
    spread = math.log(bounds.upper) + 50.0
    low, high = float(log_ratio.min()) - spread, float(log_ratio.max()) + spread
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        kept = np.exp(np.minimum(log_ratio - middle, math.log(bounds.upper)))
        mass = float(masses @ np.maximum(kept, bounds.lower))
        low, high = (middle, high) if mass > 1.0 else (low, middle)
    return 0.5 * (low + high)
