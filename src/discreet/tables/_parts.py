"""`ClientParts`: records in parts by client, in memory up to a budget and then on disk; each part is grouped exactly.

All records of a client are in one part. A part that is too large for the budget is split again by another hash. Before that, equal records
of a client are counted together, so a client needs no more room than its distinct values. The order of parts and clients depends on the
clients alone, never on their numbers of records or on splits.

Counting together does not round: sums stay the same to the last bit. Whole numbers below 2^53 add up exactly. Weights of one power of two
add up as whole numbers of 53 bits, in two halves that leave room for 2^26 of them.

The functions of `discreet.tables._grouping`, which is compiled, are repeated here in numpy and Arrow with the same results, for tables so
small that loading compiled code would take longer.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.kernels import read_only_view, should_use_compiled_code
from discreet.domain import MARK_LISTED, MARK_OUTSIDE, widened_mark_for_records
from discreet.errors import DiscreetError
from discreet.release import ClientColumns
from discreet.tables._columns import normalise_client_names
from discreet.tables._sources import (
    ScratchBlock,
    ScratchFile,
    arrow_column_as_numbers,
    arrow_column_as_polars_series,
    cast_column,
    is_list_type,
    numbers_as_arrow_column,
    take_rows_of_column,
)

Outcomes = NDArray[np.uint32] | NDArray[np.uint64]  # wide ones are the rows of a survey

_EXACT = 2.0**53  # below this, whole numbers add up without rounding
_HALF = 26  # bits


def combine_equal_rows(records: pl.DataFrame) -> pl.DataFrame:
    """Records (client, outcome, count) with the counts of equal ones added up; unchanged if that would round."""
    counts = records["count"].to_numpy()
    if (counts == np.floor(counts)).all() and float(counts.sum(dtype=np.float64)) < _EXACT:
        return records.group_by("client", "outcome").agg(pl.col("count").sum())
    if counts.dtype != np.float64 or counts.size >= 1 << _HALF:
        return records
    digits, powers = np.frexp(counts)
    mantissas = (digits * _EXACT).astype(np.int64)
    halves = {"high": mantissas >> _HALF, "low": mantissas & ((1 << _HALF) - 1)}
    records_with_halves = records.select("client", "outcome").with_columns(power=powers, **halves)
    sums = records_with_halves.group_by("client", "outcome", "power").agg(pl.col(*halves).sum())
    parts = []
    for half, shift in (("high", _HALF - 53), ("low", -53)):
        weights = np.ldexp(sums[half].to_numpy().astype(np.float64), sums["power"].to_numpy() + shift)
        parts.append(sums.select("client", "outcome").with_columns(count=weights))
    return pl.concat(parts)


Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

SECONDS_A_ROW = 2e-7  # to group or draw a row without compiled code, roughly
_BITS = 7
_FEW = 1 << 21  # records that numpy groups at once
_TOGETHER = 1 << 17  # records that compiled code groups at once: fewer would not repay the calls, more leave the cache
_DEEPEST = 4  # nested splits: beyond that a single client is larger than memory
_ONE_CLIENT = 1 << 28  # bytes of one client's values that are allowed under a smaller budget
_WORTH_A_THREAD = 1 << 16  # records that are put into parts beside the reading of the next ones
_SPLITTERS, _AHEAD = 2, 3  # threads for it, and batches that may wait
_NO_LENGTHS = np.empty(0, dtype=np.int64)
_FIRST, _SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9))


class ClientGroup(NamedTuple):
    """The clients of a part, or of all parts: their names as an Arrow column, and their records.

    `parts`: the part of each client, in the order of the parts, where the group has those of all.
    """

    names: pa.Array
    clients: ClientColumns
    parts: NDArray[np.uint16] | None = None

    def remove_marks_and_count_unlisted(self) -> "tuple[ClientGroup, int]":
        """The group as the kernel takes it if clients are listed, and how many of them are not on the list."""
        code = choose_grouping_functions(self.clients.outcomes.size)
        ends, outcomes, counts, weights, is_listed = code.remove_marks_of_listed_clients(*self.clients[3:])
        columns = ClientColumns(*self.clients[:3], *map(read_only_view, (ends, outcomes, counts, weights)))
        return self._replace(clients=columns), int((~is_listed).sum())

    @property
    def number_of_clients_with_rows(self) -> int:
        """The number of clients that have rows, also if their counts are all 0."""
        return int((np.diff(self.clients.ends) > 0).sum())

    @property
    def number_of_clients_without_records(self) -> int:
        """The number of clients without records, or whose counts or weights are all 0. They draw from the reference."""
        ends, counts, weights = self.clients.ends, self.clients.counts, self.clients.weights
        amounts = counts if counts.size else weights
        if amounts.size:
            ends = np.concatenate(([0], np.cumsum(amounts > 0)))[ends]  # by the records that count
        return int((np.diff(ends) == 0).sum())


def unlisted_clients_error(number: int, clients: int) -> DiscreetError:
    """The error for clients with records that are not on the list, out of so many clients."""
    return DiscreetError(
        f"clients with records are not on the list ({number:,} of {clients:,} looked at); add them, or filter their records out"
    )


class RecordArrays(NamedTuple):
    """Rows of (client, outcome[, count]); clients are integers or texts, and unused arrays are empty.

    Counts are whole numbers or, for weights, floats. They are never added up on the way if that would round.
    """

    integers: NDArray[np.int64]
    text_ends: NDArray[np.int64]
    text: NDArray[np.uint8]
    outcomes: Outcomes
    counts: NDArray[np.int64] | NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def rows_between(self, first: int, last: int) -> "RecordArrays":
        """The rows first <= row < last."""
        ends = self.text_ends[first : last + 1] if self.text_ends.size else self.text_ends
        text = self.text[ends[0] : ends[-1]] if ends.size else self.text
        return RecordArrays(
            self.integers[first:last],
            ends - ends[0] if ends.size else ends,
            text,
            self.outcomes[first:last],
            self.counts[first:last],
        )

    @classmethod
    def join_pieces(cls, pieces: Sequence["RecordArrays"]) -> "RecordArrays":
        """All rows of the pieces, one after the other."""
        if any(piece.counts.size for piece in pieces):
            pieces = [piece if piece.counts.size else piece._replace(counts=_unit_counts(piece)) for piece in pieces]
        ends = pieces[0].text_ends
        if ends.size:
            ends = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(piece.text_ends) for piece in pieces]))))
        integers, text, outcomes, counts = (
            np.concatenate([piece[field] for piece in pieces]) for field in (0, 2, 3, 4)
        )
        return cls(integers, ends, text, outcomes, counts)

    @property
    def with_equal_rows_combined(self) -> "RecordArrays":
        """Equal records of a client counted together without rounding: sums stay the same to the last bit."""
        counts = self.counts if self.counts.size else _unit_counts(self)
        combined_records = combine_equal_rows(
            pl.DataFrame(
                {
                    "client": arrow_column_as_polars_series(self.client_names_as_arrow),
                    "outcome": self.outcomes,
                    "count": counts,
                }
            )
        )
        names = client_names_as_arrays(combined_records["client"].to_arrow())
        return RecordArrays(*names, combined_records["outcome"].to_numpy(), combined_records["count"].to_numpy())

    @property
    def client_names_as_arrow(self) -> pa.Array:
        """The column of clients, as Arrow."""
        if not self.text_ends.size:
            return numbers_as_arrow_column(self.integers)
        size = self.text_ends.size - 1
        return pa.LargeStringArray.from_buffers(size, pa.py_buffer(self.text_ends), pa.py_buffer(self.text))


class ClientParts:
    """Takes records in any order and returns groups of clients, each with all its records."""

    def __init__(
        self, *, seed: int, budget: int, folder: Path | None = None, rows: int | None = None, depth: int = 0
    ) -> None:
        self._seed = np.uint64((seed + depth * 0x9E3779B97F4A7C15) % (1 << 64))
        self._budget, self._depth = budget, depth
        self._share = budget if depth else budget // 4  # for a part: several are grouped at a time
        self._above = folder
        # records in order of part, with the start of each
        self._chunks: list[tuple[NDArray[np.int64], RecordArrays]] = []
        self._held = 0
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[Any]] = deque()  # batches that are being put into parts, in order
        self._scratch: ScratchFile | None = None
        self._blocks: list[list[ScratchBlock]] = [[] for _ in range(1 << _BITS)]
        self._spilled = [0] * (1 << _BITS)
        self._largest_group = 16
        self.records = 0
        self.spilled_bytes = 0
        if rows is not None:
            # each row is put into a part, grouped and drawn; compiled code is loaded now, while the first rows are read
            choose_grouping_functions(3 * rows)

    def __enter__(self) -> "ClientParts":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the disk space and the thread."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._waiting.clear()
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def add_records(
        self,
        clients: pa.Array,
        outcomes: Outcomes,
        counts: NDArray[np.int64] | NDArray[np.float64] | None = None,
    ) -> None:
        """Take a batch of records. Those whose outcome is MISSING are left out."""
        amounts = np.empty(0) if counts is None else counts
        arrays = map(read_only_view, (*client_names_as_arrays(clients), outcomes, amounts))
        split = partial(choose_grouping_functions(len(clients)).records_by_part, *arrays, _BITS, self._seed)
        if self._depth or len(clients) < _WORTH_A_THREAD:
            self._collect_split_batches()
            self._keep_records(split())
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_SPLITTERS)
        self._waiting.append(self._pool.submit(split))
        self._collect_split_batches(_AHEAD)

    def _collect_split_batches(self, left: int = 0) -> None:
        """Take the batches that are in parts now, until `left` are still waiting."""
        while len(self._waiting) > left:
            self._keep_records(self._waiting.popleft().result())

    def _keep_records(self, starts_and_columns: Sequence[Any]) -> None:
        starts, *columns = starts_and_columns
        records = RecordArrays(*columns)
        self.records += records.outcomes.size
        self._chunks.append((starts, records))
        self._held += records.nbytes
        if self._held > self._budget:
            self._free_memory()

    def iterate_readers_of_client_groups(self) -> Iterator[list[Callable[[], ClientGroup]]]:
        """Functions that read and group each part (several, if it is large). They may run in threads, in any order."""
        self._collect_split_batches()
        if self._scratch is not None:
            self._spill_to_disk()
        elif not self._depth and 0 < self.records <= _FEW and choose_grouping_functions(0) is PLAIN:
            # numpy takes all at once in less time than many small parts
            yield [partial(self._group_clients_of_several_parts, range(1 << _BITS))]
            return
        parts_at_once = (
            max(1, (_TOGETHER << _BITS) // max(self.records, 1)) if self._scratch is None and not self._depth else 1
        )
        for part in range(0, 1 << _BITS, parts_at_once):
            span = range(part, min(part + parts_at_once, 1 << _BITS))
            if self._spilled[part] > self._share:
                yield list(self._iterate_readers_of_large_part(part))
            elif self._spilled[part] or any(starts[span.start] < starts[span.stop] for starts, _ in self._chunks):
                yield [
                    partial(self._group_clients_of_part, part)
                    if parts_at_once == 1
                    else partial(self._group_clients_of_several_parts, span)
                ]

    def _iterate_readers_of_large_part(self, part: int) -> Iterator[Callable[[], ClientGroup]]:
        """The groups of a part that is too large."""
        if self._depth == _DEEPEST:
            yield partial(self._group_part_of_one_client, part)
            return
        subparts = ClientParts(seed=int(self._seed), budget=self._share, folder=self._above, depth=self._depth + 1)
        for piece in self._iterate_records_on_disk(part):
            subparts.add_records(
                piece.client_names_as_arrow, piece.outcomes, piece.counts if piece.counts.size else None
            )
        self.spilled_bytes += subparts.spilled_bytes
        for groups in subparts.iterate_readers_of_client_groups():
            yield from groups

    def _group_part_of_one_client(self, part: int) -> ClientGroup:
        """The group of a part that cannot be split: one client with many distinct values; an error if they do not fit."""
        if self._spilled[part] > max(self._budget, _ONE_CLIENT):
            raise DiscreetError(
                f"the values of one client take {self._spilled[part]:,} bytes, which is more than the memory budget; give a larger one "
                "(--memory)"
            )
        return self._group_clients_of_part(part)

    def _group_clients_of_part(self, part: int) -> ClientGroup:
        return self._group_pieces([*self._iterate_records_in_memory(part), *self._iterate_records_on_disk(part)])

    def _group_clients_of_several_parts(self, parts: range) -> ClientGroup:
        """The clients of several parts, which are in memory, one part after the other: as the groups of the parts have them."""
        group = self._group_pieces([piece for part in parts for piece in self._iterate_records_in_memory(part)])
        clients = group.clients
        if clients.text_ends.size:
            return group._replace(parts=_part_of_each_text_client(clients.text_ends, clients.text, _BITS, self._seed))
        return group._replace(parts=_part_of_each_integer_client(clients.integers, _BITS, self._seed))

    def _group_pieces(self, pieces: Sequence[RecordArrays]) -> ClientGroup:
        """The clients of all pieces, each with all its records."""
        group = group_records_by_client(RecordArrays.join_pieces(pieces), seed=self._seed, hint=self._largest_group)
        self._largest_group = max(self._largest_group, len(group.clients))
        return group

    def _iterate_records_in_memory(self, part: int) -> Iterator[RecordArrays]:
        for starts, records in self._chunks:
            if starts[part] < starts[part + 1]:
                yield records.rows_between(starts[part], starts[part + 1])

    def _free_memory(self) -> None:
        """Count equal records together if that halves the largest part; write records to disk if there are still too many."""
        sizes = sum(np.diff(starts[: (1 << _BITS) + 1]) for starts, _ in self._chunks)
        largest = RecordArrays.join_pieces(list(self._iterate_records_in_memory(int(np.argmax(sizes)))))
        if 2 * largest.with_equal_rows_combined.nbytes < largest.nbytes:
            self._combine_equal_records()
        if 2 * self._held > self._budget:
            self._spill_to_disk()

    def _combine_equal_records(self) -> None:
        """Count equal records of each part together."""
        starts, combined_pieces = np.zeros((1 << _BITS) + 1, dtype=np.int64), list[RecordArrays]()
        for part in range(1 << _BITS):
            if pieces := list(self._iterate_records_in_memory(part)):
                combined_pieces.append(RecordArrays.join_pieces(pieces).with_equal_rows_combined)
                starts[part + 1] = combined_pieces[-1].outcomes.size
        self._chunks = [(np.cumsum(starts), RecordArrays.join_pieces(combined_pieces))]
        self._held = self._chunks[0][1].nbytes

    def _spill_to_disk(self) -> None:
        """Append all records in memory to the blocks of the parts, and free the memory."""
        if self._scratch is None:
            self._scratch = ScratchFile(self._above)
        for part in range(1 << _BITS):
            pieces = list(self._iterate_records_in_memory(part))
            if pieces:
                records = RecordArrays.join_pieces(pieces)
                self._blocks[part].append(self._scratch.append_arrays(records))
                self._spilled[part] += records.nbytes
                self.spilled_bytes += records.nbytes
        self._chunks, self._held = [], 0

    def _iterate_records_on_disk(self, part: int) -> Iterator[RecordArrays]:
        for block in self._blocks[part]:
            assert self._scratch is not None
            yield RecordArrays(*self._scratch.read_arrays(block))


def _unit_counts(records: RecordArrays) -> NDArray[np.int64]:
    """Counts of 1 for records without counts."""
    return np.ones(records.outcomes.size, dtype=np.int64)


def group_records_by_client(
    records: RecordArrays, *, seed: Any, hint: int = 16, lengths: NDArray[np.int64] = _NO_LENGTHS
) -> ClientGroup:
    """Rows grouped by client, in memory. `lengths`: the number of outcomes of each row, if not one."""
    code = choose_grouping_functions(records.outcomes.size)
    clients, ends, outcomes, counts = code.records_by_client(*map(read_only_view, records), lengths, seed, hint)
    names = (
        take_rows_of_column(records.client_names_as_arrow, clients)
        if records.text_ends.size
        else numbers_as_arrow_column(clients)
    )
    return ClientGroup(
        names,
        ClientColumns(
            *map(
                read_only_view, (*client_names_as_arrays(names), ends, outcomes, *amounts_as_counts_and_weights(counts))
            )
        ),
    )


def amounts_as_counts_and_weights(amounts: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers as counts or as weights, by their type; the other array is empty."""
    if np.issubdtype(amounts.dtype, np.integer):
        return amounts, np.empty(0)
    return np.empty(0, dtype=np.int64), amounts


