"""Supports are what counting gives, exactly, however the reports come and however many there are."""

from typing import Any

import numpy as np
import pytest

from discreet import Simplex
from discreet._base.kernels import Code, force_implementation
from discreet.errors import DiscreetError
from discreet.mechanisms import ReportCounts, ReportSampler
from discreet.mechanisms._reports import _counts as _supports
from discreet.mechanisms._reports._blocks import AffineBlocks, BlockFamily, MaskedSubsets, RankedSubsets, SingleOutcomes
from discreet.mechanisms._reports._counts import Directions
from tests.mechanisms.reports.test_sampler import sampler_with

FAMILIES = [
    SingleOutcomes(7),
    MaskedSubsets(64, 20),
    MaskedSubsets(3, 1),
    RankedSubsets(90, 3),
    AffineBlocks(104, 107, 1, 28),
    AffineBlocks(20, 5, 2, 2),
    AffineBlocks(27, 3, 3, 1),
    AffineBlocks(30, 2, 5, 1),
    AffineBlocks(1000, 11, 3, 3),
    AffineBlocks(900, 31, 2, 4),
    AffineBlocks(500, 1009, 1, 5),
]


def reports_of(family: BlockFamily, number: int, seed: int = 3) -> np.ndarray:
    """Some reports at random, the last ten of them alike."""
    ranks = np.random.default_rng(seed).integers(0, family.block_count, number)
    ranks[-10:] = family.block_count - 1
    return np.asarray(family.reports_of_ranks(ranks))


def counted(family: BlockFamily, reports: np.ndarray) -> np.ndarray:
    return np.array([family.holds(reports, np.array([x])).sum() for x in range(family.size)])


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_supports_are_what_counting_gives(family: BlockFamily) -> None:
    reports = reports_of(family, 500)
    state = ReportCounts(sampler_with(family, 1.0)).add(reports)
    assert state.reports == 500
    assert np.array_equal(state.supports(), counted(family, reports))


@pytest.mark.parametrize("family", [each for each in FAMILIES if isinstance(each, AffineBlocks)], ids=str)
def test_reports_counted_together_give_the_table_of_reports_counted_one_by_one(family: AffineBlocks) -> None:
    reports, directions = reports_of(family, 300), Directions(family)
    one_by_one = ReportCounts(sampler_with(family, 1.0)).add(reports).table
    together = np.zeros_like(one_by_one)
    _supports._count_reports_then_add_to_table(directions, reports, together)
    assert np.array_equal(together, one_by_one)


