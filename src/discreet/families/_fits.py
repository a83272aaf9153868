"""From raw records to a member of the family: histogram, kernel estimate, mixture fit.

What a fit costs: TV(Q(P), Q(P_hat)) <= (2/r) TV(P, P_hat) [paper, Prop. 4.1], so an error of the estimate reaches the output
multiplied by at most 2/r (`sampler.sensitivity`), and in total never exceeds the diameter min(1 - b, B - 1) of the box.
TV(P, P_hat) has two parts:

* `HistogramFit(k)`: at most sqrt((k-1)/n)/2 on average from sampling (`sampler.estimation_cost` bounds that part), and how much
  p/h varies inside a cell from binning. Needs no assumption; for up to three dimensions.
* `KernelFit`: in a mixture family, one component of the family's own scale at every record: always a member, smoother than P by
  one kernel width whatever n. In a `DensityBand`, Gaussian kernels of Scott's bandwidth n^(-1/(dim+4)), clipped to the band at every
  point (so that no node has to notice where they leave it) and normalised there numerically.
* `MixtureFit`: in a mixture family, the maximum-likelihood weights over centres inside the radius: always a member, and its
  error goes to zero with n when P is in the family. The best choice there.

Records never choose the domain: a record outside the family's box is an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import LENGTH, POSITIVE, DiscreetError, check_count
from discreet.families._clipping import in_band
from discreet.families._densities import LogDensity, point_text
from discreet.families._features import Features
from discreet.families._interval_masses import sum_by_cell
from discreet.families._kernels import Mixture, MixtureKernel

if TYPE_CHECKING:
    from discreet.families._continuous import CellPartition, ContinuousFamily

Floats = NDArray[np.float64]


class Fit(Protocol):
    """A way to turn records (n, dim) into a density."""

    def law(self, family: ContinuousFamily, records: Floats) -> LogDensity: ...


class MixtureFamily(Protocol):
    """What the fits need of a family of mixtures."""

    dim: int
    radius: float
    scale: float

    @property
    def kernel(self) -> MixtureKernel: ...


class HistogramLaw:
    """heights_i h(x) on the cells of a partition: constant relative to the reference, not to volume."""

    def __init__(self, partition: CellPartition, heights: Floats) -> None:
        self.partition = partition
        self.heights = heights

    def __repr__(self) -> str:
        return f"HistogramLaw(<{len(self.heights)} cells of {self.partition.family!r}>)"

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.partition.family.dim

    @property
    def bins(self) -> int:
        """Number of cells."""
        return len(self.partition)

    def mass_between(self, low: Floats, high: Floats) -> float | None:
        """Its mass in a box that holds all of its family's space; None in another."""
        start, stop = self.partition.family.space
        return float(self.heights @ self.partition.masses) if (low <= start).all() and (high >= stop).all() else None

    def plain_masses(self, edges: Floats) -> Floats | None:
        """Its masses between consecutive edges of a line: of whole cells what they have, of their parts by Gauss's rule."""
        if self.dim > 1:
            return None
        cell, owner, share = self.partition.pieces_between(edges)
        return sum_by_cell((self.heights * self.partition.masses)[cell] * share, owner, edges.size - 1)

    def narrow_places(self) -> Features:
        """The middles of its cells, with their shortest sides."""
        panels, chart = self.partition.panels, self.partition.family.chart
        middles = 0.5 * (panels.lower + panels.upper)
        sides = (panels.upper - panels.lower) * chart.stretches(middles)
        return Features(chart.points(middles), 0.5 * sides.min(axis=1))

    def log_density(self, x: Floats) -> Floats:
        cell = self.partition.numbers(x)
        with np.errstate(divide="ignore"):
            heights = np.log(np.where(cell >= 0, self.heights[cell], 0.0))
        return np.asarray(heights + self.partition.family.log_reference(x))


