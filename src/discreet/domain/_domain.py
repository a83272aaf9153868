"""The abstract `Domain`, its simplest kind `Numbers`, and the reading of records.

For every outcome number n, `numbers(to_samples(n)) = n`, and equal canonical forms mean the same outcomes. `Numbers(size)` are the whole
numbers 0 to size - 1, which are their own outcomes. Records are a list of values. A single text or a frame is an error, and messages name the
first few records outside the domain.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from discreet._base.doors import OldName
from discreet._base.labelled import in_outcome_order, is_frame, plain_column
from discreet.domain._canonical import canonical, digest
from discreet.errors import DiscreetError, check_count


def list_records(records: Any) -> list[Any]:
    """A column or another iterable as a plain list."""
    if isinstance(records, (str, bytes)):
        raise DiscreetError(f"records = {records!r} is one text; pass a list of records")
    if is_frame(records):
        raise DiscreetError(
            f"records is a {type(records).__name__}, not a list of records; pass one column of it, or counts= for how often"
        )
    try:
        return list(plain_column(records))
    except TypeError:
        raise DiscreetError("records is not a list of single labels; pass one label for each record") from None


def first_few(items: Iterable[Any]) -> str:
    """The first three distinct items, and how many more there are."""
    distinct = list(dict.fromkeys(repr(item) for item in items))
    return ", ".join(distinct[:3]) + (f" and {len(distinct) - 3} more" if len(distinct) > 3 else "")


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Outcome = TypeVar("Outcome", covariant=True, default=Any)
else:
    from typing import TypeVar

    Outcome = TypeVar("Outcome", covariant=True)  # Python 3.13 knows defaults


class Domain(ABC, Generic[Outcome]):
    """The public outcomes 0 to size - 1, and their meaning: `Labels`, `Numbers` or the cells of an `Interval`.

    Attributes:
        size: how many outcomes there are.
        labels: their labels in order, None for numbers or cells.
        names: a display name for each of them.
        values: the number of each in a statistic, None if they are not numbers.
        edges: the size + 1 ends of cells, None if outcomes are not cells.
        canonical: the canonical JSON text of the domain, and `digest` its SHA-256.
    """

    if TYPE_CHECKING:  # a property here would conflict with a dataclass field in a subclass

        @property
        def size(self) -> int: ...
        @property
        def labels(self) -> tuple[Outcome, ...] | None: ...

    @property
    @abstractmethod
    def names(self) -> Sequence[Any]:
        """A display name for each outcome."""

    @property
    @abstractmethod
    def values(self) -> NDArray[np.float64] | None:
        """The number of each outcome in a statistic; None if outcomes are not numbers."""

    @property
    def edges(self) -> NDArray[np.float64] | None:
        """The size + 1 ends of the cells, in order; None if outcomes are not cells."""
        return None

    @abstractmethod
    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every record.

        Args:
            records: values: labels, whole numbers, or points of an interval.

        Returns:
            One outcome number for each.

        Raises:
            DiscreetError: for a record outside the domain; the message names the first few.
        """

    @abstractmethod
    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every record; -1 for a record outside the domain, which is not an error here.

        Args:
            records: values of any kind.

        Returns:
            One number for each.
        """

    @abstractmethod
    def to_samples(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """Outcome numbers as samples: labels, whole numbers, or the middles of cells.

        Args:
            numbers: outcome numbers of any shape.

        Returns:
            An array of that shape; a single sample for a 0-d array.
        """

    def places(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome numbers of the keys of a dict or a Series: labels, or the numbers of outcomes."""
        return self.numbers(labels)

    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Labelled values as an array (..., size) in the order of the outcomes; other values unchanged."""
        return in_outcome_order(values, self.size, self.places, name, missing)

    @property
    @abstractmethod
    def terms(self) -> dict[str, Any]:
        """The terms of the domain in an agreement: JSON values, with lists as long as the domain replaced by digests."""

    def terms_in(self, version: int) -> dict[str, Any]:
        """The terms with the digests of that version of a document."""
        return self.terms

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms for a file, with the labels themselves."""
        return self.terms

    @cached_property
    def canonical(self) -> str:
        """The canonical JSON text of the terms."""
        return canonical(self.terms)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form: equal if and only if an agreement states two domains alike."""
        return digest(self.canonical.encode())

    named = OldName("to_samples")
    listed = OldName("full_terms")


@dataclass(frozen=True)
class Numbers(Domain[int]):
    """The outcomes 0 to size - 1.

    Args:
        size: how many there are, at least 1.

    Raises:
        DiscreetError: for a size out of range.
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
        found = self.find_numbers(given := records if isinstance(records, np.ndarray) else list_records(records))
        if found.min(initial=0) < 0:
            outside = [record for record, number in zip(list_records(given), found, strict=True) if number < 0]
            true = "; for booleans take Simplex([False, True])" if any(_is_boolean(r) for r in outside) else ""
            raise DiscreetError(
                f"unknown outcomes: {first_few(outside)}; outcomes are the numbers 0 to {self.size - 1}{true}"
            )
        return found

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The records themselves, -1 for what is no whole number from 0 to size - 1."""
        if isinstance(records, np.ndarray) and records.ndim == 1 and records.dtype.kind in "iu":
            found = np.full(len(records), -1, dtype=np.int64)  # at once: there may be millions
            inside = (records >= 0) & (records < self.size)
            found[inside] = records[inside]
            return found
        return np.array([record if self._has(record) else -1 for record in list_records(records)], dtype=np.int64)

    def _has(self, record: Any) -> bool:
        return _is_whole(record) and not _is_boolean(record) and 0 <= record < self.size

    def to_samples(self, numbers: NDArray[np.int64]) -> int | NDArray[np.int64]:
        """The numbers unchanged; an int for a 0-d array."""
        return numbers if numbers.ndim else int(numbers)

    @property
    def terms(self) -> dict[str, Any]:
        """The number of outcomes."""
        return {"size": self.size}


def _is_boolean(record: Any) -> bool:
    return isinstance(record, (bool, np.bool_))


def _is_whole(record: Any) -> bool:
    return isinstance(record, (int, np.integer))
