"""The mass that a density has between consecutive edges of a line, as an interval that holds it.

A lower bound that is proved for clients on cells is true for the clients themselves only if their masses on the cells are right. So whoever
has a distribution function in closed form gives two numbers for each cell, low <= mass <= high, with the errors of floating point paid for:

* Kernels (Gaussian, Laplace): with T(t) the mass beyond t >= 0, the mass between two edges is a difference of two values of T, or 1 less
  both where the centre lies between them. A rounded argument t (1 + d) changes T by at most a factor 1 + |d| (t^2 + 2), and T itself is
  computed by an exponential of an argument that errs by a few units in the last place of t^2. So each value of T errs by at most
  (16 + 8 t^2) 2^-53 of itself, and so does the difference by the sum of both.
* Tables: integrals of pieces that are constant or linear are sums of products of numbers that are not negative, each right up to a few units
  in its last place.
* Distribution functions of others: they grow, so their values a little to both sides of an edge enclose the value at the edge, whatever
  rounding the edge has met with on its way into them. Each value is taken to be right up to the relative error that is stated for it.

`proved` says whether low and high are such bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]

_UNIT = 2.0**-53
TINY = 1e-300  # below it floats lose digits
_BLOCK = 1 << 18  # components times edges held at a time
LEAST_KNOWN = 1e-200  # a mass of all cells together below which its share of each is not known well


@dataclass(frozen=True, eq=False)
class IntervalMasses:
    """The mass between consecutive edges, as well as it can be had; and low <= true mass <= high, if `proved`."""

    mass: Floats
    low: Floats
    high: Floats
    proved: bool = True

    @classmethod
    def around(cls, mass: Floats, error: Floats | float) -> IntervalMasses:
        """Masses that are known up to an error."""
        return cls(mass, np.maximum(mass - error, 0.0), mass + error)

    @classmethod
    def from_estimate(cls, mass: Floats) -> IntervalMasses:
        """Masses of whose error nothing is proved."""
        return cls(mass, mass, mass, proved=False)

    @property
    def enough(self) -> bool:
        """Whether the intervals hold so much together that their shares of it can be told."""
        return bool(self.mass.sum() > LEAST_KNOWN)

    def as_shares(self) -> IntervalMasses:
        """Each mass as a share of all of them together: m/(m + others) grows with m and falls with the others."""
        rounding = (self.low.size + 16) * _UNIT
        low_others = np.maximum(self.low.sum() * (1.0 - rounding) - self.low, 0.0)
        high_others = self.high.sum() * (1.0 + rounding) - self.high
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.where(self.low > 0.0, self.low / (self.low + high_others), 0.0) * (1.0 - rounding)
            high = np.where(self.high > 0.0, self.high / (self.high + low_others), 0.0) * (1.0 + rounding)
        return IntervalMasses(self.mass / self.mass.sum(), low, np.minimum(high, 1.0), self.proved)


def kernel_masses(kernel: Any, weights: Floats, centres: Floats, scales: Floats, edges: Floats) -> IntervalMasses:
    """Of a mixture of kernels on a line: weights, centres and scales (k,)."""
    mass, off = _component_masses(kernel, centres, scales, edges)
    whole = weights @ mass
    rounding = 2.0 * (len(weights) + 8) * _UNIT
    return IntervalMasses.around(whole, (weights @ off) * (1.0 + rounding) + rounding * whole + TINY)


def kernel_rows(mixtures: Sequence[Any], edges: Floats) -> Floats:
    """(n, cells) masses of n mixtures of one kernel, to within rounding of all that each has, some of them at a time."""
    rows = np.empty((len(mixtures), edges.size - 1))
    step = max(1, _BLOCK // (edges.size * max(len(p.weights) for p in mixtures)))
    for first in range(0, len(mixtures), step):
        some = mixtures[first : first + step]
        weights, scales = (np.concatenate([getattr(p, name) for p in some]) for name in ("weights", "scales"))
        centres = np.concatenate([p.means[:, 0] for p in some])
        below = some[0].kernel.below((edges - centres[:, None]) / scales[:, None])
        below *= weights[:, None]
        starts = np.cumsum([0, *(len(p.weights) for p in some[:-1])])
        rows[first : first + step] = np.diff(np.add.reduceat(below, starts, axis=0), axis=1)
    return np.maximum(rows, 0.0, out=rows)


def _component_masses(kernel: Any, centres: Floats, scales: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """(k, cells) masses of kernels, and how far each may be off."""
    t = (edges - centres[:, None]) / scales[:, None]
    tail, error = kernel.tail(np.abs(t))
    rising = t[:, 1:] <= 0.0
    across = (t[:, :-1] < 0.0) & ~rising
    change = tail[:, 1:] - tail[:, :-1]
    mass = np.where(across, (1.0 - tail[:, :-1]) - tail[:, 1:], np.where(rising, change, -change))
    return np.maximum(mass, 0.0), error[:, 1:] + error[:, :-1] + 4.0 * _UNIT * (np.abs(mass) + across)


def table_masses(axis: Floats, values: Floats, edges: Floats, *, constant: bool) -> IntervalMasses:
    """Of a table that is constant between the positions of its axis, or linear; zero outside."""
    inside = edges[(edges > axis[0]) & (edges < axis[-1])]
    grid = np.unique(np.concatenate([axis, inside]))
    start, stop = grid[:-1], grid[1:]
    piece = np.clip(np.searchsorted(axis, start, side="right") - 1, 0, axis.size - 2)
    if constant:
        height = values[piece]
    else:
        left, right = axis[piece], axis[piece + 1]
        ends = (values[piece] * (right - x) + values[piece + 1] * (x - left) for x in (start, stop))
        height = 0.5 * sum(ends) / (right - left)
    pieces = height * (stop - start)
    owner = np.searchsorted(edges, start, side="right") - 1  # before the first edge: -1
    held = (owner >= 0) & (owner < edges.size - 1)
    mass = sum_by_cell(pieces[held], owner[held], edges.size - 1)
    return IntervalMasses.around(mass, mass * (2.0 * (grid.size + 16) * _UNIT))


def distribution_masses(
    below: tuple[Floats, Floats], above: tuple[Floats, Floats], relative: float, *, proved: bool
) -> IntervalMasses:
    """From bounds (low, high) of the masses below and above every edge, each up to a relative error: differences of the smaller ones."""
    upper = below[0][:-1] > 0.5  # there the differences of what lies above keep their digits
    least, most = 1.0 - relative, 1.0 + relative
    low = np.where(upper, above[0][:-1] * least - above[1][1:] * most, below[0][1:] * least - below[1][:-1] * most)
    high = np.where(upper, above[1][:-1] * most - above[0][1:] * least, below[1][1:] * most - below[0][:-1] * least)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return IntervalMasses(0.5 * (low + high), low, high, proved)


def sum_by_cell(values: Floats, owner: NDArray[np.intp], cells: int) -> Floats:
    """Sums of values over the cells that own them."""
    return np.asarray(np.bincount(owner, values, minlength=cells), dtype=np.float64)


def lipschitz_masses(
    heights: Floats, widths: Floats, owner: NDArray[np.intp], cells: int, constant: float
) -> IntervalMasses:
    """From the heights in the middle of short pieces of cells, for a density that changes by at most `constant` times a distance."""
    reach = 0.25 * constant * np.square(widths) * (1.0 + 16.0 * _UNIT)
    rounding = 2.0 * (heights.size + 16) * _UNIT
    low = sum_by_cell(np.maximum(heights * widths - reach, 0.0), owner, cells)
    high = sum_by_cell(heights * widths + reach, owner, cells)
    mass = sum_by_cell(heights * widths, owner, cells)
    return IntervalMasses(mass, low * (1.0 - rounding), high * (1.0 + rounding))
