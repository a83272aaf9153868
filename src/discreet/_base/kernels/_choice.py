"""The choice between compiled code and numpy, which compute the same results bit for bit.

Importing numba and loading the kernels takes longer than a few thousand clients take in numpy, and compiling them, once, half a minute. So
the first second of work in a process is done in numpy. Later work, and work that would take longer than that at once, uses compiled code if
numba is installed.

Designs are the exception: their sums are long and their matrices are BLAS's, so that the last bits differ. There the work at hand alone
decides, and the same examples always give the same design.
"""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache
from typing import Any

PATIENCE = 1.0  # seconds
PATIENCE_ALONE = 0.1


class Code(Enum):
    """The two implementations."""

    NUMPY = "numpy"
    COMPILED = "compiled"


_spent = 0.0
_only: Code | None = None


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def compiled_for(seconds: float) -> bool:
    """Whether work that would take numpy about so long should use compiled code."""
    global _spent
    if _only is not None:
        return _only is Code.COMPILED and _load_numba()
    if not _has_numba():
        return False
    _spent += seconds
    return _spent > PATIENCE and _load_numba()


def compiled_alone(seconds: float) -> bool:
    """The same where the two differ in the last bits: decided by this work alone, so that results are reproducible."""
    if _only is not None:
        return _only is Code.COMPILED and _load_numba()
    return _has_numba() and seconds > PATIENCE_ALONE and _load_numba()


def _load_numba() -> bool:
    """Import all of numba first, and say so: its modules import each other in circles, which two threads at once may find half loaded."""
    importlib.import_module("numba")
    return True


@contextmanager
def use_only(code: Code) -> Iterator[None]:
    """Use one of the two for all work: to compile in advance, and to compare them."""
    global _only
    before, _only = _only, code
    try:
        yield
    finally:
        _only = before


def read_only_view(array: Any) -> Any:
    """A read-only view: compiled code has one version, for read-only arrays."""
    view = array.view()
    view.setflags(write=False)
    return view
