"""The parts of a Newton step of the interior point method: slacks with multipliers, costs of entries, blocks of clients, the normal matrix.

**Costs.** An entry costs q f(p/q), which is smooth, or (p - gamma q)_+, which has an edge. The edge is taken apart: (p - gamma q)_+ = min g
with g >= 0 and g >= p - gamma q. Both constraints get slacks and multipliers of their own, and g is eliminated, so that either cost gives the
solver a gradient and a curvature for each entry.

**The normal matrix** has one unknown for each outcome in some client's support, and y. A client adds rank_j (alpha_j m(outside) + sum_e
pull_e m_e)^2 + rest_j m(outside)^2 and a diagonal, with m(outside) = o - 1_j, o = |m| and 1_j the mass of m on the support of j. For small
supports the squares of 1_j and of b_j = sum_e (alpha_j - pull_e) m_e are summed entry by entry, so that the work is the sum of squared
support sizes. For large supports o - 1_j may be nearly zero, which a difference would lose. Then the functionals are written out, which dense
products make as fast.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import should_use_compiled_code_by_work_alone
from discreet.design._floors import ExampleClients, Floats, Integers
from discreet.divergences import (
    ConvexCurve,
    FDivergence,
    HockeyStickCurve,
    curve_of_divergence,
    hockey_stick_gamma_or_none,
)

OWN_SHARE = 3.0  # multiple of its own product that a pair may aim at, besides the common target
LEAST_LEFT = 0.3  # share of a slack or a multiplier that a step by itself leaves
LEAST_FORESEEN = 0.1  # the same for a predicted step
MOST_RENORMALISED = 0.5  # share of an entry's room to its nearer bound that normalisation may use


@dataclass(eq=False)
class SlackAndMultiplier:
    """A slack s > 0 and its multiplier z > 0, whose product is led to a target, and the Newton step ds of the slack.

    The multiplier's step follows from the slack's and is not stored, since examples may be many. `part` is the pair's target relative to the
    common one. A client of small weight has large targets, so that w s z falls alike for all clients. If its products were as small as the
    others' from the start, the floor would run into its bounds early.
    """

    s: Floats
    z: Floats
    part: Floats | float = 1.0
    ds: Floats = field(default_factory=lambda: np.zeros(0))
    aim: Floats | float = 0.0  # the target divided by s

    def put_multipliers_on_central_path(self, mu: float) -> None:
        """Set the multiplier to that of the central path of mu."""
        self.z = mu * self.part / self.s

    def set_predictor_targets(self) -> None:
        """Aim at a product of zero."""
        self.aim = 0.0

    def set_corrector_targets(self, mu: float, largest: float) -> None:
        """Aim at mu, less the prediction's second-order term, within bounds. mu and `largest` are common targets.

        If a slack is about to vanish while its multiplier grows, that term is many times their product. A bound that is a multiple of the
        product lets such pairs move along the hyperbola, so that they do not shorten the common step.
        """
        most = (mu + largest) * self.part + OWN_SHARE * self.s * self.z
        self.aim = np.clip(mu * self.part - self.ds * self.multiplier_step, 0.01 * mu * self.part, most) / self.s

    @property
    def stiffness(self) -> Floats:
        return self.z / self.s

    @property
    def multiplier_step(self) -> Floats:
        """The multiplier's step."""
        return self.aim - self.z - self.stiffness * self.ds

    def set_slack_step(self, ds: Floats) -> tuple[float, float]:
        """Set the slack's step; returns how far slack and multiplier may move before they vanish."""
        self.ds = ds
        return self.longest_steps

    def products(self, primal: float = 0.0, dual: float = 0.0) -> Floats:
        """s z after steps of these lengths."""
        return (
            (self.s + primal * self.ds) * (self.z + dual * self.multiplier_step) if primal or dual else self.s * self.z
        )

    def products_if_pairs_step_alone(self) -> Floats:
        """s z after whole steps of each pair by itself, cut where little is left of it."""
        return np.asarray(
            np.maximum(self.s + self.ds, LEAST_FORESEEN * self.s)
            * np.maximum(self.z + self.multiplier_step, LEAST_FORESEEN * self.z)
        )

    @property
    def longest_steps(self) -> tuple[float, float]:
        """How far slack and multiplier may move along the step before they vanish."""
        return _longest_step(self.s, self.ds), _longest_step(self.z, self.multiplier_step)

    def take_step(self, primal: float, dual: float) -> None:
        """Take this much of the step, and clear it."""
        self.z += dual * self.multiplier_step
        self.s += primal * self.ds
        self.ds, self.aim = np.zeros(0), 0.0

    def replace_slack_and_step_multiplier(self, s: Floats) -> None:
        """Replace the slack by one that was found otherwise, and take as much of the multiplier's step as leaves a share of it."""
        self.z = np.maximum(self.z + self.multiplier_step, LEAST_LEFT * self.z)
        self.s, self.ds, self.aim = s, np.zeros(0), 0.0


