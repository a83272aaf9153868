"""Least squares over all reports on a survey: tables of shares that agree, sums of shares, and distribution functions by levels of a tree.

**Tables.** Two tables that have columns in common both tell the marginal of these. Weighted least squares over all tables at once is, by
orthogonality, the weighted mean of each effect over the tables that see it (`discreet.survey._parts`). The effect of no column is the
total, which is 1. So a consistent share is 1/K plus a sum over tables of coefficients of their shares, and each report on table i gives the
sum V of its coefficients over its block: n/(n_i gap_i) V has the mean of that table's part, over n_i of n clients.

**Intervals of shares.** Those of a question's own reports are proved (`discreet.estimation._surveys`). Often other tables tell the same
shares more precisely. Then values V of all small tables are taken together. Values of one table are shifted by their mean, and scaled by
sqrt(n_i/(n_i - 1)), so that the differences between the tables do not count as noise. Gaffke's bound of the mean of these values
(`discreet.estimation._inference._intervals`) is how far the truth may be from the estimate. This is no theorem: the bound is a conjecture for
independent values, and the shift is estimated from the same reports. For many clients it is the normal interval. Tests measure its
coverage. Tables with fewer than 30 reports are not used, or with fewer than 4 where that would leave too few clients. Which tables are used
depends on the numbers of clients alone.

**Sums of shares, distribution functions.** A report B of a level or a question gives V = sum of g over B, for coefficients g of outcomes, and
(V - p_out sum g)/(p_in - p_out) has the mean of g under the client's law. Intervals for the mean of such values are
Gaffke's, whose coverage is a conjecture (`discreet.estimation._inference._intervals`); those of means, sums and quantiles rest on it.

**Quantiles.** With F the distribution function at the edges of the cells, `F(e) >= level` is tested at each edge from the left until one is
not rejected, and `F(e) <= level` from the right: the first true hypothesis of either sequence is wrongly rejected with probability at most
(1 - confidence)/2, and the interval misses only then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.estimation._inference._intervals import Shares, average_upper_bound, one_sided_miss_probability
from discreet.estimation._inference._statistics import (
    largest_report_sum_by_column,
    outcome_membership_table,
    sum_values_in_each_report,
)
from discreet.families import Simplex
from discreet.mechanisms import BlockFamily, ReportCounts, Reports, ReportSampler
from discreet.survey import (
    JointColumns,
    Part,
    SurveyColumns,
    SurveySampler,
    Tree,
    cell_edges,
    column_subsets,
    columns_in_survey_order,
    variance_per_contrast,
)

Floats = NDArray[np.float64]
Columns = tuple[str, ...]
ReportsWithMembership = tuple[NDArray[np.float32] | None, Reports, NDArray[np.int64]]  # and how often each came
_LARGEST_HELD = 1 << 26  # entries of a table of reports and shares that are handled together
_LARGEST_COEFFICIENTS = 1 << 16  # of a table's shares in those of a question, in its intervals
_LARGEST_SUMMED = 1 << 22  # outcomes of all different reports on a table that is used for them
_LARGEST_KEPT = 1 << 20  # the same, of a table whose outcomes are kept for the next question
_FEWEST, _FEW = 30, 4  # reports on a table that is used for them; and where that would leave too few clients
_NOT_WORTH = 1.1  # times as much variance, up to which the intervals of a question's own reports stay
_GRID = 2048  # steps of a grid on which values are counted
_NEAR, _FAR = 0.8, 1.6  # normal intervals: edges nearer to a level are kept, and farther ones rejected, without a look
_FARTHEST, _MANY = 8.0, 1000  # standard errors beyond which an edge is rejected where a level has fewer reports
_EDGES = 16  # that are looked at together


class ShareTables:
    """The tables of shares that clients were asked for, which agree after weighted least squares."""

    def __init__(self, sampler: SurveySampler, reports: Sequence[Reports]) -> None:
        self._sampler, self._columns = sampler, sampler.survey.columns
        self._tables = list(sampler.tables.values())
        self._parts = [sampler.parts[number] for number in sampler.tables]
        self._reports = [reports[number] for number in sampler.tables]
        self._clients = np.array([len(table_reports) for table_reports in self._reports])
        samplers = [report_sampler_of_survey_part(sampler, part) for part in self._parts]
        self._written = [part.projection.columns for part in self._parts if isinstance(part.projection, JointColumns)]
        self._chances = [(table_sampler.chances.outside, table_sampler.chances.gap) for table_sampler in samplers]
        self._held: dict[int, NDArray[np.float32]] = {}
        self._shares: list[Floats] = []
        for names, order, table_sampler, table_reports in zip(
            self._tables, self._written, samplers, self._reports, strict=True
        ):
            self._shares.append(
                _reorder_table_columns(
                    self._columns, unbiased_shares_from_reports(table_sampler, table_reports), order, names
                )
            )

    def consistent_shares_of_columns(self, columns: Columns) -> Floats:
        """The shares of a question's outcomes by all tables."""
        names = columns_in_survey_order(self._columns, columns)
        return _reorder_table_columns(
            self._columns, self._least_squares_table_of_columns(names, self._clients), names, columns
        ).ravel()

    def pooled_shares_if_better(
        self, columns: Columns, own_reports: int, confidence: float, among: int
    ) -> Shares | None:
        """The shares by the small tables, with intervals; None where a question's own reports, so many, do about as well."""
        names = columns_in_survey_order(self._columns, columns)
        table_mask = self._which_tables_are_worth_using(names, own_reports)
        if not table_mask.any():
            return None
        tables = self._shares_and_interval_ends(names, table_mask, confidence, among)
        return Shares(*(_reorder_table_columns(self._columns, table, names, columns).ravel() for table in tables))

    def _least_squares_table_of_columns(self, names: Columns, clients: NDArray[np.int64]) -> Floats:
        """The least-squares table over columns from the reports of these tables; an effect that nobody tells is 0."""
        sizes = self._columns.column_sizes(names)
        weights = self._sampler.marginals.table_weights_in_effects(clients)
        table = np.full(sizes, 1.0 / math.prod(sizes))
        for effect in column_subsets(names):
            effect_number = self._sampler.marginals.places.get(effect)
            if effect_number is None:
                continue
            contrast = np.zeros(self._columns.column_sizes(effect))
            for number in np.flatnonzero(weights[:, effect_number]):
                contrast += weights[number, effect_number] * _interaction_effect_of_columns(
                    self._shares[number], self._tables[number], effect
                )
            shape = [size if name in effect else 1 for name, size in zip(names, sizes, strict=True)]
            table = table + contrast.reshape(shape) * (contrast.size / math.prod(sizes))
        return table

    def _which_tables_are_worth_using(self, names: Columns, own_reports: int) -> NDArray[np.bool_]:
        """The tables from which an interval is computed: none where the question's own reports do about as well."""
        cells, marginals = math.prod(self._columns.column_sizes(names)), self._sampler.marginals
        is_related = np.array([bool(set(names) & set(table)) for table in self._tables])
        is_related &= self._clients >= self._fewest_reports_to_use_table(names, is_related)
        is_small = (
            is_related
            & self._which_tables_sum_quickly
            & np.array([shares.size * cells <= _LARGEST_COEFFICIENTS for shares in self._shares])
        )
        is_same = np.array([table == names for table in self._tables])
        pooled_variance = marginals.cell_variance(names, np.where(is_small, self._clients, 0))
        own_variance = marginals.cell_variance(names, np.where(is_same, self._clients, 0)) if own_reports else math.inf
        if own_reports and own_variance <= _NOT_WORTH * pooled_variance:
            return np.zeros(len(is_related), dtype=bool)
        if math.isfinite(pooled_variance):
            return np.asarray(is_small)
        full_variance = marginals.cell_variance(names, np.where(is_related, self._clients, 0))
        return np.asarray(is_related & (math.isfinite(full_variance) and not own_reports))

    def _fewest_reports_to_use_table(self, names: Columns, is_related: NDArray[np.bool_]) -> int:
        """How many reports a table needs to be used: fewer where most clients were asked tables with few reports each."""

        def variance_at_report_threshold(fewest: int) -> float:
            table_mask = is_related & (self._clients >= fewest)
            return self._sampler.marginals.cell_variance(names, np.where(table_mask, self._clients, 0))

        return (
            _FEWEST
            if variance_at_report_threshold(_FEWEST) <= _NOT_WORTH * variance_at_report_threshold(_FEW)
            else _FEW
        )

    def _shares_and_interval_ends(
        self, names: Columns, table_mask: NDArray[np.bool_], confidence: float, among: int
    ) -> tuple[Floats, ...]:
        """The consistent shares by these tables alone, and the ends of their intervals: each alone, and all together."""
        clients = np.where(table_mask, self._clients, 0)
        weights = self._sampler.marginals.table_weights_in_effects(clients)
        estimate = self._least_squares_table_of_columns(names, clients)
        numbers, cells, everyone = np.flatnonzero(table_mask), estimate.size, int(clients.sum())
        ends: list[list[float]] = [[], [], [], []]
        step = max(
            1, _LARGEST_HELD // (8 * sum(len(self._distinct_reports_with_counts[number][0]) for number in numbers))
        )
        for start in range(0, cells, step):
            batch = np.arange(start, min(start + step, cells))
            values, counts, reach = [], [], np.zeros(len(batch))
            for number in numbers.tolist():
                (_, report_counts), (_, gap) = self._distinct_reports_with_counts[number], self._chances[number]
                blocks = self._parts[number].blocks
                assert isinstance(blocks, BlockFamily)
                coefficients = self._coefficients_of_table_in_shares(number, names, weights[number], batch)
                scale = everyone / (clients[number] * gap)
                sums = scale * self._coefficient_sums_by_report(number, coefficients)
                mean = report_counts @ sums / clients[number]
                correction = math.sqrt(clients[number] / (clients[number] - 1))
                values.append((sums - mean) * correction)
                counts.append(report_counts)
                widest = np.maximum(
                    scale * largest_report_sum_by_column(blocks, coefficients) - mean,
                    mean - scale * -largest_report_sum_by_column(blocks, -coefficients),
                )
                reach = np.maximum(reach, widest * correction)
            binned_counts = _bin_values_linearly_on_grid(np.concatenate(values), np.concatenate(counts), reach)
            for column, share in enumerate(estimate.ravel()[batch]):
                grid = np.linspace(-reach[column], reach[column], _GRID + 1)
                for kind, (count, sign) in enumerate(((1, -1.0), (1, 1.0), (among, -1.0), (among, 1.0))):
                    margin = average_upper_bound(sign * grid, binned_counts[column], confidence, among=count)
                    ends[kind].append(float(share) + sign * margin)
        return estimate, *(np.clip(np.array(end), 0.0, 1.0) for end in ends)

    @cached_property
    def _distinct_reports_with_counts(self) -> list[tuple[Reports, NDArray[np.int64]]]:
        """The different reports on each table, and how often each came."""
        return [np.unique(table_reports, return_counts=True) for table_reports in self._reports]

    @cached_property
    def _which_tables_sum_quickly(self) -> NDArray[np.bool_]:
        """Which tables have few outcomes in all of their different reports together."""
        return np.array(
            [
                min(len(table_reports), part.blocks.block_count) * part.blocks.size <= _LARGEST_SUMMED
                for part, table_reports in zip(self._parts, self._reports, strict=True)
            ]
        )

    def _coefficient_sums_by_report(self, number: int, coefficients: Floats) -> Floats:
        """The sums of coefficients over the block of each different report on a table."""
        blocks, (distinct, _) = self._parts[number].blocks, self._distinct_reports_with_counts[number]
        assert isinstance(blocks, BlockFamily)
        if len(distinct) * blocks.size > _LARGEST_KEPT:
            return sum_values_in_each_report(blocks, distinct, coefficients)
        if number not in self._held:
            self._held[number] = outcome_membership_table(blocks, distinct)
        return np.asarray(self._held[number] @ coefficients)

    def _coefficients_of_table_in_shares(
        self, number: int, names: Columns, weights: Floats, share_numbers: NDArray[np.int64]
    ) -> Floats:
        """The coefficients of a table's shares, in the order of its part, in some of the consistent shares: (outcomes, shares)."""
        table_columns = self._written[number]
        table_indices = np.unravel_index(
            np.arange(self._shares[number].size), self._columns.column_sizes(table_columns)
        )
        share_indices = np.unravel_index(share_numbers, self._columns.column_sizes(names))
        contrasts = {
            name: (table_indices[table_columns.index(name)][:, None] == share_indices[names.index(name)][None, :])
            - 1.0 / self._columns[name].size
            for name in set(names) & set(table_columns)
        }
        coefficients = np.zeros((self._shares[number].size, len(share_numbers)))
        for effect in column_subsets(tuple(name for name in names if name in table_columns)):
            weight = weights[self._sampler.marginals.places[effect]]
            rest = math.prod(self._columns.column_sizes(name for name in names if name not in effect))
            coefficients += weight / rest * np.prod([contrasts[name] for name in effect], axis=0)
        return coefficients


