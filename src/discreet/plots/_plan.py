"""A plan as two panels: what a sample costs its client against epsilon, and what the curator's error is against clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet._showing import pluralise
from discreet.errors import OPEN_UNIT, DiscreetError, check_count
from discreet.estimation import outlook
from discreet.estimation._planning import MOST_CLIENTS
from discreet.families import Band, Simplex
from discreet.mechanisms import LinearSampler, OptimalSampler
from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, INK, QUIET, Axes, AxesLike, Figure, canvas, library_style, panel_title
from discreet.privacy._pure import check_epsilon

Floats = NDArray[np.float64]
USUAL_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_STYLES = {"tv": "-", "kl": "--"}
_KINDS = {kind.name: kind for kind in (LinearSampler, OptimalSampler)}


def plan(
    family: Simplex | Band,
    *,
    clients: int,
    epsilons: Sequence[float] = USUAL_EPSILONS,
    accuracy: float = 0.05,
    confidence: float = 0.95,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """A plan in two panels: what a sample costs its client against epsilon, and how well a share will be known against clients.

    Args:
        family: The outcomes, as a `Simplex` or `Band`.
        clients: How many are planned.
        epsilons: The budgets to choose from.
        accuracy: How near a share should be to the truth; drawn as a line.
        confidence: Of every interval.
        ax: Two axes to draw on; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: An argument is out of its range, or `ax` does not hold two axes.
    """
    if not isinstance(family, Simplex | Band):
        raise DiscreetError(
            f"family = {family!r} has no outcomes whose shares could be planned; pass a Simplex or a Band"
        )
    check_count("clients", clients, most=MOST_CLIENTS)
    OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
    budgets = sorted({check_epsilon(each) for each in epsilons})
    if not budgets:
        raise DiscreetError("epsilons is empty; give one budget or more")
    if title is None and ax is None:
        title = f"A plan for {pluralise(clients, 'client')} and {pluralise(family.size, 'outcome')}"
    found = _compute_plan(family, clients, budgets, accuracy, confidence)
    with library_style():
        drawn, (left, right) = canvas(ax, title, size=(11.6, 4.6), panels=(1, 2))
        _draw_risk(left, found)
        _draw_errors(right, found)
    return drawn


@dataclass(frozen=True)
class _PlanCurves:
    """Worst-case divergences against epsilon; half-widths against clients for each (epsilon, mechanism)."""

    epsilon: Floats
    risk: Mapping[str, Floats]
    clients: Floats
    errors: Mapping[tuple[float, str], Floats]
    planned: int
    accuracy: float


def _compute_plan(
    family: Simplex | Band, clients: int, budgets: Sequence[float], accuracy: float, confidence: float
) -> _PlanCurves:
    grid = np.geomspace(min(budgets[0], 0.1), max(budgets[-1], 10.0), 60)
    samplers = [OptimalSampler(family, epsilon=each) for each in grid.tolist()]
    sizes = np.geomspace(max(10, clients / 100), clients * 100, 40)

    def error(name: str, budget: float, size: float) -> float:
        sampler = _KINDS[name](family, epsilon=budget)
        return outlook(sampler, mechanism=name, clients=int(size), confidence=confidence).at_worst

    return _PlanCurves(
        epsilon=grid,
        risk={f: np.array([float(sampler.risk(f)) for sampler in samplers]) for f in _STYLES},
        clients=sizes,
        errors={
            (budget, name): np.array([error(name, budget, size) for size in sizes])
            for budget in budgets
            for name in _KINDS
        },
        planned=clients,
        accuracy=accuracy,
    )


def _draw_risk(axes: Axes, plan: _PlanCurves) -> None:
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


def _draw_errors(axes: Axes, plan: _PlanCurves) -> None:
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
