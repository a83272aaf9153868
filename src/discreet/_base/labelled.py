"""Labelled values, read by their labels and never by their position.

A dict, a Series, a frame (columns are outcomes, rows are clients) and lists of these carry labels. A missing label stands for a count or a
probability of 0, or a logit of minus infinity. A label outside the domain is an error, and so is a repeated one. The default index of pandas
(0, 1, 2, ...) carries no labels: its values are in the order of the outcomes.

Frames are recognised by their attributes (`.columns`, `.index`, `.column_names`), so that none of the packages that make them is needed.
"""

import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError

LawLike = ArrayLike | Mapping[Any, Any] | Sequence[Mapping[Any, Any]]
"""Numbers, one for each outcome on the last axis; or numbers by label."""
LabelLookup = Callable[[Sequence[Any]], NDArray[np.int64]]
"""The outcome number of each label; an error for one that is not in the domain."""


@dataclass(frozen=True, eq=False)
class LabelledValues:
    """Numbers (..., m) and the m labels of their last axis."""

    labels: tuple[Any, ...]
    values: NDArray[Any]


def split_labels_from_numbers(values: Any, name: str) -> LabelledValues | None:
    """The labels and numbers of one dict, Series or frame; None for values without labels."""
    if isinstance(values, Mapping):
        return LabelledValues(tuple(values), _dict_as_number_array(values, name))
    names = _names_of_last_axis(values)
    if names is None or _is_default_index(names):
        return None
    labels = tuple(names)
    try:
        has_repeats = len(set(labels)) < len(labels)
    except TypeError:
        raise DiscreetError(f"the labels of {name} cannot be looked up; use texts or numbers") from None
    if has_repeats:
        label = next(label for position, label in enumerate(labels) if label in labels[:position])
        raise DiscreetError(f"{name} has the label {label!r} twice; add up what belongs together")
    return LabelledValues(labels, _as_number_array(values, name))


def carries_labels(values: Any) -> bool:
    """Whether values are labelled: a dict, or a Series or frame with names of its own."""
    if isinstance(values, Mapping):
        return True
    names = _names_of_last_axis(values)
    return names is not None and not _is_default_index(names)


def refuse_masked_array(values: Any, name: str) -> None:
    """Raise an error for a numpy masked array, which other functions read with its hidden values."""
    if isinstance(values, np.ma.MaskedArray):
        raise DiscreetError(f"{name} is a masked array, whose hidden values would be used; fill it first")


def unbox_arrow_column(column: Any) -> Any:
    """A pyarrow column, whose values are boxed, as a list of plain values; other columns unchanged.

    It is validated in full first: its offsets and indices come from outside, and could point anywhere in this process.
    """
    if not hasattr(column, "to_pylist"):
        return column
    try:
        if hasattr(column, "validate"):
            column.validate(full=True)
        return column.to_pylist()
    except (ValueError, LookupError):  # Arrow's own errors are of these kinds
        raise DiscreetError(
            "a column of pyarrow is damaged: it points outside of its own values, or holds text that is not UTF-8; write it again"
        ) from None


def unbox_array_of_one(entry: Any) -> Any:
    """An array without axes, as iterating over a tensor gives them, as its plain value; anything else unchanged."""
    is_boxed = not isinstance(entry, np.generic) and getattr(entry, "ndim", None) == 0 and hasattr(entry, "item")
    return entry.item() if is_boxed else entry


def iterates_over_column_names(values: Any) -> bool:
    """Whether iterating over the values gives column names instead of values."""
    return isinstance(values, Mapping) or (
        _noncallable_attribute(values, "columns") is not None and hasattr(values, "__array__")
    )


def values_in_outcome_order(values: Any, size: int, lookup: LabelLookup, name: str, missing: float = 0.0) -> Any:
    """Labelled values as an array (..., size) in the order of the outcomes; values without labels unchanged."""
    if isinstance(values, (list, tuple)) and values and not isinstance(values[0], (numbers.Number, np.generic, str)):
        if not any(carries_labels(entry) for entry in values):
            return values
        return _stack_arrays(
            [values_in_outcome_order(entry, size, lookup, f"{name}[{i}]", missing) for i, entry in enumerate(values)],
            0,
            name,
        )
    labelled_values = split_labels_from_numbers(values, name)
    if labelled_values is None:
        _refuse_ambiguous_index(values, lookup, name)
        return values
    is_whole = labelled_values.values.dtype.kind in "iu" and not missing
    dtype = labelled_values.values.dtype if is_whole or labelled_values.values.dtype.kind == "f" else np.float64
    values_in_order = np.full((*labelled_values.values.shape[:-1], size), missing, dtype=dtype)
    try:
        values_in_order[..., lookup(labelled_values.labels)] = labelled_values.values
    except DiscreetError as error:
        raise DiscreetError(f"{name} has {error}") from None
    return values_in_order


