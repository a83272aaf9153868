"""Pictures of one client's distribution p, its output distribution q, and the box that every client's q stays in.

On finitely many outcomes the box is b mu <= q <= B mu, drawn as rows. On a continuous family it is b h <= q <= B h with the reference
density h: curves in one dimension, images in two, which also show where the box clips.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.mechanisms import AnyFamily, Mechanism, OutputLaw, Sampler, refuse_non_mechanism, refuse_non_sampler
from discreet.plots import _style as style
from discreet.plots._style import Axes, AxesLike, Figure

Floats = NDArray[np.float64]

FLOOR, CEILING = "#56B4E9", "#E69F00"  # Okabe and Ito's light blue and orange
_POINTS = {1: 2001, 2: 241}
_OUTSIDE = 4e-3  # reference mass left out of the picture on either side of an unbounded axis


def output_density_figure(law: OutputLaw, *, ax: AxesLike | None, title: str | None) -> Figure:
    """One client's output distribution in one dimension (curves in one panel) or two (images in three)."""
    if law.many:
        raise DiscreetError(f"a picture shows one client, not {len(law.clients)}; draw the output of each")
    if law.dim not in _POINTS:
        raise DiscreetError(
            f"a distribution in dimension {law.dim} cannot be drawn; pictures are for 1 and 2 dimensions"
        )
    with style.using_library_style():
        if law.dim == 1:
            figure, (axes,) = style.new_or_given_figure_and_panels(ax, title, size=(7.6, 4.3))
            _draw_density_curves(axes, law)
        else:
            figure, panels = style.new_or_given_figure_and_panels(
                ax, title, size=(11.0, 4.4), panels=(1, 3), share=True
            )
            _draw_density_images(figure, panels, law)
    return figure


