"""Estimates are unbiased, intervals cover as often as they say, bands always, and bad input is named."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize, stats

import discreet as dc
from discreet.estimation import exact_variance, nearest_law, population
from discreet.estimation._inference._intervals import clopper_pearson_interval_ends
from discreet.mechanisms import MECHANISMS
from discreet.mechanisms._sampler import Sampler
from tests.soaking import wide

POPULATIONS = 2000


def released_counts(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How often each outcome is drawn, one draw for each row."""
    chosen = (np.cumsum(q, axis=1) > rng.random((len(q), 1))).argmax(axis=1)
    return np.bincount(chosen, minlength=q.shape[1])


@pytest.mark.soak
def test_linear_intervals_cover_a_population_from_which_clients_are_drawn() -> None:
    """2,000 populations of 3,000 clients each, all different: 95 % intervals cover 94 to 96 % of the time."""
    rng = np.random.default_rng(1)
    k, clients, epsilon = 8, 3000, 1.5
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=epsilon)
    covered, means, together = [], [], []
    for _ in range(POPULATIONS):
        shape = rng.dirichlet(np.ones(k)) * rng.uniform(0.5, 5.0)
        truth = shape / shape.sum()
        held = rng.dirichlet(shape + 1e-3, size=clients)
        truth = (shape + 1e-3) / (shape + 1e-3).sum()
        found = population(sampler, counts=released_counts(sampler.output(held), rng))
        law = found.law
        covered.append((law.low <= truth) & (truth <= law.high))
        together.append(((law.all_low <= truth) & (truth <= law.all_high)).all())
        mean = found.statistic("mean")
        means.append(mean.low <= truth @ np.arange(k) <= mean.high)
    assert 0.94 <= np.mean(covered) <= 0.96
    assert 0.94 <= np.mean(means) <= 0.96
    assert np.mean(together) >= 0.94


@pytest.mark.soak
def test_linear_intervals_cover_clients_that_are_alike_and_more_than_cover_clients_that_differ() -> None:
    rng = np.random.default_rng(2)
    k, clients = 5, 2000
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=2.0)
    shared = np.tile(rng.dirichlet(np.ones(k)), (clients, 1))
    certain = np.eye(k)[rng.integers(0, k, clients)]
    for held, least, most in ((shared, 0.94, 0.96), (certain, 0.95, 1.0)):
        truth, q = held.mean(axis=0), sampler.output(held)
        covered = []
        for _ in range(POPULATIONS):
            law = population(sampler, counts=released_counts(q, rng)).law
            covered.append((law.low <= truth) & (truth <= law.high))
        assert least <= np.mean(covered) <= most


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["optimal", "mollifier"])
def test_bands_of_projections_cover_always(mechanism: str) -> None:
    """All shares at once, their mean, variance and median: in each of 2,000 populations of very different kinds."""
    rng = np.random.default_rng(3)
    for number in range(wide(POPULATIONS, 60)):
        k = int(rng.integers(2, 12))
        sampler = MECHANISMS[mechanism](dc.Simplex(k), epsilon=float(rng.uniform(0.2, 4.0)))
        kind = number % 3
        size = (400, k)
        held = (
            np.eye(k)[rng.integers(0, k, 400)]
            if kind == 0
            else rng.dirichlet(np.full(k, 0.1 if kind == 1 else 5.0), 400)
        )
        if kind == 2:
            held = np.broadcast_to(held[0], size)
        truth = held.mean(axis=0)
        found = population(sampler, counts=released_counts(np.asarray(sampler.output(held)), rng), confidence=0.999)
        assert ((found.law.all_low <= truth + 1e-12) & (truth <= found.law.all_high + 1e-12)).all()
        mean = found.statistic("mean")
        assert mean.low - 1e-9 <= truth @ np.arange(k) <= mean.high + 1e-9
        variance = found.statistic("variance")
        assert variance.low - 1e-9 <= truth @ np.arange(k) ** 2 - (truth @ np.arange(k)) ** 2 <= variance.high + 1e-9


