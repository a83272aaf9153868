"""Answers to a survey from one private report of each client: shares without bias that agree with each other, with intervals.

**Who is asked.** A public coin asks each client one part of the survey, so those who are asked are a uniform random subset of the clients,
given how many they are. *Intervals of shares by the reports on one table hold for the average of all clients, asked or not.* Proof: let
client i report a block with outcome x with probability h_i if asked. The indicators of a uniform subset of m clients are strongly Rayleigh,
and so are they after independent thinning by h_i, since z_i -> 1 - h_i + h_i z_i preserves stability of the generating polynomial. The
generating polynomial of their sum S_x therefore has real roots alone, and S_x is distributed as a sum of m independent coins, of mean
chance (h_1 + ... + h_n)/n [Borcea, Braenden and Liggett 2009]. The intervals of `discreet.estimation._intervals` hold for all such
sums.   QED

**Consistency** of tables of shares that have columns in common: `discreet.estimation._share_tables`.

**Sums of shares by weighted blocks.** The value of a report is that of generalised least squares in the uniform population
(`discreet.survey._weighted_blocks`), at the g of the law as it is drawn. It is without bias in every population.

**Sums of shares, distribution functions.** A report B of a level or a question gives V = sum of g over B, for coefficients g of outcomes, and
(V - p_out sum g)/(p_in - p_out) has the mean of g under the client's law. Intervals for the mean of such values are
Gaffke's, whose coverage is a conjecture (`discreet.estimation._intervals`); those of means, sums and quantiles rest on it.

**Quantiles.** With F the distribution function at the edges of the cells, `F(e) >= level` is tested at each edge from the left until one is
not rejected, and `F(e) <= level` from the right: the first true hypothesis of either sequence is wrongly rejected with probability at most
(1 - confidence)/2, and the interval misses only then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.domain import Interval
from discreet.errors import OPEN_UNIT, DiscreetError, check_count, check_kind
from discreet.estimation._intervals import exact_ends, largest_average, tail
from discreet.estimation._inversion import nearest_law
from discreet.estimation._population import Shares
from discreet.estimation._report_statistics import held_outcomes, largest_sums, sums_over_blocks
from discreet.estimation._share_tables import ShareTables, part_sampler
from discreet.mechanisms import BlockFamily, ReportCounts, Reports, ReportSampler
from discreet.release import TOTAL
from discreet.survey import (
    HistogramQuestion,
    LinearQuestion,
    MeanQuestion,
    Part,
    QuantileQuestion,
    ShareQuestion,
    SurveyQuestion,
    SurveySampler,
    Tree,
    WeightedBlocks,
    Windows,
    cell_edges,
    is_table,
    level_variance,
)

Floats = NDArray[np.float64]
_NEAR, _FAR = (
    0.8,
    1.6,
)  # in units of a normal interval: edges nearer to a level are kept, and farther ones rejected, without a look
_FARTHEST, _MANY = (
    8.0,
    1000,
)  # standard errors beyond which an edge is rejected where a level has fewer reports than these
_EDGES = 16  # that are looked at together
_LARGEST_HELD = 1 << 26  # entries of a table of reports and outcomes that is kept
_GRID = 2048  # values to which contributions are rounded, outwards
HOPELESS = 0.5  # total variation, or twice a standard error in parts of the range
ENOUGH = 0.1


@dataclass(frozen=True, eq=False)
class SurveyAnswer:
    """The answer to one question.

    Attributes:
        question: which one.
        clients: how many were asked it; tables that have its columns may tell its shares too.
        names: what each number is about.
        law: the estimates with their intervals, each alone and all numbers of the survey together. Of shares, from the question's own
            reports, or from those on all small tables that tell them, if these are more precise.
        consistent: of shares, the estimates that agree with the other questions for shares, and add up to 1 (so do those of histograms);
            of others, the estimates themselves. Not a number where nobody was asked.
        unit: of the numbers, empty for shares.
    """

    question: SurveyQuestion
    clients: int
    names: tuple[str, ...]
    law: Shares
    consistent: Floats
    unit: str = ""

    @cached_property
    def nearest(self) -> Floats:
        """The shares that are nearest to the consistent ones and none of which is negative."""
        if not self.has_shares or not np.isfinite(self.consistent).all():
            return self.consistent
        return nearest_law(self.consistent.ravel()).reshape(self.consistent.shape)

    @property
    def is_known(self) -> bool:
        """Whether reports tell anything: of clients that were asked it, or a table that has its columns."""
        return bool(np.isfinite(self.law.estimate).all())

    @property
    def has_shares(self) -> bool:
        """Whether the numbers are shares that add up to 1."""
        whole = isinstance(self.question, (ShareQuestion, HistogramQuestion))
        return whole and not isinstance(self.question, LinearQuestion)

    def rows(self) -> list[dict[str, Any]]:
        """The answer as a table: one dict for each number."""
        columns = (self.consistent, self.law.estimate, self.law.low, self.law.high, self.law.all_low, self.law.all_high)
        flat = [np.ravel(each).tolist() for each in columns]
        keys = ("estimate", "alone", "low", "high", "all_low", "all_high")
        return [
            {"name": name, **dict(zip(keys, values, strict=True))}
            for name, *values in zip(self.names, *flat, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class SurveyAnswers:
    """The answers to all questions of a survey. Made by `answer_survey`.

    Attributes:
        sampler: what released the reports.
        clients: how many there are.
        confidence: of every interval.
        answers: one for each question, in order.
    """

    sampler: SurveySampler
    clients: int
    confidence: float
    answers: tuple[SurveyAnswer, ...] = field(repr=False)

    def __getitem__(self, place: int) -> SurveyAnswer:
        return self.answers[place]

    def __iter__(self) -> Iterator[SurveyAnswer]:
        return iter(self.answers)

    def total(self, place: int) -> tuple[float, float, float]:
        """A mean times the number of clients: the estimate and the ends of its interval.

        Args:
            place: of a question for a mean.

        Returns:
            The estimate, the lower and the upper end.

        Raises:
            DiscreetError: for another question.
        """
        answer = self.answers[place]
        if not isinstance(answer.question, MeanQuestion):
            raise DiscreetError(f"question {place} asks for {answer.question.title}; a total is that of a mean")
        ends = (answer.law.estimate, answer.law.low, answer.law.high)
        estimate, low, high = (float(each[0]) * self.clients for each in ends)
        return estimate, low, high


def answer_survey(
    sampler: SurveySampler, reports: ArrayLike, *, confidence: float = 0.95, among: int = 1
) -> SurveyAnswers:
    """The answers to a survey from the reports of its clients.

    Args:
        sampler: what released them.
        reports: the reports, one of each client.
        confidence: of every interval.
        among: of how many such surveys, such as groups of clients, intervals hold together.

    Returns:
        The answers, in the order of the questions.

    Raises:
        DiscreetError: for numbers that are no reports, or none at all. A question that nobody was asked gets an answer that says nothing.
    """
    check_kind("sampler", sampler, SurveySampler, "pass the one that released the reports")
    OPEN_UNIT.check("confidence", confidence)
    parts = sampler.split(reports)
    clients = sum(map(len, parts))
    if not clients:
        raise DiscreetError("there are no reports; an estimate needs at least one, and a useful one hundreds")
    intervals = sum(_interval_count(sampler, place) for place in range(len(sampler.survey.questions)))
    intervals *= check_count("among", among)
    found = [
        _QuestionReports(
            sampler, place, [each for part, each in zip(sampler.parts, parts, strict=True) if part.question == place]
        )
        for place in range(len(sampler.survey.questions))
    ]
    answers = [each.answer(confidence, intervals) for each in found]
    tables = ShareTables(sampler, parts)
    for place, answer in enumerate(answers):
        if is_table(answer.question):
            columns = answer.question.columns
            law = tables.pooled_shares(columns, answer.clients, confidence, intervals) or answer.law
            consistent = tables.consistent_shares(columns)
            known = bool(np.isfinite(law.estimate).all())
            answers[place] = replace(
                answer, law=law, consistent=consistent if known else np.full_like(consistent, np.nan)
            )
    return SurveyAnswers(sampler, clients, float(confidence), tuple(answers))


def _interval_count(sampler: SurveySampler, place: int) -> int:
    """How many intervals a question has."""
    match question := sampler.survey.questions[place]:
        case MeanQuestion():
            return 1
        case QuantileQuestion():
            return len(question.at)
        case LinearQuestion():
            return len(question.matrix)
    return next(part.blocks.size for part in sampler.parts if part.question == place)


class _QuestionReports:
    """The reports on one question."""

    def __init__(self, sampler: SurveySampler, place: int, reports: Sequence[Reports]) -> None:
        self.sampler, self.question = sampler, sampler.survey.questions[place]
        numbers = [number for number, part in enumerate(sampler.parts) if part.question == place]
        asked = [(number, given) for number, given in zip(numbers, reports, strict=True) if len(given)]
        if isinstance(self.question, QuantileQuestion) and (not asked or asked[-1][0] != numbers[-1]):
            asked = []  # the cells are those of the last level
        self.numbers, self.reports = [number for number, _ in asked], [given for _, given in asked]
        self.parts = [sampler.parts[number] for number in self.numbers]
        self.clients = sum(map(len, self.reports))

    def answer(self, confidence: float, among: int) -> SurveyAnswer:
        """The answer by this question's reports alone; without any, one that says nothing."""
        if not self.clients:
            return self._nothing()
        match self.question:
            case MeanQuestion():
                return self._mean(confidence, among)
            case QuantileQuestion(at=at):
                return self._quantiles(at, confidence, among)
            case LinearQuestion(matrix=matrix):
                return self._sums(matrix, confidence, among)
        return self._shares(confidence, among)

    def _nothing(self) -> SurveyAnswer:
        """The answer where nobody was asked: everything is possible."""
        names, least, most = self._names(), 0.0, 1.0
        domain = self.sampler.survey.columns[self.question.columns[0]]
        if isinstance(self.question, (MeanQuestion, QuantileQuestion)) and isinstance(domain, Interval):
            least, most = domain.low, domain.high
        low, high = np.full(len(names), least), np.full(len(names), most)
        if isinstance(self.question, LinearQuestion):
            low, high = self.question.matrix.min(axis=1), self.question.matrix.max(axis=1)
        unknown = np.full(len(names), np.nan)
        return SurveyAnswer(self.question, 0, names, Shares(unknown, low, high, low, high), unknown, self._unit())

    def _names(self) -> tuple[str, ...]:
        """What each number of the answer is about."""
        columns, (column, *_) = self.sampler.survey.columns, self.question.columns
        match self.question:
            case MeanQuestion():
                return (f"mean of {column}",)
            case QuantileQuestion(at=at):
                return tuple(f"{100 * level:g} % quantile of {column}" for level in at)
            case LinearQuestion(matrix=matrix):
                return tuple(f"sum {place + 1}" for place in range(len(matrix)))
            case HistogramQuestion(cells=cells):
                edges = cell_edges(columns, column, cells)
                return tuple(f"{low:g} to {high:g}" for low, high in pairwise(edges))
        labels = [""]
        for name in self.question.columns:
            labels = [f"{before}, {each}" if before else str(each) for before in labels for each in columns[name].names]
        return tuple(labels)

    def _chances(self, part: Part) -> tuple[float, float]:
        """The probability that a report holds an outcome that is not the client's, and how much more likely it holds its own."""
        sampler = self._block_sampler(part)
        return sampler.chances.outside, sampler.chances.gap

    def _block_sampler(self, part: Part) -> ReportSampler:
        return part_sampler(self.sampler, part)

    def _unbiased_part_shares(self, place: int) -> Floats:
        """The unbiased shares of a part's outcomes."""
        part, given = self.parts[place], self.reports[place]
        outside, gap = self._chances(part)
        supports = ReportCounts(self._block_sampler(part)).add(given).supports()
        return (supports / len(given) - outside) / gap

    def _shares(self, confidence: float, among: int) -> SurveyAnswer:
        part = self.parts[0]
        outside, gap = self._chances(part)
        supports = ReportCounts(self._block_sampler(part)).add(self.reports[0]).supports()

        def ends(count: int) -> Iterator[Floats]:
            held = exact_ends(supports, self.clients, confidence, among=count)
            return (np.clip((end - outside) / gap, 0.0, 1.0) for end in held)

        law = Shares((supports / self.clients - outside) / gap, *ends(1), *ends(among))
        even = law.estimate - (law.estimate.sum() - 1.0) / len(supports)  # the total is known
        return SurveyAnswer(self.question, self.clients, self._names(), law, even)

    def _mean(self, confidence: float, among: int) -> SurveyAnswer:
        column = self.question.columns[0]
        values, counts = [], []
        for number, part, given in zip(self.numbers, self.parts, self.reports, strict=True):
            assert isinstance(part.blocks, Windows)
            values.append(part.blocks.values(self.sampler.uniform_weights[number] / TOTAL))
            counts.append(np.bincount(given.astype(np.int64), minlength=part.blocks.blocks))
        seen, often = np.concatenate(values), np.concatenate(counts)
        domain = self.sampler.survey.columns[column]
        assert isinstance(domain, Interval)
        low, width = domain.low, domain.high - domain.low
        half = 0.5 * width / domain.size

        def ends(count: int) -> tuple[Floats, Floats]:
            lower = -largest_average(-seen, often, confidence, among=count)
            upper = largest_average(seen, often, confidence, among=count)
            within = np.clip([low + width * lower - half, low + width * upper + half], low, low + width)
            return within[:1], within[1:]

        estimate = np.array([low + width * float(seen @ often) / self.clients])
        law = Shares(estimate, *ends(1), *ends(among))
        return SurveyAnswer(self.question, self.clients, self._names(), law, estimate, self._unit())

    def _unit(self) -> str:
        return self.sampler.survey.columns.unit(self.question.columns[0])

    def _sums(self, matrix: Floats, confidence: float, among: int) -> SurveyAnswer:
        offset = matrix.mean(axis=1)
        sums = self._contributions(matrix)
        estimates = offset + sums.means
        least, most = matrix.min(axis=1), matrix.max(axis=1)

        def ends(count: int) -> Iterator[Floats]:
            sides = ([sums.end(place, confidence, count, end) for place in range(len(matrix))] for end in (0, 1))
            return (np.clip(offset + np.array(side), least, most) for side in sides)

        law = Shares(estimates, *ends(1), *ends(among))
        return SurveyAnswer(self.question, self.clients, self._names(), law, estimates)

    def _contributions(self, matrix: Floats) -> _Contributions:
        """What each report adds to the sums in the rows of a matrix, less the means of rows."""
        part, (distinct, often) = self.parts[0], np.unique(self.reports[0], return_counts=True)
        if isinstance(part.blocks, WeightedBlocks):
            weight = self.sampler.uniform_weights[self.numbers[0]]
            gain = float(Fraction(TOTAL - weight, weight) * Fraction(part.blocks.blocks, part.blocks.holding))
            values = part.blocks.unbiased_values(matrix, gain)
            return _Contributions([values[distinct.astype(np.int64)]], [often], values.min(axis=0), values.max(axis=0))
        centred = matrix - matrix.mean(axis=1, keepdims=True)
        return _block_contributions([part], [(None, distinct, often)], [centred.T], [self._chances(part)])

    def _quantiles(self, at: Sequence[float], confidence: float, among: int) -> SurveyAnswer:
        levels = _TreeLevels(self)
        estimates = levels.values_at(np.asarray(at))

        def ends(count: int) -> Iterator[Floats]:
            pairs = [levels.interval(level, confidence, count) for level in at]
            return (np.array(side) for side in zip(*pairs, strict=True))

        law = Shares(estimates, *ends(1), *ends(among))
        return SurveyAnswer(self.question, self.clients, self._names(), law, estimates, self._unit())


