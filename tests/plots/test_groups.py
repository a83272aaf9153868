"""Pictures of groups and of changes: the same outcomes in every panel, and intervals that hold all at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import estimation, plots
from discreet.errors import DiscreetError
from discreet.plots._style import empty_figure
from tests.pictures import assert_picture

LINEAR = dc.LinearSampler(dc.Simplex(["a", "b", "c$_1$", "d" * 50]), epsilon=2.0)
COUNTS = {"north": [400, 300, 200, 100], "south": [100, 500, 300, 100], "tiny": [1, 0, 0, 1]}


def segments(axes: Any) -> np.ndarray:
    return np.array([line[:, 0] for line in axes.collections[0].get_segments()])


def test_every_panel_has_the_outcomes_of_all_clients_in_one_order(tmp_path: Path) -> None:
    found = estimation.estimate_groups(LINEAR, counts=COUNTS)
    drawn = plots.groups(found, most=2)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["north", "south", "tiny"]
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["b", "a"]
    for axes, name in zip(drawn.axes, COUNTS, strict=True):
        law = found.laws[name]
        np.testing.assert_allclose(segments(axes), np.stack([law.all_low, law.all_high], axis=1)[[1, 0]])
    assert drawn.axes[0].get_xlim() == drawn.axes[2].get_xlim()
    assert drawn.axes[0].get_xlim()[1] < 0.8  # a group that tells nothing does not widen the others
    assert any("tell nothing" in text.get_text() for text in drawn.axes[2].texts)
    plots.save(drawn, tmp_path / "groups.png")
    assert_picture(tmp_path / "groups.png")


def test_more_groups_than_panels_are_told() -> None:
    found = estimation.estimate_groups(LINEAR, counts={number: [40, 30, 20, 10] for number in range(30)})
    drawn = plots.groups(found)
    assert len([axes for axes in drawn.axes if axes.get_visible()]) == 24
    assert "6 more groups not shown" in str(drawn._supxlabel.get_text())  # type: ignore[attr-defined]


def test_cells_and_own_axes() -> None:
    sampler = dc.LinearSampler(dc.Simplex(dc.Interval(0.0, 8.0, cells=4)), epsilon=2.0)
    found = estimation.estimate_groups(sampler, counts={"x": [40, 30, 20, 10], "y": [10, 20, 30, 40]})
    own = empty_figure(8.0, 4.0)
    assert plots.groups(found, ax=own.subplots(1, 2)) is own
    assert len(own.axes[0].patches) == 2  # the group, and all clients
    with pytest.raises(DiscreetError, match="2 panels"):
        plots.groups(found, ax=empty_figure(8.0, 4.0).subplots())
    assert len(plots.change(estimation.change(*found.groups.values())).axes[0].get_yticks()) == 4


def test_changes_that_exclude_nothing_are_hollow(tmp_path: Path) -> None:
    before, after = (
        estimation.population(LINEAR, counts=counts) for counts in ([400, 300, 200, 100], [90, 640, 180, 90])
    )
    found = estimation.change(before, after)
    drawn = plots.change(found, most=3)
    axes = drawn.axes[0]
    assert next(label.get_text() for label in axes.get_yticklabels()) in ("a", "b")
    np.testing.assert_allclose(sorted(segments(axes)[:2, 0]), sorted(found.law.all_low[:2]))
    surely = (found.law.all_low > 0) | (found.law.all_high < 0)
    assert surely.tolist() == [True, True, False, False]
    plots.save(drawn, tmp_path / "change.svg")
    assert_picture(tmp_path / "change.svg")
