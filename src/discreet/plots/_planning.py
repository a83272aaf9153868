"""Pictures for choosing a budget, a mechanism or a design: trade-off curves, the frontier of designs, and a plan.

`tradeoff` draws the worst-case divergence against epsilon, one panel for each divergence. `frontier` draws the mean over examples against
the worst case over all clients, as a design keeps less of the best worst case. `plan` draws the cost of a sample against epsilon, and the
curator's error against the number of clients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.showing import pluralise
from discreet.design import Design, minimax_risk
from discreet.divergences import FDivergence, divergence
from discreet.errors import OPEN_UNIT, DiscreetError, check_count, check_kind, check_list
from discreet.estimation import MOST_CLIENTS, outlook
from discreet.families import Band, ContinuousFamily, FiniteFamily, Simplex, as_floats
from discreet.mechanisms import SERVING, MollifierSampler, OptimalSampler
from discreet.plots import USUAL_DIVERGENCES, USUAL_EPSILONS, _style as style, divergence_label
from discreet.plots._style import Axes, AxesLike, Figure
from discreet.privacy import check_epsilon

MOST_PANELS = 4


def tradeoff(
    family: FiniteFamily | ContinuousFamily,
    *,
    epsilon: ArrayLike,
    divergences: Sequence[str | FDivergence] = USUAL_DIVERGENCES,
    bracket: bool = False,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the smallest worst-case divergence against epsilon, beside the mollifier baseline: one panel for each divergence.

    Args:
        family: The family of the clients.
        epsilon: The budgets, two or more.
        divergences: One to four, by name or custom.
        bracket: If the formula is only an upper bound, draw the band of the smallest worst case, certified from both sides
            (`minimax_risk`), and the optimal sampler's own worst case.
        ax: Axes to draw on, one for each divergence; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: There is nothing to draw (fewer than two budgets, a divergence that is infinite at each of them), more
            divergences than fit, `ax` does not have one for each, or a bracket is requested but unknown.
    """
    budgets = np.sort(np.atleast_1d(as_floats(epsilon, "epsilon")).ravel())
    if isinstance(divergences, str | FDivergence):
        divergences = [divergences]
    names = check_list("divergences", divergences, "pass names such as 'kl'")
    _refuse_too_many_panels(len(names))
    style.refuse_wrong_axes_or_title(ax, title, len(names))
    curves = [_compute_risk_curve(family, budgets, divergence(name), bracket=bracket) for name in names]
    if title is None and ax is None:
        title = f"Worst-case divergence: {family!r}"
    return risk_curves_figure(curves, ax=ax, title=title)


@dataclass(frozen=True)
class RiskCurve:
    """Worst cases of one divergence at increasing epsilon. `exact`: the optimal ones are minimax values, not bounds.

    `least`: lower sides of bracketed values, of which `optimal` are the upper ones; `attained_risks`: then the optimal sampler's own.
    """

    divergence: str
    epsilon: NDArray[np.float64]
    optimal: NDArray[np.float64]
    mollifier: NDArray[np.float64]
    exact: bool = True
    least: NDArray[np.float64] | None = None
    attained_risks: NDArray[np.float64] | None = None


def _compute_risk_curve(
    family: FiniteFamily | ContinuousFamily, epsilon: NDArray[np.float64], f: FDivergence, *, bracket: bool
) -> RiskCurve:
    risks = [minimax_risk(family, epsilon=budget, divergence=f, bracket=bracket) for budget in epsilon.tolist()]
    baseline = np.array([float(MollifierSampler(family, epsilon=budget).risk(f)) for budget in epsilon.tolist()])
    smallest = np.array([float(risk) for risk in risks])
    exact = all(risk.tight for risk in risks)
    if exact or not bracket:
        return RiskCurve(f.name, epsilon, smallest, baseline, exact)
    lower = np.array([risk.bracket[0] for risk in risks])
    attained_risks = np.array([float(OptimalSampler(family, epsilon=budget).risk(f)) for budget in epsilon.tolist()])
    return RiskCurve(f.name, epsilon, smallest, baseline, exact, lower, attained_risks)


