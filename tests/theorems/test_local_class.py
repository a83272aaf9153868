"""Classes around a public law against programmes over all mechanisms: values called tight are the optimum, and none lies below it."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.privacy import Privacy
from tests.soaking import wide
from tests.theorems import bands
from tests.theorems.bands import TOLERANCE, Floats, vertices
from tests.theorems.test_notions_over_all_mechanisms import optimal_tv

SETTINGS = 500
MOST_VERTICES = 15  # of an approximate setting, whose programme has a block for every pair of them


def local_class(rng: np.random.Generator) -> tuple[dc.Band, Floats]:
    """P0 on 2 to 6 outcomes, even or not; a factor at which extreme clients sit on whole outcomes, or any."""
    size = int(rng.integers(2, 7))
    weights = (np.ones(size), rng.integers(1, 4, size).astype(float), rng.dirichlet(np.full(size, 2.0)))[
        rng.choice(3, p=(0.6, 0.25, 0.15))
    ]
    held = int(rng.integers(1, max(2, (size + 1) // 2)))
    factor = float(rng.choice([max(size / held - 1.0, 1.05), 1.0 + rng.exponential(1.5) + 0.02]))
    band = dc.Near(weights, factor=factor)
    assert isinstance(band, dc.Band)
    return band, vertices(np.asarray(weights / weights.sum()), 1.0 / factor, factor)


def checked(seed: int, settings: int) -> int:
    """So many settings, half pure, half approximate; how many values were called tight."""
    rng, tight, done = np.random.default_rng(seed), 0, 0
    while done < settings:
        band, points = local_class(rng)
        epsilon, delta = float(rng.choice([0.1, 0.5, 1.0, 2.0])), float(rng.choice([1e-4, 0.01, 0.05]))
        if done % 2:
            privacy: Privacy = dc.Pure(epsilon)
            optimum = bands.optimal_tv(points, epsilon)
        elif len(points) <= MOST_VERTICES:
            privacy = dc.Approximate(epsilon, delta=delta)
            optimum = optimal_tv(points, [(math.exp(epsilon), delta)])
        else:
            continue
        risk = dc.minimax_risk(band, privacy=privacy, divergence="tv")
        assert risk.value >= optimum - TOLERANCE, (band, privacy)
        if risk.tight:
            tight += 1
            assert risk.value == pytest.approx(optimum, abs=TOLERANCE), (band, privacy)
        done += 1
    return tight


def test_a_few_settings() -> None:
    assert checked(seed=0, settings=16) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, wide(11, 3)))
def test_five_hundred_settings(seed: int) -> None:
    assert checked(seed, SETTINGS // 10) >= 15
