"""The band {P : c1 <= dP/dmu <= c2}: when its reference is alpha-decomposable, and its worst members.

**Decomposable references** [paper, Thm C.4, is exact for them]. Sets of mass exactly alpha cover the space evenly: the constant vector alpha
is a mixture of indicators of sets A with mu(A) = alpha. For a uniform mu on k outcomes this holds exactly when alpha k is a whole number
(sets of alpha k outcomes, chosen cyclically), so it holds for the simplex. For other references it is decided on up to `LARGEST_ENUMERATED`
outcomes, finally by whole numbers; beyond that it is not claimed. Masses within a factor 1 +- `_SAME_MASS` of alpha count as alpha; otherwise
weights such as 0.1 could never be divided evenly. The risk differs by no more than that.

**Worst members**, where they are known. The divergence F(P) = D_f(P || project P) is convex in P [D_f is jointly convex, the box is convex].
So on any family its maximum lies at extreme members: the vertices of a band, the single kernels of mixtures. Two facts select among them.

*Only the distribution of R = dP/dmu under mu matters, and more spread is worse.* Let R' be R averaged by a Markov kernel that preserves mu.
Then P' and every distribution of the box are such averages too, the averaged box lies in the box, and averaging does not increase D_f: F(P')
<= F(P). By Blackwell's theorem this holds as soon as G(t) = integral of (p - t h)_+ is at least as large for P as for P', at every t (R
exceeds R' in convex order). The same holds for gamma P + (1 - gamma) mu in place of the projection.

*Uniform bands*: all vertices have the same R, up to the order of the outcomes: upper on j of them, lower on the others, one between.

*Gaussian kernels N(c, s^2 I) on R^n, or on an interval symmetric about 0 in one dimension*: h is symmetric and non-increasing in |x|. Move c
outwards along e = c/|c|. By the envelope theorem dG/dc is the integral of the score (x - c) e/s^2 times p over A = {p > t h}. Reflect each
line along e at c: p is the same at c + w e and c - w e while h is no larger at the first. So if c - w e is in A then so is c + w e, and the
integral is not negative. On an interval [-a, a] the score is x - m with m the mean of the truncated kernel, m <= c for c >= 0. A is an
interval [l, u], and either u = a, or u - c >= c - l; in both cases the mean of P over A is at least m. Hence G grows with |c|: **the worst
member is one kernel at distance `radius`.**

*Laplace kernels with |c|_1 <= radius on R^n*: along one axis the same reflection shows that G grows with |c_i|, so |c|_1 = radius. Shift mass
from c_2 to c_1 >= c_2. With y = x - c, dG is proportional to P(A, y_1 > 0 > y_2) - P(A, y_2 > 0 > y_1). On the first event A says that -2 y_2
<= c_1 + c_2 - t' or t' <= c_1 - c_2, on the second the same of y_1 with t' <= c_2 - c_1, which is rarer. So G grows: **the worst member is
one kernel at a corner of the ball**, and R depends on one coordinate alone, in every dimension.

In other cases (boxes in several dimensions, intervals off centre, Laplace kernels on a box, bands with many unequal weights) nothing is
proved, and the family names no worst member.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.families._laws import Bounds

LARGEST_ENUMERATED = 12
_SAME_MASS = 1e-12
_LARGEST_DENOMINATOR = 1 << 16  # vertices of 0/1 systems in 12 unknowns have denominators of at most 3,645


def divides_evenly(size: int, alpha: float) -> bool:
    """Whether alpha k is a whole number: the uniform reference on k outcomes is then decomposable."""
    return math.isclose(alpha * size, round(alpha * size), rel_tol=_SAME_MASS)


def splits_evenly(mu: NDArray[np.float64], alpha: float) -> bool:
    """Whether the outcomes can be divided into n groups of mass 1/n each, for some n of which alpha n is a whole number.

    Then mu is decomposable. Moreover, seen through the groups it is uniform on n exchangeable outcomes.
    """
    return any(
        math.isclose(alpha * n, round(alpha * n), rel_tol=_SAME_MASS)
        and _can_group(sorted(mu, reverse=True), [1.0 / n] * n)
        for n in range(2, mu.size + 1)
    )


def _can_group(masses: list[float], rooms: list[float]) -> bool:
    """Whether masses, the largest first, fill bins of equal size; each is tried in every bin where it fits."""
    if not masses:
        return all(abs(room) <= _SAME_MASS for room in rooms)
    tried = set()
    for place, room in enumerate(rooms):
        if masses[0] <= room + _SAME_MASS and round(room, 12) not in tried:
            tried.add(round(room, 12))
            if _can_group(masses[1:], [*rooms[:place], room - masses[0], *rooms[place + 1 :]]):
                return True
    return False


def covers_evenly(mu: NDArray[np.float64], alpha: float) -> bool:
    """Whether sets of mass alpha can be mixed so that every outcome is covered equally often (then with probability alpha).

    First the sets of that mass are found. Then the question is whether (1, ..., 1) is in the cone of their indicators. The solver proposes a
    vertex, and fractions check it, since a solver's tolerance proves nothing.
    """
    from scipy.optimize import linprog  # imported here because it is slow

    members = np.array(list(itertools.product((0.0, 1.0), repeat=mu.size)))
    sets = members[np.abs(members @ mu - alpha) <= _SAME_MASS * alpha]
    if not len(sets):
        return False
    found = linprog(np.zeros(len(sets)), A_eq=sets.T, b_eq=np.ones(mu.size), method="highs-ds")
    if found.status != 0:
        return False
    shares = [Fraction(float(share)).limit_denominator(_LARGEST_DENOMINATOR) for share in found.x]
    covered = [sum(share for share, members in zip(shares, column, strict=True) if members) for column in sets.T]
    return min(shares) >= 0 and all(times == 1 for times in covered)


Floats = NDArray[np.float64]

# in scales, from where kernels vary
_NEAR = np.concatenate([np.arange(0.0, 10.0, 0.5), [10.0, 12.0, 16.0, 24.0, 40.0]])
_TAIL = 10.0  # in scales; the rest has mass 1e-23
_TINY = 1e-300
_ACROSS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.5, 12.0])  # in widths of an angle's distribution
_LINE_NODES, _RADIAL_NODES, _ANGLE_NODES = 16, 8, 8


class Members(NamedTuple):
    """Distributions (n, m) on atoms with reference masses (m,)."""

    reference: Floats
    laws: Floats


WorstMembers = Callable[[Sequence[float]], Members]
"""The worst members on atoms that end where log dP/dmu has the given levels, at which a projection has its kinks."""


def uniform_vertex(size: int, lower: float, upper: float) -> Members:
    """A vertex of a band around the uniform distribution: three kinds of outcomes, as three atoms."""
    whole = (1.0 - lower) / (upper - lower) * size
    full = min(int(whole), size - 1)
    between = lower + (whole - full) * (upper - lower)
    reference = np.array([full, 1.0, size - full - 1.0]) / size
    held = reference > 0.0
    return _members_from_ratios(reference[held], np.array([upper, between, lower])[None, held])


def vertices(mu: Floats, lower: float, upper: float) -> Members:
    """Every vertex of a band: each outcome but one at a bound."""
    rows = []
    for free in range(mu.size):
        ratio = np.array(list(itertools.product((lower, upper), repeat=mu.size - 1)))
        ratio = np.insert(ratio, free, 0.0, axis=1)
        with np.errstate(over="ignore"):  # a very rare outcome would overflow: no vertex
            ratio[:, free] = (1.0 - ratio @ mu) / mu[free]
        slack = 1e-9 * upper
        rows.append(ratio[(ratio[:, free] >= lower - slack) & (ratio[:, free] <= upper + slack)])
    return _members_from_ratios(mu, np.clip(np.concatenate(rows), lower, upper))


def extreme_laws(mu: Floats, bounds: Bounds, most: int) -> tuple[tuple[str, ...], Floats]:
    """Extreme points of a band around mu: for each of several outcomes, a distribution that maximises it and one that minimises it.

    An extreme distribution is at a bound everywhere except at one outcome. On the simplex these are the point masses.
    """
    size = len(mu)
    chosen = sorted({int(x) for x in np.linspace(0, size - 1, max(1, min(size, most // 2)))})
    names, laws = [], []
    for outcome in chosen:
        for liked in (True, False):
            order = np.roll(np.arange(size), -outcome if liked else -outcome - 1)
            names.append(f"{'most' if liked else 'least'} of outcome {outcome}")
            laws.append(_fill_in_order(mu, bounds.lower, bounds.upper, order))
    return tuple(names), np.array(laws)


def _fill_in_order(mu: Floats, lower: float, upper: float, order: NDArray[np.int64]) -> Floats:
    """Raise outcomes from lower mu to upper mu in order until the mass is used up."""
    room = (upper - lower) * mu[order]
    ends = np.minimum(np.cumsum(room), 1.0 - lower)
    law = lower * mu
    law[order] += np.diff(ends, prepend=0.0)
    return np.asarray(law / law.sum())


def gaussian_on_line(radius: float, log_upper: float, box: tuple[float, float] | None) -> WorstMembers:
    """N(radius, 1) on the line, or on an interval about 0; lengths in scales. `log_upper` is the largest log dP/dmu."""
    low, high = (-radius - _TAIL, radius + _TAIL) if box is None else box

    def log_ratio(x: Floats) -> Floats:
        beyond = np.maximum(0.0, np.abs(x) - radius)
        return log_upper - 0.5 * (np.square(x - radius) - np.square(beyond))

    def place(level: float) -> float:
        depth = 2.0 * max(0.0, log_upper - level)
        return radius - depth**0.5 if depth <= 4.0 * radius * radius else -depth / (4.0 * radius)

    def atoms(levels: Sequence[float]) -> Members:
        edges = np.concatenate([radius - _NEAR, radius + _NEAR, -radius - _NEAR, -radius + _NEAR, [-radius, radius]])
        x, weights = _gauss_nodes(
            _edges_within(np.append(edges, [place(level) for level in levels]), low, high), _LINE_NODES
        )
        return _members_from_ratios(
            weights * np.exp(-0.5 * np.square(np.maximum(0.0, np.abs(x) - radius))), np.exp(log_ratio(x))[None, :]
        )

    return atoms


def laplace_on_line(radius: float) -> WorstMembers:
    """A Laplace kernel at a corner of the ball, by the one coordinate that matters; lengths in scales."""

    def atoms(levels: Sequence[float]) -> Members:
        places = [0.5 * (level + radius) for level in levels]
        x, weights = _gauss_nodes(_edges_within(np.append(_NEAR, [*places, radius]), 0.0, radius), _LINE_NODES)
        reference = np.concatenate([[0.5], 0.5 * np.exp(-x) * weights, [0.5 * np.exp(-radius)]])
        return _members_from_ratios(reference, np.exp(np.concatenate([[-radius], 2.0 * x - radius, [radius]]))[None, :])

    return atoms


def gaussian_in_space(dim: int, radius: float, log_upper: float) -> WorstMembers:
    """N(radius e, I) on R^dim, dim >= 2, by the distance r from the origin and the angle to e; lengths in scales.

    log dP/dmu = log_upper - (|x - radius e|^2 - (r - radius)_+^2)/2 falls with the angle, so each level is one angle for each r.
    """
    mode = 0.5 * (radius + (radius * radius + 4.0 * (dim - 1)) ** 0.5)  # of r under mu
    middle = (radius * radius + dim) ** 0.5  # of r under P
    highest = max(mode, middle) + _TAIL

    def atoms(levels: Sequence[float]) -> Members:
        depths = [2.0 * max(0.0, log_upper - level) for level in levels]
        turns = [turn for depth in depths for turn in _level_exit_distances(depth, radius)]
        edges = np.concatenate([*(at + side * _NEAR for at in (mode, middle) for side in (-1.0, 1.0)), [radius], turns])
        r, outer = _gauss_nodes(_edges_within(edges, 0.0, highest), _RADIAL_NODES)
        beyond = np.square(np.maximum(0.0, r - radius))
        cosines = [(np.square(r) + radius**2 - beyond - depth) / (2.0 * radius * r) for depth in depths]
        angle, inner = _angle_nodes(dim, radius * r, [np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in cosines])
        with np.errstate(divide="ignore"):
            log_weight = (dim - 1) * np.log(r) - 0.5 * beyond + np.log(outer)
            log_sine = np.log(np.maximum(np.sin(angle), _TINY))  # an empty panel may end at 0
            log_reference = log_weight[:, None] + (dim - 2) * log_sine + np.log(inner)
        distance = np.square(r)[:, None] + radius**2 - 2.0 * radius * r[:, None] * np.cos(angle)
        log_ratio = log_upper - 0.5 * (distance - beyond[:, None])
        reference = np.exp(log_reference - log_reference.max()).ravel()
        held = reference > 0.0
        return _members_from_ratios(reference[held], np.exp(log_ratio.ravel()[held])[None, :])

    return atoms


def _level_exit_distances(depth: float, radius: float) -> list[float]:
    """Distances at which a level passes the angle 0 or pi."""
    root = depth**0.5
    return [abs(radius - root), radius + root, depth / (4.0 * radius)]


def _angle_nodes(dim: int, pull: Floats, cuts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Angles (n, m) and their weights, for each r, dense where sin^(dim-2) and sin^(dim-2) exp(pull cos) have their bulk."""
    power = dim - 2.0
    cosine = 2.0 * pull / (power + np.hypot(power, 2.0 * pull))  # power cos = pull sin^2, where the second has its peak
    peaks = (np.full_like(pull, 0.5 * np.pi), np.arccos(np.clip(cosine, -1.0, 1.0)))
    widths = (np.full_like(pull, (power + 1.0) ** -0.5), (power + pull + 1.0) ** -0.5)
    edges = [np.zeros_like(pull), np.full_like(pull, np.pi), *peaks, *cuts]
    for peak, width in zip(peaks, widths, strict=True):
        edges += [peak + side * across * width for side in (-1.0, 1.0) for across in _ACROSS]
    ends = np.sort(np.clip(np.stack(edges, axis=1), 0.0, np.pi), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(_ANGLE_NODES)
    half = 0.5 * np.diff(ends, axis=1)[:, :, None]
    angle = ends[:, :-1, None] + half * (1.0 + nodes)
    return angle.reshape(len(pull), -1), (half * weights).reshape(len(pull), -1)


def _edges_within(edges: Floats, low: float, high: float) -> Floats:
    return np.unique(np.clip(np.append(edges, [low, high]), low, high))


def _gauss_nodes(edges: Floats, order: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights between neighbouring edges."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()


def _members_from_ratios(reference: Floats, ratio: Floats) -> Members:
    reference = reference / reference.sum()
    laws = reference * ratio
    return Members(reference, laws / laws.sum(axis=1, keepdims=True))
