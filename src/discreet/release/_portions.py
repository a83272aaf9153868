"""What is missing from 2^62, portioned out over the outcomes a client does not hold: exact in integers, and found by prefix sums.

Over a reference that is not uniform a client on a small set leaves much of 2^62 to outcomes it does not hold: each is to get the
same multiple of its floor. Rounding each by itself would leave sums that only a pass over the domain finds. So the running sum is
rounded instead. With M units to hand out, sizes S_x (the reference in units of 2^-62), A_x = sum of S over the unheld outcomes before
x, and H over all of them,

    portion_x = ceil((A_x + S_x) M/H) - ceil(A_x M/H)          unit i of the M goes to the outcome where floor(i H/M) lies in A_x + [0, S_x)

which sums to M, takes one division and one search, and exceeds S_x M/H by less than one.

**No portion exceeds the room U_x - L_x.** Let R = 2^62 - sum L. Only M <= R H/2^62 units are portioned out, and S_x R/2^62 <= U_x - L_x
- 1 (S_x = 0 where there is no room). Then portion_x <= floor(S_x M/H) + 1 <= U_x - L_x. What M had to leave out, of which rounding is
all there is in practice, goes to whoever has room, in order.

*Why so little is left out.* Over the reals S = mu, and a client whose held outcomes are all at U leaves M = 1 - U(held) - L(unheld) =
1 - U(held) - b H, at most R H = (1 - b) H because U(held) >= mu(held): the box holds mu. For the same reason a client that holds
nothing gets L_x + (1 - b) mu_x, the reference itself, up to rounding; and S_x R <= U_x - L_x is mu_x <= U_x, so S is cut down only
for outcomes of a few units.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.numerics import floor_product
from discreet.release._randomness import BITS

TOTAL = 1 << BITS
Integers = NDArray[np.int64]
_HALF = 31
_MASK = (1 << _HALF) - 1


def portion_sizes(floors: NDArray[np.float64], lower: Integers, upper: Integers, shared: int) -> Integers:
    """S: the floors in units that sum to at most 2^62, each as small as its room asks for."""
    whole = np.ldexp(floors, BITS - 1 - int(np.frexp(floors.max())[1])).astype(np.int64)
    fine = floor_product(whole, Fraction(TOTAL, exact_sum(whole)), TOTAL)
    rest = TOTAL - shared
    if rest == 0:
        return fine
    return np.minimum(fine, floor_product(np.maximum(upper - lower - 1, 0), Fraction(TOTAL, rest), TOTAL))


def all_fit(spans: Integers, available: int) -> NDArray[np.bool_]:
    """Whether the sum of each row, however large, is at most `available`: then a client's outcomes are all at their ceilings."""
    low = (spans & _MASK).sum(axis=-1)
    high = (spans >> _HALF).sum(axis=-1) + (low >> _HALF)
    most = available >> _HALF
    return np.asarray((high < most) | ((high == most) & ((low & _MASK) <= (available & _MASK))))


def exact_sum(values: Integers) -> int:
    """The sum, however large."""
    return (int((values >> _HALF).sum()) << _HALF) + int((values & _MASK).sum())


def portion_out(parts: Integers, missing: Integers, shared: int, bits: int = BITS + 1) -> Integers:
    """How much each outcome gets of `missing` units (..., 1), fewer than 2^bits; `parts` (..., k) is S of the outcomes not held, else 0."""
    ends = np.cumsum(parts, axis=-1)
    whole = ends[..., -1:]
    limit = np.minimum(missing, fraction_of(whole, np.int64(TOTAL - shared), np.int64(TOTAL)))
    given = limit - fraction_of(whole - ends, limit, np.maximum(whole, 1), bits)
    return np.asarray(np.diff(given, axis=-1, prepend=np.int64(0)))


def fraction_of(values: Integers, many: Any, whole: Any, bits: int = BITS + 1) -> Integers:
    """floor(value * many / whole) for 0 <= value <= whole <= 2^62 and many < 2^bits, bit by bit: the same steps for all numbers."""
    value, many, whole = (np.asarray(each).astype(np.uint64) for each in (values, many, whole))
    quotient = np.zeros(np.broadcast(value, many, whole).shape, dtype=np.uint64)
    left = np.zeros_like(quotient)  # below 3 whole, so below 2^64
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        left = (left << one) + value * ((many >> np.uint64(bit)) & one)
        quotient <<= one
        for _ in range(2):
            over = left >= whole
            quotient += over
            left -= whole * over
    return quotient.astype(np.int64)
