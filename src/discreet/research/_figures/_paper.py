"""The paper's figures from their records, in the paper's layout: images, bars by budget in three panels, bars by outcome."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, INK, QUIET, Axes, Figure, figure, library_style, panel_title
from discreet.research._reports._summaries import client_costs, recorded_epsilons, recorded_mechanisms
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._finite_figures import FiniteLaw, WorstCases
from discreet.research.experiments._mixtures import MixtureClient
from discreet.research.experiments._records import RecordedRun
from discreet.research.experiments._ring import RingLaw

PAPER_LABELS = {
    "proposed": "proposed, Q*",
    "optimal": "proposed, Q*",
    "boosted": "boosted baseline, as published",
    "boosted_corrected": "boosted baseline, budget corrected",
    "mollifier": "mollifier, exact projection",
}
_FILL = {
    "proposed": COLOURS["optimal"],
    "optimal": COLOURS["optimal"],
    "boosted": COLOURS["mollifier"],
    "boosted_corrected": "#E69F00",
    "mollifier": COLOURS["linear"],
}
Bars = Mapping[str, Mapping[str, Sequence[float]]]  # heights by mechanism and divergence, one for each budget
QUICK_MARK = "QUICK RUN: not the paper's setting"


def paper_figure(run: RecordedRun[Any]) -> Figure:
    """The figure that an experiment's records stand for."""
    with library_style():
        match run.rows[0]:
            case RingLaw():
                drawn = _ring(run.rows)
            case FiniteLaw():
                drawn = _finite_mechanism(run.rows)
            case MixtureClient():
                drawn = _mixtures(run.rows)
            case _:
                drawn = _worst_cases(run.rows)
        if run.header.quick and isinstance(run.rows[0], RingLaw | MixtureClient):
            drawn.text(0.995, 0.985, QUICK_MARK, ha="right", va="top", fontsize=9, color="#B00020", fontweight="bold")
    return drawn


def _ring(rows: Sequence[RingLaw]) -> Figure:
    found = {row.unit: row for row in rows}
    titles = {
        "original": ("original", "the Gaussian ring"),
        "boosted": ("boosted, published", ""),
        "mollifier": ("mollifier, exact", ""),
        "proposed": ("Q*, published class", ""),
        "tight": ("Q*, tight class", ""),
    }
    shown = [name for name in titles if name in found]
    drawn = figure(2.55 * len(shown) + 0.6, 3.5)
    drawn.suptitle(
        f"Figure 1: the Gaussian ring and what is sampled instead at ε = {rows[0].epsilon:g}",
        x=0.012, ha="left", fontsize=13, fontweight="bold",
    )  # fmt: skip
    panels = drawn.subplots(1, len(shown), sharex=True, sharey=True)
    brightest = max(max(found[name].density) for name in shown)
    for axes, name in zip(panels, shown, strict=True):
        row = found[name]
        side, reach = round(len(row.density) ** 0.5), row.half_width
        image = axes.imshow(
            np.reshape(row.density, (side, side)), origin="lower", extent=(-reach, reach, -reach, reach),
            cmap="plasma", vmin=0.0, vmax=brightest, interpolation="bilinear",
        )  # fmt: skip
        subtitle = titles[name][1] or f"KL {row.costs['kl']:.4f}, TV {row.costs['tv']:.4f}"
        panel_title(axes, titles[name][0], subtitle)
        axes.grid(visible=False)
        axes.set_xticks([-2, 0, 2])
        axes.set_yticks([-2, 0, 2])
    bar = drawn.colorbar(image, ax=list(panels), shrink=0.8, pad=0.01)
    bar.outline.set_visible(False)
    return drawn


def _finite_mechanism(rows: Sequence[FiniteLaw]) -> Figure:
    drawn = figure(7.6, 4.2)
    axes = drawn.subplots()
    law = rows[0].law
    places = np.arange(len(law))
    blues = ("#0B4F8A", COLOURS["optimal"], "#7FB8DC", "#C3DDEF")
    series: list[tuple[str, Sequence[float], str]] = [("P, what the client holds", law, COLOURS["held"])]
    series += [(f"Q*, ε = {row.epsilon:g}", row.optimal, blues[i % 4]) for i, row in enumerate(rows)]
    width = 0.8 / len(series)
    for i, (label, values, colour) in enumerate(series):
        axes.bar(places - 0.4 + (i + 0.5) * width, values, 0.92 * width, color=colour, label=label)
    axes.axhline(1 / len(law), color=QUIET, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.annotate(
        "uniform",
        (places[-1] + 0.45, 1 / len(law)),
        (0, 3),
        textcoords="offset points",
        ha="right",
        color=QUIET,
        fontsize=9,
    )
    axes.set_xticks(places, [str(place + 1) for place in places])
    axes.set_xlabel("outcome x")
    axes.set_ylabel("probability")
    axes.legend(frameon=False, ncols=2, loc="upper right", fontsize=9)
    panel_title(axes, "Figure 2: the optimal mechanism on five outcomes", "the smaller ε, the closer to uniform")
    return drawn


def _worst_cases(rows: Sequence[WorstCases]) -> Figure:
    number = {10: 3, 5: 5, 20: 6, 100: 7}.get(rows[0].outcomes, 0)
    bars = {
        name: {f: [row.risks[name][f] for row in rows] for f in PAPER_DIVERGENCES} for name in ("optimal", "mollifier")
    }
    labels = {"optimal": "proposed", "mollifier": "baseline (mollifier around uniform)"}
    title = f"Figure {number}: worst case over every law on k = {rows[0].outcomes} outcomes"
    return _three_panels(title, [row.epsilon for row in rows], bars, labels, "worst-case divergence")


def _mixtures(rows: Sequence[MixtureClient]) -> Figure:
    budgets, names = recorded_epsilons(rows), recorded_mechanisms(rows)
    bars = {
        name: {f: [client_costs(rows, e, name, f).max() for e in budgets] for f in PAPER_DIVERGENCES} for name in names
    }
    means = {
        name: {f: [client_costs(rows, e, name, f).mean() for e in budgets] for f in PAPER_DIVERGENCES} for name in names
    }
    clients = len(rows) // len(budgets)
    title = f"Figure 4: {clients} random Gaussian mixtures, the worst (bars) and the mean (dots)"
    return _three_panels(title, budgets, bars, PAPER_LABELS, "divergence", means)


def _three_panels(
    title: str, budgets: Sequence[float], bars: Bars, labels: dict[str, str], measure: str, dots: Bars | None = None
) -> Figure:
    drawn = figure(11.6, 3.9)
    drawn.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    panels = drawn.subplots(1, 3)
    places, names = np.arange(len(budgets)), list(bars)
    width = 0.8 / len(names)
    for axes, f in zip(panels, PAPER_DIVERGENCES, strict=True):
        for i, name in enumerate(names):
            x = places - 0.4 + (i + 0.5) * width
            axes.bar(x, bars[name][f], 0.92 * width, color=_FILL[name], label=labels[name])
            if dots:
                axes.scatter(
                    x, dots[name][f], s=14, color="white", edgecolor=INK, linewidth=0.8, zorder=3, clip_on=False
                )
        panel_title(axes, divergence_label(f))
        axes.set_xticks(places, [f"{epsilon:g}" for epsilon in budgets])
        axes.set_xlabel("privacy budget ε")
        axes.locator_params(axis="y", nbins=6)
    panels[0].set_ylabel(measure)
    _legend(drawn, panels[0])
    return drawn


def _legend(drawn: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
