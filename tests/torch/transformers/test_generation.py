"""Texts: the public law is a function of public things, bit for bit; a token is paid for before it leaves; a text ends when it should."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet._base.numerics import exp_lower
from discreet.accounting import compose
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Ledger
from discreet.torch import weights
from discreet.torch.transformers import _generation as generation, _stream as drawing
from tests.needed import needed_module

needed_module("transformers", "pip install '.[transformers]'")
from discreet.torch.transformers import PrivateText, TokenTerms, generate, load_model  # noqa: E402
from discreet.torch.transformers._models import Context, SeparateContexts  # noqa: E402
from discreet.torch.transformers._stream import public_logits_as_reference  # noqa: E402
from tests.torch.transformers.models import SIZE, loaded, model, saved, tokenizer  # noqa: E402

PUBLIC = "Beautiful is better"
PRIVATES = ["Namespaces are one honking great idea", "ugly", "In the face of ambiguity refuse the temptation to guess"]
WORDS = 192  # that the tokenizer knows


def one(private: str = PRIVATES[0], **given: Any) -> PrivateText:
    found = generate(
        model(), tokenizer(), **{"public": PUBLIC, "private": private, "epsilon": 1.0, "tokens": 6, **given}
    )
    assert isinstance(found, PrivateText)
    return found


def fixed(tokens: list[int]) -> Callable[..., list[int]]:
    """In place of draws: these tokens, the same for every row."""
    left = iter(tokens)
    return lambda private, public, terms, known, place: [next(left)] * len(private)


def noted(
    monkeypatch: pytest.MonkeyPatch, privates: list[str], tokens: list[int], **given: Any
) -> list[list[torch.Tensor]]:
    """The private and the public logits of each step, for a text that is given."""
    seen: list[list[torch.Tensor]] = []
    draw = fixed(tokens)

    def watched(private: Any, public: Any, terms: Any, known: int, place: int) -> list[int]:
        assert place == len(seen)
        seen.append([private.clone(), public.clone()])
        return draw(private, public, terms, known, place)

    with monkeypatch.context() as patch:
        patch.setattr(generation, "draw_tokens", watched)
        generate(model(), tokenizer(), public=PUBLIC, private=privates, epsilon=1.0, tokens=len(tokens), **given)
    return seen


def references(monkeypatch: pytest.MonkeyPatch, privates: list[str], tokens: list[int]) -> list[torch.Tensor]:
    """The public logits of each step, for a text that is given."""
    return [public for _, public in noted(monkeypatch, privates, tokens)]


def test_the_public_law_is_the_same_bit_for_bit_whatever_the_private_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths included: were both kinds of prompt in one batch, its padding would show in the last bits."""
    text = [17, 40, 99, 5, 63, 120]
    first = references(monkeypatch, [PRIVATES[0], PRIVATES[1]], text)
    second = references(monkeypatch, [PRIVATES[2], "a " * 40], text)
    assert len(first) == len(second) == len(text)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert not torch.equal(first[0], first[1])


