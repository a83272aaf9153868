"""Samples as counts: on the outcomes of a domain, on bins of a line, and by client if each client released several.

**Bins of a line.** The bounds between P and Q on every cell (`discreet.estimation._inference`) hold for every union of cells, and the
reference mass of a union is the sum over its cells. A bin of whole cells is therefore estimated like an outcome of a finite family, without
integral or interpolation. Only noise determines the number of bins. n clients determine a share near 1/N to about 2/(gamma sqrt(N n)),
which is half of the share at N = gamma^2 n/16. That many bins are taken, between `FEWEST` and `MOST`. The number depends on the number of
samples and not on their values, so intervals keep their coverage. If the atoms are points of a public seed, bins are those of the family's
usual cells, and their masses are counted on the points.

**Several samples of each client** (`SampleRows`). n clients with J samples each carry less information than n J clients: given its
distribution, the J samples of one client are independent, and so alike. The clients are independent. The share of an outcome among a
client's samples is one number Z_i in {0, 1/J, ..., 1} with mean Q_i(x), and n such numbers are averaged. The interval for their mean is
Gaffke's bound (`discreet.estimation._inference`), which for J = 1 has two values and is Clopper and Pearson's. The same holds for averages
of any function. No assumption is made about the dependence between samples of one client, so the interval holds for several rounds, for
joint draws, and for one release that was read twice. Several reports of each client (`ReportRows`) are the same: the share of a client's
reports that hold x is one number, and so is its mean of V (`discreet.estimation._inference._statistics`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import refuse_masked_array, unbox_arrow_column
from discreet.audit import MOST_DRAWS
from discreet.domain import LARGEST_VALUE, Bins, Domain, Interval, is_missing
from discreet.errors import DiscreetError, check_count
from discreet.estimation._inference import Ends, average_upper_bound, largest_report_sum, sum_values_in_each_report
from discreet.mechanisms import (
    DEFAULT_CELLS,
    AnyFamily,
    CellAtoms,
    DensityAtoms,
    LineCells,
    PointAtoms,
    Reports,
    ReportSampler,
    Sampler,
)

Floats = NDArray[np.float64]

LARGEST = 10**7  # most outcomes whose intervals fit in memory


def outcome_reference_masses(domain: Domain, reference: float | Floats) -> Floats:
    """The reference masses of the outcomes of a finite family; an error if they are too many to count one by one."""
    if domain.size > LARGEST:
        raise DiscreetError(
            f"the domain has {domain.size:,} outcomes, more than {LARGEST:,}: estimate shares of groups of them instead"
        )
    if isinstance(domain, Interval) and max(-domain.low, domain.high) > LARGEST_VALUE:
        raise DiscreetError(
            f"the interval [{domain.low:g}, {domain.high:g}] reaches past {LARGEST_VALUE:g}, where squares overflow; scale the values"
        )
    return np.array(np.broadcast_to(reference, domain.size), dtype=np.float64)


def column_as_list(column: Any) -> Any:
    """A column of pyarrow, polars, pandas or numpy as a plain list; other values unchanged."""
    refuse_masked_array(column, "samples")
    column = unbox_arrow_column(column)
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    return column


def refuse_repeated_clients(clients: Any, samples: Any) -> None:
    """Raise an error for repeated clients, and for names that are not one for each sample."""
    if samples is None:
        raise DiscreetError("clients= names the clients of samples=; counts= have no clients")
    try:
        names, number = list(column_as_list(clients)), len(column_as_list(samples))
        distinct = len(set(names))
    except TypeError:
        raise DiscreetError("clients is not a list of names or numbers, one for each of the samples") from None
    if len(names) != number:
        raise DiscreetError(f"clients names {len(names):,} clients for {number:,} samples; name one for each")
    missing = sum(map(is_missing, names))
    if missing:
        raise DiscreetError(
            f"clients has {missing:,} missing names (None or NaN): a sample without a client; leave it out"
        )
    if distinct < number:
        raise DiscreetError(
            f"clients names the same clients again in {number - distinct:,} of {number:,} places: samples of several rounds, or one "
            "release twice. Give those of one round, or a row of samples for each client"
        )


def count_samples_by_outcome(samples: Any, domain: Domain) -> NDArray[np.int64]:
    """The count of each outcome among the samples."""
    numbers = domain.numbers(column_as_list(samples))
    return check_outcome_counts(np.bincount(numbers, minlength=domain.size), domain)


def check_outcome_counts(counts: Any, domain: Domain) -> NDArray[np.int64]:
    """Counts in the order of the outcomes; a dict or a Series is read by its labels."""
    refuse_masked_array(counts, "counts")
    size, counts = domain.size, domain.values_in_outcome_order(counts, "counts")
    message = f"counts is not a list of {size} whole numbers of at least 0, one for each outcome"
    try:
        array = np.asarray(counts)
    except ValueError:  # rows of different lengths
        raise DiscreetError(message) from None
    if array.shape != (size,) or array.dtype.kind not in "iu" or bool((array < 0).any()):
        raise DiscreetError(message)
    if not array.any():
        raise DiscreetError(
            "there are no samples; an estimate needs at least one, and a useful one hundreds: see discreet plan"
        )
    if float(array.sum(dtype=np.float64)) > MOST_DRAWS:
        raise DiscreetError(f"counts sums to more than {MOST_DRAWS:,}, past which counts are no longer exact")
    return array.astype(np.int64)


Integers = NDArray[np.int64]

FEWEST, MOST = 4, 32
_COVERED = 1e-3  # share of the reference that bins may leave out
_ROUNDING = 1e-9  # tolerance for the reference mass up to a cell


@dataclass(frozen=True, eq=False)
class CellBins:
    """Bins along a line, the reference mass of each, and the number of its first cell."""

    bins: Bins
    reference: Floats
    starts: Integers
    cells: int

    @property
    def bin_of_each_cell(self) -> Integers:
        """The bin of each cell along the line."""
        return np.repeat(np.arange(self.starts.size), np.diff(np.append(self.starts, self.cells)))

    def sum_by_bin(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Values on the cells along the line (..., cells), added up for each bin."""
        return np.asarray(np.add.reduceat(cells, self.starts, axis=-1))


