"""The best floor for given clients, by a primal-dual interior point method over the mechanisms themselves.

Every epsilon-LDP sampler lies between a measure m and e^eps m (`discreet.design.floors`, T1). With E = e^eps and q_j = m + d_j the
law drawn from for client j, the best mean over the clients is the convex programme

    min sum_j w_j sum_x q_jx f(p_jx/q_jx)    over m and d_j with    0 <= d_j <= (E - 1) m    and    |m| + |d_j| = 1 for each j.

Outcomes that a client does not hold cost it f(0) times their mass, however it is divided: they are one more entry, with the floor
m(not held). The promise to everybody enters through y = min m (T2): m = y + v with v >= 0, y >= t0/E and |v| + (k-1) y <= 1 - t0.

A Newton step (predictor and corrector) eliminates each client's entries, which are on a diagonal, then its normalisation, which is
one number, and leaves the system of `discreet.design.normal`. Nothing here is trusted: out come a floor and multipliers, from which
`discreet.design.certificate` computes a bound that holds however they were found.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from discreet.design.costs import Cost, Pair
from discreet.design.examples import Examples, Floats, Integers
from discreet.design.normal import Factored, NormalMatrix
from discreet.projection.threads import available

_BLOCK = 1 << 16  # entries of clients that are looked at together: what stays in the cache
_FIRST_MU = 30.0  # times the average product of slack and gradient at the start
_WORTH_SHARING = 4  # blocks, below which starting threads costs more than they save
_LARGEST_PART = 1e6
_LONGEST = 0.999
_SHORTEST = 0.9

CostOf = Callable[[Floats, Floats, float, Floats | float], Cost]  # of masses, laws, a common target and its parts
Result = TypeVar("Result")


@dataclass(frozen=True)
class Promise:
    """What the floor must keep: y >= least and |v| + (k - 1) y <= most."""

    least: float
    most: float


class Block:
    """Some of the clients, with their slacks and multipliers."""

    def __init__(
        self, examples: Examples, rows: slice, floor: Floats, total: float, growth: float, slope: float
    ) -> None:
        self.rows, self.entries = rows, examples.entries(rows)
        self.p, self.outcome = examples.mass[self.entries], examples.outcome[self.entries]
        self.starts: Integers = examples.starts[rows] - self.entries.start
        self.client = np.repeat(np.arange(len(self.starts), dtype=np.int32), examples.held[rows])
        self.weight = examples.weight[rows]
        self._alike = bool((self.weight == self.weight[0]).all())
        self.open = np.flatnonzero(examples.held[rows] < examples.size)
        self.growth = growth  # E - 1
        held = floor[self.outcome]
        rest = total - self.by_client(held)[self.open]
        share = (1.0 - total) / total  # d = share m: strictly inside, and normalised
        parts = np.minimum(_LARGEST_PART, 1.0 / (len(examples) * self.weight))  # of the common target of products
        places = (held, self._for_entries(parts)), (rest, self._for_rests(parts))
        self.low, self.rest_low = (Pair(share * m, np.zeros(m.size), part) for m, part in places)
        self.high, self.rest_high = (Pair((growth - share) * m, np.zeros(m.size), part) for m, part in places)
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
    def pairs(self) -> Iterator[tuple[Pair, Floats | float]]:
        """Every pair with the weights of its members."""
        for pair in (self.low, self.high, *self.cost.pairs):
            yield pair, self.entry_weight
        for pair in (self.rest_low, self.rest_high):
            yield pair, self._for_rests(self.weight)

    def by_client(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.starts))

    def by_outcome(self, values: Floats, seen: int) -> Floats:
        return np.asarray(np.bincount(self.outcome, weights=values, minlength=seen), dtype=np.float64)

    def widened(self, values: Floats) -> Floats:
        """Values of the clients that leave outcomes out, with zeros for the others."""
        out = np.zeros(self.weight.size)
        out[self.open] = values
        return out

    def add_to(self, matrix: NormalMatrix, floor: Floats, total: float) -> None:
        """Eliminate the entries and the normalisation, and add what they leave to the matrix."""
        growth, bend = self.growth, self.cost.look(floor[self.outcome] + self.low.s)
        low, high, rest_low, rest_high = (
            pair.stiffness for pair in (self.low, self.high, self.rest_low, self.rest_high)
        )
        self.inverse = 1.0 / (bend + low + high)
        self.coupling = (bend - growth * high) * self.inverse
        self.rest_inverse = 1.0 / (rest_low + rest_high)
        self.rest_coupling = -growth * rest_high * self.rest_inverse
        diagonal = (bend * (low + (1.0 + growth) ** 2 * high) + growth**2 * low * high) * self.inverse
        rest = self.widened(growth**2 * rest_low * rest_high * self.rest_inverse)
        self.looseness = self.by_client(self.inverse) + self.widened(self.rest_inverse)
        self.alpha = 1.0 - self.widened(self.rest_coupling)
        self.residual = self.by_client(self.low.s) + self.widened(self.rest_low.s) + total - 1.0
        weight = self.weight
        matrix.add(
            self.starts,
            self.outcome,
            self.entry_weight * diagonal,
            weight * rest,
            weight / self.looseness,
            self.alpha,
            1.0 - self.coupling,
        )

    def right_side(self, seen: int) -> tuple[Floats, float]:
        """Minus the gradient left after elimination: of each outcome's floor, and of |m|."""
        growth, gradient, at_zero = self.growth, self.cost.gradient(), self.cost.at_zero
        self.slack = gradient + self.multiplier[self.client] - self.low.aim + self.high.aim
        self.rest_slack = at_zero + self.multiplier[self.open] - self.rest_low.aim + self.rest_high.aim
        moved = self.by_client(self.slack * self.inverse) + self.widened(self.rest_slack * self.rest_inverse)
        self.shift = (self.residual - moved) / self.looseness
        entries = gradient - growth * self.high.aim - self.coupling * self.slack
        entries += self.shift[self.client] * (1.0 - self.coupling) - (self.shift * self.alpha)[self.client]
        rest = self.widened(at_zero - growth * self.rest_high.aim - self.rest_coupling * self.rest_slack)
        entries -= rest[self.client]
        whole = float(np.sum(self.weight * (rest + self.multiplier + self.shift * self.alpha)))
        return -self.by_outcome(self.entry_weight * entries, seen), -whole

    def follow(self, floor_step: Floats, total_step: float) -> tuple[float, float]:
        """The clients' steps for a step of the floor; how far primal and dual may go."""
        held_step = floor_step[self.outcome]
        rest_step = total_step - self.by_client(held_step)[self.open]
        pull = self.by_client((1.0 - self.coupling) * held_step)
        pull[self.open] += self.alpha[self.open] * rest_step
        self.multiplier_step = self.shift + pull / self.looseness
        step = -(self.slack + self.multiplier_step[self.client]) * self.inverse - self.coupling * held_step
        rest = -(self.rest_slack + self.multiplier_step[self.open]) * self.rest_inverse - self.rest_coupling * rest_step
        limits = [
            self.low.follow(step),
            self.high.follow(self.growth * held_step - step),
            self.rest_low.follow(rest),
            self.rest_high.follow(self.growth * rest_step - rest),
            self.cost.follow(held_step + step),
        ]
        return min(one[0] for one in limits), min(one[1] for one in limits)

    def aim(self, aim: Callable[[Pair], None]) -> None:
        """Tell every pair where its product should go."""
        for pair, _ in self.pairs:
            aim(pair)

    def move(self, primal: float, dual: float) -> None:
        for pair, _ in self.pairs:
            pair.move(primal, dual)
        self.multiplier += dual * self.multiplier_step

    def value(self, floor: Floats, total: float) -> float:
        """The clients' mean cost, times their weight."""
        held = floor[self.outcome]
        costs = self.by_client(self.cost.value(held + self.low.s))
        rest = self.widened(total - self.by_client(held)[self.open] + self.rest_low.s)
        return float(np.sum(self.weight * (costs + self.cost.at_zero * rest)))


