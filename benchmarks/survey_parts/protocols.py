"""Other protocols for several columns, in numpy: floating point, for comparison alone.

    k-RR split   every column by k-ary randomised response (k-RR) at epsilon/d; pairs by inverting the product of the two channels
    SPL          the same with k-RR or optimised unary encoding (OUE), whichever has less variance: multi-freq-ldpy's "adaptive"
    SMP          each client sends one attribute, drawn uniformly, with the whole budget, adaptive
    RS+FD        the same, hidden among fake values of the others at the budget log(d (e^epsilon - 1) + 1) [Arcolezi et al. 2021]

multi-freq-ldpy has one-way marginals alone. Here SPL also gives pairs: a client's reports on two columns are independent, so the mean of the
product of their unbiased values is unbiased. For SMP an attribute may be a pair of columns. Estimates are unbiased, then shifted to the total
1; the curator who wants shares takes the nearest that are none negative.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.survey_parts.tables import LEVELS, Floats, Integers, Marginal, RealTable
from discreet.estimation._inference._inversion import nearest_law
from discreet.survey import Number

CELLS = 32  # of a number, for protocols that know shares alone
Found = tuple[dict[Marginal, Floats], dict[str, Floats]]  # marginals, then mean and quantiles of numbers


@dataclass(frozen=True)
class Channel:
    """k-RR or OUE on one column: a report supports its own outcome with probability p and another with q.

    Attributes:
        size: k.
        is_unary: whether it is OUE.
        own: p.
        other: q.
    """

    size: int
    is_unary: bool
    own: float
    other: float

    @property
    def variance(self) -> float:
        """n times the variance of a share that is 0, by which multi-freq-ldpy chooses."""
        return self.other * (1.0 - self.other) / (self.own - self.other) ** 2

    def supports(self, counts: Integers, rng: np.random.Generator) -> Integers:
        """How many reports support each outcome, for so many clients with each: drawn from the law of these sums."""
        if self.is_unary:
            return np.asarray(rng.binomial(counts, self.own) + rng.binomial(counts.sum() - counts, self.other))
        kept = rng.binomial(counts, self.own - self.other)  # the other reports are uniform
        return kept + rng.multinomial(counts.sum() - kept.sum(), np.full(self.size, 1.0 / self.size))

    def supported(self, outcomes: Integers, rng: np.random.Generator) -> NDArray[np.float32]:
        """Which outcomes each client's report supports, (clients, k)."""
        clients = len(outcomes)
        found = np.zeros((clients, self.size), dtype=np.float32)
        if self.is_unary:
            found = (rng.random((clients, self.size), dtype=np.float32) < self.other).astype(np.float32)
            found[np.arange(clients), outcomes] = rng.random(clients) < self.own
            return found
        uniform = rng.random(clients) >= self.own - self.other
        sent = np.where(uniform, rng.integers(0, self.size, clients), outcomes)
        found[np.arange(clients), sent] = 1.0
        return found

    def shares(self, supports: NDArray[np.generic], clients: float) -> Floats:
        """The unbiased shares, shifted to the total 1."""
        found = (supports.astype(np.float64) / max(clients, 1.0) - self.other) / (self.own - self.other)
        return np.asarray(found + (1.0 - found.sum()) / self.size)


def response(size: int, epsilon: float) -> Channel:
    """k-RR."""
    growth = math.exp(epsilon)
    return Channel(size, False, growth / (growth + size - 1), 1.0 / (growth + size - 1))


def unary(size: int, epsilon: float) -> Channel:
    """OUE."""
    return Channel(size, True, 0.5, 1.0 / (math.exp(epsilon) + 1.0))


def adaptive(size: int, epsilon: float) -> Channel:
    """The one of the two with the smaller variance."""
    return min(response(size, epsilon), unary(size, epsilon), key=lambda each: each.variance)


def _cells_of(values: Floats, bounds: Number) -> Integers:
    found = ((values - bounds.low) / (bounds.high - bounds.low) * CELLS).astype(np.int64)
    return np.clip(found, 0, CELLS - 1)


def number_answers(shares: Floats, bounds: Number) -> Floats:
    """The mean and the quantiles of a number whose cells have these shares."""
    edges = np.linspace(bounds.low, bounds.high, CELLS + 1)
    rising = np.append(0.0, np.cumsum(nearest_law(shares)))
    rising /= rising[-1]
    first = np.searchsorted(rising, LEVELS, side="left").clip(1, CELLS)
    part = (np.array(LEVELS) - rising[first - 1]) / np.maximum(rising[first] - rising[first - 1], 1e-12)
    quantiles = edges[first - 1] + np.clip(part, 0.0, 1.0) * (edges[1] - edges[0])
    return np.append(shares @ ((edges[:-1] + edges[1:]) / 2), quantiles)


