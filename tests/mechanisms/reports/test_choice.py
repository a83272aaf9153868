"""The blocks that are chosen are within 1 % of the best subset selection, whatever the number of outcomes and epsilon."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Band, DiscreetError, Gaussian, Interval, LinearSampler, Pure, Simplex
from discreet.mechanisms import ReportCounts, ReportSampler, mechanism_for, population_mechanism, sampler_named
from discreet.mechanisms._reports._blocks import AffineBlocks, MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.mechanisms._reports._choice import (
    best_subset_width_and_variance,
    choose_blocks,
    own_and_other_outcome_chances,
    share_variance_in_uniform_population,
)
from discreet.privacy import largest_ratio_for_epsilon
from tests.soaking import wide

EPSILONS = (
    0.05,
    0.1,
    0.2,
    0.35,
    0.5,
    0.75,
    1.0,
    1.35,
    1.7,
    1.95,
    2.25,
    2.5,
    3.0,
    3.12,
    3.6,
    4.0,
    5.0,
    6.0,
    7.5,
    8.5,
    10.0,
)
SIZES = (
    *range(2, 140, 3),
    67,
    68,
    113,
    114,
    126,
    127,
    128,
    170,
    182,
    211,
    318,
    524,
    888,
    1000,
    1328,
    2000,
    9552,
    31398,
    65537,
    99992,
    100000,
    *(q**t + 1 for q in (2, 3, 5, 7, 11, 13, 17, 31, 101, 311) for t in range(1, 17) if q**t < 100_000),
    *range(2, 100_001, wide(1, 4999)),
)


def excess(size: int, bound: Fraction) -> float:
    blocks, growth = choose_blocks(size, bound), float(bound)
    return (
        share_variance_in_uniform_population(size, blocks.point_count, blocks.width, growth)
        / best_subset_width_and_variance(size, growth)[1]
    )


def test_the_variance_is_within_a_hundredth_of_the_best_subset_selection() -> None:
    """Also just above prime gaps and prime powers, where there is the most padding. In a soak for every number of outcomes up to 100,000."""
    bounds = [largest_ratio_for_epsilon(epsilon) for epsilon in EPSILONS]
    found = max((excess(size, bound), size, float(bound)) for size in SIZES for bound in bounds)
    assert found[0] < 1.01, found


def test_the_blocks_that_are_chosen_stay_what_they_are() -> None:
    """Fixed for good: a sampler that is made anew under the same terms reads the reports of yesterday."""
    sizes = (*range(2, 150), *range(150, 3000, 131), 9552, 65537, 99992, 10**6, 10**7 + 3, 2**40, 2**55)
    chosen = [
        (size, e, choose_blocks(size, Fraction(e))) for size in sizes for e in (1.0625, 1.5, 2.75, 7.0, 22.5, 403)
    ]
    lines = [f"{size} {e:g} {blocks.name} {sorted(blocks.parameters.items())}" for size, e, blocks in chosen]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == (
        "829ee5276a89895884ffb19c4dd7043460e19872444e2225782e844fd7a4d8f6"
    )


def test_the_best_width_is_the_best_of_all() -> None:
    for size in (2, 3, 10, 40, 64, 65, 100, 257):
        for epsilon in EPSILONS:
            growth = math.exp(epsilon)
            everything = min(share_variance_in_uniform_population(size, size, w, growth) for w in range(1, size))
            assert best_subset_width_and_variance(size, growth)[1] == pytest.approx(everything, rel=1e-12)


def test_blocks_are_of_the_kind_that_fits() -> None:
    kinds = {
        (1, 1.0): SingleOutcomes, (2, 1.0): SingleOutcomes, (10, 4.0): SingleOutcomes, (10**4, 10.0): SingleOutcomes,
        (10, 1.0): MaskedSubsets, (64, 0.05): MaskedSubsets,
        (104, 4.0): RankedSubsets, (65, 1.0): AffineBlocks, (2**40, 1.0): AffineBlocks,
    }  # fmt: skip
    for (size, epsilon), kind in kinds.items():
        assert type(choose_blocks(size, Fraction(math.exp(epsilon)))) is kind, (size, epsilon)


def test_the_uniform_population_has_the_largest_variance() -> None:
    """The sum over outcomes of q(1 - q) is concave in the shares and symmetric; here for a few populations."""
    found = own_and_other_outcome_chances(107, 28, math.e)
    uniform = 104 * found.share_estimate_variance(1 / 104)
    for shares in ([1.0] + [0.0] * 103, [0.5, 0.5] + [0.0] * 102, [0.02] * 26 + [0.48 / 78] * 78):
        assert sum(shares) == pytest.approx(1.0)
        assert sum(found.share_estimate_variance(share) for share in shares) <= uniform


@pytest.mark.parametrize("epsilon", [30.0, 64.0, 1e-9])
def test_extreme_budgets_have_blocks(epsilon: float) -> None:
    for size in (2, 3, 64, 65, 1000, 10**6):
        blocks = choose_blocks(size, Fraction(math.exp(epsilon)))
        assert 0 < blocks.width < blocks.point_count


def test_the_population_is_served_by_whichever_has_the_smaller_variance() -> None:
    """Over a grid; the linear mechanism's variance is its own, not that of blocks of one outcome."""
    for size in (2, 3, 7, 20, 104, 1000, 100_003):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
            family = Simplex(size)
            chosen = population_mechanism(family, Pure(epsilon))
            constants = LinearSampler(family, epsilon=epsilon).constants
            held = 1.0 / size  # what a sample is in the uniform population
            linear = held * (1.0 - held) / constants.gamma**2
            reports = ReportSampler(family, epsilon=epsilon).variance()
            assert chosen == ("reports" if reports < linear * (1 - 1e-9) else "linear"), (size, epsilon)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
