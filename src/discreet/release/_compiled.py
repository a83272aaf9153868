"""The exact draw in numba: of laws that list every outcome, and of clients with few distinct values over any reference.

The arithmetic on integers, and the one multiplication and addition that feed it, are compiled without permission to re-associate or contract.
So the distribution drawn is bit for bit the one that `Lattice.weights` shows.

floor(a b / c) of 64-bit numbers (`multiply_and_divide`) needs a product of 128 bits, computed and divided by halves (Knuth's algorithm D).

**Laws that list every outcome.** Each row is checked, solved and drawn while it is in cache; threads share the rows.

**Clients with few distinct values**, over a reference that is not uniform, take time that grows with the logarithm of the domain. The outcome
of a given integer is that of `Lattice.weights` on the client's k numbers: the shared part, then the excess of the held outcomes (the client's
support), then the portions of the others (`discreet.release._lattice`), then the fill. Outside the support each of these is a difference of
running sums. So the gap between two held outcomes takes one step, and the gap of an integer one search.

Large tables are not in cache, and a draw that waits for each look-up waits most of the time. So clients are drawn in batches: the start of
each draw's last search is recorded (`locate_outcome_by_reference_plan`), prefetched for the whole batch, and searched
(`find_missing_outcomes_of_batch`). A prefetch is a hint to the processor that a number will be read soon. It changes no result.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from discreet._base.kernels import ModuleOnUse, intrinsic, kernel, overload
from discreet.projection import (
    NEGLIGIBLE,
    bound_at,
    run_on_row_slices,
    solve_slope_and_lift,
    solve_slope_and_lift_on_support,
    support_size_and_mass_above,
)
from discreet.release._client_draws import BEFORE, CEILING, FLOOR, LOWER, ROOM_BITS, ROW, SIZE, UPPER
from discreet.release._lattice import Integers, Lattice
from discreet.release._randomness import BITS

cgutils: Any = ModuleOnUse("numba.core.cgutils")
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
def multiply_and_divide_by_total(a: Any, b: Any) -> Any:
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
def scale_mass_over_reference(mass: float, steep: float) -> Any:
    """A mass times the slope, with infinity times 0 = 0; a negligible mass counts as 0."""
    return 0.0 if mass <= NEGLIGIBLE else (mass * steep if steep != np.inf else _TOTAL)


@kernel(error_model="numpy")
def excess_over_lower_bound(value: float, low: Any, high: Any) -> Any:
    """A value in units of 2^-62, clipped to [L, U], rounded down, less L.

    L and U are floats too, exactly, so clipping before rounding gives the same integer as clipping after it.
    """
    return np.int64(min(max(np.float64(low), value), np.float64(high))) - low  # in this order NaN gives L


def _scale_mass_by_slope(mass: float, steep: float, floors: Any) -> Any:
    """A mass times the slope, with infinity times 0 = 0; over a reference that is not uniform a negligible mass counts as 0."""
    raise TypeError("_scale_mass_by_slope is called from compiled code")


@overload(_scale_mass_by_slope, inline="always")
def _choose_mass_scaling(mass: float, steep: float, floors: Any) -> Any:
    def scale_over_uniform(mass: float, steep: float, floors: Any) -> Any:
        return mass * steep if steep != np.inf else (_TOTAL if mass > NEGLIGIBLE else 0.0)

    def scale_over_reference(mass: float, steep: float, floors: Any) -> Any:
        return scale_mass_over_reference(mass, steep)

    return scale_over_reference if isinstance(floors, types.Array) else scale_over_uniform


@kernel(error_model="numpy")
def _outcome_excess_over_lower_bound(
    p: Any, place: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any
) -> Any:
    """E_x before it is cut off: the affine law in units of 2^-62, clipped to [L, U], rounded down, less L."""
    value = _scale_mass_by_slope(p[place], steep, floors) + lift * bound_at(floors, place) * _TOTAL
    return excess_over_lower_bound(value, bound_at(lower, place), bound_at(upper, place))


@kernel(error_model="numpy")
def _sum_excess_of_block(
    p: Any, start: int, stop: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any
) -> tuple[int, bool]:
    """The excess of a block of at most `_BLOCK` outcomes, and whether it is small enough for the sum to be exact (63 bits suffice)."""
    whole = 0
    parts = 0
    for place in range(start, stop):
        excess = _outcome_excess_over_lower_bound(p, place, steep, lift, floors, lower, upper)
        whole += excess
        parts += excess >> _BLOCK_BITS
    return whole, parts < 1 << (BITS - _BLOCK_BITS)


@kernel(error_model="numpy")
def _locate_outcome_in_excess(
    p: Any, steep: float, lift: float, floors: Any, lower: Any, upper: Any, rest: int
) -> tuple[int, int]:
    """(the outcome of the integer `rest`, 0) if it falls in the excess; else (-1, the remaining part of `rest`).

    Blocks before it are summed as a whole, in vectors; the last one is searched outcome by outcome.
    """
    start = 0
    while p.size - start > _BLOCK:
        whole, fits = _sum_excess_of_block(p, start, start + _BLOCK, steep, lift, floors, lower, upper)
        if not fits or whole > rest:
            break
        rest -= whole
        start += _BLOCK
    for place in range(start, p.size):
        rest -= _outcome_excess_over_lower_bound(p, place, steep, lift, floors, lower, upper)
        if rest < 0:
            return place, 0
    return -1, rest


def _outcome_beyond_shared_part(
    p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
) -> Any:
    """The outcome of the integer `rest`, counted from the end of the shared part."""
    raise TypeError("_outcome_beyond_shared_part is called from compiled code")


@overload(_outcome_beyond_shared_part)
def _choose_finder_beyond_shared_part(
    p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
) -> Any:
    def find_over_uniform(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        steep = slope * _TOTAL
        found, rest = _locate_outcome_in_excess(p, steep, lift, floors, lower, upper, rest)
        if found >= 0:
            return found
        for place in range(p.size):
            rest -= upper - lower - _outcome_excess_over_lower_bound(p, place, steep, lift, floors, lower, upper)
            if rest < 0:
                return place
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    def find_over_reference(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        steep = slope * _TOTAL
        portioning = steep == np.inf or lift == 0.0
        lift = 0.0 if portioning else lift
        found, left = _locate_outcome_in_excess(p, steep, lift, floors, lower, upper, rest)
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
            room = (
                upper[place]
                - lower[place]
                - _outcome_excess_over_lower_bound(p, place, steep, lift, floors, lower, upper)
            )
            if limit > 0 and p[place] <= NEGLIGIBLE:
                after -= sizes[place]
                end = limit - multiply_and_divide(after, limit, whole)
                room -= end - given
                given = end
            left -= room
            if left < 0:
                return place
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    return find_over_reference if isinstance(lower, types.Array) else find_over_uniform


def _solve_slope_and_lift(
    p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    """(slope, lift) of one row that `support_size_and_mass_above` has checked."""
    raise TypeError("_solve_slope_and_lift is called from compiled code")


@overload(_solve_slope_and_lift)
def _choose_slope_and_lift_solver(
    p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    def solve_over_uniform(
        p: Any, seen: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
    ) -> Any:
        return solve_slope_and_lift(p, seen, floors, ceilings)

    def solve_over_reference(
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
        return solve_slope_and_lift_on_support(mass, np.float64(unheld) / _TOTAL, low, high)

    return solve_over_reference if isinstance(lower, types.Array) else solve_over_uniform


@kernel(error_model="numpy", nogil=True)
def _store_outcomes_of_rows(
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
        seen = support_size_and_mass_above(p, floors)
        if seen[0] == 0:
            return row
        if uniform[row] >= shared:
            if projecting:
                steep, raised = _solve_slope_and_lift(p, seen, floors, ceilings, lower, upper, shared)
                if row < len(slope):
                    slope[row], lift[row] = steep, raised
            else:
                steep, raised = slope[row], lift[row]
            out[row] = _outcome_beyond_shared_part(
                p, steep, raised, floors, lower, upper, shared, sizes, uniform[row] - shared
            )
        elif edges.size:
            out[row] = np.searchsorted(edges, uniform[row], side="right")
        else:
            out[row] = uniform[row] // bound_at(lower, 0)
    return -1


def store_outcomes_of_laws(
    lattice: Lattice, laws: Floats, projecting: bool, slope: Floats, lift: Floats, uniform: Integers, out: Integers
) -> int:
    """Fill `out` with one outcome for each row, and `slope`, `lift` of the rows that had to be solved, unless these arrays are empty.

    `projecting`: solve for slope and lift; otherwise use those given. Returns the first row that is not a distribution, or -1.
    """
    box = lattice.box

    def draw_row_slice(rows: slice) -> int:
        return int(
            _store_outcomes_of_rows(
                laws[rows], box.lower, box.ceiling, lattice.lower, lattice.upper, lattice.shared_total, lattice.shared_edges,
                lattice.portions, projecting, slope[rows], lift[rows], uniform[rows], out[rows],
            )
        )  # fmt: skip

    return run_on_row_slices(draw_row_slice, len(laws), laws.size)


def _prefetch(typing: Any, line: Any, place: Any) -> Any:
    """Prefetch line[place]. Any place is allowed: the processor ignores a hint about invalid memory."""

    def emit_prefetch_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        where = builder.bitcast(builder.gep(array.data, [values[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [where.type, *[ir.IntType(32)] * 3])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [where, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(line, types.intp), emit_prefetch_code


prefetch: Any = intrinsic(_prefetch)


_MOST = (1 << 63) - 1
IN_EDGES, IN_PORTIONS = -2, -3  # the sums in which an outcome is still to be found
_HIGHEST = 1 << 31  # room in units of 2^31 that exceeds every request


@kernel()
def last_place_not_above(sums: Any, wanted: Any, low: Any, high: Any) -> Any:
    """The last place in low..high - 1 where an increasing sum is at most `wanted`; low if there is none."""
    while high - low > 1:
        middle = (low + high) >> 1
        if sums[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


@kernel()
def _search_sums_by_guide(sums: Any, guide: Any, shift: Any, wanted: Any) -> Any:
    """The last place where a sum is at most `wanted`, by its guide."""
    step = wanted >> shift
    return last_place_not_above(sums, wanted, np.int64(guide[step]), guide[step + 1] + 1)


@kernel()
def prefetch_rows_of_held_outcomes(plan: Any, outcomes: Any) -> None:
    """Prefetch the table rows of held outcomes."""
    for place in range(outcomes.size):
        prefetch(plan.held, np.int64(outcomes[place]) * ROW)


@kernel()
def store_places_of_value(kind: Any, found: Any, numbers: Any) -> Any:
    """Fill `numbers` with the places where `found` is `kind`, without branches; returns how many."""
    count = 0
    for place in range(found.size):
        numbers[count] = place
        count += found[place] == kind
    return count


@kernel()
def _find_batch_outcomes_in_sums(
    sums: Any, guide: Any, shift: Any, kind: Any, found: Any, wanted: Any, numbers: Any
) -> None:
    count = store_places_of_value(kind, found, numbers)
    for number in range(count):
        prefetch(guide, wanted[numbers[number]] >> shift)
    for number in range(count):
        prefetch(sums, np.int64(guide[wanted[numbers[number]] >> shift]))
    for number in range(count):
        place = numbers[number]
        found[place] = _search_sums_by_guide(sums, guide, shift, wanted[place])


@kernel()
def find_missing_outcomes_of_batch(plan: Any, found: Any, wanted: Any, numbers: Any) -> None:
    """Find the missing outcomes of a batch: prefetch the guides, then the sums, then search."""
    _find_batch_outcomes_in_sums(plan.edges, plan.edge_guide, plan.shift, IN_EDGES, found, wanted, numbers)
    _find_batch_outcomes_in_sums(plan.portions, plan.portion_guide, plan.shift, IN_PORTIONS, found, wanted, numbers)


@kernel()
def _total_room_of_outcomes(plan: Any, first: Any, last: Any) -> Any:
    """The room of outcomes first..last - 1, or 2^63 - 1 if it is too large to matter."""
    high = plan.room[last] - plan.room[first]
    if high > _HIGHEST:
        return np.int64(_MOST)
    return (high << ROOM_BITS) + (plan.rest_of_room[last] - plan.rest_of_room[first])


@kernel()
def _add_held_portions_to_place(plan: Any, outcomes: Any, wanted: Any) -> Any:
    """The place in the running sum of S, from a place in the sum without held outcomes."""
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        if wanted < plan.held[held, BEFORE]:
            break
        wanted += plan.held[held, SIZE]
    return wanted


@kernel()
def _outcome_in_remaining_room(plan: Any, outcomes: Any, own: Any, whole: Any, limit: Any, rest: Any) -> Any:
    """The outcome of `rest` in the room that excess and portions have left."""
    first: Any = 0
    before: Any = 0  # S of held outcomes so far
    given: Any = 0  # portions so far
    for place in range(outcomes.size + 1):
        held = np.int64(outcomes[place]) if place < outcomes.size else plan.size
        end = limit - multiply_and_divide(whole - (plan.portions[held] - before), limit, whole)
        gap = _total_room_of_outcomes(plan, first, held) - (end - given)
        if rest < gap:
            low, high = first, held
            while high - low > 1:
                middle = (low + high) >> 1
                there = limit - multiply_and_divide(whole - (plan.portions[middle] - before), limit, whole)
                if _total_room_of_outcomes(plan, first, middle) - (there - given) <= rest:
                    low = middle
                else:
                    high = middle
            return low
        rest -= gap
        if place < outcomes.size:
            left = plan.held[held, UPPER] - plan.held[held, LOWER] - own[place]
            if rest < left:
                return held
            rest -= left
            before += plan.held[held, SIZE]
            given, first = end, held + 1
    return np.int64(-1)  # unreachable: the lattice was built with sum U >= 2^62


@kernel()
def _store_excesses_of_held_outcomes(
    plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, unheld: Any
) -> None:
    """Fill `own` with the excess of every held outcome, `low` and `high` with its bounds."""
    for place in range(outcomes.size):
        low[place], high[place] = plan.bounds[outcomes[place], FLOOR], plan.bounds[outcomes[place], CEILING]
    steep = solve_slope_and_lift_on_support(masses, unheld, low, high)[0] * _TOTAL
    for place in range(outcomes.size):
        held = outcomes[place]
        value = scale_mass_over_reference(masses[place], steep)
        own[place] = excess_over_lower_bound(value, plan.held[held, LOWER], plan.held[held, UPPER])


@kernel()
def outcome_by_reference_plan(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`own` is scratch)."""
    low, high = np.empty(outcomes.size), np.empty(outcomes.size)
    found, wanted = locate_outcome_by_reference_plan(plan, outcomes, masses, own, low, high, uniform)
    if found == IN_EDGES:
        return _search_sums_by_guide(plan.edges, plan.edge_guide, plan.shift, wanted)
    if found == IN_PORTIONS:
        return _search_sums_by_guide(plan.portions, plan.portion_guide, plan.shift, wanted)
    return found


