"""The mixture of given laws under which counts are most likely, with a proof of how near to the best it is.

Laws q_1, ..., q_N on the outcomes, shares f of the counts, and a pull tau >= 0 towards equal weights. Wanted are weights w on the simplex
with the largest

    L(w) = sum_x f_x log y_x + tau/N sum_i log w_i,        y = sum_i w_i q_i:

the likelihood of the counts and of tau more for each of them, which fell on the N laws in equal parts. L is concave.

**Certificate.** Write g_i = sum_x f_x q_ix/y_x and h_i = (g_i + tau/(N w_i))/(1 + tau). For every w' on the simplex

    L(w') - L(w) = sum_x f_x log(y'_x/y_x) + tau/N sum_i log(w'_i/w_i) <= (1 + tau) log(sum_i w'_i h_i) <= (1 + tau) log max_i h_i

by Jensen's inequality, because sum_x f_x y'_x/y_x = sum_i w'_i g_i. So `gap` = (1 + tau) log max h bounds what any weights could add. All
terms are positive, so rounding changes h by a factor of at most 1 + 4 (N + k) 2^-53, which is added.

**Solving.** At the best w every h_i is 1: w_i s_i = tau/N with s = 1 + tau - Q v >= 0 and v = f/y. That is the central path of the
dual, whose parameter is the pull itself, so a path of falling pulls costs a few Newton steps each, with one matrix of outcomes by
outcomes. The step w_i -> w_i h_i (expectation maximisation) never lowers L and ends every solve.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TOLERANCE = 1e-10  # of the gap, relative to 1 + tau
_STEPS = 60
_INSIDE = 0.99  # of the way to the boundary
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class ExampleMixture:
    """Weights (N,) of the laws, the law that they mix to (k,), and how much more L any other weights could have."""

    weights: Floats
    law: Floats
    pull: float
    gap: float

    def likelihood(self, shares: Floats) -> float:
        """sum_x f_x log y_x: of the counts alone, each."""
        seen = shares > 0.0
        return float(shares[seen] @ np.log(self.law[seen]))

    def freedom(self, laws: Floats, shares: Floats) -> Floats:
        """By how much log y_x falls, times the number of counts, when one count of x is left out (k,); 0 where there is none.

        To first order, by differentiating w_i (1 + tau - g_i) = tau/N: dy/y = (I + A diag(f))^-1 A df, A = sum_i (w_i/s_i) (q_i/y) (q_i/y)^T.
        The mean over the counts is what the likelihood of the counts themselves promises too much of each further one.
        """
        seen = shares > 0.0
        f, q = shares[seen], laws[:, seen] / self.law[seen]
        slack = self.pull / len(laws) / self.weights  # as the path has it: w s = tau/N
        spread = (q * (self.weights / slack)[:, None]).T @ q
        response = np.linalg.solve(np.eye(len(f)) + spread * f, spread)
        found = np.zeros_like(shares)
        found[seen] = np.diag(response) - response @ f
        return found


def mixtures(laws: Floats, shares: Floats, pulls: Sequence[float]) -> Iterator[ExampleMixture]:
    """The best mixture of laws (N, k) for shares (k,) at each of falling pulls."""
    seen = shares > 0.0
    q, f = np.ascontiguousarray(laws[:, seen]), shares[seen]
    number = len(q)
    w = np.full(number, 1.0 / number)
    v = f / (w @ q)
    for pull in pulls:
        w, v = _follow_path(q, f, w, v, pull)
        w, gap = _certify_weights(q, f, w, pull)
        v = f / (w @ q)
        yield ExampleMixture(w, w @ laws, pull, gap)


def _follow_path(q: Floats, f: Floats, w: Floats, v: Floats, pull: float) -> tuple[Floats, Floats]:
    """Newton steps towards w s = pull/N and v y = f, from weights and dual of a larger pull."""
    target = pull / len(q)
    best, least = (w, v), math.inf
    for _ in range(_STEPS):
        g = q @ v
        over = float(g.max() / (1.0 + pull))
        if over >= 1.0:  # a dual that is not feasible yet is shrunk until it is
            v, g = v * (0.999 / over), g * (0.999 / over)
        s = 1.0 + pull - g
        y = w @ q
        miss = max(float(np.abs(w * s - target).sum()), float(np.abs(v * y - f).sum())) / (1.0 + pull)
        if miss < least:
            best, least = (w, v), miss
        if miss <= 0.1 * TOLERANCE:
            break
        aim = max(target, 0.1 * float(w @ s) / len(q)) if pull == 0.0 else target
        matrix = (q * (w / s)[:, None]).T @ q
        matrix[np.diag_indices_from(matrix)] += y / v
        try:
            factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            break
        dv = scipy.linalg.cho_solve(factor, (f - v * y) / v - ((aim - w * s) / s) @ q, check_finite=False)
        ds = -(q @ dv)
        dw = (aim - w * s - w * ds) / s
        length = min(1.0, *(_INSIDE * _step_to_boundary(*pair) for pair in ((v, dv), (w, dw), (s, ds))))
        if not length > 1e-12:
            break
        w, v = w + length * dw, v + length * dv
    return best


def _step_to_boundary(value: Floats, step: Floats) -> float:
    fastest = float((-step / value).max())
    return 1.0 / fastest if fastest > 0.0 else math.inf


def _certify_weights(q: Floats, f: Floats, w: Floats, pull: float) -> tuple[Floats, float]:
    """Weights that sum to one, a step of expectation maximisation further, and their gap."""
    w = w / w.sum()
    rounding = 4.0 * (q.shape[0] + q.shape[1]) * _UNIT
    found = []
    for _ in range(3):
        h = (q @ (f / (w @ q)) + pull / len(q) / w) / (1.0 + pull)
        found.append(((1.0 + pull) * (max(0.0, math.log(float(h.max()))) + rounding), w))
        w = w * h
        w = w / w.sum()
    gap, w = min(found, key=lambda one: one[0])
    return w, gap
