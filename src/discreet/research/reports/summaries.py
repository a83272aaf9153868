"""What a set of clients' costs is told by: mean, median and quantiles beside the maximum."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]

STATISTICS = ("mean", "median", "90 %", "maximum")


def summary(values: NDArray[np.float64]) -> dict[str, float]:
    """The four numbers, under the names of `STATISTICS`."""
    found = (values.mean(), np.median(values), np.quantile(values, 0.9), values.max())
    return dict(zip(STATISTICS, map(float, found), strict=True))


def costs(rows: Sequence[Row], epsilon: float, mechanism: str, divergence: str) -> NDArray[np.float64]:
    """One mechanism's realised divergences at one epsilon, client by client."""
    return np.array([row[mechanism][divergence] for row in rows if row["epsilon"] == epsilon])


def mechanisms(rows: Sequence[Row]) -> list[str]:
    """Which mechanisms the records hold, in the order to show them."""
    known = ("proposed", "boosted", "boosted_corrected", "mollifier")
    return [name for name in known if name in rows[0]]


def epsilons(rows: Sequence[Row]) -> list[float]:
    """The budgets in the records, smallest first."""
    return sorted({row["epsilon"] for row in rows})


def realised_epsilon(rows: Sequence[Row], epsilon: float, mechanism: str) -> float:
    """The largest log-ratio between any two of these clients' laws, on the recorded grid."""
    logs = np.array([row[mechanism]["log_density"] for row in rows if row["epsilon"] == epsilon])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())
