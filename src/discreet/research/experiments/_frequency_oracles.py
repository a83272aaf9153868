"""Frequency oracles: what a curator who wants a histogram, and no records, would ask of one raw draw of each client.

Each client holds one outcome x and sends a report whose *support* is a set of outcomes. The support holds x with probability p and
every other outcome with probability q < p, so with n clients and C_v supports that hold v

    (C_v/n - q)/(p - q)

is unbiased for the share of clients that hold v [Wang et al., USENIX Security 2017]. What tells the oracles apart:

* optimised unary encoding: k independent bits, p = 1/2, q = 1/(e^eps + 1). One client's bits are independent, so given the raw draws
  the C_v are independent, C_v ~ Binomial(n_v, p) + Binomial(n - n_v, q), where n_v clients hold v.
* optimised local hashing with an ideal hash: each client draws h : outcomes -> {1..g}, g = round(e^eps) + 1, with independent uniform
  values, and sends h with y, randomised response on h(x); its support is {v : h(v) = y}. It holds x with p = e^eps/(e^eps + g - 1). Given
  (h(x), y) the other h(v) are still independent and uniform, so each v /= x is in with q = 1/g, independently: the same two binomials.
* subset selection [Ye and Barg 2018]: w = max(1, round(k/(e^eps + 1))) outcomes, x among them with p = w e^eps/(w e^eps + k - w), the
  others uniform without replacement: q = p (w - 1)/(k - 1) + (1 - p) w/(k - 1). Supports have a fixed size, so the C_v are dependent and
  every client's support is drawn. For w = 1 it is k-ary randomised response, and so the linear sampler.

The first two are therefore simulated exactly from two binomials an outcome, at a cost that does not grow with n; nothing is
approximated. These are simulations with seeds: they tell what an oracle costs, and release nothing.
"""

import abc
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count
from discreet.privacy._pure import check_epsilon

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK = 1 << 21  # clients times outcomes drawn at a time
_MOST_BUCKETS = 2**53


@dataclass(frozen=True)
class FrequencyOracle(abc.ABC):
    """An epsilon-LDP report on one raw outcome of each client, told by its p and q."""

    outcomes: int
    epsilon: float = field(kw_only=True)

    def __post_init__(self) -> None:
        check_count("outcomes", self.outcomes, least=2, fix="with one outcome there is nothing to ask")
        check_epsilon(self.epsilon)

    @property
    @abc.abstractmethod
    def p(self) -> float:
        """The chance that a report supports the outcome its client holds."""

    @property
    @abc.abstractmethod
    def q(self) -> float:
        """The chance that a report supports any other outcome."""

    @abc.abstractmethod
    def supports(self, raw: Integers, rng: np.random.Generator) -> Integers:
        """How many reports support each outcome (k,), when clients hold the outcomes `raw` (n,)."""

    def estimate(self, raw: Integers, rng: np.random.Generator) -> Floats:
        """Unbiased shares (k,) of the clients that hold each outcome, from one report of each; entries may be negative."""
        return np.asarray((self.supports(raw, rng) / len(raw) - self.q) / (self.p - self.q))

    def variance(self, shares: Floats) -> Floats:
        """n Var of the estimate of each outcome, over the reports alone, when these are the shares of the clients that hold it."""
        p, q = self.p, self.q
        return np.asarray((shares * p * (1.0 - p) + (1.0 - shares) * q * (1.0 - q)) / (p - q) ** 2)

    def _held_counts(self, raw: Integers) -> Integers:
        held = np.bincount(raw, minlength=self.outcomes)
        if held.size > self.outcomes:
            raise DiscreetError(f"raw holds the outcome {int(raw.max())}; outcomes are 0 to {self.outcomes - 1}")
        return held

    def _independent_supports(self, raw: Integers, rng: np.random.Generator) -> Integers:
        held = self._held_counts(raw)
        return np.asarray(rng.binomial(held, self.p) + rng.binomial(len(raw) - held, self.q))


@final
@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """Optimised unary encoding: k bits, the client's own sent as a fair coin."""

    @property
    def p(self) -> float:
        return 0.5

    @property
    def q(self) -> float:
        shrink = math.exp(-self.epsilon)
        return shrink / (1.0 + shrink)

    def supports(self, raw: Integers, rng: np.random.Generator) -> Integers:
        return self._independent_supports(raw, rng)


@final
@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    """Optimised local hashing with an ideal hash: a random map to g buckets, and randomised response on the bucket."""

    @cached_property
    def buckets(self) -> int:
        """g = round(e^eps) + 1."""
        return round(math.exp(self.epsilon)) + 1 if self.epsilon < math.log(_MOST_BUCKETS) else _MOST_BUCKETS

    @property
    def p(self) -> float:
        return 1.0 / (1.0 + (self.buckets - 1) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        return 1.0 / self.buckets

    def supports(self, raw: Integers, rng: np.random.Generator) -> Integers:
        return self._independent_supports(raw, rng)


@final
@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """Subset selection: `size` outcomes, the client's own more often than not."""

    @cached_property
    def size(self) -> int:
        """w = max(1, round(k/(e^eps + 1)))."""
        shrink = math.exp(-self.epsilon)
        return max(1, round(self.outcomes * shrink / (1.0 + shrink)))

    @property
    def p(self) -> float:
        return self.size / (self.size + (self.outcomes - self.size) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        return (self.p * (self.size - 1) + (1.0 - self.p) * self.size) / (self.outcomes - 1)

    def supports(self, raw: Integers, rng: np.random.Generator) -> Integers:
        self._held_counts(raw)
        found = np.zeros(self.outcomes, dtype=np.int64)
        step = max(1, _BLOCK // self.outcomes)
        for start in range(0, len(raw), step):
            chosen = self._subsets(raw[start : start + step], rng)
            found += np.bincount(chosen.ravel(), minlength=self.outcomes)
        return found

    def _subsets(self, raw: Integers, rng: np.random.Generator) -> Integers:
        """One subset for each client: the outcomes with the smallest keys, where its own comes first or last."""
        keys = rng.random((len(raw), self.outcomes))
        keys[np.arange(len(raw)), raw] = np.where(rng.random(len(raw)) < self.p, -1.0, 2.0)
        return np.argpartition(keys, self.size - 1, axis=1)[:, : self.size]
