"""Ordered outcomes of real clients: mean distances by budget, and one client's laws on the axis that has the order."""

from collections.abc import Sequence

import numpy as np

from discreet.plots._style import COLOURS, QUIET, Axes, Figure, figure, panel_title
from discreet.research._reports._follow_up import ORDERED_LABELS
from discreet.research.experiments._ordered import ORDERED_MECHANISMS, OrderedSet

_COLOURS = {
    "transport": "#B00020",
    "optimal": COLOURS["optimal"],
    "mollifier": COLOURS["mollifier"],
    "laplace": QUIET,
}
_WANTED = ("delays", "cholesterol")
_SHOWN_AT = 2.0  # the budget at which one client is shown, if it is there


def ordered_figure(rows: Sequence[OrderedSet]) -> Figure:
    """For delays and cholesterol, those of them that are at hand: distances against epsilon, and one client."""
    names = [name for name in _WANTED if any(row.set == name for row in rows)]
    drawn = figure(11.6, 0.9 + 3.2 * len(names))
    drawn.suptitle(
        "Ordered outcomes: how far a sample's law is from the client's own, at equal ε",
        x=0.012, ha="left", fontsize=13, fontweight="bold",
    )  # fmt: skip
    grid = drawn.subplots(len(names), 3, squeeze=False, width_ratios=(1.0, 1.0, 1.9))
    for line, name in zip(grid, names, strict=True):
        those = sorted((row for row in rows if row.set == name), key=lambda row: row.epsilon)
        _lines(line[0], those, "mean")
        panel_title(line[0], f"{those[0].title}: mean", f"Wasserstein-1 of {those[0].clients:,} {those[0].who}")
        _lines(line[1], those, "single_outcome")
        panel_title(line[1], "worst client", "who holds one outcome only")
        _client(line[2], min(those, key=lambda row: abs(row.epsilon - _SHOWN_AT)))
    handles, labels = grid[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return drawn


def _lines(axes: Axes, rows: Sequence[OrderedSet], which: str) -> None:
    budgets = [row.epsilon for row in rows]
    for name in ORDERED_MECHANISMS:
        values = [getattr(row.distances[name], which) for row in rows]
        axes.plot(
            budgets, values, color=_COLOURS[name], marker="o", markersize=3.5, label=ORDERED_LABELS[name],
            linewidth=2.2 if name == "transport" else 1.4,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("ε")
    axes.set_ylabel(rows[0].measure)


def _client(axes: Axes, row: OrderedSet) -> None:
    places = np.asarray(row.places)
    axes.bar(places, row.shown, 0.8 * row.step, color="#DDDDDD", label="what it holds")
    for name in ORDERED_MECHANISMS:
        q = np.asarray(row.shown_outputs[name])
        away = row.step * np.abs(np.cumsum(q - np.asarray(row.shown))).sum()
        axes.step(
            places, q, where="mid", color=_COLOURS[name], linewidth=2.0 if name == "transport" else 1.2,
            label=f"{ORDERED_LABELS[name]}: {away:.3g} {row.measure} off",
        )  # fmt: skip
    axes.set_xlabel(row.measure)
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
    panel_title(
        axes, f"one of the {row.who} at ε = {row.epsilon:g}", "what it holds, and what its sample is drawn from"
    )
