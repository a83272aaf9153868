"""The reading of a table's columns: their names, the public domain, and the rule for values without an outcome.

`Columns` names the columns. `Coding` holds the domain and the rule for values outside of it; both are checked when they are made.
`agreed_coding` takes the coding from an agreement; terms that contradict the document are an error that names both.

A value without an outcome becomes a mark: a number beyond every domain that encodes the reason. Marks are counted in `MisfitCounts` for the
operator of the release, and then become the `other` outcome or are left out. `other` is one of the outcomes and never adds one. Messages
show the value behind a mark only on request.
"""

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.showing import short_repr
from discreet.agreement import Agreement, ContinuousTerms
from discreet.domain import CellDomain, Digested, Domain, Labels, Numbers, as_domain
from discreet.errors import DiscreetError, check_choice, check_count, check_kind
from discreet.families import FiniteFamily
from discreet.mechanisms import AnyFamily, LineCells
from discreet.survey import SurveyColumns

MARK_MISSING = np.uint32(0xFFFFFFFF)  # the value is null, or the list of values empty; also: leave this record out
MARK_OUTSIDE = np.uint32(0xFFFFFFFE)  # the value is not in the domain
MARK_LISTED = np.uint32(0xFFFFFFFD)  # an entry of the list of clients, not a record
MARK_NAN = np.uint32(0xFFFFFFFC)  # the value is NaN
MARK_UNREADABLE = np.uint32(0xFFFFFFFB)  # the value is a text that is not the number it should be
MARK_BELOW = np.uint32(0xFFFFFFFA)  # the value is below an interval and goes to its first cell
MARK_ABOVE = np.uint32(0xFFFFFFF9)  # the value is above an interval and goes to its last cell
FIRST_MARK = MARK_ABOVE
WIDE_MARKS = np.uint64(0xFFFFFFFF00000000)  # what is added to a mark among records of 64 bits, the rows of a survey


def mark_among(mark: np.uint32, records: NDArray[Any]) -> Any:
    """A mark as it stands among records of 32 or 64 bits."""
    return mark if records.itemsize == 4 else WIDE_MARKS | np.uint64(mark)


@dataclass(frozen=True)
class MisfitCounts:
    """The number of records without an outcome of their own, by reason."""

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


