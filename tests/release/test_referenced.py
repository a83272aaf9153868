"""Over a reference that is not uniform: one law in integers, whichever code finds an outcome of it and however many outcomes there are."""

from fractions import Fraction
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

import discreet as dc
from discreet import release
from discreet._base.kernels import Code, force_implementation
from discreet._base.numerics import exp_lower
from discreet.release import TOTAL, _client_draws as plain, _client_draws_compiled as sparse, _lattice as constant_time
from discreet.release._client_draws import ClientColumns, ReferencePlan, make_draw_plan_of_lattice
from discreet.release._compiled import multiply_and_divide, outcome_by_reference_plan
from discreet.release._lattice import divide_missing_units_by_portions, multiply_and_divide_in_constant_time
from discreet.release._randomness import DIGEST_WORDS, Question, Secret
from tests.release.test_plain import read_only
from tests.soaking import examples

KEY = Secret(bytes(32)).run_key("cd" * 32, 1, Question(value="value"))
NONE = np.empty(0, dtype=np.int64)
Held = dict[int, int]


@st.composite
def problems(draw: st.DrawFn, largest: int = 16) -> tuple[Any, Held]:
    """A sampler over masses of up to 60 orders of e, or of a few units of 2^-62; and what a client holds, maybe nothing."""
    k = draw(st.integers(2, largest))
    orders = draw(st.sampled_from([0.1, 3.0, 25.0, 60.0]))
    weights = np.exp(-orders * np.array(draw(st.lists(st.floats(0, 1), min_size=k, max_size=k))))
    weights[draw(st.integers(0, k - 1))] *= 1.5
    upper = 1.0 + draw(st.sampled_from([1e-9, 1e-3, 0.5, 4.0, 300.0]))
    family = dc.Band(weights, lower=0.0, upper=upper, any_client=draw(st.booleans()))
    if isinstance(family.reference, float):
        family = dc.Band([1.0, 2.0], lower=0.0, upper=1.2)
    epsilon = draw(st.sampled_from([1e-9, 1e-4, 0.1, 0.5, 1.0, 3.0, 12.0, 40.0]))
    sampler = dc.OptimalSampler(family, epsilon=epsilon)
    held = draw(st.sets(st.integers(0, family.size - 1), max_size=family.size))
    top = draw(st.sampled_from([1, 3, 1000, 2**40]))
    return sampler, {x: draw(st.integers(1, top)) for x in sorted(held)}


def dense_law(sampler: Any, held: Held) -> NDArray[np.float64]:
    law = np.zeros((1, sampler.family.size))
    law[0, list(held)] = np.array(list(held.values())) / float(sum(held.values()))
    return law


def dense_parts(sampler: Any, law: NDArray[np.float64]) -> list[int]:
    """L, excess, portions and fill of a law, one after the other."""
    lattice = sampler.lattice
    _, slope, lift = release._lattice._draw_outcomes_with_slopes_and_lifts(
        lattice, law, None, np.array([min(lattice.shared_total, TOTAL - 1)])
    )
    return [
        int(n) for part in (lattice.lower, *(part[0] for part in lattice.weight_parts(law, slope, lift))) for n in part
    ]


def client_columns(held: Held, many: int, kind: str = "counts") -> ClientColumns:
    """So many clients who hold the same: in counts, in weights, or each outcome once."""
    ends, outcomes = np.arange(many + 1) * len(held), np.tile(np.array(list(held), dtype=np.uint32), many)
    counts = np.tile(np.array(list(held.values()), dtype=np.int64), many)
    weights = counts.astype(np.float64) if kind == "weights" else np.empty(0)
    counts = counts if kind == "counts" else NONE
    return read_only(np.arange(many), NONE, np.empty(0, np.uint8), ends, outcomes, counts, weights)


def by_sparse(plan: Any, held: Held, integers: list[int]) -> list[int]:
    outcomes, own = np.array(list(held), dtype=np.uint32), np.empty(len(held), dtype=np.int64)
    masses = np.array(list(held.values())) / float(max(1, sum(held.values())))
    return [int(outcome_by_reference_plan(plan, outcomes, masses, own, u)) for u in integers]


def by_plain(plan: Any, held: Held, integers: list[int]) -> list[int]:
    law = np.array(list(held), dtype=np.uint64), np.array(list(held.values()), dtype=np.uint64)
    shared = int(plan.edges[-1])
    found = iter(
        plain._outcomes_beyond_shared_part(
            plan, [law for u in integers if u >= shared], [u for u in integers if u >= shared]
        )
    )
    return [next(found) if u >= shared else int(np.searchsorted(plan.edges, u, side="right")) - 1 for u in integers]


