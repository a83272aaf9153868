"""A release by the same instructions whatever falls where: the law, the lattice, and the walk through the program."""

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet import release
from discreet.release import TOTAL, _lattice as constant_time
from tests.soaking import examples

KINDS = (dc.OptimalSampler, dc.MollifierSampler, dc.LinearSampler)


def samplers(rng: np.random.Generator) -> Any:
    """Simplices and bands of 1 to 40 outcomes, over all budgets."""
    size, epsilon = int(rng.integers(1, 41)), float(rng.choice([1e-6, 0.01, 0.5, 1.0, 3.0, 9.0]))
    kind = KINDS[rng.integers(3)]
    if kind is dc.LinearSampler or size == 1 or rng.random() < 0.5:
        return kind(dc.Simplex(size), epsilon=epsilon)
    weights = rng.random(size) ** rng.choice([1, 30]) + 1e-12
    return kind(dc.Band(weights, lower=0.0, upper=1.2 + 5.0 * rng.random()), epsilon=epsilon)


def laws(rng: np.random.Generator, size: int) -> Any:
    match rng.integers(4):
        case 0:
            return np.eye(size)[rng.integers(size)]
        case 1:
            return np.full(size, 1.0 / size)
        case 2:
            tiny = np.full(size, 5e-324)
            tiny[rng.integers(size)] = 1.0
            return tiny
        case _:
            found = rng.dirichlet(np.full(size, rng.choice([0.01, 0.3, 5.0])))
            return found / found.sum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=examples(300))
def test_it_is_the_law_of_every_release(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sampler = samplers(rng)
    p, lattice = laws(rng, sampler.family.size), sampler.lattice
    weights = sum(constant_time.weight_parts_in_constant_time(lattice, p, sampler.mixing)) + lattice.lower
    assert sum(map(int, weights)) == TOTAL
    assert (weights >= lattice.lower).all()
    assert (weights <= lattice.upper).all()
    assert np.abs(weights - sampler.weights(p)).max() <= 1e-13 * TOTAL
    uniform = np.concatenate([rng.integers(0, TOTAL, 20), [0, TOTAL - 1, min(lattice.shared_total, TOTAL - 1)]])
    drawn = [constant_time.outcome_in_constant_time(lattice, p, sampler.mixing, int(u)) for u in uniform]
    ends = {x: int(w) for x, w in enumerate(weights)}
    assert set(drawn) <= {x for x, w in ends.items() if w}
    others = release.outcomes(lattice, np.tile(p, (len(uniform), 1)), sampler.mixing, uniform)
    assert (others[:20] != drawn[:20]).sum() <= 1  # an integer may fall between two ends that differ in their last bits


def test_every_integer_is_answered_as_the_weights_say() -> None:
    """Counted over the ends of all parts: as many integers fall on an outcome as it has weight."""
    sampler = dc.OptimalSampler(dc.Simplex(5), epsilon=1.0)
    p = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    excess, fill = constant_time.weight_parts_in_constant_time(sampler.lattice, p, None)
    lower = np.broadcast_to(sampler.lattice.lower, 5)
    ends = np.cumsum(np.concatenate([lower, excess, fill]))
    counted = dict.fromkeys(range(5), 0)
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            first = constant_time.outcome_in_constant_time(sampler.lattice, p, None, int(start))
            assert constant_time.outcome_in_constant_time(sampler.lattice, p, None, int(end) - 1) == first
            counted[first] += int(end - start)
    assert list(counted.values()) == [int(w) for w in excess + fill + lower]


def walked(sampler: Any, p: Any, uniform: int) -> list[tuple[str, int]]:
    """Every line of the package that a draw passes."""
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if "discreet" in frame.f_code.co_filename:
            lines.append((frame.f_code.co_name, frame.f_lineno))
            return trace
        return None

    lattice, mixing = sampler.lattice, sampler.mixing
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        constant_time.outcome_in_constant_time(lattice, p, mixing, uniform)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("kind", KINDS)
def test_the_walk_does_not_depend_on_the_client_or_the_draw(kind: Any) -> None:
    sampler = kind(dc.Simplex(50), epsilon=3.0)
    rng = np.random.default_rng(0)
    first = walked(sampler, np.full(50, 0.02), 0)
    assert len(first) > 10
    for _ in range(40):
        assert walked(sampler, laws(rng, 50), int(rng.integers(TOTAL))) == first


def test_release_offers_it() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)
    assert {sampler.release([0.8, 0.2, 0.0], constant_time=True) for _ in range(100)} <= {"a", "b", "c"}
    with pytest.raises(dc.DiscreetError, match="one law at a time"):
        sampler.release([[0.8, 0.2, 0.0]] * 2, constant_time=True)
    with pytest.raises(dc.DiscreetError, match=r"sums to 0\.9"):
        sampler.release([0.7, 0.2, 0.0], constant_time=True)
    with pytest.raises(dc.DiscreetError, match="NaN"):
        sampler.release([0.7, 0.3, float("nan")], constant_time=True)
    with pytest.raises(dc.DiscreetError, match="finite families"):
        dc.OptimalSampler(dc.GaussianMixtures(1), epsilon=1.0).release(dc.Mixture([1.0], [0.0]), constant_time=True)
