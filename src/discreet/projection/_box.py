"""The box around a reference, and the projection onto it: clip(P/r, b mu, B mu) with r normalising, for every f [paper, Prop. C.8].

Every output lies in one box of ratio B/b. Hence any map into the box is log(B/b)-LDP, for every input and every computation error.

Written with the slope a = 1/r, the mass G(a) = sum_x clip(a p_x, lower_x, upper_x) is continuous, non-decreasing and linear between the
breakpoints lower_x/p_x and upper_x/p_x. On the segment where M is the unclipped set,

    a = (1 - clipped mass) / P(M)

so r is found exactly by finitely many Newton steps, without a tolerance. If G(infinity) < 1, P sits on a set S too small for any r. Then the
projection is `upper` on S and a multiple `lift` of `lower` off it. The same pair (slope, lift) also describes the linear mechanism
lambda P + (1 - lambda) mu, so one affine form covers every mechanism:

    q_x = clip(slope p_x + lift lower_x, lower_x, upper_x)          with inf * 0 = 0 (and masses below 1e-280 taken as 0)

**The solver in numpy** takes all rows at once, in blocks to bound memory. `_compiled` has the same functions in numba, with the same results
bit for bit: both take the same steps and add every sum in the same order.

Newton's steps on G are kept between the largest slope known to be too small and the smallest known to be too large, so they cannot cycle.
After `PATIENT` steps every other one halves the distance between the two (on a logarithmic scale, where it is at most 2^11). So
`NEWTON_STEPS` of them bring it down to neighbouring floats, and the slope is right even if Newton's steps make no progress.

Floating-point sums depend on their order, so the order is part of the definition. Numbers are taken in blocks of `BLOCK`, which are added one
after the other. Within a block number i goes to lane i mod `LANES`, in order, and the lanes are then added by halves: 0 + 4, 1 + 5, 2 + 6, 3
+ 7, then 0 + 2, 1 + 3, then 0 + 1. Zeros after the last number change nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.kernels import should_use_compiled_code
from discreet._base.numerics import exp_nearest
from discreet._base.showing import with_short_repr
from discreet.families import SUM_TOLERANCE, as_renormalised_laws, raise_error_for_bad_row, rows_are_laws
from discreet.privacy.tradeoff import Constants

Floats = NDArray[np.float64]
Bound = float | Floats
NEWTON_STEPS = 200
PATIENT = 40  # steps after which every other one is a bisection
SETTLED = 1e-15  # relative change of the slope below which the unclipped set is unchanged
NEGLIGIBLE = 1e-280  # a smaller mass counts as 0: a bound divided by it, in units of 2^-62, would overflow
ROUNDING = 1e-14  # bound on the rounding of a summed mass
BEYOND = 2.0 / NEGLIGIBLE  # larger than every breakpoint
PAST = 2.0**-50  # a step this far beyond a breakpoint is beyond it in floating point too
FARTHEST = 1e100  # how far beyond a breakpoint a step may go
LANES = 8
BLOCK = 1 << 10
NARROW = 1 << 12  # up to this length a vector pass is faster than filtering
_ENTRIES = 1 << 20  # in a block of rows
_IMPROVING_STEPS = 12
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
STEEPEST_EXPONENT = 554.0  # above it the floor stays e^-554 of the ceiling, since smaller floats would lose its shape


def estimated_numpy_seconds(entries: int) -> float:
    """Roughly how long the solver in numpy takes for rows of that many entries in total."""
    return 1e-3 + 1e-7 * entries


@dataclass(frozen=True)
class Affine:
    """The linear mechanism's law: slope p + lift lower, for every client alike.

    Attributes:
        slope: the factor of p.
        lift: the factor of the lower bounds.
    """

    slope: float
    lift: float


@with_short_repr
@dataclass(frozen=True)
class Box:
    """{Q : lower_x <= Q(x) <= upper_x}. A bound is one number when the reference is uniform, else one for each outcome.

    Attributes:
        size: how many outcomes there are.
        lower: the lower bounds.
        upper: the upper bounds.
    """

    size: int
    lower: Bound
    upper: Bound

    @classmethod
    def around(cls, reference: Bound, size: int, constants: Constants, epsilon: float) -> "Box":
        """The box b mu <= Q <= B mu, rounded so that upper <= e^epsilon lower holds between the floats themselves."""
        with np.errstate(invalid="ignore", over="ignore"):  # B may be infinite
            upper = np.minimum(np.where(np.asarray(reference) > 0.0, constants.B * np.asarray(reference), 0.0), 1.0)
        lower = np.maximum(constants.b * np.asarray(reference), _SMALLEST_NORMAL)
        lower = np.maximum(
            lower, np.nextafter(upper / math.nextafter(exp_nearest(min(epsilon, STEEPEST_EXPONENT)), 0.0), 1.0)
        )
        lower = np.minimum(lower, upper)
        if upper.ndim == 0:
            return cls(size, float(lower), float(upper))
        for bound in (lower, upper):
            bound.setflags(write=False)
        return cls(size, lower, upper)

    @property
    def ceiling(self) -> Bound:
        """The upper bound for the solver: infinite where the lower bounds of the others already imply it.

        This is so on the simplex, where Q* = max(P/r, lower) [paper, Thm 3.1]. The mass is then convex in the slope, and Newton's method goes
        straight down to the root without a flat piece.
        """
        if isinstance(self.upper, float) and self.upper + (self.size - 1) * self.lower >= 1.0 - ROUNDING:
            return math.inf
        return self.upper

    def project(self, p: ArrayLike) -> NDArray[np.float64]:
        """The projection of each distribution (..., k) onto the box."""
        rows, shape = self._law_rows_and_shape(p)
        law = np.empty_like(rows)
        self._solve_and_fill_laws(rows, None, law)
        return law.reshape(shape)

    def mix(self, p: ArrayLike, mixing: Affine) -> NDArray[np.float64]:
        """clip(slope p + lift lower): the linear mechanism, kept in the box."""
        rows, shape = self._law_rows_and_shape(p)
        law = np.empty_like(rows)
        self._solve_and_fill_laws(rows, mixing, law)
        return law.reshape(shape)

    def scale(self, p: ArrayLike) -> NDArray[np.float64]:
        """r_P for each distribution (...,): one of them if several exist, 0 if P sits on too small a set and none exists."""
        rows, shape = self._law_rows_and_shape(p)
        slope, _ = self._solve_and_fill_laws(rows, None, np.empty((0, self.size)))
        return (1.0 / slope).reshape(shape[:-1])

    def slope_and_lift(self, p: NDArray[np.float64]) -> tuple[float, float]:
        """(slope, lift) of the projection of one distribution (k,): q = clip(slope p + lift lower, lower, upper)."""
        slope, lift = self._solve_and_fill_laws(p[None, :], None, np.empty((0, self.size)))
        return float(slope[0]), float(lift[0])

    def _solve_and_fill_laws(
        self, rows: NDArray[np.float64], mixing: Affine | None, law: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = np.ascontiguousarray(rows)  # as the compiled code requires
        slope = np.full(len(rows), 1.0 if mixing is None else mixing.slope)
        lift = np.full(len(rows), 0.0 if mixing is None else mixing.lift)
        is_compiled = should_use_compiled_code(estimated_numpy_seconds(rows.size))
        fill = (
            import_module("discreet.projection._compiled").solve_and_fill_affine_laws
            if is_compiled
            else solve_and_fill_affine_laws
        )
        bad_row = fill(rows, self.lower, self.upper, self.ceiling, mixing is None, slope, lift, law)
        if bad_row >= 0:
            raise_error_for_bad_row(rows, bad_row)
        return slope, lift

    def _law_rows_and_shape(self, p: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        laws = as_renormalised_laws(p, "p", self.size)
        return laws.reshape(-1, self.size), laws.shape


def solve_and_fill_affine_laws(
    laws: Floats, lower: Bound, upper: Bound, ceiling: Bound, projecting: bool, slope: Floats, lift: Floats, out: Floats
) -> int:
    """Solve for slope and lift (n,) under `ceiling` if `projecting`, then fill `out`, if it has rows, with the affine law.

    Returns the number of the first row that is not a distribution (the results are then invalid), or -1.
    """
    for rows in row_slices_within_memory(*laws.shape):
        bad_row = first_invalid_row(laws[rows])
        if bad_row >= 0:
            return int(rows.start) + bad_row
        if projecting:
            slope[rows], lift[rows] = solve_slopes_and_lifts(laws[rows], lower, ceiling)
        if len(out):
            client_part = laws_times_slopes(laws[rows], slope[rows, None])
            out[rows] = np.clip(client_part + lift[rows, None] * lower, lower, upper)
    return -1


def row_slices_within_memory(rows: int, size: int) -> list[slice]:
    """Slices of rows that hold about `_ENTRIES` entries each."""
    step = max(1, _ENTRIES // max(1, size))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def first_invalid_row(laws: Floats) -> int:
    """The number of the first row that is not a distribution, or -1."""
    good = rows_are_laws(laws)
    return -1 if good.all() else int(np.argmin(good))


def laws_times_slopes(laws: Floats, slope: Floats) -> Floats:
    """slope * p, with inf * 0 = 0 and no warning."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((slope != np.inf) | (laws > NEGLIGIBLE), laws * slope, 0.0)


