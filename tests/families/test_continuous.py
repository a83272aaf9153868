"""References, their constants and their draws: closed forms against high precision, drawn points against the density."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import discreet as dc
from discreet.families._continuous import ContinuousFamily
from discreet.families._kernel_mixtures import GAUSSIAN, lower_bound_of_log_least_mass
from discreet.privacy.tradeoff import constants_of_optimal_box
from tests.mechanisms.continuous.clients import fine_grid, interval_family, published_envelope

FAMILIES = [
    dc.GaussianMixtures(1),
    dc.GaussianMixtures(1, radius=2.0, scale=0.3, box=(-1.0, 3.0)),
    dc.GaussianMixtures(2, scale=0.7),
    dc.GaussianMixtures(2, box=[(-2.0, 3.0), (-1.0, 1.5)]),
    dc.GaussianMixtures(3, radius=0.5),
    dc.LaplaceMixtures(1, radius=0.7),
    dc.LaplaceMixtures(2, scale=0.5, box=[(-1.0, 2.0), (-math.inf, 1.0)]),
    dc.LaplaceMixtures(3),
    dc.DensityBand(lambda x: 3.0 * np.exp(-(np.abs(x) ** 3)), [(-2.0, math.inf)], lower=0.1, upper=2.0),
    dc.DensityBand(published_envelope, [(-math.inf, math.inf)] * 2, lower=0.0, upper=1.0),
    dc.DensityBand(stats.norm(3.0, 0.01), lower=0.5, upper=2.0),
    dc.DensityBand(stats.Normal(mu=-100.0, sigma=5.0), lower=0.5, upper=2.0),
    dc.DensityBand(stats.cauchy(1.0, 2.0), lower=0.5, upper=2.0),
    dc.DensityBand(stats.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]), lower=0.5, upper=2.0),
    dc.DensityBand(dc.families.Tabulated([0.0, 1.0, 2.0, 4.0], [1.0, 3.0, 0.5]), lower=0.1, upper=0.4),
    dc.DensityBand(
        dc.families.Tabulated([[0.0, 1.0, 3.0], [0.0, 2.0]], [[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]), lower=0.0, upper=2.0
    ),
]
by_name = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: repr(family)[:60])


def radial_integral(dim: int, radius: float, scale: float) -> mpmath.mpf:
    """The integral of h~ over R^dim by mpmath, in polar coordinates; no closed form in it."""
    with mpmath.workdps(30):
        sphere = 2 * mpmath.pi ** (mpmath.mpf(dim) / 2) / mpmath.gamma(mpmath.mpf(dim) / 2)
        rho, s = mpmath.mpf(radius), mpmath.mpf(scale)

        def integrand(r: mpmath.mpf) -> mpmath.mpf:
            return r ** (dim - 1) * mpmath.exp(-(max(r - rho, 0) ** 2) / (2 * s**2))

        peak = (rho + mpmath.sqrt(rho**2 + 4 * (dim - 1) * s**2)) / 2
        return (
            sphere
            * mpmath.quad(integrand, [0, rho, peak, peak + 4 * s, peak + 12 * s, mpmath.inf])
            / ((2 * mpmath.pi * s**2) ** (mpmath.mpf(dim) / 2))
        )


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 10, 50, 100])
def test_gaussian_constant_in_closed_form(dim: int) -> None:
    for radius, scale in ((1.0, 1.0), (0.5, 2.0), (3.0, 0.7)):
        expected = float(radial_integral(dim, radius, scale))
        assert dc.GaussianMixtures(dim, radius=radius, scale=scale).bounds.upper == pytest.approx(expected, rel=1e-12)


def test_constants_of_the_papers_interval() -> None:
    """The published constants of the one-dimensional experiment: c2, and b with the paper's tolerances 1e-5."""
    family = interval_family()
    with mpmath.workdps(30):
        middle = 2 + 2 * mpmath.quad(lambda x: mpmath.exp(-(x**2) / 2), [0, 3])
        expected = middle / mpmath.sqrt(2 * mpmath.pi) / (mpmath.ncdf(3) - mpmath.ncdf(-5))
    assert family.bounds.upper == pytest.approx(float(expected), rel=1e-14)
    assert family.bounds.upper == pytest.approx(1.797611872757, abs=5e-13)
    for epsilon, b in ((0.5, 0.7348288224), (1.0, 0.5112895388), (2.0, 0.2195819262)):
        sampler = dc.OptimalSampler(family, epsilon=epsilon, discretisation=dc.Density(delta1=1e-5, delta2=1e-5))
        assert sampler.constants.b == pytest.approx(b, abs=5e-11)
        shift = math.log((1 + 1e-5) / (1 - 1e-5))
        assert sampler.constants.gamma == pytest.approx(
            constants_of_optimal_box(family.bounds, epsilon - shift).gamma, rel=1e-14
        )


