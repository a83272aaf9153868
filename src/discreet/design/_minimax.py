"""`minimax_risk`: the smallest worst case of any private sampler, for one sample or several of each client, exactly or as a bracket.

The papers' formula is exact where sets of mass alpha cover the space evenly and the family contains its whole band. Elsewhere the value is
bracketed:

**Bands around the uniform distribution.** All vertices of the band are one distribution P with its outcomes permuted, and the minimax value
is min_b F(P; b mu), over one number. *Proof.* F is convex in P, so the worst member for any floor is a vertex. The maximum over vertices of
F(.; m) is convex in m and invariant under permutations of m's outcomes. So the average of m over all permutations, which is uniform, is no
worse, and serves all vertices alike.   QED
The k cyclic shifts of P suffice as a proof. Their mean under any m is at least that under the average of m over shifts, which is uniform too.
So their best mean *is* that value, and the certificate of `discreet.design._floors` for it bounds the band from below.

**Other bands.** With at most 12 outcomes the clients are all vertices (T6, `discreet.design._solving`), and the two sides agree to 1e-4.
With more, a class is no easier than some of its members: a number of vertices bound it from below, Q* of the band from above.

**Notions other than pure epsilon** are linear programmes over all pairs of vertices (`discreet.design._linear_programmes`).

**Mixtures on a line.** Both sides are those of `discreet.design.mixtures` (T7). For divergences other than total variation some kernels on
cells bound the class from below (data processing holds for every f). The sampler that serves those best, on finer cells, bounds it from
above.

**J samples of each client under one budget.** From above: `JointSampler` around the envelope or the product, the better of the two. From
below: a class is no easier than some of its members. So a design for the J-fold distributions of a grid of clients has a certificate that
bounds every epsilon-LDP mechanism on multisets (T6). Multisets lose nothing (`discreet.mechanisms._multisets`). One sample of the J is a
function of all of them, so their smallest worst case is also at least that of one sample (data processing).
"""

from __future__ import annotations

import math

import numpy as np

from discreet import divergences
from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.design._designs import design
from discreet.design._floors import Floats, as_example_clients
from discreet.design._linear_programmes import minimax_bracket_under_notion
from discreet.design._solving import worst_divergence
from discreet.design.mixtures import (
    BRACKET_CELLS,
    KernelsOnCells,
    minimax_bounds_and_floor,
    worst_kernel_divergence_upper_bound,
)
from discreet.divergences import FDivergence, RenyiDivergence, tv
from discreet.errors import DiscreetError, check_count
from discreet.families import (
    LARGEST_ENUMERATED,
    Band,
    ContinuousFamily,
    FiniteFamily,
    GaussianMixtures,
    LaplaceMixtures,
    Simplex,
    band_vertices,
    refuse_non_family,
    vertex_of_uniform_band,
)
from discreet.mechanisms import (
    SAMPLES_FIX,
    JointSampler,
    Multisets,
    OptimalSampler,
    largest_risk_over_all_densities,
    nearest_member,
)
from discreet.privacy import Privacy, Pure, chosen_privacy
from discreet.privacy.tradeoff import (
    Family,
    Risk,
    constants_of_box_for_privacy,
    family_or_simplex_if_any_client,
    risk_by_formula,
    risk_formula_is_minimax,
)

LARGEST_JOINT = 256  # multisets up to which the programme is solved
_CLIENTS = (100, 256)  # most clients of a grid; either of two grids may have the sharper certificate
_ENTRIES = 50_000  # of the clients' laws on multisets
_FINEST = 32  # parts that each outcome's share is a multiple of
_LARGEST_EPSILON = 12.0  # beyond it the bracket is narrower than 1e-4
_JOINT_LOST = 1e-9  # bound on the rounding of the clients' distributions


