"""`design`: the best epsilon-LDP sampler for given clients, what it costs them, and the proof that nothing else costs less.

The examples are public, or have spent their own budget: a floor fitted on the clients that it then serves depends on them, and that
is a release which nobody accounted for. Privacy of those who are served does not rest on the examples at all: whatever floor comes
out, every law drawn from lies between m and e^eps m.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet import divergences
from discreet.design.certificate import Certificate
from discreet.design.examples import as_examples
from discreet.design.floors import band_of
from discreet.design.solving import best_floor
from discreet.divergences import FDivergence
from discreet.errors import PROBABILITY, DiscreetError, ImpossibleError
from discreet.families import Band, Simplex
from discreet.mechanisms import OptimalSampler
from discreet.tradeoff import Risk, check_epsilon

LARGEST_DOMAIN = 2**24
LARGEST_SEEN = 8192  # outcomes that examples hold: the solver keeps a square matrix of them


@dataclass(frozen=True, eq=False)
class Design:
    """A designed sampler. `value` is the mean divergence over the examples, and no epsilon-LDP sampler that keeps `keep` has one below
    `bound`."""

    family: Band
    epsilon: float
    divergence: FDivergence
    keep: float
    examples: int
    value: float
    bound: float
    certificate: Certificate = field(repr=False)

    @cached_property
    def sampler(self) -> OptimalSampler:
        """The mechanism: Q* of `family` at `epsilon`."""
        return OptimalSampler(self.family, epsilon=self.epsilon)

    def worst(self, divergence: str | FDivergence) -> Risk:
        """The exact worst case over every law there is, members of the band or not."""
        return self.sampler.risk(divergence)

    def __repr__(self) -> str:
        over = f"{self.examples:,} example{'s' if self.examples > 1 else ''}"
        return (
            f"Design(<{self.family.size} outcomes>, epsilon={self.epsilon:g}, keep={self.keep:g}: "
            f"mean {self.divergence.name} {self.value:.5g} over {over}, no sampler below {self.bound:.5g}; "
            f"worst case over everybody {float(self.worst(self.divergence)):.5g})"
        )


def design(
    family: Simplex,
    *,
    epsilon: float,
    clients: Any,
    weights: ArrayLike | None = None,
    divergence: str | FDivergence = "kl",
    keep: float = 0.01,
) -> Design:
    """The sampler with the least mean divergence over the given clients, among all that are epsilon-LDP and keep a share of the best
    worst case.

        WARNING: fit on public examples, or on clients whose own release this is. A design fitted on the clients that it then serves
        breaks their guarantee.

        Args:
            family: the public outcomes, a `Simplex`.
            epsilon: the budget of one release.
            clients: laws (n, k), one a row; or a scipy.sparse matrix (n, k) of counts or laws, each row of which is divided by its sum.
            weights: how much each example counts, (n,); equally by default.
            divergence: "kl", "tv", "hellinger", "chi2", any other name, or an `FDivergence` with a smooth f.
            keep: in [0, 1], the share of the best worst case that must remain: an outcome that a client is sure of is released with at
            least `keep` times the chance that Q* of the simplex gives it, whoever the client is. 1 is Q* itself. Below 2^-30 it counts
            as 2^-30, so that every outcome can be released.

    Returns:
        A `Design`: `.family`, `.sampler`, `.value`, `.bound`, `.worst(divergence)`.

    Raises:
        DiscreetError: for examples that are no laws on the outcomes, arguments out of range, or examples with more than 8,192 outcomes.
        ImpossibleError: where f(0) is infinite and an example leaves an outcome out: every epsilon-LDP sampler has an infinite mean.
    """
    epsilon = check_epsilon(epsilon)
    keep = PROBABILITY.check("keep", keep, "it is the share of the best worst case that must remain")
    if not isinstance(family, Simplex):
        raise DiscreetError(
            f"family = {family!r} is not a Simplex; a design serves everybody, so give the outcomes alone, as Simplex(outcomes)"
        )
    if not 2 <= family.size <= LARGEST_DOMAIN:
        raise DiscreetError(f"family has {family.size:,} outcomes; a design is for 2 to {LARGEST_DOMAIN:,}")
    f = divergences.divergence(divergence)
    examples = as_examples(clients, weights, family.size)
    if examples.seen.size > LARGEST_SEEN:
        raise DiscreetError(
            f"clients hold {examples.seen.size:,} different outcomes, more than {LARGEST_SEEN:,}; merge rare outcomes into one, "
            "or take fewer examples"
        )
    if np.isinf(f.at_zero) and examples.partial.any():
        raise ImpossibleError(
            f"{f.name} is infinite for a client that leaves an outcome out, under every epsilon-LDP sampler; use a divergence with "
            "finite f(0), such as 'kl'"
        )
    found = best_floor(examples, f, epsilon, keep)
    return Design(
        band_of(found.floor, epsilon, family),
        epsilon,
        f,
        keep,
        len(examples),
        found.value,
        found.bound,
        found.certificate,
    )
