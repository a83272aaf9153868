"""A client's density, the law released for it, the box b h <= q <= B h it must keep to, and where the box clips it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families._continuous import ContinuousFamily
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.plots._style import COLOURS, INK, QUIET, Axes, AxesLike, Figure, canvas, library_style, panel_title

Floats = NDArray[np.float64]

FLOOR, CEILING = "#56B4E9", "#E69F00"  # Okabe and Ito's light blue and orange
_POINTS = {1: 2001, 2: 241}
_OUTSIDE = 4e-3  # reference mass left out of the picture on either side of an unbounded axis


def density_figure(law: OutputLaw, *, ax: AxesLike | None, title: str | None) -> Figure:
    """One client's output law in one dimension (curves in one panel) or two (images in three)."""
    if law.many:
        raise DiscreetError(f"a picture shows one client, not {len(law.clients)}; draw the output of each")
    if law.dim not in _POINTS:
        raise DiscreetError(f"a law in dimension {law.dim} cannot be drawn; pictures are for 1 and 2 dimensions")
    with library_style():
        if law.dim == 1:
            drawn, (axes,) = canvas(ax, title, size=(7.6, 4.3))
            _draw_curves(axes, law)
        else:
            drawn, panels = canvas(ax, title, size=(11.0, 4.4), panels=(1, 3), share=True)
            _draw_images(drawn, panels, law)
    return drawn


def _draw_curves(axes: Axes, law: OutputLaw) -> None:
    (low, high), *_ = _ranges(law.family)
    x = np.linspace(low, high, _POINTS[1])
    h = law.family.pdf(x)
    p, q = _client(law, x[:, None]), law.pdf(x)
    floor, ceiling = law.constants.b * h, law.constants.B * h
    wanted = _unclipped_ratio(law, x[:, None])
    top = 1.12 * float(max(p.max(), q.max(), ceiling.max()))
    for where, colour, text in (
        (wanted < law.constants.b, FLOOR, "raised to the floor b h"),
        (wanted > law.constants.B, CEILING, "cut at the ceiling B h"),
    ):
        axes.fill_between(x, 0.0, top, where=where.tolist(), color=colour, alpha=0.16, linewidth=0, label=text)
    axes.plot(x, floor, color=QUIET, linewidth=1.0, linestyle=(0, (4, 2)), label="the box: b h and B h")
    axes.plot(x, ceiling, color=QUIET, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.plot(x, p, color=COLOURS["held"], linewidth=2.6, label="what the client holds, p")
    axes.plot(x, q, color=COLOURS["optimal"], linewidth=2.0, label="what a sample is drawn from, q")
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


def _draw_images(drawn: Figure, panels: Sequence[Axes], law: OutputLaw) -> None:
    (low, high), (bottom, top) = _ranges(law.family)
    x, y = np.linspace(low, high, _POINTS[2]), np.linspace(bottom, top, _POINTS[2])
    points = np.stack(np.meshgrid(x, y, indexing="xy"), axis=-1).reshape(-1, 2)
    shape = (_POINTS[2], _POINTS[2])
    p, q = _client(law, points).reshape(shape), law.pdf(points).reshape(shape)
    wanted = _unclipped_ratio(law, points).reshape(shape)
    brightest = float(max(p.max(), q.max()))
    left, middle, right = panels
    for other in (middle, right):
        other.sharey(left)
        other.tick_params(labelleft=False)
    for axes, density, name, text in (
        (left, p, "what the client holds", "density p"),
        (middle, q, "what a sample is drawn from", "density q"),
    ):
        shown = axes.imshow(
            density,
            origin="lower",
            extent=(low, high, bottom, top),
            cmap="Blues",
            vmin=0.0,
            vmax=brightest,
            aspect="equal",
        )
        axes.contour(x, y, density, levels=brightest * np.array([0.1, 0.3, 0.5, 0.7, 0.9]), colors=INK, linewidths=0.5)
        panel_title(axes, name, text)
    drawn.colorbar(shown, ax=[left, middle], shrink=0.75, pad=0.02).outline.set_visible(False)
    b, ceiling = law.constants.b, law.constants.B
    right.contourf(x, y, wanted, levels=[-1.0, b, ceiling, np.inf], colors=[FLOOR, "white", CEILING], alpha=0.45)
    right.contour(x, y, wanted, levels=[b, ceiling], colors=INK, linewidths=0.6)
    right.set_aspect("equal")
    panel_title(right, "where the box clips it", "blue: raised to b h; orange: cut at B h")
    for axes in (left, middle, right):
        axes.grid(visible=False)
        axes.set_xlabel("x₁")
    left.set_ylabel("x₂")


def _client(law: OutputLaw, points: Floats) -> Floats:
    """p, normalised, inside the family's space."""
    inside = np.isfinite(law.family.log_reference(points))
    return np.where(inside, np.exp(law.clients[0].log_density(points) - law.log_mass[0]), 0.0)


def _unclipped_ratio(law: OutputLaw, points: Floats) -> Floats:
    """slope p/h + lift b: what q/h would be without the box; it is below b where q is raised and above B where q is cut."""
    h = np.exp(law.family.log_reference(points))
    ratio = np.divide(_client(law, points), h, out=np.zeros_like(h), where=h > 0.0)
    steep = min(float(law.slope[0]), 1e300)
    return np.asarray(np.minimum(steep * ratio + law.lift[0] * law.constants.b, 1e300))


def _ranges(family: ContinuousFamily) -> list[tuple[float, float]]:
    """For each axis the family's own interval where it is finite, else where nearly all of the reference lies."""
    box = getattr(family, "box", None)
    x, masses = family.nodes.x.reshape(-1, family.dim), family.nodes.masses.ravel()
    found = []
    for axis in range(family.dim):
        if box is not None and np.isfinite(box[axis]).all():
            found.append(box[axis])
            continue
        order = np.argsort(x[:, axis])
        below = np.cumsum(masses[order])
        low, high = np.searchsorted(below, [_OUTSIDE * below[-1], (1.0 - _OUTSIDE) * below[-1]])
        found.append((float(x[order[low], axis]), float(x[order[min(high, len(order) - 1)], axis])))
    return found
