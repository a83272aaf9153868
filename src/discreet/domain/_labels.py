"""Domains of labels, `Labels` and `Digested`, and the reading of any domain, `as_domain` and `domain_from_terms`.

`Labels` are named outcomes in order. Of `Digested` labels only the digest is known, as an agreement may state it instead of the list. Such a
domain can check whether a list is the right one, and nothing else.

`as_domain` reads what users pass: a number of outcomes, a list of labels or a domain. `domain_from_terms` reads what an agreement states:
the terms that `Domain.terms` or `Domain.full_terms` wrote.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import iterates_over_column_names, refuse_masked_array, unbox_arrow_column
from discreet._base.showing import with_short_repr
from discreet.domain._cells import FINITE, Interval
from discreet.domain._domain import (
    LARGEST_VALUE,
    VERSION,
    Domain,
    Numbers,
    Outcome,
    canonical_json,
    first_few_as_text,
    records_as_list,
    sha256_digest,
)
from discreet.errors import DiscreetError, check_count

_UNSEEN = re.compile(  # invisible letters and marks; format characters have a category of their own
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_DECIMAL = re.compile(r"-?[0-9]{1,30}([.][0-9]{1,30})?")


def read_date(name: str, day: Any) -> date:
    """A date, or a text of one; an error that names it otherwise."""
    if isinstance(day, date) and not isinstance(day, datetime):
        return day
    try:
        reading = date.fromisoformat(day)
    except (TypeError, ValueError):
        reading = None
    if reading is None or reading.isoformat() != day:
        raise DiscreetError(f"{name} = {day!r} is no date; write it as 2026-11-17")
    return reading


@with_short_repr
@dataclass(frozen=True, init=False)
class Labels(Domain[Outcome]):
    """Outcomes with labels: texts, numbers, or other hashable values.

    Args:
        labels: a list of them in the order of the outcomes, each once.

    Raises:
        DiscreetError: for no labels, repeated labels, NaN, or a set, which has no order.

    Example:
        >>> Labels(["red", "green"]).numbers(["green", "red"]).tolist()
        [1, 0]
    """

    labels: tuple[Outcome, ...]

    def __init__(self, labels: Iterable[Outcome]) -> None:
        object.__setattr__(self, "labels", labels_as_tuple(labels, "labels"))
        repeated_labels = [label for label, count in _label_counts(self.labels).items() if count > 1]
        if repeated_labels:
            raise DiscreetError(f"duplicate labels: {first_few_as_text(repeated_labels)}; list each outcome once")

    @classmethod
    def days(cls, first: str | date, last: str | date) -> "Labels[str]":
        """Every day from one to another, written as 2026-11-17.

        Args:
            first: the first day, a date or such a text.
            last: the last day.

        Returns:
            The labels, which are texts.

        Raises:
            DiscreetError: for what is no date, and where the last day comes before the first.
        """
        start, count = read_date("first", first).toordinal(), cls.count_days(first, last)
        return Labels(date.fromordinal(day).isoformat() for day in range(start, start + count))

    @staticmethod
    def count_days(first: str | date, last: str | date) -> int:
        """How many days there are from one to another.

        Args:
            first: the first day, a date or such a text.
            last: the last day.

        Returns:
            Their number, both included.

        Raises:
            DiscreetError: for what is no date, and where the last day comes before the first.
        """
        start, end = read_date("first", first), read_date("last", last)
        if end < start:
            raise DiscreetError(f"last = {end} comes before first = {start}; exchange them")
        return end.toordinal() - start.toordinal() + 1

    @cached_property
    def first_day(self) -> date | None:
        """The first day, if the labels are consecutive days as `days` writes them; otherwise None."""
        first, last = self.labels[0], self.labels[-1]
        if not (isinstance(first, str) and isinstance(last, str)):
            return None
        try:
            if Labels.count_days(first, last) != self.size:  # before they are listed: there may be millions
                return None
        except DiscreetError:
            return None
        return date.fromisoformat(first) if Labels.days(first, last).labels == self.labels else None

    @property
    def size(self) -> int:
        """How many labels there are."""
        return len(self.labels)

    @property
    def names(self) -> tuple[Outcome, ...]:
        """The labels."""
        return self.labels

    @cached_property
    def values(self) -> NDArray[np.float64] | None:
        """The labels as numbers, if all are numbers of a reasonable size or texts of such numbers (files contain texts)."""
        labels: tuple[Any, ...] = self.labels
        return np.array(list(map(float, labels))) if all(map(is_number_or_number_text, labels)) else None

    @cached_property
    def index(self) -> dict[Any, int]:
        """label -> outcome number."""
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def look_alikes(self) -> tuple[Outcome, Outcome] | None:
        """The first two labels that people may confuse: they differ only in case, width, spaces or invisible characters."""
        earlier: dict[str, Outcome] = {}
        for label in self.labels:
            first = earlier.setdefault(text_without_invisible_differences(str(label)), label)
            if first is not label:
                return first, label
        return None

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every label; an unknown label is an error that names the first few."""
        refuse_masked_array(records, "records")
        entries = records_as_list(records)
        numbers = self.find_numbers(entries)
        unknown_labels = [record for record, number in zip(entries, numbers, strict=True) if number < 0]
        if any(isinstance(record, (list, dict, set, np.ndarray)) for record in unknown_labels):
            raise DiscreetError(
                "records is not a list of single labels; pass one label for each record of one client (many clients: counts=)"
            )
        if any(is_missing(record) for record in unknown_labels):
            raise DiscreetError("records has missing values (None or NaN); leave them out, or map them to a label")
        if unknown_labels:
            raise DiscreetError(
                f"unknown labels: {first_few_as_text(unknown_labels)}{spelling_hint(unknown_labels[0], self.labels)}; the domain is public "
                "and fixed, extend it or map them"
            )
        return numbers

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every label, -1 for what is no label."""
        entries, index = records_as_list(records), self.index
        try:
            numbers = [index.get(record, -1) for record in entries]
        except TypeError:  # some cannot be looked up: a list, a dict
            numbers = [index.get(record, -1) if _is_hashable_record(record) else -1 for record in entries]
        return np.array(numbers, dtype=np.int64)

    def _samples_of_outcomes(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """Outcome numbers as labels; one label for a 0-d array."""
        return self._labels_array[numbers] if numbers.ndim else self.labels[int(numbers)]

    @property
    def terms(self) -> dict[str, Any]:
        """The number of labels, and their digest."""
        return self.terms_in_version(VERSION)

    def terms_in_version(self, version: int) -> dict[str, Any]:
        """The same, with the digest of that version of a document."""
        return {
            "size": self.size,
            "labels": self._labels_digest if version == VERSION else self._labels_digest_in_version(version),
        }

    @property
    def full_terms(self) -> dict[str, Any]:
        """The number of labels, and the labels."""
        return {"size": self.size, "labels": list(_check_labels_for_json(self.labels))}

    @cached_property
    def _labels_digest(self) -> str:
        """The digest of the labels (texts, numbers) in order; 1 and "1" differ."""
        return self._labels_digest_in_version(VERSION)

    def _labels_digest_in_version(self, version: int) -> str:
        return sha256_digest(canonical_json(list(_check_labels_for_json(self.labels)), version).encode())

    @cached_property
    def _labels_array(self) -> NDArray[Any]:
        if all(isinstance(label, str) and not label.endswith("\0") for label in self.labels):
            return np.asarray(self.labels)  # numpy drops trailing NULs
        label_objects = np.empty(self.size, dtype=object)  # filled one by one: a label may be a tuple
        for number, label in enumerate(self.labels):
            label_objects[number] = label
        return label_objects


def labels_as_tuple(labels: Any, argument: str) -> tuple[Any, ...]:
    """A list of labels as a tuple; errors name the argument."""
    if isinstance(labels, (str, bytes)):
        raise DiscreetError(f"{argument} = {labels!r} is a text; pass a number of outcomes or a list of labels")
    if iterates_over_column_names(labels) or isinstance(labels, (set, frozenset)):
        what = "has no order" if isinstance(labels, (set, frozenset)) else "is more than a list of labels"
        raise DiscreetError(f"{argument} = a {type(labels).__name__} {what}; pass a list, each outcome once")
    try:
        entries = tuple(map(_as_python_value, list(unbox_arrow_column(labels))))
    except TypeError:
        raise DiscreetError(f"{argument} = {labels!r} is not a list of labels") from None
    if not entries:
        raise DiscreetError(f"{argument} is empty; a law needs at least one outcome")
    return entries


def is_number_or_number_text(label: Any) -> bool:
    """Whether a label is a number, or a text of one, for use in statistics."""
    if isinstance(label, str):
        return _DECIMAL.fullmatch(label) is not None
    number = label.item() if isinstance(label, np.generic) else label
    return isinstance(number, (int, float)) and not isinstance(number, bool) and abs(number) <= LARGEST_VALUE


def _as_python_value(label: Any) -> Any:
    """A text, boolean or number of numpy's as Python's, which is equal to it and has the usual repr."""
    return label.item() if isinstance(label, (np.str_, np.bool_, np.integer, np.floating)) else label


def _check_labels_for_json(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as JSON values."""
    for label in labels:
        if not isinstance(label, (str, int, float)):
            raise DiscreetError(f"label {label!r} cannot stand in an agreement; use texts or numbers")
    return labels


