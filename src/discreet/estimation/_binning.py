"""Samples of a continuous family on a line, counted by bins of whole cells.

What is known of P and Q on every cell (`discreet.estimation._inversion`) holds for every union of cells, and the reference mass of a
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
from discreet.mechanisms._carriers._cells import DEFAULT_CELLS, CellAtoms
from discreet.mechanisms._carriers._densities import DensityAtoms
from discreet.mechanisms._carriers._line import LineCells
from discreet.mechanisms._carriers._points import PointAtoms
from discreet.mechanisms._sampler import AnyFamily, Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST, MOST = 4, 32
_COVERED = 1e-3  # of the reference that bins may leave out
_ROUNDING = 1e-9  # of the reference up to a cell


@dataclass(frozen=True, eq=False)
class CellBins:
    """Bins along a line, the reference mass of each, and at which of so many cells along the line each begins."""

    bins: Bins
    reference: Floats
    starts: Integers
    cells: int

    @property
    def bin_of_cell(self) -> Integers:
        """The bin that each of the cells along the line is a part of."""
        return np.repeat(np.arange(self.starts.size), np.diff(np.append(self.starts, self.cells)))

    def of(self, cells: NDArray[Any]) -> NDArray[Any]:
        """What the cells along the line (..., cells) hold, added up for each bin."""
        return np.asarray(np.add.reduceat(cells, self.starts, axis=-1))


def line_of(sampler: Sampler[AnyFamily]) -> LineCells:
    """The cells of the line that a sampler releases on; where it is not by cells, the usual ones of its family."""
    carrier = sampler.carrier
    if not isinstance(carrier, DensityAtoms) or carrier.family.dim != 1:
        raise DiscreetError(
            f"{sampler!r} does not release on a line, where samples are counted by bins; to estimate shares of regions in more "
            "dimensions let clients release the number of their region, on a Simplex"
        )
    return LineCells(
        carrier.partition if isinstance(carrier, CellAtoms) else carrier.family.cells(DEFAULT_CELLS[carrier.family.dim])
    )


def cells_as_bins(sampler: Sampler[AnyFamily]) -> CellBins:
    """Each cell a bin of its own."""
    line = line_of(sampler)
    if not np.isfinite(line.edges).all():
        raise DiscreetError(
            f"{sampler.family!r} has cells that reach to infinity, of which nothing can be averaged; give public bins, edges="
        )
    bins = Bins(line.edges)
    counted = _counted_on_points(sampler, bins)
    return CellBins(bins, line.masses if counted is None else counted / counted.sum(), np.arange(line.size), line.size)


def usual_bin_count(sampler: Sampler[AnyFamily], clients: int) -> int:
    """How many bins leave the noise of an average share at about half of it, between `FEWEST` and `MOST`."""
    return int(min(max(sampler.constants.gamma**2 * clients / 16.0, FEWEST), MOST))


def bin_cells(sampler: Sampler[AnyFamily], *, clients: int, count: int | None = None) -> CellBins:
    """Whole cells in `count` bins of about equal reference mass, or in the usual number for so many clients."""
    cells = cells_as_bins(sampler)
    if count is None:
        wanted = min(usual_bin_count(sampler, clients), cells.bins.size)
    else:
        wanted = check_count("bins", count, most=cells.bins.size, fix="a bin is at least one of the family's cells")
    if wanted == cells.bins.size:
        return cells
    upto = np.cumsum(cells.reference)
    starts = np.unique(
        1 + np.searchsorted(upto, np.arange(1, wanted) / wanted - _ROUNDING)
    )  # a heavy cell is worth several
    starts = np.append(0, starts[upto[starts - 1] < 1.0 - _ROUNDING])
    edges = np.append(cells.bins.edges[starts], cells.bins.edges[-1])
    return CellBins(Bins(edges), np.add.reduceat(cells.reference, starts), starts, cells.cells)


def masses_between(sampler: Sampler[AnyFamily], bins: Bins) -> Floats:
    """mu of bins between any edges: of whole cells what they have, of the parts of cells by Gauss's rule."""
    found = _counted_on_points(sampler, bins)
    if found is None:
        line = line_of(sampler)
        below = np.append(0.0, np.cumsum(line.masses))
        cell = np.clip(np.searchsorted(line.edges, bins.edges, side="right") - 1, 0, line.size - 1)
        found = np.diff(below[cell] + line.share_below(cell, bins.edges) * line.masses[cell])
    if abs(found.sum() - 1.0) > _COVERED:
        raise DiscreetError(f"edges cover {found.sum():.3f} of the family's reference; extend them to the whole space")
    return np.asarray(found / found.sum())


def cut_cells(sampler: Sampler[AnyFamily], bins: Bins) -> int:
    """How many of the cells that are released hold an edge of the bins inside them; 0 where release is not by cells of a line."""
    carrier = sampler.carrier
    if not isinstance(carrier, CellAtoms) or carrier.family.dim != 1:
        return 0
    line = line_of(sampler)
    cell = np.clip(np.searchsorted(line.edges, bins.edges, side="right") - 1, 0, line.size - 1)
    share = line.share_below(cell, bins.edges)
    return int(np.unique(cell[(share > _ROUNDING) & (share < 1.0 - _ROUNDING)]).size)


def _counted_on_points(sampler: Sampler[AnyFamily], bins: Bins) -> Floats | None:
    """The share of the public points that lies in each bin; None where the atoms are no public points."""
    carrier = sampler.carrier
    if not isinstance(carrier, PointAtoms) or carrier.how.seed is None or carrier.family.dim != 1:
        return None
    points = carrier.at(np.arange(carrier.size), carrier.how.seed)[:, 0]
    inside = points[(points >= bins.edges[0]) & (points <= bins.edges[-1])]
    return np.asarray(np.bincount(bins.cells_of(inside), minlength=bins.size) / len(points))