def line_cells_of_sampler(sampler: Sampler[AnyFamily]) -> LineCells:
    """The cells of the line that a sampler releases on; for a release by points, the usual cells of its family."""
    carrier = sampler.carrier
    if not isinstance(carrier, DensityAtoms) or carrier.family.dim != 1:
        raise DiscreetError(
            f"{sampler!r} does not release on a line, where samples are counted by bins; to estimate shares of regions in more "
            "dimensions let clients release the number of their region, on a Simplex"
        )
    return LineCells(
        carrier.partition if isinstance(carrier, CellAtoms) else carrier.family.cells(DEFAULT_CELLS[carrier.family.dim])
    )


def one_bin_per_cell(sampler: Sampler[AnyFamily]) -> CellBins:
    """Each cell as its own bin."""
    line = line_cells_of_sampler(sampler)
    if not np.isfinite(line.edges).all():
        raise DiscreetError(
            f"{sampler.family!r} has cells that reach to infinity, of which nothing can be averaged; give public bins, edges="
        )
    bins = Bins(line.edges)
    shares = _public_point_share_by_bin(sampler, bins)
    return CellBins(bins, line.masses if shares is None else shares / shares.sum(), np.arange(line.size), line.size)


def default_bin_count(sampler: Sampler[AnyFamily], clients: int) -> int:
    """The number of bins at which the noise of an average share is about half of it, between `FEWEST` and `MOST`."""
    return int(min(max(sampler.constants.gamma**2 * clients / 16.0, FEWEST), MOST))


