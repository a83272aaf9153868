"""A client's law in whole numbers, such that what is the same law is the same whole numbers: counts reduced, weights on a grid.

**Counts** (and records, which count once each) are added up in integers and divided by what they have in common, so that
proportional counts are one law, and different laws are different numbers.

**Weights** come out of somebody's floating-point sums, whose last bits depend on the order of the rows and on how they were
cut into partitions. They are added up without rounding, to W_x, and T for the client as a whole, and then put on a public grid:

    an outcome with W_x < 2^-44 T counts as none (what cancellation leaves behind is no outcome); m are left
    n_x = floor(2^s W_x / T + 1/2),   s = 20 + ceil(log2 m),   divided by what the n_x have in common

and n_x / sum(n) is the law that is drawn from. It is a function of the shares W_x / T alone: order, scale and the way in
which a weight was split over rows do not enter, but for the rounding errors they caused before the weights came here.

* *There is a law*: the largest W_x is at least (1 - 2^-12) T/m (there are less than 2^32 outcomes, those that count as
  none are less than 2^-12 of T), so its n_x is at least 2^20 (1 - 2^-12) - 1/2 > 0, as soon as one weight is positive.
* *It costs nothing*: with q_x = 2^s W_x / T and A = sum |n_x - q_x|, the total variation distance to the law W/T is at
  most A / 2^s, since |sum(n) - 2^s| <= A too. Rounding adds at most m/2 to A; hence it is at most 2^-21, and 2^-44 more for
  each outcome that counts as none: below 2^-20 for every client with fewer than eight million of those.
* *How often noise still crosses a line.* Let each W_x change by a factor within 1 +- d. Then q_x moves by at most about
  2 d q_x, and crosses one of the lines k + 1/2 with that probability if it lies anywhere between them: for the client as a
  whole, with probability at most 2^(s+1) d. For a change in the last bit of everything, d = 2^-52, that is 2^(s-51) <
  m 2^-30: one client in a hundred million, for ten outcomes each.
* *Weights that are multiples of a common unit*, such as cents, N units in all, do not cross at all as long as
  N < 2^(50-s) (67 million, up to 16 outcomes), unless N has the factor 2^(s+1): the distance of q_x = 2^s a/N from a line
  is a multiple of 1/(2 N), and not 0 unless the reduced denominator of a/N is 2^(s+1).

Nothing here bears on privacy, which the box decides for every law (`discreet.release._lattice`).
"""

import math
from collections.abc import Iterable

SHARE_BITS = 20  # the grid is 2^-20 of the total, and finer by the number of outcomes
NOTHING_BITS = 44  # a smaller share than 2^-44 is none

_SMALLEST_BITS = 1074  # every float is a multiple of 2^-1074


def integer_law_of_counts(outcomes: Iterable[int], counts: Iterable[int]) -> dict[int, int]:
    """The law of records with whole-number counts, in any order: the numbers by outcome, in increasing order of outcome."""
    return _divide_by_gcd(_sums_by_outcome(outcomes, counts))


def integer_law_of_weights(outcomes: Iterable[int], weights: Iterable[float]) -> dict[int, int]:
    """The law of records with weights, likewise. (`discreet.release._canonical` computes both for millions of clients.)"""
    sums = _sums_by_outcome(outcomes, [_in_smallest_units(weight) for weight in weights])
    total = sum(sums.values())
    held = {x: each for x, each in sums.items() if each << NOTHING_BITS >= total}
    bits = SHARE_BITS + (len(held) - 1).bit_length() if held else 0
    return _divide_by_gcd({x: ((each << (bits + 1)) + total) // (2 * total) for x, each in held.items()})


def _sums_by_outcome(outcomes: Iterable[int], amounts: Iterable[int]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for x, amount in zip(outcomes, amounts, strict=True):
        if amount:
            sums[x] = sums.get(x, 0) + amount
    return dict(sorted(sums.items()))


def _divide_by_gcd(numbers: dict[int, int]) -> dict[int, int]:
    common = math.gcd(*numbers.values())
    return {x: number // common for x, number in numbers.items() if number}


def _in_smallest_units(weight: float) -> int:
    """A float in units of 2^-1074."""
    numerator, denominator = float(weight).as_integer_ratio()
    return (numerator << _SMALLEST_BITS) // denominator
