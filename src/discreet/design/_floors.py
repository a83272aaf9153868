"""Example clients, the floors of samplers, the cost of a floor for the clients, and a certificate that bounds every sampler from below.

Example clients are stored by their non-zeros, so that work and memory grow with their supports. Outcomes outside all supports are
exchangeable for every client, so the best floor (convex, hence symmetrised for free) has one value on all of them. They need no variables.
Below, `outcome` numbers the K outcomes in some support; `seen_outcomes` are their numbers in the domain.

**On an interval** clients are distributions on its cells (`client_laws_on_cells`). A bound holds for them only if their masses on the cells
are right. A mixture, a table, a `BoundedDensity` and a scipy distribution with a checked distribution function enclose their masses
(`discreet.families._integration`). The certificate then holds for every distribution within the enclosures. A bare function is unknown
between the points of evaluation. Its masses are integrals with an estimated error, so `bound` is an estimate, without a certificate.

The theorems below make the best sampler for given clients a convex problem. Outcomes are finite, E = e^eps, |m| is the mass of a measure m,
and F(P; m) = min D_f(P||q) over distributions q with m <= q <= E m.

**T1 (one measure).** A sampler Q is eps-LDP exactly when m <= Q(.|P) <= E m for one measure m and all P. *Proof.* Take m(x) = inf_P Q(x|P):
then Q(x|P) <= E Q(x|P') for all P' says Q(x|P) <= E m(x). Conversely two distributions between m and E m have ratios at most E.   QED
Hence the least mean sum_j w_j D_f(P_j||Q(.|P_j)) over ALL eps-LDP samplers is min_m sum_j w_j F(P_j; m): Q(.|P_j) competes in the minimum F,
and the minimisers of F form a sampler. F is convex in (P, m) jointly, because q f(p/q) is convex in (p, q) and m <= q <= E m, |q| = 1 is a
convex set. So every local minimum is global. The minimiser is clip(P/r, m, E m) for every f at once [paper, Prop. C.8].

**A design is a family.** With b = |m|, mu = m/b and alpha = (1/b - 1)/(E - 1), the box of Q* for the band 0 <= dP/dmu <= 1/alpha has b =
1/(alpha E + 1 - alpha). So `OptimalSampler` on that band is the sampler of the floor m. (1/E < b < 1 says 0 < alpha < 1.)

**T2 (everybody).** Let t(m) = min_x min(E m_x, 1 - |m| + m_x). The worst case of the floor m over all distributions is t f(1/t) + (1-t)
f(0) for every f: KL -log t, TV 1 - t, squared Hellinger 2 - 2 sqrt t, chi-squared 1/t - 1. *Proof.* F is convex in P, so the worst client
is a point mass, at x say. A distribution q between m and E m has D_f = q_x f(1/q_x) + (1 - q_x) f(0), which falls in q_x: its derivative at
s = 1/q_x is f(s) - s f'(s) - f(0), minus the excess of f(0) over the tangent at s. And q_x can reach min(E m_x, 1 - |m| + m_x).   QED
So "worst case at most that of t0" is the linear condition E m_x >= t0, |m| - m_x <= 1 - t0 for all x. Summed over x these give t0 <= t* =
E/(E + k - 1), with equality only for m_x = 1/(E + k - 1). So the floor of Q* of the simplex, which the linear sampler has too, is the only
one with t = t*. No other floor has the best worst case if that is finite and falls strictly in t at t*, as for the four above. (A
hockey-stick divergence may be 0 for many floors, and reverse KL is infinite for all.) A floor with a better mean has a smaller t. `keep` =
t0/t*.

**T3 (how spread are clients).** Take clients that are uniform on s of the k outcomes, and a uniform floor of mass b. A client's outcomes
are released with total probability t = min(s E b/k, 1 - (k - s) b/k), and D_f = t f(1/t) + (1-t) f(0) falls in t. The first term rises with
b and the second falls, so the best b is where they meet: b = k/(s E + k - s), the box of the band 0 <= dP/dmu <= k/s, and TV = (k - s)/(s E
+ k - s). s = 1 is Q* of the simplex. Husain's mollifier has b = e^(-eps/2), which is this b for s = k/(e^(eps/2) + 1). If this s is at
least 1, the mollifier is exactly Q* of the band 0 <= dP/dmu <= e^(eps/2) + 1. (If it is less, no distribution reaches that upper bound, and
Q* of the band is that of the simplex.)

**T4 (no outcome is special).** If every permutation of the outcomes preserves the set of clients with their weights, the best m is uniform.
*Proof.* The mean V has V(m o pi) = V(m); averaged over all pi, V(average) <= V(m) by convexity, and the average is uniform.   QED
For the same reason outcomes outside all supports share one value of m.

**The cost of a floor** is F(P; m) = D_f(P || clip(P/r, m, e^eps m)) for each client, computed from its support alone. The mass G(a) = sum_x
clip(a p_x, m_x, E m_x) is non-decreasing and piecewise linear in a = 1/r. Newton's method on all clients at once finds the piece on which G =
1, between the largest a known to be too small and the smallest known to be too large. If G stays below 1 for every a, the client's support is
too small: it gets E m there, and the rest goes to other outcomes.

**T5 (certificate).** A lower bound for every epsilon-LDP sampler and given clients. Give each client a number l_j, and each outcome in its
support a line below f: f(t) >= i_jx + s_jx t for all t >= 0. For an outcome outside the support q f(0/q) = q f(0), so i = f(0) and s is not
needed. For every distribution q between m and E m,

    sum_x q_x f(p_jx/q_x) >= sum_x p_jx s_jx + q_x i_jx = sum_x p_jx s_jx - l_j + sum_x q_x (i_jx + l_j)        because |q| = 1
                          >= sum_x p_jx s_jx - l_j + sum_x m_x c_jx, c = i + l where that is positive, E (i + l) where it is negative.

Averaged over the clients this is linear in m: no sampler with floor m does better than (constant) + sum_x C_x m_x. It remains to minimise a
linear function over the allowed floors: m = y + v with v >= 0, y >= t0/E, |v| + (k-1) y <= 1 - t0 and 1/E <= |m| <= 1. The mass |v| sits
where C is least. That leaves two unknowns, |v| and y, and a polygon whose corners are tried in rationals.

If masses are known only up to an enclosure a_jx <= p_jx <= b_jx, the same lines bound every distribution within it: for any number c_j

    sum_x p_jx s_jx = c_j + sum_x p_jx (s_jx - c_j) >= c_j + sum_x a_jx (s_jx - c_j)_+ - b_jx (c_j - s_jx)_+        because |p_j| = 1,

and the best c_j is the slope at which a distribution that fills up its lowest slopes first runs out of mass. An outcome whose mass may be
positive but below what floats resolve gets the line through (0, f(0) - d) and (t, f(t)) for a tiny t, d = f(0) - f(t), which costs at most E
d.

`lower_bound` computes the bound in floats and subtracts the possible rounding: a sum of N terms in any order is within (N - 1) u / (1 - (N -
1) u) of exact, relative to the sum of their sizes, u = 2^-53. `exact` computes it in rationals, after checking in rationals that every line
lies below f.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.numerics import exp_lower, exp_upper
from discreet._base.quadrature import Panels
from discreet.divergences import CHECKED_IN_RATIONALS, is_line_below_generator
from discreet.errors import DiscreetError
from discreet.families import (
    Band,
    Cartesian,
    ContinuousFamily,
    FiniteFamily,
    Identity,
    IntervalMasses,
    as_density,
    as_floats,
    error_for_client_zero_at_every_point,
    panel_masses,
    raise_error_for_bad_row,
    refuse_bad_entries,
    rows_are_laws,
    warn_of_coarse_masses,
)
from discreet.projection import NEGLIGIBLE

_LEAST_OF_HIGH = 1e-6
_SAME = 1e-12  # share of the interval: edges closer than that coincide
_INSIDE = 2.0**-40  # distance of alpha from 0 and 1, where a box contains only one distribution


def band_of_floor(floor: NDArray[np.float64], epsilon: float, outcomes: FiniteFamily) -> Band:
    """The band whose Q* at epsilon is the sampler of the floor."""
    alpha = (1.0 / float(floor.sum()) - 1.0) / math.expm1(epsilon)  # between 0 and 1 even where |m| rounds to 1
    alpha = min(max(alpha, _INSIDE), 1.0 - _INSIDE)
    return Band(floor, lower=0.0, upper=1.0 / alpha, domain=outcomes.domain, any_client=True)


@dataclass(frozen=True)
class AllowedFloors:
    """The allowed floors on `size` outcomes at `epsilon` if `keep` of the best worst case must remain."""

    size: int
    epsilon: float
    keep: float

    @property
    def exp_epsilon_upper_bound(self) -> Fraction:
        """A rational of at least e^eps."""
        return exp_upper(self.epsilon)

    def least_linear_value(self, spread: Fraction, everywhere: Fraction) -> Fraction:
        """A lower bound on spread |v| + everywhere y over the allowed floors, by the corners of their polygon."""
        k, high, low = self.size, self.exp_epsilon_upper_bound, exp_lower(self.epsilon)
        keep = Fraction(self.keep)
        most = 1 - keep * low / (low + k - 1)  # bounds are moved outwards by the width of the bracket of e^eps
        sides = [  # (a, b, c): a |v| + b y >= c
            (Fraction(1), Fraction(0), Fraction(0)),
            (Fraction(0), Fraction(1), keep / (high + k - 1)),
            (Fraction(-1), Fraction(1 - k), -most),
            (Fraction(1), Fraction(k), 1 / high),
            (Fraction(-1), Fraction(-k), Fraction(-1)),
        ]
        values = []
        for (a, b, c), (d, e, f) in itertools.combinations(sides, 2):
            determinant = a * e - b * d
            if determinant:
                v, y = (c * e - b * f) / determinant, (a * f - c * d) / determinant
                if all(p * v + q * y >= r for p, q, r in sides):
                    values.append(spread * v + everywhere * y)
        return min(values)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExampleClients:
    """n distributions on `size` outcomes with weights (n,) that sum to one; client j's entries begin at `starts[j]`."""

    size: int
    starts: Integers
    outcome: NDArray[np.int32]
    mass: Floats
    weight: Floats
    seen_outcomes: Integers

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def support_sizes(self) -> Integers:
        """The size of each client's support (n,)."""
        return np.diff(np.append(self.starts, self.mass.size))

    @cached_property
    def client_of_entry(self) -> NDArray[np.int32]:
        """The client of every entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.support_sizes)

    @cached_property
    def partial_support_indicators(self) -> Floats:
        """1 for clients that leave outcomes out, 0 for clients with full support."""
        return np.asarray(self.support_sizes < self.size, dtype=np.float64)

    def sum_by_client(self, values: Floats) -> Floats:
        """Sums of entries over each client (n,)."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def sum_by_outcome(self, values: Floats) -> Floats:
        """Sums of entries over each seen outcome (K,)."""
        return np.asarray(
            np.bincount(self.outcome, weights=values, minlength=self.seen_outcomes.size), dtype=np.float64
        )

    def slice_clients_by_entry_count(self, entries: int) -> list[slice]:
        """Slices of clients with about that many entries each."""
        cuts = np.searchsorted(self.starts, np.arange(entries, self.mass.size, entries))
        return [slice(a, b) for a, b in pairwise(np.unique([0, *cuts, len(self)]).tolist())]

    def entry_slice(self, rows: slice) -> slice:
        """The entries of a slice of clients."""
        ends = self.starts[rows.stop] if rows.stop < len(self) else self.mass.size
        return slice(int(self.starts[rows.start]), int(ends))

    def iterate_client_parts(self, entries: int = 1 << 17) -> "Iterator[ExampleClients]":
        """The same clients in parts."""
        for rows in self.slice_clients_by_entry_count(entries):
            span = self.entry_slice(rows)
            starts = self.starts[rows] - span.start
            yield ExampleClients(
                self.size, starts, self.outcome[span], self.mass[span], self.weight[rows], self.seen_outcomes
            )

    def dense_laws(self) -> Floats:
        """The distributions (n, size)."""
        laws = np.zeros((len(self), self.size))
        laws[self.client_of_entry, self.seen_outcomes[self.outcome]] = self.mass
        return laws

    def extend_to_unseen_outcomes(self, on_seen: Floats, elsewhere: float) -> Floats:
        """Values of the seen outcomes as a vector over the domain, with one value on all others."""
        values = np.full(self.size, elsewhere)
        values[self.seen_outcomes] = on_seen
        return values


