"""`OptimalSampler`, the base class `ProjectingSampler`, and `nearest_member`, the member of a family nearest to a distribution.

Q* is minimax-optimal for every f-divergence at once [paper, Thms 3.1, 3.3 and C.4]: no epsilon-LDP sampler has a smaller worst case over the
family. This holds on the simplex, for a `DensityBand`, and for a `Band` whose reference is alpha-decomposable. On other families (other
bands, mixtures) Q* is the sampler of the same formula. It is equally private, but other samplers can do better: on `Band([1]*5, lower=.5,
upper=2)` at epsilon 0.5 its worst TV is 0.1933, the mollifier's 0.1864, and 0.1764 is possible. `risk(...).tight` tells which case holds.

Projecting samplers share the scale r_P, and a bound on how far their output moves with the client's distribution [paper, Prop. 4.1]. The
nearest member is clip(p/r, c1 mu, c2 mu), for every f-divergence at once [paper, Prop. C.8].
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from discreet._base.labelled import LawLike
from discreet.divergences import FDivergence
from discreet.errors import OPEN_UNIT, OutsideFamilyWarning, check_count
from discreet.families import ContinuousFamily, FiniteFamily, as_clients, check_family, is_many
from discreet.mechanisms._multisets import SAMPLES_ARE, Multisets
from discreet.mechanisms._output_law import OutputLaw, OutputProblem
from discreet.mechanisms._output_solver import OutputSolver
from discreet.mechanisms._sampler import AnyFamily, Client, F, Sampler
from discreet.mechanisms._several_samples import ComposedSampler, JointSampler
from discreet.mechanisms._worst_case import sampler_risk
from discreet.privacy import Pure
from discreet.privacy.tradeoff import Constants, Risk, constants_for_privacy
from discreet.projection import Box


class ProjectingSampler(Sampler[F]):
    """A sampler that projects onto its box: it has a scale r_P, and is continuous in P."""

    def scale(self, p: LawLike | Client | Sequence[Client]) -> float | NDArray[np.float64]:
        """The paper's r_P, exactly: Q = clip(P/r_P, b mu, B mu).

        Where several scales give the same output, it is one of them. It is 0 where P sits on so small a set that no scale exists; this never
        happens to a member of an optimal sampler's family.

        Args:
            p: the distribution of one client or of many. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
                Continuous: a density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            One number, or one for each client.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self._outputs.scale(self.carrier.read(p))

    def sensitivity(self, p: LawLike | Client | Sequence[Client]) -> float | NDArray[np.float64]:
        """How far the output can move with P: TV(Q(P), Q(P')) <= sensitivity(P) TV(P, P') [paper, Prop. 4.1].

        It is 2/r_P, so a client can compute it from its estimate of P.

        Args:
            p: the distribution of one client or of many. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
                Continuous: a density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            One number, or one for each client.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        with np.errstate(divide="ignore"):
            found = 2.0 / np.asarray(self.scale(p))
        return found if found.ndim else float(found)

    def estimation_cost(
        self, p: LawLike | Client, *, records: int, confidence: float = 0.95
    ) -> float | NDArray[np.float64]:
        """A bound on TV(Q(P), Q(P_hat)) if p is the empirical distribution P_hat of that many independent records of P.

        E TV(P, P_hat) <= sqrt((k - 1)/n)/2 (Cauchy-Schwarz), and one record moves it by at most 1/n (McDiarmid). So with the given confidence
        TV(P, P_hat) <= sqrt((k - 1)/n)/2 + sqrt(log(1/(1 - confidence))/(2 n)). The bound is this times `sensitivity(p)`, and at most min(1 -
        b, B - 1), the diameter of the box. It concerns utility; privacy does not depend on it.

        On a continuous family p is a histogram fit, k its cells, and P stands for P averaged over each cell. The cost of binning itself
        depends on how much p/h varies inside a cell, and is not in the bound.

        Args:
            p: the empirical distribution, or on a continuous family a histogram fit.
            records: how many records it comes from.
            confidence: the probability with which the bound holds, in (0, 1).

        Returns:
            The bound, for one client or for each.

        Raises:
            DiscreetError: for counts or a confidence out of range, or a continuous client that is not a histogram.
        """
        n = min(check_count("records", records), 10**300)  # what a float can hold
        OPEN_UNIT.check("confidence", confidence)
        moved = 0.5 * math.sqrt((self.carrier.bins(p) - 1) / n) + math.sqrt(-math.log1p(-confidence) / (2 * n))
        diameter = min(1.0 - self.constants.b, self.constants.B - 1.0)
        bound = np.minimum(np.asarray(self.sensitivity(p)) * min(moved, 1.0), diameter)
        return bound if bound.ndim else float(bound)


@final
class OptimalSampler(ProjectingSampler[F]):
    """The private sampler with the smallest worst case: each sample is drawn from the distribution in the box closest to the client's.

    Q*(P) = clip(P/r_P, b mu, b e^eps mu) is the projection of P onto the optimal box. On `Simplex(k)` it is max(P(x)/r_P, 1/(e^eps + k - 1)).
    A client outside the family keeps its privacy, because the box holds for all clients; only the bound on its utility is lost. If the family
    is so narrow that a raw draw is private, the box contains the whole family.

    On a continuous family densities replace probabilities: q = clip(p/r_P, b h, b e^eps h), and `discretisation` chooses how a point is
    released.

    Args:
        family: the family of client distributions: `Simplex(...)`, `Band(...)` or a continuous family.
        epsilon: the privacy budget of one release, in (0, inf); 0.5 to 4 is usual. Short for `privacy=Pure(epsilon)`.
        discretisation: how a continuous client is released, `Cells(...)` or `Points(...)`; by default cells up to three dimensions. Left out
            on a finite family.
        privacy: a notion of privacy in place of epsilon: `Approximate(1.0, delta=1e-6)`, `Gaussian(1.0)`, `Functional(f)`.

    Raises:
        DiscreetError: for an argument that is not a family, an epsilon out of range, a notion that allows raw draws or no release, or a
            `discretisation` that does not fit the family.

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

    def with_samples(self, samples: int) -> ComposedSampler | JointSampler:
        """A sampler for several samples of each client under this sampler's budget.

        Samples are drawn jointly if privacy is pure epsilon and the multisets of outcomes can be listed, and one by one otherwise.

        Args:
            samples: how many samples of each client.

        Returns:
            A `JointSampler`, or a `ComposedSampler` for too many multisets or another notion of privacy.

        Raises:
            DiscreetError: for a number out of range, or a budget that cannot be split so often.
        """
        size = check_count("samples", samples, fix=SAMPLES_ARE)
        family: AnyFamily = self.family
        if isinstance(family, ContinuousFamily) or not isinstance(self.privacy, Pure) or size == 1:
            return super().with_samples(size)
        if not Multisets.fit(family.size, size):
            return super().with_samples(size)
        return JointSampler(family, samples=size, privacy=self.privacy)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The worst case of this sampler over the family.

        Where `.tight`, no epsilon-LDP sampler has a smaller one. Where not `.attained`, it is an upper bound: the paper's formula for the
        band that encloses the family. On a continuous family it is that of `output`. Releases by cells and points come close to it for
        densities that hardly change inside a cell.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        return sampler_risk(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy)


