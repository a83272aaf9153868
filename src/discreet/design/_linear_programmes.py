"""The linear programmes of designs: floors by lines below f, floors for total variation, and bounds under other notions of privacy.

**Lines** (`CutProblem`) handle f with kinks and values near rounding. A convex f is the largest of the lines below it. With finitely many
lines for each entry, the least mean or the least largest cost over all epsilon-LDP samplers is a linear programme in the floor m, the output
distributions q_j and their costs g:

    g_jx >= i q_jx + s p_jx for each line (s, i),    m <= q_j <= E m,    |q_j| = 1,    E = e^eps.

Each round adds the lines that touch f at the last solution and near it. The programme's own multipliers make a certificate
(`discreet.design._floors`): that of |q_j| = 1 is l_j, those of an entry's lines mix them into one line, and over the worst case those of the
clients are their weights. As with the interior point method, the certificate is computed from them independently.

**Total variation over a hull** is a linear programme, since F(P; m) = max(|(P - E m)_+|, |(m - P)_+|) with E = e^eps. A distribution between
m and E m has to give up the excess of P over E m and to take on the excess of m over P; moving other mass between outcomes costs nothing
more.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design._floors import ExampleClients, Floats, Integers
from discreet.design._newton import Objective
from discreet.divergences import ConvexCurve, FDivergence, tangent_line
from discreet.errors import DiscreetError
from discreet.privacy import Approximate, Privacy

_FINE_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_LEAST = 2.0**-30
_ROUNDS = 30
_SIDE = np.array([1e-3, 0.01, 0.05, 0.15, 0.4, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0])
_FIRST = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])  # log t of the first lines, around the distributions given
_REACH, _NEARER, _NEAREST = 0.1, 0.4, 1e-8  # of log t: the first distance of neighbours, its factor, and its end
_AT_ONE = 1e-6  # on both sides of t = 1, where most kinks are
_SLACK = 1e-3  # of an entry's cost, past which a line is dropped
_INSIDE = 2.0**-34  # the share of Q*'s floor in the one returned, so that the programme's tolerance breaks no bound
_EXTREME = 1e290


class UnsettledError(DiscreetError):
    """The solver found no solution of a linear programme that has one."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows A v <= b."""

    row: Integers
    column: Integers
    value: Floats
    right: Floats

    @classmethod
    def from_parts(cls, right: Floats, *parts: tuple[Any, Any, Any]) -> "SparseRows":
        """Rows with these right sides, from parts (row, column, value)."""
        row, column = (np.concatenate([np.asarray(part[k], dtype=np.int64) for part in parts]) for k in (0, 1))
        value = np.concatenate(
            [np.broadcast_to(np.asarray(part[2], dtype=np.float64), np.shape(part[0])) for part in parts]
        )
        return cls(row, column, value, right)

    @classmethod
    def stack(cls, parts: "Sequence[SparseRows]") -> "SparseRows":
        """The rows of all parts, one part after the other."""
        starts = np.cumsum([0, *(part.right.size for part in parts)])
        return cls(
            np.concatenate([part.row + start for part, start in zip(parts, starts[:-1], strict=True)]),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("column", "value", "right")),
        )

    def as_sparse_matrix(self, width: int) -> Any:
        """A as a sparse matrix with so many columns."""
        from scipy import sparse  # imported here because it is slow

        return sparse.csr_array((self.value, (self.row, self.column)), shape=(self.right.size, width))


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

    def iterate_finer_solutions(self, q: Floats) -> Iterator[CutSolution]:
        """Solutions of finer and finer programmes; the first has lines around 1 and around the masses q of the entries."""
        rows = _CutProgramme(self)
        p = self.examples.mass
        lines = self._tangent_lines(np.ones(p.size), np.concatenate([_FIRST, [-_AT_ONE, _AT_ONE]]))
        lines = lines.with_lines(self._tangent_lines(p / np.clip(q, 1e-12, 1.0), _FIRST))
        reach = _REACH
        for _ in range(_ROUNDS):
            optimum = rows.solve_with_lines(lines)
            if optimum is None:
                return
            solution, relevant = optimum
            yield solution
            tangency = self._points_of_tangency(solution)
            ratio = p / np.maximum(solution.q, 1e-300)
            lines = lines.select_lines(relevant)
            for t in (ratio, tangency):
                lines = lines.with_lines(self._tangent_lines(t, np.array([-reach, 0.0, reach])))
            reach = max(_NEARER * reach, _NEAREST)

    def _tangent_lines(self, t: Floats, shifts: Floats) -> "_EntryLines":
        """The tangents at t e^shift for every entry, where a distribution can be: t = p/q is at least p."""
        points = np.clip(t[:, None] * np.exp(shifts), self.examples.mass[:, None], 1e100)
        with np.errstate(all="ignore"):
            slope, intercept = tangent_line(self.curve, points)
        usable = (np.abs(slope) < _EXTREME) & (np.abs(intercept) < _EXTREME)
        entry = np.broadcast_to(np.arange(t.size)[:, None], points.shape)
        return _EntryLines(entry[usable], slope[usable], intercept[usable])

    def _points_of_tangency(self, solution: CutSolution) -> Floats:
        """t where a line whose intercept is the client's level touches f, within the bounds of the entry."""
        p, floor = self.examples.mass, solution.floor[self.examples.outcome]
        level = -solution.multiplier[self.examples.client_of_entry]
        low, high = np.log(p / floor) - self.epsilon, np.log(p / floor)
        for _ in range(40):
            middle = (low + high) / 2.0
            is_above = self.curve.tangent_intercept(np.exp(middle)) > level  # the intercept falls as t grows
            low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
        return np.exp((low + high) / 2.0)


