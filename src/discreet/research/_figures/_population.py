"""Pictures of the population experiment: who is closer on every set at every budget; and each set's costs and errors against epsilon."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, INK, QUIET, Axes, Figure, figure, library_style, panel_title
from discreet.research._reports._contests import (
    REPORT_LABELS,
    RIVALS,
    SAMPLES,
    SHORT_LABELS,
    Contest,
    by_set,
    describe_set,
    mean_error,
)
from discreet.research._reports._summaries import recorded_epsilons
from discreet.research.experiments._population import SetAtBudget
from discreet.research.experiments._records import RecordedRun

QUICK_MARK = "QUICK RUN: few repetitions"
_RIVAL_COLOURS = {
    **{name: COLOURS[name] for name in SAMPLES},
    "subset": "#CC79A7",
    "unary": "#E69F00",
    "hashing": "#8A6100",
    "raw": QUIET,
}
_DASHES: dict[str, Any] = {"hashing": (0, (1.2, 1.6)), "raw": (0, (4, 2))}
_GAP = 0.062  # between two names, as a share of the panel's height
_WINNERS = {"sample": "#CFE3F1", "oracle": "#F7DDCB", None: "#F2F2F2"}


def population_figures(run: RecordedRun[SetAtBudget]) -> dict[str, Figure]:
    """The overview under "population", and one picture for each set under "population-NAME"."""
    rows = run.rows
    with library_style():
        found = {"population": _overview(rows)}
        found |= {f"population-{name}": _one_set(those) for name, those in by_set(rows).items()}
        if run.header.quick:
            for drawn in found.values():
                drawn.text(
                    0.995, 0.985, QUICK_MARK, ha="right", va="top", fontsize=9, color="#B00020", fontweight="bold"
                )
    return found


def _overview(rows: Sequence[SetAtBudget]) -> Figure:
    sets, budgets = by_set(rows), recorded_epsilons(rows)
    drawn = figure(11.6, 1.9 + 0.62 * len(sets))
    drawn.suptitle(
        "The population's law from one report of each client: samples or a frequency oracle?",
        x=0.012, ha="left", fontsize=13, fontweight="bold",
    )  # fmt: skip
    axes = drawn.subplots()
    for line, those in enumerate(sets.values()):
        for row in those:
            _cell(axes, budgets.index(row.epsilon), line, Contest(row))
    axes.set_xlim(-0.5, len(budgets) - 0.5)
    axes.set_ylim(len(sets) - 0.5, -0.5)
    axes.set_xticks(range(len(budgets)), [f"ε = {epsilon:g}" for epsilon in budgets])
    firsts = [those[0] for those in sets.values()]
    axes.set_yticks(range(len(sets)), [f"{row.title}\nk = {row.outcomes}, {row.clients:,} {row.who}" for row in firsts])
    axes.tick_params(length=0, colors=INK)
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(
        "TV error of the best kind of sample / of the best oracle (lower is closer). Blue: a sample is closer; orange: an oracle is; "
        "grey: undecided.\nItalic: the uniform distribution, which takes no data at all, is as close or nearly.",
        fontsize=9, color=QUIET, loc="left",
    )  # fmt: skip
    return drawn


def _cell(axes: Axes, x: int, y: int, contest: Contest) -> None:
    axes.add_patch(_rectangle((x - 0.48, y - 0.46), 0.96, 0.92, _WINNERS[contest.winner]))
    style = "normal" if contest.informative else "italic"
    names = f"{SHORT_LABELS[contest.sample]} / {SHORT_LABELS[contest.oracle]}"
    values = f"{mean_error(contest.row, contest.sample):.3f} / {mean_error(contest.row, contest.oracle):.3f}"
    axes.annotate(names, (x, y), (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8, style=style)
    axes.annotate(values, (x, y), (0, -1), textcoords="offset points", ha="center", va="top", fontsize=9, style=style)


def _rectangle(corner: tuple[float, float], width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor=colour, linewidth=0)


def _one_set(rows: Sequence[SetAtBudget]) -> Figure:
    drawn = figure(14.6, 4.9)
    drawn.suptitle(_capital(describe_set(rows[0])), x=0.012, ha="left", fontsize=13, fontweight="bold")
    panels = drawn.subplots(1, 3)
    for axes, f in zip(panels, ("tv", "kl"), strict=False):
        panel_title(axes, f"What it costs a client: {divergence_label(f)}", "from its law to the law it draws from")
        _costs(axes, rows, f)
    panel_title(
        panels[2],
        "What the curator learns",
        f"total variation to the average client's law, one report each, {rows[0].repetitions} times",
    )
    _errors(panels[2], rows)
    return drawn


def _costs(axes: Axes, rows: Sequence[SetAtBudget], f: str) -> None:
    worst = {name: [row.realised[name][f].worst for row in rows] for name in SAMPLES}
    alike = bool(np.allclose(worst["optimal"], worst["linear"], rtol=1e-6))
    lines: dict[str, tuple[list[float], str, Any]] = {}
    for name in ("mollifier", "linear", "optimal"):
        lines[f"{SHORT_LABELS[name]}, mean"] = [row.realised[name][f].mean for row in rows], COLOURS[name], "solid"
        if not (alike and name == "linear"):
            label = "Q* and linear, worst" if alike and name == "optimal" else f"{SHORT_LABELS[name]}, worst"
            lines[label] = worst[name], COLOURS[name], (0, (4, 2))
    _lines(axes, rows, lines)


def _errors(axes: Axes, rows: Sequence[SetAtBudget]) -> None:
    lines: dict[str, tuple[list[float], str, Any]] = {
        "uniform, without data": ([row.uniform["tv"] for row in rows], "#AAAAAA", (0, (1.2, 1.6)))
    }
    for name in ("raw", *reversed(RIVALS)):
        label = REPORT_LABELS[name] if name == "raw" else REPORT_LABELS[name].split(",")[0]
        lines[label] = [mean_error(row, name) for row in rows], _RIVAL_COLOURS[name], _DASHES.get(name, "solid")
    _lines(axes, rows, lines)


def _lines(axes: Axes, rows: Sequence[SetAtBudget], lines: Mapping[str, tuple[list[float], str, Any]]) -> None:
    """Curves on two logarithmic axes, each named beside its right end; names that would collide are moved apart and led to."""
    budgets = [row.epsilon for row in rows]
    for values, colour, dashes in lines.values():
        axes.plot(
            budgets, values, color=colour, linestyle=dashes, marker="o", markersize=3.2, linewidth=1.8, clip_on=False
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(budgets[0], budgets[-1])
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("privacy budget ε")
    lowest, highest = (pick(v for values, *_ in lines.values() for v in values) for pick in (min, max))
    axes.set_ylim(0.8 * lowest, 1.25 * highest)
    ticks = [d * 10.0**e for e in range(-12, 3) for d in (1, 2, 5) if 0.8 * lowest <= d * 10.0**e <= 1.25 * highest]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if np.isclose(np.log10(tick) % 1.0, 0.0) or np.isclose(np.log10(tick) % 1.0, 1)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    low, high = np.log(axes.get_ylim())
    ends = {name: float((np.log(values[-1]) - low) / (high - low)) for name, (values, *_) in lines.items()}
    for name, height in separate_heights(ends, _GAP).items():
        axes.annotate(
            name,
            (1.0, ends[name]), (1.09, height), xycoords="axes fraction", textcoords="axes fraction",
            color=lines[name][1], fontsize=8.5, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#CCCCCC", "linewidth": 0.7, "shrinkA": 2, "shrinkB": 4, "relpos": (0, 0.5)},
        )  # fmt: skip


def separate_heights(ends: Mapping[str, float], gap: float) -> dict[str, float]:
    """The heights moved as little as needs be (in squares) so that neighbours are `gap` apart or more, in the same order, none below 0."""
    order = sorted(ends, key=lambda name: ends[name])
    groups: list[tuple[float, int]] = []  # mean of (height - place * gap), members: pooled while they would overlap
    for place, name in enumerate(order):
        level, size = ends[name] - place * gap, 1
        while groups and groups[-1][0] >= level:
            before, members = groups.pop()
            level, size = (before * members + level * size) / (members + size), members + size
        groups.append((level, size))
    levels = [level for level, size in groups for _ in range(size)]
    return {name: max(level, 0.0) + place * gap for place, (name, level) in enumerate(zip(order, levels, strict=True))}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
