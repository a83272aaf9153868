"""Laws as arrays: what the rounding of float32 and float16 explains is normalised, what it does not is refused; logits."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax

import discreet as dc
from discreet.audit import certificate

FLOATS = [np.float32, np.float16]


@pytest.mark.parametrize("precision", FLOATS)
@pytest.mark.parametrize("size", [2, 3, 100, 5000, 128_000])
def test_a_softmax_of_a_model_is_a_law(precision: Any, size: int) -> None:
    rng = np.random.default_rng(size)
    for spread in (0.1, 3.0):
        logits = (spread * rng.standard_normal((2, size))).astype(precision)
        p = softmax(logits.astype(np.float32), axis=1).astype(precision)  # as models do: float16 could not hold the sum
        assert p.dtype == precision
        family = dc.Simplex(size)
        assert family.contains(p)
        sampler = dc.OptimalSampler(family, epsilon=1.0)
        wide = p.astype(np.float64)
        assert np.array_equal(sampler.weights(p), sampler.weights(family.as_rows(wide / wide.sum(axis=1)[:, None])))


def test_the_softmax_of_the_report_is_taken() -> None:
    p = np.array([0.3, 0.3, 0.4], dtype=np.float32)
    p[0] = np.nextafter(p[0], np.float32(1.0))
    assert abs(p.astype(np.float64).sum() - 1.0) > 1e-9
    for sampler in (dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler):
        assert sampler(dc.Simplex(3), epsilon=1.0).output(p).sum() == pytest.approx(1.0, abs=1e-12)
    assert dc.design(dc.Simplex(3), epsilon=1.0, clients=[p]).value >= 0.0
    dc.MollifierSampler(dc.Simplex(3), epsilon=1.0, reference=p)
    assert dc.mechanisms.nearest_member(dc.Simplex(3), p).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    "p",
    [
        np.array([0.5, 0.3, 0.2001], dtype=np.float32),
        np.array([0.5, 0.3, 0.22], dtype=np.float16),
        np.array([3.0, 0.0, 1.0], dtype=np.float32),
        np.full(100_000, 1.02e-5, dtype=np.float32),
        np.array([0.3, 0.3, 0.4 + 2e-9]),
        np.array([1.1, -0.1, 0.0], dtype=np.float32),
        np.array([np.nan, 0.5, 0.5], dtype=np.float16),
    ],
    ids=lambda p: f"{p.dtype} {p[:3]}",
)
def test_what_rounding_does_not_explain_is_refused(p: Any) -> None:
    with pytest.raises(dc.DiscreetError):
        dc.OptimalSampler(dc.Simplex(len(p)), epsilon=1.0).release(p)


def test_rows_that_sum_to_one_are_taken_as_they_are() -> None:
    p = np.array([[0.5, 0.25, 0.25]], dtype=np.float32)
    assert np.array_equal(dc.Simplex(3).as_rows(p), p.astype(np.float64))
    wide = np.array([0.5, 0.25, 0.25 + 3e-10])
    assert np.array_equal(dc.Simplex(3).as_rows(wide), wide)


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=6), st.sampled_from([np.float64, np.float32]))
def test_logits_are_a_stable_softmax(logits: list[float], precision: Any) -> None:
    with np.errstate(over="ignore"):
        given_logits = np.asarray(logits, dtype=precision)
    if not np.isfinite(given_logits).all():
        return
    p = dc.Simplex(len(logits)).law(logits=given_logits)
    assert p.sum() == pytest.approx(1.0, abs=1e-15 * len(logits) + 1e-15)
    largest = int(np.argmax(given_logits))
    with np.errstate(over="ignore"):
        expected = [math.exp(max(float(one) - float(given_logits[largest]), -1e4)) for one in given_logits]
    assert p == pytest.approx(np.array(expected) / sum(expected), rel=1e-12, abs=1e-300)


def test_minus_infinity_is_a_probability_of_zero() -> None:
    family = dc.Simplex(3)
    assert family.law(logits=[0.0, -np.inf, 0.0]).tolist() == [0.5, 0.0, 0.5]
    assert family.law(logits=[[1000.0, -np.inf, -1000.0], [7.0, 7.0, -np.inf]]).tolist() == [[1, 0, 0], [0.5, 0.5, 0]]


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([np.nan, 0.0, 0.0], r"logits\[0\] = nan is NaN"),
        ([[0.0, 0.0, 0.0], [0.0, np.inf, 0.0]], r"logits\[1\]\[1\] = inf is infinite"),
        ([-np.inf] * 3, "-inf everywhere"),
        ([0.0, 0.0], "one entry for each of the 3 outcomes"),
        (["a", "b", "c"], "not an array of numbers"),
    ],
)
def test_what_are_no_logits_is_refused(logits: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Simplex(3).law(logits=logits)
    with pytest.raises(dc.DiscreetError, match="pass exactly one of records="):
        dc.Simplex(3).law(logits=[0.0, 0.0, 0.0], counts=[1, 0, 0])


def test_fractions_are_numbers_and_what_is_none_is_told_how_to_become_one() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
    halves: Any = [Fraction(1, 2), Fraction(1, 2), 0]
    fifth: Any = Fraction(1, 5)
    assert np.array_equal(sampler.weights(halves), sampler.weights([0.5, 0.5, 0.0]))
    assert np.array_equal(sampler.weights([halves, halves]), sampler.weights([[0.5, 0.5, 0.0]] * 2))
    own = dc.OwnSampler.of(dc.Simplex(3), lambda p: 0.4 * p + 0.2, floor=fifth, epsilon=2.0)
    assert certificate(own).holds
    refused: dict[str, Any] = {
        r"; pass float\(\.\.\.\) of each entry": [Decimal("0.5"), Decimal("0.5"), 0],
        r"; pass list\(\.\.\.\) of it": iter([0.5, 0.5, 0.0]),
        "$": np.array([0.5, 0.5, None], dtype=object),
    }
    for hint, p in refused.items():
        with pytest.raises(dc.DiscreetError, match=f"p is not an array of numbers with rows of equal length{hint}"):
            sampler.output(p)
