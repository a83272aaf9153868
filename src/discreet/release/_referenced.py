"""The exact draw over any reference for clients with few distinct values, in time that grows with the logarithm of the domain.

The distribution, and the outcome of a given integer, are those of `Lattice.weights` on the client's k numbers: the shared part, then the
excess of the held outcomes (the client's support), then the portions of the others (`discreet.release._lattice`), then the fill. Outside the
support each of these is a difference of running sums. So the gap between two held outcomes takes one step, and the gap of an integer one
search.

Large tables are not in cache, and a draw that waits for each look-up waits most of the time. So clients are drawn in batches: the start of
each draw's last search is recorded (`locate_outcome`), prefetched for the whole batch, and searched (`search_batch`). A prefetch is a hint to
the processor that a number will be read soon. It changes no result.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from discreet._base.kernels import ModuleOnUse, intrinsic, kernel
from discreet.projection import solve_held
from discreet.release._compiled import excess_over_lower, multiply_and_divide, scaled_over_reference, share_of_total
from discreet.release._lattice import TOTAL
from discreet.release._plain import BEFORE, CEILING, FLOOR, HALF, LOWER, ROW, SIZE, UPPER

cgutils: Any = ModuleOnUse("numba.core.cgutils")
types: Any = ModuleOnUse("numba.core.types")


def _prefetch(typing: Any, line: Any, place: Any) -> Any:
    """Prefetch line[place]. Any place is allowed: the processor ignores a hint about invalid memory."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        where = builder.bitcast(builder.gep(array.data, [values[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [where.type, *[ir.IntType(32)] * 3])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [where, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(line, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


_TOTAL = TOTAL
_UNITS = float(TOTAL)
_MOST = (1 << 63) - 1
IN_EDGES, IN_PORTIONS = -2, -3  # the sums in which an outcome is still to be found
_HIGHEST = 1 << 31  # room in units of 2^31 that exceeds every request