def as_example_clients(clients: Any, weights: ArrayLike | None, size: int, *, name: str = "clients") -> ExampleClients:
    """Distributions (n, size), or a scipy.sparse matrix of counts or probabilities, as `ExampleClients`; other input is an error."""
    read_entries = _read_sparse_client_entries if hasattr(clients, "tocsr") else _read_dense_client_entries
    starts, outcome, mass = read_entries(clients, size, name)
    weight, counts = _normalise_weights(weights, starts.size - 1), np.diff(starts)
    is_counted = weight > 0.0
    if not is_counted.all():
        entries = np.repeat(is_counted, counts)
        outcome, mass, counts, weight = outcome[entries], mass[entries], counts[is_counted], weight[is_counted]
    occurs = np.zeros(size, dtype=bool)
    occurs[outcome] = True
    numbers = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    first_entries = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return ExampleClients(size, first_entries, numbers[outcome], mass, weight, np.flatnonzero(occurs))


def _read_dense_client_entries(clients: Any, size: int, name: str) -> tuple[Integers, Integers, Floats]:
    laws = as_floats(clients, name, size)
    if laws.ndim != 2 or not len(laws):
        raise DiscreetError(
            f"{name} has shape {laws.shape}; give one law a row, (n, {size}) with n at least 1, or a sparse matrix of counts"
        )
    is_law = rows_are_laws(laws)
    if not is_law.all():
        raise_error_for_bad_row(laws, int(np.argmin(is_law)), name)
    in_support = laws > NEGLIGIBLE
    counts = in_support.sum(axis=1)
    mass = laws[in_support]
    return (
        np.concatenate([[0], np.cumsum(counts)]),
        np.nonzero(in_support)[1],
        mass / np.repeat(laws.sum(axis=1), counts),
    )


