"""The compact protocol of Thrift, in which Parquet writes down what it holds: the fields that are asked for, the rest skipped.

Whatever the bytes are, reading ends: every field takes at least one of them, and what would lie past their end is an IndexError.
(The names of Arrow for the same are not used on files from others: what they find wrong there, they may end the process for.)
"""

from collections.abc import Mapping
from typing import Any, Protocol

_DEEPEST = 32
TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class Reader(Protocol):
    """(value, where it ends) of a field of that kind."""

    def __call__(self, data: bytes, place: int, kind: int) -> tuple[Any, int]: ...


def varint(data: bytes, place: int) -> tuple[int, int]:
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


def number(data: bytes, place: int, kind: int) -> tuple[int, int]:
    """A whole number."""
    if kind not in (SHORT, INT, LONG):
        raise IndexError
    value, place = varint(data, place)
    return (value >> 1) ^ -(value & 1), place


def text(data: bytes, place: int, kind: int) -> tuple[bytes, int]:
    """Bytes."""
    if kind != BINARY:
        raise IndexError
    length, place = varint(data, place)
    if place + length > len(data):
        raise IndexError
    return data[place : place + length], place + length


def several(each: Reader) -> Reader:
    """A list of such values."""

    def read(data: bytes, place: int, kind: int) -> tuple[Any, int]:
        if kind != LIST:
            raise IndexError
        size, inner, place = _list_head(data, place)
        found = []
        for _ in range(size):
            value, place = each(data, place, inner)
            found.append(value)
        return found, place

    return read


def struct(fields: Mapping[int, Reader]) -> Reader:
    """A struct, as a dictionary of these fields."""

    def read(data: bytes, place: int, kind: int) -> tuple[dict[int, Any], int]:
        if kind != STRUCT:
            raise IndexError
        found: dict[int, Any] = {}
        name = 0
        while head := data[place]:
            place += 1
            if head >> 4:
                name += head >> 4
            else:
                name, place = number(data, place, SHORT)
            if name in fields:
                found[name], place = fields[name](data, place, head & 15)
            else:
                place = _past(data, place, head & 15, 0)
        return found, place + 1

    return read


def _past(data: bytes, place: int, kind: int, depth: int) -> int:
    """Where a value ends."""
    if SHORT <= kind <= LONG:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind == BINARY:
        length, place = varint(data, place)
        return place + length
    if kind in (TRUE, FALSE):
        return place
    if kind in (BYTE, DOUBLE):
        return place + (1 if kind == BYTE else 8)
    if depth == _DEEPEST:
        raise IndexError
    if kind == STRUCT:
        while head := data[place]:
            place += 1
            if not head >> 4:
                while data[place] > 127:
                    place += 1
                place += 1
            place = _past(data, place, head & 15, depth + 1)
        return place + 1
    if kind in (LIST, SET):
        size, inner, place = _list_head(data, place)
        if inner in (TRUE, FALSE):
            return place + size
        for _ in range(size):
            place = _past(data, place, inner, depth + 1)
            if place > len(data):
                raise IndexError
        return place
    raise IndexError  # Parquet has no maps


def _list_head(data: bytes, place: int) -> tuple[int, int, int]:
    head = data[place]
    size, place = (head >> 4, place + 1) if head < 0xF0 else varint(data, place + 1)
    return size, head & 15, place
