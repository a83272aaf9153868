"""Brackets of the minimax risk under notions of privacy other than pure epsilon, on small finite spaces.

A sampler that keeps a notion with the profile delta gives every two clients laws with E_z(Q_i || Q_j) = sum_x (Q_i - z Q_j)_+ <= delta(log z)
for every z (`discreet.privacy._notion`). E_z and D_f are jointly convex, so a sampler has to be known at the vertices P_i of the family only:
mixtures of clients get the mixtures of their laws. With finitely many z and lines below f the least largest divergence is bounded from below
by a linear programme:

    min T    with    sum_x g_ix <= T,    g_ix >= i q_ix + s p_ix for each line,    q_ix - z q_jx <= h_ijzx,    sum_x h_ijzx <= delta(log z).

**Lower side.** Any multipliers y >= 0 of the rows A v <= b bound it: c v >= -y b + sum over columns of the least of (c + A'y) v over the
column's range. That is computed in rationals from the programme's own multipliers, so its tolerances cannot make the bound wrong.

**Upper side.** The laws that are found, mixed with their mean until every pair keeps the whole notion, are a sampler. Between two laws on k
outcomes the trade-off function has at most k corners, and the notion is kept if f is at most that at each of them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design._solving import Objective
from discreet.divergences import FDivergence
from discreet.privacy import Approximate, Privacy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_PAIRS = 40_000  # numbers h of all pairs, outcomes and z together
_PLACES = 9  # z of a notion that names none
_BEYOND = 1.2  # of the box's epsilon, up to which they go
_FIRST = np.concatenate([-np.geomspace(1e-3, 12.0, 14)[::-1], [-1e-6, 0.0, 1e-6], np.geomspace(1e-3, 12.0, 14)])
_REFINED = (0.1, 0.02, 2e-3)  # of log p/q, around a solution
_NARROW = 1e-5  # a bracket, or a gain of the lower side, that ends the refinement
_FINEST = 1e-10
_ROUNDED = 1e-6
_LOST = 1e-11  # what the rounding of vertices and profiles can have added
_MIXED = np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 41)])  # shares of the mean law, tried in turn


@dataclass(frozen=True)
class PairPromises:
    """What every pair of clients is held to: E_z <= delta, for each (z, delta)."""

    z: tuple[float, ...]
    delta: tuple[float, ...]

    @classmethod
    def of(cls, notion: Privacy, epsilon: float) -> "PairPromises":
        """The promises of a notion at some z; `epsilon` is the pure budget of the sampler that is known to keep it."""
        if isinstance(notion, Approximate):
            return cls((math.exp(notion.epsilon) * (1.0 + 1e-14),), (notion.delta,))  # E_z falls as z grows
        betas = np.linspace(0.0, _BEYOND * epsilon, _PLACES)
        return cls(
            tuple(math.exp(beta) * (1.0 + 1e-14) for beta in betas.tolist()),
            tuple(min(1.0, notion.profile(beta) * (1.0 + 1e-12)) for beta in betas.tolist()),
        )


def notion_bracket(laws: Floats, notion: Privacy, epsilon: float, f: FDivergence, own: float) -> tuple[float, float]:
    """(lower, upper) around the least largest divergence over the hull of laws (n, k); `own` is what a known sampler has.

    Where all pairs of the laws would be too many, some of them bound it from below, and nothing is found from above.
    """
    promises, (n, k) = PairPromises.of(notion, epsilon), laws.shape
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
    """The linear programme. Columns: q (n k), g (n k), h (z, pairs, k), T; all between 0 and known numbers."""

    def __init__(self, laws: Floats, promises: PairPromises, f: FDivergence, own: float) -> None:
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
        self.lines = self._lines(np.ones(self.held.size), _FIRST)

    def _lines(self, t: Floats, shifts: Floats) -> "_SparseRows":
        """Rows i q + s p <= g for lines below f less its tangent at 1, near t of every entry with mass."""
        p = self.p.ravel()[self.held]
        places = np.clip(t[:, None] * np.exp(shifts), p[:, None], 1e12)
        near = self.curve.first(places)
        slope, intercept = (
            part.ravel() for part in self.curve.line(near.ravel(), places.ravel())
        )  # rounded so that they lie below f
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
        self.lines = self.lines.stack(self._lines(t, np.array([-reach, 0.0, reach])))

    @property
    def whole(self) -> "_SparseRows":
        """All rows with the lines there are now."""
        found = self.fixed[0]
        for rows in (*self.fixed[1:], self.lines):
            found = found.stack(rows)
        return found

    def solve(self) -> tuple[Floats, float] | None:
        """The laws (n, k) of a solution, and the bound that its multipliers prove; None where there is no solution."""
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
        """With further entries in the same rows, and right sides."""
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
    """The largest divergence of laws that were mixed with their mean until they keep the notion; infinite where that takes too much."""
    mean = q.mean(axis=0)
    for share in _MIXED.tolist():
        mixed = (1.0 - share) * q + share * mean
        if _all_pairs_keep(mixed, notion):
            return float(np.max(f(laws, mixed)))
    return math.inf


def _all_pairs_keep(q: Floats, notion: Privacy) -> bool:
    """Whether every pair of laws has a trade-off function above the notion's, at its corners."""
    for first in range(len(q)):
        for second in range(len(q)):
            if first != second and not _pair_keeps(q[first], q[second], notion):
                return False
    return True


def _pair_keeps(one: Floats, other: Floats, notion: Privacy) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(one > 0.0, one / np.maximum(other, 1e-300), 0.0), kind="stable")
    missed, false = 1.0 - np.cumsum(one[order]), np.cumsum(other[order])  # reject on the outcomes that `one` favours
    for x, y in zip(false.tolist(), missed.tolist(), strict=True):
        needed = notion.tradeoff(min(max(x * (1.0 - 1e-13), 0.0), 1.0)) if x < 1.0 - 1e-13 else 0.0
        if needed > 0.0 and needed + 1e-13 > y:
            return False
    return True
