"""Which box, for texts: public prompts that stand for private ones are continued, and the box that serves their tokens best is taken.

What is chosen depends on public things alone, so it costs nothing. The tokens in between are drawn as they will be, at the default `upper`,
so that the laws are those that a private text comes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from discreet.errors import DiscreetError, check_count
from discreet.torch import FittedBox, fitted_box
from discreet.transformers._contexts import Context, check_length, check_model, read_prompt
from discreet.transformers._drawing import draw_tokens, reference_of
from discreet.transformers._terms import TokenTerms


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
    """The box for `generate` that serves public examples of private prompts best: `upper`, and how flat the public law is made.

    Args:
        model: the model that will read private prompts.
        tokenizer: its tokenizer.
        public: the public prompt.
        examples: prompts of the kind of the private ones that nobody minds being known. Never private ones: their choice would tell of them.
        epsilon: the budget of one token.
        tokens: how many tokens of each example are looked at.
        temperature: what the logits of both models are divided by.
        measure: the name of the divergence to make small.
        public_model: the model that reads the public prompt, where it is another one.

    Returns:
        A `discreet.torch.FittedBox`: pass its `upper` and `reference_temperature` to `generate`.

    Raises:
        DiscreetError: for no examples, or models and prompts that do not fit.
    """
    if isinstance(examples, str) or not examples:
        raise DiscreetError("examples holds no prompts; pass a list of public texts that stand for private ones")
    vocabulary, count = check_model("model", model, None), check_count("tokens", tokens)
    terms = TokenTerms(epsilon=epsilon, tokens=count, vocabulary=vocabulary, temperature=temperature)
    reader, known = public_model or model, len(tokenizer)
    check_model("public_model", reader, vocabulary)
    rows = [read_prompt(tokenizer, "examples", text) for text in examples]
    opening = [read_prompt(tokenizer, "public", public)] * len(rows)
    check_length(model, rows, count, "examples")
    check_length(reader, opening, count, "public")
    own, common = Context(model, rows, 0), Context(reader, opening, 0)
    held, shared = [], []
    for place in range(count):
        private, beside = own.logits(), common.logits()
        held.append(private)
        shared.append(reference_of(beside, terms, known))
        latest = torch.tensor(draw_tokens(private, beside, terms, known, place))
        own.append(latest)
        common.append(latest)
    return fitted_box(
        epsilon=epsilon, logits=torch.cat(held), reference=torch.cat(shared), measure=measure, temperature=temperature
    )
