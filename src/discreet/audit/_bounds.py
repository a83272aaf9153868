"""A lower confidence bound for epsilon from how often one event happened under two inputs.

If a mechanism is (epsilon, delta)-LDP then p <= e^epsilon q + delta for every event, where p, q are its probabilities under
the two inputs. For counts X ~ Binomial(n, p) and Y ~ Binomial(n', q) the exact (Clopper-Pearson) tails

    u(p) = P[Binomial(n, p) >= x],      v(q) = P[Binomial(n', q) <= y]

are independent and each at most t with probability at most t, so their product is at most c with probability at most
c (1 - log c) (Fisher). Hence with confidence 1 - c (1 - log c) the truth lies among the (p, q) with u v > c, and the smallest
log((p - delta)/q) among them is a lower bound for epsilon. It is found by going along u v = c, rounding down between steps.
(Two separate intervals would each need a tail of (1 - confidence)/2: half as much again given away.)
"""

import math

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.errors import OPEN_UNIT, PROBABILITY, DiscreetError, check_count

_STEPS = 400
MOST_DRAWS = 10**15


def empirical_epsilon_lower_bound(
    first: int, second: int, *, draws: int | tuple[int, int], confidence: float, delta: float = 0.0
) -> float:
    """With that confidence, every true claim of epsilon is at least this, given an event's counts under two inputs.

    `draws`: how many samples each count is out of. At least 0; a mechanism that leaks nothing gives 0.
    """
    sizes = draws if isinstance(draws, tuple) else (draws, draws)
    if len(sizes) != 2:
        raise DiscreetError(f"draws = {draws!r} is neither one number nor two")
    for name, count, size in zip(("first", "second"), (first, second), sizes, strict=True):
        if check_count("draws", size) > MOST_DRAWS:
            raise DiscreetError(f"draws is more than {MOST_DRAWS:,}, past which counts are no longer exact")
        if check_count(name, count, least=0) > size:
            raise DiscreetError(f"{name} = {count} exceeds its {size} draws")
    error = 1.0 - OPEN_UNIT.check("confidence", confidence)
    delta = PROBABILITY.check("delta", delta)
    product = float(
        scipy.optimize.brentq(lambda c: c * (1.0 - math.log(c)) - error, 1e-300, 1.0, xtol=1e-300, rtol=1e-12)
    )
    tails = np.geomspace(product, 1.0, _STEPS)
    least = least_probability(first, sizes[0], tails[:-1])  # of p on each step: it grows with u
    most = most_probability(second, sizes[1], product / tails[1:])  # of q: it grows as v falls
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.log(np.maximum(least - delta, 0.0)) - np.log(most)
    return max(0.0, float(bounds.min()))


def least_probability(count: ArrayLike, draws: float, tail: ArrayLike) -> NDArray[np.float64]:
    """The p with P[Binomial(draws, p) >= count] = tail; 0 where the count is. Between whole counts, the beta law's quantile."""
    few = np.asarray(count, dtype=np.float64)
    some = np.where(few == 0.0, 1.0, few)
    return np.where(few == 0.0, 0.0, scipy.special.betaincinv(some, draws - some + 1.0, tail))


def most_probability(count: ArrayLike, draws: float, tail: ArrayLike) -> NDArray[np.float64]:
    """The q with P[Binomial(draws, q) <= count] = tail; 1 where all draws are counted."""
    many = np.asarray(count, dtype=np.float64)
    left = np.where(many == draws, 1.0, draws - many)
    return np.where(many == draws, 1.0, scipy.special.betainccinv(many + 1.0, left, tail))
