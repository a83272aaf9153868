"""The exact minimax over the convex hull of given clients, as a certified bracket (T6), where no formula is known.

**T6.** For laws P_1..P_n, the least over all eps-LDP samplers of the largest divergence over their convex hull is min_m max_j
F(P_j; m). *Proof.* F is convex in P (`discreet.design._floors`, T1), so the hull's worst member is one of the P_j; a sampler with
floor m has at least F(P_j; m) at each, and projecting attains it. This is convex in m. Any weights w give the lower bound min_m
sum_j w_j F(P_j; m) <= min_m max_j F(P_j; m), which `discreet.design._certificate` certifies, and any m the upper bound max_j F(P_j;
m); at a saddle point the two meet. The vertices of a band are such clients, so this is the true minimax value of bands whose
reference is not decomposable.

Total variation is a linear programme, since F(P; m) = max(|(P - E m)_+|, |(m - P)_+|) with E = e^eps: a law between m and E m has
to give up what P exceeds E m by and to take what m exceeds P by, and moving anything else between outcomes costs nothing more. For
smooth f an interior point method has one more pair for each client, the slack of F_j <= T and its multiplier, the weight w_j.
"""

import math

import numpy as np

from discreet.design import _fit as fit
from discreet.design._costs import SlackPair
from discreet.design._curves import ConvexCurve, curve_of, hinge
from discreet.design._cuts import LARGEST_CUT as LARGEST_CUT
from discreet.design._examples import ExampleClients, Floats, as_examples
from discreet.design._solving import FloorBracket, cut_floor, interior_floor, tangent_floor, worst_divergence
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError

LARGEST_HULL = 1 << 19  # entries of all clients together
_STEPS = 100
_TOLERANCE = 1e-6
_LEAST = 2.0**-30
_FEW = 64  # clients to begin with; those who are served worst join them


class _UnsettledError(DiscreetError):
    """A linear programme without a solution, though there is one."""


def minimax_floor(laws: Floats, f: FDivergence, epsilon: float) -> FloorBracket:
    """The floor with the least worst case over the convex hull of laws (n, k): its value, and what no sampler can better."""
    size = laws.shape[1]
    if laws.size > LARGEST_HULL:
        raise DiscreetError(
            f"clients has {laws.size:,} entries, more than {LARGEST_HULL:,}: give fewer laws, or a smaller domain, for over='worst'"
        )
    everyone, gamma = as_examples(laws, None, size), hinge(f)
    if gamma is not None and gamma != 1.0 and everyone.mass.size > LARGEST_CUT:
        raise DiscreetError(
            f"clients has {everyone.mass.size:,} entries, more than {LARGEST_CUT:,}: give fewer laws, or a smaller domain, for "
            f"over='worst' with {f.name}"
        )
    found = _bracket_by_saddles(everyone, laws, f, epsilon) if gamma is None or gamma == 1.0 else None
    if found is not None and found.is_settled:
        return found
    easy = tangent_floor(everyone, f, epsilon, 0.0)
    largest = worst_divergence(everyone, f, easy.floor, math.exp(epsilon))
    easy = FloorBracket(easy.floor, largest, easy.bound, easy.certificate)  # no mean is above the largest
    return cut_floor(easy if found is None else easy.best_of_both(found), everyone, f, epsilon, 0.0, worst=True)


def _bracket_by_saddles(everyone: ExampleClients, laws: Floats, f: FDivergence, epsilon: float) -> FloorBracket | None:
    """The bracket by saddle points for some clients, whom those that are served worst join; None where no saddle point is found."""
    ratio, chosen = math.exp(epsilon), _spread_choice(laws)
    while True:
        saddle = _saddle(laws[chosen], f, epsilon)
        if saddle is None:
            return None
        floor, weights = saddle
        served = np.maximum(floor_costs(everyone, f, floor, ratio), 0.0)
        value = float(served.max())
        worse = np.flatnonzero(served > served[chosen].max() + _TOLERANCE * value)
        if not worse.size:
            break
        chosen = np.union1d(chosen, worse[np.argsort(-served[worse])[:_FEW]])
    counted = weights > _TOLERANCE * weights.max()
    mean = interior_floor(as_examples(laws[chosen][counted], weights[counted], laws.shape[1]), f, epsilon, 0.0)
    return FloorBracket(floor, value, min(mean.bound, value), mean.certificate)


