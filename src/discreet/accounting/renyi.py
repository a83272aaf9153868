"""The Renyi curve of a box, and what it says about (epsilon, delta).

For the dominating pair of `discreet.accounting.profile`, with t = order - 1,

    D_order = log(1 + m B (e^(t eps) - 1)(1 - e^(-order eps))) / t,      D_1 = m B eps (1 - e^(-eps)),      D_inf = eps

(the moment m b e^(order eps) + m b e^((1 - order) eps) + 1 - m b (1 + e^eps), with 1 taken off and factored so that nothing
cancels). Renyi divergences add up over releases, and for every order > 1

    epsilon = D_order + log(1 - 1/order) - log(delta order)/(order - 1)

holds with that delta (Canonne, Kamath and Steinke, NeurIPS 2020, Proposition 12). It is never better than
`discreet.accounting.composed`, which is exact, but it has no limit on the number of releases.
"""

import math

import scipy  # its parts are imported when they are first used

from discreet.accounting.profile import BoxProfile, check_profile
from discreet.errors import OPEN_UNIT, DiscreetError, Range, check_count

_ORDER = Range(1.0, math.inf)
_NO_OVERFLOW = 700.0
MOST_SAMPLES = 10**15


def renyi(profile: BoxProfile, *, order: float) -> float:
    """The largest Renyi divergence of that order between what two clients release."""
    check_profile(profile)
    order = _ORDER.check("order", order, "the order of a Renyi divergence")
    epsilon, mass, t = profile.epsilon, profile.upper_mass, order - 1.0
    if math.isinf(order):
        return epsilon if mass else 0.0
    if t * epsilon > _NO_OVERFLOW:
        return max(0.0, epsilon + math.log(mass) / t) if mass else 0.0
    if t * epsilon < 1e-12:
        return mass * epsilon * -math.expm1(-epsilon)
    return math.log1p(mass * math.expm1(t * epsilon) * -math.expm1(-order * epsilon)) / t


def epsilon_from_renyi(profile: BoxProfile, *, samples: int, delta: float) -> float:
    """An epsilon at which that many releases together are (epsilon, delta)-LDP, from the best order."""
    check_profile(profile)
    samples, delta = check_count("samples", samples), OPEN_UNIT.check("delta", delta)
    if samples > MOST_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_SAMPLES:,}; that many cannot be made")

    def at(log_t: float) -> float:
        t = math.exp(log_t)
        order = 1.0 + t
        return samples * renyi(profile, order=order) + math.log(t / order) - math.log(delta * order) / t

    found = scipy.optimize.minimize_scalar(at, bounds=(-12.0, 12.0), method="bounded")
    return max(0.0, min(float(found.fun), samples * profile.epsilon))
