"""Fits of records to a member of the family: histogram, kernel estimate, mixture; the member nearest to a density; and `LineCells`.

**The cost of a fit.** TV(Q(P), Q(P_hat)) <= (2/r) TV(P, P_hat) [paper, Prop. 4.1]. So an error of the estimate reaches the output multiplied
by at most 2/r (`sampler.sensitivity`), and in total never exceeds the diameter min(1 - b, B - 1) of the box. TV(P, P_hat) has two parts:

* `HistogramFit(k)`: sampling contributes at most sqrt((k-1)/n)/2 on average (`sampler.estimation_cost` bounds this part); binning contributes
the variation of p/h inside a cell. It needs no assumption, and works in up to three dimensions.
* `KernelFit`: in a mixture family, one component of the family's own scale at every record. It is always a member, smoother than P by one
kernel width for every n. In a `DensityBand`, Gaussian kernels of Scott's bandwidth n^(-1/(dim+4)), clipped to the band at every point (so
that no node has to detect where they leave it) and normalised there numerically.
* `MixtureFit`: in a mixture family, the maximum-likelihood weights over centres inside the radius. It is always a member, and its error goes
to zero with n if P is in the family. It is the best choice there.

Records never choose the domain: a record outside the family's box is an error.

**The nearest member** of a band to p, for every f-divergence, is clip(p/r, c1 h, c2 h) with r normalising [paper, Prop. C.8]. At every point
it lies between the bounds, for every p and every choice of nodes. Only r is numerical: the mass is one up to the error of an integral, and
its users divide by that mass.

**`LineCells`** are the cells of a continuous family on a line, as a domain for columns of numbers. A value is read as the number of its cell,
and a released number is a point of its cell. A client that is a list of values is its empirical distribution on the cells. It is released
like a client of a finite family, with the integers of the family's own sampler. The point of a cell is uniform in the family's coordinate,
and depends on the cell alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.quadrature import ORDER, Panels, refine_and_integrate_to_tolerance
from discreet.domain import CellDomain, cell_middles, cell_names
from discreet.errors import LENGTH, POSITIVE, DiscreetError, check_count
from discreet.families._bands_and_laws import Bounds
from discreet.families._densities import LogDensity, as_points, format_point, shape_of_point_values
from discreet.families._integration import CellPartition, Features, narrow_features_of_clients, sum_by_cell
from discreet.families._kernel_mixtures import Mixture, MixtureKernel

if TYPE_CHECKING:
    from discreet.families._continuous import ContinuousFamily

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_TOLERANCE = {1: 1e-6, 2: 1e-3, 3: 5e-3}  # relative, of the mass
_MOST_NODES = 1 << 18
_POINTS = 1 << 14  # public draws, where there are too many dimensions for nodes
_ROUNDS = 4  # of finding r, and then nodes that resolve where it clips
_HALVINGS = 80
_END = 1e-12  # of a cell, kept clear at its ends: one of them may be at infinity


class ClippedLaw:
    """clip(p/r, lower h, upper h) with r normalising: the member nearest to p, between the bounds at every point for every p."""

    def __init__(self, family: ContinuousFamily, p: LogDensity, log_scale: float) -> None:
        self.family, self.p, self.log_scale = family, p, log_scale

    def __repr__(self) -> str:
        return f"ClippedLaw({self.p!r} within {self.family!r})"

    @property
    def dim(self) -> int:
        """The dimension of the space."""
        return self.family.dim

    def log_density(self, x: Floats) -> Floats:
        log_reference = self.family.log_reference(x)
        with np.errstate(invalid="ignore"):
            log_ratio = self.p.log_density(x) - self.log_scale - log_reference
        with np.errstate(divide="ignore"):
            log_clipped = np.clip(log_ratio, np.log(self.family.bounds.lower), np.log(self.family.bounds.upper))
        return np.asarray(np.where(np.isneginf(log_reference), -np.inf, log_clipped + log_reference))

    def pdf(self, x: ArrayLike) -> Floats:
        """The density at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_density(as_points(x, self.dim))).reshape(shape_of_point_values(x, self.dim))

    def is_certainly_in(self, family: ContinuousFamily) -> bool:
        """Whether it was clipped to that family's band."""
        return self.family == family

    def narrow_places(self) -> Features:
        """The narrow places of the clipped density."""
        return narrow_features_of_clients([self.p], self.dim)


