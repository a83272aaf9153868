"""The sum of squares of the normal matrix in numba: one pass over each client's pairs of outcomes."""

from typing import Any

import numpy as np

from discreet._kernels import kernel


@kernel(error_model="numpy", nogil=True)
def add_squares(out: Any, cross: Any, ends: Any, outcome: Any, rest: Any, rank: Any, alpha: Any, pull: Any) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' in the lower triangle, with b = alpha - pull; a client's outcomes are in order.

    cross += sum_j (rest_j + rank_j alpha_j b_j) 1_j.
    """
    longest = np.uintp(0)
    for client in range(rest.size):
        longest = max(longest, ends[client + 1] - ends[client])
    beta = np.empty(longest)
    for client in range(rest.size):
        start, held = ends[client], ends[client + 1] - ends[client]
        crossing, least = rank[client] * alpha[client], rest[client]
        for entry in range(held):
            one = alpha[client] - pull[start + entry]
            beta[entry] = one
            place = outcome[start + entry]
            cross[place] += least + crossing * one
            scaled = rank[client] * one
            row = out[place]
            for other in range(entry + np.uintp(1)):
                row[outcome[start + other]] += least + scaled * beta[other]
