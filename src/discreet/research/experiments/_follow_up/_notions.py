"""The notions of privacy that are compared, how the follow-up paper calibrates each, and who fares better by what it calibrates.

Its linear mechanism lambda P + (1 - lambda) mu takes, as published, the weight

    lambda = inf over beta >= 0 of (e^beta - 1 + t delta(beta)) / ((1 - c1) e^beta + c2 - 1),      t = (c2 - c1)/(1 - c1)

by a bounded search, without a cap at 1. Ours is the largest weight that the corners of the trade-off function allow, in rationals
(`discreet.privacy._notion`), with the smaller t = 1/min(alpha, 1 - alpha); then the client is projected onto the same box in place of mixed.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.families._band import Bounds
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure

Floats = NDArray[np.float64]

NOTION_KINDS = ("pure", "approximate", "gaussian", "functional")
FOLLOW_UP_BUDGETS = (0.1, 0.5, 1.0, 2.0)  # the published ones: epsilon, epsilon, nu, and the Laplace mechanism's mu
FOLLOW_UP_DELTA = 1e-3
FOLLOW_UP_DIVERGENCES = ("kl", "tv", "hellinger", "chi2", "reverse_kl", "jensen_shannon", "le_cam")
_ROUNDING = 1e-9  # of quadrature and sums: a client that is this little farther is not farther
_FARTHEST = 50.0  # of the published search over beta


def laplace_tradeoff(mu: float) -> Functional:
    """The trade-off function of one Laplace(0, 1) against Laplace(mu, 1): neither pure nor Gaussian, and less than mu-LDP tells."""

    def f(x: float) -> float:
        if x < math.exp(-mu) / 2.0:
            return 1.0 - math.exp(mu) * x
        return math.exp(-mu) / (4.0 * x) if x <= 0.5 else math.exp(-mu) * (1.0 - x)

    return Functional(f)


def privacy_notion(kind: str, budget: float) -> Privacy:
    """One of `NOTION_KINDS` at a budget."""
    match kind:
        case "pure":
            return Pure(budget)
        case "approximate":
            return Approximate(budget, delta=FOLLOW_UP_DELTA)
        case "gaussian":
            return Gaussian(budget)
        case _:
            return laplace_tradeoff(budget)


def published_weight(privacy: Privacy, bounds: Bounds) -> float:
    """lambda by the published infimum over beta, as their code searches for it."""
    t = (bounds.upper - bounds.lower) / (1.0 - bounds.lower)

    def at(beta: float) -> float:
        grown = math.exp(beta)
        return (grown - 1.0 + t * privacy.profile(beta)) / ((1.0 - bounds.lower) * grown + bounds.upper - 1.0)

    match privacy:
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return at(epsilon)  # the one beta that the notion names
        case _:
            found = scipy.optimize.minimize_scalar(at, bounds=(0.0, _FARTHEST), method="bounded")
            return float(found.fun)


@dataclass(frozen=True)
class Pointwise:
    """The projection against the published linear mechanism by one divergence: largest and mean over the same clients.

    `worse`: clients that the projection serves worse, by more than rounding; `excess`: the most that it is worse by, less than 0 if never.
    """

    projection: float
    projection_mean: float
    linear: float
    linear_mean: float
    worse: int
    excess: float

    @classmethod
    def of(cls, projection: Floats, linear: Floats) -> "Pointwise":
        """That of clients with these divergences."""
        excess = projection - linear
        worse = int((excess > _ROUNDING * np.maximum(1.0, linear)).sum())
        means = float(projection.mean()), float(linear.mean())
        return cls(float(projection.max()), means[0], float(linear.max()), means[1], worse, float(excess.max()))


@dataclass(frozen=True)
class ClassAtBudget:
    """One class of clients under one notion: its bounds, both weights, minimax values, and clients of the class one by one."""

    lower: float
    upper: float
    weight: float
    published_weight: float
    tight: bool
    minimax: dict[str, float]
    published_minimax: dict[str, float]
    clients: int
    pointwise: dict[str, Pointwise]
