"""Ordered outcomes: the noise of others is what it is called, and no mechanism has a smaller worst case than the transport sampler."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from discreet.research.experiments._follow_up import OrderedComparison, OrderedSet, clamped_laplace_output_matrix


@pytest.mark.parametrize("size", [2, 5, 24])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_clamped_laplace_noise_is_private_and_a_law(size: int, epsilon: float) -> None:
    """Against the sum of two-sided geometric noise over all integers; and e^epsilon between any two rows, reached."""
    law = clamped_laplace_output_matrix(size, epsilon)
    assert law.sum(axis=1) == pytest.approx(np.ones(size))
    assert np.max(np.log(law[:, None] / law)) == pytest.approx(epsilon)
    shrink, far = math.exp(-epsilon / (size - 1)), np.arange(-4000, 4001)
    noise = (1 - shrink) / (1 + shrink) * shrink ** np.abs(far)
    for held in (0, size - 1):
        own = np.bincount(np.clip(held + far, 0, size - 1), weights=noise, minlength=size)
        assert law[held] == pytest.approx(own, abs=1e-9)


@pytest.mark.slow
def test_delays() -> None:
    experiment = replace(OrderedComparison(), epsilons=(2.0,), most=200)
    [row] = next(experiment.compute_records_in_batches(["delays/2"]))
    assert (row.measure, row.step, row.clients, len(row.places)) == ("minutes", 10.0, 200, 24)
    assert (row.places[0], row.places[-1]) == (-55.0, 175.0)
    worst = {name: one.single_outcome for name, one in row.distances.items()}
    assert worst["transport"] == pytest.approx(row.certified, rel=1e-5)
    assert all(worst["transport"] <= each for each in worst.values())
    for name, one in row.distances.items():
        assert one.mean <= one.largest, name
        q = np.asarray(row.shown_outputs[name])
        assert q.sum() == pytest.approx(1.0)
    assert row.distances["transport"].largest <= worst["transport"] * (1 + 1e-6)


@cache
def computed_rows() -> list[OrderedSet]:
    experiment = replace(OrderedComparison(), epsilons=(1.0, 2.0))
    return [
        next(experiment.compute_records_in_batches([unit]))[0] for unit in ("delays/1", "delays/2", "cholesterol/1")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["how-to/transport.md", "explanation/follow-up.md"])
def test_pages_say_what_is_computed(page: str) -> None:
    """Several floors have the smallest worst case, so a mean may change with the solver: by less than a thousandth, or the page is old."""
    text = (Path(__file__).parents[3] / "docs" / page).read_text()
    for row in computed_rows():
        [line] = [
            one for one in text.splitlines() if one.startswith(f"| {row.title}, {row.measure} | {row.epsilon:g} |")
        ]
        means = [float(cell.split()[0]) for cell in line.split("|")[3:7]]
        assert means == pytest.approx([each.mean for each in row.distances.values()], rel=1e-3)
