"""Answers to a survey: unbiased, consistent, with intervals that hold, and as precise as was said before."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.estimation import SurveyAnswer, answer_survey, survey_outlook
from discreet.estimation._surveys import _QuestionReports, _TreeLevels
from discreet.survey import Number, Survey, SurveySampler, histogram, linear, mean, quantiles, shares
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")

COLUMNS: dict[str, Any] = {"region": ["north", "south", "west"], "hour": 4, "amount": Number(0, 500, "euro")}
QUESTIONS = [
    shares("region"),
    shares("hour", "region"),
    mean("amount"),
    quantiles("amount", at=(0.5, 0.9)),
    histogram("amount", cells=10),
    linear([[1, 1, 0], [0, 2, -1]], "region"),
]


def people(clients: int, rng: np.random.Generator) -> dict[str, Any]:
    region = rng.choice(3, clients, p=[0.6, 0.3, 0.1])
    return {
        "region": np.array(["north", "south", "west"])[region],
        "hour": (region + rng.integers(0, 2, clients)) % 4,
        "amount": np.minimum(rng.lognormal(3.0, 1.0, clients), 500.0),
    }


def truths(table: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    region = np.array([(table["region"] == name).mean() for name in COLUMNS["region"]])
    pairs = [
        ((table["hour"] == hour) & (table["region"] == name)).mean() for hour in range(4) for name in COLUMNS["region"]
    ]
    amount = table["amount"]
    cells = np.histogram(amount, np.linspace(0, 500, 11))[0] / len(amount)
    sums = np.array([[1, 1, 0], [0, 2, -1]]) @ region
    return [region, np.array(pairs), np.array([amount.mean()]), np.quantile(amount, [0.5, 0.9]), cells, sums]


def test_answers_are_near_the_truth_and_agree_with_each_other() -> None:
    rng = np.random.default_rng(11)
    sampler = SurveySampler(Survey(COLUMNS, QUESTIONS), epsilon=3.0)
    table = people(120_000, rng)
    found = answer_survey(sampler, sampler.release_table(table, rng=rng))
    for answer, truth in zip(found, truths(table), strict=True):
        assert len(answer.names) == len(answer.rows()) == len(truth)
        assert (answer.law.all_low <= truth).all()
        assert (truth <= answer.law.all_high).all()
        assert (answer.law.all_low <= answer.law.low).all()
    region, pairs = found[0].consistent, found[1].consistent.reshape(4, 3)
    assert pairs.sum(axis=0) == pytest.approx(region, abs=1e-12)
    assert region.sum() == pytest.approx(1.0, abs=1e-12)
    assert found[1].nearest.min() >= 0.0
    assert found.total(2)[0] == pytest.approx(120_000 * found[2].law.estimate[0])
    with pytest.raises(DiscreetError, match="a total is that of a mean"):
        found.total(0)


def test_consistent_shares_are_the_weighted_least_squares_of_all_questions() -> None:
    rng = np.random.default_rng(5)
    asked = [shares("a"), shares("b", "a"), shares("a", "c"), shares("c")]
    sampler = SurveySampler(Survey({"a": 3, "b": 2, "c": 4}, asked), epsilon=1.0)
    found = answer_survey(sampler, sampler.release_rows(rng.integers(0, 24, 5000), rng=rng))
    cells = np.array([(a, b, c) for a in range(3) for b in range(2) for c in range(4)])
    matrices: dict[int, Callable[[int, int, int], int]] = {
        0: lambda a, b, c: a,
        1: lambda a, b, c: b * 3 + a,
        2: lambda a, b, c: a * 4 + c,
        3: lambda a, b, c: c,
    }
    equations, values = [], []
    for place, outcome in matrices.items():
        size = len(found[place].names)
        weight = math.sqrt(found[place].clients / sampler.strategies[place].variance * (size - 1) / size)
        table = np.zeros((len(found[place].names), len(cells)))
        table[[outcome(*cell) for cell in cells], np.arange(len(cells))] = 1.0
        equations.append(weight * table)
        values.append(weight * found[place].law.estimate)
    equations.append(1e6 * np.ones((1, len(cells))))
    values.append(np.array([1e6]))
    solved = np.linalg.lstsq(np.vstack(equations), np.concatenate(values), rcond=None)[0]
    for place, outcome in matrices.items():
        expected = np.zeros(len(found[place].names))
        np.add.at(expected, [outcome(*cell) for cell in cells], solved)
        assert found[place].consistent == pytest.approx(expected, abs=1e-6)


def test_a_distribution_function_is_the_least_squares_of_all_levels() -> None:
    rng = np.random.default_rng(8)
    sampler = SurveySampler(Survey({"x": Number(0, 1)}, [quantiles("x")]), epsilon=2.0)
    reports = sampler.release_table({"x": rng.beta(2, 5, 20_000)}, rng=rng)
    asked = _QuestionReports(sampler, 0, sampler.split(reports))
    levels = _TreeLevels(asked)
    cells, equations, values = levels._tree.cells, [], []
    for place, count in enumerate(levels._levels):
        weight = 1.0 / math.sqrt(levels._noise[place])
        equations.append(weight * np.kron(np.eye(count), np.ones((1, cells // count))))
        values.append(weight * asked._unbiased_part_shares(place))
    equations.append(1e7 * np.ones((1, cells)))
    values.append(np.array([1e7]))
    solved = np.linalg.lstsq(np.vstack(equations), np.concatenate(values), rcond=None)[0]
    assert levels.cells == pytest.approx(solved, abs=1e-6)
    edges = np.array([1, cells // 3, cells - 1])
    queries = (np.arange(cells)[:, None] < edges[None, :]).astype(float)
    coefficients = levels.coefficients(queries)
    linear_form = edges / cells + sum(
        each.T @ asked._unbiased_part_shares(place) for place, each in enumerate(coefficients)
    )
    assert linear_form == pytest.approx(levels.distribution[edges], abs=1e-10)
    noise = sum(
        each * np.square(c - c.mean(axis=0)).sum(axis=0) for each, c in zip(levels._noise, coefficients, strict=True)
    )
    assert levels.standard_errors[edges] == pytest.approx(np.sqrt(noise), rel=1e-9)


def misses_and_errors(sampler: SurveySampler, clients: int, runs: int, seed: int) -> tuple[list[float], list[float]]:
    """How often each question's intervals miss, and the mean squared error of its numbers over what was said before."""
    rng = np.random.default_rng(seed)
    missed: list[list[float]] = [[] for _ in QUESTIONS]
    errors: list[list[float]] = [[] for _ in QUESTIONS]
    for _ in range(runs):
        table = people(clients, rng)
        found = answer_survey(sampler, sampler.release_table(table, rng=rng))
        for place, (answer, truth) in enumerate(zip(found, truths(table), strict=True)):
            missed[place].append(float(np.mean((truth < answer.law.low) | (truth > answer.law.high))))
            errors[place].append(float(np.mean(np.square(answer.law.estimate - truth))))
    return [float(np.mean(each)) for each in missed], [float(np.mean(each)) for each in errors]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "clients"), [(1.0, 4000), (4.0, 1500)])