def ends_of(parts: list[int]) -> list[int]:
    """Both sides of every step of the draw."""
    ends = np.cumsum(np.array(parts, dtype=object)).tolist()
    return sorted({u for end in (0, *ends) for u in (end - 1, end) if 0 <= u < TOTAL})


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(problems())
@example((dc.OptimalSampler(dc.Band([1, 2, 3], lower=0, upper=1.2, any_client=True), epsilon=1.0), {0: 1}))
@example((dc.OptimalSampler(dc.Band([1, 2**40], lower=0, upper=1.2, any_client=True), epsilon=9.0), {0: 1}))
def test_the_two_laws_are_one(problem: tuple[Any, Held]) -> None:
    """Step functions of the integer that agree on both sides of every step, and have as many, are equal: five ways to draw."""
    sampler, held = problem
    if not held:
        return
    lattice, law = sampler.lattice, dense_law(sampler, held)
    plan = make_draw_plan_of_lattice(lattice, None)
    assert isinstance(plan, ReferencePlan)
    parts = dense_parts(sampler, law)
    integers = ends_of(parts)
    size = sampler.family.size
    steps = np.cumsum(np.array(parts, dtype=object))
    expected = [int(np.searchsorted(steps, u, side="right")) % size for u in integers]
    for code in Code:
        with force_implementation(code):
            many = np.repeat(law, len(integers), axis=0)
            assert release.outcomes(lattice, many, None, np.array(integers)).tolist() == expected
    assert by_sparse(plan, held, integers) == expected
    assert by_plain(plan, held, integers) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@settings(max_examples=examples(100), deadline=None)
@given(problems())
def test_every_weight_is_in_the_lattice_and_the_sum_is_exact(problem: tuple[Any, Held]) -> None:
    """In fractions: L <= W <= U <= e^epsilon L, sum 2^62; and it is the projection, up to rounding."""
    sampler, held = problem
    lattice, law = sampler.lattice, dense_law(sampler, held or {0: 1})
    ratio = exp_lower(sampler.epsilon)
    for weights in (
        sampler.weights(law[0]),
        sum(constant_time.weight_parts_in_constant_time(lattice, law[0], None)) + lattice.lower,
    ):
        assert sum(map(int, weights)) == TOTAL
        for low, weight, high in zip(lattice.lower, weights, lattice.upper, strict=True):
            assert 1 <= low <= weight <= high
            assert Fraction(int(high)) <= ratio * int(low)
    with force_implementation(Code.NUMPY):
        assert np.array_equal(sampler.weights(law[0]), sampler.weights(law)[0])
    units = sum(dense_parts(sampler, law)[3 * sampler.family.size :])  # those that only fill up: a few for each outcome
    thin = float(np.min(np.asarray(lattice.upper) - lattice.lower)) < 4.0  # rooms of a few units cannot follow a law
    assert thin or units <= 2**12 + 8 * sampler.family.size
    assert thin or np.abs(sampler.weights(law[0]) / 2.0**62 - sampler.output(law[0])).max() <= 1e-13


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(problems())
def test_a_client_without_records_draws_from_the_reference(problem: tuple[Any, Held]) -> None:
    """Weights read off the draw itself, in the box, and the reference up to rounding."""
    sampler, _ = problem
    lattice, size = sampler.lattice, sampler.family.size
    plan = make_draw_plan_of_lattice(lattice, None)
    portion = divide_missing_units_by_portions(
        lattice.portions, np.array([TOTAL - lattice.shared_total]), lattice.shared_total
    )
    left = TOTAL - lattice.shared_total - int(portion.sum())
    fill = release._lattice.hand_out_units(np.asarray(lattice.upper) - lattice.lower - portion, left)
    weights = lattice.lower + portion + fill
    assert (weights <= lattice.upper).all()
    integers = ends_of([int(n) for part in (lattice.lower, portion, fill) for n in part])
    steps = np.cumsum(np.array([int(n) for part in (lattice.lower, portion, fill) for n in part], dtype=object))
    expected = [int(np.searchsorted(steps, u, side="right")) % size for u in integers]
    assert by_sparse(plan, {}, integers) == by_plain(plan, {}, integers) == expected
    thin = float(np.min(np.asarray(lattice.upper) - lattice.lower)) < 4.0
    assert thin or np.abs(weights / 2.0**62 - sampler.family.reference).max() <= 1e-13


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(problems(), st.integers(1, 40))
def test_compiled_and_plain_draw_the_same(problem: tuple[Any, Held], many: int) -> None:
    """With keyed randomness: outcomes, words and digest, counted or weighed, with and without anything held."""
    sampler, held = problem
    plan = make_draw_plan_of_lattice(sampler.lattice, None)
    for kind in ("counts", "weights", "records"):
        one, other = (keyed(code, plan, client_columns(held, many, kind)) for code in (sparse, plain))
        assert all((a == b).all() for a, b in zip(one, other, strict=True))


