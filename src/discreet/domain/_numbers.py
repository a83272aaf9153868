"""The whole numbers 0 to size - 1, which are their own outcomes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.domain._records import first_few, list_records
from discreet.domain._role import Domain
from discreet.errors import DiscreetError, check_count


@dataclass(frozen=True)
class Numbers(Domain[int]):
    """The outcomes 0 to size - 1.

    Args:
        size: how many there are, at least 1.

    Raises:
        DiscreetError: for what is no such number.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_count("domain size", self.size, fix="a law needs at least one outcome"))

    @property
    def labels(self) -> None:
        """None: numbers have no labels."""
        return

    @property
    def names(self) -> range:
        """The numbers."""
        return range(self.size)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The numbers, as floats."""
        return np.arange(self.size, dtype=np.float64)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The records themselves, if they are whole numbers from 0 to size - 1; others are an error that names the first few."""
        if isinstance(records, np.ndarray) and records.ndim == 1 and records.dtype.kind in "iu" and records.size:
            inside = records.min() >= 0 and records.max() < self.size
            if inside:
                return records.astype(np.int64)  # at once: there may be millions
        given = list_records(records)
        found = self.find_numbers(given)
        outside = [record for record, number in zip(given, found, strict=True) if number < 0]
        if outside:
            true = "; for booleans take Simplex([False, True])" if any(_is_boolean(r) for r in outside) else ""
            raise DiscreetError(
                f"unknown outcomes: {first_few(outside)}; outcomes are the numbers 0 to {self.size - 1}{true}"
            )
        return found

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The records themselves, -1 for what is no whole number from 0 to size - 1."""
        return np.array([record if self._has(record) else -1 for record in list_records(records)], dtype=np.int64)

    def _has(self, record: Any) -> bool:
        return _is_whole(record) and not _is_boolean(record) and 0 <= record < self.size

    def to_samples(self, numbers: NDArray[np.int64]) -> int | NDArray[np.int64]:
        """The numbers as they are; an int for a 0-d array."""
        return numbers if numbers.ndim else int(numbers)

    @property
    def terms(self) -> dict[str, Any]:
        """How many there are."""
        return {"size": self.size}


def _is_boolean(record: Any) -> bool:
    return isinstance(record, (bool, np.bool_))


def _is_whole(record: Any) -> bool:
    return isinstance(record, (int, np.integer))
