"""The published calibration agrees with ours where it is right, and is beaten where it is not; nobody is served worse."""

import math

import numpy as np
import pytest

from discreet.families._bands_and_laws import Bounds
from discreet.privacy import Approximate, Functional, Gaussian, Pure
from discreet.research.experiments._follow_up import (
    FOLLOW_UP_BUDGETS,
    NOTION_KINDS,
    PointwiseComparison,
    privacy_from_laplace_tradeoff,
    privacy_notion_at_budget,
    published_mixing_weight,
)


@pytest.mark.parametrize("kind", NOTION_KINDS)
@pytest.mark.parametrize("budget", FOLLOW_UP_BUDGETS)
def test_both_calibrations_agree_where_extreme_clients_hold_half_the_space_or_less(kind: str, budget: float) -> None:
    privacy = privacy_notion_at_budget(kind, budget)
    for bounds in (Bounds(0.0, 10.0), Bounds(0.25, 4.0), Bounds(0.0, 2.0)):
        ours = float(privacy.mixing(bounds))
        theirs = min(1.0, published_mixing_weight(privacy, bounds))
        assert ours <= theirs * (1 + 1e-12)  # their search ends a little before the infimum
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_a_wide_class_is_given_less_than_it_may_have() -> None:
    bounds = Bounds(0.5, 1.125)
    for privacy in (Gaussian(0.5), Approximate(0.1, delta=0.01)):
        assert published_mixing_weight(privacy, bounds) < 0.95 * float(privacy.mixing(bounds))


def test_the_published_weight_is_not_capped() -> None:
    assert published_mixing_weight(Gaussian(1.5), Bounds(0.5, 2.0)) > 1.05
    assert float(Gaussian(1.5).mixing(Bounds(0.5, 2.0))) == 1.0


def test_the_laplace_tradeoff_is_that_of_two_laplace_laws() -> None:
    """Against the errors of every threshold between Laplace(0, 1) and Laplace(mu, 1)."""
    for mu in (0.5, 2.0):
        f = privacy_from_laplace_tradeoff(mu)
        for threshold in np.linspace(-4.0, 6.0, 41):
            wrong = 0.5 * math.exp(-threshold) if threshold > 0 else 1.0 - 0.5 * math.exp(threshold)
            apart = threshold - mu
            missed = 0.5 * math.exp(apart) if apart < 0 else 1.0 - 0.5 * math.exp(-apart)
            assert f.tradeoff(wrong) == pytest.approx(missed, abs=2e-5)
            assert f.tradeoff(wrong) >= missed - 1e-12


def test_notions_by_name() -> None:
    assert privacy_notion_at_budget("pure", 1.0) == Pure(1.0)
    assert privacy_notion_at_budget("approximate", 1.0) == Approximate(1.0, delta=1e-3)
    assert privacy_notion_at_budget("gaussian", 2.0) == Gaussian(2.0)
    assert isinstance(privacy_notion_at_budget("functional", 1.0), Functional)


def test_whoever_is_served_worse_is_counted() -> None:
    found = PointwiseComparison.from_divergences(np.array([0.1, 0.3, 0.2]), np.array([0.2, 0.2, 0.2 - 1e-12]))
    assert (found.worse, found.projection, found.linear) == (1, 0.3, 0.2)
    assert found.excess == pytest.approx(0.1)
