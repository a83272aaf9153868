"""A plan as two panels: what a sample costs its client against epsilon, and what the curator's error is against clients."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.plots.labels import divergence_label
from discreet.plots.style import COLOURS, INK, QUIET, Axes, Figure, figure, panel_title, styled

Floats = NDArray[np.float64]
_STYLES = {"tv": "-", "kl": "--"}


@dataclass(frozen=True)
class Plan:
    """Worst-case divergences against epsilon; half-widths against clients for each (epsilon, mechanism)."""

    epsilon: Floats
    risk: Mapping[str, Floats]
    clients: Floats
    errors: Mapping[tuple[float, str], Floats]
    planned: int
    accuracy: float


def plan_figure(plan: Plan, *, title: str) -> Figure:
    """Both panels side by side."""
    with styled():
        drawn = figure(11.6, 4.6)
        drawn.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
        left, right = drawn.subplots(1, 2)
        _draw_risk(left, plan)
        _draw_errors(right, plan)
    return drawn


def _draw_risk(axes: Axes, plan: Plan) -> None:
    panel_title(axes, "What a sample costs its client", "least worst-case divergence, linear and optimal alike")
    for name, risk in plan.risk.items():
        axes.plot(plan.epsilon, risk, _STYLES[name], color=COLOURS["optimal"], label=divergence_label(name))
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if plan.epsilon[0] <= tick <= plan.epsilon[-1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("privacy budget ε")
    axes.legend(loc="upper right", frameon=False, labelcolor=INK)


def _draw_errors(axes: Axes, plan: Plan) -> None:
    panel_title(
        axes, "How well a share will be known", "half-width of its interval at worst: linear solid, optimal dotted"
    )
    budgets = sorted({budget for budget, _ in plan.errors})
    shades = dict(zip(budgets, np.linspace(1.0, 0.35, len(budgets))[::-1], strict=True))
    for (budget, name), errors in plan.errors.items():
        axes.plot(
            plan.clients, errors, "-" if name == "linear" else ":", color=COLOURS[name], alpha=float(shades[budget]),
            linewidth=1.8,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    lowest = np.inf
    gap = (axes.get_ylim()[1] / axes.get_ylim()[0]) ** 0.045
    for budget in budgets:  # the more privacy the higher the line: names move down until they are apart
        lowest = min(float(plan.errors[budget, "linear"][-1]), lowest / gap)
        axes.annotate(
            f"ε = {budget:g}", (plan.clients[-1], lowest), (4, 0), textcoords="offset points", va="center",
            color=COLOURS["linear"], fontsize=8, annotation_clip=False,
        )  # fmt: skip
    axes.axhline(plan.accuracy, color=INK, linewidth=0.8)
    axes.annotate(
        f"wanted: ±{plan.accuracy:g}", (plan.clients[0], plan.accuracy), (4, 3), textcoords="offset points", fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
    )  # fmt: skip
    axes.axvline(plan.planned, color=QUIET, linewidth=0.8, linestyle="--")
    axes.annotate(
        "planned", (plan.planned, axes.get_ylim()[0]), (3, 3), textcoords="offset points", fontsize=8, color=QUIET
    )
    axes.set_xlim(plan.clients[0], plan.clients[-1])
    axes.set_xlabel("clients")
    axes.set_ylabel("± share")
