"""The same aircraft, seen by the curator: what one private sample of each tells about all of them together.

Each releases the time zone of one of its flights by the linear mechanism, from which the average log can be estimated without
bias. The truth is known here, so that it can be laid beside the estimate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.data import Logbooks
from discreet.estimation import Population, population
from discreet.families import Simplex
from discreet.mechanisms import LinearSampler


@dataclass(frozen=True)
class TimeZoneEstimate:
    """What was learnt, what is true, and what one aircraft gave away for it."""

    found: Population
    truth: NDArray[np.float64]
    client: str
    records: int
    held: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    released: str

    @property
    def covering_intervals(self) -> int:
        """How many of the intervals hold the truth."""
        return int(((self.found.law.low <= self.truth) & (self.truth <= self.found.law.high)).sum())


def learnt_time_zones(logbooks: Logbooks, *, epsilon: float, aircraft: str) -> TimeZoneEstimate:
    """Release one time zone for every aircraft and estimate where they fly; show `aircraft` in detail."""
    family = Simplex(logbooks.outcomes)
    sampler = LinearSampler(family, epsilon=epsilon)
    laws = family.law(counts=logbooks.counts)
    released = np.asarray(sampler.release(laws))
    place = logbooks.clients.index(aircraft)
    return TimeZoneEstimate(
        found=population(sampler, samples=released.tolist()),
        truth=laws.mean(axis=0),
        client=aircraft,
        records=int(logbooks.counts[place].sum()),
        held=laws[place],
        drawn_from=np.asarray(sampler.output(laws[place])),
        released=str(released[place]),
    )
