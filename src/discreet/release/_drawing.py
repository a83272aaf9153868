"""Draw one outcome for each client, or show the integer weights of the draw; for one client also in constant time.

`outcomes` and `weights` use the same arithmetic. `outcomes` is fast because it stops early. A draw in the shared part ignores the client, a
search ends at its outcome, and a solver ends when it has converged. So its running time reveals more than the sample.
`outcome_in_constant_time` executes the same instructions for every client and every integer:

* The slope is found by bisection on the bits of a float, in exactly `_HALVINGS` steps. It is the smallest float in [2^-64, 2^960] whose mass
is at least one, or the largest of them if P sits on so small a set that there is none.
* The shared part, the excess, the portions and the fill are all computed and searched to their ends by counting. Running sums are kept in two
halves, so that all sizes take one path. Selections replace branches.
* Negligible masses are set to zero before any multiplication, so that no float is subnormal.

Its distribution is that of `Lattice.weights` up to the last bits of the slope, and lies in the same lattice. So the guarantee is the same
statement about integers. Two differences remain: effects outside a program's control (caches, the processor's clock), and rejected input, for
which no sample leaves.
"""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import compiled_for
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.families import is_law, refuse_bad_law
from discreet.projection import NEGLIGIBLE, Affine, blocks, first_bad, numpy_seconds, solve_held_rows, solve_rows
from discreet.release._lattice import TOTAL, Integers, Lattice, is_sum_within, portion_out


def outcomes(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers) -> Integers:
    """One outcome for each row of laws (n, k), from one uniform integer each.

    Args:
        lattice: the integer box, of a sampler.
        laws: floats (n, k), a law in each row.
        mixing: of a linear sampler; None: project onto the box.
        uniform: n integers in [0, 2^62).

    Returns:
        n outcome numbers.

    Raises:
        DiscreetError: for rows that are no laws, and for other arguments than these.
    """
    _check_draw(lattice, laws, mixing, dimensions=2)
    if not isinstance(uniform, np.ndarray) or uniform.dtype != np.int64 or uniform.shape != laws.shape[:1]:
        raise DiscreetError("uniform does not hold one 64-bit integer for each law; pass Randomness.integers(n)")
    return _draw_and_solve(lattice, laws, mixing, uniform, keeping=mixing is not None)[0]


def weights(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None) -> Integers:
    """The integers (n, k), each row summing to 2^62, that `outcomes` draws from.

    Args:
        lattice: the integer box, of a sampler.
        laws: floats (n, k), a law in each row.
        mixing: of a linear sampler; None: project onto the box.

    Returns:
        The integers.

    Raises:
        DiscreetError: for rows that are no laws, and for other arguments than these.
    """
    _check_draw(lattice, laws, mixing, dimensions=2)
    past_shared = np.full(
        len(laws), min(lattice.shared_total, TOTAL - 1), dtype=np.int64
    )  # so that every row is solved
    _, slope, lift = _draw_and_solve(lattice, laws, mixing, past_shared)
    return lattice.weights(laws, slope, lift)


def _check_draw(lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, *, dimensions: int) -> None:
    """Refuse arguments of another kind or shape. What the laws hold is not shown: it is the clients' own."""
    check_kind("lattice", lattice, Lattice, "pass the lattice of a sampler")
    if mixing is not None:
        check_kind("mixing", mixing, Affine, "pass the mixing of a sampler")
    if not isinstance(laws, np.ndarray) or laws.dtype != np.float64 or laws.ndim != dimensions:
        raise DiscreetError(f"the law is not an array of floats with {dimensions} axes; pass numpy.asarray(law, float)")
    if laws.shape[-1] != lattice.box.size:
        raise DiscreetError(f"the law is on {laws.shape[-1]:,} outcomes and the lattice on {lattice.box.size:,}")


def _draw_and_solve(
    lattice: Lattice, laws: NDArray[np.float64], mixing: Affine | None, uniform: Integers, *, keeping: bool = True
) -> tuple[Integers, NDArray[np.float64], NDArray[np.float64]]:
    """Outcomes, slopes and lifts (the latter empty unless `keeping`).

    A row that falls on the shared part is not solved; its slope is infinite.
    """
    laws = np.ascontiguousarray(laws)  # as the compiled code requires
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
    """As `compiled.draw`: the same distribution, and the same outcome for the same integer."""
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
    """(slope, lift) for each row.

    Over a reference that is not uniform, the mass of outcomes outside the support is summed in integers, so that the order of summation does
    not matter. Integers also decide whether all held outcomes fit at their ceilings, where no slope exists.
    """
    box = lattice.box
    if isinstance(lattice.lower, int):
        return solve_rows(laws, box.lower, box.ceiling)
    held = laws > NEGLIGIBLE
    unheld = (lattice.shared_total - np.where(held, lattice.lower, 0).sum(axis=1)).astype(np.float64) / TOTAL
    slope, lift = np.full(len(laws), np.inf), np.zeros(len(laws))
    rows = ~is_sum_within(np.where(held, np.asarray(lattice.upper) - lattice.lower, 0), TOTAL - lattice.shared_total)
    if rows.any():
        slope[rows], lift[rows] = solve_held_rows(
            laws[rows], np.asarray(box.lower), np.asarray(box.ceiling), unheld[rows]
        )
    return slope, lift


