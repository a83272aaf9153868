"""Statistics of a population: functions phi of an outcome, of which the average is wanted.

Where outcomes are cells a client's own values are known to a cell only: phi stands for its average over the cell, and `blur` bounds
how far it strays from that inside one, which no number of samples can mend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.estimation.outcomes import Outcomes
from discreet.quadrature import rule

Floats = NDArray[np.float64]
_NODES = 8


@dataclass(frozen=True)
class Phi:
    """A statistic on the outcomes: its value (on a cell, its average), and how far it strays inside a cell."""

    values: Floats
    blur: float = 0.0


def power(outcomes: Outcomes, exponent: int) -> Phi:
    """phi(x) = x^exponent, exponent 1 or 2, exactly."""
    if outcomes.edges is None:
        return Phi(outcomes.numeric("a moment") ** exponent)
    low, high = outcomes.edges[:-1], outcomes.edges[1:]
    if exponent == 1:
        return Phi(0.5 * (low + high), float(0.5 * (high - low).max()))
    means = (low * low + low * high + high * high) / 3.0
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(low * low, high * high))
    strays = np.maximum(np.maximum(low * low, high * high) - means, means - least)
    return Phi(means, float(strays.max()))


def at_most(outcomes: Outcomes, threshold: float) -> Phi:
    """phi(x) = 1 if x <= threshold, else 0. On cells the threshold has to be an edge: then nothing is blurred."""
    if outcomes.edges is None:
        return Phi((outcomes.numeric("a share at most a threshold") <= threshold).astype(np.float64))
    edges = outcomes.edges
    nearest = float(edges[np.argmin(np.abs(edges - threshold))])
    if abs(nearest - threshold) > 1e-9 * float(edges[-1] - edges[0]):
        raise DiscreetError(f"threshold = {threshold:g} is inside a cell; the nearest edge of one is {nearest:g}")
    return Phi((edges[1:] <= nearest).astype(np.float64))


def callable_phi(outcomes: Outcomes, phi: Callable[[Any], float]) -> Phi:
    """phi of every outcome; on cells, of Gauss points inside each, from which its average and its blur are estimated."""
    if outcomes.edges is None:
        values = np.array([_number(phi, name) for name in outcomes.names])
        return Phi(values)
    nodes, weights = rule(_NODES)
    low, width = outcomes.edges[:-1, None], np.diff(outcomes.edges)[:, None]
    points = np.concatenate([low, low + width * nodes, low + width], axis=1)
    values = np.array([[_number(phi, x) for x in row] for row in points.tolist()])
    means = values[:, 1:-1] @ weights
    return Phi(means, float(np.abs(values - means[:, None]).max()))


def _number(phi: Callable[[Any], float], outcome: Any) -> float:
    value = phi(outcome)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DiscreetError(f"statistic({outcome!r}) = {value!r} is not a number") from None
    if not np.isfinite(number):
        raise DiscreetError(f"statistic({outcome!r}) = {number} is not finite; it has to be bounded on the outcomes")
    return number
