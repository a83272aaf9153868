"""The sum of squares of the normal matrix in numba: one pass over each client's pairs of outcomes."""

from typing import Any

from discreet.kernels import kernel


@kernel(error_model="numpy", nogil=True)
def add_squares(out: Any, starts: Any, outcome: Any, rest: Any, rank: Any, beta: Any) -> None:
    """out += sum_j rest_j 1_j 1_j' + rank_j b_j b_j' in the lower triangle; a client's outcomes are in order."""
    for client in range(starts.size):
        stop = starts[client + 1] if client + 1 < starts.size else outcome.size
        for entry in range(starts[client], stop):
            scaled = rank[client] * beta[entry]
            row = out[outcome[entry]]
            for other in range(starts[client], entry + 1):
                row[outcome[other]] += rest[client] + scaled * beta[other]
