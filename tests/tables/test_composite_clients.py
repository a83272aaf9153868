"""Clients whom several columns name together: every name can be read in one way, and is the same in every format."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from discreet.errors import ClientNameWarning, DiscreetError
from discreet.ledger import PopulationLedger
from discreet.ledger._book import forget_rounds_in_memory
from discreet.tables import Release, Request, dry_run, sample, write_secret
from discreet.tables._columns import (
    Columns,
    client_names_from_list_or_file,
    composite_client_name,
    composite_client_names_expression,
)
from tests.soaking import examples
from tests.tables.small_tables import SECRET, by_client

TERMS: dict[str, Any] = {"client": ["a", "b"], "value": "value", "domain": ["x", "y"], "epsilon": 1.0, "secret": SECRET}
TEXTS = st.text(alphabet=st.one_of(st.sampled_from('ab",[]\\\n\t\0\x1f\x7f'), st.characters(codec="utf-8")), max_size=6)


@settings(max_examples=examples(200), deadline=None)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20))
def test_a_name_is_a_json_list_that_gives_back_its_parts(pairs: list[tuple[str, str]]) -> None:
    frame = pl.DataFrame(pairs, schema={"a": pl.String, "b": pl.String}, orient="row")
    found = (
        frame.select(composite_client_names_expression(["a", "b"], [pl.String(), pl.String()])).to_series().to_list()
    )
    assert found == [composite_client_name(pair) for pair in pairs]
    assert [tuple(json.loads(name)) for name in found] == pairs
    assert len(set(found)) == len(set(pairs))


def test_clients_that_only_look_alike_are_told_apart() -> None:
    """("a", "bc") is not ("ab", "c"), whatever stands between the parts."""
    pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ('a","b', "c"),
        ("a", 'b","c'),
        ("", "abc"),
        ("abc", ""),
        ("a,", "b"),
        ("a", ",b"),
    ]
    table = pl.DataFrame({"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "value": ["x"] * len(pairs)})
    found = by_client(sample(table, **TERMS))
    assert {tuple(json.loads(name)) for name in found} == set(pairs)


def test_names_are_the_same_in_every_format(tmp_path: Path) -> None:
    """Integers beside texts, whole floats, dates: 7 and "7" are one part, as they are one client."""
    days = [date(2024, 1, 1 + row % 3) for row in range(30)]
    frame = pl.DataFrame({"a": [row % 5 for row in range(30)], "b": days, "value": ["x", "y", "y"] * 10})
    plain = by_client(sample(frame, **TERMS))
    assert len(plain) == 15
    assert '["0","2024-01-01"]' in plain
    frame.write_csv(tmp_path / "in.csv")
    frame.with_columns(pl.col("b").cast(pl.String)).write_ndjson(tmp_path / "in.jsonl")
    frame.write_parquet(tmp_path / "in.parquet")
    texts = frame.with_columns(pl.col("a").cast(pl.String), pl.col("b").cast(pl.String).cast(pl.Categorical))
    for given_as in (tmp_path / "in.csv", tmp_path / "in.jsonl", tmp_path / "in.parquet", texts, frame.to_arrow()):
        assert by_client(sample(given_as, **TERMS)) == plain
    with pytest.warns(ClientNameWarning, match="column 'a' holds floats"):
        assert by_client(sample(frame.with_columns(pl.col("a").cast(pl.Float64)), **TERMS)) == plain
    for day in range(3):
        folder = tmp_path / "keys" / f"b=2024-01-0{day + 1}"
        folder.mkdir(parents=True)
        frame.filter(pl.col("b") == date(2024, 1, day + 1)).drop("b").write_parquet(folder / "0.parquet")
    assert by_client(sample(tmp_path / "keys", **TERMS)) == plain


def test_the_order_of_the_columns_is_part_of_the_name() -> None:
    table = pl.DataFrame({"a": ["p"], "b": ["q"], "value": ["x"]})
    assert set(by_client(sample(table, **TERMS))) == {'["p","q"]'}
    forget_rounds_in_memory()
    assert set(by_client(sample(table, **{**TERMS, "client": ("b", "a")}))) == {'["q","p"]'}


def test_one_column_in_a_list_is_that_column() -> None:
    """Names, samples and the record of rounds are those of a single column."""
    table = pl.DataFrame({"client": list(range(50)), "value": ["x", "y"] * 25})
    alone = sample(table, **{**TERMS, "client": "client"})
    assert sample(table, **{**TERMS, "client": ["client"]}).equals(alone)


def test_a_null_in_any_column_is_a_row_without_a_client() -> None:
    table = pl.DataFrame({"a": [1, None, 3, 4], "b": ["p", "q", None, "s"], "value": ["x"] * 4})
    with pytest.raises(DiscreetError, match=r"the key of columns 'a', 'b' holds nulls \(2 in 4 rows\)"):
        sample(table, **TERMS)
    release = Release(table, Request(**TERMS, null_clients="drop"))
    assert set(by_client(release.table())) == {'["1","p"]', '["4","s"]'}
    assert release.summary.nameless == 2
    assert dry_run(table, **TERMS).nameless == 2
    broken = table.with_columns(pl.Series("a", [1.5, 2.0, 3.0, 4.0]))
    with pytest.raises(DiscreetError, match=r"1 in 4 rows"):
        sample(broken, **TERMS, null_clients="drop")


def test_lists_of_clients(tmp_path: Path) -> None:
    """A table with the columns, lines as a release writes them, and tuples in Python."""
    table = pl.DataFrame({"a": [1, 2], "b": ["p", "q"], "value": ["x", "y"]})
    everybody = pl.DataFrame({"a": [1, 2, 3], "b": ["p", "q", "p"]})
    everybody.write_csv(tmp_path / "all.csv")
    everybody.write_parquet(tmp_path / "all.parquet")
    (tmp_path / "all.txt").write_text('["1","p"]\n["2", "q"]\n[3, "p"]\n')
    tuples = [(1, "p"), ("2", "q"), (3, "p")]
    found = by_client(sample(table, **TERMS, clients=tuples))
    assert set(found) == {'["1","p"]', '["2","q"]', '["3","p"]'}
    for name in ("all.csv", "all.parquet", "all.txt"):
        assert by_client(sample(table, **TERMS, clients=tmp_path / name)) == found
    for wrong in ([(1, "p", 2)], ["1,p"], [(None, "p")], [(1.0, "p")], [(True, "p")], ['["1",["p"]]'], [{1: "p"}]):
        with pytest.raises(DiscreetError, match="client 1 is not a name by 2 columns"):
            sample(table, **TERMS, clients=wrong)
    with pytest.raises(DiscreetError, match="not on the list"):
        sample(table, **TERMS, clients=tuples[:1])


NO_PARTS: list[Any] = [
    ["y"],
    {"k": 1},
    b"y",
    2**63,
    "\ud800",
    np.float32(1),
    np.True_,
    np.timedelta64(1, "D"),
    datetime(2026, 11, 17),
    np.datetime64("2026-11"),
    np.datetime64("2026-11-17T00:00", "ns"),
    np.datetime64("NaT", "D"),
    np.datetime64("10000-01-01", "D"),
]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (7, "7"),
        (np.int16(-7), "-7"),
        ("y\n", "y\n"),
        (np.str_("y"), "y"),
        (date(987, 1, 2), "0987-01-02"),
        (np.datetime64("2026-11-17"), "2026-11-17"),
        *((part, None) for part in NO_PARTS),
    ],
)
def test_what_a_listed_client_consists_of_is_what_a_column_can_hold(part: Any, text: str | None) -> None:
    """Anything else was written as Python prints it, and named a client that no table has."""
    columns = Columns(client=["a", "b"], value="value")
    if text is None:
        with pytest.raises(DiscreetError, match="client 1 is not a name by 2 columns"):
            client_names_from_list_or_file([("x", part)], columns, integers=False)
        return
    (name,) = client_names_from_list_or_file([("x", part)], columns, integers=False).to_pylist()
    assert json.loads(name) == ["x", text]
    held = part.item() if isinstance(part, np.generic) else part
    kind = {date: pl.Date(), str: pl.String(), int: pl.Int64()}[type(held)]
    frame = pl.DataFrame({"a": ["x"], "b": pl.Series([held], dtype=kind)})
    assert frame.select(composite_client_names_expression(["a", "b"], [pl.String(), kind])).item() == name


def test_a_ledger_knows_them_again(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret")
    ledger = PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=tmp_path / "secret")
    table = pl.DataFrame({"a": [1, 1, 2], "b": ["p", "q", "p"], "value": ["x", "y", "x"]})
    terms = {**TERMS, "secret": None, "ledger": ledger}
    first = by_client(sample(table, **terms))
    moved = table.select(pl.col("value").replace({"x": "y", "y": "x"}), pl.col("b"), pl.col("a").cast(pl.String))
    assert by_client(sample(moved, **terms)) == first


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a": [True]}, "column 'a' holds Boolean values"),
        ({"a": [[1]]}, "column 'a' holds List"),
        ({"a": pa.array([0], pa.timestamp("us"))}, "column 'a' holds Datetime"),
    ],
)
def test_columns_that_cannot_name_anybody_are_refused(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(DiscreetError, match=told):
        sample(pa.table({"b": ["p"], "value": ["x"], **columns}), **TERMS)


def test_wrong_lists_of_columns_are_refused() -> None:
    table = pl.DataFrame({"a": [1], "b": [2], "value": ["x"]})
    wrong: list[tuple[Any, str]] = [
        ([], "client is an empty list"),
        (["a", "a"], "column 'a' is named twice"),
        (["a", "z"], "'z' is not in"),
        (5, "client"),
    ]
    for client, told in wrong:
        with pytest.raises(DiscreetError, match=told):
            sample(table, **{**TERMS, "client": client})
