"""Theorem 3.3: the risk formula is attained by extreme clients, and no member exceeds it; Proposition 3.2: when nothing helps."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

import discreet as dc
from discreet.divergences import BUILT_IN
from tests.mechanisms.continuous.clients import interval_family, random_mixture
from tests.soaking import examples

CAUCHY = stats.cauchy(0.3, 2.0)
INTERVAL = interval_family()
BANDS: dict[str, Any] = {
    "interval": dc.DensityBand(INTERVAL.pdf, [(-4.0, 4.0)], lower=0.0, upper=INTERVAL.bounds.upper),
    "uniform": dc.DensityBand(lambda x: np.ones_like(x), [(0.0, 1.0)], lower=0.25, upper=1.75),
    "cauchy": dc.DensityBand(CAUCHY, lower=0.5, upper=3.0),
    "laplace": dc.DensityBand(stats.laplace(), lower=math.exp(-0.5), upper=math.exp(0.5)),
}


def extreme(name: str, start: float) -> Any:
    """p = c2 h on an interval of reference mass alpha beginning at a quantile, c1 h elsewhere."""
    family = BANDS[name]
    lower, upper, alpha = family.bounds.lower, family.bounds.upper, family.bounds.alpha
    first = start * (1.0 - alpha)
    low, high = QUANTILES[name](first), QUANTILES[name](first + alpha)
    return lambda x: np.where((x >= low) & (x <= high), upper, lower) * family.pdf(x)


def interval_quantile(mass: float) -> float:
    """Of the paper's interval family, from normal distribution functions."""
    tail = math.sqrt(2.0 * math.pi) * (stats.norm.cdf(3.0) - 0.5)
    whole = 2.0 + 2.0 * tail

    def below(x: float) -> float:
        left = math.sqrt(2.0 * math.pi) * (stats.norm.cdf(min(x, -1.0) + 1.0) - stats.norm.cdf(-3.0))
        right = math.sqrt(2.0 * math.pi) * (stats.norm.cdf(max(x, 1.0) - 1.0) - 0.5)
        return float(left + min(max(x + 1.0, 0.0), 2.0) + right)

    return float(brentq(lambda x: below(x) - mass * whole, -4.0, 4.0, xtol=1e-15))


QUANTILES: dict[str, Any] = {
    "interval": interval_quantile,
    "uniform": lambda mass: mass,
    "cauchy": CAUCHY.ppf,
    "laplace": stats.laplace.ppf,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BANDS)
@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.5])
def test_extreme_clients_reach_the_risk(name: str, epsilon: float) -> None:
    family = BANDS[name]
    sampler = dc.OptimalSampler(family, epsilon=epsilon)
    for start in (0.0, 0.37):
        law = sampler.output(extreme(name, start))
        for divergence in BUILT_IN:
            risk = sampler.risk(divergence)
            assert risk.tight
            if math.isfinite(risk.value):
                assert law.divergence(divergence) == pytest.approx(risk.value, abs=1e-9)


def test_extreme_clients_in_the_plane() -> None:
    """A sector of the plane of mass alpha: its edge is a coordinate line, so that the nodes can be exact."""
    family = dc.GaussianMixtures(2)
    sampler = dc.OptimalSampler(family, epsilon=0.7)
    alpha = family.bounds.alpha
    panels = family.panels.cut_at_points(1, np.array([2.0 * math.pi * alpha]))
    family.__dict__["panels"], family.__dict__["nodes"] = panels, family.nodes_of_panels(panels, 6)

    def sector(x: NDArray[np.float64]) -> NDArray[np.float64]:
        angle = np.mod(np.arctan2(x[:, 1], x[:, 0]), 2.0 * math.pi)
        return np.where(angle < 2.0 * math.pi * alpha, family.bounds.upper, 0.0) * family.pdf(x)

    law = sampler.output(sector)
    for divergence in ("kl", "tv", "hellinger", "chi2"):
        bound = dc.minimax_risk(family, epsilon=0.7, divergence=divergence)
        assert law.divergence(divergence) == pytest.approx(bound.value, abs=1e-9)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 4.0), st.sampled_from(sorted(BANDS)))
@settings(deadline=None, max_examples=examples(80))
def test_no_member_exceeds_the_risk(seed: int, epsilon: float, name: str) -> None:
    """Random members: mixtures, extreme points, and p/h a random trigonometric function clipped into the band."""
    family = BANDS[name]
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    if kind == 0:
        p: Any = extreme(name, float(rng.random()))
    elif kind == 1 and name == "interval":
        p = random_mixture(rng)
    else:
        size, speed, phase = rng.exponential(2.0), rng.uniform(0.2, 6.0), rng.uniform(0.0, 6.3)
        p = dc.mechanisms.nearest_member(
            family, lambda x: family.pdf(x) * np.exp(size * np.sin(speed * np.tanh(x) + phase))
        )
    sampler = dc.OptimalSampler(family, epsilon=epsilon)
    law = sampler.output(p)
    for divergence in ("kl", "tv", "hellinger", "chi2", "le_cam"):
        assert law.divergence(divergence) <= sampler.risk(divergence).value + 1e-8


def test_the_smallest_budget_for_a_risk_is_inverted() -> None:
    for family in BANDS.values():
        epsilon = dc.epsilon_for(family, divergence="tv", risk=0.1)
        assert dc.minimax_risk(family, epsilon=epsilon, divergence="tv").value <= 0.1
        assert dc.minimax_risk(family, epsilon=epsilon * (1 - 1e-9), divergence="tv").value > 0.1


@pytest.mark.parametrize("make", [
    lambda: dc.GaussianMixtures(radius=math.inf),
    lambda: dc.GaussianMixtures(2, scale=0.0),
    lambda: dc.LaplaceMixtures(radius=math.inf),
    lambda: dc.LaplaceMixtures(scale=0),
    lambda: dc.DensityBand(stats.norm(), lower=0.0, upper=math.inf),
])  # fmt: skip
def test_hopeless_classes_are_refused(make: Any) -> None:
    with pytest.raises(dc.ImpossibleError, match=r"mutually singular.*M_f.*Prop\. 3\.2"):
        make()


def test_why_they_are_hopeless() -> None:
    """As the class widens towards a hopeless one, the minimax risk goes to M_f for every f."""
    for name in ("tv", "hellinger", "le_cam", "jensen_shannon"):
        most = dc.divergence(name).maximum
        risks = [
            dc.minimax_risk(dc.GaussianMixtures(radius=r), epsilon=1.0, divergence=name).value for r in (1.0, 1e3, 1e6)
        ]
        assert risks == sorted(risks)
        assert risks[-1] == pytest.approx(most, rel=1e-2)
