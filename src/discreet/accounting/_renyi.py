"""The Renyi curve of a box, and what it says about (epsilon, delta).

For the dominating pair of `discreet.accounting._profile`, with t = order - 1,

    D_order = log(1 + m B (e^(t eps) - 1)(1 - e^(-order eps))) / t,      D_1 = m B eps (1 - e^(-eps)),      D_inf = eps

(the moment m b e^(order eps) + m b e^((1 - order) eps) + 1 - m b (1 + e^eps), with 1 taken off and factored so that nothing
cancels). Renyi divergences add up over releases, and for every order > 1

    epsilon = D_order + log(1 - 1/order) - log(delta order)/(order - 1)

holds with that delta (Canonne, Kamath and Steinke, NeurIPS 2020, Proposition 12). It is never better than
`discreet.accounting.compose`, which is exact, but it has no limit on the number of releases.
"""

import math
from fractions import Fraction

import numpy as np
import scipy  # its parts are imported when they are first used

from discreet.accounting._profile import ROUNDED_UP, BoxProfile, check_profile
from discreet.errors import OPEN_UNIT, DiscreetError, Range, check_count
from discreet.numerics import float_up

_ORDER = Range(1.0, math.inf)
_NO_OVERFLOW = 700.0
_UNDERFLOW = 1e-300  # far above all that underflow can lose
MOST_RENYI_SAMPLES = 10**15


def renyi(profile: BoxProfile, *, order: float) -> float:
    """The largest Renyi divergence of that order between what two clients release, rounded up."""
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
    """An epsilon at which that many releases together are (epsilon, delta)-LDP, from the best order."""
    check_profile(profile)
    samples, delta = check_count("samples", samples), OPEN_UNIT.check("delta", delta)
    if samples > MOST_RENYI_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_RENYI_SAMPLES:,}; that many cannot be made")

    def at(log_t: float) -> float:
        order = 1.0 + math.exp(log_t)
        t = order - 1.0
        parts = samples * renyi(profile, order=order), math.log(t / order), -math.log(delta * order) / t
        return math.fsum(parts) + 1e-14 * sum(map(abs, parts))  # each is off by a few units at most

    found = scipy.optimize.minimize_scalar(at, bounds=(-12.0, 12.0), method="bounded")
    return max(0.0, min(float(found.fun), float_up(samples * Fraction(profile.epsilon))))
