"""What is said of a client that is outside its family, the same for outcomes, cells and points and for every mechanism.

Who projects warns: the release is as private as ever, since the box does not care, and only the bound on that client's utility is lost.
Who mixes refuses: its law would not be linear in p any more, on which whoever inverts it relies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import OutsideFamilyError, OutsideFamilyWarning, warn_caller
from discreet.families._band import Bounds
from discreet.families._laws import check_laws

if TYPE_CHECKING:
    from discreet.families._on_outcomes import FiniteFamily

Floats = NDArray[np.float64]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Outsiders:
    """Which of so many clients are outside, and the least and the most density relative to the reference of the first of them."""

    numbers: Sequence[int]
    clients: int
    least: float
    most: float

    def among(self, clients: int, first: int) -> Outsiders:
        """The same as a part of more clients, of whom `first` come before it."""
        return replace(self, numbers=[first + number for number in self.numbers], clients=clients)

    def concat(self, later: Outsiders) -> Outsiders:
        """These and those of a later part of the same clients."""
        return replace(self, numbers=[*self.numbers, *later.numbers])


def is_outside(laws: Floats, mu: float | Floats, bounds: Bounds) -> NDArray[np.bool_]:
    """For each of the laws (..., k) around mu, whether it leaves the bounds by more than rounding explains."""
    slack = _ROUNDING * bounds.upper
    return np.asarray(((laws < (bounds.lower - slack) * mu) | (laws > (bounds.upper + slack) * mu)).any(axis=-1))


def outsiders_on_outcomes(family: FiniteFamily, rows: Floats) -> Outsiders | None:
    """Which of these laws (n, k) are none of those whom the family serves; None where all are."""
    bounds, mu = family.served_bounds, family.reference
    if bounds.lower == 0.0 and bounds.upper * float(np.min(mu)) >= 1.0 - _ROUNDING:
        return None  # those are all the laws there are
    numbers = np.flatnonzero(is_outside(rows, mu, bounds))
    if not numbers.size:
        return None
    check_laws(rows)
    with np.errstate(over="ignore"):  # an outcome that hardly ever occurs
        first = rows[numbers[0]] / mu
    return Outsiders(numbers.tolist(), len(rows), float(first.min()), float(first.max()))


def name_clients(numbers: Sequence[int] | NDArray[np.intp], clients: int) -> str:
    """Some of so many clients in words: the first, and how many more."""
    return "p" if clients == 1 else f"p[{numbers[0]}]" + (f" and {len(numbers) - 1} more" if len(numbers) > 1 else "")


def report_outsiders(family: Any, bounds: Bounds, outsiders: Outsiders, *, refuse: bool) -> None:
    """Warn about clients that are outside the family, or refuse them where a mechanism is only for members."""
    what = (
        f"{name_clients(outsiders.numbers, outsiders.clients)} is outside {family!r}: relative to the reference it runs from "
        f"{outsiders.least:g} to {outsiders.most:g}, the band from {bounds.lower:g} to {bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{what}; the law released for it would not be linear in p: release nearest_member(family, p), or use "
            "OptimalSampler, which projects it"
        )
    warn_caller(f"{what}; its release is private all the same, the bound on its utility is lost", OutsideFamilyWarning)
