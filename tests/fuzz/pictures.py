"""Hostile arguments for pictures: of estimates, surveys, plans, designs, comparisons and audits."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import discreet as dc
from discreet import audit, estimation, plots
from discreet.research import compare
from discreet.survey import Number, Survey, SurveySampler, mean, quantiles, shares
from tests.fuzz.chooser import WORDS, Chooser

mpl.use("Agg")
LAWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


@functools.cache
def _subjects() -> dict[str, Any]:
    """What is drawn where nothing is wrong, made once."""
    linear = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    surveyed = SurveySampler(Survey({"a": 3, "n": Number(0, 1)}, [shares("a"), mean("n"), quantiles("n")]), epsilon=1.0)
    found = estimation.population(linear, counts=[50, 30, 20])
    rows = surveyed.release_rows([0, 1, 2] * 30)
    return {
        "population": found,
        "change": estimation.change(found, found),
        "groups": estimation.estimate_groups(linear, counts={"a": [50, 30, 20], "b": [5, 3, 2]}),
        "survey": estimation.answer_survey(surveyed, rows),
        "few": estimation.answer_survey(surveyed, rows[:1]),
        "survey_groups": estimation.answer_groups(surveyed, {"a": rows, "b": rows[:3]}),
        "survey_change": estimation.survey_change(surveyed, rows, surveyed, rows),
        "frontier": [dc.design(dc.Simplex(3), epsilon=1.0, clients=LAWS)],
        "comparison": compare(dc.Simplex(3), LAWS, divergences=["tv"]).records,
        "audit": audit.black_box_audit(lambda value, n: np.zeros(n), [0, 1], epsilon=1.0, draws=400),
    }


def pictures(c: Chooser) -> Any:
    """A figure of what can be drawn, or an error for what cannot."""
    from matplotlib import pyplot

    subjects = _subjects()
    name = c.among(sorted(subjects))
    subject = subjects[name] if c.below(4) else c.among([*subjects.values(), None, 3, "x", [], {}, c.number()])
    options: dict[str, Any] = {"title": c.among([None, None, "title", "$x", "\\frac", "é\n", "", 3, "\x00"])}
    if c.below(8) == 0:
        options["ax"] = c.among([pyplot.figure().gca(), None, 3, "ax"])
    most = {"most": c.among([12, 1, 2, c.number()])} if c.below(2) else {}
    try:
        if name == "population":
            truth = c.among([None, None, [0.5, 0.3, 0.2], c.law(3)])
            figure = plots.population(subject, truth=truth, **most, **options)
        elif name == "comparison":
            figure = plots.comparison(
                subject, value=c.among(["mean", "median", "largest", "worst_case", "x", None]), **options
            )
        elif name == "frontier":
            others: Any = c.among([None, None, {"linear": (0.5, 0.3)}, {"x": 3}, {"x": (c.number(), 0.1)}, [], 3])
            figure = plots.frontier(subject, others=others, **options)
        elif name == "few":
            figure = plots.survey(subject, **most, **options)
        elif name == "audit":
            figure = _planned(c, options) if c.below(8) else plots.audit(subject, **options)
        else:
            figure = getattr(plots, name)(subject, **most, **options)
        return _saved(c, figure) if c.below(3) == 0 else None
    finally:
        pyplot.close("all")


def _planned(c: Chooser, options: dict[str, Any]) -> Any:
    """Pictures that are computed from public numbers, and of one client's output."""
    family = c.among([dc.Simplex(3), dc.Simplex(3), dc.Simplex(["a", "b", "c"]), c.family(), dc.GaussianMixtures(), 3])
    what = c.below(3)
    epsilons = c.among([[1.0], [0.5, 2.0], [], [c.number()], c.number(), "12"])
    if what == 0:
        clients, accuracy = c.among([100, 10**6, c.number()]), c.among([0.05, c.number()])
        return plots.plan(family, clients=clients, epsilons=epsilons, accuracy=accuracy, **options)
    if what == 1:
        divergences = c.among([["kl"], ["tv", "kl"], [], [c.among(WORDS)], "kl", None])
        return plots.tradeoff(family, epsilon=epsilons, divergences=divergences, **options)
    sampler: Any = (
        dc.OptimalSampler(dc.Simplex(3), epsilon=1.0) if c.below(8) else c.among([None, family, dc.OptimalSampler])
    )
    released = c.among([None, None, 0, 2, [0, 1, 1], c.number(), "x"])
    return plots.output(sampler, c.law(3), released=released, **options)


def _saved(c: Chooser, figure: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / c.among(["out.svg", "out.png", "out.x", "out", "nowhere/out.svg", "\x00.svg", "."])
        plots.save(
            figure if c.below(8) else c.among([None, 3, "figure"]), path if c.below(8) else c.among([None, 3, b"x"])
        )
        assert path.stat().st_size
    return None
