"""The bound is exact in coverage and nearly as sharp as counting allows."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import DiscreetError
from discreet.audit import empirical_epsilon_lower_bound


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q", "draws"), [(0.5, 0.25, 40), (0.3, 0.02, 60), (0.05, 0.05, 50)])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_coverage_by_enumeration(p: float, q: float, draws: int, confidence: float) -> None:
    """Over every pair of counts, with their exact probabilities: the bound is wrong at most as often as allowed."""
    first, second = stats.binom.pmf(np.arange(draws + 1), draws, p), stats.binom.pmf(np.arange(draws + 1), draws, q)
    truth = math.log(p / q)
    wrong = 0.0
    for x in np.flatnonzero(first > 1e-7):
        for y in np.flatnonzero(second > 1e-7):
            if empirical_epsilon_lower_bound(int(x), int(y), draws=draws, confidence=confidence) > truth:
                wrong += first[x] * second[y]
    assert wrong <= 1 - confidence
    assert wrong > 0 or confidence > 0.9 or q < 0.05  # it is not vacuous


def test_it_sharpens_as_draws_grow() -> None:
    found = [
        empirical_epsilon_lower_bound(n // 2, n // 10, draws=n, confidence=0.99)
        for n in (100, 10_000, 1_000_000, 10**8)
    ]
    assert found == sorted(found)
    assert math.log(5) * 0.999 < found[-1] < math.log(5)


def test_impossible_events_and_delta() -> None:
    assert empirical_epsilon_lower_bound(0, 0, draws=100, confidence=0.9) == 0.0
    assert empirical_epsilon_lower_bound(0, 100, draws=100, confidence=0.9) == 0.0
    never = empirical_epsilon_lower_bound(100, 0, draws=100, confidence=0.9)
    assert 2.0 < never < math.inf
    assert empirical_epsilon_lower_bound(100, 0, draws=100, confidence=0.9, delta=0.5) < never
    assert empirical_epsilon_lower_bound(100, 0, draws=100, confidence=0.9, delta=1.0) == 0.0
    assert empirical_epsilon_lower_bound(50, 5, draws=(100, 10), confidence=0.9) == 0.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"first": -1, "second": 0, "draws": 5, "confidence": 0.9}, "first = -1"),
        ({"first": 6, "second": 0, "draws": 5, "confidence": 0.9}, "first = 6 exceeds its 5 draws"),
        ({"first": 1, "second": 0, "draws": 5, "confidence": 1.0}, "confidence = 1"),
        ({"first": 1, "second": 0, "draws": 5, "confidence": 0.9, "delta": math.nan}, "delta = nan"),
    ],
)
def test_mistakes_name_the_argument(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        empirical_epsilon_lower_bound(**arguments)  # type: ignore[arg-type]
    assert says in str(caught.value)
