"""The local class around a public law P0: every outcome at least 1/factor and at most factor times as likely as under P0.

    Near(P0, factor)  =  { P : 1/factor <= dP/dP0 <= factor }

that is the band mu = P0, c1 = 1/factor, c2 = factor (Ghoukasian, Lee and Asoodeh, NeurIPS 2025, Theorem 5.1), on finitely many outcomes or
on a continuous space; alpha = 1/(factor + 1). Where factor^2 <= e^epsilon a raw draw is private already, and nothing is lost.
On outcomes the smallest P0 may forbid to attain a bound: then the band is that of the attained ones (`discreet.families._band`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from discreet._labelled import labelled_values
from discreet.errors import DiscreetError, Range
from discreet.families._density_band import DensityBand
from discreet.families._finite import Band

_FACTOR = Range(1.0, math.inf, low_open=True, high_open=True)
_DENSITY = ("log_density", "logpdf", "pdf")


def Near(P0: Any, *, factor: float, box: Any = None, labels: Sequence[Any] | None = None) -> Band | DensityBand:
    """The clients that stay within a factor of a public distribution: a `Band` on outcomes, a `DensityBand` on a continuous space.

    Whoever is farther away than that keeps its privacy all the same: only the bound on its utility is for members.

    Args:
        P0: the public distribution. On outcomes: positive numbers in proportion to it, or a dict or Series by label. On a continuous
            space: a function, a scipy.stats distribution, a `Mixture` or a `Tabulated` grid, normalised or not.
        factor: how many times as likely, or as unlikely, an outcome may be for a client as under P0; more than 1.
        box: the space of a density, a (low, high) for each axis; left out where the density knows its own.
        labels: names of the outcomes.

    Returns:
        The family.

    Raises:
        DiscreetError: for a factor of 1 or less, an outcome that P0 says cannot occur, or something that is no distribution.

    Example:
        >>> family = Near({"north": 0.4, "south": 0.3, "east": 0.2, "west": 0.1}, factor=2.0)
    """
    if callable(getattr(P0, "pmf", None)) and not _is_density(P0):
        raise DiscreetError(
            f"P0 = {P0!r} is a distribution on whole numbers, which may have no end; give the probabilities of the outcomes that there are, "
            "such as P0.pmf(range(20))"
        )
    most = _FACTOR.check("factor", factor, "it is how many times as likely an outcome may be for a client as under P0")
    if labelled_values(P0, "P0") is not None or not _is_density(P0):
        if box is not None:
            raise DiscreetError(f"box = {box!r} is for densities; P0 has finitely many outcomes")
        return Band(P0, lower=1.0 / most, upper=most, labels=labels)
    if labels is not None:
        raise DiscreetError("labels are for finitely many outcomes; P0 is a density")
    return DensityBand.around(P0, box, factor=most)


def _is_density(P0: Any) -> bool:
    return callable(P0) or any(callable(getattr(P0, name, None)) for name in _DENSITY)
