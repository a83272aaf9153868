"""The best floor with its certificate: interior point steps first, then linear programmes if value and bound still differ.

**T6.** For distributions P_1..P_n, the minimax divergence over their convex hull of eps-LDP samplers is min_m max_j F(P_j; m).
*Proof.* F is convex in P (`discreet.design._floors`, T1), so the hull's worst member is one of the P_j. A sampler with floor m has at least
F(P_j; m) at each, and projecting attains it.   QED
The problem is convex in m. Any weights w give the lower bound min_m sum_j w_j F(P_j; m) <= min_m max_j F(P_j; m), which
`discreet.design._floors` certifies. Any m gives the upper bound max_j F(P_j; m); at a saddle point the two meet (`minimax_floor`). The
vertices of a band are such clients, so this gives the minimax value of bands whose reference is not decomposable.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.design._floors import (
    AllowedFloors,
    DesignCertificate,
    ExampleClients,
    Floats,
    as_example_clients,
    outputs_on_and_off_support,
)
from discreet.design._interior import FloorBounds, InteriorPoint, SmoothMinimax
from discreet.design._linear_programmes import CutProblem, CutSolution, UnsettledError, minimax_tv_floor_and_weights
from discreet.design._newton import Objective
from discreet.divergences import FDivergence, curve_of_divergence, hockey_stick_gamma_or_none
from discreet.errors import DiscreetError

Progress = Callable[[float], None]  # called with the share of the work that is done

TOLERANCE = 3e-5  # relative, between value and bound
ALLOWED = 1e-4
NEGLIGIBLE_GAP = 1e-10  # a gap of this size counts as zero for every value
UNRESOLVED = 1e-7  # gap that e^eps times the rounding of floats may leave (epsilon above 12)
STEPS = 150
_STEPS_APART, _MOST_APART = 40, 1 << 17  # steps after which cautious steps are faster; entries of all clients
_SPENT = 1e-14  # products so small that further steps are rounding
_LEAST_KEEP = 2.0**-30  # so that every outcome keeps a positive probability, at negligible cost
_MOST_KEEP = 1.0 - 2.0**-24  # above it only the floor of Q* remains
_PATIENCE = 5  # programmes in a row that narrow a bracket by less than a tenth
LARGEST_CUT = 1 << 13  # entries of all clients together, for linear programmes
LARGEST_HULL = 1 << 19  # the same, whose worst case is minimised
_FEW = 64  # clients to begin with; those that are served worst join them
_SADDLE_TOLERANCE = 1e-6
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
        better, proof = (
            min((self, other), key=lambda bracket: bracket.value),
            max((self, other), key=lambda bracket: bracket.bound),
        )
        return FloorBracket(better.floor, better.value, proof.bound, proof.certificate)


def best_floor_for_mean(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The floor with the least mean divergence over the examples, among those that keep that share of the best worst case.

    If neither the interior point method nor linear programmes make value and bound agree, the narrowest bracket is returned.
    """
    bracket = mean_divergence_bracket_by_interior_point(examples, f, epsilon, keep, progress)
    return bracket if bracket.is_settled else narrow_bracket_by_cuts(bracket, examples, f, epsilon, keep)


def mean_divergence_bracket_by_interior_point(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None = None
) -> FloorBracket:
    """The narrowest bracket of the mean that the interior point method finds."""
    bracket: FloorBracket | None = None
    # an edge allows common steps only, and with very many clients steps apart leave a few behind, which delay the common steps
    only_cautious = hockey_stick_gamma_or_none(f) is not None or examples.mass.size > _MOST_APART
    for cautious in (True,) if only_cautious else (False, True):
        with np.errstate(all="ignore"):  # overflow ends the iteration
            candidate = _run_interior_point(examples, f, epsilon, keep, progress, cautious=cautious)
        if candidate is not None:
            bracket = candidate if bracket is None else bracket.best_of_both(candidate)
            if bracket.is_settled:
                return bracket
    fallback = floor_bracket_of_optimal_sampler(examples, f, epsilon, keep)
    return fallback if bracket is None else bracket.best_of_both(fallback)


