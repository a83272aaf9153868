"""An audit as a picture: how often the leading event happened under two inputs, and each event's bound beside the claim."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.plots.style import COLOURS, QUIET, Axes, Figure, figure, panel_title, styled


@dataclass(frozen=True)
class EventBar:
    """One event: its frequencies under two inputs, and the bound it gives."""

    description: str
    first: float
    second: float
    bound: float


def audit_figure(events: Sequence[EventBar], *, claim: float, names: tuple[str, str], title: str) -> Figure:
    """Left: the leading event's frequencies. Right: the lower bound of every event tested, and the claim as a line."""
    with styled():
        drawn = figure(10.0, 4.0)
        drawn.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
        left, right = drawn.subplots(1, 2)
        _draw_frequencies(left, events[0], names)
        _draw_bounds(right, events, claim)
    return drawn


def _draw_frequencies(axes: Axes, event: EventBar, names: tuple[str, str]) -> None:
    panel_title(axes, "The leading event", _short(event.description))
    heights = (event.first, event.second)
    bars = axes.bar([0, 1], heights, width=0.5, color=[COLOURS["mollifier"], COLOURS["held"]])
    axes.bar_label(bars, [f"{height:.4f}" for height in heights], padding=3)
    axes.set_xticks([0, 1], [_short(name, 24) for name in names])
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylabel("how often")


def _draw_bounds(axes: Axes, events: Sequence[EventBar], claim: float) -> None:
    panel_title(axes, "What each event proves", "a lower bound for epsilon, on draws that had no part in choosing it")
    places = list(range(len(events)))
    colours = [COLOURS["mollifier"] if event.bound > claim else COLOURS["optimal"] for event in events]
    bars = axes.barh(places, [event.bound for event in events], height=0.5, color=colours)
    axes.bar_label(bars, [f"{event.bound:.3f}" for event in events], padding=3)
    axes.axvline(claim, color=QUIET, linewidth=1.2, linestyle="--")
    axes.annotate(f"claimed {claim:g}", (claim, 1.0), (4, -2), xycoords=("data", "axes fraction"),
                  textcoords="offset points", color=QUIET, fontsize=9, va="top")  # fmt: skip
    axes.set_yticks(places, [f"event {place + 1}" for place in places])
    axes.set_ylim(len(events) - 0.5, -0.9)
    axes.set_xlim(0.0, 1.2 * max(claim, *(event.bound for event in events)))
    axes.grid(visible=False)
    axes.set_xlabel("ε")


def _short(text: str, most: int = 52) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
