"""Two accountants by other people agree: dp-accounting's privacy loss distributions, OpenDP's odometer and filter."""

import math
from typing import Any

import numpy as np
import pytest

from discreet import LinearSampler, OptimalSampler, Simplex
from discreet.accounting import BoxProfile, compose, profile_of
from discreet.release import TOTAL
from tests.needed import needed_module

distributions = needed_module("dp_accounting.pld.privacy_loss_distribution", "pip install --group trust")
opendp = needed_module("opendp.prelude", "pip install --group trust")

GRID = 1e-3


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 16, 64])
def test_privacy_loss_distribution_of_the_three_points(alpha: float, n: int) -> None:
    """Theirs rounds each loss up by at most its grid, so it lies between ours and ours with all losses that much larger."""
    profile = BoxProfile(epsilon=0.5, alpha=alpha)
    up, down = profile.upper_mass, profile.lower_mass
    upper = {0: math.log(up), 1: math.log(down), 2: math.log(max(1 - up - down, 1e-300))}
    lower = {0: upper[1], 1: upper[0], 2: upper[2]}
    theirs = distributions.from_two_probability_mass_functions(lower, upper, value_discretization_interval=GRID)
    theirs = theirs.self_compose(n)
    ours, slack = compose([(profile, n)]), n * GRID
    for epsilon in (0.1, 0.3, 2.0):
        found = theirs.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) * (1 - 1e-6) - 1e-12 <= found <= ours.delta(epsilon - slack) * (1 + 1e-6) + 1e-12
    found = theirs.get_epsilon_for_delta(1e-6)
    assert ours.epsilon(1e-6) - 1e-6 <= found <= ours.epsilon(1e-6) + slack + 1e-6


@pytest.mark.parametrize("k", [2, 10])
def test_randomised_response(k: int) -> None:
    """The linear sampler on k outcomes is k-ary randomised response with noise 1 - gamma."""
    sampler = LinearSampler(Simplex(k), epsilon=0.5)
    theirs = distributions.from_randomized_response(1 - sampler.constants.gamma, k, value_discretization_interval=1e-3)
    theirs = theirs.self_compose(32)
    ours = compose([(profile_of(sampler), 32)])
    assert ours.epsilon(1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-2)
    assert ours.epsilon(1e-6) <= theirs.get_epsilon_for_delta(1e-6) + 1e-9  # theirs rounds up by its grid


def test_the_integers_themselves() -> None:
    """The very weights of two clients, handed over as probabilities."""
    first, second = OptimalSampler(Simplex(5), epsilon=1.0).weights(np.eye(5)[:2]) / TOTAL
    theirs = distributions.from_two_probability_mass_functions(
        dict(enumerate(np.log(second))), dict(enumerate(np.log(first))), value_discretization_interval=1e-3
    ).self_compose(8)
    ours = compose([(profile_of(OptimalSampler(Simplex(5), epsilon=1.0)), 8)])
    assert ours.epsilon(1e-5) == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=2e-2)


def measurement(sampler: OptimalSampler[Any]) -> object:
    """The sampler as a measurement that OpenDP can compose: a client is one record, replaced by any other."""
    opendp.enable_features("contrib", "honest-but-curious")
    return opendp.m.make_user_measurement(
        opendp.atom_domain(T=int),
        opendp.discrete_distance(),
        output_measure=opendp.max_divergence(),
        function=lambda record: int(sampler.release(np.eye(sampler.family.size)[record])),
        privacy_map=lambda changed: sampler.epsilon * changed,
        TO=int,
    )


def test_inside_opendps_odometer_budgets_add_up_as_ours_do() -> None:
    sampler = OptimalSampler(Simplex(4), epsilon=0.5)
    private = measurement(sampler)
    odometer = opendp.c.make_fully_adaptive_composition(
        opendp.atom_domain(T=int), opendp.discrete_distance(), opendp.max_divergence()
    )
    queryable = odometer(2)
    drawn = [queryable(private) for _ in range(5)]
    assert set(drawn) <= {0, 1, 2, 3}
    assert queryable.privacy_loss(1) == pytest.approx(compose([(profile_of(sampler), 5)]).largest)


def test_opendps_filter_stops_where_the_budget_ends() -> None:
    sampler = OptimalSampler(Simplex(4), epsilon=0.5)
    private = measurement(sampler)
    odometer = opendp.c.make_fully_adaptive_composition(
        opendp.atom_domain(T=int), opendp.discrete_distance(), opendp.max_divergence()
    )
    limited = opendp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0)
    queryable = limited(2)
    assert {queryable(private), queryable(private)} <= {0, 1, 2, 3}
    with pytest.raises(opendp.OpenDPException):
        queryable(private)
