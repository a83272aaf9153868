"""What is promised of a text: it stands beside the text, and says what all of it lets on about the private prompt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from discreet.transformers._terms import TokenTerms


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The guarantee of one text.

    Attributes:
        agreement: the id of the terms.
        epsilon_per_token: each token is at most e^epsilon times as likely from one private prompt as from any other; of a schedule, the
            largest.
        tokens: how many were agreed on at most: what the bound at delta is for, however many came.
        released: how many came.
        epsilon: the text as a whole is (epsilon, delta)-LDP: exact composition of the boxes, rounded up.
        delta: that delta.
        pure: what `tokens` of them lose at most for certain.
        stopped: "end" (the model ended the text), "tokens" (all that were agreed on) or "budget" (the ledger refused the next one).
    """

    agreement: str
    epsilon_per_token: float
    tokens: int
    released: int
    epsilon: float
    delta: float
    pure: float
    stopped: str

    @classmethod
    def of(cls, terms: TokenTerms, released: int, stopped: str) -> Statement:
        """The statement of a text that came under these terms."""
        return cls(
            agreement=terms.id,
            epsilon_per_token=terms.largest,
            tokens=terms.tokens,
            released=released,
            epsilon=terms.total,
            delta=terms.delta,
            pure=terms.loss.largest,
            stopped=stopped,
        )

    @property
    def document(self) -> dict[str, Any]:
        """The statement as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.released} tokens of at most {self.tokens}, each {self.epsilon_per_token:g}-LDP in the private prompt; together "
            f"({self.epsilon:.6g}, {self.delta:g})-LDP, and {self.pure:.6g}-LDP for certain. Agreement {self.agreement}."
        )
