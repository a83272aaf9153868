"""The projection in numpy: exact Newton on all rows at once, in blocks so that memory stays flat."""

import numpy as np
from numpy.typing import NDArray

from discreet.families.laws import is_law
from discreet.projection.breakpoints import NEGLIGIBLE, NEWTON_STEPS, ROUNDING, SETTLED, slope_and_lift

Floats = NDArray[np.float64]
Bound = float | Floats

_BLOCK = 1 << 20  # entries in a block of rows


def affine(
    laws: Floats, lower: Bound, upper: Bound, ceiling: Bound, projecting: bool, slope: Floats, lift: Floats, out: Floats
) -> int:
    """Solve for slope and lift (n,) under `ceiling` when `projecting`, then fill `out`, if it has rows, with the affine law.

    Returns the number of the first row that is not a law (nothing is then to be used), or -1.
    """
    for rows in blocks(*laws.shape):
        bad = first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        if projecting:
            slope[rows], lift[rows] = solved(laws[rows], lower, ceiling)
        if len(out):
            out[rows] = clipped_affine(laws[rows], slope[rows], lift[rows], lower, upper)
    return -1


def blocks(rows: int, size: int) -> list[slice]:
    """Slices of rows that hold about `_BLOCK` entries each."""
    step = max(1, _BLOCK // size)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def first_bad(laws: Floats) -> int:
    """The number of the first row that is not a law, or -1."""
    good = is_law(laws)
    return -1 if good.all() else int(np.argmin(good))


def clipped_affine(laws: Floats, slope: Floats, lift: Floats, lower: Bound, upper: Bound) -> Floats:
    """clip(slope p + lift lower, lower, upper) of each row, with inf * 0 = 0."""
    return np.clip(scaled(laws, slope[:, None]) + lift[:, None] * lower, lower, upper)


def scaled(laws: Floats, slope: Floats) -> Floats:
    """slope * p, with inf * 0 = 0 and no warning."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((slope != np.inf) | (laws > NEGLIGIBLE), laws * slope, 0.0)


def solved(laws: Floats, lower: Bound, upper: Bound) -> tuple[Floats, Floats]:
    """(slope, lift) for each row: Newton on all rows that have not settled, then in sorted order those it does not help."""
    slope, lift = np.ones(len(laws)), np.zeros(len(laws))
    unsettled = np.arange(len(laws))
    for _ in range(NEWTON_STEPS):
        before = slope[unsettled]
        step, flat = _newton(laws[unsettled], before, lower, upper)
        usable = (step > 0.0) & np.isfinite(step)
        slope[unsettled] = np.where(usable, step, np.nan)
        settled = flat | ~usable | (np.abs(step - before) <= SETTLED * before)
        unsettled = unsettled[~settled]
        if not unsettled.size:
            break
    slope[unsettled] = np.nan
    low, high = np.broadcast_to(lower, laws.shape[1]), np.broadcast_to(upper, laws.shape[1])
    for row in np.flatnonzero(np.isnan(slope)):
        slope[row], lift[row] = slope_and_lift(laws[row], low, high)
    return slope, lift


def _newton(laws: Floats, slope: Floats, lower: Bound, upper: Bound) -> tuple[Floats, NDArray[np.bool_]]:
    """(1 - clipped mass) / unclipped mass of each row; on a flat piece at height one, its near end, and True."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = laws * slope[:, None]
        low, high = value < lower, value > upper
        clipped = np.where(low, lower, np.where(high, upper, 0.0)).sum(axis=1)
        middle = np.where(low | high, 0.0, laws).sum(axis=1)
        step = np.where(middle > NEGLIGIBLE, (1.0 - clipped) / middle, np.nan)
        flat = (middle <= NEGLIGIBLE) & (np.abs(1.0 - clipped) <= ROUNDING)
        if flat.any():
            near = np.where(high[flat], np.broadcast_to(upper, laws.shape)[flat] / laws[flat], 0.0).max(axis=1)
            step[flat] = np.where(near > 0.0, near, slope[flat])
    return step, flat


def improved(laws: Floats, slope: Floats, lower: Bound, upper: Bound, steps: int = 12) -> Floats:
    """Newton from slopes (n,) that are nearly right, where the bounds may differ from row to row (n, k)."""
    for _ in range(steps):
        step, _ = _newton(laws, slope, lower, upper)
        usable = (step > 0.0) & np.isfinite(step)
        settled = np.abs(step - slope) <= SETTLED * slope
        slope = np.where(usable, step, slope)
        if np.all(settled | ~usable):
            break
    return slope
