"""Theorem: shuffled samples are at most as revealing as a pair of clone counts, and real collections are within it."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from discreet import Band, DiscreetError, OptimalSampler, Simplex
from discreet.accounting import BoxProfile, _profile as shuffling, profile_of, shuffled_delta, shuffled_epsilon
from tests.soaking import examples, wide


def clone_pair_delta(profile: BoxProfile, clients: int, epsilon: float) -> float:
    """E_{e^epsilon} of the pair in the theorem, summed over all numbers of the three kinds."""
    up, a, shrink = profile.upper_mass, profile.lower_mass, math.exp(-profile.epsilon)
    c = min(a, shrink / 2)
    rest, others = 1 - up - a, clients - 1

    def clones(x: int, y: int, z: int) -> float:
        if min(x, y, z) < 0 or x + y + z > others:
            return 0.0
        ways = math.comb(others, x) * math.comb(others - x, y) * math.comb(others - x - y, z)
        return ways * c ** (x + y) * max(0.0, shrink - 2 * c) ** z * (1 - shrink) ** (others - x - y - z)

    terms = []
    for x, y, z in product(range(clients + 1), repeat=3):
        one, other, third = clones(x - 1, y, z), clones(x, y - 1, z), clones(x, y, z - 1) * rest
        terms.append(max(0.0, up * one + a * other + third - math.exp(epsilon) * (a * one + up * other + third)))
    return math.fsum(terms)


@given(st.floats(0.05, 4.0), st.floats(0.01, 0.99), st.integers(1, 12), st.floats(0.0, 1.0))
@settings(deadline=None, max_examples=examples(60))
def test_the_sum_over_tails_is_the_sum_over_everything(
    epsilon: float, alpha: float, clients: int, share: float
) -> None:
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    beta = share * epsilon
    direct = clone_pair_delta(profile, clients, beta)
    found = shuffled_delta(profile, clients=clients, epsilon=beta)
    assert found == pytest.approx(min(direct, profile.delta(beta)), rel=1e-7, abs=2e-11)  # 1e-11 is rounded up
    assert found >= min(direct, profile.delta(beta)) * (1 - 1e-10) - 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("alpha", wide([0.05, 0.5], [0.05]))
def test_rounding_the_number_of_clones_down_costs_little(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = BoxProfile(epsilon=1.0, alpha=alpha)
    rounded = shuffled_epsilon(profile, clients=1_000, delta=1e-6)
    monkeypatch.setattr(shuffling, "_FEW", 1_000)
    exact = shuffled_epsilon(profile, clients=1_000, delta=1e-6)
    assert exact * (1 - 1e-5) <= rounded <= 1.03 * exact


def collection_law(laws: list[NDArray[np.float64]]) -> dict[tuple[int, ...], float]:
    """The law of the unordered collection of one sample from each law."""
    found = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        more: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, mass in found.items():
            for x, chance in enumerate(law):
                more[(*counts[:x], counts[x] + 1, *counts[x + 1 :])] += mass * float(chance)
        found = more
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(0.2, 3.0), st.booleans())
@settings(deadline=None, max_examples=examples(60))
def test_real_collections_are_within_the_bound(seed: int, clients: int, epsilon: float, point_masses: bool) -> None:
    rng = np.random.default_rng(seed)
    family = Simplex(3) if rng.random() < 0.5 else Band([1.0, 2.0, 3.0], lower=0.3, upper=1.8)
    sampler = OptimalSampler(family, epsilon=epsilon)
    inputs = np.eye(3)[rng.integers(0, 3, clients + 1)] if point_masses else rng.dirichlet(np.ones(3), clients + 1)
    outputs = list(sampler.output(inputs))
    others, one, other = outputs[2:], outputs[0], outputs[1]
    first, second = collection_law([one, *others]), collection_law([other, *others])
    for beta in (0.0, 0.3 * epsilon, 0.7 * epsilon):
        real = math.fsum(max(0.0, mass - math.exp(beta) * second[key]) for key, mass in first.items())
        assert real <= shuffled_delta(profile_of(sampler), clients=clients, epsilon=beta) + 1e-12


@pytest.mark.slow
def test_more_clients_hide_more() -> None:
    profile = BoxProfile(epsilon=1.0, alpha=0.1)
    found = [shuffled_epsilon(profile, clients=n, delta=1e-6) for n in (1, 100, 10_000, 200_000)]
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.01
    for n, epsilon in zip((100, 10_000), found[1:], strict=False):
        assert shuffled_delta(profile, clients=n, epsilon=epsilon) <= 1e-6
    assert shuffled_delta(profile, clients=10, epsilon=1.0) == 0.0


def test_it_is_better_than_what_holds_for_every_mechanism() -> None:
    """The box of a simplex on 100 outcomes against the largest mass a mechanism at the same epsilon can have."""
    any_mechanism = BoxProfile(epsilon=1.0, alpha=1 / (1 + math.e**0.5))
    ours = BoxProfile(epsilon=1.0, alpha=0.01)
    assert shuffled_epsilon(ours, clients=10_000, delta=1e-6) < shuffled_epsilon(
        any_mechanism, clients=10_000, delta=1e-6
    )


def test_mistakes_name_the_argument() -> None:
    profile = BoxProfile(epsilon=1.0, alpha=0.1)
    with pytest.raises(DiscreetError, match="clients = 0"):
        shuffled_delta(profile, clients=0, epsilon=0.1)
    with pytest.raises(DiscreetError, match="delta = 0 is not in"):
        shuffled_epsilon(profile, clients=10, delta=0.0)


def test_a_box_that_is_the_whole_family_hides_nothing_because_there_is_nothing() -> None:
    profile = BoxProfile(epsilon=1.0, alpha=1.0)
    assert shuffled_delta(profile, clients=100, epsilon=0.0) <= 1e-300
    assert shuffled_epsilon(profile, clients=100, delta=1e-6) == 0.0
