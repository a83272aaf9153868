"""Numba kernels of the interior point method: Newton steps of a block of clients, and the squares of the normal matrix.

A step makes one pass over the clients where the numpy version in `discreet.design._interior` makes a dozen. The two agree up to the rounding
of sums. No result depends on that: the bound is computed from the multipliers, and the value from the floor, however they were found.
"""

from typing import Any, NamedTuple

import numpy as np

from discreet._base.kernels import kernel
from discreet.design._floors import Floats
from discreet.design._newton import (
    LEAST_FORESEEN,
    LEAST_LEFT,
    MOST_RENORMALISED,
    OWN_SHARE,
    ClientBlock,
    MatrixShare,
    SlackAndMultiplier,
)


class _Slacks(NamedTuple):
    """The two opposite pairs of each output: above the floor, and below e^eps times the floor."""

    low: Floats
    low_z: Floats
    high: Floats
    high_z: Floats
    low_aim: Floats
    high_aim: Floats
    inverse: Floats
    coupling: Floats
    step: Floats  # of low; that of high is the ceiling's less it


class _State(NamedTuple):
    """A block in the form of the compiled functions. `rest_index` numbers the clients that leave outcomes out; -1 for the others."""

    growth: float
    at_zero: float
    starts: Any
    outcome: Any
    rest_index: Any
    weight: Floats
    part: Floats
    entry_slacks: _Slacks
    rest: _Slacks
    looseness: Floats
    alpha: Floats
    residual: Floats
    shift: Floats
    multiplier: Floats
    multiplier_step: Floats
    rest_step: Floats  # of the floor on the outcomes that each client leaves out


@kernel(error_model="numpy", nogil=True)
def _stiffness_of_both_pairs(slacks: Any, index: Any) -> tuple[float, float]:
    """z/s of both pairs, by one division."""
    low, high = slacks.low[index], slacks.high[index]
    inverse = 1.0 / (low * high)
    return slacks.low_z[index] * high * inverse, slacks.high_z[index] * low * inverse


@kernel(error_model="numpy", nogil=True)
def _eliminate_client_variables(state: Any, total: float, bend: Any, diagonal: Any, rest: Any) -> None:
    growth, entries, rests = state.growth, state.entry_slacks, state.rest
    growth_square, ratio_square = growth * growth, (1.0 + growth) * (1.0 + growth)
    for client in range(rest.size):
        looseness, mass = 0.0, 0.0
        for entry in range(state.starts[client], state.starts[client + 1]):
            low, high = _stiffness_of_both_pairs(entries, entry)
            curvature = bend[entry]
            inverse = 1.0 / (curvature + low + high)
            entries.inverse[entry] = inverse
            entries.coupling[entry] = (curvature - growth * high) * inverse
            diagonal[entry] = (
                state.weight[client] * (curvature * (low + ratio_square * high) + growth_square * low * high) * inverse
            )
            looseness += inverse
            mass += entries.low[entry]
        index = state.rest_index[client]
        rest[client], state.alpha[client] = 0.0, 1.0
        if index >= 0:
            low, high = _stiffness_of_both_pairs(rests, index)
            inverse = 1.0 / (low + high)
            rests.inverse[index] = inverse
            rests.coupling[index] = -growth * high * inverse
            rest[client] = state.weight[client] * growth_square * low * high * inverse
            looseness += inverse
            mass += rests.low[index]
            state.alpha[client] = 1.0 - rests.coupling[index]
        state.looseness[client] = looseness
        state.residual[client] = mass + total - 1.0


