"""Reports are epsilon-LDP in rationals, drawn with the probabilities that they state, and the same under the same secret."""

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy

from discreet import Band, Interval, Labels, Simplex
from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError, NotPrivateWarning
from discreet.mechanisms import ReportSampler
from discreet.mechanisms._reports import _sampler
from discreet.mechanisms._reports._blocks import AffineBlocks, BlockFamily, RankedSubsets
from discreet.privacy import Approximate, Pure
from discreet.privacy._notion import largest_ratio_for_epsilon
from discreet.release import TOTAL
from discreet.release._randomness import (
    Question,
    RunKey,
    Secret,
    _SeededRandomness,
    client_message,
    draw_integers_below,
    keyed_word_stream,
    next_integer_below,
)


def sampler_with(blocks: BlockFamily, epsilon: float) -> ReportSampler:
    """A sampler with given blocks in place of the chosen ones: so that small domains have every kind of blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sampler, "choose_blocks", lambda size, bound: blocks)
        return ReportSampler(Simplex(blocks.size), epsilon=epsilon)


def small_samplers() -> Iterator[ReportSampler]:
    for size in range(2, 13):
        for epsilon in (0.05, 0.1, 0.7, 1.0, 2.0, 5.0):
            yield ReportSampler(Simplex(size), epsilon=epsilon)
    for epsilon in (0.1, 1.0, 3.0):
        for blocks in (
            AffineBlocks(6, 7, 1, 3),
            AffineBlocks(12, 5, 2, 2),
            AffineBlocks(9, 3, 2, 1),
            RankedSubsets(9, 4),
        ):
            yield sampler_with(blocks, epsilon)


@pytest.mark.parametrize("most", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_every_report_of_every_point_mass_keeps_the_promise_in_rationals(most: int) -> None:
    for sampler in (each for each in small_samplers() if each.family.size <= most):
        outcomes = range(sampler.family.size)
        largest = exp_lower(sampler.epsilon)
        totals = dict.fromkeys(outcomes, Fraction(0))
        for report in sampler.reports().tolist():
            found = [sampler.probability(report, x) for x in outcomes]
            assert max(found) <= largest * min(found), sampler
            for x in outcomes:
                totals[x] += found[x]
        assert all(total == 1 for total in totals.values())


def test_the_bound_is_used_up() -> None:
    """A smaller N would break the promise: the ratio is within 2^-50 of e^epsilon for usual budgets."""
    for sampler in small_samplers():
        blocks, beta = sampler.blocks, Fraction(sampler.uniform_weight, TOTAL)
        fewer = beta - Fraction(1, TOTAL)
        bound = largest_ratio_for_epsilon(sampler.epsilon)
        ratio = 1 + (1 - beta) / beta * Fraction(blocks.block_count, blocks.blocks_per_point)
        broken = 1 + (1 - fewer) / fewer * Fraction(blocks.block_count, blocks.blocks_per_point)
        assert ratio <= bound < broken
        assert float(bound - ratio) < 1e-14 * float(bound)


class _Counting:
    """All words there could be, were they of a few bits: every outcome of the draw, with its weight."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def integers(self, count: int) -> np.ndarray:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.int64)


def test_draws_below_a_bound_reject_what_would_bias_them() -> None:
    bound = (1 << 61) + 1  # a remainder would favour numbers below 2^61 - 1
    found = draw_integers_below(_Counting([bound - 1, bound, (1 << 62) - 1, 5, bound + 7, 9]), bound, 3)
    assert found.tolist() == [bound - 1, 9, 5] or sorted(found.tolist()) == [5, 9, bound - 1]
    assert draw_integers_below(_Counting([(1 << 62) - 1]), 1 << 62, 1).tolist() == [(1 << 62) - 1]
    assert next_integer_below(iter([bound, 3]), bound) == 3
    for wrong in (0, (1 << 62) + 1):
        with pytest.raises(ValueError, match="bound"):
            draw_integers_below(_Counting([1]), wrong, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11])
