"""The lattice as the last line of defence: whatever arrives from upstream, the law drawn is a law of the integer box."""

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import Band, DiscreetError, LinearSampler, MollifierSampler, OptimalSampler, Simplex
from discreet._base.kernels import Code, force_implementation
from discreet._base.numerics import exp_lower
from discreet.projection import Box
from discreet.release import TOTAL, Lattice, _compiled as compiled
from tests.exact import assert_private
from tests.soaking import examples, wide

GARBAGE = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -1.0, 1e308, -1e308]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(GARBAGE, GARBAGE, st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_garbage_from_the_solver_costs_utility_only(slope: float, lift: float, seed: int, skewed: bool) -> None:
    rng = np.random.default_rng(seed)
    family = Band(rng.random(7) + 0.1, lower=0.1, upper=3.0) if skewed else Simplex(7)
    lattice = OptimalSampler(family, epsilon=0.7).lattice
    p = rng.dirichlet(np.ones(7)) * (rng.random(7) < 0.7) + 1e-9
    law = p / p.sum()
    laws, slopes, lifts = np.tile(law, (200, 1)), np.full(200, slope), np.full(200, lift)
    weights = lattice.weights(laws[:1], slopes[:1], lifts[:1])[0]
    assert_private(weights, OptimalSampler(family, epsilon=0.7).weights(np.eye(7)[0]), 0.7)
    uniform, drawn = rng.integers(0, TOTAL, 200), np.empty(200, dtype=np.int64)
    assert compiled.store_outcomes_of_laws(lattice, laws, False, slopes.copy(), lifts.copy(), uniform, drawn) == -1
    assert np.array_equal(drawn, lattice.outcomes_of_integers(laws, slopes, lifts, uniform))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_broken_box_is_refused(bad: float) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(DiscreetError):
        Lattice.of(Box(3, np.array([0.1, bad, 0.1]), np.array([0.5, 0.5, 0.5])), 1.0)


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("epsilon", [5.0, 20.0, 30.0, 40.0, 41.9, 42.5, 43.5, 60.0])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_large_budgets_lose_next_to_nothing(k: int, epsilon: float) -> None:
    """L is then a few units only; it is rounded so that e^epsilon L still reaches the upper bound."""
    sampler = OptimalSampler(Simplex(k), epsilon=epsilon)
    p = np.eye(k)[0]
    assert np.abs(sampler.weights(p) / 2.0**62 - sampler.output(p)).max() <= 1e-12
    band = OptimalSampler(Band(np.ones(3), lower=0.0, upper=1.5), epsilon=epsilon)
    q = [0.9, 0.1, 0.0]
    assert np.abs(band.weights(q) / 2.0**62 - band.output(q)).max() <= 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.parametrize("code", Code)
def test_laws_over_hundreds_of_orders_of_magnitude(code: Code) -> None:
    rng = np.random.default_rng(4)
    for trial in range(wide(400, 100)):
        k = int(rng.integers(2, 60))
        weights = np.exp(-rng.uniform(0, 40) * rng.random(k))
        family = Band(weights, lower=0.0, upper=1 + 10 ** rng.uniform(-6, 2)) if trial % 2 else Simplex(k)
        p = np.exp(-rng.uniform(0, 600) * rng.random(k))
        p /= p.sum()
        for kind in (OptimalSampler, MollifierSampler):
            with force_implementation(code):
                q = kind(family, epsilon=float(10 ** rng.uniform(-3, 1))).output(p)
            assert abs(q.sum() - 1.0) <= 1e-12


def test_a_nearly_weightless_outcome_does_not_turn_the_law_around() -> None:
    sampler = OptimalSampler(Band([1, 1, 1e-20], lower=0, upper=2), epsilon=1.0)
    assert sampler.output([0, 1, 5e-21])[:2] == pytest.approx([0.26894142137, 0.73105857863])


def test_what_the_caller_does_to_its_arrays_afterwards_is_no_concern() -> None:
    reference = np.array([0.5, 0.5])
    sampler = MollifierSampler(Simplex(2), epsilon=1.0, reference=reference)
    before = sampler.weights([1.0, 0.0]).tolist()
    reference[0] = np.nan
    assert sampler.weights([1.0, 0.0]).tolist() == before
    with pytest.raises(AttributeError):
        sampler.epsilon = 9.0  # type: ignore[misc]
    lattice = OptimalSampler(Band([1, 2, 3], lower=0.1, upper=1.5), epsilon=1.0).lattice
    with pytest.raises(ValueError, match="read-only"):
        lattice.lower[0] = 1  # type: ignore[index]


def test_a_law_that_changes_while_it_is_read_cannot_corrupt_memory() -> None:
    laws = np.random.default_rng(0).dirichlet(np.full(2000, 0.1), 300)
    sampler = OptimalSampler(Simplex(2000), epsilon=8.0)
    stop = threading.Event()

    def disturb() -> None:
        row = 0
        while not stop.is_set():
            laws[row] = laws[row - 1]
            row = (row + 1) % len(laws)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            try:
                drawn = np.asarray(sampler.release(laws))
            except DiscreetError:
                continue
            assert drawn.min() >= 0
            assert drawn.max() < 2000
    finally:
        stop.set()
        thread.join()


def test_an_exact_epsilon_is_rounded_down() -> None:
    for n in range(1, 100):
        assert Fraction(OptimalSampler(Simplex(3), epsilon=Fraction(n, 10)).epsilon) <= Fraction(n, 10)  # type: ignore[arg-type]


def test_tiny_budgets_release_the_reference() -> None:
    sampler = OptimalSampler(Simplex(2), epsilon=1e-60)
    assert sampler.lattice.largest_ratio == 1 == exp_lower(1e-60)
    assert sampler.weights([1.0, 0.0]).tolist() == [2**61, 2**61]
    assert sampler.release([1.0, 0.0]) in (0, 1)


def test_other_refusals() -> None:
    with pytest.raises(DiscreetError, match="masked array"):
        OptimalSampler(Simplex(2), epsilon=1.0).output(np.ma.array([0.5, 0.5], mask=[False, True]))
    with pytest.raises(DiscreetError, match="is not a family"):
        OptimalSampler("x", epsilon=1.0)  # type: ignore[type-var]
    with pytest.raises(DiscreetError, match="outcomes is more than"):
        Simplex(10**400)
    with pytest.raises(DiscreetError, match="epsilon = inf"):
        OptimalSampler(Simplex(2), epsilon=10**400)
    with pytest.raises(DiscreetError, match="one label for each record"):
        LinearSampler(Simplex(["a"]), epsilon=1.0).randomised_response([["a"]])
    assert OptimalSampler(Simplex(["a", "a\0"]), epsilon=40.0).release([[0.0, 1.0]]).tolist() == ["a\0"]


@pytest.mark.usefixtures("either_code")
@pytest.mark.parametrize("family", [Simplex(7), Band(np.arange(1.0, 8.0), lower=0, upper=3, any_client=True)], ids=repr)
def test_laws_may_lie_in_memory_as_they_like(family: Simplex | Band) -> None:
    laws = np.random.default_rng(1).dirichlet(np.full(7, 0.5), size=20)
    sampler = OptimalSampler(family, epsilon=1.0)
    weights, outputs = sampler.weights(laws), sampler.output(laws)
    for other in (np.asfortranarray(laws), np.repeat(laws, 2, axis=0)[::2], np.repeat(laws, 2, axis=1)[:, ::2]):
        assert np.array_equal(sampler.weights(other), weights)
        assert np.array_equal(sampler.output(other), outputs)
        assert sampler.release(other).shape == (20,)
