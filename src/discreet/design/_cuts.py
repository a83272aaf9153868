"""The best floor by linear programmes, for what the interior point method does not settle: f with kinks, and values near rounding.

A convex f is the largest of the lines below it. With finitely many lines for each entry, the least mean or the least largest cost over
all epsilon-LDP samplers is a linear programme in the floor m, the output distributions q_j and their costs g:

    g_jx >= i q_jx + s p_jx for each line (s, i),    m <= q_j <= E m,    |q_j| = 1,    E = e^eps.

Each round adds the lines that touch f at the last solution and near it. The programme's own multipliers make a certificate
(`discreet.design._certificate`): that of |q_j| = 1 is l_j, those of an entry's lines mix them into one line, and over the worst
case those of the clients are their weights. As with the interior point method, the certificate is computed from them independently.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design._curves import ConvexCurve, tangent_line
from discreet.design._examples import ExampleClients, Floats

LARGEST_CUT = 1 << 13  # entries of all clients together
_ROUNDS = 30
_SIDE = np.array([1e-3, 0.01, 0.05, 0.15, 0.4, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0])
_FIRST = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])  # log t of the first lines, around the distributions given
_REACH, _NEARER, _NEAREST = 0.1, 0.4, 1e-8  # of log t: the first distance of neighbours, its factor, and its end
_AT_ONE = 1e-6  # on both sides of t = 1, where most kinks are
_SLACK = 1e-3  # of an entry's cost, past which a line is dropped
_INSIDE = 2.0**-34  # the share of Q*'s floor in the one returned, so that the programme's tolerance breaks no bound
_FINEST = 1e-10  # what a row may be missed by
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
    """What the programmes are about: clients, f as `curve`, and which floors are allowed. `worst`: the largest cost, not the mean."""

    examples: ExampleClients
    curve: ConvexCurve
    epsilon: float
    least: float  # of m, at any outcome
    most: float  # of |m| - m_x, at any outcome
    worst: bool

    def solutions(self, q: Floats) -> Iterator[CutSolution]:
        """Solutions of finer and finer programmes, the first with lines around 1 and around the masses q of the entries."""
        rows = _CutProgramme(self)
        p = self.examples.mass
        lines = self._tangents(np.ones(p.size), np.concatenate([_FIRST, [-_AT_ONE, _AT_ONE]]))
        lines = lines.concat(self._tangents(p / np.clip(q, 1e-12, 1.0), _FIRST))
        reach = _REACH
        for _ in range(_ROUNDS):
            found = rows.solve(lines)
            if found is None:
                return
            solution, kept = found
            yield solution
            touching = self._touching(solution)
            here = p / np.maximum(solution.q, 1e-300)
            lines = lines.only(kept)
            for t in (here, touching):
                lines = lines.concat(self._tangents(t, np.array([-reach, 0.0, reach])))
            reach = max(_NEARER * reach, _NEAREST)

    def _tangents(self, t: Floats, shifts: Floats) -> "_EntryLines":
        """The tangents at t e^shift for every entry, where a distribution can be: t = p/q is at least p."""
        places = np.clip(t[:, None] * np.exp(shifts), self.examples.mass[:, None], 1e100)
        with np.errstate(all="ignore"):
            slope, intercept = tangent_line(self.curve, places)
        usable = (np.abs(slope) < _EXTREME) & (np.abs(intercept) < _EXTREME)
        entry = np.broadcast_to(np.arange(t.size)[:, None], places.shape)
        return _EntryLines(entry[usable], slope[usable], intercept[usable])

    def _touching(self, solution: CutSolution) -> Floats:
        """t where a line whose intercept is the client's level touches f, within the bounds of the entry."""
        p, floor = self.examples.mass, solution.floor[self.examples.outcome]
        level = -solution.multiplier[self.examples.client]
        low, high = np.log(p / floor) - self.epsilon, np.log(p / floor)
        for _ in range(40):
            middle = (low + high) / 2.0
            above = self.curve.first(np.exp(middle)) > level  # the intercept falls as t grows
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
    """The rows that do not change: columns are the ceiling E m (K), that of every other outcome, E |m|, q, the rests, g and T."""

    def __init__(self, problem: CutProblem) -> None:
        from scipy import sparse  # here, because importing it costs more than most commands do

        self.problem, self._sparse = problem, sparse
        examples, ratio = problem.examples, math.exp(problem.epsilon)
        n, kinds, size = len(examples), examples.seen.size, examples.mass.size
        hidden = examples.size - kinds
        self.open = np.flatnonzero(examples.partial)
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
        """The solution with these lines, and which of them matter; None where the programme finds none."""
        from scipy.optimize import linprog

        examples, sparse = self.problem.examples, self._sparse
        p, number = examples.mass, lines.entry.size
        floor, other, _, q, _, g, _ = self.start[:-1]
        slope, intercept = (
            lines.slope - self.tilt,
            lines.intercept + self.tilt,
        )  # of f less its tangent at 1, whose costs are small
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
            tangent = self.problem.curve.first(p / masses)
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
