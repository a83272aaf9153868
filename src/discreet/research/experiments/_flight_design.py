"""The aircraft of the second half-year, served by a design that was made on the first: an earlier period that may be published.

The first half's logs are the public examples. Whoever flew in the second half releases one destination of that half's log. A design
made on the very logs that it serves would break their guarantee; this one has seen none of them. Most aircraft
flew in both halves, so the served resemble the examples more closely than strangers would.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.data import Logbooks
from discreet.design import design
from discreet.divergences import divergence
from discreet.families import Simplex
from discreet.families._on_outcomes import FiniteFamily
from discreet.mechanisms import MollifierSampler, OptimalSampler
from discreet.mechanisms._sampler import Sampler

DESIGNED = "designed"


@dataclass(frozen=True)
class ServedCosts:
    """What a sampler costs each aircraft served, the worst case over everybody, and how often the sample is a destination of its own."""

    costs: dict[str, NDArray[np.float64]]
    worst: dict[str, float]
    own: float


@dataclass(frozen=True)
class DesignedFlights:
    """Everything to tell: what each sampler costs the second half-year, and the mean KL that no sampler can go below."""

    epsilon: float
    examples: int
    flights: int
    samplers: dict[str, ServedCosts]
    floor: float
    released: NDArray[np.str_]
    own: int  # how many released destinations the aircraft flew to in the second half


def designed_flights(first: Logbooks, second: Logbooks, *, epsilon: float) -> DesignedFlights:
    """Design on the first logbooks, and release one destination of every aircraft of the second."""
    family = Simplex(second.outcomes)
    examples, laws = family.law(counts=first.counts), family.law(counts=second.counts)
    made = design(family, epsilon=epsilon, clients=examples)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        OptimalSampler.name: OptimalSampler(family, epsilon=epsilon),
        MollifierSampler.name: MollifierSampler(family, epsilon=epsilon),
        DESIGNED: made.sampler,
    }
    released = np.asarray(made.sampler.release(laws))
    numbers = family.numbers(released.tolist())
    return DesignedFlights(
        epsilon=made.epsilon,
        examples=len(examples),
        flights=int(second.counts.sum()),
        samplers={name: _served_costs(sampler, laws) for name, sampler in samplers.items()},
        floor=design(family, epsilon=epsilon, clients=laws, keep=0.0).bound,
        released=released,
        own=int((second.counts[np.arange(len(laws)), numbers] > 0).sum()),
    )


def _served_costs(sampler: Sampler[FiniteFamily], laws: NDArray[np.float64]) -> ServedCosts:
    q = sampler.output(laws)
    return ServedCosts(
        costs={name: np.asarray(divergence(name)(laws, q)) for name in ("tv", "kl")},
        worst={name: float(sampler.risk(name)) for name in ("tv", "kl")},
        own=float(np.where(laws > 0.0, q, 0.0).sum(axis=1).mean()),
    )
