"""The functions of `discreet.engines.grouping` in numpy and Arrow: the same results, for tables so small that loading compiled code
would take longer than they do."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.tables.arrow import as_array, as_column
from discreet.tables.marks import LISTED, OUTSIDE

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_FIRST, _SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9))


def _spread(value: NDArray[np.uint64], seed: Any) -> NDArray[np.uint64]:
    mixed = (value ^ seed) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _SECOND
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _spread_texts(ends: Integers, text: Bytes, seed: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of each text, eight bytes at a time."""
    lengths = np.diff(ends)
    mixed = _spread(lengths.astype(np.uint64), np.uint64(seed))
    for first in range(0, int(lengths.max(initial=0)), 8):
        rows = np.flatnonzero(lengths > first)
        word = np.zeros(rows.size, dtype=np.uint64)
        for place in range(first, first + 8):
            there = lengths[rows] > place
            word[there] = (word[there] << np.uint64(8)) | text[ends[rows[there]] + place]
        mixed[rows] = _spread(word, mixed[rows])
    return mixed


def _texts(ends: Integers, text: Bytes) -> pa.Array:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), max(ends.size - 1, 0), [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(text)]
    )


def _ends_and_bytes(texts: pa.Array) -> tuple[Integers, Bytes]:
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if content is None or not len(texts):
        return np.zeros(len(texts) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    return ends - ends[0], np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]]


def _numbered(values: pa.Array) -> tuple[Integers, NDArray[np.uint32]]:
    """(the first row of each distinct value, the number of each row's value), in order of first appearance."""
    numbers = as_array(values.dictionary_encode().indices).astype(np.uint32)
    return np.unique(numbers, return_index=True)[1].astype(np.int64), numbers


def in_parts(
    integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, bits: int, seed: Any
) -> tuple[Any, ...]:
    """As `grouping.in_parts`."""
    number = 1 << bits
    parts = _parts_of_texts(text_ends, text, bits, seed) if text_ends.size else _parts_of(integers, bits, seed)
    parts[outcomes >= OUTSIDE] = number
    starts = np.concatenate(([0], np.cumsum(np.bincount(parts, minlength=number + 1)))).astype(np.int64)
    order = np.argsort(parts, kind="stable")[: starts[-2]]
    if text_ends.size:
        text_ends, text = _ends_and_bytes(_texts(text_ends, text).take(as_column(order)))
    else:
        integers = integers[order]
    return starts, integers, text_ends, text, outcomes[order], counts[order] if counts.size else counts


def by_client(
    integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, lengths: Any, seed: Any, hint: int
) -> tuple[Any, ...]:
    """As `grouping.by_client`."""
    if text_ends.size:
        clients, numbers = numbered_texts(text_ends, text, seed, hint)
    else:
        clients, numbers = numbered_integers(integers, seed, hint)
    owners = np.repeat(numbers, lengths) if lengths.size else numbers
    ends = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=clients.size)))).astype(np.int64)
    order = np.argsort(owners, kind="stable")
    return clients, ends, outcomes[order], counts[order] if counts.size else counts


def _parts_of(clients: Integers, bits: int, seed: Any) -> NDArray[np.uint16]:
    """The part, one of 2^bits, that each client belongs to."""
    return (_spread(clients.astype(np.uint64), np.uint64(seed)) >> np.uint64(64 - bits)).astype(np.uint16)


def _parts_of_texts(ends: Integers, text: Bytes, bits: int, seed: Any) -> NDArray[np.uint16]:
    texts = _texts(ends, text)
    first_rows, numbers = _numbered(texts)
    hashed = _spread_texts(*_ends_and_bytes(texts.take(as_column(first_rows))), seed)
    return (hashed >> np.uint64(64 - bits)).astype(np.uint16)[numbers]


def numbered_integers(clients: Any, seed: Any, hint: int) -> tuple[Integers, NDArray[np.uint32]]:
    """As `grouping.numbered_integers`."""
    first_rows, numbers = _numbered(as_column(clients))
    return clients[first_rows], numbers


def numbered_texts(ends: Any, text: Any, seed: Any, hint: int) -> tuple[Integers, NDArray[np.uint32]]:
    """As `grouping.numbered_texts`."""
    return _numbered(_texts(ends, text))


def integers_increase(clients: Any) -> bool:
    """As `grouping.integers_increase`."""
    return bool((clients[1:] > clients[:-1]).all())


def texts_increase(ends: Any, text: Any) -> bool:
    """As `grouping.texts_increase`."""
    texts = _texts(ends, text)
    return bool(pc.all(pc.less(texts[:-1], texts[1:]), min_count=0).as_py())


def without_marks(ends: Any, outcomes: Any, counts: Any, weights: Any) -> tuple[Any, ...]:
    """As `grouping.without_marks`."""
    kept = outcomes != LISTED
    before = np.concatenate(([0], np.cumsum(kept)))
    new_ends = before[ends].astype(np.int64)
    listed = np.diff(ends) > np.diff(new_ends)
    return (
        new_ends,
        outcomes[kept],
        *(amounts[kept] if amounts.size else amounts for amounts in (counts, weights)),
        listed,
    )
