"""Surveys in numba: the words of a client's report, and the row that it draws of its own, from its rows and its key.

A row of a survey is a number of up to 62 bits, so its records are wider than outcomes of one column. A client's message is that of
`discreet.release._keyed`, after four words that name the survey. Its first hash gives eight words. The third of them chooses among its rows;
what the others decide is up to `discreet.survey`.
"""

from typing import Any

import numpy as np

from discreet._base.kernels import kernel
from discreet.release._blake2b import BLOCK, absorb_message
from discreet.release._blocks import write_block_words
from discreet.release._canonical import write_counts, write_weights
from discreet.release._clients import REFUSED_TOO_MANY
from discreet.release._keyed import DIGEST_WORDS, WIDE_FORM, WORDS
from discreet.release._lattice import TOTAL
from discreet.release._randomness import BITS
from discreet.release._sparse import longest_client, write_client

CONTEXT_WORDS = 4
_SPARE_BITS = np.uint64(64 - BITS)
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_TOTAL = np.uint64(TOTAL)


@kernel(nogil=True)
def draw_rows(
    size: int,
    context: Any,
    clients: Any,
    keyed: Any,
    first: int,
    last: int,
    drawn: Any,
    rows: Any,
    states: Any,
    order: Any,
    digest: Any,
    problem: Any,
) -> int:
    """Fill the words, rows and states of clients first <= row < last; returns the first bad row, or -1, as `sparse.draw` does.

    A state is 0 for a client without rows, 1 for one whose row was drawn, and 2 where the third word has to be drawn anew.
    """
    integers, text_ends, text, ends, records, counts, weights = clients
    bad, longest, longest_name = longest_client(integers, text_ends, ends, first, last, problem)
    if bad >= 0:
        return bad
    keys, spare = np.empty(longest, dtype=np.uint64), np.empty(longest, dtype=np.uint64)
    own, spare_own = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    masses, ones = np.empty(longest), np.ones(longest, dtype=np.int64)
    message = np.empty(1 + CONTEXT_WORDS + 1 + longest_name + 2 * longest + BLOCK, dtype=np.uint64)
    for place in range(CONTEXT_WORDS):
        message[1 + place] = context[place]
    words = message[1 + CONTEXT_WORDS :]
    state = np.empty(8, dtype=np.uint64)
    for row in range(first, last):
        used = write_client(integers, text_ends, text, row, words)
        start, stop = ends[row], ends[row + 1]
        if weights.size:
            number, form = write_weights(
                records, weights, start, stop, size, words, used, keys, spare, own, spare_own, masses, problem
            )
        elif counts.size:
            number, form = write_counts(
                records, counts, start, stop, size, words, used, keys, spare, own, spare_own, problem
            )
        else:
            number, form = write_counts(
                records[start:stop], ones, 0, stop - start, size, words, used, keys, spare, own, spare_own, problem
            )
        if number < 0:
            return row
        words[0] += np.uint64(256 * form)
        step = 2 if form == WIDE_FORM else 1
        length = used + number * step
        total = np.uint64(0)
        for place in range(used, length, step):
            total += words[place + 1] if form == WIDE_FORM else words[place] & _LOWER_HALF
        if total > _TOTAL:
            problem[0], problem[1] = 0, REFUSED_TOO_MANY
            return row
        if digest.size or order.size:
            for place in range(8):
                state[place] = keyed[place]
            absorb_message(state, words, length)
            if order.size:
                order[row] = state[1]
            for place in range(digest.size):
                digest[place] += state[WORDS - DIGEST_WORDS + place]
        write_block_words(keyed, message, 1 + CONTEXT_WORDS + length, 0, state)
        for place in range(WORDS):
            drawn[row, place] = np.int64(state[place] >> _SPARE_BITS)
        rows[row], states[row] = 0, 0
        if total:
            word = np.uint64(drawn[row, 2])
            wanted = word % total
            states[row] = 1 if word - wanted <= _TOTAL - total else 2
            place = used
            while True:
                amount = words[place + 1] if form == WIDE_FORM else words[place] & _LOWER_HALF
                if wanted < amount:
                    break
                wanted -= amount
                place += step
            rows[row] = np.int64(words[place] if form == WIDE_FORM else words[place] >> _HALF)
    return -1
