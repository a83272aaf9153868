"""Rounds by date: every day lies in one round, an agreement without a schedule keeps its id, and a year has its total."""

import hashlib
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, strategies as st

import discreet as dc
from discreet.agreement import Agreement, Schedule
from discreet.collect._catalogue import labelled_agreement_coding_and_sampler
from discreet.errors import DiscreetError
from discreet.tables import Request, sample
from tests.tables.small_tables import SECRET

SAMPLER = dc.OptimalSampler(dc.Simplex(["a", "b"]), epsilon=0.02)
IDENTITY = "445288ea72f4f3621eb2f286f893539c4b2f89d84e42f574e1ea3ae9d7b9386b"
STARTS = st.dates(date(1900, 1, 1), date(2200, 1, 1))


@given(start=STARTS, every=st.sampled_from(["day", "week", "month"]), number=st.integers(1, 4000))
def test_rounds_follow_each_other_without_a_gap(start: date, every: str, number: int) -> None:
    schedule = Schedule(start.replace(day=1).isoformat(), every=every)
    first, last = schedule.first_day(number), schedule.last_day(number)
    assert schedule.number(first) == schedule.number(last.isoformat()) == number
    assert schedule.number(first - timedelta(1)) == number - 1
    assert schedule.number(last + timedelta(1)) == number + 1
    assert schedule.first_day(1).isoformat() == schedule.start


@given(start=STARTS, every=st.sampled_from(["day", "week", "month"]), year=st.integers(1900, 2300))
def test_no_year_has_more_rounds_than_are_stated(start: date, every: str, year: int) -> None:
    schedule = Schedule(start.replace(day=1).isoformat(), every=every)
    numbers = {schedule.number(date(year, 1, 1) + timedelta(day)) for day in range(365)} | {
        schedule.number(date(year, 12, 31))
    }
    begun = [number for number in numbers if number >= 1 and schedule.first_day(number).year == year]
    assert len(begun) <= schedule.most_in_a_year


def test_an_agreement_with_a_schedule_reads_the_same_for_ever() -> None:
    path = Path(__file__).parent / "agreements" / "2" / "schedule.json"
    made = Agreement.of(SAMPLER, rounds=365, schedule=Schedule("2026-01-01", every="day"))
    read = Agreement.read(path)
    assert read == made
    assert path.read_bytes() == made.text.encode() + b"\n"
    assert read.id == hashlib.sha256(made.canonical.encode()).hexdigest() == IDENTITY
    read.check_sampler(SAMPLER)
    assert "schedule" not in Agreement.of(SAMPLER, rounds=365).document  # so that agreements made before keep their ids


def test_a_date_is_a_round() -> None:
    agreement = Agreement.of(SAMPLER, rounds=365, schedule=Schedule("2026-01-01", every="day"))
    assert agreement.round_number("2026-11-17") == agreement.round_number(date(2026, 11, 17)) == 321
    assert agreement.round_number(321) == 321
    assert (str(agreement.in_a_year), agreement.rounds_in_a_year) == ("7.3-LDP", 365)
    longer = Agreement.of(SAMPLER, rounds=500, schedule=Schedule("2026-01-01", every="day"))
    assert (str(longer.in_a_year), str(longer.privacy_of_all_rounds)) == ("7.32-LDP", "10-LDP")
    for outside in ("2025-12-31", "2027-01-01"):
        with pytest.raises(DiscreetError, match="none of the 365 rounds agreed on, from 2026-01-01 to 2026-12-31"):
            agreement.round_number(outside)
    strange: list[Any] = ["today", "2026-11-17T00:00:00", "20261117", "", datetime(2026, 11, 17)]
    for wrong in strange:
        with pytest.raises(DiscreetError, match="is no date; write it as 2026-11-17"):
            agreement.round_number(wrong)
    with pytest.raises(DiscreetError, match="the agreement has no schedule"):
        Agreement.of(SAMPLER, rounds=3).round_number("2026-11-17")


@pytest.mark.parametrize(
    ("start", "every", "told"),
    [
        ("2026-01-02", "month", "not the first of a month"),
        ("2026-13-01", "day", "schedule.start = '2026-13-01' is no date"),
        ("2026-01-01", "hour", "schedule.every = 'hour' is not one of day, week, month"),
        (5, "day", "schedule.start = 5 is no date"),
    ],
)
def test_schedules_that_are_none_are_refused(start: Any, every: str, told: str) -> None:
    with pytest.raises(DiscreetError, match=told):
        Schedule(start, every=every)
    with pytest.raises(DiscreetError, match="schedule = "):
        Agreement.of(SAMPLER, schedule=start)


def test_a_release_by_date_is_that_of_its_number() -> None:
    agreement = Agreement.of(SAMPLER, rounds=365, schedule=Schedule("2026-01-01", every="day"))
    table = {"client": list(range(200)), "value": ["a", "b"] * 100}
    terms: dict[str, Any] = {"client": "client", "value": "value", "agreement": agreement, "secret": SECRET}
    by_date = sample(pl.DataFrame(table), **terms, round="2026-11-17")
    assert by_date.equals(sample(pl.DataFrame(table), **terms, round=321))
    assert not by_date.equals(sample(pl.DataFrame(table), **terms, round=date(2026, 11, 16)))
    assert Request(**terms, round=date(2026, 1, 1)).round == 1
    with pytest.raises(DiscreetError, match="a date is a round only under an agreement"):
        Request(client="client", value="value", domain=["a", "b"], epsilon=1.0, round="2026-01-01")


def test_a_collection_opens_its_rounds_by_number() -> None:
    with pytest.raises(DiscreetError, match="agree without --start"):
        labelled_agreement_coding_and_sampler(
            Agreement.of(SAMPLER, rounds=3, schedule=Schedule("2026-01-01", every="day"))
        )


@pytest.mark.parametrize("number", [0, -3, 2.5, None, "1", True])
def test_days_of_no_round_are_refused(number: Any) -> None:
    schedule = Schedule("2026-01-01", "week")
    for ask in (schedule.first_day, schedule.last_day):
        with pytest.raises(dc.DiscreetError, match="number = "):
            ask(number)