@kernel(error_model="numpy", nogil=True)
def _add_clients_to_right_side(state: Any, gradient: Any, out: Any) -> float:
    """Add to the right side of each outcome; that of |m| is returned."""
    growth, entries, rests = state.growth, state.entry_slacks, state.rest
    total = 0.0
    for client in range(state.weight.size):
        multiplier, weight = state.multiplier[client], state.weight[client]
        slack_sum, rest_gradient = 0.0, 0.0
        for entry in range(state.starts[client], state.starts[client + 1]):
            slack_sum += (
                gradient[entry] + multiplier - entries.low_aim[entry] + entries.high_aim[entry]
            ) * entries.inverse[entry]
        index = state.rest_index[client]
        if index >= 0:
            aim = rests.high_aim[index]
            slack = state.at_zero + multiplier - rests.low_aim[index] + aim
            slack_sum += slack * rests.inverse[index]
            rest_gradient = state.at_zero - growth * aim - rests.coupling[index] * slack
        shift = (state.residual[client] - slack_sum) / state.looseness[client]
        state.shift[client] = shift
        pull = shift * state.alpha[client]
        for entry in range(state.starts[client], state.starts[client + 1]):
            aim = entries.high_aim[entry]
            slack = gradient[entry] + multiplier - entries.low_aim[entry] + aim
            entry_gradient = gradient[entry] - growth * aim - entries.coupling[entry] * (slack + shift)
            out[state.outcome[entry]] -= weight * (entry_gradient + (shift - pull) - rest_gradient)
        total -= weight * (rest_gradient + multiplier + pull)
    return total


@kernel(error_model="numpy", nogil=True)
def _store_step_of_output(
    slacks: Any, index: Any, step: float, ceiling_step: float
) -> tuple[float, float, float, float, float]:
    """Store the step of an output; returns how fast slacks and multipliers shrink, and the first- and second-order terms of their products.

    The last value is their products after whole steps of each by itself (`SlackAndMultiplier.products_if_pairs_step_alone`).
    """
    slacks.step[index] = step
    high_step = ceiling_step - step
    below, above = _stiffness_of_both_pairs(slacks, index)
    low_z, high_z = slacks.low_z[index], slacks.high_z[index]
    low_slope, high_slope = below * step, above * high_step
    inverse = 1.0 / (low_z * high_z)
    low_dz = slacks.low_aim[index] - low_z - low_slope
    high_dz = slacks.high_aim[index] - high_z - high_slope
    primal = max(-low_slope * high_z * inverse, -high_slope * low_z * inverse)
    dual = max(-low_dz * high_z * inverse, -high_dz * low_z * inverse)
    low, high = slacks.low[index], slacks.high[index]
    alone_products = max(low + step, LEAST_FORESEEN * low) * max(low_z + low_dz, LEAST_FORESEEN * low_z)
    alone_products += max(high + high_step, LEAST_FORESEEN * high) * max(high_z + high_dz, LEAST_FORESEEN * high_z)
    return primal, dual, low_z * step + high_z * high_step, low_slope * step + high_slope * high_step, alone_products


@kernel(error_model="numpy", nogil=True)
def _compute_client_steps(
    state: Any, gradient: Any, floor_step: Any, total_step: float
) -> tuple[float, float, float, float, float]:
    """Store the clients' steps; returns how fast primal and dual shrink at most, and the sums that `_store_step_of_output` gives."""
    growth, entries, rests = state.growth, state.entry_slacks, state.rest
    fastest, fastest_dual, first, second, alone_products = 0.0, 0.0, 0.0, 0.0, 0.0
    for client in range(state.weight.size):
        weight, multiplier = state.weight[client], state.multiplier[client]
        pull, support_step = 0.0, 0.0
        for entry in range(state.starts[client], state.starts[client + 1]):
            outcome_step = floor_step[state.outcome[entry]]
            support_step += outcome_step
            pull += (1.0 - entries.coupling[entry]) * outcome_step
        rest_step = total_step - support_step
        state.rest_step[client] = rest_step
        index = state.rest_index[client]
        if index >= 0:
            pull += state.alpha[client] * rest_step
        change = state.shift[client] + pull / state.looseness[client]
        state.multiplier_step[client] = change
        for entry in range(state.starts[client], state.starts[client + 1]):
            outcome_step = floor_step[state.outcome[entry]]
            slack = gradient[entry] + multiplier - entries.low_aim[entry] + entries.high_aim[entry]
            step = -(slack + change) * entries.inverse[entry] - entries.coupling[entry] * outcome_step
            primal, dual, linear, square, alone = _store_step_of_output(entries, entry, step, growth * outcome_step)
            fastest, fastest_dual = max(fastest, primal), max(fastest_dual, dual)
            first += weight * linear
            second += weight * square
            alone_products += weight * alone
        if index >= 0:
            slack = state.at_zero + multiplier - rests.low_aim[index] + rests.high_aim[index]
            step = -(slack + change) * rests.inverse[index] - rests.coupling[index] * rest_step
            primal, dual, linear, square, alone = _store_step_of_output(rests, index, step, growth * rest_step)
            fastest, fastest_dual = max(fastest, primal), max(fastest_dual, dual)
            first += weight * linear
            second += weight * square
            alone_products += weight * alone
    return fastest, fastest_dual, first, second, alone_products


