"""Designs: the bundled aircraft in batch projections, a large sparse table in seconds and memory, and what serving by one costs."""

import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from scipy import sparse

import discreet as dc
from benchmarks.engine_parts.data import FOLDER, OUTCOMES, table as tabled
from benchmarks.engine_parts.processes import alternated, discreet, measured
from benchmarks.finite import best, peak_mebibytes
from discreet import Simplex
from discreet._base.kernels import Code, force_implementation
from discreet.research import data
from discreet.tables import Kernel, Request, Secret
from discreet.tables._request import Job

LARGE = (1_000_000, 1_000, 10)  # clients, outcomes, records of each
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def aircraft(console: Console) -> None:
    """In turns with projections of the same batch by compiled code; on the wall, and in processor time of all cores."""
    laws = dc.Simplex(104).law(counts=data.logbooks().counts)
    table = Table(
        title="A KL design of 4,043 clients on 104 outcomes, in projections of the same batch onto the optimal box (target: 100)"
    )
    for column in ("epsilon", "projection, ms", "design, ms", "projections", "in processor time", "gap"):
        table.add_column(column, justify="right")
    for epsilon in EPSILONS:
        sampler = dc.OptimalSampler(dc.Simplex(104), epsilon=epsilon)
        with force_implementation(Code.COMPILED):
            sampler.output(laws)
            found = dc.design(dc.Simplex(104), epsilon=epsilon, clients=laws)
            once, whole = [], []
            for _ in range(8):
                once += [_timed(lambda sampler=sampler: sampler.output(laws)) for _ in range(8)]  # type: ignore[misc]
                whole.append(_timed(lambda epsilon=epsilon: dc.design(dc.Simplex(104), epsilon=epsilon, clients=laws)))  # type: ignore[misc]
        (unit, busy), (taken, used) = np.min(once, axis=0), np.min(whole, axis=0)
        gap = (found.value - found.bound) / found.value
        table.add_row(
            f"{epsilon:g}",
            f"{1e3 * unit:.2f}",
            f"{1e3 * taken:.0f}",
            f"{taken / unit:.0f}",
            f"{used / busy:.0f}",
            f"{gap:.1e}",
        )
    console.print(table)


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of all processors."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def large(console: Console) -> None:
    clients, outcomes, records = LARGE
    rng = np.random.default_rng(0)
    share = np.cumsum(np.arange(1.0, outcomes + 1) ** -0.8)
    drawn = np.searchsorted(share / share[-1], rng.random(clients * records)).clip(0, outcomes - 1).astype(np.int32)
    starts = records * np.arange(clients + 1)
    counts = sparse.csr_array((np.ones(drawn.size), drawn, starts), shape=(clients, outcomes))
    family = dc.Simplex(outcomes)
    with force_implementation(Code.COMPILED):
        dc.design(family, epsilon=2.0, clients=counts[:1_000])
    pass_over, _ = _timed(lambda: np.square(counts.data).sum())
    found: list[dc.Design] = []
    seconds, busy = _timed(lambda: found.append(dc.design(family, epsilon=2.0, clients=counts)))
    gap = (found[0].value - found[0].bound) / found[0].value
    console.print(
        f"{clients:,} sparse clients of {records} records on {outcomes:,} outcomes: {seconds:.1f} s (target 60), {busy:.1f} s of "
        f"processors, {seconds / pass_over:,.0f} passes over the counts, {peak_mebibytes():,.0f} MiB for the whole process (target 1,907), "
        f"gap {gap:.1e}"
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
    return dc.Band(weights, lower=0.0, upper=6.0, any_client=True)


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
    busy = runs["designed"].busy / runs["uniform"].busy
    console.print(
        f"discreet sample, {rows:,} rows, best of 3 in turns: uniform {runs['uniform'].seconds:.2f} s, designed "
        f"{runs['designed'].seconds:.2f} s, ratio {ratio:.2f} (target 1.3), {busy:.2f} in processor time"
    )


def run() -> None:
    console = Console()
    large(console)  # first, so that the peak is its own
    aircraft(console)
    kernel(console)
    whole_command(console)
