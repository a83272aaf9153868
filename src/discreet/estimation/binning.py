"""Samples of a continuous family on a line, counted by bins of whole cells.

What is known of P and Q on every cell (`discreet.estimation.inversion`) holds for every union of cells, and the reference mass of a
union is the sum of those that the box was made of: so a bin of whole cells is estimated as an outcome of a finite family is, with no
integral and no interpolation. How many bins is a matter of noise alone. A share near 1/N is told to about 2/(gamma sqrt(N n)) by n
clients, which is half of it at N = gamma^2 n/16: so many bins are taken, between `FEWEST` and `MOST`. The number depends on how many
samples there are, not on what they are, so intervals hold as often as they say.

Where the atoms are points of a public seed, bins are those of the family's usual cells, and their masses are counted on the points.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Bins
from discreet.errors import DiscreetError, check_count
from discreet.families import ContinuousFamily
from discreet.mechanisms.carriers.cells import CELLS, CellCarrier
from discreet.mechanisms.carriers.densities import DensityCarrier
from discreet.mechanisms.carriers.line import LineCells
from discreet.mechanisms.carriers.points import PointCarrier
from discreet.mechanisms.sampler import AnyFamily, Sampler
from discreet.quadrature import ORDER, Panels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST, MOST = 4, 32
_COVERED = 1e-3  # of the reference that bins may leave out


@dataclass(frozen=True, eq=False)
class Binned:
    """Bins along a line, the reference mass of each, and at which of the cells along the line each begins."""

    bins: Bins
    reference: Floats
    starts: Integers

    def of(self, cells: NDArray[Any]) -> NDArray[Any]:
        """What the cells along the line (..., cells) hold, added up for each bin."""
        return np.asarray(np.add.reduceat(cells, self.starts, axis=-1))


def line_of(sampler: Sampler[AnyFamily]) -> LineCells:
    """The cells of the line that a sampler releases on; for points, the usual ones of its family."""
    carrier = sampler.carrier
    if not isinstance(carrier, DensityCarrier) or carrier.family.dim != 1:
        raise DiscreetError(
            f"{sampler!r} does not release on a line, where samples are counted by bins; in more dimensions estimate the share of a "
            "region of your own, as an outcome of a Simplex that clients release on"
        )
    if isinstance(carrier, CellCarrier):
        return LineCells(carrier.partition)
    carrier.check_shared("an estimate")
    return LineCells(carrier.family.cells(CELLS[1]))


def every_cell(sampler: Sampler[AnyFamily]) -> Binned:
    """Each cell a bin of its own."""
    line = line_of(sampler)
    bins = Bins(line.edges)
    masses = _on_points(sampler.carrier, bins) if isinstance(sampler.carrier, PointCarrier) else line.masses
    return Binned(bins, masses, np.arange(line.size))


def usual_number(sampler: Sampler[AnyFamily], clients: int) -> int:
    """How many bins leave the noise of an average share at about half of it, between `FEWEST` and `MOST`."""
    return int(min(max(sampler.constants.gamma**2 * clients / 16.0, FEWEST), MOST))


def binned(sampler: Sampler[AnyFamily], *, clients: int, count: int | None = None) -> Binned:
    """Whole cells in `count` bins of about equal reference mass, or in the usual number for so many clients."""
    cells = every_cell(sampler)
    if count is None:
        wanted = min(usual_number(sampler, clients), cells.bins.size)
    else:
        wanted = check_count("bins", count, most=cells.bins.size, fix="a bin is at least one of the family's cells")
    upto = np.cumsum(cells.reference) / cells.reference.sum()
    starts = np.append(0, 1 + np.searchsorted(upto, np.arange(1, wanted) / wanted - 1e-9))
    starts = np.unique(np.minimum(starts, cells.bins.size - 1))  # a heavy cell may be worth several bins
    found = Binned(Bins(np.append(cells.bins.edges[starts], cells.bins.edges[-1])), np.empty(0), starts)
    return Binned(found.bins, found.of(cells.reference), starts)


def masses_between(sampler: Sampler[AnyFamily], bins: Bins) -> Floats:
    """mu of bins between any edges: of whole cells what they have, of the parts of cells by Gauss's rule."""
    carrier = sampler.carrier
    if isinstance(carrier, PointCarrier) and carrier.family.dim == 1 and carrier.how.seed is not None:
        return _on_points(carrier, bins)
    line = LineCells(carrier.family.cells(CELLS[1])) if isinstance(carrier, PointCarrier) else line_of(sampler)
    below = np.append(0.0, np.cumsum(line.masses))
    cell = np.clip(np.searchsorted(line.edges, bins.edges, side="right") - 1, 0, line.size - 1)
    inside = np.clip(bins.edges, line.edges[cell], line.edges[cell + 1])
    share = _share_below(carrier.family, line, cell, inside)
    found = np.diff(below[cell] + share * line.masses[cell])
    if abs(found.sum() - 1.0) > _COVERED:
        raise DiscreetError(f"edges cover {found.sum():.3f} of the family's reference; extend them to the whole space")
    return np.asarray(found / found.sum())


def _share_below(family: ContinuousFamily, line: LineCells, cells: Integers, x: Floats) -> Floats:
    """Of the reference in each of these cells along the line, how much lies below a point of it."""
    start, stop = line.coordinates
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.clip(family.chart.coordinates(x[:, None])[:, 0], start[cells], stop[cells])

    def mass(lower: Floats, upper: Floats) -> Floats:
        return np.asarray(family.nodes_of(Panels(lower[:, None], upper[:, None]), ORDER[1]).masses.sum(axis=1))

    below, above = mass(start[cells], t), mass(t, stop[cells])
    whole = below + above
    return np.divide(below, whole, out=np.zeros_like(whole), where=whole > 0.0)


def _on_points(carrier: PointCarrier, bins: Bins) -> Floats:
    """The share of the public points that lies in each bin, which have to hold all but a few of them."""
    points = carrier.samples(np.arange(carrier.size), np.random.default_rng(0))[:, 0]
    inside = (points >= bins.edges[0]) & (points <= bins.edges[-1])
    if not inside.mean() > 1.0 - _COVERED:
        raise DiscreetError(f"edges cover {inside.mean():.3f} of the family's points; extend them to the whole space")
    return np.asarray(np.bincount(bins.cells_of(points[inside]), minlength=bins.size) / inside.sum())
