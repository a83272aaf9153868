"""The picture of a survey's answers."""

import numpy as np
import pytest

from discreet import plots
from discreet.errors import DiscreetError
from discreet.estimation import answer_survey
from discreet.plots import figure
from discreet.survey import Number, Survey, SurveySampler, histogram, mean, shares


def test_a_panel_for_each_question() -> None:
    survey = Survey(
        {"a": ["x", "y", "z"], "b": 5, "n": Number(0, 10, "km")},
        [shares("a"), shares("a", "b"), mean("n"), histogram("n", cells=12)],
    )
    sampler = SurveySampler(survey, epsilon=2.0)
    rng = np.random.default_rng(4)
    rows = rng.integers(0, survey.columns.size, 4000)
    with pytest.warns(UserWarning, match="NOT private"):
        reports = sampler.release_rows(rows, rng=rng)
    found = answer_survey(sampler, reports)
    drawn = plots.survey(found, most=2)
    panels = [axes for axes in drawn.axes if axes.get_visible()]
    assert len(panels) == 5  # and the scale of colours
    assert len(panels[0].get_yticks()) == 2
    assert "1 more outcome not shown" in panels[0].get_xlabel()
    assert np.asarray(panels[1].images[0].get_array()).shape == (3, 5)
    own = figure(12.0, 4.0)
    assert plots.survey(found, ax=own.subplots(1, 4)) is own
    with pytest.raises(DiscreetError, match="ax"):
        plots.survey(found, ax=figure(4.0, 4.0).subplots())


def test_a_question_that_nobody_was_asked_has_an_empty_panel() -> None:
    survey = Survey({"a": 3, "b": 4}, [shares("a"), shares("b")])
    sampler = SurveySampler(survey, epsilon=1.0)
    first = int(sampler.reports()[0])
    drawn = plots.survey(answer_survey(sampler, [first]))
    assert sum(axes.axison for axes in drawn.axes) == 1
