"""What one token can tell, for what is really drawn with; how many a budget allows; ids."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import discreet as dc
from discreet.accounting import compose
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget
from discreet.privacy import extreme_masses
from discreet.release import TOTAL
from discreet.torch._host import DeviceBox, make_terms
from tests.needed import needed_module

needed_module("transformers", "pip install '.[transformers]'")
from discreet.torch.transformers import TokenTerms  # noqa: E402
from discreet.torch.transformers._terms import box_profile_of_one_token  # noqa: E402
from tests.soaking import examples  # noqa: E402

TERMS = TokenTerms(epsilon=0.5, tokens=64, vocabulary=1000)


@settings(max_examples=examples(40), deadline=None)
@given(
    epsilon=st.floats(0.05, 12.0),
    upper=st.none() | st.floats(1.2, 1e4),
    size=st.integers(2, 400),
    seed=st.integers(0, 99),
)
@example(
    epsilon=5.0, upper=None, size=2, seed=67
)  # whose ratio is 117, less than e^5: m B is larger for that, and every delta less
def test_the_profile_covers_the_integers_of_every_reference(
    epsilon: float, upper: float | None, size: int, seed: int
) -> None:
    told = box_profile_of_one_token(epsilon, upper, size)
    weights = np.random.default_rng(seed).dirichlet(np.full(size, 0.1)) + 1e-12
    most = make_terms(epsilon=epsilon, upper=upper).family_bounds.upper
    lattice = dc.OptimalSampler(dc.Band(weights, lower=0, upper=most, any_client=True), epsilon=epsilon).lattice
    lower, upper_mass = extreme_masses(Fraction(lattice.shared_total, TOTAL), lattice.largest_ratio)
    for beta in (part * epsilon for part in (0.0, 0.25, 0.5, 0.75, 0.95)):
        assert upper_mass - Fraction(math.exp(beta)) * lower <= Fraction(told.delta(beta))


@pytest.mark.parametrize(
    "epsilon", [0.1, 1.0, 2.0, 8.0, 24.0, 26.0, 30.0]
)  # of the last an integer for each token is much of b 2^62
@pytest.mark.parametrize("upper", [None, 1.5, 30.0])
def test_the_profile_covers_what_a_gpu_may_share(epsilon: float, upper: float | None) -> None:
    box = DeviceBox.from_size_and_terms(128_256, make_terms(epsilon=epsilon, upper=upper))
    told = box_profile_of_one_token(epsilon, upper, 128_256)
    for shared in (box.surely_shared, (box.surely_shared + box.first_unshared) // 2, box.first_unshared):
        part, ratio = Fraction(min(shared, TOTAL - 1), TOTAL), Fraction(math.exp(epsilon))
        mass = min(1 - part, ratio * part - 1) / (ratio - 1) * ratio  # m B
        assert float(mass) <= told.upper_mass


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_budget_allows_as_many_tokens_as_compose_to_it(delta: float) -> None:
    budget = Budget(epsilon=9.0, delta=delta)
    found = replace(TERMS, tokens=500).within(budget)
    profile = found.profile_of(0)
    assert (
        compose([(profile, found.tokens)]).epsilon(delta) <= 9.0 < compose([(profile, found.tokens + 1)]).epsilon(delta)
    )
    assert found.delta == delta
    assert TERMS.within(Budget(epsilon=1000.0)).tokens == 64
    with pytest.raises(BudgetError, match="one token"):
        TERMS.within(Budget(epsilon=0.1))


def test_a_schedule_spends_what_it_says() -> None:
    scheduled = replace(TERMS, epsilon=0.5, tokens=6, schedule=(2, 1.0, 2.0))
    assert scheduled.schedule == (2.0, 1.0, 2.0)
    assert [scheduled.epsilon_of(place) for place in range(6)] == [2.0, 1.0, 2.0, 0.5, 0.5, 0.5]
    parts = [(scheduled.profile_of(0), 2), (scheduled.profile_of(1), 1), (scheduled.profile_of(5), 3)]
    assert [profile.epsilon for profile, _ in parts] == [2.0, 1.0, 0.5]
    assert scheduled.loss.largest == pytest.approx(6.5, rel=1e-12)
    assert scheduled.total == min(scheduled.loss.largest, compose(parts).epsilon(scheduled.delta))
    assert scheduled.largest == 2.0
    assert (
        replace(TERMS, tokens=2, epsilon=3.0, schedule=(0.5, 0.7)).largest == 0.7
    )  # no token has the epsilon of the rest
    assert replace(TERMS, tokens=3, schedule=[0.5, 0.5]).schedule == (0.5, 0.5)


def test_a_budget_cuts_a_schedule_off_where_it_ends() -> None:
    scheduled = replace(TERMS, epsilon=1.0, tokens=10, schedule=(4.0, 2.0, 2.0))
    assert replace(scheduled).within(Budget(epsilon=6.5)).schedule == (4.0, 2.0)
    assert scheduled.within(Budget(epsilon=10.0)).tokens == 5
    with pytest.raises(BudgetError, match="epsilon = 4"):
        scheduled.within(Budget(epsilon=3.0))


def test_the_id_is_that_of_the_terms() -> None:
    assert TERMS.id == replace(TERMS, delta=1e-6).id
    changes: dict[str, Any] = {
        "epsilon": 0.6, "tokens": 65, "vocabulary": 1001, "upper": 3.0, "delta": 1e-7, "temperature": 0.9, "top_k": 5, "top_p": 0.5,
        "reference_temperature": 1.1, "schedule": (0.6,), "model": "m", "public": "p", "purpose": "letters",
    }  # fmt: skip
    others = [replace(TERMS, **{name: value}) for name, value in changes.items()]
    assert len({TERMS.id, *(each.id for each in others)}) == len(others) + 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"epsilon": 0.0}, "epsilon"), ({"epsilon": math.nan}, "epsilon"), ({"tokens": 0}, "tokens"), ({"tokens": 50_001}, "tokens"),
        ({"tokens": 1.5}, "tokens"), ({"vocabulary": 1}, "vocabulary"), ({"upper": 1.0}, "upper"), ({"delta": 1.0}, "delta"),
        ({"delta": -1e-9}, "delta"), ({"temperature": 0.0}, "temperature"), ({"top_k": 0}, "top_k"), ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"), ({"purpose": 3}, "purpose"), ({"purpose": "\ud800"}, "UTF-8"),
        ({"reference_temperature": math.nan}, "reference_temperature"), ({"schedule": 2.0}, "schedule"), ({"schedule": "22"}, "schedule"),
        ({"schedule": (1.0, 0.0)}, r"schedule\[1\]"), ({"schedule": (1.0,) * 65}, "65 epsilons and tokens = 64"),
    ],
)  # fmt: skip
def test_terms_out_of_range_are_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(DiscreetError, match=told):
        replace(TERMS, **changed)