def report_sampler_of_survey_part(sampler: SurveySampler, part: Part) -> ReportSampler:
    """The reports on a part alone."""
    assert isinstance(part.blocks, BlockFamily)
    return ReportSampler(Simplex(part.blocks.size), privacy=sampler.privacy, blocks=part.blocks)


def unbiased_shares_from_reports(sampler: ReportSampler, reports: Reports) -> Floats:
    """The unbiased shares of a part's outcomes."""
    supports = ReportCounts(sampler).add(reports).supports() if len(reports) else np.zeros(sampler.family.size)
    return np.asarray((supports / max(len(reports), 1) - sampler.chances.outside) / sampler.chances.gap)


def _reorder_table_columns(
    columns: SurveyColumns, shares: Floats, order: Sequence[str], new_order: Sequence[str]
) -> Floats:
    """A table of shares with its columns in another order."""
    table = shares.reshape(columns.column_sizes(order))
    return np.asarray(table.transpose([list(order).index(name) for name in new_order]))


def _bin_values_linearly_on_grid(values: Floats, counts: NDArray[np.int64], reach: Floats) -> Floats:
    """How often each point of a grid from -reach to reach occurs, (columns, points): a value counts for its two neighbours, with its mean."""
    histogram = np.empty((values.shape[1], _GRID + 1))
    for column, most in enumerate(reach):
        position = (
            np.clip((values[:, column] / most + 1.0) * (_GRID / 2), 0.0, _GRID) if most else np.zeros(len(values))
        )
        lower = np.minimum(position.astype(np.int64), _GRID - 1)
        fraction = position - lower
        histogram[column] = np.bincount(lower, weights=counts * (1.0 - fraction), minlength=_GRID + 1)
        histogram[column, 1:] += np.bincount(lower, weights=counts * fraction, minlength=_GRID + 1)[:_GRID]
    return histogram


