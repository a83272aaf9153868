"""What is released: the law of the points, by cells and by points; and 1/N for the points."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import discreet as dc
from discreet.mechanisms import _atoms as by_cells
from discreet.release import TOTAL
from tests.mechanisms.continuous.clients import fine_grid, interval_family

CLIENT = dc.Mixture([0.4, 0.6], [-0.9, 0.8])


def released(sampler: Any, p: Any, count: int, seed: int) -> NDArray[np.float64]:
    """Many reproducible samples of one client: what an experiment does, never a release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.NotPrivateWarning)
        found: NDArray[np.float64] = sampler.release([p] * count, rng=np.random.default_rng(seed))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
@pytest.mark.parametrize("discretisation", [dc.Cells(), dc.Points(3000, seed=5)], ids=["cells", "points"])
def test_released_points_follow_the_output_law(kind: Any, discretisation: Any) -> None:
    sampler = kind(interval_family(), epsilon=1.0, discretisation=discretisation)
    drawn = released(sampler, CLIENT, 3000, 1)
    x, width = fine_grid(-4.0, 4.0, 100_000)
    distribution = np.cumsum(sampler.output(CLIENT).pdf(x)) * width
    if isinstance(
        discretisation, dc.Points
    ):  # draws from 3000 shared points: compare with their own weighted distribution too
        weights = sampler.weights(CLIENT) / TOTAL
        points = sampler.points(np.arange(3000))
        order = np.argsort(points)
        steps = np.cumsum(weights[order])
        assert np.abs(steps - np.interp(points[order], x, distribution)).max() < 0.04
    else:
        assert stats.kstest(drawn, lambda v: np.interp(v, x, distribution)).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", [interval_family(), dc.GaussianMixtures(2), dc.LaplaceMixtures(3)], ids=str)
def test_cells_draw_nearly_the_optimal_law(family: Any) -> None:
    """TV between what cells draw, h W_i/mu_i on cell i, and Q*, on fresh points of h: small, and smaller with more cells."""
    centre = np.zeros((1, family.dim))
    centre[0, 0] = 0.8
    p = family.mixture([1.0], centre)
    x = family.draw(4_000, np.random.default_rng(0))
    distances = []
    for count in (200, 4000):
        sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Cells(count))
        cells = family.cells(count)
        drawn = (sampler.weights(p) / TOTAL / cells.masses)[cells.cell_numbers_of_points(x)]
        distances.append(0.5 * float(np.abs(drawn - sampler.output(p).relative(x)).mean()))
    assert distances[1] < 0.75 * distances[0]
    assert distances[1] < {1: 2e-3, 2: 0.02, 3: 0.05}[family.dim]


def test_numbers_stand_for_points() -> None:
    cells = dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0)
    p = dc.Mixture([1.0], [[0.5, 0.5]])
    numbers = cells.release_number([p] * 50)
    assert numbers.shape == (50,)
    assert np.shape(cells.points(numbers)) == (50, 2)
    assert isinstance(cells.release_number(p), int)
    assert (
        cells.family.cells(by_cells.DEFAULT_CELLS[2]).cell_numbers_of_points(np.asarray(cells.points(numbers)))
        == numbers
    ).all()


def test_shapes() -> None:
    line, plane = (
        dc.OptimalSampler(interval_family(), epsilon=1.0),
        dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=1.0),
    )
    many = dc.OptimalSampler(dc.LaplaceMixtures(7), epsilon=1.0, discretisation=dc.Points(64))
    p, q, r = CLIENT, dc.Mixture([1.0], [[0.0, 0.5]]), dc.Mixture([1.0], np.zeros((1, 7)), kernel="laplace")
    assert isinstance(line.release(p), float)
    assert line.release([p, p, p]).shape == (3,)
    assert np.shape(plane.release(q)) == (2,)
    assert plane.release([q]).shape == (1, 2)
    assert np.shape(many.release(r)) == (7,)
    assert line.weights(p).shape == (line.box.size,)
    assert line.weights([p, p]).shape == (2, line.box.size)


def test_fresh_points_differ_from_release_to_release() -> None:
    sampler = dc.OptimalSampler(dc.LaplaceMixtures(6), epsilon=1.0, discretisation=dc.Points(64))
    p = dc.Mixture([1.0], np.zeros((1, 6)), kernel="laplace")
    assert len({tuple(np.asarray(sampler.release(p))) for _ in range(20)}) == 20


