"""Phi lies where it is said to: against mpmath with 120 digits."""

from fractions import Fraction

import mpmath
import pytest

from discreet.privacy._gaussian_and_functional import normal_cdf_bounds, normal_quantile_below

PLACES = [0.0, 1e-12, 0.1, 0.5, 1.0, 1.96, 3.0, 5.5, 8.2, 12.0, 17.5, 29.9]


def true_cdf(x: Fraction) -> Fraction:
    with mpmath.workdps(220):
        found = mpmath.ncdf(mpmath.mpf(x.numerator) / x.denominator)
        return Fraction(int(mpmath.floor(found * mpmath.mpf(10) ** 210)), 10**210)


@pytest.mark.parametrize("x", [*PLACES, *(-x for x in PLACES), 1 / 3, -2 / 7])
def test_the_bracket_holds_phi(x: float) -> None:
    low, high = normal_cdf_bounds(Fraction(x))
    assert low <= true_cdf(Fraction(x)) <= high
    assert high - low <= Fraction(2, 10**90)


@pytest.mark.parametrize("x", [31.0, 40.0, 1e9])
def test_past_thirty_deviations_it_still_holds(x: float) -> None:
    low, high = normal_cdf_bounds(Fraction(x))
    assert Fraction(1) - Fraction(1, 10**80) < low <= high == 1
    low, high = normal_cdf_bounds(-Fraction(x))
    assert 0 == low <= high < Fraction(1, 10**80)


@pytest.mark.parametrize(
    "probability", ["1/2", "1/3", "1/10", "1/1000000", "1/1000000000000000000000", "7/1" + "0" * 50]
)
def test_the_quantile_is_below_and_near(probability: str) -> None:
    wanted = Fraction(probability)
    x = normal_quantile_below(wanted)
    assert x is not None
    assert normal_cdf_bounds(x)[1] <= wanted
    assert normal_cdf_bounds(x + Fraction(1, 10**25))[0] > wanted


def test_what_is_too_small_to_be_certain_of_is_said_to_be() -> None:
    assert normal_quantile_below(Fraction(1, 10**61)) is None
    assert normal_quantile_below(Fraction(0)) is None
