"""The interior point method that finds the best floor for example clients, with Newton steps in numpy.

`discreet.design._compiled` has the same steps in numba. Every epsilon-LDP sampler lies between a measure m and e^eps m
(`discreet.design._floors`, T1). With E = e^eps and q_j = m + d_j the output distribution of client j, the best mean over the clients is the
convex programme

    min sum_j w_j sum_x q_jx f(p_jx/q_jx)    over m and d_j with    0 <= d_j <= (E - 1) m    and    |m| + |d_j| = 1 for each j.

Outcomes outside a client's support cost it f(0) times their mass, for every division of it. They are one more entry, whose floor is the mass
of m outside the support. The guarantee for everybody enters through y = min m (T2): m = y + v with v >= 0, y >= t0/E and |v| + (k-1) y <= 1 -
t0.

A Newton step (predictor and corrector) eliminates each client's entries, which are on a diagonal, then its normalisation, which is one
number. The rest is the system of `discreet.design._newton`. The method need not be trusted: it returns a floor and multipliers, from which
`discreet.design._floors` computes a bound that holds for any multipliers.

**Steps apart.** Of many thousand entries some are always about to reach a bound. A common step, as short as the shortest of them allows,
makes little progress: at epsilon 8 most steps would be a fifth of the length possible for nearly all entries. But clients interact through
the floor alone. So where the common step is short, the floor moves as far as its own bounds allow and each entry as far as its own. Each
client's distribution is then normalised by the room that its entries have left. For the few entries that were cut this is not a Newton step,
and convergence is not proved. `cautious` takes only common steps, for problems that did not converge.

**The largest cost** in place of the mean (`SmoothMinimax`), for smooth f: one more pair for each client, the slack of F_j <= T and its
multiplier, the weight w_j.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from discreet._base.kernels import should_use_compiled_code_by_work_alone
from discreet.design._floors import ExampleClients, Floats
from discreet.design._newton import (
    LEAST_LEFT,
    MOST_RENORMALISED,
    ClientBlock,
    CostOf,
    FactoredMatrix,
    MatrixShare,
    NormalMatrix,
    SlackAndMultiplier,
)
from discreet.divergences import ConvexCurve, FDivergence
from discreet.projection import processor_count

if TYPE_CHECKING:
    from discreet.design._compiled import CompiledSteps


class PlainSteps:
    """A Newton step of one block of clients, in halves: entries and normalisations are eliminated, then they follow the floor."""

    def __init__(self, block: ClientBlock) -> None:
        self._block = block

    def eliminate_client_variables(self, share: MatrixShare, floor: Floats, total: float) -> None:
        """Add the reduced system of the clients to a share of the matrix."""
        block = self._block
        growth, bend = block.growth, block.cost.curvature_at(floor[block.outcome] + block.low.s)
        low, high, rest_low, rest_high = (
            pair.stiffness for pair in (block.low, block.high, block.rest_low, block.rest_high)
        )
        self._inverse = 1.0 / (bend + low + high)
        self._coupling = (bend - growth * high) * self._inverse
        self._rest_inverse = 1.0 / (rest_low + rest_high)
        self._rest_coupling = -growth * rest_high * self._rest_inverse
        diagonal = (bend * (low + (1.0 + growth) ** 2 * high) + growth**2 * low * high) * self._inverse
        rest = block.fill_zeros_for_full_support_clients(growth**2 * rest_low * rest_high * self._rest_inverse)
        self._looseness = block.sum_by_client(self._inverse) + block.fill_zeros_for_full_support_clients(
            self._rest_inverse
        )
        self._alpha = 1.0 - block.fill_zeros_for_full_support_clients(self._rest_coupling)
        self._residual = (
            block.sum_by_client(block.low.s) + block.fill_zeros_for_full_support_clients(block.rest_low.s) + total - 1.0
        )
        share.add_clients(
            block.starts,
            block.outcome,
            block.entry_weight * diagonal,
            block.weight * rest,
            block.weight / self._looseness,
            self._alpha,
            1.0 - self._coupling,
        )

    def set_predictor_targets(self) -> None:
        """Aim at products of zero."""
        for pair, _ in self._block.pairs_with_weights:
            pair.set_predictor_targets()

    def set_corrector_targets(self, mu: float, largest: float) -> None:
        """Aim at mu, less the prediction's second-order term."""
        for pair, _ in self._block.pairs_with_weights:
            pair.set_corrector_targets(mu, largest)

    def right_side(self, seen_count: int) -> tuple[Floats, float]:
        """Minus the gradient after elimination: of each outcome's floor, and of |m|."""
        block = self._block
        growth, gradient, at_zero = block.growth, block.cost.gradient(), block.cost.at_zero
        self._slack = gradient + block.multiplier[block.client] - block.low.aim + block.high.aim
        self._rest_slack = at_zero + block.multiplier[block.open] - block.rest_low.aim + block.rest_high.aim
        slack_sum = block.sum_by_client(self._slack * self._inverse) + block.fill_zeros_for_full_support_clients(
            self._rest_slack * self._rest_inverse
        )
        self._shift = (self._residual - slack_sum) / self._looseness
        entries = gradient - growth * block.high.aim - self._coupling * self._slack
        entries += self._shift[block.client] * (1.0 - self._coupling) - (self._shift * self._alpha)[block.client]
        rest = block.fill_zeros_for_full_support_clients(
            at_zero - growth * block.rest_high.aim - self._rest_coupling * self._rest_slack
        )
        entries -= rest[block.client]
        total = float(np.sum(block.weight * (rest + block.multiplier + self._shift * self._alpha)))
        return -block.sum_by_outcome(block.entry_weight * entries, seen_count), -total

    def compute_client_steps(self, floor_step: Floats, total_step: float) -> tuple[float, float]:
        """The clients' steps for a step of the floor; how far primal and dual may go."""
        block = self._block
        support_step = floor_step[block.outcome]
        rest_step = total_step - block.sum_by_client(support_step)[block.open]
        pull = block.sum_by_client((1.0 - self._coupling) * support_step)
        pull[block.open] += self._alpha[block.open] * rest_step
        self._multiplier_step = self._shift + pull / self._looseness
        self._ceilings = block.growth * support_step, block.growth * rest_step
        step = -(self._slack + self._multiplier_step[block.client]) * self._inverse - self._coupling * support_step
        rest = -(self._rest_slack + self._multiplier_step[block.open]) * self._rest_inverse
        rest -= self._rest_coupling * rest_step
        limits = [
            block.low.set_slack_step(step),
            block.high.set_slack_step(self._ceilings[0] - step),
            block.rest_low.set_slack_step(rest),
            block.rest_high.set_slack_step(self._ceilings[1] - rest),
            block.cost.set_output_step(support_step + step),
        ]
        return min(limit[0] for limit in limits), min(limit[1] for limit in limits)

    def predicted_gap(self, primal: float, dual: float) -> float:
        """The weighted products of slacks and multipliers after predicted steps of these lengths."""
        return self._block.weighted_sum_over_pairs(lambda pair: pair.products(primal, dual))

    def predicted_gap_if_pairs_step_alone(self) -> float:
        """The same after whole steps of each output by itself."""
        return self._block.weighted_sum_over_pairs(lambda pair: pair.products_if_pairs_step_alone())

    @property
    def gap(self) -> float:
        """These products now."""
        return self._block.weighted_sum_over_pairs(lambda pair: pair.products())

    def take_step(self, primal: float, dual: float) -> None:
        """Take this much of the step, and clear it."""
        for pair, _ in self._block.pairs_with_weights:
            pair.take_step(primal, dual)
        self._block.multiplier += dual * self._multiplier_step

    def step_each_pair_alone(self, primal: float, total: float) -> None:
        """Move each output by itself, for this step of the floor and this |m|, and normalise each client's distribution."""
        block = self._block
        slacks = _slacks_after_stepping_alone(block.low, block.high, primal, self._ceilings[0])
        rest_slacks = _slacks_after_stepping_alone(block.rest_low, block.rest_high, primal, self._ceilings[1])
        missing = (
            1.0 - total - block.sum_by_client(slacks[0]) - block.fill_zeros_for_full_support_clients(rest_slacks[0])
        )
        room = block.sum_by_client(np.minimum(*slacks)) + block.fill_zeros_for_full_support_clients(
            np.minimum(*rest_slacks)
        )
        share = np.clip(missing / room, -MOST_RENORMALISED, MOST_RENORMALISED)
        for pairs, (low, high), shares in (
            ((block.low, block.high), slacks, share[block.client]),
            ((block.rest_low, block.rest_high), rest_slacks, share[block.open]),
        ):
            shift = shares * np.minimum(low, high)
            pairs[0].replace_slack_and_step_multiplier(low + shift)
            pairs[1].replace_slack_and_step_multiplier(high - shift)
        block.multiplier += self._multiplier_step