@kernel()
def locate_outcome_by_reference_plan(
    plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any
) -> Any:
    """(the outcome, 0), or (the sum to be searched, the value to be found there). `own`, `low`, `high` are scratch."""
    shared = plan.edges[plan.size]
    if uniform < shared:
        return np.int64(IN_EDGES), uniform
    rest = uniform - shared
    available = _WHOLE - shared
    whole = plan.portions[plan.size]
    room, unheld = available, shared
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        own[place] = plan.held[held, UPPER] - plan.held[held, LOWER]
        if room >= 0:  # once negative it stays so
            room -= own[place]
        unheld -= plan.held[held, LOWER]
        whole -= plan.held[held, SIZE]
    if room < 0:  # else all held outcomes fit at their ceilings, and no slope exists
        _store_excesses_of_held_outcomes(plan, outcomes, masses, own, low, high, np.float64(unheld) / _TOTAL)
    for place in range(outcomes.size):
        if rest < own[place]:
            return np.int64(outcomes[place]), np.int64(0)
        rest -= own[place]
    limit = min(available - (uniform - shared - rest), multiply_and_divide_by_total(whole, available))
    if rest < limit:
        return np.int64(IN_PORTIONS), _add_held_portions_to_place(
            plan, outcomes, multiply_and_divide(rest, whole, limit)
        )
    return np.int64(_outcome_in_remaining_room(plan, outcomes, own, whole, limit, rest - limit)), np.int64(0)
