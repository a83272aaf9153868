"""The compiled steps are those of numpy, up to the rounding of sums; and either way the bound holds."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from discreet import Simplex, divergence
from discreet._base.kernels import Code, force_implementation
from discreet.design import design
from discreet.design._compiled import CompiledSteps
from discreet.design._floors import ExampleClients, as_example_clients
from discreet.design._interior import FloorBounds, InteriorPoint, PlainSteps
from discreet.design._newton import Objective
from tests.design.mechanisms import clients

interior = sys.modules[InteriorPoint.__module__]
EPSILON, SIZE = 2.0, 9


def _examples(*, alike: bool) -> ExampleClients:
    """Clients of one outcome, of a few, and of all there are."""
    laws = np.vstack([clients(40, SIZE, 3), np.eye(SIZE)[:4], np.full((2, SIZE), 1.0 / SIZE)])
    weights = None if alike else np.random.default_rng(4).gamma(0.3, size=len(laws))
    return as_example_clients(laws, weights, SIZE)


@pytest.mark.parametrize("cautious", [True, False])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("name", ["kl", "hellinger", "chi2", "tv", "hockey_stick:2"])
def test_a_step_is_the_same(name: str, alike: bool, cautious: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one block of numpy's, and on many compiled ones; as long for all, and as long as each entry allows."""
    monkeypatch.setattr(interior, "_COMPILED_BLOCK", 50)
    apart: list[str] = []
    for steps in (PlainSteps, CompiledSteps):

        def noticed(
            self: Any, primal: float, total: float, by: Any = steps, move: Any = steps.step_each_pair_alone
        ) -> None:
            apart.append(by.__name__)
            move(self, primal, total)

        monkeypatch.setattr(steps, "step_each_pair_alone", noticed)
    objective, ratio = Objective.of_divergence(divergence(name)), math.exp(EPSILON)
    promise = FloorBounds(0.01 / (ratio + SIZE - 1), 1.0 - 0.01 / (1.0 + (SIZE - 1) / ratio))
    found = []
    for code in Code:
        with force_implementation(code):
            point = InteriorPoint(
                _examples(alike=alike),
                EPSILON,
                promise,
                objective.slope_at_one,
                objective.make_entry_cost,
                cautious=cautious,
            )
            for _ in range(6):
                point.take_step(point.mean_cost)
            multipliers = np.concatenate([block.multiplier for block in point.blocks])
            found.append((len(point.blocks), point.mean_cost, point.gap, point.floor, multipliers))
    plain, compiled = found
    assert plain[0] == 1
    assert compiled[0] > 2
    assert set(apart) == (set() if cautious or objective.gamma is not None else {"PlainSteps", "CompiledSteps"})
    for part in range(1, len(plain)):
        np.testing.assert_allclose(np.asarray(compiled[part]), np.asarray(plain[part]), rtol=1e-8)


@pytest.mark.parametrize("name", ["kl", "tv"])
def test_designs_agree(name: str) -> None:
    laws = clients(60, 12, 8)
    found = []
    for code in Code:
        with force_implementation(code):
            found.append(design(Simplex(12), epsilon=1.0, clients=laws, divergence=name))
    for one in found:
        assert max(other.bound for other in found) <= one.value <= one.bound * (1.0 + 1e-4)
        assert one.certificate.exact() >= one.bound


def test_a_design_does_not_depend_on_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in its last bit: on examples for compiled code, in several threads, and on few, for which numpy is enough."""
    monkeypatch.setattr(interior, "_COMPILED_BLOCK", 3_000)
    many, few = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 2_000), clients(60, 12, 8)
    first = [design(Simplex(one.shape[1]), epsilon=1.0, clients=one) for one in (few, many)]
    again = [design(Simplex(one.shape[1]), epsilon=1.0, clients=one) for one in (few, many)]
    for one, other in zip(first, again, strict=True):
        assert (one.family.weights == other.family.weights).all()
        assert (one.value, one.bound) == (other.value, other.bound)
