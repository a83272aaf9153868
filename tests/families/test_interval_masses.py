"""Masses between edges are enclosed: every interval that claims to hold a mass is compared with 40 digits, tails included."""

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.errors import DiscreetError
from discreet.families import BoundedDensity, HistogramFit, Tabulated
from discreet.families._continuous import known_interval_masses_of_clients, panel_masses
from discreet.families._densities import _CDF_ERRORS, as_density
from discreet.families._integration import IntervalMasses
from tests.design.lines import gaussian, laplace, mixture_client, table_client

Real = Any
Tails = tuple[Real, Real]


def masses_of(given: Any, edges: Any) -> IntervalMasses:
    density: Any = as_density(given, 1)
    found = density.interval_masses(edges)
    assert isinstance(found, IntervalMasses)
    return found


def of_symmetric(below: Callable[[Real], Real]) -> Callable[..., Tails]:
    return lambda t: (below(t), below(-t))


def student(t: Real, v: Real) -> Tails:
    beyond = mpmath.betainc(v / 2, mpmath.mpf(1) / 2, 0, v / (v + t * t), regularized=True) / 2
    return (beyond, 1 - beyond) if t < 0 else (1 - beyond, beyond)


def positive(tails: Callable[..., Tails]) -> Callable[..., Tails]:
    return lambda t, *shapes: tails(t, *shapes) if t > 0 else (mpmath.mpf(0), mpmath.mpf(1))


def incomplete_beta(t: Real, a: Real, b: Real) -> Tails:
    if t >= 1:
        return mpmath.mpf(1), mpmath.mpf(0)
    return mpmath.betainc(a, b, 0, t, regularized=True), mpmath.betainc(b, a, 0, 1 - t, regularized=True)


def incomplete_gamma(t: Real, a: Real) -> Tails:
    return mpmath.gammainc(a, 0, t, regularized=True), mpmath.gammainc(a, t, mpmath.inf, regularized=True)


TAILS: dict[str, Callable[..., Tails]] = {
    "norm": of_symmetric(gaussian),
    "laplace": lambda t: (laplace(t), mpmath.exp(-t) / 2 if t > 0 else 1 - mpmath.exp(t) / 2),
    "logistic": of_symmetric(lambda t: 1 / (1 + mpmath.exp(-t))),
    "cauchy": of_symmetric(lambda t: mpmath.atan2(1, -t) / mpmath.pi),
    "uniform": lambda t: (min(max(t, mpmath.mpf(0)), mpmath.mpf(1)), min(max(1 - t, mpmath.mpf(0)), mpmath.mpf(1))),
    "expon": positive(lambda t: (-mpmath.expm1(-t), mpmath.exp(-t))),
    "weibull_min": positive(lambda t, c: (-mpmath.expm1(-(t**c)), mpmath.exp(-(t**c)))),
    "lognorm": positive(lambda t, s: (mpmath.ncdf(mpmath.log(t) / s), mpmath.ncdf(-mpmath.log(t) / s))),
    "beta": positive(incomplete_beta),
    "gamma": positive(incomplete_gamma),
    "chi2": positive(lambda t, v: incomplete_gamma(t / 2, v / 2)),
    "t": student,
}
SHAPES = {"weibull_min": 1, "lognorm": 1, "beta": 2, "gamma": 1, "chi2": 1, "t": 1}


EXTREME = {"weibull_min": 1e-2, "lognorm": 1e-3}


def test_every_distribution_that_is_taken_at_its_word_is_compared() -> None:
    assert set(_CDF_ERRORS) == {*TAILS, "Normal", "StandardNormal", "Uniform"}


