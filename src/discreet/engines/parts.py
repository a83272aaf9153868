"""Records in parts by client, in memory up to a budget and on disk past it; each part then grouped exactly.

All records of a client lie in one part. A part too large for the budget is split again, by another hash.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engines import tables
from discreet.engines.domains import MISSING
from discreet.engines.jobs import FEW, Job, few
from discreet.engines.kernel import client_arrays, counts_and_weights, frozen
from discreet.errors import DiscreetError
from discreet.release.sparse import Clients

_BITS = 7
_DEEPEST = 4  # splits of splits: past that a single client is larger than memory
_NO_LENGTHS = np.empty(0, dtype=np.int64)


class Group(NamedTuple):
    """The clients of a part: their names as an Arrow column, and what they hold."""

    names: pa.Array
    clients: Clients

    def without_marks(self) -> "Group":
        """The group as the kernel takes it when there is a list of clients; refused if it holds others."""
        ends, outcomes, counts, weights, listed = tables.without_marks(*self.clients[3:])
        if not listed.all():
            unknown = self.names.filter(pa.array(~listed)).slice(0, FEW + 1).to_pylist()
            raise DiscreetError(
                f"clients with records are not on the list: {few(unknown)}; add them, or filter their records out"
            )
        return Group(self.names, Clients(*self.clients[:3], *map(frozen, (ends, outcomes, counts, weights))))

    @property
    def without_records(self) -> int:
        """How many of the clients hold nothing."""
        return int((np.diff(self.clients.ends) == 0).sum())


class Records(NamedTuple):
    """Rows of (client, outcome[, count]); clients as integers or as texts, and those arrays that do not apply are empty.

    Counts are whole numbers or, for weights, floats: as they came, never added up on the way.
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
        ends = pieces[0].text_ends
        if ends.size:
            ends = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(piece.text_ends) for piece in pieces]))))
        integers, text, outcomes, counts = (
            np.concatenate([piece[place] for piece in pieces]) for place in (0, 2, 3, 4)
        )
        return cls(integers, ends, text, outcomes, counts)

    @property
    def names(self) -> pa.Array:
        """The column of clients, as Arrow."""
        if not self.text_ends.size:
            return pa.array(self.integers)
        size = self.text_ends.size - 1
        return pa.LargeStringArray.from_buffers(size, pa.py_buffer(self.text_ends), pa.py_buffer(self.text))

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows as Arrow."""
        columns = {"client": self.names, "outcome": pa.array(self.outcomes)}
        if self.counts.size:
            columns["count"] = pa.array(self.counts)
        return pa.RecordBatch.from_pydict(columns)

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "Records":
        """The rows of an Arrow batch."""
        counts = batch.column("count").to_numpy() if "count" in batch.schema.names else np.empty(0)
        integers, ends, text = client_arrays(batch.column("client"))
        if ends.size:
            ends, text = ends - ends[0], text[ends[0] : ends[-1]]
        return cls(integers, ends, text, batch.column("outcome").to_numpy(), counts)


class Parts:
    """Takes records in any order; gives back groups of clients, each with all of its records."""

    def __init__(self, *, seed: int, budget: int, folder: Path | None = None, depth: int = 0) -> None:
        self._seed = np.uint64((seed + depth * 0x9E3779B97F4A7C15) % (1 << 64))
        self._budget, self._depth = budget, depth
        self._above = folder
        self._chunks: list[tuple[NDArray[np.int64], Records]] = []  # records in order of part, and where each starts
        self._held = 0
        self._folder: Path | None = None
        self._files: list[Any] = [None] * (1 << _BITS)
        self._spilled = [0] * (1 << _BITS)
        self._largest_group = 16
        self.tally = np.zeros(2, dtype=np.int64)  # values that were missing, values that were outside
        self.records = 0
        self.spilled_bytes = 0

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *problem: object) -> None:
        self._close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add_frame(self, frame: pl.DataFrame, job: Job) -> None:
        """Take the records of a prepared frame, with missing values and those outside going where the job says."""
        for column, fix in (("client", "a record without a client cannot be released"), ("count", "fill them")):
            if column in frame.columns and frame[column].null_count():
                name = job.columns.client if column == "client" else job.columns.counts
                raise DiscreetError(f"column {name!r} holds nulls: {fix}, or filter those rows out")
        self.add(
            frame["client"].to_arrow(),
            frame["outcome"].to_numpy(),
            frame["count"].to_numpy() if "count" in frame.columns else None,
            missing_to=job.missing_outcome,
            outside_to=job.domain.other_outcome,
        )

    def add(
        self,
        clients: pa.Array,
        outcomes: NDArray[np.uint32],
        counts: NDArray[np.int64] | NDArray[np.float64] | None = None,
        *,
        missing_to: int | None = None,
        outside_to: int | None = None,
    ) -> None:
        """Take a batch of records. Outcomes marked MISSING are left out or become `missing_to`; `outside_to` likewise."""
        integers, text_ends, text = map(frozen, client_arrays(clients))
        if text_ends.size:
            parts = tables.parts_of_texts(text_ends, text, _BITS, self._seed)
        else:
            parts = tables.parts_of_integers(integers, _BITS, self._seed)
        outcomes = outcomes.copy()  # the marks in it are replaced
        starts = tables.part_starts(
            parts,
            1 << _BITS,
            outcomes,
            MISSING if missing_to is None else np.uint32(missing_to),
            MISSING if outside_to is None else np.uint32(outside_to),
            self.tally,
        )
        if text_ends.size:
            text_ends, text = tables.texts_in_order(parts, starts, text_ends, text)
        else:
            integers = tables.in_order(parts, starts, integers)
        records = Records(
            integers,
            text_ends,
            text,
            tables.in_order(parts, starts, frozen(outcomes)),
            np.empty(0) if counts is None else tables.in_order(parts, starts, frozen(counts)),
        )
        self.records += records.outcomes.size
        self._chunks.append((starts, records))
        self._held += records.nbytes
        if self._held > self._budget:
            self._spill()

    def groups(self) -> Iterator[Callable[[], Group]]:
        """For each part, a function that reads and groups it. The functions may run in threads, in any order."""
        if self._folder is not None:
            self._spill()
            self._close()
        for part in range(1 << _BITS):
            if self._spilled[part] > self._budget and self._depth < _DEEPEST:
                yield from self._split(part)
            else:
                yield partial(self._group, part)

    def _split(self, part: int) -> Iterator[Callable[[], Group]]:
        """The groups of a part that is too large. Its files lie in this one's folder, and go when that goes."""
        smaller = Parts(seed=int(self._seed), budget=self._budget, folder=self._folder, depth=self._depth + 1)
        for piece in self._from_disk(part):
            smaller.add(piece.names, piece.outcomes, piece.counts if piece.counts.size else None)
        yield from smaller.groups()
        self.spilled_bytes += smaller.spilled_bytes

    def _group(self, part: int) -> Group:
        pieces = [*self._held_by(part), *self._from_disk(part)]
        if not pieces:
            return Group(pa.array([], pa.int64()), _no_clients())
        found = grouped(Records.joined(pieces), seed=self._seed, hint=self._largest_group)
        self._largest_group = max(self._largest_group, len(found.clients))
        return found

    def _held_by(self, part: int) -> Iterator[Records]:
        for starts, records in self._chunks:
            if starts[part] < starts[part + 1]:
                yield records.between(starts[part], starts[part + 1])

    def _spill(self) -> None:
        """Append all that is held to the files of the parts, and let go of it."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="discreet-", dir=self._above))  # readable by its owner alone
        try:
            for part in range(1 << _BITS):
                pieces = list(self._held_by(part))
                if pieces:
                    batch = Records.joined(pieces).batch
                    if self._files[part] is None:
                        self._files[part] = pa.ipc.new_stream(str(self._folder / str(part)), batch.schema)
                    self._files[part].write_batch(batch)
                    self._spilled[part] += batch.nbytes
                    self.spilled_bytes += batch.nbytes
        except OSError as error:
            raise DiscreetError(
                f"records larger than memory could not be put into {self._folder}: {error}; "
                "give a larger memory budget, or a folder on a larger disk"
            ) from None
        self._chunks, self._held = [], 0

    def _close(self) -> None:
        for part, file in enumerate(self._files):
            if file is not None:
                file.close()
                self._files[part] = None

    def _from_disk(self, part: int) -> Iterator[Records]:
        if self._spilled[part]:
            assert self._folder is not None
            with pa.OSFile(str(self._folder / str(part))) as file, pa.ipc.open_stream(file) as reader:
                yield from map(Records.of, reader)


def grouped(records: Records, *, seed: Any, hint: int = 16, lengths: NDArray[np.int64] = _NO_LENGTHS) -> Group:
    """Rows brought together by client, in memory. `lengths`: how many outcomes each row has, if not one."""
    integers, text_ends, text, outcomes, counts = map(frozen, records)
    names: Any
    if text_ends.size:
        first_rows, numbers = tables.numbered_texts(text_ends, text, seed, hint)
        names = records.names.take(pa.array(first_rows))
    else:
        known, numbers = tables.numbered_integers(integers, seed, hint)
        names = pa.array(known)
    ends, gathered = tables.lists(numbers, len(names), outcomes, lengths)
    if counts.size:
        _, counts = tables.lists(numbers, len(names), counts, lengths)
    return Group(names, Clients(*map(frozen, (*client_arrays(names), ends, gathered, *counts_and_weights(counts)))))


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
