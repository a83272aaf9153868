"""T6: the exact minimax over a convex hull, against programmes over all mechanisms and the paper's formula where that is exact."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet.design import design
from discreet.errors import DiscreetError, ImpossibleError
from tests.design.mechanisms import best_worst_tv, clients

SHIPPED = ["kl", "tv", "hellinger", "chi2"]


@pytest.mark.parametrize(
    ("weights", "lower", "upper", "epsilon", "known"),
    [([1, 1, 1, 1, 1], 0.5, 2.0, 0.5, 0.1764), ([4, 3, 2, 1], 0.5, 2.0, 0.5, 0.1933), ([7, 3], 0.0, 1.2, 1.0, 0.0)],
)
def test_bands_whose_reference_is_not_decomposable(
    weights: list[float], lower: float, upper: float, epsilon: float, known: float
) -> None:
    """The true minimax total variation, below the formula and below what the band's own box attains."""
    band = dc.Band(weights, lower=lower, upper=upper)
    found = design(band, epsilon=epsilon, divergence="tv", over="worst")
    assert found.value == pytest.approx(known, abs=5e-5)
    assert found.value - found.bound <= 1e-4 * found.value
    assert found.value <= float(dc.OptimalSampler(band, epsilon=epsilon).risk("tv")) + 1e-9


@pytest.mark.parametrize("name", [*SHIPPED, "jensen_shannon"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(
    ("weights", "lower", "upper"), [([1, 1, 1, 1], 0.5, 1.5), ([1, 1, 2], 0.5, 1.5), ([1] * 5, 0.0, 5.0)]
)
def test_the_formula_where_it_is_exact(
    name: str, epsilon: float, weights: list[float], lower: float, upper: float
) -> None:
    band = dc.Band(weights, lower=lower, upper=upper)
    formula = dc.minimax_risk(band, epsilon=epsilon, divergence=name)
    found = design(band, epsilon=epsilon, divergence=name, over="worst")
    assert formula.tight
    assert found.value == pytest.approx(formula.value, rel=1e-4, abs=1e-7)
    assert found.bound <= formula.value + 1e-9


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
@pytest.mark.parametrize(("n", "k", "seed"), [(1, 3, 0), (3, 2, 1), (4, 5, 2), (7, 4, 3)])
def test_no_mechanism_has_a_smaller_worst_tv(n: int, k: int, seed: int, epsilon: float) -> None:
    laws = clients(n, k, seed)
    found = design(dc.Simplex(k), epsilon=epsilon, clients=laws, divergence="tv", over="worst")
    optimum = best_worst_tv(laws, epsilon)
    assert found.bound <= optimum + 1e-9
    assert found.value == pytest.approx(optimum, rel=1e-4, abs=2e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 4.0))
@settings(max_examples=15, deadline=None)
def test_the_hull_is_served_as_promised(name: str, seed: int, epsilon: float) -> None:
    """No mixture of the clients is served worse than the value, and the bound is within 1e-4 of it."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 7)), int(rng.integers(1, 9))
    laws = clients(n, k, seed % 10_000)
    found = design(dc.Simplex(k), epsilon=epsilon, clients=laws, divergence=name, over="worst")
    assert found.value - found.bound <= max(1e-4 * found.value, 1e-7)
    mixed = rng.dirichlet(np.ones(n), 50) @ laws
    members = np.vstack([laws, mixed / mixed.sum(axis=1, keepdims=True)])
    assert np.max(dc.divergence(name)(members, found.sampler.output(members))) <= found.value * (1 + 1e-6) + 1e-9


def test_many_vertices_join_as_they_are_needed() -> None:
    """More clients than the method begins with: a band of nine outcomes has hundreds of vertices."""
    band = dc.Band(np.arange(2.0, 11.0), lower=0.4, upper=1.9)
    found = design(band, epsilon=0.7, divergence="kl", over="worst")
    assert found.examples > 400
    assert found.value - found.bound <= 1e-4 * found.value
    assert found.value < float(dc.OptimalSampler(band, epsilon=0.7).risk("kl"))


def test_it_shows_that_it_is_about_the_worst() -> None:
    found = design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), divergence="tv", over="worst")
    assert "worst tv 0.42388 over the hull of 3 examples" in repr(found)
    assert float(found.worst("tv")) == pytest.approx(2 / (math.e + 2), rel=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(DiscreetError, match="over = 'median' is not one of 'mean', 'worst'"):
        design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), over="median")
    with pytest.raises(DiscreetError, match=r"keep = 0\.5 is for over='mean'"):
        design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), over="worst", keep=0.5)
    with pytest.raises(DiscreetError, match="weights are for over='mean'"):
        design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), over="worst", weights=[1, 1, 1])
    with pytest.raises(DiscreetError, match="clients is missing: Simplex"):
        design(dc.Simplex(3), epsilon=1.0, over="worst")
    with pytest.raises(DiscreetError, match="clients is missing; give public examples"):
        design(dc.Simplex(3), epsilon=1.0)
    with pytest.raises(DiscreetError, match="clients is missing: Band"):
        design(dc.Band(np.ones(20), lower=0.5, upper=1.7), epsilon=1.0, over="worst")
    with pytest.raises(DiscreetError, match="entries, more than"):
        design(dc.Simplex(1000), epsilon=1.0, clients=np.eye(1000), over="worst")
    with pytest.raises(ImpossibleError, match="reverse_kl is infinite"):
        design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), over="worst", divergence="reverse_kl")
    with pytest.raises(DiscreetError, match=r"clients has 9,900 entries, more than 8,192.*hockey_stick:2"):
        design(
            dc.Simplex(100), epsilon=1.0, clients=(1.0 - np.eye(100)) / 99, over="worst", divergence="hockey_stick:2"
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [6.0, 8.0, 10.0])
@pytest.mark.parametrize("name", ["kl", "tv"])
def test_a_sure_client_beside_others_at_a_large_epsilon(name: str, epsilon: float) -> None:
    laws = np.array([[1.0, 0, 0, 0, 0], [0.13978576, 0.00708691, 0.60845248, 0.03857567, 0.20609919]])
    laws /= laws.sum(axis=1, keepdims=True)
    found = design(dc.Simplex(5), epsilon=epsilon, clients=laws, divergence=name, over="worst")
    assert found.value - found.bound <= max(1e-4 * found.value, 1e-7)
    assert found.certificate.exact() >= found.bound
    if name == "tv":
        assert found.value == pytest.approx(best_worst_tv(laws, epsilon), abs=2e-7)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_hockey_sticks_of_point_masses(gamma: float) -> None:
    """The point masses are the worst members of the simplex, whose minimax value has a formula."""
    name = f"hockey_stick:{gamma:g}"
    found = design(dc.Simplex(4), epsilon=1.0, clients=np.eye(4), divergence=name, over="worst")
    formula = dc.minimax_risk(dc.Simplex(4), epsilon=1.0, divergence=name)
    assert formula.tight
    assert found.value == pytest.approx(float(formula), rel=1e-4)
    assert found.bound <= float(formula) + 1e-9
