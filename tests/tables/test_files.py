"""Files in and files out: every format, whole or not at all."""

import glob
import io
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from discreet._base.kernels import Code
from discreet.errors import DiscreetError
from discreet.tables import Request, sample_file
from discreet.tables._columns import read_client_list_file
from discreet.tables._sources._files import choose_output_format
from discreet.tables._sources._opening import file_source, is_among_inputs, open_standard_input, open_table_writer
from discreet.tables._sources._source import METADATA, ParquetSource
from tests.tables.small_tables import SECRET, by_client, expected, rows

pytestmark = pytest.mark.usefixtures("either_code")

TABLE = rows()
NAMED = {"client": [f"c{client}" for client in TABLE["client"]], "value": TABLE["value"]}
REQUEST = Request(client="client", value="value", domain=40, epsilon=3.0, goal="clients", secret=SECRET)


def frame(table: dict[str, list[Any]] = NAMED) -> pl.DataFrame:
    return pl.DataFrame(table)


def write_parts(folder: Path, suffix: str) -> None:
    """The table in three files, one of them in a folder below."""
    (folder / "more").mkdir(parents=True)
    for number, name in enumerate(["a", "b", "more/c"]):
        piece = frame().slice(number * 1500, 1500 if number < 2 else None)
        path = folder / f"{name}{suffix}"
        {".parquet": piece.write_parquet, ".csv": piece.write_csv, ".arrow": piece.write_ipc}[suffix](path)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
@pytest.mark.parametrize("how", ["file", "folder", "glob"])
def test_every_input_gives_the_same_release(tmp_path: Path, suffix: str, how: str) -> None:
    write_parts(tmp_path / "in", suffix)
    if how == "file":
        one = tmp_path / f"one{suffix}"
        {".parquet": frame().write_parquet, ".csv": frame().write_csv, ".arrow": frame().write_ipc}[suffix](one)  # type: ignore[operator]
    path = {"file": f"one{suffix}", "folder": "in", "glob": f"in/**/*{suffix}"}[how]
    summary = sample_file(str(tmp_path / path), str(tmp_path / "out.parquet"), REQUEST)
    assert (summary.rows, summary.clients) == (4000, 300)
    assert by_client(pq.read_table(tmp_path / "out.parquet")) == expected(NAMED, outcomes=40, epsilon=3.0)


@pytest.mark.slow
def test_an_arrow_stream_in_a_file(tmp_path: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "in.arrows"), frame().to_arrow().schema) as stream:
        stream.write_table(frame().to_arrow(), max_chunksize=500)
    sample_file(str(tmp_path / "in.arrows"), str(tmp_path / "out.arrow"), REQUEST)
    with pa.ipc.open_file(str(tmp_path / "out.arrow")) as file:
        assert by_client(file.read_all()) == expected(NAMED, outcomes=40, epsilon=3.0)


@pytest.mark.slow
def test_outputs_hold_the_same_records(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "in.parquet")
    for suffix in ("parquet", "csv", "arrow"):
        sample_file(str(tmp_path / "in.parquet"), str(tmp_path / f"out.{suffix}"), REQUEST)
    tables = [
        pq.read_table(tmp_path / "out.parquet"),
        csv.read_csv(tmp_path / "out.csv"),
        pa.ipc.open_file(str(tmp_path / "out.arrow")).read_all(),
    ]
    plain = [pl.DataFrame(table).with_columns(pl.col("agreement").cast(pl.String)) for table in tables]
    assert plain[0].equals(plain[1])
    assert plain[0].equals(plain[2])
    assert METADATA in tables[0].schema.metadata
    assert METADATA in tables[2].schema.metadata
    assert oct((tmp_path / "out.parquet").stat().st_mode & 0o777) == oct(0o666 & ~current_umask())


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_csv_column_is_a_text_until_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("client,value,n\n007,1,2\n7,0,1\n007,0,1\n")
    request = Request(client="client", value="value", domain=2, epsilon=1.0, count="n", secret=SECRET)
    sample_file(str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), request)
    out = (tmp_path / "out.csv").read_text().splitlines()
    assert out[0] == '"client","sample","agreement"'
    assert sorted(line.split(",")[0] for line in out[1:]) == ['"007"', '"7"']


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        (
            "in.csv",
            b"client,value\na,x\n",
            r"column 'value' holds texts that are no whole numbers .*\(1 in 1 rows\); correct them: write 1234, without",
        ),
        ("in.csv", b"", "in.csv is empty"),
        ("in.csv", b"client,value\na,,\n", "in.csv: "),
        (
            "in.csv",
            b"a,b\n1,2\n",
            "column 'client' is not in .*in.csv; its first line has 2 other names, or is a record, and is not shown",
        ),
        (
            "in.csv",
            b"Client ,value\n1,2\n",
            r"it has 'Client ', which differs only in case or spaces: name it like this",
        ),
        ("in.csv", b"client,value\n,1\n", "column 'client' holds nulls"),
        ("in.parquet", b"PAR1 and then nothing", "in.parquet is no whole Parquet file"),
        ("in.parquet", b"client,value\n1,2\n", "is called parquet but holds text"),
        ("in.csv", b"PAR1....PAR1", "is called csv but holds parquet"),
        ("in.arrow", b"ARROW1\0\0 and then nothing", "in.arrow is no whole Arrow file"),
        ("in.arrows", b"\xff\xff\xff\xff and then nothing at all", "is not an Arrow stream|damaged"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, named: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DiscreetError, match=named):
        sample_file(str(tmp_path / name), str(tmp_path / "out.parquet"), REQUEST)
    assert {path.name for path in tmp_path.iterdir()} == {name}


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="names of files are texts there")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / os.fsdecode(b"\xff" + suffix.encode())
    write: Any = {
        ".csv": pl.DataFrame.write_csv,
        ".parquet": pl.DataFrame.write_parquet,
        ".arrow": pl.DataFrame.write_ipc,
    }
    with path.open("wb") as file:
        write[suffix](pl.DataFrame(rows()), file)
    with pytest.raises(DiscreetError, match="is not UTF-8; rename it"):
        file_source(str(path))


