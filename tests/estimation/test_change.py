"""The change between two estimates: its intervals hold however few clients there are and however they differ."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.errors import DiscreetError
from discreet.estimation import Change, change, population, reported_population
from discreet.estimation._shifts import critical_score_of_weighted_sum
from tests.estimation.coverage import LEAST, chances_of, coin_sum
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")


def test_the_critical_score_is_that_of_two_positive_parts() -> None:
    rng = np.random.default_rng(1)
    z = np.maximum(rng.standard_normal((2, 2_000_000)), 0.0)
    for weight, error in itertools.product((0.001, 0.1, 0.5, math.sqrt(0.5), 0.9), (0.25, 0.025)):
        u, w, cap = weight, math.sqrt(1 - weight**2), float(stats.norm.isf(error / 8))
        c = critical_score_of_weighted_sum(error, (u, w), cap)
        share = float(((u * z[0] + w * z[1] >= c) | (z.max(axis=0) >= cap)).mean())
        assert share == pytest.approx(error, rel=0.03)
        assert stats.norm.isf(error) <= c <= cap


def intervals_of_first(
    sampler: dc.LinearSampler[Any], clients: tuple[int, int]
) -> dict[tuple[int, int], tuple[float, float]]:
    """The interval of the first outcome's change, for every pair of counts."""
    found = [
        [population(sampler, counts=[count, number - count, 0]) for count in range(number + 1)] for number in clients
    ]
    intervals = {}
    for (x, before), (y, after) in itertools.product(*map(enumerate, found)):
        law = change(before, after).law
        intervals[x, y] = float(law.low[0]), float(law.high[0])
    return intervals


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("clients", [(1, 1), (3, 3), (2, 9), (9, 9), (12, 4)])
def test_exact_coverage_of_few_clients(epsilon: float, clients: tuple[int, int]) -> None:
    """Every way that the counts can fall, for clients that are all alike, each sure of something, or half of both."""
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=epsilon)
    intervals, worst = intervals_of_first(sampler, clients), 1.0
    shares = (0.0, 0.02, 0.1, 0.35, 0.5, 0.9, 1.0)
    for first, second in itertools.product(shares, repeat=2):
        for before, after in itertools.product(chances_of(first, clients[0], 3), chances_of(second, clients[1], 3)):
            laws = [coin_sum(np.asarray(sampler.output(each))[:, 0]) for each in (before, after)]
            truth = float(after[:, 0].mean() - before[:, 0].mean())
            covered = sum(
                laws[0][x] * laws[1][y]
                for (x, y), (low, high) in intervals.items()
                if low - 1e-9 <= truth <= high + 1e-9
            )
            worst = min(worst, covered)
    assert worst >= 0.95 - 1e-9


