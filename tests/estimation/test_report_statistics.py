"""Statistics behind counts of reports: their moments are those of all blocks, and every interval covers as often as it says."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, strategies as st

from discreet import LinearSampler, Simplex
from discreet.domain import Interval, Numbers
from discreet.errors import DiscreetError
from discreet.estimation import population, report_liars, reported_average, reported_population, reported_statistic
from discreet.estimation._inference._statistics import (
    SupportStatistics,
    concave_hull,
    largest_report_sum,
    mean_tail_probability,
    moments_of_report_sums,
    prefix_share_tests,
    quantile_of_shares,
)
from discreet.mechanisms import ReportCounts, ReportSampler
from discreet.mechanisms._reports._blocks import AffineBlocks, BlockFamily, MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.release._randomness import _SeededRandomness
from tests.soaking import wide

FAMILIES: list[BlockFamily] = [
    SingleOutcomes(7),
    SingleOutcomes(2),
    MaskedSubsets(9, 3),
    MaskedSubsets(6, 5),
    RankedSubsets(8, 4),
    AffineBlocks(20, 5, 2, 2),
    AffineBlocks(9, 11, 1, 4),
    AffineBlocks(16, 2, 4, 1),
]
GRID: list[tuple[BlockFamily, float]] = [  # without padding, so that a set's sums are whole numbers
    (MaskedSubsets(6, 2), 1.0),
    (RankedSubsets(30, 2), 6.0),
    (AffineBlocks(25, 5, 2, 1), 2.0),
    *wide(
        [
            (MaskedSubsets(6, 3), 0.5),
            (MaskedSubsets(12, 2), 2.0),
            (RankedSubsets(30, 2), 4.0),
            (AffineBlocks(49, 7, 2, 2), 1.0),
            (AffineBlocks(49, 7, 2, 1), 3.0),
            (AffineBlocks(31, 31, 1, 8), 1.0),
            (SingleOutcomes(10), 3.0),
        ],
        [],
    ),
]


def sampler_of(blocks: BlockFamily, epsilon: float = 1.0) -> ReportSampler:
    return ReportSampler(Simplex(blocks.size), epsilon=epsilon, blocks=blocks)


def members(blocks: BlockFamily) -> np.ndarray:
    """Which outcomes each block holds."""
    reports = blocks.reports_of_ranks(np.arange(blocks.block_count))
    return blocks.holds(reports[:, None], np.arange(blocks.size)[None, :])


@pytest.mark.parametrize("blocks", FAMILIES, ids=str)
def test_moments_are_those_of_all_blocks(blocks: BlockFamily) -> None:
    held = members(blocks)
    for seed in range(3):
        phi = np.random.default_rng(seed).normal(size=blocks.size)
        phi -= phi.mean()
        sums, found = held @ phi, moments_of_report_sums(blocks, phi)
        assert found.everywhere == pytest.approx(np.square(sums).mean(), rel=1e-9, abs=1e-12)
        given = [np.square(sums[held[:, x]]).mean() for x in range(blocks.size)]
        assert found.by_outcome == pytest.approx(np.array(given), rel=1e-9, abs=1e-12)
        assert sums.max() <= found.most + 1e-9
        assert found.most <= largest_report_sum(blocks, phi) + 1e-9


def test_where_blocks_are_too_many_the_moment_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = AffineBlocks(20, 5, 2, 3)
    phi = np.arange(20.0) - 9.5
    exact = moments_of_report_sums(blocks, phi).by_outcome
    monkeypatch.setattr("discreet.estimation._inference._statistics._MOST_PRODUCTS", 0)
    assert (moments_of_report_sums(AffineBlocks(20, 5, 2, 3), phi * 1.0000001).by_outcome >= exact).all()


def test_the_tail_of_two_points_is_binomial_and_the_hull_lies_above_all_points() -> None:
    n, chance = 40, 0.3
    for count in range(13, n + 1):
        found = mean_tail_probability(
            np.array([count / n - chance]), np.array([chance * (1 - chance)]), np.array([1 - chance]), n
        )
        assert found[0] == pytest.approx(scipy.stats.binom.sf(count - 1, n, chance), rel=1e-9)
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 9, 60).astype(float), rng.normal(size=60)
    places, heights = concave_hull(x, y)
    assert (np.interp(x, places, heights) >= y - 1e-12).all()
    slopes = np.diff(heights) / np.diff(places)
    assert (np.diff(slopes) <= 1e-12).all()


def law_of_total(sampler: ReportSampler, chosen: Sequence[int], clients: int, holders: int) -> np.ndarray:
    """The law of the number of pairs of a report and a member of the set that it holds; so many clients hold one for certain."""
    held, size = members(sampler.blocks)[:, list(chosen)].sum(axis=1), sampler.family.size
    order = np.argsort(sampler.blocks.reports_of_ranks(np.arange(sampler.blocks.block_count)))  # as `output` has them
    length = clients * sampler.blocks.width + 1
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    for outcome, number in ((chosen[0], holders), (size - 1, clients - holders)):
        law = np.bincount(held[order], sampler.output(np.eye(size)[outcome]), minlength=sampler.blocks.width + 1)
        product *= np.fft.rfft(law, length) ** number
    found = np.maximum(np.fft.irfft(product, length), 0.0)
    return np.asarray(found / found.sum())


def covering_probability(sampler: ReportSampler, chosen: Sequence[int], clients: int, holders: int) -> float:
    """How often the interval of a set's share covers it, without simulation: an interval depends on the total alone."""
    law, size, width = law_of_total(sampler, chosen, clients, holders), sampler.family.size, sampler.blocks.width
    phi, supports = np.isin(np.arange(size), chosen).astype(float), np.zeros(size, dtype=np.int64)
    covered = 0.0
    for total in np.flatnonzero(law > 1e-10).tolist():
        supports[chosen[0]], supports[size - 1] = total, clients * width - total
        counted = SupportStatistics(sampler, supports, clients)
        low, high = -counted.mean_upper_bound(-phi, 0.025), counted.mean_upper_bound(phi, 0.025)
        covered += law[total] * (min(low, high) - 1e-9 <= holders / clients <= max(low, high) + 1e-9)
    return covered


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "epsilon"), GRID, ids=str)
def test_shares_of_sets_are_covered_as_often_as_intervals_say(blocks: BlockFamily, epsilon: float) -> None:
    """Exactly, for clients who all hold the same outcomes, with sets from one outcome to all but one."""
    sampler = sampler_of(blocks, epsilon)
    for size in sorted({1, blocks.size // 3, blocks.size - 1}):
        for clients in wide((1, 4, 12, 60, 400), (1, 12, 60)):
            for holders in sorted({0, min(1, clients), clients // 2, clients}):
                covered = covering_probability(sampler, range(size), clients, holders)
                assert covered >= 0.94, (size, clients, holders)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "epsilon"), wide([(6, 1.0), (30, 0.5), (104, 1.0), (104, 4.0)], [(6, 1.0), (104, 4.0)])
)
def test_statistics_are_covered_as_often_as_intervals_say(size: int, epsilon: float) -> None:
    """By simulation: of all cells of a grid together at least 94 %, and of none so few that 94 % are not believable."""
    rng = np.random.default_rng(29)
    sampler, randomness = ReportSampler(Simplex(Numbers(size)), epsilon=epsilon), _SeededRandomness(rng)
    times, covered = wide(400, 30), []
    for clients in wide((5, 40, 400, 4000), (5, 400)):
        for held in (np.full(clients, size // 3), rng.integers(0, max(1, size // 2), clients)):
            ordered = np.sort(held)
            truths = {
                "mean": held.mean(),
                "variance": held.var(),
                "median": ordered[math.ceil(0.5 * clients) - 1],
                "quantile:0.9": ordered[math.ceil(0.9 * clients - 1e-9) - 1],
                f"at-most:{size // 3}": (held <= size // 3).mean(),
            }
            hits = dict.fromkeys(truths, 0)
            for _ in range(times):
                found = reported_population(sampler, reports=sampler._draw_reports_for_outcomes(held, randomness))
                for name, truth in truths.items():
                    each = found.statistic(name)
                    hits[name] += each.low - 1e-9 <= truth <= each.high + 1e-9
            for name, hit in hits.items():
                assert hit / times >= 0.94 - 3.5 * math.sqrt(0.95 * 0.05 / times), (name, clients)
                covered.append(hit / times)
    assert np.mean(covered) >= 0.94


@pytest.mark.parametrize(("size", "epsilon"), [(7, 1.0), (104, 1.0), (104, 4.0), (2, 2.0)])
def test_statistics_are_those_of_the_shares_and_do_not_need_the_reports(size: int, epsilon: float) -> None:
    sampler = ReportSampler(Simplex(Numbers(size)), epsilon=epsilon)
    reports = sampler.release_records(np.arange(3000) % size)
    found = reported_population(sampler, reports=reports)
    values = np.arange(size, dtype=float)
    mean, average = found.statistic("mean"), reported_average(sampler, reports=reports, values=values)
    assert mean.estimate == pytest.approx(average.estimate)
    assert mean.high - mean.low == pytest.approx(average.high - average.low, rel=0.25)
    share = found.statistic("at-most:0")
    over = found.law.estimate.sum() - 1.0  # padding that reports hold in place of outcomes
    assert share.estimate == pytest.approx(found.law.estimate[0] - over / size)
    assert (share.low, share.high) == pytest.approx((found.law.low[0], found.law.high[0]), abs=0.02)
    assert found.statistic(lambda x: 3.0).high == 3.0
    assert found.statistic(float).high == mean.high
    kept = ReportCounts.from_table(sampler, ReportCounts(sampler).add(reports).table)
    again = reported_population(sampler, counts=kept)
    for name in ("mean", "variance", "median", "quantile:0.25", "at-most:1"):
        each = again.statistic(name)
        assert each == found.statistic(name) == reported_statistic(found, name)
        assert each.low <= each.high
    with pytest.raises(DiscreetError, match="is not one of"):
        found.statistic("mode")


def test_labels_have_no_median_but_functions_of_them_have_an_average() -> None:
    sampler = ReportSampler(Simplex(["a", "b", "c", "d"]), epsilon=1.0)
    found = reported_population(sampler, reports=sampler.release_records(["a", "b"] * 200))
    for name in ("mean", "median", "at-most:2"):
        with pytest.raises(DiscreetError, match="needs numbers"):
            found.statistic(name)
    share = found.statistic(lambda label: label in "ab")
    assert share.low <= share.high <= 1.0


@pytest.mark.parametrize(
    "blocks", [MaskedSubsets(12, 3), AffineBlocks(12, 13, 1, 4), AffineBlocks(20, 5, 2, 2)], ids=str
)
def test_a_quantile_is_where_shares_of_sets_up_to_it_are_not_rejected(blocks: BlockFamily) -> None:
    """Bounds for all sets of a size at once reject no more than the tests of each set."""
    sampler, size = sampler_of(blocks), blocks.size
    reports = sampler.release_records(np.arange(600) % (size // 2))
    found = reported_population(sampler, reports=reports)
    for level in (0.1, 0.5, 0.9):
        counted, order = SupportStatistics(sampler, found.counts, 600), np.arange(size)
        first, last = counted.quantile_index_range(order, level, 0.025)
        shares = [(np.arange(size) <= place).astype(float) for place in range(size - 1)]
        low = [-counted.mean_upper_bound(-each, 0.025) for each in shares]
        high = [counted.mean_upper_bound(each, 0.025) for each in shares]
        accepted = [place for place in range(size - 1) if high[place] >= level]
        small = [place for place in range(size - 1) if low[place] < level]
        assert first == (accepted[0] if accepted else size - 1)
        assert last == (small[-1] + 1 if small else 0)
        below = found.counts.cumsum()[:-1] / 600 - np.arange(1, size) / size * found.counts.sum() / 600
        loose = prefix_share_tests(sampler, np.arange(1, size), 600, level)
        mu = level - np.arange(1, size) / size
        assert all(loose.probability_of_mean_at_most(mu, below)[place] >= 0.025 for place in accepted)
        assert all(loose.probability_of_mean_at_least(mu, below)[place] >= 0.025 for place in small)


@pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")
def test_on_a_grid_a_quantile_reaches_to_the_next_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """With reports in which no test rejects what is true; else the two sequences of tests may end at different places."""
    sampler, order, rng = sampler_of(AffineBlocks(20, 5, 2, 2)), np.arange(20), np.random.default_rng(3)
    for held in ([0] * 40_000, [19] * 40_000, [7] * 40_000):
        reports = sampler.release_records(held, rng=rng)
        counted = SupportStatistics(sampler, reported_population(sampler, reports=reports).counts, len(held))
        for level in (0.1, 0.5, 0.9):
            monkeypatch.setattr("discreet.estimation._inference._statistics._MOST_REFINED", 10**8)
            first, last = counted.quantile_index_range(order, level, 0.025)
            monkeypatch.setattr("discreet.estimation._inference._statistics._MOST_REFINED", 3000)  # every fourth
            start, end = counted.quantile_index_range(order, level, 0.025)
            assert 0 <= start <= first
            assert first - start <= 4
            assert last <= end <= 19
            assert end - last <= 4


def test_cells_of_an_interval_widen_statistics_by_what_they_blur() -> None:
    sampler = ReportSampler(Simplex(Interval(0.0, 10.0, cells=20)), epsilon=2.0)
    values = np.random.default_rng(5).uniform(2.0, 6.0, 20_000)
    found = reported_population(sampler, reports=sampler.release_records(values))
    for name, truth in (
        ("mean", values.mean()),
        ("median", np.median(values)),
        ("variance", values.var()),
        ("at-most:4.1", (values <= 4.1).mean()),
        ("quantile:0.9", np.quantile(values, 0.9)),
    ):
        each = found.statistic(name)
        assert each.low <= truth <= each.high
        assert each.blur > 0.0
    assert found.statistic("mean").high - found.statistic("mean").low < 2.0


@pytest.mark.slow
def test_several_reports_of_each_client_are_worth_more_but_no_more_clients() -> None:
    """Clients are drawn anew each time: intervals cover the population's share, which as many clients with one report tell less well."""
    rng = np.random.default_rng(31)
    sampler, randomness = ReportSampler(Simplex(Numbers(8)), epsilon=1.0), _SeededRandomness(rng)
    law, times = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05, 0.0, 0.0]), wide(600, 60)
    hits, widths = [], []
    for _ in range(times):
        held = rng.choice(8, 300, p=law)
        rows = np.stack([sampler._draw_reports_for_outcomes(held, randomness) for _ in range(3)], axis=1)
        found = reported_population(sampler, reports=rows)
        single = reported_population(sampler, reports=rows[:, 0])
        median, mean = found.statistic("median"), found.statistic("mean")
        hits.append([*((found.law.low <= law) & (law <= found.law.high)), median.low <= 1 <= median.high])
        hits[-1].append(mean.low <= law @ np.arange(8) <= mean.high)
        widths.append((found.law.high - found.law.low).mean() / (single.law.high - single.law.low).mean())
    assert np.mean(hits) >= 0.94
    assert np.mean(widths) < 0.8
    assert (found.clients, found.samples, found.rows is not None) == (300, 900, True)
    despite = report_liars(found, 5).law
    assert (despite.low <= found.law.low + 1e-12).all()
    assert (found.law.high <= despite.high + 1e-12).all()
    with pytest.raises(DiscreetError, match="it is \\(n,\\), or \\(n, J\\)"):
        reported_population(sampler, reports=rows[None])


@pytest.mark.parametrize("mechanism", ["reports", "linear"])
def test_a_quantile_lies_in_its_interval_and_follows_no_noise(mechanism: str) -> None:
    """Those of the nearest distribution did not: it keeps the noise of one sign, which over many outcomes adds up to most of the mass."""
    family, errors = Simplex(104), []
    for seed in range(12):
        held = np.random.default_rng(seed).integers(0, 20, 4000)
        found: Any
        if mechanism == "reports":
            sampler = ReportSampler(family, epsilon=1.0)
            found = reported_population(sampler, reports=sampler.release_records(held))
        else:
            linear = LinearSampler(family, epsilon=2.0)
            found = population(linear, samples=linear.randomised_response(held))
        for name in ("quantile:0.1", "median", "quantile:0.9"):
            quantile = found.statistic(name)
            assert quantile.low <= quantile.estimate <= quantile.high
            assert quantile.low >= 0.0
            assert math.copysign(1.0, quantile.low) == 1.0
        errors.append(found.statistic("median").estimate - 9.5)
    assert abs(float(np.median(errors))) < 4.0
    assert math.copysign(1.0, found.statistic("mean").low) == 1.0


@given(shares=st.lists(st.floats(-0.3, 0.4), min_size=1, max_size=40), level=st.floats(0.01, 0.99))
def test_quantiles_favour_neither_end(shares: list[float], level: float) -> None:
    """The mirrored shares have the mirrored quantile; only a plateau just at the level may be read from either end."""
    unbiased = np.array(shares) + (1.0 - math.fsum(shares)) / len(shares)
    last = len(shares) - 1
    values = np.arange(last + 1.0)
    near = scipy.optimize.isotonic_regression(np.cumsum(unbiased)[:-1]).x if last else np.zeros(0)
    assume(not (abs(near - level) < 1e-9).any())
    assert quantile_of_shares(unbiased, values, level, 0, last) == last - quantile_of_shares(
        unbiased[::-1], values, 1.0 - level, 0, last
    )
