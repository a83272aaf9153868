"""How many reports hold each outcome, in exact whole numbers, from a table that grows with the domain and not with the reports.

Masks, ranks and values are counted outcome by outcome. For affine blocks, write a = j d, where d has 1 as its lowest digit that is not 0.
A report (a, s) holds x if (j <d, x> + s) mod q < c, so it depends on x through <d, x> alone: it adds 1 to H[d, u] for the c values
u = (i - s)/j mod q, i < c. H has (K - 1)/(q - 1) directions of q values, about K whole numbers, and

    S_x = sum over directions d of H[d, <d, x>].

That is a discrete Fourier transform. With h_d(j) = sum over u of H[d, u] w^(-ju) and w = exp(2 pi i/q), the array G[j d] = h_d(j)/q for
j = 1 .. q - 1 has S_x = n c/q + sum over a of G[a] w^<a, x>, since directions and factors j run through every vector but 0 once.

**Rounding.** H is exact; only the transform rounds. The 2-norm of D = S - n c/q is known before it, by Parseval's equation, as
sqrt(K) |G|. For lengths that are powers of two a transform in double precision errs by at most a small multiple of 2^-53 log2(K) |D| in the
2-norm [Higham 2002, Thm 24.2], and no entry errs by more than the 2-norm. For prime lengths `_LOSS` log2(K) 2^-53 |D| is taken, which is
hundreds of times the errors that are seen. Where it is above 1/8, H is cut into digits of fewer bits, each of which is transformed alone.
Besides, the distance of every result from the nearest whole number is checked.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from threading import Lock
from typing import Self

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base.kernels import processor_count, should_use_compiled_code
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.mechanisms._reports._blocks import (
    LARGEST_TABLE,
    AffineBlocks,
    BlockFamily,
    Integers,
    MaskedSubsets,
    RankedSubsets,
    Reports,
)
from discreet.mechanisms._reports._sampler import ReportSampler

MOST_REPORTS = 1 << 53  # up to which counts are whole numbers of doubles too
MOST_IN_16_BITS = (1 << 16) - 1  # reports, each of which adds at most 1 to a place of the table
_TOGETHER = 1 << 22  # additions to the table at once
_SECONDS_AN_ADDITION = 7e-9  # roughly, without compiled code
_WORTH_A_THREAD = 1 << 24  # additions
_LARGEST_GROUPED = 2 * 10**6  # reports of which it is counted how often each came
_LOSS = 8.0  # of a transform, in units of log2(K) 2^-53
_CERTAIN = 0.125  # from a whole number, at most, before anything is rounded
_SEEN = 0.25  # likewise, where it is looked at


class ReportCounts:
    """How many reports there are, and how many of them hold each outcome. Reports are added as they come, and parts can be merged.

    Args:
        sampler: what released the reports.

    Raises:
        DiscreetError: for an argument that is not a `ReportSampler`, and for more than 20 million points.

    Example:
        >>> sampler = ReportSampler(Simplex(100), epsilon=1.0)
        >>> supports = ReportCounts(sampler).add(sampler.release_records([3, 1, 4])).supports()
    """

    def __init__(self, sampler: ReportSampler) -> None:
        check_kind("sampler", sampler, ReportSampler, "pass the one that released the reports")
        if sampler.blocks.point_count > LARGEST_TABLE:
            raise DiscreetError(
                f"the blocks have {sampler.blocks.point_count:,} points, more than {LARGEST_TABLE:,}; estimate shares of groups of them"
            )
        self._sampler = sampler
        self._reports = 0
        self._table = np.zeros(_size_of_count_table(sampler.blocks), dtype=np.int64)

    @property
    def sampler(self) -> ReportSampler:
        """What released the reports."""
        return self._sampler

    @property
    def reports(self) -> int:
        """How many reports were added."""
        return self._reports

    @property
    def table(self) -> Integers:
        """All that is kept: counts of outcomes, or H by directions. A copy."""
        return self._table.copy()

    @classmethod
    def from_table(cls, sampler: ReportSampler, table: ArrayLike, reports: int | None = None) -> Self:
        """The state that was kept as `table` and `reports`.

        Args:
            sampler: what released the reports.
            table: what `table` gave.
            reports: what `reports` was; by default as many as add up to the table.

        Returns:
            The same state.

        Raises:
            DiscreetError: for a table that no reports give.
        """
        counts, blocks = cls(sampler), sampler.blocks
        try:
            array = np.asarray(table)
        except ValueError:  # of rows of different lengths
            array = np.zeros(0)
        width = blocks.window if isinstance(blocks, AffineBlocks) else blocks.width
        fits = array.shape == counts._table.shape and array.dtype.kind in "iu"
        if reports is not None:
            reports = check_count("reports", reports, least=0, most=MOST_REPORTS, fix="it is how many were counted")
        elif fits:
            reports = int(array.sum()) // width
        if (
            not fits
            or reports is None
            or not 0 <= reports <= MOST_REPORTS
            or array.min() < 0
            or array.max() > reports
            or int(array.sum()) != width * reports
        ):
            raise DiscreetError("table is not one that so many reports of this sampler give")
        counts._table[:], counts._reports = array, reports
        return counts

    def add(self, reports: ArrayLike) -> Self:
        """Count some more reports, or none of them if one of the numbers is not a report.

        Args:
            reports: whole numbers, as `release` gives them.

        Returns:
            This object.

        Raises:
            DiscreetError: for numbers that are not reports.
        """
        numbers = self._sampler.check_reports(reports).ravel()
        self._refuse_too_many_reports(len(numbers))
        _add_reports_to_table(self._sampler.blocks, numbers, self._table)
        self._reports += len(numbers)
        return self

    def merge(self, other: ReportCounts) -> Self:
        """Add what another one has counted.

        Args:
            other: counts of other reports of the same sampler.

        Returns:
            This object.

        Raises:
            DiscreetError: for counts of another sampler.
        """
        check_kind("other", other, ReportCounts, "pass counts of the same sampler")
        if other.sampler != self.sampler:
            raise DiscreetError(f"other counts reports of {other.sampler!r}, not of {self.sampler!r}")
        self._refuse_too_many_reports(other.reports)
        self._table += other._table
        self._reports += other.reports
        return self

    def supports(self) -> Integers:
        """S_x: how many reports hold each outcome, exactly.

        Returns:
            Whole numbers (k,).
        """
        blocks = self._sampler.blocks
        if not isinstance(blocks, AffineBlocks):
            return self._table.copy()
        if blocks.digits == 1:  # one direction, whose values are the points
            return self._table[: blocks.size].copy()
        return _sum_direction_table_at_points(self._table, directions_of_blocks(blocks))[: blocks.size]

    def _refuse_too_many_reports(self, count: int) -> None:
        if self._reports + count > MOST_REPORTS:
            raise DiscreetError(f"there are more than {MOST_REPORTS:,} reports, past which counts are no longer exact")

    def __repr__(self) -> str:
        return f"<ReportCounts of {self._reports:,} reports of {self._sampler!r}>"


class Directions:
    """Vectors whose lowest digit that is not 0 is 1, one for each line through 0, with numbers of their own.

    A vector whose p lowest digits are 0 is q^p (j + q rest), with rest below q^(t - 1 - p). Of its t - 1 - p digits the direction has
    those of rest/j mod q, digit by digit. Directions are numbered by p first.
    """

    def __init__(self, blocks: AffineBlocks) -> None:
        self.blocks = blocks
        q, t = blocks.prime, blocks.digits
        sizes = [q ** (t - 1 - p) for p in range(t)]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.number = int(self.starts[-1])

    @cached_property
    def inverses_modulo_q(self) -> Integers:
        """1/j = j^(q - 2) mod q, by squaring; 0 for 0."""
        q = self.blocks.prime
        power, inverses, exponent = np.arange(q, dtype=np.int64), np.ones(q, dtype=np.int64), q - 2
        while exponent:
            if exponent & 1:
                inverses = inverses * power % q
            power, exponent = power * power % q, exponent >> 1
        inverses[0] = 0
        return inverses

    @cached_property
    def _direction_and_factor_of_every_vector(self) -> tuple[NDArray[np.int32], Integers]:
        """The direction of every vector, as a number, and its factor j; both 0 for 0."""
        q, points = self.blocks.prime, self.blocks.point_count
        direction, factor = np.zeros(points, dtype=np.int32), np.zeros(points, dtype=np.int64)
        for p in range(self.blocks.digits):
            rest = np.arange(q ** (self.blocks.digits - 1 - p), dtype=np.int64)
            for j in range(1, q):
                vectors = q**p * (j + q * self._multiply_digits(rest, j))
                direction[vectors], factor[vectors] = self.starts[p] + rest, j
        return direction, factor

    def _multiply_digits(self, rest: Integers, j: int) -> Integers:
        """Every digit times j mod q."""
        q, total, unit = self.blocks.prime, np.zeros_like(rest), 1
        while unit < len(rest):
            digit = rest // unit % q
            total += (digit * j % q) * unit
            unit *= q
        return total

    def directions_and_factors_of_vectors(self, vectors: Integers) -> tuple[Integers, Integers]:
        """The numbers of the directions of vectors, and their factors."""
        if self.blocks.digits == 1:
            return np.zeros_like(vectors), vectors
        direction, factor = self._direction_and_factor_of_every_vector
        return direction[vectors].astype(np.int64), factor[vectors]

    def fourier_spectrum_from_direction_rows(self, table: NDArray[np.float64]) -> NDArray[np.complex128]:
        """G, as an array over all vectors, from one row of q values for each direction. G[0] is 0."""
        q = self.blocks.prime
        rows = scipy.fft.fft(table.reshape(-1, q), axis=1) / q
        direction, factor = self._direction_and_factor_of_every_vector
        spectrum = rows.ravel()[direction.astype(np.int64) * q + factor]
        spectrum[0] = 0.0
        return np.asarray(spectrum)


@lru_cache(maxsize=2)
def directions_of_blocks(blocks: AffineBlocks) -> Directions:
    """The directions of some blocks, with tables that are worked out once."""
    return Directions(blocks)


def _size_of_count_table(blocks: BlockFamily) -> int:
    if isinstance(blocks, AffineBlocks):
        return (blocks.point_count - 1) // (blocks.prime - 1) * blocks.prime
    return blocks.size


def _add_reports_to_table(blocks: BlockFamily, reports: Reports, table: Integers) -> None:
    """Add reports to a table."""
    match blocks:
        case MaskedSubsets():
            for start in range(0, len(reports), 1 << 16):
                part = reports[start : start + (1 << 16)]
                for x in range(blocks.size):
                    table[x] += np.count_nonzero(part & np.uint64(1 << x))
        case RankedSubsets():
            step = max(1, _TOGETHER // blocks.members)
            for start in range(0, len(reports), step):
                for members in blocks.subset_members_of_rank(
                    reports[start : start + step].astype(np.int64), blocks.members
                ):
                    table += np.bincount(members, minlength=len(table))
        case AffineBlocks():
            _add_affine_reports_to_table(blocks, reports, table)
        case _:
            table += np.bincount(reports.astype(np.int64), minlength=len(table))


def _add_affine_reports_to_table(blocks: AffineBlocks, reports: Reports, table: Integers) -> None:
    """Add the c values of every report to H; of many reports that are alike, all at once."""
    directions = directions_of_blocks(blocks)
    if blocks.block_count <= min(len(reports) * blocks.window // 4, _LARGEST_GROUPED):
        _count_reports_then_add_to_table(directions, reports, table)
        return
    additions = len(reports) * blocks.window
    flush_cost = -(-len(reports) // MOST_IN_16_BITS) * len(table)
    if flush_cost < additions and should_use_compiled_code(additions * _SECONDS_AN_ADDITION):
        _add_reports_with_compiled_code(directions, reports, table)
        return
    step = max(1, _TOGETHER // blocks.window)
    for start in range(0, len(reports), step):
        row, value, stride = _row_starts_offsets_and_strides_of_reports(directions, reports[start : start + step])
        positions = np.empty((blocks.window, len(row)), dtype=np.int64)
        for i in range(blocks.window):
            np.add(row, value, out=positions[i])
            value += stride
            value -= blocks.prime * (value >= blocks.prime)
        table += np.bincount(positions.ravel(), minlength=len(table))


def _row_starts_offsets_and_strides_of_reports(
    directions: Directions, reports: Reports
) -> tuple[Integers, Integers, Integers]:
    """Where the row of each report's direction starts in H, and the first and the stride of the c values that it adds 1 to there."""
    q = directions.blocks.prime
    vectors, shifts = directions.blocks.vectors_and_shifts_of_reports(reports)
    direction, factor = directions.directions_and_factors_of_vectors(vectors)
    stride = directions.inverses_modulo_q[factor]
    return direction * q, (q - shifts) * stride % q, stride


