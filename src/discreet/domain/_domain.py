"""The abstract `Domain`, its simplest kind `Numbers`, the reading of records, and the canonical JSON text by which domains are compared.

For every outcome number n, `numbers(to_samples(n)) = n`, and equal canonical forms mean the same outcomes. `Numbers(size)` are the whole
numbers 0 to size - 1, which are their own outcomes. Records are a list of values. A single text or a frame is an error, and messages name the
first few records outside the domain.

The canonical text has the form of a document's version. Version 2 is RFC 8785, the JSON Canonicalization Scheme: UTF-8, no spaces, keys
sorted by their UTF-16 code units, and every number the 64-bit float it stands for, written as ECMAScript writes it. So any language can
compute a digest: in a browser `JSON.stringify` writes the numbers and texts. A whole number that is not a 64-bit float is an error, since it
would read back as another there.

Version 1 wrote numbers as Python shows them ("1.0", "1e-05") and whole numbers of any size. Documents of that version are still read, and
keep their digest.
"""

import decimal
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.labelled import (
    iterates_over_column_names,
    refuse_masked_array,
    unbox_array_of_one,
    unbox_arrow_column,
    values_in_outcome_order,
)
from discreet.errors import DiscreetError, check_count

VERSION = 2  # of new documents
LARGEST_VALUE = 1e100  # can be squared, and divided by a small weight, without overflow
_PLAIN_FROM, _PLAIN_TO = -6, 21  # decimal exponents between which ECMAScript writes a number without one
_DIGITS = decimal.Context(prec=40, traps=[])  # independent of the caller's decimal context


def records_as_list(records: Any) -> list[Any]:
    """A column or another iterable as a plain list."""
    if isinstance(records, (str, bytes)):
        raise DiscreetError(f"records = {records!r} is one text; pass a list of records")
    if iterates_over_column_names(records):
        raise DiscreetError(
            f"records is a {type(records).__name__}, not a list of records; pass one column of it, or counts= for how often"
        )
    try:
        entries = list(unbox_arrow_column(records))
    except TypeError:
        raise DiscreetError("records is not a list of single labels; pass one label for each record") from None
    if entries and unbox_array_of_one(entries[0]) is not entries[0]:
        return list(map(unbox_array_of_one, entries))
    return entries


def first_few_as_text(items: Iterable[Any]) -> str:
    """The first three distinct items, and how many more there are."""
    distinct = list(dict.fromkeys(repr(item) for item in items))
    return ", ".join(distinct[:3]) + (f" and {len(distinct) - 3} more" if len(distinct) > 3 else "")


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Outcome = TypeVar("Outcome", covariant=True, default=Any)
else:
    from typing import TypeVar

    Outcome = TypeVar("Outcome", covariant=True)  # Python 3.13 knows defaults


