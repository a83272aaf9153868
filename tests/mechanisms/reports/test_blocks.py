"""Blocks are balanced over pairs of points, and ranks name each of them once."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.mechanisms._reports import _blocks
from discreet.mechanisms._reports._blocks import (
    AffineBlocks,
    BlockFamily,
    MaskedSubsets,
    RankedSubsets,
    SingleOutcomes,
    is_prime,
)
from discreet.mechanisms._reports._choice import own_and_other_outcome_chances

SMALL = [
    SingleOutcomes(5),
    MaskedSubsets(2, 1),
    MaskedSubsets(7, 3),
    MaskedSubsets(9, 1),
    RankedSubsets(8, 3),
    RankedSubsets(6, 5),
    AffineBlocks(7, 7, 1, 3),
    AffineBlocks(6, 7, 1, 6),
    AffineBlocks(25, 5, 2, 2),
    AffineBlocks(20, 3, 3, 1),
    AffineBlocks(16, 2, 4, 1),
    AffineBlocks(11, 11, 1, 4),
]
"""With points that are outcomes all, and with padding."""


def incidence(family: BlockFamily) -> np.ndarray:
    """Blocks by points, padding too."""
    reports = family.reports_of_ranks(np.arange(family.block_count))
    return np.asarray(family.holds(reports[:, None], np.arange(family.point_count)[None, :]))


@pytest.mark.parametrize("family", SMALL, ids=str)
def test_every_pair_of_points_lies_in_equally_many_blocks(family: BlockFamily) -> None:
    held = incidence(family).astype(np.int64)
    pairs = held.T @ held
    assert (held.sum(axis=1) == family.width).all()
    assert (np.diag(pairs) == family.blocks_per_point).all()
    others = pairs[~np.eye(family.point_count, dtype=bool)]
    assert all(
        Fraction(int(each), family.blocks_per_point) == family.chance_of_holding_second_point
        for each in np.unique(others)
    )


def affine_families() -> list[tuple[int, int, int]]:
    """200 (q, t, c), some of them too large to be written down."""
    primes = [q for q in range(2, 140) if is_prime(q)]
    found = [(q, t, c) for q in primes for t in (1, 2, 3) for c in {1, q // 3, q // 2, q - 1} if 1 <= c < q]
    return found[:: len(found) // 200][:200]


def pairs_by_algebra(q: int, t: int, c: int) -> int:
    """Blocks with two given points: each value d of <a, x - y> comes q^(t-1) times, 0 once less since a is not 0."""
    overlap = [len(set(range(c)) & {(u + d) % q for u in range(c)}) for d in range(q)]
    return int(q ** (t - 1)) * sum(overlap) - overlap[0]


def test_affine_blocks_are_balanced_by_algebra() -> None:
    families = affine_families()
    assert len(families) == 200
    for q, t, c in families:
        family = AffineBlocks(2, q, t, c)
        assert Fraction(pairs_by_algebra(q, t, c), family.blocks_per_point) == family.chance_of_holding_second_point
        assert family.block_count * family.width == family.point_count * family.blocks_per_point


def countable_families() -> list[tuple[int, int, int]]:
    """200 (q, t, c) with at most 200,000 blocks."""
    primes = [q for q in range(2, 400) if is_prime(q)]
    small = [(q, t) for q in primes for t in (1, 2, 3, 4, 5) if q ** (t + 1) <= 200_000]
    found = [(q, t, c) for q, t in small for c in sorted({1, 2, q // 4, q // 2, q - 1}) if 1 <= c < q]
    return [found[place * len(found) // 200] for place in range(200)]


@pytest.mark.slow
def test_affine_blocks_are_balanced_by_counting() -> None:
    """All blocks of 200 families, for pairs of points: some at random, neighbours, and multiples of each other."""
    rng, families = np.random.default_rng(5), countable_families()
    assert len(set(families)) == 200
    for q, t, c in families:
        family = AffineBlocks(q**t, q, t, c)
        reports = family.reports_of_ranks(np.arange(family.block_count))
        pairs: list[list[int]] = [rng.choice(family.point_count, size=2, replace=False).tolist() for _ in range(3)]
        pairs += [[0, 1], [family.point_count - 2, family.point_count - 1], *([[1, 2]] if q > 2 else [])]
        for x, y in pairs:
            both = family.holds(reports, np.array([x])) & family.holds(reports, np.array([y]))
            chance = Fraction(int(both.sum()), family.blocks_per_point)
            assert chance == family.chance_of_holding_second_point, (q, t, c, x, y)


def test_blocks_over_a_ring_that_is_no_field_would_bias_estimates() -> None:
    """Modulo 9 pairs of points are unbalanced, and shares that nobody has are estimated to be a tenth. Such q is refused."""
    with pytest.raises(DiscreetError, match="q is prime"):
        AffineBlocks(9, 9, 1, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_blocks, "is_prime", lambda number: True)
        family = AffineBlocks(9, 9, 1, 4)
    held = incidence(family).astype(np.int64)
    beside_the_first = (held.T @ held)[
        0, 1:
    ] / family.blocks_per_point  # probabilities to lie in a block that holds point 0
    assert len(set(beside_the_first.tolist())) > 1
    found = own_and_other_outcome_chances(family.point_count, family.width, math.e)
    own = 1.0 - 1.0 / (1.0 + (math.e - 1.0) * family.width / family.point_count)
    bias = own * (beside_the_first - float(family.chance_of_holding_second_point)) / found.gap
    assert bias[[2, 5]] == pytest.approx(0.1)  # points that differ by a multiple of 3 get a tenth each
    assert np.delete(bias, [2, 5]) == pytest.approx(0.0)


@pytest.mark.parametrize("family", SMALL, ids=str)
def test_ranks_name_every_block_once_and_every_block_that_holds_an_outcome_once(family: BlockFamily) -> None:
    reports = family.reports_of_ranks(np.arange(family.block_count))
    assert len(np.unique(reports)) == family.block_count
    assert family.are_valid_reports(reports).all()
    for outcome in range(family.size):
        rank = np.arange(family.blocks_per_point)
        holding = family.reports_of_ranks_holding_outcomes(np.full(family.blocks_per_point, outcome), rank)
        expected = reports[family.holds(reports, np.array([outcome]))]
        assert np.array_equal(np.sort(holding), np.sort(expected))


def test_subsets_are_those_that_they_stand_for() -> None:
    masks, ranks = MaskedSubsets(8, 3), RankedSubsets(8, 3)
    expected = sorted(combinations(range(8), 3), key=lambda each: each[::-1])
    for rank, members in enumerate(expected):
        assert tuple(ranks.outcomes_of(rank)) == members
        mask = int(masks.reports_of_ranks(np.array([rank]))[0])
        assert mask == sum(1 << x for x in members)
        assert tuple(masks.outcomes_of(mask)) == members


def test_the_largest_masks_use_all_64_bits() -> None:
    family = MaskedSubsets(64, 32)
    last = family.reports_of_ranks(np.array([family.block_count - 1]))
    assert int(last[0]) == ((1 << 32) - 1) << 32
    holding = family.reports_of_ranks_holding_outcomes(np.array([63, 0]), np.array([family.blocks_per_point - 1, 0]))
    assert family.holds(holding, np.array([63, 0])).all()
    assert family.are_valid_reports(holding).all()


def test_inner_products_do_not_wrap_around() -> None:
    q = 2147483647  # the largest whose blocks have 62 bits
    family = AffineBlocks(q, q, 1, 5)
    rng = np.random.default_rng(1)
    a, x = rng.integers(q - 1000, q, 200), rng.integers(q - 1000, q, 200)
    assert family.inner_product(a, x).tolist() == [int(i) * int(j) % q for i, j in zip(a, x, strict=True)]
    with pytest.raises(DiscreetError, match="2\\^62"):
        AffineBlocks(3, 2147483659, 1, 5)
    q = next(q for q in range(1664510, 0, -1) if is_prime(q))  # the cube root of 2^62
    wide = AffineBlocks(q**2, q, 2, 5)
    a, x = (
        rng.integers(wide.point_count - 10**6, wide.point_count, 200),
        rng.integers(wide.point_count - 10**6, wide.point_count, 200),
    )
    digits = [(divmod(int(i), wide.prime), divmod(int(j), wide.prime)) for i, j in zip(a, x, strict=True)]
    expected = [(i[0] * j[0] + i[1] * j[1]) % wide.prime for i, j in digits]
    assert wide.inner_product(a, x).tolist() == expected
    reports = wide.reports_of_ranks_holding_outcomes(x, rng.integers(0, wide.blocks_per_point, 200))
    assert wide.holds(reports, x).all()
    assert wide.are_valid_reports(reports).all()


@pytest.mark.parametrize(
    ("family", "wrong"),
    [
        (SingleOutcomes(5), 5),
        (MaskedSubsets(7, 3), 0b1111),
        (MaskedSubsets(7, 3), 0b10000011),
        (MaskedSubsets(64, 3), 1 << 63),
        (RankedSubsets(8, 3), 56),
        (AffineBlocks(100, 11, 2, 3), 120 * 11),
        (AffineBlocks(100, 11, 2, 3), 1 << 63),
    ],
    ids=str,
)
def test_numbers_that_are_no_reports_are_refused(family: BlockFamily, wrong: int) -> None:
    good = family.reports_of_ranks(np.arange(3)).tolist()
    assert family.check_reports(good).tolist() == good
    with pytest.raises(DiscreetError, match="no report"):
        family.check_reports(np.array([*good, wrong], dtype=np.uint64))
    for bad in ([-1], [0.5], ["a"], [1 << 64], [True], [[1], [1, 2]]):
        with pytest.raises(DiscreetError, match="report"):
            family.check_reports(bad)


@pytest.mark.parametrize("given", [(7, 7, 1, 0), (7, 7, 1, 7), (7, 9, 1, 3), (50, 7, 2, 3), (7, 7, 0, 3)])
def test_windows_of_nothing_or_everything_and_fields_that_are_none_are_refused(given: tuple[int, ...]) -> None:
    with pytest.raises(DiscreetError):
        AffineBlocks(*given)


def test_primes() -> None:
    sieve = [n for n in range(2000) if n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))]
    assert [n for n in range(2000) if is_prime(n)] == sieve
    assert is_prime(2**31 - 1)
    assert not is_prime((2**31 - 1) * 3)
    assert not is_prime(3215031751)
