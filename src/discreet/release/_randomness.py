"""Uniform integers in [0, 2^62): from the operating system for a release, from a seed for an experiment."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, NotPrivateWarning, warn_caller

BITS = 62
_LONG = 1 << 18  # bytes that are worth a thread
_MOST_THREADS = 16


class Randomness(Protocol):
    """A source of independent uniform integers in [0, 2^62)."""

    def integers(self, count: int) -> NDArray[np.int64]: ...


def _bytes(count: int) -> bytes:
    """So many bytes of the operating system's generator: read by several threads where one alone would keep the others waiting."""
    if count < 2 * _LONG:
        return os.urandom(count)
    threads = min(_MOST_THREADS, os.cpu_count() or 1, count // _LONG)
    shares = [count * (thread + 1) // threads - count * thread // threads for thread in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        return b"".join(pool.map(os.urandom, shares))


class SystemEntropy:
    """The operating system's generator: what a private release draws from."""

    def integers(self, count: int) -> NDArray[np.int64]:
        words = np.frombuffer(_bytes(8 * count), dtype=np.uint64)
        return (words >> np.uint64(64 - BITS)).view(np.int64)


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