def test_reports_are_drawn_with_the_probabilities_they_state(seed: int) -> None:
    rng = _SeededRandomness(np.random.default_rng(seed))
    samplers = [
        ReportSampler(Simplex(2), epsilon=1.0),
        ReportSampler(Simplex(8), epsilon=1.0),
        sampler_with(AffineBlocks(6, 7, 1, 3), 1.0),
        sampler_with(AffineBlocks(12, 5, 2, 2), 0.5),
        sampler_with(RankedSubsets(9, 4), 1.0),
    ]
    draws = 10**6
    for sampler in samplers:
        reports = sampler.reports()
        for outcome in (0, sampler.family.size - 1):
            drawn = sampler._draw_reports_for_outcomes(np.full(draws, outcome), rng)
            counts = np.bincount(np.searchsorted(reports, drawn), minlength=len(reports))
            expected = np.array([float(sampler.probability(report, outcome)) for report in reports.tolist()])
            assert scipy.stats.chisquare(counts, draws * expected / expected.sum()).pvalue > 1e-5, sampler


def test_a_law_is_reported_with_its_output() -> None:
    sampler, law = ReportSampler(Simplex(6), epsilon=1.0), np.array([0.0, 0.5, 0.1, 0.0, 0.4, 0.0])
    output = sampler.output(law)
    assert output.sum() == pytest.approx(1.0)
    for outcome in range(6):
        point = sampler.output(np.eye(6)[outcome])
        exact = [float(sampler.probability(report, outcome)) for report in sampler.reports().tolist()]
        assert point == pytest.approx(exact, rel=1e-13)
    with pytest.warns(NotPrivateWarning):
        drawn = sampler.release(np.tile(law, (40_000, 1)), rng=np.random.default_rng(2))
    counts = np.bincount(np.searchsorted(sampler.reports(), drawn), minlength=len(output))
    assert scipy.stats.chisquare(counts, 40_000 * output).pvalue > 1e-5