def _slacks_after_stepping_alone(
    low: SlackAndMultiplier, high: SlackAndMultiplier, primal: float, ceiling_step: Floats
) -> tuple[Floats, Floats]:
    """Both slacks after this step of the floor, each cut where little is left of it; the floor determines their sum."""
    share = LEAST_LEFT * np.minimum(1.0, 1.0 + primal * ceiling_step / (low.s + high.s))
    below, above = low.s + primal * low.ds, high.s + primal * high.ds
    min_low, min_high = share * low.s, share * high.s
    under, over, total = below < min_low, above < min_high, below + above
    return (
        np.where(under, min_low, np.where(over, total - min_high, below)),
        np.where(over, min_high, np.where(under, total - min_low, above)),
    )


_BLOCK = 1 << 16  # entries in one pass, which fit in the cache
_COMPILED_BLOCK = 1 << 15  # the same for compiled code
_ENTRY_SECONDS = 4e-6  # for an entry over all steps, without numba
_LIKE_CLIENTS = 0.9  # share of the first floor that follows the clients; the rest is uniform
_FIRST_MU, _CAUTIOUS_MU = 10.0, 30.0  # times the average product of slack and gradient at the start
_WORTH_SHARING = 4  # fewer blocks do not repay starting threads
_LONGEST = 0.999
_SHORTEST = 0.9
_LONG = 0.9  # a common step of this length is taken
_MINIMAX_STEPS = 100
_SADDLE = 1e-6  # its power 3/2 is the gap, relative to the largest cost, at which they end
_LEAST = 2.0**-30  # of Q*'s floor, at any outcome
_NEARLY = 1e-3  # gap relative to the value below which every step is a common one

