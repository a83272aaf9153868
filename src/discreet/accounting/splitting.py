"""How much each of n samples of one client may spend out of one budget.

At delta = 0 the answer is epsilon/n and cannot be better: the n-fold loss of a box reaches n times its own. At delta > 0
the composed epsilon grows with that of each sample (`discreet.accounting.composition`), so the largest share that keeps the
total is a root. All samples get the same share: they are exchangeable, and nothing better is known.
"""

import math
from fractions import Fraction

import scipy  # its parts are imported when they are first used

from discreet.accounting.composition import MOST_SAMPLES, compose
from discreet.accounting.profile import BoxProfile
from discreet.errors import PROBABILITY, DiscreetError, check_count
from discreet.privacy.pure import check_epsilon


def epsilon_per_sample(*, alpha: float, samples: int, epsilon: float, delta: float) -> float:
    """The largest epsilon for each sample with which all of them together are (epsilon, delta)-LDP."""
    total, n = check_epsilon(epsilon), check_count("samples", samples)
    if n > MOST_SAMPLES:
        raise DiscreetError(f"samples is more than {MOST_SAMPLES:,}, up to which the sum is exact")
    delta = PROBABILITY.check("delta", delta)

    def excess(share: float) -> float:
        return compose([(BoxProfile(epsilon=share, alpha=alpha), n)]).epsilon(delta) - total

    share = total / n
    excess(share)  # validates alpha
    if delta == 0.0:
        while Fraction(share) * n > Fraction(total):
            share = math.nextafter(share, 0.0)
        return share
    high = 2.0 * share
    while excess(high) <= 0.0:
        share, high = high, 2.0 * high
        if high > 1e3:  # delta alone pays for all of it
            return share
    share = float(scipy.optimize.brentq(excess, share, high, xtol=1e-12, rtol=1e-12)) if excess(share) < 0.0 else share
    step = math.ulp(share)
    while excess(share) > 0.0:
        share, step = share - step, 2.0 * step
    return share
