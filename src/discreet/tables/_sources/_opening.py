"""Open tables: a source of records, from files, folders, globs, standard input or memory; and a writer of Parquet, Arrow or CSV.

The ending of a file and its first bytes say what it is. An Arrow stream on standard input is read as it comes; anything else there is first
put into a file.
"""

import fnmatch
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from discreet._base import note_use_of_polars_or_refuse_after_fork
from discreet._base.files import atomic_write
from discreet.errors import DiscreetError
from discreet.tables._sources._arrow import (
    ArrowFile,
    ArrowStream,
    arrow_column_as_polars_series,
    is_text_type,
    polars_schema_of_arrow,
    read_stream_batches,
    read_table_batches,
    translating_arrow_errors,
)
from discreet.tables._sources._files import (
    MAGIC,
    REPLACE_HINT,
    STANDARD,
    detect_file_format,
    has_gzip_ending,
    list_input_files,
    using_path_of_spooled_stream,
)
from discreet.tables._sources._source import (
    FileColumns,
    FrameRequest,
    InputFile,
    ParquetSource,
    ScannedSource,
    Source,
    StreamSource,
    check_and_split_batch,
)

_ROW_GROUP = 1 << 20  # rows that are written together


def source_of_table(table: Any) -> Source:
    """A source from a pyarrow Table, RecordBatch or RecordBatchReader, a frame of polars (lazy or not) or pandas, or a path."""
    note_use_of_polars_or_refuse_after_fork()
    match table:
        case pl.LazyFrame():
            return ScannedSource("the frame", table)
        case pl.DataFrame():
            return ScannedSource("the frame", table.lazy(), rows=table.height)
        case pa.Table():
            return _arrow_batch_source("the table", table.schema, read_table_batches(table), table.num_rows)
        case pa.RecordBatch():
            return _arrow_batch_source("the batch", table.schema, [table], table.num_rows)
        case pa.RecordBatchReader():
            return _arrow_batch_source("the stream", table.schema, read_stream_batches(table))
        case str() | Path():
            return file_source(str(table))
        case Source():
            return table
    if hasattr(table, "__arrow_c_stream__"):  # a pandas frame, or any other with this protocol
        return _source_of_foreign_table(table)
    raise DiscreetError(
        f"table is a {type(table).__name__}; pass a pyarrow Table or RecordBatchReader, a polars or pandas frame, or the path of a file"
    )


def _arrow_batch_source(
    name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int | None = None
) -> Source:
    """Arrow record batches, checked as they come."""

    def read_frames(request: FrameRequest) -> Iterator[pl.DataFrame]:
        return (frame for batch in batches for frame in check_and_split_batch(name, batch, request.columns))

    return StreamSource(name, polars_schema_of_arrow(schema, name), read_frames, rows=rows, metadata=[schema.metadata])


def _source_of_foreign_table(table: Any) -> Source:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, ImportError):  # the message may show values
        raise DiscreetError(
            f"the {type(table).__name__} cannot be read as Arrow: a column has values of several types, or of a type that Arrow does not "
            "know. Make each column only texts or only numbers. A column of clients needs a value in every row; numbers must be integers"
        ) from None
    return _arrow_batch_source(f"the {type(table).__name__}", reader.schema, read_stream_batches(reader))


def file_source(path: str, *, name: str | None = None, folder: Path | None = None) -> Source:
    """A source from a file, a folder or a glob of Parquet, Arrow, CSV, TSV or JSON lines files.

    `name`: its name in messages. `folder`: where packed texts are unpacked, one at a time.
    """
    note_use_of_polars_or_refuse_after_fork()
    files = list_input_files(path)
    kinds = {detect_file_format(file, name) for file in files}
    label = path if name is None else name
    if len(kinds) > 1:
        raise DiscreetError(
            f"{label} mixes {' and '.join(sorted(kinds))} files; name those of one kind, for example by a glob"
        )
    if kinds != {"json lines"}:
        _refuse_file_names_that_are_not_utf_8(files)
    match kinds.pop():
        case "parquet":
            return ParquetSource(label, files)
        case "csv" | "tsv" | "json lines" as kind:
            from discreet.tables._sources._text_files import text_files_source

            return text_files_source(kind, label, files, folder)
        case "arrow":
            return _arrow_file_source(label, [ArrowFile(file, label if len(files) == 1 else file) for file in files])
    if len(files) > 1:
        raise DiscreetError(f"{label} holds {len(files)} Arrow streams; join them, or write Arrow files or Parquet")
    with translating_arrow_errors(label, "cannot be read"):
        file = pa.OSFile(files[0])
    return _arrow_stream_source(label, file)


def _refuse_file_names_that_are_not_utf_8(files: Sequence[str]) -> None:
    """Raise an error for a file that polars and Arrow cannot open by its name. Packed texts are unpacked first."""
    for file in files:
        try:
            file.encode()
        except UnicodeEncodeError:
            if not has_gzip_ending(file):
                raise DiscreetError(
                    f"the name of {file} is not UTF-8; rename it, or give - and pipe it to standard input"
                ) from None


def _arrow_file_source(name: str, files: Sequence[ArrowFile]) -> Source:
    inputs = [InputFile(file.path, file.name, polars_schema_of_arrow(file.schema, file.name)) for file in files]
    columns = FileColumns(name, inputs)

    def read_frames(request: FrameRequest) -> Iterator[pl.DataFrame]:
        names = (
            [column for column, kind in columns.schema.items() if kind != pl.Unknown]
            if request.columns is None
            else list(request.columns)
        )
        columns.refuse_mismatched_columns(names, request.numbers)
        for file, input_file in zip(files, inputs, strict=True):
            for batch in file:
                for frame in check_and_split_batch(name, batch, input_file.columns_to_read(names)):
                    yield columns.cast_frame_to_common_types(frame, input_file, names)

    metadata = [file.schema.metadata for file in files]
    return StreamSource(name, columns.schema, read_frames, untyped=columns.keys, metadata=metadata)


