"""Dates as values: labels of days, whatever a file or a library calls a date."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.tables import dry_run, sample
from tests.tables.small_tables import SECRET, by_client

FIRST = date(2024, 2, 27)
WEEK = dc.Labels.days(FIRST, "2024-03-04")
TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": WEEK, "epsilon": 1.0, "secret": SECRET}
DAYS = [FIRST + timedelta(row % 7) for row in range(100)]
CLIENTS = [row // 4 for row in range(100)]


def test_days_are_listed() -> None:
    assert WEEK.labels == tuple(
        f"2024-{day}" for day in ("02-27", "02-28", "02-29", "03-01", "03-02", "03-03", "03-04")
    )
    assert dc.Labels.days("2024-01-01", "2024-12-31").size == 366
    strange: list[Any] = ["2024-2-27", "20240227", "yesterday", None, datetime(2024, 2, 27)]
    for wrong in strange:
        with pytest.raises(DiscreetError, match=r"first = .* is no date; write it as 2026-11-17"):
            dc.Labels.days(wrong, "2024-03-04")
    with pytest.raises(DiscreetError, match="comes before"):
        dc.Labels.days("2024-01-02", "2024-01-01")


def columns() -> dict[str, Any]:
    """The same days as every kind of column that holds dates."""
    midnights = [datetime(day.year, day.month, day.day) for day in DAYS]
    return {
        "texts": pa.array([day.isoformat() for day in DAYS]),
        "date32": pa.array(DAYS, pa.date32()),
        "date64": pa.array(DAYS, pa.date64()),
        **{unit: pa.array(midnights, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    }


@pytest.mark.parametrize("kind", columns())
def test_every_kind_of_date_gives_the_same_release(kind: str, tmp_path: Path) -> None:
    plain = pa.table({"client": CLIENTS, "value": columns()["texts"]})
    table = pa.table({"client": CLIENTS, "value": columns()[kind]})
    alike = by_client(sample(plain, **TERMS))
    assert by_client(sample(table, **TERMS)) == alike
    assert by_client(sample(pl.DataFrame(table), **TERMS)) == alike
    pq.write_table(table, tmp_path / "in.parquet")
    assert by_client(sample(tmp_path / "in.parquet", **TERMS)) == alike
    with pa.ipc.new_file(str(tmp_path / "in.arrow"), table.schema) as file:
        file.write_table(table)
    assert by_client(sample(tmp_path / "in.arrow", **TERMS)) == alike
    dated = {**TERMS, "domain": [FIRST + timedelta(day) for day in range(7)]}
    assert by_client(sample(table, **dated)) == alike


def test_lists_of_dates_and_files_that_call_them_differently(tmp_path: Path) -> None:
    found = columns()
    half = {name: column.slice(0, 50) for name, column in found.items()}
    pq.write_table(pa.table({"client": CLIENTS[:50], "value": half["date32"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"client": CLIENTS[50:], "value": found["ms"].slice(50)}), tmp_path / "1.parquet")
    plain = by_client(sample(pa.table({"client": CLIENTS, "value": found["texts"]}), **TERMS))
    assert by_client(sample(tmp_path, **TERMS)) == plain
    lists = pl.DataFrame({"client": CLIENTS, "value": DAYS}).group_by("client").agg("value")
    assert by_client(sample(lists, **TERMS)) == plain


def test_a_time_of_day_is_no_date_and_a_zone_is_refused() -> None:
    noon = pl.DataFrame({"client": [1, 2], "value": [datetime(2024, 2, 27, 12), datetime(2024, 2, 28)]})
    with pytest.raises(DiscreetError, match=r"outside the domain \(1 in 2 rows, such as '2024-02-27T12:00:00'"):
        sample(noon, **TERMS, show_values=True)
    assert dry_run(noon, **TERMS).outside == {"2024-02-27T12:00:00": 1}
    zoned = noon.with_columns(pl.col("value").dt.replace_time_zone("Asia/Tokyo"))
    for given in (zoned, zoned.to_arrow()):
        with pytest.raises(DiscreetError, match=r"times of the time zone Asia/Tokyo.*cast it to dates"):
            sample(given, **TERMS)
    for domain in (7, dc.Interval(0.0, 1.0, cells=2)):
        with pytest.raises(DiscreetError, match="column 'value' holds Date"):
            sample(noon, **{**TERMS, "domain": domain})


def test_a_day_for_the_others() -> None:
    table = pl.DataFrame({"client": [1, 2], "value": [date(1999, 1, 1), FIRST]})
    terms = {**TERMS, "domain": [FIRST, date(2030, 1, 1)], "other": date(2030, 1, 1)}
    assert set(sample(table, **terms)["sample"].to_pylist()) <= {"2024-02-27", "2030-01-01"}
