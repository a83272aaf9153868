"""The coding of a table's column: how values become outcome numbers, and the rule for values without an outcome.

`Coding` holds the public domain and the rule; both are checked when it is made. `outcome_codes_expression` states the coding as a polars
expression. The cell of a number is computed exactly as in `Interval`, operation for operation, so that both find the same one.

A value without an outcome becomes a mark: a number beyond every domain that encodes the reason. Marks are counted in `MisfitCounts` for the
operator of a release (`resolve_and_count_misfit_marks`), and then become the `other` outcome or are left out. `other` is one of the outcomes
and never adds one. Messages show the value behind a mark only on request.
"""

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.showing import short_repr
from discreet.domain._cells import CellDomain, Interval
from discreet.domain._domain import Domain, Numbers
from discreet.domain._labels import Labels, spelling_hint
from discreet.errors import DiscreetError, check_choice, check_count, check_kind

MARK_MISSING = np.uint32(0xFFFFFFFF)  # the value is null, or the list of values empty; also: leave this record out
MARK_OUTSIDE = np.uint32(0xFFFFFFFE)  # the value is not in the domain
MARK_LISTED = np.uint32(0xFFFFFFFD)  # an entry of the list of clients, not a record
MARK_NAN = np.uint32(0xFFFFFFFC)  # the value is NaN
MARK_UNREADABLE = np.uint32(0xFFFFFFFB)  # the value is a text that is not the number it should be
MARK_BELOW = np.uint32(0xFFFFFFFA)  # the value is below an interval and goes to its first cell
MARK_ABOVE = np.uint32(0xFFFFFFF9)  # the value is above an interval and goes to its last cell
FIRST_MARK = MARK_ABOVE
WIDE_MARKS = np.uint64(0xFFFFFFFF00000000)  # what is added to a mark among records of 64 bits, the rows of a survey


def widened_mark_for_records(mark: np.uint32, records: NDArray[Any]) -> Any:
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
            case Labels(labels) if all(_is_date_label(label) for label in labels):
                object.__setattr__(self, "domain", Labels(tuple(label.isoformat() for label in labels)))
                object.__setattr__(self, "other", self.other.isoformat() if _is_date_label(self.other) else self.other)
            case Labels():
                _refuse_mixed_labels(self.domain)
            case Numbers() | CellDomain():
                pass
            case _:
                raise DiscreetError(
                    f"no column is read with {short_repr(self.domain)}; use Labels, Numbers or Interval"
                )
        if self.other is not None:
            object.__setattr__(self, "other", self._checked_outcome_for_values_outside())
        check_choice("nulls", self.nulls, NULLS)
        if self.nulls == "other" and (self.other is None or self.has_cells):
            raise DiscreetError(
                "nulls = 'other' (--nulls) needs an outcome for them: "
                + ("an interval has none, use 'drop'" if self.has_cells else "say other= (--other) which one")
            )

    def _checked_outcome_for_values_outside(self) -> Any:
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
                    other = int(other) if is_whole_number_text(other) else -1
                if not 0 <= check_count("other", other, least=-(10**18)) < size:
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the outcomes 0 to {size - 1}; "
                        f"make the domain one larger and use {size}"
                    )
            case Labels(labels):
                if isinstance(labels[0], int) and isinstance(other, str) and is_whole_number_text(other):
                    other = int(other)
                if other not in labels or isinstance(other, bool):
                    raise DiscreetError(
                        f"other = {self.other!r} is not one of the {len(labels):,} labels{spelling_hint(self.other, labels)}; it is "
                        "an outcome like the others: add it to the domain (a line of the file, an entry of the list)"
                    )
        return other

    def as_lenient_coding(self) -> "Coding":
        """The same coding without errors, for a device or gateway, whose errors would tell the collector about the data."""
        other = NEAREST if self.has_cells else self.other
        return replace(self, other=other, nulls="drop" if self.has_cells or other is None else "other", lenient=True)

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return self.domain.size

    @property
    def outcome_for_values_outside(self) -> int | None:
        """The outcome that values outside become; None with an interval, where a value goes to the nearest end."""
        if self.other is None or self.has_cells:
            return None
        return int(self.domain.numbers([self.other])[0])

    record_type = np.uint32  # of coded records

    @property
    def has_cells(self) -> bool:
        """Whether a sample is a point of the cell that was drawn."""
        return isinstance(self.domain, CellDomain)

    @property
    def polars_type_to_read_texts_as(self) -> pl.DataType:
        """The type that texts in an untyped table are read as."""
        match self.domain:
            case CellDomain():
                return pl.Float64()
            case Labels(labels) if isinstance(labels[0], str):
                return pl.String()
            case _:
                return pl.Int64()

    @property
    def arrow_type_of_samples(self) -> pa.DataType:
        """The type of a column of samples."""
        return {pl.Float64(): pa.float64(), pl.String(): pa.string(), pl.Int64(): pa.int64()}[
            self.polars_type_to_read_texts_as
        ]


