"""Linear programmes with nothing of the package in them, and the spaces they are tried on."""

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

Floats = NDArray[np.float64]


def grid(*sides: int) -> Floats:
    """All whole points of a box."""
    return np.array(list(product(*map(range, sides))), dtype=np.float64)


def over_all_mechanisms(distances: Floats, epsilon: float) -> float:
    """min over m and all q_x of max_x sum_y d(x, y) q_x(y), m <= q_x <= e^epsilon m: the whole programme, nothing of the package in it."""
    k = len(distances)
    each, floor = sparse.identity(k * k), sparse.vstack([sparse.identity(k)] * k)
    column = sparse.csr_matrix((k * k, 1))
    costs = sparse.block_diag([row[None, :] for row in distances])
    rows = sparse.vstack(
        [
            sparse.hstack([floor, -each, column]),
            sparse.hstack([-math.exp(epsilon) * floor, each, column]),
            sparse.hstack([sparse.csr_matrix((k, k)), costs, -np.ones((k, 1))]),
        ]
    )
    found = linprog(
        np.eye(1, k + k * k + 1, k + k * k)[0],
        A_ub=rows.tocsr(),
        b_ub=np.zeros(2 * k * k + k),
        A_eq=sparse.hstack(
            [sparse.csr_matrix((k, k)), sparse.kron(sparse.identity(k), np.ones((1, k))), sparse.csr_matrix((k, 1))]
        ).tocsr(),
        b_eq=np.ones(k),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def cheapest_transport(law: Floats, distances: Floats, low: Floats, high: Floats) -> float:
    """min sum d(x, y) plan(x, y) over plans whose rows sum to the law and whose columns lie between the bounds."""
    k = len(law)
    arrived = sparse.hstack([sparse.identity(k)] * k)
    found = linprog(
        distances.ravel(),
        A_ub=sparse.vstack([arrived, -arrived]).tocsr(),
        b_ub=np.concatenate([high, -low]),
        A_eq=sparse.kron(sparse.identity(k), np.ones((1, k))).tocsr(),
        b_eq=law,
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.fun)