def test_the_mean_of_a_projection_is_as_wide_as_a_linear_programme_says() -> None:
    """Given infinitely many samples, the interval of a statistic is the exact range over all laws between the lines."""
    k, clients = 6, 10**12
    sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=1.0)
    rng = np.random.default_rng(4)
    q = np.asarray(sampler.output(rng.dirichlet(np.full(k, 0.3), 50))).mean(axis=0)
    found = population(sampler, counts=np.round(q * clients).astype(np.int64))
    phi = rng.normal(size=k)
    low, high = found.inversion.low(1 / k, q), found.inversion.high(1 / k, q)
    estimate = found.statistic(lambda x: phi[x])
    for sign, end in ((1.0, estimate.low), (-1.0, estimate.high)):
        best = optimize.linprog(sign * phi, A_eq=np.ones((1, k)), b_eq=[1.0], bounds=np.stack([low, high], axis=1))
        assert end == pytest.approx(sign * best.fun, abs=1e-4)
    assert estimate.estimate is None


def test_the_linear_estimate_is_unbiased_and_has_its_exact_variance() -> None:
    """Two clients, three outcomes: every possible pair of samples, with its probability."""
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    held = np.array([[0.7, 0.3, 0.0], [0.1, 0.1, 0.8]])
    phi = np.array([1.0, -2.0, 5.0])
    q = sampler.output(held)
    expected = second = 0.0
    for first in range(3):
        for other in range(3):
            chance = q[0, first] * q[1, other]
            counts = np.bincount([first, other], minlength=3)
            estimate = population(sampler, counts=counts).law.estimate @ phi
            expected, second = expected + chance * estimate, second + chance * estimate**2
    assert expected == pytest.approx(held.mean(axis=0) @ phi, abs=1e-12)
    assert second - expected**2 == pytest.approx(exact_variance(sampler, held, phi), rel=1e-12)


def test_means_are_the_same_however_they_are_asked_for() -> None:
    family = dc.Simplex([1, 2, 5])
    sampler = dc.LinearSampler(family, epsilon=2.0)
    found = population(sampler, samples=[1, 1, 2, 5, 5, 5, 1, 2] * 50)
    mean, own = found.statistic("mean"), found.statistic(lambda label: label)
    assert (mean.low, mean.estimate, mean.high) == (own.low, own.estimate, own.high)
    assert mean.estimate == pytest.approx(found.law.estimate @ [1, 2, 5])
    assert found.statistic("at-most:2").estimate == pytest.approx(found.law.estimate[:2].sum())


@pytest.mark.slow
def test_quantiles_of_cells_cover() -> None:
    """The median and a tail of a known law on an interval, whose cells blur it."""
    rng = np.random.default_rng(5)
    cells, clients = 40, 4000
    interval = dc.Interval(-2.0, 6.0, cells=cells)
    sampler = dc.LinearSampler(dc.Simplex(interval), epsilon=4.0)
    spread = stats.norm(1.0, 1.2)
    law = np.diff(spread.cdf(interval.edges))
    law /= law.sum()
    truth = {"median": spread.ppf(0.5), "quantile:0.9": spread.ppf(0.9), "mean": 1.0, "variance": 1.44}
    hits = dict.fromkeys(truth, 0)
    for _ in range(300):
        counts = rng.multinomial(clients, sampler.output(law))
        found = population(sampler, counts=counts)
        for name, value in truth.items():
            estimate = found.statistic(name)
            hits[name] += estimate.low <= value <= estimate.high
            assert estimate.blur > 0.0
    assert all(hit >= 0.94 * 300 for hit in hits.values()), hits


