"""Pictures of groups and changes: small multiples with the same outcomes in every panel, and the change of every share with its interval."""

import math

import numpy as np

from discreet._base.showing import pluralise
from discreet.errors import check_count, check_kind
from discreet.estimation import Change, GroupedPopulation, Population, ReportedPopulation, Shares
from discreet.plots._labels import promise_label, shorten_name
from discreet.plots._style import (
    COLOURS,
    INK,
    QUIET,
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
_COLUMNS = 4
_WIDE = 0.35  # inches for each row of a panel


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
    check_canvas(ax, title, len(names))
    first = next(iter(found.groups.values()))
    rows = math.ceil(len(names) / _COLUMNS) if ax is None else 1
    columns = math.ceil(len(names) / rows)
    whole = found.whole.law.estimate
    shown = np.argsort(-whole, kind="stable")[:most]
    tall = 2.2 if first.domain.edges is not None else 0.75 + _WIDE * len(shown)
    if ax is None:
        title = text_or_fallback(title or _usual_title(found), _usual_title(found))
    with library_style():
        drawn, panels = figure_and_panels(
            ax,
            title,
            size=(2.2 + 2.3 * columns, 1.0 + rows * tall),
            panels=(rows, columns),
            share=first.domain.edges is None,
        )
        for place, (axes, name) in enumerate(zip(panels, names, strict=False)):
            panel_title(
                axes,
                text_or_fallback(shorten_name(str(name), 24), f"group {place + 1}"),
                f"{found.groups[name].clients:,} clients{', tell nothing' if name in found.silent else ''}",
            )
            if first.domain.edges is not None:
                _draw_bins(axes, found, name, whole)
            else:
                _draw_shares(axes, found, name, whole, shown, labels=place % columns == 0)
        _share_scale(panels, found, shown)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        _explain(drawn, panels, found, len(names), len(shown), new=ax is None)
    return drawn


def _share_scale(panels: list[Axes], found: GroupedPopulation, shown: np.ndarray) -> None:
    """One scale for all panels. A group that tells nothing reaches from 0 to 1, and would hide the others: it is cut."""
    telling = [law for name, law in found.laws.items() if name not in found.silent] or [*found.laws.values()]
    edges = next(iter(found.groups.values())).domain.edges
    if edges is None:
        right = max(float(law.all_high[shown].max()) for law in telling)
        for axes in panels:
            axes.set_xlim(-0.05 * right, 1.05 * right)
        return
    width = np.diff(edges)
    top = max(float((np.maximum(law.all_high, law.estimate) / width).max()) for law in telling)
    bottom = min(0.0, *(float((law.estimate / width).min()) for law in telling))
    for axes in panels:
        axes.set_ylim(1.05 * bottom, 1.05 * top)


def _usual_title(found: GroupedPopulation) -> str:
    first = next(iter(found.groups.values()))
    released = "reports" if isinstance(first, ReportedPopulation) else "samples"
    promise = promise_label(first.sampler.privacy, first.sampler.epsilon)
    return f"{len(found.groups):,} groups behind {found.clients:,} private {released} {promise}"


def _colour(found: Population | ReportedPopulation) -> str:
    return COLOURS["linear" if found.exact else "optimal"]


def _draw_shares(
    axes: Axes, found: GroupedPopulation, name: object, whole: np.ndarray, shown: np.ndarray, *, labels: bool
) -> None:
    law, group = found.laws[name], found.groups[name]
    rows, colour = np.arange(len(shown)), _colour(group)
    axes.hlines(rows, law.all_low[shown], law.all_high[shown], color=colour, linewidth=5.0, alpha=0.28)
    inside = np.clip(law.estimate, law.all_low, law.all_high)  # an unbiased estimate may lie outside [0, 1]
    face = "white" if name in found.silent else colour
    axes.scatter(inside[shown], rows, s=30, facecolor=face, edgecolor=colour, zorder=3)
    axes.vlines(np.clip(whole[shown], 0.0, 1.0), rows - 0.3, rows + 0.3, color=QUIET, linewidth=1.2, zorder=2)
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    domain = [str(group.domain.names[place]) for place in shown]
    texts = [
        text_or_fallback(shorten_name(text, 20), f"outcome {place}") for text, place in zip(domain, shown, strict=True)
    ]
    axes.set_yticks(rows, texts if labels else [""] * len(rows), color=INK, parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.tick_params(labelbottom=True)


def _draw_bins(axes: Axes, found: GroupedPopulation, name: object, whole: np.ndarray) -> None:
    law, group = found.laws[name], found.groups[name]
    edges = group.domain.edges
    assert edges is not None
    width, colour = np.diff(edges), _colour(group)
    axes.fill_between(
        edges, np.append(law.all_low / width, 0), np.append(law.all_high / width, 0), step="post", color=colour,
        alpha=0.22, linewidth=0,
    )  # fmt: skip
    axes.stairs(law.estimate / width, edges, color=colour, linewidth=1.6)
    axes.stairs(whole / width, edges, color=QUIET, linewidth=1.0)
    axes.axhline(0.0, color="#BBBBBB", linewidth=0.8)


def _explain(
    drawn: Figure, panels: list[Axes], found: GroupedPopulation, panels_drawn: int, shown: int, *, new: bool
) -> None:
    size = len(found.whole.counts)
    told = f"{100 * found.confidence:g} % intervals, all {len(found.groups):,} groups and {size:,} outcomes at once; grey: all clients"
    if found.whole.domain.edges is None and shown < size:
        told += f"; {pluralise(size - shown, 'more outcome')} not shown"
    if panels_drawn < len(found.groups):
        told += f"; {pluralise(len(found.groups) - panels_drawn, 'more group')} not shown"
    if new:
        drawn.supxlabel(told, x=0.012, ha="left", fontsize=9, color=INK)
    else:
        panels[0].set_xlabel(told, loc="left")


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
    check_canvas(ax, title, 1)
    law, domain = found.law, found.after.domain
    shown = np.argsort(-np.abs(law.estimate), kind="stable")[:most]
    if domain.edges is not None:
        shown = np.arange(len(law.estimate))
    if ax is None:
        usual = f"The change from {found.before.clients:,} to {found.after.clients:,} clients"
        title = text_or_fallback(title or usual, usual)
    with library_style():
        drawn, (axes,) = figure_and_panels(ax, title, size=(8.4, max(3.2, 1.6 + 0.32 * len(shown))))
        _draw_changes(axes, law, shown)
        texts = [text_or_fallback(shorten_name(str(domain.names[place])), f"outcome {place}") for place in shown]
        axes.set_yticks(np.arange(len(shown)), texts, color=INK, parse_math=False)
        hidden = len(law.estimate) - len(shown)
        more = f"; {pluralise(hidden, 'more outcome')} not shown" if hidden else ""
        axes.set_xlabel(
            f"change of the share, in percentage points{more}\n"
            f"bars: {100 * found.confidence:g} % intervals, all {len(law.estimate):,} at once; "
            "filled: the interval excludes 0",
            loc="left",
        )
    return drawn


def _draw_changes(axes: Axes, law: Shares, shown: np.ndarray) -> None:
    rows = np.arange(len(shown))
    low, high = law.all_low[shown], law.all_high[shown]
    surely = (low > 0.0) | (high < 0.0)
    colour = np.where(surely, COLOURS["mollifier"], COLOURS["held"]).tolist()
    axes.hlines(rows, low, high, color=colour, linewidth=5.0, alpha=0.35)
    face = np.where(surely, COLOURS["mollifier"], "white").tolist()
    axes.scatter(np.clip(law.estimate[shown], low, high), rows, s=42, c=face, edgecolors=colour, zorder=3)
    axes.axvline(0.0, color=QUIET, linewidth=1.0)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+g}" if value else "0")
