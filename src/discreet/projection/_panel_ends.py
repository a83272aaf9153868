"""What a density does between the outermost nodes of a panel and the panel's ends, where no node lies.

Gauss-Legendre nodes stay 1.3 % of a panel away from its ends, 3.4 % in the plane. A jump there is seen by no node, and costs up to its height
times that distance. So the density is evaluated near both ends too, and compared with the polynomial through its values at the nodes. Near an
end at which the density is infinite one value says little, and its mean is an integral over the logarithm of the distance.

In more dimensions it is evaluated near the middle of every face. A jump along an axis, as that of a density on a smaller box, is seen there;
one that cuts off a corner may not be.

The errors decide where panels are split, and are reported. No privacy guarantee depends on them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import ORDER, Panels, gauss_rule
from discreet.families import ContinuousFamily, LogDensity, Nodes
from discreet.projection._output_law import matrix_to_endpoint_values

Floats = NDArray[np.float64]

# distance from an end, in widths; the density there stands for that between the outermost node and the end
_NEAR_END = 1e-9
_RISING = 4.0  # times the density at the nodes, from which on further places towards the end are evaluated
_PLACES_TOWARDS_END = 12
_SMALLEST_ELEMENT = 1e-200  # of the reference, below which it ends in a tail, and jumps are not looked for
_SMALLEST = 1e-300


def log_densities_towards_interval_ends(
    family: ContinuousFamily, p: LogDensity, nodes: Nodes, log_density: Floats
) -> Floats:
    """(n, 2) logarithms of p's mean density, in coordinates, between the outermost nodes of n intervals and their two ends.

    One value near the end stands for it; if it is far above those at the nodes, `log_density` (n, order), as at an infinite density, some
    between the two as well.
    """

    def log_density_at_distances(interval: NDArray[np.intp], side: NDArray[np.intp], distance: Floats) -> Floats:
        """At distances (m, k) from one end (m,) of intervals (m,), in widths; at the outermost node where rounding reaches the end."""
        low, high = nodes.panels.lower[interval], nodes.panels.upper[interval]
        t = np.where(side[:, None] == 0, low + distance * (high - low), high - distance * (high - low))
        t = np.where((t > low) & (t < high), t, low + (high - low) * gauss_rule(ORDER[1])[0][-side][:, None])[..., None]
        x = family.points_inside_at_coordinates(t).reshape(-1, 1)
        has_reference = np.exp(family.log_reference(x)).reshape(distance.shape) > 0.0
        log_p = np.where(has_reference, p.log_density(x).reshape(distance.shape), -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.nan_to_num(log_p + np.log(family.chart.jacobian(t)), nan=-np.inf, neginf=-np.inf))

    interval, side = (array.ravel() for array in np.indices((len(nodes.panels), 2)))
    means = log_density_at_distances(interval, side, np.full((interval.size, 1), _NEAR_END))[:, 0]
    rises = np.flatnonzero(means > np.repeat(log_density.max(axis=1), 2) + math.log(_RISING))
    if rises.size:
        distances = np.geomspace(gauss_rule(ORDER[1])[0][0], _NEAR_END, _PLACES_TOWARDS_END)
        log_masses = log_density_at_distances(
            interval[rises], side[rises], np.broadcast_to(distances, (rises.size, distances.size))
        ) + np.log(distances)
        step = math.log(distances[0] / distances[1])
        highest = log_masses.max(axis=1)
        masses = np.exp(log_masses - highest[:, None])  # for each unit of the distance's logarithm
        fall = np.log(np.maximum(masses[:, -2], _SMALLEST)) - np.log(np.maximum(masses[:, -1], _SMALLEST))
        beyond = masses[:, -1] / np.clip(fall / step, 1e-3, 1.0)
        total = step * (masses.sum(axis=1) - 0.5 * (masses[:, 0] + masses[:, -1])) + beyond
        means[rises] = highest + np.log(total / distances[0])
    return means.reshape(-1, 2)


def errors_from_jumps_at_interval_ends(nodes: Nodes, density: Floats, towards_ends: Floats) -> Floats:
    """(..., n) the errors that jumps between the outermost nodes of intervals and their ends would cause; the nodes cannot see them.

    `density` is in coordinates at the nodes (..., n, order), `towards_ends` between them and the ends (..., n, 2).
    """
    order, width = density.shape[-1], nodes.panels.upper - nodes.panels.lower
    jumps = np.abs(towards_ends - density @ matrix_to_endpoint_values(order))
    jumps = np.where(nodes.element[:, [0, -1]] > _SMALLEST_ELEMENT, jumps, 0.0)
    return np.asarray(jumps.sum(axis=-1) * width[:, 0] * gauss_rule(order)[0][0])


def log_densities_at_faces(family: ContinuousFamily, p: LogDensity, panels: Panels) -> Floats:
    """(n, 2 dim) logarithms of p's density, in coordinates, near the middles of the faces of n panels; none where the reference is 0."""
    t = panels.coordinates_near_faces
    x = family.points_inside_at_coordinates(t).reshape(-1, panels.dim)
    has_reference = np.exp(family.log_reference(x)) > 0.0
    log_p = np.where(has_reference, p.log_density(x), -np.inf).reshape(t.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(log_p + np.log(family.chart.jacobian(t)), nan=-np.inf, neginf=-np.inf))
