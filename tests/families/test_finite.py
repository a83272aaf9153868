"""Finite families: their laws, bounds, decomposability, and every refusal."""

import pickle
from typing import Any, cast

import numpy as np
import pytest

from discreet import Band, DensityBand, DiscreetError, Simplex


def test_simplex_is_the_widest_band() -> None:
    family = Simplex(4)
    assert (family.size, family.bounds.lower, family.bounds.upper, family.bounds.alpha) == (4, 0.0, 4.0, 0.25)
    assert family.decomposable
    assert family.contains([1.0, 0.0, 0.0, 0.0])


def test_bounds_that_were_moved_in_stay_where_they_are() -> None:
    """A band made of a band's own bounds is that band, though floats cannot hold what is attained: agreements rely on it."""
    rng = np.random.default_rng(5)
    for _ in range(500):
        weights = rng.integers(1, 3, rng.integers(2, 4))
        band = Band(weights, lower=float(rng.uniform(0, 0.95)), upper=float(rng.uniform(1.05, 5)))
        assert Band(weights, lower=band.bounds.lower, upper=band.bounds.upper) == band


def test_band_normalises_its_reference() -> None:
    band = Band([2.0, 2.0, 4.0], lower=0.5, upper=1.5)
    assert np.allclose(band.reference, [0.25, 0.25, 0.5])
    assert band.bounds.alpha == pytest.approx(0.5)
    assert isinstance(Band([3.0, 3.0], lower=0.5, upper=1.5).reference, float)
    assert Band([1e300, 1e300], lower=0.5, upper=1.5).reference == 0.5
    assert band.contains([0.25, 0.25, 0.5])
    assert not band.contains([0.9, 0.05, 0.05])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "lower", "upper", "expected"),
    [
        (np.ones(5), 0.0, 5.0, True),
        (np.ones(4), 0.5, 1.5, True),
        (np.ones(5), 0.5, 2.0, False),
        ([1, 1, 2], 0.5, 1.5, True),  # {0, 1} and {2} have mass 1/2 and cover every outcome equally often
        ([1, 2, 3], 0.5, 1.5, True),  # {0, 1} and {2}
        ([1, 2, 4], 0.5, 1.5, False),  # no set has mass 1/2
        ([1, 1, 4], 0.0, 1.5, False),  # {2} is the only set of mass 2/3: it does not cover the others
    ],
)
def test_decomposability(weights: Any, lower: float, upper: float, expected: bool) -> None:
    assert Band(weights, lower=lower, upper=upper).decomposable is expected


