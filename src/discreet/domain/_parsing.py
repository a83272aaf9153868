"""Domains from user input (`as_domain`) and from the terms of an agreement (`from_terms`).

Users pass a number of outcomes, a list of labels or a domain. An agreement has the terms that `Domain.terms` or `Domain.full_terms` wrote.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from discreet.domain._canonical import VERSION
from discreet.domain._cells import Interval
from discreet.domain._domain import Domain, Numbers
from discreet.domain._labels import Digested, Labels, check_digest, list_labels
from discreet.errors import DiscreetError, Range, check_count


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
        return Labels(list_labels(given, argument))
    return Numbers(check_count(argument, given, fix="a law needs at least one outcome"))


DOMAIN_FIELDS = ("size", "labels", "interval")
_FINITE = Range(-math.inf, math.inf, low_open=True, high_open=True)


def from_terms(fields: Mapping[str, Any], where: str, version: int = VERSION) -> Domain:
    """The domain in a document of that version; errors name the field of `where`."""
    size = check_count(f"{where}.size", fields["size"])
    labels, interval = fields.get("labels"), fields.get("interval")
    if labels is not None and interval is not None:
        raise DiscreetError(
            f"{where}.labels and {where}.interval are both set; outcomes are labels or cells, leave out one"
        )
    if interval is not None:
        try:
            return Interval(*_read_bounds(interval, where), cells=size)
        except DiscreetError as error:
            raise error if str(error).startswith(where) else DiscreetError(f"{where}.interval: {error}") from None
    if labels is None:
        return Numbers(size)
    if isinstance(labels, list):
        return _read_labels(labels, size, where, version)
    return Digested(size, check_digest(f"{where}.labels", labels))


def _read_bounds(interval: Any, where: str) -> tuple[float, float]:
    """(low, high), checked."""
    if not (isinstance(interval, (list, tuple)) and len(interval) == 2):
        raise DiscreetError(f"{where}.interval = {interval!r} is not [low, high] with low < high")
    low, high = (_FINITE.check(f"{where}.interval[{place}]", end) for place, end in enumerate(interval))
    if not low < high:
        raise DiscreetError(f"{where}.interval = [{low:g}, {high:g}] is not [low, high] with low < high")
    return low, high


def _read_labels(labels: list[Any], size: int, where: str, version: int) -> Labels:
    """The labels in a file."""
    for place, label in enumerate(labels):
        if not isinstance(label, (str, int, float)) or label != label:
            raise DiscreetError(f"{where}.labels[{place}] = {label!r} is neither a text nor a number")
    if len(labels) != size:
        raise DiscreetError(
            f"{where}.labels lists {len(labels)} labels for {where}.size = {size}; list each outcome once"
        )
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            raise DiscreetError(f"{where}.labels lists {label!r} twice; list each outcome once")
        seen.add(label)
    found = Labels(tuple(labels))
    found.terms_in(version)  # raises now for labels that cannot stand in an agreement
    return found
