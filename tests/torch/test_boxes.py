"""The bounds that a GPU's integers rest on, in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError
from discreet.privacy import Approximate, Gaussian, Privacy, Pure, extreme_masses
from discreet.release import TOTAL
from discreet.torch._host import LARGEST_SIZE, DeviceBox, Terms, make_terms


@given(
    lower=st.floats(1.0, float(TOTAL), width=32).map(math.floor),
    epsilon=st.floats(1e-3, 60.0),
)
def test_a_rounded_product_stays_below_e_to_the_epsilon(lower: int, epsilon: float) -> None:
    """U = floor(rho L) in float32, as the kernels compute it."""
    box = DeviceBox.from_size_and_terms(1000, Terms(Pure(epsilon), None))
    with np.errstate(over="ignore"):
        upper = math.floor(min(np.float32(lower) * np.float32(box.ratio), np.float32(TOTAL)))
    assert Fraction(upper) <= exp_lower(epsilon) * lower


@given(
    size=st.integers(2, 3000),
    epsilon=st.floats(0.01, 20.0),
    upper=st.none() | st.floats(1.5, 1e4),
    wrong=st.floats(-(2.0**-14), 2.0**-14),
    seed=st.integers(0, 1 << 30),
)
def test_whatever_float32_does_to_the_sum_the_integers_add_up(
    size: int, epsilon: float, upper: float | None, wrong: float, seed: int
) -> None:
    """sum L <= 2^62 <= sum U for a Z that is off by as much as is allowed for, and no integer is shared past `first_unshared`."""
    try:
        box = DeviceBox.from_size_and_terms(size, Terms(Pure(epsilon), upper))
    except DiscreetError:
        return
    masses = np.exp(5.0 * np.random.default_rng(seed).standard_normal(size)).astype(np.float32)
    base = np.float32(box.b * TOTAL / (masses.astype(np.float64).sum() * (1.0 + wrong)))
    lower = np.maximum(np.floor(masses * base), np.float32(1.0))
    ceilings = np.minimum(np.floor(lower * np.float32(box.ratio)), np.float32(TOTAL))
    least, most = sum(map(int, lower)), sum(map(int, ceilings))
    assert least <= TOTAL <= most
    assert box.surely_shared <= least <= box.first_unshared


@pytest.mark.parametrize(("size", "epsilon"), [(10, 1e-5), (10, 1e5), (LARGEST_SIZE + 1, 1.0)])
def test_what_leaves_no_room_for_rounding_is_refused(size: int, epsilon: float) -> None:
    with pytest.raises(DiscreetError, match="pass float64"):
        DeviceBox.from_size_and_terms(size, Terms(Pure(epsilon), None))


def test_a_usual_epsilon_is_not_refused_on_a_vocabulary() -> None:
    for epsilon in (0.01, 0.1, 1.0, 8.0, 60.0):
        box = DeviceBox.from_size_and_terms(262_144, Terms(Pure(epsilon), None))
        assert box.b == pytest.approx(math.exp(-epsilon / 2))  # Husain's mollifier, unless told otherwise


@pytest.mark.parametrize("upper", [1.0, 0.5, -2.0, math.nan, math.inf, "3"])
def test_an_upper_that_is_none_is_named(upper: float) -> None:
    with pytest.raises(DiscreetError, match="upper"):
        make_terms(epsilon=1.0, upper=upper)


@given(
    lower=st.floats(1e-6, 1.0, exclude_max=True),
    size=st.sampled_from([10, 1000, 128_256]),
    privacy=st.builds(Approximate, st.floats(0.1, 8.0), delta=st.floats(1e-6, 0.2))
    | st.builds(Gaussian, st.floats(0.2, 4.0)),
    upper=st.floats(1.5, 1e4),
)
def test_other_notions_are_kept_whatever_float32_makes_of_what_is_shared(
    lower: float, size: int, privacy: Privacy, upper: float
) -> None:
    """For every sum of L between the two that are allowed for, and the largest ratio that a rounded product can have."""
    try:
        box = DeviceBox.from_size_and_terms(size, Terms(privacy, upper))
    except DiscreetError:
        return
    shared = box.surely_shared + math.floor(lower * (box.first_unshared - box.surely_shared))
    real = Fraction(box.ratio) * (1 + Fraction(1, 1 << 24))
    assert privacy.allows(*extreme_masses(Fraction(shared, TOTAL), real))
    assert box.ratio > 0.9 * box.B / box.b  # and little is given up for that


def test_another_notion_than_a_pure_epsilon_needs_an_upper_beside_a_reference() -> None:
    with pytest.raises(DiscreetError, match="upper"):
        DeviceBox.from_size_and_terms(1000, Terms(Gaussian(1.0), None))
    with pytest.raises(DiscreetError, match="raw draws"):
        DeviceBox.from_size_and_terms(1000, Terms(Approximate(0.1, delta=0.5), 1.2))
