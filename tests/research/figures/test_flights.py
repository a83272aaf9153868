"""The demo's pictures, for any aircraft and budget."""

from pathlib import Path

import numpy as np
import pytest

from discreet.plots import save
from discreet.research._flights import estimate_time_zones, flight_release_figure, release_flights, time_zones_figure
from discreet.research.data import logbooks, zone_logbooks
from tests.pictures import assert_picture


@pytest.mark.slow
@pytest.mark.parametrize(("aircraft", "kinds"), [("N328AA", 6), (None, 12)])
def test_the_flights_picture(aircraft: str | None, kinds: int, tmp_path: Path) -> None:
    run = release_flights(logbooks(), epsilon=1.0, aircraft=aircraft)
    drawn = flight_release_figure(run)
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    held = [run.destinations[place] for place in (-run.client.law).argsort(kind="stable")]
    few = min(kinds, int((run.client.law > 0).sum()))
    assert names[:few] == held[:few]
    assert run.client.released_destination in names
    assert names[-1].endswith("others,\non average")
    for profile, line in zip(("mollifier", "linear", "optimal"), drawn.axes[1].get_lines(), strict=True):
        assert np.asarray(line.get_ydata()).max() == run.mechanism_cost(profile, "kl").divergences.max()
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png", least_width=1200)


@pytest.mark.slow
def test_the_lesson_picture(tmp_path: Path) -> None:
    lesson = estimate_time_zones(zone_logbooks(), epsilon=2.0, aircraft="N328AA")
    drawn = time_zones_figure(lesson)
    left, right = ([label.get_text() for label in axes.get_yticklabels()] for axes in drawn.axes)
    assert left == right
    assert any(text.get_text().endswith("  released") for text in drawn.axes[1].texts)
    save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png", least_width=1200)
