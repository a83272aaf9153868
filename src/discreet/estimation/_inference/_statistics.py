"""Statistics of a population: averages of an `OutcomeFunction`, and their intervals from how many reports hold each outcome.

A statistic is the average of a function phi of the outcome. If outcomes are cells, a client's values are known only up to a cell. `low`
and `high` are then the least and the largest value of phi inside each cell, so intervals hold wherever in its cells a client's values lie;
`values` are the averages over the cells.

**Reports.** For values phi of outcomes with sum 0 a report B gives V = sum of phi over B. The supports S_x alone tell the mean of V over n
reports, which is sum_x phi(x) S_x/n, and its expectation is (p_in - p_out) P(phi), with P the average client. So every average has an
unbiased estimate, and statistics need neither the reports nor more than a table as long as the domain.

**Variance.** A client's report has E V^2 = beta U + (1 - beta) P(psi), where U is the mean of V^2 over all blocks and psi(x) that over the
blocks which hold x. Both are public. For subsets of w of k outcomes psi follows from the chances that a block with x holds one and two
others, (w-1)/(k-1) and (w-1)(w-2)/((k-1)(k-2)). For affine blocks the chance of two others depends on them, and psi is added up over all
blocks; where these are too many, psi <= U K/w, since V^2 summed over the blocks with x is at most that over all. Variance is concave in P:
clients that differ have a smaller one than clients that are all like their average. Among averages with P(phi) = mu the largest P(psi) is
the concave hull of the points (phi(x), psi(x)) at mu. For a set psi hardly differs within it, and nothing is lost. For other values the
upper end of P(psi) itself is estimated too, with a tenth of the error probability.

**Intervals.** mu is rejected if the mean of V is too far from (p_in - p_out) mu. Of all laws with a given variance s^2 and at most M above
their mean, the one on two points M and -s^2/M has the largest tails up to a constant: n draws of any of them exceed a bound at most e^2/2
times as often as n draws of that one [Bentkus 2004, On Hoeffding's inequalities]. `mean_tail_probability` is the tail of that one, which is
binomial. For many reports it is the normal tail. For single outcomes it is Clopper and Pearson's. That the constant may be left out is not
proved for few reports: it is tested (coverage of at least 94 % on a grid).

**Quantiles.** The distribution function at x is the share of the set of outcomes up to x. A quantile of level p is at least x if F below x
is less than p. The interval runs from the first x at which F(x) = p is not rejected for being too small to the one after the last at which
it is not rejected for being too large. The true quantile is missed only if F is rejected there, or just before it: two tests, each of
which errs with half of the error probability. Bounds that hold for all x at once are not needed. Where the variances of all sets would take
too long, x runs over a grid that does not depend on the data, and the interval reaches to the next points of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base.quadrature import gauss_rule
from discreet.domain import LARGEST_VALUE, Domain, is_number_or_number_text
from discreet.errors import DiscreetError
from discreet.mechanisms import AffineBlocks, BlockFamily, Reports, ReportSampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_NODES = 8
_ENTRIES = 1 << 22  # of a table of reports and outcomes at once
_MOST_PRODUCTS = 2 * 10**7  # points times outcomes of which blocks are gone through one by one
_AT_ONCE = 1 << 21  # of these products
_FOR_VARIANCE = 0.1  # of the error probability
_MOST_REFINED = 10**8  # of these products for all thresholds of a quantile


@dataclass(frozen=True)
class OutcomeFunction:
    """A statistic on the outcomes: its value (on a cell, its average), and its least and largest value there."""

    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def of_values(cls, values: Floats) -> OutcomeFunction:
        """One value for each outcome."""
        return cls(values, values, values)


@dataclass(frozen=True)
class Estimate:
    """A statistic of the population.

    Attributes:
        name: of the statistic.
        estimate: None where it is not identifiable.
        low: the lower end of its interval.
        high: the upper end of its interval.
        released: its value under Q, the law of the samples.
        blur: how much of the interval, on each side, is due to values that are known up to their cell only.
        bias_by_risk: the largest difference between P and Q by the worst-case TV alone, its oscillation times that. The interval uses the
            sharper lines. None: the statistic is no average.
    """

    name: str
    estimate: float | None
    low: float
    high: float
    released: float
    blur: float = 0.0
    bias_by_risk: float | None = None


def numeric_outcomes(domain: Domain, what: str) -> Floats:
    """The outcomes as numbers, or an error that says what needs them."""
    if domain.values is None:
        label = next(name for name in domain.names if not is_number_or_number_text(name))
        raise DiscreetError(
            f"{what} needs numbers, but the outcomes are labels such as {label!r}; in Python, pass a function that gives each label a number"
        )
    return domain.values


def outcome_value_function(domain: Domain) -> OutcomeFunction:
    """phi(x) = x."""
    values = numeric_outcomes(domain, "mean")
    return (
        OutcomeFunction.of_values(values)
        if domain.edges is None
        else OutcomeFunction(values, domain.edges[:-1], domain.edges[1:])
    )


def squared_deviation_function(domain: Domain, centre: float) -> OutcomeFunction:
    """phi(x) = (x - centre)^2."""
    if domain.edges is None:
        return OutcomeFunction.of_values(np.square(numeric_outcomes(domain, "variance") - centre))
    low, high = domain.edges[:-1] - centre, domain.edges[1:] - centre
    ends = np.square(low), np.square(high)
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(*ends))
    return OutcomeFunction((ends[0] + low * high + ends[1]) / 3.0, least, np.maximum(*ends))


def threshold_indicator(domain: Domain, threshold: float) -> OutcomeFunction:
    """phi(x) = 1 if x <= threshold, else 0. A cell that contains the threshold may count as either."""
    if domain.edges is None:
        return OutcomeFunction.of_values((numeric_outcomes(domain, "at-most") <= threshold).astype(np.float64))
    low, high = domain.edges[:-1], domain.edges[1:]
    inside = (np.clip(threshold, low, high) - low) / (high - low)
    return OutcomeFunction(inside, (high <= threshold).astype(np.float64), (low < threshold).astype(np.float64))


def evaluate_function_on_outcomes(domain: Domain, phi: Callable[[Any], float]) -> OutcomeFunction:
    """phi of every outcome; on cells, of the ends and of Gauss points of each, from which its average and extremes are estimated."""
    if domain.edges is None:
        return OutcomeFunction.of_values(np.array([_evaluate_statistic_at_outcome(phi, name) for name in domain.names]))
    nodes, weights = gauss_rule(_NODES)
    low, width = domain.edges[:-1, None], np.diff(domain.edges)[:, None]
    points = np.concatenate([low, low + width * nodes, low + width], axis=1)
    values = np.array([[_evaluate_statistic_at_outcome(phi, x) for x in row] for row in points.tolist()])
    return OutcomeFunction(values[:, 1:-1] @ weights, values.min(axis=1), values.max(axis=1))


def _evaluate_statistic_at_outcome(phi: Callable[[Any], float], outcome: Any) -> float:
    value = phi(outcome)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"statistic({outcome!r}) = {value!r} is not a number") from None
    if not abs(number) <= LARGEST_VALUE:
        raise DiscreetError(
            f"statistic({outcome!r}) = {number:g} is not in [{-LARGEST_VALUE:g}, {LARGEST_VALUE:g}]; it has to be bounded on the outcomes"
        )
    return number


def parse_statistic_parameter(statistic: str, parameter: str) -> float:
    """The number after the colon of a statistic's name."""
    try:
        number = float(parameter)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise DiscreetError(f"statistic = {statistic!r} needs a number after the colon")
    return number


