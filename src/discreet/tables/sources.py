"""Rows to be released or counted, as frames: what polars scans, Parquet files, and Arrow batches.

A source gives its columns and, batch by batch, its rows. What comes as Arrow is checked in full before it is read; whatever a reader
fails on becomes one of our errors, which show no value of a record.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from discreet.errors import DiscreetError
from discreet.tables import _parquet as parquet
from discreet.tables.arrow import arrow_errors, checked, pieces, schema_of

METADATA = b"discreet.agreement"  # where a file of samples holds the agreement they were released under
FEW = 3  # examples in a message
ROOM = 1 << 26  # bytes that polars may unpack at a time
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH = 1 << 19  # rows
_TOLD = {  # what polars says, and what we do
    "found more fields": "a row has more fields than the header; correct it",
    "invalid utf-8": "it holds text that is not UTF-8; write it in UTF-8",
    "could not parse": "a quote is not closed, or stands where none may; correct it",
    "csv malformed": "its quotes do not pair up; correct them",
    "exploded columns": "lists of values and of their counts differ in length; correct them",
    "unable to find column": "a column is of a kind that is not read: numbers, texts and lists of these are",
    "more than once": "two of its columns have one name; rename one of them",
}

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

    @property
    def agreement(self) -> str | None:
        """The agreement that samples carry with them, as JSON; None where they carry none. Records name their own: see `tallies`."""

    def frames(
        self, prepare: Prepare, columns: Sequence[str] | None = None, *, room: int = ROOM
    ) -> Iterator[pl.DataFrame]:
        """The rows after `prepare`, a function on frames lazy or not, batch by batch. Reading may start at once.

        `columns`: those that `prepare` needs (all, unless named). `room`: bytes that may be unpacked at a time.
        """

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        """A few distinct values of a column among the rows that `prepare` keeps."""


class Scanned:
    """A frame, or CSV files that polars scans."""

    agreement: str | None = None

    def __init__(self, name: str, frame: pl.LazyFrame, *, untyped: bool = False, rows: int | None = None) -> None:
        self.name, self.untyped, self.rows = name, untyped, rows
        self._frame = frame
        with reader_errors(name):
            self.schema = frame.collect_schema()

    def frames(
        self, prepare: Prepare, columns: Sequence[str] | None = None, *, room: int = ROOM
    ) -> Iterator[pl.DataFrame]:
        with reader_errors(self.name):
            batches = prepare(self._frame).collect_batches(chunk_size=_BATCH, maintain_order=False)
        return self._each(batches)

    def _each(self, batches: Any) -> Iterator[pl.DataFrame]:
        while True:
            with reader_errors(self.name):
                try:
                    frame = next(batches)
                except StopIteration:
                    return
            yield frame

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        with reader_errors(self.name):
            rows: pl.DataFrame = prepare(self._frame).select(column).unique(maintain_order=True).head(number).collect()
        return rows.to_series().to_list()


class Parquet(Scanned):
    """Parquet files, by polars where their row groups are of modest size, else by Arrow in slices."""

    def __init__(self, name: str, paths: Sequence[str]) -> None:
        self._files = [parquet.File(path, name if len(paths) == 1 else path) for path in paths]
        rows = sum(file.rows for file in self._files)
        with reader_errors(name):
            frame = pl.scan_parquet(list(paths), glob=False)
        super().__init__(name, frame, rows=rows)
        self.agreement = carried(name, (file.metadata for file in self._files))

    def frames(
        self, prepare: Prepare, columns: Sequence[str] | None = None, *, room: int = ROOM
    ) -> Iterator[pl.DataFrame]:
        columns = list(self.schema) if columns is None else list(columns)
        sizes = [chunks for file in self._files for chunks in file.chunks(columns)]
        if max((sum(chunk.unpacked for chunk in chunks) for chunks in sizes), default=0) <= room:
            return super().frames(prepare, columns)
        for chunk in (chunk for chunks in sizes for chunk in chunks):
            if chunk.nested and chunk.unpacked > max(room, ROOM):
                raise DiscreetError(
                    f"{self.name}: a row group of column {chunk.column!r} would unpack to {chunk.unpacked:,} bytes of lists; write the "
                    "file with smaller row groups, or give more memory"
                )
        return self._slices(prepare, columns)

    def _slices(self, prepare: Prepare, columns: list[str]) -> Iterator[pl.DataFrame]:
        for file in self._files:
            for batch in file.batches(columns):
                yield from _prepared(self.name, batch, columns, prepare)


class Batches:
    """Arrow record batches, which come one after the other and perhaps only once."""

    untyped = False

    def __init__(
        self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int | None = None
    ) -> None:
        self.name, self.rows = name, rows
        self._batches, self._last = batches, pl.DataFrame()
        self.schema = schema_of(schema, name)
        self.agreement = carried(name, [schema.metadata])

    def frames(
        self, prepare: Prepare, columns: Sequence[str] | None = None, *, room: int = ROOM
    ) -> Iterator[pl.DataFrame]:
        for batch in self._batches:
            for frame in _pieces(self.name, batch, columns):
                self._last = frame
                with reader_errors(self.name):
                    prepared = prepare(frame)
                yield prepared

    def examples(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        with reader_errors(self.name):
            found: pl.DataFrame = prepare(self._last)
        return distinct(found, column, number)


def few(items: Sequence[Any]) -> str:
    """The first few items, for a message."""
    return ", ".join(map(repr, items[:FEW])) + (" and more" if len(items) > FEW else "")


def distinct(frame: pl.DataFrame, column: str, number: int) -> list[Any]:
    """So many distinct values of a column, those that come first."""
    return frame.select(column).unique(maintain_order=True).head(number).to_series().to_list()


def _pieces(name: str, batch: pa.RecordBatch, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    found = checked(batch, name, columns)
    with arrow_errors(name, "cannot be read"), reader_errors(name):
        yield from pieces(found)


def _prepared(name: str, batch: pa.RecordBatch, columns: Sequence[str], prepare: Prepare) -> Iterator[pl.DataFrame]:
    for frame in _pieces(name, batch, columns):
        with reader_errors(name):
            prepared = prepare(frame)
        yield prepared


def carried(name: str, carried: Iterable[Any]) -> str | None:
    """The agreement in the metadata of files, if they all carry the same one."""
    texts = {_in_metadata(metadata or {}) for metadata in carried}
    if len(texts) > 1:
        raise DiscreetError(f"{name}: its files were released under different agreements; name those of one")
    return texts.pop() if texts else None


def _in_metadata(metadata: Any) -> str | None:
    """An agreement in the metadata of a schema, where we put it or where Spark puts what a column carries."""
    found = metadata.get(METADATA)
    try:
        if found is not None:
            return str(found.decode())
        fields = json.loads(metadata.get(_SPARK, b"{}")).get("fields", [])
        return next(
            (field["metadata"][METADATA.decode()] for field in fields if METADATA.decode() in field["metadata"]), None
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # it is somebody else's


@contextmanager
def reader_errors(name: str) -> Iterator[None]:
    """What polars says about the user's data, as one of our errors: in our words, since its own may show values."""
    try:
        yield
    except pl.exceptions.PanicException:
        raise DiscreetError(f"{name}: it is damaged, or holds what its reader does not know; write it again") from None
    except pl.exceptions.PolarsError as error:
        text = str(error).lower()
        told = next((ours for theirs, ours in _TOLD.items() if theirs in text), None)
        raise DiscreetError(
            f"{name}: {told or f'it is damaged, or not what it seems to be ({type(error).__name__})'}"
        ) from None
    except OSError as error:
        raise DiscreetError(f"{name} cannot be read: {error.strerror or type(error).__name__}") from None
