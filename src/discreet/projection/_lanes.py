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
types: Any = numba.core.types
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)

Terms = Callable[[Any, list[Any]], list[Any]]  # (builder, numbers or vectors of them) -> what each sum takes


def _is_line(kind: Any) -> bool:
    """Whether a type is that of numbers that lie one after the other in memory."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout in "CF" and kind.dtype == types.float64


def _sums(
    context: Any, builder: Any, kinds: Any, values: Any, start: Any, stop: Any, sums: int, terms: Terms
) -> list[Any]:
    """Sums over start <= place < stop of what `terms` makes of the operands there. An operand is a line or one number."""
    lines = {
        number: context.make_array(kind)(context, builder, values[number]).data
        for number, kind in enumerate(kinds)
        if isinstance(kind, types.Array)
    }
    vectors = [cgutils.alloca_once(builder, _VECTOR) for _ in range(sums)]
    for vector in vectors:
        builder.store(ir.Constant(_VECTOR, [0.0] * LANES), vector)

    def operands(place: Any, wide: bool) -> list[Any]:
        found = []
        for number, value in enumerate(values):
            if number in lines:
                where = builder.gep(lines[number], [place])
                if wide:
                    where = builder.bitcast(where, _VECTOR.as_pointer())
                found.append(builder.load(where, align=8))
            else:
                found.append(_spread(builder, value) if wide else value)
        return found

    rest = builder.srem(builder.sub(stop, start), ir.Constant(stop.type, LANES))
    whole = builder.sub(stop, rest)
    with cgutils.for_range_slice(builder, start, whole, ir.Constant(start.type, LANES)) as (place, _):
        for vector, more in zip(vectors, terms(builder, operands(place, True)), strict=True):
            builder.store(builder.fadd(builder.load(vector), more), vector)
    with cgutils.for_range(builder, rest) as loop:
        place = builder.add(whole, loop.index)
        for vector, more in zip(vectors, terms(builder, operands(place, False)), strict=True):
            lane = builder.gep(builder.bitcast(vector, _DOUBLE.as_pointer()), [loop.index])
            builder.store(builder.fadd(builder.load(lane), more), lane)
    return [_together(builder, builder.load(vector)) for vector in vectors]


def _spread(builder: Any, number: Any) -> Any:
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def _together(builder: Any, vector: Any) -> Any:
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [builder.fadd(one, other) for one, other in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


def _clipped_and_middle(typing: Any, mass: Any, start: Any, stop: Any, slope: Any, lower: Any, upper: Any) -> Any:
    """(the bounds of the clipped outcomes, summed; the mass of the others) of mass[start:stop]."""
    if not _is_line(mass) or not all(_is_line(bound) or bound == types.float64 for bound in (lower, upper)):
        return None
    kinds = (mass, types.float64, lower, upper)
    signature = types.UniTuple(types.float64, 2)(mass, types.intp, types.intp, types.float64, lower, upper)

    def terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, slopes, low, high = operands
        nothing = ir.Constant(masses.type, [0.0] * LANES if masses.type == _VECTOR else 0.0)
        value = builder.fmul(slopes, masses)
        inside = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        inside = builder.select(builder.fcmp_ordered(">", inside, high), high, inside)
        unclipped = builder.fcmp_ordered("==", inside, value)
        return [builder.select(unclipped, nothing, inside), builder.select(unclipped, masses, nothing)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        return context.make_tuple(
            builder, signature.return_type, _sums(context, builder, kinds, values, first, end, 2, terms)
        )

    return signature, generate


def _mass_above(typing: Any, mass: Any, start: Any, stop: Any, slope: Any, lower: Any) -> Any:
    """The sum of those of mass[start:stop] that times the slope exceed `lower`."""
    if not _is_line(mass):
        return None
    kinds = (mass, types.float64, types.float64)
    signature = types.float64(mass, types.intp, types.intp, types.float64, types.float64)

    def terms(builder: Any, operands: list[Any]) -> list[Any]:
        masses, slopes, low = operands
        nothing = ir.Constant(masses.type, [0.0] * LANES if masses.type == _VECTOR else 0.0)
        exceeds = builder.fcmp_ordered(">", builder.fmul(slopes, masses), low)
        return [builder.select(exceeds, masses, nothing)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, first, end = [arguments[0], *arguments[3:]], arguments[1], arguments[2]
        return _sums(context, builder, kinds, values, first, end, 1, terms)[0]

    return signature, generate


clipped_and_middle: Any = intrinsic(_clipped_and_middle)
mass_above: Any = intrinsic(_mass_above)
