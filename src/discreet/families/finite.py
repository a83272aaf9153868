"""Families on finitely many outcomes: every law (`Simplex`), or those within constant factors of a reference (`Band`).

The general theorem is exact when mu is alpha-decomposable [paper, Thm C.4]: sets of mass exactly alpha cover the space
evenly. On a finite space that says: the constant vector alpha is a mixture of indicators of sets A with mu(A) = alpha.
For a uniform mu on k outcomes this holds exactly when alpha k is a whole number (sets of alpha k outcomes, chosen
cyclically), so always for the simplex. For other references it is decided on up to `LARGEST_ENUMERATED` outcomes, by whole
numbers in the end; past that it is not claimed. Masses that differ from alpha by a factor within `_SAME_MASS` of 1 count as
alpha, as they would have to if weights such as 0.1 are to be divided evenly at all; the risk differs by no more than that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, Range
from discreet.families.band import Bounds, attained_bounds, normalised_bounds
from discreet.families.laws import as_floats, as_laws, check_laws, law_of_counts, law_of_logits
from discreet.families.outcomes import Outcomes, shown_names
from discreet.families.worst_members import WorstMembers, uniform_vertex, vertices
from discreet.labelled import LawLike, labelled
from discreet.showing import table

LARGEST_ENUMERATED = 12
_ROUNDING = 1e-9
_SAME_MASS = 1e-12
_LARGEST_DENOMINATOR = 1 << 16  # vertices of 0/1 systems in 12 unknowns have denominators of at most 3,645


class FiniteFamily(Protocol):
    """What a mechanism needs to know of a family on finitely many outcomes."""

    @property
    def size(self) -> int: ...
    @property
    def labels(self) -> tuple[Any, ...] | None: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def reference(self) -> float | NDArray[np.float64]:
        """mu_x for every outcome; one number when mu is uniform."""

    @property
    def served(self) -> Bounds:
        """Bounds of dP/dmu for those whom risks are stated for."""

    @property
    def decomposable(self) -> bool: ...
    @property
    def fills_band(self) -> bool: ...
    def contains(self, p: LawLike) -> bool: ...
    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any: ...
    def named(self, numbers: NDArray[np.int64]) -> Any: ...
    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]: ...
    def as_rows(self, p: Any, name: str = "p") -> NDArray[np.float64]: ...


class _FiniteBase:
    """The parts of a finite family that do not depend on which laws it holds."""

    _outcomes: Outcomes
    bounds: Bounds

    @property
    def size(self) -> int:
        """Number of outcomes k."""
        return self._outcomes.size

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Names of the outcomes, or None when they are the numbers 0..size-1."""
        return self._outcomes.labels

    @property
    def served(self) -> Bounds:
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
            records: what one client saw, as labels or outcome numbers; the law is their relative frequencies.
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
            numbers = self._outcomes.numbers(records)
            if not numbers.size:
                raise DiscreetError(
                    "records is empty: a client without records has no law; leave it out, or let it release from the reference"
                )
            return law_of_counts(np.bincount(numbers, minlength=self.size), self.size)
        if counts is not None:
            return law_of_counts(self.in_order(counts, "counts"), self.size)
        return law_of_logits(self.in_order(logits, "logits", -math.inf), self.size)

    def _repr_html_(self) -> str:
        names = f"0 to {self.size - 1:,}" if self.labels is None else shown_names(self.labels)
        bounds = self.bounds
        rows = [
            ("outcomes", f"{self.size:,}: {names}"),
            ("least dP/dmu", f"{bounds.lower:g}"),
            ("most dP/dmu", f"{bounds.upper:g}"),
        ]
        return table(f"{type(self).__name__}: who the clients may be", rows)

    def in_order(self, values: Any, name: str, missing: float = 0.0) -> Any:
        """Values that carry labels as an array (..., size) in the order of the outcomes; others as they are."""
        return self._outcomes.in_order(values, name, missing)

    def as_rows(self, p: Any, name: str = "p") -> NDArray[np.float64]:
        """Laws as they come, as float64 (..., size) in the order of the outcomes: labelled ones by label, others by position.

        Rows of float32 and float16 are normalised again where their own rounding explains what they miss. Otherwise nothing is
        checked: whoever uses the rows does.
        """
        return as_laws(self.in_order(p, name), name, self.size)

    def named(self, numbers: NDArray[np.int64]) -> Any:
        """Outcome numbers as labels where the family has labels."""
        return self._outcomes.named(numbers)

    def numbers(self, records: Iterable[Any]) -> NDArray[np.int64]:
        """Labels (or outcome numbers) as checked outcome numbers."""
        return self._outcomes.numbers(records)


