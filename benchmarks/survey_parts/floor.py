"""The least variance that any report allows, for all marginals together.

Let each client's row be drawn from the uniform population on the product of d columns with k_1, ..., k_d outcomes, and its report from
any epsilon-LDP mechanism, E = e^epsilon. A table over columns C splits into effects, one for each non-empty subset T of C, of dimension
D_T = product over T of (k_i - 1). Let I be the mean Fisher information of a client, N the number of rows, P_T the projection onto effect
T, and mu_T = trace(P_T I)/(N D_T).

*1. Unbiased estimates of the table over C from n clients have a mean variance of at least the sum of D_T/mu_T over T in C, divided by
n K_C^2*, where K_C is the number of its cells. Proof: an unbiased estimate has covariance at least the inverse of n I [Cramer and Rao].
The trace of P_T I^-1 is at least D_T^2/trace(P_T I), since the block of an inverse is at least the inverse of the block, and by Cauchy
and Schwarz on its eigenvalues. A unit vector of effect T among the rows has length sqrt(N/K_C) among the cells of C.

*2. For every set S of columns, the sum of D_T mu_T over non-empty T in S is at most c(K_S)*, where c(k) is the largest
(E - 1)^2 f (1 - f)/(1 + (E - 1) f)^2 with f = w/k for a whole number w from 1 to k - 1. Proof: averaged over the columns outside S, the
mechanism is an epsilon-LDP mechanism on K_S outcomes, and the trace of its information is at most K_S c(K_S) by the theorem in
`discreet.estimation._planning`; its unit vectors are those of the rows, scaled by sqrt(N/K_S).   QED

The least weighted sum of 1. under the constraints 2. is a convex programme. `least_variance` returns a value of its dual, which is a lower
bound wherever the search stops. It holds for unbiased estimates, in the uniform population, from one report of each client. A real
population is another one. And the shares of the clients at hand can be known better than those of a population they are drawn from.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Columns = tuple[int, ...]


def most_information(size: int, growth: float) -> float:
    """c(k)."""
    near = size / (growth + 1.0)
    widths = {min(max(w, 1), size - 1) for w in range(math.floor(near) - 1, math.floor(near) + 4)}
    return max(
        (growth - 1.0) ** 2 * f * (1.0 - f) / (1.0 + (growth - 1.0) * f) ** 2 for f in (w / size for w in widths)
    )


def least_variance(sizes: Sequence[int], tables: Sequence[Columns], epsilon: float) -> float:
    """At most n times the mean over tables of the mean variance of a cell, for any report that is epsilon-LDP."""
    growth = math.exp(epsilon)
    effects = sorted({t for c in tables for r in range(1, len(c) + 1) for t in combinations(c, r)})
    dimensions = np.array([math.prod(sizes[i] - 1 for i in t) for t in effects], dtype=np.float64)
    costs = np.zeros(len(effects))
    for table in tables:
        told = np.array([set(t) <= set(table) for t in effects])
        costs += told * dimensions / math.prod(sizes[i] for i in table) ** 2 / len(tables)
    sets = [s for r in range(1, len(sizes) + 1) for s in combinations(range(len(sizes)), r)]
    rows = np.array(
        [[each if set(t) <= set(s) else 0.0 for t, each in zip(effects, dimensions, strict=True)] for s in sets]
    )
    limits = np.array([most_information(math.prod(sizes[i] for i in s), growth) for s in sets])

    def dual(logs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        prices = np.exp(logs)
        paid = rows.T @ prices
        value = 2.0 * np.sqrt(costs * paid).sum() - limits @ prices
        return -value, -(rows @ np.sqrt(costs / paid) - limits) * prices

    start = np.log(np.full(len(sets), costs.sum() / limits.sum()))
    found = minimize(
        dual, start, jac=True, method="L-BFGS-B", options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-12}
    )
    return -float(found.fun)
