"""Theorems of the type: numbers(named(n)) = n, one canonical form, digests that tell apart what differs, and every refusal."""

import json
import math
import pickle
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings, strategies as st

import discreet as dc
from discreet.domain import Bins, Digested, Numbers, as_domain
from discreet.domain._labels import domain_from_terms
from discreet.mechanisms import LineCells
from tests.domain.kinds import LABELS, domains, hostile, intervals
from tests.soaking import examples


@pytest.mark.slow
@given(domains(), st.data())
@settings(deadline=None, max_examples=examples(400))
def test_what_an_outcome_is_called_is_that_outcome(domain: dc.Domain, data: st.DataObject) -> None:
    places = [0, domain.size - 1, domain.size // 2, data.draw(st.integers(0, domain.size - 1))]
    numbers = np.array(places, dtype=np.int64)
    assert domain.numbers(domain.to_samples(numbers)).tolist() == places
    assert domain.numbers([domain.to_samples(np.asarray(places[3]))]).tolist() == places[3:]


@given(domains())
@settings(deadline=None)
def test_a_domain_comes_back_from_its_canonical_form(domain: dc.Domain) -> None:
    for document in (domain.terms, domain.full_terms):
        again = domain_from_terms(json.loads(json.dumps(document)), "family")
        assert (again.canonical, again.digest, again.size) == (domain.canonical, domain.digest, domain.size)
    assert domain_from_terms(domain.full_terms, "family") == domain
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert as_domain(domain) is domain


@given(domains(), domains())
@settings(deadline=None)
def test_digests_tell_apart_what_differs(one: dc.Domain, other: dc.Domain) -> None:
    assert (one.digest == other.digest) == (one.terms == other.terms)
    if one != other:
        assert one.digest != other.digest


def test_digests_tell_apart_kinds_types_and_orders() -> None:
    told: list[dc.Domain] = [
        dc.Numbers(2), dc.Numbers(3), dc.Labels([0, 1]), dc.Labels(["0", "1"]), dc.Labels([1, 0]), dc.Labels([0.5, 1.0]),
        dc.Labels([False, True]), dc.Labels(["0,1"]), dc.Labels(["é", "x"]), dc.Labels(["e\u0301", "x"]),
        dc.Interval(0, 1, cells=2), dc.Interval(0, 1, cells=3), dc.Interval(0, 2, cells=2), dc.Interval(-1, 1, cells=2),
        dc.Interval(0, math.nextafter(1.0, 2.0), cells=2),
    ]  # fmt: skip
    assert len({domain.digest for domain in told}) == len(told)
    assert dc.Labels([0, 1]) == dc.Labels([-0.0, 1.0])
    assert dc.Labels([0, 1]).digest == dc.Labels([-0.0, 1.0]).digest


@pytest.mark.slow
@given(LABELS)
def test_a_digest_stands_for_labels_and_says_nothing_else(labels: list[Any]) -> None:
    known = dc.Labels(labels)
    short = domain_from_terms(known.terms, "family")
    assert isinstance(short, Digested)
    assert (short.canonical, short.digest) == (known.canonical, known.digest)
    with pytest.raises(dc.DiscreetError, match="holds a digest of its labels"):
        short.numbers(labels)
    with pytest.raises(dc.DiscreetError, match="holds a digest of its labels"):
        short.to_samples(np.array([0]))


@pytest.mark.slow
@given(intervals(), st.data())
@settings(deadline=None, max_examples=examples(400))
def test_a_value_lies_in_the_cell_that_it_is_given(interval: dc.Interval, data: st.DataObject) -> None:
    """In exact arithmetic, but for a rounding of the edges that is less than a cell."""
    value = data.draw(hostile(interval))
    if not interval.low <= value <= interval.high:
        with pytest.raises(dc.DiscreetError, match="values outside"):
            interval.numbers([value])
        return
    cell = int(interval.numbers([value])[0])
    assert 0 <= cell < interval.cells
    exact = (Fraction(value) - Fraction(interval.low)) / (Fraction(interval.high) - Fraction(interval.low))
    off = Fraction(1, 2**49) * interval.cells  # of four operations that round, one perhaps to a subnormal
    assert cell - off <= exact * interval.cells <= cell + 1 + off


@pytest.mark.slow
@given(intervals(), st.data())
@settings(deadline=None)
def test_cells_are_in_the_order_of_their_values(interval: dc.Interval, data: st.DataObject) -> None:
    inside = st.floats(interval.low, interval.high)
    one, other = sorted((data.draw(inside), data.draw(inside)))
    first, second = interval.numbers([one, other]).tolist()
    assert first <= second


@pytest.mark.slow
@given(intervals(most=10**5))
@example(dc.Interval(0.0, 1.7976931348623157e308, cells=3))
@example(dc.Interval(0.0, 1e-307, cells=10**5))
@example(dc.Interval(-1e-308, 1e-307, cells=3))
@settings(deadline=None)
def test_edges_increase_and_middles_lie_between_them(interval: dc.Interval) -> None:
    edges = interval.edges
    assert len(edges) == interval.size + 1 == len(interval.names) + 1
    assert (edges[1:] > edges[:-1]).all()
    assert ((interval.values > edges[:-1]) & (interval.values < edges[1:])).all()
    assert interval.numbers(np.asarray(interval.to_samples(np.arange(interval.size)))).tolist() == list(
        range(interval.size)
    )
    assert interval.numbers(interval.values).tolist() == list(range(interval.size))


def test_what_a_domain_holds_cannot_be_changed() -> None:
    cells, bins = dc.Interval(0, 1, cells=4), Bins([0.0, 1.0])
    for held in (cells.edges, cells.values, bins.edges):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 5.0


def test_bins_need_not_be_equally_wide() -> None:
    bins = Bins([0.0, 1.0, 2.0, 4.0, 8.0])
    assert bins.numbers([0.0, 0.5, 1.0, 3.0, 4.0, 8.0]).tolist() == [0, 0, 1, 2, 3, 3]
    assert bins.numbers(np.asarray(bins.to_samples(np.arange(4)))).tolist() == [0, 1, 2, 3]
    assert bins == Bins([0, 1, 2, 4, 8]) != Bins([0, 1, 2, 4, 9])
    assert len({bins, Bins([0, 1, 2, 4, 8])}) == 1
    with pytest.raises(dc.DiscreetError, match="bins cannot stand in an agreement; agree on equal cells"):
        dc.Agreement.of(dc.OptimalSampler(dc.Simplex(bins), epsilon=1.0)).id  # noqa: B018


def test_what_is_given_as_a_domain() -> None:
    cells = dc.Interval(0, 1, cells=4)
    family = dc.Band(np.ones(4), lower=0.5, upper=1.5, domain=cells)
    agreed = dc.Agreement.of(dc.OptimalSampler(family, epsilon=1.0))
    assert as_domain(cells) == as_domain(family.domain) == as_domain(agreed.domain) == cells
    for more in (family, agreed):  # a band is not all laws on its domain
        with pytest.raises(dc.DiscreetError, match=r"is more than a domain; pass its \.domain, or say family="):
            as_domain(more)
    assert as_domain(np.int64(3)) == as_domain(np.array(3)) == dc.Numbers(3)
    assert as_domain(np.array(["a", "b"])) == as_domain(iter("ab")) == dc.Labels(("a", "b"))


def test_families_hold_domains() -> None:
    cells = dc.Interval(0, 1, cells=4)
    assert dc.Simplex(cells) != dc.Simplex(4)
    assert dc.Simplex(cells) == dc.Simplex(dc.Interval(0.0, 1.0, cells=4))
    assert repr(dc.Simplex(cells)) == "Simplex(Interval(low=0.0, high=1.0, cells=4))"
    assert "cells of [0, 1]" in dc.Simplex(cells)._repr_html_()
    band = dc.Band([1, 2, 3, 4], lower=0.5, upper=1.5, domain=cells)
    assert band.domain == cells
    assert "domain=Interval" in repr(band)
    assert dc.Simplex(cells).spread(2.0).domain == cells
    assert dc.Simplex(cells).law(records=[0.1, 0.3, 0.3, 1.0]).tolist() == [0.25, 0.5, 0.0, 0.25]
    assert dc.Simplex(cells).law(counts={1: 3, 0: 1}).tolist() == [0.25, 0.75, 0.0, 0.0]
    assert dc.OptimalSampler(dc.Simplex(cells), epsilon=1.0).release([0.0, 1.0, 0.0, 0.0]) in (
        0.125,
        0.375,
        0.625,
        0.875,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dc.Labels([]), "labels is empty"),
        (lambda: dc.Labels("red"), "labels = 'red' is a text"),
        (lambda: dc.Labels({"a", "b"}), "has no order"),
        (lambda: dc.Labels(3), "labels = 3 is not a list of labels"),  # type: ignore[arg-type]
        (lambda: dc.Labels(["a", "a"]), "duplicate labels: 'a'"),
        (lambda: dc.Labels([math.nan]), "a label is NaN"),
        (lambda: dc.Labels(["a"]).numbers("a"), "is one text"),
        (lambda: dc.Labels([(1, 2)]).canonical, "cannot stand in an agreement"),
        (lambda: dc.Labels([math.inf]).canonical, "finite numbers only"),
        (lambda: dc.Numbers(0), "domain size = 0 is less than 1"),
        (lambda: dc.Numbers(2.0), "domain size = 2.0 is not a whole number"),  # type: ignore[arg-type]
        (lambda: dc.Numbers(3).numbers([True]), "for booleans take"),
        (lambda: dc.Simplex(2**41), "more than 1,099,511,627,776 outcomes"),
        (lambda: dc.Interval(1, 0, cells=2), "do not enclose an interval; give the lower one first"),
        (lambda: dc.Interval(1, 1, cells=2), "do not enclose an interval"),
        (lambda: dc.Interval(math.nan, 1, cells=2), "low = nan is not in"),
        (lambda: dc.Interval(0, math.inf, cells=2), "high = inf is not in"),
        (lambda: dc.Interval(-1e308, 1e308, cells=2), "whose length and its reciprocal a float can hold"),
        (lambda: dc.Interval(0, 1, cells=0), "cells = 0"),
        (lambda: dc.Interval(0, 1, cells=2**41), "cells is more than"),
        (lambda: dc.Interval(1e16, 1e16 + 10, cells=5), "floats cannot tell so many apart"),
        (lambda: dc.Interval(0, 5e-324, cells=1), "length and its reciprocal"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([2]), r"values outside \[0, 1\]: 2\.0"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([math.nan]), "holds NaN"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([None]), "holds NaN"),
        (lambda: dc.Interval(0, 1, cells=2).numbers(["0.5"]), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([True]), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([True, 2]), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([[0.5, np.True_]]), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers(np.array([True, 1], dtype=object)), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers([10**400]), "not a list of numbers"),
        (lambda: dc.Interval(0, 1, cells=2).numbers(0.5), "not a list"),  # type: ignore[arg-type]
        (lambda: dc.Band([1, 1], lower=0.5, upper=1.5, labels=["a", "b"], domain=dc.Numbers(2)), "both given"),
        (lambda: dc.Band([1, 1], lower=0.5, upper=1.5, domain=dc.Numbers(3)), "domain has 3 names for 2 weights"),
        (lambda: domain_from_terms({"size": 2, "labels": ["a", "b"], "interval": [0, 1]}, "family"), "are both set"),
        (
            lambda: domain_from_terms({"size": 9, "interval": [1e16, 1e16 + 8]}, "family"),
            r"family\.interval: .* cannot tell so many",
        ),
        (lambda: domain_from_terms({"size": 9, "interval": [1, 0]}, "family"), r"^family\.interval = \[1, 0\] is not"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        call()


def test_labels_that_people_cannot_tell_apart_are_found() -> None:
    alike = [
        ("Yes", "yes"), ("two words", "two  words"), ("a", " a "), ("", " "), ("a", "a\u200b"), ("a", "\ufeffa"), ("co\u00adop", "coop"),
        ("1", 1), ("true", True), ("\uff41", "a"), ("\ufb01n", "fin"), ("Stra\u00dfe", "STRASSE"), ("e\u0301", "\u00e9"), ("a\u00a0b", "a b"),
        ("\u2764", "\u2764\ufe0f"), ("a\u202eb", "ab"), ("a", "a\u3164"), ("a", "a\x00"), ("a\tb", "a b"), ("\u2163", "iv"),
    ]  # fmt: skip
    for one, other in alike:
        found = dc.Labels(["first", one, "between", other, "last"])
        assert found.look_alikes == (one, other)
    long = "x" * 500
    apart = [
        "e",
        "\u00e9",
        "a b",
        "ab",
        "\u0430",
        "a",
        "1",
        "1.0",
        "10",
        f"{long}1",
        f"{long}2",
        "\u84dd",
        "\U0001f98a",
        "<b>",
        "b",
    ]
    assert dc.Labels(apart).look_alikes is None


def test_arrays_of_whole_numbers_are_read_at_once_as_others_are_one_by_one() -> None:
    domain = dc.Numbers(7)
    for kind in (np.int8, np.int64, np.uint8, np.uint64):
        array = np.array([0, 6, 3], dtype=kind)
        found = domain.numbers(array)
        assert found.dtype == np.int64
        assert found.tolist() == domain.numbers(array.tolist()).tolist()
        found[0] = 5
        assert array[0] == 0
    for wrong in (
        np.array([1, 7]),
        np.array([-1]),
        np.array([(1 << 64) - 1], dtype=np.uint64),
        np.array([True]),
        np.array([1.5]),
    ):
        with pytest.raises(dc.DiscreetError, match="unknown outcomes"):
            domain.numbers(wrong)


def test_cells_are_found_alike_in_arrays_and_in_lists() -> None:
    line = LineCells.of_sampler(
        dc.OptimalSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=1.0)
    )
    values = [0.0, 0.25, 0.999, 1.0, -0.1, 1.1, math.nan, math.inf, -math.inf, 3.9, -4.0, 4.0]
    for domain in (dc.Interval(0.0, 1.0, cells=7), Bins([0.0, 0.25, 1.0]), line):
        cells = domain.find_cells(np.array(values))
        assert cells.tolist() == domain.find_numbers(values).tolist()
        ends = domain.edges[0], domain.edges[-1]
        assert (cells >= 0).tolist() == [ends[0] <= value <= ends[1] for value in values]
        inside = np.array(values)[cells >= 0]
        assert domain.numbers(inside).tolist() == cells[cells >= 0].tolist()


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.uint64])
def test_whole_numbers_are_found_alike_in_arrays_and_in_lists(kind: Any) -> None:
    ends = np.iinfo(kind)
    given = np.array([0, 1, 4, 5, 100, ends.min, ends.max], dtype=kind)
    found = Numbers(5).find_numbers(given)
    assert found.dtype == np.int64
    assert found.tolist() == Numbers(5).find_numbers(given.tolist()).tolist()
    with pytest.raises(dc.DiscreetError, match=r"unknown outcomes: .*5.*outcomes are the numbers 0 to 4"):
        Numbers(5).numbers(given)


