"""The exact draw for clients given by their few distinct values, over any reference, in time that grows with the logarithm of the domain.

The law, and the outcome for a given integer, are those of `Lattice.weights` on the client's k numbers: the shared part, then the
excess of what is held, then the portions of what is not (`discreet.release.portions`), then the fill. Over outcomes that are not held
each of these is a difference of running sums, so the gap between two held outcomes takes one step and the gap that an integer falls
into one search.
"""

from typing import Any

import numpy as np

from discreet.kernels import kernel
from discreet.projection.compiled import solve_held
from discreet.release.clients import BEFORE, HALF, LOWER, SIZE, UPPER
from discreet.release.compiled import _excess
from discreet.release.lattice import TOTAL
from discreet.release.wide import quotient, share_of_total

_TOTAL = TOTAL
_UNITS = float(TOTAL)
_MOST = (1 << 63) - 1
_HIGHEST = 1 << 31  # room in units of 2^31 past which it is more than anything asked for


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
def shared_outcome(plan: Any, uniform: Any) -> Any:
    """The outcome that an integer of the shared part falls on."""
    step = uniform >> plan.shift
    return last_not_above(plan.edges, uniform, plan.edge_guide[step], plan.edge_guide[step + 1] + 1)


@kernel()
def _room(plan: Any, first: Any, last: Any) -> Any:
    """The room of outcomes first..last - 1, or 2^63 - 1 where it is so large that it does not matter."""
    high = plan.room[last] - plan.room[first]
    if high > _HIGHEST:
        return np.int64(_MOST)
    return (high << HALF) + (plan.rest_of_room[last] - plan.rest_of_room[first])


@kernel()
def _among_portions(plan: Any, outcomes: Any, wanted: Any) -> Any:
    """The unheld outcome in whose part of the running sum of S, without what is held, `wanted` lies."""
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        if wanted < plan.held[held, BEFORE]:
            break
        wanted += plan.held[held, SIZE]
    step = wanted >> plan.shift
    return last_not_above(plan.portions, wanted, plan.portion_guide[step], plan.portion_guide[step + 1] + 1)


@kernel()
def _filled(plan: Any, outcomes: Any, own: Any, whole: Any, limit: Any, rest: Any) -> Any:
    """The outcome on which `rest` falls among all the room that excess and portions have left."""
    first: Any = 0
    before: Any = 0  # S of held outcomes so far
    given: Any = 0  # portions so far
    for place in range(outcomes.size + 1):
        held = np.int64(outcomes[place]) if place < outcomes.size else plan.size
        end = limit - quotient(whole - (plan.portions[held] - before), limit, whole)
        gap = _room(plan, first, held) - (end - given)
        if rest < gap:
            low, high = first, held
            while high - low > 1:
                middle = (low + high) >> 1
                there = limit - quotient(whole - (plan.portions[middle] - before), limit, whole)
                if _room(plan, first, middle) - (there - given) <= rest:
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
def _excesses(plan: Any, outcomes: Any, masses: Any, own: Any, unheld: Any) -> None:
    """Fill `own` with the excess of every held outcome."""
    low, high = np.empty(outcomes.size), np.empty(outcomes.size)
    for place in range(outcomes.size):
        low[place], high[place] = plan.floors[outcomes[place]], plan.ceilings[outcomes[place]]
    steep = solve_held(masses, unheld, low, high)[0] * _UNITS
    for place in range(outcomes.size):
        held = outcomes[place]
        one, other = plan.held[held, LOWER : LOWER + 1], plan.held[held, UPPER : UPPER + 1]
        own[place] = _excess(masses[place : place + 1], 0, steep, 0.0, low[place : place + 1], one, other)


@kernel()
def outcome_over_reference(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome that a uniform integer falls on, for a client that holds `masses` at `outcomes` (`own` is scratch)."""
    shared = plan.edges[plan.size]
    if uniform < shared:
        return shared_outcome(plan, uniform)
    rest = uniform - shared
    available = _TOTAL - shared
    whole = plan.portions[plan.size]
    room, unheld = available, shared
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        own[place] = plan.held[held, UPPER] - plan.held[held, LOWER]
        if room >= 0:  # once below it stays so
            room -= own[place]
        unheld -= plan.held[held, LOWER]
        whole -= plan.held[held, SIZE]
    if room < 0:  # else all that is held fits at its ceiling, and no slope serves
        _excesses(plan, outcomes, masses, own, np.float64(unheld) / _UNITS)
    for place in range(outcomes.size):
        if rest < own[place]:
            return np.int64(outcomes[place])
        rest -= own[place]
    limit = min(available - (uniform - shared - rest), share_of_total(whole, available))
    if rest < limit:
        return _among_portions(plan, outcomes, quotient(rest, whole, limit))
    return _filled(plan, outcomes, own, whole, limit, rest - limit)