def narrow_bracket_by_cuts(
    bracket: FloorBracket, examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, *, worst: bool = False
) -> FloorBracket:
    """The bracket narrowed by linear programmes, until it is within a design's tolerance or stops getting narrower."""
    if examples.mass.size > LARGEST_CUT or keep > _MOST_KEEP:
        return bracket
    objective, ratio, size = Objective.of_divergence(f), math.exp(epsilon), examples.size
    least, most = _floor_limits_allowed_by_keep(size, ratio, keep)
    problem = CutProblem(examples, objective.curve, epsilon, least, most, worst)
    start, _ = outputs_on_and_off_support(
        examples, bracket.floor[examples.seen_outcomes], float(bracket.floor.sum()), ratio
    )
    narrowest, stalled_rounds = bracket.value - bracket.bound, 0
    for solution in problem.iterate_finer_solutions(start):
        floor = examples.extend_to_unseen_outcomes(solution.floor, solution.elsewhere)
        value = worst_divergence(examples, f, floor, ratio) if worst else mean_divergence(examples, f, floor, ratio)
        proofs = _certificates_of_cut_solution(solution, examples, objective, AllowedFloors(size, epsilon, keep))
        for proof in proofs:
            bracket = bracket.best_of_both(FloorBracket(floor, value, max(proof.lower_bound(), 0.0), proof))
        stalled_rounds = 0 if bracket.value - bracket.bound < 0.9 * narrowest else stalled_rounds + 1
        narrowest = min(narrowest, bracket.value - bracket.bound)
        if narrowest <= max(TOLERANCE * bracket.value, NEGLIGIBLE_GAP) or stalled_rounds > _PATIENCE:
            break
    return bracket


def _certificates_of_cut_solution(
    solution: CutSolution, examples: ExampleClients, objective: Objective, floors: AllowedFloors
) -> list[DesignCertificate]:
    """Certificates with the programme's own lines, and with lines that fit its multipliers and floor."""
    is_counted = solution.weights > _COUNTED * solution.weights.max()
    clients = _restrict_to_clients(examples, is_counted, solution.weights)
    entries = is_counted[examples.client_of_entry]
    p, q, floor = examples.mass[entries], solution.q[entries], solution.floor[examples.outcome[entries]]
    multiplier, curve = solution.multiplier[is_counted], objective.curve
    level, ratio = -multiplier[clients.client_of_entry], math.exp(floors.epsilon)
    with np.errstate(all="ignore"):
        intercepts = (
            solution.intercept[entries],
            np.clip(level, curve.tangent_intercept(p / floor), curve.tangent_intercept(p / (ratio * floor))),
        )
        lines = [(target, *curve.steepest_line_with_intercept(target, p / q)) for target in intercepts]
    proofs = []
    for target, slope, intercept in lines:
        if np.isfinite(slope).all() and np.isfinite(intercept).all():
            # an intercept that is too low counts e^eps times; the same amount in the multiplier counts once
            shortfall = np.maximum.reduceat(np.maximum(target - intercept, 0.0), clients.starts)
            for shift in (0.0, shortfall):
                terms = (multiplier + shift, slope, intercept, objective.at_zero, objective.f.name, objective.constant)
                proofs.append(DesignCertificate(clients, floors, *terms))
    return proofs


def _restrict_to_clients(examples: ExampleClients, is_counted: NDArray[np.bool_], weights: Floats) -> ExampleClients:
    """These clients alone, with their weights from (n,)."""
    if is_counted.all():
        return replace(examples, weight=weights / weights.sum())
    entries = is_counted[examples.client_of_entry]
    outcomes, outcome = np.unique(examples.outcome[entries], return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(examples.support_sizes[is_counted])[:-1]])
    weight = weights[is_counted] / weights[is_counted].sum()
    return ExampleClients(
        examples.size,
        starts,
        outcome.astype(np.int32),
        examples.mass[entries],
        weight,
        examples.seen_outcomes[outcomes],
    )


