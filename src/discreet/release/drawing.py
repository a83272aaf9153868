"""Draw one outcome for each client, or show the integer weights it would be drawn with: the same arithmetic for both."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.families.laws import refuse_bad_law
from discreet.projection import vectorised as projection
from discreet.projection.box import compiled_kernels
from discreet.release.lattice import Integers, Lattice


@dataclass(frozen=True)
class Affine:
    """The linear mechanism's law: slope p + lift lower, for every client alike."""

    slope: float
    lift: float


def outcomes(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers) -> Integers:
    """One outcome for each row of laws (n, k), from one uniform integer each. `mixing` None: project onto the box."""
    return _drawn(lattice, laws, mixing, uniform)[0]


def weights(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None) -> Integers:
    """The integers (n, k), each row summing to 2^62, that `outcomes` draws from."""
    past_shared = np.full(len(laws), lattice.shared, dtype=np.int64)  # so that every row is solved
    _, slope, lift = _drawn(lattice, laws, mixing, past_shared)
    return lattice.weights(laws, slope, lift)


def _drawn(
    lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers
) -> tuple[Integers, NDArray[np.float64], NDArray[np.float64]]:
    slope = np.full(len(laws), 1.0 if mixing is None else mixing.slope)
    lift = np.full(len(laws), 0.0 if mixing is None else mixing.lift)
    out = np.empty(len(laws), dtype=np.int64)
    if compiled_kernels():
        from discreet.projection.compiled import threads_for
        from discreet.release import compiled

        box = lattice.box
        with threads_for(laws.size):
            bad = compiled.draw(
                laws, box.lower, box.upper, lattice.lower, lattice.upper, lattice.shared, lattice.shared_edges,
                mixing is None, slope, lift, uniform, out,
            )  # fmt: skip
    else:
        bad = _draw_in_numpy(lattice, laws, mixing, slope, lift, uniform, out)
    if bad >= 0:
        refuse_bad_law(laws, bad)
    return out, slope, lift


def _draw_in_numpy(
    lattice: Lattice,
    laws: NDArray[np.float64],
    mixing: Affine | None,
    slope: NDArray[np.float64],
    lift: NDArray[np.float64],
    uniform: Integers,
    out: Integers,
) -> int:
    """As `compiled.draw`: the same law, and the same outcome for the same integer."""
    for rows in projection.blocks(*laws.shape):
        bad = projection.first_bad(laws[rows])
        if bad >= 0:
            return int(rows.start) + bad
        if mixing is None:
            slope[rows], lift[rows] = projection.solved(laws[rows], lattice.box.lower, lattice.box.upper)
        out[rows] = lattice.pick(laws[rows], slope[rows], lift[rows], uniform[rows])
    return -1
