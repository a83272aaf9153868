"""J draws of one client in any order: multisets of J out of k outcomes, of which there are C(k + J - 1, J) and not k^J.

A sequence of J independent draws has the same probability in every order, under a client's law as under a reference. So dP^J/dmu^J is
constant on the sequences of one multiset: a clip of it between constants is a clip on multisets, with

    P(multiset)  =  J!/(c_1! ... c_k!)  p_1^c_1 ... p_k^c_k,        c_x = how often x is in it,

and likewise for mu, after which an order is chosen at random, without a look at the client. Nothing is lost on the way: averaging any
mechanism on sequences over their orders keeps its privacy, and serves a client whose draws have no order at least as well (D_f is convex).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_MULTISETS = 1 << 18
MOST_TOGETHER = 64  # draws of one multiset
_RUN_ENTRIES = 1 << 21  # pairs of members that are compared at once


SAMPLES_ARE = "it is how many samples of each client are released together"


@dataclass(frozen=True)
class Multisets:
    """All multisets of so many outcomes, in lexicographic order of their sorted members.

    Args:
        size: how many outcomes there are.
        samples: how many members a multiset has.

    Raises:
        DiscreetError: for more than 262,144 multisets, or more than 64 members.
    """

    size: int
    samples: int

    def __post_init__(self) -> None:
        check_count("samples", self.samples, fix=SAMPLES_ARE)
        if not self.fit(self.size, self.samples):
            many = (
                f"{self.count(self.size, self.samples):,}" if self.size < 10**6 and self.samples < 100 else "too many"
            )
            raise DiscreetError(
                f"samples = {self.samples} of {self.size:,} outcomes are {many} multisets; a joint draw takes at most "
                f"{MOST_MULTISETS:,} of at most {MOST_TOGETHER} members: take fewer samples, or draw them one by one with a share of the "
                "budget each, as release(p, size=...) does then"
            )

    @staticmethod
    def count(size: int, samples: int) -> int:
        """How many there are."""
        return math.comb(size + samples - 1, samples)

    @classmethod
    def fit(cls, size: int, samples: int) -> bool:
        """Whether they are few enough to be listed."""
        if size > MOST_MULTISETS or samples > MOST_TOGETHER:
            return False
        return cls.count(size, samples) <= MOST_MULTISETS

    def __len__(self) -> int:
        return self.count(self.size, self.samples)

    @cached_property
    def members(self) -> Integers:
        """(multisets, samples): the outcomes of each, sorted."""
        listed = itertools.combinations_with_replacement(range(self.size), self.samples)
        flat = itertools.chain.from_iterable(listed)
        found = np.fromiter(flat, dtype=np.int64, count=len(self) * self.samples).reshape(len(self), self.samples)
        found.setflags(write=False)
        return found

    @cached_property
    def orders(self) -> Floats:
        """J!/(c_1! ... c_k!): how many sequences each multiset stands for."""
        found, run = np.ones(len(self)), np.ones(len(self))
        for place in range(1, self.samples):
            run = np.where(self.members[:, place] == self.members[:, place - 1], run + 1.0, 1.0)
            found = found * ((place + 1.0) / run)
        return found

    def laws(self, rows: Floats) -> Floats:
        """The laws (n, multisets) of independent draws, as many as a multiset has members, from laws (n, size)."""
        found = np.repeat(self.orders[None, :], len(rows), axis=0)
        for place in range(self.samples):
            found *= rows[:, self.members[:, place]]
        total = found.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(found, total, out=found, where=total > 0.0))

    def runs(self) -> Iterator[tuple[slice, Integers, Integers]]:
        """Some rows at a time: which multisets, their distinct members (n, samples) and how often each comes, 0 in places that are left."""
        rows = max(1, _RUN_ENTRIES // self.samples**2)
        for start in range(0, len(self), rows):
            members = self.members[start : start + rows]
            first = np.ones(members.shape, dtype=bool)
            first[:, 1:] = members[:, 1:] != members[:, :-1]
            number = np.cumsum(first, axis=1) - 1
            often = np.zeros(members.shape, dtype=np.int64)
            np.add.at(often, (np.arange(len(members))[:, None], number), 1)
            distinct = np.zeros(members.shape, dtype=np.int64)
            np.put_along_axis(distinct, number, members, axis=1)
            yield slice(start, start + len(members)), distinct, often

    def each(self, laws: Floats) -> Floats:
        """The laws (n, size) of one draw alone, from laws (n, multisets)."""
        found = np.zeros((len(laws), self.size))
        for row, law in enumerate(laws):
            weights = np.broadcast_to(law[:, None] / self.samples, self.members.shape)
            found[row] = np.bincount(self.members.ravel(), weights=weights.ravel(), minlength=self.size)
        return found

    def sequences(self, numbers: Integers, rng: np.random.Generator) -> Integers:
        """The members of multisets (n,) in a random order, (n, samples): what does not depend on a client."""
        order = np.argsort(rng.random((len(numbers), self.samples)), axis=1, kind="stable")
        return np.take_along_axis(self.members[numbers], order, axis=1)
