"""Clients with features between the nodes: resolved where they say of themselves where they are narrow, else told.

The truth is known in closed form: a spike on a set that the reference hardly sees is clipped away, so the law released for
a P + (1 - a) spike is that of P, its scale is a times that of P, and nearly all of the spike's mass is lost.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import discreet as dc
from discreet.families._continuous import bound_on_sampled_mass_error
from discreet.families._densities import as_density
from discreet.families._integration import Features, split_panels_with_parents_near_features
from discreet.mechanisms._atoms import CellAtoms
from discreet.research import BoostedSampler, Training
from tests.mechanisms.continuous.clients import interval_family
from tests.soaking import wide

CENTRE, WIDTH = 0.12345678, 1e-5
SMOOTH = dc.Mixture([1.0], [0.0])
SPIKED = dc.Mixture([0.5, 0.5], [0.0, CENTRE], [1.0, WIDTH])
NARROW: dict[str, Any] = {
    "mixture": SPIKED,
    "its density": SPIKED.pdf,
    "laplace": dc.Mixture([0.5, 0.5], [0.0, CENTRE], [1.0, WIDTH], kernel="laplace"),
    "scipy mixture": stats.Mixture(
        [stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=CENTRE, sigma=WIDTH)], weights=[0.5, 0.5]
    ),
    "table": dc.families.Tabulated(
        [-4.0, CENTRE - WIDTH, CENTRE + WIDTH, 4.0], [0.125, 0.5 / (2 * WIDTH), 0.5 / (4.0 - CENTRE - WIDTH) / 2]
    ),
}


def quiet(sampler: Any, p: Any) -> Any:
    """The output of a client outside the family, of which nothing is said to be unresolved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.OutsideFamilyWarning)
        return sampler.output(p)


@pytest.mark.parametrize("what", NARROW)
@pytest.mark.parametrize("many", [False, True], ids=["alone", "in a batch"])
def test_a_spike_is_seen(what: str, many: bool) -> None:
    sampler = dc.OptimalSampler(interval_family(), epsilon=1.0)
    p = NARROW[what]
    law = quiet(sampler, [p, SMOOTH] if many else p)
    assert np.ravel(law.divergence("tv"))[0] > 0.49
    assert law.mass_checked
    assert np.max(law.mass_error) < (
        1e-3 if many and what == "table" else 1e-7
    )  # batches are not cut along a table's jumps
    known = as_density(p, 1).mass_between(*interval_family().space)  # type: ignore[attr-defined]
    assert np.ravel(law.mass)[0] == pytest.approx(known, rel=float(np.max(law.mass_error)) + 1e-12)


def test_the_law_of_a_spiked_client_is_that_of_the_rest() -> None:
    sampler = dc.OptimalSampler(interval_family(), epsilon=1.0)
    spiked, smooth = quiet(sampler, SPIKED), sampler.output(SMOOTH)
    assert spiked.scale == pytest.approx(0.5 * float(smooth.scale), rel=1e-4)
    assert spiked.pdf([-2.0, 0.5, 3.0]) == pytest.approx(smooth.pdf([-2.0, 0.5, 3.0]), rel=1e-3)
    lost = 0.5 / SPIKED.mass_between(
        *interval_family().space
    )  # of the spike all, and of the rest where q is below (1 - lost) p
    x = np.linspace(-4.0, 4.0, 200_001)
    rest = (1.0 - lost) * SMOOTH.pdf(x) / SMOOTH.mass_between(*interval_family().space)
    below = float(np.maximum(rest - smooth.pdf(x), 0.0).mean()) * 8.0
    assert spiked.divergence("tv") == pytest.approx(lost + below, abs=1e-4)


CENTRES = [(0.3, 0.2, 0.1), (0.4, 0.0, 0.0), (0.4, -1e-5, 0.0), (0.0, 0.0, 0.3)]


