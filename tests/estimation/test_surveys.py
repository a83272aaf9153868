"""Answers to a survey: unbiased, consistent, with intervals that hold, and as precise as was said before."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet.errors import DiscreetError
from discreet.estimation import SurveyAnswer, answer_survey, survey_outlook
from discreet.estimation._inference._least_squares import (
    TreeLevels,
    report_sampler_of_survey_part,
    unbiased_shares_from_reports,
)
from discreet.estimation._surveys import _QuestionReports
from discreet.survey import Number, Survey, SurveySampler, WeightedBlocks, histogram, linear, mean, quantiles, shares
from tests.soaking import examples, wide

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


def binary_people(clients: int, rng: np.random.Generator) -> tuple[dict[str, Any], dict[tuple[str, ...], Any]]:
    """Five columns that depend on each other, and their one- and two-way marginals."""
    first = rng.random(clients) < 0.85
    table: dict[str, Any] = {"a": first.astype(int), "e": rng.choice(3, clients, p=[0.7, 0.25, 0.05])}
    for name, chance in (("b", 0.3), ("c", 0.5), ("d", 0.02)):
        table[name] = np.where(rng.random(clients) < 0.5, first, rng.random(clients) < chance).astype(int)
    sizes = {name: 3 if name == "e" else 2 for name in "abcde"}
    asked = [*((name,) for name in sizes), *itertools.combinations(sizes, 2)]
    found: dict[tuple[str, ...], Any] = {}
    for names in asked:
        shape = tuple(sizes[name] for name in names)
        outcomes = np.ravel_multi_index([table[name] for name in names], shape)
        found[names] = np.bincount(outcomes, minlength=math.prod(shape)) / clients
    return table, found


BINARY = {"a": 2, "b": 2, "c": 2, "d": 2, "e": 3}


def test_wider_tables_answer_all_pairs_without_bias_and_consistently() -> None:
    rng = np.random.default_rng(12)
    table, truth = binary_people(60_000, rng)
    sampler = SurveySampler(Survey(BINARY, [shares(*reversed(names)) for names in truth]), epsilon=4.0)
    assert any(part.question == -1 for part in sampler.parts)
    found = answer_survey(sampler, sampler.release_table(table, rng=rng))
    errors = []
    for answer, (names, expected) in zip(found, truth.items(), strict=True):
        shape = [BINARY[name] for name in reversed(names)]
        estimate = answer.consistent.reshape(shape).T.ravel()
        errors.append(np.mean(np.square(estimate - expected)))
        assert answer.consistent.sum() == pytest.approx(1.0, abs=1e-12)
        for axis, name in enumerate(reversed(names)):
            alone = next(each for each in found if each.question.columns == (name,)).consistent
            told = answer.consistent.reshape(shape)
            assert (told if told.ndim == 1 else told.sum(axis=1 - axis)) == pytest.approx(alone, abs=1e-12)
        assert (answer.law.all_low <= answer.law.low).all()
        assert (answer.law.low <= answer.law.high).all()
        inside = (answer.law.all_low <= truth_of(expected, shape)) & (truth_of(expected, shape) <= answer.law.all_high)
        assert inside.all()
    said = [sampler.variance(place) / 60_000 for place in range(len(errors))]
    assert np.mean(errors) <= 1.5 * np.mean(said)
    split = [sampler.strategies[place].variance * len(errors) / 60_000 for place in range(len(errors))]
    assert np.mean(errors) <= 0.3 * np.mean(split)  # a question each, with equal chances


def truth_of(expected: Any, shape: list[int]) -> Any:
    """Shares in the order of a question that names its columns the other way round."""
    return np.asarray(expected).reshape(shape[::-1]).T.ravel()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "clients"), [(0.7, 3000), (4.0, 900)])
def test_intervals_of_shares_that_several_tables_tell_hold_and_are_narrower(epsilon: float, clients: int) -> None:
    rng, runs = np.random.default_rng(6), wide(400, 8)
    table, truth = binary_people(clients, rng)
    sampler = SurveySampler(Survey(BINARY, [shares(*names) for names in truth]), epsilon=epsilon)
    missed, together, ratio = [], [], []
    for _ in range(runs):
        found = answer_survey(sampler, sampler.release_table(table, rng=rng))
        laws = [(answer.law, expected) for answer, expected in zip(found, truth.values(), strict=True)]
        missed.append(np.mean(np.concatenate([(x < law.low) | (x > law.high) for law, x in laws])))
        together.append(any(((x < law.all_low) | (x > law.all_high)).any() for law, x in laws))
        ratio.append(np.mean([np.mean(np.square(law.high - law.low)) for law, _ in laws]))
    assert np.mean(missed) <= 0.05 + 3 * float(np.std(missed)) / math.sqrt(runs)
    assert np.mean(together) <= 0.05 + 3 * math.sqrt(0.05 / runs)
    alone = np.mean([(2 * 1.96) ** 2 * sampler.strategies[place].variance for place in range(len(truth))])
    assert np.mean(ratio) <= alone * len(truth) / clients  # a question each, with equal chances


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_survey_of_shares_and_any_number_of_clients_has_consistent_answers(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    columns = {f"c{place}": size for place, size in enumerate(sizes)}
    names = st.lists(st.sampled_from(list(columns)), min_size=1, max_size=3, unique=True)
    wanted = data.draw(
        st.lists(names.filter(lambda each: math.prod(columns[n] for n in each) > 1), min_size=1, max_size=5)
    )
    weights = data.draw(st.lists(st.sampled_from([1e-6, 1.0, 1e6]), min_size=len(wanted), max_size=len(wanted)))
    asked = [shares(*each, weight=weight) for each, weight in zip(wanted, weights, strict=True)]
    sampler = SurveySampler(Survey(columns, asked), epsilon=data.draw(st.sampled_from([0.01, 0.8, 3.0, 9.0])))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    clients = data.draw(st.sampled_from([1, 2, 31, 200]))
    found = answer_survey(sampler, sampler.release_rows(rng.integers(0, math.prod(sizes), clients), rng=rng))
    for place, answer in enumerate(found):
        assert math.isfinite(sampler.variance(place))
        assert np.isnan(answer.consistent).all() or answer.is_known
        assert not answer.is_known or answer.consistent.sum() == pytest.approx(1.0, abs=1e-6)
        assert len(answer.rows()) == len(answer.consistent) == len(answer.law.estimate)
        for low, high in ((answer.law.low, answer.law.high), (answer.law.all_low, answer.law.all_high)):
            assert (low >= 0.0).all()
            assert (low <= high).all()
            assert (high <= 1.0).all()
        for other in found:
            if other.question.columns == answer.question.columns[:1] and answer.is_known and other.is_known:
                shape = [columns[name] for name in answer.question.columns]
                told = answer.consistent.reshape(shape[0], -1).sum(axis=1)
                assert told == pytest.approx(other.consistent, abs=1e-6)


def test_a_distribution_function_is_the_least_squares_of_all_levels() -> None:
    rng = np.random.default_rng(8)
    sampler = SurveySampler(Survey({"x": Number(0, 1)}, [quantiles("x")]), epsilon=2.0)
    reports = sampler.release_table({"x": rng.beta(2, 5, 20_000)}, rng=rng)
    asked = _QuestionReports(sampler, 0, sampler.split(reports))
    levels = TreeLevels(sampler, "x", asked.parts, asked.reports)
    cells, equations, values = levels._tree.cell_count, [], []
    for place, count in enumerate(levels._levels):
        weight = 1.0 / math.sqrt(levels._noise[place])
        equations.append(weight * np.kron(np.eye(count), np.ones((1, cells // count))))
        values.append(
            weight
            * unbiased_shares_from_reports(
                report_sampler_of_survey_part(sampler, asked.parts[place]), asked.reports[place]
            )
        )
    equations.append(1e7 * np.ones((1, cells)))
    values.append(np.array([1e7]))
    solved = np.linalg.lstsq(np.vstack(equations), np.concatenate(values), rcond=None)[0]
    assert levels.cell_shares == pytest.approx(solved, abs=1e-6)
    edges = np.array([1, cells // 3, cells - 1])
    queries = (np.arange(cells)[:, None] < edges[None, :]).astype(float)
    coefficients = levels.query_coefficients_by_level(queries)
    linear_form = edges / cells + sum(
        each.T
        @ unbiased_shares_from_reports(report_sampler_of_survey_part(sampler, asked.parts[place]), asked.reports[place])
        for place, each in enumerate(coefficients)
    )
    assert linear_form == pytest.approx(levels.distribution_function[edges], abs=1e-10)
    noise = sum(
        each * np.square(c - c.mean(axis=0)).sum(axis=0) for each, c in zip(levels._noise, coefficients, strict=True)
    )
    assert levels.distribution_function_standard_errors[edges] == pytest.approx(np.sqrt(noise), rel=1e-9)


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
@pytest.mark.parametrize(("epsilon", "clients"), wide([(1.0, 4000), (4.0, 1500)], [(1.0, 4000)]))
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


def prefix_sampler(size: int, epsilon: float) -> tuple[SurveySampler, np.ndarray[Any, Any], WeightedBlocks]:
    matrix = np.tril(np.ones((size, size)))[:-1]
    sampler = SurveySampler(Survey({"x": size}, [linear(matrix, "x")]), epsilon=epsilon)
    blocks = sampler.parts[0].blocks
    assert isinstance(blocks, WeightedBlocks)
    return sampler, matrix, blocks


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 1.5])
def test_sums_by_optimised_blocks_have_no_bias_and_the_stated_variance(epsilon: float) -> None:
    sampler, matrix, _ = prefix_sampler(5, epsilon)
    reports = sampler.reports().tolist()
    estimates = np.array([answer_survey(sampler, [report])[0].law.estimate for report in reports])
    laws = np.array([[float(sampler.probability(report, row)) for report in reports] for row in range(5)])
    assert np.abs(laws @ estimates - matrix.T).max() < 1e-10  # from a client with each outcome
    uniform = laws.mean(axis=0)
    spread = uniform @ np.square(estimates) - np.square(uniform @ estimates)
    assert spread.max() == pytest.approx(sampler.variance(0), rel=1e-9)


def test_sums_by_optimised_blocks_vary_as_announced() -> None:
    sampler, matrix, blocks = prefix_sampler(24, 1.0)
    rng, runs, clients = np.random.default_rng(6), 120, 500
    errors = np.zeros((runs, len(matrix)))
    for run in range(runs):
        rows = rng.integers(0, 24, clients)
        reports = sampler.release_rows(rows, rng=rng)
        asked = _QuestionReports(sampler, 0, sampler.split(reports))
        errors[run] = asked._report_contributions_to_sums(matrix).means  # the uniform population has the means of rows
    variances = blocks.sum_variances_per_client_if_uniform(matrix, math.e - 1.0)
    assert np.mean(np.square(errors)) * clients == pytest.approx(variances.mean(), rel=0.12)
    assert np.abs(errors.mean(axis=0)).max() < 5 * math.sqrt(variances.max() / (runs * clients))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_intervals_of_sums_by_optimised_blocks_cover_the_clients_at_hand(epsilon: float) -> None:
    sampler, matrix, _ = prefix_sampler(16, epsilon)
    rng, runs, missed, wide_missed = np.random.default_rng(9), wide(300, 15), [], []
    for _ in range(runs):
        rows = rng.binomial(15, 0.2, 1500)
        truth = matrix @ (np.bincount(rows, minlength=16) / len(rows))
        law = answer_survey(sampler, sampler.release_rows(rows, rng=rng))[0].law
        missed.append(np.mean((truth < law.low) | (truth > law.high)))
        wide_missed.append(np.any((truth < law.all_low) | (truth > law.all_high)))
    assert np.mean(missed) <= 0.06 + 3 * math.sqrt(0.05 / (3 * runs))
    assert np.mean(wide_missed) <= 0.06 + 3 * math.sqrt(0.05 / runs)


@pytest.mark.parametrize(("columns", "clients"), [(8, 800), (4, 100)])
def test_many_tables_with_few_reports_tell_together(columns: int, clients: int) -> None:
    """At large epsilon all clients are asked wider tables; each has few reports, and the plan says that they tell."""
    names = [f"c{number}" for number in range(columns)]
    sampler = SurveySampler(Survey(dict.fromkeys(names, 2), [shares(name) for name in names]), epsilon=4.0)
    truth, rng = np.linspace(0.1, 0.9, columns), np.random.default_rng(3)
    missed, repetitions = 0, wide(200, 15)
    for _ in range(repetitions):
        table = {name: (rng.random(clients) < share).astype(int) for name, share in zip(names, truth, strict=True)}
        found = answer_survey(sampler, sampler.release_table(table, rng=rng))
        assert all(answer.is_known for answer in found)
        missed += sum(
            not answer.law.low[1] <= share <= answer.law.high[1] for answer, share in zip(found, truth, strict=True)
        )
    assert missed <= 0.05 * repetitions * columns + 3 * math.sqrt(0.05 * repetitions * columns)
    promised = survey_outlook(sampler, clients)[0].standard_error
    assert float(found[0].law.high[1] - found[0].law.low[1]) < 6 * promised


def test_what_nobody_tells_is_not_a_number() -> None:
    sampler = SurveySampler(Survey({"a": 3, "b": 4}, [shares("a"), shares("b")]), epsilon=1.0)
    first = int(sampler.reports()[0])
    found = answer_survey(sampler, [first])
    unknown = [answer for answer in found if not answer.is_known]
    assert unknown
    assert all(np.isnan(answer.consistent).all() for answer in unknown)


def test_quantiles_on_few_cells_use_a_smaller_tree() -> None:
    survey = Survey({"x": dc.Interval(0, 1, cells=10)}, [quantiles("x", at=(0.5,))])
    sampler = SurveySampler(survey, epsilon=4.0)
    assert max(part.blocks.size for part in sampler.parts) == 8
    rng = np.random.default_rng(1)
    reports = sampler.release_table({"x": rng.uniform(0, 1, 4000)}, rng=rng)
    answer = answer_survey(sampler, reports)[0]
    assert answer.law.low[0] <= 0.5 <= answer.law.high[0]
    assert dc.Agreement.from_json(dc.Agreement.of(sampler).text).sampler() == sampler


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
def test_quantiles_at_an_epsilon_beyond_every_float_are_answered() -> None:
    sampler = SurveySampler(Survey({"amount": Number(0, 10)}, [quantiles("amount", at=(0.5,))]), epsilon=1e308)
    answer = answer_survey(sampler, sampler.release_table({"amount": [3.0] * 50}))[0]
    assert answer.law.low[0] <= 3.0 <= answer.law.high[0]


@pytest.mark.parametrize("place", [-1, 1, 0.0, None, "0"])
def test_the_total_of_no_question_is_refused(place: Any) -> None:
    sampler = SurveySampler(Survey({"amount": Number(0, 10)}, [mean("amount")]), epsilon=1.0)
    found = answer_survey(sampler, sampler.release_table({"amount": [3.0] * 50}))
    with pytest.raises(DiscreetError, match=r"place .*it is the place of a question"):
        found.total(place)
