"""Families on finitely many outcomes: every law (`Simplex`), or those within constant factors of a reference (`Band`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import LawLike, labelled_values
from discreet.domain import Domain, Numbers, as_domain
from discreet.domain._role import Outcome
from discreet.errors import DiscreetError, Range
from discreet.families._band import Bounds, attained_bounds, claims_nothing, normalised_bounds
from discreet.families._decomposable import LARGEST_ENUMERATED, covers_evenly, divides_evenly
from discreet.families._laws import as_floats, check_laws
from discreet.families._on_outcomes import FiniteFamilyBase, domain_argument
from discreet.families._outsiders import is_outside
from discreet.families._worst_members import WorstMembers, uniform_vertex, vertices


class Simplex(FiniteFamilyBase[Outcome]):
    """Every law on k outcomes: mu uniform, 0 <= dP/dmu <= k, alpha = 1/k [paper, Section 3.1].

    `Simplex(10)` has the outcomes 0..9; `Simplex(["red", "green"])` names them; those of `Simplex(Interval(0, 60, cells=12))` are cells.

    Args:
        outcomes: a `Domain`; or how many outcomes there are, or the list of their labels (texts, numbers, booleans), each once.

    Raises:
        DiscreetError: for no outcomes, labels that come twice, or a set, which has no order.

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
        """Always: the k single outcomes are disjoint and have mass alpha each."""
        return True

    def contains(self, p: LawLike) -> bool:
        """True: every law is a member (what is not a law is an error).

        Args:
            p: one law or many, (k,) or (..., k), or by label.

        Returns:
            Whether all of them are members.

        Raises:
            DiscreetError: for what is no law.
        """
        check_laws(self.as_rows(p))
        return True

    def spread(self, outcomes: float) -> Band[Outcome]:
        """For clients that hold about so many outcomes each, whichever: 0 <= dP/dmu <= k/outcomes around the uniform mu.

        Its Q* is the best of all samplers for clients that are uniform on so many outcomes, and serves everybody; 1 is Q* of the
        simplex, and k/(e^(eps/2) + 1) is Husain's mollifier at epsilon (`discreet.design._floors`, T3 and T4).

        Args:
            outcomes: how many outcomes a client holds, in [1, k).

        Returns:
            A `Band` with `everybody=True`.

        Raises:
            DiscreetError: for a number out of range.
        """
        if self.size == 1:
            raise DiscreetError("a domain of one outcome has nothing to spread over")
        held = Range(1.0, float(self.size), high_open=True).check(
            "outcomes", outcomes, "it is how many outcomes a client holds"
        )
        weights = np.ones(self.size)
        return Band(weights, lower=0.0, upper=self.size / held, domain=self.domain, everybody=True)

    def __repr__(self) -> str:
        return f"Simplex({domain_argument(self.domain)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and self.domain == other.domain

    def __hash__(self) -> int:
        return hash((Simplex, self.domain))


