"""Counts of outcomes in blocks of 128, each a row of 64-bit numbers: so that no row says which outcome was counted last.

PostgreSQL shows to whoever may read a table which transaction wrote each row, and rows that one transaction wrote are found by a join. A row
for each outcome would tell which outcomes a transaction has counted. A block tells at most which 128 outcomes they are among; and where
there are few blocks all of them are written every time, which tells nothing. How much is counted at a time: `discreet.collect._pool`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.collect._keeping import DAMAGED, check_stored_counts
from discreet.errors import StoreError

BLOCK = 128  # outcomes: a kilobyte, which is updated in its page
FEW_BLOCKS = 8  # blocks that are all written together
_NUMBERS = np.dtype("<i8")
EMPTY = bytes(BLOCK * _NUMBERS.itemsize)


def blocks_to_write(new: Sequence[tuple[int, int]], outcomes: int) -> list[int]:
    """The blocks to write, in order, when some of the outcomes are counted: (outcome, how many)."""
    every = -(-outcomes // BLOCK)
    return list(range(every)) if every <= FEW_BLOCKS else sorted({outcome // BLOCK for outcome, _ in new})


def add_to_blocks(blocks: Mapping[int, bytes], new: Iterable[tuple[int, int]]) -> list[bytes]:
    """What the blocks hold, in the order of their numbers, once these are counted."""
    held = {block: _read(content).copy() for block, content in sorted(blocks.items())}
    for outcome, many in new:
        held[outcome // BLOCK][outcome % BLOCK] += many
    return [content.tobytes() for content in held.values()]


def totals(cursor: Any, outcomes: int) -> NDArray[np.int64]:
    """Counts of all outcomes, from rows (block, what it holds), several for a block; a part of them at a time."""
    counts = np.zeros(-(-outcomes // BLOCK) * BLOCK, dtype=np.int64)
    while rows := cursor.fetchmany(1000):
        for block, content in rows:
            if not 0 <= block < len(counts) // BLOCK:
                raise StoreError(DAMAGED)
            counts[block * BLOCK : (block + 1) * BLOCK] += _read(content)
    if counts[outcomes:].any():
        raise StoreError(DAMAGED)
    return check_stored_counts(counts[:outcomes])


def _read(content: bytes) -> NDArray[np.int64]:
    if len(content) != len(EMPTY):
        raise StoreError(DAMAGED)
    return np.frombuffer(content, dtype=_NUMBERS).astype(np.int64)
