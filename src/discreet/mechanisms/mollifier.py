"""Husain et al.'s relative mollifier: the projection onto the ball e^(-eps/2) Q0 <= Q <= e^(eps/2) Q0 around a chosen law Q0.

The published closed form clip(P/r, ...) has no solution when P sits on too small a set [paper, Section 2.3]; the
projection exists all the same (`discreet.projection.box`) and is what this sampler draws from. Its worst case on the
simplex is attained by a point mass at the outcome that Q0 likes least [paper, App. F.1]:

    risk with r1 = 0, 1/r2 = min(e^(eps/2) m, 1 - (1 - m) e^(-eps/2)),   m = min Q0

which is the chord formula of `discreet.tradeoff` for the band 0 <= dP/dQ0 <= 1/m that every law obeys.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.divergences import FDivergence
from discreet.errors import DiscreetError
from discreet.families import ContinuousFamily, Simplex
from discreet.families.band import Bounds
from discreet.families.laws import is_law, refuse_bad_law
from discreet.mechanisms.carriers.choice import How
from discreet.mechanisms.projecting import ProjectingSampler
from discreet.mechanisms.sampler import F
from discreet.privacy import Privacy, Pure
from discreet.tradeoff import Constants, Risk, formula_risk, mollifier_constants
from discreet.worst_case import sampler_risk

_SMALLEST = 1e-300


@final
class MollifierSampler(ProjectingSampler[F]):
    """The baseline: the best law within a factor e^(eps/2) of `reference` (by default the family's own mu).

    Args:
        family: who the clients may be: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        reference: the law Q0 around which the ball is, for finite families: one positive probability for each outcome.
        how: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out on a
            finite family.
        privacy: `Pure(epsilon)`, in place of epsilon; no other notion.

    Raises:
        DiscreetError: for something that is no family, an epsilon that is none, a `how` that does not fit the family, or a reference
            with an outcome that could never be released.

    Example:
        >>> sampler = MollifierSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> colour = sampler.release([0.7, 0.2, 0.1])
    """

    name = "mollifier"

    def __init__(
        self,
        family: F,
        *,
        epsilon: float | None = None,
        reference: ArrayLike | None = None,
        how: How | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        super().__init__(family, epsilon=epsilon, how=how, privacy=privacy)
        self._own_reference: NDArray[np.float64] | None = None
        if reference is not None:
            if isinstance(family, ContinuousFamily):
                raise DiscreetError(
                    "reference is for finite families; on a continuous space build the family around it, as DensityBand(reference)"
                )
            law = family.as_rows(reference, "reference")
            if law.ndim != 1:
                raise DiscreetError(f"reference has shape {law.shape}; it is one law on the {family.size} outcomes")
            if not is_law(law[None, :])[0]:
                refuse_bad_law(law[None, :], 0, "reference")
            if not (law > _SMALLEST).all():
                raise DiscreetError(
                    f"reference[{int(np.argmin(law))}] = {law.min():g}: that outcome could never be released, and the worst case "
                    "would be the largest there is; give every outcome a positive probability"
                )
            self._own_reference = law / law.sum()  # a copy: what the caller does to its array is no concern of ours
            self._own_reference.setflags(write=False)

    def _check_privacy(self) -> None:
        if not isinstance(self.privacy, Pure):
            raise DiscreetError(
                f"privacy = {self.privacy!r}: the mollifier is a ball of pure epsilon; give epsilon=, or use OptimalSampler"
            )

    @property
    def reference(self) -> float | NDArray[np.float64]:
        return super().reference if self._own_reference is None else self._own_reference

    @property
    def bounds(self) -> Bounds:
        """The family as a band around this sampler's reference instead of its own."""
        bounds = super().bounds
        if self._own_reference is None:
            return bounds
        ratio = self.carrier.reference / self._own_reference
        return Bounds(bounds.lower * min(1.0, float(ratio.min())), bounds.upper * max(1.0, float(ratio.max())))

    @cached_property
    def constants(self) -> Constants:
        return mollifier_constants(self.bounds, self.calibrated_epsilon)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case of this sampler over the family; exact where `.tight`, else an upper bound. (Not the smallest there
        is: that is the optimal sampler's.)

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        if self._own_reference is None:
            found = sampler_risk(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy)
            return Risk(found.value, found.attained, found.attained)
        exact = isinstance(self.family, Simplex) or self.constants.gamma == 1.0
        return Risk(formula_risk(self.constants, divergence), exact, exact)

    def _identity(self) -> tuple[Any, ...]:
        own = None if self._own_reference is None else self._own_reference.tobytes()
        return (*super()._identity(), own)
