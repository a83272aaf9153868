"""Proposition C.8: clip(P/r, b mu, B mu) is the projection of P onto the box for every f-divergence; its scale, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from discreet import (
    Band,
    DiscreetError,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    Simplex,
    divergence,
)
from discreet._base.numerics import exp_lower
from discreet.divergences import BUILT_IN
from discreet.mechanisms import nearest_member
from discreet.projection import Box
from discreet.projection._box import NEGLIGIBLE
from tests.exact import exact_slope
from tests.soaking import examples
from tests.strategies import bands, epsilons, laws, members, sizes

EVERY_DIVERGENCE = [*BUILT_IN, "alpha:0.5", "alpha:-1", "alpha:3", "hockey_stick:1.5", "hockey_stick:0.5"]


def competitor(box: Box, q: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Another law of the box: mass moved between random outcomes of q as far as the bounds allow."""
    lower, upper = np.broadcast_to(box.lower, q.shape), np.broadcast_to(box.upper, q.shape)
    moved = q.copy()
    for _ in range(int(rng.integers(1, 2 * len(q)))):
        giver, taker = rng.integers(0, len(q), 2)
        if giver != taker:
            step = rng.random() * max(0.0, min(moved[giver] - lower[giver], upper[taker] - moved[taker]))
            moved[giver] -= step
            moved[taker] += step
    return moved


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data())
@settings(max_examples=examples(500), deadline=None)
def test_no_law_of_the_box_is_closer_in_any_divergence(data: st.DataObject) -> None:
    family = data.draw(st.one_of(bands(15), sizes(15).map(Simplex)))
    kind = data.draw(st.sampled_from([OptimalSampler, MollifierSampler]))
    sampler = kind(family, epsilon=data.draw(epsilons(1e-2, 8.0)))
    p = data.draw(laws(family.size))
    p[p < NEGLIGIBLE] = 0.0
    q = sampler.output(p)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    others = np.stack([competitor(sampler.box, q, rng) for _ in range(5)])
    for name in EVERY_DIVERGENCE:
        d = divergence(name)
        ours, theirs = d(p, q), d(np.broadcast_to(p, others.shape), others)
        assert ((ours <= theirs + 1e-12 * (1 + np.abs(theirs))) | np.isinf(theirs)).all(), name


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_the_projection_beats_the_linear_mechanism_for_every_client(data: st.DataObject) -> None:
    family = data.draw(st.one_of(bands(15), sizes(15).map(Simplex)))
    epsilon = data.draw(epsilons(1e-2, 8.0))
    p = data.draw(members(family))
    optimal = OptimalSampler(family, epsilon=epsilon).output(p)
    linear = LinearSampler(family, epsilon=epsilon).output(p)
    for name in EVERY_DIVERGENCE:
        ours, theirs = float(divergence(name)(p, optimal)), float(divergence(name)(p, linear))
        assert ours <= theirs + 1e-12 * (1 + theirs) or np.isinf(theirs), name


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_scale_is_exact(data: st.DataObject) -> None:
    family = data.draw(st.one_of(bands(20), sizes(20).map(Simplex)))
    kind = data.draw(st.sampled_from([OptimalSampler, MollifierSampler]))
    box = kind(family, epsilon=data.draw(epsilons(1e-3, 20.0))).box
    p = data.draw(laws(family.size))
    lower = [Fraction(float(x)) for x in np.broadcast_to(box.lower, p.shape)]
    upper = [Fraction(float(x)) for x in np.broadcast_to(box.upper, p.shape)]
    slope = exact_slope([Fraction(float(x)) for x in p], lower, upper)
    found = float(box.scale(p))
    if slope is None:  # P sits on too small a set; by rounding alone where the two sides meet at the end of the range
        full = float(sum(high if mass else low for mass, low, high in zip(p, lower, upper, strict=True)))
        assert found == 0.0 or full > 1.0 - 1e-11
    elif slope < 1e280:  # else the law lives on masses that count as none
        assert float(
            sum(
                min(max(Fraction(float(x)) / Fraction(found), lo), hi)
                for x, lo, hi in zip(p, lower, upper, strict=True)
            )
        ) == (pytest.approx(1.0, abs=1e-13))
        q = np.array(
            [float(min(max(slope * Fraction(float(x)), lo), hi)) for x, lo, hi in zip(p, lower, upper, strict=True)]
        )
        assert np.abs(box.project(p) - q).max() <= 1e-14


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_projection_onto_too_small_a_support(data: st.DataObject) -> None:
    """Husain's closed form has no solution here: the projection is e^(eps/2) Q0 on the support, one multiple of Q0 off it."""
    k = data.draw(st.integers(3, 30))
    reference = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).dirichlet(np.ones(k)) * 0.9 + 0.1 / k
    epsilon = data.draw(epsilons(0.01, 0.5))
    sampler = MollifierSampler(Simplex(k), epsilon=epsilon, reference=reference)
    held = int(np.argmin(reference))
    p = np.eye(k)[held]
    q = sampler.output(p)
    assert sampler.scale(p) == 0.0
    assert q.sum() == pytest.approx(1.0, abs=1e-14)
    assert q[held] == pytest.approx(reference[held] * np.exp(epsilon / 2), rel=1e-12)
    others = np.delete(q / reference, held)
    assert np.ptp(others) <= 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_the_floating_box_is_private_between_the_floats(data: st.DataObject) -> None:
    family = data.draw(st.one_of(bands(40), sizes(40).map(Simplex)))
    epsilon = data.draw(epsilons(1e-6, 700.0))
    q = OptimalSampler(family, epsilon=epsilon).output([data.draw(laws(family.size)), data.draw(laws(family.size))])
    bound = exp_lower(epsilon)
    worst = max(Fraction(float(a)) / Fraction(float(b)) for a, b in zip(q[0], q[1], strict=True))
    if epsilon <= 64:
        assert worst <= bound
    assert (q > 0).all()


