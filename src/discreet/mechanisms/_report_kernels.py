"""Compiled counting of reports on affine blocks with wide windows: one addition for each value that a report takes into its window.

The additions of a report lie anywhere in the table, so the time is that of the cache. Counts of 16 bits make the table small enough; they
are added to the real table before they can overflow.
"""

from typing import Any

import numpy as np

from discreet._base.kernels import kernel

_ONE = np.uint16(1)


@kernel(nogil=True)
def add_progressions(rows: Any, firsts: Any, strides: Any, prime: int, window: int, counts: Any) -> None:
    """counts[row + v] += 1 for v = first, first + stride, ... modulo a prime below 2^31, `window` of them for each report."""
    q = np.uint32(prime)
    for report in range(rows.size):
        row, value, stride = np.uintp(rows[report]), np.uint32(firsts[report]), np.uint32(strides[report])
        for _ in range(window):
            counts[row + np.uintp(value)] += _ONE
            value = np.uint32(value + stride)
            value = np.uint32(value - q) if value >= q else value
