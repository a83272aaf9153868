"""Directed rounding against arbitrary precision."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from discreet._base.numerics import (
    exp_lower,
    exp_nearest,
    exp_upper,
    expm1_nearest,
    log_bracket,
    product_rounded_down_and_capped,
    stated_decimal,
)
from discreet.errors import DiscreetError, check_rational
from discreet.release._lattice import round_down_to_float_integers


@given(st.floats(1e-50, 64.0))
def test_exp_is_bracketed(epsilon: float) -> None:
    with mpmath.workprec(400):
        exact = mpmath.exp(mpmath.mpf(epsilon))
        low, high = exp_lower(epsilon), exp_upper(epsilon)
        assert mpmath.mpf(low.numerator) / low.denominator < exact < mpmath.mpf(high.numerator) / high.denominator
        assert (high - low) / low < Fraction(1, 10**57)


def test_exp_upper_of_a_large_budget() -> None:
    assert exp_upper(1000.0) > exp_lower(1000.0)
    assert exp_upper(10**5) > 10**43429


@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**62)), min_size=1, max_size=8),
    st.fractions(min_value=0, max_value=2**80),
    st.sampled_from([2**62, 2**62 - 1, 1000]),
)
def test_floor_product_never_exceeds_the_exact_product(values: list[int], factor: Fraction, cap: int) -> None:
    products = product_rounded_down_and_capped(np.array(values, dtype=np.int64), factor, cap).tolist()
    for value, product in zip(values, products, strict=True):
        exact = min(cap, int(value * factor))
        assert exact - 1 - (exact >> 60) <= product <= exact


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=8))
def test_representable_rounds_down_to_a_float(values: list[int]) -> None:
    for value, rounded in zip(values, round_down_to_float_integers(np.array(values)).tolist(), strict=True):
        assert int(float(rounded)) == rounded <= value
        assert value - rounded <= value >> 51


@given(st.one_of(st.floats(-745.0, 709.0), st.floats(-1.0, 1.0), st.floats(-1e-17, 1e-17)))
@example(-745.13)
@example(1e-18)
@example(-1e-18)
@example(-(2.0**-53))
def test_exponentials_are_the_nearest_floats(exponent: float) -> None:
    """No other float is nearer, on any machine: whatever its own library returns."""
    with mpmath.workprec(4000):
        exact = mpmath.exp(mpmath.mpf(exponent))
        for found, value in ((exp_nearest(exponent), exact), (expm1_nearest(exponent), exact - 1)):
            others = (math.nextafter(found, -math.inf), math.nextafter(found, math.inf))
            assert all(abs(found - value) <= abs(mpmath.mpf(other) - value) for other in others)


@pytest.mark.parametrize("huge", [10**400, Fraction(10**400), 1e300, math.inf, math.nan, 10**9])
def test_an_upper_bound_of_an_exponential_that_cannot_be_written_out_is_refused(huge: Any) -> None:
    with pytest.raises(DiscreetError, match="is not a finite number of at most 100,000"):
        exp_upper(huge)


def test_numbers_beyond_every_float_are_infinite() -> None:
    assert exp_nearest(10**400) == expm1_nearest(10**400) == math.inf
    assert expm1_nearest(-(10**400)) == -1.0
    assert exp_lower(10**400) == exp_lower(64)
    assert str(stated_decimal(10**400)) == "Infinity"


@pytest.mark.parametrize("epsilon", [-1, -1e300, -(10**400), -5e-324, math.nan, Decimal("nan"), Decimal("sNaN")])
def test_no_rational_of_at_least_one_is_below_a_smaller_exponential(epsilon: float) -> None:
    with pytest.raises(DiscreetError, match="is not a number of at least 0"):
        exp_lower(epsilon)


def test_nothing_was_written_for_nan() -> None:
    with pytest.raises(DiscreetError, match="epsilon = nan"):
        stated_decimal(math.nan)


def test_a_ratio_below_one_has_no_bracket() -> None:
    with pytest.raises(DiscreetError, match="ratio = 1/3 is less than 1"):
        log_bracket(Fraction(1, 3))


def test_integers_of_numpy_do_not_overflow_in_a_rational() -> None:
    found = check_rational("ratio", np.int8(100))
    assert found * found == 10_000
    assert log_bracket(found) == log_bracket(Fraction(100))
