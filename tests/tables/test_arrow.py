"""Arrow data that point outside of themselves, or would unpack to more than they are: refused before anything reads them."""

import io
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

from discreet.errors import DiscreetError
from discreet.tables import Kernel, Request, sample, sample_file
from discreet.tables._columns import read_client_list_file
from discreet.tables._sources import _arrow as ipc
from discreet.tables._sources._arrow import (
    arrow_column_as_numbers,
    arrow_column_as_polars_series,
    check_batch,
    numbers_as_arrow_column,
    polars_schema_of_arrow,
    polars_texts_as_arrow_column,
    split_batch_into_frames,
    take_rows_of_column,
)
from discreet.tables._sources._opening import file_source
from tests.tables.small_tables import SECRET
from tests.tables.test_kernel import job

TERMS: dict[str, Any] = {"client": "client", "value": "value", "domain": 40, "epsilon": 3.0, "secret": SECRET}
NAMES = ["anna", "bert", "carl", "dora"]


def stream_of(table: pa.Table, opened: Callable[..., Any] = pa.ipc.new_stream, **options: Any) -> bytes:
    content = io.BytesIO()
    with opened(content, table.schema, **options) as writer:
        writer.write_table(table)
    return content.getvalue()


def patched(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    assert len(old) == len(new)
    return content.replace(old, new)


def offsets(*ends: int) -> bytes:
    return struct.pack(f"<{len(ends)}i", *ends)


def pointing_outside() -> bytes:
    """Four clients, the last of whom is said to have a name of four million bytes."""
    table = pa.table({"client": pa.array(NAMES), "value": pa.array([1, 2, 3, 4])})
    return patched(stream_of(table), offsets(0, 4, 8, 12, 16), offsets(0, 4, 8, 12, 4_000_000))


def not_utf8() -> bytes:
    table = pa.table({"client": pa.array(NAMES), "value": pa.array([1, 2, 3, 4])})
    return patched(stream_of(table), b"annabertcarldora", b"annabert\xff\xfe\xfd\xfcdora")


def wrong_index() -> bytes:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int32()), ["anna", "bert"])
    content = stream_of(pa.table({"client": coded, "value": pa.array([1, 2, 3, 4])}))
    return patched(content, offsets(0, 1, 0, 1), offsets(0, 1, 0, 99))


def lists_outside() -> bytes:
    table = pa.table({"client": pa.array([1, 2]), "value": pa.array([[5, 6, 7], [8]])})
    return patched(stream_of(table), offsets(0, 3, 4), offsets(0, 3, 4_000_000))


DAMAGED = [pointing_outside(), not_utf8(), wrong_index(), lists_outside()]


@pytest.mark.parametrize("content", DAMAGED)
def test_what_points_outside_is_refused_wherever_it_comes_from(tmp_path: Path, content: bytes) -> None:
    """With rc 0 the last client was called by four megabytes of the process's memory."""
    (tmp_path / "in.arrows").write_bytes(content)
    request = Request(**TERMS)
    with pytest.raises(DiscreetError, match=r"column '(client|value)' is damaged"):
        sample_file(str(tmp_path / "in.arrows"), str(tmp_path / "out.parquet"), request)
    for given in (pa.ipc.open_stream(content), pa.ipc.open_stream(content).read_all()):
        with pytest.raises(DiscreetError, match="is damaged"):
            sample(given, **TERMS)
    with pytest.raises(DiscreetError, match="is damaged"):
        list(file_source(str(tmp_path / "in.arrows")).read_prepared_frames(lambda rows: rows))
    assert [path.name for path in tmp_path.iterdir()] == ["in.arrows"]


