"""Brackets under other notions of privacy, against programmes over all mechanisms and, where nothing is added to epsilon, the pure ones."""

import itertools
import math

import numpy as np
import pytest

import discreet as dc
from discreet.design import _linear_programmes as notions
from tests.soaking import wide
from tests.theorems.bands import vertices
from tests.theorems.test_notions_over_all_mechanisms import generated, optimal_tv

FOUR = dc.Band([4, 3, 2, 1], lower=0.5, upper=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(wide(12, 4)))
def test_the_optimum_of_approximate_privacy_is_bracketed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    band = generated(rng)
    epsilon, delta = float(rng.choice([0.1, 0.5, 1.0, 2.0])), float(rng.choice([1e-6, 1e-4, 0.01, 0.1]))
    notion = dc.Approximate(epsilon, delta=delta)
    points = vertices(np.broadcast_to(band.reference, band.size), band.bounds.lower, band.bounds.upper)
    optimum = optimal_tv(points, [(math.exp(epsilon), delta)])
    found = dc.minimax_risk(band, privacy=notion, divergence="tv", bracket=True)
    lower, upper = found.bracket
    assert lower <= optimum + 1e-8
    assert upper >= optimum - 1e-8
    if not found.tight:
        assert upper - lower <= 1e-4 * upper + 1e-7


@pytest.mark.parametrize("name", ["kl", "tv", "hellinger", "chi2"])
def test_without_a_delta_it_is_the_pure_bracket(name: str) -> None:
    pure = dc.minimax_risk(FOUR, epsilon=0.5, divergence=name, bracket=True)
    found = dc.minimax_risk(FOUR, privacy=dc.Approximate(0.5, delta=0.0), divergence=name, bracket=True)
    assert found.bracket[0] <= pure.bracket[1] * (1.0 + 1e-9)
    assert pure.bracket[0] <= found.bracket[1] * (1.0 + 1e-9)
    assert found.bracket[0] >= 0.999 * pure.bracket[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "notion", [*wide([dc.Gaussian(0.5)], []), dc.Gaussian(1.0), dc.privacy.Functional(lambda x: max(0.0, 0.8 - x))]
)
@pytest.mark.parametrize("name", ["tv", "kl"])
def test_other_notions_are_bracketed_narrowly(notion: dc.privacy.Privacy, name: str) -> None:
    """Between the formula's value, which its own sampler is below, and the programme at finitely many z, which asks for less."""
    found = dc.minimax_risk(FOUR, privacy=notion, divergence=name, bracket=True)
    lower, upper = found.bracket
    own = float(dc.OptimalSampler(FOUR, privacy=notion).risk(name))
    assert 0.0 < lower <= upper <= own
    assert upper - lower <= 0.03 * upper
    if name == "tv":
        points = vertices(np.broadcast_to(FOUR.reference, 4), 0.5, 2.0)
        betas = np.linspace(0.0, 1.2 * dc.OptimalSampler(FOUR, privacy=notion).epsilon, 25)
        finer = optimal_tv(points, [(math.exp(beta), notion.profile(float(beta))) for beta in betas])
        assert finer <= upper + 1e-8
        assert lower <= finer + 1e-4


def test_many_vertices_bound_it_from_below_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    notion = dc.Approximate(0.5, delta=0.01)
    whole = dc.minimax_risk(FOUR, privacy=notion, divergence="tv", bracket=True)
    monkeypatch.setattr(notions, "LARGEST_PAIRS", 4 * 16)
    some = dc.minimax_risk(FOUR, privacy=notion, divergence="tv", bracket=True)
    assert 0.0 < some.bracket[0] <= whole.bracket[0] + 1e-9
    assert some.bracket[1] == float(dc.OptimalSampler(FOUR, privacy=notion).risk("tv"))
    assert some.attained


def test_pairs_keep_a_notion_exactly_where_every_event_does() -> None:
    """Random pairs of laws, against all 2^k events; a pair of disjoint laws keeps nothing."""
    rng = np.random.default_rng(0)
    for notion, concentration in ((dc.Approximate(0.5, delta=0.05), 8.0), (dc.Gaussian(0.8), 4.0)):
        kept = 0
        for _ in range(300):
            one = rng.dirichlet(np.full(4, concentration))
            other = rng.dirichlet(np.full(4, concentration))
            events = np.array(list(itertools.product([False, True], repeat=4)))[1:-1]  # the sure ones tell nothing
            errors = [(float(other[event].sum()), 1.0 - float(one[event].sum())) for event in events]
            slack = min(y - notion.tradeoff(min(x, 1.0)) for x, y in errors)
            if abs(slack) > 1e-9:
                assert notions._pair_satisfies_notion(one, other, notion) == (slack > 0.0)
            kept += slack > 0.0
        assert 30 < kept < 270
        assert not notions._pair_satisfies_notion(np.array([1.0, 0.0]), np.array([0.0, 1.0]), notion)


def test_the_proof_holds_whatever_the_multipliers_are() -> None:
    """The bound is a statement about numbers: wrong multipliers make it lower, and never higher than the optimum."""
    band = dc.Band([1, 1, 2], lower=0.3, upper=1.7)
    points = vertices(np.broadcast_to(band.reference, 3), 0.3, 1.7)
    promises = notions.PairConstraints.for_notion(dc.Approximate(0.5, delta=0.05), 1.0)
    programme = notions.PairProgramme(points, promises, dc.divergence("tv"), 1.0)
    optimum = optimal_tv(points, [(math.exp(0.5), 0.05)])
    rows = programme.current_rows
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            upper = size * rng.exponential(size=rows.right.size) * (rng.random(rows.right.size) < 0.1)
            equal = size * rng.normal(size=len(points))
            assert programme.proved_bound(rows, upper, equal) <= optimum
