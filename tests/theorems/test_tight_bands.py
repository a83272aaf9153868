"""What is called tight is the optimum over all mechanisms, and no bound lies below it, on generated bands."""

import numpy as np
import pytest

import discreet as dc
from tests.soaking import wide
from tests.theorems.bands import Case, complaint, generated, optimal_tv, vertices


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_generated_bands(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(wide(75, 20)):
        case = generated(rng)
        assert complaint(case) is None, case


@pytest.mark.parametrize("case", [
    Case([1.0] * 3, 0.0, 1e10, 1.0),  # the empty set has mass alpha, up to 1e-10
    Case([4.0, 3.0, 2.0, 1.0], 0.0, 1e9, 1.0),
    Case([1.0, 1.0], 0.5, 3.0, 0.5),
    Case([1.0] * 3, 0.0, 4.0, 1.0),
    Case([7.0, 3.0], 0.0, 1.2, 1.0),  # a raw draw is private
    Case([1.0, 1e-12, 1e-12], 0.0, 1e11, 1.0),
    Case([1.0] * 5, 0.5, 2.0, 30.0),  # a risk below all rounding is still one
])  # fmt: skip
def test_bands_that_were_answered_wrongly(case: Case) -> None:
    assert complaint(case) is None


def test_bounds_that_no_law_attains_say_nothing() -> None:
    assert dc.Band([1, 1], lower=0.5, upper=3) == dc.Band([1, 1], lower=0.5, upper=1.5)
    for name in ("kl", "tv", "hellinger"):
        simplex = dc.minimax_risk(dc.Simplex(3), epsilon=1.0, divergence=name)
        assert dc.minimax_risk(dc.Band(np.ones(3), lower=0.0, upper=4.0), epsilon=1.0, divergence=name) == simplex
    loose, exact = dc.Band([1, 1], lower=0.5, upper=3), dc.Band([1, 1], lower=0.5, upper=1.5)
    assert dc.epsilon_for(loose, divergence="tv", risk=0.05) == dc.epsilon_for(exact, divergence="tv", risk=0.05)
    assert dc.OptimalSampler(dc.Band([7, 3], lower=0.0, upper=1.2), epsilon=1.0).identity
    assert optimal_tv(vertices(np.array([0.5, 0.5]), 0.5, 3.0), 1.0) == pytest.approx(
        dc.minimax_risk(loose, epsilon=1.0, divergence="tv").value, abs=1e-9
    )


@pytest.mark.parametrize("size", [2, 3, 7, 49, 1000])
def test_bounds_that_are_attained_stay_as_they_are_given(size: int) -> None:
    for weights in (np.ones(size), np.full(size, 0.1)):
        assert dc.Band(weights, lower=0.0, upper=float(size)).bounds == dc.Simplex(size).bounds
    assert dc.Band(np.ones(size), lower=0.25, upper=1.5).bounds.lower >= 0.25


def test_one_outcome_is_no_band() -> None:
    with pytest.raises(dc.DiscreetError, match="nothing to keep private"):
        dc.Band([1.0], lower=0.5, upper=2.0)


def test_outcomes_that_hardly_ever_occur_have_vertices_too() -> None:
    band = dc.Band([1.0, 1.0, 1e-308], lower=0.0, upper=2.0)
    risk = dc.OptimalSampler(band, epsilon=1.0).risk("tv")
    assert risk.attained
    assert risk.value == pytest.approx(float(dc.minimax_risk(dc.Simplex(2), epsilon=1.0, divergence="tv")), abs=1e-9)
