"""Every command that says what an agreement promises says the notion, and of a design that it is one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.cli._terms_told import budget

Run = Callable[..., Any]
WHOLE = dc.Simplex(["a", "b", "c"])
DESIGNED = dc.Band(np.array([3.0, 2.0, 1.0]), lower=0.0, upper=2.0, labels=["a", "b", "c"], everybody=True)


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
    ],
)
def test_the_notion_and_the_design(run: Run, tmp_path: Path, sampler: dc.Sampler[Any], words: list[str]) -> None:
    agreement, samples = str(tmp_path / "a.json"), str(tmp_path / "s.csv")
    dc.Agreement.of(sampler).write(agreement)
    pl.DataFrame({"client": range(60), "sample": ["a", "b", "c"] * 20}).write_csv(samples)
    for asked in (
        ("agree", agreement, "--check"),
        ("estimate", samples, "--agreement", agreement, "--plot", str(tmp_path / "p.svg")),
        ("plan", "--agreement", agreement, "--clients", "60"),
    ):
        told = run(*asked)
        assert told.exit_code == 0, told.output
        said = " ".join(told.stdout.split())
        assert all(word in said for word in words), said
        assert ("designed reference" in said) == (sampler.family is DESIGNED)
    title = "at ε = 1" if isinstance(sampler.privacy, dc.Pure) else f"under {sampler.privacy}"
    assert title in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_a_pure_promise_is_its_epsilon() -> None:
    assert budget(dc.Pure(0.5), 0.5) == "epsilon = 0.5"
    assert json.dumps(budget(dc.Gaussian(1.0), 0.25)) == '"1-Gaussian LDP (pure epsilon = 0.25)"'
