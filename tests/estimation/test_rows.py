"""Several samples of each client: clients are counted, not samples, and intervals hold however those of one client hang together."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.errors import DiscreetError
from discreet.estimation import estimate_groups, liars, population, reported_average, reported_population
from discreet.estimation._counting import line_cells_of_sampler
from discreet.estimation._inference._intervals import clopper_pearson_interval_ends
from discreet.estimation._inference._inversion import inversion_of_joint_sample, invert_released_intervals
from discreet.mechanisms import ReportSampler
from discreet.release import TOTAL

MEAN = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
FAMILY = dc.Simplex(5)


def sure_clients(rng: np.random.Generator, n: int) -> Any:
    """Clients that each hold one outcome: their samples are as alike as can be."""
    return np.eye(5)[rng.choice(5, size=n, p=MEAN)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_intervals_cover_the_population_where_counting_samples_would_not() -> None:
    rng = np.random.default_rng(0)
    several = dc.LinearSampler(FAMILY, epsilon=12.0).with_samples(4)
    covered, together, naive, tries = 0.0, 0.0, 0.0, 150
    for _ in range(tries):
        drawn = several.release(sure_clients(rng, 150), rng=rng)
        law = population(several, samples=drawn).law
        covered += float(((law.low <= MEAN) & (law.high >= MEAN)).mean()) / tries
        together += float(((law.all_low <= MEAN) & (law.all_high >= MEAN)).all()) / tries
        as_clients = population(several.share, samples=drawn.ravel()).law
        naive += float(((as_clients.low <= MEAN) & (as_clients.high >= MEAN))[:4].mean()) / tries
    assert covered >= 0.94
    assert together >= 0.92
    assert naive < 0.85


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_a_release_that_is_read_twice_tells_no_more() -> None:
    sampler = dc.LinearSampler(dc.Simplex(range(5)), epsilon=2.0)
    drawn = sampler.release(sure_clients(np.random.default_rng(1), 300), rng=np.random.default_rng(2))
    once, twice = (
        population(sampler, samples=drawn),
        population(sampler, samples=np.stack([drawn] * 2, axis=1), rounds=2),
    )
    assert (twice.clients, twice.samples, once.samples) == (300, 600, 300)
    assert twice.law.estimate == pytest.approx(once.law.estimate, abs=1e-12)
    released = (
        clopper_pearson_interval_ends(once.counts, 300, once.confidence),
        clopper_pearson_interval_ends(once.counts, 300, once.confidence, among=5),
    )
    for names, ends in zip((("low", "high"), ("all_low", "all_high")), released, strict=True):
        for name, end in zip(
            names, invert_released_intervals(once.inversion, once.bounds, once.reference, ends), strict=True
        ):
            assert getattr(twice.law, name) == pytest.approx(end, abs=2e-3)
    assert np.all((twice.law.low <= once.law.low + 1e-9) & (once.law.high <= twice.law.high + 1e-9))
    for statistic in ("mean", "median", "variance", "quantile:0.8", "at-most:2"):
        one, two = once.statistic(statistic), twice.statistic(statistic)
        assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=0.02)


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_independent_samples_of_alike_clients_tell_nearly_what_as_many_clients_do() -> None:
    """Where all clients hold the same, the samples of one are no more alike than those of different ones."""
    rng = np.random.default_rng(3)
    sampler = dc.LinearSampler(dc.Simplex(range(5)), epsilon=2.0)
    drawn = np.stack([sampler.release(np.tile(MEAN, (400, 1)), rng=rng) for _ in range(3)], axis=1)
    rows, flat = population(sampler, samples=drawn, rounds=3), population(sampler, samples=drawn.ravel())
    assert rows.law.estimate == pytest.approx(flat.law.estimate, abs=1e-12)
    assert (rows.law.high - rows.law.low) == pytest.approx(flat.law.high - flat.law.low, rel=0.15)
    mean, same = rows.statistic("mean"), flat.statistic("mean")
    assert mean.estimate == pytest.approx(same.estimate)
    assert mean.high - mean.low == pytest.approx(same.high - same.low, rel=0.15)


def test_labels_shapes_and_mistakes() -> None:
    sampler = dc.LinearSampler(dc.Simplex(["a", "b"]), epsilon=1.0)
    found = population(sampler, samples=[["a", "b"], ["b", "b"], ["a", "a"]], clients=["x", "y", "z"], rounds=2)
    assert (found.clients, found.counts.tolist()) == (3, [3, 3])
    assert "6 samples" in repr(found)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"samples": [["a", "b"], ["b"]]}, "samples has rows of 1 to 2"),
        ({"samples": [["a", "b"], "b"]}, "samples has rows of 0 to 2"),
        ({"samples": [["a", "c"]]}, "'c'"),
        ({"samples": [["a", "b"]], "clients": ["x", "y"]}, "clients names 2 clients for 1 samples"),
        ({"samples": [["a", "b"]], "examples": [[0.5, 0.5]]}, "examples are for one sample of each client"),
    ]
    for arguments, says in wrong:
        with pytest.raises(dc.DiscreetError) as caught:
            population(sampler, rounds=2, **arguments)
        assert says in str(caught.value)


@pytest.mark.parametrize("more", [{}, {"bins": 8}, {"edges": [0.0, 0.25, 0.5, 1.0]}], ids=str)
def test_on_a_line_clients_are_counted_and_not_their_samples(more: dict[str, Any]) -> None:
    family = dc.DensityBand(stats.uniform(), lower=0.0, upper=3.0)
    several = dc.LinearSampler(family, epsilon=40.0).with_samples(10)
    clients = [stats.beta(2.0, 5.0)] * 40
    found = population(several, samples=several.release(clients), **more)
    assert (found.clients, found.samples) == (40, 400)
    assert liars(found).shift == pytest.approx(1.0 / (40 * several.share.constants.gamma))
    assert found.statistic("mean").low < 2.0 / 7.0 < found.statistic("mean").high
    once = several.share
    alone = population(once, samples=once.release(clients), **more)
    assert "40 clients" in " ".join(found.doubts)
    assert found.domain.size == alone.domain.size  # as many bins as 40 clients can tell
    assert found.law.low.shape == alone.law.low.shape


def test_on_a_line_one_sample_each_in_rows_is_one_sample_each() -> None:
    family = dc.DensityBand(stats.uniform(), lower=0.0, upper=3.0)
    sampler = dc.LinearSampler(family, epsilon=4.0, discretisation=dc.Cells(64))
    samples = sampler.release([stats.beta(2.0, 5.0)] * 200)
    plain, rows = population(sampler, samples=samples), population(sampler, samples=samples[:, None])
    assert rows.counts.tolist() == plain.counts.tolist()
    # rows keep to Clopper and Pearson; single samples have shorter intervals
    ends = clopper_pearson_interval_ends(plain.counts, plain.clients, plain.confidence)
    assert rows.law.low == pytest.approx(
        invert_released_intervals(plain.inversion, plain.bounds, plain.reference, ends)[0], abs=1e-9
    )
    assert rows.law.high == pytest.approx(
        invert_released_intervals(plain.inversion, plain.bounds, plain.reference, ends)[1], abs=1e-9
    )
    for name in ("mean", "median", "quantile:0.9"):
        one, other = plain.statistic(name), rows.statistic(name)
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-6)


@pytest.mark.slow
def test_on_a_line_intervals_hold_where_the_samples_of_a_client_hang_together() -> None:
    """Each client sits at one place, so that its ten samples tell what one does; counted as 400 clients, half of the intervals missed."""
    family = dc.DensityBand(stats.uniform(), lower=0.0, upper=70.0)
    several = dc.LinearSampler(family, epsilon=40.0, discretisation=dc.Cells(64)).with_samples(10)
    rng, edges, held = np.random.default_rng(4), np.array([0.0, 0.25, 0.5, 0.75, 1.0]), []
    line = line_cells_of_sampler(several.share)
    for _ in range(60):
        places = rng.beta(2.0, 3.0, 40)
        law = np.zeros((40, 64))
        law[np.arange(40), line.cell_numbers_of_values(places)] = 1.0
        q = several.share.weights_on_atoms(law) / TOTAL
        numbers = np.array([rng.choice(64, size=10, p=row / row.sum()) for row in q])
        found = population(several, samples=line.values[numbers], edges=edges)
        truth = np.diff(stats.beta(2.0, 3.0).cdf(edges))
        held.append((found.law.low <= truth) & (truth <= found.law.high))
    assert np.mean(held) >= 0.94
    with pytest.raises(DiscreetError, match="one sample of each client"):
        population(several, samples=line.values[numbers], examples=law)
    with pytest.raises(DiscreetError, match=r"rows of 10, and LinearSampler.* releases one"):
        population(several.share, samples=line.values[numbers])


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_what_released_is_what_can_estimate() -> None:
    """Two samples at half of the budget each, read as two at all of it, would give [.538, .550] for .698."""
    linear = dc.LinearSampler(dc.Simplex(2), epsilon=2.0)
    held = np.tile([0.698, 0.302], (20_000, 1))
    drawn = linear.release(held, size=2, rng=np.random.default_rng(0))
    with pytest.raises(
        dc.DiscreetError, match=r"rows of 2, and LinearSampler.* releases one: .* pass sampler.with_samples\(2\)"
    ):
        population(linear, samples=drawn)
    law = population(linear.with_samples(2), samples=drawn).law
    assert law.low[0] <= 0.698 <= law.high[0]
    agreed = dc.Agreement.of(linear, rounds=3)
    assert population(agreed, samples=drawn[:50]).clients == 50
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (dc.Agreement.of(linear), {"samples": drawn}, "rows of 2, and the agreement has 1 rounds"),
        (agreed, {"samples": drawn, "rounds": 4}, "rounds is more than 3; the agreement has 3"),
        (agreed, {"samples": drawn, "rounds": 3}, "rounds = 3, but there are 2 samples of each client"),
        (linear.with_samples(2), {"samples": drawn.ravel()}, "releases 2 samples of each client"),
        (linear.with_samples(2), {"counts": [10, 20]}, "releases 2 samples of each client"),
        (linear.with_samples(3), {"samples": drawn}, "releases 3 samples of each client"),
        (
            linear.with_samples(2),
            {"samples": drawn, "rounds": 2},
            "rounds = 2 is for samples that were released one at a time",
        ),
    ]
    for sampler, given, says in refused:
        with pytest.raises(dc.DiscreetError) as caught:
            population(sampler, **given)
        assert says in str(caught.value)


@pytest.mark.parametrize("around", ["envelope", "product"])
@pytest.mark.parametrize(
    "family", [dc.Simplex(3), dc.Band([3, 2, 1], lower=0.0, upper=2.0), dc.Near([1, 2], factor=2.0)]
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_lines_of_joint_draws_hold_for_every_client(around: Any, family: Any, epsilon: float) -> None:
    """And so for their average: from the law of one released sample, the client's own lies between the lines, and between the bounds."""
    rng = np.random.default_rng(0)
    laws = np.concatenate(
        [rng.dirichlet(np.full(family.size, c), 300) for c in (0.1, 1.0, 5.0)] + [np.eye(family.size)]
    )
    laws = dc.mechanisms.nearest_member(family, laws)
    for samples in (1, 2, 4):
        joint = dc.JointSampler(family, samples=samples, epsilon=epsilon, around=around)
        inversion, each, mu = inversion_of_joint_sample(joint), joint.output_of_each(laws), joint.each_reference
        assert np.all(inversion.least(mu, each) <= laws + 1e-9)
        assert np.all(laws <= inversion.most(mu, each) + 1e-9)
        assert np.all((joint.bounds.lower * mu <= laws + 1e-9) & (laws <= joint.bounds.upper * mu + 1e-9))
        assert np.all((joint.constants.b * mu <= each + 1e-9) & (each <= joint.constants.B * mu + 1e-9))


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_joint_draws_have_an_estimate() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(["a", "b"]), epsilon=2.0)
    rng = np.random.default_rng(0)
    held = np.stack([share := rng.beta(7, 3, 3000), 1 - share], axis=1)
    drawn = sampler.release(held, size=2, rng=rng)
    found = population(sampler.with_samples(2), samples=drawn)
    assert (found.clients, found.samples, found.exact) == (3000, 6000, False)
    assert np.all((found.law.low <= held.mean(axis=0)) & (held.mean(axis=0) <= found.law.high))
    assert found.law.high[0] - found.law.low[0] < 0.3
    assert found.doubts is not None
    with pytest.raises(dc.DiscreetError, match="do not tell clients apart"):
        population(sampler.with_samples(2), counts=[3, 4])
    with pytest.raises(dc.DiscreetError, match="examples are for one sample"):
        population(sampler.with_samples(2), samples=drawn, examples=[[0.5, 0.5]])


