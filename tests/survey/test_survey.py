"""A survey: exact privacy, one number for each row, and means as good as the best known mechanisms'."""

import datetime
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.survey_parts.floor import least_variance
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2

import discreet as dc
from discreet.agreement import Agreement
from discreet.domain import Bins
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Ledger
from discreet.mechanisms import best_subset_width_and_variance
from discreet.privacy import largest_ratio_for_epsilon
from discreet.release import TOTAL, Question, fresh_secret
from discreet.survey import (
    Dates,
    JointColumns,
    Number,
    Survey,
    SurveyColumns,
    SurveySampler,
    Tree,
    Windows,
    histogram,
    linear,
    mean,
    quantiles,
    shares,
)
from discreet.survey._parts import (
    NO_QUESTION,
    Marginals,
    choose_question_shares_and_wider_tables,
    columns_in_survey_order,
)
from discreet.survey._strategies import best_blocks_for_size, choose_windows_and_share_for_mean, variance_per_contrast
from tests.soaking import examples, wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")

SMALL = {"region": ["north", "south", "west"], "hour": 4, "amount": dc.Interval(0, 10, cells=6)}
QUESTIONS = [
    shares("region"),
    shares("hour", "region"),
    mean("amount"),
    histogram("amount", cells=3),
    linear([[1, 0, 2]], "region", weight=3.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", wide([0.2, 1.0, 2.0, 5.0], [1.0, 5.0]))
def test_no_report_is_more_than_e_to_epsilon_times_as_likely_from_one_client_as_from_another(epsilon: float) -> None:
    sampler = SurveySampler(Survey(SMALL, QUESTIONS), epsilon=epsilon)
    bound = largest_ratio_for_epsilon(epsilon)
    rows = range(sampler.survey.columns.size)
    totals = dict.fromkeys(rows, Fraction(0))
    for report in sampler.reports().tolist():
        law = [sampler.probability(report, row) for row in rows]
        assert max(law) <= bound * min(law)
        for row, probability in zip(rows, law, strict=True):
            totals[row] += probability
    assert set(totals.values()) == {Fraction(1)}
    assert float(bound) <= math.exp(epsilon) * (1 + 1e-15)


def test_tables_that_no_question_names_are_as_private_and_answer_the_questions() -> None:
    survey = Survey({"a": 2, "b": 2, "c": 3}, [shares("a"), shares("b"), shares("c")])
    sampler = SurveySampler(survey, epsilon=4.0)
    wider = [part for part in sampler.parts if part.question == NO_QUESTION]
    assert [part.projection for part in wider] == [JointColumns(("a", "b", "c"))]
    bound, rows = largest_ratio_for_epsilon(4.0), range(12)
    totals = dict.fromkeys(rows, Fraction(0))
    for report in sampler.reports().tolist():
        law = [sampler.probability(report, row) for row in rows]
        assert max(law) <= bound * min(law)
        for row, probability in zip(rows, law, strict=True):
            totals[row] += probability
    assert set(totals.values()) == {Fraction(1)}
    key = fresh_secret().run_key("a" * 64, 1, Question(value="records"))
    drawn = [sampler.release_keyed(key, client, [7], [1]) for client in range(200)]
    assert {sampler.parts[sampler.part_of(report)].question for report in drawn} == {NO_QUESTION}


def test_reports_are_drawn_with_their_probabilities_from_entropy_and_from_a_secret() -> None:
    survey = Survey(
        {"colour": ["red", "green"], "amount": dc.Interval(0, 1, cells=4)}, [shares("colour"), mean("amount")]
    )
    sampler = SurveySampler(survey, epsilon=1.5)
    row, draws = 5, 40_000
    numbers = sampler.reports()
    expected = np.array([float(sampler.probability(int(report), row)) for report in numbers]) * draws
    drawn = sampler.release_rows(np.full(draws, row), rng=np.random.default_rng(4))
    key = fresh_secret().run_key("a" * 64, 1, Question(value="records"))
    keyed = [sampler.release_keyed(key, client, [row], [1]) for client in range(draws // 10)]
    for reports, scale in ((drawn, 1.0), (np.array(keyed, dtype=np.uint64), 0.1)):
        counts = np.array([(reports == number).sum() for number in numbers])
        chi = float(np.sum(np.square(counts - scale * expected) / (scale * expected)))
        assert chi < len(numbers) + 6 * math.sqrt(2 * len(numbers))
    other = SurveySampler(Survey(survey.columns, [mean("amount"), shares("colour")]), epsilon=1.5)
    assert [other.release_keyed(key, client, [row], [1]) for client in range(50)] != keyed[:50]
    for wrong, often in (([1.7], [1]), ([1 << 64], [1]), ([True], [1]), ([1, 2], [1]), ([1], [1 << 70]), ([1], [0])):
        with pytest.raises(DiscreetError):
            sampler.release_keyed(key, "a", wrong, often)  # type: ignore[arg-type]
    assert keyed[:50] == [sampler.release_keyed(key, client, [row], [1]) for client in range(50)]


def test_one_client_of_several_rows_reports_one_of_them() -> None:
    survey = Survey({"colour": ["red", "green", "blue"]}, [shares("colour")])
    sampler = SurveySampler(survey, epsilon=30.0, privacy=None)
    rng = np.random.default_rng(1)
    seen = {sampler.release([0, 2], rng=rng) for _ in range(60)}
    assert seen == {0, 2}
    for wrong, message in (([], "no rows"), ([3], "are not whole numbers"), ([-1], "are not"), ([0.5], "are not")):
        with pytest.raises(DiscreetError, match=message):
            sampler.release(wrong)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_rows_are_numbers_and_columns_come_back(sizes: Sequence[int], data: st.DataObject) -> None:
    columns = SurveyColumns({f"c{place}": size for place, size in enumerate(sizes)})
    table = {
        name: data.draw(st.lists(st.integers(0, columns[name].size - 1), min_size=3, max_size=3)) for name in columns
    }
    rows = columns.encode(table)
    assert ((rows >= 0) & (rows < columns.size)).all()
    for name in columns:
        assert columns.column_outcomes_of_rows(rows, name).tolist() == table[name]
    names = data.draw(st.permutations(list(columns)))
    expected = np.ravel_multi_index([np.array(table[name]) for name in names], columns.column_sizes(names))
    assert columns.joint_outcomes_of_rows(rows, names).tolist() == expected.tolist()


def test_columns_of_numbers_dates_and_labels_are_read() -> None:
    columns = SurveyColumns({"day": Dates("2026-01-30", datetime.date(2026, 2, 2)), "amount": Number(0, 500, "euro")})
    rows = columns.encode({"day": [datetime.date(2026, 2, 1), "2026-01-30"], "amount": [0.0, 500.0], "other": [1, 2]})
    assert columns.column_outcomes_of_rows(rows, "day").tolist() == [2, 0]
    assert columns.column_outcomes_of_rows(rows, "amount").tolist() == [0, columns["amount"].size - 1]
    assert columns.unit_of_column("amount") == "euro"
    assert columns.unit_of_column("day") == ""


BAD: list[tuple[Any, str]] = [
    (lambda: SurveyColumns({}), "columns is empty"),
    (lambda: SurveyColumns({"a": 1 << 40, "b": 1 << 40}), "more than 2\\^62"),
    (lambda: Number(3, 3), "do not enclose"),
    (lambda: Dates("2026-02-30", "2026-03-01"), "no date"),
    (lambda: Dates("2026-03-02", "2026-03-01"), "comes before first"),
    (lambda: SurveyColumns({"a": 2}).encode({"b": [1]}), "no column 'a'"),
    (lambda: SurveyColumns({"a": 2}).encode({"a": [2]}), "column 'a'"),
    (lambda: SurveyColumns({"a": 2, "b": 2}).encode({"a": [1], "b": [1, 0]}), "has 2 rows"),
    (lambda: Survey(SMALL, []), "not a list of questions"),
    (lambda: Survey(SMALL, [shares("colour")]), "no column 'colour'"),
    (lambda: Survey(SMALL, [shares("hour", "hour")]), "each column once"),
    (lambda: Survey(SMALL, [shares("amount")]), "holds numbers"),
    (lambda: Survey(SMALL, [mean("hour")]), "no numbers between bounds"),
    (lambda: Survey(SMALL, [linear([[1, 2]], "region")]), "for each of 3 outcomes"),
    (lambda: Survey(SMALL, [linear([[1, 2, float("nan")]], "region")]), "at most 1e100"),
    (lambda: Survey({"a": ["x"]}, [shares("a")]), "one outcome"),
    (lambda: Survey({"a": Bins([0, 0.1, 1])}, [mean("a")]), "no numbers between bounds"),
    (lambda: Survey(SMALL, [histogram("amount", cells=7)]), "read to 6 cells"),
    (lambda: Survey(SMALL, [linear(np.zeros((0, 3)), "region")]), "in every row"),
    (lambda: Survey(SMALL, [linear([[1e200, 0, 0]], "region")]), "at most 1e100"),
    (lambda: mean("amount", weight=1.7e308), "weight"),
    (lambda: SurveySampler(Survey(SMALL, QUESTIONS), epsilon=1e-17), "say nothing"),
    (lambda: Dates(datetime.datetime(2026, 1, 1), "2026-02-01"), "no date"),
    (lambda: SurveyColumns({"a": 2}).encode({"a": np.ma.masked_array([0, 1], [True, False])}), "masked"),
    (lambda: SurveyColumns({"a": Number(0, 1)}).encode({"a": np.zeros((2, 2))}), "several dimensions"),
    (lambda: SurveyColumns({"a": 2}).encode({"a": [0, [1]]}), "several dimensions"),
    (lambda: SurveyColumns({"a": Number(0, 1)}).encode({"a": [[0.5, 1.0], [0.5]]}), "several dimensions"),
    (lambda: linear(np.array([[1 + 1j, 0]]), "a"), "not a table of numbers"),
    (lambda: linear([[np.complex64(1 + 1j), 0]], "a"), "not a table of numbers"),
    (lambda: SurveySampler(Survey(SMALL, QUESTIONS), epsilon=1.0).release_rows([[1], [1, 2]]), "rows are not"),
    (lambda: shares(), "columns is empty"),
    (lambda: quantiles("amount", at=[1.0]), "at = 1"),
    (lambda: mean("amount", weight=0.0), "weight = 0"),
    (lambda: SurveySampler(Survey(SMALL, QUESTIONS), epsilon=float("nan")), "epsilon"),
    (lambda: SurveySampler(Survey(SMALL, QUESTIONS), privacy=dc.Gaussian(1.0)), "pure privacy"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_survey_is_refused(make: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        make()


def test_numbers_that_are_no_reports_are_refused() -> None:
    sampler = SurveySampler(Survey({"place": 20}, [shares("place"), shares("place", weight=2.0)]), epsilon=1.0)
    good = sampler.release_rows(np.arange(20), rng=np.random.default_rng(2))
    assert sampler.check_reports(good).tolist() == good.tolist()
    for wrong in ([1 << 63], [-1], [0.5], ["a"], [True], [[1]], [0]):  # 0 is a mask of no outcome
        with pytest.raises(DiscreetError, match="report"):
            sampler.check_reports(wrong)


def test_a_survey_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    columns = {
        "region": ["nörd", "süd"],
        "size": 3,
        "day": Dates("2026-01-01", "2026-01-05"),
        "amount": Number(0, 5, "kg"),
    }
    asked = [
        shares("region", "day"),
        mean("amount", weight=2.0),
        quantiles("amount", at=(0.1, 0.9)),
        linear([[1, 2, 3]], "size"),
    ]
    survey = Survey(columns, asked)
    survey.write(tmp_path / "survey.json")
    again = Survey.read(tmp_path / "survey.json")
    assert again == survey
    assert again.digest == survey.digest
    assert SurveySampler(again, epsilon=1.0) == SurveySampler(survey, epsilon=1.0)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"columns": {}}, "columns and questions"),
        ({"columns": [], "questions": []}, "a JSON object"),
        ({"columns": {"a": {"labls": []}}, "questions": []}, r"columns\['a'\] is not a column"),
        ({"columns": {"a": {"labels": 7}}, "questions": []}, r"columns\['a'\]: labels = 7 is not a list"),
        ({"columns": {"a": {"size": ["x", "y"]}}, "questions": []}, r"columns\['a'\]: size = \['x', 'y'\] is not a whole number"),
        *(
            (
                {"columns": {"a": {"size": 2}}, "questions": [{"linear": "a", "matrix": matrix}]},
                r"questions\[0\]: matrix is not a list of rows of numbers",
            )
            for matrix in (["1", 2], [[True, 0]], [[None, 1]], "12", {"a": 1}, [[1, [2]]])
        ),
        ({"columns": {"a": {"size": 0}}, "questions": [{"shares": "a"}]}, r"columns\['a'\]"),
        ({"columns": {"a": {"size": 2}}, "questions": [{"share": "a"}]}, r"questions\[0\] names 0"),
        ({"columns": {"a": {"size": 2}}, "questions": [{"shares": "a", "cells": 3}]}, "does not know"),
        ({"columns": {"a": {"low": 0, "high": 1}}, "questions": [{"histogram": "a", "cells": 1}]}, r"questions\[0\]: cells"),
        ({"columns": {"a": {"low": 0, "high": 1}}, "questions": [{"mean": ["a", "b"]}]}, "about one column"),
    ],
)  # fmt: skip
def test_a_wrong_survey_file_names_the_field(terms: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        Survey.from_terms(terms)


def rivals_of_a_mean(epsilon: float) -> float:
    """The smallest worst-case variance of Duchi, Jordan and Wainwright's, the piecewise and the hybrid mechanism, on [0, 1]."""
    growth, half, x = math.exp(epsilon), math.exp(epsilon / 2), np.linspace(-1, 1, 401)
    duchi = (((growth + 1) / (growth - 1)) ** 2 - x * x) / 4
    piecewise = (x * x / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)) / 4
    alpha = 1 - 1 / half if epsilon > 0.61 else 0.0
    return min(float(each.max()) for each in (duchi, piecewise, alpha * piecewise + (1 - alpha) * duchi))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 0.61, 0.7, 0.8, 1.0, 1.29, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0])
def test_a_mean_is_as_good_as_the_best_known(epsilon: float) -> None:
    assert choose_windows_and_share_for_mean(math.exp(epsilon))[2] <= 1.0001 * rivals_of_a_mean(epsilon)


@pytest.mark.parametrize(("size", "width"), [(2, 1), (3, 1), (5, 4), (24, 17)])
def test_windows_are_unbiased_and_have_the_stated_variance(size: int, width: int) -> None:
    windows, growth = Windows(size, width), Fraction(7, 2)
    beta = Fraction(windows.block_count) / (windows.block_count + (growth - 1) * width)
    values = windows.unbiased_report_values(float(beta))
    for point in range(size):
        law = np.full(windows.block_count, float(beta) / windows.block_count)
        law[point : point + width] += float(1 - beta) / width
        place = point / (size - 1)
        assert law @ values == pytest.approx(place, abs=1e-12)
        stated = np.interp(place, np.linspace(0, 1, 257), windows.value_variances(float(growth)))
        assert law @ np.square(values) - place**2 == pytest.approx(stated, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0, 8.0])
