"""Parquet files, with the unpacked size of a row group known from its page headers before it is read.

A few kilobytes may unpack to gigabytes. The sums in a file's footer may be wrong, but page headers cannot, since readers unpack by them.
Files with modest row groups are left to polars, which reads whole row groups. Others are read by Arrow, a page and a slice of rows at a
time. A column that neither can read in bounded memory is an error that names it.

Footers and headers are written in Thrift's compact protocol. The needed fields are read and the rest is skipped. Reading always ends: every
field takes at least one byte, and a place beyond the end is an IndexError. (Arrow's own metadata reader is not used on files from others:
on bad input it may end the process.)
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from discreet._base.files import translate_read_errors
from discreet.errors import DiscreetError, check_columns
from discreet.tables._arrow import arrow_errors

_MARK = b"PAR1"
_HEADER = 1 << 12  # bytes read for a page's header; statistics can make it longer
_LARGEST_HEADER = 1 << 24
_LARGEST_PAGE = 1 << 28  # bytes, unpacked
_ROWS = 1 << 17  # at a time
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # of physical types: booleans, integers, floats
_TEXTS = 6  # the physical type of texts
_VIEW = 16  # bytes for a text in addition to its own
_DEEPEST = 32  # nested fields
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group: its unpacked bytes, whether it contains lists, and whether it has a dictionary of texts."""

    column: str
    unpacked: int
    nested: bool
    dictionary: bool


class ParquetFile:
    """A Parquet file's columns and metadata, and the unpacked size of its columns."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        with translate_read_errors(name, "is no whole Parquet file"), open(path, "rb") as file:
            footer = self._footer(file)
        with self._damage_errors("its footer cannot be read"):
            self.columns = list(_roots(footer[2]))
            self._groups = footer.get(4, [])
            self.rows = max(0, footer.get(3, 0))
            self.metadata = {pair[1]: pair.get(2, b"") for pair in footer.get(5, [])}
        check_columns(self.columns, name)

    def chunks(self, columns: Sequence[str] | None) -> Iterator[list[ColumnChunk]]:
        """The chunks of these columns (all, unless named) for each row group."""
        with (
            translate_read_errors(self.name, "is damaged"),
            self._damage_errors("a page has no header"),
            open(self.path, "rb") as file,
        ):
            for group in self._groups:
                found = (chunk[3] for chunk in group.get(1, []))
                yield [
                    self._chunk(file, chunk, group.get(3, 0))
                    for chunk in found
                    if columns is None or chunk[3][0].decode() in columns
                ]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of these columns, a slice at a time, not checked yet; dictionary columns stay dictionaries."""
        coded = {chunk.column for group in self.chunks(columns) for chunk in group if chunk.dictionary}
        texts = [name for name in columns if name in coded]
        with arrow_errors(self.name, "is damaged"):
            import pyarrow.parquet as pq

            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts)
            rows = file.iter_batches(batch_size=_ROWS, columns=list(columns))
        while True:
            with arrow_errors(self.name, "is damaged"):
                try:
                    batch = next(rows)
                except StopIteration:
                    return
            yield batch

    def _footer(self, file: Any) -> Any:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MARK or not 0 < length <= size - 12:
            raise DiscreetError(f"{self.name} is no whole Parquet file: it does not end like one; write it again")
        file.seek(size - 8 - length)
        with self._damage_errors("its footer cannot be read"):
            return _FOOTER(file.read(length), 0, _STRUCT)[0]

    def _chunk(self, file: Any, chunk: Any, rows: int) -> ColumnChunk:
        column, kind, start = chunk[3][0].decode(), chunk[1], chunk[9]
        coded = chunk.get(11) or 0
        if 0 < coded < start:
            start = coded
        values = page_bytes = largest = 0
        place, end = start, start + chunk[7]
        while place < end:
            header, packed, unpacked, many = _page(file, place)
            place += header + packed
            values += many
            page_bytes += unpacked
            largest = max(largest, unpacked)
        if largest > _LARGEST_PAGE and chunk[4]:  # packed
            raise DiscreetError(
                f"{self.name}: a page of column {column!r} would unpack to {largest:,} bytes; write the file with smaller pages"
            )
        unpacked = max(values, rows) * _WIDTHS.get(kind, _VIEW) + (0 if kind in _WIDTHS else page_bytes)
        nested = len(chunk[3]) > 1
        return ColumnChunk(column, unpacked, nested, bool(coded) and kind == _TEXTS and not nested)

    @contextmanager
    def _damage_errors(self, why: str) -> Iterator[None]:
        """Turn missing or wrong fields into an error that the file is damaged."""
        try:
            yield
        except (IndexError, KeyError, TypeError, UnicodeDecodeError, OverflowError):
            raise DiscreetError(f"{self.name} is damaged: {why}; write it again") from None