def align_laws(p: Any, q: Any) -> tuple[Any, Any]:
    """Two distributions under the same labels, in one order; missing labels are 0. Without labels they are unchanged."""
    names = [dict.fromkeys(_labels_of_values(values)) for values in (p, q)]
    if not any(names):
        return p, q
    for name, other, labels in (("p", "q", names[0]), ("q", "p", names[1])):
        if not labels:
            raise DiscreetError(
                f"{other} has labels and {name} has none: which of its entries belong to which is not known; give both labels, or "
                "neither, in one order"
            )
    index = {label: position for position, label in enumerate(names[0] | names[1])}

    def positions_of_labels(labels: Sequence[Any]) -> NDArray[np.int64]:
        return np.array([index[label] for label in labels], dtype=np.int64)

    return values_in_outcome_order(p, len(index), positions_of_labels, "p"), values_in_outcome_order(
        q, len(index), positions_of_labels, "q"
    )


def _labels_of_values(values: Any) -> list[Any]:
    """All labels of values, themselves or in a list."""
    if isinstance(values, (list, tuple)) and values and not isinstance(values[0], (numbers.Number, np.generic, str)):
        return [label for entry in values for label in _labels_of_values(entry)]
    if not carries_labels(values):
        return []
    return list(values if isinstance(values, Mapping) else _names_of_last_axis(values))


def _dict_as_number_array(values: Mapping[Any, Any], name: str) -> NDArray[Any]:
    """The values of a dict as (..., m): numbers for one client, lists of equal length for many."""
    if not values:
        raise DiscreetError(f"{name} is an empty dict; name at least one outcome")
    return _stack_arrays([_as_number_array(entry, name) for entry in values.values()], -1, name)


def _stack_arrays(parts: Iterable[Any], axis: int, name: str) -> NDArray[Any]:
    try:
        return np.stack([np.asarray(part) for part in parts], axis=axis)
    except (TypeError, ValueError):
        raise DiscreetError(f"{name} is not numbers of equal shape under every label") from None


def _as_number_array(values: Any, name: str) -> NDArray[Any]:
    """Values as an array of numbers; a nullable column is an array of objects even if it contains only numbers."""
    refuse_masked_array(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and all(isinstance(entry, numbers.Real) for entry in array.flat):
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise DiscreetError(f"{name} is not an array of numbers that a float can hold") from None
    if array.dtype.kind not in "fiub":
        raise DiscreetError(f"{name} is not an array of numbers; fill or drop what is missing")
    return array


def _names_of_last_axis(values: Any) -> Any:
    """The names of the last axis: the columns of a frame, the index of a Series."""
    if not hasattr(values, "__array__"):
        return None
    for attribute in ("column_names", "columns", "index"):
        names = _noncallable_attribute(values, attribute)
        if names is not None:
            return names
    return None


def _noncallable_attribute(values: Any, name: str) -> Any:
    attribute = getattr(values, name, None)
    return None if attribute is None or callable(attribute) else attribute


def _is_default_index(names: Any) -> bool:
    """Whether it is pandas' RangeIndex from 0 in steps of 1, which names nothing."""
    return (getattr(names, "start", None), getattr(names, "step", None)) == (0, 1) and getattr(
        names, "stop", None
    ) == len(names)


def _refuse_ambiguous_index(values: Any, lookup: LabelLookup, name: str) -> None:
    """Reject a default index whose numbers are also labels of other outcomes: both readings would be possible."""
    names = _names_of_last_axis(values)
    if names is None:
        return
    for position, label in enumerate(names):
        if _outcome_of_label_or_none(lookup, label) not in (None, position):
            raise DiscreetError(
                f"{name} has the default index, and {label} is also the label of another outcome; give it the labels as its "
                "index, or pass .to_numpy() for the order of the outcomes"
            )


def _outcome_of_label_or_none(lookup: LabelLookup, label: Hashable) -> int | None:
    try:
        return int(lookup([label])[0])
    except DiscreetError:
        return None
