"""The walk along the line finds what the programme of all transports does."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.mechanisms._transport_sampler import nearest_law_on_line
from tests.mechanisms.transport.programmes import cheapest_transport

Floats = NDArray[np.float64]


@pytest.mark.parametrize("seed", range(30))
def test_every_client_is_served_by_the_best_transport(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    k, ratio = int(rng.integers(2, 20)), math.exp(float(rng.choice([0.2, 1.0, 4.0])))
    places = np.cumsum(rng.exponential(size=k))
    floor = rng.dirichlet(np.full(k, 0.5)) * rng.uniform(1 / ratio, 1.0)
    law = rng.dirichlet(np.full(k, float(rng.choice([0.05, 0.5, 5.0]))))
    line = nearest_law_on_line(law, np.diff(places), floor, ratio * floor)
    assert line.sum() == pytest.approx(1.0, abs=1e-9)
    assert (line >= floor - 1e-12).all()
    assert (line <= ratio * floor + 1e-12).all()
    best = cheapest_transport(law, np.abs(places[:, None] - places), floor, ratio * floor)
    assert float(np.abs(np.cumsum(law - line))[:-1] @ np.diff(places)) == pytest.approx(best, abs=1e-7)
