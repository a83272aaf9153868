"""Theorem: m (B - e^beta b)_+ bounds what any two clients can be told apart by, and two clients attain it."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from discreet import (
    Band,
    Cells,
    Density,
    DiscreetError,
    GaussianMixtures,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    Points,
    ReportSampler,
    Simplex,
)
from discreet._base.numerics import exp_lower
from discreet.accounting import BoxProfile, epsilon_from_renyi, profile_of, renyi
from discreet.mechanisms._sampler import Sampler
from discreet.release import TOTAL
from tests.soaking import examples
from tests.strategies import bands, epsilons, laws, sizes

ROUNDING = 1e-9


def hockey_stick(first: NDArray[np.int64], second: NDArray[np.int64], beta: float) -> Fraction:
    """E_{e^beta} between two laws in units of 2^-62, at most exact by the rounding of e^beta down."""
    ratio = exp_lower(beta)
    return (
        sum((max(Fraction(0), int(a) - ratio * int(b)) for a, b in zip(first, second, strict=True)), Fraction(0))
        / TOTAL
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data(), st.sampled_from([OptimalSampler, MollifierSampler]), st.floats(0.0, 1.1))
@settings(deadline=None, max_examples=examples(150))
def test_no_two_clients_exceed_the_profile(data: st.DataObject, kind: type[Sampler[Any]], share: float) -> None:
    family = data.draw(st.one_of(bands(20), sizes(20).map(Simplex)))
    sampler = kind(family, epsilon=data.draw(epsilons(1e-3, 20.0)))
    first, second = sampler.weights([data.draw(laws(family.size)), data.draw(laws(family.size))])
    beta = share * sampler.epsilon
    bound = profile_of(sampler).delta(beta)
    assert float(hockey_stick(first, second, beta)) <= bound * (1 + ROUNDING) + 1e-15


@pytest.mark.parametrize(("family", "clients"), [
    (Simplex(2), ([1, 0], [0, 1])),
    (Simplex(10), (np.eye(10)[3], np.eye(10)[7])),
    (Band(np.ones(6), lower=0.5, upper=2.0), ([2, 2, 0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 2, 2, 0.5, 0.5])),
    (Band(np.ones(6), lower=0.25, upper=1.375), ([1.375] * 4 + [0.25] * 2, [0.25] * 2 + [1.375] * 4)),
])  # fmt: skip
@pytest.mark.parametrize("kind", [OptimalSampler, LinearSampler])
def test_two_clients_attain_it(
    kind: type[Sampler[Any]], family: Simplex | Band, clients: tuple[list[float], ...]
) -> None:
    sampler = kind(family, epsilon=0.7)
    profile = profile_of(sampler)
    assert profile.attained
    assert profile.alpha == pytest.approx(family.bounds.alpha, rel=1e-12)
    first, second = sampler.weights(np.array(clients) / np.sum(clients, axis=1, keepdims=True))
    for beta in (0.0, 0.3, 0.6):
        assert float(hockey_stick(first, second, beta)) == pytest.approx(profile.delta(beta), rel=1e-9)


def test_where_it_is_only_a_bound_it_says_so() -> None:
    assert not profile_of(OptimalSampler(Band(np.ones(5), lower=0.5, upper=2.0), epsilon=0.5)).attained
    assert not profile_of(OptimalSampler(Band([1, 2, 3], lower=0.5, upper=2.0), epsilon=0.5)).attained
    assert not profile_of(MollifierSampler(Simplex(10), epsilon=0.5)).attained
    assert not profile_of(OptimalSampler(Band(np.ones(6), lower=0.9, upper=1.2), epsilon=2.0)).attained  # the identity


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 10.0, 300.0])
@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.8])
def test_the_renyi_curve_is_that_of_the_three_points(order: float, alpha: float) -> None:
    profile = BoxProfile(epsilon=0.5, alpha=alpha)
    up, down = profile.upper_mass, profile.lower_mass
    if order == 1.0:
        direct = up * 0.5 - down * 0.5
    else:
        direct = math.log(up * math.exp((order - 1) * 0.5) + down * math.exp((1 - order) * 0.5) + 1 - up - down) / (
            order - 1
        )
    assert renyi(profile, order=order) == pytest.approx(direct, rel=1e-9)


def test_the_renyi_curve_ends_at_epsilon_and_grows() -> None:
    profile = BoxProfile(epsilon=2.0, alpha=0.1)
    orders = [1.0, 1.0 + 1e-13, 1.001, 2.0, 50.0, 349.0, 351.0, 1e6, math.inf]
    curve = [renyi(profile, order=order) for order in orders]
    assert curve == sorted(curve)
    assert curve[-1] == 2.0
    assert renyi(BoxProfile(epsilon=2.0, alpha=1.0), order=math.inf) == 0.0
    assert renyi(BoxProfile(epsilon=2.0, alpha=1.0), order=1e9) == 0.0


def test_mistakes_name_the_argument() -> None:
    profile = BoxProfile(epsilon=1.0, alpha=0.1)
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: BoxProfile(epsilon=math.nan, alpha=0.5), "epsilon = nan"),
        (lambda: BoxProfile(epsilon=1.0, alpha=0.0), "alpha = 0 is not in [1e-300, 1]"),
        (lambda: profile.delta(-1.0), "epsilon = -1"),
        (lambda: renyi(profile, order=0.5), "order = 0.5"),
        (lambda: epsilon_from_renyi(profile, samples=0, delta=1e-6), "samples = 0"),
        (lambda: epsilon_from_renyi(profile, samples=1, delta=0.0), "delta = 0"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(DiscreetError) as caught:
            wrong()
        assert says in str(caught.value)


@pytest.mark.parametrize("discretisation", [Cells(40), Points(60, seed=1), Points(60)], ids=str)
@pytest.mark.parametrize("kind", [OptimalSampler, LinearSampler, MollifierSampler])
def test_continuous_clients_do_not_exceed_their_profile(
    kind: type[Sampler[Any]], discretisation: Cells | Points
) -> None:
    """The same bound, for the integers on cells and on points; that two clients attain it is not claimed there."""
    family = GaussianMixtures(box=(-4.0, 4.0))
    sampler = kind(family, epsilon=1.0, discretisation=discretisation)
    profile = profile_of(sampler)
    assert not profile.attained
    size = sampler.box.size
    alternate, atom = np.arange(size) % 2.0, np.eye(size)
    for one, other in ((alternate, 1.0 - alternate), (atom[0], atom[-1]), (atom[3], np.ones(size))):
        weights = sampler.weights_on_atoms(np.stack([one / one.sum(), other / other.sum()]))
        for beta in (0.0, 0.3, 0.9, 1.0):
            found = float(hockey_stick(weights[0], weights[1], beta))
            assert found <= profile.delta(beta) * (1 + ROUNDING) + 1e-15


def test_what_releases_nothing_has_no_profile() -> None:
    with pytest.raises(DiscreetError, match="releases nothing"):
        profile_of(OptimalSampler(GaussianMixtures(), epsilon=1.0, discretisation=Density()))


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (7, 0.5), (12, 1.0), (104, 1.0), (104, 4.0), (20, 6.0)])
def test_the_profile_of_reports_bounds_every_pair_of_outcomes(size: int, epsilon: float) -> None:
    """Point masses are the extreme clients, and E is jointly convex; their exact laws, report by report."""
    sampler = ReportSampler(Simplex(size), epsilon=epsilon)
    profile = profile_of(sampler)
    assert not profile.attained
    laws = sampler.output(np.eye(size)[[0, 1, size - 1]])
    for beta in (0.0, 0.3 * epsilon, 0.8 * epsilon, epsilon):
        worst = max(
            float(np.maximum(laws[i] - np.exp(beta) * laws[j], 0.0).sum()) for i in range(3) for j in range(3) if i != j
        )
        assert worst <= profile.delta(beta) + 1e-12
    assert profile.delta(0.0) < 1.0
