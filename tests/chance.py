"""The same chances in every run: what a test would read from the operating system's generator comes from a seed, the test's name.

A statistical test then passes or fails by its code, and not by luck or by the machine. A soak reads the real generator, and so do tests
marked `entropy`, which are about it. What is seeded: bytes that `discreet.release` reads, and numpy generators that are made without a
seed. Other processes, forked ones too, read the real generator.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pytest

from discreet.release import _randomness
from tests.soaking import SOAKING


@lru_cache(maxsize=1)
def _one_thread() -> ThreadPoolExecutor:
    """Parts are read in their order."""
    return ThreadPoolExecutor(1, thread_name_prefix="tests-entropy")


@contextmanager
def seeded_by(name: str, *, real: bool = SOAKING) -> Iterator[None]:
    """Seed what is read inside by a name, unless the real generator is to be read."""
    if real:
        yield
        return
    chance = Random(hashlib.blake2b(name.encode(), digest_size=16).digest())
    process, read_bytes, make_generator = os.getpid(), os.urandom, np.random.default_rng
    threads_of = _randomness._entropy_thread_pool

    def seeded_bytes(count: int) -> bytes:
        ours = os.getpid() == process and sys._getframe(1).f_globals["__name__"] == _randomness.__name__
        return chance.randbytes(count) if ours else read_bytes(count)

    def seeded_generator(seed: Any = None) -> np.random.Generator:
        ours = seed is None and os.getpid() == process
        return make_generator(chance.getrandbits(128) if ours else seed)

    def reading_threads(threads: int) -> ThreadPoolExecutor:
        return _one_thread() if os.getpid() == process else threads_of(threads)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", seeded_bytes)
        patch.setattr(np.random, "default_rng", seeded_generator)
        patch.setattr(_randomness, "_entropy_thread_pool", reading_threads)
        yield
