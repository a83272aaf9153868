"""Whole commands, measured from outside: wall time, processor time and peak memory of a process of its own."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from benchmarks.engine_parts.data import FOLDER


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    gigabytes: float
    busy: float  # seconds of all processors


_PARTS = [part.name for part in fields(Run)]


_LAUNCH = """
import json, os, sys, time
start = time.perf_counter()
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime]))
"""


def measured(command: list[str]) -> Run:
    """Run a command; its wall time, the most memory that it held resident and what it kept processors busy.

    A small process starts it: Linux counts what the process that starts a command holds as memory of the command.
    """
    own = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # pip leaves byte code
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, *command]
    done = subprocess.run(launch, capture_output=True, text=True, check=True, env=own)
    code, seconds, gigabytes, busy = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command} failed: {done.stderr}")
    return Run(seconds, gigabytes, busy)


def alternated(commands: dict[str, list[str]], times: int) -> dict[str, Run]:
    """The least wall time, processor time and memory of several runs of each command, taken in turns, so that all meet the same machine."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            runs[name].append(measured(command))
    return {name: Run(*(min(getattr(run, part) for run in each) for part in _PARTS)) for name, each in runs.items()}


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


def plain_counts(source: Path, column: str = "sample") -> list[str]:
    """How often each sample or report occurs, by polars alone."""
    program = f"import polars as pl; print(pl.scan_parquet({str(source)!r}).group_by({column!r}).len().collect(engine='streaming'))"
    return [sys.executable, "-c", program]


@cache
def copy_bandwidth() -> float:
    """Bytes a second that one core copies in memory: no pass over data is faster than reading it once at this speed on every core.

    By a process of its own: what this one holds would count as memory of the commands that it starts.
    """
    program = (
        "import numpy as np, time\n"
        "data, best = np.ones(1 << 27, dtype=np.uint8), 0.0\n"
        "target = np.empty_like(data)\n"
        "for _ in range(5):\n"
        "    start = time.perf_counter()\n"
        "    np.copyto(target, data)\n"
        "    best = max(best, data.nbytes / (time.perf_counter() - start))\n"
        "print(best)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def tree_seconds(root: int) -> float:
    """Processor time of a process and of all below it, also of those that have ended, in seconds; 0 where there is no /proc."""
    if not Path("/proc/self/stat").exists():
        return 0.0
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields_of = (folder / "stat").read_text().rpartition(")")[2].split()
            number = int(folder.name)
            parents[number], spent[number] = int(fields_of[1]), sum(map(int, fields_of[11:15]))
    below, todo = 0, [root]
    while todo:
        here = todo.pop()
        below += spent.get(here, 0)
        todo += [each for each, above in parents.items() if above == here]
    return below / os.sysconf("SC_CLK_TCK")


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
