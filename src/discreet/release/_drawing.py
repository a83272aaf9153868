"""Draw one outcome for each client, or show the integer weights it would be drawn with: the same arithmetic for both."""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from discreet._kernels import compiled_for
from discreet.errors import DiscreetError
from discreet.families._laws import refuse_bad_law
from discreet.projection._box import Affine, numpy_seconds
from discreet.projection._breakpoints import NEGLIGIBLE
from discreet.projection._vectorised import blocks, first_bad, solve_held_rows, solve_rows
from discreet.release._lattice import TOTAL, Integers, Lattice
from discreet.release._portions import all_fit


def outcomes(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers) -> Integers:
    """One outcome for each row of laws (n, k), from one uniform integer each. `mixing` None: project onto the box."""
    return _draw_and_solve(lattice, laws, mixing, uniform, keeping=mixing is not None)[0]


def weights(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None) -> Integers:
    """The integers (n, k), each row summing to 2^62, that `outcomes` draws from."""
    past_shared = np.full(len(laws), min(lattice.shared_total, TOTAL - 1), dtype=np.int64)  # so that every row is solved
    _, slope, lift = _draw_and_solve(lattice, laws, mixing, past_shared)
    return lattice.weights(laws, slope, lift)


def _draw_and_solve(
    lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers, *, keeping: bool = True
) -> tuple[Integers, NDArray[np.float64], NDArray[np.float64]]:
    """Outcomes, slopes and lifts (empty unless they are to be kept). Slopes of rows that fell on the shared part, and so were not
    solved, are infinite."""
    laws = np.ascontiguousarray(laws)  # as compiled code takes rows
    kept = len(laws) if keeping else 0
    slope = np.full(kept, np.inf if mixing is None else mixing.slope)
    lift = np.full(kept, 0.0 if mixing is None else mixing.lift)
    out = np.empty(len(laws), dtype=np.int64)
    compiled = compiled_for(numpy_seconds(laws.size))
    draw = import_module("discreet.release._compiled").draw if compiled else _numpy_draw
    bad = draw(lattice, laws, mixing is None, slope, lift, uniform, out)
    if bad >= 0:
        refuse_bad_law(laws, bad)
    if out.size and out.min() < 0:
        raise DiscreetError("p changed while it was being read; nothing was released: pass a copy")
    return out, slope, lift


def _numpy_draw(
    lattice: Lattice,
    laws: NDArray[np.float64],
    projecting: bool,
    slope: NDArray[np.float64],
    lift: NDArray[np.float64],
    uniform: Integers,
    out: Integers,
) -> int:
    """As `compiled.draw`: the same law, and the same outcome for the same integer."""
    for rows in blocks(*laws.shape):
        bad = first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        steep, raised = _solve_laws(lattice, laws[rows]) if projecting else (slope[rows], lift[rows])
        if slope.size:
            slope[rows], lift[rows] = steep, raised
        out[rows] = lattice.pick(laws[rows], steep, raised, uniform[rows])
    return -1


def _solve_laws(lattice: Lattice, laws: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(slope, lift) for each row. Over a reference that is not uniform what is not held is summed in integers: one number, however
    it is added up; and where all that is held fits at its ceiling no slope serves, which integers decide too."""
    box = lattice.box
    if isinstance(lattice.lower, int):
        return solve_rows(laws, box.lower, box.ceiling)
    held = laws > NEGLIGIBLE
    unheld = (lattice.shared_total - np.where(held, lattice.lower, 0).sum(axis=1)).astype(np.float64) / TOTAL
    slope, lift = np.full(len(laws), np.inf), np.zeros(len(laws))
    rows = ~all_fit(np.where(held, np.asarray(lattice.upper) - lattice.lower, 0), TOTAL - lattice.shared_total)
    if rows.any():
        slope[rows], lift[rows] = solve_held_rows(
            laws[rows], np.asarray(box.lower), np.asarray(box.ceiling), unheld[rows]
        )
    return slope, lift
