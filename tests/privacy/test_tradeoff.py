"""The closed forms against arbitrary precision, their behaviour, their inverse, and the mollifier's exact worst case."""

import itertools
import math
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import (
    Band,
    DiscreetError,
    ImpossibleError,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    Simplex,
    divergence,
    epsilon_for,
    minimax_risk,
)
from discreet.divergences import BUILT_IN
from tests.soaking import examples, wide
from tests.strategies import bands, epsilons, members, sizes

FINITE_AT_ZERO = [name for name in BUILT_IN if np.isfinite(divergence(name).at_zero)]


@pytest.mark.parametrize("k", [2, 5, 10, 100, 10**7])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 40.0, 1000.0])
def test_simplex_risk_is_theorem_3_1(k: int, epsilon: float) -> None:
    with mpmath.workdps(60):
        e = mpmath.exp(epsilon)
        top = e / (e + k - 1)
        exact = {
            "kl": -mpmath.log(top),
            "tv": 1 - top,
            "hellinger": 2 - 2 * mpmath.sqrt(top),
            "chi2": 1 / top - 1,
        }
        for name, value in exact.items():
            risk = minimax_risk(Simplex(k), epsilon=epsilon, divergence=name)
            assert risk.tight
            assert float(risk) == pytest.approx(float(value), rel=1e-9, abs=1e-15)


@pytest.mark.slow
@given(bands(), epsilons(1e-3, 20.0))
@settings(max_examples=examples(200), deadline=None)
def test_constants_satisfy_the_papers_identities(band: Band, epsilon: float) -> None:
    c = OptimalSampler(band, epsilon=epsilon).constants
    c1, c2 = band.bounds.lower, band.bounds.upper
    if c2 <= c1 * math.exp(epsilon):
        assert (c.r1, c.r2, c.gamma) == (1.0, 1.0, 1.0)
        assert c.b <= c1
        assert c2 * (1 - 1e-12) <= c.B
        return
    assert c1 <= c.b < 1.0 < c.B <= c2
    assert c.alpha * c.B + (1 - c.alpha) * c.b == pytest.approx(1.0, rel=1e-12)
    assert c.gamma * c1 + 1 - c.gamma == pytest.approx(c.b, rel=1e-9)
    assert c.gamma * c2 + 1 - c.gamma == pytest.approx(c.B, rel=1e-9)
    assert c.r1 == pytest.approx(c1 / c.b)
    assert c.r2 == pytest.approx(c2 / c.B)
    assert math.log(c.B / c.b) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=wide(300, 20), deadline=None)
def test_no_client_exceeds_the_risk(data: st.DataObject) -> None:
    family = data.draw(st.one_of(bands(12), sizes(30).map(Simplex)))
    epsilon = data.draw(epsilons(1e-2, 10.0))
    p = data.draw(members(family))
    for kind in (OptimalSampler, LinearSampler, MollifierSampler):
        sampler = kind(family, epsilon=epsilon)
        for name in BUILT_IN:
            realised = float(divergence(name)(p, sampler.output(p)))
            worst = sampler.risk(name).value
            assert realised <= worst * (1 + 1e-9) + 1e-12 or math.isinf(worst), (kind, name)


@pytest.mark.parametrize("name", FINITE_AT_ZERO)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_point_masses_attain_the_risk_on_the_simplex(name: str, epsilon: float) -> None:
    family = Simplex(7)
    reference = np.array([0.3, 0.2, 0.15, 0.15, 0.1, 0.06, 0.04])
    samplers = [
        OptimalSampler(family, epsilon=epsilon),
        LinearSampler(family, epsilon=epsilon),
        MollifierSampler(family, epsilon=epsilon),
        MollifierSampler(family, epsilon=epsilon, reference=reference),
    ]
    for sampler in samplers:
        attained = np.max(divergence(name)(np.eye(7), sampler.output(np.eye(7))))
        assert sampler.risk(name).tight
        assert attained == pytest.approx(sampler.risk(name).value, rel=1e-12)


