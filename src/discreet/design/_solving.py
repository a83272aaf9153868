"""The best floor and its certificate: interior point steps until the two agree, and linear programmes where they do not."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.design import _cuts as cuts
from discreet.design import _fit as fit
from discreet.design._certificate import DesignCertificate
from discreet.design._costs import EntryCost, HingeCost, SmoothCost
from discreet.design._curves import ConvexCurve, Edge, curve_of, hinge
from discreet.design._examples import ExampleClients, Floats
from discreet.design._floors import AllowedFloors
from discreet.design._interior import FloorBounds, InteriorPoint
from discreet.divergences import FDivergence

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
_PATIENCE = 5  # programmes in a row that narrow a bracket by less than a tenth
_COUNTED = 1e-7  # a client's weight, against the largest, below which it is left out of a certificate


@dataclass(frozen=True, eq=False)
class FloorBracket:
    """A floor on the domain, what it costs the clients, and a lower bound on what any sampler costs them."""

    floor: Floats
    value: float
    bound: float
    certificate: DesignCertificate

    @property
    def is_settled(self) -> bool:
        """Whether value and bound agree as closely as a design promises."""
        return self.value - self.bound <= max(ALLOWED * self.value, UNRESOLVED)

    def best_of_both(self, other: "FloorBracket") -> "FloorBracket":
        """The better floor of the two with the better bound; both are about the same clients."""
        found, proof = min((self, other), key=lambda one: one.value), max((self, other), key=lambda one: one.bound)
        return FloorBracket(found.floor, found.value, proof.bound, proof.certificate)


@dataclass(frozen=True)
class Objective:
    """f as the solvers take it: a curve, its edge at gamma if it has one, and `constant`, which was left out of every client's cost."""

    f: FDivergence
    curve: ConvexCurve
    gamma: float | None
    constant: float

    @classmethod
    def of(cls, f: FDivergence) -> "Objective":
        gamma = hinge(f)
        if gamma is None:
            return cls(f, curve_of(f), None, 0.0)
        return cls(f, Edge(gamma), gamma, -max(1.0 - gamma, 0.0))

    @property
    def slope_at_one(self) -> float:
        """Where the multipliers of the interior point method start."""
        return self.curve.slope_at_one if self.gamma is None else self.gamma / 2.0

    @property
    def at_zero(self) -> float:
        """f(0); where that is infinite every client holds every outcome, and nothing is ever multiplied by it."""
        return self.curve.at_zero if math.isfinite(self.curve.at_zero) else 0.0

    def cost(self, p: Floats, q: Floats, mu: float, part: Floats | float) -> EntryCost:
        return SmoothCost(p, self.curve) if self.gamma is None else HingeCost(p, q, self.gamma, mu, part)


def best_floor(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The floor with the least mean divergence over the examples, among those that keep so much of the best worst case.

    Where neither the interior point method nor linear programmes make value and bound agree, the narrowest bracket is returned.
    """
    found = interior_floor(examples, f, epsilon, keep, progress)
    return found if found.is_settled else cut_floor(found, examples, f, epsilon, keep)


def interior_floor(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The narrowest bracket of the mean that the interior point method finds."""
    found: FloorBracket | None = None
    # an edge knows one way of going, and among very many clients a few are left behind by steps apart, whom common ones must wait for
    only_cautious = hinge(f) is not None or examples.mass.size > _MOST_APART
    for cautious in (True,) if only_cautious else (False, True):
        with np.errstate(all="ignore"):  # steps past what floats hold end the way
            led = _solve_interior(examples, f, epsilon, keep, progress, cautious=cautious)
        if led is not None:
            found = led if found is None else found.best_of_both(led)
            if found.is_settled:
                return found
    easy = tangent_floor(examples, f, epsilon, keep)
    return easy if found is None else found.best_of_both(easy)


def cut_floor(
    found: FloorBracket, examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, *, worst: bool = False
) -> FloorBracket:
    """The bracket narrowed by linear programmes, until it is as narrow as a design promises or no longer gets narrower."""
    if examples.mass.size > cuts.LARGEST_CUT or keep > _MOST_KEEP:
        return found
    objective, ratio, size = Objective.of(f), math.exp(epsilon), examples.size
    least, most = _floor_bounds(size, ratio, keep)
    problem = cuts.CutProblem(examples, objective.curve, epsilon, least, most, worst)
    start, _ = fit.floor_outputs(examples, found.floor[examples.seen], float(found.floor.sum()), ratio)
    narrowest, waited = found.value - found.bound, 0
    for solution in problem.solutions(start):
        floor = examples.spread_out(solution.floor, solution.elsewhere)
        value = worst_divergence(examples, f, floor, ratio) if worst else mean_divergence(examples, f, floor, ratio)
        proofs = _cut_certificates(solution, examples, objective, AllowedFloors(size, epsilon, keep))
        for proof in proofs:
            found = found.best_of_both(FloorBracket(floor, value, max(proof.lower_bound(), 0.0), proof))
        waited = 0 if found.value - found.bound < 0.9 * narrowest else waited + 1
        narrowest = min(narrowest, found.value - found.bound)
        if narrowest <= max(TOLERANCE * found.value, NEGLIGIBLE) or waited > _PATIENCE:
            break
    return found


def _cut_certificates(
    solution: cuts.CutSolution, examples: ExampleClients, objective: Objective, floors: AllowedFloors
) -> list[DesignCertificate]:
    """Those whose lines are the programme's, and those whose lines suit its multipliers and floor."""
    counted = solution.weights > _COUNTED * solution.weights.max()
    clients = _some_clients(examples, counted, solution.weights)
    entries = counted[examples.client]
    p, q, floor = examples.mass[entries], solution.q[entries], solution.floor[examples.outcome[entries]]
    multiplier, curve = solution.multiplier[counted], objective.curve
    level, ratio = -multiplier[clients.client], math.exp(floors.epsilon)
    with np.errstate(all="ignore"):
        wanted = solution.intercept[entries], np.clip(level, curve.first(p / floor), curve.first(p / (ratio * floor)))
        found = [(one, *curve.line(one, p / q)) for one in wanted]
    proofs = []
    for asked, slope, intercept in found:
        if np.isfinite(slope).all() and np.isfinite(intercept).all():
            # what an intercept is too low by counts e^eps times; in the multiplier it counts once
            missed = np.maximum.reduceat(np.maximum(asked - intercept, 0.0), clients.starts)
            for shift in (0.0, missed):
                terms = (multiplier + shift, slope, intercept, objective.at_zero, objective.f.name, objective.constant)
                proofs.append(DesignCertificate(clients, floors, *terms))
    return proofs


def _some_clients(examples: ExampleClients, counted: NDArray[np.bool_], weights: Floats) -> ExampleClients:
    """Those clients alone, with these of the weights (n,)."""
    if counted.all():
        return replace(examples, weight=weights / weights.sum())
    entries = counted[examples.client]
    places, outcome = np.unique(examples.outcome[entries], return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(examples.support_sizes[counted])[:-1]])
    weight = weights[counted] / weights[counted].sum()
    return ExampleClients(
        examples.size, starts, outcome.astype(np.int32), examples.mass[entries], weight, examples.seen[places]
    )


