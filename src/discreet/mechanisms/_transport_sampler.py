"""`TransportSampler`: the epsilon-LDP sampler with the smallest worst-case Wasserstein-1 distance on a finite metric space.

On ordered data (ages, times, places) a sample two years off is better than one forty years off; f-divergences ignore this. The floor m is the
minimax one (`discreet.mechanisms._transport_floor`). Each client is served by the nearest distribution between m and e^eps m, and released
from the integer lattice that all samplers use. So W_x <= e^eps W'_x between any two clients in whole numbers, even if a solver is wrong.

**On a line** (`nearest_law_on_line`). W1(p, q) = sum_j h_j |P_j - Q_j| with running sums P and Q, h_j the gap to the next point. Q grows by
between low_j and high_j from point to point, from 0 to 1, so that with f_0 = 0 at 0 only,

    f_j(Q) = h_j |Q - P_j| + min over Q - high_j <= R <= Q - low_j of f_(j-1)(R)

is convex and piecewise linear. The minimum moves the kinks left of the bottom by low_j and those right of it by high_j, and |Q - P_j| adds
two kinks. Two heaps hold them. Going back from Q_k = 1, each R is the bottom of f_(j-1), moved into the allowed interval.

**On any finite metric space** (`nearest_law_between_bounds`). The nearest distribution is a flow along few edges, with a certificate that
no other is nearer.

    W1(p, q) = min over flows f >= 0 with  p_v + in_v(f) - out_v(f) = q_v  of  sum over edges (u, v) of d(u, v) f(u, v)

An edge that others make up (d(u, v) = d(u, w) + d(w, v)) is not needed: on a grid with distances along its axes, edges between neighbours
suffice. Elsewhere the search begins with the nearest neighbours of each point and a hub, and adds edges that a solution shows to be missing.
With y the multipliers of the balances, made 1-Lipschitz by y'_v = min over u of (y_u + d(u, v)),

    W1(p, q)  >=  sum p_v y'_v - sum q_v y'_v      for every q                                      (Kantorovich)

so the least right-hand side over low <= q <= high is a lower bound for all distributions between the bounds. The search ends when the
distance reached equals this bound up to rounding; the solver's own verdict is not enough.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, final, overload

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from discreet._base.labelled import LawLike, values_in_outcome_order
from discreet.domain import first_few_as_text
from discreet.errors import DiscreetError, check_kind
from discreet.families import FiniteFamily, Simplex, as_floats, refuse_bad_entries, refuse_bad_laws
from discreet.mechanisms._atoms import ClientBatch, OutcomeAtoms
from discreet.mechanisms._mechanism_names import BUILT_IN, InstalledMechanism
from discreet.mechanisms._own import OwnSampler
from discreet.mechanisms._sampler import Client, ManyLaws, OneLaw, Rng
from discreet.mechanisms._several_samples import ComposedSampler
from discreet.mechanisms._transport_floor import (
    Floor,
    best_transport_floor,
    floor_of_given_masses,
    make_metric_space,
    uniform_transport_floor,
)
from discreet.privacy import Privacy, Pure, chosen_privacy
from discreet.projection import STEEPEST_EXPONENT

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.intp]
_GAP = 1e-9  # share of the largest distance, between the distance reached and the lower bound
_NOTHING = 1e-12  # share of the largest distance that counts as 0, to keep the solver stable
_NEIGHBOURS = 8
_FEW = 8  # a client with at most this many points gets all its edges at once
_ROUNDS = 100
_ADDED = 8  # edges for each point in one round, at most and on average
_LEAST = 2.0**-61  # below which a floor is one integer of the lattice
_LARGE = 30.0  # epsilon past which the numbers of a linear programme are too small for its solver
_MOST_AGREED = 1 << 16  # numbers that an agreement lists


def nearest_law_on_line(law: Floats, gaps: Floats, low: Floats, high: Floats) -> Floats:
    """The distribution nearest to one client's, on points in increasing order."""
    below, above = _Kinks(-1.0), _Kinks(1.0)  # left and right of the bottom; f_0 is infinite on both sides of 0
    below.push_kink(0.0, math.inf)
    above.push_kink(0.0, math.inf)
    bottoms = []
    for target, gap, least, most in zip(
        np.cumsum(law)[:-1].tolist(), gaps.tolist(), low.tolist(), high.tolist(), strict=False
    ):
        below.moved += least
        above.moved += most
        below.push_kink(target, gap)
        for position, change in below.pop_kinks_of_slope_change(gap):
            above.push_kink(position, change)
        above.push_kink(target, gap)
        for position, change in above.pop_kinks_of_slope_change(gap):
            below.push_kink(position, change)
        bottoms.append(below.nearest_kink_position)
    masses, end = np.empty(len(law)), 1.0
    for j in range(len(law) - 1, 0, -1):
        start = min(max(bottoms[j - 1], end - high[j]), end - low[j])
        masses[j], end = end - start, start
    masses[0] = end
    return np.clip(masses, low, high)