def test_a_continuous_family_is_estimated_on_public_bins() -> None:
    rng = np.random.default_rng(6)
    family = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))
    edges = np.linspace(-4.0, 4.0, 9)
    points = np.clip(rng.normal(0.5, 1.0, 200_000), -4, 4)
    for kind in (dc.LinearSampler, dc.OptimalSampler):
        sampler = kind(family, epsilon=1.0)
        gamma, reference = sampler.constants.gamma, family.draw(200_000, rng)[:, 0]
        own = rng.random(len(points)) < gamma
        found = population(sampler, samples=np.where(own, points, reference), edges=edges)
        assert found.reference.sum() == pytest.approx(1.0)
        truth = np.diff(stats.norm(0.5, 1.0).cdf(edges))
        assert ((found.law.all_low <= truth) & (truth <= found.law.all_high)).all()
    with pytest.raises(dc.DiscreetError, match="edges cover"):
        population(sampler, samples=[0.0], edges=[-1.0, 1.0])
    with pytest.raises(dc.DiscreetError, match="leave out bins="):
        population(sampler, samples=[0.0], edges=edges, bins=8)
    with pytest.raises(dc.DiscreetError, match="one entry for each of the 1372 outcomes"):
        population(sampler, samples=[0.0], examples=[[1.0]])


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30))
def test_the_nearest_law_satisfies_the_conditions_of_optimality(vector: list[float]) -> None:
    v = np.array(vector)
    found = nearest_law(v)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    assert (found >= 0).all()
    # <v - found, x - found> <= 0 for every vertex x
    assert ((v - found) - (v - found) @ found <= 1e-9).all()


@pytest.mark.slow
def test_the_nearest_member_of_a_band_is_nearer_than_any_mixture_towards_others() -> None:
    rng = np.random.default_rng(7)
    for _ in range(100):
        k = int(rng.integers(2, 9))
        mu = rng.dirichlet(np.ones(k))
        lower, upper, v = 0.5 * mu, 1.7 * mu, rng.normal(0.2, 0.5, k)
        found = nearest_law(v, lower, upper)
        assert ((found >= lower - 1e-12) & (found <= upper + 1e-12)).all()
        worst = optimize.linprog(
            -(v - found), A_eq=np.ones((1, k)), b_eq=[1.0], bounds=np.stack([lower, upper], axis=1)
        )
        assert -worst.fun - (v - found) @ found <= 1e-7
    with pytest.raises(dc.DiscreetError, match="no distribution lies between"):
        nearest_law([0.5, 0.5], 0.0, 0.2)


@pytest.mark.slow
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.floats(0.5, 0.999))
def test_clopper_pearson_ends_have_exactly_the_tails_they_promise(case: tuple[int, int], confidence: float) -> None:
    n, count = case
    low, high = (float(end[0]) for end in clopper_pearson_interval_ends(np.array([count]), n, confidence))
    tail = Fraction(1 - confidence) / 2

    def at_least(p: float) -> Fraction:
        chance = Fraction(p)
        return sum((math.comb(n, x) * chance**x * (1 - chance) ** (n - x) for x in range(count, n + 1)), Fraction(0))

    def at_most(p: float) -> Fraction:
        return 1 - at_least(p) + math.comb(n, count) * Fraction(p) ** count * (1 - Fraction(p)) ** (n - count)

    assert low == 0.0 if count == 0 else float(at_least(low)) == pytest.approx(float(tail), rel=1e-6)
    assert high == 1.0 if count == n else float(at_most(high)) == pytest.approx(float(tail), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("clients", [5, 20, 100])
@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_intervals_of_averages_cover_however_few_the_clients(clients: int, epsilon: float) -> None:
    """A twentieth of the mass sits far away, where few samples show none of it: everybody may have sent the same."""
    rng = np.random.default_rng(8)
    k = 10
    sampler = dc.LinearSampler(dc.Simplex(k), epsilon=epsilon)
    truth = np.zeros(k)
    truth[0], truth[-1] = 0.95, 0.05
    q, values = np.asarray(sampler.output(truth)), np.arange(k)
    mean = float(truth @ values)
    known = {"mean": mean, "variance": float(truth @ values**2) - mean**2, "at-most:0": 0.95}
    covered = np.zeros(3)
    runs = wide(500, 150)
    for _ in range(runs):
        found = population(sampler, counts=rng.multinomial(clients, q))
        for place, (name, value) in enumerate(known.items()):
            estimate = found.statistic(name)
            covered[place] += estimate.low - 1e-9 <= value <= estimate.high + 1e-9
    assert (covered / runs >= 0.94).all(), covered / runs


@pytest.mark.slow
@given(st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any), st.floats(0.5, 1.0 - 2.0**-53), st.data())
def test_the_interval_of_an_indicator_is_that_of_the_share(
    counts: list[int], confidence: float, data: st.DataObject
) -> None:
    """Whichever way it is asked for; also at the largest confidence below 1."""
    place = data.draw(st.integers(0, len(counts) - 1))
    found = population(dc.LinearSampler(dc.Simplex(len(counts)), epsilon=1.0), counts=counts, confidence=confidence)
    asked = found.statistic(lambda outcome: outcome == place)
    assert asked.low == pytest.approx(found.law.low[place], abs=1e-9)
    assert asked.high == pytest.approx(found.law.high[place], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dc.LinearSampler, dc.OptimalSampler, dc.MollifierSampler])
