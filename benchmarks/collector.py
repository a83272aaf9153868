"""The collector under load, on SQLite and PostgreSQL, beside a bare endpoint that inserts one row; a refresh at 10^7 samples.

Service, database and the load share the cores of this machine. A million samples are sent: one by one, in batches of JSON and in batches of
Arrow; at the end every one of them is counted, and a part of them sent again is counted no second time. BENCH_SCALE=0.01 sends a
hundredth.
"""

import contextlib
import io
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
from rich.console import Console
from tests.collect.postgres import server

from benchmarks.collector_parts.load import Load, post, sent
from benchmarks.engines import shown_table
from discreet.agreement import Agreement
from discreet.client._protocol import ARROW, JSON
from discreet.collect import open_store
from discreet.families import Simplex
from discreet.mechanisms import LinearSampler

OUTCOMES = 1000
CONNECTIONS = 64
BATCH_CONNECTIONS = 4
JSON_BATCH, ARROW_BATCH = 1_000, 10_000
REFRESHES = 30
TURNS = 3


def run(scale: float | None = None) -> None:
    """All of it, at full size unless told otherwise."""
    scale = float(os.environ.get("BENCH_SCALE", "1")) if scale is None else scale
    console = Console(width=140)
    with tempfile.TemporaryDirectory() as name, server() as postgres:
        folder = Path(name)
        agreement = Agreement.of(LinearSampler(Simplex(OUTCOMES), epsilon=2.0))
        agreement.write(folder / "agreement.json")
        for kind, store, bare in (
            ("SQLite", str(folder / "samples.db"), str(folder / "bare.db")),
            ("PostgreSQL", postgres.database(), postgres.database()),
        ):
            load(console, kind, folder, agreement, store, bare, scale)
        refresh(console, folder, agreement, max(10_000, int(10_000_000 * scale)))


