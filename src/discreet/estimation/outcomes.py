"""What the counted outcomes are: labels, whole numbers, or the cells of a line, so that statistics can be taken of them."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """`names` for people; `edges` (k + 1 numbers) if the outcomes are cells; `values` if they are numbers."""

    names: Sequence[Any]
    values: Floats | None = None
    edges: Floats | None = None

    @classmethod
    def of_labels(cls, labels: Sequence[Any]) -> "Outcomes":
        """Labels; they have values if all of them are numbers."""
        numeric = all(isinstance(label, (int, float, np.number)) and not isinstance(label, bool) for label in labels)
        return cls(labels, np.asarray(labels, dtype=np.float64) if numeric else None)

    @classmethod
    def of_numbers(cls, size: int) -> "Outcomes":
        """The whole numbers 0 to size - 1."""
        return cls(range(size), np.arange(size, dtype=np.float64))

    @classmethod
    def of_cells(cls, edges: ArrayLike) -> "Outcomes":
        """Cells between increasing edges, each known by its middle."""
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or len(ends) < 2 or not np.isfinite(ends).all() or not (np.diff(ends) > 0).all():
            raise DiscreetError("edges are not increasing finite numbers, one more than there are cells")
        digits = max(0, 2 - math.floor(math.log10(float(np.diff(ends).min()))))
        names = [f"{low:.{digits}f} to {high:.{digits}f}" for low, high in itertools.pairwise(ends)]
        return cls(names, 0.5 * (ends[:-1] + ends[1:]), ends)

    def __len__(self) -> int:
        return len(self.names)

    def numeric(self, what: str) -> Floats:
        """The values, or an error that says what needs them."""
        if self.values is None:
            raise DiscreetError(
                f"{what} needs numbers, but the outcomes are labels such as {self.names[0]!r}; "
                "pass a function that gives each label a number"
            )
        return self.values