def bins_of_about_equal_reference_mass(
    sampler: Sampler[AnyFamily], *, clients: int, count: int | None = None
) -> CellBins:
    """Whole cells in `count` bins of about equal reference mass, or in the usual number for that many clients."""
    cells = one_bin_per_cell(sampler)
    if count is None:
        bin_count = min(default_bin_count(sampler, clients), cells.bins.size)
    else:
        bin_count = check_count("bins", count, most=cells.bins.size, fix="a bin is at least one of the family's cells")
    if bin_count == cells.bins.size:
        return cells
    cumulative = np.cumsum(cells.reference)
    # a heavy cell may fill several bins
    starts = np.unique(1 + np.searchsorted(cumulative, np.arange(1, bin_count) / bin_count - _ROUNDING))
    starts = np.append(0, starts[cumulative[starts - 1] < 1.0 - _ROUNDING])
    edges = np.append(cells.bins.edges[starts], cells.bins.edges[-1])
    return CellBins(Bins(edges), np.add.reduceat(cells.reference, starts), starts, cells.cells)


def bin_reference_masses(sampler: Sampler[AnyFamily], bins: Bins) -> Floats:
    """The masses of bins between any edges under mu: exact for whole cells, by Gauss's rule for parts of cells."""
    masses = _public_point_share_by_bin(sampler, bins)
    if masses is None:
        line = line_cells_of_sampler(sampler)
        cumulative = np.append(0.0, np.cumsum(line.masses))
        cell = np.clip(np.searchsorted(line.edges, bins.edges, side="right") - 1, 0, line.size - 1)
        masses = np.diff(cumulative[cell] + line.share_of_cells_below_values(cell, bins.edges) * line.masses[cell])
    if abs(masses.sum() - 1.0) > _COVERED:
        raise DiscreetError(f"edges cover {masses.sum():.3f} of the family's reference; extend them to the whole space")
    return np.asarray(masses / masses.sum())


def count_cells_cut_by_bins(sampler: Sampler[AnyFamily], bins: Bins) -> int:
    """The number of released cells with an edge of the bins inside; 0 unless release is by cells of a line."""
    carrier = sampler.carrier
    if not isinstance(carrier, CellAtoms) or carrier.family.dim != 1:
        return 0
    line = line_cells_of_sampler(sampler)
    cell = np.clip(np.searchsorted(line.edges, bins.edges, side="right") - 1, 0, line.size - 1)
    share = line.share_of_cells_below_values(cell, bins.edges)
    return int(np.unique(cell[(share > _ROUNDING) & (share < 1.0 - _ROUNDING)]).size)


def _public_point_share_by_bin(sampler: Sampler[AnyFamily], bins: Bins) -> Floats | None:
    """The share of the public points in each bin; None unless the atoms are public points."""
    carrier = sampler.carrier
    if not isinstance(carrier, PointAtoms) or carrier.discretisation.seed is None or carrier.family.dim != 1:
        return None
    points = carrier.numbered_points_of_seed(np.arange(carrier.size), carrier.discretisation.seed)[:, 0]
    inner_points = points[(points >= bins.edges[0]) & (points <= bins.edges[-1])]
    return np.asarray(np.bincount(bins.cell_numbers_of_values(inner_points), minlength=bins.size) / len(points))


