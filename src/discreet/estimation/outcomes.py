"""What the counted outcomes are: labels, whole numbers, or the cells of a line, so that statistics can be taken of them."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError
from discreet.families.laws import as_floats
from discreet.showing import shown_shortly

Floats = NDArray[np.float64]
LARGEST_VALUE = 1e100  # what can be squared, and divided by a small weight, without overflow
_DECIMAL = re.compile(r"-?[0-9]{1,30}([.][0-9]{1,30})?")


@shown_shortly
@dataclass(frozen=True)
class Outcomes:
    """`names` for people; `edges` (k + 1 numbers) if the outcomes are cells; `values` if they are numbers."""

    names: Sequence[Any]
    values: Floats | None = None
    edges: Floats | None = None

    @classmethod
    def of_labels(cls, labels: Sequence[Any]) -> "Outcomes":
        """Labels; they have values if all of them are numbers of a reasonable size, or texts that are (a file holds texts)."""
        return cls(labels, np.array([float(label) for label in labels]) if all(map(_is_value, labels)) else None)

    @classmethod
    def of_numbers(cls, size: int) -> "Outcomes":
        """The whole numbers 0 to size - 1."""
        return cls(range(size), np.arange(size, dtype=np.float64))

    @classmethod
    def of_cells(cls, edges: ArrayLike) -> "Outcomes":
        """Cells between increasing edges, each known by its middle."""
        ends = as_floats(edges, "edges")
        if (
            ends.ndim != 1
            or len(ends) < 2
            or not (np.abs(ends) <= LARGEST_VALUE).all()
            or not (ends[1:] > ends[:-1]).all()
        ):
            raise DiscreetError(
                f"edges are not increasing numbers up to {LARGEST_VALUE:g} in size, one more than there are cells"
            )
        digits = max(0, 2 - math.floor(math.log10(float(np.diff(ends).min()))))
        spelled = [f"{end:.{digits}f}" if digits < 12 and abs(end) < 1e12 else f"{end:.6g}" for end in ends.tolist()]
        names = [f"{low} to {high}" for low, high in itertools.pairwise(spelled)]
        return cls(names, 0.5 * (ends[:-1] + ends[1:]), ends)

    def __len__(self) -> int:
        return len(self.names)

    def numeric(self, what: str) -> Floats:
        """The values, or an error that says what needs them."""
        if self.values is None:
            raise DiscreetError(
                f"{what} needs numbers, but the outcomes are labels such as "
                f"{next(name for name in self.names if not _is_value(name))!r}; pass a function that gives each label a number"
            )
        return self.values


def _is_value(label: Any) -> bool:
    if isinstance(label, str):
        return _DECIMAL.fullmatch(label) is not None
    plain = label.item() if isinstance(label, np.generic) else label
    return isinstance(plain, (int, float)) and not isinstance(plain, bool) and abs(plain) <= LARGEST_VALUE
