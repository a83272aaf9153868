"""What is really drawn with, random pairs of integer laws for each notion: no event tells two clients apart better than promised.

There are a thousand pairs in a soak and 200 otherwise.

The trade-off curve of two laws is a broken line, and the function of a notion is convex: it lies below the line if and only if it does at the
corners. These are sums of integers over 2^62; the functions are evaluated to 60 digits, by other means than the package's own.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import discreet as dc
from discreet.accounting import profile_of
from discreet.mechanisms import nearest_member
from discreet.privacy import Privacy
from discreet.release import TOTAL
from tests.needed import needed_module
from tests.soaking import wide

distributions = needed_module("dp_accounting.pld.privacy_loss_distribution", "pip install --group trust")

PAIRS = wide(1_000, 200)
TABLE = [(0.0, 1.0), (0.125, 0.5), (0.5, 0.125), (1.0, 0.0)]
FAMILIES: list[Any] = [
    dc.Simplex(2),
    dc.Simplex(10),
    dc.Near([1] * 10, factor=4.0),
    dc.Near([5, 3, 1, 1, 2], factor=3.0),
]


def _approximate(epsilon: str, delta: Fraction) -> Callable[[Fraction], Any]:
    def f(x: Fraction) -> Any:
        grown, left = mpmath.exp(mpmath.mpf(epsilon)), _real(1 - delta)
        return max(mpmath.mpf(0), left - grown * _real(x), (left - _real(x)) / grown)

    return f


def _gaussian(nu: str) -> Callable[[Fraction], Any]:
    def f(x: Fraction) -> Any:
        if x in (0, 1):
            return mpmath.mpf(1 - int(x))
        place = mpmath.findroot(lambda z: mpmath.ncdf(z) - _real(x), _start(float(x)))
        return mpmath.ncdf(-place - mpmath.mpf(nu))

    return f


def _start(x: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(min(max(x, 1e-300), 1.0 - 1e-16))


def _table(x: Fraction) -> Any:
    for (left, high), (right, low) in itertools.pairwise(TABLE):
        if x <= Fraction(right):
            return _real(
                Fraction(high) + (Fraction(low) - Fraction(high)) * (x - Fraction(left)) / Fraction(right - left)
            )
    raise AssertionError(x)


def _real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


NOTIONS: list[tuple[Privacy, Callable[[Fraction], Any]]] = [
    (dc.Pure(0.7), _approximate("0.7", Fraction(0))),
    (dc.Approximate(1.0, delta=1e-6), _approximate("1", Fraction(1, 10**6))),
    (dc.Approximate(0.3, delta=0.05), _approximate("0.3", Fraction(1, 20))),
    (dc.Gaussian(1.0), _gaussian("1")),
    (dc.Functional(TABLE), _table),
]


def corners(first: list[int], second: list[int]) -> list[tuple[int, int]]:
    """Of the trade-off curve: what is wrongly taken for the first (of 2^62), and what of the first is missed, likeliest outcomes first."""
    order = sorted(range(len(first)), key=lambda x: Fraction(first[x], max(second[x], 1)), reverse=True)
    found, wrong, missed = [], 0, TOTAL
    for x in order:
        wrong, missed = wrong + second[x], missed - first[x]
        found.append((wrong, missed))
    return found


def pairs(family: Any, privacy: Privacy, count: int) -> Any:
    """Weights of random members, extreme ones among them, two by two."""
    rng = np.random.default_rng([count, family.size])
    laws = rng.dirichlet(np.full(family.size, 0.2), 2 * count)
    laws[: 2 * min(count, family.size)] = np.eye(family.size)[np.arange(2 * min(count, family.size)) % family.size]
    rows = dc.OptimalSampler(family, privacy=privacy).weights(nearest_member(family, laws)).tolist()
    return zip(rows[::2], rows[1::2], strict=True)


def violations(privacy: Privacy, f: Callable[[Fraction], Any], count: int) -> int:
    found = 0
    with mpmath.workdps(60):
        for family in FAMILIES:
            worst: dict[tuple[int, int], None] = {}
            for first, second in pairs(family, privacy, count // len(FAMILIES)):
                worst |= dict.fromkeys(corners(first, second))
            for wrong, missed in worst:
                found += (
                    Fraction(missed, TOTAL) < 1
                    and f(Fraction(wrong, TOTAL)) > _real(Fraction(missed, TOTAL)) + mpmath.mpf(10) ** -50
                )
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("privacy", "f"), NOTIONS, ids=[str(privacy) for privacy, _ in NOTIONS])
def test_a_thousand_pairs(privacy: Privacy, f: Callable[[Fraction], Any]) -> None:
    assert violations(privacy, f, PAIRS) == 0


@pytest.mark.parametrize(("privacy", "f"), NOTIONS, ids=[str(privacy) for privacy, _ in NOTIONS])
def test_a_few_pairs_and_that_less_privacy_would_be_seen(privacy: Privacy, f: Callable[[Fraction], Any]) -> None:
    assert violations(privacy, f, 16) == 0
    looser: Privacy
    match privacy:
        case dc.Pure(epsilon=epsilon):
            looser = dc.Pure(1.001 * epsilon)
        case dc.Approximate(epsilon=epsilon, delta=delta):
            looser = dc.Approximate(epsilon, delta=1.001 * delta)
        case dc.Gaussian(nu=nu):
            looser = dc.Gaussian(1.001 * nu)
        case _:
            looser = dc.Functional([(0.0, 1.0), (0.125, 0.499), (0.499, 0.125), (1.0, 0.0)])
    assert violations(looser, f, 16) > 0


@pytest.mark.parametrize("privacy", [privacy for privacy, _ in NOTIONS], ids=str)
@pytest.mark.parametrize("size", [2, 10])
def test_profiles_are_those_of_another_accountant(size: int, privacy: Privacy) -> None:
    """dp-accounting's delta of two extreme clients' integers: ours is that, to 1e-9, and what the notion allows is not less.

    Its grid is laid so that the losses, which are +-log(B/b) and 0, lie on it.
    """
    sampler = dc.OptimalSampler(dc.Simplex(size), privacy=privacy)
    first, second = (sampler.weights(row) / TOTAL for row in np.eye(size)[:2])
    loss = float(np.max(np.log(first / second)))
    theirs = distributions.from_two_probability_mass_functions(
        dict(enumerate(np.log(second))),
        dict(enumerate(np.log(first))),
        pessimistic_estimate=True,
        value_discretization_interval=loss / 1000 * (1 + 1e-13),
        log_mass_truncation_bound=-math.inf,
    )
    ours = profile_of(sampler)
    for beta in np.linspace(0.0, 0.95, 20) * loss:
        found = theirs.get_delta_for_epsilon(float(beta))
        assert ours.delta(float(beta)) == pytest.approx(found, rel=1e-9)
        assert found <= privacy.profile(float(beta)) * (1 + 1e-9)
