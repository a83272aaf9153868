"""`Source`: columns, and rows as frames batch by batch; from scans, from files whose columns may differ, and from streams.

A source has columns and yields its rows as frames, batch by batch. Files are scanned, never loaded whole. Arrow data are checked in full
before they are read. Errors of a reader become errors of ours, which show no value of a record.

Files of one input may drift: one has a column more, a column of 32-bit integers in one is 64 bits wide in another, texts are plain here
and a dictionary there, or columns stand in another order. `FileColumns` holds the columns of all files. Only the columns that are used have
to agree; one that is missing, or of another kind, is an error that names the file and the column.

| kinds of one column | read as |
|---|---|
| integers of any width | 64-bit integers (128 bits beside unsigned ones of 64, which are then checked one by one) |
| texts, dictionaries of texts | texts |
| floats of 32 and 64 bits, integers beside floats | 64-bit floats, if the column is one of numbers; for clients and labels an error |
| dates, times to the millisecond or microsecond | times: midnight of a date |
| a column of nulls alone | nulls of the kind in the other files |

A folder named `month=01` in the path of a file is a column `month` of that file, the text `01` in each of its rows (a *partition key*, as
Hive and Spark write them), unless the file has a column of that name. Keys have no types, as the columns of a CSV file have none.
"""

import abc
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from discreet.domain import column_expression, text_without_invisible_differences
from discreet.errors import DiscreetError
from discreet.tables._sources._arrow import (
    check_batch,
    split_batch_into_frames,
    translating_arrow_errors,
)
from discreet.tables._sources._files import (
    ParquetFile,
    RowGroups,
    partition_keys_in_path,
)

METADATA = b"discreet.agreement"  # the agreement of a file of samples
NUMBERED = b"discreet.numbered"  # of a file whose clients are numbered rows, and name nobody
FEW = 3  # examples in a message
ROOM = 1 << 26  # bytes for polars to unpack at a time
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH = 1 << 19  # rows
_SCANS = 64  # scans at a time: polars has a thread for each
TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum)
_TIMES = (pl.Datetime("ms"), pl.Datetime("us"))  # without a time zone
_WIDE = (pl.UInt64, pl.Int128)

_READER_MESSAGES = {  # messages of polars, and ours
    "found more fields": "a row has more fields than the header; correct it",
    "invalid utf-8": "it holds text that is not UTF-8; write it in UTF-8",
    "could not parse": "a quote is not closed, or stands where none may; correct it",
    "csv malformed": "its quotes do not pair up; correct them",
    "exploded columns": "lists of values and of their counts differ in length; correct them",
    "unable to find column": "a column is of a kind that is not read: numbers, texts and lists of these are",
    "more than once": "two of its columns have one name; rename one of them",
}

Prepare = Callable[[Any], Any]


class FrameRequest(NamedTuple):
    """Which frames a source is asked for: see `Source.read_prepared_frames`."""

    columns: Sequence[str] | None
    room: int
    client: str | Sequence[str] | None
    numbers: Collection[str]


