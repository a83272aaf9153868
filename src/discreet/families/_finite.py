"""Families on finitely many outcomes: all distributions (`Simplex`), those within constant factors of a reference (`Band`), and `Preserving`.

They share a public domain, whose labels identify the entries of a distribution.

`Preserving(q)` serves everybody by a sampler that preserves one public distribution: a client with the distribution q releases q. The box mu
= q, b = 1/(1 + (e^eps - 1) q_min), B = e^eps b is that of the band 0 <= dP/dq <= 1/q_min, alpha = q_min, which contains every distribution.

* q itself lies in it (b < 1 < B), so its projection is q.
* Zamanlooy, Diaz and Asoodeh (arXiv 2411.08791) preserve q by lambda P + (1 - lambda) q, lambda = (e^eps - 1) q_min/(1 + (e^eps - 1) q_min).
That is the linear mechanism of the same band: lambda = gamma. So its output lies in this box for every P, and the projection, the nearest
distribution of the box, is at least as good for every client and every f-divergence.
* The worst case is the same. Both give a point mass at the rarest outcome the probability B q_min = lambda + (1 - lambda) q_min there, and
spread the rest in proportion to q.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, overload

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName, accept_renamed_keywords
from discreet._base.labelled import LawLike, split_labels_from_numbers
from discreet._base.showing import html_table_for_notebook, short_repr
from discreet.domain import Domain, Interval, Labels, Numbers, Outcome, as_domain
from discreet.errors import DiscreetError, Range
from discreet.families._bands_and_laws import (
    LARGEST_ENUMERATED,
    BandFamily,
    Bounds,
    WorstMembers,
    as_floats,
    as_renormalised_laws,
    attained_bounds,
    band_vertices,
    bounds_for_normalised_reference,
    bounds_heading_and_rows,
    is_alpha_times_size_whole,
    law_of_counts,
    law_of_logits,
    laws_are_outside_band,
    read_any_client_flag,
    refuse_bad_laws,
    sets_of_mass_alpha_cover_evenly,
    vertex_of_uniform_band,
)

LARGEST_DOMAIN = 2**40  # outcomes, so that each gets a share of 2^62


class FiniteFamily(BandFamily, abc.ABC, Generic[Outcome]):
    """A family on finitely many outcomes. Subclasses define the reference."""

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
    @abc.abstractmethod
    def reference(self) -> float | NDArray[np.float64]:
        """mu_x for every outcome; one number when mu is uniform."""

    @property
    @abc.abstractmethod
    def decomposable(self) -> bool:
        """Whether mu is known to be alpha-decomposable, so that the risk formula is exact and not only an upper bound."""

    def law(
        self,
        *,
        records: Iterable[Any] | None = None,
        counts: LawLike | None = None,
        logits: LawLike | None = None,
    ) -> NDArray[np.float64]:
        """The distribution (law) of a client, from its records, its counts, or a model's logits: give exactly one of the three.

        Counts and logits of many clients have one row each. A dict, a Series or a frame is read by its labels; missing labels have a count of
        0 or a logit of minus infinity.

        Args:
            records: the client's values, as labels, outcome numbers or points of the interval; the distribution is their relative
                frequencies.
            counts: how often each outcome was seen, (..., size), at least 0.
            logits: logarithms of probabilities up to a constant, (..., size); minus infinity is a probability of 0.

        Returns:
            Probabilities (..., size) in the order of the outcomes, in float64.

        Raises:
            DiscreetError: for labels outside the domain, no data, or entries that are not counts or logits.
        """
        is_given = [argument is not None for argument in (records, counts, logits)]
        if sum(is_given) != 1:
            raise DiscreetError(
                "pass exactly one of records= (what the client saw), counts= (how often) and logits= (of a model)"
            )
        if records is not None:
            numbers = self.domain.numbers(records)
            if not numbers.size:
                raise DiscreetError(
                    "records is empty: a client without records has no law; leave it out, or let it release from the reference"
                )
            return law_of_counts(np.bincount(numbers, minlength=self.size), self.size)
        if counts is not None:
            return law_of_counts(self.values_in_outcome_order(counts, "counts"), self.size)
        return law_of_logits(self.values_in_outcome_order(logits, "logits", -math.inf), self.size)

    def contains(self, p: LawLike) -> bool:
        """Whether every given distribution obeys the bounds, up to rounding. An argument that is not a distribution is an error.

        Args:
            p: one distribution or many, (k,) or (..., k), or by label.

        Returns:
            Whether all of them are members.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        laws = self.as_rows(p)
        refuse_bad_laws(laws)
        return self._are_all_members(laws)

    def _are_all_members(self, laws: NDArray[np.float64]) -> bool:
        return True

    def _repr_html_(self) -> str:
        heading, rows = bounds_heading_and_rows(self.bounds, "dP/dmu", any_client=self.any_client)
        return html_table_for_notebook(
            f"{type(self).__name__}: {heading}",
            [("outcomes", f"{self.size:,}: {_describe_domain(self.domain)}"), *rows],
        )

    def values_in_outcome_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Labelled values as an array (..., size) in the order of the outcomes; other values unchanged."""
        return self.domain.values_in_outcome_order(values, name, missing)

    def as_rows(self, p: Any, name: str = "p") -> NDArray[np.float64]:
        """Distributions as float64 (..., size) in the order of the outcomes: labelled ones by label, others by position.

        Rows of float32 and float16 are normalised again if their own rounding explains the error of their sum. Nothing else is checked here.
        """
        return as_renormalised_laws(self.values_in_outcome_order(p, name), name, self.size)

    def to_samples(self, numbers: NDArray[np.int64]) -> Outcome | NDArray[Any]:
        """Outcome numbers as samples: labels where the family has labels, the middles of cells where it has cells.

        Args:
            numbers: outcome numbers.

        Returns:
            A sample for each.

        Raises:
            DiscreetError: for what is no outcome number.
        """
        return self.domain.to_samples(numbers)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """Values (labels, outcome numbers, points of an interval) as checked outcome numbers."""
        return self.domain.numbers(records)

    named = OldName("to_samples")


def domain_as_argument_text(domain: Domain) -> str:
    """A domain as the argument of a family: a number, the labels (only the first, with their number, if there are many), or itself."""
    match domain:
        case Numbers():
            return str(domain.size)
        case Labels():
            labels = short_repr(list(domain.labels))
            return f"{labels}, {domain.size:,} outcomes" if labels.endswith("...]") else labels
        case _:
            return repr(domain)


def _describe_domain(domain: Domain) -> str:
    """A description of the outcomes."""
    match domain:
        case Numbers():
            return f"0 to {domain.size - 1:,}"
        case Interval():
            return f"cells of [{domain.low:g}, {domain.high:g}]"
        case _:
            return domain_as_argument_text(domain)


class Simplex(FiniteFamily[Outcome]):
    """All distributions on k outcomes: mu uniform, 0 <= dP/dmu <= k, alpha = 1/k [paper, Section 3.1].

    `Simplex(10)` has the outcomes 0..9; `Simplex(["red", "green"])` names them; those of `Simplex(Interval(0, 60, cells=12))` are cells.

    Args:
        outcomes: a `Domain`; or the number of outcomes, or the list of their labels (texts, numbers, booleans), each once.

    Raises:
        DiscreetError: for no outcomes, repeated labels, or a set, which has no order.

    Example:
        >>> colours = Simplex(["red", "green", "blue"])
        >>> p = colours.law(records=["red", "red", "blue"])
    """

    @overload
    def __init__(self: Simplex[int], outcomes: int) -> None: ...
    @overload
    def __init__(self, outcomes: Sequence[Outcome] | Domain[Outcome]) -> None: ...
    def __init__(self, outcomes: int | Sequence[Any] | Domain) -> None:
        super().__init__(as_domain(outcomes, "outcomes"))
        self.bounds = Bounds(0.0, float(self.size))

    @property
    def reference(self) -> float:
        """The uniform reference 1/k."""
        return 1.0 / self.size

    @property
    def decomposable(self) -> bool:
        """True: the k single outcomes are disjoint and have mass alpha each."""
        return True

    def spread(self, outcomes: float) -> Band[Outcome]:
        """The family for clients with about that many outcomes each: 0 <= dP/dmu <= k/outcomes around the uniform mu.

        Its Q* is the best sampler for clients that are uniform on that many outcomes, if it is a whole number, and serves everybody. 1 gives
        Q* of the simplex. k/(e^(eps/2) + 1), where it is at least 1, gives Husain's mollifier at epsilon (`discreet.design._floors`, T3, T4).

        Args:
            outcomes: the number of outcomes of a client, in [1, k).

        Returns:
            A `Band` with `any_client=True`.

        Raises:
            DiscreetError: for a number out of range.
        """
        if self.size == 1:
            raise DiscreetError("a domain of one outcome has nothing to spread over")
        count = Range(1.0, float(self.size), high_open=True).check(
            "outcomes", outcomes, "give the number of outcomes of a client"
        )
        weights = np.ones(self.size)
        return Band(weights, lower=0.0, upper=self.size / count, domain=self.domain, any_client=True)

    def __repr__(self) -> str:
        return f"Simplex({domain_as_argument_text(self.domain)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and self.domain == other.domain

    def __hash__(self) -> int:
        return hash((Simplex, self.domain))


class Band(FiniteFamily[Outcome]):
    """The distributions with lower mu <= P <= upper mu, where mu is `weights` normalised [paper, Def. C.1].

    `lower` and `upper` bound dP/dmu for the normalised mu, so lower < 1 < upper. A bound that no distribution attains is moved in to the
    attained one: `Band([1, 1], lower=0.5, upper=3)` has the same members as upper=1.5, and is the same band.

    With `any_client=True` the bounds only choose the box and make no claim about clients: every distribution is served, and risks hold for
    all of them. Designs are such bands.

    Args:
        weights: the reference up to a factor: one positive number for each outcome, or a dict or Series by label.
        lower: the smallest dP/dmu, in [0, 1).
        upper: the largest dP/dmu, more than 1.
        labels: names of the outcomes; a dict or Series of weights brings its own.
        domain: instead of labels, a `Domain` of outcomes, such as the cells of an `Interval`.
        any_client: whether risks hold for all distributions; needs lower = 0.

    Raises:
        DiscreetError: for weights that are not positive, or bounds that no distribution or only the reference satisfies.
    """

    @overload
    def __init__(
        self, weights: LawLike, *, lower: float, upper: float, labels: Sequence[Outcome], any_client: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self, weights: LawLike, *, lower: float, upper: float, domain: Domain[Outcome], any_client: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self: Band[int],
        weights: NDArray[Any] | Sequence[float],
        *,
        lower: float,
        upper: float,
        any_client: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        weights: LawLike,
        *,
        lower: float,
        upper: float,
        labels: Sequence[Any] | None = None,
        domain: Domain | None = None,
        any_client: bool = False,
    ) -> None: ...
    @accept_renamed_keywords(everybody="any_client")
    def __init__(
        self,
        weights: LawLike,
        *,
        lower: float,
        upper: float,
        labels: Sequence[Any] | None = None,
        domain: Domain | None = None,
        any_client: bool = False,
    ) -> None:
        if labels is not None:
            if domain is not None:
                raise DiscreetError(
                    "labels and domain are both given; a domain says what the outcomes are, leave out labels"
                )
            domain = as_domain(labels, "labels")
        elif domain is not None:
            domain = as_domain(domain)
        labelled_weights = split_labels_from_numbers(weights, "weights")
        entries: Any = weights
        if labelled_weights is not None:
            domain = as_domain(labelled_weights.labels, "labels") if domain is None else domain
            entries = domain.values_in_outcome_order(weights, "weights")
        raw = as_floats(entries, "weights")
        if raw.ndim != 1 or raw.size == 0:
            raise DiscreetError(f"weights has shape {raw.shape}; it is one positive number for each outcome")
        if not (raw > 0).all() or not np.isfinite(raw).all():
            bad = int(np.argmin((raw > 0) & np.isfinite(raw)))
            raise DiscreetError(
                f"weights[{bad}] = {raw[bad]:g} is not in (0, inf); leave out outcomes that cannot occur"
            )
        outcomes: Domain[Any] = Numbers(raw.size) if domain is None else domain
        super().__init__(outcomes)
        if self.size != raw.size:
            argument = "domain" if labels is None else "labels"
            raise DiscreetError(f"{argument} has {self.size} names for {raw.size} weights; give one for each")
        scaled_weights = raw / raw.max()  # so that the sum cannot overflow
        self.any_client = read_any_client_flag(any_client, lower)
        bounds = bounds_for_normalised_reference(lower, upper)
        member_bounds = self._bounds_attained_with_these_weights(bounds, scaled_weights)
        self.bounds = bounds if self.any_client else member_bounds
        self._weights, self._mu = scaled_weights, scaled_weights / scaled_weights.sum()
        for array in (self._weights, self._mu):
            array.setflags(write=False)
        if not (self._mu > 0).all():
            raise DiscreetError("weights differ by more than a factor 1e308; leave out the outcomes that cannot occur")

    def _bounds_attained_with_these_weights(self, bounds: Bounds, weights: NDArray[np.float64]) -> Bounds:
        if self.size == 1:
            raise DiscreetError("weights has one entry: there is one law on one outcome, and nothing to keep private")
        least = float(weights.min())
        if not least:
            raise DiscreetError("weights differ by more than a factor 1e308; leave out the outcomes that cannot occur")
        return attained_bounds(bounds, Fraction(least) / Fraction(math.fsum(weights)))

    @cached_property
    def reference(self) -> float | NDArray[np.float64]:
        """mu, one number if it is uniform."""
        return 1.0 / self.size if bool((self._mu == self._mu[0]).all()) else self._mu

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights relative to the largest. A `Band` of these is the same band, bit for bit; a `Band` of mu may differ by rounding."""
        return np.asarray(self._weights)

    @cached_property
    def decomposable(self) -> bool:
        """Whether mu is known to be alpha-decomposable, so that the risk formula is exact and not only an upper bound."""
        alpha = self.bounds.alpha
        if isinstance(self.reference, float):
            return is_alpha_times_size_whole(self.size, alpha)
        return self.size <= LARGEST_ENUMERATED and sets_of_mass_alpha_cover_evenly(self._mu, alpha)

    @property
    def worst_members(self) -> WorstMembers | None:
        """The vertices, one of which is the worst case for every box around mu; None if they are too many."""
        lower, upper = self.bounds.lower, self.bounds.upper
        if isinstance(self.reference, float):
            return lambda levels: vertex_of_uniform_band(self.size, lower, upper)
        return None if self.size > LARGEST_ENUMERATED else lambda levels: band_vertices(self._mu, lower, upper)

    @property
    def least_reference_mass(self) -> float:
        """mu of the rarest outcome."""
        return float(self._mu.min())

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of dP/dmu for the clients that risks hold for: the members, or all distributions."""
        return Bounds(0.0, 1.0 / self.least_reference_mass) if self.any_client else self.bounds

    def _are_all_members(self, laws: NDArray[np.float64]) -> bool:
        return not laws_are_outside_band(laws, self._mu, self.bounds).any()

    def __repr__(self) -> str:
        flag = ", any_client=True" if self.any_client else ""
        names = (
            ""
            if isinstance(self.domain, Numbers)
            else f", {'domain' if self.labels is None else 'labels'}={domain_as_argument_text(self.domain)}"
        )
        return f"Band(<{self.size} weights>, lower={self.bounds.lower:g}, upper={self.bounds.upper:g}{names}{flag})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Band)
            and (self.bounds, self.domain, self.any_client) == (other.bounds, other.domain, other.any_client)
            and np.array_equal(self._mu, other._mu)
        )

    def __hash__(self) -> int:
        return hash((Band, self.bounds, self.domain, self.any_client, self._mu.tobytes()))


def Preserving(q: LawLike, *, labels: Sequence[Any] | None = None) -> Band:
    """All clients, served by a box around a public distribution q that preserves q: a client with the distribution q releases q.

    Args:
        q: the public distribution, as positive numbers in proportion to it, or a dict or Series by label.
        labels: names of the outcomes.

    Returns:
        A `Band` with `any_client=True`: risks hold for all distributions.

    Raises:
        DiscreetError: for an outcome of probability 0 under q.

    Example:
        >>> family = Preserving({"north": 0.4, "south": 0.3, "east": 0.2, "west": 0.1})
    """
    rarest = Band(q, lower=0.0, upper=2.0, labels=labels, any_client=True).least_reference_mass
    return Band(q, lower=0.0, upper=1.0 / rarest, labels=labels, any_client=True)
