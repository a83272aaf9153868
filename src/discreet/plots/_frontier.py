"""The frontier of designs: the mean over examples against the worst case over everybody, as less of the best worst case is kept."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.design import Design
from discreet.errors import DiscreetError
from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, INK, QUIET, Axes, AxesLike, Figure, canvas, library_style, panel_title

Floats = NDArray[np.float64]
_APART = (0.08, 0.05)  # of the width and height: names closer than that in both would lie on each other
_RIGHT_MARGIN = 0.15  # of the width, at the right end
_MARKS = {"optimal": "o", "linear": "s", "mollifier": "^"}


def frontier(
    designs: Sequence[Design],
    *,
    others: Mapping[str, tuple[float, float]] | None = None,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """The mean over the examples against the worst case over everybody: one point for each design, joined, and others beside them.

    Args:
        designs: Designs of the same examples at one epsilon and divergence that keep more or less, one or more.
        others: The (worst case, mean) of other samplers, by name.
        ax: Axes to draw on; by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: There is no design, or they are of several divergences or budgets.
    """
    if not designs or len({(one.divergence.name, one.epsilon, one.over) for one in designs}) > 1:
        raise DiscreetError(
            "designs are one or more with the same epsilon and divergence, over the mean; vary keep alone"
        )
    ordered = sorted(designs, key=lambda one: float(one.worst(one.divergence)))
    name = divergence_label(ordered[0].divergence.name)
    worst = np.array([float(one.worst(one.divergence)) for one in ordered])
    mean, floor = np.array([one.value for one in ordered]), np.array([one.bound for one in ordered])
    if title is None and ax is None:
        title = f"What a better mean costs: epsilon {ordered[0].epsilon:g}, {ordered[0].family.size:,} outcomes"
    with library_style():
        drawn, (axes,) = canvas(ax, title, size=(6.8, 4.8))
        panel_title(
            axes, "Designs, as less is kept", f"{ordered[0].examples:,} examples; grey: proved to be out of reach"
        )
        axes.fill_between(worst, 0.0, floor, step="pre", color="#F3F3F3", linewidth=0)  # who keeps more has no less
        axes.plot(worst, mean, color=COLOURS["optimal"], marker="o", markersize=4, label="designed")
        for other, (x, y) in (others or {}).items():
            axes.plot([x], [y], _MARKS.get(other, "D"), color=COLOURS.get(other, INK), label=other, markersize=7)
        axes.set_xlabel(f"worst case over everybody, {name}")
        axes.set_ylabel(f"mean over the examples, {name}")
        axes.set_ylim(bottom=0.0)
        _name_points(
            axes, [f"{one.keep:g}" for one in ordered], worst, mean
        )  # where the axes reach from and to is known by now
        axes.legend(frameon=False)
    return drawn


def _name_points(axes: Axes, names: Sequence[str], x: Floats, y: Floats) -> None:
    """Every point by its name: those that are too close for names of their own by one list, in turn above and below."""
    at = axes.transAxes.inverted().transform(axes.transData.transform(np.column_stack([x, y])))
    groups: list[list[int]] = []
    for place in range(len(names)):
        if groups and (np.abs(at[place] - at[groups[-1][0]]) < _APART).all():
            groups[-1].append(place)
        else:
            groups.append([place])
    for turn, group in enumerate(groups):
        first, left, below = group[0], at[group[0], 0] > 1.0 - _RIGHT_MARGIN, turn % 2 == 1
        axes.annotate(
            ", ".join(names[place] for place in group), (x[first], y[first]), (-4 if left else 4, -5 if below else 4),
            textcoords="offset points", ha="right" if left else "left", va="top" if below else "bottom", color=QUIET, fontsize=8,
        )  # fmt: skip
