"""Clients and families that several tests share: the paper's ring, its one-dimensional set-up, random members."""

import math

import numpy as np
from numpy.typing import NDArray

import discreet as dc

RING_SCALE = math.sqrt(0.5)


def ring() -> dc.Mixture:
    """The paper's Gaussian ring: 3 modes on the unit circle, variance 0.5 [paper, App. F.3]."""
    angles = 2.0 * math.pi * np.arange(1, 4) / 3.0
    return dc.Mixture(np.ones(3), np.stack([np.cos(angles), np.sin(angles)], axis=1), RING_SCALE)


def published_envelope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """h~ as the paper prints it for the ring: exp(-d^2/(2 sigma)) where 2 sigma^2 would do [paper, App. F.3]."""
    beyond = np.maximum(0.0, np.sqrt(np.sum(np.square(x), axis=-1)) - 1.0)
    return np.asarray(np.exp(-np.square(beyond) / (2.0 * RING_SCALE)) / (2.0 * math.pi * RING_SCALE**2))


def interval_family() -> dc.GaussianMixtures:
    """The paper's one-dimensional set-up: unit variance, centres in [-1, 1], truncated to [-4, 4] [paper, App. F.2]."""
    return dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))


def random_mixture(rng: np.random.Generator, most: int = 10) -> dc.Mixture:
    """A client as the paper draws them: Poisson(2) + 1 components, uniform centres, Dirichlet weights [paper, App. F.2]."""
    count = min(int(rng.poisson(2)) + 1, most)
    means = rng.uniform(-1.0, 1.0, (count, 1))
    return dc.Mixture(rng.dirichlet(np.ones(count)), means)


def fine_grid(low: float, high: float, count: int) -> tuple[NDArray[np.float64], float]:
    """Midpoints of equal cells and their width, for checks that share nothing with the library's own nodes."""
    width = (high - low) / count
    return np.asarray(low + width * (np.arange(count) + 0.5), dtype=np.float64), width
