"""A designed band on a line claims nothing about clients: whoever comes is served without a word, and risks are those of everybody."""

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, norm, uniform

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.audit import certificate
from discreet.errors import DiscreetError, ImpossibleError
from discreet.estimation import outlook, population
from discreet.estimation._inference._inversion import inversion_of
from discreet.families import HistogramFit, KernelFit, LineCells
from discreet.projection._worst_case import worst_case_on_atoms
from discreet.release import TOTAL
from discreet.tables import sample
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("error")

UNIT = dc.DensityBand(uniform(0.0, 1.0), lower=0.0, upper=20.0)
EXAMPLES = [beta(2.0, 6.0), beta(3.0, 6.0), beta(2.0, 4.0), [0.1, 0.2, 0.35]]
FOUND = dc.design(UNIT, epsilon=1.0, clients=EXAMPLES, cells=16)
NARROW = [norm(0.97, 10.0**-digits) for digits in (1, 2, 3, 4)]  # where the reference has next to nothing


def mollifier(epsilon: float = 1.0, **more: Any) -> Any:
    return dc.MollifierSampler(FOUND.family, epsilon=epsilon, **more)


@pytest.mark.parametrize(
    "sampler",
    [
        FOUND.sampler,
        dc.OptimalSampler(FOUND.family, epsilon=1.0),
        dc.OptimalSampler(FOUND.family, epsilon=1.0, discretisation=dc.Points(4096, seed=1)),
        mollifier(),
        mollifier(reference=uniform(0.0, 1.0)),
    ],
    ids=["own cells", "cells", "points", "mollifier", "around another"],
)
def test_nobody_is_outside(sampler: Any) -> None:
    """Narrow clients, among many and alone: released, described and in integers, and any two of them within e^epsilon."""
    clients = [*NARROW[:3], beta(2.0, 6.0), uniform(0.0, 1.0)]
    assert sampler.release(clients).shape == (5,)
    assert 0.0 <= sampler.release(clients[1]) <= 1.0
    assert sampler.output(clients[1]).divergence("tv") > 0.5
    rows = sampler.weights(clients)
    limit = exp_lower(1.0)
    for one, other in itertools.permutations(rows.tolist(), 2):
        assert all(Fraction(a, b) <= limit for a, b in zip(one, other, strict=True))


def test_a_band_that_does_claim_something_still_warns() -> None:
    claiming = dc.DensityBand(
        *FOUND.family.density_and_bounds_as_given[:1], lower=0.0, upper=FOUND.family.density_and_bounds_as_given[2]
    )
    with pytest.warns(dc.OutsideFamilyWarning, match="is outside"):
        dc.OptimalSampler(claiming, epsilon=1.0).release(NARROW[1])
    assert claiming != FOUND.family
    assert "any_client=True" in repr(FOUND.family)
    assert "everybody" not in repr(claiming)
    assert FOUND.family == dc.DensityBand(
        *FOUND.family.density_and_bounds_as_given[:1],
        lower=0,
        upper=FOUND.family.density_and_bounds_as_given[2],
        any_client=True,
    )
    assert not FOUND.family.contains(NARROW[1])  # which asks about the band


def test_a_claim_from_below_is_refused() -> None:
    with pytest.raises(DiscreetError, match=r"lower = 0.5 is a claim about clients; any_client=True needs lower=0"):
        dc.DensityBand(uniform(0.0, 1.0), lower=0.5, upper=2.0, any_client=True)
    with pytest.raises(DiscreetError, match="any_client = 'no' is neither True nor False"):
        dc.DensityBand(uniform(0.0, 1.0), lower=0.0, upper=2.0, any_client="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tv", "kl", "hellinger", "chi2", "renyi:2"])
def test_the_risk_is_the_largest_there_is_and_clients_come_as_near_as_they_like(name: str) -> None:
    risk = FOUND.sampler.risk(name)
    largest = dc.divergence(name).maximum
    assert (risk.value, risk.tight, risk.attained) == (largest, True, math.isinf(largest))
    assert dc.minimax_risk(FOUND.family, epsilon=1.0, divergence=name) == risk
    lost = [FOUND.sampler.output(one).divergence(name) for one in NARROW]
    assert all(first < second < largest for first, second in itertools.pairwise(lost))
    if math.isfinite(largest):
        assert lost[-1] > 0.97 * largest
    own = mollifier().risk(name)
    assert (own.value, own.tight) == (largest, math.isinf(largest))
    assert float(mollifier(reference=FOUND.family).risk(name)) == largest


def test_an_infinite_risk_is_some_density_s_own() -> None:
    """p/h = 1/(u log^2 u) for u in (0, 1/e), u even under h: on the cells e^-(j+1) < u < e^-j it has 1/(j(j+1)), and q at most B e^-j."""
    j = np.arange(1, 1_000_001, dtype=np.float64)
    mass = 1.0 / (j * (j + 1.0))
    lost = np.cumsum(mass * (np.log(mass) + j - math.log(FOUND.sampler.constants.B)))
    assert np.all(np.diff(lost[10 ** np.arange(1, 7) - 1]) > 1.5)  # without end, as the logarithm of their number
    assert np.sum(mass) == pytest.approx(1.0, abs=2e-6)
    assert FOUND.sampler.risk("kl").attained


