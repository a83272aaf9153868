"""Pictures of the follow-up's experiments from their records: minimax values, random mixtures, and four Laplace laws in the plane."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, Axes, Figure, figure, library_style, panel_title
from discreet.research._figures._ordered import ordered_figure
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._follow_up._finite import FiniteClasses
from discreet.research.experiments._follow_up._mixtures import MixtureClasses
from discreet.research.experiments._follow_up._plane import PlaneLaw
from discreet.research.experiments._records import RecordedRun

KIND_LABELS = {
    "pure": ("pure", "ε"),
    "approximate": ("approximate, δ = 0.001", "ε"),
    "gaussian": ("Gaussian", "ν"),
    "functional": ("trade-off of Laplace noise", "μ"),
}
_PALE = {"global": "#9CC6E2", "local": "#F0B48C"}
_FULL = {"global": COLOURS["optimal"], "local": COLOURS["mollifier"]}
QUICK_MARK = "QUICK RUN"
_ROUNDING = 1e-15  # below which a divergence is none


def follow_up_figures(runs: Mapping[str, RecordedRun[Any]]) -> dict[str, Figure]:
    """One picture for each experiment."""
    drawers: dict[str, Callable[[Sequence[Any]], Figure]] = {
        "local_finite": _finite,
        "local_mixtures": _mixtures,
        "local_plane": _plane,
        "ordered": ordered_figure,
    }
    with library_style():
        found = {name: draw(runs[name].rows) for name, draw in drawers.items()}
        for name, drawn in found.items():
            if runs[name].header.quick:
                drawn.text(
                    0.995, 0.99, QUICK_MARK, ha="right", va="top", fontsize=9, color="#B00020", fontweight="bold"
                )
    return found


def _finite(rows: Sequence[FiniteClasses]) -> Figure:
    """Ten outcomes (or as few as there are): a line of panels for each notion, a panel for each divergence."""
    fewest = min(row.outcomes for row in rows)
    those = [row for row in rows if row.outcomes == fewest]
    kinds = [kind for kind in KIND_LABELS if any(row.kind == kind for row in those)]
    drawn = figure(11.0, 1.0 + 2.3 * len(kinds))
    _title(
        drawn,
        f"The least worst case on {fewest} outcomes: everybody (global), clients near uniform (local)",
    )
    grid = drawn.subplots(len(kinds), len(PAPER_DIVERGENCES), squeeze=False)
    for line, kind in zip(grid, kinds, strict=True):
        own = sorted((row for row in those if row.kind == kind), key=lambda row: row.budget)
        places = np.arange(len(own))
        for axes, f in zip(line, PAPER_DIVERGENCES, strict=True):
            for side, name in ((-0.2, "global"), (0.2, "local")):
                heights = [row.classes[name].minimax[f] for row in own]
                axes.bar(places + side, heights, 0.36, color=_FULL[name], label=f"{name}, ours")
                theirs = [row.classes[name].published_minimax.get(f, np.nan) for row in own]
                axes.scatter(
                    places + side,
                    theirs,
                    s=16,
                    color="white",
                    edgecolor="#222222",
                    linewidth=0.8,
                    zorder=3,
                    label=_theirs(name),
                )
            _budgets(axes, places, own, KIND_LABELS[kind][1])
            panel_title(axes, KIND_LABELS[kind][0], divergence_label(f))
    _legend(drawn, grid[0][0], ("global, ours", "local, ours", _theirs("local")))
    return drawn


def _mixtures(rows: Sequence[MixtureClasses]) -> Figure:
    """The largest KL (bars) and the mean (dots): a line for each shape, a panel for each notion; pale: linear, full: projection."""
    shapes = list(dict.fromkeys(row.shape for row in rows))
    kinds = [kind for kind in KIND_LABELS if any(row.kind == kind for row in rows)]
    drawn = figure(3.3 * len(kinds) + 0.4, 1.0 + 2.3 * len(shapes))
    _title(drawn, "Random mixtures near a public law: the worst client's KL (bars) and the mean (dots)")
    grid = drawn.subplots(len(shapes), len(kinds), squeeze=False)
    for line, shape in zip(grid, shapes, strict=True):
        for axes, kind in zip(line, kinds, strict=True):
            own = sorted((row for row in rows if (row.shape, row.kind) == (shape, kind)), key=lambda row: row.budget)
            _mixture_panel(axes, own)
            _budgets(axes, np.arange(len(own)), own, KIND_LABELS[kind][1])
            panel_title(axes, KIND_LABELS[kind][0], own[0].title)
    _legend(
        drawn, grid[0][0], tuple(f"{name}, {how}" for name in _FULL for how in ("linear, as published", "projection"))
    )
    return drawn


def _mixture_panel(axes: Axes, rows: Sequence[MixtureClasses]) -> None:
    places, width = np.arange(len(rows)), 0.2
    for place, (name, how) in enumerate((name, how) for name in _FULL for how in ("linear", "projection")):
        found = [row.classes[name].pointwise["kl"] for row in rows]
        x = places + (place - 1.5) * width
        label = f"{name}, {'linear, as published' if how == 'linear' else how}"
        colour = (_PALE if how == "linear" else _FULL)[name]
        axes.bar(x, [getattr(one, how) for one in found], 0.92 * width, color=colour, label=label)
        means = [getattr(one, f"{how}_mean") for one in found]
        axes.scatter(x, means, s=9, color="white", edgecolor="#222222", linewidth=0.7, zorder=3)


def _plane(rows: Sequence[PlaneLaw]) -> Figure:
    """The client, and by lines of panels what is sampled instead: pure by projection, Gaussian as published, Gaussian by projection."""
    found = {row.unit: row for row in rows}
    lines = [
        ("pure/{}/projection", "projection"),
        ("gaussian/{}/linear", "linear, as published"),
        ("gaussian/{}/projection", "projection, ours"),
    ]
    drawn = figure(9.6, 8.4)
    _title(drawn, "Four Laplace laws in the plane and what is sampled instead")
    grid = drawn.subplots(len(lines), 3, sharex=True, sharey=True)
    brightest = max(max(row.density) for row in rows)
    for line, (unit, mechanism) in zip(grid, lines, strict=True):
        shown = [found["client"], *(found[unit.format(name)] for name in ("global", "local"))]
        for axes, row in zip(line, shown, strict=True):
            side, reach = round(len(row.density) ** 0.5), row.half_width
            image = axes.imshow(
                np.reshape(row.density, (side, side)), origin="lower", extent=(-reach, reach, -reach, reach),
                cmap="viridis", vmin=0.0, vmax=brightest, interpolation="bilinear",
            )  # fmt: skip
            axes.grid(visible=False)
            axes.set_xticks([-2, 0, 2])
            axes.set_yticks([-2, 0, 2])
            if row.costs:
                panel_title(
                    axes, f"{row.family}, {row.notion}", f"{mechanism}: KL {max(row.costs['kl'] - _ROUNDING, 0.0):.2g}"
                )
            else:
                panel_title(axes, "the client")
    drawn.colorbar(image, ax=list(grid.flat), shrink=0.6, pad=0.01).outline.set_visible(False)
    return drawn


def _theirs(name: str) -> str:
    return f"{'both' if name == 'local' else name}, by the published calibration"


def _budgets(axes: Axes, places: Any, rows: Sequence[Any], symbol: str) -> None:
    axes.set_xticks(places, [f"{row.budget:g}" for row in rows])
    axes.set_xlabel(symbol)
    axes.locator_params(axis="y", nbins=5)


def _title(drawn: Figure, text: str) -> None:
    drawn.suptitle(text, x=0.012, ha="left", fontsize=13, fontweight="bold")


def _legend(drawn: Figure, axes: Axes, wanted: Sequence[str]) -> None:
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    drawn.legend(
        [handles[label] for label in wanted],
        wanted,
        loc="outside lower center",
        ncols=len(wanted),
        frameon=False,
        fontsize=9,
    )
