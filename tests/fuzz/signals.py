"""Signals at random moments of a release that goes through the disk: whatever ends it, no record stays.

A process forks a release, sends it a signal and looks at the scratch folder: `python -m tests.fuzz.signals --signals 1000` sends so many of
every kind. Records come from a file, or through standard input, which is put on disk as well.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.tables import Request, _local as local
from discreet.tables._sources import _files as scratch, _source as sources

KINDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV)
ROWS, CLIENTS = 60_000, 500


def release(folder: Path, told: int, *, piped: bool) -> None:
    """A release that spills again and again, and says so each time."""
    sources._BATCH = 5000
    local._LEAST_MEMORY = 1
    write = scratch.ScratchFile.append_arrays

    def slow(self: scratch.ScratchFile, arrays: "object") -> scratch.ScratchBlock:
        block = write(self, arrays)  # type: ignore[arg-type]
        os.write(told, b".")
        return block

    scratch.ScratchFile.append_arrays = slow  # type: ignore[method-assign]
    if piped:
        sys.stdin = (folder / "in.parquet").open()
    request = Request(client="client", value="value", domain=40, epsilon=1.0)
    source = "-" if piped else str(folder / "in.parquet")
    output = str(folder / "out" / "out.parquet")
    local.sample_file(source, output, request, memory=20_000, folder=folder / "scratch")


def signalled(folder: Path, kind: signal.Signals, moment: float, *, piped: bool) -> bool:
    """Whether records lay on disk when the signal came."""
    hear, told = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            release(folder, told, piped=piped)
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(hear, "rb") as heard:
        spilling = bool(heard.read(1))
        time.sleep(moment)
        os.kill(process, kind)
        os.waitpid(process, 0)
    return spilling


def left_behind(signals: int, seed: int) -> tuple[int, list[str]]:
    """(how many signals came while records lay on disk, what was left in the scratch folder) of so many of every kind."""
    chance = random.Random(seed)
    found, on_disk = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("scratch", "out"):
            (folder / part).mkdir()
        clients = pa.array([f"client number {row % CLIENTS}" for row in range(ROWS)])
        pq.write_table(pa.table({"client": clients, "value": [row % 40 for row in range(ROWS)]}), folder / "in.parquet")
        for number in range(signals * len(KINDS)):
            kind = KINDS[number % len(KINDS)]
            on_disk += signalled(folder, kind, 0.3 * chance.random(), piped=chance.random() < 0.3)
            found += [f"{kind.name}: {path.name}" for path in (folder / "scratch").rglob("*")]
            for path in (folder / "out").iterdir():
                path.unlink()
    return on_disk, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    on_disk, found = left_behind(options.signals, options.seed)
    if found:
        raise SystemExit(f"left on disk: {', '.join(found[:10])}")
    total = options.signals * len(KINDS)
    print(f"{total:,} signals, {on_disk:,} of them while records lay on disk: none was left")  # noqa: T201


if __name__ == "__main__":
    main()
