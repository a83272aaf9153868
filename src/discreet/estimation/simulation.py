"""A rehearsal on public or example data: clients drawn from it release, the population is estimated, and the truth is known.

Randomness is seeded and no sample leaves: this is for planning, and not private. The example must not be the data to be protected.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.divergences import divergence
from discreet.errors import check_count
from discreet.estimation.planning import MOST_CLIENTS
from discreet.estimation.population import population
from discreet.families import FiniteFamily
from discreet.mechanisms.sampler import Sampler

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rehearsal:
    """Averages over repetitions. `client_tv`: mean TV from a client's law to what its sample is drawn from.

    `largest` and `total`: largest share off and TV distance of the estimated law (the nearest law; for projections, the samples
    themselves); `covered`: how often a share's interval held the truth; `width`: mean half-width of these intervals.
    """

    client_tv: float
    largest: float
    total: float
    covered: float
    width: float


def rehearsal(
    sampler: Sampler[FiniteFamily],
    laws: ArrayLike,
    *,
    clients: int,
    repetitions: int = 20,
    seed: int = 0,
    confidence: float = 0.95,
) -> Rehearsal:
    """So many clients drawn from the example's, again and again."""
    check_count("clients", clients, most=MOST_CLIENTS)
    check_count("repetitions", repetitions)
    held = np.atleast_2d(sampler.family.as_rows(laws, "laws"))
    drawn_from: Any = np.asarray(sampler.output(held))
    truth = held.mean(axis=0)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    off, total, covered, width = [], [], [], []
    for _ in range(repetitions):
        times = rng.multinomial(clients, np.full(len(held), 1.0 / len(held)))
        counts = rng.multinomial(times, drawn_from / drawn_from.sum(axis=1, keepdims=True)).sum(axis=0)
        found = population(sampler, counts=counts, confidence=confidence)
        off.append(np.abs(found.nearest - truth).max())
        total.append(0.5 * np.abs(found.nearest - truth).sum())
        covered.append(((found.law.low <= truth) & (truth <= found.law.high)).mean())
        width.append(0.5 * (found.law.high - found.law.low).mean())
    client_tv = np.asarray(divergence("tv")(held, drawn_from)).mean()
    return Rehearsal(*(float(np.mean(each)) for each in (client_tv, off, total, covered, width)))
