"""Samples against frequency oracles, read off the records of `discreet reproduce population`: who is closer, by how much, is it certain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.research.experiments._population import SetAtBudget

SAMPLES = ("optimal", "mollifier", "linear")
ORACLES = ("subset", "unary", "hashing")
RIVALS = (*SAMPLES, *ORACLES)
CERTAIN = 3.0  # standard errors of the difference
WORTH_ASKING = 0.9  # of the uniform law's error

REPORT_LABELS = {
    "optimal": "Q* samples",
    "mollifier": "mollifier samples",
    "linear": "linear samples, inverted (= k-RR)",
    "subset": "subset selection",
    "unary": "unary encoding",
    "hashing": "local hashing",
    "raw": "raw draws, no privacy",
}
SHORT_LABELS = {
    "optimal": "Q*",
    "mollifier": "mollifier",
    "linear": "linear",
    "subset": "subset",
    "unary": "unary",
    "hashing": "hashing",
}


def mean_error(row: SetAtBudget, rival: str, measure: str = "tv", *, projected: bool = True) -> float:
    """A rival's mean error over the repetitions, as it is or projected onto the simplex."""
    found = row.errors[rival]
    return (found.projected if projected else found.raw)[measure].mean


@dataclass(frozen=True)
class Contest:
    """The best kind of sample against the best oracle on one set at one budget, by TV error after projection onto the simplex."""

    row: SetAtBudget
    samples: tuple[str, ...] = SAMPLES

    @property
    def sample(self) -> str:
        return min(self.samples, key=lambda name: mean_error(self.row, name))

    @property
    def oracle(self) -> str:
        return min(ORACLES, key=lambda name: mean_error(self.row, name))

    @property
    def ratio(self) -> float:
        """Error of the sample over error of the oracle: below 1 the sample is closer."""
        return mean_error(self.row, self.sample) / mean_error(self.row, self.oracle)

    @property
    def certain(self) -> bool:
        """Whether the difference is more than chance between repetitions."""
        spread = math.hypot(
            *(self.row.errors[name].projected["tv"].standard_error for name in (self.sample, self.oracle))
        )
        return abs(mean_error(self.row, self.sample) - mean_error(self.row, self.oracle)) > CERTAIN * spread

    @property
    def winner(self) -> str | None:
        """ "sample", "oracle", or None when chance could have it either way."""
        if not self.certain:
            return None
        return "sample" if self.ratio < 1.0 else "oracle"

    @property
    def informative(self) -> bool:
        """Whether the better of the two is worth asking for: a tenth closer than the uniform distribution, which takes no data, or more."""
        return self.sample_informs or self._informs(self.oracle)

    @property
    def sample_informs(self) -> bool:
        """The same of the sample alone."""
        return self._informs(self.sample)

    def _informs(self, rival: str) -> bool:
        return mean_error(self.row, rival) < WORTH_ASKING * self.row.uniform["tv"]


def by_set(rows: Sequence[SetAtBudget]) -> dict[str, list[SetAtBudget]]:
    """The rows of each set, smallest budget first, sets in their recorded order."""
    found: dict[str, list[SetAtBudget]] = {}
    for row in rows:
        found.setdefault(row.set, []).append(row)
    return {name: sorted(those, key=lambda row: row.epsilon) for name, those in found.items()}


def describe_set(row: SetAtBudget) -> str:
    """The set in a few words: arrival delays, 24 outcomes, 4,037 aircraft."""
    return f"{row.title}, {row.outcomes} outcomes, {row.clients:,} {row.who}"