def client_names_as_arrays(clients: pa.Array) -> tuple[Integers, Integers, Bytes]:
    """A column of clients as (integers, ends of texts, texts); unused arrays are empty."""
    empty = np.empty(0, dtype=np.int64)
    if pa.types.is_integer(clients.type):
        return arrow_column_as_numbers(cast_column(clients, pa.int64())), empty, np.empty(0, dtype=np.uint8)
    return empty, *_text_ends_and_bytes(cast_column(clients, pa.large_string()))


def clients_and_records_from_arrow(
    clients: pa.Array,
    outcomes: pa.Array,
    counts: pa.Array | None,
    *,
    weighted: bool = False,
    outcome_type: pa.DataType | None = None,
) -> ClientColumns:
    """Arrow columns as the arrays that compiled code reads, without copying if the layout allows.

    Lists of integers are counts unless they are `weighted`; lists of other numbers are weights.
    """
    for name, column in (("client", clients), ("outcomes", outcomes), ("counts", counts)):
        if column is not None and column.null_count:
            raise DiscreetError(f"column {name!r} holds {column.null_count} nulls; leave those rows out")
    integers, text_ends, text = client_names_as_arrays(normalise_client_names(clients))
    ends, numbers = _split_lists_into_ends_and_values(
        outcomes, pa.uint32() if outcome_type is None else outcome_type, "outcomes", "outcome numbers"
    )
    amounts: NDArray[Any] = np.empty(0)
    if counts is not None:
        are_counts = not weighted and pa.types.is_integer(getattr(counts.type, "value_type", counts.type))
        kind, what = (pa.int64(), "whole numbers below 2^63") if are_counts else (pa.float64(), "numbers")
        count_ends, amounts = _split_lists_into_ends_and_values(counts, kind, "counts", what)
        if not np.array_equal(count_ends, ends):
            raise DiscreetError("columns 'outcomes' and 'counts' hold lists of different lengths")
    return ClientColumns(
        *map(read_only_view, (integers, text_ends, text, ends, numbers, *amounts_as_counts_and_weights(amounts)))
    )


