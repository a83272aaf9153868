"""Arrow data from outside: columns, streams and files, checked in full before anything follows their pointers.

An Arrow buffer is a claim by its writer: offsets, lengths and indices may point anywhere in this process. A column that has passed
`check_batch` points only inside its own buffers, and its texts are UTF-8. No check looks at a value, so no message shows one. Errors of
Arrow become errors of ours.

Streams and files are followed message by message, so the unpacked size of a message is known before it is unpacked. A message whose
compressed buffers claim an implausible size is an error. The bytes of a stream pass through `_GuardedFile` on their way to Arrow; in a file
the messages are where its index says. Nothing is allocated for claimed bytes that are not there.
"""

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.files import translating_read_errors
from discreet.domain import CellDomain, Coding, Labels
from discreet.errors import DiscreetError, refuse_repeated_column_names

_ROWS = 1 << 19  # in a piece
_BYTES = 1 << 26  # of text in a piece, with dictionaries written out
_PLAIN = {
    pa.null(): pl.Null(),
    pa.bool_(): pl.Boolean(),
    **dict(zip(
        (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        (pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt16(), pl.UInt32(), pl.UInt64()),
        strict=True,
    )),
    pa.float16(): pl.Float32(),
    pa.float32(): pl.Float32(),
    pa.float64(): pl.Float64(),
}  # fmt: skip


def check_batch(batch: pa.RecordBatch, where: str, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The columns of a batch (all, unless named), each checked to its last offset, index and byte of text."""
    require_unique_column_names(batch.schema, where)
    subset = batch if columns is None else batch.select(list(columns))
    for name, column in zip(subset.schema.names, subset.columns, strict=True):
        try:
            column.validate(full=True)
        except (pa.ArrowException, UnicodeDecodeError):
            raise _damaged_data_error(where, f"column {name!r}") from None
    try:
        batch.validate()
    except pa.ArrowException:
        raise _damaged_data_error(where, "a batch") from None
    return subset


def require_unique_column_names(schema: pa.Schema, where: str) -> list[str]:
    """The names of the columns; an error unless they are texts without repetition."""
    try:
        names = list(schema.names)
    except UnicodeDecodeError:
        raise _damaged_data_error(where, "the name of a column") from None
    refuse_repeated_column_names(names, where)
    return names


def polars_schema_of_arrow(schema: pa.Schema, where: str) -> pl.Schema:
    """The columns as polars sees them; columns that no engine reads have the type Unknown."""
    require_unique_column_names(schema, where)
    return pl.Schema({field.name: _polars_type_of_arrow(field.type) for field in schema})


def split_batch_into_frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
    """A checked batch as frames of a bounded size, after unpacking dictionaries. Columns that no engine reads are left out."""
    names = [field.name for field in batch.schema if is_readable_type(field.type)]
    batch = batch.select(names)
    queue = [batch.slice(first, _ROWS) for first in range(0, batch.num_rows, _ROWS)]
    while queue:
        piece = queue.pop(0)
        if piece.num_rows > 1 and sum(map(_unpacked_text_size, piece.columns)) > _BYTES:
            half = piece.num_rows // 2
            queue[:0] = [piece.slice(0, half), piece.slice(half)]
            continue
        columns = [column_without_dictionaries(column) for column in piece.columns]
        yield pl.DataFrame(pa.Table.from_arrays(columns, names=piece.schema.names))


def read_table_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The batches of a table in memory, not checked yet."""
    try:
        table.validate()  # columns of different lengths would be read past their end
    except pa.ArrowException:
        raise DiscreetError(
            "the table is damaged: its columns are not of one length, or point outside; make it again"
        ) from None
    yield from table.to_batches()


def read_stream_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream in memory as they come, not checked yet."""
    while True:
        with translating_arrow_errors("the stream", "ends early or is damaged"):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch


def column_without_dictionaries(column: pa.Array) -> pa.Array:
    """A checked column with its dictionaries written out."""
    plain_type = _type_without_dictionaries(column.type)
    if pa.types.is_dictionary(column.type):  # its words may be views, which Arrow cannot look up
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(plain_type))
    return column if plain_type == column.type else column.cast(plain_type)


def cast_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of that type. (Arrow's cast loads `pyarrow.compute`, even where the type is right.)"""
    return column if column.type == kind else column.cast(kind)


def numbers_as_arrow_column(numbers: NDArray[Any]) -> pa.Array:
    """Numbers as a column, without a copy. (The conversions of pyarrow and polars load pandas, if it is installed, or `numpy.ma`.)"""
    values = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(values)])