def split_budget(
    table: RealTable, epsilon: float, rng: np.random.Generator, *, adapt: bool, numbers: bool, pairs: bool = True
) -> Found:
    """Every column, and every number by its cells, at an equal part of the budget; pairs by products."""
    given = {name: (table.columns[name], size) for name, size in table.sizes.items()}
    if numbers:
        given |= {name: (_cells_of(values, table.bounds[name]), CELLS) for name, values in table.numbers.items()}
    make, part = adaptive if adapt else response, epsilon / len(given)
    channels = {name: make(size, part) for name, (_, size) in given.items()}
    if not pairs:  # the sums of reports have the same law, column by column
        one = {
            name: channels[name].shares(channels[name].supports(np.bincount(x, minlength=size), rng), table.clients)
            for name, (x, size) in given.items()
        }
        return {each: one[each[0]] for each in table.one_way}, {}
    held = np.concatenate([channels[name].supported(x, rng) for name, (x, _) in given.items()], axis=1)
    ends = np.cumsum([0, *(size for _, size in given.values())])
    places = {name: slice(ends[place], ends[place + 1]) for place, name in enumerate(given)}
    together, alone = (held.T @ held).astype(np.float64) / table.clients, held.mean(axis=0, dtype=np.float64)
    one = {name: channels[name].shares(alone[at], 1.0) for name, at in places.items()}
    found: dict[Marginal, Floats] = {each: one[each[0]] for each in table.one_way}
    for first, second in table.two_way:
        a, b, left, right = channels[first], channels[second], alone[places[first]], alone[places[second]]
        joint = together[places[first], places[second]]
        centred = joint - a.other * right[None, :] - left[:, None] * b.other + a.other * b.other
        pair = centred / ((a.own - a.other) * (b.own - b.other))
        found[first, second] = (pair + (1.0 - pair.sum()) / pair.size).ravel()
    return found, {name: number_answers(one[name], table.bounds[name]) for name in table.numbers if numbers}


def sample_attributes(
    table: RealTable, marginals: Sequence[Marginal], epsilon: float, rng: np.random.Generator, *, numbers: bool
) -> Found:
    """SMP: one of these marginals, or of the numbers by their cells, for each client."""
    attributes: list[Marginal] = [*marginals, *((name,) for name in table.numbers if numbers)]
    asked = rng.integers(0, len(attributes), table.clients)
    found: dict[Marginal, Floats] = {}
    answers: dict[str, Floats] = {}
    for place, each in enumerate(attributes):
        mine, is_number = asked == place, each[0] in table.numbers
        size = CELLS if is_number else table.cells(each)
        outcomes = _cells_of(table.numbers[each[0]], table.bounds[each[0]]) if is_number else table.outcomes(each)
        channel = adaptive(size, epsilon)
        shares = channel.shares(channel.supports(np.bincount(outcomes[mine], minlength=size), rng), float(mine.sum()))
        if is_number:
            answers[each[0]] = number_answers(shares, table.bounds[each[0]])
        else:
            found[each] = shares
    return found | _averaged(table, found), answers


def _averaged(table: RealTable, pairs: dict[Marginal, Floats]) -> dict[Marginal, Floats]:
    """One-way marginals by the mean of the pairs that have the column, where these were asked alone."""
    found: dict[Marginal, Floats] = {}
    for (name,) in table.one_way:
        if (name,) in pairs:
            continue
        told = [
            shares.reshape(table.sizes[each[0]], table.sizes[each[1]]).sum(axis=1 - each.index(name))
            for each, shares in pairs.items()
            if name in each
        ]
        found[name,] = np.mean(told, axis=0)
    return found


def fake_data(table: RealTable, epsilon: float, rng: np.random.Generator) -> Found:
    """RS+FD, adaptive: k-RR among uniform values, or OUE among reports of no outcome."""
    count = len(table.one_way)
    amplified = math.log(count * (math.exp(epsilon) - 1.0) + 1.0)
    asked = rng.integers(0, count, table.clients)
    found: dict[Marginal, Floats] = {}
    for place, each in enumerate(table.one_way):
        size, clients = table.cells(each), table.clients
        real = np.bincount(table.outcomes(each)[asked == place], minlength=size)
        first, second = response(size, amplified), unary(size, amplified)
        mixed = (first.other + (count - 1) / size) / count
        by_values = count**2 * mixed * (1.0 - mixed) / (first.own - first.other) ** 2
        by_bits = count**2 * second.other * (1.0 - second.other) / (second.own - second.other) ** 2
        fakes = clients - int(real.sum())
        if by_values <= by_bits:
            seen = first.supports(real, rng) + rng.multinomial(fakes, np.full(size, 1.0 / size))
            raw = (seen * count / clients - (count - 1) / size - first.other) / (first.own - first.other)
        else:
            seen = rng.binomial(real, second.own) + rng.binomial(clients - real, second.other)
            raw = count * (seen / clients - second.other) / (second.own - second.other)
        found[each] = raw + (1.0 - raw.sum()) / size
    return found, {}
