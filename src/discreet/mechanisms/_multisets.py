"""`Multisets` of samples, and the boxes on them from which all samples of a client are drawn: around the envelope, the product, or of a band.

**Multisets.** There are C(k + J - 1, J) multisets of J out of k outcomes, fewer than the k^J sequences. A sequence of J independent draws has
the same probability in every order, under a client's distribution as under a reference. So dP^J/dmu^J is constant on the sequences of one
multiset, and a clip of it between constants is a clip on multisets, with

    P(multiset)  =  J!/(c_1! ... c_k!)  p_1^c_1 ... p_k^c_k,        c_x = how often x is in it,

and likewise for mu. An order is then chosen at random, independently of the client. This loses nothing. Averaging a mechanism on sequences
over all orders keeps its privacy, and serves a client whose draws have no order at least as well (D_f is convex).

**The envelope of a multiset** is the largest probability that a client of the family gives it. The client whose distribution is nearest to
the frequencies c/J attains it. *Proof.* log P^J(multiset) is sum_x c_x log p_x plus a constant, so its maximum over the family minimises
KL(c/J || P). The projection of c/J onto a band is clip(c/(J r), lower mu, upper mu) for every divergence at once [paper, Prop. C.8].   QED
On the simplex the maximiser is c/J itself: the envelope is J!/(c_1! ... c_k!) (c_1/J)^c_1 ... (c_k/J)^c_k. Its total C, the Shtarkov sum, is
rational and computed as a rational number, so every machine gets the same floats.

Let mu be the envelope divided by its total C. Every client then has P^J <= C mu. So J draws of clients of the family are single draws of
clients of the band 0 <= dP/dmu <= C on multisets, and Q* of that band serves all of them [paper, Thm 3.3].

**Boxes.** Any two distributions in a box b mu <= Q <= e^eps b mu are eps-LDP, for all clients. There are two standard ones.
A client's P^J is projected onto the box.

*Around the envelope*, by default: mu is the envelope over its total C, and the box is that of Q* for the band 0 <= dP/dmu <= C.
Its worst case over the family is at most that of this band, for every f.

Theorem. On the simplex the worst case is exactly R_f = t f(1/t) + (1 - t) f(0) with t = e^eps/(e^eps + C - 1). It is at most that of the
product below.
Proof. A client that is sure of x has P^J = 1 = C mu on the multiset of J times x, whose ceiling is B/C = t; all other multisets are at their
floor. The product has t' = x^J/(x + k - 1)^J with x = e^(eps/J) >= 1, and R_f falls with t. Now (x + k - 1)^J - x^J grows with x, hence is at
least k^J - 1. This is at least C - 1, since C is a sum of k^J probabilities, one for each sequence. So t' <= x^J/(x^J + C - 1) = t.   QED

It is not the minimax value, which `minimax_risk(..., samples=J, bracket=True)` brackets.

*Around the product.* Let b be the floor of the optimal box at eps/J, B = e^(eps/J) b its ceiling. The box is b^J mu^J <= Q <= e^eps b^J mu^J.

Theorem. For every client and every f-divergence, the projection is at least as close to P^J as J independent draws at eps/J.
Proof. These draws have the distribution q(x_1) ... q(x_J) with b mu <= q <= B mu, which lies in the joint box. The projection of P^J is the
nearest distribution there for every f at once [paper, Prop. C.8].   QED

Its worst client is sure of the rarest outcome, with t = min(B^J mu0^J, 1 - b^J (1 - mu0^J)); no distribution on multisets has a larger
divergence (`discreet.design._floors`, T2). The least reference mass decides, and that of a multiset is least for J times the rarest outcome.
Clients with many outcomes fare better with the product than with the envelope. The best box for given clients is a design on the multisets,
which is passed as `band`. A band that serves everybody is a design already, so its J-fold product is the default.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_choice, check_count
from discreet.families import Band, Bounds, FiniteFamily, Simplex, serves_everybody
from discreet.privacy.tradeoff import Constants, Risk, constants_of_optimal_box, raw_draw_is_private, risk_by_formula
from discreet.projection import point_mass_risk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Around = Literal["envelope", "product"]
AROUND: tuple[Around, ...] = ("envelope", "product")
MOST_MULTISETS = 1 << 18
MOST_JOINT_SAMPLES = 64  # draws of one multiset
_RUN_ENTRIES = 1 << 21  # pairs of members that are compared at once
_ROUNDING = 1e-12  # of a band's envelope, whose bounds are moved outwards by it
SAMPLES_FIX = "give the number of samples released together for each client"


@dataclass(frozen=True)
class Multisets:
    """All multisets of the given number of outcomes, in lexicographic order of their sorted members.

    Args:
        size: how many outcomes there are.
        samples: how many members a multiset has.

    Raises:
        DiscreetError: for more than 262,144 multisets, or more than 64 members.
    """

    size: int
    samples: int

    fit = OldName("can_be_listed", of_class=True)
    count = OldName("number_of_multisets", of_class=True)

    def __post_init__(self) -> None:
        check_count("size", self.size, fix="it is how many outcomes there are")
        check_count("samples", self.samples, fix=SAMPLES_FIX)
        if not self.can_be_listed(self.size, self.samples):
            number = (
                f"{self.number_of_multisets(self.size, self.samples):,}"
                if self.size < 10**6 and self.samples < 100
                else "too many"
            )
            raise DiscreetError(
                f"samples = {self.samples} of {self.size:,} outcomes are {number} multisets; a joint draw allows at most "
                f"{MOST_MULTISETS:,}, of at most {MOST_JOINT_SAMPLES} members each. Take fewer samples. Or draw them one by one, each with a "
                "share of the budget, as release(p, size=...) does in this case"
            )

    @staticmethod
    def number_of_multisets(size: int, samples: int) -> int:
        """The number of multisets of so many samples out of `size` outcomes."""
        return math.comb(size + samples - 1, samples)

    @classmethod
    def can_be_listed(cls, size: int, samples: int) -> bool:
        """Whether the multisets are few enough to be listed."""
        if size > MOST_MULTISETS or samples > MOST_JOINT_SAMPLES:
            return False
        return cls.number_of_multisets(size, samples) <= MOST_MULTISETS

    def __len__(self) -> int:
        return self.number_of_multisets(self.size, self.samples)

    @cached_property
    def members(self) -> Integers:
        """(multisets, samples): the outcomes of each, sorted."""
        multisets = itertools.combinations_with_replacement(range(self.size), self.samples)
        flat = itertools.chain.from_iterable(multisets)
        members = np.fromiter(flat, dtype=np.int64, count=len(self) * self.samples).reshape(len(self), self.samples)
        members.setflags(write=False)
        return members

    @cached_property
    def orders(self) -> Floats:
        """J!/(c_1! ... c_k!): the number of sequences of each multiset."""
        orders, run = np.ones(len(self)), np.ones(len(self))
        for position in range(1, self.samples):
            run = np.where(self.members[:, position] == self.members[:, position - 1], run + 1.0, 1.0)
            orders = orders * ((position + 1.0) / run)
        return orders

    def laws(self, rows: Floats) -> Floats:
        """The distributions (n, multisets) of J independent draws from distributions (n, size)."""
        laws = np.repeat(self.orders[None, :], len(rows), axis=0)
        for position in range(self.samples):
            laws *= rows[:, self.members[:, position]]
        total = laws.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(laws, total, out=laws, where=total > 0.0))

    def blocks_of_distinct_members(self) -> Iterator[tuple[slice, Integers, Integers]]:
        """Blocks of rows: the multisets, their distinct members (n, samples), and how often each comes; 0 in unused places."""
        rows = max(1, _RUN_ENTRIES // self.samples**2)
        for start in range(0, len(self), rows):
            members = self.members[start : start + rows]
            is_first = np.ones(members.shape, dtype=bool)
            is_first[:, 1:] = members[:, 1:] != members[:, :-1]
            number = np.cumsum(is_first, axis=1) - 1
            counts = np.zeros(members.shape, dtype=np.int64)
            np.add.at(counts, (np.arange(len(members))[:, None], number), 1)
            distinct = np.zeros(members.shape, dtype=np.int64)
            np.put_along_axis(distinct, number, members, axis=1)
            yield slice(start, start + len(members)), distinct, counts

    def marginals(self, laws: Floats) -> Floats:
        """The marginal distributions (n, size) of one draw, from distributions (n, multisets)."""
        marginals = np.zeros((len(laws), self.size))
        for row, law in enumerate(laws):
            weights = np.broadcast_to(law[:, None] / self.samples, self.members.shape)
            marginals[row] = np.bincount(self.members.ravel(), weights=weights.ravel(), minlength=self.size)
        return marginals

    each = OldName("marginals")

    def members_in_random_order(self, numbers: Integers, rng: np.random.Generator) -> Integers:
        """The members of multisets (n,) in a random order, (n, samples), independent of the client."""
        return self.members_in_key_order(numbers, rng.random((len(numbers), self.samples)))

    def members_in_key_order(self, numbers: Integers, keys: Floats | NDArray[np.uint64]) -> Integers:
        """The members of multisets (n,) in the order of the keys (n, samples)."""
        return np.take_along_axis(self.members[numbers], np.argsort(keys, axis=1, kind="stable"), axis=1)


@dataclass(frozen=True, eq=False)
class Envelope:
    """A reference on multisets, and bounds of dP^J/dmu for the clients of a family.

    Attributes:
        reference: mu of every multiset, (multisets,).
        bounds: the smallest and the largest dP^J/dmu; the largest is the envelope's total C.
    """

    reference: Floats
    bounds: Bounds


def envelope_of_multisets(family: FiniteFamily, multisets: Multisets) -> Envelope:
    """The envelope of all clients of a family, for multisets of at least two members.

    Args:
        family: the family of client distributions: a `Simplex`, or a `Band` that makes a claim about clients.
        multisets: all multisets of the family's outcomes.

    Returns:
        An `Envelope`.
    """
    return _simplex_envelope(multisets) if isinstance(family, Simplex) else _band_envelope(family, multisets)


def _simplex_envelope(multisets: Multisets) -> Envelope:
    """The envelope of all distributions, in whole numbers; the value depends on the multiplicities alone."""
    values = np.empty(len(multisets))
    total, cache = Fraction(0), dict[tuple[int, ...], Fraction]()
    for rows, _, counts in multisets.blocks_of_distinct_members():
        kinds, kind_of_row, repeats = np.unique(
            np.sort(counts, axis=1), axis=0, return_inverse=True, return_counts=True
        )
        probabilities = []
        for kind, number in zip(map(tuple, kinds.tolist()), repeats.tolist(), strict=True):
            probability = cache.setdefault(kind, _largest_probability_of_counts(kind))
            total += number * probability
            probabilities.append(float(probability))
        values[rows] = np.array(probabilities)[kind_of_row.ravel()]
    return Envelope(values / float(total), Bounds(0.0, float(total)))


def _largest_probability_of_counts(counts: tuple[int, ...]) -> Fraction:
    """The largest probability that any law gives to a multiset with these counts: J!/(c_1! ... c_k!) (c_1/J)^c_1 ... (c_k/J)^c_k."""
    samples = sum(counts)
    top, bottom = math.factorial(samples), samples**samples
    for count in counts:
        top, bottom = top * count**count, bottom * math.factorial(count)
    return Fraction(top, bottom)


def _band_envelope(family: FiniteFamily, multisets: Multisets) -> Envelope:
    reference = np.broadcast_to(family.reference, family.size)
    lower, upper = family.bounds.lower * reference, np.minimum(family.bounds.upper * reference, 1.0)
    values, least = np.empty(len(multisets)), math.inf
    for rows, distinct, counts in multisets.blocks_of_distinct_members():
        present = counts > 0
        floor, ceiling = (np.where(present, bound[distinct], 0.0) for bound in (lower, upper))
        other_mass = family.bounds.lower * (1.0 - np.where(present, reference[distinct], 0.0).sum(axis=1))
        probabilities = _scale_counts_into_bounds(counts, floor, ceiling, 1.0 - np.maximum(other_mass, 0.0))
        values[rows] = multisets.orders[rows] * _product_of_powers(probabilities, counts)
        if family.bounds.lower:
            ratios = np.divide(floor, probabilities, out=np.ones_like(floor), where=present & (probabilities > 0.0))
            least = min(least, float(_product_of_powers(ratios, counts).min()))
    total = math.fsum(values)
    bottom = least * total * (1.0 - _ROUNDING) if family.bounds.lower else 0.0
    return Envelope(values / total, Bounds(bottom, total * (1.0 + _ROUNDING)))


def _scale_counts_into_bounds(counts: Integers, floor: Floats, ceiling: Floats, mass: Floats) -> Floats:
    """clip(a c, floor, ceiling) with a such that it sums to `mass`, row by row; `ceiling` where that leaves mass over.

    The sum is non-decreasing and linear in a between the places where an entry meets a bound, so a is found without a tolerance.
    """
    divisors = np.maximum(counts, 1)
    crossings = np.sort(np.concatenate([floor / divisors, ceiling / divisors], axis=1), axis=1)
    sums = np.stack([np.clip(a[:, None] * counts, floor, ceiling).sum(axis=1) for a in crossings.T], axis=1)
    after = np.minimum((sums < mass[:, None]).sum(axis=1), crossings.shape[1] - 1)
    before = np.maximum(after - 1, 0)
    rows = np.arange(len(counts))
    low, high = sums[rows, before], sums[rows, after]
    part = np.divide(mass - low, high - low, out=np.ones_like(low), where=high > low)
    slope = crossings[rows, before] + np.clip(part, 0.0, 1.0) * (crossings[rows, after] - crossings[rows, before])
    return np.asarray(np.clip(slope[:, None] * counts, floor, ceiling))


def _product_of_powers(base: Floats, exponents: Integers) -> Floats:
    """The product of base^often along each row, by multiplications alone, so every machine gets the same result."""
    product = np.ones(len(base))
    for column in range(base.shape[1]):
        for times in range(int(exponents[:, column].max(initial=0))):
            product *= np.where(exponents[:, column] > times, base[:, column], 1.0)
    return product


class JointBox(abc.ABC):
    """A box on multisets, for J samples of a client together: its reference, its constants, and its worst case.

    Args:
        family: the family of client distributions.
        multisets: all multisets of the family's outcomes.
        epsilon: the budget of all samples together.
    """

    around: ClassVar[Around | None]

    def __init__(self, family: FiniteFamily, multisets: Multisets, epsilon: float) -> None:
        self._family, self._multisets, self._epsilon = family, multisets, epsilon

    @property
    @abc.abstractmethod
    def reference(self) -> float | Floats:
        """mu of every multiset."""

    @property
    @abc.abstractmethod
    def constants(self) -> Constants:
        """The constants of the box."""

    @abc.abstractmethod
    def risk(self, f: FDivergence) -> Risk:
        """The largest divergence from P^J to its projection."""

    def _risk_of_client_sure_of_rarest_multiset(self, f: FDivergence, past_ceiling: float) -> float:
        """The divergence of a client that is sure of the rarest multiset, which has mass 1 - past_ceiling at its ceiling."""
        b, top, least = self.constants.b, self.constants.B, float(np.min(self.reference))
        return point_mass_risk(f, min(top * least, 1.0 - b * (1.0 - least), 1.0), max(past_ceiling, b * (1.0 - least)))


class EnvelopeBox(JointBox):
    """The box of Q* for the band below the envelope of a family."""

    around = "envelope"

    @cached_property
    def _envelope(self) -> Envelope:
        return envelope_of_multisets(self._family, self._multisets)

    @property
    def reference(self) -> Floats:
        return self._envelope.reference

    @cached_property
    def constants(self) -> Constants:
        return constants_of_optimal_box(self._envelope.bounds, self._epsilon)

    def risk(self, f: FDivergence) -> Risk:
        """Over the family: exact on the simplex (`attained`), elsewhere an upper bound."""
        identity = raw_draw_is_private(self._envelope.bounds, self._epsilon)
        return Risk(
            risk_by_formula(self.constants, f),
            tight=identity,
            attained=isinstance(self._family, Simplex) or identity,
        )


class ProductBox(JointBox):
    """The J-th power of the box of one draw at an equal share of the budget."""

    around = "product"

    @cached_property
    def reference(self) -> Floats:
        rows = np.broadcast_to(self._family.reference, self._family.size).astype(np.float64)
        return np.asarray(self._multisets.laws(rows[None, :])[0])

    @property
    def _constants_of_one_draw(self) -> Constants:
        return constants_of_optimal_box(self._family.bounds, self._epsilon / self._multisets.samples)

    @cached_property
    def constants(self) -> Constants:
        one_draw, samples = self._constants_of_one_draw, self._multisets.samples
        if samples == 1:
            return one_draw
        b, top = one_draw.b**samples, _power_or_infinity(one_draw.B, samples)
        alpha = (1.0 - b) / (top - b) if top > b else 1.0
        return Constants(alpha, b, top, 0.0, math.inf, 0.0, 1.0, math.inf)

    def risk(self, f: FDivergence) -> Risk:
        """Over all clients: exact if the family contains them all."""
        one_draw, past_ceiling = self._constants_of_one_draw, 1.0 - self.constants.B * float(np.min(self.reference))
        if one_draw.above > 0.0:
            rarest = float(np.min(self._family.reference))
            # 1 - B mu to all its digits, since alpha B + (1 - alpha) b = 1
            excess = (one_draw.alpha - rarest) * one_draw.B + (1.0 - one_draw.alpha) * one_draw.b
            past_ceiling = -math.expm1(self._multisets.samples * math.log1p(-excess)) if excess < 1.0 else 1.0
        value = self._risk_of_client_sure_of_rarest_multiset(f, past_ceiling)
        is_complete = isinstance(self._family, Simplex) or serves_everybody(self._family)
        return Risk(value, tight=False, attained=is_complete and value < f.maximum)


class BandBox(JointBox):
    """The box of Q* for a band of one's own on the multisets."""

    around = None

    def __init__(self, family: FiniteFamily, multisets: Multisets, epsilon: float, band: Band) -> None:
        super().__init__(family, multisets, epsilon)
        self._band = band

    @property
    def reference(self) -> float | Floats:
        return self._band.reference

    @cached_property
    def constants(self) -> Constants:
        return constants_of_optimal_box(self._band.bounds, self._epsilon)

    def risk(self, f: FDivergence) -> Risk:
        """Over all clients: an upper bound."""
        alpha, b, top = self.constants.alpha, self.constants.b, self.constants.B
        past_ceiling = (alpha - float(np.min(self.reference))) * top + (1.0 - alpha) * b
        return Risk(self._risk_of_client_sure_of_rarest_multiset(f, past_ceiling), tight=False, attained=False)


