"""Functions that numba compiles, before numba is loaded: `kernel`, and `overload` and `intrinsic` as numba has them.

A module of kernels is imported without numba. A kernel that is called runs its stored machine code (`_machine_code`) if there is some for its
kinds of arguments. Otherwise numba is loaded: then every kernel, overload and intrinsic so far is made, takes its place in the modules that
have it, and compiles or loads what it needs (`_cache`). Both run the same instructions.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar, cast

from discreet._base import making_forks_wait_for_imports
from discreet._base.kernels._cache import FunctionCache, load_machine_code_of_function, note_module_sources
from discreet._base.kernels._machine_code import MachineCode, UnstorableError, argument_kinds_text

_Function = TypeVar("_Function", bound=Callable[..., Any])

_lock = RLock()
_waiting: list["DeferredFunction"] = []  # in the order of their definition
_is_loaded = False


class DeferredFunction:
    """A function that numba makes when it is needed."""

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        update_wrapper(self, function)
        self._make = make
        self.made: Any = None
        self._codes: dict[str, MachineCode | None] = {}

    def hand_over_to_numba(self) -> None:
        """Hand the function to numba, which compiles it at its first call."""
        self.made = self._make()

    def __call__(self, *arguments: Any) -> Any:
        if not _is_loaded:
            code = self._stored_machine_code(arguments)
            if code is not None:
                return code(arguments)
            load_numba()
        return self.made(*arguments)

    def _stored_machine_code(self, arguments: tuple[Any, ...]) -> MachineCode | None:
        try:
            kinds = argument_kinds_text(arguments)
        except UnstorableError:
            return None
        if kinds not in self._codes:
            self._codes[kinds] = load_machine_code_of_function(self.__wrapped__, kinds)  # type: ignore[attr-defined]
        return self._codes[kinds]


class ModuleOnUse:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def kernel(**options: Any) -> Callable[[_Function], _Function]:
    """Compile a function by numba, with its options, at its first call; and cache it."""

    def defer_compilation(function: _Function) -> _Function:
        note_module_sources(function.__module__)  # as soon as it is imported, with all that it imports

        def make_numba_function() -> Any:
            dispatcher: Any = import_module("numba").njit(**options)(function)
            # absent if numba's compilation is disabled
            if hasattr(dispatcher, "_cache") and options.get("inline") != "always":
                dispatcher._cache = FunctionCache(function)
                _compile_once_for_all_constants(dispatcher)
            return dispatcher

        return cast(_Function, _defer_until_numba_loads(function, make_numba_function))

    return defer_compilation


def _compile_once_for_all_constants(dispatcher: Any) -> None:
    """Let a kernel take a constant from another kernel as any number. Numba would compile it anew for every constant."""
    unliteral, template_of_call = import_module("numba.core.types").unliteral, dispatcher.get_call_template

    def template_of_call_without_constants(kinds: Iterable[Any], keywords: Mapping[str, Any]) -> Any:
        return template_of_call(
            tuple(map(unliteral, kinds)), {name: unliteral(kind) for name, kind in keywords.items()}
        )

    dispatcher.get_call_template = template_of_call_without_constants


def overload(target: Callable[..., Any], **options: Any) -> Callable[[_Function], _Function]:
    """As `numba.extending.overload`."""

    def defer_registration(function: _Function) -> _Function:
        _defer_until_numba_loads(
            function, lambda: import_module("numba.extending").overload(target, **options)(function)
        )
        return function

    return defer_registration


def intrinsic(function: Callable[..., Any]) -> Any:
    """As `numba.extending.intrinsic`."""
    return _defer_until_numba_loads(function, lambda: import_module("numba.extending").intrinsic(function))


def _defer_until_numba_loads(function: Callable[..., Any], make: Callable[[], Any]) -> Any:
    with _lock:
        deferred_function = DeferredFunction(function, make)
        if _is_loaded:
            deferred_function.hand_over_to_numba()
            return deferred_function.made
        _waiting.append(deferred_function)
        return deferred_function


def load_numba() -> None:
    """Import numba and make all functions so far. (Two threads that import numba at once may find it half loaded.)"""
    global _is_loaded
    with making_forks_wait_for_imports(), _lock:
        if _is_loaded:
            return
        numba = import_module("numba")
        for deferred_function in _waiting:
            deferred_function.hand_over_to_numba()
        # another thread may be importing a module that has such a function, and give it a name after this
        import_module("numba.extending").typeof_impl.register(DeferredFunction)(
            lambda deferred_function, _: numba.typeof(deferred_function.made)
        )
        for module in [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]:
            for name, value in list(vars(module).items()):
                if type(value) is DeferredFunction:  # asking others for their class may warn
                    vars(module)[name] = value.made
        _is_loaded = True  # last: numba compiles functions that find each other by these names
