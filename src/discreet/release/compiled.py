"""The exact draw in numba: check, solve and draw each row while it is in cache, rows shared out among threads.

The arithmetic on integers, and the one multiplication and addition that feed it, are compiled without any licence to
re-associate or contract, so that the law drawn is bit for bit the one that `Lattice.weights` shows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import kernel
from discreet.projection.breakpoints import NEGLIGIBLE
from discreet.projection.compiled import at, look, solve
from discreet.projection.threads import first_bad_row
from discreet.release.lattice import Integers, Lattice
from discreet.release.randomness import BITS

Floats = NDArray[np.float64]

_TOTAL = float(1 << BITS)
_BLOCK = 16


@kernel(error_model="numpy")
def _excess(p: Any, place: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any) -> Any:
    """E_x before it is cut off: the affine law in units of 2^-62, clipped to [L, U], rounded down, less L.

    L and U are floats too, exactly, so clipping before rounding gives the same integer as clipping after it.
    """
    mass = p[place] * steep if steep != np.inf else (_TOTAL if p[place] > NEGLIGIBLE else 0.0)
    value = mass + lift * at(floors, place) * _TOTAL
    low = at(lower, place)
    return np.int64(min(max(np.float64(low), value), np.float64(at(upper, place)))) - low  # in this order NaN gives L


@kernel(error_model="numpy")
def _block_excess(
    p: Any, start: int, stop: int, steep: float, lift: float, floors: Any, lower: Any, upper: Any
) -> tuple[int, bool]:
    """The excess of a block of at most 16 outcomes, and whether it is small enough to be that sum (63 bits suffice)."""
    whole = 0
    sixteenths = 0
    for place in range(start, stop):
        excess = _excess(p, place, steep, lift, floors, lower, upper)
        whole += excess
        sixteenths += excess >> 4
    return whole, sixteenths < 1 << (BITS - 4)


@kernel(error_model="numpy")
def _above_shared(p: Any, slope: float, lift: float, floors: Any, lower: Any, upper: Any, rest: int) -> int:
    """The outcome on which the integer `rest` falls, once the shared part has been taken off.

    Blocks that lie before it are added up without looking inside: a loop that cannot end early needs no guessing.
    """
    steep = slope * _TOTAL
    for start in range(0, p.size, _BLOCK):
        stop = min(start + _BLOCK, p.size)
        whole, fits = _block_excess(p, start, stop, steep, lift, floors, lower, upper)
        if fits and whole <= rest:
            rest -= whole
            continue
        for place in range(start, stop):
            rest -= _excess(p, place, steep, lift, floors, lower, upper)
            if rest < 0:
                return place
    for place in range(p.size):
        room = at(upper, place) - at(lower, place)
        rest -= room - _excess(p, place, steep, lift, floors, lower, upper)
        if rest < 0:
            return place
    return -1  # unreachable: the lattice was built with sum U >= 2^62


@kernel(error_model="numpy", nogil=True)
def _draw(
    laws: Any,
    floors: Any,
    ceilings: Any,
    lower: Any,
    upper: Any,
    shared: int,
    edges: Any,
    projecting: bool,
    slope: Any,
    lift: Any,
    uniform: Any,
    out: Any,
) -> int:
    for row in range(len(laws)):
        p = laws[row]
        held = look(p)
        if held == 0:
            return row
        if uniform[row] >= shared:
            if projecting:
                slope[row], lift[row] = solve(p, held, floors, ceilings)
            out[row] = _above_shared(p, slope[row], lift[row], floors, lower, upper, uniform[row] - shared)
        elif edges.size:
            out[row] = np.searchsorted(edges, uniform[row], side="right")
        else:
            out[row] = uniform[row] // at(lower, 0)
    return -1


def draw(
    lattice: Lattice, laws: Floats, projecting: bool, slope: Floats, lift: Floats, uniform: Integers, out: Integers
) -> int:
    """Fill `out` with one outcome for each row, and `slope`, `lift` of those rows that had to be solved.

    `projecting`: solve for slope and lift; otherwise use those given. Returns the first row that is not a law, or -1.
    """
    box = lattice.box

    def work(rows: slice) -> int:
        return int(
            _draw(
                laws[rows], box.lower, box.ceiling, lattice.lower, lattice.upper, lattice.shared, lattice.shared_edges,
                projecting, slope[rows], lift[rows], uniform[rows], out[rows],
            )
        )  # fmt: skip

    return first_bad_row(work, len(laws), laws.size)
