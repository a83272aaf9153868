"""What a budget allows: basic sums as exact rationals, the accountant's epsilon at delta."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from discreet import Approximate, DiscreetError, Gaussian, OptimalSampler, Pure, Simplex
from discreet.accounting import BoxProfile, compose
from discreet.ledger import Budget, Spent
from tests.soaking import examples


def test_basic_sums_are_exact() -> None:
    """Ten times 0.1 is 1, though the float is more than a tenth; floats would say 0.9999999999999999, their rationals more than 1."""
    tenth = BoxProfile(epsilon=0.1, alpha=0.5)
    budget = Budget(epsilon=1.0)
    assert budget.allows(budget.spent([(tenth, 10)]))
    assert budget.spent([(tenth, 10)]).basic == 1
    assert not budget.allows(budget.spent([(tenth, 10), (BoxProfile(epsilon=1e-300, alpha=0.5), 1)]))
    assert not budget.allows(budget.spent([(BoxProfile(epsilon=math.nextafter(0.1, 1.0), alpha=0.5), 10)]))
    eighth = BoxProfile(epsilon=0.125, alpha=0.5)
    assert budget.allows(budget.spent([(eighth, 8)]))
    assert budget.spent([(eighth, 8)]) == Spent(Fraction(1), math.inf)
    assert budget.spent([]).epsilon == 0.0


@given(st.integers(1, 10**6), st.integers(0, 9), st.integers(1, 400))
def test_what_was_written_as_decimals_adds_up_as_decimals(digits: int, places: int, count: int) -> None:
    """n samples at a decimal epsilon fit into a budget of the decimal n epsilon, and n + 1 do not."""
    epsilon = Fraction(digits, 10**places)
    budget = Budget(epsilon=float(epsilon * count))
    profile = BoxProfile(epsilon=float(epsilon), alpha=0.5)
    assert budget.allows(budget.spent([(profile, count)]))
    assert not budget.allows(budget.spent([(profile, count + 1)]))
    assert budget.left(budget.spent([(profile, count)])) == 0.0


@given(st.floats(1e-9, 60.0))
def test_what_is_drawn_never_loses_more_than_what_is_counted(epsilon: float) -> None:
    """The decimal that is added up is at least what the integers really lose, in rationals."""
    counted = Budget(epsilon=1.0).spent([(BoxProfile(epsilon=epsilon, alpha=0.5), 1)]).basic
    ratio = OptimalSampler(Simplex(3), epsilon=epsilon).lattice.largest_ratio
    with mpmath.workprec(400):
        exact = mpmath.exp(mpmath.mpf(counted.numerator) / counted.denominator)
        assert mpmath.mpf(ratio.numerator) / ratio.denominator <= exact


@given(st.floats(0.01, 1.0), st.floats(0.01, 0.5), st.integers(1, 300), st.sampled_from([1e-9, 1e-6, 1e-3]))
@settings(deadline=None, max_examples=examples(60))
def test_at_delta_the_accountant_counts(epsilon: float, alpha: float, count: int, delta: float) -> None:
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    spent = Budget(epsilon=2.0, delta=delta).spent([(profile, count)])
    exact = compose([(profile, count)])
    assert spent.epsilon >= exact.epsilon(delta) * (1 - 1e-9)
    assert spent.epsilon <= exact.epsilon(delta / 2) + 1e-12
    other = BoxProfile(epsilon=epsilon * 1.001, alpha=alpha)
    mixed = Budget(epsilon=2.0, delta=delta).spent([(profile, count), (other, 1)])
    assert mixed.accounted >= compose([(profile, count), (other, 1)]).epsilon(delta / 2) - 1e-9


@given(st.floats(0.05, 3.0), st.floats(0.01, 0.5), st.sampled_from([1e-9, 1e-6, 1e-3]), st.floats(0.1, 2.0))
@settings(deadline=None, max_examples=examples(60))
def test_what_only_fits_alone_is_followed_by_nothing(epsilon: float, alpha: float, delta: float, total: float) -> None:
    """The whole delta is used by a single release alone: where half of it would not do, no rule allows another, however small."""
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    budget = Budget(epsilon=total, delta=delta)
    if epsilon > total and compose([(profile, 1)]).epsilon(delta / 2) > total:
        assert budget.allows(budget.spent([(profile, 1)])) == (compose([(profile, 1)]).epsilon(delta) <= total)
        for more in ([(profile, 2)], [(profile, 1), (BoxProfile(epsilon=1e-9, alpha=0.5), 1)]):
            assert not budget.allows(budget.spent(more))


def test_many_small_releases_fit_where_the_sum_does_not() -> None:
    small = BoxProfile(epsilon=0.05, alpha=0.1)
    pure, loose = Budget(epsilon=2.0), Budget(epsilon=2.0, delta=1e-6)
    assert not pure.allows(pure.spent([(small, 200)]))
    assert loose.allows(loose.spent([(small, 200)]))
    two = [(small, 100), (BoxProfile(epsilon=0.05, alpha=0.2), 50)]  # different boxes: the Renyi filter
    assert loose.allows(loose.spent(two))
    assert loose.spent(two).epsilon < float(loose.spent(two).basic)


def test_mistakes_name_the_argument() -> None:
    for arguments, says in [
        ({"epsilon": 0.0}, "epsilon = 0"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta = 1 is not in [0, 1)"),
        ({"epsilon": 1.0, "delta": math.nan}, "delta = nan"),
    ]:
        with pytest.raises(DiscreetError) as caught:
            Budget(**arguments)
        assert says in str(caught.value)


def test_a_pure_budget_covers_pure_promises_alone() -> None:
    pure, loose = Budget(epsilon=2.0), Budget(epsilon=2.0, delta=1e-9)
    assert pure.covers(Pure(2.0))
    assert not pure.covers(Pure(2.0000001))
    assert not pure.covers(Gaussian(0.001))
    assert loose.covers(Gaussian(0.001))
    assert not loose.covers(Gaussian(1.0))
    assert loose.covers(Approximate(2.0, delta=1e-9))
    assert not loose.covers(Approximate(2.0, delta=2e-9))
