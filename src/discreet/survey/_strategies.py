"""What a client may be asked, and how often: the reports that answer each question with the smallest variance.

A survey puts one question to each client, with the whole budget; a public coin chooses which, and is part of the report
(`discreet.survey._parts`).

**Shares, histograms, own sums.** Blocks of outcomes (`discreet.mechanisms`), whose variance is within 1 % of the best subset selection's.
For own sums of up to 200 outcomes also blocks that are optimised for them (`discreet.survey._weighted_blocks`), kept where they are better.

**A mean.** The value u in [0, 1] is rounded at random to one of the points 0 .. N - 1, without bias. A report is one of M = N - 1 + w
numbers j: with probability beta = M/(M + (e^eps - 1) w) a uniform one, else uniform among the w numbers s .. s + w - 1 from the point s on.
Each report has probability between beta/M and e^eps beta/M, so it is eps-LDP, and E j = beta (M - 1)/2 + (1 - beta)(s + (w - 1)/2) is
affine in s: the mean of j estimates that of u without bias. N = 2, w = 1 is the mechanism of Duchi, Jordan and Wainwright; many points and
w/M = 1/(e^(eps/2) + 1) the piecewise one of Wang et al. (2019), and a coin between the two their hybrid one. Here N and w are those with the
smallest worst-case variance among some with M <= 64, alone or by a coin with the two ends. (Past eps = 8 more numbers would be better.)
These are the variances v(u) of a report's value given u. Clients differ, and a coin asks only some of them, so the answer of clients drawn
from a population has the variance E[v(u) + (u - 1/2)^2] - (E u - 1/2)^2. v is the same at u and 1 - u. So this is largest for clients half of
whom are at the u with the largest v(u) + (u - 1/2)^2, and half at 1 - u. That is `Strategy.variance`, by which the coin is chosen.

**A distribution function and its quantiles.** A tree over K = B^L equal cells: level l has B^l nodes, and each client reports its node of
one level by blocks. Let level l have share pi_l and variance v_l per node. The contrasts of children at depth j are seen by every level
l >= j, a node of depth j being the sum of B^(l - j) nodes of level l. By orthogonality of these contrasts the least-squares estimate
separates by depth, and has variance 1/(n lambda_j) in each direction of depth j, scaled to cells, where

    lambda_j = sum over l >= j of pi_l B^(L - l)/v_l.

The mean variance of the distribution function over all cells is then sum_j c_j/(n lambda_j) with constants c_j of the tree. It is convex in
pi; the choice of pi is found by the multiplicative algorithm for A-optimal designs [Silvey, Titterington and Torsney 1978], and B by
comparison. (Noise of blocks has the same variance in every direction but the constant one, where it is less.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.mechanisms import (
    BlockFamily,
    MaskedSubsets,
    RankedSubsets,
    Reports,
    choose_blocks,
    share_variance_in_uniform_population,
)
from discreet.survey._columns import Integers, JointColumns, NumberCell, NumberPoint, Projection, SurveyColumns
from discreet.survey._questions import (
    HistogramQuestion,
    LinearQuestion,
    MeanQuestion,
    QuantileQuestion,
    ShareQuestion,
    SurveyQuestion,
)
from discreet.survey._weighted_blocks import (
    MOST_ENTRIES,
    MOST_OUTCOMES,
    WeightedBlocks,
    centred_rows,
    optimise_blocks,
    sum_variance_lower_bound,
)

Floats = NDArray[np.float64]
SHARE_UNITS = 1 << 30  # in which shares of clients are stated
_LARGEST_MASK = 56  # outcomes whose masks leave room for other questions in 64 bits
_TREES = ((2, 9), (3, 6), (4, 5), (8, 3))
_MOST_NUMBERS = 64  # that a report on a mean can be
MOST_POINTS = 4096  # that an agreement may state
LARGEST_TREE = 4096  # cells of one
_LEAST_SHARE = 1 / 256  # of a level or an end, below which it is left out
_BETTER = 0.99  # times the mean variance of sums by blocks of one width: below it optimised ones are kept
_STEPS = 256  # of the coin between ends and windows, and of values where variances are compared


@dataclass(frozen=True)
class Windows:
    """Reports on points of a line: the numbers below `points + width - 1`, of which `width` from a point on hold it."""

    size: int
    width: int
    name: ClassVar[str] = "windows"

    @property
    def block_count(self) -> int:
        """M: how many reports there are."""
        return self.size - 1 + self.width

    @property
    def blocks_per_point(self) -> int:
        """How many of them hold a given point."""
        return self.width

    @property
    def largest_report(self) -> int:
        """The largest report."""
        return self.block_count - 1

    @property
    def distinct_report_count(self) -> int:
        """How many reports there are: one for each rank."""
        return self.block_count

    def all_reports(self) -> Reports:
        """All reports, in order."""
        return np.arange(self.block_count, dtype=np.uint64)

    def rank_counts_of_reports(self, reports: Reports) -> Integers:
        """How many ranks each report has: one."""
        return np.ones(reports.shape, dtype=np.int64)

    def reports_of_ranks(self, rank: Integers) -> Reports:
        """The report of each rank."""
        return rank.astype(np.uint64)

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        """The report of each rank among those that hold a point."""
        return (outcomes + rank).astype(np.uint64)

    def are_valid_reports(self, reports: Reports) -> NDArray[np.bool_]:
        """Which numbers are reports."""
        return np.asarray(reports < self.block_count)

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        """Whether each report holds each point; arrays are broadcast."""
        offsets = reports.astype(np.int64) - outcomes
        return np.asarray((offsets >= 0) & (offsets < self.width))

    def unbiased_report_values(self, beta: float) -> Floats:
        """The unbiased value of u in [0, 1] that each report stands for, where a share beta of reports is uniform."""
        middle = beta * (self.block_count - 1) / 2 + (1.0 - beta) * (self.width - 1) / 2
        return np.asarray((np.arange(self.block_count) - middle) / ((1.0 - beta) * (self.size - 1)))

    def value_variances(self, growth: float) -> Floats:
        """The variance of a client's value, for u on a grid of [0, 1]."""
        beta = self.block_count / (self.block_count + (growth - 1.0) * self.width)
        squares = np.square(self.unbiased_report_values(beta))
        uniform = squares.mean()
        window_means = np.convolve(squares, np.full(self.width, 1.0 / self.width), mode="valid")  # at each point
        positions = np.linspace(0.0, 1.0, _STEPS + 1)
        moment = beta * uniform + (1.0 - beta) * np.interp(positions, np.linspace(0.0, 1.0, self.size), window_means)
        return np.asarray(moment - np.square(positions))


