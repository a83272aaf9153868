"""The comparison of designs: what it measures it measures on clients that no design has seen, and its floor is one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.research.experiments.designs import DesignComparison, chosen, designed, exact_gap, redrawn
from discreet.research.experiments.running import run
from tests.research.experiments.test_population import skewed

SMALL = DesignComparison(epsilons=(0.5, 4.0), splits=2, sets=(skewed(150, 6),))


@pytest.mark.slow
def test_designs_win_where_clients_have_something_in_common(tmp_path: Path) -> None:
    records = run(SMALL, tmp_path)
    assert [row.unit for row in records.rows] == ["skewed6/0.5/0", "skewed6/0.5/1", "skewed6/4/0", "skewed6/4/1"]
    for row in records.rows:
        assert row.examples + row.served == 150
        assert row.gap <= 1e-4
        assert (row.exact_gap is not None) == (row.split == 0)
        assert row.exact_gap is None or row.exact_gap <= 1e-4
        assert row.kept >= SMALL.keep * (1 - 1e-9)
        assert all(row.floor <= one["kl"] for one in row.means.values())
        assert row.means["designed"]["kl"] == min(one["kl"] for one in row.means.values())
    assert run(SMALL, tmp_path).rows == records.rows


def test_examples_that_teach_nothing_leave_the_optimal_sampler() -> None:
    """Every example holds another outcome, so those that were held back say that a design would do harm."""
    parts, sampler = chosen(np.eye(6), 3.0, 0.001)
    assert parts is None
    assert float(sampler.risk("tv")) == pytest.approx(
        float(dc.minimax_risk(dc.Simplex(6), epsilon=3.0, divergence="tv"))
    )


def test_the_others_count_what_they_are_said_to() -> None:
    examples = np.array([[0.7, 0.3, 0.0, 0.0]] * 4)
    parts = (0.2, 0.1)
    bare, smoothed = (designed(examples, 1.0, 0.0, one) for one in ((0.0, 0.0), parts))
    assert float(smoothed.worst("kl")) < float(bare.worst("kl"))
    groups = (examples, redrawn(examples, np.random.default_rng(0)), np.eye(4))
    mean = sum(
        part * float(np.mean(dc.divergence("kl")(group, smoothed.sampler.output(group))))
        for part, group in zip((1.0 - sum(parts), *parts), groups, strict=True)
    )
    assert smoothed.value == pytest.approx(mean, rel=1e-9)


def test_redrawn_examples_keep_their_masses_and_go_where_others_are() -> None:
    examples = np.repeat([[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [190, 10], axis=0)
    found = redrawn(examples, np.random.default_rng(1))
    assert len(found) >= 1000
    np.testing.assert_array_equal(np.sort(found[:200], axis=1), np.sort(examples, axis=1))
    popular = (found[:, :2] > 0.0).sum() / (found > 0.0).sum()
    assert popular > 0.8
    assert (found[:, 3] > 0.0).any()  # half a client's popularity, so that nothing is impossible


def test_the_gap_in_rationals_is_that_in_floats() -> None:
    laws = skewed(60, 5).laws
    found = dc.design(dc.Simplex(5), epsilon=1.0, clients=laws, keep=0.0)
    gap = (found.value - found.bound) / found.value
    assert exact_gap(found, laws) == pytest.approx(gap, abs=1e-9)
    moved = replace(found, sampler=dc.OptimalSampler(dc.Simplex(5), epsilon=1.0))
    assert exact_gap(moved, laws) > 0.01  # it is the sampler's own integers that are looked at
