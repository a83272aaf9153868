"""Logarithms of densities as clients: no underflow in thousands of dimensions, and an own `logpdf` lives where it is used."""

from typing import Any

import numpy as np
import pytest

import discreet as dc


class Own:
    """Somebody's own standard Gaussian; `dim` is said only where it is given."""

    def __init__(self, **said: Any) -> None:
        self.__dict__.update(said)

    def logpdf(self, x: Any) -> Any:
        return -0.5 * (x * x if x.ndim == 1 else (x * x).sum(axis=1))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_an_own_logpdf_lives_in_the_dimension_of_the_family(dim: int) -> None:
    sampler = dc.OptimalSampler(dc.GaussianMixtures(dim=dim), epsilon=1.0)
    for client in (Own(), Own(dim=dim)):
        assert np.shape(sampler.release(client)) == (() if dim == 1 else (dim,))
    with pytest.raises(dc.DiscreetError, match=f"dimension {dim + 1}, the family lives in dimension {dim}"):
        sampler.release(Own(dim=dim + 1))


def test_a_logarithm_does_not_underflow_in_2000_dimensions() -> None:
    """The released point is the one that the density itself would release, if floats could hold it."""
    family = dc.LaplaceMixtures(dim=2000)
    sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points(512, seed=7))
    member = family.mixture([1.0], np.eye(1, 2000))
    given = family.law(log_density=lambda x: -np.abs(x - np.eye(1, 2000)).sum(axis=1))
    assert np.abs(sampler.weights(given) - sampler.weights(member)).max() <= 1e-9 * 2**62
    assert sampler.weights(given).max() > 2 * sampler.weights(given).min()
    with pytest.warns(dc.OutsideFamilyWarning, match=r"where a density underflows.*log_density="):
        sampler.weights(lambda x: np.exp(-np.abs(x).sum(axis=1) - 2000.0 * np.log(2.0)))


def test_a_logarithm_is_the_same_client_as_its_density() -> None:
    for dim in (1, 2):
        family = dc.GaussianMixtures(dim=dim, radius=1.0)
        sampler = dc.OptimalSampler(family, epsilon=1.0)
        given = family.law(log_density=lambda x: -0.5 * (x * x if x.ndim == 1 else (x * x).sum(axis=1)))
        assert np.array_equal(sampler.weights(given), sampler.weights(Own()))
        member = sampler.weights(family.mixture([1.0], np.zeros((1, dim))))
        assert np.abs(sampler.weights(given) - member).max() <= 2**62 * 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_density": lambda x: np.full(len(x), np.nan)}, r"log_density\(.*\) = nan is not a number"),
        ({"log_density": lambda x: np.full(len(x), np.inf)}, "is infinite"),
        ({"log_density": lambda x: np.zeros((len(x), 3))}, "one number for each point"),
        ({"log_density": 3.0}, "log_density is a function"),
        ({"log_density": np.sin, "fit": dc.families.HistogramFit()}, "takes no fit="),
        ({"log_density": np.sin, "records": [0.0]}, "pass exactly one of"),
        ({}, "pass exactly one of"),
    ],
)
def test_what_is_no_logarithm_is_refused(options: dict[str, Any], message: str) -> None:
    family = dc.GaussianMixtures()
    with pytest.raises(dc.DiscreetError, match=message):
        dc.OptimalSampler(family, epsilon=1.0).release(family.law(**options))