@pytest.mark.parametrize("k", [2, 10, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_mollifier_worst_case_is_appendix_f(k: int, epsilon: float) -> None:
    top = min(math.exp(epsilon / 2) / k, 1 - (1 - 1 / k) * math.exp(-epsilon / 2))
    assert MollifierSampler(Simplex(k), epsilon=epsilon).risk("tv").value == pytest.approx(1 - top, rel=1e-12)
    assert minimax_risk(Simplex(k), epsilon=epsilon, divergence="tv").value <= 1 - top


@pytest.mark.parametrize("name", FINITE_AT_ZERO)
def test_risk_falls_with_epsilon_and_grows_with_k(name: str) -> None:
    """Appendix E."""
    budgets = np.geomspace(0.01, 30, 40)
    by_epsilon = [minimax_risk(Simplex(10), epsilon=float(e), divergence=name).value for e in budgets]
    assert all(a >= b for a, b in itertools.pairwise(by_epsilon))
    assert by_epsilon[-1] < 1e-5
    by_k = [minimax_risk(Simplex(k), epsilon=1.0, divergence=name).value for k in range(2, 60)]
    assert all(a <= b for a, b in itertools.pairwise(by_k))


def test_infinite_risk_where_f_of_zero_is_infinite() -> None:
    assert minimax_risk(Simplex(3), epsilon=1.0, divergence="reverse_kl").value == math.inf
    band = Band(np.ones(4), lower=0.5, upper=1.5)
    assert math.isfinite(minimax_risk(band, epsilon=0.5, divergence="reverse_kl").value)


@pytest.mark.parametrize("lower", [3e-16, 1e-20, 1e-300])
@pytest.mark.parametrize("name", ["kl", "hellinger", "reverse_kl", "alpha:-1", "alpha:0.1", "renyi:0.02"])
def test_a_lower_bound_that_hardly_differs_from_zero_is_not_zero(name: str, lower: float) -> None:
    band, epsilon = Band(np.ones(3), lower=lower, upper=3.0), 1.0
    found, sampler = minimax_risk(band, epsilon=epsilon, divergence=name), OptimalSampler(band, epsilon=epsilon)
    extreme = np.array([1.0 - 2.0 * lower / 3.0, lower / 3.0, lower / 3.0])
    assert found.tight
    assert found.value == pytest.approx(divergence(name)(extreme, sampler.output(extreme)), rel=1e-12)
    assert epsilon_for(band, divergence=name, risk=found.value) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.slow
@given(sizes(1000), st.sampled_from(["kl", "tv", "hellinger", "chi2", "jensen_shannon"]), st.floats(0.001, 0.999))
@settings(max_examples=examples(200), deadline=None)
def test_epsilon_for_is_the_smallest(k: int, name: str, fraction: float) -> None:
    family = Simplex(k)
    target = fraction * minimax_risk(family, epsilon=1e-9, divergence=name).value
    epsilon = epsilon_for(family, divergence=name, risk=target)
    assert minimax_risk(family, epsilon=epsilon, divergence=name).value <= target
    assert minimax_risk(family, epsilon=epsilon * (1 - 1e-9), divergence=name).value > target * (1 - 1e-6)
    smaller = minimax_risk(family, epsilon=epsilon * (1 - 1e-6), divergence=name).value
    assert smaller > target


def test_epsilon_for_at_the_ends() -> None:
    band = Band(np.ones(4), lower=0.5, upper=1.5)
    assert epsilon_for(band, divergence="kl", risk=0.0) == pytest.approx(math.log(3))
    assert minimax_risk(band, epsilon=epsilon_for(band, divergence="kl", risk=0.0), divergence="kl").value == 0.0
    assert epsilon_for(Simplex(4), divergence="tv", risk=0.75) == 0.0
    assert epsilon_for(Simplex(10), divergence="tv", risk=0.3) == pytest.approx(math.log(21), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: epsilon_for(Simplex(4), divergence="tv", risk=0.0), ImpossibleError, "no epsilon reaches tv = 0"),
        (lambda: epsilon_for(Simplex(4), divergence="reverse_kl", risk=1.0), ImpossibleError, "f\\(0\\) is infinite"),
        (lambda: epsilon_for(Simplex(4), divergence="tv", risk=-1.0), DiscreetError, r"risk = -1 is not in \[0, inf\)"),
        (lambda: epsilon_for(Simplex(4), divergence="tv", risk=math.nan), DiscreetError, "risk = nan"),
        (
            lambda: minimax_risk(Simplex(4), epsilon=0.0, divergence="tv"),
            DiscreetError,
            r"epsilon = 0 is not in \(0, inf\)",
        ),
        (lambda: minimax_risk(Simplex(4), epsilon=-1.0, divergence="tv"), DiscreetError, "epsilon = -1"),
        (lambda: minimax_risk(Simplex(4), epsilon=math.inf, divergence="tv"), DiscreetError, "epsilon = inf"),
        (lambda: minimax_risk(Simplex(4), epsilon=math.nan, divergence="tv"), DiscreetError, "epsilon = nan"),
        (
            lambda: minimax_risk(Simplex(4), epsilon=cast(Any, "1"), divergence="tv"),
            DiscreetError,
            "epsilon = '1' is not a number",
        ),
        (lambda: minimax_risk(Simplex(4), epsilon=1.0, divergence="nope"), DiscreetError, "nope"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_identity_where_the_class_allows_it(data: st.DataObject) -> None:
    band = Band(np.ones(data.draw(st.integers(2, 20))), lower=0.5, upper=1.9)
    sampler = OptimalSampler(band, epsilon=data.draw(st.floats(math.log(1.9 / 0.5) + 1e-9, 50.0)))
    p = data.draw(members(band))
    assert sampler.identity
    assert sampler.risk("chi2").value == 0.0
    assert sampler.risk("chi2").tight
    assert np.abs(sampler.output(p) - p).max() <= 1e-15
    assert np.abs(LinearSampler(band, epsilon=sampler.epsilon).output(p) - p).max() <= 1e-15


def test_a_single_outcome_has_nothing_to_hide() -> None:
    for kind in (OptimalSampler, LinearSampler, MollifierSampler):
        sampler = kind(Simplex(1), epsilon=0.7)
        assert sampler.output([1.0]).tolist() == [1.0]
        assert sampler.release([1.0]) == 0
        assert sampler.risk("kl").value == 0.0
