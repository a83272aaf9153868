"""A domain on a column: polars finds the outcome that the core does, for every number there is."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet.domain import Bins, Coding, Digested
from discreet.domain._coding import (
    LARGEST_DOMAIN,
    MARK_ABOVE,
    MARK_BELOW,
    MARK_MISSING,
    MARK_NAN,
    MARK_OUTSIDE,
    fit_coding_to_column,
    outcome_codes_expression,
)
from discreet.tables._sources._arrow import outcomes_as_samples
from tests.domain.kinds import hostile, intervals
from tests.soaking import examples


def read(coding: Coding, values: Sequence[float | None]) -> list[int]:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    return frame.select(outcome_codes_expression(coding, "x")).to_series().to_list()


@pytest.mark.slow
@given(intervals(most=LARGEST_DOMAIN), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_column_and_the_core_find_the_same_cell(interval: dc.Interval, data: st.DataObject) -> None:
    values = data.draw(st.lists(hostile(interval), min_size=1, max_size=20))
    inside = [value for value in values if interval.low <= value <= interval.high]
    found = read(Coding(interval), values)
    assert [cell for cell in found if cell != MARK_OUTSIDE] == interval.numbers(inside).tolist()
    assert found.count(int(MARK_OUTSIDE)) == len(values) - len(inside)
    sent = read(Coding(interval, "nearest"), values)
    for value, cell in zip(values, sent, strict=True):
        assert (cell == MARK_BELOW) == (value < interval.low)
        assert (cell == MARK_ABOVE) == (value > interval.high)


@pytest.mark.slow
@given(intervals(most=LARGEST_DOMAIN), st.data())
@settings(deadline=None)
def test_whole_numbers_of_64_bits_are_rounded_alike(interval: dc.Interval, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=10))
    inside = [value for value in values if interval.low <= float(value) <= interval.high]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)})
    found = frame.select(outcome_codes_expression(Coding(interval), "x")).to_series().to_list()
    assert [cell for cell in found if cell != MARK_OUTSIDE] == interval.numbers(inside).tolist()


@pytest.mark.slow
@given(intervals(most=LARGEST_DOMAIN), st.data())
@settings(deadline=None)
def test_points_that_are_published_lie_in_the_interval(interval: dc.Interval, data: st.DataObject) -> None:
    cells = np.array([0, interval.cells - 1, data.draw(st.integers(0, interval.cells - 1))])
    within = np.array(data.draw(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=3, max_size=3)))
    points = outcomes_as_samples(Coding(interval), cells, within).to_numpy()
    assert ((points >= interval.low) & (points <= interval.high)).all()
    assert (np.abs(interval.numbers(points) - cells) <= 1).all()  # a point may round to the edge
    assert (
        outcomes_as_samples(Coding(interval), cells, np.full(3, 0.5)).to_pylist()
        == np.asarray(interval.to_samples(cells)).tolist()
    )


def test_what_has_no_outcome_is_marked() -> None:
    assert read(Coding(dc.Interval(0, 1, cells=2)), [None, math.nan, 0.5]) == [int(MARK_MISSING), int(MARK_NAN), 1]
    frame = pl.DataFrame({"x": ["b", None, "z"]})
    found = frame.select(outcome_codes_expression(Coding(dc.Labels(["a", "b"])), "x")).to_series().to_list()
    assert found == [1, int(MARK_MISSING), int(MARK_OUTSIDE)]


@pytest.mark.parametrize(
    ("domain", "other", "message"),
    [
        (dc.Labels(["a", 1]), None, "neither all texts nor all integers"),
        (dc.Labels([True, False]), None, "labels are truth values; write 'false' and 'true'"),
        (
            dc.Labels(["a", "Rest"]),
            "rest",
            r"other = 'rest' is not one of the 2 labels \(did you mean 'Rest'\?\); .* add it to",
        ),
        (dc.Labels(["a", "b"]), "rest", "other = 'rest' is not one of the 2 labels; .* add it to the domain"),
        (dc.Labels([0, 1]), True, "other = True is not one of"),
        (dc.Labels([0, 1]), "x", "other = 'x' is not one of"),
        (dc.Numbers(3), 3, "other = 3 is not one of the outcomes 0 to 2; make the domain one larger"),
        (dc.Numbers(3), "x", "other = 'x' is not one of the outcomes 0 to 2"),
        (dc.Numbers(3), 1.5, "other = 1.5 is not a whole number"),
        (dc.Numbers(LARGEST_DOMAIN + 1), None, "more than 4,294,967,289"),
        (dc.Interval(0, 1, cells=2), 0, "with bounds use 'nearest'"),
        (Bins([0.0, 1.0]), 0, "with bounds use 'nearest'"),
        (Digested(2, "sha256:" + "0" * 64), None, "use Labels, Numbers or Interval"),
    ],
)
def test_refusals(domain: dc.Domain, other: object, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        Coding(domain, other)


def test_other_names_an_outcome_however_it_is_written() -> None:
    assert (
        Coding(dc.Numbers(3), "2").outcome_for_values_outside
        == Coding(dc.Numbers(3), 2).outcome_for_values_outside
        == 2
    )
    assert Coding(dc.Labels([5, 7]), "7").outcome_for_values_outside == 1
    assert fit_coding_to_column(Coding(dc.Labels(["5", "7"]), "7"), "x", pl.Int64(), agreed=False).other == 7
    assert Coding(dc.Interval(0, 1, cells=2), "nearest").outcome_for_values_outside is None
