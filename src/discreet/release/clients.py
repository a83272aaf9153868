"""Clients as columns, what their draws have in common, and what can be wrong with them: plain values, for any code that draws."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.projection import Affine
from discreet.release.lattice import Lattice

OUTSIDE, NOT_A_NUMBER, NEGATIVE, INFINITE, OVERFLOWING = 1, 2, 3, 4, 5  # what can be wrong with a client
LONGEST = (1 << 31) - 1  # records of one client: past it sums could overflow in silence


class Plan(NamedTuple):
    """What the draw of every client has in common, as plain numbers for compiled code."""

    size: int
    floor: float
    ceiling: float
    lower: int
    upper: int
    projecting: bool
    slope: float
    lift: float

    @classmethod
    def of(cls, lattice: Lattice, mixing: Affine | None) -> "Plan":
        """The plan of a lattice over a uniform reference. `mixing` None: project onto the box."""
        box = lattice.box
        assert isinstance(lattice.lower, int)
        assert isinstance(lattice.upper, int)
        slope, lift = (1.0, 0.0) if mixing is None else (mixing.slope, mixing.lift)
        return cls(
            box.size, float(box.lower), float(box.ceiling), lattice.lower, lattice.upper, mixing is None, slope, lift
        )


class Clients(NamedTuple):
    """Columns of many clients: who they are (integers, or texts as Arrow lays them out), and lists of what they hold.

    `counts` (whole numbers) or `weights` (any numbers of at least 0) say how often or how much; both are empty where every
    record counts once. Which of the two it is decides how a law is made of them: `discreet.release.grid`.
    """

    integers: NDArray[np.int64]
    text_ends: NDArray[np.int64]
    text: NDArray[np.uint8]
    ends: NDArray[np.int64]
    outcomes: NDArray[np.uint32]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return self.ends.size - 1
