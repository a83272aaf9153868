"""Hostile counts, samples, statistics and plans on the curator's side."""

import math
from typing import Any

import numpy as np

import discreet as dc
from discreet import estimation
from discreet.estimation import rehearse_collections
from discreet.estimation._sample_tables import sample_weight_by_outcome, synthetic_row_counts
from tests.fuzz.chooser import NUMBERS, Chooser

STATISTICS: list[Any] = [
    "mean", "variance", "median", "quantile:0.9", "quantile:nan", "quantile:1e-300", "quantile:0.99999999999999", "at-most:1",
    "at-most:nan", "at-most:inf", "at-most:", "mean:1", "", "x", None, 3, lambda x: 1.0, lambda x: None, lambda x: math.nan,
    lambda x: 1e100, lambda x: "1", lambda x: 10**400,
]  # fmt: skip


def hostile_confidence(c: Chooser) -> Any:
    return c.among([0.95, 0.95, 0.5, 1e-12, 0.999999, 1.0 - 2.0**-53, c.number()])


def counts_of_outcomes(c: Chooser, size: int) -> Any:
    kind = c.below(6)
    if kind == 0:
        return c.law(size)
    if kind == 1:
        return [c.among([0, 1, 10**14, 2**62, 2**63, -1, 1.5, None, c.number()]) for _ in range(size)]
    return [c.below(256) ** (1 + c.below(3)) for _ in range(size)]


def _edges(c: Chooser, size: int) -> Any:
    kind = c.below(6)
    if kind == 0:
        return [c.number() for _ in range(c.below(5))]
    return np.linspace(-1.0, 2.0, size + 1) * c.among([1.0, 1e-310, 1e99, 1e300]) if kind == 1 else None


def _examples(c: Chooser, size: int) -> Any:
    kind = c.below(6)
    if kind == 0:
        return c.law(min(size, 100))
    return np.eye(min(size, 8)) if kind == 1 else None


def populations(c: Chooser) -> Any:
    """Everything that is told of a population."""
    sampler = c.sampler()
    size = sampler.family.size
    labels = [c.among([0, 1, "label 0", None, math.nan, 0.5]) for _ in range(c.below(5))]
    given = {"samples": labels} if c.below(4) == 0 else {"counts": counts_of_outcomes(c, min(size, 100))}
    found = estimation.population(
        sampler, **given, edges=_edges(c, min(size, 100)), confidence=hostile_confidence(c), examples=_examples(c, size)
    )
    assert all(doubt.strip() for doubt in found.doubts)
    assert (found.law.low <= found.law.high).all()
    assert (found.law.all_low <= found.law.all_high).all()
    assert abs(found.nearest.sum() - 1.0) <= 1e-9
    lies = estimation.liars(found, c.among([0, 1, 1, found.clients, c.number()]))
    assert (lies.law.all_low <= found.law.all_low).all()
    assert (lies.law.high >= found.law.high).all()
    rows = 1 + c.below(200)
    assert int(synthetic_row_counts(found, rows).sum()) == rows
    wanted = found.statistic(c.among(STATISTICS))
    assert wanted.low <= wanted.high
    parts = (
        estimation.estimate_groups(sampler, counts={"a": found.counts, "b": found.counts})
        if found.finest is None
        else None
    )
    changes = estimation.change(
        found, found if parts is None else parts.groups["b"], confidence=hostile_confidence(c)
    ).law
    assert (changes.low <= changes.high).all()
    assert (changes.all_low <= changes.low + 1e-12).all()
    assert ((changes.low <= 0.0) & (changes.high >= 0.0)).all()
    return [found.law, found.released_shares, found.nearest, sample_weight_by_outcome(found), wanted, lies.law, changes]


def plans(c: Chooser) -> Any:
    """Promises, their inverses, and what they rest on."""
    what = c.below(9)
    if what == 0:
        bounds = [c.among([0.0, 0.1, 1.0, c.number(), c.law(4)]) for _ in range(2)]
        return estimation.nearest_law(c.among([c.law(4), [c.number() for _ in range(4)]]), *bounds)
    if what == 1:
        return dc.Labels([c.among([*NUMBERS, "1", "-2.5", "1e5"]) for _ in range(c.below(4))]).values
    sampler = c.among([c.sampler, lambda: None])() if c.below(16) == 0 else c.sampler()
    clients = c.among([1, 1000, 10**15, c.number()])
    accuracy = c.among([0.05, 0.05, 0.5, 1e-9, c.number()])
    if what == 2:
        return estimation.outlook(sampler, mechanism="any", clients=clients, confidence=hostile_confidence(c))
    if what == 3:
        return estimation.clients_for(sampler, accuracy=accuracy, confidence=hostile_confidence(c))
    if what == 4:
        return estimation.epsilon_for_accuracy(
            type(sampler), c.family(), clients=clients, accuracy=accuracy, confidence=hostile_confidence(c)
        )
    if what == 8:
        return estimation.variance_excess(sampler)  # type: ignore[arg-type]
    lines = estimation.inversion_of(sampler)
    law = c.law(min(sampler.family.size, 100))
    if what == 6 and np.all(sampler.family.contains(law)):
        p, mu = np.asarray(law, dtype=np.float64), np.broadcast_to(sampler.reference, sampler.family.size)
        q = np.asarray(sampler.output(p))
        room = 1e-6 * max(1.0, abs(lines.low.released), abs(lines.high.released))  # what rounding of q is worth
        assert (lines.least(mu, q) <= p + room).all(), "a member lies above the lower line"
        assert (lines.most(mu, q) >= p - room).all(), "a member lies below the upper line"
    if what == 5:
        return estimation.exact_variance(sampler, law, c.among([law, [0.0, 1.0], c.number()]))  # type: ignore[arg-type]
    return rehearse_collections(sampler, law, clients=clients, repetitions=2, seed=c.among([0, c.number()]))
