"""Mixtures with covariances of their own: scipy's densities and draws, the same client as with scales where they are round."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from tests.soaking import wide

CORRELATED = np.array([[1.0, 0.9], [0.9, 1.5]])


def test_the_density_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for dim in (1, 2, 3, 7):
        roots = rng.standard_normal((3, dim, dim))
        covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(dim)
        means, weights, x = rng.standard_normal((3, dim)), [1.0, 2.0, 3.0], rng.standard_normal((50, dim))
        mixture = dc.Mixture(weights, means, covariances=covariances)
        expected = sum(
            weight / 6.0 * stats.multivariate_normal(mean, covariance).pdf(x)
            for weight, mean, covariance in zip(weights, means, covariances, strict=True)
        )
        assert mixture.pdf(x) == pytest.approx(expected, rel=1e-9)


def test_draws_have_the_covariances() -> None:
    mixture = dc.Mixture([1, 1], [[-50.0, 0.0], [50.0, 0.0]], covariances=[CORRELATED, np.eye(2)])
    drawn = mixture.draw(200_000, np.random.default_rng(1))
    left = drawn[drawn[:, 0] < 0.0]
    assert np.cov(left.T) == pytest.approx(CORRELATED, abs=0.03)
    assert np.cov(drawn[drawn[:, 0] > 0.0].T) == pytest.approx(np.eye(2), abs=0.03)


def test_round_components_are_those_with_scales() -> None:
    family = dc.GaussianMixtures(dim=2)
    member = dc.Mixture([1, 2], [[0.0, 0.0], [0.5, 0.5]], covariances=np.eye(2))
    assert family.certainly_contains(member)
    assert not family.certainly_contains(dc.Mixture([1, 2], [[0.0, 0.0], [0.5, 0.5]], covariances=CORRELATED))
    x = np.random.default_rng(2).standard_normal((20, 2))
    assert np.array_equal(member.pdf(x), dc.Mixture([1, 2], [[0.0, 0.0], [0.5, 0.5]]).pdf(x))
    assert dc.Mixture([1], [0.0], covariances=[[4.0]]).scales.tolist() == [2.0]


@pytest.mark.slow
@pytest.mark.parametrize("dim", wide([2, 3], [2]))
def test_a_thin_component_is_seen_along_its_whole_length(dim: int) -> None:
    """Its mass on the nodes is the one it says that it has."""
    thin = 0.99 * np.ones((dim, dim)) + 0.01 * np.eye(dim)
    sampler = dc.OptimalSampler(dc.GaussianMixtures(dim=dim, radius=2.0), epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.OutsideFamilyWarning)
        law = sampler.output(dc.Mixture([1.0], np.full((1, dim), 0.3), covariances=thin))
    assert float(np.max(law.mass)) == pytest.approx(1.0, abs=0.02 if dim == 3 else 1e-4)


@pytest.mark.slow
def test_correlated_clients_are_released_and_are_references() -> None:
    client = dc.Mixture([1, 2], [[0.0, 0.0], [1.0, 1.0]], covariances=[CORRELATED, 0.25 * np.eye(2)])
    band = dc.DensityBand(client, lower=0.5, upper=2.0)
    sampler = dc.OptimalSampler(band, epsilon=1.0)
    assert sampler.release([client, client]).shape == (2, 2)
    assert sampler.output(client).divergence("tv") == pytest.approx(0.0, abs=1e-6)
    many = dc.Mixture([1.0], [np.zeros(6)], covariances=np.eye(6) + 0.5)
    wide = dc.OptimalSampler(dc.DensityBand(many, lower=0.5, upper=2.0), epsilon=1.0)
    assert np.shape(wide.release(many)) == (6,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariances": np.ones((3, 3))}, r"shape \(3, 3\); give one matrix \(2, 2\)"),
        ({"covariances": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        ({"covariances": [[[1.0, 2.0], [0.0, 1.0]]]}, r"covariances\[0\] is not a symmetric"),
        ({"covariances": [[np.nan, 0.0], [0.0, 1.0]]}, "symmetric matrix of finite numbers"),
        ({"covariances": [[1.0, 0.0], [0.0, 0.0]]}, "standard deviations"),
        ({"covariances": CORRELATED, "kernel": "laplace"}, 'for kernel="gaussian"'),
        ({"covariances": CORRELATED, "scales": 1.0}, "take the place of scales"),
        ({"covariances": "wide"}, "not an array of numbers"),
    ],
)
def test_what_are_no_covariances_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Mixture([1], [[0.0, 0.0]], **options)
