"""Tables of several columns under one survey: the same reports by every code, from the rows that each client holds."""

import datetime
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from discreet._base.kernels import Code, force_implementation
from discreet.agreement import Agreement
from discreet.errors import DiscreetError
from discreet.ledger import PopulationLedger
from discreet.release import Question, Secret
from discreet.survey import Dates, Number, Survey, SurveySampler, mean, quantiles, shares
from discreet.tables import Release, Request, dry_run, sample

SECRET = Secret(bytes(range(32)))
LETTERS = [f"letter {number}" for number in range(1000)]
COLUMNS: dict[str, Any] = {
    "region": ["north", "south", "west"],
    "letter": LETTERS,
    "hour": 24,
    "day": Dates("2026-01-01", "2026-12-31"),
    "amount": Number(0, 500, "euro"),
    "delay": Number(-30, 90, "minutes"),
}
QUESTIONS = [shares("region"), shares("region", "hour"), shares("letter"), mean("amount"), quantiles("delay")]


def survey() -> Survey:
    """More than 2^32 different rows."""
    return Survey(COLUMNS, QUESTIONS)


def table(rows: int = 400, clients: int = 90, seed: int = 5) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    days = np.datetime64("2026-01-01") + rng.integers(0, 365, rows)
    return pl.DataFrame(
        {
            "client": [f"c{number}" for number in rng.integers(0, clients, rows)],
            "region": rng.choice(["north", "south", "west"], rows),
            "letter": rng.choice(LETTERS, rows),
            "hour": rng.integers(0, 24, rows),
            "day": days.astype("datetime64[D]"),
            "amount": np.round(rng.uniform(0, 500, rows), 2),
            "delay": rng.integers(-30, 91, rows).astype(float),
            "n": rng.integers(0, 4, rows),
            "unused": rng.integers(0, 4, rows),
        }
    )


def expected(frame: pl.DataFrame, agreement: Agreement, *, count: str | None = None) -> dict[str, int]:
    """The reports one by one, as `release_keyed` gives them."""
    sampler = agreement.survey_sampler()
    question = Question(value='["region", "letter", "hour", "day", "amount", "delay"]', count=count)
    key = SECRET.run_key(agreement.id, 1, question)
    numbers = sampler.survey.columns.encode(frame).tolist()
    held: dict[str, Counter[int]] = {}
    for client, row, often in zip(frame["client"], numbers, frame[count] if count else [1] * len(numbers), strict=True):
        held.setdefault(client, Counter())[row] += often
    return {
        client: sampler.release_keyed(key, client, list(rows), list(rows.values()))
        for client, rows in held.items()
        if sum(rows.values())
    }


@pytest.mark.parametrize("count", [None, "n"])
@pytest.mark.parametrize("code", list(Code))
def test_a_table_has_the_reports_of_its_clients(count: str | None, code: Code) -> None:
    frame = table()
    agreement = Agreement.of(SurveySampler(survey(), epsilon=1.0))
    with force_implementation(code):
        found = sample(frame, client="client", agreement=agreement, secret=SECRET, count=count)
    assert found.column_names == ["client", "report", "agreement"]
    assert found.schema.field("report").type == pa.uint64()
    drawn = dict(zip(found["client"].to_pylist(), found["report"].to_pylist(), strict=True))
    wanted = expected(frame, agreement, count=count)
    assert {client: drawn[client] for client in wanted} == wanted
    agreement.survey_sampler().check_reports(list(drawn.values()))


def test_a_survey_is_given_in_three_ways() -> None:
    frame = table(60, 20)
    agreement = Agreement.of(SurveySampler(survey(), epsilon=1.0))
    ways: list[dict[str, Any]] = [
        {"agreement": agreement},
        {"survey": survey(), "epsilon": 1.0},
        {"sampler": SurveySampler(survey(), epsilon=1.0)},
    ]
    found = [sample(frame, client="client", secret=SECRET, **way) for way in ways]
    assert all(each.equals(found[0]) for each in found)
    assert Agreement.from_json(found[0].schema.metadata[b"discreet.agreement"].decode()) == agreement


