"""The worst case of a sampler over a family, and the smallest epsilon for a given worst case.

On the simplex, on a `DensityBand`, and on a `Band` whose reference is alpha-decomposable, the paper's formula gives the worst case. There it
is the smallest of any epsilon-LDP sampler. On other families the formula is an upper bound. Where the worst members are known
(`discreet.families._bands_and_laws`, `discreet.families._mixtures`), the sampler is applied to them instead, with the box that it draws from.

**Everybody on a line.** A `DensityBand` with `any_client=True` makes no claim about clients. Over all densities every epsilon-LDP sampler has
the largest possible worst case, M_f = f(0) + f*(0) [paper, Prop. 3.2]. *Proof.* Its outputs lie between m and e^eps m for a measure m of mass
at most 1. Of n disjoint sets, one has m <= 1/n. For a client that is uniform on it, the output has mass t <= e^eps/n there. Seen through that
set and its complement, the client loses at least t f(1/t) + (1 - t) f(0) (data processing), which tends to f*(0) + f(0).   QED
Where M_f is finite no density attains it: that takes a client with no mass in common with q, and q >= b h. Where M_f is infinite some
densities attain it. If f(0) is infinite, those that vanish on a set do. Otherwise f(t)/t is unbounded; with b h <= q <= B h and p/h steep
enough (for KL, p/h = c/(u log^2 u) in the quantile u of h) the integral diverges. `worst_case_on_atoms` gives a finite guarantee on cells. It
covers every distribution that is proportional to h inside each cell of the release, and so every list of values.

The optimal box widens on both sides as epsilon grows, so the worst case of Q* falls with epsilon and can be inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from discreet import divergences
from discreet._base.numerics import LARGEST_EXPONENT
from discreet.divergences import FDivergence
from discreet.errors import NON_NEGATIVE, ImpossibleError
from discreet.families import Band, Bounds, ContinuousFamily, WorstMembers, refuse_non_family, serves_everybody
from discreet.privacy import (
    DELTA,
    DELTA_FIX,
    LEAST_PROBABILITY,
    Approximate,
    Gaussian,
    Privacy,
    Pure,
    read_budget_in_range,
)
from discreet.privacy.tradeoff import (
    Constants,
    Family,
    Risk,
    constants_of_box_for_privacy,
    constants_of_optimal_box,
    epsilon_of_box,
    family_or_simplex_if_any_client,
    mollifier_constants,
    risk_by_formula,
    risk_formula_is_exact,
    risk_formula_is_minimax,
)
from discreet.projection._box import Affine, Box

_ROUNDS = 8  # of moving the atoms' ends to the kinks; two or three are enough
_SETTLED = 1e-13
_LOST_IN_ROUNDING = 1e-12  # of a divergence summed over atoms
_TINY = 1e-300


def worst_case_over_family(
    family: Family,
    constants: Constants,
    epsilon: float,
    divergence: str | FDivergence,
    privacy: Privacy,
    mixing: Affine | None = None,
) -> Risk:
    """The worst case of projecting onto a box around the family's reference, or of mixing into it.

    `tight` if no sampler that keeps the notion has a smaller one, by the papers' theorems. A sampler that is not minimax reports its own
    worst case.
    """
    if serves_everybody(family):
        if isinstance(family, Band):
            return worst_case_on_atoms(constants, family.least_reference_mass, divergence)
        return largest_risk_over_all_densities(privacy, divergence)
    formula = risk_by_formula(constants, divergence)
    if not (constants.below > 0.0 and constants.above > 0.0):
        return Risk(formula, True)
    if risk_formula_is_exact(family):
        return Risk(formula, risk_formula_is_minimax(family, privacy))
    members: WorstMembers | None = getattr(family, "worst_members", None)
    if members is None:
        return Risk(formula, False, attained=False)
    member_risk = _risk_at_worst_members(members, constants, epsilon, divergences.divergence(divergence), mixing)
    if member_risk <= _LOST_IN_ROUNDING:
        return Risk(formula, False, attained=False)
    return Risk(min(member_risk, formula), False)


def largest_risk_over_all_densities(privacy: Privacy, divergence: str | FDivergence) -> Risk:
    """M_f, the worst case over all densities of every pure epsilon-LDP sampler (a delta may lower it), and of every box."""
    largest = divergences.divergence(divergence).maximum
    return Risk(largest, tight=isinstance(privacy, Pure), attained=math.isinf(largest))


def worst_case_on_atoms(box: Constants, least_mass: float, divergence: str | FDivergence) -> Risk:
    """The exact worst case of the projection onto a box over all distributions on finitely many atoms: t f(1/t) + (1 - t) f(0).

    Args:
        box: b and B of the box around the atoms' reference.
        least_mass: the reference mass of the rarest atom.
        divergence: a name such as "kl" or "tv", or an `FDivergence`.

    The worst client is a point mass, because the divergence is convex in P. Its divergence falls with the probability t of its own point,
    which is min(B mu, 1 - b (1 - mu)) for a point of mass mu. So the rarest point is the worst (`discreet.design._floors`, T2).
    """
    hit, miss = (
        min(box.B * least_mass, 1.0 - box.b * (1.0 - least_mass)),
        max(1.0 - box.B * least_mass, box.b * (1.0 - least_mass)),
    )
    return Risk(point_mass_risk(divergences.divergence(divergence), hit, miss), False)


def point_mass_risk(f: FDivergence, hit: float, miss: float) -> float:
    """t f(1/t) + (1 - t) f(0), the divergence of a point mass whose outcome is released with probability t = `hit`.

    `miss` is 1 - t. It is a parameter of its own, because 1 - `hit` would lose the digits of a small value.
    """
    return f.chord_at_one(1.0, miss / hit) if hit >= _TINY else f.maximum


def _risk_at_worst_members(
    members: WorstMembers, constants: Constants, epsilon: float, f: FDivergence, mixing: Affine | None
) -> float:
    """The largest divergence of a worst member from its output."""
    scale = 1.0
    for _ in range(_ROUNDS):
        # where p is clipped, and where p = q, at which f may have a kink
        bounds = (constants.b, min(constants.B, 1.0 / _TINY))
        log_levels = [math.log(max(bound * factor, _TINY)) for bound in bounds for factor in (scale, 1.0)]
        reference, laws = members(log_levels if mixing is None else [*log_levels, 0.0])  # mixed, p = q where p = h
        box = Box.around(reference, reference.size, constants, epsilon)
        if mixing is not None:
            return float(np.max(f(laws, box.mix(laws, mixing))))
        last_scale, scale = scale, float(box.scale(laws[0]))
        if len(laws) > 1 or not scale > 0.0 or abs(scale - last_scale) <= _SETTLED * scale:
            break
    return float(np.max(f(laws, box.project(laws))))


def epsilon_for(family: Family, *, divergence: str | FDivergence, risk: float, delta: float = 0.0) -> float:
    """The smallest epsilon at which the worst case of the optimal sampler is at most `risk`; with a delta, that of (epsilon, delta)-LDP.

    Where the risk is tight, no other sampler needs less. It is 0.0 if a draw of the reference is good enough, or if delta suffices alone. For
    a band that serves everybody it is the epsilon of the simplex. At a risk of 0, delta does not help: raw draws need an epsilon that allows
    them.

    Args:
        family: the family of client distributions.
        divergence: a name such as "kl" or "tv", or an `FDivergence`.
        risk: the largest acceptable divergence, at least 0.
        delta: that of (epsilon, delta)-LDP, in [0, 1); 0 for pure epsilon.

    Returns:
        The budget, as a float at which the risk is met.

    Raises:
        ImpossibleError: if no epsilon reaches the risk, or with a delta only one of 64 or more, which is not decided.
        DiscreetError: for an argument that is not a family, or a risk or delta out of range.
    """
    delta = read_budget_in_range(DELTA, "delta", delta, DELTA_FIX)
    family, pure_epsilon, lower, upper = _family_epsilon_and_box_reaching_risk(family, divergence, risk)
    if pure_epsilon == 0.0 or delta == 0.0 or NON_NEGATIVE.check("risk", risk) == 0.0:
        return pure_epsilon
    if upper - delta <= lower * (1.0 + _LOST_IN_ROUNDING):
        return 0.0
    budget = math.log((upper - delta) / lower) if lower else math.inf
    if budget >= LARGEST_EXPONENT:
        raise ImpossibleError(
            f"risk = {risk:g} needs an epsilon of {LARGEST_EXPONENT:g} or more, which is not decided for (epsilon, delta)-LDP; take "
            "a larger risk, or delta = 0"
        )
    return _raise_budget_until_risk_met(lambda x: Approximate(x, delta=delta), budget, family, divergence, risk)


def nu_for(family: Family, *, divergence: str | FDivergence, risk: float) -> float:
    """The smallest nu of Gaussian LDP at which the worst case of the optimal sampler is at most `risk`.

    Args:
        family: the family of client distributions.
        divergence: a name such as "kl" or "tv", or an `FDivergence`.
        risk: the largest acceptable divergence, at least 0.

    Returns:
        The budget, as a float at which the risk is met; 0.0 if a draw of the reference is good enough.

    Raises:
        ImpossibleError: if no nu reaches the risk, or only one with outcomes rarer than 1e-60, which is not decided.
        DiscreetError: for an argument that is not a family, or a risk out of range.
    """
    family, pure_epsilon, lower, upper = _family_epsilon_and_box_reaching_risk(family, divergence, risk)
    if pure_epsilon == 0.0:
        return 0.0
    if lower < LEAST_PROBABILITY:
        raise ImpossibleError(
            f"risk = {risk:g} needs outcomes rarer than {float(LEAST_PROBABILITY):g}, for which nu-Gaussian privacy is not decided; "
            "take a larger risk"
        )
    normal, alpha = NormalDist(), family.bounds.alpha
    # 1 - m B, which B alone would lose in rounding
    outside_mass = lower * (1.0 - alpha) / alpha if alpha <= 0.5 else 1.0 - upper
    return _raise_budget_until_risk_met(
        Gaussian, -normal.inv_cdf(outside_mass) - normal.inv_cdf(lower), family, divergence, risk
    )


def _family_epsilon_and_box_reaching_risk(
    family: Family, divergence: str | FDivergence, risk: float
) -> tuple[Family, float, float, float]:
    """The family, the pure epsilon whose box has that risk, and m b and m B of the box. Every notion's box is that of some pure epsilon."""
    family = family_or_simplex_if_any_client(family)
    refuse_non_family(family)
    bounds = family.bounds
    identity_at = math.log(bounds.upper / bounds.lower) if bounds.lower else math.inf
    pure_epsilon = _epsilon_reaching_risk(constants_of_optimal_box, family, divergence, risk, identity_at)
    if pure_epsilon == 0.0:
        return family, pure_epsilon, 0.0, 0.0
    box, mass = constants_of_optimal_box(bounds, pure_epsilon), min(bounds.alpha, 1.0 - bounds.alpha)
    return family, pure_epsilon, mass * box.b, min(mass * box.B, mass * bounds.upper)


