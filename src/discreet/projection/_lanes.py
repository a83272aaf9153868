"""Sums in the order that `breakpoints` defines, in vector instructions, for compiled code.

A compiler may not change the order of a floating-point sum; told that it may, it picks one for the processor at hand, and
the last bit then depends on the machine. So the vectors are written out here, as instructions of LLVM: lane i of one vector of
eight takes numbers i, i + 8, i + 16, ..., and at the end the lanes are added by halves. Any processor gives the same bits.
"""

from collections.abc import Callable
from typing import Any

import numba.core.cgutils
import numba.core.types
from llvmlite import ir
from numba.extending import intrinsic

from discreet.projection._breakpoints import LANES

cgutils: Any = numba.core.cgutils  # without types of their own
_types: Any = numba.core.types
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)
_ONE = ir.Constant(_VECTOR, [1.0] * LANES)
_PLACE = ir.IntType(32)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_PLACES = ir.Constant(ir.VectorType(_PLACE, LANES), list(range(LANES)))

Terms = Callable[[Any, list[Any]], list[Any]]  # (builder, vectors of numbers) -> what each sum takes


def _is_line(kind: Any) -> bool:
    """Whether a type is that of numbers that lie one after the other in memory."""
    return isinstance(kind, _types.Array) and kind.ndim == 1 and kind.layout in "CF" and kind.dtype == _types.float64


def _sums(
    context: Any, builder: Any, kinds: Any, values: Any, start: Any, stop: Any, sums: int, terms: Terms
) -> list[Any]:
    """Sums over start <= place < stop of what `terms` makes of the operands there. An operand is a line or one number."""
    lines = {
        number: context.make_array(kind)(context, builder, values[number]).data
        for number, kind in enumerate(kinds)
        if isinstance(kind, _types.Array)
    }
    vectors = [cgutils.alloca_once(builder, _VECTOR) for _ in range(sums)]
    for vector in vectors:
        builder.store(_NOTHING, vector)

    def operands(place: Any) -> list[Any]:
        found = []
        for number, value in enumerate(values):
            if number in lines:
                where = builder.bitcast(builder.gep(lines[number], [place]), _VECTOR.as_pointer())
                found.append(builder.load(where, align=8))
            else:
                found.append(_splat(builder, value))
        return found

    rest = builder.srem(builder.sub(stop, start), ir.Constant(stop.type, LANES))
    whole = builder.sub(stop, rest)
    with cgutils.for_range_slice(builder, start, whole, ir.Constant(start.type, LANES)) as (place, _):
        for vector, more in zip(vectors, terms(builder, operands(place)), strict=True):
            builder.store(builder.fadd(builder.load(vector), more), vector)
    with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(rest.type, 0))):
        there = builder.icmp_signed("<", _PLACES, _splat(builder, builder.trunc(rest, _PLACE), _PLACE))
        last = [
            _masked_load(builder, lines[number], whole, there) if number in lines else _splat(builder, value)
            for number, value in enumerate(values)
        ]
        for vector, more in zip(vectors, terms(builder, last), strict=True):
            builder.store(builder.fadd(builder.load(vector), builder.select(there, more, _NOTHING)), vector)
    return [_add_lanes(builder, builder.load(vector)) for vector in vectors]


def _masked_load(builder: Any, line: Any, first: Any, there: Any) -> Any:
    """The numbers of a line from `first` on that are `there`, zeros for the others, whose memory is not looked at."""
    where = builder.bitcast(builder.gep(line, [first]), _VECTOR.as_pointer())
    kinds = [where.type, _PLACE, _MASK, _VECTOR]
    load = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, kinds), "llvm.masked.load.v8f64.p0")
    return builder.call(load, [where, ir.Constant(_PLACE, 8), there, _NOTHING])


def _splat(builder: Any, number: Any, kind: Any = _DOUBLE) -> Any:
    vector = ir.Constant(ir.VectorType(kind, LANES), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def _add_lanes(builder: Any, vector: Any) -> Any:
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [builder.fadd(one, other) for one, other in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


def _build_clipped_and_middle(typing: Any, mass: Any, start: Any, stop: Any, slope: Any, lower: Any, upper: Any) -> Any:
    """(the bounds of the clipped outcomes, summed; the mass of the others) of mass[start:stop]."""
    if not _is_line(mass) or not all(_is_line(bound) or bound == _types.float64 for bound in (lower, upper)):
        return None
    kinds = (mass, _types.float64, lower, upper)
    signature = _types.UniTuple(_types.float64, 2)(mass, _types.intp, _types.intp, _types.float64, lower, upper)

    def terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, slopes, low, high = operands
        value = builder.fmul(slopes, masses)
        inside = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        inside = builder.select(builder.fcmp_ordered(">", inside, high), high, inside)
        unclipped = builder.fcmp_ordered("==", inside, value)
        return [builder.select(unclipped, _NOTHING, inside), builder.select(unclipped, masses, _NOTHING)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        return context.make_tuple(
            builder, signature.return_type, _sums(context, builder, kinds, values, first, end, 2, terms)
        )

    return signature, generate


def _build_mass_above(typing: Any, mass: Any, start: Any, stop: Any, slope: Any, lower: Any) -> Any:
    """(the sum of those of mass[start:stop] that times the slope exceed `lower`; how many they are)."""
    if not _is_line(mass):
        return None
    kinds = (mass, _types.float64, _types.float64)
    signature = _types.UniTuple(_types.float64, 2)(mass, _types.intp, _types.intp, _types.float64, _types.float64)

    def terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, slopes, low = operands
        exceeds = builder.fcmp_ordered(">", builder.fmul(slopes, masses), low)
        return [builder.select(exceeds, masses, _NOTHING), builder.select(exceeds, _ONE, _NOTHING)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        return context.make_tuple(
            builder, signature.return_type, _sums(context, builder, kinds, values, first, end, 2, terms)
        )

    return signature, generate


def _build_law_sums(typing: Any, mass: Any, start: Any, stop: Any, negligible: Any, lower: Any) -> Any:
    """Of mass[start:stop]: the sum; how many are negative; how many exceed `negligible`; and as `_build_mass_above` at slope one."""
    if not _is_line(mass):
        return None
    kinds = (mass, _types.float64, _types.float64)
    signature = _types.UniTuple(_types.float64, 5)(mass, _types.intp, _types.intp, _types.float64, _types.float64)

    def terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, least, low = operands
        negative = builder.fcmp_ordered("<", masses, _NOTHING)
        held, exceeds = (builder.fcmp_ordered(">", masses, bound) for bound in (least, low))
        chosen = ((negative, _ONE), (held, _ONE), (exceeds, masses), (exceeds, _ONE))
        return [masses, *(builder.select(which, what, _NOTHING) for which, what in chosen)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        return context.make_tuple(
            builder, signature.return_type, _sums(context, builder, kinds, values, first, end, 5, terms)
        )

    return signature, generate


clipped_and_middle: Any = intrinsic(_build_clipped_and_middle)
mass_above: Any = intrinsic(_build_mass_above)
law_sums: Any = intrinsic(_build_law_sums)
