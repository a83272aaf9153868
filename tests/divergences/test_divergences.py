"""f-divergences: the theorems of the paper's Appendix B, references in 60 digits, and what is refused."""

import math
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from discreet.divergences import BUILT_IN, FDivergence, alpha, divergence, hockey_stick
from discreet.divergences._divergences import _FAMILIES
from discreet.errors import DiscreetError
from tests.soaking import examples

FloatArray = NDArray[np.float64]

ORDERS = ("-20", "-1", "0", "0.000000001", "0.3", "0.5", "1", "1.000000000001", "2", "3", "60.5")
GAMMAS = ("0.1", "0.5", "1", "2")
ALPHAS = tuple(f"alpha:{order}" for order in ORDERS)
NAMES = (*BUILT_IN, *ALPHAS, *(f"hockey_stick:{gamma}" for gamma in GAMMAS))
DIVERGENCES = tuple(map(divergence, NAMES))
ZERO_ONLY_IF_EQUAL = tuple(map(divergence, (*BUILT_IN, *ALPHAS)))  # every f that leaves its tangent at 1 on both sides


# Laws: sizes from 1e-120 to 1 (so that products with a kernel do not underflow), some entries zero.

ENTRIES = st.one_of(st.just(0.0), st.floats(1e-3, 1.0), st.floats(-120.0, 0.0).map(lambda e: 10.0**e))
POSITIVE_ENTRIES = st.floats(1e-3, 1.0)


def laws(size: int, entries: st.SearchStrategy[float] = ENTRIES) -> st.SearchStrategy[FloatArray]:
    vectors = st.lists(entries, min_size=size, max_size=size).map(np.array)
    return vectors.filter(lambda v: v.sum() > 1e-3).map(lambda v: v / v.sum())


def pairs(entries: st.SearchStrategy[float] = ENTRIES) -> st.SearchStrategy[tuple[FloatArray, FloatArray]]:
    return st.integers(2, 6).flatmap(lambda size: st.tuples(laws(size, entries), laws(size, entries)))


def kernels(rows: int, columns: int) -> st.SearchStrategy[FloatArray]:
    return st.lists(laws(columns), min_size=rows, max_size=rows).map(np.array)


def at_most(smaller: Any, larger: Any) -> bool:
    """smaller <= larger up to the rounding of the laws compared; inf <= inf holds."""
    return bool(smaller <= larger + 1e-11 * (1 + abs(larger)))


every = pytest.mark.parametrize("name", NAMES)
theorem = settings(max_examples=examples(50), deadline=None)


# Theorems.


@pytest.mark.slow
@theorem
@given(pair=pairs())
def test_never_negative_between_laws(pair: tuple[FloatArray, FloatArray]) -> None:
    for d in DIVERGENCES:
        assert d(*pair) >= 0, d  # no tolerance: rounding must not make a divergence negative


@pytest.mark.slow
@theorem
@given(pair=pairs(), step=st.floats(-17.0, -3.0).map(lambda e: 10.0**e))
def test_never_negative_between_laws_that_nearly_agree(pair: tuple[FloatArray, FloatArray], step: float) -> None:
    p, q = pair
    nearby = (1 - step) * p + step * q
    for d in DIVERGENCES:
        assert d(p, nearby / nearby.sum()) >= 0, d


@pytest.mark.slow
@theorem
@given(pair=pairs(POSITIVE_ENTRIES), nudged=st.booleans())
def test_zero_exactly_for_equal_laws(pair: tuple[FloatArray, FloatArray], nudged: bool) -> None:
    p, q = pair
    if nudged:  # one unit in the last place is a difference
        q = p.copy()
        q[0] = np.nextafter(q[0], 2.0)
    for d in DIVERGENCES:
        assert d(p, p) == 0, d
    for d in ZERO_ONLY_IF_EQUAL:
        assert (d(p, q) > 0) == bool((p != q).any()), d