@dataclass(frozen=True, eq=False)
class SampleRows:
    """Outcome numbers (n, J): J samples of each of n clients, on `size` outcomes."""

    numbers: Integers
    size: int

    @property
    def client_count(self) -> int:
        """The number of clients."""
        return len(self.numbers)

    @property
    def outcome_counts(self) -> Integers:
        """The count of each outcome among all samples."""
        return np.bincount(self.numbers.ravel(), minlength=self.size).astype(np.int64)

    def renumber_outcomes(self, number: Integers, size: int) -> SampleRows:
        """The same samples with outcome i renamed number[i]; several outcomes may share a number."""
        return SampleRows(number[self.numbers], size)

    @cached_property
    def _client_counts_by_outcome_repeats(self) -> Integers:
        """(size, J + 1): the number of clients with each outcome 0 to J times among their samples."""
        n, samples = self.numbers.shape
        pairs = np.repeat(np.arange(n), samples) * self.size + self.numbers.ravel()
        distinct, repeats = np.unique(pairs, return_counts=True)
        counts = np.zeros((self.size, samples + 1), dtype=np.int64)
        np.add.at(counts, (distinct % self.size, repeats), 1)
        counts[:, 0] = n - counts[:, 1:].sum(axis=1)
        return counts

    def share_interval_ends(self, confidence: float, *, among: int = 1, liars: int = 0) -> Ends:
        """The ends of the intervals of all outcomes' shares.

        `liars`: as if that many of those that sent an outcome least often had sent nothing else; if negative, as if that many of those that
        sent it most often had not sent it.
        """
        return share_interval_ends_from_repeats(
            self._client_counts_by_outcome_repeats, confidence, among=among, liars=liars
        )

    def cumulative_share_interval_ends(self, order: Integers, confidence: float) -> Ends:
        """The ends of the intervals of the shares of the first, the first two, ... outcomes in this order."""
        n, samples = self.numbers.shape
        rank = np.empty(self.size, dtype=np.int64)
        rank[order] = np.arange(self.size)
        ranks = np.sort(rank[self.numbers], axis=1)
        steps = np.zeros((self.size, samples + 1), dtype=np.int64)
        steps[0, 0] = n
        for position in range(samples):  # from here on one more sample of a client is below
            counts = np.bincount(ranks[:, position], minlength=self.size)
            steps[:, position] -= counts
            steps[:, position + 1] += counts
        return _mean_interval_ends(np.cumsum(steps, axis=0), confidence, 1)

    def average_upper_bound(self, phi: Floats, confidence: float, *, among: int = 1) -> float:
        """The largest average of phi under the output distributions, at that confidence."""
        means, clients = np.unique(phi[self.numbers].mean(axis=1), return_counts=True)
        values = np.concatenate([means, [phi.min(), phi.max()]])  # even if no client has them
        return average_upper_bound(values, np.concatenate([clients, [0, 0]]).astype(np.int64), confidence, among=among)


def rows_of_several_samples_or_none(samples: Any, domain: Domain) -> SampleRows | None:
    """Samples as rows, one row for each client, or None if each sample belongs to another client."""
    rows = column_as_list(samples)
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], (list, tuple, np.ndarray)):
        return None
    lengths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else 0 for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise DiscreetError(
            f"samples has rows of {min(lengths)} to {max(lengths)}; give as many samples of each client, and leave out who has fewer"
        )
    numbers = domain.numbers([sample for row in rows for sample in row])
    check_outcome_counts(np.bincount(numbers, minlength=domain.size), domain)
    return SampleRows(numbers.reshape(len(rows), lengths.pop()), domain.size)


def share_interval_ends_from_repeats(repeats: Integers, confidence: float, *, among: int = 1, liars: int = 0) -> Ends:
    """The ends of intervals of means, from (outcomes, J + 1) numbers of clients with 0 to J of J; `liars` as in `SampleRows`."""
    counts = (
        _move_clients_to_last_column(repeats, liars)
        if liars >= 0
        else _move_clients_to_last_column(repeats[:, ::-1], -liars)[:, ::-1]
    )
    return _mean_interval_ends(counts, confidence, among)


def _move_clients_to_last_column(counts: Integers, number: int) -> Integers:
    """`number` clients of each row moved from the first columns to the last."""
    cumulative = np.cumsum(counts, axis=1)
    remaining = np.diff(np.maximum(cumulative - number, 0), axis=1, prepend=0)
    remaining[:, -1] += np.minimum(number, cumulative[:, -1])
    return np.asarray(remaining)