def _spread_choice(laws: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Some clients that differ, in order."""
    order = np.lexsort(laws.T)
    return np.unique(order[np.linspace(0, len(laws) - 1, min(len(laws), _FEW)).astype(np.int64)])


def floor_costs(examples: ExampleClients, f: FDivergence, floor: Floats, ratio: float) -> Floats:
    """F(P_j; m) of every client, for a floor on the domain."""
    return fit.client_divergences(examples, f, floor[examples.seen], float(floor.sum()), ratio)


def _saddle(laws: Floats, f: FDivergence, epsilon: float) -> tuple[Floats, Floats] | None:
    """A floor (k,) and weights of the clients (n,), nearly a saddle point; None where none is found."""
    if hinge(f) is None:
        with np.errstate(all="ignore"):  # steps past what floats hold end the way
            floor, weights = SmoothMinimax(laws, f, curve_of(f), epsilon).solve()
        return (floor, weights) if np.isfinite(floor).all() and np.isfinite(weights).all() else None
    try:
        return floor_for_tv(laws, epsilon)
    except _UnsettledError:
        return None


def floor_for_tv(laws: Floats, epsilon: float, basis: Floats | None = None) -> tuple[Floats, Floats]:
    """min T over (m, T, a, b) with a_j >= m - P_j, b_j >= P_j - E m, |a_j| <= T, |b_j| <= T: the floor and the clients' weights.

    With a `basis` (r, k) the floor is sought among its non-negative combinations, and its coefficients (r,) are returned.
    """
    from scipy import sparse
    from scipy.optimize import linprog  # here, because importing it costs more than most commands do

    (n, k), ratio = laws.shape, math.exp(epsilon)
    least = _LEAST / (ratio + k - 1)
    shapes = np.eye(k) if basis is None else basis
    size, number = n * k, len(shapes)
    floors = sparse.csr_array(np.tile(shapes.T, (n, 1)))
    ones, none = sparse.eye_array(size), sparse.csr_array((size, size))
    sums, time = sparse.kron(sparse.eye_array(n), np.ones((1, k))), sparse.csr_array(-np.ones((n, 1)))
    zero, column = sparse.csr_array((n, size)), sparse.csr_array((size, 1))
    no_floor = sparse.csr_array((n, number))
    total = sparse.hstack([sparse.csr_array(shapes.sum(axis=1)[None, :]), sparse.csr_array((1, 1 + 2 * size))])
    rows = sparse.vstack([
        sparse.hstack([floors, column, -ones, none]),
        sparse.hstack([-ratio * floors, column, none, -ones]),
        sparse.hstack([no_floor, time, sums, zero]),
        sparse.hstack([no_floor, time, zero, sums]),
        total, -total,
    ])  # fmt: skip
    right = np.concatenate([laws.ravel(), -laws.ravel(), np.zeros(2 * n), [1.0, -1.0 / ratio]])
    smallest = least if basis is None else 0.0
    found = linprog(
        np.concatenate([np.zeros(number), [1.0], np.zeros(2 * size)]),
        A_ub=rows, b_ub=right, bounds=[(smallest, None)] * number + [(None, None)] + [(0, None)] * (2 * size), method="highs",
    )  # fmt: skip
    if found.status != 0:
        raise _UnsettledError(f"the linear programme did not settle ({found.message}); report this with the clients")
    duals = -np.asarray(found.ineqlin.marginals)[2 * size : 2 * size + 2 * n]
    weights = np.maximum(duals[:n] + duals[n:], 0.0)
    return np.maximum(found.x[:number], smallest), weights / weights.sum()


class SmoothMinimax:
    """The interior point method: per client d_j in (0, (E - 1) m), |m| + |d_j| = 1, and F_j + s_j = T with s_j w_j led to 0."""

    def __init__(self, laws: Floats, f: FDivergence, curve: ConvexCurve, epsilon: float) -> None:
        self.p, self.f, self.curve, self.growth = laws, f, curve, math.expm1(epsilon)
        n, k = laws.shape
        self.least = _LEAST / (self.growth + k)
        total = math.exp(-epsilon / 2.0)
        self.m = total * (laws.mean(axis=0) + 1.0 / k) / 2.0
        share = (1.0 - total) / total
        start = np.broadcast_to(self.m, (n, k))
        self.low, self.high = (
            SlackPair(share * start, np.zeros((n, k))),
            SlackPair((self.growth - share) * start, np.zeros((n, k))),
        )
        self.bound = SlackPair(self.m - self.least, np.zeros(k))
        costs = self._costs()
        self.time = float(costs.max()) + 1.0
        self.slack = SlackPair(self.time - costs, np.full(n, 1.0 / n))
        mu = float(np.mean(self.slack.products()))
        for pair in (self.low, self.high, self.bound):
            pair.z = mu / pair.s
        self.multiplier = np.full(n, curve.slope_at_one / n)

    @property
    def _pairs(self) -> tuple[SlackPair, ...]:
        return self.low, self.high, self.bound, self.slack

    @property
    def gap(self) -> float:
        return float(sum(pair.products().sum() for pair in self._pairs))

    def solve(self) -> tuple[Floats, Floats]:
        """Steps until neither the products nor the residuals matter."""
        number = sum(pair.s.size for pair in self._pairs)
        for _ in range(_STEPS):
            costs = self._costs()
            off = np.abs(costs + self.slack.s - self.time).max()
            if max(self.gap, off) <= _TOLERANCE**1.5 * max(abs(self.time), 1e-6):
                break
            try:
                self._step(costs, number)
            except np.linalg.LinAlgError:  # nothing is left to gain that floats can tell
                break
        return self.m, self.slack.z / self.slack.z.sum()

    def _costs(self) -> Floats:
        return np.asarray(np.asarray(self.f.perspective(self.p, self.m + self.low.s)).sum(axis=1))

    def _step(self, costs: Floats, number: int) -> None:
        q, weight = self.m + self.low.s, self.slack.z[:, None]
        held = self.p > 0.0
        t = np.where(held, self.p, 1.0) / q
        self.first = np.where(held, self.curve.first(t), self.curve.at_zero if np.isfinite(self.curve.at_zero) else 0.0)
        bend = weight * np.where(held, self.curve.second(t), 0.0) / q
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
        self.small = (
            c / determinant,
            -b / determinant,
            a / determinant,
        )  # the inverse of each client's own 2 by 2 system
        matrix = np.diag(np.append(diagonal.sum(axis=0) + self.bound.stiffness, 0.0))
        first, second = self.rows
        upper, cross, lower = self.small
        matrix[:-1, :-1] += first.T @ (upper[:, None] * first) + second.T @ (lower[:, None] * second)
        mixed = first.T @ (cross[:, None] * second)
        matrix[:-1, :-1] += mixed + mixed.T
        matrix[:-1, -1] = matrix[-1, :-1] = -(first.T @ cross + second.T @ lower)
        matrix[-1, -1] = lower.sum()
        self.residuals = self.low.s.sum(axis=1) + self.m.sum() - 1.0, costs + self.slack.s - self.time
        gap = self.gap
        for pair in self._pairs:
            pair.predict()
        primal, dual = (min(1.0, length) for length in self._follow(matrix))
        predicted = float(sum(pair.products(primal, dual).sum() for pair in self._pairs))
        mu = gap / number * min(1.0, max(predicted / gap, 0.01)) ** 3
        for pair in self._pairs:
            pair.correct(mu, 2.0 * gap / number)
        primal, dual = (min(1.0, 0.99 * length) for length in self._follow(matrix))
        length = min(primal, dual)
        self.m = self.m + length * self.bound.ds
        self.time += length * self.time_step
        self.multiplier = self.multiplier + length * self.multiplier_step
        for pair in self._pairs:
            pair.move(length, length)

    def _follow(self, matrix: Floats) -> tuple[float, float]:
        growth, weight = self.growth, self.slack.z
        gradient = weight[:, None] * self.first
        slack = gradient + self.multiplier[:, None] - self.low.aim + self.high.aim
        normal, cost = self.residuals
        one = (slack * self.inverse).sum(axis=1) - normal
        two = (slack * self.first * self.inverse).sum(axis=1) - cost - (self.slack.aim - weight) * self.slack.s / weight
        upper, cross, lower = self.small
        shift, weight_shift = upper * one + cross * two, cross * one + lower * two
        first, second = self.rows
        right = -(gradient - growth * self.high.aim - self.coupling * slack).sum(axis=0) - self.multiplier.sum()
        right += self.bound.aim + first.T @ shift + second.T @ weight_shift
        found = _solve_scaled(matrix, np.append(right, weight.sum() - 1.0 - weight_shift.sum()))
        step, self.time_step = found[:-1], float(found[-1])
        pull, push = first @ step, second @ step - self.time_step
        self.multiplier_step = upper * pull + cross * push - shift
        weight_step = cross * pull + lower * push - weight_shift
        moved = slack + self.multiplier_step[:, None] + self.first * weight_step[:, None]
        d = -moved * self.inverse - self.coupling * step
        slack_step = (self.slack.aim - weight - weight_step) * self.slack.s / weight
        limits = [
            self.low.follow(d),
            self.high.follow(growth * step - d),
            self.bound.follow(step),
            self.slack.follow(slack_step),
        ]
        return min(one[0] for one in limits), min(one[1] for one in limits)


def _solve_scaled(matrix: Floats, right: Floats) -> Floats:
    diagonal = matrix.diagonal()
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("a pivot is lost in rounding")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = matrix * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-14
    return np.asarray(np.linalg.solve(scaled, right * scale)) * scale
