"""Whatever is reported as an upper bound is one, to the last bit: held against 120 digits where floats round the other way."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from discreet import LinearSampler, MollifierSampler, OptimalSampler, Pure, Simplex
from discreet._base.numerics import float_rounded_up, product_rounded_up, stated_decimal, sum_rounded_up
from discreet.accounting import (
    BoxProfile,
    compose,
    epsilon_from_renyi,
    epsilon_per_sample,
    equal_share,
    profile_of,
    renyi,
    shuffled_delta,
)
from discreet.ledger import Budget
from discreet.release import TOTAL
from tests.soaking import examples

EPSILONS = st.sampled_from([0.1, 0.3, 0.7, 1 / 3, 1e-3, 2.0, 20.0]) | st.floats(1e-6, 30.0)
ALPHAS = st.sampled_from([0.5, 0.1, 1 / 3, 0.9, 1e-6, 1e-300, 1.0 - 2.0**-53]) | st.floats(1e-9, 1.0)


def pair(epsilon: float, alpha: Any) -> tuple[Any, Any]:
    """m B and m b of a box, exactly as the theorem has them."""
    grown, alpha = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(alpha)
    b = 1 / (alpha * grown + 1 - alpha)
    mass = min(alpha, 1 - alpha)
    return mass * b * grown, mass * b


def losses(epsilon: float, alpha: float, n: int) -> dict[int, Any]:
    """The probability of each multiple of epsilon, of n releases."""
    up, down = pair(epsilon, alpha)
    law = {0: mpmath.mpf(1)}
    for _ in range(n):
        spread: dict[int, Any] = {}
        for loss, chance in law.items():
            for step, part in ((1, up), (-1, down), (0, 1 - up - down)):
                spread[loss + step] = spread.get(loss + step, 0) + chance * part
        law = spread
    return law


def true_delta(epsilon: float, alpha: float, n: int, beta: float) -> Any:
    terms = (
        chance * (1 - mpmath.exp(beta - count * mpmath.mpf(epsilon)))
        for count, chance in losses(epsilon, alpha, n).items()
        if count * mpmath.mpf(epsilon) > beta
    )
    return mpmath.fsum(terms)


def test_a_hundred_times_a_tenth_is_more_than_ten() -> None:
    loss = compose([(BoxProfile(epsilon=0.1, alpha=0.1), 100)])
    assert Fraction(loss.largest) >= 100 * Fraction(0.1) > 10
    with mpmath.workdps(120):
        truth = true_delta(0.1, 0.1, 100, 10.0)
        assert 0 < truth <= mpmath.mpf(loss.delta(10.0)) < 10 * truth
    assert compose([(BoxProfile(epsilon=0.5, alpha=0.1), 64)]).largest == 32.0
    assert loss.delta(loss.largest) == 0.0


@pytest.mark.slow
@given(EPSILONS, ALPHAS, st.integers(1, 12), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_a_composed_delta_is_never_below_the_truth(epsilon: float, alpha: float, n: int, data: st.DataObject) -> None:
    """Asked for where it matters: at multiples of epsilon as floats have them, and next to them."""
    beta = data.draw(st.integers(0, n)) * epsilon
    beta = max(
        0.0, data.draw(st.sampled_from([beta, math.nextafter(beta, 0.0), math.nextafter(beta, 1e9), 0.99 * beta]))
    )
    found = compose([(BoxProfile(epsilon=epsilon, alpha=alpha), n)])
    with mpmath.workdps(120):
        truth = true_delta(epsilon, alpha, n, beta)
        assert truth <= mpmath.mpf(found.delta(beta))
        next_multiple = math.ceil(beta / epsilon) * epsilon
        if next_multiple - beta > 1e-6 * epsilon:  # elsewhere a unit of the loss is all there is
            assert mpmath.mpf(found.delta(beta)) <= truth * (1 + 1e-7) + mpmath.mpf(1e-299)
        assert mpmath.mpf(BoxProfile(epsilon=epsilon, alpha=alpha).delta(beta)) >= true_delta(epsilon, alpha, 1, beta)


@pytest.mark.parametrize(
    ("epsilon", "alpha", "n", "beta"), [(0.1, 0.49999, 20, 1.2), (0.001, 0.49999, 64, 0.056), (0.01, 0.49999, 32, 0.26)]
)
def test_a_loss_of_nothing_keeps_its_whole_probability(epsilon: float, alpha: float, n: int, beta: float) -> None:
    """It was what rounding up left beside the other two, so some probability of losing nothing counted as a gain."""
    with mpmath.workdps(120):
        assert true_delta(epsilon, alpha, n, beta) <= mpmath.mpf(
            compose([(BoxProfile(epsilon=epsilon, alpha=alpha), n)]).delta(beta)
        )


@given(EPSILONS, ALPHAS)
def test_each_of_the_three_masses_is_rounded_up(epsilon: float, alpha: float) -> None:
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    with mpmath.workdps(400):
        noise = mpmath.mpf(10) ** -390  # of these 400 digits
        up, down = pair(epsilon, alpha)
        for truth, mass in (
            (up, profile.upper_mass),
            (down, profile.lower_mass),
            (1 - up - down, profile.middle_mass),
        ):
            assert truth - noise <= mpmath.mpf(mass) <= truth * (1 + mpmath.mpf(1e-13)) + noise


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.2), (0.1, 0.7), (1 / 3, 1e-3)])
def test_different_boxes_are_rounded_up_too(first: float, second: float) -> None:
    found = compose([(BoxProfile(epsilon=first, alpha=0.2), 3), (BoxProfile(epsilon=second, alpha=0.3), 2)])
    assert Fraction(found.largest) >= 3 * Fraction(first) + 2 * Fraction(second)
    with mpmath.workdps(120):
        ours, theirs = losses(first, 0.2, 3), losses(second, 0.3, 2)
        for i in range(4):
            for j in range(3):
                beta = i * first + j * second
                terms = [
                    p * q * (1 - mpmath.exp(beta - a * mpmath.mpf(first) - b * mpmath.mpf(second)))
                    for a, p in ours.items()
                    for b, q in theirs.items()
                    if a * mpmath.mpf(first) + b * mpmath.mpf(second) > beta
                ]
                assert mpmath.fsum(terms) <= mpmath.mpf(found.delta(beta))


@given(
    st.sampled_from([1e-13, 1e-9, 1e-3, 0.1, 1.0, 40.0, 900.0]),
    ALPHAS,
    st.sampled_from([0.0, 1e-9, 0.5, 1.0, 9.0, 1e3, 1e6]),
)
@settings(deadline=None)
def test_a_renyi_divergence_is_never_below_the_truth(epsilon: float, alpha: float, t: float) -> None:
    order = 1.0 + t
    found = renyi(BoxProfile(epsilon=epsilon, alpha=alpha), order=order)
    with mpmath.workdps(700):
        up, down = pair(epsilon, alpha)
        exact = mpmath.mpf(order)
        if order == 1.0:
            truth = mpmath.mpf(epsilon) * (up - down)
        else:
            moment = down * mpmath.exp(exact * epsilon) + down * mpmath.exp((1 - exact) * epsilon) + 1 - up - down
            truth = mpmath.log(moment) / (exact - 1)
        assert truth <= mpmath.mpf(found) <= truth * (1 + 1e-9) + mpmath.mpf(2e-300)


def test_a_renyi_divergence_of_a_rare_loss_is_rounded_up() -> None:
    """The exponent's rounding grows with it, and was taken for that of a few operations."""
    epsilon, alpha, order = 33.46673718115448, 2.4610511632489645e-291, 19.15635663761419
    found = renyi(BoxProfile(epsilon=epsilon, alpha=alpha), order=order)
    with mpmath.workdps(700):
        up, down = pair(epsilon, alpha)
        exact = mpmath.mpf(order)
        moment = down * mpmath.exp(exact * epsilon) + down * mpmath.exp((1 - exact) * epsilon) + 1 - up - down
        truth = mpmath.log(moment) / (exact - 1)
        assert truth <= mpmath.mpf(found) <= truth * (1 + mpmath.mpf(1e-12))


