"""Theorem: for any two inputs whatever, W_x <= e^epsilon W'_x between the integers that are really drawn with."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from discreet import Band, LinearSampler, MollifierSampler, OptimalSampler, Simplex
from discreet._base.numerics import exp_lower
from discreet.mechanisms._sampler import Sampler
from discreet.release import TOTAL, _lattice as drawing
from tests.exact import assert_private, spelled_out
from tests.soaking import examples, wide
from tests.strategies import bands, epsilons, laws, members, sizes

SAMPLERS = [OptimalSampler, LinearSampler, MollifierSampler]
HARD = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), [(1e-6, 1e-3), (1e-3, 0.5), (0.5, 5.0), (5.0, 50.0)])
@given(st.data())
@settings(HARD, max_examples=wide(850, 100))  # 10,200 pairs in all in a soak: three clients each
def test_optimal_sampler_on_the_simplex(low: float, high: float, data: st.DataObject) -> None:
    k = data.draw(sizes(2000))
    epsilon = data.draw(epsilons(low, high))
    weights = OptimalSampler(Simplex(k), epsilon=epsilon).weights([data.draw(laws(k)) for _ in range(3)])
    for one, other in itertools.combinations(weights, 2):
        assert_private(one, other, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [LinearSampler, MollifierSampler])
@given(st.data())
@settings(HARD, max_examples=examples(340))
def test_rivals_on_the_simplex(sampler: type[Sampler[Any]], data: st.DataObject) -> None:
    k = data.draw(sizes(500))
    epsilon = data.draw(epsilons())
    weights = sampler(Simplex(k), epsilon=epsilon).weights([data.draw(laws(k)) for _ in range(3)])
    for one, other in itertools.combinations(weights, 2):
        assert_private(one, other, epsilon)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data())
@settings(HARD, max_examples=examples(340))
def test_clients_outside_the_band_are_private_too(data: st.DataObject) -> None:
    band = data.draw(bands(200))
    epsilon = data.draw(epsilons())
    weights = OptimalSampler(band, epsilon=epsilon).weights([data.draw(laws(band.size)) for _ in range(3)])
    for one, other in itertools.combinations(weights, 2):
        assert_private(one, other, epsilon)


@pytest.mark.slow
@given(st.data())
@settings(HARD, max_examples=examples(300))
def test_linear_sampler_on_a_band(data: st.DataObject) -> None:
    band = data.draw(bands(200))
    epsilon = data.draw(epsilons())
    weights = LinearSampler(band, epsilon=epsilon).weights([data.draw(members(band)), data.draw(members(band))])
    assert_private(weights[0], weights[1], epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("epsilon", wide([1e-6, 0.1, 1.0, 50.0], [1e-6, 1.0]))
def test_large_domain(sampler: type[Sampler[Any]], epsilon: float) -> None:
    k = 128_000
    rng = np.random.default_rng(7)
    point, uniform, tail = np.eye(1, k)[0], np.full(k, 1 / k), rng.pareto(0.5, k)
    few = np.where(np.arange(k) < 50, 0.02, 0.0)
    weights = sampler(Simplex(k), epsilon=epsilon).weights([point, uniform, tail / tail.sum(), few, point[::-1]])
    for i in range(len(weights)):
        for j in range(i):
            assert_private(weights[i], weights[j], epsilon)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-6, 0.5, 60.0, 1000.0, 1e300])
@pytest.mark.parametrize("k", [1, 2, 3, 1000])
def test_extreme_budgets(k: int, epsilon: float) -> None:
    weights = OptimalSampler(Simplex(k), epsilon=epsilon).weights([np.eye(1, k)[0], np.eye(1, k)[0][::-1]])
    assert_private(weights[0], weights[1], epsilon)


@pytest.mark.slow
def test_ten_million_outcomes() -> None:
    k = wide(10**7, 10**6)
    sampler = OptimalSampler(Simplex(k), epsilon=2.0)
    point = np.zeros(k)
    point[k // 2] = 1.0
    weights = sampler.weights(point)
    assert_private(weights, np.full(k, TOTAL // k) + (np.arange(k) < TOTAL % k), 2.0)
    assert 0 <= sampler.release(point) < k


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data())
@settings(HARD, max_examples=examples(200))
def test_every_integer_draws_the_outcome_its_weights_say(data: st.DataObject) -> None:
    """The kernel that draws, against the definition in Python integers, at both ends of every interval of [0, 2^62)."""
    family = data.draw(st.one_of(bands(12), sizes(12).map(Simplex)))
    epsilon = data.draw(epsilons())
    kind = data.draw(st.sampled_from(SAMPLERS))
    sampler = kind(family, epsilon=epsilon)
    p = data.draw(members(family) if kind is LinearSampler else laws(family.size))
    solve_everything = np.array([sampler.lattice.shared_total])
    _, slope, lift = drawing._draw_outcomes_with_slopes_and_lifts(
        sampler.lattice, p[None], sampler.mixing, solve_everything
    )
    weights, intervals = spelled_out(sampler.lattice, p, float(slope[0]), float(lift[0]))
    assert sampler.weights(p).tolist() == weights
    ends = [(u, x) for start, stop, x in intervals if stop > start for u in (start, (start + stop) // 2, stop - 1)]
    integers, expected = np.array([u for u, _ in ends]), [x for _, x in ends]
    drawn = drawing.outcomes(sampler.lattice, np.tile(p, (len(ends), 1)), sampler.mixing, integers)
    assert drawn.tolist() == expected


@pytest.mark.slow
@given(sizes(300), epsilons(), st.integers(0, 2**32 - 1))
@settings(HARD, max_examples=examples(300))
def test_randomised_response_is_private_and_is_the_linear_sampler(k: int, epsilon: float, seed: int) -> None:
    """Every integer answered by record x is counted: the law of the response to a record is the weights of its point mass."""
    sampler = LinearSampler(Simplex(k), epsilon=epsilon)
    rng = np.random.default_rng(seed)
    records = rng.integers(0, k, 2)
    lattice = sampler.lattice

    weights = sampler.weights(np.eye(k)[records])
    assert_private(weights[0], weights[1], epsilon)
    span = int(lattice.upper) - int(lattice.lower)
    for record, expected in zip(records, weights, strict=True):
        # the response is constant on these pieces; count them
        edges = [lattice.shared_total, lattice.shared_total + span]
        while edges[-1] < TOTAL:
            edges.append(edges[-1] + span)
        counted = np.full(k, int(lattice.lower), dtype=object)
        for start, stop in zip(edges, [*edges[1:], TOTAL], strict=True):
            stop = min(stop, TOTAL)
            if stop > start:
                answers = sampler._randomise_records(np.array([record, record]), np.array([start, stop - 1]))
                assert answers[0] == answers[1]
                counted[answers[0]] += stop - start
        assert int(counted.sum()) == TOTAL
        assert max(abs(int(a) - int(b)) for a, b in zip(counted, expected, strict=True)) <= 2**12 + span // 2**40
        bound = exp_lower(epsilon)
        assert max(Fraction(int(a)) for a in counted) <= bound * min(Fraction(int(a)) for a in counted)


def test_the_guarantee_is_the_lattice() -> None:
    lattice = OptimalSampler(Simplex(10), epsilon=1.0).lattice
    assert exp_lower(1.0) * Fraction(999_999_999_999, 10**12) < lattice.largest_ratio <= exp_lower(1.0)
    skewed = OptimalSampler(Band([1, 2, 3], lower=0.0, upper=1.5), epsilon=0.3).lattice
    assert skewed.largest_ratio <= exp_lower(0.3)