class Band(FiniteFamilyBase[Outcome]):
    """The laws with lower mu <= P <= upper mu, where mu is `weights` normalised [paper, Def. C.1].

    `lower` and `upper` bound dP/dmu for the normalised mu, so lower < 1 < upper. A bound that no law attains is moved in to
    the one that is: `Band([1, 1], lower=0.5, upper=3)` holds the same laws as upper=1.5, and is the same band.

    With `everybody=True` they only choose the box and claim nothing about clients: every law is served, and risks are stated for
    all laws there are. Designs are such bands.

    Args:
        weights: the reference up to a factor: one positive number for each outcome, or a dict or Series by label.
        lower: the least dP/dmu, in [0, 1).
        upper: the most dP/dmu, more than 1.
        labels: names of the outcomes; a dict or Series of weights brings its own.
        domain: instead of labels, what the outcomes are: a `Domain`, such as the cells of an `Interval`.
        everybody: whether risks are stated for every law there is; needs lower = 0.

    Raises:
        DiscreetError: for weights that are not positive, or bounds that no law or only the reference satisfies.
    """

    @overload
    def __init__(
        self, weights: LawLike, *, lower: float, upper: float, labels: Sequence[Outcome], everybody: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self, weights: LawLike, *, lower: float, upper: float, domain: Domain[Outcome], everybody: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self: Band[int], weights: NDArray[Any] | Sequence[float], *, lower: float, upper: float, everybody: bool = False
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
        everybody: bool = False,
    ) -> None: ...
    def __init__(
        self,
        weights: LawLike,
        *,
        lower: float,
        upper: float,
        labels: Sequence[Any] | None = None,
        domain: Domain | None = None,
        everybody: bool = False,
    ) -> None:
        if labels is not None:
            if domain is not None:
                raise DiscreetError(
                    "labels and domain are both given; a domain says what the outcomes are, leave out labels"
                )
            domain = as_domain(labels, "labels")
        elif domain is not None:
            domain = as_domain(domain)
        found = labelled_values(weights, "weights")
        in_place: Any = weights
        if found is not None:
            domain = as_domain(found.labels, "labels") if domain is None else domain
            in_place = domain.in_order(weights, "weights")
        raw = as_floats(in_place, "weights")
        if raw.ndim != 1 or raw.size == 0:
            raise DiscreetError(f"weights has shape {raw.shape}; it is one positive number for each outcome")
        if not (raw > 0).all() or not np.isfinite(raw).all():
            bad = int(np.argmin((raw > 0) & np.isfinite(raw)))
            raise DiscreetError(
                f"weights[{bad}] = {raw[bad]:g} is not in (0, inf); leave out outcomes that cannot occur"
            )
        known: Domain[Any] = Numbers(raw.size) if domain is None else domain
        super().__init__(known)
        if self.size != raw.size:
            what = "domain" if labels is None else "labels"
            raise DiscreetError(f"{what} has {self.size} names for {raw.size} weights; give one for each")
        scaled = raw / raw.max()  # so that the sum cannot overflow
        self.everybody = claims_nothing(everybody, lower)
        given = normalised_bounds(lower, upper)
        attained = self._attainable_bounds(given, scaled)
        self.bounds = given if self.everybody else attained
        self._weights, self._mu = scaled, scaled / scaled.sum()
        for each in (self._weights, self._mu):
            each.setflags(write=False)
        if not (self._mu > 0).all():
            raise DiscreetError("weights differ by more than a factor 1e308; leave out the outcomes that cannot occur")

    def _attainable_bounds(self, given: Bounds, weights: NDArray[np.float64]) -> Bounds:
        if self.size == 1:
            raise DiscreetError("weights has one entry: there is one law on one outcome, and nothing to keep private")
        least = float(weights.min())
        if not least:
            raise DiscreetError("weights differ by more than a factor 1e308; leave out the outcomes that cannot occur")
        return attained_bounds(given, Fraction(least) / Fraction(math.fsum(weights)))

    @cached_property
    def reference(self) -> float | NDArray[np.float64]:
        """mu, one number when it is uniform."""
        return 1.0 / self.size if bool((self._mu == self._mu[0]).all()) else self._mu

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights relative to the largest: `Band` of these is the same band, bit for bit, which it need not be of mu."""
        return np.asarray(self._weights)

    @cached_property
    def decomposable(self) -> bool:
        """Whether mu is known to be alpha-decomposable, so that the risk formula is exact and not only an upper bound."""
        alpha = self.bounds.alpha
        if isinstance(self.reference, float):
            return divides_evenly(self.size, alpha)
        return self.size <= LARGEST_ENUMERATED and covers_evenly(self._mu, alpha)

    @property
    def worst_members(self) -> WorstMembers | None:
        """The vertices, one of which every box around mu serves worst; None where they are too many."""
        lower, upper = self.bounds.lower, self.bounds.upper
        if isinstance(self.reference, float):
            return lambda levels: uniform_vertex(self.size, lower, upper)
        return None if self.size > LARGEST_ENUMERATED else lambda levels: vertices(self._mu, lower, upper)

    @property
    def least_mass(self) -> float:
        """mu of the rarest outcome."""
        return float(self._mu.min())

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of dP/dmu for those whom risks are stated for: the members, or every law there is."""
        return Bounds(0.0, 1.0 / self.least_mass) if self.everybody else self.bounds

    def contains(self, p: LawLike) -> bool:
        """Whether every given law obeys the band, up to rounding (what is not a law is an error).

        Args:
            p: one law or many, (k,) or (..., k), or by label.

        Returns:
            Whether all of them are members.

        Raises:
            DiscreetError: for what is no law.
        """
        laws = self.as_rows(p)
        check_laws(laws)
        return not is_outside(laws, self._mu, self.bounds).any()

    def __repr__(self) -> str:
        served = ", everybody=True" if self.everybody else ""
        names = (
            ""
            if isinstance(self.domain, Numbers)
            else f", {'domain' if self.labels is None else 'labels'}={domain_argument(self.domain)}"
        )
        return f"Band(<{self.size} weights>, lower={self.bounds.lower:g}, upper={self.bounds.upper:g}{names}{served})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Band)
            and (self.bounds, self.domain, self.everybody) == (other.bounds, other.domain, other.everybody)
            and np.array_equal(self._mu, other._mu)
        )

    def __hash__(self) -> int:
        return hash((Band, self.bounds, self.domain, self.everybody, self._mu.tobytes()))
