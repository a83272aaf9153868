"""BLAKE2b [RFC 7693] in numba, for messages of whole 64-bit words under one key.

The key fills the first block of every message, so the state after it is computed once for a run (`keyed_state`). A client of up to fourteen
distinct values then costs a single compression.
"""

import struct
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import kernel

BLOCK = 16  # words

_INITIAL = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_SCHEDULE = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.uintp,  # unsigned, so that no index is tested for being negative
)


@numba.njit(inline="always")
def _rotate_right(x: Any, right: int) -> Any:
    return (x >> np.uint64(right)) | (x << np.uint64(64 - right))


@numba.njit(inline="always")
def _mix_words(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    a = a + b + x
    d = _rotate_right(d ^ a, 32)
    c = c + d
    b = _rotate_right(b ^ c, 24)
    a = a + b + y
    d = _rotate_right(d ^ a, 16)
    c = c + d
    b = _rotate_right(b ^ c, 63)
    return a, b, c, d


@kernel()
def compress(state: Any, words: Any, first: Any, so_far: Any, last: bool) -> None:
    """The function F of the RFC: absorb the block from words[first] on into the state. `so_far` counts bytes, this block's included."""
    v0, v1, v2, v3, v4, v5, v6, v7 = (
        state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7],
    )  # fmt: skip
    v8, v9, v10, v11 = _INITIAL[0], _INITIAL[1], _INITIAL[2], _INITIAL[3]
    v12, v13, v15 = _INITIAL[4] ^ so_far, _INITIAL[5], _INITIAL[7]
    v14 = ~_INITIAL[6] if last else _INITIAL[6]
    for turn in range(12):
        s = _SCHEDULE[turn]
        v0, v4, v8, v12 = _mix_words(v0, v4, v8, v12, words[first + s[0]], words[first + s[1]])
        v1, v5, v9, v13 = _mix_words(v1, v5, v9, v13, words[first + s[2]], words[first + s[3]])
        v2, v6, v10, v14 = _mix_words(v2, v6, v10, v14, words[first + s[4]], words[first + s[5]])
        v3, v7, v11, v15 = _mix_words(v3, v7, v11, v15, words[first + s[6]], words[first + s[7]])
        v0, v5, v10, v15 = _mix_words(v0, v5, v10, v15, words[first + s[8]], words[first + s[9]])
        v1, v6, v11, v12 = _mix_words(v1, v6, v11, v12, words[first + s[10]], words[first + s[11]])
        v2, v7, v8, v13 = _mix_words(v2, v7, v8, v13, words[first + s[12]], words[first + s[13]])
        v3, v4, v9, v14 = _mix_words(v3, v4, v9, v14, words[first + s[14]], words[first + s[15]])
    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15


@kernel()
def absorb_message(state: Any, words: Any, number: int) -> None:
    """Absorb the first `number` >= 1 words into a keyed state. `words` has room up to the end of the last block."""
    blocks = (number + BLOCK - 1) // BLOCK
    for place in range(number, BLOCK * blocks):
        words[place] = 0
    for block in range(blocks - 1):
        compress(state, words, np.uintp(BLOCK * block), np.uint64(8 * BLOCK * (block + 2)), False)
    compress(state, words, np.uintp(BLOCK * (blocks - 1)), np.uint64(8 * (BLOCK + number)), True)


def keyed_state(key: bytes, person: bytes, digest_size: int) -> NDArray[np.uint64]:
    """The state after the key's block, ready for a non-empty message."""
    parameters = struct.pack("<BBBB28x16s16s", digest_size, len(key), 1, 1, b"", person)
    state: NDArray[np.uint64] = _INITIAL ^ np.frombuffer(parameters, dtype="<u8")
    block = np.frombuffer(key.ljust(8 * BLOCK, b"\0"), dtype="<u8").copy()
    compress(state, block, np.uintp(0), np.uint64(8 * BLOCK), False)
    return state