@pytest.mark.parametrize(
    "domain", [Numbers(3), dc.Labels(["a", "b", "c"]), dc.Interval(0.0, 1.0, cells=3), Bins([0.0, 1.0, 2.0, 4.0])]
)
def test_numbers_beyond_the_outcomes_are_no_samples(domain: Any) -> None:
    """-1 is not the last outcome."""
    beyond: list[Any] = [[-1], [0, 3], np.asarray(3), np.array([2**63], dtype=np.uint64)]
    for wrong in beyond:
        with pytest.raises(dc.DiscreetError, match="beyond the outcomes; pass whole numbers from 0 to 2"):
            domain.to_samples(wrong)
    no_numbers: list[Any] = [[0.5], ["a"], [True], None, [[0], [1, 2]]]
    for wrong in no_numbers:
        with pytest.raises(dc.DiscreetError, match="not an array of outcome numbers"):
            domain.to_samples(wrong)
    assert np.asarray(domain.to_samples([])).shape == (0,)
    assert len(domain.to_samples([0, 2])) == 2


@pytest.mark.parametrize(
    ("size", "labels_digest", "said"),
    [(1j, "sha256:" + 64 * "0", "size = 1j"), (0, "sha256:" + 64 * "0", "size = 0"), (3, "x", "labels_digest = 'x'")],
)
def test_digested_labels_have_a_number_and_a_digest(size: Any, labels_digest: str, said: str) -> None:
    with pytest.raises(dc.DiscreetError, match=said):
        Digested(size, labels_digest)


