"""`make soak`: every step is there, a failure does not stop the others, and every result is recorded."""

import importlib.util
import json
from pathlib import Path

import pytest
from tools import soak


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
