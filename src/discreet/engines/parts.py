"""Records in parts by client, in memory up to a budget and on disk past it; each part then grouped exactly.

All records of a client lie in one part. A part too large for the budget is split again, by another hash; equal records of a client
are counted together before that, so that a client with many of them is not larger than its distinct values. In which order parts and
clients come depends on the clients alone, not on how many records they have: on whether a part was split, nothing that is written
depends.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.kernels import compiled_for
from discreet.release.clients import Clients
from discreet.tables.arrow import as_column, client_arrays, frozen
from discreet.tables.scratch import Block, Scratch

SECONDS_A_ROW = 2e-7  # to bring together or to draw, roughly, without compiled code
_BITS = 7
_DEEPEST = 4  # splits of splits: past that a single client is larger than memory
_ONE_CLIENT = 1 << 28  # bytes that the values of one client may take, if the budget is smaller
_EXACT = 2.0**53  # below this, whole numbers add up without rounding
_HALF = 26  # bits
_NO_LENGTHS = np.empty(0, dtype=np.int64)


class Group(NamedTuple):
    """The clients of a part: their names as an Arrow column, and what they hold."""

    names: pa.Array
    clients: Clients

    def without_marks(self) -> "Group":
        """The group as the kernel takes it when there is a list of clients; refused if it holds others."""
        code = grouping_for(self.clients.outcomes.size)
        ends, outcomes, counts, weights, listed = code.without_marks(*self.clients[3:])
        if not listed.all():
            raise DiscreetError(
                f"clients with records are not on the list ({int((~listed).sum()):,} of {listed.size:,} looked at); add them, or filter "
                "their records out"
            )
        return Group(self.names, Clients(*self.clients[:3], *map(frozen, (ends, outcomes, counts, weights))))

    @property
    def without_records(self) -> int:
        """How many of the clients hold nothing."""
        return int((np.diff(self.clients.ends) == 0).sum())


class Records(NamedTuple):
    """Rows of (client, outcome[, count]); clients as integers or as texts, and those arrays that do not apply are empty.

    Counts are whole numbers or, for weights, floats: never added up on the way where that would round.
    """

    integers: NDArray[np.int64]
    text_ends: NDArray[np.int64]
    text: NDArray[np.uint8]
    outcomes: NDArray[np.uint32]
    counts: NDArray[np.int64] | NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def between(self, first: int, last: int) -> "Records":
        """The rows first <= row < last."""
        ends = self.text_ends[first : last + 1] if self.text_ends.size else self.text_ends
        text = self.text[ends[0] : ends[-1]] if ends.size else self.text
        return Records(
            self.integers[first:last],
            ends - ends[0] if ends.size else ends,
            text,
            self.outcomes[first:last],
            self.counts[first:last],
        )

    @classmethod
    def joined(cls, pieces: Sequence["Records"]) -> "Records":
        """All rows of the pieces, one after the other."""
        if any(piece.counts.size for piece in pieces):
            pieces = [piece if piece.counts.size else piece._replace(counts=_ones(piece)) for piece in pieces]
        ends = pieces[0].text_ends
        if ends.size:
            ends = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(piece.text_ends) for piece in pieces]))))
        integers, text, outcomes, counts = (
            np.concatenate([piece[place] for piece in pieces]) for place in (0, 2, 3, 4)
        )
        return cls(integers, ends, text, outcomes, counts)

    @property
    def combined(self) -> "Records":
        """Equal records of a client counted together, without rounding: what they add up to stays the same to the last bit."""
        counts = self.counts if self.counts.size else _ones(self)
        frame = pl.DataFrame({"client": pl.Series(self.names), "outcome": self.outcomes})
        if (counts == np.floor(counts)).all() and float(counts.sum(dtype=np.float64)) < _EXACT:
            return _records(frame.with_columns(count=counts).group_by("client", "outcome").agg(pl.col("count").sum()))
        if counts.dtype != np.float64 or counts.size >= 1 << _HALF:
            return self
        # weights of one power of two add up as whole numbers of 53 bits, in two halves that leave room for all of them
        digits, powers = np.frexp(counts)
        whole = (digits * _EXACT).astype(np.int64)
        halves = {"high": whole >> _HALF, "low": whole & ((1 << _HALF) - 1)}
        sums = (
            frame.with_columns(power=powers, **halves).group_by("client", "outcome", "power").agg(pl.col(*halves).sum())
        )
        parts = []
        for half, shift in (("high", _HALF - 53), ("low", -53)):
            weights = np.ldexp(sums[half].to_numpy().astype(np.float64), sums["power"].to_numpy() + shift)
            parts.append(sums.select("client", "outcome").with_columns(count=weights))
        return _records(pl.concat(parts))

    @property
    def names(self) -> pa.Array:
        """The column of clients, as Arrow."""
        if not self.text_ends.size:
            return as_column(self.integers)
        size = self.text_ends.size - 1
        return pa.LargeStringArray.from_buffers(size, pa.py_buffer(self.text_ends), pa.py_buffer(self.text))


class Parts:
    """Takes records in any order; gives back groups of clients, each with all of its records."""

    def __init__(self, *, seed: int, budget: int, folder: Path | None = None, depth: int = 0) -> None:
        self._seed = np.uint64((seed + depth * 0x9E3779B97F4A7C15) % (1 << 64))
        self._budget, self._depth = budget, depth
        self._share = budget if depth else budget // 4  # of a part: several are grouped at a time
        self._above = folder
        self._chunks: list[tuple[NDArray[np.int64], Records]] = []  # records in order of part, and where each starts
        self._held = 0
        self._scratch: Scratch | None = None
        self._blocks: list[list[Block]] = [[] for _ in range(1 << _BITS)]
        self._spilled = [0] * (1 << _BITS)
        self._largest_group = 16
        self.records = 0
        self.spilled_bytes = 0

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what lies on disk."""
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def add(
        self,
        clients: pa.Array,
        outcomes: NDArray[np.uint32],
        counts: NDArray[np.int64] | NDArray[np.float64] | None = None,
    ) -> None:
        """Take a batch of records. Those whose outcome is MISSING are left out."""
        amounts = np.empty(0) if counts is None else counts
        arrays = map(frozen, (*client_arrays(clients), outcomes, amounts))
        starts, *ordered = grouping_for(len(clients)).in_parts(*arrays, _BITS, self._seed)
        records = Records(*ordered)
        self.records += records.outcomes.size
        self._chunks.append((starts, records))
        self._held += records.nbytes
        if self._held > self._budget:
            self._make_room()

    def groups(self) -> Iterator[list[Callable[[], Group]]]:
        """For each part, functions that read and group it (several, if it is large). They may run in threads, in any order."""
        if self._scratch is not None:
            self._spill()
        for part in range(1 << _BITS):
            yield [partial(self._group, part)] if self._spilled[part] <= self._share else list(self._split(part))

    def _split(self, part: int) -> Iterator[Callable[[], Group]]:
        """The groups of a part that is too large."""
        if self._depth == _DEEPEST:
            yield partial(self._large_client, part)
            return
        smaller = Parts(seed=int(self._seed), budget=self._share, folder=self._above, depth=self._depth + 1)
        for piece in self._from_disk(part):
            smaller.add(piece.names, piece.outcomes, piece.counts if piece.counts.size else None)
        self.spilled_bytes += smaller.spilled_bytes
        for groups in smaller.groups():
            yield from groups

    def _large_client(self, part: int) -> Group:
        """A part that cannot be split: a client whose distinct values do not fit into the budget, if they fit at all."""
        if self._spilled[part] > max(self._budget, _ONE_CLIENT):
            raise DiscreetError(
                f"the values of one client take {self._spilled[part]:,} bytes, which is more than the memory budget; give a larger one "
                "(--memory)"
            )
        return self._group(part)

    def _group(self, part: int) -> Group:
        pieces = [*self._held_by(part), *self._from_disk(part)]
        if not pieces:
            return Group(as_column(np.empty(0, dtype=np.int64)), _no_clients())
        found = grouped(Records.joined(pieces), seed=self._seed, hint=self._largest_group)
        self._largest_group = max(self._largest_group, len(found.clients))
        return found

    def _held_by(self, part: int) -> Iterator[Records]:
        for starts, records in self._chunks:
            if starts[part] < starts[part + 1]:
                yield records.between(starts[part], starts[part + 1])

    def _make_room(self) -> None:
        """Count equal records together where that halves the largest part; put what is held on disk if there still is too much."""
        sizes = sum(np.diff(starts[: (1 << _BITS) + 1]) for starts, _ in self._chunks)
        largest = Records.joined(list(self._held_by(int(np.argmax(sizes)))))
        if 2 * largest.combined.nbytes < largest.nbytes:
            self._combine()
        if 2 * self._held > self._budget:
            self._spill()

    def _combine(self) -> None:
        """Hold, of each part, equal records counted together."""
        starts, found = np.zeros((1 << _BITS) + 1, dtype=np.int64), list[Records]()
        for part in range(1 << _BITS):
            if pieces := list(self._held_by(part)):
                found.append(Records.joined(pieces).combined)
                starts[part + 1] = found[-1].outcomes.size
        self._chunks = [(np.cumsum(starts), Records.joined(found))]
        self._held = self._chunks[0][1].nbytes

    def _spill(self) -> None:
        """Append all that is held to the blocks of the parts, and let go of it."""
        if self._scratch is None:
            self._scratch = Scratch(self._above)
        for part in range(1 << _BITS):
            pieces = list(self._held_by(part))
            if pieces:
                records = Records.joined(pieces)
                self._blocks[part].append(self._scratch.write(records))
                self._spilled[part] += records.nbytes
                self.spilled_bytes += records.nbytes
        self._chunks, self._held = [], 0

    def _from_disk(self, part: int) -> Iterator[Records]:
        for block in self._blocks[part]:
            assert self._scratch is not None
            yield Records(*self._scratch.read(block))


