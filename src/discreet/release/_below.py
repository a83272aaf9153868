"""Uniform integers below a bound, exactly.

Words of 62 bits at or above the last whole multiple of the bound are drawn anew; the remainder of any other word is uniform. A word is kept
with probability more than one half, so a draw takes fewer than two words on average. Words come from the operating system, from a seed, or
from a secret and a client's data:

    words i*8 .. i*8+7  =  BLAKE2b-512(key = run key, person = "discreet blocks1", i as 8 bytes, little-endian | message)

with the run key and the message of `discreet.release._keyed`. Each word loses its two lowest bits.
"""

import hashlib
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.release._keyed import RunKey
from discreet.release._randomness import BITS, Randomness

_PERSON = b"discreet blocks1"
_WORDS = 8  # of one hash


def check_bound(bound: int) -> int:
    """The largest multiple of the bound; words from there on are drawn anew."""
    if not 1 <= bound <= 1 << BITS:
        raise ValueError(f"bound = {bound} is not between 1 and 2^{BITS}")
    return ((1 << BITS) // bound) * bound


def draw_below(randomness: Randomness, bound: int, count: int) -> NDArray[np.int64]:
    """That many independent integers, uniform on 0 .. bound - 1."""
    limit = check_bound(bound)
    words = randomness.integers(count)
    if limit < 1 << BITS:
        again = np.flatnonzero(words >= limit)
        while again.size:
            words[again] = randomness.integers(again.size)
            again = again[words[again] >= limit]
    words -= (words // bound) * bound  # faster than numpy's remainder
    return words


def keyed_words(key: RunKey, message: bytes) -> Iterator[int]:
    """The endless stream of 62-bit words of one client; the same key and message give the same words."""
    number = 0
    while True:
        content = struct.pack("<Q", number) + message
        hashed = hashlib.blake2b(content, key=key.value, person=_PERSON, digest_size=8 * _WORDS).digest()
        for word in struct.unpack(f"<{_WORDS}Q", hashed):
            yield word >> (64 - BITS)
        number += 1


def keyed_word_rows(key: RunKey, messages: list[bytes]) -> NDArray[np.int64]:
    """The first words of `keyed_words` of many clients, a row of eight for each."""
    start = struct.pack("<Q", 0)
    hashed = [
        hashlib.blake2b(start + message, key=key.value, person=_PERSON, digest_size=8 * _WORDS).digest()
        for message in messages
    ]
    words = np.frombuffer(b"".join(hashed), dtype="<u8").reshape(-1, _WORDS)
    return (words >> np.uint64(64 - BITS)).astype(np.int64)


def next_below(words: Iterator[int], bound: int) -> int:
    """The next integer of a stream, uniform on 0 .. bound - 1."""
    limit = check_bound(bound)
    word = next(words)
    while word >= limit:
        word = next(words)
    return word % bound
