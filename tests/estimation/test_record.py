"""The record of an estimate holds plain values, the same from counts in memory as from a file of samples."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli._app import app
from discreet.estimation import population
from discreet.estimation._record import json_record_of_estimate, notes_on_estimate
from discreet.mechanisms import MECHANISMS


@pytest.mark.parametrize("mechanism", ["linear", "optimal"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_record_from_counts_is_what_the_command_prints_of_a_file(mechanism: str, rounds: int, tmp_path: Path) -> None:
    labels = ["a", "b", "c"]
    agreed = dc.Agreement.of(MECHANISMS[mechanism](dc.Simplex(labels), epsilon=1.0), rounds=rounds)
    agreed.write(tmp_path / "agreement.json")
    counts = np.array([5, 0, 30])
    said = np.repeat(labels, counts)
    columns = {"client": np.arange(len(said)), "sample": said, "agreement": [agreed.id] * len(said)}
    pl.DataFrame(columns).write_parquet(tmp_path / "samples.parquet")
    printed = CliRunner().invoke(
        app,
        ["estimate", str(tmp_path / "samples.parquet"), "--agreement", str(tmp_path / "agreement.json"), "--json"],
    )
    assert printed.exit_code == 0, printed.output
    found = population(agreed, counts=counts)
    assert (
        json.dumps(json_record_of_estimate(found, agreed, notes_on_estimate(found, agreed)), indent=2, allow_nan=False)
        == printed.stdout.strip()
    )


def test_notes_say_what_is_taken_on_trust() -> None:
    agreed = dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), rounds=2)
    found = population(agreed, counts=[400, 300, 300])
    assert notes_on_estimate(found, agreed) == list(found.doubts)
    unnamed, nobody = notes_on_estimate(found, agreed, named=False, distinct=False)[:2]
    assert "which agreement" in unnamed
    assert "2 rounds" in nobody
