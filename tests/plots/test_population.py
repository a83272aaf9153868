"""Pictures of an estimated population: its estimates, its intervals, the truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import estimation, plots
from discreet.domain import Bins
from discreet.plots._style import empty_figure
from tests.pictures import assert_picture

COUNTS = [400, 300, 200, 100]


@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
def test_labels(kind: type[dc.OptimalSampler[Any]], tmp_path: Path) -> None:
    sampler = kind(dc.Simplex(["a", "b", "c$_1$", "d" * 50]), epsilon=2.0)
    found = estimation.population(sampler, counts=COUNTS)
    drawn = plots.population(found, truth={"b": 0.2, "a": 0.1, "d" * 50: 0.4, "c$_1$": 0.3}, most=3)
    axes = drawn.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["d" * 31 + "…", "c$_1$", "b"]
    estimates, truth = (np.asarray(dots.get_offsets())[:, 0] for dots in axes.collections[1:])
    np.testing.assert_allclose(estimates, found.law.estimate[[3, 2, 1]])
    np.testing.assert_allclose(truth, [0.4, 0.3, 0.2])
    ends = np.array([line[:, 0] for line in axes.collections[0].get_segments()])  # type: ignore[attr-defined]
    np.testing.assert_allclose(ends, np.stack([found.law.low, found.law.high], axis=1)[[3, 2, 1]])
    assert "1 more outcomes not shown" in axes.get_xlabel()
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_the_estimate_by_examples_and_one_below_nothing_are_drawn() -> None:
    examples = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    for outcomes in (dc.Labels(["a", "b", "c", "d"]), Bins([0.0, 1.0, 2.0, 4.0, 8.0])):
        found = estimation.population(
            dc.LinearSampler(dc.Simplex(outcomes), epsilon=0.5), counts=[500, 300, 199, 1], examples=examples
        )
        assert found.reweighted is not None
        assert found.law.estimate[3] < 0.0 == found.law.low[3]
        (axes,) = plots.population(found).axes
        _, shown = axes.get_legend_handles_labels()
        assert shown == ["private estimate", "by examples"]
        if outcomes.edges is None:
            by_examples = np.asarray(axes.collections[-1].get_offsets())[:, 0]
            np.testing.assert_allclose(by_examples, found.reweighted.law)
            ends = [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
            assert [found.law.estimate[3], 0.0] in ends


def test_cells(tmp_path: Path) -> None:
    sampler = dc.LinearSampler(dc.Simplex(Bins([0.0, 1.0, 2.0, 4.0, 8.0])), epsilon=2.0)
    found = estimation.population(sampler, counts=COUNTS)
    drawn = plots.population(found, truth=[0.25, 0.25, 0.25, 0.25])
    assert drawn.axes[0].get_xlim() == (0.0, 8.0)
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_on_ones_own_axes_and_what_cannot_be_drawn() -> None:
    found = estimation.population(dc.LinearSampler(dc.Simplex(4), epsilon=2.0), counts=COUNTS)
    axes = empty_figure(5.0, 5.0).subplots()
    assert plots.population(found, ax=axes) is axes.figure
    assert axes.has_data()
    with pytest.raises(dc.DiscreetError, match=r"truth has shape \(3,\)"):
        plots.population(found, truth=[0.5, 0.5, 0.0])
    with pytest.raises(dc.DiscreetError, match=r"truth has shape \(2, 4\)"):
        plots.population(found, truth=np.full((2, 4), 0.25))
    with pytest.raises(dc.DiscreetError, match="found = "):
        plots.population(COUNTS)  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="most = 0"):
        plots.population(found, most=0)


def test_the_tails_of_a_whole_line_do_not_squeeze_the_rest() -> None:
    family = dc.LaplaceMixtures(1, radius=0.2)
    sampler = dc.LinearSampler(family, epsilon=2.0)
    found = estimation.population(sampler, samples=sampler.release([family.mixture([1.0], [0.1])] * 200))
    edges = np.asarray(found.domain.edges)
    (axes,) = plots.population(found).axes
    low, high = axes.get_xlim()
    assert edges[0] < low < edges[1] < edges[-2] < high < edges[-1]
    assert high - low < 20.0 < edges[-1] - edges[0]