def arrow_column_as_numbers(column: pa.Array) -> NDArray[Any]:
    """The numbers of a column without nulls, without a copy."""
    kind = np.dtype(column.type.to_pandas_dtype())
    content = column.buffers()[1]
    if content is None or not len(column):
        return np.empty(0, dtype=kind)
    return np.frombuffer(content, dtype=kind, count=len(column), offset=kind.itemsize * column.offset)


class _ArrowExport:
    """A column that polars takes by Arrow's C interface: given the column itself, polars loads `pyarrow.compute`."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._column.__arrow_c_array__(requested_schema)


def arrow_column_as_polars_series(column: pa.Array) -> pl.Series:
    """A checked column as polars reads it."""
    return pl.Series(_ArrowExport(column))


def take_rows_of_column(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """These rows of a column without nulls, of the same type."""
    if pa.types.is_integer(column.type):
        return numbers_as_arrow_column(arrow_column_as_numbers(column)[rows])
    return cast_column(
        arrow_column_as_polars_series(column)
        .gather(arrow_column_as_polars_series(numbers_as_arrow_column(rows)))
        .to_arrow(),
        column.type,
    )


def polars_texts_as_arrow_column(texts: pl.Series) -> pa.Array:
    """Texts as a column of Arrow's usual type, with offsets of 32 bits."""
    column = texts.to_arrow()
    if not len(column):
        return column.cast(pa.string())
    _, offsets, content = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64, count=len(column) + 1, offset=8 * column.offset)
    if ends[-1] - ends[0] > np.iinfo(np.int32).max:
        return column.cast(pa.string())
    start, stop = int(ends[0]), int(ends[-1])
    letters = pa.py_buffer(b"") if content is None else content.slice(start, stop - start)
    return pa.StringArray.from_buffers(len(column), pa.py_buffer((ends - start).astype(np.int32)), letters)


def is_text_type(kind: pa.DataType) -> bool:
    """Whether values are texts, in any layout."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list_type(kind: pa.DataType) -> bool:
    """Whether values are lists laid out end to end. (List views are not read: Arrow's cast of them reads past its own buffer.)"""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_date_type(kind: pa.DataType) -> bool:
    """Whether values are dates, or times without a time zone."""
    return bool(pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None))


def is_readable_type(kind: pa.DataType) -> bool:
    """Whether an engine reads such columns: numbers, texts, dictionaries of texts, dates, nulls alone, and lists of these."""
    if pa.types.is_dictionary(kind):
        return is_text_type(kind.value_type)
    if is_list_type(kind):
        return not is_list_type(kind.value_type) and is_readable_type(kind.value_type)
    return is_text_type(kind) or kind in _PLAIN or bool(pa.types.is_decimal128(kind)) or is_date_type(kind)


def translating_arrow_errors(name: str, what: str) -> AbstractContextManager[None]:
    """Turn errors of Arrow about data from outside into errors of ours."""
    return translating_read_errors(name, what, pa.ArrowException)


