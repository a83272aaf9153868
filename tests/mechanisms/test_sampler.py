"""Samplers as a user meets them: shapes, labels, batches, seeds, refusals, and the law of real releases."""

import math
import pickle
import subprocess
import sys
import warnings
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import chisquare

import discreet as dc
from discreet import (
    Band,
    DiscreetError,
    LinearSampler,
    MollifierSampler,
    NotPrivateWarning,
    OptimalSampler,
    OutsideFamilyError,
    Simplex,
)
from discreet._base.kernels import Code, force_implementation
from discreet.mechanisms._sampler import Sampler
from discreet.release import _lattice as drawing
from discreet.release._randomness import SystemEntropy
from tests.soaking import wide

SAMPLERS = [OptimalSampler, LinearSampler, MollifierSampler]
P = np.array([0.5, 0.3, 0.15, 0.05, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_a_million_releases_follow_the_stated_law(sampler: type[Sampler[Any]], epsilon: float) -> None:
    """Black box: drawn from the operating system, compared with output(p). A right law fails once in 10^6 runs."""
    mechanism = sampler(Simplex(5), epsilon=epsilon)
    drawn = np.bincount(mechanism.release(np.tile(P, (1_000_000, 1))), minlength=5)
    assert chisquare(drawn, mechanism.output(P) * 1_000_000, sum_check=False).pvalue > 1e-6
    other = sampler(Simplex(5), epsilon=epsilon * 1.5).output(P) * 1_000_000
    assert chisquare(drawn, other, sum_check=False).pvalue < 1e-6  # the test can tell a wrong law


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
def test_releases_over_a_skewed_reference_follow_the_stated_law() -> None:
    sampler = OptimalSampler(Band([1, 2, 3, 4, 5], lower=0.1, upper=2.5), epsilon=1.0)
    drawn = np.bincount(sampler.release(np.tile(P, (300_000, 1))), minlength=5)
    assert chisquare(drawn, sampler.output(P) * 300_000, sum_check=False).pvalue > 1e-6


def test_randomised_response_of_raw_draws_is_the_linear_sampler() -> None:
    sampler = LinearSampler(Simplex(5), epsilon=1.0)
    raw = np.random.default_rng(5).choice(5, 500_000, p=P)
    drawn = np.bincount(sampler.randomised_response(raw), minlength=5)
    assert chisquare(drawn, sampler.output(P) * 500_000, sum_check=False).pvalue > 1e-6
    assert LinearSampler(Simplex(["a", "b"]), epsilon=9.0).randomised_response(["a", "b", "a"]).shape == (3,)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_shapes(sampler: type[Sampler[Any]]) -> None:
    mechanism = sampler(Simplex(5), epsilon=1.0)
    many = np.tile(P, (2, 3, 1))
    assert mechanism.output(P).shape == (5,)
    assert mechanism.output(many).shape == mechanism.weights(many).shape == (2, 3, 5)
    assert mechanism.release(many).shape == (2, 3)
    assert isinstance(mechanism.release(P), int)
    assert mechanism.output(np.empty((0, 5))).shape == (0, 5)
    assert mechanism.release(np.empty((0, 5))).shape == (0,)
    assert np.array_equal(mechanism.output(many)[1, 2], mechanism.output(P))
    assert np.array_equal(mechanism.output(many[..., ::-1])[0, 0], mechanism.output(P[::-1]))  # not contiguous
    assert mechanism.output([1, 0, 0, 0, 0]).sum() == pytest.approx(1.0)


def test_labels_come_back() -> None:
    colours = OptimalSampler(Simplex(["red", "green", "blue"]), epsilon=30.0)
    assert colours.release([1.0, 0.0, 0.0]) == "red"
    assert colours.release([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).tolist() == ["red", "blue"]
    mixed = OptimalSampler(Simplex([("a", 1), 2.5]), epsilon=30.0)
    assert mixed.release([1.0, 0.0]) == ("a", 1)
    assert mixed.release([[0.0, 1.0]]).tolist() == [2.5]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_numbers_stand_for_outcomes(sampler: type[Sampler[Any]]) -> None:
    colours = sampler(Simplex(["red", "green", "blue"]), epsilon=30.0)
    assert colours.release_number([0.0, 1.0, 0.0]) == 1
    assert isinstance(colours.release_number([0.0, 1.0, 0.0]), int)
    numbers = colours.release_number([[[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    assert np.asarray(numbers).tolist() == [[1], [0]]
    assert np.asarray(colours.points(numbers)).tolist() == [["green"], ["red"]]
    assert colours.points(2) == "blue"


def test_scale_and_sensitivity() -> None:
    sampler = OptimalSampler(Simplex(5), epsilon=1.0)
    q, r = sampler.output(P), sampler.scale(P)
    assert np.abs(np.maximum(P / r, q.min()) - q).max() < 1e-15
    assert sampler.sensitivity(P) == 2 / float(r)
    assert np.asarray(sampler.scale([P, P])).shape == (2,)
    few = float(sampler.estimation_cost(P, records=10))
    many = float(sampler.estimation_cost(P, records=100_000))
    assert 0 < many < few <= min(1 - sampler.constants.b, sampler.constants.B - 1)


def test_estimation_cost_holds_with_its_confidence() -> None:
    sampler = OptimalSampler(Simplex(5), epsilon=2.0)
    rng = np.random.default_rng(3)
    for records in (50, 2000):
        estimates = rng.multinomial(records, P, size=500) / records
        moved = np.abs(sampler.output(estimates) - sampler.output(P)).sum(axis=1) / 2
        bound = np.asarray(sampler.estimation_cost(estimates, records=records, confidence=0.95))
        assert (moved <= bound).mean() >= 0.95


def test_a_seed_is_reproducible_and_says_that_it_is_not_private() -> None:
    sampler = OptimalSampler(Simplex(5), epsilon=1.0)
    many = np.tile(P, (50, 1))
    with pytest.warns(NotPrivateWarning, match="NOT private"):
        first = sampler.release(many, rng=np.random.default_rng(1))
    with pytest.warns(NotPrivateWarning):
        assert np.array_equal(first, sampler.release(many, rng=np.random.default_rng(1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.array_equal(sampler.release(many), sampler.release(many))  # fails once in 10^30 runs


def test_entropy_fills_every_bit() -> None:
    drawn = SystemEntropy().integers(100_000)
    assert drawn.min() >= 0
    assert drawn.max() < 2**62
    ones = [(drawn >> bit & 1).mean() for bit in range(62)]
    assert max(abs(share - 0.5) for share in ones) < 0.01  # 6.3 standard deviations


BAD_LAWS: list[tuple[Any, str]] = [
    ([0.5, np.nan, 0.5], r"p\[1\] = nan is NaN"),
    ([0.5, np.inf, 0.5], r"p\[1\] = inf is infinite"),
    ([0.5, -np.inf, 0.5], r"p\[1\] = -inf is infinite"),
    ([1.5, -0.5, 0.0], r"p\[1\] = -0.5 is negative"),
    ([0.5, 0.5, 0.5], r"p sums to 1.5, not to 1 .*family.law\(counts"),
    ([0.0, 0.0, 0.0], "p sums to 0"),
    ([1e308, 1e308, 1e308], "p sums to inf"),
    ([3, 4, 5], "p sums to 12"),
    ([0.5, 0.5], "one entry for each of the 3 outcomes"),
    ([], "one entry for each of the 3 outcomes"),
    (0.5, "p is a single number"),
    ("abc", "p is not an array of numbers"),
    ([0.5, None, 0.5], "p is not an array of numbers"),
    ([[0.5, 0.5, 0.0], [1.0, 0.0]], "p is not an array of numbers"),
    ([[0.5, 0.5, 0.0], [0.9, 0.0, 0.0]], r"p\[1\] sums to 0.9"),
    ([[0.5, 0.5, 0.0], [0.5, 0.5, np.nan]], r"p\[1\]\[2\] = nan"),
    ([1 + 1j, 0, 0], "p is not an array of numbers"),
]


@pytest.mark.parametrize(("p", "message"), BAD_LAWS)
@pytest.mark.parametrize("method", ["output", "weights", "release", "scale"])
@pytest.mark.parametrize("code", Code)
def test_bad_laws(p: Any, message: str, method: str, code: Code) -> None:
    for family in (Simplex(3), Band([1, 2, 3], lower=0.1, upper=1.5)):
        with force_implementation(code), pytest.raises(DiscreetError, match=message):
            getattr(OptimalSampler(family, epsilon=1.0), method)(p)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, True, 1j])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_bad_budgets(sampler: type[Sampler[Any]], epsilon: Any) -> None:
    with pytest.raises(DiscreetError, match="epsilon = "):
        sampler(Simplex(3), epsilon=epsilon)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: OptimalSampler(Simplex(3), epsilon=1.0).release([1.0, 0, 0], rng=cast(Any, 7)),
            "rng = 7 is not a numpy Generator",
        ),
        (
            lambda: OptimalSampler(Simplex(1000), epsilon=1e-18).release(np.full(1000, 1e-3)),
            "epsilon = 1e-18 is too small",
        ),
        (lambda: MollifierSampler(Simplex(2), epsilon=1.0, reference=[1.0, 0.0]), r"reference\[1\] = 0"),
        (lambda: MollifierSampler(Simplex(2), epsilon=1.0, reference=[0.5, 0.4]), "sums to 0.9"),
        (lambda: MollifierSampler(Simplex(2), epsilon=1.0, reference=[[0.5, 0.5]]), "reference has shape"),
        (
            lambda: LinearSampler(Band([1, 1], lower=0.5, upper=1.5), epsilon=0.5).randomised_response([0]),
            "needs a Simplex",
        ),
        (lambda: LinearSampler(Simplex(3), epsilon=1.0).randomised_response([3]), "unknown outcomes: 3"),
        (lambda: OptimalSampler(Simplex(3), epsilon=1.0).estimation_cost(np.full(3, 1 / 3), records=0), "records = 0"),
    ],
)
def test_other_refusals(call: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        call()


def test_linear_sampler_refuses_a_client_outside_its_band() -> None:
    sampler = LinearSampler(Band(np.ones(4), lower=0.5, upper=1.5), epsilon=0.5)
    for method in (sampler.output, sampler.weights, sampler.release):
        with pytest.raises(OutsideFamilyError, match="OptimalSampler"):
            method([1.0, 0.0, 0.0, 0.0])
    assert sampler.output([0.375, 0.375, 0.125, 0.125]).sum() == pytest.approx(1.0)


def test_samplers_are_values() -> None:
    one, two = OptimalSampler(Simplex(3), epsilon=1.0), OptimalSampler(Simplex(3), epsilon=1.0)
    assert one == two != LinearSampler(Simplex(3), epsilon=1.0)
    assert len({one, two, OptimalSampler(Simplex(3), epsilon=2.0)}) == 2
    assert repr(one) == "OptimalSampler(Simplex(3), epsilon=1)"
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert np.array_equal(copy.weights([0.2, 0.3, 0.5]), one.weights([0.2, 0.3, 0.5]))
    assert MollifierSampler(Simplex(2), epsilon=1.0) != MollifierSampler(Simplex(2), epsilon=1.0, reference=[0.5, 0.5])


def test_numpy_and_compiled_draw_alike() -> None:
    rng = np.random.default_rng(11)
    laws = rng.dirichlet(np.full(20, 0.3), 500)
    for family in (Simplex(20), Band(rng.random(20) + 0.1, lower=0.2, upper=3.0)):
        sampler = OptimalSampler(family, epsilon=1.5)
        uniform = SystemEntropy().integers(len(laws))
        drawn = []
        for code in Code:
            with force_implementation(code):
                drawn.append(drawing.outcomes(sampler.lattice, laws, None, uniform))
        assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.slow
def test_a_process_may_fork_after_a_release() -> None:
    """Threads are gone after each call, so a child can release too (as a pool of workers does)."""
    program = """
import multiprocessing
import numpy as np
import discreet as dc
sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=1.0)
laws = np.full((20_000, 10), 0.1)
def released(clients):
    return len(sampler.release(laws[:clients]))
released(20_000)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map_async(released, [20_000, 5, 20_000]).get(timeout=60) == [20_000, 5, 20_000]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
@pytest.mark.parametrize(
    "family", [dc.Simplex(3), dc.Band([6, 3, 1], lower=0.5, upper=1.5), dc.GaussianMixtures(1, box=(-4.0, 4.0))]
)
def test_who_is_not_known_is_drawn_from_the_reference(kind: Any, family: Any) -> None:
    sampler = kind(
        family, epsilon=1.0, **({"discretisation": dc.Cells(8)} if isinstance(family, dc.GaussianMixtures) else {})
    )
    rng, draws = np.random.default_rng(0), wide(2000, 150)
    found = np.bincount(
        [sampler.release_reference_number(rng=rng) for _ in range(draws)], minlength=sampler.carrier.size
    )
    expected = np.broadcast_to(np.asarray(sampler.reference), found.shape)
    assert np.abs(found / draws - expected).max() < 5.0 * np.sqrt(0.25 / draws)