class Domain(ABC, Generic[Outcome]):
    """The public outcomes 0 to size - 1, and their meaning: `Labels`, `Numbers` or the cells of an `Interval`.

    Attributes:
        size: how many outcomes there are.
        labels: their labels in order, None for numbers or cells.
        names: a display name for each of them.
        values: the number of each in a statistic, None if they are not numbers.
        edges: the size + 1 ends of cells, None if outcomes are not cells.
        canonical: the canonical JSON text of the domain, and `digest` its SHA-256.
    """

    if TYPE_CHECKING:  # a property here would conflict with a dataclass field in a subclass

        @property
        def size(self) -> int: ...
        @property
        def labels(self) -> tuple[Outcome, ...] | None: ...

    @property
    @abstractmethod
    def names(self) -> Sequence[Any]:
        """A display name for each outcome."""

    @property
    @abstractmethod
    def values(self) -> NDArray[np.float64] | None:
        """The number of each outcome in a statistic; None if outcomes are not numbers."""

    @property
    def edges(self) -> NDArray[np.float64] | None:
        """The size + 1 ends of the cells, in order; None if outcomes are not cells."""
        return None

    @abstractmethod
    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every record.

        Args:
            records: values: labels, whole numbers, or points of an interval.

        Returns:
            One outcome number for each.

        Raises:
            DiscreetError: for a record outside the domain; the message names the first few.
        """

    @abstractmethod
    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome number of every record; -1 for a record outside the domain, which is not an error here.

        Args:
            records: values of any kind.

        Returns:
            One number for each.
        """

    def to_samples(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """Outcome numbers as samples: labels, whole numbers, or the middles of cells.

        Args:
            numbers: outcome numbers of any shape.

        Returns:
            An array of that shape; a single sample for a 0-d array.

        Raises:
            DiscreetError: for what is no outcome number.
        """
        return self._samples_of_outcomes(_require_outcome_numbers(numbers, self.size))

    def _samples_of_outcomes(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """The sample of each outcome; a single one for a 0-d array. By default outcomes are their numbers."""
        samples: NDArray[Any] | Any = numbers if numbers.ndim else int(numbers)
        return samples

    def outcome_numbers_of_labels(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        """The outcome numbers of the keys of a dict or a Series: labels, or the numbers of outcomes."""
        return self.numbers(labels)

    def values_in_outcome_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Labelled values as an array (..., size) in the order of the outcomes; other values unchanged."""
        return values_in_outcome_order(values, self.size, self.outcome_numbers_of_labels, name, missing)

    @property
    @abstractmethod
    def terms(self) -> dict[str, Any]:
        """The terms of the domain in an agreement: JSON values, with lists as long as the domain replaced by digests."""

    def terms_in_version(self, version: int) -> dict[str, Any]:
        """The terms with the digests of that version of a document."""
        return self.terms

    @property
    def full_terms(self) -> dict[str, Any]:
        """The terms for a file, with the labels themselves."""
        return self.terms

    @cached_property
    def canonical(self) -> str:
        """The canonical JSON text of the terms."""
        return canonical_json(self.terms)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form: equal if and only if an agreement states two domains alike."""
        return sha256_digest(self.canonical.encode())

    named = OldName("to_samples")
    listed = OldName("full_terms")


@dataclass(frozen=True)
class Numbers(Domain[int]):
    """The outcomes 0 to size - 1.

    Args:
        size: how many there are, at least 1.

    Raises:
        DiscreetError: for a size out of range.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_count("domain size", self.size, fix="a law needs at least one outcome"))

    @property
    def labels(self) -> None:
        """None: numbers have no labels."""
        return

    @property
    def names(self) -> range:
        """The numbers."""
        return range(self.size)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The numbers, as floats."""
        return np.arange(self.size, dtype=np.float64)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The records themselves, if they are whole numbers from 0 to size - 1; others are an error that names the first few."""
        refuse_masked_array(records, "records")
        numbers = self.find_numbers(entries := records if isinstance(records, np.ndarray) else records_as_list(records))
        if numbers.min(initial=0) < 0:
            outside = [record for record, number in zip(records_as_list(entries), numbers, strict=True) if number < 0]
            hint = (
                "; for booleans take Simplex([False, True])"
                if any(isinstance(r, (bool, np.bool_)) for r in outside)
                else ""
            )
            raise DiscreetError(
                f"unknown outcomes: {first_few_as_text(outside)}; outcomes are the numbers 0 to {self.size - 1}{hint}"
            )
        return numbers

    def find_numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """The records themselves, -1 for what is no whole number from 0 to size - 1."""
        if isinstance(records, np.ndarray) and records.ndim == 1 and records.dtype.kind in "iu":
            numbers = np.full(len(records), -1, dtype=np.int64)  # at once: there may be millions
            inside = (records >= 0) & (records < self.size)
            numbers[inside] = records[inside]
            return numbers
        return np.array(
            [
                record if _is_whole_number(record) and 0 <= record < self.size else -1
                for record in records_as_list(records)
            ],
            dtype=np.int64,
        )

    @property
    def terms(self) -> dict[str, Any]:
        """The number of outcomes."""
        return {"size": self.size}


def _require_outcome_numbers(numbers: Any, size: int) -> NDArray[np.int64]:
    """The numbers as an array, if each is that of an outcome; -1 would count from the end."""
    try:
        array = np.asarray(numbers)
    except (TypeError, ValueError):  # lists of several lengths
        array = np.asarray(None)
    fix = f"pass whole numbers from 0 to {size - 1}"
    if array.dtype.kind not in "iu":
        if array.size == 0:
            return array.astype(np.int64)
        raise DiscreetError(f"numbers is not an array of outcome numbers; {fix}")
    if array.size and (array.min() < 0 or array.max() >= size):
        raise DiscreetError(f"numbers reach from {array.min()} to {array.max()}, beyond the outcomes; {fix}")
    return array


def _is_whole_number(record: Any) -> bool:
    return isinstance(record, (int, np.integer)) and not isinstance(record, bool)


def canonical_json(value: Any, version: int = VERSION) -> str:
    """The canonical JSON text of a value."""
    try:
        text = _FORMS[version](value)
        text.encode()
    except UnicodeEncodeError:
        raise DiscreetError("an agreement holds texts that can be written in UTF-8 only") from None
    except DiscreetError:
        raise
    except RecursionError:
        raise DiscreetError("an agreement holds lists or objects that are nested too deeply") from None
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


def check_document_version(version: Any) -> int:
    """Check that the version of a document can be read."""
    if isinstance(version, bool) or not isinstance(version, int) or version not in _FORMS:
        raise DiscreetError(
            f"discreet = {version!r} is not one of the versions {', '.join(map(str, _FORMS))}; upgrade discreet to read it"
        )
    return version


def read_json_number(digits: str) -> float:
    """A number of a document of version 2: the 64-bit float of its digits.

    It is read like its canonical form, for every spelling: 3.0 and 3e0 have the form 3, and are the whole number.
    """
    number = float(digits)
    if math.isinf(number):
        raise DiscreetError("the agreement holds a number that no 64-bit float does")
    return int(number) if number.is_integer() and abs(number) < 10**_PLAIN_TO else number


def json_hook_refusing_repeated_fields(what: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """A hook for readers of JSON: objects, and an error for a repeated field, since readers would differ on which one counts."""

    def dict_refusing_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            (repeated_name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise DiscreetError(f"{what} gives {repeated_name!r} twice")
        return fields

    return dict_refusing_repeated_fields


def sha256_digest(content: bytes) -> str:
    """'sha256:' and the 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _iterate_canonical_json_pieces(value: Any) -> Iterator[str]:
    match value:
        case dict():
            separator = "{"
            for name in sorted(value, key=lambda name: name.encode("utf-16-be")):
                yield separator + _json_string(name) + ":"
                yield from _iterate_canonical_json_pieces(value[name])
                separator = ","
            yield "}" if value else "{}"
        case list() | tuple():
            separator = "["
            for entry in value:
                yield separator
                yield from _iterate_canonical_json_pieces(entry)
                separator = ","
            yield "]" if value else "[]"
        case str():
            yield _json_string(value)
        case bool() | None:
            yield json.dumps(value)
        case _:
            yield _number_as_json(value)


def _json_string(text: str) -> str:
    """A JSON string. RFC 8785 and `json` agree: only quotes, backslashes and controls are escaped."""
    return json.dumps(text, ensure_ascii=False)


def _number_as_json(number: float) -> str:
    """Number::toString of ECMAScript: the shortest digits that read back, plain from 1e-6 to below 1e21."""
    try:
        nearest = float(number)
    except OverflowError:
        nearest = float("nan")
    if nearest != number:
        if isinstance(number, int):
            raise DiscreetError(
                f"{number if abs(number) < 10**30 else 'a number of many digits'} is not a 64-bit float, so not every reader of an "
                "agreement could distinguish it from its neighbours; write it as a text"
            )
        raise ValueError
    sign, digits, exponent = decimal.Decimal(repr(nearest)).normalize(_DIGITS).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError  # an infinity
    text = "".join(map(str, digits))
    if text == "0":
        return "0"
    return ("-" if sign else "") + _decimal_text_of_digits(text, len(text) + exponent)


def _decimal_text_of_digits(digits: str, point: int) -> str:
    """The number 0.digits times 10^point, plain or with an exponent."""
    if len(digits) <= point <= _PLAIN_TO:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _PLAIN_TO:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_FROM < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


_FORMS: dict[int, Callable[[Any], str]] = {
    1: lambda value: json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False),
    2: lambda value: "".join(_iterate_canonical_json_pieces(value)),
}