@by_name
def test_the_reference_is_a_probability_on_its_nodes(family: ContinuousFamily) -> None:
    assert family.nodes.masses.sum() == pytest.approx(1.0, abs={1: 1e-8, 2: 1e-7, 3: 1e-5}[family.dim])
    assert family.decomposable
    assert 0.0 <= family.bounds.lower < 1.0 < family.bounds.upper


@pytest.mark.slow
@by_name
def test_draws_follow_the_reference(family: ContinuousFamily) -> None:
    """Counts of exact draws in the cells of the partition, and of points drawn through the partition, by chi-squared."""
    rng = np.random.default_rng(5)
    coarse = family.cells(40)
    for points in (family.draw(40_000, rng), _through_cells(family, 40_000, rng)):
        assert np.isfinite(family.log_reference(points)).all()
        counts = np.bincount(coarse.cell_numbers_of_points(points), minlength=len(coarse))
        enough = coarse.masses * 40_000 >= 5
        expected = coarse.masses[enough] * counts[enough].sum() / coarse.masses[enough].sum()
        assert stats.chisquare(counts[enough], expected).pvalue > 1e-4


def _through_cells(family: ContinuousFamily, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    fine = family.cells(300)
    return fine.draw_points_in_cells(rng.choice(len(fine), size=count, p=fine.masses), rng)


@by_name
def test_cells_are_a_partition(family: ContinuousFamily) -> None:
    cells = family.cells(100)
    assert len(cells) >= 100
    assert cells.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert cells.masses.max() <= 1.01 / 100
    numbers = np.arange(len(cells))
    assert (
        cells.cell_numbers_of_points(cells.draw_points_in_cells(numbers, np.random.default_rng(0))) == numbers
    ).mean() > 0.99  # edges belong to two


def test_one_dimensional_draws_have_the_right_distribution() -> None:
    for family in (interval_family(), dc.GaussianMixtures(1, radius=2.0, scale=0.3, box=(-1.0, 3.0))):
        assert family.box is not None
        (low, high) = family.box[0]
        x, width = fine_grid(low, high, 200_000)
        distribution = np.cumsum(family.pdf(x)) * width
        drawn = family.draw(20_000, np.random.default_rng(3))[:, 0]
        assert stats.kstest(drawn, lambda v: np.interp(v, x, distribution)).pvalue > 1e-3  # noqa: B023


@pytest.mark.parametrize("dim", [2, 5, 40])
def test_radii_of_gaussian_draws(dim: int) -> None:
    family = dc.GaussianMixtures(dim, radius=1.3, scale=0.6)
    radii = np.sqrt(np.square(family.draw(20_000, np.random.default_rng(dim))).sum(axis=1))
    r, width = fine_grid(0.0, float(radii.max()) + 1.0, 100_000)
    log_density = (dim - 1) * np.log(r) - 0.5 * np.square(np.maximum(0.0, r - 1.3) / 0.6)
    density = np.exp(log_density - log_density.max())
    distribution = np.cumsum(density) / density.sum()
    assert stats.kstest(radii, lambda v: np.interp(v, r + 0.5 * width, distribution)).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("box", [(-4.0, 4.0), (-1.0, 1.0), (-1.0, 3.0), [(-2.0, 3.0), (-0.5, 0.5)]])
def test_the_normaliser_of_a_box_is_the_infimum_over_centres(box: Any) -> None:
    """c2 = (integral of the free envelope over the box)/(least mass a centre leaves in it), and every member is below c2 h."""
    family = dc.GaussianMixtures(2, box=box)
    assert family.box is not None
    angles = np.linspace(0.0, 2.0 * math.pi, 100_001)
    centres = np.stack([np.cos(angles), np.sin(angles)])
    sides = [
        stats.norm.cdf(high - c) - stats.norm.cdf(low - c) for (low, high), c in zip(family.box, centres, strict=True)
    ]
    least = float(np.prod(sides, axis=0).min())
    (x, dx), (y, dy) = (fine_grid(low, high, 1500) for low, high in family.box)
    beyond = np.maximum(0.0, np.hypot(x[:, None], y) - 1.0)
    envelope = float(np.exp(-0.5 * np.square(beyond)).sum()) * dx * dy / (2.0 * math.pi)
    assert family.bounds.upper == pytest.approx(envelope / least, rel=2e-6)
    nodes = family.nodes.x.reshape(-1, 2)
    for angle in angles[::2500]:
        member = family.mixture([1.0], [[math.cos(angle), math.sin(angle)]])
        ratio = np.exp(member.log_density(nodes) - family.log_reference(nodes))
        assert ratio.max() <= family.bounds.upper * (family.nodes.masses.ravel() @ ratio) * (1 + 1e-6)


def directions(dim: int) -> NDArray[np.float64]:
    """Unit vectors, about evenly spaced."""
    place = np.arange(20_000) + 0.5
    turn = math.pi * (1.0 + math.sqrt(5.0)) * place
    if dim == 2:
        return np.stack([np.cos(turn), np.sin(turn)], axis=1)
    height = 1.0 - place / 10_000
    around = np.sqrt(1.0 - np.square(height))
    return np.stack([around * np.cos(turn), around * np.sin(turn), height], axis=1)


MISSED = {  # boxes whose least mass a search over centres misses
    "a corner": (0.45, [(-0.26, 0.99), (-0.7, 1.22), (-0.44, math.inf)]),
    "two ends alike": (0.57, [(-1.37, 0.4), (-0.42, math.inf), (-0.08, 0.37)]),
    "narrow": (0.63, [(-0.18, 0.3), (-0.2, 0.33), (-0.74, math.inf)]),
}


@pytest.mark.parametrize("name", MISSED)
def test_members_on_a_box_stay_in_the_band(name: str) -> None:
    """The search stopped where some members exceed the bound by 0.5 % and more; each is largest, relative to h, near its centre."""
    radius, box = MISSED[name]
    family = dc.GaussianMixtures(3, radius=radius, box=box)
    earlier = dc.GaussianMixtures(3, radius=radius, box=box, normaliser="searched")
    low, high = np.array(box).T
    centres = radius * directions(3)
    log_masses = GAUSSIAN.log_mass_between(low - centres, high - centres).sum(axis=1)
    largest = -math.inf
    for stretch in (0.9, 1.0, 1.1, 1.5):
        x = np.clip(stretch * centres, low, high)
        log_densities = -0.5 * np.square(x - centres).sum(axis=1) - 1.5 * math.log(2.0 * math.pi) - log_masses
        largest = max(largest, float((log_densities - family.log_reference(x)).max()))
    assert math.exp(largest) <= family.bounds.upper
    assert math.exp(largest) > 1.005 * earlier.bounds.upper  # the reference is the same
    assert (family.normaliser, earlier.normaliser) == ("proved", "searched")
    assert family != earlier


BOXES = {
    "a corner": [(0.6, 3.0), (0.5, 4.0), (-0.7, 1.3)],
    "a face": [(-0.3, 3.0), (-5.0, 5.0), (-5.0, 5.0)],
    "a cube": [(-1.0, 1.0)] * 3,
    "nearly a cube": [(-0.9, 1.1)] * 3,
    "tiny": [(0.1, 0.11), (-0.02, -0.01), (-0.01, 0.01)],
    "huge": [(-40.0, 60.0), (-50.0, 30.0), (-60.0, 70.0)],
    "off centre": [(3.0, 5.0), (-1.0, 1.0), (-6.0, -2.0)],
    "half spaces": [(-math.inf, 0.4), (-0.5, math.inf), (-math.inf, math.inf)],
    "an orthant": [(0.0, math.inf)] * 3,
}


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", BOXES)
def test_the_least_mass_in_a_box_is_bounded_from_below(name: str, dim: int) -> None:
    low, high = np.array(BOXES[name][:dim]).T
    for radius in (0.1, 1.0, 4.0):
        centres = radius * directions(dim)
        found = float(GAUSSIAN.log_mass_between(low - centres, high - centres).sum(axis=1).min())
        spacing = 5e-4 if dim == 2 else 2e-2  # of the directions
        slope = float(np.abs(low_or_high_slope(low, high, radius)).sum())
        bound = lower_bound_of_log_least_mass(low, high, radius)
        assert found - radius * spacing * slope - 1e-8 <= bound <= found + 1e-12


def low_or_high_slope(low: NDArray[np.float64], high: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """The steepest slope of log mass along each axis, which is at an end of [-radius, radius], by differences."""
    ends = np.array([[-radius], [radius]])
    step = 1e-5
    masses = [GAUSSIAN.log_mass_between(low - ends - side, high - ends - side) for side in (-step, step)]
    return np.asarray(np.abs(masses[1] - masses[0]).max(axis=0) / (2.0 * step))


def test_a_normaliser_is_named_only_where_there_are_two() -> None:
    for family in (
        dc.GaussianMixtures(3),
        dc.GaussianMixtures(1, box=(-1.0, 3.0)),
        dc.GaussianMixtures(2, box=(-3.0, 4.0)),
    ):
        again = dc.GaussianMixtures(family.dim, box=family.box, normaliser="searched")
        assert family.normaliser is again.normaliser is None
        assert (family, family.bounds) == (again, again.bounds)
        assert "normaliser" not in repr(again)
    with pytest.raises(dc.DiscreetError, match=r"normaliser = 'best' is not one of proved, searched"):
        dc.GaussianMixtures(2, box=(-3.0, 4.0), normaliser="best")


@pytest.mark.slow
@pytest.mark.parametrize("box", [None, (-1.0, 4.0), (-math.inf, 2.0)])
def test_laplace_members_are_in_the_band(box: object) -> None:
    family = dc.LaplaceMixtures(1, radius=0.8, scale=0.6, box=box)
    x = family.nodes.x.reshape(-1, 1)
    extremes = []
    for centre in np.linspace(-0.8, 0.8, 41):
        ratio = np.exp(dc.Mixture([1.0], [centre], 0.6, kernel="laplace").log_density(x) - family.log_reference(x))
        ratio /= dc.OptimalSampler(family, epsilon=1.0).output(family.mixture([1.0], [centre])).mass
        extremes += [ratio.min(), ratio.max()]
    assert family.bounds.lower * (1 - 1e-6) <= min(extremes)
    assert max(extremes) <= family.bounds.upper * (1 + 1e-6)
    if box is None:
        assert family.bounds.upper == pytest.approx(math.exp(0.8 / 0.6))
        assert dc.LaplaceMixtures(100, radius=0.8, scale=0.6).bounds == family.bounds  # no dimension in it


def test_a_reference_that_is_not_normalised_rescales_the_bounds() -> None:
    shape = lambda x: 5.0 * np.exp(-np.abs(x))  # noqa: E731
    family = dc.DensityBand(shape, [(-math.inf, math.inf)], lower=0.05, upper=0.2)
    assert family.bounds.lower == pytest.approx(0.5, rel=1e-9)
    assert family.bounds.upper == pytest.approx(2.0, rel=1e-9)
    assert family.pdf([0.0, 1.0]) == pytest.approx([0.5, 0.5 / math.e], rel=1e-9)


def test_old_and_new_scipy_distributions_make_the_same_family() -> None:
    old = dc.DensityBand(stats.norm(1.0, 2.0), lower=0.5, upper=2.0)
    new = dc.DensityBand(stats.Normal(mu=1.0, sigma=2.0), lower=0.5, upper=2.0)
    x = np.linspace(-5.0, 7.0, 9)
    assert old.pdf(x) == pytest.approx(new.pdf(x), rel=1e-12)
    assert old.pdf(x) == pytest.approx(stats.norm(1.0, 2.0).pdf(x), rel=1e-12)


def test_a_public_law_in_many_dimensions() -> None:
    family = dc.DensityBand(stats.multivariate_normal(np.zeros(7)), lower=0.5, upper=2.0)
    assert family.dim == 7
    assert family.draw(5, np.random.default_rng(0)).shape == (5, 7)
    assert family.bounds == dc.DensityBand(dc.Mixture([1.0], np.zeros((1, 7))), lower=0.5, upper=2.0).bounds


def test_families_are_values() -> None:
    assert dc.GaussianMixtures(2) == dc.GaussianMixtures(dim=2, radius=1.0, scale=1.0)
    assert dc.GaussianMixtures(2) != dc.LaplaceMixtures(2)
    assert len({dc.GaussianMixtures(2), dc.GaussianMixtures(2), dc.GaussianMixtures(3)}) == 2
    assert repr(interval_family()) == "GaussianMixtures(dim=1, radius=1, scale=1, box=[(-4.0, 4.0)])"
    density = stats.norm()
    assert dc.DensityBand(density, lower=0.5, upper=2.0) == dc.DensityBand(density, lower=0.5, upper=2.0)


def test_tabulated_densities() -> None:
    constant = dc.families.Tabulated([0.0, 1.0, 3.0], [2.0, 1.0])
    assert constant.pdf([-0.1, 0.5, 2.0, 3.5]).tolist() == [0.0, 2.0, 1.0, 0.0]
    linear = dc.families.Tabulated([[0.0, 1.0], [0.0, 2.0]], [[0.0, 2.0], [1.0, 3.0]])
    assert linear.pdf([[0.5, 1.0], [1.0, 2.0], [2.0, 0.0]]) == pytest.approx([1.5, 3.0, 0.0])
    family = dc.DensityBand(constant, lower=0.1, upper=0.5)
    assert family.bounds.upper == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("low", [33.0, 36.0])
def test_laplace_draws_far_to_the_right_are_those_of_the_left_mirrored(low: float) -> None:
    """Beyond 36 scales all points were at the far end: the distribution function is 1 there, up to rounding."""
    left, right = (dc.LaplaceMixtures(box=box) for box in ((-45.0, -low), (low, 45.0)))
    found, mirrored = (family.draw(1000, np.random.default_rng(1)).mean() for family in (right, left))
    assert found == pytest.approx(low + 1.0, abs=0.2)
    assert found == pytest.approx(-mirrored, abs=0.1)


@pytest.mark.parametrize(
    ("density", "count", "distribution"),
    [
        (
            lambda x: 1.0 + 300.0 * np.exp(-(((x - 0.377) / 0.003) ** 2)),
            2,
            lambda x: x + 0.45 * math.sqrt(math.pi) * special.erf((x - 0.377) / 0.003),
        ),
        (lambda x: 1.0 + 0.99 * np.sin(2000.0 * x), 8, lambda x: x - 0.99 * np.cos(2000.0 * x) / 2000.0),
        (lambda x: np.where(x < 0.3137, 1.0, 9.0), 8, lambda x: np.where(x < 0.3137, x, 9.0 * x - 8.0 * 0.3137)),
    ],
)
def test_masses_of_coarse_cells_are_those_of_the_reference(density: Any, count: int, distribution: Any) -> None:
    """They were up to .46 of total variation off, beside a stated risk of 0; those of one rule still are, and are told."""
    family = dc.DensityBand(density, box=(0.0, 1.0), lower=0.0, upper=9.0, any_client=True)
    cells = family.cells(count)
    expected = distribution(cells.panels.upper[:, 0]) - distribution(cells.panels.lower[:, 0])
    assert np.abs(cells.masses - expected / expected.sum()).sum() < 3e-6


def test_cells_that_are_too_coarse_for_the_reference_are_told() -> None:
    family = dc.DensityBand(lambda x: 1.0 + 0.99 * np.sin(2000.0 * x), box=(0.0, 1.0), lower=0.0, upper=9.0)
    with pytest.warns(dc.errors.UnresolvedWarning, match=r"varies within cells.*take many more cells, or Points"):
        family.cells(8, "one rule")
    family.cells(2048)


def test_refined_masses_are_said_to_be_off_by_their_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning told the error of the coarser masses they were compared with: .06 where they were right to 1e-6."""
    spike = dc.DensityBand(
        lambda x: 1.0 + 300.0 * np.exp(-((x - 0.377) ** 2).sum(axis=1) / 1e-4), [(0, 1)] * 2, lower=0, upper=9
    )
    cells = spike.cells(4)
    assert cells.is_refined
    bumps = [
        special.erf((cells.panels.upper - 0.377) / 0.01)[:, axis]
        - special.erf((cells.panels.lower - 0.377) / 0.01)[:, axis]
        for axis in (0, 1)
    ]
    expected = cells.panels.volume + 300.0 * math.pi * 1e-4 / 4.0 * bumps[0] * bumps[1]
    assert np.abs(cells.masses - expected / expected.sum()).sum() < 3e-6

    disc = dc.DensityBand(
        lambda x: np.where(np.hypot(x[:, 0] - 0.4, x[:, 1] - 0.4) < 0.013, 1e4, 1.0), [(0, 1)] * 2, lower=0, upper=9
    )
    assert disc.cells(100).is_refined
    monkeypatch.setattr("discreet.families._integration._COARSE_CELLS", 1e-4)
    with pytest.warns(dc.errors.UnresolvedWarning, match=r"varies within cells.*off by 0\.001 in"):
        disc.cells(101)


def test_smooth_references_are_resolved_by_few_cells() -> None:
    for family in FAMILIES:
        family.cells(4 if family.dim == 1 else 30)


def test_a_known_mass_that_the_integral_misses_is_told() -> None:
    with pytest.warns(dc.errors.UnresolvedWarning, match=r"mass of 1 in box.*sees 0\.98"):
        dc.DensityBand(stats.gamma(0.1), lower=0.5, upper=2.0)


@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@pytest.mark.filterwarnings("ignore::discreet.errors.UnresolvedWarning")
def test_references_with_heavy_tails_are_drawn_without_warnings_of_numpy() -> None:
    """At the end of a half-line the chart's slope is infinite, and 0 times infinity was taken for a density."""
    for reference in (stats.pareto(0.3), stats.levy(), stats.t(0.5)):
        sampler = dc.OptimalSampler(dc.DensityBand(reference, lower=0.0, upper=9.0), epsilon=1.0)
        assert np.isfinite([sampler.release(reference) for _ in range(20)]).all()
        sampler.output([reference, stats.cauchy()])


@pytest.mark.parametrize("place", [0.3753655336124144, 0.3439696069660398, 0.5002, 0.9687])
def test_the_mass_of_a_reference_with_a_jump_at_the_very_edge_of_a_panel(place: float) -> None:
    """No node lies within 1.3 % of a panel's end: the mass, and with it bounds and risks, was up to 7e-4 off."""

    def step(x: Any) -> Any:
        return np.where(np.asarray(x) < place, 0.1, 10.0)

    family = dc.DensityBand(step, (0.0, 1.0), lower=0.0, upper=64.0)
    assert family.bounds.upper == pytest.approx(64.0 * (0.1 * place + 10.0 * (1.0 - place)), rel=1e-8)


def test_a_reference_in_the_plane_with_a_jump_at_the_very_edge_of_a_panel() -> None:
    family = dc.DensityBand(lambda x: np.where(x[:, 1] < 0.5835, 3.0, 0.2), [(0, 1)] * 2, lower=0.0, upper=64.0)
    assert family.bounds.upper == pytest.approx(64.0 * (3.0 * 0.5835 + 0.2 * 0.4165), rel=1e-4)
