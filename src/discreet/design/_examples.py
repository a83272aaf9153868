"""The example clients a design is made for, by their non-zeros, so that work and memory grow with what clients hold.

Outcomes that no example holds are exchangeable for every client, so the best floor (convex, hence symmetrised for free) is one
number on all of them: they need no variables. Below, `outcome` numbers the K outcomes that some example holds, `seen` are their
numbers in the domain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError
from discreet.families._laws import as_floats, is_law, refuse_bad_entries, refuse_bad_law
from discreet.projection._breakpoints import NEGLIGIBLE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExampleClients:
    """n laws on `size` outcomes with weights (n,) that sum to one: entries in the order of the clients, who begin at `starts`."""

    size: int
    starts: Integers
    outcome: NDArray[np.int32]
    mass: Floats
    weight: Floats
    seen: Integers

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def support_sizes(self) -> Integers:
        """How many outcomes each client holds (n,)."""
        return np.diff(np.append(self.starts, self.mass.size))

    @cached_property
    def client(self) -> NDArray[np.int32]:
        """The client of every entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.support_sizes)

    @cached_property
    def partial(self) -> Floats:
        """1 for clients that leave outcomes out, 0 for those that hold all of them."""
        return np.asarray(self.support_sizes < self.size, dtype=np.float64)

    def by_client(self, values: Floats) -> Floats:
        """Sums of entries over each client (n,)."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def by_outcome(self, values: Floats) -> Floats:
        """Sums of entries over each seen outcome (K,)."""
        return np.asarray(np.bincount(self.outcome, weights=values, minlength=self.seen.size), dtype=np.float64)

    def rows(self, entries: int) -> list[slice]:
        """Slices of clients with about so many entries each."""
        cuts = np.searchsorted(self.starts, np.arange(entries, self.mass.size, entries))
        return [slice(a, b) for a, b in pairwise(np.unique([0, *cuts, len(self)]).tolist())]

    def entries(self, rows: slice) -> slice:
        """The entries of a slice of clients."""
        ends = self.starts[rows.stop] if rows.stop < len(self) else self.mass.size
        return slice(int(self.starts[rows.start]), int(ends))

    def parts(self, entries: int = 1 << 17) -> "Iterator[ExampleClients]":
        """The same clients, some at a time."""
        for rows in self.rows(entries):
            held = self.entries(rows)
            starts = self.starts[rows] - held.start
            yield ExampleClients(self.size, starts, self.outcome[held], self.mass[held], self.weight[rows], self.seen)

    def dense(self) -> Floats:
        """The laws (n, size)."""
        laws = np.zeros((len(self), self.size))
        laws[self.client, self.seen[self.outcome]] = self.mass
        return laws

    def spread_out(self, on_seen: Floats, elsewhere: float) -> Floats:
        """Values of the seen outcomes as a vector over the domain, with one value on all others."""
        whole = np.full(self.size, elsewhere)
        whole[self.seen] = on_seen
        return whole


def as_examples(clients: Any, weights: ArrayLike | None, size: int, *, name: str = "clients") -> ExampleClients:
    """Laws (n, size), or a scipy.sparse matrix whose rows are counts or laws, as `ExampleClients`; everything else is refused by name."""
    starts, outcome, mass = (
        _sparse_entries(clients, size, name) if hasattr(clients, "tocsr") else _dense_entries(clients, size, name)
    )
    weight, counts = _weights(weights, starts.size - 1), np.diff(starts)
    counted = weight > 0.0
    if not counted.all():
        entries = np.repeat(counted, counts)
        outcome, mass, counts, weight = outcome[entries], mass[entries], counts[counted], weight[counted]
    occurs = np.zeros(size, dtype=bool)
    occurs[outcome] = True
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return ExampleClients(size, begin, place[outcome], mass, weight, np.flatnonzero(occurs))


def _dense_entries(clients: Any, size: int, name: str) -> tuple[Integers, Integers, Floats]:
    laws = as_floats(clients, name, size)
    if laws.ndim != 2 or not len(laws):
        raise DiscreetError(
            f"{name} has shape {laws.shape}; give one law a row, (n, {size}) with n at least 1, or a sparse matrix of counts"
        )
    good = is_law(laws)
    if not good.all():
        refuse_bad_law(laws, int(np.argmin(good)), name)
    held = laws > NEGLIGIBLE
    counts = held.sum(axis=1)
    mass = laws[held]
    return np.concatenate([[0], np.cumsum(counts)]), np.nonzero(held)[1], mass / np.repeat(laws.sum(axis=1), counts)


def _sparse_entries(clients: Any, size: int, name: str) -> tuple[Integers, Integers, Floats]:
    """Rows of a sparse matrix, each divided by its sum."""
    if clients.ndim != 2 or clients.shape[1] != size or not clients.shape[0]:
        raise DiscreetError(f"{name} has shape {clients.shape}; give one row a client, (n, {size}) with n at least 1")
    rows = clients.tocsr().astype(np.float64)
    if rows is clients:
        rows = rows.copy()
    rows.sum_duplicates()
    bad = ~(np.isfinite(rows.data) & (rows.data >= 0.0))
    if bad.any():
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        dense = np.asarray(rows[[row]].todense()).ravel()
        refuse_bad_entries(dense, f"{name}[{row}]")
    largest = rows.max(axis=1).toarray().ravel()
    if not (largest > 0.0).all():
        raise DiscreetError(
            f"{name}[{int(np.argmin(largest > 0.0))}] is all zero: a client without records has no law; leave it out"
        )
    counts = np.diff(rows.indptr)
    rows.data /= np.repeat(largest, counts)  # so that no sum overflows
    rows.data /= np.repeat(np.add.reduceat(rows.data, rows.indptr[:-1]), counts)
    rows.data[rows.data <= NEGLIGIBLE] = 0.0
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows.indptr.astype(np.int64), rows.indices, rows.data


def _weights(weights: ArrayLike | None, number: int) -> Floats:
    if weights is None:
        return np.full(number, 1.0 / number)
    found = as_floats(weights, "weights")
    if found.shape != (number,):
        raise DiscreetError(f"weights has shape {found.shape}; give one for each of the {number} clients")
    refuse_bad_entries(found, "weights")
    if not found.max() > 0.0:
        raise DiscreetError("weights are all zero; give some client a positive one")
    found = found / found.max()
    return np.asarray(found / found.sum())