def floor_bracket_of_optimal_sampler(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float
) -> FloorBracket:
    """The floor of Q*, and the bound by the tangents of f at 1, as the last resort."""
    objective, ratio = Objective.of_divergence(f), math.exp(epsilon)
    floor = np.full(examples.size, 1.0 / (ratio + examples.size - 1))
    at_one = np.full(examples.mass.size, -objective.curve.slope_at_one)
    lines = objective.curve.steepest_line_with_intercept(at_one, np.ones(examples.mass.size))
    multiplier = np.full(len(examples), objective.curve.slope_at_one)
    floors = AllowedFloors(examples.size, epsilon, keep)
    proof = DesignCertificate(examples, floors, multiplier, *lines, objective.at_zero, f.name, objective.constant)
    return FloorBracket(floor, mean_divergence(examples, f, floor, ratio), max(proof.lower_bound(), 0.0), proof)


def _floor_limits_allowed_by_keep(size: int, ratio: float, keep: float) -> tuple[float, float]:
    """The least m_x and the largest |m| - m_x that `keep` allows (T2)."""
    kept_share = min(max(keep, _LEAST_KEEP), _MOST_KEEP)
    return kept_share / (ratio + size - 1), 1.0 - kept_share / (1.0 + (size - 1) / ratio)


def _run_interior_point(
    examples: ExampleClients, f: FDivergence, epsilon: float, keep: float, progress: Progress | None, *, cautious: bool
) -> FloorBracket | None:
    """The floor of the interior point method and the best of its certificates, once the two agree or no step is left; None on overflow."""
    size, ratio, objective = examples.size, math.exp(epsilon), Objective.of_divergence(f)
    promise = FloorBounds(*_floor_limits_allowed_by_keep(size, ratio, keep))
    point = InteriorPoint(
        examples, epsilon, promise, objective.slope_at_one, objective.make_entry_cost, cautious=cautious
    )
    floors = AllowedFloors(size, epsilon, keep)
    proofs: list[tuple[float, DesignCertificate]] = []
    spent, first = False, point.gap
    for _ in range(STEPS if cautious else _STEPS_APART):
        value, gap = point.mean_cost + objective.constant, point.gap
        if not math.isfinite(value + gap):
            return None
        if progress is not None:
            progress(_progress_of_gap(first, gap, max(TOLERANCE * value, NEGLIGIBLE_GAP)))
        spent |= gap <= _SPENT * value
        if spent or gap <= max(TOLERANCE * value, NEGLIGIBLE_GAP):
            proof = certificate_of_interior_point(point, objective, floors)
            proofs = [max([*proofs, (proof.lower_bound(), proof)], key=lambda pair: pair[0])]
            if spent or value - max(proofs[0][0], 0.0) <= max(TOLERANCE * value, NEGLIGIBLE_GAP):
                break
        try:
            point.take_step(value)
        except np.linalg.LinAlgError:  # further progress is below rounding
            spent = True
    if not proofs:
        proof = certificate_of_interior_point(point, objective, floors)
        proofs = [(proof.lower_bound(), proof)]
    bound, certificate = max(proofs[0][0], 0.0), proofs[0][1]  # no divergence is negative
    floor = (
        np.full(size, 1.0 / (ratio + size - 1))
        if keep > _MOST_KEEP
        else examples.extend_to_unseen_outcomes(point.floor, point.y)
    )
    del point  # it takes many times the memory of the examples
    return FloorBracket(floor, mean_divergence(examples, f, floor, ratio), bound, certificate)


def _progress_of_gap(first: float, gap: float, last: float) -> float:
    """The progress of the gap from the first to the last, on a logarithmic scale, on which steps are about equally long."""
    return min(max(math.log(first / max(gap, 1e-300)) / math.log(first / min(last, 0.5 * first)), 0.0), 1.0)


