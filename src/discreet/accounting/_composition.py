"""The privacy loss of many releases of one client: `compose` adds it up exactly, `renyi` by Renyi divergences, `Odometer` as releases go on.

All bounds are rounded up. The privacy loss of n releases is the sum of n independent losses. It has finitely many values, so delta is a
finite sum:

    delta(eps) = P[L infinite] + sum over losses l > eps of P[L = l] (1 - e^(eps - l))

For n releases from one box, L is a multiple of its epsilon, and its distribution is an n-fold convolution of positive numbers: nothing
cancels. Different boxes add up over all pairs of losses. The result also holds for releases chosen one after the other after seeing earlier
ones.

**Rounding.** Sums of t products of positive numbers are off by at most t + 1 units of relative rounding error, which is added each time.
Losses are rounded up too: the sum of a hundred times 0.1 is more than 10, since the float 0.1 is more than a tenth. If two distributions
have more than `MOST_LOSSES` values, losses are rounded UP to a grid. All of this can only make delta larger: the result is an upper bound,
down to the last bit.

**Notions of privacy.** If only the notion of a release is known, its loss is the worst that the notion allows. A notion is a trade-off
function f, and f belongs to one pair of distributions. Over a piece of f with width dx and drop dy the first has mass dx and the second dy,
so the privacy loss is log(dy/dx) with probability dy. No composition of two mechanisms that keep f and g is easier to distinguish than that
of these pairs (Dong, Roth and Su 2022, Prop. 2.2 and Thm 3.2). Hence

    pure         +eps with probability e^eps/(1 + e^eps), -eps otherwise: the box of alpha = 1/2
    approximate  the same times 1 - delta, and infinite with probability delta (Kairouz, Oh and Viswanath 2015, Thm 3.3)
    functional   one loss for each side of the broken line, and infinite with probability 1 - f(0)
    Gaussian     normal with mean nu^2/2 and variance nu^2; n of them are one with nu = sqrt(nu_1^2 + ... + nu_n^2)

Gaussian releases alone stay Gaussian, exactly. Beside others their loss is rounded up to a grid, and the part beyond its end counts as
infinite: an upper bound, to within the grid.

**Renyi curve.** For the dominating pair of `discreet.accounting._profile`, with t = order - 1,

    D_order = log(1 + m B (e^(t eps) - 1)(1 - e^(-order eps))) / t,      D_1 = m B eps (1 - e^(-eps)),      D_inf = eps

(the moment m b e^(order eps) + m b e^((1 - order) eps) + 1 - m b (1 + e^eps), less 1 and factored so that nothing cancels). Renyi
divergences add up over releases, and for every order > 1

    epsilon = D_order + log(1 - 1/order) - log(delta order)/(order - 1)

holds with that delta (Canonne, Kamath and Steinke, NeurIPS 2020, Proposition 12). It is never better than `discreet.accounting.compose`,
which is exact, but it has no limit on the number of releases.

**Odometer.** Each release may be chosen after seeing all earlier ones. Let l_s be the privacy loss of release s (the log-ratio of its
outcome's probabilities for two clients), drawn from a box that may depend on all outcomes before it, and L_t = l_1 + ... + l_t. For an
order a > 1 that is fixed in advance

    M_t = exp((a - 1)(L_t - D_a(box_1) - ... - D_a(box_t)))        is a supermartingale with M_0 = 1,

since E[e^((a-1) l) | past] <= e^((a-1) D_a(box)) by the definition of the Renyi divergence. By Ville's inequality M_t ever exceeds 1/d with
probability at most d. For orders a_1 < ... < a_n and d = delta/n each,

    epsilon_t = min( sum_s epsilon_s,  min_i [sum_s D_{a_i}(box_s) + log(n/delta)/(a_i - 1)] )   is at least L_t for ALL t at once

with probability at least 1 - delta. So it also holds at a data-dependent moment: stopping as soon as epsilon_t would exceed E gives (E,
delta)-LDP. (`discreet.accounting.compose` is smaller if the number of releases is fixed in advance.)
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, overload

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.numerics import LARGEST_FLOAT_EXPONENT, float_rounded_up, product_rounded_up, sum_rounded_up
from discreet._base.showing import with_short_repr
from discreet.accounting._profile import ROUNDED_UP, BoxProfile, refuse_unless_box_profile
from discreet.errors import NON_NEGATIVE, OPEN_UNIT, PROBABILITY, DiscreetError, Range, check_count
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure, normal_cdf_bounds

MOST_LOSSES = 2_048  # values of each of two distributions that are added up
MOST_KEPT = 32_768
UNIT = 2.0**-53  # relative rounding error of one operation
_UNDERFLOW = 1e-300  # far above any loss by underflow
_TAIL = 1e-22


@with_short_repr
@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The law of a privacy loss, under the worse of two clients.

    Attributes:
        values: increasing upper bounds of its values.
        masses: upper bounds of their probabilities.
        attained: whether two clients have exactly this loss, so that no smaller delta is true; otherwise it is an upper bound.
        certain: the probability of an infinite loss, by which two clients are told apart for certain.
    """

    values: NDArray[np.float64]
    masses: NDArray[np.float64]
    attained: bool
    certain: float = 0.0

    @property
    def largest(self) -> float:
        """The pure epsilon: basic composition, rounded up; infinite if clients may be distinguished with certainty."""
        return math.inf if self.certain else float(self.values[-1])

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which all releases together are (epsilon, delta)-LDP, rounded up."""
        return self._delta_at_epsilon(NON_NEGATIVE.check("epsilon", epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at that delta, rounded up: at delta = 0 the sum of the budgets, infinite if none suffices."""
        target = PROBABILITY.check("delta", delta, "a chance of failure, such as 1e-6, or 0 for the pure guarantee")
        if target < _UNDERFLOW:
            return self.largest
        if self._delta_at_epsilon(float(self.values[-1])) > target:
            return math.inf
        if self._delta_at_epsilon(0.0) <= target:
            return 0.0
        low, high = int(np.searchsorted(self.values, 0.0)), len(self.values) - 1
        while low < high:  # the first value whose delta is within the target
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._delta_at_epsilon(float(self.values[middle])) <= target else (middle + 1, high)
            )
        above = slice(low, None)  # on the piece below that value delta = S - e^eps T, with these sums
        mass = math.fsum(self.masses[above])
        weighted_mass = math.fsum(self.masses[above] * np.exp(self.values[low] - self.values[above]))
        epsilon = float(self.values[low]) + math.log(
            max((mass + self.certain - target / ROUNDED_UP) / weighted_mass, 1e-300)
        )
        epsilon, step = max(epsilon, 0.0), 1e-15 * max(1.0, abs(epsilon))
        while self._delta_at_epsilon(epsilon) > target:
            epsilon, step = epsilon + step, 2.0 * step
        return min(epsilon, float(self.values[-1]))

    def _delta_at_epsilon(self, epsilon: float) -> float:
        above = self.values > epsilon
        if not above.any():
            return min(1.0, self.certain)
        value = math.fsum(self.masses[above] * -np.expm1(epsilon - self.values[above])) + self.certain
        return min(1.0, value * ROUNDED_UP + _UNDERFLOW)