def test_csv_and_frames_have_the_same_reports(tmp_path: Path) -> None:
    frame = table()
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    terms: dict[str, Any] = {"client": "client", "survey": survey(), "epsilon": 1.0, "secret": SECRET}
    found = [sample(given, **terms) for given in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet")]
    assert found[0].num_rows == frame["client"].n_unique()
    assert found[1].equals(found[0])
    assert found[2].equals(found[0])


@pytest.mark.parametrize("code", list(Code))
def test_listed_clients_without_rows_report_too(code: Code) -> None:
    frame = table(50, 20)
    everybody = [f"c{number}" for number in range(40)]
    with force_implementation(code):
        found = sample(frame, client="client", survey=survey(), epsilon=1.0, secret=SECRET, clients=everybody)
    assert sorted(found["client"].to_pylist()) == sorted(everybody)
    agreement = Agreement.of(SurveySampler(survey(), epsilon=1.0))
    drawn = dict(zip(found["client"].to_pylist(), found["report"].to_pylist(), strict=True))
    assert {client: drawn[client] for client in expected(frame, agreement)} == expected(frame, agreement)


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("region", "east", "column 'region' holds values outside the domain"),
        ("region", None, "column 'region' holds nulls"),
        ("hour", 24, "column 'hour' holds values outside"),
        ("amount", 500.01, "column 'amount' holds values outside"),
        ("amount", float("nan"), "column 'amount' holds NaN"),
        ("day", datetime.date(2027, 1, 1), "column 'day' holds values outside"),
    ],
)
def test_a_bad_value_is_an_error_that_names_its_column(column: str, value: Any, match: str) -> None:
    frame = table(20, 10)
    bad = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(pl.lit(value, frame.schema[column])).otherwise(column).alias(column)
    )
    with pytest.raises(DiscreetError, match=match):
        sample(bad, client="client", survey=survey(), epsilon=1.0)


def test_rows_with_nulls_are_left_out_if_asked_and_numbers_go_to_the_nearest_end() -> None:
    frame = table(200, 40)
    bad = frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise("region").alias("region"),
        (pl.col("amount") + 200.0).alias("amount"),
    )
    terms: dict[str, Any] = {"client": "client", "survey": survey(), "epsilon": 1.0, "secret": SECRET}
    release = Release(bad, Request(**terms, nulls="drop", other="nearest"))
    found = release.table()
    kept = bad.filter(pl.col("region").is_not_null()).with_columns(pl.col("amount").clip(0, 500))
    assert found.equals(sample(kept, **terms))
    assert release.summary.nulls == bad.height - kept.height
    assert release.summary.outside == int((bad["amount"] > 500).sum())


def test_a_ledger_charges_a_survey_once(tmp_path: Path) -> None:
    frame = table(100, 30)
    ledger = PopulationLedger.create(tmp_path / "ledger", budget=1.5, secret=SECRET)
    terms: dict[str, Any] = {"client": "client", "survey": survey(), "epsilon": 1.0, "ledger": ledger, "secret": SECRET}
    first, second = sample(frame, **terms), sample(table(100, 30, seed=6), **terms)
    known = dict(zip(first["client"].to_pylist(), first["report"].to_pylist(), strict=True))
    again = dict(zip(second["client"].to_pylist(), second["report"].to_pylist(), strict=True))
    assert all(again[client] == report for client, report in known.items() if client in again)
    other = Survey(COLUMNS, [shares("region")])
    with pytest.raises(DiscreetError, match="budget"):
        sample(frame, client="client", survey=other, epsilon=1.0, ledger=ledger, secret=SECRET)


def test_what_a_survey_has_no_meaning_for_is_refused() -> None:
    frame = table(10, 5)
    terms: dict[str, Any] = {"client": "client", "survey": survey(), "epsilon": 1.0}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"value": "region"}, "value .* has no meaning for a survey"),
        ({"domain": 3}, "domain .* has no meaning for a survey"),
        ({"other": "north"}, "no rule for a survey"),
        ({"nulls": "other"}, "no rule for a survey"),
        ({"goal": "clients"}, "a survey serves the population"),
        ({"mechanism": "optimal"}, "a survey serves the population"),
        ({"family": 3}, "give one of them"),
    ]
    for more, match in refused:
        with pytest.raises(DiscreetError, match=match):
            sample(frame, **{**terms, **more})
    with pytest.raises(DiscreetError, match="column 'delay' is not in"):
        sample(frame.drop("delay"), **terms)
    with pytest.raises(DiscreetError, match="holds lists"):
        sample(frame.with_columns(pl.concat_list("region")), **terms)


def test_a_dry_run_names_the_columns() -> None:
    frame = table(30, 10).with_columns(region=pl.lit("east"), hour=pl.lit(30))
    for source in (frame, frame.to_arrow().to_reader(max_chunksize=7)):  # the second is read but once
        found = dry_run(source, client="client", survey=survey(), epsilon=1.0)
        assert found.rows == 30
        assert found.outside == {"region: east": 30, "hour: 30": 30}


def test_another_column_is_another_question() -> None:
    """Surveys that differ in a question alone have keys of their own, so their reports are independent draws."""
    one = Agreement.of(SurveySampler(survey(), epsilon=1.0))
    two = Agreement.of(SurveySampler(Survey(COLUMNS, QUESTIONS[:-1]), epsilon=1.0))
    assert one.id != two.id
    assert replace(one, purpose="x").id != one.id