def test_intervals_cover_the_clients_at_hand_and_errors_are_as_announced(epsilon: float, clients: int) -> None:
    sampler, runs = SurveySampler(Survey(COLUMNS, QUESTIONS), epsilon=epsilon), wide(300, 10)
    missed, errors = misses_and_errors(sampler, clients, runs, seed=3)
    for place, miss in enumerate(missed):
        assert miss <= 0.06 + 3 * math.sqrt(0.05 / (runs * (1 if place in (2, 3) else 3))), QUESTIONS[place].title
    said = [each.standard_error for each in survey_outlook(sampler, clients)]
    for place in (0, 1, 2, 4):
        assert math.sqrt(errors[place]) <= 1.35 * said[place], QUESTIONS[place].title


def test_an_outlook_says_what_is_hopeless() -> None:
    columns = {f"c{place}": 10 for place in range(14)}
    pairs = [shares(f"c{i}", f"c{j}") for i in range(14) for j in range(i)]
    sampler = SurveySampler(Survey(columns, [shares("c0"), *pairs]), epsilon=2.0)
    first, *others = survey_outlook(sampler, 4000)
    assert all(each.hopeless for each in others)
    assert others[0].enough > 40 * 4000
    again = survey_outlook(sampler, others[0].enough)[1]
    assert again.total_variation == pytest.approx(0.1, rel=0.01)
    assert not again.hopeless
    assert first.asked + sum(each.asked for each in others) == pytest.approx(4000, rel=1e-6)
    with pytest.raises(DiscreetError, match="clients = 0"):
        survey_outlook(sampler, 0)


