"""Samples from outside as numbers of outcomes: as `discreet estimate` reads them, but that nothing is converted on the way.

A text is a label, a whole number is a number, and a point is in its cell; true is not 1, and "1" is neither. What is none of these
has no outcome, and its place is told, never its value.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet._tables._arrow import is_text
from discreet._tables._coding import Coding
from discreet.domain import Labels, Numbers

Integers = NDArray[np.int64]

_NONE = -1
_LARGEST_WHOLE = 2**63


class Outcomes:
    """The outcomes of an agreement, and what a sample has to be to be one of them.

    Args:
        coding: how samples of the agreement are read.
    """

    def __init__(self, coding: Coding) -> None:
        self._domain = coding.domain
        self._index = coding.domain.index if isinstance(coding.domain, Labels) else {}
        self._texts = isinstance(coding.domain, Labels) and isinstance(coding.domain.labels[0], str)
        self.size = coding.size

    @property
    def allowed_samples(self) -> str:
        """What a sample may be."""
        if isinstance(self._domain, Labels):
            return f"one of the agreement's {self.size:,} labels, {'a text' if self._texts else 'a whole number'}"
        if isinstance(self._domain, Numbers):
            return f"a whole number from 0 to {self.size - 1}"
        edges = np.asarray(self._domain.edges)
        return f"a number from {edges[0]:.17g} to {edges[-1]:.17g}, in one of the agreement's cells"

    @property
    def allowed_numbers(self) -> str:
        """What the number of an outcome may be."""
        return f"the number of an outcome, from 0 to {self.size - 1}"

    def numbers(self, samples: Sequence[Any]) -> Integers:
        """The outcome of every sample of a JSON document, -1 for what is none."""
        if self._index:
            kind = str if self._texts else int
            found = [self._index.get(sample, _NONE) if type(sample) is kind else _NONE for sample in samples]
            return np.array(found, dtype=np.int64)
        if isinstance(self._domain, Numbers):
            size = self.size
            return np.array([s if type(s) is int and 0 <= s < size else _NONE for s in samples], dtype=np.int64)
        return self._cells(np.array([_point(sample) for sample in samples], dtype=np.float64))

    def of_column(self, column: pa.Array) -> Integers:
        """The same for a checked column without nulls, whose type `fits`. Words of a dictionary are looked up once, not unpacked."""
        if pa.types.is_dictionary(column.type):
            words = self.numbers(column.dictionary.cast(pa.large_string()).to_pylist())
            return np.asarray(words[column.indices.to_numpy(zero_copy_only=False)])
        if self._index:
            return self.numbers(column.to_pylist())
        if isinstance(self._domain, Numbers):
            return self.of_numbers(column)
        return self._cells(column.to_numpy(zero_copy_only=False).astype(np.float64))

    def of_numbers(self, column: pa.Array) -> Integers:
        """The same for a column of integers, without nulls, that are numbers of outcomes."""
        values = column.to_numpy(zero_copy_only=False)
        found = np.full(len(values), _NONE, dtype=np.int64)
        inside = (values >= 0) & (values < self.size)
        found[inside] = values[inside]
        return found

    def fits(self, kind: pa.DataType) -> bool:
        """Whether a column of that type can hold samples."""
        if self._texts:
            return holds_texts(kind)
        if self._index or isinstance(self._domain, Numbers):
            return bool(pa.types.is_integer(kind))
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def _cells(self, points: NDArray[np.float64]) -> Integers:
        edges = np.asarray(self._domain.edges)
        found = np.full(len(points), _NONE, dtype=np.int64)
        inside = np.flatnonzero((points >= edges[0]) & (points <= edges[-1]))  # NaN is in no cell
        between = getattr(self._domain, "between_cells", None)
        if between is not None:
            inside = inside[~between(points[inside])]
        found[inside] = self._domain.numbers(points[inside])
        return found


def holds_texts(kind: pa.DataType) -> bool:
    """Whether a column of that type holds texts, as they are or by a dictionary."""
    return is_text(kind) or bool(pa.types.is_dictionary(kind) and is_text(kind.value_type))


def _point(sample: Any) -> float:
    """A number as a float; NaN for what is none."""
    if type(sample) is float or (type(sample) is int and -_LARGEST_WHOLE <= sample < _LARGEST_WHOLE):
        return float(sample)
    return math.nan
