"""How often every interval behind reports holds the truth: exactly for shares, also despite liars; by simulation for averages.

python -m tests.estimation.report_coverage          the whole grid, for the soak; it prints the least coverage of each kind

S_x is a sum of independent coins, so the law of every count is known, and coverage is summed over counts. All shares together are missed with
at most the sum of the probabilities that each of them is missed, which is summed as well. Liars know all honest reports and choose, for each
share, the lies that do the most harm: a count is covered if every count within m of it is.
"""

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from discreet import Simplex
from discreet.estimation import report_liars, reported_average
from discreet.estimation._inference._intervals import Shares
from discreet.estimation._population import ReportedPopulation
from discreet.estimation._shifts import _interval_ends_despite_liars
from discreet.mechanisms import ReportSampler
from discreet.release import Randomness
from discreet.release._randomness import _SeededRandomness

LEAST = 0.94  # of a nominal 0.95
SIZES = (2, 10, 64, 104, 300, 1000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
CLIENTS = (1, 3, 10, 40, 150, 400)
HOLDERS = (0.0, 0.01, 0.1, 0.5, 1.0, 3.0)  # expected clients who hold an outcome
LIES = (1, 3, 20)
_ROUNDING = 1e-12


@dataclass(frozen=True)
class OutcomeLaw:
    """An outcome of which the average client has a share, and the law of how many reports hold it."""

    share: float
    counts: np.ndarray


def outcome_laws(sampler: ReportSampler, clients: int) -> Iterator[OutcomeLaw]:
    """Outcomes from those that nobody has to those that everybody has, of clients who are alike or sure, or half of each."""
    chances = sampler.chances
    numbers = np.arange(clients + 1)
    for share in sorted({min(1.0, held / clients) for held in HOLDERS} | {0.3, 0.5, 1.0}):
        alike = stats.binom.pmf(numbers, clients, chances.outside + chances.gap * share)
        yield OutcomeLaw(share, alike)
        holders = round(share * clients)
        yield OutcomeLaw(holders / clients, sum_law(sampler, holders, clients - holders))
        half = clients // 2
        if half and holders <= half:
            mixed = stats.binom.pmf(
                np.arange(clients - half + 1), clients - half, chances.outside + chances.gap * share
            )
            spread = (holders + (clients - half) * share) / clients
            yield OutcomeLaw(spread, np.convolve(sum_law(sampler, holders, half - holders), mixed))


def sum_law(sampler: ReportSampler, holders: int, others: int) -> np.ndarray:
    """The law of a count where so many clients have the outcome for certain, and so many have it not."""
    inside, outside = sampler.chances.inside, sampler.chances.outside
    own = stats.binom.pmf(np.arange(holders + 1), holders, inside)
    return np.convolve(own, stats.binom.pmf(np.arange(others + 1), others, outside))


def every_count(sampler: ReportSampler, clients: int) -> ReportedPopulation:
    """An estimate with an 'outcome' for every count that there can be: an interval depends on nothing else."""
    return ReportedPopulation(sampler.family.domain, np.arange(clients + 1), clients, sampler, 0.95)


def interval_kinds(found: ReportedPopulation, size: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The ends of every kind of interval of a share. Those for all shares at once are for as many as there are outcomes."""
    shares, together = (
        found.law,
        found.client_intervals_from_released_intervals(found._released_share_interval_ends(size)),
    )
    return {"share": (shares.low, shares.high), "all shares": together}


def liar_kinds(found: ReportedPopulation, size: int, lies: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The same despite lies."""
    doubted = report_liars(found, lies)
    shares: Shares = doubted.law
    return {"share": (shares.low, shares.high), "all shares": _interval_ends_despite_liars(found, lies, size)}


def miss(law: OutcomeLaw, ends: tuple[np.ndarray, np.ndarray], lies: int = 0) -> float:
    """The probability that an interval misses the share, or can be made to by so many lies in place of honest reports."""
    outside = (ends[0] > law.share + _ROUNDING) | (law.share - _ROUNDING > ends[1])
    if lies:
        near = np.convolve(outside, np.ones(2 * lies + 1))[lies : lies + len(outside)]
        outside = near > 0.5
    return float(law.counts[outside].sum())


def miss_with_added_lies(law: OutcomeLaw, ends: tuple[np.ndarray, np.ndarray], lies: int) -> float:
    """The same where the lies come on top of the honest reports: a count can grow by as many."""
    outside = (ends[0] > law.share + _ROUNDING) | (law.share - _ROUNDING > ends[1])
    reached = np.array([outside[count : count + lies + 1].any() for count in range(len(law.counts))])
    return float(law.counts[reached].sum())


def least_coverage(sampler: ReportSampler, clients: int) -> dict[str, float]:
    """The least coverage of each kind over `outcome_laws`, with and without liars."""
    size, found = sampler.family.size, every_count(sampler, clients)
    laws = list(outcome_laws(sampler, clients))
    missed: dict[str, float] = {}

    def record(name: str, each: float) -> None:
        worst = each if name.startswith("share") else size * each  # Bonferroni: if all outcomes were like the worst one
        missed[name] = max(missed.get(name, 0.0), worst)

    for name, ends in interval_kinds(found, size).items():
        for law in laws:
            record(name, miss(law, ends))
    for lies in (lies for lies in LIES if lies <= clients):
        for name, ends in liar_kinds(found, size, lies).items():
            for law in laws:
                record(f"{name} despite liars", miss(law, ends, lies))
        if lies < clients:
            for law in outcome_laws(sampler, clients - lies):
                for name, ends in liar_kinds(found, size, lies).items():
                    record(f"{name} despite added lies", miss_with_added_lies(law, ends, lies))
    return {name: 1.0 - each for name, each in missed.items()}


def fewest_expected(sampler: ReportSampler, clients: int) -> float:
    """The smallest expected count among `outcome_laws`."""
    return min(float(law.counts @ np.arange(len(law.counts))) for law in outcome_laws(sampler, clients))


def average_coverage(size: int, epsilon: float, clients: int, draws: int, seed: int) -> dict[str, float]:
    """How often the intervals of a mean and of the shares of a rare and a large set hold the clients' own."""
    rng = np.random.default_rng(seed)
    sampler, randomness = ReportSampler(Simplex(size), epsilon=epsilon), _SeededRandomness(rng)
    held = np.minimum(rng.geometric(0.3, clients) - 1, size - 1)
    outcomes = np.arange(size, dtype=np.float64)
    values: dict[str, np.ndarray] = {
        "mean": outcomes**2,
        "rare set": (outcomes >= size - 2).astype(np.float64),
        "large set": (outcomes < max(1, size // 2)).astype(np.float64),
    }
    found: dict[str, float] = dict.fromkeys(values, 0.0)
    for _ in range(draws):
        reports = _draw(sampler, held, randomness)
        for name, phi in values.items():
            interval = reported_average(sampler, reports=reports, values=phi)
            found[name] += (interval.low - 1e-9 <= float(phi[held].mean()) <= interval.high + 1e-9) / draws
    return found


def _draw(sampler: ReportSampler, held: np.ndarray, randomness: Randomness) -> np.ndarray:
    return sampler._draw_reports_for_outcomes(held, randomness)


def slack(draws: int) -> float:
    """How far below `LEAST` a simulated coverage may fall by chance alone, once in a million."""
    return float(stats.norm.isf(1e-6)) * math.sqrt(LEAST * (1.0 - LEAST) / draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    fewest = math.inf
    for size in SIZES:
        least: dict[str, float] = {}
        for epsilon, clients in itertools.product(EPSILONS, CLIENTS):
            sampler = ReportSampler(Simplex(size), epsilon=epsilon)
            rates = least_coverage(sampler, clients)
            assert all(rate >= LEAST for rate in rates.values()), (size, epsilon, clients, rates)
            least = {name: min(least.get(name, 1.0), rate) for name, rate in rates.items()} | {
                name: rate for name, rate in least.items() if name not in rates
            }
            fewest = min(fewest, fewest_expected(sampler, clients))
        print(f"{size:,} outcomes: " + ", ".join(f"{name} {rate:.4f}" for name, rate in least.items()), flush=True)  # noqa: T201
    lowest = 1.0
    for size, epsilon, clients in itertools.product((6, 104, 1000), (1.0, 4.0), (5, 60, 300)):
        draws = options.draws if size < 1000 else max(1, options.draws // 5)  # sums over blocks of 1,000 take long
        rates = average_coverage(size, epsilon, clients, draws, seed=size + clients)
        assert all(rate >= LEAST - slack(draws) for rate in rates.values()), (size, epsilon, clients, rates)
        lowest = min(lowest, *rates.values())
    print(f"averages, simulated: at least {lowest:.3f}")  # noqa: T201
    print(f"every interval covers {LEAST:.0%} or more, with expected counts from {fewest:.2g} on")  # noqa: T201


if __name__ == "__main__":
    main()