def test_with_a_delta_the_largest_risk_is_not_the_smallest_possible() -> None:
    """A raw draw with chance delta has a total variation of 1 - delta at most."""
    sampler = dc.OptimalSampler(FOUND.family, privacy=dc.Approximate(1.0, delta=1e-4))
    assert (sampler.risk("tv").value, sampler.risk("tv").tight) == (1.0, False)


def test_no_budget_promises_everybody_anything() -> None:
    for ask in (dc.epsilon_for, dc.nu_for):
        with pytest.raises(ImpossibleError, match=r"no epsilon reaches tv = 0.9 for everybody"):
            ask(FOUND.family, divergence="tv", risk=0.9)
        assert ask(FOUND.family, divergence="tv", risk=1.0) == 0.0


def test_the_linear_mechanism_is_for_members_alone() -> None:
    with pytest.raises(DiscreetError, match="serves everybody, the linear mechanism members of a band alone"):
        dc.LinearSampler(FOUND.family, epsilon=1.0)


@pytest.mark.parametrize(("cells", "keep"), [(2, 0.0), (7, 1.0), (33, 0.01)])
def test_it_releases_by_the_cells_of_the_design(cells: int, keep: float) -> None:
    """So a list of values is served by the design on cells itself, and `worst` is attained there by a point."""
    found = dc.design(UNIT, epsilon=1.0, clients=EXAMPLES, cells=cells, keep=keep)
    line = LineCells.of_sampler(found.sampler)
    assert set(found.edges) <= set(line.edges)
    k = found.edges.size - 1
    if line.size != k:
        return  # one cell has more than half of the reference, and is halved
    np.testing.assert_allclose(line.edges, found.edges)
    laws = np.vstack([np.eye(k), np.random.default_rng(0).dirichlet(np.full(k, 0.3), 10)])
    numbered = np.empty_like(laws)
    numbered[:, line.order] = laws
    released = found.sampler.weights_on_atoms(numbered)[:, line.order] / TOTAL
    np.testing.assert_allclose(released, found.on_cells.sampler.output(laws), rtol=1e-6, atol=1e-12)
    lost = dc.divergence("tv")(np.eye(k), released[:k])
    assert float(found.worst("tv")) == pytest.approx(np.max(lost), rel=1e-6)
    least = float(np.min(found.sampler.reference))
    assert float(worst_case_on_atoms(found.sampler.constants, least, "tv")) == pytest.approx(
        float(found.worst("tv")), rel=1e-9
    )


def test_a_table_is_served_by_the_design_and_its_clients_by_their_values() -> None:
    values = np.random.default_rng(1).random(120).tolist()
    table = pl.DataFrame(
        {"who": [*(i % 40 for i in range(120)), 40], "x": [*values, 1.0]}
    )  # the last holds one end of the line
    released = sample(table, client="who", value="x", agreement=dc.Agreement.of(FOUND.sampler))
    assert released.num_rows == 41
    assert all(0.0 <= x <= 1.0 for x in released.column("sample").to_pylist())


def test_fits_are_the_records_and_not_clipped_to_a_band_that_claims_nothing() -> None:
    records = np.full(50, 0.97)
    at = np.array([[0.97]])
    histogram = FOUND.family.law(records=records, fit=HistogramFit(16)).log_density(at) - FOUND.family.log_reference(at)
    assert float(histogram[0]) > math.log(2.0 * FOUND.family.bounds.upper)
    kernel = FOUND.family.law(records=records, fit=KernelFit(0.01))
    assert math.exp(float(kernel.log_density(at)[0])) == pytest.approx(norm(0.97, 0.01).pdf(0.97))


