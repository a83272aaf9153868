"""Groups of clients: each estimated by itself, with intervals that hold for all groups and outcomes at once."""

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.estimation import estimate_groups, population, reported_population
from discreet.mechanisms import ReportCounts
from tests.estimation.coverage import LEAST
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")

FAMILY = dc.Simplex(["red", "green", "blue"])
LINEAR = dc.LinearSampler(FAMILY, epsilon=2.0)
REPORTS = dc.ReportSampler(FAMILY, epsilon=2.0)
LABELS = np.array(FAMILY.labels)


def test_each_group_is_estimated_by_itself() -> None:
    samples = ["red", "green", "red", "blue", "blue", "red"]
    found = estimate_groups(LINEAR, samples=samples, groups=["s", "n", "s", "n", "s", "n"])
    assert list(found.groups) == ["n", "s"]
    alone = population(LINEAR, samples=["red", "red", "blue"])
    law = found.laws["s"]
    for field in ("estimate", "low", "high"):
        np.testing.assert_array_equal(getattr(law, field), getattr(alone.law, field))
    assert (law.all_low <= alone.law.all_low).all()
    assert (alone.law.all_high <= law.all_high).all()
    assert found.clients == 6
    np.testing.assert_array_equal(found.whole.counts, [3, 1, 2])


def test_reports_by_group() -> None:
    rng = np.random.default_rng(1)
    reports = REPORTS.release_records(LABELS[rng.integers(0, 3, 3000)], rng=rng)
    groups = np.array(["a", "b", "c"])[rng.integers(0, 3, 3000)]
    found = estimate_groups(REPORTS, reports=reports, groups=groups)
    for name in "abc":
        alone = reported_population(REPORTS, reports=reports[groups == name])
        np.testing.assert_array_equal(found.laws[name].low, alone.law.low)
    np.testing.assert_array_equal(found.whole.counts, reported_population(REPORTS, reports=reports).counts)
    counted = estimate_groups(
        REPORTS, counts={name: ReportCounts(REPORTS).add(reports[groups == name]) for name in "abc"}
    )
    np.testing.assert_array_equal(counted.laws["b"].all_high, found.laws["b"].all_high)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "reports"])
def test_all_groups_and_outcomes_hold_at_once(kind: str) -> None:
    """Twelve groups of 3 to 3,000 clients."""
    rng, tries, held = np.random.default_rng(2), wide(1000, 30), 0
    sizes = [3, 3, 5, 8, 20, 30, 50, 100, 300, 800, 1500, 3000]
    laws = rng.dirichlet(np.ones(3), len(sizes))
    names = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(tries):
        records = np.concatenate([rng.choice(3, size=size, p=law) for size, law in zip(sizes, laws, strict=True)])
        if kind == "reports":
            found = estimate_groups(REPORTS, reports=REPORTS.release_records(LABELS[records], rng=rng), groups=names)
        else:
            found = estimate_groups(LINEAR, samples=LINEAR.randomised_response(LABELS[records], rng=rng), groups=names)
        held += all(
            ((found.laws[name].all_low <= law) & (law <= found.laws[name].all_high)).all()
            for name, law in enumerate(laws)
        )
    assert held >= LEAST * tries - 1


@pytest.mark.parametrize("kind", ["linear", "reports", "optimal"])
def test_many_groups_have_intervals_that_are_a_little_longer(kind: str) -> None:
    if kind == "reports":
        one: Any = ReportCounts(REPORTS).add(REPORTS.release_records(np.repeat(LABELS, [10, 20, 40])))
        sampler: Any = REPORTS
    else:
        one, sampler = [10, 20, 40], LINEAR if kind == "linear" else dc.OptimalSampler(FAMILY, epsilon=2.0)
    few, many = (estimate_groups(sampler, counts=dict.fromkeys(range(number), one)) for number in (100, 101))
    exact, quick = few.laws[0], many.laws[0]
    np.testing.assert_allclose(quick.estimate, exact.estimate)
    for low, high in (("low", "high"), ("all_low", "all_high")):
        assert (getattr(quick, low) <= getattr(exact, low) + 1e-12).all()
        assert (getattr(quick, high) >= getattr(exact, high) - 1e-12).all()
        np.testing.assert_allclose(getattr(quick, low), getattr(exact, low), atol=0.06)


