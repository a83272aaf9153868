"""Estimates behind reports are unbiased, their intervals hold for the very clients at hand, and liars can do no more than is said."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from discreet import Simplex
from discreet.errors import DiscreetError
from discreet.estimation import nearest_law, pooled_population, report_liars, reported_average, reported_population
from discreet.estimation._shifts import fewest_and_most_outcomes_in_report
from discreet.mechanisms import ReportCounts, ReportSampler
from discreet.mechanisms._reports._blocks import AffineBlocks, BlockFamily, MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.release._randomness import _SeededRandomness
from tests.estimation.report_coverage import (
    CLIENTS,
    EPSILONS,
    LEAST,
    SIZES,
    average_coverage,
    every_count,
    fewest_expected,
    least_coverage,
    slack,
    sum_law,
)
from tests.soaking import wide

GRID = [  # outcomes, epsilon, clients, clients who hold the outcome
    (size, epsilon, clients, holders)
    for size in (2, 10, 64, 104, 1000)
    for epsilon in (0.5, 1.0, 4.0, 8.0)
    for clients in (1, 5, 30, 400)
    for holders in sorted({0, 1, min(3, clients), clients // 2, clients})
]


@pytest.mark.slow
def test_every_interval_covers_as_often_as_it_says() -> None:
    """Exactly, without simulation: the coverage of every count, with expected counts from 0.001 on."""
    fewest = math.inf
    for size, epsilon, clients, holders in GRID:
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        found, share = every_count(sampler, clients), holders / clients
        law, probability = found.law, sum_law(sampler, holders, clients - holders)
        inside = (law.low <= share + 1e-12) & (share - 1e-12 <= law.high)
        assert probability[inside].sum() >= 0.95 - 1e-9, (size, epsilon, clients, holders)
        fewest = min(fewest, float(probability @ np.arange(clients + 1)))
    assert fewest < 0.1


@pytest.mark.slow
def test_every_interval_covers_despite_liars_who_know_everything() -> None:
    for size, epsilon, clients, holders in GRID[::3]:
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        share, probability = holders / clients, sum_law(sampler, holders, clients - holders)
        for number in {1, min(4, clients)}:
            law = report_liars(every_count(sampler, clients), number).law
            covers = (law.low <= share + 1e-12) & (share - 1e-12 <= law.high)
            worst = [covers[max(s - number, 0) : s + number + 1].all() for s in range(clients + 1)]
            assert probability[np.array(worst)].sum() >= 0.95 - 1e-9, (size, epsilon, clients, holders, number)


@pytest.mark.slow
def test_joint_intervals_and_added_lies_are_covered_too() -> None:
    """A part of the grid of `python -m tests.estimation.report_coverage`, or all of it but averages in a soak."""
    few = [(2, 1.0, 10), (10, 4.0, 40), (104, 1.0, 40), (300, 6.0, 10), (1000, 8.0, 150)]
    grid = wide([*itertools.product(SIZES, EPSILONS, CLIENTS)], few)
    fewest = math.inf
    for size, epsilon, clients in grid:
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        rates = least_coverage(sampler, clients)
        assert min(rates.values()) >= LEAST, (size, epsilon, clients, rates)
        fewest = min(fewest, fewest_expected(sampler, clients))
    assert fewest < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "epsilon", "clients"), [(6, 1.0, 5), (64, 4.0, 60), pytest.param(1000, 4.0, 20, marks=pytest.mark.soak)]
)
def test_averages_of_few_clients_and_rare_sets_are_covered(size: int, epsilon: float, clients: int) -> None:
    draws = wide(400, 60)
    rates = average_coverage(size, epsilon, clients, draws, seed=3)
    assert min(rates.values()) >= LEAST - slack(draws), rates


@pytest.mark.parametrize("rounds", [1, 3])
def test_estimates_without_intervals_are_those_of_the_law(rounds: int) -> None:
    """Also for several reports of each client, of which there are more than clients."""
    rng = np.random.default_rng(5)
    sampler, randomness = ReportSampler(Simplex(6), epsilon=2.0), _SeededRandomness(rng)
    reports = np.stack(
        [sampler._draw_reports_for_outcomes(np.arange(300) % 6, randomness) for _ in range(rounds)], axis=1
    )
    found = reported_population(sampler, reports=reports)
    assert (found.share_estimates == found.law.estimate).all()
    assert abs(found.share_estimates.sum() - 1.0) < 0.5


@pytest.mark.parametrize(("size", "epsilon"), [(6, 1.0), (50, 0.5), (104, 1.0), (104, 4.0), (1000, 2.0), (20, 6.0)])
def test_estimates_are_unbiased_and_joint_intervals_hold(size: int, epsilon: float) -> None:
    rng = np.random.default_rng(17)
    sampler, randomness, clients = ReportSampler(Simplex(size), epsilon=epsilon), _SeededRandomness(rng), 2000
    law = rng.dirichlet(np.full(size, 0.3))
    held = rng.choice(size, size=clients, p=law)
    truth = np.bincount(held, minlength=size) / clients
    errors, joint = [], []
    for _ in range(60):
        found = reported_population(sampler, reports=sampler._draw_reports_for_outcomes(held, randomness))
        errors.append(found.law.estimate - truth)
        joint.append(((found.law.all_low <= truth) & (truth <= found.law.all_high)).all())
        assert ((found.law.all_low <= found.law.low) & (found.law.high <= found.law.all_high)).all()
    spread = math.sqrt(sampler.variance(1.0) + sampler.variance(0.0)) / math.sqrt(clients * 60)
    assert np.abs(np.mean(errors, axis=0)).max() < 5.5 * spread
    assert np.mean(joint) >= 0.85  # 51 of 60, where 57 are expected at least
    typical = np.mean(np.square(errors)) * clients
    expected = (
        np.mean(
            [
                share * sampler.chances.inside * (1 - sampler.chances.inside)
                + (1 - share) * sampler.chances.outside * (1 - sampler.chances.outside)
                for share in truth
            ]
        )
        / sampler.chances.gap**2
    )
    assert typical == pytest.approx(expected, rel=0.25)


def test_what_is_returned_has_the_names_of_a_population() -> None:
    sampler = ReportSampler(Simplex(["a", "b", "c", "d", "e", "f"]), epsilon=1.0)
    reports = sampler.release_records(["a"] * 300 + ["b"] * 100)
    found = reported_population(sampler, reports=reports, confidence=0.9)
    again = reported_population(sampler, counts=ReportCounts(sampler).add(reports), confidence=0.9)
    assert found.clients == found.samples == 400
    assert found.exact
    assert np.array_equal(found.counts, again.counts)
    assert found.released_shares.estimate == pytest.approx(found.counts / 400)
    assert found.nearest == pytest.approx(nearest_law(found.law.estimate))
    assert found.law.estimate.sum() == pytest.approx(1.0)  # every report holds as many outcomes
    assert found.standard_errors.shape == (6,)
    assert 0 < found.margin_at_worst < 1
    assert "400 reports" in repr(found)


def test_wrong_arguments_are_refused() -> None:
    sampler, other = ReportSampler(Simplex(6), epsilon=1.0), ReportSampler(Simplex(6), epsilon=2.0)
    good = [7, 11]  # three outcomes each
    wrongs: list[dict[str, Any]] = [
        {"reports": good, "counts": ReportCounts(sampler)},
        {},
        {"reports": [1]},
        {"reports": []},
        {"counts": ReportCounts(other)},
        {"counts": good},
        {"reports": [3], "confidence": 1.0},
    ]
    for wrong in wrongs:
        with pytest.raises(DiscreetError):
            reported_population(sampler, **wrong)
    family: Any = Simplex(6)
    with pytest.raises(DiscreetError, match="sampler"):
        reported_population(family, reports=good)
    found = reported_population(sampler, reports=sampler.reports()[:2])
    numbers: list[Any] = [-1, 3, 0.5]
    for number in numbers:
        with pytest.raises(DiscreetError):
            report_liars(found, number)
    with pytest.raises(DiscreetError):
        report_liars(found, 1).shift_of([6])


@pytest.mark.parametrize(
    "family",
    [SingleOutcomes(5), MaskedSubsets(7, 3), RankedSubsets(8, 3), AffineBlocks(20, 5, 2, 2), AffineBlocks(9, 11, 1, 4)],
    ids=str,
)
def test_overlaps_of_a_set_with_blocks_are_the_least_and_the_most(family: BlockFamily) -> None:
    reports = family.reports_of_ranks(np.arange(family.block_count))
    for size in range(1, family.size + 1):
        chosen = np.random.default_rng(size).choice(family.size, size=size, replace=False)
        each = family.holds(reports[:, None], chosen[None, :]).sum(axis=1)
        assert fewest_and_most_outcomes_in_report(family, np.sort(chosen)) == (each.min(), each.max())


def test_liars_move_shares_and_sets_by_no_more_than_is_said_and_can_do_that() -> None:
    for size, epsilon in ((7, 0.5), (104, 1.0), (104, 4.0)):
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        honest = sampler.release_records(np.arange(200) % size)
        before = reported_population(sampler, reports=honest).law.estimate
        chosen = np.array([0, 1, 2, 5])
        candidates = sampler.reports()
        inside = np.array([sampler.blocks.holds(candidates, np.array([x])) for x in chosen]).sum(axis=0)
        held = np.array([sampler.blocks.holds(honest, np.array([x])) for x in chosen]).sum(axis=0)
        lies = honest.copy()
        lies[np.argsort(held)[:3]] = candidates[inside.argmax()]
        found = reported_population(sampler, reports=lies)
        said = report_liars(found, 3)
        assert np.abs(found.law.estimate - before).max() <= said.shift * (1 + 1e-12)
        moved = (found.law.estimate - before)[chosen].sum()
        assert 0 < moved <= said.shift_of(chosen) * (1 + 1e-12)
        expected = 3 * (inside.max() - inside.min()) / (200 * sampler.chances.gap)
        assert said.shift_of(chosen) == pytest.approx(expected)
        assert said.shift == pytest.approx(3 / (200 * sampler.chances.gap))
        assert np.array_equal(report_liars(found, 0).law.low, found.law.low)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), [(6, 1.0), (104, 1.0), (104, 4.0), (12, 6.0)])
def test_averages_are_unbiased_and_their_intervals_hold(size: int, epsilon: float) -> None:
    rng = np.random.default_rng(23)
    sampler, randomness, held = (
        ReportSampler(Simplex(size), epsilon=epsilon),
        _SeededRandomness(rng),
        rng.integers(0, size // 2, 400),
    )
    for values in (np.arange(size) ** 2.0, np.arange(size) < 2):
        truth, found = float(np.mean(values[held])), []
        for _ in range(200):
            found.append(
                reported_average(sampler, reports=sampler._draw_reports_for_outcomes(held, randomness), values=values)
            )
        estimates = np.array([each.estimate for each in found])
        assert abs(estimates.mean() - truth) < 4.5 * estimates.std() / math.sqrt(200)
        assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.92
        assert all(values.min() <= each.low <= each.high <= values.max() for each in found)


def test_an_average_is_that_of_the_shares() -> None:
    for size in (7, 104):
        sampler = ReportSampler(Simplex(size), epsilon=1.0)
        reports, values = sampler.release_records(np.arange(300) % size), np.linspace(-3.0, 5.0, size)
        shares = reported_population(sampler, reports=reports).law.estimate
        found = reported_average(sampler, reports=reports, values=values, name="mean")
        assert found.estimate == pytest.approx(values.mean() + shares @ (values - values.mean()))
        constant = reported_average(sampler, reports=reports, values=np.full(size, 2.0))
        assert (constant.estimate, constant.low, constant.high) == (2.0, 2.0, 2.0)
        for wrong in ([1.0], np.full(size, math.nan), np.full((2, size), 1.0)):
            with pytest.raises(DiscreetError):
                reported_average(sampler, reports=reports, values=wrong)
        with pytest.raises(DiscreetError, match="no reports"):
            reported_average(sampler, reports=[], values=values)


def test_values_that_overflow_are_refused() -> None:
    sampler = ReportSampler(Simplex(3), epsilon=1.0)
    with pytest.raises(DiscreetError, match="one number from -1e\\+100 to 1e\\+100 for each of 3 outcomes"):
        reported_average(sampler, reports=[0, 1], values=[1e308, 1e308, 0.0])


def test_examples_of_one_outcome_explain_every_report() -> None:
    sampler = ReportSampler(Simplex(1), epsilon=1.0)
    found = reported_population(sampler, reports=[0, 0], examples=[[1.0]])
    assert found.reweighted is not None
    assert found.reweighted.law.tolist() == [1.0]
    assert math.isfinite(found.reweighted.strain)


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
def test_the_least_quantile_without_noise_has_no_warning() -> None:
    found = reported_population(ReportSampler(Simplex(4), epsilon=800.0), reports=[0, 0, 0])
    least = found.statistic("quantile:1e-300")
    assert least.low == 0.0 <= least.high


def test_the_shift_of_no_list_of_outcomes_is_refused() -> None:
    found = reported_population(ReportSampler(Simplex(3), epsilon=1.0), reports=[0, 1])
    with pytest.raises(DiscreetError, match=r"outcomes = 1.5 is not a list; pass labels or outcome numbers"):
        report_liars(found).shift_of(1.5)  # type: ignore[arg-type]


def test_reports_of_another_epsilon_with_the_same_blocks_are_doubted() -> None:
    """Their numbers are valid, and shares would be estimated far outside of what is possible."""
    made, read = (ReportSampler(Simplex(6), epsilon=epsilon) for epsilon in (0.3, 0.1))
    assert made.blocks == read.blocks
    reports = made.release_records(np.ones(60_000, dtype=np.int64))
    assert reported_population(made, reports=reports).doubts == ()
    found = reported_population(read, reports=reports)
    (doubt,) = found.doubts
    assert "of the reports hold 1, more than" in doubt
    assert pooled_population([found]).doubts == (f"stage 1: {doubt}",)
    alike = read.release_records(np.ones(60_000, dtype=np.int64))
    assert reported_population(read, reports=alike).doubts == ()