def _is_date_label(label: Any) -> bool:
    return isinstance(label, date) and not isinstance(label, datetime)


def _refuse_mixed_labels(domain: Labels) -> None:
    for kind in (str, int):
        if all(isinstance(label, kind) and not isinstance(label, bool) for label in domain.labels):
            return
    if all(isinstance(label, bool) for label in domain.labels):
        raise DiscreetError(
            "labels are truth values; write 'false' and 'true', or give the number of outcomes 2: 0 and 1"
        )
    raise DiscreetError("labels are neither all texts nor all integers; write them all the same way")


def is_whole_number_text(text: str) -> bool:
    """Whether a text is a 64-bit integer in its usual spelling (so that different texts are different numbers)."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63


def fit_coding_to_column(coding: Coding, column: str, kind: pl.DataType, *, agreed: bool) -> Coding:
    """The coding of a column of that type: texts that are whole numbers become integers for an integer column.

    Labels that are `agreed` stay texts, and the integers are read as texts.
    """
    match coding.domain:
        case Labels(labels):
            return _fit_labels_to_column(coding, labels, column, kind, agreed=agreed)
        case Numbers(size) if not kind.is_integer():
            raise DiscreetError(
                f"column {column!r} holds {kind} values, but a domain size means outcomes 0 to {size - 1}; "
                "cast the column to integers, or give the labels"
            )
        case CellDomain() if not kind.is_numeric():
            raise DiscreetError(f"column {column!r} holds {kind} values, but bounds need numbers; cast the column")
    return coding


def _fit_labels_to_column(
    coding: Coding, labels: tuple[Any, ...], column: str, kind: pl.DataType, *, agreed: bool
) -> Coding:
    are_texts = isinstance(labels[0], str)
    if not are_texts and kind.is_integer():
        return coding
    if are_texts:
        if kind in (pl.String, pl.Categorical, pl.Enum) or (agreed and kind.is_integer()):
            return coding
        if kind.is_integer():
            other = None if coding.other is None else _text_label_as_integer(coding.other, column)
            return replace(
                coding, domain=Labels(tuple(_text_label_as_integer(label, column) for label in labels)), other=other
            )
    what = "texts" if are_texts else "integers"
    raise DiscreetError(
        f"column {column!r} holds {kind} values but the labels are {what}; write its values as the labels are written (1, not 1.0)"
    )


def column_expression(name: str) -> pl.Expr:
    """The column of exactly that name. (`pl.col` takes "*" and names from ^ to $ for patterns, which other columns match.)"""
    is_pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return pl.col(f"^{re.escape(name)}$" if is_pattern else name)


def outcome_codes_expression(coding: Coding, column: str) -> pl.Expr:
    """The values of a column as outcome numbers; values without an outcome as marks."""
    value = column_expression(column)
    match coding.domain:
        case Labels(labels) if isinstance(labels[0], str):
            code = value.cast(pl.String).cast(pl.Enum(list(labels)), strict=False).to_physical().cast(pl.UInt32)
        case Labels(labels):
            keys = pl.Series(labels, dtype=pl.Int64)
            code = value.cast(pl.Int64, strict=False).replace_strict(
                keys, pl.arange(len(labels), eager=True, dtype=pl.UInt32), default=None
            )
        case (
            Interval() as interval
        ):  # the formula of its `cell_numbers_of_values`, in polars: twice as fast as by batches of numpy
            share = (value.cast(pl.Float64) - interval.low) * interval.inverse_length
            cell = (share * interval.cells).floor().clip(0, interval.cells - 1)
            return _cell_or_misfit_mark_expression(coding, value.cast(pl.Float64), interval.low, interval.high, cell)
        case CellDomain() as line:
            low, high = float(line.edges[0]), float(line.edges[-1])
            return _cell_or_misfit_mark_expression(
                coding,
                value.cast(pl.Float64),
                low,
                high,
                _cell_numbers_expression(coding, value.cast(pl.Float64), line),
            )
        case domain:
            code = pl.when(value.is_between(0, domain.size - 1)).then(value.cast(pl.UInt32, strict=False))
    return codes_or_misfit_marks_expression(value, code)


def _cell_or_misfit_mark_expression(coding: Coding, value: pl.Expr, low: float, high: float, cell: pl.Expr) -> pl.Expr:
    """The cell numbers of values; values beyond an end are marked with that end if they are to go there."""
    below, above = (MARK_BELOW, MARK_ABOVE) if coding.other == NEAREST else (MARK_OUTSIDE, MARK_OUTSIDE)
    mark = (
        pl.when(value.is_nan())
        .then(_misfit_mark_as_expression(MARK_NAN))
        .when(value < low)
        .then(_misfit_mark_as_expression(below))
    )
    code = mark.when(value > high).then(_misfit_mark_as_expression(above)).when(value.is_not_null())
    return codes_or_misfit_marks_expression(value, code.then(cell.cast(pl.UInt32, strict=False)))


def _cell_numbers_expression(coding: Coding, value: pl.Expr, line: CellDomain) -> pl.Expr:
    """The numbers of values' cells, found as the domain itself finds them; nothing for one between cells, unless it goes to the nearest."""

    def find_cell_numbers(values: pl.Series) -> pl.Series:
        floats = values.fill_null(math.nan).to_numpy()
        cells = line.cell_numbers_of_values(floats) if coding.other == NEAREST else line.find_cells(floats)
        return pl.Series(values.name, cells, dtype=pl.Int64)

    return value.map_batches(find_cell_numbers, return_dtype=pl.Int64, is_elementwise=True)


