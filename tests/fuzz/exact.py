"""Hostile domains, terms of agreements, exact numbers, divergences, and draws from integer boxes."""

import datetime
import json
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dc
from discreet import accounting, divergences, privacy, release
from discreet.agreement import BlockTerms, JointTerms, OwnTerms, Schedule
from discreet.domain import Bins, Digested, as_domain
from discreet.mechanisms import ComposedSampler
from tests.fuzz.chooser import NUMBERS, WORDS, Chooser

RECORDS: list[Any] = [
    0,
    1,
    0.5,
    1.0,
    "a",
    "b",
    "1",
    "",
    None,
    math.nan,
    math.inf,
    True,
    2**64,
    -1,
    [0],
    (1,),
    {},
    np.int8(1),
    1j,
    "\ud800",
]
DAYS: list[Any] = [
    "2026-01-01",
    "2026-03-31",
    "2025-12-31",
    "x",
    None,
    3,
    "2026-02-30",
    "9999-12-31",
    "",
    datetime.date(2026, 1, 31),
]


def _domain(c: Chooser) -> Any:
    what = c.below(8)
    if what == 0:
        return dc.Interval(
            c.among([0.0, -1.0, c.number()]),
            c.among([1.0, 1e300, c.number()]),
            cells=c.among([1, 4, 10**6, c.number()]),
        )
    if what == 1:
        edges = c.among(
            [[0.0, 1.0, 2.5], [0.0, 0.0], [1.0, 0.0], [], [c.number(), c.number()], [-1e308, 1e308], c.number(), "01"]
        )
        return Bins(edges)
    if what == 2:
        return Digested(c.among([3, 1, 10**6, c.number()]), c.among(["sha256:" + 64 * "0", "sha256:0", "", c.number()]))
    if what == 3:
        return as_domain(
            c.among([3, ["a", "b"], dc.Numbers(2), dc.Simplex(2), None, "ab", c.number()]), c.among(["domain", "x"])
        )
    if what == 4:
        return dc.Labels.days(c.among(DAYS[:7]), c.among(DAYS[:7]))
    return c.among(
        [
            dc.Labels(["a", "b", 1.5]),
            dc.Numbers(4),
            dc.Interval(0.0, 1.0, cells=3),
            Bins([0.0, 1.0, 4.0]),
            dc.Labels([c.among(RECORDS)]),
        ]
    )


def domains(c: Chooser) -> Any:
    """Records and labels of every kind of domain; outcome numbers come back."""
    domain = _domain(c)
    if not isinstance(domain, dc.Domain):
        return None
    records: Any = [c.among(RECORDS) if c.below(4) == 0 else c.among([0, 1, 0.5, "a", "b"]) for _ in range(c.below(5))]
    if c.below(8) == 0:
        records = c.among(
            [None, 3, "ab", {}, np.zeros((2, 2)), np.array(["a"]), np.ma.array([0, 1], mask=[True, False]), c.law(3)]
        )
    what = c.below(5)
    if what == 0:
        found = domain.find_numbers(records)
        assert ((found >= -1) & (found < domain.size)).all()
        return found
    if what == 1:
        made = {"size": domain.size, **domain.terms}
        assert json.loads(domain.canonical)
        return [repr(domain), made["size"], domain.digest]
    if what == 2:
        return [domain.values, domain.edges, list(domain.names)[:2] and 0.0]
    numbers = domain.numbers(records)
    assert ((numbers >= 0) & (numbers < domain.size)).all()
    if len(numbers):
        again = domain.numbers(
            np.atleast_1d(
                np.asarray(domain.to_samples(numbers), dtype=object if isinstance(domain, dc.Labels) else None)
            )
        )
        assert (again == numbers).all()
    return numbers


