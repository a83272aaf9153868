"""What stands in place of an outcome where a record has none: why it has none, counted, and what becomes of it.

Marks are numbers past every domain. They are counted for whoever runs the release, and then replaced by the outcome they are to
become, or left out; no message shows the value behind one unless that was asked for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MISSING = np.uint32(0xFFFFFFFF)  # the value is null, or the list of values empty; also: leave this record out
OUTSIDE = np.uint32(0xFFFFFFFE)  # the value is not in the domain
LISTED = np.uint32(0xFFFFFFFD)  # no record, but an entry of the list of clients
NOT_A_NUMBER = np.uint32(0xFFFFFFFC)  # the value is NaN
UNREADABLE = np.uint32(0xFFFFFFFB)  # the value is a text that is not the number it should be
BELOW = np.uint32(0xFFFFFFFA)  # the value is below an interval and goes to its first cell
ABOVE = np.uint32(0xFFFFFFF9)  # the value is above an interval and goes to its last cell
FIRST_MARK = ABOVE


@dataclass(frozen=True)
class Tally:
    """How many records had no outcome of their own, and why."""

    nulls: int = 0
    not_numbers: int = 0
    unreadable: int = 0
    outside: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.nulls + other.nulls,
            self.not_numbers + other.not_numbers,
            self.unreadable + other.unreadable,
            self.outside + other.outside,
        )


def resolved(
    outcomes: NDArray[np.uint32], *, size: int, missing_to: int | None, outside_to: int | None
) -> tuple[NDArray[np.uint32], Tally]:
    """Outcomes with what their marks are to become (MISSING: left out), and how many there were; `size`: of the domain."""
    if not outcomes.size or outcomes.max() < FIRST_MARK:
        return outcomes, Tally()
    left_out = int(MISSING)
    becomes = {
        MISSING: left_out if missing_to is None else missing_to,
        NOT_A_NUMBER: left_out if missing_to is None else missing_to,
        UNREADABLE: left_out,
        OUTSIDE: left_out if outside_to is None else outside_to,
        BELOW: 0,
        ABOVE: size - 1,
    }
    found, counts = outcomes.copy(), {}
    for mark, outcome in becomes.items():
        marked = outcomes == mark
        counts[mark] = int(np.count_nonzero(marked))
        found[marked] = outcome
    outside = counts[OUTSIDE] + counts[BELOW] + counts[ABOVE]
    return found, Tally(counts[MISSING], counts[NOT_A_NUMBER], counts[UNREADABLE], outside)