@dataclass(frozen=True)
class ReportClass:
    """Reports that some clients send equally likely: their chance together for each client, and the least and the most for any."""

    chances: tuple[Fraction, ...]
    least: Fraction
    most: Fraction


Blocks = BlockFamily | Windows | WeightedBlocks


@dataclass(frozen=True)
class Part:
    """One thing that a client may be asked: an outcome of its row, reported by blocks, windows or weighted blocks.

    Attributes:
        question: the place of the question that it helps to answer; -1 for a table that no question names.
        projection: from rows to outcomes.
        blocks: the reports.
        share: of the clients that are asked it.
    """

    question: int
    projection: Projection
    blocks: Blocks
    share: float

    @cached_property
    def reserved_report_number_count(self) -> int:
        """How many numbers a part takes for its reports: one more than the largest."""
        return self.blocks.largest_report + 1

    @property
    def share_in_whole_units(self) -> int:
        """The share as a whole number of units of 2^-30, at least one."""
        return max(1, round(self.share * SHARE_UNITS))

    def chance_of_outcome_in_report(self, report: Reports, law: dict[int, Fraction]) -> Fraction:
        """The probability that the outcome of a client with this law is one that a report (1,) holds."""
        inside = (chance for outcome, chance in law.items() if self.blocks.holds(report, np.array([outcome]))[0])
        return sum(inside, Fraction(0))

    def report_classes(
        self, columns: SurveyColumns, rows: Sequence[int], share: Fraction, beta: Fraction
    ) -> list[ReportClass]:
        """Its reports in classes that two clients with these rows do not tell apart; `share`: asked it, `beta`: uniform."""
        least, extra = share * beta / self.blocks.block_count, share * (1 - beta) / self.blocks.blocks_per_point
        counts = self._report_counts_by_holding_chances(
            [self.projection.outcome_probabilities(columns, row) for row in rows]
        )
        return [
            ReportClass(
                tuple(count * (least + extra * chance) for chance in chances), count * least, count * (least + extra)
            )
            for chances, count in counts.items()
        ]

    def _report_counts_by_holding_chances(self, laws: Sequence[dict[int, Fraction]]) -> dict[tuple[Fraction, ...], int]:
        """How many reports hold the outcomes of two clients with these laws, by the two probabilities that they do."""
        blocks, counts = self.blocks, dict[tuple[Fraction, ...], int]()
        if isinstance(blocks, BlockFamily):  # so many that they are counted, not listed; outcomes are certain
            (first,), (second,) = laws
            pair_count = blocks.blocks_per_point if first == second else blocks.blocks_per_pair
            single_count = blocks.blocks_per_point - pair_count
            one, zero = Fraction(1), Fraction(0)
            counts = {
                (one, one): pair_count,
                (one, zero): single_count,
                (zero, one): single_count,
                (zero, zero): blocks.block_count - pair_count - 2 * single_count,
            }
        else:
            for report in blocks.all_reports():
                report_array = np.array([report], dtype=np.uint64)
                chances = tuple(self.chance_of_outcome_in_report(report_array, law) for law in laws)
                counts[chances] = counts.get(chances, 0) + int(blocks.rank_counts_of_reports(report_array)[0])
        return {chances: count for chances, count in counts.items() if count}