def clip_to_member(family: ContinuousFamily, p: Mixture) -> LogDensity:
    """p itself if it is a member by its parameters, or if the family serves everybody; else the member nearest to it."""
    if family.any_client or family.certainly_contains(p):
        return p
    if family.dim not in ORDER:
        x = family.draw(_POINTS, np.random.default_rng(0))
        return _clip_to_band(family, p, x, np.full(len(x), 1.0 / len(x)))
    chart = family.chart
    panels, _ = family.refine_panels(family.panels, [p], _MOST_NODES)
    for _ in range(_ROUNDS):
        nodes = family.nodes_of_panels(panels, ORDER[family.dim])
        law = _clip_to_band(family, p, nodes.x[nodes.masses > 0.0], nodes.masses[nodes.masses > 0.0])

        def density_in_coordinates(t: Floats, law: ClippedLaw = law) -> Floats:
            density = np.exp(law.log_density(chart.points_at_coordinates(t).reshape(-1, family.dim))).reshape(
                t.shape[:-1]
            )
            return np.where(density > 0.0, density * chart.jacobian(t), 0.0)

        finer, mass, _ = refine_and_integrate_to_tolerance(panels, density_in_coordinates, _TOLERANCE[family.dim], 0.0)
        if len(finer) == len(panels) or abs(mass - 1.0) <= _TOLERANCE[family.dim]:
            break
        panels = finer
    return law


def _clip_to_band(family: ContinuousFamily, p: Mixture, x: Floats, masses: Floats) -> ClippedLaw:
    """p clipped so that its mass is one on points (m, dim) with these reference masses."""
    log_ratio = p.log_density(x) - family.log_reference(x)
    is_finite = np.isfinite(log_ratio)
    if not is_finite.any():
        raise DiscreetError(f"the records leave no mass in the space of {family!r}; take a larger bandwidth")
    return ClippedLaw(
        family, p, _log_clipping_scale(family.bounds, log_ratio[is_finite], masses[is_finite] / masses[is_finite].sum())
    )


def _log_clipping_scale(bounds: Bounds, log_ratio: Floats, masses: Floats) -> float:
    """log r with sum masses clip(p/(r h), lower, upper) = 1, by bisection: the sum falls as r grows."""
    spread = math.log(bounds.upper) + 50.0
    low, high = float(log_ratio.min()) - spread, float(log_ratio.max()) + spread
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        ratios = np.exp(np.minimum(log_ratio - middle, math.log(bounds.upper)))
        mass = float(masses @ np.maximum(ratios, bounds.lower))
        low, high = (middle, high) if mass > 1.0 else (low, middle)
    return 0.5 * (low + high)


class Fit(Protocol):
    """A way to turn records (n, dim) into a density."""

    def law(self, family: ContinuousFamily, records: Floats) -> LogDensity: ...


class MixtureFamily(Protocol):
    """The parts of a mixture family that the fits need."""

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
        """Its mass in a box that contains the family's whole space; None for another box."""
        start, stop = self.partition.family.space
        return float(self.heights @ self.partition.masses) if (low <= start).all() and (high >= stop).all() else None

    def approximate_interval_masses(self, edges: Floats) -> Floats | None:
        """Its masses between consecutive edges of a line: exact for whole cells, by Gauss's rule for parts."""
        if self.dim > 1:
            return None
        cell, owner, share = self.partition.cell_pieces_between_edges(edges)
        return sum_by_cell((self.heights * self.partition.masses)[cell] * share, owner, edges.size - 1)

    def narrow_places(self) -> Features:
        """The middles of its cells, with their shortest sides."""
        panels, chart = self.partition.panels, self.partition.family.chart
        middles = 0.5 * (panels.lower + panels.upper)
        sides = (panels.upper - panels.lower) * chart.axis_stretches(middles)
        return Features(chart.points_at_coordinates(middles), 0.5 * sides.min(axis=1))

    def log_density(self, x: Floats) -> Floats:
        cell = self.partition.cell_numbers_of_points(x)
        with np.errstate(divide="ignore"):
            heights = np.log(np.where(cell >= 0, self.heights[cell], 0.0))
        return np.asarray(heights + self.partition.family.log_reference(x))


