"""Where records come from: Parquet, CSV and Arrow files, folders and globs; standard input; tables and streams in memory.

A source gives its columns and, batch by batch, its rows as polars frames. Files are scanned, never loaded whole; a CSV column
has no type of its own (`untyped`), so that no guess about the data decides what a client is called.
"""

import fnmatch
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from discreet.engines.domains import is_whole, read_lines
from discreet.engines.formats import READ
from discreet.errors import DiscreetError

METADATA = b"discreet.agreement"  # where a file of samples holds the agreement they were released under
_BATCH = 1 << 19  # rows
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}

Prepare = Callable[[Any], Any]


class Source(Protocol):
    """Rows to be read once."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> pl.Schema: ...
    @property
    def untyped(self) -> bool: ...
    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""

    def frames(self, prepare: Prepare) -> Iterator[pl.DataFrame]:
        """The rows after `prepare`, a function on frames lazy or not, batch by batch. Reading may start at once."""

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        """A few distinct values of a column among the rows that `prepare` keeps."""


class Scanned:
    """Files that polars scans, or a frame."""

    def __init__(self, name: str, frame: pl.LazyFrame, *, untyped: bool = False, rows: int | None = None) -> None:
        self.name, self.untyped, self.rows = name, untyped, rows
        self._frame = frame
        with polars_errors(name):
            self.schema = frame.collect_schema()

    def frames(self, prepare: Prepare) -> Iterator[pl.DataFrame]:
        with polars_errors(self.name):
            batches = prepare(self._frame).collect_batches(chunk_size=_BATCH, maintain_order=False)
        return self._each(batches)

    def _each(self, batches: Any) -> Iterator[pl.DataFrame]:
        with polars_errors(self.name):
            yield from batches

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        with polars_errors(self.name):
            rows: pl.DataFrame = prepare(self._frame).select(column).unique(maintain_order=True).head(number).collect()
        return rows.to_series().to_list()


class Streamed:
    """Arrow record batches that come one after the other and only once."""

    def __init__(self, name: str, reader: pa.RecordBatchReader) -> None:
        self.name, self.untyped = name, False
        self.rows: int | None = None
        self._reader = reader
        self._last = pl.DataFrame()
        try:
            self.schema = pl.Schema(pl.from_arrow(reader.schema.empty_table()).schema)  # type: ignore[union-attr]
        except (pl.exceptions.PolarsError, pa.ArrowException) as error:
            raise DiscreetError(f"{name}: {_first_line(error)}") from None

    def frames(self, prepare: Prepare) -> Iterator[pl.DataFrame]:
        try:
            for batch in self._reader:
                with polars_errors(self.name):
                    frame = pl.from_arrow(batch)
                    assert isinstance(frame, pl.DataFrame)
                    self._last = frame
                    yield prepare(frame)
        except (pa.ArrowException, OSError) as error:
            raise DiscreetError(f"{self.name} ends early or is damaged: {_first_line(error)}") from None

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        found: pl.DataFrame = prepare(self._last)
        return found.select(column).unique(maintain_order=True).head(number).to_series().to_list()


def source_of(table: Any) -> Source:
    """A source from a pyarrow Table, RecordBatch or RecordBatchReader, a polars frame (lazy or not), or a path."""
    match table:
        case pl.LazyFrame():
            return Scanned("the frame", table)
        case pl.DataFrame():
            return Scanned("the frame", table.lazy(), rows=table.height)
        case pa.Table():
            return Scanned("the table", pl.from_arrow(table).lazy(), rows=table.num_rows)  # type: ignore[union-attr]
        case pa.RecordBatch():
            return source_of(pa.Table.from_batches([table]))
        case pa.RecordBatchReader():
            return Streamed("the stream", table)
        case str() | Path():
            return file_source(str(table))
    raise DiscreetError(
        f"table is a {type(table).__name__}; pass a pyarrow Table or RecordBatchReader, a polars frame, or the path of a file"
    )


def file_source(path: str) -> Source:
    """A source from a file, a folder or a glob of Parquet, CSV or Arrow files."""
    files = _files(path)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DiscreetError(
            f"{path} mixes {' and '.join(sorted(kinds))} files; name those of one kind, for example by a glob"
        )
    with polars_errors(path):
        match kinds.pop():
            case "parquet":
                frame = pl.scan_parquet(files)
                return Scanned(path, frame, rows=int(frame.select(pl.len()).collect().item()))
            case "csv":
                return Scanned(path, pl.scan_csv(files, infer_schema=False), untyped=True)
            case "arrow":
                return Scanned(path, pl.scan_ipc(files))
    if len(files) > 1:
        raise DiscreetError(f"{path} holds {len(files)} Arrow streams; join them, or write Arrow files or Parquet")
    return _stream(path, pa.OSFile(files[0]))


def reads(path: str, other: str) -> bool:
    """Whether a file of that name is among those that `file_source(path)` reads, or would be the next time."""
    if "\0" in path + other:  # no file is called so: whoever opens it says so
        return False
    if os.path.isdir(path) and Path(path).resolve() in Path(other).resolve().parents:
        return True
    if fnmatch.fnmatch(os.path.abspath(other), os.path.abspath(path)):
        return True
    return any(os.path.exists(other) and os.path.samefile(file, other) for file in _files(path))


def carried_agreement(path: str) -> str | None:
    """The agreement that files of samples carry, as JSON; None where they carry none. Records name their own: see `tallies`."""
    first = _files(path)[0]
    try:
        match _kind(first):
            case "parquet":
                import pyarrow.parquet as pq

                found = pq.read_schema(first).metadata
            case "arrow":
                found = pa.ipc.open_file(first).schema.metadata
            case _:
                return None
    except (pa.ArrowException, OSError) as error:
        raise DiscreetError(f"{path}: {_first_line(error)}") from None
    text = (found or {}).get(METADATA)
    return None if text is None else text.decode()


def client_list(path: Path, column: str, *, integers: bool) -> pa.Array:
    """All clients: a Parquet, Arrow or CSV table with that column, or a text file with one client on each line."""
    if _kind(str(path)) == "csv" and path.suffix.lower() != ".csv":
        return _client_column(read_lines(path, "client list"), path, integers=integers)
    source = file_source(str(path))
    if column not in source.schema:
        raise DiscreetError(f"column {column!r} is not in {path}; it has {', '.join(map(repr, source.schema))}")
    clients = pl.concat(list(source.frames(lambda frame: frame.select(column).unique()))).to_series()
    if clients.null_count():
        raise DiscreetError(f"column {column!r} of {path} holds nulls; filter them out")
    return _client_column(clients.to_list(), path, integers=integers) if source.untyped else clients.to_arrow()


def _client_column(texts: list[str], path: Path, *, integers: bool) -> pa.Array:
    """Texts as the clients they stand for."""
    if not integers:
        return pa.array(texts, pa.large_string())
    for number, text in enumerate(texts, start=1):
        if not is_whole(text):
            raise DiscreetError(f"{path}, client {number}: {text!r} is no integer, but the clients of the table are")
    return pa.array(map(int, texts), pa.int64())


@contextmanager
def standard_input(folder: Path | None) -> Iterator[Source]:
    """A source from standard input: an Arrow stream as it comes; anything else is first put into a file of its own."""
    stream = sys.stdin.buffer
    head = stream.peek(8)[:4] if hasattr(stream, "peek") else b""
    if _MAGIC.get(head) == "arrow stream":
        yield _stream("standard input", stream)
        return
    with tempfile.TemporaryDirectory(prefix="discreet-", dir=folder) as spool:
        copy = Path(spool) / "input"
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        source = file_source(str(copy))
        if isinstance(source, Scanned):
            source.name = "standard input"
        yield source


@contextmanager
def polars_errors(name: str) -> Iterator[None]:
    """What polars says about the user's data, as one of our errors."""
    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise DiscreetError(f"{name}: {_first_line(error)}") from None
    except OSError as error:
        raise DiscreetError(f"{name} cannot be read: {_first_line(error)}") from None


def _stream(name: str, stream: Any) -> Source:
    try:
        return Streamed(name, pa.ipc.open_stream(stream))
    except (pa.ArrowException, OSError) as error:
        raise DiscreetError(f"{name} is not an Arrow stream: {_first_line(error)}") from None


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(str(file) for file in Path(path).rglob("*") if file.suffix in READ and file.is_file())
        if not found:
            raise DiscreetError(f"folder {path} holds no {', '.join(READ)} file")
        return found
    if os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DiscreetError(f"{path} does not exist")
    return found


def _kind(path: str) -> str:
    """By the first bytes, which do not lie; a file with none of these is CSV."""
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except OSError as error:
        raise DiscreetError(f"{path} cannot be read: {error.strerror}") from None
    if not head:
        raise DiscreetError(f"{path} is empty")
    found = _MAGIC.get(head, "csv")
    declared = READ.get(Path(path).suffix.lower(), found)
    if declared != found and not {declared, found} <= {"arrow", "arrow stream"}:
        raise DiscreetError(f"{path} is called {declared} but holds {'text' if found == 'csv' else found}")
    return found


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