@dataclass(frozen=True, eq=False)
class _EntryLines:
    """Lines below f, each for one entry."""

    entry: NDArray[np.int64]
    slope: Floats
    intercept: Floats

    def with_lines(self, other: "_EntryLines") -> "_EntryLines":
        return _EntryLines(
            np.concatenate([self.entry, other.entry]),
            np.concatenate([self.slope, other.slope]),
            np.concatenate([self.intercept, other.intercept]),
        )

    def select_lines(self, mask: NDArray[np.bool_]) -> "_EntryLines":
        return _EntryLines(self.entry[mask], self.slope[mask], self.intercept[mask])


class _CutProgramme:
    """The constant rows. Columns: the ceiling E m (K), that of every other outcome, E |m|, q, the rests, g and T."""

    def __init__(self, problem: CutProblem) -> None:
        self.problem = problem
        examples, ratio = problem.examples, math.exp(problem.epsilon)
        n, seen_count, size = len(examples), examples.seen_outcomes.size, examples.mass.size
        unseen_count = examples.size - seen_count
        self.open = np.flatnonzero(examples.partial_support_indicators)
        rests = self.open.size
        self.start = np.cumsum([0, seen_count, 1, 1, size, rests, size, 1])
        floor, other, total, q, rest, g, time = self.start[:-1]
        width = int(self.start[-1])
        entries, rest_index = np.arange(size), np.full(n, -1)
        rest_index[self.open] = np.arange(rests)
        partial = rest_index[examples.client_of_entry] >= 0
        clients, rest_of_entry = np.arange(rests), rest_index[examples.client_of_entry[partial]]
        seen_part = (rest_of_entry, floor + examples.outcome[partial])
        x, rest_zeros, entry_zeros, totals = (
            np.arange(seen_count),
            np.zeros(rests),
            np.zeros(size),
            np.full(rests, total),
        )
        self.fixed = [
            SparseRows.from_parts(
                entry_zeros, (entries, q + entries, -1.0), (entries, floor + examples.outcome, 1.0 / ratio)
            ),
            SparseRows.from_parts(entry_zeros, (entries, q + entries, 1.0), (entries, floor + examples.outcome, -1.0)),
            SparseRows.from_parts(
                rest_zeros, (clients, rest + clients, -1.0), (clients, totals, 1.0 / ratio), (*seen_part, -1.0 / ratio)
            ),
            SparseRows.from_parts(
                rest_zeros, (clients, rest + clients, 1.0), (clients, totals, -1.0), (*seen_part, 1.0)
            ),
            SparseRows.from_parts(
                np.full(seen_count, ratio * problem.most), (x, np.full(seen_count, total), 1.0), (x, floor + x, -1.0)
            ),
        ]
        if unseen_count:
            self.fixed.append(
                SparseRows.from_parts(np.full(1, ratio * problem.most), ([0], [total], 1.0), ([0], [other], -1.0))
            )
        normal = SparseRows.from_parts(
            np.ones(n), (examples.client_of_entry, q + entries, 1.0), (self.open, rest + clients, 1.0)
        )
        sums = (np.zeros(seen_count), floor + x, 1.0), ([0], [other], float(unseen_count)), ([0], [total], -1.0)
        self.equal = SparseRows.stack([normal, SparseRows.from_parts(np.zeros(1), *sums)])
        self.tilt = float(problem.curve.slope_at_one)
        at_zero = problem.curve.at_zero + self.tilt if rests else 0.0
        objective = np.zeros(width)
        if problem.worst:
            objective[time] = 1.0
            time_part = np.arange(n), np.full(n, time), -1.0
            costs = (examples.client_of_entry, g + entries, 1.0), (self.open, rest + clients, at_zero), time_part
            self.fixed.append(SparseRows.from_parts(np.zeros(n), *costs))
        else:
            objective[g : g + size] = examples.weight[examples.client_of_entry]
            objective[rest : rest + rests] = at_zero * examples.weight[self.open]
        self.objective = objective
        least = ratio * problem.least
        self.bounds = np.vstack([
            np.tile([least, np.inf], (seen_count, 1)), [[least, np.inf]], [[1.0, ratio]],
            np.tile([0.0, 1.0], (size + rests, 1)), np.tile([-np.inf, np.inf], (size + 1, 1)),
        ])  # fmt: skip

    def solve_with_lines(self, lines: _EntryLines) -> tuple[CutSolution, NDArray[np.bool_]] | None:
        """The solution with these lines, and which of them matter; None if the solver finds none."""
        from scipy.optimize import linprog

        examples = self.problem.examples
        p, number, width = examples.mass, lines.entry.size, int(self.start[-1])
        floor, other, _, q, _, g, _ = self.start[:-1]
        # of f less its tangent at 1, whose costs are small
        slope, intercept = (lines.slope - self.tilt, lines.intercept + self.tilt)
        scale = 1.0 / np.maximum(1.0, np.abs(intercept))
        index = np.arange(number)
        right = -scale * slope * p[lines.entry]
        cuts = SparseRows.from_parts(
            right, (index, g + lines.entry, -scale), (index, q + lines.entry, scale * intercept)
        )
        rows = SparseRows.stack([*self.fixed, cuts])
        optimum = linprog(
            self.objective, A_ub=rows.as_sparse_matrix(width), b_ub=rows.right,
            A_eq=self.equal.as_sparse_matrix(width), b_eq=self.equal.right,
            bounds=self.bounds, method="highs", options=_FINE_OPTIONS,
        )  # fmt: skip
        if optimum.status != 0:
            return None
        x, n = optimum.x, len(examples)
        marginals = -np.asarray(optimum.ineqlin.marginals)
        mixing = np.maximum(marginals[-number:], 0.0) * scale
        weights = np.maximum(marginals[-number - n : -number], 0.0) if self.problem.worst else examples.weight
        mixing_sums = np.bincount(lines.entry, weights=mixing, minlength=p.size)
        masses = np.maximum(x[q : q + p.size], 1e-300)
        with np.errstate(all="ignore"):
            mixed_intercept = np.bincount(lines.entry, weights=mixing * lines.intercept, minlength=p.size) / mixing_sums
            multiplier = -np.asarray(optimum.eqlin.marginals)[:n] / weights + self.tilt
            tangent = self.problem.curve.tangent_intercept(p / masses)
        ratio, size = math.exp(self.problem.epsilon), examples.size
        margin = _INSIDE / (ratio + size - 1)
        low = np.maximum(x / ratio, self.problem.least) * (1.0 - _INSIDE) + margin
        solution = CutSolution(
            low[floor : floor + examples.seen_outcomes.size],
            float(low[other]),
            masses,
            weights / weights.sum(),
            np.where(weights > 0.0, multiplier, 0.0),
            np.where(np.isfinite(mixed_intercept), mixed_intercept, tangent),
        )
        cost = x[g : g + p.size][lines.entry]
        excess = cost - (slope * p[lines.entry] + intercept * masses[lines.entry])
        return solution, (mixing > 0.0) | (excess <= _SLACK * (np.abs(cost) + float(optimum.fun)))