def _page(file: Any, place: int) -> tuple[int, int, int, int]:
    """(length of its header, packed bytes, unpacked bytes, values) of the page at that place."""
    length = _HEADER
    while True:
        file.seek(place if place >= 0 else 1 << 62)
        head = file.read(length)
        try:
            fields, used = _PAGE(head, 0, _STRUCT)
            break
        except IndexError:
            if len(head) < length or length >= _LARGEST_HEADER:
                raise
            length *= 8
    unpacked, packed = fields[2], fields[3]
    many = fields.get(5, fields.get(8, {})).get(1, 0)
    if min(unpacked, packed, many) < 0:
        raise IndexError
    return used, packed, unpacked, many


def _roots(schema: list[dict[int, Any]]) -> Iterator[str]:
    """The names of the columns: the children of the first element of a schema, which is stored depth first."""
    waiting = [schema[0].get(5, 0)]  # remaining children at each level
    for element in schema[1:]:
        while waiting and waiting[-1] <= 0:
            waiting.pop()
        if not waiting:
            raise IndexError
        if len(waiting) == 1:
            yield element[4].decode()
        waiting[-1] -= 1
        if element.get(5, 0) > 0:
            waiting.append(element[5])


class _FieldReader(Protocol):
    """Reads (value, end) of a field of that kind, in Thrift's compact protocol."""

    def __call__(self, data: bytes, place: int, kind: int) -> tuple[Any, int]: ...


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """An unsigned number."""
    byte = data[place]
    place += 1
    if byte < 128:
        return byte, place
    value, shift = byte & 127, 7
    while shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise IndexError


def _number(data: bytes, place: int, kind: int) -> tuple[int, int]:
    """A whole number."""
    if kind not in (_SHORT, _INT, _LONG):
        raise IndexError
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place


def _text(data: bytes, place: int, kind: int) -> tuple[bytes, int]:
    """Bytes."""
    if kind != _BINARY:
        raise IndexError
    length, place = _varint(data, place)
    if place + length > len(data):
        raise IndexError
    return data[place : place + length], place + length


def _list_of(each: _FieldReader) -> _FieldReader:
    """A list of such values."""

    def read(data: bytes, place: int, kind: int) -> tuple[Any, int]:
        if kind != _LIST:
            raise IndexError
        size, inner, place = _list_head(data, place)
        found = []
        for _ in range(size):
            value, place = each(data, place, inner)
            found.append(value)
        return found, place

    return read


def _struct(fields: Mapping[int, _FieldReader]) -> _FieldReader:
    """A struct, as a dictionary of these fields."""

    def read(data: bytes, place: int, kind: int) -> tuple[dict[int, Any], int]:
        if kind != _STRUCT:
            raise IndexError
        found: dict[int, Any] = {}
        name = 0
        while head := data[place]:
            place += 1
            if head >> 4:
                name += head >> 4
            else:
                name, place = _number(data, place, _SHORT)
            if name in fields:
                found[name], place = fields[name](data, place, head & 15)
            else:
                place = _end_of_value(data, place, head & 15, 0)
        return found, place + 1

    return read


def _end_of_value(data: bytes, place: int, kind: int, depth: int) -> int:
    """The end of a value."""
    if _SHORT <= kind <= _LONG:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind == _BINARY:
        length, place = _varint(data, place)
        return place + length
    if kind in (_TRUE, _FALSE):
        return place
    if kind in (_BYTE, _DOUBLE):
        return place + (1 if kind == _BYTE else 8)
    if depth == _DEEPEST:
        raise IndexError
    if kind == _STRUCT:
        while head := data[place]:
            place += 1
            if not head >> 4:
                while data[place] > 127:
                    place += 1
                place += 1
            place = _end_of_value(data, place, head & 15, depth + 1)
        return place + 1
    if kind in (_LIST, _SET):
        size, inner, place = _list_head(data, place)
        if inner in (_TRUE, _FALSE):
            return place + size
        for _ in range(size):
            place = _end_of_value(data, place, inner, depth + 1)
            if place > len(data):
                raise IndexError
        return place
    raise IndexError  # Parquet has no maps


def _list_head(data: bytes, place: int) -> tuple[int, int, int]:
    head = data[place]
    size, place = (head >> 4, place + 1) if head < 0xF0 else _varint(data, place + 1)
    return size, head & 15, place


# the needed part of parquet.thrift, by field numbers
_SCHEMA = _struct({4: _text, 5: _number})
_COLUMN = _struct({
    1: _number, 3: _list_of(_text), 4: _number, 7: _number, 9: _number, 11: _number,
})  # fmt: skip
_GROUP = _struct({1: _list_of(_struct({3: _COLUMN})), 3: _number})
_FOOTER = _struct({
    2: _list_of(_SCHEMA), 3: _number, 4: _list_of(_GROUP),
    5: _list_of(_struct({1: _text, 2: _text})),
})  # fmt: skip
_COUNTED = _struct({1: _number})
_PAGE = _struct({2: _number, 3: _number, 5: _COUNTED, 7: _COUNTED, 8: _COUNTED})
