"""Threads do not survive a fork: a child whose parent had started those of polars would wait for them for ever.

`os.fork`, and `multiprocessing` where it forks, copy the memory of a process but only the thread that asked for it. Python, numpy
and this package's own threads are fine with that (ours are gone after each call, or started anew in a child); the worker threads of
polars, which read tables for the engines, are not. So it is noted at each fork whether they were running, and a child that cannot
work is told so.
"""

import os
import re
from pathlib import Path

from discreet.errors import DiscreetError

_WORKERS = re.compile(r"polars-\d|tokio-|async-exec")  # what polars calls its threads

_used = False  # polars, by us
_noted = False  # whether its threads were running before the latest fork
_lost = False  # whether they were in a process that this one was forked from


def refuse_after_fork() -> None:
    """Say what to do in a child that would hang. Called before polars is put to work."""
    global _used
    if _lost:
        raise DiscreetError(
            "this process was forked after polars had started its threads, which a fork does not copy: the engine would hang here; "
            "start workers afresh, with multiprocessing.get_context('spawn') or 'forkserver', or fork before the first release"
        )
    _used = True


def _note_threads() -> None:
    global _noted
    try:
        names = [path.read_text(errors="replace") for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:  # a thread has ended meanwhile
        names = []
    _noted = any(map(_WORKERS.match, names)) if names else _used


def _inherit() -> None:
    global _lost
    _lost = _lost or _noted


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_threads, after_in_child=_inherit)
