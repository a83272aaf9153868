"""Promises are kept by simulations, and their inverses invert them."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import discreet as dc
from discreet.estimation import (
    clients_for,
    epsilon_for_accuracy,
    exact_variance,
    inversion_of,
    outlook,
    population,
    variance_excess,
    variance_excess_or_none,
)
from discreet.estimation._counting import bins_of_about_equal_reference_mass
from discreet.estimation._inference._intervals import clopper_pearson_interval_ends
from discreet.estimation._inference._inversion import invert_released_intervals
from discreet.estimation._population import ReportedPopulation
from discreet.mechanisms import ReportSampler, best_subset_width_and_variance
from tests.soaking import wide


@pytest.mark.slow
@settings(max_examples=wide(100, 10))
@given(st.integers(2, 200), st.floats(0.2, 6.0), st.floats(0.01, 0.3))
def test_the_clients_asked_for_are_enough_and_fewer_are_not(k: int, epsilon: float, accuracy: float) -> None:
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=epsilon)
    needed = clients_for(sampler, accuracy=accuracy)
    assert outlook(sampler, mechanism="linear", clients=needed).at_worst <= accuracy * (1 + 1e-9)
    if needed > 20:
        fewer = outlook(sampler, mechanism="linear", clients=int(0.9 * needed))
        assert fewer.at_worst > accuracy


@pytest.mark.slow
@settings(max_examples=wide(100, 10))
@given(st.integers(2, 50), st.integers(200, 10**6))
def test_the_epsilon_asked_for_is_enough(k: int, clients: int) -> None:
    family = dc.Simplex(k)
    for kind, name in ((dc.LinearSampler, "linear"), (dc.OptimalSampler, "optimal")):
        epsilon = epsilon_for_accuracy(kind, family, clients=clients, accuracy=0.1)
        found = outlook(kind(family, epsilon=epsilon), mechanism=name, clients=clients)
        assert found.at_worst == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
@pytest.mark.parametrize(
    ("k", "epsilon", "clients"), [(10, 2.0, 1000), (100, 4.0, 300), (10, 1.0, 3000), (3, 1.0, 137)]
)
def test_no_count_has_a_longer_interval_than_promised(kind: Any, k: int, epsilon: float, clients: int) -> None:
    """Over every count that can be seen; 129 places between would promise .3097 for .3102 (optimal, 10, 2, 1000)."""
    sampler = kind(dc.Simplex(k), epsilon=epsilon)
    promised, inversion = outlook(sampler, mechanism="any", clients=clients).at_worst, inversion_of(sampler)
    low, high = clopper_pearson_interval_ends(counts := np.arange(clients + 1), clients, 0.95)
    least, most = sampler.constants.b / k, sampler.constants.B / k
    seen = (high >= least) & (low <= min(most, 1.0 - (k - 1) * least))
    if inversion.exact:
        shares = counts / clients
        reach = np.maximum(shares - np.maximum(low, least), np.minimum(high, most) - shares) * inversion.low.released
    else:
        ends = invert_released_intervals(inversion, sampler.bounds, np.full(clients + 1, 1.0 / k), (low, high))
        reach = 0.5 * (ends[1] - ends[0])
    assert np.max(reach[seen]) <= promised * (1 + 1e-12)
    assert promised <= np.max(reach[seen]) * 1.01


@pytest.mark.slow
def test_promises_are_kept_by_a_simulation() -> None:
    rng = np.random.default_rng(1)
    k, clients = 10, 5000
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=1.0)
    promised = outlook(sampler, mechanism="linear", clients=clients)
    assert promised.total is not None
    off, rare = [], []
    for _ in range(400):
        counts = rng.multinomial(clients, np.full(k, 1 / k))
        off.append(0.5 * np.abs(population(sampler, counts=counts).law.estimate - 1 / k).sum())
        counts = rng.multinomial(clients, sampler.output(np.eye(k)[0]))
        rare.append(population(sampler, counts=counts).law.estimate[1:].std())
    assert np.mean(off) == pytest.approx(promised.total, rel=0.05)
    assert 1.96 * np.mean(rare) == pytest.approx(promised.if_rare, rel=0.1)
    assert promised.if_rare <= promised.at_worst
    assert promised.band == 0.0


def test_what_projections_leave_open_no_number_of_clients_closes() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=1.0)
    found = outlook(sampler, mechanism="optimal", clients=10**9)
    assert found.total is None
    assert found.band == pytest.approx(found.at_worst, rel=1e-2)
    with pytest.raises(dc.ImpossibleError, match="use the linear mechanism"):
        clients_for(sampler, accuracy=0.01)
    with pytest.raises(dc.ImpossibleError, match="even without privacy"):
        epsilon_for_accuracy(dc.LinearSampler, dc.Simplex(10), clients=10, accuracy=0.01)


CASES = [
    (family, epsilon, accuracy)
    for family in (dc.Simplex(2), dc.Simplex(5), dc.Band([9, 1], lower=0.0, upper=1.2), dc.Band([3, 2, 1], lower=0.2, upper=2.0))
    for epsilon in (0.4, 2.0, 8.0)
    for accuracy in (0.05, 0.15, 0.4, 0.7)
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("family", "epsilon", "accuracy"), wide(CASES, CASES[::3]))
def test_so_many_clients_are_enough_however_few_they_are(family: Any, epsilon: float, accuracy: float) -> None:
    """Exactly: over every share that an outcome can be released with, the estimate is near with probability 0.95."""
    sampler = dc.LinearSampler(family, epsilon=epsilon)
    clients = clients_for(sampler, accuracy=accuracy)
    weight = inversion_of(sampler).low.released
    for mass in set(np.broadcast_to(sampler.reference, family.size).tolist()):
        lower, upper = family.bounds.lower, family.bounds.upper
        least = max(lower * mass, 1.0 - upper * (1.0 - mass))  # what a member can hold there, and elsewhere
        law = np.array([least, min(upper * mass, 1.0 - lower * (1.0 - mass))])
        first, last = (law + (weight - 1.0) * mass) / weight
        q = np.linspace(first, last, 500)
        near = np.ceil(clients * (q - accuracy / weight) - 1e-9), np.floor(clients * (q + accuracy / weight) + 1e-9)
        chance = stats.binom.cdf(near[1], clients, q) - stats.binom.cdf(near[0] - 1, clients, q)
        assert chance.min() >= 0.95, clients


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.MollifierSampler])
@pytest.mark.parametrize(
    ("epsilon", "accuracy"), wide([(2.0, 0.45), (4.0, 0.2), (8.0, 0.1), (8.0, 0.3)], [(4.0, 0.2), (8.0, 0.3)])
)
def test_intervals_of_projections_are_no_wider_than_promised(kind: Any, epsilon: float, accuracy: float) -> None:
    """Two outcomes, so that every count can be gone through: with probability 0.95 the interval holds the truth and is no wider."""
    sampler = kind(dc.Simplex(2), epsilon=epsilon)
    clients = clients_for(sampler, accuracy=accuracy)
    found = [population(sampler, counts=[x, clients - x]).law for x in range(clients + 1)]
    low, high = (np.array([getattr(each, end)[0] for each in found]) for end in ("low", "high"))
    narrow = high - low <= 2.0 * accuracy * (1.0 + 1e-9)
    for share in np.linspace(0.0, 1.0, 101):
        q = sampler.output([share, 1.0 - share])[0]
        right = narrow & (low - 1e-12 <= share) & (share <= high + 1e-12)
        assert stats.binom.pmf(np.arange(clients + 1), clients, q)[right].sum() >= 0.95, (clients, share)


def test_all_shares_together_take_more_clients() -> None:
    """As many as are enough for each share alone leave some share of fifty further off nearly always."""
    rng = np.random.default_rng(4)
    k, epsilon, accuracy = 50, 0.5, 0.3
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=epsilon)
    clients = {together: clients_for(sampler, accuracy=accuracy, together=together) for together in (False, True)}
    near: dict[bool, float] = {}
    for together, n in clients.items():
        for law in (np.full(k, 1 / k), np.eye(k)[0]):
            q = np.asarray(sampler.output(law))
            estimates = inversion_of(sampler).low(1 / k, rng.multinomial(n, q / q.sum(), size=2000) / n)
            right = float((np.abs(estimates - law) <= accuracy).all(axis=1).mean())
            near[together] = min(near.get(together, 1.0), right)
        promised = outlook(sampler, mechanism="linear", clients=n)
        assert (promised.together <= accuracy) == together
        assert promised.at_worst <= accuracy
    assert near[True] >= 0.95
    assert near[False] < 0.6
    needed = epsilon_for_accuracy(
        dc.LinearSampler, dc.Simplex(k), clients=clients[True], accuracy=accuracy, together=True
    )
    assert needed == pytest.approx(epsilon, rel=1e-3)


def test_a_single_outcome_takes_one_client() -> None:
    for kind in (dc.LinearSampler, dc.OptimalSampler, dc.MollifierSampler):
        assert clients_for(kind(dc.Simplex(1), epsilon=1.0), accuracy=0.01) == 1


def test_a_domain_too_large_to_list_is_planned_for() -> None:
    found = outlook(dc.LinearSampler(dc.Simplex(2**40), epsilon=1.0), mechanism="linear", clients=1000)
    assert found.total == 1.0
    assert found.at_worst == found.together == 1.0


def test_what_takes_too_many_clients_does_not_blame_the_mechanism() -> None:
    with pytest.raises(dc.ImpossibleError, match=r"clients would be needed.*use a larger epsilon"):
        clients_for(dc.LinearSampler(dc.Simplex(3), epsilon=1e-9), accuracy=0.1)


@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
def test_bins_of_a_line_are_promised_what_outcomes_of_these_masses_are(kind: Any) -> None:
    """A continuous family is planned for as the band on its bins is, in which its clients are once they are put on bins."""
    family = dc.LaplaceMixtures(1, radius=0.5)
    sampler = kind(family, epsilon=1.0)
    found = outlook(sampler, mechanism="x", clients=3000, bins=6)
    masses = bins_of_about_equal_reference_mass(sampler, clients=3000, count=6).reference
    band = dc.Band(masses, lower=family.bounds.lower, upper=family.bounds.upper)
    expected = outlook(kind(band, epsilon=1.0), mechanism="x", clients=3000)
    for name in ("at_worst", "together", "if_rare", "band", "total"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6)
    assert found.at_worst < outlook(sampler, mechanism="x", clients=300, bins=6).at_worst


def test_what_cannot_be_planned_is_named() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="confidence = 2"):
        clients_for(sampler, accuracy=0.1, confidence=2.0)
    with pytest.raises(dc.DiscreetError, match="mass = 7"):
        clients_for(sampler, accuracy=0.1, mass=7.0)
    line = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))
    with pytest.raises(dc.DiscreetError, match="give mass="):
        clients_for(dc.LinearSampler(line, epsilon=1.0), accuracy=0.1)
    with pytest.raises(dc.DiscreetError, match="bins is more than"):
        outlook(dc.LinearSampler(line, epsilon=1.0), mechanism="linear", clients=10, bins=10**6)
    with pytest.raises(dc.DiscreetError, match="does not release on a line"):
        outlook(dc.LinearSampler(dc.GaussianMixtures(2), epsilon=1.0), mechanism="linear", clients=10)
    with pytest.raises(dc.DiscreetError, match="is not a sampler"):
        outlook(None, mechanism="linear", clients=10)  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="no unbiased estimate"):
        exact_variance(dc.OptimalSampler(dc.Simplex(2), epsilon=1.0), [[0.5, 0.5]], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="one finite number for each outcome"):
        exact_variance(sampler, [[0.2, 0.3, 0.5]], [0.0, 1.0, np.nan])


@pytest.mark.parametrize(
    ("wrong", "message"), [({"clients": 0}, "clients = 0"), ({"clients": 10, "confidence": 2.0}, "confidence = 2")]
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        outlook(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), mechanism="linear", **wrong)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (10, 0.5), (104, 1.0), (104, 4.0), (1000, 2.0)])
@pytest.mark.parametrize("clients", [20, 400])
def test_reports_keep_their_promise_whatever_the_population(k: int, epsilon: float, clients: int) -> None:
    """Exactly: over every number of holders, an interval holds the share and reaches no further as often as the confidence says."""
    sampler = ReportSampler(dc.Simplex(k), epsilon=epsilon)
    reach = outlook(sampler, mechanism="reports", clients=clients).at_worst
    everything = ReportedPopulation(sampler.family.domain, np.arange(clients + 1), clients, sampler, 0.95)
    law = everything.law
    inside = np.clip(law.estimate, 0.0, 1.0)
    short = np.maximum(law.high - inside, inside - law.low) <= reach + 1e-9
    for holders in range(0, clients + 1, max(1, clients // 20)):
        own = stats.binom.pmf(np.arange(holders + 1), holders, sampler.chances.inside)
        other = stats.binom.pmf(np.arange(clients - holders + 1), clients - holders, sampler.chances.outside)
        kept = short & (law.low <= holders / clients + 1e-12) & (holders / clients - 1e-12 <= law.high)
        assert np.convolve(own, other)[kept].sum() >= 0.95 - 1e-9


def test_the_clients_that_reports_need_are_enough_and_fewer_are_not() -> None:
    for k, epsilon, accuracy in [(7, 1.0, 0.05), (104, 1.0, 0.01), (1000, 4.0, 0.02), (10**6, 1.0, 0.01)]:
        sampler = ReportSampler(dc.Simplex(k), epsilon=epsilon)
        needed = clients_for(sampler, accuracy=accuracy)
        assert outlook(sampler, mechanism="reports", clients=needed).at_worst <= accuracy * (1 + 1e-9)
        assert outlook(sampler, mechanism="reports", clients=int(0.9 * needed)).at_worst > accuracy
        assert clients_for(sampler, accuracy=accuracy, together=True) > needed
        values = clients_for(dc.LinearSampler(dc.Simplex(k), epsilon=epsilon), accuracy=accuracy)
        assert needed < values  # at each of these the choice is reports
    smallest = epsilon_for_accuracy(ReportSampler, dc.Simplex(104), clients=10_000, accuracy=0.02)
    at_that = outlook(ReportSampler(dc.Simplex(104), epsilon=smallest * 1.001), mechanism="reports", clients=10_000)
    assert at_that.at_worst <= 0.02 * 1.01


def test_values_planned_as_reports_are_the_linear_mechanism() -> None:
    """Where blocks are single outcomes the two plans are of one mechanism."""
    reports, linear = ReportSampler(dc.Simplex(7), epsilon=2.0), dc.LinearSampler(dc.Simplex(7), epsilon=2.0)
    ours, theirs = (outlook(each, mechanism="x", clients=4043) for each in (reports, linear))
    for name in ("at_worst", "together", "if_rare", "total"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9)


def summed_variance(mechanism: np.ndarray) -> float:
    """The least sum of the variances of unbiased estimates of shares, times the clients, by Cramer and Rao: rows are outcomes."""
    mean = mechanism.mean(axis=0)
    away = mechanism - mean
    values = np.linalg.eigvalsh((away / mean) @ away.T)[1:]  # 0 in the direction in which shares do not sum to 1
    return float((1.0 / np.maximum(values, 1e-300)).sum())


def private_mechanism(growth: float, outcomes: int, reports: int, rng: np.random.Generator) -> np.ndarray:
    """Any mechanism with ratios of at most e^epsilon: a random one, mixed with its mean row until it has them."""
    raw = rng.dirichlet(np.full(reports, rng.choice([0.1, 1.0])), size=outcomes) + 1e-9
    raw /= raw.sum(axis=1, keepdims=True)
    mean, least, most = raw.mean(axis=0), 0.0, 1.0
    for _ in range(60):
        middle = (least + most) / 2
        mixed = middle * raw + (1 - middle) * mean
        least, most = (middle, most) if (mixed.max(axis=0) <= growth * mixed.min(axis=0)).all() else (least, middle)
    return np.asarray(least * raw + (1 - least) * mean)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_private_mechanism_has_a_smaller_variance_than_is_said(epsilon: float) -> None:
    """Random mechanisms, symmetric ones of every width, and mixtures of two widths; the best width alone reaches it."""
    rng, growth = np.random.default_rng(11), float(np.exp(epsilon))
    for outcomes in (2, 3, 5, 7):
        width, least = best_subset_width_and_variance(outcomes, growth)
        for _ in range(150):
            found = private_mechanism(growth, outcomes, int(rng.integers(2, 12)), rng)
            assert summed_variance(found) >= outcomes * least * (1 - 1e-9)
        symmetric = {}
        for w in range(1, outcomes):
            held = np.array([[x in block for block in combinations(range(outcomes), w)] for x in range(outcomes)])
            symmetric[w] = np.where(held, growth, 1.0) / np.where(held, growth, 1.0).sum(axis=1, keepdims=True)
            assert summed_variance(symmetric[w]) >= outcomes * least * (1 - 1e-9)
        assert summed_variance(symmetric[width]) == pytest.approx(outcomes * least)
        for w in symmetric:
            both = np.concatenate([0.3 * symmetric[width], 0.7 * symmetric[w]], axis=1)
            assert summed_variance(both) >= outcomes * least * (1 - 1e-9)


def test_the_excess_is_that_of_the_mechanism() -> None:
    for size in (1, 2, 7, 104, 1000):
        for epsilon in (0.5, 1.0, 4.0, 8.0):
            family = dc.Simplex(size)
            linear, reports = dc.LinearSampler(family, epsilon=epsilon), ReportSampler(family, epsilon=epsilon)
            assert variance_excess(linear) == pytest.approx(reports.by_values().excess, rel=1e-9)
            assert 1 - 1e-9 <= variance_excess(reports) <= 1.01
            assert variance_excess(reports) <= variance_excess(linear) * (1 + 1e-9)
    assert variance_excess(dc.LinearSampler(dc.Simplex(104), epsilon=1.0)) == pytest.approx(9.98, abs=0.01)
    wrong: list[Any] = [
        dc.OptimalSampler(dc.Simplex(7), epsilon=1.0),
        dc.LinearSampler(dc.Band(np.ones(7), lower=0.5, upper=2.0), epsilon=1.0),
        dc.LinearSampler(dc.Simplex(7), privacy=dc.Gaussian(1.0)),
        7,
    ]
    for each in wrong:
        with pytest.raises(dc.DiscreetError, match="least variance"):
            variance_excess(each)


def test_the_variance_over_the_least_is_that_of_reports_and_of_values() -> None:
    family = dc.Simplex(104)
    reports = dc.ReportSampler(family, epsilon=1.0)
    assert variance_excess_or_none(reports) == reports.excess
    linear = dc.LinearSampler(family, epsilon=1.0)
    found = variance_excess_or_none(linear)
    assert found is not None
    gamma, q = linear.constants.gamma, 1 / 104
    by_hand = q * (1 - q) / gamma**2  # of a share in the uniform population, where samples are uniform too
    assert found == pytest.approx(by_hand / (reports.variance() / reports.excess), rel=1e-9)
    for other in (
        dc.OptimalSampler(family, epsilon=1.0),
        dc.LinearSampler(dc.Band(np.ones(4), lower=0.5, upper=2.0), epsilon=1.0),
        dc.LinearSampler(dc.Simplex(4), privacy=dc.Gaussian(1.0)),
    ):
        assert variance_excess_or_none(other) is None


def test_the_excess_at_an_epsilon_that_says_nothing_is_refused() -> None:
    with pytest.raises(dc.DiscreetError, match="epsilon = 1e-300: a report would say nothing"):
        variance_excess(dc.LinearSampler(dc.Simplex(2), epsilon=1e-300))
