"""The public surface, found by a walk over the package: what `__all__` of its public modules names."""

import dataclasses
import importlib
import inspect
from pathlib import Path
from typing import Any

import discreet

PACKAGE = Path(discreet.__file__).parent


def public_modules() -> list[str]:
    """The names of all modules without an underscored part; nothing is imported."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(["discreet", *(parts[:-1] if parts[-1] == "__init__" else parts)])
        if not any(part.startswith("_") for part in name.split(".")):
            found.append(name)
    return found


def public_callables(module: str) -> dict[str, Any]:
    """The functions and classes in `__all__` of a module. Errors, warnings and values that can be called are not among them."""
    room = importlib.import_module(module)
    found = {name: getattr(room, name) for name in getattr(room, "__all__", ())}
    return {
        name: thing
        for name, thing in found.items()
        if inspect.isroutine(thing)
        or hasattr(thing, "cache_info")
        or (inspect.isclass(thing) and not issubclass(thing, (Exception, Warning)))
    }


def is_record(thing: Any) -> bool:
    """Whether a class only holds what it is given: a dataclass whose constructor is a generated one, and checks nothing."""
    return (
        inspect.isclass(thing)
        and dataclasses.is_dataclass(thing)
        and not hasattr(thing, "__post_init__")
        and inspect.getsourcefile(thing) != thing.__init__.__code__.co_filename
    )


def is_interface(thing: Any) -> bool:
    """Whether a class says what others have to offer and cannot be made itself: a protocol or an abstract class."""
    return inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or inspect.isabstract(thing))