@given(EPSILONS, ALPHAS, st.integers(1, 40), st.floats(-12.0, -1.0))
@settings(deadline=None)
def test_an_epsilon_by_renyi_is_one(epsilon: float, alpha: float, n: int, exponent: float) -> None:
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    found = epsilon_from_renyi(profile, samples=n, delta=10.0**exponent)
    assert compose([(profile, n)]).delta(found) <= 10.0**exponent


@pytest.mark.parametrize("kind", [OptimalSampler, LinearSampler, MollifierSampler])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 7.0, 40.0, 100.0])
def test_a_profile_is_not_below_that_of_the_integers(kind: Any, k: int, epsilon: float) -> None:
    sampler = kind(Simplex(k), epsilon=epsilon)
    profile = profile_of(sampler)
    with mpmath.workdps(120):
        shared = mpmath.mpf(sampler.lattice.shared_total) / TOTAL
        alpha = min((1 - shared) / (shared * (mpmath.exp(mpmath.mpf(profile.epsilon)) - 1)), mpmath.mpf(1))
        up, down = pair(profile.epsilon, alpha)
        assert up <= mpmath.mpf(profile.upper_mass)
        assert down <= mpmath.mpf(profile.lower_mass)


@given(EPSILONS | st.integers(1, 9999).map(lambda digits: digits / 1000), st.integers(1, 10_000))
@example(0.01, 7)
def test_the_share_of_a_pure_budget_is_the_largest_that_the_budget_allows(total: float, n: int) -> None:
    """Budgets add up numbers as written; the draw takes the smaller of a number as written and as a float."""
    budget = Budget(epsilon=total)

    def fits(share: float) -> bool:
        drawn, whole = (min(Fraction(one), Fraction(stated_decimal(one))) for one in (share, total))
        return drawn * n <= whole and budget.allows(budget.spent([(BoxProfile(epsilon=share, alpha=0.5), n)]))

    share = epsilon_per_sample(alpha=0.5, samples=n, epsilon=total, delta=0.0)
    assert fits(share)
    assert not fits(math.nextafter(share, math.inf))
    assert equal_share(Pure(total), samples=n, bounds=Simplex(2).bounds) == Pure(share)