def _draw_density_curves(axes: Axes, law: OutputLaw) -> None:
    (low, high), *_ = _plotted_axis_ranges(law.family)
    x = np.linspace(low, high, _POINTS[1])
    h = law.family.pdf(x)
    p, q = _client_density(law, x[:, None]), law.pdf(x)
    floor, ceiling = law.constants.b * h, law.constants.B * h
    ratio = _density_ratio_before_clipping(law, x[:, None])
    top = 1.12 * float(max(p.max(), q.max(), ceiling.max()))
    for region, colour, text in (
        (ratio < law.constants.b, FLOOR, "raised to the floor b h"),
        (ratio > law.constants.B, CEILING, "cut at the ceiling B h"),
    ):
        axes.fill_between(x, 0.0, top, where=region.tolist(), color=colour, alpha=0.16, linewidth=0, label=text)
    axes.plot(x, floor, color=style.QUIET, linewidth=1.0, linestyle=(0, (4, 2)), label="the box: b h and B h")
    axes.plot(x, ceiling, color=style.QUIET, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.plot(x, p, color=style.COLOURS["held"], linewidth=2.6, label="what the client holds, p")
    axes.plot(x, q, color=style.COLOURS["optimal"], linewidth=2.0, label="what a sample is drawn from, q")
    axes.set_xlim(low, high)
    axes.set_ylim(0.0, top)
    axes.set_xlabel("x")
    axes.set_ylabel("density")
    handles, labels = axes.get_legend_handles_labels()
    curves_first = [3, 4, 2, 0, 1]
    axes.legend(
        [handles[i] for i in curves_first],
        [labels[i] for i in curves_first],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=9,
    )


def _draw_density_images(figure: Figure, panels: Sequence[Axes], law: OutputLaw) -> None:
    (low, high), (bottom, top) = _plotted_axis_ranges(law.family)
    x, y = np.linspace(low, high, _POINTS[2]), np.linspace(bottom, top, _POINTS[2])
    points = np.stack(np.meshgrid(x, y, indexing="xy"), axis=-1).reshape(-1, 2)
    shape = (_POINTS[2], _POINTS[2])
    p, q = _client_density(law, points).reshape(shape), law.pdf(points).reshape(shape)
    ratio = _density_ratio_before_clipping(law, points).reshape(shape)
    brightest = float(max(p.max(), q.max()))
    left, middle, right = panels
    for other in (middle, right):
        other.sharey(left)
        other.tick_params(labelleft=False)
    for axes, density, name, text in (
        (left, p, "what the client holds", "density p"),
        (middle, q, "what a sample is drawn from", "density q"),
    ):
        image = axes.imshow(
            density,
            origin="lower",
            extent=(low, high, bottom, top),
            cmap="Blues",
            vmin=0.0,
            vmax=brightest,
            aspect="equal",
        )
        axes.contour(
            x, y, density, levels=brightest * np.array([0.1, 0.3, 0.5, 0.7, 0.9]), colors=style.INK, linewidths=0.5
        )
        style.write_panel_title(axes, name, text)
    figure.colorbar(image, ax=[left, middle], shrink=0.75, pad=0.02).outline.set_visible(False)
    b, ceiling = law.constants.b, law.constants.B
    right.contourf(x, y, ratio, levels=[-1.0, b, ceiling, np.inf], colors=[FLOOR, "white", CEILING], alpha=0.45)
    right.contour(x, y, ratio, levels=[b, ceiling], colors=style.INK, linewidths=0.6)
    right.set_aspect("equal")
    style.write_panel_title(right, "where the box clips it", "blue: raised to b h; orange: cut at B h")
    for axes in (left, middle, right):
        axes.grid(visible=False)
        axes.set_xlabel("x₁")
    left.set_ylabel("x₂")


def _client_density(law: OutputLaw, points: Floats) -> Floats:
    """p, normalised, inside the family's space."""
    inside = np.isfinite(law.family.log_reference(points))
    return np.where(inside, np.exp(law.clients[0].log_density(points) - law.log_mass[0]), 0.0)


def _density_ratio_before_clipping(law: OutputLaw, points: Floats) -> Floats:
    """slope p/h + lift b: q/h without the box; below b where q is raised, above B where q is cut."""
    h = np.exp(law.family.log_reference(points))
    ratio = np.divide(_client_density(law, points), h, out=np.zeros_like(h), where=h > 0.0)
    slope = min(float(law.slope[0]), 1e300)
    return np.asarray(np.minimum(slope * ratio + law.lift[0] * law.constants.b, 1e300))


def _plotted_axis_ranges(family: ContinuousFamily) -> list[tuple[float, float]]:
    """For each axis the family's own interval if it is finite, else where nearly all of the reference lies."""
    box = getattr(family, "box", None)
    x, masses = family.nodes.x.reshape(-1, family.dim), family.nodes.masses.ravel()
    ranges = []
    for axis in range(family.dim):
        if box is not None and np.isfinite(box[axis]).all():
            ranges.append(box[axis])
            continue
        order = np.argsort(x[:, axis])
        mass_below = np.cumsum(masses[order])
        low, high = np.searchsorted(mass_below, [_OUTSIDE * mass_below[-1], (1.0 - _OUTSIDE) * mass_below[-1]])
        ranges.append((float(x[order[low], axis]), float(x[order[min(high, len(order) - 1)], axis])))
    return ranges


_TICKS = (1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def output(
    sampler: Sampler[AnyFamily] | Mechanism,
    p: Any,
    *,
    released: Any = None,
    most: int = 12,
    ax: AxesLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one client's distribution p and its output distribution, inside the box that holds for every client.

    On finitely many outcomes: a row for each. On a continuous family: curves in one dimension, images in two.

    Args:
        sampler: An `OptimalSampler`, `LinearSampler`, `MollifierSampler` or `OwnSampler`; or a `Mechanism` of your own, which is drawn
            without a box.
        p: One client, as `sampler.output` takes it.
        released: The outcome that was released, to be marked; on finitely many outcomes.
        most: The number of outcomes to show, those with the largest shares first; the others are averaged in one row.
        ax: Axes to draw on (three in two dimensions, else one); by default a new figure.
        title: Above a new figure.

    Returns:
        The figure.

    Raises:
        DiscreetError: `p` is not one client of the family or lies in more than two dimensions, `released` is not an outcome, or
            `ax` does not hold as many axes as there are panels.
    """
    refuse_non_mechanism(sampler, "sampler")
    if not isinstance(sampler, Sampler) and isinstance(sampler.family, ContinuousFamily):
        refuse_non_sampler(sampler)
    if isinstance(sampler.family, ContinuousFamily):
        if released is not None:
            raise DiscreetError(f"released = {released!r} is for finite families; a density is drawn without it")
        law = sampler.output(p)
        assert isinstance(law, OutputLaw)
        return output_density_figure(law, ax=ax, title=title)
    check_count("most", most)
    client = _ClientOutput.from_sampler_and_client(sampler, sampler.family, p, released)
    with style.using_library_style():
        figure, (axes,) = style.new_or_given_figure_and_panels(ax, title, size=(6.4, 5.2))
        _draw_client_output(axes, client, most)
    return figure


@dataclass(frozen=True)
class _ClientOutput:
    """One client's distribution, its output distribution, and the ends of the box, outcome by outcome."""

    names: list[str]
    client_law: Floats
    drawn_from: Floats
    floor: Floats
    ceiling: Floats
    claim: str
    has_box: bool
    released_outcome: int | None
    colour: str

    @classmethod
    def from_sampler_and_client(cls, sampler: Any, family: FiniteFamily, p: Any, released: Any) -> "_ClientOutput":
        client_law = family.as_rows(p)
        if client_law.ndim != 1:
            raise DiscreetError(f"p has shape {client_law.shape}; a picture shows one client: draw the output of each")
        output_law = np.asarray(sampler.output(client_law), dtype=np.float64)
        if output_law.shape != client_law.shape:
            raise DiscreetError(f"output(p) of {sampler.name!r} has shape {output_law.shape}, not {client_law.shape}")
        box = getattr(sampler, "box", None)
        lower, upper = (output_law, output_law) if box is None else (box.lower, box.upper)
        return cls(
            names=[str(name) for name in family.domain.names],
            client_law=client_law,
            drawn_from=output_law,
            floor=np.broadcast_to(lower, family.size),
            ceiling=np.broadcast_to(upper, family.size),
            claim=f"a factor of e$^{{{sampler.epsilon:g}}}$" if box is not None else str(sampler.privacy),
            has_box=box is not None,
            released_outcome=None if released is None else int(family.numbers([released])[0]),
            colour=style.mechanism_colours([sampler.name])[sampler.name],
        )

    def outcomes_to_show(self, most: int) -> NDArray[np.intp]:
        """The outcomes with the largest shares, and the released one."""
        first = np.argsort(-self.client_law, kind="stable")[: min(most, int((self.client_law > 0).sum()))]
        if self.released_outcome is None or self.released_outcome in first:
            return first
        return np.append(first, self.released_outcome)


def _draw_client_output(axes: Axes, client: _ClientOutput, most: int) -> None:
    outcomes = client.outcomes_to_show(most)
    other_outcomes = np.setdiff1d(np.arange(len(client.client_law)), outcomes)
    names = [style.short_drawable_name(client.names[outcome], f"outcome {outcome}") for outcome in outcomes]
    client_law, output_law, floor, ceiling = (
        np.append(values[outcomes], values[other_outcomes].mean()) if other_outcomes.size else values[outcomes]
        for values in (client.client_law, client.drawn_from, client.floor, client.ceiling)
    )
    if other_outcomes.size:
        names.append(
            f"{other_outcomes.size} other,\non average"
            if other_outcomes.size == 1
            else f"{other_outcomes.size} others,\non average"
        )
    smallest = float(client_law[client_law > 0].min())
    # a floor of 1e-300 would leave no room for the rest
    edge = 0.55 * min(smallest, max(float(floor.min()), smallest / 30.0))
    output_law = np.maximum(output_law, edge)
    rows = np.arange(len(names))
    if not client.has_box:
        pass
    elif np.ptp(client.floor) == np.ptp(client.ceiling) == 0.0:
        axes.axvspan(floor[0], ceiling[0], color=client.colour, alpha=0.09, linewidth=0)
    else:
        inside = np.maximum(floor, edge)
        axes.barh(rows, ceiling - inside, left=inside, height=0.9, color=client.colour, alpha=0.12, linewidth=0)
    axes.hlines(rows, np.maximum(client_law, edge), output_law, color="#CFCFCF", linewidth=1.4, zorder=1)
    positive = client_law > 0
    axes.scatter(client_law[positive], rows[positive], s=46, color=style.COLOURS["held"], zorder=2)
    axes.scatter(
        np.full((~positive).sum(), edge), rows[~positive], s=46, marker="<", color=style.COLOURS["held"], zorder=2
    )
    axes.scatter(output_law, rows, s=46, color=client.colour, zorder=3)
    for row in rows[~positive]:
        _write_text_at_point(axes, "held: 0", (edge, row), (8, 6), style.COLOURS["held"])
    axes.set_xscale("log")
    axes.set_xlim(0.85 * edge, 1.7 * max(float(client_law.max()), float(ceiling.max())))
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(names) - 0.4, -1.1)
    axes.set_yticks(rows, names, color=style.INK, parse_math=False)
    for label, outcome in zip(axes.get_yticklabels(), outcomes, strict=False):
        label.set_fontweight("bold" if outcome == client.released_outcome else "normal")
    if client.released_outcome is not None:
        row = int(np.flatnonzero(outcomes == client.released_outcome)[0])
        _write_text_at_point(
            axes, "released", (output_law[row], row), (0, -6), client.colour, side="center", level="top", weight="bold"
        )
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    side, away = ("left", 8) if client_law[0] >= output_law[0] else ("right", -8)
    _write_text_at_point(axes, "held", (client_law[0], 0), (away, 0), style.COLOURS["held"], side=side, level="center")
    _write_text_at_point(axes, "drawn from", (output_law[0], 0), (0, 7), client.colour, side="center")
    if not client.has_box:
        axes.set_xlabel(f"claimed: {client.claim}; it states no box", color=client.colour)
    elif np.ptp(client.floor) == np.ptp(client.ceiling) == 0.0:
        span = f"{100 * floor[0]:.2g} % to {100 * ceiling[0]:.2g} %, {client.claim}"
        axes.set_xlabel(f"one box for every client: {span}", color=client.colour)
    else:
        axes.set_xlabel(f"bars: one box for every client, {client.claim} wide", color=client.colour)


def _write_text_at_point(
    axes: Axes,
    text: str,
    point: tuple[float, float],
    shift: tuple[int, int],
    colour: str,
    *,
    side: str = "left",
    level: str = "bottom",
    weight: str = "normal",
) -> None:
    axes.annotate(
        text, point, shift, textcoords="offset points", color=colour, ha=side, va=level, fontsize=9, fontweight=weight
    )
