"""The smallest worst case of J samples of each client under one budget, between a sampler that attains one side and a certified other.

From above: `JointSampler` around the envelope or the product, whichever has the smaller worst case. From below: a class is no easier than
some of its members, so a design for the J-fold laws of a grid of clients, whose certificate bounds every epsilon-LDP mechanism on multisets
(`discreet.design._worst`, T6). Nothing is lost by looking at multisets (`discreet.mechanisms._several._multisets`). One sample of the J is
a function of all of them, so their smallest worst case is also at least that of one sample (data processing).
"""

from __future__ import annotations

import math

import numpy as np

from discreet.design._designed import design
from discreet.design._examples import Floats
from discreet.divergences import FDivergence, RenyiDivergence
from discreet.errors import DiscreetError
from discreet.families import Band, FiniteFamily, Simplex
from discreet.mechanisms import JointSampler, Multisets, nearest_member
from discreet.privacy import Privacy, Pure
from discreet.tradeoff import Family, Risk

LARGEST_JOINT = 256  # multisets up to which the programme is solved
_CLIENTS = (100, 256)  # most of a grid's; of two grids either may have the sharper certificate
_ENTRIES = 50_000  # of the clients' laws on multisets
_FINEST = 32  # parts that each outcome's share is a multiple of
_LARGEST_EPSILON = 12.0  # past which what is left to bracket is less than 1e-4
_JOINT_LOST = 1e-9  # what the rounding of the clients' laws can have added


def joint_risk(family: Family, notion: Privacy, f: FDivergence, samples: int, one: Risk, *, bracket: bool) -> Risk:
    """The smallest worst case that is known for so many samples of each client; `one`: that of one sample.

    Args:
        family: who the clients may be, not a band that serves everybody.
        notion: the budget of all samples together.
        f: the divergence.
        samples: how many samples of each client, at least 2.
        one: `minimax_risk` of one sample.
        bracket: whether to look for a lower bound by a programme as well.

    Returns:
        A `Risk` that is tight only where raw draws are private; its bracket starts at least at the smallest worst case of one sample.

    Raises:
        DiscreetError: for a family that is not finite, a notion other than pure epsilon, or more samples than can be drawn jointly.
    """
    if not isinstance(family, (Simplex, Band)):
        raise DiscreetError(
            f"samples = {samples}: several samples are bracketed on finitely many outcomes, not for {family!r}"
        )
    own = [
        JointSampler(family, samples=samples, privacy=notion, around=name).risk(f) for name in ("envelope", "product")
    ]
    best = min(own, key=lambda risk: risk.value)
    if best.tight:
        return best
    least = one.bracket[0]
    if bracket:
        if isinstance(f, RenyiDivergence):
            raise DiscreetError(
                f"divergence = {f.name} is a function of {f.alpha.name}; ask for the bracket of that one"
            )
        assert isinstance(notion, Pure)  # a joint sampler was made for it
        least = max(least, _lower_side(family, notion.epsilon, f, samples))
    return Risk(best.value, False, best.attained, min(least, best.value))


def _lower_side(family: FiniteFamily, epsilon: float, f: FDivergence, samples: int) -> float:
    if math.isinf(f.at_zero) and family.bounds.lower == 0.0:
        return math.inf  # two clients with no outcome in common
    if Multisets.count(family.size, samples) > LARGEST_JOINT or epsilon > _LARGEST_EPSILON:
        return 0.0
    multisets = Multisets(family.size, samples)
    bounds = [0.0]
    for parts in {_finest_parts(family.size, min(most, _ENTRIES // len(multisets))) for most in _CLIENTS}:
        laws = np.unique(multisets.laws(_grid_of_clients(family, parts)), axis=0)
        found = design(Simplex(len(multisets)), epsilon=epsilon, clients=laws, divergence=f, over="worst")
        bounds.append(found.bound * (1.0 - _JOINT_LOST) - _JOINT_LOST)
    return max(bounds)


def _finest_parts(size: int, most: int) -> int:
    """Into how many parts shares can be divided so that there are at most so many clients."""
    return max(n for n in range(1, _FINEST + 1) if n == 1 or Multisets.count(size, n) <= most)


def _grid_of_clients(family: FiniteFamily, parts: int) -> Floats:
    """Members whose shares are multiples of one part, or the nearest members to those."""
    size = family.size
    every = Multisets(size, parts).members
    laws = np.stack([np.bincount(row, minlength=size) for row in every]) / parts
    return laws if isinstance(family, Simplex) else nearest_member(family, laws)