@given(
    st.floats(5e-324, 1e6),
    st.lists(st.integers(-50_000, 50_000), min_size=1),
    st.floats(-1e9, 1e9),
    st.floats(-1e9, 1e9),
)
def test_products_and_sums_are_the_least_floats_that_are_not_below(
    factor: float, counts: list[int], first: float, second: float
) -> None:
    for count, found in zip(counts, product_rounded_up(factor, np.array(counts)).tolist(), strict=True):
        exact = Fraction(factor) * count
        assert Fraction(found) >= exact
        if factor > 1e-280:
            assert found == float_rounded_up(exact)
    total = float(sum_rounded_up(np.array([first]), np.array([second]))[0])
    assert total == float_rounded_up(Fraction(first) + Fraction(second))


def test_a_shuffled_delta_never_exceeds_the_local_one_nor_falls_below_what_two_clients_show() -> None:
    """One client alone hides among nobody: the bound is the local delta, rounded up and not down."""
    for epsilon in (0.1, 1.0, 5.0, 45.0, 59.0):
        profile = BoxProfile(epsilon=epsilon, alpha=0.25)
        with mpmath.workdps(60):
            for beta in (0.0, 0.3 * epsilon, 0.999 * epsilon):
                assert mpmath.mpf(shuffled_delta(profile, clients=1, epsilon=beta)) >= true_delta(
                    epsilon, 0.25, 1, beta
                )
