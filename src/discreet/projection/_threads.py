"""Threads that share rows.

The kernels release the interpreter lock, so plain threads suffice. They start for one call and end with it, so that a process may fork, or
call from many threads of its own, at any time.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_WORTH_SHARING = 1 << 16  # fewer entries do not repay starting a thread
_PIECES_EACH = 4  # more pieces than threads, so that one slow piece does not delay the rest


def processor_count() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def first_bad_row(work: Callable[[slice], int], rows: int, entries: int) -> int:
    """Run `work` on slices of the rows. `work` returns the first row of its slice that it rejects, or -1; so does this."""
    threads = min(processor_count(), rows)
    if threads <= 1 or entries < _WORTH_SHARING:
        return work(slice(0, rows))
    step = max(1, -(-rows // (_PIECES_EACH * threads)))
    pieces = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
    with ThreadPoolExecutor(threads) as pool:
        for piece, bad in zip(pieces, list(pool.map(work, pieces)), strict=True):
            if bad >= 0:
                return piece.start + bad
    return -1
