"""The best floor with its certificate: interior point steps first, then linear programmes if value and bound still differ.

Linear programmes handle f with kinks and values near rounding. A convex f is the largest of the lines below it. With finitely many lines for
each entry, the least mean or the least largest cost over all epsilon-LDP samplers is a linear programme in the floor m, the output
distributions q_j and their costs g:

    g_jx >= i q_jx + s p_jx for each line (s, i),    m <= q_j <= E m,    |q_j| = 1,    E = e^eps.

Each round adds the lines that touch f at the last solution and near it. The programme's own multipliers make a certificate
(`discreet.design._floors`): that of |q_j| = 1 is l_j, those of an entry's lines mix them into one line, and over the worst case those of the
clients are their weights. As with the interior point method, the certificate is computed from them independently.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design._curves import ConvexCurve, Edge, curve_of, hinge_gamma, tangent_line
from discreet.design._floors import (
    AllowedFloors,
    DesignCertificate,
    ExampleClients,
    Floats,
    client_divergences,
    floor_outputs,
)
from discreet.design._interior import FloorBounds, InteriorPoint
from discreet.design._newton import EntryCost, HingeCost, SmoothCost
from discreet.divergences import FDivergence

LARGEST_CUT = 1 << 13  # entries of all clients together
_ROUNDS = 30
_SIDE = np.array([1e-3, 0.01, 0.05, 0.15, 0.4, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0])
_FIRST = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])  # log t of the first lines, around the distributions given
_REACH, _NEARER, _NEAREST = 0.1, 0.4, 1e-8  # of log t: the first distance of neighbours, its factor, and its end
_AT_ONE = 1e-6  # on both sides of t = 1, where most kinks are
_SLACK = 1e-3  # of an entry's cost, past which a line is dropped
_INSIDE = 2.0**-34  # the share of Q*'s floor in the one returned, so that the programme's tolerance breaks no bound
_FINEST = 1e-10  # tolerance of a row
_EXTREME = 1e290


@dataclass(frozen=True, eq=False)
class CutSolution:
    """The solution of one programme.

    Attributes:
        floor: m of the seen outcomes.
        elsewhere: m of each other outcome.
        q: the output mass of every entry.
        weights: of the clients (n,).
        multiplier: l_j of every client (n,); meaningless where its weight is 0.
        intercept: of the mixed line of every entry; that of its tangent where the client's weight is 0.
    """

    floor: Floats
    elsewhere: float
    q: Floats
    weights: Floats
    multiplier: Floats
    intercept: Floats


@dataclass(frozen=True)
class CutProblem:
    """The problem of the programmes: clients, f as `curve`, and the allowed floors. `worst`: minimise the largest cost, not the mean."""

    examples: ExampleClients
    curve: ConvexCurve
    epsilon: float
    least: float  # of m, at any outcome
    most: float  # of |m| - m_x, at any outcome
    worst: bool

    def solutions(self, q: Floats) -> Iterator[CutSolution]:
        """Solutions of finer and finer programmes; the first has lines around 1 and around the masses q of the entries."""
        rows = _CutProgramme(self)
        p = self.examples.mass
        lines = self._tangent_lines(np.ones(p.size), np.concatenate([_FIRST, [-_AT_ONE, _AT_ONE]]))
        lines = lines.concat(self._tangent_lines(p / np.clip(q, 1e-12, 1.0), _FIRST))
        reach = _REACH
        for _ in range(_ROUNDS):
            found = rows.solve(lines)
            if found is None:
                return
            solution, kept = found
            yield solution
            touching = self._touching_places(solution)
            here = p / np.maximum(solution.q, 1e-300)
            lines = lines.only(kept)
            for t in (here, touching):
                lines = lines.concat(self._tangent_lines(t, np.array([-reach, 0.0, reach])))
            reach = max(_NEARER * reach, _NEAREST)

    def _tangent_lines(self, t: Floats, shifts: Floats) -> "_EntryLines":
        """The tangents at t e^shift for every entry, where a distribution can be: t = p/q is at least p."""
        places = np.clip(t[:, None] * np.exp(shifts), self.examples.mass[:, None], 1e100)
        with np.errstate(all="ignore"):
            slope, intercept = tangent_line(self.curve, places)
        usable = (np.abs(slope) < _EXTREME) & (np.abs(intercept) < _EXTREME)
        entry = np.broadcast_to(np.arange(t.size)[:, None], places.shape)
        return _EntryLines(entry[usable], slope[usable], intercept[usable])

    def _touching_places(self, solution: CutSolution) -> Floats:
        """t where a line whose intercept is the client's level touches f, within the bounds of the entry."""
        p, floor = self.examples.mass, solution.floor[self.examples.outcome]
        level = -solution.multiplier[self.examples.client]
        low, high = np.log(p / floor) - self.epsilon, np.log(p / floor)
        for _ in range(40):
            middle = (low + high) / 2.0
            above = self.curve.tangent_intercept(np.exp(middle)) > level  # the intercept falls as t grows
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.exp((low + high) / 2.0)


