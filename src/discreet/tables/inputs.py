"""Where records come from: Parquet, Arrow and text files, folders and globs; standard input; tables and streams in memory.

Files are scanned, never loaded whole.
"""

import fnmatch
import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from discreet.errors import DiscreetError
from discreet.forks import refuse_after_fork
from discreet.tables import _ipc as ipc
from discreet.tables._delimited import delimited
from discreet.tables._json_lines import JsonLines
from discreet.tables.arrow import arrow_errors
from discreet.tables.formats import IN_FOLDERS, READ, STANDARD, TEXTS
from discreet.tables.lines import is_whole, read_lines
from discreet.tables.scratch import nameless_file, path_of
from discreet.tables.sources import Batches, Parquet, Scanned, Source, carried

_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_HEAD = 1 << 16  # bytes to look for a first line in


def source_of(table: Any) -> Source:
    """A source from a pyarrow Table, RecordBatch or RecordBatchReader, a frame of polars (lazy or not) or pandas, or a path."""
    refuse_after_fork()
    match table:
        case pl.LazyFrame():
            return Scanned("the frame", table)
        case pl.DataFrame():
            return Scanned("the frame", table.lazy(), rows=table.height)
        case pa.Table():
            return Batches("the table", table.schema, _of_table(table), table.num_rows)
        case pa.RecordBatch():
            return Batches("the batch", table.schema, [table], table.num_rows)
        case pa.RecordBatchReader():
            return Batches("the stream", table.schema, _of_reader(table))
        case str() | Path():
            return file_source(str(table))
        case Scanned() | Batches() | JsonLines():
            return table
    if hasattr(table, "__arrow_c_stream__"):  # a pandas frame, and what else speaks Arrow
        return _of_other(table)
    raise DiscreetError(
        f"table is a {type(table).__name__}; pass a pyarrow Table or RecordBatchReader, a polars or pandas frame, or the path of a file"
    )


def _of_other(table: Any) -> Source:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError, ValueError, ImportError):  # values are not shown: they are clients' own
        raise DiscreetError(
            f"the {type(table).__name__} cannot be read as Arrow: a column holds values of several kinds, or of one that Arrow does not "
            "know; make its columns texts or numbers"
        ) from None
    return Batches(f"the {type(table).__name__}", reader.schema, _of_reader(reader))


def _of_table(table: pa.Table) -> Iterator[pa.RecordBatch]:
    try:
        table.validate()  # its columns are of one length, or cutting it into batches would read past them
    except pa.ArrowException:
        raise DiscreetError(
            "the table is damaged: its columns are not of one length, or point outside; make it again"
        ) from None
    yield from table.to_batches()