def _interaction_effect_of_columns(table: Floats, names: Sequence[str], effect: Sequence[str]) -> Floats:
    """The effect of some columns of a table."""
    contrast = table.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in effect))
    for axis in range(len(effect)):
        contrast = contrast - contrast.mean(axis=axis, keepdims=True)
    return np.asarray(contrast)


class ReportSums:
    """What each report contributes to the estimates of sums, and the intervals of their means.

    Args:
        values: for each part those of its distinct reports, (reports, sums).
        counts: how often each report came.
        least: the least value that a report can have, for each sum.
        most: the largest one.
    """

    def __init__(
        self, values: Sequence[Floats], counts: Sequence[NDArray[np.int64]], least: Floats, most: Floats
    ) -> None:
        self._values, self._counts, self._least, self._most = values, counts, least, most
        self.clients = sum(int(part_counts.sum()) for part_counts in counts)
        totals = (part_counts @ part_values for part_values, part_counts in zip(values, counts, strict=True))
        self.means = np.asarray(sum(totals) / self.clients)

    def mean_interval_end(self, column: int, confidence: float, among: int, end: int) -> float:
        """The lower (0) or upper (1) end of the interval of one mean: Gaffke's bound on values that are rounded outwards to a grid."""
        values = np.concatenate([part_values[:, column] for part_values in self._values])
        report_counts = np.concatenate(self._counts)
        least, most = float(self._least[column]), float(self._most[column])
        step = (most - least) / _GRID
        if step <= 0.0:
            return least
        positions = (values - least) / step
        rounded_positions = np.ceil(positions) if end else np.floor(positions)
        counts = np.bincount(
            np.clip(rounded_positions, 0, _GRID).astype(np.int64), weights=report_counts, minlength=_GRID + 1
        )
        grid, sign = np.linspace(least, most, _GRID + 1), 1.0 if end else -1.0
        return sign * average_upper_bound(sign * grid, counts.astype(np.int64), confidence, among=among)