def _arrow_stream_source(name: str, file: Any) -> Source:
    stream = ArrowStream(name, file)
    return _arrow_batch_source(name, stream.schema, stream)


def is_among_inputs(path: str, other: str) -> bool:
    """Whether a file of that name is, or would be, among those that `file_source(path)` reads."""
    if "\0" in path + other:  # no such file exists; opening it raises the error
        return False
    if os.path.isdir(path) and Path(path).resolve() in Path(other).resolve().parents:
        return True
    for absolute in (os.path.abspath, os.path.realpath):  # a folder may have a second name, which is a link
        if _matches_glob(Path(absolute(other)).parts, Path(absolute(path)).parts):
            return True
    return any(os.path.exists(other) and os.path.samefile(file, other) for file in list_input_files(path))


def _matches_glob(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a path matches a glob, both given by their parts. ** stands for any number of folders, none included.

    Hidden names match too, although `glob` leaves most of them out.
    """
    ends = {0}  # numbers of first names that the patterns so far match
    for pattern in patterns:
        if pattern == "**":
            ends = {end for first in ends for end in range(first, len(names) + 1)}
        else:
            ends = {end + 1 for end in ends if end < len(names) and fnmatch.fnmatch(names[end], pattern)}
    return len(names) in ends


def file_in_both_inputs(path: str, other: str) -> str | None:
    """A file that `file_source` reads from both inputs, under its name in the first; None if there is none."""
    identities = {(status.st_dev, status.st_ino) for status in map(os.stat, list_input_files(other))}
    for file in list_input_files(path):
        status = os.stat(file)
        if (status.st_dev, status.st_ino) in identities:
            return file
    return None


@contextmanager
def open_source(path: str, folder: Path | None = None) -> Iterator[Source]:
    """A source from files, or from standard input ('-'), through a file in `folder` if necessary."""
    if path == STANDARD:
        with open_standard_input(folder) as source:
            yield source
    else:
        yield file_source(path, folder=folder)


@contextmanager
def open_standard_input(folder: Path | None) -> Iterator[Source]:
    """A source from standard input: an Arrow stream as it comes; anything else is first put into a file."""
    note_use_of_polars_or_refuse_after_fork()
    if sys.stdin is None:
        raise DiscreetError("standard input is closed; open it, or name a file")
    stream = sys.stdin.buffer
    head = stream.peek(8)[:4] if hasattr(stream, "peek") else b""
    if MAGIC.get(head) == "arrow stream":
        yield _arrow_stream_source("standard input", stream)
        return
    with using_path_of_spooled_stream(stream, folder) as path:
        yield file_source(path, name="standard input")


class TableWriter(Protocol):
    """A writer of batches; `close` completes the file."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _RowGroupWriter:
    """A writer that joins small batches into row groups of a useful size."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._waiting, self._rows = writer, list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROW_GROUP:
            self._write_waiting_batches()

    def close(self) -> None:
        self._write_waiting_batches()
        self._writer.close()

    def _write_waiting_batches(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


@contextmanager
def open_table_writer(path: str, schema: pa.Schema, kind: str, *, replace: bool) -> Iterator[TableWriter]:
    """A writer to a file that appears only on success (`discreet._base.files`), or to standard output ('-').

    A missing folder is created.
    """
    if path == STANDARD:
        if sys.stdout is None:
            raise DiscreetError("standard output is closed; open it, or name a file")
        writer = _make_table_writer(sys.stdout.buffer, schema, kind, streaming=True)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with atomic_write(path, replace=replace, folders=True, fix=REPLACE_HINT) as file:
        writer = _make_table_writer(file, schema, kind, streaming=False)
        try:
            yield writer
        except BaseException:
            with suppress(Exception):
                writer.close()  # else its destructor complains that its file is closed
            raise
        writer.close()


def _make_table_writer(file: Any, schema: pa.Schema, kind: str, *, streaming: bool) -> TableWriter:
    match kind:
        case "parquet":
            import pyarrow.parquet as pq

            return _RowGroupWriter(pq.ParquetWriter(file, schema, compression="zstd"))
        case "csv":
            from pyarrow import csv

            return _CsvWriter(
                csv.CSVWriter(file, _schema_without_dictionaries(schema)), _schema_without_dictionaries(schema)
            )
    if streaming:
        return pa.ipc.new_stream(file, schema)  # type: ignore[no-any-return]
    return _RowGroupWriter(pa.ipc.new_file(file, schema))


class _CsvWriter:
    """A writer of CSV: dictionary columns become plain texts, and texts are guarded so that no spreadsheet runs them."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [_guard_column_for_spreadsheets(column) for column in batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, names=batch.schema.names).cast(self._schema))

    def close(self) -> None:
        self._writer.close()


def _guard_column_for_spreadsheets(column: pa.Array) -> pa.Array:
    """Texts for a table for people, such that no spreadsheet runs them; other columns unchanged."""
    if not is_text_type(column.type):
        return column
    from discreet.tables._sources._text_files import spreadsheet_guarded_expression

    return (
        pl.select(spreadsheet_guarded_expression(pl.lit(arrow_column_as_polars_series(column)))).to_series().to_arrow()
    )


def _schema_without_dictionaries(schema: pa.Schema) -> pa.Schema:
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return pa.schema(fields)
