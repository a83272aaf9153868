"""For those who must use `generate` of transformers: a logits processor that draws the token itself, and lets it through alone.

What a processor usually returns are scores that the framework draws from, with its floats and its generator; a guarantee would be only as
good as those. This one draws by `discreet.torch.release` and returns scores that are -inf but for the token drawn, so whatever
`generate` samples with, at whatever temperature, there is one token to take. What stays in `generate`'s hands: that it calls the processor
once for each token (beams, assistants and several return sequences do not, and are noticed and refused), that no processor behind this
one changes the scores, and that it stops. `discreet.transformers.generate` leaves nothing to others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

from discreet.errors import BudgetError, DiscreetError, check_kind
from discreet.ledger import Ledger
from discreet.transformers._contexts import Context, check_length, check_model
from discreet.transformers._drawing import draw_tokens
from discreet.transformers._rows import TextInProgress
from discreet.transformers._statement import Statement
from discreet.transformers._terms import TokenTerms


class PrivateLogits(LogitsProcessor):
    """A logits processor for one call of `model.generate(..., do_sample=True)`; the last one in the list.

    Args:
        terms: the terms of the text; pass `max_new_tokens=terms.tokens` to `generate`.
        public_model: the model that reads the public prompts: the same model, as a rule.
        public: the tokens of the public prompt of each row.
        known: how many tokens the tokenizer has.
        ends: the tokens that end a text.
        ledger: the client's ledger, if there is one row.

    Raises:
        DiscreetError: for models and prompts that do not fit.
    """

    def __init__(
        self,
        terms: TokenTerms,
        public_model: Any,
        public: Sequence[Sequence[int]],
        *,
        known: int,
        ends: Sequence[int] = (),
        ledger: Ledger | None = None,
    ) -> None:
        check_kind("terms", terms, TokenTerms, "pass TokenTerms(...)")
        check_model("public_model", public_model, terms.vocabulary)
        if not public or not all(public):
            raise DiscreetError("public holds no prompt, or an empty one; pass the tokens of one for each row")
        if ledger is not None and len(public) != 1:
            raise DiscreetError(
                f"ledger is one client's, and public holds {len(public)} prompts; pass one row at a time"
            )
        check_length(public_model, public, terms.tokens, "public")
        self._terms, self._known, self._ends = terms, known, set(ends)
        self._context = Context(public_model, public, 0)
        self._rows = [TextInProgress(terms, ledger, 1) for _ in public]
        self._prompt = -1

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores that allow the token drawn, in each row."""
        self._check(input_ids, scores)
        active = [place for place, row in enumerate(self._rows) if not row.stopped]
        public = self._context.logits()
        if active:
            place = len(self._rows[active[0]].tokens)
            drawn = draw_tokens(scores[active], public[active].to(scores.device), self._terms, self._known, place)
            for place, token in zip(active, drawn, strict=True):
                self._rows[place].take(token, self._ends)
        # a row that has ended is padded by `generate`; one whose ledger refused is ended here
        last = min(self._ends, default=0)
        still = set(active)
        tokens = [
            row.tokens[-1] if place in still and row.stopped != "budget" else last
            for place, row in enumerate(self._rows)
        ]
        chosen = torch.tensor(tokens, device=scores.device)
        self._context.append(chosen)
        return torch.full_like(scores, -math.inf).scatter(-1, chosen[:, None], 0.0)

    @property
    def statements(self) -> list[Statement]:
        """What is promised of each row, after `generate`."""
        return [Statement.of(self._terms, len(row.tokens), row.stopped) for row in self._rows]

    def _check(self, input_ids: torch.Tensor, scores: torch.Tensor) -> None:
        if tuple(scores.shape) != (len(self._rows), self._terms.vocabulary):
            raise DiscreetError(
                f"scores have shape {tuple(scores.shape)}, not {(len(self._rows), self._terms.vocabulary)}: one row for each public prompt; "
                "beams and several return sequences cannot be used"
            )
        if self._prompt < 0:
            self._prompt = int(input_ids.shape[1])
        steps = max(len(row.tokens) for row in self._rows)
        if steps == self._terms.tokens:
            raise BudgetError(f"all {steps} tokens agreed on are released; pass max_new_tokens={steps} to generate")
        if int(input_ids.shape[1]) != self._prompt + steps:
            raise DiscreetError(
                "generate did not ask for one token after the other; this processor serves one call, without beams or assistants"
            )
        for row, seen in zip(self._rows, input_ids[:, self._prompt :].tolist(), strict=True):
            if seen[: len(row.tokens)] != row.tokens:
                raise DiscreetError(
                    "generate took other tokens than were drawn; put this processor last, and use no beams or assistants"
                )
