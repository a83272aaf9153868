"""From the answer of somebody's own code to a row of integers that is certainly in its box, or to one sentence that says what is wrong.

A row is compared with the lattice L <= W <= U in integers, every weight with its bounds and every sum with 2^62, without a tolerance; only
then is it drawn from. `discreet.mechanisms._own` has the theorem that rests on this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import exp_nearest
from discreet.errors import DiscreetError
from discreet.families import FiniteFamily, as_floats, names_and_extreme_laws_of_band, refuse_bad_entries
from discreet.privacy import Privacy, Pure
from discreet.projection import STEEPEST_EXPONENT
from discreet.release import TOTAL, Lattice, are_row_sums_at_most

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ROUNDING = 1e-9  # by which a law may leave its box before it counts as outside; the integers stay inside in any case
_SUM_ROUNDING = 1e-6  # of a law's sum; laws are normalised
_TRIED = 16  # laws at which a linear law is compared with its matrix


def outcomes_from_uniform_integers(weights: Integers, uniform: Integers) -> Integers:
    """The outcome that each uniform integer falls on, in rows of weights (n, k) that sum to 2^62."""
    return np.asarray((np.cumsum(weights, axis=1) <= uniform[:, None]).sum(axis=1))


def lattice_weights_of_laws(lattice: Lattice, laws: Floats) -> Integers:
    """Laws (n, k) as integers of the lattice: every weight is compared with its bounds, and every sum with 2^62, in integers."""
    weights = lattice.weights(laws, np.ones(len(laws)), np.zeros(len(laws)))
    inside = (weights >= lattice.lower) & (weights <= lattice.upper)
    exact = are_row_sums_at_most(weights, TOTAL) & ~are_row_sums_at_most(weights, TOTAL - 1)
    if not (inside.all() and exact.all()):
        raise DiscreetError("the integers of a draw are not in their box; nothing was drawn: please report this")
    return weights


def outcomes_outside_box(laws: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """At which outcomes laws (..., k) leave the box by more than rounding."""
    return np.asarray((laws < lower * (1.0 - ROUNDING) - ROUNDING**2) | (laws > upper * (1.0 + ROUNDING) + ROUNDING**2))


def column_minima_of_private_matrix(matrix: Floats, privacy: Privacy) -> Floats:
    """The least entry of each column: the floor of a linear law. A matrix that spends more than its epsilon is refused."""
    least, most = matrix.min(axis=0), matrix.max(axis=0)
    if isinstance(privacy, Pure) and (least > 0.0).all():
        worst = int(np.argmax(most / least))
        epsilon = math.log(most[worst] / least[worst])
        if epsilon > privacy.epsilon * (1.0 + ROUNDING) + ROUNDING:
            raise DiscreetError(
                f"law gives outcome {worst} the probability {most[worst]:.6g} for one client and {least[worst]:.6g} for another, a "
                f"ratio of {most[worst] / least[worst]:.6g}, more than e^{privacy.epsilon:g}; its epsilon is {epsilon:.6g}"
            )
    return np.asarray(least)


def matrix_of_linear_law(name: str, size: int, answer: Callable[[Floats], Floats | str]) -> Floats:
    """The laws of point masses, of a law that is linear; one that is not is refused."""
    rows = [answer(row) for row in np.eye(size)]
    for outcome, row in enumerate(rows):
        if isinstance(row, str):
            raise DiscreetError(f"law of the client that holds outcome {outcome} for certain: {row}")
    matrix = np.array(rows)
    for p in np.random.default_rng(0).dirichlet(np.ones(size), size=_TRIED):
        law = answer(p)
        if isinstance(law, str) or not np.abs(law - p @ matrix).max() <= ROUNDING:
            raise DiscreetError(
                f"{name} says linear = True, and its law is not linear in p; leave that out, and state a floor"
            )
    matrix.setflags(write=False)
    return matrix


def normalised_law_or_problem(law: Callable[[Floats], Any], p: Floats, *, public: bool) -> Floats | str:
    """What a law answers for p, normalised; or what is wrong with it, which shows no value unless p is public. It is asked for once."""
    try:
        answer = np.array(law(p.copy()), dtype=np.float64, subok=False)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it is the user's own code, which may raise anything
        detail = f": {error}; law(p) takes the {len(p)} probabilities of one client" if public else ""
        return f"it raised {type(error).__name__}{detail}"
    if answer.shape != p.shape:
        return f"it has the shape {answer.shape}, not {p.shape}"
    with np.errstate(all="ignore"):  # the law may have asked numpy to raise
        total = float(answer.sum())
        if not abs(total - 1.0) <= _SUM_ROUNDING or not answer.min() >= 0.0:
            return "it is no distribution: entries are finite and at least 0, and sum to 1"
        return np.asarray(answer / total)


def names_and_laws_of_test_clients(
    family: FiniteFamily, number: int, *, linear: bool
) -> tuple[tuple[str, ...], Floats]:
    """Clients whom everybody knows, by name: point masses for a linear law, else extreme members of the family."""
    mu = np.broadcast_to(family.reference, family.size).astype(np.float64)
    if linear:
        return tuple(f"outcome {x} for certain" for x in range(len(mu))), np.eye(len(mu))
    names, laws = names_and_extreme_laws_of_band(mu, family.bounds, max(2, number))
    return ("the reference", *names), np.vstack([mu / mu.sum(), laws])


def refuse_bad_law_of_test_client(name: str, law: Floats | str, lower: Floats, upper: Floats) -> None:
    """Refuse a law that fails, or leaves the box, for a test client, whom everybody knows."""
    if isinstance(law, str):
        raise DiscreetError(f"law of a public client ({name}): {law}")
    outside = outcomes_outside_box(law, lower, upper)
    if outside.any():
        outcome = int(np.argmax(outside))
        raise DiscreetError(
            f"law of a public client ({name}) gives outcome {outcome} the probability {law[outcome]:.6g}, which is not between "
            f"its floor {lower[outcome]:.6g} and its ceiling {upper[outcome]:.6g}; lower the floor, raise the ceiling or epsilon, or "
            "change the law"
        )


def read_floor_and_ceiling(floor: Any, ceiling: Any, size: int, privacy: Privacy) -> tuple[Floats, Floats]:
    """The floor and the ceiling that a class states, with a law between them; without a ceiling e^epsilon times the floor."""
    lower = _read_positive_numbers("floor", _property_or_method_value(floor), size)
    stated_ceiling = _property_or_method_value(ceiling)
    if stated_ceiling is not None:
        upper = _read_positive_numbers("ceiling", stated_ceiling, size)
    elif isinstance(privacy, Pure):
        upper = lower * exp_nearest(min(privacy.epsilon, STEEPEST_EXPONENT))
    else:
        raise DiscreetError(
            f"privacy = {privacy!r} is kept by a floor and a ceiling; state the ceiling too (the default is for pure epsilon)"
        )
    if not (lower <= upper).all():
        outcome = int(np.argmax(lower > upper))
        raise DiscreetError(f"ceiling[{outcome}] = {upper[outcome]:g} is below floor[{outcome}] = {lower[outcome]:g}")
    upper = np.minimum(upper, 1.0)
    if not (lower.sum() <= 1.0 + ROUNDING and upper.sum() >= 1.0 - ROUNDING):
        raise DiscreetError(
            f"no law lies between a floor that sums to {lower.sum():g} and a ceiling that sums to {upper.sum():g}; the sums have 1 "
            "between them"
        )
    for bound in (lower, upper):
        bound.setflags(write=False)
    return lower, upper


def _property_or_method_value(attribute: Any) -> Any:
    """What a property states, or a method without arguments in its place."""
    return attribute() if callable(attribute) else attribute


def _read_positive_numbers(name: str, entries: Any, size: int) -> Floats:
    """One positive number for each outcome."""
    array = as_floats(entries, name)
    if array.shape not in ((), (size,)):
        raise DiscreetError(f"{name} has shape {array.shape}; it is one number for each of the {size} outcomes")
    numbers = np.array(np.broadcast_to(array, size))
    refuse_bad_entries(numbers, name)
    if not (numbers > 0.0).all():
        outcome = int(np.argmin(numbers))
        raise DiscreetError(
            f"{name}[{outcome}] = 0: an outcome that one client can never release has infinite epsilon for others; leave it out of the "
            "family, or give it a positive probability"
        )
    return numbers