class _Contributions:
    """What each report contributes to the estimates of sums, and the intervals of their means.

    Args:
        values: for each part those of its distinct reports, (reports, sums).
        counts: how often each report came.
        least: the least value that a report can have, for each sum.
        most: the largest one.
    """

    def __init__(
        self, values: Sequence[Floats], counts: Sequence[NDArray[np.int64]], least: Floats, most: Floats
    ) -> None:
        self._values, self._counts, self._least, self._most = values, counts, least, most
        self.clients = sum(int(often.sum()) for often in counts)
        totals = (often @ each for each, often in zip(values, counts, strict=True))
        self.means = np.asarray(sum(totals) / self.clients)

    def end(self, place: int, confidence: float, among: int, end: int) -> float:
        """The lower (0) or upper (1) end of the interval of one mean: Gaffke's bound on values that are rounded outwards to a grid."""
        values = np.concatenate([each[:, place] for each in self._values])
        often = np.concatenate(self._counts)
        least, most = float(self._least[place]), float(self._most[place])
        step = (most - least) / _GRID
        if step <= 0.0:
            return least
        places = (values - least) / step
        rounded = np.ceil(places) if end else np.floor(places)
        counts = np.bincount(np.clip(rounded, 0, _GRID).astype(np.int64), weights=often, minlength=_GRID + 1)
        grid, sign = np.linspace(least, most, _GRID + 1), 1.0 if end else -1.0
        return sign * largest_average(sign * grid, counts.astype(np.int64), confidence, among=among)