def _read_sparse_client_entries(clients: Any, size: int, name: str) -> tuple[Integers, Integers, Floats]:
    """Rows of a sparse matrix, each divided by its sum."""
    if clients.ndim != 2 or clients.shape[1] != size or not clients.shape[0]:
        raise DiscreetError(f"{name} has shape {clients.shape}; give one row a client, (n, {size}) with n at least 1")
    rows = clients.tocsr().astype(np.float64)
    if rows is clients:
        rows = rows.copy()
    rows.sum_duplicates()
    is_bad = ~(np.isfinite(rows.data) & (rows.data >= 0.0))
    if is_bad.any():
        entry = int(np.argmax(is_bad))
        row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        dense = np.asarray(rows[[row]].todense()).ravel()
        refuse_bad_entries(dense, f"{name}[{row}]")
    largest = rows.max(axis=1).toarray().ravel()
    if not (largest > 0.0).all():
        raise DiscreetError(
            f"{name}[{int(np.argmin(largest > 0.0))}] is all zero: a client without records has no law; leave it out"
        )
    counts = np.diff(rows.indptr)
    rows.data /= np.repeat(largest, counts)  # so that no sum overflows
    rows.data /= np.repeat(np.add.reduceat(rows.data, rows.indptr[:-1]), counts)
    rows.data[rows.data <= NEGLIGIBLE] = 0.0
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows.indptr.astype(np.int64), rows.indices, rows.data


