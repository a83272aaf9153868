"""What can be gained while the worst case is kept: designs for `keep` from 1 to almost nothing, and the most that anybody could gain.

A unit is one set at one epsilon: for each `keep`, the mean KL over clients that the design was not made on, its worst case over
everybody, and the certified least mean that any sampler keeping as much could have, had it been made for those very clients.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from discreet.design import design
from discreet.design._smoothing import Smoother
from discreet.families import Simplex
from discreet.mechanisms import OptimalSampler
from discreet.research.experiments._designs import mean_divergences, split_of
from discreet.research.experiments._population import POPULATION_BUDGETS
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet

KEEPS = (0.9, 0.5, 0.1, 0.01)
SMOOTHING = (0.1, 0.001)  # redrawn examples and point masses, the same everywhere


@dataclass(frozen=True)
class KeepResult:
    """With so much of the best worst case kept: the served clients' mean KL, the worst case, and the least mean there could be."""

    keep: float
    mean: float
    worst: float
    floor: float


@dataclass(frozen=True)
class KeptAtBudget:
    """One set at one budget: mean and worst KL of Q*, and what each `keep` gives."""

    unit: str
    set: str
    title: str
    epsilon: float
    mean: float
    worst: float
    kept: tuple[KeepResult, ...]

    def gain(self, keep: float) -> float:
        """How much smaller the mean is than that of Q*, relatively."""
        return 1.0 - self._at(keep).mean / self.mean

    def most(self, keep: float) -> float:
        """The largest gain that any sampler could have: proved."""
        return 1.0 - self._at(keep).floor / self.mean

    def _at(self, keep: float) -> KeepResult:
        return next(one for one in self.kept if one.keep == keep)


@final
@dataclass(frozen=True)
class KeepComparison:
    """The bundled sets, designed on a fifth of their clients and measured on the others."""

    name: str = "keeps"
    epsilons: tuple[float, ...] = POPULATION_BUDGETS
    share: float = 0.2
    seed: int | None = 7
    quick: bool = False
    sets: tuple[ClientSet, ...] = tuple(one for one in CLIENT_SETS if one.bundled)
    computes: str = (
        "the mean KL that designs reach while part of the best worst case is kept, and the least there could be"
    )
    record: type[KeptAtBudget] = KeptAtBudget

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "share": self.share, "keeps": KEEPS, "sets": [one.name for one in self.sets]}

    @property
    def units(self) -> Sequence[str]:
        return [f"{one.name}/{epsilon:g}" for one in self.sets for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[KeptAtBudget]]:
        for unit in units:
            name, epsilon = unit.split("/")
            yield [self.row(next(one for one in self.sets if one.name == name), float(epsilon))]

    def row(self, declared: ClientSet, epsilon: float) -> KeptAtBudget:
        """Everything recorded of one set at one budget."""
        examples, served = split_of(declared.laws, self.share, self.seed or 0, 0)
        family = Simplex(len(declared.outcomes))
        optimal = OptimalSampler(family, epsilon=epsilon)
        kept = []
        for keep in KEEPS:
            made = Smoother(epsilon, keep).design_with_parts(examples, SMOOTHING)
            floor = design(family, epsilon=epsilon, clients=served, keep=keep).bound
            kept.append(KeepResult(keep, mean_divergences(served, made.sampler)["kl"], float(made.worst("kl")), floor))
        mean, worst = mean_divergences(served, optimal)["kl"], float(optimal.risk("kl"))
        return KeptAtBudget(
            f"{declared.name}/{epsilon:g}", declared.name, declared.title, epsilon, mean, worst, tuple(kept)
        )
