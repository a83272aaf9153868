"""Surveys by groups, within private groups, and their changes: intervals hold, and shares add up."""

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.estimation import answer_groups, answer_survey, shares_within, survey_change
from discreet.survey import Number, Survey, SurveySampler, mean, shares
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")

SURVEY = Survey(
    {"region": ["north", "south", "west"], "drink": 4, "amount": Number(0, 10)},
    [shares("region"), shares("drink", "region"), mean("amount")],
)
SAMPLER = SurveySampler(SURVEY, epsilon=2.0)
LAW = np.array([[0.3, 0.1, 0.05, 0.05], [0.02, 0.2, 0.05, 0.03], [0.1, 0.02, 0.03, 0.05]])  # region, drink


def _reports(law: np.ndarray, clients: int, rng: np.random.Generator) -> np.ndarray:
    cells = rng.choice(law.size, clients, p=law.ravel())
    region, drink = np.divmod(cells, 4)
    table = {
        "region": np.array(["north", "south", "west"])[region],
        "drink": drink,
        "amount": rng.uniform(0, 10, clients),
    }
    return SAMPLER.release_table(table, rng=rng)


def test_shares_within_private_groups_are_covered_and_add_up() -> None:
    rng = np.random.default_rng(1)
    missed, repetitions = 0, wide(400, 30)
    truth = LAW / LAW.sum(axis=1, keepdims=True)
    for _ in range(repetitions):
        found = shares_within(answer_survey(SAMPLER, _reports(LAW, 4000, rng)), 1, "region")
        low, high = (np.array([getattr(law, end) for law in found.values()]) for end in ("all_low", "all_high"))
        missed += bool(((truth < low) | (truth > high)).any())
        for law in found.values():
            assert law.estimate.sum() == pytest.approx(1.0)
    assert missed <= 0.05 * repetitions + 3 * np.sqrt(0.05 * repetitions)


def test_within_another_column_of_the_same_question() -> None:
    rng = np.random.default_rng(2)
    answers = answer_survey(SAMPLER, _reports(LAW, 200_000, rng))
    found = shares_within(answers, 1, "drink")
    truth = (LAW / LAW.sum(axis=0)).T
    for drink, law in found.items():
        assert law.estimate == pytest.approx(truth[drink], abs=0.1)
    narrower = shares_within(answers, 1, "region")["north"]
    assert (narrower.all_high - narrower.all_low < 0.5).all()


def test_a_change_covers_the_truth_whoever_the_clients_are() -> None:
    rng = np.random.default_rng(3)
    other = LAW[:, ::-1]
    missed, repetitions = 0, wide(300, 10)
    for _ in range(repetitions):
        first = _reports(LAW, 3000, rng)
        found = survey_change(SAMPLER, first, SAMPLER, _reports(other, 3000, rng))
        law, change = found.laws[1], (other - LAW).T.ravel()
        missed += bool(((change < law.all_low) | (change > law.all_high)).any())
        same = survey_change(SAMPLER, first, SAMPLER, first)
        assert all(np.abs(each.estimate).max() == 0.0 for each in same.laws)
    assert missed <= 0.05 * repetitions + 3 * np.sqrt(0.05 * repetitions)


def test_intervals_of_groups_hold_for_all_groups() -> None:
    rng = np.random.default_rng(4)
    reports = _reports(LAW, 3000, rng)
    alone = answer_survey(SAMPLER, reports)
    groups = answer_groups(SAMPLER, {"a": reports, "b": _reports(LAW, 500, rng)})
    assert list(groups) == ["a", "b"]
    one, both = alone[0].law, groups["a"][0].law
    assert (both.low == one.low).all()
    assert (both.all_low < one.all_low).all()
    assert (both.all_high > one.all_high).all()


def test_what_has_no_meaning_is_refused() -> None:
    rng = np.random.default_rng(5)
    reports = _reports(LAW, 100, rng)
    found = answer_survey(SAMPLER, reports)
    for place, column in ((0, "region"), (1, "amount"), (2, "amount"), (3, "region")):
        with pytest.raises(DiscreetError):
            shares_within(found, place, column)
    other = SurveySampler(Survey({"region": 3}, [shares("region")]), epsilon=1.0)
    with pytest.raises(DiscreetError, match="two surveys"):
        survey_change(SAMPLER, reports, other, other.release_rows([0, 1]))
    with pytest.raises(DiscreetError, match="at least one group"):
        answer_groups(SAMPLER, {})
    with pytest.raises(DiscreetError, match="no reports"):
        answer_groups(SAMPLER, {"a": []})


def test_shares_within_are_ordered_where_cells_contradict_each_other() -> None:
    """Reports that no honest clients send: every cell is certain to have all clients, or none."""
    sampler = SurveySampler(Survey({"a": 2, "b": 3}, [shares("a", "b")]), epsilon=0.3)
    for report in sampler.reports()[:20].tolist():
        for law in shares_within(answer_survey(sampler, [report] * 2000), 0, "b").values():
            assert (law.low <= law.high).all()
            assert 0.0 <= law.low.min() <= law.high.max() <= 1.0
