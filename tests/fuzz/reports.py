"""Hostile reports: their samplers and counts, and the estimates of populations that rest on them."""

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dc
from discreet import estimation
from discreet.mechanisms import ReportCounts, ReportSampler, population_mechanism
from discreet.release import RunKey
from tests.fuzz.chooser import NUMBERS, Chooser
from tests.fuzz.estimates import STATISTICS, counts_of_outcomes, hostile_confidence

RECORDS: list[Any] = [0, 1, 2, "a", "label 0", None, math.nan, 0.5, True, 2**64, -1, [0], 10**400]
REPORTS: list[Any] = [0, 1, 2, 7, 2**63, 2**64 - 1, 2**64, -1, 1.0, 0.5, None, True, "1", [], 10**400, math.nan]


def report_sampler(c: Chooser) -> ReportSampler:
    """Mostly a sampler of reports on few or many outcomes."""
    family = c.among([
        dc.Simplex(2), dc.Simplex(["a", "b", "c"]), dc.Simplex(5), dc.Simplex(12), dc.Simplex(40), dc.Simplex(70), dc.Simplex(300),
        dc.Simplex(dc.Interval(0.0, 1.0, cells=6)), dc.Labels([1.5, 2.5, 4.0]), dc.Numbers(4), dc.Simplex(1),
    ])  # fmt: skip
    if c.below(8) == 0:
        family = c.among([c.family, c.number, c.continuous_family])()
    if c.below(8) == 0:
        notion: Any = c.among([dc.Pure(1.0), dc.Gaussian(1.0), dc.Approximate(1.0, delta=1e-6), None, 1.0, c.number()])
        return ReportSampler(family, epsilon=c.among([None, None, 1.0]), privacy=notion)
    return ReportSampler(family, epsilon=c.among([0.1, 0.5, 1.0, 2.0, 6.0, 1e-11, 40.0, 800.0, c.number()]))


def _known_records(c: Chooser, sampler: ReportSampler, count: int) -> list[Any]:
    """Records that the sampler knows, as labels where there are some."""
    return list(
        sampler.family.to_samples(np.array([c.below(sampler.family.size) for _ in range(count)], dtype=np.int64))
    )