@dataclass(frozen=True)
class HistogramFit:
    """Relative frequencies on cells of equal reference mass, about n^(dim/(dim+2)) of them unless `bins` says how many.

    Args:
        bins: how many cells.

    Raises:
        DiscreetError: for a number that is not at least 2.
    """

    bins: int | None = None

    def __post_init__(self) -> None:
        if self.bins is not None:
            check_count("bins", self.bins, 2, most=10**6)

    def law(self, family: ContinuousFamily, records: Floats) -> HistogramLaw:
        wanted = math.ceil(2.0 * len(records) ** (family.dim / (family.dim + 2)))
        partition = family.cells(wanted if self.bins is None else self.bins)
        cell = partition.numbers(records)
        if (cell < 0).any():
            first = int(np.argmax(cell < 0))
            raise DiscreetError(f"records[{first}] = {point_text(records[first])} is outside the space of {family!r}")
        heights = np.bincount(cell, minlength=len(partition)) / len(records) / partition.masses
        share = share_towards_reference(float(heights.min()), float(heights.max()), family)
        return HistogramLaw(partition, (1.0 - share) * heights + share)


@dataclass(frozen=True)
class KernelFit:
    """One kernel at every record; `bandwidth` is the family's scale in a mixture family, else Scott's.

    Where that is no member of the family by its parameters, it is clipped to the band: nearest to the estimate, and inside. (Not in a band
    that serves everybody.)

    Args:
        bandwidth: the width of a kernel.

    Raises:
        DiscreetError: for a width that is not positive.
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            LENGTH.check("bandwidth", POSITIVE.check("bandwidth", self.bandwidth))

    def law(self, family: ContinuousFamily, records: Floats) -> LogDensity:
        weights = np.ones(len(records))
        mixtures = as_mixture_family(family)
        if mixtures is not None:
            width = mixtures.scale if self.bandwidth is None else float(self.bandwidth)
            return in_band(family, Mixture(weights, pull_inside(mixtures, records), width, kernel=mixtures.kernel))
        spread = float(np.mean(np.std(records, axis=0))) or 1.0
        scott = spread * len(records) ** (-1.0 / (family.dim + 4))
        width = scott if self.bandwidth is None else float(self.bandwidth)
        return in_band(family, Mixture(weights, records, width))


@dataclass(frozen=True)
class MixtureFit:
    """Maximum-likelihood weights over at most `components` centres among the records, by expectation-maximisation.

    Args:
        components: the most centres that are used.
        steps: how often the weights are improved.

    Raises:
        DiscreetError: for numbers out of range.
    """

    components: int = 64
    steps: int = 200

    def __post_init__(self) -> None:
        check_count("components", self.components)
        check_count("steps", self.steps, 0)

    def law(self, family: ContinuousFamily, records: Floats) -> Mixture:
        mixtures = as_mixture_family(family)
        if mixtures is None:
            raise DiscreetError(f"MixtureFit needs a family of mixtures, not {family!r}; use HistogramFit or KernelFit")
        inside = pull_inside(mixtures, records)
        apart = inside[np.argsort(inside[:, 0], kind="stable")]  # every m-th along the first axis: spread over the data
        places = np.linspace(0, len(apart) - 1, min(len(apart), self.components))
        centres = np.unique(apart[np.round(places).astype(int)], axis=0)
        scales = np.full(len(centres), mixtures.scale)
        exponents = mixtures.kernel.exponents(records, centres, scales)
        likelihood = np.exp(exponents - exponents.max(axis=0))  # (centres, records)
        weights = np.full(len(centres), 1.0 / len(centres))
        for _ in range(self.steps):  # each step increases the likelihood, which is concave in the weights
            weights = weights * np.mean(likelihood / (weights @ likelihood), axis=1)
        return Mixture(weights, centres, mixtures.scale, kernel=mixtures.kernel)


def as_mixture_family(family: object) -> MixtureFamily | None:
    """The family itself when its members are mixtures of one kernel."""
    return family if hasattr(family, "kernel") and hasattr(family, "radius") else None  # type: ignore[return-value]


def pull_inside(family: MixtureFamily, records: Floats) -> Floats:
    """Records moved along their rays until they are no further from the origin than the family's radius."""
    size = family.kernel.size(records)
    factor = np.divide(family.radius, size, out=np.ones_like(size), where=size > family.radius)
    return np.asarray(records * factor[:, None])


def share_towards_reference(smallest: float, largest: float, family: ContinuousFamily) -> float:
    """The least share with lower <= (1 - share) p/h + share <= upper of those served, for p/h between smallest and largest."""
    lower, upper = family.served_bounds.lower, family.served_bounds.upper
    from_above = (largest - upper) / (largest - 1.0) if largest > upper else 0.0
    from_below = (lower - smallest) / (1.0 - smallest) if smallest < lower else 0.0
    return max(from_above, from_below)
