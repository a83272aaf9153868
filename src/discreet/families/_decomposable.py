"""Whether a reference on finitely many outcomes is alpha-decomposable, so that the general theorem is exact [paper, Thm C.4].

Sets of mass exactly alpha cover the space evenly: the constant vector alpha is a mixture of indicators of sets A with mu(A) = alpha.
For a uniform mu on k outcomes this holds exactly when alpha k is a whole number (sets of alpha k outcomes, chosen
cyclically), so always for the simplex. For other references it is decided on up to `LARGEST_ENUMERATED` outcomes, by whole
numbers in the end; past that it is not claimed. Masses that differ from alpha by a factor within `_SAME_MASS` of 1 count as
alpha, as they would have to if weights such as 0.1 are to be divided evenly at all; the risk differs by no more than that.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

LARGEST_ENUMERATED = 12
_SAME_MASS = 1e-12
_LARGEST_DENOMINATOR = 1 << 16  # vertices of 0/1 systems in 12 unknowns have denominators of at most 3,645


def divides_evenly(size: int, alpha: float) -> bool:
    """Whether alpha k is a whole number: the uniform reference on k outcomes is then decomposable."""
    return math.isclose(alpha * size, round(alpha * size), rel_tol=_SAME_MASS)


def splits_evenly(mu: NDArray[np.float64], alpha: float) -> bool:
    """Whether the outcomes can be put into n groups of mass 1/n each, for some n of which alpha n is a whole number.

    Then mu is decomposable, and more: seen through the groups it is uniform on n outcomes, among which there is exchange.
    """
    return any(
        math.isclose(alpha * n, round(alpha * n), rel_tol=_SAME_MASS)
        and _can_group(sorted(mu, reverse=True), [1.0 / n] * n)
        for n in range(2, mu.size + 1)
    )


def _can_group(masses: list[float], rooms: list[float]) -> bool:
    """Whether masses, the largest first, fill rooms of equal size: each is tried in every room that it fits into."""
    if not masses:
        return all(abs(room) <= _SAME_MASS for room in rooms)
    tried = set()
    for place, room in enumerate(rooms):
        if masses[0] <= room + _SAME_MASS and round(room, 12) not in tried:
            tried.add(round(room, 12))
            if _can_group(masses[1:], [*rooms[:place], room - masses[0], *rooms[place + 1 :]]):
                return True
    return False


def covers_evenly(mu: NDArray[np.float64], alpha: float) -> bool:
    """Whether sets of mass alpha can be mixed so that every outcome is covered equally often (with probability alpha, then).

    Which sets have that mass is decided first; the rest is about zeros and ones: is (1, ..., 1) in the cone of their
    indicators? The solver proposes a vertex, and fractions check it: a solver's tolerance proves nothing.
    """
    from scipy.optimize import linprog  # here, because importing it costs more than most commands do

    members = np.array(list(itertools.product((0.0, 1.0), repeat=mu.size)))
    sets = members[np.abs(members @ mu - alpha) <= _SAME_MASS * alpha]
    if not len(sets):
        return False
    found = linprog(np.zeros(len(sets)), A_eq=sets.T, b_eq=np.ones(mu.size), method="highs-ds")
    if found.status != 0:
        return False
    shares = [Fraction(float(share)).limit_denominator(_LARGEST_DENOMINATOR) for share in found.x]
    covered = [sum(share for share, members in zip(shares, column, strict=True) if members) for column in sets.T]
    return min(shares) >= 0 and all(times == 1 for times in covered)
