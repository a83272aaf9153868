"""What carries labels is read by them: dicts, Series, frames, and lists of these; unknown labels are refused, missing ones are 0."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import estimation
from discreet._base.labelled import values_in_outcome_order

COLOURS = dc.Simplex(["red", "green", "blue"])
SAMPLER = dc.OptimalSampler(COLOURS, epsilon=1.0)
LAW = {"blue": 0.1, "red": 0.7, "green": 0.2}
SERIES = pd.Series(LAW)
FRAME = pd.DataFrame([SERIES, SERIES.iloc[::-1]])
WANTED = SAMPLER.output([0.7, 0.2, 0.1])


@pytest.mark.parametrize("p", [LAW, SERIES, SERIES.iloc[::-1], SERIES.astype("Float64")], ids=repr)
def test_one_client_is_read_by_label(p: Any) -> None:
    assert np.array_equal(SAMPLER.output(p), WANTED)
    assert np.array_equal(SAMPLER.weights(p), SAMPLER.weights([0.7, 0.2, 0.1]))
    assert SAMPLER.scale(p) == SAMPLER.scale([0.7, 0.2, 0.1])
    assert COLOURS.contains(p)


@pytest.mark.parametrize(
    "p",
    [
        FRAME,
        FRAME[["green", "red", "blue"]],
        FRAME.astype("Float64"),
        pl.DataFrame(FRAME),
        pa.Table.from_pandas(FRAME, preserve_index=False),
        [SERIES, LAW],
        (LAW, SERIES.iloc[::-1]),
        {"blue": [0.1, 0.1], "red": [0.7, 0.7], "green": [0.2, 0.2]},
    ],
    ids=lambda p: type(p).__name__,
)
def test_many_clients_are_read_by_label(p: Any) -> None:
    assert np.array_equal(SAMPLER.output(p), [WANTED, WANTED])


def test_a_label_left_out_is_zero() -> None:
    assert COLOURS.law(counts={"blue": 2}).tolist() == [0.0, 0.0, 1.0]
    assert COLOURS.law(counts=Counter(["blue", "red", "blue", "blue"])).tolist() == [0.25, 0.0, 0.75]
    assert np.array_equal(SAMPLER.output({"red": 1.0}), SAMPLER.output([1.0, 0.0, 0.0]))
    assert COLOURS.law(logits={"blue": 0.0, "green": 0.0}).tolist() == [0.0, 0.5, 0.5]


def test_whole_numbers_name_outcomes_without_labels() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
    assert np.array_equal(sampler.output(pd.Series([0.7, 0.2, 0.1], index=[2, 0, 1])), sampler.output([0.2, 0.1, 0.7]))


def test_the_index_that_pandas_gives_names_nothing() -> None:
    assert np.array_equal(SAMPLER.output(pd.Series([0.7, 0.2, 0.1])), WANTED)
    assert np.array_equal(SAMPLER.output(pd.DataFrame([[0.7, 0.2, 0.1]])), [WANTED])
    numbered = dc.OptimalSampler(dc.Simplex([1, 2, 3]), epsilon=1.0)
    with pytest.raises(
        dc.DiscreetError, match=r"default index, and 1 is also the label of another outcome; .*to_numpy"
    ):
        numbered.output(pd.Series([0.7, 0.2, 0.1]))


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ({"blue": 0.5, "pink": 0.5}, "p has unknown labels: 'pink'"),
        ([LAW, {"pink": 1.0}], r"p\[1\] has unknown labels: 'pink'"),
        (FRAME.assign(client=["a", "b"]), "fill or drop|unknown labels: 'client'|not an array of numbers"),
        ({}, "empty dict"),
        ({"red": 10**400}, "that a float can hold"),
        ({"red": np.ma.array([1.0], mask=[True])}, "masked array"),
        ([[LAW]], "not an array of numbers"),
        ({"red": "all"}, "not an array of numbers"),
        ({"red": [0.5, 0.5], "blue": [0.5]}, "equal shape"),
        ({"red": 0.5, "blue": 0.4}, "sums to 0.9"),
        (pd.DataFrame([[0.2, 0.1, 0.7]], columns=["red", "red", "blue"]), "label 'red' twice"),
        (pd.Series([0.5, np.nan, 0.5], index=["red", "green", "blue"]), "NaN"),
        (pd.Series([0.5, pd.NA, 0.5], index=["red", "green", "blue"], dtype="Float64"), "NaN|missing"),
        ([LAW, [0.7, 0.2]], "equal shape"),
    ],
    ids=repr,
)
def test_refusals(p: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        SAMPLER.release(p)


def test_frames_are_no_records_and_no_lists_of_labels() -> None:
    with pytest.raises(dc.DiscreetError, match=r"records is a dict, .* or counts="):
        COLOURS.law(records={"red": 3, "blue": 1})
    with pytest.raises(dc.DiscreetError, match="records is a DataFrame"):
        COLOURS.law(records=FRAME)
    for outcomes in ({"red", "green"}, {"red": 1}, FRAME):
        with pytest.raises(dc.DiscreetError, match="pass a list, each outcome once"):
            dc.Simplex(outcomes)  # type: ignore[arg-type]
    assert COLOURS.law(records=pd.Series(["red", "blue"])).tolist() == [0.5, 0.0, 0.5]


def test_weights_of_a_band_name_its_outcomes() -> None:
    band = dc.Band({"x": 1.0, "y": 3.0}, lower=0.5, upper=2.0)
    assert band.labels == ("x", "y")
    assert dc.Band(pd.Series({"y": 3.0, "x": 1.0}), lower=0.5, upper=2.0, labels=["x", "y"]) == band
    with pytest.raises(dc.DiscreetError, match="unknown labels: 'z'"):
        dc.Band({"x": 1.0, "z": 3.0}, lower=0.5, upper=2.0, labels=["x", "y"])
    with pytest.raises(dc.DiscreetError, match=r"weights\[1\] = 0 is not in"):
        dc.Band({"x": 1.0}, lower=0.5, upper=2.0, labels=["x", "y"])


def test_references_examples_and_nearest_members_are_read_by_label() -> None:
    in_place = [0.7, 0.2, 0.1]
    assert dc.MollifierSampler(COLOURS, epsilon=1.0, reference=SERIES) == dc.MollifierSampler(
        COLOURS, epsilon=1.0, reference=in_place
    )
    band = dc.Band([1, 1, 1], lower=0.5, upper=1.5, labels=COLOURS.labels)
    assert np.array_equal(dc.mechanisms.nearest_member(band, LAW), dc.mechanisms.nearest_member(band, in_place))
    assert dc.design(COLOURS, epsilon=1.0, clients=FRAME).value == pytest.approx(
        dc.design(COLOURS, epsilon=1.0, clients=[in_place, in_place]).value, rel=1e-12
    )


def test_divergences_put_two_laws_under_the_same_labels() -> None:
    tv = dc.divergence("tv")
    assert tv(SERIES, SERIES.iloc[::-1]) == 0.0
    assert tv({"x": 1.0}, {"y": 1.0}) == 1.0
    assert np.array_equal(tv([SERIES, LAW], FRAME), [0.0, 0.0])
    with pytest.raises(dc.DiscreetError, match="p has labels and q has none"):
        tv(SERIES, [0.7, 0.2, 0.1])


def test_counts_of_a_population_are_read_by_label() -> None:
    sampler = dc.LinearSampler(dc.Simplex(["x", "y"]), epsilon=2.0)
    drawn = pd.Series(["y"] * 90 + ["x"] * 10)
    wanted = estimation.population(sampler, counts=[10, 90]).nearest
    assert np.array_equal(estimation.population(sampler, counts=drawn.value_counts()).nearest, wanted)
    assert np.array_equal(estimation.population(sampler, counts={"y": 90, "x": 10}).nearest, wanted)


def test_counts_past_every_float_keep_their_digits() -> None:
    large = 2**53 + 1
    assert values_in_outcome_order({1: large}, 2, lambda labels: np.array([0]), "counts").tolist() == [large, 0]


@pytest.mark.parametrize("labels", [[False, True], [True, False], np.array([True, False])], ids=repr)
def test_booleans_are_outcomes(labels: Any) -> None:
    family = dc.Simplex(labels)
    p = family.law(records=[True, True, False, True])
    assert p.tolist() == family.law(counts=pd.Series([True, True, False, True]).value_counts()).tolist()
    assert dict(zip(family.labels or (), p.tolist(), strict=True)) == {True: 0.75, False: 0.25}
    sampler = dc.OptimalSampler(family, epsilon=1.0)
    assert {bool(drawn) for drawn in sampler.release([p] * 64)} == {True, False}
    assert isinstance(sampler.release(p), (bool, np.bool_))


def test_booleans_are_not_mistaken_for_numbers() -> None:
    for record in (True, np.True_):
        with pytest.raises(dc.DiscreetError, match=r"for booleans take Simplex\(\[False, True\]\)"):
            dc.Simplex(2).law(records=[record])


@pytest.mark.parametrize(
    "column", [np.array, pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values])]
)
def test_labels_and_records_may_be_columns(column: Any) -> None:
    family = dc.Simplex(column(["red", "green"]))
    assert repr(family) == "Simplex(['red', 'green'])"
    assert family == dc.Simplex(["red", "green"])
    assert family.law(records=column(["green", "green", "red", "green"])).tolist() == [0.25, 0.75]


def test_a_damaged_column_of_pyarrow_is_refused_before_it_is_read() -> None:
    ends = pa.py_buffer(np.array([0, 4_000_000, 1], dtype="<i4").tobytes())
    outside = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"ab")])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 900_000]), pa.array(["a", "b"]), safe=False)
    family = dc.Simplex(["a", "b"])
    sampler = dc.LinearSampler(family, epsilon=1.0)
    for damaged in (outside, coded, pa.chunked_array([outside])):
        for read in (
            lambda column: family.law(records=column),
            lambda column: dc.Simplex(column),
            lambda column: sampler.randomised_response(column),
            lambda column: dc.estimation.population(sampler, samples=column),
            lambda column: dc.estimation.population(sampler, samples=["a", "b"], clients=column),
        ):
            with pytest.raises(dc.DiscreetError, match="a column of pyarrow is damaged"):
                read(damaged)
    assert family.law(records=pa.array(["a", "b"])).tolist() == [0.5, 0.5]
