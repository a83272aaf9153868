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
(`fill_in_pending_outcomes_of_batch`). A prefetch is a hint to the processor that a number will be read soon. It changes no result.
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
    remainder = high - guess * upper
    while guess >= _BASE or guess * lower > (remainder << _HALF) + low:
        guess -= _ONE
        remainder += upper
        if remainder >= _BASE:
            break
    return guess


@kernel()
def _wide_product(a: Any, b: Any) -> Any:
    """The upper and lower 64 bits of a product."""
    bottom = (a & _MASK) * (b & _MASK)
    cross = (a >> _HALF) * (b & _MASK) + (bottom >> _HALF)
    middle = (a & _MASK) * (b >> _HALF) + (cross & _MASK)
    high = (a >> _HALF) * (b >> _HALF) + (cross >> _HALF) + (middle >> _HALF)
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
    remainder = (high << _HALF) + (low >> _HALF) - first * divisor
    return np.int64((first << _HALF) + _quotient_digit(remainder, low & _MASK, upper, lower))


Floats = NDArray[np.float64]

_WHOLE = 1 << BITS
_TOTAL = float(_WHOLE)
_BLOCK_BITS = 8
_BLOCK = 1 << _BLOCK_BITS


@kernel(error_model="numpy")
def scale_by_slope_over_reference(mass: float, scaled_slope: float) -> Any:
    """A mass times the slope, with infinity times 0 = 0; a negligible mass counts as 0."""
    return 0.0 if mass <= NEGLIGIBLE else (mass * scaled_slope if scaled_slope != np.inf else _TOTAL)


@kernel(error_model="numpy")
def excess_over_lower_bound(value: float, low: Any, high: Any) -> Any:
    """A value in units of 2^-62, clipped to [L, U], rounded down, less L.

    L and U are floats too, exactly, so clipping before rounding gives the same integer as clipping after it.
    """
    return np.int64(min(max(np.float64(low), value), np.float64(high))) - low  # in this order NaN gives L


def _scale_mass_by_slope(mass: float, scaled_slope: float, floors: Any) -> Any:
    """A mass times the slope, with infinity times 0 = 0; over a reference that is not uniform a negligible mass counts as 0."""
    raise TypeError("_scale_mass_by_slope is called from compiled code")


@overload(_scale_mass_by_slope, inline="always")
def _choose_mass_scaling(mass: float, scaled_slope: float, floors: Any) -> Any:
    def scale_by_slope_over_uniform(mass: float, scaled_slope: float, floors: Any) -> Any:
        return mass * scaled_slope if scaled_slope != np.inf else (_TOTAL if mass > NEGLIGIBLE else 0.0)

    def scale_by_slope_ignoring_floors(mass: float, scaled_slope: float, floors: Any) -> Any:
        return scale_by_slope_over_reference(mass, scaled_slope)

    return scale_by_slope_ignoring_floors if isinstance(floors, types.Array) else scale_by_slope_over_uniform


@kernel(error_model="numpy")
def _outcome_excess_over_lower_bound(
    p: Any, outcome: int, scaled_slope: float, lift: float, floors: Any, lower: Any, upper: Any
) -> Any:
    """E_x before it is cut off: the affine law in units of 2^-62, clipped to [L, U], rounded down, less L."""
    value = _scale_mass_by_slope(p[outcome], scaled_slope, floors) + lift * bound_at(floors, outcome) * _TOTAL
    return excess_over_lower_bound(value, bound_at(lower, outcome), bound_at(upper, outcome))


@kernel(error_model="numpy")
def _sum_excess_of_block(
    p: Any, start: int, stop: int, scaled_slope: float, lift: float, floors: Any, lower: Any, upper: Any
) -> tuple[int, bool]:
    """The excess of a block of at most `_BLOCK` outcomes, and whether it is small enough for the sum to be exact (63 bits suffice)."""
    excess_total = 0
    high_parts = 0
    for outcome in range(start, stop):
        excess = _outcome_excess_over_lower_bound(p, outcome, scaled_slope, lift, floors, lower, upper)
        excess_total += excess
        high_parts += excess >> _BLOCK_BITS
    return excess_total, high_parts < 1 << (BITS - _BLOCK_BITS)


