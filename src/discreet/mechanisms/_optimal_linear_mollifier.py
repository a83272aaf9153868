"""The paper's three mechanisms: `OptimalSampler`, `LinearSampler` and `MollifierSampler`; and `nearest_member` of a family.

**Optimal.** Q* is minimax-optimal for every f-divergence at once [paper, Thms 3.1, 3.3 and C.4]: no epsilon-LDP sampler has a smaller worst
case over the family. This holds on the simplex, for a `DensityBand`, and for a `Band` whose reference is alpha-decomposable. On other
families (other bands, mixtures) Q* is the sampler of the same formula. It is equally private, but other samplers can do better: on
`Band([1]*5, lower=.5, upper=2)` at epsilon 0.5 its worst TV is 0.1933, the mollifier's 0.1864, and 0.1764 is possible. `risk(...).tight`
tells which case holds.

Projecting samplers share the scale r_P, and a bound on how far their output moves with the client's distribution [paper, Prop. 4.1]. The
nearest member is clip(p/r, c1 mu, c2 mu), for every f-divergence at once [paper, Prop. C.8].

**Linear.** gamma P + (1 - gamma) mu: a raw draw with probability gamma, else a draw of the reference [paper, App. C.2.1]. It is
minimax-optimal too. For every client the projection is at least as close, but the linear mechanism can be inverted: the average client is
identifiable from it. On the simplex it is k-ary randomised response applied to a raw draw [paper, Remark in Section 3.3].

**Mollifier.** Husain et al.'s relative mollifier projects onto the ball e^(-eps/2) Q0 <= Q <= e^(eps/2) Q0 around a chosen distribution Q0.
The published closed form clip(P/r, ...) has no solution if P sits on too small a set [paper, Section 2.3]. The projection still exists
(`discreet.projection._box`), and this sampler draws from it. Its worst case on the simplex is attained by a point mass at the outcome of
least probability under Q0 [paper, App. F.1]:

    risk with r1 = 0, 1/r2 = min(e^(eps/2) m, 1 - (1 - m) e^(-eps/2)),   m = min Q0

which is the chord formula of `discreet.privacy.tradeoff` for the band 0 <= dP/dQ0 <= 1/m, which contains every distribution.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, final, overload

import numpy as np
from numpy.typing import NDArray

from discreet._base import accept_renamed_keywords, placeholders_until_used
from discreet._base.labelled import LawLike
from discreet.errors import OPEN_UNIT, DiscreetError, OutsideFamilyWarning, check_count
from discreet.families import (
    Bounds,
    FiniteFamily,
    Simplex,
    raise_error_for_bad_row,
    refuse_non_family,
    rows_are_laws,
    serves_everybody,
)
from discreet.mechanisms._atoms import Discretisation, make_atoms
from discreet.mechanisms._sampler import AnyFamily, Client, F, Floats, Sampler, bounds_around_new_reference
from discreet.privacy import Privacy, Pure
from discreet.privacy.tradeoff import (
    Constants,
    Risk,
    constants_of_box_for_privacy,
    mollifier_constants,
    risk_by_formula,
)
from discreet.projection import Affine, Box
from discreet.release import entropy_or_seeded_randomness

with placeholders_until_used(globals()):
    from discreet.divergences import FDivergence, divergence as divergence_named
    from discreet.families import ContinuousFamily, DensityBand, as_client_densities, as_density, is_list_of_clients
    from discreet.mechanisms._multisets import Multisets
    from discreet.mechanisms._several_samples import ComposedSampler, JointSampler
    from discreet.projection import OutputLaw, OutputProblem, OutputSolver, worst_case_over_family

MEMBERS_ONLY_MESSAGE = (  # the error for tables under a linear mechanism for a band or a continuous family
    "mechanism = 'linear' on a band or a continuous family is for its members alone, and a table may hold others; agree on optimal, which "
    "takes anybody (mechanism='optimal', --mechanism optimal), or, to estimate a population, on linear for every distribution on "
    "outcomes or on the equal cells of an interval"
)
_SMALLEST = 1e-300
_NO_FLOOR = 1e-290


class ProjectingSampler(Sampler[F]):
    """A sampler that projects onto its box: it has a scale r_P, and is continuous in P."""

    def scale(self, p: LawLike | Client | Sequence[Client]) -> float | Floats:
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
        batch = self.carrier.read_clients(p)
        return self._client_output_solver.clipping_scales(batch.clients, batch.shape)

    def sensitivity(self, p: LawLike | Client | Sequence[Client]) -> float | Floats:
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
            sensitivity = 2.0 / np.asarray(self.scale(p))
        return sensitivity if sensitivity.ndim else float(sensitivity)

    def estimation_cost(self, p: LawLike | Client, *, records: int, confidence: float = 0.95) -> float | Floats:
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
        error = 0.5 * math.sqrt((self.carrier.count_bins_in_empirical_law(p) - 1) / n) + math.sqrt(
            -math.log1p(-confidence) / (2 * n)
        )
        diameter = min(1.0 - self.constants.b, self.constants.B - 1.0)
        bound = np.minimum(np.asarray(self.sensitivity(p)) * min(error, 1.0), diameter)
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
        return constants_of_box_for_privacy(self._calibrated_privacy, self.family.bounds)

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
        from discreet.mechanisms._multisets import SAMPLES_FIX  # loaded for several samples alone

        size = check_count("samples", samples, fix=SAMPLES_FIX)
        family: AnyFamily = self.family
        if (
            isinstance(family, ContinuousFamily)
            or not isinstance(self.privacy, Pure)
            or size == 1
            or not Multisets.can_be_listed(family.size, size)
        ):
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
        return worst_case_over_family(self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy)


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

    def _refuse_family_without_box(self) -> None:
        if serves_everybody(self.family):
            raise DiscreetError(
                f"family = {self.family!r} serves everybody, the linear mechanism members of a band alone; use OptimalSampler"
            )

    @cached_property
    def constants(self) -> Constants:
        return constants_of_box_for_privacy(self._calibrated_privacy, self.family.bounds)

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
        return worst_case_over_family(
            self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy, self.mixing
        )

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
        outcomes = self.family.numbers(records)
        uniform = entropy_or_seeded_randomness(rng).integers(len(outcomes))
        return np.asarray(self.family.to_samples(self._randomise_records(outcomes, uniform)))

    def _randomise_records(self, outcomes: NDArray[np.int64], uniform: NDArray[np.int64]) -> NDArray[np.int64]:
        """An integer above the shared part belongs to the record; the rest above its ceiling goes to the other outcomes in order."""
        lower, upper = int(self.lattice.lower), int(self.lattice.upper)
        span, rest = upper - lower, uniform - self.lattice.shared_total
        others = np.maximum(rest - span, 0) // max(span, 1)
        others += others >= outcomes
        return np.where(rest < 0, uniform // lower, np.where(rest < span, outcomes, others))


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

    @accept_renamed_keywords(how="discretisation")
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
        self._own_reference: Floats | DensityBand | None = None
        self._given_reference: Any = None
        if reference is None:
            return
        if isinstance(family, ContinuousFamily):
            self._own_reference, self._given_reference = _reference_band_on_family_space(reference, family), reference
            object.__setattr__(self, "_carrier", make_atoms(self._own_reference, self.discretisation, members=family))
        else:
            self._given_reference = _read_positive_reference(reference, family)
            self._own_reference = normalised_law(self._given_reference)

    def with_privacy(self, privacy: Privacy) -> Self:
        return type(self)(
            self.family, privacy=privacy, discretisation=self.discretisation, reference=self._own_reference
        )

    def _refuse_privacy_without_box(self) -> None:
        if not isinstance(self.privacy, Pure):
            raise DiscreetError(
                f"privacy = {self.privacy!r}: the mollifier is a ball of pure epsilon; give epsilon=, or use OptimalSampler"
            )

    @property
    def given_reference(self) -> Any:
        """Q0 as given, on a finite family in the order of the outcomes; None for the family's own reference."""
        return self._given_reference

    @property
    def reference(self) -> float | Floats:
        return self._own_reference if isinstance(self._own_reference, np.ndarray) else super().reference

    @property
    def bounds(self) -> Bounds:
        """The family as a band around this sampler's reference instead of its own."""
        bounds = super().bounds
        if self._own_reference is None:
            return bounds
        if isinstance(self._own_reference, DensityBand):
            return bounds if serves_everybody(self.family) else self._own_reference.served_bounds
        return bounds_around_new_reference(self._own_reference, bounds, self.carrier.reference)

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
            worst_case = worst_case_over_family(
                self.family, self.constants, self.calibrated_epsilon, divergence, self.privacy
            )
            return Risk(worst_case.value, worst_case.attained, worst_case.attained)
        is_unconstrained = isinstance(self._own_reference, DensityBand) and not self._own_reference.constrains_clients
        if is_unconstrained or (isinstance(self.family, ContinuousFamily) and self.family.any_client):
            return Risk(divergence_named(divergence).maximum, tight=False, attained=False)
        exact = isinstance(self.family, Simplex) or self.constants.gamma == 1.0
        return Risk(risk_by_formula(self.constants, divergence), exact, exact)

    def _comparison_key(self) -> tuple[Any, ...]:
        reference = self._own_reference
        return (*super()._comparison_key(), reference.tobytes() if isinstance(reference, np.ndarray) else reference)