@dataclass(frozen=True)
class Strategy:
    """How one question is answered.

    Attributes:
        parts: what its clients are asked; shares add up to 1.
        variance: n times the variance of its answer in the worst population that is considered, if all clients are asked: that of a share
            in the uniform population, of a mean in parts of the range, of the distribution function on average over its cells.
    """

    parts: tuple[Part, ...]
    variance: float


def choose_strategy(question: SurveyQuestion, index: int, columns: SurveyColumns, bound: Fraction) -> Strategy:
    """The reports with the smallest variance for a question, at a rational bound of e^epsilon."""
    match question:
        case MeanQuestion():
            return _strategy_for_mean(question.columns[0], index, float(bound))
        case QuantileQuestion():
            return _strategy_for_quantiles(question.columns[0], index, bound, columns[question.columns[0]].size)
        case HistogramQuestion():
            cells = NumberCell(question.columns[0], question.cells)
            return _strategy_for_shares(cells, index, columns, bound)
        case LinearQuestion():
            return _strategy_for_sums(question, index, columns, bound)
        case ShareQuestion():
            return _strategy_for_shares(JointColumns(question.columns), index, columns, bound)
    raise DiscreetError(f"questions holds {question!r}, which is no question; shares(...) makes one")


def best_blocks_for_size(size: int, bound: Fraction) -> BlockFamily:
    """The best blocks on so many outcomes whose numbers leave room for those of other questions."""
    blocks = choose_blocks(size, bound)
    if isinstance(blocks, MaskedSubsets) and size > _LARGEST_MASK:
        return RankedSubsets(size, blocks.width)
    return blocks


def share_variance(blocks: BlockFamily, growth: float) -> float:
    """n times the variance of a share in the uniform population."""
    return share_variance_in_uniform_population(blocks.size, blocks.point_count, blocks.width, growth)


def _strategy_for_shares(
    projection: JointColumns | NumberCell, index: int, columns: SurveyColumns, bound: Fraction
) -> Strategy:
    blocks = best_blocks_for_size(projection.outcome_count(columns), bound)
    return Strategy((Part(index, projection, blocks, 1.0),), share_variance(blocks, float(bound)))


