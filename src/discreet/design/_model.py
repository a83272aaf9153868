"""Model clients: laws P ~ Dirichlet(s mu) around a mean law mu, whose concentration s says how much a client is like the mean.

E P = mu whatever s is, and E sum_x P_x^2 = (1 + s sum_x mu_x^2)/(1 + s): two numbers that private samples can tell. Real clients differ
among themselves in how spread out they are, so each draws its own concentration, s times a factor around 1.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIFFERENCES = 0.5  # standard deviation of the logarithm of a client's own factor
_LEAST = 1e-3  # parameters of a Dirichlet law below it are drawn as if they were this
_DUST = 1e-6  # a share of a client below it is none


def drawn_clients(mean: Floats, concentration: Floats, rng: np.random.Generator) -> Floats:
    """One law for each row of means (n, k) with the concentrations (n,)."""
    own = concentration * np.exp(DIFFERENCES * rng.standard_normal(len(mean)))
    shape = np.maximum(own[:, None] * mean, _LEAST)
    # Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms so that small parameters do not underflow
    amounts = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
    laws = np.exp(amounts - amounts.max(axis=1, keepdims=True))
    laws[laws < _DUST] = 0.0
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


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
