"""What a set of clients' costs is told by: mean, median and quantiles beside the maximum."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.research.experiments._mixtures import MixtureClient

STATISTICS = ("mean", "median", "90 %", "maximum")


@dataclass(frozen=True)
class CostQuantiles:
    """The four numbers, in the order of `STATISTICS`."""

    mean: float
    median: float
    ninety_percent: float
    maximum: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "CostQuantiles":
        """Those of these values."""
        return cls(float(values.mean()), float(np.median(values)), float(np.quantile(values, 0.9)), float(values.max()))

    @property
    def numbers(self) -> tuple[float, ...]:
        """One for each of `STATISTICS`."""
        return astuple(self)


def client_costs(rows: Sequence[MixtureClient], epsilon: float, mechanism: str, divergence: str) -> NDArray[np.float64]:
    """One mechanism's realised divergences at one epsilon, client by client."""
    return np.array([row.laws[mechanism].costs[divergence] for row in rows if row.epsilon == epsilon])


def recorded_mechanisms(rows: Sequence[MixtureClient]) -> list[str]:
    """Which mechanisms the records hold, in the order to show them."""
    known = ("proposed", "boosted", "boosted_corrected", "mollifier")
    return [name for name in known if name in rows[0].laws]


class AtBudget(Protocol):
    """A record of one budget."""

    @property
    def epsilon(self) -> float: ...


def recorded_epsilons(rows: Sequence[AtBudget]) -> list[float]:
    """The budgets in the records, smallest first."""
    return sorted({row.epsilon for row in rows})


def realised_epsilon(rows: Sequence[MixtureClient], epsilon: float, mechanism: str) -> float:
    """The largest log-ratio between any two of these clients' laws, on the recorded grid."""
    logs = np.array([row.laws[mechanism].log_density for row in rows if row.epsilon == epsilon])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())