def test_a_stream_that_ends_early_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with pa.ipc.new_stream(whole, frame().to_arrow().schema) as stream:
        stream.write_table(frame().to_arrow(), max_chunksize=500)
    (tmp_path / "in.arrows").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    with pytest.raises(DiscreetError, match="ends early or is damaged"):
        sample_file(str(tmp_path / "in.arrows"), str(tmp_path / "out.parquet"), REQUEST)
    assert not (tmp_path / "out.parquet").exists()


def test_places_that_will_not_do(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "in.parquet")
    frame().write_csv(tmp_path / "in.csv")
    (tmp_path / "empty").mkdir()
    cases = [
        (tmp_path / "nowhere.parquet", tmp_path / "out.parquet", "does not exist"),
        (tmp_path / "empty", tmp_path / "out.parquet", "holds no"),
        (tmp_path, tmp_path.parent / f"{tmp_path.name}.parquet", "mixes csv and parquet"),
        (tmp_path / "in.parquet", tmp_path / "out.xlsx", "ends in none of"),
        (tmp_path / "in.parquet", tmp_path / "in.csv" / "out.parquet", "cannot be written|folder cannot be made"),
        (
            tmp_path / "in.parquet",
            tmp_path / "in.csv" / "no" / "out.parquet",
            "cannot be written|folder cannot be made",
        ),
        (tmp_path / "in.parquet", tmp_path / "empty", "ends in none of"),
        (tmp_path / "in.parquet", tmp_path / "\0.parquet", "cannot be written|could not be written"),
        (tmp_path / "\0.parquet", tmp_path / "out.parquet", "does not exist"),
    ]
    for source, output, named in cases:
        with pytest.raises(DiscreetError, match=named):
            sample_file(str(source), str(output), REQUEST)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(DiscreetError, match="is a folder"):
        sample_file(str(tmp_path / "in.parquet"), str(tmp_path / "folder.parquet"), REQUEST)
    with pytest.raises(DiscreetError, match="format = 'xml'"):
        choose_output_format("out", "xml")
    assert choose_output_format("-") == "arrow"


