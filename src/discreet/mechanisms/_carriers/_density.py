"""The paper's own way, without atoms [paper, Section 4.1]: it describes a law and releases nothing.

Drawing from a density by rejection is epsilon-LDP only if the density has the mass it is said to have, and no finite number of looks at
a client's function can vouch for its integral: a spike between the nodes is missed by all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from discreet.errors import NON_NEGATIVE, DiscreetError, Range
from discreet.mechanisms._carriers._carrier import Floats, Integers
from discreet.mechanisms._carriers._densities import Densities, DensityAtoms

_FRACTION = Range(0.0, 1.0, high_open=True)


@dataclass(frozen=True)
class Density:
    """The paper's calibration for a density whose mass is trusted to lie in [1 - delta1, 1 + delta2]: to describe, not to release.

    The box is that of epsilon' = epsilon - log((1 + delta2)/(1 - delta1)) [paper, Section 4.1], for `output` and `risk`. Nothing is
    released this way: the guarantee would rest on an integral of whatever function a client passes.

    Args:
        delta1: how far below 1 the mass may be, in [0, 1).
        delta2: how far above 1 it may be, at least 0.

    Raises:
        DiscreetError: for tolerances out of range.
    """

    delta1: float = 1e-5
    delta2: float = 1e-5

    def __post_init__(self) -> None:
        _FRACTION.check("delta1", self.delta1)
        NON_NEGATIVE.check("delta2", self.delta2)

    def calibrated_epsilon(self, epsilon: float) -> float:
        """epsilon', what is left of epsilon for the box."""
        left = epsilon - math.log1p(self.delta2) + math.log1p(-self.delta1)
        if not left > 0.0:
            raise DiscreetError(
                f"epsilon = {epsilon:g} leaves nothing for the box: the tolerances cost {epsilon - left:g}; take smaller ones"
            )
        return left


@final
@dataclass(frozen=True, eq=False)
class NoAtoms(DensityAtoms):
    """No atoms at all: laws are described, and nothing is released."""

    how: Density

    def calibrated_epsilon(self, epsilon: float) -> float:
        return self.how.calibrated_epsilon(epsilon)

    @property
    def size(self) -> int:
        self._refuse()

    @property
    def reference(self) -> float:
        self._refuse()

    @property
    def digest(self) -> str:
        self._refuse()

    def put(self, clients: Densities) -> NoReturn:
        self._refuse()

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        self._refuse()

    def check_shared(self, method: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DiscreetError(
            f"how = {self.how!r} describes the paper's law and releases nothing: a sample drawn from the density itself would be as "
            "private as a numerical integral of the client's function is right; release with how=Cells(...) or "
            "how=Points(...), which are private for every function"
        )
