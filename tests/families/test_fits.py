"""From records to a member of the family, and what it costs."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from tests.mechanisms.continuous.clients import interval_family
from tests.soaking import wide

BAND = dc.DensityBand(stats.norm(), [(-4.0, 4.0)], lower=0.3, upper=2.0)
PLANE = dc.GaussianMixtures(2)


def points_of(family: Any, p: dc.Mixture, count: int, rng: np.random.Generator) -> Any:
    """Draws of p inside the family's space."""
    x = p.draw(2 * count, rng)
    return x[np.isfinite(family.log_reference(x))][:count]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "fit"), [
    (interval_family(), None),
    (interval_family(), dc.families.HistogramFit()),
    (interval_family(), dc.families.HistogramFit(7)),
    (interval_family(), dc.families.KernelFit()),
    (interval_family(), dc.families.MixtureFit(20)),
    (dc.LaplaceMixtures(1), None),
    (dc.LaplaceMixtures(12), None),
    (dc.LaplaceMixtures(12), dc.families.KernelFit()),
    (PLANE, None),
    (PLANE, dc.families.HistogramFit()),
    (BAND, None),
    (BAND, dc.families.KernelFit()),
    (BAND, dc.families.KernelFit(0.05)),
], ids=str)  # fmt: skip
def test_fits_are_members(family: Any, fit: Any) -> None:
    """No warning: pytest turns one into an error."""
    centre = np.zeros((1, family.dim))
    centre[0, 0] = 0.9
    kernel = "laplace" if isinstance(family, dc.LaplaceMixtures) else "gaussian"
    records = points_of(family, dc.Mixture([1.0], centre, kernel=kernel), 150, np.random.default_rng(0))
    p = family.law(records=records[:, 0] if family.dim == 1 else records, fit=fit)
    sampler = dc.OptimalSampler(family, epsilon=1.0, discretisation=dc.Points(2000, seed=0) if family.dim > 3 else None)
    assert np.shape(sampler.release(p)) == (() if family.dim == 1 else (family.dim,))
    if family.dim <= 3:
        assert float(sampler.output(p).divergence("tv")) <= sampler.risk("tv").value + 1e-6


def test_the_mixture_fit_learns_the_law() -> None:
    """With more records the fit gets closer to the truth, and its output to the output of the truth by no more than 2/r."""
    family = interval_family()
    truth = family.mixture([0.25, 0.75], [-1.0, 0.8])
    sampler = dc.OptimalSampler(family, epsilon=2.0)
    exact = sampler.output(truth)
    x = np.linspace(-4.0, 4.0, 4001)
    moved, distance = [], []
    for count in (100, 10_000):
        fitted = family.law(records=points_of(family, truth, count, np.random.default_rng(1))[:, 0])
        law = sampler.output(fitted)
        distance.append(0.5 * float(np.abs(fitted.pdf(x) - truth.pdf(x)).sum()) * 0.002)  # type: ignore[attr-defined]
        moved.append(0.5 * float(np.abs(law.pdf(x) - exact.pdf(x)).sum()) * 0.002)
        bound = 2.0 / max(float(law.scale), float(exact.scale)) * distance[-1]
        assert moved[-1] <= bound + 1e-4  # [paper, Prop. 4.1]
        assert sampler.sensitivity(fitted) == pytest.approx(2.0 / float(law.scale))
    assert distance[1] < 0.5 * distance[0]
    assert distance[1] < 0.02


def test_the_histogram_has_the_frequencies_of_its_cells() -> None:
    family = dc.DensityBand(lambda x: np.ones_like(x), [(0.0, 1.0)], lower=0.0, upper=4.0)
    records = np.array([0.1, 0.1, 0.3, 0.9])
    p = family.law(records=records, fit=dc.families.HistogramFit(4))
    assert isinstance(p.bins, int)  # type: ignore[attr-defined]
    law = dc.OptimalSampler(family, epsilon=3.0).output(p)
    assert law.mass == pytest.approx(1.0, abs=1e-9)
    density = np.exp(p.log_density(np.array([[0.1], [0.3], [0.6], [0.9]])))
    assert density == pytest.approx([2.0, 1.0, 0.0, 1.0], rel=1e-6)