def minimax_risk_of_several_samples(
    family: Family, notion: Privacy, f: FDivergence, samples: int, single_risk: Risk, *, bracket: bool
) -> Risk:
    """The smallest known worst case for that many samples of each client; `single_risk`: that of one sample.

    Args:
        family: the family of client distributions, not a band that serves everybody.
        notion: the budget of all samples together.
        f: the divergence.
        samples: how many samples of each client, at least 2.
        single_risk: `minimax_risk` of one sample.
        bracket: whether to find a lower bound by a programme as well.

    Returns:
        A `Risk` that is tight only where raw draws are private; its bracket starts at least at the smallest worst case of one sample.

    Raises:
        DiscreetError: for a family that is not finite, a notion other than pure epsilon, or more samples than can be drawn jointly.
    """
    if not isinstance(family, (Simplex, Band)):
        raise DiscreetError(
            f"samples = {samples}: several samples are bracketed on finitely many outcomes, not for {family!r}"
        )
    risks = [
        JointSampler(family, samples=samples, privacy=notion, around=name).risk(f) for name in ("envelope", "product")
    ]
    best = min(risks, key=lambda risk: risk.value)
    if best.tight:
        return best
    least = single_risk.bracket[0]
    if bracket:
        if isinstance(f, RenyiDivergence):
            raise DiscreetError(
                f"divergence = {f.name} is a function of {f.alpha.name}; ask for the bracket of that one"
            )
        assert isinstance(notion, Pure)  # a joint sampler was made for it
        least = max(least, _minimax_lower_bound_for_several_samples(family, notion.epsilon, f, samples))
    return Risk(best.value, False, best.attained, min(least, best.value))


