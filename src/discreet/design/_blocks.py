"""Some of the clients in the interior point method: what they hold, their slacks and multipliers, and what is left of a Newton step."""

from collections.abc import Callable, Iterator

import numpy as np

from discreet.design._costs import EntryCost, SlackPair
from discreet.design._examples import ExampleClients, Floats, Integers

_LARGEST_PART = 1e6

CostOf = Callable[[Floats, Floats, float, Floats | float], EntryCost]  # of masses, laws, a common target and its parts


class ClientBlock:
    """Clients `rows`. An entry is an outcome that a client holds; `open` are the clients that leave outcomes out, for which the
    `rest` pairs stand.
    """

    cost: EntryCost

    def __init__(
        self, examples: ExampleClients, rows: slice, floor: Floats, total: float, growth: float, slope: float
    ) -> None:
        self.rows, self.entries = rows, examples.entries(rows)
        self.p, self.outcome = examples.mass[self.entries], examples.outcome[self.entries]
        self.starts: Integers = examples.starts[rows] - self.entries.start
        self.client = np.repeat(np.arange(len(self.starts), dtype=np.int32), examples.support_sizes[rows])
        self.weight = examples.weight[rows]
        self._alike = bool((self.weight == self.weight[0]).all())
        self.open = np.flatnonzero(examples.support_sizes[rows] < examples.size)
        self.growth = growth  # E - 1
        held = floor[self.outcome]
        rest = total - self.by_client(held)[self.open]
        share = (1.0 - total) / total  # d = share m: strictly inside, and normalised
        self.part = np.minimum(_LARGEST_PART, 1.0 / (len(examples) * self.weight))  # of the common target of products
        places = (held, self._for_entries(self.part)), (rest, self._for_rests(self.part))
        self.low, self.rest_low = (SlackPair(share * m, np.zeros(m.size), part) for m, part in places)
        self.high, self.rest_high = (SlackPair((growth - share) * m, np.zeros(m.size), part) for m, part in places)
        self.multiplier = np.full(self.weight.size, slope)

    def start(self, floor: Floats, mu: float, cost: CostOf) -> None:
        """Multipliers on the central path of mu."""
        self.cost = cost(self.p, floor[self.outcome] + self.low.s, mu, self.low.part)
        for pair in (self.low, self.high, self.rest_low, self.rest_high):
            pair.start(mu)

    def _for_entries(self, values: Floats) -> Floats | float:
        """A client's number for each of its entries; one number where clients count alike."""
        return float(values[0]) if self._alike else values[self.client]

    def _for_rests(self, values: Floats) -> Floats | float:
        return float(values[0]) if self._alike else values[self.open]

    @property
    def entry_weight(self) -> Floats | float:
        """The weight of every entry's client."""
        return self._for_entries(self.weight)

    @property
    def pairs(self) -> Iterator[tuple[SlackPair, Floats | float]]:
        """Every pair with the weights of its members."""
        for pair in (self.low, self.high, *self.cost.pairs):
            yield pair, self.entry_weight
        for pair in (self.rest_low, self.rest_high):
            yield pair, self._for_rests(self.weight)

    def weighted_sum(self, values: Callable[[SlackPair], Floats]) -> float:
        """The weighted sum of some value of every pair."""
        return sum(float(np.sum(weight * values(pair))) for pair, weight in self.pairs)

    def by_client(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.starts))

    def by_outcome(self, values: Floats, seen: int) -> Floats:
        return np.asarray(np.bincount(self.outcome, weights=values, minlength=seen), dtype=np.float64)

    def for_all_clients(self, values: Floats) -> Floats:
        """Values of the clients that leave outcomes out, with zeros for the others."""
        out = np.zeros(self.weight.size)
        out[self.open] = values
        return out

    def value(self, floor: Floats, total: float) -> float:
        """The clients' mean cost, times their weight."""
        held = floor[self.outcome]
        costs = self.by_client(self.cost.value(held + self.low.s))
        rest = self.for_all_clients(total - self.by_client(held)[self.open] + self.rest_low.s)
        return float(np.sum(self.weight * (costs + self.cost.at_zero * rest)))