def _type_without_dictionaries(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.large_string()
    if is_list_type(kind):
        return pa.large_list(_type_without_dictionaries(kind.value_type))
    return pa.float32() if kind == pa.float16() else kind


def _polars_type_of_arrow(kind: pa.DataType) -> Any:
    if is_text_type(kind) or (pa.types.is_dictionary(kind) and is_readable_type(kind)):
        return pl.String()
    if is_list_type(kind):
        return pl.List(_polars_type_of_arrow(kind.value_type)) if is_readable_type(kind) else pl.Unknown()
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal128(kind):
        return pl.Decimal(kind.precision, kind.scale)
    if pa.types.is_date32(kind):
        return pl.Date()
    if pa.types.is_date64(kind):
        return pl.Datetime("ms")
    if pa.types.is_timestamp(kind):
        return pl.Datetime("ms" if kind.unit == "s" else kind.unit, kind.tz)
    return pl.Unknown()


def _unpacked_text_size(column: pa.Array) -> int:
    """The bytes of text that a column's dictionary unpacks to."""
    while is_list_type(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return 0
    import pyarrow.compute as pc  # takes long to load, and few columns have dictionaries

    lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
    return int(pc.sum(pc.take(lengths, column.indices)).as_py() or 0)


def _damaged_data_error(where: str, what: str) -> DiscreetError:
    return DiscreetError(
        f"{where}: {what} is damaged: it points outside of what was sent, or holds text that is not UTF-8; write it again"
    )


def agreement_id_column(agreement_id: str, rows: int) -> pa.Array:
    """The agreement of every record, stored once."""
    return pa.DictionaryArray.from_arrays(
        numbers_as_arrow_column(np.zeros(rows, dtype=np.int8)),
        polars_texts_as_arrow_column(pl.Series([agreement_id])),
    )


def outcomes_as_samples(coding: Coding, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
    """Outcome numbers as published: labels, the numbers, or the point `within` each cell."""
    match coding.domain:
        case Labels(labels):
            samples = pl.Series(labels, strict=True).gather(
                arrow_column_as_polars_series(numbers_as_arrow_column(outcomes))
            )
            return (
                polars_texts_as_arrow_column(samples)
                if samples.dtype == pl.String
                else cast_column(samples.to_arrow(), coding.arrow_type_of_samples)
            )
        case CellDomain() as cells:
            return numbers_as_arrow_column(cells.points_at_positions_in_cells(outcomes, within))
        case _:
            return numbers_as_arrow_column(outcomes)


_MARK, _CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_LARGEST_METADATA = 1 << 28
_READ = 1 << 24  # bytes at a time
_ALWAYS, _RATIO = 1 << 27, 32  # a message may unpack to this many bytes, or to this many times its size


class ArrowStream:
    """The schema and the batches of an Arrow stream as they come, not checked yet (`check_batch`)."""

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self.read = 0  # batches
        with translating_arrow_errors(name, "is not an Arrow stream"):
            self._reader = pa.ipc.open_stream(_GuardedFile(name, file))
            self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with translating_arrow_errors(self.name, "ends early or is damaged"):
                try:
                    batch = self._reader.read_next_batch()
                except StopIteration:
                    return
            self.read += 1
            yield batch


class ArrowFile:
    """The batches that the index of an Arrow file lists."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        with translating_arrow_errors(name, "is no whole Arrow file"):
            with open(path, "rb") as file:
                _refuse_damaged_file_index(name, file)
            self._reader = pa.ipc.open_file(pa.OSFile(path))
            self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._reader.num_record_batches):
            with translating_arrow_errors(self.name, "is damaged"):
                batch = self._reader.get_batch(number)
            yield batch


class _GuardedFile:
    """A file that passes on what it reads once the message it belongs to has been checked."""

    closed = False

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        self._ready = b""
        self._unseen = 0  # checked bytes of the message's body

    def read(self, size: int = -1) -> bytes:
        if not self._ready and not self._unseen and size:
            self._read_next_message()
        if self._ready:
            content = self._ready if size < 0 else self._ready[:size]
            self._ready = self._ready[len(content) :]
        else:
            content = self._read_up_to_size(self._unseen if size < 0 else min(size, self._unseen))
            self._unseen = self._unseen - len(content) if content else 0
        if content and 0 <= len(content) < size:
            return content + self.read(size - len(content))
        return content

    def _read_next_message(self) -> None:
        head = self._read_up_to_size(8)
        if head[:4] == _CONTINUED and len(head) == 8:
            (size,) = struct.unpack("<i", head[4:])
            if size:
                self._ready = head + self._read_metadata_and_body(size)
                return
        elif head:
            raise DiscreetError(f"{self._name} is damaged: a message does not start where it should; write it again")
        self._ready = head

    def _read_metadata_and_body(self, size: int) -> bytes:
        """The metadata, and the body if it has to be checked."""
        if not 0 < size <= _LARGEST_METADATA:
            raise DiscreetError(f"{self._name} is damaged: a message has {size:,} bytes of metadata; write it again")
        metadata = self._read_up_to_size(size)
        try:
            length, buffers = _read_message_layout(metadata)
        except (struct.error, IndexError):
            raise DiscreetError(f"{self._name} is damaged: a message cannot be read; write it again") from None
        if length < 0:
            raise DiscreetError(f"{self._name} is damaged: a message has {length:,} bytes; write it again")
        if not buffers:
            self._unseen = length
            return metadata
        body = self._read_up_to_size(length)
        _refuse_large_unpacked_body(
            self._name, len(body), (body[position : position + 8] for position in buffers if position >= 0)
        )
        return metadata + body

    def _read_up_to_size(self, size: int) -> bytes:
        """`size` bytes, or all there are."""
        pieces = [b""]
        while size > 0 and (piece := self._file.read(min(size, _READ))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _refuse_large_unpacked_body(name: str, packed_bytes: int, heads: Iterable[bytes]) -> None:
    """Raise an error for a body whose compressed buffers, each of which starts with its size, would unpack to too much."""
    unpacked_bytes = sum(max(0, int.from_bytes(head, "little", signed=True)) for head in heads if len(head) == 8)
    if unpacked_bytes > max(_ALWAYS, _RATIO * packed_bytes):
        raise DiscreetError(
            f"{name}: a batch of {packed_bytes:,} bytes would unpack to {unpacked_bytes:,}; "
            "write it in smaller batches, or without compression"
        )


def _refuse_damaged_file_index(name: str, file: Any) -> None:
    """Check every message in a file's index against the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(_MARK) - 4))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little", signed=True)
    if tail[4:] != _MARK or not 0 < length <= size - len(tail):
        raise DiscreetError(f"{name} is no whole Arrow file; write it again")
    file.seek(size - len(tail) - length)
    index = file.read(length)
    try:
        blocks = [*_read_index_blocks(index, 2), *_read_index_blocks(index, 3)]
        for offset, metadata_length, body_length in blocks:
            if min(offset, metadata_length, body_length) < 0 or offset + metadata_length + body_length > size:
                raise IndexError
            file.seek(offset)
            metadata = file.read(metadata_length)
            start = 8 if metadata[:4] == _CONTINUED else 4
            claim, buffers = _read_message_layout(metadata[start:])
            if claim > body_length:
                raise IndexError
            body = offset + metadata_length
            _refuse_large_unpacked_body(
                name,
                body_length,
                (
                    _read_unpacked_size_bytes(file, body + position)
                    for position in buffers
                    if 0 <= position < body_length
                ),
            )
    except (struct.error, IndexError):
        raise DiscreetError(f"{name} is damaged: its index does not fit what it holds; write it again") from None


def _read_unpacked_size_bytes(file: Any, position: int) -> bytes:
    file.seek(position)
    return bytes(file.read(8))


def _read_index_blocks(index: bytes, number: int) -> Iterator[tuple[int, int, int]]:
    """(offset, length of the metadata, length of the body) of each message in a list of the index (Arrow's File.fbs)."""
    vector = _flatbuffer_subtable_position(index, _target_of_flatbuffer_offset(index, 0), number)
    if not vector:
        return
    (count,) = struct.unpack_from("<I", index, vector)
    for block in range(min(count, len(index))):
        yield struct.unpack_from("<qi4xq", index, vector + 4 + 24 * block)


def _read_message_layout(metadata: bytes) -> tuple[int, list[int]]:
    """(length of the body, where in it compressed buffers start) of a message; flatbuffers, as Arrow's Message.fbs lays it out."""
    message = _target_of_flatbuffer_offset(metadata, 0)
    kind, length = (
        _read_flatbuffer_field(metadata, message, 1, "<B"),
        _read_flatbuffer_field(metadata, message, 3, "<q"),
    )
    if kind not in (_DICTIONARY, _BATCH):
        return length, []
    batch = _flatbuffer_subtable_position(metadata, message, 2)
    if kind == _DICTIONARY and batch:
        batch = _flatbuffer_subtable_position(metadata, batch, 1)
    buffers = _flatbuffer_subtable_position(metadata, batch, 2) if batch else 0
    if not buffers or not _flatbuffer_subtable_position(metadata, batch, 3):  # without compression
        return length, []
    (number,) = struct.unpack_from("<I", metadata, buffers)
    if number > len(metadata):
        raise IndexError
    pairs = [struct.unpack_from("<qq", metadata, buffers + 4 + 16 * index) for index in range(number)]
    return length, [start for start, size in pairs if size]


def _target_of_flatbuffer_offset(data: bytes, position: int) -> int:
    """The target of an offset at that place."""
    return position + int(struct.unpack_from("<I", data, position)[0])


def _flatbuffer_field_position(data: bytes, table: int, number: int) -> int:
    """The place of a table's field; 0 if it has none."""
    directory = table - int(struct.unpack_from("<i", data, table)[0])
    if directory < 0:
        raise IndexError
    (size,) = struct.unpack_from("<H", data, directory)
    if 4 + 2 * number + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", data, directory + 4 + 2 * number)
    return table + offset if offset else 0


def _read_flatbuffer_field(data: bytes, table: int, number: int, kind: str) -> int:
    position = _flatbuffer_field_position(data, table, number)
    return int(struct.unpack_from(kind, data, position)[0]) if position else 0


def _flatbuffer_subtable_position(data: bytes, table: int, number: int) -> int:
    position = _flatbuffer_field_position(data, table, number)
    return _target_of_flatbuffer_offset(data, position) if position else 0
