"""Designs of every kind are answered, and their brackets hold the optimum of programmes over all mechanisms."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.divergences._curves import FiniteDifferenceCurve
from tests.design.sweep import DIVERGENCES, OWN, Case, answer, generated
from tests.soaking import wide


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1000, wide(1042, 1014)))
def test_generated_designs(number: int) -> None:
    """The seven divergences over mean and worst case, three rounds of them in a soak: none is refused, none is wrong."""
    assert answer(generated(number)).complaint is None


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("over", ["mean", "worst"])
def test_own_divergences_with_kinks_settle(name: str, over: str) -> None:
    laws = np.array([[0.7, 0.3, 0.0], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]])
    found = answer(Case(laws, 1.0, name, over, 0.01 if over == "mean" else 0.0))
    assert found.complaint is None
    assert not found.wide
    assert found.value - found.bound <= 1e-4 * found.value


def test_lines_of_an_f_with_three_edges_are_below_it() -> None:
    """In rationals, at its corners and far out: a line below f there is below it everywhere, since f is linear between them."""

    def f(t: Fraction) -> Fraction:
        return max(t - 2, Fraction(0)) + max(Fraction(1, 2) - t, Fraction(0)) + abs(t - 1) * Fraction(0.2)

    rng = np.random.default_rng(0)
    t = np.concatenate([np.exp(rng.uniform(-14.0, 14.0, 300)), [0.5, 1.0, 2.0], 2.0 * np.exp([-1e-6, 1e-10, 1e-7])])
    curve = FiniteDifferenceCurve(DIVERGENCES["three edges"])
    asked = np.concatenate([np.full(t.size, level) for level in (-3.0, -2.2, -1.5, -0.2, 0.0, 0.2, 0.5, 0.7)])
    slopes, intercepts = curve.steepest_line_with_intercept(asked, np.tile(t, 8))
    corners = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(10**9)]
    for slope, intercept in zip(slopes.tolist(), intercepts.tolist(), strict=True):
        for corner in corners:
            assert Fraction(intercept) + Fraction(slope) * corner <= f(corner)


@pytest.mark.parametrize("name", [*OWN, "kl", "hellinger"])
def test_lines_touch_where_they_are_asked_to(name: str) -> None:
    """With an intercept between those on the two sides of a kink the line goes through it; elsewhere it touches f at t."""
    f = DIVERGENCES[name]
    curve = FiniteDifferenceCurve(f)
    t = np.array([0.01, 0.3, 0.9, 1.0, 1.1, 3.0, 40.0])
    slopes, intercepts = curve.steepest_line_with_intercept(curve.tangent_intercept(t), t)
    values = np.asarray(f.f(t))
    assert np.all(values - (intercepts + slopes * t) <= 1e-7 * (np.abs(values) + t))
    everywhere = np.exp(np.linspace(-12.0, 12.0, 20_001))
    for slope, intercept in zip(slopes, intercepts, strict=True):
        assert np.all(intercept + slope * everywhere <= np.asarray(f.f(everywhere)))


def test_the_cases_are_of_every_kind() -> None:
    cases = [generated(number) for number in range(280)]
    kinds = {(case.name, case.over) for case in cases}
    assert kinds == set(itertools.product(DIVERGENCES, ("mean", "worst")))
    assert min(case.epsilon for case in cases) < 0.02
    assert max(case.epsilon for case in cases) > 11.5
