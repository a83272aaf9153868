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
    percent_interval_text,
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
    estimate: AnyPopulation,
    agreement: Agreement,
    statistics: list[Estimate],
    true_law: Any,
    lies: AnyLiars | None,
    doubts: list[str],
    top: int | None,
    *,
    by_client: bool,
) -> list[Any]:
    """The report as blocks of text."""
    sort_keys = -(estimate.law.estimate if true_law is None else true_law)
    outcomes = outcome_numbers_shown_in_table(sort_keys, estimate.finest is not None, top, TOP)
    is_ranked = true_law is None and _is_ranked_by_estimate(estimate, outcomes)
    blocks: list[Any] = [
        _headline_of_estimate(estimate, agreement),
        *notes_as_text_blocks(doubts),
        _estimated_shares_table(estimate, true_law, lies, outcomes, is_ranked=is_ranked),
    ]
    if len(estimate.counts) > len(outcomes):
        noun = "outcomes" if estimate.finest is None else "bins"
        blocks.append(f"{len(estimate.counts) - len(outcomes):,} more {noun}: --top, --json.")
    if is_ranked:
        blocks.append(_ranking_note(estimate, outcomes))
    if statistics:
        blocks.append(_statistics_table(statistics, estimate))
    blocks += [_interval_meaning_text(estimate), _influence_of_liars_text(estimate)]
    if estimate.reweighted is not None:
        blocks.append(_estimate_with_examples_text(estimate.reweighted))
    if true_law is not None:
        truth = "average client" if by_client else "average of all records (with --client: the average client)"
        blocks += [f"[bold]How near[/bold]: from the true {truth} to", _distances_from_truth_table(estimate, true_law)]
    cost = rounds_cost(agreement)
    return [*blocks, _mechanism_advice_text(estimate), *([] if cost is None else [f"[bold]Rounds[/bold]: {cost}."])]


def _headline_of_estimate(estimate: AnyPopulation, agreement: Agreement) -> str:
    clients_text = "" if estimate.rows is None else f" of {pluralise(estimate.clients, 'client')}"
    kind = mechanism_text(agreement.mechanism, any_client=serves_everybody(estimate.sampler.family))
    return (
        f"[bold]{pluralise(estimate.samples, sample_or_report_noun(estimate))}[/bold]{clients_text}, {kind} on "
        f"{safe_text(agreement.family.description, most=300)}, {privacy_promise_text(agreement.promise, agreement.epsilon)} "
        f"(agreement {agreement.id[:12]})."
    )


def sample_or_report_noun(estimate: AnyPopulation) -> str:
    """The word for what one client released: "report" or "sample"."""
    return "report" if isinstance(estimate, ReportedPopulation) else "sample"


def outcome_numbers_shown_in_table(sort_keys: Any, by_value: bool, top: int | None, default: int) -> list[int]:
    """The outcomes that come first in this order; with `by_value`, as for bins, in the order of their values."""
    limit = (MOST if by_value else default) if top is None else top
    outcomes: list[int] = np.argsort(sort_keys, kind="stable")[:limit].tolist()
    return sorted(outcomes) if by_value else outcomes


def _is_ranked_by_estimate(estimate: AnyPopulation, outcomes: list[int]) -> bool:
    """Whether outcomes are chosen by their estimates, which are random, or intervals of single ones contradict each other."""
    return len(estimate.counts) > len(outcomes) or float(estimate.law.low[outcomes].sum()) > 1.0


def _ranking_note(estimate: AnyPopulation, outcomes: list[int]) -> str:
    if len(estimate.counts) == len(outcomes):
        return (
            "[bold]Ranks[/bold]: the table is sorted by estimate. The lower ends of the intervals of single outcomes add up to more than "
            "100 %, so it shows the intervals that hold for all at once."
        )
    return (
        "[bold]Ranks[/bold]: the table lists the largest estimates, which tend to be too high. So it shows the intervals that hold for all "
        f"{len(estimate.counts):,} outcomes at once. Their lower ends add up to at most 100 %. The interval of one outcome alone (--json) "
        "holds for an outcome chosen in advance, not for one that ranks first."
    )