NewtonSteps: TypeAlias = "PlainSteps | CompiledSteps"
One = TypeVar("One")
Result = TypeVar("Result")


@dataclass(frozen=True)
class FloorBounds:
    """The constraints on the floor: y >= least and |v| + (k - 1) y <= most."""

    least: float
    most: float


class InteriorPoint:
    """The state of the method: a floor m = y + v strictly inside the constraints, and its clients in blocks."""

    def __init__(
        self,
        examples: ExampleClients,
        epsilon: float,
        promise: FloorBounds,
        slope: float,
        cost: CostOf,
        *,
        cautious: bool = False,
    ) -> None:
        self.examples, self.size, self.seen = examples, examples.size, examples.seen_outcomes.size
        growth = math.expm1(epsilon)
        least_total = math.exp(-epsilon)
        mollifier_mass = math.exp(-epsilon / 2.0)  # |m| of the mollifier
        room = min(promise.most / (self.size - 1), 1.0 / self.size) - promise.least
        y = promise.least + min(max((mollifier_mass / self.size - promise.least) / 2.0, room / 10.0), room / 2.0)
        low = max(0.0, least_total - self.size * y)
        high = min(promise.most - (self.size - 1) * y, 1.0 - self.size * y)
        average = np.sum(
            [
                part.sum_by_outcome(part.mass * part.weight[part.client_of_entry])
                for part in examples.iterate_client_parts()
            ],
            axis=0,
        )
        spread = min(max(mollifier_mass - self.size * y, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        v = spread * (_LIKE_CLIENTS * average / average.sum() + (1.0 - _LIKE_CLIENTS) / self.seen)
        self.y, self.v = y, v
        self.bounds = SlackAndMultiplier(np.append(v, y - promise.least), np.zeros(self.seen + 1))
        self.cap = SlackAndMultiplier(np.array([promise.most - v.sum() - (self.size - 1) * y]), np.zeros(1))
        self._cap = np.append(np.ones(self.seen), self.size - 1.0)  # the capped functional of (v, y)
        is_compiled = should_use_compiled_code_by_work_alone(_ENTRY_SECONDS * examples.mass.size)
        entries = min(_COMPILED_BLOCK, examples.mass.size // processor_count() + 1) if is_compiled else _BLOCK
        self.blocks = [
            ClientBlock(examples, rows, self.floor, self.floor_mass, growth, slope)
            for rows in examples.slice_clients_by_entry_count(entries)
        ]
        self._together = cautious or bool(cost(self.v, self.v, 1.0, 1.0).pairs)  # an edge has slacks of its own
        mu = self._first_central_path_target(cost)
        for block in self.blocks:
            block.put_multipliers_on_central_path(self.floor, mu, cost)
        for pair in (self.bounds, self.cap):
            pair.put_multipliers_on_central_path(mu)
        self._all_steps = [_choose_newton_steps(block, is_compiled) for block in self.blocks]
        is_shared = len(self.blocks) >= (2 if is_compiled else _WORTH_SHARING)
        self._shares = processor_count() if is_shared else 1
        self._pool = ThreadPoolExecutor(self._shares) if self._shares > 1 else None
        self.number = self._sum_over_floor_pairs(lambda pair: pair.part * np.ones_like(pair.s))
        self.number += sum(
            block.weighted_sum_over_pairs(lambda pair: pair.part * np.ones_like(pair.s)) for block in self.blocks
        )

    @property
    def floor(self) -> Floats:
        """m of the seen outcomes; that of all others is y."""
        return np.asarray(self.y + self.v)

    @property
    def floor_mass(self) -> float:
        """|m|."""
        return float(self.v.sum()) + self.size * self.y

    @property
    def mean_cost(self) -> float:
        floor, total = self.floor, self.floor_mass
        return sum(self._map_in_threads(lambda block: block.weighted_cost(floor, total), self.blocks))

    @property
    def gap(self) -> float:
        """The products of slacks and multipliers: the distance from the optimum, once the gradients have settled."""
        return self._sum_over_floor_pairs(lambda pair: pair.products()) + sum(
            self._map_over_client_blocks(lambda steps: steps.gap)
        )

    def take_step(self, value: float) -> None:
        """One predictor and corrector step; `value` is the current value."""
        matrix, floor, total = NormalMatrix(self.size, self.seen, self._shares), self.floor, self.floor_mass

        def eliminate_variables_of_one_thread(number: int) -> None:
            for steps in self._all_steps[number :: self._shares]:
                steps.eliminate_client_variables(matrix.shares[number], floor, total)

        self._map_in_threads(eliminate_variables_of_one_thread, list(range(self._shares)))
        factors = matrix.factorise(self.bounds.stiffness, self._cap, float(self.cap.stiffness[0]))
        gap = self.gap
        average = gap / self.number
        primal, dual = (
            min(1.0, length) for length in self._solve_floor_step(factors, lambda pairs: pairs.set_predictor_targets())
        )
        if self._together or min(primal, dual) >= _LONG:
            predicted_gap = self._sum_over_floor_pairs(lambda pair: pair.products(primal, dual))
            predicted_gap += sum(self._map_over_client_blocks(lambda steps: steps.predicted_gap(primal, dual)))
        else:
            predicted_gap = self._sum_over_floor_pairs(lambda pair: pair.products_if_pairs_step_alone())
            predicted_gap += sum(self._map_over_client_blocks(lambda steps: steps.predicted_gap_if_pairs_step_alone()))
        mu = average * min(1.0, max(predicted_gap / gap, 0.01)) ** 3
        part = min(max(_SHORTEST, 1.0 - gap / max(abs(value), 1e-300)), _LONGEST)
        lengths = self._solve_floor_step(factors, lambda pairs: pairs.set_corrector_targets(mu, 2.0 * average))
        alone = not self._together and min(lengths) < _LONG and gap > _NEARLY * abs(value)
        if alone:
            (bound_primal, bound_dual), (cap_primal, cap_dual) = self.bounds.longest_steps, self.cap.longest_steps
            lengths = min(bound_primal, cap_primal), min(bound_dual, cap_dual)
        primal, dual = (min(1.0, part * length) for length in lengths)
        self.v += primal * self.bounds.ds[:-1]
        self.y += primal * float(self.bounds.ds[-1])
        for pair in (self.bounds, self.cap):
            pair.take_step(primal, dual)
        if alone:
            total = self.floor_mass
            self._map_over_client_blocks(lambda steps: steps.step_each_pair_alone(primal, total))
        else:
            self._map_over_client_blocks(lambda steps: steps.take_step(primal, dual))

    def _solve_floor_step(
        self, factored: FactoredMatrix, aim: Callable[[SlackAndMultiplier | NewtonSteps], None]
    ) -> tuple[float, float]:
        right = np.append(np.zeros(self.seen), 0.0)
        total = 0.0
        aim(self.bounds)
        aim(self.cap)

        def right_side_of_client_block(steps: NewtonSteps) -> tuple[Floats, float]:
            aim(steps)
            return steps.right_side(self.seen)

        for outcome_part, total_part in self._map_over_client_blocks(right_side_of_client_block):
            right[:-1] += outcome_part
            right[-1] += outcome_part.sum()
            total += total_part
        right += total * np.append(np.ones(self.seen), float(self.size))
        right += self.bounds.aim - self._cap * self.cap.aim
        solution = factored.solve(right)
        step, total_step = solution[:-1] + solution[-1], float(solution[:-1].sum() + self.size * solution[-1])
        limits = [
            self.bounds.set_slack_step(solution),
            self.cap.set_slack_step(-np.array([float(self._cap @ solution)])),
        ]
        limits += self._map_over_client_blocks(lambda steps: steps.compute_client_steps(step, total_step))
        return min(limit[0] for limit in limits), min(limit[1] for limit in limits)

    def _first_central_path_target(self, cost: CostOf) -> float:
        """A start from which the first steps are long: the average product of the clients' gradients and of the floor's."""
        products, entries, value = 0.0, 0.0, 0.0
        for block in self.blocks:
            q = self.floor[block.outcome] + block.low.s
            entry_cost = cost(block.p, q, 1e-3, 1.0)
            entry_cost.curvature_at(q)
            slack = np.abs(entry_cost.gradient_implied_by_multipliers() + block.multiplier[block.client])
            products += float(np.sum(block.entry_weight * slack * np.minimum(block.low.s, block.high.s)))
            entries += float(np.sum(block.entry_weight * np.ones_like(slack)))
            value += abs(float(np.sum(block.entry_weight * entry_cost.costs_at(q))))
        factor = _CAUTIOUS_MU if self._together else _FIRST_MU
        return max(factor * products / entries, value / (self.seen + 2.0 * entries), 1e-9)

    def _sum_over_floor_pairs(self, values: Callable[[SlackAndMultiplier], Floats]) -> float:
        return sum(float(np.sum(values(pair))) for pair in (self.bounds, self.cap))

    def _map_over_client_blocks(self, work: Callable[[NewtonSteps], Result]) -> list[Result]:
        return self._map_in_threads(work, self._all_steps)

    def _map_in_threads(self, work: Callable[[One], Result], items: list[One]) -> list[Result]:
        """The work on every block, in order; with several threads where that is faster."""
        return list(map(work, items)) if self._pool is None else list(self._pool.map(work, items))


def _choose_newton_steps(block: ClientBlock, compiled: bool) -> NewtonSteps:
    if not compiled:
        return PlainSteps(block)
    from discreet.design._compiled import CompiledSteps  # which imports numba

    return CompiledSteps(block)


class SmoothMinimax:
    """The interior point method: d_j in (0, (E - 1) m) and |m| + |d_j| = 1 for each client, and F_j + s_j = T with s_j w_j going to 0."""

    def __init__(self, laws: Floats, f: FDivergence, curve: ConvexCurve, epsilon: float) -> None:
        self.p, self.f, self.curve, self.growth = laws, f, curve, math.expm1(epsilon)
        n, k = laws.shape
        self.least = _LEAST / (self.growth + k)
        total = math.exp(-epsilon / 2.0)
        self.m = total * (laws.mean(axis=0) + 1.0 / k) / 2.0
        share = (1.0 - total) / total
        start = np.broadcast_to(self.m, (n, k))
        self.low, self.high = (
            SlackAndMultiplier(share * start, np.zeros((n, k))),
            SlackAndMultiplier((self.growth - share) * start, np.zeros((n, k))),
        )
        self.bound = SlackAndMultiplier(self.m - self.least, np.zeros(k))
        costs = self._client_costs()
        self.time = float(costs.max()) + 1.0
        self.slack = SlackAndMultiplier(self.time - costs, np.full(n, 1.0 / n))
        mu = float(np.mean(self.slack.products()))
        for pair in (self.low, self.high, self.bound):
            pair.z = mu / pair.s
        self.multiplier = np.full(n, curve.slope_at_one / n)

    @property
    def _slack_pairs(self) -> tuple[SlackAndMultiplier, ...]:
        return self.low, self.high, self.bound, self.slack

    @property
    def gap(self) -> float:
        return float(sum(pair.products().sum() for pair in self._slack_pairs))

    def solve_for_floor_and_weights(self) -> tuple[Floats, Floats]:
        """Step until the products and the residuals are negligible."""
        number = sum(pair.s.size for pair in self._slack_pairs)
        for _ in range(_MINIMAX_STEPS):
            costs = self._client_costs()
            residual = np.abs(costs + self.slack.s - self.time).max()
            if max(self.gap, residual) <= _SADDLE**1.5 * max(abs(self.time), 1e-6):
                break
            floor, weights = self.m, self.slack.z / self.slack.z.sum()
            try:
                self._take_step(costs, number)
            except np.linalg.LinAlgError:  # further progress is below rounding
                break
            if not self._is_finite:  # the step overflows, as it may for divergences that are steep at 0
                return floor, weights
        return self.m, self.slack.z / self.slack.z.sum()

    @property
    def _is_finite(self) -> bool:
        return all(np.isfinite(values).all() for pair in self._slack_pairs for values in (self.m, pair.s, pair.z))

    def _client_costs(self) -> Floats:
        return np.asarray(np.asarray(self.f.perspective(self.p, self.m + self.low.s)).sum(axis=1))

    def _take_step(self, costs: Floats, number: int) -> None:
        q, weight = self.m + self.low.s, self.slack.z[:, None]
        in_support = self.p > 0.0
        t = np.where(in_support, self.p, 1.0) / q
        self.first = np.where(
            in_support, self.curve.tangent_intercept(t), self.curve.at_zero if np.isfinite(self.curve.at_zero) else 0.0
        )
        bend = weight * np.where(in_support, self.curve.curvature_times_t_squared(t), 0.0) / q
        low, high, growth = self.low.stiffness, self.high.stiffness, self.growth
        self.inverse = 1.0 / (bend + low + high)
        self.coupling = (bend - growth * high) * self.inverse
        diagonal = (bend * (low + (1.0 + growth) ** 2 * high) + growth**2 * low * high) * self.inverse
        self.rows = 1.0 - self.coupling, (1.0 - self.coupling) * self.first
        a, b, c = ((self.inverse * power).sum(axis=1) for power in (1.0, self.first, np.square(self.first)))
        c = c + self.slack.s / self.slack.z
        determinant = a * c - b * b
        if not (determinant > 0.0).all():
            raise np.linalg.LinAlgError("a client's weight is lost in rounding")
        # the inverse of each client's own 2 by 2 system
        self.small = (c / determinant, -b / determinant, a / determinant)
        matrix = np.diag(np.append(diagonal.sum(axis=0) + self.bound.stiffness, 0.0))
        first, second = self.rows
        upper, cross, lower = self.small
        matrix[:-1, :-1] += first.T @ (upper[:, None] * first) + second.T @ (lower[:, None] * second)
        cross_products = first.T @ (cross[:, None] * second)
        matrix[:-1, :-1] += cross_products + cross_products.T
        matrix[:-1, -1] = matrix[-1, :-1] = -(first.T @ cross + second.T @ lower)
        matrix[-1, -1] = lower.sum()
        self.residuals = self.low.s.sum(axis=1) + self.m.sum() - 1.0, costs + self.slack.s - self.time
        gap = self.gap
        for pair in self._slack_pairs:
            pair.set_predictor_targets()
        primal, dual = (min(1.0, length) for length in self._solve_floor_step(matrix))
        predicted_gap = float(sum(pair.products(primal, dual).sum() for pair in self._slack_pairs))
        mu = gap / number * min(1.0, max(predicted_gap / gap, 0.01)) ** 3
        for pair in self._slack_pairs:
            pair.set_corrector_targets(mu, 2.0 * gap / number)
        primal, dual = (min(1.0, 0.99 * length) for length in self._solve_floor_step(matrix))
        length = min(primal, dual)
        self.m = self.m + length * self.bound.ds
        self.time += length * self.time_step
        self.multiplier = self.multiplier + length * self.multiplier_step
        for pair in self._slack_pairs:
            pair.take_step(length, length)

    def _solve_floor_step(self, matrix: Floats) -> tuple[float, float]:
        growth, weight = self.growth, self.slack.z
        gradient = weight[:, None] * self.first
        slack = gradient + self.multiplier[:, None] - self.low.aim + self.high.aim
        normal, cost = self.residuals
        normal_term = (slack * self.inverse).sum(axis=1) - normal
        cost_term = (
            (slack * self.first * self.inverse).sum(axis=1) - cost - (self.slack.aim - weight) * self.slack.s / weight
        )
        upper, cross, lower = self.small
        shift, weight_shift = upper * normal_term + cross * cost_term, cross * normal_term + lower * cost_term
        first, second = self.rows
        right = -(gradient - growth * self.high.aim - self.coupling * slack).sum(axis=0) - self.multiplier.sum()
        right += self.bound.aim + first.T @ shift + second.T @ weight_shift
        solution = _solve_scaled_system(matrix, np.append(right, weight.sum() - 1.0 - weight_shift.sum()))
        step, self.time_step = solution[:-1], float(solution[-1])
        pull, push = first @ step, second @ step - self.time_step
        self.multiplier_step = upper * pull + cross * push - shift
        weight_step = cross * pull + lower * push - weight_shift
        total_slack = slack + self.multiplier_step[:, None] + self.first * weight_step[:, None]
        d = -total_slack * self.inverse - self.coupling * step
        slack_step = (self.slack.aim - weight - weight_step) * self.slack.s / weight
        limits = [
            self.low.set_slack_step(d),
            self.high.set_slack_step(growth * step - d),
            self.bound.set_slack_step(step),
            self.slack.set_slack_step(slack_step),
        ]
        return min(limit[0] for limit in limits), min(limit[1] for limit in limits)


def _solve_scaled_system(matrix: Floats, right: Floats) -> Floats:
    diagonal = matrix.diagonal()
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("a pivot is lost in rounding")
    scale = 1.0 / np.sqrt(diagonal)
    scaled_matrix = matrix * scale * scale[:, None]
    scaled_matrix[np.diag_indices_from(scaled_matrix)] += 1e-14
    return np.asarray(np.linalg.solve(scaled_matrix, right * scale)) * scale
