"""What releases add up to of which no more is known than a notion of privacy: the worst pair of laws that the notion allows, composed.

A notion is a trade-off function f, and f is that of one pair of laws: over a piece of f with width dx and drop dy the first law has
mass dx and the second dy, so that the privacy loss is log(dy/dx) with probability dy (Dong, Roth and Su 2022, Prop. 2.2 and Thm 3.2: no
composition of two mechanisms that keep f and g is easier to tell apart than that of these pairs). Hence

    pure         +eps with probability e^eps/(1 + e^eps), -eps otherwise: the box of alpha = 1/2
    approximate  the same times 1 - delta, and past every number with probability delta (Kairouz, Oh and Viswanath 2015, Thm 3.3)
    functional   one loss for each side of the broken line, and past every number with probability 1 - f(0)
    Gaussian     normal with mean nu^2/2 and variance nu^2; n of them are one with nu = sqrt(nu_1^2 + ... + nu_n^2)

Gaussian releases alone stay Gaussian, exactly. Beside others their loss is put on a grid, rounded up, with what lies past its end taken as
past every number: from above, to within the grid.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting._losses import MOST_LOSSES, PrivacyLoss
from discreet.errors import NON_NEGATIVE, PROBABILITY, DiscreetError
from discreet.numerics import float_up
from discreet.privacy import Functional, Gaussian
from discreet.privacy._normal import normal_cdf

_REACH = 12  # standard deviations that the grid of a Gaussian loss spans: 2e-33 lies past them
_LARGEST = 1e6  # epsilon up to which profiles are asked for
_NO_DELTA = 1e-80  # below what the normal distribution function is known to


@dataclass(frozen=True)
class GaussianLoss:
    """The privacy loss of Gaussian releases together, which is that of one: `nu`, rounded up. No smaller delta is true."""

    nu: float
    attained: bool = True

    @property
    def largest(self) -> float:
        """The pure epsilon: there is none."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which all releases together are (epsilon, delta)-LDP, rounded up."""
        return self._delta(NON_NEGATIVE.check("epsilon", epsilon))

    def _delta(self, epsilon: float) -> float:
        return Gaussian(self.nu).profile(min(epsilon, _LARGEST))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at that delta, rounded up; infinite at delta = 0."""
        target = PROBABILITY.check("delta", delta, "a chance of failure, such as 1e-6")
        if target < _NO_DELTA:
            return math.inf
        if self._delta(0.0) <= target:
            return 0.0
        low, high = 0.0, 1.0
        while self._delta(high) > target:
            low, high = high, 2.0 * high
            if high > _LARGEST:
                return math.inf
        while math.nextafter(low, high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._delta(middle) <= target else (middle, high)
        return high


def gaussian_loss(squares: Fraction) -> GaussianLoss:
    """Of releases whose nu have squares with this sum."""
    nu = math.sqrt(float_up(squares))
    while Fraction(nu) ** 2 < squares:
        nu = math.nextafter(nu, math.inf)
    if not 0.0 < nu < math.inf:
        raise DiscreetError(f"releases add up to nu = {nu:g}, which no float can hold")
    return GaussianLoss(nu)


def loss_on_grid(loss: GaussianLoss) -> PrivacyLoss:
    """A Gaussian loss on a grid, rounded up."""
    nu, sides = Fraction(loss.nu), MOST_LOSSES // 2
    places = [Fraction(step * _REACH, sides) for step in range(1 - sides, sides + 1)]
    below = [normal_cdf(place) for place in places]
    values = [float_up(nu * nu / 2 + nu * place) for place in places]
    masses = [below[0][1], *(high[1] - low[0] for low, high in itertools.pairwise(below))]
    return PrivacyLoss(
        np.array(values),
        np.array([float_up(mass) for mass in masses]),
        attained=False,
        certain=float_up(1 - below[-1][0]),
    )


def broken_line_loss(notion: Functional) -> PrivacyLoss:
    """The loss of the pair whose trade-off function is the broken line; it bounds both orders of two clients."""
    corners = notion.corners
    values, masses = [], []
    for (left, high), (right, low) in itertools.pairwise(corners):
        if high > low:
            values.append(_log_up((high - low) / (right - left)))
            masses.append(float_up(high - low))
    order = np.argsort(values, kind="stable")
    found = np.array(values)[order], np.array(masses)[order]
    if not values:  # f = 0: whatever is released is told apart
        found = np.zeros(1), np.zeros(1)
    return PrivacyLoss(*found, attained=False, certain=float_up(1 - corners[0][1]))


def _log_up(ratio: Fraction) -> float:
    """An upper bound of log(ratio), for positive ratios that floats hold."""
    value = math.log(float_up(ratio))
    return value + 4.0 * math.ulp(max(abs(value), 1.0))
