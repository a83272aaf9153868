"""The public columns of a survey, and what a part sees of them. A client's row has a value in each, and is one whole number.

Let columns 1 to d have k_1, ..., k_d outcomes. A row with the outcome numbers x_1, ..., x_d is the number

    x = x_1 + k_1 (x_2 + k_2 (x_3 + ...)),

so different rows have different numbers, and the outcome of a column is recovered by one division and one remainder. A number between
public bounds is read to 1/192,000 of its range: its outcome is a cell, and answers allow for half a cell.

A part of a survey sees one outcome of a row (a `Projection`): that of some columns together, the cell of a number, or a point next to it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import unbox_arrow_column
from discreet.domain import (
    CellDomain,
    Domain,
    Interval,
    Labels,
    Numbers,
    as_domain,
    records_as_floats_or_nan,
    whole_floats_as_integers,
)
from discreet.errors import DiscreetError, check_count, check_kind, check_list

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RESOLUTION = 192_000  # cells of a number: 2^9 3 5^3, so that usual numbers of cells divide it
LARGEST_ROWS = 1 << 62  # different rows of a survey, at most


@dataclass(frozen=True)
class Number:
    """A column of numbers between public bounds.

    Args:
        low: the smallest possible value.
        high: the largest.
        unit: what it counts, for tables and pictures.

    Raises:
        DiscreetError: for bounds that enclose no interval.
    """

    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        check_kind("unit", self.unit, str, "pass a text, such as 'minutes'")
        domain = Interval(self.low, self.high, cells=RESOLUTION)
        object.__setattr__(self, "low", domain.low)  # as floats, which a file can hold
        object.__setattr__(self, "high", domain.high)

    @cached_property
    def domain(self) -> Interval:
        """Its cells."""
        return Interval(self.low, self.high, cells=RESOLUTION)


@dataclass(frozen=True)
class Dates:
    """A column of days from one date to another, both included.

    Args:
        first: the first day, as a date or as text, "2026-01-01".
        last: the last day.

    Raises:
        DiscreetError: for what is no date, and for days in the wrong order.
    """

    first: datetime.date | str
    last: datetime.date | str

    def __post_init__(self) -> None:
        _ = self.size

    @cached_property
    def size(self) -> int:
        """How many days there are, which is known before they are listed."""
        return Labels.count_days(self.first, self.last)

    @cached_property
    def domain(self) -> Labels[str]:
        """One label for each day, as text."""
        return Labels.days(self.first, self.last)


class SurveyColumns(Mapping[str, Domain]):
    """The columns of a survey by name, in order.

    Args:
        columns: for each name a list of labels, a number of outcomes, a `Number`, `Dates` or a `Domain`.

    Raises:
        DiscreetError: for no columns, a column that is none of these, and more than 2^62 different rows.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        check_kind("columns", columns, Mapping, "pass a dict of names and outcomes")
        if not columns:
            raise DiscreetError("columns is empty; a survey asks for at least one")
        self._given = dict(columns)
        _refuse_too_many_days(self._given)
        self._domains: dict[str, Domain] = {}
        self.strides: dict[str, int] = {}
        self.size = 1
        for name, declaration in columns.items():
            check_kind("a name in columns", name, str, "pass the name of a column")
            if "\0" in name:
                raise DiscreetError(f"columns: {name!r} holds a zero character, which no column has")
            domain = (
                declaration.domain
                if isinstance(declaration, (Number, Dates))
                else as_domain(declaration, f"columns[{name!r}]")
            )
            self._domains[name], self.strides[name] = domain, self.size
            self.size *= domain.size
        if self.size > LARGEST_ROWS:
            raise DiscreetError(
                f"the columns have {self.size:.3g} different rows, more than 2^62; ask fewer columns, or coarser ones"
            )

    def __getitem__(self, name: str) -> Domain:
        return self._domains[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    def __repr__(self) -> str:
        return f"SurveyColumns({self._given!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SurveyColumns) and list(self._domains.items()) == list(other._domains.items())

    def __hash__(self) -> int:
        return hash(tuple(self._domains.items()))

    def column_sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        """How many outcomes each of these columns has."""
        return tuple(self._domains[name].size for name in names)

    def require_known_distinct_columns(self, names: Sequence[str], argument: str) -> tuple[str, ...]:
        """These names as a tuple; an error if one is no column or comes twice."""
        for name in names:
            if not isinstance(name, str) or name not in self._domains:
                raise DiscreetError(f"{argument}: there is no column {name!r}; the columns are {', '.join(self)}")
        if not names or len(set(names)) < len(names):
            raise DiscreetError(f"{argument} names {', '.join(map(repr, names))}; name each column once")
        return tuple(names)

    def column_declaration(self, name: str) -> Any:
        """What the column was declared as."""
        return self._given[name]

    @property
    def terms(self) -> dict[str, Any]:
        """The columns as a survey file and an agreement state them."""
        return {name: _column_as_terms(self, name) for name in self}

    def unit_of_column(self, name: str) -> str:
        """The unit of a number; empty where there is none."""
        declaration = self._given[name]
        return declaration.unit if isinstance(declaration, Number) else ""

    def encode(self, table: Any) -> Integers:
        """The number of each row of a table.

        Args:
            table: a dict of columns or a frame, with all columns of the survey; others are ignored.

        Returns:
            An array of int64.

        Raises:
            DiscreetError: for a column that is missing or has values outside its domain, before anything is drawn.
        """
        rows: Integers | None = None
        for name, domain in self._domains.items():
            try:
                values = unbox_arrow_column(table[name])
            except (KeyError, TypeError, IndexError, ValueError):
                raise DiscreetError(f"the table has no column {name!r}; the survey asks {', '.join(self)}") from None
            if isinstance(self._given[name], Dates):
                days = check_list(f"column {name!r}", values, "pass a day for each row")
                values = [_date_as_text(value) for value in days]
            if np.ma.isMaskedArray(table[name]) or _has_several_dimensions(values):
                raise DiscreetError(
                    f"column {name!r} is masked or has several dimensions; pass one plain value for each row"
                )
            try:
                offsets = domain.numbers(values).astype(np.int64) * self.strides[name]
            except DiscreetError as error:
                raise DiscreetError(f"column {name!r}: {error}") from None
            if rows is not None and len(offsets) != len(rows):
                raise DiscreetError(f"column {name!r} has {len(offsets):,} rows, the columns before it {len(rows):,}")
            rows = offsets if rows is None else rows + offsets
        assert rows is not None
        return rows

    def find_row_numbers_of_records(self, records: Sequence[Any]) -> Integers:
        """The number of each row, -1 for one that misses a column or has a value outside; nothing is refused.

        Args:
            records: one mapping for each row, from names of columns to values. Numbers past an end count as that end.

        Returns:
            An array of int64.
        """
        rows, valid = np.zeros(len(records), dtype=np.int64), np.ones(len(records), dtype=np.bool_)
        for name, domain in self._domains.items():
            values = [record.get(name) if isinstance(record, Mapping) else None for record in records]
            if isinstance(self._given[name], Dates):
                values = [_date_as_text(value) for value in values]
            if isinstance(domain, CellDomain):
                outcomes = domain.find_cells(
                    np.clip(records_as_floats_or_nan(values), domain.edges[0], domain.edges[-1])
                )
            else:
                outcomes = domain.find_numbers(
                    whole_floats_as_integers(values) if isinstance(domain, Numbers) else values
                )
            valid &= outcomes >= 0
            rows += np.maximum(outcomes, 0) * self.strides[name]
        return np.where(valid, rows, -1)

    def require_row_numbers(self, rows: Any) -> Integers:
        """The numbers of rows as int64; other values are an error."""
        try:
            numbers = np.asarray(rows)
        except ValueError:  # of lists of different lengths
            numbers = np.zeros((0, 0))
        if numbers.ndim == 1 and not numbers.size:
            return np.zeros(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not 0 <= numbers.min() <= numbers.max() < self.size:
            raise DiscreetError(
                f"rows are not whole numbers from 0 to {self.size - 1:,}; SurveyColumns.encode gives them"
            )
        return numbers.astype(np.int64)

    def column_outcomes_of_rows(self, rows: Integers, name: str) -> Integers:
        """The outcome number of one column in each row."""
        return rows // self.strides[name] % self._domains[name].size

    def joint_outcomes_of_rows(self, rows: Integers, names: Sequence[str]) -> Integers:
        """The number of each row in some of the columns alone, the last of them counting fastest (as numpy orders an array)."""
        outcomes = np.zeros(len(rows), dtype=np.int64)
        for name in names:
            outcomes = outcomes * self._domains[name].size + self.column_outcomes_of_rows(rows, name)
        return outcomes


def _has_several_dimensions(values: Any) -> bool:
    """Whether values are rows of values, also of several lengths."""
    try:
        return np.ndim(values) > 1
    except ValueError:
        return True


def _refuse_too_many_days(columns: Mapping[str, Any]) -> None:
    """Raise an error for columns of dates that are too many, before any day is listed."""
    rows = 1
    for declaration in columns.values():
        rows *= declaration.size if isinstance(declaration, Dates) else 1
        if rows > LARGEST_ROWS:
            raise DiscreetError(
                "the columns of dates have more than 2^62 different rows; ask fewer of them, or coarser ones"
            )


def _date_as_text(value: Any) -> Any:
    """A date as text, None if it is missing. A time that is not midnight, or of a time zone, keeps its time, and is no day."""
    if isinstance(value, np.datetime64):
        return str(value.astype("M8[D]")) if value == value.astype("M8[D]") else None
    if isinstance(value, datetime.datetime) and value != value:  # NaT of pandas
        return None
    if isinstance(value, datetime.datetime) and value.tzinfo is None and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else value


def _column_as_terms(columns: SurveyColumns, name: str) -> dict[str, Any]:
    """A column in a survey file."""
    declaration = columns.column_declaration(name)
    if isinstance(declaration, Number):
        return {
            "low": declaration.low,
            "high": declaration.high,
            **({"unit": declaration.unit} if declaration.unit else {}),
        }
    if isinstance(declaration, Dates):
        return {"first": str(declaration.first), "last": str(declaration.last)}
    domain = columns[name]
    if isinstance(domain, Labels):
        return {"labels": list(domain.labels)}
    if isinstance(domain, Interval):
        return {"low": domain.low, "high": domain.high, "cells": domain.cells}
    if isinstance(domain, Numbers):
        return {"size": domain.size}
    raise DiscreetError(f"column {name!r} has a domain that no survey file can state; use labels or numbers")


def _require_label_list(labels: Any) -> list[Any]:
    check_kind("labels", labels, list, "list each outcome once")
    return list(labels)


_FIELDS: dict[frozenset[str], Any] = {
    frozenset({"labels"}): lambda terms: _require_label_list(terms["labels"]),
    frozenset({"size"}): lambda terms: check_count("size", terms["size"]),
    frozenset({"low", "high"}): lambda terms: Number(terms["low"], terms["high"]),
    frozenset({"low", "high", "unit"}): lambda terms: Number(terms["low"], terms["high"], terms["unit"]),
    frozenset({"low", "high", "cells"}): lambda terms: Interval(terms["low"], terms["high"], cells=terms["cells"]),
    frozenset({"first", "last"}): lambda terms: Dates(terms["first"], terms["last"]),
}


def survey_columns_from_terms(terms: Any, where: str = "columns") -> SurveyColumns:
    """The columns of a survey file or an agreement."""
    if not isinstance(terms, dict):
        raise DiscreetError(f"{where} is not a JSON object with a column for each name")
    return SurveyColumns(
        {name: _column_declaration_from_terms(f"{where}[{name!r}]", column) for name, column in terms.items()}
    )


def _column_declaration_from_terms(where: str, terms: Any) -> Any:
    make = _FIELDS.get(frozenset(terms)) if isinstance(terms, dict) else None
    if make is None:
        raise DiscreetError(
            f"{where} is not a column; give labels, size, low and high (with unit), or first and last (dates)"
        )
    try:
        return make(terms)
    except DiscreetError as error:
        raise DiscreetError(f"{where}: {error}") from None


Uniform = Callable[[int, int], Integers]  # a bound and a count: so many integers, uniform below the bound


@dataclass(frozen=True)
class JointColumns:
    """The outcome of some columns together."""

    columns: tuple[str, ...]

    def outcome_count(self, columns: SurveyColumns) -> int:
        """How many outcomes the columns have together."""
        return math.prod(columns.column_sizes(self.columns))

    def draw_outcomes(self, columns: SurveyColumns, rows: Integers, draw_below: Uniform) -> Integers:
        """The outcome of each row."""
        return columns.joint_outcomes_of_rows(rows, self.columns)

    def outcome_probabilities(self, columns: SurveyColumns, row: int) -> dict[int, Fraction]:
        """The outcome of a row, for certain."""
        return {int(columns.joint_outcomes_of_rows(np.array([row]), self.columns)[0]): Fraction(1)}


@dataclass(frozen=True)
class NumberCell:
    """The cell of a number, of `count` equal ones (but for rounding to its resolution)."""

    column: str
    count: int

    def outcome_count(self, columns: SurveyColumns) -> int:
        """How many cells there are."""
        return self.count

    def draw_outcomes(self, columns: SurveyColumns, rows: Integers, draw_below: Uniform) -> Integers:
        """The cell of each row."""
        return columns.column_outcomes_of_rows(rows, self.column) * self.count // columns[self.column].size

    def outcome_probabilities(self, columns: SurveyColumns, row: int) -> dict[int, Fraction]:
        """The cell of a row, for certain."""
        return {int(self.draw_outcomes(columns, np.array([row]), _refuse_every_random_draw)[0]): Fraction(1)}


@dataclass(frozen=True)
class NumberPoint:
    """A point of an equal grid on the range of a number, to which it is rounded at random and without bias."""

    column: str
    points: int

    def outcome_count(self, columns: SurveyColumns) -> int:
        """How many points there are."""
        return self.points

    def _points_below_excesses_and_step(self, columns: SurveyColumns, rows: Integers) -> tuple[Integers, Integers, int]:
        """The point below the middle of each row's cell, how far the middle is beyond it, and the distance of points."""
        step = 2 * columns[self.column].size
        excesses = (2 * columns.column_outcomes_of_rows(rows, self.column) + 1) * (self.points - 1)
        return excesses // step, excesses % step, step

    def draw_outcomes(self, columns: SurveyColumns, rows: Integers, draw_below: Uniform) -> Integers:
        """A point next to each row's number: the upper one with the probability that makes the mean right."""
        lower, excesses, step = self._points_below_excesses_and_step(columns, rows)
        return lower + (draw_below(step, len(rows)) < excesses)

    def outcome_probabilities(self, columns: SurveyColumns, row: int) -> dict[int, Fraction]:
        """The two points next to a row's number, and their probabilities."""
        lower, excess, step = (
            int(np.ravel(number)[0]) for number in self._points_below_excesses_and_step(columns, np.array([row]))
        )
        upper = Fraction(excess, step)
        return {lower: 1 - upper, lower + 1: upper} if upper else {lower: Fraction(1)}


Projection = JointColumns | NumberCell | NumberPoint


def _refuse_every_random_draw(bound: int, count: int) -> Integers:
    raise AssertionError("nothing is drawn here")


def cell_edges(columns: SurveyColumns, column: str, count: int) -> Floats:
    """The ends of the cells of `NumberCell(column, count)`: of unions of the cells that a number is read to."""
    edges = columns[column].edges
    assert edges is not None
    size = len(edges) - 1
    return np.asarray(edges[-(-np.arange(count + 1) * size // count)])
