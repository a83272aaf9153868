"""The pictures of `discreet demo`: one client and all costs, the curator's estimates, and the gain of a design."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.families import Simplex
from discreet.mechanisms import MECHANISMS, OptimalSampler
from discreet.plots import (
    COLOURS,
    INK,
    Axes,
    Figure,
    divergence_label,
    figure,
    library_style,
    output,
    panel_title,
    population,
    shorten_name,
)
from discreet.research._reports._pages import set_title
from discreet.research.experiments._flights import (
    DESIGNED,
    DesignedFlights,
    DestinationEstimate,
    FlightRelease,
    TimeZoneEstimate,
)

_DRAWN = "kl"
_LISTED = 12  # destinations of a picture
_COLOURS = {**COLOURS, DESIGNED: "#CC79A7"}


@dataclass(frozen=True)
class CostProfile:
    """A mechanism's realised divergences, one for each client, with an optional note."""

    mechanism: str
    realised: NDArray[np.float64]
    note: str = ""


def flights_figure(run: FlightRelease) -> Figure:
    """One client on the left, the costs of all clients on the right."""
    client, profiles = run.client, []
    for name in MECHANISMS:
        better = run.better_off(name, _DRAWN)
        note = f"is closer for\n{better:,} aircraft" if better else ""
        profiles.append(CostProfile(name, run.cost(name, _DRAWN).realised, note))
    with library_style():
        drawn = figure(11.6, 5.6)
        set_title(drawn, f"{len(run.released):,} aircraft each release one destination at ε = {run.epsilon:g}", 14)
        left, right = drawn.subplots(1, 2, width_ratios=(1.0, 1.0))
        panel_title(
            left,
            f"{client.name}: its distribution and its output distribution",
            f"probability of each destination; this time it released {client.released}",
        )
        sampler = OptimalSampler(Simplex(run.destinations), epsilon=run.epsilon)
        output(sampler, client.held, released=client.released, ax=left)
        _draw_profiles(right, profiles, divergence_label(_DRAWN))
    return drawn


def lesson_figure(lesson: TimeZoneEstimate) -> Figure:
    """The curator's estimate on the left, one client's release on the right; outcomes in the same order."""
    found, epsilon = lesson.found, lesson.found.sampler.epsilon
    with library_style():
        drawn = figure(12.0, 1.9 + 0.42 * len(lesson.truth))
        set_title(drawn, f"{found.clients:,} aircraft each release one time zone at ε = {epsilon:g}", 14)
        left, right = drawn.subplots(1, 2, width_ratios=(1.15, 1.0))
        panel_title(
            left, "The curator's estimate", "the true population, and its estimate from one sample of each aircraft"
        )
        population(found, truth=lesson.truth, most=len(lesson.truth), ax=left)
        panel_title(
            right,
            f"What one aircraft gave away: “{lesson.released}”",
            f"{lesson.client} holds {lesson.records:,} flights; its one sample could have been any of these",
        )
        _draw_revealed(right, lesson)
    return drawn


def reports_figure(lesson: DestinationEstimate) -> Figure:
    """The largest destinations as reports tell them on the left, and as values of the same aircraft do on the right."""
    found = lesson.found
    size, epsilon = len(lesson.truth), found.sampler.epsilon
    with library_style():
        drawn = figure(12.0, 6.2)
        set_title(
            drawn, f"{found.clients:,} aircraft each send one report on {size} destinations at ε = {epsilon:g}", 14
        )
        axes = drawn.subplots(1, 2)
        off = [f"all {size} together are off by {lesson.distance(each):.2f} (TV)" for each in (found, lesson.by_values)]
        panel_title(axes[0], "By reports", f"the {_LISTED} largest destinations; {off[0]}")
        population(found, truth=lesson.truth, most=_LISTED, ax=axes[0])
        panel_title(axes[1], "By values, the old way", f"{off[1]}; as good with {lesson.values_needed:,} aircraft")
        population(lesson.by_values, truth=lesson.truth, most=_LISTED, ax=axes[1])
        ends = [each.get_xlim() for each in axes]
        for each in axes:
            each.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    return drawn