@kernel()
def last_not_above(sums: Any, wanted: Any, low: Any, high: Any) -> Any:
    """The last place in low..high - 1 where an increasing sum is at most `wanted`; low if there is none."""
    while high - low > 1:
        middle = (low + high) >> 1
        if sums[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


@kernel()
def _search_sums(sums: Any, guide: Any, shift: Any, wanted: Any) -> Any:
    """The last place where a sum is at most `wanted`, by its guide."""
    step = wanted >> shift
    return last_not_above(sums, wanted, np.int64(guide[step]), guide[step + 1] + 1)


@kernel()
def prefetch_held(plan: Any, outcomes: Any) -> None:
    """Prefetch the table rows of held outcomes."""
    for place in range(outcomes.size):
        prefetch(plan.held, np.int64(outcomes[place]) * ROW)


@kernel()
def places_of_kind(kind: Any, found: Any, numbers: Any) -> Any:
    """Fill `numbers` with the places where `found` is `kind`, without branches; returns how many."""
    count = 0
    for place in range(found.size):
        numbers[count] = place
        count += found[place] == kind
    return count


@kernel()
def _search_sums_of_kind(sums: Any, guide: Any, shift: Any, kind: Any, found: Any, wanted: Any, numbers: Any) -> None:
    count = places_of_kind(kind, found, numbers)
    for number in range(count):
        prefetch(guide, wanted[numbers[number]] >> shift)
    for number in range(count):
        prefetch(sums, np.int64(guide[wanted[numbers[number]] >> shift]))
    for number in range(count):
        place = numbers[number]
        found[place] = _search_sums(sums, guide, shift, wanted[place])


@kernel()
def search_batch(plan: Any, found: Any, wanted: Any, numbers: Any) -> None:
    """Find the missing outcomes of a batch: prefetch the guides, then the sums, then search."""
    _search_sums_of_kind(plan.edges, plan.edge_guide, plan.shift, IN_EDGES, found, wanted, numbers)
    _search_sums_of_kind(plan.portions, plan.portion_guide, plan.shift, IN_PORTIONS, found, wanted, numbers)


@kernel()
def _room_between_outcomes(plan: Any, first: Any, last: Any) -> Any:
    """The room of outcomes first..last - 1, or 2^63 - 1 if it is too large to matter."""
    high = plan.room[last] - plan.room[first]
    if high > _HIGHEST:
        return np.int64(_MOST)
    return (high << HALF) + (plan.rest_of_room[last] - plan.rest_of_room[first])


@kernel()
def _place_among_portions(plan: Any, outcomes: Any, wanted: Any) -> Any:
    """The place in the running sum of S, from a place in the sum without held outcomes."""
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        if wanted < plan.held[held, BEFORE]:
            break
        wanted += plan.held[held, SIZE]
    return wanted


@kernel()
def _outcome_in_fill(plan: Any, outcomes: Any, own: Any, whole: Any, limit: Any, rest: Any) -> Any:
    """The outcome of `rest` in the room that excess and portions have left."""
    first: Any = 0
    before: Any = 0  # S of held outcomes so far
    given: Any = 0  # portions so far
    for place in range(outcomes.size + 1):
        held = np.int64(outcomes[place]) if place < outcomes.size else plan.size
        end = limit - multiply_and_divide(whole - (plan.portions[held] - before), limit, whole)
        gap = _room_between_outcomes(plan, first, held) - (end - given)
        if rest < gap:
            low, high = first, held
            while high - low > 1:
                middle = (low + high) >> 1
                there = limit - multiply_and_divide(whole - (plan.portions[middle] - before), limit, whole)
                if _room_between_outcomes(plan, first, middle) - (there - given) <= rest:
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
def _fill_excesses(plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, unheld: Any) -> None:
    """Fill `own` with the excess of every held outcome, `low` and `high` with its bounds."""
    for place in range(outcomes.size):
        low[place], high[place] = plan.bounds[outcomes[place], FLOOR], plan.bounds[outcomes[place], CEILING]
    steep = solve_held(masses, unheld, low, high)[0] * _UNITS
    for place in range(outcomes.size):
        held = outcomes[place]
        value = scaled_over_reference(masses[place], steep)
        own[place] = excess_over_lower(value, plan.held[held, LOWER], plan.held[held, UPPER])


@kernel()
def outcome_over_reference(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`own` is scratch)."""
    low, high = np.empty(outcomes.size), np.empty(outcomes.size)
    found, wanted = locate_outcome(plan, outcomes, masses, own, low, high, uniform)
    if found == IN_EDGES:
        return _search_sums(plan.edges, plan.edge_guide, plan.shift, wanted)
    if found == IN_PORTIONS:
        return _search_sums(plan.portions, plan.portion_guide, plan.shift, wanted)
    return found


@kernel()
def locate_outcome(plan: Any, outcomes: Any, masses: Any, own: Any, low: Any, high: Any, uniform: Any) -> Any:
    """(the outcome, 0), or (the sum to be searched, the value to be found there). `own`, `low`, `high` are scratch."""
    shared = plan.edges[plan.size]
    if uniform < shared:
        return np.int64(IN_EDGES), uniform
    rest = uniform - shared
    available = _TOTAL - shared
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
        _fill_excesses(plan, outcomes, masses, own, low, high, np.float64(unheld) / _UNITS)
    for place in range(outcomes.size):
        if rest < own[place]:
            return np.int64(outcomes[place]), np.int64(0)
        rest -= own[place]
    limit = min(available - (uniform - shared - rest), share_of_total(whole, available))
    if rest < limit:
        return np.int64(IN_PORTIONS), _place_among_portions(plan, outcomes, multiply_and_divide(rest, whole, limit))
    return np.int64(_outcome_in_fill(plan, outcomes, own, whole, limit, rest - limit)), np.int64(0)
