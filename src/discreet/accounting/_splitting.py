"""Splitting a budget: the largest share for each of n samples of one client.

At delta = 0 the answer is epsilon/n and cannot be better: the n-fold loss of a box reaches n times its own. At delta > 0
the composed epsilon grows with that of each sample (`discreet.accounting._composition`), so the largest share that keeps the
total is a root. All samples get the same share: they are exchangeable, and no better split is known.

For any notion of privacy the same is decided in rationals. Theorem. n releases from boxes with l = m b and u = m B keep f as soon as, with
D the sum of n independent steps that are +1 with probability u, -1 with l and 0 otherwise,

    f(x_t) <= 1 - y_t    and    f(1 - y_t) <= x_t         for t = 0, ..., n - 1,      x_t = P[D < -t],  y_t = P[D > t].

Proof. The pair of distributions (u, l, 1 - u - l) and (l, u, 1 - u - l) dominates one release (`discreet.privacy._notion`), so its n-fold
product dominates n of them. The likelihood ratio of the product is e^(eps D), and D has the opposite distribution under the other client: its
trade-off function is the broken line through (0, 1), the points (x_t, 1 - y_t), their mirror images, and (1, 0). f is convex, so it lies
below a broken line as soon as it does at the corners.   QED
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import scipy  # its parts are imported when they are first used

from discreet._base.numerics import stated_decimal
from discreet.accounting._composition import MOST_SAMPLES, compose
from discreet.accounting._profile import BoxProfile
from discreet.errors import PROBABILITY, DiscreetError, check_count, check_kind
from discreet.families import Bounds
from discreet.privacy import Approximate, Gaussian, Privacy, Pure, check_epsilon, exp_lower, require_masses_of_box

MOST_EXACT = 24  # most samples with a composition in rationals
_LEAST_SHARE, _LARGEST_SHARE = 1e-30, 60.0
_LARGEST_COMPOSED_SHARE = 5e5  # its double is still that of a box
_NEAR = 1e-10  # relative precision of a share


def epsilon_per_sample(*, alpha: float, samples: int, epsilon: float, delta: float) -> float:
    """The largest epsilon for each sample with which all of them together are (epsilon, delta)-LDP.

    Args:
        alpha: as in `BoxProfile`.
        samples: how many there are.
        epsilon: of all of them together.
        delta: of all of them together; 0 for the pure guarantee.

    Returns:
        The epsilon of each.

    Raises:
        DiscreetError: for arguments out of range.
    """
    total, n = check_epsilon(epsilon), check_count("samples", samples)
    if n > MOST_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_SAMPLES:,}, up to which the sum is exact")
    delta = PROBABILITY.check("delta", delta)

    def composed_epsilon_minus_total(share: float) -> float:
        return compose([(BoxProfile(epsilon=share, alpha=alpha), n)]).epsilon(delta) - total

    if delta == 0.0:
        BoxProfile(epsilon=1.0, alpha=alpha)  # validates alpha
        return _pure_epsilon_for_each_sample(total, n)
    share = total / n
    if not share:
        raise DiscreetError(f"samples = {n}: nothing is left of epsilon = {total!r} for each; take fewer")
    if share > _LARGEST_COMPOSED_SHARE:
        raise DiscreetError(
            f"epsilon = {total:g} leaves more than {_LARGEST_COMPOSED_SHARE:g} for each sample, at which nothing is private"
        )
    high = 2.0 * share
    while composed_epsilon_minus_total(high) <= 0.0:
        share, high = high, 2.0 * high
        if high > 1e3:  # delta alone covers all of it
            return share
    share = (
        float(scipy.optimize.brentq(composed_epsilon_minus_total, share, high, xtol=1e-12, rtol=1e-12))
        if composed_epsilon_minus_total(share) < 0.0
        else share
    )
    step = math.ulp(share)
    while composed_epsilon_minus_total(share) > 0.0:
        share, step = share - step, 2.0 * step
    return share


def keeps_together(privacy: Privacy, lower: Fraction, upper: Fraction, samples: int) -> bool:
    """Whether `samples` releases from boxes with m b = lower and m B = upper certainly keep a notion together; decided in rationals.

    Args:
        privacy: what all of them together promise.
        lower: m b of each.
        upper: m B of each.
        samples: their number, at most `MOST_EXACT`.

    Returns:
        True only where it is certain.

    Raises:
        DiscreetError: for arguments out of range.
    """
    check_kind("privacy", privacy, Privacy, "pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)")
    lower, upper = require_masses_of_box(lower, upper)
    samples = check_count("samples", samples, least=0, most=MOST_EXACT)
    if lower == upper:
        return True
    scale = math.lcm(lower.denominator, upper.denominator)
    step = [int(lower * scale), int((1 - lower - upper) * scale), int(upper * scale)]
    law = [1]
    for _ in range(samples):
        law = [
            sum(step[shift] * law[position - shift] for shift in range(3) if 0 <= position - shift < len(law))
            for position in range(len(law) + 2)
        ]
    total, least, most = scale**samples, 0, 0
    for t in range(samples - 1, -1, -1):
        least += law[samples - t - 1]
        most += law[samples + t + 1]
        if not privacy.allows(Fraction(least, total), Fraction(most, total)):
            return False
    return True


def equal_share(privacy: Privacy, *, samples: int, bounds: Bounds) -> Privacy:
    """The largest known equal share of a notion for each of several releases on a band, such that all together keep it.

    Args:
        privacy: what all of them together promise.
        samples: their number.
        bounds: of dP/dmu, which determine the mass of an extreme client's support.

    Returns:
        A pure notion, or a Gaussian one for many Gaussian samples.

    Raises:
        DiscreetError: for more samples than can be added up, and a notion that leaves nothing for each.
    """
    check_kind("privacy", privacy, Privacy, "pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)")
    check_kind("bounds", bounds, Bounds, "pass family.bounds")
    return _cached_equal_share(privacy, check_count("samples", samples, most=MOST_SAMPLES), bounds)


@functools.lru_cache(maxsize=64)
def _cached_equal_share(privacy: Privacy, n: int, bounds: Bounds) -> Privacy:
    if n == 1:
        return privacy
    if isinstance(privacy, Pure):
        return Pure(_pure_epsilon_for_each_sample(privacy.epsilon, n))
    shares: list[Privacy] = []
    if n <= MOST_EXACT:
        share = _find_largest_share_keeping_notion(
            lambda epsilon: keeps_together(privacy, *_extreme_masses_of_optimal_box(bounds, epsilon), n)
        )
        shares += [Pure(share)] if share else []
    elif isinstance(privacy, Approximate):
        shares += [
            Pure(epsilon_per_sample(alpha=bounds.alpha, samples=n, epsilon=privacy.epsilon, delta=privacy.delta))
        ]
    if isinstance(privacy, Gaussian):
        shares.append(Gaussian(_nu_for_each_sample(privacy.exact_nu, n)))
    if not shares:
        raise DiscreetError(
            f"samples = {n}: {privacy} leaves no share that is known to be allowed; take fewer (at most "
            f"{MOST_EXACT} for a "
            "function), or a larger budget"
        )
    return max(shares, key=lambda notion: notion.mixing(bounds))


def _pure_epsilon_for_each_sample(epsilon: float, samples: int) -> float:
    """The largest float whose n-fold sum fits into epsilon twice: as written, which ledgers add up, and as the draw takes both.

    The draw takes the smaller of a number as written and as a float.
    """
    stated_epsilon = Fraction(stated_decimal(epsilon))
    drawn_epsilon = min(Fraction(epsilon), stated_epsilon)
    share = float(drawn_epsilon / samples)
    while (
        Fraction(stated_decimal(share)) * samples > stated_epsilon
        or min(Fraction(share), Fraction(stated_decimal(share))) * samples > drawn_epsilon
    ):
        share = math.nextafter(share, 0.0)
    if not share:
        raise DiscreetError(f"samples = {samples}: nothing is left of epsilon = {epsilon!r} for each; take fewer")
    return share


def _nu_for_each_sample(nu: Fraction, samples: int) -> float:
    """The largest float with n times its square at most nu squared."""
    share = float(nu) / math.sqrt(samples)
    while samples * Fraction(share) ** 2 > nu * nu:
        share = math.nextafter(share, 0.0)
    return share


def _extreme_masses_of_optimal_box(bounds: Bounds, epsilon: float) -> tuple[Fraction, Fraction]:
    """m b and m B of the optimal box of a band at that epsilon, for a ratio of at least e^epsilon to 58 digits."""
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    alpha, ratio = (1 - lower) / (upper - lower), max(Fraction(math.exp(epsilon)), exp_lower(epsilon))
    least = min(alpha, 1 - alpha) / (alpha * ratio + 1 - alpha)
    return least, ratio * least


def _find_largest_share_keeping_notion(keeps: Callable[[float], bool]) -> float:
    """Nearly the largest share up to which all shares keep the notion; 0 if none is found."""
    low, high = 0.0, 1.0
    while high < _LARGEST_SHARE and keeps(high):
        low, high = high, 2.0 * high
    while not low and high > _LEAST_SHARE:
        low, high = (high / 2.0, high) if keeps(high / 2.0) else (0.0, high / 2.0)
    while low and high - low > _NEAR * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
