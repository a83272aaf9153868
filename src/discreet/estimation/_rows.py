"""Several samples of each client: what n clients tell who released J samples each, which is not what n J clients would.

The J samples of one client are independent given what it holds, and so alike: together they tell less than those of J clients. What is
independent are the clients. The share of an outcome among a client's samples is one number Z_i in {0, 1/J, ..., 1} with mean Q_i(x), and
n such numbers are averaged: an interval for their mean by Gaffke's bound (`discreet.estimation._intervals`), of which J = 1 is the case of
two values, that is Clopper and Pearson's. Likewise for averages of any function. Nothing is used of how the samples of one client hang
together, so the interval holds whatever they are: of several rounds, drawn jointly, or one release that was read twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Domain
from discreet.errors import DiscreetError
from discreet.estimation._counting import as_list, checked_counts
from discreet.estimation._intervals import Ends, largest_average

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampleRows:
    """Outcome numbers (n, J): J samples of each of n clients, on so many outcomes."""

    numbers: Integers
    size: int

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return len(self.numbers)

    @property
    def counts(self) -> Integers:
        """How often each outcome is among all samples."""
        return np.bincount(self.numbers.ravel(), minlength=self.size).astype(np.int64)

    def renumber_outcomes(self, number: Integers, size: int) -> SampleRows:
        """The same samples where outcome i is called number[i], which several outcomes may share."""
        return SampleRows(number[self.numbers], size)

    @cached_property
    def _repeat_counts(self) -> Integers:
        """(size, J + 1): how many clients have each outcome so often among their samples."""
        n, samples = self.numbers.shape
        pairs = np.repeat(np.arange(n), samples) * self.size + self.numbers.ravel()
        met, times = np.unique(pairs, return_counts=True)
        found = np.zeros((self.size, samples + 1), dtype=np.int64)
        np.add.at(found, (met % self.size, times), 1)
        found[:, 0] = n - found[:, 1:].sum(axis=1)
        return found

    def ends(self, confidence: float, *, among: int = 1, liars: int = 0) -> Ends:
        """Of the intervals of all outcomes' shares; as they would be if so many more of the clients had sent each of them alone.

        Negative: if so many of those that sent it most often had not sent it at all.
        """
        often = (
            _move_clients(self._repeat_counts, liars)
            if liars >= 0
            else _move_clients(self._repeat_counts[:, ::-1], -liars)[:, ::-1]
        )
        return _mean_ends(often, confidence, among)

    def ends_below(self, order: Integers, confidence: float) -> Ends:
        """Of the intervals of the shares of the first, the first two, ... outcomes in this order."""
        n, samples = self.numbers.shape
        rank = np.empty(self.size, dtype=np.int64)
        rank[order] = np.arange(self.size)
        ranks = np.sort(rank[self.numbers], axis=1)
        steps = np.zeros((self.size, samples + 1), dtype=np.int64)
        steps[0, 0] = n
        for place in range(samples):  # from here on a client has one more of its samples below
            here = np.bincount(ranks[:, place], minlength=self.size)
            steps[:, place] -= here
            steps[:, place + 1] += here
        return _mean_ends(np.cumsum(steps, axis=0), confidence, 1)

    def largest_average(self, phi: Floats, confidence: float, *, among: int = 1) -> float:
        """The largest average that phi can have under the laws drawn from."""
        means, clients = np.unique(phi[self.numbers].mean(axis=1), return_counts=True)
        values = np.concatenate([means, [phi.min(), phi.max()]])  # which nobody need have
        return largest_average(values, np.concatenate([clients, [0, 0]]).astype(np.int64), confidence, among=among)


def rows_of(samples: Any, domain: Domain) -> SampleRows | None:
    """Samples with a row for each client, if that is what they are: else one sample is one client's."""
    rows = as_list(samples)
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], (list, tuple, np.ndarray)):
        return None
    lengths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else 0 for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise DiscreetError(
            f"samples has rows of {min(lengths)} to {max(lengths)}; give as many samples of each client, and leave out who has fewer"
        )
    numbers = domain.numbers([one for row in rows for one in row])
    checked_counts(np.bincount(numbers, minlength=domain.size), domain)
    return SampleRows(numbers.reshape(len(rows), lengths.pop()), domain.size)


def _move_clients(often: Integers, number: int) -> Integers:
    """So many clients of each row moved from the first columns to the last."""
    before = np.cumsum(often, axis=1)
    left = np.diff(np.maximum(before - number, 0), axis=1, prepend=0)
    left[:, -1] += np.minimum(number, before[:, -1])
    return np.asarray(left)


def _mean_ends(often: Integers, confidence: float, among: int) -> Ends:
    """The ends of intervals of means, from how many clients have each of the values 0, 1/J, ..., 1."""
    values = np.arange(often.shape[1]) / (often.shape[1] - 1)
    distinct, places = np.unique(often, axis=0, return_inverse=True)  # far fewer than outcomes
    high = np.array([largest_average(values, row, confidence, among=among) for row in distinct])
    low = np.array([1.0 - largest_average(1.0 - values, row, confidence, among=among) for row in distinct])
    share = distinct @ values / distinct.sum(axis=1)
    low, high = np.clip(np.minimum(low, share), 0.0, 1.0), np.clip(np.maximum(high, share), 0.0, 1.0)
    return low[places.ravel()], high[places.ravel()]
