"""The picture of a survey's answers."""

import numpy as np
import pytest

from discreet import plots
from discreet.errors import DiscreetError
from discreet.estimation import answer_groups, answer_survey, survey_change
from discreet.plots import empty_figure
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
    own = empty_figure(12.0, 4.0)
    assert plots.survey(found, ax=own.subplots(1, 4)) is own
    with pytest.raises(DiscreetError, match="ax"):
        plots.survey(found, ax=empty_figure(4.0, 4.0).subplots())


def test_a_question_that_nobody_was_asked_has_an_empty_panel() -> None:
    survey = Survey({"a": 3, "b": 4}, [shares("a"), shares("b")])
    sampler = SurveySampler(survey, epsilon=1.0)
    first = int(sampler.reports()[0])
    drawn = plots.survey(answer_survey(sampler, [first]))
    assert sum(axes.axison for axes in drawn.axes) == 1


def test_groups_and_changes_have_a_panel_for_each_question() -> None:
    survey = Survey({"a": 4, "n": Number(0, 10, "km")}, [shares("a"), mean("n")])
    sampler = SurveySampler(survey, epsilon=4.0)
    rng = np.random.default_rng(5)
    rows = rng.integers(0, survey.columns.size, 6000)
    few = rows - rows % 4  # of outcome 0 alone
    with pytest.warns(UserWarning, match="NOT private"):
        reports, others = sampler.release_rows(rows, rng=rng), sampler.release_rows(few, rng=rng)
    groups = answer_groups(sampler, {"first": reports, "second": others})
    drawn = plots.survey_groups(groups, most=3)
    assert [len(axes.collections) for axes in drawn.axes] == [4, 4]  # bars and dots of two groups
    legend = drawn.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["first", "second"]
    found = survey_change(sampler, reports, sampler, others)
    drawn = plots.survey_change(found, most=4)
    assert [axes.get_xlabel() for axes in drawn.axes] == ["percentage points", "km"]
    assert "orange" in drawn.get_supxlabel()
    with pytest.raises(DiscreetError, match="at least one group"):
        plots.survey_groups({})
