"""Figures 2, 3, 5, 6 and 7 to 1e-12 of the paper's closed forms, written out again in 40 digits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import pytest

from discreet.research.experiments import OUTCOMES, named_experiment, run_experiment
from discreet.research.experiments._paper_figures import FiniteLawExperiment, WorstCaseExperiment

F: dict[str, Callable[[Any], Any]] = {
    "kl": lambda x: x * mpmath.log(x) if x else mpmath.mpf(0),
    "tv": lambda x: abs(x - 1) / 2,
    "hellinger": lambda x: (1 - mpmath.sqrt(x)) ** 2,
}


@pytest.mark.parametrize("name", list(OUTCOMES))
def test_worst_cases(name: str, tmp_path: Path) -> None:
    """(1 - m) f(0) + m f(1/m), with m the largest probability that any law can get [paper, Thm 3.1 and App. F.1]."""
    rows = run_experiment(WorstCaseExperiment(name, OUTCOMES[name]), tmp_path).rows
    assert run_experiment(named_experiment(name), tmp_path).rows == rows
    assert [row.epsilon for row in rows] == [0.1, 0.5, 1.0, 2.0, 5.0]
    with mpmath.workdps(40):
        for row in rows:
            k, e = mpmath.mpf(OUTCOMES[name]), mpmath.mpf(row.epsilon)
            most = {
                "optimal": mpmath.exp(e) / (mpmath.exp(e) + k - 1),
                "mollifier": min(mpmath.exp(e / 2) / k, 1 - (1 - 1 / k) * mpmath.exp(-e / 2)),
            }
            for mechanism, m in most.items():
                for divergence, f in F.items():
                    exact = (1 - m) * f(mpmath.mpf(0)) + m * f(1 / m)
                    assert abs(row.risks[mechanism][divergence] - exact) <= 1e-12 * (1 + exact), (
                        row.epsilon,
                        mechanism,
                    )
            assert all(row.risks["optimal"][f] < row.risks["mollifier"][f] for f in F)


def test_figure_2(tmp_path: Path) -> None:
    """max(P/r, 1/(e^eps + 4)), with r solved on the clipped set."""
    rows = run_experiment(FiniteLawExperiment(), tmp_path).rows
    assert run_experiment(named_experiment("fig2"), tmp_path).rows == rows
    assert [row.epsilon for row in rows] == [1.0, 0.5, 0.1]
    with mpmath.workdps(40):
        p = [mpmath.mpf(x) for x in ("0.3", "0.25", "0.2", "0.15", "0.1")]
        for row in rows:
            floor = 1 / (mpmath.exp(mpmath.mpf(row.epsilon)) + 4)
            for kept in range(1, 6):  # the largest so many stay above the floor
                r = sum(p[:kept]) / (1 - (5 - kept) * floor)
                law = [max(x / r, floor) for x in p]
                if abs(sum(law) - 1) < mpmath.mpf(10) ** -30:
                    break
            assert max(abs(ours - exact) for ours, exact in zip(row.optimal, law, strict=True)) <= 1e-12
            assert sum(row.optimal) == pytest.approx(1.0, abs=1e-12)