def _raise_budget_until_risk_met(
    notion: Callable[[float], Privacy], budget: float, family: Family, divergence: str | FDivergence, risk: float
) -> float:
    """The budget, increased by as many units in the last place as it takes to meet the risk."""

    def risk_at_budget(x: float) -> float:
        privacy = notion(x)
        constants = constants_of_box_for_privacy(privacy, family.bounds)
        return float(worst_case_over_family(family, constants, epsilon_of_box(constants), divergence, privacy))

    step = math.ulp(budget)
    while risk_at_budget(budget) > risk:
        budget, step = budget + step, 2.0 * step
    return budget


def mollifier_epsilon_reaching_risk(family: Family, *, divergence: str | FDivergence, risk: float) -> float:
    """The smallest epsilon at which Husain's mollifier around the reference guarantees `risk`, for comparison with `epsilon_for`.

    Its worst case falls with epsilon too, and is 0 once the whole band lies in the ball: e^(-eps/2) <= c1, c2 <= e^(eps/2).
    """
    family = family_or_simplex_if_any_client(family)
    refuse_non_family(family)
    bounds = family.bounds
    identity_at = 2.0 * max(math.log(bounds.upper), -math.log(bounds.lower)) if bounds.lower else math.inf
    return _epsilon_reaching_risk(mollifier_constants, family, divergence, risk, identity_at)


