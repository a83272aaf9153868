"""The cost of a client's entries in the interior point method: q f(p/q), smooth, or (p - gamma q)_+, which has an edge.

The edge is taken apart: (p - gamma q)_+ = min g with g >= 0 and g >= p - gamma q. Both constraints get slacks and multipliers of their own,
and g is eliminated, so that either cost gives the solver a gradient and a bend for each entry.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.design._curves import ConvexCurve, Floats

Booleans = NDArray[np.bool_]

OWN_SHARE = 3.0  # of its own product that a pair may aim at, besides the common target
LEAST_LEFT = 0.3  # of a slack or a multiplier, after a step by itself
LEAST_FORESEEN = 0.1  # the same where a step is only foreseen
MOST_RENORMALISED = 0.5  # of the room to its nearer bound, that a law's normalisation may take of an entry


@dataclass(eq=False)
class SlackPair:
    """A slack s > 0 and its multiplier z > 0, whose product is led to a target, and the Newton step ds of the slack.

    The multiplier's step follows from the slack's and is not kept: examples may be many. `part` is what a pair's target is of the
    common one: a client that counts little has large targets, so that w s z falls alike for everybody. Were its products as small as
    the others' from the start, the floor would run into its bounds without having seen them.
    """

    s: Floats
    z: Floats
    part: Floats | float = 1.0
    ds: Floats = field(default_factory=lambda: np.zeros(0))
    aim: Floats | float = 0.0  # the target divided by s

    def start(self, mu: float) -> None:
        """A multiplier on the central path of mu."""
        self.z = mu * self.part / self.s

    def predict(self) -> None:
        """Aim at a product of zero."""
        self.aim = 0.0

    def correct(self, mu: float, largest: float) -> None:
        """Aim at mu, less what the prediction's second-order term adds; kept within bounds. mu and `largest` are common targets.

        Where a slack is about to vanish while its multiplier grows, that term is many times their product: a bound that is a multiple of
        the product lets such pairs go their way along the hyperbola, and they no longer hold up everybody's step.
        """
        most = (mu + largest) * self.part + OWN_SHARE * self.s * self.z
        self.aim = np.clip(mu * self.part - self.ds * self.dz, 0.01 * mu * self.part, most) / self.s

    @property
    def stiffness(self) -> Floats:
        return self.z / self.s

    @property
    def dz(self) -> Floats:
        """The multiplier's step."""
        return self.aim - self.z - self.stiffness * self.ds

    def follow(self, ds: Floats) -> tuple[float, float]:
        """Take the slack's step; return how far slack and multiplier may go before they vanish."""
        self.ds = ds
        return self.room

    def products(self, primal: float = 0.0, dual: float = 0.0) -> Floats:
        """s z after steps of these lengths."""
        return (self.s + primal * self.ds) * (self.z + dual * self.dz) if primal or dual else self.s * self.z

    def apart(self) -> Floats:
        """s z after whole steps of each pair by itself, cut where little is left of it."""
        return np.asarray(
            np.maximum(self.s + self.ds, LEAST_FORESEEN * self.s)
            * np.maximum(self.z + self.dz, LEAST_FORESEEN * self.z)
        )

    @property
    def room(self) -> tuple[float, float]:
        """How far slack and multiplier may go along the step before they vanish."""
        return _limit(self.s, self.ds), _limit(self.z, self.dz)

    def move(self, primal: float, dual: float) -> None:
        """Go so far, and forget the step."""
        self.z += dual * self.dz
        self.s += primal * self.ds
        self.ds, self.aim = np.zeros(0), 0.0

    def move_apart(self, s: Floats) -> None:
        """Take a slack that was found otherwise, and of the multiplier's step as much as leaves something of each."""
        self.z = np.maximum(self.z + self.dz, LEAST_LEFT * self.z)
        self.s, self.ds, self.aim = s, np.zeros(0), 0.0


