"""A ball around one's own public density: the law it describes, the integers it draws with, and what is claimed of its cost."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.audit import certificate
from discreet.estimation import population
from discreet.release import TOTAL
from tests.mechanisms.continuous.clients import fine_grid, interval_family

INTERVAL = interval_family()
NORMAL = stats.norm(0.0, 1.5)
CLIENT = INTERVAL.mixture([0.4, 0.6], [-0.9, 0.8])


def ball(discretisation: Any = None, reference: Any = NORMAL, epsilon: float = 1.0) -> dc.MollifierSampler[Any]:
    return dc.MollifierSampler(INTERVAL, epsilon=epsilon, reference=reference, discretisation=discretisation)


def test_the_law_is_the_projection_onto_the_ball_around_it() -> None:
    """Against a brute-force projection on a fine grid that shares nothing with the library's nodes."""
    x, width = fine_grid(-4.0, 4.0, 100_000)
    q0 = NORMAL.pdf(x) / (NORMAL.cdf(4.0) - NORMAL.cdf(-4.0))
    p = CLIENT.pdf(x)
    p /= p.sum() * width
    low, high = 1e-6, 1e6
    for _ in range(200):
        r = math.sqrt(low * high)
        mass = np.clip(p / r, math.exp(-0.5) * q0, math.exp(0.5) * q0).sum() * width
        low, high = (r, high) if mass > 1.0 else (low, r)
    law = ball().output(CLIENT)
    assert law.scale == pytest.approx(r, rel=1e-6)
    assert np.abs(law.pdf(x) - np.clip(p / r, math.exp(-0.5) * q0, math.exp(0.5) * q0)).max() < 1e-6
    many = ball().output([CLIENT, CLIENT])
    assert np.asarray(many.scale) == pytest.approx([r, r], rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("discretisation", [dc.Cells(), dc.Cells(50), dc.Points(2000, seed=3)], ids=str)
@pytest.mark.parametrize("reference", [NORMAL, stats.uniform(-4, 8), lambda x: np.exp(-np.abs(x))], ids=["n", "u", "f"])
def test_any_two_clients_are_within_epsilon_in_integers(discretisation: Any, reference: Any) -> None:
    sampler = ball(discretisation, reference)
    clients = [CLIENT, stats.norm(3.0, 0.01), stats.uniform(-4.0, 0.5), lambda x: 1.0 + np.sin(40.0 * x)]
    rows = sampler.weights(clients)
    assert (rows.sum(axis=1) == TOTAL).all()
    for largest, least in zip(rows.max(axis=0).tolist(), rows.min(axis=0).tolist(), strict=True):
        assert largest <= exp_lower(1.0) * least
    assert certificate(sampler, most_inputs=8).holds


@pytest.mark.slow
def test_cells_have_the_masses_of_the_reference_and_samples_lie_in_them() -> None:
    sampler = ball()
    reference = np.asarray(sampler.reference)
    assert reference.sum() == pytest.approx(1.0)
    drawn = sampler.release([CLIENT] * 4000)
    x, width = fine_grid(-4.0, 4.0, 100_000)
    distribution = np.cumsum(sampler.output(CLIENT).pdf(x)) * width
    assert stats.kstest(drawn, lambda v: np.interp(v, x, distribution)).pvalue > 1e-4


def test_the_family_s_own_reference_is_the_default() -> None:
    same = dc.MollifierSampler(INTERVAL, epsilon=1.0, reference=INTERVAL.pdf).output(CLIENT)
    plain = dc.MollifierSampler(INTERVAL, epsilon=1.0).output(CLIENT)
    assert same.scale == pytest.approx(float(plain.scale), rel=1e-6)


def test_what_is_claimed_of_the_cost() -> None:
    """A density says nothing of p/Q0, so nothing is claimed; a band does, and members of it keep the promise."""
    for name, most in (("tv", 1.0), ("kl", math.inf)):
        found = ball().risk(name)
        assert (found.value, found.tight, found.attained) == (most, False, False)
    band = dc.DensityBand(NORMAL, [(-4.0, 4.0)], lower=0.0, upper=4.0)
    stated = ball(reference=band)
    assert stated.bounds == band.bounds
    assert float(stated.risk("tv")) == float(dc.MollifierSampler(band, epsilon=1.0).risk("tv"))
    assert float(stated.output(CLIENT).divergence("tv")) <= float(stated.risk("tv"))


def test_outsiders_are_those_of_the_family_and_not_of_the_reference() -> None:
    narrow = stats.norm(0.0, 0.05)
    for how in (dc.Cells(), dc.Points(2000, seed=3)):
        sampler = ball(how, stats.uniform(-4.0, 8.0))
        for method in (sampler.output, sampler.weights, sampler.release):
            method(CLIENT)  # without a word
            with pytest.warns(dc.OutsideFamilyWarning, match="outside GaussianMixtures"):
                method(narrow)


def test_refusals_and_values() -> None:
    with pytest.raises(dc.DiscreetError, match="make it on the same space"):
        ball(reference=dc.DensityBand(NORMAL, lower=0.5, upper=2.0))
    with pytest.raises(dc.DiscreetError, match="agree on a table of it"):
        dc.Agreement.of(ball())
    assert ball() == ball()
    assert ball() != ball(reference=stats.norm(0.0, 2.0))
    assert ball() != dc.MollifierSampler(INTERVAL, epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="give a DensityBand as reference="):
        population(ball(), samples=[0.0, 1.0], edges=[-4.0, 0.0, 4.0])
