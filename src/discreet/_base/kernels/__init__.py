"""Compiled code: when to use it instead of numpy, its cache, and threads. Both compute the same results, bit for bit.

Loading the kernels takes longer than a few thousand clients take in numpy, and compiling them, once, half a minute. So the first second of
work in a process is done in numpy. Later work, and work that would take longer than that at once, uses compiled code if
numba is installed.

Designs are the exception: their sums are long and their matrices are BLAS's, so that the last bits differ. There the work at hand alone
decides, and the same examples always give the same design.

Threads share rows. The kernels release the interpreter lock, so plain threads suffice. They start for one call and end with it, so that a
process may fork, or call from many threads of its own, at any time.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from functools import cache
from typing import Any

from discreet._base.kernels._functions import ModuleOnUse, intrinsic, kernel, overload

__all__ = [
    "Code",
    "ModuleOnUse",
    "force_implementation",
    "intrinsic",
    "kernel",
    "overload",
    "read_only_view",
    "should_use_compiled_code",
    "should_use_compiled_code_by_work_alone",
]

PATIENCE = 1.0  # seconds
PATIENCE_ALONE = 0.1


class Code(Enum):
    """The two implementations."""

    NUMPY = "numpy"
    COMPILED = "compiled"


_seconds_spent = 0.0
_forced_code: Code | None = None


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def should_use_compiled_code(seconds: float) -> bool:
    """Whether work that would take numpy about so long should use compiled code."""
    global _seconds_spent
    if _forced_code is not None:
        return _forced_code is Code.COMPILED
    if not _has_numba():
        return False
    _seconds_spent += seconds
    return _seconds_spent > PATIENCE


def should_use_compiled_code_by_work_alone(seconds: float) -> bool:
    """The same where the two differ in the last bits: decided by this work alone, so that results are reproducible."""
    if _forced_code is not None:
        return _forced_code is Code.COMPILED
    return _has_numba() and seconds > PATIENCE_ALONE


@contextmanager
def force_implementation(code: Code) -> Iterator[None]:
    """Use one of the two for all work: to compile in advance, and to compare them."""
    global _forced_code
    previous, _forced_code = _forced_code, code
    try:
        yield
    finally:
        _forced_code = previous


def read_only_view(array: Any) -> Any:
    """A read-only view: compiled code has one version, for read-only arrays."""
    view = array.view()
    view.setflags(write=False)
    return view


_WORTH_SHARING = 1 << 16  # fewer entries do not repay starting a thread
_PIECES_EACH = 4  # more pieces than threads, so that one slow piece does not delay the rest


def processor_count() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_on_row_slices(work: Callable[[slice], int], rows: int, entries: int) -> int:
    """Run `work` on slices of the rows. `work` returns the first row of its slice that it rejects, or -1; so does this."""
    threads = min(processor_count(), rows)
    if threads <= 1 or entries < _WORTH_SHARING:
        return work(slice(0, rows))
    step = max(1, -(-rows // (_PIECES_EACH * threads)))
    pieces = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
    with ThreadPoolExecutor(threads) as pool:
        for piece, row in zip(pieces, list(pool.map(work, pieces)), strict=True):
            if row >= 0:
                return piece.start + row
    return -1