def _refuse_too_many_panels(panels: int) -> None:
    if not 1 <= panels <= MOST_PANELS:
        raise DiscreetError(f"{panels} divergences do not fit one picture; choose 1 to {MOST_PANELS}")


def risk_curves_figure(curves: Sequence[RiskCurve], *, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """One to four panels side by side or two by two; the gap to the baseline is shaded."""
    _refuse_too_many_panels(len(curves))
    for curve in curves:
        if len(curve.epsilon) < 2:
            raise DiscreetError("a curve needs at least 2 values of epsilon; give a range such as 0.1:10:50")
        if not np.isfinite(curve.optimal).any():
            raise DiscreetError(f"{curve.divergence} is infinite at every epsilon; there is nothing to draw")
    rows, columns = (2, 2) if len(curves) == MOST_PANELS else (1, len(curves))
    with style.using_library_style():
        size = 1.0 + 4.2 * columns, 0.7 + 3.1 * rows
        figure, panels = style.new_or_given_figure_and_panels(ax, title, size=size, panels=(rows, columns), share=True)
        for index, (axes, curve) in enumerate(zip(panels, curves, strict=True)):
            _draw_risk_panel(axes, curve, with_names=index == 0)
            if index >= len(curves) - columns:
                axes.set_xlabel("privacy budget ε")
    return figure


def _draw_risk_panel(axes: Axes, curve: RiskCurve, *, with_names: bool) -> None:
    style.write_panel_title(axes, divergence_label(curve.divergence))
    optimal, mollifier = (np.where(np.isfinite(y), y, np.nan) for y in (curve.optimal, curve.mollifier))
    axes.plot(curve.epsilon, mollifier, color=style.COLOURS["mollifier"], clip_on=False)
    if curve.least is None or curve.attained_risks is None:
        axes.fill_between(curve.epsilon, optimal, mollifier, color=style.COLOURS["mollifier"], alpha=0.08, linewidth=0)
        axes.plot(curve.epsilon, optimal, color=style.COLOURS["optimal"], clip_on=False)
    else:
        least, attained_risks = (np.where(np.isfinite(y), y, np.nan) for y in (curve.least, curve.attained_risks))
        # the outline keeps a band visible whose sides are 1e-4 apart
        axes.fill_between(
            curve.epsilon, least, optimal, facecolor=f"{style.QUIET}55", edgecolor=style.QUIET, linewidth=1.2
        )
        axes.plot(curve.epsilon, attained_risks, color=style.COLOURS["optimal"], clip_on=False)
    if curve.epsilon[-1] > 8.0 * curve.epsilon[0]:
        axes.set_xscale("log")
        ticks = _round_tick_values(curve.epsilon[0], curve.epsilon[-1])
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    axes.set_xlim(curve.epsilon[0], curve.epsilon[-1])
    axes.set_ylim(bottom=0.0)
    axes.locator_params(axis="y", nbins=5)
    if curve.least is not None:
        if with_names:
            _write_three_curve_names_in_corner(axes)
    elif with_names:
        best = "optimal: nobody\ncan go below" if curve.exact else "optimal box\n(upper bound)"
        _write_two_curve_names(axes, curve.epsilon, mollifier, "mollifier\n(baseline)", optimal, best)
    elif not curve.exact:
        axes.annotate(
            "upper bound", (1, 1), xycoords="axes fraction", ha="right", va="top", color=style.QUIET, fontsize=9
        )


def _write_three_curve_names_in_corner(axes: Axes) -> None:
    """Write three names in the corner that falling curves leave empty: the curves are too close for names beside each."""
    names = ("mollifier (baseline)", style.COLOURS["mollifier"]), ("optimal sampler", style.COLOURS["optimal"]), (
        "smallest of any sampler\n(between certified sides)", style.QUIET,
    )  # fmt: skip
    for line, (text, colour) in enumerate(names):
        axes.annotate(
            text, (0.98, 0.98), (0, -14 * line), xycoords="axes fraction", textcoords="offset points", color=colour,
            ha="right", va="top", fontsize=9.5,
        )  # fmt: skip


def _write_two_curve_names(
    axes: Axes,
    x: NDArray[np.float64],
    upper: NDArray[np.float64],
    upper_text: str,
    lower: NDArray[np.float64],
    lower_text: str,
) -> None:
    """Write both names beside their falling curves, half-way down; if they fall too early or too late, in the empty corner."""
    right, left = (int(np.nanargmin(np.abs(y - 0.5 * np.nanmax(y)))) for y in (upper, lower))
    if 0.35 * len(x) <= left and right <= 0.75 * len(x):
        _write_curve_name(axes, upper_text, "mollifier", (x[right], upper[right]), (8, 4), "left", "data")
        _write_curve_name(axes, lower_text, "optimal", (x[left], lower[left]), (-8, -4), "right", "data")
        return
    corner, side = ((0.04, 0.06), "left") if left > 0.5 * len(x) else ((0.98, 0.94), "right")
    heights = (16, 0) if side == "left" else (-12, -28)
    for text, mechanism, height in zip((upper_text, lower_text), ("mollifier", "optimal"), heights, strict=True):
        _write_curve_name(axes, text.replace("\n", " "), mechanism, corner, (0, height), side, "axes fraction")


def _write_curve_name(
    axes: Axes,
    text: str,
    mechanism: str,
    point: tuple[float, float],
    shift: tuple[int, int],
    side: str,
    coordinates: str,
) -> None:
    """Write a text in a curve's colour, shifted by points from a place; it grows away from that place."""
    axes.annotate(
        text,
        point,
        shift,
        xycoords=coordinates,
        textcoords="offset points",
        color=style.COLOURS[mechanism],
        ha=side,
        va="top" if shift[1] < 0 and coordinates == "data" else "bottom",
        fontsize=9.5,
    )


def _round_tick_values(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten within the range; every other one if that is many."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    candidates = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    ticks = [value for value in candidates if low * 0.999 <= value <= high * 1.001]
    return ticks if len(ticks) <= 7 else [value for value in ticks if np.isclose(np.log10(value) % 1, 0)]


Floats = NDArray[np.float64]
_APART = (0.08, 0.05)  # of width and height: closer names would overlap
_RIGHT_MARGIN = 0.15  # of the width, at the right end
_MARKS = {"optimal": "o", "linear": "s", "mollifier": "^"}


def frontier(
    designs: Sequence[Design],
    *,
    others: Mapping[str, tuple[float, float]] | None = None,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the mean over the examples against the worst case over all clients: one point for each design, joined, and other samplers.

    Args:
        designs: One or more designs of the same examples at one epsilon and divergence, with different `keep`.
        others: The (worst case, mean) of other samplers, by name.
        ax: Axes to draw on; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: There is no design, or they are of several divergences or budgets.
    """
    style.refuse_wrong_axes_or_title(ax, title, 1)
    designs = check_list("designs", designs, "pass what discreet.design(...) returned, one or more")
    for design in designs:
        check_kind("designs", design, Design, "pass what discreet.design(...) returned, one or more")
    points = {} if others is None else _other_samplers_as_points(others)
    if not designs or len({(design.divergence.name, design.epsilon, design.over) for design in designs}) > 1:
        raise DiscreetError(
            "designs are one or more with the same epsilon and divergence, over the mean; vary keep alone"
        )
    sorted_designs = sorted(designs, key=lambda design: float(design.worst(design.divergence)))
    name = divergence_label(sorted_designs[0].divergence.name)
    worst = np.array([float(design.worst(design.divergence)) for design in sorted_designs])
    mean, floor = (
        np.array([design.value for design in sorted_designs]),
        np.array([design.bound for design in sorted_designs]),
    )
    if title is None and ax is None:
        title = f"What a better mean costs: epsilon {sorted_designs[0].epsilon:g}, {sorted_designs[0].family.size:,} outcomes"
    with style.using_library_style():
        figure, (axes,) = style.new_or_given_figure_and_panels(ax, title, size=(6.8, 4.8))
        style.write_panel_title(
            axes,
            "Designs, as less is kept",
            f"{sorted_designs[0].examples:,} examples; grey: proved to be out of reach",
        )
        # keeping more cannot lower the mean
        axes.fill_between(worst, 0.0, floor, step="pre", color="#F3F3F3", linewidth=0)
        axes.plot(worst, mean, color=style.COLOURS["optimal"], marker="o", markersize=4, label="designed")
        for other, (x, y) in points.items():
            axes.plot(
                [x], [y], _MARKS.get(other, "D"), color=style.COLOURS.get(other, style.INK), label=other, markersize=7
            )
        axes.set_xlabel(f"worst case over everybody, {name}")
        axes.set_ylabel(f"mean over the examples, {name}")
        axes.set_ylim(bottom=0.0)
        # the limits of the axes are known by now
        _write_point_names(axes, [f"{design.keep:g}" for design in sorted_designs], worst, mean)
        axes.legend(frameon=False)
    return figure


def _other_samplers_as_points(others: Any) -> dict[str, tuple[float, float]]:
    """The points of other samplers by name."""
    fix = "pass {name: (worst case, mean)}"
    check_kind("others", others, Mapping, fix)
    points = {}
    for name, point in others.items():
        pair = as_floats(point, f"others[{name!r}]")
        if not isinstance(name, str) or pair.shape != (2,):
            raise DiscreetError(f"others[{name!r}] = {point!r} is not a pair of numbers with a name; {fix}")
        points[name] = (float(pair[0]), float(pair[1]))
    return points


def _write_point_names(axes: Axes, names: Sequence[str], x: Floats, y: Floats) -> None:
    """Name every point; points that are too close share one list, in turn above and below."""
    positions = axes.transAxes.inverted().transform(axes.transData.transform(np.column_stack([x, y])))
    groups: list[list[int]] = []
    for index in range(len(names)):
        if groups and (np.abs(positions[index] - positions[groups[-1][0]]) < _APART).all():
            groups[-1].append(index)
        else:
            groups.append([index])
    for turn, group in enumerate(groups):
        first, left, below = group[0], positions[group[0], 0] > 1.0 - _RIGHT_MARGIN, turn % 2 == 1
        axes.annotate(
            ", ".join(names[index] for index in group), (x[first], y[first]), (-4 if left else 4, -5 if below else 4),
            textcoords="offset points", ha="right" if left else "left", va="top" if below else "bottom", color=style.QUIET, fontsize=8,
        )  # fmt: skip


_STYLES = {"tv": "-", "kl": "--"}


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
    """Draw a plan in two panels: the cost of a sample against epsilon, and the accuracy of a share against clients.

    Args:
        family: The outcomes, as a `Simplex` or `Band`.
        clients: The planned number.
        epsilons: The budgets to choose from.
        accuracy: The accepted error of a share; drawn as a line.
        confidence: Of every interval.
        ax: Two axes to draw on; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: An argument is out of its range, or `ax` does not have two axes.
    """
    if not isinstance(family, Simplex | Band):
        raise DiscreetError(
            f"family = {family!r} has no outcomes whose shares could be planned; pass a Simplex or a Band"
        )
    check_count("clients", clients, most=MOST_CLIENTS)
    OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
    OPEN_UNIT.check("confidence", confidence)
    style.refuse_wrong_axes_or_title(ax, title, 2)
    budgets = sorted({check_epsilon(budget) for budget in check_list("epsilons", epsilons, "pass one budget or more")})
    if not budgets:
        raise DiscreetError("epsilons is empty; give one budget or more")
    if title is None and ax is None:
        title = f"A plan for {pluralise(clients, 'client')} and {pluralise(family.size, 'outcome')}"
    curves = _compute_plan_curves(family, clients, budgets, accuracy, confidence)
    with style.using_library_style():
        figure, (left, right) = style.new_or_given_figure_and_panels(ax, title, size=(11.6, 4.6), panels=(1, 2))
        _draw_risk_against_epsilon(left, curves)
        _draw_margins_against_clients(right, curves)
    return figure


@dataclass(frozen=True)
class _PlanCurves:
    """Worst-case divergences against epsilon; half-widths against clients for each (epsilon, mechanism)."""

    epsilon: Floats
    risk: Mapping[str, Floats]
    clients: Floats
    errors: Mapping[tuple[float, str], Floats]
    planned_clients: int
    accuracy: float


def _compute_plan_curves(
    family: Simplex | Band, clients: int, budgets: Sequence[float], accuracy: float, confidence: float
) -> _PlanCurves:
    grid = np.geomspace(min(budgets[0], 0.1), max(budgets[-1], 10.0), 60)
    samplers = [OptimalSampler(family, epsilon=budget) for budget in grid.tolist()]
    sizes = np.geomspace(max(min(10, clients), clients / 100), clients * 100, 40)

    def share_margin_of_mechanism(name: str, budget: float, size: float) -> float:
        sampler = SERVING[name](family, epsilon=budget)
        return outlook(sampler, mechanism=name, clients=int(size), confidence=confidence).at_worst

    return _PlanCurves(
        epsilon=grid,
        risk={f: np.array([float(sampler.risk(f)) for sampler in samplers]) for f in _STYLES},
        clients=sizes,
        errors={
            (budget, name): np.array([share_margin_of_mechanism(name, budget, size) for size in sizes])
            for budget in budgets
            for name in SERVING
        },
        planned_clients=clients,
        accuracy=accuracy,
    )


def _draw_risk_against_epsilon(axes: Axes, curves: _PlanCurves) -> None:
    style.write_panel_title(
        axes, "What a sample costs its client", "least worst-case divergence, linear and optimal alike"
    )
    for name, risk in curves.risk.items():
        axes.plot(curves.epsilon, risk, _STYLES[name], color=style.COLOURS["optimal"], label=divergence_label(name))
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if curves.epsilon[0] <= tick <= curves.epsilon[-1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("privacy budget ε")
    axes.legend(loc="upper right", frameon=False, labelcolor=style.INK)


def _draw_margins_against_clients(axes: Axes, curves: _PlanCurves) -> None:
    style.write_panel_title(
        axes, "How well a share will be known", "half-width of its interval at worst: linear solid, optimal dotted"
    )
    budgets = sorted({budget for budget, _ in curves.errors})
    shades = dict(zip(budgets, np.linspace(1.0, 0.35, len(budgets))[::-1], strict=True))
    for (budget, name), errors in curves.errors.items():
        axes.plot(
            curves.clients, errors, "-" if name == "linear" else ":", color=style.COLOURS[name], alpha=float(shades[budget]),
            linewidth=1.8,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    lowest = np.inf
    gap = (axes.get_ylim()[1] / axes.get_ylim()[0]) ** 0.045
    for budget in budgets:  # more privacy gives a higher line: names move down until they are apart
        lowest = min(float(curves.errors[budget, "linear"][-1]), lowest / gap)
        axes.annotate(
            f"ε = {budget:g}", (curves.clients[-1], lowest), (4, 0), textcoords="offset points", va="center",
            color=style.COLOURS["linear"], fontsize=8, annotation_clip=False,
        )  # fmt: skip
    axes.axhline(curves.accuracy, color=style.INK, linewidth=0.8)
    axes.annotate(
        f"wanted: ±{curves.accuracy:g}", (curves.clients[0], curves.accuracy), (4, 3), textcoords="offset points", fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
    )  # fmt: skip
    axes.axvline(curves.planned_clients, color=style.QUIET, linewidth=0.8, linestyle="--")
    axes.annotate(
        "planned",
        (curves.planned_clients, axes.get_ylim()[0]),
        (3, 3),
        textcoords="offset points",
        fontsize=8,
        color=style.QUIET,
    )
    axes.set_xlim(curves.clients[0], curves.clients[-1])
    axes.set_xlabel("clients")
    axes.set_ylabel("± share")
