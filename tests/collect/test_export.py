"""An export: as many rows of each outcome as were counted, which an estimate reads as the service's counts."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import DiscreetError
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect import export, open_store
from discreet.collect._catalogue import Catalogue
from discreet.collect._results import json_document_of_estimate
from discreet.collect._sqlite import SqliteStore
from discreet.collect._store import Store
from discreet.estimation._sample_tables import coding_and_sampler, tally_samples
from discreet.tables._sources._opening import file_source
from tests.collect.behaviour import DAY, agreed, arrival
from tests.soaking import wide


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


def filled(store: Store, agreement: Agreement, counts: Any) -> None:
    """Count so many samples of each outcome."""
    store.add(agreement)
    outcomes = np.repeat(np.arange(len(counts)), counts).tolist()
    store.count_arrivals(agreement.id, 1, [arrival(number, outcome) for number, outcome in enumerate(outcomes)], DAY)


def read_back(path: Path) -> list[int]:
    """The counts that `discreet estimate` finds in a file."""
    source = file_source(str(path))
    assert source.agreement is not None
    agreement = Agreement.from_json(source.agreement)
    coding, _ = coding_and_sampler(agreement)
    found = tally_samples(source, agreement, coding)
    assert found.named
    assert found.distinct
    return [int(count) for count in found.counts]


SAMPLERS: dict[str, Callable[[], Any]] = {
    "numbers": lambda: dc.LinearSampler(dc.Simplex(7), epsilon=1.0),
    "labels": lambda: dc.LinearSampler(dc.Simplex(["rot", "grün", "", "1", "a,b", 'q"']), epsilon=1.0),
    "whole labels": lambda: dc.LinearSampler(dc.Simplex([5, -3, 2**62]), epsilon=1.0),
    "cells": lambda: dc.LinearSampler(dc.Simplex(dc.Interval(-0.1, 0.7, cells=1000)), epsilon=1.0),
    "narrow cells": lambda: dc.OptimalSampler(dc.Simplex(dc.Interval(1.0, 1.0 + 2.0**-40, cells=900)), epsilon=1.0),
    "wide cells": lambda: dc.OptimalSampler(dc.Simplex(dc.Interval(-1e90, 1e90, cells=333)), epsilon=1.0),
    "line": lambda: dc.OptimalSampler(dc.GaussianMixtures(1, radius=1.0, scale=1.0, box=(-3, 3)), epsilon=1.0),
    "peaks": lambda: dc.OptimalSampler(dc.GaussianMixtures(1, radius=5.0, scale=0.01, box=(-6, 6)), epsilon=2.0),
    "laplace": lambda: dc.OptimalSampler(dc.LaplaceMixtures(1, radius=1.0, scale=0.3, box=(-2, 2)), epsilon=0.5),
    "points": lambda: dc.OptimalSampler(
        dc.GaussianMixtures(1, radius=1.0, scale=1.0, box=(-3, 3)), epsilon=1.0, discretisation=dc.Points(500, seed=3)
    ),
    "designed": lambda: dc.OptimalSampler(
        dc.Band([1.0, 2.0, 3.0, 0.5], lower=0.0, upper=3.0, any_client=True), epsilon=1.0
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_outcome_is_read_back(store: Store, tmp_path: Path, name: str) -> None:
    """All outcomes occur, each in its own number; for cells that is a point of each, which must lie in it."""
    agreement = Agreement.of(SAMPLERS[name]())
    store.add(agreement)
    size = len(store.outcome_counts(agreement.id, 1))
    counts = 1 + np.arange(size) % 3
    filled(store, agreement, counts)
    for ending in ("parquet", "arrow"):
        made = export(store, tmp_path / f"out.{ending}")
        assert (made.agreement.id, made.round, made.samples) == (agreement.id, 1, counts.sum())
        assert read_back(tmp_path / f"out.{ending}") == counts.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "cells", "line", "designed"])
def test_an_estimate_of_it_is_the_service_s(store: Store, tmp_path: Path, name: str) -> None:
    agreement = Agreement.of(SAMPLERS[name]())
    store.add(agreement)
    size = len(store.outcome_counts(agreement.id, 1))
    filled(store, agreement, np.random.default_rng(1).integers(0, 40, size))
    export(store, tmp_path / "out.parquet")
    (collected,) = Catalogue(store, [1]).all_agreements
    told = json_document_of_estimate(
        collected.stored_agreement, collected.sampler, store.outcome_counts(agreement.id, 1), 0.9
    )
    asked = [part for each in told["statistics"] for part in ("--statistic", each["name"])]
    assert bool(asked) == (name in ("cells", "line") and told["identifiable"])
    options = ["--confidence", "0.9", "--json", *asked]
    printed = CliRunner().invoke(app, ["estimate", str(tmp_path / "out.parquet"), *options])
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.stdout) == json.loads(json.dumps(told))


def test_rows_are_numbered_in_an_order_that_says_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outcomes are spread over the whole file, and over its parts where it is written in several."""
    monkeypatch.setattr("discreet.collect._results._ROWS", 1000)
    first = agreed(2)
    filled(store, first, [5_000, 4_500])
    orders = []
    for _ in range(2):
        export(store, tmp_path / "out.parquet", replace=True)
        frame = pl.read_parquet(tmp_path / "out.parquet")
        assert frame["client"].to_list() == list(range(9_500))
        assert frame["agreement"].unique().to_list() == [first.id]
        assert frame["sample"].sum() == 4_500
        assert 600 < frame["sample"][:1500].sum() < 820  # 710 give or take 18: past 6 standard deviations
        orders.append(frame["sample"].to_list())
    assert orders[0] != orders[1]


