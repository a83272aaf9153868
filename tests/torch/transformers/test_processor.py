"""Inside `generate` of transformers: the tokens are the ones drawn here, and ways of generating that would take others are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Ledger
from tests.needed import needed_module

needed_module("transformers", "pip install '.[transformers]'")
from discreet.torch.transformers import (  # noqa: E402
    PrivateLogits,
    TokenTerms,
    _stream as processor,
)
from tests.torch.transformers.models import SIZE, model  # noqa: E402

TERMS = TokenTerms(epsilon=1.0, tokens=6, vocabulary=SIZE)


def private_logits(rows: int = 1, **given: Any) -> PrivateLogits:
    return PrivateLogits(TERMS, model(), [[3, 4]] * rows, known=192, ends=[1], **given)


def generated(held: PrivateLogits, rows: int = 1, **given: Any) -> list[list[int]]:
    prompt = torch.tensor([[9, 10, 11]] * rows)
    found = model().generate(
        prompt, attention_mask=torch.ones_like(prompt), logits_processor=[held], pad_token_id=1,
        **{"do_sample": True, "max_new_tokens": 6, **given},
    )  # fmt: skip
    return [row[3:] for row in found.tolist()]


@pytest.mark.parametrize("given", [{}, {"temperature": 0.1, "top_k": 2}, {"do_sample": False}])
def test_the_framework_takes_the_tokens_that_were_drawn(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    script = iter([[5, 6], [7, 1], [8], [9], [10], [11]])
    monkeypatch.setattr(processor, "draw_tokens", lambda private, public, terms, known, place: next(script))
    held = private_logits(2)
    assert generated(held, 2, **given) == [[5, 7, 8, 9, 10, 11], [6, 1, 1, 1, 1, 1]]
    assert [(each.released, each.stopped) for each in held.statements] == [(6, "tokens"), (2, "end")]


def test_tokens_are_paid_for_and_a_ledger_that_refuses_ends_the_text(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=2.5))
    (tokens,) = generated(private_logits(ledger=ledger))
    paid = [entry.sample for entry in ledger.entries()]
    assert tokens in ([*paid, 1], paid)
    assert len(paid) <= 2


@pytest.mark.parametrize("given", [{"num_beams": 2}, {"num_return_sequences": 2}])
def test_several_candidates_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(DiscreetError, match="beams"):
        generated(private_logits(), **given)


def test_more_tokens_than_were_agreed_on_and_a_second_call_are_refused() -> None:
    held = PrivateLogits(TERMS, model(), [[3, 4]], known=192)  # no token ends it
    with pytest.raises(BudgetError, match="max_new_tokens=6"):
        generated(held, max_new_tokens=9, eos_token_id=None)
    again = private_logits()
    generated(again, max_new_tokens=2)
    with pytest.raises(DiscreetError, match="one call"):
        generated(again, max_new_tokens=2)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=2.5))
    with pytest.raises(DiscreetError, match="one row"):
        private_logits(2, ledger=ledger)
    with pytest.raises(DiscreetError, match="no prompt"):
        PrivateLogits(TERMS, model(), [[]], known=192)
    with pytest.raises(DiscreetError, match="one vocabulary"):
        PrivateLogits(TokenTerms(epsilon=1.0, tokens=6, vocabulary=7), model(), [[3]], known=7)