class Simplex(_FiniteBase):
    """Every law on k outcomes: mu uniform, 0 <= dP/dmu <= k, alpha = 1/k [paper, Section 3.1].

    `Simplex(10)` has the outcomes 0..9; `Simplex(["red", "green"])` names them.

    Args:
        outcomes: how many outcomes there are, or the list of their labels (texts, numbers, booleans), each once.

    Raises:
        DiscreetError: for no outcomes, labels that come twice, or a set, which has no order.

    Example:
        >>> colours = Simplex(["red", "green", "blue"])
        >>> p = colours.law(records=["red", "red", "blue"])
    """

    def __init__(self, outcomes: int | Sequence[Any]) -> None:
        self._outcomes = Outcomes(outcomes, "outcomes")
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

    def spread(self, outcomes: float) -> Band:
        """For clients that hold about so many outcomes each, whichever: 0 <= dP/dmu <= k/outcomes around the uniform mu.

        Its Q* is the best of all samplers for clients that are uniform on so many outcomes, and serves everybody; 1 is Q* of the
        simplex, and k/(e^(eps/2) + 1) is Husain's mollifier at epsilon (`discreet.design.floors`, T3 and T4).

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
        return Band(weights, lower=0.0, upper=self.size / held, labels=self.labels, everybody=True)

    def __repr__(self) -> str:
        if self.labels is None:
            return f"Simplex({self.size})"
        return f"Simplex({shown_names(self.labels)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and (self.size, self.labels) == (other.size, other.labels)

    def __hash__(self) -> int:
        return hash((Simplex, self.size, self.labels))


class Band(_FiniteBase):
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
        everybody: whether risks are stated for every law there is; needs lower = 0.

    Raises:
        DiscreetError: for weights that are not positive, or bounds that no law or only the reference satisfies.
    """

    def __init__(
        self,
        weights: LawLike,
        *,
        lower: float,
        upper: float,
        labels: Sequence[Any] | None = None,
        everybody: bool = False,
    ) -> None:
        found = labelled(weights, "weights")
        in_place: Any = weights
        if found is not None:
            names = Outcomes(found.labels if labels is None else labels, "labels")
            in_place, labels = names.in_order(weights, "weights"), names.labels
        raw = as_floats(in_place, "weights")
        if raw.ndim != 1 or raw.size == 0:
            raise DiscreetError(f"weights has shape {raw.shape}; it is one positive number for each outcome")
        if not (raw > 0).all() or not np.isfinite(raw).all():
            bad = int(np.argmin((raw > 0) & np.isfinite(raw)))
            raise DiscreetError(
                f"weights[{bad}] = {raw[bad]:g} is not in (0, inf); leave out outcomes that cannot occur"
            )
        self._outcomes = Outcomes(raw.size if labels is None else labels, "labels")
        if self.size != raw.size:
            raise DiscreetError(f"labels has {self.size} names for {raw.size} weights; give one for each")
        scaled = raw / raw.max()  # so that the sum cannot overflow
        self.everybody = bool(everybody)
        if self.everybody and lower != 0.0:
            raise DiscreetError(f"lower = {lower!r} is a claim about clients; everybody=True needs lower=0")
        given = normalised_bounds(lower, upper)
        attained = self._attained(given, scaled)
        self.bounds = given if self.everybody else attained
        self._weights, self._mu = scaled, scaled / scaled.sum()
        for each in (self._weights, self._mu):
            each.setflags(write=False)
        if not (self._mu > 0).all():
            raise DiscreetError("weights differ by more than a factor 1e308; leave out the outcomes that cannot occur")

    def _attained(self, given: Bounds, weights: NDArray[np.float64]) -> Bounds:
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
            return math.isclose(alpha * self.size, round(alpha * self.size), rel_tol=_SAME_MASS)
        return self.size <= LARGEST_ENUMERATED and _covers_evenly(self._mu, alpha)

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
    def served(self) -> Bounds:
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
        with np.errstate(over="ignore"):  # an outcome that hardly ever occurs
            density = laws / self._mu
        slack = _ROUNDING * self.bounds.upper
        return bool((density >= self.bounds.lower - slack).all() and (density <= self.bounds.upper + slack).all())

    def __repr__(self) -> str:
        served = ", everybody=True" if self.everybody else ""
        names = "" if self.labels is None else f", labels={shown_names(self.labels)}"
        return f"Band(<{self.size} weights>, lower={self.bounds.lower:g}, upper={self.bounds.upper:g}{names}{served})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Band)
            and (self.bounds, self.labels, self.everybody) == (other.bounds, other.labels, other.everybody)
            and np.array_equal(self._mu, other._mu)
        )

    def __hash__(self) -> int:
        return hash((Band, self.bounds, self.labels, self.everybody, self._mu.tobytes()))


def _covers_evenly(mu: NDArray[np.float64], alpha: float) -> bool:
    """Whether sets of mass alpha can be mixed so that every outcome is covered equally often (with probability alpha, then).

    Which sets have that mass is decided first; the rest is about zeros and ones: is (1, ..., 1) in the cone of their
    indicators? The solver proposes a vertex, and fractions check it: a solver's tolerance proves nothing.
    """
    from scipy.optimize import linprog  # here, because importing it costs more than most commands do

    members = np.array(list(itertools.product((0.0, 1.0), repeat=mu.size)))
    sets = members[np.abs(members @ mu - alpha) <= _SAME_MASS * alpha]
    if not len(sets):
        return False
    found = linprog(np.zeros(len(sets)), A_eq=sets.T, b_eq=np.ones(mu.size), method="highs-ds")
    if found.status != 0:
        return False
    shares = [Fraction(float(share)).limit_denominator(_LARGEST_DENOMINATOR) for share in found.x]
    covered = [sum(share for share, members in zip(shares, column, strict=True) if members) for column in sets.T]
    return min(shares) >= 0 and all(times == 1 for times in covered)
