"""Designs: the bundled aircraft in batch projections, a large sparse table in seconds and memory, and what serving by one costs."""

import resource
import time

import numpy as np
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from scipy import sparse

import discreet as dc
from benchmarks.engine_parts.data import FOLDER, OUTCOMES
from benchmarks.engine_parts.data import table as tabled
from benchmarks.engine_parts.processes import alternated, discreet, measured
from benchmarks.finite import best, peak_mebibytes
from discreet import Simplex, data
from discreet.engines import Kernel, Request, Secret
from discreet.engines.request import Job

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


def kernel(console: Console, clients: int = 400_000) -> None:
    """The engines' kernel over a reference of many orders of magnitude, beside the uniform one, at 10 records a client."""
    table = Table(
        title="The kernel over a designed reference: million clients a second, all cores, best of 3 (target: 3)"
    )
    for column in ("outcomes", "uniform", "designed", "ratio of times"):
        table.add_column(column, justify="right")
    rng = np.random.default_rng(2)
    for size in (10**3, 10**6):
        values = (size * rng.random(10 * clients) ** 2).astype(np.uint32)
        lists = pa.LargeListArray.from_arrays(np.arange(clients + 1) * 10, values)
        batch = pa.RecordBatch.from_arrays([pa.array(np.arange(clients)), lists], names=["client", "outcomes"])
        times = [_drawing(Kernel(_job(family)), batch) for family in (Simplex(size), reference(size))]
        speeds = [f"{clients / seconds / 1e6:.2f}" for seconds in times]
        table.add_row(f"{size:,}", *speeds, f"{times[1] / times[0]:.2f}")
    console.print(table)


def _drawing(made: Kernel, batch: pa.RecordBatch) -> float:
    made(batch)
    return best(lambda: made(batch))


def reference(size: int) -> dc.Band:
    """What a design looks like: shares that fall off, and a long tail that no example held."""
    weights = np.maximum(np.arange(1.0, size + 1) ** -1.1, 1e-3 / size)
    return dc.Band(weights, lower=0.0, upper=6.0, everybody=True)


def _job(family: Simplex | dc.Band) -> Job:
    agreement = dc.Agreement.of(dc.OptimalSampler(family, epsilon=2.0))
    request = Request(client="client", value="value", agreement=agreement, secret=Secret(bytes(32)))
    return request.job(pl.Schema({"client": pl.Int64(), "value": pl.Int64()}), where="the benchmark")


def whole_command(console: Console, rows: int = 5_000_000) -> None:
    """`discreet sample`, whole processes in turns: under a designed agreement as a multiple of the uniform one."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = tabled(rows)
    commands = {}
    families: dict[str, Simplex | dc.Band] = {"uniform": Simplex(OUTCOMES), "designed": reference(OUTCOMES)}
    for name, family in families.items():
        path = FOLDER / f"{name}.json"
        path.unlink(missing_ok=True)
        dc.Agreement.of(dc.OptimalSampler(family, epsilon=2.0)).write(path)
        columns = ("--client", "client", "--value", "value", "--agreement", str(path))
        commands[name] = discreet(
            "sample", str(source), *columns, "-o", str(FOLDER / "private.parquet"), "--force", "-q"
        )
        measured(commands[name])  # fills the compilation cache and the file cache
    runs = alternated(commands, 3)
    ratio = runs["designed"].seconds / runs["uniform"].seconds
    console.print(
        f"discreet sample, {rows:,} rows, best of 3 in turns: uniform {runs['uniform'].seconds:.2f} s, designed "
        f"{runs['designed'].seconds:.2f} s, ratio {ratio:.2f} (target 1.3)"
    )


def run() -> None:
    console = Console()
    aircraft(console)
    large(console)
    kernel(console)
    whole_command(console)