class _Kinks:
    """The places of slope changes on one side of the bottom, with their sizes, nearest first. All can be moved at once."""

    def __init__(self, sign: float) -> None:
        self._sign, self.moved = sign, 0.0
        self._heap: list[tuple[float, float]] = []

    def push_kink(self, position: float, change: float) -> None:
        heapq.heappush(self._heap, (self._sign * (position - self.moved), change))

    @property
    def nearest_kink_position(self) -> float:
        return self._sign * self._heap[0][0] + self.moved

    def pop_kinks_of_slope_change(self, change: float) -> list[tuple[float, float]]:
        """Remove this much change of slope, from the nearest kinks on."""
        kinks = []
        while change > 0.0:
            position, size = self._heap[0]
            part = min(size, change)
            kinks.append((self._sign * position + self.moved, part))
            if size > part:
                heapq.heapreplace(self._heap, (position, size - part))
            else:
                heapq.heappop(self._heap)
            change -= part
        return kinks


@dataclass(frozen=True)
class NearestLaw:
    """A distribution between the bounds, its distance from the client's, and a lower bound for all distributions between them."""

    law: Floats
    distance: float
    bound: float


def nearest_law_between_bounds(law: Floats, distances: Floats, low: Floats, high: Floats) -> NearestLaw:
    """The distribution with low <= q <= high nearest to one client's, on points with these distances between them."""
    scale, size = float(distances.max()), len(law)
    lengths = distances / scale
    edges, costs = _starting_transport_edges(law, lengths), np.where(lengths < _NOTHING, 0.0, lengths)
    for _ in range(_ROUNDS):
        sources, targets = np.nonzero(edges)
        q, cost, potentials = _nearest_law_cost_and_multipliers(
            law, costs[sources, targets], sources, targets, low, high
        )
        lipschitz = (potentials[:, None] + lengths).min(axis=0)
        bound = float(law @ lipschitz - np.maximum(lipschitz * low, lipschitz * high).sum())
        if cost - bound <= _GAP:
            return NearestLaw(q, cost * scale, min(bound, cost) * scale)
        violations = np.where(edges, 0.0, potentials[:, None] - potentials - lengths)
        worst = np.argsort(violations, axis=None)[-_ADDED * size :]
        worst = worst[violations.flat[worst] > 0.0]
        if not len(worst):
            break
        edges.flat[worst] = True
    raise DiscreetError(
        f"the nearest law was not found within {_GAP:g} of the largest distance for {size} points; use fewer points"
    )


def transport_distance(first: Floats, second: Floats, distances: Floats) -> float:
    """W1 between two distributions, each normalised by its own sum."""
    source, target = first / first.sum(), second / second.sum()
    target[np.argmax(target)] += source.sum() - target.sum()  # so that both masses agree to the last digit
    return nearest_law_between_bounds(source, distances, target, target).distance


def _starting_transport_edges(law: Floats, lengths: Floats) -> NDArray[np.bool_]:
    """Edges to the nearest neighbours and back, through the point in the middle, and from every point of a client that has few."""
    size, edges = len(law), np.zeros(lengths.shape, dtype=bool)
    neighbours = np.argpartition(lengths, min(_NEIGHBOURS, size - 1), axis=1)[:, : _NEIGHBOURS + 1]
    edges[np.arange(size)[:, None], neighbours] = True
    edges |= edges.T
    middle = int(np.argmin(lengths.sum(axis=1)))
    edges[middle] = edges[:, middle] = True
    support = np.flatnonzero(law > 0.0)
    if len(support) <= _FEW:
        edges[support] = True
    np.fill_diagonal(edges, val=False)
    return edges


