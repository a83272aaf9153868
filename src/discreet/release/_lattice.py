"""Epsilon-LDP as a statement about integers: the `Lattice` of allowed weights, and the draws from it, also in constant time.

A distribution is drawn as integer weights W_x with sum 2^62, by one uniform 62-bit integer. All weights that can be drawn with obey

    L_x <= W_x <= U_x,      U_x <= e^epsilon L_x        (e^epsilon replaced by a rational lower bound)

so W_x <= e^epsilon W'_x for any two inputs: no error in a floating-point number can break it. Other notions of privacy are kept likewise
(`Lattice.for_privacy`): sum (W - e^beta W')_+ <= delta(beta) 2^62 for any two rows of weights of the lattice and every beta. The weights are
the client's affine law rounded down to the box and cut off where their sum would exceed 2^62. The missing units are then added to the
outcomes that have room, in order:

    E_x  = clip(floor(2^62 (slope p_x + lift lower_x)), L_x, U_x) - L_x            the rounded excess over L
    W_x  = L_x + (min(C_x, R) - min(C_{x-1}, R)) + fill_x,   C = running sum of E,  R = 2^62 - sum L

An integer u < sum L belongs to the part that all clients share, and the draw ignores the client. So a release is faster than a projection,
and its cost grows with a client's records rather than with the domain.

**Portions.** Over a reference that is not uniform, a projected law (lift 0, or slope infinite) has E_x = 0 outside the client's support. A
client with a small support leaves much of 2^62 to the other outcomes, and each is to get the same multiple of its floor. Rounding each by
itself would leave sums that only a pass over the domain finds. So the running sum is rounded instead. With M units to hand out, sizes S_x
(the reference in units of 2^-62), A_x = sum of S over the outcomes before x outside the support, and H over all of them,

    portion_x = ceil((A_x + S_x) M/H) - ceil(A_x M/H)          unit i of the M goes to the outcome where floor(i H/M) lies in A_x + [0, S_x)

which sums to M, takes one division and one search, and exceeds S_x M/H by less than one.

*No portion exceeds the room U_x - L_x.* Let R = 2^62 - sum L. Only M <= R H/2^62 units are portioned out, and S_x R/2^62 <= U_x - L_x - 1
(S_x = 0 where there is no room). Then portion_x <= floor(S_x M/H) + 1 <= U_x - L_x. The units beyond M, in practice rounding alone, go to the
outcomes that have room, in order.

*Why so few units are left.* Over the reals S = mu. A client whose held outcomes (its support) are all at U leaves M = 1 - U(held) - L(unheld)
= 1 - U(held) - b H. This is at most R H = (1 - b) H because U(held) >= mu(held): the box contains mu. For the same reason a client without
records gets L_x + (1 - b) mu_x, the reference itself, up to rounding. And S_x R <= U_x - L_x is mu_x <= U_x, so S is reduced only for
outcomes of a few units.

**Draws.** `outcomes` and `weights` use the same arithmetic. `outcomes` is fast because it stops early. A draw in the shared part ignores the
client, a search ends at its outcome, and a solver ends when it has converged. So its running time reveals more than the sample.
`outcome_in_constant_time` executes the same instructions for every client and every integer:

* The slope is found by bisection on the bits of a float, in exactly `_HALVINGS` steps. It is the smallest float in [2^-64, 2^960] whose mass
is at least one, or the largest of them if P sits on so small a set that there is none.
* The shared part, the excess, the portions and the fill are all computed and searched to their ends by counting. Running sums are kept in two
halves, so that all sizes take one path. Selections replace branches.
* Negligible masses are set to zero before any multiplication, so that no float is subnormal.

Its distribution is that of `Lattice.weights` up to the last bits of the slope, and lies in the same lattice. So the guarantee is the same
statement about integers. Two differences remain: effects outside a program's control (caches, the processor's clock), and rejected input, for
which no sample leaves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.kernels import should_use_compiled_code
from discreet._base.numerics import product_rounded_down_and_capped
from discreet._base.showing import with_short_repr
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.families import raise_error_for_bad_row, rows_are_laws
from discreet.privacy import Privacy, Pure, extreme_masses, largest_ratio_for_epsilon
from discreet.projection import (
    NEGLIGIBLE,
    Affine,
    Box,
    estimated_numpy_seconds,
    first_invalid_row,
    laws_times_slopes,
    row_slices_within_memory,
    solve_slopes_and_lifts,
    solve_slopes_and_lifts_on_support,
)
from discreet.release._randomness import BITS

TOTAL = 1 << BITS
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_HALF = 31
_MASK = (1 << _HALF) - 1


def integer_portions_of_floors(floors: Floats, lower: Integers, upper: Integers, shared: int) -> Integers:
    """S: the floors in units that sum to at most 2^62, each reduced where its room requires it."""
    scaled_floors = np.ldexp(floors, BITS - 1 - int(np.frexp(floors.max())[1])).astype(np.int64)
    sizes = product_rounded_down_and_capped(scaled_floors, Fraction(TOTAL, sum_without_overflow(scaled_floors)), TOTAL)
    rest = TOTAL - shared
    if rest == 0:
        return sizes
    return np.minimum(
        sizes, product_rounded_down_and_capped(np.maximum(upper - lower - 1, 0), Fraction(TOTAL, rest), TOTAL)
    )


def are_row_sums_at_most(spans: Integers, available: int) -> NDArray[np.bool_]:
    """Whether the sum of each row is at most `available`, without overflow."""
    low = (spans & _MASK).sum(axis=-1)
    high = (spans >> _HALF).sum(axis=-1) + (low >> _HALF)
    most = available >> _HALF
    return np.asarray((high < most) | ((high == most) & ((low & _MASK) <= (available & _MASK))))


def sum_without_overflow(values: Integers) -> int:
    """The sum, without overflow."""
    return (int((values >> _HALF).sum()) << _HALF) + int((values & _MASK).sum())


def divide_missing_units_by_portions(parts: Integers, missing: Integers, shared: int, bits: int = BITS + 1) -> Integers:
    """The part of each outcome in `missing` units (..., 1), fewer than 2^bits; `parts` (..., k) is S outside the support, else 0."""
    ends = np.cumsum(parts, axis=-1)
    total = ends[..., -1:]
    limit = np.minimum(missing, multiply_and_divide_in_constant_time(total, np.int64(TOTAL - shared), np.int64(TOTAL)))
    portion_ends = limit - multiply_and_divide_in_constant_time(total - ends, limit, np.maximum(total, 1), bits)
    return np.asarray(np.diff(portion_ends, axis=-1, prepend=np.int64(0)))


def multiply_and_divide_in_constant_time(values: Integers, factor: Any, divisor: Any, bits: int = BITS + 1) -> Integers:
    """floor(value * factor / divisor) for 0 <= value <= divisor <= 2^62 and factor < 2^bits, bit by bit: the same steps for all numbers."""
    value, factor, divisor = (np.asarray(number).astype(np.uint64) for number in (values, factor, divisor))
    quotient = np.zeros(np.broadcast(value, factor, divisor).shape, dtype=np.uint64)
    remainder = np.zeros_like(quotient)  # below 3 divisor, so below 2^64
    unit = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        remainder = (remainder << unit) + value * ((factor >> np.uint64(bit)) & unit)
        quotient <<= unit
        for _ in range(2):
            over = remainder >= divisor
            quotient += over
            remainder -= divisor * over
    return quotient.astype(np.int64)


_INWARDS = 40  # doublings of the last bit by which a lattice is narrowed before giving up


@with_short_repr
@dataclass(frozen=True)
class Lattice:
    """The integer box: lower_x <= W_x <= upper_x <= e^epsilon lower_x, sum W = 2^62. One number each when uniform.

    Attributes:
        box: the box in floats that it was made from.
        lower: the lower bounds.
        upper: the upper bounds.
    """

    box: Box
    lower: int | Integers
    upper: int | Integers

    @classmethod
    def of(cls, box: Box, epsilon: float) -> "Lattice":
        """The integer box nearest to a box, with upper <= e^epsilon lower exactly."""
        lattice = cls._nearest_lattice_within_ratio(box, largest_ratio_for_epsilon(epsilon))
        if lattice is None:
            raise DiscreetError(
                f"epsilon = {epsilon:g} is too small for an exact release over {box.size} outcomes in {BITS}-bit integers; "
                f"take epsilon above about {max(2e-15, 4 * box.size / TOTAL):.1g}"
            )
        return lattice

    @classmethod
    def for_privacy(cls, box: Box, privacy: Privacy) -> "Lattice":
        """The integer box nearest to a box that certainly keeps a notion of privacy: rounded inwards until it does.

        All weights of the lattice lie between L and ratio L, ratio = max U/L. So its profile is at most that of the box around L/sum L with b
        = sum L/2^62, and `Privacy.allows` decides on two rationals. A smaller ratio over the same L is a smaller lattice. If the part that is
        not shared is too large at any ratio, L is raised as well.
        """
        if isinstance(privacy, Pure):
            return cls.of(box, privacy.epsilon)
        box_ratio = float(np.max(np.asarray(box.upper) / np.asarray(box.lower)))
        for units in (0, *(1 << shift for shift in range(_INWARDS))):
            ratio = 1 + (Fraction(box_ratio) - 1) * (1 - Fraction(units, 1 << 52))
            for lower_factor in (1.0, 1.0 + units * 2.0**-52):
                lattice = cls._nearest_lattice_within_ratio(box, ratio, lower_factor=lower_factor)
                if lattice is not None and lattice.keeps_privacy(privacy):
                    return lattice
        raise DiscreetError(
            f"{privacy} is too little for an exact release over {box.size} outcomes in {BITS}-bit integers; take a larger budget"
        )

    keeping = OldName("for_privacy", of_class=True)

    @classmethod
    def _nearest_lattice_within_ratio(
        cls, box: Box, ratio: Fraction, *, lower_factor: float | None = None
    ) -> "Lattice | None":
        """The integer box nearest to a box with upper <= ratio lower exactly, or None; `lower_factor` raises the lower bounds."""
        ceiling = np.ceil(np.asarray(box.upper) * TOTAL).astype(np.int64)
        for lower in _iterate_lower_bound_candidates(
            np.asarray(box.lower) * TOTAL * (lower_factor or 1.0), lower_factor is not None or ratio > box.size
        ):
            room = product_rounded_down_and_capped(np.atleast_1d(lower), ratio - 1, TOTAL).reshape(lower.shape)
            largest_upper = round_down_to_float_integers(lower + np.minimum(room, TOTAL - lower))
            for upper in (np.clip(largest_upper, lower, np.maximum(ceiling, lower)), largest_upper):
                lattice = cls(box, _number_or_read_only_array(lower), _number_or_read_only_array(upper))
                if lattice._bounds_allow_weights():
                    return lattice
        return None

    def keeps_privacy(self, privacy: Privacy) -> bool:
        """Whether any two rows of weights of this lattice certainly keep a notion of privacy, as a statement about integers."""
        return privacy.allows(*extreme_masses(Fraction(self.shared_total, TOTAL), self.largest_ratio))

    keeps = OldName("keeps_privacy")

    def _bounds_allow_weights(self) -> bool:
        """1 <= L <= U <= 2^62, and sum L <= 2^62 <= sum U."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        is_ordered = (lower >= 1).all() and (lower <= upper).all() and (upper <= TOTAL).all()
        return bool(is_ordered) and self.shared_total <= TOTAL <= self._sum_of_integer_bound(self.upper)

    @property
    def largest_ratio(self) -> Fraction:
        """max upper/lower: e to the power of the actual pure epsilon between any two inputs."""
        if isinstance(self.lower, int):
            return Fraction(int(self.upper), self.lower)
        pairs = np.unique(np.stack([self.lower, np.asarray(self.upper)]), axis=1)
        return max(Fraction(int(high), int(low)) for low, high in pairs.T)

    @cached_property
    def shared_total(self) -> int:
        """sum L: how many of the 2^62 integers are answered independently of the client."""
        return self._sum_of_integer_bound(self.lower)

    @cached_property
    def shared_edges(self) -> Integers:
        """Running sums of L, for a reference that is not uniform (empty when it is)."""
        return np.empty(0, dtype=np.int64) if isinstance(self.lower, int) else np.cumsum(self.lower)

    def _sum_of_integer_bound(self, bound: int | Integers) -> int:
        if isinstance(bound, int):
            return bound * self.box.size
        return sum_without_overflow(bound)

    @cached_property
    def portions(self) -> Integers:
        """S, the sizes by which missing units are portioned out outside the support (empty for a uniform reference)."""
        if isinstance(self.lower, int):
            return np.empty(0, dtype=np.int64)
        sizes = integer_portions_of_floors(
            np.asarray(self.box.lower), self.lower, np.asarray(self.upper), self.shared_total
        )
        sizes.setflags(write=False)
        return sizes

    def weight_parts(self, laws: Floats, slope: Floats, lift: NDArray[np.float64]) -> tuple[Integers, ...]:
        """The parts that every row adds to L, in the order in which integers fall on them.

        These are the excess (rounded down, cut off at 2^62), the portions unless the reference is uniform, and the fill that makes the sum
        exact.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled_slope = slope[:, None] * TOTAL
            in_support = laws > NEGLIGIBLE
            portioning = (scaled_slope == np.inf) | (lift[:, None] == 0.0)
            if isinstance(self.lower, int):
                value = laws_times_slopes(laws, scaled_slope) + (lift[:, None] * np.asarray(self.box.lower)) * TOTAL
            else:
                floor = (lift[:, None] * np.asarray(self.box.lower)) * TOTAL
                value = np.where(in_support, laws * scaled_slope, 0.0) + np.where(portioning, 0.0, floor)
        low, high = np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)  # exact
        requests = np.fmin(np.fmax(low, value), high).astype(np.int64) - np.asarray(self.lower)  # NaN gives L
        room = TOTAL - self.shared_total
        excess = np.empty_like(requests)
        for row in range(len(laws)):
            excess[row] = hand_out_units(requests[row], room)
        missing = room - excess.sum(axis=1)
        if isinstance(self.lower, int):
            return excess, self._missing_units_by_outcome(excess, missing)
        portion = np.zeros_like(excess)
        for bits, rows in ((16, missing < 1 << 16), (BITS + 1, missing >= 1 << 16)):
            portioned_rows = rows & portioning[:, 0]
            if portioned_rows.any():
                parts = np.where(in_support[portioned_rows], 0, self.portions)
                portion[portioned_rows] = divide_missing_units_by_portions(
                    parts, missing[portioned_rows, None], self.shared_total, bits
                )
        return excess, portion, self._missing_units_by_outcome(excess + portion, missing - portion.sum(axis=1))

    def _missing_units_by_outcome(self, allotment: Integers, missing: Integers) -> Integers:
        """The missing units, for the outcomes that have room, in order."""
        capacity = np.asarray(self.upper) - np.asarray(self.lower)
        fill = np.zeros_like(allotment)
        for row in np.flatnonzero(missing):
            fill[row] = hand_out_units(capacity - allotment[row], int(missing[row]))
        return fill

    def weights(self, laws: Floats, slope: Floats, lift: Floats) -> Integers:
        """W for every row: the exact distribution of the draw."""
        return np.asarray(sum(self.weight_parts(laws, slope, lift)) + self.lower)

    def outcomes_of_integers(
        self,
        laws: Floats,
        slope: Floats,
        lift: Floats,
        uniform: Integers,
    ) -> Integers:
        """The outcome of each uniform integer: the shared part first, then the other parts in their order."""
        uniform_reference = isinstance(self.lower, int)
        outcome_by_row = (
            uniform // self.lower if uniform_reference else np.searchsorted(self.shared_edges, uniform, side="right")
        )
        late_rows = np.flatnonzero(uniform >= self.shared_total)
        parts = self.weight_parts(laws[late_rows], slope[late_rows], lift[late_rows])
        for index, row in enumerate(late_rows):
            rest = int(uniform[row]) - self.shared_total
            for part in parts:
                ends = np.cumsum(part[index])
                if rest < ends[-1]:
                    outcome_by_row[row] = np.searchsorted(ends, rest, side="right")
                    break
                rest -= int(ends[-1])
        return outcome_by_row

    shared = OldName("shared_total")


def _iterate_lower_bound_candidates(exact: Floats, upwards: bool) -> Iterator[Integers]:
    """Integers near the lower bounds, best first.

    Rounding down can cost an outcome e^epsilon units of its upper bound; rounding up costs all outcomes together one unit each. The cheaper
    comes first. If more than a ratio is guaranteed, the shared part must not shrink. A box as thin as rounding itself needs its last bits
    moved.
    """

    def clip_to_integers(values: Floats) -> Integers:
        return np.clip(values, 1.0, float(TOTAL)).astype(np.int64)

    if upwards:
        yield clip_to_integers(np.ceil(exact))
    for units in (0, 1, -1, 2, -2, 4, -4, 8, -8):
        yield clip_to_integers(np.floor(exact * (1.0 + units * 2.0**-52)))
    yield clip_to_integers(np.ceil(exact))


def _number_or_read_only_array(values: Integers) -> int | Integers:
    """One number for a uniform reference, else a read-only array."""
    if values.ndim == 0:
        return int(values)
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values


def round_down_to_float_integers(values: Integers) -> Integers:
    """The largest integers at most these that a float represents exactly: their leading 53 bits."""
    spare = np.maximum(np.frexp(values.astype(np.float64))[1] - 53, 0)
    return np.asarray((values >> spare) << spare)


def hand_out_units(requests: Integers, available: int) -> Integers:
    """The share of each outcome when `available` units are handed out in order, to each at most what it wants."""
    capped_requests = np.minimum(requests, available)
    if float(capped_requests.sum(dtype=np.float64)) < 1.9 * TOTAL:  # the running sum fits 63 bits
        ends = np.minimum(np.cumsum(capped_requests), available)
    else:
        ends = np.minimum(np.cumsum(capped_requests.astype(object)), available).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))


def outcomes(lattice: Lattice, laws: Floats, mixing: Affine | None, uniform: Integers) -> Integers:
    """One outcome for each row of laws (n, k), from one uniform integer each.

    Args:
        lattice: the integer box, of a sampler.
        laws: floats (n, k), a law in each row.
        mixing: of a linear sampler; None: project onto the box.
        uniform: n integers in [0, 2^62).

    Returns:
        n outcome numbers.

    Raises:
        DiscreetError: for rows that are no laws, and for other arguments than these.
    """
    _refuse_wrong_draw_arguments(lattice, laws, mixing, dimensions=2)
    if not isinstance(uniform, np.ndarray) or uniform.dtype != np.int64 or uniform.shape != laws.shape[:1]:
        raise DiscreetError("uniform does not hold one 64-bit integer for each law; pass Randomness.integers(n)")
    return _draw_outcomes_with_slopes_and_lifts(lattice, laws, mixing, uniform, keep_slopes=mixing is not None)[0]


def weights(lattice: Lattice, laws: Floats, mixing: Affine | None) -> Integers:
    """The integers (n, k), each row summing to 2^62, that `outcomes` draws from.

    Args:
        lattice: the integer box, of a sampler.
        laws: floats (n, k), a law in each row.
        mixing: of a linear sampler; None: project onto the box.

    Returns:
        The integers.

    Raises:
        DiscreetError: for rows that are no laws, and for other arguments than these.
    """
    _refuse_wrong_draw_arguments(lattice, laws, mixing, dimensions=2)
    # so that every row is solved
    past_shared = np.full(len(laws), min(lattice.shared_total, TOTAL - 1), dtype=np.int64)
    _, slope, lift = _draw_outcomes_with_slopes_and_lifts(lattice, laws, mixing, past_shared)
    return lattice.weights(laws, slope, lift)


def _refuse_wrong_draw_arguments(lattice: Lattice, laws: Floats, mixing: Affine | None, *, dimensions: int) -> None:
    """Refuse arguments of another kind or shape. What the laws hold is not shown: it is the clients' own."""
    check_kind("lattice", lattice, Lattice, "pass the lattice of a sampler")
    if mixing is not None:
        check_kind("mixing", mixing, Affine, "pass the mixing of a sampler")
    if not isinstance(laws, np.ndarray) or laws.dtype != np.float64 or laws.ndim != dimensions:
        raise DiscreetError(f"the law is not an array of floats with {dimensions} axes; pass numpy.asarray(law, float)")
    if laws.shape[-1] != lattice.box.size:
        raise DiscreetError(f"the law is on {laws.shape[-1]:,} outcomes and the lattice on {lattice.box.size:,}")