def design_gain_figure(found: DesignedFlights) -> Figure:
    """The cost of each sampler for the aircraft of the second half-year, in two divergences."""
    with library_style():
        drawn = figure(12.0, 5.4)
        set_title(drawn, f"July to December, served by a design made on January to June, ε = {found.epsilon:g}", 14)
        for axes, name in zip(drawn.subplots(1, 2), ("tv", "kl"), strict=True):
            profiles = [CostProfile(kind, served.costs[name]) for kind, served in found.samplers.items()]
            _draw_profiles(axes, profiles, divergence_label(name))
    return drawn


def _draw_profiles(axes: Axes, profiles: Sequence[CostProfile], measure: str) -> None:
    clients = len(profiles[0].realised)
    panel_title(
        axes,
        f"Cost for {clients:,} aircraft",
        f"{measure} divergence of each client's output distribution, sorted for each mechanism",
    )
    share = (np.arange(clients) + 0.5) / clients
    ends = [(float(profile.realised.max()), profile.mechanism) for profile in profiles]
    for profile in reversed(profiles):  # the first one on top
        ordered = np.sort(profile.realised)
        axes.plot(share, ordered, color=_COLOURS[profile.mechanism], linewidth=2.2)
        quarter = clients // 4
        _annotate_panel(axes, profile.note, (share[quarter], ordered[quarter]), (6, -6), _COLOURS[profile.mechanism])
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of aircraft with at most this cost")
    axes.locator_params(axis="y", nbins=6)
    for height, name in _spread_label_heights(ends, 0.1 * axes.get_ylim()[1]):
        worst = next(value for value, owner in ends if owner == name)
        axes.annotate(
            f"{name}\n{worst:.2f} at worst",
            (1.0, height), (8, 0), xycoords="data", textcoords="offset points",
            color=_COLOURS[name], va="center", annotation_clip=False,
        )  # fmt: skip


def _spread_label_heights(ends: Sequence[tuple[float, str]], gap: float) -> list[tuple[float, str]]:
    """The heights of the names, moved down if two would collide."""
    placed: list[tuple[float, str]] = []
    for height, name in sorted(ends, key=lambda end: -round(end[0], 9)):
        ceiling = placed[-1][0] - gap if placed else np.inf
        placed.append((min(height, ceiling), name))
    return placed


def _annotate_panel(axes: Axes, text: str, place: tuple[float, float], shift: tuple[int, int], colour: str) -> None:
    axes.annotate(text, place, shift, textcoords="offset points", color=colour, ha="left", va="top", fontsize=9)


def _draw_revealed(axes: Axes, lesson: TimeZoneEstimate) -> None:
    shown = np.argsort(-lesson.truth, kind="stable")
    names = [str(lesson.found.domain.names[place]) for place in shown]
    rows, colour = np.arange(len(shown)), COLOURS["linear"]
    axes.barh(rows - 0.19, lesson.held[shown], height=0.34, color=COLOURS["held"], label="it holds")
    bars = axes.barh(rows + 0.19, lesson.drawn_from[shown], height=0.34, color=colour, label="its output distribution")
    for bar, place, name in zip(bars, shown.tolist(), names, strict=True):
        chosen = name == lesson.released
        axes.annotate(
            f"{100 * lesson.drawn_from[place]:.0f} %" + ("  released" if chosen else ""),
            (bar.get_width(), bar.get_y() + 0.5 * bar.get_height()), (4, 0), textcoords="offset points", va="center",
            fontsize=9, color=colour, fontweight="bold" if chosen else "normal",
        )  # fmt: skip
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(rows, [shorten_name(name) for name in names], color=INK, parse_math=False)
    axes.set_xlim(0.0, 1.12 * max(float(lesson.held.max()), float(lesson.drawn_from.max())))
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_xlabel(
        f"for any other data, no green bar changes by more than a factor of e$^{{{lesson.found.sampler.epsilon:g}}}$"
    )
    axes.legend(loc="lower right", frameon=False, labelcolor=INK)
