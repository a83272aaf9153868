"""Boxes and clients to try the solver on: references and laws over three hundred orders of magnitude, thin boxes, small supports."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import Band, DiscreetError, MollifierSampler, OptimalSampler, Simplex
from discreet.mechanisms._sampler import Sampler

Floats = NDArray[np.float64]


def _reference(rng: np.random.Generator, k: int) -> Floats:
    match rng.integers(0, 6):
        case 0:
            return np.ones(k)
        case 1:
            return rng.exponential(size=k) + 1e-3
        case 2:
            return np.asarray(10.0 ** -rng.uniform(0, 300, k))
        case 3:
            return np.where(np.arange(k) == rng.integers(k), 1.0, 10.0 ** -rng.uniform(1, 300))
        case 4:
            return np.where((rng.random(k) < 0.5) | (np.arange(k) == 0), 1.0, 10.0 ** -rng.uniform(10, 20))
    return np.exp(-rng.uniform(0, 60) * rng.random(k))


def _law(rng: np.random.Generator, k: int) -> Floats:
    law = np.zeros(k)
    held = rng.choice(k, rng.integers(1, k + 1), replace=False)
    match rng.integers(0, 7):
        case 0:
            law[held[0]] = 1.0
        case 1:
            law = 10.0 ** -rng.uniform(0, 300, k)
        case 2:
            law[held] = 1.0
        case 3:
            law[held] = rng.exponential(size=held.size)
        case 4:
            law = 1.0 + 10.0 ** -rng.uniform(1, 15) * rng.uniform(-1, 1, k)
        case 5:
            law = np.where(rng.random(k) < rng.random(), 1.0, 10.0 ** -rng.uniform(0, 300))
        case _:
            law = np.exp(-rng.uniform(0, 700) * rng.random(k))
    return np.asarray(law / law.sum())


def problems(seed: int, number: int, largest: int) -> Iterator[tuple[Sampler[Any], Floats]]:
    """So many samplers on 2 to `largest` outcomes, and a client for each."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < number:
        k = int(rng.integers(2, largest + 1))
        lower, upper = float(rng.choice([0.0, rng.uniform(0, 0.99)])), float(1 + 10 ** rng.uniform(-6, 3))
        kind = OptimalSampler if rng.random() < 0.7 else MollifierSampler
        try:
            family = Simplex(k) if rng.random() < 0.15 else Band(_reference(rng, k), lower=lower, upper=upper)
            sampler = kind(family, epsilon=float(10 ** rng.uniform(-3, 1.7)))
        except DiscreetError:  # a band that holds no law
            continue
        made += 1
        yield sampler, _law(rng, k)
