"""Bins of whole cells: their masses are the reference's, and intervals on them hold the truth of members as often as they say."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.domain import Bins
from discreet.estimation import population
from discreet.estimation._counting import (
    FEWEST,
    MOST,
    bin_reference_masses,
    bins_of_about_equal_reference_mass,
    default_bin_count,
    line_cells_of_sampler,
    one_bin_per_cell,
)
from discreet.estimation._sample_tables import points_at_positions_in_bins
from discreet.families import Tabulated
from discreet.release import TOTAL

INTERVAL = dc.GaussianMixtures(1, box=(-4.0, 4.0))
STEPS = Tabulated(np.linspace(-3.0, 3.0, 61), np.random.default_rng(0).random(60) ** 3 + 0.01)
BAND = dc.DensityBand(STEPS, lower=0.0, upper=5.0)


def test_masses_between_any_edges_are_those_of_the_reference() -> None:
    """A table of steps and a kink, which a rule with nodes of its own in each bin would miss."""
    whole = STEPS.values / STEPS.values.sum()
    found = bin_reference_masses(dc.OptimalSampler(BAND, epsilon=1.0), Bins(np.linspace(-3.0, 3.0, 4)))
    assert found == pytest.approx(np.add.reduceat(whole, [0, 20, 40]), abs=1e-12)
    inside = bin_reference_masses(
        dc.OptimalSampler(BAND, epsilon=1.0, discretisation=dc.Cells(7)), Bins([-3.0, -0.05, 3.0])
    )
    assert inside[0] == pytest.approx(whole[:29].sum() + 0.5 * whole[29], abs=1e-12)
    edges = np.array([-60.0, -1.3, -0.2, 0.4, 3.0, 60.0])
    laplace = dc.LinearSampler(dc.LaplaceMixtures(1), epsilon=1.0)
    assert bin_reference_masses(laplace, Bins(edges)) == pytest.approx(np.diff(stats.laplace.cdf(edges)), abs=1e-12)


def test_masses_of_points_are_counted_on_the_points() -> None:
    sampler = dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(50, seed=4))
    points = np.asarray(sampler.points(np.arange(50)))
    edges = np.array([-4.0, -1.0, 0.2, 4.0])
    expected = np.histogram(points, edges)[0] / 50
    assert bin_reference_masses(sampler, Bins(edges)).tolist() == expected.tolist()
    found = bins_of_about_equal_reference_mass(sampler, clients=10**6, count=5)
    assert found.reference.tolist() == pytest.approx(np.histogram(points, found.bins.edges)[0] / 50)
    assert found.reference.min() > 0.0
    fresh = dc.OptimalSampler(
        INTERVAL, epsilon=1.0, discretisation=dc.Points(50)
    )  # whose points are those of the density, on average
    cells = dc.OptimalSampler(INTERVAL, epsilon=1.0)
    assert bin_reference_masses(fresh, Bins(edges)) == pytest.approx(bin_reference_masses(cells, Bins(edges)))


@pytest.mark.parametrize("family", [INTERVAL, BAND, dc.LaplaceMixtures(1, radius=0.2)])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_bins_are_whole_cells_of_about_equal_mass(family: Any, count: int) -> None:
    sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Cells(200))
    found, cells = bins_of_about_equal_reference_mass(sampler, clients=1, count=count), one_bin_per_cell(sampler)
    assert found.bins.size == len(found.reference) == count
    assert set(found.bins.edges) <= set(cells.bins.edges)
    assert found.reference.sum() == pytest.approx(1.0)
    assert found.reference == pytest.approx(bin_reference_masses(sampler, found.bins))
    assert np.abs(found.reference - 1.0 / count).max() <= 2.0 * cells.reference.max()
    each = np.random.default_rng(1).integers(0, 9, cells.bins.size)
    numbers = found.bins.numbers(cells.bins.values)
    assert found.sum_by_bin(each).tolist() == np.bincount(numbers, each, minlength=count).tolist()


def test_a_cell_that_is_worth_several_bins_is_one() -> None:
    heavy = Tabulated([0.0, 1.0, 2.0, 3.0], [1.0, 100.0, 1.0])
    sampler = dc.OptimalSampler(dc.DensityBand(heavy, lower=0.0, upper=3.0), epsilon=1.0, discretisation=dc.Cells(2))
    found = bins_of_about_equal_reference_mass(sampler, clients=1, count=4)
    assert found.reference.min() > 0.0
    assert found.bins.size <= 4
    assert found.reference.sum() == pytest.approx(1.0)


def test_more_samples_have_more_bins() -> None:
    sampler = dc.LinearSampler(INTERVAL, epsilon=1.0)
    numbers = [default_bin_count(sampler, clients) for clients in (1, 100, 500, 1000, 10**6)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (FEWEST, MOST)
    for clients, number in ((500, numbers[2]), (1000, numbers[3])):
        assert FEWEST < number < MOST
        noise = np.sqrt((1 / number) / clients) / sampler.constants.gamma
        assert 2.0 * noise == pytest.approx(0.5 / number, rel=0.1)
    coarse = dc.LinearSampler(INTERVAL, epsilon=1.0, discretisation=dc.Cells(3))
    assert bins_of_about_equal_reference_mass(coarse, clients=10**6).bins.size == line_cells_of_sampler(coarse).size


MEMBERS = [(np.array([0.4, 0.6]), np.array([-0.8, 0.9])), (np.ones(1), np.array([0.5])), (np.ones(1), np.array([-0.1]))]


def cdf(x: Any) -> Any:
    """That of the average member."""
    found = 0.0
    for weights, means in MEMBERS:
        tops = [stats.norm.cdf(x, m) - stats.norm.cdf(-4.0, m) for m in means]
        whole = [stats.norm.cdf(4.0, m) - stats.norm.cdf(-4.0, m) for m in means]
        found = found + (weights @ np.array(tops)) / (weights @ np.array(whole)) / len(MEMBERS)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "discretisation"),
    [
        pytest.param(dc.LinearSampler, dc.Cells(), marks=pytest.mark.soak),
        pytest.param(dc.LinearSampler, dc.Cells(24), marks=pytest.mark.soak),
        (dc.OptimalSampler, dc.Cells(24)),
        pytest.param(dc.OptimalSampler, dc.Cells(), marks=pytest.mark.soak),
        pytest.param(dc.MollifierSampler, dc.Cells(), marks=pytest.mark.soak),
        pytest.param(dc.MollifierSampler, dc.Cells(24), marks=pytest.mark.soak),
    ],
)
def test_intervals_hold_the_average_member(kind: Any, discretisation: Any) -> None:
    """Samples drawn with the integers that are really drawn with, through the agreement that a file would carry."""
    sampler = kind(INTERVAL, epsilon=1.5, discretisation=discretisation)
    agreement, line = dc.Agreement.from_json(dc.Agreement.of(sampler).text), line_cells_of_sampler(sampler)
    laws = sampler.weights([INTERVAL.mixture(*one) for one in MEMBERS]) / TOTAL
    rng, clients, rounds = np.random.default_rng(3), 300, 150
    grid = np.linspace(-4.0, 4.0, 20001)
    mean, median = -4.0 + np.trapezoid(1.0 - cdf(grid), grid), grid[np.argmax(cdf(grid) >= 0.5)]
    hits = {"share": 0.0, "every": 0.0, "mean": 0.0, "median": 0.0, "quantile:0.1": 0.0, "at-most:0.3": 0.0}
    known = {"mean": mean, "median": median, "quantile:0.1": grid[np.argmax(cdf(grid) >= 0.1)], "at-most:0.3": cdf(0.3)}
    for _ in range(rounds):
        counts = sum(rng.multinomial(clients, law) for law in laws)
        samples = line.points_at_positions_in_cells(np.repeat(np.arange(line.size), counts), rng.random(3 * clients))
        found = population(agreement, samples=samples)
        assert found.clients == 3 * clients
        truth = np.diff(cdf(found.domain.edges))
        hits["share"] += ((found.law.low <= truth + 1e-9) & (truth <= found.law.high + 1e-9)).mean() / rounds
        hits["every"] += bool(((found.law.all_low <= truth) & (truth <= found.law.all_high)).all()) / rounds
        for name, value in known.items():
            told = found.statistic(name)
            hits[name] += (told.low <= value <= told.high) / rounds
            if found.exact:
                assert told.estimate is not None
                assert told.low <= told.estimate + 1e-9
                assert told.estimate <= told.high + 1e-9 or name in ("mean", "at-most:0.3")
    assert min(hits.values()) >= 0.92, hits  # of 0.95; 150 rounds have a deviation of 0.018


def test_narrow_cells_serve_statistics_and_bins_serve_shares() -> None:
    sampler = dc.LinearSampler(INTERVAL, epsilon=4.0)
    samples = sampler.release([INTERVAL.mixture([1.0], [0.5])] * 400)
    found = population(sampler, samples=samples)
    again = population(sampler, samples=samples, edges=found.domain.edges)
    assert found.counts.tolist() == again.counts.tolist()
    assert found.law.low == pytest.approx(again.law.low, abs=1e-9)
    assert found.statistic("mean").blur < 0.1 * again.statistic("mean").blur
    numbers = line_cells_of_sampler(sampler).numbers(samples)
    counted = population(sampler, counts=np.bincount(numbers, minlength=sampler.carrier.size), bins=found.domain.size)
    assert counted.counts.tolist() == found.counts.tolist()


def test_edges_inside_cells_are_said_to_be() -> None:
    """A client a fifth of a cell wide, and an edge through that cell: half of its samples are on either side, wherever it is."""
    family = dc.DensityBand(stats.uniform(), lower=0.0, upper=300.0)
    sampler = dc.LinearSampler(family, epsilon=8.0, discretisation=dc.Cells(64))
    samples = sampler.release([stats.norm(32.3 / 64, 0.1 / 64)] * 300)
    whole = population(sampler, samples=samples, edges=[0.0, 0.25, 0.5, 1.0])
    assert not any("inside" in doubt for doubt in whole.doubts)
    assert not any("inside" in doubt for doubt in population(sampler, samples=samples).doubts)
    cut = population(sampler, samples=samples, edges=[0.0, 32.5 / 64, 40.1 / 64, 1.0])
    assert any("edges lie inside 2 of the cells" in doubt for doubt in cut.doubts)
    assert cut.law.high[0] < 0.9  # of all clients, who are below that edge


def test_points_are_said_to_stand_for_the_line() -> None:
    sampler = dc.LinearSampler(INTERVAL, epsilon=4.0, discretisation=dc.Points(64, seed=1))
    found = population(dc.Agreement.of(sampler), samples=sampler.release([INTERVAL.mixture([1.0], [0.5])] * 400))
    assert any("64 points" in doubt for doubt in found.doubts)


def test_refusals() -> None:
    half = dc.DensityBand(lambda x: np.exp(-x), [(0.0, np.inf)], lower=0.0, upper=3.0)
    with pytest.raises(dc.DiscreetError, match="give public bins, edges="):
        population(dc.OptimalSampler(half, epsilon=1.0), samples=[1.0])
    with pytest.raises(dc.DiscreetError, match="does not release on a line"):
        population(dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0), samples=[1.0])
    with pytest.raises(dc.DiscreetError, match="does not release on a line"):
        population(dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0), samples=[1.0], edges=[0.0, 1.0])
    for bins in (0, 10**6, 1.5, "4"):
        with pytest.raises(dc.DiscreetError, match="bins"):
            population(dc.OptimalSampler(INTERVAL, epsilon=1.0), samples=[1.0], bins=bins)  # type: ignore[arg-type]
    with pytest.raises(dc.DiscreetError, match="lies in no cell"):
        population(dc.OptimalSampler(INTERVAL, epsilon=1.0), samples=[9.0])


def test_synthetic_rows_spread_in_a_bin_as_the_reference_does() -> None:
    """The outermost bins of a whole line reach to where nobody is; rows do not."""
    family = dc.LaplaceMixtures(1, radius=0.2)
    sampler = dc.LinearSampler(family, epsilon=2.0)
    found = population(sampler, samples=sampler.release([family.mixture([1.0], [0.1])] * 500))
    numbers = np.repeat(np.arange(found.domain.size), 2000)
    rows = points_at_positions_in_bins(found, numbers, np.random.default_rng(0).random(len(numbers)))
    assert (found.domain.numbers(rows) == numbers).all()
    edges = np.asarray(found.domain.edges)
    beyond = rows[numbers == found.domain.size - 1] - edges[-2]
    assert edges[-1] > 20.0
    assert stats.kstest(beyond, stats.expon.cdf).pvalue > 1e-6  # what a Laplace tail is past any point
