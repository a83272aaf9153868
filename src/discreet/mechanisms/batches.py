"""Many clients on a line at once: shared panels, and every client's own cuts, without another look at its density.

p/h is known on the shared Gauss-Legendre nodes, on which it is nearly a polynomial; the nodes of the pieces between a client's
kinks take their values from it. Clients have different numbers of pieces, and the arrays are padded with nodes of mass zero.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.families.continuous import ContinuousFamily, Nodes
from discreet.mechanisms.kinks import interpolated, segments, to_coefficients
from discreet.quadrature import errors_on_unit_cube, rule

Floats = NDArray[np.float64]

_LARGEST_LOG = 690.0
_SMALLEST = 1e-300
_BEYOND_NODES = 0.2


@dataclass(frozen=True, eq=False)
class CutClients:
    """Every client on nodes of its own (n, m), `order` to a piece: reference masses and p/h."""

    masses: Floats
    ratio: Floats
    order: int

    def errors(self, values: Floats) -> Floats:
        """(n,) estimated errors of the integrals of values (n, m) times h."""
        pieces = (self.masses * values).reshape(-1, self.order)
        found = errors_on_unit_cube(pieces / rule(self.order)[1], self.order, 1)
        return np.asarray(found.reshape(len(values), -1).sum(axis=1))


def cut_clients(family: ContinuousFamily, nodes: Nodes, ratio: Floats, levels: Floats) -> CutClients:
    """Clients with p/h = ratio (n, panels, order) on the nodes of an interval's panels, cut at their own levels (l, n)."""
    clients, panels, order = ratio.shape
    places, weights = rule(order)
    lines = ratio.reshape(-1, order)
    line, start, stop = segments(lines, np.repeat(levels, panels, axis=1))
    owner, panel = line // panels, line % panels
    inner = start[:, None] + (stop - start)[:, None] * places
    values = lines[line]
    cut = np.flatnonzero(stop - start < 1.0)
    values[cut] = _filled_in(values[cut], inner[cut])
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


def _filled_in(values: Floats, inner: Floats) -> Floats:
    """p/h at places inner (s, m) of panels on whose nodes it is values (s, order), through its logarithm."""
    logarithm = np.log(np.maximum(values, _SMALLEST))
    low, high = logarithm.min(axis=1), logarithm.max(axis=1)
    beyond = _BEYOND_NODES * (high - low)
    found = interpolated(logarithm @ to_coefficients(values.shape[1]), inner)
    return np.exp(np.clip(found, (low - beyond)[:, None], np.minimum(high + beyond, _LARGEST_LOG)[:, None]))