def _epsilon_reaching_risk(
    constants: Callable[[Bounds, float], Constants],
    family: Family,
    divergence: str | FDivergence,
    risk: float,
    identity_at: float,
) -> float:
    """The smallest epsilon with a worst case of at most `risk` for boxes whose worst case falls with epsilon, to 0 at `identity_at`."""
    target = NON_NEGATIVE.check("risk", risk, "a divergence is at least 0")
    f, bounds = divergences.divergence(divergence), family.bounds

    def risk_at_epsilon(epsilon: float) -> float:
        return float(worst_case_over_family(family, constants(bounds, epsilon), epsilon, f, Pure(epsilon)))

    if risk_at_epsilon(_TINY) <= target:
        return 0.0
    if isinstance(family, ContinuousFamily) and family.any_client:
        raise ImpossibleError(
            f"no epsilon reaches {f.name} = {target:g} for everybody: over all densities every epsilon-LDP sampler has the "
            f"largest possible risk, {f.maximum:g}; choose a family that contains the clients, such as a DensityBand without any_client=True"
        )
    if bounds.lower == 0.0 and math.isinf(f.at_zero) and math.isinf(risk_at_epsilon(1.0)):
        raise ImpossibleError(
            f"no epsilon reaches {f.name} = {target:g}: every epsilon-LDP sampler has infinite risk, because f(0) is infinite "
            "and the family contains laws with disjoint supports. Use a bounded divergence such as 'tv', or a Band with lower > 0"
        )
    if math.isfinite(identity_at):
        return _smallest_float_meeting_risk(risk_at_epsilon, target, identity_at)
    if target == 0.0:
        raise ImpossibleError(
            f"no epsilon reaches {f.name} = 0 on a family with lower = 0; ask for a positive risk, or use a Band with lower > 0"
        )
    high = 1.0
    while risk_at_epsilon(high) > target:
        high *= 2.0
    return _smallest_float_meeting_risk(risk_at_epsilon, target, high)


def _smallest_float_meeting_risk(risk_at: Callable[[float], float], target: float, high: float) -> float:
    """The smallest float up to `high` with risk_at(x) <= target, for a non-increasing function with risk_at(high) <= target."""
    from scipy.optimize import brentq  # here, because importing it costs more than most commands do

    if risk_at(high) < target:
        high = float(brentq(lambda x: risk_at(x) - target, _TINY, high, xtol=1e-300, rtol=1e-15))
    step = math.ulp(high)
    while risk_at(high) > target:  # the root finder may stop a few units short
        high, step = high + step, 2.0 * step
    return high