def quantile_of_shares(shares: Floats, values: Floats, level: float, first: int, last: int) -> float:
    """The first of the increasing values at which the cumulative shares reach the level, between those at the ends of its interval.

    Cumulative unbiased shares may fall, and the place where they first reach the level comes too early. So the nearest numbers that do not
    fall take their place (isotonic regression). Those of the nearest distribution keep the noise of one sign, and could leave the interval.
    """
    cumulative_shares = np.cumsum(shares)[:-1]  # without the last, which is the sum of all
    if cumulative_shares.size:
        cumulative_shares = scipy.optimize.isotonic_regression(cumulative_shares).x
    position = int(np.count_nonzero(cumulative_shares < level - 1e-12))
    return float(values[min(max(position, first), last)])


def quantile_interval_fields(
    domain: Domain, values: Floats, first: int, last: int, released: float
) -> tuple[float, float, float, float]:
    """The fields `low`, `high`, `released` and `blur` of a quantile that lies between the outcomes `first` and `last`."""
    if domain.edges is None:
        return float(values[first]), float(values[last]), released, 0.0
    blur = float(0.5 * np.diff(domain.edges)[[first, last]].max())
    return float(domain.edges[first]), float(domain.edges[last + 1]), released, blur


@dataclass(frozen=True, eq=False)
class BlockSums:
    """V of centred values. `everywhere`: the mean of V^2 over blocks; `by_outcome`: over those with each outcome, at most; `most`: max V."""

    everywhere: float
    by_outcome: Floats
    most: float