@pytest.mark.parametrize("name", TAILS)
def test_a_distribution_of_scipy_between_edges_in_the_middle_and_in_both_tails(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for number in range(5):
        loc, scale = float(rng.uniform(-1.0, 1.0)), float(np.exp(rng.uniform(-6.0, 2.0)))
        shapes = [
            float(np.exp(rng.uniform(-0.5, 1.5 if name == "lognorm" else 4.0))) for _ in range(SHAPES.get(name, 0))
        ]
        shapes = shapes if number else [EXTREME.get(name, 1e3)] * len(shapes)
        given = getattr(stats, name)(*shapes, loc, scale)
        places = [given.ppf([1e-200, 1e-30, 1e-6, 0.1, 0.45, 0.5]), given.isf([0.4, 0.1, 1e-6, 1e-30, 1e-200])]
        edges = np.unique(np.concatenate([*places, given.ppf(0.5) + scale * np.array([1e-9, 1e-3])]))
        edges = edges[np.isfinite(edges)]
        found = masses_of(given, edges)
        assert found.is_proved
        assert np.median(found.high - found.low) <= 1e-8
        with mpmath.workdps(40):
            tails = [
                TAILS[name]((mpmath.mpf(float(x)) - mpmath.mpf(loc)) / mpmath.mpf(scale), *map(mpmath.mpf, shapes))
                for x in edges
            ]
            for i, ((low, low_beyond), (high, high_beyond)) in enumerate(itertools.pairwise(tails)):
                true = low_beyond - high_beyond if low > 0.5 else high - low
                assert mpmath.mpf(float(found.low[i])) <= true <= mpmath.mpf(float(found.high[i])), (shapes, edges[i])
                assert found.mass[i] == pytest.approx(float(true), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", TAILS)
def test_extreme_distances_are_enclosed_or_not_taken_at_their_word(name: str) -> None:
    """scipy's t is 0 beyond 10^154 scales, where its square overflows: its masses there were called proved."""
    shapes = [0.5, 0.75][: SHAPES.get(name, 0)]
    one = getattr(stats, name)(*shapes)
    far = np.array([1e-149, 1e-100, 1e-10, 0.5, 1e10, 1e100, 1e149])
    far = far[far <= one.support()[1]]
    found = masses_of(one, far)
    assert found.is_proved
    with mpmath.workdps(400):
        tails = [TAILS[name](mpmath.mpf(float(x)), *map(mpmath.mpf, shapes)) for x in far]
        for i, ((low, low_beyond), (high, high_beyond)) in enumerate(itertools.pairwise(tails)):
            true = low_beyond - high_beyond if low > 0.5 else high - low
            assert mpmath.mpf(float(found.low[i])) <= true <= mpmath.mpf(float(found.high[i])), far[i]
    edges = np.array([1.0, 1e92, 1e100])
    for loc, scale in ((0.0, 1e-60), (0.0, 1e-250), (-1e95, 1e-60), (0.0, 1.0), (1e-200, 1.0)):
        named = getattr(stats, name)(*shapes, loc=loc, scale=scale)
        for given in (named, getattr(stats, name)(*shapes, loc, scale)):
            assert masses_of(given, edges).is_proved == (scale == 1.0 or (name != "t" and scale == 1e-60)), (loc, scale)


@pytest.mark.parametrize("make", [mixture_client, table_client])
@pytest.mark.parametrize("seed", range(6))
def test_mixtures_and_tables_between_edges(make: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = float(10.0 ** rng.uniform(-4.0, 0.5))
    client = make(rng, float(rng.random()), width)
    near = client.given.axes[0] if make is table_client else client.given.means[:, 0]
    edges = np.unique(np.concatenate([np.linspace(0.0, 1.0, 30), near, near + 7.0 * width, near - 0.1 * width]))
    found = client.given.interval_masses(edges)
    shares = found.as_shares()
    with mpmath.workdps(340):
        values = [client.below(mpmath.mpf(float(x))) for x in edges]
        for i, (low, high) in enumerate(itertools.pairwise(values)):
            assert mpmath.mpf(float(found.low[i])) <= high - low <= mpmath.mpf(float(found.high[i]))
            share = (high - low) / (values[-1] - values[0])
            assert mpmath.mpf(float(shares.low[i])) <= share <= mpmath.mpf(float(shares.high[i]))
    assert (found.high - found.low <= 1e-9 * found.high + 1e-14).all()


def even(x: Real) -> Real:
    """The distribution function of the uniform law between the floats 0.1 and 0.7."""
    low, high = mpmath.mpf(0.1), mpmath.mpf(0.7)
    return (min(max(x, low), high) - low) / (high - low)


@pytest.mark.parametrize(("given", "below"), [
    (stats.Normal(mu=0.3, sigma=0.07), lambda x: gaussian((x - mpmath.mpf(0.3)) / mpmath.mpf(0.07))),
    (stats.Uniform(a=0.1, b=0.7), even),
], ids=["Normal", "Uniform"])  # fmt: skip
def test_distributions_of_scipy_s_new_style(given: Any, below: Callable[[Real], Real]) -> None:
    edges = np.unique(np.append(np.linspace(0.0, 1.0, 41), [0.1, 0.3, 0.7]))
    found = masses_of(given, edges)
    assert found.is_proved
    with mpmath.workdps(60):
        values = [below(mpmath.mpf(float(x))) for x in edges]
        for i, (low, high) in enumerate(itertools.pairwise(values)):
            assert mpmath.mpf(float(found.low[i])) <= high - low <= mpmath.mpf(float(found.high[i]))


def test_what_is_known_of_others() -> None:
    edges = np.linspace(-3.0, 3.0, 41)
    exact = np.diff(stats.norm.cdf(edges))
    for given in (stats.Normal(), stats.norm, stats.Mixture([stats.Normal(), stats.Normal()], weights=[0.3, 0.7])):
        found = masses_of(given, edges)
        assert found.is_proved
        assert found.mass == pytest.approx(exact, rel=1e-12)
    data = np.random.default_rng(0).normal(size=50)
    kernels = stats.gaussian_kde(data)
    found = masses_of(kernels, edges)
    assert found.is_proved
    assert found.mass == pytest.approx([kernels.integrate_box_1d(a, b) for a, b in itertools.pairwise(edges)])
    for given in (stats.beta(1e-4, 2.0), stats.gamma(a=1e6), stats.truncnorm(-1e-3, 1e-3)):
        assert not masses_of(given, edges).is_proved
    triangle = masses_of(stats.triang(0.5, -1.0, 2.0), edges)  # whose upper tail scipy does not know
    assert not triangle.is_proved
    assert triangle.mass.sum() == pytest.approx(1.0)


def spiked(_: Any, x: Any) -> Any:
    """A density with a spike that no quadrature meets."""
    return np.where(np.abs(x - 0.123456) < 5e-7, 5e5, 0.5)


def test_somebody_s_own_distribution_is_a_bare_function() -> None:
    own = type("Spiked", (stats.rv_continuous,), {"_pdf": spiked})
    given = own(a=0.0, b=1.0, name="norm")()
    assert known_interval_masses_of_clients([as_density(given, 1)], np.linspace(0.0, 1.0, 5)) == [None]


def test_a_histogram_between_edges_that_are_not_its_own() -> None:
    for family in (dc.GaussianMixtures(1, box=(-4.0, 4.0)), dc.DensityBand(stats.norm(0.0, 1.0), lower=0.0, upper=3.0)):
        law = family.law(records=np.random.default_rng(1).normal(size=60).clip(-3, 3), fit=HistogramFit(9))
        edges = np.array([-np.inf if family.box == [(-np.inf, np.inf)] else -4.0, -1.3, 0.2, 0.21, 2.0, 4.0])
        (found,) = known_interval_masses_of_clients([law], edges)
        fine = np.linspace(-4.0, 4.0, 400_001)
        middles = 0.5 * (fine[1:] + fine[:-1])
        mass = np.exp(law.log_density(middles[:, None])) * np.diff(fine)
        assert found is not None
        assert found == pytest.approx(np.histogram(middles, np.maximum(edges, -4.0), weights=mass)[0], abs=2e-4)


@pytest.mark.parametrize("width", [0.2, 1.0, 20.0])
def test_values_alone_tell_a_density_as_narrow_as_a_fifth_of_a_cell(width: float) -> None:
    family = dc.DensityBand(stats.uniform(), lower=0.0, upper=1000.0)
    partition = family.cells(64)
    for centre in np.random.default_rng(2).uniform(0.1, 0.9, 10):
        known = stats.norm(centre, width / 64)
        density = as_density(lambda x, known=known: known.pdf(x), 1)
        found = panel_masses(density, partition.panels, family.chart)
        assert found is not None
        exact = known.cdf(partition.panels.upper[:, 0]) - known.cdf(partition.panels.lower[:, 0])
        assert found.masses / found.masses.sum() == pytest.approx(exact / exact.sum(), abs=1e-8)
        assert found.error <= 1e-8


def test_a_bounded_density() -> None:
    known, edges = stats.norm(0.4, 0.1), np.linspace(0.0, 1.0, 9)
    exact = np.diff(known.cdf(edges))
    steep = 0.242 / 0.01
    for one in (BoundedDensity(known.pdf, lipschitz=steep), BoundedDensity(known, cdf=known.cdf, error=1e-9)):
        found = one.interval_masses(edges)
        assert isinstance(found, IntervalMasses)
        assert found.is_proved
        assert (found.low <= exact).all()
        assert (exact <= found.high).all()
        assert (found.high - found.low).max() <= 1e-4
    assert BoundedDensity(known, lipschitz=steep).interval_masses(np.array([0.0, np.inf])) is None
    several: list[dict[str, Any]] = [
        {},
        {"cdf": known.cdf},
        {"error": 0.1},
        {"cdf": known.cdf, "error": 0.0, "lipschitz": 1.0},
    ]
    for wrong in several:
        with pytest.raises(DiscreetError, match="either cdf= with error="):
            BoundedDensity(known, **wrong)
    for bad in (-1.0, float("nan")):
        with pytest.raises(DiscreetError, match="lipschitz"):
            BoundedDensity(known, lipschitz=bad)
    with pytest.raises(DiscreetError, match="cdf falls from"):
        BoundedDensity(known, cdf=known.sf, error=1e-9).interval_masses(edges)
    with pytest.raises(DiscreetError, match="one finite number for each"):
        BoundedDensity(known, cdf=lambda x: x[:-1], error=1e-9).interval_masses(edges)


def test_a_table_with_nothing_in_places_has_exactly_nothing_there() -> None:
    table = Tabulated([0.0, 0.25, 0.5, 0.75, 1.0], [1.0, 0.0, 2.0, 0.0])
    found = masses_of(table, np.linspace(-0.5, 1.5, 9))
    assert found.high[[0, 1, 3, 5, 6, 7]].tolist() == [0.0] * 6
