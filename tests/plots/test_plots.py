from pathlib import Path

import matplotlib
import numpy as np
import pytest

from discreet import DiscreetError, plots
from discreet.plots.flights import ClientLaw, Profile, flights_figure
from discreet.plots.labels import divergence_label
from discreet.plots.style import save, styled
from discreet.plots.tradeoff import Curve, tradeoff_figure
from tests.pictures import assert_picture


def curve(name: str = "kl", points: int = 20, *, exact: bool = True) -> Curve:
    epsilon = np.geomspace(0.1, 10, points)
    return Curve(name, epsilon, np.exp(-epsilon), np.exp(-epsilon / 2), exact)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_one_panel_for_each_divergence(count: int, tmp_path: Path) -> None:
    drawn = tradeoff_figure([curve(name) for name in ("kl", "tv", "hellinger", "chi2")[:count]], title="Title")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        "KL", "total variation", "squared Hellinger", "chi-squared",
    ][:count]  # fmt: skip
    for axes in drawn.axes:
        mollifier, optimal = (line.get_ydata() for line in axes.get_lines())
        assert np.array_equal(np.asarray(optimal), curve().optimal)
        assert np.array_equal(np.asarray(mollifier), curve().mollifier)
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


@pytest.mark.parametrize("low_high", [(0.01, 1e-1), (0.1, 10.0), (5.0, 30.0), (1.0, 2.0)])
def test_curves_are_named_whatever_their_range(low_high: tuple[float, float], tmp_path: Path) -> None:
    epsilon = np.geomspace(*low_high, 30)
    drawn = tradeoff_figure([Curve("tv", epsilon, np.exp(-epsilon), np.exp(-epsilon / 2))], title="Title")
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert any("mollifier" in text for text in texts)
    assert any("optimal" in text for text in texts)
    save(drawn, tmp_path / "picture.png")
    with_names = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert all(drawn.bbox.contains(box.x0, box.y0) and drawn.bbox.contains(box.x1, box.y1) for box in with_names)


def test_a_bound_is_not_called_optimal() -> None:
    texts = [text.get_text() for text in tradeoff_figure([curve(exact=False)], title="").axes[0].texts]
    assert any("upper bound" in text for text in texts)
    assert not any("nobody" in text for text in texts)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DiscreetError, match="5 divergences do not fit"):
        tradeoff_figure([curve()] * 5, title="")
    with pytest.raises(DiscreetError, match="at least 2 values"):
        tradeoff_figure([curve(points=1)], title="")
    endless = np.full(5, np.inf)
    with pytest.raises(DiscreetError, match="reverse_kl is infinite"):
        tradeoff_figure([Curve("reverse_kl", np.arange(1.0, 6.0), endless, endless)], title="")


@pytest.mark.parametrize("kinds", [1, 2, 5, 30])
def test_the_flights_picture_takes_any_client(kinds: int, tmp_path: Path) -> None:
    held = np.zeros(30)
    held[:kinds] = np.arange(kinds, 0, -1)
    held /= held.sum()
    client = ClientLaw("N1", [f"A{i}" for i in range(30)], held, np.full(30, 1 / 30), 0.02, 0.06, 1.0, "A0")
    values = np.linspace(0.5, 2.0, 50)
    profiles = [Profile("optimal", values), Profile("linear", values), Profile("mollifier", values**2, "note")]
    drawn = flights_figure(client, profiles, title="Title", measure="KL")
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names[: min(kinds, 12)] == [f"A{i}" for i in range(min(kinds, 12))]
    assert names[-1] == f"{30 - min(kinds, 12)} others,\non average"
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png", least_width=1200)


def test_a_file_name_without_a_known_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match=r"does not end in .png, .svg, .pdf"):
        save(tradeoff_figure([curve()], title=""), tmp_path / "picture.jpg")
    assert list(tmp_path.iterdir()) == []


def test_the_callers_settings_survive() -> None:
    before = dict(matplotlib.rcParams)
    with styled():
        assert dict(matplotlib.rcParams) != before
    assert dict(matplotlib.rcParams) == before


def test_no_window_system_is_touched() -> None:
    """Figures are made without pyplot, which would pick a backend and keep every figure alive."""
    modules = list(Path(plots.__path__[0]).glob("*.py"))
    assert len(modules) >= 4
    assert not [module.name for module in modules if "pyplot" in module.read_text(encoding="utf-8")]


def test_labels() -> None:
    assert divergence_label("hellinger") == "squared Hellinger"
    assert divergence_label("alpha:0.5") == "alpha:0.5"
