"""Pure epsilon-LDP: no sample is more than e^epsilon times as likely from one client as from another.

    f(x) = max(0, 1 - e^eps x, e^(-eps) (1 - x)),        delta(beta) = (e^eps - e^beta)_+/(e^eps + 1)

A box keeps it if and only if B <= e^eps b. For a band lambda = (e^eps - 1)/((e^eps - 1)(1 - c1) + c2 - c1) [paper, Thm C.4].
n releases at epsilon are n epsilon together, and no less at delta = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import POSITIVE
from discreet.numerics import exp_lower, stated_decimal
from discreet.privacy._notion import ERROR, EXPONENT, Privacy, check_budget

ROUNDED_UP = 1.0 + 1e-14  # more than a dozen operations are off


@dataclass(frozen=True)
class Pure(Privacy):
    """epsilon-LDP. `OptimalSampler(family, epsilon=1.0)` is short for `privacy=Pure(1.0)`.

    Args:
        epsilon: the budget of one release, in (0, inf); 0.5 to 4 is usual.

    Raises:
        DiscreetError: for an epsilon that is none.
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
    """epsilon as a float in (0, inf); an exact number that no float equals is rounded down."""
    return check_budget(POSITIVE, "epsilon", epsilon, "it is the privacy budget; 0.5 to 4 is usual")


def at_most_exp(epsilon: float) -> Fraction:
    """A rational at most e^epsilon, for the float and for the decimal that was written."""
    return min(exp_lower(epsilon), exp_lower(stated_decimal(epsilon)))