@dataclass(frozen=True, eq=False)
class _EntryLines:
    """Lines below f, each for one entry."""

    entry: NDArray[np.int64]
    slope: Floats
    intercept: Floats

    def concat(self, other: "_EntryLines") -> "_EntryLines":
        return _EntryLines(
            np.concatenate([self.entry, other.entry]),
            np.concatenate([self.slope, other.slope]),
            np.concatenate([self.intercept, other.intercept]),
        )

    def only(self, kept: NDArray[np.bool_]) -> "_EntryLines":
        return _EntryLines(self.entry[kept], self.slope[kept], self.intercept[kept])


class _CutProgramme:
    """The constant rows. Columns: the ceiling E m (K), that of every other outcome, E |m|, q, the rests, g and T."""

    def __init__(self, problem: CutProblem) -> None:
        from scipy import sparse  # imported here because it is slow

        self.problem, self._sparse = problem, sparse
        examples, ratio = problem.examples, math.exp(problem.epsilon)
        n, kinds, size = len(examples), examples.seen.size, examples.mass.size
        hidden = examples.size - kinds
        self.open = np.flatnonzero(examples.leaves_out)
        rests = self.open.size
        self.start = np.cumsum([0, kinds, 1, 1, size, rests, size, 1])
        floor, other, total, q, rest, g, time = self.start[:-1]
        wide = int(self.start[-1])
        entries, place = np.arange(size), np.full(n, -1)
        place[self.open] = np.arange(rests)
        partial = place[examples.client] >= 0

        def matrix(height: int, *parts: tuple[ArrayLike, ArrayLike, float]) -> Any:
            rows, columns = (np.concatenate([np.asarray(part[k], dtype=np.int64) for part in parts]) for k in (0, 1))
            values = np.concatenate([np.full(np.size(part[0]), part[2]) for part in parts])
            return sparse.csr_array((values, (rows, columns)), shape=(height, wide))

        clients, whose = np.arange(rests), place[examples.client[partial]]
        of_held = (whose, floor + examples.outcome[partial])
        below = matrix(size, (entries, q + entries, -1.0), (entries, floor + examples.outcome, 1.0 / ratio))
        above = matrix(size, (entries, q + entries, 1.0), (entries, floor + examples.outcome, -1.0))
        rest_below = matrix(
            rests,
            (clients, rest + clients, -1.0),
            (clients, np.full(rests, total), 1.0 / ratio),
            (*of_held, -1.0 / ratio),
        )
        rest_above = matrix(
            rests, (clients, rest + clients, 1.0), (clients, np.full(rests, total), -1.0), (*of_held, 1.0)
        )
        seen = np.arange(kinds)
        kept = matrix(kinds, (seen, np.full(kinds, total), 1.0), (seen, floor + seen, -1.0))
        self.fixed, self.right = [below, above, rest_below, rest_above, kept], [np.zeros(2 * size + 2 * rests)]
        self.right.append(np.full(kinds, ratio * problem.most))
        if hidden:
            self.fixed.append(matrix(1, ([0], [total], 1.0), ([0], [other], -1.0)))
            self.right.append(np.full(1, ratio * problem.most))
        normal = matrix(n, (examples.client, q + entries, 1.0), (self.open, rest + clients, 1.0))
        sums = matrix(1, (np.zeros(kinds), floor + seen, 1.0), ([0], [other], float(hidden)), ([0], [total], -1.0))
        self.equal, self.equal_right = sparse.vstack([normal, sums]), np.append(np.ones(n), 0.0)
        self.tilt = float(problem.curve.slope_at_one)
        at_zero = problem.curve.at_zero + self.tilt if rests else 0.0
        objective = np.zeros(wide)
        if problem.worst:
            objective[time] = 1.0
            self.fixed.append(
                matrix(
                    n,
                    (examples.client, g + entries, 1.0),
                    (self.open, rest + clients, at_zero),
                    (np.arange(n), np.full(n, time), -1.0),
                )
            )
            self.right.append(np.zeros(n))
        else:
            objective[g : g + size] = examples.weight[examples.client]
            objective[rest : rest + rests] = at_zero * examples.weight[self.open]
        self.objective = objective
        least = ratio * problem.least
        self.bounds = np.vstack([
            np.tile([least, np.inf], (kinds, 1)), [[least, np.inf]], [[1.0, ratio]],
            np.tile([0.0, 1.0], (size + rests, 1)), np.tile([-np.inf, np.inf], (size + 1, 1)),
        ])  # fmt: skip

    def solve(self, lines: _EntryLines) -> tuple[CutSolution, NDArray[np.bool_]] | None:
        """The solution with these lines, and which of them matter; None if the solver finds none."""
        from scipy.optimize import linprog

        examples, sparse = self.problem.examples, self._sparse
        p, number = examples.mass, lines.entry.size
        floor, other, _, q, _, g, _ = self.start[:-1]
        # of f less its tangent at 1, whose costs are small
        slope, intercept = (lines.slope - self.tilt, lines.intercept + self.tilt)
        scale = 1.0 / np.maximum(1.0, np.abs(intercept))
        each = np.arange(number)
        cuts = sparse.csr_array(
            (
                np.concatenate([-scale, scale * intercept]),
                (np.concatenate([each, each]), np.concatenate([g + lines.entry, q + lines.entry])),
            ),
            shape=(number, int(self.start[-1])),
        )
        right = -scale * slope * p[lines.entry]
        found = linprog(
            self.objective, A_ub=sparse.vstack([*self.fixed, cuts]), b_ub=np.concatenate([*self.right, right]),
            A_eq=self.equal, b_eq=self.equal_right, bounds=self.bounds, method="highs",
            options={"primal_feasibility_tolerance": _FINEST, "dual_feasibility_tolerance": _FINEST},
        )  # fmt: skip
        if found.status != 0:
            return None
        x, n = found.x, len(examples)
        marginals = -np.asarray(found.ineqlin.marginals)
        mixing = np.maximum(marginals[-number:], 0.0) * scale
        weights = np.maximum(marginals[-number - n : -number], 0.0) if self.problem.worst else examples.weight
        mixed = np.bincount(lines.entry, weights=mixing, minlength=p.size)
        masses = np.maximum(x[q : q + p.size], 1e-300)
        with np.errstate(all="ignore"):
            own = np.bincount(lines.entry, weights=mixing * lines.intercept, minlength=p.size) / mixed
            multiplier = -np.asarray(found.eqlin.marginals)[:n] / weights + self.tilt
            tangent = self.problem.curve.tangent_intercept(p / masses)
        ratio, size = math.exp(self.problem.epsilon), examples.size
        inside = _INSIDE / (ratio + size - 1)
        low = np.maximum(x / ratio, self.problem.least) * (1.0 - _INSIDE) + inside
        solution = CutSolution(
            low[floor : floor + examples.seen.size],
            float(low[other]),
            masses,
            weights / weights.sum(),
            np.where(weights > 0.0, multiplier, 0.0),
            np.where(np.isfinite(own), own, tangent),
        )
        cost = x[g : g + p.size][lines.entry]
        excess = cost - (slope * p[lines.entry] + intercept * masses[lines.entry])
        return solution, (mixing > 0.0) | (excess <= _SLACK * (np.abs(cost) + float(found.fun)))


