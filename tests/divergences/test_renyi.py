"""Renyi divergences: an increasing function of the alpha divergence, hence with the same nearest laws and worst clients."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import log, mp, mpf

import discreet as dc
from discreet.divergences import RenyiDivergence, renyi
from tests.strategies import laws

ORDERS = [0.1, 0.5, 0.999, 1.001, 2.0, 5.0, 100.0, 1000.0]


def exact(p: np.ndarray, q: np.ndarray, order: float) -> float:
    with mp.workdps(60):
        a = mpf(order)
        total = sum(mpf(float(x)) ** a * mpf(float(y)) ** (1 - a) for x, y in zip(p, q, strict=True) if x > 0.0)
        return float(log(total) / (a - 1))


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(0, 2**32), spread=st.floats(0.05, 20.0))
def test_it_is_its_formula(order: float, seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.full(5, spread))
    if q.min() < 1e-300:
        return
    expected = exact(p / math.fsum(p), q / math.fsum(q), order)
    assert dc.divergence(f"renyi:{order}")(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-12 / abs(order - 1.0))


@pytest.mark.parametrize("order", ORDERS)
def test_no_sum_overflows(order: float) -> None:
    """p^a q^(1-a) is past every float long before the divergence is."""
    p, q = np.array([1.0, 0.0]), np.array([1e-200, 1.0])
    assert dc.divergence(f"renyi:{order}")(p, q) == pytest.approx(200.0 * math.log(10.0), rel=1e-12)


def test_zeros() -> None:
    below, above = dc.divergence("renyi:0.5"), dc.divergence("renyi:2")
    assert below([1.0, 0.0], [0.0, 1.0]) == above([1.0, 0.0], [0.0, 1.0]) == math.inf == above.maximum
    assert below([0.5, 0.5], [1.0, 0.0]) == pytest.approx(math.log(2.0))
    assert above([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert above([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2.0))


@pytest.mark.slow
@given(p=laws(4), q=laws(4))
def test_it_is_never_negative_and_grows_with_the_order(p: np.ndarray, q: np.ndarray) -> None:
    found = [float(dc.divergence(f"renyi:{order}")(p, q)) for order in (0.25, 0.5, 2.0, 8.0)]
    assert min(found) >= 0.0
    assert all(one <= two * (1.0 + 1e-9) + 1e-12 for one, two in itertools.pairwise(found))


@pytest.mark.parametrize("order", [0.5, 2.0, 7.0])
@pytest.mark.parametrize(
    "family", [dc.Simplex(6), dc.Band([1, 1, 1, 1], lower=0.5, upper=1.5), dc.GaussianMixtures()], ids=repr
)
def test_risks_are_the_same_function_of_those_of_the_alpha_divergence(family: dc.Simplex, order: float) -> None:
    def shown(value: float) -> float:
        return math.log1p(order * (order - 1.0) * value) / (order - 1.0)

    renyi, alpha = f"renyi:{order}", f"alpha:{order}"
    at = dc.minimax_risk(family, epsilon=1.0, divergence=renyi)
    other = dc.minimax_risk(family, epsilon=1.0, divergence=alpha)
    assert at.value == pytest.approx(shown(other.value), rel=1e-9)
    assert (at.tight, at.attained) == (other.tight, other.attained)
    for kind in (dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler):
        sampler = kind(family, epsilon=1.0)
        assert sampler.risk(renyi).value == pytest.approx(shown(sampler.risk(alpha).value), rel=1e-9)
    wanted = 0.5 * at.value
    needed = dc.epsilon_for(family, divergence=renyi, risk=wanted)
    assert float(dc.OptimalSampler(family, epsilon=needed).risk(renyi)) <= wanted
    assert float(dc.OptimalSampler(family, epsilon=0.999 * needed).risk(renyi)) > wanted


def test_the_worst_client_of_the_simplex_attains_the_risk() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=1.0)
    p = np.eye(10)[3]
    for order in ORDERS:
        d = dc.divergence(f"renyi:{order}")
        assert float(sampler.risk(d)) == pytest.approx(float(d(p, sampler.output(p))), rel=1e-9)


def test_order_one_is_kl_and_others_are_refused() -> None:
    assert dc.divergence("renyi:1") == dc.divergence("kl")
    for order in ("0", "-1", "inf", "nan"):
        with pytest.raises(dc.DiscreetError, match=r"order = .* is not in \(0, inf\)"):
            dc.divergence(f"renyi:{order}")
    with pytest.raises(dc.DiscreetError, match=r"renyi:2 is a function of alpha:2, .* use that one"):
        dc.design(dc.Simplex(3), epsilon=1.0, clients=np.eye(3), divergence="renyi:2")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("total variation", "tv"),
        (" Jensen  Shannon ", "jensen_shannon"),
        ("squared Hellinger", "hellinger"),
        ("chi squared", "chi2"),
        ("reverse KL", "reverse_kl"),
        ("Le Cam", "le_cam"),
        ("Kullback-Leibler", "kl"),
        ("hockey stick: 2", "hockey_stick:2"),
        ("Rényi:2", "renyi:2"),
    ],
)
def test_names_may_be_written_as_people_do(name: str, same: str) -> None:
    assert dc.divergence(name) == dc.divergence(same)


def test_the_class_has_no_order_1() -> None:
    """It divides by order - 1; `renyi(1)` is KL."""
    with pytest.raises(dc.DiscreetError, match=r"renyi\(1\) is 'kl'"):
        RenyiDivergence(1.0)
    assert renyi(1.0).name == "kl"
