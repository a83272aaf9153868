"""The smallest worst Wasserstein-1 distance: against the programme over all mechanisms, on lines and other spaces, in whole numbers."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.accounting import profile_of
from discreet.audit import certificate, certificate_of
from discreet.ledger import Budget, Ledger
from discreet.mechanisms._transport_floor import make_metric_space, uniform_transport_floor
from discreet.release import TOTAL
from tests.mechanisms.transport.programmes import grid, over_all_mechanisms
from tests.soaking import wide

Floats = NDArray[np.float64]


def test_a_line_of_eleven() -> None:
    sampler = dc.TransportSampler(range(11), epsilon=1.0)
    assert sampler.worst == pytest.approx(3.1585, abs=5e-5)
    everybody = np.eye(11)
    own = np.max(sampler.distance(everybody, sampler.output(everybody)))
    assert own == pytest.approx(sampler.worst, rel=1e-6)
    optimal = dc.OptimalSampler(dc.Simplex(11), epsilon=1.0).output(everybody)
    assert np.max(sampler.distance(everybody, optimal)) == pytest.approx(4.3245, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(wide(12, 5)))
def test_no_mechanism_has_a_smaller_worst_case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, epsilon = int(rng.integers(2, 13)), float(rng.choice([0.1, 1.0, 3.0]))
    places = rng.permutation(np.cumsum(rng.exponential(size=k)))
    for sampler, distances in (
        (dc.TransportSampler(places, epsilon=epsilon), np.abs(places[:, None] - places)),
        _in_the_plane(rng.random((k, 2)), epsilon),
        _by_shortest_ways(rng, k, epsilon),
    ):
        optimum = over_all_mechanisms(distances, epsilon)
        assert sampler.worst == pytest.approx(optimum, rel=2e-6)
        assert sampler.bound <= optimum * (1 + 1e-9)
        reached = np.max(sampler.distance(np.eye(k), sampler.output(np.eye(k))))
        assert reached <= sampler.worst * (1 + 1e-6) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("sides", [(3, 3), (2, 5), (2, 2, 3)], ids=str)
def test_nor_on_a_grid_where_symmetry_is_used(sides: tuple[int, ...], norm: float) -> None:
    points = grid(*sides)
    distances = np.linalg.norm(points[:, None] - points, ord=norm, axis=2)
    for epsilon in (0.3, 2.0):
        sampler = dc.TransportSampler(points, norm=norm, epsilon=epsilon)
        optimum = over_all_mechanisms(distances, epsilon)
        assert sampler.worst == pytest.approx(optimum, rel=2e-6)
        assert sampler.bound <= optimum * (1 + 1e-9)
        everybody = np.eye(len(points))
        reached = np.max(sampler.distance(everybody, sampler.output(everybody)))
        assert reached <= sampler.worst * (1 + 1e-6) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_thousand_points_of_a_grid(norm: float) -> None:
    points = grid(32, 32)
    sampler = dc.TransportSampler(points, norm=norm, epsilon=1.0)
    assert sampler.bound <= sampler.worst <= sampler.bound * (1 + 1e-6)
    law = np.random.default_rng(0).dirichlet(np.full(1024, 0.05))
    assert sampler.distance(law, sampler.output(law)) <= sampler.worst
    corner = np.eye(1024)[0]
    assert sampler.distance(corner, sampler.output(corner)) <= sampler.worst * (1 + 1e-9)
    assert tuple(np.asarray(sampler.release(law))) in {tuple(point) for point in points}


def _in_the_plane(points: Floats, epsilon: float) -> tuple[dc.TransportSampler, Floats]:
    distances = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    return dc.TransportSampler(points, epsilon=epsilon), distances


def _by_shortest_ways(rng: np.random.Generator, k: int, epsilon: float) -> tuple[dc.TransportSampler, Floats]:
    lengths = rng.uniform(0.1, 1.0, (k, k))
    lengths = np.minimum(lengths, lengths.T)
    np.fill_diagonal(lengths, 0.0)
    for through in range(k):
        lengths = np.minimum(lengths, lengths[:, [through]] + lengths[through])
    return dc.TransportSampler(metric=lengths, epsilon=epsilon), lengths


def test_members_lose_nothing() -> None:
    sampler = dc.TransportSampler([3.0, 1.0, 2.0, 7.0], epsilon=1.0)
    inside = sampler.output([0.4, 0.1, 0.3, 0.2])
    assert sampler.distance(inside, sampler.output(inside)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0, 40.0])
def test_privacy_in_whole_numbers(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    for sampler in (
        dc.TransportSampler(rng.permutation(15), epsilon=epsilon),
        dc.TransportSampler(rng.random((6, 3)), epsilon=epsilon),
    ):
        size = sampler.family.size
        rows = sampler.weights(np.vstack([np.eye(size), rng.dirichlet(np.full(size, 0.3), 20)]))
        assert {sum(map(int, row)) for row in rows} == {TOTAL}
        assert certificate_of(rows.tolist(), epsilon=epsilon).holds
        assert sampler.lattice.largest_ratio <= exp_lower(epsilon)
        lower, upper = (np.asarray(bound) for bound in (sampler.lattice.lower, sampler.lattice.upper))
        assert ((lower <= rows) & (rows <= upper)).all()
        assert max(Fraction(int(a), int(b)) for a, b in zip(upper, lower, strict=True)) <= exp_lower(epsilon)


@pytest.mark.slow
def test_samples_follow_the_law_and_are_points() -> None:
    places = [30.0, 0.0, 15.0, 45.0]
    sampler = dc.TransportSampler(places, epsilon=2.0)
    law = np.array([0.7, 0.0, 0.3, 0.0])
    with pytest.warns(dc.NotPrivateWarning):
        drawn = sampler.release(np.tile(law, (20_000, 1)), rng=np.random.default_rng(0))
    shares = np.array([np.mean(drawn == place) for place in places])
    assert shares == pytest.approx(sampler.output(law), abs=0.015)
    assert sampler.weights(law) / TOTAL == pytest.approx(sampler.output(law), abs=1e-12)
    assert sampler.release(law) in places
    assert np.shape(sampler.release([law] * 3)) == (3,)
    assert sampler.release([law] * 2).dtype == np.float64
    assert dc.TransportSampler(metric=[[0, 1], [1, 0]], epsilon=1.0).release([0.5, 0.5]) in (0, 1)


@pytest.mark.soak
def test_a_thousand_points_on_a_line() -> None:
    sampler = dc.TransportSampler(range(1000), epsilon=1.0)
    assert sampler.bound <= sampler.worst <= sampler.bound * (1 + 1e-6)
    assert sampler.worst == pytest.approx(315.853, abs=0.001)


BAD: list[tuple[Any, str]] = [
    (lambda: dc.TransportSampler(epsilon=1.0), "either points .* or metric="),
    (lambda: dc.TransportSampler([1, 2], metric=[[0, 1], [1, 0]], epsilon=1.0), "one of the two"),
    (lambda: dc.TransportSampler([1, 2, 1], epsilon=1.0), "points holds 1 twice"),
    (lambda: dc.TransportSampler([1], epsilon=1.0), "1 points; it takes 2 to"),
    (lambda: dc.TransportSampler([[0, 0], [1, 1], [0, 0]], epsilon=1.0), "points has 0 and 2 twice in the same place"),
    (lambda: dc.TransportSampler([1, math.nan], epsilon=1.0), "points holds nan"),
    (lambda: dc.TransportSampler([1, 2], epsilon=0.0), r"epsilon = 0 is not in \(0, inf\)"),
    (lambda: dc.TransportSampler(metric=[[0, 1], [2, 0]], epsilon=1.0), "the same both ways"),
    (lambda: dc.TransportSampler(metric=[[0, -1], [-1, 0]], epsilon=1.0), r"metric\[0\]\[1\] = -1 is negative"),
    (lambda: dc.TransportSampler(metric=[[1, 1], [1, 0]], epsilon=1.0), "of a point from itself is 0"),
    (lambda: dc.TransportSampler(metric=[[0, 0], [0, 0]], epsilon=1.0), "at distance 0 from each other"),
    (lambda: dc.TransportSampler(metric=[[0, 1, 9], [1, 0, 1], [9, 1, 0]], epsilon=1.0), "the triangle inequality fails"),
    (lambda: dc.TransportSampler(metric=[[0, 1, 2], [1, 0, 1]], epsilon=1.0), r"metric has shape \(2, 3\)"),
    (lambda: dc.TransportSampler([[0, 0], [1, 2]], norm=3, epsilon=1.0), "norm = 3 is not one of 1 "),
    (lambda: dc.TransportSampler(metric=[[0, 1], [1, 0]], norm=1, epsilon=1.0), "norm = 1 is for points"),
    (lambda: dc.TransportSampler([[0, 0], [1, 2]], norm=cast(Any, [1]), epsilon=1.0), r"norm = \[1\] is not one of 1 "),
    (
        lambda: dc.TransportSampler([0, 1], epsilon=1.0).distance([[1, 0]] * 2, [[0, 1]] * 3),
        r"p has shape \(2, 2\) and q \(3, 2\); give as many laws",
    ),
    (lambda: dc.TransportSampler(np.arange(3000).reshape(-1, 2), epsilon=1.0), "1500 points; it takes 2 to 1,024"),
    (lambda: dc.TransportSampler(range(5000), epsilon=1.0), "5000 points; it takes 2 to 2,000 of them$"),
    (lambda: dc.TransportSampler(range(3), epsilon=1.0).release([0.5, 0.6, 0.2]), "sums to 1.3"),
    (lambda: dc.TransportSampler(range(3), epsilon=1.0).release([0.5, 0.5]), "p has"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_space_is_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        wrong()


@pytest.mark.parametrize("promise", [dc.Gaussian(1.0), dc.Approximate(1.0, delta=1e-3)], ids=str)
def test_another_promise_is_refused_by_name(promise: Any) -> None:
    with pytest.raises(dc.DiscreetError, match="TransportSampler is for pure epsilon"):
        dc.TransportSampler([0, 1, 5], privacy=promise)
    assert dc.TransportSampler([0, 1, 5], privacy=dc.Pure(2.0)).epsilon == 2.0
    with pytest.raises(dc.DiscreetError, match="pass one of the two"):
        dc.TransportSampler([0, 1, 5])


@pytest.mark.parametrize("size", [0, 1, 2])
def test_several_samples_are_refused_by_name(size: int) -> None:
    with pytest.raises(dc.DiscreetError, match=f"size = {size}: TransportSampler releases one sample"):
        dc.TransportSampler([0, 1, 5], epsilon=1.0).release([0.2, 0.3, 0.5], size=size)


@pytest.mark.parametrize(
    ("sampler", "held"),
    [
        (dc.TransportSampler([5, 0, 1], epsilon=1.0), [{5: 1.0}, {0.0: 1.0}, {np.float64(1): 1.0}]),
        (dc.TransportSampler([[5, 0], [0, 1], [2, 2]], epsilon=1.0), [{(5, 0): 1.0}, {(0.0, 1): 1.0}, {(2, 2): 1.0}]),
        (dc.TransportSampler(metric=[[0, 4, 7], [4, 0, 5], [7, 5, 0]], epsilon=1.0), [{0: 1.0}, {1: 1}, {2: 1.0}]),
    ],
    ids=["line", "plane", "metric"],
)
def test_a_dict_names_what_is_released(sampler: dc.TransportSampler, held: list[dict[Any, float]]) -> None:
    assert np.array_equal(sampler.weights(held), sampler.weights(np.eye(3)))
    assert np.array_equal(sampler.distance(held[0], held[1]), sampler.distance(np.eye(3)[0], np.eye(3)[1]))
    released = sampler.release(held[0])
    assert any(np.array_equal(released, label) for one in held for label in one)


def test_a_dict_that_names_no_point_is_refused() -> None:
    with pytest.raises(dc.DiscreetError, match=r"p has unknown outcomes: 2; outcomes are the points 0\.0, 1\.0, 5\.0"):
        dc.TransportSampler([0, 1, 5], epsilon=1.0).release({2: 1.0})
    with pytest.raises(dc.DiscreetError, match="q has unknown outcomes: '5'"):
        dc.TransportSampler([0, 1, 5], epsilon=1.0).distance({5: 1.0}, {"5": 1.0})
    with pytest.raises(dc.DiscreetError, match=r"outcomes are the points \(0.0, 1.0\), \(2.0, 2.0\)"):
        dc.TransportSampler([[0, 1], [2, 2]], epsilon=1.0).release({0: 1.0})


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
@pytest.mark.parametrize("points", [[0.0, 1.0, 2.0, 5.0], [[0.0, 0.0], [0.0, 1.0], [3.0, 1.0]]])
def test_a_large_epsilon_has_its_own_box(points: Any) -> None:
    """Not that of 30: the worst distance falls on as e^-epsilon does, and no bound is above what a sampler attains."""
    worst = {
        epsilon: dc.TransportSampler(points, epsilon=epsilon)
        for epsilon in (25.0, 30.0, 31.0, 35.0, 40.0, 60.0, 2000.0)
    }
    for one, two in [(30.0, 31.0), (31.0, 35.0), (35.0, 40.0)]:
        assert worst[two].worst == pytest.approx(worst[one].worst * math.exp(one - two), rel=1e-6)
    for epsilon, sampler in worst.items():
        assert sampler.bound <= sampler.worst
        if 30.0 < epsilon <= 40.0:
            assert sampler.worst <= sampler.bound * (1 + 1e-6)
        sure = np.eye(len(points))
        away = np.asarray(sampler.distance(sure, sampler.output(sure)))
        assert away.max() <= sampler.worst * (1 + 1e-6) + 1e-15
        rows = sampler.weights(sure)
        assert (rows.sum(axis=1) == TOTAL).all()
        bound = exp_lower(min(epsilon, 700.0))
        assert all(int(a) <= bound * int(b) for one in rows for other in rows for a, b in zip(one, other, strict=True))
    assert worst[40.0].floor.max() < 1e-17


@pytest.mark.parametrize("epsilon", [14.0, 20.0])
@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
def test_the_closed_form_for_a_large_epsilon_agrees_with_the_programme(epsilon: float) -> None:
    space = make_metric_space([0.0, 1.0, 2.0, 5.0], None, None)
    even, best = (
        uniform_transport_floor(space, math.exp(epsilon), 0.0),
        dc.TransportSampler([0.0, 1.0, 2.0, 5.0], epsilon=epsilon),
    )
    assert even.bound <= best.worst * (1 + 1e-9)
    assert best.bound <= even.value * (1 + 1e-9)
    assert even.value == pytest.approx(best.worst, rel=1e-4)


@pytest.mark.parametrize(
    "sampler",
    [
        dc.TransportSampler([30.0, 0.0, 15.0], epsilon=1.0),
        dc.TransportSampler([[5, 0], [0, 1], [2, 2]], norm=math.inf, epsilon=1.0),
        dc.TransportSampler(metric=[[0, 4, 7], [4, 0, 5], [7, 5, 0]], epsilon=1.0),
    ],
    ids=repr,
)
def test_it_goes_through_the_same_door_as_other_samplers(sampler: dc.TransportSampler, tmp_path: Path) -> None:
    """Certificates, profiles, agreements and ledgers take it; the floor that was agreed on is not searched for again."""
    assert isinstance(sampler, dc.Sampler)
    assert certificate(sampler).holds
    assert profile_of(sampler).epsilon == 1.0
    agreement = dc.Agreement.of(sampler, purpose="a trial")
    agreement.write(tmp_path / "agreed.json")
    read = dc.Agreement.read(tmp_path / "agreed.json")
    found = read.sampler()
    assert read.id == agreement.id
    assert np.array_equal(found.weights(np.eye(3)), sampler.weights(np.eye(3)))
    assert found.worst == pytest.approx(sampler.worst, rel=1e-9)
    assert "_best_floor" not in vars(found)
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0))
    first = ledger.release(found, [1.0, 0.0, 0.0], agreement=read)
    assert np.array_equal(ledger.release(found, [0.0, 1.0, 0.0], agreement=read), first)


def test_another_floor_than_the_one_agreed_on_is_refused() -> None:
    document = json.loads(dc.Agreement.of(dc.TransportSampler([0, 1, 5], epsilon=1.0)).text)
    document["own"]["parameters"]["floor"][0] *= 1.01
    with pytest.raises(dc.DiscreetError, match="has another box here than the one agreed on"):
        dc.Agreement.from_json(json.dumps(document)).sampler()
    document["family"]["size"] = 4
    with pytest.raises(dc.DiscreetError, match="the outcomes of these points by number"):
        dc.Agreement.from_json(json.dumps(document)).sampler()


@pytest.mark.parametrize(
    ("floor", "said"),
    [([0.1, 0.1], "floor has shape"), ([0.5, 0.5, 0.5], "sums to 1.5"), ([0.1, -0.1, 0.2], "negative")],
)
def test_wrong_floors(floor: list[float], said: str) -> None:
    with pytest.raises(dc.DiscreetError, match=said):
        dc.TransportSampler([0, 1, 5], epsilon=1.0, floor=floor)


def test_shares_cannot_be_estimated_from_its_samples_and_the_error_says_so() -> None:
    sampler = dc.TransportSampler([0, 1, 5], epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match=r"^TransportSampler.* is not a mechanism whose samples are known to"):
        dc.estimation.population(sampler, samples=[0, 1])
