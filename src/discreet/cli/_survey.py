"""Surveys on the command line: `agree` and `plan` read a survey file, `estimate` answers its questions from reports."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from discreet._base.showing import pluralise
from discreet.agreement import Agreement, RowTerms
from discreet.cli._options import EstimateOptions, SurveyFile as SurveyFile, promise_text, refuse_given
from discreet.cli._printing import empty_table, format_number, note_lines, print_blocks, safe_text, write_json
from discreet.errors import DiscreetError
from discreet.estimation import (
    ClientGroups,
    SurveyAnswer,
    SurveyAnswers,
    SurveyOutlook,
    answer_groups,
    answer_survey,
    names_within,
    naming_notes,
    questions_within,
    read_survey_reports,
    shares_within,
    survey_change,
    survey_change_record,
    survey_groups_record,
    survey_notes,
    survey_outlook,
    survey_record,
    survey_reports_by_group,
    within_record,
)
from discreet.survey import Survey, SurveySampler
from discreet.tables import Source

_TOP, _TOP_OF_GROUPS = 15, 8  # outcomes to list where nobody says how many


def stated_survey(path: Path, epsilon: float | None, **options: Any) -> SurveySampler:
    """The survey in a file at an epsilon; options that have no meaning beside it are refused."""
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    refuse_given(named, "has no meaning with --survey; leave it out")
    if epsilon is None:
        raise DiscreetError("--epsilon is missing: the budget of the one report that each client sends")
    return SurveySampler(Survey.read(path), epsilon=epsilon)


def print_survey_plan(samplers: list[SurveySampler], clients: int, *, json: bool) -> None:
    """Print what so many clients will tell of each question, at each epsilon."""
    outlooks = [survey_outlook(sampler, clients) for sampler in samplers]
    if json:
        plans = zip(samplers, outlooks, strict=True)
        write_json(
            {
                "clients": clients,
                "plans": [{"epsilon": each.epsilon, "questions": _outlook_records(found)} for each, found in plans],
            }
        )
        return
    blocks: list[Any] = []
    for sampler, found in zip(samplers, outlooks, strict=True):
        blocks.append(
            f"[bold]{pluralise(clients, 'client')}, epsilon = {sampler.epsilon:g}[/bold]: one report of each client, which answers one "
            "question with the whole budget."
        )
        blocks.append(_outlook_table(found))
    hopeless = any(each.hopeless for found in outlooks for each in found)
    blocks.append(
        "standard error: of one share in the uniform population, of a mean in the worst one, of a distribution function on average. whole "
        "table off by: half the expected sum of absolute errors of all shares. enough: clients that bring this, or twice the standard error "
        "in parts of the range, to a tenth."
    )
    if hopeless:
        blocks.append(
            "[bold red]no[/bold red]: the answer would tell next to nothing. Leave such questions out, ask coarser columns, or ask more "
            "clients: each question takes clients from the others."
        )
    print_blocks(*blocks)


def _outlook_table(found: list[SurveyOutlook]) -> Table:
    made = empty_table("question", "asked", "standard\nerror", "whole table\noff by", "tells", "enough")
    for each in found:
        whole = format_number(each.total_variation, 2)
        tells = "[bold red]no[/bold red]" if each.hopeless else "yes"
        enough = f"{each.enough:,}" if each.enough < 10**9 else f"{each.enough:.2g}"
        made.add_row(
            safe_text(each.question.title, most=60),
            f"{each.asked:,.0f}",
            format_number(each.standard_error, 3),
            whole,
            tells,
            enough,
        )
    return made


def _outlook_records(found: list[SurveyOutlook]) -> list[dict[str, Any]]:
    return [{**vars(each), "question": each.question.title} for each in found]


def estimate_survey(asked: EstimateOptions, records: Source, agreed: Agreement) -> None:
    """Answer the questions of a survey from the reports of its clients."""
    asked.check_picture({"reports": records.name})
    top = _TOP if asked.top is None else asked.top
    held = read_survey_reports(records, agreed, column=asked.report_column)
    found = answer_survey(agreed.survey_sampler(), held.reports, confidence=asked.confidence)
    notes = survey_notes(found, named=held.named, distinct=held.distinct)
    asked.save_picture(lambda plots: plots.survey(found, most=min(top, 15)))
    blocks: list[Any] = [_headline(found.clients, agreed), *note_lines(notes)]
    for place, answer in enumerate(found):
        blocks += [f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_asked_text(answer)}"]
        blocks += _answer_blocks(found, place, answer, top)
    blocks.append(
        f"Intervals cover {100 * asked.confidence:g} %: each alone, and all {found.numbers:,} numbers of the survey at once. Those "
        "of shares from the reports on one table are proved. Those from several tables, of means, sums and quantiles rest on Gaffke's "
        "bound, a conjecture without a known exception. Intervals hold chance, not lies. Shares are adjusted so that tables with common "
        "columns agree."
    )
    asked.show(survey_record(found, agreed, notes), blocks)


def estimate_survey_groups(asked: EstimateOptions, records: Source, agreed: Agreement, groups: ClientGroups) -> None:
    """`--by` a public column: the answers of each group, with intervals that hold for all groups at once."""
    held = read_survey_reports(records, agreed, column=asked.report_column)  # with all checks of an estimate
    reports, missing = survey_reports_by_group(records, groups, column=asked.report_column)
    found = answer_groups(agreed.survey_sampler(), reports, confidence=asked.confidence)
    notes = naming_notes(named=held.named, distinct=held.distinct)
    if missing and groups.nulls == "drop":
        notes.append(f"{pluralise(missing, 'client')} without a group were left out")
    asked.save_picture(lambda plots: plots.survey_groups(found, most=asked.top or 6))
    first = next(iter(found.values()))
    blocks: list[Any] = [_headline(sum(each.clients for each in found.values()), agreed), *note_lines(notes)]
    for place, question in enumerate(first.sampler.survey.questions):
        answers = {name: each[place] for name, each in found.items()}
        blocks += [
            f"[bold]{safe_text(question.title, most=100)}[/bold]{_unit_text(first[place])}",
            _groups_table(answers, asked.top, groups.column),
        ]
    numbers = first.numbers * len(found)
    blocks.append(
        f"[bold]Intervals[/bold] hold for all {len(found):,} groups and {numbers:,} numbers at once ({100 * asked.confidence:g} %), also "
        "for those that you pick after looking: two groups differ where theirs do not overlap. Groups are public: whoever reads this file "
        "knows each client's."
    )
    asked.show(survey_groups_record(found, agreed, notes, by=groups.column), blocks)


def estimate_within(asked: EstimateOptions, records: Source, agreed: Agreement, by: str) -> None:
    """`--by` a column of the survey: shares within each private group, from the questions that ask for it and another column."""
    held = read_survey_reports(records, agreed, column=asked.report_column)
    found = answer_survey(agreed.survey_sampler(), held.reports, confidence=asked.confidence)
    places = questions_within(found, by)
    if not places:
        raise DiscreetError(
            f"--by {by}: no question of the survey asks for shares of {by!r} together with another column, so nothing is known within its "
            "groups; ask for it in the next survey"
        )
    notes = naming_notes(named=held.named, distinct=held.distinct)
    blocks: list[Any] = [_headline(found.clients, agreed), *note_lines(notes)]
    for place in places:
        names = names_within(found, place, by)
        made = empty_table(safe_text(by, most=40), "outcome", "share within, %", "all at once", texts=2)
        for group, law in shares_within(found, place, by).items():
            order = np.argsort(-np.nan_to_num(law.estimate), kind="stable")[: asked.top or _TOP_OF_GROUPS]
            for row, shown in enumerate(order.tolist()):
                made.add_row(
                    safe_text(group, most=60) if not row else "",
                    safe_text(names[shown], most=60),
                    _value_text(100.0 * law.estimate[shown]),
                    _interval_text(100.0 * law.all_low[shown], 100.0 * law.all_high[shown]),
                    end_section=row == len(order) - 1,
                )
        blocks += [
            f"[bold]{safe_text(found[place].question.title, most=100)}[/bold], within {safe_text(by, most=40)}",
            made,
        ]
    blocks.append(
        f"Shares within a private group are ratios. Their intervals follow from those of all {found.numbers:,} numbers of the "
        f"survey at once ({100 * asked.confidence:g} %), so they hold together. A group that is rare has wide ones."
    )
    asked.show(within_record(found, notes, by=by), blocks)


def estimate_survey_change(
    asked: EstimateOptions, sides: Sequence[tuple[Source, Agreement]], sharing: list[str]
) -> None:
    """`--compare`: the change of every answer from the other file to IN; `sharing`: notes on who took part in both."""
    (earlier, before), (later, after) = sides
    one = read_survey_reports(earlier, before, column=asked.report_column)
    two = read_survey_reports(later, after, column=asked.report_column)
    found = survey_change(
        before.survey_sampler(), one.reports, after.survey_sampler(), two.reports, confidence=asked.confidence
    )
    notes = [*naming_notes(named=one.named and two.named, distinct=one.distinct and two.distinct), *sharing]
    asked.save_picture(lambda plots: plots.survey_change(found, most=asked.top or _TOP_OF_GROUPS))
    blocks: list[Any] = [
        f"[bold]The change from {pluralise(found.before.clients, 'report')} to {pluralise(found.after.clients, 'report')}[/bold], "
        f"{promise_text(after.promise, after.epsilon)} (agreement {after.id[:12]}).",
        *note_lines(notes),
    ]
    for answer, law in zip(found.after, found.laws, strict=True):
        scale = 100.0 if answer.has_shares else 1.0
        made = empty_table("outcome", "change, points" if answer.has_shares else "change", "all at once", "")
        order = np.argsort(-np.abs(np.nan_to_num(law.estimate)), kind="stable")[: asked.top or _TOP_OF_GROUPS]
        for place in order.tolist():
            sure = law.all_low[place] > 0.0 or law.all_high[place] < 0.0
            made.add_row(
                safe_text(answer.names[place], most=100),
                _value_text(scale * law.estimate[place]),
                _interval_text(scale * law.all_low[place], scale * law.all_high[place]),
                "changed" if sure else "",
            )
        blocks += [f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_unit_text(answer)}", made]
    blocks.append(
        f"Intervals hold for all {found.after.numbers:,} numbers at once ({100 * asked.confidence:g} %), whether the clients are "
        "the same, overlapping or others. changed: the interval excludes 0."
    )
    asked.show(survey_change_record(found, (before, after), notes), blocks)


def _groups_table(laws: dict[Any, SurveyAnswer], top: int | None, by: str) -> Table:
    """The answers of each group to one question, with the same rows in each group."""
    first = next(iter(laws.values()))
    scale = 100.0 if first.has_shares else 1.0
    mean_share = np.mean([np.nan_to_num(each.consistent) for each in laws.values()], axis=0)
    ranked = first.has_shares and first.question.kind == "shares"
    most = top or _TOP_OF_GROUPS
    shown = np.argsort(-mean_share, kind="stable")[:most] if ranked else np.arange(len(first.names))[:32]
    made = empty_table(
        safe_text(by, most=40),
        "outcome",
        "asked",
        "share, %" if first.has_shares else "estimate",
        "all at once",
        texts=2,
    )
    for name, each in laws.items():
        for row, place in enumerate(shown.tolist()):
            made.add_row(
                safe_text(name, most=60) if not row else "",
                safe_text(each.names[place], most=60),
                f"{each.clients:,}" if not row else "",
                _value_text(scale * each.consistent[place]),
                _interval_text(scale * each.law.all_low[place], scale * each.law.all_high[place]),
                end_section=row == len(shown) - 1,
            )
    return made


def _headline(clients: int, agreed: Agreement) -> str:
    assert isinstance(agreed.family, RowTerms)
    return (
        f"[bold]{pluralise(clients, 'report')}[/bold] on a survey of {safe_text(', '.join(agreed.family.columns), most=200)}, "
        f"{promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]})."
    )


def _unit_text(answer: SurveyAnswer) -> str:
    return f", in {safe_text(answer.unit, most=30)}" if answer.unit else ""


def _asked_text(answer: SurveyAnswer) -> str:
    unit = _unit_text(answer)
    if not answer.is_known:
        return f"{unit}: nobody was asked, so nothing is known."
    if not answer.clients:
        return f"{unit}: told by tables with its columns."
    return f"{unit}: {pluralise(answer.clients, 'client')} {'was' if answer.clients == 1 else 'were'} asked it."


def _answer_blocks(found: SurveyAnswers, place: int, answer: SurveyAnswer, top: int) -> list[Any]:
    """The table of one answer; of the largest shares, only intervals that hold after ranking."""
    if not answer.is_known:
        return []
    scale = 100.0 if answer.has_shares else 1.0
    ranked = answer.has_shares and answer.question.kind == "shares"
    shown = (
        np.argsort(-answer.consistent, kind="stable")[:top] if ranked else np.arange(len(answer.names))[: max(top, 64)]
    )
    together = len(answer.names) > len(shown) or (answer.has_shares and float(answer.law.low[shown].sum()) > 1.0)
    columns = ["share, %" if answer.has_shares else "estimate"]
    columns += [] if together else ["interval"]
    made = empty_table("outcome" if answer.has_shares else "", *columns, "all at once")
    for row in shown.tolist():
        cells = [_value_text(scale * answer.consistent[row])]
        cells += [] if together else [_interval_text(scale * answer.law.low[row], scale * answer.law.high[row])]
        cells.append(_interval_text(scale * answer.law.all_low[row], scale * answer.law.all_high[row]))
        made.add_row(safe_text(answer.names[row], most=100), *cells)
    blocks: list[Any] = [made]
    if answer.question.kind == "mean":
        total, low, high = found.total(place)
        blocks.append(
            f"The total over {pluralise(found.clients, 'client')}: {_value_text(total)} ({_interval_text(low, high)})."
        )
    if len(answer.names) > len(shown):
        blocks.append(
            f"{len(answer.names) - len(shown):,} more: --top, --json. The largest estimates are listed, so their intervals are those that "
            "hold for all at once, also for those that chance put first."
        )
    return blocks


def _value_text(value: float) -> str:
    return "not known" if math.isnan(value) else format_number(value, 4)


def _interval_text(low: float, high: float) -> str:
    return f"{format_number(low, 4)} to {format_number(high, 4)}"