def _nearest_law_cost_and_multipliers(
    law: Floats, costs: Floats, sources: Places, targets: Places, low: Floats, high: Floats
) -> tuple[Floats, float, Floats]:
    """The distribution reached, its cost along these edges, and the multipliers of the balances q + out - in = p."""
    size, edge_count = len(law), len(costs)
    sparse, ones, edge_numbers = scipy.sparse, np.ones(edge_count), np.arange(edge_count)
    flows = sparse.csr_matrix(
        (
            np.concatenate([ones, -ones]),
            (np.concatenate([sources, targets]), np.concatenate([edge_numbers, edge_numbers])),
        ),
        shape=(size, edge_count),
    )
    options: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    optimum = scipy.optimize.linprog(
        np.concatenate([np.zeros(size), costs]),
        A_eq=sparse.hstack([sparse.identity(size), flows]).tocsc(),
        b_eq=law,
        bounds=np.column_stack(
            [np.concatenate([low, np.zeros(edge_count)]), np.concatenate([high, np.full(edge_count, np.inf)])]
        ),
        method="highs",
        options=options,
    )
    if optimum.status != 0:
        raise DiscreetError(f"the transport of a client was not solved: {optimum.message}; its law may be damaged")
    return np.clip(optimum.x[:size], low, high), float(optimum.fun), np.asarray(optimum.eqlin.marginals)


@final
@dataclass(frozen=True, eq=False)
class TransportAtoms(OutcomeAtoms):
    """Outcomes at points, by which clients name them and which are released; their numbers if only distances are known."""

    points: Floats | None = field(default=None, kw_only=True)

    @cached_property
    def _outcome_number_by_point(self) -> dict[Any, int]:
        """The number of each point."""
        points: Any = () if self.points is None else self.points.tolist()
        return {tuple(point) if isinstance(point, list) else point: number for number, point in enumerate(points)}

    def _outcome_numbers_of_keys(self, labels: Sequence[Any]) -> Integers:
        """The outcome numbers of the keys of a dict: points, in the form in which they are released, or outcome numbers."""
        if self.points is None:
            return self.family.domain.outcome_numbers_of_labels(labels)
        unknown_points = [label for label in labels if label not in self._outcome_number_by_point]
        if unknown_points:
            raise DiscreetError(
                f"unknown outcomes: {first_few_as_text(unknown_points)}; "
                f"outcomes are the points {first_few_as_text(self._outcome_number_by_point)}"
            )
        return np.array([self._outcome_number_by_point[label] for label in labels], dtype=np.int64)

    def read_laws(self, p: LawLike, name: str = "p") -> Floats:
        """Distributions (..., k) in the order of the outcomes, checked."""
        laws = self.family.as_rows(values_in_outcome_order(p, self.size, self._outcome_numbers_of_keys, name), name)
        refuse_bad_laws(laws)
        return laws

    def read_clients(self, p: Any) -> ClientBatch[Floats]:
        laws = self.read_laws(p)
        return ClientBatch(laws.reshape(-1, self.size), laws.shape[:-1])

    def client_law_in_constant_time(self, p: Any) -> Floats:
        return self.read_laws(p)

    def samples_in_user_form(self, samples: NDArray[Any], shape: tuple[int, ...]) -> Any:
        numbers = samples.reshape(shape)
        points: NDArray[Any] = np.asarray(numbers if self.points is None else self.points[numbers])
        return points if points.ndim else points.item()