def _normalise_weights(weights: ArrayLike | None, number: int) -> Floats:
    if weights is None:
        return np.full(number, 1.0 / number)
    values = as_floats(weights, "weights")
    if values.shape != (number,):
        raise DiscreetError(f"weights has shape {values.shape}; give one for each of the {number} clients")
    refuse_bad_entries(values, "weights")
    if not values.max() > 0.0:
        raise DiscreetError("weights are all zero; give some client a positive one")
    values = values / values.max()
    return np.asarray(values / values.sum())


def equal_mass_cell_edges(family: ContinuousFamily, count: int) -> Floats:
    """The edges of at least that many cells of about equal reference mass, which cover the family's interval."""
    if family.dim != 1 or not np.isfinite(family.box_with_infinite_ends).all():
        raise DiscreetError(
            f"family = {family!r} is not on an interval; a design of a density is for one dimension and finite ends: "
            "DensityBand(density, box=(low, high), ...)"
        )
    partition = family.cells(count)
    (low, high), panels = family.box_with_infinite_ends[0], partition.panels
    inner = np.concatenate(
        [family.chart.points_at_coordinates(panels.lower)[:, 0], family.chart.points_at_coordinates(panels.upper)[:, 0]]
    )
    edges = np.unique(np.concatenate([[low, high], np.clip(inner, low, high)]))
    is_apart = np.append(True, np.diff(edges) > _SAME * (high - low))
    edges = edges[is_apart]
    edges[-1] = high
    return np.asarray(edges)


