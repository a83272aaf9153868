"""Tests of kinds of clients on held-out samples.

Every sample is held back with probability 1/2. The others are fitted as usual (`discreet.design._posterior`), and each kind of clients
predicts the distribution of a held-out sample in every round. One more prediction needs no clients: the smoothed shares of the fitted
samples. A kind is rejected if another prediction explains the held-out samples better than chance allows.

**Test.** Let L(q) be the likelihood of the held-out samples under the distribution q, S the supremum of L over all distributions that a kind
can cause, and q_1, ..., q_m the predictions of the others. Reject the kind if max_j L(q_j) >= (m/alpha) S. If clients are of that kind, this
happens with probability at most alpha, for every number of samples. *Proof.* Given the fitted samples, each q_j is fixed. So the expectation
of L(q_j)/L(true distribution) is at most 1, and L(true distribution) <= S. Markov's inequality and a union bound over j complete the proof
(universal inference: Wasserman, Ramdas and Balakrishnan, PNAS 2020). Where likelihoods are tempered by a power below 1
(`RoundCounts.trusted_counts`), Jensen's inequality keeps the expectation at most 1.   QED

S is a concave programme in the mean distribution; the value used is an upper bound from its gradient. It is that of the kind itself for
rounds of the linear mechanism, and for clients of one value each under any mechanism. Elsewhere the response of the mechanism is regressed on
model clients, and alpha holds as far as that regression does.

**Limit.** The distribution of a linear mechanism's sample depends only on the mean of the clients. Every kind then has the same S. No number
of held-out samples can reject point masses and keep clients that are spread out around the same mean, or the reverse. They can reject all
kinds together, if the samples have shares that no clients cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.design._posterior import (
    LEAST_SHARE,
    Clusters,
    Mode,
    Response,
    ResponseFit,
    RoundCounts,
    Shape,
    posterior,
    softmax,
)

Floats = NDArray[np.float64]

PLAIN = "any at all"
LEVEL = 0.01  # the probability that a kind is rejected although clients are of that kind
_HELD = 0.5  # of the samples, about
_WIDE = 100.0  # of the logarithms of the mean distribution: a prior too wide to matter


@dataclass(frozen=True)
class HeldOut:
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


def judge_kinds(
    size: int, rounds: Sequence[RoundCounts], spread: RoundCounts | None, rng: np.random.Generator
) -> HeldOut:
    """Fit hypotheses to one part of all samples, and test every kind of clients on the other part."""
    told = [*rounds, *([] if spread is None else [spread])]
    parts = [_split(one, rng) for one in told]
    fitted, held = [one for one, _ in parts], [one for _, one in parts]
    about = None if spread is None else (fitted.pop(), held.pop())
    believed = posterior(size, fitted, None if about is None else about[0], rng)
    kinds: dict[str, list[tuple[Mode, float]]] = {}
    for mode, weight in zip(believed.modes, believed.weights_in_kind.tolist(), strict=True):
        kinds.setdefault(mode.shape.kind, []).append((mode, weight))
    found, largest = {}, {}
    for kind, modes in kinds.items():
        responses = [mode.responses(fitted, rng) for mode, _ in modes]
        found[kind] = _log_predictions(modes, responses, held)
        largest[kind] = _largest([mode for mode, _ in modes], responses, held)
        if about is not None:
            agree = sum(weight * mode.shape.agreement(softmax(mode.theta)) for mode, weight in modes)
            found[kind] += _log_likelihood(about[1], _bit_law(about[1], agree))
            largest[kind] += _largest_of_bits(about[1], modes[0][0].shape)
    found[PLAIN] = sum(_log_likelihood(kept, _smooth_shares(one)) for one, kept in parts)
    rejected = tuple(
        kind
        for kind, most in largest.items()
        if max(value for other, value in found.items() if other != kind) >= most + np.log((len(found) - 1) / LEVEL)
    )
    return HeldOut(int(sum(kept.counts.sum() for _, kept in parts)), found, rejected)


def _split(one: RoundCounts, rng: np.random.Generator) -> tuple[RoundCounts, RoundCounts]:
    """The fitted and the held-out part of a round: each sample is held back independently of all others."""
    held = rng.binomial(one.counts.astype(np.int64), _HELD).astype(np.float64)
    return RoundCounts(one.sampler, one.counts - held), RoundCounts(one.sampler, held)


def _log_likelihood(held: RoundCounts, law: Floats) -> float:
    return float(held.trusted_counts @ np.log(np.maximum(law, LEAST_SHARE)))


def _smooth_shares(fitted: RoundCounts) -> Floats:
    return np.asarray((fitted.counts + 0.5) / (fitted.counts.sum() + 0.5 * len(fitted.counts)))


def _log_predictions(
    modes: Sequence[tuple[Mode, float]], responses: Sequence[Sequence[Response]], held: Sequence[RoundCounts]
) -> float:
    """The log-likelihood of held-out samples under the normalised average distribution of a kind's modes."""
    total = 0.0
    for place, one in enumerate(held):
        laws = [
            matrix @ softmax(mode.theta) + offset
            for (mode, _), (matrix, offset) in zip(modes, (each[place] for each in responses), strict=True)
        ]
        law = np.maximum(sum(weight * law for (_, weight), law in zip(modes, laws, strict=True)), LEAST_SHARE)
        total += _log_likelihood(one, law / law.sum())
    return total


def _largest(modes: Sequence[Mode], responses: Sequence[Sequence[Response]], held: Sequence[RoundCounts]) -> float:
    """An upper bound on the log-likelihood of held-out samples under any mean distribution, the largest over a kind's modes."""
    if not held:
        return 0.0
    pairs = list(zip(modes, responses, strict=True))
    if all(one.exact for one in held):  # the distribution depends on the mean alone
        pairs = pairs[:1]
    bounds = []
    for mode, each in pairs:
        fit = ResponseFit(each, [one.trusted_counts for one in held], _WIDE)
        bounds.append(fit.supremum(fit.climb(mode.theta)))
    return max(bounds)


def _bit_law(held: RoundCounts, agree: float) -> Floats:
    ends = np.asarray(held.sampler.output(np.eye(2)))
    return np.asarray((1.0 - agree) * ends[0] + agree * ends[1])


def _largest_of_bits(held: RoundCounts, shape: Shape) -> float:
    """The largest log-likelihood of held-out bits about spread: point masses always agree, other clients are unconstrained."""
    least = 1.0 if isinstance(shape, Clusters) and shape.groups >= shape.size else 0.0
    number = held.counts.sum()
    low, high = sorted(_bit_law(held, agree)[1] for agree in (least, 1.0))
    share = min(max(held.counts[1] / number if number else low, low), high)
    return _log_likelihood(held, np.array([1.0 - share, share]))