def _of_reader(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        with arrow_errors("the stream", "ends early or is damaged"):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch


def file_source(path: str, *, name: str | None = None) -> Source:
    """A source from a file, a folder or a glob of Parquet, Arrow, CSV, TSV or JSON lines files. `name`: what messages call it."""
    refuse_after_fork()
    files = _files(path)
    kinds = {_format(file, name) for file in files}
    called = path if name is None else name
    if len(kinds) > 1:
        raise DiscreetError(
            f"{called} mixes {' and '.join(sorted(kinds))} files; name those of one kind, for example by a glob"
        )
    match kinds.pop():
        case "parquet":
            return Parquet(called, files)
        case "csv":
            return delimited(called, files)
        case "tsv":
            return delimited(called, files, "\t")
        case "json lines":
            return JsonLines(called, files)
        case "arrow":
            return _arrow(called, [ipc.File(file, called if len(files) == 1 else file) for file in files])
    if len(files) > 1:
        raise DiscreetError(f"{called} holds {len(files)} Arrow streams; join them, or write Arrow files or Parquet")
    with arrow_errors(called, "cannot be read"):
        file = pa.OSFile(files[0])
    return _stream(called, file)


def _arrow(name: str, files: Sequence[ipc.File]) -> Source:
    first = files[0].schema
    for file in files[1:]:
        if not file.schema.equals(first):
            raise DiscreetError(f"{name}: its files do not hold the same columns; name those that belong together")
    source = Batches(name, first, (batch for file in files for batch in file))
    source.agreement = carried(name, (file.schema.metadata for file in files))
    return source


def _stream(name: str, file: Any) -> Source:
    stream = ipc.Stream(name, file)
    return Batches(name, stream.schema, stream)


def reads(path: str, other: str) -> bool:
    """Whether a file of that name is among those that `file_source(path)` reads, or would be the next time."""
    if "\0" in path + other:  # no file is called so: whoever opens it says so
        return False
    if os.path.isdir(path) and Path(path).resolve() in Path(other).resolve().parents:
        return True
    if fnmatch.fnmatch(os.path.abspath(other), os.path.abspath(path)):
        return True
    return any(os.path.exists(other) and os.path.samefile(file, other) for file in _files(path))


def client_list(path: Path, column: str, *, integers: bool) -> pa.Array:
    """All clients: a table with that column, or a text file that is called like no table, with one client on each line."""
    if _format(str(path)) == "csv" and path.suffix.lower() not in TEXTS:
        return _client_column(read_lines(path, "client list", each="a client"), path, integers=integers)
    source = file_source(str(path))
    if column not in source.schema:
        raise DiscreetError(f"column {column!r} is not in {path}; it has {', '.join(map(repr, source.schema))}")
    found = list(source.frames(lambda frame: frame.select(column).unique(), [column]))
    clients = pl.concat(found).to_series() if found else pl.Series(column, [], dtype=source.schema[column])
    if clients.null_count():
        raise DiscreetError(f"column {column!r} of {path} holds nulls; filter them out")
    return _client_column(clients.to_list(), path, integers=integers) if source.untyped else clients.to_arrow()


def _client_column(texts: list[str], path: Path, *, integers: bool) -> pa.Array:
    """Texts as the clients they stand for."""
    if not integers:
        return pa.array(texts, pa.large_string())
    for number, text in enumerate(texts, start=1):
        if not is_whole(text):
            raise DiscreetError(f"{path}, client {number} is no integer, but the clients of the table are")
    return pa.array(map(int, texts), pa.int64())


@contextmanager
def opened(path: str, folder: Path | None = None) -> Iterator[Source]:
    """A source from files, or from standard input ('-'), which goes through a file in `folder` if it must."""
    if path == STANDARD:
        with standard_input(folder) as source:
            yield source
    else:
        yield file_source(path)


@contextmanager
def standard_input(folder: Path | None) -> Iterator[Source]:
    """A source from standard input: an Arrow stream as it comes; anything else is first put into a file of its own."""
    refuse_after_fork()
    stream = sys.stdin.buffer
    head = stream.peek(8)[:4] if hasattr(stream, "peek") else b""
    if _MAGIC.get(head) == "arrow stream":
        yield _stream("standard input", stream)
        return
    with nameless_file(folder) as spool:
        try:
            shutil.copyfileobj(stream, spool, 1 << 20)
            spool.flush()
        except OSError as error:
            raise DiscreetError(
                f"standard input could not be put on disk: {error.strerror}; say where (--scratch)"
            ) from None
        yield file_source(path_of(spool), name="standard input")


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(str(file) for file in Path(path).rglob("*") if file.suffix in IN_FOLDERS and file.is_file())
        if not found:
            raise DiscreetError(f"folder {path} holds no {', '.join(sorted(IN_FOLDERS))} file")
        return found
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise DiscreetError(f"{path} is no ordinary file; give - and pipe it to standard input")
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DiscreetError(f"{path} does not exist")
    return found


def _format(path: str, name: str | None = None) -> str:
    """The format of a file. `name`: what messages call it.

    The first bytes decide between Parquet, Arrow and text, and do not lie; among texts the ending does. A text without one of these
    endings is JSON lines if its first line is an object, else CSV.
    """
    called = path if name is None else name
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DiscreetError(f"{called} cannot be read: {error.strerror}") from None
    if not head:
        raise DiscreetError(f"{called} is empty")
    if head.startswith(_PACKED):
        raise DiscreetError(f"{called} is packed; unpack it first (Parquet and Arrow files may be compressed inside)")
    suffix, found = Path(path).suffix.lower(), _MAGIC.get(head[:4])
    if found is None:
        declared = READ.get(suffix, "text")
        if declared not in (*TEXTS.values(), "text"):
            raise DiscreetError(f"{called} is called {declared} but holds text")
        return TEXTS.get(suffix) or ("json lines" if _begins_with_an_object(head) else "csv")
    declared = READ.get(suffix, found)
    if declared != found and not {declared, found} <= {"arrow", "arrow stream"}:
        raise DiscreetError(f"{called} is called {declared} but holds {found}")
    return found


def _begins_with_an_object(head: bytes) -> bool:
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):  # ValueError: no JSON, or no UTF-8
        return False
