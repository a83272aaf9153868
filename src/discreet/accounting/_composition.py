"""The privacy loss of n releases is the sum of n independent losses, so delta(epsilon) is a finite sum (`discreet.accounting._losses`).

For n releases from one box L is a multiple of its epsilon, and the law of L is an n-fold convolution of positive numbers: nothing
cancels. Losses are rounded up: the sum of a hundred times 0.1 is more than 10, since the float 0.1 is more than a tenth. Different boxes
add up by the same sum over all pairs of losses. Of a release of which no more is known than its notion of privacy the loss is the
worst that the notion allows (`discreet.accounting._notions`). It holds for releases chosen one after the other in the light of earlier
ones.
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.accounting._losses import UNIT, PrivacyLoss, convolve_up, joint_loss, loss_of_copies
from discreet.accounting._notions import GaussianLoss, broken_line_loss, gaussian_loss, loss_on_grid
from discreet.accounting._profile import ROUNDED_UP, BoxProfile, check_profile
from discreet.errors import DiscreetError, check_count
from discreet.numerics import product_up
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure

MOST_SAMPLES = 50_000
_EVEN = 0.5  # alpha of the box that is the worst of all that are epsilon-LDP


@overload
def compose(releases: Sequence[tuple[BoxProfile, int]]) -> PrivacyLoss: ...
@overload
def compose(releases: Sequence[tuple[BoxProfile | Privacy, int]]) -> PrivacyLoss | GaussianLoss: ...
def compose(releases: Sequence[tuple[BoxProfile | Privacy, int]]) -> PrivacyLoss | GaussianLoss:
    """The privacy loss of so many releases from each box, or under each notion: `compose([(profile, 64)]).epsilon(1e-6)`.

    Args:
        releases: pairs of what one release is, `profile_of(sampler)` or a notion such as `Gaussian(1.0)`, and how many there are.

    Returns:
        A loss with `delta(epsilon)`, `epsilon(delta)` and `largest`; Gaussian ones alone give a Gaussian one.

    Raises:
        DiscreetError: for what is no such list, and more releases than can be added up exactly.
    """
    counts: dict[BoxProfile | Privacy, int] = {}
    squares = Fraction(0)
    for release, count in _pairs(releases):
        number = check_count("samples", count)
        if isinstance(release, Gaussian):
            squares += number * Fraction(release.nu) ** 2
            continue
        if not isinstance(release, Privacy):
            check_profile(release)
        counts[release] = counts.get(release, 0) + number
    losses = [_loss_of_repeats(release, count) for release, count in counts.items()]
    if squares:
        together = gaussian_loss(squares)
        if not losses:
            return together
        losses.append(loss_on_grid(together))
    if not losses:
        return PrivacyLoss(np.zeros(1), np.ones(1), attained=True)
    return functools.reduce(joint_loss, losses)


def _pairs(releases: Any) -> list[tuple[Any, Any]]:
    """Releases as a list of pairs, or the error that says what they should be."""
    try:
        return [(release, count) for release, count in releases]
    except (TypeError, ValueError):
        raise DiscreetError(
            f"releases = {releases!r} is not a list of (profile, number of samples); pass [(profile_of(sampler), 3), ...]"
        ) from None


def _loss_of_repeats(release: BoxProfile | Privacy, count: int) -> PrivacyLoss:
    """The loss of `count` releases of one kind."""
    if count > MOST_SAMPLES:
        raise DiscreetError(
            f"samples = {count} is more than {MOST_SAMPLES:,}, up to which the sum is exact; use epsilon_from_renyi"
        )
    match release:
        case BoxProfile():
            return _from_box(release, count)
        case Pure(epsilon=epsilon):
            return _from_box(BoxProfile(epsilon=epsilon, alpha=_EVEN, attained=True), count)
        case Approximate(epsilon=epsilon, delta=delta):
            purely = _from_box(BoxProfile(epsilon=epsilon, alpha=_EVEN, attained=True), count)
            left = math.exp(count * math.log1p(-delta)) * ROUNDED_UP
            never = min(1.0, -math.expm1(count * math.log1p(-delta)) * ROUNDED_UP)
            return PrivacyLoss(
                purely.values, np.minimum(purely.masses * left * ROUNDED_UP, 1.0), attained=True, certain=never
            )
        case Functional():
            return loss_of_copies(broken_line_loss(release), count)
    raise DiscreetError(
        f"{release!r} cannot be added up; pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)"
    )


def _from_box(profile: BoxProfile, count: int) -> PrivacyLoss:
    """The loss of `count` releases from one box, on the multiples of its epsilon."""
    once = np.array([profile.lower_mass, 1.0 - profile.lower_mass - profile.upper_mass, profile.upper_mass])
    once = np.maximum(once, 0.0) + [
        0.0,
        4.0 * UNIT,
        0.0,
    ]  # the rest of masses that were rounded up is not less than it is
    masses: NDArray[np.float64] = np.ones(1)
    square, left = once, count
    while left:
        if left & 1:
            masses = convolve_up(masses, square)
        left >>= 1
        if left:
            square = convolve_up(square, square)
    return PrivacyLoss(product_up(profile.epsilon, np.arange(-count, count + 1)), masses, profile.attained)
