"""What families on finitely many outcomes share: a public domain, and laws read by its labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import LawLike
from discreet._showing import notebook_table, short_repr
from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.domain._role import Outcome
from discreet.errors import DiscreetError
from discreet.families._band import Bounds, describe_bounds
from discreet.families._laws import as_laws, law_of_counts, law_of_logits

LARGEST_DOMAIN = 2**40  # outcomes, so that every one can have its share of 2^62


class FiniteFamily(Protocol[Outcome]):
    """What a mechanism needs to know of a family on finitely many outcomes."""

    @property
    def domain(self) -> Domain[Outcome]: ...
    @property
    def size(self) -> int: ...
    @property
    def labels(self) -> tuple[Outcome, ...] | None: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def reference(self) -> float | NDArray[np.float64]:
        """mu_x for every outcome; one number when mu is uniform."""

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of dP/dmu for those whom risks are stated for."""

    @property
    def decomposable(self) -> bool: ...
    @property
    def fills_band(self) -> bool: ...
    def contains(self, p: LawLike) -> bool: ...
    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any: ...
    def to_samples(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]: ...
    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]: ...
    def as_rows(self, p: Any, name: str = "p") -> NDArray[np.float64]: ...


class FiniteFamilyBase(Generic[Outcome]):
    """The parts of a finite family that do not depend on which laws it holds."""

    bounds: Bounds
    everybody: bool = False  # whether the bounds only choose a box, and claim nothing about clients

    def __init__(self, domain: Domain[Outcome]) -> None:
        if domain.size > LARGEST_DOMAIN:
            raise DiscreetError(f"the domain has more than {LARGEST_DOMAIN:,} outcomes; group them")
        self._domain = domain

    @property
    def domain(self) -> Domain[Outcome]:
        """The public outcomes: `Labels`, `Numbers` or the cells of an `Interval`."""
        return self._domain

    @property
    def size(self) -> int:
        """Number of outcomes k."""
        return self.domain.size

    @property
    def labels(self) -> tuple[Outcome, ...] | None:
        """Names of the outcomes, or None when they are the numbers 0..size-1 or cells."""
        return self.domain.labels

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of dP/dmu for those whom risks are stated for: the members."""
        return self.bounds

    @property
    def fills_band(self) -> bool:
        """Whether the family holds every law of its band: it does."""
        return True

    def law(
        self,
        *,
        records: Iterable[Any] | None = None,
        counts: LawLike | None = None,
        logits: LawLike | None = None,
    ) -> NDArray[np.float64]:
        """The distribution (law) that a client holds, from what it saw, how often, or a model's logits: exactly one of the three.

        Counts and logits of many clients have one row each. A dict, a Series or a frame is read by its labels; labels that are left
        out have a count of 0 or a logit of minus infinity.

        Args:
            records: what one client saw, as labels, outcome numbers or points of the interval; the law is their relative frequencies.
            counts: how often each outcome was seen, (..., size), at least 0.
            logits: logarithms of probabilities up to a constant, (..., size); minus infinity is a probability of 0.

        Returns:
            Probabilities (..., size) in the order of the outcomes, in float64.

        Raises:
            DiscreetError: for labels outside the domain, nothing at all, or entries that are no counts or logits.
        """
        given = [argument is not None for argument in (records, counts, logits)]
        if sum(given) != 1:
            raise DiscreetError(
                "pass either records= (what the client saw) or counts= (how often) or logits= (of a model), not both and not neither"
            )
        if records is not None:
            numbers = self.domain.numbers(records)
            if not numbers.size:
                raise DiscreetError(
                    "records is empty: a client without records has no law; leave it out, or let it release from the reference"
                )
            return law_of_counts(np.bincount(numbers, minlength=self.size), self.size)
        if counts is not None:
            return law_of_counts(self.in_order(counts, "counts"), self.size)
        return law_of_logits(self.in_order(logits, "logits", -math.inf), self.size)

    def _repr_html_(self) -> str:
        said, rows = describe_bounds(self.bounds, "dP/dmu", everybody=self.everybody)
        return notebook_table(
            f"{type(self).__name__}: {said}", [("outcomes", f"{self.size:,}: {_describe_domain(self.domain)}"), *rows]
        )

    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Values that carry labels as an array (..., size) in the order of the outcomes; others as they are."""
        return self.domain.in_order(values, name, missing)

    def as_rows(self, p: Any, name: str = "p") -> NDArray[np.float64]:
        """Laws as they come, as float64 (..., size) in the order of the outcomes: labelled ones by label, others by position.

        Rows of float32 and float16 are normalised again where their own rounding explains what they miss. Otherwise nothing is
        checked: whoever uses the rows does.
        """
        return as_laws(self.in_order(p, name), name, self.size)

    def to_samples(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """Outcome numbers as samples: labels where the family has labels, the middles of cells where it has cells."""
        return self.domain.to_samples(numbers)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """Values (labels, outcome numbers, points of an interval) as checked outcome numbers."""
        return self.domain.numbers(records)


def domain_argument(domain: Domain) -> str:
    """A domain as the argument of a family: a number, the first labels and how many there are where not all are shown, or itself."""
    match domain:
        case Numbers():
            return str(domain.size)
        case Labels():
            shown = short_repr(list(domain.labels))
            return f"{shown}, {domain.size:,} outcomes" if shown.endswith("...]") else shown
        case _:
            return repr(domain)


def _describe_domain(domain: Domain) -> str:
    """What the outcomes are, for people."""
    match domain:
        case Numbers():
            return f"0 to {domain.size - 1:,}"
        case Interval():
            return f"cells of [{domain.low:g}, {domain.high:g}]"
        case _:
            return domain_argument(domain)
