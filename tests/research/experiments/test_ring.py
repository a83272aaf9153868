"""Figure 1: the published class against the tight one, and the densities on the grid."""

from pathlib import Path

import numpy as np
import pytest

from discreet.research.experiments import run_experiment
from discreet.research.experiments._paper_figures import RingExperiment, RingLaw


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RingLaw]:
    folder: Path = tmp_path_factory.mktemp("fig1")
    return {row.unit: row for row in run_experiment(RingExperiment(presets=()), folder).rows}


@pytest.mark.slow
def test_the_published_class_and_the_tight_one(rows: dict[str, RingLaw]) -> None:
    assert rows["proposed"].facts.c2 == pytest.approx(4.522, abs=5e-4)
    assert rows["tight"].facts.c2 == pytest.approx(3.77245, abs=5e-6)
    assert rows["proposed"].facts.scale == pytest.approx(1.256380, abs=1e-6)
    for f in ("kl", "tv", "hellinger"):
        assert rows["tight"].costs[f] < rows["proposed"].costs[f]
        assert rows["tight"].facts.worst_case[f] < rows["proposed"].facts.worst_case[f]
        assert rows["proposed"].costs[f] <= rows["proposed"].facts.worst_case[f]


def test_the_grid_holds_densities(rows: dict[str, RingLaw]) -> None:
    """The divergences again, from the picture: nearly all of every law lies in it."""
    p = np.array(rows["original"].density)
    cell = (6.0 / 120) ** 2
    assert p.sum() * cell == pytest.approx(1.0, abs=5e-3)
    for name in ("mollifier", "proposed", "tight"):
        q = np.array(rows[name].density)
        assert 0.5 * np.abs(p - q).sum() * cell == pytest.approx(rows[name].costs["tv"], abs=0.02)
