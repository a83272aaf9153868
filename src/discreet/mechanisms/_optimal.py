"""Q*: the minimax-optimal sampler, for every f-divergence at once [paper, Thms 3.1, 3.3 and C.4].

Optimal means: no epsilon-LDP sampler has a smaller worst case over the family. That is a theorem on the simplex, for a
`DensityBand`, and for a `Band` whose reference is alpha-decomposable. Elsewhere (other bands, mixtures) Q* is the sampler of the
same formula, private as ever, but others can do better: on `Band([1]*5, lower=.5, upper=2)` at epsilon 0.5 its worst TV is
0.1933, the mollifier's 0.1864, and 0.1764 is possible. `risk(...).tight` says which case it is.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

from discreet._worst_case import sampler_risk
from discreet.divergences import FDivergence
from discreet.errors import check_count
from discreet.families import ContinuousFamily
from discreet.mechanisms._projecting import ProjectingSampler
from discreet.mechanisms._sampler import AnyFamily, F
from discreet.mechanisms._several import ComposedSampler, JointSampler, Multisets
from discreet.mechanisms._several._multisets import SAMPLES_ARE
from discreet.privacy import Pure
from discreet.tradeoff import Constants, Risk, constants_for_privacy


@final
class OptimalSampler(ProjectingSampler[F]):
    """The private sampler that serves its worst client best: each sample is drawn from the closest law to what the client holds.

    Q*(P) = clip(P/r_P, b mu, b e^eps mu) is the projection of P onto the optimal box. On `Simplex(k)` that is
    max(P(x)/r_P, 1/(e^eps + k - 1)). A client outside the family keeps its privacy (the box does not care); only the bound on its
    utility is lost. Where the identity is already private, the box holds the whole family.

    On a continuous family the same with densities: q = clip(p/r_P, b h, b e^eps h), and `how` says how a point is released.

    Args:
        family: who the clients may be: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        how: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out on a
            finite family.
        privacy: a notion of privacy in place of epsilon: `Approximate(1.0, delta=1e-6)`, `Gaussian(1.0)`, `Functional(f)`.

    Raises:
        DiscreetError: for something that is no family, an epsilon that is none, a notion that allows raw draws or nothing,
            or a `how` that does not fit the family.

    Example:
        >>> sampler = OptimalSampler(Simplex(["red", "green", "blue"]), epsilon=1.0)
        >>> colour = sampler.release([0.7, 0.2, 0.1])
    """

    name = "optimal"

    @cached_property
    def constants(self) -> Constants:
        return constants_for_privacy(self._calibrated_privacy, self.family.bounds)

    @property
    def identity(self) -> bool:
        """Whether the family is so narrow that a raw draw is epsilon-LDP: then output(p) = p for every member."""
        return self.constants.above == 0.0

    def several(self, samples: int) -> ComposedSampler | JointSampler:
        """As for every sampler; drawn jointly where that is known to be better, pure epsilon on finitely many outcomes, and possible.

        Args:
            samples: how many samples of each client.

        Returns:
            A `JointSampler`, or where the multisets are too many or the notion is another a `ComposedSampler`.

        Raises:
            DiscreetError: for a number that is none, or more than a budget can be split into.
        """
        size = check_count("samples", samples, fix=SAMPLES_ARE)
        family: AnyFamily = self.family
        if isinstance(family, ContinuousFamily) or not isinstance(self.privacy, Pure) or size == 1:
            return super().several(size)
        if not Multisets.fit(family.size, size):
            return super().several(size)
        return JointSampler(family, samples=size, privacy=self.privacy)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case of this sampler over the family. Where `.tight`, no epsilon-LDP sampler has a smaller one; where not
        `.attained`, it is an upper bound (the paper's formula for the band that encloses the family). On a continuous family it is that of
        the law that `output` describes, which cells and points come close to for densities that hardly change inside a cell.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        return sampler_risk(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy)
