"""Pictures of what a client holds and draws from: they show the numbers they say, and refuse what cannot be drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

import discreet as dc
from discreet import plots
from discreet.plots._style import empty_figure
from tests.mechanisms.continuous.clients import interval_family, ring
from tests.pictures import assert_picture


def test_one_dimension(tmp_path: Path) -> None:
    family = interval_family()
    sampler, p = dc.OptimalSampler(family, epsilon=0.5), family.mixture([0.3, 0.7], [-0.9, 0.9])
    drawn = plots.output(sampler, p, title="Title")
    floor, ceiling, held, output = (np.asarray(line.get_ydata()) for line in drawn.axes[0].get_lines())
    x = np.asarray(drawn.axes[0].get_lines()[0].get_xdata())
    assert x[0] == -4.0
    assert output == pytest.approx(sampler.output(p).pdf(x))
    assert (floor <= output * (1 + 1e-12)).all()
    assert (output <= ceiling * (1 + 1e-12)).all()
    assert np.trapezoid(held, x) == pytest.approx(1.0, abs=1e-5)
    plots.save(drawn, tmp_path / "line.png")
    assert_picture(tmp_path / "line.png")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_two_dimensions(suffix: str, tmp_path: Path) -> None:
    sampler = dc.OptimalSampler(dc.GaussianMixtures(2, scale=0.5**0.5), epsilon=0.5)
    path = tmp_path / f"plane.{suffix}"
    plots.save(plots.output(sampler, ring(), title="The ring"), path)
    assert_picture(path)


def held(kinds: int) -> NDArray[np.float64]:
    law = np.zeros(30)
    law[:kinds] = np.arange(kinds, 0, -1)
    return np.asarray(law / law.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kinds"),
    [*((dc.OptimalSampler, kinds) for kinds in (1, 2, 5, 30)), (dc.LinearSampler, 5), (dc.MollifierSampler, 5)],
)
def test_finite_outcomes(kind: type[dc.OptimalSampler[Any]], kinds: int, tmp_path: Path) -> None:
    """The largest by name, the others in one row; dots where the laws are."""
    sampler = kind(dc.Simplex([f"A{i}" for i in range(30)]), epsilon=1.0)
    drawn = plots.output(sampler, held(kinds))
    axes, few = drawn.axes[0], min(kinds, 12)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [*(f"A{i}" for i in range(few)), f"{30 - few} others,\non average"]
    given, _, taken = (np.asarray(dots.get_offsets())[:, 0] for dots in axes.collections[-3:])
    assert given[:few] == pytest.approx(held(kinds)[:few])
    assert taken[:few] == pytest.approx(sampler.output(held(kinds))[:few])
    assert taken[-1] == pytest.approx(sampler.output(held(kinds))[few:].mean())
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_what_was_released_is_shown_however_rare_it_is() -> None:
    sampler = dc.OptimalSampler(dc.Simplex([f"A{i}" for i in range(30)]), epsilon=1.0)
    for released in ("A0", "A29"):
        axes = plots.output(sampler, held(30), released=released).axes[0]
        names = {label.get_text(): label.get_fontweight() for label in axes.get_yticklabels()}
        assert [name for name, weight in names.items() if weight == "bold"] == [released]
        assert any(text.get_text() == "released" for text in axes.texts)


def test_a_client_by_label() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)
    dots = [plots.output(sampler, p).axes[0].collections[-1] for p in ({"c": 0.9, "a": 0.1}, [0.1, 0.0, 0.9])]
    by_label, by_place = (np.asarray(each.get_offsets()) for each in dots)
    np.testing.assert_array_equal(by_label, by_place)


def test_a_box_that_is_not_the_same_for_all_outcomes_is_drawn_row_by_row(tmp_path: Path) -> None:
    sampler = dc.OptimalSampler(dc.Band([4.0, 2.0, 1.0, 1.0], lower=0.5, upper=2.0), epsilon=0.5)
    drawn = plots.output(sampler, [0.4, 0.2, 0.2, 0.2])
    bars = [bar for bar in drawn.axes[0].patches if isinstance(bar, Rectangle)]
    ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    box = sorted(zip(np.asarray(sampler.box.lower), np.asarray(sampler.box.upper), strict=True))
    np.testing.assert_allclose(ends, box)
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


@pytest.mark.slow
def test_on_ones_own_axes() -> None:
    own = empty_figure(8.0, 4.0)
    left, right = own.subplots(1, 2)
    sampler = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
    assert plots.output(sampler, [0.5, 0.5, 0.0], ax=right) is own
    assert not left.has_data()
    assert right.has_data()
    family = interval_family()
    assert plots.output(dc.OptimalSampler(family, epsilon=1.0), family.mixture([1.0], [0.0]), ax=left) is own
    parts = empty_figure(8.0, 4.0)
    part = parts.add_subfigure(GridSpec(1, 1)[0])
    assert plots.output(sampler, [0.5, 0.5, 0.0], ax=part.subplots()) is parts


def test_what_cannot_be_drawn() -> None:
    family = interval_family()
    member = family.mixture([1.0], [0.0])
    with pytest.raises(dc.DiscreetError, match="one client, not 2"):
        plots.output(dc.OptimalSampler(family, epsilon=1.0), [member, member])
    space = dc.LaplaceMixtures(5)
    with pytest.raises(dc.DiscreetError, match="dimension 5 cannot be drawn"):
        plots.output(dc.OptimalSampler(space, epsilon=1.0), space.mixture([1.0], np.zeros((1, 5))))
    sampler = dc.OptimalSampler(dc.Simplex(["a", "b"]), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="shows one client"):
        plots.output(sampler, [[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(dc.DiscreetError, match="'c'"):
        plots.output(sampler, [0.5, 0.5], released="c")
    with pytest.raises(dc.DiscreetError, match="released = 'c' is for finite families"):
        plots.output(dc.OptimalSampler(family, epsilon=1.0), member, released="c")
    with pytest.raises(dc.DiscreetError, match="sampler = "):
        plots.output(dc.Simplex(3), [0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="ax holds 2 axes for 1 panels"):
        plots.output(sampler, [0.5, 0.5], ax=empty_figure(4.0, 4.0).subplots(1, 2))
    with pytest.raises(dc.DiscreetError, match="ax = 3 is not matplotlib axes"):
        plots.output(sampler, [0.5, 0.5], ax=3)  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="title = 'T' is for a new figure"):
        plots.output(sampler, [0.5, 0.5], ax=empty_figure(4.0, 4.0).subplots(), title="T")
