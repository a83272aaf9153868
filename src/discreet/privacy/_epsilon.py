"""Privacy by epsilon: `Pure` epsilon-LDP, and `Approximate` (epsilon, delta)-LDP.

**Pure.** No sample is more than e^epsilon times as likely from one client as from another.

    f(x) = max(0, 1 - e^eps x, e^(-eps) (1 - x)),        delta(beta) = (e^eps - e^beta)_+/(e^eps + 1)

A box keeps it if and only if B <= e^eps b. For a band lambda = (e^eps - 1)/((e^eps - 1)(1 - c1) + c2 - c1) [paper, Thm C.4]. n releases at
epsilon are n epsilon together, and no less at delta = 0.

**Approximate.** Q(A) <= e^epsilon Q'(A) + delta for every event A and any two clients.

    f(x) = max(0, 1 - delta - e^eps x, e^(-eps) (1 - delta - x))
    delta(beta) = delta for beta >= eps,    1 - (1 - delta)(1 + e^beta)/(1 + e^eps) below it

A box keeps it if and only if m (B - e^eps b) <= delta: the definition itself, at the one beta that it names. For a band

    lambda = min(1, (e^eps - 1 + delta/m)/((1 - c1) e^eps + c2 - 1))

A box has b > 0 as long as lambda < 1. So delta here is not the probability of total disclosure: the sampler is purely log(B/b)-LDP as well. A
delta so large that it would allow the raw draw itself is an error (`refuse_raw`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from discreet._base.numerics import exp_lower, stated_decimal
from discreet.errors import POSITIVE, Range
from discreet.privacy._notion import ERROR, EXPONENT, Privacy, check_budget

ROUNDED_UP = 1.0 + 1e-14  # above the rounding of a dozen operations


@dataclass(frozen=True)
class Pure(Privacy):
    """epsilon-LDP. `OptimalSampler(family, epsilon=1.0)` is short for `privacy=Pure(1.0)`.

    Args:
        epsilon: the budget of one release, in (0, inf); 0.5 to 4 is usual.

    Raises:
        DiscreetError: for an epsilon out of range.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def tradeoff(self, x: float) -> float:
        error = ERROR.check("x", x)
        return max(0.0, 1.0 - math.exp(min(self.epsilon, 700.0)) * error, math.exp(-self.epsilon) * (1.0 - error))

    def profile(self, beta: float) -> float:
        beta = EXPONENT.check("beta", beta)
        if beta >= self.epsilon:
            return 0.0
        return min(1.0, -math.expm1(beta - self.epsilon) / (1.0 + math.exp(-self.epsilon)) * ROUNDED_UP)

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        return upper <= at_most_exp(self.epsilon) * lower

    @property
    def allows_raw_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.epsilon:g}-LDP"


def check_epsilon(epsilon: float) -> float:
    """epsilon as a float in (0, inf); an exact number between floats is rounded down."""
    return check_budget(POSITIVE, "epsilon", epsilon, "it is the privacy budget; 0.5 to 4 is usual")


def at_most_exp(epsilon: float) -> Fraction:
    """A rational of at most e^epsilon, both for the float and for the decimal as written."""
    return min(exp_lower(epsilon), exp_lower(stated_decimal(epsilon)))


DELTA = Range(0.0, 1.0, high_open=True)
DELTA_IS = "by how much an event may be likelier still; 1e-6 is usual"


@dataclass(frozen=True)
class Approximate(Privacy):
    """(epsilon, delta)-LDP.

    Args:
        epsilon: the budget of one release, in (0, inf).
        delta: the additional probability of an event, in [0, 1); such as 1e-6.

    Raises:
        DiscreetError: for an epsilon or a delta out of range.
    """

    epsilon: float
    delta: float = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_budget(DELTA, "delta", self.delta, DELTA_IS))

    def tradeoff(self, x: float) -> float:
        error, left = ERROR.check("x", x), 1.0 - self.delta
        steep = left - math.exp(min(self.epsilon, 700.0)) * error
        return max(0.0, steep, math.exp(-self.epsilon) * (left - error))

    def profile(self, beta: float) -> float:
        beta = EXPONENT.check("beta", beta)
        if beta >= self.epsilon:
            return self.delta
        shrink = math.exp(-self.epsilon)
        found = (-math.expm1(beta - self.epsilon) + self.delta * (shrink + math.exp(beta - self.epsilon))) / (
            1 + shrink
        )
        return min(1.0, found * ROUNDED_UP)

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        return upper - at_most_exp(self.epsilon) * lower <= self.exact_delta

    @property
    def exact_delta(self) -> Fraction:
        """delta as a rational: the smaller of the float and the decimal as written."""
        return min(Fraction(self.delta), Fraction(stated_decimal(self.delta)))

    @property
    def allows_raw_by_chance(self) -> bool:
        return self.delta > 0.0

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-LDP"
