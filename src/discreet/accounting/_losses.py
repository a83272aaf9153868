"""The law of a privacy loss on finitely many values, whose deltas are finite sums; of two releases it is the sum of two such laws.

    delta(eps) = P[L past every number] + sum over losses l > eps of P[L = l] (1 - e^(eps - l))

Sums of t products of positive numbers are off by at most t + 1 units of relative rounding error, which is added on top of them each time.
Losses are rounded up too. Where two laws have more than `MOST_LOSSES` values, losses are rounded UP to a grid. All of this can only make
delta larger: what is reported is an upper bound, down to the last bit.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet._showing import with_short_repr
from discreet.accounting._profile import ROUNDED_UP
from discreet.errors import NON_NEGATIVE, PROBABILITY
from discreet.numerics import sum_up

MOST_LOSSES = 2_048  # of each of two laws that are added up
MOST_KEPT = 32_768
UNIT = 2.0**-53  # relative rounding error of one operation
_UNDERFLOW = 1e-300  # far above all that underflow can lose
_TAIL = 1e-22


@with_short_repr
@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The law of a privacy loss: increasing upper bounds of its values, and of their probabilities under the worse of two clients.

    `attained`: two clients have exactly this loss, so that no smaller delta is true; otherwise it is an upper bound. `certain`: the
    probability of a loss past every number, by which two clients are told apart for certain.
    """

    values: NDArray[np.float64]
    masses: NDArray[np.float64]
    attained: bool
    certain: float = 0.0

    @property
    def largest(self) -> float:
        """The pure epsilon: basic composition, rounded up; infinite where clients may be told apart for certain."""
        return math.inf if self.certain else float(self.values[-1])

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which all releases together are (epsilon, delta)-LDP, rounded up."""
        return self._delta(NON_NEGATIVE.check("epsilon", epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at that delta, rounded up: at delta = 0 the sum of the budgets, infinite where no epsilon will do."""
        target = PROBABILITY.check("delta", delta, "a chance of failure, such as 1e-6, or 0 for the pure guarantee")
        if target < _UNDERFLOW:
            return self.largest
        if self._delta(float(self.values[-1])) > target:
            return math.inf
        if self._delta(0.0) <= target:
            return 0.0
        low, high = int(np.searchsorted(self.values, 0.0)), len(self.values) - 1
        while low < high:  # the first value whose delta is within the target
            middle = (low + high) // 2
            low, high = (low, middle) if self._delta(float(self.values[middle])) <= target else (middle + 1, high)
        above = slice(low, None)  # on the piece below that value delta = S - e^eps T, with these sums
        mass = math.fsum(self.masses[above])
        weighted = math.fsum(self.masses[above] * np.exp(self.values[low] - self.values[above]))
        found = float(self.values[low]) + math.log(max((mass + self.certain - target / ROUNDED_UP) / weighted, 1e-300))
        found, step = max(found, 0.0), 1e-15 * max(1.0, abs(found))
        while self._delta(found) > target:
            found, step = found + step, 2.0 * step
        return min(found, float(self.values[-1]))

    def _delta(self, epsilon: float) -> float:
        above = self.values > epsilon
        if not above.any():
            return min(1.0, self.certain)
        value = math.fsum(self.masses[above] * -np.expm1(epsilon - self.values[above])) + self.certain
        return min(1.0, value * ROUNDED_UP + _UNDERFLOW)


def convolve_up(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of a sum of two whole numbers, rounded up."""
    return _round_up_sums(np.convolve(first, second), min(len(first), len(second)))


def _round_up_sums(masses: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
    """Sums of at most so many products of positive numbers, with what rounding can have taken off put back."""
    return np.asarray(masses * (1.0 + (terms + 4) * 2.0 * UNIT), dtype=np.float64)


def joint_loss(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    """The loss of two releases together."""
    first, second = _coarsen_loss(first, MOST_LOSSES), _coarsen_loss(second, MOST_LOSSES)
    values = sum_up(first.values[:, None], second.values).ravel()
    masses = _round_up_sums(np.multiply.outer(first.masses, second.masses).ravel(), 1)
    order = np.argsort(values, kind="stable")
    attained = first.attained and second.attained
    both = PrivacyLoss(values[order], masses[order], attained, either_probability(first.certain, second.certain))
    return _coarsen_loss(both, MOST_KEPT)


def _coarsen_loss(loss: PrivacyLoss, most: int) -> PrivacyLoss:
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
    return PrivacyLoss(grid, _round_up_sums(masses, len(loss.masses)), attained=False, certain=loss.certain)


def loss_of_copies(loss: PrivacyLoss, count: int) -> PrivacyLoss:
    """The loss of so many releases with this one each."""
    found: PrivacyLoss | None = None
    while True:
        if count & 1:
            found = loss if found is None else joint_loss(found, loss)
        count >>= 1
        if not count:
            assert found is not None
            return found
        loss = joint_loss(loss, loss)


def either_probability(first: float, second: float) -> float:
    """The probability of one or the other of two independent events, rounded up."""
    return min(1.0, (first + second * (1.0 - first)) * ROUNDED_UP)