class InteriorPoint:
    """The state of the method: a floor m = y + v strictly inside what the promise allows, and its clients in blocks."""

    def __init__(self, examples: Examples, epsilon: float, promise: Promise, slope: float, cost: CostOf) -> None:
        self.examples, self.size, self.seen = examples, examples.size, examples.seen.size
        growth = math.expm1(epsilon)
        least_total = math.exp(-epsilon)
        usual = math.exp(-epsilon / 2.0)  # |m| of the mollifier
        room = min(promise.most / (self.size - 1), 1.0 / self.size) - promise.least
        y = promise.least + min(max((usual / self.size - promise.least) / 2.0, room / 10.0), room / 2.0)
        low = max(0.0, least_total - self.size * y)
        high = min(promise.most - (self.size - 1) * y, 1.0 - self.size * y)
        average = np.sum([part.by_outcome(part.mass * part.weight[part.client]) for part in examples.parts()], axis=0)
        spread = min(max(usual - self.size * y, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        v = spread * (average / average.sum() + 1.0 / self.seen) / 2.0
        self.y, self.v = y, v
        self.bounds = Pair(np.append(v, y - promise.least), np.zeros(self.seen + 1))
        self.cap = Pair(np.array([promise.most - v.sum() - (self.size - 1) * y]), np.zeros(1))
        self._cap = np.append(np.ones(self.seen), self.size - 1.0)  # the capped functional of (v, y)
        self.blocks = [Block(examples, rows, self.floor, self.total, growth, slope) for rows in examples.rows(_BLOCK)]
        mu = self._first_mu(cost)
        for block in self.blocks:
            block.start(self.floor, mu, cost)
        for pair in (self.bounds, self.cap):
            pair.start(mu)
        self.number = self._summed(lambda pair: pair.part * np.ones_like(pair.s))

    @property
    def floor(self) -> Floats:
        """m of the seen outcomes; that of all others is y."""
        return np.asarray(self.y + self.v)

    @property
    def total(self) -> float:
        """|m|."""
        return float(self.v.sum()) + self.size * self.y

    @property
    def value(self) -> float:
        floor, total = self.floor, self.total
        return sum(self._each(lambda block: block.value(floor, total)))

    @property
    def gap(self) -> float:
        """The products of slacks and multipliers: how far from optimal, once the gradients have settled."""
        return self._summed(lambda pair: pair.products())

    def step(self, value: float) -> None:
        """One predictor and corrector step from where the value is this."""
        matrix, floor, total = NormalMatrix(self.size, self.seen), self.floor, self.total
        self._each(lambda block: block.add_to(matrix, floor, total))
        factored = matrix.factored(self.bounds.stiffness, self._cap, float(self.cap.stiffness[0]))
        gap = self.gap
        average = gap / self.number
        self._aim(lambda pair: pair.predict())
        primal, dual = (min(1.0, length) for length in self._follow(factored))
        predicted = self._summed(lambda pair: pair.products(primal, dual))
        mu = average * min(1.0, max(predicted / gap, 0.01)) ** 3
        self._aim(lambda pair: pair.correct(mu, 2.0 * average))
        part = min(max(_SHORTEST, 1.0 - gap / max(abs(value), 1e-300)), _LONGEST)
        primal, dual = (min(1.0, part * length) for length in self._follow(factored))
        self.v += primal * self.bounds.ds[:-1]
        self.y += primal * float(self.bounds.ds[-1])
        for pair in (self.bounds, self.cap):
            pair.move(primal, dual)
        self._each(lambda block: block.move(primal, dual))

    def _follow(self, factored: Factored) -> tuple[float, float]:
        right = np.append(np.zeros(self.seen), 0.0)
        whole = 0.0
        for of_outcome, of_total in self._each(lambda block: block.right_side(self.seen)):
            right[:-1] += of_outcome
            right[-1] += of_outcome.sum()
            whole += of_total
        right += whole * np.append(np.ones(self.seen), float(self.size))
        right += self.bounds.aim - self._cap * self.cap.aim
        found = factored.solve(right)
        step, total_step = found[:-1] + found[-1], float(found[:-1].sum() + self.size * found[-1])
        limits = [self.bounds.follow(found), self.cap.follow(-np.array([float(self._cap @ found)]))]
        limits += self._each(lambda block: block.follow(step, total_step))
        return min(one[0] for one in limits), min(one[1] for one in limits)

    def _first_mu(self, cost: CostOf) -> float:
        """A start from which the first steps are long: the products that the clients' gradients would have, and those of the floor's."""
        products, entries, value = 0.0, 0.0, 0.0
        for block in self.blocks:
            q = self.floor[block.outcome] + block.low.s
            found = cost(block.p, q, 1e-3, 1.0)
            found.look(q)
            slack = np.abs(found.multiplier() + block.multiplier[block.client])
            products += float(np.sum(block.entry_weight * slack * np.minimum(block.low.s, block.high.s)))
            entries += float(np.sum(block.entry_weight * np.ones_like(slack)))
            value += abs(float(np.sum(block.entry_weight * found.value(q))))
        return max(_FIRST_MU * products / entries, value / (self.seen + 2.0 * entries), 1e-9)

    def _aim(self, aim: Callable[[Pair], None]) -> None:
        for pair in (self.bounds, self.cap):
            aim(pair)
        self._each(lambda block: block.aim(aim))

    def _summed(self, values: Callable[[Pair], Floats]) -> float:
        own = sum(float(np.sum(values(pair))) for pair in (self.bounds, self.cap))
        return own + sum(
            self._each(lambda block: sum(float(np.sum(weight * values(pair))) for pair, weight in block.pairs))
        )

    def _each(self, work: Callable[[Block], Result]) -> list[Result]:
        """The work on every block, in order; shared out among threads where there are several."""
        if len(self.blocks) < _WORTH_SHARING or available() == 1:
            return [work(block) for block in self.blocks]
        with ThreadPoolExecutor(available()) as pool:
            return list(pool.map(work, self.blocks))
