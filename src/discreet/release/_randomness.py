"""Uniform integers in [0, 2^62): from the operating system for a release, from a seed for an experiment."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base.doors import OldName
from discreet.errors import DiscreetError, NotPrivateWarning, warn_caller

BITS = 62
_TOGETHER = 1 << 15  # most integers in one read, so that they stay in cache
_WORTH_A_THREAD = 1 << 12
_MOST_THREADS = 16


class Randomness(Protocol):
    """A source of independent uniform integers in [0, 2^62)."""

    def integers(self, count: int) -> NDArray[np.int64]: ...


class IntegerFiller(Protocol):
    """A source that writes its integers in place, part by part."""

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write an integer to every place, from the first on, and yield the number of filled places from time to time."""


class SystemEntropy:
    """The operating system's generator, from which private releases draw."""

    def integers(self, count: int) -> NDArray[np.int64]:
        found = np.empty(count, dtype=np.int64)
        for _ in self.fill_by_parts(found):
            pass
        return found

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write an integer to every place, from the first on, and yield the number of filled places from time to time."""
        count, places = len(found), found.view(np.uint64)
        if count <= _WORTH_A_THREAD:
            if count:
                _read_entropy(places)
            yield count
            return
        threads = min(_MOST_THREADS, os.cpu_count() or 1)
        step = min(_TOGETHER, max(_WORTH_A_THREAD, -(-count // threads)))
        parts = [places[start : start + step] for start in range(0, count, step)]
        done = 0
        for part in _entropy_threads(threads).map(
            _read_entropy, parts
        ):  # several threads read, since one alone would be the bottleneck
            done += part
            yield done

    filled = OldName("fill_by_parts")


def entropy_bytes(count: int) -> bytes:
    """That many bytes of the operating system's generator, for keys and words of a draw elsewhere."""
    return os.urandom(count)


def _read_entropy(places: NDArray[np.uint64]) -> int:
    np.right_shift(np.frombuffer(os.urandom(places.nbytes), dtype=np.uint64), np.uint64(64 - BITS), out=places)
    return len(places)


@lru_cache(maxsize=1)
def _entropy_threads(threads: int) -> ThreadPoolExecutor:
    """A permanent thread pool: starting threads takes as long as reading a million integers."""
    return ThreadPoolExecutor(threads, thread_name_prefix="discreet-entropy")


if hasattr(os, "register_at_fork"):  # a fork copies no threads: a child starts its own
    os.register_at_fork(after_in_child=_entropy_threads.cache_clear)


class FixedIntegers:
    """Given integers as a source, for checks of the draw. NOT private."""

    def __init__(self, uniform: NDArray[np.int64]) -> None:
        self._uniform = uniform

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write the integers to their places."""
        found[:] = self._uniform
        yield len(found)


class _SeededRandomness:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def integers(self, count: int) -> NDArray[np.int64]:
        return self._rng.integers(0, 1 << BITS, size=count, dtype=np.int64)


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """The generator given, or a fresh one: for what does not depend on a client.

    Args:
        rng: a numpy Generator, or None.

    Returns:
        A numpy Generator.

    Raises:
        DiscreetError: for anything else.
    """
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise DiscreetError(
            f"rng = {rng!r} is not a numpy Generator; pass numpy.random.default_rng(seed), or leave it out"
        )
    return rng


def seeded_randomness(rng: np.random.Generator) -> Randomness:
    """Reproducible randomness for experiments; warns that everybody who knows the seed can undo the privacy.

    Args:
        rng: a numpy Generator.

    Returns:
        A source of uniform integers.

    Raises:
        DiscreetError: for anything else.
    """
    rng = generator(rng)
    warn_caller(
        "rng= makes the sample reproducible: it is NOT private; leave it out to draw from the operating system",
        NotPrivateWarning,
    )
    return _SeededRandomness(rng)


def randomness_from(rng: np.random.Generator | None) -> Randomness:
    """The operating system's entropy; or for experiments reproducible randomness from a generator, which warns so."""
    return SystemEntropy() if rng is None else seeded_randomness(rng)