@kernel(error_model="numpy", nogil=True)
def _set_corrector_targets_of_output(slacks: Any, index: Any, ceiling_step: float, mu: float, most: float) -> None:
    """`SlackAndMultiplier.set_corrector_targets` of both pairs of an output."""
    step = slacks.step[index]
    high_step = ceiling_step - step
    low, high = slacks.low[index], slacks.high[index]
    inverse = 1.0 / (low * high)
    low_dz = -slacks.low_z[index] - slacks.low_z[index] * high * inverse * step
    high_dz = -slacks.high_z[index] - slacks.high_z[index] * low * inverse * high_step
    low_most, high_most = most + OWN_SHARE * low * slacks.low_z[index], most + OWN_SHARE * high * slacks.high_z[index]
    slacks.low_aim[index] = min(max(mu - step * low_dz, 0.01 * mu), low_most) * high * inverse
    slacks.high_aim[index] = min(max(mu - high_step * high_dz, 0.01 * mu), high_most) * low * inverse


@kernel(error_model="numpy", nogil=True)
def _set_corrector_targets_of_block(state: Any, floor_step: Any, mu: float, largest: float) -> None:
    for client in range(state.weight.size):
        target, most = mu * state.part[client], (mu + largest) * state.part[client]
        for entry in range(state.starts[client], state.starts[client + 1]):
            _set_corrector_targets_of_output(
                state.entry_slacks, entry, state.growth * floor_step[state.outcome[entry]], target, most
            )
        if state.rest_index[client] >= 0:
            _set_corrector_targets_of_output(
                state.rest, state.rest_index[client], state.growth * state.rest_step[client], target, most
            )


@kernel(error_model="numpy", nogil=True)
def _take_step_of_output(slacks: Any, index: Any, ceiling_step: float, primal: float, dual: float) -> float:
    """Take this much of the step and clear it; returns the sum of the products after it."""
    step = slacks.step[index]
    high_step = ceiling_step - step
    below, above = _stiffness_of_both_pairs(slacks, index)
    low_z = slacks.low_z[index] + dual * (slacks.low_aim[index] - slacks.low_z[index] - below * step)
    high_z = slacks.high_z[index] + dual * (slacks.high_aim[index] - slacks.high_z[index] - above * high_step)
    low, high = slacks.low[index] + primal * step, slacks.high[index] + primal * high_step
    slacks.low[index], slacks.high[index] = low, high
    slacks.low_z[index], slacks.high_z[index] = low_z, high_z
    slacks.low_aim[index] = slacks.high_aim[index] = 0.0
    return float(low * low_z + high * high_z)


@kernel(error_model="numpy", nogil=True)
def _take_step_of_block(state: Any, floor_step: Any, primal: float, dual: float) -> float:
    """Take this much of the step; returns the weighted products after it."""
    gap = 0.0
    for client in range(state.weight.size):
        products = 0.0
        for entry in range(state.starts[client], state.starts[client + 1]):
            ceiling = state.growth * floor_step[state.outcome[entry]]
            products += _take_step_of_output(state.entry_slacks, entry, ceiling, primal, dual)
        index = state.rest_index[client]
        if index >= 0:
            products += _take_step_of_output(state.rest, index, state.growth * state.rest_step[client], primal, dual)
        gap += state.weight[client] * products
        state.multiplier[client] += dual * state.multiplier_step[client]
    return gap


