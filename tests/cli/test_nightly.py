"""The nightly example: its script and the command of its DAG release the round of their day, and again nothing new."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import discreet as dc
from tests.tables.small_tables import rows

Run = Callable[..., Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "nightly"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """The folder of a job: script, agreement, secret, ledger and two days of data; `discreet` is on the path."""
    monkeypatch.chdir(tmp_path)
    for seed, day in enumerate(("2026-11-16", "2026-11-17")):
        table = rows(outcomes=3, seed=seed)
        part = tmp_path / f"data/day={day}/part.parquet"
        part.parent.mkdir(parents=True)
        pl.DataFrame({"who": table["client"], "what": ["abc"[value] for value in table["value"]]}).write_parquet(part)
    Path("labels.txt").write_text("a\nb\nc\n")
    agreed = run(
        "agree", "agreement.json", "--domain", "labels.txt", "--epsilon", "0.02", "--rounds", "365", "--start", "2026-01-01",
        "--for", "clients",
    )  # fmt: skip
    assert agreed.exit_code == 0, agreed.output
    assert "7.3-LDP for a year" in agreed.stdout.replace("\n", " ")
    assert run("secret", "release.secret").exit_code == 0
    (tmp_path / "nightly.sh").write_bytes((EXAMPLE / "nightly.sh").read_bytes())
    (tmp_path / "nightly.sh").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "discreet").write_text(f'#!/bin/sh\nexec {sys.executable} -m discreet "$@"\n')
    (tmp_path / "bin" / "discreet").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    first = ("data/day=2026-11-16", "--client", "who", "--value", "what", "--agreement", "agreement.json")
    night = ("--round", "2026-11-16", "--secret", "release.secret", "--ledger", "population", "--budget", "8")
    made = run("sample", *first, *night, "-o", "out/2026-11-16.parquet")
    assert made.exit_code == 0, made.output
    assert "round 320 is 2026-11-16; at most 365 in a calendar year: 7.3-LDP for a year" in made.stderr
    return tmp_path


def test_a_night_without_its_date_is_refused(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    """It was round 1, the first day of the schedule; a ledger then gave every later night the samples of the first."""
    night = ("sample", "data/day=2026-11-17", "--client", "who", "--value", "what", "--agreement", "agreement.json")
    kept = ("--secret", "release.secret", "--ledger", "population", "-o", "out/2026-11-17.parquet")
    assert "has a round every day; say which one this is by a date: --round 2026-01-01 is the first" in refusal(
        *night, *kept
    )
    assert "round = '' is no date" in refusal(*night, *kept, "--round", "")  # a variable of a script that is not set
    assert not Path("out/2026-11-17.parquet").exists()
    with pytest.raises(
        dc.DiscreetError, match=r"say which one this is by a date: round='2026-01-01' \(--round 2026-01-01\)"
    ):
        dc.tables.Request(client="who", value="what", agreement=dc.Agreement.read("agreement.json"))
    assert run(*night, "--dry-run").exit_code == 0
    assert run(*night, *kept, "--round", "321").exit_code == 0


def dag_command() -> str:
    """The command of the DAG's one task, read from the file: Airflow itself is not needed here."""
    source = (EXAMPLE / "discreet_nightly.py").read_text(encoding="utf-8")
    compile(source, "discreet_nightly.py", "exec")
    (found,) = [
        ast.literal_eval(line.value)
        for line in ast.parse(source).body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "COMMAND"
    ]
    assert isinstance(found, str)
    assert "bash_command=COMMAND" in source
    return found


@pytest.mark.slow
def test_a_night_runs_and_runs_again(folder: Path, run: Run) -> None:
    command = dag_command().replace("{{ data_interval_start | ds }}", "2026-11-17")
    assert "{" not in command
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        assert "round 321 of 365" in done.stderr
        outputs.append(pl.read_parquet("out/2026-11-17.parquet"))
        late = rows(outcomes=3, seed=9)  # rows that arrive after the night
        pl.DataFrame({"who": late["client"], "what": ["a"] * 4000}).write_parquet("data/day=2026-11-17/late.parquet")
    assert outputs[0].equals(outputs[1])
    assert outputs[0].height == 300
    shown = run("ledger", "show", "population")
    assert shown.exit_code == 0, shown.output


def test_a_year_that_is_absurd_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    nightly = ("--outcomes", "5", "--rounds", "365", "--start", "2026-01-01", "--for", "clients")
    refused = run("agree", "careless.json", "--epsilon", "1", *nightly)
    assert refused.exit_code == 2
    assert "365 rounds at 1-LDP each are 365-LDP together" in refused.stderr
    assert not Path("careless.json").exists()
    knowing = run("agree", "careless.json", "--epsilon", "1", *nightly, "--allow-large-epsilon")
    assert knowing.exit_code == 0
    assert "365-LDP for a year" in knowing.stdout.replace("\n", " ")
    lonely = run("agree", "lonely.json", "--epsilon", "1", "--outcomes", "5", "--every", "week", "--for", "clients")
    assert "--start DATE" in lonely.stderr
    assert run("agree", "careless.json", "--check", "--start", "2026-01-01").exit_code == 2