Progress = Callable[[float], None]  # called with the share of the work that is done

TOLERANCE = 3e-5  # relative, between value and bound
ALLOWED = 1e-4
NEGLIGIBLE = 1e-10  # a gap of this size counts as zero for every value
UNRESOLVED = 1e-7  # gap that e^eps times the rounding of floats may leave (epsilon above 12)
STEPS = 150
_STEPS_APART, _MOST_APART = 40, 1 << 17  # steps after which cautious steps are faster; entries of all clients
_SPENT = 1e-14  # products so small that further steps are rounding
_LEAST_KEEP = 2.0**-30  # so that every outcome keeps a positive probability, at negligible cost
_MOST_KEEP = 1.0 - 2.0**-24  # above it only the floor of Q* remains
_PATIENCE = 5  # programmes in a row that narrow a bracket by less than a tenth
_COUNTED = 1e-7  # a client's weight, against the largest, below which it is left out of a certificate


@dataclass(frozen=True, eq=False)
class FloorBracket:
    """A floor on the domain, its cost for the clients, and a lower bound on the cost of any sampler."""

    floor: Floats
    value: float
    bound: float
    certificate: DesignCertificate

    @property
    def is_settled(self) -> bool:
        """Whether value and bound agree within a design's tolerance."""
        return self.value - self.bound <= max(ALLOWED * self.value, UNRESOLVED)

    def best_of_both(self, other: "FloorBracket") -> "FloorBracket":
        """The better floor of the two with the better bound; both are about the same clients."""
        found, proof = min((self, other), key=lambda one: one.value), max((self, other), key=lambda one: one.bound)
        return FloorBracket(found.floor, found.value, proof.bound, proof.certificate)


