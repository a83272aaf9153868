"""Compiled code draws the reports that `ReportSampler.release_keyed` draws in Python's integers, and refuses what plain code refuses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet.mechanisms import ReportSampler
from discreet.mechanisms._reports._blocks import (
    LARGEST_COUNT,
    AffineBlocks,
    BlockFamily,
    MaskedSubsets,
    RankedSubsets,
    SingleOutcomes,
    is_prime,
)
from discreet.release import TOTAL, _client_draws_compiled as sparse, keyed_word_stream
from discreet.release._client_draws import REFUSED_NEGATIVE, REFUSED_TOO_MANY, ClientColumns
from discreet.release._randomness import DIGEST_WORDS, client_message
from discreet.tables._drawing import DrawnArrays, ReportDrawing
from tests.mechanisms.reports.test_sampler import sampler_with
from tests.release.test_plain import KEY, clients_on, read_only
from tests.soaking import wide


def largest_prime(below: int) -> int:
    return next(number for number in range(below - 1, 1, -1) if is_prime(number))


LARGE = largest_prime(1 << 31)  # whose blocks number just below 2^62
MANY = next(q for q in range(1_797_000_000, 1_798_000_000) if is_prime(q))  # a third of the words are drawn anew
EDGES: list[BlockFamily] = [
    SingleOutcomes(1), SingleOutcomes(2), SingleOutcomes(2**32 - 4),
    MaskedSubsets(2, 1), MaskedSubsets(64, 1), MaskedSubsets(64, 32), MaskedSubsets(64, 63), MaskedSubsets(63, 31),
    RankedSubsets(3, 1), RankedSubsets(3, 2), RankedSubsets(70, 69), RankedSubsets(100_000, 3), RankedSubsets(2_000, 6),
    AffineBlocks(LARGE, LARGE, 1, 1), AffineBlocks(LARGE, LARGE, 1, LARGE - 1), AffineBlocks(30, MANY, 1, MANY // 4),
    AffineBlocks(7, 7, 1, 6), AffineBlocks(8, 11, 1, 1), AffineBlocks(49, 7, 2, 3), AffineBlocks(50, 53, 1, 14),
    AffineBlocks(50, 7, 3, 2), AffineBlocks(2**30, 2, 30, 1), AffineBlocks(3**19 - 1, 3, 19, 2), AffineBlocks(4, 2, 61, 1),
    AffineBlocks(2**32 - 4, largest_prime(1_664_510), 2, 400_000),
]  # fmt: skip


@st.composite
def families(draw: st.DrawFn) -> BlockFamily:
    """Blocks at the edges of what there is, of every kind, and those that are chosen."""
    kind = draw(st.sampled_from(["edge", "chosen", "masks", "ranks", "affine"]))
    if kind == "edge":
        return draw(st.sampled_from(EDGES))
    if kind == "masks":
        size = draw(st.integers(2, 64))
        return MaskedSubsets(size, draw(st.integers(1, size - 1)))
    if kind == "ranks":
        size = draw(st.integers(3, 2000))
        return RankedSubsets(size, draw(st.integers(1, min(5, size - 1))))
    if kind == "affine":
        prime = draw(st.sampled_from([2, 3, 5, 7, 11, 13, 101, 997, 1009, 65_537]))
        most = next(t for t in range(61, 0, -1) if prime ** (t + 1) <= LARGEST_COUNT)
        digits = draw(st.integers(1, most))
        points = min(prime**digits, 2**32 - 4)
        size = draw(st.one_of(st.sampled_from([max(2, points - 1), points]), st.integers(2, points)))
        return AffineBlocks(size, prime, digits, draw(st.integers(1, prime - 1)))
    size = draw(st.one_of(st.integers(1, 300), st.sampled_from([1000, 20_000, 10**6, 10**9])))
    epsilon = draw(st.sampled_from([1e-9, 0.05, 1.0, 4.0, 7.0, 12.0, 30.0]))
    return ReportSampler(dc.Simplex(size), epsilon=epsilon).blocks


def drawn(
    sampler: ReportSampler, clients: ClientColumns, first: int, last: int, *, compiled: bool, words: bool = True
) -> Any:
    """All that a draw says: of a refused row which it is, where and why; else reports, order and digest."""
    low, high = np.zeros(len(clients), np.int64), np.zeros(len(clients))
    order = np.zeros(len(clients) if words else 0, np.uint64)
    digest, problem = np.full(DIGEST_WORDS if words else 0, 2**63 + 5, np.uint64), np.zeros(2, np.int64)
    found = DrawnArrays(low, order, high, digest, problem)
    if compiled:
        bad = sparse.draw_outcomes_of_clients(
            sampler.draw_plan, clients, sparse.initial_state_of_run(KEY), first, last, *found
        )
    else:
        bad = ReportDrawing(sampler, KEY).draw_reports_with_numpy(clients, first, last, found)
    if bad >= 0:
        return bad, problem.tolist()
    reports = [(int(h * 2.0**32) << 32) | m for m, h in zip(low[first:last].tolist(), high[first:last], strict=True)]
    return reports, order.tolist(), digest.tolist()


@pytest.mark.slow
@settings(max_examples=wide(600, 60), deadline=None)
@given(families(), st.sampled_from([0.05, 1.0, 4.0, 10.0]), st.data())
def test_compiled_and_plain_code_say_the_same_of_any_clients(
    blocks: BlockFamily, epsilon: float, data: st.DataObject
) -> None:
    sampler, clients = sampler_with(blocks, epsilon), data.draw(clients_on(blocks.size))
    first = data.draw(st.integers(0, len(clients) - 1))
    last = data.draw(st.integers(first + 1, len(clients)))
    compiled = drawn(sampler, clients, first, last, compiled=True)
    assert compiled == drawn(sampler, clients, first, last, compiled=False)
    if len(compiled) == 3:
        assert drawn(sampler, clients, first, last, compiled=True, words=False)[0] == compiled[0]


def columns(lists: list[list[int]], counts: list[int]) -> ClientColumns:
    none = np.empty(0, dtype=np.int64)
    return read_only(
        np.arange(len(lists)),
        none,
        np.empty(0, np.uint8),
        np.cumsum([0, *map(len, lists)]),
        np.array([x for each in lists for x in each], dtype=np.uint32),
        np.array(counts, dtype=np.int64),
        np.empty(0),
    )


@pytest.mark.parametrize("code", [True, False])
def test_the_first_client_that_cannot_report_is_the_one_refused(code: bool) -> None:
    """Whatever the reasons: too many records of the first, a negative count of the second; and the other way round."""
    sampler, many, negative = sampler_with(SingleOutcomes(2), 1.0), [1, TOTAL], [0, -1]
    for counts, why in (((many, negative), REFUSED_TOO_MANY), ((negative, many), REFUSED_NEGATIVE)):
        both = columns([[0, 1], [0, 1]], [count for client in counts for count in client])
        bad, (_, problem) = drawn(sampler, both, 0, 2, compiled=code)
        assert (bad, problem) == (0, why)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", EDGES, ids=str)
def test_compiled_reports_are_those_of_one_client_at_a_time(blocks: BlockFamily) -> None:
    """With the first and the last outcomes, and counts whose sum refuses half of the words."""
    sampler, rng = sampler_with(blocks, 2.0), np.random.default_rng(7)
    ends = sorted({0, blocks.size // 2, blocks.size - 1})
    records = [[*ends, *rng.integers(0, blocks.size, 3).tolist()] for _ in range(150)]
    for counts in ([], [1, 2, 5, *[0] * 10], [1 << 60, 1 << 60, 1, *[0] * 10]):
        each = [counts[: len(held)] if counts else [1] * len(held) for held in records]
        clients = columns(records, [count for row in each for count in row] if counts else [])
        reports = drawn(sampler, clients, 0, len(clients), compiled=True)[0]
        for who, (report, held, often) in enumerate(zip(reports, records, each, strict=True)):
            assert report == sampler.release_keyed(KEY, who, held, often)
        assert sampler.check_reports(reports).size == len(records)


@pytest.mark.slow
def test_words_past_the_first_hash_are_drawn_too() -> None:
    """Both bounds refuse many words: some clients need a ninth, which another hash gives."""
    sampler = sampler_with(AffineBlocks(30, MANY, 1, MANY - 1), 4.0)
    counts = [1 << 61, 1]
    clients = columns([[3, 4]] * 4000, counts * 4000)
    reports = drawn(sampler, clients, 0, 4000, compiled=True)[0]
    long = 0
    for who in range(4000):
        assert reports[who] == sampler.release_keyed(KEY, who, [3, 4], counts)
        words = keyed_word_stream(KEY, client_message(who, [3, 4], counts))
        if next(words) >= sampler.uniform_weight:
            refused = [next(words) >= (1 << 61) + 1 for _ in range(7)]
            long += all(refused)
    assert long > 0


def test_too_many_records_are_refused_by_both() -> None:
    sampler = sampler_with(AffineBlocks(104, 107, 1, 28), 1.0)
    clients = columns([[1, 2], [1, 2]], [1, 2, (1 << 62), 1])
    for compiled in (True, False):
        assert drawn(sampler, clients, 0, 2, compiled=compiled) == (1, [0, REFUSED_TOO_MANY])
    good = columns([[1, 2]], [(1 << 62) - 1, 1])
    assert drawn(sampler, good, 0, 1, compiled=True) == drawn(sampler, good, 0, 1, compiled=False)
