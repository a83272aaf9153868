"""Figures 2, 3, 5, 6 and 7: the finite mechanism on one law, and worst cases in closed form [paper, Thm 3.1, App. F.1]."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from discreet.families import Simplex
from discreet.mechanisms import MollifierSampler, OptimalSampler
from discreet.research._published import EPSILONS
from discreet.research.experiments._costs import PAPER_DIVERGENCES


@dataclass(frozen=True)
class FiniteLaw:
    """What one client's sample is drawn from at one budget."""

    unit: str
    epsilon: float
    law: tuple[float, ...]
    optimal: tuple[float, ...]
    mollifier: tuple[float, ...]
    scale: float


@dataclass(frozen=True)
class WorstCases:
    """The largest divergences on so many outcomes at one budget, by mechanism and divergence."""

    unit: str
    epsilon: float
    outcomes: int
    risks: dict[str, dict[str, float]]


@final
@dataclass(frozen=True)
class FiniteMechanism:
    """Q*(.|P) for one P at several budgets, and the mollifier's law beside it."""

    name: str = "fig2"
    law: tuple[float, ...] = (0.3, 0.25, 0.2, 0.15, 0.1)
    epsilons: tuple[float, ...] = (1.0, 0.5, 0.1)
    quick: bool = False
    seed: int | None = None
    computes: str = "the law that one client's sample is drawn from, on five outcomes"
    record: type[FiniteLaw] = FiniteLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"law": self.law, "epsilons": self.epsilons}

    @property
    def units(self) -> Sequence[str]:
        return [f"{epsilon:g}" for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[FiniteLaw]]:
        family = Simplex(len(self.law))
        for unit in units:
            epsilon = float(unit)
            optimal, mollifier = OptimalSampler(family, epsilon=epsilon), MollifierSampler(family, epsilon=epsilon)
            q, other = (tuple(sampler.output(self.law).tolist()) for sampler in (optimal, mollifier))
            yield [FiniteLaw(unit, epsilon, self.law, q, other, float(optimal.scale(self.law)))]


@final
@dataclass(frozen=True)
class FiniteWorstCases:
    """The largest divergence over all clients on k outcomes, of the optimal sampler and of the mollifier around uniform."""

    name: str
    outcomes: int
    epsilons: tuple[float, ...] = EPSILONS
    quick: bool = False
    seed: int | None = None
    computes: str = "worst-case divergences over every law on k outcomes, in closed form"
    record: type[WorstCases] = WorstCases

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"outcomes": self.outcomes, "epsilons": self.epsilons}

    @property
    def units(self) -> Sequence[str]:
        return [f"{epsilon:g}" for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[WorstCases]]:
        family = Simplex(self.outcomes)
        for unit in units:
            epsilon = float(unit)
            samplers = {kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)}
            risks = {name: {f: float(sampler.risk(f)) for f in PAPER_DIVERGENCES} for name, sampler in samplers.items()}
            yield [WorstCases(unit, epsilon, self.outcomes, risks)]
