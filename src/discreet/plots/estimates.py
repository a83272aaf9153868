"""A population with its intervals: rows for labels, steps for cells; and beside it, in the demo, what one client gave away."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.estimation import Population
from discreet.plots.style import COLOURS, INK, Axes, Figure, figure, panel_title, styled

Floats = NDArray[np.float64]
_LONGEST = 32  # letters of a label


@dataclass(frozen=True)
class PopulationShares:
    """Shares of a population: estimates with intervals, and the truth where it is known. `edges`: outcomes are cells.

    `exact`: the estimate is unbiased; otherwise it is the share among the samples, and the interval holds what they leave open.
    """

    names: Sequence[str]
    estimate: Floats
    low: Floats
    high: Floats
    truth: Floats | None
    edges: Floats | None
    exact: bool
    confidence: float

    @classmethod
    def of(cls, found: Population, truth: Floats | None) -> "PopulationShares":
        """Those of an estimated population."""
        law, outcomes = found.law, found.outcomes
        names = [str(name) for name in outcomes.names]
        return cls(names, law.estimate, law.low, law.high, truth, outcomes.edges, found.exact, found.confidence)

    @property
    def colour(self) -> str:
        """That of the mechanism."""
        return COLOURS["linear" if self.exact else "optimal"]


def estimate_figure(shares: PopulationShares, *, title: str, most: int) -> Figure:
    """One panel: at most so many labels, the largest first, or every cell."""
    with styled():
        rows = min(most, len(shares.names))
        drawn = figure(8.4, 4.6 if shares.edges is not None else max(3.2, 1.6 + 0.32 * rows))
        drawn.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
        draw_population(drawn.subplots(), shares, most=most)
    return drawn


def draw_population(axes: Axes, shares: PopulationShares, *, most: int, titled: bool = False) -> None:
    """The population in one panel. `titled`: there is a title above it, so that the legend goes inside."""
    if shares.edges is None:
        _draw_labels(axes, shares, most)
        above = {} if titled else {"bbox_to_anchor": (1.0, 1.0), "ncols": 2}
        axes.legend(loc="lower right", frameon=False, labelcolor=INK, **above)
    else:
        _draw_cells(axes, shares)


def _draw_labels(axes: Axes, shares: PopulationShares, most: int) -> None:
    by = shares.estimate if shares.truth is None else shares.truth
    shown = np.argsort(-by, kind="stable")[:most]
    rows = np.arange(len(shown))
    axes.hlines(rows, shares.low[shown], shares.high[shown], color=shares.colour, linewidth=5.0, alpha=0.28)
    marker = "o" if shares.exact else "|"
    axes.scatter(shares.estimate[shown], rows, s=42, marker=marker, color=shares.colour, zorder=3, label=_what(shares))
    if shares.truth is not None:
        axes.scatter(
            shares.truth[shown], rows, s=64, marker="D", facecolor="none", edgecolor=INK, zorder=4, label="truth"
        )
    axes.axvline(0.0, color="#BBBBBB", linewidth=0.8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(rows, [_short(shares.names[place]) for place in shown], color=INK, parse_math=False)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    more = f"; {len(shares.names) - len(shown):,} more outcomes not shown" if len(shares.names) > len(shown) else ""
    axes.set_xlabel(f"share of the average client's records{more}\nbars: {_interval(shares)}, cut at 0", loc="left")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def _draw_cells(axes: Axes, shares: PopulationShares) -> None:
    edges = shares.edges
    assert edges is not None
    width = np.diff(edges)
    axes.fill_between(
        edges, np.append(shares.low / width, 0), np.append(shares.high / width, 0), step="post", color=shares.colour,
        alpha=0.22, linewidth=0,
    )  # fmt: skip
    axes.stairs(shares.estimate / width, edges, color=shares.colour, linewidth=1.8, label=_what(shares))
    if shares.truth is not None:
        axes.stairs(shares.truth / width, edges, color=INK, linewidth=1.2, linestyle="--", label="truth")
    axes.set_xlim(edges[0], edges[-1])
    axes.axhline(0.0, color="#BBBBBB", linewidth=0.8)
    axes.set_xlabel(f"value; band: {_interval(shares)}")
    axes.set_ylabel("density of the average client")
    axes.legend(loc="upper right", frameon=False, labelcolor=INK)


def _short(name: str) -> str:
    """A label that leaves room for the picture."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _what(shares: PopulationShares) -> str:
    return "private estimate" if shares.exact else "among the samples"


def _interval(shares: PopulationShares) -> str:
    told = f"{100 * shares.confidence:g} % intervals"
    return told if shares.exact else f"{told}, with what the samples leave open"


@dataclass(frozen=True)
class Revealed:
    """One client: the law it holds, the law its sample was drawn from, and the sample."""

    name: str
    records: int
    held: Floats
    drawn_from: Floats
    released: str
    epsilon: float


def learnt_figure(shares: PopulationShares, client: Revealed, *, title: str) -> Figure:
    """What the curator learns on the left, what one client gave away for it on the right; outcomes in the same order."""
    with styled():
        drawn = figure(12.0, 1.9 + 0.42 * len(shares.names))
        drawn.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
        left, right = drawn.subplots(1, 2, width_ratios=(1.15, 1.0))
        panel_title(
            left, "What everybody learns", "the true population, and its estimate from one sample of each aircraft"
        )
        draw_population(left, shares, most=len(shares.names), titled=True)
        panel_title(
            right,
            f"What one aircraft gave away: “{client.released}”",
            f"{client.name} holds {client.records:,} flights; its one sample could have been any of these",
        )
        _draw_revealed(right, shares, client)
    return drawn


def _draw_revealed(axes: Axes, shares: PopulationShares, client: Revealed) -> None:
    by = shares.estimate if shares.truth is None else shares.truth
    shown = np.argsort(-by, kind="stable")
    rows = np.arange(len(shown))
    axes.barh(rows - 0.19, client.held[shown], height=0.34, color=COLOURS["held"], label="it holds")
    bars = axes.barh(
        rows + 0.19, client.drawn_from[shown], height=0.34, color=shares.colour, label="its sample is drawn from"
    )
    for bar, place in zip(bars, shown.tolist(), strict=True):
        chosen = shares.names[place] == client.released
        axes.annotate(
            f"{100 * client.drawn_from[place]:.0f} %" + ("  released" if chosen else ""),
            (bar.get_width(), bar.get_y() + 0.5 * bar.get_height()), (4, 0), textcoords="offset points", va="center",
            fontsize=9, color=shares.colour, fontweight="bold" if chosen else "normal",
        )  # fmt: skip
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(rows, [_short(shares.names[place]) for place in shown], color=INK, parse_math=False)
    axes.set_xlim(0.0, 1.12 * max(float(client.held.max()), float(client.drawn_from.max())))
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_xlabel(f"whatever it holds, no green bar changes by more than a factor of e$^{{{client.epsilon:g}}}$")
    axes.legend(loc="lower right", frameon=False, labelcolor=INK)
