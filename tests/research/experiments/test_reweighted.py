"""What designed samples tell a curator: targets are clients who are no examples, skewed examples are skewed, oracles are among the rivals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.research._reports._designs import (
    ESTIMATES,
    reweighted_estimate_errors_table,
    reweighted_estimate_findings,
)
from discreet.research.experiments import run_experiment
from discreet.research.experiments._population import MeanEstimate, ReweightedComparison, _first_principal_coordinates
from tests.research.experiments.test_population import skewed

SMALL = ReweightedComparison(epsilons=(1.0,), repetitions=4, sets=(skewed(400, 6),))


def test_skewed_examples_mislead_alone_and_samples_mend_them(tmp_path: Path) -> None:
    rows = run_experiment(SMALL, tmp_path).rows
    assert [row.unit for row in rows] == ["skewed6/1/random", "skewed6/1/skewed"]
    for row in rows:
        assert (row.examples, row.served) == (80, 320)
        assert set(row.errors) == set(row.squared) == set(ESTIMATES)
        assert all(0.0 < row.squared[name].mean < row.errors[name].mean for name in ESTIMATES)
    alike, unlike = rows
    assert unlike.errors["examples"].mean > 2 * alike.errors["examples"].mean
    assert unlike.errors["reweighted"].mean < unlike.errors["examples"].mean
    assert run_experiment(SMALL, tmp_path).rows == rows
    head, body = reweighted_estimate_errors_table(rows, "skewed")
    assert body == [["skewed", "1", *(f"{unlike.errors[name].mean:.3f}" for name in ESTIMATES)]]
    assert len(head) == len(body[0])
    _, (line,) = reweighted_estimate_errors_table(rows, "random", squared=True)
    assert line[2:] == [f"{1e6 * alike.squared[name].mean:,.1f}" for name in ESTIMATES]
    assert [headline for headline, _ in reweighted_estimate_findings(rows)] == [
        "Examples like the clients.",
        "Examples unlike the clients.",
    ]
    assert reweighted_estimate_findings([]) == []
    far, near = MeanEstimate(0.9, 0.0), MeanEstimate(0.1, 0.0)
    lost = replace(alike, errors={name: near if name == "reports" else far for name in ESTIMATES})
    assert "Block reports are closer than all three on skewed at ε = 1." in reweighted_estimate_findings([lost])[0][1]
    won = replace(alike, errors={name: far if name == "reports" else near for name in ESTIMATES})
    assert "closer than block reports in every case" in reweighted_estimate_findings([won])[0][1]


def test_the_first_axis_is_the_one_on_which_clients_differ() -> None:
    rng = np.random.default_rng(1)
    moved = rng.normal(size=300)
    laws = np.full((300, 3), 1 / 3) + moved[:, None] * np.array([0.05, -0.05, 0.0]) + rng.normal(0, 1e-3, (300, 3))
    assert abs(np.corrcoef(_first_principal_coordinates(laws), moved)[0, 1]) == pytest.approx(1.0, abs=1e-2)
