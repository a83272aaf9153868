"""Many clients at once: one set of nodes for all of them, and on a line every client's own cuts in it.

p/h is known on the shared Gauss-Legendre nodes, on which it is nearly a polynomial. On a line the nodes of the pieces between a client's
kinks take their values from it, without another look at its density; clients have different numbers of pieces, and the arrays are
padded with nodes of mass zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet._quadrature import ORDER, errors_on_unit_cube, gauss_rule
from discreet.families._clients import check_masses, largest_log_ratios, log_ratios
from discreet.families._continuous import ContinuousFamily, Nodes
from discreet.families._densities import LogDensity
from discreet.families._seen import BAND_SLACK
from discreet.mechanisms._continuous._kinks import kink_levels, legendre_values, line_segments, to_coefficients
from discreet.mechanisms._continuous._output_law import OutputLaw, row_blocks
from discreet.mechanisms._continuous._problem import OutputProblem
from discreet.projection._vectorised import improve_slopes

Floats = NDArray[np.float64]

SHARED_SPLIT = {1: 1, 2: 2, 3: 1}  # how much finer the nodes are that many clients share, where they are not cut
SHARED_TOLERANCE = {1: 1e-8, 2: 1e-6, 3: 1e-4}
MOST_SHARED_NODES = {1: 1 << 12, 2: 1 << 16, 3: 1 << 18}
_SHARED_ROUNDS = 12
_LARGEST_LOG = 690.0
_SMALLEST = 1e-300
_BEYOND_NODES = 0.2


@dataclass(frozen=True, eq=False)
class ManyClients:
    """Output laws of many clients in up to three dimensions, on nodes that they share."""

    problem: OutputProblem

    def law(self, clients: Sequence[LogDensity]) -> OutputLaw:
        """The output laws of all of them."""
        nodes, log_ratio, errors = self._resolve_shared_nodes(clients)
        slack = BAND_SLACK + errors
        law = self.problem.solve(clients, True, nodes.masses.ravel(), log_ratio.reshape(len(clients), -1), slack)
        if self.problem.family.dim == 1:
            return self.problem.with_known_masses(self._cut_along_line(law, nodes, errors))
        for rows in row_blocks(*law.client_masses.shape):
            density = law.output_masses_of(rows).reshape(-1, *nodes.weights.shape) / nodes.weights
            errors[rows] += nodes.panels.errors(density, ORDER[self.problem.family.dim]).sum(axis=1)
        return self.problem.with_known_masses(replace(law, errors=errors))

    def _resolve_shared_nodes(self, clients: Sequence[LogDensity]) -> tuple[Nodes, Floats, Floats]:
        """Nodes on which every client is resolved, their log p/h there (n, panels, nodes), and what is left of errors (n,)."""
        dim, order = self.problem.family.dim, ORDER[self.problem.family.dim]
        nodes = self._shared_nodes_for(clients)
        log_ratio = log_ratios(clients, nodes)
        shift = largest_log_ratios(log_ratio)
        for _ in range(_SHARED_ROUNDS):
            errors = self._client_errors(nodes, log_ratio, shift)
            bad = errors.max(axis=0) > SHARED_TOLERANCE[dim] / len(nodes.panels)
            if not bad.any() or nodes.weights.size > MOST_SHARED_NODES[dim]:
                break
            fresh = self.problem.family.nodes_of(nodes.panels[bad].split(2), order)
            nodes = nodes[~bad].concat(fresh)
            log_ratio = np.concatenate([log_ratio[:, ~bad], log_ratios(clients, fresh)], axis=1)
        return nodes, log_ratio, np.asarray(errors.sum(axis=1))

    def _client_errors(self, nodes: Nodes, log_ratio: Floats, shift: Floats) -> Floats:
        """(n, panels) estimated errors of the clients' masses, each client's mass being one."""
        errors = np.empty(log_ratio.shape[:2])
        for rows in row_blocks(len(log_ratio), nodes.weights.size):
            density = np.exp(log_ratio[rows] - shift[rows, None, None]) * nodes.element
            mass = np.sum(density * nodes.weights, axis=(1, 2))
            check_masses(mass)
            errors[rows] = nodes.panels.errors(density, ORDER[self.problem.family.dim]) / mass[:, None]
        return errors

    def _cut_along_line(self, law: OutputLaw, nodes: Nodes, errors: Floats) -> OutputLaw:
        """Clients on an interval, once more on nodes of their own that end at their kinks."""
        constants = self.problem.constants
        shape, held = law.client_masses.shape, np.broadcast_to(law.node_masses > 0.0, law.client_masses.shape)
        ratio = np.divide(law.client_masses, law.node_masses, out=np.zeros(shape), where=held)
        ratio = ratio.reshape(-1, *nodes.weights.shape)
        slope, cut_mass = law.slope, np.ones(len(ratio))
        for _ in range(2):  # the second time the cuts are where the kinks are
            places = kink_levels(constants, slope, law.lift) * cut_mass
            found = cut_clients(self.problem.family, nodes, ratio, places[places.max(axis=1) > 0.0])
            client = found.masses * found.ratio
            cut_mass = client.sum(axis=1)
            client /= cut_mass[:, None]
            if self.problem.mixing is None:
                lower, upper = constants.b * found.masses, constants.B * found.masses
                better = improve_slopes(client, np.where(np.isfinite(slope), slope, 1.0), lower, upper)
                slope = np.where(np.isfinite(slope), better, slope)
        law = replace(law, node_masses=found.masses, client_masses=client, slope=slope)
        output = np.divide(law.output_masses, found.masses, out=np.zeros_like(client), where=found.masses > 0.0)
        return replace(law, errors=errors + found.errors(output), log_mass=law.log_mass + np.log(cut_mass))

    def _shared_nodes_for(self, clients: Sequence[LogDensity]) -> Nodes:
        """Nodes as fine as the narrowest client says it is, wherever it says so."""
        dim, panels = self.problem.family.dim, self._shared_nodes.panels
        fine, _ = self.problem.family.panels_at(panels, clients, MOST_SHARED_NODES[dim] // 2)
        return self._shared_nodes if len(fine) == len(panels) else self.problem.family.nodes_of(fine, ORDER[dim])

    @cached_property
    def _shared_nodes(self) -> Nodes:
        dim = self.problem.family.dim
        return self.problem.family.nodes_of(self.problem.family.panels.split(SHARED_SPLIT[dim]), ORDER[dim])


@dataclass(frozen=True, eq=False)
class CutClients:
    """Every client on nodes of its own (n, m), `order` to a piece: reference masses and p/h."""

    masses: Floats
    ratio: Floats
    order: int

    def errors(self, values: Floats) -> Floats:
        """(n,) estimated errors of the integrals of values (n, m) times h."""
        pieces = (self.masses * values).reshape(-1, self.order)
        found = errors_on_unit_cube(pieces / gauss_rule(self.order)[1], self.order, 1)
        return np.asarray(found.reshape(len(values), -1).sum(axis=1))


def cut_clients(family: ContinuousFamily, nodes: Nodes, ratio: Floats, levels: Floats) -> CutClients:
    """Clients with p/h = ratio (n, panels, order) on the nodes of an interval's panels, cut at their own levels (l, n)."""
    clients, panels, order = ratio.shape
    places, weights = gauss_rule(order)
    lines = ratio.reshape(-1, order)
    line, start, stop = line_segments(lines, np.repeat(levels, panels, axis=1))
    owner, panel = line // panels, line % panels
    inner = start[:, None] + (stop - start)[:, None] * places
    values = lines[line]
    cut = np.flatnonzero(stop - start < 1.0)
    values[cut] = _ratio_inside(values[cut], inner[cut])
    low, width = nodes.panels.lower[panel, 0], (nodes.panels.upper - nodes.panels.lower)[panel, 0]
    element = nodes.element[panel]
    t = (low[cut, None] + width[cut, None] * inner[cut])[..., None]
    log_reference = family.log_reference(family.chart.points(t).reshape(-1, 1)).reshape(len(cut), order)
    with np.errstate(invalid="ignore"):
        element[cut] = np.nan_to_num(np.exp(log_reference) * family.chart.jacobian(t), nan=0.0)
    masses = ((stop - start) * width)[:, None] * weights * element
    place = np.arange(len(line)) - np.searchsorted(owner, owner)  # lines are in the clients' order
    shape = (clients, int(place.max()) + 1, order)
    all_masses, all_ratios = np.zeros(shape), np.zeros(shape)
    all_masses[owner, place], all_ratios[owner, place] = masses, values
    return CutClients(all_masses.reshape(clients, -1), all_ratios.reshape(clients, -1), order)


def _ratio_inside(values: Floats, inner: Floats) -> Floats:
    """p/h at places inner (s, m) of panels on whose nodes it is values (s, order), through its logarithm."""
    logarithm = np.log(np.maximum(values, _SMALLEST))
    low, high = logarithm.min(axis=1), logarithm.max(axis=1)
    beyond = _BEYOND_NODES * (high - low)
    found = legendre_values(logarithm @ to_coefficients(values.shape[1]), inner)
    return np.exp(np.clip(found, (low - beyond)[:, None], np.minimum(high + beyond, _LARGEST_LOG)[:, None]))
