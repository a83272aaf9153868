"""A designed reference for `DensityBand`: the best floor for example clients on a line, on the cells of a continuous family.

**On cells.** Cut the interval into cells. Every epsilon-LDP sampler on the line is one on the cells, and D_f can only be smaller there (data
processing), so the certified bound of T1 (`discreet.design._floors`) for the examples' laws on cells holds for every sampler on the line and
for the examples as they are. Conversely let m be a floor on the cells, h the density that is even inside each cell with the masses m/|m|, and
alpha = (1/|m| - 1)/(e^eps - 1). Q* of the band 0 <= p/h <= 1/alpha has the floor |m| h, whose cells have the masses m. A client that is
even inside cells has the same p/h all over a cell, hence clip(p/h) is even there too: its output on the line is that on the cells,
with the same divergence. So the design's `value` is what its own sampler costs the examples' histograms, and `value` and `bound`
are as close as on outcomes.

**Masses.** The bound holds for the examples only if their masses on the cells are right. A mixture, a table, a `BoundedDensity` and
a scipy distribution with a checked distribution function enclose them (`discreet.families._interval_masses`). The certificate then holds for
every law within the enclosures. Of a bare function nothing is known between the points that it was asked about. Its masses are integrals with
an estimated error, so `bound` is an estimate too, `certified` is False, and there is no certificate.

The band claims nothing about clients (`everybody=True`): whoever leaves it is served by its projection all the same, epsilon-LDP whatever
it holds. `output` describes a density by its own shape; `sampler` releases by the design's own cells, so that a client of which only a
list of values is known is served by the design on cells itself, and `worst` is what it can lose. That is over every law that is even
inside cells: over all laws on a line every sampler has the largest worst case there is (`discreet._worst_case`), which is what
`sampler.risk` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet._quadrature import Panels
from discreet.design._certificate import DesignCertificate
from discreet.design._examples import Floats
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_count
from discreet.families import ContinuousFamily, DensityBand, Simplex
from discreet.families._charts import Cartesian, Identity
from discreet.families._clients import unseen_error
from discreet.families._densities import Tabulated, as_density
from discreet.families._interval_masses import IntervalMasses
from discreet.families._seen import panel_masses, warn_of_coarse_masses
from discreet.mechanisms import Cells, OptimalSampler
from discreet.tradeoff import Risk

if TYPE_CHECKING:
    from discreet.design._designed import Design

DESIGN_CELLS = 128
LARGEST_CELLS = 4096
_NEAR_ZERO = 1e-100  # where a line that begins a little below f(0) touches f
_LEAST_OF_HIGH = 1e-6
_UNTOLD = 1e-250  # more than masses that count as none have together
_LARGEST_EXPONENT = 700.0
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
        estimated: the places of examples that are bare functions, or other densities without a distribution function: `bound` is an
            estimate where there are any.
    """

    family: DensityBand
    sampler: OptimalSampler[DensityBand]
    edges: Floats
    on_cells: Design
    estimated: tuple[int, ...] = ()

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
    def is_certified(self) -> bool:
        """Whether `bound` is proved: the masses of every example on the cells are enclosed, and the proof pays for the width."""
        return not self.estimated

    @property
    def bound(self) -> float:
        """What they lose at least with any epsilon-LDP sampler on the line, even or not; an ESTIMATE of that unless `certified`."""
        return self.on_cells.bound

    @property
    def certificate(self) -> DesignCertificate:
        """The proof of the bound; refused where that is an estimate."""
        if not self.is_certified:
            raise DiscreetError(
                f"there is no certificate: clients[{self.estimated[0]}] is known by its values alone, so that its masses on the cells "
                "and the bound are estimates; give a scipy.stats distribution, a Mixture or a Tabulated, or say more of it with "
                "BoundedDensity(density, cdf=..., error=...) or BoundedDensity(density, lipschitz=...)"
            )
        return self.on_cells.certificate

    def worst(self, divergence: str | FDivergence) -> Risk:
        """The exact worst case over every law that is even inside cells, members of the band or not."""
        return self.on_cells.worst(divergence)

    def __repr__(self) -> str:
        low, high = self.edges[[0, -1]]
        on_cells = repr(self.on_cells)
        if not self.is_certified:
            on_cells = on_cells.replace("no sampler below", "an estimate, not certified, of what no sampler is below:")
        return f"LineDesign(<{self.edges.size - 1} cells of {low:g} to {high:g}>, {on_cells})"


