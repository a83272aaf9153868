"""Reports for a population: how far from the best subset selection, checked by simulation; draws a second, in tables too; the time to count
reports; other libraries.

The first table takes minutes: it asks `choose_blocks` for every number of outcomes up to 100,000 at every epsilon of the grid.
"""

import json
import math
import os
import resource
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.engine_parts.processes import rivals_python
from discreet import Simplex
from discreet.errors import LargeEpsilonWarning, NotPrivateWarning
from discreet.ledger._book import forget_rounds_in_memory
from discreet.mechanisms import LinearSampler, ReportCounts, Reports, ReportSampler
from discreet.mechanisms._reports._choice import (
    best_subset_width_and_variance,
    choose_blocks,
    share_variance_in_uniform_population,
)
from discreet.privacy import largest_ratio_for_epsilon
from discreet.release import Secret
from discreet.tables import Kernel, Request, sample
from discreet.tables._parts import clients_and_records_from_arrow

SIZES = (2, 4, 10, 30, 64, 65, 104, 114, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)
EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
GRID = (
    0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.95, 2.25, 2.5, 2.75, 3.0, 3.12, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
)  # fmt: skip
LARGEST, PART = 100_000, 500  # outcomes of the sweep, and of a piece of it
FINE = tuple(np.round(np.arange(0.05, 10.001, 0.01), 2).tolist())
FINE_SIZES = (*range(65, 400, 3), *range(400, 3000, 97), 9552, 31398, 65537, 99992, 100_000)
SIMULATED = [(size, epsilon) for size in (5, 30, 104, 300, 1000) for epsilon in (0.5, 1.0, 2.0, 4.0)]
CLIENTS, REPORTS = 3_000_000, 10_000_000
RIVALLED, PEER_SECONDS, ALONE = ((104, 1.0), (1000, 1.0), (1000, 4.0)), 4.0, 2000
COUNTED = ((64, 1.0), (104, 1.0), (1000, 1.0), (1000, 2.0), (10_000, 1.0), (100_000, 0.05))
MILLION_EPSILONS = (0.05, 0.5, 1.0, 2.0, 4.0, 6.0, 7.5, 8.0, 9.0, 10.0)
TABLE_CLIENTS = 2_000_000
TABLES = ((10, 1.0), (64, 0.5), (104, 4.0), (1000, 1.0), (100_000, 1.0), (1_000_000, 1.0))


def excess(size: int, bound: Fraction) -> float:
    """The variance of the blocks that are chosen over that of the best subset selection; e^epsilon is a rational."""
    blocks, growth = choose_blocks(size, bound), float(bound)
    return (
        share_variance_in_uniform_population(size, blocks.point_count, blocks.width, growth)
        / best_subset_width_and_variance(size, growth)[1]
    )


def largest_excesses(sizes: Sequence[int], epsilons: Sequence[float]) -> list[tuple[float, int]]:
    """For each epsilon the largest excess over these numbers of outcomes, and where it is."""
    bounds, found = [largest_ratio_for_epsilon(epsilon) for epsilon in epsilons], [(0.0, 0)] * len(epsilons)
    for size in sizes:  # the outer loop: the primes that are tried do not depend on epsilon
        found = [max(most, (excess(size, bound), size)) for most, bound in zip(found, bounds, strict=True)]
    return found


def swept(sizes: Sequence[int], epsilons: Sequence[float]) -> list[tuple[float, int]]:
    """The same on all processors."""
    parts = [sizes[start : start + PART] for start in range(0, len(sizes), PART)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(partial(largest_excesses, epsilons=epsilons), parts))
    return [max(each) for each in zip(*found, strict=True)]


def variances(console: Console) -> None:
    """The variance of a share in the uniform population over the best subset selection's, and k-RR's over that of reports."""
    table = shown(
        "1. Variance over that of the best subset selection; in brackets that of values (k-RR) over it", "outcomes"
    )
    for epsilon in EPSILONS:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for size in SIZES:
        values = [
            share_variance_in_uniform_population(size, size, 1, math.exp(e))
            / best_subset_width_and_variance(size, math.exp(e))[1]
            for e in EPSILONS
        ]
        cells = [
            f"{excess(size, largest_ratio_for_epsilon(e)):.4f} ({v:,.1f})"
            for e, v in zip(EPSILONS, values, strict=True)
        ]
        table.add_row(f"{size:,}", *cells)
    console.print(table)