def test_a_list_of_clients_that_points_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.arrows").write_bytes(pointing_outside())
    with pytest.raises(DiscreetError, match="'client' is damaged"):
        read_client_list_file(tmp_path / "list.arrows", "client", integers=False)


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_arrow_files_are_checked_like_streams(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in{suffix}"
    table = pa.table({"client": pa.array(NAMES), "value": pa.array([1, 2, 3, 4])})
    path.write_bytes(stream_of(table, pa.ipc.new_file))
    whole = sample(str(path), **TERMS)
    assert whole.num_rows == 4
    path.write_bytes(patched(path.read_bytes(), offsets(0, 4, 8, 12, 16), offsets(0, 4, 8, 12, 4_000_000)))
    with pytest.raises(DiscreetError, match="'client' is damaged"):
        sample(str(path), **TERMS)


@pytest.mark.parametrize("column", ["client", "outcomes", "counts"])
def test_the_kernel_checks_what_an_engine_of_one_s_own_feeds_it(column: str) -> None:
    columns: dict[str, Any] = {
        "client": pa.array(NAMES),
        "outcomes": pa.array([[1], [2, 3], [], [4, 5, 6, 7]]),
        "counts": pa.array([[1], [2, 3], [], [4, 5, 6, 7]]),
    }
    good = pa.RecordBatch.from_pydict(columns)
    assert Kernel(job())(good).num_rows == 4
    healthy = columns[column]
    ends = (0, 4, 4_000_000, 12, 16) if column == "client" else (0, 1, 4_000_000, 3, 7)
    changed = pa.py_buffer(offsets(*ends))
    if column == "client":
        columns[column] = pa.Array.from_buffers(pa.string(), 4, [None, changed, healthy.buffers()[2]])
    else:
        columns[column] = pa.Array.from_buffers(healthy.type, 4, [None, changed], children=[healthy.values])
    with pytest.raises(DiscreetError, match=f"the batch: column '{column}' is damaged"):
        Kernel(job())(pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize(
    "kind", [pa.list_view(pa.uint32()), pa.large_list_view(pa.uint32()), pa.map_(pa.int8(), pa.int8())]
)
@pytest.mark.parametrize("column", ["outcomes", "counts"])
def test_the_kernel_reads_no_lists_in_views(kind: pa.DataType, column: str) -> None:
    """Arrow's cast of list views leaves the last offset unwritten: whatever lies in memory there."""
    held = pa.array([[(1, 1)], [(2, 2)]], kind) if pa.types.is_map(kind) else pa.array([[1], [2]], kind)
    columns = {"client": pa.array(["a", "b"]), "outcomes": pa.array([[1], [2]]), column: held}
    with pytest.raises(DiscreetError, match=f"column '{column}' holds .* values, not lists of"):
        Kernel(job())(pa.RecordBatch.from_pydict(columns))


def test_the_kernel_names_what_is_no_batch() -> None:
    for given in (pa.table({"client": ["a"], "outcomes": [[1]]}), {"client": ["a"]}, None):
        with pytest.raises(DiscreetError, match=f"the batch is a {type(given).__name__}; pass a pyarrow.RecordBatch"):
            Kernel(job())(given)


def test_a_list_of_clients_is_checked_as_tables_are() -> None:
    table = pa.table({"client": ["anna"], "value": [1]})
    ends = pa.py_buffer(offsets(0, 4_000_000, 8))
    outside = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"annabert")])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 900_000]), pa.array(["anna", "bert"]), safe=False)
    for damaged in (outside, pa.chunked_array([outside]), coded):
        with pytest.raises(DiscreetError, match="clients: column 'client' is damaged"):
            sample(table, clients=damaged, **TERMS)
    for wrong in ("anna", b"anna", {"anna": 1}):  # of which each letter, or key, would be a client
        with pytest.raises(DiscreetError, match=f"clients is a {type(wrong).__name__}; pass a list"):
            sample(table, clients=wrong, **TERMS)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["anna"]))
    with pytest.raises(DiscreetError, match="the list holds run_end_encoded"):
        sample(table, clients=runs, **TERMS)
    listed = pa.chunked_array([["anna"], ["bert"]]).dictionary_encode()
    assert sorted(sample(table, clients=listed, **TERMS)["client"].to_pylist()) == ["anna", "bert"]


