"""The privacy-utility trade-off as curves: worst-case divergence against epsilon, one panel for each divergence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design import minimax_risk
from discreet.divergences import FDivergence, divergence
from discreet.errors import DiscreetError
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families._laws import as_floats
from discreet.mechanisms import MollifierSampler, OptimalSampler
from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, QUIET, Axes, AxesLike, Figure, canvas, library_style, panel_title

MOST_PANELS = 4
USUAL_DIVERGENCES = ("kl", "tv", "hellinger", "chi2")


def tradeoff(
    family: FiniteFamily | ContinuousFamily,
    *,
    epsilon: ArrayLike,
    divergences: Sequence[str | FDivergence] = USUAL_DIVERGENCES,
    bracket: bool = False,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """The least worst-case divergence against epsilon, beside the mollifier baseline: one panel for each divergence.

    Args:
        family: Who the clients may be.
        epsilon: The budgets, two or more.
        divergences: One to four, by name or one's own.
        bracket: Where the formula is only an upper bound, draw instead the band that the smallest worst case lies in, certified from both
            sides (`minimax_risk`), and the optimal sampler's own worst case.
        ax: Axes to draw on, one for each divergence; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: There is nothing to draw (fewer than two budgets, a divergence that is infinite at each of them), more
            divergences than fit, `ax` does not hold one for each, or a bracket is asked for where none is known.
    """
    budgets = np.sort(np.atleast_1d(as_floats(epsilon, "epsilon")).ravel())
    names = [divergences] if isinstance(divergences, str | FDivergence) else list(divergences)
    _check_count(len(names))
    curves = [_curve(family, budgets, divergence(name), bracket=bracket) for name in names]
    if title is None and ax is None:
        title = f"Worst-case divergence: {family!r}"
    return curves_figure(curves, ax=ax, title=title)


@dataclass(frozen=True)
class RiskCurve:
    """Worst cases of one divergence at increasing epsilon. `exact`: the optimal ones are minimax values, not bounds.

    `least`: where they were bracketed, the lower sides, of which `optimal` are the upper ones; `attained`: the optimal sampler's own then.
    """

    divergence: str
    epsilon: NDArray[np.float64]
    optimal: NDArray[np.float64]
    mollifier: NDArray[np.float64]
    exact: bool = True
    least: NDArray[np.float64] | None = None
    attained: NDArray[np.float64] | None = None


def _curve(
    family: FiniteFamily | ContinuousFamily, epsilon: NDArray[np.float64], f: FDivergence, *, bracket: bool
) -> RiskCurve:
    found = [minimax_risk(family, epsilon=each, divergence=f, bracket=bracket) for each in epsilon.tolist()]
    baseline = np.array([float(MollifierSampler(family, epsilon=each).risk(f)) for each in epsilon.tolist()])
    smallest = np.array([float(risk) for risk in found])
    exact = all(risk.tight for risk in found)
    if exact or not bracket:
        return RiskCurve(f.name, epsilon, smallest, baseline, exact)
    lower = np.array([risk.bracket[0] for risk in found])
    own = np.array([float(OptimalSampler(family, epsilon=each).risk(f)) for each in epsilon.tolist()])
    return RiskCurve(f.name, epsilon, smallest, baseline, exact, lower, own)


def _check_count(panels: int) -> None:
    if not 1 <= panels <= MOST_PANELS:
        raise DiscreetError(f"{panels} divergences do not fit one picture; choose 1 to {MOST_PANELS}")


def curves_figure(curves: Sequence[RiskCurve], *, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """One to four panels side by side or two by two; the gap to the baseline is shaded."""
    _check_count(len(curves))
    for curve in curves:
        if len(curve.epsilon) < 2:
            raise DiscreetError("a curve needs at least 2 values of epsilon; give a range such as 0.1:10:50")
        if not np.isfinite(curve.optimal).any():
            raise DiscreetError(f"{curve.divergence} is infinite at every epsilon; there is nothing to draw")
    rows, columns = (2, 2) if len(curves) == MOST_PANELS else (1, len(curves))
    with library_style():
        size = 1.0 + 4.2 * columns, 0.7 + 3.1 * rows
        drawn, panels = canvas(ax, title, size=size, panels=(rows, columns), share=True)
        for place, (axes, curve) in enumerate(zip(panels, curves, strict=True)):
            _draw(axes, curve, named=place == 0)
            if place >= len(curves) - columns:
                axes.set_xlabel("privacy budget ε")
    return drawn


def _draw(axes: Axes, curve: RiskCurve, *, named: bool) -> None:
    panel_title(axes, divergence_label(curve.divergence))
    optimal, mollifier = (np.where(np.isfinite(y), y, np.nan) for y in (curve.optimal, curve.mollifier))
    axes.plot(curve.epsilon, mollifier, color=COLOURS["mollifier"], clip_on=False)
    if curve.least is None or curve.attained is None:
        axes.fill_between(curve.epsilon, optimal, mollifier, color=COLOURS["mollifier"], alpha=0.08, linewidth=0)
        axes.plot(curve.epsilon, optimal, color=COLOURS["optimal"], clip_on=False)
    else:
        least, attained = (np.where(np.isfinite(y), y, np.nan) for y in (curve.least, curve.attained))
        # the outline keeps a band visible whose sides are 1e-4 apart
        axes.fill_between(curve.epsilon, least, optimal, facecolor=f"{QUIET}55", edgecolor=QUIET, linewidth=1.2)
        axes.plot(curve.epsilon, attained, color=COLOURS["optimal"], clip_on=False)
    if curve.epsilon[-1] > 8.0 * curve.epsilon[0]:
        axes.set_xscale("log")
        ticks = _round_numbers(curve.epsilon[0], curve.epsilon[-1])
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    axes.set_xlim(curve.epsilon[0], curve.epsilon[-1])
    axes.set_ylim(bottom=0.0)
    axes.locator_params(axis="y", nbins=5)
    if curve.least is not None:
        if named:
            _name_bracketed(axes)
    elif named:
        best = "optimal: nobody\ncan go below" if curve.exact else "optimal box\n(upper bound)"
        _name_both(axes, curve.epsilon, mollifier, "mollifier\n(baseline)", optimal, best)
    elif not curve.exact:
        axes.annotate("upper bound", (1, 1), xycoords="axes fraction", ha="right", va="top", color=QUIET, fontsize=9)


def _name_bracketed(axes: Axes) -> None:
    """Three names in the corner that falling curves leave empty: they run too close together to have one beside each."""
    names = ("mollifier (baseline)", COLOURS["mollifier"]), ("optimal sampler", COLOURS["optimal"]), (
        "smallest of any sampler\n(between certified sides)", QUIET,
    )  # fmt: skip
    for line, (text, colour) in enumerate(names):
        axes.annotate(
            text, (0.98, 0.98), (0, -14 * line), xycoords="axes fraction", textcoords="offset points", color=colour,
            ha="right", va="top", fontsize=9.5,
        )  # fmt: skip


def _name_both(
    axes: Axes,
    x: NDArray[np.float64],
    upper: NDArray[np.float64],
    upper_text: str,
    lower: NDArray[np.float64],
    lower_text: str,
) -> None:
    """Write both names beside their falling curves, half-way down; where they fall too early or too late, in the empty corner."""
    right, left = (int(np.nanargmin(np.abs(y - 0.5 * np.nanmax(y)))) for y in (upper, lower))
    if 0.35 * len(x) <= left and right <= 0.75 * len(x):
        _write(axes, upper_text, "mollifier", (x[right], upper[right]), (8, 4), "left", "data")
        _write(axes, lower_text, "optimal", (x[left], lower[left]), (-8, -4), "right", "data")
        return
    corner, side = ((0.04, 0.06), "left") if left > 0.5 * len(x) else ((0.98, 0.94), "right")
    heights = (16, 0) if side == "left" else (-12, -28)
    for text, who, height in zip((upper_text, lower_text), ("mollifier", "optimal"), heights, strict=True):
        _write(axes, text.replace("\n", " "), who, corner, (0, height), side, "axes fraction")


def _write(
    axes: Axes, text: str, who: str, place: tuple[float, float], shift: tuple[int, int], side: str, coordinates: str
) -> None:
    """Text in a curve's colour, shifted by points from a place; it grows away from that place."""
    axes.annotate(
        text,
        place,
        shift,
        xycoords=coordinates,
        textcoords="offset points",
        color=COLOURS[who],
        ha=side,
        va="top" if shift[1] < 0 and coordinates == "data" else "bottom",
        fontsize=9.5,
    )


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten within the range; every other one if that is many."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
    return inside if len(inside) <= 7 else [value for value in inside if np.isclose(np.log10(value) % 1, 0)]
