"""Uniform integers in [0, 2^62): from the operating system for a release, from a seed for an experiment."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, NotPrivateWarning, warn_caller

BITS = 62
_TOGETHER = 1 << 15  # integers that are asked for at once: worth a thread, and what is read for them stays in cache
_MOST_THREADS = 16


class Randomness(Protocol):
    """A source of independent uniform integers in [0, 2^62)."""

    def integers(self, count: int) -> NDArray[np.int64]: ...


class SystemEntropy:
    """The operating system's generator: what a private release draws from."""

    def integers(self, count: int) -> NDArray[np.int64]:
        found = np.empty(count, dtype=np.uint64)

        def fill(start: int) -> None:
            part = found[start : start + _TOGETHER]
            np.right_shift(np.frombuffer(os.urandom(part.nbytes), dtype=np.uint64), np.uint64(64 - BITS), out=part)

        parts = range(0, count, _TOGETHER)
        if len(parts) > 1:  # several threads read where one alone would keep the others waiting
            with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1, len(parts))) as pool:
                list(pool.map(fill, parts))
        elif count:
            fill(0)
        return found.view(np.int64)


class _Seeded:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def integers(self, count: int) -> NDArray[np.int64]:
        return self._rng.integers(0, 1 << BITS, size=count, dtype=np.int64)


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """The generator given, or a fresh one: for what does not depend on a client."""
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise DiscreetError(
            f"rng = {rng!r} is not a numpy Generator; pass numpy.random.default_rng(seed), or leave it out"
        )
    return rng


def seeded(rng: np.random.Generator) -> Randomness:
    """Reproducible randomness for experiments; warns that whoever knows the seed can undo the privacy."""
    rng = generator(rng)
    warn_caller(
        "rng= makes the sample reproducible: it is NOT private; leave it out to draw from the operating system",
        NotPrivateWarning,
    )
    return _Seeded(rng)
