"""Confidence intervals for shares, from how many of n samples fell where.

Samples of different clients are independent but not alike: a count is a sum of independent indicators with mean n q, where q is
the average share. If clients are themselves drawn from a population, the count is binomial given that population's q, and

* `wilson`: the score interval, close to its nominal confidence on average, for outcome by outcome reading;
* `clopper_pearson`: never below its nominal confidence, whatever n and q, for statements that have to hold all at once.

For the average of the very clients at hand the count is less spread than a binomial one (Hoeffding 1956), so both are then on
the safe side, and the more so the more the clients differ.
"""

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.audit.bounds import least_probability, most_probability

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]


def deviations(confidence: float) -> float:
    """How many standard deviations around the mean hold that much of a normal law."""
    return float(scipy.special.ndtri(0.5 + 0.5 * confidence))


def wilson(counts: NDArray[np.int64], samples: int, confidence: float) -> Interval:
    """The shares q with |count - n q| <= z sqrt(n q (1 - q))."""
    z2 = deviations(confidence) ** 2
    share = counts / samples
    centre = (share + 0.5 * z2 / samples) / (1.0 + z2 / samples)
    spread = np.sqrt(z2 / samples * (share * (1.0 - share) + 0.25 * z2 / samples)) / (1.0 + z2 / samples)
    low = np.where(counts == 0, 0.0, np.maximum(centre - spread, 0.0))
    high = np.where(counts == samples, 1.0, np.minimum(centre + spread, 1.0))
    return low, high


def clopper_pearson(counts: NDArray[np.int64], samples: int, confidence: float) -> Interval:
    """The shares under which neither so many nor so few samples are less likely than (1 - confidence)/2."""
    distinct, places = np.unique(counts, return_inverse=True)  # far fewer than outcomes
    tail = 0.5 * (1.0 - confidence)
    low = least_probability(distinct, samples, tail)
    high = most_probability(distinct, samples, tail)
    return low[places].reshape(counts.shape), high[places].reshape(counts.shape)
