"""Which points of a set its own reflections and exchanges of axes carry to each other: orbits of isometries for every norm of coordinates.

A map x -> centre + (+-) (x - centre) with its axes exchanged keeps |x - y| in every l_p norm. Those that carry the set to itself, up to
rounding, form a group: its orbits are the connected components of the graph of all images. A grid has four of them or eight in the plane.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_SYMMETRY_ROUNDING = 1e-12  # of the largest extent, and some units in the last place of the coordinates themselves
_ULPS = 2.0**-49
_MOST_AXES = 4  # 384 maps; more axes are too many to try


def orbits_of(points: Floats) -> Places:
    """The number of each point's orbit; every point alone where nothing but staying is a symmetry."""
    size, axes = points.shape
    if axes > _MOST_AXES:
        return np.arange(size)
    low, high = points.min(axis=0), points.max(axis=0)
    centred = (points - low) - (high - low) / 2.0
    tolerance = _SYMMETRY_ROUNDING * (high - low).max() + _ULPS * np.abs(points).max()
    tree = scipy.spatial.cKDTree(centred)
    images = [np.arange(size)]
    for order in itertools.permutations(range(axes)):
        for signs in itertools.product((1.0, -1.0), repeat=axes):
            away, place = tree.query(centred[:, order] * signs)
            if away.max() <= tolerance:
                images.append(place)
    ends = np.concatenate(images)
    links = scipy.sparse.coo_matrix((np.ones(len(ends)), (np.tile(np.arange(size), len(images)), ends)), (size, size))
    return np.asarray(scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.intp)
