"""Certified brackets of the minimax risk over the convex hull of given clients, where no formula is known.

**T6.** For distributions P_1..P_n, the minimax divergence over their convex hull of eps-LDP samplers is min_m max_j F(P_j; m).
*Proof.* F is convex in P (`discreet.design._floors`, T1), so the hull's worst member is one of the P_j. A sampler with floor m has at least
F(P_j; m) at each, and projecting attains it.   QED
The problem is convex in m. Any weights w give the lower bound min_m sum_j w_j F(P_j; m) <= min_m max_j F(P_j; m), which
`discreet.design._floors` certifies. Any m gives the upper bound max_j F(P_j; m); at a saddle point the two meet. The vertices of a band are
such clients, so this gives the minimax value of bands whose reference is not decomposable.

Total variation is a linear programme, since F(P; m) = max(|(P - E m)_+|, |(m - P)_+|) with E = e^eps. A distribution between m and E m has to
give up the excess of P over E m and to take on the excess of m over P; moving other mass between outcomes costs nothing more. For smooth f an
interior point method has one more pair for each client: the slack of F_j <= T and its multiplier, the weight w_j.

**Other notions of privacy**, on small finite spaces. A sampler that keeps a notion with the profile delta gives any two clients outputs with
E_z(Q_i || Q_j) = sum_x (Q_i - z Q_j)_+ <= delta(log z) for every z (`discreet.privacy._notion`). E_z and D_f are jointly convex, so a sampler
is determined at the vertices P_i of the family: mixtures of clients get the mixtures of their outputs. With finitely many z, and lines below
f, a linear programme bounds the minimax divergence from below:

    min T    with    sum_x g_ix <= T,    g_ix >= i q_ix + s p_ix for each line,    q_ix - z q_jx <= h_ijzx,    sum_x h_ijzx <= delta(log z).

Lower side: any multipliers y >= 0 of the rows A v <= b give c v >= -y b + sum over columns of the least of (c + A'y) v over the column's
range. This is computed in rationals from the programme's own multipliers, so the solver's tolerances cannot make the bound wrong.

Upper side: the outputs found, mixed with their mean until every pair keeps the whole notion, form a sampler. Between two distributions on k
outcomes the trade-off function has at most k corners. The notion is kept if f is at most that function at each of them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design._curves import ConvexCurve, curve_of, hinge_gamma
from discreet.design._floors import ExampleClients, Floats, as_examples, client_divergences
from discreet.design._newton import SlackPair
from discreet.design._solving import (
    LARGEST_CUT as LARGEST_CUT,
    FloorBracket,
    Objective,
    cut_floor,
    interior_floor,
    tangent_floor,
    worst_divergence,
)
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError
from discreet.privacy import Approximate, Privacy

LARGEST_HULL = 1 << 19  # entries of all clients together
_STEPS = 100
_TOLERANCE = 1e-6
_LEAST = 2.0**-30
_FEW = 64  # clients to begin with; those that are served worst join them


class _UnsettledError(DiscreetError):
    """The solver found no solution of a linear programme that has one."""


def minimax_floor(laws: Floats, f: FDivergence, epsilon: float) -> FloorBracket:
    """The floor with the smallest worst case over the convex hull of distributions (n, k): its value, and a lower bound for every sampler."""
    size = laws.shape[1]
    if laws.size > LARGEST_HULL:
        raise DiscreetError(
            f"clients has {laws.size:,} entries, more than {LARGEST_HULL:,}: give fewer laws, or a smaller domain, for over='worst'"
        )
    everyone, gamma = as_examples(laws, None, size), hinge_gamma(f)
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
    """The bracket by saddle points for some clients, which those that are served worst join; None if no saddle point is found."""
    ratio, order = math.exp(epsilon), np.lexsort(laws.T)
    chosen = np.unique(
        order[np.linspace(0, len(laws) - 1, min(len(laws), _FEW)).astype(np.int64)]
    )  # clients that differ
    while True:
        saddle = _near_saddle_point(laws[chosen], f, epsilon)
        if saddle is None:
            return None
        floor, weights = saddle
        served = np.maximum(client_divergences(everyone, f, floor, ratio), 0.0)
        value = float(served.max())
        worse = np.flatnonzero(served > served[chosen].max() + _TOLERANCE * value)
        if not worse.size:
            break
        chosen = np.union1d(chosen, worse[np.argsort(-served[worse])[:_FEW]])
    counted = weights > _TOLERANCE * weights.max()
    mean = interior_floor(as_examples(laws[chosen][counted], weights[counted], laws.shape[1]), f, epsilon, 0.0)
    return FloorBracket(floor, value, min(mean.bound, value), mean.certificate)


def _near_saddle_point(laws: Floats, f: FDivergence, epsilon: float) -> tuple[Floats, Floats] | None:
    """A floor (k,) and weights of the clients (n,), nearly a saddle point; None where none is found."""
    if hinge_gamma(f) is None:
        with np.errstate(all="ignore"):  # overflow ends the iteration
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
    from scipy.optimize import linprog  # imported here because it is slow

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
            SlackPair(share * start, np.zeros((n, k))),
            SlackPair((self.growth - share) * start, np.zeros((n, k))),
        )
        self.bound = SlackPair(self.m - self.least, np.zeros(k))
        costs = self._client_costs()
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
        """Step until the products and the residuals are negligible."""
        number = sum(pair.s.size for pair in self._pairs)
        for _ in range(_STEPS):
            costs = self._client_costs()
            off = np.abs(costs + self.slack.s - self.time).max()
            if max(self.gap, off) <= _TOLERANCE**1.5 * max(abs(self.time), 1e-6):
                break
            try:
                self._take_step(costs, number)
            except np.linalg.LinAlgError:  # further progress is below rounding
                break
        return self.m, self.slack.z / self.slack.z.sum()

    def _client_costs(self) -> Floats:
        return np.asarray(np.asarray(self.f.perspective(self.p, self.m + self.low.s)).sum(axis=1))

    def _take_step(self, costs: Floats, number: int) -> None:
        q, weight = self.m + self.low.s, self.slack.z[:, None]
        held = self.p > 0.0
        t = np.where(held, self.p, 1.0) / q
        self.first = np.where(
            held, self.curve.tangent_intercept(t), self.curve.at_zero if np.isfinite(self.curve.at_zero) else 0.0
        )
        bend = weight * np.where(held, self.curve.scaled_curvature(t), 0.0) / q
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
        mixed = first.T @ (cross[:, None] * second)
        matrix[:-1, :-1] += mixed + mixed.T
        matrix[:-1, -1] = matrix[-1, :-1] = -(first.T @ cross + second.T @ lower)
        matrix[-1, -1] = lower.sum()
        self.residuals = self.low.s.sum(axis=1) + self.m.sum() - 1.0, costs + self.slack.s - self.time
        gap = self.gap
        for pair in self._pairs:
            pair.predict_step()
        primal, dual = (min(1.0, length) for length in self._follow_floor(matrix))
        predicted = float(sum(pair.products(primal, dual).sum() for pair in self._pairs))
        mu = gap / number * min(1.0, max(predicted / gap, 0.01)) ** 3
        for pair in self._pairs:
            pair.correct_step(mu, 2.0 * gap / number)
        primal, dual = (min(1.0, 0.99 * length) for length in self._follow_floor(matrix))
        length = min(primal, dual)
        self.m = self.m + length * self.bound.ds
        self.time += length * self.time_step
        self.multiplier = self.multiplier + length * self.multiplier_step
        for pair in self._pairs:
            pair.move(length, length)

    def _follow_floor(self, matrix: Floats) -> tuple[float, float]:
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
        found = _solve_scaled_system(matrix, np.append(right, weight.sum() - 1.0 - weight_shift.sum()))
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


def _solve_scaled_system(matrix: Floats, right: Floats) -> Floats:
    diagonal = matrix.diagonal()
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("a pivot is lost in rounding")
    scale = 1.0 / np.sqrt(diagonal)
    scaled = matrix * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-14
    return np.asarray(np.linalg.solve(scaled, right * scale)) * scale


Integers = NDArray[np.int64]

LARGEST_PAIRS = 40_000  # numbers h of all pairs, outcomes and z together
_PLACES = 9  # z of a notion that names none
_BEYOND = 1.2  # of the box's epsilon, up to which they go
_FIRST = np.concatenate([-np.geomspace(1e-3, 12.0, 14)[::-1], [-1e-6, 0.0, 1e-6], np.geomspace(1e-3, 12.0, 14)])
_REFINED = (0.1, 0.02, 2e-3)  # offsets of log p/q around a solution
_NARROW = 1e-5  # a bracket, or a gain of the lower side, that ends the refinement
_FINEST = 1e-10
_ROUNDED = 1e-6
_LOST = 1e-11  # bound on the rounding of vertices and profiles
_MIXED = np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 41)])  # shares of the mean law, tried in turn


@dataclass(frozen=True)
class PairConstraints:
    """The constraints on every pair of clients: E_z <= delta, for each (z, delta)."""

    z: tuple[float, ...]
    delta: tuple[float, ...]

    @classmethod
    def of(cls, notion: Privacy, epsilon: float) -> "PairConstraints":
        """The constraints of a notion at some z; `epsilon` is the pure budget of a sampler that is known to keep it."""
        if isinstance(notion, Approximate):
            return cls((math.exp(notion.epsilon) * (1.0 + 1e-14),), (notion.delta,))  # E_z falls as z grows
        betas = np.linspace(0.0, _BEYOND * epsilon, _PLACES)
        return cls(
            tuple(math.exp(beta) * (1.0 + 1e-14) for beta in betas.tolist()),
            tuple(min(1.0, notion.profile(beta) * (1.0 + 1e-12)) for beta in betas.tolist()),
        )


def notion_bracket(laws: Floats, notion: Privacy, epsilon: float, f: FDivergence, own: float) -> tuple[float, float]:
    """(lower, upper) around the minimax divergence over the hull of distributions (n, k); `own` is that of a known sampler.

    If there are too many pairs, a subset bounds it from below, and upper is inf.
    """
    promises, (n, k) = PairConstraints.of(notion, epsilon), laws.shape
    most = max(2, math.isqrt(LARGEST_PAIRS // (k * len(promises.z))))
    chosen = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
    programme = PairProgramme(laws[chosen], promises, f, own)
    lower, upper = 0.0, math.inf
    for reach in (*_REFINED, 0.0):
        found = programme.solve()
        if found is None:
            break
        q, bound = found
        gained, lower = bound - lower, max(lower, bound)
        if len(chosen) == n:
            upper = min(upper, _risk_after_mixing(laws, q, notion, f))
        if min(upper - lower, gained) <= _NARROW * lower:
            break
        programme.refine(q, reach)
    return max(0.0, lower * (1.0 - _LOST) - _LOST), upper


class PairProgramme:
    """The linear programme. Columns: q (n k), g (n k), h (z, pairs, k), T; all between 0 and known upper bounds."""

    def __init__(self, laws: Floats, promises: PairConstraints, f: FDivergence, own: float) -> None:
        objective = Objective.of(f)
        self.p, self.curve, self.shift = laws, objective.curve, objective.constant
        self.tilt = float(objective.curve.slope_at_one)
        self.at_zero = objective.at_zero + self.tilt
        self.n, self.k = laws.shape
        first, second = np.nonzero(~np.eye(self.n, dtype=bool))
        size, pairs = self.n * self.k, first.size
        self.size, self.wide = size, 2 * size + len(promises.z) * pairs * self.k + 1
        # g and T are costs of f less its tangent at 1: not negative but for rounding, and at most those of the known sampler
        self.least, self.most = np.zeros(self.wide), np.ones(self.wide)
        self.least[size : 2 * size], self.least[-1] = -_ROUNDED, -_ROUNDED
        self.most[size : 2 * size] = self.most[-1] = own - self.shift + self.k * _ROUNDED
        x = np.arange(self.k)
        rows: list[_SparseRows] = [_SparseRows.of((np.repeat(np.arange(self.n), self.k), size + np.arange(size), 1.0))]
        rows[0] = rows[0].with_entries((np.arange(self.n), np.full(self.n, self.wide - 1), -1.0), np.zeros(self.n))
        for place, (z, delta) in enumerate(zip(promises.z, promises.delta, strict=True)):
            start = 2 * size + place * pairs * self.k
            each = np.arange(pairs * self.k)
            one, other = ((side[:, None] * self.k + x).ravel() for side in (first, second))
            rows.append(
                _SparseRows.of((each, one, 1.0), (each, other, -z), (each, start + each, -1.0)).with_entries(
                    None, np.zeros(each.size)
                )
            )
            rows.append(_SparseRows.of((each // self.k, start + each, 1.0)).with_entries(None, np.full(pairs, delta)))
        zeros = np.flatnonzero(laws.ravel() == 0.0)
        if zeros.size:
            each = np.arange(zeros.size)
            rows.append(
                _SparseRows.of((each, zeros, self.at_zero), (each, size + zeros, -1.0)).with_entries(
                    None, np.zeros(zeros.size)
                )
            )
        self.fixed = rows
        self.held = np.flatnonzero(laws.ravel() > 0.0)
        self.lines = self._tangent_rows(np.ones(self.held.size), _FIRST)

    def _tangent_rows(self, t: Floats, shifts: Floats) -> "_SparseRows":
        """Rows i q + s p <= g for lines below f minus its tangent at 1, near t of every entry with mass."""
        p = self.p.ravel()[self.held]
        places = np.clip(t[:, None] * np.exp(shifts), p[:, None], 1e12)
        near = self.curve.tangent_intercept(places)
        # rounded so that they lie below f
        slope, intercept = (part.ravel() for part in self.curve.line(near.ravel(), places.ravel()))
        entry = np.repeat(self.held, len(shifts))
        slope, intercept = slope - self.tilt, intercept + self.tilt
        scale = 1.0 / np.maximum(1.0, np.abs(intercept))
        usable = np.isfinite(slope) & np.isfinite(intercept)
        each = np.arange(int(usable.sum()))
        entry, slope, intercept, scale = entry[usable], slope[usable], intercept[usable], scale[usable]
        found = _SparseRows.of((each, entry, scale * intercept), (each, self.size + entry, -scale))
        return found.with_entries(None, -scale * slope * self.p.ravel()[entry])

    def refine(self, q: Floats, reach: float) -> None:
        """Add lines near a solution."""
        t = self.p.ravel()[self.held] / np.maximum(q.ravel()[self.held], 1e-12)
        self.lines = self.lines.stack(self._tangent_rows(t, np.array([-reach, 0.0, reach])))

    @property
    def whole(self) -> "_SparseRows":
        """All rows, with the current lines."""
        found = self.fixed[0]
        for rows in (*self.fixed[1:], self.lines):
            found = found.stack(rows)
        return found

    def solve(self) -> tuple[Floats, float] | None:
        """The outputs (n, k) of a solution, and the bound that its multipliers prove; None if there is no solution."""
        from scipy import sparse
        from scipy.optimize import linprog

        whole = self.whole
        matrix = sparse.csr_array((whole.value, (whole.row, whole.column)), shape=(whole.right.size, self.wide))
        sums = sparse.csr_array(
            (np.ones(self.size), (np.repeat(np.arange(self.n), self.k), np.arange(self.size))),
            shape=(self.n, self.wide),
        )
        cost = np.zeros(self.wide)
        cost[-1] = 1.0
        found = linprog(
            cost, A_ub=matrix, b_ub=whole.right, A_eq=sums, b_eq=np.ones(self.n),
            bounds=np.column_stack([self.least, self.most]), method="highs",
            options={"primal_feasibility_tolerance": _FINEST, "dual_feasibility_tolerance": _FINEST},
        )  # fmt: skip
        if found.status != 0:
            return None
        upper, equal = np.maximum(-np.asarray(found.ineqlin.marginals), 0.0), -np.asarray(found.eqlin.marginals)
        q = np.maximum(found.x[: self.size].reshape(self.n, self.k), 0.0)
        return q / q.sum(axis=1, keepdims=True), self.proved_bound(whole, upper, equal)

    def proved_bound(self, rows: "_SparseRows", upper: Floats, equal: Floats) -> float:
        """-y b plus the least of (c + A'y) v over the columns' ranges, in rationals."""
        y = [Fraction(one) for one in upper.tolist()]
        reduced = [Fraction(0)] * self.wide
        reduced[-1] = Fraction(1)
        used = upper[rows.row] > 0.0
        entries = zip(rows.row[used].tolist(), rows.column[used].tolist(), rows.value[used].tolist(), strict=True)
        for row, column, value in entries:
            reduced[column] += y[row] * Fraction(value)
        bound = -sum((y[row] * Fraction(rows.right[row]) for row in np.flatnonzero(upper).tolist()), Fraction(0))
        for client, multiplier in enumerate(equal.tolist()):
            bound -= Fraction(multiplier)
            for x in range(self.k):
                reduced[client * self.k + x] += Fraction(multiplier)
        for price, least, most in zip(reduced, self.least.tolist(), self.most.tolist(), strict=True):
            if price:
                bound += price * Fraction(most if price < 0 else least)
        return float(bound) + self.shift


@dataclass(frozen=True, eq=False)
class _SparseRows:
    """Sparse rows A v <= b."""

    row: Integers
    column: Integers
    value: Floats
    right: Floats

    @classmethod
    def of(cls, *parts: tuple[Any, Any, Any]) -> "_SparseRows":
        row, column = (np.concatenate([np.asarray(part[k], dtype=np.int64) for part in parts]) for k in (0, 1))
        value = np.concatenate(
            [np.broadcast_to(np.asarray(part[2], dtype=np.float64), np.shape(part[0])) for part in parts]
        )
        return cls(row, column, value, np.zeros(0))

    def with_entries(self, part: tuple[Any, Any, Any] | None, right: Floats) -> "_SparseRows":
        """These rows with further entries, and right sides."""
        found = self if part is None else _SparseRows.of((self.row, self.column, self.value), part)
        return _SparseRows(found.row, found.column, found.value, right)

    def stack(self, other: "_SparseRows") -> "_SparseRows":
        """These rows, then others."""
        return _SparseRows(
            np.concatenate([self.row, other.row + self.right.size]),
            np.concatenate([self.column, other.column]),
            np.concatenate([self.value, other.value]),
            np.concatenate([self.right, other.right]),
        )


def _risk_after_mixing(laws: Floats, q: Floats, notion: Privacy, f: FDivergence) -> float:
    """The largest divergence of outputs after mixing with their mean until they keep the notion; inf if that takes too much mixing."""
    mean = q.mean(axis=0)
    for share in _MIXED.tolist():
        mixed = (1.0 - share) * q + share * mean
        if _all_keep_notion(mixed, notion):
            return float(np.max(f(laws, mixed)))
    return math.inf


def _all_keep_notion(q: Floats, notion: Privacy) -> bool:
    """Whether every pair has a trade-off function above the notion's, at its corners."""
    for first in range(len(q)):
        for second in range(len(q)):
            if first != second and not _pair_keeps_notion(q[first], q[second], notion):
                return False
    return True


def _pair_keeps_notion(one: Floats, other: Floats, notion: Privacy) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(one > 0.0, one / np.maximum(other, 1e-300), 0.0), kind="stable")
    missed, false = 1.0 - np.cumsum(one[order]), np.cumsum(other[order])  # reject on the outcomes that `one` favours
    for x, y in zip(false.tolist(), missed.tolist(), strict=True):
        needed = notion.tradeoff(min(max(x * (1.0 - 1e-13), 0.0), 1.0)) if x < 1.0 - 1e-13 else 0.0
        if needed > 0.0 and needed + 1e-13 > y:
            return False
    return True
