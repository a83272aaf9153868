"""Try to refute a claim of epsilon-LDP by drawing samples: nothing about the mechanism is assumed but that draws are independent.

Samples of every input are drawn twice. On the first half, events are looked for: cells of the partitions in
`discreet.audit._partitions`, put together in the order of their likelihood ratio between two inputs. The few most promising
events, over all partitions and ordered pairs of inputs, are then counted on the second half, which had no part in
choosing them, so that exact binomial bounds hold (`discreet.audit._bounds`). The allowed error is shared between the events: half
for the most promising, a quarter for the next, and so on. If the bound exceeds the claim, the claim is false, but for a
chance of 1 - confidence. If not, nothing is proved: an event that nobody looked for may exist.

A notion of privacy is a claim at every (beta, delta(beta)); which of them to test is chosen on the first half too, so that `epsilon` and
`delta` of the result are the ones that were tested. To refute one of them is to refute the notion.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._showing import with_short_repr
from discreet.audit._bounds import empirical_epsilon_lower_bound
from discreet.audit._partitions import Codes, SamplePartition, Samples, partitions, same_kind, samples_of
from discreet.errors import OPEN_UNIT, PROBABILITY, DiscreetError, check_count, check_kind
from discreet.privacy import Approximate, Privacy, Pure, chosen_privacy

Mechanism = Callable[[Any, int], Any]
Claim = tuple[float, float]
MOST_EVENTS = 4
_CAUTION = 2.0  # standard deviations taken off when events are compared on the first half
_ROUNDING = 1e-9
_SERIES = 30.0  # a notion that is used up exactly is accused as often as the error allows: so that hundreds of audits accuse none
_CLAIMS = 9  # of a trade-off function
_HARDLY_EVER = 1e-3  # a delta that so many draws could not tell from none


@with_short_repr
@dataclass(frozen=True)
class TestedEvent:
    """An event, how often it happened on the second half under two inputs, and the bound that follows."""

    __test__ = False  # not a test class

    description: str
    first_input: int
    second_input: int
    first_count: int
    second_count: int
    draws: int
    empirical_epsilon_lower_bound: float


@with_short_repr
@dataclass(frozen=True)
class BlackBoxAudit:
    """The outcome of an audit; `events` begins with the one that gives the bound."""

    epsilon: float
    delta: float
    confidence: float
    inputs: tuple[Any, ...]
    events: tuple[TestedEvent, ...]

    @property
    def empirical_epsilon_lower_bound(self) -> float:
        """With the stated confidence the mechanism is not epsilon-LDP for any smaller epsilon. The truth may be larger."""
        return self.events[0].empirical_epsilon_lower_bound if self.events else 0.0

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is false, with the stated confidence."""
        return self.empirical_epsilon_lower_bound > self.epsilon * (1.0 + _ROUNDING)


@dataclass(frozen=True)
class _Candidate:
    partition: SamplePartition
    cells: Codes
    first: int
    second: int
    promise: float


def black_box_audit(
    mechanism: Mechanism,
    inputs: Sequence[Any],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    privacy: Privacy | None = None,
    draws: int = 100_000,
    confidence: float = 0.99,
) -> BlackBoxAudit:
    """Audit `mechanism(input, n) -> n samples` on two or more inputs, with that many draws of each: half choose, half test.

    The claim is (epsilon, delta)-LDP, or `privacy`, a notion in place of both.
    """
    claims = _claimed_pairs(epsilon, delta, privacy)
    OPEN_UNIT.check("confidence", confidence)
    half = check_count("draws", draws, least=200, fix="an audit needs at least a hundred in each half") // 2
    if not callable(mechanism):
        raise DiscreetError(
            f"mechanism = {mechanism!r} cannot be called; pass a function f(input, n) that returns n samples"
        )
    check_kind("inputs", inputs, Iterable, "pass a list of two or more that the mechanism should hide")
    inputs = list(inputs)
    if len(inputs) < 2:
        raise DiscreetError(
            f"{len(inputs)} inputs cannot be told apart; give two or more that the mechanism should hide"
        )
    choosing = same_kind([_draw_samples(mechanism, value, half) for value in inputs])
    (epsilon, delta), promising = _most_doubtful(claims, choosing, half)
    testing = same_kind([_draw_samples(mechanism, value, half) for value in inputs])
    if (choosing[0].matrix is None) != (testing[0].matrix is None):
        choosing, testing = ([_listed(s) for s in part] for part in (choosing, testing))
        (epsilon, delta), promising = _most_doubtful(claims, choosing, half)
    events, error = [], (1.0 - confidence) / (1.0 if privacy is None else _SERIES)
    for place, candidate in enumerate(promising):
        error_here = error * 2.0 ** -(place + (place + 1 < len(promising)))
        events.append(_test_candidate(candidate, testing, half, 1.0 - error_here, delta))
    events.sort(key=lambda event: -event.empirical_epsilon_lower_bound)
    return BlackBoxAudit(epsilon, delta, confidence, tuple(inputs), tuple(events))


