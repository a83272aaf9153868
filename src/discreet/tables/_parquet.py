"""Parquet files: what a row group unpacks to is known before it is read, from the headers of its pages.

A few kilobytes may stand for gigabytes, and the sums in a file's footer may say otherwise; a page's header cannot, since readers
unpack by it. Files of modest row groups are left to polars, which reads whole row groups; others are read by Arrow, a page and a
slice of rows at a time; what neither can read in bounded memory is refused by name.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.errors import DiscreetError
from discreet.tables import _thrift as thrift
from discreet.tables.arrow import arrow_errors, refuse_repeated

_MARK = b"PAR1"
_HEADER = 1 << 12  # bytes to look for a page's header in; statistics can make it longer
_LARGEST_HEADER = 1 << 24
_LARGEST_PAGE = 1 << 28  # bytes, unpacked
_ROWS = 1 << 17  # at a time
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # of physical types: booleans, integers, floats
_BYTES = 6  # the physical type of texts
_VIEW = 16  # bytes for a text besides its own

# what is needed of parquet.thrift, by the numbers of its fields
_SCHEMA = thrift.struct({4: thrift.text, 5: thrift.number})
_COLUMN = thrift.struct({
    1: thrift.number, 3: thrift.several(thrift.text), 4: thrift.number, 7: thrift.number, 9: thrift.number, 11: thrift.number,
})  # fmt: skip
_GROUP = thrift.struct({1: thrift.several(thrift.struct({3: _COLUMN})), 3: thrift.number})
_FOOTER = thrift.struct({
    2: thrift.several(_SCHEMA), 3: thrift.number, 4: thrift.several(_GROUP),
    5: thrift.several(thrift.struct({1: thrift.text, 2: thrift.text})),
})  # fmt: skip
_COUNTED = thrift.struct({1: thrift.number})
_PAGE = thrift.struct({2: thrift.number, 3: thrift.number, 5: _COUNTED, 7: _COUNTED, 8: _COUNTED})


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: how many bytes it unpacks to, whether it holds lists, and whether it is coded by a dictionary of texts."""

    column: str
    unpacked: int
    nested: bool
    dictionary: bool


class File:
    """A Parquet file's columns and metadata, and how much its columns unpack to."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        with arrow_errors(name, "is no whole Parquet file"), open(path, "rb") as file:
            footer = self._footer(file)
        with self._damaged("its footer cannot be read"):
            self.columns = list(_roots(footer[2]))
            self._groups = footer.get(4, [])
            self.rows = max(0, footer.get(3, 0))
            self.metadata = {pair[1]: pair.get(2, b"") for pair in footer.get(5, [])}
        refuse_repeated(self.columns, name)

    def chunks(self, columns: Sequence[str] | None) -> Iterator[list[Chunk]]:
        """For each row group its chunks of these columns (all, unless named)."""
        with (
            arrow_errors(self.name, "is damaged"),
            self._damaged("a page has no header"),
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
        """The rows of these columns, a slice at a time; columns with dictionaries stay dictionaries. They are not checked yet."""
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
        with self._damaged("its footer cannot be read"):
            return _FOOTER(file.read(length), 0, thrift.STRUCT)[0]

    def _chunk(self, file: Any, chunk: Any, rows: int) -> Chunk:
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
        return Chunk(column, unpacked, nested, bool(coded) and kind == _BYTES and not nested)

    @contextmanager
    def _damaged(self, why: str) -> Iterator[None]:
        """Fields that are not there, or not what they should be."""
        try:
            yield
        except (IndexError, KeyError, TypeError, UnicodeDecodeError, OverflowError):
            raise DiscreetError(f"{self.name} is damaged: {why}; write it again") from None


def _page(file: Any, place: int) -> tuple[int, int, int, int]:
    """(length of its header, bytes packed, bytes unpacked, values) of the page at that place."""
    length = _HEADER
    while True:
        file.seek(place if place >= 0 else 1 << 62)
        head = file.read(length)
        try:
            fields, used = _PAGE(head, 0, thrift.STRUCT)
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
    """The names of the columns: the children of the first element of a schema, which is written down depth first."""
    waiting = [schema[0].get(5, 0)]  # children that are still to come, at each level
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
