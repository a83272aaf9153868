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
from discreet.release.clients import HALF
from discreet.release.compiled import _excess
from discreet.release.lattice import TOTAL
from discreet.release.wide import quotient

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
def _room(plan: Any, first: Any, last: Any) -> Any:
    """The room of outcomes first..last - 1, or 2^63 - 1 where it is so large that it does not matter."""
    high = plan.room[last] - plan.room[first]
    if high > _HIGHEST:
        return np.int64(_MOST)
    return (high << HALF) + (plan.rest_of_room[last] - plan.rest_of_room[first])


@kernel()
def _among_portions(plan: Any, outcomes: Any, wanted: Any) -> Any:
    """The unheld outcome in whose part of the running sum of S, without what is held, `wanted` lies."""
    first: Any = 0
    for place in range(outcomes.size):
        held = np.int64(outcomes[place])
        if wanted < plan.portions[held]:
            return last_not_above(plan.portions, wanted, first, held)
        wanted += plan.portions[held + 1] - plan.portions[held]
        first = held + 1
    return last_not_above(plan.portions, wanted, first, plan.size)


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
            left = plan.upper[held] - plan.lower[held] - own[place]
            if rest < left:
                return held
            rest -= left
            before += plan.portions[held + 1] - plan.portions[held]
            given, first = end, held + 1
    return np.int64(-1)  # unreachable: the lattice was built with sum U >= 2^62


@kernel()
def outcome_over_reference(plan: Any, outcomes: Any, masses: Any, own: Any, uniform: Any) -> Any:
    """The outcome that a uniform integer falls on, for a client that holds `masses` at `outcomes` (`own` is scratch)."""
    shared = plan.edges[plan.size]
    if uniform < shared:
        return last_not_above(plan.edges, uniform, 0, plan.size)
    rest = uniform - shared
    available = _TOTAL - shared
    whole = plan.portions[plan.size]
    if outcomes.size:
        low, high = np.empty(outcomes.size), np.empty(outcomes.size)
        unheld = shared
        for place in range(outcomes.size):
            held = outcomes[place]
            low[place], high[place] = plan.floors[held], plan.ceilings[held]
            unheld -= plan.lower[held]
            whole -= plan.portions[held + 1] - plan.portions[held]
        steep = solve_held(masses, np.float64(unheld) / _UNITS, low, high)[0] * _UNITS
        for place in range(outcomes.size):
            held = outcomes[place]
            one, other = plan.lower[held : held + 1], plan.upper[held : held + 1]
            own[place] = _excess(masses[place : place + 1], 0, steep, 0.0, low[place : place + 1], one, other)
            if rest < own[place]:
                return np.int64(held)
            rest -= own[place]
    limit = min(available - (uniform - shared - rest), quotient(whole, available, _TOTAL))
    if rest < limit:
        return _among_portions(plan, outcomes, quotient(rest, whole, limit))
    return _filled(plan, outcomes, own, whole, limit, rest - limit)
