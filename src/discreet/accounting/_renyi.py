"""The Renyi curve of a box with its (epsilon, delta), and `Odometer`, the cost of a stream of releases at any moment.

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

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy  # its parts are imported when they are first used

from discreet._base.doors import OldName
from discreet._base.numerics import float_up
from discreet.accounting._profile import ROUNDED_UP, BoxProfile, check_profile
from discreet.errors import OPEN_UNIT, PROBABILITY, DiscreetError, Range, check_count

_ORDER = Range(1.0, math.inf)
_NO_OVERFLOW = 700.0
_UNDERFLOW = 1e-300  # far above any loss by underflow
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
    check_profile(profile)
    order = _ORDER.check("order", order, "the order of a Renyi divergence")
    epsilon, mass, t = profile.epsilon, profile.upper_mass, order - 1.0
    if math.isinf(order):
        return epsilon if mass else 0.0
    if mass == 0.0:
        return 0.0
    if t * epsilon > _NO_OVERFLOW:
        found = float(np.logaddexp(0.0, t * epsilon + math.log(mass))) / t
    elif t == 0.0:
        found = mass * epsilon * -math.expm1(-epsilon)
    else:
        found = math.log1p(mass * math.expm1(t * epsilon) * -math.expm1(-order * epsilon)) / t
    return min(epsilon, found * ROUNDED_UP + _UNDERFLOW)


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
    check_profile(profile)
    samples, delta = check_count("samples", samples), OPEN_UNIT.check("delta", delta)
    if samples > MOST_RENYI_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_RENYI_SAMPLES:,}; that many cannot be made")

    def at(log_t: float) -> float:
        order = 1.0 + math.exp(log_t)
        t = order - 1.0
        parts = samples * renyi(profile, order=order), math.log(t / order), -math.log(delta * order) / t
        return math.fsum(parts) + 1e-14 * sum(map(abs, parts))  # plus a bound on the rounding error

    found = scipy.optimize.minimize_scalar(at, bounds=(-12.0, 12.0), method="bounded")
    return max(0.0, min(float(found.fun), float_up(samples * Fraction(profile.epsilon))))


_ORDERS: tuple[float, ...] = tuple(1.0 + 2.0 ** (step / 2.0) for step in range(-8, 17))
_ROUNDED_UP = 1.0 + 1e-12


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

    def with_releases(self, profile: BoxProfile, *, samples: int = 1) -> "Odometer":
        """The odometer after `samples` more releases from a box, which may depend on everything before."""
        check_profile(profile)
        counts = dict(self.releases)
        counts[profile] = counts.get(profile, 0) + check_count("samples", samples)
        return replace(self, releases=tuple(counts.items()))

    after = OldName("with_releases")

    @property
    def pure(self) -> float:
        """The sum of the epsilons, rounded up: never exceeded."""
        return float_up(sum((Fraction(profile.epsilon) * count for profile, count in self.releases), Fraction(0)))

    @property
    def epsilon(self) -> float:
        """An upper bound on the loss so far, with probability at least 1 - delta for all moments together; rounded up."""
        if self.delta == 0.0:
            return self.pure
        doubt = math.log(len(_ORDERS) / self.delta)
        found = min(self._divergence(order) + doubt / (order - 1.0) for order in _ORDERS)
        return min(self.pure, max(0.0, found) * _ROUNDED_UP)

    def _divergence(self, order: float) -> float:
        return math.fsum(count * renyi(profile, order=order) for profile, count in self.releases)