def test_rows_of_reports_count_clients_in_averages_and_are_refused_in_groups() -> None:
    sampler = ReportSampler(dc.Simplex(70), epsilon=2.0)
    once, values = sampler.release_records(np.arange(90) % 70), np.linspace(0.0, 1.0, 70)
    twice = np.stack([once, once], axis=1)  # one release that is read twice tells no more
    alone = reported_average(sampler, reports=once, values=values)
    together = reported_average(sampler, reports=twice, values=values)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=1e-9)
    assert together.estimate == pytest.approx(alone.estimate)
    assert reported_population(sampler, reports=twice).clients == 90
    with pytest.raises(DiscreetError, match="one report of each"):
        estimate_groups(sampler, reports=twice, groups=["a", "b"] * 45)
    assert estimate_groups(sampler, reports=once[:, None], groups=["a", "b"] * 45).clients == 90


def test_averages_and_populations_take_the_same_shapes_of_reports() -> None:
    sampler, values = ReportSampler(dc.Simplex(5), epsilon=1.0), np.arange(5.0)
    one = reported_average(sampler, reports=3, values=values)
    assert one == reported_average(sampler, reports=[3], values=values)
    assert reported_population(sampler, reports=3).clients == 1
    for estimate in (reported_population, partial(reported_average, values=values)):
        with pytest.raises(DiscreetError, match=r"reports has shape \(1, 2, 2\); it is \(n,\), or \(n, J\)"):
            estimate(sampler, reports=np.ones((1, 2, 2), dtype=np.uint64))
