"""Theorems 3.1 and C.4: the closed form equals the optimum over ALL epsilon-LDP mechanisms, found by independent programmes.

A mechanism needs to be optimised only at the extreme points of the class: extended to other clients by mixing, joint
convexity of the divergence keeps its worst case there.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from discreet import Band, OptimalSampler, Simplex, divergence, minimax_risk


def extreme_points(mu: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Vertices of {lower mu <= P <= upper mu}: every outcome at a bound except at most one."""
    k, found = len(mu), set()
    for free in range(k):
        others = [x for x in range(k) if x != free]
        for choice in itertools.product((lower, upper), repeat=k - 1):
            p = np.zeros(k)
            p[others] = np.array(choice) * mu[others]
            p[free] = 1.0 - p.sum()
            if lower * mu[free] - 1e-12 <= p[free] <= upper * mu[free] + 1e-12:
                found.add(tuple(np.round(p, 12)))
    return np.array(sorted(found))


def privacy_rows(clients: int, k: int, epsilon: float, columns: int) -> NDArray[np.float64]:
    """Q_i(x) - e^eps Q_j(x) <= 0 for every pair of clients and outcome."""
    rows = []
    for i, j in itertools.permutations(range(clients), 2):
        for x in range(k):
            row = np.zeros(columns)
            row[i * k + x], row[j * k + x] = 1.0, -math.exp(epsilon)
            rows.append(row)
    return np.array(rows)


def optimal_tv(points: NDArray[np.float64], epsilon: float) -> float:
    """min over mechanisms of max_i TV(P_i, Q_i): variables Q (n k), positive parts of P - Q (n k), the risk t."""
    n, k = points.shape
    columns = 2 * n * k + 1
    rows, bounds = [privacy_rows(n, k, epsilon, columns)], [np.zeros(n * (n - 1) * k)]
    for i in range(n):
        for x in range(k):  # P - Q <= positive part
            row = np.zeros((1, columns))
            row[0, i * k + x] = row[0, n * k + i * k + x] = -1.0
            rows.append(row)
            bounds.append(np.array([-points[i, x]]))
        row = np.zeros((1, columns))
        row[0, n * k + i * k : n * k + (i + 1) * k], row[0, -1] = 1.0, -1.0
        rows.append(row)
        bounds.append(np.zeros(1))
    sums = np.zeros((n, columns))
    for i in range(n):
        sums[i, i * k : (i + 1) * k] = 1.0
    found = linprog(
        np.eye(1, columns, columns - 1)[0],
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(bounds),
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def optimal_kl(points: NDArray[np.float64], epsilon: float) -> float:
    """min over mechanisms of max_i KL(P_i || Q_i), a convex programme solved from the uniform mechanism."""
    n, k = points.shape
    columns = n * k + 1
    privacy = privacy_rows(n, k, epsilon, columns)
    sums = np.zeros((n, columns))
    for i in range(n):
        sums[i, i * k : (i + 1) * k] = 1.0

    def slack(v: NDArray[np.float64]) -> NDArray[np.float64]:
        q = v[:-1].reshape(n, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(points > 0, points * np.log(points / np.maximum(q, 1e-300)), 0.0)
        return np.asarray(v[-1] - terms.sum(axis=1))

    def slack_gradient(v: NDArray[np.float64]) -> NDArray[np.float64]:
        gradient = np.zeros((n, columns))
        for i in range(n):
            gradient[i, i * k : (i + 1) * k] = points[i] / np.maximum(v[i * k : (i + 1) * k], 1e-300)
        gradient[:, -1] = 1.0
        return gradient

    start = np.append(np.full(n * k, 1.0 / k), 10.0)
    found = minimize(
        lambda v: v[-1],
        start,
        jac=lambda v: np.eye(1, columns, columns - 1)[0],
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * (n * k) + [(0.0, None)],
        constraints=[
            {"type": "ineq", "fun": slack, "jac": slack_gradient},
            {"type": "ineq", "fun": lambda v: -(privacy @ v), "jac": lambda v: -privacy},
            {"type": "eq", "fun": lambda v: sums @ v - 1.0, "jac": lambda v: sums},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success, found.message
    return float(found.fun)


@pytest.mark.parametrize("k", [2, 3, 5, 6])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_simplex_tv(k: int, epsilon: float) -> None:
    risk = minimax_risk(Simplex(k), epsilon=epsilon, divergence="tv")
    assert risk.tight
    assert optimal_tv(np.eye(k), epsilon) == pytest.approx(risk.value, abs=1e-9)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (3, 1.0), (4, 2.0)])
def test_simplex_kl(k: int, epsilon: float) -> None:
    assert optimal_kl(np.eye(k), epsilon) == pytest.approx(
        minimax_risk(Simplex(k), epsilon=epsilon, divergence="kl").value, abs=1e-6
    )


@pytest.mark.parametrize(
    ("weights", "lower", "upper"),
    [([1, 1, 1, 1], 0.5, 1.5), ([1, 1, 1], 0.25, 2.5), ([1, 1, 1, 1], 0.0, 4 / 3), ([1, 1, 2], 0.5, 1.5)],
)
@pytest.mark.parametrize("epsilon", [0.2, 0.6])
def test_decomposable_band(weights: list[float], lower: float, upper: float, epsilon: float) -> None:
    band = Band(weights, lower=lower, upper=upper)
    risk = minimax_risk(band, epsilon=epsilon, divergence="tv")
    assert risk.tight
    points = extreme_points(np.array(weights) / np.sum(weights), lower, upper)
    assert optimal_tv(points, epsilon) == pytest.approx(risk.value, abs=1e-9)
    small = minimax_risk(band, epsilon=epsilon, divergence="kl")
    if len(points) <= 6:
        assert optimal_kl(points, epsilon) == pytest.approx(small.value, abs=1e-6)


def test_without_decomposability_the_formula_is_only_an_upper_bound() -> None:
    """Uniform k = 5, c = (1/2, 2), epsilon = 0.5: the optimum is below what the box attains, and that is below the formula."""
    band = Band(np.ones(5), lower=0.5, upper=2.0)
    risk = minimax_risk(band, epsilon=0.5, divergence="tv")
    points = extreme_points(np.full(5, 0.2), 0.5, 2.0)
    attained = max(divergence("tv")(p, OptimalSampler(band, epsilon=0.5).output(p)) for p in points)
    optimum = optimal_tv(points, 0.5)
    assert not risk.tight
    assert optimum == pytest.approx(0.1764, abs=5e-5)
    assert attained == pytest.approx(0.1933, abs=5e-5)
    assert risk.value == pytest.approx(0.2148, abs=5e-5)
