"""Answers to a survey from one private report of each client: shares without bias that agree with each other, with intervals.

**Who is asked.** A public coin asks each client one part of the survey, so those who are asked are a uniform random subset of the clients,
given how many they are. *Intervals of shares by the reports on one table hold for the average of all clients, asked or not.* Proof: let
client i report a block with outcome x with probability h_i if asked. The indicators of a uniform subset of m clients are strongly Rayleigh,
and so are they after independent thinning by h_i, since z_i -> 1 - h_i + h_i z_i preserves stability of the generating polynomial. The
generating polynomial of their sum S_x therefore has real roots alone, and S_x is distributed as a sum of m independent coins, of mean
chance (h_1 + ... + h_n)/n [Borcea, Braenden and Liggett 2009]. The intervals of `discreet.estimation._inference._intervals` hold for all such
sums.   QED

**Consistency** of tables of shares that have columns in common: `discreet.estimation._inference._least_squares`.

**Sums of shares by weighted blocks.** The value of a report is that of generalised least squares in the uniform population
(`discreet.survey._weighted_blocks`), at the g of the law as it is drawn. It is without bias in every population.

**Sums of shares, distribution functions and quantiles**: `discreet.estimation._inference._least_squares`.
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
from numpy.typing import ArrayLike, NDArray

from discreet.domain import Interval
from discreet.errors import OPEN_UNIT, DiscreetError, check_count, check_kind
from discreet.estimation._inference import (
    ReportSums,
    Shares,
    ShareTables,
    TreeLevels,
    average_upper_bound,
    coefficient_sums_of_reports,
    exact_interval_ends,
    nearest_law,
    report_sampler_of_survey_part,
    unbiased_shares_from_reports,
)
from discreet.mechanisms import ReportCounts, Reports
from discreet.release import TOTAL
from discreet.survey import (
    HistogramQuestion,
    LinearQuestion,
    MeanQuestion,
    QuantileQuestion,
    ShareQuestion,
    SurveyColumns,
    SurveyQuestion,
    SurveySampler,
    WeightedBlocks,
    Windows,
    asks_for_table,
    cell_edges,
)

Floats = NDArray[np.float64]
HOPELESS = 0.5  # total variation, or twice a standard error in parts of the range
ENOUGH = 0.1


def _asks_for_shares(question: SurveyQuestion) -> bool:
    """Whether the numbers of the answer are shares that add up to 1."""
    return isinstance(question, (ShareQuestion, HistogramQuestion)) and not isinstance(question, LinearQuestion)


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
        return _asks_for_shares(self.question)

    def rows(self) -> list[dict[str, Any]]:
        """The answer as a table: one dict for each number."""
        columns = (self.consistent, self.law.estimate, self.law.low, self.law.high, self.law.all_low, self.law.all_high)
        flat = [np.ravel(column).tolist() for column in columns]
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

    @property
    def numbers(self) -> int:
        """How many numbers there are in all answers, whose intervals hold together."""
        return sum(len(answer.names) for answer in self.answers)

    def total(self, place: int) -> tuple[float, float, float]:
        """A mean times the number of clients: the estimate and the ends of its interval.

        Args:
            place: of a question for a mean.

        Returns:
            The estimate, the lower and the upper end.

        Raises:
            DiscreetError: for another question.
        """
        most = len(self.answers) - 1
        answer = self.answers[check_count("place", place, least=0, most=most, fix="it is the place of a question")]
        if not isinstance(answer.question, MeanQuestion):
            raise DiscreetError(f"question {place} asks for {answer.question.title}; a total is that of a mean")
        ends = (answer.law.estimate, answer.law.low, answer.law.high)
        estimate, low, high = (float(values[0]) * self.clients for values in ends)
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
    intervals = sum(_interval_count_of_question(sampler, number) for number in range(len(sampler.survey.questions)))
    intervals *= check_count("among", among)
    questions = [
        _QuestionReports(
            sampler,
            number,
            [part_reports for part, part_reports in zip(sampler.parts, parts, strict=True) if part.question == number],
        )
        for number in range(len(sampler.survey.questions))
    ]
    answers = [question.answer_question(confidence, intervals) for question in questions]
    tables = ShareTables(sampler, parts)
    for number, answer in enumerate(answers):
        if asks_for_table(answer.question):
            columns = answer.question.columns
            law = tables.pooled_shares_if_better(columns, answer.clients, confidence, intervals) or answer.law
            consistent = tables.consistent_shares_of_columns(columns)
            is_known = bool(np.isfinite(law.estimate).all())
            answers[number] = replace(
                answer, law=law, consistent=consistent if is_known else np.full_like(consistent, np.nan)
            )
    return SurveyAnswers(sampler, clients, float(confidence), tuple(answers))


def _interval_count_of_question(sampler: SurveySampler, number: int) -> int:
    """How many intervals a question has."""
    match question := sampler.survey.questions[number]:
        case MeanQuestion():
            return 1
        case QuantileQuestion():
            return len(question.at)
        case LinearQuestion():
            return len(question.matrix)
    return next(part.blocks.size for part in sampler.parts if part.question == number)


def joint_labels(columns: SurveyColumns, names: Sequence[str]) -> list[str]:
    """The outcomes of some columns together, in words; those of the last column count fastest."""
    labels = [""]
    for name in names:
        labels = [
            f"{prefix}, {outcome}" if prefix else str(outcome) for prefix in labels for outcome in columns[name].names
        ]
    return labels


class _QuestionReports:
    """The reports on one question."""

    def __init__(self, sampler: SurveySampler, index: int, reports: Sequence[Reports]) -> None:
        self.sampler, self.question = sampler, sampler.survey.questions[index]
        numbers = [number for number, part in enumerate(sampler.parts) if part.question == index]
        pairs = [
            (number, part_reports) for number, part_reports in zip(numbers, reports, strict=True) if len(part_reports)
        ]
        if isinstance(self.question, QuantileQuestion) and (not pairs or pairs[-1][0] != numbers[-1]):
            pairs = []  # the cells are those of the last level
        self.numbers, self.reports = ([number for number, _ in pairs], [part_reports for _, part_reports in pairs])
        self.parts = [sampler.parts[number] for number in self.numbers]
        self.clients = sum(map(len, self.reports))

    def answer_question(self, confidence: float, among: int) -> SurveyAnswer:
        """The answer by this question's reports alone; without any, one that says nothing."""
        if not self.clients:
            return self._answer_without_reports()
        match self.question:
            case MeanQuestion():
                return self._answer_mean(confidence, among)
            case QuantileQuestion(at=at):
                return self._answer_quantiles(at, confidence, among)
            case LinearQuestion(matrix=matrix):
                return self._answer_sums(matrix, confidence, among)
        return self._answer_shares(confidence, among)

    def _answer_without_reports(self) -> SurveyAnswer:
        """The answer where nobody was asked: everything is possible."""
        names, least, most = self._labels_of_answer(), 0.0, 1.0
        domain = self.sampler.survey.columns[self.question.columns[0]]
        if isinstance(self.question, (MeanQuestion, QuantileQuestion)) and isinstance(domain, Interval):
            least, most = domain.low, domain.high
        low, high = np.full(len(names), least), np.full(len(names), most)
        if isinstance(self.question, LinearQuestion):
            low, high = self.question.matrix.min(axis=1), self.question.matrix.max(axis=1)
        unknown_values = np.full(len(names), np.nan)
        return SurveyAnswer(
            self.question,
            0,
            names,
            Shares(unknown_values, low, high, low, high),
            unknown_values,
            self._unit_of_first_column(),
        )

    def _labels_of_answer(self) -> tuple[str, ...]:
        """What each number of the answer is about."""
        columns, (column, *_) = self.sampler.survey.columns, self.question.columns
        match self.question:
            case MeanQuestion():
                return (f"mean of {column}",)
            case QuantileQuestion(at=at):
                return tuple(f"{100 * level:g} % quantile of {column}" for level in at)
            case LinearQuestion(matrix=matrix):
                return tuple(f"sum {row + 1}" for row in range(len(matrix)))
            case HistogramQuestion(cells=cells):
                edges = cell_edges(columns, column, cells)
                return tuple(f"{low:g} to {high:g}" for low, high in pairwise(edges))
        return tuple(joint_labels(columns, self.question.columns))

    def _answer_shares(self, confidence: float, among: int) -> SurveyAnswer:
        sampler = report_sampler_of_survey_part(self.sampler, self.parts[0])
        supports = ReportCounts(sampler).add(self.reports[0]).supports()

        def share_interval_ends(count: int) -> Iterator[Floats]:
            ends = exact_interval_ends(supports, self.clients, confidence, among=count)
            return (np.clip((end - sampler.chances.outside) / sampler.chances.gap, 0.0, 1.0) for end in ends)

        law = Shares(
            unbiased_shares_from_reports(sampler, self.reports[0]), *share_interval_ends(1), *share_interval_ends(among)
        )
        consistent_shares = law.estimate - (law.estimate.sum() - 1.0) / len(supports)  # the total is known
        return SurveyAnswer(self.question, self.clients, self._labels_of_answer(), law, consistent_shares)

    def _answer_mean(self, confidence: float, among: int) -> SurveyAnswer:
        column = self.question.columns[0]
        values, counts = [], []
        for number, part, part_reports in zip(self.numbers, self.parts, self.reports, strict=True):
            assert isinstance(part.blocks, Windows)
            values.append(part.blocks.unbiased_report_values(self.sampler.uniform_weights[number] / TOTAL))
            counts.append(np.bincount(part_reports.astype(np.int64), minlength=part.blocks.block_count))
        report_values, report_counts = np.concatenate(values), np.concatenate(counts)
        domain = self.sampler.survey.columns[column]
        assert isinstance(domain, Interval)
        low, width = domain.low, domain.high - domain.low
        half = 0.5 * width / domain.size

        def mean_interval_ends(count: int) -> tuple[Floats, Floats]:
            lower = -average_upper_bound(-report_values, report_counts, confidence, among=count)
            upper = average_upper_bound(report_values, report_counts, confidence, among=count)
            ends = np.clip([low + width * lower - half, low + width * upper + half], low, low + width)
            return ends[:1], ends[1:]

        estimate = np.array([low + width * float(report_values @ report_counts) / self.clients])
        law = Shares(estimate, *mean_interval_ends(1), *mean_interval_ends(among))
        return SurveyAnswer(
            self.question, self.clients, self._labels_of_answer(), law, estimate, self._unit_of_first_column()
        )

    def _unit_of_first_column(self) -> str:
        return self.sampler.survey.columns.unit_of_column(self.question.columns[0])

    def _answer_sums(self, matrix: Floats, confidence: float, among: int) -> SurveyAnswer:
        offset = matrix.mean(axis=1)
        sums = self._report_contributions_to_sums(matrix)
        estimates = offset + sums.means
        least, most = matrix.min(axis=1), matrix.max(axis=1)

        def sum_interval_ends(count: int) -> Iterator[Floats]:
            sides = (
                [sums.mean_interval_end(row, confidence, count, end) for row in range(len(matrix))] for end in (0, 1)
            )
            return (np.clip(offset + np.array(side), least, most) for side in sides)

        law = Shares(estimates, *sum_interval_ends(1), *sum_interval_ends(among))
        return SurveyAnswer(self.question, self.clients, self._labels_of_answer(), law, estimates)

    def _report_contributions_to_sums(self, matrix: Floats) -> ReportSums:
        """What each report adds to the sums in the rows of a matrix, less the means of rows."""
        part, (distinct, counts) = self.parts[0], np.unique(self.reports[0], return_counts=True)
        if isinstance(part.blocks, WeightedBlocks):
            weight = self.sampler.uniform_weights[self.numbers[0]]
            gain = float(
                Fraction(TOTAL - weight, weight) * Fraction(part.blocks.block_count, part.blocks.blocks_per_point)
            )
            values = part.blocks.unbiased_sum_values_of_reports(matrix, gain)
            return ReportSums([values[distinct.astype(np.int64)]], [counts], values.min(axis=0), values.max(axis=0))
        centred_rows = matrix - matrix.mean(axis=1, keepdims=True)
        return coefficient_sums_of_reports(
            [report_sampler_of_survey_part(self.sampler, part)], [(None, distinct, counts)], [centred_rows.T]
        )

    def _answer_quantiles(self, at: Sequence[float], confidence: float, among: int) -> SurveyAnswer:
        levels = TreeLevels(self.sampler, self.question.columns[0], self.parts, self.reports)
        estimates = levels.quantiles_at(np.asarray(at))

        def quantile_interval_ends(count: int) -> Iterator[Floats]:
            pairs = [levels.quantile_interval(level, confidence, count) for level in at]
            return (np.array(side) for side in zip(*pairs, strict=True))

        law = Shares(estimates, *quantile_interval_ends(1), *quantile_interval_ends(among))
        return SurveyAnswer(
            self.question, self.clients, self._labels_of_answer(), law, estimates, self._unit_of_first_column()
        )


