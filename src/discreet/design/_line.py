"""A designed reference for `DensityBand`: the best floor for example clients on a line, on the cells of a continuous family.

**On cells.** Cut the interval into cells. Every epsilon-LDP sampler on the line is one on the cells, and D_f can only be smaller there (data
processing), so the certified bound of T1 (`discreet.design._floors`) for the examples' laws on cells holds for every sampler on the line and
for the examples as they are. Conversely let m be a floor on the cells, h the density that is even inside each cell with the masses m/|m|, and
alpha = (1/|m| - 1)/(e^eps - 1). Q* of the band 0 <= p/h <= 1/alpha has the floor |m| h, whose cells have the masses m. A client that is
even inside cells has the same p/h all over a cell, hence clip(p/h) is even there too: its output on the line is that on the cells,
with the same divergence. So the design's `value` is what its own sampler costs the examples' histograms, and `value` and `bound`
are as close as on outcomes.

The band claims nothing about clients (`everybody=True`): whoever leaves it is served by its projection all the same, epsilon-LDP whatever
it holds. `output` describes a density by its own shape; `sampler` releases by the design's own cells, so that a client of which only a
list of values is known is served by the design on cells itself, and `worst` is what it can lose. That is over every law that is even
inside cells: over all laws on a line every sampler has the largest worst case there is (`discreet._worst_case`), which is what
`sampler.risk` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.design._certificate import Certificate
from discreet.design._examples import Floats
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_count
from discreet.families import ContinuousFamily, DensityBand, Simplex
from discreet.families._continuous import ANY
from discreet.families._densities import Tabulated, as_density
from discreet.mechanisms import Cells, OptimalSampler
from discreet.mechanisms._carriers._cells import CellCarrier
from discreet.tradeoff import Risk

if TYPE_CHECKING:
    from discreet.design._designed import Design

CELLS = 128
LARGEST_CELLS = 4096
_SAME = 1e-12  # of the interval: edges closer than that are one


@final
@dataclass(frozen=True, eq=False)
class LineDesign:
    """A designed sampler on a line: `sampler` is Q* of `family` at `epsilon`.

    Attributes:
        family: the band around the designed reference, which serves everybody.
        sampler: its optimal sampler, which releases by the design's cells.
        edges: of the cells that the examples were seen on, going up.
        on_cells: the design on the cells as outcomes.
    """

    family: DensityBand
    sampler: OptimalSampler[DensityBand]
    edges: Floats
    on_cells: Design

    @property
    def epsilon(self) -> float:
        """The budget of one release."""
        return self.on_cells.epsilon

    @property
    def divergence(self) -> FDivergence:
        """What was made small."""
        return self.on_cells.divergence

    @property
    def keep(self) -> float:
        """The share of the best worst case on the cells that was kept."""
        return self.on_cells.keep

    @property
    def examples(self) -> int:
        """How many clients it was fitted on."""
        return self.on_cells.examples

    @property
    def value(self) -> float:
        """What the examples lose with it, each even inside the cells."""
        return self.on_cells.value

    @property
    def bound(self) -> float:
        """What they lose at least with any epsilon-LDP sampler on the line, even or not."""
        return self.on_cells.bound

    @property
    def certificate(self) -> Certificate:
        """The proof of the bound."""
        return self.on_cells.certificate

    def worst(self, divergence: str | FDivergence) -> Risk:
        """The exact worst case over every law that is even inside cells, members of the band or not."""
        return self.on_cells.worst(divergence)

    def __repr__(self) -> str:
        low, high = self.edges[[0, -1]]
        return f"LineDesign(<{self.edges.size - 1} cells of {low:g} to {high:g}>, {self.on_cells!r})"


def line_design(
    family: ContinuousFamily, clients: Any, cells: int | None, designed: Callable[[Simplex, Any], Design]
) -> LineDesign:
    """The design on the cells of a family on an interval, by what `designed` finds for laws on them."""
    edges = edges_of(family, CELLS if cells is None else check_count("cells", cells, least=2, most=LARGEST_CELLS))
    found = designed(Simplex(edges.size - 1), cell_laws(clients, edges))
    mu = np.broadcast_to(found.family.reference, edges.size - 1)
    table = Tabulated(edges, mu / np.diff(edges))
    band = DensityBand(table, lower=0.0, upper=found.family.bounds.upper, everybody=True)
    sampler = OptimalSampler(band, epsilon=found.epsilon, how=own_cells(mu))
    return LineDesign(band, sampler, edges, found)


def own_cells(mu: Floats) -> Cells:
    """The cells of a table with these masses as they are: halved only where one of them is heavier than 1/2."""
    return Cells(max(2, math.floor(1.0 / float(mu.max()))))


def edges_of(family: ContinuousFamily, count: int) -> Floats:
    """The edges of at least so many cells of about equal reference mass, which cover the family's interval."""
    if family.dim != 1 or not np.isfinite(family.whole_box).all():
        raise DiscreetError(
            f"family = {family!r} is not on an interval; a design of a density is for one dimension and finite ends: "
            "DensityBand(density, box=(low, high), ...)"
        )
    partition = family.cells(count)
    (low, high), panels = family.whole_box[0], partition.panels
    inner = np.concatenate([family.chart.points(panels.lower)[:, 0], family.chart.points(panels.upper)[:, 0]])
    edges = np.unique(np.concatenate([[low, high], np.clip(inner, low, high)]))
    apart = np.append(True, np.diff(edges) > _SAME * (high - low))
    edges = edges[apart]
    edges[-1] = high
    return np.asarray(edges)


