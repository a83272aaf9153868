"""Shared foundations of all rooms: directed rounding, compiled code, files, text for people. Nothing here is public.

Other rooms import from its modules by name; each has its own docstring. Errors are public and have a module of their own, `discreet.errors`.
This one is loaded first. It states the version, and detects forks that would hang.

**Forks.** `os.fork`, and `multiprocessing` where it forks, copy the memory of a process but only the calling thread. Python, numpy and this
package's own threads handle that: ours end after each call, or start anew in a child. The worker threads of polars, which read tables, do
not: a child would wait for them for ever. So each fork records whether they were running, and a child that cannot work raises an error.
"""

import os
import re
from pathlib import Path

from discreet.errors import DiscreetError

__version__ = "0.1.0"
__date__ = "2026-11-17"  # of this version; CITATION.cff repeats both

_WORKERS = re.compile(r"polars-\d|tokio-|async-exec")  # what polars calls its threads

_used = False  # whether this package has used polars
_noted = False  # whether its threads were running at the latest fork
_lost = False  # whether they were running in a process from which this one was forked


def refuse_polars_after_fork() -> None:
    """Raise an error in a child that would hang. Called before polars is used."""
    global _used
    if _lost:
        raise DiscreetError(
            "this process was forked after polars had started its threads, which a fork does not copy: the engine would hang here; "
            "start workers afresh, with multiprocessing.get_context('spawn') or 'forkserver', or fork before the first release"
        )
    _used = True


def _note_running_polars_threads() -> None:
    global _noted
    try:
        names = [path.read_text(errors="replace") for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:  # a thread has ended meanwhile
        names = []
    _noted = any(map(_WORKERS.match, names)) if names else _used


def _mark_polars_threads_lost() -> None:
    global _lost
    _lost = _lost or _noted


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_running_polars_threads, after_in_child=_mark_polars_threads_lost)
