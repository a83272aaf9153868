"""A hint to the processor that a number will be read soon, for tables that do not fit into its caches. It changes no result."""

from typing import Any

import numba.core.cgutils
import numba.core.types
from llvmlite import ir
from numba.extending import intrinsic

cgutils: Any = numba.core.cgutils  # without types of their own
types: Any = numba.core.types


def _prefetch(typing: Any, line: Any, place: Any) -> Any:
    """Begin to bring line[place] near. Any place is allowed: a hint about memory that is not ours is none."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        where = builder.bitcast(builder.gep(array.data, [values[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [where.type, *[ir.IntType(32)] * 3])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [where, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(line, types.intp), generate


prefetch: Any = intrinsic(_prefetch)
