"""Bare notions add up: by closed forms where there are some, against dp-accounting, and against their own definitions."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import discreet as dc
from discreet.accounting import GaussianLoss, PrivacyLoss, compose
from discreet.privacy import Privacy
from tests.needed import needed_module

distributions = needed_module("dp_accounting.pld.privacy_loss_distribution", "pip install --group trust")
common = needed_module("dp_accounting.pld.common", "pip install --group trust")
GRID = 1e-3
SYMMETRIC = dc.Functional([(0.0, 0.98), (0.2, 0.5), (0.5, 0.2), (0.98, 0.0), (1.0, 0.0)])


@pytest.mark.parametrize(
    "notion",
    [dc.Pure(0.7), dc.Approximate(1.0, delta=1e-3), dc.Gaussian(0.8), SYMMETRIC],
    ids=str,
)
def test_one_release_has_the_notions_own_profile(notion: Privacy) -> None:
    loss = compose([(notion, 1)])
    for beta in (0.0, 0.1, 0.5, 0.69, 1.0, 3.0):
        assert loss.delta(beta) == pytest.approx(notion.profile(beta), rel=1e-9, abs=1e-9)
        assert loss.delta(beta) >= notion.profile(beta) * (1 - 1e-12)


def test_gaussian_releases_are_one_gaussian_release() -> None:
    """Dong, Roth and Su, Cor. 3.3: 3^2 + 4^2 = 5^2."""
    loss = compose([(dc.Gaussian(0.3), 1), (dc.Gaussian(0.4), 1)])
    assert isinstance(loss, GaussianLoss)
    assert loss.nu == pytest.approx(0.5, rel=1e-15)
    assert Fraction(loss.nu) ** 2 >= Fraction(0.3) ** 2 + Fraction(0.4) ** 2
    assert loss.largest == math.inf == loss.epsilon(0.0)
    epsilon = loss.epsilon(1e-6)
    assert loss.delta(epsilon) <= 1e-6 < loss.delta(math.nextafter(epsilon, 0.0) - 1e-12)


@pytest.mark.parametrize("n", [1, 4, 16])
def test_gaussian_releases_against_another_accountant(n: int) -> None:
    theirs = distributions.from_gaussian_mechanism(1.0 / 0.5, value_discretization_interval=1e-4).self_compose(n)
    ours = compose([(dc.Gaussian(0.5), n)])
    for epsilon in (0.1, 1.0, 3.0):
        assert ours.delta(epsilon) <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-6) + 1e-12
        assert ours.delta(epsilon + n * 1e-4) >= ours.delta(epsilon) - n * 1e-4
    assert ours.epsilon(1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=5e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (0.5, 1e-5), (1.0, 0.01)])
@pytest.mark.parametrize("n", [1, 5, 20])
def test_approximate_releases_against_another_accountant(epsilon: float, delta: float, n: int) -> None:
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    theirs = distributions.from_privacy_parameters(parameters, value_discretization_interval=epsilon / 64).self_compose(
        n
    )
    ours = compose([(dc.Approximate(epsilon, delta=delta), n)])
    for total in (0.25 * epsilon, epsilon, 0.4 * n * epsilon, n * epsilon):
        assert ours.delta(total) == pytest.approx(theirs.get_delta_for_epsilon(total), rel=1e-6, abs=1e-9)
    assert math.isinf(ours.largest) == bool(delta)


@pytest.mark.parametrize("n", [2, 7])
def test_approximate_releases_by_the_theorem_of_kairouz_oh_and_viswanath(n: int) -> None:
    """(sum over i of binomial terms)/(1 + e^eps)^n and 1 - (1 - delta)^n, in the numbers of their Theorem 3.3."""
    epsilon, delta = 0.4, 0.002
    ours = compose([(dc.Approximate(epsilon, delta=delta), n)])
    for i in range(n // 2 + 1):
        left = (
            sum(math.comb(n, j) * (math.exp((n - j) * epsilon) - math.exp((n - 2 * i + j) * epsilon)) for j in range(i))
            / (1 + math.exp(epsilon)) ** n
        )
        total = 1 - (1 - delta) ** n * (1 - left)
        assert ours.delta((n - 2 * i) * epsilon) == pytest.approx(total, rel=1e-9)


def test_different_notions_together_are_above_each_and_below_their_sums() -> None:
    pure, gaussian, approximate = dc.Pure(0.5), dc.Gaussian(0.5), dc.Approximate(0.5, delta=1e-4)
    together = compose([(pure, 2), (gaussian, 3), (approximate, 1), (SYMMETRIC, 1)])
    assert isinstance(together, PrivacyLoss)
    for epsilon in (0.5, 2.0):
        for alone in (pure, gaussian, approximate, SYMMETRIC):
            assert together.delta(epsilon) >= alone.profile(epsilon)
    theirs: Any = distributions.from_gaussian_mechanism(1.0 / 0.5, value_discretization_interval=GRID).self_compose(3)
    for epsilon, delta, count in ((0.5, 0.0, 2), (0.5, 1e-4, 1)):
        more = distributions.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=GRID
        )
        theirs = theirs.compose(more.self_compose(count))
    ours = compose([(pure, 2), (gaussian, 3), (approximate, 1)])
    for epsilon in (0.2, 1.0, 2.5):
        assert ours.delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=0.03)
    assert ours.epsilon(1e-5) == math.inf  # one of them forgives 1e-4
    assert ours.epsilon(1e-3) == pytest.approx(theirs.get_epsilon_for_delta(1e-3), rel=0.01)


def test_two_releases_of_a_function_by_every_pair_of_pieces() -> None:
    """The pair of laws of f, twice: delta(eps) = sum over pairs (P - e^eps Q)_+, in rationals."""
    corners = SYMMETRIC.corners
    pieces = [(b[0] - a[0], a[1] - b[1]) for a, b in itertools.pairwise(corners)]
    pieces.append((Fraction(0), 1 - corners[0][1]))
    loss = compose([(SYMMETRIC, 2)])
    for epsilon in (0.0, 0.7, 1.5, 2.5):
        factor = Fraction(math.exp(epsilon))
        exact = sum(max(Fraction(0), p * q - factor * x * y) for x, p in pieces for y, q in pieces)
        assert loss.delta(epsilon) == pytest.approx(float(exact), rel=1e-9)


def test_functions_of_which_nothing_or_everything_is_hidden() -> None:
    everything, nothing = dc.Functional([(0, 1), (1, 0)]), dc.Functional([(0, 0), (1, 0)])
    assert compose([(everything, 5)]).epsilon(0.0) < 1e-12
    assert compose([(nothing, 2)]).delta(1.0) == 1.0
    assert compose([(nothing, 2)]).epsilon(0.5) == math.inf
    assert np.isfinite(compose([(dc.Pure(50.0), 3)]).delta(1.0))


@pytest.mark.parametrize("x", [5e-324, Fraction(1, 10**400)], ids=["subnormal", "below every float"])
def test_a_side_steeper_than_every_float_has_a_finite_loss(x: float | Fraction) -> None:
    loss = compose([(dc.Functional([(0, 1), (x, 0), (1, 0)]), 2)])
    exact = -2 * math.log(Fraction(x).numerator) + 2 * math.log(Fraction(x).denominator)
    assert exact <= loss.largest <= exact * (1 + 1e-12)


def test_gaussian_releases_that_no_float_holds_are_refused() -> None:
    with pytest.raises(dc.DiscreetError, match=r"add up to more than nu = 1e\+100"):
        compose([(dc.Gaussian(1e200), 3)])


@pytest.mark.parametrize(
    ("nu", "beta"), [(8.0, 64.0), (8.0, 70.0), (5.0, 80.0), (20.0, 100.0), (2.0, 41.0), (30.0, 900.0)]
)
def test_the_gaussian_profile_is_that_of_its_definition_past_e_to_the_64(nu: float, beta: float) -> None:
    with mpmath.workdps(400):
        exact_nu, exact_beta = mpmath.mpf(nu), mpmath.mpf(beta)
        below, above = -exact_nu / 2 - exact_beta / exact_nu, exact_nu / 2 - exact_beta / exact_nu
        truth = mpmath.ncdf(above) - mpmath.exp(exact_beta) * mpmath.ncdf(below)
        found = mpmath.mpf(dc.Gaussian(nu).profile(beta))
        assert truth <= found
        if below > -16:  # farther out the distribution function has fewer than 30 digits
            assert found <= truth * (1 + mpmath.mpf(1e-12)) + mpmath.mpf(1e-80)
