"""The draw of `discreet.release._referenced` in numpy and Python's integers: the same outcome for the same integer."""

import numpy as np
from numpy.typing import NDArray

from discreet.projection._vectorised import scale_laws, solve_listed
from discreet.release._clients import CEILING, FLOOR, HALF, LOWER, SIZE, UPPER, ReferencePlan
from discreet.release._lattice import TOTAL
from discreet.release._portions import all_fit


def _excesses_over_reference(
    plan: ReferencePlan, masses: NDArray[np.float64], lengths: NDArray[np.int64], outcomes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What each client's outcomes get above L, from lists that are padded with zeros."""
    present = np.arange(masses.shape[1]) < lengths[:, None]
    low, high = (np.where(present, plan.bounds[outcomes, column], 0.0) for column in (FLOOR, CEILING))
    lower, upper = plan.held[outcomes, LOWER], plan.held[outcomes, UPPER]
    shared = int(plan.edges[-1])
    unheld = (shared - np.where(present, lower, 0).sum(axis=1)).astype(np.float64) / TOTAL
    slope = np.full(len(masses), np.inf)
    rows = ~all_fit(np.where(present, upper - lower, 0), TOTAL - shared)
    if rows.any():
        slope[rows], _ = solve_listed(masses[rows], lengths[rows], low[rows], high[rows], unheld[rows])
    with np.errstate(over="ignore"):
        value = scale_laws(masses, slope[:, None] * TOTAL)
    inside = np.fmin(np.fmax(lower.astype(np.float64), value), upper.astype(np.float64))
    return np.asarray(inside.astype(np.int64) - lower)


def _outcome_over_reference(plan: ReferencePlan, held: list[int], own: list[int], uniform: int) -> int:
    """The outcome on which an integer past the shared part falls, for a client with excess `own` at `held`."""
    shared = int(plan.edges[-1])
    rest = uniform - shared
    for place, excess in zip(held, own, strict=True):
        if rest < excess:
            return place
        rest -= excess
    before = 0  # S of held outcomes so far
    whole = int(plan.portions[-1]) - sum(plan.held[held, SIZE].tolist())
    limit = min(TOTAL - shared - sum(own), whole * (TOTAL - shared) // TOTAL)
    if rest < limit:
        wanted = rest * whole // limit
        for place in held:
            if wanted < plan.portions[place]:
                break
            wanted += int(plan.held[place, SIZE])
        return int(np.searchsorted(plan.portions, wanted, side="right")) - 1
    rest -= limit

    def portions_before(place: int) -> int:
        """Portions of the unheld outcomes before this one."""
        return -(-(int(plan.portions[place]) - before) * limit // whole) if limit else 0

    def room(first: int, last: int) -> int:
        """What outcomes first..last - 1, none of them held, can still take."""
        high = int(plan.room[last] - plan.room[first])
        return (
            (high << HALF)
            + int(plan.rest_of_room[last] - plan.rest_of_room[first])
            - portions_before(last)
            + portions_before(first)
        )

    first = 0
    for place, excess in zip([*held, plan.size], [*own, 0], strict=True):
        gap = room(first, place)
        if rest < gap:
            low, high = first, place
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if room(first, middle) <= rest else (low, middle)
            return low
        rest -= gap
        if place < plan.size:
            left = int(plan.held[place, UPPER] - plan.held[place, LOWER]) - excess
            if rest < left:
                return place
            rest -= left
            before += int(plan.held[place, SIZE])
        first = place + 1
    return -1  # unreachable: the lattice was built with sum U >= 2^62
