"""Model clients around a mean law mu, of several shapes, whose average is mu whatever the shape is.

**Dirichlet.** P ~ Dirichlet(s mu); the concentration s says how much a client is like the mean, and E sum_x P_x^2 =
(1 + s sum_x mu_x^2)/(1 + s). Real clients differ among themselves in how spread out they are, so each draws its own concentration, s
times a factor around 1.

**Clusters.** The outcomes fall into groups at random. A client belongs to a group with the probability that mu gives it, and holds mu
inside that group. With as many groups as outcomes, clients are point masses.

A sampler that is linear in P releases samples whose law depends on mu alone: such samples cannot tell the shapes apart. Samples of a
projection can, a little, and private bits about the clients' own spread (`concentration_law`) can well.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIFFERENCES = 0.5  # standard deviation of the logarithm of a client's own factor
_LEAST = 1e-3  # parameters of a Dirichlet law below it are drawn as if they were this
_DUST = 1e-6  # a share of a client below it is none
_AVERAGED = 400  # model clients whose agreement stands for that of clusters


def draw_model_clients(mean: Floats, concentration: Floats, rng: np.random.Generator) -> Floats:
    """One law for each row of means (n, k) with the concentrations (n,)."""
    own = concentration * np.exp(DIFFERENCES * rng.standard_normal(len(mean)))
    shape = np.maximum(own[:, None] * mean, _LEAST)
    # Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms so that small parameters do not underflow
    amounts = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
    laws = np.exp(amounts - amounts.max(axis=1, keepdims=True))
    laws[laws < _DUST] = 0.0
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


class Shape(Protocol):
    """How model clients differ from their mean law."""

    @property
    def kind(self) -> str:
        """What clients are like, in a word or two."""

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        """One client for each row of means (n, k)."""

    def agreement(self, mean: Floats) -> float:
        """The second probability of `concentration_law`, of the average client around a mean law (k,)."""


@dataclass(frozen=True)
class Dirichlet:
    """Clients around the mean law, with a concentration."""

    concentration: float
    kind: str = "spread around a mean"

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        return draw_model_clients(mean, np.full(len(mean), self.concentration), rng)

    def agreement(self, mean: Floats) -> float:
        return expected_agreement(mean, self.concentration)


@dataclass(frozen=True)
class Clusters:
    """Clients that hold the mean law inside one of so many groups of outcomes; point masses where every outcome is a group."""

    groups: int
    size: int

    @property
    def kind(self) -> str:
        return "of one value each" if self.groups >= self.size else "in clusters"

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        group = np.argsort(rng.random(mean.shape), axis=1) % self.groups
        own = (np.cumsum(mean, axis=1) < rng.random((len(mean), 1))).sum(axis=1).clip(max=mean.shape[1] - 1)
        laws = mean * (group == np.take_along_axis(group, own[:, None], axis=1))
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))

    def agreement(self, mean: Floats) -> float:
        laws = self.draw(np.tile(mean, (_AVERAGED, 1)), np.random.default_rng(0))
        return float(concentration_law(laws)[:, 1].mean())


def concentration_law(laws: Floats) -> Floats:
    """What a client says of its own spread, as laws (n, 2) on (spread out, of one kind).

    The second probability is (sum_x p_x^2 - 1/k)/(1 - 1/k): that two of its draws agree, between 0 for the uniform law and 1 for a point
    mass. A sample of it, by any sampler on two outcomes, is one private bit.
    """
    k = laws.shape[-1]
    agree = (np.square(laws).sum(axis=-1) - 1.0 / k) / (1.0 - 1.0 / k)
    told = np.clip(agree, 0.0, 1.0)
    return np.stack([1.0 - told, told], axis=-1)


def expected_agreement(mean: Floats, concentration: float) -> float:
    """The second of these probabilities for the average model client."""
    k = len(mean)
    agree = (1.0 + concentration * float(mean @ mean)) / (1.0 + concentration)
    return min(max((agree - 1.0 / k) / (1.0 - 1.0 / k), 0.0), 1.0)