def keyed(code: ModuleType, plan: Any, clients: ClientColumns) -> tuple[NDArray[Any], ...]:
    out, order, within = np.empty(len(clients), np.int64), np.empty(len(clients), np.uint64), np.empty(len(clients))
    digest, problem = np.zeros(DIGEST_WORDS, np.uint64), np.zeros(2, np.int64)
    assert (
        code.draw_outcomes_of_clients(
            plan, clients, code.initial_state_of_run(KEY), 0, len(clients), out, order, within, digest, problem
        )
        == -1
    )
    return out, order, within, digest


@pytest.mark.slow
def test_the_frequencies_are_those_of_the_law() -> None:
    """Twenty thousand keyed draws of one kind of client, against its weights: five standard deviations each."""
    rng = np.random.default_rng(5)
    family = dc.Band(rng.exponential(size=12) + 0.01, lower=0.0, upper=3.0, any_client=True)
    sampler = dc.OptimalSampler(family, epsilon=1.5)
    held, many = {2: 3, 7: 1}, 20_000
    drawn = keyed(sparse, make_draw_plan_of_lattice(sampler.lattice, None), client_columns(held, many))[0]
    expected = sampler.weights(dense_law(sampler, held)[0]) / 2.0**62
    assert (np.abs(np.bincount(drawn, minlength=12) / many - expected) <= 5 * np.sqrt(expected / many)).all()


@pytest.mark.slow
@given(st.integers(1, TOTAL), st.integers(0, TOTAL), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_wide_quotients_are_exact(c: int, b: int, data: st.DataObject) -> None:
    a = data.draw(st.integers(0, c))
    assert (
        multiply_and_divide(a, b, c) == a * b // c == int(multiply_and_divide_in_constant_time(np.array([a]), b, c)[0])
    )
    assert multiply_and_divide(a, b, 0) == 0


@pytest.mark.slow
@given(st.lists(st.integers(0, 2**58), min_size=1, max_size=12), st.integers(0, TOTAL), st.integers(1, TOTAL))
@settings(max_examples=examples(200), deadline=None)
def test_portions_are_running_sums_rounded_up(parts: list[int], missing: int, shared: int) -> None:
    """Word for word as the docstring defines them, in Python's integers."""
    whole = sum(parts)
    limit = min(missing, whole * (TOTAL - shared) // TOTAL)
    ends = np.cumsum([0, *parts], dtype=object)
    expected = [
        -(-after * limit // max(whole, 1)) + (-before * limit // max(whole, 1)) for before, after in pairwise(ends)
    ]
    assert divide_missing_units_by_portions(np.array(parts), np.array([missing]), shared).tolist() == expected
    assert sum(expected) == limit


@pytest.mark.slow
def test_a_large_domain_is_drawn_from_without_a_pass_over_it() -> None:
    """2^20 outcomes over many orders: the weight of each of a client's outcomes, found by bisection, is that of the dense law."""
    rng = np.random.default_rng(1)
    size = 1 << 20
    sampler = dc.OptimalSampler(
        dc.Band(rng.exponential(size=size) ** 4 + 1e-9, lower=0, upper=50.0, any_client=True), epsilon=2.0
    )
    held = {0: 3, size // 3: 1, size - 1: 2}
    plan = make_draw_plan_of_lattice(sampler.lattice, None)
    integers = [*rng.integers(0, TOTAL, 300).tolist(), 0, TOTAL - 1]
    expected = release.outcomes(
        sampler.lattice, np.repeat(dense_law(sampler, held), 5, axis=0), None, np.array(integers[:5])
    )
    assert by_sparse(plan, held, integers)[:5] == expected.tolist()
    assert by_sparse(plan, held, integers) == by_plain(plan, held, integers)