@kernel(error_model="numpy")
def _locate_outcome_in_excess(
    p: Any, scaled_slope: float, lift: float, floors: Any, lower: Any, upper: Any, rest: int
) -> tuple[int, int]:
    """(the outcome of the integer `rest`, 0) if it falls in the excess; else (-1, the remaining part of `rest`).

    Blocks before it are summed as a whole, in vectors; the last one is searched outcome by outcome.
    """
    start = 0
    while p.size - start > _BLOCK:
        block_excess, fits = _sum_excess_of_block(p, start, start + _BLOCK, scaled_slope, lift, floors, lower, upper)
        if not fits or block_excess > rest:
            break
        rest -= block_excess
        start += _BLOCK
    for outcome in range(start, p.size):
        rest -= _outcome_excess_over_lower_bound(p, outcome, scaled_slope, lift, floors, lower, upper)
        if rest < 0:
            return outcome, 0
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
    def find_outcome_over_uniform(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        scaled_slope = slope * _TOTAL
        outcome, rest = _locate_outcome_in_excess(p, scaled_slope, lift, floors, lower, upper, rest)
        if outcome >= 0:
            return outcome
        for x in range(p.size):
            rest -= upper - lower - _outcome_excess_over_lower_bound(p, x, scaled_slope, lift, floors, lower, upper)
            if rest < 0:
                return x
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    def find_outcome_over_reference(
        p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, shared: Any, sizes: Any, rest: Any
    ) -> Any:
        scaled_slope = slope * _TOTAL
        portioning = scaled_slope == np.inf or lift == 0.0
        lift = 0.0 if portioning else lift
        outcome, remainder = _locate_outcome_in_excess(p, scaled_slope, lift, floors, lower, upper, rest)
        if outcome >= 0:
            return outcome
        size_total, limit = 0, 0
        if portioning:
            for x in range(p.size):
                size_total += sizes[x] if p[x] <= NEGLIGIBLE else 0
            available = np.int64(_WHOLE - shared)
            limit = min(available - (rest - remainder), multiply_and_divide(size_total, available, _WHOLE))
            if remainder < limit:
                target = multiply_and_divide(remainder, size_total, limit)
                for x in range(p.size):
                    target -= sizes[x] if p[x] <= NEGLIGIBLE else 0
                    if target < 0:
                        return x
        remainder -= limit
        sizes_after, start = size_total, 0
        for x in range(p.size):
            room = (
                upper[x] - lower[x] - _outcome_excess_over_lower_bound(p, x, scaled_slope, lift, floors, lower, upper)
            )
            if limit > 0 and p[x] <= NEGLIGIBLE:
                sizes_after -= sizes[x]
                end = limit - multiply_and_divide(sizes_after, limit, size_total)
                room -= end - start
                start = end
            remainder -= room
            if remainder < 0:
                return x
        return -1  # unreachable: the lattice was built with sum U >= 2^62

    return find_outcome_over_reference if isinstance(lower, types.Array) else find_outcome_over_uniform


def _solve_slope_and_lift(
    p: Any, support: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    """(slope, lift) of one row that `support_size_and_mass_above` has checked."""
    raise TypeError("_solve_slope_and_lift is called from compiled code")


@overload(_solve_slope_and_lift)
def _choose_slope_and_lift_solver(
    p: Any, support: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
) -> Any:
    def solve_projection_over_uniform(
        p: Any, support: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
    ) -> Any:
        return solve_slope_and_lift(p, support, floors, ceilings)

    def solve_projection_over_reference(
        p: Any, support: tuple[int, float, float], floors: Any, ceilings: Any, lower: Any, upper: Any, shared: Any
    ) -> Any:
        support_size = support[0]
        mass, low, high = np.empty(support_size), np.empty(support_size), np.empty(support_size)
        position, outside_floor, room = 0, np.int64(shared), np.int64(_WHOLE - shared)
        for x in range(p.size):
            if p[x] > NEGLIGIBLE and position < support_size:
                if room >= 0:  # once negative it stays so
                    room -= upper[x] - lower[x]
                mass[position], low[position], high[position] = p[x], floors[x], ceilings[x]
                position += 1
                outside_floor -= lower[x]
        if room >= 0:  # all held outcomes fit at their ceilings: no slope exists
            return np.inf, 0.0
        return solve_slope_and_lift_on_support(mass, np.float64(outside_floor) / _TOTAL, low, high)

    return solve_projection_over_reference if isinstance(lower, types.Array) else solve_projection_over_uniform


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
        support = support_size_and_mass_above(p, floors)
        if support[0] == 0:
            return row
        if uniform[row] >= shared:
            if projecting:
                row_slope, row_lift = _solve_slope_and_lift(p, support, floors, ceilings, lower, upper, shared)
                if row < len(slope):
                    slope[row], lift[row] = row_slope, row_lift
            else:
                row_slope, row_lift = slope[row], lift[row]
            out[row] = _outcome_beyond_shared_part(
                p, row_slope, row_lift, floors, lower, upper, shared, sizes, uniform[row] - shared
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


def _prefetch(typing: Any, line: Any, index: Any) -> Any:
    """Prefetch line[index]. Any index is allowed: the processor ignores a hint about invalid memory."""

    def emit_prefetch_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        address = builder.bitcast(builder.gep(array.data, [values[1]]), ir.IntType(8).as_pointer())
        hint_type = ir.FunctionType(ir.VoidType(), [address.type, *[ir.IntType(32)] * 3])
        hint = cgutils.get_or_insert_function(builder.module, hint_type, "llvm.prefetch.p0")
        builder.call(hint, [address, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(line, types.intp), emit_prefetch_code


prefetch: Any = intrinsic(_prefetch)


_MOST = (1 << 63) - 1
IN_EDGES, IN_PORTIONS = -2, -3  # the sums in which an outcome is still to be found
_HIGHEST = 1 << 31  # room in units of 2^31 that exceeds every request


@kernel()
def last_index_not_above(sums: Any, target: Any, low: Any, high: Any) -> Any:
    """The last place in low..high - 1 where an increasing sum is at most `target`; low if there is none."""
    while high - low > 1:
        middle = (low + high) >> 1
        if sums[middle] <= target:
            low = middle
        else:
            high = middle
    return low


@kernel()
def _search_sums_by_guide(sums: Any, guide: Any, shift: Any, target: Any) -> Any:
    """The last place where a sum is at most `target`, by its guide."""
    step = target >> shift
    return last_index_not_above(sums, target, np.int64(guide[step]), guide[step + 1] + 1)


@kernel()
def prefetch_rows_of_held_outcomes(plan: Any, outcomes: Any) -> None:
    """Prefetch the table rows of held outcomes."""
    for index in range(outcomes.size):
        prefetch(plan.outcome_table, np.int64(outcomes[index]) * ROW)


@kernel()
def store_indices_of_value(kind: Any, values: Any, numbers: Any) -> Any:
    """Fill `numbers` with the indices where `values` is `kind`, without branches; returns how many."""
    count = 0
    for index in range(values.size):
        numbers[count] = index
        count += values[index] == kind
    return count


@kernel()
def _find_batch_outcomes_in_sums(
    sums: Any, guide: Any, shift: Any, kind: Any, outcomes: Any, targets: Any, numbers: Any
) -> None:
    count = store_indices_of_value(kind, outcomes, numbers)
    for number in range(count):
        prefetch(guide, targets[numbers[number]] >> shift)
    for number in range(count):
        prefetch(sums, np.int64(guide[targets[numbers[number]] >> shift]))
    for number in range(count):
        index = numbers[number]
        outcomes[index] = _search_sums_by_guide(sums, guide, shift, targets[index])


@kernel()
def fill_in_pending_outcomes_of_batch(plan: Any, outcomes: Any, targets: Any, numbers: Any) -> None:
    """Find the missing outcomes of a batch: prefetch the guides, then the sums, then search."""
    _find_batch_outcomes_in_sums(plan.edges, plan.edge_guide, plan.shift, IN_EDGES, outcomes, targets, numbers)
    _find_batch_outcomes_in_sums(plan.portions, plan.portion_guide, plan.shift, IN_PORTIONS, outcomes, targets, numbers)


@kernel()
def _total_room_of_outcomes(plan: Any, first: Any, last: Any) -> Any:
    """The room of outcomes first..last - 1, or 2^63 - 1 if it is too large to matter."""
    high = plan.room[last] - plan.room[first]
    if high > _HIGHEST:
        return np.int64(_MOST)
    return (high << ROOM_BITS) + (plan.rest_of_room[last] - plan.rest_of_room[first])


@kernel()
def _position_with_held_portions_added(plan: Any, outcomes: Any, target: Any) -> Any:
    """The place in the running sum of S, from a place in the sum without held outcomes."""
    for index in range(outcomes.size):
        outcome = np.int64(outcomes[index])
        if target < plan.outcome_table[outcome, BEFORE]:
            break
        target += plan.outcome_table[outcome, SIZE]
    return target


@kernel()
def _outcome_in_remaining_room(plan: Any, outcomes: Any, excesses: Any, size_total: Any, limit: Any, rest: Any) -> Any:
    """The outcome of `rest` in the room that excess and portions have left."""
    first: Any = 0
    before: Any = 0  # S of held outcomes so far
    start: Any = 0  # portions so far
    for index in range(outcomes.size + 1):
        outcome = np.int64(outcomes[index]) if index < outcomes.size else plan.size
        end = limit - multiply_and_divide(size_total - (plan.portions[outcome] - before), limit, size_total)
        gap = _total_room_of_outcomes(plan, first, outcome) - (end - start)
        if rest < gap:
            low, high = first, outcome
            while high - low > 1:
                middle = (low + high) >> 1
                middle_end = limit - multiply_and_divide(
                    size_total - (plan.portions[middle] - before), limit, size_total
                )
                if _total_room_of_outcomes(plan, first, middle) - (middle_end - start) <= rest:
                    low = middle
                else:
                    high = middle
            return low
        rest -= gap
        if index < outcomes.size:
            room = plan.outcome_table[outcome, UPPER] - plan.outcome_table[outcome, LOWER] - excesses[index]
            if rest < room:
                return outcome
            rest -= room
            before += plan.outcome_table[outcome, SIZE]
            start, first = end, outcome + 1
    return np.int64(-1)  # unreachable: the lattice was built with sum U >= 2^62


@kernel()
def _store_excesses_of_held_outcomes(
    plan: Any, outcomes: Any, masses: Any, excesses: Any, low: Any, high: Any, outside_floor: Any
) -> None:
    """Fill `excesses` with the excess of every held outcome, `low` and `high` with its bounds."""
    for index in range(outcomes.size):
        low[index], high[index] = plan.bounds[outcomes[index], FLOOR], plan.bounds[outcomes[index], CEILING]
    scaled_slope = solve_slope_and_lift_on_support(masses, outside_floor, low, high)[0] * _TOTAL
    for index in range(outcomes.size):
        outcome = outcomes[index]
        value = scale_by_slope_over_reference(masses[index], scaled_slope)
        excesses[index] = excess_over_lower_bound(
            value, plan.outcome_table[outcome, LOWER], plan.outcome_table[outcome, UPPER]
        )


@kernel()
def outcome_by_reference_plan(plan: Any, outcomes: Any, masses: Any, excesses: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`excesses` is scratch)."""
    low, high = np.empty(outcomes.size), np.empty(outcomes.size)
    outcome, target = locate_outcome_by_reference_plan(plan, outcomes, masses, excesses, low, high, uniform)
    if outcome == IN_EDGES:
        return _search_sums_by_guide(plan.edges, plan.edge_guide, plan.shift, target)
    if outcome == IN_PORTIONS:
        return _search_sums_by_guide(plan.portions, plan.portion_guide, plan.shift, target)
    return outcome


@kernel()
def locate_outcome_by_reference_plan(
    plan: Any, outcomes: Any, masses: Any, excesses: Any, low: Any, high: Any, uniform: Any
) -> Any:
    """(the outcome, 0), or (the sum to be searched, the value to be found there). `excesses`, `low`, `high` are scratch."""
    shared_total = plan.edges[plan.size]
    if uniform < shared_total:
        return np.int64(IN_EDGES), uniform
    rest = uniform - shared_total
    available = _WHOLE - shared_total
    size_total = plan.portions[plan.size]
    room, outside_floor = available, shared_total
    for index in range(outcomes.size):
        outcome = np.int64(outcomes[index])
        excesses[index] = plan.outcome_table[outcome, UPPER] - plan.outcome_table[outcome, LOWER]
        if room >= 0:  # once negative it stays so
            room -= excesses[index]
        outside_floor -= plan.outcome_table[outcome, LOWER]
        size_total -= plan.outcome_table[outcome, SIZE]
    if room < 0:  # else all held outcomes fit at their ceilings, and no slope exists
        _store_excesses_of_held_outcomes(
            plan, outcomes, masses, excesses, low, high, np.float64(outside_floor) / _TOTAL
        )
    for index in range(outcomes.size):
        if rest < excesses[index]:
            return np.int64(outcomes[index]), np.int64(0)
        rest -= excesses[index]
    limit = min(available - (uniform - shared_total - rest), multiply_and_divide_by_total(size_total, available))
    if rest < limit:
        return np.int64(IN_PORTIONS), _position_with_held_portions_added(
            plan, outcomes, multiply_and_divide(rest, size_total, limit)
        )
    return np.int64(_outcome_in_remaining_room(plan, outcomes, excesses, size_total, limit, rest - limit)), np.int64(0)
