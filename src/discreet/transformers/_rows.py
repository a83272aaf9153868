"""A text in the making: a token leaves it once it is paid for."""

from __future__ import annotations

from discreet.errors import BudgetError
from discreet.ledger import Ledger
from discreet.transformers._terms import TokenTerms


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
