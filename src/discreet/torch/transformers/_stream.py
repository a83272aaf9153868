"""Private tokens one at a time in the caller's loop: `TokenStream`, and `PrivateLogits` for transformers' own `generate`.

`TokenStream` is for a conversation, a search or an agent, which choose the context and epsilon of each token after seeing all earlier
tokens. It keeps two accounts that allow for this. The budget is a filter (`discreet.ledger._book`), which rejects a token that could
exceed it. An odometer (`discreet.accounting.Odometer`) shows the cost so far at every moment. With a ledger, the entries under the stream's
id are the only account: a restarted stream has spent what was charged before, and repeats tokens that are already paid for at no cost.

`PrivateLogits` is a logits processor that draws the token itself by `discreet.torch.release` and returns scores that are -inf except for
that token. `generate` then has one token to choose, at any temperature and with any generator. It must call the processor once for each
token (beams, assistants and several return sequences are detected and rejected), must run no processor after it, and must stop.
`discreet.torch.transformers.generate` does not depend on these conditions.

**Drawing.** One private token for each row: the public distribution becomes the reference of the box, and a drawn token leaves once charged.

`public_logits_as_reference` contains all preprocessing of the public distribution. `TextInProgress` collects the tokens of one text, charges
its ledger and notes why it stopped.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

from discreet.accounting import BoxProfile, Odometer
from discreet.domain import VERSION, canonical_json
from discreet.errors import BudgetError, DiscreetError, check_count, check_kind, check_list
from discreet.ledger import Budget, Entry, Ledger
from discreet.torch import release
from discreet.torch.transformers._models import Context, refuse_prompts_without_room, vocabulary_size_of_checked_model
from discreet.torch.transformers._terms import Statement, TokenTerms, box_profile_of_one_token


def public_logits_as_reference(public: torch.Tensor, terms: TokenTerms, tokenizer_size: int) -> torch.Tensor:
    """The public logits as the reference: divided by the temperatures, and -inf for tokens that cannot occur.

    The possible tokens depend only on public data: the tokenizer's size, and top_k and top_p of the public distribution.

    Args:
        public: the public model's logits, (rows, vocabulary).
        terms: the terms of the text.
        tokenizer_size: the number of tokens of the tokenizer; logits beyond are padding.

    Returns:
        Logits of the same shape.
    """
    divisor = terms.temperature * terms.reference_temperature
    logits = public / divisor if divisor != 1.0 else public
    if tokenizer_size < logits.shape[-1]:
        logits = logits.index_fill(-1, torch.arange(tokenizer_size, logits.shape[-1], device=logits.device), -math.inf)
    if terms.top_k is not None and terms.top_k < tokenizer_size:
        floor = torch.full_like(logits, -math.inf)
        columns = logits.topk(terms.top_k, dim=-1).indices
        logits = floor.scatter(-1, columns, logits.gather(-1, columns))
    if terms.top_p is not None:
        masses, columns = logits.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        mass_before = masses.cumsum(-1) - masses
        mask = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, columns, mass_before >= terms.top_p)
        logits = logits.masked_fill(mask, -math.inf)
    return logits


def draw_tokens(
    private: torch.Tensor, public: torch.Tensor, terms: TokenTerms, tokenizer_size: int, position: int
) -> list[int]:
    """Draw one private token for each row, at a position of its text; an invalid distribution is an error before anything has left.

    An epsilon that cannot be drawn with, anywhere in a schedule, is an error too: before the first token leaves, one is drawn at each of
    the other epsilons and discarded.
    """
    if private.shape != public.shape:
        raise DiscreetError(
            f"the private logits have shape {tuple(private.shape)} and the public ones {tuple(public.shape)}; both models need one "
            "vocabulary"
        )
    reference = public_logits_as_reference(public, terms, tokenizer_size).to(private.device)

    def draw_with_epsilon(epsilon: float) -> torch.Tensor:
        return release(
            logits=private, reference=reference, epsilon=epsilon, upper=terms.upper, temperature=terms.temperature
        )

    if position == 0:
        for epsilon in sorted(terms.epsilons - {terms.epsilon_of(0)}):
            draw_with_epsilon(epsilon)
    return [int(token) for token in draw_with_epsilon(terms.epsilon_of(position)).tolist()]


class TextInProgress:
    """A text in progress: its tokens, and why it stopped ("" while it continues)."""

    def __init__(self, terms: TokenTerms, ledger: Ledger | None, number: int) -> None:
        self._terms, self._ledger = terms, ledger
        self._before = (number - 1) * terms.tokens
        self.tokens: list[int] = []
        self.stopped = ""

    def charge_and_release_token(self, token: int, ends: set[int]) -> None:
        """Release a drawn token once it is charged; a ledger that already has one for this place returns that one."""
        if self._ledger is not None:
            position = len(self.tokens)
            try:
                token = self._ledger.charged_sample(
                    self._terms.id,
                    round=self._before + position + 1,
                    profile=self._terms.profile_of(position),
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


class TokenStream:
    """A stream of private tokens within a budget.

    Args:
        budget: of all tokens together.
        vocabulary: the number of tokens that the models know.
        ledger: the client's ledger, charged for every token before it leaves; a token that it already has for a place is repeated.
        purpose: what for, in words; another purpose is another stream for the ledger.

    Attributes:
        id: of its entries in the ledger.
        tokens: the tokens released since it was made.

    Raises:
        DiscreetError: for an invalid budget, ledger or vocabulary.
    """

    def __init__(self, *, budget: Budget, vocabulary: int, ledger: Ledger | None = None, purpose: str = "") -> None:
        check_kind("budget", budget, Budget, "pass Budget(epsilon=..., delta=...)")
        if ledger is not None:
            check_kind("ledger", ledger, Ledger, "pass Ledger(path)")
        check_kind("purpose", purpose, str, "say in words what for")
        self._budget, self._ledger = budget, ledger
        self._vocabulary = check_count("vocabulary", vocabulary, least=2, fix="it is how many tokens the models know")
        stream = {"epsilon": budget.epsilon, "delta": budget.delta, "vocabulary": vocabulary, "purpose": purpose}
        self.id = hashlib.sha256(canonical_json({"discreet": VERSION, "stream": stream}).encode()).hexdigest()
        self._released = Odometer(delta=budget.delta)
        self.tokens: list[int] = []

    @property
    def odometer(self) -> Odometer:
        """The cost of all tokens of the stream so far; with a ledger, all its entries of this stream."""
        return self._released if self._ledger is None else self._odometer_of_entries(self._ledger_entries_by_position())

    def draw(
        self,
        logits: torch.Tensor,
        reference: torch.Tensor,
        *,
        epsilon: float,
        upper: float | None = None,
        temperature: float = 1.0,
    ) -> int:
        """Draw one private token, charged to the budget.

        Args:
            logits: of the model with the private context, (vocabulary,).
            reference: of the model with only public context, (vocabulary,); tokens released so far are public.
            epsilon: the budget of this token.
            upper: as in `discreet.torch.release`.
            temperature: divides `logits`.

        Returns:
            The token. If the ledger already has a token for this place, it is that one, for any logits and epsilon, at no cost.

        Raises:
            DiscreetError: for invalid logits, before anything is charged.
            BudgetError: if the budget, or the ledger, does not allow another token.
        """
        for name, tensor in (("logits", logits), ("reference", reference)):
            if tuple(tensor.shape) != (self._vocabulary,):
                raise DiscreetError(f"{name} has shape {tuple(tensor.shape)}, not ({self._vocabulary},)")
        profile = box_profile_of_one_token(epsilon, upper, self._vocabulary)
        charges = self._ledger_entries_by_position()
        position = len(self.tokens) + 1
        if position in charges:
            token = charges[position].sample
        else:
            before = self._released if self._ledger is None else self._odometer_of_entries(charges)
            after = before.with_releases(profile)
            if not self._budget.allows(self._budget.spent(after.releases)):
                raise BudgetError(
                    f"the budget of the stream is {self._budget}, and a token at epsilon = {epsilon:g} could exceed "
                    f"it; nothing was drawn"
                )
            outcome = release(logits=logits, reference=reference, epsilon=epsilon, upper=upper, temperature=temperature)
            token = int(outcome)
            if self._ledger is not None:
                token = self._ledger.charged_sample(self.id, round=position, profile=profile, draw=lambda: int(outcome))
            self._released = after
        self.tokens.append(token)
        return token

    def _ledger_entries_by_position(self) -> dict[int, Entry]:
        """The ledger's entries of this stream, by the places of their tokens."""
        entries = [] if self._ledger is None else self._ledger.entries()
        return {entry.round: entry for entry in entries if entry.agreement == self.id}

    def _odometer_of_entries(self, charges: dict[int, Entry]) -> Odometer:
        counts = Counter(BoxProfile(epsilon=entry.epsilon, alpha=entry.alpha) for entry in charges.values())
        return Odometer(delta=self._budget.delta, releases=tuple(counts.items()))