def _estimated_shares_table(
    estimate: AnyPopulation, true_law: Any, lies: AnyLiars | None, outcomes: list[int], *, is_ranked: bool
) -> Table:
    """The listed outcomes; if they are ranked by their estimates (`is_ranked`), only intervals that hold after ranking."""
    law, scope = estimate.law, f"all {len(estimate.counts):,} at once"
    columns = ["share, %" if estimate.exact else "samples, %"]
    columns += (
        [f"{confidence_text(estimate.confidence)} interval, {scope}"]
        if is_ranked
        else [f"{confidence_text(estimate.confidence)} interval", scope]
    )
    if lies is not None:
        columns.append(f"despite {pluralise(lies.number, 'liar')}")
    if estimate.exact:
        columns.append("nearest")
    if estimate.reweighted is not None:
        columns.append("by examples")
    if true_law is not None:
        columns.append("truth")
    table = empty_table("outcome" if estimate.finest is None else "bin", *columns)
    for outcome in outcomes:
        cells = [percent_text(law.estimate[outcome])]
        cells += [] if is_ranked else [percent_interval_text(law.low[outcome], law.high[outcome])]
        cells.append(percent_interval_text(law.all_low[outcome], law.all_high[outcome]))
        if lies is not None:
            ends = (lies.law.all_low, lies.law.all_high) if is_ranked else (lies.law.low, lies.law.high)
            cells.append(percent_interval_text(ends[0][outcome], ends[1][outcome]))
        if estimate.exact:
            cells.append(percent_text(estimate.nearest[outcome]))
        if estimate.reweighted is not None:
            cells.append(percent_text(estimate.reweighted.law[outcome]))
        if true_law is not None:
            cells.append(percent_text(true_law[outcome]))
        table.add_row(safe_text(estimate.domain.names[outcome], most=200), *cells)
    return table


def _statistics_table(statistics: list[Estimate], estimate: AnyPopulation) -> Table:
    has_cells = any(statistic.blur for statistic in statistics)
    from_reports = isinstance(estimate, ReportedPopulation)  # a share among reports is no share of clients
    columns = [*([] if from_reports else ["among samples"]), f"{confidence_text(estimate.confidence)} interval"]
    table = empty_table(
        "statistic", *(["estimate"] if estimate.exact else []), *columns, *(["of it: cells"] if has_cells else [])
    )
    for statistic in statistics:
        row = [] if statistic.estimate is None else [format_number(statistic.estimate)]
        row += [
            *([] if from_reports else [format_number(statistic.released)]),
            interval_text(statistic.low, statistic.high),
        ]
        if has_cells:
            row.append(f"+-{format_number(statistic.blur)}" if statistic.blur else "")
        table.add_row(safe_text(statistic.name), *row)
    return table


def _interval_meaning_text(estimate: AnyPopulation) -> str:
    is_simplex = isinstance(estimate.sampler.family, Simplex)
    if isinstance(estimate, ReportedPopulation) or estimate.exact:
        bounds_text = "0 and 100 %" if is_simplex else "what clients inside the family can hold"
        return (
            "Shares are unbiased estimates of the average client's, and may be negative. Column nearest is the nearest distribution, which "
            "is biased. Intervals allow for the noise of sampling. They are about the population of these clients, and are cut at "
            f"{bounds_text}."
        )
    if serves_everybody(estimate.sampler.family):
        return (
            "The samples of a designed mechanism are biased towards its reference. The bias of their shares is at most the mean TV between a "
            "client and its output distribution (`discreet design --divergence tv` states it for its examples). The intervals assume nothing "
            "about these clients, so they are wide."
        )
    clients_text = (
        ""
        if is_simplex
        else f" of clients inside the {'band' if isinstance(estimate.sampler.family, Band) else 'family'} agreed on"
    )
    bias = round_up_to_digits(estimate.largest_bias, 2)
    return (
        f"These samples do not determine the average client, in any number. An interval covers every "
        f"population{clients_text} that could have given them. The shares among the samples themselves are one of these. (Also, no "
        f"share is off by more than the worst-case TV, +-{bias:g} before noise. The intervals do not use this: like those "
        "of `discreet plan`, they use bounds for each outcome.)"
    )


