"""T7: the minimax total variation of mixtures on a line, between a closed form from below and an independent integral from above."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace, norm

import discreet as dc
from discreet.design._floors import band_of_floor
from discreet.design.mixtures import (
    Bracket,
    FineCells,
    KernelsOnCells,
    ShiftedDivergence,
    minimax_bracket,
    worst_kernel_divergence_upper_bound,
)
from discreet.errors import DiscreetError


def two_kernels(radius: float, epsilon: float) -> float:
    """E_e^eps(N(radius, 1) || N(-radius, 1))/(1 + e^eps): no sampler serves these two better."""
    distance = 2.0 * radius
    excess = norm.cdf(distance / 2 - epsilon / distance) - math.exp(epsilon) * norm.cdf(
        -distance / 2 - epsilon / distance
    )
    return float(excess / (1.0 + math.exp(epsilon)))


def integrated(found: Bracket, density: object, epsilon: float) -> float:
    """max(|(p - E m)_+|, |(m - p)_+|) by a fine sum."""
    x = np.linspace(-30.0, 30.0, 600_001)
    inside = (x > found.floor.nodes[0]) & (x < found.floor.nodes[-1])
    piece = np.clip(np.searchsorted(found.floor.nodes, x) - 1, 0, found.floor.value.size - 1)
    log_m = found.floor.value[piece] + found.floor.slope[piece] * (x - found.floor.nodes[piece])
    m = np.where(inside, np.exp(np.where(inside, log_m, 0.0)), 0.0)
    p = density(x)  # type: ignore[operator]
    width = x[1] - x[0]
    over, under = np.maximum(p - math.exp(epsilon) * m, 0.0).sum(), np.maximum(m - p, 0.0).sum()
    return float(max(over, under) * width)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_gaussian_mixtures_are_as_hard_as_their_two_outermost_kernels(epsilon: float) -> None:
    """Far below the formula for the enclosing band, and below what its optimal sampler attains."""
    family = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0)
    found = minimax_bracket(family, epsilon=epsilon, cells=160)
    assert found.upper - found.lower <= 1e-3 * found.upper
    assert found.lower - 1e-9 <= two_kernels(1.0, epsilon) <= found.upper
    assert found.upper < float(dc.OptimalSampler(family, epsilon=epsilon).risk("tv"))
    for centre in np.linspace(-1.0, 1.0, 7):
        assert integrated(found, norm(centre, 1.0).pdf, epsilon) <= found.upper + 1e-6


@pytest.mark.slow
def test_laplace_mixtures() -> None:
    found = minimax_bracket(dc.LaplaceMixtures(dim=1, radius=1.0, scale=1.0), epsilon=1.0, cells=200)
    assert found.upper - found.lower <= 1e-3 * found.upper
    assert 0.1057 < found.lower < found.upper < 0.1061
    for centre in (-1.0, 0.3, 1.0):
        assert integrated(found, laplace(centre, 1.0).pdf, 1.0) <= found.upper + 1e-5


@pytest.mark.slow
def test_units_do_not_matter() -> None:
    one = minimax_bracket(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0), epsilon=1.0, cells=120)
    other = minimax_bracket(dc.GaussianMixtures(dim=1, radius=5.0, scale=5.0), epsilon=1.0, cells=120)
    assert other.lower == pytest.approx(one.lower, rel=1e-4)
    assert repr(one).startswith("Bracket(0.137")


def test_what_is_refused() -> None:
    with pytest.raises(DiscreetError, match="with dim=1"):
        minimax_bracket(dc.GaussianMixtures(dim=2), epsilon=1.0)
    with pytest.raises(DiscreetError, match="with dim=1"):
        minimax_bracket(dc.Simplex(3), epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="take more cells than 20"):
        minimax_bracket(dc.GaussianMixtures(dim=1, radius=3.0, scale=1.0), epsilon=1.0, cells=20)
    for kind in (dc.GaussianMixtures, dc.LaplaceMixtures):
        for box in ((5.0, 6.0), (-6.0, -5.0)):
            with pytest.raises(DiscreetError, match=r"more than 3\.5 scales beyond all centres"):
                minimax_bracket(kind(1, radius=1.0, box=box), epsilon=0.3)
    with pytest.raises(DiscreetError, match=r"holds no mass of a kernel of scale 0\.6 at -16"):
        minimax_bracket(dc.GaussianMixtures(1, radius=16.0, box=(17.0, 24.0)), epsilon=0.5, cells=20)


def test_where_kernels_change_too_much_the_upper_side_is_not_finite() -> None:
    """Mirror images; a cell in which a kernel grows past every float gave an error about a number that nobody passed."""
    for box in ((5.0, 6.2), (-6.2, -5.0)):
        low, high = dc.minimax_risk(
            dc.LaplaceMixtures(1, radius=2.0, box=box), epsilon=0.5, divergence="kl", bracket=True
        ).bracket
        assert 0.0 <= low <= high


FAMILIES = [
    dc.GaussianMixtures(dim=1, radius=0.5),
    dc.GaussianMixtures(dim=1, radius=2.0, box=(-3.0, 4.0)),
    dc.LaplaceMixtures(dim=1, radius=1.0),
    dc.LaplaceMixtures(dim=1, radius=1.0, box=(-2.0, 2.5)),
]


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("name", ["kl", "hellinger", "chi2"])
def test_no_kernel_costs_more_than_the_upper_side(family: Any, name: str) -> None:
    """The densities themselves, summed over 200,000 points for centres of any kind, under a floor that suits nobody in particular."""
    line, f, epsilon = KernelsOnCells(family, 40), dc.divergence(name), 1.0
    floor = line.kernel_laws_on_cells(np.array([-0.4, 0.1])).mean(axis=0) * 0.6
    worst = worst_kernel_divergence_upper_bound(line, floor, epsilon, f)
    fine = FineCells.from_floor(line, floor)
    assert fine.masses.sum() == pytest.approx(0.6)
    sampler = dc.OptimalSampler(band_of_floor(fine.masses, epsilon, dc.Simplex(fine.masses.size)), epsilon=epsilon)
    centres = np.append(np.random.default_rng(0).uniform(-family.radius, family.radius, 5), [family.radius])
    q = sampler.output(fine.kernel_laws(centres))
    x = np.linspace(float(line.edges[0]), float(line.edges[-1]), 200_001)
    x = 0.5 * (x[1:] + x[:-1])
    cell = np.searchsorted(fine.edges, x, side="right") - 1
    place = (x - fine.edges[cell]) / (fine.edges[cell + 1] - fine.edges[cell])
    inside = np.exp(fine.left[cell] + place * (fine.right[cell] - fine.left[cell]))
    costs = []
    for centre, masses in zip(centres, q, strict=True):
        released, held = masses[cell] * inside, np.exp(line.log_density(x, np.array([centre])))
        assert released.sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-4)
        costs.append(float(np.sum(f.perspective(held, released)) * (x[1] - x[0])))
    assert max(costs) <= worst + 1e-5
    reached = fine.divergence_upper_bounds(
        centres, 0.0, q, ShiftedDivergence(f, {"kl": 1.0, "hellinger": 0.0, "chi2": 2.0}[name])
    )
    assert (np.array(costs) <= reached + 1e-5).all()
    assert reached == pytest.approx(costs, rel=2e-3, abs=5e-4)  # chords on cells as coarse as these


@pytest.mark.slow
@pytest.mark.parametrize("family", [dc.GaussianMixtures(dim=1, radius=0.5), dc.LaplaceMixtures(dim=1)], ids=repr)
@pytest.mark.parametrize("name", ["kl", "hellinger", "chi2"])
def test_smooth_divergences_are_bracketed_too(family: Any, name: str) -> None:
    """Q* of the enclosing band was the upper side before: 38 % and 46 % above the lower one, for KL."""
    lower, upper = dc.minimax_risk(family, epsilon=1.0, divergence=name, bracket=True).bracket
    assert 0.995 * upper <= lower <= upper
    assert upper < 0.75 * float(dc.OptimalSampler(family, epsilon=1.0).risk(name))


def test_a_divergence_without_an_upper_side_of_its_own_has_that_of_the_band() -> None:
    family = dc.LaplaceMixtures(dim=1)
    found = dc.minimax_risk(family, epsilon=1.0, divergence="reverse_kl", bracket=True)
    assert found.bracket[1] == float(dc.OptimalSampler(family, epsilon=1.0).risk("reverse_kl"))


@pytest.mark.filterwarnings("error")
def test_brackets_that_floats_cannot_hold_are_refused() -> None:
    with pytest.raises(DiscreetError, match="epsilon = 800 is more than 700"):
        minimax_bracket(dc.GaussianMixtures(), epsilon=800.0, cells=20)
    far = dc.GaussianMixtures(radius=16.0, box=[(17.0, 24.0)])
    with pytest.raises(DiscreetError, match=r"holds no mass of a kernel of scale 0\.6 at -16"):
        minimax_bracket(far, epsilon=0.01, cells=20)


@pytest.mark.parametrize("kernel", [dc.GaussianMixtures, dc.LaplaceMixtures])
def test_masses_of_kernels_keep_their_digits_on_either_side_of_the_centre(kernel: Any) -> None:
    lines = [KernelsOnCells(kernel(1, radius=2.5, scale=1.0, box=box), 40) for box in ((5.6, 7.0), (-7.0, -5.6))]
    right, left = (
        line.kernel_laws_on_cells(sign * np.array([-2.5, 0.0, 2.5])) for line, sign in zip(lines, (1, -1), strict=True)
    )
    np.testing.assert_allclose(right, left[:, ::-1], rtol=1e-10)
