"""What nodes tell of clients: whether they are outside the band, and how much of the mass they say they have was missed.

It finds outsiders; it cannot establish membership, since a function is known where it was looked at alone. No guarantee rests on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import OutsideFamilyError, OutsideFamilyWarning, UnresolvedWarning, warn_caller
from discreet.families.band import Bounds
from discreet.families.clipping import ClippedLaw
from discreet.families.continuous import ContinuousFamily
from discreet.families.densities import LogDensity
from discreet.families.features import features_of
from discreet.families.kernels import masses_between
from discreet.mechanisms.continuous.clients import LEAST_MASS, mixtures_of_one_kernel
from discreet.mechanisms.continuous.output_law import OutputLaw

Floats = NDArray[np.float64]

_LEAST_SLACK = 1e-6  # of a mass that is known: rounding
_MISSED = {1: 1e-7, 2: 1e-5, 3: 1e-3}  # share of a known mass that nodes may miss without a word
_MISSED_BY_POINTS = 0.05
_MISSED_AT_MOST = 1e-2  # whatever the estimated error
_MOST_PLACES = 4096


@dataclass(frozen=True, eq=False)
class Seen:
    """What the nodes saw of some clients: log of their mass, of the smallest and of the largest p/h (n,).

    `slack` says how far a member's mass may be from that, relatively: one number, or one for each client.
    """

    log_mass: Floats
    log_smallest: Floats
    log_largest: Floats
    slack: float | Floats


def known_masses(family: ContinuousFamily, clients: Sequence[LogDensity]) -> Floats:
    """(n,) the mass that each client says it has in the family's space; NaN for one that does not know."""
    mixtures = mixtures_of_one_kernel(clients)
    if mixtures is not None:
        found = masses_between(mixtures, *family.space)
    else:
        said = (p.mass_between(*family.space) if hasattr(p, "mass_between") else None for p in clients)
        found = np.array([np.nan if mass is None else mass for mass in said], dtype=np.float64)
    return np.where(found > LEAST_MASS, found, np.nan)


def missed(family: ContinuousFamily, clients: Sequence[LogDensity], seen: Seen) -> list[int]:
    """The clients of whom nothing was seen, or too little of the mass that they say they have."""
    gap = np.abs(seen.log_mass - np.log(known_masses(family, clients)))
    much = gap > np.minimum(seen.slack, _MISSED_AT_MOST)
    return [int(i) for i in np.flatnonzero(np.isneginf(seen.log_mass) | much)]


def luck(bounds: Bounds, count: int) -> float:
    """How far the average of p/h over so many draws of h is from 1, relatively, for all members but one in 10^9 tries.

    (Bernstein's inequality, for p/h between the bounds with variance at most (upper - 1)(1 - lower).) Infinite where it says nothing.
    """
    log_odds = math.log(2e9)
    variance, width = (bounds.upper - 1.0) * (1.0 - bounds.lower), bounds.upper - bounds.lower
    far = width * log_odds / (3.0 * count)
    off = far + math.sqrt(far * far + 2.0 * variance * log_odds / count)
    return off / (1.0 - off) if off < 1.0 else math.inf


def tell_outside(family: ContinuousFamily, clients: Sequence[LogDensity], seen: Seen, refuse: bool) -> None:
    """Warn about clients that are outside the band, or refuse them where a mechanism is only for members.

    p is divided by its own mass where it knows that, else by what was seen of it. It finds outsiders; it cannot establish
    membership, and no guarantee rests on it.
    """
    bounds = family.bounds
    known = known_masses(family, clients)
    unknown = np.isnan(known)
    log_mass = np.where(unknown, seen.log_mass, np.log(known))
    slack = np.where(unknown, seen.slack, np.minimum(seen.slack, _LEAST_SLACK))
    log_smallest, log_largest = seen.log_smallest.copy(), seen.log_largest.copy()
    for i in {*map(int, np.flatnonzero(unknown)), *missed(family, clients, seen)}:
        found = _log_ratios_at_places(family, clients[i])
        log_smallest[i], log_largest[i] = found.min(initial=log_smallest[i]), found.max(initial=log_largest[i])
    with np.errstate(over="ignore", invalid="ignore"):
        smallest, largest = np.exp(log_smallest - log_mass), np.exp(log_largest - log_mass)
        bad = (largest > bounds.upper * (1.0 + slack)) | (smallest < bounds.lower * (1.0 - slack))
    outside = [i for i in map(int, np.flatnonzero(bad)) if not _is_member(family, clients[i])]
    if not outside:
        return
    first = outside[0]
    what = (
        f"{_who(clients, outside)} is outside {family!r}: p/h runs from {smallest[first]:g} to {largest[first]:g}, the band from "
        f"{bounds.lower:g} to {bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{what}; the law released for it would not be linear in p: release nearest_member(family, p), or use "
            "OptimalSampler, which projects it"
        )
    warn_caller(f"{what}; its release is private all the same, the bound on its utility is lost", OutsideFamilyWarning)


def tell_unresolved(
    family: ContinuousFamily, clients: Sequence[LogDensity], log_mass: Floats, errors: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Errors (n,) with what the nodes missed of the masses that clients say they have, and whose mass is known; warn of much."""
    known = known_masses(family, clients)
    gap = np.abs(np.expm1(log_mass - np.log(known)))
    if family.dim in _MISSED:
        much = np.flatnonzero(gap > np.minimum(_MISSED[family.dim] + 10.0 * errors, _MISSED_AT_MOST))
    else:
        much = np.flatnonzero(gap > _MISSED_BY_POINTS + 10.0 * errors)
    if much.size:
        first = int(much[0])
        warn_caller(
            f"{_who(clients, much)} has a mass of {known[first]:.6g} in the space of {family!r}, of which the nodes saw "
            f"{math.exp(log_mass[first]):.6g}: it is too narrow in places, or lies where the reference has nothing. Divergences and scale "
            "may be off by as much; a release is private all the same",
            UnresolvedWarning,
        )
    return np.fmax(errors, gap), ~np.isnan(known)


def _who(clients: Sequence[LogDensity], some: Sequence[int] | NDArray[np.intp]) -> str:
    """Some of the clients in words: the first, and how many more."""
    return "p" if len(clients) == 1 else f"p[{some[0]}]" + (f" and {len(some) - 1} more" if len(some) > 1 else "")


def _log_ratios_at_places(family: ContinuousFamily, p: LogDensity) -> Floats:
    """log p/h at the places where p says that it is narrow, which nodes may have missed; none for one that does not say."""
    places = features_of([p], family.dim).places[:_MOST_PLACES]
    if not len(places):
        return np.empty(0)
    log_reference = family.log_reference(places)
    inside = np.isfinite(log_reference)
    return np.asarray(p.log_density(places[inside]) - log_reference[inside]) if inside.any() else np.empty(0)


def _is_member(family: ContinuousFamily, p: LogDensity) -> bool:
    """Whether p is in the band by its parameters, or because it was clipped to one inside."""
    match p:
        case OutputLaw():
            bounds, constants = family.bounds, p.constants
            return p.family == family and bounds.lower <= constants.b and bounds.upper >= constants.B
        case ClippedLaw():
            return p.family == family
        case _:
            return family.certainly_contains(p)
