"""Whole commands, measured from outside: wall time, processor time and peak memory of a process of its own."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine_parts.data import FOLDER


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    gigabytes: float
    busy: float  # seconds of all processors


def measured(command: list[str]) -> Run:
    """Run a command; its wall time, the most memory that it held resident and what it kept processors busy."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed")
    return Run(seconds, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime)


def alternated(commands: dict[str, list[str]], times: int) -> dict[str, Run]:
    """The fastest of several runs of each command, taken in turns, so that all meet the same machine."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            runs[name].append(measured(command))
    return {name: min(each, key=lambda run: run.seconds) for name, each in runs.items()}


def discreet(*arguments: str) -> list[str]:
    """The command `discreet` of this environment."""
    return [str(Path(sys.executable).with_name("discreet")), *arguments]


def plain_query(source: Path, output: Path) -> list[str]:
    """One random value for each client that is NOT private, by polars alone."""
    program = (
        "import polars as pl;"
        f"pl.scan_parquet({str(source)!r}).group_by('client').agg(pl.col('value').shuffle().first())"
        f".collect().write_parquet({str(output)!r})"
    )
    return [sys.executable, "-c", program]


def plain_counts(source: Path) -> list[str]:
    """How often each sample occurs, by polars alone."""
    program = f"import polars as pl; print(pl.scan_parquet({str(source)!r}).group_by('sample').len().collect(engine='streaming'))"
    return [sys.executable, "-c", program]


def rivals_python() -> Path | str:
    """The interpreter of an environment with other people's libraries, made once under out/bench; or why there is none."""
    environment = FOLDER / "rivals"
    python = environment / "bin" / "python"
    if not (environment / "ready").exists():
        environment.parent.mkdir(parents=True, exist_ok=True)
        commands = [
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1"],
            [str(python), "-m", "pip", "install", "--quiet", "--group", "pyproject.toml:rivals"],
        ]
        for each in commands:
            done = subprocess.run(each, capture_output=True, text=True, check=False)
            if done.returncode:
                reason = [line for line in done.stderr.splitlines() if line.strip()][-1:]
                return f"their environment could not be made: {' '.join(reason)}"
        (environment / "ready").touch()
    return python
