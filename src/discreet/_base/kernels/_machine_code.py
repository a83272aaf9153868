"""Machine code of a compiled function that runs without numba: how it is made, stored as bytes and called.

Importing numba and making it ready takes longer than most tables take to draw. So when numba has compiled a function, its optimised code is
stored a second time, without the part that talks to Python objects, behind an entry `int entry(words, result, error)`. The words are the
arguments: an integer or a number is one word, an array seven (numba's own struct for it). A later process links the object file by llvmlite
alone and calls the entry by ctypes, which releases the interpreter lock.

What a function needs from numba's runtime is one allocation and its release; both are part of the object file. A function that needs
anything else, or takes or returns other kinds than integers, numbers and arrays of one dimension, and tuples of them, is not stored. A
function that raises leaves the address of its pickled error, which is raised here.
"""

import ctypes
import hashlib
import json
import pickle
import struct
import weakref
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

ARRAY = "QQqqQqq"  # memory, owner, entries, bytes of each, address, length, stride
_SCALARS = {"bool": "Q", "int64": "q", "uint64": "Q", "float64": "d"}
_NEEDED = {"malloc", "free", "memset", "memcpy", "memmove", "sqrt"}  # from the C library
_CALLED_FOR_INTRINSICS = {
    "exp",
    "exp2",
    "log",
    "log2",
    "pow",
    "ldexp",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "memset",
    "memcpy",
    "memmove",
}
_DIGEST_BYTES = 32


class UnstorableError(TypeError):
    """Machine code does not take a value of this kind, or needs more than the C library."""


def argument_kinds_text(values: Any) -> str:
    """The kinds of arguments, as text. One kind is one compiled version of a function."""
    return ",".join(map(_argument_kind, values))


def _argument_kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.names or not value.flags.aligned:
            raise UnstorableError
        layout = "C" if value.flags.c_contiguous else "A"
        return f"{value.dtype.str}{layout}{'w' if value.flags.writeable else 'r'}"
    if isinstance(value, tuple):
        kind = type(value)
        return f"{_tuple_class_text(kind)}({argument_kinds_text(value)})"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise UnstorableError
        return "int64" if value < 1 << 63 else "uint64"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, np.generic):
        return value.dtype.name
    raise UnstorableError


def _tuple_class_text(kind: type) -> str:
    """A class of tuples and its fields: compiled code knows fields by their place, so another order is another kind."""
    return f"{kind.__module__}.{kind.__qualname__}[{','.join(getattr(kind, '_fields', ()))}]"


def tuple_classes_and_fields_in_types(types: Any) -> Any:
    """The classes and fields of all tuples in numba's types of arguments."""
    classes = []
    for kind in types:
        if isinstance(kind, import_module("numba.core.types").BaseTuple):
            classes.append(
                (
                    _tuple_class_text(getattr(kind, "instance_class", tuple)),
                    tuple_classes_and_fields_in_types(kind.types),
                )
            )
    return tuple(classes)


def argument_kinds_text_of_types(types: Any) -> str:
    """The same for numba's types of arguments."""
    return ",".join(map(_argument_kind_of_type, types))


def _argument_kind_of_type(kind: Any) -> str:
    types, support = import_module("numba.core.types"), import_module("numba.np.numpy_support")
    if isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout in "CA" and kind.aligned:
        return f"{support.as_dtype(kind.dtype).str}{kind.layout}{'w' if kind.mutable else 'r'}"
    if isinstance(kind, types.BaseTuple):
        tuple_class = getattr(kind, "instance_class", tuple)
        return f"{_tuple_class_text(tuple_class)}({argument_kinds_text_of_types(kind.types)})"
    if isinstance(kind, (types.Boolean, types.Integer, types.Float)) and kind.name in _SCALARS:
        return str(kind.name)
    raise UnstorableError


def _iterate_argument_words(value: Any) -> Iterator[tuple[str, Any]]:
    """The format and value of each word of an argument."""
    if isinstance(value, np.ndarray):
        fields = (0, 0, value.size, value.itemsize, value.ctypes.data, value.size, value.strides[0])
        yield from zip(ARRAY, fields, strict=True)
    elif isinstance(value, tuple):
        for entry in value:
            yield from _iterate_argument_words(entry)
    else:
        kind = _argument_kind(value)
        if kind not in _SCALARS:
            raise UnstorableError
        yield _SCALARS[kind], float(value) if kind == "float64" else int(value)


