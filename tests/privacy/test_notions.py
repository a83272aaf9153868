"""What a notion promises, and that its box keeps it: against the definitions, the published calibration, and other accountants."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError
from discreet.families._bands_and_laws import Bounds
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure, extreme_masses, largest_ratio_for_epsilon
from discreet.privacy.tradeoff import constants_of_optimal_box
from tests.needed import needed_module

distributions = needed_module("dp_accounting.pld.privacy_loss_distribution", "pip install --group trust")

NOTIONS: list[Privacy] = [
    Pure(0.3),
    Pure(2.0),
    Approximate(1.0, delta=1e-6),
    Approximate(0.2, delta=0.05),
    Gaussian(0.2),
    Gaussian(1.0),
    Gaussian(3.0),
    Functional([(0.0, 0.9), (0.1, 0.4), (0.4, 0.1), (0.9, 0.0), (1.0, 0.0)]),
    Functional(Gaussian(0.7).tradeoff),
]
BANDS = [
    Bounds(0.0, 2.0),
    Bounds(0.0, 10.0),
    Bounds(0.0, 1.25),
    Bounds(0.25, 4.0),
    Bounds(0.9, 1.05),
    Bounds(0.6, 1.1),
]


def described(value: object) -> str:
    return str(value)


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS, ids=described)
def test_the_profile_is_the_conjugate_of_the_tradeoff(notion: Privacy) -> None:
    """delta(beta) = 1 - min (f(x) + e^beta x), over a fine grid: never below it, and above it by what the grid misses alone."""
    x = np.unique(np.concatenate([np.linspace(0, 1, 4001), np.geomspace(1e-12, 0.5, 8000)]))
    f = np.array([notion.tradeoff(float(each)) for each in x])
    assert f[0] <= 1.0
    assert f[-1] <= 1e-300
    assert (f <= 1.0 - x + 1e-15).all()
    assert (np.diff(f) <= 1e-15).all()
    for beta in (0.0, 0.05, 0.3, 1.0, 1.5, 2.5):
        found = 1.0 - max(np.min(f + math.exp(beta) * x), np.min(x + math.exp(beta) * f))  # both orders of two clients
        assert found - 1e-12 <= notion.profile(beta) <= found + 3e-4


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BANDS, ids=described)
@pytest.mark.parametrize("notion", NOTIONS, ids=described)
def test_the_mixing_weight_is_the_published_infimum(notion: Privacy, bounds: Bounds) -> None:
    """inf over beta of (e^beta - 1 + t delta(beta))/((1 - c1) e^beta + c2 - 1), t = 1/min(alpha, 1 - alpha), capped at 1."""
    found, t = float(notion.mixing(bounds)), 1.0 / min(bounds.alpha, 1.0 - bounds.alpha)

    def at(beta: float) -> float:
        grown = math.exp(beta)
        return (grown - 1.0 + t * notion.profile(beta)) / ((1.0 - bounds.lower) * grown + bounds.upper - 1.0)

    betas = np.linspace(0.0, 8.0, 161)
    values = [at(float(beta)) for beta in betas]
    best = int(np.argmin(values))
    fine = np.linspace(betas[max(best - 1, 0)], betas[min(best + 1, 160)], 161)
    published = min(1.0, *values, *(at(float(beta)) for beta in fine), at(getattr(notion, "epsilon", 0.0)))
    assert found <= published * (1 + 1e-12)
    assert found == pytest.approx(published, rel=2e-4)


@pytest.mark.parametrize("bounds", BANDS, ids=described)
def test_approximate_and_pure_have_their_closed_forms(bounds: Bounds) -> None:
    m = min(bounds.alpha, 1.0 - bounds.alpha)
    for epsilon, delta in ((0.5, 1e-9), (1.0, 1e-3), (3.0, 0.1)):
        closed = (math.expm1(epsilon) + delta / m) / ((1 - bounds.lower) * math.exp(epsilon) + bounds.upper - 1)
        found = Approximate(epsilon, delta=delta).mixing(bounds)
        assert float(found) == pytest.approx(min(1.0, closed), rel=1e-14)
        assert float(Pure(epsilon).mixing(bounds)) == pytest.approx(
            constants_of_optimal_box(bounds, epsilon).gamma, rel=1e-14
        )


@pytest.mark.parametrize("bounds", BANDS, ids=described)
@pytest.mark.parametrize("notion", NOTIONS, ids=described)
def test_the_weight_is_the_largest_that_is_allowed(notion: Privacy, bounds: Bounds) -> None:
    """In rationals: allowed as it stands, not allowed one float further."""
    weight, lower, upper = notion.mixing(bounds), Fraction(bounds.lower), Fraction(bounds.upper)
    alpha = (1 - lower) / (upper - lower)
    m = min(alpha, 1 - alpha)

    def allowed(each: Fraction) -> bool:
        return notion.allows(m * (1 - each * (1 - lower)), m * (1 + each * (upper - 1)))

    assert 0 < weight <= 1
    assert allowed(weight)
    if weight < 1:
        further = (
            Fraction(math.nextafter(float(weight), 1.0))
            if weight <= Fraction(1, 2)
            else 1 - Fraction(math.nextafter(float(1 - weight), 0.0))
        )
        assert not allowed(further)


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS, ids=described)
def test_no_two_laws_of_a_box_break_it(notion: Privacy) -> None:
    """Random pairs of extreme laws of the box around a random reference: their whole trade-off curve is above f."""
    rng = np.random.default_rng(20260)
    for _ in range(300):
        k = int(rng.integers(2, 9))
        mu = rng.dirichlet(np.ones(k))
        bounds = BANDS[int(rng.integers(len(BANDS)))]
        b, B = notion.box(bounds)
        first, second = (_extreme(mu, b, B, rng.permutation(k)) for _ in range(2))
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.where(second > 0, first / second, np.inf), kind="stable")
        x, y = np.cumsum(second[order]), 1.0 - np.cumsum(first[order])  # corners of T(first, second)
        for error, other in zip(np.clip(x, 0, 1), y, strict=True):
            assert other >= notion.tradeoff(float(error)) - 1e-12


def _extreme(mu: np.ndarray, b: float, B: float, order: np.ndarray) -> np.ndarray:
    room = (B - b) * mu[order]
    law = b * mu
    law[order] += np.diff(np.minimum(np.cumsum(room), 1.0 - b), prepend=0.0)
    return law


def test_half_the_mass_is_the_worst_there_is() -> None:
    """t = 1/min(alpha, 1 - alpha): on k outcomes, alpha k of them held, two clients differ on min(alpha, 1 - alpha) k each."""
    for held in (3, 4, 5):
        b, B = Gaussian(1.0).box(Bounds(0.0, 6 / held))
        one = np.where(np.arange(6) < held, B, b) / 6
        other = np.where(np.arange(6) >= 6 - held, B, b) / 6
        m = min(held, 6 - held) / 6
        for beta in (0.0, 0.2, 0.6):
            apart = np.maximum(one - math.exp(beta) * other, 0.0).sum()
            assert apart == pytest.approx(max(m * (B - math.exp(beta) * b), 0.0), abs=1e-12)
            assert apart <= Gaussian(1.0).profile(beta) + 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("nu", [0.3, 1.0, 2.5])
def test_gaussian_profiles_are_those_of_another_accountant(nu: float) -> None:
    theirs = distributions.from_gaussian_mechanism(1.0 / nu, value_discretization_interval=1e-4)
    for beta in (0.0, 0.1, 0.5, 1.0, 2.0):
        rough = theirs.get_delta_for_epsilon(beta)  # rounds losses up to its grid
        assert Gaussian(nu).profile(beta) <= rough + 1e-9
        assert Gaussian(nu).profile(beta) == pytest.approx(rough, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-3), (2.0, 0.2)])
def test_approximate_profiles_are_those_of_another_accountant(epsilon: float, delta: float) -> None:
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    theirs = distributions.from_privacy_parameters(
        DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=1e-6
    )
    for beta in (0.0, 0.3 * epsilon, epsilon, 2 * epsilon):
        assert Approximate(epsilon, delta=delta).profile(beta) == pytest.approx(
            theirs.get_delta_for_epsilon(beta), rel=1e-5, abs=1e-9
        )


@pytest.mark.slow
def test_a_table_keeps_what_the_function_promises() -> None:
    """Chords lie above a convex function: never more is allowed, and hardly less."""
    for nu in (0.1, 2.0):
        function, table = Gaussian(nu), Functional(Gaussian(nu).tradeoff)
        for bounds in BANDS:
            exact, tabled = function.mixing(bounds), table.mixing(bounds)
            assert tabled <= exact
            assert float(tabled) == pytest.approx(float(exact), rel=1e-5)


def test_an_asymmetric_function_is_held_in_both_orders() -> None:
    steep = Functional([(0.0, 0.6), (0.3, 0.1), (0.6, 0.0), (1.0, 0.0)])
    flipped = Functional([(0.0, 0.6), (0.1, 0.3), (0.6, 0.0), (1.0, 0.0)])
    assert steep != flipped
    for bounds in BANDS:
        assert steep.mixing(bounds) == flipped.mixing(bounds)
        assert steep.profile(0.4) == flipped.profile(0.4)


def test_extreme_masses_are_those_of_the_box() -> None:
    for b, B in ((Fraction(1, 2), Fraction(3)), (Fraction(9, 10), Fraction(11, 10)), (Fraction(1, 3), Fraction(5, 4))):
        alpha = (1 - b) / (B - b)
        m = min(alpha, 1 - alpha)
        assert extreme_masses(b, B / b) == (m * b, m * B)
    for one_law in (extreme_masses(Fraction(1), Fraction(2)), extreme_masses(Fraction(1, 2), Fraction(1))):
        assert one_law == (Fraction(0), Fraction(0))


def test_the_decimal_that_was_written_counts() -> None:
    """The float 0.1 is more than a tenth: what is allowed is what a tenth allows."""
    tenth = Approximate(0.1, delta=0.1)
    assert tenth.exact_delta == Fraction(1, 10) < Fraction(0.1)
    assert Gaussian(0.1).exact_nu == Fraction(1, 10)
    lower = Fraction(1, 4)
    assert not Pure(0.1).allows(lower, lower * exp_lower(0.1))


NO_MASSES: list[tuple[Any, Any]] = [
    (0.5, 0.2),
    (-0.1, 0.1),
    (0.4, 0.7),
    (math.inf, math.inf),
    (math.nan, 0.5),
    (0.1, "0.2"),
]


@pytest.mark.parametrize(("lower", "upper"), NO_MASSES)
@pytest.mark.parametrize(
    "notion", [Pure(1.0), Approximate(1.0, delta=0.1), Gaussian(1.0), Functional([(0, 1), (1, 0)])]
)
def test_only_masses_of_a_box_are_allowed_or_not(notion: Privacy, lower: Any, upper: Any) -> None:
    with pytest.raises(DiscreetError, match=r"no masses of a box|not a finite number|not a number"):
        notion.allows(lower, upper)


def test_floats_count_as_the_rationals_that_they_are() -> None:
    """In floats the product would be rounded up to `upper`, and the answer be yes."""
    ratio, lower = largest_ratio_for_epsilon(1.0), 0.1
    upper = float(ratio) * lower
    assert Fraction(upper) > ratio * Fraction(lower)
    assert not Pure(1.0).allows(cast(Fraction, lower), cast(Fraction, upper))


def test_floats_that_are_meant_to_sum_to_one_are_masses() -> None:
    """0.1 + 0.9 is more than 1 exactly: the smaller mass gives way, so that no answer becomes yes by it."""
    lower, upper = cast(Fraction, 0.1), cast(Fraction, 0.9)
    assert Fraction(lower) + Fraction(upper) > 1
    ratio = Fraction(upper) / (1 - Fraction(upper))
    assert ratio > Fraction(upper) / Fraction(lower)
    just = Fraction(upper) - largest_ratio_for_epsilon(1.0) * (1 - Fraction(upper))
    assert Approximate(1.0, delta=float(just) + 1e-15).allows(lower, upper)
    assert not Approximate(1.0, delta=float(just) - 1e-15).allows(lower, upper)
    assert extreme_masses(cast(Fraction, 1 / 3), cast(Fraction, 3.0)) == (Fraction(0), Fraction(0))
    tiny = 1 + Fraction(1, 10**20)  # a box with little room is still one with room
    assert extreme_masses(Fraction(1, 2), 2 * tiny)[0] > 0
    with pytest.raises(DiscreetError, match="no masses of a box"):
        Pure(1.0).allows(Fraction(1, 10), Fraction(9, 10) + Fraction(1, 10**12))


def test_an_exact_number_that_no_float_equals_is_rounded_down() -> None:
    """Whoever states a fraction is never promised a float above it."""
    for number in (Fraction(n, 10_007) for n in range(1, 300)):
        assert Approximate(1.0, delta=cast(float, number)).exact_delta <= number
        assert Gaussian(cast(float, number)).exact_nu <= number
        assert Fraction(Pure(cast(float, number)).epsilon) <= number


def test_a_table_of_decimals_is_taken_as_written() -> None:
    """The float 0.9 is more than nine tenths, 0.3 is less than three."""
    places: Any = [(Decimal(0), Decimal("0.9")), (Decimal("0.3"), Decimal("0.1")), (1, 0)]
    assert Functional(places).corners[:2] == (
        (Fraction(0), Fraction(9, 10)),
        (Fraction(3, 10), Fraction(1, 10)),
    )


@pytest.mark.parametrize("nu", [1e-3, 0.1, 1.0, 30.0])
def test_a_gaussian_profile_is_never_rounded_to_nothing(nu: float) -> None:
    """No pure epsilon is promised, so no delta of 0, however far out."""
    for beta in (50.0 * max(nu, nu * nu), 101.0 * max(nu, nu * nu), 1e6):
        assert 0.0 < Gaussian(nu).profile(beta) < 1e-80


WRONG_KIND: Any = {"text": "1", "function": lambda x: "much", "number": 7, "numbers": [1.0, 2.0]}
BAD = [
    (lambda: Approximate(1.0, delta=1.0), r"delta = 1 is not in \[0, 1\)"),
    (lambda: Approximate(1.0, delta=-1e-9), r"delta = -1e-09 is not in"),
    (lambda: Approximate(1.0, delta=math.nan), "delta = nan"),
    (lambda: Approximate(0.0, delta=0.1), r"epsilon = 0 is not in \(0, inf\)"),
    (lambda: Approximate(WRONG_KIND["text"], delta=0.1), "epsilon = '1' is not a number"),
    (lambda: Gaussian(0.0), r"nu = 0 is not in \(0, inf\)"),
    (lambda: Gaussian(-1.0), "nu = -1 is not in"),
    (lambda: Gaussian(math.inf), "nu = inf is not in"),
    (lambda: Pure(math.nan), "epsilon = nan is not in"),
    (lambda: Functional(lambda x: 1.0), r"f\(1\) = 1 is not between 0 and 1 - x = 0"),
    (lambda: Functional(lambda x: 1 - x * x), r"f\(0.5\) = 0.75 is not between 0 and 1 - x = 0.5"),
    (lambda: Functional(lambda x: (1 - x) ** 0.5 / 2), "is not between 0 and 1 - x|not convex"),
    (lambda: Functional(lambda x: 0.4 * (1 - x * x)), "not convex"),
    (lambda: Functional(lambda x: 0.4 * x * (1 - x)), "f grows from"),
    (lambda: Functional(lambda x: math.log(x)), "fails with ValueError"),
    (lambda: Functional(WRONG_KIND["function"]), "is not a number"),
    (lambda: Functional(lambda x: math.nan), "is not a number"),
    (lambda: Functional([(0.0, 1.0)]), "begins at x = 0 and ends at x = 1"),
    (lambda: Functional([(0.1, 0.5), (1.0, 0.0)]), "begin and end there"),
    (lambda: Functional([(0.0, 0.5), (0.0, 0.5), (1.0, 0.0)]), "do not grow"),
    (lambda: Functional(WRONG_KIND["number"]), "neither a function nor a table"),
    (lambda: Functional(WRONG_KIND["numbers"]), "neither a function nor a table"),
    (lambda: Gaussian(1.0).profile(-0.1), "beta = -0.1 is not in"),
    (lambda: Gaussian(1.0).tradeoff(1.1), "x = 1.1 is not in"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_notion_is_refused_by_name(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(DiscreetError, match=message):
        wrong()


def test_a_budget_past_all_reason_is_still_one() -> None:
    for notion in (Gaussian(1e300), Gaussian(1e6), Approximate(1e300, delta=1e-9)):
        assert notion.profile(1.0) <= 1.0
        assert notion.mixing(Bounds(0.0, 4.0)) > Fraction(9, 10)


def test_how_they_print() -> None:
    assert [str(each) for each in (Pure(1.0), Approximate(1.0, delta=1e-6), Gaussian(0.5))] == [
        "1-LDP",
        "(1, 1e-06)-LDP",
        "0.5-Gaussian LDP",
    ]
    assert repr(Approximate(1.0, delta=1e-6)) == "Approximate(epsilon=1.0, delta=1e-06)"
    assert repr(Functional([(0, 1), (0.5, 0.25), (1, 0)])) == "Functional(<3 points>)"


@pytest.mark.parametrize(
    ("shared", "ratio"), [(0, 3), (2, 3), (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 4), 3), (-1, -1)]
)
def test_masses_between_no_bounds_are_refused(shared: Any, ratio: Any) -> None:
    with pytest.raises(DiscreetError, match="leave no distribution between L and ratio L"):
        extreme_masses(shared, ratio)