def test_cells_take_the_same_numbers_whether_others_are_an_error_or_not() -> None:
    """Truth values are none, and numpy takes them for 0 and 1; decimals, which tables hold, are."""
    interval = dc.Interval(0, 60, cells=4)
    assert interval.find_numbers([True, Decimal("15.5"), 2]).tolist() == [-1, 1, 0]
    assert interval.numbers([Decimal("15.5"), 2]).tolist() == [1, 0]


def test_whether_labels_are_days_is_seen_before_millions_of_days_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    days = dc.Labels.days("2026-11-16", "2026-11-22")
    assert days.first_day == date(2026, 11, 16)
    monkeypatch.setattr(dc.Labels, "days", lambda first, last: pytest.fail("lists the days"))
    for labels in (["0001-01-01", "9999-12-31"], ["2026-11-17", "2026-11-16"], ["2026-11-16", "x"], [1, 2]):
        assert dc.Labels(labels).first_day is None


def test_missing_records_are_told_from_unknown_ones() -> None:
    labels = dc.Labels(["red", "blue"])
    for missing in (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT):
        with pytest.raises(dc.DiscreetError, match="records has missing values"):
            labels.numbers(["red", missing])
    for unknown in ("green", Decimal("sNaN"), pl.Series([1, 2])):
        with pytest.raises(dc.DiscreetError, match="unknown labels: "):
            labels.numbers(["red", unknown])


