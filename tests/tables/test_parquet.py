"""Parquet files that unpack to far more than they are: read in bounded memory, or refused by name before anything is unpacked."""

import io
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError
from discreet.tables import sample
from discreet.tables._sources._files import ParquetFile
from discreet.tables._sources._opening import file_source
from tests.soaking import wide
from tests.tables.small_tables import SECRET, rows

TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": 40, "epsilon": 3.0, "secret": SECRET}


def repeated(values: pa.Array, times: int) -> pa.Array:
    return values.take(pa.array(np.zeros(times, dtype=np.int8)))


@pytest.mark.parametrize(
    "layout",
    [
        {"compression": "zstd"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "snappy", "data_page_version": "2.0", "row_group_size": 700, "data_page_size": 512},
    ],
)
def test_the_columns_of_a_file_are_known_from_its_footer_and_pages(tmp_path: Path, layout: dict[str, Any]) -> None:
    table = pa.table({
        "client": [f"c{client}" for client in rows()["client"]], "value": rows()["value"], "a.b": [[1, 2]] * 4000,
        "s": [{"x": 1, "y": "z"}] * 4000,
    }, metadata={"key": "its value"})  # fmt: skip
    pq.write_table(table, tmp_path / "in.parquet", **layout)
    file = ParquetFile(str(tmp_path / "in.parquet"), "in.parquet")
    assert file.columns == ["client", "value", "a.b", "s"]
    assert file.rows == 4000
    assert file.metadata[b"key"] == b"its value"
    found = list(file.iterate_column_chunk_layouts(["value", "a.b"]))
    assert len(found) == (6 if "row_group_size" in layout else 1)
    values = [chunk for group in found for chunk in group if chunk.column == "value"]
    assert sum(chunk.unpacked_bytes for chunk in values) == 4000 * 8
    assert {chunk.column: chunk.has_lists for chunk in found[0]} == {"value": False, "a.b": True}


@pytest.mark.parametrize("value", ["numbers", "lists"])
def test_slices_are_the_rows_that_polars_reads(tmp_path: Path, value: str) -> None:
    table = pl.DataFrame(rows()).with_columns(pl.format("client {}", "client").alias("client"))
    if value == "lists":
        table = table.group_by("client", maintain_order=True).agg("value")
    table.write_parquet(tmp_path / "a.parquet", row_group_size=500)
    pq.write_table(table.to_arrow(), tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet"):
        source = file_source(str(tmp_path / name))
        whole = pl.concat(source.read_prepared_frames(lambda frame: frame, ["client", "value"]))
        slices = source._read_frames_in_slices(lambda frame: frame, ["client", "value"])  # type: ignore[attr-defined]
        assert pl.concat(slices).sort("client", "value").equals(whole.sort("client", "value"))


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_file_without_rows_adds_nothing_to_the_others(tmp_path: Path, dictionary: bool) -> None:
    """Arrow writes a row group without values: its dictionary is empty, and its data page is nowhere."""
    table = pl.DataFrame(rows()).to_arrow()
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "b.parquet", use_dictionary=dictionary)
    assert sample(tmp_path, **TERMS).equals(sample(table, **TERMS))
    empty = file_source(str(tmp_path / "b.parquet"))
    slices = empty._read_frames_in_slices(lambda frame: frame, ["client", "value"])  # type: ignore[attr-defined]
    assert sum(frame.height for frame in slices) == 0


