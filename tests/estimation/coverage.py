"""How often every interval that is reported holds the truth: exactly for few clients, by simulation for many.

python -m tests.estimation.coverage          a larger grid than the tests', for the soak
"""

import argparse
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special, stats

import discreet as dc
from discreet.estimation import Population, population
from discreet.mechanisms._sampler import Sampler

LEAST = 0.94  # of a nominal 0.95
VALUES = np.array([0.0, 1.0, 10.0])
EXPECTED = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)  # counts of a sparse outcome
STATISTICS = ("mean", "variance", "median", "quantile:0.9", "at-most:0", "at-most:1")


def truths(law: np.ndarray) -> dict[str, float]:
    """Every statistic of a law on VALUES."""
    mean = float(law @ VALUES)
    below = np.cumsum(law) + 1e-12
    return {
        "mean": mean,
        "variance": float(law @ VALUES**2) - mean**2,
        "median": float(VALUES[np.argmax(below >= 0.5)]),
        "quantile:0.9": float(VALUES[np.argmax(below >= 0.9)]),
        "at-most:0": float(law[0]),
        "at-most:1": float(law[0] + law[1]),
    }


def coin_sum(chances: np.ndarray) -> np.ndarray:
    """The law of how many of independent coins with these chances show heads."""
    law = np.array([1.0])
    for chance in chances:
        law = np.convolve(law, [1.0 - chance, chance])
    return law


