"""Files of one input whose columns drift: only the used columns have to agree, and an error names the file and the column."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError
from discreet.ledger._book import forget_rounds_in_memory
from discreet.tables import Release, Request, dry_run, sample
from tests.soaking import wide
from tests.tables.small_tables import SECRET, by_client

LETTERS = ["a", "b", "c"]
TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": LETTERS, "epsilon": 1.0, "secret": SECRET}
ROWS = 60


def table(first: int) -> pa.Table:
    """So many clients, from that number on, with three records each."""
    clients = [first + row // 3 for row in range(ROWS)]
    return pa.table({"client": clients, "value": [LETTERS[(row * row + row // 5) % 3] for row in range(ROWS)]})


FIRST, SECOND = table(0), table(100)
WIDE = {"client": pa.int64(), "value": pa.string()}


def narrow(given: pa.Table, **kinds: pa.DataType) -> pa.Table:
    """The table with columns of other types."""
    fields = [pa.field(name, kinds.get(name, kind)) for name, kind in WIDE.items()]
    return given.cast(pa.schema(fields))


DRIFTS = {
    "an unused column more": SECOND.append_column("note", pa.array(["x"] * ROWS)),
    "narrow integers": narrow(SECOND, client=pa.int32()),
    "unsigned integers": narrow(SECOND, client=pa.uint64()),
    "a dictionary": SECOND.set_column(1, "value", SECOND["value"].dictionary_encode()),
    "another order": SECOND.select(["value", "client"]),
}


def write(path: Path, given: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(given, path)
        case ".arrow":
            with pa.ipc.new_file(str(path), given.schema) as file:
                file.write_table(given)
        case ".csv":
            pl.DataFrame(given).write_csv(path)


@pytest.mark.parametrize(
    ("kind", "drift", "swapped"),
    [
        (kind, drift, swapped)
        for place, kind in enumerate(("parquet", "arrow", "csv"))
        for number, drift in enumerate(DRIFTS)
        for swapped in wide((False, True), ((place + number) % 2 == 0,))
    ],
)
def test_files_that_differ_elsewhere_are_one_table(tmp_path: Path, kind: str, drift: str, swapped: bool) -> None:
    places = (1, 0) if swapped else (0, 1)
    for place, given in zip(places, (FIRST, DRIFTS[drift]), strict=True):
        write(tmp_path / f"{place}.{kind}", given)
    found = by_client(sample(tmp_path, **TERMS))
    alike = by_client(sample(pa.concat_tables([FIRST, SECOND]), **TERMS))
    assert {str(client): value for client, value in found.items()} == {str(who): what for who, what in alike.items()}


def test_large_row_groups_that_are_read_in_slices_may_drift_too(tmp_path: Path) -> None:
    """Arrow reads them: 64-bit integers first, then 32 bits, a dictionary, another order and a column more."""
    many = pa.concat_tables([SECOND] * 9000).append_column("note", pa.array([1.5] * 9000 * ROWS))
    drifted = many.set_column(0, "client", many["client"].cast(pa.int32())).select(["note", "value", "client"])
    drifted = drifted.set_column(1, "value", drifted["value"].dictionary_encode())
    write(tmp_path / "0.parquet", FIRST)
    pq.write_table(drifted, tmp_path / "1.parquet", row_group_size=1 << 22)
    release = Release(tmp_path, Request(**TERMS), memory=1_000_000)
    assert by_client(release.table()) == by_client(sample(pa.concat_tables([FIRST, SECOND]), **TERMS))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("swapped", [False, True])
def test_columns_that_do_not_agree_are_named_with_their_file(tmp_path: Path, kind: str, swapped: bool) -> None:
    last, other = ("0", "1") if swapped else ("1", "0")
    texts = narrow(SECOND, client=pa.string())
    floats = narrow(SECOND, client=pa.float64())
    for given, column in ((texts, "client"), (floats, "client"), (SECOND.drop_columns("value"), "value")):
        write(tmp_path / f"{other}.{kind}", FIRST)
        write(tmp_path / f"{last}.{kind}", given)
        for call in (sample, dry_run):
            with pytest.raises(DiscreetError, match=rf"column '{column}'") as told:
                call(tmp_path, **TERMS)
            assert f"{last}.{kind}" in str(told.value)
            assert f"{other}.{kind}" in str(told.value)
            assert "damaged" not in str(told.value)


def test_a_csv_file_without_a_used_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("client,value\n1,a\n")
    (tmp_path / "1.csv").write_text("client,other\n2,a\n")
    with pytest.raises(DiscreetError, match=r"1\.csv has no column 'value', and .*0\.csv has one.*'client', 'other'"):
        sample(tmp_path, **TERMS)


def test_numbers_in_cells_may_be_integers_in_one_file_and_floats_in_another(tmp_path: Path) -> None:
    """As pandas writes them where a month has a missing value. Labels may not: 1.0 is no label."""
    import discreet as dc

    whole = pa.table({"client": [1, 2], "value": pa.array([3, 4], pa.int32())})
    broken = pa.table({"client": [3, 4], "value": [3.5, None]})
    write(tmp_path / "0.parquet", whole)
    write(tmp_path / "1.parquet", broken)
    terms = {**TERMS, "domain": dc.Interval(0.0, 10.0, cells=5), "nulls": "drop"}
    assert sample(tmp_path, **terms).num_rows == 3
    with pytest.raises(
        DiscreetError, match=r"1\.parquet: column 'value' holds Float64 values, but Int32 values in .*0\."
    ):
        sample(tmp_path, **{**terms, "domain": 10})


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_of_nulls_alone_is_of_any_kind(tmp_path: Path, kind: str) -> None:
    """A month in which nobody answered: pandas writes a column without a type."""
    silent = SECOND.set_column(1, "value", pa.nulls(ROWS))
    write(tmp_path / f"0.{kind}", silent)
    write(tmp_path / f"1.{kind}", FIRST)
    found = sample(tmp_path, **TERMS, nulls="drop")
    assert found.num_rows == 20
    assert by_client(found) == by_client(sample(FIRST, **TERMS))


def test_many_shapes_are_read(tmp_path: Path) -> None:
    """More than are scanned at a time."""
    for place in range(70):
        write(tmp_path / f"{place:02}.parquet", table(100 * place).append_column(f"note{place}", pa.array([1] * ROWS)))
    assert sample(tmp_path, **TERMS).num_rows == 70 * ROWS // 3


def test_shown_values_are_found_in_any_file(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", FIRST)
    strange = SECOND.set_column(1, "value", pa.array(["aa"] * ROWS).dictionary_encode())
    write(tmp_path / "1.parquet", strange)
    with pytest.raises(DiscreetError, match="such as 'aa'"):
        sample(tmp_path, **TERMS, show_values=True)


def by_month(folder: Path, kind: str) -> pa.Table:
    """Two months of a table in folders named after their keys; the whole, with the keys as columns of texts."""
    parts = []
    for place, given in enumerate((FIRST, SECOND)):
        path = folder / "year=2024" / f"month=0{place + 1}" / f"part.{kind}"
        if kind == "jsonl":
            path.parent.mkdir(parents=True)
            pl.DataFrame(given).write_ndjson(path)
        else:
            write(path, given)
        keys = {"year": ["2024"] * ROWS, "month": [f"0{place + 1}"] * ROWS}
        parts.append(pa.table({**dict(zip(given.column_names, given.columns, strict=True)), **keys}))
    return pa.concat_tables(parts)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"value": "month", "domain": ["01", "02", "03"]},
        {"client": "month"},
        {"client": "year", "value": "month", "domain": ["01", "02"]},
    ],
)
def test_partition_keys_are_columns(tmp_path: Path, kind: str, terms: dict[str, Any]) -> None:
    """As the value, as the client, as both: then no column of the file is used, and its rows still count."""
    whole = by_month(tmp_path, kind)
    name = terms.get("client", "client")
    asked = {**TERMS, **terms}

    def samples(given: Any) -> dict[str, Any]:
        forget_rounds_in_memory()
        found = sample(given, **asked)
        return dict(zip(map(str, found[name].to_pylist()), found["sample"].to_pylist(), strict=True))

    assert samples(tmp_path) == samples(whole)
    release = Release(tmp_path, Request(**asked))
    release.table()
    assert release.summary.rows == 2 * ROWS
    january = samples(str(tmp_path / "year=2024" / "month=01"))
    expected = samples(whole.slice(0, ROWS)) if name == "client" else None
    assert expected is None or january == expected
    assert samples(str(tmp_path / "*" / "month=0*" / "*")) == samples(whole)


def test_partition_keys_get_their_types_from_the_domain(tmp_path: Path) -> None:
    """A number of outcomes and bounds read them as numbers, as they do for CSV; a file's own column comes first."""
    import discreet as dc

    by_month(tmp_path, "parquet")
    assert set(sample(tmp_path, **{**TERMS, "value": "month", "domain": 3})["sample"].to_pylist()) <= {0, 1, 2}
    bounds = dc.Interval(2000.0, 2100.0, cells=4)
    assert sample(tmp_path, **{**TERMS, "value": "year", "domain": bounds}).num_rows == 40
    with pytest.raises(DiscreetError, match=r"outside the domain \(60 in 120 rows"):
        sample(tmp_path, **{**TERMS, "value": "month", "domain": ["01"]})
    own = FIRST.append_column("month", pa.array(["12"] * ROWS))
    write(tmp_path / "own" / "month=01" / "0.parquet", own)
    assert sample(tmp_path / "own", **{**TERMS, "value": "month", "domain": ["12"]}).num_rows == 20


