"""The reports of `discreet estimate` in words and tables: shares, statistics, and what their intervals hold.

A report also says what liars could do, how near an estimate is to a known truth, and which mechanism serves which purpose. A survey is
answered question by question: over all clients, by public or private groups, and as the change between two files.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.table import Table

from discreet._base.showing import confidence_text, pluralise, round_up_to_digits
from discreet.agreement import Agreement, RowTerms
from discreet.cli._options import EstimateOptions, mechanism_text, privacy_promise_text
from discreet.cli._printing import (
    empty_table,
    format_number,
    interval_text,
    notes_as_text_blocks,
    percent_text,
    safe_text,
)
from discreet.errors import DiscreetError
from discreet.estimation import (
    MOST,
    AnyPopulation,
    ClientGroups,
    Estimate,
    Liars,
    ReportedPopulation,
    ReportLiars,
    Reweighted,
    SurveyAnswer,
    SurveyAnswers,
    answer_groups,
    answer_survey,
    count_liars_that_shift_half_interval,
    fidelities_of_estimated_laws,
    json_record_of_shares_within_groups,
    json_record_of_survey_answers,
    json_record_of_survey_change,
    json_record_of_survey_groups,
    liars,
    notes_on_survey_answers,
    notes_on_unverified_reports,
    outcome_names_without_group_column,
    outlook,
    places_of_questions_with_group_shares,
    read_survey_reports,
    read_survey_reports_by_group,
    rounds_cost,
    shares_within,
    survey_change,
)
from discreet.families import Band, Simplex, serves_everybody
from discreet.mechanisms import SERVING, JointSampler, ReportSampler
from discreet.tables import Source

AnyLiars = Liars | ReportLiars
TOP, _TOP_IN_GROUPS = 15, 8  # outcomes to list where nobody says how many


def text_blocks_of_estimate(
    found: AnyPopulation,
    agreed: Agreement,
    statistics: list[Estimate],
    known: Any,
    lies: AnyLiars | None,
    doubts: list[str],
    top: int | None,
    *,
    by_client: bool,
) -> list[Any]:
    """The report as blocks of text."""
    order = -(found.law.estimate if known is None else known)
    shown = outcome_numbers_shown_in_table(order, found.finest is not None, top, TOP)
    ranked = known is None and _is_ranked_by_estimate(found, shown)
    blocks: list[Any] = [
        _headline_of_estimate(found, agreed),
        *notes_as_text_blocks(doubts),
        _estimated_shares_table(found, known, lies, shown, ranked=ranked),
    ]
    if len(found.counts) > len(shown):
        what = "outcomes" if found.finest is None else "bins"
        blocks.append(f"{len(found.counts) - len(shown):,} more {what}: --top, --json.")
    if ranked:
        blocks.append(_ranking_note(found, shown))
    if statistics:
        blocks.append(_statistics_table(statistics, found))
    blocks += [_interval_meaning_text(found), _influence_of_liars_text(found)]
    if found.reweighted is not None:
        blocks.append(_estimate_with_examples_text(found.reweighted))
    if known is not None:
        truth = "average client" if by_client else "average of all records (with --client: the average client)"
        blocks += [f"[bold]How near[/bold]: from the true {truth} to", _distances_from_truth_table(found, known)]
    cost = rounds_cost(agreed)
    return [*blocks, _mechanism_advice_text(found), *([] if cost is None else [f"[bold]Rounds[/bold]: {cost}."])]


def _headline_of_estimate(found: AnyPopulation, agreed: Agreement) -> str:
    of = "" if found.rows is None else f" of {pluralise(found.clients, 'client')}"
    kind = mechanism_text(agreed.mechanism, any_client=serves_everybody(found.sampler.family))
    return (
        f"[bold]{pluralise(found.samples, sample_or_report_noun(found))}[/bold]{of}, {kind} on "
        f"{safe_text(agreed.family.description, most=300)}, {privacy_promise_text(agreed.promise, agreed.epsilon)} "
        f"(agreement {agreed.id[:12]})."
    )


def sample_or_report_noun(found: AnyPopulation) -> str:
    """The word for what one client released: "report" or "sample"."""
    return "report" if isinstance(found, ReportedPopulation) else "sample"


def outcome_numbers_shown_in_table(order: Any, along: bool, top: int | None, usual: int) -> list[int]:
    """The outcomes that come first in this order; bins `along` a line in the order of their values."""
    most = (MOST if along else usual) if top is None else top
    first: list[int] = np.argsort(order, kind="stable")[:most].tolist()
    return sorted(first) if along else first


def _is_ranked_by_estimate(found: AnyPopulation, shown: list[int]) -> bool:
    """Whether outcomes are chosen by their estimates, which are random, or intervals of single ones contradict each other."""
    return len(found.counts) > len(shown) or float(found.law.low[shown].sum()) > 1.0


def _ranking_note(found: AnyPopulation, shown: list[int]) -> str:
    if len(found.counts) == len(shown):
        return (
            "[bold]Ranks[/bold]: the table is sorted by estimate. The lower ends of the intervals of single outcomes add up to more than "
            "100 %, so it shows the intervals that hold for all at once."
        )
    return (
        "[bold]Ranks[/bold]: the table lists the largest estimates, which tend to be too high. So it shows the intervals that hold for all "
        f"{len(found.counts):,} outcomes at once. Their lower ends add up to at most 100 %. The interval of one outcome alone (--json) "
        "holds for an outcome chosen in advance, not for one that ranks first."
    )


def _estimated_shares_table(
    found: AnyPopulation, known: Any, lies: AnyLiars | None, shown: list[int], *, ranked: bool
) -> Table:
    """The listed outcomes; of those that are `ranked` by their estimates, only intervals that hold after ranking."""
    law, together = found.law, f"all {len(found.counts):,} at once"
    columns = ["share, %" if found.exact else "samples, %"]
    columns += (
        [f"{confidence_text(found.confidence)} interval, {together}"]
        if ranked
        else [f"{confidence_text(found.confidence)} interval", together]
    )
    if lies is not None:
        columns.append(f"despite {pluralise(lies.number, 'liar')}")
    if found.exact:
        columns.append("nearest")
    if found.reweighted is not None:
        columns.append("by examples")
    if known is not None:
        columns.append("truth")
    made = empty_table("outcome" if found.finest is None else "bin", *columns)
    for place in shown:
        cells = [percent_text(law.estimate[place])]
        cells += [] if ranked else [_share_interval_text(law.low[place], law.high[place])]
        cells.append(_share_interval_text(law.all_low[place], law.all_high[place]))
        if lies is not None:
            ends = (lies.law.all_low, lies.law.all_high) if ranked else (lies.law.low, lies.law.high)
            cells.append(_share_interval_text(ends[0][place], ends[1][place]))
        if found.exact:
            cells.append(percent_text(found.nearest[place]))
        if found.reweighted is not None:
            cells.append(percent_text(found.reweighted.law[place]))
        if known is not None:
            cells.append(percent_text(known[place]))
        made.add_row(safe_text(found.domain.names[place], most=200), *cells)
    return made


def _share_interval_text(low: float, high: float) -> str:
    return f"{percent_text(low)} to {percent_text(high)}"


def _statistics_table(statistics: list[Estimate], found: AnyPopulation) -> Table:
    cells = any(each.blur for each in statistics)
    reported = isinstance(found, ReportedPopulation)  # a share among reports is no share of clients
    columns = [*([] if reported else ["among samples"]), f"{confidence_text(found.confidence)} interval"]
    made = empty_table(
        "statistic", *(["estimate"] if found.exact else []), *columns, *(["of it: cells"] if cells else [])
    )
    for each in statistics:
        row = [] if each.estimate is None else [format_number(each.estimate)]
        row += [
            *([] if reported else [format_number(each.released)]),
            f"{format_number(each.low)} to {format_number(each.high)}",
        ]
        if cells:
            row.append(f"+-{format_number(each.blur)}" if each.blur else "")
        made.add_row(safe_text(each.name), *row)
    return made


def _interval_meaning_text(found: AnyPopulation) -> str:
    whole = isinstance(found.sampler.family, Simplex)
    if isinstance(found, ReportedPopulation) or found.exact:
        cut = "0 and 100 %" if whole else "what clients inside the family can hold"
        return (
            "Shares are unbiased estimates of the average client's, and may be negative. Column nearest is the nearest distribution, which "
            f"is biased. Intervals allow for the noise of sampling. They are about the population of these clients, and are cut at {cut}."
        )
    if serves_everybody(found.sampler.family):
        return (
            "The samples of a designed mechanism are biased towards its reference. The bias of their shares is at most the mean TV between a "
            "client and its output distribution (`discreet design --divergence tv` states it for its examples). The intervals assume nothing "
            "about these clients, so they are wide."
        )
    who = (
        ""
        if whole
        else f" of clients inside the {'band' if isinstance(found.sampler.family, Band) else 'family'} agreed on"
    )
    bias = round_up_to_digits(found.largest_bias, 2)
    return (
        f"These samples do not determine the average client, in any number. An interval covers every "
        f"population{who} that could have given them. The shares among the samples themselves are one of these. (Also, no "
        f"share is off by more than the worst-case TV, +-{bias:g} before noise. The intervals do not use this: like those "
        "of `discreet plan`, they use bounds for each outcome.)"
    )


def _largest_shift_text(shift: float) -> str:
    """The largest possible shift of a share, in percent: three digits, rounded up."""
    return f"{100.0 * round_up_to_digits(shift, 3):.10g} %"


def _influence_of_liars_text(found: AnyPopulation) -> str:
    one, who = liars(found), sample_or_report_noun(found) if found.rows is None else "client"
    ends = (
        "" if found.exact else f", and an end of the range that is left for it by {_largest_shift_text(one.band_shift)}"
    )
    others = ", those of a whole block of outcomes at once" if isinstance(found, ReportedPopulation) else ""
    return (
        f"[bold]Liars[/bold]: intervals allow for chance, not for lies. Each {who} that lies, in place of an honest one or added to them, "
        f"can shift a share by {_largest_shift_text(one.shift)}{ends}{others}; "
        f"{count_liars_that_shift_half_interval(found):,} can shift it by half the longest interval. "
        "(--liars M: intervals that hold even if M of them lie.)"
    )


def _estimate_with_examples_text(found: Reweighted) -> str:
    return (
        f"[bold]By examples[/bold]: the average of {pluralise(len(found.weights), 'public example')}, weighted so as to explain the samples "
        f"(the examples themselves count like {found.pull:,.0f} samples). It depends on the examples: it misses "
        f"clients that are unlike all of them, and no interval covers this error."
    )


def _mechanism_advice_text(found: AnyPopulation) -> str:
    """When to choose which mechanism, in the numbers of this agreement."""
    sampler = found.sampler
    if isinstance(sampler, ReportSampler):
        return (
            "[bold]Which mechanism[/bold]: choose reports to learn the population and nothing else (here with "
            f"{sampler.excess:.4g} times the smallest variance of any report). Choose linear if samples should also look like records, and "
            "optimal if each sample should look like its own client."
        )
    if isinstance(sampler, JointSampler):
        return (
            "[bold]Which mechanism[/bold]: choose this one if all samples of a client together should look like it. To learn the "
            "population, choose linear, with one sample of each client at the whole budget."
        )
    if serves_everybody(found.sampler.family):
        return (
            "[bold]Which mechanism[/bold]: choose a design if each sample should look like its own client. Choose linear, without a design, "
            "to learn the population."
        )
    if not (found.exact or isinstance(sampler.family, Simplex)):
        return (
            "[bold]Which mechanism[/bold]: choose this one if each sample should look like its own client. To learn the population of "
            "a table, choose linear. Agree on all distributions on outcomes, or on the equal cells of an interval (`discreet agree --bounds "
            "LO HI --cells N`), because on a band linear takes members only."
        )
    samplers = {
        name: kind(sampler.family, epsilon=sampler.epsilon, discretisation=sampler.discretisation)
        for name, kind in SERVING.items()
    }
    promised = {
        name: outlook(
            each,
            mechanism=name,
            clients=found.clients,
            confidence=found.confidence,
            bins=None if found.finest is None else len(found.counts),
        )
        for name, each in samplers.items()
    }
    risk = round_up_to_digits(max(float(each.risk("tv")) for each in samplers.values()), 2)  # on mixtures they differ
    few = promised["linear"].at_worst > promised["optimal"].at_worst
    linear, optimal = (round_up_to_digits(promised[name].at_worst, 2) for name in SERVING)
    more = (
        " With so few clients neither tells much: more clients narrow linear's margin, and not that of optimal."
        if few
        else ""
    )
    return (
        f"[bold]Which mechanism[/bold]: choose linear to learn the population. Its margin for a share is at most "
        f"+-{linear:g} here, that of optimal +-{optimal:g}.{more} Choose optimal if each sample should look like its own client. "
        f"The TV is at most {risk:g} for both, and for every client optimal is at least as close."
    )


def _distances_from_truth_table(found: AnyPopulation, known: Any) -> Table:
    distance = [] if found.domain.values is None else ["Wasserstein"]
    made = empty_table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, each in fidelities_of_estimated_laws(found, known).items():
        parts = [each.tv, each.kl, each.hellinger, each.largest]
        made.add_row(name, *map(format_number, parts if each.wasserstein is None else [*parts, each.wasserstein]))
    return made


def print_survey_estimate(asked: EstimateOptions, records: Source, agreed: Agreement) -> None:
    """Answer the questions of a survey from the reports of its clients."""
    asked.refuse_unusable_picture_path({"reports": records.name})
    top = TOP if asked.top is None else asked.top
    held = read_survey_reports(records, agreed, column=asked.report_column)
    found = answer_survey(agreed.survey_sampler(), held.reports, confidence=asked.confidence)
    notes = notes_on_survey_answers(found, named=held.named, distinct=held.distinct)
    asked.save_picture(lambda plots: plots.survey(found, most=min(top, 15)))
    blocks: list[Any] = [_headline_of_survey(found.clients, agreed), *notes_as_text_blocks(notes)]
    for place, answer in enumerate(found):
        blocks += [f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_clients_asked_text(answer)}"]
        blocks += _survey_answer_text_blocks(found, place, answer, top)
    blocks.append(
        f"Intervals cover {confidence_text(asked.confidence)}: each alone, and all {found.numbers:,} numbers of the survey at once. Those "
        "of shares from the reports on one table are proved. Those from several tables, and those of means, sums and quantiles, use "
        "Gaffke's bound, a conjecture to which no counterexample is known. Intervals allow for chance, not for lies. Shares are adjusted so "
        "that tables with common columns agree."
    )
    asked.print_estimate(json_record_of_survey_answers(found, agreed, notes), blocks)


def print_survey_estimate_by_group(
    asked: EstimateOptions, records: Source, agreed: Agreement, groups: ClientGroups
) -> None:
    """`--by` a public column: the answers of each group, with intervals that hold for all groups at once."""
    held = read_survey_reports(records, agreed, column=asked.report_column)  # with all checks of an estimate
    reports, missing = read_survey_reports_by_group(records, groups, column=asked.report_column)
    found = answer_groups(agreed.survey_sampler(), reports, confidence=asked.confidence)
    notes = notes_on_unverified_reports(named=held.named, distinct=held.distinct)
    if missing and groups.nulls == "drop":
        notes.append(f"{pluralise(missing, 'client')} without a group were left out")
    asked.save_picture(lambda plots: plots.survey_groups(found, most=asked.top or 6))
    first = next(iter(found.values()))
    blocks: list[Any] = [
        _headline_of_survey(sum(each.clients for each in found.values()), agreed),
        *notes_as_text_blocks(notes),
    ]
    for place, question in enumerate(first.sampler.survey.questions):
        answers = {name: each[place] for name, each in found.items()}
        blocks += [
            f"[bold]{safe_text(question.title, most=100)}[/bold]{_answer_unit_text(first[place])}",
            _answers_by_group_table(answers, asked.top, groups.column),
        ]
    numbers = first.numbers * len(found)
    blocks.append(
        f"[bold]Intervals[/bold] hold for all {len(found):,} groups and {numbers:,} numbers at once ({confidence_text(asked.confidence)}), "
        "also for those that you pick after looking. Two groups differ where their intervals do not overlap. Groups are public: anybody who "
        "reads this file knows each client's group."
    )
    asked.print_estimate(json_record_of_survey_groups(found, agreed, notes, by=groups.column), blocks)


def print_survey_shares_within_groups(asked: EstimateOptions, records: Source, agreed: Agreement, by: str) -> None:
    """`--by` a column of the survey: shares within each private group, from the questions that ask for it and another column."""
    held = read_survey_reports(records, agreed, column=asked.report_column)
    found = answer_survey(agreed.survey_sampler(), held.reports, confidence=asked.confidence)
    places = places_of_questions_with_group_shares(found, by)
    if not places:
        raise DiscreetError(
            f"--by {by}: no question of the survey asks for shares of {by!r} together with another column, so nothing is known within its "
            "groups; ask for it in the next survey"
        )
    notes = notes_on_unverified_reports(named=held.named, distinct=held.distinct)
    blocks: list[Any] = [_headline_of_survey(found.clients, agreed), *notes_as_text_blocks(notes)]
    for place in places:
        names = outcome_names_without_group_column(found, place, by)
        made = empty_table(safe_text(by, most=40), "outcome", "share within, %", "all at once", texts=2)
        for group, law in shares_within(found, place, by).items():
            order = np.argsort(-np.nan_to_num(law.estimate), kind="stable")[: asked.top or _TOP_IN_GROUPS]
            for row, shown in enumerate(order.tolist()):
                made.add_row(
                    safe_text(group, most=60) if not row else "",
                    safe_text(names[shown], most=60),
                    _value_or_unknown_text(100.0 * law.estimate[shown]),
                    interval_text(100.0 * law.all_low[shown], 100.0 * law.all_high[shown]),
                    end_section=row == len(order) - 1,
                )
        blocks += [
            f"[bold]{safe_text(found[place].question.title, most=100)}[/bold], within {safe_text(by, most=40)}",
            made,
        ]
    blocks.append(
        f"Shares within a private group are ratios. Their intervals follow from those of all {found.numbers:,} numbers of the "
        f"survey at once ({confidence_text(asked.confidence)}), so they hold together. Rare groups have wide intervals."
    )
    asked.print_estimate(json_record_of_shares_within_groups(found, notes, by=by), blocks)


def print_survey_change(asked: EstimateOptions, sides: Sequence[tuple[Source, Agreement]], sharing: list[str]) -> None:
    """`--compare`: the change of every answer from the other file to IN; `sharing`: notes on who took part in both."""
    (earlier, before), (later, after) = sides
    one = read_survey_reports(earlier, before, column=asked.report_column)
    two = read_survey_reports(later, after, column=asked.report_column)
    found = survey_change(
        before.survey_sampler(), one.reports, after.survey_sampler(), two.reports, confidence=asked.confidence
    )
    notes = [
        *notes_on_unverified_reports(named=one.named and two.named, distinct=one.distinct and two.distinct),
        *sharing,
    ]
    asked.save_picture(lambda plots: plots.survey_change(found, most=asked.top or _TOP_IN_GROUPS))
    blocks: list[Any] = [
        f"[bold]The change from {pluralise(found.before.clients, 'report')} to {pluralise(found.after.clients, 'report')}[/bold], "
        f"{privacy_promise_text(after.promise, after.epsilon)} (agreement {after.id[:12]}).",
        *notes_as_text_blocks(notes),
    ]
    for answer, law in zip(found.after, found.laws, strict=True):
        scale = 100.0 if answer.has_shares else 1.0
        made = empty_table("outcome", "change, points" if answer.has_shares else "change", "all at once", "")
        order = np.argsort(-np.abs(np.nan_to_num(law.estimate)), kind="stable")[: asked.top or _TOP_IN_GROUPS]
        for place in order.tolist():
            sure = law.all_low[place] > 0.0 or law.all_high[place] < 0.0
            made.add_row(
                safe_text(answer.names[place], most=100),
                _value_or_unknown_text(scale * law.estimate[place]),
                interval_text(scale * law.all_low[place], scale * law.all_high[place]),
                "changed" if sure else "",
            )
        blocks += [f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_answer_unit_text(answer)}", made]
    blocks.append(
        f"Intervals hold for all {found.after.numbers:,} numbers at once ({confidence_text(asked.confidence)}), whether the clients are "
        "the same, overlapping or different. changed: the interval excludes 0."
    )
    asked.print_estimate(json_record_of_survey_change(found, (before, after), notes), blocks)


def _answers_by_group_table(laws: dict[Any, SurveyAnswer], top: int | None, by: str) -> Table:
    """The answers of each group to one question, with the same rows in each group."""
    first = next(iter(laws.values()))
    scale = 100.0 if first.has_shares else 1.0
    mean_share = np.mean([np.nan_to_num(each.consistent) for each in laws.values()], axis=0)
    ranked = first.has_shares and first.question.kind == "shares"
    most = top or _TOP_IN_GROUPS
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
                _value_or_unknown_text(scale * each.consistent[place]),
                interval_text(scale * each.law.all_low[place], scale * each.law.all_high[place]),
                end_section=row == len(shown) - 1,
            )
    return made


def _headline_of_survey(clients: int, agreed: Agreement) -> str:
    assert isinstance(agreed.family, RowTerms)
    return (
        f"[bold]{pluralise(clients, 'report')}[/bold] on a survey of {safe_text(', '.join(agreed.family.columns), most=200)}, "
        f"{privacy_promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]})."
    )


def _answer_unit_text(answer: SurveyAnswer) -> str:
    return f", in {safe_text(answer.unit, most=30)}" if answer.unit else ""


def _clients_asked_text(answer: SurveyAnswer) -> str:
    unit = _answer_unit_text(answer)
    if not answer.is_known:
        return f"{unit}: nobody was asked, so nothing is known."
    if not answer.clients:
        return f"{unit}: estimated from tables with its columns."
    return f"{unit}: {pluralise(answer.clients, 'client')} {'was' if answer.clients == 1 else 'were'} asked it."


def _survey_answer_text_blocks(found: SurveyAnswers, place: int, answer: SurveyAnswer, top: int) -> list[Any]:
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
        cells = [_value_or_unknown_text(scale * answer.consistent[row])]
        cells += [] if together else [interval_text(scale * answer.law.low[row], scale * answer.law.high[row])]
        cells.append(interval_text(scale * answer.law.all_low[row], scale * answer.law.all_high[row]))
        made.add_row(safe_text(answer.names[row], most=100), *cells)
    blocks: list[Any] = [made]
    if answer.question.kind == "mean":
        total, low, high = found.total(place)
        blocks.append(
            f"The total over {pluralise(found.clients, 'client')}: {_value_or_unknown_text(total)} ({interval_text(low, high)})."
        )
    if len(answer.names) > len(shown):
        blocks.append(
            f"{len(answer.names) - len(shown):,} more: --top, --json. The largest estimates are listed, so the table shows the "
            "intervals that hold for all at once."
        )
    return blocks


def _value_or_unknown_text(value: float) -> str:
    return "not known" if math.isnan(value) else format_number(value)
