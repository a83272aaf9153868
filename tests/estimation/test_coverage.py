"""Every interval that is reported holds the truth at least 94 % of the time for a nominal 95, however few samples fell where."""

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.estimation._inference._intervals import average_upper_bound
from discreet.mechanisms._sampler import Sampler
from tests.estimation.coverage import LEAST, VALUES, exact_coverage, simulated_coverage, sparse_coverage
from tests.soaking import wide

FAMILY = dc.Simplex(VALUES.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("clients", wide([1, 2, 3, 5, 9], [1, 5]))
@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler])
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_few_clients(kind: type[Sampler[Any]], epsilon: float, clients: int) -> None:
    rates = exact_coverage(kind(FAMILY, epsilon=epsilon), clients)
    assert len(rates) == 14
    assert min(rates.values()) >= LEAST, rates


def test_sparse_cells() -> None:
    """3,000 outcomes and 4,000 clients: nearly all cells are expected to hold a fifth of a sample, or one, or three."""
    covered = sparse_coverage(3000, 4000, 10.0, draws=100, seed=1)
    for some in np.array_split(covered, 30):  # from the likeliest to the rarest
        assert some.mean() >= LEAST
    assert covered.mean() >= 0.95


@pytest.mark.soak
def test_a_hundred_clients() -> None:
    rates = simulated_coverage(dc.LinearSampler(FAMILY, epsilon=6.0), 100, draws=1000, seed=2)
    assert min(rates.values()) >= LEAST, rates


def test_the_bound_of_an_average_is_the_quantile_of_randomly_weighted_samples() -> None:
    """Gaffke's bound by a million draws of the weights: never below it, and above by a few percent of its own reach at most."""
    rng = np.random.default_rng(3)
    for counts in ([1, 1, 1], [3, 0, 2], [0, 4, 0], [20, 3, 0], [100, 200, 30]):
        bound = average_upper_bound(VALUES, np.array(counts), 0.95)
        weights = rng.dirichlet([count or 1e-12 for count in np.array(counts) + [0, 0, 1]], 200_000)
        drawn = np.quantile(weights @ VALUES, 0.975)
        mean = np.average(VALUES, weights=np.array(counts) + [0, 0, 1])
        assert -0.01 <= (bound - drawn) / (drawn - mean) <= 0.04


def test_a_value_that_nobody_sent_may_be_there() -> None:
    for clients in (1, 10, 1000):
        counts = np.array([clients, 0, 0])
        assert average_upper_bound(VALUES, counts, 0.95) == pytest.approx(10.0 * (1.0 - 0.025 ** (1 / clients)))
        assert -average_upper_bound(-VALUES, counts, 0.95) == 0.0
    assert average_upper_bound(np.full(3, 2.0), np.array([1, 2, 3]), 0.95) == 2.0
    tiny = average_upper_bound(np.array([0.0, 1.0, 1.0 - 1e-15]), np.array([0, 5, 5]), 0.95)
    assert 1.0 - 1e-15 <= tiny <= 1.0