def test_what_a_row_is_drawn_from_is_the_same_bit_for_bit_whatever_other_clients_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one batch it is not: that the padding shows there is why it is not the default."""
    text = [17, 40, 99, 5, 63, 120]

    def rows(other: str, **given: Any) -> list[torch.Tensor]:
        return [private[0] for private, _ in noted(monkeypatch, [PRIVATES[1], other], text, **given)]

    alike = [torch.equal(*pair) for pair in zip(rows(PRIVATES[0]), rows("a " * 40), strict=True)]
    assert all(alike)
    batched = [
        torch.equal(*pair)
        for pair in zip(rows(PRIVATES[0], together=True), rows("a " * 40, together=True), strict=True)
    ]
    assert not all(batched)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_rows_apart_have_the_logits_of_rows_alone(kind: str) -> None:
    rows = [[5, 6, 7], [8, 9, 10, 11, 12, 13]]
    apart, alone = SeparateContexts(model(kind), rows, 0), [Context(model(kind), [row], 0) for row in rows]
    for step in range(3):
        assert torch.equal(apart.next_token_logits(), torch.cat([context.next_token_logits() for context in alone]))
        apart.append_tokens(torch.tensor([20 + step, 30 + step]))
        for context, token in zip(alone, (20 + step, 30 + step), strict=True):
            context.append_tokens(torch.tensor([token]))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_caches_and_padding_give_the_logits_of_the_whole_text(kind: str) -> None:
    rows = [[5, 6, 7], [8, 9, 10, 11, 12, 13]]
    together = Context(model(kind), rows, 0)
    together.next_token_logits()
    for step in range(3):
        together.append_tokens(torch.tensor([20 + step, 30 + step]))
        rows = [[*rows[0], 20 + step], [*rows[1], 30 + step]]
        found = together.next_token_logits()
        for place, row in enumerate(rows):
            alone = Context(model(kind), [row], 0).next_token_logits()[0]
            assert torch.allclose(found[place], alone, rtol=1e-4, atol=1e-4)


def test_a_text_of_several_tokens_is_at_most_e_to_the_sum_times_as_likely_from_one_prompt_as_from_another() -> None:
    """Every text of two tokens out of four, in the integers it is drawn with; without tolerance."""
    terms = TokenTerms(epsilon=0.7, tokens=2, vocabulary=SIZE, top_k=4)

    def law(private: list[int], text: list[int]) -> dict[int, Fraction]:
        own, public = (
            Context(model(), [private + text], 0).next_token_logits(),
            Context(model(), [[3, 4, *text]], 0).next_token_logits(),
        )
        found = weights(logits=own, reference=public_logits_as_reference(public, terms, WORDS), epsilon=0.7)[0].tolist()
        return {token: Fraction(weight, 2**62) for token, weight in enumerate(found) if weight}

    first = [law(private, []) for private in ([50, 60, 70], [80])]
    assert set(first[0]) == set(first[1])
    assert len(first[0]) == 4
    most = Fraction(0)
    for token in first[0]:
        then = [law(private, [token]) for private in ([50, 60, 70], [80])]
        for last, (one, other) in product(then[0], ((0, 1), (1, 0))):
            most = max(most, first[one][token] * then[one][last] / (first[other][token] * then[other][last]))
    assert 1 < most <= exp_lower(0.7) ** 2


def test_a_text_has_its_tokens_and_the_statement_of_their_composition() -> None:
    found = one(tokens=12, upper=6.0, delta=1e-3)
    said = found.statement
    assert len(found.tokens) == said.released == 12 or said.stopped == "end"
    assert found.text == tokenizer().decode(found.tokens, skip_special_tokens=True)
    terms = TokenTerms(epsilon=1.0, tokens=12, vocabulary=SIZE, upper=6.0, delta=1e-3)
    assert said.epsilon == compose([(terms.profile_of(0), 12)]).epsilon(1e-3) < said.pure == 12.0
    assert said.document["agreement"] == said.agreement
    assert said.agreement in str(said)


def test_a_schedule_is_what_tokens_are_drawn_and_paid_for_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def watched(**given: Any) -> torch.Tensor:
        asked.append(given["epsilon"])
        flatter = given["logits"][:, :WORDS] / 1.25  # both models have read the same
        assert torch.allclose(given["reference"][:, :WORDS], flatter, atol=1e-4)
        return torch.tensor([40])

    monkeypatch.setattr(drawing, "release", watched)
    ledger = Ledger.create(tmp_path / "client", Budget(epsilon=20.0))
    spent = {"epsilon": 0.5, "schedule": (4.0, 2.0), "tokens": 5, "reference_temperature": 1.25, "ledger": ledger}
    found = one(PUBLIC, **spent)
    assert asked[:2] == [0.5, 2.0]  # tried before the first token leaves
    paid = asked[2:]
    assert paid == [4.0, 2.0, 0.5, 0.5, 0.5]
    assert [entry.epsilon for entry in ledger.entries()] == paid
    assert (found.statement.epsilon_per_token, found.statement.pure) == (4.0, 7.5)


@pytest.mark.parametrize("schedule", [(1.0, 1e-17), (1.0, 2.0, 1e300), (1e-17, 1.0, 2.0), (1.0, 1e300, 1e-17)])
def test_an_epsilon_that_cannot_be_drawn_with_is_refused_before_the_first_token(
    tmp_path: Path, schedule: tuple[float, ...]
) -> None:
    ledger = Ledger.create(tmp_path / "client", Budget(epsilon=20.0))
    with pytest.raises(DiscreetError, match=r"epsilon = 1e(-17|\+300) is"):
        one(PUBLIC, epsilon=1.0, schedule=schedule, tokens=5, ledger=ledger)
    assert ledger.entries() == []


def test_rows_of_a_batch_end_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    script = iter([[5, 6], [1, 7], [8], [1]])

    def scripted(private: Any, public: Any, terms: Any, known: int, place: int) -> list[int]:
        assert len(private) == len(public)
        return next(script)

    monkeypatch.setattr(generation, "draw_tokens", scripted)
    found = generate(model(), tokenizer(), public=PUBLIC, private=PRIVATES[:2], epsilon=1.0, tokens=9)
    assert isinstance(found, list)
    assert [text.tokens for text in found] == [(5, 1), (6, 7, 8, 1)]
    assert [(text.statement.released, text.statement.stopped) for text in found] == [(2, "end"), (4, "end")]
    assert [text.statement.tokens for text in found] == [9, 9]  # what was agreed on is what is composed


def test_a_budget_says_how_many_tokens_there_are() -> None:
    found = one(tokens=100, epsilon=0.5, budget=Budget(epsilon=2.0))
    assert found.statement.tokens == 4
    assert found.statement.pure == 2.0
    assert found.statement.delta == 0.0
    with pytest.raises(BudgetError, match="one token"):
        one(budget=Budget(epsilon=0.5))


def test_tokens_are_paid_for_and_asked_again_come_back(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=3.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "draw_tokens", fixed([5, 6, 7, 8, 9, 10]))
        found = one(tokens=6, ledger=ledger)
    assert found.tokens == (5, 6, 7)  # the fourth could not be paid
    assert found.statement.stopped == "budget"
    assert [entry.sample for entry in ledger.entries()] == [5, 6, 7]
    assert {entry.agreement for entry in ledger.entries()} == {found.statement.agreement}
    again = one(PRIVATES[2], tokens=6, ledger=ledger)  # whatever the prompt is by then
    assert again.tokens == found.tokens
    assert len(ledger.entries()) == 3
    with pytest.raises(BudgetError):
        one(tokens=6, ledger=ledger, number=2)


def test_no_token_leaves_that_was_not_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=30.0))
    real = Ledger.charged_sample

    def failing(self: Ledger, *given: Any, **named: Any) -> int:
        if named["round"] == 3:
            raise OSError("the disk is gone")
        return real(self, *given, **named)

    monkeypatch.setattr(Ledger, "charged_sample", failing)
    monkeypatch.setattr(generation, "draw_tokens", fixed([5, 6, 7]))  # none of which ends the text
    with pytest.raises(OSError, match="disk"):
        one(tokens=6, ledger=ledger)
    assert len(ledger.entries()) == 2
    monkeypatch.undo()
    kept = [entry.sample for entry in ledger.entries()]
    assert list(one(tokens=6, ledger=ledger).tokens[:2]) == kept


def test_what_the_public_law_rules_out_is_never_drawn() -> None:
    public = torch.randn(3, SIZE, generator=torch.Generator().manual_seed(1))
    terms = TokenTerms(epsilon=1.0, tokens=1, vocabulary=SIZE, top_k=10, top_p=0.9, temperature=0.5)
    found = public_logits_as_reference(public, terms, WORDS)
    assert (found[:, WORDS:] == -math.inf).all()
    kept = (found > -math.inf).sum(1)
    assert (kept <= 10).all()
    assert (kept >= 1).all()
    for row in range(3):
        law = torch.softmax(found[row].double(), -1)
        inside = torch.softmax(public[row, :WORDS].double() / 0.5, -1).topk(10).values
        assert float((inside / inside.sum())[: int(kept[row]) - 1].sum()) < 0.9
        assert math.isclose(float(law.sum()), 1.0)
    plain = public_logits_as_reference(public, TokenTerms(epsilon=1.0, tokens=1, vocabulary=SIZE), SIZE)
    assert plain is public
    for _ in range(3):
        assert all(token < WORDS for token in one(epsilon=0.1, tokens=20).tokens)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_models_that_were_saved_are_loaded_and_write(tmp_path: Path, kind: str) -> None:
    found, words = loaded(saved(tmp_path, kind))
    text = generate(found, words, public=PUBLIC, private=PRIVATES[0], epsilon=1.0, tokens=5, public_model=model(kind))
    assert isinstance(text, PrivateText)
    assert 1 <= len(text.tokens) <= 5


WRONG: list[tuple[str, Callable[[], dict[str, Any]], str]] = [
    ("no prompt", lambda: {"private": []}, "0"),
    ("numbers of prompts", lambda: {"public": [PUBLIC] * 3}, "3 prompts"),
    ("no text", lambda: {"private": [5]}, "not a text"),
    ("an empty prompt", lambda: {"private": ""}, "empty prompt"),
    ("too long", lambda: {"tokens": 126}, "past the 128"),
    ("a long private prompt", lambda: {"private": "ugly " * 125}, "private has"),
    ("a budget", lambda: {"budget": 3.0}, "Budget"),
    ("a ledger", lambda: {"ledger": ["here"]}, "Ledger"),
    ("a number", lambda: {"number": 0}, "number"),
    ("epsilon", lambda: {"epsilon": -1.0}, "epsilon"),
    ("a model", lambda: {"public_model": "gpt2"}, "no causal language model"),
]


@pytest.mark.parametrize(("made", "told"), [pytest.param(made, told, id=name) for name, made, told in WRONG])
def test_what_does_not_fit_is_named_before_anything_is_drawn(
    made: Callable[[], dict[str, Any]], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "draw_tokens", lambda *given: pytest.fail("something was drawn"))
    with pytest.raises(DiscreetError, match=told):
        one(**made())


def test_a_ledger_serves_one_row(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=30.0))
    with pytest.raises(DiscreetError, match="all different"):
        generate(
            model(), tokenizer(), public=PUBLIC, private=PRIVATES[:2], epsilon=1.0, tokens=3, ledger=[ledger, ledger]
        )
    assert ledger.entries() == []


def test_a_model_in_training_is_refused() -> None:
    learner = model("llama")
    learner.train()
    try:
        with pytest.raises(DiscreetError, match="eval"):
            generate(learner, tokenizer(), public=PUBLIC, private=PUBLIC, epsilon=1.0, tokens=3)
    finally:
        learner.eval()


def test_logits_that_are_no_law_are_refused_before_a_charge(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=30.0))
    broken, _ = loaded(saved(tmp_path / "model"))
    with torch.no_grad():
        broken.transformer.ln_f.weight[0] = math.nan
    with pytest.raises(DiscreetError, match="NaN"):
        generate(broken, tokenizer(), public=PUBLIC, private=PUBLIC, epsilon=1.0, tokens=3, ledger=ledger)
    assert ledger.entries() == []


def test_prompts_that_are_not_unicode_are_refused() -> None:
    for public, private in (("\ud800", "is"), ("be", "\ud800")):
        with pytest.raises(DiscreetError, match=r"(public|private) is not valid Unicode"):
            generate(model(), tokenizer(), public=public, private=private, epsilon=1.0, tokens=1)
    with pytest.raises(DiscreetError, match="examples is not valid Unicode"):
        generation.box_for(model(), tokenizer(), public="be", examples=["\ud800"], epsilon=1.0, tokens=1)


@pytest.mark.parametrize(
    "config", ['{"model_type": ["gpt2"]}', '{"model_type": "gpt2", "n_embd": "x"}', "[]", '{"model_type": "gpt2"}']
)
def test_a_damaged_model_is_refused(config: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_text("no tensors, and a header that is too large")
    with pytest.raises(DiscreetError, match="cannot be loaded on cpu"):
        load_model(tmp_path, device="cpu", quiet=True)