def _largest_shift_text(shift: float) -> str:
    """The largest possible shift of a share, in percent: three digits, rounded up."""
    return f"{100.0 * round_up_to_digits(shift, 3):.10g} %"


def _influence_of_liars_text(estimate: AnyPopulation) -> str:
    liar, noun = liars(estimate), sample_or_report_noun(estimate) if estimate.rows is None else "client"
    range_text = (
        ""
        if estimate.exact
        else f", and an end of the range that is left for it by {_largest_shift_text(liar.band_shift)}"
    )
    blocks_text = ", those of a whole block of outcomes at once" if isinstance(estimate, ReportedPopulation) else ""
    return (
        f"[bold]Liars[/bold]: intervals allow for chance, not for lies. Each {noun} that lies, in place of an honest one or added to them, "
        f"can shift a share by {_largest_shift_text(liar.shift)}{range_text}{blocks_text}; "
        f"{count_liars_that_shift_half_interval(estimate):,} can shift it by half the longest interval. "
        "(--liars M: intervals that hold even if M of them lie.)"
    )


def _estimate_with_examples_text(reweighted: Reweighted) -> str:
    return (
        f"[bold]By examples[/bold]: the average of {pluralise(len(reweighted.weights), 'public example')}, weighted so as to explain "
        f"the samples (the examples themselves count like {reweighted.pull:,.0f} samples). It depends on the examples: it misses "
        f"clients that are unlike all of them, and no interval covers this error."
    )


def _mechanism_advice_text(estimate: AnyPopulation) -> str:
    """When to choose which mechanism, in the numbers of this agreement."""
    sampler = estimate.sampler
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
    if serves_everybody(estimate.sampler.family):
        return (
            "[bold]Which mechanism[/bold]: choose a design if each sample should look like its own client. Choose linear, without a design, "
            "to learn the population."
        )
    if not (estimate.exact or isinstance(sampler.family, Simplex)):
        return (
            "[bold]Which mechanism[/bold]: choose this one if each sample should look like its own client. To learn the population of "
            "a table, choose linear. Agree on all distributions on outcomes, or on the equal cells of an interval (`discreet agree --bounds "
            "LO HI --cells N`), because on a band linear takes members only."
        )
    samplers = {
        name: kind(sampler.family, epsilon=sampler.epsilon, discretisation=sampler.discretisation)
        for name, kind in SERVING.items()
    }
    outlooks = {
        name: outlook(
            candidate,
            mechanism=name,
            clients=estimate.clients,
            confidence=estimate.confidence,
            bins=None if estimate.finest is None else len(estimate.counts),
        )
        for name, candidate in samplers.items()
    }
    # on mixtures they differ
    risk = round_up_to_digits(max(float(candidate.risk("tv")) for candidate in samplers.values()), 2)
    few = outlooks["linear"].at_worst > outlooks["optimal"].at_worst
    linear, optimal = (round_up_to_digits(outlooks[name].at_worst, 2) for name in SERVING)
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


def _distances_from_truth_table(estimate: AnyPopulation, true_law: Any) -> Table:
    distance = [] if estimate.domain.values is None else ["Wasserstein"]
    table = empty_table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, fidelity in fidelities_of_estimated_laws(estimate, true_law).items():
        parts = [fidelity.tv, fidelity.kl, fidelity.hellinger, fidelity.largest]
        table.add_row(
            name, *map(format_number, parts if fidelity.wasserstein is None else [*parts, fidelity.wasserstein])
        )
    return table


