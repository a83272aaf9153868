"""Partitions of samples of any kind into finitely many cells, from which an audit makes its events.

Samples are sorted into finitely many cells, chosen on the first half. Any partition is allowed by the data-processing
inequality: a union of cells is an event. The partitions are by the value itself if it repeats, its length, each coordinate, each pair of
coordinates, bins between quantiles for numbers that do not repeat (with a separate cell for every number that does), and the direction in
which two inputs differ on average.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import refuse_masked_array, unbox_array_of_one
from discreet.errors import DiscreetError

Codes = NDArray[np.int64]
MOST_CELLS = 4_096
MOST_COORDINATES = 256
_PAIRED_COORDINATES = 24
_PAIRED_CELLS = 8
_OFTEN = 10  # a number seen this often has its own cell
_QUANTILES = np.unique(
    np.concatenate([np.linspace(0.0, 1.0, 65)[1:-1], 10.0 ** -np.arange(2.0, 5.0), 1 - 10.0 ** -np.arange(2.0, 5.0)])
)


@dataclass(frozen=True)
class Samples:
    """n samples as a matrix (n, d) of numbers if they have one shape, else as a list of hashable values."""

    matrix: NDArray[np.float64] | None
    values: Sequence[Hashable]
    lengths: Codes | None

    def __len__(self) -> int:
        return len(self.values) if self.matrix is None else len(self.matrix)


@dataclass(frozen=True)
class SamplePartition:
    """A name, the cell of every sample, and a description of each cell."""

    name: str
    cells: Callable[[Samples], Codes]
    describe_cell: Callable[[int], str]


def parse_mechanism_output(output: Any, count: int) -> Samples:
    """The output of a mechanism, checked to be `count` samples."""
    refuse_masked_array(output, "the output of the mechanism")
    if isinstance(output, np.ndarray) and output.ndim >= 1 and output.dtype.kind in "fiub":
        _refuse_wrong_sample_count(len(output), count)
        return Samples(np.asarray(output, dtype=np.float64).reshape(len(output), -1), (), None)
    try:
        values = list(map(unbox_array_of_one, output))
    except TypeError:
        raise DiscreetError(
            f"the mechanism returned {type(output).__name__}, not samples; it is called as f(input, n) and returns n of them"
        ) from None
    _refuse_wrong_sample_count(len(values), count)
    if all(isinstance(value, (int, float, np.floating, np.integer, np.bool_)) for value in values):
        with contextlib.suppress(OverflowError):  # integers beyond every float are compared as values
            return Samples(np.array(values, dtype=np.float64)[:, None], (), None)
    lengths = np.array([len(value) if hasattr(value, "__len__") else -1 for value in values], dtype=np.int64)
    if not any(isinstance(value, (str, bytes)) for value in values) and lengths.min() == lengths.max() >= 1:
        try:
            matrix = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            return Samples(matrix.reshape(len(values), -1), (), None)
    return Samples(None, [_as_hashable_value(value) for value in values], lengths)


def unify_sample_kinds(samples: Sequence[Samples]) -> list[Samples]:
    """All samples as matrices of one width, or all as lists of values: mixed kinds are compared as values."""
    widths = {None if s.matrix is None else s.matrix.shape[1] for s in samples}
    if len(widths) == 1:
        return list(samples)
    return [samples_as_hashable_values(s) for s in samples]


def iterate_partitions_to_try(samples: Sequence[Samples]) -> Iterator[SamplePartition]:
    """Every partition to try on these samples: one `Samples` for each input."""
    if samples[0].matrix is None:
        yield from _iterate_partitions_by_value(samples)
        return
    pooled_samples = np.concatenate([s.matrix for s in samples if s.matrix is not None])
    width = pooled_samples.shape[1]
    coordinates = [
        _partition_by_number(
            pooled_samples[:, coordinate], _make_coordinate_reader(coordinate), _coordinate_name(coordinate, width)
        )
        for coordinate in _coordinates_to_try(width)
    ]
    yield from coordinates
    if width > 1:
        yield from _iterate_partitions_by_whole_row(pooled_samples)
        yield from _iterate_partitions_by_coordinate_pair(coordinates[:_PAIRED_COORDINATES], samples)
        yield from _iterate_partitions_along_mean_differences(samples)


def _refuse_wrong_sample_count(count: int, expected: int) -> None:
    if count != expected:
        raise DiscreetError(
            f"the mechanism returned {count} samples when asked for {expected}; it is called as f(input, n) and returns n of them"
        )


def _as_hashable_value(value: Any) -> Hashable:
    if isinstance(value, (np.str_, np.bytes_)):
        return value.item()  # the plain value
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return tuple(_as_hashable_value(part) for part in value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value if isinstance(value, Hashable) else repr(value)


def samples_as_hashable_values(samples: Samples) -> Samples:
    if samples.matrix is None:
        return samples
    rows = [tuple(row) for row in samples.matrix.tolist()]
    return Samples(None, rows, np.full(len(rows), samples.matrix.shape[1], dtype=np.int64))


def _iterate_partitions_by_value(samples: Sequence[Samples]) -> Iterator[SamplePartition]:
    lengths = np.unique(np.concatenate([s.lengths for s in samples if s.lengths is not None]))[:MOST_CELLS]
    if len(lengths) > 1:
        yield SamplePartition(
            "length",
            lambda s: _positions_in_sorted(np.asarray(s.lengths), lengths),
            lambda cell: f"length = {lengths[cell]}" if cell < len(lengths) else "another length",
        )
    counter = Counter(value for s in samples for value in s.values)
    common = [value for value, _ in counter.most_common(MOST_CELLS)]
    number_by_value = {value: number for number, value in enumerate(common)}
    yield SamplePartition(
        "value",
        lambda s: np.array([number_by_value.get(value, len(common)) for value in s.values], dtype=np.int64),
        lambda cell: _shorten_text(repr(common[cell])) if cell < len(common) else "any rarer value",
    )


def _coordinates_to_try(width: int) -> Sequence[int]:
    """All coordinates, or a limited number of them evenly spread, including the first and the last."""
    return sorted({int(coordinate) for coordinate in np.linspace(0, width - 1, min(width, MOST_COORDINATES))})


def _make_coordinate_reader(coordinate: int) -> Callable[[Samples], NDArray[np.float64]]:
    return lambda s: np.asarray(s.matrix)[:, coordinate]


def _coordinate_name(coordinate: int, width: int) -> str:
    return "sample" if width == 1 else f"sample[{coordinate}]"


def _partition_by_number(
    pooled: NDArray[np.float64], read: Callable[[Samples], NDArray[np.float64]], name: str
) -> SamplePartition:
    """A cell for each number that repeats, and bins between quantiles for all others; NaN has a cell too."""
    finite = pooled[~np.isnan(pooled)]
    numbers, counts = np.unique(finite, return_counts=True)
    if len(numbers) <= MOST_CELLS // 4 and len(numbers) < max(len(finite) // 4, 2):
        atoms, edges = numbers, np.empty(0)
    else:
        order = np.argsort(-counts, kind="stable")[: MOST_CELLS // 4]
        atoms = np.sort(numbers[order[counts[order] >= _OFTEN]])
        rare = finite[~np.isin(finite, atoms)]
        edges = np.unique(np.quantile(rare, _QUANTILES, method="lower")) if rare.size else np.empty(0)

    def cells_of_samples(s: Samples) -> Codes:
        column = read(s)
        positions = _positions_in_sorted(column, atoms)
        bins = len(atoms) + np.searchsorted(edges, column, side="left")
        return np.where(
            np.isnan(column), len(atoms) + len(edges) + 1, np.where(positions < len(atoms), positions, bins)
        )

    def describe_number_cell(cell: int) -> str:
        if cell < len(atoms):
            return f"{name} = {atoms[cell]:g}"
        if cell > len(atoms) + len(edges):
            return f"{name} is NaN"
        low, high = np.concatenate([[-math.inf], edges, [math.inf]])[cell - len(atoms) : cell - len(atoms) + 2]
        return f"{low:.6g} < {name} <= {high:.6g}"

    return SamplePartition(name, cells_of_samples, describe_number_cell)


def _iterate_partitions_by_whole_row(pooled: NDArray[np.float64]) -> Iterator[SamplePartition]:
    rows = np.unique(pooled, axis=0) if len(pooled) else pooled
    if len(rows) > MOST_CELLS:
        return
    # + 0.0: -0.0 and 0.0 are one number
    number_by_row = {row.tobytes(): number for number, row in enumerate(rows + 0.0)}
    yield SamplePartition(
        "sample",
        lambda s: np.array(
            [number_by_row.get(row.tobytes(), len(rows)) for row in np.asarray(s.matrix) + 0.0], dtype=np.int64
        ),
        lambda cell: (
            f"sample = {_shorten_text(str(rows[cell].tolist()))}" if cell < len(rows) else "a sample not seen before"
        ),
    )


def _iterate_partitions_by_coordinate_pair(
    coordinates: Sequence[SamplePartition], samples: Sequence[Samples]
) -> Iterator[SamplePartition]:
    """Two coordinates at a time, if both have few cells: finds leaks of one-hot and bit vectors."""
    small_partitions = [p for p in coordinates if max(int(p.cells(s).max(initial=0)) for s in samples) < _PAIRED_CELLS]
    for number, first in enumerate(small_partitions):
        for second in small_partitions[number + 1 :]:
            yield _product_partition(first, second)


def _product_partition(first: SamplePartition, second: SamplePartition) -> SamplePartition:
    rare_cell = MOST_CELLS
    return SamplePartition(
        f"{first.name} and {second.name}",
        lambda s: (
            np.minimum(first.cells(s), _PAIRED_CELLS) * (_PAIRED_CELLS + 1) + np.minimum(second.cells(s), _PAIRED_CELLS)
        ),
        lambda cell: " and ".join(
            part.describe_cell(code if code < _PAIRED_CELLS else rare_cell)
            for part, code in zip((first, second), divmod(cell, _PAIRED_CELLS + 1), strict=True)
        ),
    )


def _iterate_partitions_along_mean_differences(samples: Sequence[Samples]) -> Iterator[SamplePartition]:
    """The direction in which the mean of an input differs from that of the first."""
    means = [np.nan_to_num(np.asarray(s.matrix)).mean(axis=0) for s in samples]
    for number, mean in enumerate(means[1:], start=1):
        direction = mean - means[0]
        if np.any(direction) and np.all(np.isfinite(direction)):
            read = _make_projection_reader(direction / np.abs(direction).max())
            pooled_numbers = np.concatenate([read(s) for s in samples])
            yield _partition_by_number(pooled_numbers, read, f"direction from input 0 to input {number}")


def _make_projection_reader(direction: NDArray[np.float64]) -> Callable[[Samples], NDArray[np.float64]]:
    return lambda s: np.asarray(np.nan_to_num(np.asarray(s.matrix)) @ direction)


def _positions_in_sorted(values: NDArray[Any], sorted_values: NDArray[Any]) -> Codes:
    """The place of every value in the sorted array `sorted_values`, or its length if it is absent."""
    if not len(sorted_values):
        return np.zeros(len(values), dtype=np.int64)
    positions = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.where(sorted_values[positions] == values, positions, len(sorted_values)).astype(np.int64)


def _shorten_text(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
