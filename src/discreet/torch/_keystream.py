"""ChaCha20 on the device (RFC 8439, section 2.3): `write_keystream` fills memory with the keystream of one key.

A call of `release` with many rows takes 256 bits from the operating system as its key, and draws row r with the r-th 64-bit word of the
keystream: words 2 (r mod 8) and 2 (r mod 8) + 1 of block floor(r/8), little-endian, nonce 0. The counter has 32 bits, so one key serves 2^35
rows. A key serves one call, and one kernel of that call. So two draws never share a word, whether in a row, a call or a process.
"""

import triton
import triton.language as tl

WORDS = 8  # 64-bit words of a block
LANES = tl.constexpr(128)  # blocks of a program, one a thread


@triton.jit
def _quarter_round(a, b, c, d):
    """RFC 8439, section 2.1, on 32-bit numbers without sign."""
    a += b
    d ^= a
    d = (d << 16) | (d >> 16)
    c += d
    b ^= c
    b = (b << 12) | (b >> 20)
    a += b
    d ^= a
    d = (d << 8) | (d >> 24)
    c += d
    b ^= c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit
def _join_words(low, high):
    """Two 32-bit words as one of 64 bits, the first one low."""
    return (low.to(tl.uint64) | (high.to(tl.uint64) << 32)).to(tl.int64, bitcast=True)


@triton.jit
def _unsigned_word(word, like):
    """A 32-bit argument as a number without sign, once for each block."""
    return like * 0 + word.to(tl.uint32, bitcast=True)


@triton.jit(do_not_specialize=[
    "first", "words", "key_0", "key_1", "key_2", "key_3", "key_4", "key_5", "key_6", "key_7", "nonce_0", "nonce_1", "nonce_2",
])  # fmt: skip
def write_keystream(
    out, first, words, key_0, key_1, key_2, key_3, key_4, key_5, key_6, key_7, nonce_0, nonce_1, nonce_2,
):  # fmt: skip
    """Write the first `words` 64-bit words of the keystream from the block numbered `first` on."""
    block = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    counter = (block + first).to(tl.uint32)
    k_0 = _unsigned_word(key_0, counter)
    k_1 = _unsigned_word(key_1, counter)
    k_2 = _unsigned_word(key_2, counter)
    k_3 = _unsigned_word(key_3, counter)
    k_4 = _unsigned_word(key_4, counter)
    k_5 = _unsigned_word(key_5, counter)
    k_6 = _unsigned_word(key_6, counter)
    k_7 = _unsigned_word(key_7, counter)
    n_0 = _unsigned_word(nonce_0, counter)
    n_1 = _unsigned_word(nonce_1, counter)
    n_2 = _unsigned_word(nonce_2, counter)
    c_0 = counter * 0 + 0x61707865
    c_1 = counter * 0 + 0x3320646E
    c_2 = counter * 0 + 0x79622D32
    c_3 = counter * 0 + 0x6B206574
    x_0, x_1, x_2, x_3, x_4, x_5, x_6, x_7 = c_0, c_1, c_2, c_3, k_0, k_1, k_2, k_3
    x_8, x_9, x_10, x_11, x_12, x_13, x_14, x_15 = k_4, k_5, k_6, k_7, counter, n_0, n_1, n_2
    for _ in range(10):
        x_0, x_4, x_8, x_12 = _quarter_round(x_0, x_4, x_8, x_12)
        x_1, x_5, x_9, x_13 = _quarter_round(x_1, x_5, x_9, x_13)
        x_2, x_6, x_10, x_14 = _quarter_round(x_2, x_6, x_10, x_14)
        x_3, x_7, x_11, x_15 = _quarter_round(x_3, x_7, x_11, x_15)
        x_0, x_5, x_10, x_15 = _quarter_round(x_0, x_5, x_10, x_15)
        x_1, x_6, x_11, x_12 = _quarter_round(x_1, x_6, x_11, x_12)
        x_2, x_7, x_8, x_13 = _quarter_round(x_2, x_7, x_8, x_13)
        x_3, x_4, x_9, x_14 = _quarter_round(x_3, x_4, x_9, x_14)
    offset = block * 8
    tl.store(out + offset + 0, _join_words(x_0 + c_0, x_1 + c_1), mask=offset + 0 < words)
    tl.store(out + offset + 1, _join_words(x_2 + c_2, x_3 + c_3), mask=offset + 1 < words)
    tl.store(out + offset + 2, _join_words(x_4 + k_0, x_5 + k_1), mask=offset + 2 < words)
    tl.store(out + offset + 3, _join_words(x_6 + k_2, x_7 + k_3), mask=offset + 3 < words)
    tl.store(out + offset + 4, _join_words(x_8 + k_4, x_9 + k_5), mask=offset + 4 < words)
    tl.store(out + offset + 5, _join_words(x_10 + k_6, x_11 + k_7), mask=offset + 5 < words)
    tl.store(out + offset + 6, _join_words(x_12 + counter, x_13 + n_0), mask=offset + 6 < words)
    tl.store(out + offset + 7, _join_words(x_14 + n_1, x_15 + n_2), mask=offset + 7 < words)
