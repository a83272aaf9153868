"""Samples as counts of outcomes: what is counted, whose samples they are, and the reference mass of each outcome."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import plain_column
from discreet.audit._bounds import MOST_DRAWS
from discreet.domain import Domain, Interval
from discreet.domain._labels import LARGEST_VALUE
from discreet.errors import DiscreetError

Floats = NDArray[np.float64]

LARGEST = 10**7  # outcomes whose intervals are held in memory


def reference_on(domain: Domain, reference: float | Floats) -> Floats:
    """The reference masses of the outcomes of a finite family, if they are few enough to be counted one by one."""
    if domain.size > LARGEST:
        raise DiscreetError(
            f"the domain has {domain.size:,} outcomes, more than {LARGEST:,}: estimate shares of groups of them instead"
        )
    if isinstance(domain, Interval) and max(-domain.low, domain.high) > LARGEST_VALUE:
        raise DiscreetError(
            f"the interval [{domain.low:g}, {domain.high:g}] reaches past {LARGEST_VALUE:g}, where squares overflow; scale the values"
        )
    return np.array(np.broadcast_to(reference, domain.size), dtype=np.float64)


def as_list(column: Any) -> Any:
    """A column of pyarrow, of polars and pandas or of numpy as a plain list; others as they are."""
    column = plain_column(column)
    for plain in ("to_list", "tolist"):
        if hasattr(column, plain):
            return getattr(column, plain)()
    return column


def check_distinct(clients: Any, samples: Any) -> None:
    """Refuse clients that come twice, and names that are not one for each sample."""
    if samples is None:
        raise DiscreetError("clients= says whose samples= these are; counts= are of nobody in particular")
    try:
        names, number = list(as_list(clients)), len(as_list(samples))
        different = len(set(names))
    except TypeError:
        raise DiscreetError("clients is not a list of names or numbers, one for each of the samples") from None
    if len(names) != number:
        raise DiscreetError(f"clients names {len(names):,} clients for {number:,} samples; name one for each")
    if None in names:
        raise DiscreetError("clients holds None: a sample of nobody; leave it out")
    if different < number:
        raise DiscreetError(
            f"clients names the same clients again in {number - different:,} of {number:,} places: samples of several rounds, or one "
            "release twice. Give those of one round, or a row of samples for each client"
        )


def counts_of(samples: Any, domain: Domain) -> NDArray[np.int64]:
    """How often each outcome is among the samples."""
    numbers = domain.numbers(as_list(samples))
    return checked_counts(np.bincount(numbers, minlength=domain.size), domain)


def checked_counts(counts: Any, domain: Domain) -> NDArray[np.int64]:
    """Counts in the order of the outcomes, if they are some; a dict or a Series is read by its labels."""
    size, counts = domain.size, domain.in_order(counts, "counts")
    wrong = f"counts is not a list of {size} whole numbers of at least 0, one for each outcome"
    try:
        given = np.asarray(counts)
    except ValueError:  # rows of different lengths
        raise DiscreetError(wrong) from None
    if given.shape != (size,) or given.dtype.kind not in "iu" or bool((given < 0).any()):
        raise DiscreetError(wrong)
    if not given.any():
        raise DiscreetError(
            "there are no samples; an estimate needs at least one, and a useful one hundreds: see discreet plan"
        )
    if float(given.sum(dtype=np.float64)) > MOST_DRAWS:
        raise DiscreetError(f"counts sums to more than {MOST_DRAWS:,}, past which counts are no longer exact")
    return given.astype(np.int64)
