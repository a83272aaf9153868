"""Tokens of one client one after the other, each from contexts and at an epsilon that are chosen in the light of all before.

A conversation, a search, an agent: what the models read next depends on what was released. Two accounts are kept, both of which allow
for that: the budget is a filter (`discreet.ledger._budget`), which refuses the token that could pass it, and an odometer
(`discreet.accounting._odometer`) shows at every moment what was spent so far.
"""

from __future__ import annotations

import hashlib

import torch

from discreet.accounting import Odometer
from discreet.domain._canonical import VERSION, canonical
from discreet.errors import BudgetError, DiscreetError, check_count, check_kind
from discreet.ledger import Budget, Ledger
from discreet.torch import release
from discreet.transformers._terms import box_profile


class TokenStream:
    """A stream of private tokens within a budget.

    Args:
        budget: what all tokens together may cost.
        vocabulary: how many tokens the models know.
        ledger: the client's ledger, charged for every token before it leaves; it gives a token that it has for a place already.
        purpose: what for, in words: a stream for another purpose is another one for the ledger.

    Raises:
        DiscreetError: for a budget, a ledger or a vocabulary that is none.
    """

    def __init__(self, *, budget: Budget, vocabulary: int, ledger: Ledger | None = None, purpose: str = "") -> None:
        check_kind("budget", budget, Budget, "pass Budget(epsilon=..., delta=...)")
        if ledger is not None:
            check_kind("ledger", ledger, Ledger, "pass Ledger(path)")
        self._budget, self._ledger = budget, ledger
        self._vocabulary = check_count("vocabulary", vocabulary, least=2, fix="it is how many tokens the models know")
        stream = {"epsilon": budget.epsilon, "delta": budget.delta, "vocabulary": vocabulary, "purpose": purpose}
        self.id = hashlib.sha256(canonical({"discreet": VERSION, "stream": stream}).encode()).hexdigest()
        self.odometer = Odometer(delta=budget.delta)
        self.tokens: list[int] = []

    def draw(
        self,
        logits: torch.Tensor,
        reference: torch.Tensor,
        *,
        epsilon: float,
        upper: float | None = None,
        temperature: float = 1.0,
    ) -> int:
        """One private token, paid for.

        Args:
            logits: of the model that has read private things, (vocabulary,).
            reference: of the model that has read public things alone, (vocabulary,); tokens released so far are public.
            epsilon: the budget of this token.
            upper: as in `discreet.torch.release`.
            temperature: what `logits` are divided by.

        Returns:
            The token.

        Raises:
            DiscreetError: for logits that are no law, before anything is charged.
            BudgetError: if the budget, or the ledger, does not allow another token.
        """
        for name, given in (("logits", logits), ("reference", reference)):
            if tuple(given.shape) != (self._vocabulary,):
                raise DiscreetError(f"{name} has shape {tuple(given.shape)}, not ({self._vocabulary},)")
        profile = box_profile(epsilon, upper, self._vocabulary)
        after = self.odometer.after(profile)
        if not self._budget.allows(self._budget.spent(after.releases)):
            raise BudgetError(
                f"the budget of the stream is {self._budget}, and a token at epsilon = {epsilon:g} could pass it; nothing was drawn"
            )
        found = release(logits=logits, reference=reference, epsilon=epsilon, upper=upper, temperature=temperature)
        token = int(found)
        if self._ledger is not None:
            place = len(self.tokens) + 1
            token = self._ledger.charged_sample(self.id, round=place, profile=profile, draw=lambda: token)
        self.odometer = after
        self.tokens.append(token)
        return token
