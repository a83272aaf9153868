"""Surveys by groups of clients, within private groups, and changes of answers.

**Public groups.** The reports of each group are answered by themselves, with intervals that hold for all groups and numbers at once (the
probability of a miss is shared by all of them).

**Private groups.** A column of the survey is a group that only the client knows. Shares within it are ratios j/(j + r), of a cell j of a
table and the other cells r with the same group. The ratio grows with j and falls with r. So where intervals of all cells hold at once, it
lies between low(j)/(low(j) + high(r)) and high(j)/(high(j) + low(r)). A question for the shares of the group itself narrows this.

**Changes.** Both answers have intervals that miss with half the probability each. Where both hold, the difference lies between the
differences of opposite ends. That needs no assumption on whether the clients are the same, overlapping or others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._population import Shares
from discreet.estimation._surveys import SurveyAnswer, SurveyAnswers, answer_survey
from discreet.survey import SurveySampler

Floats = NDArray[np.float64]


def answer_groups(
    sampler: SurveySampler, reports: Mapping[Any, ArrayLike], *, confidence: float = 0.95
) -> dict[Any, SurveyAnswers]:
    """The answers to a survey in each public group of clients.

    Args:
        sampler: what released the reports.
        reports: by group, the reports of its clients.
        confidence: of every interval; those that hold together hold for all groups too.

    Returns:
        The answers by group, in the same order.

    Raises:
        DiscreetError: for no groups, a group without reports, and numbers that are no reports.
    """
    check_kind("reports", reports, Mapping, "pass a dict with the reports of each group")
    if not reports:
        raise DiscreetError("reports is empty; give at least one group")
    return {
        name: answer_survey(sampler, given, confidence=confidence, among=len(reports))
        for name, given in reports.items()
    }


@dataclass(frozen=True, eq=False)
class SurveyChange:
    """How the answers to a survey changed. Made by `survey_change`.

    Attributes:
        before: the earlier answers, with intervals of a higher confidence.
        after: the later ones, likewise.
        confidence: of the intervals of the change.
        laws: for each question the change of its numbers, with intervals of each and of all together.
    """

    before: SurveyAnswers
    after: SurveyAnswers
    confidence: float
    laws: tuple[Shares, ...] = field(repr=False)


def survey_change(
    before: SurveySampler,
    earlier: ArrayLike,
    after: SurveySampler,
    later: ArrayLike,
    *,
    confidence: float = 0.95,
) -> SurveyChange:
    """How the answers to a survey changed from one set of reports to another.

    Args:
        before: what released the earlier reports.
        earlier: those reports.
        after: what released the later ones; the same survey, perhaps at another epsilon.
        later: those reports, of the same clients or others.
        confidence: of every interval.

    Returns:
        The change of every number, the later less the earlier.

    Raises:
        DiscreetError: for two different surveys, and what `answer_survey` refuses.
    """
    for name, sampler in (("before", before), ("after", after)):
        check_kind(name, sampler, SurveySampler, "pass the one that released the reports")
    if before.survey != after.survey:
        raise DiscreetError("before and after are two surveys; a change is that of the same columns and questions")
    each = 1.0 - (1.0 - OPEN_UNIT.check("confidence", confidence)) / 2.0
    first, second = answer_survey(before, earlier, confidence=each), answer_survey(after, later, confidence=each)
    laws = tuple(_difference(one, two) for one, two in zip(first, second, strict=True))
    return SurveyChange(first, second, float(confidence), laws)


def _difference(before: SurveyAnswer, after: SurveyAnswer) -> Shares:
    one, two = before.law, after.law
    return Shares(
        after.consistent - before.consistent,
        two.low - one.high,
        two.high - one.low,
        two.all_low - one.all_high,
        two.all_high - one.all_low,
    )


def shares_within(found: SurveyAnswers, place: int, column: str) -> dict[Any, Shares]:
    """Shares within each private group: of an outcome, among those with the same outcome of one column.

    Args:
        found: what `answer_survey` returned.
        place: of a question for shares of two or three columns.
        column: the one that groups.

    Returns:
        By outcome of that column, the shares of the other columns' outcomes, with intervals that hold for all numbers of the survey at
        once (`low`, `high` and `all_low`, `all_high` are the same). An estimate is not a number in a group without an estimated share.

    Raises:
        DiscreetError: for another question, or a column that is not in it.
    """
    check_kind("found", found, SurveyAnswers, "pass what answer_survey(...) returns")
    check_kind("place", place, int, "pass the place of a question")
    check_kind("column", column, str, "pass the name of a column")
    if not 0 <= place < len(found.answers):
        raise DiscreetError(f"place = {place} is not one of the {len(found.answers)} questions, from 0 on")
    answer = found[place]
    columns = found.sampler.survey.columns
    if answer.question.kind != "shares" or len(answer.question.columns) < 2 or column not in answer.question.columns:
        raise DiscreetError(
            f"question {place} asks for {answer.question.title}; shares within {column!r} are those of a question for shares of that column "
            "and another"
        )
    axis, sizes = answer.question.columns.index(column), columns.sizes(answer.question.columns)

    def by_group(values: Floats) -> Floats:
        return np.moveaxis(values.reshape(sizes), axis, 0).reshape(sizes[axis], -1)

    cells, low, high = (by_group(each) for each in (answer.nearest, answer.law.all_low, answer.law.all_high))
    least, most = _group_ends(found, column, low, high)
    names = columns[column].names
    return {
        names[group]: _ratios(cells[group], low[group], high[group], least[group], most[group])
        for group in range(len(cells))
    }


def _group_ends(found: SurveyAnswers, column: str, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Between what the share of each group lies: by its cells, and by the question for it if there is one."""
    least, most = low.sum(axis=1), np.minimum(high.sum(axis=1), 1.0)
    for answer in found:
        if answer.question.kind == "shares" and answer.question.columns == (column,):
            least, most = np.maximum(least, answer.law.all_low), np.minimum(most, answer.law.all_high)
    return least, most


def _ratios(cells: Floats, low: Floats, high: Floats, least: float, most: float) -> Shares:
    """The shares of cells within their sum, which lies between `least` and `most`."""
    total = cells.sum()
    estimate = cells / total if total > 0.0 else np.full(len(cells), np.nan)
    others_high, others_low = high.sum() - high, low.sum() - low
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(low > 0.0, low / np.minimum(low + others_high, max(most, 1e-300)), 0.0)
        widest = np.maximum(high + others_low, least)
        top = np.where(widest > 0.0, high / widest, 1.0)
    bottom, top = np.clip(bottom, 0.0, 1.0), np.clip(top, 0.0, 1.0)
    return Shares(estimate, bottom, top, bottom, top)