def refuse_repeated_clients(clients: ClientColumns) -> None:
    """Raise an error for a repeated client, which would release two samples and spend epsilon twice. Order makes this cheap."""
    seed, code = np.uint64(secrets.randbits(64)), choose_grouping_functions(len(clients))
    if clients.integers.size:
        if not code.are_integers_increasing(clients.integers):
            numbers = code.assign_numbers_to_integer_clients(clients.integers, seed, len(clients))[1]
            _refuse_repeated_client_number(numbers)
    elif not code.are_texts_increasing(clients.text_ends, clients.text):
        numbers = code.assign_numbers_to_text_clients(clients.text_ends, clients.text, seed, len(clients))[1]
        _refuse_repeated_client_number(numbers)


def _refuse_repeated_client_number(numbers: NDArray[np.uint32]) -> None:
    rows = np.flatnonzero(numbers != np.arange(len(numbers)))
    if rows.size:
        row = int(rows[0])
        raise DiscreetError(
            f"the client of row {int(numbers[row])} comes twice in the batch, again in row {row}: it would spend epsilon twice; join "
            "its lists into one row"
        )


def _split_lists_into_ends_and_values(
    column: pa.Array, value_type: pa.DataType, name: str, what: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """(ends from 0 on, values) of a column of lists."""
    refusal = DiscreetError(f"column {name!r} holds {column.type} values, not lists of {what}")
    if not is_list_type(column.type):
        raise refusal
    try:
        lists = column.cast(pa.large_list(value_type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise refusal from None
    ends = arrow_column_as_numbers(lists.offsets)
    values = lists.values.slice(ends[0], ends[-1] - ends[0])
    if values.null_count:
        raise DiscreetError(f"column {name!r} holds lists with nulls; leave those records out")
    return ends - ends[0], arrow_column_as_numbers(values)


def choose_grouping_functions(rows: int) -> ModuleType | SimpleNamespace:
    """The grouping functions for that many rows: those of `grouping`, or the plain ones with the same results."""
    return import_module("discreet.tables._grouping") if should_use_compiled_code(SECONDS_A_ROW * rows) else PLAIN


def _hash_numbers(value: NDArray[np.uint64], seed: Any) -> NDArray[np.uint64]:
    hashes = (value ^ seed) * _FIRST
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _SECOND
    return np.asarray(hashes ^ (hashes >> np.uint64(31)))


def _hash_texts(ends: Integers, text: Bytes, seed: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of each text, eight bytes at a time."""
    lengths = np.diff(ends)
    hashes = _hash_numbers(lengths.astype(np.uint64), np.uint64(seed))
    for first in range(0, int(lengths.max(initial=0)), 8):
        rows = np.flatnonzero(lengths > first)
        word = np.zeros(rows.size, dtype=np.uint64)
        for offset in range(first, first + 8):
            longer = lengths[rows] > offset
            word[longer] = (word[longer] << np.uint64(8)) | text[ends[rows[longer]] + offset]
        hashes[rows] = _hash_numbers(word, hashes[rows])
    return hashes


def _arrow_texts_from_bytes(ends: Integers, text: Bytes) -> pa.Array:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), max(ends.size - 1, 0), [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(text)]
    )


def _text_ends_and_bytes(texts: pa.Array) -> tuple[Integers, Bytes]:
    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return np.zeros(len(texts) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    ends = np.frombuffer(offsets, dtype=np.int64, count=len(texts) + 1, offset=8 * texts.offset)
    return ends - ends[0], np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]]


def _first_rows_and_value_numbers(values: pa.Array) -> tuple[Integers, NDArray[np.uint32]]:
    """(the first row of each distinct value, the number of each row's value), in order of first appearance."""
    rows = pl.DataFrame({"value": arrow_column_as_polars_series(values)}).with_row_index("row")
    firsts = rows.select(pl.col("row").first().over("value")).to_series().to_numpy()
    is_first = firsts == np.arange(firsts.size)
    numbers_so_far = np.cumsum(is_first, dtype=np.uint32) - np.uint32(1)
    return np.flatnonzero(is_first), numbers_so_far[firsts]


def records_by_part(
    integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, bits: int, seed: Any
) -> tuple[Any, ...]:
    """As `grouping.records_by_part`."""
    number = 1 << bits
    parts = (
        _part_of_each_text_client(text_ends, text, bits, seed)
        if text_ends.size
        else _part_of_each_integer_client(integers, bits, seed)
    )
    parts[outcomes >= widened_mark_for_records(MARK_OUTSIDE, outcomes)] = number
    starts = np.concatenate(([0], np.cumsum(np.bincount(parts, minlength=number + 1)))).astype(np.int64)
    order = np.argsort(parts, kind="stable")[: starts[-2]]
    if text_ends.size:
        text_ends, text = _text_ends_and_bytes(take_rows_of_column(_arrow_texts_from_bytes(text_ends, text), order))
    else:
        integers = integers[order]
    return starts, integers, text_ends, text, outcomes[order], counts[order] if counts.size else counts


def records_by_client(
    integers: Any, text_ends: Any, text: Any, outcomes: Any, counts: Any, lengths: Any, seed: Any, hint: int
) -> tuple[Any, ...]:
    """As `grouping.records_by_client`."""
    if text_ends.size:
        clients, numbers = assign_numbers_to_text_clients(text_ends, text, seed, hint)
    else:
        clients, numbers = assign_numbers_to_integer_clients(integers, seed, hint)
    owners = np.repeat(numbers, lengths) if lengths.size else numbers
    ends = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=clients.size)))).astype(np.int64)
    sort_keys = owners.astype(np.uint16) if clients.size <= 1 << 16 else owners  # numpy sorts 16 bits much faster
    order = np.argsort(sort_keys, kind="stable")
    return clients, ends, outcomes[order], counts[order] if counts.size else counts


def _part_of_each_integer_client(clients: Integers, bits: int, seed: Any) -> NDArray[np.uint16]:
    """The part, one of 2^bits, that each client belongs to."""
    return (_hash_numbers(clients.astype(np.uint64), np.uint64(seed)) >> np.uint64(64 - bits)).astype(np.uint16)


def _part_of_each_text_client(ends: Integers, text: Bytes, bits: int, seed: Any) -> NDArray[np.uint16]:
    texts = _arrow_texts_from_bytes(ends, text)
    first_rows, numbers = _first_rows_and_value_numbers(texts)
    hashes = _hash_texts(*_text_ends_and_bytes(take_rows_of_column(texts, first_rows)), seed)
    return (hashes >> np.uint64(64 - bits)).astype(np.uint16)[numbers]


def assign_numbers_to_integer_clients(clients: Any, seed: Any, hint: int) -> tuple[Integers, NDArray[np.uint32]]:
    """As `grouping.assign_numbers_to_integer_clients`."""
    first_rows, numbers = _first_rows_and_value_numbers(numbers_as_arrow_column(clients))
    return clients[first_rows], numbers


def assign_numbers_to_text_clients(ends: Any, text: Any, seed: Any, hint: int) -> tuple[Integers, NDArray[np.uint32]]:
    """As `grouping.assign_numbers_to_text_clients`."""
    return _first_rows_and_value_numbers(_arrow_texts_from_bytes(ends, text))


def are_integers_increasing(clients: Any) -> bool:
    """As `grouping.are_integers_increasing`."""
    return bool((clients[1:] > clients[:-1]).all())


def are_texts_increasing(ends: Any, text: Any) -> bool:
    """As `grouping.are_texts_increasing`."""
    texts = arrow_column_as_polars_series(_arrow_texts_from_bytes(ends, text))
    return bool((texts[:-1] < texts[1:]).all())


def remove_marks_of_listed_clients(ends: Any, outcomes: Any, counts: Any, weights: Any) -> tuple[Any, ...]:
    """As `grouping.remove_marks_of_listed_clients`."""
    mask = outcomes != widened_mark_for_records(MARK_LISTED, outcomes)
    counts_before = np.concatenate(([0], np.cumsum(mask)))
    new_ends = counts_before[ends].astype(np.int64)
    is_listed = np.diff(ends) > np.diff(new_ends)
    return (
        new_ends,
        outcomes[mask],
        *(amounts[mask] if amounts.size else amounts for amounts in (counts, weights)),
        is_listed,
    )


PLAIN = SimpleNamespace(
    records_by_part=records_by_part,
    records_by_client=records_by_client,
    remove_marks_of_listed_clients=remove_marks_of_listed_clients,
    assign_numbers_to_integer_clients=assign_numbers_to_integer_clients,
    assign_numbers_to_text_clients=assign_numbers_to_text_clients,
    are_integers_increasing=are_integers_increasing,
    are_texts_increasing=are_texts_increasing,
)
