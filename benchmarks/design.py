"""Designs: the bundled aircraft in batch projections, and a large sparse table in seconds and memory."""

import resource
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import discreet as dc
from benchmarks.finite import best, peak_mebibytes
from discreet import data

LARGE = (200_000, 1_000, 10)  # clients, outcomes, records of each


def aircraft(console: Console) -> None:
    laws = dc.Simplex(104).law(counts=data.logbooks().counts)
    table = Table(
        title="A KL design of 4,043 clients on 104 outcomes, in projections of the same batch onto the optimal box"
    )
    for column in ("epsilon", "projection, ms", "design, s", "projections", "gap"):
        table.add_column(column, justify="right")
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        sampler = dc.OptimalSampler(dc.Simplex(104), epsilon=epsilon)
        sampler.output(laws)
        found = dc.design(dc.Simplex(104), epsilon=epsilon, clients=laws)
        whole = best(lambda epsilon=epsilon: dc.design(dc.Simplex(104), epsilon=epsilon, clients=laws))  # type: ignore[misc]
        once = float(np.median([best(lambda sampler=sampler: sampler.output(laws)) for _ in range(5)]))  # type: ignore[misc]
        gap = (found.value - found.bound) / found.value
        table.add_row(f"{epsilon:g}", f"{1e3 * once:.2f}", f"{whole:.3f}", f"{whole / once:.0f}", f"{gap:.1e}")
    console.print(table)


def large(console: Console) -> None:
    clients, outcomes, records = LARGE
    rng = np.random.default_rng(0)
    share = np.cumsum(np.arange(1.0, outcomes + 1) ** -0.8)
    drawn = np.searchsorted(share / share[-1], rng.random(clients * records)).clip(0, outcomes - 1)
    rows = np.repeat(np.arange(clients), records)
    counts = sparse.csr_array((np.ones(rows.size), (rows, drawn)), shape=(clients, outcomes))
    before, start = peak_mebibytes(), time.perf_counter()
    found = dc.design(dc.Simplex(outcomes), epsilon=2.0, clients=counts)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    console.print(
        f"{clients:,} sparse clients of {records} records on {outcomes:,} outcomes: {seconds:.1f} s, {used:,.0f} MiB more, "
        f"gap {(found.value - found.bound) / found.value:.1e}"
    )


def run() -> None:
    console = Console()
    aircraft(console)
    large(console)
