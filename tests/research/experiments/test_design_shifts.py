"""Designs that serve another kind of clients: both kinds are told apart, and it stops paying where they differ enough."""

from pathlib import Path

import numpy as np
import pytest

from discreet.research import data
from discreet.research.experiments import run_experiment
from discreet.research.experiments._designs import SAFE, ShiftComparison
from discreet.research.experiments.client_sets import SHIFTS, Shift

rng = np.random.default_rng(0)
LEFT, RIGHT = (
    rng.multinomial(20, shares, size=200).astype(np.float64) for shares in ([0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6])
)


def test_it_pays_for_clients_alike_and_not_for_others(tmp_path: Path) -> None:
    shifts = (
        Shift("same", "same", "left", "left", lambda: (LEFT[:100], LEFT[100:]), bundled=True),
        Shift("other", "other", "left", "right", lambda: (LEFT, RIGHT), bundled=True),
    )
    same, other = run_experiment(ShiftComparison(epsilons=(2.0,), shifts=shifts), tmp_path).rows
    assert same.is_design_better
    assert 0.5 < same.closed_gap_share <= 1.0
    assert not other.is_design_better
    assert other.closed_gap_share < 0.0
    for row in (same, other):
        assert row.served == (80 if row is same else 160)
        assert all(row.floor <= mean for mean in row.means.values())
    assert other.means["home"] < min(other.means[name] for name in SAFE)


@pytest.mark.slow
def test_the_bundled_flights_are_divided_once_each() -> None:
    flights = data.flights().num_rows
    for shift in SHIFTS:
        if shift.bundled:
            first, second = shift.counts()
            landed = data.flights()["arr_delay"].null_count if "delay" in shift.name else 0
            assert first.sum() + second.sum() == flights - landed
            assert min(len(first), len(second)) > 1000
