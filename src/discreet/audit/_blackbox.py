"""`black_box_audit`: try to refute a claim of privacy from samples alone, with exact confidence bounds.

Nothing is assumed about the mechanism except that draws are independent. Samples of every input are drawn in two halves. The first half
selects events: unions of cells of partitions (`discreet.audit._partitions`), in the order of their likelihood ratio between two inputs. The
few most promising events, over all partitions and ordered pairs of inputs, are counted on the second half. That half is independent of the
selection, so exact binomial bounds hold. The allowed error is shared between the events: half for the most promising, a quarter for the
next, and so on. If the bound exceeds the claim, the claim is false with the stated confidence. If not, nothing is proved: an untested event
may refute it.

**Bound.** If a mechanism is (epsilon, delta)-LDP then p <= e^epsilon q + delta for every event, where p, q are its probabilities under the
two inputs. For counts X ~ Binomial(n, p) and Y ~ Binomial(n', q) the exact (Clopper-Pearson) tails

    u(p) = P[Binomial(n, p) >= x],      v(q) = P[Binomial(n', q) <= y]

are independent and each at most t with probability at most t, so their product is at most c with probability at most c (1 - log c)
(Fisher). Hence with confidence 1 - c (1 - log c) the truth lies among the (p, q) with u v > c, and the smallest log((p - delta)/q) among
them is a lower bound for epsilon. It is found along u v = c, rounding down between steps. (Two separate intervals would each need a tail of
(1 - confidence)/2, which loses half as much again.)

**Notions of privacy.** A notion is a claim at every (beta, delta(beta)). The first half also chooses which of them to test, and `epsilon`
and `delta` of the result are those that were tested. Refuting one of them refutes the notion.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base import OldName
from discreet._base.showing import with_short_repr
from discreet.audit._partitions import (
    Codes,
    SamplePartition,
    Samples,
    iterate_partitions_to_try,
    parse_mechanism_output,
    samples_as_hashable_values,
    unify_sample_kinds,
)
from discreet.errors import OPEN_UNIT, PROBABILITY, DiscreetError, check_count, check_kind
from discreet.families import ContinuousFamily, names_and_extreme_laws_of_band
from discreet.mechanisms import Mechanism, refuse_non_mechanism
from discreet.privacy import Approximate, Privacy, Pure, chosen_privacy

_STEPS = 400
MOST_DRAWS = 10**15


def empirical_epsilon_lower_bound(
    first: int, second: int, *, draws: int | tuple[int, int], confidence: float, delta: float = 0.0
) -> float:
    """A lower bound for every true claim of epsilon, with that confidence, from an event's counts under two inputs.

    Args:
        first: how often the event happened under one input.
        second: how often it happened under the other.
        draws: how many samples each count is out of; a pair where they differ.
        confidence: in (0, 1).
        delta: of the claim.

    Returns:
        The bound, at least 0; a mechanism that leaks nothing gives 0.

    Raises:
        DiscreetError: for arguments out of range.
    """
    sizes = draws if isinstance(draws, tuple) else (draws, draws)
    if len(sizes) != 2:
        raise DiscreetError(f"draws = {draws!r} is neither one number nor two")
    for name, count, size in zip(("first", "second"), (first, second), sizes, strict=True):
        if check_count("draws", size) > MOST_DRAWS:
            raise DiscreetError(f"draws is more than {MOST_DRAWS:,}, past which counts are no longer exact")
        if check_count(name, count, least=0) > size:
            raise DiscreetError(f"{name} = {count} exceeds its {size} draws")
    error = 1.0 - OPEN_UNIT.check("confidence", confidence)
    delta = PROBABILITY.check("delta", delta)
    product = float(
        scipy.optimize.brentq(lambda c: c * (1.0 - math.log(c)) - error, 1e-300, 1.0, xtol=1e-300, rtol=1e-12)
    )
    tails = np.geomspace(product, 1.0, _STEPS)
    least = binomial_probability_lower_bound(first, sizes[0], tails[:-1])  # p on each step: it grows with u
    most = binomial_probability_upper_bound(second, sizes[1], product / tails[1:])  # q: it grows as v falls
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.log(np.maximum(least - delta, 0.0)) - np.log(most)
    return max(0.0, float(bounds.min()))


def binomial_probability_lower_bound(count: ArrayLike, draws: float, tail: ArrayLike) -> NDArray[np.float64]:
    """The p with P[Binomial(draws, p) >= count] = tail; 0 for a count of 0. Between whole counts, the beta distribution's quantile."""
    counts = np.asarray(count, dtype=np.float64)
    positive_counts = np.where(counts == 0.0, 1.0, counts)
    return np.where(counts == 0.0, 0.0, scipy.special.betaincinv(positive_counts, draws - positive_counts + 1.0, tail))


