"""One private row per client: against the query that is not private, the kernel alone, memory, Spark, peers, a ledger, and growth.

BENCH_SCALE=0.01 makes every table a hundred times smaller, to try it out. Data, environments and the picture go to out/bench.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.engine_parts.data import FOLDER, OUTCOMES, labels, table
from benchmarks.engine_parts.on_spark import FEW, OWN_QUERY, OWN_QUERY_OF_FEW
from benchmarks.engine_parts.processes import (
    Run,
    alternated,
    copy_bandwidth,
    discreet,
    measured,
    plain_query,
    rivals_python,
)
from benchmarks.engine_parts.stages import STAGES
from benchmarks.rivals import bisection_projection
from discreet.tables import Kernel, Request, Secret, write_secret

SECRET = Secret(bytes(32))
TIMES = 3
EPSILON = 2.0


def run(scale: float | None = None) -> None:
    """All of it, at full size unless told otherwise."""
    scale = float(os.environ.get("BENCH_SCALE", "1")) if scale is None else scale
    console = Console(width=140)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if scale != 1:
        console.print(f"[bold]sizes times {scale:g}[/bold]")
    for rows, target in ((100_000, None), (1_000_000, None), (4_000_000, 1.0), (20_000_000, 0.6)):
        main_job(console, max(1000, int(rows * scale)), target)
    stages(console, [max(1000, int(rows * scale)) for rows in (100_000, 4_000_000, 20_000_000)])
    kernel(console, max(1000, int(2_000_000 * scale)))
    large(console, max(1000, int(100_000_000 * scale)))
    spark(console, max(1000, int(3_000_000 * scale)))
    peers(console, max(100, int(20_000 * scale)), seconds=5.0 * min(1.0, scale))
    ledger(console, max(1000, int(20_000_000 * scale)))
    growth(console, [max(1000, int(rows * scale)) for rows in (10**5, 10**6, 10**7, 10**8)])


def command(source: Path, output: Path, *, named: bool = False, more: tuple[str, ...] = ()) -> list[str]:
    """`discreet sample` of a table of the benchmark."""
    domain = ("--domain", str(_label_file())) if named else ("--domain-size", str(OUTCOMES))
    columns = ("--client", "client", "--value", "value", "--epsilon", str(EPSILON))
    return discreet("sample", str(source), *columns, *domain, "-o", str(output), "--force", "--quiet", *more)


def _label_file() -> Path:
    path = FOLDER / "labels.txt"
    path.write_text("\n".join(labels()) + "\n")
    return path


def main_job(console: Console, rows: int, target: float | None) -> None:
    """1. The command, start-up included, as a multiple of the plain query that is not private: wall and processor time."""
    aim = "" if target is None else f" (target {target:g})"
    shown = shown_table(
        f"1. One private row per client, against one that is not private: {rows:,} rows, whole processes, least of {TIMES} in turns",
        "clients and values", "plain polars, s", "discreet, s", f"ratio{aim}", "ratio of processor time", "plain peak, GB",
        "discreet peak, GB", "reading the bytes once, s",
    )  # fmt: skip
    for named in (False, True):
        source = table(rows, named=named)
        ours, plain = (
            command(source, FOLDER / "private.parquet", named=named),
            plain_query(source, FOLDER / "plain.parquet"),
        )
        measured(ours)  # fills the compilation cache and the file cache
        runs = alternated({"plain": plain, "ours": ours}, TIMES)
        shown.add_row(
            "texts" if named else "integers",
            *(f"{runs[name].seconds:.2f}" for name in ("plain", "ours")),
            f"{runs['ours'].seconds / runs['plain'].seconds:.2f}",
            f"{runs['ours'].busy / runs['plain'].busy:.2f}",
            *(f"{runs[name].gigabytes:.2f}" for name in ("plain", "ours")),
            f"{_least_seconds(source):.3f}",
        )
    console.print(shown)


def _least_seconds(source: Path) -> float:
    """What reading the unpacked columns once would take at the bandwidth of a copy, on all cores."""
    unpacked = pq.ParquetFile(source).metadata
    size = float(sum(unpacked.row_group(number).total_byte_size for number in range(unpacked.num_row_groups)))
    return size / _most_bytes()


def _most_bytes() -> float:
    """Bytes a second that all cores copy."""
    return copy_bandwidth() * min(2, os.cpu_count() or 1)


def stages(console: Console, sizes: list[int]) -> None:
    """1. Where the processor time of the command goes."""
    shown = shown_table(
        f"1. Processor time of the command by stage, seconds, least of {TIMES}", "rows", *STAGES, "all", "reading the bytes once",
    )  # fmt: skip
    for rows in sizes:
        arguments = command(table(rows), FOLDER / "private.parquet")[1:]
        program = [sys.executable, "-m", "benchmarks.engine_parts.stages", *arguments]
        found = []
        for _ in range(TIMES):
            done = subprocess.run(program, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        least = min(found, key=lambda each: sum(each.values()))
        cells = [f"{least[stage]:.2f}" for stage in STAGES]
        shown.add_row(f"{rows:,}", *cells, f"{sum(least.values()):.2f}", f"{_least_seconds(table(rows)):.3f}")
    console.print(shown)


def kernel(console: Console, most: int) -> None:
    """2. Clients per second of the kernel on Arrow batches, by records and by domain."""
    domains = (10**3, 10**6, 10**8)
    shown = shown_table(
        "2. The kernel alone: million clients per second, all cores, best of 3 (target: 5 at 10 records)",
        "records each", *(f"{size:,} outcomes" for size in domains), "reading the bytes once",
    )  # fmt: skip
    rng = np.random.default_rng(2)
    for records in (10, 100, 1000):
        cells = []
        clients = max(100, most * 10 // records // 5)
        for size in domains:
            made = Kernel(_job(size))
            values = (size * rng.random(clients * records) ** 2).astype(np.uint32)
            lists = pa.LargeListArray.from_arrays(np.arange(clients + 1) * records, values)
            batch = pa.RecordBatch.from_arrays([pa.array(np.arange(clients)), lists], names=["client", "outcomes"])
            best = min(_seconds(lambda made=made, batch=batch: made(batch)) for _ in range(3))
            cells.append(f"{clients / best / 1e6:.3f}")
        shown.add_row(f"{records:,}", *cells, f"{_most_clients(records) / 1e6:.0f}")
    console.print(shown)


def _most_clients(records: int) -> float:
    """Clients a second if their names and so many outcomes of each were only read."""
    return _most_bytes() / (8 + 4 * records)


def _job(size: int) -> Any:
    import polars as pl

    request = Request(client="client", value="value", domain=size, epsilon=EPSILON, secret=SECRET)
    return request.job(pl.Schema({"client": pl.Int64(), "value": pl.Int64()}), where="the benchmark")


def large(console: Console, rows: int) -> None:
    """3. Peak memory on a large table, with the default budget and with a small one that goes through the disk."""
    source = table(rows)
    shown = shown_table(
        f"3. {rows:,} rows (target: within 4 GB)", "memory budget", "seconds", "million rows/s", "peak, GB", "reading the bytes once, s",
    )  # fmt: skip
    for budget in (None, "2G", "300M"):
        more = () if budget is None else ("--memory", budget, "--scratch", str(FOLDER))
        found = measured(command(source, FOLDER / "private.parquet", more=more))
        speed = f"{rows / found.seconds / 1e6:.1f}"
        least = f"{_least_seconds(source):.3f}"
        shown.add_row(budget or "default", f"{found.seconds:.1f}", speed, f"{found.gigabytes:.2f}", least)
    console.print(shown)


def spark(console: Console, rows: int) -> None:
    """4. Spark on two local cores: fresh actions against Spark's own query, few rows, and what retries do."""
    found = _json(console, "4. Spark", "speed", str(table(rows)))
    if found:
        shown = shown_table(
            f"4. Spark local[2], {rows:,} rows, a new action each time, least of several in turns",
            "", "s", "times Spark's own query", "processor time, s", "times Spark's own query", "reading the bytes once, s",
        )  # fmt: skip
        for name, (seconds, busy) in ((name, each) for name, each in found.items() if name != "same"):
            few = name.endswith("rows")  # these have a query of their own, and 16 bytes a row
            own = found[OWN_QUERY_OF_FEW if few else OWN_QUERY]
            least = 16 * FEW / _most_bytes() if few else _least_seconds(table(rows))
            ratios = [f"{seconds / own[0]:.2f}", f"{busy:.2f}", f"{busy / own[1]:.2f}"]
            shown.add_row(name, f"{seconds:.2f}", *ratios, f"{least:.6f}" if few else f"{least:.3f}")
        shown.add_row("same samples as the local engine", str(found["same"]))
        console.print(shown)
        if found["one private row per client"][1] < found["passing the rows to Python"][1]:
            raise SystemExit(
                "a release took less than passing its rows to Python, so it was served from somewhere else"
            )
    found = _json(console, "4. Spark retries", "retries")
    if found:
        shown = shown_table(
            "4. 1,000 clients on a cluster of two hosts: samples identical to the local engine's", "", ""
        )
        for name, identical in found["checks"].items():
            shown.add_row(name, "identical" if identical else "[red]DIFFERENT[/red]")
        shown.add_row("tasks that failed and were tried again", str(found["failures"]))
        shown.add_row("speculative copies that Spark started", str(found["copies"]))
        console.print(shown)
        if not all(found["checks"].values()):
            raise SystemExit("a retried release differs")


