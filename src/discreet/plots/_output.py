"""What one client holds and what its sample is drawn from, with the box b mu <= Q <= B mu that every client's law must keep to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.mechanisms import OutputLaw
from discreet.mechanisms._sampler import AnyFamily, Sampler, check_sampler
from discreet.plots._densities import density_figure
from discreet.plots._labels import shorten_name
from discreet.plots._style import COLOURS, INK, Axes, AxesLike, Figure, canvas, legible, library_style

Floats = NDArray[np.float64]
_TICKS = (1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def output(
    sampler: Sampler[AnyFamily],
    p: Any,
    *,
    released: Any = None,
    most: int = 12,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """What one client holds, p, and the law its sample is drawn from, inside the box that holds for everybody.

    On finitely many outcomes: a row for each. On a continuous family: curves in one dimension, images in two.

    Args:
        sampler: An `OptimalSampler`, `LinearSampler` or `MollifierSampler`.
        p: One client, as `sampler.output` takes it.
        released: The outcome that was released, to be marked; on finitely many outcomes.
        most: How many outcomes to show, those with the largest shares first; the others are averaged in one row.
        ax: Axes to draw on (three in two dimensions, else one); by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: `p` is not one client of the family or lies in more than two dimensions, `released` is not an outcome, or
            `ax` does not hold as many axes as there are panels.
    """
    check_sampler(sampler)
    if isinstance(sampler.family, ContinuousFamily):
        if released is not None:
            raise DiscreetError(f"released = {released!r} is for finite families; a density is drawn without it")
        law = sampler.output(p)
        assert isinstance(law, OutputLaw)
        return density_figure(law, ax=ax, title=title)
    check_count("most", most)
    client = _ClientOutput.of(sampler, sampler.family, p, released)
    with library_style():
        drawn, (axes,) = canvas(ax, title, size=(6.4, 5.2))
        _draw(axes, client, most)
    return drawn


@dataclass(frozen=True)
class _ClientOutput:
    """One client's law, the law its sample is drawn from, and the ends of the box, outcome by outcome."""

    names: list[str]
    held: Floats
    drawn_from: Floats
    floor: Floats
    ceiling: Floats
    epsilon: float
    released: int | None
    colour: str

    @classmethod
    def of(cls, sampler: Sampler[AnyFamily], family: FiniteFamily, p: Any, released: Any) -> "_ClientOutput":
        held = family.as_rows(p)
        if held.ndim != 1:
            raise DiscreetError(f"p has shape {held.shape}; a picture shows one client: draw the output of each")
        return cls(
            names=[str(name) for name in family.domain.names],
            held=held,
            drawn_from=np.asarray(sampler.output(held)),
            floor=np.broadcast_to(sampler.box.lower, family.size),
            ceiling=np.broadcast_to(sampler.box.upper, family.size),
            epsilon=sampler.epsilon,
            released=None if released is None else int(family.numbers([released])[0]),
            colour=COLOURS[sampler.name],
        )

    def shown_outcomes(self, most: int) -> NDArray[np.intp]:
        """The outcomes that are held most, and the one released if it is not among them."""
        first = np.argsort(-self.held, kind="stable")[: min(most, int((self.held > 0).sum()))]
        if self.released is None or self.released in first:
            return first
        return np.append(first, self.released)


def _draw(axes: Axes, client: _ClientOutput, most: int) -> None:
    shown = client.shown_outcomes(most)
    rest = np.setdiff1d(np.arange(len(client.held)), shown)
    names = [legible(shorten_name(client.names[place]), f"outcome {place}") for place in shown]
    held, drawn_from, floor, ceiling = (
        np.append(each[shown], each[rest].mean()) if rest.size else each[shown]
        for each in (client.held, client.drawn_from, client.floor, client.ceiling)
    )
    if rest.size:
        names.append(f"{rest.size} other,\non average" if rest.size == 1 else f"{rest.size} others,\non average")
    least = float(held[held > 0].min())
    edge = 0.55 * min(
        least, max(float(floor.min()), least / 30.0)
    )  # a floor of 1e-300 would leave no room for the rest
    drawn_from = np.maximum(drawn_from, edge)
    rows = np.arange(len(names))
    if np.ptp(client.floor) == np.ptp(client.ceiling) == 0.0:
        axes.axvspan(floor[0], ceiling[0], color=client.colour, alpha=0.09, linewidth=0)
    else:
        inside = np.maximum(floor, edge)
        axes.barh(rows, ceiling - inside, left=inside, height=0.9, color=client.colour, alpha=0.12, linewidth=0)
    axes.hlines(rows, np.maximum(held, edge), drawn_from, color="#CFCFCF", linewidth=1.4, zorder=1)
    positive = held > 0
    axes.scatter(held[positive], rows[positive], s=46, color=COLOURS["held"], zorder=2)
    axes.scatter(np.full((~positive).sum(), edge), rows[~positive], s=46, marker="<", color=COLOURS["held"], zorder=2)
    axes.scatter(drawn_from, rows, s=46, color=client.colour, zorder=3)
    for row in rows[~positive]:
        _annotate(axes, "held: 0", (edge, row), (8, 6), COLOURS["held"])
    axes.set_xscale("log")
    axes.set_xlim(0.85 * edge, 1.7 * max(float(held.max()), float(ceiling.max())))
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(names) - 0.4, -1.1)
    axes.set_yticks(rows, names, color=INK, parse_math=False)
    for label, place in zip(axes.get_yticklabels(), shown, strict=False):
        label.set_fontweight("bold" if place == client.released else "normal")
    if client.released is not None:
        row = int(np.flatnonzero(shown == client.released)[0])
        _annotate(
            axes, "released", (drawn_from[row], row), (0, -6), client.colour, side="center", level="top", weight="bold"
        )
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    side, away = ("left", 8) if held[0] >= drawn_from[0] else ("right", -8)
    _annotate(axes, "held", (held[0], 0), (away, 0), COLOURS["held"], side=side, level="center")
    _annotate(axes, "drawn from", (drawn_from[0], 0), (0, 7), client.colour, side="center")
    if np.ptp(client.floor) == np.ptp(client.ceiling) == 0.0:
        span = f"{100 * floor[0]:.2g} % to {100 * ceiling[0]:.2g} %, a factor of e$^{{{client.epsilon:g}}}$"
        axes.set_xlabel(f"one box for every client: {span}", color=client.colour)
    else:
        axes.set_xlabel(
            f"bars: one box for every client, a factor of e$^{{{client.epsilon:g}}}$ wide", color=client.colour
        )


def _annotate(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    shift: tuple[int, int],
    colour: str,
    *,
    side: str = "left",
    level: str = "bottom",
    weight: str = "normal",
) -> None:
    axes.annotate(
        text, place, shift, textcoords="offset points", color=colour, ha=side, va=level, fontsize=9, fontweight=weight
    )
