"""The privacy loss of n releases is the sum of n independent three-point losses, so delta(epsilon) is a finite sum:

    delta(eps) = sum over losses l > eps of P[L = l] (1 - e^(eps - l))

For n releases from one box L is a multiple of its epsilon, and the law of L is an n-fold convolution of positive numbers:
nothing cancels, so a sum of t products is off by at most t + 1 units of relative rounding error, which is added on top of it each time.
Losses are rounded up too: the sum of a hundred times 0.1 is more than 10, since the float 0.1 is more than a tenth. Different boxes add
up by the same sum over all pairs of losses; where that is more than `MOST_LOSSES` values, losses are rounded UP to a grid. All of this can
only make delta larger: what is reported is an upper bound, down to the last bit. It holds for releases chosen one after the other in
the light of earlier ones.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.profile import ROUNDED_UP, BoxProfile, check_profile
from discreet.errors import NON_NEGATIVE, PROBABILITY, DiscreetError, check_count
from discreet.numerics import product_up, sum_up
from discreet.showing import shown_shortly

MOST_SAMPLES = 50_000
MOST_LOSSES = 2_048  # of each of two laws that are added up
MOST_KEPT = 32_768
_UNIT = 2.0**-53  # relative rounding error of one operation
_UNDERFLOW = 1e-300  # far above all that underflow can lose
_TAIL = 1e-22


@shown_shortly
@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The law of a privacy loss: increasing upper bounds of its values, and of their probabilities under the worse of two clients.

    `attained`: two clients have exactly this loss, so that no smaller delta is true; otherwise it is an upper bound.
    """

    values: NDArray[np.float64]
    masses: NDArray[np.float64]
    attained: bool

    @property
    def largest(self) -> float:
        """The pure epsilon: basic composition, rounded up."""
        return float(self.values[-1])

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which all releases together are (epsilon, delta)-LDP, rounded up."""
        return self._delta(NON_NEGATIVE.check("epsilon", epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at that delta, rounded up: at delta = 0 the sum of the budgets."""
        target = PROBABILITY.check("delta", delta, "a chance of failure, such as 1e-6, or 0 for the pure guarantee")
        if target < _UNDERFLOW:
            return self.largest
        if self._delta(0.0) <= target:
            return 0.0
        low, high = int(np.searchsorted(self.values, 0.0)), len(self.values) - 1
        while low < high:  # the first value whose delta is within the target
            middle = (low + high) // 2
            low, high = (low, middle) if self._delta(float(self.values[middle])) <= target else (middle + 1, high)
        above = slice(low, None)  # on the piece below that value delta = S - e^eps T, with these sums
        mass = math.fsum(self.masses[above])
        weighted = math.fsum(self.masses[above] * np.exp(self.values[low] - self.values[above]))
        found = float(self.values[low]) + math.log(max((mass - target / ROUNDED_UP) / weighted, 1e-300))
        found, step = max(found, 0.0), 1e-15 * max(1.0, abs(found))
        while self._delta(found) > target:
            found, step = found + step, 2.0 * step
        return min(found, self.largest)

    def _delta(self, epsilon: float) -> float:
        above = self.values > epsilon
        if not above.any():
            return 0.0
        value = math.fsum(self.masses[above] * -np.expm1(epsilon - self.values[above]))
        return min(1.0, value * ROUNDED_UP + _UNDERFLOW)


def compose(releases: Sequence[tuple[BoxProfile, int]]) -> PrivacyLoss:
    """The privacy loss of so many releases from each box: `compose([(profile, 64)]).epsilon(1e-6)`."""
    counts: dict[BoxProfile, int] = {}
    for profile, count in _pairs(releases):
        check_profile(profile)
        counts[profile] = counts.get(profile, 0) + check_count("samples", count)
    if not counts:
        return PrivacyLoss(np.zeros(1), np.ones(1), attained=True)
    losses = [_repeated(profile, count) for profile, count in counts.items()]
    return functools.reduce(_combined, losses)


def _pairs(releases: Any) -> list[tuple[BoxProfile, int]]:
    """Releases as a list of pairs, or the error that says what they should be."""
    try:
        return [(profile, count) for profile, count in releases]
    except (TypeError, ValueError):
        raise DiscreetError(
            f"releases = {releases!r} is not a list of (profile, number of samples); pass [(profile_of(sampler), 3), ...]"
        ) from None


def _repeated(profile: BoxProfile, count: int) -> PrivacyLoss:
    """The loss of `count` releases from one box, on the multiples of its epsilon."""
    if count > MOST_SAMPLES:
        raise DiscreetError(
            f"samples = {count} is more than {MOST_SAMPLES:,}, up to which the sum is exact; use epsilon_from_renyi"
        )
    once = np.array([profile.lower_mass, 1.0 - profile.lower_mass - profile.upper_mass, profile.upper_mass])
    once = np.maximum(once, 0.0) + [
        0.0,
        4.0 * _UNIT,
        0.0,
    ]  # the rest of masses that were rounded up is not less than it is
    masses: NDArray[np.float64] = np.ones(1)
    square, left = once, count
    while left:
        if left & 1:
            masses = _convolved(masses, square)
        left >>= 1
        if left:
            square = _convolved(square, square)
    return PrivacyLoss(product_up(profile.epsilon, np.arange(-count, count + 1)), masses, profile.attained)


def _convolved(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    return _summed(np.convolve(first, second), min(len(first), len(second)))


def _summed(masses: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
    """Sums of at most so many products of positive numbers, with what rounding can have taken off put back."""
    return np.asarray(masses * (1.0 + (terms + 4) * 2.0 * _UNIT), dtype=np.float64)


def _combined(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    first, second = _coarse(first, MOST_LOSSES), _coarse(second, MOST_LOSSES)
    values = sum_up(first.values[:, None], second.values).ravel()
    masses = _summed(np.multiply.outer(first.masses, second.masses).ravel(), 1)
    order = np.argsort(values, kind="stable")
    both = PrivacyLoss(values[order], masses[order], first.attained and second.attained)
    return _coarse(both, MOST_KEPT)


def _coarse(loss: PrivacyLoss, most: int) -> PrivacyLoss:
    """At most so many values, each loss rounded up to the next of them: the grid spans all but negligible tails."""
    if len(loss.values) <= most:
        return loss
    below = np.cumsum(loss.masses)
    above = np.cumsum(loss.masses[::-1])[::-1]
    low = loss.values[np.argmax(below > _TAIL)]
    high = loss.values[len(above) - 1 - int(np.argmax(above[::-1] > _TAIL))]
    grid = np.unique(np.append(np.linspace(low, high, most - 1), loss.largest))
    place = np.searchsorted(grid, loss.values, side="left")
    masses = np.bincount(place, weights=loss.masses, minlength=len(grid)).astype(np.float64)
    return PrivacyLoss(grid, _summed(masses, len(loss.masses)), attained=False)
