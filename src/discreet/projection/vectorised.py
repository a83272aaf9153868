"""The projection in numpy: exact Newton on all rows at once, in blocks so that memory stays flat.

Every function takes laws (n, k) and the box's bounds, fills its last argument, and returns the number of the first row
that is not a law (nothing is then to be used), or -1.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.families.laws import is_law
from discreet.projection.breakpoints import NEWTON_STEPS, SETTLED, slope_and_lift

Floats = NDArray[np.float64]
Bound = float | Floats

_BLOCK = 1 << 20  # entries in a block of rows


def project(laws: Floats, lower: Bound, upper: Bound, out: Floats) -> int:
    """Fill `out` with the projections."""
    for rows in blocks(*laws.shape):
        bad = first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        slope, lift = solved(laws[rows], lower, upper)
        out[rows] = affine(laws[rows], slope[:, None], lift[:, None], lower, upper)
    return -1


def mix(laws: Floats, lower: Bound, upper: Bound, slope: float, lift: float, out: Floats) -> int:
    """Fill `out` with clip(slope p + lift lower)."""
    for rows in blocks(*laws.shape):
        bad = first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        out[rows] = affine(laws[rows], slope, lift, lower, upper)
    return -1


def slopes(laws: Floats, lower: Bound, upper: Bound, out: Floats) -> int:
    """Fill `out` (n,) with the slopes 1/r."""
    for rows in blocks(*laws.shape):
        bad = first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        out[rows] = solved(laws[rows], lower, upper)[0]
    return -1


def solve(p: Floats, lower: Bound, upper: Bound) -> tuple[float, float]:
    """(slope, lift) of one row."""
    slope, lift = solved(p[None, :], lower, upper)
    return float(slope[0]), float(lift[0])


def blocks(rows: int, size: int) -> list[slice]:
    """Slices of rows that hold about `_BLOCK` entries each."""
    step = max(1, _BLOCK // size)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def affine(laws: Floats, slope: Bound, lift: Bound, lower: Bound, upper: Bound) -> Floats:
    """clip(slope p + lift lower, lower, upper), with inf * 0 = 0."""
    return np.clip(scaled(laws, slope) + lift * lower, lower, upper)


def scaled(laws: Floats, slope: Bound) -> Floats:
    """slope * p, with inf * 0 = 0 and no warning."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(laws > 0.0, laws * slope, 0.0)


def solved(laws: Floats, lower: Bound, upper: Bound) -> tuple[Floats, Floats]:
    """(slope, lift) for each row: Newton on all rows that have not settled, then the sorted solver for the rest."""
    slope, lift = np.ones(len(laws)), np.zeros(len(laws))
    unsettled = np.arange(len(laws))
    unsolved = []
    for _ in range(NEWTON_STEPS):
        step = _newton(laws[unsettled], slope[unsettled], lower, upper)
        usable = (step > 0.0) & np.isfinite(step)
        settled = usable & (np.abs(step - slope[unsettled]) <= SETTLED * slope[unsettled])
        slope[unsettled[usable]] = step[usable]
        unsolved.append(unsettled[~usable])
        unsettled = unsettled[usable & ~settled]
        if not unsettled.size:
            break
    for row in np.concatenate((*unsolved, unsettled)):
        law = laws[row]
        slope[row], lift[row] = slope_and_lift(
            law, np.broadcast_to(lower, law.shape), np.broadcast_to(upper, law.shape)
        )
    return slope, lift


def _newton(laws: Floats, slope: Floats, lower: Bound, upper: Bound) -> Floats:
    """(1 - clipped mass) / unclipped mass of each row at its slope."""
    value = laws * slope[:, None]
    low, high = value < lower, value > upper
    clipped = np.where(low, lower, np.where(high, upper, 0.0)).sum(axis=1)
    middle = np.where(low | high, 0.0, laws).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray((1.0 - clipped) / middle)


def first_bad(laws: Floats) -> int:
    good = is_law(laws)
    return -1 if good.all() else int(np.argmin(good))