@dataclass(frozen=True)
class HistogramFit:
    """Relative frequencies on cells of equal reference mass, about n^(dim/(dim+2)) of them unless `bins` is given.

    Args:
        bins: how many cells.

    Raises:
        DiscreetError: for a number below 2.
    """

    bins: int | None = None

    def __post_init__(self) -> None:
        if self.bins is not None:
            check_count("bins", self.bins, 2, most=10**6)

    def law(self, family: ContinuousFamily, records: Floats) -> HistogramLaw:
        bins = math.ceil(2.0 * len(records) ** (family.dim / (family.dim + 2)))
        partition = family.cells(bins if self.bins is None else self.bins)
        cell = partition.cell_numbers_of_points(records)
        if (cell < 0).any():
            first = int(np.argmax(cell < 0))
            raise DiscreetError(f"records[{first}] = {format_point(records[first])} is outside the space of {family!r}")
        heights = np.bincount(cell, minlength=len(partition)) / len(records) / partition.masses
        share = least_reference_share_to_mix_in(float(heights.min()), float(heights.max()), family)
        return HistogramLaw(partition, (1.0 - share) * heights + share)


@dataclass(frozen=True)
class KernelFit:
    """One kernel at every record; `bandwidth` is the family's scale in a mixture family, else Scott's.

    If the estimate is not a member by its parameters, it is clipped to the band: the nearest member. A band that serves everybody does not
    clip.

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
        mixtures = mixture_family_or_none(family)
        if mixtures is not None:
            width = mixtures.scale if self.bandwidth is None else float(self.bandwidth)
            return clip_to_member(
                family, Mixture(weights, pull_records_inside_radius(mixtures, records), width, kernel=mixtures.kernel)
            )
        spread = float(np.mean(np.std(records, axis=0))) or 1.0
        scott = spread * len(records) ** (-1.0 / (family.dim + 4))
        width = scott if self.bandwidth is None else float(self.bandwidth)
        return clip_to_member(family, Mixture(weights, records, width))


@dataclass(frozen=True)
class MixtureFit:
    """Maximum-likelihood weights over at most `components` centres among the records, by expectation-maximisation.

    Args:
        components: the largest number of centres.
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
        mixtures = mixture_family_or_none(family)
        if mixtures is None:
            raise DiscreetError(f"MixtureFit needs a family of mixtures, not {family!r}; use HistogramFit or KernelFit")
        points = pull_records_inside_radius(mixtures, records)
        # every m-th along the first axis: spread over the data
        sorted_points = points[np.argsort(points[:, 0], kind="stable")]
        positions = np.linspace(0, len(sorted_points) - 1, min(len(sorted_points), self.components))
        centres = np.unique(sorted_points[np.round(positions).astype(int)], axis=0)
        scales = np.full(len(centres), mixtures.scale)
        exponents = mixtures.kernel.log_kernel_relative_to_centre(records, centres, scales)
        likelihood = np.exp(exponents - exponents.max(axis=0))  # (centres, records)
        weights = np.full(len(centres), 1.0 / len(centres))
        for _ in range(self.steps):  # each step increases the likelihood, which is concave in the weights
            weights = weights * np.mean(likelihood / (weights @ likelihood), axis=1)
        return Mixture(weights, centres, mixtures.scale, kernel=mixtures.kernel)


def mixture_family_or_none(family: object) -> MixtureFamily | None:
    """The family itself if its members are mixtures of one kernel, else None."""
    return family if hasattr(family, "kernel") and hasattr(family, "radius") else None  # type: ignore[return-value]


def pull_records_inside_radius(family: MixtureFamily, records: Floats) -> Floats:
    """Records moved along their rays until they are within the family's radius of the origin."""
    norms = family.kernel.norm_of_points(records)
    factor = np.divide(family.radius, norms, out=np.ones_like(norms), where=norms > family.radius)
    return np.asarray(records * factor[:, None])


def least_reference_share_to_mix_in(smallest: float, largest: float, family: ContinuousFamily) -> float:
    """The smallest share with lower <= (1 - share) p/h + share <= upper for the served bounds, for p/h between smallest and largest."""
    lower, upper = family.served_bounds.lower, family.served_bounds.upper
    from_above = (largest - upper) / (largest - 1.0) if largest > upper else 0.0
    from_below = (lower - smallest) / (1.0 - smallest) if smallest < lower else 0.0
    return max(from_above, from_below)


