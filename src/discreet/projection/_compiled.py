"""The projection in numba: one pass over memory, branch-free inner loops, rows shared among threads.

It has the same functions as the solver in numpy (`_box`), with the same results, bit for bit: the order of every sum that a result depends
on is defined there.

A compiler may not change the order of a floating-point sum. If it were allowed to, it would choose one for the processor at hand, and the
last bit would depend on the machine. So the vectors are written out here as LLVM instructions: lane i of one vector of eight takes numbers i,
i + 8, i + 16, ..., and at the end the lanes are added by halves. Every processor gives the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from discreet._base.kernels import ModuleOnUse, intrinsic, kernel, overload, run_on_row_slices
from discreet.families import SUM_TOLERANCE
from discreet.projection._box import (
    BEYOND,
    BLOCK,
    FARTHEST,
    LANES,
    NARROW,
    NEGLIGIBLE,
    NEWTON_STEPS,
    PAST,
    PATIENT,
    ROUNDING,
    SETTLED,
)

Floats = NDArray[np.float64]
Bound = float | Floats
cgutils: Any = ModuleOnUse("numba.core.cgutils")
types: Any = ModuleOnUse("numba.core.types")
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)
_ONE = ir.Constant(_VECTOR, [1.0] * LANES)
_PLACE = ir.IntType(32)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_PLACES = ir.Constant(ir.VectorType(_PLACE, LANES), list(range(LANES)))

Terms = Callable[[Any, list[Any]], list[Any]]  # (builder, vectors of numbers) -> the terms of each sum


def _is_contiguous_array(kind: Any) -> bool:
    """Whether a type is a contiguous array of numbers."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout in "CF" and kind.dtype == types.float64


def _build_code_of_sums(
    context: Any, builder: Any, kinds: Any, values: Any, start: Any, stop: Any, sums: int, terms: Terms
) -> list[Any]:
    """Sums over start <= index < stop of the `terms` of the operands there. An operand is an array or one number."""
    pointers = {
        number: context.make_array(kind)(context, builder, values[number]).data
        for number, kind in enumerate(kinds)
        if isinstance(kind, types.Array)
    }
    vectors = [cgutils.alloca_once(builder, _VECTOR) for _ in range(sums)]
    for vector in vectors:
        builder.store(_NOTHING, vector)

    def load_operands(index: Any) -> list[Any]:
        operands = []
        for number, value in enumerate(values):
            if number in pointers:
                address = builder.bitcast(builder.gep(pointers[number], [index]), _VECTOR.as_pointer())
                operands.append(builder.load(address, align=8))
            else:
                operands.append(_repeat_in_vector(builder, value))
        return operands

    rest = builder.srem(builder.sub(stop, start), ir.Constant(stop.type, LANES))
    whole_end = builder.sub(stop, rest)
    with cgutils.for_range_slice(builder, start, whole_end, ir.Constant(start.type, LANES)) as (index, _):
        for vector, addend in zip(vectors, terms(builder, load_operands(index)), strict=True):
            builder.store(builder.fadd(builder.load(vector), addend), vector)
    with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(rest.type, 0))):
        lane_mask = builder.icmp_signed("<", _PLACES, _repeat_in_vector(builder, builder.trunc(rest, _PLACE), _PLACE))
        last_operands = [
            _masked_load(builder, pointers[number], whole_end, lane_mask)
            if number in pointers
            else _repeat_in_vector(builder, value)
            for number, value in enumerate(values)
        ]
        for vector, addend in zip(vectors, terms(builder, last_operands), strict=True):
            builder.store(builder.fadd(builder.load(vector), builder.select(lane_mask, addend, _NOTHING)), vector)
    return [_add_lanes(builder, builder.load(vector)) for vector in vectors]


def _masked_load(builder: Any, pointer: Any, first: Any, lane_mask: Any) -> Any:
    """The numbers of an array from `first` on where `lane_mask` is set, zeros elsewhere, whose memory is not read."""
    address = builder.bitcast(builder.gep(pointer, [first]), _VECTOR.as_pointer())
    kinds = [address.type, _PLACE, _MASK, _VECTOR]
    load = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, kinds), "llvm.masked.load.v8f64.p0")
    return builder.call(load, [address, ir.Constant(_PLACE, 8), lane_mask, _NOTHING])


