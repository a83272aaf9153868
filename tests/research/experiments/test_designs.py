"""The comparison of designs: what it measures it measures on clients that no design has seen, and its floor is one."""

from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.research.experiments.designs import DesignComparison, chosen, designed
from discreet.research.experiments.running import run
from tests.research.experiments.test_population import skewed

SMALL = DesignComparison(epsilons=(0.5, 4.0), splits=2, sets=(skewed(300, 6),))


@pytest.mark.slow
def test_designs_win_where_clients_have_something_in_common(tmp_path: Path) -> None:
    records = run(SMALL, tmp_path)
    assert [row.unit for row in records.rows] == ["skewed6/0.5/0", "skewed6/0.5/1", "skewed6/4/0", "skewed6/4/1"]
    for row in records.rows:
        assert row.examples + row.served == 300
        assert row.gap <= 1e-4
        assert row.kept >= SMALL.keep * (1 - 1e-9)
        assert all(row.floor <= one["kl"] for one in row.means.values())
        assert row.means["designed"]["kl"] == min(one["kl"] for one in row.means.values())
    assert run(SMALL, tmp_path).rows == records.rows


def test_examples_that_teach_nothing_leave_the_optimal_sampler() -> None:
    """Every example holds another outcome, so those that were held back say that a design would do harm."""
    others, sampler = chosen(np.eye(6), 3.0, 0.001)
    assert others is None
    assert sampler == dc.OptimalSampler(dc.Simplex(6), epsilon=3.0)


def test_the_point_masses_count_what_they_are_said_to() -> None:
    examples = np.array([[0.5, 0.5, 0.0, 0.0]] * 4)
    bare, smoothed = (designed(examples, 1.0, 0.0, others) for others in (0.0, 0.1))
    assert float(smoothed.worst("kl")) < float(bare.worst("kl"))
    kl = dc.divergence("kl")
    mean = 0.9 * float(np.mean(kl(examples, smoothed.sampler.output(examples)))) + 0.1 * float(
        np.mean(kl(np.eye(4), smoothed.sampler.output(np.eye(4))))
    )
    assert smoothed.value == pytest.approx(mean, rel=1e-9)