def _label_counts(labels: Iterable[Any]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for label in labels:
        try:
            counts[label] = counts.get(label, 0) + 1
        except TypeError:
            raise DiscreetError(f"label {label!r} cannot be looked up; use texts or numbers") from None
        if isinstance(label, float) and math.isnan(label):
            raise DiscreetError("a label is NaN; name the outcome for missing values explicitly")
    return counts


def spelling_hint(text: Any, labels: Iterable[Any] | None) -> str:
    """A label that a text may be a misspelling of, as part of a message."""
    if labels is None or not isinstance(text, str):
        return ""
    import difflib  # loaded for such a message alone

    names = [str(label) for label in labels]
    form = text_without_invisible_differences(text)
    similar = [name for name in names if text_without_invisible_differences(name) == form]
    similar = similar or difflib.get_close_matches(text, names, n=1, cutoff=0.75)
    if not similar:
        return ""
    shown = repr(similar[0])
    if unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", similar[0]):  # both look the same
        shown = f"{similar[0]!a}, where this is {text!a}"
    return f" (did you mean {shown}?)"


def text_without_invisible_differences(text: str) -> str:
    """A text without differences that people overlook. Similar letters of two alphabets stay different."""
    if text.isascii() and text.isprintable():
        return " ".join(text.casefold().split())
    folded_text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    visible = "".join(
        character
        for character in folded_text
        if unicodedata.category(character) not in ("Cf", "Cc") or character.isspace()
    )
    return " ".join(_UNSEEN.sub("", visible).split())


_DIGEST = re.compile("sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Digested(Domain):
    """Labels known by their number and digest. The domain can check whether a list is the right one, and nothing more.

    Args:
        size: how many labels there are.
        labels_digest: the digest of the list, `sha256:` and 64 hexadecimal digits.

    Raises:
        DiscreetError: for a number or a digest that is none.
    """

    size: int
    labels_digest: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_count("size", self.size))
        check_digest_format("labels_digest", self.labels_digest)

    @property
    def labels(self) -> None:
        """None: the labels are not known."""
        return

    @property
    def names(self) -> NoReturn:
        """Raises an error: the labels are not known."""
        self.refuse_unknown_labels()

    @property
    def values(self) -> NoReturn:
        """Raises an error: the labels are not known."""
        self.refuse_unknown_labels()

    def numbers(self, records: Iterable[Any]) -> NoReturn:
        """Raises an error: the labels are not known."""
        self.refuse_unknown_labels()

    def find_numbers(self, records: Iterable[Any]) -> NoReturn:
        """Raises an error: the labels are not known."""
        self.refuse_unknown_labels()

    def _samples_of_outcomes(self, numbers: NDArray[np.int64]) -> NoReturn:
        """Raises an error: the labels are not known."""
        self.refuse_unknown_labels()

    @property
    def terms(self) -> dict[str, Any]:
        """The number of labels, and their digest."""
        return {"size": self.size, "labels": self.labels_digest}

    def refuse_unknown_labels(self) -> NoReturn:
        """Raise the error that the labels are not known."""
        raise DiscreetError("the agreement holds a digest of its labels; pass the family it was made with")


def _is_hashable_record(record: Any) -> bool:
    try:
        hash(record)
    except TypeError:
        return False
    return True


def check_digest_format(where: str, value: Any) -> str:
    """A digest as agreements write them; errors call it `where`."""
    if not isinstance(value, str) or _DIGEST.fullmatch(value) is None:
        raise DiscreetError(f"{where} = {value!r} is not 'sha256:' and 64 hexadecimal digits")
    return value


def as_domain(given: Any, argument: str = "domain") -> Domain:
    """The domain of an argument.

    Args:
        given: a number of outcomes, a list of labels, or a `Domain`.
        argument: the name of the argument in errors.

    Returns:
        The domain.

    Raises:
        DiscreetError: for any other argument.
    """
    if isinstance(given, np.ndarray) and not given.ndim:
        given = given.item()
    if isinstance(given, Domain):
        return given
    if isinstance(getattr(given, "domain", None), Domain):
        raise DiscreetError(
            f"{argument} = {given!r} is more than a domain; pass its .domain, or say family=, sampler= or agreement="
        )
    if isinstance(given, (Iterable, str, bytes)) or hasattr(given, "to_pylist"):
        return Labels(labels_as_tuple(given, argument))
    return Numbers(check_count(argument, given, fix="a law needs at least one outcome"))


DOMAIN_FIELDS = ("size", "labels", "interval")


def domain_from_terms(fields: Mapping[str, Any], where: str, version: int = VERSION) -> Domain:
    """The domain in a document of that version; errors name the field of `where`."""
    size = check_count(f"{where}.size", fields["size"])
    labels, interval = fields.get("labels"), fields.get("interval")
    if labels is not None and interval is not None:
        raise DiscreetError(
            f"{where}.labels and {where}.interval are both set; outcomes are labels or cells, leave out one"
        )
    if interval is not None:
        try:
            return Interval(*_read_interval_bounds(interval, where), cells=size)
        except DiscreetError as error:
            raise error if str(error).startswith(where) else DiscreetError(f"{where}.interval: {error}") from None
    if labels is None:
        return Numbers(size)
    if isinstance(labels, list):
        return _read_labels(labels, size, where, version)
    return Digested(size, check_digest_format(f"{where}.labels", labels))


def _read_interval_bounds(interval: Any, where: str) -> tuple[float, float]:
    """(low, high), checked."""
    if not (isinstance(interval, (list, tuple)) and len(interval) == 2):
        raise DiscreetError(f"{where}.interval = {interval!r} is not [low, high] with low < high")
    low, high = (FINITE.check(f"{where}.interval[{index}]", end) for index, end in enumerate(interval))
    if not low < high:
        raise DiscreetError(f"{where}.interval = [{low:g}, {high:g}] is not [low, high] with low < high")
    return low, high


def _read_labels(labels: list[Any], size: int, where: str, version: int) -> Labels:
    """The labels in a file."""
    for index, label in enumerate(labels):
        if not isinstance(label, (str, int, float)) or label != label:
            raise DiscreetError(f"{where}.labels[{index}] = {label!r} is neither a text nor a number")
    if len(labels) != size:
        raise DiscreetError(
            f"{where}.labels lists {len(labels)} labels for {where}.size = {size}; list each outcome once"
        )
    earlier: set[Any] = set()
    for label in labels:
        if label in earlier:
            raise DiscreetError(f"{where}.labels lists {label!r} twice; list each outcome once")
        earlier.add(label)
    domain = Labels(tuple(labels))
    domain.terms_in_version(version)  # raises now for labels that cannot stand in an agreement
    return domain


def is_missing(record: Any) -> bool:
    """Whether a record stands for no value: None, NaN, or the NA and NaT of pandas."""
    if record is None or type(record).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(record, (float, np.floating)) and bool(np.isnan(record))