def codes_or_misfit_marks_expression(value: pl.Expr, code: pl.Expr) -> pl.Expr:
    """The codes; for values without one, the mark of the reason."""
    return pl.coalesce(
        code,
        pl.when(value.is_null())
        .then(_misfit_mark_as_expression(MARK_MISSING))
        .otherwise(_misfit_mark_as_expression(MARK_OUTSIDE)),
    )


def _misfit_mark_as_expression(mark: np.uint32) -> pl.Expr:
    return pl.lit(int(mark), pl.UInt32)


def _text_label_as_integer(label: str, column: str) -> int:
    if not is_whole_number_text(label):
        raise DiscreetError(f"column {column!r} holds integers but label {label!r} is none; cast the column to text")
    return int(label)


def resolve_and_count_misfit_marks(
    coding: Coding, outcomes: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], MisfitCounts]:
    """Outcomes with their marks resolved (MISSING: left out; LISTED: left out, but not its client), and the number of marks."""
    if not outcomes.size or outcomes.max() < FIRST_MARK:
        return outcomes, MisfitCounts()
    dropped_to = int(MARK_LISTED if coding.lenient else MARK_MISSING)
    outside_to = dropped_to if coding.outcome_for_values_outside is None else coding.outcome_for_values_outside
    missing_to = outside_to if coding.nulls == "other" else dropped_to
    first, last = coding.domain.first_and_last_cell if isinstance(coding.domain, CellDomain) else (0, 0)
    outcome_of_mark = {
        MARK_MISSING: missing_to,
        MARK_NAN: missing_to,
        MARK_UNREADABLE: missing_to,
        MARK_OUTSIDE: outside_to,
        MARK_BELOW: first,
        MARK_ABOVE: last,
    }
    resolved_outcomes, counts = outcomes.copy(), {}
    for mark, outcome in outcome_of_mark.items():
        mask = outcomes == mark
        counts[mark] = int(np.count_nonzero(mask))
        resolved_outcomes[mask] = outcome
    outside = counts[MARK_OUTSIDE] + counts[MARK_BELOW] + counts[MARK_ABOVE]
    return resolved_outcomes, MisfitCounts(counts[MARK_MISSING], counts[MARK_NAN], counts[MARK_UNREADABLE], outside)