def make_joint_box(
    family: FiniteFamily, multisets: Multisets, epsilon: float, centre: Around | None, band: Band | None
) -> JointBox:
    """The box around a centre, or of a band."""
    if band is not None:
        return BandBox(family, multisets, epsilon, band)
    return (EnvelopeBox if centre == "envelope" else ProductBox)(family, multisets, epsilon)


def read_around_argument(around: Any, family: FiniteFamily, samples: int, band: Band | None) -> Around | None:
    """The centre of the box that the argument `around` names, or the default; None if a band is given."""
    if band is not None:
        if around is not None:
            raise DiscreetError(f"around = {around!r} and band are both given; give one of the two")
        return None
    if around is not None:
        check_choice("around", around, AROUND)
    is_complete = serves_everybody(family)
    if around == "envelope" and is_complete:
        raise DiscreetError(
            f"around = 'envelope' needs a family, and {family!r} serves everybody; use Simplex(...) for the best worst case, or "
            "leave around out"
        )
    if samples == 1 or is_complete:  # for one sample the product is the family's own box
        return "product"
    return "envelope" if around != "product" else "product"


def _power_or_infinity(value: float, exponent: int) -> float:
    """value^exponent, or inf on overflow: a ceiling of inf is no constraint."""
    try:
        return value**exponent
    except OverflowError:
        return math.inf
