"""What a mechanism costs its clients, D_f from what each holds to what its sample is drawn from, in four numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAPER_DIVERGENCES = ("kl", "tv", "hellinger")  # the paper's


@dataclass(frozen=True)
class CostSummary:
    """One mechanism under one divergence: the worst case over all possible clients; mean, median and worst of the real ones."""

    worst_case: float
    mean: float
    median: float
    worst: float

    @classmethod
    def of(cls, worst_case: float, realised: NDArray[np.float64]) -> "CostSummary":
        """That of clients with these divergences."""
        return cls(worst_case, float(realised.mean()), float(np.median(realised)), float(realised.max()))