def _read_positive_reference(reference: Any, family: FiniteFamily) -> Floats:
    law = family.as_rows(reference, "reference")
    if law.ndim != 1:
        raise DiscreetError(f"reference has shape {law.shape}; it is one law on the {family.size} outcomes")
    if not rows_are_laws(law[None, :])[0]:
        raise_error_for_bad_row(law[None, :], 0, "reference")
    if not (law > _SMALLEST).all():
        raise DiscreetError(
            f"reference[{int(np.argmin(law))}] = {law.min():g}: that outcome could never be released; the worst case "
            "would be the largest possible; give every outcome a positive probability"
        )
    return law.copy()  # so that later changes to the caller's array have no effect


def normalised_law(law: Floats) -> Floats:
    """Probabilities that sum to one up to rounding, from which the box is made."""
    probabilities: Floats = law / law.sum()
    probabilities.setflags(write=False)
    return probabilities


def _reference_band_on_family_space(reference: Any, family: ContinuousFamily) -> DensityBand:
    """Q0 as a band on the family's space. A `DensityBand` bounds p/Q0; a density alone does not."""
    if not isinstance(reference, DensityBand):
        from discreet.families import ANY  # loaded with densities

        as_density(reference, family.dim, "reference")  # its error message names the argument
        return DensityBand(reference, family.box_with_infinite_ends, lower=0.0, upper=ANY)
    if reference.box != family.box_with_infinite_ends:
        raise DiscreetError(
            f"reference = {reference!r} lives on box = {reference.box}, the family on {family.box_with_infinite_ends}; "
            "make it on the same space"
        )
    return reference


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
    refuse_non_family(family)
    if isinstance(family, ContinuousFamily):
        return _nearest_member_density(family, p)
    return _nearest_member_law(family, p)


def _nearest_member_law(family: FiniteFamily, p: LawLike) -> Floats:
    """The projection onto the band as a box. For c1 = 0 a floor below rounding replaces 0, and is subtracted again."""
    reference = np.broadcast_to(family.reference, family.size)
    lower = max(family.bounds.lower, _NO_FLOOR) * reference
    box = Box(family.size, lower, np.minimum(np.maximum(family.bounds.upper * reference, lower), 1.0))
    laws = box.project(family.as_rows(p))
    if family.bounds.lower == 0.0:
        laws[laws <= 2.0 * lower] = 0.0
    return laws


def _nearest_member_density(family: ContinuousFamily, p: Any) -> OutputLaw:
    bounds = family.bounds
    lower = max(bounds.lower, 1e-12 * bounds.upper)
    constants = Constants(bounds.alpha, lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    problem = OutputProblem(family, constants, math.log(bounds.upper / lower) + 1e-9, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideFamilyWarning)
        clients = as_client_densities(p, family)
        return OutputSolver(problem).output_law(clients, (len(clients),) if is_list_of_clients(p) else ())