def _longest_step(value: Floats, step: Floats) -> float:
    """The largest length at which value + length * step is not negative."""
    fastest = float((-step / value).max(initial=0.0))
    return 1.0 / fastest if fastest > 0.0 else np.inf


@dataclass(eq=False)
class SmoothCost:
    """q f(p/q): the cost of entries with masses p at q, in the solver's form."""

    p: Floats
    curve: ConvexCurve
    pairs: tuple[SlackAndMultiplier, ...] = ()

    @property
    def at_zero(self) -> float:
        """f(0), or 0 if it is infinite: then every client has full support, and the value is not used."""
        return self.curve.at_zero if np.isfinite(self.curve.at_zero) else 0.0

    def costs_at(self, q: Floats) -> Floats:
        return q * self.curve.value(self.p / q)

    def curvature_at(self, q: Floats) -> Floats:
        """The curvature at q; `gradient` is then taken at the same q."""
        t = self.p / q
        self._gradient = self.curve.tangent_intercept(t)
        return self.curve.curvature_times_t_squared(t) / q

    def gradient(self) -> Floats:
        return self._gradient

    def gradient_implied_by_multipliers(self) -> Floats:
        """The derivative of the cost according to the current multipliers."""
        return self._gradient

    def set_output_step(self, dq: Floats) -> tuple[float, float]:
        return np.inf, np.inf

    def lines_below_curve(self, level: Floats, floor: Floats, q: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
        """(slope, intercept) of a line below f for each entry, with intercept `level` where a distribution between the bounds allows it."""
        at_floor, at_ceiling = (self.curve.tangent_intercept(self.p / bound) for bound in (floor, ceiling))
        intercept = np.clip(level, at_floor, at_ceiling)
        return self.curve.steepest_line_with_intercept(intercept, self.p / q)


class HingeCost:
    """(p - gamma q)_+ = min g over g >= 0, g - p + gamma q >= 0."""

    at_zero = 0.0

    def __init__(self, p: Floats, q: Floats, gamma: float, mu: float, part: Floats | float = 1.0) -> None:
        self.p, self.gamma = p, gamma
        excess, product = p - gamma * q, mu * part
        g = (excess + 2.0 * product + np.hypot(excess, 2.0 * product)) / 2.0
        self.pairs = (
            SlackAndMultiplier(g, product / g, part),
            SlackAndMultiplier(g - excess, product / (g - excess), part),
        )

    def costs_at(self, q: Floats) -> Floats:
        return np.maximum(self.p - self.gamma * q, 0.0)

    def curvature_at(self, q: Floats) -> Floats:
        first, second = (pair.stiffness for pair in self.pairs)
        self._stiffness = first + second
        return self.gamma**2 * first * second / self._stiffness

    def gradient(self) -> Floats:
        first, second = self.pairs
        self._residual = 1.0 - first.aim - second.aim
        return -self.gamma * (second.aim + second.stiffness * self._residual / self._stiffness)

    def gradient_implied_by_multipliers(self) -> Floats:
        return -self.gamma * self.pairs[1].z

    def set_output_step(self, dq: Floats) -> tuple[float, float]:
        first, second = self.pairs
        dg = -(self._residual + second.stiffness * self.gamma * dq) / self._stiffness
        limits = first.set_slack_step(dg), second.set_slack_step(dg + self.gamma * dq)
        return min(limit[0] for limit in limits), min(limit[1] for limit in limits)

    def lines_below_curve(self, level: Floats, floor: Floats, q: Floats, ceiling: Floats) -> tuple[Floats, Floats]:
        # at an optimum many outputs sit on an edge, where the slope is any number between two; the multipliers tell which
        slope = np.clip(self.pairs[1].z, 0.0, 1.0)
        return slope, -self.gamma * slope if self.gamma == 1.0 else np.nextafter(-self.gamma * slope, -np.inf)


_LARGEST_PART = 1e6

EntryCost = SmoothCost | HingeCost
CostOf = Callable[[Floats, Floats, float, Floats | float], EntryCost]  # of masses, outputs, a target and its parts


class ClientBlock:
    """A block of clients, `rows`.

    An entry is an outcome in a client's support. `open` are the clients that leave outcomes out; the `rest` pairs stand for those outcomes.
    """

    cost: EntryCost

    def __init__(
        self, examples: ExampleClients, rows: slice, floor: Floats, total: float, growth: float, slope: float
    ) -> None:
        self.rows, self.entries = rows, examples.entry_slice(rows)
        self.p, self.outcome = examples.mass[self.entries], examples.outcome[self.entries]
        self.starts: Integers = examples.starts[rows] - self.entries.start
        self.client = np.repeat(np.arange(len(self.starts), dtype=np.int32), examples.support_sizes[rows])
        self.weight = examples.weight[rows]
        self._alike = bool((self.weight == self.weight[0]).all())
        self.open = np.flatnonzero(examples.support_sizes[rows] < examples.size)
        self.growth = growth  # E - 1
        support_floor = floor[self.outcome]
        rest = total - self.sum_by_client(support_floor)[self.open]
        share = (1.0 - total) / total  # d = share m: strictly inside, and normalised
        self.part = np.minimum(_LARGEST_PART, 1.0 / (len(examples) * self.weight))  # of the common target of products
        floors_and_parts = (
            (support_floor, self._client_value_by_entry(self.part)),
            (rest, self._values_of_partial_support_clients(self.part)),
        )
        self.low, self.rest_low = (
            SlackAndMultiplier(share * m, np.zeros(m.size), part) for m, part in floors_and_parts
        )
        self.high, self.rest_high = (
            SlackAndMultiplier((growth - share) * m, np.zeros(m.size), part) for m, part in floors_and_parts
        )
        self.multiplier = np.full(self.weight.size, slope)

    def put_multipliers_on_central_path(self, floor: Floats, mu: float, cost: CostOf) -> None:
        """Set the cost at the present outputs, and the multipliers to those of the central path of mu."""
        self.cost = cost(self.p, floor[self.outcome] + self.low.s, mu, self.low.part)
        for pair in (self.low, self.high, self.rest_low, self.rest_high):
            pair.put_multipliers_on_central_path(mu)

    def _client_value_by_entry(self, values: Floats) -> Floats | float:
        """A client's number for each of its entries; one number if all clients have equal weight."""
        return float(values[0]) if self._alike else values[self.client]

    def _values_of_partial_support_clients(self, values: Floats) -> Floats | float:
        return float(values[0]) if self._alike else values[self.open]

    @property
    def entry_weight(self) -> Floats | float:
        """The weight of every entry's client."""
        return self._client_value_by_entry(self.weight)

    @property
    def pairs_with_weights(self) -> Iterator[tuple[SlackAndMultiplier, Floats | float]]:
        """Every pair with the weights of its members."""
        for pair in (self.low, self.high, *self.cost.pairs):
            yield pair, self.entry_weight
        for pair in (self.rest_low, self.rest_high):
            yield pair, self._values_of_partial_support_clients(self.weight)

    def weighted_sum_over_pairs(self, values: Callable[[SlackAndMultiplier], Floats]) -> float:
        """The weighted sum of some value of every pair."""
        return sum(float(np.sum(weight * values(pair))) for pair, weight in self.pairs_with_weights)

    def sum_by_client(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.starts))

    def sum_by_outcome(self, values: Floats, seen_count: int) -> Floats:
        return np.asarray(np.bincount(self.outcome, weights=values, minlength=seen_count), dtype=np.float64)

    def fill_zeros_for_full_support_clients(self, values: Floats) -> Floats:
        """Values of the clients that leave outcomes out, with zeros for the others."""
        out = np.zeros(self.weight.size)
        out[self.open] = values
        return out

    def weighted_cost(self, floor: Floats, total: float) -> float:
        """The clients' mean cost, times their weight."""
        support_floor = floor[self.outcome]
        costs = self.sum_by_client(self.cost.costs_at(support_floor + self.low.s))
        rest = self.fill_zeros_for_full_support_clients(
            total - self.sum_by_client(support_floor)[self.open] + self.rest_low.s
        )
        return float(np.sum(self.weight * (costs + self.cost.at_zero * rest)))