Floats = NDArray[np.float64]

_HALF = 31
_MASK = (1 << _HALF) - 1
_LOWEST, _HIGHEST = (
    np.float64(2.0**-64),
    np.float64(2.0**960),
)  # a product with a mass above NEGLIGIBLE neither vanishes nor overflows
_HALVINGS = 63  # the bits of the two differ by less than 2^63


def outcome_in_constant_time(lattice: Lattice, law: Floats, mixing: Affine | None, uniform: int) -> int:
    """The outcome that a uniform integer falls on for one law (k,).

    Args:
        lattice: the integer box, of a sampler.
        law: floats (k,).
        mixing: of a linear sampler; None: project onto the box.
        uniform: an integer in [0, 2^62).

    Returns:
        The outcome number.

    Raises:
        DiscreetError: for what is no law, and for other arguments than these.
    """
    _check_draw(lattice, law, mixing, dimensions=1)
    uniform = check_count("uniform", uniform, least=0, most=TOTAL - 1)
    if not is_law(law[None, :])[0]:
        refuse_bad_law(law[None, :], 0)
    rest = np.int64(uniform - lattice.shared_total)
    which = np.int64(rest >= 0)
    found = [np.count_nonzero(np.cumsum(np.broadcast_to(lattice.lower, law.shape)) <= uniform)]
    for part in parts_in_constant_time(lattice, law, mixing):
        ends = np.cumsum(part)
        found.append(np.count_nonzero(ends <= rest))
        rest = rest - ends[-1]
        which = which + np.int64(rest >= 0)
    return int(np.array(found)[np.minimum(which, len(found) - 1)])


def parts_in_constant_time(lattice: Lattice, law: Floats, mixing: Affine | None) -> tuple[Integers, ...]:
    """The parts added to L, as `Lattice.parts` of one row: the excess, the portions unless the reference is uniform, the fill."""
    mass = np.where(law > NEGLIGIBLE, law, 0.0)
    portioning = mixing is None and not isinstance(lattice.lower, int)
    slope, lift = (
        _solve_in_constant_time(lattice, mass)
        if mixing is None
        else (np.float64(mixing.slope), np.float64(mixing.lift))
    )
    lift = np.float64(0.0) if portioning else lift
    value = mass * (slope * TOTAL) + (lift * np.asarray(lattice.box.lower)) * TOTAL
    low, high = np.asarray(lattice.lower, dtype=np.float64), np.asarray(lattice.upper, dtype=np.float64)
    wanted = np.fmin(np.fmax(low, value), high).astype(np.int64) - np.asarray(lattice.lower)
    excess = _hand_out_in_constant_time(wanted, np.int64(TOTAL - lattice.shared_total))
    missing = np.int64(TOTAL - lattice.shared_total) - excess.sum()
    capacity = np.asarray(lattice.upper) - np.asarray(lattice.lower)
    if not portioning:
        return excess, _hand_out_in_constant_time(capacity - excess, missing)
    portion = portion_out(np.where(mass > 0.0, 0, lattice.portions), np.array([missing]), lattice.shared_total)
    return excess, portion, _hand_out_in_constant_time(capacity - excess - portion, missing - portion.sum())


def _solve_in_constant_time(lattice: Lattice, mass: Floats) -> tuple[np.float64, np.float64]:
    """(slope, lift) of the projection."""
    lower, ceiling = lattice.box.lower, lattice.box.ceiling
    low, high = np.array(_LOWEST.view(np.int64)), np.array(_HIGHEST.view(np.int64))
    value = np.empty_like(mass)
    for _ in range(_HALVINGS):
        middle = np.asarray(low + (high - low) // 2)
        np.multiply(mass, middle.view(np.float64), out=value)
        np.minimum(np.maximum(value, lower, out=value), ceiling, out=value)
        enough = value.sum() >= 1.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    held = mass > 0.0
    upper = np.where(held, lattice.box.upper, 0.0).sum()
    unheld = np.where(held, 0.0, lower).sum()
    lift = np.maximum(0.0, 1.0 - upper) / np.maximum(unheld, NEGLIGIBLE)
    saturated = upper + unheld < 1.0  # no slope exists: the ceiling on the support, a multiple of the floor elsewhere
    return np.float64(high.view(np.float64)), np.float64(np.where(saturated, lift, 0.0))


def _hand_out_in_constant_time(wanted: Integers, available: np.int64) -> Integers:
    """The share of each outcome when `available` units are handed out in order: `lattice.hand_out` without branches."""
    low = np.cumsum(wanted & _MASK)
    high = np.cumsum(wanted >> _HALF) + (low >> _HALF)
    over = high > (available >> _HALF)
    ends = (np.where(over, 0, high) << _HALF) + (low & _MASK)
    ends = np.where(over, available, np.minimum(ends, available))
    return np.asarray(np.diff(ends, prepend=np.int64(0)))
