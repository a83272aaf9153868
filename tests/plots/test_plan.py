"""The picture of a plan: the risks and errors that the library promises, and the line that is asked for."""

from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import estimation, plots
from discreet.plots._style import empty_figure
from tests.pictures import assert_picture


@pytest.mark.slow
def test_both_panels_hold_what_is_promised(tmp_path: Path) -> None:
    family = dc.Simplex(5)
    drawn = plots.plan(family, clients=1_000, epsilons=(2.0, 1.0), accuracy=0.1)
    left, right = drawn.axes
    tv, kl = left.get_lines()
    for line, f in ((tv, "tv"), (kl, "kl")):
        budget, risk = (np.asarray(part)[17] for part in line.get_data())
        assert risk == float(dc.minimax_risk(family, epsilon=float(budget), divergence=f))
    clients, error = (np.asarray(part)[3] for part in right.get_lines()[0].get_data())
    linear = dc.LinearSampler(family, epsilon=1.0)
    assert error == estimation.outlook(linear, mechanism="linear", clients=int(clients)).at_worst
    assert any("±0.1" in text.get_text() for text in right.texts)
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_the_planned_number_is_on_the_axis() -> None:
    for clients in (1, 5):
        right = plots.plan(dc.Simplex(3), clients=clients, epsilons=[1.0]).axes[1]
        assert right.get_xlim() == (clients, 100 * clients)


@pytest.mark.slow
def test_on_ones_own_axes_and_what_cannot_be_drawn() -> None:
    panels = empty_figure(8.0, 4.0).subplots(2, 1)
    assert plots.plan(dc.Simplex(3), clients=100, epsilons=[1.0], ax=panels) is panels[0].figure
    with pytest.raises(dc.DiscreetError, match="ax holds 1 axes for 2 panels"):
        plots.plan(dc.Simplex(3), clients=100, ax=panels[0])
    with pytest.raises(dc.DiscreetError, match="clients = 0"):
        plots.plan(dc.Simplex(3), clients=0)
    with pytest.raises(dc.DiscreetError, match="accuracy = 5"):
        plots.plan(dc.Simplex(3), clients=10, accuracy=5)
    with pytest.raises(dc.DiscreetError, match="epsilons is empty"):
        plots.plan(dc.Simplex(3), clients=10, epsilons=[])
    with pytest.raises(dc.DiscreetError, match="epsilon = -1"):
        plots.plan(dc.Simplex(3), clients=10, epsilons=[-1.0])
    with pytest.raises(dc.DiscreetError, match="family = "):
        plots.plan(dc.GaussianMixtures(1), clients=10)  # type: ignore[arg-type]
