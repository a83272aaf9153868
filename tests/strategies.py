"""Clients' laws and budgets for property tests: point masses, near-uniform, sparse, heavy-tailed, denormal."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet import Band, Simplex

Law = NDArray[np.float64]


def _point(k: int, rng: np.random.Generator) -> Law:
    law = np.zeros(k)
    law[rng.integers(k)] = 1.0
    return law


def _near_uniform(k: int, rng: np.random.Generator) -> Law:
    return np.asarray(1.0 + 10.0 ** -rng.uniform(1, 15) * rng.uniform(-1, 1, k))


def _sparse(k: int, rng: np.random.Generator) -> Law:
    law = np.zeros(k)
    held = rng.integers(1, k + 1)
    law[rng.choice(k, held, replace=False)] = rng.exponential(size=held)
    return law


def _heavy(k: int, rng: np.random.Generator) -> Law:
    return np.exp(-rng.uniform(0, 40) * rng.random(k))


def _denormal(k: int, rng: np.random.Generator) -> Law:
    law = 5e-324 * rng.integers(0, 3, k).astype(np.float64)
    law[rng.integers(k)] = 1.0
    return law


def _two_values(k: int, rng: np.random.Generator) -> Law:
    return np.where(rng.random(k) < rng.random(), 1.0, 10.0 ** -rng.uniform(0, 12))


KINDS = {kind.__name__: kind for kind in (_point, _near_uniform, _sparse, _heavy, _denormal, _two_values)}


@st.composite
def laws(draw: st.DrawFn, k: int) -> Law:
    """One law on k outcomes."""
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    law = kind(k, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    return np.asarray(law / law.sum())


def sizes(largest: int) -> st.SearchStrategy[int]:
    """Numbers of outcomes from 2 up, small ones often."""
    return st.one_of(st.integers(2, 12), st.integers(2, largest))


def epsilons(low: float = 1e-6, high: float = 50.0) -> st.SearchStrategy[float]:
    """Budgets, log-uniform."""
    return st.floats(np.log(low), np.log(high)).map(lambda x: float(np.exp(x)))


@st.composite
def bands(draw: st.DrawFn, largest: int = 30) -> Band:
    """A band around a uniform or a skewed reference."""
    k = draw(sizes(largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = np.ones(k) if draw(st.booleans()) else rng.exponential(size=k) + 1e-3
    lower = draw(st.one_of(st.just(0.0), st.floats(0.01, 0.95)))
    upper = 1.0 + draw(st.floats(0.05, 5.0))
    return Band(weights, lower=lower, upper=upper)


@st.composite
def members(draw: st.DrawFn, family: Simplex | Band) -> Law:
    """A law of the family: any law on the simplex; an extreme point, or a mixture of two, of a band."""
    law = draw(laws(family.size))
    if isinstance(family, Simplex):
        return law
    mu = np.broadcast_to(family.reference, (family.size,))
    order = np.argsort(-law / mu, kind="stable")
    extreme = family.bounds.lower * mu
    room = 1.0 - family.bounds.lower
    for x in order:  # raise outcomes to the upper bound in the law's own order until the mass is used up
        step = min(room, (family.bounds.upper - family.bounds.lower) * mu[x])
        extreme[x] += step
        room -= step
    weight = draw(st.sampled_from([1.0, 0.5, 0.9]))
    return weight * extreme + (1.0 - weight) * mu
