"""A room's door: what other rooms may import from it, where some of that must not be loaded before it is used.

A room's `__init__` names everything that others may use. What needs an optional dependency, or time, is listed by the module that
holds it, and imported when it is first asked for.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from discreet.errors import MissingExtraError, need_extra


def lazy_names(room: str, homes: Mapping[str, str], *, extra: str | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a room: names and the modules of the room that they are in; `extra` is what to install where an import fails."""
    by_name = {name: module for module, names in homes.items() for name in names.split()}

    def get_name(name: str) -> Any:
        if name not in by_name:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{room}.{by_name[name]}"), name)
        except ImportError as missing:
            if extra is None or isinstance(missing, MissingExtraError):
                raise
            need_extra(extra, missing)

    return get_name
