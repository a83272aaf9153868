"""The public list of outcomes of a finite family: 0 to size - 1, with or without labels; records and labelled values in its terms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count
from discreet.labelled import in_order, is_frame, unboxed
from discreet.showing import shortly

LARGEST_DOMAIN = 2**40  # so that every outcome can have its share of 2^62


class Outcomes:
    """The public list of outcomes: 0..size-1, with or without names. Shared by every finite family."""

    def __init__(self, outcomes: int | Sequence[Any], argument: str) -> None:
        if isinstance(outcomes, np.ndarray) and not outcomes.ndim:
            outcomes = outcomes.item()
        if isinstance(outcomes, (str, bytes)):
            raise DiscreetError(f"{argument} = {outcomes!r} is a text; pass a number of outcomes or a list of labels")
        if is_frame(outcomes) or isinstance(outcomes, (set, frozenset)):
            what = "has no order" if isinstance(outcomes, (set, frozenset)) else "is more than a list of labels"
            raise DiscreetError(f"{argument} = a {type(outcomes).__name__} {what}; pass a list, each outcome once")
        if isinstance(outcomes, Iterable):
            self.labels: tuple[Any, ...] | None = tuple(map(_plain, list(unboxed(outcomes))))
            self.size = len(self.labels)
            if self.size == 0:
                raise DiscreetError(f"{argument} is empty; a law needs at least one outcome")
            repeated = [label for label, count in _counted(self.labels).items() if count > 1]
            if repeated:
                raise DiscreetError(f"{argument} has duplicate labels: {_few(repeated)}; list each outcome once")
        else:
            self.labels = None
            self.size = check_count(argument, outcomes, most=LARGEST_DOMAIN, fix="a law needs at least one outcome")

    @cached_property
    def index(self) -> dict[Any, int]:
        """label -> outcome number."""
        return {label: number for number, label in enumerate(self.labels or range(self.size))}

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every record; an unknown record is an error that names the first few."""
        if isinstance(records, (str, bytes)):
            raise DiscreetError(f"records = {records!r} is one text; pass a list of records")
        if is_frame(records):
            raise DiscreetError(
                f"records is a {type(records).__name__}, not a list of records; pass one column of it, or counts= for how often"
            )
        try:
            records = list(unboxed(records))
            found = [] if self.labels is None else [self.index.get(record, -1) for record in records]
        except TypeError:
            raise DiscreetError("records is not a list of single labels; pass one label for each record") from None
        if self.labels is None:
            return self._checked_numbers(records)
        unknown = [record for record, number in zip(records, found, strict=True) if number < 0]
        if unknown:
            raise DiscreetError(
                f"unknown labels: {_few(unknown)}; the domain is public and fixed, extend it or map them"
            )
        return np.asarray(found, dtype=np.int64)

    def _checked_numbers(self, records: list[Any]) -> NDArray[np.int64]:
        outside = [r for r in records if _is_boolean(r) or not _is_whole(r) or not 0 <= r < self.size]
        if outside:
            true = "; for booleans take Simplex([False, True])" if any(_is_boolean(r) for r in outside) else ""
            raise DiscreetError(
                f"unknown outcomes: {_few(outside)}; outcomes are the numbers 0 to {self.size - 1}{true}"
            )
        return np.asarray(records, dtype=np.int64)

    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Values that carry labels as an array (..., size) in the order of the outcomes; others as they are."""
        return in_order(values, self.size, self.numbers, name, missing)

    def named(self, numbers: NDArray[np.int64]) -> Any:
        """Outcome numbers as labels where there are labels; a scalar for a 0-d array."""
        if self.labels is None:
            return numbers if numbers.ndim else int(numbers)
        if not numbers.ndim:
            return self.labels[int(numbers)]
        return self._label_array[numbers]

    @cached_property
    def _label_array(self) -> NDArray[Any]:
        labels = self.labels or ()
        if all(isinstance(label, str) and not label.endswith("\0") for label in labels):  # numpy drops trailing NULs
            return np.asarray(labels)
        boxed = np.empty(self.size, dtype=object)  # filled one by one: a label may be a tuple
        for number, label in enumerate(labels):
            boxed[number] = label
        return boxed


def _plain(label: Any) -> Any:
    """A text, truth value or number of numpy's as Python's, which is equal to it and shows itself as people write it."""
    return label.item() if isinstance(label, (np.str_, np.bool_, np.integer, np.floating)) else label


def _counted(labels: Iterable[Any]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for label in labels:
        try:
            counts[label] = counts.get(label, 0) + 1
        except TypeError:
            raise DiscreetError(f"label {label!r} cannot be looked up; use texts or numbers") from None
        if isinstance(label, float) and math.isnan(label):
            raise DiscreetError("a label is NaN; name the outcome for missing values explicitly")
    return counts


def _few(items: Sequence[Any]) -> str:
    distinct = list(dict.fromkeys(repr(item) for item in items))
    return ", ".join(distinct[:3]) + (f" and {len(distinct) - 3} more" if len(distinct) > 3 else "")


def shown_names(labels: Sequence[Any]) -> str:
    """The first labels, and how many there are where not all are shown."""
    shown = shortly(list(labels))
    return f"{shown}, {len(labels):,} outcomes" if shown.endswith("...]") else shown


def _is_boolean(record: Any) -> bool:
    return isinstance(record, (bool, np.bool_))


def _is_whole(record: Any) -> bool:
    return isinstance(record, (int, np.integer))
