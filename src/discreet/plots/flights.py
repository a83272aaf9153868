"""Two panels: how one client's law is put into the box, and what each mechanism costs every client."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.plots.style import COLOURS, INK, Axes, Figure, figure, panel_title, styled

_MOST_ROWS = 12


@dataclass(frozen=True)
class ClientLaw:
    """One client's law and the law its sample is drawn from, with the floor and ceiling that every client's must obey."""

    name: str
    outcomes: Sequence[str]
    held: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    floor: float
    ceiling: float
    epsilon: float
    released: str


@dataclass(frozen=True)
class Profile:
    """A mechanism's realised divergences, one for each client, and perhaps something to say about them."""

    mechanism: str
    realised: NDArray[np.float64]
    note: str = ""


def flights_figure(client: ClientLaw, profiles: Sequence[Profile], *, title: str, measure: str) -> Figure:
    """The client on the left, everybody on the right."""
    with styled():
        drawn = figure(11.6, 5.6)
        drawn.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
        left, right = drawn.subplots(1, 2, width_ratios=(1.0, 1.0))
        _draw_client(left, client)
        _draw_profiles(right, profiles, measure)
    return drawn


def _draw_client(axes: Axes, client: ClientLaw) -> None:
    panel_title(
        axes,
        f"From what {client.name} holds to what it draws from",
        f"probability of each destination; this time it released {client.released}",
    )
    shown = np.argsort(-client.held, kind="stable")[: min(_MOST_ROWS, int((client.held > 0).sum()))]
    rest = np.setdiff1d(np.arange(len(client.held)), shown)
    names = [client.outcomes[place] for place in shown]
    held, drawn_from = client.held[shown], client.drawn_from[shown]
    if rest.size:
        names.append(f"{rest.size} others,\non average")
        held = np.append(held, client.held[rest].mean())
        drawn_from = np.append(drawn_from, client.drawn_from[rest].mean())
    least = float(held[held > 0].min())
    edge = 0.55 * min(least, max(client.floor, least / 30.0))  # a floor of 1e-300 would leave no room for anything else
    drawn_from = np.maximum(drawn_from, edge)
    rows = np.arange(len(names))
    axes.axvspan(client.floor, client.ceiling, color=COLOURS["optimal"], alpha=0.09, linewidth=0)
    axes.hlines(rows, np.maximum(held, edge), drawn_from, color="#CFCFCF", linewidth=1.4, zorder=1)
    positive = held > 0
    axes.scatter(held[positive], rows[positive], s=46, color=COLOURS["held"], zorder=2)
    axes.scatter(np.full((~positive).sum(), edge), rows[~positive], s=46, marker="<", color=COLOURS["held"], zorder=2)
    axes.scatter(drawn_from, rows, s=46, color=COLOURS["optimal"], zorder=3)
    for row in rows[~positive]:
        _say(axes, "held: 0", (edge, row), (8, 6), COLOURS["held"])
    axes.set_xscale("log")
    axes.set_xlim(0.85 * edge, 1.7 * max(float(held.max()), client.ceiling))
    ticks = [
        t for t in (1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0) if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]
    ]
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(names) - 0.4, -1.1)
    axes.set_yticks(rows, names)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_color(INK)
        label.set_fontweight("bold" if name == client.released else "normal")
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    _say(axes, "held", (held[0], 0), (8, 0), COLOURS["held"], level="center")
    _say(axes, "drawn from", (drawn_from[0], 0), (0, 7), COLOURS["optimal"], side="center")
    span = f"{100 * client.floor:.2g} % to {100 * client.ceiling:.2g} %, a factor of e$^{{{client.epsilon:g}}}$"
    axes.set_xlabel(f"one blue box for every aircraft: {span}", color=COLOURS["optimal"])


def _draw_profiles(axes: Axes, profiles: Sequence[Profile], measure: str) -> None:
    clients = len(profiles[0].realised)
    panel_title(
        axes,
        f"What it costs {clients:,} aircraft",
        f"{measure} divergence from held to drawn from, sorted for each mechanism",
    )
    share = (np.arange(clients) + 0.5) / clients
    ends = [(float(profile.realised.max()), profile.mechanism) for profile in profiles]
    for profile in reversed(profiles):  # the first one on top
        ordered = np.sort(profile.realised)
        axes.plot(share, ordered, color=COLOURS[profile.mechanism], linewidth=2.2)
        quarter = clients // 4
        _say(axes, profile.note, (share[quarter], ordered[quarter]), (6, -6), COLOURS[profile.mechanism], level="top")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of aircraft with at most this cost")
    axes.locator_params(axis="y", nbins=6)
    for height, name in _apart(ends, 0.1 * axes.get_ylim()[1]):
        worst = next(value for value, owner in ends if owner == name)
        axes.annotate(
            f"{name}\n{worst:.2f} at worst",
            (1.0, height), (8, 0), xycoords="data", textcoords="offset points",
            color=COLOURS[name], va="center", annotation_clip=False,
        )  # fmt: skip


def _apart(ends: Sequence[tuple[float, str]], gap: float) -> list[tuple[float, str]]:
    """The heights for the names, moved down where two would collide."""
    placed: list[tuple[float, str]] = []
    for height, name in sorted(ends, key=lambda end: -round(end[0], 9)):
        ceiling = placed[-1][0] - gap if placed else np.inf
        placed.append((min(height, ceiling), name))
    return placed


def _say(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    shift: tuple[int, int],
    colour: str,
    side: str = "left",
    level: str = "bottom",
) -> None:
    axes.annotate(text, place, shift, textcoords="offset points", color=colour, ha=side, va=level, fontsize=9)
