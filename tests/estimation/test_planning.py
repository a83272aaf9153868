"""Promises are kept by simulations, and their inverses invert them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.estimation import clients_for, epsilon_for_accuracy, exact_variance, outlook, population


@given(st.integers(2, 200), st.floats(0.2, 6.0), st.floats(0.01, 0.3))
def test_the_clients_asked_for_are_enough_and_fewer_are_not(k: int, epsilon: float, accuracy: float) -> None:
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=epsilon)
    needed = clients_for(sampler, accuracy=accuracy)
    assert outlook(sampler, mechanism="linear", clients=needed).at_worst <= accuracy * (1 + 1e-9)
    if needed > 20:
        fewer = outlook(sampler, mechanism="linear", clients=int(0.9 * needed))
        assert fewer.at_worst > accuracy


@given(st.integers(2, 50), st.integers(200, 10**6))
def test_the_epsilon_asked_for_is_enough(k: int, clients: int) -> None:
    family = dc.Simplex(k)
    for kind, name in ((dc.LinearSampler, "linear"), (dc.OptimalSampler, "optimal")):
        epsilon = epsilon_for_accuracy(kind, family, clients=clients, accuracy=0.1)
        found = outlook(kind(family, epsilon=epsilon), mechanism=name, clients=clients)
        assert found.at_worst == pytest.approx(0.1, rel=1e-4)


def test_promises_are_kept_by_a_simulation() -> None:
    rng = np.random.default_rng(1)
    k, clients = 10, 5000
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=1.0)
    promised = outlook(sampler, mechanism="linear", clients=clients)
    assert promised.total is not None
    off, rare = [], []
    for _ in range(400):
        counts = rng.multinomial(clients, np.full(k, 1 / k))
        off.append(0.5 * np.abs(population(sampler, counts=counts).law.estimate - 1 / k).sum())
        counts = rng.multinomial(clients, sampler.output(np.eye(k)[0]))
        rare.append(population(sampler, counts=counts).law.estimate[1:].std())
    assert np.mean(off) == pytest.approx(promised.total, rel=0.05)
    assert 1.96 * np.mean(rare) == pytest.approx(promised.if_rare, rel=0.1)
    assert promised.if_rare <= promised.at_worst
    assert promised.band == 0.0


def test_what_projections_leave_open_no_number_of_clients_closes() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=1.0)
    found = outlook(sampler, mechanism="optimal", clients=10**9)
    assert found.total is None
    assert found.band == pytest.approx(found.at_worst, rel=1e-2)
    with pytest.raises(dc.ImpossibleError, match="use the linear mechanism"):
        clients_for(sampler, accuracy=0.01)
    with pytest.raises(dc.ImpossibleError, match="even without privacy"):
        epsilon_for_accuracy(dc.LinearSampler, dc.Simplex(10), clients=10, accuracy=0.01)


def test_a_single_outcome_takes_one_client() -> None:
    for kind in (dc.LinearSampler, dc.OptimalSampler, dc.MollifierSampler):
        assert clients_for(kind(dc.Simplex(1), epsilon=1.0), accuracy=0.01) == 1


def test_a_domain_too_large_to_list_is_planned_for() -> None:
    found = outlook(dc.LinearSampler(dc.Simplex(2**40), epsilon=1.0), mechanism="linear", clients=1000)
    assert found.total == 1.0
    assert found.at_worst == 0.5


def test_what_takes_too_many_clients_does_not_blame_the_mechanism() -> None:
    with pytest.raises(dc.ImpossibleError, match=r"clients would be needed.*use a larger epsilon"):
        clients_for(dc.LinearSampler(dc.Simplex(3), epsilon=1e-9), accuracy=0.1)


def test_what_cannot_be_planned_is_named() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="confidence = 2"):
        clients_for(sampler, accuracy=0.1, confidence=2.0)
    with pytest.raises(dc.DiscreetError, match="mass = 7"):
        clients_for(sampler, accuracy=0.1, mass=7.0)
    line = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))
    with pytest.raises(dc.DiscreetError, match="finitely many outcomes"):
        outlook(dc.LinearSampler(line, epsilon=1.0), mechanism="linear", clients=10)
    with pytest.raises(dc.DiscreetError, match="is not a sampler"):
        outlook(None, mechanism="linear", clients=10)  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="no unbiased estimate"):
        exact_variance(dc.OptimalSampler(dc.Simplex(2), epsilon=1.0), [[0.5, 0.5]], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="one finite number for each outcome"):
        exact_variance(sampler, [[0.2, 0.3, 0.5]], [0.0, 1.0, np.nan])


@pytest.mark.parametrize(
    ("wrong", "message"), [({"clients": 0}, "clients = 0"), ({"clients": 10, "confidence": 2.0}, "confidence = 2")]
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        outlook(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), mechanism="linear", **wrong)
