"""`generate` writes private texts, with two forward passes and one private draw for each token; `box_for` chooses its box.

Rows of a batch are separate clients. Each has its private prompt and, if there are ledgers, its own ledger, charged before a token leaves.
A row releases only its tokens. Each is drawn from the box around a public distribution, which depends on the tokens released before and on
public prompts.

A single text keeps its promise to every private prompt, since each of its tokens comes from that box. An observer of several clients' texts
must learn about one prompt from its own text alone. The logits of a row may therefore not depend on other rows' prompts, not even in their
last bits, and private prompts are read one by one. With `together=True` they are one batch, and this is left to the model.

`box_for` continues public prompts that resemble private ones, drawing tokens at the default `upper`, so that it sees the distributions of a
private text. It returns the best box for their tokens. The choice depends only on public data, so it costs no privacy. Its draws have a fixed
seed, so the same examples give the same box: terms, and a ledger's answers, are the same when a text is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from discreet.domain import sha256_digest
from discreet.errors import DiscreetError, check_count, check_flag, check_kind, check_list, check_texts
from discreet.ledger import Budget, Ledger
from discreet.privacy.tradeoff import warn_of_large_epsilon
from discreet.torch import FittedBox, fitted_box, output
from discreet.torch.transformers._models import (
    Context,
    SeparateContexts,
    end_of_text_tokens,
    prompt_as_bytes,
    refuse_prompts_without_room,
    tokenise_prompt,
    vocabulary_size_of_checked_model,
    vocabulary_size_of_checked_tokenizer,
)
from discreet.torch.transformers._stream import TextInProgress, draw_tokens, public_logits_as_reference
from discreet.torch.transformers._terms import Statement, TokenTerms

_SEED = 0  # of the draws for public examples


@dataclass(frozen=True)
class PrivateText:
    """A text and its guarantee.

    Attributes:
        text: the tokens, decoded.
        tokens: their numbers.
        statement: the guarantee.
    """

    text: str
    tokens: tuple[int, ...]
    statement: Statement


def generate(
    model: Any,
    tokenizer: Any,
    *,
    public: str | Sequence[str],
    private: str | Sequence[str],
    epsilon: float,
    tokens: int,
    schedule: Sequence[float] = (),
    upper: float | None = None,
    delta: float = 1e-6,
    budget: Budget | None = None,
    ledger: Ledger | Sequence[Ledger] | None = None,
    number: int = 1,
    temperature: float = 1.0,
    reference_temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    public_model: Any = None,
    together: bool = False,
    model_name: str = "",
    purpose: str = "",
) -> PrivateText | list[PrivateText]:
    """A text that continues the private prompt, every token drawn from the box around its distribution after the public prompt.

    Args:
        model: a causal model of transformers; it reads the private prompts.
        tokenizer: its tokenizer.
        public: the public prompt, one text for all or one for each private prompt. It must not depend on a private prompt.
        private: the private prompt, or several: each is a separate client with its own guarantee.
        epsilon: the budget of one token.
        tokens: the largest number of tokens.
        schedule: the epsilon of each of the first tokens, if it differs.
        upper: as in `TokenTerms`; choose it on public texts.
        delta: the probability that a text loses more than its statement says.
        budget: of all tokens of a text together; it limits their number, and delta is the budget's.
        ledger: the client's ledger, or one for each private prompt, charged for every token before it leaves. A repeated call under the
            same terms returns the same text at no cost, even if the private prompt has changed.
        number: of the text under these terms; another number is another text, and costs anew.
        temperature: divides the logits of both models.
        reference_temperature: further divides the public logits; `box_for` chooses it together with `upper`.
        top_k: only the top_k likeliest tokens of the public distribution can occur.
        top_p: only the likeliest tokens of the public distribution with total mass top_p can occur.
        public_model: the model that reads the public prompts, if it differs: for example before tuning on private texts.
        together: whether to read all private prompts in one batch, which is faster. Use it for prompts of one client, or if nobody sees
            two texts: padding and summation of a batch show in the last bits of each row's logits, so each text could reveal other prompts.
        model_name: the model's name for the parties; part of the agreement.
        purpose: what for, in words.

    Returns:
        A `PrivateText`, or a list of them if `private` is a list.

    Raises:
        DiscreetError: for prompts, models or terms that do not fit, before anything is drawn.
        BudgetError: if not even the first token is allowed.

    Example:
        >>> found = generate(model, tokenizer, public="A letter:", private=notes + "A letter:", epsilon=1.0, tokens=100)
    """
    prompts = [private] if isinstance(private, str) else check_texts("private", private, "pass a text, or several")
    openings = (
        [public] * len(prompts) if isinstance(public, str) else check_texts("public", public, "pass a text, or several")
    )
    together = check_flag("together", together)
    if not prompts or len(openings) != len(prompts):
        raise DiscreetError(
            f"public holds {len(openings)} prompts and private {len(prompts)}; pass one public prompt for all, or one for each"
        )
    vocabulary = vocabulary_size_of_checked_model("model", model, None)
    if public_model is not None:
        vocabulary_size_of_checked_model("public_model", public_model, vocabulary)
    tokenizer_size = vocabulary_size_of_checked_tokenizer(tokenizer)
    if tokenizer_size > vocabulary:
        raise DiscreetError(
            f"tokenizer has {tokenizer_size:,} tokens and model knows {vocabulary:,}; pass the model's own"
        )
    if budget is not None:
        check_kind("budget", budget, Budget, "pass Budget(epsilon=..., delta=...)")
    number = check_count("number", number, fix="it is which text under these terms")
    ledgers = _ledger_of_each_row(ledger, len(prompts))
    row_terms = []
    for opening in openings:
        terms = TokenTerms(
            epsilon=epsilon, tokens=tokens, vocabulary=vocabulary, schedule=schedule, upper=upper, delta=delta, temperature=temperature,
            reference_temperature=reference_temperature, top_k=top_k, top_p=top_p, model=model_name,
            public=sha256_digest(prompt_as_bytes("public", opening)), purpose=purpose,
        )  # fmt: skip
        row_terms.append(terms if budget is None else terms.within(budget))
    warn_of_large_epsilon(row_terms[0].largest)
    rows = [TextInProgress(terms, row_ledger, number) for terms, row_ledger in zip(row_terms, ledgers, strict=True)]
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0

    def read_prompts_into_context(
        what: str, reader: Any, texts: list[str], kind: type[Context] | type[SeparateContexts]
    ) -> Context | SeparateContexts:
        token_rows = [tokenise_prompt(tokenizer, what, text) for text in texts]
        refuse_prompts_without_room(reader, token_rows, row_terms[0].tokens, what)
        return kind(reader, token_rows, padding)

    private_context = read_prompts_into_context("private", model, prompts, Context if together else SeparateContexts)
    public_context = read_prompts_into_context(
        "public", model if public_model is None else public_model, openings, Context
    )
    _draw_texts_token_by_token(
        rows,
        private_context,
        public_context,
        row_terms[0],
        tokenizer_size,
        end_of_text_tokens(model, tokenizer),
        padding,
    )
    results = [
        PrivateText(
            tokenizer.decode(row.tokens, skip_special_tokens=True),
            tuple(row.tokens),
            Statement.of(terms, len(row.tokens), row.stopped),
        )
        for row, terms in zip(rows, row_terms, strict=True)
    ]
    return results[0] if isinstance(private, str) else results


def _draw_texts_token_by_token(
    rows: list[TextInProgress],
    private: Context | SeparateContexts,
    public: Context | SeparateContexts,
    terms: TokenTerms,
    tokenizer_size: int,
    ends: set[int],
    padding: int,
) -> None:
    """Write token by token until every row has ended. The rows' terms differ only in their public prompts."""
    while True:
        active = [index for index, row in enumerate(rows) if not row.stopped]
        if not active:
            return
        private_logits, public_logits = private.next_token_logits(), public.next_token_logits()
        if len(active) < len(rows):
            private_logits, public_logits = private_logits[active], public_logits[active]
        # active rows have equal length
        new_tokens = draw_tokens(private_logits, public_logits, terms, tokenizer_size, len(rows[active[0]].tokens))
        for index, token in zip(active, new_tokens, strict=True):
            rows[index].charge_and_release_token(token, ends)
        latest = torch.tensor([row.tokens[-1] if not row.stopped else padding for row in rows])
        private.append_tokens(latest)
        public.append_tokens(latest)