def _add_reports_with_compiled_code(directions: Directions, reports: Reports, table: Integers) -> None:
    """As `_add_affine_reports_to_table` without compiled code, in several threads."""
    from discreet.release import add_progression_counts  # needs numba, or its machine code

    blocks, lock = directions.blocks, Lock()

    def count_reports_of_part(part: Reports) -> None:
        counts = np.zeros(len(table), dtype=np.uint16)
        for start in range(0, len(part), MOST_IN_16_BITS):
            progressions = _row_starts_offsets_and_strides_of_reports(directions, part[start : start + MOST_IN_16_BITS])
            add_progression_counts(*progressions, blocks.prime, blocks.window, counts)
            with lock:
                np.add(table, counts, out=table)
            counts[:] = 0

    threads = max(1, min(processor_count(), len(reports) * blocks.window // _WORTH_A_THREAD))
    if threads == 1:
        count_reports_of_part(reports)
        return
    directions.directions_and_factors_of_vectors(np.zeros(1, dtype=np.int64))  # the tables are worked out once
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(count_reports_of_part, np.array_split(reports, threads)))


def _count_reports_then_add_to_table(directions: Directions, reports: Reports, table: Integers) -> None:
    """Add reports to H by way of how often each report came: sums over windows of shifts, then over the vectors of a direction."""
    blocks = directions.blocks
    q, c, vectors = blocks.prime, blocks.window, np.arange(1, blocks.point_count)
    counts = np.bincount(reports.astype(np.int64), minlength=blocks.block_count).reshape(-1, q)
    sums = np.zeros((len(vectors), q + c + 1), dtype=np.int64)
    np.cumsum(np.concatenate([counts, counts[:, :c]], axis=1), axis=1, out=sums[:, 1:])
    direction, factor = directions.directions_and_factors_of_vectors(vectors)
    lines, rows = table.reshape(-1, q), np.arange(len(vectors))
    for u in range(q):
        first_shift = (q - factor * u % q) % q  # shifts from here on, c of them, take the value into the window
        supports = sums[rows, first_shift + c] - sums[rows, first_shift]
        lines[:, u] += np.rint(np.bincount(direction, weights=supports, minlength=len(lines))).astype(np.int64)


def _sum_direction_table_at_points(table: Integers, directions: Directions) -> Integers:
    """The sum over directions d of H[d, <d, x>] for every point x, exactly, whatever whole numbers H has."""
    blocks = directions.blocks
    q, shape = blocks.prime, (blocks.prime,) * blocks.digits
    lines = table.reshape(-1, q)
    base = lines.sum(axis=1) // q
    rest = lines - base[:, None]
    spectrum = directions.fourier_spectrum_from_direction_rows(rest.astype(np.float64))
    norm = math.sqrt(float(np.vdot(spectrum, spectrum).real) * blocks.point_count)
    quotient, remainder = divmod(int(rest.sum()), q)
    offset = int(base.sum()) + quotient
    if _LOSS * math.log2(blocks.point_count) * 2.0**-53 * norm <= _CERTAIN and int(np.abs(rest).max()) < MOST_REPORTS:
        half = spectrum.reshape(shape)[..., : q // 2 + 1]
        sums = scipy.fft.irfftn(half, s=shape, norm="forward").ravel() + remainder / q
        whole_sums = np.rint(sums)
        if float(np.abs(sums - whole_sums).max()) > _SEEN:
            raise ArithmeticError("sums of a transform are no whole numbers: its rounding errors exceed their bound")
        return np.asarray(whole_sums.astype(np.int64) + offset)
    bits = max(1, int(np.abs(rest).max()).bit_length() // 2)
    upper = rest >> bits
    lower = rest - (upper << bits)
    return (
        (_sum_direction_table_at_points(upper, directions) << bits)
        + _sum_direction_table_at_points(lower, directions)
        + int(base.sum())
    )