@pytest.mark.parametrize("epsilon", wide([1e-90, 1e-9, 50.0, 700.0, 1000.0], [1e-90, 1000.0]))
@pytest.mark.parametrize("counts", [[7], [1, 0], [10**14, 0, 10**13], [10**12] * 40])
@pytest.mark.parametrize("confidence", [1e-12, 1.0 - 2.0**-53])
def test_everything_is_defined_at_extremes(
    kind: type[Sampler[Any]], epsilon: float, counts: list[int], confidence: float
) -> None:
    found = population(kind(dc.Simplex(len(counts)), epsilon=epsilon), counts=counts, confidence=confidence)
    for shares in (found.law, found.released_shares):
        assert all(np.isfinite(part).all() for part in vars(shares).values())
        assert (shares.low <= shares.high).all()
        assert (shares.all_low <= shares.all_high).all()
    assert found.nearest.sum() == pytest.approx(1.0, abs=1e-9)
    assert all(doubt.strip() for doubt in found.doubts)
    for name in ("mean", "variance", "median", "quantile:0.999999999999", "quantile:1e-12", "at-most:0"):
        estimate = found.statistic(name)
        assert estimate.low <= estimate.high
        assert np.isfinite([estimate.low, estimate.high, estimate.released, estimate.estimate or 0.0]).all()


def test_a_mollifier_around_a_reference_of_its_own_is_judged_by_that_reference() -> None:
    reference = np.array([0.98, 0.01, 0.01])
    sampler = dc.MollifierSampler(dc.Simplex(3), epsilon=1.0, reference=reference)
    found = population(sampler, counts=[980_000, 10_000, 10_000])
    assert found.reference.tolist() == reference.tolist()
    assert not any("makes up" in doubt for doubt in found.doubts)
    strange = population(sampler, counts=[300_000, 350_000, 350_000])
    assert any("makes up" in doubt for doubt in strange.doubts)