def test_records_given_as_a_distribution_are_named() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(["red", "blue"]), epsilon=1.0)
    for records in (["red", "blue"], "red", [["red"]], np.array(["red", "blue"], dtype=object), np.array("red")):
        with pytest.raises(
            dc.DiscreetError, match=r"p is not an array of numbers.*family\.law\(records=\.\.\.\) makes one"
        ):
            sampler.release(records)


@pytest.mark.parametrize(
    ("record", "hint"),
    [
        ("cafe\u0301", r"(did you mean 'caf\xe9', where this is 'cafe\u0301'?)"),
        ("Café ", "(did you mean 'café'?)"),
        ("caffé", "(did you mean 'café'?)"),
    ],
)
def test_an_unknown_label_names_the_one_that_was_meant(record: str, hint: str) -> None:
    """Texts that look the same are told apart by their characters."""
    with pytest.raises(dc.DiscreetError) as refused:
        dc.Labels(["café", "tea"]).numbers([record])
    assert hint in str(refused.value)
    with pytest.raises(dc.DiscreetError, match="unknown labels: 'zzz'; the domain is public"):
        dc.Labels(["café", "tea"]).numbers(["zzz"])


HIDDEN = "is a masked array, whose hidden values would be used; fill it first"


@pytest.mark.parametrize(
    ("outcomes", "records"),
    [(3, [0, 2]), (3, [0.0, 2.0]), (["a", "b"], ["a", "b"]), (dc.Interval(0, 6, cells=3), [1.0, 5.0])],
)
def test_a_masked_column_is_refused_since_its_hidden_records_would_count(outcomes: Any, records: list[Any]) -> None:
    for mask in ([False, True], False):
        with pytest.raises(dc.DiscreetError, match=f"records {HIDDEN}"):
            dc.Simplex(outcomes).law(records=np.ma.array(records, mask=mask))