@pytest.mark.slow
@pytest.mark.parametrize("family", [
    dc.GaussianMixtures(2), dc.GaussianMixtures(2, box=(-3.0, 4.0)), dc.GaussianMixtures(3), dc.LaplaceMixtures(2),
    dc.DensityBand(stats.multivariate_normal([0.0, 0.0]), lower=0.0, upper=4.0),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("centre", wide(CENTRES, CENTRES[2:]), ids=str)
def test_a_spike_in_more_dimensions_is_seen(family: Any, centre: tuple[float, ...]) -> None:
    """Also on the line where the angle of polar coordinates begins anew, and on their axis."""
    means = np.stack([np.zeros(family.dim), np.array(centre)[: family.dim]])
    p = dc.Mixture([0.5, 0.5], means, [1.0, 1e-4])
    law = quiet(dc.OptimalSampler(family, epsilon=1.0), p)
    assert float(law.divergence("tv")) > 0.49
    assert law.mass_checked
    assert float(law.mass_error) < 1e-3


def test_mass_beyond_every_node_is_told() -> None:
    """Half of this client lies where the reference has nothing; its mass gives it away."""
    sampler = dc.OptimalSampler(dc.GaussianMixtures(1), epsilon=1.0)
    far = dc.Mixture([0.5, 0.5], [0.0, 100.0])
    for p in (far, [SMOOTH, far]):
        with pytest.warns(dc.errors.UnresolvedWarning, match=r"a mass of 1 .* of which nodes saw 0\.5"):
            law = quiet(sampler, p)
        assert np.max(law.mass_error) > 0.49


def test_a_spike_in_many_dimensions_is_told() -> None:
    family = dc.LaplaceMixtures(5)
    p = dc.Mixture([0.5, 0.5], [[0.0] * 5, [0.1] * 5], [1.0, 1e-4], kernel="laplace")
    with pytest.warns(dc.errors.UnresolvedWarning), pytest.warns(dc.OutsideFamilyWarning):
        law = dc.OptimalSampler(family, epsilon=1.0).output(p)
    assert float(law.mass_error) > 0.49


def test_a_function_that_says_nothing_of_itself_is_called_an_estimate() -> None:
    """Nothing can see this spike; what is reported is wrong, and says that it may be."""
    law = dc.OptimalSampler(interval_family(), epsilon=1.0).output(lambda x: SPIKED.pdf(x))
    assert float(law.divergence("tv")) < 0.1
    assert not law.mass_checked
    assert "nodes can miss a spike" in repr(law)
    checked = dc.OptimalSampler(interval_family(), epsilon=1.0).output(SMOOTH)
    assert checked.mass_checked
    assert "checked against" in repr(checked)


@pytest.mark.parametrize("discretisation", [dc.Cells(), dc.Points(2000, seed=0)], ids=str)
def test_a_spike_between_cells_and_points_is_found_by_its_place(discretisation: Any) -> None:
    with pytest.warns(dc.OutsideFamilyWarning, match="runs from .* to 897"):
        dc.OptimalSampler(interval_family(), epsilon=1.0, discretisation=discretisation).release(SPIKED)
    with pytest.raises(dc.OutsideFamilyError, match="not be linear"):
        dc.LinearSampler(interval_family(), epsilon=1.0, discretisation=discretisation).release(SPIKED)


def test_cells_hold_what_a_narrow_client_has_in_them() -> None:
    """The cell of a spike gets as much as a cell may, also where a client is zero at every node of the cells."""
    sampler = dc.OptimalSampler(interval_family(), epsilon=1.0)
    cells = interval_family().cells(1024)
    own = int(cells.cell_numbers_of_points(np.array([[CENTRE]]))[0])
    for p in (SPIKED, dc.families.Tabulated([CENTRE - WIDTH, CENTRE + WIDTH], [1.0])):
        with pytest.warns(dc.OutsideFamilyWarning):
            weights = sampler.weights(p)
        assert weights[own] == np.asarray(sampler.lattice.upper)[own]


def test_the_baseline_says_what_its_nodes_missed() -> None:
    training = Training(rounds=1, samples=20, batch=10, epochs=1, width=3, burn_in=5, sampling="exact")
    law = BoostedSampler(interval_family(), epsilon=1.0, training=training).output([SPIKED, SMOOTH], seeds=[0, 1])
    with pytest.warns(dc.errors.UnresolvedWarning, match=r"p\[0\] has a mass of 0.9999"):
        law.divergence("tv")


# densities above three dimensions need not be normalised either


@pytest.mark.slow
@pytest.mark.parametrize("factor", [50.0, 1e-200])
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler])
@pytest.mark.parametrize("count", [3, 50, 5_000])
def test_a_member_times_anything_is_a_member_in_many_dimensions(factor: float, kind: Any, count: int) -> None:
    """No warning, and the same integers: pytest turns a warning into an error."""
    family = dc.LaplaceMixtures(5)
    member = family.mixture([1.0], [[1.0, 0.0, 0.0, 0.0, 0.0]])  # as far out as members go
    for seed in range(wide(10, 3)):
        sampler = kind(family, epsilon=1.0, discretisation=dc.Points(count, seed=seed))
        found = sampler.weights(lambda x: factor * member.pdf(x))
        assert found.tolist() == pytest.approx(sampler.weights(member).tolist(), rel=1e-9)
    assert float(kind(family, epsilon=1.0).output(lambda x: factor * member.pdf(x)).divergence("tv")) < 0.3


