"""What may be gained with the worst case kept: nobody gains more than is proved, and the promise is kept."""

import math
from itertools import pairwise
from pathlib import Path

import pytest

import discreet as dc
from discreet.research.experiments import run_experiment
from discreet.research.experiments._designs import KEEPS, KeepComparison
from tests.research.experiments.test_population import skewed


def test_no_gain_is_above_the_one_that_is_proved(tmp_path: Path) -> None:
    one = KeepComparison(epsilons=(1.0,), sets=(skewed(300, 6),))
    (row,) = run_experiment(one, tmp_path).rows
    best = 1.0 - float(dc.minimax_risk(dc.Simplex(6), epsilon=1.0, divergence="tv"))
    for kept in row.kept:
        assert row.relative_gain_over_optimal(kept.keep) <= row.gain_bound_of_any_sampler(kept.keep)
        assert kept.worst <= -math.log(kept.keep * best) * (1 + 1e-9)
    assert [kept.keep for kept in row.kept] == list(KEEPS)
    assert row.relative_gain_over_optimal(0.9) == pytest.approx(1.0 - row.kept[0].mean / row.mean)
    most = [row.gain_bound_of_any_sampler(keep) for keep in KEEPS]
    assert all(less <= more + 1e-4 for less, more in pairwise(most))