def mean_tail_probability(deviation: Floats, variance: Floats, reach: Floats, samples: int) -> Floats:
    """The probability that a mean of so many exceeds its expectation by that much, if none exceeds it by more than `reach`.

    It is that of the law on two points with the same variance and reach.
    """
    safe_reach = np.maximum(reach, 1e-150)  # whose square is no zero
    ratio = np.maximum(variance, 0.0) / (safe_reach * safe_reach)
    chance = ratio / (1.0 + ratio)
    share = np.clip((deviation / safe_reach + ratio) / (1.0 + ratio), 0.0, 1.0)
    count = samples * share
    tail = scipy.special.betainc(np.maximum(count, 1e-300), samples - count + 1.0, chance)
    return np.where(deviation <= 0.0, 1.0, np.where(deviation > reach * (1.0 + 1e-9), 0.0, tail))


def moments_of_report_sums(blocks: BlockFamily, phi: Floats) -> BlockSums:
    """The sums of centred values over blocks. Those that took long are kept: they do not depend on data."""
    is_long = isinstance(blocks, AffineBlocks) and blocks.point_count * blocks.size <= _MOST_PRODUCTS
    return (
        _cached_moments_of_report_sums(blocks, phi.tobytes())
        if is_long
        else _compute_moments_of_report_sums(blocks, phi)
    )


@lru_cache(maxsize=1024)
def _cached_moments_of_report_sums(blocks: BlockFamily, phi_bytes: bytes) -> BlockSums:
    return _compute_moments_of_report_sums(blocks, np.frombuffer(phi_bytes))


def _compute_moments_of_report_sums(blocks: BlockFamily, phi: Floats) -> BlockSums:
    squares, pair_chance = float(phi @ phi), float(blocks.chance_of_holding_second_point)
    mean_square = float(blocks.chance_of_holding_point) * (1.0 - pair_chance) * squares
    most = largest_report_sum(blocks, phi)
    if not isinstance(blocks, AffineBlocks):
        return BlockSums(mean_square, _second_moments_of_subset_sums(blocks, phi * phi, squares), most)
    if blocks.point_count * blocks.size > _MOST_PRODUCTS:
        bound = min(
            mean_square / float(blocks.chance_of_holding_point), max(most, largest_report_sum(blocks, -phi)) ** 2
        )
        return BlockSums(mean_square, np.full(blocks.size, bound), most)
    return BlockSums(mean_square, *_affine_sum_moments_and_largest_sum(blocks, phi))


def _second_moments_of_subset_sums(blocks: BlockFamily, phi_squared: Floats, squares: float | Floats) -> Floats:
    """psi for all subsets of one width: E V^2 given x, with sum phi = 0."""
    one_other = float(blocks.chance_of_holding_second_point)
    two_others = one_other * (blocks.width - 2) / (blocks.point_count - 2) if blocks.point_count > 2 else 0.0
    other_squares = squares - phi_squared  # sum of squares of the others, whose sum is -phi(x)
    return np.asarray(
        phi_squared * (1.0 - 2.0 * one_other) + one_other * other_squares + two_others * (phi_squared - other_squares)
    )