@dataclass(frozen=True, eq=False)
class CellLaws:
    """Examples on cells (n, k), bounds of their masses, and the numbers of the examples whose masses are estimates."""

    laws: Any
    mass_bounds: tuple[Floats, Floats] | None = None
    estimated: tuple[int, ...] = ()


def client_laws_on_cells(clients: Any, edges: Floats) -> CellLaws:
    """Clients as distributions on the cells: an array of masses (n, k), or a list whose entries are densities or records."""
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
    masses = [
        _cell_masses_of_records(client, f"clients[{number}]", edges)
        if isinstance(client, (list, tuple, np.ndarray))
        else _cell_masses_of_density(client, f"clients[{number}]", edges)
        for number, client in enumerate(clients)
    ]
    mass, low, high = (np.stack([getattr(client, side) for client in masses]) for side in ("mass", "low", "high"))
    laws = np.maximum(mass, _LEAST_OF_HIGH * high)  # so that masses that count as zero are nearly zero
    laws /= laws.sum(axis=1, keepdims=True)
    return CellLaws(laws, (low, high), tuple(number for number, client in enumerate(masses) if not client.is_proved))


def _cell_masses_of_records(points: Any, name: str, edges: Floats) -> IntervalMasses:
    """The relative frequencies of a client's records."""
    try:
        values = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"{name} is neither a density nor a list of numbers") from None
    if values.ndim != 1 or not values.size:
        raise DiscreetError(f"{name} has shape {values.shape}; give the client's records, (n,) with n at least 1")
    is_inside = (values >= edges[0]) & (values <= edges[-1])
    if not is_inside.all():
        raise DiscreetError(
            f"{name} holds {values[int(np.argmin(is_inside))]:g}, which is not in [{edges[0]:g}, {edges[-1]:g}]; clip it, or take a wider box"
        )
    shares = np.histogram(values, edges)[0] / values.size
    return IntervalMasses.from_mass_and_error_bound(shares, 2.0**-52 * shares)