_DENSE = 0.2  # density of supports from which rows are written out
_REGULAR = 1e-14
_PAIR_SECONDS = 4e-7  # for a pair of outcomes of one client over all steps, without numba


class MatrixShare:
    """The part of the matrix that some of the clients add. One thread fills it, in order, so that the sum is reproducible."""

    def __init__(self, size: int, seen_count: int) -> None:
        self._hidden = size - seen_count
        self.squares: Floats | None = None  # of entries, below the diagonal and on it
        self.whole: Floats | None = None  # of functionals that are written out over all outcomes
        self.diagonal = np.zeros(seen_count)
        self.cross = np.zeros(seen_count)
        self.both = 0.0

    def add_clients(
        self,
        starts: Integers,
        outcome: NDArray[np.int32],
        diagonal: Floats,
        rest: Floats,
        rank: Floats,
        alpha: Floats,
        pull: Floats,
    ) -> None:
        """One block of clients: `diagonal` and `pull` for each entry, the others for each client."""
        seen_count = self.diagonal.size
        self.diagonal += np.bincount(outcome, weights=diagonal, minlength=seen_count)
        if outcome.size > _DENSE * starts.size * seen_count:
            if self.whole is None:
                self.whole = np.zeros((seen_count + 1, seen_count + 1))
            self._add_dense_client_outer_products(self.whole, starts, outcome, rest, rank, alpha, pull)
            return
        if self.squares is None:
            self.squares = np.zeros((seen_count, seen_count))
        _add_client_outer_products(self.squares, self.cross, starts, outcome, rest, rank, alpha, pull)
        self.both += float(np.sum(rest + rank * alpha**2))

    def _add_dense_client_outer_products(
        self, out: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, alpha: Floats, pull: Floats
    ) -> None:
        """Each client's two functionals as rows over all outcomes and y, without a difference of large numbers."""
        seen_count, client = (
            self.diagonal.size,
            np.repeat(np.arange(starts.size), np.diff(np.append(starts, outcome.size))),
        )
        for scale, outside, inside in ((rank, alpha, pull), (rest, np.ones(starts.size), 0.0)):
            rows = np.empty((starts.size, seen_count + 1))
            rows[:, :seen_count] = outside[:, None]
            rows[client, outcome] = inside
            rows[:, seen_count] = rows[:, :seen_count].sum(axis=1) + self._hidden * outside
            rows *= np.sqrt(scale)[:, None]
            out += rows.T @ rows