def test_which_agreement_and_which_round(store: Store, tmp_path: Path) -> None:
    first, second = agreed(3, rounds=2), agreed(3, epsilon=0.5)
    store.add(first)
    store.add(second, follows=first.id)
    store.count_arrivals(first.id, 1, [arrival("ann", 1)], DAY)
    store.count_arrivals(first.id, 2, [arrival("ann", 2)], DAY)
    store.count_arrivals(second.id, 1, [arrival("bob", 0)], DAY)
    for number, (chosen, round_number, counts) in enumerate(
        [(None, 1, [1, 0, 0]), (second.id, 1, [1, 0, 0]), (first.id[:12], 1, [0, 1, 0]), (first.id, 2, [0, 0, 1])]
    ):
        export(store, tmp_path / f"{number}.parquet", agreement=chosen, round=round_number)
        assert read_back(tmp_path / f"{number}.parquet") == counts
    wrong: Any = (first.id[:11], "", "0" * 64, first.id + "0", 3, b"0")
    for chosen in wrong:
        with pytest.raises(DiscreetError, match="is not the id of one in the store"):
            export(store, tmp_path / "out.parquet", agreement=chosen)
    with pytest.raises(DiscreetError, match=r"first digits \(discreet agree FILE --check prints that of a file\)"):
        export(store, tmp_path / "out.parquet", agreement="lunch.json")
    with pytest.raises(DiscreetError, match="round = 2 is more than the 1 agreed on"):
        export(store, tmp_path / "out.parquet", round=2)
    assert not (tmp_path / "out.parquet").exists()


