"""Finite metric spaces, and the floor with the smallest worst-case Wasserstein-1 distance on them, with a certified lower bound.

A space is points on a line, points under a norm, or a matrix of distances that obeys the axioms.

**The floor.** A sampler on finitely many points is eps-LDP if and only if m <= Q(.|P) <= e^eps m for some measure m. W1 is jointly convex, so
the worst client is a point mass x. Its best output raises the points nearest to x from m to e^eps m until the mass is one:

    cost_x(m) = max over t of  t + sum_y m_y g_{x,t}(y),      g_{x,t}(y) = d(x,y) - t - (e^eps - 1) (t - d(x,y))_+

(linear-programming duality; the best t is the distance at which the mass is used up). So the minimax value is that of one linear programme in
m with a row for every (x, t). Takakura (arXiv 2605.10015) has the larger programme in all q_x. Rows are added where a solution violates them.

**The programme** is min t with t >= end_i + sum_y m_y g_i(y) for every known row i. Its variables are the ceiling e^eps m rather than the
floor, so that no entry exceeds 1 for any epsilon; the mass of the ceiling is between 1 and e^eps. `OrbitProgramme` has one variable for each
orbit of points. `LineProgramme` uses that g is piecewise linear on a line with at most four kinks. In terms of M_j = m_1 + ... + m_j and T_j
= h_1 M_1 + ... + h_j M_j, with h_j the gap to the next point, a row has a handful of entries for any number of points.

**Symmetry.** Where the space has isometries, averaging m over them does not increase the worst cost, because each cost is convex in m. So one
number for each orbit suffices, and one client of each. A map x -> centre + (+-) (x - centre) with its axes exchanged keeps |x - y| in every
l_p norm. The maps that carry the set to itself, up to rounding, form a group, whose orbits are the connected components of the graph of all
images. A grid in the plane has four such maps or eight.

**Certificate.** For shares l_i >= 0 of rows (x_i, t_i), sum l_i = 1, no floor of mass s in [e^-eps, 1] has a worst cost below sum l_i t_i + s
min_y sum_i l_i g_i(y). The multipliers of a solution are such shares, spread evenly over the orbits; `bound` is that sum, computed from the
distances. Rounding may leave the smallest sum a little below 0, which a mass of 1 would amplify. A small share of rows with t = 0 then makes
up for it. The bound does not depend on the solver's correctness, nor on the symmetry being one.

**A large epsilon** needs no programme, whose numbers become too small for a solver. Let S be the largest sum of distances from a point, h the
least distance of two points. The even floor 1/(e^eps + n - 1) serves a point mass by its own point up to the floor of the others, so its
worst cost is S/(e^eps + n - 1). No floor has a worst cost V below S/(e^eps + S/h). *Proof.* The client at y has at most e^eps m_y at y and
the rest at least h away. So h (1 - e^eps m_y) <= V and m_y >= (1 - V/h) e^-eps. Hence V >= sum_y m_y d(x, y) >= (1 - V/h) S e^-eps for the x
of the largest sum.   QED
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError
from discreet.families import as_floats

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_SYMMETRY_ROUNDING = 1e-12  # share of the largest extent, plus some units in the last place of the coordinates
_ULPS = 2.0**-49
_MOST_AXES = 4  # 384 maps; more axes are too many to try
MOST_ON_A_LINE = 2_000
MOST = 1_024  # elsewhere, such as 32 by 32
_NORMS: dict[float, Callable[[Floats], Floats]] = {
    1: lambda differences: np.asarray(differences.sum(axis=2)),
    2: lambda differences: np.sqrt(np.square(differences).sum(axis=2)),
    math.inf: lambda differences: np.asarray(differences.max(axis=2)),
}
_METRIC_ROUNDING = 1e-9  # of a distance relative to the largest
_FEW = 200  # points for which simplex steps are few
_KINK = 1e-7  # of a change of slope, which is rounding below it
GAP = 1e-6  # relative, between the attained worst case and the lower bound
_TINY = 1e-9  # of the largest distance, below which a worst case is lost in the solver's rounding
_ROUNDS = 200
_AT_A_TIME = 50  # dense rows added in one round; few of them matter in the end
_AT_ONCE = 4_000_000  # entries of g that are held together


def orbit_numbers(points: Floats) -> Places:
    """The number of each point's orbit; every point alone where the identity is the only symmetry."""
    size, axes = points.shape
    if axes > _MOST_AXES:
        return np.arange(size)
    low, high = points.min(axis=0), points.max(axis=0)
    offsets_from_centre = (points - low) - (high - low) / 2.0
    tolerance = _SYMMETRY_ROUNDING * (high - low).max() + _ULPS * np.abs(points).max()
    tree = scipy.spatial.cKDTree(offsets_from_centre)
    images = [np.arange(size)]
    for order in itertools.permutations(range(axes)):
        for signs in itertools.product((1.0, -1.0), repeat=axes):
            distances, nearest = tree.query(offsets_from_centre[:, order] * signs)
            if distances.max() <= tolerance:
                images.append(nearest)
    ends = np.concatenate(images)
    links = scipy.sparse.coo_matrix((np.ones(len(ends)), (np.tile(np.arange(size), len(images)), ends)), (size, size))
    return np.asarray(scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class MetricSpace:
    """Distances between all points, in an order in which neighbours on a line are neighbours; `order` maps back.

    `gaps` are those between neighbours on a line; `orbits`: the number of each point's orbit under known isometries.
    """

    distances: Floats
    order: NDArray[np.intp]
    gaps: Floats | None
    orbits: NDArray[np.intp]

    @property
    def size(self) -> int:
        return len(self.distances)


def make_line_space(points: Floats) -> MetricSpace:
    """Points on a line, in any order, all different."""
    _refuse_too_many_points(len(points), MOST_ON_A_LINE)
    order = np.argsort(points, kind="stable")
    gaps = np.diff(points[order])
    if not (gaps > 0.0).all():
        coordinate = points[order][int(np.argmin(gaps))]
        raise DiscreetError(f"points holds {coordinate:g} twice; give every place once")
    points_in_order = points[order]
    return MetricSpace(np.abs(points_in_order[:, None] - points_in_order), order, gaps, np.arange(len(points)))


def make_metric_space(points: ArrayLike | None, metric: ArrayLike | None, norm: float | None) -> MetricSpace:
    """The space of points (n,) or (n, dim) under a norm, Euclidean if None; or of a matrix of distances (n, n)."""
    if (points is None) == (metric is None):
        raise DiscreetError(
            "pass either points (numbers, or rows of coordinates) or metric= (a matrix of distances), one of the two"
        )
    if metric is not None:
        if norm is not None:
            raise DiscreetError(
                f"norm = {norm!r} is for points; metric= has all distances already: leave one of them out"
            )
        distances = _read_finite_array(metric, "metric")
        _refuse_non_metric(distances)
        return MetricSpace(distances, np.arange(len(distances)), None, np.arange(len(distances)))
    length = _NORMS.get(2 if norm is None else norm) if norm is None or isinstance(norm, (int, float)) else None
    if length is None:
        raise DiscreetError(f"norm = {norm!r} is not one of 1 (along the axes), 2 (Euclidean), inf (the longest axis)")
    untyped_points: Any = points
    coordinates = _read_finite_array(untyped_points, "points")
    if coordinates.ndim == 2 and coordinates.shape[1] == 1:
        coordinates = coordinates[:, 0]
    if coordinates.ndim == 1:
        return make_line_space(coordinates)
    if coordinates.ndim != 2:
        raise DiscreetError(f"points has shape {coordinates.shape}; give numbers (n,) or rows of coordinates (n, dim)")
    _refuse_too_many_points(len(coordinates), MOST)
    distances = length(np.abs(coordinates[:, None, :] - coordinates))
    _refuse_equal_points(distances, "points", "twice in the same place; give every place once")
    return MetricSpace(distances, np.arange(len(coordinates)), None, orbit_numbers(coordinates))


def _read_finite_array(values: ArrayLike, name: str) -> Floats:
    array = as_floats(values, name)
    if not np.isfinite(array).all():
        raise DiscreetError(
            f"{name} holds {array[~np.isfinite(array)][0]:g}; distances between such points are not finite"
        )
    if array.size and np.abs(array).max() > 1e100:
        raise DiscreetError(f"{name} holds {np.abs(array).max():g}; measure in other units")
    return array


def _refuse_too_many_points(size: int, most: int) -> None:
    if not 2 <= size <= most:
        line = "" if most == MOST_ON_A_LINE else f" (2 to {MOST_ON_A_LINE:,} on a line)"
        raise DiscreetError(f"{size} points; it takes 2 to {most:,} of them{line}")


def _refuse_non_metric(distances: Floats) -> None:
    """Reject a matrix that is not a metric; the error names the axiom and the entry."""
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise DiscreetError(
            f"metric has shape {distances.shape}; it is a square matrix of distances between all points"
        )
    _refuse_too_many_points(len(distances), MOST)
    tolerance = _METRIC_ROUNDING * float(np.abs(distances).max())
    if (distances < 0.0).any():
        x, y = np.argwhere(distances < 0.0)[0]
        raise DiscreetError(f"metric[{x}][{y}] = {distances[x, y]:g} is negative; distances are not")
    if np.diagonal(distances).any():
        x = int(np.flatnonzero(np.diagonal(distances))[0])
        raise DiscreetError(f"metric[{x}][{x}] = {distances[x, x]:g}; the distance of a point from itself is 0")
    if (np.abs(distances - distances.T) > tolerance).any():
        x, y = np.argwhere(np.abs(distances - distances.T) > tolerance)[0]
        raise DiscreetError(
            f"metric[{x}][{y}] = {distances[x, y]:g} and metric[{y}][{x}] = {distances[y, x]:g}; distances are the same both ways"
        )
    _refuse_equal_points(distances, "metric", "at distance 0 from each other; give every place once")
    for via in range(len(distances)):
        violations = distances > distances[:, [via]] + distances[via] + tolerance
        if violations.any():
            x, y = np.argwhere(violations)[0]
            raise DiscreetError(
                f"metric[{x}][{y}] = {distances[x, y]:g} is more than the way by {via}, "
                f"{distances[x, via]:g} + {distances[via, y]:g}: the triangle inequality fails; take lengths of shortest ways"
            )


def _refuse_equal_points(distances: Floats, name: str, problem: str) -> None:
    pairs = np.argwhere(np.triu(distances <= 0.0, k=1))
    if len(pairs):
        raise DiscreetError(f"{name} has {pairs[0][0]} and {pairs[0][1]} {problem}")


class FloorProgramme(abc.ABC):
    """The linear programme of a floor, for the rows known so far."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    @abc.abstractmethod
    def _constraint_rows_over_variables(self, slopes: Floats) -> Any:
        """Constraints given as rows over all points, as sparse rows over the variables."""

    @abc.abstractmethod
    def _ceiling_at_points(self, variables: Floats) -> Floats:
        """The ceiling e^epsilon m at every point, from the variables of the programme."""

    @property
    @abc.abstractmethod
    def _points_per_variable(self) -> Floats:
        """How many points each variable stands for; 0 for auxiliary variables."""

    @property
    def _equations_between_variables(self) -> Any:
        """Equations with right-hand side 0 between the variables and t, or None."""
        return None

    @property
    def _solver_method(self) -> str:
        """The name of scipy's method."""
        return "highs"

    def find_floor_and_multipliers(self, slopes: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """The floor m, point by point, with the least t >= ends + slopes m, and the multipliers of these rows."""
        sparse, members, equations = scipy.sparse, self._points_per_variable, self._equations_between_variables
        rows = self._constraint_rows_over_variables(slopes / self._ratio)
        mass = np.append(members, 0.0)[None, :]
        optimum = scipy.optimize.linprog(
            np.append(np.zeros(len(members)), 1.0),
            A_ub=sparse.vstack([sparse.hstack([rows, -np.ones((rows.shape[0], 1))]), mass, -mass]).tocsr(),
            b_ub=np.concatenate([-ends, [self._ratio, -1.0]]),
            A_eq=equations,
            b_eq=None if equations is None else np.zeros(equations.shape[0]),
            bounds=(0.0, None),
            method=self._solver_method,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if optimum.status != 0:
            raise DiscreetError(
                f"the linear programme of the floor was not solved: {optimum.message}; take fewer points"
            )
        masses = np.maximum(self._ceiling_at_points(optimum.x[:-1]), 0.0) / self._ratio
        return masses, -np.asarray(optimum.ineqlin.marginals[: rows.shape[0]])


class OrbitProgramme(FloorProgramme):
    """One variable for each orbit, the mass of each of its points."""

    def __init__(self, orbits: NDArray[np.intp], ratio: float) -> None:
        super().__init__(ratio)
        self._orbits = orbits
        size = len(orbits)
        self._sums = scipy.sparse.csr_matrix((np.ones(size), (np.arange(size), orbits)))

    def _constraint_rows_over_variables(self, slopes: Floats) -> Any:
        return scipy.sparse.csr_matrix(slopes @ self._sums)

    def _ceiling_at_points(self, variables: Floats) -> Floats:
        return np.asarray(variables[self._orbits])

    @property
    def _points_per_variable(self) -> Floats:
        return np.bincount(self._orbits).astype(np.float64)


class LineProgramme(FloorProgramme):
    """The masses m, and M and T as further variables."""

    def __init__(self, gaps: Floats, ratio: float) -> None:
        super().__init__(ratio)
        self._gaps, self._size = gaps, len(gaps) + 1

    def _constraint_rows_over_variables(self, slopes: Floats) -> Any:
        """sum m g = g_k M_k - s_(k-1) T_(k-1) + sum_j (s_(j+1) - s_j) T_j, where s_j is the slope of g from point j to the next."""
        steps = np.diff(slopes, axis=1) / self._gaps
        kinks = np.diff(steps, axis=1)
        kinks[np.abs(kinks) < _KINK] = 0.0
        kink_block = scipy.sparse.csr_matrix(np.hstack([kinks, -steps[:, -1:]]))
        end_block = scipy.sparse.csr_matrix(slopes[:, -1:])
        zero_block = scipy.sparse.csr_matrix((len(slopes), 2 * self._size - 1))
        return scipy.sparse.hstack([zero_block, end_block, kink_block])

    def _ceiling_at_points(self, variables: Floats) -> Floats:
        return variables[: self._size]

    @property
    def _points_per_variable(self) -> Floats:
        return np.repeat([1.0, 0.0], [self._size, 2 * self._size - 1])

    @property
    def _equations_between_variables(self) -> Any:
        """M_j = M_(j-1) + m_j and T_j = T_(j-1) + h_j M_j, over the variables m, M, T and t."""
        size, sparse = self._size, scipy.sparse
        sums = sparse.identity(size) - sparse.eye(size, k=-1)
        gap_matrix = sparse.hstack([sparse.diags(self._gaps), sparse.csr_matrix((size - 1, 1))])
        areas = sparse.identity(size - 1) - sparse.eye(size - 1, k=-1)
        mass_equations = sparse.hstack([-sparse.identity(size), sums, sparse.csr_matrix((size, size))])
        area_equations = sparse.hstack(
            [sparse.csr_matrix((size - 1, size)), -gap_matrix, areas, sparse.csr_matrix((size - 1, 1))]
        )
        return sparse.vstack([mass_equations, area_equations]).tocsr()

    @property
    def _solver_method(self) -> str:
        return "highs" if self._size <= _FEW else "highs-ipm"  # simplex steps are many where optima are


@dataclass(frozen=True)
class Floor:
    """A floor, the worst distance that its box attains, and a lower bound for every mechanism."""

    masses: Floats
    value: float
    bound: float


def best_transport_floor(space: MetricSpace, ratio: float) -> Floor:
    """The minimax floor of a space for e^epsilon = ratio."""
    scale, size = float(space.distances.max()), space.size
    distances = space.distances / scale
    programme = OrbitProgramme(space.orbits, ratio) if space.gaps is None else LineProgramme(space.gaps / scale, ratio)
    clients = np.unique(space.orbits, return_index=True)[1]
    client_distances, row_limit = distances[clients], _AT_A_TIME if space.gaps is None else size
    order = np.argsort(client_distances, axis=1, kind="stable")
    sorted_distances = np.take_along_axis(client_distances, order, axis=1)
    rows = _FloorRows(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=bool))
    masses, bound, best = np.full(size, 1.0 / (ratio + size - 1.0)), 0.0, Floor(np.zeros(size), np.inf, 0.0)
    for _ in range(_ROUNDS):
        ends = _distances_where_mass_runs_out(masses, order, sorted_distances, ratio)
        costs = ends + _cost_slopes_of_clients(client_distances, ends, ratio) @ masses
        if costs.max() < best.value:
            best = Floor(masses, float(costs.max()), bound)
        if best.value - bound <= max(GAP * best.value, _TINY):
            worst = _worst_transport_cost(best.masses, distances, ratio)
            return Floor(best.masses, worst * scale, min(bound, worst) * scale)
        new_clients = np.argsort(-costs, kind="stable")[:row_limit]
        new_clients = new_clients[costs[new_clients] > bound + 0.1 * GAP * best.value]
        rows = rows.with_new_rows(new_clients, ends[new_clients])
        masses, shares = programme.find_floor_and_multipliers(
            _cost_slopes_of_clients(client_distances[rows.clients], rows.ends, ratio), rows.ends
        )
        new_bound = _lower_bound_for_every_floor(
            shares, clients[rows.clients], rows.ends, space.orbits, distances, ratio
        )
        if new_bound > bound:  # rows are dropped only then, so that they cannot return for ever
            bound, rows = new_bound, rows.select_rows((shares > 0.0) | rows.new)
    raise DiscreetError(
        f"no floor within {GAP:g} of the best was found for {size} points; take fewer or more evenly spaced ones"
    )


def uniform_transport_floor(space: MetricSpace, ratio: float, least: float) -> Floor:
    """The floor with equal masses for e^epsilon = ratio, at least `least`, with its lower bound; near the best for a large epsilon only."""
    mass = max(1.0 / (ratio + space.size - 1.0), least)
    farthest = float(space.distances.sum(axis=1).max())
    other_distances = np.where(np.eye(space.size, dtype=bool), np.inf, space.distances)
    return Floor(
        np.full(space.size, mass), farthest * mass, farthest / (ratio + farthest / float(other_distances.min()))
    )


def floor_of_given_masses(masses: Floats, space: MetricSpace, ratio: float) -> Floor:
    """A given floor, in the order of the space, with the worst distance of its box; nothing is said about other floors."""
    scale = float(space.distances.max())
    return Floor(masses, _worst_transport_cost(masses, space.distances / scale, ratio) * scale, 0.0)


@dataclass(frozen=True)
class _FloorRows:
    """Rows of the programme: their clients, their distances t, and whether they are new."""

    clients: NDArray[np.intp]
    ends: Floats
    new: NDArray[np.bool_]

    def with_new_rows(self, clients: NDArray[np.intp], ends: Floats) -> _FloorRows:
        """These rows and new ones."""
        new = np.repeat([False, True], [len(self.ends), len(ends)])
        return _FloorRows(np.append(self.clients, clients), np.append(self.ends, ends), new)

    def select_rows(self, mask: NDArray[np.bool_]) -> _FloorRows:
        """The selected rows."""
        return _FloorRows(self.clients[mask], self.ends[mask], self.new[mask])


def _distances_where_mass_runs_out(
    masses: Floats, order: NDArray[np.intp], sorted_distances: Floats, ratio: float
) -> Floats:
    """For every client, the distance at which raising the points nearest to it has used up the mass."""
    mass_raised, mass_left = np.cumsum((ratio - 1.0) * masses[order], axis=1), (1.0 - masses.sum()) * (1.0 - 1e-12)
    position = np.where(mass_raised[:, -1] < mass_left, len(masses) - 1, np.argmax(mass_raised >= mass_left, axis=1))
    return np.asarray(sorted_distances[np.arange(len(sorted_distances)), position])


def _cost_slopes_of_clients(distances: Floats, ends: Floats, ratio: float) -> Floats:
    """g of clients with these distances to all points, a row each."""
    return distances - ends[:, None] - (ratio - 1.0) * np.maximum(ends[:, None] - distances, 0.0)


def _worst_transport_cost(masses: Floats, distances: Floats, ratio: float) -> float:
    """The largest cost of any point mass, over all members of all orbits."""
    order = np.argsort(distances, axis=1, kind="stable")
    ends = _distances_where_mass_runs_out(masses, order, np.take_along_axis(distances, order, axis=1), ratio)
    return float((ends + _cost_slopes_of_clients(distances, ends, ratio) @ masses).max())


def _lower_bound_for_every_floor(
    shares: Floats,
    row_clients: NDArray[np.intp],
    ends: Floats,
    orbits: NDArray[np.intp],
    distances: Floats,
    ratio: float,
) -> float:
    """A lower bound for every floor, from these shares of clients' rows, each divided between all members of the client's orbit."""
    shares = np.maximum(shares, 0.0)
    shares = shares / shares.sum()
    members = np.split(np.argsort(orbits, kind="stable"), np.cumsum(np.bincount(orbits))[:-1])
    positive_rows = np.flatnonzero(shares > 0.0)
    clients = [members[orbits[row_clients[row]]] for row in positive_rows]
    lengths = [len(orbit) for orbit in clients]
    point_shares = np.repeat(shares[positive_rows] / lengths, lengths)
    point_ends, points = np.repeat(ends[positive_rows], lengths), np.concatenate(clients)
    total, step = np.zeros(len(distances)), max(1, _AT_ONCE // len(distances))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        total += point_shares[part] @ _cost_slopes_of_clients(distances[points[part]], point_ends[part], ratio)
    base = float(point_shares @ point_ends)
    least = float(total.min())
    if least >= 0.0:
        return base + least / ratio
    mean_distances = distances.mean(axis=0)  # rows of every client with t = 0, whose g is the distance itself
    repair = float(np.max(-total / (mean_distances - total), where=total < 0.0, initial=0.0))
    return max(base + least, (1.0 - repair) * base)
