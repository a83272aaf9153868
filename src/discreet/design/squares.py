"""The sum of squares of the normal matrix in numba: one pass over each client's pairs of outcomes."""

from typing import Any

import numpy as np

from discreet.kernels import kernel


@kernel(error_model="numpy", nogil=True)
def add_squares(out: Any, cross: Any, starts: Any, outcome: Any, rest: Any, rank: Any, alpha: Any, pull: Any) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' in the lower triangle, with b = alpha - pull; a client's outcomes are in order.

    cross += sum_j (rest_j + rank_j alpha_j b_j) 1_j.
    """
    longest = 0
    for client in range(starts.size):
        longest = max(longest, (starts[client + 1] if client + 1 < starts.size else outcome.size) - starts[client])
    beta = np.empty(longest)
    for client in range(starts.size):
        start = starts[client]
        stop = starts[client + 1] if client + 1 < starts.size else outcome.size
        crossing, least = rank[client] * alpha[client], rest[client]
        for entry in range(start, stop):
            one = alpha[client] - pull[entry]
            beta[entry - start] = one
            place = outcome[entry]
            cross[place] += least + crossing * one
            scaled = rank[client] * one
            row = out[place]
            for other in range(entry + 1 - start):
                row[outcome[start + other]] += least + scaled * beta[other]
