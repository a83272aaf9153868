"""What a reader of the paper would write first: the rivals that our figures are ratios to."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import nquad, quad

from discreet.research._boosted import Training


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


Density = Callable[..., float]


def clipped_mass_by_nquad(p: Density, h: Density, r: float, b: float, epsilon: float, dim: int) -> float:
    """The integral of clip(p/r, b h, b e^eps h) over R^dim by scipy.integrate.nquad, one point at a time: one bisection step."""
    top = b * math.exp(epsilon)

    def clipped(*x: float) -> float:
        height = h(*x)
        return min(max(p(*x) / r, b * height), top * height)

    mass, _ = nquad(clipped, [(-math.inf, math.inf)] * dim)
    return float(mass)


def scale_by_quad(
    p: Density, h: Density, c2: float, epsilon: float, tolerance: float, box: tuple[float, float]
) -> float:
    """The paper's recipe on an interval: bisection between r1 = 0 and r2, an adaptive quadrature at every step."""
    b = 1.0 / ((math.exp(epsilon) - 1.0) / c2 + 1.0)
    top = b * math.exp(epsilon)
    low, high = 0.0, c2 / top
    while True:
        r = 0.5 * (low + high)
        mass, _ = quad(lambda x, r=r: min(max(p(x) / r, b * h(x)), top * h(x)), *box, limit=200)
        if abs(mass - 1.0) <= tolerance:
            return r
        low, high = (r, high) if mass > 1.0 else (low, r)


def divergences_by_quad(
    p: Density, h: Density, r: float, c2: float, epsilon: float, box: tuple[float, float]
) -> tuple[float, float, float]:
    """KL, total variation and squared Hellinger of clip(p/r, b h, b e^eps h) from p, a quadrature each."""
    b = 1.0 / ((math.exp(epsilon) - 1.0) / c2 + 1.0)
    top = b * math.exp(epsilon)

    def q(x: float) -> float:
        return min(max(p(x) / r, b * h(x)), top * h(x))

    integrands = (
        lambda x: p(x) * math.log(p(x) / q(x)),
        lambda x: 0.5 * abs(p(x) - q(x)),
        lambda x: (math.sqrt(p(x)) - math.sqrt(q(x))) ** 2,
    )
    kl, tv, hellinger = (float(quad(integrand, *box, limit=200)[0]) for integrand in integrands)
    return kl, tv, hellinger


def bisection_steps(excess: Callable[[float], float], high: float, tolerance: float) -> int:
    """How many halvings of (0, high] until the mass is within a tolerance of one, given mass(r) - 1 exactly."""
    low, steps = 0.0, 0
    while True:
        r, steps = 0.5 * (low + high), steps + 1
        value = excess(r)
        if abs(value) <= tolerance:
            return steps
        low, high = (r, high) if value > 0.0 else (low, r)


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
