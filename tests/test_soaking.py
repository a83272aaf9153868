"""`make soak`: every step is there, a failure does not stop the others, and every result is recorded. `make slowest`: what a test took.

`make test`: chance is the same in every run.
"""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools import slowest, soak

import discreet as dc
from discreet.release import SystemEntropy, fresh_secret
from tests.chance import seeded_by


def test_every_step_is_a_module_that_can_be_run() -> None:
    for step in soak.STEPS:
        found = importlib.util.find_spec(step.split()[0])
        assert found is not None, step
        assert found.origin is not None, step
        assert step.startswith("pytest ") or '__name__ == "__main__"' in Path(found.origin).read_text(), step


def test_a_step_that_fails_is_recorded_and_the_next_one_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "out" / "soak.jsonl"
    results = soak.run_steps(["no_such_module", "platform"], record)
    assert [(result.step, result.status) for result in results] == [("no_such_module", 1), ("platform", 0)]
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(line["step"], line["status"]) for line in lines] == [("no_such_module", 1), ("platform", 0)]
    assert lines[0]["last_line"].endswith("No module named no_such_module")
    assert lines[1]["last_line"] in capfd.readouterr().out
    assert lines[0]["date"] <= lines[1]["date"]
    assert lines[0]["commit"] == soak.current_commit() != "unknown"
    assert soak.table(results).splitlines()[0].startswith("FAILED (1)")
    soak.run_steps(["platform"], record)
    assert len(record.read_text().splitlines()) == 3, "a later soak adds to the record"


def test_a_soak_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(soak, "RECORD", soak.ROOT / "out" / "unused")
    monkeypatch.setattr(
        soak, "run_steps", lambda steps, record: [soak.Result("", "", step, 1, 0.0, "") for step in steps]
    )
    monkeypatch.setattr("sys.argv", ["soak.py", "fuzz"])
    with pytest.raises(SystemExit, match="1"):
        soak.main()


def test_long_tests_start_first(request: pytest.FixtureRequest) -> None:
    long = [item.get_closest_marker("long") is not None for item in request.session.items]
    assert long == sorted(long, reverse=True)


BUSY = "import time\nwhile time.process_time() < 0.3: pass"


@pytest.mark.slow
def test_work_of_a_process_that_a_test_starts_is_work_of_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_tried.py").write_text(
        f"import subprocess, sys, time\nBUSY = {BUSY!r}\nrunning = []\n"
        "def test_waits(): time.sleep(0.3)\n"
        "def test_starts(): subprocess.run([sys.executable, '-c', BUSY], check=True)\n"
        "def test_leaves():\n"
        "    running.append(subprocess.Popen([sys.executable, '-c', BUSY + '\\nprint(flush=True); time.sleep(60)'], stdout=-1))\n"
        "    running[0].stdout.readline()\n"
        "def test_ends():\n    running[0].kill()\n    running[0].communicate()\n"
        "def test_fails(): raise AssertionError\n"
    )
    record = tmp_path / "out" / "slowest.jsonl"
    assert slowest.run_tests([str(tmp_path), "-p", "no:cacheprovider"], record) == 1
    taken = {one.test.rpartition("::")[2]: one for one in slowest.read_record(record)}
    assert list(taken) == [one.test.rpartition("::")[2] for one in slowest.read_record(record)]
    assert set(taken) == {"test_waits", "test_starts", "test_leaves", "test_ends", "test_fails"}
    assert set(list(taken)[:2]) == {"test_starts", "test_leaves"}, "those that took most of the processors come first"
    assert (
        min(taken[name].processor_seconds for name in ("test_starts", "test_leaves")) > 0.2
    )  # clocks tick by hundredths
    assert (
        max(taken[name].processor_seconds for name in ("test_waits", "test_ends")) < 0.2 < taken["test_waits"].seconds
    )
    shown = slowest.table(slowest.read_record(record), 2).splitlines()
    assert len(shown) == 4
    assert shown[-1].startswith("5 tests: ")
    [of_file] = slowest.by_file(slowest.read_record(record), 3).splitlines()
    together = sum(one.processor_seconds for one in taken.values())
    assert of_file.split()[:3] == [f"{together:.2f}", "s", "5"]


def draw() -> list[Any]:
    """What tests read from the operating system's generator: bytes by one thread and by several, a generator, a secret."""
    entropy = SystemEntropy()
    return [
        *(entropy.integers(count).tolist() for count in (3, 100_000)),
        np.random.default_rng().integers(1 << 60),
        fresh_secret().value,
        dc.LinearSampler(dc.Simplex(100), epsilon=5.0).release(np.arange(100.0) / 4950.0),
    ]


def test_a_test_has_the_same_chances_in_every_run_and_others_than_the_next_test() -> None:
    with seeded_by("one", real=False):
        first = draw()
        with seeded_by("a fixture", real=False):
            draw()
        more = draw()
    with seeded_by("one", real=False):
        assert [draw(), draw()] == [first, more]
    with seeded_by("another", real=False):
        assert all(mine != theirs for mine, theirs in zip(first[:4], draw()[:4], strict=True))
    with seeded_by("one", real=True):
        assert all(mine != theirs for mine, theirs in zip(first[:4], draw()[:4], strict=True))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_chances_of_its_own() -> None:
    with seeded_by("one", real=False):
        mine = draw()
    with seeded_by("one", real=False):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writing, json.dumps(draw()[0]).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert json.load(told) != mine[0]
        os.waitpid(child, 0)
