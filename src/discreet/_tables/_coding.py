"""What is asked of the columns of a table: which they are, and how the values of one are read. Values, checked where they are made.

A value that is not in the domain becomes a mark (`discreet._tables._marks`); `other` says what happens to those. It is how a column is
read and no part of what the outcomes are: it names one of them, and never adds any.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from discreet._showing import short_repr
from discreet._tables._marks import FIRST_MARK
from discreet.domain import Bins, Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError, check_count
from discreet.mechanisms._carriers._line import LineCells

LARGEST_DOMAIN = int(FIRST_MARK)
NEAREST = "nearest"
NULLS = ("error", "drop", "other")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table: who, what, and optionally how often (`count`) or how much (`weight`)."""

    client: str
    value: str
    count: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.weight is not None:
            raise DiscreetError("give a count column (whole numbers) or a weight column (any numbers), not both")
        names = self.names
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            raise DiscreetError(f"columns {', '.join(names)} are not all different")

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [self.client, self.value, *([] if self.counts is None else [self.counts])]

    @property
    def counts(self) -> str | None:
        """The column that says how often or how much, if there is one."""
        return self.count if self.weight is None else self.weight

    @property
    def amounts(self) -> Any:
        """The numpy type of the numbers in that column: whole numbers if they count, floats if they weigh, whatever they came as."""
        return np.int64 if self.weight is None else np.float64


@dataclass(frozen=True)
class Coding:
    """How a column is read: the public domain, and what values outside of it and nulls become.

    Args:
        domain: `Labels` (all texts or all integers), `Numbers`, or cells: an `Interval`, `LineCells` or `Bins`.
        other: one of the labels or numbers; with an interval "nearest", the cell at the end that a value is past. None: an error.
        nulls: "error", "drop" (they are left out) or "other" (they become that outcome).
        lenient: whether nothing is an error: what has no outcome becomes `other`, or is left out, and its client stays.

    Raises:
        DiscreetError: for a domain that no column can be read with, an `other` that is not in it, or nulls that have nowhere to go.
    """

    domain: Domain
    other: Any = None
    nulls: str = "error"
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.domain.size > LARGEST_DOMAIN:
            raise DiscreetError(f"the domain has {self.domain.size:,} outcomes, more than {LARGEST_DOMAIN:,}")
        match self.domain:
            case Labels():
                _check_labels(self.domain)
            case Numbers() | Interval() | LineCells() | Bins():
                pass
            case _:
                raise DiscreetError(
                    f"no column is read with {short_repr(self.domain)}; use Labels, Numbers or Interval"
                )
        if self.other is not None:
            object.__setattr__(self, "other", self._checked_other())
        if self.nulls not in NULLS:
            raise DiscreetError(f"nulls = {self.nulls!r} is not one of {', '.join(NULLS)}")
        if self.nulls == "other" and (self.other is None or self.has_cells):
            raise DiscreetError(
                "nulls = 'other' (--nulls) needs an outcome for them: "
                + ("an interval has none, use 'drop'" if self.has_cells else "say other= (--other) which one")
            )

    def _checked_other(self) -> Any:
        """`other` as the outcome it names. A text that is a whole number names that one."""
        other = self.other
        match self.domain:
            case Interval() | LineCells() | Bins():
                if other != NEAREST:
                    raise DiscreetError(
                        f"other = {other!r} is no cell; with bounds use {NEAREST!r}: a value outside goes to the cell at that end"
                    )
            case Numbers(size):
                if isinstance(other, str):
                    other = int(other) if is_whole(other) else -1
                if not 0 <= check_count("other", other, least=-(10**18)) < size:
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the outcomes 0 to {size - 1}; "
                        f"make the domain one larger and use {size}"
                    )
            case Labels(labels):
                if isinstance(labels[0], int) and isinstance(other, str) and is_whole(other):
                    other = int(other)
                if other not in labels or isinstance(other, bool):
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the {len(labels):,} labels; it is an outcome like the others: add it to the "
                        "domain (a line of the file, an entry of the list)"
                    )
        return other

    def as_agreed(self) -> "Coding":
        """The same without errors: as a device or a gateway reads what it holds, where a refusal would tell the collector something."""
        other = NEAREST if self.has_cells else self.other
        return replace(self, other=other, nulls="drop" if self.has_cells or other is None else "other", lenient=True)

    @property
    def size(self) -> int:
        """How many outcomes there are."""
        return self.domain.size

    @property
    def other_outcome(self) -> int | None:
        """The outcome that values outside become; None with an interval, where a value goes to the cell at its own end."""
        if self.other is None or self.has_cells:
            return None
        return int(self.domain.numbers([self.other])[0])

    @property
    def has_cells(self) -> bool:
        """Whether a sample is a point of the cell that was drawn."""
        return isinstance(self.domain, (Interval, LineCells, Bins))

    @property
    def text_kind(self) -> pl.DataType:
        """What texts in a table without types stand for."""
        match self.domain:
            case Interval() | LineCells() | Bins():
                return pl.Float64()
            case Labels(labels) if isinstance(labels[0], str):
                return pl.String()
            case _:
                return pl.Int64()

    @property
    def sample_type(self) -> pa.DataType:
        """Of a column of samples."""
        return {pl.Float64(): pa.float64(), pl.String(): pa.string(), pl.Int64(): pa.int64()}[self.text_kind]


def _check_labels(domain: Labels) -> None:
    for kind in (str, int):
        if all(isinstance(label, kind) and not isinstance(label, bool) for label in domain.labels):
            return
    if all(isinstance(label, bool) for label in domain.labels):
        raise DiscreetError(
            "labels are truth values; write 'false' and 'true', or give the number of outcomes 2: 0 and 1"
        )
    raise DiscreetError("labels are neither all texts nor all integers; write them all the same way")


def is_whole(text: str) -> bool:
    """Whether a text is an integer of 64 bits, written the usual way (so that no two texts mean the same one)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63
