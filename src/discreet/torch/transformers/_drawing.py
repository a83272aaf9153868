"""One private token for each row: the public law becomes the reference of the box, a token is drawn, and it leaves once it is paid for.

Everything that is done to the public law before it is the reference stands in `reference_of`. `TextInProgress` collects the tokens of one
text, charges its ledger and notes why it stopped.
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

    Which ones can is decided by public things alone: the tokenizer's size, and top_k and top_p of the public law.

    Args:
        public: the public model's logits, (rows, vocabulary).
        terms: the terms of the text.
        known: how many tokens the tokenizer has; logits beyond are padding of the model's.

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
    """One private token for each row, at a place of its text; whatever is no law is an error before anything has left.

    So is an epsilon that cannot be drawn with, wherever in a schedule it stands: before the first token leaves, one is drawn at each of the
    others, and thrown away.
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
    """One text in the making: its tokens, and why it stopped ("" as long as it goes on)."""

    def __init__(self, terms: TokenTerms, ledger: Ledger | None, number: int) -> None:
        self._terms, self._ledger = terms, ledger
        self._before = (number - 1) * terms.tokens
        self.tokens: list[int] = []
        self.stopped = ""

    def take(self, token: int, ends: set[int]) -> None:
        """Let a token that was drawn leave, once it is paid for; a ledger that has one for this place already gives that one."""
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