def test_the_nearest_law_is_a_law_also_where_entries_are_huge() -> None:
    assert nearest_law([1e100, 5e99, -1e100], 0.0, [0.3, 0.5, 1.0]) == pytest.approx([0.3, 0.5, 0.2])
    assert nearest_law([1e20, 1e20, -1e20]) == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((["a"],), "vector is not an array of numbers"),
        (([],), "vector has shape"),
        (([0.5, math.inf],), "vector = inf is not in"),
        (([0.5, 0.5], [0.1, 0.1, 0.1]), "lower has shape"),
        (([0.5, 0.5], [0.9, 0.0], [0.1, 1.0]), "0 <= lower <= upper"),
    ],
)
def test_what_has_no_nearest_law_is_named(wrong: tuple[Any, ...], message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        nearest_law(*wrong)


def sampler_for_errors() -> Sampler[Any]:
    return dc.LinearSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"samples": []}, "no samples"),
        ({"counts": [0, 0, 0]}, "no samples"),
        ({"samples": ["a", "z"]}, "unknown labels: 'z'"),
        ({"counts": [1, 2]}, "3 whole numbers"),
        ({"counts": [1, 2, -1]}, "3 whole numbers"),
        ({"counts": [1.5, 2, 1]}, "3 whole numbers"),
        ({"counts": [[1], [1, 2], 3]}, "3 whole numbers"),
        ({"counts": [2**62, 2**62, 2**62]}, "counts sums to more than"),
        ({"samples": ["a"], "counts": [1, 0, 0]}, "either samples"),
        ({}, "either samples"),
        ({"samples": ["a"], "confidence": 1.0}, "confidence = 1"),
        ({"samples": ["a"], "confidence": float("nan")}, "confidence = nan"),
        ({"samples": ["a"], "edges": [0.0, 1.0]}, "edges are public bins for a continuous family"),
        ({"samples": ["a"], "bins": 4}, "edges are public bins for a continuous family"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        population(sampler_for_errors(), **wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"samples": [0.5, 9.0], "edges": [-4.0, 1.0, 4.0]}, "records hold 9, which lies in no cell"),
        ({"samples": [0.5, float("nan")], "edges": [-4.0, 4.0]}, "holds NaN"),
        ({"samples": ["x"], "edges": [-4.0, 4.0]}, "records is not a list of numbers"),
        ({"samples": [0.5], "edges": [0.0, 1.0, 1.0, 3.0]}, "increasing"),
        ({"samples": [0.5], "edges": [-1e308, 0.0, 1.0, 1e308]}, "increasing numbers up to"),
        ({"samples": [0.5], "edges": ["x", "y"]}, "edges is not a list of numbers"),
        ({"samples": [0.5], "edges": [-4.0]}, "one more than there are cells"),
    ],
)
def test_bins_of_a_continuous_family_are_increasing_numbers(wrong: dict[str, Any], message: str) -> None:
    family = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))
    with pytest.raises(dc.DiscreetError, match=message):
        population(dc.LinearSampler(family, epsilon=1.0), **wrong)


def test_an_agreement_says_what_its_samples_are() -> None:
    """Cells of an interval come back from the document alone: nobody states them again."""
    interval = dc.Interval(-1.0, 3.0, cells=8)
    sampler = dc.LinearSampler(dc.Simplex(interval), epsilon=3.0)
    agreed = dc.Agreement.from_json(dc.Agreement.of(sampler).canonical)
    points = np.random.default_rng(7).uniform(-1.0, 3.0, 500)
    found = population(agreed, samples=points)
    assert found.domain == interval
    assert found.counts.tolist() == np.bincount(interval.numbers(points), minlength=8).tolist()
    assert found.statistic("mean").blur == pytest.approx(0.25)
    with pytest.raises(dc.DiscreetError, match=r"values outside \[-1, 3\]: 3\.5"):
        population(agreed, samples=[3.5])
    huge = dc.LinearSampler(dc.Simplex(dc.Interval(0.0, 1e200, cells=4)), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="where squares overflow"):
        population(huge, counts=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("mean", "needs numbers"),
        ("mode", "is not one of"),
        ("quantile:2", "quantile = 2"),
        ("quantile:x", "needs a number"),
        ("at-most:nan", "needs a number"),
        (5, "statistic = 5 is not one of"),
        (lambda label: 1e200, "it has to be bounded"),
        (lambda label: float("inf"), "it has to be bounded"),
        (lambda label: label, "is not a number"),
    ],
)
def test_bad_statistics_are_named(wanted: object, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        population(sampler_for_errors(), samples=["a", "b"]).statistic(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [[1, 10**400], [1.0, math.inf], [0.0, 1e200]])
def test_labels_that_are_no_usable_numbers_have_no_mean(labels: list[Any]) -> None:
    found = population(dc.LinearSampler(dc.Simplex(labels), epsilon=1.0), samples=labels)
    with pytest.raises(dc.DiscreetError, match="mean needs numbers"):
        found.statistic("mean")


def test_texts_that_are_numbers_have_a_mean() -> None:
    """Labels read from a file are texts."""
    texts, numbers = (
        population(dc.LinearSampler(dc.Simplex(labels), epsilon=1.0), counts=[50, 30, 20]).statistic("mean")
        for labels in (["-1", "2.5", "10"], [-1, 2.5, 10])
    )
    assert texts == numbers


def test_few_clients_and_clients_all_alike_are_defined_and_said() -> None:
    sampler = dc.LinearSampler(dc.Simplex(4), epsilon=1.0)
    one = population(sampler, samples=[2])
    assert ((one.law.low >= 0) & (one.law.high <= 1) & (one.law.low <= one.law.high)).all()
    assert any(
        "with one client the margin of a share" in doubt and "clients would bring it" in doubt for doubt in one.doubts
    )
    mean = one.statistic("mean")
    assert mean.low < mean.high
    alike = population(sampler, counts=[0, 0, 100_000, 0])  # more than even a population of certain clients would show
    assert any("more than the" in doubt for doubt in alike.doubts)
    assert any("less than the" in doubt for doubt in alike.doubts)
    assert alike.nearest.tolist() == [0.0, 0.0, 1.0, 0.0]
    certain = np.round(100_000 * np.asarray(sampler.output([0.0, 0.0, 1.0, 0.0]))).astype(np.int64)
    assert population(sampler, counts=certain).doubts == ()
    assert population(sampler, counts=certain).law.estimate == pytest.approx([0, 0, 1, 0], abs=1e-4)


def test_the_risk_bounds_the_bias_and_the_lines_are_sharper() -> None:
    k = 6
    sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=1.0)
    held = np.random.default_rng(8).dirichlet(np.full(k, 0.2), 200)
    q = np.asarray(sampler.output(held)).mean(axis=0)
    found = population(sampler, counts=np.round(q * 10**12).astype(np.int64))
    mean = found.statistic("mean")
    assert mean.bias_by_risk == pytest.approx((k - 1) * float(sampler.risk("tv")))
    assert mean.bias_by_risk is not None
    assert abs(held.mean(axis=0) @ np.arange(k) - mean.released) <= mean.bias_by_risk
    assert mean.high - mean.low < 2 * mean.bias_by_risk
    assert (found.law.high - found.law.low < 2 * found.largest_bias).all()
    assert found.statistic("median").bias_by_risk is None