def _repeat_in_vector(builder: Any, number: Any, kind: Any = _DOUBLE) -> Any:
    vector = ir.Constant(ir.VectorType(kind, LANES), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def _add_lanes(builder: Any, vector: Any) -> Any:
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [builder.fadd(low, high) for low, high in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


def _sum_code_generator(kinds: Any, number: int, terms: Any) -> Any:
    """What generates the code of so many sums over mass[start:stop]."""

    def generate_sums(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        sums = _build_code_of_sums(context, builder, kinds, values, first, end, number, terms)
        return context.make_tuple(builder, signature.return_type, sums)

    return generate_sums


def _build_clipped_and_unclipped_sums(
    typing: Any, mass: Any, start: Any, stop: Any, slope: Any, lower: Any, upper: Any
) -> Any:
    """(the sum of the bounds of the clipped outcomes; the mass of the others) of mass[start:stop]."""
    if not _is_contiguous_array(mass) or not all(
        _is_contiguous_array(bound) or bound == types.float64 for bound in (lower, upper)
    ):
        return None
    kinds = (mass, types.float64, lower, upper)
    signature = types.UniTuple(types.float64, 2)(mass, types.intp, types.intp, types.float64, lower, upper)

    def clipped_and_unclipped_terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, slopes, low, high = operands
        value = builder.fmul(slopes, masses)
        output = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        output = builder.select(builder.fcmp_ordered(">", output, high), high, output)
        is_unclipped = builder.fcmp_ordered("==", output, value)
        return [builder.select(is_unclipped, _NOTHING, output), builder.select(is_unclipped, masses, _NOTHING)]

    return signature, _sum_code_generator(kinds, 2, clipped_and_unclipped_terms)


def _make_intrinsic_of_sums(number: int, terms: Terms) -> Any:
    """An intrinsic of (mass, start, stop, first, second): so many sums over mass[start:stop], beside two numbers."""

    def build_sums_over_mass(typing: Any, mass: Any, start: Any, stop: Any, first: Any, second: Any) -> Any:
        if not _is_contiguous_array(mass):
            return None
        kinds = (mass, types.float64, types.float64)
        signature = types.UniTuple(types.float64, number)(mass, types.intp, types.intp, *kinds[1:])
        return signature, _sum_code_generator(kinds, number, terms)

    return intrinsic(build_sums_over_mass)


def _build_terms_above_bound(builder: Any, operands: list[Any]) -> list[Any]:
    """The masses that exceed a bound after multiplication by a slope, and their number."""
    masses, slopes, low = operands
    exceeds = builder.fcmp_ordered(">", builder.fmul(slopes, masses), low)
    return [builder.select(exceeds, masses, _NOTHING), builder.select(exceeds, _ONE, _NOTHING)]


def _build_terms_to_inspect_law(builder: Any, operands: list[Any]) -> list[Any]:
    """The masses; how many are negative, and how many exceed a least mass; and as `_build_terms_above_bound` at slope one."""
    masses, least, low = operands
    negative = builder.fcmp_ordered("<", masses, _NOTHING)
    in_support, exceeds = (builder.fcmp_ordered(">", masses, bound) for bound in (least, low))
    selections = ((negative, _ONE), (in_support, _ONE), (exceeds, masses), (exceeds, _ONE))
    return [masses, *(builder.select(mask, term, _NOTHING) for mask, term in selections)]


clipped_and_unclipped_sums: Any = intrinsic(_build_clipped_and_unclipped_sums)
mass_and_count_above: Any = _make_intrinsic_of_sums(2, _build_terms_above_bound)
law_sums: Any = _make_intrinsic_of_sums(5, _build_terms_to_inspect_law)


def bound_at(bound: Any, outcome: Any) -> Any:
    """bound[outcome], or the bound itself if it is one number (a uniform reference)."""
    return bound[outcome] if np.ndim(bound) else bound


@overload(bound_at, inline="always")
def _bound_at_overload(bound: Any, outcome: Any) -> Any:
    def bound_of_outcome(bound: Any, outcome: Any) -> Any:
        return bound[outcome]

    def same_bound(bound: Any, outcome: Any) -> Any:
        return bound

    return bound_of_outcome if isinstance(bound, types.Array) else same_bound


def _uniform_bound_or_infinity(bound: Any) -> Any:
    """The bound if it is one number; infinity if there is one for each outcome."""
    raise TypeError("_uniform_bound_or_infinity is called from compiled code")


@overload(_uniform_bound_or_infinity, inline="always")
def _uniform_bound_or_infinity_overload(bound: Any) -> Any:
    def infinite_bound(bound: Any) -> Any:
        return np.inf

    def same_bound(bound: Any) -> Any:
        return bound

    return infinite_bound if isinstance(bound, types.Array) else same_bound


@kernel(error_model="numpy")
def support_size_and_mass_above(p: Any, lower: Any) -> tuple[int, float, float]:
    """(the size of a row's support, 0 if it is not a distribution; how many entries exceed a uniform bound, and their mass, to start
    `solve_slope_and_lift`).

    A distribution has no negative entry and sums to one; NaN fails this.
    """
    least = _uniform_bound_or_infinity(lower)
    total, negative, support_size, above, number = law_sums(p, 0, min(p.size, BLOCK), NEGLIGIBLE, least)
    for start in range(BLOCK, p.size, BLOCK):
        block_sums = law_sums(p, start, min(start + BLOCK, p.size), NEGLIGIBLE, least)
        total += block_sums[0]
        negative += block_sums[1]
        support_size += block_sums[2]
        above += block_sums[3]
        number += block_sums[4]
    good = negative == 0.0 and abs(total - 1.0) <= SUM_TOLERANCE
    return (int(support_size) if good else 0), number, above


@kernel(error_model="numpy")
def _clipped_bounds_and_unclipped_mass(mass: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    """The sum of the bounds of the clipped outcomes, and the mass of the others; by blocks, so that long sums stay accurate."""
    clipped_mass, middle = clipped_and_unclipped_sums(mass, 0, min(mass.size, BLOCK), slope, lower, upper)
    for start in range(BLOCK, mass.size, BLOCK):
        block_sums = clipped_and_unclipped_sums(mass, start, min(start + BLOCK, mass.size), slope, lower, upper)
        clipped_mass += block_sums[0]
        middle += block_sums[1]
    return clipped_mass, middle


@kernel(error_model="numpy")
def _nearest_breakpoints(mass: Any, slope: float, lower: Any, upper: Any) -> tuple[float, float]:
    """The nearest breakpoints on either side of a slope: 0 or infinity if there is none."""
    below, above = 0.0, np.inf
    for index in range(mass.size):
        if mass[index] > NEGLIGIBLE:
            if slope * mass[index] < bound_at(lower, index):
                above = min(above, bound_at(lower, index) / mass[index])
            elif slope * mass[index] > bound_at(upper, index):
                below = max(below, bound_at(upper, index) / mass[index])
    return below, above


@kernel(error_model="numpy")
def _lift_of_outcomes_without_mass(mass: Any, outside_floor: float, lower: Any, upper: Any) -> float:
    """The multiple of `lower` for outcomes without mass if those with mass are all clipped from above."""
    support_ceiling = 0.0
    for index in range(mass.size):
        if mass[index] > NEGLIGIBLE:
            support_ceiling += bound_at(upper, index)
        else:
            outside_floor += bound_at(lower, index)
    return (1.0 - support_ceiling) / outside_floor if outside_floor > 0.0 else 0.0


@kernel(error_model="numpy")
def solve_slope_and_lift_on_support(mass: Any, outside_floor: float, lower: Any, upper: Any) -> tuple[float, float]:
    """(slope, lift) of one row, from the listed outcomes and the sum `outside_floor` of the lower bounds of the others.

    Newton's method, kept between the largest slope known to be too small and the smallest known to be too large. Where it would leave them,
    or meets a flat piece, it halves the distance instead, so that it cannot cycle.
    """
    slope, too_small, too_large, stretch = 1.0, 0.0, np.inf, 1.0 + PAST
    for turn in range(NEWTON_STEPS):
        clipped_mass, middle = _clipped_bounds_and_unclipped_mass(mass, slope, lower, upper)
        clipped_mass += outside_floor
        step = (1.0 - clipped_mass) / middle if middle > NEGLIGIBLE else np.inf
        excess = clipped_mass + slope * middle - 1.0
        if middle > NEGLIGIBLE and (abs(step - slope) <= SETTLED * slope or abs(excess) <= ROUNDING):
            return (step if abs(step - slope) <= SUM_TOLERANCE * slope else slope), 0.0
        if excess > 0.0:
            too_large = slope
        else:
            too_small = slope
        is_bracketed = too_small > 0.0 and too_large < np.inf
        if middle <= NEGLIGIBLE:
            below, above = _nearest_breakpoints(mass, slope, lower, upper)
            if abs(excess) <= ROUNDING:  # a flat piece at height one: its near end
                return (below if below > 0.0 else slope), 0.0
            if excess < 0.0 and above == np.inf:
                return np.inf, _lift_of_outcomes_without_mass(mass, outside_floor, lower, upper)
            step = below / stretch if excess > 0.0 else min(above * stretch, BEYOND)
            stretch = min(max(2.0, stretch * stretch), FARTHEST)  # beyond the next breakpoint, and further each time
        elif step <= 0.0:
            step = 0.5 * slope
        halving = turn >= PATIENT and turn % 2 == 1
        if is_bracketed and (halving or middle <= NEGLIGIBLE or not too_small < step < too_large):
            step = np.sqrt(too_small) * np.sqrt(too_large)
        slope = step
    return slope, 0.0


@kernel(error_model="numpy")
def _number_and_mass_above(mass: Any, slope: float, lower: float) -> tuple[float, float]:
    """The number and the sum of masses that are not clipped from below; by blocks, so that long sums stay accurate."""
    total, number = mass_and_count_above(mass, 0, min(mass.size, BLOCK), slope, lower)
    for start in range(BLOCK, mass.size, BLOCK):
        block_sums = mass_and_count_above(mass, start, min(start + BLOCK, mass.size), slope, lower)
        total += block_sums[0]
        number += block_sums[1]  # a whole number: exact in any order
    return number, total


@kernel(error_model="numpy")
def _unclipped_masses(mass: Any, slope: float, lower: float, at_most: float) -> Any:
    """The masses that are not clipped from below, at most `at_most` of them, as found at a larger slope."""
    last = int(at_most)
    masses = np.empty(last + 1)
    number = 0
    for index in range(mass.size):  # always write, advance only past unclipped masses: no branch
        masses[min(number, last)] = mass[index]  # more than at_most only if the caller's array changed meanwhile
        number += slope * mass[index] > lower
    return masses[: min(number, last)]


@kernel(error_model="numpy")
def _solve_slope_without_ceiling(mass: Any, outside_count: int, lower: float, above: float, total: float) -> float:
    """The slope if nothing can be clipped from above, from the number of masses above `lower` and their sum.

    Newton's method then only goes down, so that an outcome once clipped from below stays so and need not be visited again. The total cost is
    little more than two passes, for any number of steps.
    """
    slope = 1.0
    for turn in range(NEWTON_STEPS):
        if turn:
            above, total = _number_and_mass_above(mass, slope, lower)
        if not total > NEGLIGIBLE:
            break
        step = (1.0 - (outside_count + mass.size - above) * lower) / total
        if not 0.0 < step < slope * (1.0 - SETTLED):
            return step if abs(step - slope) <= SUM_TOLERANCE * slope else slope
        slope = step
        if mass.size > NARROW:
            unclipped_masses = _unclipped_masses(mass, slope, lower, above)
            outside_count += mass.size - unclipped_masses.size
            mass = unclipped_masses
    return slope


@kernel(error_model="numpy")
def solve_slope_and_lift_over_uniform(mass: Any, outside_count: int, lower: float, upper: float) -> tuple[float, float]:
    """(slope, lift) over a uniform reference, from the masses of the support in order and the number of other outcomes.

    So a client given as k numbers and as its few distinct values has one slope, bit for bit.
    """
    if upper == np.inf:
        above, total = _number_and_mass_above(mass, 1.0, lower)
        return _solve_slope_without_ceiling(mass, outside_count, lower, above, total), 0.0
    return solve_slope_and_lift_on_support(mass, outside_count * lower, lower, upper)


def solve_slope_and_lift(p: Any, support: tuple[int, float, float], lower: Any, upper: Any) -> Any:
    """(slope, lift) of one row that `support_size_and_mass_above` has checked: one of the two functions below, by the kind of bounds."""
    raise TypeError("solve_slope_and_lift is called from compiled code; from Python use Box.project or Box.scale")


@overload(solve_slope_and_lift)
def _solve_slope_and_lift_overload(p: Any, support: tuple[int, float, float], lower: Any, upper: Any) -> Any:
    def solve_over_uniform_reference(
        p: Any, support: tuple[int, float, float], lower: Any, upper: Any
    ) -> tuple[float, float]:
        support_size, above, total = support
        if support_size == p.size and upper == np.inf:
            return _solve_slope_without_ceiling(p, 0, lower, above, total), 0.0
        if support_size == p.size:
            return solve_slope_and_lift_over_uniform(p, 0, lower, upper)
        mass = np.empty(support_size)
        position = 0
        for x in range(p.size):
            if p[x] > NEGLIGIBLE and position < support_size:
                mass[position] = p[x]
                position += 1
        return solve_slope_and_lift_over_uniform(mass, p.size - support_size, lower, upper)

    def solve_over_any_reference(
        p: Any, support: tuple[int, float, float], lower: Any, upper: Any
    ) -> tuple[float, float]:
        return solve_slope_and_lift_on_support(p, 0.0, lower, upper)

    return solve_over_any_reference if isinstance(lower, types.Array) else solve_over_uniform_reference


@kernel(error_model="numpy")
def _fill_affine_law(p: Any, slope: float, lift: float, lower: Any, upper: Any, out: Any) -> None:
    if slope < np.inf:
        for x in range(p.size):
            low = bound_at(lower, x)
            out[x] = min(max(slope * p[x] + lift * low, low), bound_at(upper, x))
    else:
        for x in range(p.size):
            low = bound_at(lower, x)
            off_support = min(max(lift * low, low), bound_at(upper, x))
            out[x] = bound_at(upper, x) if p[x] > NEGLIGIBLE else off_support


@kernel(error_model="numpy", nogil=True)
def _solve_and_fill_rows(
    laws: Any, lower: Any, upper: Any, ceiling: Any, projecting: bool, slope: Any, lift: Any, out: Any
) -> int:
    for row in range(len(laws)):
        support = support_size_and_mass_above(laws[row], lower)
        if support[0] == 0:
            return row
        if projecting:
            slope[row], lift[row] = solve_slope_and_lift(laws[row], support, lower, ceiling)
        if row < len(out):
            _fill_affine_law(laws[row], slope[row], lift[row], lower, upper, out[row])
    return -1


def solve_and_fill_affine_laws(
    laws: Floats, lower: Bound, upper: Bound, ceiling: Bound, projecting: bool, slope: Floats, lift: Floats, out: Floats
) -> int:
    """As `discreet.projection._box.solve_and_fill_affine_laws`."""

    def solve_and_fill_slice(rows: slice) -> int:
        return int(
            _solve_and_fill_rows(laws[rows], lower, upper, ceiling, projecting, slope[rows], lift[rows], out[rows])
        )

    return run_on_row_slices(solve_and_fill_slice, len(laws), laws.size)
