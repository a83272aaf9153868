"""Shared foundations of all rooms: directed rounding, compiled code, files, text for people. Nothing here is public.

Other rooms import from its modules by name; each has its own docstring. This one is loaded first, and serves all others. It states the
version, loads names on their first use, keeps old names, and handles forks.

**Doors.** A room's `__init__` is its door. It imports everything that other rooms may use, each name when it is first used
(`imports_on_first_use`). So a command loads the modules on its way and no others, and names that need an optional dependency may stand beside
those that do not. A module that handles many kinds of things imports most of them as placeholders (`placeholders_until_used`), so a command
loads only the kinds that occur.

**Threads** may import different parts of this package at once. Python locks each module while it is imported, and the lock of a module inside
a package may be waited for while that of the package is held, or the other way round. So a door imports nothing of this package but this
module, and this module imports nothing of it. Then no two threads wait for each other.

**Old names.** Public modules, functions, methods and keywords that have new names keep the old ones for one release, with a warning. `import
discreet.engines` gives `discreet.tables`, the very same module, and `python -m discreet.engines.warm_up` runs.

**Forks.** `os.fork`, and `multiprocessing` where it forks, copy the memory of a process but only the calling thread. Python, numpy and this
package's own threads handle that: ours end after each call, or start anew in a child. The worker threads of polars, which read tables, do
not: a child would wait for them for ever. So each fork records whether they were running, and a child that cannot work raises an error. A
fork waits until other threads have imported the names that they use first, and a child imports anew what they had begun.
"""

import builtins
import os
import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from threading import RLock, active_count, get_ident
from time import monotonic, sleep
from types import CodeType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

__version__ = "0.1.0"
__date__ = "2026-11-17"  # of this version; CITATION.cff repeats both


class _NotedName(NamedTuple):
    """A name that is imported later, and the module that has it."""

    module: str
    name: str

    def import_value(self) -> Any:
        """What has this name; its module is imported now."""
        with making_forks_wait_for_imports():
            return getattr(import_module(self.module), self.name)

    def value_if_loaded(self) -> Any:
        """What has this name, if its module is loaded; None otherwise."""
        if self.module not in sys.modules:
            return None
        behind_door = _NAMES_BEHIND_DOORS.get(self.module, {}).get(self.name)
        return vars(sys.modules[self.module]).get(self.name) if behind_door is None else behind_door.value_if_loaded()