def test_columns_of_tables_are_samples_as_they_are() -> None:
    import polars as pl
    import pyarrow as pa

    sampler = dc.LinearSampler(dc.Simplex(["a", "b"]), epsilon=1.0)
    samples = ["a", "b", "a"]
    for column in (samples, np.array(samples), pa.array(samples), pa.chunked_array([samples]), pl.Series(samples)):
        assert population(sampler, samples=column).counts.tolist() == [2, 1]
    assert "3 samples" in repr(population(sampler, samples=samples))


def test_a_client_that_comes_twice_is_refused() -> None:
    sampler = sampler_for_errors()
    samples = ["a", "b", "c", "a"]
    for names in (["w", "x", "y", "z"], np.arange(4), (1, "1", 2, "2")):
        assert population(sampler, samples=samples, clients=names).clients == 4
    wrongs: list[tuple[Any, str]] = [
        (["w", "x", "y", "x"], "again in 1 of 4 places"),
        (np.zeros(4), "again in 3 of 4 places"),
        (["w", "x", "y"], "3 clients for 4 samples"),
        (["w", "x", "y", None], "a sample without a client"),
        ([["w"], ["x"], ["y"], ["z"]], "not a list of names"),
        (7, "not a list of names"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(dc.DiscreetError, match=says):
            population(sampler, samples=samples, clients=wrong)
    with pytest.raises(dc.DiscreetError, match="counts= have no clients"):
        population(sampler, counts=[1, 2, 1], clients=["w", "x", "y", "z"])


def test_linear_is_advised_where_a_table_may_be_released_by_it() -> None:
    for family, advised in ((dc.Simplex(4), True), (dc.Band(np.ones(4), lower=0.2, upper=3.0), False)):
        (doubt,) = population(dc.OptimalSampler(family, epsilon=0.3), counts=[9, 8, 7, 6]).doubts
        assert "needs a larger epsilon" in doubt
        assert ("or the linear mechanism" in doubt) == advised