def minimax_tv_floor_and_weights(laws: Floats, epsilon: float, basis: Floats | None = None) -> tuple[Floats, Floats]:
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
    ones, empty = sparse.eye_array(size), sparse.csr_array((size, size))
    sums, time = sparse.kron(sparse.eye_array(n), np.ones((1, k))), sparse.csr_array(-np.ones((n, 1)))
    zero, column = sparse.csr_array((n, size)), sparse.csr_array((size, 1))
    no_floor = sparse.csr_array((n, number))
    total = sparse.hstack([sparse.csr_array(shapes.sum(axis=1)[None, :]), sparse.csr_array((1, 1 + 2 * size))])
    rows = sparse.vstack([
        sparse.hstack([floors, column, -ones, empty]),
        sparse.hstack([-ratio * floors, column, empty, -ones]),
        sparse.hstack([no_floor, time, sums, zero]),
        sparse.hstack([no_floor, time, zero, sums]),
        total, -total,
    ])  # fmt: skip
    right = np.concatenate([laws.ravel(), -laws.ravel(), np.zeros(2 * n), [1.0, -1.0 / ratio]])
    smallest = least if basis is None else 0.0
    optimum = linprog(
        np.concatenate([np.zeros(number), [1.0], np.zeros(2 * size)]),
        A_ub=rows, b_ub=right, bounds=[(smallest, None)] * number + [(None, None)] + [(0, None)] * (2 * size), method="highs",
    )  # fmt: skip
    if optimum.status != 0:
        raise UnsettledError(f"the linear programme did not settle ({optimum.message}); report this with the clients")
    duals = -np.asarray(optimum.ineqlin.marginals)[2 * size : 2 * size + 2 * n]
    weights = np.maximum(duals[:n] + duals[n:], 0.0)
    return np.maximum(optimum.x[:number], smallest), weights / weights.sum()


