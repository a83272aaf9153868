"""What every kind of domain can do: numbers(named(n)) = n for every outcome n, and equal canonical forms mean the same outcomes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import in_order
from discreet.domain._canonical import canonical, digest

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Outcome = TypeVar("Outcome", covariant=True, default=Any)
else:
    from typing import TypeVar

    Outcome = TypeVar("Outcome", covariant=True)  # Python 3.13 knows defaults


class Domain(ABC, Generic[Outcome]):
    """The public outcomes 0 to size - 1, and what they stand for: `Labels`, `Numbers` or the cells of an `Interval`.

    Attributes:
        size: how many outcomes there are.
        labels: their labels in order, None where they are numbers or cells.
        names: what people call each of them.
        values: the number that each stands for in a statistic, None where they are no numbers.
        edges: the size + 1 ends of cells, None where outcomes are no cells.
        canonical: the one JSON text that states the domain, and `digest` its SHA-256.
    """

    if TYPE_CHECKING:  # a property here would stand in the way of a dataclass's field there

        @property
        def size(self) -> int: ...
        @property
        def labels(self) -> tuple[Outcome, ...] | None: ...

    @property
    @abstractmethod
    def names(self) -> Sequence[Any]:
        """What people call each outcome."""

    @property
    @abstractmethod
    def values(self) -> NDArray[np.float64] | None:
        """The number that each outcome stands for in a statistic; None where outcomes are no numbers."""

    @property
    def edges(self) -> NDArray[np.float64] | None:
        """The size + 1 ends of the cells, in order; None where outcomes are no cells."""
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
        """The outcome number of every record, -1 for one that is outside the domain: none is an error.

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
        """The outcome numbers of what a dict or a Series calls its entries: labels, or the numbers of outcomes."""
        return self.numbers(labels)

    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Values that carry labels as an array (..., size) in the order of the outcomes; others as they are."""
        return in_order(values, self.size, self.places, name, missing)

    @property
    @abstractmethod
    def terms(self) -> dict[str, Any]:
        """The domain as an agreement states it: JSON values, with lists as long as the domain as digests."""

    def terms_in(self, version: int) -> dict[str, Any]:
        """The terms with digests as that version of a document takes them."""
        return self.terms

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms as a file may list them: with the labels themselves."""
        return self.terms

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of the terms."""
        return canonical(self.terms)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form: the same for two domains if and only if an agreement states them alike."""
        return digest(self.canonical.encode())
