"""From examples to clients: with the stated confidence, both sides of the bound of docs/explanation/new.md hold for the population."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import discreet as dc
from tests.soaking import wide

OUTCOMES, EPSILON, KEEP, EXAMPLES, CONFIDENCE = 4, 1.5, 0.6, 60, 0.9


def clients(number: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two kinds of clients, which no symmetry makes alike."""
    kinds = np.array([[4.0, 1.0, 0.3, 0.3], [0.3, 0.3, 2.0, 1.0]])
    return np.array([rng.dirichlet(kinds[kind]) for kind in rng.integers(2, size=number)])


def deviation(number: int) -> float:
    """R sqrt(log(1/delta)/(2 n)), with R the worst case over everybody of every sampler that keeps so much."""
    kept = KEEP * math.exp(EPSILON) / (math.exp(EPSILON) + OUTCOMES - 1)
    return -math.log(kept) * math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * number))


@pytest.mark.slow
def test_a_design_does_as_well_on_clients_as_the_bound_says() -> None:
    """Lower: the certified bound of the examples less a deviation. Upper: the mean of held-out examples plus one."""
    rng, kl = np.random.default_rng(5), dc.divergence("kl")
    population = clients(20_000, rng)
    best = dc.design(dc.Simplex(OUTCOMES), epsilon=EPSILON, clients=population[:4_000], keep=KEEP).sampler
    smallest = float(
        np.mean(kl(population, best.output(population)))
    )  # no sampler that keeps so much has a smaller mean, nearly
    below, above, gaps = [], [], []
    for _ in range(wide(200, 12)):
        found = dc.design(dc.Simplex(OUTCOMES), epsilon=EPSILON, clients=clients(EXAMPLES, rng), keep=KEEP)
        held_out = clients(EXAMPLES, rng)
        truth = float(np.mean(kl(population, found.sampler.output(population))))
        upper = float(np.mean(kl(held_out, found.sampler.output(held_out)))) + deviation(EXAMPLES)
        below.append(found.bound - deviation(EXAMPLES) <= smallest)
        above.append(truth <= upper)
        gaps.append(truth - found.bound)
    assert np.mean(below) >= CONFIDENCE
    assert np.mean(above) >= CONFIDENCE
    assert (
        np.mean(gaps) > 0
    )  # examples flatter their own design: without a held-out part the mean would be taken for better than it is


@pytest.mark.slow
def test_every_client_of_every_sampler_that_keeps_so_much_is_within_the_range() -> None:
    """R bounds each term of the mean, which both inequalities need."""
    rng, kl = np.random.default_rng(6), dc.divergence("kl")
    limit = -math.log(KEEP * math.exp(EPSILON) / (math.exp(EPSILON) + OUTCOMES - 1))
    for _ in range(wide(50, 5)):
        found = dc.design(dc.Simplex(OUTCOMES), epsilon=EPSILON, clients=clients(20, rng), keep=KEEP)
        everybody = np.vstack([np.eye(OUTCOMES), rng.dirichlet(np.full(OUTCOMES, 0.2), size=200)])
        assert float(np.max(kl(everybody, found.sampler.output(everybody)))) <= limit * (1 + 1e-9)
        assert float(found.worst("kl")) <= limit * (1 + 1e-9)