def tangent_floor(examples: ExampleClients, f: FDivergence, epsilon: float, keep: float) -> FloorBracket:
    """The floor of Q*, and the bound by the tangents of f at 1: what there is where everything else fails."""
    objective, ratio = Objective.of(f), math.exp(epsilon)
    floor = np.full(examples.size, 1.0 / (ratio + examples.size - 1))
    at_one = np.full(examples.mass.size, -objective.curve.slope_at_one)
    lines = objective.curve.line(at_one, np.ones(examples.mass.size))
    multiplier = np.full(len(examples), objective.curve.slope_at_one)
    floors = AllowedFloors(examples.size, epsilon, keep)
    proof = DesignCertificate(examples, floors, multiplier, *lines, objective.at_zero, f.name, objective.constant)
    return FloorBracket(floor, mean_divergence(examples, f, floor, ratio), max(proof.lower_bound(), 0.0), proof)


def _floor_bounds(size: int, ratio: float, keep: float) -> tuple[float, float]:
    """The least m_x and the largest |m| - m_x that `keep` allows (T2)."""
    held_to = min(max(keep, _LEAST_KEEP), _MOST_KEEP)
    return held_to / (ratio + size - 1), 1.0 - held_to / (1.0 + (size - 1) / ratio)


def _solve_interior(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None, *, cautious: bool
) -> FloorBracket | None:
    """A floor and the best of its certificates, once the two agree or no step is left; None where steps led past what floats can hold."""
    size, ratio, objective = examples.size, math.exp(epsilon), Objective.of(f)
    promise = FloorBounds(*_floor_bounds(size, ratio, keep))
    point = InteriorPoint(examples, epsilon, promise, objective.slope_at_one, objective.cost, cautious=cautious)
    floors = AllowedFloors(size, epsilon, keep)
    proofs: list[tuple[float, DesignCertificate]] = []
    spent, first = False, point.gap
    for _ in range(STEPS if cautious else _STEPS_APART):
        value, gap = point.value + objective.constant, point.gap
        if not math.isfinite(value + gap):
            return None
        if progress is not None:
            progress(_share_done(first, gap, max(TOLERANCE * value, NEGLIGIBLE)))
        spent |= gap <= _SPENT * value
        if spent or gap <= max(TOLERANCE * value, NEGLIGIBLE):
            found = interior_certificate(point, objective, floors)
            proofs = [max([*proofs, (found.lower_bound(), found)], key=lambda one: one[0])]
            if spent or value - max(proofs[0][0], 0.0) <= max(TOLERANCE * value, NEGLIGIBLE):
                break
        try:
            point.step(value)
        except np.linalg.LinAlgError:  # nothing is left to gain that floats can tell
            spent = True
    if not proofs:
        found = interior_certificate(point, objective, floors)
        proofs = [(found.lower_bound(), found)]
    bound, certificate = max(proofs[0][0], 0.0), proofs[0][1]  # no divergence is negative
    floor = np.full(size, 1.0 / (ratio + size - 1)) if keep > _MOST_KEEP else examples.spread_out(point.floor, point.y)
    del point  # what it holds is many times the examples
    return FloorBracket(floor, mean_divergence(examples, f, floor, ratio), bound, certificate)


def _share_done(first: float, gap: float, last: float) -> float:
    """How far the gap has come from the first to the last one, on a logarithmic scale, on which steps are about equally long."""
    return min(max(math.log(first / max(gap, 1e-300)) / math.log(first / min(last, 0.5 * first)), 0.0), 1.0)


def mean_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The mean over the examples of what a floor gives them."""
    found = fit.client_divergences(examples, f, floor[examples.seen], float(floor.sum()), ratio)
    return max(0.0, float(np.sum(examples.weight * found)))


def worst_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The largest of what a floor gives the examples."""
    return max(0.0, float(fit.client_divergences(examples, f, floor[examples.seen], float(floor.sum()), ratio).max()))


def interior_certificate(point: InteriorPoint, objective: Objective, floors: AllowedFloors) -> DesignCertificate:
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
    return DesignCertificate(
        examples,
        floors,
        multiplier,
        slope,
        intercept,
        point.blocks[0].cost.at_zero,
        objective.f.name,
        objective.constant,
    )
