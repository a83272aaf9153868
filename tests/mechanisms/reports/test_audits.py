"""The auditor finds nothing in reports, and finds a window that is off by one."""

from functools import partial

import numpy as np
import pytest

from discreet import Simplex
from discreet.mechanisms import ReportSampler
from discreet.release._randomness import _SeededRandomness
from tests.mechanisms.reports.audits import FAULTS, SETTINGS, UNDETECTED, audit_sampler, faulty_samplers, support_error
from tests.soaking import wide


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), SETTINGS)
def test_the_auditor_finds_nothing(size: int, epsilon: float) -> None:
    """10^7 draws of each of two clients in a soak. What it finds is nearly epsilon: the events are the ones that matter."""
    sampler, randomness = ReportSampler(Simplex(size), epsilon=epsilon), _SeededRandomness(np.random.default_rng(4))

    def draw(outcome: int, count: int) -> np.ndarray:
        return sampler._draw_reports_for_outcomes(np.full(count, outcome), randomness)

    found = audit_sampler(sampler, draw, wide(10**7, 400_000))
    assert not found.is_refuted
    assert found.empirical_epsilon_lower_bound > 0.9 * epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", faulty_samplers(*FAULTS[0]))
def test_the_auditor_finds_a_window_that_is_off_by_one(name: str) -> None:
    """In a soak also in a window of 28 points, where the fault costs 0.02 of an epsilon of 1."""
    for window, epsilon in wide(FAULTS, FAULTS[1:]):
        faulty, randomness = faulty_samplers(window, epsilon)[name], _SeededRandomness(np.random.default_rng(5))
        draw = partial(faulty.draw, randomness=randomness)
        found = audit_sampler(faulty.sampler, draw, 4 * 10**7 if window == FAULTS[0][0] else wide(10**7, 400_000))
        assert found.is_refuted == (name not in ("no fault", UNDETECTED)), (window, found)


@pytest.mark.parametrize("name", ["no fault", UNDETECTED])
def test_the_fault_that_costs_no_privacy_is_seen_in_the_supports(name: str) -> None:
    """Own blocks then sometimes miss the client's outcome, and its share is estimated too low."""
    for window, epsilon in FAULTS:
        faulty, randomness = faulty_samplers(window, epsilon)[name], _SeededRandomness(np.random.default_rng(6))
        error = support_error(faulty, faulty.draw(3, 200_000, randomness), 3)
        assert (error < -6.0) if name == UNDETECTED else (abs(error) < 4.0)