class NormalMatrix:
    """The matrix in the unknowns (v, y), collected from shares of the clients, then factored once and used twice."""

    def __init__(self, size: int, seen_count: int, shares: int) -> None:
        self._total = np.append(np.ones(seen_count), float(size))  # |m| as a functional of (v, y)
        self.shares = [MatrixShare(size, seen_count) for _ in range(shares)]

    def factorise(self, stiffness: Floats, cap: Floats, cap_stiffness: float) -> "FactoredMatrix":
        """Factor the matrix, with the stiffness of the bounds of (v, y) and of the bound on the functional `cap`."""
        seen_count = self._total.size - 1
        lower_squares = np.zeros((seen_count, seen_count))
        for share in self.shares:
            if share.squares is not None:
                lower_squares += share.squares
        squares = np.tril(lower_squares) + np.tril(lower_squares, -1).T
        squares[np.arange(seen_count), np.arange(seen_count)] += sum(share.diagonal for share in self.shares)
        matrix = np.empty((seen_count + 1, seen_count + 1))
        matrix[:seen_count, :seen_count] = squares
        matrix[:seen_count, seen_count] = matrix[seen_count, :seen_count] = squares.sum(axis=1)
        matrix[seen_count, seen_count] = squares.sum()
        weight = sum(share.both for share in self.shares)
        if weight:
            cross = np.sum([share.cross for share in self.shares], axis=0)
            product = np.outer(self._total, np.append(cross, cross.sum()))
            matrix += weight * np.outer(self._total, self._total) - product - product.T
        matrix += cap_stiffness * np.outer(cap, cap)
        for share in self.shares:
            if share.whole is not None:
                matrix += share.whole
        matrix[np.arange(seen_count + 1), np.arange(seen_count + 1)] += stiffness
        if not (matrix.diagonal() > 0.0).all():
            raise np.linalg.LinAlgError("a pivot is lost in rounding")
        scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= scale[:, None]
        matrix *= scale
        return FactoredMatrix(matrix, scale)