@pytest.mark.parametrize("pattern", ["folder/**/*.parquet", "link/*.parquet", "link/../folder/**/o*"])
def test_no_output_lies_among_what_the_next_release_reads(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    frame().write_parquet(tmp_path / "folder" / "old.parquet")
    with pytest.raises(DiscreetError, match="lie among it"):
        sample_file(str(tmp_path / pattern), str(tmp_path / "folder" / "out.parquet"), REQUEST)


@pytest.mark.parametrize(
    ("pattern", "among", "apart"),
    [
        ("**/b/**/c.csv", ["b/c.csv", "b/x/c.csv", "w/b/c.csv", "w/v/b/x/y/c.csv"], ["c.csv", "b/x/d.csv", "wb/c.csv"]),
        ("a**/[!x]?.csv", ["a/bc.csv", "ab/cc.csv"], ["a/xc.csv", "a/b/bc.csv", "bc.csv"]),
        ("*/c*", ["a/c.csv", "b/cd"], ["c.csv", "a/b/c.csv", "a/b/d.csv"]),
        ("w/**", ["w/c.csv", "w/b/c.csv"], ["c.csv"]),
    ],
)
def test_what_a_glob_would_name_once_it_is_written_is_among_it(
    tmp_path: Path, pattern: str, among: list[str], apart: list[str]
) -> None:
    (tmp_path / among[0]).parent.mkdir(parents=True)
    (tmp_path / among[0]).touch()  # a glob without files is an error
    for name in among[1:] + apart:
        path, files = tmp_path / name, str(tmp_path / pattern)
        assert is_among_inputs(files, str(path)) == (name in among), name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert (str(path) in glob.glob(files, recursive=True)) == (name in among), name
    assert is_among_inputs(str(tmp_path / "**/*.csv"), str(tmp_path / ".hidden/c.csv"))  # refused to be sure


@pytest.mark.parametrize(("stream", "source", "output"), [("stdin", "-", "o.csv"), ("stdout", "in.parquet", "-")])
def test_a_closed_standard_stream_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, source: str, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    frame().write_parquet("in.parquet")
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises(DiscreetError, match="is closed; open it"):
        sample_file(source, output, REQUEST)


def test_the_folder_of_the_output_is_made_once_all_is_known_to_be_well(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "in.parquet")
    output = tmp_path / "new" / "deep" / "out.csv"
    with pytest.raises(DiscreetError, match="column 'no' is not in"):
        sample_file(
            str(tmp_path / "in.parquet"), str(output), Request(client="no", value="value", domain=40, epsilon=1.0)
        )
    assert not (tmp_path / "new").exists()
    sample_file(str(tmp_path / "in.parquet"), str(output), REQUEST)
    assert output.is_file()


def test_a_client_list_is_a_text_file_or_a_table(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("1\n-2\n30\n")
    assert read_client_list_file(tmp_path / "list.txt", "client", integers=True).to_pylist() == [1, -2, 30]
    assert read_client_list_file(tmp_path / "list.txt", "client", integers=False).to_pylist() == ["1", "-2", "30"]
    frame().write_parquet(tmp_path / "list.parquet")
    assert set(read_client_list_file(tmp_path / "list.parquet", "client", integers=False).to_pylist()) == set(
        NAMED["client"]
    )
    with pytest.raises(DiscreetError, match="column 'who' is not in"):
        read_client_list_file(tmp_path / "list.parquet", "who", integers=False)
    frame().write_csv(tmp_path / "list.csv")
    assert set(read_client_list_file(tmp_path / "list.csv", "client", integers=False).to_pylist()) == set(
        NAMED["client"]
    )
    frame(TABLE).write_csv(tmp_path / "list.csv")
    assert set(read_client_list_file(tmp_path / "list.csv", "client", integers=True).to_pylist()) == set(
        TABLE["client"]
    )
    (tmp_path / "list.txt").write_text("1\n01\n")
    with pytest.raises(DiscreetError, match="client 2 is no integer"):
        read_client_list_file(tmp_path / "list.txt", "client", integers=True)
    (tmp_path / "list.txt").write_text("1\n\n2\n")
    with pytest.raises(DiscreetError, match="line 2 is empty; each line is a client"):
        read_client_list_file(tmp_path / "list.txt", "client", integers=True)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "stream"])
def test_standard_input_in_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    content = io.BytesIO()
    if kind == "stream":
        with pa.ipc.new_stream(content, frame().to_arrow().schema) as stream:
            stream.write_table(frame().to_arrow())
    else:
        {"parquet": frame().write_parquet, "csv": frame().write_csv, "arrow": frame().write_ipc}[kind](content)  # type: ignore[operator]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.getvalue()))))
    with open_standard_input(tmp_path) as source:
        assert list(source.schema) == ["client", "value"]
        assert source.name == "standard input"
        assert sum(batch.height for batch in source.read_prepared_frames(lambda rows: rows)) == 4000
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").write_bytes(b"old")
    schema = pa.schema([("sample", pa.int64())])

    def broken() -> None:
        with open_table_writer(str(tmp_path / "out.parquet"), schema, "parquet", replace=True) as writer:
            writer.write(pa.RecordBatch.from_pydict({"sample": [1]}))
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        broken()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.parquet", b"old")]