def _affine_sum_moments_and_largest_sum(blocks: AffineBlocks, phi: Floats) -> tuple[Floats, float]:
    """psi for affine blocks, and the largest V, over all vectors and shifts."""
    q, c, outcomes = blocks.prime, blocks.window, np.arange(blocks.size, dtype=np.int64)
    total, most = np.zeros(blocks.size), -math.inf
    step = max(1, _AT_ONCE // blocks.size)
    for start in range(1, blocks.point_count, step):
        vectors = np.arange(start, min(start + step, blocks.point_count), dtype=np.int64)
        indices = np.asarray(blocks.inner_product(vectors[:, None], outcomes[None, :]))
        indices += q * np.arange(len(vectors))[:, None]
        lines: Floats = np.bincount(indices.ravel(), np.tile(phi, len(vectors)), q * len(vectors)).astype(np.float64)
        sums = _cyclic_window_sums(lines.reshape(-1, q), c)
        most = max(most, float(sums.max()))
        total += _cyclic_window_sums(np.square(sums), c).ravel()[indices].sum(axis=0)
    return total / blocks.blocks_per_point, most


def _cyclic_window_sums(lines: Floats, window: int) -> Floats:
    """For every s the sum of lines at (i - s) mod q over i < window, of each row."""
    q = lines.shape[1]
    cumulative = np.zeros((len(lines), q + window + 1))
    np.cumsum(np.concatenate([lines, lines[:, :window]], axis=1), axis=1, out=cumulative[:, 1:])
    first = -np.arange(q) % q
    return np.asarray(cumulative[:, first + window] - cumulative[:, first])


def largest_report_sum(blocks: BlockFamily, phi: Floats) -> float:
    """At least the sum of phi over any block: of so many of the largest entries, where padding counts 0."""
    return float(largest_report_sum_by_column(blocks, phi[:, None])[0])


def largest_report_sum_by_column(blocks: BlockFamily, columns: Floats) -> Floats:
    """The same for each column of a table (outcomes, columns)."""
    padding = np.zeros((min(blocks.point_count - blocks.size, blocks.width), columns.shape[1]))
    return np.asarray(np.sort(np.concatenate([columns, padding]), axis=0)[-blocks.width :].sum(axis=0))


def outcome_membership_table(blocks: BlockFamily, reports: Reports) -> NDArray[np.float32]:
    """A table of ones where the block of a report holds an outcome, and zeros elsewhere."""
    outcomes, table = np.arange(blocks.size, dtype=np.int64), np.empty((len(reports), blocks.size), dtype=np.float32)
    step = max(1, _ENTRIES // blocks.size)
    for start in range(0, len(reports), step):
        table[start : start + step] = blocks.holds(reports[start : start + step, None], outcomes[None, :])
    return table


def sum_values_in_each_report(blocks: BlockFamily, reports: Reports, phi: Floats) -> Floats:
    """The sum of phi (of each of its columns) over the outcomes of each report's block."""
    sums = np.empty((len(reports), *phi.shape[1:]))
    step = max(1, _ENTRIES // blocks.size)
    for start in range(0, len(reports), step):
        sums[start : start + step] = outcome_membership_table(blocks, reports[start : start + step]) @ phi
    return sums


@dataclass(frozen=True, eq=False)
class SupportStatistics:
    """Ends of intervals of averages and distribution functions, from supports of reports, one of each client."""

    sampler: ReportSampler
    supports: Integers
    clients: int

    def mean_upper_bound(self, phi: Floats, miss: float) -> float:
        """The largest average of phi under the average client, which is exceeded with probability at most `miss`."""
        if float(phi.min()) == float(phi.max()):
            return float(phi.max())
        mean = float(phi.mean())
        centred_values = phi - mean
        if len(np.unique(phi)) == 2:
            return mean + self._centred_mean_upper_bound(centred_values, miss, math.inf)
        psi = moments_of_report_sums(self.sampler.blocks, centred_values).by_outcome
        psi_mean = float(psi.mean())
        psi_bound = psi_mean + self._centred_mean_upper_bound(psi - psi_mean, _FOR_VARIANCE * miss, math.inf)
        return mean + self._centred_mean_upper_bound(centred_values, (1.0 - _FOR_VARIANCE) * miss, psi_bound)

    def _centred_mean_upper_bound(self, phi: Floats, miss: float, psi_bound: float) -> float:
        """The same for values with sum 0. `psi_bound`: a bound on P(psi), from elsewhere."""
        least, most, observed_mean = float(phi.min()), float(phi.max()), self._mean_report_sum(phi)
        if least == most:
            return most
        test = _AverageTest.of_values(self.sampler, phi, self.clients, psi_bound)

        def tail_minus_miss(mu: float) -> float:
            return float(test.probability_of_mean_at_most(np.array([mu]), observed_mean)[0]) - miss

        if tail_minus_miss(most) >= 0.0:
            return most
        low = min(max(observed_mean / self.sampler.chances.gap, least), most)
        if tail_minus_miss(low) < 0.0:  # the estimate lies below all values
            return low
        narrow = 1e-12 * (most - least)
        return min(float(scipy.optimize.brentq(tail_minus_miss, low, most, xtol=narrow)) + 2.0 * narrow, most)

    def _mean_report_sum(self, phi: Floats) -> float:
        return float(phi @ self.supports) / self.clients

    def quantile_index_range(self, order: Integers, level: float, miss: float) -> tuple[int, int]:
        """The first and the last index in the order that the quantile may have."""
        size = len(order)
        if size == 1:
            return 0, 0
        step = _spacing_of_tested_quantile_thresholds(self.sampler.blocks)
        grid = np.arange(step - 1, size - 1, step)  # the whole has share 1 for certain
        prefix_sums = np.cumsum(self.supports[order])[grid] / self.clients
        # outcomes of a report; fewer than its points where some are padding
        width = float(self.supports.sum()) / self.clients
        observed_means = prefix_sums - (grid + 1) / size * width  # the mean of V for the centred set
        tests = prefix_share_tests(self.sampler, grid + 1, self.clients, level)
        mu = level - (grid + 1) / size
        too_small, too_large = (
            tail_of(mu, observed_means) < miss
            for tail_of in (tests.probability_of_mean_at_most, tests.probability_of_mean_at_least)
        )
        first = self._first_index_not_rejected(order, grid[~too_small], level, miss, below=True)
        last = self._first_index_not_rejected(order, grid[~too_large][::-1], level, miss, below=False)
        start = int(grid[-1]) + 1 if first is None else first - step + 1
        return start, (int(grid[0]) if last is None else min(last + step, size - 1))

    def _first_index_not_rejected(
        self, order: Integers, indices: Integers, level: float, miss: float, *, below: bool
    ) -> int | None:
        """The first of the indices at which the level is not rejected, with the exact variance of the sets where that is known."""
        blocks = self.sampler.blocks
        if not isinstance(blocks, AffineBlocks) or blocks.point_count * blocks.size > _MOST_PRODUCTS:
            return int(indices[0]) if len(indices) else None
        for index in indices.tolist():
            phi = np.full(len(order), -(index + 1.0) / len(order))
            phi[order[: index + 1]] += 1.0
            test = _AverageTest.of_values(self.sampler, phi, self.clients, math.inf)
            mu = np.array([level - (index + 1.0) / len(order)])
            tail = (test.probability_of_mean_at_most if below else test.probability_of_mean_at_least)(
                mu, self._mean_report_sum(phi)
            )
            if tail[0] >= miss:
                return int(index)
        return None


def _spacing_of_tested_quantile_thresholds(blocks: BlockFamily) -> int:
    """How far apart the thresholds of a quantile are: 1, or as far as keeps their variances from taking seconds."""
    if not isinstance(blocks, AffineBlocks) or blocks.point_count * blocks.size > _MOST_PRODUCTS:
        return 1
    return -(-blocks.size * blocks.point_count * blocks.size // _MOST_REFINED)


@dataclass(frozen=True, eq=False)
class _AverageTest:
    """Tests of the average mu of centred values, by the mean of V. `second_moment`: E V^2 for an average mu, at most."""

    clients: int
    gap: float
    most: float | Floats
    least: float | Floats
    second_moment: Callable[[Floats], Floats]

    @classmethod
    def of_values(cls, sampler: ReportSampler, phi: Floats, clients: int, bound: float) -> _AverageTest:
        """The tests of centred values; `bound`: on P(psi), from elsewhere."""
        sums, chances = moments_of_report_sums(sampler.blocks, phi), sampler.chances
        own_weight = chances.gap / (1.0 - float(sampler.blocks.chance_of_holding_second_point))  # 1 - beta
        hull_x, hull_y = concave_hull(phi, sums.by_outcome)

        def second_moment(mu: Floats) -> Floats:
            return (1.0 - own_weight) * sums.everywhere + own_weight * np.minimum(np.interp(mu, hull_x, hull_y), bound)

        return cls(clients, chances.gap, sums.most, -moments_of_report_sums(sampler.blocks, -phi).most, second_moment)

    def probability_of_mean_at_most(self, mu: Floats, observed_mean: float | Floats) -> Floats:
        """The probability of so small a mean of V, or a smaller one."""
        expected_mean = self.gap * mu
        return mean_tail_probability(
            expected_mean - observed_mean,
            self.second_moment(mu) - expected_mean**2,
            expected_mean - self.least,
            self.clients,
        )

    def probability_of_mean_at_least(self, mu: Floats, observed_mean: float | Floats) -> Floats:
        """The probability of so large a mean of V, or a larger one."""
        expected_mean = self.gap * mu
        return mean_tail_probability(
            observed_mean - expected_mean,
            self.second_moment(mu) - expected_mean**2,
            self.most - expected_mean,
            self.clients,
        )


def prefix_share_tests(sampler: ReportSampler, sizes: Integers, clients: int, level: float) -> _AverageTest:
    """Tests of the shares of sets of 1, 2, ... outcomes at once, whichever these are, if all sets had the share `level`."""
    blocks, k = sampler.blocks, sampler.family.size
    w, padding, share, gap = blocks.width, blocks.point_count - k, sizes / k, sampler.chances.gap
    squares, pair_chance = sizes * (1.0 - share), float(blocks.chance_of_holding_second_point)
    mean_square = float(blocks.chance_of_holding_point) * (1.0 - pair_chance) * squares
    if isinstance(blocks, AffineBlocks):
        inside = outside = mean_square / float(blocks.chance_of_holding_point)
    else:
        inside = _second_moments_of_subset_sums(blocks, np.square(1.0 - share), squares)
        outside = _second_moments_of_subset_sums(blocks, np.square(share), squares)
    own_weight = gap / (1.0 - pair_chance)  # 1 - beta
    inside, outside = ((1.0 - own_weight) * mean_square + own_weight * moment for moment in (inside, outside))
    second_moment = np.asarray(level * inside + (1.0 - level) * outside)
    most = _largest_report_sums_by_set_size(w, sizes, padding, share)
    least = -_largest_report_sums_by_set_size(w, k - sizes, padding, 1.0 - share)
    return _AverageTest(clients, gap, most, least, lambda _: second_moment)


def _largest_report_sums_by_set_size(width: int, sizes: Integers, padding: int, share: Floats) -> Floats:
    """`largest_report_sum` of the centred indicators of sets with these sizes."""
    others = np.maximum(width - sizes - padding, 0)
    return np.asarray(np.minimum(width, sizes) * (1.0 - share) - others * share)


def concave_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of the concave hull of points from above, by increasing x."""
    order = np.lexsort((-y, x))
    corners: list[tuple[float, float]] = []
    for position, height in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if corners and corners[-1][0] == position:
            continue
        while len(corners) > 1:
            (a, at_a), (b, at_b) = corners[-2:]
            if (at_b - at_a) * (position - a) > (height - at_a) * (b - a):
                break
            corners.pop()
        corners.append((position, height))
    points = np.array(corners)
    return points[:, 0], points[:, 1]
