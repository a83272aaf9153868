"""A rehearsal covers as often as it says and needs no private randomness."""

import numpy as np
import pytest

import discreet as dc
from discreet.estimation import rehearse_collections
from discreet.estimation._record import measure_fidelity_to_truth

LAWS = np.random.default_rng(0).dirichlet(np.full(6, 0.4), 300)


@pytest.mark.slow
def test_a_rehearsal_covers_and_repeats_itself() -> None:
    sampler = dc.LinearSampler(dc.Simplex(6), epsilon=1.0)
    found = rehearse_collections(sampler, LAWS, clients=5000, repetitions=200)
    assert 0.94 <= found.covered <= 0.96
    assert found == rehearse_collections(sampler, LAWS, clients=5000, repetitions=200)
    assert found != rehearse_collections(sampler, LAWS, clients=5000, repetitions=200, seed=1)
    assert found.client_tv == pytest.approx(
        (1 - sampler.constants.gamma) * 0.5 * np.abs(LAWS - 1 / 6).sum(axis=1).mean()
    )


def test_a_projection_always_covers_and_is_nearer_to_its_clients() -> None:
    laws = np.random.default_rng(1).dirichlet([4.0, 2.0, 0.2, 0.1, 0.1, 0.1], 300)  # a population far from uniform
    linear = rehearse_collections(dc.LinearSampler(dc.Simplex(6), epsilon=1.0), laws, clients=5000)
    optimal = rehearse_collections(dc.OptimalSampler(dc.Simplex(6), epsilon=1.0), laws, clients=5000)
    assert optimal.covered == 1.0
    assert optimal.client_tv is not None
    assert linear.client_tv is not None
    assert optimal.client_tv < linear.client_tv
    assert optimal.total > linear.total


def test_fidelity_is_the_distance_it_says() -> None:
    outcomes = dc.Numbers(3)
    found = measure_fidelity_to_truth(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]), outcomes)
    assert found.tv == pytest.approx(0.25)
    assert found.kl == pytest.approx(0.5 * np.log(2))
    assert found.wasserstein == pytest.approx(0.5)  # a quarter of the mass moves by two
    assert found.largest == pytest.approx(0.25)
    assert measure_fidelity_to_truth(np.array([0.5, 0.5]), np.array([1.0, 0.0]), dc.Labels(["a", "b"])).kl == np.inf
    assert (
        measure_fidelity_to_truth(np.array([0.5, 0.5]), np.array([1.0, 0.0]), dc.Labels(["a", "b"])).wasserstein is None
    )