@pytest.mark.slow
@theorem
@given(first=pairs(), share=st.floats(0.001, 0.999), data=st.data())
def test_jointly_convex(first: tuple[FloatArray, FloatArray], share: float, data: st.DataObject) -> None:
    p, q = first
    other_p, other_q = data.draw(laws(p.size)), data.draw(laws(p.size))
    mixed_p, mixed_q = share * p + (1 - share) * other_p, share * q + (1 - share) * other_q
    for d in DIVERGENCES:
        assert at_most(d(mixed_p, mixed_q), share * d(p, q) + (1 - share) * d(other_p, other_q)), d


@pytest.mark.slow
@theorem
@given(pair=pairs(), columns=st.integers(1, 4), data=st.data())
def test_data_processing(pair: tuple[FloatArray, FloatArray], columns: int, data: st.DataObject) -> None:
    p, q = pair
    kernel = data.draw(kernels(p.size, columns))
    for d in DIVERGENCES:
        assert at_most(d(p @ kernel, q @ kernel), d(p, q)), d


@pytest.mark.slow
@theorem
@given(pair=pairs())
def test_maximum_bounds_and_is_attained_by_disjoint_supports(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    nothing = np.zeros(p.size)
    for d in DIVERGENCES:
        assert at_most(d(p, q), d.maximum), d
        assert d(np.append(p, nothing), np.append(nothing, q)) == pytest.approx(d.maximum, rel=1e-14), d


EXCHANGED = [
    ("kl", "reverse_kl"),
    ("tv", "tv"),
    ("hellinger", "hellinger"),
    ("jensen_shannon", "jensen_shannon"),
    ("le_cam", "le_cam"),
    ("alpha:-1", "alpha:2"),
    ("alpha:0.25", "alpha:0.75"),
    ("alpha:0", "alpha:1"),
]


@pytest.mark.slow
@theorem
@given(pair=pairs())
def test_exchanging_the_laws_exchanges_f_and_its_star(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    for name, starred in EXCHANGED:
        assert divergence(name)(p, q) == pytest.approx(divergence(starred)(q, p), rel=1e-12), name
    for gamma in (1.0, 2.0, 8.0):  # here the star is gamma times another hockey stick, plus a multiple of x - 1
        mirrored = gamma * np.asarray(hockey_stick(1 / gamma)(q, p))
        assert hockey_stick(gamma)(p, q) == pytest.approx(mirrored, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("name", "starred"), EXCHANGED)
def test_star_of_f(name: str, starred: str) -> None:
    x = np.array([1e-6, 0.3, 1.0, 1.5, 40.0])
    np.testing.assert_allclose(x * divergence(name).f(1 / x), divergence(starred).f(x), rtol=1e-12)
    assert divergence(name).slope_at_infinity == divergence(starred).at_zero


SAME = [
    ("hockey_stick:1", 1.0, "tv"),
    ("alpha:0.5", 2.0, "hellinger"),
    ("alpha:2", 0.5, "chi2"),
    ("alpha:1", 1.0, "kl"),
    ("alpha:0", 1.0, "reverse_kl"),
    ("alpha:1.0000000001", 1.0, "kl"),
    ("alpha:-0.0000000001", 1.0, "reverse_kl"),
]


@pytest.mark.slow
@theorem
@given(pair=pairs(POSITIVE_ENTRIES))
def test_one_divergence_by_two_names(pair: tuple[FloatArray, FloatArray]) -> None:
    for name, factor, other in SAME:
        expected = factor * np.asarray(divergence(other)(*pair))
        assert divergence(name)(*pair) == pytest.approx(expected, rel=1e-8, abs=1e-15), name


@pytest.mark.slow
@theorem
@given(pair=pairs())
def test_classical_inequalities(pair: tuple[FloatArray, FloatArray]) -> None:
    kl, tv, hellinger, chi2 = (divergence(name)(*pair) for name in ("kl", "tv", "hellinger", "chi2"))
    assert at_most(2 * tv**2, kl)  # Pinsker
    assert at_most(hellinger / 2, tv)
    assert at_most(tv, np.sqrt(hellinger))
    assert at_most(kl, np.log1p(chi2))


# Numbers.

REFERENCES: dict[str, Callable[[Any], Any]] = {
    "kl": lambda x: x * mpmath.log(x),
    "reverse_kl": lambda x: -mpmath.log(x),
    "tv": lambda x: abs(x - 1) / 2,
    "hellinger": lambda x: (1 - mpmath.sqrt(x)) ** 2,
    "chi2": lambda x: x * x - 1,
    "jensen_shannon": lambda x: (x * mpmath.log(x) - (1 + x) * mpmath.log((1 + x) / 2)) / 2,
    "le_cam": lambda x: (1 - x) ** 2 / (2 * (1 + x)),
    "alpha:0": lambda x: x - 1 - mpmath.log(x),
    "alpha:1": lambda x: x * mpmath.log(x) - x + 1,
}


def reference(name: str) -> Callable[[Any], Any]:
    """f by its definition, in 60 digits."""
    if name in REFERENCES:
        return REFERENCES[name]
    family, _, digits = name.partition(":")
    a = mpmath.mpf(float(digits))
    if family == "alpha":
        return lambda x: (x**a - a * x + a - 1) / (a * (a - 1))
    return lambda x: max(x - a, 0) - max(1 - a, 0)


def reference_perspective(name: str, p: float, q: float) -> float:
    with mpmath.workdps(60):
        value = mpmath.mpf(q) * reference(name)(mpmath.mpf(p) / mpmath.mpf(q))
        return float(value)  # inf past the largest float


def assert_close(value: Any, expected: Any, relative: float = 3e-13) -> None:
    """Equal to a few units, where a unit is never less than the smallest float."""
    np.testing.assert_allclose(value, expected, rtol=relative, atol=3e-323)


TINY = (5e-324, 1e-320, 2.5e-310, 1e-300, 1e-160, 1e-20)  # the smallest float, denormals, squares that underflow
NEAR_ONE = (0.3, 0.875, 1 - 1e-12, 1.0, 1 + 2.3e-16, 1 + 1e-9, 1.1250001, 1.5, 2.0, 7.0)
LARGE = (1e10, 1e150, 1e300)  # ratios and squares that overflow
SIZES = (*TINY, *NEAR_ONE, *LARGE)


@pytest.mark.slow
@every
def test_perspective_is_right_at_every_size(name: str) -> None:
    p, q = (grid.ravel() for grid in np.meshgrid(SIZES, SIZES))
    expected = [reference_perspective(name, float(a), float(b)) for a, b in zip(p, q, strict=True)]
    assert_close(divergence(name).perspective(p, q), expected)


@every
def test_f_is_right_at_every_size(name: str) -> None:
    expected = [reference_perspective(name, x, 1.0) for x in SIZES]
    assert_close(divergence(name).f(np.array(SIZES)), expected)


@pytest.mark.parametrize("name", BUILT_IN)
def test_perspective_is_right_where_p_plus_q_overflows(name: str) -> None:
    p, q = 1.5e308, 9e307
    expected = [reference_perspective(name, p, q), reference_perspective(name, q, p)]
    assert_close(divergence(name).perspective([p, q], [q, p]), expected)


# Laws whose masses are equal far beyond the precision of a float, so that the definition is the reference.
EQUAL_MASSES = [
    ([0.5, 0.5], [0.5 + 2.0**-30, 0.5 - 2.0**-30]),
    ([0.5 + 2.0**-52, 0.5 - 2.0**-52], [0.5, 0.5]),
    ([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]),
    ([2.0**-40, 1 - 2.0**-40], [1 - 2.0**-50, 2.0**-50]),
    ([2.0**-33, 1 - 2.0**-33], [1e-320, 1.0]),
    ([1.0, 5e-324], [0.75, 0.25]),
]


@every
@pytest.mark.parametrize(("p", "q"), EQUAL_MASSES)
def test_sum_is_right_even_where_its_terms_cancel(name: str, p: list[float], q: list[float]) -> None:
    f = reference(name)
    with mpmath.workdps(60):
        expected = float(mpmath.fsum(b * f(mpmath.mpf(a) / b) for a, b in zip(p, map(mpmath.mpf, q), strict=True)))
    np.testing.assert_allclose(divergence(name)(p, q), expected, rtol=3e-13, atol=1e-55)


LIMITS = {
    "kl": (0, math.inf),
    "reverse_kl": (math.inf, 0),
    "tv": (0.5, 0.5),
    "hellinger": (1, 1),
    "chi2": (-1, math.inf),
    "jensen_shannon": (math.log(2) / 2, math.log(2) / 2),
    "le_cam": (0.5, 0.5),
    "alpha:-1": (math.inf, 0.5),
    "alpha:0": (math.inf, 1),
    "alpha:0.5": (2, 2),
    "alpha:1": (1, math.inf),
    "alpha:2": (0.5, math.inf),
    "hockey_stick:0.25": (-0.75, 1),
    "hockey_stick:1": (0, 1),
    "hockey_stick:2": (0, 1),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_and_zero_conventions(name: str) -> None:
    d, (at_zero, slope) = divergence(name), LIMITS[name]
    assert (d.at_zero, d.slope_at_infinity, d.maximum) == (at_zero, slope, at_zero + slope)
    assert d.f(0) == at_zero
    assert d.perspective(0, 0) == 0
    assert d.perspective(0, 0.25) == 0.25 * at_zero
    assert d.perspective(0.25, 0) == 0.25 * slope


@pytest.mark.parametrize("name", [name for name in NAMES if name != "alpha:0.000000001"])
def test_limits_are_those_of_f(name: str) -> None:
    """A limit typed in wrongly shows: f runs into f(0), and f(x)/x into f*(0), along the largest ratios of floats."""
    d = divergence(name)
    inferred = FDivergence(lambda x: np.asarray(d.f(x)))
    assert inferred.at_zero == pytest.approx(d.at_zero, rel=1e-11)
    assert inferred.slope_at_infinity == pytest.approx(d.slope_at_infinity, rel=1e-11)


def test_a_limit_too_slow_to_be_seen_is_asked_for() -> None:
    """f(0) = 1e9 for alpha of order 1e-9, but x^1e-9 has hardly moved at 2^-960, and looks like a logarithm."""
    d = alpha(1e-9)
    with pytest.raises(DiscreetError, match="give at_zero="):
        FDivergence(lambda x: np.asarray(d.f(x)))
    assert FDivergence(lambda x: np.asarray(d.f(x)), at_zero=d.at_zero).at_zero == d.at_zero


def test_every_divergence_has_its_limits_checked() -> None:
    assert set(BUILT_IN) <= set(LIMITS)
    assert set(BUILT_IN) <= set(REFERENCES)


@every
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300, 1.7e308])
def test_never_nan_and_never_a_warning(name: str, scale: float) -> None:
    shapes = scale * np.array([0.0, 1e-320, 1e-200, 0.25, 0.5, 1.0])
    p, q = (grid.ravel() for grid in np.meshgrid(shapes, shapes))
    d = divergence(name)
    with np.errstate(all="raise"):  # stricter than the suite's warnings-as-errors: nothing leaks from within
        values = [np.asarray(v) for v in (d(p, q), d(p, q[::-1]), d(p[:-1], q[1:]), d.perspective(p, q), d.f(p))]
    assert not any(np.isnan(v).any() for v in values)


def test_unequal_masses_are_taken_at_their_word() -> None:
    p, q = [0.5, 0.25], [0.25, 0.125]
    assert divergence("kl")(p, q) == pytest.approx(0.75 * math.log(2), rel=1e-15)
    assert divergence("reverse_kl")(p, q) == pytest.approx(-0.375 * math.log(2), rel=1e-15)
    assert divergence("chi2")(p, q) == pytest.approx(3 * 0.375, rel=1e-15)
    assert divergence("hockey_stick:0.5")(p, q) == pytest.approx(0.375, rel=1e-15)
    assert FDivergence(lambda x: (x - 1) ** 2, name="chi2, shifted")(p, q) == pytest.approx(0.375, rel=1e-15)


@pytest.mark.slow
@theorem
@given(pair=pairs(), cut=st.integers(1, 5))
def test_partial_sums_add_up(pair: tuple[FloatArray, FloatArray], cut: int) -> None:
    p, q = pair
    for d in DIVERGENCES:
        parts = d(p[:cut], q[:cut]) + d(p[cut:], q[cut:])
        assert d(p, q) == pytest.approx(parts, rel=1e-9, abs=1e-13), d


# Batches and quadrature.


@every
def test_batch_is_a_loop(name: str) -> None:
    rng = np.random.default_rng(7)
    d = divergence(name)
    p, q = rng.dirichlet(np.ones(5), (3, 1)), rng.dirichlet(np.ones(5), (1, 4))
    p[0, 0, :2], q[0, 1, 1:3] = 0.0, 0.0  # zeros, and rows of unequal mass among rows of equal mass
    batch = d(p, q)
    assert isinstance(batch, np.ndarray)
    assert batch.shape == (3, 4)
    loop = [[float(d(p[i, 0], q[0, j])) for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(batch, loop, rtol=1e-14)


def test_scalars_in_scalars_out() -> None:
    kl = divergence("kl")
    assert type(kl([0.5, 0.5], [1.0, 0.0])) is float
    assert type(kl.f(2)) is float
    assert type(kl.perspective(0.1, 0.2)) is float
    assert np.shape(kl.f([[1.0, 2.0]])) == (1, 2)
    assert np.shape(kl(np.ones((0, 3)), np.ones(3))) == (0,)
    halves: Any = [Fraction(1, 2), Fraction(1, 2)]
    assert kl(halves, [0.5, 0.5]) == 0


def normal_density(x: FloatArray, mean: float, scale: float) -> FloatArray:
    return np.exp(-(((x - mean) / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))


def quadrature(reach: float) -> tuple[FloatArray, FloatArray]:
    """The trapezoidal rule, which is exact to rounding for smooth densities that vanish at both ends."""
    nodes = np.linspace(-reach, reach, 801)
    weights = np.full(nodes.shape, nodes[1] - nodes[0])
    weights[[0, -1]] /= 2
    return nodes, weights


@every
def test_weights_are_a_plain_quadrature(name: str) -> None:
    x, weights = quadrature(4.0)  # cuts the tails off: the masses differ, and the sum must still be the definition's
    p, q = normal_density(x, 0.0, 1.0), normal_density(x, 0.5, 1.2)
    d = divergence(name)
    plain = np.sum(weights * q * np.asarray(d.f(p / q)))
    assert d(p, q, weights=weights) == pytest.approx(plain, rel=1e-11)
    assert d(weights * p, weights * q) == pytest.approx(plain, rel=1e-11)


def test_weights_give_the_closed_forms_between_normal_laws() -> None:
    x, weights = quadrature(15.0)
    p, q = normal_density(x, 0.0, 1.0), normal_density(x, 1.0, 1.5)
    kl = math.log(1.5) + (1 + 1) / (2 * 1.5**2) - 0.5
    hellinger = 2 - 2 * math.sqrt(2 * 1.5 / (1 + 1.5**2)) * math.exp(-1 / (4 * (1 + 1.5**2)))
    assert divergence("kl")(p, q, weights=weights) == pytest.approx(kl, rel=1e-12)
    assert divergence("hellinger")(p, q, weights=weights) == pytest.approx(hellinger, rel=1e-12)


def test_nodes_of_weight_zero_carry_nothing() -> None:
    assert divergence("kl")([1.0, 1.0], [1.0, 0.0], weights=[1.0, 0.0]) == 0
    assert divergence("kl")([1.0, 1.0], [1.0, 0.0], weights=[1.0, 5e-324]) == math.inf


# One's own f.

OWN: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kl": lambda x: x * np.log(x),
    "reverse_kl": lambda x: -np.log(x),
    "tv": lambda x: np.abs(x - 1) / 2,
    "hellinger": lambda x: (1 - np.sqrt(x)) ** 2,
    "chi2": lambda x: x**2 - 1,
    "jensen_shannon": lambda x: (x * np.log(x) - (1 + x) * np.log((1 + x) / 2)) / 2,
    "le_cam": lambda x: (1 - x) ** 2 / (2 * (1 + x)),  # its square overflows at 2^540, its slope does not
    "alpha:-1": lambda x: (1 / x + x - 2) / 2,
    "alpha:3": lambda x: (x**3 - 3 * x + 2) / 6,
    "hockey_stick:2": lambda x: np.maximum(x - 2, 0),
}


OWN_DIVERGENCES = {name: FDivergence(f, name="own") for name, f in OWN.items()}


@pytest.mark.parametrize("name", OWN)
def test_limits_of_ones_own_f_are_found(name: str) -> None:
    own, shipped = OWN_DIVERGENCES[name], divergence(name)
    assert own.name == "own"
    assert own.at_zero == pytest.approx(shipped.at_zero, rel=1e-12, abs=0)
    assert own.slope_at_infinity == pytest.approx(shipped.slope_at_infinity, rel=1e-12, abs=0)


@pytest.mark.slow
@theorem
@given(pair=pairs(st.one_of(st.just(0.0), st.floats(1e-6, 1.0))))
def test_ones_own_f_agrees_with_the_one_shipped(pair: tuple[FloatArray, FloatArray]) -> None:
    for name, own in OWN_DIVERGENCES.items():
        assert own(*pair) == pytest.approx(divergence(name)(*pair), rel=1e-11, abs=1e-12), name


def test_ones_own_f_past_the_largest_float() -> None:
    """Where p/q or f overflows, the limit stands in."""
    with np.errstate(all="raise"):
        assert FDivergence(OWN["tv"]).perspective(1.0, 5e-324) == 0.5
        assert FDivergence(OWN["le_cam"]).perspective(1.0, 1e-200) == pytest.approx(0.5)
        assert FDivergence(OWN["hellinger"]).perspective(5e-324, 1e10) == 1e10
        assert FDivergence(OWN["kl"]).perspective(1.0, 5e-324) == math.inf
        assert FDivergence(OWN["kl"]).perspective(5e-324, 1e10) == 0  # 0 log 0 is never formed


def test_given_limits_are_kept() -> None:
    slow = FDivergence(lambda x: 1 - x**0.001, at_zero=1.0)
    assert slow.at_zero == 1.0
    assert slow.slope_at_infinity == 0.0
    assert slow.perspective(0.0, 0.5) == 0.5
    linear = FDivergence(lambda x: x - 1, slope_at_infinity=3)
    assert linear([0.0, 1.0], [1.0, 0.0]) == -1 + 3


def test_an_f_that_works_in_place_is_accepted() -> None:
    def squared_in_place(x: FloatArray) -> FloatArray:
        x -= 1.0
        x *= x
        return x

    own, p, q = FDivergence(squared_in_place), np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert own(p, q) == own(p, q) == divergence("chi2")(p, q)
    assert FDivergence(OWN["tv"]).maximum == 1.0  # the next f is tried on the same grid
    assert p.tolist() == [0.5, 0.5]


def test_an_f_that_overflows_on_the_grid_is_accepted() -> None:
    steep = FDivergence(lambda x: np.exp(x) - math.e)
    assert steep.slope_at_infinity == math.inf
    assert steep([0.5, 0.5], [0.25, 0.75]) == pytest.approx(
        0.25 * math.exp(2) + 0.75 * math.exp(2 / 3) - math.e, rel=1e-14
    )


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x**2, r"f\(1\) = 1 is not 0"),
    (lambda x: x * np.log(x) + 1e-9, r"f\(1\) = 1e-09 is not 0"),
    (lambda x: np.log(x), r"f\([\d.e-]+\) = .* lies above the chord"),
    (lambda x: np.where(x < 2, 0.0, np.log(x / 2)), r"f\(2\.\d+\) = .* lies above the chord"),
    (lambda x: np.where(x == 1, 0.0, -1.0), r"f\(1\) = 0 lies above the chord"),
    (lambda x: np.where(x > 4, np.nan, x - 1), r"f\(4\.\d+\) = nan is not a real number"),
    (lambda x: np.where(x < 0.25, -np.inf, 0.0), r"f\([\d.e-]+\) = -inf is not a real number"),
    (lambda x: 0.0, r"shape \(641,\) to \(\)"),
    (lambda x: math.log(x), "cannot be evaluated on an array"),
    (lambda x: np.array([math.exp(entry) - math.e for entry in x]), "cannot be evaluated on an array"),
    (lambda x: np.square(x - 1.0) + 0j, "complex values"),
    (lambda x: 1 - x**1e-6, "at_zero cannot be found numerically.*give at_zero="),
    (lambda x: x - 1 + np.log1p(np.log1p(x)) - np.log1p(np.log(2)), "lies above"),
]


@pytest.mark.parametrize(("f", "message"), REFUSED)
def test_what_is_not_a_generator_is_refused(f: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        FDivergence(f)


def test_an_f_that_fails_off_the_grid_says_where() -> None:
    holed = FDivergence(lambda x: np.where((x > 3.0) & (x < 3.01), np.nan, np.abs(x - 1)))
    with pytest.raises(DiscreetError, match=r"f\(3\.004\) = nan is not a number"):
        holed.perspective(3.004, 1.0)


@pytest.mark.parametrize("limit", [math.nan, -math.inf, "0"])
def test_a_limit_is_a_number_above_minus_infinity(limit: Any) -> None:
    with pytest.raises(DiscreetError, match="at_zero = "):
        FDivergence(OWN["tv"], at_zero=limit)
    with pytest.raises(DiscreetError, match="slope_at_infinity = "):
        FDivergence(OWN["tv"], slope_at_infinity=limit)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"at_zero": 0.0},
            "at_zero = 0 is too small: a convex f with these values has at least 1; correct it or leave it out",
        ),
        ({"at_zero": -3.0}, "at_zero = -3 is too small"),
        (
            {"slope_at_infinity": 0.5},
            "slope_at_infinity = 0.5 is too small: a convex f with these values has at least 1",
        ),
        ({"slope_at_infinity": -1.0}, "slope_at_infinity = -1 is too small"),
    ],
)
def test_limits_that_no_convex_f_has_are_refused(limits: dict[str, Any], message: str) -> None:
    """They would make a divergence between distributions negative, or 0 between different ones."""
    with pytest.raises(DiscreetError, match=message):
        FDivergence(lambda x: (x - 1) ** 2 / (x + 1), **limits)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "alpha:60.5"])  # whose values overflow on the grid
