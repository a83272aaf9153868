"""Pictures of a survey's answers: a panel for each question, with intervals that hold for all numbers at once; by group, and as changes."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet._base.showing import pluralise
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.estimation import Shares, SurveyAnswer, SurveyAnswers, SurveyChange
from discreet.plots._labels import promise_label, shorten_name
from discreet.plots._style import (
    COLOURS,
    INK,
    Axes,
    AxesLike,
    Figure,
    check_canvas,
    figure_and_panels,
    library_style,
    panel_title,
    text_or_fallback,
)

_MOST_PANELS = 24
_COLUMNS = 3
_MOST_CELLS = 40  # of a row or a column of a table of colours
_TALL = 0.32  # inches for each row of a panel
_GROUP_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#767676",
    "#222222",
)  # Okabe and Ito's


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
    usual = f"A survey of {found.clients:,} clients, {promise_label(found.sampler.privacy, found.sampler.epsilon)}"
    told = f"{100 * found.confidence:g} % intervals, all {_number_count(found):,} numbers of the survey at once"
    return _draw_panels(found, most, ax, title, usual, told, lambda axes, place: _draw_answer(axes, found, place, most))


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
    shown = dict(list(found.items())[: len(_GROUP_COLOURS)])
    clients = sum(each.clients for each in found.values())
    usual = (
        f"{len(found):,} groups of {clients:,} clients, {promise_label(first.sampler.privacy, first.sampler.epsilon)}"
    )
    told = f"{100 * first.confidence:g} % intervals, all groups and numbers at once"
    if len(shown) < len(found):
        told += f"; {pluralise(len(found) - len(shown), 'more group')} not shown"
    return _draw_panels(
        first, most * len(shown), ax, title, usual, told, lambda axes, place: _draw_groups(axes, shown, place, most)
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
    usual = f"The change from {found.before.clients:,} to {found.after.clients:,} clients"
    told = f"{100 * found.confidence:g} % intervals, all numbers at once; orange: the interval excludes 0"
    return _draw_panels(
        found.after, most, ax, title, usual, told, lambda axes, place: _draw_change(axes, found, place, most)
    )


def _number_count(found: SurveyAnswers) -> int:
    return sum(len(answer.names) for answer in found)


def _draw_panels(
    found: SurveyAnswers,
    most: int,
    ax: AxesLike | None,
    title: str | None,
    usual: str,
    told: str,
    draw: Callable[[Axes, int], None],
) -> Figure:
    """A panel for each question, of which `draw` draws one."""
    check_count("most", most)
    answers = found.answers[:_MOST_PANELS]
    check_canvas(ax, title, len(answers))
    columns = min(_COLUMNS, len(answers)) if ax is None else len(answers)
    rows = math.ceil(len(answers) / columns) if ax is None else 1
    tall = max(min(most, len(answer.names)) for answer in answers)
    if ax is None:
        title = text_or_fallback(title or usual, usual)
    if len(answers) < len(found.answers):
        told += f"; {pluralise(len(found.answers) - len(answers), 'more question')} not shown"
    with library_style():
        size = (1.4 + 3.6 * columns, 1.0 + rows * max(2.4, 1.1 + _TALL * tall))
        drawn, panels = figure_and_panels(ax, title, size=size, panels=(rows, columns))
        for place, axes in enumerate(panels[: len(answers)]):
            draw(axes, place)
        for axes in panels[len(answers) :]:
            axes.set_visible(False)
        if ax is None:
            drawn.supxlabel(told, x=0.012, ha="left", fontsize=9, color=INK)
        else:
            panels[0].set_xlabel(told, loc="left")
    return drawn


def _title_panel(axes: Axes, answer: SurveyAnswer, about: str) -> None:
    unit = f", {answer.unit}" if answer.unit else ""
    panel_title(axes, text_or_fallback(shorten_name(answer.question.title + unit, 44), answer.question.kind), about)


def _draw_groups(axes: Axes, found: Mapping[Any, SurveyAnswers], place: int, most: int) -> None:
    answers = {name: each[place] for name, each in found.items()}
    first = next(iter(answers.values()))
    _title_panel(axes, first, "by group")
    means = np.mean([np.nan_to_num(each.consistent) for each in answers.values()], axis=0)
    shown = np.argsort(-means, kind="stable")[:most] if _is_ranked(first) else np.arange(len(first.names))[:most]
    apart = 0.7 / len(answers)
    for number, (name, each) in enumerate(answers.items()):
        rows = np.arange(len(shown)) + apart * (number - (len(answers) - 1) / 2)
        label = text_or_fallback(shorten_name(str(name), 20), f"group {number + 1}")
        if each.is_known:
            _draw_intervals(axes, rows, each.law, each.consistent, shown, _scale(first), _GROUP_COLOURS[number], label)
    _name_rows(axes, first, shown)
    if place == 0:
        axes.legend(fontsize=8, frameon=False, loc="best")


def _draw_change(axes: Axes, found: SurveyChange, place: int, most: int) -> None:
    answer, law = found.after[place], found.laws[place]
    _title_panel(axes, answer, "later less earlier")
    shown = np.argsort(-np.abs(np.nan_to_num(law.estimate)), kind="stable")[:most]
    if np.isfinite(law.estimate).all():
        sure = (law.all_low > 0.0) | (law.all_high < 0.0)
        for chosen, colour in ((sure, COLOURS["mollifier"]), (~sure, COLOURS["held"])):
            rows = np.flatnonzero(chosen[shown])
            _draw_intervals(axes, rows, law, law.estimate, shown[rows], _scale(answer), colour, None)
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    _name_rows(axes, answer, shown)
    axes.set_xlabel(axes.get_xlabel().replace("share, %", "percentage points"))


def _scale(answer: SurveyAnswer) -> float:
    return 100.0 if answer.has_shares else 1.0


def _is_ranked(answer: SurveyAnswer) -> bool:
    """Whether outcomes have no order of their own."""
    return answer.has_shares and answer.question.kind == "shares"


def _draw_intervals(
    axes: Axes,
    rows: np.ndarray,
    law: Shares,
    estimate: np.ndarray,
    shown: np.ndarray,
    scale: float,
    colour: str,
    label: str | None,
) -> None:
    """Dots with the intervals that hold at once; an unbiased estimate may lie outside of its interval, and is drawn at its end."""
    low, high = law.all_low[shown], law.all_high[shown]
    axes.hlines(rows, scale * low, scale * high, color=colour, linewidth=5.0, alpha=0.28)
    axes.scatter(scale * np.clip(estimate[shown], low, high), rows, s=30, color=colour, zorder=3, label=label)


def _name_rows(axes: Axes, answer: SurveyAnswer, shown: np.ndarray) -> None:
    """The names of the outcomes, and what is not shown."""
    axes.set_ylim(len(shown) - 0.4, -0.6)
    names = [shorten_name(answer.names[place], 26) for place in shown]
    texts = [text_or_fallback(text, f"number {place}") for text, place in zip(names, shown, strict=True)]
    axes.set_yticks(np.arange(len(shown)), texts, color=INK, parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.spines["left"].set_visible(False)
    hidden = len(answer.names) - len(shown)
    more = f"{pluralise(hidden, 'more outcome')} not shown" if hidden else ""
    axes.set_xlabel("; ".join(part for part in ("share, %" if answer.has_shares else answer.unit, more) if part))


def _draw_answer(axes: Axes, found: SurveyAnswers, place: int, most: int) -> None:
    answer = found[place]
    _title_panel(axes, answer, f"{answer.clients:,} were asked it" if answer.clients else "nobody was asked it")
    sizes = found.sampler.survey.columns.sizes(answer.question.columns)
    if not answer.is_known:
        axes.axis("off")
    elif answer.question.kind == "shares" and len(sizes) == 2 and max(sizes) <= _MOST_CELLS:
        _draw_table(axes, answer, found, sizes)
    else:
        shown = (
            np.argsort(-answer.consistent, kind="stable")[:most] if _is_ranked(answer) else np.arange(len(answer.names))
        )
        rows, colour = np.arange(len(shown)), COLOURS["linear"]
        _draw_intervals(axes, rows, answer.law, answer.consistent, shown, _scale(answer), colour, None)
        _name_rows(axes, answer, shown)


def _draw_table(axes: Axes, answer: SurveyAnswer, found: SurveyAnswers, sizes: tuple[int, ...]) -> None:
    """The nearest shares of two columns; the last line says how wide an interval is."""
    image = axes.imshow(100.0 * answer.nearest.reshape(sizes), cmap="Greens", aspect="auto", vmin=0.0)
    axes.grid(visible=False)
    columns = found.sampler.survey.columns
    for name, size, axis in zip(answer.question.columns, sizes, (axes.yaxis, axes.xaxis), strict=True):
        step = math.ceil(size / 12)
        places = np.arange(0, size, step)
        names = [shorten_name(str(columns[name].names[int(place)]), 12) for place in places]
        axis.set_ticks(places, [text_or_fallback(text, "") for text in names], color=INK, parse_math=False)
        axis.set_label_text(text_or_fallback(shorten_name(name, 30), ""))
    wide = 50.0 * float(np.median(answer.law.all_high - answer.law.all_low))
    axes.figure.colorbar(image, ax=axes, label=f"share, % (intervals +-{wide:.2g})")
