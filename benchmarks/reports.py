"""Reports for a population: how far from the best subset selection, by simulation too; draws a second, in tables too; the time to count."""

import math
import resource
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from discreet import Simplex
from discreet.errors import LargeEpsilonWarning, NotPrivateWarning
from discreet.ledger._book import forget_rounds_in_memory
from discreet.mechanisms import LinearSampler, ReportCounts, ReportSampler
from discreet.mechanisms._report_blocks import best_subset, choose_blocks, worst_variance
from discreet.release import Secret
from discreet.tables import Kernel, Request, sample
from discreet.tables._drawing import clients_of

SIZES = (2, 4, 10, 30, 64, 65, 104, 114, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)
EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
SWEPT = (*range(2, 2000), *range(2000, 100_001, 97))
SIMULATED = [(size, epsilon) for size in (5, 30, 104, 300, 1000) for epsilon in (0.5, 1.0, 2.0, 4.0)]
CLIENTS, REPORTS = 3_000_000, 10_000_000
COUNTED = ((64, 1.0), (104, 1.0), (1000, 1.0), (1000, 2.0), (10_000, 1.0), (100_000, 0.05))
MILLION_EPSILONS = (0.05, 0.5, 1.0, 2.0, 4.0, 6.0, 7.5, 8.0, 9.0, 10.0)
TABLE_CLIENTS = 2_000_000
TABLES = ((10, 1.0), (64, 0.5), (104, 4.0), (1000, 1.0), (100_000, 1.0), (1_000_000, 1.0))


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
    table = shown("4. Counting 10,000,000 reports: seconds on the wall, and of all processors", "outcomes, epsilon")
    for name in ("blocks", "add", "processors", "supports", "processors", "MiB at most so far"):
        table.add_column(name, justify="right")
    for size, epsilon in (*COUNTED, *((1_000_000, epsilon) for epsilon in MILLION_EPSILONS)):
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        reports, state = sampler.release_records(np.arange(REPORTS) % size), ReportCounts(sampler)
        ReportCounts(sampler).add(reports[:200_000])  # tables and code that are made once
        added, busy = timed(partial(state.add, reports))
        state.supports()
        again, busy_again = timed(state.supports)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        shape = f"{sampler.blocks.name} {tuple(sampler.blocks.parameters.values())}"
        cells = f"{added:.2f}", f"{busy:.2f}", f"{again:.4f}", f"{busy_again:.4f}", f"{peak:,}"
        table.add_row(f"{size:,}, {epsilon:g}", shape, *cells)
    console.print(table)


def tables(console: Console) -> None:
    """Clients a second through `discreet.tables.sample`, one record each: all of it, and the draw in it, in one thread."""
    parts = ("sample", "draw", "sample under a secret", "draw under a secret")
    table = shown(
        "5. Tables: millions of clients a second (on the wall; for each second of a processor)", "outcomes, epsilon"
    )
    for name in ("blocks", *parts):
        table.add_column(name, justify="right")
    rows = pl.DataFrame({"who": np.arange(TABLE_CLIENTS), "what": np.zeros(TABLE_CLIENTS, dtype=np.int64)})
    for size, epsilon in ((104, 1.0), *TABLES):
        rows = rows.with_columns(what=pl.Series(np.arange(TABLE_CLIENTS) % size))
        reports = ReportSampler(Simplex(size), epsilon=epsilon)
        for sampler in (LinearSampler(Simplex(size), epsilon=epsilon), reports):
            job = Request(client="who", value="what", sampler=sampler).job(rows.schema)
            ends = np.arange(TABLE_CLIENTS + 1, dtype=np.int64)
            lists = pa.LargeListArray.from_arrays(ends, pa.array(rows["what"].to_numpy().astype(np.uint32)))
            clients = clients_of(pa.array(rows["who"].to_numpy()), lists, None)
            cells = []
            for secret in (None, Secret(bytes(32))):
                ask = partial(sample, rows, client="who", value="what", sampler=sampler, secret=secret)
                draw = partial(Kernel(job).draw, clients, digested=secret is not None)
                for work in (ask, draw):
                    work()
                    wall, busy = timed(work)
                    cells.append(f"{TABLE_CLIENTS / wall / 1e6:.2f}; {TABLE_CLIENTS / busy / 1e6:.2f}")
                forget_rounds_in_memory()
            kind = sampler.blocks.name if isinstance(sampler, ReportSampler) else "linear"
            table.add_row(f"{size:,}, {epsilon:g}", kind, *cells)
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
        tables(console)
