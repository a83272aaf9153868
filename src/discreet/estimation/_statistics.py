"""Statistics of a population: functions phi of an outcome, of which the average is wanted.

Where outcomes are cells a client's own values are known to a cell only. `low` and `high` are then the least and the largest value of
phi inside each, so that intervals hold wherever in its cells a client's values lie; `values` are the averages over the cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._quadrature import gauss_rule
from discreet.domain import Domain
from discreet.domain._labels import LARGEST_VALUE, is_value
from discreet.errors import DiscreetError

Floats = NDArray[np.float64]
_NODES = 8


@dataclass(frozen=True)
class Phi:
    """A statistic on the outcomes: its value (on a cell, its average), and its least and largest value there."""

    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def sharp(cls, values: Floats) -> "Phi":
        """One value for each outcome."""
        return cls(values, values, values)


def numeric(domain: Domain, what: str) -> Floats:
    """The numbers that the outcomes are, or an error that says what needs them."""
    if domain.values is None:
        raise DiscreetError(
            f"{what} needs numbers, but the outcomes are labels such as "
            f"{next(name for name in domain.names if not is_value(name))!r}; pass a function that gives each label a number"
        )
    return domain.values


def first_moment(domain: Domain) -> Phi:
    """phi(x) = x."""
    values = numeric(domain, "mean")
    return Phi.sharp(values) if domain.edges is None else Phi(values, domain.edges[:-1], domain.edges[1:])


def squares_around(domain: Domain, centre: float) -> Phi:
    """phi(x) = (x - centre)^2."""
    if domain.edges is None:
        return Phi.sharp(np.square(numeric(domain, "variance") - centre))
    low, high = domain.edges[:-1] - centre, domain.edges[1:] - centre
    ends = np.square(low), np.square(high)
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(*ends))
    return Phi((ends[0] + low * high + ends[1]) / 3.0, least, np.maximum(*ends))


def at_most(domain: Domain, threshold: float) -> Phi:
    """phi(x) = 1 if x <= threshold, else 0. A cell that the threshold divides may count as either."""
    if domain.edges is None:
        return Phi.sharp((numeric(domain, "at-most") <= threshold).astype(np.float64))
    low, high = domain.edges[:-1], domain.edges[1:]
    inside = (np.clip(threshold, low, high) - low) / (high - low)
    return Phi(inside, (high <= threshold).astype(np.float64), (low < threshold).astype(np.float64))


def callable_phi(domain: Domain, phi: Callable[[Any], float]) -> Phi:
    """phi of every outcome; on cells, of the ends and of Gauss points of each, from which its average and its extremes are estimated."""
    if domain.edges is None:
        return Phi.sharp(np.array([_number(phi, name) for name in domain.names]))
    nodes, weights = gauss_rule(_NODES)
    low, width = domain.edges[:-1, None], np.diff(domain.edges)[:, None]
    points = np.concatenate([low, low + width * nodes, low + width], axis=1)
    values = np.array([[_number(phi, x) for x in row] for row in points.tolist()])
    return Phi(values[:, 1:-1] @ weights, values.min(axis=1), values.max(axis=1))


def _number(phi: Callable[[Any], float], outcome: Any) -> float:
    value = phi(outcome)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"statistic({outcome!r}) = {value!r} is not a number") from None
    if not abs(number) <= LARGEST_VALUE:
        raise DiscreetError(
            f"statistic({outcome!r}) = {number:g} is not in [{-LARGEST_VALUE:g}, {LARGEST_VALUE:g}]; it has to be bounded on the outcomes"
        )
    return number
