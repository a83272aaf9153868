"""The best floor and its certificate: interior point steps until the two agree."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.design import _fit as fit
from discreet.design._certificate import Certificate
from discreet.design._costs import Cost, HingeCost, SmoothCost
from discreet.design._curves import Curve, curve_of, hinge
from discreet.design._examples import Examples, Floats
from discreet.design._floors import Floors
from discreet.design._interior import InteriorPoint, Promise
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError

Progress = Callable[[float], None]  # is told the share of the work that is done

TOLERANCE = 3e-5  # relative, between value and bound
ALLOWED = 1e-4
NEGLIGIBLE = 1e-10  # a gap of this size is none, however small the value
UNRESOLVED = 1e-7  # what e^eps times the rounding of floats may leave of a gap (epsilon past 12)
STEPS = 150
_STEPS_APART, _MOST_APART = 40, 1 << 17  # steps, after which a cautious way is the shorter one; entries of all clients
_SPENT = 1e-14  # products so small that further steps are noise
_LEAST_KEEP = 2.0**-30  # so that every outcome keeps a positive probability, at a cost that no table shows
_MOST_KEEP = 1.0 - 2.0**-24  # past it only the floor of Q* is left


@dataclass(frozen=True, eq=False)
class Found:
    """A floor on the domain, what it gives the clients on average, and what nobody can better."""

    floor: Floats
    value: float
    bound: float
    certificate: Certificate


@dataclass(frozen=True)
class Objective:
    """f as the solver takes it: a smooth curve, or an edge at gamma, where `constant` was left out of every client's cost."""

    f: FDivergence
    curve: Curve | None
    gamma: float
    constant: float

    @classmethod
    def of(cls, f: FDivergence) -> "Objective":
        gamma = hinge(f)
        if gamma is None:
            return cls(f, curve_of(f), 0.0, 0.0)
        return cls(f, None, gamma, -max(1.0 - gamma, 0.0))

    @property
    def slope_at_one(self) -> float:
        return self.gamma / 2.0 if self.curve is None else self.curve.slope_at_one

    def cost(self, p: Floats, q: Floats, mu: float, part: Floats | float) -> Cost:
        return HingeCost(p, q, self.gamma, mu, part) if self.curve is None else SmoothCost(p, self.curve)


def best_floor(
    examples: Examples, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> Found:
    """The floor with the least mean divergence over the examples, among those that keep so much of the best worst case."""
    tried: list[Found] = []
    # an edge knows one way of going, and among very many clients a few are left behind by steps apart, whom common ones must wait for
    only_cautious = hinge(f) is not None or examples.mass.size > _MOST_APART
    for cautious in (True,) if only_cautious else (False, True):
        led = _settled(examples, f, epsilon, keep, progress, cautious=cautious)
        if led is None:
            continue
        tried.append(led)
        found = min(tried, key=lambda one: one.value)
        proof = max(tried, key=lambda one: one.bound)  # which is about the examples, and not about a floor
        found = Found(found.floor, found.value, proof.bound, proof.certificate)
        if found.value - found.bound <= max(ALLOWED * found.value, UNRESOLVED):
            return found
    reached = f"its mean is {found.value:.8g}, the certified bound {found.bound:.8g}; " if tried else ""
    raise DiscreetError(
        f"the design did not settle: {reached}report this with the examples, or try another epsilon than {epsilon:g}"
    )


def _settled(
    examples: Examples, f: FDivergence, epsilon: float, keep: float, progress: Progress | None, *, cautious: bool
) -> Found | None:
    """A floor and the best of its certificates, once the two agree or no step is left; None where steps led past what floats can hold."""
    size, ratio, objective = examples.size, math.exp(epsilon), Objective.of(f)
    held_to = min(max(keep, _LEAST_KEEP), _MOST_KEEP)
    promise = Promise(held_to / (ratio + size - 1), 1.0 - held_to / (1.0 + (size - 1) / ratio))
    point = InteriorPoint(examples, epsilon, promise, objective.slope_at_one, objective.cost, cautious=cautious)
    floors = Floors(size, epsilon, keep)
    proofs: list[tuple[float, Certificate]] = []
    spent, first = False, point.gap
    for _ in range(STEPS if cautious else _STEPS_APART):
        value, gap = point.value + objective.constant, point.gap
        if not math.isfinite(value + gap):
            return None
        if progress is not None:
            progress(_share_done(first, gap, max(TOLERANCE * value, NEGLIGIBLE)))
        spent |= gap <= _SPENT * value
        if spent or gap <= max(TOLERANCE * value, NEGLIGIBLE):
            found = certificate_of(point, objective, floors)
            proofs = [max([*proofs, (found.lower_bound(), found)], key=lambda one: one[0])]
            if spent or value - max(proofs[0][0], 0.0) <= max(TOLERANCE * value, NEGLIGIBLE):
                break
        try:
            point.step(value)
        except np.linalg.LinAlgError:  # nothing is left to gain that floats can tell
            spent = True
    if not proofs:
        found = certificate_of(point, objective, floors)
        proofs = [(found.lower_bound(), found)]
    bound, certificate = max(proofs[0][0], 0.0), proofs[0][1]  # no divergence is negative
    floor = np.full(size, 1.0 / (ratio + size - 1)) if keep > _MOST_KEEP else examples.spread_out(point.floor, point.y)
    del point  # what it holds is many times the examples
    return Found(floor, mean_divergence(examples, f, floor, ratio), bound, certificate)


def _share_done(first: float, gap: float, last: float) -> float:
    """How far the gap has come from the first to the last one, on a logarithmic scale, on which steps are about equally long."""
    return min(max(math.log(first / max(gap, 1e-300)) / math.log(first / min(last, 0.5 * first)), 0.0), 1.0)


def mean_divergence(examples: Examples, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The mean over the examples of what a floor gives them."""
    found = fit.divergences(examples, f, floor[examples.seen], float(floor.sum()), ratio)
    return max(0.0, float(np.sum(examples.weight * found)))


def certificate_of(point: InteriorPoint, objective: Objective, floors: Floors) -> Certificate:
    """The lines that touch f where the floor and the multipliers serve the clients, and those multipliers."""
    examples = point.examples
    slope, intercept = np.empty(examples.mass.size), np.empty(examples.mass.size)
    ratio = math.exp(floors.epsilon)
    for block in point.blocks:
        floor = point.floor[block.outcome]
        slope[block.entries], intercept[block.entries] = block.cost.lines(
            -block.multiplier[block.client], floor, floor + block.low.s, ratio * floor
        )
    multiplier = np.concatenate([block.multiplier for block in point.blocks])
    return Certificate(
        examples,
        floors,
        multiplier,
        slope,
        intercept,
        point.blocks[0].cost.at_zero,
        objective.f.name,
        objective.constant,
    )