def _strategy_for_sums(question: LinearQuestion, index: int, columns: SurveyColumns, bound: Fraction) -> Strategy:
    """Blocks of one width, or those that are optimised for the sums: if their mean variance is less, and the largest no more."""
    projection, matrix = JointColumns(question.columns), question.matrix
    size = projection.outcome_count(columns)
    blocks = best_blocks_for_size(size, bound)
    variances = _sum_variances(matrix, blocks, float(bound))
    if size <= MOST_OUTCOMES and matrix.size <= MOST_ENTRIES:
        threshold = _BETTER * float(variances.mean())
        if sum_variance_lower_bound(matrix, float(bound - 1)) < threshold:
            optimised_blocks = optimise_blocks(matrix, bound)
            if optimised_blocks.mean < threshold and optimised_blocks.largest <= variances.max():
                return Strategy((Part(index, projection, optimised_blocks.blocks, 1.0),), optimised_blocks.largest)
    return Strategy((Part(index, projection, blocks, 1.0),), float(variances.max()))


def _sum_variances(matrix: Floats, blocks: BlockFamily, growth: float) -> Floats:
    """n times the variance of each sum of shares in the uniform population: a constant in all entries of a row has no noise."""
    return np.asarray(np.square(centred_rows(matrix)).sum(axis=1) * variance_per_contrast(blocks, growth))


