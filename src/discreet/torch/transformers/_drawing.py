"""One private token for each row: the public distribution becomes the reference of the box, and a drawn token leaves once charged.

`reference_of` contains all preprocessing of the public distribution. `TextInProgress` collects the tokens of one text, charges its ledger
and notes why it stopped.
"""

from __future__ import annotations

import math

import torch

from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Ledger
from discreet.torch import release
from discreet.torch.transformers._terms import TokenTerms


def reference_of(public: torch.Tensor, terms: TokenTerms, known: int) -> torch.Tensor:
    """The public logits as the reference: divided by the temperatures, and -inf for tokens that cannot occur.

    The possible tokens depend only on public data: the tokenizer's size, and top_k and top_p of the public distribution.

    Args:
        public: the public model's logits, (rows, vocabulary).
        terms: the terms of the text.
        known: the number of tokens of the tokenizer; logits beyond are padding.

    Returns:
        Logits of the same shape.
    """
    flatter = terms.temperature * terms.reference_temperature
    found = public / flatter if flatter != 1.0 else public
    if known < found.shape[-1]:
        found = found.index_fill(-1, torch.arange(known, found.shape[-1], device=found.device), -math.inf)
    if terms.top_k is not None and terms.top_k < known:
        kept = torch.full_like(found, -math.inf)
        places = found.topk(terms.top_k, dim=-1).indices
        found = kept.scatter(-1, places, found.gather(-1, places))
    if terms.top_p is not None:
        ordered, places = found.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(found, dtype=torch.bool).scatter(-1, places, before >= terms.top_p)
        found = found.masked_fill(dropped, -math.inf)
    return found


def draw_tokens(private: torch.Tensor, public: torch.Tensor, terms: TokenTerms, known: int, place: int) -> list[int]:
    """Draw one private token for each row, at a place of its text; an invalid distribution is an error before anything has left.

    An epsilon that cannot be drawn with, anywhere in a schedule, is an error too: before the first token leaves, one is drawn at each of
    the other epsilons and discarded.
    """
    if private.shape != public.shape:
        raise DiscreetError(
            f"the private logits have shape {tuple(private.shape)} and the public ones {tuple(public.shape)}; both models need one "
            "vocabulary"
        )
    reference = reference_of(public, terms, known).to(private.device)

    def draw_at(epsilon: float) -> torch.Tensor:
        return release(
            logits=private, reference=reference, epsilon=epsilon, upper=terms.upper, temperature=terms.temperature
        )

    if place == 0:
        for epsilon in sorted(terms.epsilons - {terms.epsilon_of(0)}):
            draw_at(epsilon)
    return [int(token) for token in draw_at(terms.epsilon_of(place)).tolist()]


class TextInProgress:
    """A text in progress: its tokens, and why it stopped ("" while it continues)."""

    def __init__(self, terms: TokenTerms, ledger: Ledger | None, number: int) -> None:
        self._terms, self._ledger = terms, ledger
        self._before = (number - 1) * terms.tokens
        self.tokens: list[int] = []
        self.stopped = ""

    def take(self, token: int, ends: set[int]) -> None:
        """Release a drawn token once it is charged; a ledger that already has one for this place returns that one."""
        if self._ledger is not None:
            here = len(self.tokens)
            try:
                token = self._ledger.charged_sample(
                    self._terms.id,
                    round=self._before + here + 1,
                    profile=self._terms.profile_of(here),
                    draw=lambda: token,
                )
            except BudgetError:
                if not self.tokens:
                    raise
                self.stopped = "budget"
                return
        self.tokens.append(token)
        if token in ends:
            self.stopped = "end"
        elif len(self.tokens) == self._terms.tokens:
            self.stopped = "tokens"