def _minimax_lower_bound_for_several_samples(
    family: FiniteFamily, epsilon: float, f: FDivergence, samples: int
) -> float:
    if math.isinf(f.at_zero) and family.bounds.lower == 0.0:
        return math.inf  # two clients with no outcome in common
    if Multisets.number_of_multisets(family.size, samples) > LARGEST_JOINT or epsilon > _LARGEST_EPSILON:
        return 0.0
    multisets = Multisets(family.size, samples)
    bounds = [0.0]
    for parts in {
        _parts_of_finest_probability_grid(family.size, min(most, _ENTRIES // len(multisets))) for most in _CLIENTS
    }:
        laws = np.unique(multisets.laws(_clients_on_probability_grid(family, parts)), axis=0)
        grid_design = design(Simplex(len(multisets)), epsilon=epsilon, clients=laws, divergence=f, over="worst")
        bounds.append(grid_design.bound * (1.0 - _JOINT_LOST) - _JOINT_LOST)
    return max(bounds)


def _parts_of_finest_probability_grid(size: int, most: int) -> int:
    """The finest division of shares into parts that gives at most that many clients."""
    return max(n for n in range(1, _FINEST + 1) if n == 1 or Multisets.number_of_multisets(size, n) <= most)


def _clients_on_probability_grid(family: FiniteFamily, parts: int) -> Floats:
    """Members whose shares are multiples of one part, or the nearest members to those."""
    size = family.size
    members = Multisets(size, parts).members
    laws = np.stack([np.bincount(row, minlength=size) for row in members]) / parts
    return laws if isinstance(family, Simplex) else nearest_member(family, laws)


LARGEST_UNIFORM = 512  # outcomes; there is one cyclic shift for each
LARGEST_BRACKETED = 1024
_VERTICES = 1 << 18  # entries of the vertices that stand for a band with too many of them
_FEW = 48  # outcomes up to which their worst case is found; beyond, their mean, which is faster and little smaller
_FEW_KERNELS, _KERNELS, _COARSE = 9, 17, 100  # on cells, for divergences other than total variation
_NARROW = 1.5  # radius in scales up to which few kernels represent all
_MODERATE = 4.0  # epsilon beyond which the programme cannot distinguish many kernels
# budgets at which the line's programmes are solved; the bound of a larger one holds for smaller ones
_SMALLEST_ON_LINE, _LARGEST_ON_LINE = (1e-6, 30.0)
_LOST = 1e-9  # bound on the rounding of the kernels' masses on cells


def minimax_risk(
    family: Family,
    *,
    epsilon: float | None = None,
    privacy: Privacy | None = None,
    divergence: str | FDivergence,
    samples: int = 1,
    bracket: bool = False,
) -> Risk:
    """The smallest worst-case divergence of any private sampler on the family.

    The papers' formula is exact where `.tight`: on the simplex, for a `DensityBand`, and for a `Band` whose reference is alpha-decomposable
    (for notions other than pure epsilon: by groups of equal mass). Elsewhere no formula is known, and the value is an upper bound: that of
    the band which encloses the family. With `bracket=True` the true value is bracketed there, certified from both sides: `.bracket` is
    (lower, upper), and `.value` is the upper one. A band that serves everybody makes no claim about clients: the value is that of the
    simplex, and on a continuous space the largest possible.

    Args:
        family: the family of client distributions.
        epsilon: the privacy budget, in (0, inf); short for `privacy=Pure(epsilon)`.
        privacy: a notion of privacy, in place of epsilon.
        divergence: a name such as "kl" or "tv", or an `FDivergence`.
        samples: how many samples of each client share the budget. The divergence is then that from as many independent draws. From two on the
            value is that of the better `JointSampler`, and a bracket is for at most 256 multisets of outcomes (else its lower side is that of
            one sample).
        bracket: find both sides where the formula is not exact. It works for a `Band` (1e-4 apart up to 12 outcomes, and around the uniform
            distribution up to 512; wider above), and for `GaussianMixtures` and `LaplaceMixtures` with dim=1 (about 1e-3 apart at a radius of
            one scale and an epsilon around 1, far apart where the value is tiny; design.md has the table). Under notions other than pure
            epsilon it is for a `Band` of at most 12 outcomes; with more than some thirty vertices only the lower side is found, beside the
            band's own sampler. It takes up to seconds, under other notions up to a minute.

    Returns:
        A `Risk`.

    Raises:
        DiscreetError: for an argument that is not a family, an epsilon out of range, an unknown divergence, or a bracket where none is known.
    """
    refuse_non_family(family)
    notion = chosen_privacy(epsilon, privacy)
    check_count("samples", samples, fix=SAMPLES_FIX)
    if isinstance(family, ContinuousFamily) and family.any_client:
        return largest_risk_over_all_densities(notion, divergence)
    family = family_or_simplex_if_any_client(family)
    constants = constants_of_box_for_privacy(notion, family.bounds)
    exact = risk_formula_is_minimax(family, notion) or constants.above == 0.0
    risk = Risk(risk_by_formula(constants, divergence), exact, exact)
    if not exact and bracket:
        risk = _minimax_risk_with_bracket(family, notion, divergences.divergence(divergence), risk.value)
    if samples == 1:
        return risk
    return minimax_risk_of_several_samples(
        family, notion, divergences.divergence(divergence), samples, risk, bracket=bracket
    )


def _minimax_risk_with_bracket(family: Family, notion: Privacy, f: FDivergence, formula: float) -> Risk:
    if isinstance(f, RenyiDivergence):
        raise DiscreetError(f"divergence = {f.name} is a function of {f.alpha.name}; ask for the bracket of that one")
    if not isinstance(notion, Pure):
        return _minimax_risk_bracket_under_notion(family, notion, f, formula)
    epsilon = notion.epsilon
    match family:
        case Band() if math.isinf(f.at_zero) and family.bounds.lower == 0.0 and family.size <= LARGEST_BRACKETED:
            lower = upper = math.inf  # a vertex leaves an outcome out
        case Band(reference=np.ndarray()) if family.size <= LARGEST_ENUMERATED:
            band_design = design(family, epsilon=epsilon, divergence=f, over="worst")
            lower, upper = band_design.bound, band_design.value
        case Band(reference=float()) if family.size <= LARGEST_UNIFORM:
            lower, upper = _minimax_bracket_around_uniform(family, epsilon, f)
        case Band() if family.size <= LARGEST_BRACKETED:
            lower, upper = _minimax_lower_bound_by_random_vertices(family, epsilon, f), math.inf
        case GaussianMixtures(dim=1) | LaplaceMixtures(dim=1) if epsilon > _LARGEST_ON_LINE:
            lower, upper = 0.0, math.inf
        case GaussianMixtures(dim=1) | LaplaceMixtures(dim=1) if f == tv:
            lower, upper, _ = minimax_bounds_and_floor(family, max(epsilon, _SMALLEST_ON_LINE), BRACKET_CELLS)
            upper = upper if epsilon >= _SMALLEST_ON_LINE else math.inf
        case GaussianMixtures(dim=1) | LaplaceMixtures(dim=1):
            lower, upper = _minimax_bracket_on_cells(family, epsilon, f)
        case _:
            raise DiscreetError(
                f"family = {family!r}: no bracket is known; they are for a Band of at most {LARGEST_BRACKETED:,} outcomes, and for "
                "GaussianMixtures and LaplaceMixtures with dim=1"
            )
    sampler_risk = float(OptimalSampler(family, epsilon=epsilon).risk(f))
    upper = min(upper, sampler_risk, formula)
    return Risk(upper, False, upper == sampler_risk, min(lower, upper))


def _minimax_risk_bracket_under_notion(family: Family, notion: Privacy, f: FDivergence, formula: float) -> Risk:
    if not isinstance(family, Band) or family.size > LARGEST_ENUMERATED:
        raise DiscreetError(
            f"family = {family!r}: no bracket is known under {notion}; they are for a Band of at most {LARGEST_ENUMERATED} outcomes"
        )
    sampler = OptimalSampler(family, privacy=notion)
    sampler_risk = float(sampler.risk(f))
    if math.isinf(sampler_risk):
        return Risk(sampler_risk, False, True, 0.0)
    mu = np.broadcast_to(family.reference, family.size)
    laws = np.unique(band_vertices(mu, family.bounds.lower, family.bounds.upper).laws, axis=0)
    lower, upper = minimax_bracket_under_notion(laws, notion, sampler.epsilon, f, min(sampler_risk, formula))
    upper = min(upper, sampler_risk, formula)
    return Risk(upper, False, upper == sampler_risk, min(lower, upper))


def _minimax_lower_bound_by_random_vertices(band: Band, epsilon: float, f: FDivergence) -> float:
    laws, outcomes = _random_band_vertices(band, min(4 * band.size, _VERTICES // band.size)), Simplex(band.size)
    if band.size <= _FEW:
        return design(outcomes, epsilon=epsilon, clients=laws, divergence=f, over="worst").bound
    return design(outcomes, epsilon=epsilon, clients=laws, divergence=f, keep=0.0).bound


def _random_band_vertices(band: Band, number: int) -> Floats:
    """That many random vertices: the upper bound on outcomes in some order while mass is left, the lower bound on the others."""
    mu, bounds = np.broadcast_to(band.reference, band.size), band.bounds
    rng = np.random.default_rng(0)  # any orders give a bound; these are the same each time
    laws = np.empty((number, band.size))
    for law in laws:
        order = rng.permutation(band.size)
        room = (bounds.upper - bounds.lower) * mu[order]
        remaining = 1.0 - bounds.lower
        shares = np.clip(remaining - np.concatenate([[0.0], np.cumsum(room)[:-1]]), 0.0, room)
        law[order] = bounds.lower * mu[order] + shares
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def _minimax_bracket_around_uniform(band: Band, epsilon: float, f: FDivergence) -> tuple[float, float]:
    size = band.size
    atoms = vertex_of_uniform_band(size, band.bounds.lower, band.bounds.upper)
    multiplicities = np.rint(atoms.reference * size).astype(np.int64)
    law = np.repeat(atoms.laws[0] / multiplicities, multiplicities)
    shifts = law[(np.arange(size)[:, None] + np.arange(size)) % size]
    mean_design = design(Simplex(size), epsilon=epsilon, clients=shifts, divergence=f, keep=0.0)
    ratio = math.exp(min(epsilon, LARGEST_FLOAT_EXPONENT))
    total = 1.0 / (1.0 + math.expm1(min(epsilon, LARGEST_FLOAT_EXPONENT)) / mean_design.family.bounds.upper)
    single_client = as_example_clients(law[None, :], None, size)
    return mean_design.bound, worst_divergence(single_client, f, np.full(size, total / size), ratio)


def _minimax_bracket_on_cells(
    family: GaussianMixtures | LaplaceMixtures, epsilon: float, f: FDivergence
) -> tuple[float, float]:
    """Both sides for a smooth f: some kernels on cells from below, and from above all kernels under the floor that serves those best."""
    line, few = KernelsOnCells(family, _COARSE), family.radius <= _NARROW * family.scale or epsilon > _MODERATE
    laws = line.kernel_laws_on_cells(np.linspace(-family.radius, family.radius, _FEW_KERNELS if few else _KERNELS))
    cell_design = design(Simplex(laws.shape[1]), epsilon=epsilon, clients=laws, divergence=f, over="worst")
    floor = cell_design.sampler.constants.b * np.broadcast_to(cell_design.family.reference, laws.shape[1])
    lower = max(0.0, cell_design.bound * (1.0 - _LOST) - _LOST)
    rival_bound = float(OptimalSampler(family, epsilon=epsilon).risk(f))
    return lower, worst_kernel_divergence_upper_bound(line, floor, epsilon, f, rival_bound=rival_bound)
