"""Curves of the trade-off: one panel for each divergence, named whatever their range, bounds not called optimal."""

from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError, plots
from discreet.plots._planning import RiskCurve, risk_curves_figure
from discreet.plots._style import empty_figure, save
from tests.pictures import assert_picture


def curve(name: str = "kl", points: int = 20, *, exact: bool = True) -> RiskCurve:
    epsilon = np.geomspace(0.1, 10, points)
    return RiskCurve(name, epsilon, np.exp(-epsilon), np.exp(-epsilon / 2), exact)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_one_panel_for_each_divergence(count: int, tmp_path: Path) -> None:
    drawn = risk_curves_figure([curve(name) for name in ("kl", "tv", "hellinger", "chi2")[:count]], title="Title")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        "KL", "total variation", "squared Hellinger", "chi-squared",
    ][:count]  # fmt: skip
    for axes in drawn.axes:
        mollifier, optimal = (line.get_ydata() for line in axes.get_lines())
        assert np.array_equal(np.asarray(optimal), curve().optimal)
        assert np.array_equal(np.asarray(mollifier), curve().mollifier)
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


@pytest.mark.slow
@pytest.mark.parametrize("low_high", [(0.01, 1e-1), (0.1, 10.0), (5.0, 30.0), (1.0, 2.0)])
def test_curves_are_named_whatever_their_range(low_high: tuple[float, float], tmp_path: Path) -> None:
    epsilon = np.geomspace(*low_high, 30)
    drawn = risk_curves_figure([RiskCurve("tv", epsilon, np.exp(-epsilon), np.exp(-epsilon / 2))], title="Title")
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert any("mollifier" in text for text in texts)
    assert any("optimal" in text for text in texts)
    save(drawn, tmp_path / "picture.png")
    with_names = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert all(drawn.bbox.contains(box.x0, box.y0) and drawn.bbox.contains(box.x1, box.y1) for box in with_names)


def test_a_bound_is_not_called_optimal() -> None:
    texts = [text.get_text() for text in risk_curves_figure([curve(exact=False)], title="").axes[0].texts]
    assert any("upper bound" in text for text in texts)
    assert not any("nobody" in text for text in texts)


def test_a_bracket_is_a_band_beside_what_the_sampler_attains(tmp_path: Path) -> None:
    """On five outcomes within 0.5 to 2 the formula is above the mollifier, the smallest worst case below both samplers."""
    family, budgets = dc.Band([1] * 5, lower=0.5, upper=2.0), [0.1, 0.5, 1.0]
    drawn = plots.tradeoff(family, epsilon=budgets, divergences=["tv", "kl"], bracket=True)
    for axes, f in zip(drawn.axes, ("tv", "kl"), strict=True):
        mollifier, attained = (list(np.asarray(line.get_ydata())) for line in axes.get_lines())
        assert mollifier == [float(dc.MollifierSampler(family, epsilon=each).risk(f)) for each in budgets]
        assert attained == [float(dc.OptimalSampler(family, epsilon=each).risk(f)) for each in budgets]
        (band,) = axes.collections
        sides = [dc.minimax_risk(family, epsilon=each, divergence=f, bracket=True).bracket for each in budgets]
        heights = {height for _, height in np.asarray(band.get_paths()[0].vertices).tolist()}
        assert heights == {side for pair in sides for side in pair}
        assert not any("upper bound" in text.get_text() for text in axes.texts)
    names = " ".join(text.get_text() for text in drawn.axes[0].texts)
    assert all(name in names for name in ("mollifier", "optimal sampler", "smallest of any sampler"))
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_where_the_formula_is_exact_a_bracket_changes_nothing() -> None:
    pictures = [
        plots.tradeoff(dc.Simplex(4), epsilon=[1.0, 2.0], divergences="tv", bracket=each) for each in (False, True)
    ]
    usual, asked = ([list(np.asarray(line.get_ydata())) for line in one.axes[0].get_lines()] for one in pictures)
    assert usual == asked
    assert any("nobody" in text.get_text() for text in pictures[1].axes[0].texts)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DiscreetError, match="5 divergences do not fit"):
        risk_curves_figure([curve()] * 5, title="")
    with pytest.raises(DiscreetError, match="at least 2 values"):
        risk_curves_figure([curve(points=1)], title="")
    endless = np.full(5, np.inf)
    with pytest.raises(DiscreetError, match="reverse_kl is infinite"):
        risk_curves_figure([RiskCurve("reverse_kl", np.arange(1.0, 6.0), endless, endless)], title="")


def test_the_curves_are_those_of_the_family() -> None:
    family, budgets = dc.Simplex(10), [4.0, 0.5, 1.0]
    own = dc.FDivergence(lambda x: (x - 1) ** 2, name="own")
    drawn = plots.tradeoff(family, epsilon=budgets, divergences=["kl", own])
    shown: list[str | dc.FDivergence] = ["kl", own]
    for axes, f in zip(drawn.axes, shown, strict=True):
        mollifier, optimal = axes.get_lines()
        assert list(np.asarray(optimal.get_xdata())) == sorted(budgets)
        assert list(np.asarray(optimal.get_ydata())) == [
            float(dc.minimax_risk(family, epsilon=each, divergence=f)) for each in sorted(budgets)
        ]
        assert list(np.asarray(mollifier.get_ydata())) == [
            float(dc.MollifierSampler(family, epsilon=each).risk(f)) for each in sorted(budgets)
        ]


def test_on_ones_own_axes() -> None:
    panels = empty_figure(8.0, 4.0).subplots(1, 3)
    drawn = plots.tradeoff(dc.Simplex(4), epsilon=[1.0, 2.0], divergences=["kl", "tv"], ax=panels[1:])
    assert drawn is panels[0].figure
    assert [axes.has_data() for axes in panels] == [False, True, True]
    plots.tradeoff(dc.Simplex(4), epsilon=[1.0, 2.0], divergences="kl", ax=panels[0])
    assert panels[0].has_data()
    with pytest.raises(DiscreetError, match="ax holds 3 axes for 4 panels"):
        plots.tradeoff(dc.Simplex(4), epsilon=[1.0, 2.0], ax=panels)


def test_a_continuous_family_has_a_trade_off_too() -> None:
    drawn = plots.tradeoff(dc.GaussianMixtures(1), epsilon=[0.5, 1.0, 2.0], divergences=["tv"])
    assert len(drawn.axes[0].get_lines()) == 2
