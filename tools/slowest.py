"""Run the tests and print which take longest: `python tools/slowest.py`, or `make slowest`.

Each test has two figures: seconds by the clock, and seconds of processors, its own and those of the processes that it started. The second
hardly depends on what else the machine does, so compare two versions by it. A shared fixture counts with the test that sets it up.
The files whose tests took most together come first.

`python tools/slowest.py tests/collect --show 20` takes some of the tests; `--dist`, `-m` and other options of pytest may follow after `--`.
Every run replaces out/slowest.jsonl, a line for each test.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "out" / "slowest.jsonl"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Taken:
    """What one test took, with its fixtures."""

    test: str
    seconds: float
    processor_seconds: float


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Add a line to the record after every test; pytest calls it, since this module is one of its plugins here."""
    begun, used = time.monotonic(), processor_seconds(os.getpid())
    result = yield
    more = max(0.0, processor_seconds(os.getpid()) - used)  # a process that nobody waited for takes its seconds along
    taken = Taken(item.nodeid, round(time.monotonic() - begun, 3), round(more, 3))
    with Path(os.environ["SLOWEST_RECORD"]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(taken)) + "\n")
    return result


def processor_seconds(process: int) -> float:
    """Of a process, of those it waited for and of those that it started and that still run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        tasks = list(Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return 0.0
    children = []
    for task in tasks:
        try:
            children += (task / "children").read_text(encoding="utf-8").split()
        except OSError:
            continue
    return sum(map(int, fields[11:15])) / TICKS + sum(processor_seconds(int(child)) for child in children)


def run_tests(arguments: Sequence[str], record: Path) -> int:
    """Run pytest with this module as a plugin; its exit status."""
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tools.slowest", *arguments],
        cwd=ROOT,
        env={**os.environ, "SLOWEST_RECORD": str(record)},
        check=False,
    ).returncode


def read_record(record: Path) -> list[Taken]:
    """All tests of a run, those first that took most of the processors."""
    found = [Taken(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]
    return sorted(found, key=lambda taken: (-taken.processor_seconds, -taken.seconds, taken.test))


def table(taken: Sequence[Taken], count: int) -> str:
    """The first of them, a line each, and the sums of all."""
    head = f"{'processors':>10} {'clock':>8}  test"
    lines = [f"{one.processor_seconds:8.2f} s {one.seconds:6.2f} s  {one.test}" for one in taken[:count]]
    shown = sum(one.processor_seconds for one in taken[:count])
    everything = sum(one.processor_seconds for one in taken)
    clock = sum(one.seconds for one in taken)
    sums = f"{len(taken)} tests: {everything:.0f} s of processors, {clock:.0f} s by the clock"
    return "\n".join([head, *lines, f"{sums}; these {len(lines)}: {shown:.0f} s of processors"])


def by_file(taken: Sequence[Taken], count: int) -> str:
    """The files whose tests took most of the processors together, a line each."""
    sums: dict[str, list[float]] = {}
    for one in taken:
        sums.setdefault(one.test.partition("::")[0], []).append(one.processor_seconds)
    first = sorted(sums.items(), key=lambda item: -sum(item[1]))[:count]
    return "\n".join(f"{sum(each):8.2f} s {len(each):6}    {file}" for file, each in first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=100, help="how many tests to print")
    parser.add_argument("--again", action="store_true", help="print the record of the last run, and run nothing")
    parser.add_argument("arguments", nargs="*", help="what pytest is given")
    options = parser.parse_args()
    status = 0
    if not options.again:
        status = run_tests(options.arguments or ["-n", "auto", "--dist", "worksteal"], RECORD)
    taken = read_record(RECORD)
    print(f"{by_file(taken, options.show // 4)}\n\n{table(taken, options.show)}")
    sys.exit(status)


if __name__ == "__main__":
    main()