@pytest.mark.slow
@pytest.mark.parametrize("either_code", [Code.NUMPY], indirect=True)  # nothing is drawn
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_kill_leaves_no_file_that_looks_whole(tmp_path: Path, kind: str) -> None:
    """Killed outright between two writes: the old file is still there, and what is left over is called partial."""
    target = tmp_path / f"out.{kind}"
    target.write_bytes(b"old")
    program = f"""
        import time, pyarrow as pa
        from discreet.tables._sources import _opening as outputs
        outputs._ROW_GROUP = 1000
        batch = pa.RecordBatch.from_pydict({{"sample": list(range(1000))}})
        with outputs.open_table_writer({str(target)!r}, batch.schema, {kind!r}, replace=True) as writer:
            for _ in range(100):
                writer.write(batch)
            print("writing", flush=True)
            time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    left = {path.name for path in tmp_path.iterdir()} - {target.name}
    assert target.read_bytes() == b"old"
    assert len(left) == 1
    assert left.pop().endswith(".partial")


@pytest.mark.slow
def test_an_interrupted_release_cleans_up(tmp_path: Path) -> None:
    """Ctrl-C while records lie on disk: neither an output nor what was spilled is left."""
    pl.DataFrame(rows(clients=1000, number=200_000)).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "scratch").mkdir()
    program = f"""
        import sys, time
        from pathlib import Path
        from discreet.tables import Request
        from discreet.tables import _local as local
        from discreet.tables import _parts as parts
        from discreet.tables._sources import _source as sources
        sources._BATCH = 5000
        local._LEAST_MEMORY = 1
        spill = parts.ClientParts._spill_to_disk
        def slow(self):
            spill(self)
            print("spilled", flush=True)
            time.sleep(60)  # an interrupt ends it
        parts.ClientParts._spill_to_disk = slow
        request = Request(client="client", value="value", domain=40, epsilon=1.0)
        local.sample_file({str(tmp_path / "in.parquet")!r}, {str(tmp_path / "out.parquet")!r}, request, memory=20000,
                          folder=Path({str(tmp_path / "scratch")!r}))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spilled\n"
        process.send_signal(signal.SIGINT)
    assert process.returncode != 0
    assert {path.name for path in tmp_path.iterdir()} == {"in.parquet", "scratch"}
    assert list((tmp_path / "scratch").iterdir()) == []


def test_rows_are_known_where_the_format_says_so(tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "in.parquet")
    frame().write_csv(tmp_path / "in.csv")
    assert file_source(str(tmp_path / "in.parquet")).rows == 4000
    assert file_source(str(tmp_path / "in.csv")).rows is None


@pytest.mark.parametrize("room", [1 << 30, 1])
@pytest.mark.parametrize("parts", [1, 2, 3, 100])
def test_parts_of_parquet_files_hold_every_row_once(tmp_path: Path, parts: int, room: int) -> None:
    """By polars, and by Arrow in slices where a row group is larger than there is room for."""
    paths = []
    for number, (count, size) in enumerate([(0, 10), (1000, 300), (7, 10), (500, 500), (0, 10)]):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"row": [f"{number} {row}" for row in range(count)]}), path, row_group_size=size)
        paths.append(str(path))
    found = ParquetSource("input", paths).row_groups_by_part(parts)
    assert len(found) <= parts
    read: list[str] = []
    for part in found:
        source = ParquetSource("input", *zip(*part, strict=True))
        lines = [row for frame in source.read_prepared_frames(lambda rows: rows, room=room) for row in frame["row"]]
        assert len(lines) == source.rows
        read += lines
    assert sorted(read) == sorted(
        [f"1 {n}" for n in range(1000)] + [f"2 {n}" for n in range(7)] + [f"3 {n}" for n in range(500)]
    )


def test_a_file_that_changes_after_its_row_groups_were_chosen_is_refused(tmp_path: Path) -> None:
    """Rows that came later were never read, and missing row groups were left out in silence."""
    path = tmp_path / "in.parquet"
    for rows_before, rows_after in ((100, 90), (100, 110), (100, 5)):
        pq.write_table(pa.table({"row": range(rows_before)}), path, row_group_size=10)
        (part,) = ParquetSource("input", [str(path)]).row_groups_by_part(1)
        pq.write_table(pa.table({"row": range(rows_after)}), path, row_group_size=10)
        with pytest.raises(DiscreetError, match="has changed while it was read; run the same again"):
            ParquetSource("input", *zip(*part, strict=True))
    pq.write_table(pa.table({"row": range(100)}), path, row_group_size=50)
    (part,) = ParquetSource("input", [str(path)]).row_groups_by_part(1)
    pq.write_table(pa.table({"row": range(100)}), path, row_group_size=100)
    with pytest.raises(DiscreetError, match="has changed while it was read"):
        ParquetSource("input", *zip(*part, strict=True))
