"""`Budget`: whether a client's releases stay within (epsilon, delta), even if each is chosen after seeing earlier samples.

Three sums are kept, and a release is allowed if any of them stays within the budget:

* basic: the epsilons, as exact rationals, add up to at most epsilon. An epsilon counts as the decimal that was written if the
  nearest float is larger (ten times 0.1 is 1). Samplers draw at most at that epsilon (`numerics.stated`), so the sum holds for the draws;
* same: all releases have one profile, and their exact composition is at most epsilon at delta/2. Stopping early is a
  function of the whole sequence, so the bound for the largest number of releases holds at every stopping time;
* Renyi: the divergences at one order, fixed with the budget, add up to at most epsilon at delta/2. This also holds if later
  releases depend on earlier samples (Feldman and Zrnic, NeurIPS 2021, Theorem 3.1: a Renyi filter).

A run ends within at least one of the three sums. Split any event by which sum that is. The parts lose (epsilon, 0), (epsilon, delta/2) and
(epsilon, delta/2), together (epsilon, delta). At delta = 0 only the first sum is used.

A single release may use the whole delta: it is chosen before any sample is seen, so nothing has to be split. If it does not fit into
delta/2, nothing is allowed after it, because all three sums grow with every release. So a release that promises (epsilon, delta) fits into
a budget of (epsilon, delta), by its promise (`covers`) if not by its profile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet._base.numerics import stated_decimal
from discreet.accounting import MOST_SAMPLES, BoxProfile, compose, renyi
from discreet.errors import Range
from discreet.privacy import EXPONENT, Privacy, Pure, check_epsilon

_DELTA = Range(0.0, 1.0, high_open=True)
_ROUNDING = 1.0 + 1e-12
_ORDERS = (1e-3, 1e6)  # above 1
_NO_DELTA = 1e-250  # too small to gain anything


@dataclass(frozen=True)
class Spent:
    """What releases have cost.

    Attributes:
        basic: the plain sum of their epsilons.
        accounted: the accountant's epsilon at the budget's delta.
    """

    basic: Fraction
    accounted: float

    @property
    def epsilon(self) -> float:
        """The smaller of the two."""
        return min(float(self.basic), self.accounted)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """All releases of one client together are to be (epsilon, delta)-LDP.

    Args:
        epsilon: of all releases together.
        delta: of all releases together; 0 for the pure guarantee.

    Raises:
        DiscreetError: for arguments out of range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        delta = _DELTA.check(
            "delta", self.delta, "the chance with which the budget may be exceeded; 0 for the pure guarantee"
        )
        object.__setattr__(self, "delta", delta)

    @property
    def order(self) -> float:
        """The Renyi order of the filter: the best one for a total of epsilon spread over many small releases."""
        doubt = -math.log(self.delta / 2.0)
        best = math.sqrt(doubt) * (math.sqrt(doubt + self.epsilon) + math.sqrt(doubt)) / self.epsilon
        return 1.0 + min(max(best, _ORDERS[0]), _ORDERS[1])

    def spent(self, releases: Sequence[tuple[BoxProfile, int]]) -> Spent:
        """The cost of the given number of releases from each box."""
        basic = sum((Fraction(stated_decimal(profile.epsilon)) * count for profile, count in releases), Fraction(0))
        accounted = math.inf
        if self.delta > _NO_DELTA and releases:
            accounted = self._by_renyi(releases)
            if len(releases) == 1 and releases[0][1] <= MOST_SAMPLES:
                allowed = self.delta if releases[0][1] == 1 else self.delta / 2.0
                accounted = min(accounted, compose(releases).epsilon(allowed))
        return Spent(basic, accounted)

    def allows(self, spent: Spent) -> bool:
        """Whether `spent` is within the budget."""
        return spent.basic <= Fraction(stated_decimal(self.epsilon)) or spent.accounted <= self.epsilon

    def covers(self, privacy: Privacy) -> bool:
        """Whether a single release with that promise is within the budget."""
        if not self.delta and not isinstance(privacy, Pure):  # a positive profile may underflow to 0
            return False
        return privacy.profile(min(self.epsilon, EXPONENT.high)) <= self.delta

    def left(self, spent: Spent) -> float:
        """The remaining epsilon, rounded down."""
        by_sum = max(Fraction(0), Fraction(stated_decimal(self.epsilon)) - spent.basic)
        rounded = float(by_sum)
        if Fraction(stated_decimal(rounded)) > by_sum:
            rounded = math.nextafter(rounded, 0.0)
        return max(rounded, self.epsilon - spent.accounted)

    def _by_renyi(self, releases: Sequence[tuple[BoxProfile, int]]) -> float:
        order = self.order
        total = math.fsum(count * renyi(profile, order=order) for profile, count in releases) * _ROUNDING
        return total + math.log1p(-1.0 / order) - math.log(self.delta / 2.0 * order) / (order - 1.0)

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:g}" + (f" at delta = {self.delta:g}" if self.delta else "")


def distinguishable_numbers(one: float, other: float) -> tuple[str, str]:
    """Two different numbers as texts with enough digits to tell them apart."""
    for digits in range(6, 18):
        texts = f"{one:.{digits}g}", f"{other:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)
