"""The curator's pass over ten million samples, against the plainest count of values there is; and coverage as it grows.

BENCH_SCALE=0.01 makes the tables a hundred times smaller, to try it out.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.engine_parts.data import FOLDER
from benchmarks.engine_parts.processes import alternated, copy_bandwidth, discreet, plain_counts
from benchmarks.engines import shown_table
from discreet.agreement import Agreement
from discreet.estimation import population
from discreet.estimation._sample_tables import coding_and_sampler, tally_samples
from discreet.families import Simplex
from discreet.mechanisms import LinearSampler, OptimalSampler, ReportSampler
from discreet.tables._sources._opening import file_source

OUTCOMES = 1000
TIMES = 5
TIMES_OF_REPORTS = 2
POPULATIONS = 2000


def run(scale: float | None = None) -> None:
    """All of it, at full size unless told otherwise."""
    scale = float(os.environ.get("BENCH_SCALE", "1")) if scale is None else scale
    console = Console(width=140)
    FOLDER.mkdir(parents=True, exist_ok=True)
    speed(console, max(10_000, int(10_000_000 * scale)))
    reports(console, [max(10_000, int(number * scale)) for number in (10**6, 10**7, 10**8)])
    coverage(console, max(50, int(POPULATIONS * scale)))


def speed(console: Console, rows: int) -> None:
    """One streaming pass: as a whole command, and inside a process that runs already."""
    agreement = Agreement.of(LinearSampler(Simplex(OUTCOMES), epsilon=2.0))
    path, terms = FOLDER / f"samples-{rows}.parquet", FOLDER / "samples.json"
    terms.unlink(missing_ok=True)
    agreement.write(terms)
    if not path.exists():
        numbers = np.random.default_rng(1).integers(0, OUTCOMES, rows)
        ids = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([agreement.id]))
        pq.write_table(
            pa.table({"client": np.arange(rows), "sample": numbers, "agreement": ids}), path, compression="zstd"
        )
    command = discreet("estimate", str(path), "--agreement", str(terms), "--json")
    runs = alternated({"plain": plain_counts(path), "ours": command}, TIMES)
    shown = shown_table(
        f"1. Estimates with intervals from {rows:,} samples of {OUTCOMES:,} outcomes, against a plain polars count (best of {TIMES})",
        "", "plain, s", "discreet, s", "ratio", "plain peak, GB", "discreet peak, GB",
    )  # fmt: skip
    shown.add_row(
        "whole process, start-up included",
        *(f"{runs[name].seconds:.2f}" for name in ("plain", "ours")),
        f"{runs['ours'].seconds / runs['plain'].seconds:.2f}",
        *(f"{runs[name].gigabytes:.2f}" for name in ("plain", "ours")),
    )
    domain, sampler = coding_and_sampler(agreement)
    only_counts = _best(lambda: pl.scan_parquet(path).group_by("sample").len().collect(engine="streaming"))
    with_ids = _best(lambda: pl.scan_parquet(path).group_by("sample", "agreement").len().collect(engine="streaming"))
    ours = _best(
        lambda: population(sampler, counts=tally_samples(file_source(str(path)), agreement, domain).counts).law
    )
    counts = pl.scan_parquet(path).group_by("sample", "agreement").agg(pl.len(), pl.col("client").implode())
    with_clients = _best(lambda: counts.collect(engine="streaming")["client"].explode().n_unique())
    for name, plain in (
        ("once started", only_counts),
        ("once started, count by agreement too", with_ids),
        ("once started, and see that no client comes twice", with_clients),
    ):
        shown.add_row(name, f"{plain:.3f}", f"{ours:.3f}", f"{ours / plain:.2f}", "", "")
    console.print(shown)


def reports(console: Console, sizes: list[int]) -> None:
    """2. Reports: one pass, in memory that does not grow with them, against a polars query that counts them by number."""
    shown = shown_table(
        f"2. Estimates from reports on {OUTCOMES:,} outcomes, whole processes, least of {TIMES_OF_REPORTS} in turns",
        "reports", "clients", "plain count, s", "discreet, s", "ratio", "ratio of processor time", "plain peak, GB",
        "discreet peak, GB", "reading the bytes once, s",
    )  # fmt: skip
    for number in sizes:
        for named in (False, True):
            path, terms = _report_table(number, named=named)
            command = discreet("estimate", str(path), "--agreement", str(terms), "--json")
            runs = alternated({"plain": plain_counts(path, "report"), "ours": command}, TIMES_OF_REPORTS)
            shown.add_row(
                f"{number:,}",
                "told apart" if named else "not named",
                *(f"{runs[name].seconds:.2f}" for name in ("plain", "ours")),
                f"{runs['ours'].seconds / runs['plain'].seconds:.2f}",
                f"{runs['ours'].busy / runs['plain'].busy:.2f}",
                *(f"{runs[name].gigabytes:.2f}" for name in ("plain", "ours")),
                f"{(16 if named else 8) * number / copy_bandwidth() / min(2, os.cpu_count() or 1):.3f}",
            )
            path.unlink()
    console.print(shown)


def _report_table(number: int, *, named: bool) -> tuple[Path, Path]:
    """A file of so many reports, and that of their agreement."""
    sampler = ReportSampler(Simplex(OUTCOMES), epsilon=1.0)
    agreement = Agreement.of(sampler)
    path, terms = FOLDER / f"reports-{number}-{named}.parquet", FOLDER / "reports.json"
    terms.unlink(missing_ok=True)
    agreement.write(terms)
    rng = np.random.default_rng(0)
    some = sampler.release_records((OUTCOMES * rng.random(1_000_000) ** 2).astype(np.int64))
    kinds = [("client", pa.int64())] * named + [("report", pa.uint64()), ("agreement", pa.string())]
    schema, step = pa.schema(kinds), min(number, 1_000_000)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, number, step):
            rows = min(step, number - start)
            columns = {"client": np.arange(start, start + rows)} if named else {}
            ids = pa.repeat(agreement.id, rows)
            writer.write_table(
                pa.table({**columns, "report": some[rng.integers(0, len(some), rows)], "agreement": ids}, schema=schema)
            )
    return path, terms


def coverage(console: Console, populations: int) -> None:
    """How often 95 % intervals hold the truth, over simulated populations of clients that all differ."""
    shown = shown_table(
        f"3. Coverage of 95 % intervals over {populations:,} populations of 2,000 different clients each (at least 95 % wanted)",
        "outcomes, epsilon", "linear, %", "linear, all at once, %", "optimal, %", "linear +-", "optimal +-",
    )  # fmt: skip
    for size, epsilon in ((4, 0.5), (10, 1.0), (10, 4.0), (50, 2.0)):
        rng = np.random.default_rng(size)
        samplers = LinearSampler(Simplex(size), epsilon=epsilon), OptimalSampler(Simplex(size), epsilon=epsilon)
        hits: list[list[float]] = [[], []]
        together: list[bool] = []
        widths: list[list[float]] = [[], []]
        for _ in range(populations):
            shape = rng.gamma(0.7, size=size) + 0.02
            truth, held = shape / shape.sum(), rng.dirichlet(shape, 2000)
            for place, sampler in enumerate(samplers):
                q = np.asarray(sampler.output(held))
                drawn = (np.cumsum(q, axis=1) > rng.random((len(q), 1))).argmax(axis=1)
                law = population(sampler, counts=np.bincount(drawn, minlength=size)).law
                hits[place].append(float(((law.low <= truth) & (truth <= law.high)).mean()))
                widths[place].append(float(0.5 * (law.high - law.low).mean()))
                if not place:
                    together.append(bool(((law.all_low <= truth) & (truth <= law.all_high)).all()))
        shown.add_row(
            f"{size}, {epsilon:g}", f"{100 * np.mean(hits[0]):.1f}", f"{100 * np.mean(together):.1f}",
            f"{100 * np.mean(hits[1]):.1f}", *(f"{np.mean(width):.3f}" for width in widths),
        )  # fmt: skip
    console.print(shown)


def _best(work: Callable[[], object]) -> float:
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    run()