def _json(console: Console, what: str, *arguments: str) -> dict[str, Any]:
    """What a Spark process prints; nothing, with the reason shown, if Spark cannot be had."""
    program = [sys.executable, "-m", "benchmarks.engine_parts.on_spark", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        console.print(f"{what} skipped: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'it failed'}")
        return {}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def peers(console: Console, clients: int, seconds: float) -> None:
    """5. What a user would pick instead, on the same clients."""
    records = 50
    shown = shown_table(
        f"5. One draw for each of {clients:,} clients of {records} records on {OUTCOMES:,} outcomes, epsilon {EPSILON:g}",
        "", "clients/s", "times slower", "exact probabilities", "secure randomness", "best possible",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    edges = np.cumsum(1.0 / np.arange(1, OUTCOMES + 1))
    values = np.searchsorted(edges, rng.random((clients, records)) * edges[-1])
    lists = pa.LargeListArray.from_arrays(np.arange(clients + 1) * records, values.ravel().astype(np.uint32))
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(clients)), lists], names=["client", "outcomes"])
    shown.add_row("reading the records once, all cores", f"{_most_clients(records):,.0f}")
    made = Kernel(_job(OUTCOMES))
    ours = clients / min(_seconds(lambda: made(batch)) for _ in range(3))
    shown.add_row("discreet kernel", f"{ours:,.0f}", "1", "yes, integers", "yes, keyed by entropy", "for each client")
    done, start = 0, time.perf_counter()
    while done < clients and time.perf_counter() - start < seconds:
        law = np.bincount(values[done], minlength=OUTCOMES) / records
        rng.choice(OUTCOMES, p=bisection_projection(law, EPSILON, 1e-12))
        done += 1
    speed = done / (time.perf_counter() - start)
    shown.add_row(
        "numpy: bisection per client", f"{speed:,.0f}", f"{ours / speed:,.0f}", "no, floats", "no", "up to a tolerance"
    )
    facts = {
        "opendp": ("opendp randomised response of a raw draw", "yes", "yes", "in the worst case"),
        "diffprivlib": ("diffprivlib Exponential", "no, floats", "yes", "no"),
        "pure-ldp": ("pure-ldp direct encoding of a raw draw", "no, floats", "no (random)", "in the worst case"),
        "multi-freq-ldpy": ("multi-freq-ldpy GRR of a raw draw", "no, floats", "no (numpy)", "in the worst case"),
    }
    for found in _peer_runs(console, clients, records, seconds):
        name, *said = facts[found["name"]]
        if "problem" in found:
            shown.add_row(name, f"skipped: {found['problem']}", "", *said)
        else:
            shown.add_row(name, f"{found['speed']:,.0f}", f"{ours / found['speed']:,.0f}", *said)
    console.print(shown)


