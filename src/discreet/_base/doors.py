"""Doors of rooms: names that load on first use, and old names that still work.

A room's `__init__` imports everything that other rooms may use, each name when it is first used (`imports_on_first_use`). So a command loads
the modules on its way and no others, and names that need an optional dependency may stand beside those that do not. A module that treats many
kinds of things imports most of them as placeholders (`placeholders_until_used`), so a command loads only the kinds that occur.

Public modules, functions, methods and keywords that have new names keep the old ones for one release, with a warning. `import
discreet.engines` gives `discreet.tables`, the very same module, and `python -m discreet.engines.warm_up` runs.
"""

import builtins
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import RLock
from types import CodeType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from discreet.errors import MissingExtraError, need_extra


class _NotedName(NamedTuple):
    """A name that is imported later, and the module that has it."""

    module: str
    name: str

    def load(self) -> Any:
        """What has this name; its module is imported now."""
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

    _one_body = RLock()

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def __enter__(self) -> None:
        self._one_body.acquire()
        self._usual_import = builtins.__import__
        builtins.__import__ = self._note_import

    def __exit__(self, *raised: object) -> None:
        builtins.__import__ = self._usual_import
        self._one_body.release()
        self._provide_later({name: value for name, value in self._namespace.items() if isinstance(value, _NotedName)})

    def _note_import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if globals is self._namespace:
            return _NotedModule(name)
        return self._usual_import(name, globals, locals, fromlist, level)

    @abstractmethod
    def _provide_later(self, homes: Mapping[str, _NotedName]) -> None:
        """Make the noted names usable."""


class placeholders_until_used(_NotedImports):  # it reads as a statement
    """`with placeholders_until_used(globals()):` in a module behind a door. Its names of classes and functions load when they are used.

    Python finds a module's own names without asking its `__getattr__`, so something has to stand there: a `_Placeholder`. It serves calls,
    attributes, annotations, `isinstance` and `case Name():`. It is neither for constants nor for base classes, `is` and `in`.
    """

    def _provide_later(self, homes: Mapping[str, _NotedName]) -> None:
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
        return cls._home.load()(*args, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._home.load(), name)

    def __instancecheck__(cls, value: Any) -> bool:
        kind = cls._home.value_if_loaded()
        return kind is not None and isinstance(value, kind)

    def __subclasscheck__(cls, other: type) -> bool:
        kind = cls._home.value_if_loaded()
        return kind is not None and issubclass(other, kind)


class imports_on_first_use(_NotedImports):  # it reads as a statement
    """`with imports_on_first_use(globals()):` in a door. The imports in its body run one by one, when their names are first used.

    So a door lists every name once, and a process loads only the modules that it uses. `extra` is the extra to install if such an import
    fails later. Public modules of the room are imported on first use too.
    """

    def __init__(self, door: dict[str, Any], *, extra: str | None = None) -> None:
        super().__init__(door)
        self._door, self._extra = door, extra

    def _provide_later(self, homes: Mapping[str, _NotedName]) -> None:
        for name in homes:
            del self._door[name]
        _NAMES_BEHIND_DOORS[self._door["__name__"]] = homes
        self._door["__getattr__"] = self._make_module_getattr(homes)
        self._door["__dir__"] = lambda: sorted({*self._door["__all__"], *self._public_modules()})

    def _public_modules(self) -> set[str]:
        from pkgutil import iter_modules  # loaded to list names alone

        return {found.name for found in iter_modules(self._door["__path__"]) if not found.name.startswith("_")}

    def _make_module_getattr(self, homes: Mapping[str, _NotedName]) -> Callable[[str], Any]:
        """The `__getattr__` of the door."""
        room, extra = self._door["__name__"], self._extra

        def import_name_on_first_use(name: str) -> Any:
            if name not in homes:
                if name.startswith("_") or find_spec(f"{room}.{name}") is None:
                    raise AttributeError(f"module {room!r} has no attribute {name!r}")
                return import_module(f"{room}.{name}")
            try:
                self._door[name] = value = homes[name].load()
            except ImportError as missing:
                if extra is None or isinstance(missing, MissingExtraError):
                    raise
                need_extra(extra, missing)
            return value

        return import_name_on_first_use


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
    for moved, target in MOVED.items():
        if old == moved or old.startswith(f"{moved}."):
            return target + old.removeprefix(moved)
    return None


def warn_of_moved_module(old: str) -> None:
    """Warn that a module has moved, with its new name."""
    advised = _ADVISED.get(old) or moved_module_name(old)
    warnings.warn(f"{old} is now {advised}; the old name goes with the next release", FutureWarning, stacklevel=2)


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
        found = find_spec(self._target)
        return found is not None and found.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        loader = self._target_loader()
        return None if loader is None else loader.get_code(self._target)

    def get_source(self, fullname: str) -> str | None:
        loader = self._target_loader()
        return None if loader is None else loader.get_source(self._target)

    def _target_loader(self) -> InspectLoader | None:
        found = find_spec(self._target)
        return found.loader if found is not None and isinstance(found.loader, InspectLoader) else None


class _MovedModules(MetaPathFinder):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        present = moved_module_name(fullname)
        if present is None or find_spec(present) is None:
            return None
        warn_of_moved_module(fullname)
        loader = _MovedLoader(present)
        return ModuleSpec(fullname, loader, is_package=loader.is_package(fullname))


def keep_old_module_names() -> None:
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


def old_keywords(**names: str) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A decorator for a function whose keywords have new names: a call with an old one warns, and is made with the new one."""

    def accept_old_keywords(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
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

    return accept_old_keywords


def old_names(module: str, names: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module for old names of its functions, before the one that it has already."""
    others = vars(sys.modules[module]).get("__getattr__")

    def get_renamed_attribute(name: str) -> Any:
        if name in names:
            new = names[name]
            warnings.warn(
                f"{module}.{name} is now {new}; the old name goes with the next release",
                FutureWarning,
                stacklevel=2,
            )
            return getattr(sys.modules[module], new)
        if others is not None:
            return others(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get_renamed_attribute
