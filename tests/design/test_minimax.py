"""`minimax_risk(..., bracket=True)`: certified from both sides, against programmes over all mechanisms, formulas and plain minimisation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar

import discreet as dc
from discreet.design._minimax import _minimax_lower_bound_by_random_vertices
from discreet.errors import DiscreetError
from discreet.families._bands_and_laws import band_vertices
from tests.design.mechanisms import best_worst_tv
from tests.soaking import examples

SHIPPED = ["kl", "tv", "hellinger", "chi2"]


@pytest.mark.parametrize(("weights", "known"), [([1, 1, 1, 1, 1], 0.1764), ([4, 3, 2, 1], 0.1933)])
def test_values_known_beforehand(weights: list[float], known: float) -> None:
    found = dc.minimax_risk(dc.Band(weights, lower=0.5, upper=2.0), epsilon=0.5, divergence="tv", bracket=True)
    lower, upper = found.bracket
    assert not found.tight
    assert lower <= upper <= lower * (1 + 1e-4)
    assert upper == pytest.approx(known, abs=5e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
@pytest.mark.parametrize(("k", "lower", "upper"), [(3, 0.2, 1.3), (4, 0.0, 1.7), (5, 0.5, 2.0), (6, 0.3, 2.7)])
def test_uniform_bands_against_a_programme_over_all_mechanisms(
    k: int, lower: float, upper: float, epsilon: float
) -> None:
    band = dc.Band(np.ones(k), lower=lower, upper=upper)
    laws = np.unique(np.round(band_vertices(np.full(k, 1 / k), lower, upper).laws, 12), axis=0)
    found = dc.minimax_risk(band, epsilon=epsilon, divergence="tv", bracket=True)
    optimum = best_worst_tv(laws, epsilon)
    assert found.bracket[0] - 1e-7 <= optimum <= found.bracket[1] + 1e-7
    assert found.bracket[1] - found.bracket[0] <= 1e-4 * optimum + 1e-7


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rare_outcomes_let_no_distribution_outside_the_band_count(epsilon: float) -> None:
    """Every member is half mu and half any distribution, so there is one vertex for each outcome."""
    weights = np.array([1e-9, 2e-9, 1.0])
    laws = 0.5 * weights / weights.sum() + 0.5 * np.eye(3)
    band = dc.Band(weights, lower=0.5, upper=1e300)
    found = dc.minimax_risk(band, epsilon=epsilon, divergence="tv", bracket=True)
    optimum = best_worst_tv(laws, epsilon)
    assert found.bracket[0] - 1e-7 <= optimum <= found.bracket[1] + 1e-7
    known = band_vertices(np.asarray(band.reference), band.bounds.lower, band.bounds.upper).laws
    assert band.contains(known)
    assert max(np.min(dc.divergence("tv")(one, laws)) for one in known) <= 1e-12


@pytest.mark.parametrize("name", SHIPPED)
def test_uniform_bands_of_many_outcomes_by_a_floor_of_one_number(name: str) -> None:
    """Forty outcomes have more vertices than can be listed; F(P; b mu) is minimised here by hand, through the sampler of that floor."""
    k, epsilon, lower, upper = 40, 1.0, 0.25, 1.87
    band, f = dc.Band(np.ones(k), lower=lower, upper=upper), dc.divergence(name)
    share = (1 - lower) / (upper - lower) * k
    ratio = np.full(k, lower)
    ratio[: int(share)] = upper
    ratio[int(share)] = lower + (share - int(share)) * (upper - lower)
    law = ratio / ratio.sum()

    def served(b: float) -> float:
        low, high = b / k, b * math.exp(epsilon) / k
        left, right = 1e-9, float((law / low).max())
        for _ in range(200):
            middle = (left + right) / 2
            left, right = (middle, right) if np.clip(law / middle, low, high).sum() > 1 else (left, middle)
        q = np.clip(law / right, low, high)
        return float(f(law, q / q.sum()))

    best = minimize_scalar(
        served, bounds=(math.exp(-epsilon) + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}
    )
    found = dc.minimax_risk(band, epsilon=epsilon, divergence=name, bracket=True)
    assert found.bracket[0] <= best.fun * (1 + 1e-7) + 1e-9
    assert found.bracket[1] == pytest.approx(best.fun, rel=1e-4)
    assert found.value <= float(dc.OptimalSampler(band, epsilon=epsilon).risk(name)) + 1e-12


@pytest.mark.parametrize("name", ["kl", "hellinger"])
def test_some_vertices_stay_below_the_formula_where_it_is_exact(name: str) -> None:
    """Sixteen unequal outcomes that sets of half the mass cover evenly: the true value is known."""
    band = dc.Band(np.repeat([1.0, 3.0], 8), lower=0.5, upper=1.5)
    exact = dc.OptimalSampler(dc.Band(np.repeat([1.0, 3.0], 4), lower=0.5, upper=1.5), epsilon=0.7).risk(name)
    assert exact.tight
    below = _minimax_lower_bound_by_random_vertices(band, 0.7, dc.divergence(name))
    assert 0.9 * exact.value < below <= exact.value * (1 + 1e-9)


def test_other_bands_past_twelve_outcomes() -> None:
    band = dc.Band(np.arange(1.0, 21.0), lower=0.3, upper=1.9)
    found = dc.minimax_risk(band, epsilon=1.0, divergence="kl", bracket=True)
    assert 0.9 * found.value < found.bracket[0] < found.bracket[1]
    assert found.value == float(dc.OptimalSampler(band, epsilon=1.0).risk("kl"))


@pytest.mark.slow
@given(st.integers(2, 7), st.floats(0.0, 0.9), st.floats(1.05, 3.0), st.floats(0.05, 5.0), st.sampled_from(SHIPPED))
@settings(max_examples=examples(40), deadline=None)
def test_brackets_hold_what_q_star_and_the_mollifier_do(
    k: int, lower: float, upper: float, epsilon: float, name: str
) -> None:
    """No sampler has a smaller worst case than the lower side: least of all those here."""
    band = dc.Band(np.ones(k), lower=lower, upper=min(upper, float(k)))
    found = dc.minimax_risk(band, epsilon=epsilon, divergence=name, bracket=True)
    for sampler in (dc.OptimalSampler(band, epsilon=epsilon), dc.MollifierSampler(band, epsilon=epsilon)):
        assert found.bracket[0] <= float(sampler.risk(name)) * (1 + 1e-9) + 1e-12
    assert found.bracket[0] <= found.bracket[1]
    assert found.value <= float(dc.minimax_risk(band, epsilon=epsilon, divergence=name)) + 1e-15


@pytest.mark.slow
def test_mixtures_on_a_line() -> None:
    gaussians = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0)
    tv = dc.minimax_risk(gaussians, epsilon=1.0, divergence="tv", bracket=True)
    assert 0.1369 < tv.bracket[0] <= 0.13715 <= tv.bracket[1] < 0.1373
    kl = dc.minimax_risk(gaussians, epsilon=1.0, divergence="kl", bracket=True)
    assert 2.0 * tv.bracket[0] ** 2 < kl.bracket[0] <= kl.bracket[1]  # Pinsker's inequality, which every sampler obeys
    assert kl.value <= 1.002 * kl.bracket[0]
    assert kl.value < 0.98 * float(dc.OptimalSampler(gaussians, epsilon=1.0).risk("kl"))
    beyond = dc.minimax_risk(gaussians, epsilon=40.0, divergence="tv", bracket=True)
    assert beyond.bracket == (0.0, beyond.value)


def test_where_the_formula_is_exact_nothing_is_looked_for() -> None:
    found = dc.minimax_risk(dc.Simplex(10**6), epsilon=1.0, divergence="kl", bracket=True)
    assert found.tight
    assert found.bracket == (found.value, found.value)
    assert (
        dc.minimax_risk(dc.Band([7, 3], lower=0.0, upper=1.2), epsilon=1.0, divergence="tv", bracket=True).value == 0.0
    )
    assert dc.minimax_risk(dc.Band(np.ones(5), lower=0.5, upper=2.0), epsilon=0.5, divergence="tv").bracket[0] == 0.0


def test_infinite_where_a_vertex_leaves_an_outcome_out() -> None:
    for weights in (np.ones(7), np.arange(1.0, 8.0), np.arange(1.0, 18.0)):
        band = dc.Band(weights, lower=0.0, upper=1.9)
        assert dc.minimax_risk(band, epsilon=1.0, divergence="reverse_kl", bracket=True).bracket == (math.inf, math.inf)


def test_what_is_refused() -> None:
    five = dc.Band(np.ones(5), lower=0.5, upper=2.0)
    many = dc.Band(np.arange(1.0, 14.0), lower=0.5, upper=2.0)
    with pytest.raises(DiscreetError, match=r"no bracket is known under \(0\.5, 1e-06\)-LDP.*at most 12 outcomes"):
        dc.minimax_risk(many, privacy=dc.Approximate(0.5, delta=1e-6), divergence="tv", bracket=True)
    with pytest.raises(DiscreetError, match="function of alpha:2"):
        dc.minimax_risk(five, epsilon=0.5, divergence="renyi:2", bracket=True)
    with pytest.raises(DiscreetError, match="no bracket is known"):
        dc.minimax_risk(dc.GaussianMixtures(dim=2), epsilon=1.0, divergence="tv", bracket=True)
    with pytest.raises(DiscreetError, match="at most 1,024 outcomes"):
        dc.minimax_risk(dc.Band(np.ones(1025), lower=0.5, upper=1.9), epsilon=0.5, divergence="tv", bracket=True)