def _ones(records: Records) -> NDArray[np.int64]:
    """The counts of records that have none."""
    return np.ones(records.outcomes.size, dtype=np.int64)


def _records(frame: pl.DataFrame) -> Records:
    """Rows of (client, outcome, count)."""
    integers, ends, text = client_arrays(frame["client"].to_arrow())
    if ends.size:
        ends, text = ends - ends[0], text[ends[0] : ends[-1]]
    return Records(integers, ends, text, frame["outcome"].to_numpy(), frame["count"].to_numpy())


def grouped(records: Records, *, seed: Any, hint: int = 16, lengths: NDArray[np.int64] = _NO_LENGTHS) -> Group:
    """Rows brought together by client, in memory. `lengths`: how many outcomes each row has, if not one."""
    code = grouping_for(records.outcomes.size)
    clients, ends, outcomes, counts = code.by_client(*map(frozen, records), lengths, seed, hint)
    names = records.names.take(as_column(clients)) if records.text_ends.size else as_column(clients)
    return Group(names, Clients(*map(frozen, (*client_arrays(names), ends, outcomes, *counts_and_weights(counts)))))


def _no_clients() -> Clients:
    return Clients(
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.uint8),
        np.zeros(1, dtype=np.int64),
        np.empty(0, dtype=np.uint32),
        np.empty(0, dtype=np.int64),
        np.empty(0),
    )


def counts_and_weights(amounts: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers as counts or as weights, by their type; the other is empty."""
    if np.issubdtype(amounts.dtype, np.integer):
        return amounts, np.empty(0)
    return np.empty(0, dtype=np.int64), amounts


def grouping_for(rows: int) -> ModuleType:
    """The functions that bring so many rows together: `grouping`, or `plain_grouping`, which do the same."""
    return import_module("discreet.engines." + ("grouping" if compiled_for(SECONDS_A_ROW * rows) else "plain_grouping"))