@kernel(error_model="numpy", nogil=True)
def _step_output_alone(slacks: Any, index: Any, ceiling_step: float, primal: float) -> None:
    """As `_slacks_after_stepping_alone` in `discreet.design._interior`, with the multipliers' steps; a step is cut where little is left."""
    step = slacks.step[index]
    high_step = ceiling_step - step
    below, above = _stiffness_of_both_pairs(slacks, index)
    low, high = slacks.low[index], slacks.high[index]
    low_z, high_z = slacks.low_z[index], slacks.high_z[index]
    slacks.low_z[index] = max(slacks.low_aim[index] - below * step, LEAST_LEFT * low_z)
    slacks.high_z[index] = max(slacks.high_aim[index] - above * high_step, LEAST_LEFT * high_z)
    slacks.low_aim[index] = slacks.high_aim[index] = 0.0
    share = LEAST_LEFT * min(1.0, 1.0 + primal * ceiling_step / (low + high))
    new_low, new_high, min_low, min_high = (low + primal * step, high + primal * high_step, share * low, share * high)
    total = new_low + new_high
    if new_low < min_low:
        new_low, new_high = min_low, total - min_low
    elif new_high < min_high:
        new_low, new_high = total - min_high, min_high
    slacks.low[index], slacks.high[index] = new_low, new_high


@kernel(error_model="numpy", nogil=True)
def _shift_output_by_share_of_room(slacks: Any, index: Any, share: float) -> float:
    """Move an output by a share of the room to its nearer bound; returns the sum of its products after it."""
    shift = share * min(slacks.low[index], slacks.high[index])
    slacks.low[index] += shift
    slacks.high[index] -= shift
    return float(slacks.low[index] * slacks.low_z[index] + slacks.high[index] * slacks.high_z[index])


@kernel(error_model="numpy", nogil=True)
def _step_each_output_alone(state: Any, floor_step: Any, primal: float, total: float) -> float:
    """Move every output by itself, then normalise each client's distribution; returns the weighted products after it."""
    gap, entries, rests = 0.0, state.entry_slacks, state.rest
    for client in range(state.weight.size):
        missing, room, products = 1.0 - total, 0.0, 0.0
        for entry in range(state.starts[client], state.starts[client + 1]):
            _step_output_alone(entries, entry, state.growth * floor_step[state.outcome[entry]], primal)
            missing -= entries.low[entry]
            room += min(entries.low[entry], entries.high[entry])
        index = state.rest_index[client]
        if index >= 0:
            _step_output_alone(rests, index, state.growth * state.rest_step[client], primal)
            missing -= rests.low[index]
            room += min(rests.low[index], rests.high[index])
        share = min(max(missing / room, -MOST_RENORMALISED), MOST_RENORMALISED)
        for entry in range(state.starts[client], state.starts[client + 1]):
            products += _shift_output_by_share_of_room(entries, entry, share)
        if index >= 0:
            products += _shift_output_by_share_of_room(rests, index, share)
        gap += state.weight[client] * products
        state.multiplier[client] += state.multiplier_step[client]
    return gap


