"""Reports for a population: how far from the best subset selection, checked by simulation; draws a second; the time to count reports."""

import math
import resource
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet import Simplex
from discreet.errors import LargeEpsilonWarning, NotPrivateWarning
from discreet.mechanisms import LinearSampler, ReportCounts, ReportSampler
from discreet.mechanisms._report_blocks import best_subset, choose_blocks, worst_variance

SIZES = (2, 4, 10, 30, 64, 65, 104, 114, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)
EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
SWEPT = (*range(2, 2000), *range(2000, 100_001, 97))
SIMULATED = [(size, epsilon) for size in (5, 30, 104, 300, 1000) for epsilon in (0.5, 1.0, 2.0, 4.0)]
CLIENTS, REPORTS = 3_000_000, 10_000_000


def excess(size: int, epsilon: float) -> float:
    """The variance over that of the best subset selection."""
    growth = math.exp(epsilon)
    blocks = choose_blocks(size, Fraction(growth))
    return worst_variance(size, blocks.points, blocks.width, growth) / best_subset(size, growth)[1]


def variances(console: Console) -> None:
    """The variance of a share in the uniform population over the best subset selection's, and k-RR's over that of reports."""
    table = shown(
        "1. Variance over that of the best subset selection; in brackets that of values (k-RR) over it", "outcomes"
    )
    for epsilon in EPSILONS:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for size in SIZES:
        values = [worst_variance(size, size, 1, math.exp(e)) / best_subset(size, math.exp(e))[1] for e in EPSILONS]
        cells = [f"{excess(size, e):.4f} ({v:,.1f})" for e, v in zip(EPSILONS, values, strict=True)]
        table.add_row(f"{size:,}", *cells)
    console.print(table)
    worst = max((excess(size, epsilon), size, epsilon) for epsilon in EPSILONS for size in SWEPT)
    console.print(f"largest over {len(SWEPT):,} sizes up to 100,000 and these epsilons: {worst[0]:.4f} at {worst[1:]}")


def simulations(console: Console) -> None:
    """Squared errors of all shares over draws, in units of the variance that is stated (within 2 % wanted)."""
    table = shown("2. Squared errors of a simulation over the stated variance", "outcomes, epsilon", "ratio", "+-")
    rng = np.random.default_rng(1)
    for size, epsilon in SIMULATED:
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        errors = []
        clients = 2000
        for _ in range(max(100, 40_000 // size)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotPrivateWarning)
                reports = sampler.release_records(rng.integers(0, size, clients), rng=rng)
            held = ReportCounts(sampler).add(reports).supports() / clients
            share = (held - sampler.chances.outside) / sampler.chances.gap
            errors.append(float(np.mean((share - 1.0 / size) ** 2)) * clients / sampler.variance())
        spread = float(np.std(errors) / math.sqrt(len(errors)))
        table.add_row(f"{size:,}, {epsilon:g}", f"{np.mean(errors):.4f}", f"{spread:.4f}")
    console.print(table)


def draws(console: Console) -> None:
    """Clients a second from the operating system's entropy, on the wall and for each second of a processor."""
    table = shown(
        "3. Draws: millions of clients a second", "outcomes, epsilon", "blocks", "wall", "processor", "k-RR, wall"
    )
    for size in (2, 10, 64, 104, 1000, 100_000, 1_000_000):
        for epsilon in (0.5, 1.0, 4.0):
            sampler, records = ReportSampler(Simplex(size), epsilon=epsilon), np.arange(CLIENTS) % size
            wall, busy = timed(partial(sampler.release_records, records))
            values = LinearSampler(Simplex(size), epsilon=epsilon)
            plain, _ = timed(partial(values.randomised_response, records))
            rates = (f"{CLIENTS / each / 1e6:.1f}" for each in (wall, busy, plain))
            table.add_row(f"{size:,}, {epsilon:g}", sampler.blocks.name, *rates)
    console.print(table)


def counting(console: Console) -> None:
    """Seconds to add ten million reports, and to give the supports after another one."""
    table = shown("4. Counting 10,000,000 reports", "outcomes, epsilon", "add, s", "supports, s", "MiB at most so far")
    for size, epsilon in (
        (64, 1.0),
        (104, 1.0),
        (1000, 1.0),
        (1000, 2.0),
        (100_000, 0.05),
        (1_000_000, 1.0),
        (1_000_000, 4.0),
    ):
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        reports, state = sampler.release_records(np.arange(REPORTS) % size), ReportCounts(sampler)
        added, _ = timed(partial(state.add, reports))
        state.supports()
        again, _ = timed(state.supports)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        table.add_row(f"{size:,}, {epsilon:g}", f"{added:.2f}", f"{again:.4f}", f"{peak:,}")
    console.print(table)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of all processors."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def shown(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def run() -> None:
    """Print the tables."""
    console = Console(width=170)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        variances(console)
        simulations(console)
        draws(console)
        counting(console)
