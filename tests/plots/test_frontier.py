"""The picture of designs: where they and the others lie, and what is proved to be out of reach."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import plots
from discreet.design import Design
from discreet.plots._style import empty_figure
from tests.pictures import assert_picture

CLIENTS = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 40)


def designs(epsilon: float = 1.0) -> list[Design]:
    return [dc.design(dc.Simplex(6), epsilon=epsilon, clients=CLIENTS, keep=keep) for keep in (0.7, 1.0, 0.9)]


def test_it_shows_where_they_lie(tmp_path: Path) -> None:
    made = designs()
    drawn = plots.frontier(made, others={"linear": (2.0, 1.0), "mine": (1.5, 0.5)})
    (axes,) = drawn.axes
    line, *points = axes.get_lines()
    kept, mean = (np.asarray(part) for part in line.get_data())
    ordered = [made[1], made[2], made[0]]
    assert kept.tolist() == [float(one.worst("kl")) for one in ordered]
    assert mean.tolist() == [one.value for one in ordered]
    assert [point.get_label() for point in points] == ["linear", "mine"]
    assert [np.asarray(point.get_xydata()).tolist() for point in points] == [[[2.0, 1.0]], [[1.5, 0.5]]]
    assert [text.get_text() for text in axes.texts if text.get_text() in ("1", "0.9", "0.7")] == ["1", "0.9", "0.7"]
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


@pytest.mark.parametrize("outcomes", [6, 12])
def test_names_lie_apart_and_inside(outcomes: int) -> None:
    """Designs that coincide share a name; none reaches past the axes."""
    keeps = (1.0, 0.999, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05, 0.01)
    clients = np.random.default_rng(0).dirichlet(np.full(outcomes, 0.3), 60)
    made = [dc.design(dc.Simplex(outcomes), epsilon=2.0, clients=clients, keep=keep) for keep in keeps]
    drawn = plots.frontier(made)
    (axes,) = drawn.axes
    drawn.draw_without_rendering()
    names = [text for text in axes.texts if text.get_text()[0] in "01"]
    assert {float(one) for text in names for one in text.get_text().split(", ")} == set(keeps)
    boxes = [text.get_window_extent() for text in names]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x1 <= axes.get_window_extent().x1 for box in boxes)


def test_what_is_grey_is_below_what_is_proved() -> None:
    """Between two designs nothing is claimed but the floor of the one that keeps less: a chord between them would claim more."""
    made = sorted(designs(), key=lambda one: -one.keep)
    (axes,) = plots.frontier(made).axes
    (area,) = axes.collections
    (path,) = area.get_paths()
    for one, after in pairwise(made):
        middle = 0.5 * (float(one.worst("kl")) + float(after.worst("kl")))
        assert path.contains_point((middle, 0.999 * after.bound))
        assert not path.contains_point((middle, 1.001 * after.bound))


def test_on_ones_own_axes_and_what_cannot_be_drawn() -> None:
    axes = empty_figure(4.0, 4.0).subplots()
    assert plots.frontier(designs(), ax=axes) is axes.figure
    with pytest.raises(dc.DiscreetError, match="one or more"):
        plots.frontier([])
    with pytest.raises(dc.DiscreetError, match="same epsilon"):
        plots.frontier([*designs(), *designs(epsilon=2.0)])
