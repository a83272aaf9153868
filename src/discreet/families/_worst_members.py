"""The members of a family that a box around mu can serve worst, where they are known.

The divergence F(P) = D_f(P || project P) is convex in P [D_f is jointly convex, the box is convex], so on any family its maximum
lies at extreme members: the vertices of a band, the single kernels of mixtures. Two facts pick among them.

*Only the distribution of R = dP/dmu under mu matters, and more spread is worse.* If R' is R averaged by a Markov kernel that
preserves mu, then P' and every law of the box are such averages too, the averaged box lies in the box, and averaging does not
increase D_f: F(P') <= F(P). By Blackwell's theorem that is so as soon as G(t) = integral of (p - t h)_+ is at least as large for
P as for P', at every t (R exceeds R' in convex order). The same holds for gamma P + (1 - gamma) mu in place of the projection.

*Uniform bands*: all vertices have the same R, up to the order of the outcomes: upper on j of them, lower on the others, one between.

*Gaussian kernels N(c, s^2 I) on R^n, or on an interval symmetric about 0 in one dimension*: h is symmetric and non-increasing in
|x|. Move c outwards along e = c/|c|. By the envelope theorem dG/dc is the integral of the score (x - c) e/s^2 times p over
A = {p > t h}. Reflect each line along e at c: p is the same at c + w e and c - w e while h is no larger at the first, so if
c - w e is in A then so is c + w e, and the integral is not negative. On an interval [-a, a] the score is x - m with m the mean of
the truncated kernel, m <= c for c >= 0; A is an interval [l, u], and either u = a, or u - c >= c - l: in both cases the mean of
P over A is at least m. Hence G grows with |c|: **the worst member is one kernel at distance `radius`.**

*Laplace kernels with |c|_1 <= radius on R^n*: along one axis the same reflection shows that G grows with |c_i|, so |c|_1 = radius.
Shift mass from c_2 to c_1 >= c_2: with y = x - c, dG is proportional to P(A, y_1 > 0 > y_2) - P(A, y_2 > 0 > y_1); on the first
event A says that -2 y_2 <= c_1 + c_2 - t' or t' <= c_1 - c_2, on the second the same of y_1 with t' <= c_2 - c_1, which is
rarer. So G grows: **the worst member is one kernel at a corner of the ball**, and R depends on one coordinate alone, in every dimension.

Elsewhere (boxes in several dimensions, intervals off centre, Laplace kernels on a box, bands with many unequal weights) none of
this is proved, and the family names no worst member.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEAR = np.concatenate(
    [np.arange(0.0, 10.0, 0.5), [10.0, 12.0, 16.0, 24.0, 40.0]]
)  # in scales, from where kernels vary
_TAIL = 10.0  # in scales; what is left beyond weighs 1e-23
_TINY = 1e-300
_ACROSS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.5, 12.0])  # in widths of an angle's distribution
_LINE_NODES, _RADIAL_NODES, _ANGLE_NODES = 16, 8, 8


class Members(NamedTuple):
    """Laws (n, m) on atoms with reference masses (m,)."""

    reference: Floats
    laws: Floats


WorstMembers = Callable[[Sequence[float]], Members]
"""The worst members on atoms that end where log dP/dmu has the given levels, at which a projection has its kinks."""


def uniform_vertex(size: int, lower: float, upper: float) -> Members:
    """A vertex of a band around the uniform law: three kinds of outcomes, as three atoms."""
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
        with np.errstate(over="ignore"):  # an outcome that hardly ever occurs would need more than there is: no vertex
            ratio[:, free] = (1.0 - ratio @ mu) / mu[free]
        slack = 1e-9 * upper
        rows.append(ratio[(ratio[:, free] >= lower - slack) & (ratio[:, free] <= upper + slack)])
    return _members_from_ratios(mu, np.clip(np.concatenate(rows), lower, upper))


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
            weights * np.exp(-0.5 * np.square(np.maximum(0.0, np.abs(x) - radius))), _exp(log_ratio(x))
        )

    return atoms


def laplace_on_line(radius: float) -> WorstMembers:
    """A Laplace kernel at a corner of the ball, by its one coordinate that matters; lengths in scales."""

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
        turns = [turn for depth in depths for turn in _where_levels_leave(depth, radius)]
        edges = np.concatenate([*(at + side * _NEAR for at in (mode, middle) for side in (-1.0, 1.0)), [radius], turns])
        r, outer = _gauss_nodes(_edges_within(edges, 0.0, highest), _RADIAL_NODES)
        beyond = np.square(np.maximum(0.0, r - radius))
        cosines = [(np.square(r) + radius**2 - beyond - depth) / (2.0 * radius * r) for depth in depths]
        angle, inner = _angles(dim, radius * r, [np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in cosines])
        with np.errstate(divide="ignore"):
            log_weight = (dim - 1) * np.log(r) - 0.5 * beyond + np.log(outer)
            log_sine = np.log(np.maximum(np.sin(angle), _TINY))  # an empty panel may end at 0
            log_reference = log_weight[:, None] + (dim - 2) * log_sine + np.log(inner)
        distance = np.square(r)[:, None] + radius**2 - 2.0 * radius * r[:, None] * np.cos(angle)
        log_ratio = log_upper - 0.5 * (distance - beyond[:, None])
        reference = np.exp(log_reference - log_reference.max()).ravel()
        held = reference > 0.0
        return _members_from_ratios(reference[held], _exp(log_ratio.ravel()[held]))

    return atoms


def _where_levels_leave(depth: float, radius: float) -> list[float]:
    """Distances at which a level passes the angle 0 or pi."""
    root = depth**0.5
    return [abs(radius - root), radius + root, depth / (4.0 * radius)]


def _angles(dim: int, pull: Floats, cuts: Sequence[Floats]) -> tuple[Floats, Floats]:
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


def _exp(log_ratio: Floats) -> Floats:
    return np.exp(log_ratio)[None, :]


def _members_from_ratios(reference: Floats, ratio: Floats) -> Members:
    reference = reference / reference.sum()
    laws = reference * ratio
    return Members(reference, laws / laws.sum(axis=1, keepdims=True))
