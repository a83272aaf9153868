"""What the time of one release tells about what was drawn, with and without `constant_time`, and what that costs.

A client holds one value out of 10^5 at epsilon 12; about half of its samples are that value. Whoever sees only the time a release takes
guesses whether the sample is the client's own by one threshold, the best one there is in hindsight: 0.5 is blind, 1 is certain.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import discreet as dc
from discreet.errors import LargeEpsilonWarning

SIZE, EPSILON, RELEASES = 100_000, 12.0, 600


def threshold_accuracy(own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The best mean of the two rates at which a threshold on the time sorts the two kinds of samples, either way round."""
    cuts = np.concatenate([own, other])
    share_own = np.searchsorted(np.sort(own), cuts, side="right") / len(own)
    share_other = np.searchsorted(np.sort(other), cuts, side="right") / len(other)
    return float(0.5 + 0.5 * np.max(np.abs(share_own - share_other)))


def blind_accuracy(own: int, other: int, rng: np.random.Generator) -> float:
    """What the best threshold in hindsight reaches by luck alone: times that say nothing."""
    return float(np.mean([threshold_accuracy(rng.random(own), rng.random(other)) for _ in range(50)]))


def timed(release: Callable[[], int], own: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds of releases that gave the client's own value, and of the others."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(RELEASES):
        start = time.perf_counter()
        drawn = release()
        seconds[drawn == own].append(time.perf_counter() - start)
    return np.array(seconds[True]), np.array(seconds[False])


def run() -> None:
    """Print the table."""
    own = 777
    p = np.zeros(SIZE)
    p[own] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", LargeEpsilonWarning
        )  # only so large an epsilon makes the client's own value likely
        sampler = dc.OptimalSampler(dc.Simplex(SIZE), epsilon=EPSILON)
    rng = np.random.default_rng(0)
    sampler.release(p)
    rows, usual = [], 0.0
    for name, constant in (("release(p)", False), ("release(p, constant_time=True)", True)):
        mine, others = timed(partial(sampler.release, p, constant_time=constant), own)
        typical = float(np.median(np.concatenate([mine, others])))
        usual = usual or typical
        rows.append([
            name, f"{1e3 * typical:.2f} ms", f"{typical / usual:.1f}", f"{threshold_accuracy(mine, others):.3f}",
            f"{blind_accuracy(len(mine), len(others), rng):.3f}",
        ])  # fmt: skip
    made = Table("", "median", "ratio", "best threshold tells own from other", "by luck alone")
    for row in rows:
        made.add_row(*row)
    console = Console()
    console.print(f"One release at a time, {SIZE:,} outcomes, epsilon {EPSILON:g}, {RELEASES} releases each")
    console.print(made)