def coefficient_sums_of_reports(
    samplers: Sequence[ReportSampler],
    reports: Sequence[ReportsWithMembership],
    coefficients: Sequence[Floats],
) -> ReportSums:
    """Sums of coefficients over the blocks of reports. Each part has its own reports and coefficients (outcomes, sums)."""
    clients = sum(int(counts.sum()) for _, _, counts in reports)
    values: list[Floats] = []
    least = np.full(coefficients[0].shape[1], np.inf)
    most = -least
    for sampler, (table, distinct, counts), factors in zip(samplers, reports, coefficients, strict=True):
        blocks, chances = sampler.blocks, sampler.chances
        scale = clients / (int(counts.sum()) * chances.gap)
        offset = chances.outside * factors.sum(axis=0)
        sums = (
            sum_values_in_each_report(blocks, distinct, factors)
            if table is None
            else table @ factors.astype(np.float32)
        )
        values.append(scale * (sums - offset))
        least = np.minimum(least, scale * (-largest_report_sum_by_column(blocks, -factors) - offset))
        most = np.maximum(most, scale * (largest_report_sum_by_column(blocks, factors) - offset))
    return ReportSums(values, [counts for _, _, counts in reports], least, most)


class TreeLevels:
    """The distribution function of a number, by least squares over the levels of a tree."""

    def __init__(self, sampler: SurveySampler, column: str, parts: Sequence[Part], reports: Sequence[Reports]) -> None:
        self._parts, self._reports = parts, reports
        self._samplers = [report_sampler_of_survey_part(sampler, part) for part in parts]
        self._levels = [part.blocks.size for part in parts]
        self._tree = Tree.finest_with_cell_count(self._levels[-1])
        growth = math.exp(min(sampler.epsilon, LARGEST_FLOAT_EXPONENT))
        self._noise = [
            variance_per_contrast(part.blocks, growth) / len(level_reports)
            for part, level_reports in zip(parts, reports, strict=True)
            if isinstance(part.blocks, BlockFamily)
        ]
        self.edges = cell_edges(sampler.survey.columns, column, self._levels[-1])

    def _level_weights_at_depth(self, depth: int) -> list[float]:
        """How much each level counts in the contrasts of a depth: by precision of the sums of its nodes; 0 for levels above."""
        nodes = self._tree.node_count(depth)
        precisions = [
            nodes / (count * noise) if count >= nodes else 0.0
            for count, noise in zip(self._levels, self._noise, strict=True)
        ]
        return [precision / sum(precisions) for precision in precisions]

    def query_coefficients_by_level(self, queries: Floats) -> list[Floats]:
        """The coefficients of each level's shares in linear queries of the cells, (nodes, queries), for queries (cells, queries)."""
        coefficients = [np.zeros((count, queries.shape[1])) for count in self._levels]
        parent = queries.mean(axis=0, keepdims=True)
        for depth in range(1, self._tree.depth + 1):
            nodes = self._tree.node_count(depth)
            averages = queries.reshape(nodes, -1, queries.shape[1]).mean(axis=1)
            contrasts = averages - np.repeat(parent, self._tree.branching, axis=0)
            for level, weight in enumerate(self._level_weights_at_depth(depth)):
                if weight:
                    coefficients[level] += weight * np.repeat(contrasts, self._levels[level] // nodes, axis=0)
            parent = averages
        return coefficients

    @cached_property
    def cell_shares(self) -> Floats:
        """The least-squares shares of the cells, which add up to 1."""
        shares = [
            unbiased_shares_from_reports(level_sampler, level_reports)
            for level_sampler, level_reports in zip(self._samplers, self._reports, strict=True)
        ]
        node_shares = np.ones(1)
        for depth in range(1, self._tree.depth + 1):
            nodes = self._tree.node_count(depth)
            sums = np.zeros(nodes)
            for weight, level_shares in zip(self._level_weights_at_depth(depth), shares, strict=True):
                if weight:
                    sums += weight * level_shares.reshape(nodes, -1).sum(axis=1)
            siblings = sums.reshape(-1, self._tree.branching)
            contrasts = siblings - siblings.mean(axis=1, keepdims=True)
            node_shares = (node_shares[:, None] / self._tree.branching + contrasts).ravel()
        return node_shares

    @cached_property
    def distribution_function(self) -> Floats:
        """The unbiased distribution function at the edges."""
        return np.append(0.0, np.cumsum(self.cell_shares))

    def quantiles_at(self, levels: Floats) -> Floats:
        """The quantiles of the nearest distribution function that increases."""
        inner = scipy.optimize.isotonic_regression(self.distribution_function).x
        rising = np.clip(inner, 0.0, 1.0)
        rising[0], rising[-1] = 0.0, 1.0
        first = np.searchsorted(rising, levels, side="left").clip(1, len(rising) - 1)
        below, above = rising[first - 1], rising[first]
        fraction = np.where(above > below, (levels - below) / np.where(above > below, above - below, 1.0), 1.0)
        return np.asarray(self.edges[first - 1] + fraction * (self.edges[first] - self.edges[first - 1]))

    @cached_property
    def distribution_function_standard_errors(self) -> Floats:
        """Of the distribution function at the edges, by the variance of blocks."""
        cells = self._tree.cell_count
        variance = np.zeros(cells + 1)
        for depth in range(1, self._tree.depth + 1):
            nodes, noise = self._tree.node_count(depth), 0.0
            for weight, count, level_noise in zip(
                self._level_weights_at_depth(depth), self._levels, self._noise, strict=True
            ):
                noise += weight * weight * level_noise * count / nodes
            nodes_below = np.arange(cells + 1) * nodes / cells  # nodes below an edge, with a part of one
            node, part = np.divmod(nodes_below, 1.0)
            siblings = node % self._tree.branching + part
            squares = node % self._tree.branching + part * part
            variance += noise * (squares - siblings * siblings / self._tree.branching)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    @cached_property
    def _edge_coefficients_by_level(self) -> list[Floats]:
        """The coefficients of each level in the distribution function at each inner edge."""
        cells = len(self.edges) - 1
        return self.query_coefficients_by_level(
            (np.arange(cells)[:, None] < np.arange(1, cells)[None, :]).astype(np.float64)
        )

    @cached_property
    def _standard_error_upper_bounds(self) -> Floats:
        """At least the standard errors of the distribution function at the inner edges, in any population, but for the noise of blocks."""
        variance = np.square(self.distribution_function_standard_errors[1:-1])
        for level_reports, coefficients in zip(self._reports, self._edge_coefficients_by_level, strict=True):
            variance = variance + np.square(np.ptp(coefficients, axis=0)) / (4.0 * len(level_reports))
        return np.asarray(np.sqrt(variance))

    @cached_property
    def _reports_with_membership_by_level(self) -> list[ReportsWithMembership]:
        """Which outcomes each distinct report of a level holds, where that fits into memory; the reports; and how often each came."""
        levels: list[ReportsWithMembership] = []
        for part, level_reports in zip(self._parts, self._reports, strict=True):
            assert isinstance(part.blocks, BlockFamily)
            distinct, counts = np.unique(level_reports, return_counts=True)
            small = len(distinct) * part.blocks.size <= _LARGEST_HELD
            levels.append((outcome_membership_table(part.blocks, distinct) if small else None, distinct, counts))
        return levels

    def quantile_interval(self, level: float, confidence: float, among: int) -> tuple[float, float]:
        """An interval of a quantile, whose ends are edges of cells."""
        deviation = -float(scipy.special.ndtri(one_sided_miss_probability(confidence, among)))
        errors, largest = self.distribution_function_standard_errors[1:-1], self._standard_error_upper_bounds
        farthest = _FAR * deviation if sum(map(len, self._reports)) >= _MANY else _FARTHEST
        below = level - self.distribution_function[1:-1]  # at the inner edges, which have numbers from 1 on
        low, high = 0, len(self.edges) - 1
        for end in (1, 0):
            order = np.arange(len(below)) if end else np.arange(len(below))[::-1]
            distances = below[order] if end else -below[order]
            near = np.flatnonzero(distances < _NEAR * deviation * errors[order])  # not rejected, without a look
            stop = int(near[0]) if near.size else len(order)
            undecided_edges = np.flatnonzero(distances[:stop] <= farthest * largest[order[:stop]])
            start = int(undecided_edges[0]) if undecided_edges.size else stop
            rejected_edges = order[
                : start + self._count_leading_rejected_edges(order[start:stop], level, confidence, among, end)
            ]
            if rejected_edges.size and end:
                low = int(rejected_edges[-1]) + 1
            elif rejected_edges.size:
                high = int(rejected_edges[-1]) + 1
        return float(self.edges[low]), float(self.edges[max(high, low)])

    def _count_leading_rejected_edges(
        self, sequence: NDArray[np.int64], level: float, confidence: float, among: int, end: int
    ) -> int:
        """How many edges of a sequence are rejected before the first that is not; `end`: 1 where F(e) >= level is tested, else 0."""
        for start in range(0, len(sequence), _EDGES):
            edges = sequence[start : start + _EDGES]
            coefficients = [level_coefficients[:, edges] for level_coefficients in self._edge_coefficients_by_level]
            sums = coefficient_sums_of_reports(self._samplers, self._reports_with_membership_by_level, coefficients)
            offset = (edges + 1) / (len(self.edges) - 1)  # what the contrasts leave out: the uniform law's value
            for index in range(len(edges)):
                bound = offset[index] + sums.mean_interval_end(index, confidence, among, end)
                if bound >= level if end else bound <= level:
                    return start + index
        return len(sequence)