def _result_type_as_json(kind: Any) -> Any:
    """What a function returns, as JSON: null, the name of a scalar, ["array", dtype], or ["tuple", kinds]."""
    types, support = import_module("numba.core.types"), import_module("numba.np.numpy_support")
    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.mutable:
        return ["array", support.as_dtype(kind.dtype).str]
    if isinstance(kind, (types.Tuple, types.UniTuple)):
        parts = [_result_type_as_json(part) for part in kind.types]
        if None not in parts and "bool" not in parts:
            return ["tuple", parts]
    elif getattr(kind, "name", None) in _SCALARS:
        return str(kind.name)
    raise UnstorableError


_ERROR_STRUCT = "{i8*, i32, i8*, i8*, i32}"  # pickled class, arguments and place; its length; three more
_ENTRY, _RELEASE = "discreet_entry", "discreet_release"
# numba's MemInfo: references, destructor, its argument, data, size, allocator. The data are aligned to 64 bytes, after 64 for these.
_RUNTIME = """
target datalayout = "{layout}"
target triple = "{triple}"
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @"{name}"({types})
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) {{
  %all = add i64 %size, 128
  %overflow = icmp ult i64 %all, %size
  br i1 %overflow, label %none, label %take
take:
  %memory = call ptr @malloc(i64 %all)
  %missing = icmp eq ptr %memory, null
  br i1 %missing, label %none, label %fill
fill:
  %start = ptrtoint ptr %memory to i64
  %after = add i64 %start, 127
  %place = and i64 %after, -64
  %data = inttoptr i64 %place to ptr
  store i64 1, ptr %memory
  %field = getelementptr i64, ptr %memory, i64 3
  store ptr %data, ptr %field
  ret ptr %memory
none:
  ret ptr null
}}
define void @NRT_MemInfo_call_dtor(ptr %memory) {{
  call void @free(ptr %memory)
  ret void
}}
define void @{release}(ptr %memory) {{
  %before = atomicrmw sub ptr %memory, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %done, label %kept
done:
  call void @free(ptr %memory)
  br label %kept
kept:
  ret void
}}
define i32 @{entry}(ptr %words, ptr %result, ptr %error) {{
{loads}
  %status = call i32 @"{name}"({values})
  ret i32 %status
}}
"""


def serialise_machine_code(compiled: Any, identity: str) -> bytes:
    """What is stored of a function that numba has just compiled: a digest, a header and an object file.

    `identity` names the function, its version, the kinds of its arguments and the processor.

    Raises:
        UnstorableError: It cannot run without numba.
    """
    binding = import_module("llvmlite.binding")
    header = {"identity": identity, "returns": _result_type_as_json(compiled.signature.return_type)}
    if str(import_module("numba.core.callconv").excinfo_t) != _ERROR_STRUCT:
        raise UnstorableError("numba passes errors in another form")
    module = compiled.library._get_module_for_linking().clone()
    name = compiled.fndesc.llvm_func_name
    types = [str(symbol.type) for symbol in module.get_function(name).arguments]
    loads = "\n".join(
        f"  %p{index} = getelementptr i64, ptr %words, i64 {index}\n  %v{index} = load {kind}, ptr %p{index}"
        for index, kind in enumerate(types[2:])
    )
    values = ", ".join(f"{kind} %v{index}" for index, kind in enumerate(types[2:]))
    runtime = _RUNTIME.format(
        layout=module.data_layout,
        triple=module.triple,
        name=name,
        types=", ".join(types),
        loads=loads,
        values=f"ptr %result, ptr %error{', ' * bool(values)}{values}",
        entry=_ENTRY,
        release=_RELEASE,
    )
    module.link_in(binding.parse_assembly(runtime))
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name not in (_ENTRY, _RELEASE):
            symbol.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    machine = compiled.codegen._tm
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    externals = {symbol.name for symbol in (*module.functions, *module.global_variables) if symbol.is_declaration}
    unknown_symbols = {symbol for symbol in externals if not symbol.startswith("llvm.")} - _NEEDED
    if unknown_symbols:
        raise UnstorableError(f"it needs {sorted(unknown_symbols)}")
    intrinsics = {symbol.split(".")[1] for symbol in externals if symbol.startswith("llvm.")}
    header["needs"] = sorted(externals & _NEEDED | intrinsics & _CALLED_FOR_INTRINSICS)
    content: bytes = json.dumps(header).encode() + b"\n" + machine.emit_object(module)
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() + content