@pytest.mark.parametrize("discretisation", [None, dc.Cells(64), dc.Points(512, seed=3)], ids=repr)
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.MollifierSampler])
def test_intervals_hold_for_whoever_is_far_outside(kind: Any, discretisation: Any) -> None:
    """On what is released exactly, without noise: point masses, mixtures of two, and laws like the examples."""
    sampler = kind(
        FOUND.family,
        epsilon=1.0,
        discretisation=FOUND.sampler.discretisation if discretisation is None else discretisation,
    )
    lines, size = inversion_of(sampler), sampler.carrier.size
    mu = np.broadcast_to(sampler.reference, size)
    rng = np.random.default_rng(5)
    clients = np.vstack(
        [
            np.eye(size)[:: max(1, size // 40)],
            np.eye(size)[[int(np.argmin(mu))]],
            rng.dirichlet(np.full(size, 0.05), 40),
        ]
    )
    q = sampler.weights_on_atoms(clients) / TOTAL
    assert (clients <= lines.high(mu, q) * (1 + 1e-9)).all()
    assert not lines.low(mu, q).any()
    events = rng.random((30, size)) < 0.3
    p, seen, masses = clients @ events.T, q @ events.T, mu @ events.T
    assert (lines.least(masses, seen) <= p + 1e-12).all()
    assert (p <= lines.most(masses, seen) + 1e-12).all()


def test_an_estimate_assumes_nothing_of_clients_and_foretells_so() -> None:
    """Everybody sits in the rarest cell: the intervals of its share reach as far, which a band of members would rule out."""
    number = int(np.argmin(FOUND.sampler.reference))
    line = LineCells.of_sampler(FOUND.sampler)
    law = np.zeros((1, line.size))
    law[0, number] = 1.0
    counts = np.round(1e6 * FOUND.sampler.weights_on_atoms(law)[0] / TOTAL).astype(np.int64)
    found = population(FOUND.sampler, counts=counts)
    place = int(np.flatnonzero(line.order == number)[0])
    assert found.finest is not None
    assert found.finest.law.high[place] == 1.0
    assert (found.law.low == 0.0).all()
    assert found.largest_bias == 1.0
    assert found.bounds.upper == pytest.approx(1.0 / float(np.min(FOUND.sampler.reference)))
    assert outlook(FOUND.sampler, mechanism="optimal", clients=1000).band > 0.4
    on_points = dc.OptimalSampler(FOUND.family, epsilon=1.0, discretisation=dc.Points(512, seed=3))
    said = [doubt for doubt in population(on_points, samples=np.full(50, 0.2)).doubts if "points" in doubt]
    assert len(said) == 1
    assert "e+" not in said[0]


def test_examples_on_cells_are_reweighted_until_they_explain_the_samples() -> None:
    found = dc.design(UNIT, epsilon=3.0, clients=[beta(2.0, 9.0), beta(9.0, 2.0)], cells=12)
    line = LineCells.of_sampler(found.sampler)
    laws = np.empty((2, line.size))
    laws[:, line.order] = found.certificate.examples.dense_laws()
    counts = np.round(1e5 * (np.array([0.8, 0.2]) @ found.sampler.weights_on_atoms(laws)) / TOTAL).astype(np.int64)
    resting = population(found.sampler, counts=counts, examples=laws, bins=6).reweighted
    assert resting is not None
    assert resting.weights == pytest.approx([0.8, 0.2], abs=0.01)
    assert resting.law.shape == resting.debiased.shape == (6,)
    assert resting.law.sum() == pytest.approx(1.0)
    for wrong, words in ((np.ones((2, 5)), "examples"), (np.full((2, line.size), np.nan), "examples")):
        with pytest.raises(DiscreetError, match=words):
            population(found.sampler, counts=counts, examples=wrong)
    with pytest.raises(DiscreetError, match="use bins="):
        population(found.sampler, counts=[3, 4], edges=[0.0, 0.5, 1.0], examples=laws)
    on_points = dc.OptimalSampler(found.family, epsilon=3.0, discretisation=dc.Points(64, seed=0))
    with pytest.raises(DiscreetError, match=r"by which .* does not release"):
        population(on_points, samples=[0.5], examples=laws)


def test_the_certificate_holds_for_any_clients_whatever() -> None:
    made = certificate(FOUND.sampler)
    assert made.box is not None
    lower, upper = made.box
    assert all(Fraction(high, low) <= exp_lower(1.0) for low, high in zip(lower, upper, strict=True))


@pytest.mark.parametrize("keep", wide([0.0, 0.5, 1.0], [0.0, 1.0]))
@pytest.mark.parametrize("epsilon", wide([1e-9, 0.01, 3.0, 9.0], [1e-9, 3.0, 9.0]))
@pytest.mark.parametrize(
    "clients",
    [[[0.3]], [beta(2.0, 5.0)], [[0.0, 1.0]] * 5, [norm(0.5, 1e-4)], [[0.2], [0.7]]],
    ids=["one value", "one density", "identical, at the ends", "a spike", "two points"],
)
@pytest.mark.parametrize("name", ["kl", "tv"])
def test_examples_that_say_little_or_too_much(clients: Any, epsilon: float, keep: float, name: str) -> None:
    """One of them, identical ones, points: `value` is what its own sampler costs them, and everybody else is served too."""
    found = dc.design(UNIT, epsilon=epsilon, clients=clients, cells=8, keep=keep, divergence=name)
    assert 0.0 <= found.bound <= found.value * (1 + 1e-12) + 1e-15
    assert found.value - found.bound <= max(1e-4 * found.value, 1e-6)
    laws = found.certificate.examples.dense_laws()
    assert float(np.mean(dc.divergence(name)(laws, found.on_cells.sampler.output(laws)))) == pytest.approx(
        found.value, rel=1e-6, abs=1e-9
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.errors.UnresolvedWarning)  # of nodes, where `output` describes a law
        rows = found.sampler.weights([norm(0.03, 0.001), beta(5.0, 1.0), uniform(0.9, 0.05)])
    assert (rows.max(axis=0) <= math.exp(epsilon) * rows.min(axis=0) + 1).all()
    assert rows.min() > 0
    assert dc.Agreement.from_json(dc.Agreement.of(found.sampler).text).sampler() == found.sampler
