"""Disable core dumps in commands that read records: a dump would write all of them to disk."""

from importlib import import_module


def disable_core_dumps() -> None:
    """For this process, from now on, where the system has core dumps (Windows has none)."""
    try:
        resource = import_module("resource")
    except ImportError:
        return
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
