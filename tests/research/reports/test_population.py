"""Pictures, page and findings of the population experiment, from records alone."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from discreet.plots._style import save
from discreet.research._reports import move_heights_apart
from discreet.research._reports._population import (
    RIVALS,
    SampleOracleContest,
    best_sample_against_best_oracle_table,
    client_divergences_table,
    estimate_errors_table,
    population_figures,
    population_findings,
    population_page,
    raw_sample_bias_table,
    recorded_mean_error,
    recorded_own_outcome_rates_table,
    rows_by_set,
)
from discreet.research.experiments import RecordedRun, read_records, records_path, run_experiment
from discreet.research.experiments._population import MeanEstimate, PopulationComparison, SetAtBudget
from tests.pictures import assert_picture
from tests.research.experiments.test_population import skewed
from tests.soaking import wide

TINY = PopulationComparison(
    epsilons=(0.5, 1.0, 4.0), repetitions=4, is_quick=True, sets=(skewed(300, 4), skewed(100, 30))
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun[SetAtBudget]:
    folder = tmp_path_factory.mktemp("records")
    run_experiment(TINY, folder)
    return read_records(records_path(TINY, folder), SetAtBudget)


@pytest.mark.slow
def test_every_picture_is_drawn(recorded: RecordedRun[SetAtBudget], tmp_path: Path) -> None:
    drawn = population_figures(recorded)
    assert list(drawn) == ["population", "population-skewed4", "population-skewed30"]
    for name, picture in drawn.items():
        for suffix in wide((".png", ".pdf"), (".pdf",) if name == "population" else (".png",)):
            save(picture, tmp_path / f"{name}{suffix}")
            assert_picture(tmp_path / f"{name}{suffix}")
        assert any("QUICK" in text.get_text() for text in picture.texts)


def test_the_page_stands_alone_and_holds_every_number(recorded: RecordedRun[SetAtBudget]) -> None:
    rows = recorded.rows
    names = ("population", "population-skewed4", "population-skewed30")
    page = population_page(recorded, dict.fromkeys(names, b"picture"))
    assert not re.findall(r"(?:src|href)='(?!data:)", page)
    assert "QUICK RUN" in page
    for row in rows:
        for name in RIVALS:
            for projected in (False, True):
                assert f">{recorded_mean_error(row, name, 'l2', projected=projected):.4f}<" in page
        assert f">{row.realised['optimal']['kl'].median:.4f}<" in page


def with_errors(row: SetAtBudget, **errors: float) -> SetAtBudget:
    """The row with other TV errors, known to within 0.001; rivals that are not named are far off."""
    changed = {
        name: replace(row.errors[name], projected={"tv": MeanEstimate(errors.get(name, 0.9), standard_error=0.001)})
        for name in RIVALS
    }
    return replace(row, errors={**row.errors, **changed}, uniform={"tv": 0.4})


@pytest.mark.parametrize(
    ("errors", "winner", "informative"),
    [
        ({"optimal": 0.1, "subset": 0.2}, "sample", True),
        ({"linear": 0.3, "hashing": 0.2}, "oracle", True),
        ({"mollifier": 0.2, "unary": 0.2041}, None, True),
        ({"mollifier": 0.38, "unary": 0.8}, "sample", False),
    ],
)
def test_who_is_closer(
    recorded: RecordedRun[SetAtBudget], errors: dict[str, float], winner: str | None, informative: bool
) -> None:
    contest = SampleOracleContest(with_errors(recorded.rows[0], **errors))
    assert {contest.best_sampler_name, contest.best_oracle_name} == set(errors)
    assert contest.winner == winner
    assert contest.either_beats_uniform_guess == informative


def test_findings_say_who_wins_where(recorded: RecordedRun[SetAtBudget]) -> None:
    low, middle, high = rows_by_set(recorded.rows)["skewed4"]
    rows = [
        with_errors(low, mollifier=0.123, subset=0.456),
        with_errors(middle, linear=0.321, unary=0.111),
        with_errors(high, optimal=0.05, linear=0.06, subset=0.2),
    ]
    told = dict(population_findings(rows))
    assert "in 1 of 3 cases: skewed at ε = 1." in told["Where an oracle wins."]
    assert "0.321, unary encoding 0.111" in told["Where an oracle wins."]
    assert "closer in 2 of 3 cases" in told["Where a sample wins."]
    assert told["Where a sample wins."].endswith("Q* samples alone do both on skewed at ε = 4.")
    assert "Where samples hardly help." not in told
    only = dict(population_findings([with_errors(low, mollifier=0.39, subset=0.456)]))
    assert "Where an oracle wins." not in only
    assert "In 1 cases" in only["Where samples hardly help."]


def test_small_tables_follow_the_records(recorded: RecordedRun[SetAtBudget]) -> None:
    rows = recorded.rows
    head, body = estimate_errors_table(rows, "mse")
    assert head[2] == "block reports"
    assert [line[2] for line in body] == [f"{1e6 * recorded_mean_error(row, 'reports', 'mse'):,.1f}" for row in rows]
    assert estimate_errors_table(rows)[1][0][3] == f"{recorded_mean_error(rows[0], 'subset'):.3f}"
    head, body = best_sample_against_best_oracle_table(rows)
    assert head == ["set", "ε = 0.5", "ε = 1", "ε = 4"]
    assert [len(line) for line in body] == [4, 4]
    first = SampleOracleContest(rows_by_set(rows)["skewed4"][0])
    assert (
        f"{recorded_mean_error(first.row, first.best_sampler_name):.3f} / {recorded_mean_error(first.row, first.best_oracle_name):.3f}"
        in body[0][1]
    )
    assert raw_sample_bias_table(rows)[0] == ["set, ε = 1", "bias", "total error"]
    assert raw_sample_bias_table(rows)[1][0][1] == f"{rows_by_set(rows)['skewed4'][1].bias['optimal']:.3f}"
    assert recorded_own_outcome_rates_table(rows)[0] == ["set, ε = 4", "Q*", "mollifier", "linear"]
    assert recorded_own_outcome_rates_table(rows)[1][1][3] == f"{rows_by_set(rows)['skewed30'][2].own['linear']:.0%}"
    told = rows_by_set(rows)["skewed30"][2].realised["linear"]["tv"]
    assert client_divergences_table(rows)[1][5][1:][-1] == f"{told.mean:.3f} ({told.worst:.3f})"


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9))
def test_names_are_moved_apart(heights: list[float]) -> None:
    ends = {str(place): height for place, height in enumerate(heights)}
    placed = move_heights_apart(ends, 0.06)
    order = sorted(ends, key=lambda name: ends[name])
    levels = [placed[name] for name in order]
    assert all(above - below >= 0.06 - 1e-9 for below, above in pairwise(levels))
    assert levels[0] >= 0.0
    apart = sorted(heights)
    if all(above - below >= 0.06 for below, above in pairwise(apart)):
        assert levels == pytest.approx(apart)
