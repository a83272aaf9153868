"""What the boosted laws are: normalised, inside their ball, closer to P than the reference; and what they spend."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.research._boosted import PRESETS, BoostedSampler, Training
from tests.mechanisms.continuous.clients import interval_family, ring

SMALL = Training(epochs=60, samples=2_000, batch=1_000, burn_in=60)
CLIENTS = [dc.Mixture([1.0], [centre]) for centre in (-1.0, 0.3, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_law_can_leave_the_ball(preset: str, epsilon: float) -> None:
    """Whatever the networks say: here their weights are huge, so that every c is at a bound somewhere."""
    sampler = BoostedSampler(interval_family(), epsilon=epsilon, preset=preset, training=SMALL)
    rng = np.random.default_rng(0)
    wild = (30.0 * rng.standard_normal((20, 3, 1376))).astype(np.float32)
    law = sampler.law([CLIENTS[0]] * 20, wild)
    assert law.largest_pairwise_log_ratio <= sampler.largest_log_ratio + 1e-9
    assert (np.asarray(law.largest_log_ratio) <= sampler.largest_log_ratio / 2 + 1e-9).all()
    assert law.largest_pairwise_log_ratio > 0.5 * sampler.largest_log_ratio
    assert sampler.largest_log_ratio <= epsilon * (0.5 if preset == "published" else 1.0)


def test_the_published_preset_spends_half() -> None:
    """2 (theta + theta^2 + theta^3) with theta = 1/5 at epsilon = 1."""
    published = BoostedSampler(interval_family(), epsilon=1.0)
    corrected = BoostedSampler(interval_family(), epsilon=1.0, preset="corrected")
    assert published.largest_log_ratio == pytest.approx(0.496, abs=1e-12)
    theta = 1.0 / (1.0 + 4.0 * math.log(2.0))
    assert corrected.largest_log_ratio == pytest.approx(4.0 * math.log(2.0) * (theta + theta**2 + theta**3), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("sampling", [pytest.param("metropolis", marks=pytest.mark.soak), "exact"])
def test_it_learns(preset: str, sampling: str) -> None:
    training = Training(epochs=60, samples=2_000, batch=1_000, burn_in=60, sampling=sampling)  # type: ignore[arg-type]
    sampler = BoostedSampler(interval_family(), epsilon=5.0, preset=preset, training=training)
    law = sampler.output(CLIENTS)
    x = np.linspace(-4.0, 4.0, 20_001)
    mass = np.trapezoid(law.pdf(x), x, axis=1)
    np.testing.assert_allclose(mass, 1.0, atol=1e-6)
    untrained = BoostedSampler(interval_family(), epsilon=1e-9, preset=preset, training=SMALL)
    reference = np.asarray(untrained.law(CLIENTS, law.networks).divergence("kl"))
    learnt = np.asarray(law.divergence("kl"))
    assert (learnt[[0, 2]] < 0.9 * reference[[0, 2]]).all()
    p = np.exp(CLIENTS[2].log_density(x[:, None]))
    p /= np.trapezoid(p, x)
    by_hand = np.trapezoid(p * np.log(p / law.pdf(x)[2]), x)
    assert learnt[2] == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.slow
def test_the_whole_line() -> None:
    """A family without a box: the reference is all of N(0, 1)."""
    law = BoostedSampler(dc.GaussianMixtures(1), epsilon=5.0, preset="corrected", training=SMALL).output(CLIENTS[2])
    x = np.linspace(-9.0, 9.0, 20_001)
    assert np.trapezoid(law.pdf(x), x) == pytest.approx(1.0, abs=1e-5)
    assert float(law.divergence("kl")) < 0.45  # 0.5 for the reference itself


@pytest.mark.slow
def test_the_ring_in_the_plane() -> None:
    family = dc.GaussianMixtures(2, radius=1.0, scale=math.sqrt(0.5))
    law = BoostedSampler(family, epsilon=0.5, preset="corrected", training=SMALL).output(ring())
    axis = np.linspace(-7.0, 7.0, 281)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert law.pdf(points).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=1e-4)
    assert 0.0 < float(law.divergence("kl")) < 0.08


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"preset": "wrong"}, "preset = 'wrong'"),
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": math.nan}, "epsilon = nan"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(dc.DiscreetError, match=says):
        BoostedSampler(interval_family(), **{"epsilon": 1.0, **arguments})  # type: ignore[arg-type]


def test_bad_training_is_refused() -> None:
    with pytest.raises(dc.DiscreetError, match="does not divide"):
        Training(samples=10, batch=3)
    with pytest.raises(dc.DiscreetError, match="sampling"):
        Training(sampling="other")  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="rate"):
        Training(rate=-1.0)
    plane = BoostedSampler(dc.GaussianMixtures(2), epsilon=1.0, training=Training(sampling="exact"))
    with pytest.raises(dc.DiscreetError, match="one dimension"):
        plane.output(ring())
    with pytest.raises(dc.DiscreetError, match="cannot draw"):
        BoostedSampler(interval_family(), epsilon=1.0).output(lambda x: np.exp(-x * x))
    with pytest.raises(dc.DiscreetError, match="continuous"):
        BoostedSampler(dc.Simplex(3), epsilon=1.0)  # type: ignore[arg-type]