def _list_checked_tokens(name: str, tokens: Any, vocabulary: int) -> list[int]:
    fix = f"pass numbers of tokens, 0 to {vocabulary - 1}"
    return [check_count(name, token, least=0, most=vocabulary - 1, fix=fix) for token in check_list(name, tokens, fix)]


class PrivateLogits(LogitsProcessor):
    """A logits processor for one call of `model.generate(..., do_sample=True)`; the last one in the list.

    Args:
        terms: the terms of the text; pass `max_new_tokens=terms.tokens` to `generate`.
        public_model: the model that reads the public prompts, usually the same one.
        public: the tokens of the public prompt of each row.
        known: the number of tokens of the tokenizer.
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
        vocabulary_size_of_checked_model("public_model", public_model, terms.vocabulary)
        prompts = check_list("public", public, "pass the tokens of one prompt for each row")
        public = [_list_checked_tokens("public", prompt, terms.vocabulary) for prompt in prompts]
        end_numbers = _list_checked_tokens("ends", ends, terms.vocabulary)
        if not public or not all(public):
            raise DiscreetError("public holds no prompt, or an empty one; pass the tokens of one for each row")
        if ledger is not None and len(public) != 1:
            raise DiscreetError(
                f"ledger is one client's, and public holds {len(public)} prompts; pass one row at a time"
            )
        refuse_prompts_without_room(public_model, public, terms.tokens, "public")
        self._terms, self._known, self._ends = terms, check_count("known", known), set(end_numbers)
        self._context = Context(public_model, public, 0)
        self._rows = [TextInProgress(terms, ledger, 1) for _ in public]
        self._prompt = -1

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores that allow only the drawn token in each row."""
        self._refuse_unexpected_scores_or_tokens(input_ids, scores)
        active = [index for index, row in enumerate(self._rows) if not row.stopped]
        public = self._context.next_token_logits()
        if active:
            index = len(self._rows[active[0]].tokens)
            new_tokens = draw_tokens(scores[active], public[active].to(scores.device), self._terms, self._known, index)
            for index, token in zip(active, new_tokens, strict=True):
                self._rows[index].charge_and_release_token(token, self._ends)
        # `generate` pads a row that has ended; a row without budget is ended here
        last = min(self._ends, default=0)
        active_rows = set(active)
        tokens = [
            row.tokens[-1] if index in active_rows and row.stopped != "budget" else last
            for index, row in enumerate(self._rows)
        ]
        latest = torch.tensor(tokens, device=scores.device)
        self._context.append_tokens(latest)
        return torch.full_like(scores, -math.inf).scatter(-1, latest[:, None], 0.0)

    @property
    def statements(self) -> list[Statement]:
        """The guarantee of each row, after `generate`."""
        return [Statement.of(self._terms, len(row.tokens), row.stopped) for row in self._rows]

    def _refuse_unexpected_scores_or_tokens(self, input_ids: torch.Tensor, scores: torch.Tensor) -> None:
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
        for row, sequence in zip(self._rows, input_ids[:, self._prompt :].tolist(), strict=True):
            if sequence[: len(row.tokens)] != row.tokens:
                raise DiscreetError(
                    "generate took other tokens than were drawn; put this processor last, and use no beams or assistants"
                )
