"""Tokens of one client one after the other, each from contexts and at an epsilon that are chosen in the light of all before.

A conversation, a search, an agent: what the models read next depends on what was released. Two accounts are kept, both of which allow
for that: the budget is a filter (`discreet.ledger._budget`), which refuses the token that could pass it, and an odometer
(`discreet.accounting._odometer`) shows at every moment what was spent so far.

With a ledger, the entries that it holds under the stream's id are the account, and there is no other. A stream that is started again has
spent what was charged before, at the epsilons that were charged, and gives the tokens that are paid for again at no cost.
"""

from __future__ import annotations

import hashlib
from collections import Counter

import torch

from discreet.accounting import BoxProfile, Odometer
from discreet.domain._canonical import VERSION, canonical
from discreet.errors import BudgetError, DiscreetError, check_count, check_kind
from discreet.ledger import Budget, Entry, Ledger
from discreet.torch import release
from discreet.transformers._terms import box_profile


class TokenStream:
    """A stream of private tokens within a budget.

    Args:
        budget: what all tokens together may cost.
        vocabulary: how many tokens the models know.
        ledger: the client's ledger, charged for every token before it leaves; it gives a token that it has for a place already.
        purpose: what for, in words: a stream for another purpose is another one for the ledger.

    Attributes:
        id: what its entries in the ledger are under.
        tokens: the tokens that it gave since it was made.

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
        self._released = Odometer(delta=budget.delta)
        self.tokens: list[int] = []

    @property
    def odometer(self) -> Odometer:
        """What all tokens of the stream have cost so far: with a ledger, all that it holds of this stream."""
        return self._released if self._ledger is None else self._odometer_of(self._charges())

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
            The token. At a place that the ledger has a token for it is that one, whatever the logits and epsilon, and costs nothing.

        Raises:
            DiscreetError: for logits that are no law, before anything is charged.
            BudgetError: if the budget, or the ledger, does not allow another token.
        """
        for name, given in (("logits", logits), ("reference", reference)):
            if tuple(given.shape) != (self._vocabulary,):
                raise DiscreetError(f"{name} has shape {tuple(given.shape)}, not ({self._vocabulary},)")
        profile = box_profile(epsilon, upper, self._vocabulary)
        charges = self._charges()
        place = len(self.tokens) + 1
        if place in charges:
            token = charges[place].sample
        else:
            before = self._released if self._ledger is None else self._odometer_of(charges)
            after = before.after(profile)
            if not self._budget.allows(self._budget.spent(after.releases)):
                raise BudgetError(
                    f"the budget of the stream is {self._budget}, and a token at epsilon = {epsilon:g} could pass it; nothing was drawn"
                )
            found = release(logits=logits, reference=reference, epsilon=epsilon, upper=upper, temperature=temperature)
            token = int(found)
            if self._ledger is not None:
                token = self._ledger.charged_sample(self.id, round=place, profile=profile, draw=lambda: int(found))
            self._released = after
        self.tokens.append(token)
        return token

    def _charges(self) -> dict[int, Entry]:
        """The ledger's entries of this stream, by the places of their tokens."""
        entries = [] if self._ledger is None else self._ledger.entries()
        return {entry.round: entry for entry in entries if entry.agreement == self.id}

    def _odometer_of(self, charges: dict[int, Entry]) -> Odometer:
        counts = Counter(BoxProfile(epsilon=entry.epsilon, alpha=entry.alpha) for entry in charges.values())
        return Odometer(delta=self._budget.delta, releases=tuple(counts.items()))