def _cell_masses_of_density(client: Any, name: str, edges: Floats) -> IntervalMasses:
    """The shares of a density in the cells of the interval: enclosed if it knows its distribution function, else estimated."""
    density = as_density(client, 1, name)
    enclosure: IntervalMasses | None = density.interval_masses(edges) if hasattr(density, "interval_masses") else None
    if enclosure is not None and enclosure.has_enough_mass:
        return enclosure.as_shares()
    masses = density.approximate_interval_masses(edges) if hasattr(density, "approximate_interval_masses") else None
    if masses is not None and masses.sum() > 0.0:
        return IntervalMasses.from_mass_without_error_bound(masses / masses.sum())
    panels = Panels.from_edges([edges])
    integrals = panel_masses(density, panels, Cartesian((Identity(),), (edges,), (edges,)))
    if integrals is None:
        raise error_for_client_zero_at_every_point(name)
    warn_of_coarse_masses(name, integrals.error)
    return IntervalMasses.from_mass_without_error_bound(integrals.masses / integrals.masses.sum())


_STEPS = 200
_ROUNDING = 1e-14


def outputs_on_and_off_support(
    examples: ExampleClients, floor: Floats, total: float, ratio: float
) -> tuple[Floats, Floats]:
    """q of every entry, and the output mass outside each client's support (n,), for a floor of the seen outcomes."""
    low = floor[examples.outcome]
    high = ratio * low
    rest = np.maximum(total - examples.sum_by_client(low), 0.0) * examples.partial_support_indicators
    p, client = examples.mass, examples.client_of_entry
    at_most = examples.sum_by_client(high) + rest
    at_ceiling = at_most <= 1.0
    too_small = np.minimum.reduceat(low / p, examples.starts)  # all entries are at the floor, and |m| <= 1
    too_large = np.maximum.reduceat(high / p, examples.starts)  # all entries are at the ceiling
    slope = np.clip(1.0, too_small, too_large)
    is_settled = at_ceiling.copy()
    for _ in range(_STEPS):
        value = slope[client] * p
        q = np.clip(value, low, high)
        middle = examples.sum_by_client(np.where(q == value, p, 0.0))
        excess = examples.sum_by_client(q) + rest - 1.0
        is_settled |= np.abs(excess) <= _ROUNDING
        if is_settled.all():
            break
        too_large = np.where(excess > 0.0, np.minimum(slope, too_large), too_large)
        too_small = np.where(excess < 0.0, np.maximum(slope, too_small), too_small)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = slope - excess / middle
        usable = (middle > 0.0) & (step > too_small) & (step < too_large)
        midpoint = np.sqrt(too_small) * np.sqrt(too_large)
        next_slope = np.where(usable, step, midpoint)
        is_stuck = np.abs(next_slope - slope) <= 4e-16 * slope
        is_settled |= is_stuck
        slope = np.where(is_settled, slope, next_slope)
    q = np.where(at_ceiling[client], high, np.clip(slope[client] * p, low, high))
    return q, np.where(
        at_ceiling, np.maximum(1.0 - examples.sum_by_client(q), 0.0), rest
    ) * examples.partial_support_indicators


_UNIT = 2.0**-53
PART = 1 << 17  # entries in one pass