def test_what_becomes_of_clients_over_budget_is_checked_first() -> None:
    with pytest.raises(DiscreetError, match="over_budget = 'skip' is not one of refuse, drop"):
        sample(pa.table({"client": ["anna"], "value": [1]}), over_budget="skip", **TERMS)


@pytest.mark.parametrize("words", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_null_in_a_dictionary_is_nobody(words: pa.DataType) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["anna", None], words))
    assert coded.null_count == 0
    with pytest.raises(DiscreetError, match="'client' holds 1 nulls"):
        Kernel(job())(pa.RecordBatch.from_pydict({"client": coded, "outcomes": [[1], [2]]}))
    with pytest.raises(DiscreetError, match="'client' holds nulls"):
        sample(pa.table({"client": coded, "value": [1, 2]}), **TERMS)
    known = coded.slice(0, 1)
    assert Kernel(job())(pa.RecordBatch.from_pydict({"client": known, "outcomes": [[1]]})).num_rows == 1


def test_columns_of_one_name_are_refused_by_name(tmp_path: Path) -> None:
    twice = pa.table([["a"], [1], [2]], names=["client", "value", "value"])
    (tmp_path / "in.arrow").write_bytes(stream_of(twice, pa.ipc.new_file))
    (tmp_path / "in.csv").write_text("client,value,value\na,1,2\n")
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["a"]), pa.array([[1]]), pa.array([[1]])], ["client", "outcomes", "outcomes"]
    )
    for given in (twice, str(tmp_path / "in.arrow")):
        with pytest.raises(DiscreetError, match="column 'value' comes twice"):
            sample(given, **TERMS)
    with pytest.raises(DiscreetError, match=r"columns 2 and 3 of .* have one name"):  # which may be a record's value
        sample(str(tmp_path / "in.csv"), **TERMS)
    with pytest.raises(DiscreetError, match="column 'outcomes' comes twice"):
        Kernel(job())(batch)
    (tmp_path / "in.csv").write_text("client,value,,\na,1,,\n")  # names that are none may repeat
    assert sample(str(tmp_path / "in.csv"), **TERMS).num_rows == 1


def test_columns_that_nobody_reads_need_not_be_readable() -> None:
    odd = pa.array([{"a": 1}, {"a": 2}])
    table = pa.table({"client": [1, 2], "value": [3, 4], "odd": odd})
    assert sample(table, **TERMS).num_rows == 2
    with pytest.raises(DiscreetError, match="holds Unknown values"):
        sample(table, **{**TERMS, "client": "odd"})


def test_every_layout_of_texts_is_the_same_client() -> None:
    names = pa.array(["anna", "bert", "anna", None])
    layouts = [names, names.cast(pa.large_string()), names.cast(pa.string_view()), names.dictionary_encode()]
    for layout in layouts:
        batch = check_batch(pa.RecordBatch.from_arrays([layout], ["client"]), "here")
        assert polars_schema_of_arrow(batch.schema, "here") == {"client": pl.String()}
        (frame,) = split_batch_into_frames(batch)
        assert frame["client"].to_list() == names.to_pylist()


def test_a_dictionary_is_written_out_a_piece_at_a_time() -> None:
    """100,000 names of 100,000 bytes from a batch of 200 kB would be 10 GB."""
    coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, dtype=np.int8)), ["x" * 100_000])
    frames = split_batch_into_frames(pa.RecordBatch.from_arrays([coded], ["client"]))
    first = next(frames)
    assert first["client"].str.len_bytes().sum() <= 1 << 26
    assert first.height > 1