def line_design(
    family: ContinuousFamily, clients: Any, weights: Any, cells: int | None, designed: Callable[[Simplex, Any], Design]
) -> LineDesign:
    """The design on the cells of a family on an interval, by what `designed` finds for laws on them."""
    edges = edges_of(
        family, DESIGN_CELLS if cells is None else check_count("cells", cells, least=2, most=LARGEST_CELLS)
    )
    given = cell_laws(clients, edges)
    found = designed(Simplex(edges.size - 1), given.laws)
    if given.enclosed is not None and not given.estimated:
        found = _certify_enclosures(found, given.laws, given.enclosed, weights)
    mu = np.broadcast_to(found.family.reference, edges.size - 1)
    table = Tabulated(edges, mu / np.diff(edges))
    band = DensityBand(table, lower=0.0, upper=found.family.bounds.upper, everybody=True)
    sampler = OptimalSampler(band, epsilon=found.epsilon, how=own_cells(mu))
    return LineDesign(band, sampler, edges, found, given.estimated)


def _certify_enclosures(found: Design, laws: Floats, enclosed: tuple[Floats, Floats], weights: Any) -> Design:
    """The design with a bound that holds for every law within the enclosures, and its certificate."""
    examples, least, most = found.certificate.examples, *enclosed
    if found.over == "worst":  # which is no less than any mean of the clients, so any choice of them gives a bound
        who = np.array([int(np.argmin(np.abs(laws - law).max(axis=1))) for law in examples.dense()])
    else:
        who = np.arange(len(laws)) if weights is None else np.flatnonzero(np.asarray(weights, dtype=np.float64) > 0.0)
    entry = who[examples.client], examples.seen[examples.outcome]
    hardly = most[who]  # a copy
    hardly[examples.client, entry[1]] = 0.0
    f, growth = found.divergence, float(examples.size) + math.exp(min(found.epsilon, _LARGEST_EXPONENT))
    fall = max(f.at_zero - float(f.f(np.array(_NEAR_ZERO))), 0.0)
    lost = 2.0 * growth * fall + _UNTOLD if hardly.any() else 0.0
    certificate = found.certificate.within(least[entry], most[entry], lost)
    bound = min(found.bound, max(certificate.lower_bound(), 0.0))
    return replace(found, bound=bound, certificate=certificate)


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


@dataclass(frozen=True, eq=False)
class CellLaws:
    """Examples on cells (n, k), numbers between which the masses of each are, and which of them are estimates instead."""

    laws: Any
    enclosed: tuple[Floats, Floats] | None = None
    estimated: tuple[int, ...] = ()


def cell_laws(clients: Any, edges: Floats) -> CellLaws:
    """Clients as laws on the cells: an array of masses (n, k) as it is, a list one by one, each a density or its records."""
    if clients is None:
        raise DiscreetError(
            "clients is missing; give public examples: a list of densities or of arrays of points, or an array (n, cells) of masses"
        )
    if hasattr(clients, "tocsr") or (isinstance(clients, np.ndarray) and clients.ndim == 2):
        return CellLaws(clients)
    if not isinstance(clients, (list, tuple)):
        raise DiscreetError(
            f"clients = {type(clients).__name__} is not a list of densities or of arrays of points, nor an array (n, {edges.size - 1}) of "
            "masses; put a single client into a list"
        )
    if not clients:
        raise DiscreetError("clients is an empty list; give at least one example")
    found = [
        _of_points(one, f"clients[{place}]", edges)
        if isinstance(one, (list, tuple, np.ndarray))
        else _of_density(one, f"clients[{place}]", edges)
        for place, one in enumerate(clients)
    ]
    mass, low, high = (np.stack([getattr(one, side) for one in found]) for side in ("mass", "low", "high"))
    laws = np.maximum(mass, _LEAST_OF_HIGH * high)  # so that what counts as none has next to none
    laws /= laws.sum(axis=1, keepdims=True)
    return CellLaws(laws, (low, high), tuple(place for place, one in enumerate(found) if not one.proved))


def _of_points(points: Any, name: str, edges: Floats) -> IntervalMasses:
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
    shares = np.histogram(found, edges)[0] / found.size
    return IntervalMasses.around(shares, 2.0**-52 * shares)


def _of_density(client: Any, name: str, edges: Floats) -> IntervalMasses:
    """Shares of the cells in what a density has on the interval: enclosed where it knows its distribution function, else estimated."""
    density = as_density(client, 1, name)
    known: IntervalMasses | None = density.interval_masses(edges) if hasattr(density, "interval_masses") else None
    if known is not None and known.enough:
        return known.as_shares()
    plain = density.plain_masses(edges) if hasattr(density, "plain_masses") else None
    if plain is not None and plain.sum() > 0.0:
        return IntervalMasses.from_estimate(plain / plain.sum())
    panels = Panels.from_edges([edges])
    seen = panel_masses(density, panels, Cartesian((Identity(),), (edges,), (edges,)))
    if seen is None:
        raise unseen_error(name)
    warn_of_coarse_masses(name, seen.error)
    return IntervalMasses.from_estimate(seen.masses / seen.masses.sum())
