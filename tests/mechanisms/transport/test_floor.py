"""What is certified holds whatever the multipliers are, and whether or not the orbits are those of a symmetry."""

import math

import numpy as np
import pytest

from discreet.mechanisms import _transport_floor as floor
from discreet.mechanisms._transport_floor import make_metric_space
from tests.mechanisms.transport.programmes import grid, over_all_mechanisms


@pytest.mark.parametrize("seed", range(20))
def test_no_shares_certify_more_than_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(2, 8)), float(rng.choice([0.2, 1.0, 4.0]))
    points = rng.random((size, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    optimum, rows = over_all_mechanisms(distances, epsilon), int(rng.integers(1, 20))
    for _ in range(50):
        found = floor._lower_bound_for_every_floor(
            rng.dirichlet(np.full(rows, 0.3)),
            rng.integers(0, size, rows),
            rng.choice(distances.ravel(), rows),
            np.sort(np.unique(rng.integers(0, size, size), return_inverse=True)[1]),
            distances,
            math.exp(epsilon),
        )
        assert found <= optimum * (1 + 1e-9)


def test_orbits_change_nothing_but_the_work() -> None:
    """The same floor value with and without the symmetry of a grid."""
    space = make_metric_space(grid(4, 5), None, 1)
    alone = type(space)(space.distances, space.order, None, np.arange(space.size))
    for ratio in (1.2, math.e, 30.0):
        one, other = floor.best_transport_floor(space, ratio), floor.best_transport_floor(alone, ratio)
        assert one.value == pytest.approx(other.value, rel=2e-6)
        assert one.bound <= other.value * (1 + 1e-9)
        assert other.bound <= one.value * (1 + 1e-9)
