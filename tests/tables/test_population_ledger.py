"""Releases through a population's ledger: what is stored is what leaves, whatever the data say by then."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import DiscreetError
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import PopulationLedger
from discreet.ledger._population_ledger import read_budget_and_runs
from discreet.tables import Request, Secret, read_secret, sample, sample_file, write_secret
from tests.tables.small_tables import by_client, rows

TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": 40, "epsilon": 0.5, "rounds": 9}


@pytest.fixture
def ledger(tmp_path: Path) -> PopulationLedger:
    write_secret(tmp_path / "secret")
    return PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=read_secret(tmp_path / "secret"))


def released(ledger: PopulationLedger, table: Any, **terms: Any) -> dict[Any, Any]:
    return by_client(sample(table, ledger=ledger, **{**TERMS, **terms}))


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_a_round_is_answered_from_the_ledger_whatever_the_data(ledger: PopulationLedger, named: bool) -> None:
    one, two = (pl.DataFrame(rows(clients=200, seed=seed)) for seed in (0, 1))
    if named:
        one, two = (table.with_columns(pl.col("client").cast(pl.String)) for table in (one, two))
    first = released(ledger, one)
    assert released(ledger, two) == first
    half = two.filter(pl.col("client").cast(pl.Int64) % 2 == 0)
    assert released(ledger, half) == {client: value for client, value in first.items() if int(client) % 2 == 0}
    more = pl.concat([two, two.with_columns((pl.col("client").cast(pl.Int64) + 1000).cast(two.schema["client"]))])
    both = released(ledger, more)
    assert {client: both[client] for client in first} == first
    assert len(both) == 400
    assert [run.clients for run in read_budget_and_runs(ledger.folder)[1]] == [200, 200]
    again = released(ledger, one, round=2)
    assert np.mean([again[client] == sample for client, sample in first.items()]) < 0.9


def test_what_is_drawn_is_what_is_drawn_without_it(ledger: PopulationLedger) -> None:
    table = pa.table(rows())
    without = sample(table, secret=Secret(ledger.secret.value), **TERMS)
    assert sample(table, ledger=ledger, **TERMS).equals(without)


def test_cells_and_samples_without_clients_repeat_too(ledger: PopulationLedger) -> None:
    """Points within cells are stored; and an order that told of the data would tell that they have changed."""
    tables = [
        pl.DataFrame({"client": range(3000), "value": np.random.default_rng(seed).random(3000)}) for seed in (0, 1)
    ]
    terms = {"domain": dc.Interval(0.0, 1.0, cells=10), "epsilon": 0.4}
    found = [released(ledger, table, **terms) for table in tables]
    assert found[0] == found[1]
    dropped = [sample(table, ledger=ledger, drop_client=True, **{**TERMS, **terms}) for table in tables]
    assert dropped[0].equals(dropped[1])
    points = dropped[0].column("sample").to_pylist()
    assert sorted(points) == sorted(found[0].values())
    other = sample(tables[0], ledger=ledger, drop_client=True, **{**TERMS, **terms, "round": 2})
    number = {point: client for client, point in found[0].items()}
    ranks = np.argsort([number[point] for point in points])
    assert abs(np.corrcoef(ranks, np.arange(3000))[0, 1]) < 0.1  # the order has nothing to do with that of the clients
    assert other.num_rows == 3000


def test_clients_over_budget(ledger: PopulationLedger, tmp_path: Path) -> None:
    table = pl.DataFrame(rows(clients=100))
    few = table.filter(pl.col("client") < 30)
    released(ledger, table)
    released(ledger, few, round=2)
    with pytest.raises(BudgetError, match="30 of 100 clients would spend more than epsilon = 1"):
        released(ledger, table, round=3)
    assert set(released(ledger, table, round=3, over_budget="drop")) == set(range(30, 100))
    table.write_parquet(tmp_path / "in.parquet")
    request = Request(**TERMS, round=4)
    arguments = (str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet"), request)
    with pytest.raises(BudgetError, match="100 of 100 clients"):
        sample_file(*arguments, ledger=ledger)
    assert not (tmp_path / "out.parquet").exists()
    summary = sample_file(*arguments, ledger=ledger, over_budget="drop")
    assert (summary.over_budget, summary.clients) == (100, 0)
    assert pl.read_parquet(tmp_path / "out.parquet").height == 0


def test_the_output_appears_after_the_charge_and_not_without_it(
    ledger: PopulationLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.DataFrame(rows()).write_parquet(tmp_path / "in.parquet")

    def failing(*_: object) -> None:
        raise LedgerError("the power is gone")

    monkeypatch.setattr("discreet.ledger._book.BookWriter.add_line", failing)
    with pytest.raises(LedgerError, match="the power is gone"):
        sample_file(str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet"), Request(**TERMS), ledger=ledger)
    assert not (tmp_path / "out.parquet").exists()


def test_a_secret_with_a_ledger_releases_through_it_alone(ledger: PopulationLedger, tmp_path: Path) -> None:
    table = pa.table(rows())
    with pytest.raises(LedgerError, match="this secret serves a ledger"):
        sample(table, secret=read_secret(tmp_path / "secret"), **TERMS)
    with pytest.raises(DiscreetError, match="not the one that the ledger was created with"):
        sample(table, secret=Secret(bytes(32)), ledger=ledger, **TERMS)
    with pytest.raises(DiscreetError, match="is not a PopulationLedger"):
        sample(table, ledger=ledger.folder, **TERMS)  # type: ignore[arg-type]
    write_secret(tmp_path / "used")
    sample(table, secret=read_secret(tmp_path / "used"), **TERMS)
    with pytest.raises(LedgerError, match="without a ledger"):
        PopulationLedger.create(tmp_path / "late", budget=1.0, secret=read_secret(tmp_path / "used"))


def test_the_output_does_not_lie_in_the_ledger(ledger: PopulationLedger, tmp_path: Path) -> None:
    pl.DataFrame(rows()).write_parquet(tmp_path / "in.parquet")
    for name in ("book", "new.parquet"):
        with pytest.raises(DiscreetError, match="would lie in the ledger"):
            sample_file(
                str(tmp_path / "in.parquet"), str(ledger.folder / name), Request(**TERMS), ledger=ledger,
                output_format="parquet", replace=True,
            )  # fmt: skip


def test_no_name_of_a_client_is_in_the_folder(ledger: PopulationLedger) -> None:
    names = [f"somebody called {number}" for number in range(500)]
    released(ledger, pl.DataFrame({"client": names, "value": [1] * 500}))
    assert not any(b"somebody" in path.read_bytes() for path in ledger.folder.iterdir())
