"""Pictures of output laws: they show the curves they say, and refuse what cannot be drawn."""

from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.plots.continuous import density_figure
from discreet.plots.style import save
from tests.continuous.clients import interval_family, ring
from tests.pictures import assert_picture


def test_one_dimension(tmp_path: Path) -> None:
    family = interval_family()
    law = dc.OptimalSampler(family, epsilon=0.5).output(family.mixture([0.3, 0.7], [-0.9, 0.9]))
    drawn = density_figure(law, title="Title")
    floor, ceiling, held, output = (np.asarray(line.get_ydata()) for line in drawn.axes[0].get_lines())
    x = np.asarray(drawn.axes[0].get_lines()[0].get_xdata())
    assert x[0] == -4.0
    assert output == pytest.approx(law.pdf(x))
    assert (floor <= output * (1 + 1e-12)).all()
    assert (output <= ceiling * (1 + 1e-12)).all()
    assert np.trapezoid(held, x) == pytest.approx(1.0, abs=1e-5)
    save(drawn, tmp_path / "line.png")
    assert_picture(tmp_path / "line.png")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_two_dimensions(suffix: str, tmp_path: Path) -> None:
    law = dc.OptimalSampler(dc.GaussianMixtures(2, scale=0.5**0.5), epsilon=0.5).output(ring())
    path = tmp_path / f"plane.{suffix}"
    save(density_figure(law, title="The ring"), path)
    assert_picture(path)


def test_what_cannot_be_drawn() -> None:
    family = interval_family()
    member = family.mixture([1.0], [0.0])
    with pytest.raises(dc.DiscreetError, match="one client, not 2"):
        density_figure(dc.OptimalSampler(family, epsilon=1.0).output([member, member]))
    space = dc.LaplaceMixtures(5)
    with pytest.raises(dc.DiscreetError, match="dimension 5 cannot be drawn"):
        density_figure(dc.OptimalSampler(space, epsilon=1.0).output(space.mixture([1.0], np.zeros((1, 5)))))
