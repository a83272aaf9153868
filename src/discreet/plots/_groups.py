"""Pictures of groups, changes and surveys.

`groups` draws small multiples with the same outcomes in every panel, `change` the change of every share with its interval. `survey` draws a
panel for each question, with intervals that hold for all numbers at once; `survey_groups` and `survey_change` do so by group, and as changes.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet._base.showing import confidence_text, pluralise
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.estimation import (
    Change,
    GroupedPopulation,
    ReportedPopulation,
    Shares,
    SurveyAnswer,
    SurveyAnswers,
    SurveyChange,
)
from discreet.plots import _style as style, privacy_label
from discreet.plots._style import Axes, AxesLike, Figure

_MOST_PANELS = 24
_COLUMNS = 4
_GROUP_ROW = 0.35  # inches for each row of a panel of groups
_SURVEY_COLUMNS = 3
_MOST_CELLS = 40  # of a row or a column of a table of colours
_SURVEY_ROW = 0.32  # inches for each row of a panel of a survey
_GROUP_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#767676", "#222222"]


def groups(found: GroupedPopulation, *, most: int = 8, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """Draw groups of clients as small multiples: the same outcomes in every panel, with intervals that hold all at once.

    Args:
        found: What `discreet.estimation.estimate_groups` returned.
        most: The number of labels in each panel, the largest shares of all clients first; cells of an interval are all shown.
        ax: Axes to draw on, one for each of the first 24 groups; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is something else, or `ax` does not have one axes for each group.
    """
    check_kind("found", found, GroupedPopulation, "pass what discreet.estimation.estimate_groups(...) returns")
    check_count("most", most)
    names = list(found.groups)[:_MOST_PANELS]
    style.refuse_wrong_axes_or_title(ax, title, len(names))
    first = next(iter(found.groups.values()))
    rows = math.ceil(len(names) / _COLUMNS) if ax is None else 1
    columns = math.ceil(len(names) / rows)
    overall = found.whole.law.estimate
    outcomes = np.argsort(-overall, kind="stable")[:most]
    panel_height = 2.2 if first.domain.edges is not None else 0.75 + _GROUP_ROW * len(outcomes)
    if ax is None:
        default_title = _default_groups_title(found)
        title = style.drawable_text_or_fallback(title or default_title, default_title)
    with style.using_library_style():
        size, share = (2.2 + 2.3 * columns, 1.0 + rows * panel_height), first.domain.edges is None
        figure, panels = style.new_or_given_figure_and_panels(ax, title, size=size, panels=(rows, columns), share=share)
        for index, (axes, name) in enumerate(zip(panels, names, strict=False)):
            style.write_panel_title(
                axes,
                style.short_drawable_name(name, f"group {index + 1}", 24),
                f"{found.groups[name].clients:,} clients{', tell nothing' if name in found.silent else ''}",
            )
            if first.domain.edges is not None:
                _draw_group_densities(axes, found, name, overall)
            else:
                _draw_group_shares(axes, found, name, overall, outcomes, labels=index % columns == 0)
        _set_common_axis_limits(panels, found, outcomes)
        outcome_count, confidence = len(overall), confidence_text(found.confidence)
        caption = f"{confidence} intervals, all {len(found.groups):,} groups and {outcome_count:,} outcomes at once; grey: all clients"
        if first.domain.edges is None and len(outcomes) < outcome_count:
            caption += f"; {pluralise(outcome_count - len(outcomes), 'more outcome')} not shown"
        if len(names) < len(found.groups):
            caption += f"; {pluralise(len(found.groups) - len(names), 'more group')} not shown"
        _hide_unused_panels_and_write_caption(figure, panels, len(names), caption, new=ax is None)
    return figure


def _hide_unused_panels_and_write_caption(
    figure: Figure, panels: list[Axes], panel_count: int, caption: str, *, new: bool
) -> None:
    """Hide the panels that are left, and write below what the others show."""
    for axes in panels[panel_count:]:
        axes.set_visible(False)
    if new:
        figure.supxlabel(caption, x=0.012, ha="left", fontsize=9, color=style.INK)
    else:
        panels[0].set_xlabel(caption, loc="left")


def _set_common_axis_limits(panels: list[Axes], estimates: GroupedPopulation, outcomes: np.ndarray) -> None:
    """Give all panels one scale. A group that tells nothing reaches from 0 to 1, and would hide the others: it is cut."""
    laws = [law for name, law in estimates.laws.items() if name not in estimates.silent] or [*estimates.laws.values()]
    edges = next(iter(estimates.groups.values())).domain.edges
    if edges is None:
        right = max(float(law.all_high[outcomes].max()) for law in laws)
        for axes in panels:
            axes.set_xlim(-0.05 * right, 1.05 * right)
        return
    width = np.diff(edges)
    top = max(float((np.maximum(law.all_high, law.estimate) / width).max()) for law in laws)
    bottom = min(0.0, *(float((law.estimate / width).min()) for law in laws))
    for axes in panels:
        axes.set_ylim(1.05 * bottom, 1.05 * top)


def _default_groups_title(estimates: GroupedPopulation) -> str:
    first = next(iter(estimates.groups.values()))
    noun = "reports" if isinstance(first, ReportedPopulation) else "samples"
    promise = privacy_label(first.sampler.privacy, first.sampler.epsilon)
    return f"{len(estimates.groups):,} groups behind {estimates.clients:,} private {noun} {promise}"


def _draw_group_shares(
    axes: Axes, estimates: GroupedPopulation, name: object, overall: np.ndarray, outcomes: np.ndarray, *, labels: bool
) -> None:
    law, group = estimates.laws[name], estimates.groups[name]
    rows, colour = np.arange(len(outcomes)), style.estimate_colour(exact=group.exact)
    axes.hlines(rows, law.all_low[outcomes], law.all_high[outcomes], color=colour, linewidth=5.0, alpha=0.28)
    inside = np.clip(law.estimate, law.all_low, law.all_high)  # an unbiased estimate may lie outside [0, 1]
    face = "white" if name in estimates.silent else colour
    axes.scatter(inside[outcomes], rows, s=30, facecolor=face, edgecolor=colour, zorder=3)
    axes.vlines(
        np.clip(overall[outcomes], 0.0, 1.0), rows - 0.3, rows + 0.3, color=style.QUIET, linewidth=1.2, zorder=2
    )
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    names = [style.short_drawable_name(group.domain.names[outcome], f"outcome {outcome}", 20) for outcome in outcomes]
    style.write_row_names(axes, names if labels else [""] * len(rows))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.tick_params(labelbottom=True)


def _draw_group_densities(axes: Axes, estimates: GroupedPopulation, name: object, overall: np.ndarray) -> None:
    law, group = estimates.laws[name], estimates.groups[name]
    edges = group.domain.edges
    assert edges is not None
    width, colour = np.diff(edges), style.estimate_colour(exact=group.exact)
    style.fill_between_steps(axes, edges, law.all_low / width, law.all_high / width, colour)
    axes.stairs(law.estimate / width, edges, color=colour, linewidth=1.6)
    axes.stairs(overall / width, edges, color=style.QUIET, linewidth=1.0)
    axes.axhline(0.0, color="#BBBBBB", linewidth=0.8)


def change(found: Change, *, most: int = 15, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """Draw the change of every share with its interval, all outcomes at once; the largest changes first.

    Args:
        found: What `discreet.estimation.change` returned.
        most: The number of outcomes to show; cells of an interval are all shown, in order.
        ax: Axes to draw on; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is something else, or `ax` is not one axes.
    """
    check_kind("found", found, Change, "pass what discreet.estimation.change(...) returns")
    check_count("most", most)
    style.refuse_wrong_axes_or_title(ax, title, 1)
    law, domain = found.law, found.after.domain
    outcomes = np.argsort(-np.abs(law.estimate), kind="stable")[:most]
    if domain.edges is not None:
        outcomes = np.arange(len(law.estimate))
    if ax is None:
        default_title = f"The change from {found.before.clients:,} to {found.after.clients:,} clients"
        title = style.drawable_text_or_fallback(title or default_title, default_title)
    with style.using_library_style():
        figure, (axes,) = style.new_or_given_figure_and_panels(
            ax, title, size=(8.4, max(3.2, 1.6 + 0.32 * len(outcomes)))
        )
        _draw_share_changes(axes, law, outcomes)
        style.write_row_names(
            axes, [style.short_drawable_name(domain.names[outcome], f"outcome {outcome}") for outcome in outcomes]
        )
        hidden_count = len(law.estimate) - len(outcomes)
        more = f"; {pluralise(hidden_count, 'more outcome')} not shown" if hidden_count else ""
        axes.set_xlabel(
            f"change of the share, in percentage points{more}\n"
            f"bars: {confidence_text(found.confidence)} intervals, all {len(law.estimate):,} at once; "
            "filled: the interval excludes 0",
            loc="left",
        )
    return figure


def _draw_share_changes(axes: Axes, law: Shares, outcomes: np.ndarray) -> None:
    rows = np.arange(len(outcomes))
    low, high = law.all_low[outcomes], law.all_high[outcomes]
    is_certain = (low > 0.0) | (high < 0.0)
    colour = np.where(is_certain, style.COLOURS["mollifier"], style.COLOURS["held"]).tolist()
    axes.hlines(rows, low, high, color=colour, linewidth=5.0, alpha=0.35)
    face = np.where(is_certain, style.COLOURS["mollifier"], "white").tolist()
    axes.scatter(np.clip(law.estimate[outcomes], low, high), rows, s=42, c=face, edgecolors=colour, zorder=3)
    axes.axvline(0.0, color=style.QUIET, linewidth=1.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+g}" if value else "0")


def survey(found: SurveyAnswers, *, most: int = 10, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """Draw the answers to a survey: shares, means and quantiles with intervals, shares of two columns as a table of colours.

    Args:
        found: What `discreet.estimation.answer_survey` returned.
        most: The number of shares in a panel, the largest first; cells of a histogram are all shown.
        ax: Axes to draw on, one for each of the first 24 questions; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is something else, or `ax` does not have one axes for each question.
    """
    check_kind("found", found, SurveyAnswers, "pass what discreet.estimation.answer_survey(...) returns")
    default_title = (
        f"A survey of {found.clients:,} clients, {privacy_label(found.sampler.privacy, found.sampler.epsilon)}"
    )
    caption = f"{confidence_text(found.confidence)} intervals, all {found.numbers:,} numbers of the survey at once"
    return _draw_question_panels(
        found,
        most,
        ax,
        title,
        default_title,
        caption,
        lambda axes, index: _draw_survey_answer(axes, found, index, most),
    )


def survey_groups(
    found: Mapping[Any, SurveyAnswers], *, most: int = 6, ax: AxesLike | None = None, title: str | None = None
) -> Figure:
    """Draw the answers to a survey by public groups of clients: a panel for each question, a colour for each group.

    Args:
        found: What `discreet.estimation.answer_groups` returned; the first eight groups are drawn.
        most: The number of outcomes in a panel, the largest mean shares first.
        ax: Axes to draw on, one for each of the first 24 questions; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is something else, or `ax` does not have one axes for each question.
    """
    check_kind("found", found, Mapping, "pass what discreet.estimation.answer_groups(...) returns")
    for answers in found.values():
        check_kind("found", answers, SurveyAnswers, "pass what discreet.estimation.answer_groups(...) returns")
    if not found:
        raise DiscreetError("found is empty; give at least one group")
    check_count("most", most)
    first = next(iter(found.values()))
    first_groups = dict(list(found.items())[: len(_GROUP_COLOURS)])
    clients = sum(answers.clients for answers in found.values())
    default_title = (
        f"{len(found):,} groups of {clients:,} clients, {privacy_label(first.sampler.privacy, first.sampler.epsilon)}"
    )
    caption = f"{confidence_text(first.confidence)} intervals, all groups and numbers at once"
    if len(first_groups) < len(found):
        caption += f"; {pluralise(len(found) - len(first_groups), 'more group')} not shown"
    return _draw_question_panels(
        first,
        most * len(first_groups),
        ax,
        title,
        default_title,
        caption,
        lambda axes, index: _draw_answers_by_group(axes, first_groups, index, most),
    )


def survey_change(
    found: SurveyChange, *, most: int = 8, ax: AxesLike | None = None, title: str | None = None
) -> Figure:
    """Draw how the answers to a survey changed: a panel for each question, the largest changes first.

    Args:
        found: What `discreet.estimation.survey_change` returned.
        most: The number of outcomes in a panel.
        ax: Axes to draw on, one for each of the first 24 questions; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is something else, or `ax` does not have one axes for each question.
    """
    check_kind("found", found, SurveyChange, "pass what discreet.estimation.survey_change(...) returns")
    default_title = f"The change from {found.before.clients:,} to {found.after.clients:,} clients"
    caption = f"{confidence_text(found.confidence)} intervals, all numbers at once; orange: the interval excludes 0"
    return _draw_question_panels(
        found.after,
        most,
        ax,
        title,
        default_title,
        caption,
        lambda axes, index: _draw_answer_change(axes, found, index, most),
    )


def _draw_question_panels(
    survey_answers: SurveyAnswers,
    most: int,
    ax: AxesLike | None,
    title: str | None,
    default_title: str,
    caption: str,
    draw: Callable[[Axes, int], None],
) -> Figure:
    """Draw a panel for each question; `draw` draws one of them."""
    check_count("most", most)
    answers = survey_answers.answers[:_MOST_PANELS]
    style.refuse_wrong_axes_or_title(ax, title, len(answers))
    columns = min(_SURVEY_COLUMNS, len(answers)) if ax is None else len(answers)
    rows = math.ceil(len(answers) / columns) if ax is None else 1
    most_rows = max(min(most, len(answer.names)) for answer in answers)
    if ax is None:
        title = style.drawable_text_or_fallback(title or default_title, default_title)
    if len(answers) < len(survey_answers.answers):
        caption += f"; {pluralise(len(survey_answers.answers) - len(answers), 'more question')} not shown"
    with style.using_library_style():
        size = (1.4 + 3.6 * columns, 1.0 + rows * max(2.4, 1.1 + _SURVEY_ROW * most_rows))
        figure, panels = style.new_or_given_figure_and_panels(ax, title, size=size, panels=(rows, columns))
        for index, axes in enumerate(panels[: len(answers)]):
            draw(axes, index)
        _hide_unused_panels_and_write_caption(figure, panels, len(answers), caption, new=ax is None)
    return figure


def _write_answer_panel_title(axes: Axes, answer: SurveyAnswer, about: str) -> None:
    unit = f", {answer.unit}" if answer.unit else ""
    style.write_panel_title(
        axes, style.short_drawable_name(answer.question.title + unit, answer.question.kind, 44), about
    )


def _draw_answers_by_group(axes: Axes, answers_by_group: Mapping[Any, SurveyAnswers], index: int, most: int) -> None:
    answers = {name: group_answers[index] for name, group_answers in answers_by_group.items()}
    first = next(iter(answers.values()))
    _write_answer_panel_title(axes, first, "by group")
    means = np.mean([np.nan_to_num(answer.consistent) for answer in answers.values()], axis=0)
    outcomes = (
        np.argsort(-means, kind="stable")[:most]
        if _has_unordered_outcomes(first)
        else np.arange(len(first.names))[:most]
    )
    spacing = 0.7 / len(answers)
    for number, (name, answer) in enumerate(answers.items()):
        rows = np.arange(len(outcomes)) + spacing * (number - (len(answers) - 1) / 2)
        label = style.short_drawable_name(name, f"group {number + 1}", 20)
        if answer.is_known:
            _draw_estimates_with_intervals(
                axes,
                rows,
                answer.law,
                answer.consistent,
                outcomes,
                _percent_factor(first),
                _GROUP_COLOURS[number],
                label,
            )
    _write_outcome_names(axes, first, outcomes)
    if index == 0:
        axes.legend(fontsize=8, frameon=False, loc="best")


def _draw_answer_change(axes: Axes, difference: SurveyChange, index: int, most: int) -> None:
    answer, law = difference.after[index], difference.laws[index]
    _write_answer_panel_title(axes, answer, "later less earlier")
    outcomes = np.argsort(-np.abs(np.nan_to_num(law.estimate)), kind="stable")[:most]
    if np.isfinite(law.estimate).all():
        is_certain = (law.all_low > 0.0) | (law.all_high < 0.0)
        for selection, colour in ((is_certain, style.COLOURS["mollifier"]), (~is_certain, style.COLOURS["held"])):
            rows = np.flatnonzero(selection[outcomes])
            _draw_estimates_with_intervals(
                axes, rows, law, law.estimate, outcomes[rows], _percent_factor(answer), colour, None
            )
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    _write_outcome_names(axes, answer, outcomes)
    axes.set_xlabel(axes.get_xlabel().replace("share, %", "percentage points"))


def _percent_factor(answer: SurveyAnswer) -> float:
    return 100.0 if answer.has_shares else 1.0


def _has_unordered_outcomes(answer: SurveyAnswer) -> bool:
    """Whether outcomes have no order of their own."""
    return answer.has_shares and answer.question.kind == "shares"


def _draw_estimates_with_intervals(
    axes: Axes,
    rows: np.ndarray,
    law: Shares,
    estimate: np.ndarray,
    outcomes: np.ndarray,
    scale: float,
    colour: str,
    label: str | None,
) -> None:
    """Draw dots with the intervals that hold at once; an unbiased estimate may lie outside of its interval, and is drawn at its end."""
    low, high = law.all_low[outcomes], law.all_high[outcomes]
    axes.hlines(rows, scale * low, scale * high, color=colour, linewidth=5.0, alpha=0.28)
    axes.scatter(scale * np.clip(estimate[outcomes], low, high), rows, s=30, color=colour, zorder=3, label=label)


def _write_outcome_names(axes: Axes, answer: SurveyAnswer, outcomes: np.ndarray) -> None:
    """Write the names of the outcomes beside their rows, and how many are not shown."""
    style.write_row_names(
        axes, [style.short_drawable_name(answer.names[outcome], f"number {outcome}", 26) for outcome in outcomes]
    )
    axes.grid(axis="x", visible=True)
    hidden_count = len(answer.names) - len(outcomes)
    more = f"{pluralise(hidden_count, 'more outcome')} not shown" if hidden_count else ""
    axes.set_xlabel("; ".join(part for part in ("share, %" if answer.has_shares else answer.unit, more) if part))


def _draw_survey_answer(axes: Axes, answers: SurveyAnswers, index: int, most: int) -> None:
    answer = answers[index]
    _write_answer_panel_title(
        axes, answer, f"{answer.clients:,} were asked it" if answer.clients else "nobody was asked it"
    )
    sizes = answers.sampler.survey.columns.column_sizes(answer.question.columns)
    if not answer.is_known:
        axes.axis("off")
    elif answer.question.kind == "shares" and len(sizes) == 2 and max(sizes) <= _MOST_CELLS:
        _draw_shares_of_two_columns(axes, answer, answers, sizes)
    else:
        outcomes = (
            np.argsort(-answer.consistent, kind="stable")[:most]
            if _has_unordered_outcomes(answer)
            else np.arange(len(answer.names))
        )
        rows, colour = np.arange(len(outcomes)), style.COLOURS["linear"]
        _draw_estimates_with_intervals(
            axes, rows, answer.law, answer.consistent, outcomes, _percent_factor(answer), colour, None
        )
        _write_outcome_names(axes, answer, outcomes)


def _draw_shares_of_two_columns(
    axes: Axes, answer: SurveyAnswer, answers: SurveyAnswers, sizes: tuple[int, ...]
) -> None:
    """Draw the nearest shares of two columns as a table of colours; its label says how wide an interval is."""
    image = axes.imshow(100.0 * answer.nearest.reshape(sizes), cmap="Greens", aspect="auto", vmin=0.0)
    axes.grid(visible=False)
    columns = answers.sampler.survey.columns
    for name, size, axis in zip(answer.question.columns, sizes, (axes.yaxis, axes.xaxis), strict=True):
        step = math.ceil(size / 12)
        ticks = np.arange(0, size, step)
        names = [style.short_drawable_name(columns[name].names[int(tick)], "", 12) for tick in ticks]
        axis.set_ticks(ticks, names, color=style.INK, parse_math=False)
        axis.set_label_text(style.short_drawable_name(name, "", 30))
    margin = 50.0 * float(np.median(answer.law.all_high - answer.law.all_low))
    axes.figure.colorbar(image, ax=axes, label=f"share, % (intervals +-{margin:.2g})")
