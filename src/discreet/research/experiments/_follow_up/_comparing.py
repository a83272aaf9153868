"""One class of clients under one notion: minimax values by both calibrations, and both mechanisms on the same clients."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.divergences import divergence
from discreet.errors import LargeEpsilonWarning
from discreet.mechanisms import LinearSampler, OptimalSampler
from discreet.privacy import Privacy
from discreet.research.experiments._follow_up._notions import (
    FOLLOW_UP_DIVERGENCES,
    ClassAtBudget,
    Pointwise,
    published_weight,
)

Floats = NDArray[np.float64]
CostFunction = Callable[[Any], dict[str, Floats]]  # of a sampler: the divergences of all clients, by name


def compare_class(family: Any, privacy: Privacy, clients: int, costs: CostFunction) -> ClassAtBudget:
    """The class under the notion; `costs` says what a sampler costs each client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)  # nothing is released
        ours, theirs = (kind(family, privacy=privacy) for kind in (OptimalSampler, LinearSampler))
    projected, mixed = costs(ours), costs(theirs)
    their_weight, bounds = published_weight(privacy, family.bounds), family.bounds
    return ClassAtBudget(
        lower=bounds.lower,
        upper=bounds.upper,
        weight=float(privacy.mixing(bounds)),
        published_weight=their_weight,
        tight=ours.risk("kl").tight,
        minimax={f: float(ours.risk(f)) for f in FOLLOW_UP_DIVERGENCES if np.isfinite(float(ours.risk(f)))},
        published_minimax=_by_formula(bounds.lower, bounds.upper, their_weight),
        clients=clients,
        pointwise={f: Pointwise.of(projected[f], mixed[f]) for f in projected},
    )


def _by_formula(lower: float, upper: float, weight: float) -> dict[str, float]:
    """The published closed form: (1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1); none where the weight is past 1."""
    if weight >= 1.0:
        return {}
    low, high = 1.0 - weight * (1.0 - lower), 1.0 + weight * (upper - 1.0)
    held = np.array([upper, lower]) * (share := np.array([1.0 - lower, upper - 1.0]) / (upper - lower))
    sent = np.array([high, low]) * share
    found = {f: float(np.sum(divergence(f)(held, sent))) for f in FOLLOW_UP_DIVERGENCES}
    return {f: value for f, value in found.items() if np.isfinite(value)}


def by_divergence(laws: Sequence[Any], output: Callable[[Any], Any]) -> dict[str, Floats]:
    """The divergences of continuous clients to their output laws, one law at a time."""
    found = [[float(law.divergence(f)) for f in FOLLOW_UP_DIVERGENCES] for law in map(output, laws)]
    return {f: np.array(column) for f, column in zip(FOLLOW_UP_DIVERGENCES, np.transpose(found), strict=True)}
