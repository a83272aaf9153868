"""Flows along few ways: as near as the programme of all transports, with a bound that holds, on grids and anywhere else."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.mechanisms._transport_sampler import nearest_law_between_bounds, transport_distance
from tests.mechanisms.transport.programmes import cheapest_transport, grid

Floats = NDArray[np.float64]


def spaces(rng: np.random.Generator) -> list[Floats]:
    """Distances: of two grids, of points in the plane and in space, of shortest ways between towns, all alike, far and near together."""
    size = int(rng.integers(2, 15))
    plane, clusters = rng.random((size, 2)), rng.random((size, 1)) * 10.0 ** rng.integers(-6, 4, (size, 1))
    towns = np.minimum(*(lambda lengths: (lengths, lengths.T))(rng.uniform(0.1, 1.0, (size, size))))
    np.fill_diagonal(towns, 0.0)
    for through in range(size):
        towns = np.minimum(towns, towns[:, [through]] + towns[through])
    found = [
        np.linalg.norm(points[:, None] - points, ord=norm, axis=2)
        for points in (grid(3, 4), grid(2, 2, 3), plane, np.hstack([clusters, plane]))
        for norm in (1, 2, math.inf)
    ]
    return [*found, towns, 1.0 - np.eye(size)]


@pytest.mark.parametrize("seed", range(6))
def test_as_near_as_by_the_programme_of_all_transports(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for distances in spaces(rng):
        size, ratio = len(distances), math.exp(float(rng.choice([0.2, 1.0, 4.0])))
        floor = rng.dirichlet(np.full(size, 0.5)) * rng.uniform(1 / ratio, 1.0)
        law = rng.dirichlet(np.full(size, float(rng.choice([0.05, 0.5, 5.0]))))
        found = nearest_law_between_bounds(law, distances, floor, ratio * floor)
        best, largest = cheapest_transport(law, distances, floor, ratio * floor), distances.max()
        assert found.distance == pytest.approx(best, abs=1e-8 * largest)
        assert found.bound <= found.distance <= found.bound + 1e-9 * largest
        assert found.law.sum() == pytest.approx(1.0, abs=1e-9)
        assert ((floor <= found.law) & (found.law <= ratio * floor)).all()
        assert transport_distance(law, found.law, distances) == pytest.approx(found.distance, abs=1e-8 * largest)


def test_distances_between_laws() -> None:
    points = grid(4, 5)
    streets = np.abs(points[:, None] - points).sum(axis=2)
    one, other = np.eye(20)[0], np.eye(20)[19]
    assert transport_distance(one, other, streets) == pytest.approx(7.0)
    assert transport_distance(one, one, streets) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.full(20, 0.3), 2)
    assert transport_distance(first, second, streets) == pytest.approx(
        cheapest_transport(first, streets, second, second), abs=1e-8
    )
