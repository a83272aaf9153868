"""The worst client of each sampler, against independent integrals; and the budget that keeps it within a risk."""

import math
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import discreet as dc
from discreet.projection._worst_case import mollifier_epsilon_reaching_risk
from tests.mechanisms.continuous.clients import random_mixture
from tests.soaking import examples, wide


def hockey_stick_of_kernel(dim: int, centre: float, level: float, radius: float = 1.0) -> float:
    """E[(1 - level/R)_+] under N(centre e, I), R = p/h for the unnormalised envelope h of the radius: a sum over a fine grid."""
    z, step = np.linspace(centre - 9.0, centre + 9.0, 6001, retstep=True)
    rest, width = (np.zeros(1), 1.0) if dim == 1 else np.linspace(0.0, 9.0, 1501, retstep=True)
    chances = np.ones(1) if dim == 1 else stats.chi.pdf(rest, dim - 1) * width * np.where(rest == 0.0, 0.5, 1.0)
    beyond = np.maximum(0.0, np.hypot(z[:, None], rest) - radius)
    log_ratio = -0.5 * (np.square(z - centre)[:, None] + np.square(rest) - np.square(beyond))
    excess = np.maximum(0.0, 1.0 - level * np.exp(-log_ratio)) @ chances
    return float(excess @ stats.norm.pdf(z - centre) * step)


@pytest.mark.parametrize(("dim", "value"), [(1, 0.1556), (10, 0.3798), (100, 0.4543)])
def test_the_worst_gaussian_mixture(dim: int, value: float) -> None:
    family = dc.GaussianMixtures(dim)
    risk = dc.OptimalSampler(family, epsilon=1.0).risk("tv")
    assert risk.value == pytest.approx(value, abs=1e-4)
    assert (risk.tight, risk.attained) == (False, True)
    band = dc.minimax_risk(family, epsilon=1.0, divergence="tv")
    assert band.value > risk.value
    assert not band.tight


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("level", wide([0.05, 0.3, 0.8], [0.3]))
def test_a_kernel_farther_out_is_more_spread(dim: int, level: float) -> None:
    """G grows with the distance of the centre: what makes the kernel at the radius the worst member."""
    centres = wide((0.0, 0.3, 0.6, 0.9, 1.0), (0.0, 0.6, 1.0))
    found = [hockey_stick_of_kernel(dim, centre, level) for centre in centres]
    assert np.all(np.diff(found) >= -1e-7)
    assert found[-1] > found[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", [
    dc.GaussianMixtures(1), dc.GaussianMixtures(1, radius=0.4, scale=2.0), dc.GaussianMixtures(1, box=(-4.0, 4.0)),
    dc.GaussianMixtures(1, radius=2.0, box=(-2.5, 2.5)), dc.GaussianMixtures(2), dc.GaussianMixtures(3, radius=0.5),
    dc.LaplaceMixtures(1), dc.LaplaceMixtures(1, radius=3.0, scale=0.7), dc.LaplaceMixtures(2, radius=0.6),
])  # fmt: skip
@pytest.mark.parametrize("epsilon", wide([0.3, 1.5], [1.5]))
def test_it_is_what_the_sampler_does_to_that_kernel(family: Any, epsilon: float) -> None:
    centre = np.zeros((1, family.dim))
    centre[0, 0] = family.radius
    worst = family.mixture([1.0], centre)
    rounding = {1: 1e-9, 2: 1e-6, 3: 1e-5}[family.dim]
    for sampler in (dc.OptimalSampler(family, epsilon=epsilon), dc.MollifierSampler(family, epsilon=epsilon)):
        law = sampler.output(worst)
        for name in ("kl", "tv", "hellinger", "chi2"):
            risk = sampler.risk(name)
            if risk.attained and risk.value > 0.0:
                assert law.divergence(name) == pytest.approx(risk.value, abs=rounding)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3.0), st.booleans())
@settings(deadline=None, max_examples=examples(60))
def test_no_mixture_is_served_worse(seed: int, epsilon: float, boxed: bool) -> None:
    family = dc.GaussianMixtures(1, box=(-4.0, 4.0) if boxed else None)
    rng = np.random.default_rng(seed)
    member: Any = random_mixture(rng) if rng.random() < 0.5 else family.mixture([1.0], [rng.uniform(-1.0, 1.0)])
    sampler = dc.OptimalSampler(family, epsilon=epsilon)
    law = sampler.output(member)
    for name in ("kl", "tv", "hellinger", "chi2"):
        assert law.divergence(name) <= sampler.risk(name).value + 1e-9


@pytest.mark.parametrize("centres", [[0.5, 0.5], [0.9, 0.1], [0.25, -0.75], [0.3, 0.3]])
def test_a_corner_is_the_worst_centre_of_laplace_mixtures(centres: list[float]) -> None:
    family = dc.LaplaceMixtures(2)
    sampler = dc.OptimalSampler(family, epsilon=1.0)
    law = sampler.output(family.mixture([1.0], [centres]))
    for name in ("kl", "tv"):
        assert law.divergence(name) < sampler.risk(name).value


@pytest.mark.parametrize(
    "family",
    [
        dc.GaussianMixtures(1, box=(-1.0, 4.0)),
        dc.GaussianMixtures(2, box=(-3.0, 3.0)),
        dc.LaplaceMixtures(1, box=(-2.0, 2.0)),
    ],
)
def test_where_nothing_is_proved_the_band_is_the_bound(family: Any) -> None:
    risk = dc.OptimalSampler(family, epsilon=0.5).risk("tv")
    assert (risk.tight, risk.attained) == (False, False)
    assert risk.value == dc.minimax_risk(family, epsilon=0.5, divergence="tv").value