LARGEST_PAIRS = 40_000  # numbers h of all pairs, outcomes and z together
_PLACES = 9  # z of a notion that names none
_BEYOND = 1.2  # of the box's epsilon, up to which they go
_FAR_PLACES = np.geomspace(1e-3, 12.0, 14)
_FIRST_PAIR_PLACES = np.concatenate([-_FAR_PLACES[::-1], [-1e-6, 0.0, 1e-6], _FAR_PLACES])
_REFINED = (0.1, 0.02, 2e-3)  # offsets of log p/q around a solution
_NARROW = 1e-5  # a bracket, or a gain of the lower side, that ends the refinement
_ROUNDED = 1e-6
_LOST = 1e-11  # bound on the rounding of vertices and profiles
_MIXED = np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 41)])  # shares of the mean law, tried in turn


@dataclass(frozen=True)
class PairConstraints:
    """The constraints on every pair of clients: E_z <= delta, for each (z, delta)."""

    z: tuple[float, ...]
    delta: tuple[float, ...]

    @classmethod
    def for_notion(cls, notion: Privacy, epsilon: float) -> "PairConstraints":
        """The constraints of a notion at some z; `epsilon` is the pure budget of a sampler that is known to keep it."""
        if isinstance(notion, Approximate):
            return cls((math.exp(notion.epsilon) * (1.0 + 1e-14),), (notion.delta,))  # E_z falls as z grows
        betas = np.linspace(0.0, _BEYOND * epsilon, _PLACES)
        return cls(
            tuple(math.exp(beta) * (1.0 + 1e-14) for beta in betas.tolist()),
            tuple(min(1.0, notion.profile(beta) * (1.0 + 1e-12)) for beta in betas.tolist()),
        )