def hostile_reports(c: Chooser, sampler: ReportSampler) -> Any:
    """Reports of a sampler, mostly; otherwise numbers in any shape, or something else."""
    what = c.below(16)
    if what == 0:
        return c.law(4)
    if what == 1:
        return [c.among(REPORTS) for _ in range(c.below(5))]
    if what == 2:
        return c.among(
            [
                [[0], [0, 1]],
                [[0, 1], [1, 0]],
                np.zeros((2, 0), dtype=np.uint64),
                np.zeros((1, 1, 1), dtype=int),
                "01",
                {0: 1},
            ]
        )
    given = sampler.release_records(_known_records(c, sampler, 1 + c.below(30)))
    if what == 3:
        return given.tolist()
    if what == 4:
        return given[: len(given) // 2 * 2].reshape(-1, 2)
    return given.astype(np.int64) if what == 5 and given.max() < 2**63 else given


def _records(c: Chooser, sampler: ReportSampler, count: int) -> list[Any]:
    """Records, one of which is unknown now and then."""
    known = _known_records(c, sampler, count)
    return [*known[:-1], c.among(RECORDS)] if c.below(4) == 0 else known


def reports(c: Chooser) -> Any:
    """Samplers of reports, by all their methods."""
    what = c.below(12)
    if what == 0:
        notion = c.among([dc.Pure(c.number()), dc.Pure(1.0), dc.Pure(1e-13), dc.Gaussian(1.0), None, 1.0])
        family = c.among([dc.Simplex(3), dc.Simplex(1), dc.Simplex(10**5), dc.GaussianMixtures(), c.family(), None, 3])
        assert population_mechanism(family, notion) in ("linear", "reports")
        return None
    sampler = report_sampler(c)
    size = sampler.family.size
    assert sampler.by_values().family == sampler.family
    least, most = min(sampler.exact_chances), max(sampler.exact_chances)
    assert 0 <= least <= most <= 1
    if what == 1:
        return [sampler.release(c.law(size)), sampler.release_number(c.law(size))]
    if what == 2:
        drawn = sampler.release_records(_records(c, sampler, c.below(9)))
        assert (sampler.check_reports(drawn) == drawn).all()
        return drawn
    if what == 3:
        return _keyed_report(c, sampler)
    if what == 4:
        return _law_of_reports(c, sampler)
    if what == 5:
        given = hostile_reports(c, sampler)
        found = sampler.holds(
            given, _records(c, sampler, c.among([1, 1, 2, len(np.ravel(np.asarray(given, dtype=object))), 0]))
        )
        return found.astype(np.float64)
    if what == 6:
        (own,) = sampler.release_records(_known_records(c, sampler, 1))
        named = sampler.outcomes_of(c.among([*REPORTS, [own]]) if c.below(2) else own)
        assert len(named) <= sampler.blocks.width
        return None
    if what == 7:
        return [
            sampler.variance(c.among([None, 0.0, 1.0, c.number()])),
            sampler.excess,
            repr(sampler),
            sampler._repr_html_(),
        ]
    if what == 8:
        agreement = dc.Agreement.of(sampler, rounds=c.among([1, 3, c.number()]), purpose=c.text())
        assert dc.Agreement.from_json(agreement.text).report_sampler() == sampler
        return agreement.id
    return _report_counts(c, sampler)


def _keyed_report(c: Chooser, sampler: ReportSampler) -> Any:
    """The same key and data give the same report."""
    key: Any = RunKey(os.urandom(64)) if c.below(8) else c.among([None, b"", bytes(64), "key", c.number()])
    client = c.among(["a", 1, "", -1, 2**63, 2**64, None, True, 1.5, b"a", "\ud800", [1]])
    outcomes: Any = [c.below(sampler.family.size) for _ in range(c.below(4))]
    counts: Any = [1 + c.below(3) for _ in outcomes]
    if c.below(3) == 0:
        outcomes = c.among([[0, 0], [0, c.number()], None, 3, "01", [sampler.family.size], {}])
        counts = c.among([[1, 1], [c.number()], [0], [2**62, 2**62], None, 3, [10**30], counts])
    drawn = sampler.release_keyed(key, client, outcomes, counts)
    assert drawn == sampler.release_keyed(key, client, outcomes, counts)
    assert sampler.check_reports([drawn])[0] == drawn
    return drawn


def _law_of_reports(c: Chooser, sampler: ReportSampler) -> Any:
    """The law of a report, in floats and in rationals."""
    law = c.law(sampler.family.size)
    output = sampler.output(law)
    assert np.abs(output.sum(axis=-1) - 1.0).max(initial=0.0) <= 1e-9
    listed = sampler.reports()
    assert output.shape[-1] == len(listed)
    if len(listed) <= 64:
        (outcome,) = _records(c, sampler, 1)
        chances = [sampler.probability(int(report), outcome) for report in listed]
        assert sum(chances, Fraction(0)) == 1
        assert (
            max(chances) <= min(chances) * Fraction(np.nextafter(math.exp(min(sampler.epsilon, 700.0)), math.inf))
            or sampler.epsilon > 700
        )
    return [output, float(sampler.probability(c.among([*REPORTS, int(listed[0])]), _records(c, sampler, 1)[0]))]


def _report_counts(c: Chooser, sampler: ReportSampler) -> Any:
    """Counts: added, merged, kept as a table, and made of it again."""
    counts = ReportCounts(sampler if c.below(16) else c.among([None, sampler.blocks, "reports"]))
    for _ in range(1 + c.below(3)):
        counts.add(hostile_reports(c, sampler))
    other: Any = ReportCounts(sampler).add(sampler.release_records(_known_records(c, sampler, 2)))
    if c.below(8) == 0:
        other = c.among([None, counts.table, ReportCounts(report_sampler(c))])
    before = counts.reports
    counts.merge(other)
    assert counts.reports == before + other.reports
    supports = counts.supports()
    assert supports.shape == (sampler.family.size,)
    assert supports.min() >= 0
    assert supports.max() <= counts.reports
    table: Any = counts.table
    again = ReportCounts.from_table(sampler, table, c.among([None, counts.reports]))
    assert (again.supports() == supports).all()
    if c.below(2):
        table = c.among(
            [
                table[:-1],
                table.astype(float),
                -table,
                table + 1,
                [],
                None,
                "x",
                table.tolist(),
                [[1], [1, 2]],
                c.law(sampler.family.size),
            ]
        )
    again = ReportCounts.from_table(
        sampler, table, c.among([None, counts.reports, 0, -1, 2**60, 1.5, True, "1", math.nan, c.number()])
    )
    return again.supports()


def reported_populations(c: Chooser) -> Any:
    """Estimates from reports, and what rests on them: averages, liars, changes, stages and groups."""
    sampler = report_sampler(c)
    size = sampler.family.size
    if c.below(8) == 0:
        names = [c.among(["north", "south", "south", 1, None, math.nan, (1,), [1]]) for _ in range(c.below(4))]
        return _reported_groups(c, sampler, names)
    released = hostile_reports(c, sampler)
    released_by: Any = dc.Agreement.of(sampler) if c.below(4) == 0 else sampler
    given: Any = {"reports": released} if c.below(4) else {"counts": ReportCounts(sampler).add(released)}
    if c.below(16) == 0:
        given = c.among(
            [
                {},
                {"reports": [0], "counts": ReportCounts(sampler)},
                {"counts": [1, 2]},
                {"counts": ReportCounts(report_sampler(c))},
            ]
        )
    examples = c.among([None, None, None, None, np.eye(size), np.full((2, size), 1.0 / size), c.law(size), []])
    found = estimation.reported_population(released_by, **given, examples=examples, confidence=hostile_confidence(c))
    _check_shares(found.law)
    assert found.clients >= 1
    assert all(doubt.strip() for doubt in found.doubts)
    assert abs(found.nearest.sum() - 1.0) <= 1e-9
    what = c.below(6)
    if what == 0:
        values = c.among(
            [
                np.arange(size),
                np.zeros(size),
                np.full(size, 1e308),
                [1e300, *[-1e300] * (size - 1)],
                c.law(size),
                [c.number()] * size,
            ]
        )
        average = estimation.reported_average(
            sampler, reports=released, values=values, confidence=hostile_confidence(c)
        )
        assert average.low <= average.high
        return average
    if what == 1:
        wanted = estimation.reported_statistic(
            found, c.among(STATISTICS), c.among([None, released, hostile_reports(c, sampler)])
        )
        assert wanted.low <= wanted.high
        return wanted
    if what == 2:
        lies = estimation.report_liars(found, c.among([0, 1, found.clients, c.number()]))
        assert (lies.law.all_low <= found.law.all_low).all()
        assert (lies.law.all_high >= found.law.all_high).all()
        shift = lies.shift_of(c.among([[], [0], [0, 1], range(size), [c.among(RECORDS)], c.number()]))
        assert shift <= lies.shift * size
        return [lies.law, lies.shift, shift]
    if what == 3:
        return _pooled(c, found)
    if what == 4:
        later = estimation.population(dc.LinearSampler(sampler.family, epsilon=1.0), counts=counts_of_outcomes(c, size))
        moved = estimation.change(found, c.among([found, later]), confidence=c.among([None, hostile_confidence(c)]))
        assert (moved.law.all_low <= moved.law.low + 1e-12).all()
        assert (moved.law.high <= moved.law.all_high + 1e-12).all()
        told = moved.statistic(
            c.among(STATISTICS), reports=c.among([None, (released, released), (released,), 3, released])
        )
        assert told.low <= told.high
        return [moved.law, told]
    return [found.law, found.released_shares, found.nearest, found.standard_errors, found.margin_at_worst, repr(found)]


def _check_shares(law: estimation.Shares) -> None:
    """Intervals of shares: ordered, in [0, 1], and those of all outcomes around those of each."""
    for low, high in ((law.low, law.high), (law.all_low, law.all_high)):
        assert (low >= 0.0).all()
        assert (low <= high).all()
        assert (high <= 1.0).all()
    assert (law.all_low <= law.low).all()
    assert (law.all_high >= law.high).all()


def _pooled(c: Chooser, found: Any) -> Any:
    """Stages of one sampler, of two, of three, or of what is none."""
    family = found.sampler.family
    stages: Any = [found]
    for _ in range(c.below(4)):
        sampler: Any = c.among([dc.LinearSampler, dc.OptimalSampler])(family, epsilon=c.among([0.5, 1.0, 3.0]))
        stages.append(
            estimation.population(sampler, counts=counts_of_outcomes(c, family.size)) if c.below(3) else found
        )
    if c.below(8) == 0:
        stages = c.among([[], None, found, "ab", [None], [*stages, 3], {0: found}, tuple(stages)])
    pooled = estimation.pooled_population(stages, confidence=c.among([None, hostile_confidence(c)]))
    _check_shares(pooled.law)
    return [pooled.law, pooled.clients, pooled.exact, repr(pooled)]


def _reported_groups(c: Chooser, sampler: ReportSampler, names: list[Any]) -> Any:
    """Reports of public groups."""
    given = (
        sampler.release_records(_known_records(c, sampler, len(names))) if c.below(4) else hostile_reports(c, sampler)
    )
    asked: Any = {"reports": given, "groups": names}
    if c.below(4) == 0:
        asked = {
            "counts": c.among(
                [{"a": ReportCounts(sampler).add(given)}, {}, {"a": given}, {None: ReportCounts(sampler)}, 3]
            )
        }
    grouped = estimation.estimate_groups(
        sampler, **asked, confidence=hostile_confidence(c), bins=c.among([None, None, None, 3])
    )
    assert grouped.clients == sum(each.clients for each in grouped.groups.values()) == grouped.whole.clients
    for name, law in grouped.laws.items():
        _check_shares(law)
        assert 0.0 <= grouped.margins[name] <= 1.0
    told = grouped.statistic(c.among(STATISTICS)) if c.below(2) else {}
    assert all(each.low <= each.high for each in told.values())
    return [list(grouped.laws.values()), list(told.values()), list(grouped.silent) and 0.0]


def inverted_populations(c: Chooser) -> Any:
    """Mechanisms of one's own, stated as a matrix or by a class, and the populations behind their samples."""
    size = 2 + c.below(4)
    family: Any = dc.Simplex(size if c.below(2) else [f"label {x}" for x in range(size)])
    if c.below(8) == 0:
        family = c.among(
            [c.family, c.number, c.continuous_family, lambda: dc.Band([1.0] * size, lower=0.5, upper=2.0)]
        )()
    epsilon = c.among([1.0, 2.0, 4.0, c.number()])
    kept = c.among([0.1, 0.2, 0.3, 0.9])
    law: Any = (1.0 - kept) / size + kept * np.eye(size)
    if c.below(4) == 0:
        law = c.among(
            [
                np.full((size, size), 1.0 / size),
                -law,
                law[:1],
                law * math.nan,
                c.law(size),
                [[c.number()] * size] * size,
                None,
                lambda p: p,
            ]
        )
    mechanism: Any = c.among([
        lambda: dc.OwnSampler.of(family, law, epsilon=epsilon), lambda: dc.OwnSampler.of(family, law, epsilon=epsilon),
        lambda: dc.LinearSampler(family, epsilon=epsilon), lambda: dc.LinearSampler(family, epsilon=epsilon),
        lambda: dc.OptimalSampler(family, epsilon=epsilon) if c.below(2) else c.among([None, dc.LinearSampler, family, 3]),
    ])()  # fmt: skip
    if c.below(8) == 0 and isinstance(mechanism, dc.Sampler):
        mechanism = dc.Agreement.of(mechanism)
    labels = [c.among([0, 0, 1, "label 0", *NUMBERS]) for _ in range(c.below(5))]
    given: Any = {"samples": labels} if c.below(3) == 0 else {"counts": counts_of_outcomes(c, size)}
    found = estimation.inverted_population(mechanism, **given, confidence=hostile_confidence(c))
    for shares in (found.law, found.released_shares):
        assert (shares.low <= shares.high).all()
        assert (shares.all_low <= shares.low).all()
        assert (shares.all_high >= shares.high).all()
    assert abs(found.nearest.sum() - 1.0) <= 1e-9
    return [found.law, found.released_shares, found.nearest, found.liar_shift, found.samples, repr(found)]
