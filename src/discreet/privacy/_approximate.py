"""(epsilon, delta)-LDP: Q(A) <= e^epsilon Q'(A) + delta for every event A and any two clients.

    f(x) = max(0, 1 - delta - e^eps x, e^(-eps) (1 - delta - x))
    delta(beta) = delta for beta >= eps,    1 - (1 - delta)(1 + e^beta)/(1 + e^eps) below it

A box keeps it if and only if m (B - e^eps b) <= delta: the definition itself, at the one beta that it names. For a band

    lambda = min(1, (e^eps - 1 + delta/m)/((1 - c1) e^eps + c2 - 1))

A box has b > 0 as long as lambda < 1, so delta here is never the chance that a client is laid bare: the sampler is purely
log(B/b)-LDP as well. What delta may not buy is the raw draw itself; a delta that would allow it is refused (`discreet.tradeoff.refuse_raw`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.errors import Range
from discreet.numerics import stated_decimal
from discreet.privacy._notion import ERROR, EXPONENT, Privacy, check_budget
from discreet.privacy._pure import ROUNDED_UP, at_most_exp, check_epsilon

DELTA = Range(0.0, 1.0, high_open=True)
DELTA_IS = "by how much an event may be likelier still; 1e-6 is usual"


@dataclass(frozen=True)
class Approximate(Privacy):
    """(epsilon, delta)-LDP.

    Args:
        epsilon: the budget of one release, in (0, inf).
        delta: by how much an event may be likelier still, in [0, 1); such as 1e-6.

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
        """delta as a rational: the float or the decimal that was written, whichever is less."""
        return min(Fraction(self.delta), Fraction(stated_decimal(self.delta)))

    @property
    def allows_raw_by_chance(self) -> bool:
        return self.delta > 0.0

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-LDP"
