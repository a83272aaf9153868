"""Pictures of results: an estimated population with its intervals, an audit, and mechanisms side by side.

`population` draws a row for each label or a step for each cell. `audit` draws the frequency of the leading event under two inputs, and the
bound of every event beside the claimed epsilon. `comparison` draws a panel for each divergence and a line for each mechanism; colours,
labels and matplotlib's settings may be the caller's, so that a picture fits the paper it is for.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import matplotlib
import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import LawLike
from discreet._base.showing import confidence_text
from discreet.audit import BlackBoxAudit
from discreet.errors import DiscreetError, check_choice, check_count, check_kind
from discreet.estimation import AnyPopulation, Population, ReportedPopulation
from discreet.families import ContinuousFamily, as_renormalised_laws
from discreet.plots import _style as style, divergence_label, privacy_label, shorten_name
from discreet.plots._style import (
    Axes,
    AxesLike,
    Figure,
    mechanism_colours,
    new_or_given_figure_and_panels,
    using_library_style,
)

Floats = NDArray[np.float64]
_BY_EXAMPLES = style.COLOURS["mollifier"]  # no mollifier is drawn beside it
_TAIL = 1e-3  # of the reference, at each end
_UNBIASED, _AMONG_SAMPLES = "private estimate", "among the samples"


def population(
    found: AnyPopulation,
    *,
    truth: LawLike | None = None,
    most: int = 15,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw an estimated population: every share with its interval, the estimate by public examples, and the truth if it is known.

    Args:
        found: What `discreet.estimation.population` or `reported_population` returned.
        truth: The true shares, one for each outcome, or by label.
        most: The number of labels to show, the largest shares first; cells of an interval are all shown.
        ax: Axes to draw on; by default a new figure.
        title: Above a new figure; replaced by the default if no installed font can write it.

    Returns:
        The figure.

    Raises:
        DiscreetError: `truth` does not have one share for each outcome, or `ax` is not one axes.
    """
    if not isinstance(found, ReportedPopulation):
        check_kind("found", found, Population, "pass what discreet.estimation.population(...) returns")
    check_count("most", most)
    style.refuse_wrong_axes_or_title(ax, title, 1)
    true_shares = None if truth is None else _truth_as_shares(truth, found)
    if ax is None:
        promise = privacy_label(found.sampler.privacy, found.sampler.epsilon)
        noun = "reports" if isinstance(found, ReportedPopulation) else "samples"
        default_title = f"The population behind {found.clients:,} private {noun} {promise}"
        title = default_title if title is None else style.drawable_text_or_fallback(title, default_title)
    height = 4.6 if found.domain.edges is not None else max(3.2, 1.6 + 0.32 * min(most, found.domain.size))
    with style.using_library_style():
        figure, (axes,) = style.new_or_given_figure_and_panels(ax, title, size=(8.4, height))
        if found.domain.edges is None:
            _draw_label_shares(axes, found, true_shares, most)
            # given axes may have a title
            legend_place = {"bbox_to_anchor": (1.0, 1.0), "ncols": 3} if ax is None else {}
            axes.legend(loc="lower right", frameon=False, labelcolor=style.INK, **legend_place)
        else:
            _draw_cell_densities(axes, found, true_shares, found.domain.edges)
    return figure


def _truth_as_shares(truth: Any, estimate: AnyPopulation) -> Floats:
    family, size = estimate.sampler.family, estimate.domain.size
    shares = (
        as_renormalised_laws(truth, "truth", size)
        if isinstance(family, ContinuousFamily)
        else family.as_rows(truth, "truth")
    )
    if shares.ndim != 1:
        raise DiscreetError(f"truth has shape {shares.shape}; pass one share for each of the {size} outcomes")
    return np.asarray(shares)