def test_a_mean_has_the_variance_of_clients_half_of_whom_are_at_either_end(epsilon: float) -> None:
    """The coin asks some of the clients, so their own differences count, and no other population has more of both."""
    sampler = SurveySampler(Survey({"a": 5, "x": Number(0, 1)}, [shares("a"), mean("x")]), epsilon=epsilon)
    rng, last = np.random.default_rng(2), sampler.survey.columns["x"].size - 1
    values, chances = list[Any](), list[Any]()  # of the reports on the mean, at both ends and between
    rows = [5 * cell for cell in (0, last, last // 2, last // 3, last // 10)]
    share = float(sum(part.share for part in sampler.parts if part.question == 1))
    for part, chance, weight in zip(sampler.parts, sampler.exact_shares, sampler.uniform_weights, strict=True):
        if not isinstance(part.blocks, Windows):
            continue
        beta = weight / TOTAL
        values.append(part.blocks.unbiased_report_values(beta))
        for row in rows:
            law = np.full(part.blocks.block_count, beta / part.blocks.block_count)
            for point, probability in part.projection.outcome_probabilities(sampler.survey.columns, row).items():
                law[point : point + part.blocks.width] += float(probability) * (1 - beta) / part.blocks.width
            chances.append(float(chance) / share * law)
    laws = np.array([np.concatenate(chances[row :: len(rows)]) for row in range(len(rows))])
    report_values = np.concatenate(values)

    def variance_of_answer(population: Any) -> float:
        law = np.asarray(population) @ laws
        return float(law @ np.square(report_values) - np.square(law @ report_values)) / share

    assert variance_of_answer([0.5, 0.5, 0, 0, 0]) == pytest.approx(sampler.variance(1), rel=1e-4)
    assert all(
        variance_of_answer(rng.dirichlet(np.full(len(rows), 0.3))) <= sampler.variance(1) * 1.0001 for _ in range(100)
    )


@pytest.mark.parametrize(("branching", "depth"), [(2, 4), (3, 3), (4, 2)])
def test_a_tree_has_the_variance_of_dense_least_squares(branching: int, depth: int) -> None:
    tree, rng = Tree(branching, depth), np.random.default_rng(7)
    amounts = rng.uniform(0.5, 2.0, depth)
    levels = [
        np.kron(np.eye(tree.node_count(d)), np.ones((1, tree.cell_count // tree.node_count(d))))
        for d in range(1, depth + 1)
    ]
    precision = sum(amount * level.T @ level for amount, level in zip(amounts, levels, strict=True))
    one = np.ones((tree.cell_count, 1)) / math.sqrt(tree.cell_count)
    basis = np.linalg.svd(np.eye(tree.cell_count) - one @ one.T)[0][:, :-1]  # the total is known
    covariance = basis @ np.linalg.inv(basis.T @ precision @ basis) @ basis.T
    prefix = np.tril(np.ones((tree.cell_count, tree.cell_count)))
    expected = np.trace(prefix @ covariance @ prefix.T) / tree.cell_count
    assert (tree.variance_cost_by_depth / tree.precision_by_depth(amounts)).sum() == pytest.approx(expected, rel=1e-9)


def test_shares_of_levels_are_the_best() -> None:
    tree, variances = Tree(2, 6), np.array([0.6, 0.9, 1.0, 1.1, 1.1, 1.1])
    found, variance = tree.best_level_shares_and_variance(variances)
    rng = np.random.default_rng(3)
    for _ in range(300):
        others = np.abs(found + rng.normal(0, 0.02, 6)) + 1e-6
        others /= others.sum()
        assert (tree.variance_cost_by_depth / tree.precision_by_depth(others / variances)).sum() >= variance * (
            1 - 1e-3
        )


def test_the_coin_minimises_the_weighted_sum_of_variances() -> None:
    sampler = SurveySampler(Survey({"a": 3, "b": 50}, [shares("a", weight=4.0), shares("b")]), epsilon=1.0)
    alone = [strategy.variance for strategy in sampler.strategies]

    def loss(share: float) -> float:
        return 4.0 * alone[0] / share + alone[1] / (1 - share)

    best = sampler.question_share(0)
    assert all(loss(best) <= loss(best + step) * (1 + 1e-9) for step in (-0.1, -0.01, 0.01, 0.1))
    assert sum(sampler.exact_shares) == 1


def dense_variance(
    columns: SurveyColumns,
    tables: Sequence[tuple[str, ...]],
    noises: Sequence[float],
    amounts: Any,
    names: tuple[str, ...],
) -> float:
    """The mean variance of a cell of the least-squares table: of all rows, by an inverse, with a total that is known."""
    rows = np.arange(columns.size)
    information = np.full((columns.size, columns.size), 1e9)

    def sums(table: tuple[str, ...]) -> Any:
        return np.eye(math.prod(columns.column_sizes(table)))[:, columns.joint_outcomes_of_rows(rows, table)]

    for table, noise, amount in zip(tables, noises, amounts, strict=True):
        information += amount / noise * sums(table).T @ sums(table)
    covariance = sums(names) @ np.linalg.pinv(information, rcond=1e-14, hermitian=True) @ sums(names).T
    return float(np.trace(covariance) / len(covariance))


def test_tables_tell_each_other_as_much_as_dense_least_squares() -> None:
    columns = SurveyColumns({"a": 2, "b": 3, "c": 4, "d": 1})
    tables = [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "d")]
    noises, amounts = [0.5, 1.1, 2.0, 0.9, 1.3], [0.1, 0.3, 0.2, 0.15, 0.25]
    marginals = Marginals(columns, tables, noises)
    for names in (*tables, ("b",), ("a", "c")):
        expected = dense_variance(columns, tables, noises, amounts, names)
        assert marginals.cell_variance(names, amounts) == pytest.approx(expected, rel=1e-5)
    assert marginals.cell_variance(("b", "c"), [1, 1, 0, 0, 1]) == math.inf


@pytest.mark.parametrize(
    ("sizes", "epsilon", "widest"), [((2, 2, 2, 2, 2), 4.0, 3), ((2, 3, 2, 6), 3.0, 3), ((4, 20, 7), 1.0, 2)]
)
def test_no_other_coin_has_a_smaller_sum_of_variances(sizes: Sequence[int], epsilon: float, widest: int) -> None:
    columns = SurveyColumns({f"c{place}": size for place, size in enumerate(sizes)})
    pairs = list(itertools.combinations(columns, 2))
    questions = [*(shares(name, weight=2.0) for name in columns), *(shares(*pair) for pair in pairs)]
    sampler = SurveySampler(Survey(columns, questions), epsilon=epsilon)
    best = sum(question.weight * sampler.variance(place) for place, question in enumerate(questions))
    assert (
        max(
            len(table)
            for table, share in zip(sampler.tables.values(), sampler.exact_shares, strict=True)
            if share > 1e-6
        )
        == widest
    )
    bound, rng = largest_ratio_for_epsilon(epsilon), np.random.default_rng(1)
    tables = [
        columns_in_survey_order(columns, each) for size in (1, 2, 3) for each in itertools.combinations(columns, size)
    ]
    blocks = [best_blocks_for_size(math.prod(columns.column_sizes(table)), bound) for table in tables]
    every = Marginals(columns, tables, [variance_per_contrast(each, float(bound)) for each in blocks])
    told = dict(zip(sampler.tables.values(), map(float, sampler.exact_shares), strict=True))
    coin = np.array([told.get(table, 0.0) for table in tables])

    def loss(amounts: Any) -> float:
        return sum(
            question.weight * every.cell_variance(columns_in_survey_order(columns, question.columns), amounts)
            for question in questions
        )

    assert loss(coin) == pytest.approx(best, rel=1e-9)
    for table in np.eye(len(tables)):
        assert loss(0.999 * coin + 0.001 * table) >= best * (1 - 1e-5)
    for _ in range(100):
        other = np.abs(coin * (1 + rng.normal(0, 0.3, len(coin))))
        assert loss(other / other.sum()) >= best * (1 - 1e-5)


def best_possible_variance(sizes: Sequence[int], tables: Sequence[tuple[int, ...]], epsilon: float) -> float:
    """n times the least mean variance over all epsilon-LDP reports in the uniform population, by all subsets of rows.

    Every column of a mechanism is a sum of columns with two values, e^epsilon on a subset of the rows and 1 elsewhere, times a number; the
    best weights of these subsets, up to permutations of outcomes, are an A-optimal design.
    """
    count, growth = math.prod(sizes), math.exp(epsilon)
    cells = np.stack(np.unravel_index(np.arange(count), tuple(sizes)))
    subsets = np.array(list(itertools.product((0.0, 1.0), repeat=count)))[1:-1]
    fraction = subsets.mean(axis=1)
    effects = sorted(
        {t for table in tables for r in range(1, len(table) + 1) for t in itertools.combinations(table, r)}
    )
    seen, costs = [], []
    for effect in effects:
        same = np.ones((count, count))
        for place, size in enumerate(sizes):
            equal = cells[place][:, None] == cells[place][None, :]
            same *= equal - 1.0 / size if place in effect else 1.0 / size
        dimension = math.prod(sizes[place] - 1 for place in effect)
        squares = np.einsum("ax,xy,ay->a", subsets, same, subsets)
        seen.append((growth - 1) ** 2 * squares / (1 + (growth - 1) * fraction) ** 2 / (count * dimension))
        told = [table for table in tables if set(effect) <= set(table)]
        costs.append(sum(dimension / math.prod(sizes[i] for i in table) ** 2 for table in told) / len(tables))
    information, weights = np.array(seen).T, np.full(len(subsets), 1.0 / len(subsets))
    for _ in range(3000):
        weights *= np.sqrt(information @ (np.array(costs) / np.square(weights @ information)))
        weights /= weights.sum()
    return float((np.array(costs) / (weights @ information)).sum())


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3), (3, 3), (2, 5)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_a_survey_is_near_the_best_possible_report_and_that_is_above_the_bound(
    sizes: tuple[int, ...], epsilon: float
) -> None:
    tables = [each for count in (1, 2) for each in itertools.combinations(range(len(sizes)), count)]
    columns = {f"c{place}": size for place, size in enumerate(sizes)}
    asked = [shares(*(f"c{place}" for place in table)) for table in tables]
    sampler = SurveySampler(Survey(columns, asked), epsilon=epsilon)
    own = float(np.mean([sampler.variance(place) for place in range(len(tables))]))
    best, bound = best_possible_variance(sizes, tables, epsilon), least_variance(sizes, tables, epsilon)
    assert bound <= best * (1 + 1e-6)
    assert best <= own * (1 + 1e-6)
    assert own <= 1.12 * best


@pytest.mark.parametrize("size", [2, 7, 60])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_bound_of_one_table_is_the_least_variance_of_reports(size: int, epsilon: float) -> None:
    least = best_subset_width_and_variance(size, math.exp(epsilon))[1]
    assert least_variance([size], [(0,)], epsilon) == pytest.approx(least, rel=1e-6)


def test_the_coin_is_the_same_on_every_machine() -> None:
    """A client and a curator find it from the survey alone; these are the numbers of the machine that the test was written on."""
    columns = {"a": 2, "b": 3, "c": 7, "x": Number(0, 1)}
    asked = [*(shares(name) for name in "abc"), shares("a", "b"), shares("b", "c"), mean("x")]
    found = [SurveySampler(Survey(columns, asked), epsilon=epsilon).exact_shares for epsilon in (1.0, 4.0)]
    assert [[round(share * (1 << 30)) for share in shares_found] for shares_found in found] == [
        [106372227, 86884763, 177184651, 257926664, 273878540, 72349444, 99145535],
        [1, 1, 1, 386576091, 260815744, 286755405, 19117027, 120477555],
    ]


def test_a_coin_without_room_for_wider_tables_asks_the_questions_alone() -> None:
    columns = SurveyColumns({"a": 2, "b": 2})
    sampler = SurveySampler(Survey(columns, [shares("a"), shares("b", weight=4.0)]), epsilon=4.0)
    assert [part.question for part in sampler.parts] == [0, 1, NO_QUESTION]
    chances, wider = choose_question_shares_and_wider_tables(
        sampler.survey.questions, sampler.strategies, columns, largest_ratio_for_epsilon(4.0), capacity=1 << 40
    )
    assert not wider
    assert chances == pytest.approx([1 / 3, 2 / 3])


def test_questions_of_many_outcomes_share_64_bits() -> None:
    columns = {f"c{place}": 64 for place in range(6)}
    sampler = SurveySampler(Survey(columns, [shares(name) for name in columns]), epsilon=0.5)
    assert {part.blocks.name for part in sampler.parts} == {"ranks"}
    rng = np.random.default_rng(5)
    reports = sampler.release_rows(rng.integers(0, 1 << 36, 2000), rng=rng)
    assert sum(map(len, sampler.split(reports))) == 2000
    pairs = list(itertools.combinations(columns, 2))
    assert SurveySampler(Survey(columns, [shares(*pair) for pair in pairs]), epsilon=0.5)._offsets[-1] < 1 << 64


def test_a_device_draws_what_is_drawn_for_tables_and_is_charged_once(tmp_path: Path) -> None:
    """Frequencies of `release_number` against the exact law, and a ledger that gives the same report again."""
    survey = Survey({"a": 3, "x": Number(0, 1)}, [shares("a"), mean("x")])
    sampler = SurveySampler(survey, epsilon=1.0)
    rows = survey.columns.encode({"a": [0, 2], "x": [0.1, 0.9]})
    draws = 6000
    found = Counter(sampler.release_number(rows) for _ in range(draws))
    law = {
        int(report): float(sum(sampler.probability(int(report), int(row)) for row in rows) / 2)
        for report in sampler.reports()
    }
    assert set(found) <= set(law)
    statistic = sum((found[report] - draws * chance) ** 2 / (draws * chance) for report, chance in law.items())
    assert statistic < chi2.isf(1e-9, len(law) - 1)
    assert sampler.uniform_weight == math.floor(
        sum(share * weight for share, weight in zip(sampler.exact_shares, sampler.uniform_weights, strict=True))
    )
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.5))
    agreement = Agreement.of(sampler)
    held = {"a": [0, 2], "x": [0.1, 0.9]}
    report = ledger.release(sampler, held, agreement=agreement)
    assert ledger.release(sampler, {"a": [1], "x": [0.5]}, agreement=agreement) == report
    other = SurveySampler(Survey({"a": 3}, [shares("a")]), epsilon=1.0)
    with pytest.raises(BudgetError):
        ledger.release(other, {"a": [1]}, agreement=Agreement.of(other))
    with pytest.raises(DiscreetError, match="column 'x'"):
        ledger.release(sampler, {"a": [1], "x": [7.0]}, agreement=agreement, round=1)


def test_times_are_days_at_midnight_alone() -> None:
    columns = SurveyColumns({"day": Dates("2026-01-01", "2026-01-31")})
    midnight = datetime.datetime(2026, 1, 3)
    assert columns.encode({"day": [midnight, datetime.date(2026, 1, 3), "2026-01-03"]}).tolist() == [2, 2, 2]
    for other in (midnight.replace(hour=8), midnight.replace(tzinfo=datetime.UTC)):
        with pytest.raises(DiscreetError, match="day"):
            columns.encode({"day": [other]})


def test_a_missing_date_of_pandas_is_no_day() -> None:
    columns = SurveyColumns({"day": Dates("2026-01-01", "2026-01-31")})
    with pytest.raises(DiscreetError, match="column 'day': records has missing values"):
        columns.encode({"day": [pd.NaT]})
    assert columns.find_row_numbers_of_records([{"day": pd.NaT}, {"day": "2026-01-02"}]).tolist() == [-1, 1]


def test_a_matrix_has_numbers_alone_and_equal_questions_have_equal_hashes() -> None:
    for entries in (["1", "0"], [True, False], [b"1", 0], [1.0, "0"]):
        with pytest.raises(DiscreetError, match="matrix is not a table of numbers"):
            linear([entries], "a")
    assert linear(np.eye(3) > 0, "a") == linear(np.eye(3), "a")
    assert linear([[Fraction(1, 2), 1]], "a") == linear([[0.5, 1.0]], "a")
    assert hash(linear([[0.0, 1.0]], "a")) == hash(linear([[-0.0, 1.0]], "a"))


def test_a_survey_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    survey = Survey({"a": 3}, [shares("a")])
    for name in ("nowhere/survey.json", "\x00", "."):
        with pytest.raises(DiscreetError, match="cannot be written"):
            survey.write(tmp_path / name)
    for text, said in {
        "": "cannot be read: it is not JSON .*; give a file with",
        '{"a": 1, "a": 2}': "cannot be read: .*a",
        "\xff": "cannot be read: it is not JSON",
    }.items():
        (tmp_path / "wrong.json").write_text(text, encoding="latin-1")
        with pytest.raises(DiscreetError, match=rf"^the survey '{tmp_path}/wrong.json' {said}"):
            Survey.read(tmp_path / "wrong.json")
    asked: list[Any] = [survey.write, Survey.read]
    for ask in asked:
        with pytest.raises(DiscreetError, match="path = 3 is not a path"):
            ask(3)


def test_lists_that_are_none_are_refused_before_a_report_is_drawn() -> None:
    sampler = SurveySampler(Survey({"day": Dates("2026-01-01", "2026-01-05")}, [shares("day")]), epsilon=1.0)
    with pytest.raises(DiscreetError, match=r"column 'day' = 3 is not a list; pass a day for each row"):
        sampler.release_table({"day": 3})
    key = fresh_secret().run_key("0" * 64, 1, Question(value="day"))
    with pytest.raises(DiscreetError, match="rows = None is not a list"):
        sampler.release_keyed(key, "a", None, [1])  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="counts = None is not a list"):
        sampler.release_keyed(key, "a", [0], None)  # type: ignore[arg-type]
