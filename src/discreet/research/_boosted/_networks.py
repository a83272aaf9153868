"""The classifiers d -> w -> w -> w -> 1 with tanh of many clients as rows of one float32 array, and their values in float64.

A row holds (weights, bias) of each layer in turn, weights by rows: how torch flattens such a network. Fresh ones are drawn
uniformly from +-1/sqrt(inputs of the layer).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.research._boosted._presets import Preset

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_BLOCK = 1 << 14


def sizes(dim: int, width: int) -> list[tuple[int, int]]:
    """(outputs, inputs) of each layer."""
    return [(width, dim), (width, width), (width, width), (1, width)]


def parameter_count(dim: int, width: int) -> int:
    """Weights and biases of one network."""
    return sum(rows * (columns + 1) for rows, columns in sizes(dim, width))


def fresh_network(dim: int, width: int, rng: np.random.Generator) -> Singles:
    """One row of initial parameters."""
    parts = []
    for rows, columns in sizes(dim, width):
        parts.append(rng.uniform(-1.0, 1.0, rows * (columns + 1)) / math.sqrt(columns))
    return np.concatenate(parts).astype(np.float32)


def layers(row: NDArray[np.floating], dim: int, width: int) -> list[tuple[Floats, Floats]]:
    """(weights, bias) of each layer of one network, in float64."""
    found, at = [], 0
    flat = row.astype(np.float64)
    for rows, columns in sizes(dim, width):
        weights = flat[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        found.append((weights, flat[at : at + rows]))
        at += rows
    return found


def logits(row: NDArray[np.floating], x: Floats, width: int) -> Floats:
    """The classifier's log-odds at points (n, dim)."""
    *hidden, (last, shift) = layers(row, x.shape[1], width)
    out = np.empty(len(x))
    for start in range(0, len(x), _BLOCK):
        values = x[start : start + _BLOCK]
        for weights, bias in hidden:
            values = np.tanh(values @ weights.T + bias)
        out[start : start + _BLOCK] = (values @ last.T + shift)[:, 0]
    return out


def bounded_logit(logit: Floats, preset: Preset) -> Floats:
    """c: the sigmoid of the logit, or the logit clipped."""
    return np.clip(logit, preset.low, preset.high) if preset.clipped else 0.5 + 0.5 * np.tanh(0.5 * logit)


def boost(networks: Singles, weights: Sequence[float], x: Floats, width: int, preset: Preset) -> Floats:
    """sum_t theta^t c_t at points (n, dim), for the networks (rounds, parameters) of one client."""
    total = np.zeros(len(x))
    for row, weight in zip(networks, weights, strict=False):
        total += weight * bounded_logit(logits(row, x, width), preset)
    return total
