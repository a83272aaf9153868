"""The finite core: dense batches as ratios to one `P.sum(axis=1)` over the same array, and one large client against bisection."""

import os
import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import discreet as dc
from benchmarks.rivals import bisection_projection

REPEATS = 3
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
CASES = ((1_000_000, 100), (1_000, 100_000))


def best(of: Callable[[], object]) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        of()
        times.append(time.perf_counter() - start)
    return min(times)


def dirichlet(clients: int, k: int, concentration: float) -> NDArray[np.float64]:
    """Random laws, built in place: nothing else of that size is held."""
    rng = np.random.default_rng(1)
    laws = (
        rng.standard_exponential((clients, k)) if concentration == 1.0 else rng.gamma(concentration, size=(clients, k))
    )
    laws /= laws.sum(axis=1, keepdims=True)
    return laws


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def batches(console: Console) -> None:
    table = Table(title="Dense batches, as multiples of one P.sum(axis=1) in the same run (compiled kernel, all cores)")
    for column in (
        "clients",
        "outcomes",
        "laws",
        "epsilon",
        "P.sum, s",
        "release",
        "of which entropy",
        "output",
        "memory beyond the laws",
    ):
        table.add_column(column, justify="right")
    for clients, k in CASES:
        for concentration in (1.0, 0.05):
            laws = dirichlet(clients, k, concentration)
            before = peak_mebibytes()
            for epsilon in EPSILONS:
                sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon)
                sampler.release(laws[:2])
                one_pass = best(lambda laws=laws: laws.sum(axis=1))  # type: ignore[misc]
                released = best(lambda sampler=sampler, laws=laws: sampler.release(laws))  # type: ignore[misc]
                used = peak_mebibytes() - before
                entropy = best(lambda clients=clients: os.urandom(8 * clients))  # type: ignore[misc]
                projected = best(lambda sampler=sampler, laws=laws: sampler.output(laws))  # type: ignore[misc]
                kind = "spread" if concentration == 1.0 else "peaked"
                table.add_row(
                    f"{clients:,}", f"{k:,}", kind, f"{epsilon:g}", f"{one_pass:.3f}", f"{released / one_pass:.2f}x",
                    f"{entropy / one_pass:.2f}x", f"{projected / one_pass:.2f}x", f"{max(used, 0):.0f} MiB",
                )  # fmt: skip
                before = max(before, peak_mebibytes())
    console.print(table)
    console.print(
        "Target: release within 4x, output within 5x. output writes as much memory as P.sum reads, all of it fresh."
    )


def one_large_client(console: Console) -> None:
    table = Table(
        title="One client with 1,000,000 outcomes: the exact scale against a textbook numpy bisection to 1e-8"
    )
    for column in ("epsilon", "bisection, ms", "exact, ms", "times faster", "|sum - 1|, bisection", "|sum - 1|, exact"):
        table.add_column(column, justify="right")
    law = dirichlet(1, 1_000_000, 0.2)[0]
    for epsilon in (0.5, 2.0, 8.0):
        sampler = dc.OptimalSampler(dc.Simplex(law.size), epsilon=epsilon)
        q = sampler.output(law)
        slow = best(lambda epsilon=epsilon: bisection_projection(law, epsilon, 1e-8))  # type: ignore[misc]
        fast = best(lambda sampler=sampler: sampler.output(law))  # type: ignore[misc]
        rough = bisection_projection(law, epsilon, 1e-8)
        table.add_row(
            f"{epsilon:g}", f"{slow * 1e3:.1f}", f"{fast * 1e3:.2f}", f"{slow / fast:.0f}x",
            f"{abs(rough.sum() - 1):.1e}", f"{abs(q.sum() - 1):.1e}",
        )  # fmt: skip
    console.print(table)


def run() -> None:
    """Print every table of the finite core."""
    console = Console(width=150)
    batches(console)
    one_large_client(console)


if __name__ == "__main__":
    run()
