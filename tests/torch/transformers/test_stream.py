"""A stream: contexts and budgets chosen as it goes, refused before it could exceed its budget."""

from pathlib import Path

import pytest
import torch

from discreet.accounting import Odometer
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Entry, Ledger
from tests.needed import needed_module

needed_module("transformers", "pip install '.[transformers]'")
from discreet.torch.transformers import TokenStream  # noqa: E402
from discreet.torch.transformers._terms import box_profile_of_one_token  # noqa: E402

LOGITS, PUBLIC = torch.randn(2, 30, generator=torch.Generator().manual_seed(1))


def test_a_stream_adds_up_what_each_token_cost_and_refuses_the_one_too_many() -> None:
    stream = TokenStream(budget=Budget(epsilon=3.0), vocabulary=30)
    for epsilon in (0.5, 1.0, 1.5):
        assert 0 <= stream.draw(LOGITS, PUBLIC, epsilon=epsilon) < 30
    assert stream.odometer.pure == stream.odometer.epsilon == 3.0
    with pytest.raises(BudgetError, match="could exceed"):
        stream.draw(LOGITS, PUBLIC, epsilon=0.001)
    assert len(stream.tokens) == 3
    assert stream.odometer == Odometer(
        delta=0.0, releases=tuple((box_profile_of_one_token(epsilon, None, 30), 1) for epsilon in (0.5, 1.0, 1.5))
    )


def drawn_until_refused(stream: TokenStream, epsilon: float) -> int:
    while True:
        try:
            stream.draw(LOGITS, PUBLIC, epsilon=epsilon)
        except BudgetError:
            return len(stream.tokens)


def test_a_delta_lets_more_tokens_through() -> None:
    assert drawn_until_refused(TokenStream(budget=Budget(epsilon=1.0), vocabulary=30), 0.1) == 10
    stream = TokenStream(budget=Budget(epsilon=1.0, delta=0.01), vocabulary=30)
    assert 15 < drawn_until_refused(stream, 0.1) < 200
    assert stream.odometer.epsilon < stream.odometer.pure


def test_tokens_of_a_stream_are_paid_for_and_come_back(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=2.0))

    def stream(purpose: str = "") -> TokenStream:
        return TokenStream(budget=Budget(epsilon=5.0), vocabulary=30, ledger=ledger, purpose=purpose)

    first = stream()
    tokens = [first.draw(LOGITS, PUBLIC, epsilon=1.0) for _ in range(2)]
    second = stream()
    assert [second.draw(PUBLIC, PUBLIC, epsilon=1.0) for _ in range(2)] == tokens
    assert len(ledger.entries()) == 2
    with pytest.raises(BudgetError):
        stream("other").draw(LOGITS, PUBLIC, epsilon=1.0)


def test_what_does_not_fit_is_named_before_anything_is_charged() -> None:
    stream = TokenStream(budget=Budget(epsilon=2.0), vocabulary=30)
    with pytest.raises(DiscreetError, match="shape"):
        stream.draw(LOGITS[:7], PUBLIC[:7], epsilon=1.0)
    with pytest.raises(DiscreetError, match="NaN"):
        stream.draw(LOGITS / 0.0 * 0.0, PUBLIC, epsilon=1.0)
    assert stream.tokens == []
    assert stream.odometer.pure == 0.0


def test_a_restarted_stream_has_spent_what_its_ledger_holds(tmp_path: Path) -> None:
    """The odometer starts from the entries of the ledger, and what is asked for a place that is paid for does not matter."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=50.0))

    def stream() -> TokenStream:
        return TokenStream(budget=Budget(epsilon=21.0), vocabulary=30, ledger=Ledger(ledger.path))

    first = stream()
    tokens = [first.draw(LOGITS, PUBLIC, epsilon=epsilon) for epsilon in (10.0, 0.25, 10.0)]
    assert first.odometer.pure == 20.25

    second = stream()
    assert second.odometer == first.odometer
    assert [second.draw(PUBLIC, PUBLIC, epsilon=0.125) for _ in range(2)] == tokens[:2]
    assert second.odometer.pure == 20.25
    assert second.draw(PUBLIC, PUBLIC, epsilon=30.0) == tokens[2]  # paid for: nothing new is spent
    assert second.tokens == tokens
    with pytest.raises(BudgetError, match="could exceed"):
        second.draw(LOGITS, PUBLIC, epsilon=1.0)
    second.draw(LOGITS, PUBLIC, epsilon=0.75)
    assert second.odometer.pure == 21.0 == float(ledger.spent().basic)
    assert first.odometer == second.odometer  # the one that was left behind knows too


def test_what_other_streams_spent_is_not_on_the_odometer(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=5.0))
    one, other = (
        TokenStream(budget=Budget(epsilon=3.0), vocabulary=30, ledger=ledger, purpose=purpose) for purpose in "ab"
    )
    one.draw(LOGITS, PUBLIC, epsilon=2.0)
    other.draw(LOGITS, PUBLIC, epsilon=1.0)
    assert (one.odometer.pure, other.odometer.pure, float(ledger.spent().basic)) == (2.0, 1.0, 3.0)


def test_a_token_that_another_process_paid_for_meanwhile_is_booked_as_it_was_paid(tmp_path: Path) -> None:
    """Between the look at the ledger and the charge another stream under the same terms takes the place."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=50.0))

    class Overtaken(Ledger):
        def entries(self) -> list[Entry]:
            seen = super().entries()
            if not seen:
                rival.draw(LOGITS, PUBLIC, epsilon=8.0)
            return seen

    rival = TokenStream(budget=Budget(epsilon=20.0), vocabulary=30, ledger=ledger)
    stream = TokenStream(budget=Budget(epsilon=20.0), vocabulary=30, ledger=Overtaken(ledger.path))
    assert [stream.draw(LOGITS, PUBLIC, epsilon=0.5)] == rival.tokens
    assert stream.odometer.pure == 8.0
