"""Generated bands against a linear programme over all mechanisms: is a value called tight the optimum, is a bound ever below it?

    python -m tests.theorems.bands --bands 2000

A mechanism is private iff some measure m has m <= Q(.|P) <= e^epsilon m for every client P, and needs to be optimised only at the
vertices of the class (joint convexity). Both facts are used here, nothing of the package is.
"""

import argparse
import itertools
import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

import discreet as dc

Floats = NDArray[np.float64]
TOLERANCE = 2e-7  # of the programme, whose rows hold to 1e-9 or so


@dataclass(frozen=True)
class Case:
    """A band as a user would write it, bounds attainable or not."""

    weights: list[float]
    lower: float
    upper: float
    epsilon: float


def generated(rng: np.random.Generator) -> Case:
    """2 to 6 outcomes; weights equal, small whole numbers or over six orders of magnitude; bounds round, tight, absurd or random."""
    size = int(rng.integers(2, 7))
    match rng.integers(4):
        case 0:
            weights = np.ones(size)
        case 1:
            weights = rng.integers(1, 5, size).astype(float)
        case 2:
            weights = rng.choice([0.1, 0.2, 0.3, 0.5, 1.0], size)
        case _:
            weights = 10.0 ** rng.uniform(-6.0, 0.0, size)
    lower = float(rng.choice([0.0, 0.0, 0.25, 0.5, rng.uniform(0.0, 0.99)]))
    upper = float(
        rng.choice(
            [1.2, 1.5, 2.0, size, size / rng.integers(1, size + 1) + 1e-3, 1.0 + rng.exponential(2.0), 1e3, 1e10]
        )
    )
    return Case(weights.tolist(), lower, max(upper, 1.0 + 1e-3), float(rng.choice([0.1, 0.5, 1.0, 2.0, 4.0])))


def vertices(mu: Floats, lower: float, upper: float) -> Floats:
    """Of {lower mu <= P <= upper mu}: every outcome but one at a bound (its own, or one that the others force)."""
    found = []
    for free in range(len(mu)):
        others = np.delete(np.arange(len(mu)), free)
        for choice in itertools.product((lower, upper), repeat=len(others)):
            p = np.zeros(len(mu))
            p[others] = np.array(choice) * mu[others]
            p[free] = 1.0 - math.fsum(p)
            if lower * mu[free] - 1e-12 <= p[free] <= upper * mu[free] + 1e-12:
                found.append(np.maximum(p, 0.0))
    _, first = np.unique(np.round(found, 14), axis=0, return_index=True)
    return np.array(found)[first]


def optimal_tv(points: Floats, epsilon: float) -> float:
    """min over mechanisms of max_i TV(P_i, Q_i): variables m (k), Q (n k), the positive parts of P - Q (n k), the risk."""
    n, k = points.shape
    each, ones = sparse.identity(n * k), sparse.kron(sparse.identity(n), np.ones((1, k)))
    floor = sparse.vstack([sparse.identity(k)] * n)
    nothing, column = sparse.csr_matrix((n * k, n * k)), sparse.csr_matrix((n * k, 1))
    rows = sparse.vstack(
        [
            sparse.hstack([floor, -each, nothing, column]),
            sparse.hstack([-math.exp(epsilon) * floor, each, nothing, column]),
            sparse.hstack([sparse.csr_matrix((n * k, k)), -each, -each, column]),
            sparse.hstack([sparse.csr_matrix((n, k + n * k)), ones, -np.ones((n, 1))]),
        ]
    )
    found = linprog(
        np.eye(1, k + 2 * n * k + 1, k + 2 * n * k)[0],
        A_ub=rows.tocsr(),
        b_ub=np.concatenate([np.zeros(2 * n * k), -points.ravel(), np.zeros(n)]),
        A_eq=sparse.hstack([sparse.csr_matrix((n, k)), ones, sparse.csr_matrix((n, n * k + 1))]).tocsr(),
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)


def complaint(case: Case) -> str | None:
    """What is wrong with the answers for a band, if anything is."""
    band = dc.Band(case.weights, lower=case.lower, upper=case.upper)
    mu = np.array(case.weights) / math.fsum(case.weights)
    points = vertices(mu, case.lower, case.upper)
    optimum = optimal_tv(points, case.epsilon)
    sampler = dc.OptimalSampler(band, epsilon=case.epsilon)
    bound, own = dc.minimax_risk(band, epsilon=case.epsilon, divergence="tv"), sampler.risk("tv")
    for name, risk in (("minimax_risk", bound), ("OptimalSampler.risk", own)):
        if risk.value < optimum - TOLERANCE:
            return f"{name} = {risk} is below the optimum {optimum}"
        if risk.tight and risk.value > optimum + TOLERANCE:
            return f"{name} = {risk} is called tight, the optimum is {optimum}"
    for rival in (
        sampler,
        dc.MollifierSampler(band, epsilon=case.epsilon),
        dc.LinearSampler(band, epsilon=case.epsilon),
    ):
        reached = float(np.max(np.abs(points - rival.output(points)).sum(axis=1))) / 2
        risk = rival.risk("tv")
        if reached > risk.value + TOLERANCE or (risk.attained and reached < risk.value - TOLERANCE):
            return f"{type(rival).__name__}.risk = {risk}, its worst vertex is at {reached}"
    raw = float(np.max(np.divide(points.max(axis=0), np.maximum(points.min(axis=0), 1e-300))))
    if sampler.identity != (raw <= math.exp(case.epsilon)) and abs(math.log(raw) - case.epsilon) > 1e-9:
        return f"identity = {sampler.identity}, but raw draws differ by a factor {raw}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bands", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    wrong, tight = 0, 0
    for number in range(options.bands):
        case = generated(rng)
        found = complaint(case)
        tight += dc.minimax_risk(
            dc.Band(case.weights, lower=case.lower, upper=case.upper), epsilon=case.epsilon, divergence="tv"
        ).tight
        if found is not None:
            wrong += 1
            sys.stdout.write(f"{number}: {case}: {found}\n")
    sys.stdout.write(f"{options.bands} bands, {tight} called tight, {wrong} wrong\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
