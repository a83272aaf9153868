"""The floor m whose box serves the worst client best in Wasserstein-1 distance, by cutting planes, with a certified gap.

A sampler on finitely many points is eps-LDP if and only if m <= Q(.|P) <= e^eps m for some measure m. W1 is jointly convex, so the
worst client is a point mass x, which is best served by raising the points nearest to x from m to e^eps m until the mass is one:

    cost_x(m) = max over t of  t + sum_y m_y g_{x,t}(y),      g_{x,t}(y) = d(x,y) - t - (e^eps - 1) (t - d(x,y))_+

(linear-programming duality; the best t is the distance at which the mass is used up). So the minimax value is that of one linear
programme in m with a row for every (x, t) (Takakura, arXiv 2605.10015, has the larger one in all q_x). Rows are added where a solution
violates them (`discreet.mechanisms._transport._programmes` solves them).

* **Symmetry.** Where the space has isometries (a grid has its reflections) the worst cost does not grow when m is averaged over them,
  because each cost is convex in m: one number for each orbit is enough, and one client of each.
* **Certificate.** For shares l_i >= 0 of rows (x_i, t_i), sum l_i = 1, no floor of mass s in [e^-eps, 1] has a worst cost below
  sum l_i t_i + s min_y sum_i l_i g_i(y). The multipliers of a solution are such shares, spread evenly over the orbits; `bound` is that sum,
  worked out from the distances. Where rounding leaves the smallest sum a little below 0, which a mass of 1 would make much of, a small share
  of rows with t = 0 makes up for it. Whether the solver was right, or the symmetry was one, has no part in it.
* **A large epsilon** needs no programme, whose numbers it would leave behind. Let S be the largest sum of distances from a point, h the least
  distance of two points. The even floor 1/(e^eps + n - 1) serves a point mass by its own point up to the floor of the others, so that its
  worst cost is S/(e^eps + n - 1). No floor has one below S/(e^eps + S/h): if V is its worst cost, the client at y has at most e^eps m_y at
  y and the rest at least h away, so h (1 - e^eps m_y) <= V and m_y >= (1 - V/h) e^-eps; hence V >= sum_y m_y d(x, y) >= (1 - V/h) S e^-eps
  for the x of the largest sum.   QED
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.mechanisms._transport._programmes import LineProgramme, OrbitProgramme
from discreet.mechanisms._transport._spaces import MetricSpace

Floats = NDArray[np.float64]
GAP = 1e-6  # relative, between what is attained and what is certified
_TINY = 1e-9  # of the largest distance, below which a worst case is lost in the solver's rounding
_ROUNDS = 200
_AT_A_TIME = 50  # rows that are added together where they are full; few of them count in the end
_AT_ONCE = 4_000_000  # entries of g that are held together


@dataclass(frozen=True)
class Floor:
    """A floor, the worst distance that its box attains, and one that no mechanism goes below."""

    masses: Floats
    value: float
    bound: float


def best_transport_floor(space: MetricSpace, ratio: float) -> Floor:
    """The minimax floor of a space for e^epsilon = ratio."""
    scale, size = float(space.distances.max()), space.size
    distances = space.distances / scale
    programme = OrbitProgramme(space.orbits, ratio) if space.gaps is None else LineProgramme(space.gaps / scale, ratio)
    clients = np.unique(space.orbits, return_index=True)[1]
    own, most = distances[clients], _AT_A_TIME if space.gaps is None else size
    order = np.argsort(own, axis=1, kind="stable")
    ordered = np.take_along_axis(own, order, axis=1)
    rows = _FloorRows(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=bool))
    masses, bound, best = np.full(size, 1.0 / (ratio + size - 1.0)), 0.0, Floor(np.zeros(size), np.inf, 0.0)
    for _ in range(_ROUNDS):
        used_up = _reach_of_mass(masses, order, ordered, ratio)
        costs = used_up + _slopes(own, used_up, ratio) @ masses
        if costs.max() < best.value:
            best = Floor(masses, float(costs.max()), bound)
        if best.value - bound <= max(GAP * best.value, _TINY):
            worst = _worst_cost(best.masses, distances, ratio)
            return Floor(best.masses, worst * scale, min(bound, worst) * scale)
        worse = np.argsort(-costs, kind="stable")[:most]
        worse = worse[costs[worse] > bound + 0.1 * GAP * best.value]
        rows = rows.with_new(worse, used_up[worse])
        masses, shares = programme.solve(_slopes(own[rows.clients], rows.ends, ratio), rows.ends)
        certain = _certified_bound(shares, clients[rows.clients], rows.ends, space.orbits, distances, ratio)
        if certain > bound:  # what is dropped only then cannot come back for ever
            bound, rows = certain, rows.where((shares > 0.0) | rows.new)
    raise DiscreetError(
        f"no floor within {GAP:g} of the best was found for {size} points; take fewer or more evenly spaced ones"
    )


def even_floor(space: MetricSpace, ratio: float, least: float) -> Floor:
    """The even floor for e^epsilon = ratio, not below `least`, with the bound for a large epsilon; near the best only for such a one."""
    mass = max(1.0 / (ratio + space.size - 1.0), least)
    farthest = float(space.distances.sum(axis=1).max())
    apart = np.where(np.eye(space.size, dtype=bool), np.inf, space.distances)
    return Floor(np.full(space.size, mass), farthest * mass, farthest / (ratio + farthest / float(apart.min())))


@dataclass(frozen=True)
class _FloorRows:
    """Rows of the programme: whose, up to which distance, and whether they came last."""

    clients: NDArray[np.intp]
    ends: Floats
    new: NDArray[np.bool_]

    def with_new(self, clients: NDArray[np.intp], ends: Floats) -> _FloorRows:
        """These and new ones."""
        new = np.repeat([False, True], [len(self.ends), len(ends)])
        return _FloorRows(np.append(self.clients, clients), np.append(self.ends, ends), new)

    def where(self, kept: NDArray[np.bool_]) -> _FloorRows:
        """Some of them."""
        return _FloorRows(self.clients[kept], self.ends[kept], self.new[kept])


def _reach_of_mass(masses: Floats, order: NDArray[np.intp], ordered: Floats, ratio: float) -> Floats:
    """For every client the distance at which raising the points nearest to it has used up the mass."""
    filled, left = np.cumsum((ratio - 1.0) * masses[order], axis=1), (1.0 - masses.sum()) * (1.0 - 1e-12)
    place = np.where(filled[:, -1] < left, len(masses) - 1, np.argmax(filled >= left, axis=1))
    return np.asarray(ordered[np.arange(len(ordered)), place])


def _slopes(distances: Floats, ends: Floats, ratio: float) -> Floats:
    """g of clients with these distances to all points, a row each."""
    return distances - ends[:, None] - (ratio - 1.0) * np.maximum(ends[:, None] - distances, 0.0)


def _worst_cost(masses: Floats, distances: Floats, ratio: float) -> float:
    """The largest cost of any point mass, of every orbit's every member."""
    order = np.argsort(distances, axis=1, kind="stable")
    used_up = _reach_of_mass(masses, order, np.take_along_axis(distances, order, axis=1), ratio)
    return float((used_up + _slopes(distances, used_up, ratio) @ masses).max())


