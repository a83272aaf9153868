"""Continuous families {P : c1 h <= p <= c2 h} on R^dim, with h a probability density [paper, eq. (possibleDensityAssumption)].

The reference has no atoms, so it is alpha-decomposable for every alpha and the risk formula is exact for the band [paper, Thm 3.3]. If the
class contains infinitely many mutually singular distributions, every epsilon-LDP sampler has the largest possible risk [paper, Prop. 3.2],
and the constructor raises an error.

A family provides its reference as a density, as public quadrature nodes (up to `LARGEST_CHARTED` dimensions), as a partition into cells of
known mass, and as a distribution to draw from. None of these depend on any client.
"""

from __future__ import annotations

import abc
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.doors import OldName
from discreet._base.quadrature import ORDER, Panels
from discreet._base.showing import notebook_table, short_repr, with_short_repr
from discreet.errors import LENGTH, DiscreetError, ImpossibleError, check_count
from discreet.families._densities import FunctionDensity, LogDensity, as_points, point_text, shape_of_points
from discreet.families._fits import Fit, HistogramFit, KernelFit, MixtureFit, as_mixture_family
from discreet.families._integration import Chart, features_of, split_at
from discreet.families._laws import BandFamily, Bounds, describe_bounds
from discreet.families._membership import as_clients, look_at_clients, seen_outsiders

Floats = NDArray[np.float64]

ANY = 2.0**900  # an upper bound on p/h that is no constraint; a power of two, so that products are exact
MOST_CELLS = 1 << 20
LARGEST_CHARTED = 3
_CELLS_IN_A_ROUND = 1 << 22
_MOST_NODES = 1 << 20
_FAR = 1e150  # stands for infinity, in maps that square