@lru_cache(maxsize=256)
def choose_windows_and_share_for_mean(growth: float) -> tuple[Windows, float, float]:
    """Windows, the share of clients that report by them and not by the two ends, and the worst-case variance."""
    ends = Windows(2, 1).value_variances(growth)
    best = Windows(2, 1), 1.0, float(ends.max())
    mixes = np.arange(_STEPS // 4 + 1) / (_STEPS // 4)
    for report_count in (3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, _MOST_NUMBERS):
        for width in range(1, report_count - 1):
            windows = Windows(report_count - width + 1, width)
            worst = (np.outer(mixes, windows.value_variances(growth)) + np.outer(1.0 - mixes, ends)).max(axis=1)
            index = int(worst.argmin())
            if worst[index] < best[2] and mixes[index] > _LEAST_SHARE:
                best = windows, float(mixes[index]), float(worst[index])
    return best


def _strategy_for_mean(column: str, index: int, growth: float) -> Strategy:
    windows, share, _ = choose_windows_and_share_for_mean(growth)
    parts = [Part(index, NumberPoint(column, windows.size), windows, share)]
    if share < 1.0:
        parts.append(Part(index, NumberPoint(column, 2), Windows(2, 1), 1.0 - share))
    return Strategy(tuple(parts), _mean_variance_in_worst_population(parts, growth))


def _mean_variance_in_worst_population(parts: Sequence[Part], growth: float) -> float:
    """n times the variance of a mean, for clients drawn from the population where it is largest; their shares add up to 1."""
    variances = sum(
        part.share * part.blocks.value_variances(growth) for part in parts if isinstance(part.blocks, Windows)
    )
    from_middle = np.linspace(-0.5, 0.5, _STEPS + 1)
    return float((variances + np.square(from_middle)).max())


@dataclass(frozen=True)
class Tree:
    """B^L equal cells, seen through the nodes of some of the levels 1 to L.

    Attributes:
        branching: B.
        depth: L.
    """

    branching: int
    depth: int

    @classmethod
    def finest_with_cell_count(cls, cells: int) -> Tree:
        """The finest tree on so many cells: 4 children are 2 of 2 each."""
        branching = next(prime for prime in (2, 3, 5, 7) if cells % prime == 0)
        return cls(branching, round(math.log(cells, branching)))

    @property
    def cell_count(self) -> int:
        """K = B^L, the number of cells."""
        return int(self.branching**self.depth)

    def node_count(self, level: int) -> int:
        """B^l, the number of nodes on a level."""
        return int(self.branching**level)

    @cached_property
    def variance_cost_by_depth(self) -> Floats:
        """c_j: the mean variance of the distribution function for a unit variance of the cells in the directions of each depth."""
        totals, tails = [], np.arange(self.cell_count, 0, -1)  # (T'T)[x, y] = K - max(x, y) for prefix sums T
        for depth in range(self.depth + 1):
            nodes = self.node_count(depth)
            width = self.cell_count // nodes
            largest = tails.reshape(nodes, width)
            pair_sum = (largest * (2 * np.arange(width) + 1)).sum()  # sum of K - max(x, y) over pairs of one node
            totals.append(pair_sum / width)
        return np.asarray(np.diff(totals) / self.cell_count)

    def precision_by_depth(self, amounts: Floats) -> Floats:
        """lambda_j for amounts pi_l/v_l."""
        per_cell = amounts * np.array([self.node_count(self.depth - level) for level in range(1, self.depth + 1)])
        return np.asarray(np.cumsum(per_cell[::-1])[::-1])

    def best_level_shares_and_variance(self, variances: Floats) -> tuple[Floats, float]:
        """The shares of clients on each level with the smallest mean variance, and that variance."""
        shares = np.full(self.depth, 1.0 / self.depth)
        scale = np.array([self.node_count(self.depth - level) for level in range(1, self.depth + 1)]) / variances
        for _ in range(500):
            precision = self.precision_by_depth(shares / variances)
            gains = scale * np.cumsum(self.variance_cost_by_depth / np.square(precision))
            shares = shares * np.sqrt(gains)
            shares /= shares.sum()
        shares = np.where(shares < _LEAST_SHARE, 0.0, shares)
        shares /= shares.sum()
        return shares, float((self.variance_cost_by_depth / self.precision_by_depth(shares / variances)).sum())


def _candidate_trees(size: int) -> list[Tree]:
    """The trees whose cells are unions of so many; a smaller one where all are too fine."""
    trees = [Tree(*shape) for shape in _TREES if Tree(*shape).cell_count <= size]
    return trees or [Tree(2, size.bit_length() - 1)]


def _strategy_for_quantiles(column: str, index: int, bound: Fraction, size: int) -> Strategy:
    best: Strategy | None = None
    for tree in _candidate_trees(size):
        levels = range(1, tree.depth + 1)
        blocks = [best_blocks_for_size(tree.node_count(level), bound) for level in levels]
        shares, variance = tree.best_level_shares_and_variance(
            np.array([variance_per_contrast(level_blocks, float(bound)) for level_blocks in blocks])
        )
        if best is None or variance < best.variance:
            level_choices = zip(levels, blocks, shares.tolist(), strict=True)
            parts = (
                Part(index, NumberCell(column, tree.node_count(level)), level_blocks, share)
                for level, level_blocks, share in level_choices
                if share
            )
            best = Strategy(tuple(parts), variance)
    assert best is not None
    return best


def variance_per_contrast(blocks: Blocks, growth: float) -> float:
    """n times the variance of a table, or of the nodes of a level, in each direction but the constant one."""
    assert isinstance(blocks, BlockFamily)
    return share_variance(blocks, growth) * blocks.size / (blocks.size - 1)


def strategy_of_parts(question: SurveyQuestion, parts: Sequence[Part], bound: Fraction) -> Strategy:
    """The strategy that some parts are, with its variance; shares are those of the clients that are asked the question."""
    total, growth = sum(part.share for part in parts), float(bound)
    scaled_parts = tuple(replace(part, share=part.share / total) for part in parts)
    blocks = scaled_parts[0].blocks
    if isinstance(question, QuantileQuestion):
        return Strategy(scaled_parts, _distribution_function_variance(scaled_parts, growth))
    if isinstance(blocks, Windows):
        return Strategy(scaled_parts, _mean_variance_in_worst_population(scaled_parts, growth))
    if isinstance(question, LinearQuestion):
        if isinstance(blocks, WeightedBlocks):
            return Strategy(
                scaled_parts, float(blocks.sum_variances_per_client_if_uniform(question.matrix, growth - 1.0).max())
            )
        return Strategy(scaled_parts, float(_sum_variances(question.matrix, blocks, growth).max()))
    assert isinstance(blocks, BlockFamily)
    return Strategy(scaled_parts, share_variance(blocks, growth))


def _distribution_function_variance(parts: Sequence[Part], growth: float) -> float:
    """The mean variance of a distribution function by the levels of a tree that some parts are."""
    tree = Tree.finest_with_cell_count(parts[-1].blocks.size)
    amounts = np.zeros(tree.depth)
    for part in parts:
        level = round(math.log(part.blocks.size, tree.branching))
        amounts[level - 1] = part.share / variance_per_contrast(part.blocks, growth)
    return float((tree.variance_cost_by_depth / tree.precision_by_depth(amounts)).sum())
