"""A law in whole numbers: the same law is the same numbers, the grid costs next to nothing, and noise seldom crosses a line."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from discreet.release._randomness import integer_law_of_counts, integer_law_of_weighted_records

Law = dict[int, Fraction]

RECORDS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2**70)), max_size=30)
WEIGHTS = st.lists(
    st.tuples(st.integers(0, 8), st.one_of(st.floats(0.0, 10.0), st.floats(0.0, 1.7e308), st.floats(0.0, 1e-310))),
    max_size=30,
)


def law_of(rows: list[tuple[int, Fraction]]) -> Law:
    sums: Law = {}
    for x, amount in rows:
        sums[x] = sums.get(x, Fraction(0)) + amount
    total = sum(sums.values())
    return {x: amount / total for x, amount in sorted(sums.items()) if amount}


def normalised(numbers: dict[int, int]) -> Law:
    return law_of([(x, Fraction(number)) for x, number in numbers.items()])


@given(RECORDS)
def test_counts_are_their_law_and_nothing_else(rows: list[tuple[int, int]]) -> None:
    numbers = integer_law_of_counts([x for x, _ in rows], [count for _, count in rows])
    assert normalised(numbers) == law_of([(x, Fraction(count)) for x, count in rows])
    assert list(numbers) == sorted(numbers)
    assert math.gcd(*numbers.values()) in (0, 1)


@pytest.mark.slow
@settings(deadline=None)
@given(WEIGHTS, st.randoms(use_true_random=False))
@example([(0, 1.0), (1, 2.0**-45), (2, 2.0**-44)], None)
def test_the_grid_keeps_a_law_and_costs_less_than_a_millionth(rows: list[tuple[int, float]], random: object) -> None:
    numbers = integer_law_of_weighted_records([x for x, _ in rows], [weight for _, weight in rows])
    exact = law_of([(x, Fraction(weight)) for x, weight in rows])
    assert bool(numbers) == bool(exact), "a client with a positive weight has a law, and only that"
    if exact:
        found = normalised(numbers)
        distance = sum(abs(found.get(x, Fraction(0)) - p) for x, p in exact.items()) / 2
        nothing = sum(1 for p in exact.values() if p < Fraction(1, 2**44))
        assert distance <= Fraction(1, 2**21) + nothing * Fraction(1, 2**44)
        assert all(number > 0 for number in numbers.values())
    shuffled = rows if random is None else random.sample(rows, len(rows))  # type: ignore[attr-defined]
    assert integer_law_of_weighted_records([x for x, _ in shuffled], [weight for _, weight in shuffled]) == numbers


@pytest.mark.slow
def test_many_outcomes_cost_no_more() -> None:
    """2^15 outcomes of one weight and one of another: no line of 2^-20 would tell those from nothing."""
    number = 1 << 15
    weights = [1.0] * (number - 1) + [1e4]
    found = normalised(integer_law_of_weighted_records(range(number), weights))
    exact = law_of([(x, Fraction(weight)) for x, weight in enumerate(weights)])
    assert sum(abs(found[x] - exact[x]) for x in exact) / 2 <= Fraction(1, 2**21)


def test_what_cancellation_leaves_behind_changes_nothing() -> None:
    """Neither as an outcome nor, by the number of outcomes, in the fineness of the grid: two have s = 21, three 22."""
    assert integer_law_of_weighted_records([0, 1, 2], [0.7, 0.31, 1e-17]) == integer_law_of_weighted_records(
        [0, 1], [0.7, 0.31]
    )
    assert len(integer_law_of_weighted_records([0, 1, 2], [0.7, 0.31, 1e-6])) == 3


@pytest.mark.parametrize("factor", [2.0, 3.0, 0.1, 1e-300, 1e300, 5e-310])
def test_one_law_is_one_message(factor: float) -> None:
    """0.1 + 0.2 is 0.3 here, and a law is the same in cents, in euros and in units that floats hardly reach."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        weights = rng.integers(1, 1000, rng.integers(1, 9)) / 100
        plain = integer_law_of_weighted_records(range(weights.size), weights)
        if factor == 5e-310:  # so few bits are left there that it is another law, but one all the same
            assert integer_law_of_weighted_records(range(weights.size), weights * factor)
            continue
        assert integer_law_of_weighted_records(range(weights.size), weights * factor) == plain
    assert (
        integer_law_of_weighted_records([0, 1], [0.1 + 0.2, 0.7])
        == integer_law_of_weighted_records([0, 0, 1], [0.1, 0.2, 0.7])
        == integer_law_of_weighted_records([0, 1], [0.3, 0.7])
    )


def crossings(clients: int, outcomes: int, noise: float, seed: int) -> float:
    """The share of clients with weights of all sizes whose numbers change when each weight does, by a factor 1 +- noise."""
    rng = np.random.default_rng(seed)
    changed = 0
    for _ in range(clients):
        weights = rng.gamma(0.5, size=outcomes)
        nudged = weights * (1.0 + noise * rng.choice([-1.0, 1.0], outcomes))
        changed += integer_law_of_weighted_records(range(outcomes), weights) != integer_law_of_weighted_records(
            range(outcomes), nudged
        )
    return changed / clients


@pytest.mark.slow
@pytest.mark.parametrize("outcomes", [2, 6, 30])
def test_noise_crosses_a_line_as_seldom_as_the_formula_says(outcomes: int) -> None:
    """At noise so strong that it can be counted: below 2^(s+1) d, and not out of all proportion."""
    clients, bound = 2000, 1 / 4
    noise = bound * 2.0 ** -(20 + (outcomes - 1).bit_length() + 1)
    share = crossings(clients, outcomes, noise, seed=outcomes)
    assert share <= bound + 5 * math.sqrt(bound * (1 - bound) / clients)
    assert share >= bound / 30


@pytest.mark.slow
def test_the_last_bit_crosses_none() -> None:
    """6,000 clients of ten outcomes: 2^-26 of a client is to be expected."""
    assert crossings(6000, 10, 2.0**-52, seed=0) == 0.0


def test_multiples_of_a_unit_do_not_cross_at_all() -> None:
    """Cents up to 2^(50-s) in all, in every order of summation, at the worst place there is: right beside a line."""
    outcomes, bits = 4, 22
    most = 2 ** (50 - bits) - 1
    beside = next(a for a in range(1, most) if (a * 2 ** (bits + 1)) % (2 * most) in (most - 1, most + 1))
    for noise in (0.0, 2.0**-53, -(2.0**-53)):
        weights = np.array([beside, most - beside - 2, 1, 1]) * 0.01
        weights[0] *= 1.0 + 2 * noise
        weights[1] *= 1.0 - 2 * noise
        assert integer_law_of_weighted_records(range(outcomes), weights) == integer_law_of_weighted_records(
            range(outcomes), np.array([beside, most - beside - 2, 1, 1])
        )
