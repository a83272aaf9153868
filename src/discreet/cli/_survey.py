"""Surveys on the command line: `agree` and `plan` read a survey file, `estimate` answers its questions from reports."""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from discreet._base.files import check_apart
from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.cli._options import promise_text
from discreet.cli._printing import number, plain, say, table, write_json
from discreet.errors import DiscreetError
from discreet.estimation import (
    SurveyAnswer,
    SurveyAnswers,
    SurveyOutlook,
    answer_survey,
    read_survey_reports,
    survey_outlook,
)
from discreet.survey import Survey, SurveySampler
from discreet.tables import Source

SurveyFile = Annotated[
    Path | None,
    typer.Option(
        "--survey",
        metavar="FILE",
        help="Instead of a domain: a survey file, with several columns and questions that one report answers.",
    ),
]


def stated_survey(path: Path, epsilon: float | None, **options: Any) -> SurveySampler:
    """The survey in a file at an epsilon; options that have no meaning beside it are refused."""
    for name, value in options.items():
        if value is not None:
            raise DiscreetError(
                f"--{name.replace('_', '-')} has no meaning with --survey, which states its columns; leave it out"
            )
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
                "plans": [{"epsilon": each.epsilon, "questions": _outlooks(found)} for each, found in plans],
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
    say(*blocks)


def _outlook_table(found: list[SurveyOutlook]) -> Table:
    made = table("question", "asked", "standard\nerror", "whole table\noff by", "tells", "enough")
    for each in found:
        whole = "" if each.total_variation is None else number(each.total_variation, 2)
        tells = "[bold red]no[/bold red]" if each.hopeless else "yes"
        enough = f"{each.enough:,}" if each.enough < 10**9 else f"{each.enough:.2g}"
        made.add_row(
            plain(each.question.title, most=60),
            f"{each.asked:,.0f}",
            number(each.standard_error, 3),
            whole,
            tells,
            enough,
        )
    return made


def _outlooks(found: list[SurveyOutlook]) -> list[dict[str, Any]]:
    return [
        {
            "question": each.question.title,
            "asked": each.asked,
            "standard_error": each.standard_error,
            "total_variation": each.total_variation,
            "hopeless": each.hopeless,
            "enough": each.enough,
        }
        for each in found
    ]


def estimate_survey(
    records: Source,
    agreed: Agreement,
    *,
    column: str,
    confidence: float,
    top: int,
    plot: Path | None,
    json: bool,
) -> None:
    """Answer the questions of a survey from the reports of its clients."""
    if plot is not None:
        from discreet.plots import check_picture

        check_picture(plot)
        check_apart(plot, {"reports": records.name}, what="picture")
    held = read_survey_reports(records, agreed, column=column)
    found = answer_survey(agreed.survey_sampler(), held.reports, confidence=confidence)
    notes = _notes(found, named=held.named, distinct=held.distinct)
    if plot is not None:
        from discreet import plots

        plots.save(plots.survey(found, most=min(top, 15)), plot)
    if json:
        write_json(_record(found, agreed, notes))
        return
    blocks: list[Any] = [
        f"[bold]{pluralise(found.clients, 'report')}[/bold] on a survey of {plain(', '.join(found.sampler.survey.columns), most=200)}, "
        f"{promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]}).",
        *(f"[bold red]Note[/bold red]: {plain(note)}." for note in notes),
    ]
    for place, answer in enumerate(found):
        blocks += [f"[bold]{plain(answer.question.title, most=100)}[/bold]{_asked(answer)}"]
        blocks += _answer_blocks(found, place, answer, top)
    blocks.append(
        f"Intervals cover {100 * confidence:g} %: each alone, and all {_numbers(found):,} numbers of the survey at once. Those of shares "
        "are proved; those of means, sums and quantiles rest on Gaffke's bound, a conjecture without a known exception. Intervals hold "
        "chance, not lies. Shares are adjusted so that tables with common columns agree; their intervals are not made narrower by that."
    )
    if plot is not None:
        blocks.append(f"Written: {plain(str(plot))}")
    say(*blocks)


