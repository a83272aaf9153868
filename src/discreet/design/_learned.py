"""`learn`: a design from private samples alone, or a safe sampler where the samples are too few.

**Privacy.** Let each client speak once, client i by a sampler that is eps-LDP and was chosen from what others had released before. Then all
releases, and every design computed from them, are eps-LDP for each client. *Proof.* Fix the releases of all others. Releases before i's turn
do not depend on i, so i's sampler is fixed, and the probability of its sample changes by a factor of at most e^eps between two distributions
of i. All that follows (other samplers, designs, publications) is a function of the samples, of constants, and of draws that do not depend on
i: post-processing.   QED
Here the function is deterministic: model clients are drawn with a fixed seed. No code in this module sees a client.

**The rule.** Samples give a posterior over hypotheses: a mean distribution and a shape of the clients, who may be spread around it, in
clusters or of one value each (`discreet.design._posterior`). The design is the best floor for model clients of all hypotheses together. Each
hypothesis is weighted by one over the cost of the better of Q* and the mollifier under it, so that relative costs are minimised. Every
possible kind of clients has at least a fifth of the hypotheses. One client in a hundred may be sure of any single outcome: at large epsilon
such clients make up most of the mean cost.

The design is published if it costs less, by at least a thousandth, than the better of the two under at least `confidence` of fresh
hypotheses. The same must hold under each kind of clients that is judged, at no larger cost on average. Judged are the kinds with a posterior
probability of at least one in ten thousand, and those that held-out samples do not reject, by the test below. A kind is left out
only if posterior and held-out samples agree. So held-out samples can add conditions but remove none. If they reject every kind, no design is
published.

The distribution of a linear mechanism's sample depends only on the mean of the clients. Such samples, fitted or held out, cannot distinguish
the kinds. A design from them has to be good for all kinds, unless `spread` adds information. Rounds are counts of outcomes, one sample of
each client. Pairs of samples of one client would distinguish the kinds, but are not supported.

Otherwise a safe sampler stays. It is the mollifier while the clients for which it is best have more than one outcome, and Q* beyond, unless
the other costs less under at least `confidence` of the hypotheses. This holds within the model: clients may be of none of these kinds, and no
private sample could tell.

**Held-out samples** test the kinds of clients. Every sample is held back with probability 1/2. The others are fitted as usual
(`discreet.design._posterior`), and each kind of clients predicts the distribution of a held-out sample in every round. One more prediction
needs no clients: the smoothed shares of the fitted samples. A kind is rejected if another prediction explains the held-out samples better
than chance allows.

**Test.** Let L(q) be the likelihood of the held-out samples under the distribution q, S the supremum of L over all distributions that a kind
can cause, and q_1, ..., q_m the predictions of the others. Reject the kind if max_j L(q_j) >= (m/alpha) S. If clients are of that kind, this
happens with probability at most alpha, for every number of samples. *Proof.* Given the fitted samples, each q_j is fixed. So the expectation
of L(q_j)/L(true distribution) is at most 1, and L(true distribution) <= S. Markov's inequality and a union bound over j complete the proof
(universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 2020). Where likelihoods are tempered by a power below 1
(`RoundCounts.down_weighted_counts`), Jensen's inequality keeps the expectation at most 1.   QED

S is a concave programme in the mean distribution; the value used is an upper bound from its gradient. It is that of the kind itself for
rounds of the linear mechanism, and for clients of one value each under any mechanism. Elsewhere the response of the mechanism is regressed on
model clients, and alpha holds as far as that regression does.

**Limit.** The distribution of a linear mechanism's sample depends only on the mean of the clients. Every kind then has the same S. No number
of held-out samples can reject point masses and keep clients that are spread out around the same mean, or the reverse. They can reject all
kinds together, if the samples have shares that no clients cause.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import divergences
from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.design._designs import Design, design
from discreet.design._posterior import (
    LEAST_SHARE,
    ClientShape,
    Clusters,
    Mode,
    Posterior,
    Response,
    ResponseFit,
    RoundCounts,
    fit_posterior,
    sample_law_in_spread_round,
    softmax,
)
from discreet.divergences import FDivergence
from discreet.errors import OPEN_UNIT, DiscreetError, check_list
from discreet.families import Band, Simplex
from discreet.mechanisms import MollifierSampler, OptimalSampler, Sampler
from discreet.privacy import check_epsilon

Floats = NDArray[np.float64]

_SURE_CLIENTS = 0.01  # share of the clients that may be sure of one outcome
LARGEST_LEARNED = 512  # outcomes: the posterior keeps a few square matrices of them
_HYPOTHESES, _CLIENTS, _CHECKED = 100, 20, 60
_KEEP = 0.01
_WORTH = 1e-3  # smaller gains do not count
_MOST_COUNTED = 10**15  # samples of a round: past them, rounding hides the prior
_HEARD = 0.2  # least share of the design's hypotheses for each possible kind of clients
_POSSIBLE = (
    1e-4  # the probability of a kind of clients, from which on a design may not harm them: evidence is approximate
)
_SEED = 20241


PLAIN = "any at all"
LEVEL = 0.01  # the probability that a kind is rejected although clients are of that kind
_HELD = 0.5  # of the samples, about
_WIDE = 100.0  # of the logarithms of the mean distribution: a prior too wide to matter


@dataclass(frozen=True)
class HeldOutResult:
    """The result of the held-out samples for each kind of clients.

    Attributes:
        samples: how many samples were held back.
        log_likelihood: of the held-out samples, as each kind predicts them from the other samples, and as the plain shares of those do ("any
            at all").
        rejected: the rejected kinds, each with a probability of error of at most one in a hundred.
    """

    samples: int = 0
    log_likelihood: dict[str, float] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()

    @property
    def refutes_model(self) -> bool:
        """Whether no kind of clients remains: the samples have shares that no clients of the model cause."""
        return len(self.rejected) == len(self.log_likelihood) - 1


def score_client_kinds_on_held_out_samples(
    size: int, rounds: Sequence[RoundCounts], spread: RoundCounts | None, rng: np.random.Generator
) -> HeldOutResult:
    """Fit hypotheses to one part of all samples, and test every kind of clients on the other part."""
    all_rounds = [*rounds, *([] if spread is None else [spread])]
    parts = [_hold_out_samples(round_counts, rng) for round_counts in all_rounds]
    fitted_parts, held_out = [part for part, _ in parts], [part for _, part in parts]
    pair = None if spread is None else (fitted_parts.pop(), held_out.pop())
    posterior = fit_posterior(size, fitted_parts, None if pair is None else pair[0], rng)
    kinds: dict[str, list[tuple[Mode, float]]] = {}
    for mode, weight in zip(posterior.modes, posterior.mode_probabilities_in_kind.tolist(), strict=True):
        kinds.setdefault(mode.shape.kind, []).append((mode, weight))
    scores, largest = {}, {}
    for kind, modes in kinds.items():
        responses = [mode.regress_round_responses(fitted_parts, rng) for mode, _ in modes]
        scores[kind] = _predictive_log_likelihood(modes, responses, held_out)
        largest[kind] = _held_out_log_likelihood_upper_bound([mode for mode, _ in modes], responses, held_out)
        if pair is not None:
            agreement = sum(
                weight * mode.shape.mean_chance_of_equal_draws(softmax(mode.theta)) for mode, weight in modes
            )
            scores[kind] += _log_likelihood_of_round(pair[1], sample_law_in_spread_round(pair[1], agreement))
            largest[kind] += _largest_log_likelihood_of_spread_round(pair[1], modes[0][0].shape)
    scores[PLAIN] = sum(_log_likelihood_of_round(test, _smoothed_shares_of_counts(fit)) for fit, test in parts)
    rejected_kinds = tuple(
        kind
        for kind, most in largest.items()
        if max(value for other, value in scores.items() if other != kind) >= most + np.log((len(scores) - 1) / LEVEL)
    )
    return HeldOutResult(int(sum(test.counts.sum() for _, test in parts)), scores, rejected_kinds)


def _hold_out_samples(samples: RoundCounts, rng: np.random.Generator) -> tuple[RoundCounts, RoundCounts]:
    """The fitted and the held-out part of a round: each sample is held back independently of all others."""
    held_out = rng.binomial(samples.counts.astype(np.int64), _HELD).astype(np.float64)
    return RoundCounts(samples.sampler, samples.counts - held_out), RoundCounts(samples.sampler, held_out)


def _log_likelihood_of_round(samples: RoundCounts, law: Floats) -> float:
    return float(samples.down_weighted_counts @ np.log(np.maximum(law, LEAST_SHARE)))


def _smoothed_shares_of_counts(fitted: RoundCounts) -> Floats:
    return np.asarray((fitted.counts + 0.5) / (fitted.counts.sum() + 0.5 * len(fitted.counts)))


def _predictive_log_likelihood(
    modes: Sequence[tuple[Mode, float]], responses: Sequence[Sequence[Response]], held_out: Sequence[RoundCounts]
) -> float:
    """The log-likelihood of held-out samples under the normalised average distribution of a kind's modes."""
    total = 0.0
    for index, samples in enumerate(held_out):
        laws = [
            matrix @ softmax(mode.theta) + offset
            for (mode, _), (matrix, offset) in zip(modes, (row[index] for row in responses), strict=True)
        ]
        law = np.maximum(sum(weight * law for (_, weight), law in zip(modes, laws, strict=True)), LEAST_SHARE)
        total += _log_likelihood_of_round(samples, law / law.sum())
    return total


def _held_out_log_likelihood_upper_bound(
    modes: Sequence[Mode], responses: Sequence[Sequence[Response]], held_out: Sequence[RoundCounts]
) -> float:
    """An upper bound on the log-likelihood of held-out samples under any mean distribution, the largest over a kind's modes."""
    if not held_out:
        return 0.0
    pairs = list(zip(modes, responses, strict=True))
    if all(samples.has_affine_response for samples in held_out):  # the distribution depends on the mean alone
        pairs = pairs[:1]
    bounds = []
    for mode, mode_responses in pairs:
        fit = ResponseFit(mode_responses, [samples.down_weighted_counts for samples in held_out], _WIDE)
        bounds.append(fit.log_likelihood_upper_bound(fit.climb_to_mode(mode.theta)))
    return max(bounds)


def _largest_log_likelihood_of_spread_round(samples: RoundCounts, shape: ClientShape) -> float:
    """The largest log-likelihood of held-out bits about spread: point masses always agree, other clients are unconstrained."""
    least = 1.0 if isinstance(shape, Clusters) and shape.groups >= shape.size else 0.0
    number = samples.counts.sum()
    low, high = sorted(sample_law_in_spread_round(samples, agreement)[1] for agreement in (least, 1.0))
    share = min(max(samples.counts[1] / number if number else low, low), high)
    return _log_likelihood_of_round(samples, np.array([1.0 - share, share]))


@dataclass(frozen=True, eq=False)
class Learned:
    """The sampler that private samples support, and why.

    Attributes:
        sampler: the sampler to agree on: the design's, or the safe one.
        design: the design, published or not.
        published: whether the sampler is the design's.
        better: the share of the hypotheses under which the design costs less than the better of Q* and the mollifier.
        gain: the average relative gain.
        confidence: the requested share of hypotheses.
        samples: how many samples it was learned from, those about spread included.
        mean: the mean distribution at the likeliest hypotheses (k,).
        concentration: how similar clients are to the mean distribution.
        kinds: the posterior probability of each kind of clients: spread around a mean, in clusters, of one value each.
        gain_by_kind: the average gain under each kind that is judged: likely enough, or not rejected by held-out samples.
        better_by_kind: the same for `better`.
        held_out: the result of the held-out samples for each kind.
    """

    sampler: Sampler[Any]
    design: Design
    published: bool
    better: float
    gain: float
    confidence: float
    samples: int
    mean: Floats = field(repr=False)
    concentration: float
    kinds: dict[str, float] = field(default_factory=dict)
    gain_by_kind: dict[str, float] = field(default_factory=dict)
    better_by_kind: dict[str, float] = field(default_factory=dict)
    held_out: HeldOutResult = field(default_factory=HeldOutResult)

    @property
    def reason(self) -> str:
        """The reason for the choice of this sampler, in a sentence."""
        condition = f"under {self.better:.0%} of the hypotheses that {self.samples:,} samples leave"
        if self.published:
            return f"the design costs less than the better of the optimal sampler and the mollifier {condition}"
        name = "mollifier" if isinstance(self.sampler, MollifierSampler) else "optimal sampler"
        if self.held_out.refutes_model:
            return (
                f"{self.held_out.samples:,} held-out samples have shares that no clients of the model cause (spread around a mean, in "
                f"clusters or of one value each), so nothing can be said of a design: the {name} stays"
            )
        losses = {kind: gain for kind, gain in self.gain_by_kind.items() if gain < 0.0}
        if self.better >= self.confidence and losses:
            kind = min(losses, key=lambda kind: losses[kind])
            return (
                f"a design would cost less {condition}, but {-losses[kind]:.0%} more if clients are {kind}, which the samples leave possible "
                f"({self.kinds[kind]:.0%}): the {name} stays"
            )
        weakest = min(self.better_by_kind, key=lambda kind: self.better_by_kind[kind], default="")
        if self.better >= self.confidence and weakest and self.better_by_kind[weakest] < self.confidence:
            return (
                f"a design would cost less {condition}, but under {self.better_by_kind[weakest]:.0%} of those where clients "
                f"are {weakest}, which the samples leave possible, and {self.confidence:.0%} was asked for: the {name} stays"
            )
        return f"a design would cost less {condition}, and {self.confidence:.0%} was asked for: the {name} stays"


def learn(
    family: Simplex,
    *,
    epsilon: float,
    rounds: Sequence[tuple[Sampler[Any], object]] = (),
    spread: tuple[Sampler[Any], object] | None = None,
    divergence: str | FDivergence = "kl",
    keep: float = _KEEP,
    confidence: float = 0.8,
) -> Learned:
    """The design for the clients behind private samples, or the safe sampler if the samples are too few.

    Args:
        family: the public outcomes.
        epsilon: the budget of one release under the design.
        rounds: pairs (sampler, counts): the sampler of a round, and how often it released each outcome. Each client is in at most one round.
        spread: such a pair on two outcomes, of yet other clients, whose distributions are their own `concentration_law`.
        divergence: the divergence whose mean is minimised.
        keep: the share of the best worst case that must remain.
        confidence: the share of hypotheses under which a design has to cost less than the better of the optimal sampler and the mollifier.

    Returns:
        A `Learned`: `.sampler`, `.published`, `.reason`.

    Raises:
        DiscreetError: for rounds on other outcomes, invalid counts, arguments out of range, or more than 512 outcomes.
    """
    if not isinstance(family, Simplex):
        raise DiscreetError(f"family = {family!r} is not a Simplex; give the outcomes alone, as Simplex(outcomes)")
    if not 2 <= family.size <= LARGEST_LEARNED:
        raise DiscreetError(
            f"family has {family.size:,} outcomes; a design is learned on 2 to {LARGEST_LEARNED:,}: merge rare ones, or use public examples"
        )
    epsilon, f = check_epsilon(epsilon), divergences.divergence(divergence)
    OPEN_UNIT.check("confidence", confidence)
    pairs = check_list("rounds", rounds, "give pairs (sampler, counts)")
    counts = [_read_round_counts(f"rounds[{index}]", family.size, pair) for index, pair in enumerate(pairs)]
    bits = None if spread is None else _read_round_counts("spread", 2, spread)
    rng = np.random.default_rng(_SEED)
    merged_rounds = _merge_rounds_of_same_sampler(counts)
    posterior = fit_posterior(family.size, merged_rounds, bits, rng)
    held_out = score_client_kinds_on_held_out_samples(
        family.size, merged_rounds, bits, np.random.default_rng([_SEED, 1])
    )
    return _choose_designed_or_safe_sampler(
        family, epsilon, f, keep, confidence, posterior, held_out, rng, [*counts, *([bits] if bits else [])]
    )


def _choose_designed_or_safe_sampler(
    family: Simplex,
    epsilon: float,
    f: FDivergence,
    keep: float,
    confidence: float,
    posterior: Posterior,
    held_out: HeldOutResult,
    rng: np.random.Generator,
    rounds: Sequence[RoundCounts],
) -> Learned:
    safe_samplers = OptimalSampler(family, epsilon=epsilon), MollifierSampler(family, epsilon=epsilon)
    cost = _HypothesisCosts(f, family.size)
    means, modes = _draw_design_hypotheses(posterior, rng)
    clients = posterior.draw_clients_of_hypotheses(means, modes, _CLIENTS, rng)
    costs = np.array([_average_hypothesis_costs_by_shape(cost(safe, clients), modes) for safe in safe_samplers])
    safe_sampler = _choose_safe_sampler(safe_samplers, cost, posterior, rng, confidence)
    weight = 1.0 / costs.min(axis=0)
    candidate = design(
        family,
        epsilon=epsilon,
        clients=np.vstack([clients, np.eye(family.size)]),
        weights=np.append(
            np.repeat(weight * (1.0 - _SURE_CLIENTS) / _CLIENTS, _CLIENTS),
            np.full(family.size, _SURE_CLIENTS * weight.sum() / family.size),
        ),
        divergence=f,
        keep=keep,
    )
    gains = _relative_gains_over_safe_samplers(candidate.sampler, safe_samplers, cost, posterior, rng)
    better = float((gains > _WORTH).mean())
    judged_kinds = [
        kind for kind, p in posterior.kind_probabilities.items() if p >= _POSSIBLE or kind not in held_out.rejected
    ]
    gains_by_kind = {
        kind: _relative_gains_over_safe_samplers(candidate.sampler, safe_samplers, cost, posterior, rng, kind)
        for kind in judged_kinds
    }
    gain_by_kind = {kind: float(kind_gains.mean()) for kind, kind_gains in gains_by_kind.items()}
    better_by_kind = {kind: float((kind_gains > _WORTH).mean()) for kind, kind_gains in gains_by_kind.items()}
    is_published = (
        not held_out.refutes_model
        and min(better, *better_by_kind.values()) >= confidence
        and min(gain_by_kind.values()) >= 0.0
    )
    return Learned(
        sampler=candidate.sampler if is_published else safe_sampler,
        design=candidate,
        published=is_published,
        better=better,
        gain=float(gains.mean()),
        confidence=confidence,
        samples=int(sum(round_counts.counts.sum() for round_counts in rounds)),
        mean=posterior.mean_law,
        concentration=posterior.mean_concentration,
        kinds=posterior.kind_probabilities,
        gain_by_kind=gain_by_kind,
        better_by_kind=better_by_kind,
        held_out=held_out,
    )


def _draw_design_hypotheses(posterior: Posterior, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """Hypotheses for the design; every possible kind of clients has a share of them, even if its probability is small."""
    shares = {kind: max(p, _HEARD) for kind, p in posterior.kind_probabilities.items() if p >= _POSSIBLE}
    numbers = {kind: max(1, round(_HYPOTHESES * share / sum(shares.values()))) for kind, share in shares.items()}
    largest = max(numbers, key=lambda kind: numbers[kind])
    numbers[largest] += _HYPOTHESES - sum(numbers.values())
    draws = [posterior.draw_hypotheses(number, rng, kind) for kind, number in numbers.items()]
    return np.vstack([means for means, _ in draws]), np.concatenate([modes for _, modes in draws])


def _relative_gains_over_safe_samplers(
    sampler: Sampler[Any],
    safe_samplers: tuple[Sampler[Any], Sampler[Any]],
    cost: "_HypothesisCosts",
    posterior: Posterior,
    rng: np.random.Generator,
    kind: str | None = None,
) -> Floats:
    """The relative gain over the better of the safe samplers, under fresh hypotheses of one kind of clients or of all."""
    means, modes = posterior.draw_hypotheses(_HYPOTHESES, rng, kind)
    clients = posterior.draw_clients_of_hypotheses(means, modes, _CHECKED, rng)
    costs, best = (cost(sampler, clients), np.min([cost(safe, clients) for safe in safe_samplers], axis=0))
    free = best <= 0.0  # some divergences vanish near 1: what costs nothing either gains nothing
    return np.where(free, -np.sign(costs), 1.0 - costs / np.where(free, 1.0, best))


def _choose_safe_sampler(
    safe_samplers: tuple[OptimalSampler[Simplex], MollifierSampler[Simplex]],
    cost: "_HypothesisCosts",
    posterior: Posterior,
    rng: np.random.Generator,
    confidence: float,
) -> Sampler[Any]:
    """The safe sampler: the default one, unless the other is better under enough hypotheses.

    The mollifier is the best uniform floor for clients with s = k/(e^(eps/2) + 1) outcomes (T3). It is the default while s is more than one,
    and Q* beyond.
    """
    optimal, mollifier = safe_samplers
    start = int(optimal.family.size > math.exp(min(optimal.epsilon, LARGEST_FLOAT_EXPONENT) / 2.0) + 1.0)
    means, modes = posterior.draw_hypotheses(_HYPOTHESES, rng)
    clients = posterior.draw_clients_of_hypotheses(means, modes, _CLIENTS, rng)
    costs = [
        _average_hypothesis_costs_by_shape(cost.mean_costs_of_model_clients(sampler, clients), modes)
        for sampler in (optimal, mollifier)
    ]
    switches = float((costs[1 - start] < costs[start]).mean()) >= confidence
    return safe_samplers[1 - start if switches else start]


@dataclass(frozen=True)
class _HypothesisCosts:
    """The mean divergence of a sampler under each hypothesis, whose model clients are consecutive rows."""

    f: FDivergence
    size: int

    def __call__(self, sampler: Sampler[Any], clients: Floats) -> Floats:
        points = np.eye(self.size)
        point_cost = float(np.mean(self.f(points, sampler.output(points))))
        return np.asarray(
            (1.0 - _SURE_CLIENTS) * self.mean_costs_of_model_clients(sampler, clients) + _SURE_CLIENTS * point_cost
        )

    def mean_costs_of_model_clients(self, sampler: Sampler[Any], clients: Floats) -> Floats:
        """The mean cost under each hypothesis, without the clients that may be sure of any outcome."""
        costs = np.asarray(self.f(clients, sampler.output(clients)), dtype=np.float64)
        return np.asarray(costs.reshape(_HYPOTHESES, -1).mean(axis=1))


def _average_hypothesis_costs_by_shape(costs: Floats, modes: NDArray[np.int64]) -> Floats:
    """Costs averaged over the hypotheses of the same shape, which differ more by chance than by their means."""
    averages = np.empty_like(costs)
    for mode in np.unique(modes):
        averages[modes == mode] = costs[modes == mode].mean()
    return np.maximum(averages, 1e-300)


def _read_round_counts(name: str, size: int, pair: Any) -> RoundCounts:
    members = check_list(name, pair, "give pairs (sampler, counts)")
    if len(members) != 2:
        raise DiscreetError(f"{name} holds {len(members)} things; give pairs (sampler, counts)")
    sampler, counts = members
    if not isinstance(sampler, Sampler):
        raise DiscreetError(f"{name} = {sampler!r} begins with no sampler; give pairs (sampler, counts)")
    family = sampler.family
    if not isinstance(family, (Simplex, Band)) or family.size != size:
        raise DiscreetError(f"{name} is of {family!r}, not on the {size} outcomes that are to be designed for")
    if isinstance(family, Band) and not family.any_client:
        raise DiscreetError(
            f"{name} is of {family!r}, which is for some clients only; learn from samplers that serve everybody"
        )
    try:
        values = np.asarray(counts)
    except ValueError:  # of lists of different lengths
        values = np.zeros(0)
    if values.shape != (size,) or values.dtype.kind not in "iu" or bool((values < 0).any()):
        raise DiscreetError(f"{name}: counts are not {size} whole numbers of at least 0, one for each outcome")
    samples = values.astype(np.float64)
    if samples.sum() > _MOST_COUNTED:
        raise DiscreetError(f"{name}: counts sum to more than {_MOST_COUNTED:,}; take the samples of fewer clients")
    return RoundCounts(sampler, samples)


def _merge_rounds_of_same_sampler(rounds: Sequence[RoundCounts]) -> list[RoundCounts]:
    """Rounds of one sampler as one."""
    merged_rounds: list[RoundCounts] = []
    for round_counts in rounds:
        for index, earlier in enumerate(merged_rounds):
            if earlier.sampler == round_counts.sampler:
                merged_rounds[index] = RoundCounts(round_counts.sampler, earlier.counts + round_counts.counts)
                break
        else:
            merged_rounds.append(round_counts)
    return merged_rounds
