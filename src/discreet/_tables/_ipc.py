"""Arrow streams and files, message by message: what one would unpack to is known before it is unpacked.

A message whose compressed buffers claim more than they can be worth is refused. The bytes of a stream pass through `_GuardedFile` on
their way to Arrow, which follows the messages; in a file they are where its index says. Nothing is allocated for what a message
claims and does not bring.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from discreet._tables._arrow import arrow_errors
from discreet.errors import DiscreetError

_MARK, _CONTINUED = b"ARROW1", b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_LARGEST_METADATA = 1 << 28
_READ = 1 << 24  # bytes at a time
_ALWAYS, _RATIO = 1 << 27, 32  # a message may unpack to this many bytes, or to so many times its size


class ArrowStream:
    """The schema and the batches of an Arrow stream, as they come; none of it is checked yet (see `discreet._tables._arrow`)."""

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self.read = 0  # batches
        with arrow_errors(name, "is not an Arrow stream"):
            self._reader = pa.ipc.open_stream(_GuardedFile(name, file))
            self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with arrow_errors(self.name, "ends early or is damaged"):
                try:
                    batch = self._reader.read_next_batch()
                except StopIteration:
                    return
            self.read += 1
            yield batch


class ArrowFile:
    """The batches of an Arrow file, those its index lists."""

    def __init__(self, path: str, name: str) -> None:
        self.name = name
        with arrow_errors(name, "is no whole Arrow file"):
            with open(path, "rb") as file:
                _check_blocks(name, file)
            self._reader = pa.ipc.open_file(pa.OSFile(path))
            self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._reader.num_record_batches):
            with arrow_errors(self.name, "is damaged"):
                batch = self._reader.get_batch(number)
            yield batch


class _GuardedFile:
    """A file that gives on what it reads, once the message it belongs to has been looked at."""

    closed = False

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        self._ready = b""
        self._unseen = 0  # bytes of the message's body that may pass

    def read(self, size: int = -1) -> bytes:
        if not self._ready and not self._unseen and size:
            self._next_message()
        if self._ready:
            given = self._ready if size < 0 else self._ready[:size]
            self._ready = self._ready[len(given) :]
        else:
            given = self._whole(self._unseen if size < 0 else min(size, self._unseen))
            self._unseen = self._unseen - len(given) if given else 0
        if given and 0 <= len(given) < size:
            return given + self.read(size - len(given))
        return given

    def _next_message(self) -> None:
        head = self._whole(8)
        if head[:4] == _CONTINUED and len(head) == 8:
            (size,) = struct.unpack("<i", head[4:])
            if size:
                self._ready = head + self._body(size)
                return
        elif head:
            raise DiscreetError(f"{self._name} is damaged: a message does not start where it should; write it again")
        self._ready = head

    def _body(self, size: int) -> bytes:
        """The metadata, with the body too if that has to be looked at."""
        if not 0 < size <= _LARGEST_METADATA:
            raise DiscreetError(f"{self._name} is damaged: a message has {size:,} bytes of metadata; write it again")
        metadata = self._whole(size)
        try:
            length, buffers = _layout(metadata)
        except (struct.error, IndexError):
            raise DiscreetError(f"{self._name} is damaged: a message cannot be read; write it again") from None
        if length < 0:
            raise DiscreetError(f"{self._name} is damaged: a message has {length:,} bytes; write it again")
        if not buffers:
            self._unseen = length
            return metadata
        body = self._whole(length)
        _refuse_bomb(self._name, len(body), (body[at : at + 8] for at in buffers if at >= 0))
        return metadata + body

    def _whole(self, size: int) -> bytes:
        """So many bytes, or all there are."""
        found = [b""]
        while size > 0 and (piece := self._file.read(min(size, _READ))):
            found.append(piece)
            size -= len(piece)
        return b"".join(found)


def _refuse_bomb(name: str, packed: int, heads: Iterable[bytes]) -> None:
    """Refuse a body whose compressed buffers, each of which starts with its size, would unpack to too much."""
    unpacked = sum(max(0, int.from_bytes(head, "little", signed=True)) for head in heads if len(head) == 8)
    if unpacked > max(_ALWAYS, _RATIO * packed):
        raise DiscreetError(
            f"{name}: a batch of {packed:,} bytes would unpack to {unpacked:,}; write it in smaller batches, or without compression"
        )


def _check_blocks(name: str, file: Any) -> None:
    """Hold every message that the index of a file lists to what there is of it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(_MARK) - 4))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little", signed=True)
    if tail[4:] != _MARK or not 0 < length <= size - len(tail):
        raise DiscreetError(f"{name} is no whole Arrow file; write it again")
    file.seek(size - len(tail) - length)
    index = file.read(length)
    try:
        blocks = [*_blocks(index, 2), *_blocks(index, 3)]
        for offset, metadata_length, body_length in blocks:
            if min(offset, metadata_length, body_length) < 0 or offset + metadata_length + body_length > size:
                raise IndexError
            file.seek(offset)
            metadata = file.read(metadata_length)
            start = 8 if metadata[:4] == _CONTINUED else 4
            claimed, buffers = _layout(metadata[start:])
            if claimed > body_length:
                raise IndexError
            body = offset + metadata_length
            _refuse_bomb(name, body_length, (_eight(file, body + at) for at in buffers if 0 <= at < body_length))
    except (struct.error, IndexError):
        raise DiscreetError(f"{name} is damaged: its index does not fit what it holds; write it again") from None


