"""`MollifierSampler`: Husain et al.'s relative mollifier, which projects onto a ball around a chosen distribution Q0.

The ball is e^(-eps/2) Q0 <= Q <= e^(eps/2) Q0. The published closed form clip(P/r, ...) has no solution if P sits on too small a set [paper,
Section 2.3]. The projection still exists (`discreet.projection._box`), and this sampler draws from it. Its worst case on the simplex is
attained by a point mass at the outcome of least probability under Q0 [paper, App. F.1]:

    risk with r1 = 0, 1/r2 = min(e^(eps/2) m, 1 - (1 - m) e^(-eps/2)),   m = min Q0

which is the chord formula of `discreet.privacy.tradeoff` for the band 0 <= dP/dQ0 <= 1/m, which contains every distribution.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet._base.doors import old_keywords
from discreet.divergences import FDivergence, divergence as divergence_named
from discreet.errors import DiscreetError
from discreet.families import (
    ANY,
    Bounds,
    ContinuousFamily,
    DensityBand,
    FiniteFamily,
    Simplex,
    as_density,
    is_law,
    refuse_bad_law,
    serves_everybody,
)
from discreet.mechanisms._cells_and_points import Discretisation, make_atoms
from discreet.mechanisms._optimal import ProjectingSampler
from discreet.mechanisms._sampler import F, bounds_around
from discreet.mechanisms._worst_case import sampler_risk
from discreet.privacy import Privacy, Pure
from discreet.privacy.tradeoff import Constants, Risk, formula_risk, mollifier_constants

_SMALLEST = 1e-300


@final
class MollifierSampler(ProjectingSampler[F]):
    """The baseline: the closest distribution within a factor e^(eps/2) of `reference` (by default the family's own mu).

    On a continuous family Q0 may be any public density on its space, chosen before you look at the data. Atoms are then cells with Q0's
    masses m_i, or points drawn from Q0. All integer weights lie between e^(-eps/2) m_i and e^(eps/2) m_i, so those of any two clients on one
    atom differ by a factor of at most e^eps. The place of a point in its cell depends on Q0 alone. So the release is epsilon-LDP for every
    Q0, even if its masses are inaccurate. Utility does depend on Q0. A density alone does not bound p/Q0, and `risk` is then the largest
    possible; a `DensityBand` bounds it.

    Args:
        family: the family of client distributions: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        reference: the public distribution Q0, the centre of the ball. On a finite family one positive probability for each outcome. On a
            continuous one a density, or a `DensityBand` on the same space, whose bounds are those of p/Q0.
        discretisation: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out
            on a finite family.
        privacy: `Pure(epsilon)`, in place of epsilon; no other notion.

    Raises:
        DiscreetError: for an argument that is not a family, an epsilon out of range, a `discretisation` that does not fit the family, or a
            reference with an outcome that could never be released.

    Example:
        >>> sampler = MollifierSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> colour = sampler.release([0.7, 0.2, 0.1])
    """

    name = "mollifier"

    @old_keywords(how="discretisation")
    def __init__(
        self,
        family: F,
        *,
        epsilon: float | None = None,
        reference: Any = None,
        discretisation: Discretisation | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        super().__init__(family, epsilon=epsilon, discretisation=discretisation, privacy=privacy)
        self._own_reference: NDArray[np.float64] | DensityBand | None = None
        self._given_reference: Any = None
        if reference is None:
            return
        if isinstance(family, ContinuousFamily):
            self._own_reference, self._given_reference = _band_around(reference, family), reference
            object.__setattr__(self, "_carrier", make_atoms(self._own_reference, self.discretisation, members=family))
        else:
            self._given_reference = _positive_law(reference, family)
            self._own_reference = normalised_law(self._given_reference)

    def with_privacy(self, privacy: Privacy) -> Self:
        return type(self)(
            self.family, privacy=privacy, discretisation=self.discretisation, reference=self._own_reference
        )

    def _check_privacy(self) -> None:
        if not isinstance(self.privacy, Pure):
            raise DiscreetError(
                f"privacy = {self.privacy!r}: the mollifier is a ball of pure epsilon; give epsilon=, or use OptimalSampler"
            )

    @property
    def given_reference(self) -> Any:
        """Q0 as given, on a finite family in the order of the outcomes; None for the family's own reference."""
        return self._given_reference

    @property
    def reference(self) -> float | NDArray[np.float64]:
        return self._own_reference if isinstance(self._own_reference, np.ndarray) else super().reference

    @property
    def bounds(self) -> Bounds:
        """The family as a band around this sampler's reference instead of its own."""
        bounds = super().bounds
        if self._own_reference is None:
            return bounds
        if isinstance(self._own_reference, DensityBand):
            return bounds if serves_everybody(self.family) else self._own_reference.served_bounds
        return bounds_around(self._own_reference, bounds, self.carrier.reference)

    @cached_property
    def constants(self) -> Constants:
        return mollifier_constants(self.bounds, self.calibrated_epsilon)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case of this sampler over the family; exact where `.tight`, else an upper bound.

        The smallest worst case is the optimal sampler's.

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
        nothing_said = isinstance(self._own_reference, DensityBand) and not self._own_reference.says_something
        if nothing_said or (isinstance(self.family, ContinuousFamily) and self.family.any_client):
            return Risk(divergence_named(divergence).maximum, tight=False, attained=False)
        exact = isinstance(self.family, Simplex) or self.constants.gamma == 1.0
        return Risk(formula_risk(self.constants, divergence), exact, exact)

    def _identity(self) -> tuple[Any, ...]:
        own = self._own_reference
        return (*super()._identity(), own.tobytes() if isinstance(own, np.ndarray) else own)


def _positive_law(reference: Any, family: FiniteFamily) -> NDArray[np.float64]:
    law = family.as_rows(reference, "reference")
    if law.ndim != 1:
        raise DiscreetError(f"reference has shape {law.shape}; it is one law on the {family.size} outcomes")
    if not is_law(law[None, :])[0]:
        refuse_bad_law(law[None, :], 0, "reference")
    if not (law > _SMALLEST).all():
        raise DiscreetError(
            f"reference[{int(np.argmin(law))}] = {law.min():g}: that outcome could never be released; the worst case "
            "would be the largest possible; give every outcome a positive probability"
        )
    return law.copy()  # so that later changes to the caller's array have no effect


def normalised_law(law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities that sum to one up to rounding, from which the box is made."""
    found: NDArray[np.float64] = law / law.sum()
    found.setflags(write=False)
    return found


def _band_around(reference: Any, family: ContinuousFamily) -> DensityBand:
    """Q0 as a band on the family's space. A `DensityBand` bounds p/Q0; a density alone does not."""
    if not isinstance(reference, DensityBand):
        as_density(reference, family.dim, "reference")  # its error message names the argument
        return DensityBand(reference, family.whole_box, lower=0.0, upper=ANY)
    if reference.box != family.whole_box:
        raise DiscreetError(
            f"reference = {reference!r} lives on box = {reference.box}, the family on {family.whole_box}; make it on the same space"
        )
    return reference
