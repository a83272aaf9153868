"""Where samples go: Parquet, CSV or Arrow, written beside the target and renamed into place once it is whole.

A crash, a full disk or a kill at any moment leaves either the old file or the new one under the name that was asked for, never
a part of one; what it may leave is a file `.NAME.*.partial`.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from discreet.engines.formats import STANDARD, WRITTEN
from discreet.errors import DiscreetError

FORMATS = ("parquet", "csv", "arrow")
_ROW_GROUP = 1 << 20


class Writer(Protocol):
    """Takes batches; `close` makes the file whole."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _Grouped:
    """Gathers small batches into row groups of a useful size."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._waiting, self._rows = writer, list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


def format_of(path: str, declared: str | None = None) -> str:
    """The format to write: the declared one, or that of the file's ending; Arrow for standard output."""
    if declared is not None:
        if declared not in FORMATS:
            raise DiscreetError(f"format = {declared!r} is not one of {', '.join(FORMATS)}")
        return declared
    if path == STANDARD:
        return "arrow"
    suffix = Path(path).suffix.lower()
    if suffix not in WRITTEN:
        raise DiscreetError(f"output {path} ends in none of {', '.join(WRITTEN)}; rename it or give a format")
    return WRITTEN[suffix]


@contextmanager
def writer_to(path: str, schema: pa.Schema, kind: str) -> Iterator[Writer]:
    """A writer to a file that appears only if all goes well, or to standard output ('-')."""
    if path == STANDARD:
        writer = _writer(sys.stdout.buffer, schema, kind, streaming=True)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.is_dir():
        raise DiscreetError(f"output {path} is a folder; name a file")
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise DiscreetError(f"output {path} cannot be written: {getattr(error, 'strerror', error)}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            writer = _writer(file, schema, kind, streaming=False)
            try:
                yield writer
            except BaseException:
                with suppress(Exception):
                    writer.close()  # or it would complain, when it is forgotten, that its file is gone
                raise
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise DiscreetError(f"output {path} could not be written: {error.strerror or error}") from None
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _writer(file: Any, schema: pa.Schema, kind: str, *, streaming: bool) -> Writer:
    match kind:
        case "parquet":
            import pyarrow.parquet as pq

            return _Grouped(pq.ParquetWriter(file, schema, compression="zstd"))
        case "csv":
            from pyarrow import csv

            return _Plain(csv.CSVWriter(file, _plain(schema)), _plain(schema))
    if streaming:
        return pa.ipc.new_stream(file, schema)  # type: ignore[no-any-return]
    return _Grouped(pa.ipc.new_file(file, schema))


class _Plain:
    """Writes dictionary columns as what they stand for: CSV knows no dictionaries."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch.cast(self._schema))

    def close(self) -> None:
        self._writer.close()


def _plain(schema: pa.Schema) -> pa.Schema:
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return pa.schema(fields)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a power cut, where the system can promise that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
