"""How wide tests sweep: wide enough to find the bug they are for, or all of it in a soak (`make soak` sets SOAK=1)."""

import os
from typing import TypeVar

Sweep = TypeVar("Sweep")
SOAKING = os.environ.get("SOAK", "") not in ("", "0")


def wide(everything: Sweep, otherwise: Sweep) -> Sweep:
    """Everything in a soak, otherwise the smaller sweep (a number of rounds, a list of cases, a size)."""
    return everything if SOAKING else otherwise


def examples(count: int) -> int:
    """So many random examples in a soak, otherwise a quarter of them."""
    return wide(count, count // 4)