def _mean_interval_ends(counts: Integers, confidence: float, among: int) -> Ends:
    """The ends of intervals of means, from the numbers of clients with each of the values 0, 1/J, ..., 1."""
    values = np.arange(counts.shape[1]) / (counts.shape[1] - 1)
    distinct, inverse = np.unique(counts, axis=0, return_inverse=True)  # far fewer than outcomes
    high = np.array([average_upper_bound(values, row, confidence, among=among) for row in distinct])
    low = np.array([1.0 - average_upper_bound(1.0 - values, row, confidence, among=among) for row in distinct])
    share = distinct @ values / distinct.sum(axis=1)
    low, high = np.clip(np.minimum(low, share), 0.0, 1.0), np.clip(np.maximum(high, share), 0.0, 1.0)
    return low[inverse.ravel()], high[inverse.ravel()]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Reports (n, J): J of each of n clients."""

    sampler: ReportSampler
    reports: Reports

    @property
    def client_count(self) -> int:
        """The number of clients."""
        return len(self.reports)

    @cached_property
    def _client_counts_by_outcome_repeats(self) -> Integers:
        """(k, J + 1): the number of clients of whom 0 to J reports hold each outcome."""
        outcome_repeats = (
            self._which_reports_contain_outcome(outcome).sum(axis=1) for outcome in range(self.sampler.family.size)
        )
        return np.array(
            [np.bincount(repeats, minlength=self.reports.shape[1] + 1) for repeats in outcome_repeats], dtype=np.int64
        )

    def _which_reports_contain_outcome(self, outcome: int) -> NDArray[np.bool_]:
        return self.sampler.blocks.holds(self.reports, np.array([outcome]))

    def share_interval_ends(self, confidence: float, *, among: int = 1, liars: int = 0) -> Ends:
        """The ends of the intervals of the probabilities that a report holds each outcome; `liars` as for samples."""
        return share_interval_ends_from_repeats(
            self._client_counts_by_outcome_repeats, confidence, among=among, liars=liars
        )

    def mean_upper_bound(self, phi: Floats, miss: float) -> float:
        """The largest average of phi under the average client, which is exceeded with probability at most `miss`."""
        mean, shape = float(phi.mean()), self.reports.shape
        sums = (
            sum_values_in_each_report(self.sampler.blocks, self.reports.ravel(), phi - mean).reshape(shape).mean(axis=1)
        )
        return mean + self._mean_upper_bound_from_sums(sums, largest_report_sum(self.sampler.blocks, phi - mean), miss)

    def _mean_upper_bound_from_sums(self, sums: Floats, most: float, miss: float) -> float:
        """The largest mean of sums over blocks, in units of the average client."""
        values, counts = np.unique(sums, return_counts=True)
        bound = average_upper_bound(np.append(values, most), np.append(counts, 0), 1.0 - 2.0 * miss)
        return bound / self.sampler.chances.gap

    def quantile_index_range(self, order: Integers, level: float, miss: float) -> tuple[int, int]:
        """The first and the last index in the order that the quantile may have."""
        size, width = len(order), np.zeros(self.client_count)
        for outcome in range(size):
            width += self._which_reports_contain_outcome(outcome).mean(axis=1)
        below, first, last = np.zeros(self.client_count), size - 1, 0
        for index, outcome in enumerate(order[:-1].tolist()):
            below += self._which_reports_contain_outcome(outcome).mean(axis=1)
            share = (index + 1.0) / size
            phi = np.full(size, -share)
            phi[order[: index + 1]] += 1.0
            sums = below - share * width
            high = share + self._mean_upper_bound_from_sums(sums, largest_report_sum(self.sampler.blocks, phi), miss)
            low = share - self._mean_upper_bound_from_sums(-sums, largest_report_sum(self.sampler.blocks, -phi), miss)
            first = min(first, index) if high >= level else first
            last = index + 1 if low < level else last
        return first, last
