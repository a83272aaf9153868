"""`comparison`: mechanisms side by side, a panel for each divergence and a line for each mechanism.

Colours, labels and matplotlib's settings may be the caller's, so that a picture fits the paper it is for.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import matplotlib

from discreet.errors import DiscreetError, check_choice, check_kind
from discreet.plots._labels import divergence_label, shorten_name
from discreet.plots._style import (
    COLOURS,
    QUIET,
    Axes,
    AxesLike,
    Figure,
    figure_and_panels,
    library_style,
    mechanism_colour,
)

_VALUES = {
    "mean": "mean over the clients",
    "median": "median of the clients",
    "largest": "largest of the clients",
    "worst_case": "worst case over the family",
}
_DRAWN_AS_LINES = 2  # budgets from which on lines are drawn, not bars


class ComparedRecord(Protocol):
    """What a picture reads of a record; see `discreet.research.ComparisonRecord`."""

    @property
    def mechanism(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def divergence(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def smallest(self) -> float: ...


def comparison(
    records: Sequence[ComparedRecord],
    *,
    value: str = "mean",
    ax: AxesLike | None = None,
    title: str | None = None,
    colours: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    style: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw a comparison of mechanisms: a value against epsilon, or bars where there is one budget.

    With `value="worst_case"` a dashed line shows the smallest worst case of any private sampler, where it is known. Worst cases that are
    upper bounds are dotted.

    Args:
        records: `discreet.research.compare(...).records`.
        value: "mean", "median", "largest" or "worst_case".
        ax: Axes to draw on, one for each divergence; by default a new figure.
        title: Above a new figure.
        colours: Of mechanisms by name, in place of ours.
        labels: For the legend, by name.
        style: Settings of matplotlib (rcParams) in place of ours; `{}` leaves the caller's own.

    Returns:
        The figure.

    Raises:
        DiscreetError: for another value, for no records, and for axes that are not as many as divergences.
    """
    check_choice("value", value, _VALUES)
    check_kind("records", records, Sequence, "pass compare(...).records")
    if not all(hasattr(record, "mechanism") for record in records):
        raise DiscreetError("records holds something else; pass compare(...).records")
    for name, given in (("colours", colours), ("labels", labels), ("style", style)):
        if given is not None:
            check_kind(name, given, Mapping, "pass a dict")
    rows = [record for record in records if not math.isnan(record.epsilon)]
    if not rows:
        raise DiscreetError("records is empty, or without pure budgets; pass compare(...).records")
    names = list(dict.fromkeys(record.mechanism for record in rows))
    panels = list(dict.fromkeys(record.divergence for record in rows))
    chosen = {
        name: mechanism_colour(name, place) for place, name in enumerate(each for each in names if each not in COLOURS)
    }
    shades = {**{name: mechanism_colour(name) for name in names if name in COLOURS}, **chosen, **(colours or {})}
    own: Any = dict(style or {})
    settings: AbstractContextManager[Any] = library_style() if style is None else matplotlib.rc_context(own)
    with settings:
        drawn, axes = figure_and_panels(ax, title, size=(3.4 * len(panels) + 1.6, 3.6), panels=(1, len(panels)))
        for panel, name in zip(axes, panels, strict=True):
            _draw_mechanisms(
                panel, [record for record in rows if record.divergence == name], value, names, shades, labels or {}
            )
            panel.set_title(_plain_text(divergence_label(name)), loc="left", fontsize=11)
        axes[0].set_ylabel(_VALUES[value])
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
    return drawn


def _plain_text(name: str) -> str:
    """A name as matplotlib prints it: one short line, and no dollar sign starts a formula."""
    return shorten_name(" ".join(name.split())).replace("$", r"\$")


def _draw_mechanisms(
    axes: Axes,
    rows: Sequence[Any],
    value: str,
    names: Sequence[str],
    colours: Mapping[str, str],
    labels: Mapping[str, str],
) -> None:
    budgets = sorted({row.epsilon for row in rows})
    for place, name in enumerate(names):
        points = sorted((row.epsilon, getattr(row, value)) for row in rows if row.mechanism == name)
        if not points:
            continue
        bound = value == "worst_case" and not all(row.exact for row in rows if row.mechanism == name)
        label = labels.get(name, _plain_text(name)) + (" (upper bound)" if bound else "")
        if len(budgets) < _DRAWN_AS_LINES:
            axes.bar(place, points[0][1], color=colours[name], label=label, alpha=0.5 if bound else 1.0)
        else:
            line = ":" if bound else "-"
            axes.plot(*zip(*points, strict=True), line, color=colours[name], label=label, marker="o", markersize=3.5)
    if value == "worst_case":
        known = sorted({(row.epsilon, row.smallest) for row in rows if not math.isnan(row.smallest)})
        if known and len(budgets) < _DRAWN_AS_LINES:
            axes.axhline(known[0][1], color=QUIET, linestyle=(0, (4, 2)), linewidth=1.0, label="smallest possible")
        elif known:
            axes.plot(
                *zip(*known, strict=True), color=QUIET, linestyle=(0, (4, 2)), linewidth=1.0, label="smallest possible"
            )
    axes.set_ylim(bottom=0.0)
    if len(budgets) < _DRAWN_AS_LINES:
        axes.set_xticks([])
        axes.set_xlabel(f"ε = {budgets[0]:g}")
    else:
        axes.set_xlabel("ε")
