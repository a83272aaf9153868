"""The picture of a survey's answers: a panel for each question, with intervals that hold for all numbers of the survey at once."""

import math

import numpy as np

from discreet._base.showing import pluralise
from discreet.errors import check_count, check_kind
from discreet.estimation import SurveyAnswer, SurveyAnswers
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
    check_count("most", most)
    answers = found.answers[:_MOST_PANELS]
    check_canvas(ax, title, len(answers))
    columns = min(_COLUMNS, len(answers)) if ax is None else len(answers)
    rows = math.ceil(len(answers) / columns) if ax is None else 1
    tall = max(min(most, len(answer.names)) for answer in answers)
    usual = f"A survey of {found.clients:,} clients, {promise_label(found.sampler.privacy, found.sampler.epsilon)}"
    if ax is None:
        title = text_or_fallback(title or usual, usual)
    with library_style():
        drawn, panels = figure_and_panels(
            ax, title, size=(1.4 + 3.6 * columns, 1.0 + rows * max(2.4, 1.1 + _TALL * tall)), panels=(rows, columns)
        )
        for axes, answer in zip(panels, answers, strict=False):
            _draw_answer(axes, answer, found, most)
        for axes in panels[len(answers) :]:
            axes.set_visible(False)
        _explain(drawn, panels, found, len(answers), new=ax is None)
    return drawn


def _draw_answer(axes: Axes, answer: SurveyAnswer, found: SurveyAnswers, most: int) -> None:
    unit = f", {answer.unit}" if answer.unit else ""
    asked = f"{answer.clients:,} were asked it" if answer.clients else "nobody was asked it"
    panel_title(axes, text_or_fallback(shorten_name(answer.question.title + unit, 44), answer.question.kind), asked)
    sizes = found.sampler.survey.columns.sizes(answer.question.columns)
    if not answer.is_known:
        axes.axis("off")
    elif answer.question.kind == "shares" and len(sizes) == 2 and max(sizes) <= _MOST_CELLS:
        _draw_table(axes, answer, found, sizes)
    else:
        _draw_numbers(axes, answer, most)


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


def _draw_numbers(axes: Axes, answer: SurveyAnswer, most: int) -> None:
    shares = answer.has_shares and answer.question.kind == "shares"
    shown = np.argsort(-answer.consistent, kind="stable")[:most] if shares else np.arange(len(answer.names))
    rows, law = np.arange(len(shown)), answer.law
    scale = 100.0 if answer.has_shares else 1.0
    colour = COLOURS["linear"]
    axes.hlines(rows, scale * law.all_low[shown], scale * law.all_high[shown], color=colour, linewidth=5.0, alpha=0.28)
    inside = np.clip(answer.consistent, law.all_low, law.all_high)  # an unbiased estimate may lie outside
    axes.scatter(scale * inside[shown], rows, s=30, color=colour, zorder=3)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    names = [shorten_name(answer.names[place], 26) for place in shown]
    texts = [text_or_fallback(text, f"number {place}") for text, place in zip(names, shown, strict=True)]
    axes.set_yticks(rows, texts, color=INK, parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.spines["left"].set_visible(False)
    hidden = len(answer.names) - len(shown)
    more = f"{pluralise(hidden, 'more outcome')} not shown" if hidden else ""
    axes.set_xlabel("; ".join(part for part in ("share, %" if answer.has_shares else answer.unit, more) if part))


def _explain(drawn: Figure, panels: list[Axes], found: SurveyAnswers, shown: int, *, new: bool) -> None:
    numbers = sum(len(answer.names) for answer in found)
    told = f"{100 * found.confidence:g} % intervals, all {numbers:,} numbers of the survey at once"
    if shown < len(found.answers):
        told += f"; {pluralise(len(found.answers) - shown, 'more question')} not shown"
    if new:
        drawn.supxlabel(told, x=0.012, ha="left", fontsize=9, color=INK)
    else:
        panels[0].set_xlabel(told, loc="left")