def solve_slopes_and_lifts(laws: Floats, lower: Bound, upper: Bound) -> tuple[Floats, Floats]:
    """(slope, lift) for each row: from all outcomes, or from the support alone if the reference is uniform."""
    if isinstance(lower, np.ndarray):
        return _solve_slopes_and_lifts_of_lists(
            laws, np.zeros(len(laws)), lower, upper, np.ones(laws.shape, dtype=np.bool_)
        )
    slope, lift = np.empty(len(laws)), np.empty(len(laws))
    for rows, index, outcome, slot in _iterate_support_entries(laws):
        mass, number = _pad_value_lists(laws[rows][index, outcome], index, slot, len(rows))
        slope[rows], lift[rows] = solve_slopes_and_lifts_over_uniform(mass, number, laws.shape[1], lower, float(upper))
    return slope, lift


def solve_slopes_and_lifts_on_support(
    laws: Floats, lower: Floats, upper: Floats, outside_floor: Floats
) -> tuple[Floats, Floats]:
    """(slope, lift) for each row from its support alone, over any reference; `outside_floor` sums the lower bounds of the other outcomes."""
    slope, lift = np.empty(len(laws)), np.empty(len(laws))
    for rows, index, outcome, slot in _iterate_support_entries(laws):
        mass, number = _pad_value_lists(laws[rows][index, outcome], index, slot, len(rows))
        low, high = (_pad_value_lists(bound[outcome], index, slot, len(rows))[0] for bound in (lower, upper))
        slope[rows], lift[rows] = solve_slopes_and_lifts_of_padded_lists(mass, number, low, high, outside_floor[rows])
    return slope, lift


