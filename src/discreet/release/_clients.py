"""Clients as columns, the common plan of their draws, and the codes of invalid input: plain values for every drawing code."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.projection import Affine
from discreet.release._lattice import TOTAL, Integers, Lattice
from discreet.release._randomness import BITS

LOWER, UPPER, SIZE, BEFORE = 0, 1, 2, 3  # columns of `ReferencePlan.held`
FLOOR, CEILING = 4, 5  # columns of `ReferencePlan.bounds`
ROW = 8  # columns of both: one cache line
REFUSED_OUTSIDE, REFUSED_NAN, REFUSED_NEGATIVE, REFUSED_INFINITE, REFUSED_OVERFLOW, REFUSED_TOO_MANY = (
    1,
    2,
    3,
    4,
    5,
    6,
)  # reasons to reject a client
SINGLE_BLOCKS, MASKED_BLOCKS, RANKED_BLOCKS, AFFINE_BLOCKS = 0, 1, 2, 3  # kinds of blocks of a `ReportPlan`
HALF = 31  # bits: sums of room are kept in two halves
LONGEST = (1 << 31) - 1  # records of one client: with more, sums could overflow unnoticed


class UniformPlan(NamedTuple):
    """The common part of all draws over a uniform reference, as plain numbers for compiled code."""

    size: int
    floor: float
    ceiling: float
    lower: int
    upper: int
    projecting: bool
    slope: float
    lift: float


class ReferencePlan(NamedTuple):
    """The common part of all draws over any other reference: a table of outcomes, and the running sums that are searched.

    `held` has L, U, S and the sum of S before it for each outcome. `bounds`, the same memory read as floats, has its floor and its ceiling
    beside them, so that one look-up fetches them all. `edges` are sums of L, `portions` of S (`discreet.release._lattice`). `room` are sums
    of U - L in units of 2^31 and `rest_of_room` of the remainders, since they can exceed 64 bits. The guides say where to search: `guide[i]`
    is the last place whose sum is at most i 2^shift.
    """

    size: int
    held: Integers
    bounds: NDArray[np.float64]
    edges: Integers
    portions: Integers
    room: Integers
    rest_of_room: Integers
    shift: int
    edge_guide: NDArray[np.int32]
    portion_guide: NDArray[np.int32]


class ReportPlan(NamedTuple):
    """The common part of all draws of reports: N, b and r, and what the blocks of its kind are made of (`discreet.release._blocks`).

    `width` is the number of members of a subset. `binomials` has C(x, i) in row x for masks, and in row i for ranks.
    """

    size: int
    kind: int
    uniform_weight: int
    blocks: int
    holding: int
    width: int
    prime: int
    digits: int
    window: int
    binomials: NDArray[np.uint64]


def plan_of(lattice: Lattice, mixing: Affine | None) -> UniformPlan | ReferencePlan:
    """The plan of a lattice. `mixing` None: project onto the box."""
    box = lattice.box
    if isinstance(lattice.lower, int):
        assert isinstance(lattice.upper, int)
        slope, lift = (1.0, 0.0) if mixing is None else (mixing.slope, mixing.lift)
        return UniformPlan(
            box.size, float(box.lower), float(box.ceiling), lattice.lower, lattice.upper, mixing is None, slope, lift
        )
    assert mixing is None, "no table is released by the linear mechanism over a reference that is not uniform"
    room = np.asarray(lattice.upper) - lattice.lower
    edges, portions = _running_sums(lattice.lower), _running_sums(lattice.portions)
    shift = max(0, BITS - box.size.bit_length())
    held = _aligned_zero_rows(box.size)
    bounds = held.view(np.float64)
    for column, values in enumerate((lattice.lower, np.asarray(lattice.upper), lattice.portions, portions[:-1])):
        held[:, column] = values
    bounds[:, FLOOR], bounds[:, CEILING] = box.lower, box.ceiling
    return ReferencePlan(
        size=box.size,
        held=_read_only(held),
        bounds=_read_only(bounds),
        edges=edges,
        portions=portions,
        room=_running_sums(room >> HALF),
        rest_of_room=_running_sums(room & ((1 << HALF) - 1)),
        shift=shift,
        edge_guide=_search_guide(edges, shift),
        portion_guide=_search_guide(portions, shift),
    )


def _aligned_zero_rows(number: int) -> Integers:
    """Rows of zeros, each aligned to one cache line."""
    spare = np.zeros((number + 1) * ROW, dtype=np.int64)
    first = -spare.ctypes.data // spare.itemsize % ROW
    return spare[first : first + number * ROW].reshape(number, ROW)


def _search_guide(sums: Integers, shift: int) -> NDArray[np.int32]:
    steps = np.arange((TOTAL >> shift) + 2) << shift
    return _read_only((np.searchsorted(sums[:-1], steps, side="right") - 1).astype(np.int32))


def _running_sums(values: Integers) -> Integers:
    return _read_only(np.concatenate([[0], np.cumsum(values)]))


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    found = np.ascontiguousarray(values)
    found.setflags(write=False)
    return found


class ClientColumns(NamedTuple):
    """Columns of many clients: their identities (integers, or texts in Arrow's layout), and lists of their outcomes.

    `counts` (whole numbers) or `weights` (any numbers of at least 0) say how often or how much; both are empty if every record counts once.
    They make a law in different ways: see `discreet.release._keyed`.
    """

    integers: NDArray[np.int64]
    text_ends: NDArray[np.int64]
    text: NDArray[np.uint8]
    ends: NDArray[np.int64]
    outcomes: NDArray[np.uint32] | NDArray[np.uint64]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return self.ends.size - 1
