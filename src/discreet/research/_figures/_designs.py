"""Designs on clients they were not made on: each sampler's mean KL as a multiple of the certified floor, set by set."""

from collections.abc import Sequence

from discreet.plots._style import COLOURS, INK, QUIET, Axes, Figure, figure, library_style, panel_title
from discreet.research._reports._designs import SAMPLER_LABELS, DesignCase, cases
from discreet.research.experiments._designs import DESIGN_RIVALS, DesignedSplit
from discreet.research.experiments._records import RecordedRun

_COLOURS = {
    **{name: COLOURS[name] for name in ("optimal", "linear", "mollifier")},
    "uniform": "#E69F00",
    "designed": "#B00020",
}
_ACROSS = 3


def design_figure(run: RecordedRun[DesignedSplit]) -> Figure:
    """One panel for each set; the floor is at 1."""
    found: dict[str, list[DesignCase]] = {}
    for case in cases(run.rows):
        found.setdefault(case.title, []).append(case)
    down = -(-len(found) // _ACROSS)
    with library_style():
        drawn = figure(11.6, 1.2 + 2.7 * down)
        drawn.suptitle(
            "Mean KL of clients that no design has seen, as a multiple of what no private sampler can go below",
            x=0.012, ha="left", fontsize=13, fontweight="bold",
        )  # fmt: skip
        grid = drawn.subplots(down, min(_ACROSS, len(found)), squeeze=False, sharex=True)
        panels: list[Axes] = list(grid.flat)
        for axes, (title, those) in zip(panels, found.items(), strict=False):
            _panel(axes, title, those)
        for axes in panels[len(found) :]:
            axes.set_visible(False)
        panels[0].legend(frameon=False, fontsize=9, loc="upper left")
        if run.header.quick:
            drawn.text(0.995, 0.985, "QUICK RUN", ha="right", va="top", fontsize=9, color="#B00020", fontweight="bold")
    return drawn


def _panel(axes: Axes, title: str, those: Sequence[DesignCase]) -> None:
    those = sorted(those, key=lambda case: case.epsilon)
    budgets = [case.epsilon for case in those]
    axes.axhline(1.0, color=QUIET, linewidth=1.0)
    for name in (*DESIGN_RIVALS, "designed"):
        ratios = [case.mean(name, "kl") / case.floor for case in those]
        axes.plot(
            budgets, ratios, color=_COLOURS[name], label=SAMPLER_LABELS[name], marker="o", markersize=3.5,
            linewidth=2.2 if name == "designed" else 1.4, linestyle="--" if name == "linear" else "-",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    highest = max(case.mean(name, "kl") / case.floor for case in those for name in DESIGN_RIVALS)
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 40) if tick <= 1.15 * highest]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("ε", color=INK)
    panel_title(axes, title)