def load(console: Console, kind: str, folder: Path, agreement: Agreement, store: str, bare: str, scale: float) -> None:
    """Rates and latencies, the service and the bare endpoint in turns; then everything is counted."""
    shown = shown_table(
        f"{kind}: samples a second, {CONNECTIONS} connections one by one, {BATCH_CONNECTIONS} with batches; ratios to the bare endpoint",
        "", "samples", "a second", "ratio", "p50, ms", "p99, ms", "ratio of p99", "processor, us each", "ratio",
    )  # fmt: skip
    single = max(100, int(120_000 * scale) // TURNS)
    counter = itertools.count()
    began = {"bare": Load(), "one by one": Load()}
    with served(folder, collector("agreement.json", store)) as ours, served(folder, endpoint(bare)) as other:
        port = ours.port
        for _ in range(TURNS):
            for name, server, many in (("bare", other, max(100, single // 4)), ("one by one", ours, single)):
                _add(began[name], server.loaded(ones(agreement, counter, many), CONNECTIONS))
        plain = began["bare"]
        for name, found in began.items():
            _row(shown, name, found, plain, 1)
        total = len(began["one by one"].latencies)
        for name, size, make, share in (("JSON", JSON_BATCH, documents, 0.38), ("Arrow", ARROW_BATCH, streams, 0.5)):
            batches = max(2, int(1_000_000 * share * scale) // size)
            found = ours.loaded(make(agreement, counter, size, batches), BATCH_CONNECTIONS)
            _row(shown, f"{name}, {size:,} in each", found, plain, size)
            total += batches * size
        refused = sum(each.refused for each in began.values())
        again = sent(
            port, ones(agreement, itertools.count(), single), CONNECTIONS
        )  # names of the bare endpoint, new here
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            said = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if "samples_total{" in line)
        verdicts = {name.split('"')[1]: int(float(value)) for name, value in said.items()}
        with urlopen(f"http://127.0.0.1:{port}/estimate") as answer:
            counted = json.load(answer)["samples"]
    console.print(shown)
    assert (refused, again.refused, counted) == (0, 0, verdicts["counted"])
    repeated = verdicts["again"]
    assert counted + repeated == total + single
    console.print(
        f"{total:,} samples and {single:,} again: {counted:,} counted, {repeated:,} known; none lost, none twice\n"
    )


def _add(whole: Load, part: Load) -> None:
    whole.latencies += part.latencies
    whole.refused += part.refused
    whole.seconds += part.seconds
    whole.processor += part.processor


def _row(shown: Any, name: str, found: Load, plain: Load, size: int) -> None:
    each, bare = (1e6 * load.processor / len(load.latencies) for load in (found, plain))
    shown.add_row(
        name, f"{len(found.latencies) * size:,}", f"{found.rate * size:,.0f}", f"{found.rate * size / plain.rate:.2f}",
        f"{found.percentile(50):.1f}", f"{found.percentile(99):.1f}", f"{found.percentile(99) / plain.percentile(99):.2f}",
        f"{each / size:.0f}", f"{each / size / bare:.2f}",
    )  # fmt: skip


def refresh(console: Console, folder: Path, agreement: Agreement, samples: int) -> None:
    """How long an estimate takes after a new sample, asked for over HTTP; and one that has not changed."""
    path = str(folder / "large.db")
    filled(path, agreement, samples)
    with served(folder, collector("agreement.json", path)) as ours:
        port = ours.port
        address = f"http://127.0.0.1:{port}/estimate"
        urlopen(address).read()  # the first one imports what it needs
        time.sleep(1.5)
        changed: list[float] = []
        same: list[float] = []
        before = ours.processor
        for number in range(REFRESHES):
            sent(port, iter([post(_document(agreement, f"late-{number}", number % OUTCOMES), JSON)]), 1)
            time.sleep(0.5)  # until it has rested
            for found in (changed, same):
                began = time.perf_counter()
                with urlopen(address) as answer:
                    body = answer.read()
                found.append(1e3 * (time.perf_counter() - began))
        processor = 1e3 * (ours.processor - before) / REFRESHES
        counted = json.loads(body)["samples"]
    assert counted == samples + REFRESHES
    console.print(
        f"Refresh at {counted:,} samples of {OUTCOMES:,} outcomes: {np.median(changed):.0f} ms (the slowest of {REFRESHES}: "
        f"{max(changed):.0f}), {processor:.0f} ms of a processor; where nothing has changed {np.median(same):.1f} ms"
    )


def filled(path: str, agreement: Agreement, samples: int) -> None:
    """A store that has counted so many samples. Who has spoken is left out: it would be 10^7 digests, and no estimate reads them."""
    store = open_store(path)
    store.add(agreement)
    store.close()
    counts = np.random.default_rng(0).multinomial(samples, np.full(OUTCOMES, 1.0 / OUTCOMES)).tolist()
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executemany("INSERT INTO counted VALUES (1, 1, ?, ?)", list(enumerate(counts)))
        database.execute("INSERT INTO arrived VALUES (1, 1, '2026-01-01', ?)", (samples,))


def _document(agreement: Agreement, name: str, outcome: int) -> bytes:
    about = {"agreement": agreement.id, "round": 1, "client": name, "key": f"key-{name}", "sample": outcome}
    return json.dumps(about).encode()


def ones(agreement: Agreement, counter: "itertools.count[int]", many: int) -> Iterator[bytes]:
    """One sample in each request."""
    for number in itertools.islice(counter, many):
        yield post(_document(agreement, f"{number:064x}", number % OUTCOMES), JSON)


def documents(agreement: Agreement, counter: "itertools.count[int]", size: int, batches: int) -> Iterator[bytes]:
    """Batches of JSON."""
    for _ in range(batches):
        numbers = list(itertools.islice(counter, size))
        rows = [{"client": f"{n:064x}", "key": f"key-{n}", "sample": n % OUTCOMES} for n in numbers]
        yield post(json.dumps({"agreement": agreement.id, "round": 1, "samples": rows}).encode(), JSON)


def streams(agreement: Agreement, counter: "itertools.count[int]", size: int, batches: int) -> Iterator[bytes]:
    """Batches of Arrow."""
    for _ in range(batches):
        numbers = list(itertools.islice(counter, size))
        table = pa.table(
            {
                "client": [f"{n:064x}" for n in numbers],
                "key": [f"key-{n}" for n in numbers],
                "sample": [n % OUTCOMES for n in numbers],
            }
        ).replace_schema_metadata({"agreement": agreement.id, "round": "1"})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield post(sink.getvalue(), ARROW)


def collector(agreement: str, store: str) -> list[str]:
    """The command that serves an agreement."""
    return ["discreet", "collect", agreement, "--store", store, "--port", "0", "--json"]


def endpoint(where: str) -> list[str]:
    """The command of the bare endpoint."""
    return ["benchmarks.collector_parts.bare", where]


@dataclass(frozen=True)
class Served:
    """A running server."""

    pid: int
    port: int

    @property
    def processor(self) -> float:
        """Seconds that it has taken of a processor, all threads together."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def loaded(self, requests: Iterator[bytes], connections: int) -> Load:
        """What comes of a load on it."""
        before = self.processor
        found = sent(self.port, requests, connections)
        found.processor = self.processor - before
        return found


@contextlib.contextmanager
def served(folder: Path, command: list[str]) -> Iterator[Served]:
    """A server in a process of its own."""
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    try:
        yield Served(process.pid, int(json.loads(process.stdout.readline())["address"].rsplit(":", 1)[1]))
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