def test_blocks_on_millions_of_outcomes_can_be_counted(epsilon: float) -> None:
    """In at most 20 million places, with at most 10,000 additions a report; and they are as good as all others."""
    for size in (10**6, 4_900_000, 5_100_003, 7 * 10**6, 10**7, 12_345_678, 15 * 10**6, 19_400_000):
        blocks = choose_blocks(size, Fraction(math.exp(epsilon)))
        assert blocks.point_count <= 2 * 10**7, size
        assert blocks.parameters["c"] <= 10_000, size
        assert excess(size, Fraction(math.exp(epsilon))) < 1.01, size


def test_what_can_be_counted_is_chosen_only_where_the_best_cannot() -> None:
    """Choices that could be counted before are still made: agreements that state no other blocks keep their ids."""
    before = {
        (10**6, 1.0): AffineBlocks(10**6, 11, 6, 3),
        (10**6, 8.0): AffineBlocks(10**6, 1_000_003, 1, 335),
        (5_100_003, 1.0): AffineBlocks(5_100_003, 11, 7, 3),
        (19_990_000, 1.0): AffineBlocks(19_990_000, 11, 8, 3),
    }
    for (size, epsilon), blocks in before.items():
        assert choose_blocks(size, Fraction(math.exp(epsilon))) == blocks


def test_values_stay_where_there_are_no_reports() -> None:
    band = Band(np.ones(104), lower=0.5, upper=2.0)
    assert population_mechanism(band, Pure(1.0)) == "linear"
    assert population_mechanism(Simplex(104), Gaussian(1.0)) == "linear"
    assert population_mechanism(Simplex(Interval(0.0, 1.0, cells=104)), Pure(1.0)) == "reports"
    assert population_mechanism(Simplex(104), Pure(1e-13)) == "linear"
    for size in (19_990_000, 10**9):  # reports that nobody could count
        with pytest.raises(DiscreetError, match="more than 20,000,000"):
            ReportCounts(ReportSampler(Simplex(size), epsilon=2.0))
        assert population_mechanism(Simplex(size), Pure(2.0)) == "linear"
    ReportCounts(ReportSampler(Simplex(10**6), epsilon=2.0))
    assert population_mechanism(Simplex(10**6), Pure(2.0)) == "reports"
    assert mechanism_for("population", "reports") == mechanism_for(None, "reports") == "reports"
    with pytest.raises(DiscreetError, match="releases no samples; use ReportSampler"):
        sampler_named("reports", Simplex(104), epsilon=1.0)