def test_masked_counts_samples_and_laws_are_refused_wherever_they_are_read() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=2.0)
    hidden: Any = [False, False, True]
    numbers, shares = np.ma.array([5, 6, 7], mask=hidden), np.ma.array([0.5, 0.25, 0.25], mask=hidden)
    readers: dict[str, Any] = {
        "counts": lambda: dc.estimation.population(sampler, counts=numbers),
        "samples": lambda: dc.estimation.population(sampler, samples=np.ma.array([0, 1, 2], mask=hidden)),
        "p": lambda: dc.divergence("kl")(shares, [0.3, 0.3, 0.4]),
        "weights": lambda: dc.audit.certificate_of(
            np.ma.array([[3, 1], [1, 3]], mask=np.eye(2, dtype=bool)), epsilon=1.2
        ),
        "the output of the mechanism": lambda: dc.audit.black_box_audit(
            lambda bit, n: np.ma.array(np.zeros(n), mask=True), [0, 1], epsilon=1.0, draws=200
        ),
    }
    for name, read in readers.items():
        with pytest.raises(dc.DiscreetError, match=f"^{name} {HIDDEN}"):
            read()


def test_records_boxed_one_by_one_as_a_tensor_gives_them_are_unboxed() -> None:
    boxed = [np.array(0), np.array(2), 2]
    assert dc.Simplex(3).law(records=boxed).tolist() == dc.Simplex(3).law(records=[0, 2, 2]).tolist()
    assert dc.Simplex(["a", "b"]).law(records=[np.array("a"), np.array("b")]).tolist() == [0.5, 0.5]
    with pytest.raises(dc.DiscreetError, match="unknown outcomes: 3; outcomes are the numbers 0 to 2"):
        dc.Simplex(3).law(records=[np.array(3)])