def test_an_outsider_times_anything_is_told_in_many_dimensions() -> None:
    family = dc.LaplaceMixtures(5)
    for factor in (1.0, 50.0, 1e-6):
        with pytest.warns(dc.OutsideFamilyWarning, match="outside"):
            dc.OptimalSampler(family, epsilon=1.0).release(lambda x: factor * np.exp(-8.0 * np.square(x).sum(axis=1)))  # noqa: B023
        with pytest.raises(dc.OutsideFamilyError):
            dc.LinearSampler(family, epsilon=1.0).output(lambda x: factor * np.exp(-8.0 * np.square(x).sum(axis=1)))  # noqa: B023


def test_luck_bounds_the_average_over_draws() -> None:
    """The least even member of a band sits at both bounds; its average over draws of h is that close to one."""
    band = dc.Band([0.2, 0.8], lower=0.25, upper=4.0).bounds
    share = (1.0 - band.lower) / (band.upper - band.lower)
    rng = np.random.default_rng(0)
    for count in (100, 1000, 100_000):
        hits = rng.binomial(count, share, size=10_000) / count
        averages = band.lower + (band.upper - band.lower) * hits
        slack = bound_on_sampled_mass_error(band, count)
        assert (band.upper / averages <= band.upper * (1.0 + slack)).all()
        assert (band.lower / averages >= band.lower * (1.0 - slack)).all()
    assert bound_on_sampled_mass_error(band, 100_000) < 0.05


# what laws say of themselves


@pytest.mark.parametrize("p", [
    dc.Mixture([0.3, 0.7], [-1.0, 0.5], [0.2, 2.0]),
    dc.Mixture([0.3, 0.7], [-1.0, 0.5], [0.2, 2.0], kernel="laplace"),
    dc.families.Tabulated([-1.0, 0.0, 0.5, 3.0], [1.0, 2.0, 0.3]),
    dc.families.Tabulated([-1.0, 0.0, 0.5, 3.0], [1.0, 2.0, 0.3, 0.0]),
], ids=["gaussian", "laplace", "edges", "points"])  # fmt: skip
@pytest.mark.parametrize(("low", "high"), [(-0.7, 0.3), (-5.0, 1.0), (0.1, np.inf), (-np.inf, np.inf)])
def test_masses_in_a_box(p: Any, low: float, high: float) -> None:
    exact = p.mass_between(np.array([low]), np.array([high]))
    ends = np.clip([low, high], -40.0, 40.0)
    breaks = [x for x in (-1.0, 0.0, 0.5, 3.0) if ends[0] < x < ends[1]]
    found = integrate.quad(lambda x: float(p.pdf(x)), *ends, points=breaks, limit=400)[0]
    assert exact == pytest.approx(found, rel=1e-8)


def test_masses_in_a_box_keep_their_digits_in_the_tails() -> None:
    far = dc.Mixture([1.0], [0.0])
    assert far.mass_between(np.array([30.0]), np.array([31.0])) == pytest.approx(float(stats.norm.sf(30.0)), rel=1e-9)
    density = as_density(stats.norm(), 1)
    assert density.mass_between(np.array([30.0]), np.array([31.0])) == pytest.approx(  # type: ignore[attr-defined]
        float(stats.norm.sf(30.0)), rel=1e-9
    )


def test_masses_of_tables_in_the_plane() -> None:
    table = dc.families.Tabulated([[0.0, 1.0, 3.0], [0.0, 2.0]], [[1.0, 2.0], [0.5, 1.0], [0.0, 4.0]])
    low, high = np.array([0.5, 0.25]), np.array([2.0, 1.5])
    x, y = (np.linspace(a, b, 601) for a, b in zip(low, high, strict=True))
    middle = np.stack(np.meshgrid(0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1]), indexing="ij"), axis=-1)
    assert table.mass_between(low, high) == pytest.approx(
        float(table.pdf(middle).mean()) * float(np.prod(high - low)), rel=1e-5
    )


