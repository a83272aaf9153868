"""Intervals by exact tests: inside Clopper and Pearson's, as Blaker's are, and they hold for unequal coins as often as they say."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.estimation._inference._intervals import (
    clopper_pearson_interval_ends,
    exact_interval_ends,
    released_interval_ends_for_inversion,
)
from discreet.estimation._inference._inversion import inversion_of, invert_released_intervals
from tests.estimation.coverage import EXPECTED, chances_of, coin_sum


def acceptability(count: int, n: int, shares: Any) -> Any:
    """Blaker's, by adding up: the smaller tail, and the largest opposite one that is no larger."""
    masses = stats.binom.pmf(np.arange(n + 1)[:, None], n, shares)
    below, above = np.cumsum(masses, axis=0), np.cumsum(masses[::-1], axis=0)[::-1]
    least = np.minimum(below, above)
    return np.where(least <= least[count] * (1 + 1e-12), masses, 0.0).sum(axis=0)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_they_are_blakers(n: int, confidence: float) -> None:
    shares = np.linspace(0.0, 1.0, 4001)
    low, high = exact_interval_ends(np.arange(n + 1), n, confidence)
    for count in range(n + 1):
        kept = shares[acceptability(count, n, shares) > 1.0 - confidence]
        least, most = (0.0 if count in (0, 1) else kept[0]), (1.0 if count in (n - 1, n) else kept[-1])
        if count not in (0, 1):
            assert low[count] == pytest.approx(least, abs=3e-4)
        if count not in (n - 1, n):
            assert high[count] == pytest.approx(most, abs=3e-4)
    assert low[1] == pytest.approx((1.0 - confidence) / n)  # by Markov's inequality, for unequal coins
    assert (low[0], high[n]) == (0.0, 1.0)


@pytest.mark.parametrize("n", [3, 60, 5000, 10**7])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_they_lie_inside_clopper_and_pearsons_and_hold_the_frequency(n: int, confidence: float) -> None:
    counts = np.unique(np.concatenate([np.arange(min(n, 30) + 1), n - np.arange(min(n, 30) + 1), [n // 2, n // 7]]))
    low, high = exact_interval_ends(counts, n, confidence)
    outer = clopper_pearson_interval_ends(counts, n, confidence)
    assert np.all((outer[0] <= low) & (low <= counts / n) & (counts / n <= high) & (high <= outer[1]))
    if confidence > 0.75:
        assert np.mean(high - low) < np.mean(outer[1] - outer[0])


@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize(("n", "k", "epsilon"), [(6, 2, 1.0), (40, 20, 4.0)])
def test_they_hold_as_often_as_they_say_for_clients_alike_and_not(
    kind: Any, confidence: float, n: int, k: int, epsilon: float
) -> None:
    """Exactly, over all counts: clients that all hold one law, that are sure of one outcome each, and some of both."""
    sampler = kind(dc.Simplex(k), epsilon=epsilon)
    inversion, counts, mu = inversion_of(sampler), np.arange(n + 1), np.full(n + 1, 1.0 / k)
    low, high = invert_released_intervals(
        inversion, sampler.bounds, mu, released_interval_ends_for_inversion(counts, n, confidence, inversion, mu)
    )
    wider = invert_released_intervals(
        inversion, sampler.bounds, mu, clopper_pearson_interval_ends(counts, n, confidence)
    )
    lengths = []
    for share in [*np.linspace(0.0, 1.0, 9), *(expected / n for expected in EXPECTED)]:
        for laws in chances_of(share, n, k):
            seen = coin_sum(np.atleast_2d(sampler.output(laws))[:, 0])
            truth = laws[:, 0].mean()
            missed = seen @ ((low > truth + 1e-9) | (high < truth - 1e-9))
            assert missed <= (1.0 - confidence) * (1 + 1e-9)
            lengths.append((seen @ (high - low), seen @ (wider[1] - wider[0])))
    ours, theirs = np.mean(lengths, axis=0)
    assert ours < (0.985 if n == 40 else 1.0) * theirs


def test_released_shares_that_are_hardly_expected_are_held() -> None:
    """Unequal coins with means from 0.001 on: one that is likely and many that cannot be, which binomial tails alone would not cover."""
    for n, confidence in [(20, 0.9), (50, 0.95)]:
        low, high = exact_interval_ends(np.arange(n + 1), n, confidence)
        for mean in (0.001, 0.01, 0.04, 0.049, 0.0499, 0.0501, 0.06, 0.09, 0.0999, 0.1001, 0.3, 0.9, 1.0, 1.5):
            for coins in range(int(np.ceil(mean)), n + 1):
                chances = np.zeros(n)
                chances[:coins] = mean / coins
                seen = coin_sum(chances)
                missed = seen @ ((low > mean / n + 1e-12) | (high < mean / n - 1e-12))
                assert missed <= (1.0 - confidence) * (1 + 1e-9)


@pytest.mark.parametrize("among", [1, 50])
def test_a_band_of_several_masses_takes_each_as_it_is(among: int) -> None:
    sampler = dc.OptimalSampler(dc.Band([4, 3, 2, 1], lower=0.0, upper=2.0), epsilon=2.0)
    inversion = inversion_of(sampler)
    counts, mu = np.array([40, 30, 20, 10]), np.array([0.4, 0.3, 0.2, 0.1])
    together = released_interval_ends_for_inversion(counts, 100, 0.9, inversion, mu, among=among)
    for place in range(4):
        alone = released_interval_ends_for_inversion(counts[[place]], 100, 0.9, inversion, mu[[place]], among=among)
        assert (alone[0][0], alone[1][0]) == (together[0][place], together[1][place])
    outer = clopper_pearson_interval_ends(counts, 100, 0.9, among=among)
    assert np.all((outer[0] <= together[0]) & (together[1] <= outer[1]))
    assert np.all(together[0] > outer[0])