@pytest.mark.parametrize("opened", [pa.ipc.new_stream, pa.ipc.new_file])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_small_batch_that_would_unpack_to_a_large_one_is_refused(
    tmp_path: Path, opened: Any, compression: str
) -> None:
    zeros = pa.table({"client": np.zeros(20_000_000, dtype=np.int64)})
    path = tmp_path / "in.arrow"
    path.write_bytes(stream_of(zeros, opened, options=pa.ipc.IpcWriteOptions(compression=compression)))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DiscreetError, match="would unpack to 160,000,000"):
        list(file_source(str(path)).read_prepared_frames(lambda rows: rows))
    good = pa.table({"client": np.arange(1000), "value": np.arange(1000) % 40})
    path.write_bytes(stream_of(good, opened, options=pa.ipc.IpcWriteOptions(compression=compression)))
    assert sample(str(path), **TERMS).num_rows == 1000


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    table = pa.table({"client": NAMES, "value": [1, 2, 3, 4]})
    expected = sample(table, **TERMS)
    feather.write_feather(table, str(tmp_path / "a.feather"))
    pl.DataFrame(table).write_ipc(tmp_path / "b.arrow")
    pl.DataFrame(table).write_ipc(tmp_path / "c.arrow", compression="lz4")
    for name in ("a.feather", "b.arrow", "c.arrow"):
        assert sample(str(tmp_path / name), **TERMS).equals(expected)


def test_a_message_that_claims_more_than_it_brings_allocates_nothing() -> None:
    """A body of 2^60 bytes is read as far as there is one."""
    table = pa.table({"client": pa.array(NAMES)})
    content = stream_of(table)
    message = pa.ipc.read_message(pa.ipc.open_stream(content).read_next_batch().serialize())
    length = struct.pack("<q", message.body.size)
    place = content.rindex(length, 0, content.index(offsets(0, 4, 8, 12, 16)))
    claimed = content[:place] + struct.pack("<q", 1 << 60) + content[place + 8 :]
    with pytest.raises(DiscreetError, match="ends early or is damaged"):
        list(ipc.ArrowStream("here", io.BytesIO(claimed)))


def test_standard_input_may_be_no_ordinary_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DiscreetError, match="no ordinary file"):
        sample(str(tmp_path / "pipe.csv"), **TERMS)


@pytest.mark.parametrize("texts", [["a"], ["", ""], ["é", "", "long enough to lie in a buffer of its own"], []])
def test_texts_with_short_offsets_are_those_of_a_cast(texts: list[str]) -> None:
    series = pl.Series(texts, dtype=pl.String)
    found = polars_texts_as_arrow_column(series)
    found.validate(full=True)
    assert found.equals(series.to_arrow().cast(pa.string()))
    assert polars_texts_as_arrow_column(series[1:]).equals(series[1:].to_arrow().cast(pa.string()))


def test_rows_of_a_column_are_taken_by_number() -> None:
    """Of slices too, whose buffers begin elsewhere."""
    rows = np.array([2, 0, 2])
    for column in (
        pa.array([5, 6, 7, 8, 9]),
        pa.array(["a", "b", "", "dd", "e"], pa.large_string()),
        pa.array([1, 2, 3, 4], pa.uint64()),
    ):
        for part in (column, column[1:]):
            assert take_rows_of_column(part, rows).equals(part.take(pa.array(rows)))
            assert take_rows_of_column(part, rows[:0]).equals(part[:0])
    assert arrow_column_as_numbers(pa.array([1, 2, 3])[1:]).tolist() == [2, 3]
    longer = pa.py_buffer(
        np.arange(3, dtype=np.uint32).tobytes() + b"xy"
    )  # Arrow allows a buffer with more bytes than its numbers need
    assert arrow_column_as_numbers(pa.Array.from_buffers(pa.uint32(), 3, [None, longer])[1:]).tolist() == [1, 2]
    assert numbers_as_arrow_column(np.arange(10)[::3]).to_pylist() == [0, 3, 6, 9]
    assert arrow_column_as_polars_series(pa.array(["a", "b", "c"])[1:]).to_list() == ["b", "c"]