def minimax_bracket_under_notion(
    laws: Floats, notion: Privacy, epsilon: float, f: FDivergence, known_risk: float
) -> tuple[float, float]:
    """(lower, upper) around the minimax divergence over the hull of distributions (n, k); `known_risk` is that of a known sampler.

    If there are too many pairs, a subset bounds it from below, and upper is inf.
    """
    promises, (n, k) = PairConstraints.for_notion(notion, epsilon), laws.shape
    most = max(2, math.isqrt(LARGEST_PAIRS // (k * len(promises.z))))
    clients = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
    programme = PairProgramme(laws[clients], promises, f, known_risk)
    lower, upper = 0.0, math.inf
    for reach in (*_REFINED, 0.0):
        solution = programme.solve_for_outputs_and_bound()
        if solution is None:
            break
        q, bound = solution
        gain, lower = bound - lower, max(lower, bound)
        if len(clients) == n:
            upper = min(upper, _risk_after_mixing_with_mean(laws, q, notion, f))
        if min(upper - lower, gain) <= _NARROW * lower:
            break
        programme.add_tangents_near_outputs(q, reach)
    return max(0.0, lower * (1.0 - _LOST) - _LOST), upper


class PairProgramme:
    """The linear programme. Columns: q (n k), g (n k), h (z, pairs, k), T; all between 0 and known upper bounds."""

    def __init__(self, laws: Floats, promises: PairConstraints, f: FDivergence, known_risk: float) -> None:
        objective = Objective.of_divergence(f)
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
        self.most[size : 2 * size] = self.most[-1] = known_risk - self.shift + self.k * _ROUNDED
        x = np.arange(self.k)
        costs = np.repeat(np.arange(self.n), self.k), size + np.arange(size), 1.0
        times = np.arange(self.n), np.full(self.n, self.wide - 1), -1.0
        self.fixed = [SparseRows.from_parts(np.zeros(self.n), costs, times)]
        for index, (z, delta) in enumerate(zip(promises.z, promises.delta, strict=True)):
            start = 2 * size + index * pairs * self.k
            rows = np.arange(pairs * self.k)
            first_column, second_column = ((side[:, None] * self.k + x).ravel() for side in (first, second))
            excess_parts = (rows, first_column, 1.0), (rows, second_column, -z), (rows, start + rows, -1.0)
            self.fixed.append(SparseRows.from_parts(np.zeros(rows.size), *excess_parts))
            self.fixed.append(SparseRows.from_parts(np.full(pairs, delta), (rows // self.k, start + rows, 1.0)))
        zeros = np.flatnonzero(laws.ravel() == 0.0)
        if zeros.size:
            rows = np.arange(zeros.size)
            parts = (rows, zeros, self.at_zero), (rows, size + zeros, -1.0)
            self.fixed.append(SparseRows.from_parts(np.zeros(zeros.size), *parts))
        self.held = np.flatnonzero(laws.ravel() > 0.0)
        self.lines = self._tangent_rows(np.ones(self.held.size), _FIRST_PAIR_PLACES)

    def _tangent_rows(self, t: Floats, shifts: Floats) -> SparseRows:
        """Rows i q + s p <= g for lines below f minus its tangent at 1, near t of every entry with mass."""
        p = self.p.ravel()[self.held]
        points = np.clip(t[:, None] * np.exp(shifts), p[:, None], 1e12)
        intercepts = self.curve.tangent_intercept(points)
        # rounded so that they lie below f
        slope, intercept = (
            part.ravel() for part in self.curve.steepest_line_with_intercept(intercepts.ravel(), points.ravel())
        )
        entry = np.repeat(self.held, len(shifts))
        slope, intercept = slope - self.tilt, intercept + self.tilt
        scale = 1.0 / np.maximum(1.0, np.abs(intercept))
        usable = np.isfinite(slope) & np.isfinite(intercept)
        rows = np.arange(int(usable.sum()))
        entry, slope, intercept, scale = entry[usable], slope[usable], intercept[usable], scale[usable]
        right = -scale * slope * self.p.ravel()[entry]
        return SparseRows.from_parts(right, (rows, entry, scale * intercept), (rows, self.size + entry, -scale))

    def add_tangents_near_outputs(self, q: Floats, reach: float) -> None:
        """Add lines near a solution."""
        t = self.p.ravel()[self.held] / np.maximum(q.ravel()[self.held], 1e-12)
        self.lines = SparseRows.stack([self.lines, self._tangent_rows(t, np.array([-reach, 0.0, reach]))])

    @property
    def current_rows(self) -> SparseRows:
        """All rows, with the current lines."""
        return SparseRows.stack([*self.fixed, self.lines])

    def solve_for_outputs_and_bound(self) -> tuple[Floats, float] | None:
        """The outputs (n, k) of a solution, and the bound that its multipliers prove; None if there is no solution."""
        from scipy.optimize import linprog

        rows = self.current_rows
        sums = SparseRows.from_parts(np.ones(self.n), (np.repeat(np.arange(self.n), self.k), np.arange(self.size), 1.0))
        cost = np.zeros(self.wide)
        cost[-1] = 1.0
        optimum = linprog(
            cost, A_ub=rows.as_sparse_matrix(self.wide), b_ub=rows.right, A_eq=sums.as_sparse_matrix(self.wide), b_eq=sums.right,
            bounds=np.column_stack([self.least, self.most]), method="highs", options=_FINE_OPTIONS,
        )  # fmt: skip
        if optimum.status != 0:
            return None
        upper, equal = np.maximum(-np.asarray(optimum.ineqlin.marginals), 0.0), -np.asarray(optimum.eqlin.marginals)
        q = np.maximum(optimum.x[: self.size].reshape(self.n, self.k), 0.0)
        return q / q.sum(axis=1, keepdims=True), self.proved_bound(rows, upper, equal)

    def proved_bound(self, rows: SparseRows, upper: Floats, equal: Floats) -> float:
        """-y b plus the least of (c + A'y) v over the columns' ranges, in rationals."""
        y = [Fraction(dual) for dual in upper.tolist()]
        reduced_costs = [Fraction(0)] * self.wide
        reduced_costs[-1] = Fraction(1)
        mask = upper[rows.row] > 0.0
        entries = zip(rows.row[mask].tolist(), rows.column[mask].tolist(), rows.value[mask].tolist(), strict=True)
        for row, column, value in entries:
            reduced_costs[column] += y[row] * Fraction(value)
        bound = -sum((y[row] * Fraction(rows.right[row]) for row in np.flatnonzero(upper).tolist()), Fraction(0))
        for client, multiplier in enumerate(equal.tolist()):
            bound -= Fraction(multiplier)
            for x in range(self.k):
                reduced_costs[client * self.k + x] += Fraction(multiplier)
        for price, least, most in zip(reduced_costs, self.least.tolist(), self.most.tolist(), strict=True):
            if price:
                bound += price * Fraction(most if price < 0 else least)
        return float(bound) + self.shift


def _risk_after_mixing_with_mean(laws: Floats, q: Floats, notion: Privacy, f: FDivergence) -> float:
    """The largest divergence of outputs after mixing with their mean until they keep the notion; inf if that takes too much mixing."""
    mean = q.mean(axis=0)
    for share in _MIXED.tolist():
        mixed_outputs = (1.0 - share) * q + share * mean
        if _all_pairs_satisfy_notion(mixed_outputs, notion):
            return float(np.max(f(laws, mixed_outputs)))
    return math.inf


def _all_pairs_satisfy_notion(q: Floats, notion: Privacy) -> bool:
    """Whether every pair has a trade-off function above the notion's, at its corners."""
    for first in range(len(q)):
        for second in range(len(q)):
            if first != second and not _pair_satisfies_notion(q[first], q[second], notion):
                return False
    return True


def _pair_satisfies_notion(p: Floats, q: Floats, notion: Privacy) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0.0, p / np.maximum(q, 1e-300), 0.0), kind="stable")
    miss_rates, false_alarm_rates = (
        1.0 - np.cumsum(p[order]),
        np.cumsum(q[order]),
    )  # reject on the outcomes that p favours
    for x, y in zip(false_alarm_rates.tolist(), miss_rates.tolist(), strict=True):
        least = notion.tradeoff(min(max(x * (1.0 - 1e-13), 0.0), 1.0)) if x < 1.0 - 1e-13 else 0.0
        if least > 0.0 and least + 1e-13 > y:
            return False
    return True
