"""The picture of an audit: its counts, its bounds, its inputs as one would type them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import discreet as dc
from discreet import plots
from discreet.audit import black_box_audit
from discreet.plots._style import empty_figure
from tests.pictures import assert_picture


def labels(value: Any, count: int) -> Any:
    """Keeps the input nine times in ten."""
    kept = np.random.default_rng(0).random(count) < 0.9
    return np.where(kept, value, "b" if value == "a" else "a")


FOUND = black_box_audit(labels, list(np.array(["a", "b"])), epsilon=1.0, draws=2_000)


def test_frequencies_and_bounds(tmp_path: Path) -> None:
    drawn = plots.audit(FOUND)
    left, right = drawn.axes
    event = FOUND.events[0]
    heights = [bar.get_height() for bar in left.patches if isinstance(bar, Rectangle)]
    assert heights == [event.first_count / event.draws, event.second_count / event.draws]
    widths = [bar.get_width() for bar in right.patches if isinstance(bar, Rectangle)]
    assert widths == [each.empirical_epsilon_lower_bound for each in FOUND.events]
    plots.save(drawn, tmp_path / "picture.png")
    assert_picture(tmp_path / "picture.png")


def test_no_word_is_spelled_as_numpy_spells_it() -> None:
    drawn = plots.audit(FOUND)
    words = [label.get_text() for label in drawn.axes[0].get_xticklabels()]
    assert sorted(words) == ["input 'a'", "input 'b'"]
    assert not [text.get_text() for axes in drawn.axes for text in axes.texts if "np." in text.get_text()]
    assert not [event.description for event in FOUND.events if "np." in event.description]


def test_on_ones_own_axes_and_what_cannot_be_drawn() -> None:
    panels = empty_figure(8.0, 4.0).subplots(1, 2)
    assert plots.audit(FOUND, ax=panels) is panels[0].figure
    with pytest.raises(dc.DiscreetError, match="ax holds 1 axes for 2 panels"):
        plots.audit(FOUND, ax=panels[0])
    with pytest.raises(dc.DiscreetError, match="found = "):
        plots.audit("abc")  # type: ignore[arg-type]
