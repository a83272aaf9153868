"""sum (W - e^beta W')_+ <= delta(beta) 2^62 for laws of the lattice, in whole numbers, for every notion and many beta."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import Band, Simplex
from discreet._base.numerics import exp_upper
from discreet.errors import DiscreetError
from discreet.families import FiniteFamily
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure
from discreet.privacy.tradeoff import Constants
from discreet.projection._box import Box
from discreet.release import TOTAL, Lattice
from tests.soaking import wide

TABLE = Functional([(0.0, 0.95), (0.02, 0.7), (0.2, 0.3), (0.5, 0.05), (0.8, 0.0), (1.0, 0.0)])
NOTIONS: list[Privacy] = [
    Pure(0.7), Approximate(1.0, delta=1e-6), Approximate(0.1, delta=0.2), Gaussian(0.05), Gaussian(1.0), Gaussian(4.0), TABLE,
]  # fmt: skip
FAMILIES: list[FiniteFamily] = [
    Simplex(2),
    Simplex(7),
    Band([1] * 6, lower=0.3, upper=1.4),
    Band([1, 2, 3, 5], lower=0.0, upper=1.7),
    Band([5, 1, 1, 3, 2], lower=0.4, upper=3.0),
]
BETAS = (0.0, 0.01, 0.1, 0.5, 0.7, 1.0, 1.3, 2.0, 3.5, 6.0)


def lattice_of(family: FiniteFamily, privacy: Privacy) -> Lattice:
    b, B = privacy.box(family.bounds)
    constants = Constants(family.bounds.alpha, b, B, 0.0, 0.0, 0.0, 0.0, 0.0)
    return Lattice.for_privacy(Box.around(family.reference, family.size, constants, math.log(B / b) + 1e-12), privacy)


def promised(privacy: Privacy, beta: float) -> Fraction:
    """A rational at most delta(beta), by other means than the library's."""
    grown = exp_upper(beta)
    if isinstance(privacy, Pure):
        return max(Fraction(0), 1 - (1 + grown) / (1 + _exp_below(privacy.epsilon)))
    if isinstance(privacy, Approximate):
        delta = privacy.exact_delta
        inside = 1 - (1 - delta) * (1 + grown) / (1 + _exp_below(privacy.epsilon))
        return delta if beta >= privacy.epsilon else max(delta, inside)
    if isinstance(privacy, Gaussian):
        with mpmath.workdps(60):
            nu, exponent = mpmath.mpf(privacy.nu), mpmath.mpf(beta)
            value = mpmath.ncdf(nu / 2 - exponent / nu) - mpmath.exp(exponent) * mpmath.ncdf(-nu / 2 - exponent / nu)
            return Fraction(int(mpmath.floor(value * mpmath.mpf(10) ** 50)), 10**50)
    assert isinstance(privacy, Functional)
    corners = [(Fraction(x), Fraction(y)) for x, y in privacy.points]
    return 1 - min(y + grown * x for x, y in corners)


def _exp_below(epsilon: float) -> Fraction:
    with mpmath.workdps(60):
        return Fraction(int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(10) ** 50)), 10**50)


def extreme_law(lattice: Lattice, order: np.ndarray) -> list[int]:
    """As much as there is room for, in a given order: a corner of the lattice."""
    k = lattice.box.size
    lower, upper = ([int(x) for x in np.broadcast_to(bound, k)] for bound in (lattice.lower, lattice.upper))
    weights, left = list(lower), TOTAL - sum(lower)
    for x in order:
        more = min(upper[x] - lower[x], left)
        weights[x], left = weights[x] + more, left - more
    assert left == 0
    return weights


@pytest.mark.slow
@pytest.mark.parametrize("privacy", NOTIONS, ids=str)
def test_pairs_of_integer_laws_keep_every_notion(privacy: Privacy) -> None:
    rng = np.random.default_rng(1)
    promises = [(exp_upper(beta), promised(privacy, beta)) for beta in BETAS]
    tightest = 0.0
    for family in FAMILIES:
        lattice = lattice_of(family, privacy)
        assert lattice.keeps_privacy(privacy)
        for _ in range(wide(200, 60)):
            order = rng.permutation(family.size)
            other = order[::-1] if rng.random() < 0.5 else rng.permutation(family.size)
            first, second = extreme_law(lattice, order), extreme_law(lattice, other)
            for factor, delta in promises:
                apart = sum((max(Fraction(0), w - factor * v) for w, v in zip(first, second, strict=True)), Fraction(0))
                assert apart <= delta * TOTAL
                if delta:
                    tightest = max(tightest, float(apart / (delta * TOTAL)))
    assert tightest > 0.98  # the promise is used up, not only kept


@pytest.mark.slow
@pytest.mark.parametrize("privacy", NOTIONS, ids=str)
@pytest.mark.parametrize("size", [3, 1_000, 10**6])
def test_rounding_inwards_costs_next_to_nothing(privacy: Privacy, size: int) -> None:
    family = Simplex(size)
    lattice, (b, B) = lattice_of(family, privacy), privacy.box(family.bounds)
    assert float(1 - Fraction(lattice.shared_total, TOTAL)) == pytest.approx(1.0 - b, rel=1e-4)
    assert float(lattice.largest_ratio) == pytest.approx(B / b, rel=1e-4)


def test_a_lattice_that_is_a_hair_too_wide_is_noticed() -> None:
    """The check decides on the last units: one more of the ceiling than is allowed, and it fails."""
    for privacy in (Approximate(1.0, delta=1e-6), Gaussian(1.0), TABLE):
        lattice = lattice_of(Simplex(4), privacy)
        assert isinstance(lattice.lower, int)
        assert isinstance(lattice.upper, int)
        wider = Lattice(lattice.box, lattice.lower, lattice.upper + (1 << 14))
        assert not wider.keeps_privacy(privacy)
        assert not Lattice(lattice.box, lattice.lower - (1 << 14), lattice.upper).keeps_privacy(privacy)


def test_total_variation_alone_is_kept_too() -> None:
    """At hardly any epsilon delta bounds what is not shared, whatever the ratio: the floor has to be raised."""
    for family in (Simplex(3), Simplex(7), Band([1] * 7, lower=1e-6, upper=6.9), Band([3, 1, 2], lower=0.0, upper=1.5)):
        for delta in (1e-5, 1e-3, 0.2):
            privacy = Approximate(1e-300, delta=delta)
            lattice = lattice_of(family, privacy)
            assert lattice.keeps_privacy(privacy)
            assert float(lattice.largest_ratio) == pytest.approx(
                float(np.divide(*privacy.box(family.bounds)[::-1])), rel=1e-9
            )


def test_too_small_a_budget_is_refused_by_name() -> None:
    with pytest.raises(DiscreetError, match="1e-17-Gaussian LDP is too little for an exact release over 1000 outcomes"):
        lattice_of(Simplex(1000), Gaussian(1e-17))
