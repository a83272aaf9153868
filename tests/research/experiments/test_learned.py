"""Designs learned batch after batch: each client speaks once, gains are measured against the floor, and records say what was decided."""

from pathlib import Path

import numpy as np
import pytest

from discreet.research._reports._designs import closed_gap_table, learned_design_findings
from discreet.research.experiments import run_experiment
from discreet.research.experiments._designs import (
    BATCHES,
    LearnedComparison,
    LearnedRun,
    _ClientQueue,
    _ResampledClients,
)
from tests.research.experiments.test_population import skewed

SMALL = LearnedComparison(epsilons=(0.1, 2.0), times=(1, 100), splits=1, sets=(skewed(1_000, 6),))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[LearnedRun]:
    return list(run_experiment(SMALL, tmp_path_factory.mktemp("records")).rows)


@pytest.mark.slow
def test_what_is_learned_lies_between_the_safe_ones_and_the_floor(rows: list[LearnedRun]) -> None:
    assert [row.unit for row in rows] == ["skewed6/0.1/1/0", "skewed6/0.1/100/0", "skewed6/2/1/0", "skewed6/2/100/0"]
    for row in rows:
        assert len(row.batches) == BATCHES
        assert row.floor <= min(row.learned, row.optimal, row.mollifier)
        assert row.relative_excess_over_no_design <= 0.03
        assert row.closed_gap_share <= 1.0
    alone, many = rows[2:]
    assert many.closed_gap_share > 0.6
    assert many.closed_gap_share > alone.closed_gap_share - 0.05
    assert many.clients == 100_000


@pytest.mark.slow
def test_records_read_back(tmp_path: Path) -> None:
    quick = LearnedComparison(epsilons=(2.0,), times=(1,), splits=1, sets=(skewed(200, 4),))
    first = run_experiment(quick, tmp_path).rows
    assert run_experiment(quick, tmp_path).rows == first


def test_each_client_speaks_once() -> None:
    laws = np.eye(40)
    crowd = _ClientQueue(laws, np.random.default_rng(1))
    parts = [crowd.take_next_share_of_clients(share) for share in (0.05, 0.1, 0.17, 0.17, 0.17, 0.17, 0.17)]
    assert sum(len(part) for part in parts) == 40
    assert (np.vstack(parts).sum(axis=0) == 1.0).all()


def test_resampled_clients_are_as_many_as_asked_for() -> None:
    from discreet.families import Simplex
    from discreet.mechanisms import OptimalSampler

    laws = np.full((10, 3), 1 / 3)
    crowd = _ResampledClients(laws, np.random.default_rng(1), 100)
    sampler = OptimalSampler(Simplex(3), epsilon=1.0)
    assert crowd.draw_and_count_samples(crowd.take_next_share_of_clients(0.17), sampler).sum() == 170


def test_tables_and_findings_follow_the_records(rows: list[LearnedRun]) -> None:
    head, body = closed_gap_table(rows, 100)
    assert head == ["set", "ε = 0.1", "ε = 2"]
    assert body[0][2] == f"{rows[3].closed_gap_share:.0%}"
    told = dict(learned_design_findings(rows))
    assert f"the median over ε ≥ 1 is {rows[2].closed_gap_share:.0%}" in told["One sample of each client."]
    assert "With 100 times as many clients." in told
    assert learned_design_findings([]) == []
