"""The comparison of designs: what it measures it measures on clients that no design has seen, and its floor is one."""

from dataclasses import replace
from pathlib import Path

import pytest

import discreet as dc
from discreet.research.experiments import run_experiment
from discreet.research.experiments._designs import DesignComparison, exact_cost_excess_over_lower_bound
from tests.research.experiments.test_population import skewed

SMALL = DesignComparison(epsilons=(0.5, 3.0), splits=2, sets=(skewed(150, 6),))  # 30 examples: more than e^3


@pytest.mark.slow
def test_designs_win_where_clients_have_something_in_common(tmp_path: Path) -> None:
    records = run_experiment(SMALL, tmp_path)
    assert [row.unit for row in records.rows] == ["skewed6/0.5/0", "skewed6/0.5/1", "skewed6/3/0", "skewed6/3/1"]
    for row in records.rows:
        assert row.examples + row.served == 150
        assert row.gap <= 1e-4
        assert (row.exact_gap is not None) == (row.split == 0)
        assert row.exact_gap is None or row.exact_gap <= 1e-4
        assert row.kept >= SMALL.keep * (1 - 1e-9)
        assert all(row.floor <= one["kl"] for one in row.means.values())
        assert row.means["designed"]["kl"] == min(one["kl"] for one in row.means.values())
    assert run_experiment(SMALL, tmp_path).rows == records.rows


@pytest.mark.slow
@pytest.mark.soak
def test_fewer_examples_than_e_to_the_epsilon_are_helped_by_a_model_and_beat_what_needs_no_examples(
    tmp_path: Path,
) -> None:
    """30 examples at epsilon 4: the model may lose to the best uniform floor of the examples, but not to the closed forms."""
    few = replace(SMALL, epsilons=(4.0,))
    for row in run_experiment(few, tmp_path).rows:
        designed = row.means["designed"]
        for rival in ("optimal", "linear", "mollifier"):
            assert all(designed[name] < row.means[rival][name] for name in designed), (row.unit, rival)
        assert designed["kl"] < 1.25 * row.means["uniform"]["kl"]


def test_the_gap_in_rationals_is_that_in_floats() -> None:
    laws = skewed(60, 5).laws
    found = dc.design(dc.Simplex(5), epsilon=1.0, clients=laws, keep=0.0)
    gap = (found.value - found.bound) / found.value
    assert exact_cost_excess_over_lower_bound(found, laws) == pytest.approx(gap, abs=1e-9)
    moved = replace(found, sampler=dc.OptimalSampler(dc.Simplex(5), epsilon=1.0))
    assert exact_cost_excess_over_lower_bound(moved, laws) > 0.01  # it is the sampler's own integers that are looked at