class FactoredMatrix:
    """A positive definite matrix, scaled to ones on its diagonal."""

    def __init__(self, scaled: Floats, scale: Floats) -> None:
        from scipy import linalg  # imported here because it is slow

        self._scale = scale
        regularisation = _REGULAR
        while True:
            scaled[np.diag_indices_from(scaled)] = 1.0 + regularisation
            try:
                self._factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                regularisation *= 100.0
                if regularisation > 1.0:
                    raise

    def solve(self, right: Floats) -> Floats:
        from scipy import linalg

        return np.asarray(linalg.cho_solve(self._factor, right * self._scale, check_finite=False)) * self._scale


def _add_client_outer_products(
    out: Floats, cross: Floats, starts: Integers, outcome: Any, rest: Floats, rank: Floats, alpha: Floats, pull: Floats
) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' with b = alpha - pull, in the lower triangle at least.

    cross += sum_j (rest_j + rank_j alpha_j b_j) 1_j.
    """
    counts = np.diff(np.append(starts, outcome.size))
    if should_use_compiled_code_by_work_alone(_PAIR_SECONDS * float(np.square(counts, dtype=np.float64).sum())):
        from discreet.design._compiled import add_client_outer_products

        # unsigned, so that no index is tested for being negative
        ends = np.append(starts, outcome.size).astype(np.uintp)
        add_client_outer_products(out, cross, ends, outcome.view(np.uint32), rest, rank, alpha, pull)
        return
    from scipy import sparse

    beta = np.repeat(alpha, counts) - pull
    cross_terms = np.repeat(rest, counts) + np.repeat(rank * alpha, counts) * beta
    cross += np.bincount(outcome, weights=cross_terms, minlength=len(out))
    shape, ends = (starts.size, len(out)), np.append(starts, outcome.size)
    client = np.repeat(np.arange(starts.size), counts)
    for root in (np.sqrt(rest)[client], np.sqrt(rank)[client] * beta):
        rows = sparse.csr_array((root, outcome, ends), shape=shape)
        out += (rows.T @ rows).toarray()


@dataclass(frozen=True)
class Objective:
    """f in the solvers' form: a curve, its edge at gamma if it has one, and `constant`, which was left out of every client's cost."""

    f: FDivergence
    curve: ConvexCurve
    gamma: float | None
    constant: float

    @classmethod
    def of_divergence(cls, f: FDivergence) -> "Objective":
        gamma = hockey_stick_gamma_or_none(f)
        if gamma is None:
            return cls(f, curve_of_divergence(f), None, 0.0)
        return cls(f, HockeyStickCurve(gamma), gamma, -max(1.0 - gamma, 0.0))

    @property
    def slope_at_one(self) -> float:
        """The slope of f at 1, where the multipliers of the interior point method start."""
        return self.curve.slope_at_one if self.gamma is None else self.gamma / 2.0

    @property
    def at_zero(self) -> float:
        """f(0), or 0 if it is infinite: then every client has full support, and the value is not used."""
        return self.curve.at_zero if math.isfinite(self.curve.at_zero) else 0.0

    def make_entry_cost(self, p: Floats, q: Floats, mu: float, part: Floats | float) -> EntryCost:
        return SmoothCost(p, self.curve) if self.gamma is None else HingeCost(p, q, self.gamma, mu, part)
