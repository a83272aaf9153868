"""The way to the best floor: short, also where some entry is always about to reach a bound, and cautious where that leads nowhere."""

import math
from typing import Any

import numpy as np
import pytest

from discreet import DiscreetError, OptimalSampler, Simplex, divergence
from discreet._base.kernels import Code, force_implementation
from discreet.design import _solving as cuts, _solving as solving, design
from discreet.design._floors import as_example_clients
from discreet.design._interior import InteriorPoint
from discreet.errors import WideBracketWarning
from discreet.research import data
from tests.design.mechanisms import clients


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The value at every step that is taken."""
    taken: list[float] = []

    def counted(self: InteriorPoint, value: float, step: Any = InteriorPoint.take_step) -> None:
        taken.append(value)
        step(self, value)

    monkeypatch.setattr(InteriorPoint, "take_step", counted)
    return taken


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 14), (1.0, 14), (4.0, 17), (8.0, 25)])
def test_the_aircraft_take_few_steps_at_every_epsilon(epsilon: float, most: int, steps: list[float]) -> None:
    """Steps that are as long for all as for the one entry that is nearest to a bound would be 15, 16, 22 and 38."""
    laws = Simplex(104).law(counts=data.logbooks().counts)
    with force_implementation(Code.COMPILED):
        found = design(Simplex(104), epsilon=epsilon, clients=laws)
    assert len(steps) <= most
    assert found.value - found.bound <= 1e-4 * found.value


@pytest.mark.parametrize("name", ["kl", "hellinger", "chi2", "alpha:3"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_either_way_leads_to_the_same_floor(name: str, epsilon: float) -> None:
    """Clients of few outcomes, with weights over six orders of magnitude: each value is above the other's bound, within what is promised."""
    laws = clients(30, 12, 5)
    examples = as_example_clients(laws, 10.0 ** np.random.default_rng(1).uniform(-6.0, 0.0, 30), 12)
    found = [
        solving._run_interior_point(examples, divergence(name), epsilon, 0.01, None, cautious=cautious)
        for cautious in (True, False)
    ]
    for one in found:
        for other in found:
            assert one is not None
            assert other is not None
            assert -1e-12 <= one.value - other.bound <= 1e-4 * one.value + 1e-10


@pytest.mark.parametrize("lost", ["bound", "everything"])
def test_whoever_does_not_settle_is_led_cautiously(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value without a bound is kept, where it is the better one, and proved by the other way's certificate."""
    laws, asked = clients(20, 6, 5), []
    usual = design(Simplex(6), epsilon=1.0, clients=laws)

    def settled(*terms: Any, cautious: bool, led: Any = solving._run_interior_point) -> solving.FloorBracket | None:
        asked.append(cautious)
        found: solving.FloorBracket | None = led(*terms, cautious=cautious)
        if cautious or found is None:
            return found
        return None if lost == "everything" else solving.FloorBracket(found.floor, found.value, 0.0, found.certificate)

    monkeypatch.setattr(solving, "_run_interior_point", settled)
    found = design(Simplex(6), epsilon=1.0, clients=laws)
    assert asked == [False, True]
    assert found.value - found.bound <= 1e-4 * found.value
    assert abs(found.value - usual.value) <= 1e-4 * usual.value
    assert found.certificate.exact() >= found.bound


@pytest.mark.parametrize(
    ("name", "entries", "ways"), [("kl", 10**6, [False]), ("kl", 10, [True]), ("tv", 10**6, [True])]
)
def test_an_edge_and_very_many_clients_are_led_cautiously_at_once(
    name: str, entries: int, ways: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def settled(*terms: Any, cautious: bool, led: Any = solving._run_interior_point) -> Any:
        asked.append(cautious)
        return led(*terms, cautious=cautious)

    monkeypatch.setattr(solving, "_run_interior_point", settled)
    monkeypatch.setattr(solving, "_MOST_APART", entries)
    design(Simplex(6), epsilon=1.0, clients=clients(20, 6, 5), divergence=name)
    assert asked == ways


@pytest.mark.parametrize("name", ["kl", "tv", "chi2"])
def test_programmes_settle_what_interior_steps_do_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two steps, and after none at all; rationals confirm the certificate that comes of the programmes' multipliers."""
    laws = clients(20, 6, 5)
    usual = design(Simplex(6), epsilon=1.0, clients=laws, divergence=name)
    monkeypatch.setattr(solving, "STEPS", 2)
    monkeypatch.setattr(solving, "_STEPS_APART", 2)
    early = design(Simplex(6), epsilon=1.0, clients=laws, divergence=name)
    monkeypatch.setattr(solving, "_run_interior_point", lambda *_, cautious: None)
    never = design(Simplex(6), epsilon=1.0, clients=laws, divergence=name)
    for found in (early, never):
        assert found.value - found.bound <= 1e-4 * found.value
        assert abs(found.value - usual.value) <= 1e-4 * usual.value
        assert found.certificate.exact() >= found.bound


def test_a_wide_bracket_is_returned_with_a_warning_and_refused_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = clients(20, 6, 5)
    usual = design(Simplex(6), epsilon=1.0, clients=laws, tolerance=1e-4)
    monkeypatch.setattr(solving, "STEPS", 2)
    monkeypatch.setattr(solving, "_STEPS_APART", 2)
    monkeypatch.setattr(cuts, "LARGEST_CUT", 0)
    with pytest.warns(WideBracketWarning, match="bracket is wide: the kl of the best sampler is at most"):
        wide = design(Simplex(6), epsilon=1.0, clients=laws)
    assert wide.bound <= usual.value <= wide.value
    assert wide.certificate.exact() >= wide.bound
    with pytest.raises(DiscreetError, match=r"wider than tolerance = 0\.0001 of its value"):
        design(Simplex(6), epsilon=1.0, clients=laws, tolerance=1e-4)
    assert design(Simplex(6), epsilon=1.0, clients=laws, tolerance=1.0).value == wide.value
    with pytest.raises(DiscreetError, match="tolerance = -1 is not in"):
        design(Simplex(6), epsilon=1.0, clients=laws, tolerance=-1.0)


@pytest.mark.parametrize("name", ["kl", "tv", "hellinger", "chi2", "jensen_shannon"])
def test_where_every_method_fails_the_optimal_sampler_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificate, by the tangents at 1, is a lower bound all the same."""
    laws = clients(20, 6, 5)
    usual = design(Simplex(6), epsilon=1.0, clients=laws, divergence=name)
    monkeypatch.setattr(solving, "_run_interior_point", lambda *_, cautious: None)
    monkeypatch.setattr(cuts, "LARGEST_CUT", 0)
    with pytest.warns(WideBracketWarning):
        found = design(Simplex(6), epsilon=1.0, clients=laws, divergence=name)
    same = OptimalSampler(Simplex(6), epsilon=1.0)
    assert found.sampler.output(laws) == pytest.approx(same.output(laws), rel=1e-12)
    assert 0.0 <= found.bound <= usual.value <= found.value
    if name != "jensen_shannon":
        assert found.bound <= max(float(found.certificate.exact()), 0.0)


def test_steps_past_what_floats_hold_end_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: InteriorPoint, value: float) -> None:
        self.y = math.nan

    monkeypatch.setattr(InteriorPoint, "take_step", broken)
    examples = as_example_clients(clients(20, 6, 5), None, 6)
    assert solving._run_interior_point(examples, divergence("kl"), 1.0, 0.01, None, cautious=False) is None