def chances_of(share: float, clients: int, outcomes: int) -> Iterator[np.ndarray]:
    """Laws of clients of whom an outcome has that share, or nearly: all alike, each sure of something, and half of both."""
    alike = np.full(outcomes, (1.0 - share) / (outcomes - 1))
    alike[0] = share
    yield np.tile(alike, (clients, 1))
    sure = np.zeros((clients, outcomes))
    sure[: round(share * clients), 0] = 1.0
    sure[round(share * clients) :, 1] = 1.0
    yield sure
    yield np.concatenate([np.tile(alike, (clients // 2, 1)), sure[::-1][: clients - clients // 2]])


Intervals = dict[str, tuple[np.ndarray, np.ndarray]]


def reported(found: Population) -> Intervals:
    """Every interval that is reported, by name; those that hold for several shares at once have several ends."""
    intervals: Intervals = {}
    for what, shares in (("share", found.law), ("released share", found.released_shares)):
        for x, value in enumerate(VALUES):
            intervals[f"{what} of {value:g}"] = shares.low[x], shares.high[x]
        intervals[f"every {what}"] = shares.all_low, shares.all_high
    for name in STATISTICS:
        estimate = found.statistic(name)
        intervals[name] = np.array(estimate.low), np.array(estimate.high)
    return intervals


def truth_of(law: np.ndarray, q: np.ndarray) -> dict[str, np.ndarray | float]:
    """What these intervals are to hold, if every client holds that law and releases by q."""
    known: dict[str, np.ndarray | float] = {"every share": law, "every released share": q, **truths(law)}
    for what, shares in (("share", law), ("released share", q)):
        known |= {f"{what} of {value:g}": shares[x] for x, value in enumerate(VALUES)}
    return known


def hits(intervals: Intervals, truth: dict[str, np.ndarray | float]) -> dict[str, bool]:
    """Which of the intervals hold the truth."""
    return {
        name: bool(((low - 1e-9 <= truth[name]) & (truth[name] <= high + 1e-9)).all())
        for name, (low, high) in intervals.items()
    }


def laws(clients: int) -> Iterator[np.ndarray]:
    """Laws on three outcomes: spread, skewed, and with one or two outcomes that are hardly expected to be seen."""
    yield from map(
        np.array, ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [1.0, 0.0, 0.0])
    )
    for count in EXPECTED:
        rare = min(0.5, count / clients)
        yield from map(np.array, ([1 - rare, 0.0, rare], [0.5 - rare / 2, 0.5 - rare / 2, rare], [rare, 0.0, 1 - rare]))
        yield np.array([1 - rare, rare / 2, rare / 2])


def exact_coverage(sampler: Sampler[Any], clients: int) -> dict[str, float]:
    """The least coverage of each kind of interval over `laws`, by going through every way the samples can fall."""
    ways = [(a, b, clients - a - b) for a, b in itertools.product(range(clients + 1), repeat=2) if a + b <= clients]
    found = [reported(population(sampler, counts=way)) for way in ways]
    orders = np.array([special.gammaln(clients + 1) - sum(special.gammaln(c + 1) for c in way) for way in ways])
    least: dict[str, float] = {}
    for law in laws(clients):
        q = np.asarray(sampler.output(law))
        chances = np.exp(orders + np.array(ways) @ np.log(q))
        assert math.isclose(chances.sum(), 1.0, rel_tol=1e-9)
        covered: dict[str, float] = {}
        truth = truth_of(law, q)
        for each, chance in zip(found, chances, strict=True):
            for name, hit in hits(each, truth).items():
                covered[name] = covered.get(name, 0.0) + (float(chance) if hit else 0.0)
        least = {name: min(least.get(name, 1.0), rate) for name, rate in covered.items()}
    return least


def sparse_coverage(outcomes: int, clients: int, epsilon: float, draws: int, seed: int) -> np.ndarray:
    """How often each cell's own interval held the truth: most cells are held by nobody, the first ones by nearly all."""
    rng = np.random.default_rng(seed)
    sampler = dc.LinearSampler(dc.Simplex(outcomes), epsilon=epsilon)
    law = 1.0 / np.arange(1.0, outcomes + 1.0) ** 2
    law /= law.sum()
    q = np.asarray(sampler.output(law))
    covered = np.zeros(outcomes)
    for _ in range(draws):
        shares = population(sampler, counts=rng.multinomial(clients, q / q.sum())).law
        covered += (shares.low <= law) & (law <= shares.high)
    return covered / draws


def simulated_coverage(
    sampler: Sampler[Any], clients: int, draws: int, seed: int, *, every: int = 1
) -> dict[str, float]:
    """The same for more clients than can be gone through; `every`: how many of the laws one stands for."""
    rng = np.random.default_rng(seed)
    least: dict[str, float] = {}
    for law in itertools.islice(laws(clients), 0, None, every):
        q = np.asarray(sampler.output(law))
        rates: dict[str, float] = {}
        known: dict[tuple[int, ...], dict[str, bool]] = {}
        truth = truth_of(law, q)
        for counts in rng.multinomial(clients, q / q.sum(), size=draws):
            way = tuple(counts.tolist())
            if way not in known:
                known[way] = hits(reported(population(sampler, counts=counts)), truth)
            for name, hit in known[way].items():
                rates[name] = rates.get(name, 0.0) + hit / draws
        least = {name: min(least.get(name, 1.0), rate) for name, rate in rates.items()}
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    family, worst = dc.Simplex(VALUES.tolist()), 1.0
    for kind, epsilon in itertools.product((dc.LinearSampler, dc.OptimalSampler), (1.0, 4.0, 10.0)):
        sampler = kind(family, epsilon=epsilon)
        for clients in (*range(1, 11), 20):
            rates = exact_coverage(sampler, clients)
            worst = min(worst, *rates.values())
            assert all(rate >= LEAST for rate in rates.values()), (sampler, clients, rates)
        slack = float(stats.norm.isf(1e-6)) * math.sqrt(LEAST * (1 - LEAST) / options.draws)
        for clients in (100, 1000):
            rates = simulated_coverage(sampler, clients, options.draws, seed=clients, every=8)
            assert all(rate >= LEAST - slack for rate in rates.values()), (sampler, clients, rates)
    for outcomes, clients, epsilon in itertools.product((10, 300, 3000), (40, 400, 4000, 40000), (4.0, 10.0)):
        covered = sparse_coverage(outcomes, clients, epsilon, options.draws, seed=outcomes).min()
        slack = float(stats.norm.isf(1e-9)) * math.sqrt(LEAST * (1 - LEAST) / options.draws)
        assert covered >= LEAST - slack, (outcomes, clients, epsilon, covered)
    print(f"every interval covers; at worst, exactly, {worst:.4f}")  # noqa: T201


if __name__ == "__main__":
    main()
