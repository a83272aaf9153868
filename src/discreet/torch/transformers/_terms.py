"""`TokenTerms`, the terms of a text before it is written, and `Statement`, its guarantee afterwards.

The terms fix the largest number of tokens, the epsilon of each, and the box of each: b mu <= q <= e^epsilon b mu with b = upper/(e^epsilon
+ upper - 1), around the public model's distribution mu at that place. Every token has the profile of alpha = 1/upper
(`discreet.accounting._profile`), although mu depends on the text so far. The integers of the draw share s 2^62 of theirs, with |s - b| <=
2^-13 b + k 2^-62 over k tokens on every path (`discreet.torch._host`, `discreet.release._lattice`): every token has at least one integer,
which is much for a tiny b. `TokenTerms.profile_of` takes the alpha of the worst possible s, so the composition holds for the draw itself.

Some tokens may have another epsilon (`schedule`), also fixed in advance. The number of tokens is fixed in advance because a bound at delta
> 0 holds for a fixed number. Where a text ends by itself is then a function of the whole sequence and costs nothing. A ledger's answers
depend only on the id of the terms and the token's number.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from discreet.accounting import MOST_SAMPLES, BoxProfile, PrivacyLoss, compose
from discreet.domain import VERSION, canonical_json
from discreet.errors import POSITIVE, BudgetError, DiscreetError, Range, check_count
from discreet.families import Bounds
from discreet.ledger import Budget
from discreet.privacy import check_epsilon
from discreet.privacy.tradeoff import constants_of_optimal_box
from discreet.release import BITS, TOTAL
from discreet.torch._host import make_terms

_MARGIN = Fraction(1, 1 << 12)
_DELTA = Range(0.0, 1.0, high_open=True)
_TOP_P = Range(0.0, 1.0, low_open=True)


def box_profile_of_one_token(epsilon: float, upper: float | None, vocabulary: int) -> BoxProfile:
    """The profile of one token from the box of these terms over `vocabulary` tokens, for every possible sum of L."""
    bounds = make_terms(epsilon=epsilon, upper=upper).family_bounds
    b = Fraction(constants_of_optimal_box(bounds, epsilon).b)
    # twice the bound, for the floats below
    margin = max(_MARGIN * b, _MARGIN * b / 2 + Fraction(2 * vocabulary, TOTAL))
    # alpha falls with b
    most, least = (
        _alpha_of_box_lower_bound(share, epsilon) for share in (max(b - margin, Fraction(1, TOTAL)), b + margin)
    )
    return BoxProfile(epsilon=epsilon, alpha=min(max(0.5, least), most))


def _alpha_of_box_lower_bound(b: Fraction, epsilon: float) -> float:
    """(1 - b)/((e^epsilon - 1) b), between 0 and 1."""
    alpha = float(1 - min(b, Fraction(1))) * math.exp(-epsilon) / (float(b) * -math.expm1(-epsilon))
    return min(1.0, max(alpha, 1e-300))


_cached_box_profile = lru_cache(maxsize=1024)(box_profile_of_one_token)
Spending = tuple[tuple[BoxProfile, int], ...]  # profiles, with their numbers of tokens


@lru_cache(maxsize=64)
def _compose_loss_of_tokens(spending: Spending) -> PrivacyLoss:
    """The composed loss, cached: the texts of a batch differ in their prompts but have one loss."""
    return compose(list(spending))


@lru_cache(maxsize=64)
def _total_epsilon_of_tokens(spending: Spending, delta: float) -> float:
    loss = _compose_loss_of_tokens(spending)
    return min(loss.largest, loss.epsilon(delta))


def _checked_schedule(schedule: Any, tokens: int) -> tuple[float, ...]:
    """The epsilons of the first tokens, checked."""
    if isinstance(schedule, str | bytes) or not isinstance(schedule, Sequence):
        raise DiscreetError(f"schedule = {schedule!r} is not a sequence; pass the epsilon of each of the first tokens")
    if len(schedule) > tokens:
        raise DiscreetError(
            f"schedule holds {len(schedule)} epsilons and tokens = {tokens}; pass at most one for each token"
        )
    for index, epsilon in enumerate(schedule):
        POSITIVE.check(f"schedule[{index}]", epsilon, "it is the budget of one token")
    return tuple(check_epsilon(epsilon) for epsilon in schedule)


@dataclass(frozen=True, kw_only=True)
class TokenTerms:
    """The terms of a text; its statement and a ledger name their `id`.

    Args:
        epsilon: the budget of one token, in (0, inf).
        tokens: the largest number of tokens, up to 50,000.
        schedule: the epsilon of each of the first tokens, if it differs; fixed in advance, like everything here. The public distribution
            knows least at the beginning, so a larger epsilon gains most there.
        vocabulary: the number of tokens that the model knows.
        upper: the largest ratio of a token's private to its public probability that the box is made for, above 1; choose it on public
            texts (`discreet.torch.fitted_upper`). By default e^(epsilon/2) + 1.
        delta: the probability that all tokens together lose more than the statement says.
        temperature: divides the logits of both models.
        reference_temperature: further divides the logits of the public model: above 1 the box is around a flatter distribution, which
            leaves more room for publicly rare tokens. `discreet.torch.fitted_box` chooses it together with `upper`.
        top_k: only the top_k likeliest tokens of the PUBLIC distribution can occur; by default all.
        top_p: only the likeliest tokens of the PUBLIC distribution with total mass top_p can occur; by default all.
        model: the model's name for the parties, such as a digest of its weights.
        public: the public prompt, or its digest.
        purpose: what for, in words; another purpose is another text for a ledger.

    Raises:
        DiscreetError: for terms out of range.
    """

    epsilon: float
    tokens: int
    vocabulary: int
    schedule: Sequence[float] = ()
    upper: float | None = None
    delta: float = 1e-6
    temperature: float = 1.0
    reference_temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    model: str = ""
    public: str = ""
    purpose: str = ""

    def __post_init__(self) -> None:
        privacy: Any = make_terms(epsilon=self.epsilon, upper=self.upper).privacy
        object.__setattr__(self, "epsilon", privacy.epsilon)
        check_count("tokens", self.tokens, most=MOST_SAMPLES, fix="it is how many tokens a text has at most")
        check_count("vocabulary", self.vocabulary, least=2, fix="it is how many tokens the model knows")
        _DELTA.check("delta", self.delta, "the chance with which the statement may fail; 0 for the pure guarantee")
        for name in ("temperature", "reference_temperature"):
            POSITIVE.check(name, getattr(self, name), "1 leaves the logits as they are")
        object.__setattr__(self, "schedule", _checked_schedule(self.schedule, self.tokens))
        if self.top_k is not None:
            check_count("top_k", self.top_k, fix="it is how many tokens of the public law can occur")
        if self.top_p is not None:
            _TOP_P.check("top_p", self.top_p, "it is how much mass of the public law can occur")
        for name in ("model", "public", "purpose"):
            if not isinstance(getattr(self, name), str):
                raise DiscreetError(f"{name} = {getattr(self, name)!r} is not a text")
        canonical_json(self.document)
        for epsilon in self.epsilons:
            _cached_box_profile(epsilon, self.upper, self.vocabulary)  # raises the error if no statement is possible

    @property
    def document(self) -> dict[str, Any]:
        """The terms that are not at their defaults, as JSON values."""
        text: dict[str, Any] = {"epsilon": self.epsilon, "tokens": self.tokens, "vocabulary": self.vocabulary}
        if self.schedule:
            text["schedule"] = list(self.schedule)
        for name, default in (
            ("upper", None), ("delta", 1e-6), ("temperature", 1.0), ("reference_temperature", 1.0), ("top_k", None), ("top_p", None),
        ):  # fmt: skip
            if getattr(self, name) != default:
                text[name] = getattr(self, name)
        text |= {name: getattr(self, name) for name in ("model", "public", "purpose") if getattr(self, name)}
        return {"discreet": VERSION, "bits": BITS, "text": text}

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, as for every agreement."""
        return hashlib.sha256(canonical_json(self.document).encode()).hexdigest()

    def epsilon_of(self, place: int) -> float:
        """The budget of the token at a place; the first is at 0."""
        return self.schedule[place] if place < len(self.schedule) else self.epsilon

    def profile_of(self, place: int) -> BoxProfile:
        """The privacy profile of the token at a place."""
        return _cached_box_profile(self.epsilon_of(place), self.upper, self.vocabulary)

    @property
    def largest(self) -> float:
        """The largest epsilon of a token."""
        return max(self.epsilons)

    @property
    def epsilons(self) -> set[float]:
        """Every epsilon of a token."""
        return {self.epsilon_of(position) for position in range(min(self.tokens, len(self.schedule) + 1))}

    def _privacy_spending_of_first_tokens(self, tokens: int) -> Spending:
        first = self.schedule[:tokens]
        counts = Counter(first)
        if tokens > len(first):
            counts[self.epsilon] += tokens - len(first)
        return tuple(
            (_cached_box_profile(epsilon, self.upper, self.vocabulary), count) for epsilon, count in counts.items()
        )

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of all tokens together."""
        return _compose_loss_of_tokens(self._privacy_spending_of_first_tokens(self.tokens))

    @property
    def total(self) -> float:
        """The epsilon of all tokens together at delta."""
        return _total_epsilon_of_tokens(self._privacy_spending_of_first_tokens(self.tokens), self.delta)

    @property
    def bounds(self) -> Bounds:
        """The band around the public distribution that the box is made for."""
        return make_terms(epsilon=self.epsilon, upper=self.upper).family_bounds

    def within(self, budget: Budget) -> TokenTerms:
        """The same terms with as many tokens as a budget allows, at its delta; an error if it allows none.

        Args:
            budget: of all tokens together.

        Returns:
            Terms with at most as many tokens as these.

        Raises:
            BudgetError: if not even one token is allowed.
        """

        def fits_into_budget(tokens: int) -> bool:
            return (
                _total_epsilon_of_tokens(self._privacy_spending_of_first_tokens(tokens), budget.delta) <= budget.epsilon
            )

        low, high = 0, self.tokens + 1  # low fits; high does not, or exceeds the requested number
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits_into_budget(middle) else (low, middle)
        if not low:
            raise BudgetError(f"the budget is {budget}: not enough for one token at epsilon = {self.epsilon_of(0):g}")
        return replace(self, tokens=low, schedule=self.schedule[:low], delta=budget.delta)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The guarantee of one text.

    Attributes:
        agreement: the id of the terms.
        epsilon_per_token: each token is at most e^epsilon times as likely from one private prompt as from any other; for a schedule, the
            largest.
        tokens: the largest number agreed on, for which the bound at delta holds.
        released: the number of released tokens.
        epsilon: the text as a whole is (epsilon, delta)-LDP: exact composition of the boxes, rounded up.
        delta: that delta.
        pure: the largest loss of `tokens` tokens with certainty.
        stopped: "end" (the model ended the text), "tokens" (all agreed tokens) or "budget" (the ledger rejected the next one).
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
        """The statement of a text released under these terms."""
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
