"""What a release is, said by the types: mypy reads these statements, and running them shows that they are true."""

from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import discreet as dc

COLOURS = dc.OptimalSampler(dc.Simplex(["red", "green", "blue"]), epsilon=1.0)
NUMBERS = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
CELLS = dc.OptimalSampler(dc.Simplex(dc.Interval(0, 60, cells=3)), epsilon=1.0)
BAND = dc.OptimalSampler(dc.Band([1.0, 2.0, 3.0], lower=0.0, upper=6.0), epsilon=1.0)
NAMED = dc.OptimalSampler(dc.Band([1.0, 2.0, 3.0], lower=0.0, upper=6.0, labels=["a", "b", "c"]), epsilon=1.0)
LAW = [0.5, 0.25, 0.25]


def test_one_client_written_as_a_list_releases_one_outcome() -> None:
    assert isinstance(assert_type(COLOURS.release(LAW), str), str)
    assert isinstance(assert_type(COLOURS.release({"red": 0.5, "blue": 0.5}), str), str)
    assert isinstance(assert_type(NUMBERS.release(LAW), int), int)
    assert isinstance(assert_type(NUMBERS.release(LAW, constant_time=True), int), int)
    assert isinstance(assert_type(CELLS.release(LAW), float), float)
    assert isinstance(assert_type(BAND.release(LAW), int), int)
    assert isinstance(assert_type(NAMED.release(LAW), str), str)


def test_many_clients_release_an_array() -> None:
    assert isinstance(assert_type(COLOURS.release([LAW, LAW]), NDArray[Any]), np.ndarray)
    assert isinstance(assert_type(NUMBERS.release([{0: 1.0}, {1: 1.0}]), NDArray[Any]), np.ndarray)


def test_an_array_may_hold_one_client_or_many() -> None:
    laws = COLOURS.family.law(counts=[[3, 2, 1], [1, 0, 0]])
    assert isinstance(assert_type(COLOURS.release(laws), str | NDArray[Any]), np.ndarray)
    assert isinstance(assert_type(COLOURS.release(COLOURS.family.law(counts=[3, 2, 1])), str | NDArray[Any]), str)


def test_numbers_that_travel_are_whole_and_mean_outcomes() -> None:
    number = assert_type(COLOURS.release_number(LAW), int)
    assert isinstance(assert_type(COLOURS.points(number), str), str)
    assert isinstance(assert_type(NUMBERS.release_number([LAW, LAW]), NDArray[np.int64]), np.ndarray)


@pytest.mark.slow
def test_a_continuous_client_releases_a_point() -> None:
    sampler = dc.OptimalSampler(dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0)), epsilon=1.0)
    point = assert_type(sampler.release(dc.Mixture([1.0], [0.5], 1.0)), float | NDArray[np.float64])
    assert isinstance(point, float)


def test_a_near_sample_is_a_number_or_a_point() -> None:
    line = dc.TransportSampler([0.0, 15.0, 60.0], epsilon=1.0)
    assert isinstance(assert_type(line.release(LAW), float | NDArray[Any]), float)
    assert isinstance(assert_type(line.release([LAW, LAW]), NDArray[Any]), np.ndarray)
    plane = dc.TransportSampler([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)], epsilon=1.0)
    assert np.shape(assert_type(plane.release(LAW), float | NDArray[Any])) == (2,)
    apart = dc.TransportSampler(metric=[[0, 1, 2], [1, 0, 1], [2, 1, 0]], epsilon=1.0)
    assert isinstance(assert_type(apart.release(LAW), float | NDArray[Any]), int)


def test_raw_records_and_several_samples_are_arrays() -> None:
    assert isinstance(assert_type(NUMBERS.randomised_response([0, 2]), NDArray[Any]), np.ndarray)
    assert isinstance(assert_type(COLOURS.release(LAW, size=2), NDArray[Any]), np.ndarray)
    joint = dc.JointSampler(dc.Simplex(["red", "green", "blue"]), samples=2, epsilon=1.0)
    assert isinstance(assert_type(joint.release(LAW), NDArray[Any]), np.ndarray)
    assert isinstance(assert_type(NUMBERS.with_samples(2).release(LAW), NDArray[Any]), np.ndarray)


def test_a_family_knows_what_its_outcomes_are_called() -> None:
    assert assert_type(COLOURS.family.labels, tuple[str, ...] | None) == ("red", "green", "blue")
    assert assert_type(NUMBERS.family.domain, dc.Domain[int]) == dc.Numbers(3)