class Source(abc.ABC):
    """Rows that are read once.

    Attributes:
        name: of the file or table, for messages.
        schema: the columns and their types.
        is_untyped: whether all columns are texts that get their types from a domain.
        untyped_columns: the same as a boolean, or the names of those that are (partition keys).
        is_guarded: whether texts of samples may have a guarding apostrophe (`discreet.tables._sources._text_files`).
        rows: the number of rows, if it is known without reading.
        agreement: the agreement that samples carry, as JSON, or None. Records name their own: see `tallies`.
        numbered: whether the files say that their clients are numbers of rows, as exports of a store do: equal ones are not the same client.
    """

    def __init__(
        self,
        name: str,
        schema: pl.Schema,
        *,
        untyped: bool | Collection[str] = False,
        guarded: bool = False,
        rows: int | None = None,
        agreement: str | None = None,
        metadata: Sequence[Any] = (),
    ) -> None:
        """`metadata`: those of the files, which may carry an agreement."""
        self.name, self.schema, self.rows = name, schema, rows
        self.untyped_columns, self.is_untyped, self.is_guarded = untyped, untyped is True, guarded
        self.agreement = _agreement_common_to_files(name, metadata) if agreement is None else agreement
        self.numbered = any(NUMBERED in (entry or {}) for entry in metadata)

    def read_prepared_frames(
        self,
        prepare: Prepare,
        columns: Sequence[str] | None = None,
        *,
        room: int = ROOM,
        client: str | Sequence[str] | None = None,
        numbers: Collection[str] = (),
    ) -> Iterator[pl.DataFrame]:
        """The rows after `prepare`, a function on frames lazy or not, batch by batch. Reading may start at once.

        `columns`: those that `prepare` needs (all, unless named). `room`: bytes to unpack at a time. `client`: the column of clients, if
        any, or several; a value that cannot be a name is an error if the format can tell (JSON). `numbers`: columns that may hold integers
        in one file and floats in another.
        """
        return self._read_frames(prepare, FrameRequest(columns, room, client, numbers))

    @abc.abstractmethod
    def _read_frames(self, prepare: Prepare, request: FrameRequest) -> Iterator[pl.DataFrame]:
        """The frames that were asked for."""

    @abc.abstractmethod
    def example_values(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        """A few distinct values of a column among the rows that `prepare` keeps."""


@dataclass(frozen=True)
class InputFile:
    """A file of an input: its path, its name in messages, and the kinds of its columns."""

    path: str
    name: str
    kinds: Mapping[str, Any]

    @cached_property
    def partition_values(self) -> dict[str, str | None]:
        """The values of the partition keys in its path that are not columns of its own."""
        return {key: value for key, value in partition_keys_in_path(self.path).items() if key not in self.kinds}

    def column_type(self, column: str) -> Any:
        """The kind of a column or of a partition key; None if it has neither."""
        return pl.String() if column in self.partition_values else self.kinds.get(column)

    def columns_to_read(self, columns: Iterable[str]) -> list[str]:
        """The columns to read for these: a column at least, to know the number of rows."""
        return [column for column in columns if column in self.kinds] or list(self.kinds)[:1]

    def scan_compatibility_key(self, columns: Iterable[str]) -> Any:
        """Equal for files whose columns can be scanned together."""
        return tuple(self.kinds.items()), tuple(
            self.partition_values[column] for column in columns if column in self.partition_values
        )


class FileColumns:
    """The columns of one or several files. `schema`: all of them, with the kind that all files can be read as, or that of the first file."""

    def __init__(self, name: str, files: Sequence[InputFile]) -> None:
        self.name, self.files = name, files
        names = dict.fromkeys(column for file in files for column in file.kinds)
        self.keys = frozenset(key for file in files for key in file.partition_values if key not in names)
        names.update(dict.fromkeys(key for file in files for key in file.partition_values))
        self._drifting = {column for column in names if len({file.column_type(column) for file in files}) > 1}
        self.schema = pl.Schema({column: self._common_type_to_read_column_as(column) for column in names})

    def refuse_mismatched_columns(self, columns: Iterable[str], numbers: Collection[str] = ()) -> None:
        """Raise an error, with its file, for a column that a file lacks or that is of different kinds.

        `numbers`: columns of numbers, in which integers and floats may be mixed.
        """
        for column in columns:
            if column not in self._drifting:
                continue
            first = next(file for file in self.files if file.column_type(column) is not None)
            for file in self.files:
                kind, first_kind = file.column_type(column), first.column_type(column)
                if kind is None:
                    raise DiscreetError(
                        f"{file.name} has no column {column!r}, and {first.name} has one; add it there, or name files that have it: "
                        f"it has {', '.join(map(repr, file.kinds))}"
                    )
                kinds = [column_kind for column_kind in (first_kind, kind) if column_kind != pl.Null]
                if common_column_type(kinds, numbers=column in numbers) is None:
                    raise DiscreetError(
                        f"{file.name}: column {column!r} holds {kind} values, but {first_kind} values in {first.name}; write it in one way "
                        "in all files"
                    )
                if first_kind == pl.Null:
                    first = file

    def cast_frame_to_common_types(self, frame: Any, file: InputFile, columns: Sequence[str]) -> Any:
        """The columns of a frame (lazy or not) of that file, of the kinds in which they are read."""
        keys = [
            pl.lit(file.partition_values[column], pl.String).alias(column)
            for column in columns
            if column in file.partition_values
        ]
        if keys:
            frame = frame.with_columns(keys)
        kinds = {column: self._common_type_to_read_column_as(column, numbers=True) for column in columns}
        return frame.select(
            column_expression(column) if file.column_type(column) == kind else column_expression(column).cast(kind)
            for column, kind in kinds.items()
        )

    def group_files_to_scan_together(self, columns: Sequence[str]) -> list[list[InputFile]]:
        """The files, those together whose columns can be scanned together."""
        groups: dict[Any, list[InputFile]] = {}
        for file in self.files:
            groups.setdefault(file.scan_compatibility_key(columns), []).append(file)
        return list(groups.values())

    def _common_type_to_read_column_as(self, column: str, *, numbers: bool = False) -> Any:
        """The kind that a column is read as. `numbers`: also integers beside floats have one."""
        kinds = [kind for file in self.files if (kind := file.column_type(column)) is not None]
        if column not in self._drifting:
            return kinds[0]
        common = common_column_type([kind for kind in kinds if kind != pl.Null], numbers=numbers)
        if common is not None:
            return common
        # of numbers: `refuse_mismatched_columns` names the file with floats
        return next((kind for kind in kinds if kind.is_integer()), kinds[0])


def common_column_type(kinds: Sequence[Any], *, numbers: bool) -> Any:
    """The kind as which values of several kinds can be read without a loss; None if there is none.

    `numbers`: floats may be of several widths, and beside integers.
    """
    if not kinds:
        return pl.Null()
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(kind.is_integer() for kind in kinds):
        return pl.Int128() if any(kind in _WIDE for kind in kinds) else pl.Int64()
    if all(kind in TEXT_KINDS for kind in kinds):
        return pl.String()
    if numbers and all(kind.is_integer() or kind.is_float() for kind in kinds):
        return pl.Float64()
    if all(kind == pl.Date or kind in _TIMES for kind in kinds):
        return pl.Datetime("us")
    if all(isinstance(kind, pl.List) for kind in kinds):
        item_kind = common_column_type([kind.inner for kind in kinds if kind.inner != pl.Null], numbers=numbers)
        return None if item_kind is None else pl.List(item_kind)
    return None


def columns_as_text(schema: Iterable[str], names: Iterable[str], *, untyped: bool) -> str:
    """The columns of a table, for a message. A text table without any that is wanted may begin with a record, which is not shown."""
    titles = list(schema)
    missing = next((name for name in names if name not in titles), "")
    similar = [
        title
        for title in titles
        if text_without_invisible_differences(title) == text_without_invisible_differences(missing)
    ]
    if missing and similar:  # what is shown is what was asked for
        return f"it has {similar[0]!r}, which differs only in case or spaces: name it like this"
    words = {part for title in titles for part in re.split('[,;|\t"]', title)}  # the separator may be another one
    if untyped and (words.isdisjoint(names) or any("\r" in title for title in titles)):  # which ends lines elsewhere
        return (
            f"its first line has {len(titles)} other names, or is a record, and is not shown: a text table begins with the names of its "
            "columns"
        )
    return f"it has {', '.join(map(repr, titles))}"


def refuse_missing_columns(names: Sequence[str], source: Source) -> None:
    """Raise an error for a source without one of these columns."""
    for name in names:
        if name not in source.schema:
            raise DiscreetError(
                f"column {name!r} is not in {source.name}; {columns_as_text(source.schema, names, untyped=source.is_untyped)}"
            )


class _ScanningSource(Source):
    """Rows that polars scans."""

    @abc.abstractmethod
    def _iterate_scans(self, columns: Sequence[str] | None) -> Iterator[pl.LazyFrame]:
        """The scans of which the rows are made, in order."""

    def _read_frames(self, prepare: Prepare, request: FrameRequest) -> Iterator[pl.DataFrame]:
        scans = list(self._iterate_scans(request.columns))
        with translating_polars_errors(self.name):
            parts = [prepare(pl.concat(scans[head : head + _SCANS])) for head in range(0, len(scans), _SCANS)]
        head, *tail = parts
        return itertools.chain(
            start_collecting_scan_in_batches(self.name, head),
            *(_collect_scan_in_batches(self.name, part) for part in tail),
        )

    def _distinct_values(self, prepare: Prepare, columns: Sequence[str] | None, column: str, number: int) -> list[Any]:
        """The first `number` distinct values of a column."""
        values: dict[Any, None] = {}
        with translating_polars_errors(self.name):
            for scan in self._iterate_scans(columns):
                rows: pl.DataFrame = (
                    prepare(scan).select(column_expression(column)).unique(maintain_order=True).head(number).collect()
                )
                values.update(dict.fromkeys(rows.to_series().to_list()))
                if len(values) >= number:
                    break
        return list(values)[:number]


class ScannedSource(_ScanningSource):
    """A frame that polars scans."""

    def __init__(
        self,
        name: str,
        frame: pl.LazyFrame,
        *,
        untyped: bool | Collection[str] = False,
        rows: int | None = None,
    ) -> None:
        with translating_polars_errors(name):
            schema = frame.collect_schema()
        super().__init__(name, schema, untyped=untyped, guarded=untyped is True, rows=rows)
        self._frame = frame

    def _iterate_scans(self, columns: Sequence[str] | None) -> Iterator[pl.LazyFrame]:
        yield self._frame

    def example_values(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        return self._distinct_values(prepare, None, column, number)


class FilesSource(_ScanningSource):
    """Parquet or CSV files that polars scans, all at once where they have the same columns."""

    def __init__(
        self,
        columns: FileColumns,
        scan: Callable[[list[str]], pl.LazyFrame],
        *,
        untyped: bool = False,
        rows: int | None = None,
        agreement: str | None = None,
        metadata: Sequence[Any] = (),
    ) -> None:
        super().__init__(
            columns.name, columns.schema,
            untyped=untyped or columns.keys, guarded=untyped, rows=rows, agreement=agreement, metadata=metadata,
        )  # fmt: skip
        self.columns, self._scan = columns, scan
        self._used: Sequence[str] | None = None

    def _read_frames(self, prepare: Prepare, request: FrameRequest) -> Iterator[pl.DataFrame]:
        self._used = request.columns
        self.columns.refuse_mismatched_columns(
            self.schema if request.columns is None else request.columns, request.numbers
        )
        return super()._read_frames(prepare, request)

    def example_values(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        return self._distinct_values(prepare, self._used, column, number)

    def _iterate_scans(self, columns: Sequence[str] | None) -> Iterator[pl.LazyFrame]:
        """A scan of all files, or of those of each shape."""
        names = list(self.schema) if columns is None else list(columns)
        with translating_polars_errors(self.name):
            for files in self.columns.group_files_to_scan_together(names):
                yield self.columns.cast_frame_to_common_types(
                    self._scan([file.path for file in files]), files[0], names
                )


class ParquetSource(FilesSource):
    """Parquet files, read by polars if their row groups are modest, otherwise by Arrow in slices.

    `row_groups`: those that are read of each file; by default all.
    """

    def __init__(self, name: str, paths: Sequence[str], row_groups: Sequence[RowGroups] | None = None) -> None:
        self._files = [
            ParquetFile(path, name if len(paths) == 1 else path, groups)
            for path, groups in zip(paths, row_groups or itertools.repeat(None), strict=False)
        ]
        kinds = []
        for file in self._files:
            with translating_polars_errors(file.name):
                kinds.append(pl.scan_parquet([file.path], glob=False).collect_schema())
        files = [InputFile(file.path, file.name, kind) for file, kind in zip(self._files, kinds, strict=True)]
        super().__init__(
            FileColumns(name, files),
            partial(pl.scan_parquet, glob=False) if row_groups is None else self._scan_row_groups,
            rows=sum(file.rows for file in self._files),
            metadata=[file.metadata for file in self._files],
        )

    def _read_frames(self, prepare: Prepare, request: FrameRequest) -> Iterator[pl.DataFrame]:
        columns = list(self.schema) if request.columns is None else list(request.columns)
        self.columns.refuse_mismatched_columns(columns, request.numbers)
        sizes = [chunks for file in self._files for chunks in file.iterate_column_chunk_layouts(columns)]
        if max((sum(chunk.unpacked_bytes for chunk in chunks) for chunks in sizes), default=0) <= request.room:
            return super()._read_frames(prepare, request._replace(columns=columns))
        for chunk in (chunk for chunks in sizes for chunk in chunks):
            if chunk.has_lists and chunk.unpacked_bytes > max(request.room, ROOM):
                raise DiscreetError(
                    f"{self.name}: a row group of column {chunk.column!r} would unpack to {chunk.unpacked_bytes:,} bytes of lists; write the "
                    "file with smaller row groups, or give more memory"
                )
        self._used = columns
        return self._read_frames_in_slices(prepare, columns)

    def _scan_row_groups(self, paths: list[str]) -> pl.LazyFrame:
        spans = {file.path: file.span_of_rows for file in self._files}
        return pl.concat([pl.scan_parquet([path], glob=False).slice(*spans[path]) for path in paths])

    @property
    def most_column_chunks_of_a_file(self) -> int:
        """The largest number of column chunks that the footer of a file lists."""
        return max((len(file.rows_of_groups) * len(file.columns) for file in self._files), default=0)

    def row_groups_by_part(self, parts: int) -> list[list[tuple[str, RowGroups]]]:
        """At most so many parts of the files with about as many rows each: paths, and the row groups of each."""
        rows_of_part, rows_before = -(-max(1, sum(file.rows for file in self._files)) // parts), 0
        row_groups: dict[int, dict[str, RowGroups]] = {}
        for file in self._files:
            for number, rows in enumerate(file.rows_of_groups):
                part = row_groups.setdefault(min(rows_before // rows_of_part, parts - 1), {})
                first = part[file.path].numbers.start if file.path in part else number
                part[file.path] = RowGroups(range(first, number + 1), file.rows_of_file)
                rows_before += rows
        return [list(part.items()) for part in row_groups.values()]

    def _read_frames_in_slices(self, prepare: Prepare, columns: list[str]) -> Iterator[pl.DataFrame]:
        for reader, file in zip(self._files, self.columns.files, strict=True):
            own_columns = file.columns_to_read(columns)
            for batch in reader.read_batches(own_columns):
                for frame in check_and_split_batch(self.name, batch, own_columns):
                    with translating_polars_errors(self.name):
                        rows = prepare(self.columns.cast_frame_to_common_types(frame, file, columns))
                    yield rows


class StreamSource(Source):
    """Frames that come one after the other, perhaps only once."""

    def __init__(
        self, name: str, schema: pl.Schema, read_frames: Callable[[FrameRequest], Iterator[pl.DataFrame]], **terms: Any
    ) -> None:
        """`read_frames`: a function that gives the frames; `terms`: as in `Source`."""
        super().__init__(name, schema, **terms)
        self._given, self._last = read_frames, pl.DataFrame()

    def _read_frames(self, prepare: Prepare, request: FrameRequest) -> Iterator[pl.DataFrame]:
        for frame in _iterate_frames_translating_errors(self.name, self._given(request)):
            self._last = frame
            with translating_polars_errors(self.name):
                rows = prepare(frame)
            yield rows

    def example_values(self, prepare: Prepare, column: str, number: int) -> list[Any]:
        with translating_polars_errors(self.name):
            rows: pl.DataFrame = prepare(self._last)
        return distinct_values(rows, column, number)


def start_collecting_scan_in_batches(name: str, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a scan, batch by batch. Reading starts at once."""
    with translating_polars_errors(name):
        batches = rows.collect_batches(chunk_size=_BATCH, maintain_order=False)
    return _iterate_frames_translating_errors(name, batches)


def _collect_scan_in_batches(name: str, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The same; reading starts with the first batch."""
    yield from start_collecting_scan_in_batches(name, rows)


def _iterate_frames_translating_errors(name: str, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Frames as they come; errors of their reader are errors of ours."""
    while True:
        with translating_polars_errors(name):
            try:
                frame = next(frames)
            except StopIteration:
                return
        yield frame


@contextmanager
def translating_polars_errors(name: str) -> Iterator[None]:
    """Turn polars' errors about the data into errors of ours: polars' messages may show values."""
    try:
        yield
    except pl.exceptions.PanicException:
        raise DiscreetError(
            f"{name}: it is damaged, or contains something its reader does not know; write it again"
        ) from None
    except pl.exceptions.PolarsError as error:
        text = str(error).lower()
        explanation = next((ours for theirs, ours in _READER_MESSAGES.items() if theirs in text), None)
        raise DiscreetError(
            f"{name}: {explanation or f'it is damaged, or not what it seems to be ({type(error).__name__})'}"
        ) from None
    except OSError as error:
        raise DiscreetError(f"{name} cannot be read: {error.strerror or type(error).__name__}") from None


def examples_as_text(items: Sequence[Any]) -> str:
    """The first few items, for a message."""
    return ", ".join(map(repr, items[:FEW])) + (" and more" if len(items) > FEW else "")


def distinct_values(frame: pl.DataFrame, column: str, number: int) -> list[Any]:
    """The first `number` distinct values of a column."""
    return frame.select(column_expression(column)).unique(maintain_order=True).head(number).to_series().to_list()


def check_and_split_batch(name: str, batch: pa.RecordBatch, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
    """An Arrow batch, checked in full, as frames."""
    subset = check_batch(batch, name, columns)
    with translating_arrow_errors(name, "cannot be read"), translating_polars_errors(name):
        yield from split_batch_into_frames(subset)


def _agreement_common_to_files(name: str, all_metadata: Iterable[Any]) -> str | None:
    """The agreement in the metadata of files, if all carry the same one."""
    texts = {_agreement_in_metadata(metadata or {}) for metadata in all_metadata}
    if len(texts) > 1:
        raise DiscreetError(f"{name}: its files were released under different agreements; name those of one")
    return texts.pop() if texts else None


def _agreement_in_metadata(metadata: Any) -> str | None:
    """An agreement in the metadata of a schema, where we or Spark put it."""
    content = metadata.get(METADATA)
    try:
        if content is not None:
            return str(content.decode())
        fields = json.loads(metadata.get(_SPARK, b"{}")).get("fields", [])
        return next(
            (field["metadata"][METADATA.decode()] for field in fields if METADATA.decode() in field["metadata"]), None
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # another program's
