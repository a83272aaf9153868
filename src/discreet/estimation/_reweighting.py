"""Public examples, reweighted until what would be released for them explains the samples: a population that rests on the examples.

Samples of a projection do not determine the average client. But if clients are like public examples p_1, ..., p_N in unknown numbers w,
samples have the law sum_i w_i q_i with q_i the output law of p_i, and the average client is sum_i w_i p_i. The weights under which
the samples are most likely are a concave problem with a certificate (`discreet.estimation._mixing`). Samples of several
agreements have one likelihood: their output laws stand side by side.

**How far from equal weights.** The most likely weights alone follow the noise of the samples. So the examples count too, as so many
further samples that fell on them in equal parts (`pull`); how many is decided by leaving out one sample after the other and looking at how
well the rest foretells it, to first order: the strongest pull that is no worse than the best by more than a standard error, and at
least one sample for each outcome. Where examples are like the clients that leaves them as they are; where they are not, the
samples move them.

**Samples less their bias.** The average client is the average output law plus E(P - Q), and the second term is all that examples are needed
for: `debiased` is the shares of the samples plus sum_i w_i (p_i - q_i), the nearest law to it. It has the noise of the samples, which
`law` has not, and it errs only by how the bias of the clients differs from that of the weighted examples: less than how the clients
themselves differ, and nothing once epsilon is so large that Q is P. So where examples are unlike the clients it is the closer one.

Nothing here is private or needs to be: it works on released samples and public examples alone. Nor is it assumption-free: whatever no
weights of the examples can explain is not in the estimate, and `strain` says so where the samples show it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._showing import with_short_repr
from discreet.design._examples import as_examples
from discreet.errors import DiscreetError
from discreet.estimation._mixing import ExampleMixture, mixtures
from discreet.estimation._nearest import nearest_law
from discreet.families import ContinuousFamily
from discreet.families._laws import as_floats
from discreet.mechanisms._carriers._cells import CellAtoms
from discreet.mechanisms._sampler import AnyFamily, Sampler
from discreet.release import TOTAL

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_TABLE = 5 * 10**7  # examples times outcomes
PULLS = tuple(100.0 * 4.0**-step for step in range(15))  # relative to the number of samples, from nearly fixed on
STRANGE = 6.0  # standard deviations from which on samples are called unlike the examples


@with_short_repr
@dataclass(frozen=True, eq=False)
class Reweighted:
    """The examples with the weights under which the samples are most likely.

    Attributes:
        law: the average of the examples with these weights (k,): an estimate of the average client.
        debiased: the samples less the bias that the weighted examples have (k,): the closer one where examples are unlike the clients.
        weights: of each example (N,).
        pull: how many samples the examples themselves count for.
        gap: no weights have a log-likelihood, the pull included, that is larger by more than this for each sample.
        strain: by how many standard deviations the samples are further from what the weighted examples would release than chance has it.
    """

    law: Floats
    debiased: Floats
    weights: Floats
    pull: float
    gap: float
    strain: float

    @property
    def explains(self) -> bool:
        """Whether weighted examples explain the samples, as far as these can tell."""
        return self.strain < STRANGE


def reweight_examples(
    rounds: Sequence[tuple[Sampler[Any], Integers]], laws: Floats, *, pull: float | None = None
) -> Reweighted:
    """Examples (N, k) that explain the counts of one or several samplers on the same outcomes; `pull` in samples, or chosen by them."""
    counts = np.concatenate([counted for _, counted in rounds]).astype(np.float64)
    released = np.hstack([_outputs(sampler, laws) for sampler, _ in rounds])
    number = float(counts.sum())
    shares = counts / number
    path = list(mixtures(released, shares, _pulls(laws.shape[1] if pull is None else pull, number)))
    freedoms = [found.freedom(released, shares) for found in path]
    chosen = len(path) - 1 if pull is not None else _choose_pull(path, freedoms, shares, number)
    found, fitted = path[chosen], float(shares @ freedoms[chosen])
    law = np.asarray(found.weights @ laws)
    unexplained = (shares - found.law * _parts(rounds, number)).reshape(len(rounds), -1).sum(axis=0)
    return Reweighted(
        law,
        nearest_law(law + unexplained),
        found.weights,
        found.pull * number,
        found.gap,
        _strain(rounds, found, fitted),
    )


def _outputs(sampler: Sampler[Any], laws: Floats) -> Floats:
    """The output laws of laws (N, k) on the outcomes, or on the cells of a line."""
    if not isinstance(sampler.family, ContinuousFamily):
        return np.asarray(sampler.output(laws), dtype=np.float64)
    return sampler.weights_on_atoms(laws) / TOTAL


def _parts(rounds: Sequence[tuple[Sampler[Any], Integers]], number: float) -> Floats:
    """Each round's part of the samples, for every outcome of every round."""
    return np.concatenate([np.full(len(counts), float(counts.sum()) / number) for _, counts in rounds])