def _claimed_pairs(epsilon: float | None, delta: float, privacy: Privacy | None) -> list[Claim]:
    """The pairs (epsilon, delta) that are claimed: one, or for a trade-off function several of all those that it promises."""
    delta = PROBABILITY.check("delta", delta)
    if privacy is not None and delta:
        raise DiscreetError(f"delta = {delta:g} goes with epsilon=; privacy = {privacy!r} is a claim by itself")
    match chosen_privacy(epsilon, privacy):
        case Pure(epsilon=claimed):
            return [(claimed, delta)]
        case Approximate(epsilon=claimed, delta=slack):
            return [(claimed, slack)]
        case notion:
            most = 1.0
            while notion.profile(most) > _HARDLY_EVER and most < 64.0:
                most *= 2.0
            return [(float(beta), notion.profile(float(beta))) for beta in np.linspace(0.0, most, _CLAIMS)]


def _most_doubtful(claims: list[Claim], samples: Sequence[Samples], draws: int) -> tuple[Claim, list[_Candidate]]:
    """The claim that the first half speaks against most, and the events to test it by: the second half has no part in the choice."""
    found = [(claim, _promising_events(samples, draws, claim[1])) for claim in claims]
    return max(found, key=lambda each: max((one.promise for one in each[1]), default=-math.inf) - each[0][0])


def _draw_samples(mechanism: Mechanism, value: Any, count: int) -> Samples:
    try:
        output = mechanism(value, count)
    except DiscreetError:
        raise
    except Exception as error:
        raise DiscreetError(
            f"the mechanism failed on input {value!r} with {type(error).__name__}: {error}; it is called as f(input, n)"
        ) from error
    return samples_of(output, count)


def _listed(samples: Samples) -> Samples:
    if samples.matrix is None:
        return samples
    return Samples(
        None, [tuple(row) for row in samples.matrix.tolist()], np.full(len(samples), samples.matrix.shape[1])
    )


def _promising_events(samples: Sequence[Samples], draws: int, delta: float) -> list[_Candidate]:
    """The most promising events, best first: at most one for each partition and ordered pair of inputs."""
    found: list[_Candidate] = []
    for partition in partitions(samples):
        codes = [partition.cells(s) for s in samples]
        size = max(int(code.max(initial=0)) for code in codes) + 1
        counts = [np.bincount(code, minlength=size) for code in codes]
        for first, second in ((i, j) for i in range(len(counts)) for j in range(len(counts)) if i != j):
            cells, promise = _best_union(counts[first], counts[second], draws, delta)
            found.append(_Candidate(partition, cells, first, second, promise))
        found = sorted(found, key=_candidate_rank)[:MOST_EVENTS]
    return found


def _candidate_rank(candidate: _Candidate) -> tuple[float, int]:
    """The most promising first; of events that promise the same, the simplest."""
    return -round(candidate.promise, 6), len(candidate.cells)


def _best_union(first: NDArray[np.intp], second: NDArray[np.intp], draws: int, delta: float) -> tuple[Codes, float]:
    """Cells in the order of their likelihood ratio, as many as make the cautious estimate of epsilon largest."""
    order = np.argsort(-(np.log(first + 0.5) - np.log(second + 0.5)), kind="stable")
    a, b = np.cumsum(first[order]) + 0.5, np.cumsum(second[order] + 0.5)  # a cell that was not seen may yet be
    deviation = np.sqrt(np.maximum(1.0 / a - 1.0 / (draws + 1.0), 0.0) + np.maximum(1.0 / b - 1.0 / (draws + 1.0), 0.0))
    with np.errstate(divide="ignore"):
        promise = np.log(np.maximum(a - delta * draws, 0.0)) - np.log(b) - _CAUTION * deviation
    best = int(np.argmax(promise))
    return order[: best + 1].astype(np.int64), float(promise[best])


def _test_candidate(
    candidate: _Candidate, samples: Sequence[Samples], draws: int, confidence: float, delta: float
) -> TestedEvent:
    first, second = (
        int(np.isin(candidate.partition.cells(samples[number]), candidate.cells).sum())
        for number in (candidate.first, candidate.second)
    )
    bound = empirical_epsilon_lower_bound(first, second, draws=draws, confidence=confidence, delta=delta)
    return TestedEvent(_event_description(candidate), candidate.first, candidate.second, first, second, draws, bound)


def _event_description(candidate: _Candidate) -> str:
    words = [candidate.partition.described(int(cell)) for cell in candidate.cells[:3]]
    more = len(candidate.cells) - len(words)
    return " or ".join(words) + (f" or {more} more cells" if more else "")


def largest_ratio_seen(audit: BlackBoxAudit) -> float:
    """The plain estimate log(first/second) of the leading event: what to expect of more draws. Not a bound."""
    if not audit.events or not audit.events[0].first_count:
        return 0.0
    event = audit.events[0]
    return math.log(event.first_count / event.second_count) if event.second_count else math.inf