def _certified_bound(
    shares: Floats, whose: NDArray[np.intp], ends: Floats, orbits: NDArray[np.intp], distances: Floats, ratio: float
) -> float:
    """What no floor goes below, by these shares of clients' rows, each divided between all members of the client's orbit."""
    shares = np.maximum(shares, 0.0)
    shares = shares / shares.sum()
    members = np.split(np.argsort(orbits, kind="stable"), np.cumsum(np.bincount(orbits))[:-1])
    counted = np.flatnonzero(shares > 0.0)
    clients = [members[orbits[whose[row]]] for row in counted]
    lengths = [len(each) for each in clients]
    spread = np.repeat(shares[counted] / lengths, lengths)
    reach, points = np.repeat(ends[counted], lengths), np.concatenate(clients)
    total, step = np.zeros(len(distances)), max(1, _AT_ONCE // len(distances))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        total += spread[part] @ _slopes(distances[points[part]], reach[part], ratio)
    certain = float(spread @ reach)
    least = float(total.min())
    if least >= 0.0:
        return certain + least / ratio
    along = distances.mean(axis=0)  # rows of every client with t = 0, whose g is the distance itself
    repair = float(np.max(-total / (along - total), where=total < 0.0, initial=0.0))
    return max(certain + least, (1.0 - repair) * certain)