@final
class TransportSampler(OwnSampler):
    """The private sampler with the smallest worst-case Wasserstein-1 distance between a client's distribution and its output.

    Args:
        points: the outcomes as numbers on a line, (n,), up to 2,000 of them; or as rows of coordinates (n, dim), up to 1,024. Grids and other
            symmetric sets take the least time.
        metric: in place of points, all distances between the outcomes, (n, n), up to 1,024 of them.
        norm: the distance between rows of coordinates: 1 for the sum along the axes, 2 (the default) for Euclidean distance, inf for the
            longest axis.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual.
        privacy: `Pure(epsilon)` in place of epsilon.
        floor: a floor to take in place of the best one, for each outcome; agreements state it, so that nobody has to solve for it again.

    Raises:
        DiscreetError: for invalid or repeated points, a matrix that is not a metric, an epsilon out of range, or a notion other than pure
            epsilon.

    Example:
        >>> sampler = TransportSampler([0, 15, 30, 45, 60], epsilon=1.0)
        >>> minutes = sampler.release([0.0, 0.1, 0.8, 0.1, 0.0])
    """

    name = "transport"

    _SEALED: ClassVar[frozenset[str]] = frozenset({"with_samples", "release", "_floor_and_ceiling"})

    def __init__(
        self,
        points: ArrayLike | None = None,
        *,
        metric: ArrayLike | None = None,
        norm: float | None = None,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        floor: ArrayLike | None = None,
    ) -> None:
        notion = chosen_privacy(epsilon, privacy)
        if not isinstance(notion, Pure):
            raise DiscreetError(
                f"privacy = {notion!r}: TransportSampler is for pure epsilon; give epsilon=, or use OptimalSampler, which ignores distances"
            )
        self._space = make_metric_space(points, metric, norm)
        positions = np.empty(self._space.size, dtype=np.intp)
        positions[self._space.order] = np.arange(self._space.size)
        self._back = positions
        untyped_points: Any = points
        self._points = None if points is None else np.array(untyped_points, dtype=np.float64)
        self._metric = None if metric is None else as_floats(metric, "metric").copy()
        self._norm = norm
        self._given_floor = None if floor is None else _require_floor_masses(floor, self._space.size)
        super().__init__(Simplex(self._space.size), privacy=notion)
        object.__setattr__(self, "_carrier", TransportAtoms(self.family, points=self._points))

    def _refuse_law_unfit_for_release(self) -> None:
        """Checks nothing yet: the floor takes seconds to find, and is found when it is needed."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The points or the distances, the norm, and the floor, as an agreement states them."""
        array = self._metric if self._points is None else self._points
        assert array is not None
        if array.size + self._space.size > _MOST_AGREED:
            raise DiscreetError(
                f"an agreement lists at most {_MOST_AGREED:,} numbers, and these are more; take fewer points"
            )
        keyword = "metric" if self._points is None else "points"
        norm = {} if self._norm is None else {"norm": "inf" if math.isinf(self._norm) else self._norm}
        return {keyword: array.tolist(), **norm, "floor": self.floor.tolist()}

    @classmethod
    def from_parameters(cls, family: FiniteFamily, privacy: Privacy, parameters: Mapping[str, Any]) -> Self:
        check_kind("parameters", parameters, Mapping, "pass what the property parameters gives")
        norm = parameters.get("norm")
        sampler = cls(privacy=privacy, **{**parameters, "norm": math.inf if norm == "inf" else norm})
        if sampler.family != family:
            raise DiscreetError(
                f"family = {family!r} is not {sampler.family!r}, the outcomes of these points by number"
            )
        return sampler

    def with_privacy(self, privacy: Privacy) -> Self:
        return type(self)(self._points, metric=self._metric, norm=self._norm, privacy=privacy)

    def with_samples(self, samples: int) -> ComposedSampler:
        """Not for this sampler: it releases one sample of each client.

        Args:
            samples: how many samples of each client.

        Returns:
            Nothing.

        Raises:
            DiscreetError: in every case.
        """
        raise DiscreetError(
            f"size = {samples!r}: TransportSampler releases one sample of each client; leave size out, or make a sampler with an equal "
            "share of epsilon and release with it so many times"
        )

    @overload
    def release(self, p: OneLaw, *, rng: Rng = None, constant_time: bool = False) -> float | NDArray[Any]: ...
    @overload
    def release(self, p: ManyLaws, *, rng: Rng = None) -> NDArray[Any]: ...
    @overload
    def release(
        self, p: LawLike | Client | Sequence[Client], *, rng: Rng = None, constant_time: bool = False
    ) -> float | NDArray[Any]: ...
    @overload
    def release(self, p: LawLike | Client | Sequence[Client], *, size: int, rng: Rng = None) -> NDArray[Any]: ...
    def release(self, p: Any, *, rng: Rng = None, constant_time: bool = False, size: int | None = None) -> Any:
        """One private sample for each client: the point itself if points were given, else the number of the outcome.

        Args:
            p: the distribution of one client or of many, (k,) or (..., k), or a dict by point.
            size: not supported; for several samples of a client under one budget use `OptimalSampler` or `LinearSampler`.
            rng: a seeded generator, for experiments; the release is then NOT private, and warns so.
            constant_time: not supported: finding the nearest law takes longer for some clients.

        Returns:
            A number of the line, a point (dim,), or the number of the outcome; for many clients an array of them.

        Raises:
            DiscreetError: if p is not a distribution, and for a size, before anything is drawn.
        """
        if size is not None:
            self.with_samples(size)
        return super().release(p, rng=rng, constant_time=constant_time)

    @cached_property
    def _best_floor(self) -> Floor:
        if self.epsilon > _LARGE:
            return uniform_transport_floor(self._space, self._capped_exp_of_epsilon, _LEAST)
        return best_transport_floor(self._space, self._capped_exp_of_epsilon)

    @cached_property
    def _given_or_best_floor(self) -> Floor:
        if self._given_floor is None:
            return self._best_floor
        return floor_of_given_masses(self._given_floor[self._space.order], self._space, self._capped_exp_of_epsilon)

    @property
    def _capped_exp_of_epsilon(self) -> float:
        """e^epsilon, up to an epsilon of 554, where its reciprocal still differs from 0."""
        return math.exp(min(self.epsilon, STEEPEST_EXPONENT))

    @property
    def floor(self) -> Floats:
        """m, in the order of the outcomes: every output distribution lies between m and e^epsilon m."""
        return self._given_or_best_floor.masses[self._back]

    @property
    def worst(self) -> float:
        """The largest Wasserstein-1 distance between a client's distribution and its output."""
        return self._given_or_best_floor.value

    @property
    def bound(self) -> float:
        """A lower bound on the worst-case distance of every epsilon-LDP sampler; within 1e-6 of `worst`, or 1e-9 of the largest distance.

        Up to an epsilon of 30 it is computed from the multipliers of the linear programme and the distances, in floating point, and not taken
        from the solver. Above 30 it has a closed form.
        """
        return self._best_floor.bound

    @cached_property
    def _floor_and_ceiling(self) -> tuple[Floats, Floats]:
        lower = np.maximum(self.floor, _LEAST)
        upper = np.minimum(np.maximum(self.floor * self._capped_exp_of_epsilon, lower), 1.0)
        return lower, upper

    def law(self, p: Floats) -> Floats:
        """The nearest law to p between m and e^epsilon m, for one client.

        Args:
            p: probabilities (k,) in the order of the outcomes.

        Returns:
            k probabilities.

        Raises:
            DiscreetError: if it was not found. A release is then a draw of the reference.
        """
        low, high = (bound[self._space.order] for bound in self._floor_and_ceiling)
        row = p[self._space.order]
        if self._space.gaps is None:
            nearest = nearest_law_between_bounds(row / row.sum(), self._space.distances, low, high).law
        else:
            nearest = nearest_law_on_line(row, self._space.gaps, low, high)
        return np.asarray((nearest / nearest.sum())[self._back])

    def distance(self, p: LawLike, q: LawLike) -> float | Floats:
        """The Wasserstein-1 distance between distributions on these points.

        Args:
            p: distributions (k,) or (n, k).
            q: as many distributions.

        Returns:
            One number, or one for each pair.

        Raises:
            DiscreetError: if p or q is not a distribution.
        """
        assert isinstance(self._carrier, TransportAtoms)
        first, second = self._carrier.read_laws(p), self._carrier.read_laws(q, "q")
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            raise DiscreetError(
                f"p has shape {first.shape} and q {second.shape}; give as many laws of one as of the other, or one alone"
            ) from None
        shape = first.shape[:-1]
        rows = [laws.reshape(-1, self._space.size)[:, self._space.order] for laws in (first, second)]
        if self._space.gaps is not None:
            distances = np.abs(np.cumsum(rows[0] - rows[1], axis=1))[:, :-1] @ self._space.gaps
        else:
            distances = np.array(
                [
                    transport_distance(source, target, self._space.distances)
                    for source, target in zip(*rows, strict=True)
                ]
            )
        return distances.reshape(shape) if shape else float(distances[0])

    def __repr__(self) -> str:
        kind = "metric on" if self._points is None else "points on a line," if self._points.ndim == 1 else "points,"
        return f"TransportSampler(<{kind} {self._space.size}>, epsilon={self.epsilon:g})"

    def _comparison_key(self) -> tuple[Any, ...]:
        arrays = (self._points, self._metric, self._given_floor)
        return (self.privacy, self._norm, *(None if array is None else array.tobytes() for array in arrays))


BUILT_IN[TransportSampler.name] = InstalledMechanism(TransportSampler, "discreet", "1")


def _require_floor_masses(floor: ArrayLike, size: int) -> Floats:
    """A floor for each outcome, with a mass of at most 1."""
    masses = as_floats(floor, "floor")
    if masses.shape != (size,):
        raise DiscreetError(f"floor has shape {masses.shape}; it is one number for each of the {size} outcomes")
    refuse_bad_entries(masses, "floor")
    if not 0.0 < masses.sum() <= 1.0 + 1e-9:
        raise DiscreetError(f"floor sums to {masses.sum():g}; its sum is in (0, 1]")
    return masses.copy()
