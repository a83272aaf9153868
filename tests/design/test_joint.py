"""The smallest worst case of several samples: between what a sampler attains and what no mechanism can better."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.design import minimax_risk


@pytest.mark.parametrize(("k", "samples", "least", "reached"), [(2, 4, 0.2115, 0.2626), (3, 2, 0.3252, 0.3878)])
def test_the_bracket_of_several_samples(k: int, samples: int, least: float, reached: float) -> None:
    found = minimax_risk(dc.Simplex(k), epsilon=2.0, divergence="kl", samples=samples, bracket=True)
    assert found.bracket == pytest.approx((least, reached), abs=1e-4)
    assert not found.tight
    assert found.attained


def test_no_mechanism_is_below_the_bracket() -> None:
    """Samplers of other boxes, over clients that are no grid's: the largest divergence of each is above the lower side."""
    rng = np.random.default_rng(0)
    for (k, samples), epsilon, name in itertools.product([(2, 3), (3, 2)], (0.5, 2.0, 5.0), ("kl", "tv", "hellinger")):
        f, family = dc.divergence(name), dc.Simplex(k)
        least = minimax_risk(family, epsilon=epsilon, divergence=name, samples=samples, bracket=True).bracket[0]
        joint = dc.JointSampler(family, samples=samples, epsilon=epsilon)
        clients = np.concatenate([np.eye(k), rng.dirichlet(np.full(k, 0.5), 60), np.full((1, k), 1 / k)])
        found = dc.design(
            dc.Simplex(len(joint.multisets)), epsilon=epsilon, clients=joint.laws(clients), divergence=f, over="worst"
        )
        designed = dc.JointSampler(family, samples=samples, epsilon=epsilon, band=found.family)
        fine = np.concatenate([clients, rng.dirichlet(np.full(k, 0.5), 4000)])
        for sampler in (joint, designed, dc.JointSampler(family, samples=samples, epsilon=epsilon, around="product")):
            assert np.max(f(sampler.laws(fine), sampler.output(fine))) >= least * (1 - 1e-3)
        assert least >= float(minimax_risk(family, epsilon=epsilon, divergence=name))


def test_more_samples_cannot_cost_less() -> None:
    risks = [minimax_risk(dc.Simplex(2), epsilon=1.0, divergence="tv", samples=j, bracket=True) for j in (1, 2, 3, 5)]
    assert risks[0].tight
    assert all(one.bracket[0] <= two.bracket[0] + 1e-6 for one, two in itertools.pairwise(risks))


def test_a_band_has_a_bracket_too() -> None:
    band = dc.Near([1, 2, 3], factor=2.0)
    low, high = minimax_risk(band, epsilon=0.5, divergence="tv", samples=2, bracket=True).bracket
    assert 0.0 < low < high
    narrow = minimax_risk(dc.Near([1, 2, 3], factor=1.1), epsilon=2.0, divergence="tv", samples=2, bracket=True)
    assert narrow.tight
    assert float(narrow) == 0.0


def test_what_has_no_bracket_is_refused_or_starts_at_one_sample() -> None:
    large = minimax_risk(dc.Simplex(40), epsilon=1.0, divergence="tv", samples=3, bracket=True)
    assert large.bracket[0] == float(minimax_risk(dc.Simplex(40), epsilon=1.0, divergence="tv"))
    reverse: Any = dc.FDivergence(lambda x: -np.log(x), name="reverse", at_zero=math.inf, slope_at_infinity=0.0)
    endless = minimax_risk(dc.Simplex(3), epsilon=1.0, divergence=reverse, samples=2, bracket=True)
    assert endless.bracket == (math.inf, math.inf)
    line: Any = dc.GaussianMixtures()
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (line, {"epsilon": 1.0, "samples": 2}, "several samples are bracketed on finitely many outcomes"),
        (dc.Simplex(3), {"privacy": dc.Gaussian(1.0), "samples": 2}, "a joint draw is for pure epsilon"),
        (dc.Simplex(3), {"epsilon": 1.0, "samples": 0}, "samples = 0 is less than 1"),
    ]
    for family, given, says in refused:
        with pytest.raises(dc.DiscreetError, match=says):
            minimax_risk(family, divergence="tv", **given)


@pytest.mark.parametrize(
    "family", [dc.Simplex(3), dc.DensityBand(np.ones_like, box=(0.0, 1.0), lower=0.0, upper=2.0, any_client=True)]
)
def test_a_wrong_number_of_samples_is_refused_for_every_family(family: Any) -> None:
    wrong: list[Any] = [-3, 0, 1.5]
    for samples in wrong:
        with pytest.raises(dc.DiscreetError, match="samples = "):
            minimax_risk(family, epsilon=1.0, divergence="tv", samples=samples)
