"""Tables of shares that have columns in common, from the reports on all of them: consistent shares, and their intervals.

Two tables that have columns in common both tell the marginal of these. Weighted least squares over all tables at once is, by
orthogonality, the weighted mean of each effect over the tables that see it (`discreet.survey._coin`). The effect of no column is the
total, which is 1. So a consistent share is 1/K plus a sum over tables of coefficients of their shares, and each report on table i gives the
sum V of its coefficients over its block: n/(n_i gap_i) V has the mean of that table's part, over n_i of n clients.

**Intervals.** Those of a question's own reports are proved (`discreet.estimation._surveys`). Often other tables tell the same shares more
precisely. Then values V of all small tables are taken together. Values of one table are shifted by their mean, and scaled by
sqrt(n_i/(n_i - 1)), so that the differences between the tables do not count as noise. Gaffke's bound of the mean of these values
(`discreet.estimation._intervals`) is how far the truth may be from the estimate. This is no theorem: the bound is a conjecture
for independent values, and the shift is estimated from the same reports. For many clients it is the normal interval. Tests measure
its coverage. Tables with fewer than 30 reports are not used, or with fewer than 4 where that would leave too few clients. Which tables are
used depends on the numbers of clients alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.estimation._intervals import largest_average
from discreet.estimation._population import Shares
from discreet.estimation._report_statistics import held_outcomes, largest_sums, sums_over_blocks
from discreet.families import Simplex
from discreet.mechanisms import BlockFamily, ReportCounts, Reports, ReportSampler
from discreet.survey import Part, SurveyColumns, SurveySampler, Together, effects_of, survey_order

Floats = NDArray[np.float64]
Columns = tuple[str, ...]
_LARGEST_HELD = 1 << 26  # entries of a table of reports and shares that are handled together
_LARGEST_COEFFICIENTS = 1 << 16  # of a table's shares in those of a question, in its intervals
_LARGEST_SUMMED = 1 << 22  # outcomes of all different reports on a table that is used for them
_LARGEST_KEPT = 1 << 20  # the same, of a table whose outcomes are kept for the next question
_FEWEST, _FEW = 30, 4  # reports on a table that is used for them; and where that would leave too few clients
_NOT_WORTH = 1.1  # times as much variance, up to which the intervals of a question's own reports stay
_GRID = 2048  # steps of a grid on which values are counted


class ShareTables:
    """The tables of shares that clients were asked for, which agree after weighted least squares."""

    def __init__(self, sampler: SurveySampler, reports: Sequence[Reports]) -> None:
        self._sampler, self._columns = sampler, sampler.survey.columns
        self._tables = list(sampler.tables.values())
        self._parts = [sampler.parts[number] for number in sampler.tables]
        self._reports = [reports[number] for number in sampler.tables]
        self._clients = np.array([len(given) for given in self._reports])
        samplers = [part_sampler(sampler, part) for part in self._parts]
        self._written = [part.projection.columns for part in self._parts if isinstance(part.projection, Together)]
        self._chances = [(each.chances.outside, each.chances.gap) for each in samplers]
        self._held: dict[int, NDArray[np.float32]] = {}
        self._shares: list[Floats] = []
        for names, written, each, given in zip(self._tables, self._written, samplers, self._reports, strict=True):
            supports = ReportCounts(each).add(given).supports() if len(given) else np.zeros(each.family.size)
            shares = (supports / max(len(given), 1) - each.chances.outside) / each.chances.gap
            self._shares.append(_reorder_columns(self._columns, shares, written, names))

    def consistent_shares(self, columns: Columns) -> Floats:
        """The shares of a question's outcomes by all tables."""
        names = survey_order(self._columns, columns)
        return _reorder_columns(self._columns, self._consistent(names, self._clients), names, columns).ravel()

    def pooled_shares(self, columns: Columns, own: int, confidence: float, among: int) -> Shares | None:
        """The shares by the small tables, with intervals; None where a question's own reports, so many, do about as well."""
        names = survey_order(self._columns, columns)
        used = self._small_tables(names, own)
        if not used.any():
            return None
        pooled = self._shares_and_ends(names, used, confidence, among)
        return Shares(*(_reorder_columns(self._columns, each, names, columns).ravel() for each in pooled))

    def _consistent(self, names: Columns, clients: NDArray[np.int64]) -> Floats:
        """The least-squares table over columns from the reports of these tables; an effect that nobody tells is 0."""
        sizes = self._columns.sizes(names)
        weights, found = self._sampler.marginals.weights(clients), np.full(sizes, 1.0 / math.prod(sizes))
        for effect in effects_of(names):
            place = self._sampler.marginals.places.get(effect)
            if place is None:
                continue
            seen = np.zeros(self._columns.sizes(effect))
            for number in np.flatnonzero(weights[:, place]):
                seen += weights[number, place] * _effect(self._shares[number], self._tables[number], effect)
            shape = [size if name in effect else 1 for name, size in zip(names, sizes, strict=True)]
            found = found + seen.reshape(shape) * (seen.size / math.prod(sizes))
        return found

    def _small_tables(self, names: Columns, own: int) -> NDArray[np.bool_]:
        """The tables from which an interval is computed: none where the question's own reports do about as well."""
        cells, marginals = math.prod(self._columns.sizes(names)), self._sampler.marginals
        related = np.array([bool(set(names) & set(each)) for each in self._tables])
        related &= self._clients >= self._fewest_reports(names, related)
        small = related & self._quick & np.array([each.size * cells <= _LARGEST_COEFFICIENTS for each in self._shares])
        same = np.array([each == names for each in self._tables])
        reached = marginals.variance(names, np.where(small, self._clients, 0))
        alone = marginals.variance(names, np.where(same, self._clients, 0)) if own else math.inf
        if own and alone <= _NOT_WORTH * reached:
            return np.zeros(len(related), dtype=bool)
        if math.isfinite(reached):
            return np.asarray(small)
        whole = marginals.variance(names, np.where(related, self._clients, 0))
        return np.asarray(related & (math.isfinite(whole) and not own))

    def _fewest_reports(self, names: Columns, related: NDArray[np.bool_]) -> int:
        """How many reports a table needs to be used: fewer where most clients were asked tables with few reports each."""

        def variance_from(fewest: int) -> float:
            used = related & (self._clients >= fewest)
            return self._sampler.marginals.variance(names, np.where(used, self._clients, 0))

        return _FEWEST if variance_from(_FEWEST) <= _NOT_WORTH * variance_from(_FEW) else _FEW

    def _shares_and_ends(
        self, names: Columns, used: NDArray[np.bool_], confidence: float, among: int
    ) -> tuple[Floats, ...]:
        """The consistent shares by these tables alone, and the ends of their intervals: each alone, and all together."""
        clients = np.where(used, self._clients, 0)
        weights, estimate = self._sampler.marginals.weights(clients), self._consistent(names, clients)
        numbers, cells, everyone = np.flatnonzero(used), estimate.size, int(clients.sum())
        ends: list[list[float]] = [[], [], [], []]
        step = max(1, _LARGEST_HELD // (8 * sum(len(self._distinct[number][0]) for number in numbers)))
        for start in range(0, cells, step):
            some = np.arange(start, min(start + step, cells))
            values, counts, reach = [], [], np.zeros(len(some))
            for number in numbers.tolist():
                (_, often), (_, gap) = self._distinct[number], self._chances[number]
                blocks, each = self._parts[number].blocks, self._coefficients(number, names, weights[number], some)
                assert isinstance(blocks, BlockFamily)
                scale = everyone / (clients[number] * gap)
                sums = scale * self._sums(number, each)
                middle = often @ sums / clients[number]
                correction = math.sqrt(clients[number] / (clients[number] - 1))
                values.append((sums - middle) * correction)
                counts.append(often)
                widest = np.maximum(
                    scale * largest_sums(blocks, each) - middle, middle - scale * -largest_sums(blocks, -each)
                )
                reach = np.maximum(reach, widest * correction)
            binned = _spread_over_grid(np.concatenate(values), np.concatenate(counts), reach)
            for place, share in enumerate(estimate.ravel()[some]):
                grid = np.linspace(-reach[place], reach[place], _GRID + 1)
                for kind, (count, sign) in enumerate(((1, -1.0), (1, 1.0), (among, -1.0), (among, 1.0))):
                    away = largest_average(sign * grid, binned[place], confidence, among=count)
                    ends[kind].append(float(share) + sign * away)
        return estimate, *(np.clip(np.array(each), 0.0, 1.0) for each in ends)

    @cached_property
    def _distinct(self) -> list[tuple[Reports, NDArray[np.int64]]]:
        """The different reports on each table, and how often each came."""
        return [np.unique(given, return_counts=True) for given in self._reports]

    @cached_property
    def _quick(self) -> NDArray[np.bool_]:
        """Which tables have few outcomes in all of their different reports together."""
        return np.array(
            [
                min(len(given), part.blocks.blocks) * part.blocks.size <= _LARGEST_SUMMED
                for part, given in zip(self._parts, self._reports, strict=True)
            ]
        )

    def _sums(self, number: int, coefficients: Floats) -> Floats:
        """The sums of coefficients over the block of each different report on a table."""
        blocks, (distinct, _) = self._parts[number].blocks, self._distinct[number]
        assert isinstance(blocks, BlockFamily)
        if len(distinct) * blocks.size > _LARGEST_KEPT:
            return sums_over_blocks(blocks, distinct, coefficients)
        if number not in self._held:
            self._held[number] = held_outcomes(blocks, distinct)
        return np.asarray(self._held[number] @ coefficients)

    def _coefficients(self, number: int, names: Columns, weights: Floats, some: NDArray[np.int64]) -> Floats:
        """The coefficients of a table's shares, in the order of its part, in some of the consistent shares: (outcomes, shares)."""
        written = self._written[number]
        theirs = np.unravel_index(np.arange(self._shares[number].size), self._columns.sizes(written))
        ours = np.unravel_index(some, self._columns.sizes(names))
        contrasts = {
            name: (theirs[written.index(name)][:, None] == ours[names.index(name)][None, :])
            - 1.0 / self._columns[name].size
            for name in set(names) & set(written)
        }
        found = np.zeros((self._shares[number].size, len(some)))
        for effect in effects_of(tuple(name for name in names if name in written)):
            weight = weights[self._sampler.marginals.places[effect]]
            rest = math.prod(self._columns.sizes(name for name in names if name not in effect))
            found += weight / rest * np.prod([contrasts[name] for name in effect], axis=0)
        return found


def part_sampler(sampler: SurveySampler, part: Part) -> ReportSampler:
    """The reports on a part alone."""
    assert isinstance(part.blocks, BlockFamily)
    return ReportSampler(Simplex(part.blocks.size), privacy=sampler.privacy, blocks=part.blocks)


def _reorder_columns(columns: SurveyColumns, shares: Floats, given: Sequence[str], wanted: Sequence[str]) -> Floats:
    """A table of shares with its columns in another order."""
    table = shares.reshape(columns.sizes(given))
    return np.asarray(table.transpose([list(given).index(name) for name in wanted]))


def _spread_over_grid(values: Floats, counts: NDArray[np.int64], reach: Floats) -> Floats:
    """How often each point of a grid from -reach to reach occurs, (columns, points): a value counts for its two neighbours, with its mean."""
    found = np.empty((values.shape[1], _GRID + 1))
    for column, most in enumerate(reach):
        place = np.clip((values[:, column] / most + 1.0) * (_GRID / 2), 0.0, _GRID) if most else np.zeros(len(values))
        lower = np.minimum(place.astype(np.int64), _GRID - 1)
        part = place - lower
        found[column] = np.bincount(lower, weights=counts * (1.0 - part), minlength=_GRID + 1)
        found[column, 1:] += np.bincount(lower, weights=counts * part, minlength=_GRID + 1)[:_GRID]
    return found


def _effect(table: Floats, names: Sequence[str], effect: Sequence[str]) -> Floats:
    """The effect of some columns of a table."""
    found = table.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in effect))
    for axis in range(len(effect)):
        found = found - found.mean(axis=axis, keepdims=True)
    return np.asarray(found)