def print_survey_estimate(options: EstimateOptions, records: Source, agreement: Agreement) -> None:
    """Answer the questions of a survey from the reports of its clients."""
    options.refuse_unusable_picture_path({"reports": records.name})
    top = TOP if options.top is None else options.top
    survey_reports = read_survey_reports(records, agreement, column=options.report_column)
    answers = answer_survey(agreement.survey_sampler(), survey_reports.reports, confidence=options.confidence)
    notes = notes_on_survey_answers(answers, named=survey_reports.named, distinct=survey_reports.distinct)
    options.save_picture(lambda plots: plots.survey(answers, most=min(top, 15)))
    blocks: list[Any] = [_headline_of_survey(answers.clients, agreement), *notes_as_text_blocks(notes)]
    for index, answer in enumerate(answers):
        blocks += [f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_clients_asked_text(answer)}"]
        blocks += _survey_answer_text_blocks(answers, index, answer, top)
    blocks.append(
        f"Intervals cover {confidence_text(options.confidence)}: each alone, and all {answers.numbers:,} numbers of the survey at once. "
        "Those of shares from the reports on one table are proved. Those from several tables, and those of means, sums and quantiles, use "
        "Gaffke's bound, a conjecture to which no counterexample is known. Intervals allow for chance, not for lies. Shares are adjusted so "
        "that tables with common columns agree. An estimate may fall below 0 by chance; intervals are cut at 0 and 100 %."
    )
    options.print_estimate(json_record_of_survey_answers(answers, agreement, notes), blocks)


def print_survey_estimate_by_group(
    options: EstimateOptions, records: Source, agreement: Agreement, groups: ClientGroups
) -> None:
    """`--by` a public column: the answers of each group, with intervals that hold for all groups at once."""
    # with all checks of an estimate
    survey_reports = read_survey_reports(records, agreement, column=options.report_column)
    reports, missing = read_survey_reports_by_group(records, groups, column=options.report_column)
    answers_by_group = answer_groups(agreement.survey_sampler(), reports, confidence=options.confidence)
    notes = notes_on_unverified_reports(named=survey_reports.named, distinct=survey_reports.distinct)
    if missing and groups.nulls == "drop":
        notes.append(f"{pluralise(missing, 'client')} without a group were left out")
    options.save_picture(lambda plots: plots.survey_groups(answers_by_group, most=options.top or 6))
    first = next(iter(answers_by_group.values()))
    blocks: list[Any] = [
        _headline_of_survey(sum(group_answers.clients for group_answers in answers_by_group.values()), agreement),
        *notes_as_text_blocks(notes),
    ]
    for index, question in enumerate(first.sampler.survey.questions):
        answers = {name: group_answers[index] for name, group_answers in answers_by_group.items()}
        blocks += [
            f"[bold]{safe_text(question.title, most=100)}[/bold]{_answer_unit_text(first[index])}",
            *_answers_by_group_text_blocks(answers, options.top, groups.column),
        ]
    numbers = first.numbers * len(answers_by_group)
    blocks.append(
        f"[bold]Intervals[/bold] hold for all {len(answers_by_group):,} groups and {numbers:,} numbers at once "
        f"({confidence_text(options.confidence)}), "
        "also for those that you pick after looking. Two groups differ where their intervals do not overlap. Groups are public: anybody who "
        "reads this file knows each client's group."
    )
    options.print_estimate(json_record_of_survey_groups(answers_by_group, agreement, notes, by=groups.column), blocks)