@dataclass(frozen=True, eq=False)
class DesignCertificate:
    """Multipliers (n,) and lines (entries,) that bound the mean of every epsilon-LDP sampler from below.

    `enclosure`: bounds (entries,) of the examples' masses, and the c_j (n,); None if the masses are exact.
    """

    examples: ExampleClients
    floors: AllowedFloors
    multiplier: Floats
    slope: Floats
    intercept: Floats
    at_zero: float
    name: str
    constant: float = 0.0
    enclosure: tuple[Floats, Floats, Floats] | None = None

    def __str__(self) -> str:
        examples, floors = self.examples, self.floors
        masses = "exact" if self.enclosure is None else "enclosed between bounds"
        check = "; exact() checks it in rationals" if self.name in CHECKED_IN_RATIONALS else ""
        rows = {
            "lower bound": f"{self.lower_bound():.8g}, of the mean {self.name} under every sampler",
            "samplers": f"epsilon = {floors.epsilon:g}, at least {floors.keep:g} of the best worst case kept",
            "clients": f"{len(examples):,} on {examples.size:,} outcomes; their masses are {masses}",
            "proof": f"{self.multiplier.size:,} multipliers, {self.slope.size:,} lines below f{check}",
        }
        return "\n".join(f"{name:<13}{text}" for name, text in rows.items())

    def extend_to_enclosures(self, least: Floats, most: Floats, penalty: float) -> "DesignCertificate":
        """The certificate for all examples with masses (entries,) between these bounds; `penalty` pays for outcomes of nearly zero mass."""
        constant = math.nextafter(self.constant - penalty, -math.inf) if penalty else self.constant
        centre = _last_slopes_of_greedy_filling(self.examples, self.slope, least, most)
        return replace(self, constant=constant, enclosure=(least, most, centre))

    def lower_bound(self) -> float:
        """A float that is at most the exact bound."""
        examples, growth = self.examples, math.nextafter(float(self.floors.exp_epsilon_upper_bound), math.inf)
        terms = examples.mass.size + 2 * len(examples)
        seen_count = examples.seen_outcomes.size
        price, price_size = np.zeros(seen_count), np.zeros(seen_count)
        idle, idle_size, gain, gain_size = (0.0,) * 4
        for rows, part in zip(
            examples.slice_clients_by_entry_count(PART), examples.iterate_client_parts(PART), strict=True
        ):
            entries, multiplier = examples.entry_slice(rows), self.multiplier[rows]
            client, weight = part.client_of_entry, part.weight
            entry_prices = _costs_per_floor_unit_rounded_down(self.intercept[entries], multiplier[client], growth)
            rest_prices = _costs_per_floor_unit_rounded_down(np.full(len(part), self.at_zero), multiplier, growth)
            price += part.sum_by_outcome(weight[client] * (entry_prices - rest_prices[client]))
            price_size += part.sum_by_outcome(weight[client] * (np.abs(entry_prices) + np.abs(rest_prices[client])))
            idle, idle_size = idle + float(weight @ rest_prices), idle_size + float(weight @ np.abs(rest_prices))
            centre = 0.0 if self.enclosure is None else self.enclosure[2][rows]
            entry_gains = weight[client] * self._entry_gain_lower_bounds(entries, client, rows)
            payments = weight * (multiplier - centre)
            gain += float(entry_gains.sum() - payments.sum())
            gain_size += float(np.abs(entry_gains).sum() + np.abs(payments).sum())
        unseen_price = float(_lower_bound_of_computed_sum(idle, idle_size, terms))
        seen_prices = _lower_bound_of_computed_sum(price, price_size, terms) + unseen_price
        seen_prices -= 2.0 * _UNIT * (np.abs(seen_prices) + abs(unseen_price))
        unseen_count = examples.size - seen_count
        spread = min(float(seen_prices.min()), unseen_price) if unseen_count else float(seen_prices.min())
        everywhere = float(
            _lower_bound_of_computed_sum(
                seen_prices.sum() + unseen_count * unseen_price,
                np.abs(seen_prices).sum() + unseen_count * abs(unseen_price),
                seen_count,
            )
        )
        gain_bound = float(_lower_bound_of_computed_sum(gain, gain_size, terms))
        if not all(map(math.isfinite, (spread, everywhere, gain_bound))):  # a sum overflows, so nothing is proved
            return -math.inf
        bound = self.floors.least_linear_value(Fraction(spread), Fraction(everywhere))
        bound += Fraction(gain_bound) + Fraction(self.constant)
        return math.nextafter(float(bound), -math.inf)

    def _entry_gain_lower_bounds(self, entries: slice, client: NDArray[np.int32], rows: slice) -> Floats:
        """A lower bound of p (s - c) of each entry, rounding aside, over all p within its enclosure."""
        if self.enclosure is None:
            return np.asarray(self.examples.mass[entries] * self.slope[entries])
        least, most, centre = self.enclosure
        excess = self.slope[entries] - centre[rows][client]
        return np.asarray(np.where(excess > 0.0, least[entries], most[entries]) * excess)

    def exact(self) -> Fraction:
        """The bound in rationals. It visits every entry in turn: for checking, not for large examples."""
        examples, growth = self.examples, self.floors.exp_epsilon_upper_bound
        least, most, centre = self.enclosure or (examples.mass, examples.mass, np.zeros(len(examples)))
        centres = [Fraction(float(c)) for c in centre]
        multiplier, weight = ([Fraction(float(x)) for x in values] for values in (self.multiplier, examples.weight))
        at_zero = Fraction(self.at_zero)
        rest_prices = [_exact_cost_per_floor_unit(at_zero + level, growth) for level in multiplier]
        unseen_price = sum((w * c for w, c in zip(weight, rest_prices, strict=True)), Fraction(0))
        total = Fraction(self.constant)
        total -= sum((w * (level - c) for w, level, c in zip(weight, multiplier, centres, strict=True)), Fraction(0))
        seen_prices = [unseen_price] * examples.seen_outcomes.size
        for j, x, a, b, s, i in zip(
            examples.client_of_entry.tolist(), examples.outcome.tolist(), least.tolist(), most.tolist(), self.slope.tolist(),
            self.intercept.tolist(), strict=True,
        ):  # fmt: skip
            slope, intercept = Fraction(s), Fraction(i)
            if not is_line_below_generator(self.name, slope, intercept):
                raise DiscreetError(f"{intercept} + {slope} t is not below f")
            excess = slope - centres[j]
            total += weight[j] * Fraction(a if excess > 0 else b) * excess
            seen_prices[x] += weight[j] * (
                _exact_cost_per_floor_unit(intercept + multiplier[j], growth) - rest_prices[j]
            )
        unseen_count = examples.size - len(seen_prices)
        spread = min([*seen_prices, unseen_price]) if unseen_count else min(seen_prices)
        return (
            self.floors.least_linear_value(spread, sum(seen_prices, Fraction(0)) + unseen_count * unseen_price) + total
        )