@dataclass(frozen=True)
class SurveyOutlook:
    """What so many clients will tell of one question.

    Attributes:
        question: which one.
        asked: how many clients are asked the question itself, on average; tables that have its columns may tell it too.
        standard_error: of one consistent share in the uniform population, of a mean in the worst one (in its own unit), or of a distribution
            function on average. That of a mean counts clients as drawn from the population, as its interval does, even if all are asked.
        total_variation: half the expected sum of absolute errors of all shares, at most 1; None for other questions.
        hopeless: whether the answer would tell next to nothing: total variation 1/2 or more, or twice the standard error half the range
            or more.
        enough: how many clients would bring the total variation, or twice the standard error in parts of the range, to 0.1.
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
    outlooks = []
    for number, question in enumerate(sampler.survey.questions):
        error = math.sqrt(sampler.variance(number) / clients)
        variation = None
        loss = 2.0 * error
        if _asks_for_shares(question):
            outcomes = _interval_count_of_question(sampler, number)
            loss = 0.5 * outcomes * error * math.sqrt(2.0 / math.pi)  # of normal errors
            variation = min(loss, 1.0)
        scale = 1.0
        if isinstance(question, MeanQuestion):
            domain = sampler.survey.columns[question.columns[0]]
            assert isinstance(domain, Interval)
            scale = domain.high - domain.low
        if isinstance(question, LinearQuestion):
            loss /= max(float(np.ptp(question.matrix, axis=1).max()), 1e-300)
        enough = math.ceil(clients * (loss / ENOUGH) ** 2)
        asked_clients = clients * sampler.question_share(number)
        outlooks.append(SurveyOutlook(question, asked_clients, error * scale, variation, loss >= HOPELESS, enough))
    return outlooks