@dataclass(frozen=True)
class Objective:
    """f in the solvers' form: a curve, its edge at gamma if it has one, and `constant`, which was left out of every client's cost."""

    f: FDivergence
    curve: ConvexCurve
    gamma: float | None
    constant: float

    @classmethod
    def of(cls, f: FDivergence) -> "Objective":
        gamma = hinge_gamma(f)
        if gamma is None:
            return cls(f, curve_of(f), None, 0.0)
        return cls(f, Edge(gamma), gamma, -max(1.0 - gamma, 0.0))

    @property
    def slope_at_one(self) -> float:
        """The start of the multipliers of the interior point method."""
        return self.curve.slope_at_one if self.gamma is None else self.gamma / 2.0

    @property
    def at_zero(self) -> float:
        """f(0), or 0 if it is infinite: then every client has full support, and the value is not used."""
        return self.curve.at_zero if math.isfinite(self.curve.at_zero) else 0.0

    def cost(self, p: Floats, q: Floats, mu: float, part: Floats | float) -> EntryCost:
        return SmoothCost(p, self.curve) if self.gamma is None else HingeCost(p, q, self.gamma, mu, part)


def best_floor(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The floor with the least mean divergence over the examples, among those that keep that share of the best worst case.

    If neither the interior point method nor linear programmes make value and bound agree, the narrowest bracket is returned.
    """
    found = interior_floor(examples, f, epsilon, keep, progress)
    return found if found.is_settled else cut_floor(found, examples, f, epsilon, keep)


def interior_floor(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The narrowest bracket of the mean that the interior point method finds."""
    found: FloorBracket | None = None
    # an edge allows common steps only, and with very many clients steps apart leave a few behind, which delay the common steps
    only_cautious = hinge_gamma(f) is not None or examples.mass.size > _MOST_APART
    for cautious in (True,) if only_cautious else (False, True):
        with np.errstate(all="ignore"):  # overflow ends the iteration
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
    """The bracket narrowed by linear programmes, until it is within a design's tolerance or stops getting narrower."""
    if examples.mass.size > LARGEST_CUT or keep > _MOST_KEEP:
        return found
    objective, ratio, size = Objective.of(f), math.exp(epsilon), examples.size
    least, most = _floor_bounds(size, ratio, keep)
    problem = CutProblem(examples, objective.curve, epsilon, least, most, worst)
    start, _ = floor_outputs(examples, found.floor[examples.seen], float(found.floor.sum()), ratio)
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
    solution: CutSolution, examples: ExampleClients, objective: Objective, floors: AllowedFloors
) -> list[DesignCertificate]:
    """Certificates with the programme's own lines, and with lines that fit its multipliers and floor."""
    counted = solution.weights > _COUNTED * solution.weights.max()
    clients = _restrict_to_clients(examples, counted, solution.weights)
    entries = counted[examples.client]
    p, q, floor = examples.mass[entries], solution.q[entries], solution.floor[examples.outcome[entries]]
    multiplier, curve = solution.multiplier[counted], objective.curve
    level, ratio = -multiplier[clients.client], math.exp(floors.epsilon)
    with np.errstate(all="ignore"):
        wanted = (
            solution.intercept[entries],
            np.clip(level, curve.tangent_intercept(p / floor), curve.tangent_intercept(p / (ratio * floor))),
        )
        found = [(one, *curve.line(one, p / q)) for one in wanted]
    proofs = []
    for asked, slope, intercept in found:
        if np.isfinite(slope).all() and np.isfinite(intercept).all():
            # an intercept that is too low counts e^eps times; the same amount in the multiplier counts once
            missed = np.maximum.reduceat(np.maximum(asked - intercept, 0.0), clients.starts)
            for shift in (0.0, missed):
                terms = (multiplier + shift, slope, intercept, objective.at_zero, objective.f.name, objective.constant)
                proofs.append(DesignCertificate(clients, floors, *terms))
    return proofs