def mean_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The mean divergence over the examples under a floor."""
    return max(0.0, float(np.sum(examples.weight * client_divergences(examples, f, floor, ratio))))


def worst_divergence(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> float:
    """The largest divergence over the examples under a floor."""
    return max(0.0, float(client_divergences(examples, f, floor, ratio).max()))


def certificate_of_interior_point(
    point: InteriorPoint, objective: Objective, floors: AllowedFloors
) -> DesignCertificate:
    """The multipliers, and the lines that touch f at the outputs of floor and multipliers."""
    examples = point.examples
    slope, intercept = np.empty(examples.mass.size), np.empty(examples.mass.size)
    ratio = math.exp(floors.epsilon)
    for block in point.blocks:
        floor = point.floor[block.outcome]
        slope[block.entries], intercept[block.entries] = block.cost.lines_below_curve(
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


def minimax_floor(laws: Floats, f: FDivergence, epsilon: float) -> FloorBracket:
    """The floor with the smallest worst case over the convex hull of distributions (n, k): its value, and a lower bound for every sampler."""
    size = laws.shape[1]
    if laws.size > LARGEST_HULL:
        raise DiscreetError(
            f"clients has {laws.size:,} entries, more than {LARGEST_HULL:,}: give fewer laws, or a smaller domain, for over='worst'"
        )
    examples, gamma = as_example_clients(laws, None, size), hockey_stick_gamma_or_none(f)
    if gamma is not None and gamma != 1.0 and examples.mass.size > LARGEST_CUT:
        raise DiscreetError(
            f"clients has {examples.mass.size:,} entries, more than {LARGEST_CUT:,}: give fewer laws, or a smaller domain, for "
            f"over='worst' with {f.name}"
        )
    bracket = _floor_bracket_by_saddle_points(examples, laws, f, epsilon) if gamma is None or gamma == 1.0 else None
    if bracket is not None and bracket.is_settled:
        return bracket
    fallback = floor_bracket_of_optimal_sampler(examples, f, epsilon, 0.0)
    largest = worst_divergence(examples, f, fallback.floor, math.exp(epsilon))
    # no mean is above the largest
    fallback = FloorBracket(fallback.floor, largest, fallback.bound, fallback.certificate)
    return narrow_bracket_by_cuts(
        fallback if bracket is None else fallback.best_of_both(bracket), examples, f, epsilon, 0.0, worst=True
    )


def _floor_bracket_by_saddle_points(
    examples: ExampleClients, laws: Floats, f: FDivergence, epsilon: float
) -> FloorBracket | None:
    """The bracket by saddle points for some clients, which those that are served worst join; None if no saddle point is found."""
    ratio, order = math.exp(epsilon), np.lexsort(laws.T)
    # clients that differ
    clients = np.unique(order[np.linspace(0, len(laws) - 1, min(len(laws), _FEW)).astype(np.int64)])
    while True:
        saddle = _find_near_saddle_point(laws[clients], f, epsilon)
        if saddle is None:
            return None
        floor, weights = saddle
        costs = np.maximum(client_divergences(examples, f, floor, ratio), 0.0)
        value = float(costs.max())
        worse = np.flatnonzero(costs > costs[clients].max() + _SADDLE_TOLERANCE * value)
        if not worse.size:
            break
        clients = np.union1d(clients, worse[np.argsort(-costs[worse])[:_FEW]])
    is_counted = weights > _SADDLE_TOLERANCE * weights.max()
    mean = mean_divergence_bracket_by_interior_point(
        as_example_clients(laws[clients][is_counted], weights[is_counted], laws.shape[1]), f, epsilon, 0.0
    )
    return FloorBracket(floor, value, min(mean.bound, value), mean.certificate)


def _find_near_saddle_point(laws: Floats, f: FDivergence, epsilon: float) -> tuple[Floats, Floats] | None:
    """A floor (k,) and weights of the clients (n,), nearly a saddle point; None where none is found."""
    if hockey_stick_gamma_or_none(f) is None:
        with np.errstate(all="ignore"):  # overflow ends the iteration
            floor, weights = SmoothMinimax(laws, f, curve_of_divergence(f), epsilon).solve_for_floor_and_weights()
        return (floor, weights) if np.isfinite(floor).all() and np.isfinite(weights).all() else None
    try:
        return minimax_tv_floor_and_weights(laws, epsilon)
    except UnsettledError:
        return None


def client_divergences(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> Floats:
    """F(P_j; m) of every client (n,), for a floor on the domain."""
    parts = []
    for part in examples.iterate_client_parts():
        q, rest = outputs_on_and_off_support(part, floor[examples.seen_outcomes], float(floor.sum()), ratio)
        support_terms = part.sum_by_client(np.asarray(f.perspective(part.mass, q)))
        parts.append(support_terms + np.asarray(f.perspective(np.zeros(len(rest)), rest)))
    return np.concatenate(parts)
