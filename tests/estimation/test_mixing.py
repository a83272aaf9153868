"""Mixtures are the most likely ones: their certificate holds against other weights and another solver, in rationals too."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from discreet.estimation._inference._reweighting import ExampleMixture, iterate_best_mixtures

PULLS = (30.0, 3.0, 0.3, 0.03, 1e-3, 1e-5)


def case(number: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Laws and shares of counts, some of which are 0."""
    rng = np.random.default_rng(seed)
    laws = 0.02 / size + 0.98 * rng.dirichlet(np.full(size, 0.3), number)
    counts = rng.multinomial(200, rng.dirichlet(np.full(number, 0.2)) @ laws)
    return laws, counts / counts.sum()


def objective(laws: np.ndarray, shares: np.ndarray, weights: np.ndarray, pull: float) -> float:
    seen = shares > 0
    return float(shares[seen] @ np.log((weights @ laws)[seen]) + pull * np.log(weights).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "size"), [(1, 4), (2, 3), (7, 5), (60, 4), (40, 30), (300, 12)])
def test_no_other_weights_are_more_likely_by_more_than_the_gap(number: int, size: int) -> None:
    rng = np.random.default_rng(number)
    for seed in range(5):
        laws, shares = case(number, size, seed)
        for found in iterate_best_mixtures(laws, shares, PULLS):
            assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
            assert 0.0 < found.gap <= 1e-8 * (1.0 + found.pull)
            value = objective(laws, shares, found.weights, found.pull)
            others = [
                *rng.dirichlet(np.ones(number), 50),
                *(found.weights * np.exp(rng.normal(0.0, 0.01, (50, number)))),
            ]
            for weights in others:
                other = objective(laws, shares, weights / weights.sum(), found.pull)
                assert other <= value + found.gap + 1e-13 * (1.0 + found.pull)


def test_another_solver_finds_the_same() -> None:
    laws, shares = case(12, 6, 1)
    for found in iterate_best_mixtures(laws, shares, (1.0, 0.01)):
        pull = found.pull

        def worse(logits: np.ndarray, pull: float = pull) -> float:
            weights = np.exp(logits - logits.max())
            return -objective(laws, shares, weights / weights.sum(), pull)

        other = optimize.minimize(worse, np.zeros(12), method="BFGS", options={"gtol": 1e-9})
        assert objective(laws, shares, found.weights, pull) == pytest.approx(-other.fun, abs=1e-8)


def test_the_certificate_holds_in_rationals() -> None:
    """h of the weights as they are, without rounding: its largest is within the gap that floats claim."""
    laws, shares = case(9, 5, 3)
    for found in iterate_best_mixtures(laws, shares, PULLS):
        w = [Fraction(float(x)) for x in found.weights]
        w = [x / sum(w) for x in w]
        q = [[Fraction(float(x)) for x in row] for row in laws]
        f, pull = [Fraction(float(x)) for x in shares], Fraction(found.pull)
        y = [sum((a * row[x] for a, row in zip(w, q, strict=True)), Fraction(0)) for x in range(5)]
        h = [
            (sum((f[x] * row[x] / y[x] for x in range(5)), Fraction(0)) + pull / 9 / a) / (1 + pull)
            for a, row in zip(w, q, strict=True)
        ]
        assert float(max(h)) <= np.exp(found.gap / (1.0 + found.pull)) * (1 + 1e-15)


def test_a_strong_pull_leaves_weights_equal_and_none_lets_them_go() -> None:
    laws, shares = case(20, 5, 4)
    first, *_, last = iterate_best_mixtures(laws, shares, (1e6, *PULLS, 1e-7))
    assert np.abs(first.weights - 1 / 20).max() < 1e-5
    assert last.log_likelihood(shares) > first.log_likelihood(shares)
    assert (
        np.abs(last.law - shares).max() < 1e-6
    )  # these shares are a mixture of the laws, and nothing explains shares better


def test_what_leaving_one_out_does_is_what_freedom_says() -> None:
    """With many counts, against solving again without one count of each outcome."""
    laws, _ = case(15, 4, 5)
    counts = np.array([4000.0, 2500.0, 3000.0, 500.0])
    path = (10.0, 1.0, 0.1)

    def solved(counts: np.ndarray) -> ExampleMixture:
        return list(iterate_best_mixtures(laws, counts / counts.sum(), path))[-1]

    found = solved(counts)
    freedom = found.leave_one_out_log_likelihood_losses(laws, counts / counts.sum())
    for x in range(4):
        less = counts.copy()
        less[x] -= 1.0
        fall = np.log(found.law[x]) - np.log(solved(less).law[x])
        assert freedom[x] == pytest.approx(fall * counts.sum(), rel=2e-3)


def test_freedom_of_laws_that_hardly_hold_an_outcome() -> None:
    """The square of 1e-200 is no float, and is not needed."""
    laws, shares = np.array([[1.0 - 1e-200, 1e-200], [1.0, 2e-200]]), np.array([0.5, 0.5])
    *_, found = iterate_best_mixtures(laws, shares, [1.0, 0.1])
    assert np.isfinite(found.leave_one_out_log_likelihood_losses(laws, shares)).all()
