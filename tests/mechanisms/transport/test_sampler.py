"""The smallest worst Wasserstein-1 distance: against the programme over all mechanisms, on lines and other spaces, in whole numbers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

import discreet as dc
from discreet.audit import certificate_of
from discreet.mechanisms.transport.serving import served, served_on_a_line
from discreet.numerics import exp_lower
from discreet.release import TOTAL

Floats = NDArray[np.float64]


def over_all_mechanisms(distances: Floats, epsilon: float) -> float:
    """min over m and all q_x of max_x sum_y d(x, y) q_x(y), m <= q_x <= e^epsilon m: the whole programme, nothing of the package in it."""
    k = len(distances)
    each, floor = sparse.identity(k * k), sparse.vstack([sparse.identity(k)] * k)
    column = sparse.csr_matrix((k * k, 1))
    costs = sparse.block_diag([row[None, :] for row in distances])
    rows = sparse.vstack(
        [
            sparse.hstack([floor, -each, column]),
            sparse.hstack([-math.exp(epsilon) * floor, each, column]),
            sparse.hstack([sparse.csr_matrix((k, k)), costs, -np.ones((k, 1))]),
        ]
    )
    found = linprog(
        np.eye(1, k + k * k + 1, k + k * k)[0],
        A_ub=rows.tocsr(),
        b_ub=np.zeros(2 * k * k + k),
        A_eq=sparse.hstack(
            [sparse.csr_matrix((k, k)), sparse.kron(sparse.identity(k), np.ones((1, k))), sparse.csr_matrix((k, 1))]
        ).tocsr(),
        b_eq=np.ones(k),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def test_a_line_of_eleven() -> None:
    sampler = dc.TransportSampler(range(11), epsilon=1.0)
    assert sampler.worst == pytest.approx(3.1585, abs=5e-5)
    everybody = np.eye(11)
    own = np.max(sampler.distance(everybody, sampler.output(everybody)))
    assert own == pytest.approx(sampler.worst, rel=1e-6)
    optimal = dc.OptimalSampler(dc.Simplex(11), epsilon=1.0).output(everybody)
    assert np.max(sampler.distance(everybody, optimal)) == pytest.approx(4.3245, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
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
        assert sampler.bound <= optimum * (1 + 1e-7)
        reached = np.max(sampler.distance(np.eye(k), sampler.output(np.eye(k))))
        assert reached <= sampler.worst * (1 + 1e-6) + 1e-9


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


@pytest.mark.parametrize("seed", range(30))
def test_every_client_is_served_by_the_best_transport(seed: int) -> None:
    """The walk along the line finds what the programme of transports does."""
    rng = np.random.default_rng(100 + seed)
    k, ratio = int(rng.integers(2, 20)), math.exp(float(rng.choice([0.2, 1.0, 4.0])))
    places = np.cumsum(rng.exponential(size=k))
    floor = rng.dirichlet(np.full(k, 0.5)) * rng.uniform(1 / ratio, 1.0)
    law = rng.dirichlet(np.full(k, float(rng.choice([0.05, 0.5, 5.0]))))
    distances = np.abs(places[:, None] - places)
    line, best = (
        served_on_a_line(law, np.diff(places), floor, ratio * floor),
        served(law, distances, floor, ratio * floor),
    )

    def lost(law: Floats, q: Floats) -> float:
        return float(np.abs(np.cumsum(law - q))[:-1] @ np.diff(places))

    assert line.sum() == pytest.approx(1.0, abs=1e-9)
    assert (line >= floor - 1e-12).all()
    assert (line <= ratio * floor + 1e-12).all()
    assert lost(law, line) == pytest.approx(lost(law, best), abs=1e-7)


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
    shares = np.array([(drawn == place).mean() for place in places])
    assert shares == pytest.approx(sampler.output(law), abs=0.015)
    assert sampler.weights(law) / TOTAL == pytest.approx(sampler.output(law), abs=1e-12)
    assert sampler.release(law) in places
    assert np.shape(sampler.release([law] * 3)) == (3,)
    assert sampler.release([law] * 2).dtype == np.float64
    assert dc.TransportSampler(metric=[[0, 1], [1, 0]], epsilon=1.0).release([0.5, 0.5]) in (0, 1)


@pytest.mark.slow
def test_a_thousand_points_on_a_line() -> None:
    sampler = dc.TransportSampler(range(1000), epsilon=1.0)
    assert sampler.bound <= sampler.worst <= sampler.bound * (1 + 1e-6)
    assert sampler.worst == pytest.approx(315.853, abs=0.001)


OTHER: Any = dc.TransportSampler(range(3), epsilon=1.0)
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
    (lambda: dc.TransportSampler(range(5000), epsilon=1.0), "5000 points; it takes 2 to 2,000"),
    (lambda: dc.TransportSampler(range(3), epsilon=1.0).release([0.5, 0.6, 0.2]), "sums to 1.3"),
    (lambda: dc.TransportSampler(range(3), epsilon=1.0).release([0.5, 0.5]), "p has"),
    (lambda: dc.Agreement.of(OTHER), "cannot be agreed on yet"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_space_is_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        wrong()