def test_behaviour_at_the_ends_of_epsilon() -> None:
    """Appendix E: uniform as epsilon -> 0, the client's own law as epsilon -> infinity."""
    p = np.array([0.7, 0.2, 0.1, 0.0])
    assert np.abs(OptimalSampler(Simplex(4), epsilon=1e-9).output(p) - 0.25).max() < 1e-9
    assert np.abs(OptimalSampler(Simplex(4), epsilon=1000.0).output(p) - p).max() < 1e-15


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_continuity(data: st.DataObject) -> None:
    """Proposition 4.1: TV(Q(P), Q(P')) <= 2/max(r_P, r_P') TV(P, P') for members of the family."""
    family = data.draw(st.one_of(bands(15), sizes(15).map(Simplex)))
    sampler = OptimalSampler(family, epsilon=data.draw(epsilons(1e-2, 8.0)))
    p = np.stack([data.draw(members(family)), data.draw(members(family))])
    tv = divergence("tv")
    sensitivity = np.asarray(sampler.sensitivity(p)).min()
    assert tv(*sampler.output(p)) <= sensitivity * tv(*p) + 1e-13


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_scale_lies_where_the_paper_says(data: st.DataObject) -> None:
    """Proposition C.2 and Theorem 3.1: r1 < r_P <= r2, and 1 <= r_P on the simplex."""
    family = data.draw(st.one_of(bands(15), sizes(15).map(Simplex)))
    sampler = OptimalSampler(family, epsilon=data.draw(epsilons(1e-2, 8.0)))
    r = float(sampler.scale(data.draw(members(family))))
    low = 1.0 if isinstance(family, Simplex) else sampler.constants.r1
    if not sampler.identity:
        assert low * (1 - 1e-9) <= r <= sampler.constants.r2 * (1 + 1e-9)


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=examples(150))
def test_the_nearest_member_of_a_band_is_nearest(data: st.DataObject) -> None:
    """In the band, p itself for a member, and no mixture of it with another member is closer in any divergence."""
    family = data.draw(bands(8))
    p, other = data.draw(laws(family.size)), data.draw(laws(family.size))
    nearest, member = nearest_member(family, p), nearest_member(family, other)
    assert nearest.sum() == pytest.approx(1.0, abs=1e-12)
    mu, bounds = np.broadcast_to(family.reference, family.size), family.bounds
    assert (nearest <= bounds.upper * mu * (1 + 1e-9)).all()
    assert (nearest >= bounds.lower * mu * (1 - 1e-9)).all()
    assert nearest_member(family, nearest) == pytest.approx(nearest, abs=1e-12)
    for name in ("tv", "hellinger", "le_cam"):
        f = divergence(name)
        for share in (0.01, 0.5, 1.0):
            assert float(f(p, nearest)) <= float(f(p, (1 - share) * nearest + share * member)) + 1e-9


def test_the_nearest_member_of_finitely_many_outcomes() -> None:
    assert nearest_member(Simplex(3), [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]).tolist() == [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]
    band = Band([1, 1, 2], lower=0.0, upper=1.5)
    assert nearest_member(band, [0.6, 0.0, 0.4]).tolist() == pytest.approx([0.375, 0.0, 0.625])
    assert nearest_member(band, [1.0, 0.0, 0.0]).tolist() == pytest.approx([0.375, 0.625 / 3, 1.25 / 3])
    with pytest.raises(DiscreetError, match="sums to"):
        nearest_member(band, [1.0, 1.0, 0.0])
