"""A rehearsal on public or example data: clients drawn from it release, the population is estimated, and the truth is known.

Randomness is seeded and no sample leaves: this is for planning, and not private. The example must not be the data to be protected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.divergences import divergence
from discreet.errors import DiscreetError, check_count
from discreet.estimation._behind import population
from discreet.estimation._binning import bin_cells, line_of
from discreet.estimation._planning import MOST_CLIENTS
from discreet.families import ContinuousFamily
from discreet.families._laws import as_laws
from discreet.mechanisms._carriers._cells import CellAtoms
from discreet.mechanisms._sampler import AnyFamily, Sampler
from discreet.release import TOTAL

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
    sampler: Sampler[AnyFamily],
    laws: ArrayLike,
    *,
    clients: int,
    repetitions: int = 20,
    seed: int = 0,
    confidence: float = 0.95,
    bins: int | None = None,
) -> Rehearsal:
    """So many clients drawn from the example's, again and again. On a continuous family laws are on its cells, as tables are released."""
    check_count("clients", clients, most=MOST_CLIENTS)
    check_count("repetitions", repetitions)
    held, drawn_from, truth = _laws_and_truth(sampler, laws, clients, bins)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    off, total, covered, width = [], [], [], []
    for _ in range(repetitions):
        times = rng.multinomial(clients, np.full(len(held), 1.0 / len(held)))
        counts = rng.multinomial(times, drawn_from / drawn_from.sum(axis=1, keepdims=True)).sum(axis=0)
        found = population(sampler, counts=counts, bins=bins, confidence=confidence)
        off.append(np.abs(found.nearest - truth).max())
        total.append(0.5 * np.abs(found.nearest - truth).sum())
        covered.append(((found.law.low <= truth) & (truth <= found.law.high)).mean())
        width.append(0.5 * (found.law.high - found.law.low).mean())
    client_tv = np.asarray(divergence("tv")(held, drawn_from)).mean()
    return Rehearsal(*(float(np.mean(each)) for each in (client_tv, off, total, covered, width)))


def _laws_and_truth(
    sampler: Sampler[AnyFamily], laws: ArrayLike, clients: int, bins: int | None
) -> tuple[Floats, Floats, Floats]:
    """What clients hold, what their samples are drawn from, and what an estimate of their shares is held against."""
    family = sampler.family
    if not isinstance(family, ContinuousFamily):
        held = np.atleast_2d(family.as_rows(laws, "laws"))
        return held, np.asarray(sampler.output(held)), held.mean(axis=0)
    if sampler.mixing is not None or not isinstance(sampler.carrier, CellAtoms):
        raise DiscreetError(
            f"{sampler!r} does not release tables, which examples are: they are released by cells, and by a mechanism that serves clients "
            "outside the family too (optimal or mollifier)"
        )
    held = np.atleast_2d(as_laws(laws, "laws", sampler.carrier.size))
    shares = held.mean(axis=0)[line_of(sampler).order]
    return held, sampler.weights_on_atoms(held) / TOTAL, bin_cells(sampler, clients=clients, count=bins).of(shares)