def parse_header_and_object_file(data: bytes, identity: str) -> tuple[dict[str, Any], bytes]:
    """The header and the object file of what is stored.

    Raises:
        ValueError: It is damaged, or that of another function, version or processor.
    """
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() != digest:
        raise ValueError("damaged machine code")
    header, _, code = content.partition(b"\n")
    facts = json.loads(header)
    if facts["identity"] != identity:
        raise ValueError("machine code of something else")
    return facts, code


class MachineCode:
    """A function that runs without numba.

    Raises:
        ValueError: The stored bytes are damaged, or those of something else.
        UnstorableError: It cannot run in this process.
    """

    def __init__(self, data: bytes, identity: str) -> None:
        facts, code = parse_header_and_object_file(data, identity)
        if not all(hasattr(ctypes.CDLL(None), name) for name in facts["needs"]):
            raise UnstorableError("a function of the C library is missing")
        self._returns = facts["returns"]
        binding = import_module("llvmlite.binding")
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _make_target_machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)(
            address(_ENTRY)
        )
        self._release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address(_RELEASE))
        self._result_bytes = 8 * sum(1 for _ in _result_word_formats(self._returns))

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        words = [word for argument in arguments for word in _iterate_argument_words(argument)]
        argument_bytes = struct.pack("=" + "".join(form for form, _ in words), *(value for _, value in words))
        result = ctypes.create_string_buffer(max(8, self._result_bytes))
        error = ctypes.c_void_p()
        if self._entry(argument_bytes, ctypes.addressof(result), ctypes.addressof(error)):
            raise _error_left_by_code(error.value)
        fields = struct.unpack_from("=" + "".join(_result_word_formats(self._returns)), result.raw)
        return self._decode_result(self._returns, iter(fields), arguments)

    def _free_array(self, memory: int) -> None:
        """Release an array. (Whoever holds this method keeps the code in memory.)"""
        self._release(memory)

    def _decode_result(self, kind: Any, fields: Iterator[Any], arguments: Any) -> Any:
        match kind:
            case None:
                return None
            case "bool":
                return bool(next(fields) & 1)
            case str():
                return next(fields)
            case ["tuple", parts]:
                return tuple(self._decode_result(part, fields, arguments) for part in parts)
        memory, _, entries, _, address, _, _ = (next(fields) for _ in ARRAY)
        kind_of_entries = np.dtype(kind[1])
        buffer = (ctypes.c_char * (entries * kind_of_entries.itemsize)).from_address(address)
        if memory:
            weakref.finalize(buffer, self._free_array, memory).atexit = False
        else:  # a part of an argument
            buffer.kept = arguments
        return np.frombuffer(buffer, dtype=kind_of_entries) if entries else np.empty(0, dtype=kind_of_entries)


def _error_left_by_code(address: int | None) -> BaseException:
    """The error that a function leaves when it raises. (Calling it again, by numba, would change its arguments twice.)"""
    if address is None:
        return SystemError("unknown error in compiled code")
    start, length = struct.unpack_from("=Qi", ctypes.string_at(address, 12))
    kind, arguments, _ = pickle.loads(ctypes.string_at(start, length))
    return RuntimeError("No active exception to reraise") if kind is None else kind(*(arguments or ()))


def _result_word_formats(kind: Any) -> Iterator[str]:
    match kind:
        case None:
            return
        case str():
            yield _SCALARS[kind]
        case ["tuple", parts]:
            for part in parts:
                yield from _result_word_formats(part)
        case _:
            yield from ARRAY


def _make_target_machine() -> Any:
    """A target machine, which belongs to the engine that is made with it."""
    binding = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine()


@cache
def processor_description() -> str:
    """The processor that machine code is for: its kind, its name and its features."""
    binding = import_module("llvmlite.binding")
    return f"{binding.get_process_triple()} {binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
