"""What a stream of releases has cost so far, read at any moment, though each is chosen in the light of all before it.

Let l_s be the privacy loss of release s (the logarithm of how much likelier its outcome is for one client than for another), drawn
from a box that may depend on all outcomes before it, and L_t = l_1 + ... + l_t. For an order a > 1 that is fixed beforehand

    M_t = exp((a - 1)(L_t - D_a(box_1) - ... - D_a(box_t)))        is a supermartingale with M_0 = 1,

since E[e^((a-1) l) | past] <= e^((a-1) D_a(box)) by the definition of the Renyi divergence. By Ville's inequality M_t ever passes 1/d
with probability at most d: for orders a_1 < ... < a_n and d = delta/n each,

    epsilon_t = min( sum_s epsilon_s,  min_i [sum_s D_{a_i}(box_s) + log(n/delta)/(a_i - 1)] )   is at least L_t for ALL t at once

with probability at least 1 - delta. So it also holds at a moment that was chosen by looking, and whoever stops as soon as epsilon_t
would pass E has released (E, delta)-LDP. (`discreet.accounting.compose` is smaller where the number of releases is fixed beforehand.)
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.accounting._profile import BoxProfile, check_profile
from discreet.accounting._renyi import renyi
from discreet.errors import PROBABILITY, check_count
from discreet.numerics import float_up

_ORDERS: tuple[float, ...] = tuple(1.0 + 2.0 ** (step / 2.0) for step in range(-8, 17))
_ROUNDED_UP = 1.0 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Odometer:
    """A count of what was released so far. `after` gives the next one; nothing changes in place.

    Args:
        delta: the chance with which the loss may ever exceed what is shown; 0 for sums of epsilons alone.
        releases: how many releases there were from each box.

    Raises:
        DiscreetError: for a delta outside [0, 1].

    Example:
        >>> odometer = Odometer(delta=1e-6).after(BoxProfile(epsilon=0.5, alpha=0.1), samples=10)
    """

    delta: float
    releases: tuple[tuple[BoxProfile, int], ...] = ()

    def __post_init__(self) -> None:
        PROBABILITY.check("delta", self.delta, "a chance of failure, such as 1e-6, or 0 for the pure guarantee")

    def after(self, profile: BoxProfile, *, samples: int = 1) -> "Odometer":
        """The odometer after so many more releases from a box, whatever that was chosen by."""
        check_profile(profile)
        counts = dict(self.releases)
        counts[profile] = counts.get(profile, 0) + check_count("samples", samples)
        return replace(self, releases=tuple(counts.items()))

    @property
    def pure(self) -> float:
        """The sum of the epsilons, rounded up: never exceeded."""
        return float_up(sum((Fraction(profile.epsilon) * count for profile, count in self.releases), Fraction(0)))

    @property
    def epsilon(self) -> float:
        """What the loss so far is at most, with probability at least 1 - delta at all moments together; rounded up."""
        if self.delta == 0.0:
            return self.pure
        doubt = math.log(len(_ORDERS) / self.delta)
        found = min(self._divergence(order) + doubt / (order - 1.0) for order in _ORDERS)
        return min(self.pure, max(0.0, found) * _ROUNDED_UP)

    def _divergence(self, order: float) -> float:
        return math.fsum(count * renyi(profile, order=order) for profile, count in self.releases)