LARGEST_DOMAIN = int(FIRST_MARK)
NEAREST = "nearest"
NULLS = ("error", "drop", "other")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of a table's columns: client, value, and optionally `count` or `weight`.

    Several columns may name a client together. A survey has several columns of values, in a tuple.
    """

    client: str | Sequence[str]
    value: str | tuple[str, ...]
    count: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.weight is not None:
            raise DiscreetError("give a count column (whole numbers) or a weight column (any numbers), not both")
        if not isinstance(self.client, str):
            check_kind("client", self.client, Sequence, "name a column, or several in a list")
            several = tuple(self.client)
            for name in several:
                check_kind("client", name, str, "name a column, or several in a list")
            object.__setattr__(self, "client", several[0] if len(several) == 1 else several)
        names = self.names
        if not self.clients:
            raise DiscreetError("client is an empty list; name the column of clients")
        for name in names:
            if not isinstance(name, str) or not name:
                raise DiscreetError(f"{name!r} is not the name of a column")
        if len(set(names)) < len(names):
            raise DiscreetError(f"columns {', '.join(names)} are not all different")

    @property
    def clients(self) -> tuple[str, ...]:
        """The columns that name a client, in order."""
        return (self.client,) if isinstance(self.client, str) else tuple(self.client)

    @property
    def clients_text(self) -> str:
        """These columns in messages."""
        return (
            f"column {self.client!r}"
            if isinstance(self.client, str)
            else f"the key of columns {', '.join(map(repr, self.client))}"
        )

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*self.clients, *self.values, *([] if self.counts is None else [self.counts])]

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of values."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def value_name(self) -> str:
        """The column of values; of a survey the JSON list of its columns."""
        return json.dumps(self.value, ensure_ascii=False) if isinstance(self.value, tuple) else self.value

    @property
    def counts(self) -> str | None:
        """The count or weight column, if any."""
        return self.count if self.weight is None else self.weight

    @property
    def amounts(self) -> Any:
        """The numpy type of counts (integers) or weights (floats)."""
        return np.int64 if self.weight is None else np.float64


@dataclass(frozen=True)
class Coding:
    """The public domain of a column, and the rule for values outside of it and nulls.

    Args:
        domain: `Labels` (all texts or all integers; dates become texts, 2026-11-17), `Numbers`, or cells: an `Interval`, `LineCells` or
            `Bins`.
        other: the label or number that values outside become; with an interval "nearest", the cell at the nearest end. None: an error.
        nulls: "error", "drop" (they are left out) or "other" (they become that outcome).
        lenient: whether values without an outcome are never an error: they become `other` or are left out, and their client stays.

    Raises:
        DiscreetError: for a domain that does not fit any column, an `other` outside of it, or nulls = "other" without `other`.
    """

    domain: Domain
    other: Any = None
    nulls: str = "error"
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.domain.size > LARGEST_DOMAIN:
            raise DiscreetError(f"the domain has {self.domain.size:,} outcomes, more than {LARGEST_DOMAIN:,}")
        match self.domain:
            case Labels(labels) if all(_is_date(label) for label in labels):
                object.__setattr__(self, "domain", Labels(tuple(label.isoformat() for label in labels)))
                object.__setattr__(self, "other", self.other.isoformat() if _is_date(self.other) else self.other)
            case Labels():
                _check_labels(self.domain)
            case Numbers() | CellDomain():
                pass
            case _:
                raise DiscreetError(
                    f"no column is read with {short_repr(self.domain)}; use Labels, Numbers or Interval"
                )
        if self.other is not None:
            object.__setattr__(self, "other", self._checked_other())
        check_choice("nulls", self.nulls, NULLS)
        if self.nulls == "other" and (self.other is None or self.has_cells):
            raise DiscreetError(
                "nulls = 'other' (--nulls) needs an outcome for them: "
                + ("an interval has none, use 'drop'" if self.has_cells else "say other= (--other) which one")
            )

    def _checked_other(self) -> Any:
        """`other` as an outcome. A text that is a whole number names that number."""
        other = self.other
        check_kind("other", other, Hashable, "it is an outcome like the others")
        match self.domain:
            case CellDomain():
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
        """The same coding without errors, for a device or gateway, whose errors would tell the collector about the data."""
        other = NEAREST if self.has_cells else self.other
        return replace(self, other=other, nulls="drop" if self.has_cells or other is None else "other", lenient=True)

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return self.domain.size

    @property
    def other_outcome(self) -> int | None:
        """The outcome that values outside become; None with an interval, where a value goes to the nearest end."""
        if self.other is None or self.has_cells:
            return None
        return int(self.domain.numbers([self.other])[0])

    @property
    def has_cells(self) -> bool:
        """Whether a sample is a point of the cell that was drawn."""
        return isinstance(self.domain, CellDomain)

    @property
    def text_kind(self) -> pl.DataType:
        """The type that texts in an untyped table are read as."""
        match self.domain:
            case CellDomain():
                return pl.Float64()
            case Labels(labels) if isinstance(labels[0], str):
                return pl.String()
            case _:
                return pl.Int64()

    @property
    def sample_type(self) -> pa.DataType:
        """The type of a column of samples."""
        return {pl.Float64(): pa.float64(), pl.String(): pa.string(), pl.Int64(): pa.int64()}[self.text_kind]


@dataclass(frozen=True)
class RowCoding:
    """The public columns of a survey, and the rule for rows with a value outside or a null.

    Args:
        columns: of the survey; a row is read as one number (`SurveyColumns`).
        other: "nearest" moves numbers outside to the nearest end. None: they are an error, as labels outside always are.
        nulls: "error", or "drop", which leaves out rows with a null in any column.
        lenient: whether rows without an outcome are never an error: they are left out, and their client stays.

    Raises:
        DiscreetError: for another rule.
    """

    columns: SurveyColumns
    other: Any = None
    nulls: str = "error"
    lenient: bool = False

    has_cells = False

    def __post_init__(self) -> None:
        if self.other not in (None, NEAREST):
            raise DiscreetError(
                f"other = {self.other!r} is no rule for a survey; leave it out, or use {NEAREST!r}: numbers outside go to the nearest end"
            )
        check_choice("nulls", self.nulls, NULLS)
        if self.nulls == "other":
            raise DiscreetError(
                "nulls = 'other' (--nulls) is no rule for a survey; use 'drop', which leaves out the row"
            )

    @cached_property
    def codings(self) -> dict[str, Coding]:
        """How each column is read."""
        return {
            name: Coding(
                domain, NEAREST if self.other and isinstance(domain, CellDomain) else None, self.nulls, self.lenient
            )
            for name, domain in self.columns.items()
        }

    def as_agreed(self) -> "RowCoding":
        """The same coding without errors, for a device or gateway, whose errors would tell the collector about the data."""
        return RowCoding(self.columns, NEAREST, "drop", lenient=True)

    @property
    def size(self) -> int:
        """The number of different rows."""
        return self.columns.size


def _is_date(label: Any) -> bool:
    return isinstance(label, date) and not isinstance(label, datetime)


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
    """Whether a text is a 64-bit integer in its usual spelling (so that different texts are different numbers)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63