def test_the_cost_of_a_histogram_is_a_bound() -> None:
    """With confidence 0.95, the output of the histogram is that close to the output of the binned truth."""
    family = interval_family()
    sampler = dc.OptimalSampler(family, epsilon=1.0)
    truth = family.mixture([1.0], [0.7])
    rng = np.random.default_rng(3)
    misses = 0
    for _ in range(20):
        records = points_of(family, truth, 400, rng)[:, 0]
        p = family.law(records=records, fit=dc.families.HistogramFit(12))
        cells = p.partition  # type: ignore[attr-defined]
        nodes = cells.nodes_in_cells(6)
        shares = (np.exp(truth.log_density(nodes.x.reshape(-1, 1))).reshape(nodes.weights.shape) * nodes.weights).sum(
            axis=1
        )
        binned = dc.families.HistogramFit(12).law(family, records[:, None])
        binned.heights = shares / shares.sum() / cells.masses
        one, other = sampler.output(p), sampler.output(binned)
        x, width = np.linspace(-3.999, 3.999, 8000, retstep=True)
        moved = 0.5 * float(np.abs(one.pdf(x) - other.pdf(x)).sum()) * float(width)
        misses += moved > float(sampler.estimation_cost(p, records=400))
    assert misses <= 3


def test_nearest_member_is_nearest() -> None:
    """Of the members tried, none is closer in any divergence; and a member is its own nearest."""
    family = interval_family()
    stranger = stats.norm(1.5, 0.6)
    nearest = dc.mechanisms.nearest_member(family, stranger)
    assert float(nearest.mass_error) < 1e-8
    ratio = nearest.relative(family.nodes.x.reshape(-1, 1))
    assert ratio.max() <= family.bounds.upper * (1 + 1e-9)
    x = np.linspace(-4.0, 4.0, 20_001)
    p = stranger.pdf(x) / (stranger.cdf(4.0) - stranger.cdf(-4.0))
    for name in ("tv", "hellinger", "le_cam"):
        divergence = dc.divergence(name)
        own = float(nearest.divergence(name))
        for centre in (0.5, 1.0):
            q = family.mixture([1.0], [centre])
            member = q.pdf(x) / (q.pdf(x).sum() * 0.0004)
            assert own <= float(divergence(p * 0.0004, member * 0.0004)) + 1e-6
    inside = family.mixture([1.0], [0.3])
    assert dc.mechanisms.nearest_member(family, inside).divergence("tv") == pytest.approx(0.0, abs=1e-7)


def test_kernels_are_pulled_inside_the_radius() -> None:
    p = PLANE.law(records=[[3.0, 4.0], [0.1, 0.2]], fit=dc.families.KernelFit())
    assert isinstance(p, dc.Mixture)
    assert p.means == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.2]]))
    assert math.hypot(*p.means[0]) <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", wide([None, 0.05, 1e-3, 1e-6], [None, 1e-3]))
@pytest.mark.parametrize("family", [
    BAND,
    dc.DensityBand(stats.norm(), lower=0.0, upper=1.5),
    pytest.param(dc.DensityBand(stats.multivariate_normal([0.0, 0.0]), lower=0.5, upper=3.0), marks=pytest.mark.soak),
    dc.DensityBand(stats.multivariate_normal(np.zeros(5)), lower=0.5, upper=3.0),
    interval_family(),
], ids=str)  # fmt: skip
def test_kernel_fits_lie_in_the_band_everywhere(family: Any, bandwidth: float | None) -> None:
    """At the records themselves, which are on no node, and all around them; and their mass is one."""
    rng = np.random.default_rng(5)
    records = 0.7 * rng.standard_normal((40, family.dim))
    p = family.law(records=records, fit=dc.families.KernelFit(bandwidth))
    around = (records[:, None, :] + (bandwidth or 0.3) * rng.standard_normal((40, 50, family.dim))).reshape(
        -1, family.dim
    )
    x = np.concatenate([records, around, family.draw(2000, rng)])
    x = x[np.isfinite(family.log_reference(x))]
    ratio = np.exp(p.log_density(x) - family.log_reference(x))
    mass = p.mass_between(*family.space) if isinstance(p, dc.Mixture) else 1.0
    assert ratio.max() <= family.bounds.upper * mass * (1 + 1e-9)
    assert ratio.min() >= family.bounds.lower * mass * (1 - 1e-9)
    if family.dim <= 3:
        law = dc.OptimalSampler(family, epsilon=1.0).output(p)  # no warning, which pytest would turn into an error
        assert float(law.mass) == pytest.approx(mass, abs=2e-3)
        dc.LinearSampler(family, epsilon=1.0).release(p)


def test_a_narrow_kernel_fit_is_near_its_records_and_not_the_reference() -> None:
    """Moved into the band by clipping, it keeps what it can: nearly all that the band allows sits around the records."""
    p = BAND.law(records=[1.0], fit=dc.families.KernelFit(1e-3))
    ratio = p.pdf([1.0, 1.2, -2.0]) / BAND.pdf([1.0, 1.2, -2.0])  # type: ignore[attr-defined]
    assert ratio == pytest.approx([BAND.bounds.upper, BAND.bounds.upper, BAND.bounds.lower])