Floats = NDArray[np.float64]

_NO_FLOOR = 1e-290


@overload
def nearest_member(family: ContinuousFamily, p: Any) -> OutputLaw: ...
@overload
def nearest_member(family: FiniteFamily, p: LawLike) -> Floats: ...
def nearest_member(family: ContinuousFamily | FiniteFamily, p: Any) -> OutputLaw | Floats:
    """The distribution of the family closest to p for every f-divergence at once: clip(p/r, c1 mu, c2 mu) [paper, Prop. C.8].

    On a finite family it maps (..., k) to (..., k). On a continuous family it is an `OutputLaw`, between the bounds at every point;
    `mass_error` estimates the error of its mass.

    Args:
        family: a finite or a continuous family.
        p: one distribution or many, as for samplers.

    Returns:
        Distributions of the shape of p, or an `OutputLaw`.

    Raises:
        DiscreetError: for an argument that is not a family or not a distribution.
    """
    check_family(family)
    if isinstance(family, ContinuousFamily):
        return _nearest_density(family, p)
    return _nearest_law(family, p)


def _nearest_law(family: FiniteFamily, p: LawLike) -> Floats:
    """The projection onto the band as a box. For c1 = 0 a floor below rounding replaces 0, and is subtracted again."""
    reference = np.broadcast_to(family.reference, family.size)
    lower = max(family.bounds.lower, _NO_FLOOR) * reference
    box = Box(family.size, lower, np.minimum(np.maximum(family.bounds.upper * reference, lower), 1.0))
    found = box.project(family.as_rows(p))
    if family.bounds.lower == 0.0:
        found[found <= 2.0 * lower] = 0.0
    return found


def _nearest_density(family: ContinuousFamily, p: Any) -> OutputLaw:
    bounds = family.bounds
    lower = max(bounds.lower, 1e-12 * bounds.upper)
    constants = Constants(bounds.alpha, lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    problem = OutputProblem(family, constants, math.log(bounds.upper / lower) + 1e-9, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideFamilyWarning)
        return OutputSolver(problem).law(as_clients(p, family), many=is_many(p))