class _NotedModule:
    """Stands for a module that is not imported yet, while names are taken from it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> _NotedName:
        return _NotedName(self._module, name)


_NAMES_BEHIND_DOORS: dict[str, Mapping[str, _NotedName]] = {}  # by door: the names that it imports on first use


class _NotedImports(ABC):
    """A `with` statement whose imports are noted and not run.

    The body is for `from module import name` alone: plain imports that type checkers and editors read. Python calls `builtins.__import__` for
    an import. It is replaced for the length of the body, which imports nothing. Imports of other modules, in other threads, pass through.
    """

    one_body = RLock()

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def __enter__(self) -> None:
        _NotedImports.one_body.acquire()
        self.usual_import = builtins.__import__
        builtins.__import__ = self._note_import

    def __exit__(self, *exc_info: object) -> None:
        builtins.__import__ = self.usual_import
        _NotedImports.one_body.release()
        homes = {name: value for name, value in list(self._namespace.items()) if isinstance(value, _NotedName)}
        self._make_noted_names_usable(homes)

    def _note_import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if globals is self._namespace:
            return _NotedModule(name)
        return self.usual_import(name, globals, locals, fromlist, level)

    @abstractmethod
    def _make_noted_names_usable(self, homes: Mapping[str, _NotedName]) -> None:
        """Make the noted names usable."""


class imports_on_first_use(_NotedImports):  # it reads as a statement
    """`with imports_on_first_use(globals()):` in a door. The imports in its body run one by one, when their names are first used.

    So a door lists every name once, and a process loads only the modules that it uses. `extra` is the extra to install if such an import
    fails later. Public modules of the room are imported on first use too.
    """

    def __init__(self, door: dict[str, Any], *, extra: str | None = None) -> None:
        super().__init__(door)
        self._door, self._extra = door, extra

    def _make_noted_names_usable(self, homes: Mapping[str, _NotedName]) -> None:
        for name in homes:
            del self._door[name]
        _NAMES_BEHIND_DOORS[self._door["__name__"]] = homes
        self._door["__getattr__"] = self._make_module_getattr(homes)
        self._door["__dir__"] = lambda: sorted({*self._door["__all__"], *self._public_modules()})

    def _is_public_module(self, name: str) -> bool:
        is_name = name.isidentifier() and not name.startswith("_")
        return is_name and find_spec(f"{self._door['__name__']}.{name}") is not None

    def _public_modules(self) -> set[str]:
        from pkgutil import iter_modules  # loaded to list names alone

        return {module.name for module in iter_modules(self._door["__path__"]) if not module.name.startswith("_")}

    def _make_module_getattr(self, homes: Mapping[str, _NotedName]) -> Callable[[str], Any]:
        """The `__getattr__` of the door."""
        room, extra = self._door["__name__"], self._extra

        def import_name_on_first_use(name: str) -> Any:
            home = homes.get(name)
            if home is None and not self._is_public_module(name):
                raise AttributeError(f"module {room!r} has no attribute {name!r}")
            try:
                if home is None:
                    with making_forks_wait_for_imports():
                        return import_module(f"{room}.{name}")
                self._door[name] = value = home.import_value()
                return value
            except ModuleNotFoundError as missing:
                if extra is None or _is_own_module(str(missing.name)):
                    raise
                from discreet.errors import raise_missing_extra

                raise_missing_extra(extra, missing)
            except AttributeError as error:  # which would say that the door has no such name
                raise ImportError(f"{room}.{name} cannot be imported: {error}") from error

        return import_name_on_first_use


class placeholders_until_used(_NotedImports):  # it reads as a statement
    """`with placeholders_until_used(globals()):` in a module behind a door. Its names of classes and functions load when they are used.

    Python finds a module's own names without asking its `__getattr__`, so something has to stand there: a `_Placeholder`. It serves calls,
    attributes, annotations, `isinstance` and `case Name():`. It is neither for constants nor for base classes, `is` and `in`.
    """

    def _make_noted_names_usable(self, homes: Mapping[str, _NotedName]) -> None:
        for name, home in homes.items():
            self._namespace[name] = _Placeholder(home)


class _Placeholder(type):
    """Stands for a class or a function. To call it, or to ask for an attribute, loads the real one.

    `isinstance` loads nothing: a class whose module is not loaded has no instances.
    """

    _home: _NotedName

    def __new__(cls, home: _NotedName) -> "_Placeholder":
        return super().__new__(cls, home.name, (), {"__module__": home.module, "_home": home})

    def __init__(cls, home: _NotedName) -> None:
        super().__init__(home.name, (), {})

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return cls._home.import_value()(*args, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._home.import_value(), name)

    def __instancecheck__(cls, value: Any) -> bool:
        kind = cls._home.value_if_loaded()
        return kind is not None and isinstance(value, kind)

    def __subclasscheck__(cls, other: type) -> bool:
        kind = cls._home.value_if_loaded()
        return kind is not None and issubclass(other, kind)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

MOVED = {
    "discreet.data": "discreet.research.data",
    "discreet.engines": "discreet.tables",
    "discreet.numerics": "discreet._base.numerics",
    "discreet.tradeoff": "discreet.privacy.tradeoff",
    "discreet.transformers": "discreet.torch.transformers",
}
# the public module with the same names, if the new place is private
_ADVISED = {"discreet.numerics": "discreet.privacy"}


def moved_module_name(old: str) -> str | None:
    """The present name of a moved module, or of a module inside one; None for others."""
    for package, target in MOVED.items():
        if old == package or old.startswith(f"{package}."):
            return target + old.removeprefix(package)
    return None


def warn_of_moved_module(old: str) -> None:
    """Warn that a module has moved, with its new name."""
    new = _ADVISED.get(old) or moved_module_name(old)
    warnings.warn(f"{old} is now {new}; the old name goes with the next release", FutureWarning, stacklevel=2)


class _MovedLoader(InspectLoader, Loader):
    """Loads a module under its old name: the module of the new name."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it by that of the old name

    def is_package(self, fullname: str) -> bool:
        spec = find_spec(self._target)
        return spec is not None and spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        loader = self._loader_of_new_module()
        return None if loader is None else loader.get_code(self._target)

    def get_source(self, fullname: str) -> str | None:
        loader = self._loader_of_new_module()
        return None if loader is None else loader.get_source(self._target)

    def _loader_of_new_module(self) -> InspectLoader | None:
        spec = find_spec(self._target)
        return spec.loader if spec is not None and isinstance(spec.loader, InspectLoader) else None


class _MovedModules(MetaPathFinder):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = moved_module_name(fullname)
        if new is None or find_spec(new) is None:
            return None
        warn_of_moved_module(fullname)
        loader = _MovedLoader(new)
        return ModuleSpec(fullname, loader, is_package=loader.is_package(fullname))