def _iterate_support_entries(
    laws: Floats,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """(rows, index among them, outcome, slot in a list) of all entries in the supports, for rows of similar length."""
    in_support = laws > NEGLIGIBLE
    for rows in _iterate_rows_of_similar_length(in_support.sum(axis=1)):
        index, outcome = np.nonzero(in_support[rows])
        yield rows, index, outcome, (np.cumsum(in_support[rows], axis=1) - 1)[index, outcome]


def _pad_value_lists(
    values: Floats, index: NDArray[np.int64], slot: NDArray[np.int64], rows: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Values as a list for each row, padded with zeros, and their numbers."""
    number = np.bincount(index, minlength=rows)
    lists = np.zeros((rows, int(number.max(initial=0))))
    lists[index, slot] = values
    return lists, number


def _iterate_rows_of_similar_length(number: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Groups of rows whose lists may be padded with zeros to one length: short ones together, each long one alone."""
    short_rows = np.flatnonzero(number <= NARROW)
    if short_rows.size:
        yield short_rows
    yield from np.flatnonzero(number > NARROW)[:, None]


def solve_slopes_and_lifts_over_uniform(
    mass: Floats, number: NDArray[np.int64], size: int, lower: float, upper: float
) -> tuple[Floats, Floats]:
    """(slope, lift) for each row over a uniform reference on `size` outcomes, from the `number` masses of the support, padded with zeros.

    No row is longer than `NARROW`, or there is only one row.
    """
    outside_count = size - number
    if upper == np.inf:
        return _solve_slopes_without_ceiling(mass, number, outside_count, lower), np.zeros(len(mass))
    return _solve_slopes_and_lifts_of_lists(
        mass,
        np.asarray(outside_count * lower, dtype=np.float64),
        lower,
        upper,
        np.arange(mass.shape[1]) < number[:, None],
    )


def solve_slopes_and_lifts_of_padded_lists(
    mass: Floats, number: NDArray[np.int64], lower: Floats, upper: Floats, outside_floor: Floats
) -> tuple[Floats, Floats]:
    """(slope, lift) for each row from lists of the `number` masses of the support and their bounds, padded with zeros."""
    return _solve_slopes_and_lifts_of_lists(
        mass, outside_floor, lower, upper, np.arange(mass.shape[1]) < number[:, None]
    )


def _row_sums(values: Floats) -> Floats:
    """The sum of each row, in the order defined above."""
    rows, size = values.shape
    width = min(BLOCK, -(-size // LANES) * LANES)
    blocks = -(-size // width)
    padded_values = np.zeros((rows, blocks * width))
    padded_values[:, :size] = values
    lanes = np.add.reduce(padded_values.reshape(rows, blocks, width // LANES, LANES), axis=2)
    while lanes.shape[2] > 1:
        half = lanes.shape[2] // 2
        lanes = lanes[:, :, :half] + lanes[:, :, half:]
    return np.asarray(np.cumsum(lanes[:, :, 0], axis=1)[:, -1])


def _solve_slopes_without_ceiling(
    mass: Floats, number: NDArray[np.int64], outside: NDArray[np.int64], lower: float
) -> Floats:
    """As `_compiled._solve_slope_without_ceiling`, on many rows, or a single one that may be long."""
    slopes = np.ones(len(mass))
    active, slope = np.arange(len(mass)), np.ones(len(mass))
    for _ in range(NEWTON_STEPS):
        is_above = mass * slope[:, None] > lower
        count_above, mass_above = is_above.sum(axis=1), _row_sums(np.where(is_above, mass, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            step = (1.0 - (outside + number - count_above) * lower) / mass_above
        live = (mass_above > NEGLIGIBLE) & (step > 0.0) & (step < slope * (1.0 - SETTLED))
        near = (mass_above > NEGLIGIBLE) & (np.abs(step - slope) <= SUM_TOLERANCE * slope)
        slopes[active] = np.where(live | near, step, slope)
        if not live.any():
            break
        active, slope, mass = active[live], step[live], mass[live]
        number, outside = number[live], outside[live]
        if mass.shape[1] > NARROW:  # a single row: an outcome once clipped from below stays so
            rest = mass[:, mass[0] * slope[0] > lower]
            outside, number, mass = (outside + (mass.shape[1] - rest.shape[1]), np.array([rest.shape[1]]), rest)
    return slopes


def _solve_slopes_and_lifts_of_lists(
    mass: Floats, outside: Floats, lower: Bound, upper: Bound, present: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """As `_compiled.solve_slope_and_lift_on_support`, on many rows at once.

    Entries that are not `present` are padding. Bounds are one number, one for each outcome, or one for each entry.
    """
    slopes, lift = np.ones(len(mass)), np.zeros(len(mass))
    active, slope = np.arange(len(mass)), np.ones(len(mass))
    too_small, too_large, stretch = np.zeros(len(mass)), np.full(len(mass), np.inf), np.full(len(mass), 1.0 + PAST)
    for turn in range(NEWTON_STEPS):
        value = mass * slope[:, None]
        output = np.minimum(np.maximum(value, lower), upper)
        is_unclipped = output == value
        clipped_mass = _row_sums(np.where(present & ~is_unclipped, output, 0.0)) + outside
        middle = _row_sums(np.where(present & is_unclipped, mass, 0.0))
        has_slope = middle > NEGLIGIBLE
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.where(has_slope, (1.0 - clipped_mass) / middle, np.inf)
        excess = clipped_mass + slope * middle - 1.0
        at_one = np.abs(excess) <= ROUNDING
        below, above = _nearest_breakpoints(mass, value, lower, upper)
        beyond = ~has_slope & ~at_one & (excess < 0.0) & (above == np.inf)
        done = beyond | at_one | (has_slope & (np.abs(step - slope) <= SETTLED * slope))
        near = np.abs(step - slope) <= SUM_TOLERANCE * slope
        final_slope = np.where(has_slope, np.where(near, step, slope), np.where(below > 0.0, below, slope))
        slopes[active] = np.where(beyond, np.inf, final_slope)
        if beyond.any():
            low, high = _select_bound_rows(lower, beyond), _select_bound_rows(upper, beyond)
            lift[active[beyond]] = _lift_of_outcomes_without_mass(
                mass[beyond], outside[beyond], low, high, present[beyond]
            )
        too_large, too_small = np.where(excess > 0.0, slope, too_large), np.where(excess > 0.0, too_small, slope)
        with np.errstate(over="ignore"):
            breakpoint_step = np.where(excess > 0.0, below / stretch, np.minimum(above * stretch, BEYOND))
        step = np.where(has_slope, np.where(step <= 0.0, 0.5 * slope, step), breakpoint_step)
        stretch = np.where(has_slope, stretch, np.minimum(np.maximum(2.0, stretch * stretch), FARTHEST))
        halving = ~has_slope | ~((too_small < step) & (step < too_large)) | (turn >= PATIENT and turn % 2 == 1)
        is_bracketed = (too_small > 0.0) & (too_large < np.inf)
        with np.errstate(invalid="ignore"):
            step = np.where(is_bracketed & halving, np.sqrt(too_small) * np.sqrt(too_large), step)
        live = ~done
        slopes[active[live]] = step[live]
        if done.all():
            break
        active, slope, mass, present, outside = (active[live], step[live], mass[live], present[live], outside[live])
        too_small, too_large, stretch = too_small[live], too_large[live], stretch[live]
        lower, upper = _select_bound_rows(lower, live), _select_bound_rows(upper, live)
    return slopes, lift


def _select_bound_rows(bound: Bound, rows: NDArray[np.bool_]) -> Bound:
    """A bound of these rows, if each row has its own."""
    return bound[rows] if isinstance(bound, np.ndarray) and bound.ndim == 2 else bound


def _nearest_breakpoints(mass: Floats, value: Floats, lower: Bound, upper: Bound) -> tuple[Floats, Floats]:
    """The nearest breakpoints on either side of each row's slope: 0 or infinity if there is none."""
    in_support = mass > NEGLIGIBLE
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        above = np.where(in_support & (value < lower), lower / mass, np.inf).min(axis=1)
        below = np.where(in_support & (value >= lower) & (value > upper), upper / mass, 0.0).max(axis=1)
    return below, above


def _lift_of_outcomes_without_mass(
    mass: Floats, rest: Floats, lower: Bound, upper: Bound, present: NDArray[np.bool_]
) -> Floats:
    """The multiple of `lower` for outcomes without mass if those with mass are all clipped from above."""
    in_support = mass > NEGLIGIBLE
    on = np.cumsum(np.where(in_support, upper, 0.0), axis=1)[:, -1]
    off = np.cumsum(np.column_stack((rest, np.where(present & ~in_support, lower, 0.0))), axis=1)[:, -1]
    return np.asarray(np.divide(1.0 - on, off, out=np.zeros(len(mass)), where=off > 0.0))


def _slopes_after_newton_step(laws: Floats, slope: Floats, lower: Bound, upper: Bound) -> Floats:
    """(1 - clipped mass) / unclipped mass of each row; on a flat piece at height one, its near end."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = laws * slope[:, None]
        is_low, is_high = value < lower, value > upper
        clipped_mass = np.where(is_low, lower, np.where(is_high, upper, 0.0)).sum(axis=1)
        middle = np.where(is_low | is_high, 0.0, laws).sum(axis=1)
        step = np.where(middle > NEGLIGIBLE, (1.0 - clipped_mass) / middle, np.nan)
        flat = (middle <= NEGLIGIBLE) & (np.abs(1.0 - clipped_mass) <= ROUNDING)
        if flat.any():
            near = np.where(is_high[flat], np.broadcast_to(upper, laws.shape)[flat] / laws[flat], 0.0).max(axis=1)
            step[flat] = np.where(near > 0.0, near, slope[flat])
    return step


def improve_slopes_by_newton(laws: Floats, slope: Floats, lower: Bound, upper: Bound) -> Floats:
    """Newton's method from nearly right slopes (n,), where the bounds may differ from row to row (n, k)."""
    for _ in range(_IMPROVING_STEPS):
        step = _slopes_after_newton_step(laws, slope, lower, upper)
        usable = (step > 0.0) & np.isfinite(step)
        is_settled = np.abs(step - slope) <= SETTLED * slope
        slope = np.where(usable, step, slope)
        if np.all(is_settled | ~usable):
            break
    return slope