def test_nothing_is_written_where_there_is_nothing_or_where_it_may_not(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(DiscreetError, match="the store holds no agreement yet"):
        export(store, out)
    store.add(agreed(3))
    with pytest.raises(DiscreetError, match="has no samples in round 1; there is nothing to export"):
        export(store, out)
    assert not out.exists()
    filled(store, agreed(3), [1, 2, 3])
    out.write_bytes(b"mine")
    with pytest.raises(DiscreetError, match="exists already"):
        export(store, out)
    assert out.read_bytes() == b"mine"
    export(store, out, replace=True)
    assert read_back(out) == [1, 2, 3]
    for target, says in {
        "out": "ends in none of",
        "-": "name a file",
        str(tmp_path / "folder.parquet"): "is a folder",
    }.items():
        (tmp_path / "folder.parquet").mkdir(exist_ok=True)
        with pytest.raises(DiscreetError, match=says):
            export(store, target, replace=True)


@pytest.mark.parametrize("store", ["store.db", Path("store.db"), None, 3])
def test_a_store_has_to_be_open(store: Any, tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match="is not an open store"):
        export(store, tmp_path / "out.parquet")


def test_the_store_itself_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "store.parquet"
    store = SqliteStore(path)
    filled(store, agreed(3), [1, 2, 3])
    with pytest.raises(DiscreetError, match="would replace the store"):
        export(store, path, replace=True)
    assert store.outcome_counts(agreed(3).id, 1).tolist() == [1, 2, 3]
    store.close()


@pytest.mark.slow
def test_millions_of_samples_take_a_bounded_memory(tmp_path: Path) -> None:
    """Counts are set in the file itself: what matters is how an export of so many is written."""
    few, all_of_them = wide((2 * 10**6, 10**7), (10**6, 5 * 10**6))
    program = f"""
import resource, sys
from pathlib import Path
from discreet.collect import export
from discreet.collect._sqlite import SqliteStore
from tests.collect.behaviour import agreed
store, one = SqliteStore({str(tmp_path / "store.db")!r}), agreed(1000)
store.add(one)
import polars, pyarrow.parquet, scipy.stats
def many(n):
    with store._writer.transaction(writes=True) as database:
        database.execute("DELETE FROM counted")
        database.executemany("INSERT INTO counted VALUES (1, 1, ?, ?)", [(place, n // 1000) for place in range(1000)])
    assert export(store, {str(tmp_path / "out.parquet")!r}, replace=True).samples == n
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
few = many({few})
print(few, many({all_of_them}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    few, many = map(int, done.stdout.split())
    assert many - few < wide(80, 40), (few, many)  # MB: 8 million rows more are 160, 4 million are 80
    assert pl.scan_parquet(tmp_path / "out.parquet").select(pl.len()).collect().item() == all_of_them


def test_the_command_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments))

    monkeypatch.chdir(tmp_path)
    store = open_store("store.db")
    filled(store, agreed(["a", "b"]), [4, 2])
    store.close()
    made = run("export", "store.db", "-o", "out.csv", "--write-agreement", "out.json", "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout) == {
        "agreement": agreed(["a", "b"]).id,
        "round": 1,
        "samples": 6,
        "output": "out.csv",
        "agreement_file": "out.json",
    }
    told = run("estimate", "out.csv", "--agreement", "out.json", "--json")
    assert [row["samples"] for row in json.loads(told.stdout)["shares"]] == [4, 2]
    assert "wrote 6 samples of round 1" in run("export", "store.db", "-o", "out.parquet").stdout
    assert run("export", "store.db", "-o", "out.parquet").exit_code == 2
    assert run("export", "store.db", "-o", "out.parquet", "--force").exit_code == 0
    for wrong in (
        ("nowhere.db", "-o", "new.parquet"),
        ("out.json", "-o", "new.parquet"),
        ("store.db", "-o", "store.db", "--force"),
        ("store.db", "-o", "new.parquet", "--round", "0"),
        ("store.db", "-o", "new.parquet", "--write-agreement", "out.csv"),
        ("store.db", "-o", "new.parquet", "--write-agreement", "new.parquet"),
        ("postgresql://127.0.0.1:1/none?connect_timeout=2", "-o", "new.parquet"),
    ):
        result = run("export", *wrong)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), (wrong, result.output)
    assert not (tmp_path / "new.parquet").exists()
    assert not (tmp_path / "nowhere.db").exists()