def linear_laws() -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of laws on 40 outcomes: without a change, with a small one, and with a large one."""
    before = 1.0 / np.arange(1.0, 41.0)
    small, large = before.copy(), before[::-1].copy()
    small[3] *= 1.5
    return [
        (each / each.sum(), other / other.sum()) for each, other in ((before, before), (before, small), (before, large))
    ]


KINDS = ["linear linear", "reports reports", "linear reports"]
EPSILONS = [(1.0, 1.0), (4.0, 4.0), (1.0, 4.0)]
CLIENTS = [(30, 30), (1000, 1000), (100, 5000)]
ALL_THREE = [*itertools.product(KINDS, EPSILONS, CLIENTS)]
EACH_PAIR = [(KINDS[i], EPSILONS[j], CLIENTS[(i + j) % 3]) for i, j in itertools.product(range(3), repeat=2)]


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "epsilons", "clients"), wide(ALL_THREE, EACH_PAIR))
def test_all_changes_hold_at_once(kinds: str, epsilons: tuple[float, float], clients: tuple[int, int]) -> None:
    rng, tries = np.random.default_rng(2), wide(2000, 20)
    family = dc.Simplex(40)

    def estimated(kind: str, epsilon: float, number: int, law: np.ndarray) -> Any:
        if kind == "reports":
            blocks = dc.ReportSampler(family, epsilon=epsilon)
            return reported_population(
                blocks, reports=blocks.release_records(rng.choice(40, size=number, p=law), rng=rng)
            )
        sampler = dc.LinearSampler(family, epsilon=epsilon)
        q = np.asarray(sampler.output(law))
        return population(sampler, counts=rng.multinomial(number, q / q.sum()))

    held, single = 0, 0.0
    for number in range(tries):
        laws = linear_laws()[number % 3]
        found = change(*(estimated(*each) for each in zip(kinds.split(), epsilons, clients, laws, strict=True)))
        truth = laws[1] - laws[0]
        held += bool(((found.law.all_low <= truth) & (truth <= found.law.all_high)).all())
        single += float(((found.law.low <= truth) & (truth <= found.law.high)).mean()) / tries
    assert held >= LEAST * tries - 1
    assert single >= LEAST


@pytest.mark.parametrize(("clients", "longer"), [((100_000, 100_000), 1.05), ((12_000, 120_000), 1.08)])
def test_it_is_about_as_short_as_the_normal_interval_for_many_clients(clients: tuple[int, int], longer: float) -> None:
    sampler = dc.ReportSampler(dc.Simplex(5), epsilon=1.0)
    rng = np.random.default_rng(3)
    before, after = (
        reported_population(sampler, reports=sampler.release_records(rng.integers(0, 5, number), rng=rng))
        for number in clients
    )
    law = change(before, after).law
    error = np.hypot(before.standard_errors, after.standard_errors)
    assert max(law.all_high.max(), -law.all_low.min()) < 0.1  # no share is cut at 0
    for ends, normal in (((law.low, law.high), 0.025), ((law.all_low, law.all_high), 0.025 / 5)):
        ratio = (ends[1] - ends[0]) / (2.0 * stats.norm.isf(normal) * error)
        assert (ratio <= longer).all()
        assert (ratio >= 1.0).all()


def test_swapping_the_two_turns_the_sign() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    one, two = population(sampler, counts=[5, 3, 90]), population(sampler, counts=[30, 10, 400])
    there, back = change(one, two).law, change(two, one).law
    for ends, others in (("low", "high"), ("all_low", "all_high")):
        np.testing.assert_allclose(getattr(there, ends), -getattr(back, others), rtol=0.03, atol=1e-9)
    np.testing.assert_allclose(there.estimate, -back.estimate)


@pytest.mark.slow
def test_the_change_of_a_mean_holds() -> None:
    values = np.array([0.0, 1.0, 10.0])
    sampler = dc.LinearSampler(dc.Simplex(values.tolist()), epsilon=2.0)
    rng, tries, held = np.random.default_rng(4), wide(1000, 30), 0
    laws = np.array([0.9, 0.05, 0.05]), np.array([0.6, 0.2, 0.2])
    for _ in range(tries):
        q = [np.asarray(sampler.output(law)) for law in laws]
        found = change(
            *(population(sampler, counts=rng.multinomial(n, each)) for n, each in zip((40, 90), q, strict=True))
        )
        mean = found.statistic("mean")
        assert mean.estimate is not None
        assert mean.low < mean.estimate < mean.high
        held += mean.low <= float((laws[1] - laws[0]) @ values) <= mean.high
    assert held >= LEAST * tries - 1


@pytest.mark.slow
def test_the_change_of_an_event_holds_for_few_clients() -> None:
    """A statistic with two values, exactly: its interval alone has the shorter of two ends, which one end of a change may not use."""
    sampler, clients = dc.LinearSampler(dc.Simplex([0, 1]), epsilon=4.0), 6
    found = [population(sampler, counts=[count, clients - count]) for count in range(clients + 1)]
    ends = [[change(before, after).statistic("at-most:0") for after in found] for before in found]
    for first, second in itertools.product((0.0, 0.05, 0.2, 0.5, 0.9), repeat=2):
        q, r = (float(np.asarray(sampler.output([share, 1 - share]))[0]) for share in (first, second))
        x, y = (stats.binom.pmf(np.arange(clients + 1), clients, each) for each in (q, r))
        held = [[each.low - 1e-9 <= second - first <= each.high + 1e-9 for each in row] for row in ends]
        assert x @ np.array(held) @ y >= 0.95


def test_the_change_of_a_mean_behind_reports() -> None:
    sampler = dc.ReportSampler(dc.Simplex(list(range(8))), epsilon=2.0)
    rng = np.random.default_rng(5)
    sent = [sampler.release_records(rng.integers(0, top, 5000), rng=rng) for top in (4, 8)]
    found = change(*(reported_population(sampler, reports=each) for each in sent))
    mean = found.statistic("mean", reports=(sent[0], sent[1]))
    assert mean.low <= 2.0 <= mean.high
    assert mean.high - mean.low < 1.0
    with pytest.raises(DiscreetError, match=r"reports=\(before, after\)"):
        found.statistic("mean")


def test_the_optimal_mechanism_leaves_more_open() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(4), epsilon=2.0)
    found = change(population(sampler, counts=[400, 300, 200, 100]), population(sampler, counts=[250, 250, 250, 250]))
    assert isinstance(found, Change)
    assert not found.exact
    law = np.array([0.5, 0.3, 0.2, 0.0]), np.full(4, 0.25)
    assert ((found.law.all_low <= law[1] - law[0]) & (law[1] - law[0] <= found.law.all_high)).all()


def test_what_has_no_change_is_refused() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    found = population(sampler, counts=[5, 3, 90])
    other = population(dc.LinearSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0), counts=[5, 3, 90])
    with pytest.raises(DiscreetError, match="different outcomes"):
        change(found, other)
    with pytest.raises(DiscreetError, match="before"):
        change([1, 2, 3], found)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="one round at a time"):
        change(found, population(sampler, samples=[[0, 1], [1, 1]], rounds=2))
    with pytest.raises(DiscreetError, match="median"):
        change(found, found).statistic("median")
    with pytest.raises(DiscreetError, match="has no interval of its change"):
        change(found, found).statistic(np.zeros(2))  # type: ignore[arg-type]


@pytest.mark.parametrize(("reports", "message"), [(3, "is not a list"), (([0, 1],), "holds 1 lists; pass two")])
def test_the_reports_of_a_change_are_a_pair(reports: Any, message: str) -> None:
    found = reported_population(dc.ReportSampler(dc.Simplex(3), epsilon=1.0), reports=[0, 1])
    with pytest.raises(DiscreetError, match=message):
        change(found, found).statistic("mean", reports=reports)


def test_the_change_of_a_mean_on_a_line_is_as_sure_as_is_asked() -> None:
    sampler = dc.LinearSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=3.0)
    rng = np.random.default_rng(6)
    before, after = (population(sampler, samples=rng.uniform(-3, 3, 500)) for _ in range(2))
    lengths = []
    for confidence in (0.5, 0.95, 0.999999):
        mean = change(before, after, confidence=confidence).statistic("mean")
        lengths.append(mean.high - mean.low)
    assert lengths[0] < lengths[1] < lengths[2]