def _last_slopes_of_greedy_filling(examples: ExampleClients, slope: Floats, least: Floats, most: Floats) -> Floats:
    """(n,) the slope at which each example runs out of mass if it fills up its lowest slopes first, beyond the least of each entry."""
    order = np.lexsort((slope, examples.client_of_entry))
    room = np.cumsum((most - least)[order])
    before = np.append(0.0, room)[examples.starts]
    remaining = before + 1.0 - examples.sum_by_client(least)
    ends = np.append(examples.starts[1:], slope.size) - 1
    index = np.clip(np.searchsorted(room, remaining), examples.starts, ends)
    return np.asarray(slope[order][index])


def _exact_cost_per_floor_unit(level: Fraction, growth: Fraction) -> Fraction:
    return level if level > 0 else growth * level


def _costs_per_floor_unit_rounded_down(intercept: Floats, multiplier: Floats, growth: float) -> Floats:
    """c of each entry, rounded down."""
    level = intercept + multiplier  # exact where it is 0
    level -= np.where(level == 0.0, 0.0, 4.0 * _UNIT * (np.abs(intercept) + np.abs(multiplier)))
    return np.where(level > 0.0, level, growth * level * (1.0 + 4.0 * _UNIT))


def _lower_bound_of_computed_sum(total: Floats | float, size: Floats | float, terms: int) -> Floats:
    """A lower bound of a sum of that many terms, computed as `total`, with sizes that sum to `size`."""
    return np.asarray(total - 2.0 * (terms + 8) * _UNIT * size)
