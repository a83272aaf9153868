"""T1 to T5 against optima over all mechanisms, in which nothing is known of floors."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import Band, LinearSampler, MollifierSampler, OptimalSampler, Simplex, divergence
from discreet.design import design
from discreet.design._floors import AllowedFloors, DesignCertificate, as_example_clients
from discreet.divergences._curves import curve_of_divergence
from discreet.projection import Box
from tests.design.mechanisms import best_mean_kl, best_mean_tv, clients
from tests.soaking import examples
from tests.strategies import laws

SHIPPED = ["kl", "tv", "hellinger", "chi2"]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("n", "k", "seed"), [(1, 3, 0), (2, 2, 1), (4, 3, 2), (5, 6, 3), (8, 4, 4)])
@pytest.mark.parametrize("keep", [0.0, 0.6, 0.95])
def test_no_mechanism_has_a_smaller_mean_tv(n: int, k: int, seed: int, epsilon: float, keep: float) -> None:
    """T1 and T2: the design attains what a linear programme over all mechanisms finds, promise included."""
    given_laws, weights = clients(n, k, seed), np.random.default_rng(seed).dirichlet(np.ones(n))
    found = design(Simplex(k), epsilon=epsilon, clients=given_laws, weights=weights, divergence="tv", keep=keep)
    optimum = best_mean_tv(given_laws, weights, epsilon, keep)
    assert found.bound <= optimum + 1e-9
    assert found.value == pytest.approx(optimum, rel=1e-4, abs=2e-7)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize(("n", "k", "seed"), [(2, 3, 5), (3, 4, 6), (5, 3, 7)])
@pytest.mark.parametrize("keep", [0.0, 0.8])
def test_no_mechanism_has_a_smaller_mean_kl(n: int, k: int, seed: int, epsilon: float, keep: float) -> None:
    given_laws, weights = clients(n, k, seed), np.full(n, 1.0 / n)
    found = design(Simplex(k), epsilon=epsilon, clients=given_laws, divergence="kl", keep=keep)
    optimum = best_mean_kl(given_laws, weights, epsilon, keep)
    assert found.bound <= optimum + 1e-7
    assert found.value == pytest.approx(optimum, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", [*SHIPPED, "jensen_shannon", "le_cam", "alpha:0.7", "alpha:3", "hockey_stick:2"])
def test_a_design_is_a_family(name: str) -> None:
    """The value is the mean of what OptimalSampler on the band draws from, and the band's box is that of the floor."""
    given_laws = clients(30, 8, 11)
    found = design(Simplex(8), epsilon=1.5, clients=given_laws, divergence=name, keep=0.05)
    assert isinstance(found.family, Band)
    assert np.mean(divergence(name)(given_laws, found.sampler.output(given_laws))) == pytest.approx(
        found.value, rel=1e-9
    )
    assert found.value - found.bound <= 1e-4 * found.value
    again = OptimalSampler(found.family, epsilon=1.5)
    assert again == found.sampler


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
@given(st.integers(2, 8), st.floats(0.05, 5.0), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_worst_case_over_everybody_is_a_point_mass(name: str, k: int, epsilon: float, seed: int) -> None:
    """T2 for any floor whatever: attained by one of the point masses, exceeded by no law."""
    rng = np.random.default_rng(seed)
    family = Band(rng.exponential(size=k) + 1e-3, lower=0.0, upper=1.0 + 4.0 * rng.random() + 1e-3, any_client=True)
    sampler = OptimalSampler(family, epsilon=epsilon)
    f, worst = divergence(name), sampler.risk(name)
    assert worst.attained
    points = np.asarray(f(np.eye(k), sampler.output(np.eye(k))))
    assert points.max() == pytest.approx(worst.value, rel=1e-9)
    others = rng.dirichlet(np.full(k, 10.0 ** rng.uniform(-2, 1)), 200)
    assert np.max(f(others, sampler.output(others))) <= worst.value * (1 + 1e-9)
    constants, least = sampler.constants, float(np.min(np.broadcast_to(family.reference, k)))
    t = min(constants.B * least, 1.0 - constants.b * (1.0 - least))
    said = {"kl": -math.log(t), "tv": 1 - t, "hellinger": 2 - 2 * math.sqrt(t), "chi2": 1 / t - 1}[name]
    assert worst.value == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("least", [1e-3, 1e-9, 1e-15])
def test_the_worst_case_has_all_its_digits_where_little_of_a_client_is_left(least: float) -> None:
    sampler = OptimalSampler(Band([1.0, least], lower=0.0, upper=2.0, any_client=True), epsilon=0.5)
    t = sampler.constants.B * float(np.min(sampler.reference))
    for name, said in (("kl", -math.log(t)), ("chi2", 1.0 / t - 1.0), ("hellinger", 2.0 - 2.0 * math.sqrt(t))):
        assert float(sampler.risk(name)) == pytest.approx(said, rel=1e-13)


@pytest.mark.slow
@given(st.integers(2, 12), st.floats(0.01, 8.0), st.floats(0.0, 1.0), st.integers(0, 1000))
@settings(max_examples=examples(40), deadline=None)
def test_a_design_keeps_what_it_promises(k: int, epsilon: float, keep: float, seed: int) -> None:
    """t >= keep t*: an outcome that a client is sure of is released with at least that share of the chance that Q* gives it."""
    found = design(Simplex(k), epsilon=epsilon, clients=clients(5, k, seed), keep=keep)
    best = OptimalSampler(Simplex(k), epsilon=epsilon).output(np.eye(k)).diagonal().min()
    kept = found.sampler.output(np.eye(k)).diagonal().min()
    assert kept >= keep * best * (1 - 1e-9)
    assert kept > 0.0
    assert float(found.worst("tv")) == pytest.approx(1 - kept, abs=1e-9)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_keeping_everything_is_the_optimal_sampler(name: str, epsilon: float) -> None:
    given_laws = clients(20, 6, 3)
    found = design(Simplex(6), epsilon=epsilon, clients=given_laws, divergence=name, keep=1)
    optimal = OptimalSampler(Simplex(6), epsilon=epsilon)
    assert found.sampler.output(given_laws) == pytest.approx(optimal.output(given_laws), abs=1e-12)
    assert float(found.worst(name)) == pytest.approx(float(optimal.risk(name)), rel=1e-9)
    assert found.value - found.bound <= 1e-4 * found.value


@pytest.mark.parametrize(("k", "s"), [(4, 1), (4, 2), (5, 3), (6, 5)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_spread_is_the_best_for_clients_of_so_many_outcomes(k: int, s: int, epsilon: float) -> None:
    """T3, and T4: among all mechanisms, for clients uniform on any s of k outcomes."""
    everyone = np.array(
        [[1.0 / s if x in held else 0.0 for x in range(k)] for held in itertools.combinations(range(k), s)]
    )
    sampler = OptimalSampler(Simplex(k).spread(s), epsilon=epsilon)
    mean = float(np.mean(divergence("tv")(everyone, sampler.output(everyone))))
    assert mean == pytest.approx((k - s) / (s * math.exp(epsilon) + k - s), rel=1e-9)
    assert mean == pytest.approx(best_mean_tv(everyone, np.full(len(everyone), 1.0 / len(everyone)), epsilon), rel=1e-6)
    for name in ("kl", "hellinger"):
        found = design(Simplex(k), epsilon=epsilon, clients=everyone, divergence=name, keep=0)
        assert found.value == pytest.approx(
            float(np.mean(divergence(name)(everyone, sampler.output(everyone)))), rel=1e-4
        )
        assert np.ptp(np.broadcast_to(found.family.reference, k)) < 1e-3


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_mollifier_is_a_spread(epsilon: float) -> None:
    given_laws = clients(50, 9, 8)
    spread = Simplex(9).spread(9 / (math.exp(epsilon / 2) + 1))
    mollifier = MollifierSampler(Simplex(9), epsilon=epsilon)
    assert OptimalSampler(spread, epsilon=epsilon).output(given_laws) == pytest.approx(
        mollifier.output(given_laws), abs=1e-12
    )
    for name in SHIPPED:
        assert float(OptimalSampler(spread, epsilon=epsilon).risk(name)) == pytest.approx(
            float(mollifier.risk(name)), rel=1e-9
        )


def test_the_mollifier_is_no_band_where_outcomes_are_few() -> None:
    """No distribution on k outcomes reaches a density of e^(eps/2) + 1 > k, so Q* of that band is Q* of the simplex."""
    epsilon, everybody = 2.0, np.eye(3)
    band = Band(np.ones(3), lower=0.0, upper=math.exp(epsilon / 2) + 1)
    assert np.array_equal(
        OptimalSampler(band, epsilon=epsilon).output(everybody),
        OptimalSampler(Simplex(3), epsilon=epsilon).output(everybody),
    )
    mollified = MollifierSampler(Simplex(3), epsilon=epsilon).output(everybody)
    assert np.abs(mollified - OptimalSampler(band, epsilon=epsilon).output(everybody)).max() > 0.03


def test_the_floor_of_the_optimal_sampler_is_the_only_best_one_only_where_the_worst_case_falls_strictly() -> None:
    k, epsilon = 5, 1.0
    other = Band([1.0, 1.0, 1.0, 1.0, 1.02], lower=0.0, upper=4.9, any_client=True)
    for name, is_alone in (("kl", True), ("tv", True), ("hockey_stick:3", False), ("reverse_kl", False)):
        best = float(OptimalSampler(Simplex(k), epsilon=epsilon).risk(name))
        assert (float(OptimalSampler(other, epsilon=epsilon).risk(name)) > best) == is_alone
        assert float(LinearSampler(Simplex(k), epsilon=epsilon).risk(name)) == pytest.approx(best, rel=1e-12)


def test_a_spread_of_one_is_the_optimal_sampler() -> None:
    given_laws = clients(50, 9, 8)
    assert OptimalSampler(Simplex(9).spread(1), epsilon=1.0).output(given_laws) == pytest.approx(
        OptimalSampler(Simplex(9), epsilon=1.0).output(given_laws), abs=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_the_bound_holds_in_rationals(name: str, epsilon: float, keep: float) -> None:
    """T5 without floating point: every line is below f and the bound is what rationals say, within 1e-4 of the value."""
    given_laws = clients(25, 7, 21)
    found = design(Simplex(7), epsilon=epsilon, clients=given_laws, divergence=name, keep=keep)
    exact = found.certificate.exact()
    assert Fraction(found.bound) <= max(exact, Fraction(0))
    assert found.value - float(exact) <= 1e-4 * found.value


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3.0))
@settings(max_examples=25, deadline=None)
def test_any_multipliers_give_a_bound(name: str, seed: int, epsilon: float) -> None:
    """Whatever the solver hands over: nonsense bounds badly, never wrongly. The mechanism that it must not exceed is Q*."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    given_laws = clients(n, k, seed % 1000)
    examples = as_example_clients(given_laws, None, k)
    multiplier = rng.normal(size=n) * 3.0
    if name == "tv":
        slope = rng.random(examples.mass.size)
        intercept, at_zero = -slope, 0.0
    else:
        curve = curve_of_divergence(divergence(name))
        t = np.exp(rng.normal(size=examples.mass.size) * 2.0)
        (slope, intercept), at_zero = curve.steepest_line_with_intercept(curve.tangent_intercept(t), t), curve.at_zero
    certificate = DesignCertificate(
        examples, AllowedFloors(k, epsilon, 0.0), multiplier, slope, intercept, at_zero, name
    )
    exact, bound = certificate.exact(), certificate.lower_bound()
    assert Fraction(bound) <= exact
    assert float(exact) - bound <= 1e-9 * (1 + abs(float(exact)))
    for floor in (np.full(k, 1.0 / (np.exp(epsilon) + k - 1)), rng.dirichlet(np.ones(k)) * np.exp(-epsilon / 2)):
        q = Box(k, floor, np.exp(epsilon) * floor).project(given_laws)
        assert bound <= np.mean(divergence(name)(given_laws, q)) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*SHIPPED[:1], *SHIPPED[2:], "jensen_shannon", "le_cam", "alpha:0.5", "alpha:-1", "reverse_kl"]
)
@given(st.floats(-20, 20), st.lists(st.floats(-25, 25), min_size=1, max_size=20))
@settings(max_examples=examples(60), deadline=None)
def test_lines_lie_below_f(name: str, place: float, others: list[float]) -> None:
    """In 60 digits: f(t) >= intercept + slope t for t near the contact and far from it."""
    with mpmath.workdps(60):
        order = mpmath.mpf(name.partition(":")[2] or 0)
        f: Any = {
            "kl": lambda t: t * mpmath.log(t),
            "reverse_kl": lambda t: -mpmath.log(t),
            "hellinger": lambda t: (1 - mpmath.sqrt(t)) ** 2,
            "chi2": lambda t: t * t - 1,
            "jensen_shannon": lambda t: (t * mpmath.log(t) - (1 + t) * mpmath.log((1 + t) / 2)) / 2,
            "le_cam": lambda t: (t - 1) ** 2 / (2 * (t + 1)),
            "alpha": lambda t: (t**order - order * t + order - 1) / (order * (order - 1)),
        }[name.partition(":")[0]]
        t = np.array([math.exp(place)])
        curve = curve_of_divergence(divergence(name))
        slope, intercept = (
            mpmath.mpf(float(x[0])) for x in curve.steepest_line_with_intercept(curve.tangent_intercept(t), t)
        )
        contact = mpmath.mpf(float(t[0]))
        size = 1 + abs(f(contact)) + abs(slope) * contact
        if abs(place) <= 5:  # further out the intercept alone no longer tells the slope well
            assert f(contact) - intercept - slope * contact <= mpmath.mpf("1e-10") * size
        for other in [
            contact,
            *(mpmath.exp(mpmath.mpf(x)) for x in others),
            *(contact * (1 + mpmath.mpf(x) / 10**7) for x in others),
        ]:
            if other > 0:
                assert f(other) >= intercept + slope * other


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(40), deadline=None)
def test_no_design_loses_to_the_named_samplers(data: st.DataObject) -> None:
    """On its own examples a design with a small promise is at least as good as Q*, the mollifier and every spread that keep as much."""
    k = data.draw(st.integers(2, 10))
    given_laws = np.array([data.draw(laws(k)) for _ in range(data.draw(st.integers(1, 6)))])
    epsilon = data.draw(st.floats(0.05, 6.0))
    found = design(Simplex(k), epsilon=epsilon, clients=given_laws, keep=0)
    for sampler in (OptimalSampler(Simplex(k), epsilon=epsilon), MollifierSampler(Simplex(k), epsilon=epsilon)):
        mean = float(np.mean(divergence("kl")(given_laws, sampler.output(given_laws))))
        assert found.bound <= mean * (1 + 1e-9) + 1e-12
        assert found.value <= mean * (1 + 1e-4) + 1e-7