def test_outcomes_without_mass_are_never_drawn() -> None:
    rows = np.array([[0.0, 0.3, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    for words in ([0] * 3, [(1 << 62) - 1] * 3):
        assert _sampler.draw_outcomes_from_laws(rows, _Counting(words)).tolist() in ([1, 0, 4], [3, 0, 4])


def test_what_is_taken_is_what_the_linear_mechanism_takes() -> None:
    family = Simplex(["red", "green", "blue", "grey", "white", "black"])
    sampler = ReportSampler(family, epsilon=1.0)
    for p in ([0.5, 0.5, 0, 0, 0, 0], {"red": 0.5, "black": 0.5}, family.law(records=["red", "red"])):
        report = sampler.release(p)
        assert isinstance(report, int)
        assert sampler.check_reports([report]) == [report]
        assert set(sampler.outcomes_of(report)) <= set(family.labels or ())
    many = np.asarray(sampler.release(np.full((4, 3, 6), 1 / 6)))
    assert many.shape == (4, 3)
    assert many.dtype == np.uint64
    assert np.shape(sampler.release(np.zeros((0, 6)))) == (0,)
    assert sampler.release_records(["red", "blue"]).shape == (2,)
    cells = ReportSampler(Interval(0, 60, cells=12), epsilon=1.0)
    assert cells.release_records([3.0, 59.0]).shape == (2,)
    assert ReportSampler(Labels(["a", "b"]), epsilon=1.0) == ReportSampler(Simplex(["a", "b"]), privacy=Pure(1.0))
    assert repr(sampler).startswith("ReportSampler(Simplex([")
    assert "epsilon=1" in repr(sampler)
    assert "report" in sampler._repr_html_()
    assert hash(sampler) == hash(ReportSampler(family, epsilon=1.0))


def test_what_is_no_law_no_record_and_no_family_is_refused() -> None:
    sampler = ReportSampler(Simplex(6), epsilon=1.0)
    for wrong in ([0.5] * 6, [1.0], [math.nan] * 6, [-1, 2, 0, 0, 0, 0]):
        with pytest.raises(DiscreetError):
            sampler.release(wrong)
        with pytest.raises(DiscreetError):
            sampler.output(wrong)
    padded = ReportSampler(Simplex(65), epsilon=1.0)
    for padding in (65, 66, -1):
        with pytest.raises(DiscreetError, match="unknown outcomes"):
            padded.release_records(np.array([1, padding]))
        with pytest.raises(DiscreetError):
            padded.holds([1], [padding])
    assert all(padded.outcomes_of(report).max() < 65 for report in range(0, 4000, 97))
    band: Any = Band([1, 1, 1], lower=0.5, upper=2.0)
    with pytest.raises(DiscreetError, match="Simplex"):
        ReportSampler(band, epsilon=1.0)
    with pytest.raises(DiscreetError, match="pure"):
        ReportSampler(Simplex(6), privacy=Approximate(1.0, delta=1e-6))
    with pytest.raises(DiscreetError, match="larger epsilon"):
        ReportSampler(Simplex(6), epsilon=1e-300)
    with pytest.raises(DiscreetError, match="listed"):
        ReportSampler(Simplex(10**6), epsilon=0.1).reports()


def test_one_outcome_has_one_report() -> None:
    assert ReportSampler(Simplex(1), epsilon=1.0).release([1.0]) == 0


def run_key(number: int = 1) -> RunKey:
    return Secret(bytes(range(32))).run_key("ab" * 32, number, Question(value="colour"))


def test_the_same_secret_gives_the_same_report() -> None:
    for size in (2, 10, 64, 104, 1000, 10**6):
        sampler = ReportSampler(Simplex(size), epsilon=1.0)
        first = [sampler.release_keyed(run_key(), f"c{i}", [1, 0], [2, 1]) for i in range(20)]
        again = [sampler.release_keyed(run_key(), f"c{i}", [0, 1, 1], [2, 2, 2]) for i in range(20)]
        other = [sampler.release_keyed(run_key(2), f"c{i}", [1, 0], [2, 1]) for i in range(20)]
        assert first == again
        assert first != other
        assert sampler.check_reports(first).tolist() == first
    for outcomes, counts in (([1000000], [1]), ([-1], [1]), ([1], [0]), ([], []), ([1], [-1])):
        with pytest.raises(DiscreetError):
            sampler.release_keyed(run_key(), "a", outcomes, counts)


@pytest.mark.parametrize(
    ("size", "epsilon", "reports"),
    [
        (2, 1.0, [0, 0, 1]),
        (10, 1.0, [521, 52, 265]),
        (64, 0.5, [11400761305987100835, 12214171894976378668, 558702476617319424]),
        (104, 1.0, [1199, 3584, 7839]),
        (104, 4.0, [1431, 5082, 1875]),
        (10**6, 1.0, [15319898, 14683458, 17662379]),
    ],
)
def test_reports_under_a_secret_stay_what_they_are(size: int, epsilon: float, reports: list[int]) -> None:
    """Fixed for good: another choice of blocks, or another order of words, would release every client anew."""
    sampler = ReportSampler(Simplex(size), epsilon=epsilon)
    clients: list[int | str] = [7, "ann", "bob"]
    assert [sampler.release_keyed(run_key(), client, [1, 0], [2, 1]) for client in clients] == reports


def test_keyed_words_differ_by_client_and_key() -> None:
    def words(key: RunKey, client: str) -> list[int]:
        return list(islice(keyed_word_stream(key, client_message(client, [1], [1])), 20))

    found = [words(run_key(n), client) for n in (1, 2) for client in ("a", "b")]
    assert len({word for each in found for word in each}) == 80
    assert words(run_key(), "a") == found[0]
    assert all(0 <= word < 1 << 62 for each in found for word in each)


@pytest.mark.slow
def test_keyed_reports_have_the_law_that_is_stated() -> None:
    sampler, counts = ReportSampler(Simplex(6), epsilon=1.0), np.array([0, 3, 0, 1, 0, 0])
    drawn = [sampler.release_keyed(run_key(), number, [1, 3], [3, 1]) for number in range(20_000)]
    found = np.bincount(np.searchsorted(sampler.reports(), np.array(drawn, dtype=np.uint64)), minlength=15)
    assert scipy.stats.chisquare(found, 20_000 * sampler.output(counts / 4)).pvalue > 1e-5


def test_chances_are_those_of_the_blocks_as_they_are_drawn() -> None:
    for sampler in islice(small_samplers(), 20):
        inside, outside = sampler.exact_chances
        reports = sampler.reports().tolist()
        own = sum(
            (sampler.probability(report, 0) for report in reports if sampler.holds([report], [0])[0]), Fraction(0)
        )
        other = sum(
            (sampler.probability(report, 1) for report in reports if sampler.holds([report], [0])[0]), Fraction(0)
        )
        assert (inside, outside) == (own, other)


def test_variances_are_those_of_a_simulation() -> None:
    """Masks, ranks and affine blocks; the estimate of every share, to 2 % of the variance."""
    rng = _SeededRandomness(np.random.default_rng(8))
    for size, epsilon in ((40, 1.0), (104, 4.0), (104, 1.0), (1000, 2.0)):
        sampler = ReportSampler(Simplex(size), epsilon=epsilon)
        drawn = sampler._draw_reports_for_outcomes(np.arange(40_000) % size, rng)
        held = np.mean([sampler.blocks.holds(drawn, np.array([x])).mean() for x in range(0, size, max(1, size // 40))])
        gap = sampler.chances.gap
        assert held * (1 - held) / gap**2 == pytest.approx(sampler.variance(), rel=0.02)


def test_seeded_reports_warn() -> None:
    sampler = ReportSampler(Simplex(100), epsilon=1.0)
    with pytest.warns(NotPrivateWarning):
        first = sampler.release_records([1, 2, 3], rng=np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        assert (first == sampler.release_records([1, 2, 3], rng=np.random.default_rng(1))).all()


KEY = RunKey(bytes(64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "a", [0], [1]), "key = None is not a RunKey"),
        ((KEY, "a", None, [1]), "outcomes = None is not a list"),
        ((KEY, "a", [0], 3), "counts = 3 is not a list"),
        ((KEY, "a", [0], [1, 2]), "there are 1 outcomes and 2 counts"),
        ((KEY, "\ud800", [0], [1]), "is not valid Unicode"),
        ((KEY, 1 << 63, [0], [1]), "client is more than 9,223,372,036,854,775,807"),
        ((KEY, None, [0], [1]), "client = None is not a whole number; pass a text"),
        ((KEY, "a", [0, 1, 2], [1 << 62, 1 << 62, 1]), "add up to more than 2"),
    ],
)
def test_a_keyed_report_of_wrong_arguments_names_them(arguments: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        ReportSampler(Simplex(3), epsilon=1.0).release_keyed(*arguments)


def test_outcomes_that_do_not_fit_the_reports_are_refused() -> None:
    sampler = ReportSampler(Simplex(3), epsilon=1.0)
    assert sampler.holds([0, 1], [1]).tolist() == [False, True]
    with pytest.raises(DiscreetError, match="there are 3 reports and 2 outcomes; give one outcome for each"):
        sampler.holds([0, 1, 2], [0, 1])
    asked: list[Any] = [sampler.outcomes_of, lambda report: sampler.probability(report, 0)]
    for ask in asked:
        with pytest.raises(DiscreetError, match="is not one report; pass one whole number"):
            ask([])
    with pytest.raises(DiscreetError, match=r"share = 'x' is not a number"):
        sampler.variance("x")  # type: ignore[arg-type]


def test_many_reports_are_looked_at_beside_many_outcomes() -> None:
    """One in a list stands for all, in either argument: a column of reports and a list of outcomes give a table."""
    sampler = ReportSampler(Simplex(104), epsilon=1.0)
    reports = np.array([7, 1000, 3, 52], dtype=np.uint64)
    table = sampler.holds(reports[:, None], range(104))
    assert table.shape == (4, 104)
    for report, row in zip(reports.tolist(), table, strict=True):
        assert sorted(sampler.outcomes_of(report).tolist()) == np.flatnonzero(row).tolist()
    assert sampler.holds(reports, [5]).tolist() == table[:, 5].tolist()
    assert sampler.holds(reports[:1], [5, 6]).tolist() == table[0, 5:7].tolist()