class LineCells(CellDomain):
    """The cells of a partition of a line. Numbers are those of the cells, which need not go up along the line.

    Args:
        partition: that of a continuous family in one dimension.
    """

    def __init__(self, partition: CellPartition) -> None:
        self._partition = partition
        self.order: Integers = np.argsort(partition.panels.lower[:, 0])

    @classmethod
    def of_sampler(cls, sampler: Any) -> LineCells:
        """The cells by which a sampler releases on a line; any other sampler is an error."""
        partition = getattr(sampler.carrier, "partition", None)
        if partition is None or partition.family.dim != 1:
            raise DiscreetError(
                f"{sampler!r} does not release by the cells of a line, as a column of numbers needs; release its clients "
                "one by one, sampler.release(family.law(records=...))"
            )
        return cls(partition)

    def __repr__(self) -> str:
        return f"LineCells(<{self.size:,} cells of {self._partition.family!r}>)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LineCells):
            return False
        return np.array_equal(self.order, other.order) and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((LineCells, self.edges.tobytes()))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self._partition)

    @property
    def first_and_last_cell(self) -> tuple[int, int]:
        """The numbers of the first cell and of the last one along the line."""
        return int(self.order[0]), int(self.order[-1])

    @cached_property
    def masses(self) -> Floats:
        """The reference masses of the cells along the line."""
        return np.asarray(self._partition.masses[self.order])

    def share_of_cells_below_values(self, positions: Integers, values: Floats) -> Floats:
        """The share of the reference in each of these cells along the line that lies below a value: 0 and 1 past its ends."""
        family, cells = self._partition.family, self._partition.panels[self.order[positions]]
        points = np.clip(values, self.edges[positions], self.edges[positions + 1])[:, None]
        t = np.clip(family.chart.coordinates_of_points(points), cells.lower, cells.upper)
        below, above = (
            family.nodes_of_panels(part, ORDER[1]).masses.sum(axis=1)
            for part in (Panels(cells.lower, t), Panels(t, cells.upper))
        )
        return np.asarray(np.divide(below, below + above, out=np.zeros_like(below), where=below + above > 0.0))

    @cached_property
    def edges(self) -> Floats:
        """The size + 1 ends of the cells along the line."""
        panels = self._partition.panels
        starts, last = panels.lower[self.order], panels.upper[self.order[-1:]]
        with np.errstate(divide="ignore"):  # an end at infinity
            return np.asarray(self._partition.family.chart.points_at_coordinates(np.concatenate([starts, last]))[:, 0])

    @cached_property
    def names(self) -> list[str]:
        """The ends of every cell."""
        line_names = cell_names(self.edges)
        return [line_names[position] for position in np.argsort(self.order)]

    @cached_property
    def values(self) -> Floats:
        """The middles of the cells."""
        return cell_middles(self.edges)[np.argsort(self.order)]

    def cell_numbers_of_values(self, values: Floats) -> Integers:
        """The cell of each value; values lie between the ends."""
        position = np.searchsorted(self.edges[1:-1], values, side="right")  # NaN: past them all
        return np.asarray(self.order[position])

    @cached_property
    def _upper_ends_of_cells(self) -> Floats:
        """The upper end of each cell along the line; the next cell begins later where the reference has no mass in between."""
        with np.errstate(divide="ignore"):
            return np.asarray(
                self._partition.family.chart.points_at_coordinates(self._partition.panels.upper[self.order])[:, 0]
            )

    def are_in_gaps_between_cells(self, values: Floats) -> NDArray[np.bool_]:
        """Whether each value, between the ends, is in no cell, because the reference has no mass there."""
        position = np.searchsorted(self.edges[1:-1], values, side="right")
        has_gap_above = self.edges[1:] > self._upper_ends_of_cells
        return np.asarray(
            has_gap_above[position] & (values > self._upper_ends_of_cells[position]) & (values <= self.edges[-1])
        )

    def find_cells(self, values: Floats) -> Integers:
        """The cell of each value, -1 for NaN and for a value past the ends or between cells."""
        return np.where(self.are_in_gaps_between_cells(values), -1, super().find_cells(values))

    def points_at_positions_in_cells(self, numbers: Integers, place: Floats) -> Floats:
        """Points of the cells; `place` in [0, 1) is the position in each, in the family's coordinate."""
        panels = self._partition.panels
        low, high = panels.lower[numbers, 0], panels.upper[numbers, 0]
        t = low + (high - low) * (_END + (1.0 - 2.0 * _END) * place)
        return np.asarray(self._partition.family.chart.points_at_coordinates(t[:, None])[:, 0])

    @property
    def terms(self) -> NoReturn:
        """Raises an error: an agreement states the family and its atoms instead."""
        raise DiscreetError("cells of a family cannot stand in an agreement; agree on the family")
