"""P lies between the two lines for every client there can be, and touches them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import discreet as dc
from discreet.estimation import inversion_of
from discreet.families import Band
from tests.soaking import examples
from tests.strategies import laws

ROUNDING = 1e-9
EPSILONS = st.floats(0.01, 8.0)


def exact_optimal(counts: list[int], growth: Fraction) -> tuple[list[Fraction], list[Fraction], Fraction]:
    """(P, Q*, L) in rational arithmetic: Q = max(P/r, L), r by trying which outcomes are at the floor."""
    k, total = len(counts), sum(counts)
    p = [Fraction(count, total) for count in counts]
    floor = 1 / (growth + k - 1)
    for above in range(1, k + 1):
        top = sorted(p, reverse=True)[:above]
        scale = sum(top) / (1 - (k - above) * floor)
        if scale > 0 and top[-1] / scale >= floor and (above == k or sorted(p, reverse=True)[above] / scale <= floor):
            return p, [max(x / scale, floor) for x in p], floor
    top_only = max(range(k), key=lambda x: p[x])
    return p, [growth * floor if x == top_only else floor for x in range(k)], floor


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.lists(st.integers(0, 40), min_size=2, max_size=7).filter(any), st.integers(11, 400))
def test_the_simplex_lines_hold_in_rational_arithmetic_without_tolerance(counts: list[int], tenths: int) -> None:
    growth = Fraction(tenths, 10)  # e^epsilon
    p, q, floor = exact_optimal(counts, growth)
    assert sum(q) == 1
    ceiling = growth * floor
    for held, drawn in zip(p, q, strict=True):
        weight = (drawn - floor) / (ceiling - floor)
        assert ceiling * weight <= held <= (floor + ceiling * weight) / (floor + ceiling)


@pytest.mark.slow
@given(st.integers(2, 40).flatmap(lambda k: laws(k)), EPSILONS)
def test_every_law_lies_between_the_lines_of_the_optimal_sampler(p: np.ndarray, epsilon: float) -> None:
    sampler = dc.OptimalSampler(dc.Simplex(len(p)), epsilon=epsilon)
    found, mu, q = inversion_of(sampler), 1.0 / len(p), sampler.output(p)
    assert (found.least(mu, q) <= p + ROUNDING).all()
    assert (p <= found.most(mu, q) + ROUNDING).all()


@pytest.mark.slow
@given(st.integers(2, 12).flatmap(lambda k: st.tuples(laws(k), laws(k))), EPSILONS, st.data())
def test_every_event_of_two_clients_lies_between_the_lines(
    pair: tuple[np.ndarray, np.ndarray], epsilon: float, data: st.DataObject
) -> None:
    p = np.stack(pair)
    size = p.shape[1]
    event = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    for sampler in (
        dc.OptimalSampler(dc.Simplex(size), epsilon=epsilon),
        dc.MollifierSampler(dc.Simplex(size), epsilon=epsilon),
        dc.LinearSampler(dc.Simplex(size), epsilon=epsilon),
    ):
        found, q = inversion_of(sampler), sampler.output(p).mean(axis=0)
        mu, drawn, held = event.mean(), q[event].sum(), p.mean(axis=0)[event].sum()
        assert found.least(mu, drawn) <= held + ROUNDING / epsilon
        assert held <= found.most(mu, drawn) + ROUNDING / epsilon


@pytest.mark.slow
@given(
    st.integers(2, 8).flatmap(lambda k: st.tuples(laws(k), laws(k))), st.floats(0.0, 0.9), st.floats(1.2, 4.0), EPSILONS
)
def test_members_of_a_band_lie_between_r1_and_r2_times_what_is_drawn(
    pair: tuple[np.ndarray, np.ndarray], lower: float, upper: float, epsilon: float
) -> None:
    weights = 0.2 + pair[0]
    family = Band(weights, lower=lower, upper=upper)
    mu = np.broadcast_to(family.reference, len(weights))
    p = np.clip(pair[1], lower * mu, upper * mu)
    for _ in range(200):  # to the band, from outside
        p = np.clip(p + (1.0 - p.sum()) / len(p), lower * mu, upper * mu)
    assume(abs(p.sum() - 1.0) <= 1e-9)
    for sampler in (dc.OptimalSampler(family, epsilon=epsilon), dc.MollifierSampler(family, epsilon=epsilon)):
        found, q = inversion_of(sampler), sampler.output(p)
        assert (found.least(mu, q) <= p + 1e-7).all()
        assert (p <= found.most(mu, q) + 1e-7).all()


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_both_simplex_lines_are_attained(k: int, epsilon: float) -> None:
    sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon)
    found = inversion_of(sampler)
    floor, ceiling = sampler.constants.b / k, sampler.constants.B / k
    certain = np.eye(k)[0]
    at_ceiling = np.full(k, floor)
    at_ceiling[0] = ceiling  # held and drawn alike
    shy = np.zeros(k)
    shy[0], shy[1] = floor / (floor + ceiling), ceiling / (floor + ceiling)
    for p, line in ((certain, found.high), (at_ceiling, found.low), (certain[::-1], found.low), (shy, found.high)):
        assert float(line(1.0 / k, sampler.output(p)[0])) == pytest.approx(p[0], abs=1e-12)


def test_the_two_clients_of_the_same_output_are_both_inside() -> None:
    """k = 2, epsilon = 1: (.96, .04) and (.80, .20) give the same law, so no estimator can tell them apart."""
    sampler = dc.OptimalSampler(dc.Simplex(2), epsilon=1.0)
    first, second = sampler.output([0.96, 0.04]), sampler.output([0.80, 0.20])
    assert first.tolist() == second.tolist()
    found = inversion_of(sampler)
    assert found.least(0.5, first[0]) <= 0.80
    assert found.most(0.5, first[0]) >= 0.96
    assert not found.exact


def test_where_the_identity_is_private_nothing_is_left_open() -> None:
    sampler = dc.OptimalSampler(Band(np.ones(4), lower=0.8, upper=1.2), epsilon=1.0)
    found = inversion_of(sampler)
    assert found.exact
    assert found.low(0.25, 0.3) == 0.3


def test_an_epsilon_from_which_nothing_is_learnt_is_refused() -> None:
    with pytest.raises(dc.DiscreetError, match="epsilon = 1e-200"):
        inversion_of(dc.LinearSampler(dc.Simplex(3), epsilon=1e-200))


@pytest.mark.slow
@given(st.integers(2, 12), st.sampled_from([0.1, 1.0, 3.0]), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(200), deadline=None)
def test_everybody_lies_between_the_lines_of_a_band_that_serves_everybody(k: int, epsilon: float, seed: int) -> None:
    """Clients far outside a designed band too: point masses, those of its rarest outcome among them."""
    rng = np.random.default_rng(seed)
    weights = np.exp(-8.0 * rng.random(k))
    family = Band(weights, lower=0.0, upper=1.0 + float(rng.exponential()), any_client=True)
    own = rng.dirichlet(np.full(k, 0.5)) + 1e-6
    clients = np.vstack([np.eye(k), rng.dirichlet(np.full(k, 0.2), 20)])
    for sampler in (
        dc.OptimalSampler(family, epsilon=epsilon),
        dc.MollifierSampler(family, epsilon=epsilon),
        dc.MollifierSampler(family, epsilon=epsilon, reference=own / own.sum()),
    ):
        lines, mu = inversion_of(sampler), np.broadcast_to(sampler.reference, k)
        q = sampler.output(clients)
        assert (lines.low(mu, q) <= clients).all()
        assert (clients <= lines.high(mu, q) * (1 + 1e-12)).all()
        assert (lines.least(mu, q.mean(axis=0)) <= clients.mean(axis=0) + 1e-12).all()
        assert (clients.mean(axis=0) <= lines.most(mu, q.mean(axis=0)) + 1e-12).all()
