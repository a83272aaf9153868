"""What a reader of the paper would write first: the rivals that our figures are ratios to."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.boosted import Training


def bisection_projection(p: NDArray[np.float64], epsilon: float, tolerance: float) -> NDArray[np.float64]:
    """max(p/r, 1/(e^eps + k - 1)) with r by bisection between the paper's end points, until the sum is within a tolerance."""
    k = p.size
    floor = 1.0 / (math.exp(epsilon) + k - 1)
    low, high = 1.0, (math.exp(epsilon) + k - 1) / math.exp(epsilon)
    while True:
        r = (low + high) / 2
        q = np.maximum(p / r, floor)
        total = q.sum()
        if abs(total - 1.0) <= tolerance:
            return q
        low, high = (r, high) if total > 1.0 else (low, r)


def eager_boosting(p: Any, epsilon: float, training: Training) -> float:
    """KL from one client to its boosted law: autograd, torch's own SGD, chains in numpy, as one would write it for one client."""
    import torch

    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    theta = epsilon / (epsilon + 4.0)
    networks: list[Any] = []

    def boost(x: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros(len(x))
        with torch.no_grad():
            points = torch.tensor(x[:, None], dtype=torch.float32)
            for t, network in enumerate(networks, start=1):
                total += theta**t * network(points).numpy()[:, 0]
        return total

    def chains(log_density: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
        x = np.zeros(training.samples)
        for _ in range(training.burn_in + 1):
            y = x + rng.normal(size=x.size)
            accept = np.log(rng.random(x.size)) < log_density(y) - log_density(x)
            x = np.where(accept & (np.abs(y) <= 4.0), y, x)
        return x

    w = training.width
    labels = torch.cat([torch.ones(training.batch), torch.zeros(training.batch)])[:, None]
    loss = torch.nn.BCELoss()
    for _ in range(training.rounds):
        held = torch.tensor(chains(lambda x: p.log_density(x[:, None]))[:, None], dtype=torch.float32)
        own = torch.tensor(chains(lambda x: boost(x) - 0.5 * x * x)[:, None], dtype=torch.float32)
        stack: list[Any] = []
        for inputs in (1, w, w):
            stack += [torch.nn.Linear(inputs, w), torch.nn.Tanh()]
        network = torch.nn.Sequential(*stack, torch.nn.Linear(w, 1), torch.nn.Sigmoid())
        steps = torch.optim.SGD(network.parameters(), lr=training.rate, momentum=training.momentum, nesterov=True)
        for _ in range(training.epochs):
            for start in range(0, training.samples, training.batch):
                rows = slice(start, start + training.batch)
                steps.zero_grad()
                loss(network(torch.cat([held[rows], own[rows]])), labels).backward()
                steps.step()
        networks.append(network)
    x = np.linspace(-4.0, 4.0, 8001)
    density, law = np.exp(p.log_density(x[:, None])), np.exp(boost(x) - 0.5 * x * x)
    density, law = density / density.sum(), law / law.sum()
    return float(np.sum(density * np.log(density / law)))
