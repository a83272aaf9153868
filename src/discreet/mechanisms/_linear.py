"""`LinearSampler`: gamma P + (1 - gamma) mu, a raw draw with probability gamma, else a draw of the reference [paper, App. C.2.1].

The linear mechanism is minimax-optimal too. For every client the projection is at least as close, but the linear mechanism can be inverted:
the average client is identifiable from it. On the simplex it is k-ary randomised response applied to a raw draw [paper, Remark in Section
3.3].
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet import release
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError
from discreet.families import Simplex, serves_everybody
from discreet.mechanisms._sampler import F, Sampler
from discreet.mechanisms._several_samples import ComposedSampler
from discreet.mechanisms._worst_case import sampler_risk
from discreet.privacy.tradeoff import Constants, Risk, constants_for_privacy
from discreet.projection import Affine
from discreet.release import Randomness, SystemEntropy

MEMBERS_ALONE = (  # the error for tables under a linear mechanism for a band or a continuous family
    "mechanism = 'linear' on a band or a continuous family is for its members alone, and a table may hold others; agree on optimal, which "
    "takes anybody (mechanism='optimal', --mechanism optimal), or, to estimate a population, on linear for every distribution on "
    "outcomes or on the equal cells of an interval"
)


class OneByOneSampler(Sampler[F]):
    """A sampler whose several samples of a client are drawn one by one."""

    _SEALED: ClassVar[frozenset[str]] = frozenset({"with_samples"})

    def with_samples(self, samples: int) -> ComposedSampler:
        """A sampler for several samples of each client, drawn one by one with a share of the budget each; `release(p, size=samples)` uses it.

        Args:
            samples: how many samples of each client.

        Returns:
            A `ComposedSampler`.

        Raises:
            DiscreetError: for a number out of range, or a budget that cannot be split so often.
        """
        return ComposedSampler(self, samples=samples)


@final
class LinearSampler(OneByOneSampler[F]):
    """The private sampler for unbiased estimates of a population: gamma P + (1 - gamma) mu.

    It draws from the client's distribution with probability gamma, else from the reference. A client outside the family is rejected, because
    its output would not be linear in P and estimates would be biased. Privacy does not depend on this: the integer box keeps every client
    private, including one outside a continuous band that no node detected. `nearest_member(family, p)` is inside; `OptimalSampler` accepts
    all clients.

    Args:
        family: the family of client distributions: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        discretisation: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out
            on a finite family.
        privacy: a notion of privacy in place of epsilon: `Approximate(1.0, delta=1e-6)`, `Gaussian(1.0)`, `Functional(f)`.

    Raises:
        DiscreetError: for an argument that is not a family, an epsilon out of range, a notion that allows raw draws or no release, a
            `discretisation` that does not fit the family, or a band that serves everybody.

    Example:
        >>> sampler = LinearSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> colour = sampler.release([0.7, 0.2, 0.1])
    """

    name = "linear"

    def _check_family(self) -> None:
        if serves_everybody(self.family):
            raise DiscreetError(
                f"family = {self.family!r} serves everybody, the linear mechanism members of a band alone; use OptimalSampler"
            )

    @cached_property
    def constants(self) -> Constants:
        return constants_for_privacy(self._calibrated_privacy, self.family.bounds)

    @property
    def mixing(self) -> Affine:
        """(1 - gamma) mu = lift b mu; for lower = 0 the lift is exactly 1, even where b underflows."""
        gamma, b = self.constants.gamma, self.constants.b
        return Affine(gamma, (1.0 - gamma) / b if self.family.bounds.lower else 1.0)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case over the family; where the optimal sampler is tight it is the same, since both map extreme clients alike.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        return sampler_risk(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy, self.mixing)

    def randomised_response(self, records: Iterable[Any], *, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """One private sample for each raw record that a client drew from its own distribution: k-ary randomised response.

        It is exactly epsilon-LDP in integers for each record, hence for the client's distribution. On the simplex only.

        Args:
            records: one record of each client, as labels or outcome numbers.
            rng: a seeded generator, for experiments; the release is then NOT private.

        Returns:
            An array (n,) with one outcome number or label for each record.

        Raises:
            DiscreetError: for a family that is not a `Simplex`, or records outside its outcomes.
        """
        if not isinstance(self.family, Simplex):
            raise DiscreetError(f"randomised_response needs a Simplex, not {self.family!r}; use release(p)")
        kept = self.family.numbers(records)
        randomness: Randomness = SystemEntropy() if rng is None else release.seeded_randomness(rng)
        return np.asarray(self.family.to_samples(self._respond(kept, randomness.integers(len(kept)))))

    def _respond(self, kept: NDArray[np.int64], uniform: NDArray[np.int64]) -> NDArray[np.int64]:
        """An integer above the shared part belongs to the record; the rest above its ceiling goes to the other outcomes in order."""
        lower, upper = int(self.lattice.lower), int(self.lattice.upper)
        span, rest = upper - lower, uniform - self.lattice.shared_total
        others = np.maximum(rest - span, 0) // max(span, 1)
        others += others >= kept
        return np.where(rest < 0, uniform // lower, np.where(rest < span, kept, others))