def _draw_outcomes_with_slopes_and_lifts(
    lattice: Lattice, laws: Floats, mixing: Affine | None, uniform: Integers, *, keep_slopes: bool = True
) -> tuple[Integers, Floats, Floats]:
    """Outcomes, slopes and lifts (the latter empty unless `keep_slopes`).

    A row that falls on the shared part is not solved; its slope is infinite.
    """
    laws = np.ascontiguousarray(laws)  # as the compiled code requires
    row_count = len(laws) if keep_slopes else 0
    slope = np.full(row_count, np.inf if mixing is None else mixing.slope)
    lift = np.full(row_count, 0.0 if mixing is None else mixing.lift)
    out = np.empty(len(laws), dtype=np.int64)
    is_compiled = should_use_compiled_code(estimated_numpy_seconds(laws.size))
    draw = (
        import_module("discreet.release._compiled").store_outcomes_of_laws
        if is_compiled
        else _store_outcomes_of_laws_in_numpy
    )
    bad = draw(lattice, laws, mixing is None, slope, lift, uniform, out)
    if bad >= 0:
        raise_error_for_bad_row(laws, bad)
    if out.size and out.min() < 0:
        raise DiscreetError("p changed while it was being read; nothing was released: pass a copy")
    return out, slope, lift


def _store_outcomes_of_laws_in_numpy(
    lattice: Lattice,
    laws: Floats,
    projecting: bool,
    slope: Floats,
    lift: Floats,
    uniform: Integers,
    out: Integers,
) -> int:
    """As `_compiled.store_outcomes_of_laws`: the same distribution, and the same outcome for the same integer."""
    for rows in row_slices_within_memory(*laws.shape):
        bad = first_invalid_row(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        row_slopes, row_lifts = (
            _solve_projection_slopes_and_lifts(lattice, laws[rows]) if projecting else (slope[rows], lift[rows])
        )
        if slope.size:
            slope[rows], lift[rows] = row_slopes, row_lifts
        out[rows] = lattice.outcomes_of_integers(laws[rows], row_slopes, row_lifts, uniform[rows])
    return -1


def _solve_projection_slopes_and_lifts(lattice: Lattice, laws: Floats) -> tuple[Floats, Floats]:
    """(slope, lift) for each row.

    Over a reference that is not uniform, the mass of outcomes outside the support is summed in integers, so that the order of summation does
    not matter. Integers also decide whether all held outcomes fit at their ceilings, where no slope exists.
    """
    box = lattice.box
    if isinstance(lattice.lower, int):
        return solve_slopes_and_lifts(laws, box.lower, box.ceiling)
    in_support = laws > NEGLIGIBLE
    outside_floor = (lattice.shared_total - np.where(in_support, lattice.lower, 0).sum(axis=1)).astype(
        np.float64
    ) / TOTAL
    slope, lift = np.full(len(laws), np.inf), np.zeros(len(laws))
    rows = ~are_row_sums_at_most(
        np.where(in_support, np.asarray(lattice.upper) - lattice.lower, 0), TOTAL - lattice.shared_total
    )
    if rows.any():
        slope[rows], lift[rows] = solve_slopes_and_lifts_on_support(
            laws[rows], np.asarray(box.lower), np.asarray(box.ceiling), outside_floor[rows]
        )
    return slope, lift


# a product of either with a mass above NEGLIGIBLE neither vanishes nor overflows
_LOWEST, _HIGHEST = np.float64(2.0**-64), np.float64(2.0**960)
_HALVINGS = 63  # the bits of the two differ by less than 2^63


def outcome_in_constant_time(lattice: Lattice, law: Floats, mixing: Affine | None, uniform: int) -> int:
    """The outcome that a uniform integer falls on for one law (k,).

    Args:
        lattice: the integer box, of a sampler.
        law: floats (k,).
        mixing: of a linear sampler; None: project onto the box.
        uniform: an integer in [0, 2^62).

    Returns:
        The outcome number.

    Raises:
        DiscreetError: for what is no law, and for other arguments than these.
    """
    _refuse_wrong_draw_arguments(lattice, law, mixing, dimensions=1)
    uniform = check_count("uniform", uniform, least=0, most=TOTAL - 1)
    if not rows_are_laws(law[None, :])[0]:
        raise_error_for_bad_row(law[None, :], 0)
    rest = np.int64(uniform - lattice.shared_total)
    part_index = np.int64(rest >= 0)
    part_outcomes = [np.count_nonzero(np.cumsum(np.broadcast_to(lattice.lower, law.shape)) <= uniform)]
    for part in weight_parts_in_constant_time(lattice, law, mixing):
        ends = np.cumsum(part)
        part_outcomes.append(np.count_nonzero(ends <= rest))
        rest = rest - ends[-1]
        part_index = part_index + np.int64(rest >= 0)
    return int(np.array(part_outcomes)[np.minimum(part_index, len(part_outcomes) - 1)])


def weight_parts_in_constant_time(lattice: Lattice, law: Floats, mixing: Affine | None) -> tuple[Integers, ...]:
    """The parts added to L, as `Lattice.weight_parts` of one row: the excess, the portions unless the reference is uniform, the fill."""
    mass = np.where(law > NEGLIGIBLE, law, 0.0)
    portioning = mixing is None and not isinstance(lattice.lower, int)
    slope, lift = (
        _solve_slope_and_lift_in_constant_time(lattice, mass)
        if mixing is None
        else (np.float64(mixing.slope), np.float64(mixing.lift))
    )
    lift = np.float64(0.0) if portioning else lift
    value = mass * (slope * TOTAL) + (lift * np.asarray(lattice.box.lower)) * TOTAL
    low, high = np.asarray(lattice.lower, dtype=np.float64), np.asarray(lattice.upper, dtype=np.float64)
    requests = np.fmin(np.fmax(low, value), high).astype(np.int64) - np.asarray(lattice.lower)
    excess = _hand_out_units_in_constant_time(requests, np.int64(TOTAL - lattice.shared_total))
    missing = np.int64(TOTAL - lattice.shared_total) - excess.sum()
    capacity = np.asarray(lattice.upper) - np.asarray(lattice.lower)
    if not portioning:
        return excess, _hand_out_units_in_constant_time(capacity - excess, missing)
    portion = divide_missing_units_by_portions(
        np.where(mass > 0.0, 0, lattice.portions), np.array([missing]), lattice.shared_total
    )
    return excess, portion, _hand_out_units_in_constant_time(capacity - excess - portion, missing - portion.sum())


def _solve_slope_and_lift_in_constant_time(lattice: Lattice, mass: Floats) -> tuple[np.float64, np.float64]:
    """(slope, lift) of the projection."""
    lower, ceiling = lattice.box.lower, lattice.box.ceiling
    low, high = np.array(_LOWEST.view(np.int64)), np.array(_HIGHEST.view(np.int64))
    value = np.empty_like(mass)
    for _ in range(_HALVINGS):
        middle = np.asarray(low + (high - low) // 2)
        np.multiply(mass, middle.view(np.float64), out=value)
        np.minimum(np.maximum(value, lower, out=value), ceiling, out=value)
        enough = value.sum() >= 1.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    in_support = mass > 0.0
    upper = np.where(in_support, lattice.box.upper, 0.0).sum()
    outside_floor = np.where(in_support, 0.0, lower).sum()
    lift = np.maximum(0.0, 1.0 - upper) / np.maximum(outside_floor, NEGLIGIBLE)
    # no slope exists: the ceiling on the support, a multiple of the floor elsewhere
    is_saturated = upper + outside_floor < 1.0
    return np.float64(high.view(np.float64)), np.float64(np.where(is_saturated, lift, 0.0))


def _hand_out_units_in_constant_time(requests: Integers, available: np.int64) -> Integers:
    """The share of each outcome when `available` units are handed out in order: `hand_out_units` without branches."""
    low = np.cumsum(requests & _MASK)
    high = np.cumsum(requests >> _HALF) + (low >> _HALF)
    over = high > (available >> _HALF)
    ends = (np.where(over, 0, high) << _HALF) + (low & _MASK)
    ends = np.where(over, available, np.minimum(ends, available))
    return np.asarray(np.diff(ends, prepend=np.int64(0)))
