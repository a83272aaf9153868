"""What stands in place of an outcome where a record has none: why it has none, counted, and what becomes of it.

Marks are numbers past every domain. They are counted for whoever runs the release, and then replaced by the outcome they are to
become, or left out; no message shows the value behind one unless that was asked for.
"""

from dataclasses import dataclass

import numpy as np

MARK_MISSING = np.uint32(0xFFFFFFFF)  # the value is null, or the list of values empty; also: leave this record out
MARK_OUTSIDE = np.uint32(0xFFFFFFFE)  # the value is not in the domain
MARK_LISTED = np.uint32(0xFFFFFFFD)  # no record, but an entry of the list of clients
MARK_NAN = np.uint32(0xFFFFFFFC)  # the value is NaN
MARK_UNREADABLE = np.uint32(0xFFFFFFFB)  # the value is a text that is not the number it should be
MARK_BELOW = np.uint32(0xFFFFFFFA)  # the value is below an interval and goes to its first cell
MARK_ABOVE = np.uint32(0xFFFFFFF9)  # the value is above an interval and goes to its last cell
FIRST_MARK = MARK_ABOVE


@dataclass(frozen=True)
class MisfitCounts:
    """How many records had no outcome of their own, and why."""

    nulls: int = 0
    not_numbers: int = 0
    unreadable: int = 0
    outside: int = 0

    def __add__(self, other: "MisfitCounts") -> "MisfitCounts":
        return MisfitCounts(
            self.nulls + other.nulls,
            self.not_numbers + other.not_numbers,
            self.unreadable + other.unreadable,
            self.outside + other.outside,
        )
