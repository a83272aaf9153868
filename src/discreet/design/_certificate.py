"""A lower bound on what any epsilon-LDP sampler can reach for given clients (T5), as a statement about the numbers it is made of.

Give each client a number l_j, and each outcome that it holds a line below f: f(t) >= i_jx + s_jx t for all t >= 0; for an outcome
that it does not hold q f(0/q) = q f(0), so i = f(0) and s is not needed. For every law q between m and E m, with E = e^eps,

    sum_x q_x f(p_jx/q_x) >= sum_x p_jx s_jx + q_x i_jx = sum_x p_jx s_jx - l_j + sum_x q_x (i_jx + l_j)        because |q| = 1
                          >= sum_x p_jx s_jx - l_j + sum_x m_x c_jx,        c = i + l where that is positive, E (i + l) where it is negative.

Averaged over the clients this is linear in m: no sampler whose floor is m does better than (constant) + sum_x C_x m_x. What remains
is the least of a linear function over the floors allowed: m = y + v with v >= 0, y >= t0/E, |v| + (k-1) y <= 1 - t0 and 1/E <= |m|
<= 1. The mass |v| sits where C is least, which leaves two unknowns, |v| and y, and a polygon whose corners are tried in rationals.

Where masses are known up to an enclosure a_jx <= p_jx <= b_jx only, the same lines bound every law within it: for any number c_j

    sum_x p_jx s_jx = c_j + sum_x p_jx (s_jx - c_j) >= c_j + sum_x a_jx (s_jx - c_j)_+ - b_jx (c_j - s_jx)_+        because |p_j| = 1,

and the best c_j is the slope at which a law that fills up its lowest slopes first runs out of mass. Outcomes that an example may hold, though
with less than floats can tell, get the line through (0, f(0) - d) and (t, f(t)) for a tiny t, d = f(0) - f(t), which costs at most E d.

`lower_bound` computes it in floats and takes off what rounding can have added: a sum of N terms in any order is within (N - 1) u /
(1 - (N - 1) u) of exact, relative to the sum of their sizes, u = 2^-53. `exact` computes the same in rationals, after checking in
rationals that every line lies below f.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.design._curves import is_below
from discreet.design._examples import ExampleClients, Floats
from discreet.design._floors import AllowedFloors
from discreet.errors import DiscreetError

_UNIT = 2.0**-53
PART = 1 << 17  # entries that are looked at together


@dataclass(frozen=True, eq=False)
class DesignCertificate:
    """Multipliers (n,) and lines (entries,) that bound the mean of every epsilon-LDP sampler from below.

    `enclosure`: numbers (entries,) between which the masses of the examples are, and the c_j (n,); None where the masses are exact.
    """

    examples: ExampleClients
    floors: AllowedFloors
    multiplier: Floats
    slope: Floats
    intercept: Floats
    at_zero: float
    name: str
    constant: float = 0.0
    enclosure: tuple[Floats, Floats, Floats] | None = None

    def within(self, least: Floats, most: Floats, lost: float) -> "DesignCertificate":
        """The same for all examples whose masses (entries,) are between these, less what is lost on outcomes that they hardly hold."""
        constant = math.nextafter(self.constant - lost, -math.inf) if lost else self.constant
        centre = _filled_slopes(self.examples, self.slope, least, most)
        return replace(self, constant=constant, enclosure=(least, most, centre))

    def lower_bound(self) -> float:
        """A float that is at most the exact bound."""
        examples, growth = self.examples, _float_above(self.floors.growth)
        terms = examples.mass.size + 2 * len(examples)
        kinds = examples.seen.size
        price, price_size = np.zeros(kinds), np.zeros(kinds)
        idle, idle_size, gain, gain_size = (0.0,) * 4
        for rows, part in zip(examples.rows(PART), examples.parts(PART), strict=True):
            entries, multiplier = examples.entries(rows), self.multiplier[rows]
            client, weight = part.client, part.weight
            held = _entry_prices(self.intercept[entries], multiplier[client], growth)
            rest = _entry_prices(np.full(len(part), self.at_zero), multiplier, growth)
            price += part.by_outcome(weight[client] * (held - rest[client]))
            price_size += part.by_outcome(weight[client] * (np.abs(held) + np.abs(rest[client])))
            idle, idle_size = idle + float(weight @ rest), idle_size + float(weight @ np.abs(rest))
            gained, paid = (
                weight[client] * self._gains(entries, client, rows),
                weight * (multiplier - self._centre(rows)),
            )
            gain, gain_size = (
                gain + float(gained.sum() - paid.sum()),
                gain_size + float(np.abs(gained).sum() + np.abs(paid).sum()),
            )
        unseen = float(_sum_lower_bound(idle, idle_size, terms))
        seen = _sum_lower_bound(price, price_size, terms) + unseen
        seen -= 2.0 * _UNIT * (np.abs(seen) + abs(unseen))
        hidden = examples.size - kinds
        spread = min(float(seen.min()), unseen) if hidden else float(seen.min())
        everywhere = _sum_lower_bound(seen.sum() + hidden * unseen, np.abs(seen).sum() + hidden * abs(unseen), kinds)
        bound = self.floors.least(Fraction(spread), Fraction(float(everywhere)))
        return _float_below(bound + Fraction(float(_sum_lower_bound(gain, gain_size, terms))) + Fraction(self.constant))

    def _centre(self, rows: slice) -> Floats | float:
        """The c_j of some examples."""
        return 0.0 if self.enclosure is None else self.enclosure[2][rows]

    def _gains(self, entries: slice, client: NDArray[np.int32], rows: slice) -> Floats:
        """At most p (s - c) of each entry, rounding aside, for every p within its enclosure."""
        if self.enclosure is None:
            return np.asarray(self.examples.mass[entries] * self.slope[entries])
        least, most, centre = self.enclosure
        apart = self.slope[entries] - centre[rows][client]
        return np.asarray(np.where(apart > 0.0, least[entries], most[entries]) * apart)

    def exact(self) -> Fraction:
        """The bound in rationals. It looks at every entry in turn: for checking, not for large examples."""
        examples, growth = self.examples, self.floors.growth
        least, most, centre = self.enclosure or (examples.mass, examples.mass, np.zeros(len(examples)))
        middle = [Fraction(float(c)) for c in centre]
        multiplier, weight = ([Fraction(float(x)) for x in values] for values in (self.multiplier, examples.weight))
        at_zero = Fraction(self.at_zero)
        rest = [_price(at_zero + one, growth) for one in multiplier]
        unseen = sum((w * c for w, c in zip(weight, rest, strict=True)), Fraction(0))
        fixed = Fraction(self.constant)
        fixed -= sum((w * (one - c) for w, one, c in zip(weight, multiplier, middle, strict=True)), Fraction(0))
        seen = [unseen] * examples.seen.size
        for j, x, a, b, s, i in zip(
            examples.client.tolist(), examples.outcome.tolist(), least.tolist(), most.tolist(), self.slope.tolist(),
            self.intercept.tolist(), strict=True,
        ):  # fmt: skip
            slope, intercept = Fraction(s), Fraction(i)
            if not is_below(self.name, slope, intercept):
                raise DiscreetError(f"{intercept} + {slope} t is not below f")
            apart = slope - middle[j]
            fixed += weight[j] * Fraction(a if apart > 0 else b) * apart
            seen[x] += weight[j] * (_price(intercept + multiplier[j], growth) - rest[j])
        hidden = examples.size - len(seen)
        spread = min([*seen, unseen]) if hidden else min(seen)
        return self.floors.least(spread, sum(seen, Fraction(0)) + hidden * unseen) + fixed


def _filled_slopes(examples: ExampleClients, slope: Floats, least: Floats, most: Floats) -> Floats:
    """(n,) the slope at which each example runs out of mass that fills up its lowest slopes first, past the least of each entry."""
    order = np.lexsort((slope, examples.client))
    room = np.cumsum((most - least)[order])
    before = np.append(0.0, room)[examples.starts]
    left = before + 1.0 - examples.by_client(least)
    ends = np.append(examples.starts[1:], slope.size) - 1
    place = np.clip(np.searchsorted(room, left), examples.starts, ends)
    return np.asarray(slope[order][place])


def _price(level: Fraction, growth: Fraction) -> Fraction:
    return level if level > 0 else growth * level


def _entry_prices(intercept: Floats, multiplier: Floats, growth: float) -> Floats:
    """c of each entry, from below."""
    level = intercept + multiplier  # exact where it is 0
    level -= np.where(level == 0.0, 0.0, 4.0 * _UNIT * (np.abs(intercept) + np.abs(multiplier)))
    return np.where(level > 0.0, level, growth * level * (1.0 + 4.0 * _UNIT))


def _sum_lower_bound(total: Floats | float, size: Floats | float, terms: int) -> Floats:
    """At most a sum of so many terms that was computed as `total`, their sizes as `size`."""
    return np.asarray(total - 2.0 * (terms + 8) * _UNIT * size)


def _float_above(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf)


def _float_below(value: Fraction) -> float:
    return math.nextafter(float(value), -math.inf)
