"""Tables that rank: intervals hold for the outcomes that come first, and lower ends never add up to more than 1."""

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.estimation import Population, ReportedPopulation, liars, population, reported_population
from discreet.families import Bounds
from discreet.mechanisms import ReportCounts
from tests.soaking import wide

LABELS = 10_000
LAW = 1.0 / np.arange(1.0, LABELS + 1.0) ** 1.1
LAW /= LAW.sum()


def release(kind: str, epsilon: float, clients: int, rng: np.random.Generator) -> Population | ReportedPopulation:
    """An estimate from clients of whom each holds one of 10,000 labels."""
    if kind == "reports":
        sampler = dc.ReportSampler(dc.Simplex(LABELS), epsilon=epsilon)
        return reported_population(sampler, reports=sampler.release_records(rng.choice(LABELS, size=clients, p=LAW)))
    linear = dc.LinearSampler(dc.Simplex(LABELS), epsilon=epsilon)
    q = np.asarray(linear.output(LAW))
    return population(linear, counts=rng.multinomial(clients, q / q.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reports", "linear"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_the_twenty_that_rank_first_all_intervals_hold(kind: str, epsilon: float) -> None:
    rng, tries, held = np.random.default_rng(5), wide(200, 20), 0
    for _ in range(tries):
        law = release(kind, epsilon, 20_000, rng).law
        first = np.argsort(-law.estimate)[:20]
        held += bool(((law.all_low <= LAW) & (law.all_high >= LAW))[first].all())
        assert law.all_low.sum() <= 1.0 + 1e-9
    assert held >= 0.94 * tries - 1


def impossible(kind: str) -> Population | ReportedPopulation:
    """An estimate from two labels that were sent raw by half of the clients each, which no release gives."""
    if kind == "reports":
        blocks = dc.ReportSampler(dc.Simplex(LABELS), epsilon=4.0)
        rng = np.random.default_rng(6)
        drawn = blocks.release_records(rng.integers(0, 20, 200_000))
        both = drawn[
            blocks.holds(drawn, np.zeros(200_000, dtype=int)) & blocks.holds(drawn, np.ones(200_000, dtype=int))
        ]
        return reported_population(blocks, counts=ReportCounts(blocks).add(np.resize(both, 4000)))
    samplers: dict[str, Any] = {"linear": dc.LinearSampler, "optimal": dc.OptimalSampler}
    return population(samplers[kind](dc.Simplex(LABELS), epsilon=4.0), counts=[2000, 2000] + [0] * (LABELS - 2))


@pytest.mark.parametrize("kind", ["reports", "linear", "optimal"])
@pytest.mark.parametrize("number", [0, 1, 100])
def test_lower_ends_never_add_up_to_more_than_one(kind: str, number: int) -> None:
    found = impossible(kind)
    assert found.law.all_low.sum() <= 1.0 + 1e-9
    assert found.law.all_low.sum() >= 0.8  # lowered no further than needed
    assert found.law.all_low[0] == pytest.approx(found.law.all_low[1])  # and alike
    assert (found.law.all_low <= found.law.all_high).all()
    despite = liars(found, number).law
    assert (despite.all_low <= found.law.all_low).all()
    assert despite.all_low.sum() <= 1.0 + 1e-9


def test_they_stay_above_what_the_family_says_anyway() -> None:
    band = dc.Band(np.ones(4), lower=0.5, upper=2.0)
    found = population(dc.LinearSampler(band, epsilon=1.0), counts=[50_000, 50_000, 0, 0])
    assert found.bounds == Bounds(0.5, 2.0)
    assert found.law.all_low.min() >= 0.125 - 1e-12
    assert found.law.all_low.sum() <= 1.0 + 1e-9
