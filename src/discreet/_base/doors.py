"""Lazy names for a room's `__init__`.

A room's `__init__` names everything that other rooms may use. Names that need an optional dependency, or load slowly, are listed by module
and imported on first use.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from discreet.errors import MissingExtraError, need_extra


def lazy_names(room: str, homes: Mapping[str, str], *, extra: str | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a room: maps modules of the room to their names; `extra` is the extra to install if an import fails."""
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