def test_the_budget_follows_the_sampler_and_not_the_band() -> None:
    family = dc.GaussianMixtures(1)
    epsilon = dc.epsilon_for(family, divergence="tv", risk=0.2)
    assert epsilon == pytest.approx(0.7089, abs=1e-4)
    assert dc.OptimalSampler(family, epsilon=epsilon).risk("tv").value <= 0.2
    assert dc.OptimalSampler(family, epsilon=epsilon * (1 - 1e-6)).risk("tv").value > 0.2
    assert mollifier_epsilon_reaching_risk(family, divergence="tv", risk=0.2) > 0.0


@pytest.mark.parametrize("name", ["kl", "tv", "hellinger", "chi2", "jensen_shannon", "le_cam", "alpha:3", "alpha:0.5"])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 5.0, 20.0, 37.0, 40.0, 120.0, 700.0])
def test_digits_hold_until_the_exponential_underflows(name: str, epsilon: float) -> None:
    """The formula on the simplex in 400 digits."""
    with mpmath.workdps(400):
        k, q = mpmath.mpf(10), mpmath.exp(-mpmath.mpf(epsilon))
        r2 = 1 + (k - 1) * q
        f: Any = {
            "kl": lambda x: x * mpmath.log(x) if x else mpmath.mpf(0),
            "tv": lambda x: abs(x - 1) / 2,
            "hellinger": lambda x: (1 - mpmath.sqrt(x)) ** 2,
            "chi2": lambda x: x**2 - 1,
            "jensen_shannon": lambda x: (
                ((x * mpmath.log(2 * x / (1 + x))) if x else 0) + mpmath.log(2 / (1 + x))
            ) / 2,
            "le_cam": lambda x: (x - 1) ** 2 / (x + 1) / 2,
            "alpha:3": lambda x: (x**3 - 3 * x + 2) / 6,
            "alpha:0.5": lambda x: (mpmath.sqrt(x) - x / 2 - mpmath.mpf(1) / 2) / (-mpmath.mpf(1) / 4),
        }[name]  # fmt: skip
        expected = float(f(r2) / r2 + (r2 - 1) / r2 * f(mpmath.mpf(0)))
    found = dc.minimax_risk(dc.Simplex(10), epsilon=epsilon, divergence=name)
    assert found.value == pytest.approx(expected, rel=1e-13)
    assert found.tight


def test_a_band_near_the_identity_keeps_its_digits() -> None:
    band = dc.Band(np.ones(4), lower=1e-12, upper=2.0)
    with mpmath.workdps(60):
        c1, c2, q = mpmath.mpf(1e-12), mpmath.mpf(2), mpmath.exp(-28)
        alpha = (1 - c1) / (c2 - c1)
        b = 1 / (alpha / q + 1 - alpha)
        r1, r2 = c1 / b, c2 * q / b
        chord = (1 - r1) / (r2 - r1) * r2 * mpmath.log(r2) + (r2 - 1) / (r2 - r1) * r1 * mpmath.log(r1)
    assert dc.minimax_risk(band, epsilon=28.0, divergence="kl").value == pytest.approx(float(chord), rel=1e-10)


def test_a_tiny_risk_takes_the_epsilon_it_takes() -> None:
    assert dc.epsilon_for(dc.Simplex(10), divergence="kl", risk=1e-20) == pytest.approx(math.log(9e20), rel=1e-12)
    assert mollifier_epsilon_reaching_risk(dc.Simplex(10), divergence="kl", risk=1e-20) == pytest.approx(
        2 * math.log(0.9e20), rel=1e-9
    )


@pytest.mark.parametrize("risk", [5e-324, 1e-320, 1e-300, 1e-100, 1e-28])
def test_a_risk_past_what_a_delta_is_decided_for_is_refused_by_name(risk: float) -> None:
    """e^64 is the largest ratio of integers: above it no box is larger, and a search would never end."""
    with pytest.raises(dc.ImpossibleError, match=f"risk = {risk:g} needs an epsilon of 64 or more"):
        dc.epsilon_for(dc.Simplex(3), divergence="tv", risk=risk, delta=1e-6)
    assert dc.epsilon_for(dc.Simplex(3), divergence="tv", risk=1e-27, delta=1e-6) < 64.0


def test_a_band_that_is_not_decomposable_has_no_exact_zero() -> None:
    risk = dc.minimax_risk(dc.Band([1] * 5, lower=0.0, upper=2.0), epsilon=60.0, divergence="kl")
    assert risk.value > 0.0
    assert not risk.tight


@pytest.mark.parametrize("call", [
    lambda: dc.minimax_risk(cast(Any, 10), epsilon=1.0, divergence="tv"),
    lambda: dc.epsilon_for(cast(Any, [0.5, 0.5]), divergence="tv", risk=0.1),
    lambda: mollifier_epsilon_reaching_risk(cast(Any, None), divergence="tv", risk=0.1),
])  # fmt: skip
def test_what_is_no_family_is_refused_by_name(call: Any) -> None:
    with pytest.raises(dc.DiscreetError, match=r"is not a family; pass Simplex"):
        call()
