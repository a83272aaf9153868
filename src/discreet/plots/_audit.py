"""An audit as a picture: how often the leading event happened under two inputs, and each event's bound beside the claim."""

from typing import Any

import numpy as np

from discreet.audit import BlackBoxAudit
from discreet.errors import DiscreetError, check_kind
from discreet.plots._labels import shorten_name
from discreet.plots._style import COLOURS, QUIET, Axes, AxesLike, Figure, canvas, legible, library_style, panel_title


def audit(found: BlackBoxAudit, *, ax: AxesLike | None = None, title: str | None = None) -> Figure:
    """An audit in two panels: how often its leading event happened under two inputs, and what every event proves.

    Args:
        found: What `discreet.audit.black_box_audit` returned.
        ax: Two axes to draw on; by default a new figure.
        title: Above a new figure; by default whether the claim is refuted.

    Returns:
        The figure.

    Raises:
        DiscreetError: `found` is no audit or tested nothing, or `ax` does not hold two axes.
    """
    check_kind("found", found, BlackBoxAudit, "pass what discreet.audit.black_box_audit(...) returns")
    if not found.events:
        raise DiscreetError("found tested no event; there is nothing to draw")
    if title is None and ax is None:
        title = f"Claimed ε = {found.epsilon:g}: {'refuted' if found.is_refuted else 'not refuted'}"
    with library_style():
        drawn, (left, right) = canvas(ax, title, size=(10.0, 4.0), panels=(1, 2))
        _draw_frequencies(left, found)
        _draw_bounds(right, found)
    return drawn


def _draw_frequencies(axes: Axes, found: BlackBoxAudit) -> None:
    event = found.events[0]
    panel_title(axes, "The leading event", legible(shorten_name(event.description, 52), "event 1"))
    heights = (event.first_count / event.draws, event.second_count / event.draws)
    names = [f"input {_value_text(found.inputs[place])}" for place in (event.first_input, event.second_input)]
    bars = axes.bar([0, 1], heights, width=0.5, color=[COLOURS["mollifier"], COLOURS["held"]])
    axes.bar_label(bars, [f"{height:.4f}" for height in heights], padding=3)
    numbers = (event.first_input + 1, event.second_input + 1)
    told = [legible(shorten_name(name, 24), f"input {number}") for name, number in zip(names, numbers, strict=True)]
    axes.set_xticks([0, 1], told, parse_math=False)
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylabel("how often")


def _draw_bounds(axes: Axes, found: BlackBoxAudit) -> None:
    claim, bounds = found.epsilon, [event.empirical_epsilon_lower_bound for event in found.events]
    panel_title(axes, "What each event proves", "a lower bound for epsilon, on draws that had no part in choosing it")
    places = list(range(len(bounds)))
    colours = [COLOURS["mollifier"] if bound > claim else COLOURS["optimal"] for bound in bounds]
    bars = axes.barh(places, bounds, height=0.5, color=colours)
    axes.bar_label(bars, [f"{bound:.3f}" for bound in bounds], padding=3)
    axes.axvline(claim, color=QUIET, linewidth=1.2, linestyle="--")
    axes.annotate(f"claimed {claim:g}", (claim, 1.0), (4, -2), xycoords=("data", "axes fraction"),
                  textcoords="offset points", color=QUIET, fontsize=9, va="top")  # fmt: skip
    axes.set_yticks(places, [f"event {place + 1}" for place in places])
    axes.set_ylim(len(bounds) - 0.5, -0.9)
    axes.set_xlim(0.0, 1.2 * max(claim, *bounds))
    axes.grid(visible=False)
    axes.set_xlabel("ε")


def _value_text(value: Any) -> str:
    """A value as one would type it: 'b', where numpy says np.str_('b')."""
    return repr(value.item() if isinstance(value, np.generic) else value)