def agreed_term(name: str, given: Any, agreement: Agreement) -> Any:
    """The term of that name in the agreement. `given`, unless None, must be the same."""
    term = getattr(agreement, name)
    if given is not None and given != term:
        raise DiscreetError(
            f"{name} = {given!r} is not the {name} = {term!r} of agreement {agreement.id}; leave it out, or make an agreement "
            "that says so"
        )
    return term


def agreed_coding(agreement: Agreement, given: Any = None, other: Any = None) -> Coding:
    """The coding of an agreement. A given domain must be the agreed one; it may be needed for its labels."""
    if isinstance(agreement.family, ContinuousTerms):
        refuse_domain(agreement, given)
        return Coding(LineCells.of(agreement.sampler()), other)
    domain = agreement.domain if given is None else _check_agreed_domain(agreement, as_domain(given))
    if isinstance(domain, Digested):
        raise DiscreetError(
            f"agreement {agreement.id} holds a digest of its {domain.size:,} labels; give the labels too: domain= (--domain)"
        )
    if agreement.other is not None:
        named = domain.to_samples(np.asarray(agreement.other))
        if other is not None and str(other) != str(named):
            raise DiscreetError(f"other = {other!r} is not the {named!r} of agreement {agreement.id}; leave it out")
        other = named
    try:
        return Coding(domain, other)
    except DiscreetError as error:
        raise DiscreetError(f"{error} (agreement {agreement.id})") from None


def refuse_domain(agreement: Agreement, given: Any) -> None:
    """Raise an error for a domain beside an agreement on a continuous family, which states its cells."""
    if given is not None:
        raise DiscreetError(f"domain = {given!r}: agreement {agreement.id} states its cells; leave it out")


def agreed_clients(agreement: Agreement, coding: Coding) -> AnyFamily:
    """The family of an agreement, on outcomes or continuous."""
    terms = agreement.family
    return terms.family() if isinstance(terms, ContinuousTerms) else agreed_family(agreement, coding)


def agreed_family(agreement: Agreement, coding: Coding) -> FiniteFamily:
    """The family of an agreement on the domain of a table, which lists the labels."""
    return agreement.on_outcomes.on(coding.domain).family()


def _check_agreed_domain(agreement: Agreement, domain: Domain) -> Domain:
    """The domain, if it is the agreed one. A list of texts that are whole numbers may represent the numbers."""
    readings = [domain]
    if isinstance(domain, Labels) and all(isinstance(label, str) and is_whole(label) for label in domain.labels):
        readings.append(Labels(tuple(map(int, domain.labels))))
    for reading in readings:
        if replace(agreement.on_outcomes, domain=reading).difference(agreement.on_outcomes) is None:
            return reading
    different = replace(agreement.on_outcomes, domain=domain).difference(agreement.on_outcomes)
    assert different is not None
    name, here, there = different
    raise DiscreetError(
        f"the domain has {name} = {here!r}, not {there!r} as in agreement {agreement.id}; use the agreed one"
    )