def _asked(answer: SurveyAnswer) -> str:
    unit = f", in {plain(answer.unit, most=30)}" if answer.unit else ""
    who = f"{pluralise(answer.clients, 'client')} {'was' if answer.clients == 1 else 'were'} asked"
    return f"{unit}: {who if answer.clients else 'nobody was asked, so nothing is known'}."


def _answer_blocks(found: SurveyAnswers, place: int, answer: SurveyAnswer, top: int) -> list[Any]:
    """The table of one answer; of the largest shares, only intervals that hold after ranking."""
    if not answer.clients:
        return []
    scale = 100.0 if answer.has_shares else 1.0
    ranked = answer.has_shares and answer.question.kind == "shares"
    shown = (
        np.argsort(-answer.consistent, kind="stable")[:top] if ranked else np.arange(len(answer.names))[: max(top, 64)]
    )
    together = len(answer.names) > len(shown) or (answer.has_shares and float(answer.law.low[shown].sum()) > 1.0)
    columns = ["share, %" if answer.has_shares else "estimate"]
    columns += [] if together else ["interval"]
    made = table("outcome" if answer.has_shares else "", *columns, "all at once")
    for row in shown.tolist():
        cells = [_value(scale * answer.consistent[row])]
        cells += [] if together else [_interval(scale * answer.law.low[row], scale * answer.law.high[row])]
        cells.append(_interval(scale * answer.law.all_low[row], scale * answer.law.all_high[row]))
        made.add_row(plain(answer.names[row], most=100), *cells)
    blocks: list[Any] = [made]
    if answer.question.kind == "mean":
        total, low, high = found.total(place)
        blocks.append(f"The total over {pluralise(found.clients, 'client')}: {_value(total)} ({_interval(low, high)}).")
    if len(answer.names) > len(shown):
        blocks.append(
            f"{len(answer.names) - len(shown):,} more: --top, --json. The largest estimates are listed, so their intervals are those that "
            "hold for all at once, also for those that chance put first."
        )
    return blocks


def _value(value: float) -> str:
    return "not known" if math.isnan(value) else number(value, 4)


def _interval(low: float, high: float) -> str:
    return f"{number(low, 4)} to {number(high, 4)}"


def _numbers(found: SurveyAnswers) -> int:
    return sum(len(answer.names) for answer in found)


def _notes(found: SurveyAnswers, *, named: bool, distinct: bool) -> list[str]:
    said = []
    if not named:
        said.append("the reports do not name their agreement; that they were made under this one is assumed")
    if not distinct:
        said.append("the reports do not name their clients; that each client sent one is assumed")
    silent = [answer.question.title for answer in found if not answer.clients]
    if silent:
        said.append(f"nobody was asked {', '.join(silent)}, since few clients take part")
    return said


def _record(found: SurveyAnswers, agreed: Agreement, notes: list[str]) -> dict[str, Any]:
    """The answers as JSON values; what is not known is null."""
    return {
        "agreement": {"id": agreed.id, "epsilon": agreed.epsilon, "mechanism": agreed.mechanism, "purpose": agreed.purpose},
        "clients": found.clients,
        "confidence": found.confidence,
        "questions": [
            {
                "question": answer.question.title,
                "kind": answer.question.kind,
                "columns": list(answer.question.columns),
                "unit": answer.unit or None,
                "clients": answer.clients,
                "answers": [
                    {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
                    for row in answer.rows()
                ],
                **({"total": dict(zip(("estimate", "low", "high"), found.total(place), strict=True))}
                   if answer.question.kind == "mean" and answer.clients else {}),
            }
            for place, answer in enumerate(found)
        ],
        "notes": notes,
    }  # fmt: skip
