"""Under (epsilon, delta) and Gaussian privacy what is called tight is the optimum over all mechanisms, and no bound lies below it.

A mechanism is a law Q_i for every vertex P_i of the class (joint convexity), and private if sum (Q_i - z Q_j)_+ <= delta(log z) for all
pairs, at the one z of an (epsilon, delta) or at many z of a trade-off function. That is a linear programme; nothing of the package is in it.
"""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import discreet as dc
from tests.soaking import wide
from tests.theorems.bands import TOLERANCE, Floats, vertices

MOST_VERTICES = 15


def optimal_tv(points: Floats, promises: list[tuple[float, float]]) -> float:
    """min over mechanisms of max_i TV(P_i, Q_i): variables Q (n k), positive parts of P - Q (n k), of Q_i - z Q_j for each z, the risk."""
    n, k = points.shape
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    size, many = n * k, len(pairs) * k
    last = 2 * size + len(promises) * many
    first, other = (
        np.repeat([pair[side] for pair in pairs], k) * k + np.tile(np.arange(k), len(pairs)) for side in (0, 1)
    )
    rows, right = [], []
    apart = sparse.hstack(
        [-sparse.identity(size), -sparse.identity(size), sparse.csr_matrix((size, last - 2 * size + 1))]
    )
    rows.append(apart)  # P - Q <= positive part
    right.append(-points.ravel())
    risk = sparse.hstack(
        [
            sparse.csr_matrix((n, size)),
            sparse.kron(sparse.identity(n), np.ones((1, k))),
            sparse.csr_matrix((n, last - 2 * size)),
            -np.ones((n, 1)),
        ]
    )
    rows.append(risk)
    right.append(np.zeros(n))
    for place, (z, delta) in enumerate(promises):
        start = 2 * size + place * many
        index = np.arange(many)
        part = sparse.csr_matrix(
            (
                np.concatenate([np.ones(many), -z * np.ones(many), -np.ones(many)]),
                (np.tile(index, 3), np.concatenate([first, other, start + index])),
            ),
            shape=(many, last + 1),
        )
        total = sparse.csr_matrix((np.ones(many), (index // k, start + index)), shape=(len(pairs), last + 1))
        rows += [part, total]
        right += [np.zeros(many), np.full(len(pairs), delta)]
    found = linprog(
        np.eye(1, last + 1, last)[0],
        A_ub=sparse.vstack(rows).tocsr(),
        b_ub=np.concatenate(right),
        A_eq=sparse.hstack(
            [sparse.kron(sparse.identity(n), np.ones((1, k))), sparse.csr_matrix((n, last - size + 1))]
        ).tocsr(),
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)


def generated(rng: np.random.Generator) -> dc.Band:
    """Bands with few vertices: equal weights with alpha k whole or not, or unequal ones."""
    while True:
        k = int(rng.integers(2, 7))
        held = int(rng.integers(1, k))
        lower = float(rng.choice([0.0, 0.0, 0.3, rng.uniform(0, 0.9)]))
        upper = (1.0 - lower * (1 - held / k)) / (held / k)
        kind = rng.integers(4)
        weights = np.ones(k) if kind < 3 else rng.integers(1, 4, k).astype(float)
        if kind == 2:
            upper *= rng.uniform(1.01, 1.3)
        band = dc.Band(weights, lower=lower, upper=upper)
        if len(vertices(weights / weights.sum(), band.bounds.lower, band.bounds.upper)) <= MOST_VERTICES:
            return band


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(wide(5, 1)))
def test_approximate_privacy_on_generated_bands(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tight, bands = 0, wide(100, 50)
    for _ in range(bands):
        band = generated(rng)
        epsilon, delta = float(rng.choice([0.1, 0.5, 1.0, 2.0])), float(rng.choice([1e-4, 0.01, 0.1, 0.3]))
        mu = np.broadcast_to(band.reference, band.size)
        points = vertices(mu, band.bounds.lower, band.bounds.upper)
        optimum = optimal_tv(points, [(math.exp(epsilon), delta)])
        risk = dc.minimax_risk(band, privacy=dc.Approximate(epsilon, delta=delta), divergence="tv")
        assert risk.value >= optimum - TOLERANCE, (band, epsilon, delta)
        if risk.tight:
            tight += 1
            assert risk.value == pytest.approx(optimum, abs=TOLERANCE), (band, epsilon, delta)
    assert tight >= 0.3 * bands


@pytest.mark.slow
@pytest.mark.parametrize("nu", [0.4, 1.0, 2.0])
def test_gaussian_privacy_at_many_beta(nu: float) -> None:
    """At finitely many beta the programme asks for less than the notion does: its optimum is below, and near, with beta where it counts."""
    for band in (dc.Simplex(3), dc.Band([1] * 4, lower=0.2, upper=1.8), dc.Band([1] * 3, lower=0.1, upper=1.45)):
        gaussian = dc.Gaussian(nu)
        risk = dc.minimax_risk(band, privacy=gaussian, divergence="tv")
        assert risk.tight
        betas = np.linspace(0.0, 1.2 * dc.OptimalSampler(band, privacy=gaussian).epsilon, 9)
        mu = np.broadcast_to(band.reference, band.size)
        points = vertices(mu, band.bounds.lower, band.bounds.upper)
        optimum = optimal_tv(points, [(math.exp(beta), gaussian.profile(float(beta))) for beta in betas])
        assert optimum - TOLERANCE <= risk.value <= optimum + 5e-3


def test_unequal_atoms_that_form_no_equal_groups_are_not_called_tight_but_for_pure_epsilon() -> None:
    """The theorem is for atoms, or groups of them, that can be exchanged; elsewhere the formula may be above the optimum."""
    for upper in (5 / 3, 5 / 2):  # sets of mass 3/5, or 2/5, cover 2, 1, 1, 1 evenly, but fifths are no groups
        band = dc.Band([2, 1, 1, 1], lower=0.0, upper=upper)
        assert band.decomposable
        assert dc.minimax_risk(band, epsilon=1.0, divergence="tv").tight
        for notion in (dc.Approximate(1.0, delta=0.1), dc.Gaussian(1.0)):
            assert not dc.OptimalSampler(band, privacy=notion).risk("tv").tight
            assert dc.OptimalSampler(band, privacy=notion).risk("tv").attained


@pytest.mark.parametrize(
    ("weights", "lower", "alpha"),
    [
        ([2, 1, 1, 1, 1], 0.0, 1 / 2),
        ([2, 1, 1, 1, 1], 0.0, 1 / 3),
        ([3, 2, 1], 0.3, 1 / 2),
        ([2, 2, 1, 1], 0.2, 2 / 3),
        ([4, 2, 1, 1], 0.0, 1 / 2),
    ],
)
def test_atoms_in_groups_of_equal_mass_are_called_tight_and_are(weights: list[int], lower: float, alpha: float) -> None:
    band = dc.Band(weights, lower=lower, upper=lower + (1 - lower) / alpha)
    points = vertices(np.array(weights) / sum(weights), band.bounds.lower, band.bounds.upper)
    for epsilon, delta in ((0.5, 0.1), (1.0, 0.01)):
        risk = dc.OptimalSampler(band, privacy=dc.Approximate(epsilon, delta=delta)).risk("tv")
        assert risk.tight
        assert risk.value == pytest.approx(optimal_tv(points, [(math.exp(epsilon), delta)]), abs=TOLERANCE)
    assert dc.minimax_risk(band, privacy=dc.Gaussian(1.0), divergence="kl").tight