def _restrict_to_clients(examples: ExampleClients, counted: NDArray[np.bool_], weights: Floats) -> ExampleClients:
    """These clients alone, with their weights from (n,)."""
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
    """The floor of Q*, and the bound by the tangents of f at 1, as the last resort."""
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
    """A floor and the best of its certificates, once the two agree or no step is left; None on overflow."""
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
            progress(_progress_share(first, gap, max(TOLERANCE * value, NEGLIGIBLE)))
        spent |= gap <= _SPENT * value
        if spent or gap <= max(TOLERANCE * value, NEGLIGIBLE):
            found = interior_certificate(point, objective, floors)
            proofs = [max([*proofs, (found.lower_bound(), found)], key=lambda one: one[0])]
            if spent or value - max(proofs[0][0], 0.0) <= max(TOLERANCE * value, NEGLIGIBLE):
                break
        try:
            point.step(value)
        except np.linalg.LinAlgError:  # further progress is below rounding
            spent = True
    if not proofs:
        found = interior_certificate(point, objective, floors)
        proofs = [(found.lower_bound(), found)]
    bound, certificate = max(proofs[0][0], 0.0), proofs[0][1]  # no divergence is negative
    floor = np.full(size, 1.0 / (ratio + size - 1)) if keep > _MOST_KEEP else examples.spread_out(point.floor, point.y)
    del point  # it takes many times the memory of the examples
    return FloorBracket(floor, mean_divergence(examples, f, floor, ratio), bound, certificate)


def _progress_share(first: float, gap: float, last: float) -> float:
    """The progress of the gap from the first to the last, on a logarithmic scale, on which steps are about equally long."""
    return min(max(math.log(first / max(gap, 1e-300)) / math.log(first / min(last, 0.5 * first)), 0.0), 1.0)


def mean_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The mean divergence over the examples under a floor."""
    return max(0.0, float(np.sum(examples.weight * client_divergences(examples, f, floor, ratio))))


def worst_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The largest divergence over the examples under a floor."""
    return max(0.0, float(client_divergences(examples, f, floor, ratio).max()))


def interior_certificate(point: InteriorPoint, objective: Objective, floors: AllowedFloors) -> DesignCertificate:
    """The multipliers, and the lines that touch f at the outputs of floor and multipliers."""
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