@pytest.mark.slow
@pytest.mark.parametrize("family", [AffineBlocks(900, 1009, 1, 700), AffineBlocks(900, 31, 2, 30)], ids=str)
def test_compiled_code_counts_the_same_in_any_number_of_threads(
    family: AffineBlocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More reports of one kind than 16 bits count, and so many that several threads share them."""
    reports = np.concatenate([reports_of(family, 3000), np.full(70_000, family.block_count - 2, dtype=np.uint64)])
    directions, expected = Directions(family), ReportCounts(sampler_with(family, 1.0)).table
    monkeypatch.setattr(_supports, "_WORTH_A_THREAD", 1)
    with force_implementation(Code.NUMPY):
        for some in (reports, np.full(70_000, 5, dtype=np.uint64)):
            _supports._add_affine_reports_to_table(family, some, expected)
    assert expected.max() > 1 << 16
    for processors in (1, 3):
        monkeypatch.setattr(_supports, "processor_count", lambda number=processors: number)
        found = np.zeros_like(expected)
        for some in (reports, np.full(70_000, 5, dtype=np.uint64)):
            _supports._add_reports_with_compiled_code(directions, some, found)
        assert np.array_equal(found, expected)


def test_parts_merge_to_the_whole_and_a_table_is_taken_up_again() -> None:
    for family in FAMILIES:
        sampler, reports = sampler_with(family, 1.0), reports_of(family, 300)
        whole = ReportCounts(sampler).add(reports)
        parts = ReportCounts(sampler).add(reports[:100]).merge(ReportCounts(sampler).add(reports[100:]))
        again = ReportCounts.from_table(sampler, parts.table, parts.reports)
        for other in (parts, again):
            assert other.reports == 300
            assert np.array_equal(other.supports(), whole.supports())
        assert np.array_equal(ReportCounts(sampler).supports(), np.zeros(family.size))
        for table, number in (
            (whole.table[:-1], 300),
            (whole.table, 299),
            (-whole.table, 300),
            (whole.table + 0.5, 300),
        ):
            with pytest.raises(DiscreetError, match="table"):
                ReportCounts.from_table(sampler, table, number)


def test_wrong_reports_and_other_samplers_are_refused() -> None:
    sampler = ReportSampler(Simplex(104), epsilon=1.0)
    state = ReportCounts(sampler)
    with pytest.raises(DiscreetError, match="no report"):
        state.add([1, 2, sampler.blocks.block_count])
    assert state.reports == 0
    assert not state.table.any()
    with pytest.raises(DiscreetError, match="other"):
        state.merge(ReportCounts(ReportSampler(Simplex(104), epsilon=2.0)))
    family: Any = Simplex(3)
    with pytest.raises(DiscreetError, match="sampler"):
        ReportCounts(family)
    with pytest.raises(DiscreetError, match="points"):
        ReportCounts(ReportSampler(Simplex(10**9), epsilon=1.0))


@pytest.mark.parametrize("number", [10**9, 2 * 10**12, 1 << 52])
def test_supports_are_exact_for_billions_of_reports(number: int) -> None:
    """Everybody sends the same report, or one of a few: the largest sums that there can be, against whole numbers."""
    family = AffineBlocks(11**3, 11, 3, 3)
    sampler = sampler_with(family, 1.0)
    few = reports_of(family, 12)
    times = np.random.default_rng(4).integers(1, number // 12, len(few))
    table, expected = np.zeros_like(ReportCounts(sampler).table), np.zeros(family.size, dtype=np.int64)
    for report, many in zip(few, times, strict=True):
        table += int(many) * ReportCounts(sampler).add([int(report)]).table
        expected += int(many) * family.holds(np.array([report]), np.arange(family.size))
    state = ReportCounts.from_table(sampler, table, int(times.sum()))
    assert np.array_equal(state.supports(), expected)


def weighted_table(sampler: ReportSampler, reports: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The table of each report so many times: of the reports that have a bit of their number set, for every bit."""
    found = np.zeros_like(ReportCounts(sampler).table)
    for bit in range(int(times.max()).bit_length()):
        found += ReportCounts(sampler).add(reports[(times >> bit) & 1 == 1]).table << bit
    return found


@pytest.mark.slow
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("family", [AffineBlocks(29_000, 31, 3, 8), AffineBlocks(1_018_000, 1009, 2, 120)], ids=str)
def test_supports_of_a_billion_reports_are_exact(family: AffineBlocks, alike: bool) -> None:
    """Of 2,000 kinds, each half a million times or so; or nearly all of one kind, whose supports are the largest there can be."""
    sampler, rng = sampler_with(family, 1.0), np.random.default_rng(8)
    reports, times = reports_of(family, 2000)[:-10], rng.integers(1, 10**6, 1990)
    times[0] += max(0, 10**9 - int(times.sum()))
    if alike:
        times[1:], times[0] = 1, 10**9 - 1989
    state = ReportCounts.from_table(sampler, weighted_table(sampler, reports, times), int(times.sum()))
    assert state.reports >= 10**9 - 10
    supports = state.supports()
    chosen = np.unique(np.append(rng.integers(0, family.size, 400), [0, 1, family.size - 1]))
    for outcome in chosen.tolist():
        assert supports[outcome] == times[family.holds(reports, np.array([outcome]))].sum()


def test_a_transform_that_rounds_too_much_is_cut_into_digits() -> None:
    """With no error allowed for but that of the smallest sums, every table is cut, and the sums are the same."""
    family = AffineBlocks(20, 5, 2, 2)
    state = ReportCounts(sampler_with(family, 1.0)).add(reports_of(family, 5000))
    expected = state.supports()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_supports, "_LOSS", 1e12)
        assert np.array_equal(state.supports(), expected)


def test_the_bound_on_rounding_errors_is_kept() -> None:
    """Distances from whole numbers are far below what the bound allows."""
    family = AffineBlocks(101**2, 101, 2, 27)
    directions = Directions(family)
    table = np.random.default_rng(6).integers(0, 10**9, (len(directions.starts) and directions.number, 101))
    spectrum = directions.fourier_spectrum_from_direction_rows(
        (table - table.sum(axis=1, keepdims=True) // 101).astype(np.float64)
    )
    norm = np.sqrt(np.vdot(spectrum, spectrum).real * family.point_count)
    found = np.fft.ifftn(spectrum.reshape(101, 101)).ravel().real * family.point_count
    part = int((table - table.sum(axis=1, keepdims=True) // 101).sum()) % 101 / 101
    error = np.abs(found + part - np.rint(found + part)).max()
    assert 0 < error <= _supports._LOSS * np.log2(family.point_count) * 2.0**-53 * norm < 0.5


@pytest.mark.slow
def test_a_million_outcomes_are_counted() -> None:
    sampler = ReportSampler(Simplex(10**6), epsilon=1.0)
    outcomes = np.random.default_rng(2).integers(0, 10**6, 20_000)
    outcomes[:10_000] = 999_999
    reports = sampler.release_records(outcomes)
    supports = ReportCounts(sampler).add(reports).supports()
    for outcome in (0, 1, 999_999, 123_456):
        assert supports[outcome] == sampler.blocks.holds(reports, np.array([outcome])).sum()


@pytest.mark.parametrize(
    ("table", "reports", "message"),
    [
        ([[1], [1, 2]], None, "table is not one that so many reports"),
        ([1, 1, 0], "2", "reports = '2' is not a whole number"),
        ([1, 1, 0], 2.0, "reports = 2.0 is not a whole number"),
        ([1, 1, 0], True, "reports = True is not a whole number"),
    ],
)
def test_a_table_of_the_wrong_kind_is_refused(table: Any, reports: Any, message: str) -> None:
    sampler = ReportSampler(Simplex(3), epsilon=6.0)
    with pytest.raises(DiscreetError, match=message):
        ReportCounts.from_table(sampler, table, reports)