def _peer_runs(console: Console, clients: int, records: int, seconds: float) -> list[dict[str, Any]]:
    python = rivals_python()
    if isinstance(python, str):
        console.print(f"5. peers skipped: {python}")
        return []
    script = Path(__file__).parent / "engine_parts" / "peers.py"
    arguments = [str(clients), str(records), str(OUTCOMES), str(EPSILON), str(seconds)]
    done = subprocess.run([str(python), str(script), *arguments], capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def ledger(console: Console, rows: int) -> None:
    """7. The command with a population's ledger, as a multiple of the command without it."""
    shown = shown_table(
        f"7. A ledger of the population: {rows:,} rows, whole processes, best of {TIMES} in turns (target: 1.5)",
        "run", "s", "ratio to no ledger", "reading the bytes once, s",
    )  # fmt: skip
    source, output = table(rows), FOLDER / "private.parquet"
    seconds: dict[str, list[float]] = {"no ledger": [], "new to the ledger": [], "known to the ledger": []}
    measured(command(source, output))  # fills the compilation cache and the file cache
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            secret, books = Path(folder) / "secret", Path(folder) / "ledger"
            write_secret(secret)
            more = ("--secret", str(secret), "--ledger", str(books), "--budget", str(2 * EPSILON))
            for name, options in zip(seconds, ((), more, more), strict=True):
                seconds[name].append(measured(command(source, output, more=options)).seconds)
    least = min(seconds["no ledger"])
    for name, found in seconds.items():
        shown.add_row(name, f"{min(found):.2f}", f"{min(found) / least:.2f}", f"{_least_seconds(source):.3f}")
    console.print(shown)


def growth(console: Console, sizes: list[int]) -> None:
    """6. Cost as work grows, with a picture."""
    shown = shown_table(
        "6. The command as work grows: whole processes, best of 2",
        "rows",
        "seconds",
        "million rows/s",
        "peak, GB",
        "slope",
        "reading the bytes once, s",
    )
    runs: list[Run] = []
    for rows in sizes:
        source = table(rows)
        runs.append(
            min((measured(command(source, FOLDER / "private.parquet")) for _ in range(2)), key=lambda run: run.seconds)
        )
        slope = ""
        if len(runs) > 1:
            past = sizes[len(runs) - 2]
            slope = f"{np.log(runs[-1].seconds / runs[-2].seconds) / np.log(rows / past):.2f}"
        shown.add_row(
            f"{rows:,}",
            f"{runs[-1].seconds:.2f}",
            f"{rows / runs[-1].seconds / 1e6:.2f}",
            f"{runs[-1].gigabytes:.2f}",
            slope,
            f"{_least_seconds(source):.3f}",
        )
    console.print(shown)
    console.print(f"picture: {_picture(sizes, runs)}")


def _picture(sizes: list[int], runs: list[Run]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    seconds = [run.seconds for run in runs]
    axes.loglog(sizes, seconds, "o-", label="discreet sample, whole process")
    per_row = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    axes.loglog(
        sizes,
        [seconds[0] + per_row * (rows - sizes[0]) for rows in sizes],
        ":",
        label="start-up plus a constant per row",
    )
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds")
    axes.legend()
    path = FOLDER / "engines_growth.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def shown_table(title: str, *columns: str) -> Table:
    """An empty table: the first column flush left."""
    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right")
    return made


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    run()