def _eight(file: Any, place: int) -> bytes:
    file.seek(place)
    return bytes(file.read(8))


def _blocks(index: bytes, number: int) -> Iterator[tuple[int, int, int]]:
    """(offset, length of the metadata, length of the body) of each message in a list of the index (Arrow's File.fbs)."""
    listed = _table(index, _at(index, 0), number)
    if not listed:
        return
    (many,) = struct.unpack_from("<I", index, listed)
    for each in range(min(many, len(index))):
        yield struct.unpack_from("<qi4xq", index, listed + 4 + 24 * each)


def _layout(metadata: bytes) -> tuple[int, list[int]]:
    """(length of the body, where in it compressed buffers start) of a message; flatbuffers, as Arrow's Message.fbs lays it out."""
    message = _at(metadata, 0)
    kind, length = _field(metadata, message, 1, "<B"), _field(metadata, message, 3, "<q")
    if kind not in (_DICTIONARY, _BATCH):
        return length, []
    batch = _table(metadata, message, 2)
    if kind == _DICTIONARY and batch:
        batch = _table(metadata, batch, 1)
    buffers = _table(metadata, batch, 2) if batch else 0
    if not buffers or not _table(metadata, batch, 3):  # without compression
        return length, []
    (number,) = struct.unpack_from("<I", metadata, buffers)
    if number > len(metadata):
        raise IndexError
    pairs = [struct.unpack_from("<qq", metadata, buffers + 4 + 16 * each) for each in range(number)]
    return length, [start for start, size in pairs if size]


def _at(data: bytes, place: int) -> int:
    """Where an offset at that place leads."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _slot(data: bytes, table: int, number: int) -> int:
    """The place of a field of a table; 0 if it has none."""
    directory = table - int(struct.unpack_from("<i", data, table)[0])
    if directory < 0:
        raise IndexError
    (size,) = struct.unpack_from("<H", data, directory)
    if 4 + 2 * number + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", data, directory + 4 + 2 * number)
    return table + offset if offset else 0


def _field(data: bytes, table: int, number: int, kind: str) -> int:
    place = _slot(data, table, number)
    return int(struct.unpack_from(kind, data, place)[0]) if place else 0


def _table(data: bytes, table: int, number: int) -> int:
    place = _slot(data, table, number)
    return _at(data, place) if place else 0