@with_short_repr
@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature nodes of every panel, and the reference there: x (n, m, dim), weights and element (n, m).

    `element` is h J, the reference's density in the chart's coordinates; `weights * element` are reference masses.
    """

    panels: Panels
    x: Floats
    log_reference: Floats
    weights: Floats
    element: Floats

    @property
    def masses(self) -> Floats:
        """(n, m) reference masses; they sum to one up to the error of the quadrature."""
        return self.weights * self.element

    def __getitem__(self, which: NDArray[np.bool_]) -> Nodes:
        return Nodes(
            self.panels[which], self.x[which], self.log_reference[which], self.weights[which], self.element[which]
        )

    def concat(self, other: Nodes) -> Nodes:
        """These nodes and then the others."""
        return Nodes(
            self.panels.concat(other.panels),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.log_reference, other.log_reference]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.element, other.element]),
        )


class ContinuousFamily(BandFamily, abc.ABC):
    """A band around an atomless reference density h on R^dim. Subclasses define h.

    Attributes:
        dim: the dimension of the space.
        bounds: the smallest and the largest p/h.
        box: the space, a (low, high) for each axis; None for all of R^dim.
        any_client: whether the bounds only choose the box and make no claim about clients.
    """

    dim: int
    box: list[tuple[float, float]] | None

    @property
    def space(self) -> tuple[Floats, Floats]:
        """The lowest and the highest corner (dim,) of the members' space; infinite without a box."""
        low, high = np.array(self.whole_box).T
        return low, high

    @property
    def whole_box(self) -> list[tuple[float, float]]:
        """The space, with infinite ends where there is no box."""
        return [(-math.inf, math.inf)] * self.dim if self.box is None else self.box

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of p/h for the clients that risks hold for: the members, or all densities."""
        return Bounds(0.0, ANY) if self.any_client else self.bounds

    @property
    def decomposable(self) -> bool:
        """True: a reference without atoms can be cut into sets of any mass [paper, App. C.4.2]."""
        return True

    @property
    @abc.abstractmethod
    def chart(self) -> Chart:
        """Coordinates that suit the reference (dimension at most `LARGEST_CHARTED`)."""

    @abc.abstractmethod
    def log_reference(self, x: Floats) -> Floats:
        """log h at points (n, dim), h normalised; minus infinity outside the family's box."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent points (count, dim) of the reference."""

    @property
    def given_densities(self) -> tuple[Any, ...]:
        """The density from which the reference was made; empty if it follows from parameters and is smooth."""
        return ()

    def certainly_contains(self, p: Any) -> bool:
        """Whether p is in the band by its parameters alone, without evaluations."""
        return False

    def contains(self, p: Any) -> bool:
        """Whether p obeys the band: by its parameters, or else as far as values at the public nodes tell.

        Nodes are finer where p reports narrow features. A bare function is known only where it was evaluated, so True proves nothing about
        it, and no guarantee rests on it. For a family of mixtures the test is about the band, which is larger.

        Args:
            p: a density, or a list of them.

        Returns:
            Whether none of them is outside.

        Raises:
            DiscreetError: for an argument that is not a density, or a density without mass in the family's space.
        """
        clients = as_clients(p, self)
        return seen_outsiders(self, clients, look_at_clients(self, clients)) is None

    def law(
        self,
        *,
        records: ArrayLike | None = None,
        fit: Fit | None = None,
        log_density: Callable[[Any], Any] | None = None,
    ) -> LogDensity:
        """A client's distribution: a member of the family fitted to records, or the distribution whose density has this logarithm.

        In hundreds of dimensions a density underflows to 0 everywhere, but its logarithm does not.

        Args:
            records: the client's data, (n,) in one dimension or (n, dim).
            fit: how records become a density; `discreet.families._fits` compares the fits.
            log_density: a function from points, (n,) or (n, dim), to (n,) numbers, up to a constant; minus infinity where the density is 0.

        Returns:
            A density for `output`, `weights` and `release`.

        Raises:
            DiscreetError: for no records, records outside the family's space, or both arguments at once.
        """
        if (records is None) == (log_density is None):
            raise DiscreetError(
                "pass either records= (what the client saw) or log_density= (a function), not both and not neither"
            )
        if log_density is not None:
            if fit is not None or not callable(log_density):
                raise DiscreetError("log_density is a function from points (n, dim) to (n,) numbers, and takes no fit=")
            return FunctionDensity(log_density, self.dim, "log_density", logarithmic=True)
        assert records is not None
        points = as_points(records, self.dim, "records", finite=False)
        if not len(points):
            raise DiscreetError(
                "records is empty: a client without records has no law; leave it out, or let it release from the reference"
            )
        outside = np.asarray(~(np.abs(points) <= LENGTH.high).all(axis=1))
        outside[~outside] = ~np.isfinite(self.log_reference(points[~outside]))
        if outside.any():
            first = int(np.argmax(outside))
            raise DiscreetError(f"records[{first}] = {point_text(points[first])} is outside the space of {self!r}")
        if fit is None:
            few = self.dim <= LARGEST_CHARTED
            fit = MixtureFit() if as_mixture_family(self) else HistogramFit() if few else KernelFit()
        if not _has_fit_law(fit):
            raise DiscreetError(f"fit = {fit!r} is not a fit; use HistogramFit(), KernelFit() or MixtureFit()")
        return fit.law(self, points)

    def _repr_html_(self) -> str:
        where = f"all of R^{self.dim}" if self.box is None else short_repr(self.box)
        said, rows = describe_bounds(self.bounds, "p/h", any_client=self.any_client)
        return notebook_table(f"{self!r}: {said}", [("space", where), *rows])

    def pdf(self, x: ArrayLike) -> Floats:
        """The reference density h at points (n,) in one dimension or (n, dim)."""
        return np.exp(self.log_reference(as_points(x, self.dim))).reshape(shape_of_points(x, self.dim))

    @cached_property
    def panels(self) -> Panels:
        """Public panels on which the reference is resolved."""
        return Panels.from_edges(self.chart.edges)

    @cached_property
    def nodes(self) -> Nodes:
        """The public nodes at which every client is evaluated first."""
        return self.nodes_of(self.panels, ORDER[self.dim])

    def nodes_of(self, panels: Panels, order: int) -> Nodes:
        """Nodes of given panels."""
        t, weights = panels.nodes(order)
        x = self.chart.points(t)
        log_reference = self.log_reference(x.reshape(-1, self.dim)).reshape(weights.shape)
        with np.errstate(invalid="ignore"):  # a rational map has infinite slope at infinity
            element = np.exp(log_reference) * self.chart.jacobian(t)
        return Nodes(panels, x, log_reference, weights, np.nan_to_num(element, nan=0.0))

    def panels_at(self, panels: Panels, clients: Sequence[Any], most: int) -> tuple[Panels, NDArray[np.intp]]:
        """Panels refined near the narrow places that clients report, so that nodes cannot miss them, and the parent of each panel.

        There are at most `most` nodes; with more features than that, some may be missed.
        """
        order = ORDER[self.dim]
        features = features_of(clients, self.dim)
        return split_at(features, panels, self.chart, widest=0.5 * order, most=most // order**self.dim)

    def cells(self, count: int) -> CellPartition:
        """A partition into at least `count` cells of about equal reference mass; the same for all clients."""
        count = check_count("cells", count, most=MOST_CELLS)
        if count not in self._partitions:
            self._partitions[count] = CellPartition.of(self, count)
        return self._partitions[count]

    @cached_property
    def _partitions(self) -> dict[int, CellPartition]:
        return {}

    given = OldName("given_densities")


def _has_fit_law(fit: Any) -> bool:
    """Whether it has a method `law(family, records)`; families and samplers have other methods of that name."""
    method = getattr(fit, "law", None)
    return callable(method) and list(inspect.signature(method).parameters) == ["family", "records"]


@with_short_repr
@dataclass(frozen=True, eq=False)
class CellPartition:
    """Cells: boxes of coordinates that cover the family's space, with their reference masses (which sum to one).

    A point of a cell is drawn from h restricted to it, by rejection from uniform coordinates below `ceilings`. This is exact for the built-in
    families, where h J has its largest value at a corner. For a density given as a function the ceiling is the largest value seen. Privacy
    depends on neither: the point depends on the client through the cell alone.
    """

    family: ContinuousFamily
    panels: Panels
    masses: Floats
    ceilings: Floats

    @classmethod
    def of(cls, family: ContinuousFamily, count: int) -> CellPartition:
        """Cells halved along their longest side until none exceeds mass 1/count; cells of mass 0 stay only if the family serves everybody."""
        panels = Panels.from_edges(family.chart.breaks)
        masses = _panel_masses(family, panels)
        while True:
            heavy = masses > masses.sum() / count * (1.0 + 1e-9)
            if not heavy.any() or len(panels) > 64 * count:
                break
            halves = panels[heavy].halve(_longest_side(family, panels[heavy]))
            panels = panels[~heavy].concat(halves)
            masses = np.concatenate([masses[~heavy], _panel_masses(family, halves)])
        held = masses > (0.0 if family.any_client else 1e-15 * masses.max())
        panels, masses = panels[held], masses[held]
        return cls(family, panels, masses / masses.sum(), _density_ceilings(family, panels))

    def __len__(self) -> int:
        return len(self.panels)

    def nodes(self, order: int) -> Nodes:
        """Nodes in every cell, for a client's mass there."""
        return self.family.nodes_of(self.panels, order)

    def points(self, numbers: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """One point of the reference from each of the numbered cells: (n, dim)."""
        low, width = self.panels.lower[numbers], (self.panels.upper - self.panels.lower)[numbers]
        ceilings, chart, dim = self.ceilings[numbers], self.family.chart, self.family.dim
        t = low + width * rng.random((len(numbers), dim))
        waiting = np.arange(len(numbers))
        for _ in range(1000):
            element = np.exp(self.family.log_reference(chart.points(t[waiting]))) * chart.jacobian(t[waiting])
            waiting = waiting[rng.random(len(waiting)) * ceilings[waiting] > element]
            if not len(waiting):
                break
            t[waiting] = low[waiting] + width[waiting] * rng.random((len(waiting), dim))
        return chart.points(t)

    def pieces_between(self, edges: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """The cells of a line cut at edges: the cell of each piece, its interval between the edges, and its share of the cell."""
        key = edges.tobytes()
        if key not in self._pieces:
            self._pieces.clear()  # usually one list of edges is used many times
            self._pieces[key] = self._cut_at_edges(edges)
        return self._pieces[key]

    @cached_property
    def _pieces(self) -> dict[bytes, tuple[NDArray[np.intp], NDArray[np.intp], Floats]]:
        return {}

    def _cut_at_edges(self, edges: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        order = np.argsort(self.panels.lower[:, 0])
        start, stop = self.panels.lower[order, 0], self.panels.upper[order, 0]
        places = self.family.chart.coordinates(np.clip(edges, -_FAR, _FAR)[:, None])[:, 0]
        grid = np.unique(np.concatenate([start, stop, np.clip(places, start[0], stop[-1])]))
        middle = 0.5 * (grid[:-1] + grid[1:])
        cell = np.clip(np.searchsorted(start, middle, side="right") - 1, 0, start.size - 1)
        mass = self.family.nodes_of(Panels(grid[:-1, None], grid[1:, None]), ORDER[1]).masses.sum(axis=1)
        mass[middle >= stop[cell]] = 0.0  # between cells, where the reference has no mass
        whole = np.bincount(cell, mass, minlength=start.size)[cell]
        share = np.divide(mass, whole, out=np.zeros_like(mass), where=whole > 0.0)
        falling = places[-1] < places[0]
        owner = np.searchsorted(places[::-1] if falling else places, middle, side="right") - 1
        inside = (owner >= 0) & (owner < edges.size - 1)
        owner = edges.size - 2 - owner if falling else owner
        return order[cell[inside]], owner[inside], share[inside]

    def numbers(self, x: Floats) -> NDArray[np.int64]:
        """The cell of each point (n, dim); -1 outside all cells."""
        t = self.family.chart.coordinates(x)
        found = np.full(len(x), -1, dtype=np.int64)
        step = max(1, _CELLS_IN_A_ROUND // max(len(self.panels), 1))
        for rows in (slice(start, start + step) for start in range(0, len(x), step)):
            inside = np.all((t[rows, None, :] >= self.panels.lower) & (t[rows, None, :] <= self.panels.upper), axis=2)
            found[rows] = np.where(inside.any(axis=1), np.argmax(inside, axis=1), -1)
        return found


def _panel_masses(family: ContinuousFamily, panels: Panels) -> Floats:
    """(n,) reference masses of panels, with nodes where the reference reports narrow features."""
    fine, owner = family.panels_at(panels, family.given_densities, _MOST_NODES)
    masses = family.nodes_of(fine, ORDER[family.dim]).masses.sum(axis=1)
    return np.asarray(np.bincount(owner, masses, minlength=len(panels)), dtype=np.float64)


def _longest_side(family: ContinuousFamily, panels: Panels) -> NDArray[np.intp]:
    """The axis along which each cell is longest in the space itself, not in coordinates."""
    middle, half = 0.5 * (panels.lower + panels.upper), 0.45 * (panels.upper - panels.lower)
    lengths = []
    for axis in range(panels.dim):
        step = half * (np.arange(panels.dim) == axis)
        ends = family.chart.points(middle + step) - family.chart.points(middle - step)
        lengths.append(np.sqrt(np.square(ends).sum(axis=1)))
    return np.asarray(np.argmax(lengths, axis=0))


def _density_ceilings(family: ContinuousFamily, panels: Panels) -> Floats:
    """The largest h J seen at the corners and nodes of each cell, a little above rounding."""
    dim = panels.dim
    corners = np.stack(np.meshgrid(*[(1e-9, 1.0 - 1e-9)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    t = panels.lower[:, None, :] + (panels.upper - panels.lower)[:, None, :] * corners
    x = family.chart.points(t)
    at_corners = np.exp(family.log_reference(x.reshape(-1, dim))).reshape(t.shape[:2]) * family.chart.jacobian(t)
    inside = family.nodes_of(panels, 3).element
    return np.asarray(np.maximum(at_corners.max(axis=1), inside.max(axis=1)) * (1.0 + 1e-6))


def check_charted(dim: int) -> None:
    """Reject a dimension for which there are no coordinates."""
    if dim > LARGEST_CHARTED:
        raise DiscreetError(f"coordinates are for dimension at most {LARGEST_CHARTED}; use Points in dimension {dim}")


def singular_error(what: str, fix: str) -> ImpossibleError:
    """The error for a class on which every sampler has the largest risk."""
    return ImpossibleError(
        f"{what}: the class then holds infinitely many laws that are (or come arbitrarily close to being) mutually singular; "
        "for such a class every epsilon-LDP sampler has the largest possible worst-case divergence, M_f = f(0) + f*(0), at every "
        f"epsilon [paper, Prop. 3.2]; {fix}"
    )


def as_box(box: Any, dim: int) -> list[tuple[float, float]]:
    """One (low, high) for each axis, from such a list or from one pair for all axes; infinite ends are allowed."""
    try:
        pairs = np.asarray(box, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"box = {box!r} is not a list of (low, high) pairs") from None
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (dim, 1))
    if pairs.shape != (dim, 2):
        raise DiscreetError(f"box has shape {pairs.shape}; give one (low, high) for each of the {dim} axes")
    if not (pairs[:, 0] < pairs[:, 1]).all():
        raise DiscreetError(f"box = {pairs.tolist()}: every low must be less than its high")
    ends = pairs[np.isfinite(pairs)]
    with np.errstate(over="ignore"):
        if (np.abs(ends) > LENGTH.high).any() or (pairs[:, 1] - pairs[:, 0] < LENGTH.low).any():
            raise DiscreetError(f"box = {pairs.tolist()}: ends and sides are not in {LENGTH}; measure in other units")
    return [(float(low), float(high)) for low, high in pairs]
