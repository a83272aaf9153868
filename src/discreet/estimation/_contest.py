"""What each sampler costs given clients: the mean, the median and the largest divergence over them, beside the worst case of all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design import Design
from discreet.divergences import FDivergence
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, OptimalSampler
from discreet.mechanisms._sampler import Sampler

Floats = NDArray[np.float64]

_BLOCK = 1 << 22  # numbers held at a time
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 24


@dataclass(frozen=True)
class SamplerCost:
    """A sampler's divergences over the examples (mean, median, largest), and its worst case over every law there is."""

    name: str
    mean: float
    median: float
    largest: float
    worst: float


def compare_samplers(designed: Design, counts: Any) -> list[SamplerCost]:
    """Q*, the linear mechanism, the mollifier, the best uniform floor and a design, over clients given as counts (n, k)."""
    size, epsilon, f = designed.family.size, designed.epsilon, designed.divergence
    family = Simplex(size)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        **{name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()},
        "best uniform": best_uniform(counts, epsilon, f),
        "designed": designed.sampler,
    }
    return [_sampler_cost(name, sampler, counts, f) for name, sampler in samplers.items()]


def best_uniform(counts: Any, epsilon: float, f: FDivergence) -> Sampler[FiniteFamily]:
    """The sampler with a uniform floor of the best mass b, by golden section: the mean is convex in b (`discreet.design._floors`, T1).

    b = k/(s e^eps + k - s) is the floor of clients that hold s outcomes each.
    """
    family = Simplex(counts.shape[1])
    k, growth = family.size, math.exp(epsilon)

    def sampler(b: float) -> Sampler[FiniteFamily]:
        spread = (k / b - k) / (growth - 1.0)
        return OptimalSampler(family.spread(min(max(spread, 1.0), k * (1.0 - 1e-9))), epsilon=epsilon)

    def mean(b: float) -> float:
        return float(divergences(sampler(b), counts, f).mean())

    low, high = 1.0 / growth, k / (growth + k - 1.0)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [mean(b) for b in inner]
    for _ in range(_STEPS):
        if values[0] <= values[1]:
            high, inner, values = inner[1], [inner[1] - _GOLDEN * (inner[1] - low), inner[0]], [math.nan, values[0]]
            values[0] = mean(inner[0])
        else:
            low, inner, values = inner[0], [inner[1], inner[0] + _GOLDEN * (high - inner[0])], [values[1], math.nan]
            values[1] = mean(inner[1])
    return sampler(inner[0] if values[0] <= values[1] else inner[1])


def divergences(sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> Floats:
    """The divergence of every client (a row of counts) from what is released for it."""
    found = [np.atleast_1d(f(laws, sampler.output(laws))) for laws in _laws(counts)]
    return np.concatenate(found)


def _sampler_cost(name: str, sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> SamplerCost:
    found = divergences(sampler, counts, f)
    return SamplerCost(name, float(found.mean()), float(np.median(found)), float(found.max()), float(sampler.risk(f)))


def _laws(counts: Any) -> Iterator[Floats]:
    """Laws (some, k) of the clients, so many at a time as fit."""
    step = max(1, _BLOCK // counts.shape[1])
    for start in range(0, counts.shape[0], step):
        dense = counts[start : start + step].toarray()
        yield dense / dense.sum(axis=1, keepdims=True)
