"""Orbits are those of the reflections and exchanges of axes that a set has, and no others."""

import numpy as np
import pytest

from discreet.mechanisms._transport_floor import orbit_numbers
from tests.mechanisms.transport.programmes import grid


@pytest.mark.parametrize(
    ("sides", "orbits"), [((4, 4), 3), ((5, 5), 6), ((3, 4), 4), ((2, 2, 2), 1), ((2, 3, 4), 4)], ids=str
)
def test_grids(sides: tuple[int, ...], orbits: int) -> None:
    found = orbit_numbers(grid(*sides) * 0.1 + 1e5)
    assert len(np.unique(found)) == orbits
    assert set(found) == set(range(orbits))


def test_points_of_no_symmetry_stand_alone() -> None:
    points = np.random.default_rng(0).random((30, 2))
    assert len(np.unique(orbit_numbers(points))) == 30
    assert len(np.unique(orbit_numbers(np.vstack([points, 1.0 - points])))) == 30  # turned by half a circle
    nearly = grid(4, 4)
    nearly[5] += 1e-6
    assert len(np.unique(orbit_numbers(nearly))) > 3
    assert len(np.unique(orbit_numbers(np.eye(6)))) == 6  # too many axes to try


def test_members_of_an_orbit_are_as_far_from_the_others() -> None:
    points = np.vstack([grid(3, 3) - 1.0, [[2.0, 1.0], [-2.0, 1.0]]])
    found = orbit_numbers(points)
    for norm in (1, 2, np.inf):
        lengths = np.sort(np.linalg.norm(points[:, None] - points, ord=norm, axis=2), axis=1)
        for orbit in np.unique(found):
            assert np.ptp(lengths[found == orbit], axis=0).max() < 1e-12
    assert len(np.unique(found)) == 7
