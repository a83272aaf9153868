"""The exact draw in numba: each row is checked, solved and drawn while it is in cache; threads share the rows.

The arithmetic on integers, and the one multiplication and addition that feed it, are compiled without permission to re-associate or contract.
So the distribution drawn is bit for bit the one that `Lattice.weights` shows.

floor(a b / c) of 64-bit numbers (`multiply_and_divide`) needs a product of 128 bits, computed and divided by halves (Knuth's algorithm D).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import ModuleOnUse, kernel, overload
from discreet.projection import NEGLIGIBLE, bound_at, first_bad_row, inspect_law, solve, solve_held
from discreet.release._lattice import Integers, Lattice
from discreet.release._randomness import BITS

types: Any = ModuleOnUse("numba.core.types")
_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_BASE = np.uint64(1 << 32)
_ONE, _TOP = np.uint64(1), np.uint64(1 << 63)


@kernel()
def _quotient_digit(high: Any, low: Any, upper: Any, lower: Any) -> Any:
    """One digit (32 bits) of (high, low) divided by (upper, lower), whose first bit is set: an estimate, corrected."""
    guess = high // upper
    left = high - guess * upper
    while guess >= _BASE or guess * lower > (left << _HALF) + low:
        guess -= _ONE
        left += upper
        if left >= _BASE:
            break
    return guess


@kernel()
def _wide_product(one: Any, other: Any) -> Any:
    """The upper and lower 64 bits of a product."""
    bottom = (one & _MASK) * (other & _MASK)
    cross = (one >> _HALF) * (other & _MASK) + (bottom >> _HALF)
    middle = (one & _MASK) * (other >> _HALF) + (cross & _MASK)
    high = (one >> _HALF) * (other >> _HALF) + (cross >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (bottom & _MASK)


@kernel()
def share_of_total(a: Any, b: Any) -> Any:
    """floor(a b / 2^62) for 0 <= a, b <= 2^62."""
    high, low = _wide_product(np.uint64(a), np.uint64(b))
    return np.int64((high << np.uint64(64 - BITS)) | (low >> np.uint64(BITS)))


@kernel()
def multiply_and_divide(a: Any, b: Any, c: Any) -> Any:
    """floor(a b / c) for 0 <= a, b, c < 2^63, where it is below 2^63; 0 for c = 0."""
    if c <= 0:
        return np.int64(0)
    divisor = np.uint64(c)
    high, low = _wide_product(np.uint64(a), np.uint64(b))
    if high == np.uint64(0):
        return np.int64(low // divisor)
    shift = np.uint64(0)
    while divisor < _TOP:
        divisor <<= _ONE
        shift += _ONE
    if shift > np.uint64(0):
        high = (high << shift) | (low >> (np.uint64(64) - shift))
        low <<= shift
    upper, lower = divisor >> _HALF, divisor & _MASK
    first = _quotient_digit(high, low >> _HALF, upper, lower)
    left = (high << _HALF) + (low >> _HALF) - first * divisor
    return np.int64((first << _HALF) + _quotient_digit(left, low & _MASK, upper, lower))


Floats = NDArray[np.float64]

_WHOLE = 1 << BITS
_TOTAL = float(_WHOLE)
_BLOCK_BITS = 8
_BLOCK = 1 << _BLOCK_BITS


@kernel(error_model="numpy")
def scaled_over_reference(mass: float, steep: float) -> Any:
    """A mass times the slope, with infinity times 0 = 0; a negligible mass counts as 0."""
    return 0.0 if mass <= NEGLIGIBLE else (mass * steep if steep != np.inf else _TOTAL)


@kernel(error_model="numpy")
def excess_over_lower(value: float, low: Any, high: Any) -> Any:
    """A value in units of 2^-62, clipped to [L, U], rounded down, less L.

    L and U are floats too, exactly, so clipping before rounding gives the same integer as clipping after it.
    """
    return np.int64(min(max(np.float64(low), value), np.float64(high))) - low  # in this order NaN gives L


def _scale_mass(mass: float, steep: float, floors: Any) -> Any:
    """A mass times the slope, with infinity times 0 = 0; over a reference that is not uniform a negligible mass counts as 0."""
    raise TypeError("_scale_mass is called from compiled code")


@overload(_scale_mass, inline="always")
def _scale_mass_over(mass: float, steep: float, floors: Any) -> Any:
    def uniform(mass: float, steep: float, floors: Any) -> Any:
        return mass * steep if steep != np.inf else (_TOTAL if mass > NEGLIGIBLE else 0.0)

    def general(mass: float, steep: float, floors: Any) -> Any:
        return scaled_over_reference(mass, steep)

    return general if isinstance(floors, types.Array) else uniform


@kernel(error_model="numpy")
def _outcome_excess(p: Any, place: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any) -> Any:
    """E_x before it is cut off: the affine law in units of 2^-62, clipped to [L, U], rounded down, less L."""
    value = _scale_mass(p[place], steep, floors) + lift * bound_at(floors, place) * _TOTAL
    return excess_over_lower(value, bound_at(lower, place), bound_at(upper, place))


@kernel(error_model="numpy")
def _block_excess(
    p: Any, start: int, stop: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any
) -> tuple[int, bool]:
    """The excess of a block of at most `_BLOCK` outcomes, and whether it is small enough for the sum to be exact (63 bits suffice)."""
    whole = 0
    parts = 0
    for place in range(start, stop):
        excess = _outcome_excess(p, place, steep, lift, floors, lower, upper)
        whole += excess
        parts += excess >> _BLOCK_BITS
    return whole, parts < 1 << (BITS - _BLOCK_BITS)


@kernel(error_model="numpy")
def _locate_in_excess(
    p: Any, steep: float, lift: float, floors: Any, lower: Any, upper: Any, rest: int
) -> tuple[int, int]:
    """(the outcome of the integer `rest`, 0) if it falls in the excess; else (-1, the remaining part of `rest`).

    Blocks before it are summed as a whole, in vectors; the last one is searched outcome by outcome.
    """
    start = 0
    while p.size - start > _BLOCK:
        whole, fits = _block_excess(p, start, start + _BLOCK, steep, lift, floors, lower, upper)
        if not fits or whole > rest:
            break
        rest -= whole
        start += _BLOCK
    for place in range(start, p.size):
        rest -= _outcome_excess(p, place, steep, lift, floors, lower, upper)
        if rest < 0:
            return place, 0
    return -1, rest


def _above_shared(
    p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
) -> Any:
    """The outcome of the integer `rest`, counted from the end of the shared part."""
    raise TypeError("_above_shared is called from compiled code")


@overload(_above_shared)
def _above_shared_over(
    p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
) -> Any:
    def uniform(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        steep = slope * _TOTAL
        found, rest = _locate_in_excess(p, steep, lift, floors, lower, upper, rest)
        if found >= 0:
            return found
        for place in range(p.size):
            rest -= upper - lower - _outcome_excess(p, place, steep, lift, floors, lower, upper)
            if rest < 0:
                return place
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    def general(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        steep = slope * _TOTAL
        portioning = steep == np.inf or lift == 0.0
        lift = 0.0 if portioning else lift
        found, left = _locate_in_excess(p, steep, lift, floors, lower, upper, rest)
        if found >= 0:
            return found
        whole, limit = 0, 0
        if portioning:
            for place in range(p.size):
                whole += sizes[place] if p[place] <= NEGLIGIBLE else 0
            available = np.int64(_WHOLE - shared)
            limit = min(available - (rest - left), multiply_and_divide(whole, available, _WHOLE))
            if left < limit:
                within = multiply_and_divide(left, whole, limit)
                for place in range(p.size):
                    within -= sizes[place] if p[place] <= NEGLIGIBLE else 0
                    if within < 0:
                        return place
        left -= limit
        after, given = whole, 0
        for place in range(p.size):
            room = upper[place] - lower[place] - _outcome_excess(p, place, steep, lift, floors, lower, upper)
            if limit > 0 and p[place] <= NEGLIGIBLE:
                after -= sizes[place]
                end = limit - multiply_and_divide(after, limit, whole)
                room -= end - given
                given = end
            left -= room
            if left < 0:
                return place
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    return general if isinstance(lower, types.Array) else uniform


def _solve_row(
    p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    """(slope, lift) of one row that `inspect_law` has checked."""
    raise TypeError("_solve_row is called from compiled code")


@overload(_solve_row)
def _solve_row_over(
    p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    def uniform(
        p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
    ) -> Any:
        return solve(p, seen, floors, ceilings)

    def general(
        p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
    ) -> Any:
        held = seen[0]
        mass, low, high = np.empty(held), np.empty(held), np.empty(held)
        filled, unheld, room = 0, np.int64(shared), np.int64(_WHOLE - shared)
        for place in range(p.size):
            if p[place] > NEGLIGIBLE and filled < held:
                if room >= 0:  # once negative it stays so
                    room -= upper[place] - lower[place]
                mass[filled], low[filled], high[filled] = p[place], floors[place], ceilings[place]
                filled += 1
                unheld -= lower[place]
        if room >= 0:  # all held outcomes fit at their ceilings: no slope exists
            return np.inf, 0.0
        return solve_held(mass, np.float64(unheld) / _TOTAL, low, high)

    return general if isinstance(lower, types.Array) else uniform


@kernel(error_model="numpy", nogil=True)
def _draw_rows(
    laws: Any,
    floors: Any,
    ceilings: Any,
    lower: Any,
    upper: Any,
    shared: int,
    edges: Any,
    sizes: Any,
    projecting: bool,
    slope: Any,
    lift: Any,
    uniform: Any,
    out: Any,
) -> int:
    for row in range(len(laws)):
        p = laws[row]
        seen = inspect_law(p, floors)
        if seen[0] == 0:
            return row
        if uniform[row] >= shared:
            if projecting:
                steep, raised = _solve_row(p, seen, floors, ceilings, lower, upper, shared)
                if row < len(slope):
                    slope[row], lift[row] = steep, raised
            else:
                steep, raised = slope[row], lift[row]
            out[row] = _above_shared(p, steep, raised, floors, lower, upper, shared, sizes, uniform[row] - shared)
        elif edges.size:
            out[row] = np.searchsorted(edges, uniform[row], side="right")
        else:
            out[row] = uniform[row] // bound_at(lower, 0)
    return -1


def draw(
    lattice: Lattice, laws: Floats, projecting: bool, slope: Floats, lift: Floats, uniform: Integers, out: Integers
) -> int:
    """Fill `out` with one outcome for each row, and `slope`, `lift` of the rows that had to be solved, unless these arrays are empty.

    `projecting`: solve for slope and lift; otherwise use those given. Returns the first row that is not a distribution, or -1.
    """
    box = lattice.box

    def work(rows: slice) -> int:
        return int(
            _draw_rows(
                laws[rows], box.lower, box.ceiling, lattice.lower, lattice.upper, lattice.shared_total, lattice.shared_edges,
                lattice.portions, projecting, slope[rows], lift[rows], uniform[rows], out[rows],
            )
        )  # fmt: skip

    return first_bad_row(work, len(laws), laws.size)