def test_partition_keys_may_be_missing_escaped_or_absent(tmp_path: Path) -> None:
    write(tmp_path / "where=north%20east" / "0.parquet", FIRST)
    write(tmp_path / "where=__HIVE_DEFAULT_PARTITION__" / "0.parquet", SECOND)
    terms = {**TERMS, "value": "where", "domain": ["north east", "south"], "nulls": "drop"}
    assert sample(tmp_path, **terms).num_rows == 20
    write(tmp_path / "0.parquet", FIRST)
    with pytest.raises(DiscreetError, match=r"0\.parquet has no column 'where', and .*where=.* has one"):
        sample(tmp_path, **terms)


def test_a_key_beside_a_column_of_another_kind_is_named(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", FIRST.append_column("month", pa.array([1] * ROWS)))
    write(tmp_path / "month=02" / "1.parquet", SECOND)
    with pytest.raises(
        DiscreetError, match=r"1\.parquet: column 'month' holds String values, but Int64 values in .*0\."
    ):
        sample(tmp_path, **{**TERMS, "value": "month", "domain": 3})


def test_many_partitions_are_read(tmp_path: Path) -> None:
    """More than are scanned at a time, each a scan of its own."""
    for day in range(100):
        write(tmp_path / f"day={day}" / "0.parquet", table(100 * day))
    assert sample(tmp_path, **{**TERMS, "value": "day", "domain": 100}).num_rows == 2000
