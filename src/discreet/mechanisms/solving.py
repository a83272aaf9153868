"""From clients' densities to their output laws: nodes where p and h are evaluated once, and the exact finite problem on them.

One client in up to three dimensions gets panels of its own (`discreet.mechanisms.refining`). Many clients share one set of nodes;
on a line each has its own cuts in it (`discreet.mechanisms.batches`). Above three dimensions the nodes are points drawn from h by a
public generator, each of mass 1/N.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.errors import OutsideFamilyWarning
from discreet.families import FiniteFamily
from discreet.families.continuous import LARGEST_CHARTED, ContinuousFamily, Nodes
from discreet.families.densities import LogDensity
from discreet.families.kinds import check_family
from discreet.labelled import LawLike
from discreet.mechanisms.batches import cut_clients
from discreet.mechanisms.clients import (
    Seen,
    as_clients,
    check_masses,
    is_many,
    largest_log_ratios,
    log_ratios,
    luck,
    tell_outside,
    tell_unresolved,
)
from discreet.mechanisms.outputs import OutputLaw, blocks
from discreet.mechanisms.refining import Refiner, levels
from discreet.projection import Affine, Box
from discreet.projection.vectorised import improved
from discreet.quadrature import ORDER
from discreet.tradeoff import Constants

Floats = NDArray[np.float64]

SHARED_SPLIT = {1: 1, 2: 2, 3: 1}  # how much finer the nodes are that many clients share, where they are not cut
SHARED_TOLERANCE = {1: 1e-8, 2: 1e-6, 3: 1e-4}
MOST_SHARED_NODES = {1: 1 << 12, 2: 1 << 16, 3: 1 << 18}
MONTE_CARLO_NODES = 1 << 16
_SHARED_ROUNDS = 12
_BAND_SLACK = 1e-6
_NO_FLOOR = 1e-290


@dataclass(frozen=True, eq=False)
class OutputSolver:
    """Finds the output laws of one sampler: a family, the constants of its box, and whether it projects or mixes."""

    family: ContinuousFamily
    constants: Constants
    epsilon: float
    mixing: Affine | None

    def law(self, p: Any) -> OutputLaw:
        """The output law of a density, or of a list of them on shared nodes."""
        many = is_many(p)
        clients = as_clients(p, self.family)
        if self.family.dim > LARGEST_CHARTED:
            return self._on_points(clients, many)
        return self._on_shared_nodes(clients) if many else self._on_own_panels(clients[0])

    # one client, panels of its own

    def _on_own_panels(self, p: LogDensity) -> OutputLaw:
        refined = Refiner(self.family, self.constants, self.epsilon, self.mixing).refined(p)
        found = refined.solution
        log_mass = np.array([refined.log_scale + math.log(found.mass)])
        with np.errstate(divide="ignore"):
            inside = np.log(found.ratio[found.masses > 0.0])
        seen = Seen(log_mass, log_mass + inside.min(), log_mass + inside.max(), _BAND_SLACK + refined.error)
        tell_outside(self.family, [p], seen, self.mixing is not None)
        return self._weighed(
            OutputLaw(
                self.family, self.constants, self.mixing, (p,), False, found.masses, (found.masses * found.ratio)[None, :],
                log_mass, np.array([found.slope]), np.array([found.lift]), np.array([refined.error]),
            )
        )  # fmt: skip

    def _weighed(self, law: OutputLaw) -> OutputLaw:
        """The law with its errors as the clients themselves would have them, where they know their mass."""
        errors, known = tell_unresolved(self.family, law.clients, law.log_mass, law.errors)
        return replace(law, errors=errors, mass_known=known)

    # many clients, shared nodes

    def _on_shared_nodes(self, clients: Sequence[LogDensity]) -> OutputLaw:
        nodes, log_ratio, errors = self._shared(clients)
        slack = _BAND_SLACK + errors
        law = self._solved(clients, True, nodes.masses.ravel(), log_ratio.reshape(len(clients), -1), slack)
        if self.family.dim == 1:
            return self._weighed(self._cut_along_line(law, nodes, errors))
        for rows in blocks(*law.client_masses.shape):
            density = law.output_masses_of(rows).reshape(-1, *nodes.weights.shape) / nodes.weights
            errors[rows] += nodes.panels.errors(density, ORDER[self.family.dim]).sum(axis=1)
        return self._weighed(replace(law, errors=errors))

    def _shared(self, clients: Sequence[LogDensity]) -> tuple[Nodes, Floats, Floats]:
        """Nodes on which every client is resolved, their log p/h there (n, panels, nodes), and what is left of errors (n,)."""
        dim, order = self.family.dim, ORDER[self.family.dim]
        nodes = self._shared_nodes_for(clients)
        log_ratio = log_ratios(clients, nodes)
        shift = largest_log_ratios(log_ratio)
        for _ in range(_SHARED_ROUNDS):
            errors = self._client_errors(nodes, log_ratio, shift)
            bad = errors.max(axis=0) > SHARED_TOLERANCE[dim] / len(nodes.panels)
            if not bad.any() or nodes.weights.size > MOST_SHARED_NODES[dim]:
                break
            fresh = self.family.nodes_of(nodes.panels[bad].split(2), order)
            nodes = nodes[~bad].joined(fresh)
            log_ratio = np.concatenate([log_ratio[:, ~bad], log_ratios(clients, fresh)], axis=1)
        return nodes, log_ratio, np.asarray(errors.sum(axis=1))

    def _client_errors(self, nodes: Nodes, log_ratio: Floats, shift: Floats) -> Floats:
        """(n, panels) estimated errors of the clients' masses, each client's mass being one."""
        errors = np.empty(log_ratio.shape[:2])
        for rows in blocks(len(log_ratio), nodes.weights.size):
            density = np.exp(log_ratio[rows] - shift[rows, None, None]) * nodes.element
            mass = np.sum(density * nodes.weights, axis=(1, 2))
            check_masses(mass)
            errors[rows] = nodes.panels.errors(density, ORDER[self.family.dim]) / mass[:, None]
        return errors

    def _cut_along_line(self, law: OutputLaw, nodes: Nodes, errors: Floats) -> OutputLaw:
        """Clients on an interval, once more on nodes of their own that end at their kinks."""
        constants = self.constants
        shape, held = law.client_masses.shape, np.broadcast_to(law.node_masses > 0.0, law.client_masses.shape)
        ratio = np.divide(law.client_masses, law.node_masses, out=np.zeros(shape), where=held)
        ratio = ratio.reshape(-1, *nodes.weights.shape)
        slope, cut_mass = law.slope, np.ones(len(ratio))
        for _ in range(2):  # the second time the cuts are where the kinks are
            places = levels(constants, slope, law.lift) * cut_mass
            found = cut_clients(self.family, nodes, ratio, places[places.max(axis=1) > 0.0])
            client = found.masses * found.ratio
            cut_mass = client.sum(axis=1)
            client /= cut_mass[:, None]
            if self.mixing is None:
                lower, upper = constants.b * found.masses, constants.B * found.masses
                better = improved(client, np.where(np.isfinite(slope), slope, 1.0), lower, upper)
                slope = np.where(np.isfinite(slope), better, slope)
        law = replace(law, node_masses=found.masses, client_masses=client, slope=slope)
        output = np.divide(law.output_masses, found.masses, out=np.zeros_like(client), where=found.masses > 0.0)
        return replace(law, errors=errors + found.errors(output), log_mass=law.log_mass + np.log(cut_mass))

    def _shared_nodes_for(self, clients: Sequence[LogDensity]) -> Nodes:
        """Nodes as fine as the narrowest client says it is, wherever it says so."""
        dim, panels = self.family.dim, self._shared_nodes.panels
        fine, _ = self.family.panels_at(panels, clients, MOST_SHARED_NODES[dim] // 2)
        return self._shared_nodes if len(fine) == len(panels) else self.family.nodes_of(fine, ORDER[dim])

    @cached_property
    def _shared_nodes(self) -> Nodes:
        dim = self.family.dim
        return self.family.nodes_of(self.family.panels.split(SHARED_SPLIT[dim]), ORDER[dim])

    # many dimensions, public points

    def _on_points(self, clients: Sequence[LogDensity], many: bool) -> OutputLaw:
        x, log_reference = self._public_points
        log_ratio = np.stack([p.log_density(x) - log_reference for p in clients])
        law = self._solved(clients, many, np.full(len(x), 1.0 / len(x)), log_ratio, luck(self.family.bounds, len(x)))
        relative = law.output_masses_of(slice(None)) * len(x)
        return self._weighed(replace(law, errors=relative.std(axis=1) / math.sqrt(len(x))))

    @cached_property
    def _public_points(self) -> tuple[Floats, Floats]:
        x = self.family.draw(MONTE_CARLO_NODES, np.random.default_rng(0))
        return x, self.family.log_reference(x)

    def _solved(
        self,
        clients: Sequence[LogDensity],
        many: bool,
        masses: Floats,
        log_ratio: Floats,
        slack: float | Floats = _BAND_SLACK,
    ) -> OutputLaw:
        """Every client on the same nodes (m,), from its log p/h there (n, m); `slack`: how well those know its mass."""
        shift = largest_log_ratios(log_ratio)
        client = np.exp(log_ratio - shift[:, None])
        smallest = log_ratio.min(axis=1, where=masses > 0, initial=np.inf)
        client *= masses
        mass = client.sum(axis=1)
        client /= mass[:, None]
        seen = Seen(shift + np.log(mass), smallest, shift, slack)
        tell_outside(self.family, clients, seen, self.mixing is not None)
        if self.mixing is not None:
            slope, lift = np.full(len(clients), self.mixing.slope), np.full(len(clients), self.mixing.lift)
        else:
            box = Box.around(masses, masses.size, self.constants, self.epsilon)
            with np.errstate(divide="ignore"):
                slope, lift = np.asarray(1.0 / box.scale(client)), np.zeros(len(clients))
            for row in np.flatnonzero(np.isinf(slope)):
                slope[row], lift[row] = box.slope_and_lift(client[row])
        return OutputLaw(
            self.family, self.constants, self.mixing, tuple(clients), many, masses, client, shift + np.log(mass),
            slope, lift, np.zeros(len(clients)),
        )  # fmt: skip


@overload
def nearest_member(family: ContinuousFamily, p: Any) -> OutputLaw: ...
@overload
def nearest_member(family: FiniteFamily, p: LawLike) -> Floats: ...
def nearest_member(family: ContinuousFamily | FiniteFamily, p: Any) -> OutputLaw | Floats:
    """The law of the family closest to p for every f-divergence at once: clip(p/r, c1 mu, c2 mu) [paper, Prop. C.8].

    On a finite family laws (..., k) go to laws (..., k). On a continuous one it is an `OutputLaw`, between the bounds at every
    point, whose mass is one as far as its `mass_error` knows.

    Args:
        family: a finite or a continuous family.
        p: one law or many, as samplers take them.

    Returns:
        Laws of the shape of p, or an `OutputLaw`.

    Raises:
        DiscreetError: for something that is no family or no law.
    """
    check_family(family)
    if isinstance(family, ContinuousFamily):
        return _nearest_density(family, p)
    return _nearest_law(family, p)


def _nearest_law(family: FiniteFamily, p: LawLike) -> Floats:
    """The projection onto the band as a box. With c1 = 0 a floor that no float notices stands in for 0, and is taken off again."""
    reference = np.broadcast_to(family.reference, family.size)
    lower = max(family.bounds.lower, _NO_FLOOR) * reference
    box = Box(family.size, lower, np.minimum(np.maximum(family.bounds.upper * reference, lower), 1.0))
    found = box.project(family.as_rows(p))
    if family.bounds.lower == 0.0:
        found[found <= 2.0 * lower] = 0.0
    return found


def _nearest_density(family: ContinuousFamily, p: Any) -> OutputLaw:
    bounds = family.bounds
    lower = max(bounds.lower, 1e-12 * bounds.upper)
    constants = Constants(bounds.alpha, lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideFamilyWarning)
        return OutputSolver(family, constants, math.log(bounds.upper / lower) + 1e-9, None).law(p)