def cell_laws(clients: Any, edges: Floats) -> Any:
    """Clients as laws on the cells (n, k): an array of masses as it is, a list one by one, each a density or its records."""
    if clients is None:
        raise DiscreetError(
            "clients is missing; give public examples: a list of densities or of arrays of points, or an array (n, cells) of masses"
        )
    if hasattr(clients, "tocsr") or (isinstance(clients, np.ndarray) and clients.ndim == 2):
        return clients
    if not isinstance(clients, (list, tuple)):
        raise DiscreetError(
            f"clients = {type(clients).__name__} is not a list of densities or of arrays of points, nor an array (n, {edges.size - 1}) of "
            "masses; put a single client into a list"
        )
    if not clients:
        raise DiscreetError("clients is an empty list; give at least one example")
    records = [place for place, one in enumerate(clients) if isinstance(one, (list, tuple, np.ndarray))]
    laws = np.empty((len(clients), edges.size - 1))
    for place in records:
        laws[place] = _of_points(clients[place], f"clients[{place}]", edges)
    others = sorted(set(range(len(clients))) - set(records))
    if others:
        laws[others] = _of_densities([clients[place] for place in others], others, edges)
    return laws


def _of_points(points: Any, name: str, edges: Floats) -> Floats:
    """The relative frequencies of a client's records."""
    try:
        found = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise DiscreetError(f"{name} is neither a density nor a list of numbers") from None
    if found.ndim != 1 or not found.size:
        raise DiscreetError(f"{name} has shape {found.shape}; give the client's records, (n,) with n at least 1")
    inside = (found >= edges[0]) & (found <= edges[-1])
    if not inside.all():
        raise DiscreetError(
            f"{name} holds {found[int(np.argmin(inside))]:g}, which is not in [{edges[0]:g}, {edges[-1]:g}]; clip it, or take a wider box"
        )
    return np.histogram(found, edges)[0] / found.size


def _of_densities(clients: list[Any], places: Sequence[int], edges: Floats) -> Floats:
    """Masses on the cells, by the nodes of a reference that has one part of its mass in each."""
    size, widths = edges.size - 1, np.diff(edges)
    even = DensityBand(Tabulated(edges, 1.0 / (size * widths)), lower=0.0, upper=ANY)
    carrier = CellCarrier(even, Cells(size))
    if carrier.size != size or not math.isclose(float(carrier.reference.max()) * size, 1.0, rel_tol=1e-6):
        raise DiscreetError(f"cells = {size} are too fine to be resolved on {edges[0]:g} to {edges[-1]:g}; take fewer")
    densities = tuple(as_density(one, 1, f"clients[{place}]") for place, one in zip(places, clients, strict=True))
    try:
        return carrier.held(densities, refuse=False).rows
    except DiscreetError as error:  # which speaks of p, or of p[i]
        said = re.sub(r"^p(?:\[(\d+)\])?(?= )", lambda found: f"clients[{places[int(found[1] or 0)]}]", str(error))
        raise DiscreetError(said) from None