def sweep(console: Console) -> None:
    """The largest of these ratios, over every number of outcomes on a grid of epsilons, and over some on a finer grid."""
    start = time.perf_counter()
    found = swept(range(2, LARGEST + 1), GRID)
    seconds = time.perf_counter() - start
    table = shown(f"2. Largest of them over every number of outcomes from 2 to {LARGEST:,}", "epsilon", "most", "at")
    for epsilon, (most, size) in zip(GRID, found, strict=True):
        table.add_row(f"{epsilon:g}", f"{most:.5f}", f"{size:,}")
    console.print(table)
    most, size, epsilon = max((most, size, epsilon) for (most, size), epsilon in zip(found, GRID, strict=True))
    number = len(GRID) * (LARGEST - 1)
    console.print(
        f"largest of {number:,} choices: {most:.5f} at {size:,} outcomes, epsilon {epsilon:g}; {seconds:.0f} s"
    )
    fine = zip(swept(FINE_SIZES, FINE), FINE, strict=True)
    most, size, epsilon = max((most, size, epsilon) for (most, size), epsilon in fine)
    number = len(FINE) * len(FINE_SIZES)
    console.print(
        f"largest of {number:,} choices on a finer grid: {most:.5f} at {size:,} outcomes, epsilon {epsilon:g}"
    )


def simulations(console: Console) -> None:
    """Squared errors of all shares over draws, in units of the variance that is stated (within 2 % wanted)."""
    table = shown("3. Squared errors of a simulation over the stated variance", "outcomes, epsilon", "ratio", "+-")
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
        "4. Draws: millions of clients a second", "outcomes, epsilon", "blocks", "wall", "processor", "k-RR, wall"
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
    table = shown("5. Counting 10,000,000 reports: seconds on the wall, and of all processors", "outcomes, epsilon")
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
        "6. Tables: millions of clients a second (on the wall; for each second of a processor)", "outcomes, epsilon"
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
            clients = clients_and_records_from_arrow(pa.array(rows["who"].to_numpy()), lists, None)
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


def rivals(console: Console) -> None:
    """Other libraries' oracles on the same machine, one client at a time as they work, and ours both ways."""
    python = rivals_python()
    for size, epsilon in RIVALLED:
        columns = ("", "clients a second", "times slower", "reports counted a second", "times slower")
        table = shown(f"7. {size:,} outcomes, epsilon {epsilon:g}, other libraries, by processor time", *columns)
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        records = np.arange(CLIENTS) % size
        drawn = CLIENTS / min(timed(partial(sampler.release_records, records))[1] for _ in range(3))
        reports = sampler.release_records(records)
        counted = CLIENTS / min(timed(partial(counted_shares, sampler, reports))[1] for _ in range(3))
        single = ALONE / timed(partial(release_alone, sampler))[1]
        table.add_row("discreet, all clients at once", f"{drawn:,.0f}", "1", f"{counted:,.0f}", "1")
        table.add_row("discreet, one call for each client", f"{single:,.0f}", f"{drawn / single:,.0f}", "", "")
        for found in [] if isinstance(python, str) else peer_oracles(python, size, epsilon):
            if "problem" in found:
                table.add_row(found["name"], f"skipped: {found['problem']}", "", "", "")
                continue
            draws, decoded = found["draws"], found["decoded"]
            ratios = f"{drawn / draws:,.0f}", f"{counted / decoded:,.0f}"
            table.add_row(found["name"], f"{draws:,.0f}", ratios[0], f"{decoded:,.0f}", ratios[1])
        console.print(table)
    if isinstance(python, str):
        console.print(f"other libraries skipped: {python}")


def release_alone(sampler: ReportSampler) -> None:
    """One call for each of some clients."""
    for record in np.arange(ALONE)[:, None] % sampler.family.size:
        sampler.release_records(record)


def counted_shares(sampler: ReportSampler, reports: Reports) -> NDArray[np.float64]:
    """Estimates of every share, from the first report on."""
    return ReportCounts(sampler).add(reports).supports() / len(reports) - sampler.chances.outside


def peer_oracles(python: Path, size: int, epsilon: float) -> list[dict[str, Any]]:
    """What each oracle of the other libraries took."""
    script = Path(__file__).parent / "engine_parts" / "oracles.py"
    arguments = [str(size), str(epsilon), str(PEER_SECONDS)]
    done = subprocess.run([str(python), str(script), *arguments], capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


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
        sweep(console)
        simulations(console)
        draws(console)
        counting(console)
        tables(console)
        rivals(console)
