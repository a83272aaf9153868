"""The law nearest to a client's on any finite metric space, as a flow along few ways, with a certificate that no other is nearer.

    W1(p, q) = min over flows f >= 0 with  p_v + in_v(f) - out_v(f) = q_v  of  sum over ways (u, v) of d(u, v) f(u, v)

A way that others make up (d(u, v) = d(u, w) + d(w, v)) is not needed: on a grid with distances along its axes the ways between neighbours
are enough. Which are needed elsewhere is found out: one begins with the nearest neighbours of each point and a hub, and adds what a
solution shows to be missing. With y the multipliers of the balances, made 1-Lipschitz by y'_v = min over u of (y_u + d(u, v)),

    W1(p, q)  >=  sum p_v y'_v - sum q_v y'_v      for every q                                      (Kantorovich)

so that the least of the right-hand side over low <= q <= high is a distance that no law between the bounds goes below. The search ends
when that is what was reached, up to rounding; it is never declared to be over by the solver alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.errors import DiscreetError

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_GAP = 1e-9  # of the largest distance, between what was reached and what is certified
_NOTHING = 1e-12  # of the largest distance: a length that the solver is told is none, lest it stumble over it
_NEIGHBOURS = 8
_FEW = 8  # points held, from which every way is given at once
_ROUNDS = 100
_ADDED = 8  # ways for each point in one round, at most and on average


@dataclass(frozen=True)
class NearestLaw:
    """A law between the bounds, how far it is from the client's, and a distance that no law between them goes below."""

    law: Floats
    distance: float
    bound: float


def nearest_between(law: Floats, distances: Floats, low: Floats, high: Floats) -> NearestLaw:
    """The nearest law to one client's with low <= q <= high, on points with these distances between them."""
    scale, size = float(distances.max()), len(law)
    lengths = distances / scale
    known, costs = _first_ways(law, lengths), np.where(lengths < _NOTHING, 0.0, lengths)
    for _ in range(_ROUNDS):
        sources, targets = np.nonzero(known)
        q, reached, potentials = _cheapest(law, costs[sources, targets], sources, targets, low, high)
        lipschitz = (potentials[:, None] + lengths).min(axis=0)
        bound = float(law @ lipschitz - np.maximum(lipschitz * low, lipschitz * high).sum())
        if reached - bound <= _GAP:
            return NearestLaw(q, reached * scale, min(bound, reached) * scale)
        missing = np.where(known, 0.0, potentials[:, None] - potentials - lengths)
        worst = np.argsort(missing, axis=None)[-_ADDED * size :]
        worst = worst[missing.flat[worst] > 0.0]
        if not len(worst):
            break
        known.flat[worst] = True
    raise DiscreetError(
        f"the nearest law was not found within {_GAP:g} of the largest distance for {size} points; take fewer of them"
    )


def transport_distance(first: Floats, second: Floats, distances: Floats) -> float:
    """W1 between two laws, each taken as shares of its own sum."""
    held, aim = first / first.sum(), second / second.sum()
    aim[np.argmax(aim)] += held.sum() - aim.sum()  # so that what leaves arrives to the last digit
    return nearest_between(held, distances, aim, aim).distance


def _first_ways(law: Floats, lengths: Floats) -> NDArray[np.bool_]:
    """Ways to the nearest neighbours and back, by the point in the middle, and from wherever is held if that is little."""
    size, known = len(law), np.zeros(lengths.shape, dtype=bool)
    near = np.argpartition(lengths, min(_NEIGHBOURS, size - 1), axis=1)[:, : _NEIGHBOURS + 1]
    known[np.arange(size)[:, None], near] = True
    known |= known.T
    middle = int(np.argmin(lengths.sum(axis=1)))
    known[middle] = known[:, middle] = True
    held = np.flatnonzero(law > 0.0)
    if len(held) <= _FEW:
        known[held] = True
    np.fill_diagonal(known, val=False)
    return known


def _cheapest(
    law: Floats, costs: Floats, sources: Places, targets: Places, low: Floats, high: Floats
) -> tuple[Floats, float, Floats]:
    """The law reached, what it costs to get there along these ways, and the multipliers of the balances q + out - in = p."""
    size, ways = len(law), len(costs)
    sparse, ones, number = scipy.sparse, np.ones(ways), np.arange(ways)
    flows = sparse.csr_matrix(
        (np.concatenate([ones, -ones]), (np.concatenate([sources, targets]), np.concatenate([number, number]))),
        shape=(size, ways),
    )
    options: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(size), costs]),
        A_eq=sparse.hstack([sparse.identity(size), flows]).tocsc(),
        b_eq=law,
        bounds=np.column_stack([np.concatenate([low, np.zeros(ways)]), np.concatenate([high, np.full(ways, np.inf)])]),
        method="highs",
        options=options,
    )
    if found.status != 0:
        raise DiscreetError(f"the transport of a client was not solved: {found.message}; its law may be damaged")
    return np.clip(found.x[:size], low, high), float(found.fun), np.asarray(found.eqlin.marginals)