@pytest.mark.slow
def test_one_client_of_many_rows_in_few_bytes_takes_little_memory(tmp_path: Path) -> None:
    """20,000,000 rows in 100 kB once reached gigabytes with a budget of 50 MB; they stay near what the program itself takes."""
    times = wide(20_000_000, 5_000_000)
    table = pa.table({"client": repeated(pa.array(["a"]), times), "value": repeated(pa.array([3]), times)})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=times, compression="zstd", write_statistics=False)
    del table
    assert (tmp_path / "in.parquet").stat().st_size < 500_000
    program = f"""
        from discreet.tables import Request, sample_file
        from tests.fuzz.mutants import most_resident
        request = Request(client="client", value="value", domain=40, epsilon=1.0)
        found = sample_file({str(tmp_path / "in.parquet")!r}, {str(tmp_path / "out.parquet")!r}, request, memory=50_000_000)
        print(found.rows, found.clients, most_resident() // 1024)
    """
    told = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    many, clients, megabytes = map(int, told.stdout.split())
    assert (many, clients) == (times, 1)
    assert megabytes < wide(1200, 800)  # some 500 for the program


@pytest.mark.slow
def test_long_names_in_a_dictionary_are_not_written_out_at_once(tmp_path: Path) -> None:
    """20,000 names of one client, written out, take twenty times the memory that is allowed."""
    length = wide(100_000, 10_000)
    table = pa.table({"client": repeated(pa.array(["x" * length]), 20_000), "value": np.zeros(20_000, dtype=np.int64)})
    pq.write_table(table, tmp_path / "in.parquet")
    assert (tmp_path / "in.parquet").stat().st_size < 500_000
    assert sample(str(tmp_path / "in.parquet"), **TERMS, memory=1_000 * length).num_rows == 1


@pytest.mark.slow
def test_a_page_that_would_unpack_to_too_much_is_refused(tmp_path: Path) -> None:
    table = pa.table({"client": np.zeros(40_000_000, dtype=np.int64), "value": np.zeros(40_000_000, dtype=np.int8)})
    pq.write_table(
        table, tmp_path / "in.parquet", compression="zstd", use_dictionary=False, data_page_size=1 << 30,
        row_group_size=40_000_000, max_rows_per_page=40_000_000, write_batch_size=40_000_000,
    )  # fmt: skip
    assert (tmp_path / "in.parquet").stat().st_size < 500_000
    with pytest.raises(DiscreetError, match=r"a page of column 'client' would unpack to 320,000,.* bytes"):
        sample(str(tmp_path / "in.parquet"), **TERMS)


@pytest.mark.slow
def test_lists_that_would_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays([0, 20_000_000], np.zeros(20_000_000, dtype=np.int64))
    pq.write_table(pa.table({"client": ["a"], "value": lists}), tmp_path / "in.parquet", compression="zstd")
    with pytest.raises(DiscreetError, match=r"'value' would unpack to 160,000,.* bytes of lists"):
        sample(str(tmp_path / "in.parquet"), **TERMS, memory=10**8)


def test_a_footer_that_lies_about_sizes_changes_nothing(tmp_path: Path) -> None:
    """Pages are counted by their own headers: whatever the footer sums up to, readers unpack by those."""
    content = io.BytesIO()
    pq.write_table(
        pa.table({"value": np.zeros(2_000_000, dtype=np.int64)}), content, compression="zstd", use_dictionary=False
    )
    (tmp_path / "in.parquet").write_bytes(content.getvalue())
    file = ParquetFile(str(tmp_path / "in.parquet"), "in")
    file._groups = [{**group, 3: 1} for group in file._groups]  # one row, it says
    assert (
        sum(chunk.unpacked_bytes for group in file.iterate_column_chunk_layouts(["value"]) for chunk in group)
        == 16_000_000
    )


def test_packed_text_is_to_be_unpacked_first(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "in.csv").write_bytes(gzip.compress(b"client,value\na,1\n"))
    with pytest.raises(DiscreetError, match="is packed; unpack it first"):
        sample(str(tmp_path / "in.csv"), **TERMS)


def test_of_a_database_a_table_is_to_be_written_first(tmp_path: Path) -> None:
    """Such as the store of a collection, which is no table of samples."""
    (tmp_path / "samples.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(DiscreetError, match=r"is a database; .*discreet export"):
        sample(str(tmp_path / "samples.db"), **TERMS)
