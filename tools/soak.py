"""Run the long tests and record how each step ended: `python tools/soak.py`, or `make soak`.

A step that fails does not stop the others. Each step adds one line to out/soak.jsonl: the date, the commit, the step, its exit status, its
seconds and the last line that it printed. `python tools/soak.py kills fuzz` runs only the steps whose command contains one of these words.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "out" / "soak.jsonl"
STEPS = (
    "pytest --numprocesses auto --dist worksteal -m ''",  # every test, with wide sweeps, also those that are marked soak
    "tests.theorems.bands --bands 2000",
    "tests.torch.test_batches",
    "tests.design.sweep --designs 2000",
    "tests.ledger.kills --kills 1000",
    "tests.ledger.population_kills --kills 1000",
    "tests.collect.kills --kills 500 --database-kills 100",
    "tests.client.kills --kills 1000",
    "tests.client.flights",
    "tests.client.lies --runs 1000",
    "tests.collect.visited",
    "tests.fuzz.attacks --inputs 1000000",
    "tests.fuzz.mutants --inputs 100000",
    "tests.fuzz.signals --signals 1000",
    "tests.collect.fuzz --requests 100000",
    "tests.mechanisms.reports.audits",
    "tests.estimation.coverage",
    "tests.estimation.line_coverage",
    "tests.estimation.report_coverage",
    "tests.design.lines --designs 500",
)


@dataclass(frozen=True)
class Result:
    """How one step ended."""

    date: str
    commit: str
    step: str
    status: int
    seconds: float
    last_line: str


def run_step(step: str, commit: str) -> Result:
    """Run `python -m STEP`, showing what it prints."""
    words = [word.strip("'") for word in step.split(" ")]
    date, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    last_line = ""
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env={**os.environ, "SOAK": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            last_line = line.strip() or last_line
    status = process.returncode
    return Result(date, commit, step, status, round(time.monotonic() - begun, 1), last_line)


def run_steps(steps: Sequence[str], record: Path) -> list[Result]:
    """Run every step, and write each result down as soon as it is known."""
    commit = current_commit()
    record.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for step in steps:
        print(f"== {step}", flush=True)
        results.append(run_step(step, commit))
        with record.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(results[-1]), ensure_ascii=False) + "\n")
    return results


def current_commit() -> str:
    """The commit that is checked out, with a `+` where files differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def table(results: Sequence[Result]) -> str:
    """The results, a line each."""
    return "\n".join(
        f"{'passed' if result.status == 0 else f'FAILED ({result.status})':12} {result.seconds:9.1f} s  {result.step}"
        for result in results
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run only the steps whose command contains one of these words")
    words = parser.parse_args().words
    chosen = [step for step in STEPS if not words or any(word in step for word in words)]
    if not chosen:
        parser.error(f"no step contains any of: {', '.join(words)}")
    results = run_steps(chosen, RECORD)
    print(f"\n{table(results)}\nrecorded in {RECORD.relative_to(ROOT)}")
    if any(result.status for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
