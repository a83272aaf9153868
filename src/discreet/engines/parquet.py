"""Parquet files: what a row group unpacks to is known before it is read, from the headers of its pages.

A few kilobytes may stand for gigabytes, and the sums in a file's footer may say otherwise; a page's header cannot, since readers
unpack by it. Files of modest row groups are left to polars, which reads whole row groups; others are read by Arrow, a page and a
slice of rows at a time; what neither can read in bounded memory is refused by name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engines.arrow import is_text, refuse_repeated
from discreet.engines.ipc import arrow_errors
from discreet.errors import DiscreetError

_HEADER = 1 << 12  # bytes to look for a page's header in; statistics can make it longer
_LARGEST_HEADER = 1 << 24
_LARGEST_PAGE = 1 << 28  # bytes, unpacked
_ROWS = 1 << 17  # at a time
_WIDTH = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_VIEW = 16  # bytes for a text besides its own


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: how many bytes it unpacks to, whether it holds lists, and whether it is coded by a dictionary of texts."""

    column: str
    unpacked: int
    nested: bool
    dictionary: bool


class File:
    """A Parquet file's schema and metadata, and how much its columns unpack to."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        with arrow_errors(name, "is no whole Parquet file"):
            self._metadata = pq.read_metadata(path)
            self.schema: pa.Schema = self._metadata.schema.to_arrow_schema()
        refuse_repeated(self.schema.names, name)
        self.rows = max(0, self._metadata.num_rows)

    def chunks(self, columns: Sequence[str] | None) -> Iterator[list[Chunk]]:
        """For each row group its chunks of these columns (all, unless named)."""
        with arrow_errors(self.name, "is damaged"), open(self.path, "rb") as file:
            for number in range(self._metadata.num_row_groups):
                group = self._metadata.row_group(number)
                found = (group.column(place) for place in range(group.num_columns))
                named = ((self._column(chunk.path_in_schema), chunk) for chunk in found)
                yield [
                    self._chunk(file, name, chunk, group.num_rows)
                    for name, chunk in named
                    if columns is None or name in columns
                ]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of these columns, a slice at a time; columns with dictionaries stay dictionaries. They are not checked yet."""
        coded = {chunk.column for group in self.chunks(columns) for chunk in group if chunk.dictionary}
        texts = [name for name in columns if name in coded]
        with arrow_errors(self.name, "is damaged"):
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts)
            rows = file.iter_batches(batch_size=_ROWS, columns=list(columns))
        while True:
            with arrow_errors(self.name, "is damaged"):
                try:
                    batch = next(rows)
                except StopIteration:
                    return
            yield batch

    def _column(self, path: str) -> str:
        """The column that a path in the schema belongs to; names may hold dots."""
        names = self.schema.names
        return (
            path
            if path in names
            else max((name for name in names if path.startswith(f"{name}.")), key=len, default=path)
        )

    def _chunk(self, file: Any, name: str, chunk: Any, rows: int) -> Chunk:
        start, texts = chunk.data_page_offset, chunk.physical_type not in _WIDTH
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            start = min(start, chunk.dictionary_page_offset)
        values = page_bytes = largest = 0
        place, end = start, start + chunk.total_compressed_size
        while place < end:
            header, packed, unpacked, many = self._page(file, place)
            place += header + packed
            values += many
            page_bytes += unpacked
            if chunk.compression != "UNCOMPRESSED":
                largest = max(largest, unpacked)
        if largest > _LARGEST_PAGE:
            raise DiscreetError(
                f"{self.name}: a page of column {name!r} would unpack to {largest:,} bytes; write the file with smaller pages"
            )
        width = _VIEW if texts else _WIDTH[chunk.physical_type]
        unpacked = max(values, rows) * width + (page_bytes if texts else 0)
        nested = chunk.path_in_schema != name
        coded = bool(chunk.has_dictionary_page) and not nested and name in self.schema.names
        return Chunk(name, unpacked, nested, coded and is_text(self.schema.field(name).type))

    def _page(self, file: Any, place: int) -> tuple[int, int, int, int]:
        """(length of its header, bytes packed, bytes unpacked, values) of the page at that place."""
        length = _HEADER
        while True:
            file.seek(max(0, place))
            head = file.read(length)
            try:
                fields, used = _struct(head, 0, 0)
                break
            except IndexError:
                if len(head) < length or length >= _LARGEST_HEADER:
                    raise self._damaged() from None
                length *= 8
        unpacked, packed = fields.get(2, -1), fields.get(3, -1)
        kinds = [fields[kind] for kind in (5, 7, 8) if isinstance(fields.get(kind), dict)]
        many = kinds[0].get(1, 0) if kinds else 0
        if not (_is_size(unpacked) and _is_size(packed) and _is_size(many)):
            raise self._damaged()
        return used, packed, unpacked, many if 7 not in fields else 0

    def _damaged(self) -> DiscreetError:
        return DiscreetError(f"{self.name} is damaged: a page has no header; write it again")


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _struct(data: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """(fields by number, where it ends) of a struct in Thrift's compact protocol, as parquet.thrift declares page headers."""
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[place]
        place += 1
        if head == 0:
            return fields, place
        if head >> 4:
            number += head >> 4
        else:
            number, place = _whole(data, place)
        fields[number], place = _value(data, place, head & 15, depth)


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, place
    if kind == 3:
        return data[place], place + 1
    if kind in (4, 5, 6):
        return _whole(data, place)
    if kind == 7:
        return None, place + 8
    if kind == 8:
        length, place = _varint(data, place)
        return None, place + length
    if kind == 12 and depth < 8:
        return _struct(data, place, depth + 1)
    raise IndexError  # page headers hold no lists or maps


def _whole(data: bytes, place: int) -> tuple[int, int]:
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise IndexError
