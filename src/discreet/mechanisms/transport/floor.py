"""The floor m whose box serves the worst client best in Wasserstein-1 distance, by cutting planes, with a certified gap.

A sampler on finitely many points is eps-LDP if and only if m <= Q(.|P) <= e^eps m for some measure m. W1 is jointly convex, so the
worst client is a point mass x, which is best served by raising the points nearest to x from m to e^eps m until the mass is one:

    cost_x(m) = max over t of  t + sum_y m_y g_{x,t}(y),      g_{x,t}(y) = d(x,y) - t - (e^eps - 1) (t - d(x,y))_+

(linear-programming duality; the best t is the distance at which the mass is used up). So the minimax value is that of one linear
programme in m with a row for every (x, t) (Takakura, arXiv 2605.10015, has the larger one in all q_x). Rows are added where a solution
violates them; every solution is a lower bound on what any mechanism reaches, and its own worst cost an upper one.

On a line g is piecewise linear in y with at most four kinks, so in terms of M_j = m_1 + ... + m_j and T_j = h_1 M_1 + ... + h_j M_j, with
h_j the gap to the next point, its row has a handful of entries however many points there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.errors import DiscreetError

Floats = NDArray[np.float64]
GAP = 1e-6  # relative, between what is attained and what is certified
_TINY = 1e-9  # of the largest distance, below which a worst case is lost in the solver's rounding
_ROUNDS = 200
_FEW = 200
_KINK = 1e-7  # of a change of slope, which is rounding below it


@dataclass(frozen=True)
class Floor:
    """A floor, the worst distance that its box attains, and one that no mechanism goes below (as far as the solver's 1e-9 goes)."""

    masses: Floats
    value: float
    bound: float


def best_floor(distances: Floats, gaps: Floats | None, ratio: float) -> Floor:
    """The minimax floor for a matrix of distances; `gaps` between neighbours where the points lie on a line, in order."""
    scale, size = float(distances.max()), len(distances)
    distances = distances / scale
    programme = _Programme(size, ratio, None if gaps is None else gaps / scale)
    order = np.argsort(distances, axis=1, kind="stable")
    ordered = np.take_along_axis(distances, order, axis=1)
    masses, bound, best = np.full(size, 1.0 / (ratio + size - 1.0)), 0.0, Floor(np.zeros(size), np.inf, 0.0)
    for _ in range(_ROUNDS):
        used_up = _used_up(masses, order, ordered, ratio)
        slopes = distances - used_up[:, None] - (ratio - 1.0) * np.maximum(used_up[:, None] - distances, 0.0)
        costs = used_up + slopes @ masses
        if costs.max() < best.value:
            best = Floor(masses, float(costs.max()), bound)
        if best.value - bound <= max(GAP * best.value, _TINY):
            return Floor(best.masses, best.value * scale, min(bound, best.value) * scale)
        worse = costs > bound + 0.1 * GAP * best.value
        programme.add(slopes[worse], used_up[worse])
        masses, bound = programme.solved()
    raise DiscreetError(
        f"no floor within {GAP:g} of the best was found for {size} points; take fewer or more evenly spaced ones"
    )


def _used_up(masses: Floats, order: NDArray[np.intp], ordered: Floats, ratio: float) -> Floats:
    """For every point the distance at which raising the nearest ones has used up the mass."""
    filled, left = np.cumsum((ratio - 1.0) * masses[order], axis=1), (1.0 - masses.sum()) * (1.0 - 1e-12)
    place = np.where(filled[:, -1] < left, len(masses) - 1, np.argmax(filled >= left, axis=1))
    return np.asarray(ordered[np.arange(len(masses)), place])


class _Programme:
    """min t over the ceiling ratio m >= 0 of mass in [1, ratio], subject to the rows so far; on a line with M and T as further variables.

    (The ceiling rather than the floor, so that no entry is larger than 1 however large epsilon is.)
    """

    def __init__(self, size: int, ratio: float, gaps: Floats | None) -> None:
        self._size, self._ratio, self._gaps = size, ratio, gaps
        self._rows: list[Any] = []
        self._right: list[Floats] = []

    def add(self, slopes: Floats, used_up: Floats) -> None:
        """Rows t >= used_up + slopes m."""
        slopes = slopes / self._ratio
        self._rows.append(scipy.sparse.csr_matrix(slopes) if self._gaps is None else self._on_the_line(slopes))
        self._right.append(-used_up)

    def _on_the_line(self, slopes: Floats) -> Any:
        """sum m g = g_k M_k - s_(k-1) T_(k-1) + sum_j (s_(j+1) - s_j) T_j, where s_j is the slope of g from point j to the next."""
        assert self._gaps is not None
        steps = np.diff(slopes, axis=1) / self._gaps
        kinks = np.diff(steps, axis=1)
        kinks[np.abs(kinks) < _KINK] = 0.0
        along = scipy.sparse.csr_matrix(np.hstack([kinks, -steps[:, -1:]]))
        ends = scipy.sparse.csr_matrix(slopes[:, -1:])
        nothing = scipy.sparse.csr_matrix((len(slopes), 2 * self._size - 1))
        return scipy.sparse.hstack([nothing, ends, along])

    def solved(self) -> tuple[Floats, float]:
        """m and t."""
        size, sparse = self._size, scipy.sparse
        rows = sparse.vstack(self._rows)
        others = rows.shape[1] - size
        mass = sparse.hstack([sparse.csr_matrix(np.ones((1, size))), sparse.csr_matrix((1, others + 1))])
        limits = sparse.vstack([sparse.hstack([rows, -np.ones((rows.shape[0], 1))]), mass, -mass])
        found = scipy.optimize.linprog(
            np.append(np.zeros(size + others), 1.0),
            A_ub=limits.tocsr(),
            b_ub=np.concatenate([*self._right, [self._ratio, -1.0]]),
            A_eq=None if self._gaps is None else self._definitions(),
            b_eq=None if self._gaps is None else np.zeros(2 * size - 1),
            bounds=(0.0, None),
            method="highs" if size <= _FEW else "highs-ipm",  # simplex steps are many where optima are
        )
        if found.status != 0:
            raise DiscreetError(f"the linear programme of the floor was not solved: {found.message}; take fewer points")
        return np.maximum(found.x[:size], 0.0) / self._ratio, float(found.fun)

    def _definitions(self) -> Any:
        """M_j = M_(j-1) + m_j and T_j = T_(j-1) + h_j M_j, over the variables m, M, T and t."""
        assert self._gaps is not None
        size, sparse = self._size, scipy.sparse
        sums = sparse.identity(size) - sparse.eye(size, k=-1)
        weighted = sparse.hstack([sparse.diags(self._gaps), sparse.csr_matrix((size - 1, 1))])
        areas = sparse.identity(size - 1) - sparse.eye(size - 1, k=-1)
        first = sparse.hstack([-sparse.identity(size), sums, sparse.csr_matrix((size, size))])
        second = sparse.hstack(
            [sparse.csr_matrix((size - 1, size)), -weighted, areas, sparse.csr_matrix((size - 1, 1))]
        )
        return sparse.vstack([first, second]).tocsr()
