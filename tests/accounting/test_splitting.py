"""One budget split over several samples: exact in rationals, never too much, and not much less than there is."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet._base.numerics import stated_decimal
from discreet.accounting import BoxProfile, compose, epsilon_per_sample, equal_share, keeps_together
from discreet.families._bands_and_laws import Bounds
from discreet.ledger import Budget
from discreet.privacy import Privacy
from tests.soaking import wide

EVERYBODY = Bounds(0.0, 10.0)


def products(lower: Fraction, upper: Fraction, samples: int) -> list[tuple[Fraction, Fraction]]:
    """The probabilities of every sequence of three points under the two laws of the dominating pair."""
    first = (upper, lower, 1 - lower - upper)
    second = (lower, upper, 1 - lower - upper)
    return [
        (Fraction(math.prod(first[i] for i in places)), Fraction(math.prod(second[i] for i in places)))
        for places in itertools.product(range(3), repeat=samples)
    ]


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 60),
    st.integers(1, 4),
    st.floats(0.05, 3.0),
    st.sampled_from([1e-9, 1e-3, 0.05]),
)
def test_what_is_decided_is_the_definition(
    low: int, more: int, rest: int, samples: int, epsilon: float, delta: float
) -> None:
    """(epsilon, delta)-LDP of the product, summed over every sequence of outcomes."""
    total = 2 * low + more + rest
    lower, upper = Fraction(low, total), Fraction(low + more, total)
    notion = dc.Approximate(epsilon, delta=delta)
    with_factor = sum(max(Fraction(0), p - Fraction(math.exp(epsilon)) * q) for p, q in products(lower, upper, samples))
    if abs(with_factor - Fraction(delta)) > Fraction(1, 10**12):
        assert keeps_together(notion, lower, upper, samples) == (with_factor < delta)


@given(st.integers(2, 4), st.floats(0.1, 2.0), st.floats(0.02, 0.5))
@settings(deadline=None, max_examples=wide(15, 6))
def test_gaussian_budgets_hold_at_every_beta(samples: int, nu: float, mass: float) -> None:
    notion = dc.Gaussian(nu)
    share = equal_share(notion, samples=samples, bounds=Bounds(0.0, 1.0 / mass))
    assert isinstance(share, dc.Pure)
    loss = compose([(BoxProfile(epsilon=share.epsilon, alpha=mass), samples)])
    for beta in (0.0, 0.2, 0.5, 1.0, 2.0, 4.0):
        assert loss.delta(beta) <= notion.profile(beta) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("notion", "least"),
    [
        (dc.Approximate(2.0, delta=1e-6), 0.2875329),
        (dc.Gaussian(1.0), dc.OptimalSampler(dc.Simplex(10), privacy=dc.Gaussian(1.0 / math.sqrt(10.0))).epsilon),
    ],
    ids=["approximate", "gaussian"],
)
def test_shares_are_no_smaller_than_what_the_notions_alone_allow(notion: Privacy, least: float) -> None:
    share = equal_share(notion, samples=10, bounds=EVERYBODY)
    assert isinstance(share, dc.Pure)
    assert share.epsilon >= least


@given(st.integers(1, 10**6), st.integers(0, 6), st.integers(2, 500))
def test_shares_of_pure_epsilon_add_up_to_no_more(digits: int, places: int, samples: int) -> None:
    epsilon = float(Fraction(digits, 10**places))
    share = equal_share(dc.Pure(epsilon), samples=samples, bounds=EVERYBODY)
    assert isinstance(share, dc.Pure)
    drawn = min(Fraction(share.epsilon), Fraction(stated_decimal(share.epsilon)))
    assert drawn * samples <= min(Fraction(epsilon), Fraction(stated_decimal(epsilon)))
    assert share.epsilon * samples >= epsilon * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [4.0001518120015015e-08, 3e-10, 7e-15, 0.3, 1.0])
def test_shares_of_small_budgets_add_up_to_no_more(epsilon: float) -> None:
    """Where e^epsilon is 1 but for its last digits, its float is too coarse: the first was overspent, the second had no share."""
    share = equal_share(dc.Approximate(epsilon, delta=0.0), samples=3, bounds=EVERYBODY)
    assert isinstance(share, dc.Pure)
    assert 0.9 * epsilon <= 3 * Fraction(share.epsilon) <= epsilon


def test_a_budget_pays_for_its_shares() -> None:
    """30 times 0.03666666666666667, as written, is more than 1.1: a ledger refused the last sample."""
    share = epsilon_per_sample(alpha=0.5, samples=30, epsilon=1.1, delta=0.0)
    budget = Budget(epsilon=1.1)
    assert budget.allows(budget.spent([(BoxProfile(epsilon=share, alpha=0.5), 30)]))


def test_many_samples_and_mistakes() -> None:
    assert isinstance(equal_share(dc.Gaussian(1.0), samples=1000, bounds=EVERYBODY), dc.Gaussian)
    assert isinstance(equal_share(dc.Approximate(1.0, delta=1e-6), samples=1000, bounds=EVERYBODY), dc.Pure)
    assert equal_share(dc.Gaussian(0.5), samples=1, bounds=EVERYBODY) == dc.Gaussian(0.5)
    mistakes: list[tuple[Any, Any, str]] = [
        (0, dc.Pure(1.0), "samples = 0 is less than 1"),
        (2.0, dc.Pure(1.0), "samples = 2.0 is not a whole number"),
        (60_000, dc.Pure(1.0), "samples is more than 50,000"),
        (100, dc.Functional([(0, 1), (0.4, 0.4), (1, 0)]), "samples = 100: f-LDP"),
        (3, 1.0, "privacy = 1.0 is not a Privacy"),
    ]
    for samples, notion, says in mistakes:
        with pytest.raises(dc.DiscreetError) as caught:
            equal_share(notion, samples=samples, bounds=EVERYBODY)
        assert says in str(caught.value)


@pytest.mark.parametrize(
    ("epsilon", "samples", "delta", "says"),
    [
        (1e6, 1, 1e-6, "epsilon = 1e+06 leaves more than 500000 for each sample"),
        (5e-324, 4, 1e-6, "samples = 4: nothing is left of epsilon = 5e-324"),
        (5e-324, 4, 0.0, "samples = 4: nothing is left of epsilon = 5e-324"),
    ],
)
def test_totals_out_of_range_are_named_as_they_were_given(
    epsilon: float, samples: int, delta: float, says: str
) -> None:
    with pytest.raises(dc.DiscreetError) as caught:
        epsilon_per_sample(alpha=0.1, samples=samples, epsilon=epsilon, delta=delta)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("lower", "upper"), [(3, 4), (Fraction(1, 2), Fraction(1, 4)), (-1, 1), (Fraction(1, 2), Fraction(3, 4))]
)
def test_masses_of_no_box_are_refused(lower: Any, upper: Any) -> None:
    with pytest.raises(dc.DiscreetError, match="are no masses of a box"):
        keeps_together(dc.Gaussian(1.0), lower, upper, 3)
