"""What clients are called: a release finds the clients of the one before, whatever their names were held as, and makes none of no name."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.errors import BudgetError, ClientNameWarning, DiscreetError
from discreet.estimation._client_tables import refuse_clients_in_several_sources
from discreet.ledger import PopulationLedger
from discreet.ledger._book import forget_rounds_in_memory
from discreet.tables import Kernel, Request, Secret, dry_run, sample
from discreet.tables._sources._opening import source_of_table

SECRET = Secret(bytes(range(32)))
TERMS: dict[str, Any] = {"client": "id", "value": "v", "domain": 3, "epsilon": 1.0, "secret": SECRET}
INTEGERS = pl.DataFrame({"id": [1, 2, 3, 1], "v": [0, 1, 2, 1]})
FLOATS = {
    "polars, 64 bits": INTEGERS.cast({"id": pl.Float64}),
    "polars, 32 bits": INTEGERS.cast({"id": pl.Float32}),
    "arrow": INTEGERS.cast({"id": pl.Float64}).to_arrow(),
    "pandas": pd.DataFrame({"id": [1.0, 2.0, 3.0, 1.0], "v": [0, 1, 2, 1]}),
}


def released(table: Any, **terms: Any) -> dict[Any, int]:
    forget_rounds_in_memory()  # another process, as it were: one secret, other data
    found = sample(table, **{**TERMS, **terms})
    return dict(zip(found["id"].to_pylist(), found["sample"].to_pylist(), strict=True))


@pytest.mark.parametrize("held", FLOATS)
def test_whole_floats_are_the_integers_again_and_it_says_so(held: str) -> None:
    with pytest.warns(ClientNameWarning, match=r"'id' holds floats.*1\.0 as client 1"):
        found = released(FLOATS[held])
    assert found == released(INTEGERS)
    assert all(type(name) is int for name in found)


def test_a_missing_id_does_not_make_new_clients_that_spend_again(tmp_path: Path) -> None:
    """The way that a message once sent people: one missing id, floats, and then texts that a ledger does not know."""
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=SECRET)
    first = pd.DataFrame({"id": [1, 2, 3], "v": [0, 1, 2]})
    terms: dict[str, Any] = {"ledger": books, "rounds": 2}
    before = released(first, **terms)
    second = pd.DataFrame({"id": [1, 2, None, 3], "v": [0, 1, 1, 2]})
    assert second["id"].dtype == np.float64
    with pytest.raises(DiscreetError, match=r"floats that name no client \(1 in 4 rows\).*Leave out rows without"):
        released(second, **terms)
    mended = second.dropna(subset=["id"])  # as the message says
    with pytest.warns(ClientNameWarning):
        assert released(mended, **terms) == before
    with pytest.warns(ClientNameWarning), pytest.raises(BudgetError, match="3 of 3 clients would spend more"):
        released(mended, **terms, round=2)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([1.0, 1.5], pl.Float64), ([1.0, float("inf")], pl.Float64), ([1.0, float("nan")], pl.Float64), ([1.0, None], pl.Float64),
        ([1.0, 2.0**53], pl.Float64), ([1.0, -(2.0**53)], pl.Float64), ([1.0, 2.0**24], pl.Float32), ([1.0, 1e300], pl.Float64),
    ],
)  # fmt: skip
def test_floats_that_are_no_integers_name_nobody(ids: list[Any], kind: Any) -> None:
    """Past 2^53 two integers may have become one float: 2^53 + 1 is held as 2^53."""
    table = pl.DataFrame({"id": pl.Series(ids, dtype=kind), "v": [0, 1]})
    for given in (table, table.to_arrow()):
        with pytest.raises(DiscreetError, match=r"floats that name no client \(1 in 2 rows\)") as refused:
            released(given)
        assert "text" not in str(refused.value).partition("from the start")[2]
    assert dry_run(table, **TERMS).nameless == 1


def test_the_largest_float_that_is_one_integer_alone_is_that_integer() -> None:
    for kind, most in ((pl.Float64, 2**53 - 1), (pl.Float32, 2**24 - 1)):
        table = pl.DataFrame({"id": pl.Series([most, -most], dtype=kind), "v": [0, 1]})
        with pytest.warns(ClientNameWarning):
            assert set(released(table)) == {most, -most}


@pytest.mark.parametrize(
    ("ids", "advice"),
    [
        (pl.Series([True, False]), "name each of them by one of its own"),
        (pl.Series(["1", "2"]).str.to_decimal(scale=0), "cast it to integers of 64 bits"),
        (pl.Series(["2026-11-17", "2026-11-18"]).str.to_date(), "in the same form in every release"),
        (pl.Series([1, 2]).cast(pl.Datetime), "in the same form in every release"),
        (pl.Series([None, None]), "leave out rows without a client"),
    ],
    ids=lambda given: str(given.dtype) if isinstance(given, pl.Series) else "",
)
def test_what_names_no_client_is_refused_with_the_way_out(ids: pl.Series, advice: str) -> None:
    with pytest.raises(DiscreetError, match=f"'id' holds .* values; clients are texts or integers: .*{advice}"):
        released(pl.DataFrame({"id": ids, "v": [0, 1]}))


def test_integers_past_64_bits_are_the_same_clients_as_texts() -> None:
    """The advice to cast them to text is right: 7 and '7' are one client."""
    large = pl.DataFrame({"id": pl.Series([2**63, 7], dtype=pl.UInt64), "v": [0, 1]})
    with pytest.raises(DiscreetError, match=r"integers past 64 bits.*cast the column to text: 7 and '7' are one"):
        released(large)
    found = released(large.cast({"id": pl.String}))
    small = released(large.filter(pl.col("id") < 2**63))
    assert (found["7"], set(found)) == (small[7], {str(2**63), "7"})


def lines(tmp_path: Path, *names: str) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"id": {name}, "v": {place % 3}}}\n' for place, name in enumerate(names)))
    return str(path)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("true", "line 2: 'id' is a truth value"),
        ("false", "line 2: 'id' is a truth value"),
        ("1.0", r"line 2: 'id' is a number that is not written as a whole one .*write 1 for 1\.0"),
        ("1e3", "line 2: 'id' is a number that is not written"),
        ("-0", "line 2: 'id' is a number that is not written"),
        ("Infinity", "line 2: 'id' is a number that is not written"),
        ("null", r"'id' holds nulls \(1 in 2 rows\)"),
        ("NaN", r"'id' holds nulls \(1 in 2 rows\)"),
    ],
)
def test_json_that_names_no_client_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    path = lines(tmp_path, '"a"', name)
    with pytest.raises(DiscreetError, match=problem):
        released(path)
    if "line" in problem:
        with pytest.raises(DiscreetError, match=problem):
            dry_run(path, **TERMS)
        listed = tmp_path / "list.jsonl"
        listed.write_text(f'{{"id": "a"}}\n{{"id": {name}}}\n')
        with pytest.raises(DiscreetError, match=problem):
            released(lines(tmp_path, '"a"', '"b"'), clients=listed)


def test_texts_in_json_are_clients_of_their_own(tmp_path: Path) -> None:
    """And a number is the client of that text, as in every format; values may be truth values and fractions as ever."""
    assert set(released(lines(tmp_path, '"true"', '"a"', "7", '"7"', str(2**70)))) == {"true", "a", "7", str(2**70)}
    path = tmp_path / "truths.jsonl"
    path.write_text('{"id": "a", "v": true}\n{"id": "b", "v": "true"}\n{"id": "c", "v": 1.0}\n')
    assert set(released(str(path), domain=["true", "1.0"])) == {"a", "b", "c"}


@pytest.mark.parametrize("name", ["nan", "NaN", "None", "<NA>", "null", "NaT"])
def test_a_client_that_is_called_like_a_missing_value_is_told(name: str) -> None:
    with pytest.warns(ClientNameWarning, match=r"a missing value looks once it was cast to text"):
        assert name in released(pl.DataFrame({"id": ["a", name], "v": [0, 1]}))


def test_texts_that_were_floats_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,v\n1.0,0\n2.0,1\n")
    with pytest.warns(ClientNameWarning, match=r"as floats are written \('1\.0'\)"):
        assert set(released(str(path))) == {"1.0", "2.0"}
    path.write_text("id,v\n1.0,0\nv2.0,1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(released(str(path))) == {"1.0", "v2.0"}


def test_counts_that_became_floats_are_the_counts_again() -> None:
    """As a weight they would be another question, and a second sample of the same records: the advice once given."""
    table = INTEGERS.with_columns(n=pl.Series([2, 1, 4, 1]))
    whole = released(table, count="n")
    assert released(table.cast({"n": pl.Float64}), count="n") == whole
    lists = table.group_by("id").agg("v", "n")
    assert released(lists.cast({"n": pl.List(pl.Float64)}), count="n") == whole
    for wrong, problem in (
        (1.5, "no whole numbers from 0 .* another question"),
        (-1.0, "no whole numbers from 0"),
        (float("inf"), "no whole numbers from 0"),
        (float("nan"), "'n' holds nulls"),
        (None, "'n' holds nulls"),
    ):
        with pytest.raises(DiscreetError, match=problem):
            released(table.with_columns(n=pl.Series([2.0, 1.0, wrong, 1.0])), count="n")


def test_a_ledger_knows_a_client_by_an_integer_and_by_its_text(tmp_path: Path) -> None:
    """The advice to cast integers to text makes no new clients."""
    terms: dict[str, Any] = {
        "ledger": PopulationLedger.create(tmp_path / "books", budget=1.0, secret=SECRET),
        "rounds": 2,
    }
    before = released(INTEGERS, **terms)
    after = released(INTEGERS.cast({"id": pl.String}), **terms)
    assert after == {str(name): drawn for name, drawn in before.items()}
    with pytest.raises(BudgetError, match="3 of 3 clients"):
        released(INTEGERS.cast({"id": pl.String}), **terms, round=2)


def test_lists_of_clients_are_read_alike() -> None:
    with pytest.warns(ClientNameWarning):
        assert set(released(INTEGERS, clients=[1, 2.0, 3, 4])) == {1, 2, 3, 4}
    for wrong, problem in (
        ([True, False], "the list holds bool values"),
        ([1, True], "not a list of texts or of integers"),
        ([1.0, float("nan")], "floats that name no client"),
        ([1, 2.5], "floats that name no client"),
        ([1, None], "nobody is called null"),
    ):
        with pytest.raises(DiscreetError, match=problem):
            released(INTEGERS, clients=wrong)


def test_the_kernel_reads_them_alike() -> None:
    kernel = Kernel(Request(**TERMS).job(pl.Schema({"id": pl.Int64(), "v": pl.Int64()})))
    outcomes = pa.array([[0], [1]], pa.list_(pa.uint32()))

    def drawn(clients: Any) -> Any:
        batch = pa.RecordBatch.from_arrays([clients, outcomes], names=["client", "outcomes"])
        return kernel(batch).column("sample").to_pylist()

    with pytest.warns(ClientNameWarning):
        assert drawn(pa.array([1.0, 2.0])) == drawn(pa.array([1, 2])) == drawn(pa.array(["1", "2"]))
    with pytest.raises(DiscreetError, match="column 'client' holds bool values"):
        drawn(pa.array([True, False]))


def test_a_client_is_known_again_in_samples_that_hold_it_as_a_float() -> None:
    """Each client speaks once, also where a column of samples went through floats."""
    samples = pl.DataFrame({"id": [1, 2], "sample": [0, 1], "agreement": ["x", "x"]})
    assert refuse_clients_in_several_sources(
        [source_of_table(samples), source_of_table(samples.with_columns(pl.col("id") + 2))]
    )
    for again in (samples.cast({"id": pl.Float64}), samples.cast({"id": pl.String})):
        with pytest.raises(DiscreetError, match="2 of the 2 clients"):
            refuse_clients_in_several_sources([source_of_table(samples), source_of_table(again)])


def test_what_pandas_writes_is_read_as_what_it_held(tmp_path: Path) -> None:
    """JSON lines of a column of ids with one missing: refused, and right once it is written as the message says."""
    frame = pd.DataFrame({"id": [1, 2, None], "v": [0, 1, 2]})
    path = tmp_path / "rows.jsonl"
    frame.to_json(path, orient="records", lines=True)
    assert json.loads(path.read_text().splitlines()[0])["id"] == 1.0
    with pytest.raises(DiscreetError, match="not written as a whole one"):
        released(str(path))
    frame.dropna().astype({"id": "Int64"}).to_json(path, orient="records", lines=True)
    found = released(str(path))
    assert found == {str(name): drawn for name, drawn in released(INTEGERS.head(2)).items()}


def test_names_in_two_forms_are_told_before_anybody_looks_at_samples() -> None:
    """A person who is '1' in some rows and '1.0' in others would be two clients, without a word."""
    table = {"who": ["1.0", "1", "2.0", "7"], "what": [0, 1, 0, 1]}
    with pytest.warns(ClientNameWarning, match="both as integers and as floats are written"):
        sample(pl.DataFrame(table), client="who", value="what", domain=2, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(
            pl.DataFrame({**table, "who": ["1.0", "3", "2.0", "7"]}), client="who", value="what", domain=2, epsilon=1.0
        )
    for other in ("ANN", "Ann ", "Ann\t"):
        names = {**table, "who": ["Ann", "Ben", other, "Cem"]}
        with pytest.warns(ClientNameWarning, match=r"differ only in case or spaces: .* \(--dry-run\) counts them"):
            sample(pl.DataFrame(names), client="who", value="what", domain=2, epsilon=1.0)