def test_a_group_that_says_nothing_is_named() -> None:
    found = estimate_groups(
        LINEAR, samples=["red"] * 2 + ["red", "blue"] * 2000, groups=["tiny"] * 2 + ["large"] * 4000
    )
    assert found.silent == ("tiny",)
    assert found.margins["large"] < 0.1 < found.margins["tiny"]


def test_statistics_by_group_hold_at_once() -> None:
    numbers = dc.Simplex(list(range(5)))
    rng = np.random.default_rng(3)
    records, groups = rng.integers(0, 5, 4000), np.arange(4000) % 4
    linear, blocks = dc.LinearSampler(numbers, epsilon=3.0), dc.ReportSampler(numbers, epsilon=3.0)
    by_samples = estimate_groups(linear, samples=linear.randomised_response(records, rng=rng), groups=groups)
    by_reports = estimate_groups(blocks, reports=blocks.release_records(records, rng=rng), groups=groups)
    for found in (by_samples, by_reports):
        for name, mean in found.statistic("mean").items():
            assert mean.low < records[groups == name].mean() < mean.high
    alone = population(linear, counts=by_samples.groups[0].counts).statistic("mean")
    assert alone.high - alone.low < by_samples.statistic("mean")[0].high - by_samples.statistic("mean")[0].low


def test_a_line_has_the_same_bins_in_every_group() -> None:
    sampler = dc.LinearSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=3.0)
    rng = np.random.default_rng(4)
    found = estimate_groups(sampler, samples=rng.uniform(-3, 3, 900), groups=np.arange(900) % 3)
    assert len({tuple(each.domain.names) for each in found.groups.values()}) == 1
    assert len(found.whole.counts) == len(found.groups[0].counts)
    assert found.whole.clients == 900


def test_statistics_on_a_line_hold_for_all_groups_at_once() -> None:
    sampler = dc.LinearSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=3.0)
    points = np.random.default_rng(4).uniform(-3, 3, 900)
    groups = estimate_groups(sampler, samples=points, groups=np.arange(900) % 9)
    one, wide = groups.groups[0].statistic("mean"), groups.statistic("mean")[0]
    assert wide.low < one.low < one.high < wide.high
    surer = dataclasses.replace(groups.groups[0], confidence=groups.group_confidence).statistic("mean")
    assert (surer.low, surer.high) == (wide.low, wide.high)


def test_statistics_of_counted_reports_come_from_their_counts() -> None:
    blocks = dc.ReportSampler(dc.Simplex(list(range(5))), epsilon=3.0)
    drawn = blocks.release_records(np.arange(4000) % 5, rng=np.random.default_rng(5))
    groups = estimate_groups(blocks, counts={"a": ReportCounts(blocks).add(drawn)})
    mean = groups.statistic("mean")["a"]
    assert mean.low < 2.0 < mean.high


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"samples": ["red", "blue"], "groups": ["a", None]}, "1 of 2 clients have no group"),
        ({"samples": ["red", "blue"], "groups": [1.0, float("nan")]}, "1 of 2 clients have no group"),
        ({"samples": ["red", "blue"], "groups": ["a"]}, "1 groups for 2 clients"),
        ({"samples": ["red"]}, "groups="),
        ({"groups": ["red"]}, "groups="),
        ({"reports": [1], "groups": ["a"]}, "releases samples"),
        ({"samples": ["red"], "groups": [["a"]]}, "cannot name a group"),
        ({"samples": ["red"], "groups": 3}, "not a list"),
        ({"counts": {}}, "no groups"),
        ({"counts": {"a": [0, 0, 0]}}, "no samples"),
        ({"samples": ["red"], "groups": ["a"], "confidence": 1.0}, "confidence"),
    ],
)
def test_what_is_no_group_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(DiscreetError, match=said):
        estimate_groups(LINEAR, **arguments)


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT])
def test_a_missing_name_is_no_group_and_no_client(missing: Any) -> None:
    samples = ["red", "blue", "blue"]
    with pytest.raises(DiscreetError, match="1 of 3 clients have no group"):
        estimate_groups(LINEAR, samples=samples, groups=["north", missing, "north"])
    with pytest.raises(DiscreetError, match="missing names"):
        population(LINEAR, samples=samples, clients=["ann", missing, "bob"])
