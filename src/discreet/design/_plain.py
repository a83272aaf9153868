"""A Newton step of one block of clients in numpy: the entries are eliminated, which are on a diagonal, then the normalisation."""

import numpy as np

from discreet.design._blocks import ClientBlock
from discreet.design._costs import LEAST_LEFT, MOST_RENORMALISED, SlackPair
from discreet.design._examples import Floats
from discreet.design._normal import MatrixShare


class PlainSteps:
    """The steps of one block."""

    def __init__(self, block: ClientBlock) -> None:
        self._block = block

    def eliminate(self, share: MatrixShare, floor: Floats, total: float) -> None:
        block = self._block
        growth, bend = block.growth, block.cost.look(floor[block.outcome] + block.low.s)
        low, high, rest_low, rest_high = (
            pair.stiffness for pair in (block.low, block.high, block.rest_low, block.rest_high)
        )
        self._inverse = 1.0 / (bend + low + high)
        self._coupling = (bend - growth * high) * self._inverse
        self._rest_inverse = 1.0 / (rest_low + rest_high)
        self._rest_coupling = -growth * rest_high * self._rest_inverse
        diagonal = (bend * (low + (1.0 + growth) ** 2 * high) + growth**2 * low * high) * self._inverse
        rest = block.for_all_clients(growth**2 * rest_low * rest_high * self._rest_inverse)
        self._looseness = block.by_client(self._inverse) + block.for_all_clients(self._rest_inverse)
        self._alpha = 1.0 - block.for_all_clients(self._rest_coupling)
        self._residual = block.by_client(block.low.s) + block.for_all_clients(block.rest_low.s) + total - 1.0
        share.add(
            block.starts,
            block.outcome,
            block.entry_weight * diagonal,
            block.weight * rest,
            block.weight / self._looseness,
            self._alpha,
            1.0 - self._coupling,
        )

    def predict(self) -> None:
        for pair, _ in self._block.pairs:
            pair.predict()

    def correct(self, mu: float, largest: float) -> None:
        for pair, _ in self._block.pairs:
            pair.correct(mu, largest)

    def right_side(self, seen: int) -> tuple[Floats, float]:
        block = self._block
        growth, gradient, at_zero = block.growth, block.cost.gradient(), block.cost.at_zero
        self._slack = gradient + block.multiplier[block.client] - block.low.aim + block.high.aim
        self._rest_slack = at_zero + block.multiplier[block.open] - block.rest_low.aim + block.rest_high.aim
        moved = block.by_client(self._slack * self._inverse) + block.for_all_clients(
            self._rest_slack * self._rest_inverse
        )
        self._shift = (self._residual - moved) / self._looseness
        entries = gradient - growth * block.high.aim - self._coupling * self._slack
        entries += self._shift[block.client] * (1.0 - self._coupling) - (self._shift * self._alpha)[block.client]
        rest = block.for_all_clients(at_zero - growth * block.rest_high.aim - self._rest_coupling * self._rest_slack)
        entries -= rest[block.client]
        whole = float(np.sum(block.weight * (rest + block.multiplier + self._shift * self._alpha)))
        return -block.by_outcome(block.entry_weight * entries, seen), -whole

    def follow(self, floor_step: Floats, total_step: float) -> tuple[float, float]:
        block = self._block
        held_step = floor_step[block.outcome]
        rest_step = total_step - block.by_client(held_step)[block.open]
        pull = block.by_client((1.0 - self._coupling) * held_step)
        pull[block.open] += self._alpha[block.open] * rest_step
        self._multiplier_step = self._shift + pull / self._looseness
        self._ceilings = block.growth * held_step, block.growth * rest_step
        step = -(self._slack + self._multiplier_step[block.client]) * self._inverse - self._coupling * held_step
        rest = -(self._rest_slack + self._multiplier_step[block.open]) * self._rest_inverse
        rest -= self._rest_coupling * rest_step
        limits = [
            block.low.follow(step),
            block.high.follow(self._ceilings[0] - step),
            block.rest_low.follow(rest),
            block.rest_high.follow(self._ceilings[1] - rest),
            block.cost.follow(held_step + step),
        ]
        return min(one[0] for one in limits), min(one[1] for one in limits)

    def predicted_gap(self, primal: float, dual: float) -> float:
        return self._block.weighted_sum(lambda pair: pair.products(primal, dual))

    def predicted_gap_apart(self) -> float:
        return self._block.weighted_sum(lambda pair: pair.apart())

    @property
    def gap(self) -> float:
        return self._block.weighted_sum(lambda pair: pair.products())

    def move(self, primal: float, dual: float) -> None:
        for pair, _ in self._block.pairs:
            pair.move(primal, dual)
        self._block.multiplier += dual * self._multiplier_step

    def move_apart(self, primal: float, total: float) -> None:
        block = self._block
        held = _slacks_moved_apart(block.low, block.high, primal, self._ceilings[0])
        rest = _slacks_moved_apart(block.rest_low, block.rest_high, primal, self._ceilings[1])
        missing = 1.0 - total - block.by_client(held[0]) - block.for_all_clients(rest[0])
        room = block.by_client(np.minimum(*held)) + block.for_all_clients(np.minimum(*rest))
        share = np.clip(missing / room, -MOST_RENORMALISED, MOST_RENORMALISED)
        for pairs, (low, high), each in (
            ((block.low, block.high), held, share[block.client]),
            ((block.rest_low, block.rest_high), rest, share[block.open]),
        ):
            moved = each * np.minimum(low, high)
            pairs[0].move_apart(low + moved)
            pairs[1].move_apart(high - moved)
        block.multiplier += self._multiplier_step


def _slacks_moved_apart(low: SlackPair, high: SlackPair, primal: float, ceiling_step: Floats) -> tuple[Floats, Floats]:
    """Both slacks after the floor has gone so far, each cut where little is left of it; their sum is what the floor says."""
    shrunk = LEAST_LEFT * np.minimum(1.0, 1.0 + primal * ceiling_step / (low.s + high.s))
    below, above = low.s + primal * low.ds, high.s + primal * high.ds
    least, most = shrunk * low.s, shrunk * high.s
    under, over, both = below < least, above < most, below + above
    return (
        np.where(under, least, np.where(over, both - most, below)),
        np.where(over, most, np.where(under, both - least, above)),
    )