def _ledger_of_each_row(argument: Any, rows: int) -> list[Ledger | None]:
    """One ledger for each row, all different, or none."""
    if argument is None:
        return [None] * rows
    ledgers = (
        [argument] if isinstance(argument, Ledger) else check_list("ledger", argument, "pass Ledger(path), or several")
    )
    for ledger in ledgers:
        check_kind("ledger", ledger, Ledger, "pass Ledger(path)")
    if len(ledgers) != rows or len({ledger.path.resolve() for ledger in ledgers}) != rows:
        raise DiscreetError(
            f"ledger holds {len(ledgers)} ledgers for {rows} private prompts; each is a separate client: pass one "
            f"ledger for each, all different"
        )
    return ledgers


def box_for(
    model: Any,
    tokenizer: Any,
    *,
    public: str,
    examples: Sequence[str],
    epsilon: float,
    tokens: int = 16,
    temperature: float = 1.0,
    measure: str = "kl",
    public_model: Any = None,
) -> FittedBox:
    """The best box for `generate` on public examples of private prompts: `upper`, and the temperature of the public distribution.

    Args:
        model: the model that will read private prompts.
        tokenizer: its tokenizer.
        public: the public prompt.
        examples: public prompts like the private ones. Never private ones: the choice would reveal them.
        epsilon: the budget of one token.
        tokens: the number of tokens of each example to use.
        temperature: divides the logits of both models.
        measure: the name of the divergence to minimise.
        public_model: the model that reads the public prompt, if it differs.

    Returns:
        A `discreet.torch.FittedBox`: pass its `upper` and `reference_temperature` to `generate`.

    Raises:
        DiscreetError: for no examples, or models and prompts that do not fit.
    """
    if isinstance(examples, str) or not check_texts("examples", examples, "pass public texts"):
        raise DiscreetError("examples holds no prompts; pass a list of public texts that stand for private ones")
    vocabulary, count = vocabulary_size_of_checked_model("model", model, None), check_count("tokens", tokens)
    terms = TokenTerms(epsilon=epsilon, tokens=count, vocabulary=vocabulary, temperature=temperature)
    reader, tokenizer_size = (
        model if public_model is None else public_model,
        vocabulary_size_of_checked_tokenizer(tokenizer),
    )
    vocabulary_size_of_checked_model("public_model", reader, vocabulary)
    rows = [tokenise_prompt(tokenizer, "examples", text) for text in examples]
    opening = [tokenise_prompt(tokenizer, "public", public)] * len(rows)
    refuse_prompts_without_room(model, rows, count, "examples")
    refuse_prompts_without_room(reader, opening, count, "public")
    private_context, public_context = Context(model, rows, 0), Context(reader, opening, 0)
    private_rows, reference_rows = [], []
    generator = torch.Generator().manual_seed(_SEED)
    for _ in range(count):
        private_logits, public_logits = private_context.next_token_logits(), public_context.next_token_logits()
        private_rows.append(private_logits)
        reference_rows.append(public_logits_as_reference(public_logits, terms, tokenizer_size))
        laws = output(
            logits=private_logits,
            reference=reference_rows[-1].to(private_logits.device),
            epsilon=epsilon,
            temperature=temperature,
        )
        latest = torch.multinomial(laws.double().cpu(), 1, generator=generator)[:, 0]
        private_context.append_tokens(latest)
        public_context.append_tokens(latest)
    return fitted_box(
        epsilon=epsilon,
        logits=torch.cat(private_rows),
        reference=torch.cat(reference_rows),
        measure=measure,
        temperature=temperature,
    )
