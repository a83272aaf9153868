"""Theorem: the privacy loss of n releases is a sum of n three-point losses; two clients attain it."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import DiscreetError, OptimalSampler, Simplex
from discreet.accounting import BoxProfile, compose, epsilon_from_renyi, epsilon_per_sample, profile_of
from discreet.accounting._composition import MOST_SAMPLES
from discreet.release import TOTAL
from tests.soaking import examples

ALPHAS = st.floats(1e-4, 1.0)


def product_delta(first: list[float], second: list[float], n: int, epsilon: float) -> float:
    """E_{e^epsilon} between n-fold products of two laws, by going through every sequence of outcomes."""
    terms = []
    for outcome in itertools.product(range(len(first)), repeat=n):
        a, b = math.prod(first[x] for x in outcome), math.prod(second[x] for x in outcome)
        terms.append(max(0.0, a - math.exp(epsilon) * b))
    return math.fsum(terms)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.1])
def test_composition_is_what_two_clients_really_lose(n: int, epsilon: float) -> None:
    sampler = OptimalSampler(Simplex(4), epsilon=0.6)
    first, second = sampler.weights(np.eye(4)[:2]) / TOTAL
    loss = compose([(profile_of(sampler), n)])
    assert loss.attained
    assert loss.delta(epsilon) == pytest.approx(
        product_delta(list(first), list(second), n, epsilon), rel=1e-8, abs=1e-15
    )


def test_the_known_figures() -> None:
    """64 samples at 0.5 and delta = 1e-6, where basic composition says 32."""
    for alpha, expected in [(0.1, 10.99), (0.01, 3.86)]:
        profile = BoxProfile(epsilon=0.5, alpha=alpha)
        loss = compose([(profile, 64)])
        assert loss.largest == 32.0
        assert round(loss.epsilon(1e-6), 2) == expected
        assert loss.epsilon(1e-6) < epsilon_from_renyi(profile, samples=64, delta=1e-6) < 32.0


@pytest.mark.slow
@given(st.floats(0.01, 3.0), ALPHAS, st.integers(1, 60), st.floats(-12.0, -0.5))
@settings(deadline=None, max_examples=examples(150))
def test_epsilon_is_the_smallest_at_its_delta(epsilon: float, alpha: float, n: int, exponent: float) -> None:
    delta = 10.0**exponent
    profile = BoxProfile(epsilon=epsilon, alpha=alpha)
    loss = compose([(profile, n)])
    found = loss.epsilon(delta)
    assert 0.0 <= found <= loss.largest == pytest.approx(n * epsilon)
    assert loss.delta(found) <= delta
    if found > 0.0:
        assert loss.delta(max(0.0, found - 1e-6 * max(1.0, found))) > delta
    assert found <= epsilon_from_renyi(profile, samples=n, delta=delta) + 1e-9
    assert loss.epsilon(0.0) == loss.largest


def test_different_boxes_add_up() -> None:
    first, second = BoxProfile(epsilon=0.3, alpha=0.2), BoxProfile(epsilon=0.7, alpha=0.4)
    up, down = ([getattr(p, side) for p in (first, first, second)] for side in ("upper_mass", "lower_mass"))
    terms = []
    for signs in itertools.product((1, -1, 0), repeat=3):
        ours = math.prod(u if x == 1 else d if x == -1 else 1 - u - d for x, u, d in zip(signs, up, down, strict=True))
        theirs = math.prod(
            d if x == 1 else u if x == -1 else 1 - u - d for x, u, d in zip(signs, up, down, strict=True)
        )
        terms.append(max(0.0, ours - math.exp(0.5) * theirs))
    direct = math.fsum(terms)
    assert compose([(first, 2), (second, 1)]).delta(0.5) == pytest.approx(direct, rel=1e-8)
    assert compose([(first, 1), (second, 1), (first, 1)]).delta(0.5) == pytest.approx(direct, rel=1e-8)
    assert compose([]).epsilon(1e-6) == 0.0


@pytest.mark.slow
def test_rounding_to_a_grid_only_rounds_up() -> None:
    """2,000 releases of one box, counted as two boxes that are nearly it: a little more than the exact value, never less."""
    one = BoxProfile(epsilon=0.1, alpha=0.1)
    other = BoxProfile(epsilon=0.1 * (1 + 1e-12), alpha=0.1)
    exact = compose([(one, 4_000)]).epsilon(1e-6)
    rough = compose([(one, 2_000), (other, 2_000)])
    assert not rough.attained
    assert exact <= rough.epsilon(1e-6) <= 1.01 * exact
    assert rough.epsilon(0.0) == pytest.approx(400.0)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 10, 64])
def test_a_split_keeps_the_total_and_wastes_nothing(alpha: float, n: int) -> None:
    share = epsilon_per_sample(alpha=alpha, samples=n, epsilon=2.0, delta=1e-6)
    assert share >= 2.0 / n
    assert compose([(BoxProfile(epsilon=share, alpha=alpha), n)]).epsilon(1e-6) <= 2.0
    assert compose([(BoxProfile(epsilon=share * 1.0001, alpha=alpha), n)]).epsilon(1e-6) > 2.0
    pure = epsilon_per_sample(alpha=alpha, samples=n, epsilon=2.0, delta=0.0)
    assert pure * n <= 2.0
    assert pure == pytest.approx(2.0 / n)


def test_mistakes_name_the_argument() -> None:
    profile = BoxProfile(epsilon=1.0, alpha=0.1)
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: compose([(profile, 0)]), "samples = 0"),
        (lambda: compose([(profile, MOST_SAMPLES + 1)]), "epsilon_from_renyi"),
        (lambda: compose([(profile, 1)]).epsilon(math.nan), "delta = nan"),
        (lambda: compose([(profile, 1)]).delta(-0.5), "epsilon = -0.5"),
        (lambda: epsilon_per_sample(alpha=2.0, samples=1, epsilon=1.0, delta=0.0), "alpha = 2"),
        (lambda: epsilon_per_sample(alpha=0.5, samples=1, epsilon=1.0, delta=2.0), "delta = 2"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(DiscreetError) as caught:
            wrong()
        assert says in str(caught.value)
