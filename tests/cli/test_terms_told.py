"""Every command that says what an agreement promises says the notion, and of a design that it is one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.cli._options import privacy_promise_text

Run = Callable[..., Any]
WHOLE = dc.Simplex(["a", "b", "c"])
CELLS = dc.families.Tabulated([0.0, 1.0, 2.0, 4.0], [0.3, 0.4, 0.1])
ON_A_LINE = dc.DensityBand(CELLS, lower=0.0, upper=1.5, any_client=True)
DESIGNED = dc.Band(np.array([3.0, 2.0, 1.0]), lower=0.0, upper=2.0, labels=["a", "b", "c"], any_client=True)


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (dc.OptimalSampler(WHOLE, epsilon=1.0), ["epsilon = 1", "optimal"]),
        (dc.LinearSampler(WHOLE, privacy=dc.Gaussian(1.0)), ["1-Gaussian LDP (pure epsilon = ", "linear"]),
        (
            dc.OptimalSampler(WHOLE, privacy=dc.Functional([(0.0, 1.0), (0.3, 0.4), (1.0, 0.0)])),
            ["f-LDP (f through ", "optimal"],
        ),
        (dc.OptimalSampler(DESIGNED, epsilon=1.0), ["epsilon = 1", "optimal (designed reference)"]),
        (
            dc.OptimalSampler(ON_A_LINE, epsilon=1.0, discretisation=dc.Cells(2)),
            ["epsilon = 1", "optimal (designed reference)"],
        ),
    ],
)
def test_the_notion_and_the_design(run: Run, tmp_path: Path, sampler: dc.Sampler[Any], words: list[str]) -> None:
    agreement, samples = str(tmp_path / "a.json"), str(tmp_path / "s.csv")
    dc.Agreement.of(sampler).write(agreement)
    values = ["a", "b", "c"] if isinstance(sampler.family, (dc.Simplex, dc.Band)) else [0.5, 1.5, 3.0]
    pl.DataFrame({"client": range(60), "sample": values * 20}).write_csv(samples)
    for asked in (
        ("agree", agreement, "--check"),
        ("estimate", samples, "--agreement", agreement, "--plot", str(tmp_path / "p.svg")),
        ("plan", "--agreement", agreement, "--clients", "60"),
    ):
        told = run(*asked)
        assert told.exit_code == 0, told.output
        said = " ".join(told.stdout.split())
        assert all(word in said for word in words), said
        assert ("designed reference" in said) == (sampler.family in (DESIGNED, ON_A_LINE))
    title = "at ε = 1" if isinstance(sampler.privacy, dc.Pure) else f"under {sampler.privacy}"
    assert title in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_a_designed_line_is_sampled_estimated_and_planned_without_a_word_about_outsiders(
    run: Run, tmp_path: Path
) -> None:
    """Every command from the agreement on, with clients of one value each, in the rarest cell too: none of them in the band."""
    sampler = dc.OptimalSampler(ON_A_LINE, epsilon=2.0, discretisation=dc.Cells(2))
    agreement, raw, out = (str(tmp_path / name) for name in ("a.json", "raw.csv", "out.parquet"))
    dc.Agreement.of(sampler).write(agreement)
    pl.DataFrame({"who": range(90), "x": [0.5, 1.5, 3.9] * 30}).write_csv(raw)
    terms = ("--client", "who", "--value", "x")
    done = run("sample", raw, *terms, "--agreement", agreement, "-o", out)
    assert done.exit_code == 0, done.output
    assert "outside" not in done.output
    record = json.loads(run("estimate", out, "--truth", raw, "--examples", raw, *terms, "--json").stdout)
    assert not any("outside" in note or "inside" in note for note in record["notes"])
    assert all(row["law"]["low"] <= row["truth"] <= row["law"]["high"] for row in record["shares"])
    assert record["largest_bias_of_samples"] == 1.0
    assert record["reweighted"]["examples"] == 90
    told = " ".join(run("estimate", out).stdout.split())
    assert "assume nothing about these clients" in told
    planned = json.loads(run("plan", "--agreement", agreement, "--clients", "90", "--json").stdout)
    assert planned["worst"] == {"tv": 1.0, "kl": None}
    lost = 1.0 - sampler.constants.B * float(np.min(sampler.reference))  # a point in the rarest cell
    assert planned["worst_on_atoms"]["tv"] == pytest.approx(lost)
    said = " ".join(run("plan", "--agreement", agreement, "--clients", "90").stdout.split())
    assert "over all densities no private sampler" in said
    assert f"{lost:.3f}" in said
    certified = run("certify", "--agreement", agreement, "-o", str(tmp_path / "c.json"))
    assert "(holds)" in certified.stdout


def test_a_pure_promise_is_its_epsilon() -> None:
    assert privacy_promise_text(dc.Pure(0.5), 0.5) == "epsilon = 0.5"
    assert json.dumps(privacy_promise_text(dc.Gaussian(1.0), 0.25)) == '"1-Gaussian LDP (pure epsilon = 0.25)"'