def _draw_label_shares(axes: Axes, estimate: AnyPopulation, truth: Floats | None, most: int) -> None:
    """Draw a row for each label. Those that are selected by their estimates, which are random, have intervals that hold all at once."""
    law, colour = estimate.law, style.estimate_colour(exact=estimate.exact)
    sort_keys = law.estimate if truth is None else truth
    outcomes = np.argsort(-sort_keys, kind="stable")[:most]
    rows = np.arange(len(outcomes))
    is_ranked = truth is None and len(outcomes) < len(sort_keys)
    low, high = (law.all_low, law.all_high) if is_ranked else (law.low, law.high)
    axes.hlines(rows, low[outcomes], high[outcomes], color=colour, linewidth=5.0, alpha=0.28)
    for row, outcome in enumerate(outcomes):  # an unbiased estimate may lie outside [0, 1], where its interval is cut
        share = law.estimate[outcome]
        end = min(max(share, low[outcome]), high[outcome])
        if end != share:
            axes.plot([share, end], [row, row], color=colour, linewidth=1.0)
    marker, label = ("o", _UNBIASED) if estimate.exact else ("|", _AMONG_SAMPLES)
    axes.scatter(law.estimate[outcomes], rows, s=42, marker=marker, color=colour, zorder=3, label=label)
    if estimate.reweighted is not None:
        examples = estimate.reweighted.law[outcomes]
        axes.scatter(examples, rows, s=42, marker="x", color=_BY_EXAMPLES, zorder=3, label="by examples")
    if truth is not None:
        axes.scatter(
            truth[outcomes], rows, s=64, marker="D", facecolor="none", edgecolor=style.INK, zorder=4, label="truth"
        )
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    style.write_row_names(
        axes, [style.short_drawable_name(estimate.domain.names[outcome], f"outcome {outcome}") for outcome in outcomes]
    )
    more = f"; {len(sort_keys) - len(outcomes):,} more outcomes not shown" if len(sort_keys) > len(outcomes) else ""
    scope = f", all {len(sort_keys):,} at once" if is_ranked else ""
    axes.set_xlabel(
        f"share of the average client's records{more}\nbars: {_interval_label(estimate)}{scope}, cut at 0", loc="left"
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def _draw_cell_densities(axes: Axes, estimate: AnyPopulation, truth: Floats | None, edges: Floats) -> None:
    """Draw a step for each cell: the density, its interval and the truth."""
    law, width, colour = estimate.law, np.diff(edges), style.estimate_colour(exact=estimate.exact)
    style.fill_between_steps(axes, edges, law.low / width, law.high / width, colour)
    label = _UNBIASED if estimate.exact else _AMONG_SAMPLES
    axes.stairs(law.estimate / width, edges, color=colour, linewidth=1.8, label=label)
    if estimate.reweighted is not None:
        axes.stairs(estimate.reweighted.law / width, edges, color=_BY_EXAMPLES, linewidth=1.4, label="by examples")
    if truth is not None:
        axes.stairs(truth / width, edges, color=style.INK, linewidth=1.2, linestyle="--", label="truth")
    axes.set_xlim(*_value_range_of_cells(estimate, edges))
    axes.axhline(0.0, color="#BBBBBB", linewidth=0.8)
    axes.set_xlabel(f"value; band: {_interval_label(estimate)}")
    axes.set_ylabel("density of the average client")
    axes.legend(loc="upper right", frameon=False, labelcolor=style.INK)


def _value_range_of_cells(estimate: AnyPopulation, edges: Floats) -> tuple[float, float]:
    """Between which values the cells lie; of a continuous family, all but a thousandth of its reference at each end.

    The outermost bins of a continuous family may reach far beyond the clients.
    """
    finest = estimate.finest
    if finest is None or finest.domain.edges is None:
        return float(edges[0]), float(edges[-1])
    mass_below = np.append(0.0, np.cumsum(finest.reference))
    low, high = np.interp([_TAIL, 1.0 - _TAIL], mass_below, finest.domain.edges)
    return float(low), float(high)


def _interval_label(estimate: AnyPopulation) -> str:
    label = f"{confidence_text(estimate.confidence)} intervals"
    return label if estimate.exact else f"{label}, with every share that could have led to it"


def audit(found: BlackBoxAudit, *, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """Draw an audit in two panels: the frequency of its leading event under two inputs, and the bound of every event.

    Args:
        found: The result of `discreet.audit.black_box_audit`.
        ax: Two axes to draw on; by default a new figure.
        title: Above a new figure; by default whether the claim is refuted.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is not an audit or tested nothing, or `ax` does not have two axes.
    """
    check_kind("found", found, BlackBoxAudit, "pass what discreet.audit.black_box_audit(...) returns")
    if not found.events:
        raise DiscreetError("found tested no event; there is nothing to draw")
    if title is None and ax is None:
        title = f"Claimed ε = {found.epsilon:g}: {'refuted' if found.is_refuted else 'not refuted'}"
    with style.using_library_style():
        figure, (left, right) = style.new_or_given_figure_and_panels(ax, title, size=(10.0, 4.0), panels=(1, 2))
        _draw_event_frequencies(left, found)
        _draw_event_epsilon_bounds(right, found)
    return figure


def _draw_event_frequencies(axes: Axes, audit_record: BlackBoxAudit) -> None:
    event = audit_record.events[0]
    style.write_panel_title(axes, "The leading event", style.short_drawable_name(event.description, "event 1", 52))
    heights = (event.first_count / event.draws, event.second_count / event.draws)
    names = [
        f"input {_audited_input_text(audit_record.inputs[index])}" for index in (event.first_input, event.second_input)
    ]
    bars = axes.bar([0, 1], heights, width=0.5, color=[style.COLOURS["mollifier"], style.COLOURS["held"]])
    axes.bar_label(bars, [f"{height:.4f}" for height in heights], padding=3)
    numbers = (event.first_input + 1, event.second_input + 1)
    labels = [
        style.short_drawable_name(name, f"input {number}", 24) for name, number in zip(names, numbers, strict=True)
    ]
    axes.set_xticks([0, 1], labels, parse_math=False)
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylabel("how often")


def _draw_event_epsilon_bounds(axes: Axes, audit_record: BlackBoxAudit) -> None:
    claim, bounds = audit_record.epsilon, [event.empirical_epsilon_lower_bound for event in audit_record.events]
    style.write_panel_title(
        axes, "What each event proves", "a lower bound for epsilon, on draws that had no part in choosing it"
    )
    rows = list(range(len(bounds)))
    colours = [style.COLOURS["mollifier"] if bound > claim else style.COLOURS["optimal"] for bound in bounds]
    bars = axes.barh(rows, bounds, height=0.5, color=colours)
    axes.bar_label(bars, [f"{bound:.3f}" for bound in bounds], padding=3)
    axes.axvline(claim, color=style.QUIET, linewidth=1.2, linestyle="--")
    axes.annotate(f"claimed {claim:g}", (claim, 1.0), (4, -2), xycoords=("data", "axes fraction"),
                  textcoords="offset points", color=style.QUIET, fontsize=9, va="top")  # fmt: skip
    axes.set_yticks(rows, [f"event {row + 1}" for row in rows])
    axes.set_ylim(len(bounds) - 0.5, -0.9)
    axes.set_xlim(0.0, 1.2 * max(claim, *bounds))
    axes.grid(visible=False)
    axes.set_xlabel("ε")


def _audited_input_text(value: Any) -> str:
    """A value as one would type it: 'b' instead of np.str_('b')."""
    return repr(value.item() if isinstance(value, np.generic) else value)


_VALUES = {
    "mean": "mean over the clients",
    "median": "median of the clients",
    "largest": "largest of the clients",
    "worst_case": "worst case over the family",
}


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
    for name, settings in (("colours", colours), ("labels", labels), ("style", style)):
        if settings is not None:
            check_kind(name, settings, Mapping, "pass a dict")
    rows = [record for record in records if not math.isnan(record.epsilon)]
    if not rows:
        raise DiscreetError("records is empty, or without pure budgets; pass compare(...).records")
    names = list(dict.fromkeys(record.mechanism for record in rows))
    panels = list(dict.fromkeys(record.divergence for record in rows))
    shades = {**mechanism_colours(names), **(colours or {})}
    rc_settings: Any = dict(style or {})
    with using_library_style() if style is None else matplotlib.rc_context(rc_settings):
        figure, axes = new_or_given_figure_and_panels(
            ax, title, size=(3.4 * len(panels) + 1.6, 3.6), panels=(1, len(panels))
        )
        for panel, name in zip(axes, panels, strict=True):
            _draw_compared_mechanisms(
                panel, [record for record in rows if record.divergence == name], value, names, shades, labels or {}
            )
            panel.set_title(_shorten_and_escape_name(divergence_label(name)), loc="left", fontsize=11)
        axes[0].set_ylabel(_VALUES[value])
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
    return figure


def _shorten_and_escape_name(name: str) -> str:
    """A name as matplotlib prints it: one short line, and no dollar sign starts a formula."""
    return shorten_name(" ".join(name.split())).replace("$", r"\$")


def _draw_compared_mechanisms(
    axes: Axes,
    rows: Sequence[Any],
    value: str,
    names: Sequence[str],
    colours: Mapping[str, str],
    labels: Mapping[str, str],
) -> None:
    budgets = sorted({row.epsilon for row in rows})
    as_bars = len(budgets) == 1
    for index, name in enumerate(names):
        points = sorted((row.epsilon, getattr(row, value)) for row in rows if row.mechanism == name)
        if not points:
            continue
        is_bound = value == "worst_case" and not all(row.exact for row in rows if row.mechanism == name)
        label = labels.get(name, _shorten_and_escape_name(name)) + (" (upper bound)" if is_bound else "")
        if as_bars:
            axes.bar(index, points[0][1], color=colours[name], label=label, alpha=0.5 if is_bound else 1.0)
        else:
            line = ":" if is_bound else "-"
            axes.plot(*zip(*points, strict=True), line, color=colours[name], label=label, marker="o", markersize=3.5)
    smallest = sorted({(row.epsilon, row.smallest) for row in rows if not math.isnan(row.smallest)})
    if value == "worst_case" and smallest:
        line_style: Any = {
            "color": style.QUIET,
            "linestyle": (0, (4, 2)),
            "linewidth": 1.0,
            "label": "smallest possible",
        }
        if as_bars:
            axes.axhline(smallest[0][1], **line_style)
        else:
            axes.plot(*zip(*smallest, strict=True), **line_style)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(f"ε = {budgets[0]:g}" if as_bars else "ε")
    if as_bars:
        axes.set_xticks([])
