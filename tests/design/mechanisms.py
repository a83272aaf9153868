"""Independent optima over all mechanisms: every pair of clients is held to e^epsilon, and no floor, band or projection is mentioned."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

Floats = NDArray[np.float64]


def private_pairs(n: int, k: int, epsilon: float) -> Floats:
    """Rows A with A q <= 0 saying q_i(x) <= e^epsilon q_j(x) for all i, j, x, for q flattened from (n, k)."""
    rows = []
    for i in range(n):
        for j in range(n):
            if i != j:
                for x in range(k):
                    row = np.zeros(n * k)
                    row[i * k + x], row[j * k + x] = 1.0, -np.exp(epsilon)
                    rows.append(row)
    return np.array(rows).reshape(-1, n * k)


def with_everybody(laws: Floats, weights: Floats, keep: float, epsilon: float) -> tuple[Floats, Floats, Floats]:
    """Clients, weights and least chances (n, k) of outcomes: for a promise, the point masses are clients of weight nothing."""
    n, k = laws.shape
    if not keep:
        return laws, weights, np.zeros((n, k))
    chance = keep * np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return (
        np.vstack([laws, np.eye(k)]),
        np.append(weights, np.zeros(k)),
        np.vstack([np.zeros((n, k)), chance * np.eye(k)]),
    )


def best_mean_tv(laws: Floats, weights: Floats, epsilon: float, keep: float = 0.0) -> float:
    """The least mean total variation of any epsilon-LDP sampler, by a linear programme in (q, excess)."""
    laws, weights, least = with_everybody(laws, weights, keep, epsilon)
    n, k = laws.shape
    size = n * k
    pairs = private_pairs(n, k, epsilon)
    rows = np.vstack([np.hstack([pairs, np.zeros((len(pairs), size))]), np.hstack([-np.eye(size), -np.eye(size)])])
    right = np.concatenate([np.zeros(len(pairs)), -laws.ravel()])
    sums = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, size))])
    found = linprog(
        np.concatenate([np.zeros(size), np.repeat(weights, k)]),
        A_ub=rows, b_ub=right, A_eq=sums, b_eq=np.ones(n),
        bounds=[(low, None) for low in least.ravel()] + [(0, None)] * size,
        method="highs",
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def best_worst_tv(laws: Floats, epsilon: float) -> float:
    """The least largest total variation of any epsilon-LDP sampler over the given laws."""
    n, k = laws.shape
    size = n * k
    pairs = private_pairs(n, k, epsilon)
    zeros = np.zeros((len(pairs), size + 1))
    excess = np.hstack([-np.eye(size), -np.eye(size), np.zeros((size, 1))])
    most = np.hstack([np.zeros((n, size)), np.kron(np.eye(n), np.ones(k)), -np.ones((n, 1))])
    sums = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, size + 1))])
    found = linprog(
        np.append(np.zeros(2 * size), 1.0),
        A_ub=np.vstack([np.hstack([pairs, zeros]), excess, most]),
        b_ub=np.concatenate([np.zeros(len(pairs)), -laws.ravel(), np.zeros(n)]),
        A_eq=sums, b_eq=np.ones(n), bounds=(0, None), method="highs",
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def best_mean_kl(laws: Floats, weights: Floats, epsilon: float, keep: float = 0.0) -> float:
    """The least mean KL of any epsilon-LDP sampler, by sequential quadratic programming from the uniform mechanism."""
    laws, weights, least = with_everybody(laws, weights, keep, epsilon)
    n, k = laws.shape
    mass = (weights[:, None] * laws).ravel()
    entropy = float(np.sum(np.where(laws > 0, weights[:, None] * laws * np.log(np.where(laws > 0, laws, 1.0)), 0.0)))
    pairs, sums = private_pairs(n, k, epsilon), np.kron(np.eye(n), np.ones(k))
    found = minimize(
        lambda q: entropy - float(np.sum(mass * np.log(np.maximum(q, 1e-300)))),
        np.full(n * k, 1.0 / k),
        jac=lambda q: -mass / np.maximum(q, 1e-300),
        method="SLSQP",
        bounds=[(max(1e-9, low), 1.0) for low in least.ravel()],
        constraints=[
            {"type": "ineq", "fun": lambda q: -(pairs @ q), "jac": lambda q: -pairs},
            {"type": "eq", "fun": lambda q: sums @ q - 1.0, "jac": lambda q: sums},
        ],
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success, found.message
    return float(found.fun)


def clients(n: int, k: int, seed: int) -> Floats:
    """Laws with zeros, point masses and spread ones."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(k, 0.5), n)
    laws[laws < 0.05] = 0.0
    laws[0] = np.eye(k)[rng.integers(k)]
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))