def terms(c: Chooser) -> Any:
    """Blocks, several samples, mechanisms of packages and schedules, as agreements state them."""
    what = c.below(6)
    if what == 0:
        blocks = BlockTerms(c.among(["values", "masks", "ranks", "affine", "x", None]), **{
            name: c.among([None, 1, 2, 3, 5, 7, c.number()]) for name in ("w", "q", "t", "c") if c.below(2)
        })  # fmt: skip
        found = blocks.sampler(c.among([dc.Simplex(5), dc.Simplex(25), c.family(), None]), c.among([1.0, c.number()]))
        return [found.variance(), dc.Agreement.of(found).id]
    if what == 1:
        joint = JointTerms(c.among([2, 3, c.number()]), c.among(["product", "envelope", "x", None]))
        return joint.sampler(c.among([dc.Simplex(3), c.family(), None]), c.among([1.0, c.number()])).weights(
            [1.0, 0.0, 0.0]
        )
    if what == 2:
        parameters = c.among([None, {}, {"a": 1}, {"a": c.json()}, {1: 2}, [], "x", {"a": math.nan}, {"a": object()}])
        box = c.among(["sha256:" + 64 * "0", "sha256:0", "", None])
        own = OwnTerms(
            c.among(["name", "", None, c.text()]), c.among(["package", None]), c.among(["1.0", 1]), box, parameters
        )
        return own.sampler(dc.Simplex(3), dc.Pure(1.0))
    if what == 3:
        schedule = Schedule(c.among(DAYS), c.among(["day", "week", "month", "year", None]))
        number = c.among([1, 2, 40, 10**7, c.number()])
        first, last = schedule.first_day(number), schedule.last_day(number)
        assert first <= last
        if last < datetime.date.max:
            assert schedule.number(first) == schedule.number(last) == number
        return schedule.number(c.among(DAYS))
    sampler = c.sampler() if c.below(4) else c.among([None, dc.Simplex(3), dc.LinearSampler])
    composed = ComposedSampler(sampler, samples=c.among([2, 3, 30, c.number()]))
    law = c.law(composed.family.size)
    drawn = np.asarray(composed.release(law))
    assert drawn.shape[-1] == composed.samples
    return [composed.output_of_each(law), drawn]


def exact_numbers(c: Chooser) -> Any:
    """Rational bounds of exponentials and logarithms, boxes that keep together, and divergences."""
    number: Any = c.among([0.1, 1, Fraction(1, 3), Fraction(7, 2), 40.0, c.number(), c.number()])
    what = c.below(8)
    if what == 0:
        low, high = privacy.exp_lower(number), privacy.exp_upper(number)
        assert low <= high
        if abs(number) <= 60:
            assert float(low) <= max(1.0, privacy.exp_nearest(float(number))) <= max(1.0, float(high))
        return privacy.expm1_nearest(number)
    if what == 1:
        low, high = privacy.log_bracket(number)
        assert low <= high
        return [float(low), float(high)]
    if what == 2:
        least, most = privacy.extreme_masses(c.among([Fraction(1, 2), number]), c.among([Fraction(3), number]))
        assert least <= most
        return None
    if what == 3:
        return float(privacy.stated_decimal(number))
    if what == 4:
        return privacy.chosen_privacy(
            c.among([None, 1.0, number]), c.among([None, dc.Pure(1.0), dc.Gaussian(1.0), number])
        )
    if what == 5:
        share = c.among([Fraction(1, 5), number])
        notion = c.among([dc.Pure(1.0), dc.Gaussian(1.0), dc.Approximate(1.0, delta=1e-6), None])
        return float(
            accounting.keeps_together(notion, share, c.among([Fraction(1, 4), number]), c.among([1, 3, c.number()]))
        )
    make: Any = c.among([divergences.alpha, divergences.hockey_stick, divergences.renyi, divergences.RenyiDivergence])
    measure = make(c.among([2.0, 0.5, 1.0, c.number()]))
    return measure(c.law(3), c.law(3))


def integer_draws(c: Chooser) -> Any:
    """Weights in an integer box and the outcomes of uniform integers, in constant time and otherwise."""
    kind: Any = c.among([dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
    sampler = kind(dc.Simplex(c.among([2, 3, 5])), epsilon=c.among([0.5, 1.0, 4.0]))
    size = sampler.family.size
    lattice: Any = sampler.lattice if c.below(16) else c.among([None, sampler, 3])
    mixing: Any = sampler.mixing if c.below(8) else c.among([None, 3, "x"])
    masses = 1.0 + np.array([float(c.below(256)) for _ in range(size)])
    laws: Any = np.stack([masses / masses.sum(), np.eye(size)[0]]) if c.below(4) else c.law(size)
    uniform: Any = (
        np.array([0, (1 << 62) - 1])
        if c.below(4)
        else c.among([[0, 1], [0], None, np.array([-1, 0]), np.array([0.5, 1]), c.number(), "01"])
    )
    what = c.below(4)
    if what == 0:
        drawn = release.weights(lattice, laws, mixing)
        assert (drawn.sum(axis=-1) == release.TOTAL).all()
        assert ((drawn >= lattice.lower) & (drawn <= lattice.upper)).all()
        return drawn
    if what == 1:
        return release.outcomes(lattice, laws, mixing, uniform)
    if what == 2:
        one = c.among([0, (1 << 62) - 1, 1 << 62, -1, c.number()])
        law = c.among([np.full(size, 1.0 / size), c.law(size), laws])
        found = release.outcome_in_constant_time(lattice, law, mixing, one)
        assert 0 <= found < size
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.NotPrivateWarning)
        rng: Any = c.among([np.random.default_rng(0), None, 0, np.random.RandomState(0), *NUMBERS])
        words = release.seeded_randomness(rng).integers(c.among([0, 3]))
    assert ((words >= 0) & (words < 1 << 62)).all()
    return [words, release.generator(rng).random(), c.among(WORDS)]