def _choose_pull(path: Sequence[ExampleMixture], freedoms: Sequence[Floats], shares: Floats, number: float) -> int:
    """The strongest pull that foretells a sample left out no worse than the best does, up to one standard error of the difference."""
    seen = shares > 0.0
    f = shares[seen]
    foretold = [np.log(found.law[seen]) - freedom[seen] / number for found, freedom in zip(path, freedoms, strict=True)]
    best = max(foretold, key=lambda one: float(f @ one))
    for place, one in enumerate(foretold):
        worse = best - one
        mean = float(f @ worse)
        if mean <= float(np.sqrt(f @ np.square(worse - mean) / number)):
            return place
    raise AssertionError("the best is no worse than itself")


def example_laws(sampler: Sampler[AnyFamily], examples: Any) -> Floats:
    """Examples as laws (N, k): dense rows, or a scipy.sparse matrix of counts or laws; on the outcomes, or on the cells of a line."""
    family: AnyFamily = sampler.family
    given = examples
    if isinstance(family, ContinuousFamily):
        if not isinstance(sampler.carrier, CellAtoms):
            raise DiscreetError(f"examples are laws on cells, by which {sampler!r} does not release; leave them out")
        given = given if hasattr(given, "tocsr") else as_floats(given, "examples")
    elif not hasattr(examples, "tocsr"):
        given = family.as_rows(examples, "examples")
    shape: tuple[int, ...] = tuple(given.shape)
    if len(shape) == 2 and shape[0] * shape[1] > LARGEST_TABLE:
        raise DiscreetError(
            f"examples has {shape[0]:,} rows on {shape[1]:,} outcomes, more than {LARGEST_TABLE:,} numbers; take fewer of them, at random"
        )
    return as_examples(given, None, sampler.carrier.size, name="examples").dense()


def _pulls(least: float, number: float) -> list[float]:
    """The path down to a pull of so many samples, each relative to the number there is."""
    return [*(one for one in PULLS if one > least / number), least / number]


def _strain(rounds: Sequence[tuple[Sampler[Any], Integers]], found: ExampleMixture, fitted: float) -> float:
    """Pearson's statistic in standard deviations: sum (c - n y)^2/(n y), of mean (outcomes - 1 for each round) less what was fitted.

    Its variance under the mixture is 2 (k - 1) + (sum 1/y - k^2 - 2k + 2)/n, exactly, which allows for outcomes that are hardly ever
    released.
    """
    statistic, mean, variance, at = 0.0, 0.0, 0.0, 0
    for _, counts in rounds:
        number, k = float(counts.sum()), len(counts)
        y = found.law[at : at + k]
        at += k
        if not number:
            continue
        statistic += float(np.sum(np.square(counts - number * y) / (number * y)))
        mean += k - 1
        variance += 2.0 * (k - 1) + max(0.0, float(np.sum(1.0 / y)) - k * k - 2.0 * k + 2.0) / number
    return (statistic - max(mean - fitted, 0.0)) / math.sqrt(max(variance, 1e-300))
