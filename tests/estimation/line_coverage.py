"""How often intervals on a line hold the truth, for clients from a fifth of a cell to 20 cells wide and every kind of density.

Samples are drawn with the integers that a release draws with, and the truth is the client's own distribution function: so what is tested
includes the masses that a release takes a client to have on the cells.

    python -m tests.estimation.line_coverage --draws 400
"""

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import discreet as dc
from discreet.estimation import population
from discreet.estimation._counting import line_cells_of_sampler
from discreet.families import BoundedDensity, Tabulated
from discreet.mechanisms._sampler import Sampler
from discreet.release import TOTAL
from tests.estimation.coverage import LEAST

Floats = NDArray[np.float64]
Below = Callable[[Any], Any]

CELLS = 64
WIDTHS = (0.2, 0.5, 1.0, 2.0, 5.0, 20.0)  # in cells
UNIT = dc.DensityBand(stats.uniform(), lower=0.0, upper=400.0)
TABLE = dc.DensityBand(Tabulated(np.linspace(0.0, 1.0, 8), [1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 2.0]), lower=0.0, upper=900.0)


def bare(centre: float, width: float) -> tuple[Any, Below]:
    known = stats.norm(centre, width)
    return lambda x: np.exp(-0.5 * ((x - centre) / width) ** 2), known.cdf


def of_scipy(centre: float, width: float) -> tuple[Any, Below]:
    known = stats.norm(centre, width)
    return known, known.cdf


def mixture(centre: float, width: float) -> tuple[Any, Below]:
    known = [stats.laplace(centre, width), stats.laplace(centre + 3.0 * width, 0.5 * width)]
    given = dc.Mixture([0.7, 0.3], [centre, centre + 3.0 * width], [width, 0.5 * width], kernel="laplace")
    return given, lambda x: 0.7 * known[0].cdf(x) + 0.3 * known[1].cdf(x)


def table(centre: float, width: float) -> tuple[Any, Below]:
    known = stats.triang(0.5, centre - width, 2.0 * width)
    return Tabulated([centre - width, centre, centre + width], [0.0, 1.0, 0.0]), known.cdf


def steps(centre: float, width: float) -> tuple[Any, Below]:
    known = stats.uniform(centre - width, 2.0 * width)
    return lambda x: (np.abs(x - centre) <= width).astype(float), known.cdf


def bounded(centre: float, width: float) -> tuple[Any, Below]:
    known = stats.norm(centre, width)
    return BoundedDensity(lambda x: known.pdf(x), cdf=known.cdf, error=1e-12), known.cdf


KINDS = {kind.__name__: kind for kind in (bare, of_scipy, mixture, table, steps, bounded)}


def coverage(sampler: Sampler[Any], given: Any, below: Below, clients: int, draws: int, seed: int) -> Floats:
    """How often the interval of each bin's share held the share of a client, when all clients are alike."""
    rng = np.random.default_rng(seed)
    law = np.asarray(sampler.weights(given), dtype=np.float64).ravel() / TOTAL
    assert law.size == line_cells_of_sampler(sampler).size
    held: list[NDArray[np.bool_]] = []
    for counts in rng.multinomial(clients, law / law.sum(), size=draws):
        found = population(sampler, counts=counts)
        edges = np.asarray(found.domain.edges)
        truth = np.diff(below(edges)) / (below(edges[-1]) - below(edges[0]))
        held.append((found.law.low <= truth + 1e-12) & (truth <= found.law.high + 1e-12))
    return np.asarray(np.mean(held, axis=0))


def least_of(draws: int) -> float:
    """The share of so many draws that a coverage of `LEAST` falls below once in 10^9."""
    return float(stats.binom.ppf(1e-9, draws, LEAST)) / draws


def settings(widths: tuple[float, ...] = WIDTHS) -> list[tuple[str, dc.DensityBand, float, float]]:
    """Every kind of client on both references, at places that have nothing to do with cells."""
    rng = np.random.default_rng(5)
    return [
        (kind, family, float(rng.uniform(0.35, 0.65)), width / CELLS)
        for kind, family, width in itertools.product(KINDS, (UNIT, TABLE), widths)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    least = least_of(options.draws)
    rates = []
    for kind, family, centre, width in settings():
        given, below = KINDS[kind](centre, width)
        for make, clients in itertools.product((dc.LinearSampler, dc.OptimalSampler), (200, 20_000, 2_000_000)):
            sampler = make(family, epsilon=6.0, discretisation=dc.Cells(CELLS))
            covered = coverage(sampler, given, below, clients, options.draws, seed=clients)
            assert covered.min() >= least, (kind, family, centre, width * CELLS, sampler, clients, covered)
            rates.append(covered)
    every = np.concatenate(rates)
    assert every.mean() >= LEAST
    print(f"{every.size} intervals cover; on average {every.mean():.4f} of the time, the worst bin {every.min():.4f}")  # noqa: T201


if __name__ == "__main__":
    main()