def test_samplers_are_values() -> None:
    family = interval_family()
    assert dc.OptimalSampler(family, epsilon=1.0) == dc.OptimalSampler(
        interval_family(), epsilon=1.0, discretisation=dc.Cells()
    )
    assert dc.OptimalSampler(family, epsilon=1.0) != dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points())
    assert len({dc.OptimalSampler(family, epsilon=1.0), dc.OptimalSampler(family, epsilon=1.0)}) == 1
    assert repr(dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points(8, seed=1))).endswith(
        "discretisation=Points(count=8, seed=1))"
    )
    assert repr(dc.OptimalSampler(family, epsilon=1.0)).endswith("epsilon=1)")
    assert isinstance(dc.OptimalSampler(dc.GaussianMixtures(4), epsilon=1.0).discretisation, dc.Points)


def test_the_tolerances_of_the_density_form_are_paid_from_epsilon() -> None:
    """epsilon' = epsilon - log((1 + delta2)/(1 - delta1)), and the box is the one of epsilon' [paper, Section 4.1]."""
    family = interval_family()
    sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Density(delta1=0.1, delta2=0.2))
    left = 1.0 - np.log(1.2 / 0.9)
    assert np.log(sampler.constants.B / sampler.constants.b) == pytest.approx(left)
    assert float(sampler.risk("kl")) == pytest.approx(float(dc.OptimalSampler(family, epsilon=left).risk("kl")))
    assert sampler.output(CLIENT).scale == pytest.approx(
        float(dc.OptimalSampler(family, epsilon=left).output(CLIENT).scale), rel=1e-12
    )


@pytest.mark.soak
@pytest.mark.parametrize(("family", "p"), [
    (interval_family(), CLIENT),
    (dc.GaussianMixtures(2), dc.Mixture([0.5, 0.5], [[0.9, 0.0], [-0.3, 0.6]])),
], ids=["one dimension", "two dimensions"])  # fmt: skip
def test_the_bias_of_points_falls_like_one_over_their_number(family: Any, p: dc.Mixture) -> None:
    """TV between the marginal law of the released point and Q*, over the randomness of the points: N TV is about constant.

    The weights W_i/2^62 that are drawn with are averaged over seeds, by cells of the space. Against noise, what the same points
    would weigh under Q* itself is taken off (its mean is Q*(cell) exactly), and what is left is regressed on the one number that
    moves all weights together, the mass those weights happen to have (its mean is 1 exactly).
    """
    exact = dc.OptimalSampler(family, epsilon=1.0).output(p)
    cells = family.cells(12)
    repeats, sizes, distances = 400, (20, 40, 80, 160), []
    for size in sizes:
        gaps, masses = np.zeros((repeats, len(cells))), np.zeros(repeats)
        for seed in range(repeats):
            sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points(size, seed=seed))
            points = np.reshape(sampler.points(np.arange(size)), (size, family.dim))
            ideal = exact.relative(points) / size
            weights = sampler.weights(p) / TOTAL
            gaps[seed] = np.bincount(cells.cell_numbers_of_points(points), weights - ideal, minlength=len(cells))
            masses[seed] = ideal.sum() - 1.0
        slopes = masses @ gaps / (masses @ masses)
        distances.append(0.5 * float(np.abs((gaps - np.outer(masses, slopes)).mean(axis=0)).sum()))
    slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    assert -1.4 < slope < -0.7, distances
    assert distances[-1] < 0.01


def test_with_a_public_seed_points_depart_like_one_over_the_root_of_their_number() -> None:
    """TV on 12 cells between Q* and the law on one and the same points, which everybody draws from: it does not average out."""
    family = interval_family()
    exact = dc.OptimalSampler(family, epsilon=1.0).output(CLIENT)
    cells = family.cells(12)
    fine = family.cells(12 * 64)
    middles = family.chart.points_at_coordinates(0.5 * (fine.panels.lower + fine.panels.upper))
    truth = np.bincount(
        cells.cell_numbers_of_points(middles), exact.relative(middles) * fine.masses, minlength=len(cells)
    )
    sizes, distances = (64, 256, 1024, 4096), []
    for size in sizes:
        found = []
        for seed in range(20):
            sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points(size, seed=seed))
            points = np.reshape(sampler.points(np.arange(size)), (size, 1))
            weights = np.asarray(sampler.weights(CLIENT), dtype=np.float64) / TOTAL
            law = np.bincount(cells.cell_numbers_of_points(points), weights, minlength=len(cells))
            found.append(0.5 * float(np.abs(law - truth).sum()))
        distances.append(float(np.mean(found)))
    slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    assert -0.6 < slope < -0.4, distances
    assert all(distance > 3.0 / size for distance, size in zip(distances, sizes, strict=True))
