"""One private sample for each client of a table, from a laptop to a cluster; one kernel, and engines that feed it.

`sample` works on tables in memory and on files of any size; `discreet.engines.spark.sample` on Spark data frames.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.errors import need_extra
from discreet.release._keyed import Secret, read_secret, write_secret

if TYPE_CHECKING:
    from discreet._tables._raw_counts import DryRun, dry_run
    from discreet.engines._drawing import Kernel
    from discreet.engines._local import Release, sample, sample_file
    from discreet.engines._request import Request, Summary

__all__ = [
    "DryRun",
    "Kernel",
    "Release",
    "Request",
    "Secret",
    "Summary",
    "dry_run",
    "read_secret",
    "sample",
    "sample_file",
    "write_secret",
]

_HOMES = {
    "Request": "discreet.engines._request",
    "Kernel": "discreet.engines._drawing",
    "Summary": "discreet.engines._request",
    "DryRun": "discreet._tables._raw_counts",
    "dry_run": "discreet._tables._raw_counts",
    "Release": "discreet.engines._local",
    "sample": "discreet.engines._local",
    "sample_file": "discreet.engines._local",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: reading a file can then start before the kernels are loaded."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ImportError as missing:
        need_extra("cli", missing)