def _limit(value: Floats, step: Floats) -> float:
    """The largest length at which value + length * step is not negative."""
    fastest = float((-step / value).max(initial=0.0))
    return 1.0 / fastest if fastest > 0.0 else np.inf


class EntryCost(Protocol):
    """The cost of entries with masses p at q, as the solver sees it."""

    @property
    def at_zero(self) -> float: ...
    @property
    def pairs(self) -> tuple[SlackPair, ...]: ...
    def value(self, q: Floats) -> Floats: ...
    def look(self, q: Floats) -> Floats:
        """The bend at q; `gradient` is about the same q from then on."""

    def gradient(self) -> Floats: ...
    def multiplier(self) -> Floats:
        """The derivative of the cost as the multipliers have it now."""

    def follow(self, dq: Floats) -> tuple[float, float]: ...
    def lines(self, level: Floats, floor: Floats, q: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
        """(slope, intercept) of a line below f for each entry, whose intercept is `level` wherever a law between the bounds allows it."""


@dataclass(eq=False)
class SmoothCost:
    """q f(p/q)."""

    p: Floats
    curve: ConvexCurve
    pairs: tuple[SlackPair, ...] = ()

    @property
    def at_zero(self) -> float:
        """f(0); where that is infinite every client holds every outcome, and nothing is ever multiplied by it."""
        return self.curve.at_zero if np.isfinite(self.curve.at_zero) else 0.0

    def value(self, q: Floats) -> Floats:
        return q * self.curve.value(self.p / q)

    def look(self, q: Floats) -> Floats:
        t = self.p / q
        self._gradient = self.curve.first(t)
        return self.curve.second(t) / q

    def gradient(self) -> Floats:
        return self._gradient

    def multiplier(self) -> Floats:
        return self._gradient

    def follow(self, dq: Floats) -> tuple[float, float]:
        return np.inf, np.inf

    def lines(self, level: Floats, floor: Floats, q: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
        at_floor, at_ceiling = (self.curve.first(self.p / bound) for bound in (floor, ceiling))
        intercept = np.clip(level, at_floor, at_ceiling)
        return self.curve.line(intercept, self.p / q)


class HingeCost:
    """(p - gamma q)_+ = min g over g >= 0, g - p + gamma q >= 0."""

    at_zero = 0.0

    def __init__(self, p: Floats, q: Floats, gamma: float, mu: float, part: Floats | float = 1.0) -> None:
        self.p, self.gamma = p, gamma
        excess, product = p - gamma * q, mu * part
        g = (excess + 2.0 * product + np.hypot(excess, 2.0 * product)) / 2.0
        self.pairs = (SlackPair(g, product / g, part), SlackPair(g - excess, product / (g - excess), part))

    def value(self, q: Floats) -> Floats:
        return np.maximum(self.p - self.gamma * q, 0.0)

    def look(self, q: Floats) -> Floats:
        first, second = (pair.stiffness for pair in self.pairs)
        self._stiffness = first + second
        return self.gamma**2 * first * second / self._stiffness

    def gradient(self) -> Floats:
        first, second = self.pairs
        self._residual = 1.0 - first.aim - second.aim
        return -self.gamma * (second.aim + second.stiffness * self._residual / self._stiffness)

    def multiplier(self) -> Floats:
        return -self.gamma * self.pairs[1].z

    def follow(self, dq: Floats) -> tuple[float, float]:
        first, second = self.pairs
        dg = -(self._residual + second.stiffness * self.gamma * dq) / self._stiffness
        limits = first.follow(dg), second.follow(dg + self.gamma * dq)
        return min(one[0] for one in limits), min(one[1] for one in limits)

    def lines(self, level: Floats, floor: Floats, q: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
        # at an optimum many laws sit on an edge, where the slope is any number between two: the multipliers know which
        slope = np.clip(self.pairs[1].z, 0.0, 1.0)
        return slope, -self.gamma * slope if self.gamma == 1.0 else np.nextafter(-self.gamma * slope, -np.inf)
