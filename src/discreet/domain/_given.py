"""A domain from what users pass: a number of outcomes, a list of labels, or a domain."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.domain._labels import Labels, list_labels
from discreet.domain._numbers import Numbers
from discreet.domain._role import Domain
from discreet.errors import DiscreetError, check_count


def as_domain(given: Any, argument: str = "domain") -> Domain:
    """The domain that is meant.

    Args:
        given: a number of outcomes, a list of labels, or a `Domain`.
        argument: what errors call it.

    Returns:
        The domain.

    Raises:
        DiscreetError: for what is none of these.
    """
    if isinstance(given, np.ndarray) and not given.ndim:
        given = given.item()
    if isinstance(given, Domain):
        return given
    if isinstance(getattr(given, "domain", None), Domain):
        raise DiscreetError(
            f"{argument} = {given!r} has a domain and says more than one; pass its .domain, or say family=, sampler= or agreement="
        )
    if isinstance(given, (Iterable, str, bytes)) or hasattr(given, "to_pylist"):
        return Labels(list_labels(given, argument))
    return Numbers(check_count(argument, given, fix="a law needs at least one outcome"))