class CompiledSteps:
    """The steps of one block."""

    def __init__(self, block: ClientBlock) -> None:
        self._block = block
        number = block.weight.size
        index = np.full(number, -1, dtype=np.int64)
        index[block.open] = np.arange(block.open.size)
        self._state = _State(
            block.growth,
            block.cost.at_zero,
            np.append(block.starts, block.outcome.size).astype(
                np.uintp
            ),  # unsigned, so that no index is tested for being negative
            block.outcome.view(np.uint32),
            index,
            block.weight,
            block.part,
            _make_slacks(block.low, block.high),
            _make_slacks(block.rest_low, block.rest_high),
            looseness=np.empty(number),
            alpha=np.empty(number),
            residual=np.empty(number),
            shift=np.empty(number),
            multiplier=block.multiplier,
            multiplier_step=np.empty(number),
            rest_step=np.empty(number),
        )
        self._products = block.weighted_sum_over_pairs(
            lambda pair: pair.products()
        ) - self._weighted_products_of_cost_pairs(0.0, 0.0)

    def eliminate_client_variables(self, share: MatrixShare, floor: Floats, total: float) -> None:
        block, state = self._block, self._state
        bend = block.cost.curvature_at(floor[block.outcome] + block.low.s)
        diagonal, rest = np.empty(bend.size), np.empty(block.weight.size)
        _eliminate_client_variables(state, total, bend, diagonal, rest)
        pull = 1.0 - state.entry_slacks.coupling
        share.add_clients(
            block.starts, block.outcome, diagonal, rest, block.weight / state.looseness, state.alpha, pull
        )

    def set_predictor_targets(self) -> None:
        for pair in self._block.cost.pairs:
            pair.set_predictor_targets()

    def set_corrector_targets(self, mu: float, largest: float) -> None:
        _set_corrector_targets_of_block(self._state, self._floor_step, mu, largest)
        for pair in self._block.cost.pairs:
            pair.set_corrector_targets(mu, largest)

    def right_side(self, seen_count: int) -> tuple[Floats, float]:
        out = np.zeros(seen_count)
        self._gradient = self._block.cost.gradient()
        return out, _add_clients_to_right_side(self._state, self._gradient, out)

    def compute_client_steps(self, floor_step: Floats, total_step: float) -> tuple[float, float]:
        self._floor_step = floor_step
        *speeds, first, second, alone = _compute_client_steps(self._state, self._gradient, floor_step, total_step)
        self._terms, self._apart = (first, second), alone
        limits = [1.0 / fastest if fastest > 0.0 else np.inf for fastest in speeds]
        cost = self._block.cost
        if not cost.pairs:
            return limits[0], limits[1]
        cost_limits = cost.set_output_step(floor_step[self._block.outcome] + self._state.entry_slacks.step)
        return min(limits[0], cost_limits[0]), min(limits[1], cost_limits[1])

    def predicted_gap(self, primal: float, dual: float) -> float:
        # s dz = -s z - z ds where the product aims at zero
        first, second = self._terms
        gap = self._products + primal * first - dual * (self._products + first) - primal * dual * (first + second)
        return gap + self._weighted_products_of_cost_pairs(primal, dual)

    def predicted_gap_if_pairs_step_alone(self) -> float:
        return self._apart

    @property
    def gap(self) -> float:
        return self._products + self._weighted_products_of_cost_pairs(0.0, 0.0)

    def _weighted_products_of_cost_pairs(self, primal: float, dual: float) -> float:
        weight = self._block.entry_weight
        return sum(float(np.sum(weight * pair.products(primal, dual))) for pair in self._block.cost.pairs)

    def take_step(self, primal: float, dual: float) -> None:
        self._products = _take_step_of_block(self._state, self._floor_step, primal, dual)
        for pair in self._block.cost.pairs:
            pair.take_step(primal, dual)

    def step_each_pair_alone(self, primal: float, total: float) -> None:
        self._products = _step_each_output_alone(self._state, self._floor_step, primal, total)


def _make_slacks(low: SlackAndMultiplier, high: SlackAndMultiplier) -> _Slacks:
    return _Slacks(low.s, low.z, high.s, high.z, *np.zeros((2, low.s.size)), *np.empty((3, low.s.size)))


@kernel(error_model="numpy", nogil=True)
def add_client_outer_products(
    out: Any, cross: Any, ends: Any, outcome: Any, rest: Any, rank: Any, alpha: Any, pull: Any
) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' in the lower triangle, with b = alpha - pull; a client's outcomes are in order.

    cross += sum_j (rest_j + rank_j alpha_j b_j) 1_j.
    """
    longest = np.uintp(0)
    for client in range(rest.size):
        longest = max(longest, ends[client + 1] - ends[client])
    beta = np.empty(longest)
    for client in range(rest.size):
        start, size = ends[client], ends[client + 1] - ends[client]
        crossing, client_rest = rank[client] * alpha[client], rest[client]
        for entry in range(size):
            b = alpha[client] - pull[start + entry]
            beta[entry] = b
            x = outcome[start + entry]
            cross[x] += client_rest + crossing * b
            scaled_b = rank[client] * b
            row = out[x]
            for earlier in range(entry + np.uintp(1)):
                row[outcome[start + earlier]] += client_rest + scaled_b * beta[earlier]
