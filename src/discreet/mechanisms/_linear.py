"""Q-dagger(P) = gamma P + (1 - gamma) mu: a raw draw with probability gamma, else a draw of the reference [paper, App. C.2.1].

Minimax-optimal too, and for every client at most as good as the projection, but it can be inverted: the average client is
identifiable from it. On the simplex it is k-ary randomised response applied to a raw draw [paper, Remark in Section 3.3].
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import release
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError
from discreet.families import Simplex, serves_everybody
from discreet.mechanisms._cells_and_points import Discretisation
from discreet.mechanisms._sampler import F, Sampler
from discreet.mechanisms._several_samples import ComposedSampler
from discreet.mechanisms._worst_case import sampler_risk
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import Constants, Risk, constants_for_privacy
from discreet.projection import Affine
from discreet.release import Randomness, SystemEntropy

MEMBERS_ALONE = (  # the one answer to whoever asks for a table under a linear mechanism that is not for everybody
    "mechanism = 'linear' on a band or a continuous family is for its members alone, and a table may hold others; agree on optimal, which "
    "takes anybody (mechanism='optimal', --mechanism optimal), or, to estimate a population, on linear for every distribution on "
    "outcomes or on the equal cells of an interval"
)


@final
class LinearSampler(Sampler[F]):
    """The private sampler from whose samples a population can be estimated without bias: gamma P + (1 - gamma) mu.

    It draws from what the client holds with probability gamma, else from the reference. A client outside its family is refused, for
    whoever inverts the law, which would no longer be linear in P; privacy has no part in it. The integer box keeps every client
    private, also one outside the band that no node of a continuous family gave away. `nearest_member(family, p)` is inside;
    `OptimalSampler` takes anybody.

    Args:
        family: who the clients may be: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        how: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out on a
            finite family.
        privacy: a notion of privacy in place of epsilon: `Approximate(1.0, delta=1e-6)`, `Gaussian(1.0)`, `Functional(f)`.

    Raises:
        DiscreetError: for something that is no family, an epsilon that is none, a notion that allows raw draws or nothing,
            a `how` that does not fit the family, or a band that
            serves everybody.

    Example:
        >>> sampler = LinearSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> colour = sampler.release([0.7, 0.2, 0.1])
    """

    name = "linear"

    def __init__(
        self,
        family: F,
        *,
        epsilon: float | None = None,
        how: Discretisation | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        if serves_everybody(family):
            raise DiscreetError(
                f"family = {family!r} serves everybody, the linear mechanism members of a band alone; use OptimalSampler"
            )
        super().__init__(family, epsilon=epsilon, how=how, privacy=privacy)

    def several(self, samples: int) -> ComposedSampler:
        """So many samples of each client, drawn one by one with a share of the budget each: what `release(p, size=samples)` draws with.

        Args:
            samples: how many samples of each client.

        Returns:
            A `ComposedSampler`.

        Raises:
            DiscreetError: for a number that is none, or more than a budget can be split into.
        """
        return ComposedSampler(self, samples=samples)

    @cached_property
    def constants(self) -> Constants:
        return constants_for_privacy(self._calibrated_privacy, self.family.bounds)

    @property
    def mixing(self) -> Affine:
        """(1 - gamma) mu = lift b mu; for lower = 0 the lift is 1 exactly, also where b underflows."""
        gamma, b = self.constants.gamma, self.constants.b
        return Affine(gamma, (1.0 - gamma) / b if self.family.bounds.lower else 1.0)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case over the family: the optimal sampler's where that is tight (extreme clients are mapped alike).

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        return sampler_risk(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy, self.mixing)

    def randomised_response(self, records: Iterable[Any], *, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """One private sample for each raw record (drawn by the client from its own law): k-ary randomised response.

        Exactly epsilon-LDP in integers for each record, hence for the law it came from. On the simplex only.

        Args:
            records: one record of each client, as labels or outcome numbers.
            rng: a seeded generator, for experiments; then it is NOT private.

        Returns:
            An array (n,) with one outcome number or label for each record.

        Raises:
            DiscreetError: for a family that is no `Simplex`, or records outside its outcomes.
        """
        if not isinstance(self.family, Simplex):
            raise DiscreetError(f"randomised_response needs a Simplex, not {self.family!r}; use release(p)")
        kept = self.family.numbers(records)
        randomness: Randomness = SystemEntropy() if rng is None else release.seeded_randomness(rng)
        return np.asarray(self.family.to_samples(self._respond(kept, randomness.integers(len(kept)))))

    def _respond(self, kept: NDArray[np.int64], uniform: NDArray[np.int64]) -> NDArray[np.int64]:
        """Above the shared part an integer belongs to the record; what its ceiling leaves over goes to the others in order."""
        lower, upper = int(self.lattice.lower), int(self.lattice.upper)
        span, rest = upper - lower, uniform - self.lattice.shared_total
        others = np.maximum(rest - span, 0) // max(span, 1)
        others += others >= kept
        return np.where(rest < 0, uniform // lower, np.where(rest < span, kept, others))