def print_survey_shares_within_groups(options: EstimateOptions, records: Source, agreement: Agreement, by: str) -> None:
    """`--by` a column of the survey: shares within each private group, from the questions that ask for it and another column."""
    survey_reports = read_survey_reports(records, agreement, column=options.report_column)
    answers = answer_survey(agreement.survey_sampler(), survey_reports.reports, confidence=options.confidence)
    questions = places_of_questions_with_group_shares(answers, by)
    if not questions:
        raise DiscreetError(
            f"--by {by}: no question of the survey asks for shares of {by!r} together with another column, so nothing is known within its "
            "groups; ask for it in the next survey"
        )
    notes = notes_on_unverified_reports(named=survey_reports.named, distinct=survey_reports.distinct)
    blocks: list[Any] = [_headline_of_survey(answers.clients, agreement), *notes_as_text_blocks(notes)]
    for question in questions:
        names = outcome_names_without_group_column(answers, question, by)
        most_listed = options.top or _TOP_IN_GROUPS
        table = empty_table(safe_text(by, most=40), "outcome", "share within, %", "all at once", texts=2)
        for group, law in shares_within(answers, question, by).items():
            order = np.argsort(-np.nan_to_num(law.estimate), kind="stable")[:most_listed]
            for row, outcome in enumerate(order.tolist()):
                table.add_row(
                    safe_text(group, most=60) if not row else "",
                    safe_text(names[outcome], most=60),
                    _value_or_unknown_text(100.0 * law.estimate[outcome]),
                    interval_text(100.0 * law.all_low[outcome], 100.0 * law.all_high[outcome]),
                    end_section=row == len(order) - 1,
                )
        blocks += [
            f"[bold]{safe_text(answers[question].question.title, most=100)}[/bold], within {safe_text(by, most=40)}",
            table,
            *_omitted_outcome_count_lines(len(names), most_listed),
        ]
    blocks.append(
        f"Shares within a private group are ratios. Their intervals follow from those of all {answers.numbers:,} numbers of the "
        f"survey at once ({confidence_text(options.confidence)}), so they hold together. Rare groups have wide intervals."
    )
    options.print_estimate(json_record_of_shares_within_groups(answers, notes, by=by), blocks)


def print_survey_change(
    options: EstimateOptions, sides: Sequence[tuple[Source, Agreement]], sharing: list[str]
) -> None:
    """`--compare`: the change of every answer from the other file to IN; `sharing`: notes on who took part in both."""
    (earlier, before), (later, after) = sides
    earlier_reports = read_survey_reports(earlier, before, column=options.report_column)
    later_reports = read_survey_reports(later, after, column=options.report_column)
    difference = survey_change(
        before.survey_sampler(),
        earlier_reports.reports,
        after.survey_sampler(),
        later_reports.reports,
        confidence=options.confidence,
    )
    notes = [
        *notes_on_unverified_reports(
            named=earlier_reports.named and later_reports.named,
            distinct=earlier_reports.distinct and later_reports.distinct,
        ),
        *sharing,
    ]
    options.save_picture(lambda plots: plots.survey_change(difference, most=options.top or _TOP_IN_GROUPS))
    blocks: list[Any] = [
        f"[bold]The change from {pluralise(difference.before.clients, 'report')} to {pluralise(difference.after.clients, 'report')}[/bold], "
        f"{privacy_promise_text(after.promise, after.epsilon)} (agreement {after.id[:12]}).",
        *notes_as_text_blocks(notes),
    ]
    for answer, law in zip(difference.after, difference.laws, strict=True):
        scale = 100.0 if answer.has_shares else 1.0
        table = empty_table("outcome", "change, points" if answer.has_shares else "change", "all at once", "")
        order = np.argsort(-np.abs(np.nan_to_num(law.estimate)), kind="stable")[: options.top or _TOP_IN_GROUPS]
        for outcome in order.tolist():
            sure = law.all_low[outcome] > 0.0 or law.all_high[outcome] < 0.0
            table.add_row(
                safe_text(answer.names[outcome], most=100),
                _value_or_unknown_text(scale * law.estimate[outcome]),
                interval_text(scale * law.all_low[outcome], scale * law.all_high[outcome]),
                "changed" if sure else "",
            )
        blocks += [
            f"[bold]{safe_text(answer.question.title, most=100)}[/bold]{_answer_unit_text(answer)}",
            table,
            *_omitted_outcome_count_lines(len(answer.names), len(order)),
        ]
    blocks.append(
        f"Intervals hold for all {difference.after.numbers:,} numbers at once ({confidence_text(options.confidence)}), whether the "
        "clients are the same, overlapping or different. changed: the interval excludes 0."
    )
    options.print_estimate(json_record_of_survey_change(difference, (before, after), notes), blocks)


