"""Confidence intervals for shares, from how many of n samples fell where.

Samples of different clients are independent but not alike: a count is a sum of independent indicators with mean n q, where q is
the average share. If clients are themselves drawn from a population, the count is binomial given that population's q, and

* `wilson`: the score interval, close to its nominal confidence on average, for outcome by outcome reading;
* `clopper_pearson`: never below its nominal confidence, whatever n and q, for statements that have to hold all at once;
* `score`: the score interval of an average of any values, which for an indicator is Wilson's.

For the average of the very clients at hand a count is less spread than a binomial one (Hoeffding 1956: in every tail that starts
at least one away from the mean), so they are then on the safe side, and the more so the more the clients differ.
"""

import math

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.audit.bounds import least_probability, most_probability

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]


def deviations(confidence: float, *, among: int = 1) -> float:
    """How many standard deviations around the mean hold that much of a normal law; `among` as for `clopper_pearson`."""
    return -float(scipy.special.ndtri(_tail(confidence, among)))


def _tail(confidence: float, among: int) -> float:
    return 0.5 * (1.0 - confidence) / among


def wilson(counts: NDArray[np.int64], samples: int, confidence: float) -> Interval:
    """The shares q with |count - n q| <= z sqrt(n q (1 - q))."""
    z2 = deviations(confidence) ** 2
    share = counts / samples
    centre = (share + 0.5 * z2 / samples) / (1.0 + z2 / samples)
    spread = np.sqrt(z2 / samples * (share * (1.0 - share) + 0.25 * z2 / samples)) / (1.0 + z2 / samples)
    low = np.where(counts == 0, 0.0, np.clip(centre - spread, 0.0, share))
    high = np.where(counts == samples, 1.0, np.clip(centre + spread, share, 1.0))
    return low, high


def score(
    values: Floats, frequencies: Floats, samples: int, confidence: float, *, among: int = 1
) -> tuple[float, float]:
    """The averages that values, seen this often among the samples, can have under the law drawn from.

    Mixing what was seen with a point mass of weight w at the largest value (for the lower end: the least), at a distance D from the
    average, moves the average by w D and gives the variance (1 - w)(s^2 + w D^2). All w with w D <= z sqrt(variance/n) are allowed,
    also where everybody sent the same and s = 0: a value that was not seen may be there all the same.
    """
    least, most = float(values.min()), float(values.max())
    if least == most:
        return least, most
    scaled = (values - least) / (most - least)
    average = min(float(frequencies @ scaled), 1.0)
    variance = float(frequencies @ np.square(scaled - average))
    noise = deviations(confidence, among=among) ** 2 / samples
    low, high = average - _moved(average, variance, noise), average + _moved(1.0 - average, variance, noise)
    return least + low * (most - least), least + high * (most - least)


def _moved(distance: float, variance: float, noise: float) -> float:
    """The largest w D with (w D)^2 = noise (1 - w)(s^2 + w D^2)."""
    square = distance**2
    if square == 0.0:
        return 0.0
    half = 0.5 * noise * (square - variance)
    root = math.sqrt(half**2 + (1.0 + noise) * noise * square * variance)
    weight = (half + root) / ((1.0 + noise) * square) if half >= 0.0 else noise * variance / (root - half)
    return min(weight, 1.0) * distance


def clopper_pearson(counts: NDArray[np.int64], samples: int, confidence: float, *, among: int = 1) -> Interval:
    """The shares under which neither so many nor so few samples are less likely than (1 - confidence)/2.

    `among`: so many intervals share what the confidence leaves, so that it is that of all of them together.
    """
    distinct, places = np.unique(counts, return_inverse=True)  # far fewer than outcomes
    tail = _tail(confidence, among)
    low = np.minimum(least_probability(distinct, samples, tail), distinct / samples)  # but for rounding it is
    high = np.maximum(most_probability(distinct, samples, tail), distinct / samples)
    return low[places].reshape(counts.shape), high[places].reshape(counts.shape)