@pytest.mark.parametrize("family", [interval_family(), dc.GaussianMixtures(2), dc.GaussianMixtures(3)], ids=str)
def test_panels_are_split_where_features_are(family: Any) -> None:
    """The parts fill the panels they are parts of, and a panel that holds a feature's place is no wider than a few of its scales."""
    rng = np.random.default_rng(0)
    features = Features(rng.uniform(-0.9, 0.9, (5, family.dim)), np.array([1e-6, 1e-4, 0.01, 0.5, 3.0]))
    panels, owner = split_panels_with_parents_near_features(
        features, family.panels, family.chart, widest=4.0, most=10**6
    )
    shares = np.bincount(owner, panels.volume, minlength=len(family.panels))
    assert shares == pytest.approx(family.panels.volume, rel=1e-12)
    places = family.chart.coordinates_of_points(features.places)
    for place, scale in zip(places, features.scales, strict=True):
        holding = np.all((panels.lower <= place) & (place <= panels.upper), axis=1)
        assert holding.any()
        sides = (panels.upper - panels.lower)[holding] * family.chart.axis_stretches(place)
        assert (sides <= 4.0 * scale).all()
    few, _ = split_panels_with_parents_near_features(
        features, family.panels, family.chart, widest=4.0, most=len(family.panels) + 3
    )
    assert len(few) <= len(family.panels) + 3


def test_members_need_no_finer_panels() -> None:
    """So that what they cost does not change."""
    for family in (interval_family(), dc.GaussianMixtures(2), dc.LaplaceMixtures(1), dc.GaussianMixtures(3)):
        member = family.mixture([0.5, 0.5], np.stack([np.zeros(family.dim), np.full(family.dim, 0.3)]))
        assert len(family.refine_panels(family.panels, [member], 10**7)[0]) == len(family.panels)


# a reference may be narrow too


@pytest.mark.parametrize(("density", "box"), [
    (SPIKED, (-4.0, 4.0)),
    (SPIKED, None),
    (dc.Mixture([0.5, 0.5], [[0.0, 0.0], [0.3, 0.4]], [1.0, 1e-4]), [(-4.0, 4.0)] * 2),
    (stats.norm(0.3, 1e-7), (-4.0, 4.0)),
], ids=["interval", "line", "plane", "only a spike"])  # fmt: skip
def test_a_narrow_reference_has_all_of_its_mass(density: Any, box: Any) -> None:
    """Bounds are read relative to h as it is given: half of its mass unseen would be a factor of two in both."""
    family = dc.DensityBand(density, box, lower=0.5, upper=2.0)
    assert family.bounds.upper == pytest.approx(2.0, rel=1e-3)
    cells = family.cells(64)
    inside = family.draw(20_000, np.random.default_rng(0))
    shares = np.bincount(cells.cell_numbers_of_points(inside), minlength=len(cells)) / len(inside)
    assert np.abs(shares - cells.masses).max() < 0.01


def test_a_reference_whose_mass_is_not_seen_is_refused() -> None:
    spiked = dc.Mixture([0.5, 0.5], [0.0, 0.3], [1.0, 1e-17])
    with pytest.raises(dc.DiscreetError, match=r"has a mass of 0.9999.* of which its integral sees 0.4999"):
        dc.DensityBand(spiked, (-4.0, 4.0), lower=0.5, upper=3.0)


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("bare", [False, True])
def test_masses_on_the_cells_of_a_square(width: float, bare: bool) -> None:
    """A normal law as wide as a third of a cell to four cells: products of its distribution function, whatever two nodes an axis see."""
    family = dc.DensityBand(lambda x: np.ones(len(x)), box=[(0.0, 1.0)] * 2, lower=0.0, upper=1e6)
    carrier = CellAtoms(family, dc.Cells(256))
    panels = carrier.partition.panels
    for centre in np.random.default_rng(1).uniform(0.3, 0.7, (5, 2)):
        law = dc.Mixture([1.0], centre[None, :], width / 16)
        density = as_density((lambda x, law=law: law.pdf(x)) if bare else law, 2)
        rows = carrier.laws_on_atoms_with_outside_clients((density,))[0].rows[0]
        exact = np.prod(
            np.diff(stats.norm.cdf(np.stack([panels.lower, panels.upper]), centre, width / 16), axis=0)[0], axis=1
        )
        assert 0.5 * np.abs(rows - exact / exact.sum()).sum() < 2e-3


@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.MollifierSampler])
@pytest.mark.parametrize("p", [stats.norm(0.3, 1e-9), dc.Mixture([1.0], [[0.2]], 1e-8)], ids=["scipy", "mixture"])
def test_a_client_where_the_reference_has_no_mass_is_named(kind: Any, p: Any) -> None:
    """Its masses on all cells are 0; that was an error of `math.log`."""
    family = dc.DensityBand(lambda x: (np.abs(x) > 0.5) * 1.0, (-1, 1), lower=0, upper=3.0)
    sampler = kind(family, epsilon=1.0)
    for release in (sampler.weights, sampler.release):
        with pytest.raises(dc.DiscreetError, match="has no mass where the reference of"):
            release(p)