def _block_contributions(
    parts: Sequence[Part],
    held: Sequence[tuple[NDArray[np.float32] | None, Reports, NDArray[np.int64]]],
    coefficients: Sequence[Floats],
    chances: Sequence[tuple[float, float]],
) -> _Contributions:
    """Sums of coefficients over the blocks of reports. Each part has its own reports and coefficients (outcomes, sums)."""
    clients = sum(int(often.sum()) for _, _, often in held)
    values: list[Floats] = []
    least = np.full(coefficients[0].shape[1], np.inf)
    most = -least
    for part, (table, distinct, often), each, (outside, gap) in zip(parts, held, coefficients, chances, strict=True):
        assert isinstance(part.blocks, BlockFamily)
        scale = clients / (int(often.sum()) * gap)
        middle = outside * each.sum(axis=0)
        sums = sums_over_blocks(part.blocks, distinct, each) if table is None else table @ each.astype(np.float32)
        values.append(scale * (sums - middle))
        least = np.minimum(least, scale * (-largest_sums(part.blocks, -each) - middle))
        most = np.maximum(most, scale * (largest_sums(part.blocks, each) - middle))
    return _Contributions(values, [often for _, _, often in held], least, most)


class _TreeLevels:
    """The distribution function of a number, by least squares over the levels of a tree."""

    def __init__(self, asked: _QuestionReports) -> None:
        self._asked = asked
        counts = [part.blocks.size for part in asked.parts]
        self._levels = counts
        deepest = counts[-1]
        branching = next(prime for prime in (2, 3, 5, 7) if deepest % prime == 0)  # 4 children are 2 of 2 each
        self._tree = Tree(branching, round(math.log(deepest, branching)))
        growth = math.exp(asked.sampler.epsilon)
        self._noise = [
            level_variance(part.blocks, growth) / len(given)
            for part, given in zip(asked.parts, asked.reports, strict=True)
            if isinstance(part.blocks, BlockFamily)
        ]
        self._chances = [asked._chances(part) for part in asked.parts]
        columns, column = asked.sampler.survey.columns, asked.question.columns[0]
        self.edges = cell_edges(columns, column, deepest)

    def _weights(self, depth: int) -> list[float]:
        """How much each level counts in the contrasts of a depth: by precision of the sums of its nodes; 0 for levels above."""
        nodes = self._tree.nodes(depth)
        precisions = [
            nodes / (count * noise) if count >= nodes else 0.0
            for count, noise in zip(self._levels, self._noise, strict=True)
        ]
        return [each / sum(precisions) for each in precisions]

    def coefficients(self, queries: Floats) -> list[Floats]:
        """The coefficients of each level's shares in linear queries of the cells, (nodes, queries), for queries (cells, queries)."""
        found = [np.zeros((count, queries.shape[1])) for count in self._levels]
        parent = queries.mean(axis=0, keepdims=True)
        for depth in range(1, self._tree.depth + 1):
            nodes = self._tree.nodes(depth)
            averages = queries.reshape(nodes, -1, queries.shape[1]).mean(axis=1)
            contrasts = averages - np.repeat(parent, self._tree.branching, axis=0)
            for place, weight in enumerate(self._weights(depth)):
                if weight:
                    found[place] += weight * np.repeat(contrasts, self._levels[place] // nodes, axis=0)
            parent = averages
        return found

    @cached_property
    def cells(self) -> Floats:
        """The least-squares shares of the cells, which add up to 1."""
        shares = [self._asked._unbiased_part_shares(place) for place in range(len(self._levels))]
        found = np.ones(1)
        for depth in range(1, self._tree.depth + 1):
            nodes = self._tree.nodes(depth)
            sums = np.zeros(nodes)
            for weight, each in zip(self._weights(depth), shares, strict=True):
                if weight:
                    sums += weight * each.reshape(nodes, -1).sum(axis=1)
            siblings = sums.reshape(-1, self._tree.branching)
            contrasts = siblings - siblings.mean(axis=1, keepdims=True)
            found = (found[:, None] / self._tree.branching + contrasts).ravel()
        return found

    @cached_property
    def distribution(self) -> Floats:
        """The unbiased distribution function at the edges."""
        return np.append(0.0, np.cumsum(self.cells))

    def values_at(self, levels: Floats) -> Floats:
        """The quantiles of the nearest distribution function that increases."""
        inner = scipy.optimize.isotonic_regression(self.distribution).x
        rising = np.clip(inner, 0.0, 1.0)
        rising[0], rising[-1] = 0.0, 1.0
        first = np.searchsorted(rising, levels, side="left").clip(1, len(rising) - 1)
        below, above = rising[first - 1], rising[first]
        part = np.where(above > below, (levels - below) / np.where(above > below, above - below, 1.0), 1.0)
        return np.asarray(self.edges[first - 1] + part * (self.edges[first] - self.edges[first - 1]))

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the distribution function at the edges, by the variance of blocks."""
        cells = self._tree.cells
        variance = np.zeros(cells + 1)
        for depth in range(1, self._tree.depth + 1):
            nodes, noise = self._tree.nodes(depth), 0.0
            for weight, count, each in zip(self._weights(depth), self._levels, self._noise, strict=True):
                noise += weight * weight * each * count / nodes
            covered = np.arange(cells + 1) * nodes / cells  # nodes below an edge, with a part of one
            node, part = np.divmod(covered, 1.0)
            siblings = node % self._tree.branching + part
            squares = node % self._tree.branching + part * part
            variance += noise * (squares - siblings * siblings / self._tree.branching)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    @cached_property
    def _edge_coefficients(self) -> list[Floats]:
        """The coefficients of each level in the distribution function at each inner edge."""
        cells = len(self.edges) - 1
        return self.coefficients((np.arange(cells)[:, None] < np.arange(1, cells)[None, :]).astype(np.float64))

    @cached_property
    def _largest_errors(self) -> Floats:
        """At least the standard errors of the distribution function at the inner edges, in any population, but for the noise of blocks."""
        spread = np.square(self.standard_errors[1:-1])
        for given, each in zip(self._asked.reports, self._edge_coefficients, strict=True):
            spread = spread + np.square(np.ptp(each, axis=0)) / (4.0 * len(given))
        return np.asarray(np.sqrt(spread))

    @cached_property
    def _report_tables(self) -> list[tuple[NDArray[np.float32] | None, Reports, NDArray[np.int64]]]:
        """Which outcomes each distinct report of a level holds, where that fits into memory; the reports; and how often each came."""
        found: list[tuple[NDArray[np.float32] | None, Reports, NDArray[np.int64]]] = []
        for part, given in zip(self._asked.parts, self._asked.reports, strict=True):
            assert isinstance(part.blocks, BlockFamily)
            distinct, often = np.unique(given, return_counts=True)
            small = len(distinct) * part.blocks.size <= _LARGEST_HELD
            found.append((held_outcomes(part.blocks, distinct) if small else None, distinct, often))
        return found

    def interval(self, level: float, confidence: float, among: int) -> tuple[float, float]:
        """An interval of a quantile, whose ends are edges of cells."""
        deviation = -float(scipy.special.ndtri(tail(confidence, among)))
        errors, largest = self.standard_errors[1:-1], self._largest_errors
        farthest = _FAR * deviation if self._asked.clients >= _MANY else _FARTHEST
        below = level - self.distribution[1:-1]  # at the inner edges, which have numbers from 1 on
        low, high = 0, len(self.edges) - 1
        for end in (1, 0):
            order = np.arange(len(below)) if end else np.arange(len(below))[::-1]
            away = below[order] if end else -below[order]
            kept = np.flatnonzero(away < _NEAR * deviation * errors[order])  # not rejected, without a look
            stop = int(kept[0]) if kept.size else len(order)
            unsure = np.flatnonzero(away[:stop] <= farthest * largest[order[:stop]])
            start = int(unsure[0]) if unsure.size else stop
            rejected = order[: start + self._rejected_first(order[start:stop], level, confidence, among, end)]
            if rejected.size and end:
                low = int(rejected[-1]) + 1
            elif rejected.size:
                high = int(rejected[-1]) + 1
        return float(self.edges[low]), float(self.edges[max(high, low)])

    def _rejected_first(
        self, sequence: NDArray[np.int64], level: float, confidence: float, among: int, end: int
    ) -> int:
        """How many edges of a sequence are rejected before the first that is not; `end`: 1 where F(e) >= level is tested, else 0."""
        for start in range(0, len(sequence), _EDGES):
            edges = sequence[start : start + _EDGES]
            coefficients = [each[:, edges] for each in self._edge_coefficients]
            sums = _block_contributions(self._asked.parts, self._report_tables, coefficients, self._chances)
            offset = (edges + 1) / (len(self.edges) - 1)  # what the contrasts leave out: the uniform law's value
            for place in range(len(edges)):
                found = offset[place] + sums.end(place, confidence, among, end)
                if found >= level if end else found <= level:
                    return start + place
        return len(sequence)


@dataclass(frozen=True)
class SurveyOutlook:
    """What so many clients will tell of one question.

    Attributes:
        question: which one.
        asked: how many clients are asked the question itself, on average; tables that have its columns may tell it too.
        standard_error: of one consistent share in the uniform population, of a mean in the worst one (in its own unit), or of a distribution
            function on average.
        total_variation: half the expected sum of absolute errors of all shares, at most 1; None for other questions.
        hopeless: whether the answer would tell next to nothing: total variation 1/2 or more, or an interval of half the range.
        enough: how many clients would bring the total variation, or twice the standard error in parts of the range, to a tenth.
    """

    question: SurveyQuestion
    asked: float
    standard_error: float
    total_variation: float | None
    hopeless: bool
    enough: int


def survey_outlook(sampler: SurveySampler, clients: int) -> list[SurveyOutlook]:
    """What a survey will tell, before anybody is asked.

    Args:
        sampler: the survey at its epsilon.
        clients: how many will send a report.

    Returns:
        One outlook for each question, in order.

    Raises:
        DiscreetError: for a number of clients that is none.
    """
    check_kind("sampler", sampler, SurveySampler, "pass SurveySampler(survey, epsilon=...)")
    clients = check_count("clients", clients)
    found = []
    for place, question in enumerate(sampler.survey.questions):
        error = math.sqrt(sampler.variance(place) / clients)
        variation = None
        lost = 2.0 * error
        if isinstance(question, (ShareQuestion, HistogramQuestion)) and not isinstance(question, LinearQuestion):
            outcomes = _interval_count(sampler, place)
            lost = 0.5 * outcomes * error * math.sqrt(2.0 / math.pi)  # of normal errors
            variation = min(lost, 1.0)
        scale = 1.0
        if isinstance(question, MeanQuestion):
            domain = sampler.survey.columns[question.columns[0]]
            assert isinstance(domain, Interval)
            scale = domain.high - domain.low
        if isinstance(question, LinearQuestion):
            lost /= max(float(np.ptp(question.matrix, axis=1).max()), 1e-300)
        enough = math.ceil(clients * (lost / ENOUGH) ** 2)
        asked = clients * sampler.question_share(place)
        found.append(SurveyOutlook(question, asked, error * scale, variation, lost >= HOPELESS, enough))
    return found