def binomial_probability_upper_bound(count: ArrayLike, draws: float, tail: ArrayLike) -> NDArray[np.float64]:
    """The q with P[Binomial(draws, q) <= count] = tail; 1 if all draws are counted."""
    counts = np.asarray(count, dtype=np.float64)
    remaining = np.where(counts == draws, 1.0, draws - counts)
    return np.where(counts == draws, 1.0, scipy.special.betainccinv(counts + 1.0, remaining, tail))


DrawSamples = Callable[[Any, int], Any]
Claim = tuple[float, float]
MOST_EVENTS = 4
_CAUTION = 2.0  # standard deviations subtracted when events are compared on the first half
_ROUNDING = 1e-9
_SERIES = 30.0  # divides the error: hundreds of audits of notions that hold with equality should refute none
_CLAIMS = 9  # of a trade-off function
_HARDLY_EVER = 1e-3  # expected events below which a delta is indistinguishable from 0


@with_short_repr
@dataclass(frozen=True)
class TestedEvent:
    """An event, how often it happened on the second half under two inputs, and the bound that follows.

    Attributes:
        description: which samples it holds.
        first_input: the place of the input under which the first half of the draws had it more often.
        second_input: the place of the other input.
        first_count: how often it happened under the first input.
        second_count: how often it happened under the second input.
        draws: how many samples each count is out of.
        empirical_epsilon_lower_bound: the bound.
    """

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
    """The outcome of an audit.

    Attributes:
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        confidence: of the lower bound.
        inputs: what the mechanism was given.
        events: those that were tested; the first one gives the bound.
    """

    epsilon: float
    delta: float
    confidence: float
    inputs: tuple[Any, ...]
    events: tuple[TestedEvent, ...]

    @property
    def empirical_epsilon_lower_bound(self) -> float:
        """With the stated confidence the mechanism is not epsilon-LDP for any smaller epsilon. The true epsilon may be larger."""
        return self.events[0].empirical_epsilon_lower_bound if self.events else 0.0

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is false, with the stated confidence."""
        return self.empirical_epsilon_lower_bound > self.epsilon * (1.0 + _ROUNDING)

    refuted = OldName("is_refuted")


@dataclass(frozen=True)
class _CandidateEvent:
    partition: SamplePartition
    cells: Codes
    first: int
    second: int
    promise: float


def black_box_audit(
    mechanism: DrawSamples | Mechanism,
    inputs: Sequence[Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    privacy: Privacy | None = None,
    draws: int = 100_000,
    confidence: float = 0.99,
) -> BlackBoxAudit:
    """Audit a mechanism on two or more inputs: half of the draws choose an event, half test it.

    Args:
        mechanism: a function f(input, n) that returns n samples; or a `Mechanism`, such as a sampler or an object of your own with the
            same five names. Its own claim is audited unless another is given.
        inputs: two or more that the mechanism should hide; of a `Mechanism` by default four extreme members of its family.
        epsilon: of the claim, (epsilon, delta)-LDP.
        delta: of the claim.
        privacy: a notion in place of both.
        draws: how many samples of each input, at least 200.
        confidence: of the lower bound.

    Returns:
        A lower bound of the true epsilon, and the events that were tested.

    Raises:
        DiscreetError: for arguments out of range, and samples that cannot be compared.
    """
    if not callable(mechanism) and hasattr(mechanism, "release"):
        refuse_non_mechanism(mechanism)
        if epsilon is None and privacy is None:
            privacy = mechanism.privacy
        inputs = _extreme_inputs(mechanism) if inputs is None else inputs
        mechanism = _make_sample_drawer(mechanism)
    claims = _claimed_epsilon_delta_pairs(epsilon, delta, privacy)
    OPEN_UNIT.check("confidence", confidence)
    half = check_count("draws", draws, least=200, fix="an audit needs at least a hundred in each half") // 2
    if not callable(mechanism):
        raise DiscreetError(
            f"mechanism = {mechanism!r} cannot be called; pass a function f(input, n) that returns n samples, or a sampler"
        )
    check_kind("inputs", inputs, Iterable, "pass a list of two or more that the mechanism should hide")
    inputs = [] if inputs is None else list(inputs)
    if len(inputs) < 2:
        raise DiscreetError(
            f"{len(inputs)} inputs cannot be told apart; give two or more that the mechanism should hide"
        )
    first_half = unify_sample_kinds([_draw_mechanism_samples(mechanism, value, half) for value in inputs])
    (epsilon, delta), candidates = _most_doubtful_claim_and_events(claims, first_half, half)
    second_half = unify_sample_kinds([_draw_mechanism_samples(mechanism, value, half) for value in inputs])
    if (first_half[0].matrix is None) != (second_half[0].matrix is None):
        first_half, second_half = ([samples_as_hashable_values(s) for s in part] for part in (first_half, second_half))
        (epsilon, delta), candidates = _most_doubtful_claim_and_events(claims, first_half, half)
    events, error = [], (1.0 - confidence) / (1.0 if privacy is None else _SERIES)
    for index, candidate in enumerate(candidates):
        event_error = error * 2.0 ** -(index + (index + 1 < len(candidates)))
        events.append(_test_candidate_event(candidate, second_half, half, 1.0 - event_error, delta))
    events.sort(key=lambda event: -event.empirical_epsilon_lower_bound)
    return BlackBoxAudit(epsilon, delta, confidence, tuple(inputs), tuple(events))


def _extreme_inputs(mechanism: Mechanism) -> list[Any]:
    """Clients that hold as much as possible of the first or of the last outcome, or as little."""
    family = mechanism.family
    if isinstance(family, ContinuousFamily):
        raise DiscreetError(f"inputs is not given; on {family!r} pass two or more densities")
    mu = np.broadcast_to(family.reference, family.size).astype(np.float64)
    return list(names_and_extreme_laws_of_band(mu, family.bounds, 4)[1])


def _make_sample_drawer(mechanism: Mechanism) -> DrawSamples:
    """A function that releases n samples of one client."""

    def release_samples(p: Any, count: int) -> Any:
        if isinstance(mechanism.family, ContinuousFamily):
            return mechanism.release([p] * count)
        return mechanism.release(np.tile(np.asarray(mechanism.family.as_rows(p)), (count, 1)))

    return release_samples


def _claimed_epsilon_delta_pairs(epsilon: float | None, delta: float, privacy: Privacy | None) -> list[Claim]:
    """The claimed pairs (epsilon, delta): one, or several of those that a trade-off function promises."""
    delta = PROBABILITY.check("delta", delta)
    if privacy is not None and delta:
        raise DiscreetError(f"delta = {delta:g} goes with epsilon=; privacy = {privacy!r} is a claim of its own")
    match chosen_privacy(epsilon, privacy):
        case Pure(epsilon=claim_epsilon):
            return [(claim_epsilon, delta)]
        case Approximate(epsilon=claim_epsilon, delta=claim_delta):
            return [(claim_epsilon, claim_delta)]
        case notion:
            largest_beta = 1.0
            while notion.profile(largest_beta) > _HARDLY_EVER and largest_beta < 64.0:
                largest_beta *= 2.0
            return [(float(beta), notion.profile(float(beta))) for beta in np.linspace(0.0, largest_beta, _CLAIMS)]


def _most_doubtful_claim_and_events(
    claims: list[Claim], samples: Sequence[Samples], draws: int
) -> tuple[Claim, list[_CandidateEvent]]:
    """The claim that the first half contradicts most, and the events to test it by; the second half is not used."""
    candidates = [(claim, _promising_events(samples, draws, claim[1])) for claim in claims]
    return max(candidates, key=lambda pair: max((event.promise for event in pair[1]), default=-math.inf) - pair[0][0])


def _draw_mechanism_samples(mechanism: DrawSamples, value: Any, count: int) -> Samples:
    try:
        output = mechanism(value, count)
    except DiscreetError:
        raise
    except (Exception, SystemExit) as error:  # a mechanism that ends the process would look like a claim that stands
        raise DiscreetError(
            f"the mechanism failed on input {value!r} with {type(error).__name__}: {error}; it is called as f(input, n)"
        ) from error
    return parse_mechanism_output(output, count)


def _promising_events(samples: Sequence[Samples], draws: int, delta: float) -> list[_CandidateEvent]:
    """The most promising events, best first: at most one for each partition and ordered pair of inputs."""
    candidates: list[_CandidateEvent] = []
    for partition in iterate_partitions_to_try(samples):
        codes = [partition.cells(s) for s in samples]
        size = max(int(code.max(initial=0)) for code in codes) + 1
        counts = [np.bincount(code, minlength=size) for code in codes]
        for first, second in ((i, j) for i in range(len(counts)) for j in range(len(counts)) if i != j):
            cells, promise = _best_cells_and_epsilon_estimate(counts[first], counts[second], draws, delta)
            candidates.append(_CandidateEvent(partition, cells, first, second, promise))
        candidates.sort(key=lambda event: (-round(event.promise, 6), len(event.cells)))  # the simplest of equals first
        del candidates[MOST_EVENTS:]
    return candidates


def _best_cells_and_epsilon_estimate(
    first: NDArray[np.intp], second: NDArray[np.intp], draws: int, delta: float
) -> tuple[Codes, float]:
    """The cells of largest likelihood ratio whose union maximises the cautious estimate of epsilon, and that estimate."""
    order = np.argsort(-(np.log(first + 0.5) - np.log(second + 0.5)), kind="stable")
    a, b = np.cumsum(first[order]) + 0.5, np.cumsum(second[order] + 0.5)  # an unseen cell may still occur
    deviation = np.sqrt(np.maximum(1.0 / a - 1.0 / (draws + 1.0), 0.0) + np.maximum(1.0 / b - 1.0 / (draws + 1.0), 0.0))
    with np.errstate(divide="ignore"):
        promise = np.log(np.maximum(a - delta * draws, 0.0)) - np.log(b) - _CAUTION * deviation
    best = int(np.argmax(promise))
    return order[: best + 1].astype(np.int64), float(promise[best])


def _test_candidate_event(
    candidate: _CandidateEvent, samples: Sequence[Samples], draws: int, confidence: float, delta: float
) -> TestedEvent:
    first, second = (
        int(np.isin(candidate.partition.cells(samples[number]), candidate.cells).sum())
        for number in (candidate.first, candidate.second)
    )
    bound = empirical_epsilon_lower_bound(first, second, draws=draws, confidence=confidence, delta=delta)
    return TestedEvent(_event_description(candidate), candidate.first, candidate.second, first, second, draws, bound)


def _event_description(candidate: _CandidateEvent) -> str:
    words = [candidate.partition.describe_cell(int(cell)) for cell in candidate.cells[:3]]
    rest_count = len(candidate.cells) - len(words)
    return " or ".join(words) + (f" or {rest_count} more cells" if rest_count else "")
