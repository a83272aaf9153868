"""The linear programme of a floor, solved for some of its rows: min t with t >= end_i + sum_y m_y g_i(y) for every row i of them.

The variables are the ceiling e^eps m rather than the floor, so that no entry is larger than 1 however large epsilon is; its mass is
between 1 and e^eps. Two forms: with one number for each orbit of points, or on a line, where g is piecewise linear in y with at most four
kinks, so that in terms of M_j = m_1 + ... + m_j and T_j = h_1 M_1 + ... + h_j M_j, with h_j the gap to the next point, a row has a handful of
entries however many points there are.
"""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.errors import DiscreetError

Floats = NDArray[np.float64]
_FEW = 200
_KINK = 1e-7  # of a change of slope, which is rounding below it


class FloorProgramme(abc.ABC):
    """What is solved, whichever rows are known."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    @abc.abstractmethod
    def _in_variables(self, slopes: Floats) -> Any:
        """Rows over all points, as sparse rows over the variables."""

    @abc.abstractmethod
    def _masses(self, variables: Floats) -> Floats:
        """The ceiling, point by point."""

    @property
    @abc.abstractmethod
    def _members(self) -> Floats:
        """How many points the variables stand for, 0 for those that only help."""

    @property
    def _definitions(self) -> Any:
        """Equations with right-hand side 0 between the variables and t, or None."""
        return None

    @property
    def _method(self) -> str:
        """What scipy calls the way to solve it."""
        return "highs"

    def solve(self, slopes: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """The floor m, point by point, with the least t >= ends + slopes m, and the multipliers of these rows."""
        sparse, members, equations = scipy.sparse, self._members, self._definitions
        rows = self._in_variables(slopes / self._ratio)
        mass = np.append(members, 0.0)[None, :]
        found = scipy.optimize.linprog(
            np.append(np.zeros(len(members)), 1.0),
            A_ub=sparse.vstack([sparse.hstack([rows, -np.ones((rows.shape[0], 1))]), mass, -mass]).tocsr(),
            b_ub=np.concatenate([-ends, [self._ratio, -1.0]]),
            A_eq=equations,
            b_eq=None if equations is None else np.zeros(equations.shape[0]),
            bounds=(0.0, None),
            method=self._method,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise DiscreetError(f"the linear programme of the floor was not solved: {found.message}; take fewer points")
        masses = np.maximum(self._masses(found.x[:-1]), 0.0) / self._ratio
        return masses, -np.asarray(found.ineqlin.marginals[: rows.shape[0]])


class OrbitProgramme(FloorProgramme):
    """One variable for each orbit, the mass of each of its points."""

    def __init__(self, orbits: NDArray[np.intp], ratio: float) -> None:
        super().__init__(ratio)
        self._orbits = orbits
        size = len(orbits)
        self._sums = scipy.sparse.csr_matrix((np.ones(size), (np.arange(size), orbits)))

    def _in_variables(self, slopes: Floats) -> Any:
        return scipy.sparse.csr_matrix(slopes @ self._sums)

    def _masses(self, variables: Floats) -> Floats:
        return np.asarray(variables[self._orbits])

    @property
    def _members(self) -> Floats:
        return np.bincount(self._orbits).astype(np.float64)


class LineProgramme(FloorProgramme):
    """The masses m, and M and T as further variables."""

    def __init__(self, gaps: Floats, ratio: float) -> None:
        super().__init__(ratio)
        self._gaps, self._size = gaps, len(gaps) + 1

    def _in_variables(self, slopes: Floats) -> Any:
        """sum m g = g_k M_k - s_(k-1) T_(k-1) + sum_j (s_(j+1) - s_j) T_j, where s_j is the slope of g from point j to the next."""
        steps = np.diff(slopes, axis=1) / self._gaps
        kinks = np.diff(steps, axis=1)
        kinks[np.abs(kinks) < _KINK] = 0.0
        along = scipy.sparse.csr_matrix(np.hstack([kinks, -steps[:, -1:]]))
        ends = scipy.sparse.csr_matrix(slopes[:, -1:])
        nothing = scipy.sparse.csr_matrix((len(slopes), 2 * self._size - 1))
        return scipy.sparse.hstack([nothing, ends, along])

    def _masses(self, variables: Floats) -> Floats:
        return variables[: self._size]

    @property
    def _members(self) -> Floats:
        return np.repeat([1.0, 0.0], [self._size, 2 * self._size - 1])

    @property
    def _definitions(self) -> Any:
        """M_j = M_(j-1) + m_j and T_j = T_(j-1) + h_j M_j, over the variables m, M, T and t."""
        size, sparse = self._size, scipy.sparse
        sums = sparse.identity(size) - sparse.eye(size, k=-1)
        weighted = sparse.hstack([sparse.diags(self._gaps), sparse.csr_matrix((size - 1, 1))])
        areas = sparse.identity(size - 1) - sparse.eye(size - 1, k=-1)
        first = sparse.hstack([-sparse.identity(size), sums, sparse.csr_matrix((size, size))])
        second = sparse.hstack(
            [sparse.csr_matrix((size - 1, size)), -weighted, areas, sparse.csr_matrix((size - 1, 1))]
        )
        return sparse.vstack([first, second]).tocsr()

    @property
    def _method(self) -> str:
        return "highs" if self._size <= _FEW else "highs-ipm"  # simplex steps are many where optima are