def _answers_by_group_text_blocks(answers: dict[Any, SurveyAnswer], top: int | None, by: str) -> list[Any]:
    """The answers of each group to one question as a table with the same rows in each group, and how many more there are."""
    first = next(iter(answers.values()))
    scale = 100.0 if first.has_shares else 1.0
    mean_share = np.mean([np.nan_to_num(answer.consistent) for answer in answers.values()], axis=0)
    is_ranked = first.has_shares and first.question.kind == "shares"
    limit = top or _TOP_IN_GROUPS
    outcomes = (
        np.argsort(-mean_share, kind="stable")[:limit] if is_ranked else np.arange(len(first.names))[: max(limit, 32)]
    )
    table = empty_table(
        safe_text(by, most=40),
        "outcome",
        "asked",
        "share, %" if first.has_shares else "estimate",
        "all at once",
        texts=2,
    )
    for name, answer in answers.items():
        for row, outcome in enumerate(outcomes.tolist()):
            table.add_row(
                safe_text(name, most=60) if not row else "",
                safe_text(answer.names[outcome], most=60),
                f"{answer.clients:,}" if not row else "",
                _value_or_unknown_text(scale * answer.consistent[outcome]),
                interval_text(scale * answer.law.all_low[outcome], scale * answer.law.all_high[outcome]),
                end_section=row == len(outcomes) - 1,
            )
    return [table, *_omitted_outcome_count_lines(len(first.names), len(outcomes))]


def _omitted_outcome_count_lines(outcomes: int, listed: int) -> list[str]:
    """How many outcomes a table leaves out, if it does."""
    return [f"{outcomes - listed:,} more: --top, --json."] if outcomes > listed else []


def _headline_of_survey(clients: int, agreement: Agreement) -> str:
    assert isinstance(agreement.family, RowTerms)
    return (
        f"[bold]{pluralise(clients, 'report')}[/bold] on a survey of {safe_text(', '.join(agreement.family.columns), most=200)}, "
        f"{privacy_promise_text(agreement.promise, agreement.epsilon)} (agreement {agreement.id[:12]})."
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


def _survey_answer_text_blocks(answers: SurveyAnswers, index: int, answer: SurveyAnswer, top: int) -> list[Any]:
    """The table of one answer; of the largest shares, only intervals that hold after ranking."""
    if not answer.is_known:
        return []
    number, between = (
        (percent_text, percent_interval_text) if answer.has_shares else (_value_or_unknown_text, interval_text)
    )
    is_ranked = answer.has_shares and answer.question.kind == "shares"
    outcomes = (
        np.argsort(-answer.consistent, kind="stable")[:top]
        if is_ranked
        else np.arange(len(answer.names))[: max(top, 64)]
    )
    joint_only = len(answer.names) > len(outcomes) or (
        answer.has_shares and float(answer.law.low[outcomes].sum()) > 1.0
    )
    columns = ["share, %" if answer.has_shares else "estimate"]
    columns += [] if joint_only else ["interval"]
    table = empty_table("outcome" if answer.has_shares else "", *columns, "all at once")
    for outcome in outcomes.tolist():
        cells = [number(answer.consistent[outcome])]
        cells += [] if joint_only else [between(answer.law.low[outcome], answer.law.high[outcome])]
        cells.append(between(answer.law.all_low[outcome], answer.law.all_high[outcome]))
        table.add_row(safe_text(answer.names[outcome], most=100), *cells)
    blocks: list[Any] = [table]
    if answer.question.kind == "mean":
        total, low, high = answers.total(index)
        blocks.append(
            f"The total over {pluralise(answers.clients, 'client')}: {_total_text(total)} ({_total_text(low)} to {_total_text(high)})."
        )
    if len(answer.names) > len(outcomes):
        blocks.append(
            f"{len(answer.names) - len(outcomes):,} more: --top, --json. "
            f"The {'largest estimates' if is_ranked else f'first {len(outcomes)}'} "
            "are listed, so the table shows the intervals that hold for all at once."
        )
    return blocks


def _total_text(total: float) -> str:
    """A total to four digits; from 1,000 on without decimals, however large."""
    if not math.isfinite(total) or abs(total) < 1_000:
        return _value_or_unknown_text(total)
    return f"{float(f'{total:.4g}'):,.0f}"


def _value_or_unknown_text(value: float) -> str:
    return "not known" if math.isnan(value) else format_number(value)