def test_the_true_limits_of_every_f_are_taken(name: str) -> None:
    d = divergence(name)
    own = FDivergence(lambda x: np.asarray(d.f(x)), at_zero=d.at_zero, slope_at_infinity=d.slope_at_infinity)
    assert (own.at_zero, own.slope_at_infinity) == (d.at_zero, d.slope_at_infinity)


# Names, values, errors.


@pytest.mark.parametrize("name", [3, None, b"mine"])
def test_the_name_of_an_own_divergence_is_a_text(name: Any) -> None:
    with pytest.raises(DiscreetError, match=r"name = .* is not a str; pass a name for messages, tables and pictures"):
        FDivergence(OWN["tv"], name=name)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("KL", "kl"),
        ("reverse-KL", "reverse_kl"),
        ("Jensen-Shannon", "jensen_shannon"),
        ("js", "jensen_shannon"),
        ("total_variation", "tv"),
        ("Total-Variation", "tv"),
        ("squared_hellinger", "hellinger"),
        ("relative entropy", "kl"),
        ("chi_squared", "chi2"),
        ("alpha:0.50", "alpha:0.5"),
        ("Alpha:-1", "alpha:-1"),
        ("hockey-stick:2.0", "hockey_stick:2"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert divergence(spelling).name == name


def test_names_lead_back() -> None:
    assert BUILT_IN == ("kl", "reverse_kl", "tv", "hellinger", "chi2", "jensen_shannon", "le_cam")
    for d in (*map(divergence, NAMES), alpha(1 / 3), hockey_stick(math.e), alpha(2)):
        assert divergence(d.name) == d
        assert divergence(d) is d
        assert pickle.loads(pickle.dumps(d)) == d
    assert len({divergence(name) for name in NAMES}) == len(NAMES)


def test_frozen_and_printable() -> None:
    kl = divergence("kl")
    with pytest.raises(FrozenInstanceError):
        kl.at_zero = 1.0  # type: ignore[misc]
    assert repr(kl) == "FDivergence(name='kl', at_zero=0.0, slope_at_infinity=inf)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kl2", "divergence = 'kl2' is not one of kl, reverse_kl, tv, .*alpha:<number>, hockey_stick:<number>"),
        ("alpha", "is not one of"),
        ("kl:2", "is not one of"),
        ("alpha:two", "'two' is not a number"),
        ("alpha:", "'' is not a number"),
        ("alpha:nan", "order = nan is not in"),
        ("alpha:inf", "order = inf is not in"),
        ("hockey_stick:0", r"gamma = 0 is not in \(0, inf\)"),
        ("hockey_stick:-1", "gamma = -1 is not in"),
        (None, "divergence = None is neither"),
    ],
)
def test_names_refused(name: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        divergence(name)


LAW = [0.5, 0.5]


@pytest.mark.parametrize(
    ("p", "q", "weights", "message"),
    [
        ([-0.1, 1.1], LAW, None, r"^p\[0\] = -0.1 is not in \[0, inf\)"),
        (LAW, [0.5, math.nan], None, r"^q\[1\] = nan is not in \[0, inf\)"),
        (LAW, [math.inf, 0.5], None, r"^q\[0\] = inf is not in \[0, inf\)"),
        ([LAW, [0.5, -1.0]], LAW, None, r"^p\[1, 1\] = -1 is not in"),
        (LAW, [0.2, 0.3, 0.5], None, r"p has shape \(2,\) but q has \(3,\)"),
        (LAW, [1.0], None, r"p has shape \(2,\) but q has \(1,\)"),
        ([LAW] * 2, [LAW] * 3, None, r"p has shape \(2, 2\) but q has \(3, 2\)"),
        (0.5, 0.5, None, r"p has shape \(\)"),
        (LAW, 0.5, None, r"q has \(\)"),
        (["a", "b"], LAW, None, "^p is not an array of real numbers"),
        (LAW, [[0.5], [0.5, 0.5]], None, "^q is not an array of real numbers"),
        ([0.5 + 0j, 0.5], LAW, None, "^p is not an array of real numbers: complex"),
        (LAW, LAW, [1.0, -1.0], r"^weights\[1\] = -1 is not in"),
        (LAW, LAW, [1.0], r"^weights has shape \(1,\)"),
    ],
)
def test_input_refused(p: Any, q: Any, weights: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        divergence("tv")(p, q, weights=weights)


@pytest.mark.parametrize("x", [-1.0, math.nan, math.inf])
def test_f_is_defined_on_finite_non_negative_numbers(x: float) -> None:
    with pytest.raises(DiscreetError, match=r"^x = .* is not in \[0, inf\)"):
        divergence("kl").f(x)


def test_perspective_needs_shapes_that_broadcast() -> None:
    with pytest.raises(DiscreetError, match=r"p has shape \(2,\) but q has \(3,\)"):
        divergence("kl").perspective(np.ones(2), np.ones(3))


def test_the_documented_normalisations_are_those_of_every_registered_divergence() -> None:
    """The table of `docs/how-to/own-divergence.md` has each name once, with its value and its largest value as numpy computes them."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "own-divergence.md").read_text(encoding="utf-8")
    rows = re.findall(r'^\| `"(\w+)(:a)?"` \| `(.+?)` \| `(.+?)` \|', page, re.MULTILINE)
    assert [name for name, order, *_ in rows if not order] == list(BUILT_IN)
    assert sorted(name for name, order, *_ in rows if order) == sorted(_FAMILIES)
    laws = np.random.default_rng(0).dirichlet(np.full(6, 0.7), size=(200, 2))
    apart = np.eye(2)
    for name, order, value, largest in rows:
        for a in (0.3, 0.5, 1.7, 3.0) if order else (1.0,):
            found = divergence(f"{name}:{a}" if order else name)
            numpy_names = {each: getattr(np, each) for each in ("sum", "log", "sqrt", "abs", "maximum", "inf")}
            for p, q in laws:
                expected = eval(value, {**numpy_names, "p": p, "q": q, "a": a})
                assert found(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-12), (name, a)
            most = eval(largest, {**numpy_names, "min": min, "a": a})
            assert found.maximum == pytest.approx(most, rel=1e-15), (name, a)
            assert found(*apart) == pytest.approx(most, rel=1e-15), (name, a)