def test_laws_from_what_clients_hold() -> None:
    colours = Simplex(["red", "green", "blue"])
    assert colours.law(records=["red", "blue", "red", "red"]).tolist() == [0.75, 0.0, 0.25]
    assert Simplex(3).law(records=[2, 2, 0, 1]).tolist() == [0.25, 0.25, 0.5]
    assert colours.law(counts=[[1, 1, 2], [0, 5, 0]]).tolist() == [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]]
    assert colours.law(counts=[1e308, 1e308, 0]).tolist() == [0.5, 0.5, 0.0]
    assert colours.law(counts=[5e-324, 0, 5e-324]).sum() == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Simplex(0), "outcomes = 0 is less than 1"),
        (lambda: Simplex(-3), "outcomes = -3"),
        (lambda: Simplex(2.5), "outcomes = 2.5 is not a whole number"),  # type: ignore[call-overload]
        (lambda: Simplex(True), "outcomes = True is not a whole number"),
        (lambda: Simplex([]), "outcomes is empty"),
        (lambda: Simplex("red"), "is a text"),
        (lambda: Simplex(["a", "b", "a"]), "duplicate labels: 'a'"),
        (lambda: Simplex([float("nan")]), "NaN"),
        (lambda: Simplex([[1], [2]]), "cannot be looked up"),
        (lambda: Band([], lower=0.5, upper=2.0), "weights has shape"),
        (lambda: Band([1.0, 0.0], lower=0.5, upper=2.0), r"weights\[1\] = 0 is not in \(0, inf\)"),
        (lambda: Band([1.0, -1.0], lower=0.5, upper=2.0), r"weights\[1\] = -1"),
        (lambda: Band([np.nan, 1.0], lower=0.5, upper=2.0), r"weights\[0\] = nan"),
        (lambda: Band([np.inf, 1.0], lower=0.5, upper=2.0), r"weights\[0\] = inf"),
        (lambda: Band([1e-308, 1e308], lower=0.5, upper=2.0), "differ by more than"),
        (lambda: Band(["x"], lower=0.5, upper=2.0), "weights is not an array of numbers"),
        (lambda: Band([1, 1], lower=1.2, upper=2.0), "no law satisfies 1.2 <= dP/dmu <= 2"),
        (lambda: Band([1, 1], lower=0.2, upper=0.9), "no law satisfies"),
        (lambda: Band([1, 1], lower=1.0, upper=2.0), "holds for the reference alone"),
        (lambda: Band([1, 1], lower=0.2, upper=1.0), "holds for the reference alone"),
        (lambda: Band([1, 1], lower=2.0, upper=0.5), "exceeds upper"),
        (lambda: Band([1, 1], lower=-0.1, upper=2.0), r"lower = -0.1 is not in \[0, inf\)"),
        (lambda: Band([1, 1], lower=0.1, upper=np.inf), r"upper = inf is not in \(0, inf\)"),
        (lambda: Band([1, 1], lower=np.nan, upper=2.0), "lower = nan"),
        (lambda: Band([1, 1], lower=0.5, upper=2.0, labels=["a"]), "labels has 1 names for 2 weights"),
        (
            lambda: Band([1, 1], lower=0.0, upper=2.0, any_client=cast(Any, "no")),
            "any_client = 'no' is neither True nor False",
        ),
        (
            lambda: DensityBand(np.ones_like, box=[(0, 1)], lower=0.0, upper=2.0, any_client=cast(Any, "no")),
            "any_client = 'no' is neither True nor False",
        ),
        (
            lambda: Band([1, 1], lower=cast(Any, np.zeros(2)), upper=2.0, any_client=True),
            "lower = .* is not a number",
        ),
        (lambda: Simplex(3).law(), "pass exactly one of records= .*, counts="),
        (lambda: Simplex(3).law(records=[1], counts=[1, 1, 1]), "pass exactly one of"),
        (lambda: Simplex(3).law(records=[]), "records is empty"),
        (lambda: Simplex(3).law(records=[3]), "unknown outcomes: 3"),
        (lambda: Simplex(3).law(records=["red"]), "unknown outcomes: 'red'"),
        (lambda: Simplex(["a"]).law(records=["a", "z", "y", "x", "w"]), "unknown labels: 'z', 'y', 'x' and 1 more"),
        (lambda: Simplex(3).law(counts=[0, 0, 0]), "counts is all zero"),
        (lambda: Simplex(3).law(counts=[[1, 0, 0], [0, 0, 0]]), r"counts\[1\] is all zero"),
        (lambda: Simplex(3).law(counts=[1, -1, 1]), r"counts\[1\] = -1 is negative"),
        (lambda: Simplex(3).law(counts=[1, np.nan, 1]), r"counts\[1\] = nan is NaN"),
        (lambda: Simplex(3).law(counts=[1, np.inf, 1]), "infinite"),
        (lambda: Simplex(3).law(counts=[1, 1]), "one entry for each of the 3 outcomes"),
        (lambda: Simplex(3).law(counts=5), "counts is a single number"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        call()


def test_families_are_values() -> None:
    assert Simplex(3) == Simplex(3) != Simplex(["a", "b", "c"])
    assert len({Simplex(3), Simplex(3), Simplex(4)}) == 2
    first, second = Band([1, 2], lower=0.5, upper=2.0), Band([2, 4], lower=0.5, upper=2.0)
    assert first == second != Band([1, 2], lower=0.4, upper=2.0)
    assert hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first


def test_bounds_that_no_float_reaches_are_moved_in() -> None:
    """An upper bound near the largest float: the least that it would imply is past every float below."""
    band = Band([2.0, 1.0, 5.0, 5.0, 2.0], lower=0.0, upper=1e308)
    assert (band.bounds.lower, band.bounds.upper) == (0.0, 15.0)
