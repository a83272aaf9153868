"""Blocks that are optimised for sums of shares: exact privacy, no bias, the least variance of all blocks, and never worse than one width."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings, strategies as st

from discreet.errors import DiscreetError
from discreet.mechanisms import best_subset_width_and_variance
from discreet.privacy import largest_ratio_for_epsilon
from discreet.release import Question, fresh_secret
from discreet.survey import Survey, SurveySampler, WeightedBlocks, linear, shares
from discreet.survey._strategies import _sum_variances, best_blocks_for_size
from discreet.survey._weighted_blocks import (
    _optimise_blocks_cached,
    all_blocks_on_outcomes,
    optimise_blocks,
    scaled_likelihood_excesses,
    sum_variance_lower_bound,
)
from tests.soaking import examples, wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.NotPrivateWarning")

Floats = np.ndarray[Any, np.dtype[np.float64]]


def prefixes(size: int) -> Floats:
    return np.tril(np.ones((size, size)))[:-1]


def ranges(size: int) -> Floats:
    places = np.arange(size)
    return np.array([(first <= places) & (places <= last) for first in places for last in places[first:]], dtype=float)


def margins(size: int) -> Floats:
    side = math.isqrt(size)
    return np.vstack([np.kron(np.eye(side), np.ones((1, side))), np.kron(np.ones((1, side)), np.eye(side))])


@st.composite
def workloads(draw: st.DrawFn, most: int = 12) -> Floats:
    size, count = draw(st.integers(2, most)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["subsets", "numbers", "prefixes", "one outcome"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    match kind:
        case "subsets":
            return rng.integers(0, 2, (count, size)).astype(float)
        case "numbers":
            return np.asarray(rng.normal(0, 10.0 ** rng.integers(-3, 4), (count, size)))
        case "prefixes":
            return prefixes(size)
    return np.eye(size)[:1]


def sampler_of(matrix: Floats, epsilon: float) -> SurveySampler:
    return SurveySampler(Survey({"x": matrix.shape[1]}, [linear(matrix, "x")]), epsilon=epsilon)


@settings(max_examples=examples(40), deadline=None)
@given(workloads(), st.sampled_from([0.01, 0.3, 1.0, 2.5, 6.0, 25.0]))
def test_every_list_of_blocks_is_private_in_rationals_and_without_bias(matrix: Floats, epsilon: float) -> None:
    bound, size = largest_ratio_for_epsilon(epsilon), matrix.shape[1]
    found = optimise_blocks(matrix, bound).blocks
    chosen = sampler_of(matrix, epsilon)
    beta = Fraction(found.block_count) / (found.block_count + (bound - 1) * found.blocks_per_point)
    totals = [Fraction(0)] * size
    expected = np.zeros((size, len(matrix)))
    values = found.unbiased_sum_values_of_reports(matrix, float(bound - 1))
    for place, (mask, copies) in enumerate(zip(found.masks, found.copies, strict=True)):
        law = [
            copies * (beta / found.block_count + (1 - beta) * (mask >> x & 1) / Fraction(found.blocks_per_point))
            for x in range(size)
        ]
        assert max(law) <= bound * min(law)
        for x, probability in enumerate(law):
            totals[x] += probability
            expected[x] += float(probability) * values[place]
    assert set(totals) == {Fraction(1)}
    centred = matrix - matrix.mean(axis=1, keepdims=True)
    assert np.abs(expected.T - centred).max() <= 1e-9 * np.abs(matrix).max() / min(epsilon, 1.0)
    rows = range(size)
    for report in chosen.reports().tolist():  # what is drawn, whichever blocks were chosen
        drawn = [chosen.probability(report, row) for row in rows]
        assert max(drawn) <= bound * min(drawn)


@settings(max_examples=examples(40), deadline=None)
@given(workloads(), st.sampled_from([0.1, 1.0, 2.0, 5.0]))
def test_sums_are_never_less_precise_than_by_blocks_of_one_width(matrix: Floats, epsilon: float) -> None:
    bound = largest_ratio_for_epsilon(epsilon)
    sampler = sampler_of(matrix, epsilon)
    (part,) = sampler.parts
    present = _sum_variances(matrix, best_blocks_for_size(matrix.shape[1], bound), float(bound))
    assert sampler.variance(0) <= present.max() * (1 + 1e-12)
    if isinstance(part.blocks, WeightedBlocks):
        variances = part.blocks.sum_variances_per_client_if_uniform(matrix, float(bound - 1))
        assert variances.mean() < present.mean()
        assert sampler.variance(0) == pytest.approx(variances.max(), rel=1e-9)
        assert variances.mean() >= optimise_blocks(matrix, bound).least * (1 - 1e-9)


def least_by_brute_force(matrix: Floats, gain: float) -> float:
    """The least mean variance over all probabilities on all blocks, by a general solver."""
    size = matrix.shape[1]
    points = scaled_likelihood_excesses(all_blocks_on_outcomes(size), gain) * gain / (1.0 + gain)
    centred = matrix - matrix.mean(axis=1, keepdims=True)
    target = centred.T @ centred / len(matrix)

    def spread(chances: Floats) -> Floats:
        information = (points * chances[:, None]).T @ points + np.ones((size, size)) / size + 1e-9 * np.eye(size)
        return np.asarray(np.linalg.inv(information))

    def value(chances: Floats) -> float:
        return float((target * spread(chances)).sum())

    def slope(chances: Floats) -> Floats:
        seen = points @ spread(chances)
        return np.asarray(-((seen @ target) * seen).sum(axis=1))

    scale = value(np.full(len(points), 1.0 / len(points)))
    balanced = np.vstack([np.ones(len(points)), points.T[:-1]])
    found = scipy.optimize.minimize(
        lambda chances: value(chances) / scale,
        np.full(len(points), 1.0 / len(points)),
        jac=lambda chances: slope(chances) / scale,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(points),
        constraints={
            "type": "eq",
            "fun": lambda chances: balanced @ chances - np.eye(size)[0],
            "jac": lambda _: balanced,
        },
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun) * scale


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_of_all_blocks_none_are_better(size: int, epsilon: float) -> None:
    bound, rng = largest_ratio_for_epsilon(epsilon), np.random.default_rng(size)
    for matrix in (prefixes(size), rng.integers(0, 2, (3, size)).astype(float), rng.normal(0, 1, (4, size))):
        least = least_by_brute_force(matrix, float(bound - 1))
        found = optimise_blocks(matrix, bound)
        assert found.mean == pytest.approx(least, rel=1e-3)
        assert found.least <= least * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_up_to_twelve_outcomes_blocks_are_the_best_within_a_hundredth(epsilon: float) -> None:
    for size in (7, 9, 12):
        for matrix in (prefixes(size), ranges(size)):
            found = optimise_blocks(matrix, largest_ratio_for_epsilon(epsilon))
            assert found.least <= found.mean <= 1.01 * found.least


@settings(max_examples=examples(60), deadline=None)
@given(workloads(8), st.integers(0, 2**32))
def test_no_private_report_has_less_than_the_least_variance(matrix: Floats, seed: int) -> None:
    rng, size = np.random.default_rng(seed), matrix.shape[1]
    strategy = rng.uniform(0.2, 1.0, (3 * size, size)) ** rng.uniform(0.3, 4.0)
    if rng.random() < 0.3:
        strategy = np.vstack([strategy, np.eye(size) * rng.uniform(1, 50) + 0.1])
    strategy /= strategy.sum(axis=0)
    gain = float((strategy.max(axis=1) / strategy.min(axis=1)).max()) - 1.0
    information = size * (strategy / strategy.sum(axis=1, keepdims=True)).T @ strategy
    centred = matrix - matrix.mean(axis=1, keepdims=True)
    variance = float((centred * np.linalg.solve(information, centred.T).T).sum(axis=1).mean())
    assert variance >= sum_variance_lower_bound(matrix, gain) * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_shares_gain_nothing(epsilon: float) -> None:
    bound = largest_ratio_for_epsilon(epsilon)
    for size in (2, 3, 7, 24, 60, 100, 200):
        least = sum_variance_lower_bound(np.eye(size), float(bound - 1))
        _, best = best_subset_width_and_variance(size, float(bound))
        assert best == pytest.approx(least, rel=1e-6)  # no report is better
        assert not isinstance(sampler_of(np.eye(size), epsilon).parts[0].blocks, WeightedBlocks)
        sampler = SurveySampler(Survey({"x": size}, [shares("x")]), epsilon=epsilon)
        assert least <= sampler.variance(0) * (1 + 1e-12) <= 1.0101 * least


GAINS = [
    (prefixes(32), 1.0, 3.4, 1.08), (prefixes(32), 4.0, 1.35, 1.6), (ranges(32), 1.0, 2.1, 1.04), (margins(36), 1.0, 3.0, 1.03),
]  # fmt: skip


@pytest.mark.parametrize(("matrix", "epsilon", "times", "over"), GAINS)
def test_known_sums_gain_what_they_can(matrix: Floats, epsilon: float, times: float, over: float) -> None:
    bound, size = largest_ratio_for_epsilon(epsilon), matrix.shape[1]
    found = optimise_blocks(matrix, bound)
    present = _sum_variances(matrix, best_blocks_for_size(size, bound), float(bound))
    assert present.max() >= times * found.largest
    assert found.mean <= over * found.least
    assert found.blocks.distinct_report_count <= 360


@pytest.mark.slow
@pytest.mark.parametrize("size", wide([100, 150, 200], [100]))
def test_many_outcomes_gain_more(size: int) -> None:
    bound = largest_ratio_for_epsilon(1.0)
    found = optimise_blocks(prefixes(size), bound)
    present = _sum_variances(prefixes(size), best_blocks_for_size(size, bound), float(bound))
    assert present.mean() >= 4.8 * found.mean
    assert found.blocks.distinct_report_count <= 1400
    assert found.mean <= 1.25 * found.least


def test_reports_are_drawn_with_their_probabilities_from_entropy_and_from_a_secret() -> None:
    sampler = sampler_of(prefixes(6), 1.5)
    assert isinstance(sampler.parts[0].blocks, WeightedBlocks)
    row, draws = 2, 60_000
    numbers = sampler.reports()
    expected = np.array([float(sampler.probability(int(report), row)) for report in numbers]) * draws
    drawn = sampler.release_rows(np.full(draws, row), rng=np.random.default_rng(4))
    key = fresh_secret().run_key("a" * 64, 1, Question(value="records"))
    keyed = [sampler.release_keyed(key, client, [row], [1]) for client in range(draws // 10)]
    for reports, scale in ((drawn, 1.0), (np.array(keyed, dtype=np.uint64), 0.1)):
        counts = np.bincount(reports.astype(np.int64), minlength=len(numbers))
        often = scale * expected > 5
        chi = float(np.sum(np.square(counts - scale * expected)[often] / (scale * expected)[often]))
        assert chi < often.sum() + 6 * math.sqrt(2 * often.sum())
    assert set(np.unique(drawn)) <= set(numbers)
    for wrong in (len(numbers), -1, 0.5):
        with pytest.raises(DiscreetError, match="report"):
            sampler.check_reports([wrong])


def test_ranks_are_mapped_to_blocks_by_their_copies() -> None:
    blocks = WeightedBlocks(3, (0b001, 0b010, 0b011, 0b100, 0b111), (1, 1, 2, 3, 4))
    assert (blocks.block_count, blocks.blocks_per_point, blocks.largest_report, blocks.distinct_report_count) == (
        11,
        7,
        4,
        5,
    )
    assert blocks.reports_of_ranks(np.arange(11)).tolist() == [0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4]
    for x, listed in enumerate(([0, 2, 2, 4, 4, 4, 4], [1, 2, 2, 4, 4, 4, 4], [3, 3, 3, 4, 4, 4, 4])):
        assert blocks.reports_of_ranks_holding_outcomes(np.full(7, x), np.arange(7)).tolist() == listed
    assert blocks.rank_counts_of_reports(blocks.all_reports()).tolist() == [1, 1, 2, 3, 4]
    held = blocks.holds(blocks.all_reports()[:, None], np.arange(3)[None, :])
    assert (
        held.tolist()
        == blocks.membership_matrix.tolist()
        == [[bool(mask >> x & 1) for x in range(3)] for mask in blocks.masks]
    )


def test_blocks_are_the_same_after_they_were_written() -> None:
    found = optimise_blocks(prefixes(12), largest_ratio_for_epsilon(1.0)).blocks
    assert WeightedBlocks.from_terms(12, found.terms) == found
    _optimise_blocks_cached.cache_clear()
    assert (
        optimise_blocks(prefixes(12), largest_ratio_for_epsilon(1.0)).blocks == found
    )  # the same machine finds the same


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"blocks": ["1"]}, "fields blocks and copies"),
        ({"blocks": ["1", "x"], "copies": [1, 1]}, "no hexadecimal mask"),
        ({"blocks": ["1", "0x2"], "copies": [1, 1]}, "no hexadecimal mask"),
        ({"blocks": ["01", "2"], "copies": [1, 1]}, "no hexadecimal mask"),
        ({"blocks": [1, 2], "copies": [1, 1]}, "no hexadecimal mask"),
        ({"blocks": ["1", "2"], "copies": [1, 1.0]}, "whole numbers"),
        ({"blocks": ["1", "2"], "copies": [1, True]}, "whole numbers"),
        ({"blocks": ["2", "1"], "copies": [1, 1]}, "increasing"),
        ({"blocks": ["1", "1", "2"], "copies": [1, 1, 2]}, "increasing"),
        ({"blocks": ["1", "2", "4"], "copies": [1, 1, 1]}, "increasing masks"),
        ({"blocks": [], "copies": []}, "increasing masks"),
        ({"blocks": ["1", "2"], "copies": [1]}, "copies from 1 on"),
        ({"blocks": ["1", "2"], "copies": [1, 0]}, "copies from 1 on"),
        ({"blocks": ["1", "2"], "copies": [1, 2]}, "held by 1 to 2"),
        ({"blocks": ["1"], "copies": [1]}, "held by 0 to 1"),
        ({"blocks": ["1", "2"], "copies": [1 << 62, 1 << 62]}, "more than 2\\^62"),
    ],
)
def test_wrong_blocks_are_refused(terms: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        WeightedBlocks.from_terms(2, terms)


@pytest.mark.parametrize(
    "matrix",
    [
        np.full((2, 9), 3.0),
        np.eye(9)[:1] * 1e100,
        np.eye(9)[:1] * 1e-100,
        np.vstack([np.eye(9)[:1] * 1e50, prefixes(9)]),
        np.vstack([prefixes(9)] * 40),
        np.arange(9.0)[None, :],
        np.vstack([prefixes(9), np.zeros(9)]),
        np.arange(60.0)[None, :],
        np.eye(60)[:2],
    ],
    ids=["constants", "large", "small", "mixed", "repeated", "a mean", "with zeros", "a long mean", "two of many"],
)
@pytest.mark.parametrize("epsilon", wide([1e-6, 1.0, 20.0], [1e-6, 20.0]))
def test_unusual_sums_have_a_strategy(matrix: Floats, epsilon: float) -> None:
    sampler = sampler_of(matrix, epsilon)
    bound = largest_ratio_for_epsilon(epsilon)
    present = _sum_variances(matrix, best_blocks_for_size(matrix.shape[1], bound), float(bound))
    assert 0.0 <= sampler.variance(0) <= present.max() * (1 + 1e-12)
    reports = sampler.release_rows(np.arange(matrix.shape[1]), rng=np.random.default_rng(1))
    assert len(sampler.check_reports(reports)) == matrix.shape[1]