def make_old_module_names_importable() -> None:
    """Make modules importable by their old names too."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())  # before the folders: an old package has the new one's


class OldName:
    """The old name of a method or a property, as a class attribute: it returns the new one's value, and warns.

    `of_class`: the name of a class method, which is asked of the class too.
    """

    def __init__(self, new: str, *, of_class: bool = False) -> None:
        self._new, self._of_class = new, of_class

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None and not self._of_class:
            return self
        warnings.warn(
            f"{owner.__name__}.{self._old} is now {self._new}; the old name goes with the next release",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(owner if self._of_class else instance, self._new)


def accept_renamed_keywords(**names: str) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A decorator for a function whose keywords have new names: a call with an old one warns, and is made with the new one."""

    def accept_renamed_keywords_in(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(function)
        def call_with_new_keywords(*args: _Arguments.args, **keywords: _Arguments.kwargs) -> _Result:
            for old, new in names.items():
                if old in keywords:
                    if new in keywords:
                        raise TypeError(f"{old}= is the old name of {new}=, and both are given; leave {old}= out")
                    warnings.warn(
                        f"the keyword {old}= is now {new}=; the old name goes with the next release",
                        FutureWarning,
                        stacklevel=2,
                    )
                    keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return call_with_new_keywords

    return accept_renamed_keywords_in


def getattr_for_old_names(module: str, names: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module for old names of its functions, before the one that it has already."""
    fallback = vars(sys.modules[module]).get("__getattr__")

    def get_renamed_attribute(name: str) -> Any:
        if name in names:
            new = names[name]
            warnings.warn(
                f"{module}.{name} is now {new}; the old name goes with the next release",
                FutureWarning,
                stacklevel=2,
            )
            return getattr(sys.modules[module], new)
        if fallback is not None:
            return fallback(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get_renamed_attribute


_WORKERS = re.compile(r"polars-\d|tokio-|async-exec")  # what polars calls its threads

_has_used_polars = False  # whether this package has used polars
_polars_ran_at_fork = False  # whether its threads were running at the latest fork
_lost_polars_threads = False  # whether they were running in a process from which this one was forked


def note_use_of_polars_or_refuse_after_fork() -> None:
    """Raise an error in a child that would hang. Called before polars is used."""
    global _has_used_polars
    if _lost_polars_threads:
        from discreet.errors import DiscreetError

        raise DiscreetError(
            "this process was forked after polars had started its threads, which a fork does not copy: the engine would hang here; "
            "start workers afresh, with multiprocessing.get_context('spawn') or 'forkserver', or fork before the first release"
        )
    _has_used_polars = True


def _note_running_polars_threads() -> None:
    global _polars_ran_at_fork
    try:
        names = [path.read_text(errors="replace") for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:  # a thread has ended meanwhile
        names = []
    _polars_ran_at_fork = any(map(_WORKERS.match, names)) if names else _has_used_polars


def _mark_polars_threads_lost() -> None:
    global _lost_polars_threads
    _lost_polars_threads = _lost_polars_threads or _polars_ran_at_fork


_LONGEST_WAIT = 60.0  # seconds; if the forking thread is itself in the way of an import, nothing is gained by more
_importing_threads: set[int] = set()


@contextmanager
def making_forks_wait_for_imports() -> Iterator[None]:
    """Forks in other threads wait for the end of the imports in the body: a child could neither finish them nor import the same anew."""
    thread = get_ident()
    if thread in _importing_threads:
        yield
        return
    if active_count() > 1:  # a fork that waits has called its first handlers: these two must not add theirs meanwhile
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401
    _importing_threads.add(thread)
    try:
        yield
    finally:
        _importing_threads.discard(thread)


def _wait_briefly_for_imports_of_other_threads() -> None:
    deadline = monotonic() + _LONGEST_WAIT
    while _importing_threads - {get_ident()} and monotonic() < deadline:
        sleep(0.001)


def _forget_imports_of_lost_threads() -> None:
    """In a child: modules of this package that other threads were importing are imported anew."""
    _importing_threads.intersection_update({get_ident()})
    _NotedImports.one_body = RLock()
    importer = getattr(builtins.__import__, "__self__", None)
    if isinstance(importer, _NotedImports):
        builtins.__import__ = importer.usual_import
    locks = import_module("_frozen_importlib")._module_locks
    for name in filter(_is_own_module, list(locks)):
        lock = locks[name]()
        if lock is not None and lock.owner not in (None, get_ident()):
            del locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def _is_own_module(name: str) -> bool:
    return name.partition(".")[0] == __name__.partition(".")[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_running_polars_threads, after_in_child=_mark_polars_threads_lost)
    os.register_at_fork(
        before=_wait_briefly_for_imports_of_other_threads, after_in_child=_forget_imports_of_lost_threads
    )
