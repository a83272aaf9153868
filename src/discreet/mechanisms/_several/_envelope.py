"""The envelope of J independent draws: for every multiset, the largest probability that a client of the family can give it.

The largest is that of the client whose own law is nearest to the multiset's frequencies c/J. *Proof.* log P^J(multiset) is
sum_x c_x log p_x plus a constant, so its maximum over the family minimises KL(c/J || P), and the projection of c/J onto a band is
clip(c/(J r), lower mu, upper mu) for every divergence at once [paper, Prop. C.8].   QED
On the simplex that is c/J itself: the envelope is J!/(c_1! ... c_k!) (c_1/J)^c_1 ... (c_k/J)^c_k. Its total C, the Shtarkov sum, is a
rational number, which is computed as one: the same floats come out on every machine.

Let mu be the envelope divided by its total C. Every client then has P^J <= C mu, so J draws of clients of the family are single draws of
clients of the band 0 <= dP/dmu <= C on multisets, and Q* of that band serves all of them [paper, Thm 3.3].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.families import FiniteFamily, Simplex
from discreet.families._band import Bounds
from discreet.mechanisms._several._multisets import Multisets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_ROUNDING = 1e-12  # of a band's envelope, whose bounds are moved outwards by it


@dataclass(frozen=True, eq=False)
class Envelope:
    """A reference on multisets, and bounds of dP^J/dmu for the clients of a family.

    Attributes:
        reference: mu of every multiset, (multisets,).
        bounds: the least and the most dP^J/dmu; the most is the envelope's total C.
    """

    reference: Floats
    bounds: Bounds


def envelope_of(family: FiniteFamily, multisets: Multisets) -> Envelope:
    """The envelope of all clients of a family, for multisets of at least two members.

    Args:
        family: who the clients may be: a `Simplex`, or a `Band` that makes a claim about clients.
        multisets: all multisets of the family's outcomes.

    Returns:
        An `Envelope`.
    """
    return _simplex_envelope(multisets) if isinstance(family, Simplex) else _band_envelope(family, multisets)


def _simplex_envelope(multisets: Multisets) -> Envelope:
    """In whole numbers: a multiset's value depends on how often its members come, not on which they are."""
    values = np.empty(len(multisets))
    total, known = Fraction(0), dict[tuple[int, ...], Fraction]()
    for rows, _, often in multisets.runs():
        kinds, places, times = np.unique(np.sort(often, axis=1), axis=0, return_inverse=True, return_counts=True)
        found = []
        for kind, number in zip(map(tuple, kinds.tolist()), times.tolist(), strict=True):
            value = known.setdefault(kind, _largest_probability(kind))
            total += number * value
            found.append(float(value))
        values[rows] = np.array(found)[places.ravel()]
    return Envelope(values / float(total), Bounds(0.0, float(total)))


def _largest_probability(often: tuple[int, ...]) -> Fraction:
    """J!/(c_1! ... c_k!) (c_1/J)^c_1 ... (c_k/J)^c_k."""
    samples = sum(often)
    top, bottom = math.factorial(samples), samples**samples
    for count in often:
        top, bottom = top * count**count, bottom * math.factorial(count)
    return Fraction(top, bottom)


def _band_envelope(family: FiniteFamily, multisets: Multisets) -> Envelope:
    reference = np.broadcast_to(family.reference, family.size)
    lower, upper = family.bounds.lower * reference, np.minimum(family.bounds.upper * reference, 1.0)
    values, least = np.empty(len(multisets)), math.inf
    for rows, distinct, often in multisets.runs():
        held = often > 0
        floor, ceiling = (np.where(held, bound[distinct], 0.0) for bound in (lower, upper))
        elsewhere = family.bounds.lower * (1.0 - np.where(held, reference[distinct], 0.0).sum(axis=1))
        most = _most_likely(often, floor, ceiling, 1.0 - np.maximum(elsewhere, 0.0))
        values[rows] = multisets.orders[rows] * _power_product(most, often)
        if family.bounds.lower:
            ratios = np.divide(floor, most, out=np.ones_like(floor), where=held & (most > 0.0))
            least = min(least, float(_power_product(ratios, often).min()))
    total = math.fsum(values)
    bottom = least * total * (1.0 - _ROUNDING) if family.bounds.lower else 0.0
    return Envelope(values / total, Bounds(bottom, total * (1.0 + _ROUNDING)))


def _most_likely(often: Integers, floor: Floats, ceiling: Floats, mass: Floats) -> Floats:
    """clip(a c, floor, ceiling) with a such that it sums to `mass`, row by row; `ceiling` where that leaves mass over.

    The sum is non-decreasing and linear in a between the places where an entry meets a bound, so a is found without a tolerance.
    """
    counts = np.maximum(often, 1)
    meets = np.sort(np.concatenate([floor / counts, ceiling / counts], axis=1), axis=1)
    sums = np.stack([np.clip(a[:, None] * often, floor, ceiling).sum(axis=1) for a in meets.T], axis=1)
    after = np.minimum((sums < mass[:, None]).sum(axis=1), meets.shape[1] - 1)
    before = np.maximum(after - 1, 0)
    rows = np.arange(len(often))
    low, high = sums[rows, before], sums[rows, after]
    part = np.divide(mass - low, high - low, out=np.ones_like(low), where=high > low)
    slope = meets[rows, before] + np.clip(part, 0.0, 1.0) * (meets[rows, after] - meets[rows, before])
    return np.asarray(np.clip(slope[:, None] * often, floor, ceiling))


def _power_product(base: Floats, often: Integers) -> Floats:
    """The product of base^often along each row, by multiplications alone, which are the same on every machine."""
    found = np.ones(len(base))
    for place in range(base.shape[1]):
        for times in range(int(often[:, place].max(initial=0))):
            found *= np.where(often[:, place] > times, base[:, place], 1.0)
    return found
