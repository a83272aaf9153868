"""The frontier of designs: the mean over examples against the worst case over everybody, as less of the best worst case is kept."""

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.design import Design
from discreet.errors import DiscreetError
from discreet.plots._labels import divergence_label
from discreet.plots._style import COLOURS, INK, QUIET, AxesLike, Figure, canvas, panel_title, styled

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
    with styled():
        drawn, (axes,) = canvas(ax, title, size=(6.8, 4.8))
        panel_title(
            axes, "Designs, as less is kept", f"{ordered[0].examples:,} examples; grey: proved to be out of reach"
        )
        axes.fill_between(worst, 0.0, floor, step="pre", color="#F3F3F3", linewidth=0)  # who keeps more has no less
        axes.plot(worst, mean, color=COLOURS["optimal"], marker="o", markersize=4, label="designed")
        for one, x, y in zip(ordered, worst, mean, strict=True):
            axes.annotate(f"{one.keep:g}", (x, y), (4, 4), textcoords="offset points", color=QUIET, fontsize=8)
        for other, (x, y) in (others or {}).items():
            axes.plot([x], [y], _MARKS.get(other, "D"), color=COLOURS.get(other, INK), label=other, markersize=7)
        axes.set_xlabel(f"worst case over everybody, {name}")
        axes.set_ylabel(f"mean over the examples, {name}")
        axes.set_ylim(bottom=0.0)
        axes.legend(frameon=False)
    return drawn