def convolve_rounding_up(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distribution of a sum of two whole numbers, rounded up."""
    return _add_largest_rounding_error(np.convolve(first, second), min(len(first), len(second)))


def _add_largest_rounding_error(masses: NDArray[np.float64], terms: int) -> NDArray[np.float64]:
    """Sums of at most `terms` products of positive numbers, increased by the largest rounding error."""
    return np.asarray(masses * (1.0 + (terms + 4) * 2.0 * UNIT), dtype=np.float64)


def loss_of_two_releases(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    """The loss of two releases together."""
    first, second = _coarsen_loss(first, MOST_LOSSES), _coarsen_loss(second, MOST_LOSSES)
    values = sum_rounded_up(first.values[:, None], second.values).ravel()
    masses = _add_largest_rounding_error(np.multiply.outer(first.masses, second.masses).ravel(), 1)
    order = np.argsort(values, kind="stable")
    is_attained = first.attained and second.attained
    loss = PrivacyLoss(
        values[order], masses[order], is_attained, probability_of_either_event(first.certain, second.certain)
    )
    return _coarsen_loss(loss, MOST_KEPT)


def _coarsen_loss(loss: PrivacyLoss, most: int) -> PrivacyLoss:
    """A loss with at most `most` values, each rounded up to the next on a grid over all but negligible tails."""
    if len(loss.values) <= most:
        return loss
    below = np.cumsum(loss.masses)
    above = np.cumsum(loss.masses[::-1])[::-1]
    low = loss.values[np.argmax(below > _TAIL)]
    high = loss.values[len(above) - 1 - int(np.argmax(above[::-1] > _TAIL))]
    grid = np.unique(np.append(np.linspace(low, high, most - 1), loss.largest))
    grid_index = np.searchsorted(grid, loss.values, side="left")
    masses = np.bincount(grid_index, weights=loss.masses, minlength=len(grid)).astype(np.float64)
    return PrivacyLoss(
        grid, _add_largest_rounding_error(masses, len(loss.masses)), attained=False, certain=loss.certain
    )


def loss_of_repeated_release(loss: PrivacyLoss, count: int) -> PrivacyLoss:
    """The loss of `count` releases with this loss each."""
    total: PrivacyLoss | None = None
    while True:
        if count & 1:
            total = loss if total is None else loss_of_two_releases(total, loss)
        count >>= 1
        if not count:
            assert total is not None
            return total
        loss = loss_of_two_releases(loss, loss)


def probability_of_either_event(first: float, second: float) -> float:
    """The probability of at least one of two independent events, rounded up."""
    return min(1.0, (first + second * (1.0 - first)) * ROUNDED_UP)


_REACH = 12  # standard deviations of a Gaussian loss on its grid: 2e-33 lies beyond
_LARGEST = 1e6  # largest epsilon of a profile
_NO_DELTA = 1e-80  # below the precision of the normal distribution function
_LARGEST_NU = Fraction(10**100)  # whose square is a float, with room for products


@dataclass(frozen=True)
class GaussianLoss:
    """The privacy loss of Gaussian releases together, which is that of one.

    Deltas are within 1e-12 of the smallest true one while nu/2 + epsilon/nu is at most 16, and upper bounds beyond.

    Attributes:
        nu: the parameter of that one release, rounded up.
        attained: whether two clients have exactly this loss.
    """

    nu: float
    attained: bool = True

    @property
    def largest(self) -> float:
        """The pure epsilon: there is none."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which all releases together are (epsilon, delta)-LDP, rounded up."""
        return self._delta_at_epsilon(NON_NEGATIVE.check("epsilon", epsilon))

    def _delta_at_epsilon(self, epsilon: float) -> float:
        return Gaussian(self.nu).profile(min(epsilon, _LARGEST))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at that delta, rounded up; infinite at delta = 0."""
        target = PROBABILITY.check("delta", delta, "a chance of failure, such as 1e-6")
        if target < _NO_DELTA:
            return math.inf
        if self._delta_at_epsilon(0.0) <= target:
            return 0.0
        low, high = 0.0, 1.0
        while self._delta_at_epsilon(high) > target:
            low, high = high, 2.0 * high
            if high > _LARGEST:
                return math.inf
        while math.nextafter(low, high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._delta_at_epsilon(middle) <= target else (middle, high)
        return high


def gaussian_loss_of_squared_nu(squares: Fraction) -> GaussianLoss:
    """The loss of releases whose nu have squares with this sum."""
    if squares > _LARGEST_NU**2:
        raise DiscreetError(f"releases add up to more than nu = {float(_LARGEST_NU):g}, at which nothing is private")
    nu = math.sqrt(float_rounded_up(squares))
    while Fraction(nu) ** 2 < squares:
        nu = math.nextafter(nu, math.inf)
    return GaussianLoss(nu)


def gaussian_loss_on_grid(loss: GaussianLoss) -> PrivacyLoss:
    """A Gaussian loss on a grid, rounded up."""
    nu, sides = Fraction(loss.nu), MOST_LOSSES // 2
    deviations = [Fraction(step * _REACH, sides) for step in range(1 - sides, sides + 1)]
    below = [normal_cdf_bounds(deviation) for deviation in deviations]
    values = [float_rounded_up(nu * nu / 2 + nu * deviation) for deviation in deviations]
    masses = [below[0][1], *(high[1] - low[0] for low, high in itertools.pairwise(below))]
    return PrivacyLoss(
        np.array(values),
        np.array([float_rounded_up(mass) for mass in masses]),
        attained=False,
        certain=float_rounded_up(1 - below[-1][0]),
    )


def loss_of_functional_notion(notion: Functional) -> PrivacyLoss:
    """The loss of the pair whose trade-off function is the broken line; it bounds both orders of two clients."""
    corners = notion.corners
    values, masses = [], []
    for (left, high), (right, low) in itertools.pairwise(corners):
        if high > low:
            values.append(_log_rounded_up((high - low) / (right - left)))
            masses.append(float_rounded_up(high - low))
    order = np.argsort(values, kind="stable")
    values_and_masses = np.array(values)[order], np.array(masses)[order]
    if not values:  # f = 0: releases are always distinguished
        values_and_masses = np.zeros(1), np.zeros(1)
    return PrivacyLoss(*values_and_masses, attained=False, certain=float_rounded_up(1 - corners[0][1]))


_LARGEST_RATIO = 10**300


def _log_rounded_up(ratio: Fraction) -> float:
    """An upper bound of log(ratio), for positive ratios, also beyond every float."""
    if ratio <= _LARGEST_RATIO:
        value = math.log(float_rounded_up(ratio))
        return value + 4.0 * math.ulp(max(abs(value), 1.0))
    numerator, denominator = math.log(ratio.numerator), math.log(ratio.denominator)
    return numerator - denominator + 8.0 * math.ulp(numerator)


MOST_SAMPLES = 50_000
_EVEN = 0.5  # alpha of the box that is the worst of all that are epsilon-LDP


@overload
def compose(releases: Sequence[tuple[BoxProfile, int]]) -> PrivacyLoss: ...
@overload
def compose(releases: Sequence[tuple[BoxProfile | Privacy, int]]) -> PrivacyLoss | GaussianLoss: ...
def compose(releases: Sequence[tuple[BoxProfile | Privacy, int]]) -> PrivacyLoss | GaussianLoss:
    """The privacy loss of several releases from each box, or under each notion: `compose([(profile, 64)]).epsilon(1e-6)`.

    Args:
        releases: pairs of a release, `profile_of(sampler)` or a notion such as `Gaussian(1.0)`, and its number.

    Returns:
        A loss with `delta(epsilon)`, `epsilon(delta)` and `largest`; Gaussian ones alone give a Gaussian one.

    Raises:
        DiscreetError: for an invalid list, and for more releases than can be added up exactly.
    """
    counts: dict[BoxProfile | Privacy, int] = {}
    squares = Fraction(0)
    for release, count in _read_release_pairs(releases):
        number = check_count("samples", count)
        if isinstance(release, Gaussian):
            squares += number * Fraction(release.nu) ** 2
            continue
        if not isinstance(release, Privacy):
            refuse_unless_box_profile(release)
        counts[release] = counts.get(release, 0) + number
    losses = [_loss_of_releases_of_one_kind(release, count) for release, count in counts.items()]
    if squares:
        gaussian_loss = gaussian_loss_of_squared_nu(squares)
        if not losses:
            return gaussian_loss
        losses.append(gaussian_loss_on_grid(gaussian_loss))
    if not losses:
        return PrivacyLoss(np.zeros(1), np.ones(1), attained=True)
    return functools.reduce(loss_of_two_releases, losses)


def _read_release_pairs(releases: Any) -> list[tuple[Any, Any]]:
    """Releases as a list of pairs, or an error that says what they should be."""
    try:
        return [(release, count) for release, count in releases]
    except (TypeError, ValueError):
        raise DiscreetError(
            f"releases = {releases!r} is not a list of (profile, number of samples); pass [(profile_of(sampler), 3), ...]"
        ) from None


def _loss_of_releases_of_one_kind(release: BoxProfile | Privacy, count: int) -> PrivacyLoss:
    """The loss of `count` releases of one kind."""
    if count > MOST_SAMPLES:
        raise DiscreetError(
            f"samples = {count} is more than {MOST_SAMPLES:,}, up to which the sum is exact; use epsilon_from_renyi"
        )
    match release:
        case BoxProfile():
            return _loss_of_box_releases(release, count)
        case Pure(epsilon=epsilon):
            return _loss_of_box_releases(BoxProfile(epsilon=epsilon, alpha=_EVEN, attained=True), count)
        case Approximate(epsilon=epsilon, delta=delta):
            pure_loss = _loss_of_box_releases(BoxProfile(epsilon=epsilon, alpha=_EVEN, attained=True), count)
            finite_mass = math.exp(count * math.log1p(-delta)) * ROUNDED_UP
            infinite_mass = min(1.0, -math.expm1(count * math.log1p(-delta)) * ROUNDED_UP)
            return PrivacyLoss(
                pure_loss.values,
                np.minimum(pure_loss.masses * finite_mass * ROUNDED_UP, 1.0),
                attained=True,
                certain=infinite_mass,
            )
        case Functional():
            return loss_of_repeated_release(loss_of_functional_notion(release), count)
    raise DiscreetError(
        f"{release!r} cannot be added up; pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)"
    )


def _loss_of_box_releases(profile: BoxProfile, count: int) -> PrivacyLoss:
    """The loss of `count` releases from one box, on the multiples of its epsilon."""
    # each is rounded up by itself: what is left beside the other two would be less than the truth
    single = np.array([profile.lower_mass, profile.middle_mass, profile.upper_mass])
    masses: NDArray[np.float64] = np.ones(1)
    square, rest_count = single, count
    while rest_count:
        if rest_count & 1:
            masses = convolve_rounding_up(masses, square)
        rest_count >>= 1
        if rest_count:
            square = convolve_rounding_up(square, square)
    return PrivacyLoss(product_rounded_up(profile.epsilon, np.arange(-count, count + 1)), masses, profile.attained)


_ORDER = Range(1.0, math.inf)
MOST_RENYI_SAMPLES = 10**15


def renyi(profile: BoxProfile, *, order: float) -> float:
    """The largest Renyi divergence of that order between what two clients release, rounded up.

    Args:
        profile: of one release.
        order: of the divergence.

    Returns:
        The divergence.

    Raises:
        DiscreetError: for arguments out of range.
    """
    refuse_unless_box_profile(profile)
    order = _ORDER.check("order", order, "the order of a Renyi divergence")
    epsilon, mass, t = profile.epsilon, profile.upper_mass, order - 1.0
    if math.isinf(order):
        return epsilon if mass else 0.0
    if mass == 0.0:
        return 0.0
    if t * epsilon > LARGEST_FLOAT_EXPONENT:
        divergence = float(np.logaddexp(0.0, t * epsilon + math.log(mass))) / t
    elif t == 0.0:
        divergence = mass * epsilon * -math.expm1(-epsilon)
    else:
        divergence = math.log1p(mass * math.expm1(t * epsilon) * -math.expm1(-order * epsilon)) / t
        divergence *= (
            1.0 + t * epsilon * 2.0**-52
        )  # the exponent's rounding becomes a relative error of its exponential
    return min(epsilon, divergence * ROUNDED_UP + _UNDERFLOW)


def epsilon_from_renyi(profile: BoxProfile, *, samples: int, delta: float) -> float:
    """An epsilon at which that many releases together are (epsilon, delta)-LDP, from the best order.

    Args:
        profile: of each release.
        samples: how many releases there are.
        delta: in (0, 1).

    Returns:
        The epsilon, at most that of basic composition.

    Raises:
        DiscreetError: for arguments out of range.
    """
    refuse_unless_box_profile(profile)
    samples, delta = check_count("samples", samples), OPEN_UNIT.check("delta", delta)
    if samples > MOST_RENYI_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_RENYI_SAMPLES:,}; that many cannot be made")

    def epsilon_at_order(log_t: float) -> float:
        order = 1.0 + math.exp(log_t)
        t = order - 1.0
        parts = samples * renyi(profile, order=order), math.log(t / order), -math.log(delta * order) / t
        return math.fsum(parts) + 1e-14 * sum(map(abs, parts))  # plus a bound on the rounding error

    optimum = scipy.optimize.minimize_scalar(epsilon_at_order, bounds=(-12.0, 12.0), method="bounded")
    return max(0.0, min(float(optimum.fun), float_rounded_up(samples * Fraction(profile.epsilon))))


_ORDERS: tuple[float, ...] = tuple(1.0 + 2.0 ** (step / 2.0) for step in range(-8, 17))
_ODOMETER_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Odometer:
    """The cost of all releases so far. `with_releases` returns the next odometer; nothing changes in place.

    Args:
        delta: the probability that the loss ever exceeds the shown value; 0 for sums of epsilons alone.
        releases: the number of releases from each box.

    Raises:
        DiscreetError: for a delta outside [0, 1].

    Example:
        >>> odometer = Odometer(delta=1e-6).with_releases(BoxProfile(epsilon=0.5, alpha=0.1), samples=10)
    """

    delta: float
    releases: tuple[tuple[BoxProfile, int], ...] = ()

    def __post_init__(self) -> None:
        PROBABILITY.check("delta", self.delta, "a chance of failure, such as 1e-6, or 0 for the pure guarantee")

    def with_releases(self, profile: BoxProfile, *, samples: int = 1) -> Odometer:
        """The odometer after `samples` more releases from a box, which may depend on everything before."""
        refuse_unless_box_profile(profile)
        counts = dict(self.releases)
        counts[profile] = counts.get(profile, 0) + check_count("samples", samples)
        return replace(self, releases=tuple(counts.items()))

    after = OldName("with_releases")

    @property
    def pure(self) -> float:
        """Basic composition: the sum of the epsilons, rounded up."""
        return float_rounded_up(
            sum((Fraction(profile.epsilon) * count for profile, count in self.releases), Fraction(0))
        )

    @property
    def epsilon(self) -> float:
        """An upper bound on the loss so far, with probability at least 1 - delta for all moments together; rounded up."""
        if self.delta == 0.0:
            return self.pure
        log_odds = math.log(len(_ORDERS) / self.delta)
        epsilon = min(self._total_renyi_divergence(order) + log_odds / (order - 1.0) for order in _ORDERS)
        return min(self.pure, max(0.0, epsilon) * _ODOMETER_ROUNDING)

    def _total_renyi_divergence(self, order: float) -> float:
        return math.fsum(count * renyi(profile, order=order) for profile, count in self.releases)