def test_reports_that_are_missing_or_none_are_refused() -> None:
    sampler = SurveySampler(Survey({"a": 3}, [shares("a"), shares("a", weight=1e-6)]), epsilon=1.0)
    reports = sampler.release_rows([0] * 50, rng=np.random.default_rng(1))
    for wrong, message in (([], "no reports"), ([10**9], "no report"), (np.stack([reports, reports]), "one dimension")):
        with pytest.raises(DiscreetError, match=message):
            answer_survey(sampler, wrong)
    with pytest.raises(DiscreetError, match="confidence"):
        answer_survey(sampler, reports, confidence=1.0)
    with pytest.raises(DiscreetError, match="sampler"):
        answer_survey(dc.ReportSampler(dc.Simplex(3), epsilon=1.0), reports)  # type: ignore[arg-type]


def test_a_quantile_at_the_edge_of_the_range_and_of_few_clients() -> None:
    sampler = SurveySampler(Survey({"x": Number(0, 1)}, [quantiles("x", at=(0.01, 0.99))]), epsilon=1.0)
    rng = np.random.default_rng(2)
    found = answer_survey(sampler, sampler.release_table({"x": np.zeros(300)}, rng=rng))[0]
    assert isinstance(found, SurveyAnswer)
    assert found.law.low[0] == 0.0
    assert (found.law.low <= found.law.high).all()
    assert (found.law.low >= 0.0).all()
    assert (found.law.high <= 1.0).all()


def test_a_question_that_nobody_was_asked_says_nothing_and_costs_the_others_nothing() -> None:
    asked = [shares("a"), *(each for each in QUESTIONS[2:5]), linear([[1, 0, -2]], "a")]
    sampler = SurveySampler(Survey({"a": 3, "amount": Number(0, 500)}, asked), epsilon=1.0)
    rng = np.random.default_rng(4)
    reports = sampler.release_table({"a": [0, 1, 2] * 100, "amount": np.arange(300.0)}, rng=rng)
    mine = [report for report in reports.tolist() if sampler.parts[sampler.part_of(report)].question == 0]
    found = answer_survey(sampler, mine)
    assert found[0].clients == len(mine)
    assert found[0].consistent.sum() == pytest.approx(1.0)
    for answer, (low, high) in zip(list(found)[1:], [(0, 500), (0, 500), (0, 1), (-2, 1)], strict=True):
        assert answer.clients == 0
        assert np.isnan(answer.law.estimate).all()
        assert (answer.law.low == low).all()
        assert (answer.law.high == high).all()
        assert len(answer.rows()) == len(answer.nearest)


def test_a_sum_is_as_precise_as_the_share_that_it_is() -> None:
    sampler = SurveySampler(Survey({"b": 2}, [shares("b"), linear([[1, 0]], "b")]), epsilon=1.0)
    first, second = survey_outlook(sampler, 2000)
    assert first.standard_error == pytest.approx(second.standard_error, rel=1e-9)
    scaled = SurveySampler(Survey({"b": 2}, [linear([[1000, 0]], "b")]), epsilon=1.0)
    assert survey_outlook(scaled, 10**6)[0].hopeless is False
